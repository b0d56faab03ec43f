/* results_json.c: translations, what was generated and what was filled in, as JSON. */
#include "results.h"
#include "out.h"

#include <qkv/task.h>

#include <string.h>

static void put_tokens(qkv__out *out, const char *key, const qkv_tokenizer *t, const int32_t *ids, int64_t n)
{
    qkv__out_printf(out, "\"%s\": [", key);
    for (int64_t i = 0; i < n; i++) {
        const char *token = qkv_tokenizer_token(t, ids[i]);
        if (i) qkv__out_printf(out, ", ");
        qkv__out_json(out, token ? token : "", token ? strlen(token) : 0);
    }
    qkv__out_printf(out, "]");
}

/* ---- translations ---- */

static void put_alignment(qkv__out *out, const int64_t *aligned, int64_t n)
{
    qkv__out_printf(out, ", \"alignment\": [");
    for (int64_t row = 0; row < n; row++)
        qkv__out_printf(out, "%s[%lld, %lld]", row ? ", " : "", (long long)aligned[row], (long long)row);
    qkv__out_printf(out, "]");
}

static void put_mean(qkv__out *out, const float *mean, int64_t rows, int64_t columns)
{
    qkv__out_printf(out, ", \"attention\": [");
    for (int64_t row = 0; row < rows; row++) {
        qkv__out_printf(out, row ? ", [" : "[");
        for (int64_t j = 0; j < columns; j++) qkv__out_printf(out, "%s%.9g", j ? ", " : "", (double)mean[row * columns + j]);
        qkv__out_printf(out, "]");
    }
    qkv__out_printf(out, "]");
}

static void put_translation(qkv__out *out, const qkv_model *m, const qkv_translations *t, int64_t i, int k, int with_attention)
{
    const qkv_translation *x = &t->best[i * t->n_best + k];
    qkv__out_printf(out, "%s{\"text\": ", k ? ", " : "");
    qkv__out_json(out, x->text.data, x->text.length);
    qkv__out_printf(out, ", \"score\": %.17g, \"log_p\": %.17g, \"cut\": %s, ", x->score, x->log_p,
                    x->truncated ? "true" : "false");
    put_tokens(out, "tokens", qkv_model_tokenizer(m, QKV_SIDE_TARGET), x->ids, x->n_ids);
    if (with_attention) { /* nothing in the arrays where none was kept */
        const int64_t columns = x->attention ? t->n_source[i] : 0;
        put_alignment(out, x->alignment, columns > t->source_around ? x->n_ids : 0);
        put_mean(out, x->mean_attention, columns ? x->n_ids + 1 : 0, columns);
    }
    qkv__out_printf(out, "}");
}

qkv_status qkv_translations_json(const qkv_model *m, const qkv_translations *t, int64_t i, int with_attention, qkv_buffer *out)
{
    if (!m || !t || !out || i < 0 || i >= t->n)
        return qkv__fail(QKV_USAGE, "translations: a model, one of its texts and a place for the JSON are needed");
    qkv__out text = qkv__out_begin(out);
    int64_t own = t->n_source[i] - t->source_around;
    qkv__out_printf(&text, "{");
    put_tokens(&text, "source_tokens", qkv_model_tokenizer(m, QKV_SIDE_SOURCE), t->source_ids[i], own > 0 ? own : 0);
    qkv__out_printf(&text, ", \"translations\": [");
    for (int k = 0; k < t->n_best; k++)
        if (t->best[i * t->n_best + k].n_ids >= 0) put_translation(&text, m, t, i, k, with_attention);
    qkv__out_printf(&text, "]}");
    return qkv__out_end(&text);
}

/* ---- what was generated ---- */

qkv_status qkv_generated_json(const qkv_model *m, const qkv_generated *g, qkv_buffer *out)
{
    static const char *const finishes[] = { "end", "stop", "length", "cancelled" };
    if (!m || !g || !out || (unsigned)g->finish >= sizeof finishes / sizeof *finishes)
        return qkv__fail(QKV_USAGE, "generated: a model, what it made and a place for the JSON are needed");
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "{\"text\": ");
    qkv__out_json(&text, g->text.data, g->text.length);
    qkv__out_printf(&text, ", ");
    put_tokens(&text, "tokens", qkv_model_tokenizer(m, QKV_SIDE_TARGET), g->ids, g->n);
    qkv__out_printf(&text, ", \"ids\": [");
    for (int64_t i = 0; i < g->n; i++) qkv__out_printf(&text, "%s%d", i ? ", " : "", g->ids[i]);
    qkv__out_printf(&text, "], \"log_p\": [");
    for (int64_t i = 0; i < g->n; i++) qkv__out_printf(&text, "%s%.17g", i ? ", " : "", g->log_p[i]);
    qkv__out_printf(&text, "], \"finish\": \"%s\"}", finishes[g->finish]);
    return qkv__out_end(&text);
}

/* ---- what was filled in ---- */

static void put_filling(qkv__out *out, const qkv_filling *x)
{
    qkv__out_printf(out, "{\"id\": %d, \"p\": %.17g, \"token\": ", x->id, x->p);
    qkv__out_json(out, x->token.data, x->token.length);
    qkv__out_printf(out, ", \"text\": ");
    qkv__out_json(out, x->text.data, x->text.length);
    qkv__out_printf(out, "}");
}

qkv_status qkv_filled_json(const qkv_filled *f, qkv_buffer *out)
{
    if (!f || !out) return qkv__fail(QKV_USAGE, "filled: what was filled in and a place for the JSON are needed");
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "{\"masks\": [");
    for (int64_t i = 0; i < f->masks; i++) {
        qkv__out_printf(&text, "%s{\"span\": [%zu, %zu], \"best\": [", i ? ", " : "", f->places[i].begin, f->places[i].end);
        for (int k = 0; k < f->n_best; k++) {
            if (k) qkv__out_printf(&text, ", ");
            put_filling(&text, &f->best[i * f->n_best + k]);
        }
        qkv__out_printf(&text, "]}");
    }
    qkv__out_printf(&text, "]}");
    return qkv__out_end(&text);
}
