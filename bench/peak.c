/* peak.c: what the machine can do: fused multiply-adds and memory reads. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <qkv/base.h>

/* Twelve chains hide the latency of the multiply-add. The empty asm makes each chain's value unknown to the compiler, which
 * would otherwise merge chains that compute the same; a figure above the clock times lanes times four would betray it. */
/* clang-format off */
#define EACH_CHAIN(C) C(0) C(1) C(2) C(3) C(4) C(5) C(6) C(7) C(8) C(9) C(10) C(11)
#define START(i) vector x##i = term;
#define STEP(i) x##i = x##i * factor + term; __asm__ volatile("" : "+" REGISTER(x##i));
#define MULTIPLY_ADDS(name, bytes)                                                                                             \
    static double name(int64_t rounds)                                                                                         \
    {                                                                                                                          \
        typedef float vector __attribute__((vector_size(bytes)));                                                              \
        vector factor = 0.999f - (vector){ 0 }, term = 0.001f - (vector){ 0 };                                                 \
        EACH_CHAIN(START)                                                                                                      \
        for (int64_t r = 0; r < rounds; r++) { EACH_CHAIN(STEP) }                                                              \
        return 2.0 * (bytes / 4) * 12 * (double)rounds;                                                                        \
    }

#if defined(__x86_64__)
#define REGISTER "v"
MULTIPLY_ADDS(with_16_bytes, 16)
__attribute__((target("avx2,fma"))) MULTIPLY_ADDS(with_32_bytes, 32)
__attribute__((target("avx512f"))) MULTIPLY_ADDS(with_64_bytes, 64)
#elif defined(__aarch64__)
#define REGISTER "w"
MULTIPLY_ADDS(with_16_bytes, 16)
#else
#define REGISTER "m"
MULTIPLY_ADDS(with_16_bytes, 16)
#endif

static double multiply_adds(int64_t rounds)
{
#if defined(__x86_64__)
    if (!strcmp(qkv_isa(), "avx512")) return with_64_bytes(rounds);
    if (!strcmp(qkv_isa(), "avx2")) return with_32_bytes(rounds);
#endif
    return with_16_bytes(rounds);
}
/* clang-format on */

/* ---- several threads at once ---- */

typedef struct job {
    double (*work)(struct job *); /* gives how much it did */
    pthread_barrier_t *start;
    const uint64_t *memory;
    int64_t size;
    double amount, time;
    uint64_t sum;
} job;

static void *run(void *argument)
{
    job *j = argument;
    pthread_barrier_wait(j->start);
    double begin = seconds();
    j->amount = j->work(j);
    j->time = seconds() - begin;
    return NULL;
}

/* Amount a second over all threads: the slowest decides. */
static double rate(job model, int threads)
{
    pthread_barrier_t start;
    pthread_t thread[2];
    job jobs[2];
    double amount = 0, time = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        jobs[i] = model;
        jobs[i].start = &start;
        if (jobs[i].memory) jobs[i].size /= threads, jobs[i].memory += i * jobs[i].size;
        if (pthread_create(&thread[i], NULL, run, &jobs[i])) abort();
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        amount += jobs[i].amount;
        if (jobs[i].time > time) time = jobs[i].time;
    }
    pthread_barrier_destroy(&start);
    return amount / time;
}

static double best_rate(job model, int threads, int trials)
{
    double best = 0;
    for (int i = 0; i < trials; i++) {
        double r = rate(model, threads);
        if (r > best) best = r;
    }
    return best;
}

static double do_multiply_adds(job *j) { return multiply_adds(j->size); }

/* The best of the whole run so far: a share of a peak that was measured in a bad moment would flatter. */
double peak_flops(int threads)
{
    static double best[3];
    double now = best_rate((job){ .work = do_multiply_adds, .size = 5 << 20 }, threads, 30);
    if (now > best[threads]) best[threads] = now;
    return best[threads];
}

/* Whole numbers, whose sums the compiler may reorder, and four sums at once: the loop must keep up with memory. */
static double do_read(job *j)
{
    uint64_t sum[4] = { 0 };
    for (int64_t i = 0; i + 16 <= j->size; i += 16)
        for (int part = 0; part < 4; part++)
            for (int word = 0; word < 4; word++) sum[part] += j->memory[i + 4 * part + word];
    j->sum = sum[0] + sum[1] + sum[2] + sum[3];
    return (double)j->size * sizeof *j->memory;
}

double read_bandwidth(int threads)
{
    int64_t words = 32 << 20; /* 256 MB: far more than any cache */
    float *memory = random_floats(2 * words);
    double best = best_rate((job){ .work = do_read, .memory = (const uint64_t *)(const void *)memory, .size = words }, threads,
                            9);
    free(memory);
    return best;
}
