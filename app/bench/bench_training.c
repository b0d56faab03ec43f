/* bench_training.c: whole steps of training an encoder-decoder, Adam, smoothing 0.1, dropout 0.1. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/memory.h"

#include <qkv/train.h>

#include <stdio.h>

/* Pairs of `length` tokens on both sides, all in one batch. */
typedef struct setting {
    const char *preset;
    int64_t vocabulary, pairs, length;
} setting;
static const setting settings[] = { { "small", 8000, 64, 24 }, { "base", 32000, 32, 32 } };

/* Multiply-adds of the products of one forward, twice; backward has twice as many. Causal attention counts half. */
static double step_operations(const setting *s, const qkv_config *o)
{
    double d = (double)o->dim, tokens = (double)(s->pairs * s->length), inner = 2 * d * (double)o->d_ff;
    double layers = (double)o->encoder_layers * (4 * d * d + inner) + (double)o->decoder_layers * (8 * d * d + inner);
    double scores = 2 * d * (double)s->length * ((double)o->encoder_layers + 1.5 * (double)o->decoder_layers);
    return 2 * 3 * tokens * (layers + scores + d * (double)s->vocabulary);
}

static qkv_status add_pairs(qkv_dataset *p, const setting *s)
{
    size_t n = (size_t)s->length, bytes = sizeof(int32_t) * n;
    int32_t *ids = qkv__alloc(bytes);
    qkv_status status = ids ? QKV_OK : QKV_MEMORY;
    for (int64_t i = 0; i < s->pairs && !status; i++) {
        qkv__some_ids(ids, s->length, s->vocabulary - i);        /* others for each */
        status = qkv_dataset_add_ids(p, ids, n - 1, ids, n - 1); /* the end makes it whole */
    }
    qkv__release(ids, bytes);
    return status;
}

static qkv_status step_once(void *work, double *aside)
{
    (void)aside;
    return qkv_trainer_step(work, NULL);
}

static qkv_status measure_steps(const qkv__bench *b, const setting *s, const qkv_config *o, const qkv_dataset *pairs)
{
    const qkv_trainer_opts opts = { .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM },
                                    .batches = &(qkv_batch_opts){ .max_tokens = s->pairs * s->length, .end = 1 },
                                    .label_smoothing = 0.1f };
    qkv_model *m = qkv_model_new(o, 1);
    qkv_trainer *t = m ? qkv_trainer_new(m, pairs, &opts) : NULL;
    qkv_bench_row row = { .unit = "tokens", .amount = (double)(s->pairs * s->length), .operations = step_operations(s, o) };
    snprintf(row.name, sizeof row.name, "%s, %lld pairs of %lld tokens", s->preset, (long long)s->pairs, (long long)s->length);
    qkv_status status = t ? qkv__bench_measure(b, row, step_once, t) : qkv_error_status();
    qkv_trainer_free(t);
    qkv_model_free(m);
    return status;
}

static qkv_status measure_setting(const qkv__bench *b, setting s)
{
    qkv_config o = QKV_OPTS(qkv_config);
    if (b->o.batch) s.pairs = b->o.batch;
    if (b->o.length) s.length = b->o.length;
    qkv_dataset *pairs = qkv_dataset_new();
    qkv_status status = pairs ? qkv_config_preset(s.preset, s.vocabulary, &o) : QKV_MEMORY;
    o.dropout = o.attention_dropout = o.ffn_dropout = 0.1f;
    if (!status) status = add_pairs(pairs, &s);
    if (!status) status = measure_steps(b, &s, &o, pairs);
    qkv_dataset_free(pairs);
    return status;
}

qkv_status qkv__bench_training(const qkv__bench *b)
{
    qkv_status status = measure_setting(b, settings[0]);
    return status || b->o.quick ? status : measure_setting(b, settings[1]);
}
