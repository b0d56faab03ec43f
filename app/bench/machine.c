/* machine.c: what the machine can do, and what else it does meanwhile. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/clock.h"
#include "../../src/base/pool.h"
#include "../../src/base/size.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- multiply-adds ---- */

static void do_multiply_adds(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    ((double *)work)[task] = qkv__multiply_adds(1 << 18); /* about half a millisecond */
}

/* Several pieces a thread, so that all threads are at work nearly to the end. */
static double multiply_adds_a_second(void)
{
    enum { PIECES = 16 };
    int64_t tasks = (int64_t)PIECES * qkv_num_threads();
    double done[PIECES * QKV_MAX_THREADS], amount = 0, begin = qkv__seconds();
    if (qkv__parallel(tasks, 0, do_multiply_adds, done)) return 0;
    double time = qkv__seconds() - begin;
    for (int64_t i = 0; i < tasks; i++) amount += done[i];
    return amount / time;
}

/* The best so far: a share of a peak that was measured in a bad moment would flatter. */
double qkv_bench_peak(void)
{
    enum { TRIALS = 6 };
    static double best;
    static int threads;
    static const char *isa;
    if (threads != qkv_num_threads() || isa != qkv_isa()) best = 0, threads = qkv_num_threads(), isa = qkv_isa();
    for (int i = 0; i < TRIALS; i++) {
        double now = multiply_adds_a_second();
        if (now > best) best = now;
    }
    return best;
}

/* ---- reading ---- */

enum { PIECE = 1 << 15 }; /* words of a task: 256 KB */

static void read_piece(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const qkv__reading *r = work;
    int64_t piece = task % r->pieces, from = piece * PIECE;
    r->sums[piece] = qkv__read_words(r->words + from, qkv__min(r->n - from, PIECE));
}

qkv_status qkv__reading_begin(qkv__reading *r, size_t bytes)
{
    const size_t least = 1 << 12, most = (size_t)1 << 30; /* beyond that every cache is passed */
    bytes = bytes < least ? least : bytes > most ? most : bytes;
    *r = (qkv__reading){ .n = (int64_t)(bytes / sizeof *r->words) };
    r->pieces = qkv__ceil_div(r->n, PIECE);
    void *block = qkv__alloc(sizeof *r->words * (size_t)r->n);
    r->words = block;
    r->sums = qkv__alloc(sizeof *r->sums * (size_t)r->pieces);
    if (!block || !r->sums) return qkv__reading_end(r), QKV_MEMORY;
    memset(block, 1, sizeof *r->words * (size_t)r->n); /* pages that were never written are all one page of zeros */
    return QKV_OK;
}

double qkv__reading_now(const qkv__reading *r, int trials)
{
    enum { LEAST = 64 << 20 }; /* bytes of a trial: some milliseconds */
    int64_t rounds = qkv__ceil_div(LEAST, r->n * (int64_t)sizeof *r->words);
    double best = 0;
    for (int i = 0; i < trials; i++) {
        double begin = qkv__seconds();
        if (qkv__parallel(rounds * r->pieces, 0, read_piece, (void *)(uintptr_t)r)) return 0;
        double now = (double)(rounds * r->n) * sizeof *r->words / (qkv__seconds() - begin);
        if (now > best) best = now;
    }
    return best;
}

void qkv__reading_end(qkv__reading *r)
{
    qkv__release((void *)(uintptr_t)r->words, sizeof *r->words * (size_t)r->n);
    qkv__release(r->sums, sizeof *r->sums * (size_t)r->pieces);
    *r = (qkv__reading){ 0 };
}

double qkv_bench_bandwidth(size_t bytes)
{
    qkv__reading r;
    double best = qkv__reading_begin(&r, bytes) ? 0 : qkv__reading_now(&r, 7);
    qkv__reading_end(&r);
    return best;
}

/* ---- what else it does ---- */

/* Seconds of all cores since the machine started: at work, and taken by other virtual machines. Zeros where that is not told. */
static void read_core_seconds(double *at_work, double *stolen)
{
    double x[8] = { 0 };
    FILE *f = fopen("/proc/stat", "re");
    if (f && fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7) < 4)
        memset(x, 0, sizeof x);
    if (f) fclose(f);
    double ticks = (double)sysconf(_SC_CLK_TCK);
    *at_work = (x[0] + x[1] + x[2] + x[5] + x[6]) / ticks;
    *stolen = x[7] / ticks;
}

static double own_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void qkv__usage_begin(qkv__usage *u)
{
    read_core_seconds(&u->at_work, &u->stolen);
    u->own = own_seconds();
    u->begin = qkv__seconds();
}

/* The kernel counts in hundredths of a second: of a shorter time it cannot be said. */
void qkv__usage_end(const qkv__usage *u, double *others, double *stolen)
{
    double at_work, taken, time = qkv__seconds() - u->begin, own = own_seconds() - u->own;
    read_core_seconds(&at_work, &taken);
    bool is_told = time > 0.2 && u->at_work > 0;
    *others = is_told && at_work - u->at_work > own ? (at_work - u->at_work - own) / time : 0;
    *stolen = is_told ? (taken - u->stolen) / time : 0;
}

/* A line of /proc/self/status in bytes; 0 where there is none. */
static double status_bytes(const char *format)
{
    char line[256];
    double kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, format, &kilobytes) != 1) continue;
    if (f) fclose(f);
    return kilobytes * 1024;
}

double qkv__resident(void) { return status_bytes("VmRSS: %lf"); }
double qkv__resident_peak(void) { return status_bytes("VmHWM: %lf"); }
