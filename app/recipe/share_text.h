/* share_text.h: the text of a training, read and cut into ids by one rank for all of them, and its tokenizer. */
#ifndef QKV_SRC_SHARE_TEXT_H
#define QKV_SRC_SHARE_TEXT_H

#include "job.h"
#include "training.h"

/* Reads t->pairs and t->valid, and what is told of them into *told. */
typedef qkv_status qkv__text_reader(qkv_training *t, void *told);

/* Rank 0 reads, and the others get its errors, the `bytes` of *told, and the pairs: through a file, which none of them copies, where
 * all reach the folder that is written, else from rank 0. The errors of read; IO, MEMORY. */
qkv_status qkv__read_for_all(qkv_training *t, qkv__text_reader *read, void *told, size_t bytes);

/* Rank 0's status, with its sentence, is everybody's, so that all of them end together. IO. */
qkv_status qkv__share_status(qkv_status status);

/* Gives the others the lines of rank 0, in which there is no newline, one after the other. IO, MEMORY, the errors of take. */
typedef qkv_status qkv__line_taker(void *data, const char *line);
qkv_status qkv__share_lines(char *const *lines, int64_t n, qkv__line_taker *take, void *data);

/* Rank 0's labels and their counts to all ranks. The others have none before. IO, MEMORY. */
qkv_status qkv__share_labels(qkv__label_set *labels);

/* Rank 0's tokenizer, which may be NULL, to all ranks. The others' *t is NULL before. IO, MEMORY. */
qkv_status qkv__share_tokenizer(qkv_tokenizer **t);

#endif
