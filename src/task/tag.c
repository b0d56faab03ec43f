/* tag.c: a label for each word of a text, and the entities that words with such labels are. */
#include "pieces.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/size.h"
#include "../model/model.h"

#include <stdio.h>
#include <string.h>

/* What a text's result shows, to be written. */
typedef struct tagged_lists {
    qkv_tagged_span *words, *entities;
} tagged_lists;

typedef struct tagging {
    qkv__reading r;
    int64_t overlap; /* ids that two windows of a text share */
    bool has_marks;  /* labels begin with B- or I-, and the like */
    qkv__pieces *pieces;
    qkv_tagged *out;
    qkv_tagged_text *texts; /* of it, to be written */
    tagged_lists *lists;    /* (texts) */
    const qkv_str *labels;  /* of the model: copies that are the result's */
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
        t->texts[i].windows++;
    } while (!status && at + t->r.room < p->n && (at += step));
    return status;
}

/* ---- words ---- */

static void put_word(tagging *t, int64_t i, int64_t k, const float *row)
{
    const qkv__pieces *p = &t->pieces[i];
    qkv_tagged_text *to = &t->texts[i];
    qkv_tagged_span *words = t->lists[i].words;
    qkv_span span = p->spans[k];
    if (span.begin >= span.end) return;
    if (!p->starts[k]) {
        words[to->n_words - 1].bytes.end = span.end;
        return;
    }
    int64_t label = qkv__likeliest_class(row, t->r.width);
    words[to->n_words++] = (qkv_tagged_span){
        .bytes = span, .label_id = label, .label = t->labels[label], .score = (double)row[label]
    };
}

/* The pieces of a window that are its own, in their order. */
static void put_window(tagging *t, const qkv__window *w)
{
    const qkv__pieces *p = &t->pieces[w->text];
    int64_t at = w->begin - p->begin, half = t->overlap / 2, width = t->r.width;
    int64_t from = at ? at + half : 0, to = at + w->length < p->n ? at + t->r.room - t->overlap + half : p->n;
    const float *rows = t->r.results + w->result + t->r.f.single.before.n * width;
    for (int64_t k = from; k < to; k++) put_word(t, w->text, k, rows + (k - at) * width);
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
static void join_words(const tagging *t, qkv_tagged_text *to, qkv_tagged_span *entities)
{
    for (int64_t i = 0, n = 0; i < to->n_words; i += n) {
        const qkv_tagged_span *words = to->words + i;
        double sum = words[0].score;
        for (n = 1; i + n < to->n_words && goes_on(t, words[n - 1].label.data, words[n].label.data); n++) sum += words[n].score;
        if (!strcmp(words[0].label.data, "O")) continue;
        qkv_tagged_span *entity = &entities[to->n_entities++];
        *entity = words[0];
        if (mark_of(t, entity->label.data)) entity->label.data += 2, entity->label.length -= 2;
        entity->bytes.end = words[n - 1].bytes.end;
        entity->score = sum / (double)n;
    }
}

/* Code points before each place; spans come in their order, and do not overlap. */
static void count_characters(const char *text, qkv_tagged_span *spans, int64_t n)
{
    size_t at = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        qkv_tagged_span *s = &spans[i];
        for (; at < s->bytes.begin; at++) count += ((unsigned char)text[at] & 0xC0) != 0x80;
        s->characters.begin = count;
        for (; at < s->bytes.end; at++) count += ((unsigned char)text[at] & 0xC0) != 0x80;
        s->characters.end = count;
    }
}

/* ---- the call ---- */

static qkv_status read_text_to_tag(tagging *t, const qkv_str *texts, int64_t i)
{
    qkv__pieces *p = &t->pieces[i];
    if (!texts[i].data && texts[i].length) return qkv__fail(QKV_USAGE, "text %lld is NULL", (long long)i);
    qkv_status status = qkv__read_pieces(t->r.f.source, texts[i], t->out, &t->r.all, p);
    if (status) return status;
    size_t bytes = sizeof(qkv_tagged_span) * (size_t)p->n;
    tagged_lists *to = &t->lists[i];
    to->words = qkv__result_alloc(t->out, bytes);
    to->entities = qkv__result_alloc(t->out, bytes);
    t->texts[i] = (qkv_tagged_text){ .text = p->text, .words = to->words, .entities = to->entities };
    return to->words && to->entities ? add_tag_windows(t, i) : QKV_MEMORY;
}

