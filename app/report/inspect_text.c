/* inspect_text.c: the logit lens, attributions and traces as text and JSON. */
#include "attention.h"

#include <qkv/unstable/util.h>

#include "../../src/base/status.h"
#include "out.h"
#include "../term/translator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

const char *qkv_attention_kind_name(qkv_attention_kind kind)
{
#define NAME(constant, name) name,
    static const char *const names[] = { QKV_ATTENTION_LIST(NAME) };
#undef NAME
    return (unsigned)kind < QKV_ATTENTION_KINDS ? names[kind] : NULL;
}

const char *qkv_attribute_method_name(qkv_attribute_method method)
{
#define NAME(constant, name) name,
    static const char *const names[] = { QKV_ATTRIBUTE_LIST(NAME) };
#undef NAME
    return (unsigned)method < QKV_ATTRIBUTE_METHODS ? names[method] : NULL;
}

/* A name, in `width` columns; with a width of 0 as a JSON string. */
static void put_name(qkv__out *out, const char *name, int width)
{
    if (width) qkv__out_name(out, name, width, false);
    else qkv__out_json(out, name, strlen(name));
}

/* The text of any id, a "?" for one that the tokenizer does not have. */
static qkv_status decode_id(const qkv_tokenizer *t, int32_t id, qkv_text **text)
{
    if (id >= qkv_tokenizer_vocab_size(t)) return qkv_utf8_repair(qkv_cstr("?"), text);
    qkv_text *bytes = NULL;
    qkv_status status = qkv_tokenizer_decode(t, &id, 1, 0, &bytes);
    if (!status) status = qkv_utf8_repair((qkv_str){ bytes->data, bytes->length }, text);
    qkv_free(bytes);
    return status;
}

/* An id of -1 has no text. */
static void put_id(qkv__out *out, const qkv_tokenizer *t, int32_t id, int width)
{
    qkv_text *text = NULL;
    const qkv_status status = id < 0 ? QKV_OK : decode_id(t, id, &text);
    if (!status) put_name(out, text ? text->data : "", width);
    else if (!out->status) out->status = status;
    qkv_free(text);
}

/* Token i of an axis; of units of several tokens each is named by its id. */
static void put_token(qkv__out *out, const qkv_axis *x, const qkv_tokenizer *t, int64_t i, int width)
{
    if (x->n == x->n_tokens) put_name(out, x->names[i], width);
    else put_id(out, t, x->ids[i], width);
}

/* Whether all n tokens of the axis can be named: none was left out. */
static bool has_tokens(const qkv_axis *x, int64_t n) { return x->n_tokens >= n && (!n || x->first[x->n] == x->n_tokens); }

/* ---- the logit lens ---- */

typedef struct lens_table {
    const qkv_logit_lens_result *lens;
    const qkv_axis *axis;
    const qkv_tokenizer *tokenizer;
} lens_table;

static void put_lens_row(qkv__out *out, const lens_table *w, int64_t i)
{
    const qkv_logit_lens_result *x = w->lens;
    put_token(out, w->axis, w->tokenizer, i, 12);
    for (int l = 0; l <= x->layers; l++) {
        int64_t cell = l * x->places + i;
        qkv__out_printf(out, "  %4.2f ", x->p[cell * x->k]);
        put_id(out, w->tokenizer, x->ids[cell * x->k], 10);
    }
    qkv__out_printf(out, "  ");
    put_id(out, w->tokenizer, x->next[i], 10);
    if (x->next[i] >= 0) qkv__out_printf(out, "  %8.3f", x->surprise[i]);
    qkv__out_printf(out, "\n");
}

static void put_lens_table(qkv__out *out, const lens_table *w)
{
    char title[48];
    qkv__out_name(out, qkv__translated("token"), 12, false);
    for (int l = 0; l <= w->lens->layers; l++) {
        if (l) snprintf(title, sizeof title, qkv__translated("layer %d"), l - 1);
        qkv__out_printf(out, "  ");
        qkv__out_name(out, l ? title : qkv__translated("embedding"), 15, false);
    }
    qkv__out_printf(out, "  ");
    qkv__out_name(out, qkv__translated("next"), 10, false);
    qkv__out_printf(out, "  %8s\n", qkv__translated("bits"));
    for (int64_t i = 0; i < w->lens->places; i++) put_lens_row(out, w, i);
}

