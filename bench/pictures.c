/* pictures.c: what a token costs against the length of a prompt, the sentences in a batch and the threads. The models are
 * small, so that it does not take long: what is shown is how cost grows. */
#include "bench/bench.h"
#include "draw/view.h"
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { POINTS = 8, THREADS = 2 };

typedef struct sweep {
    double x[THREADS][POINTS], y[THREADS][POINTS]; /* y: milliseconds a token */
    int n[THREADS];
} sweep;

static double last_cost;

static void keep_cost(void *data, const qkv_bench_row *row)
{
    if (!*(bool *)data) last_cost = row->median / row->amount * 1e3; /* the first row: of a generation, the prompt */
    *(bool *)data = true;
}

static double cost_of(qkv_bench_kind kind, const qkv_bench_opts *o)
{
    bool has_one = false;
    run_bench(kind, o, keep_cost, &has_one);
    return last_cost;
}

static void draw_sweep(const sweep *s, const char *name, const char *title, const char *x_axis)
{
    char path[512];
    static const char *const names[THREADS] = { "1 thread", "2 threads" };
    qkv_curve curves[THREADS];
    qkv_curve_opts o = QKV_OPTS(qkv_curve_opts);
    o.title = title, o.x_axis = x_axis, o.y_axis = "milliseconds a token", o.log_x = o.log_y = 1;
    for (int i = 0; i < THREADS; i++) curves[i] = (qkv_curve){ names[i], s->x[i], s->y[i], s->n[i] };
    snprintf(path, sizeof path, "%s/results/%s.svg", BENCH_FOLDER, name);
    stop_on(qkv_picture_curves(path, curves, THREADS, &o));
    printf("wrote %s\n", path);
}

/* One point for each power of 2 from `from` to `to`, which goes to *varied of o, on one thread and on two. */
static sweep measure_sweep(qkv_bench_kind kind, const qkv_bench_opts *o, int64_t *varied, int64_t from, int64_t to)
{
    sweep s = { 0 };
    for (int i = 0; i < THREADS; i++) {
        stop_on(qkv_set_num_threads(i + 1));
        for (*varied = from; *varied <= to && s.n[i] < POINTS; *varied *= 2) {
            s.x[i][s.n[i]] = (double)*varied;
            s.y[i][s.n[i]++] = cost_of(kind, o);
        }
    }
    return s;
}

/* A folder of its own for a model with random weights, and away with it. */
static void save_model(char *folder, const qkv_config *o)
{
    qkv_model *m = qkv_model_new(o, 1);
    stop_on(m && mkdtemp(folder) ? qkv_model_save(m, folder, NULL) : qkv_error_status());
    qkv_model_free(m);
}

static void remove_model(const char *folder)
{
    static const char *const files[] = { "config.json", "model.safetensors" };
    char path[64];
    for (int i = 0; i < 2; i++) snprintf(path, sizeof path, "%s/%s", folder, files[i]), unlink(path);
    rmdir(folder);
}

static void draw_lengths(qkv_bench_opts o)
{
    char folder[] = "/tmp/qkv-bench-XXXXXX";
    const qkv_config llama = { .vocab_size = 8000,
                               .decoder_layers = 6,
                               .dim = 384,
                               .heads = 6,
                               .d_ff = 1024,
                               .pre_norm = 1,
                               .norm = QKV_NORM_RMS,
                               .activation = QKV_ACTIVATION_SWIGLU,
                               .positions = QKV_POSITION_ROPE,
                               .no_bias = 1 };
    save_model(folder, &llama);
    o.folder = folder, o.new_tokens = 8;
    sweep s = measure_sweep(QKV_BENCH_GENERATE, &o, &o.length, 32, o.quick ? 256 : 4096);
    draw_sweep(&s, "length", "Reading a prompt: 6 layers, 384 wide", "tokens of the prompt");
    remove_model(folder);
}

static void draw_batches(qkv_bench_opts o)
{
    char folder[] = "/tmp/qkv-bench-XXXXXX";
    qkv_config small = QKV_OPTS(qkv_config);
    stop_on(qkv_config_preset("small", 8000, &small));
    save_model(folder, &small);
    o.folder = folder, o.beam = 1;
    sweep s = measure_sweep(QKV_BENCH_TRANSLATE, &o, &o.batch, 1, o.quick ? 8 : 128);
    draw_sweep(&s, "batch", "Greedy translation: 3 and 3 layers, 256 wide", "sentences at a time");
    remove_model(folder);
}

void bench_pictures(bool quick)
{
    qkv_bench_opts o = QKV_OPTS(qkv_bench_opts);
    o.quick = quick, o.repeat = quick ? 1 : 3;
    printf("\ncost against length, batch and threads\n%s\n", qkv_bench_heading());
    draw_lengths(o);
    draw_batches(o);
}
