/* tokenizer_json.h: tokenizers from the files they are published in. */
#ifndef QKV_SRC_TOKENIZER_JSON_H
#define QKV_SRC_TOKENIZER_JSON_H

#include "../base/json.h"
#include "tokenizer.h"

#define QKV__ANY_CHARACTER "[\\s\\S]"
#define QKV__TOKENIZER_FILE_MAX ((size_t)256 << 20) /* bytes; the largest published ones have a tenth of that */

/* From the text of a tokenizer.json; path starts the sentences of errors. NULL with the error set. */
qkv_tokenizer *qkv__tokenizer_from_json(const char *path, const char *text, size_t length);

/* From the bytes of a SentencePiece model. NULL with the error set. */
qkv_tokenizer *qkv__tokenizer_from_spm(const char *path, const unsigned char *bytes, size_t size);

/* FORMAT for a token that a vocabulary has twice. */
qkv_status qkv__refuse_repeated(const char *path, const char *spelling);

#endif
