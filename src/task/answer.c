/* answer.c: where a text answers a question. */
#include "pieces.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/size.h"
#include "../model/model.h"

#include <math.h>
#include <string.h>

enum { MOST_ANSWERS = 100, DEFAULT_WINDOW = 384, DEFAULT_OVERLAP = 128, DEFAULT_ANSWER = 30, ENDS = 2 };

typedef struct answering {
    qkv__reading r;
    qkv_answer_opts o;
    qkv__pieces question, context;
    int64_t asked;        /* ids of the question that are read */
    qkv_span *words;      /* (pieces of the context): the word that each is of */
    double *first, *last; /* (pieces of a window, and the text's first token): probabilities of the ends */
    qkv_answers *out;
    qkv_answer_span *best; /* of it, to be written */
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
    a->first = qkv__result_alloc(a->out, sizeof *a->first * (size_t)(room + 1));
    a->last = qkv__result_alloc(a->out, sizeof *a->last * (size_t)(room + 1));
    if (!a->first || !a->last) return QKV_MEMORY;
    do status = add_answer_window(a, at, qkv__min(a->context.n - at, room));
    while (!status && at + room < a->context.n && (at += step));
    return status;
}

/* ---- words ---- */

static qkv_status find_words(answering *a)
{
    const qkv__pieces *p = &a->context;
    a->words = qkv__result_alloc(a->out, sizeof *a->words * (size_t)p->n);
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

static bool is_same_answer(const qkv_answer_span *x, const qkv_answer_span *y)
{
    return x->bytes.begin == y->bytes.begin && x->bytes.end == y->bytes.end && x->is_none == y->is_none;
}

/* Takes its place among the best, unless it is there already with a score as good. */
static void offer(answering *a, qkv_answer_span x)
{
    qkv_answer_span *best = a->best;
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
    a->out->none_score = fmin(a->out->none_score, a->first[n] * a->last[n]);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = i; k < n && k < i + a->o.max_answer; k++)
            if (words[i].begin < words[k].end)
                offer(a, (qkv_answer_span){ .bytes = { words[i].begin, words[k].end }, .score = a->first[i] * a->last[k] });
}

static void count_span(const char *text, qkv_answer_span *x)
{
    for (size_t at = 0; at < x->bytes.end; at++) {
        size_t is_character = ((unsigned char)text[at] & 0xC0) != 0x80;
        x->characters.end += is_character;
        x->characters.begin += at < x->bytes.begin ? is_character : 0;
    }
}

/* ---- the call ---- */

static qkv_status resolve_answer_options(answering *a, const qkv_answer_opts *given)
{
    qkv_answer_opts *o = &a->o;
    qkv_status status = QKV__READ_OPTIONS(o, hooks, given, "answer");
    if (status) return status;
    if (o->n_best < 0 || o->n_best > MOST_ANSWERS || o->max_length < 0 || o->overlap < 0 || o->max_answer < 0)
        return qkv__fail(QKV_USAGE, "answer: at most %d answers, and no negative number", MOST_ANSWERS);
    if (!o->n_best) o->n_best = 1;
    if (!o->max_length) o->max_length = DEFAULT_WINDOW;
    if (!o->overlap) o->overlap = DEFAULT_OVERLAP;
    if (!o->max_answer) o->max_answer = DEFAULT_ANSWER;
    const qkv_encoder_opts reading = { .size = sizeof reading,
                                       .max_length = qkv__max(o->max_length - 1, 1), /* its last id is not counted there */
                                       .hooks = o->hooks };
    status = qkv_model_check_ability(a->r.m, QKV_CAN_ANSWER);
    return status ? status : qkv__reading_start(&a->r, &reading);
}

static qkv_status read_both(answering *a, qkv_str question, qkv_str context)
{
    const qkv_tokenizer *t = a->r.f.source;
    qkv_status status = qkv__read_pieces(t, question, a->out, &a->r.all, &a->question);
    if (!status) status = qkv__read_pieces(t, context, a->out, &a->r.all, &a->context);
    if (!status) status = find_words(a);
    if (!status) status = add_answer_windows(a);
    a->out->context = a->context.text;
    a->out->best = a->best = qkv__result_alloc(a->out, sizeof *a->best * (size_t)a->o.n_best);
    return status || a->best ? status : QKV_MEMORY;
}

static void choose_answers(answering *a)
{
    a->out->none_score = 1;
    qkv__reading_sort(&a->r);
    for (int64_t i = 0; i < a->r.n_windows; i++) search_window(a, &a->r.all_windows[i]);
    if (!a->o.must_answer) offer(a, (qkv_answer_span){ .score = a->out->none_score, .is_none = 1 });
    for (int i = 0; i < a->out->n; i++) count_span(a->context.text.data, &a->best[i]);
}

static qkv_status answer(answering *a, qkv_str question, qkv_str context, const qkv_answer_opts *opts)
{
    if (!a->r.m || (!question.data && question.length) || (!context.data && context.length))
        return qkv__fail(QKV_USAGE, "answer: a model, a question and a context are needed");
    qkv_status status = resolve_answer_options(a, opts);
    if (!status) status = read_both(a, question, context);
    if (!status) status = qkv__reading_run(&a->r);
    if (!status) choose_answers(a);
    return status;
}

qkv_status qkv_answer(const qkv_model *m, qkv_str question, qkv_str context, const qkv_answer_opts *opts, qkv_answers **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_answers), NULL };
    if (!out) return qkv__fail(QKV_USAGE, "answer: a place for the answers is needed");
    answering a = { .r = { .m = m, .head = end_scores, .width = ENDS, .is_of_tokens = true },
                    .out = qkv__result_begin(*out, &kind) };
    if (!a.out) return qkv_error_status();
    *out = a.out;
    qkv_status status = answer(&a, question, context, opts);
    qkv__reading_free(&a.r);
    if (status) qkv__result_clear(a.out);
    return status;
}