/* Where nothing comes next there is no number. */
static void put_number_of_next(qkv__out *out, const qkv_logit_lens_result *x, int64_t place, double number)
{
    if (x->next[place] < 0) qkv__out_printf(out, "null");
    else qkv__out_printf(out, "%.9g", number);
}

static void put_lens_cell(qkv__out *out, const lens_table *w, int64_t cell)
{
    const qkv_logit_lens_result *x = w->lens;
    qkv__out_printf(out, "{\"next_p\": ");
    put_number_of_next(out, x, cell % x->places, x->next_p[cell]);
    qkv__out_printf(out, ", \"best\": [");
    for (int i = 0; i < x->k; i++) {
        qkv__out_printf(out, "%s{\"id\": %d, \"token\": ", i ? ", " : "", x->ids[cell * x->k + i]);
        put_id(out, w->tokenizer, x->ids[cell * x->k + i], 0);
        qkv__out_printf(out, ", \"p\": %.9g}", x->p[cell * x->k + i]);
    }
    qkv__out_printf(out, "]}");
}

static void put_lens_json(qkv__out *out, const lens_table *w)
{
    const qkv_logit_lens_result *x = w->lens;
    qkv__out_printf(out, "{\"tokens\": [");
    for (int64_t i = 0; i < x->places; i++) qkv__out_printf(out, i ? ", " : ""), put_token(out, w->axis, w->tokenizer, i, 0);
    qkv__out_printf(out, "],\n \"next\": [");
    for (int64_t i = 0; i < x->places; i++) {
        qkv__out_printf(out, i ? ", " : "");
        if (x->next[i] < 0) qkv__out_printf(out, "null");
        else put_id(out, w->tokenizer, x->next[i], 0);
    }
    qkv__out_printf(out, "],\n \"surprise\": [");
    for (int64_t i = 0; i < x->places; i++) {
        qkv__out_printf(out, i ? ", " : "");
        put_number_of_next(out, x, i, x->surprise[i]);
    }
    qkv__out_printf(out, "],\n \"layers\": [");
    for (int l = 0; l <= x->layers; l++) {
        qkv__out_printf(out, l ? ",\n  [" : "\n  [");
        for (int64_t i = 0; i < x->places; i++) {
            if (i) qkv__out_printf(out, ",\n   ");
            put_lens_cell(out, w, l * x->places + i);
        }
        qkv__out_printf(out, "]");
    }
    qkv__out_printf(out, "]}\n");
}

qkv_status qkv_logit_lens_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_result *lens, int json,
                               qkv_buffer *out)
{
    if (!m || !a || !lens || !out || !lens->ids)
        return qkv__fail(QKV_USAGE, "lens: a model, a capture, a result and a place for the text are needed");
    const bool is_decoder = a->layers[QKV_ATTENTION_DECODER] > 0;
    const lens_table w = { .lens = lens,
                           .axis = is_decoder ? &a->target : &a->source,
                           .tokenizer = qkv_model_tokenizer(m, is_decoder ? QKV_SIDE_TARGET : QKV_SIDE_SOURCE) };
    if (w.axis->n_tokens != lens->places || !has_tokens(w.axis, lens->places))
        return qkv__fail(QKV_USAGE, "lens: the capture has other tokens");
    qkv__out text = qkv__out_begin(out);
    if (json) put_lens_json(&text, &w);
    else put_lens_table(&text, &w);
    return qkv__out_end(&text);
}

/* ---- attributions ---- */

typedef struct attribution_table {
    const qkv_attribution *why;
    const qkv_model *m;
    const qkv_attention_capture *a;
    const char *output; /* a label, or the text of a token */
} attribution_table;

static void put_attributed_token(qkv__out *out, const attribution_table *w, bool is_target, int64_t i, int width)
{
    put_token(out, is_target ? &w->a->target : &w->a->source,
              qkv_model_tokenizer(w->m, is_target ? QKV_SIDE_TARGET : QKV_SIDE_SOURCE), i, width);
}

static const double *numbers_of(const qkv_attribution *why, bool is_target, int method)
{
    return is_target ? why->of_target[method] : why->of_source[method];
}

/* Those that say which methods there are. */
static const double *numbers_of_method(const qkv_attribution *why, int method)
{
    return numbers_of(why, !why->n_source, method);
}

