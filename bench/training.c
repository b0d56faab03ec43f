/* training.c: whole training steps of an encoder-decoder, against the machine's peak and PyTorch. */
#include "bench.h"

#include <qkv/qkv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pairs of `length` tokens on both sides. bench/torch_training.py has the same two. */
typedef struct setting {
    const char *preset;
    int64_t vocabulary, pairs, length;
} setting;
static const setting settings[] = { { "small", 8000, 64, 24 }, { "base", 32000, 32, 32 } };
enum { SETTINGS = 2 };

/* Multiply-adds of the products of one forward; backward has twice as many. Causal attention counts half. */
static double operations(const setting *s, const qkv_transformer_opts *o)
{
    double d = (double)o->dim, tokens = (double)(s->pairs * s->length), inner = 2 * d * (double)o->d_ff;
    double layers = (double)o->encoder_layers * (4 * d * d + inner) + (double)o->decoder_layers * (8 * d * d + inner);
    double scores = 2 * d * (double)s->length * ((double)o->encoder_layers + 1.5 * (double)o->decoder_layers);
    return 2 * 3 * tokens * (layers + scores + d * (double)s->vocabulary);
}

static void stop_on(qkv_status status)
{
    if (!status) return;
    fprintf(stderr, "bench: %s\n", qkv_error());
    exit(1);
}

static qkv_transformer_opts options_of(const setting *s)
{
    qkv_transformer_opts o = QKV_OPTS(qkv_transformer_opts);
    stop_on(qkv_transformer_preset(s->preset, s->vocabulary, &o));
    o.dropout = o.attention_dropout = o.ffn_dropout = 0.1f;
    return o;
}

/* Random pairs, all in one batch. */
static qkv_pairs *random_pairs(const setting *s)
{
    qkv_pairs *p = qkv_pairs_new();
    int32_t ids[64];
    uint32_t state = 1;
    for (int64_t i = 0; i < s->pairs; i++) {
        for (int64_t k = 0; k < s->length; k++) {
            state = state * 1664525u + 1013904223u;
            ids[k] = (int32_t)((state >> 8) % (uint32_t)s->vocabulary);
        }
        stop_on(qkv_pairs_add(p, ids, (size_t)s->length - 1, ids, (size_t)s->length - 1)); /* the end makes it whole */
    }
    return p;
}

static samples measure(const setting *s, const qkv_transformer_opts *o, bool quick)
{
    samples taken = { 0 };
    qkv_pairs *pairs = random_pairs(s);
    qkv_model *m = qkv_model_new(o, 1);
    const qkv_trainer_opts opts = { .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM },
                                    .batches = &(qkv_batch_opts){ .max_tokens = s->pairs * s->length, .end = 1 },
                                    .smoothing = 0.1f };
    qkv_trainer *t = qkv_trainer_new(m, pairs, &opts);
    stop_on(t ? QKV_OK : qkv_error_status());
    double end = 0;
    for (int i = 0; i < 2 || taken.n < 2 || seconds() < end; i++) {
        double begin = seconds();
        stop_on(qkv_trainer_step(t, NULL));
        if (i < 2) end = seconds() + (quick ? 1 : 15); /* the first two steps find their memory */
        else add_sample(&taken, seconds() - begin);
    }
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_pairs_free(pairs);
    return taken;
}

/* ---- PyTorch, as it is installed and at its best ---- */

typedef struct torch_times {
    double best, median, megabytes; /* seconds */
} torch_times;

/* glibc gives memory back to the system at every step unless told not to; OpenBLAS with OpenMP does not fight over cores. */
#define TUNED                                                                                          \
    "MALLOC_MMAP_THRESHOLD_=17179869184 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456 " \
    "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp "

static bool ask_torch(const char *environment, const setting *s, int threads, bool quick, torch_times *times)
{
    char command[1024];
    snprintf(command, sizeof command, "%s /usr/bin/python3 '%s/torch_training.py' %s %d %d 2>/dev/null", environment,
             BENCH_FOLDER, s->preset, threads, quick);
    fflush(stdout);
    FILE *f = popen(command, "r");
    int n = f ? fscanf(f, "%lf %lf %lf", &times->best, &times->median, &times->megabytes) : 0;
    if (f) pclose(f);
    return n == 3;
}

/* ---- telling ---- */

static double resident_megabytes(void)
{
    char line[256];
    double kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) sscanf(line, "VmHWM: %lf", &kilobytes);
    if (f) fclose(f);
    return kilobytes / 1000;
}

static void print_torch(const char *name, const torch_times *t, double best, double median, double megabytes)
{
    printf("       PyTorch %-8s %6.3f / %6.3f s, %5.0f MB: qkv is %.2f / %.2f times as fast in %.2f of the memory\n", name,
           t->best, t->median, t->megabytes, t->best / best, t->median / median, megabytes / t->megabytes);
}

/* In a child, so that the peak of its memory is that of this training alone. */
static void measure_setting(const setting *s, int threads, bool quick, double peak)
{
    qkv_set_threads(threads); /* threads do not survive the fork */
    const qkv_transformer_opts o = options_of(s);
    samples taken = measure(s, &o, quick);
    double best = best_of(&taken), median = median_of(&taken), work = operations(s, &o),
           tokens = (double)(s->pairs * s->length);
    double megabytes = resident_megabytes();
    printf("%-5s  %lld pairs x %lld tokens: %.3f / %.3f s a step, %.0f / %.0f tokens/s, %.2f / %.2f of the peak, %.0f MB\n",
           s->preset, (long long)s->pairs, (long long)s->length, best, median, tokens / best, tokens / median,
           work / best / peak, work / median / peak, megabytes);
    torch_times torch;
    if (ask_torch("", s, threads, quick, &torch)) print_torch("shipped", &torch, best, median, megabytes);
    else printf("       PyTorch is not installed\n");
    if (ask_torch(TUNED, s, threads, quick, &torch)) print_torch("tuned", &torch, best, median, megabytes);
    fflush(stdout);
    _exit(0);
}

void bench_training(int threads, bool quick)
{
    double peak = peak_flops(threads);
    printf("\ntraining, %d thread%s: one step of an encoder-decoder, Adam, smoothing 0.1, dropout 0.1; best / median; share of "
           "the peak of "
           "%.1f GFLOP/s\n",
           threads, threads > 1 ? "s" : "", peak * 1e-9);
    for (int i = 0; i < SETTINGS; i++) {
        fflush(stdout);
        qkv_threads_stop();
        pid_t child = fork();
        if (child == 0) measure_setting(&settings[i], threads, quick, peak);
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) < 0 || status) fprintf(stderr, "bench: the training part failed\n");
    }
}
