/* compare_models.c: how much another model of the same kind differs from one: what it costs to keep weights in fewer bits. */
#include <qkv/task.h>

#include "results.h"
#include "scores.h"
#include "strings.h"
#include "../../src/base/memory.h"
#include "out.h"
#include "../../src/task/texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 256 }; /* tokens that perplexity sees at once, as "qkv perplexity" has it */

typedef struct comparing {
    const qkv_model *model[2];
    const qkv_str *texts;
    const char *const *references;
    int64_t n;
} comparing;

static qkv_status compare_language(const comparing *c, qkv_model_comparison *out)
{
    for (int k = 0; k < 2; k++) {
        qkv_nll sum = { 0 };
        for (int64_t i = 0; i < c->n; i++) {
            qkv_status status = qkv_log_likelihood(c->model[k], (qkv_str){ c->texts[i].data, c->texts[i].length },
                                                   &(qkv_likelihood_opts){ .context = CONTEXT }, &sum);
            if (status) return status;
        }
        out->perplexity[k] = exp(sum.nats / (double)sum.tokens);
    }
    return QKV_OK;
}

/* ---- translations ---- */

static qkv_status bleu_of(const qkv_translations *t, const char *const *references, const char **lines, double *bleu)
{
    for (int64_t i = 0; i < t->n; i++) lines[i] = t->best[i].text.data;
    return qkv__bleu_of_lines(lines, references, t->n, QKV_SCORE_TOKENIZER_13A, bleu);
}

/* lines: room for 2 n. */
static qkv_status compare_translations(const comparing *c, qkv_translations *const found[2], const char **lines,
                                       qkv_model_comparison *out)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < c->n; i++) {
        lines[c->n + i] = found[0]->best[i].text.data;
        out->same += !strcmp(found[0]->best[i].text.data, found[1]->best[i].text.data);
    }
    out->same /= (double)c->n;
    status = bleu_of(found[1], lines + c->n, lines, &out->bleu_between);
    for (int k = 0; k < 2 && c->references && !status; k++) status = bleu_of(found[k], c->references, lines, &out->bleu[k]);
    return status;
}

static qkv_status compare_translators(const comparing *c, qkv_model_comparison *out)
{
    qkv_translations *found[2] = { 0 };
    size_t bytes = 2 * sizeof(char *) * (size_t)c->n;
    const char **lines = qkv__alloc(bytes);
    qkv_status status = lines ? QKV_OK : QKV_MEMORY;
    for (int k = 0; k < 2 && !status; k++) status = qkv_translate(c->model[k], c->texts, c->n, NULL, &found[k]);
    if (!status) status = compare_translations(c, found, lines, out);
    qkv_free(found[0]);
    qkv_free(found[1]);
    qkv__release(lines, bytes);
    return status;
}

/* ---- encoders ---- */

static double cosine(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : aa == bb;
}

static void compare_rows(qkv_matrix *const rows[2], bool classes, qkv_model_comparison *out)
{
    int64_t n = rows[0]->rows, width = rows[0]->width;
    for (int64_t i = 0; i < n; i++) {
        const float *a = rows[0]->data + i * width, *b = rows[1]->data + i * width;
        if (classes) out->same += qkv__likeliest_class(a, width) == qkv__likeliest_class(b, width);
        else {
            double similar = cosine(a, b, width);
            out->cosine += similar / (double)n;
            if (i == 0 || similar < out->smallest_cosine) out->smallest_cosine = similar;
        }
    }
    if (classes) out->same /= (double)n;
}

static qkv_status compare_encoders(const comparing *c, bool classes, qkv_model_comparison *out)
{
    qkv_matrix *rows[2] = { 0 };
    qkv_status status = QKV_OK;
    for (int k = 0; k < 2 && !status; k++)
        status = classes ? qkv_classify(c->model[k], c->texts, c->n, NULL, &rows[k])
                         : qkv_embed(c->model[k], c->texts, c->n, NULL, &rows[k]);
    if (!status) compare_rows(rows, classes, out);
    qkv_free(rows[0]);
    qkv_free(rows[1]);
    return status;
}

