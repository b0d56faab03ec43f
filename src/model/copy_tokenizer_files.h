/* copy_tokenizer_files.h: files that a model takes with it as they are. */
#ifndef QKV_SRC_COPY_TOKENIZER_FILES_H
#define QKV_SRC_COPY_TOKENIZER_FILES_H

#include "../base/file.h"

/* What a tokenizer's folder says of it besides, and with whole_tokenizer also the files of SentencePiece that it was read from.
 * They are read before anything is written: a folder that is gone stops a save before it begins. IO, LIMIT, MEMORY: *out is
 * then empty. */
typedef struct qkv__tokenizer_files {
    qkv__names names;
    qkv__bytes *contents; /* of each name; without data: it is not copied */
} qkv__tokenizer_files;
qkv_status qkv__tokenizer_files_read(const char *folder, bool whole_tokenizer, qkv__tokenizer_files *out);
qkv_status qkv__tokenizer_files_write(const qkv__tokenizer_files *files, const char *folder);
void qkv__tokenizer_files_free(qkv__tokenizer_files *files);

#endif
