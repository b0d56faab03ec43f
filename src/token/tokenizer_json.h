/* tokenizer_json.h: tokenizers from the files they are published in. */
#ifndef QKV_SRC_TOKENIZER_JSON_H
#define QKV_SRC_TOKENIZER_JSON_H

#include "tokenizer.h"

#include <jansson.h>

#define QKV__ANY_CHARACTER "[\\s\\S]"

/* A whole file of JSON, at most 256 MiB. FORMAT with the line and the byte; IO, LIMIT, MEMORY. */
qkv_status qkv__read_json(const char *path, json_t **top);

/* jansson has no keys with a NUL: U+FDD0, which Unicode leaves to programs, stands in for it in what was read. */
#define QKV__NUL_SIGN "\xEF\xB7\x90"

/* From what a tokenizer.json holds; path starts the sentences of errors. has_nul: QKV__NUL_SIGN stands for a NUL in it. NULL
 * with the error set. */
qkv_tokenizer *qkv__tokenizer_from_json(const char *path, const json_t *top, bool has_nul);

/* From the bytes of a SentencePiece model. NULL with the error set. */
qkv_tokenizer *qkv__tokenizer_from_spm(const char *path, const unsigned char *bytes, size_t size);

#endif