/* ---- any of them ---- */

static qkv_status check_texts(const comparing *c)
{
    for (int64_t i = 0; i < c->n; i++)
        if (!c->texts[i].data || (c->references && !c->references[i]))
            return qkv__fail(QKV_USAGE, "compare: text %lld is missing", (long long)i);
    return QKV_OK;
}

qkv_status qkv_compare_models(const qkv_model *a, const qkv_model *b, const char *const *texts, const char *const *references,
                              int64_t n, qkv_model_comparison *out)
{
    if (!a || !b || !texts || n < 1 || !out)
        return qkv__fail(QKV_USAGE, "compare: two models and at least one text are needed");
    int can = (int)qkv_model_get_info(a)->can;
    qkv_config o = { .size = sizeof o }, other = o;
    qkv_model_config(a, &o);
    qkv_model_config(b, &other);
    if (can != (int)qkv_model_get_info(b)->can || o.classes != other.classes)
        return qkv__fail(QKV_USAGE, "compare: the models are of two kinds");
    qkv_str *strings = qkv__strings_of(texts, NULL, n);
    if (!strings) return QKV_MEMORY;
    const comparing c = { { a, b }, strings, references, n };
    qkv_status status = check_texts(&c);
    qkv_model_comparison found = { .texts = n, .has_references = references && can & QKV_CAN_TRANSLATE };
    static const int kinds[] = { QKV_CAN_TRANSLATE, QKV_CAN_GENERATE, QKV_CAN_CLASSIFY, QKV_CAN_EMBED };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !found.by; i++) found.by = can & kinds[i];
    if (!status && found.by == QKV_CAN_TRANSLATE) status = compare_translators(&c, &found);
    else if (!status && found.by == QKV_CAN_GENERATE) status = compare_language(&c, &found);
    else if (!status) status = compare_encoders(&c, found.by == QKV_CAN_CLASSIFY, &found);
    if (!status) *out = found;
    free(strings);
    return status;
}

/* ---- as text ---- */

static void put_numbers(qkv__out *out, const char *name, int json, int n, const double *values)
{
    qkv__out_printf(out, json ? ", \"%s\": " : "%-17s", name);
    if (json && n > 1) qkv__out_printf(out, "[");
    for (int i = 0; i < n; i++) qkv__out_printf(out, json ? "%s%.17g" : "%s%.4f", !i ? "" : json ? ", " : " -> ", values[i]);
    qkv__out_printf(out, json ? n > 1 ? "]" : "" : "\n");
}

qkv_status qkv_model_comparison_text(const qkv_model_comparison *c, int json, qkv_buffer *out)
{
    if (!c || !out) return qkv__fail(QKV_USAGE, "compare: a comparison and a place for the text are needed");
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, json ? "{\"texts\": %lld" : "texts            %lld\n", (long long)c->texts);
    if (c->by == QKV_CAN_GENERATE) put_numbers(&text, "perplexity", json, 2, c->perplexity);
    if (c->by == QKV_CAN_TRANSLATE && c->has_references) put_numbers(&text, json ? "bleu" : "BLEU", json, 2, c->bleu);
    if (c->by == QKV_CAN_TRANSLATE) put_numbers(&text, json ? "bleu_between" : "BLEU between", json, 1, &c->bleu_between);
    if (c->by == QKV_CAN_TRANSLATE || c->by == QKV_CAN_CLASSIFY) put_numbers(&text, "same", json, 1, &c->same);
    if (c->by == QKV_CAN_EMBED) put_numbers(&text, "cosine", json, 1, &c->cosine);
    if (c->by == QKV_CAN_EMBED) put_numbers(&text, json ? "smallest_cosine" : "smallest cosine", json, 1, &c->smallest_cosine);
    if (json) qkv__out_printf(&text, "}\n");
    return qkv__out_end(&text);
}
