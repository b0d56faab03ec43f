/* cmd_bench.c: qkv bench: how fast this machine is, and how much of what it can do that is. */
#include "../bench/bench.h"
#include "model.h"

#include <stdio.h>

static struct {
    const char *model;
    int kind, repeat, batch, beam, length, new_tokens;
    bool quick, json;
} given;

#define BENCH_NAME(constant, name) name,
static const char *const kinds[] = { "all", QKV_BENCH_LIST(BENCH_NAME) NULL };
#undef BENCH_NAME

static const option options[] = {
    { "what", .plain = true, .value = "WHAT", .help = " (default: all, or the abilities of -m)", .choice = &given.kind,
      .names = kinds },
    { "model", 'm', .value = "DIR", .help = "measure this model (default: models with random weights)", .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "batch", .is_rare = true, .value = "N", .help = "rows, pairs, sentences or texts per batch", .count = &given.batch },
    { "beam", 'b', .value = "N", .help = "beam size of translate (default: 1 and 4)", .count = &given.beam },
    { "length", .is_rare = true, .value = "N", .help = "tokens per source, prompt, sentence or sequence",
      .count = &given.length },
    { "new", .is_rare = true, .value = "N", .help = "tokens to write (default: 32 of a translation, 64 of a generation)",
      .count = &given.new_tokens },
    { "repeat", .is_rare = true, .value = "N", .help = "samples of each (default: at least 5, for one second)",
      .count = &given.repeat },
    { "quick", .help = "fewer samples, and only small sizes of matmul and train", .flag = &given.quick },
    { "json", .help = "print one JSON object per line", .flag = &given.json },
    { 0 },
};

/* What is said once, above the rows, and above those of a kind; when there is one, so that an error stands alone. */
static void print_heading(const qkv_bench_row *row)
{
    static int last = -1;
    if (last < 0)
        printf("qkv %s, %s, %d thread%s: %.1f Gop/s in multiply-adds, %.1f GB/s from memory\n", qkv_version(), qkv_isa(),
               row->threads, row->threads > 1 ? "s" : "", qkv_bench_peak() * 1e-9,
               qkv_bench_bandwidth((size_t)256 << 20) * 1e-9);
    if (last != (int)row->kind) printf("\n%s\n%s\n", qkv_bench_name(row->kind), qkv_bench_heading());
    last = (int)row->kind;
}

static qkv_status print_row(void *data, const qkv_bench_row *row)
{
    (void)data;
    qkv_buffer text = { 0 };
    qkv_status status = qkv_bench_text(row, given.json, &text);
    if (!status && !given.json) print_heading(row);
    if (!status) puts(text.data), fflush(stdout);
    qkv_buffer_free(&text);
    return status;
}

static qkv_status bench_one(qkv_bench_kind kind)
{
    qkv_bench_opts o = QKV_OPTS(qkv_bench_opts);
    o.folder = given.model;
    qkv_status status = chosen_weights(&o.weights);
    if (status) return status;
    o.repeat = given.repeat, o.quick = given.quick;
    o.batch = given.batch, o.length = given.length;
    bool is_asked = given.kind != 0; /* of all kinds, those that have a beam take it */
    if (is_asked || kind == QKV_BENCH_TRANSLATE) o.beam = given.beam;
    if (is_asked || kind == QKV_BENCH_TRANSLATE || kind == QKV_BENCH_GENERATE) o.new_tokens = given.new_tokens;
    return qkv_bench(kind, &o, print_row, NULL) ? library_failed() : QKV_OK;
}

/* The kinds, a bit each, that a model can be measured at. */
static qkv_status find_kinds(unsigned *wanted)
{
    *wanted = given.kind ? 1u << (given.kind - 1) : (1u << QKV_BENCH_KINDS) - 1;
    if (!given.model || given.kind) return QKV_OK;
    qkv_model *m;
    qkv_status status = load_model(given.model, &m);
    if (status) return status;
    int can = (int)qkv_model_get_info(m)->can;
    *wanted = (can & QKV_CAN_TRANSLATE ? 1u << QKV_BENCH_TRANSLATE : 0) |
              (can & QKV_CAN_GENERATE ? 1u << QKV_BENCH_GENERATE : 0) | (can & QKV_CAN_EMBED ? 1u << QKV_BENCH_EMBED : 0);
    qkv_model_free(m);
    return QKV_OK;
}

static qkv_status run_bench(void)
{
    unsigned wanted;
    qkv_status status = find_kinds(&wanted);
    for (int i = 0; i < QKV_BENCH_KINDS && !status; i++)
        if (wanted & 1u << i) status = bench_one((qkv_bench_kind)i);
    return status;
}

const command bench_command = {
    .name = "bench",
    .summary = "measure the speed of this machine",
    .about = "Measures products of matrices, attention, steps of training, translation,\n"
             "generation and embedding, after warming up, and prints for each the best and the\n"
             "median of several samples: what it does a second, operations a second, the share\n"
             "of the fused multiply-adds that all threads can do, the share of the speed at\n"
             "which they can read a block as large as the weights, both measured in the same\n"
             "run, and the memory that the process holds.\n"
             "\n"
             "With -m it is that model that translates, generates or embeds; else models with\n"
             "random weights: the paper's base model with 32,000 tokens, a Llama of 134 million\n"
             "parameters, an encoder of the shape of MiniLM. Sources and prompts are made up,\n"
             "and a translation is as long as --new says: it is time that is measured.\n"
             "\n"
             "A line that ends with \"busy\" says little: other processes or virtual machines\n"
             "used the cores, or the samples lie far apart.",
    .example = "  qkv bench matmul --quick\n"
               "  qkv bench translate --batch 32 --beam 4\n"
               "  qkv bench generate -m models/stories --length 128 --json",
    .options = options,
    .run = run_bench,
};
