/* copy_tokenizer_files.h: files that a model takes with it as they are. */
#ifndef QKV_SRC_COPY_TOKENIZER_FILES_H
#define QKV_SRC_COPY_TOKENIZER_FILES_H

#include "../base/status.h"

#include <stdbool.h>

/* Copies what a tokenizer's folder says of it besides, and with whole_tokenizer also the files of SentencePiece that it was
 * read from. From a folder to itself nothing is copied. IO, LIMIT, MEMORY. */
qkv_status qkv__copy_tokenizer_files(const char *from, const char *to, bool whole_tokenizer);

#endif
