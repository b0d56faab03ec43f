/* products.c: the three matrix products of a linear layer, against OpenBLAS and BLIS. */
#include "bench.h"

#include "../src/tensor/product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A layer's weights are (out, in); x has `rows` rows. */
typedef struct layer {
    int rows, out, in;
} layer;
static const layer layers[] = { { 512, 512, 512 },    { 2048, 512, 512 }, { 2048, 2048, 512 }, { 2048, 512, 2048 },
                                { 2048, 32000, 512 }, { 32, 2048, 512 },  { 8, 2048, 512 },    { 1, 512, 512 } };

/* c (m,n) = op(a) op(b), as BLAS says it. */
typedef struct product {
    const char *name;
    int m, n, k, transpose_a, transpose_b;
    const float *a, *b;
} product;

static product product_of(const layer *l, int which, const float *x, const float *w, const float *dy)
{
    switch (which) {
    case 0: return (product){ "y=xW^T", l->rows, l->out, l->in, AS_IS, TRANSPOSED, x, w };
    case 1: return (product){ "dx=dyW", l->rows, l->in, l->out, AS_IS, AS_IS, dy, w };
    default: return (product){ "dW=dy^Tx", l->out, l->in, l->rows, TRANSPOSED, AS_IS, dy, x };
    }
}

static void multiply(const peer *by, const product *p, float *c)
{
    bool flip_a = p->transpose_a == TRANSPOSED, flip_b = p->transpose_b == TRANSPOSED;
    int lda = flip_a ? p->m : p->k, ldb = flip_b ? p->k : p->n;
    if (by) {
        by->sgemm(ROW_MAJOR, p->transpose_a, p->transpose_b, p->m, p->n, p->k, 1, p->a, lda, p->b, ldb, 0, c, p->n);
        return;
    }
    qkv__product q = { .a = p->a,
                       .b = p->b,
                       .c = c,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .c_row = p->n,
                       .a_row = flip_a ? 1 : lda,
                       .a_col = flip_a ? lda : 1,
                       .b_row = flip_b ? 1 : ldb,
                       .b_col = flip_b ? ldb : 1 };
    stop_on(qkv__multiply(&q));
}

/* ---- measuring ---- */

enum { OURS, CONTESTANTS = 1 + N_PEERS };
#define WARM_UP 0.025 /* seconds in which the system moves woken threads to cores of their own */

/* Libraries take turns, so that what else the machine does hits all alike. Before its turn a library waits until the threads of
 * the one before have gone to sleep, and warms up. A sample is enough calls to be worth a look at the clock. */
static void take_turn(const peer *by, const product *p, float *c, bool quick, qkv__samples *s)
{
    double flops = 2.0 * p->m * p->n * p->k, turn = quick ? 0.01 : 0.06;
    int calls = flops < 2e7 ? (int)(2e7 / flops) : 1;
    nanosleep(&(struct timespec){ .tv_nsec = 40000000L }, NULL);
    double begin = qkv__seconds();
    if (!s->n || flops < 1e10) do
            multiply(by, p, c);
        while (qkv__seconds() - begin < WARM_UP);
    begin = qkv__seconds();
    do {
        double start = qkv__seconds();
        for (int i = 0; i < calls; i++) multiply(by, p, c);
        qkv__sample_add(s, (qkv__seconds() - start) / calls);
    } while (qkv__seconds() - begin < turn);
}

/* A fast wrong product is worth nothing. */
static void check_same(const product *p, const float *ours, const float *theirs, const char *name)
{
    for (int64_t i = 0; i < (int64_t)p->m * p->n; i++)
        if (!(fabsf(ours[i] - theirs[i]) <= 1e-5f * (float)p->k)) {
            fprintf(stderr, "bench: element %lld of %s is %g here and %g in %s\n", (long long)i, p->name, (double)ours[i],
                    (double)theirs[i], name);
            exit(1);
        }
}

