/* tag.c: a label for each word of a text, and the entities that words with such labels are. */
#include "pieces.h"

#include "../base/options.h"
#include "../base/size.h"
#include "../base/out.h"
#include "../model/model.h"

#include <string.h>

struct qkv_tagged_work {
    qkv__arena arena; /* all that results point to */
};

typedef struct tagging {
    qkv__reading r;
    int64_t overlap; /* ids that two windows of a text share */
    bool has_marks;  /* labels begin with B- or I-, and the like */
    qkv__pieces *pieces;
    qkv_tagged *out;
    qkv__arena *arena;
} tagging;

/* ---- the model ---- */

static qkv_tensor *label_scores(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x, const void *data)
{
    (void)x, (void)data;
    return qkv_softmax(qkv__transformer_tag(qkv__model_transformer(m), hidden));
}

/* Windows of a long text share some ids at their ends, of which each takes those that it sees more around of. */
static qkv_status add_tag_windows(tagging *t, int64_t i)
{
    const qkv__pieces *p = &t->pieces[i];
    int64_t step = t->r.room - t->overlap, at = 0;
    qkv_status status;
    do {
        qkv__window w = { .text = i, .begin = p->begin + at, .length = qkv__min(p->n - at, t->r.room), .second = t->r.all.n };
        status = qkv__reading_add(&t->r, w);
        t->out->texts[i].windows++;
    } while (!status && at + t->r.room < p->n && (at += step));
    return status;
}

/* ---- words ---- */

static void put_word(tagging *t, const qkv__pieces *p, int64_t k, const float *row, qkv_tagged_text *to)
{
    qkv_span span = p->spans[k];
    if (span.begin >= span.end) return;
    if (!p->starts[k]) {
        to->words[to->n_words - 1].span.end = span.end;
        return;
    }
    int64_t label = qkv__likeliest_class(row, t->r.width);
    to->words[to->n_words++] = (qkv_tagged_span){
        .span = span, .class_id = label, .label = qkv_model_label(t->r.m, label), .score = (double)row[label]
    };
}

/* The pieces of a window that are its own, in their order. */
static void put_window(tagging *t, const qkv__window *w)
{
    const qkv__pieces *p = &t->pieces[w->text];
    int64_t at = w->begin - p->begin, half = t->overlap / 2, width = t->r.width;
    int64_t from = at ? at + half : 0, to = at + w->length < p->n ? at + t->r.room - t->overlap + half : p->n;
    const float *rows = t->r.results + w->result + t->r.f.single.before.n * width;
    for (int64_t k = from; k < to; k++) put_word(t, p, k, rows + (k - at) * width, &t->out->texts[w->text]);
}

/* ---- entities ---- */

/* What stands before the name of an entity in a label, 'B' of "B-PER"; 0: nothing does. */
static char mark_of(const tagging *t, const char *label)
{
    return (char)(t->has_marks && *label && strchr("BIEMSLU", *label) && label[1] == '-' ? *label : 0);
}

static bool is_mark_of(char mark, const char *marks) { return mark && strchr(marks, mark); }

/* Whether a word goes on with the entity of the word before it: of the same name, not ended by that one, not begun by this. */
static bool goes_on(const tagging *t, const char *before, const char *label)
{
    char last = mark_of(t, before), mark = mark_of(t, label);
    if (is_mark_of(last, "ESLU") || is_mark_of(mark, "BSU")) return false;
    return !strcmp(before + (last ? 2 : 0), label + (mark ? 2 : 0));
}

/* The score of an entity is the mean of its words' scores. */
static void join_words(const tagging *t, qkv_tagged_text *to)
{
    for (int64_t i = 0, n = 0; i < to->n_words; i += n) {
        const qkv_tagged_span *words = to->words + i;
        double sum = words[0].score;
        for (n = 1; i + n < to->n_words && goes_on(t, words[n - 1].label, words[n].label); n++) sum += words[n].score;
        if (!strcmp(words[0].label, "O")) continue;
        qkv_tagged_span *entity = &to->entities[to->n_entities++];
        *entity = words[0];
        entity->label += mark_of(t, entity->label) ? 2 : 0;
        entity->span.end = words[n - 1].span.end;
        entity->score = sum / (double)n;
    }
}

/* Code points before each place; spans come in their order, and do not overlap. */
static void count_characters(const char *text, qkv_tagged_span *spans, int64_t n)
{
    size_t at = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        qkv_tagged_span *s = &spans[i];
        for (; at < s->span.begin; at++) count += ((unsigned char)text[at] & 0xC0) != 0x80;
        s->characters.begin = count;
        for (; at < s->span.end; at++) count += ((unsigned char)text[at] & 0xC0) != 0x80;
        s->characters.end = count;
    }
}

/* ---- the call ---- */

