/* answer.c: where a text answers a question. */
#include "pieces.h"

#include "../base/options.h"
#include "../base/size.h"
#include "../base/out.h"
#include "../model/model.h"

#include <math.h>
#include <string.h>

enum { MOST_ANSWERS = 100, DEFAULT_WINDOW = 384, DEFAULT_OVERLAP = 128, DEFAULT_ANSWER = 30, ENDS = 2 };

struct qkv_answers_work {
    qkv__arena arena; /* all that results point to */
};

typedef struct answering {
    qkv__reading r;
    qkv_answer_opts o;
    qkv__pieces question, context;
    int64_t asked;        /* ids of the question that are read */
    qkv_span *words;      /* (pieces of the context): the word that each is of */
    double *first, *last; /* (pieces of a window, and the text's first token): probabilities of the ends */
    qkv_answers *out;
    qkv__arena *arena;
} answering;

/* ---- the model ---- */

static qkv_tensor *end_scores(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x, const void *data)
{
    (void)x, (void)data;
    return qkv__transformer_tag(qkv__model_transformer(m), hidden);
}

/* The question and a stretch of the context, side by side. */
static qkv_status add_answer_window(answering *a, int64_t at, int64_t n)
{
    qkv__reader *all = &a->r.all;
    const qkv__id_run *between = &a->r.f.pair.between;
    qkv__window w = { .begin = all->n, .length = a->asked + between->n + n, .is_pair = true };
    w.text = at; /* where its stretch begins */
    w.second = w.begin + a->asked + between->n;
    size_t bytes = sizeof *all->ids * (size_t)(all->n + w.length);
    if (qkv__grow((void **)&all->ids, &all->bytes, bytes)) return QKV_MEMORY; /* so that adding moves nothing */
    qkv_status status = qkv__reader_add(all, all->ids + a->question.begin, (size_t)a->asked);
    if (!status) status = qkv__reader_put(all, between);
    if (!status) status = qkv__reader_add(all, all->ids + a->context.begin + at, (size_t)n);
    a->out->windows++;
    return status ? status : qkv__reading_add(&a->r, w);
}

static qkv_status add_answer_windows(answering *a)
{
    int64_t half = qkv__max(a->r.room / 2, 1), at = 0;
    a->asked = qkv__min(a->question.n, half);
    int64_t room = qkv__max(a->r.room - a->asked - a->r.f.pair.between.n, 1), step = room - qkv__min(a->o.overlap, room / 2);
    qkv_status status;
    a->first = qkv__arena_take(a->arena, sizeof *a->first * (size_t)(room + 1));
    a->last = qkv__arena_take(a->arena, sizeof *a->last * (size_t)(room + 1));
    if (!a->first || !a->last) return QKV_MEMORY;
    do status = add_answer_window(a, at, qkv__min(a->context.n - at, room));
    while (!status && at + room < a->context.n && (at += step));
    return status;
}

/* ---- words ---- */

static qkv_status find_words(answering *a)
{
    const qkv__pieces *p = &a->context;
    a->words = qkv__arena_take(a->arena, sizeof *a->words * (size_t)p->n);
    if (!a->words) return QKV_MEMORY;
    for (int64_t i = 0, first = 0; i < p->n; i++) {
        if (p->starts[i]) first = i;
        bool is_empty = p->spans[i].begin >= p->spans[i].end;
        a->words[i] = is_empty ? p->spans[i] : (qkv_span){ p->spans[first].begin, p->spans[i].end };
        for (int64_t k = first; k < i && !is_empty; k++) a->words[k].end = p->spans[i].end;
    }
    return QKV_OK;
}

/* ---- the best ---- */

static bool is_same_answer(const qkv_found_answer *x, const qkv_found_answer *y)
{
    return x->span.begin == y->span.begin && x->span.end == y->span.end && x->is_none == y->is_none;
}

/* Takes its place among the best, unless it is there already with a score as good. */
static void offer(answering *a, qkv_found_answer x)
{
    qkv_found_answer *best = a->out->best;
    int n = a->out->n, at = n;
    if (n == a->o.n_best && !(x.score > best[n - 1].score)) return;
    for (int i = 0; i < n; i++) {
        if (!is_same_answer(&best[i], &x)) continue;
        if (best[i].score >= x.score) return;
        memmove(best + i, best + i + 1, sizeof *best * (size_t)(n - i - 1));
        at = --n;
        break;
    }
    if (at == a->o.n_best) at = --n;
    for (; at && best[at - 1].score < x.score; at--) best[at] = best[at - 1];
    best[at] = x;
    a->out->n = n + 1;
}

/* p[n], and p[0] .. p[n-1]: softmax over the first token of the text and those of the context, of logits ENDS apart. */
static void softmax_ends(const float *none, const float *logits, int64_t n, double *p)
{
    double top = none ? (double)*none : (double)logits[0], sum = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, (double)logits[i * ENDS]);
    for (int64_t i = 0; i < n; i++) sum += p[i] = exp((double)logits[i * ENDS] - top);
    p[n] = none ? exp((double)*none - top) : 0;
    sum += p[n];
    for (int64_t i = 0; i <= n; i++) p[i] /= sum;
}

static void search_window(answering *a, const qkv__window *w)
{
    const qkv__wrap *wrap = &a->r.f.pair;
    const float *rows = a->r.results + w->result, *own = rows + ENDS * (wrap->before.n + w->second - w->begin);
    int64_t n = w->length - (w->second - w->begin);
    const qkv_span *words = a->words + w->text;
    if (!n && !wrap->before.n) return;
    softmax_ends(wrap->before.n ? rows : NULL, own, n, a->first);
    softmax_ends(wrap->before.n ? rows + 1 : NULL, own + 1, n, a->last);
    a->out->none = fmin(a->out->none, a->first[n] * a->last[n]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i; k < n && k < i + a->o.max_answer; k++)
            if (words[i].begin < words[k].end)
                offer(a, (qkv_found_answer){ .span = { words[i].begin, words[k].end }, .score = a->first[i] * a->last[k] });
}

