/* training.c: whole training steps of an encoder-decoder, against the machine's peak and PyTorch. */
#include "bench/bench.h"
#include "bench.h"

#include <stdio.h>
#include <string.h>

/* ---- PyTorch, as it is installed and at its best ---- */

typedef struct torch_times {
    double best, median, megabytes; /* seconds */
} torch_times;

/* glibc gives memory back to the system at every step unless told not to; OpenBLAS with OpenMP does not fight over cores. */
#define TUNED                                                                                          \
    "MALLOC_MMAP_THRESHOLD_=17179869184 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456 " \
    "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp "

static bool ask_torch(const char *environment, const char *preset, int threads, bool quick, torch_times *times)
{
    char command[1024];
    snprintf(command, sizeof command, "%s /usr/bin/python3 '%s/torch_training.py' %s %d %d 2>/dev/null", environment,
             BENCH_FOLDER, preset, threads, quick);
    fflush(stdout);
    FILE *f = popen(command, "r");
    int n = f ? fscanf(f, "%lf %lf %lf", &times->best, &times->median, &times->megabytes) : 0;
    if (f) pclose(f);
    return n == 3;
}

static void tell_torch(void *data, const qkv_bench_row *row)
{
    static const char *const names[] = { "shipped", "tuned" }, *const environments[] = { "", TUNED };
    bool quick = *(bool *)data;
    char preset[16] = { 0 };
    memcpy(preset, row->name, strcspn(row->name, ","));
    double megabytes = row->resident_peak * 1e-6;
    for (int i = 0; i < 2; i++) {
        torch_times t;
        if (ask_torch(environments[i], preset, row->threads, quick, &t))
            printf("    PyTorch %-7s %.3f / %.3f s, %.0f MB: qkv is %.2f / %.2f times as fast in %.2f of the memory\n",
                   names[i], t.best, t.median, t.megabytes, t.best / row->best, t.median / row->median,
                   megabytes / t.megabytes);
    }
}

/* In a child of its own, and the smaller model first: the peak of the memory is then that of the row. */
void bench_training(int threads, bool quick)
{
    stop_on(qkv_set_num_threads(threads));
    printf("\ntraining: a step of an encoder-decoder, Adam, smoothing 0.1, dropout 0.1\n%s\n", qkv_bench_heading());
    run_bench(QKV_BENCH_TRAIN, &(qkv_bench_opts){ .quick = quick, .repeat = quick ? 2 : 12 }, tell_torch, &quick);
}
