/* attention.c: attention forward and backward, against the machine's peak and PyTorch. */
#include "bench.h"

#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shape {
    int64_t batch, heads, length, dim;
} shape;
static const shape shapes[] = { { 4, 8, 512, 64 }, { 1, 8, 2048, 64 } };

enum { FORWARD, BOTH_WAYS };

/* Two products of T x T x D. Causal counts half of them; the backward pass has twice as many, and what it computes again from
 * the forward pass does not count. */
static double operations(const shape *s, bool causal, int way)
{
    double forward = 4.0 * (double)(s->batch * s->heads) * (double)(s->length * s->length) * (double)s->dim;
    return forward * (causal ? 0.5 : 1) * (way == BOTH_WAYS ? 3 : 1);
}

static qkv_tensor *operand(qkv_tape *t, const shape *s)
{
    qkv_tensor *x = qkv_variable(t, QKV_SHAPE(s->batch, s->heads, s->length, s->dim), NULL);
    if (x) fill_random(qkv_data(x), qkv_count(x));
    return x;
}

static void stop_on_error(const qkv_tape *t)
{
    if (!qkv_tape_status(t)) return;
    fprintf(stderr, "bench: %s\n", qkv_error());
    exit(1);
}

/* Seconds of one attention on fresh operands. */
static double once(qkv_tape *t, const shape *s, bool causal, int way)
{
    qkv_tape_reset(t);
    qkv_tensor *q = operand(t, s), *k = operand(t, s), *v = operand(t, s);
    double begin = seconds();
    qkv_tensor *y = qkv_attention(q, k, v, (qkv_mask){ .causal = causal });
    if (way == BOTH_WAYS) qkv_backward(qkv_sum(y));
    double time = seconds() - begin;
    stop_on_error(t);
    return time;
}

static samples measure(const shape *s, bool causal, int way, bool quick)
{
    samples taken = { 0 };
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = way == FORWARD });
    if (!t) exit(1);
    for (int i = 0; i < 2; i++) once(t, s, causal, way); /* the tape has its memory in one piece after the first reset */
    double end = seconds() + (quick ? 0.2 : 2.0);
    do add_sample(&taken, once(t, s, causal, way));
    while (seconds() < end);
    qkv_tape_free(t);
    return taken;
}

/* ---- PyTorch ---- */

/* Milliseconds as bench/torch_attention.py prints them, in the order this file measures; 0 where there are none. */
typedef struct torch_times {
    double best, median;
} torch_times;
enum { CASES = 8 };

static bool ask_torch(int threads, bool quick, torch_times times[CASES])
{
    char command[512];
    snprintf(command, sizeof command, "/usr/bin/python3 '%s/torch_attention.py' %d %d 2>/dev/null", BENCH_FOLDER, threads,
             quick);
    fflush(stdout);
    FILE *f = popen(command, "r");
    int n = 0;
    while (f && n < CASES && fscanf(f, "%lf %lf", &times[n].best, &times[n].median) == 2) n++;
    if (f) pclose(f);
    return n == CASES;
}

/* ---- telling ---- */

static void print_line(const shape *s, bool causal, int way, const samples *taken, double peak, const torch_times *torch)
{
    double best = best_of(taken), median = median_of(taken), work = operations(s, causal, way);
    printf("B%lld H%lld T%-4lld D%lld  %-6s  %-16s %8.2f / %7.2f", (long long)s->batch, (long long)s->heads,
           (long long)s->length, (long long)s->dim, causal ? "causal" : "full", way == FORWARD ? "forward" : "forward+backward",
           best * 1e3, median * 1e3);
    printf("   %5.2f / %5.2f", work / best / peak, work / median / peak);
    if (torch)
        printf("   %8.2f / %7.2f   %6.2f / %6.2f", torch->best, torch->median, torch->best / (best * 1e3),
               torch->median / (median * 1e3));
    putchar('\n');
    fflush(stdout);
}

void bench_attention(int threads, bool quick)
{
    torch_times torch[CASES] = { 0 };
    bool has_torch = ask_torch(threads, quick, torch);
    double peak = peak_flops(threads);
    printf("\nattention, %d thread%s: best / median; share of the peak of %.1f GFLOP/s (causal counts half, recomputed scores "
           "not)\n",
           threads, threads > 1 ? "s" : "", peak * 1e-9);
    printf("%-45s %13s   %16s   %16s   %s\n", "", "qkv ms", "share of peak",
           has_torch ? "PyTorch ms" : "PyTorch:", has_torch ? "times faster" : "not installed");
    for (int i = 0; i < CASES; i++) {
        const shape *s = &shapes[i / 4];
        bool causal = i / 2 % 2;
        samples taken = measure(s, causal, i % 2, quick);
        print_line(s, causal, i % 2, &taken, peak, has_torch ? &torch[i] : NULL);
    }
}

/* ---- memory ---- */

/* A line of /proc/self/status, such as VmHWM, in bytes. */
static int64_t status_bytes(const char *name)
{
    char line[256];
    long long kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name))) sscanf(line + strlen(name), ": %lld", &kilobytes);
    if (f) fclose(f);
    return kilobytes * 1024;
}

static void measure_memory(int threads)
{
    shape s = { 1, 8, 8192, 64 };
    qkv_set_threads(threads); /* threads do not survive the fork */
    int64_t before = status_bytes("VmRSS"), six = 6 * s.batch * s.heads * s.length * s.dim * (int64_t)sizeof(float);
    qkv_tape *t = qkv_tape_new(NULL);
    if (!t) exit(1);
    once(t, &s, false, BOTH_WAYS);
    int64_t held = (int64_t)qkv_tape_peak_bytes(t) - six, resident = status_bytes("VmHWM") - before - six;
    printf("\nmemory, %d thread%s: B1 H8 T8192 D64 forward+backward, beyond q, k, v and their gradients (%.0f MB):\n"
           "  reserved by the tape %.1f MB, resident %.1f MB; all weights at once would be %.0f MB\n",
           threads, threads > 1 ? "s" : "", (double)six * 1e-6, (double)held * 1e-6, (double)resident * 1e-6,
           8 * 8192.0 * 8192 * 4 * 1e-6);
    fflush(stdout);
    _exit(0);
}

/* In a child: the peak of this process is already that of the other parts. */
void bench_memory(int threads)
{
    fflush(stdout);
    qkv_threads_stop();
    pid_t child = fork();
    if (child == 0) measure_memory(threads);
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status) fprintf(stderr, "bench: the memory part failed\n");
}
