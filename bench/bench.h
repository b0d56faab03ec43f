/* bench.h: the parts of make bench, which stand on the measurements of "qkv bench" (src/bench) and add other libraries and
 * programs, files and pictures. Every figure is a ratio to something measured in the same run. */
#ifndef QKV_MAKE_BENCH_H
#define QKV_MAKE_BENCH_H

#include "../src/base/clock.h"
#include "../app/bench/measure.h"

#include <qkv/qkv.h>
#include "bench/bench.h"

#include <stdbool.h>
#include <stdint.h>

void stop_on(qkv_status status); /* ends the program with the library's error */

/* ---- data ---- */

/* n numbers in -1..1, or without values; ends the program when memory is out. free() it. */
float *random_floats(int64_t n);
float *plain_floats(int64_t n);

/* ---- rows ---- */

/* Measures one kind, hands each row to also(data, row) where that is not NULL, and returns how many there were. Every row is
 * printed, and kept. */
typedef void also_row(void *data, const qkv_bench_row *row);
int run_bench(qkv_bench_kind kind, const qkv_bench_opts *o, also_row *also, void *data);

/* A line of JSON to the file of this part and so many threads in bench/results, which begins anew with the first one of a run.
 * A part is measured in one process. */
void keep_json(int threads, const char *line);

/* Does something in a process of its own, so that the peak of its memory is its own, and threads too. */
void in_child(const char *part, int threads, bool quick, void (*run)(int threads, bool quick));

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

/* ---- other programs, which environment variables name ---- */

/* Asks the program of that variable, where there is one, for "KIND --weights float32 --threads N --batch N --beam N --length N
 * --new N", and prints each of its lines, {"name": "..", "tokens_per_second": ..}, with how many times as fast `ours` is.
 * docs/bench.md says what a program has to do. */
typedef struct question {
    const char *variable, *kind;
    qkv_bench_opts o;
} question;
void ask_program(const question *q, const qkv_bench_row *ours);

/* "float32", "bfloat16", "int8" or "int4". */
const char *weights_name(qkv_dtype weights);

/* ---- what is measured; each prints its table ---- */
void bench_products(int threads, bool quick);
void bench_attention(int threads, bool quick);
void bench_memory(int threads, bool quick);
void bench_training(int threads, bool quick);
void bench_decoding(int threads, bool quick);
void bench_pictures(bool quick); /* cost against length, batch and threads, to bench/results */

#endif
