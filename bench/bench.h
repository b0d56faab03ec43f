/* bench.h: the parts of the benchmark. Every figure is a ratio to something measured in the same run. */
#ifndef QKV_BENCH_H
#define QKV_BENCH_H

#include <stdbool.h>
#include <stdint.h>

/* ---- time ---- */
double seconds(void);
void sleep_ms(int ms);

/* Durations of one thing, in seconds. */
enum { MOST_SAMPLES = 512 };
typedef struct samples {
    int n;
    double at[MOST_SAMPLES];
} samples;
void add_sample(samples *s, double duration);
double best_of(const samples *s);
double median_of(const samples *s);

/* ---- data ---- */

/* n numbers in -1..1, or without values; ends the program when memory is out. free() it. */
float *random_floats(int64_t n);
float *plain_floats(int64_t n);
void fill_random(float *x, int64_t n);

/* ---- the machine; threads: 1 or 2 ---- */
double peak_flops(int threads);     /* fused multiply-adds in float32, two operations each, a second */
double read_bandwidth(int threads); /* bytes a second from memory */

/* ---- other libraries ---- */

/* The call every BLAS has; orders and transposes are the CBLAS numbers. */
typedef void sgemm_call(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc);
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

typedef struct peer {
    const char *name;
    sgemm_call *sgemm; /* NULL: not installed */
    void (*set_threads)(int);
} peer;
enum { N_PEERS = 2 };
const peer *load_peers(void);

/* ---- what is measured; each prints its table ---- */
void bench_products(int threads, bool quick);
void bench_attention(int threads, bool quick);
void bench_memory(int threads);
void bench_training(int threads, bool quick);
void bench_decoding(int threads, bool quick);

#endif
