/* bench_generation.c: a decoder alone: prompts in one read, then token by token. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/memory.h"
#include "../../src/base/size.h"
#include "../../src/nn/layer.h"
#include "../../src/model/model.h"

#include <qkv/session.h>

#include <stdio.h>

enum { PROMPT = 512, NEW_TOKENS = 64 };

/* 134 million parameters; the shape of a small Llama. */
static const qkv_config llama = { .vocab_size = 32000,
                                  .decoder_layers = 12,
                                  .dim = 768,
                                  .heads = 12,
                                  .d_ff = 2048,
                                  .pre_norm = 1,
                                  .norm = QKV_NORM_RMS,
                                  .activation = QKV_ACTIVATION_SWIGLU,
                                  .positions = QKV_POSITION_ROPE,
                                  .no_bias = 1,
                                  .untied = 1 };

typedef struct generation {
    qkv_session *session;
    int64_t rows, prompt, new_tokens;
    int32_t *ids;    /* rows of prompt, and as many new tokens as there are rows */
    int64_t *counts; /* of the prompts */
    size_t ids_bytes, counts_bytes;
} generation;

static qkv_status read_prompts(void *work, double *aside)
{
    (void)aside;
    generation *g = work;
    qkv_status status = qkv_session_start(g->session, g->rows);
    return status ? status : qkv_session_read(g->session, g->ids, g->counts, QKV_LOGITS_LAST);
}

static qkv_status write_tokens(void *work, double *aside)
{
    (void)aside;
    generation *g = work;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < g->rows && !status; i++) status = qkv_session_rewind(g->session, i, g->prompt);
    for (int64_t i = 0; i < g->new_tokens && !status; i++)
        status = qkv_session_read(g->session, g->ids + i % g->prompt, NULL, QKV_LOGITS_LAST);
    return status;
}

/* Lengths that are not given fit the positions that there are. */
static void choose_lengths(const qkv__bench *b, const qkv_config *t, generation *g)
{
    int64_t most = t->positions == QKV_POSITION_LEARNED ? t->max_positions : 0;
    g->rows = b->o.batch ? b->o.batch : 1;
    g->prompt = b->o.length ? b->o.length : PROMPT;
    g->new_tokens = b->o.new_tokens ? b->o.new_tokens : NEW_TOKENS;
    if (most && !b->o.new_tokens) g->new_tokens = qkv__max(1, qkv__min(g->new_tokens, most / 4));
    if (most && !b->o.length) g->prompt = qkv__max(1, qkv__min(g->prompt, most - g->new_tokens));
}

static qkv_status make_prompts(generation *g, int64_t vocabulary)
{
    int64_t n = g->rows * (g->prompt + 1);
    g->ids_bytes = sizeof *g->ids * (size_t)n;
    g->counts_bytes = sizeof *g->counts * (size_t)g->rows;
    g->ids = qkv__alloc(g->ids_bytes);
    g->counts = qkv__alloc(g->counts_bytes);
    if (!g->ids || !g->counts) return QKV_MEMORY;
    qkv__some_ids(g->ids, n, vocabulary);
    for (int64_t i = 0; i < g->rows; i++) g->counts[i] = g->prompt;
    return QKV_OK;
}

/* Keys and values that a row's steps read, in bytes: step i those of the prompt and of i + 1 new tokens. */
static double cached_bytes(const qkv_model *m, const generation *g)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    double a_token = 0, steps = (double)g->new_tokens;
    for (int i = 0; i < x->stacks[QKV__DECODER].n; i++) {
        const qkv__layer *l = &x->stacks[QKV__DECODER].layers[i];
        a_token += sizeof(float) * (double)(l->self.k.weight->shape[0] + l->self.v.weight->shape[0]);
    }
    return a_token * (steps * (double)g->prompt + steps * (steps + 1) / 2);
}

static qkv_status measure_generation(const qkv__bench *b, const qkv_model *m, generation *g)
{
    const char *name = b->o.folder ? "model" : "Llama, 134M";
    qkv__weights layers = qkv__decoder_weights(m), output = qkv__output_weights(m);
    double rows = (double)g->rows, prompt = (double)g->prompt, steps = (double)g->new_tokens;
    qkv_bench_row reading = { .unit = "tokens", .amount = rows * prompt };
    reading.operations = 2 * rows * (prompt * layers.count + output.count);
    snprintf(reading.name, sizeof reading.name, "%s, %lld prompt%s of %lld", name, (long long)g->rows, g->rows > 1 ? "s" : "",
             (long long)g->prompt);
    qkv_bench_row writing = { .unit = "tokens", .amount = rows * steps, .block = layers.bytes + output.bytes };
    writing.operations = 2 * rows * steps * (layers.count + output.count);
    writing.bytes = steps * writing.block + rows * cached_bytes(m, g);
    snprintf(writing.name, sizeof writing.name, "%s, %lld text%s, %lld new tokens", name, (long long)g->rows,
             g->rows > 1 ? "s" : "", (long long)g->new_tokens);
    qkv_status status = qkv__bench_measure(b, reading, read_prompts, g);
    return status ? status : qkv__bench_measure(b, writing, write_tokens, g);
}

qkv_status qkv__bench_generation(const qkv__bench *b)
{
    generation g = { 0 };
    qkv_model *m = qkv__bench_model(b, &llama, NULL);
    qkv_config t = { .size = sizeof t };
    if (m) qkv_model_config(m, &t);
    qkv_status status = m ? QKV_OK : qkv_error_status();
    if (m && (t.encoder_layers || !t.decoder_layers))
        status = qkv__fail(QKV_USAGE, "bench: to generate, the model must be a decoder alone");
    if (!status && !(g.session = qkv_session_new(m, NULL))) status = qkv_error_status();
    if (!status) choose_lengths(b, &t, &g), status = make_prompts(&g, t.vocab_size);
    if (!status) status = measure_generation(b, m, &g);
    qkv_session_free(g.session);
    qkv__release(g.ids, g.ids_bytes);
    qkv__release(g.counts, g.counts_bytes);
    qkv_model_free(m);
    return status;
}
