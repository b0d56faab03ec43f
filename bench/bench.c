/* bench.c: make bench. Nothing here is a test: times depend on the machine and on what else it does. */
#include "bench.h"

#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <string.h>
#include <time.h>

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sleep_ms(int ms) { nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL); }

void add_sample(samples *s, double duration)
{
    if (s->n < MOST_SAMPLES) s->at[s->n++] = duration;
}

double best_of(const samples *s)
{
    double best = s->at[0];
    for (int i = 1; i < s->n; i++)
        if (s->at[i] < best) best = s->at[i];
    return best;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median_of(const samples *s)
{
    samples sorted = *s;
    qsort(sorted.at, (size_t)sorted.n, sizeof *sorted.at, by_value);
    return sorted.at[sorted.n / 2];
}

/* As the library allocates: large arrays on huge pages. */
float *plain_floats(int64_t n)
{
    size_t bytes = (size_t)n * sizeof(float), alignment = bytes < 2 << 20 ? 64 : 2 << 20;
    float *x = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
#ifdef MADV_HUGEPAGE
    if (x && alignment > 64) madvise(x, bytes, MADV_HUGEPAGE);
#endif
    if (x) return x;
    fprintf(stderr, "bench: no memory for %lld numbers\n", (long long)n);
    exit(1);
}

void fill_random(float *x, int64_t n)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

float *random_floats(int64_t n)
{
    float *x = plain_floats(n);
    fill_random(x, n);
    return x;
}

static void print_machine(int threads)
{
    printf("\npeak, %d thread%s: fused multiply-add %.1f GFLOP/s, memory read %.1f GB/s\n", threads, threads > 1 ? "s" : "",
           peak_flops(threads) * 1e-9, read_bandwidth(threads) * 1e-9);
}

typedef struct wishes {
    bool quick;
    const char *only;
    int threads;
} wishes;

static bool wanted(const wishes *w, const char *part) { return !w->only || !strcmp(w->only, part); }

static void measure(const wishes *w, int threads)
{
    if (qkv_set_threads(threads)) {
        fprintf(stderr, "bench: %s\n", qkv_error());
        exit(1);
    }
    print_machine(threads);
    if (wanted(w, "products")) bench_products(threads, w->quick);
    if (wanted(w, "attention")) bench_attention(threads, w->quick);
    if (wanted(w, "memory")) bench_memory(threads);
    if (wanted(w, "training")) bench_training(threads, w->quick);
    if (wanted(w, "decoding")) bench_decoding(threads, w->quick);
}

static bool is_part(const char *text)
{
    return !strcmp(text, "peak") || !strcmp(text, "products") || !strcmp(text, "attention") || !strcmp(text, "memory") ||
           !strcmp(text, "training") || !strcmp(text, "decoding");
}

static wishes read_wishes(char **arguments)
{
    wishes w = { 0 };
    for (char **a = arguments; *a; a++) {
        if (!strcmp(*a, "--quick")) w.quick = true;
        else if (!strcmp(*a, "-1") || !strcmp(*a, "-2")) w.threads = (*a)[1] - '0';
        else if (is_part(*a)) w.only = *a;
        else {
            fprintf(stderr, "usage: bench [--quick] [-1|-2] [peak|products|attention|memory|training|decoding]\n");
            exit(2);
        }
    }
    return w;
}

int main(int argc, char **argv)
{
    wishes w = read_wishes(argv + (argc > 0));
    if (!qkv_isa()) return fprintf(stderr, "bench: %s\n", qkv_error()), 1;
    printf("qkv %s, instruction set %s\n", qkv_version(), qkv_isa());
    for (int threads = 1; threads <= 2; threads++)
        if (!w.threads || w.threads == threads) measure(&w, threads);
    return 0;
}
