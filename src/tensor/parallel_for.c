/* parallel_for.c: loops and sums of operations, shared by threads. */
#include "parallel_for.h"

enum { BLOCK = 1024 };

typedef struct loop {
    int64_t n, grain;
    qkv__range_task *run;
    void *work;
} loop;

static void run_piece(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const loop *l = work;
    int64_t from = task * l->grain;
    l->run(l->work, from, qkv__min(l->n, from + l->grain));
}

bool qkv__parallel_for(qkv_tape *t, int64_t n, int64_t grain, qkv__range_task *run, void *work)
{
    loop l = { n, grain, run, work };
    if (n <= 0 || !qkv__parallel(qkv__ceil_div(n, grain), 0, run_piece, &l)) return true;
    qkv__error_below(t);
    return false;
}

double qkv__sum(const float *x, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n; i += BLOCK) total += kern->sum(x + i, qkv__min(BLOCK, n - i));
    return total;
}

double qkv__dot(const float *a, const float *b, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n; i += BLOCK) total += kern->dot(a + i, b + i, qkv__min(BLOCK, n - i));
    return total;
}

typedef struct blocks {
    qkv__block_sum *sum;
    const float *a, *b;
    float *sums;
    int64_t n;
} blocks;

static void sum_blocks(void *work, int64_t from, int64_t to)
{
    const blocks *w = work;
    for (int64_t i = from; i < to; i++)
        w->sums[i] = w->sum(w->a + i * BLOCK, w->b + i * BLOCK, qkv__min(BLOCK, w->n - i * BLOCK));
}

bool qkv__sum_blocks(qkv_tape *t, qkv__block_sum *sum, const float *a, const float *b, int64_t n, double *total)
{
    int64_t count = qkv__ceil_div(n, BLOCK);
    blocks w = { sum, a, b, qkv__save(t, sizeof(float) * (size_t)count), n };
    if (!w.sums || !qkv__parallel_for(t, count, QKV_TASK_ELEMENTS / BLOCK, sum_blocks, &w)) return false;
    *total = 0;
    for (int64_t i = 0; i < count; i++) *total += w.sums[i];
    return true;
}
