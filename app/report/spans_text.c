/* spans_text.c: tags and answers as lines and as JSON. */
#include "results.h"
#include "out.h"

#include <string.h>

/* ---- tags ---- */

static void put_spans_json(qkv__out *out, const char *key, const qkv_tagged_text *t, const qkv_tagged_span *spans, int64_t n)
{
    qkv__out_printf(out, "\"%s\": [", key);
    for (int64_t i = 0; i < n; i++) {
        const qkv_tagged_span *s = &spans[i];
        qkv__out_printf(out, "%s{\"label\": ", i ? ", " : "");
        qkv__out_json(out, s->label.data, s->label.length);
        qkv__out_printf(out, ", \"score\": %.9g, \"text\": ", s->score);
        qkv__out_json(out, t->text.data + s->bytes.begin, s->bytes.end - s->bytes.begin);
        qkv__out_printf(out, ", \"span\": [%zu, %zu], \"characters\": [%zu, %zu]}", s->bytes.begin, s->bytes.end,
                        s->characters.begin, s->characters.end);
    }
    qkv__out_printf(out, "]");
}

static void put_span_lines(qkv__out *out, const qkv_tagged_text *t, const qkv_tagged_span *spans, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        qkv__out_printf(out, "%s\t%.4f\t", spans[i].label.data, spans[i].score);
        qkv__out_bytes(out, t->text.data + spans[i].bytes.begin, spans[i].bytes.end - spans[i].bytes.begin);
        qkv__out_printf(out, "\n");
    }
}

qkv_status qkv_tagged_lines(const qkv_tagged *t, int64_t i, int words, int json, qkv_buffer *out)
{
    if (!t || !out || i < 0 || i >= t->n)
        return qkv__fail(QKV_USAGE, "tagged: one of the texts and a place for its tags are needed");
    const qkv_tagged_text *x = &t->texts[i];
    qkv__out text = qkv__out_begin(out);
    if (json) {
        qkv__out_printf(&text, "{");
        put_spans_json(&text, "entities", x, x->entities, x->n_entities);
        if (words) qkv__out_printf(&text, ", ");
        if (words) put_spans_json(&text, "words", x, x->words, x->n_words);
        qkv__out_printf(&text, "}");
    } else put_span_lines(&text, x, words ? x->words : x->entities, words ? x->n_words : x->n_entities);
    return qkv__out_end(&text);
}

/* ---- answers ---- */

static void put_answer_json(qkv__out *out, const qkv_answers *a, const qkv_answer_span *x)
{
    qkv__out_printf(out, "{\"text\": ");
    if (x->is_none) qkv__out_printf(out, "null, \"score\": %.9g, \"span\": null, \"characters\": null}", x->score);
    if (x->is_none) return;
    qkv__out_json(out, a->context.data + x->bytes.begin, x->bytes.end - x->bytes.begin);
    qkv__out_printf(out, ", \"score\": %.9g, \"span\": [%zu, %zu], \"characters\": [%zu, %zu]}", x->score, x->bytes.begin,
                    x->bytes.end, x->characters.begin, x->characters.end);
}

static void put_answer_line(qkv__out *out, const qkv_answers *a, const qkv_answer_span *x)
{
    qkv__out_printf(out, "%.4f\t", x->score);
    for (size_t i = x->bytes.begin; i < x->bytes.end; i++) {
        char c = a->context.data[i];
        qkv__out_bytes(out, strchr("\t\n\r", c) ? " " : &c, 1);
    }
    qkv__out_printf(out, "\n");
}

qkv_status qkv_answers_lines(const qkv_answers *a, int json, qkv_buffer *out)
{
    if (!a || !out) return qkv__fail(QKV_USAGE, "answers: what was found and a place for it are needed");
    qkv__out text = qkv__out_begin(out);
    if (json) qkv__out_printf(&text, "{\"answers\": [");
    for (int i = 0; i < a->n; i++) {
        if (json && i) qkv__out_printf(&text, ", ");
        (json ? put_answer_json : put_answer_line)(&text, a, &a->best[i]);
    }
    if (json) qkv__out_printf(&text, "], \"none\": %.9g, \"windows\": %lld}", a->none_score, (long long)a->windows);
    return qkv__out_end(&text);
}
