/* measure.h: what the measurements share: samples, the machine, models to measure, rows. */
#ifndef QKV_SRC_MEASURE_H
#define QKV_SRC_MEASURE_H

#include "bench.h"
#include <qkv/model.h>

#include "../../src/base/status.h"

#include <stdbool.h>

/* ---- samples ---- */

/* Durations of one thing, in seconds; more than there is room for are not kept. */
enum { QKV__MOST_SAMPLES = 512 };
typedef struct qkv__samples {
    int n;
    double at[QKV__MOST_SAMPLES];
} qkv__samples;
void qkv__sample_add(qkv__samples *s, double duration);
double qkv__samples_best(const qkv__samples *s);
double qkv__samples_median(const qkv__samples *s);

/* ---- the machine ---- */

/* Does rounds of multiply-adds in registers; gives how many operations that were. */
double qkv__multiply_adds(int64_t rounds);

/* Reads n words at a multiple of 64 bytes, and gives their sum so that it must; up to 31 at the end may be left out. */
uint64_t qkv__read_words(const uint64_t *words, int64_t n);

/* A block that all threads read, to see how fast memory is just now. begin: MEMORY. now: bytes a second, 0 with the error set. */
typedef struct qkv__reading {
    const uint64_t *words;
    uint64_t *sums;    /* of every task, so that nothing is left out */
    int64_t n, pieces; /* words, and tasks that are once through them */
} qkv__reading;
qkv_status qkv__reading_begin(qkv__reading *r, size_t bytes);
double qkv__reading_now(const qkv__reading *r, int trials);
void qkv__reading_end(qkv__reading *r);

/* Cores that others used between begin and end. */
typedef struct qkv__usage {
    double begin, own, at_work, stolen; /* seconds */
} qkv__usage;
void qkv__usage_begin(qkv__usage *u);
void qkv__usage_end(const qkv__usage *u, double *others, double *stolen);

/* Bytes of memory that this process holds, and the most it has held; 0 where the system does not say. */
double qkv__resident(void);
double qkv__resident_peak(void);

/* ---- measurements ---- */

/* One call of qkv_bench(). */
typedef struct qkv__bench {
    qkv_bench_kind kind;
    qkv_bench_opts o;
    qkv_bench_each each;
    void *data;
} qkv__bench;

/* One run of what is measured; adds the seconds that are not to count to *aside. */
typedef qkv_status qkv__bench_run(void *work, double *aside);

/* Warms up, takes samples of run(work) and hands on the row, of which name, unit, amount, operations, bytes and block are set.
 * The status of a run that failed, or of the caller's each. */
qkv_status qkv__bench_measure(const qkv__bench *b, qkv_bench_row row, qkv__bench_run *run, void *work);

qkv_status qkv__bench_products(const qkv__bench *b);
qkv_status qkv__bench_attention(const qkv__bench *b);
qkv_status qkv__bench_training(const qkv__bench *b);
qkv_status qkv__bench_translation(const qkv__bench *b);
qkv_status qkv__bench_generation(const qkv__bench *b);
qkv_status qkv__bench_embedding(const qkv__bench *b);

/* ---- models ---- */

/* The model of the options' folder; without one a model of this shape with random weights and, where there are words, a
 * tokenizer that has each of them (parted by spaces) for a token. NULL with the error. */
qkv_model *qkv__bench_model(const qkv__bench *b, const qkv_config *shape, const char *words);

/* Multiply-adds that a token costs in weights, and the bytes of these weights. */
typedef struct qkv__weights {
    double count, bytes;
} qkv__weights;
qkv__weights qkv__encoder_weights(const qkv_model *m); /* of a source token: keys and values for the decoder too */
qkv__weights qkv__decoder_weights(const qkv_model *m);
qkv__weights qkv__output_weights(const qkv_model *m);

/* n ids of a vocabulary, no two neighbours alike. */
void qkv__some_ids(int32_t *ids, int64_t n, int64_t vocabulary);

#endif
