/* attention.c: attention forward and backward, against the machine's peak and PyTorch; and its memory. */
#include "bench/bench.h"

#include <qkv/unstable/util.h>
#include "bench.h"

#include <stdio.h>

/* Milliseconds as bench/torch_attention.py prints them, in the order of the rows. */
typedef struct torch_times {
    double best, median;
} torch_times;
enum { CASES = 8 };

typedef struct contest {
    torch_times torch[CASES];
    bool has_torch;
    int row;
} contest;

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

static void tell_torch(void *data, const qkv_bench_row *row)
{
    contest *c = data;
    const torch_times *t = &c->torch[c->row++];
    if (c->has_torch)
        printf("    PyTorch %.2f / %.2f ms: qkv is %.2f / %.2f times as fast\n", t->best, t->median,
               t->best / (row->best * 1e3), t->median / (row->median * 1e3));
}

void bench_attention(int threads, bool quick)
{
    contest c = { 0 };
    c.has_torch = ask_torch(threads, quick, c.torch);
    printf("\nattention%s; causal counts half, recomputed scores not\n%s\n", c.has_torch ? "" : " (PyTorch: not installed)",
           qkv_bench_heading());
    run_bench(QKV_BENCH_ATTENTION, &(qkv_bench_opts){ .quick = quick }, tell_torch, &c);
}

/* ---- memory ---- */

void bench_memory(int threads, bool quick)
{
    enum { LENGTH = 8192, HEADS = 8, DIM = 64 };
    (void)quick;
    stop_on(qkv_set_num_threads(threads));
    double before = qkv__resident(), six = 6.0 * HEADS * LENGTH * DIM * sizeof(float);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = qkv_variable(t, QKV_SHAPE(1, HEADS, LENGTH, DIM), NULL);
        stop_on(qkv_tape_status(t));
        for (int64_t k = 0; k < qkv_tensor_count(x[i]); k++)
            qkv_tensor_data_mut(x[i])[k] = (float)(k * 7919 % 2003) * 1e-3f - 1;
    }
    qkv_backward(qkv_sum(qkv_attention(x[0], x[1], x[2], &(qkv_mask){ 0 }, NULL), QKV_ALL_DIMS));
    stop_on(qkv_tape_status(t));
    printf("\nmemory: B1 H8 T8192 D64 forward and backward, beyond q, k, v and their gradients (%.0f MB):\n"
           "  reserved by the tape %.1f MB, resident %.1f MB; all weights at once would be %.0f MB\n",
           six * 1e-6, ((double)qkv_tape_peak_bytes(t) - six) * 1e-6, (qkv__resident_peak() - before - six) * 1e-6,
           HEADS * 8192.0 * LENGTH * 4 * 1e-6);
    qkv_tape_free(t);
}
