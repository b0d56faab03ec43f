/* tokenizer_json.h: tokenizers from the files they are published in. */
#ifndef QKV_SRC_TEXT_TOKENIZER_JSON_H
#define QKV_SRC_TEXT_TOKENIZER_JSON_H

#include "tokenizer.h"

#include <jansson.h>

#define QKV__ANY_CHARACTER "[\\s\\S]"

/* A whole file of JSON, at most 256 MiB. FORMAT with the line and the byte; IO, LIMIT, MEMORY. */
qkv_status qkv__read_json(const char *path, json_t **top);

/* From what a tokenizer.json holds; path starts the sentences of errors. NULL with the error set. */
qkv_tokenizer *qkv__tokenizer_from_json(const char *path, const json_t *top);

/* From the bytes of a SentencePiece model. NULL with the error set. */
qkv_tokenizer *qkv__tokenizer_from_spm(const char *path, const unsigned char *bytes, size_t size);

#endif
