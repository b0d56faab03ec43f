/* batches.h: batches of texts, each on a thread of its own where there are several. A batch that has a thread to itself never
 * waits for another one; the last few, fewer than there are threads, are shared by all of them. */
#ifndef QKV_SRC_BATCHES_H
#define QKV_SRC_BATCHES_H

#include <qkv/session.h>

/* `own` is what one thread needs for a batch, start() makes it, end() frees it: it serves one batch after the other. */
typedef struct qkv__batches {
    int64_t n;
    void *work;
    void *(*start)(void *work); /* NULL with the error set */
    void (*end)(void *own);
    qkv_status (*run)(void *work, void *own, int64_t batch, qkv_each_step each_step, void *each_step_data);
    qkv_each_step each_step; /* of the caller, called on its thread; NULL: none */
    void *each_step_data;
} qkv__batches;

/* Runs all of them, in any order. What fails is the status of the first batch that fails, as if they had run one by one; or
 * what each_step gave, which ends all of them. */
qkv_status qkv__run_batches(const qkv__batches *b);

/* Into how many batches n texts, or tokens, go, of which one takes `most`: so many that threads have as many each, where there is
 * enough for it. rows: of the products, for each of them; the beam of a search. */
int64_t qkv__count_batches(int64_t n, int64_t most, int64_t rows);

#endif