static void contest(const product *p, const peer *peers, bool quick, qkv__samples s[CONTESTANTS])
{
    int64_t count = (int64_t)p->m * p->n;
    float *ours = plain_floats(count), *theirs = plain_floats(count);
    int rounds = quick ? 2 : 2.0 * p->m * p->n * p->k > 1e10 ? 3 : 7;
    for (int round = 0; round < rounds; round++) {
        take_turn(NULL, p, ours, quick, &s[OURS]);
        for (int i = 0; i < N_PEERS; i++) {
            if (!peers[i].sgemm) continue;
            take_turn(&peers[i], p, theirs, quick, &s[1 + i]);
            if (round == 0) check_same(p, ours, theirs, peers[i].name);
        }
    }
    free(ours);
    free(theirs);
}

/* ---- telling ---- */

typedef struct ratios {
    double log_best, log_median, worst_best, worst_median;
    int n;
} ratios;

static void print_line(const layer *l, const product *p, const qkv__samples s[CONTESTANTS], ratios *r)
{
    double gflop = 2e-9 * p->m * p->n * p->k, peer_best = 0, peer_median = 0;
    printf("%5d %6d %5d  %-9s", l->rows, l->out, l->in, p->name);
    for (int i = 0; i < CONTESTANTS; i++) {
        if (!s[i].n) {
            printf(" %15s", "not installed");
            continue;
        }
        double best = gflop / qkv__samples_best(&s[i]), median = gflop / qkv__samples_median(&s[i]);
        printf("   %5.1f / %5.1f", best, median);
        if (i && best > peer_best) peer_best = best;
        if (i && median > peer_median) peer_median = median;
    }
    if (peer_best > 0) {
        double best = gflop / qkv__samples_best(&s[OURS]) / peer_best,
               median = gflop / qkv__samples_median(&s[OURS]) / peer_median;
        printf("   %5.2f / %5.2f", best, median);
        r->log_best += log(best);
        r->log_median += log(median);
        if (!r->n || best < r->worst_best) r->worst_best = best;
        if (!r->n || median < r->worst_median) r->worst_median = median;
        r->n++;
    }
    putchar('\n');
    fflush(stdout);
}

static void keep_line(const layer *l, const product *p, const qkv__samples s[CONTESTANTS], const peer *peers, int threads)
{
    char line[512];
    int at = snprintf(line, sizeof line, "{\"bench\": \"%s\", \"name\": \"%d x %d x %d\"", p->name, l->rows, l->out, l->in);
    for (int i = 0; i < CONTESTANTS; i++)
        if (s[i].n)
            at += snprintf(line + at, sizeof line - (size_t)at, ", \"%s\": {\"best\": %.9g, \"median\": %.9g}",
                           i ? peers[i - 1].name : "seconds", qkv__samples_best(&s[i]), qkv__samples_median(&s[i]));
    snprintf(line + at, sizeof line - (size_t)at, "}");
    keep_json(threads, line);
}

static void bench_layer(const layer *l, const peer *peers, bool quick, ratios *r)
{
    float *x = random_floats((int64_t)l->rows * l->in), *w = random_floats((int64_t)l->out * l->in);
    float *dy = random_floats((int64_t)l->rows * l->out);
    for (int which = 0; which < 3; which++) {
        product p = product_of(l, which, x, w, dy);
        qkv__samples s[CONTESTANTS] = { 0 };
        contest(&p, peers, quick, s);
        print_line(l, &p, s, r);
        keep_line(l, &p, s, peers, qkv_num_threads());
    }
    free(x);
    free(w);
    free(dy);
}

void bench_products(int threads, bool quick)
{
    const peer *peers = load_peers();
    ratios r = { 0 };
    for (int i = 0; i < N_PEERS; i++)
        if (peers[i].sgemm) peers[i].set_threads(threads);
    printf("\nmatrix product, %d thread%s: GFLOP/s best / median, and the ratio to the better of the others\n", threads,
           threads > 1 ? "s" : "");
    printf(" rows    out    in             %13s  %14s  %14s  %14s\n", "qkv", peers[0].name, peers[1].name, "ratio");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (!quick || layers[i].out < 32000) bench_layer(&layers[i], peers, quick, &r);
    if (!r.n) return;
    printf("geometric mean of the ratios %.3f / %.3f, worst %.3f / %.3f\n", exp(r.log_best / r.n), exp(r.log_median / r.n),
           r.worst_best, r.worst_median);
}
