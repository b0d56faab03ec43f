/* train.h: what the ways to learn a tokenizer share. */
#ifndef QKV_SRC_TRAIN_H
#define QKV_SRC_TRAIN_H

#include "tokenizer.h"
#include "word_counts.h"

/* Both take options without defaults to fill in. NULL with the error set. */
qkv_tokenizer *qkv__train_byte_pairs(const qkv__bag *words, const qkv_tokenizer_opts *o);
qkv_tokenizer *qkv__train_units(qkv_token_kind kind, const qkv__bag *words, const qkv_tokenizer_opts *o);

/* Adds the next special token to the spellings, which are numbered by id. USAGE, MEMORY. */
qkv_status qkv__add_special(qkv__bag *tokens, const char *special);

/* The tokenizer with these spellings, the first n_specials of them special tokens. NULL with the error set. */
qkv_tokenizer *qkv__make_tokenizer(qkv_token_kind kind, const qkv__bag *tokens, size_t n_specials, const qkv__merge *merges,
                                   size_t n_merges);

#endif
