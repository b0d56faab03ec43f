/* bench_translation.c: beam search from sources of equal length to targets of equal length: what is measured is time, so no
 * target ends early. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/memory.h"
#include "../../src/base/size.h"
#include "../../src/model/model.h"

#include <qkv/session.h>

#include <stdio.h>

enum { SOURCE = 24, TARGET = 32, SENTENCES = 32, BEAM = 4 };

typedef struct translation {
    const qkv_model *m;
    int32_t *ids;
    int64_t sentences, length;
    qkv_search_opts o;
    qkv_search_result *found;
} translation;

static qkv_status search_once(void *work, double *aside)
{
    (void)aside;
    translation *t = work;
    return qkv_beam_search(t->m, &(qkv_tokens){ .ids = t->ids, .rows = t->sentences, .length = t->length }, &t->o, &t->found);
}

static qkv_status measure_search(const qkv__bench *b, translation *t)
{
    qkv__weights encoder = qkv__encoder_weights(t->m), decoder = qkv__decoder_weights(t->m), output = qkv__output_weights(t->m);
    double sentences = (double)t->sentences, steps = (double)t->o.max_length, step = decoder.count + output.count;
    qkv_bench_row row = { .unit = "tokens", .amount = sentences * steps };
    row.operations = 2 * sentences * ((double)t->length * encoder.count + steps * t->o.beam_size * step);
    row.block = decoder.bytes + output.bytes;
    row.bytes = encoder.bytes + steps * row.block;
    snprintf(row.name, sizeof row.name, "%s, %lld sentence%s, beam %d, %lld to %lld", b->o.folder ? "model" : "base",
             (long long)t->sentences, t->sentences > 1 ? "s" : "", t->o.beam_size, (long long)t->length,
             (long long)t->o.max_length);
    qkv_status status = qkv__bench_measure(b, row, search_once, t);
    qkv_free(t->found);
    t->found = NULL;
    return status;
}

/* One sentence and many, greedy and with a beam, unless the options say which. */
static qkv_status measure_searches(const qkv__bench *b, translation *t)
{
    const int64_t batches[] = { b->o.batch ? b->o.batch : 1, SENTENCES };
    const int beams[] = { b->o.beam ? b->o.beam : 1, BEAM };
    qkv_status status = QKV_OK;
    for (int i = 0; i < (b->o.batch ? 1 : 2); i++)
        for (int k = 0; k < (b->o.beam ? 1 : 2) && !status; k++) {
            t->sentences = batches[i];
            t->o.beam_size = beams[k];
            status = measure_search(b, t);
        }
    return status;
}

static qkv_status measure_translator(const qkv__bench *b, const qkv_model *m)
{
    qkv_config x = { .size = sizeof x };
    qkv_model_config(m, &x);
    if (!x.encoder_layers || !x.decoder_layers)
        return qkv__fail(QKV_USAGE, "bench: to translate, the model needs an encoder and a decoder");
    int64_t most = x.positions == QKV_POSITION_LEARNED ? x.max_positions : 0,
            target = b->o.new_tokens ? b->o.new_tokens : TARGET;
    translation t = { .m = m, .length = b->o.length ? b->o.length : SOURCE };
    if (most && !b->o.new_tokens) target = qkv__max(1, qkv__min(target, most - 1));
    if (most && !b->o.length) t.length = qkv__min(t.length, most);
    t.o = (qkv_search_opts){ .end = -1, .pad = -1, .max_length = target };
    int64_t n = qkv__max(b->o.batch, SENTENCES) * t.length;
    size_t bytes = sizeof *t.ids * (size_t)n;
    if (!(t.ids = qkv__alloc(bytes))) return QKV_MEMORY;
    qkv__some_ids(t.ids, n, x.vocab_size);
    qkv_status status = measure_searches(b, &t);
    qkv__release(t.ids, bytes);
    return status;
}

qkv_status qkv__bench_translation(const qkv__bench *b)
{
    qkv_config base = QKV_OPTS(qkv_config);
    qkv_status status = qkv_config_preset("base", 32000, &base);
    qkv_model *m = status ? NULL : qkv__bench_model(b, &base, NULL);
    if (!m) return status ? status : qkv_error_status();
    status = measure_translator(b, m);
    qkv_model_free(m);
    return status;
}