static void put_attribution_table(qkv__out *out, const attribution_table *w)
{
    static const char *const heads[QKV_ATTRIBUTE_METHODS] = { [QKV_ATTRIBUTE_GRADIENT] = QKV__N("gradient"),
                                                              [QKV_ATTRIBUTE_INTEGRATED] = QKV__N("integrated"),
                                                              [QKV_ATTRIBUTE_VALUE_ZEROING] = QKV__N("value-zeroing"),
                                                              [QKV_ATTRIBUTE_ROLLOUT] = QKV__N("rollout") };
    const qkv_attribution *x = w->why;
    qkv__out_printf(out, qkv__translated("output \"%s\" (number %lld), logit %.6f"), w->output, (long long)x->output, x->logit);
    if (numbers_of_method(x, QKV_ATTRIBUTE_INTEGRATED))
        qkv__out_printf(out, qkv__translated(", of the baseline %.6f"), x->baseline_logit);
    qkv__out_printf(out, "\n");
    qkv__out_name(out, qkv__translated("token"), 16, false);
    for (int k = 0; k < QKV_ATTRIBUTE_METHODS; k++) {
        if (!numbers_of_method(x, k)) continue;
        qkv__out_printf(out, "  ");
        qkv__out_name(out, qkv__translated(heads[k]), 13, true);
    }
    qkv__out_printf(out, "\n");
    for (int s = 0; s < 2; s++)
        for (int64_t i = 0; i < (s ? x->n_target : x->n_source); i++) {
            put_attributed_token(out, w, s, i, 16);
            for (int k = 0; k < QKV_ATTRIBUTE_METHODS; k++)
                if (numbers_of(x, s, k)) qkv__out_printf(out, "  %13.6f", numbers_of(x, s, k)[i]);
            qkv__out_printf(out, "\n");
        }
}

static void put_attribution_side(qkv__out *out, const attribution_table *w, bool is_target)
{
    const qkv_attribution *x = w->why;
    for (int64_t i = 0; i < (is_target ? x->n_target : x->n_source); i++) {
        qkv__out_printf(out, "%s\n  {\"token\": ", i ? "," : "");
        put_attributed_token(out, w, is_target, i, 0);
        for (int k = 0; k < QKV_ATTRIBUTE_METHODS; k++)
            if (numbers_of(x, is_target, k))
                qkv__out_printf(out, ", \"%s\": %.9g", qkv_attribute_method_name((qkv_attribute_method)k),
                                numbers_of(x, is_target, k)[i]);
        qkv__out_printf(out, "}");
    }
}

static void put_attribution_json(qkv__out *out, const attribution_table *w)
{
    qkv__out_printf(out, "{\"output\": %lld, \"name\": ", (long long)w->why->output);
    qkv__out_json(out, w->output, strlen(w->output));
    qkv__out_printf(out, ", \"logit\": %.9g", w->why->logit);
    if (numbers_of_method(w->why, QKV_ATTRIBUTE_INTEGRATED))
        qkv__out_printf(out, ", \"baseline_logit\": %.9g", w->why->baseline_logit);
    qkv__out_printf(out, ",\n \"source\": [");
    put_attribution_side(out, w, false);
    qkv__out_printf(out, "],\n \"read\": [");
    put_attribution_side(out, w, true);
    qkv__out_printf(out, "]}\n");
}

qkv_status qkv_attribution_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribution *why, int json,
                                qkv_buffer *out)
{
    if (!m || !a || !why || !out || !(why->n_source + why->n_target))
        return qkv__fail(QKV_USAGE, "why: a model, a capture, a result and a place for the text are needed");
    if (why->n_source != a->source.n_tokens || why->n_target > a->target.n_tokens || !has_tokens(&a->source, why->n_source) ||
        !has_tokens(&a->target, why->n_target))
        return qkv__fail(QKV_USAGE, "why: the capture has other tokens");
    const bool is_class = !a->layers[QKV_ATTENTION_DECODER];
    const char *label = is_class ? qkv_model_label(m, why->output) : NULL;
    qkv_text *name = NULL;
    qkv_status status = is_class ? QKV_OK : decode_id(qkv_model_tokenizer(m, QKV_SIDE_TARGET), (int32_t)why->output, &name);
    const attribution_table w = { why, m, a, label ? label : name ? name->data : "" };
    qkv__out text = qkv__out_begin(out);
    if (status) text.status = status;
    if (json) put_attribution_json(&text, &w);
    else put_attribution_table(&text, &w);
    qkv_free(name);
    return qkv__out_end(&text);
}

/* ---- traces ---- */

static void put_vector(qkv__out *out, const float *x, int64_t n)
{
    qkv__out_printf(out, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i) qkv__out_printf(out, ", ");
        if (isfinite(x[i])) qkv__out_printf(out, "%.9g", (double)x[i]);
        else qkv__out_printf(out, "null");
    }
    qkv__out_printf(out, "]");
}