static qkv_status read_text_to_tag(tagging *t, const qkv_texts *x, int64_t i)
{
    qkv__pieces *p = &t->pieces[i];
    if (!x->texts[i]) return qkv__fail(QKV_USAGE, "text %lld is NULL", (long long)i);
    size_t length = x->lengths ? x->lengths[i] : strlen(x->texts[i]);
    qkv_status status = qkv__read_pieces(t->r.f.source, x->texts[i], length, t->arena, &t->r.all, p);
    if (status) return status;
    size_t bytes = sizeof(qkv_tagged_span) * (size_t)p->n;
    qkv_tagged_text *to = &t->out->texts[i];
    *to = (qkv_tagged_text){ .text = p->text, .length = p->length };
    to->words = qkv__arena_take(t->arena, bytes);
    to->entities = qkv__arena_take(t->arena, bytes);
    return to->words && to->entities ? add_tag_windows(t, i) : QKV_MEMORY;
}

static void finish_tagging(tagging *t)
{
    qkv__reading_sort(&t->r);
    for (int64_t i = 0; i < t->r.n_windows; i++) put_window(t, &t->r.all_windows[i]);
    for (int64_t i = 0; i < t->out->n; i++) {
        qkv_tagged_text *to = &t->out->texts[i];
        join_words(t, to);
        count_characters(to->text, to->words, to->n_words);
        count_characters(to->text, to->entities, to->n_entities);
    }
}

static qkv_status start_tagging(tagging *t, const qkv_encoder_opts *opts)
{
    qkv_encoder_opts own;
    qkv_status status = QKV__READ_OPTIONS(&own, each_step_data, opts, "tag");
    if (!status) status = qkv_model_check_ability(t->r.m, QKV_CAN_TAG);
    if (!status) status = qkv__reading_start(&t->r, &own);
    t->overlap = t->r.room / 4;
    const char *label;
    for (int64_t i = 0; (label = qkv_model_label(t->r.m, i)); i++)
        if ((*label == 'B' || *label == 'I') && label[1] == '-') t->has_marks = true;
    return status;
}

static qkv_status tag_texts(tagging *t, const qkv_texts *texts, const qkv_encoder_opts *opts)
{
    size_t n = (size_t)texts->n, bytes;
    if (!qkv__size_mul(n, sizeof *t->pieces + sizeof *t->out->texts, &bytes))
        return qkv__fail(QKV_LIMIT, "tag: too many texts");
    qkv_status status = start_tagging(t, opts);
    if (status) return status;
    t->pieces = qkv__arena_take(t->arena, sizeof *t->pieces * n);
    t->out->texts = qkv__arena_take(t->arena, sizeof *t->out->texts * n);
    t->out->n = texts->n;
    if (!t->pieces || !t->out->texts) return QKV_MEMORY;
    for (int64_t i = 0; i < texts->n && !status; i++) status = read_text_to_tag(t, texts, i);
    if (!status && texts->n) status = qkv__reading_run(&t->r);
    if (!status) finish_tagging(t);
    return status;
}

qkv_status qkv_tag(const qkv_model *m, const qkv_texts *texts, const qkv_encoder_opts *opts, qkv_tagged *out)
{
    if (!m || !texts || !out || texts->n < 0 || (texts->n && !texts->texts))
        return qkv__fail(QKV_USAGE, "tag: a model, texts and a place for results are needed");
    struct qkv_tagged_work *work = out->work;
    *out = (qkv_tagged){ .work = work };
    if (!work && !(work = out->work = qkv__alloc_zero(sizeof *work))) return QKV_MEMORY;
    qkv__arena_reset(&work->arena);
    tagging t = { .r = { .m = m, .head = label_scores, .is_of_tokens = true }, .out = out, .arena = &work->arena };
    t.r.width = qkv__model_config(m)->classes;
    qkv_status status = tag_texts(&t, texts, opts);
    qkv__reading_free(&t.r);
    if (status) *out = (qkv_tagged){ .work = work };
    return status;
}

void qkv_tagged_free(qkv_tagged *t)
{
    if (!t) return;
    if (t->work) {
        qkv__arena_free(&t->work->arena);
        qkv__release(t->work, sizeof *t->work);
    }
    *t = (qkv_tagged){ 0 };
}

/* ---- as text ---- */

static void put_spans_json(qkv__out *out, const char *key, const qkv_tagged_text *t, const qkv_tagged_span *spans, int64_t n)
{
    qkv__out_printf(out, "\"%s\": [", key);
    for (int64_t i = 0; i < n; i++) {
        const qkv_tagged_span *s = &spans[i];
        qkv__out_printf(out, "%s{\"label\": ", i ? ", " : "");
        qkv__out_json(out, s->label, strlen(s->label));
        qkv__out_printf(out, ", \"score\": %.9g, \"text\": ", s->score);
        qkv__out_json(out, t->text + s->span.begin, s->span.end - s->span.begin);
        qkv__out_printf(out, ", \"span\": [%zu, %zu], \"characters\": [%zu, %zu]}", s->span.begin, s->span.end,
                        s->characters.begin, s->characters.end);
    }
    qkv__out_printf(out, "]");
}

static void put_span_lines(qkv__out *out, const qkv_tagged_text *t, const qkv_tagged_span *spans, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        qkv__out_printf(out, "%s\t%.4f\t", spans[i].label, spans[i].score);
        qkv__out_bytes(out, t->text + spans[i].span.begin, spans[i].span.end - spans[i].span.begin);
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