static void count_span(const char *text, qkv_found_answer *x)
{
    for (size_t at = 0; at < x->span.end; at++) {
        size_t is_character = ((unsigned char)text[at] & 0xC0) != 0x80;
        x->characters.end += is_character;
        x->characters.begin += at < x->span.begin ? is_character : 0;
    }
}

/* ---- the call ---- */

static qkv_status resolve_answer_options(answering *a, const qkv_answer_opts *given)
{
    qkv_answer_opts *o = &a->o;
    qkv_status status = QKV__READ_OPTIONS(o, each_step_data, given, "answer");
    if (status) return status;
    if (o->n_best < 0 || o->n_best > MOST_ANSWERS || o->max_length < 0 || o->overlap < 0 || o->max_answer < 0)
        return qkv__fail(QKV_USAGE, "answer: at most %d answers, and no negative number", MOST_ANSWERS);
    if (!o->n_best) o->n_best = 1;
    if (!o->max_length) o->max_length = DEFAULT_WINDOW;
    if (!o->overlap) o->overlap = DEFAULT_OVERLAP;
    if (!o->max_answer) o->max_answer = DEFAULT_ANSWER;
    const qkv_encoder_opts reading = { .size = sizeof reading,
                                       .max_length = qkv__max(o->max_length - 1, 1), /* its last id is not counted there */
                                       .each_step = o->each_step,
                                       .each_step_data = o->each_step_data };
    status = qkv_model_check_ability(a->r.m, QKV_CAN_ANSWER);
    return status ? status : qkv__reading_start(&a->r, &reading);
}

static qkv_status read_both(answering *a, const char *question, size_t question_length, const char *context, size_t length)
{
    const qkv_tokenizer *t = a->r.f.source;
    qkv_status status = qkv__read_pieces(t, question, question_length, a->arena, &a->r.all, &a->question);
    if (!status) status = qkv__read_pieces(t, context, length, a->arena, &a->r.all, &a->context);
    if (!status) status = find_words(a);
    if (!status) status = add_answer_windows(a);
    a->out->context = a->context.text;
    a->out->length = a->context.length;
    a->out->best = qkv__arena_take(a->arena, sizeof *a->out->best * (size_t)a->o.n_best);
    return status || a->out->best ? status : QKV_MEMORY;
}

static void choose_answers(answering *a)
{
    a->out->none = 1;
    qkv__reading_sort(&a->r);
    for (int64_t i = 0; i < a->r.n_windows; i++) search_window(a, &a->r.all_windows[i]);
    if (!a->o.must_answer) offer(a, (qkv_found_answer){ .score = a->out->none, .is_none = 1 });
    for (int i = 0; i < a->out->n; i++) count_span(a->context.text, &a->out->best[i]);
}

qkv_status qkv_answer(const qkv_model *m, const char *question, size_t question_length, const char *context, size_t length,
                      const qkv_answer_opts *opts, qkv_answers *out)
{
    if (!m || !question || !context || !out)
        return qkv__fail(QKV_USAGE, "answer: a model, a question, a context and a place for answers are needed");
    struct qkv_answers_work *work = out->work;
    *out = (qkv_answers){ .work = work };
    if (!work && !(work = out->work = qkv__alloc_zero(sizeof *work))) return QKV_MEMORY;
    qkv__arena_reset(&work->arena);
    answering a = { .r = { .m = m, .head = end_scores, .width = ENDS, .is_of_tokens = true },
                    .out = out,
                    .arena = &work->arena };
    qkv_status status = resolve_answer_options(&a, opts);
    if (!status) status = read_both(&a, question, question_length, context, length);
    if (!status) status = qkv__reading_run(&a.r);
    if (!status) choose_answers(&a);
    qkv__reading_free(&a.r);
    if (status) *out = (qkv_answers){ .work = work };
    return status;
}

void qkv_answers_free(qkv_answers *a)
{
    if (!a) return;
    if (a->work) {
        qkv__arena_free(&a->work->arena);
        qkv__release(a->work, sizeof *a->work);
    }
    *a = (qkv_answers){ 0 };
}

/* ---- as text ---- */

static void put_answer_json(qkv__out *out, const qkv_answers *a, const qkv_found_answer *x)
{
    qkv__out_printf(out, "{\"text\": ");
    if (x->is_none) qkv__out_printf(out, "null, \"score\": %.9g, \"span\": null, \"characters\": null}", x->score);
    if (x->is_none) return;
    qkv__out_json(out, a->context + x->span.begin, x->span.end - x->span.begin);
    qkv__out_printf(out, ", \"score\": %.9g, \"span\": [%zu, %zu], \"characters\": [%zu, %zu]}", x->score, x->span.begin,
                    x->span.end, x->characters.begin, x->characters.end);
}

static void put_answer_line(qkv__out *out, const qkv_answers *a, const qkv_found_answer *x)
{
    qkv__out_printf(out, "%.4f\t", x->score);
    for (size_t i = x->span.begin; i < x->span.end; i++) {
        char c = a->context[i];
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
    if (json) qkv__out_printf(&text, "], \"none\": %.9g, \"windows\": %lld}", a->none, (long long)a->windows);
    return qkv__out_end(&text);
}