static void put_matrix(qkv__out *out, const char *name, const float *x, int64_t rows, int64_t columns)
{
    qkv__out_printf(out, ",\n \"%s\": [", name);
    for (int64_t i = 0; i < rows; i++) {
        if (i) qkv__out_printf(out, ",\n  ");
        put_vector(out, x + i * columns, columns);
    }
    qkv__out_printf(out, "]");
}

static void put_head(qkv__out *out, const qkv_trace_result *w)
{
    put_matrix(out, "k", w->k, w->keys, w->d_k);
    put_matrix(out, "v", w->v, w->keys, w->d_v);
    qkv__out_printf(out, ",\n \"scale\": %.9g,\n \"masked\": [", (double)w->scale);
    for (int64_t i = 0; i < w->keys; i++) qkv__out_printf(out, "%s%d", i ? ", " : "", w->masked[i]);
    qkv__out_printf(out, "]");
}

static void put_best(qkv__out *out, const qkv_trace_result *w)
{
    qkv__out_printf(out, ",\n \"best\": [");
    for (int i = 0; i < w->n_best; i++)
        qkv__out_printf(out, "%s{\"id\": %lld, \"p\": %.9g, \"logit\": %.9g}", i ? ", " : "", (long long)w->best[i],
                        w->best_p[i], (double)w->best_logits[i]);
    qkv__out_printf(out, "]}\n");
}

qkv_status qkv_trace_json(const qkv_trace_result *w, qkv_buffer *out)
{
    if (!w || !out || !w->q) return qkv__fail(QKV_USAGE, "walk: a trace and a place for its text are needed");
    const struct {
        const char *name;
        const float *x;
        int64_t n;
    } vectors[] = {
        { "in", w->in, w->dim },
        { "x", w->x, w->dim },
        { "q", w->q, w->d_k },
        { "scores", w->scores, w->keys },
        { "scaled", w->scaled, w->keys },
        { "weights", w->weights, w->keys },
        { "head", w->head, w->d_v },
        { "concat", w->concat, w->heads * w->d_v },
        { "out", w->out, w->dim },
        { "sum", w->sum, w->dim },
        { "norm", w->norm, w->dim },
        { "ffn_in", w->ffn_in, w->dim },
        { "ffn_x", w->ffn_x, w->dim },
        { "ffn_hidden", w->ffn_hidden, w->d_ff },
        { "ffn_out", w->ffn_out, w->dim },
        { "ffn_sum", w->ffn_sum, w->dim },
        { "layer_out", w->layer_out, w->dim },
    };
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "{\"keys\": %lld, \"dim\": %lld, \"d_k\": %lld, \"d_v\": %lld, \"heads\": %lld, \"d_ff\": %lld",
                    (long long)w->keys, (long long)w->dim, (long long)w->d_k, (long long)w->d_v, (long long)w->heads,
                    (long long)w->d_ff);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        qkv__out_printf(&text, ",\n \"%s\": ", vectors[i].name);
        put_vector(&text, vectors[i].x, vectors[i].n);
    }
    put_head(&text, w);
    put_best(&text, w);
    return qkv__out_end(&text);
}

/* ---- joined tokens ---- */

/* Every unit has a token, and none is left out. */
static bool are_units(const int64_t *first, int64_t n)
{
    if (!first || n < 0 || first[0] != 0) return false;
    for (int64_t i = 0; i < n; i++)
        if (first[i + 1] <= first[i]) return false;
    return true;
}

qkv_status qkv_attention_join(const float *weights, const int64_t *row_first, int64_t rows, const int64_t *column_first,
                              int64_t columns, float *joined)
{
    if (!weights || !joined) return qkv__fail(QKV_USAGE, "attention: weights and a place for the result are needed");
    if (!are_units(row_first, rows) || !are_units(column_first, columns))
        return qkv__fail(QKV_USAGE, "attention: units must begin at token 0 and each have a token");
    const int64_t width = column_first[columns];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) {
            double sum = 0;
            for (int64_t r = row_first[i]; r < row_first[i + 1]; r++)
                for (int64_t c = column_first[k]; c < column_first[k + 1]; c++) sum += (double)weights[r * width + c];
            joined[i * columns + k] = (float)(sum / (double)(row_first[i + 1] - row_first[i]));
        }
    return QKV_OK;
}
