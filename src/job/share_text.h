/* share_text.h: the text of a training, read and cut into ids by one rank for all of them, and its tokenizer. */
#ifndef QKV_SRC_SHARE_TEXT_H
#define QKV_SRC_SHARE_TEXT_H

#include "training.h"

/* Reads t->pairs and t->valid, and what is told of them into *told. */
typedef qkv_status qkv__text_reader(qkv_training *t, void *told);

/* Where all ranks reach the folder that is written: rank 0 reads, and the others get its errors, the `bytes` of *told, and
 * the pairs through a file, which none of them copies. Elsewhere, and with one rank, each reads for itself. The errors of
 * read; IO, MEMORY. */
qkv_status qkv__read_for_all(qkv_training *t, qkv__text_reader *read, void *told, size_t bytes);

/* Rank 0's status, with its sentence, is everybody's, so that all of them end together. IO. */
qkv_status qkv__share_status(qkv_status status);

/* Rank 0's tokenizer, which may be NULL, to all ranks. The others' *t is NULL before. IO, MEMORY. */
qkv_status qkv__share_tokenizer(qkv_tokenizer **t);

#endif