static void finish_tagging(tagging *t)
{
    qkv__reading_sort(&t->r);
    for (int64_t i = 0; i < t->r.n_windows; i++) put_window(t, &t->r.all_windows[i]);
    for (int64_t i = 0; i < t->out->n; i++) {
        qkv_tagged_text *to = &t->texts[i];
        join_words(t, to, t->lists[i].entities);
        count_characters(to->text.data, t->lists[i].words, to->n_words);
        count_characters(to->text.data, t->lists[i].entities, to->n_entities);
    }
}

/* Copies of the labels, so that a result outlives its model. */
static qkv_status copy_labels(tagging *t)
{
    qkv_str *labels = qkv__result_alloc(t->out, sizeof *labels * (size_t)t->r.width);
    t->labels = labels;
    for (int64_t i = 0; labels && i < t->r.width; i++) {
        char number[32];
        const char *label = qkv_model_label(t->r.m, i);
        if (!label) snprintf(number, sizeof number, "LABEL_%lld", (long long)i), label = number; /* as transformers has it */
        if ((*label == 'B' || *label == 'I') && label[1] == '-') t->has_marks = true;
        labels[i] = qkv__result_copy(t->out, label, strlen(label));
        if (!labels[i].data) return QKV_MEMORY;
    }
    return labels ? QKV_OK : QKV_MEMORY;
}

static qkv_status start_tagging(tagging *t, const qkv_encoder_opts *opts)
{
    qkv_encoder_opts own;
    qkv_status status = QKV__READ_OPTIONS(&own, hooks, opts, "tag");
    if (!status) status = qkv_model_check_ability(t->r.m, QKV_CAN_TAG);
    own.size = sizeof own;
    if (!status) status = qkv__reading_start(&t->r, &own);
    t->overlap = t->r.room / 4;
    return status ? status : copy_labels(t);
}

static qkv_status tag_texts(tagging *t, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts)
{
    size_t bytes;
    if (!t->r.m || n < 0 || (n && !texts)) return qkv__fail(QKV_USAGE, "tag: a model and texts are needed");
    if (!qkv__size_mul((size_t)n, sizeof *t->pieces + sizeof *t->texts + sizeof *t->lists, &bytes))
        return qkv__fail(QKV_LIMIT, "tag: too many texts");
    t->r.width = qkv__model_config(t->r.m)->classes;
    qkv_status status = start_tagging(t, opts);
    if (status) return status;
    t->pieces = qkv__result_alloc(t->out, sizeof *t->pieces * (size_t)n);
    t->texts = qkv__result_alloc(t->out, sizeof *t->texts * (size_t)n);
    t->lists = qkv__result_alloc(t->out, sizeof *t->lists * (size_t)n);
    if (!t->pieces || !t->texts || !t->lists) return QKV_MEMORY;
    *t->out = (qkv_tagged){ n, t->texts };
    for (int64_t i = 0; i < n && !status; i++) status = read_text_to_tag(t, texts, i);
    if (!status && n) status = qkv__reading_run(&t->r);
    if (!status) finish_tagging(t);
    return status;
}

qkv_status qkv_tag(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts, qkv_tagged **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_tagged), NULL };
    if (!out) return qkv__fail(QKV_USAGE, "tag: a place for the results is needed");
    tagging t = { .r = { .m = m, .head = label_scores, .is_of_tokens = true }, .out = qkv__result_begin(*out, &kind) };
    if (!t.out) return qkv_error_status();
    *out = t.out;
    qkv_status status = tag_texts(&t, texts, n, opts);
    qkv__reading_free(&t.r);
    if (status) qkv__result_clear(t.out);
    return status;
}
