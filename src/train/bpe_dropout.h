/* bpe_dropout.h: the pairs of an epoch, their texts cut anew. */
#ifndef QKV_SRC_BPE_DROPOUT_H
#define QKV_SRC_BPE_DROPOUT_H

#include <qkv/model.h>

/* USAGE for a share outside 0 to 1, 1 itself excluded; UNSUPPORTED for tokenizers whose ids do not tell the text. */
qkv_status qkv__check_bpe_dropout(const qkv_model *m, double share);

/* The same pairs of texts, with each merge left out with that probability; NULL on error: MEMORY, IO. You own them. */
qkv_pairs *qkv__drop_merges(const qkv_pairs *pairs, const qkv_model *m, double share, uint64_t seed, uint64_t epoch);

#endif
