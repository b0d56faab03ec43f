/* bench.c: make bench. Nothing here is a test: times depend on the machine and on what else it does. */
#include "bench/bench.h"
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void stop_on(qkv_status status)
{
    if (!status) return;
    fprintf(stderr, "bench: %s\n", qkv_error());
    exit(1);
}

/* ---- data ---- */

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

float *random_floats(int64_t n)
{
    float *x = plain_floats(n);
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)state * 0x1p-31f;
    }
    return x;
}

/* ---- rows ---- */

static const char *current_part;

void keep_json(int threads, const char *line)
{
    static const char *begun[QKV_MAX_THREADS + 1]; /* the last part that has written to its file of so many threads */
    char path[512];
    snprintf(path, sizeof path, "%s/results", BENCH_FOLDER);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/results/%s-%d.json", BENCH_FOLDER, current_part, threads);
    FILE *f = fopen(path, begun[threads] == current_part ? "a" : "w");
    begun[threads] = current_part;
    if (!f) return perror(path);
    fprintf(f, "%s\n", line);
    fclose(f);
}

typedef struct row_work {
    also_row *also;
    void *data;
    int rows;
} row_work;

static qkv_status tell_row(void *data, const qkv_bench_row *row)
{
    row_work *w = data;
    qkv_buffer text = { 0 };
    qkv_status status = qkv_bench_text(row, 0, &text);
    if (!status) puts(text.data), fflush(stdout);
    if (!status) status = qkv_bench_text(row, 1, &text);
    if (!status) keep_json(row->threads, text.data);
    if (!status && w->also) w->also(w->data, row);
    w->rows++;
    qkv_buffer_free(&text);
    return status;
}

int run_bench(qkv_bench_kind kind, const qkv_bench_opts *o, also_row *also, void *data)
{
    row_work w = { also, data, 0 };
    stop_on(qkv_bench(kind, o, tell_row, &w));
    return w.rows;
}

void in_child(const char *part, int threads, bool quick, void (*run)(int threads, bool quick))
{
    fflush(stdout);
    qkv_shutdown(); /* they do not survive the fork */
    pid_t child = fork();
    if (child == 0) {
        run(threads, quick);
        fflush(stdout);
        _exit(0);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status) fprintf(stderr, "bench: the %s part failed\n", part);
}

/* ---- the parts ---- */

typedef struct wishes {
    bool quick;
    const char *only;
    int threads;
} wishes;

static const struct part {
    const char *name;
    void (*run)(int threads, bool quick);
    bool has_child;
} parts[] = {
    { "products", bench_products, false }, { "attention", bench_attention, false }, { "memory", bench_memory, true },
    { "training", bench_training, true },  { "decoding", bench_decoding, true },
};
enum { PARTS = sizeof parts / sizeof *parts };

static bool wanted(const wishes *w, const char *part) { return !w->only || !strcmp(w->only, part); }

static void measure_parts(const wishes *w, int threads)
{
    stop_on(qkv_set_num_threads(threads));
    printf("\n%d thread%s: fused multiply-add %.1f GFLOP/s, memory read %.1f GB/s\n", threads, threads > 1 ? "s" : "",
           qkv_bench_peak() * 1e-9, qkv_bench_bandwidth(256 << 20) * 1e-9);
    for (int i = 0; i < PARTS; i++) {
        if (!wanted(w, parts[i].name)) continue;
        current_part = parts[i].name;
        if (parts[i].has_child) in_child(parts[i].name, threads, w->quick, parts[i].run);
        else parts[i].run(threads, w->quick);
    }
}

static bool is_part(const char *text)
{
    for (int i = 0; i < PARTS; i++)
        if (!strcmp(text, parts[i].name)) return true;
    return !strcmp(text, "peak") || !strcmp(text, "pictures");
}

static wishes read_wishes(char **arguments)
{
    wishes w = { 0 };
    for (char **a = arguments; *a; a++) {
        if (!strcmp(*a, "--quick")) w.quick = true;
        else if (!strcmp(*a, "-1") || !strcmp(*a, "-2")) w.threads = (*a)[1] - '0';
        else if (is_part(*a)) w.only = *a;
        else {
            fprintf(stderr, "usage: bench [--quick] [-1|-2] [peak|products|attention|memory|training|decoding|pictures]\n");
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
        if (!w.threads || w.threads == threads) measure_parts(&w, threads);
    current_part = "pictures";
    if (wanted(&w, current_part)) bench_pictures(w.quick);
    return 0;
}
