/* shortlist_learn.h: a shortlist learned from pairs. */
#ifndef QKV_APP_RECIPE_SHORTLIST_LEARN_H
#define QKV_APP_RECIPE_SHORTLIST_LEARN_H

#include <qkv/qkv.h>
#include <qkv/unstable/shortlist.h>

/* Zero means the default shown. */
typedef struct qkv_shortlist_opts {
    size_t size;
    int likeliest;           /* targets of a source token; 100 */
    int frequent;            /* targets that may always come, beside the special tokens: the most frequent ones; 100 */
    int iterations;          /* of expectation maximisation; 5 */
    int64_t max_pairs;       /* of more pairs, so many are used, evenly spaced; 400000 */
    qkv_each_step each_step; /* before every iteration; NULL: none */
    void *each_step_data;
} qkv_shortlist_opts;

/* Learns p(target | source) of tokens from the pairs, which are ids of m's tokenizers without start and end: model 1 of Brown
 * et al. 1993, with a source token that is none beside those of each sentence. A token that source and target share, where they
 * have one tokenizer, may always stay as it is. The same pairs give the same list at any number of threads. Memory: 8 bytes for
 * every two tokens that occur in one pair. NULL on error: USAGE for NULL, no pairs, an id that m does not have, a model without
 * encoder or decoder; MEMORY; and what each_step gave. You own it. */
QKV_API qkv_shortlist *qkv_shortlist_learn(const qkv_model *m, const qkv_dataset *pairs, const qkv_shortlist_opts *opts);

#endif
