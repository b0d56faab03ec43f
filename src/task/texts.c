/* texts.c: texts through an encoder, in batches of like lengths. */
#include "texts.h"

#include <qkv/unstable/util.h>

#include "../decode/batches.h"
#include "../base/options.h"
#include "../base/pool.h"
#include "../base/size.h"
#include "../model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A batch's numbers should fit a core's own cache, and the other threads should not wait long for the last one: MiniLM's shape read
 * 639 sentences a second with 120 rows and 622 with 240 (medians of 10 turns, two Emerald Rapids cores). PADDED: what may be
 * computed where padding is. */
enum { BATCH_TOKENS = 128, PADDED_TOKENS = 4096, AROUND = 2 };

/* ---- windows ---- */

/* What one thread needs. */
typedef struct batch_memory {
    qkv_tape *tape, *layer_tape;
    int32_t *ids; /* ids, then lengths, then types */
    size_t bytes;
} batch_memory;

qkv_status qkv__reading_add(qkv__reading *r, qkv__window w)
{
    if (qkv__grow((void **)&r->all_windows, &r->windows_bytes, sizeof w * ((size_t)r->n_windows + 1))) return QKV_MEMORY;
    r->all_windows[r->n_windows++] = w;
    return QKV_OK;
}

static qkv_status add_windows(qkv__reading *r, int64_t text, const qkv__body *body, bool is_pair)
{
    int64_t length = body->length, room = r->room;
    qkv__window w = { .text = text, .begin = body->begin, .second = body->second, .is_pair = is_pair };
    w.length = qkv__min(length, room);
    qkv_status status = qkv__reading_add(r, w);
    r->truncated += length > room || body->is_cut;
    for (int64_t at = room; r->windows && at < length && !status; at += room) {
        w.begin = body->begin + at;
        w.length = qkv__min(length - at, room);
        status = qkv__reading_add(r, w);
    }
    return status;
}

static bool has_run(const int32_t *ids, const qkv__id_run *run)
{
    return run->n && !memcmp(ids, run->ids, (size_t)run->n * sizeof *ids);
}

/* Special tokens around the ids are removed: batches add them. */
static qkv_status read_ids(qkv__reading *r, const int32_t *ids, int64_t n, int64_t i)
{
    const qkv__wrap *w = &r->f.single;
    for (int64_t k = 0; k < n; k++)
        if (ids[k] < 0 || ids[k] >= r->f.t->vocab_size)
            return qkv__fail(QKV_USAGE, "text %lld: token %lld is the id %d: ids are 0..%lld", (long long)i, (long long)k,
                             ids[k], (long long)r->f.t->vocab_size - 1);
    if (n >= w->after.n && has_run(ids + n - w->after.n, &w->after)) n -= w->after.n;
    if (n >= w->before.n && has_run(ids, &w->before)) ids += w->before.n, n -= w->before.n;
    const qkv__body body = { .begin = r->all.n, .length = n, .second = r->all.n + n };
    qkv_status status = qkv__reader_add(&r->all, ids, (size_t)n);
    return status ? status : add_windows(r, i, &body, false);
}

static qkv_status read_one_text(qkv__reading *r, const qkv__texts *x, int64_t i)
{
    if (x->ids) return read_ids(r, x->ids[i], x->n_ids[i], i);
    const qkv_str text = x->texts[i], pair = x->pairs ? x->pairs[i] : (qkv_str){ NULL, 0 };
    const qkv__given given = { text.data, pair.data, text.length, pair.length };
    qkv__body body;
    if ((!text.data && text.length) || (!pair.data && pair.length))
        return qkv__fail(QKV_USAGE, "text %lld is NULL", (long long)i);
    qkv_status status = qkv__reader_body(&r->all, &r->f, &given, r->windows ? 0 : r->room, &body);
    return status ? status : add_windows(r, i, &body, given.pair != NULL);
}

/* ---- texts on all threads ---- */

enum { PART_TEXTS = 32 }; /* at least: fewer are not worth a thread */

/* Texts that follow each other, read by one thread. */
typedef struct text_part {
    qkv__reading r;
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
} text_part;

typedef struct text_parts {
    const qkv__texts *texts;
    text_part *list;
    int64_t n;
} text_parts;

static void read_text_part(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const text_parts *w = work;
    text_part *p = &w->list[task];
    int64_t n = w->texts->n, end = n * (task + 1) / w->n;
    for (int64_t i = n * task / w->n; i < end && !p->status; i++) p->status = read_one_text(&p->r, w->texts, i);
    if (p->status) snprintf(p->sentence, sizeof p->sentence, "%s", qkv_error());
}

static qkv_status join_text_part(qkv__reading *r, const text_part *p)
{
    int64_t begin = r->all.n;
    if (p->status) return qkv__fail_again(p->status, p->sentence);
    qkv_status status = qkv__reader_add(&r->all, p->r.all.ids, (size_t)p->r.all.n);
    for (int64_t i = 0; i < p->r.n_windows && !status; i++) {
        qkv__window w = p->r.all_windows[i];
        w.begin += begin;
        w.second += begin;
        status = qkv__reading_add(r, w);
    }
    r->truncated += p->r.truncated;
    return status;
}

static qkv_status read_all_texts(qkv__reading *r, const qkv__texts *texts)
{
    text_parts w = { .texts = texts, .n = qkv__min(4 * (int64_t)qkv_num_threads(), qkv__ceil_div(texts->n, PART_TEXTS)) };
    size_t bytes = sizeof *w.list * (size_t)w.n;
    if (!(w.list = qkv__alloc_zero(bytes))) return QKV_MEMORY;
    for (int64_t i = 0; i < w.n; i++) w.list[i].r = (qkv__reading){ .f = r->f, .windows = r->windows, .room = r->room };
    qkv_status status = qkv__parallel(w.n, 0, read_text_part, &w);
    for (int64_t i = 0; i < w.n && !status; i++) status = join_text_part(r, &w.list[i]);
    for (int64_t i = 0; i < w.n; i++) qkv__reading_free(&w.list[i].r);
    qkv__release(w.list, bytes);
    return status;
}

static int by_text_length(const void *a, const void *b)
{
    const qkv__window *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* ---- batches ---- */

static int32_t *put_ids(int32_t *at, const int32_t *ids, int64_t n)
{
    if (n) memcpy(at, ids, sizeof *at * (size_t)n);
    return at + n;
}

static void fill_types(const qkv__wrap *f, const qkv__window *w, int32_t *types, int64_t length)
{
    int64_t after = f->before.n + w->length;
    for (int64_t i = 0; i < length; i++) {
        bool is_second = w->begin + i - f->before.n >= w->second;
        types[i] = i >= after ? f->after_type : i >= f->before.n && is_second ? f->second_type : f->first_type;
    }
}

static qkv_status fill_batch(const qkv__reading *r, batch_memory *own, const qkv__window *w, int64_t rows, int64_t length)
{
    size_t numbers = (size_t)(rows * (2 * length + 1));
    if (qkv__grow((void **)&own->ids, &own->bytes, sizeof *own->ids * numbers)) return QKV_MEMORY;
    int32_t *lengths = own->ids + rows * length, *types = lengths + rows;
    for (int64_t b = 0; b < rows; b++) {
        const qkv__wrap *f = w[b].is_pair ? &r->f.pair : &r->f.single;
        int32_t *to = own->ids + b * length, *at = put_ids(to, f->before.ids, f->before.n);
        at = put_ids(at, r->all.ids + w[b].begin, w[b].length);
        at = put_ids(at, f->after.ids, f->after.n);
        lengths[b] = (int32_t)(at - to);
        while (at < to + length) *at++ = r->f.single.after.ids[0]; /* padding, which nothing sees */
        fill_types(f, &w[b], types + b * length, length);
    }
    return QKV_OK;
}

static void end_texts(void *memory)
{
    batch_memory *own = memory;
    qkv_tape_free(own->tape);
    qkv_tape_free(own->layer_tape);
    qkv__release(own->ids, own->bytes);
    qkv__release(own, sizeof *own);
}

static void *start_texts(void *work)
{
    (void)work;
    const qkv_tape_opts opts = { .inference = 1 };
    batch_memory *own = qkv__alloc_zero(sizeof *own);
    if (own && (own->tape = qkv_tape_new(&opts)) && (own->layer_tape = qkv_tape_new(&opts))) return own;
    if (own) end_texts(own);
    return NULL;
}

/* How many numbers a window of so many ids, those around it too, has. */
static int64_t result_numbers(const qkv__reading *r, int64_t ids) { return r->is_of_tokens ? ids * r->width : r->width; }

static qkv_status keep_results(const qkv__reading *r, const qkv__window *w, const float *found, int64_t ids)
{
    int64_t n = result_numbers(r, ids);
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(found[k])) return qkv__fail(QKV_NUMERIC, "text %lld: the result is not finite", (long long)w->text);
    memcpy(r->results + w->result, found, sizeof *found * (size_t)n);
    return QKV_OK;
}

static qkv_status run_batch(void *work, void *memory, int64_t i, qkv_each_step each_step, void *each_step_data)
{
    const qkv__reading *r = work;
    batch_memory *own = memory;
    const qkv__window *w = r->all_windows + r->first[i];
    int64_t rows = r->first[i + 1] - r->first[i], length = w[rows - 1].length + r->f.around;
    qkv_status status = each_step(each_step_data);
    if (!status) status = fill_batch(r, own, w, rows, length);
    if (status) return status;
    const int32_t *lengths = own->ids + rows * length, *types = r->f.has_types ? lengths + rows : NULL;
    const qkv_tokens x = { .ids = own->ids, .types = types, .rows = rows, .length = length, .lengths = lengths };
    qkv_tape_reset(own->tape);
    qkv_tensor *hidden = qkv__pad_rows(qkv__encode_rows(qkv__model_transformer(r->m), own->tape, own->layer_tape, &x), &x);
    const float *result = qkv_tensor_data(r->head(r->m, hidden, &x, r->head_data));
    if (!result) return qkv_tape_status(own->tape);
    for (int64_t b = 0; b < rows && !status; b++)
        status = keep_results(r, &w[b], result + b * result_numbers(r, length), lengths[b]);
    return status;
}

/* The first of n windows, the shortest first, which make a batch that is full when it has `tokens`. */
static int64_t batch_rows(const qkv__window *w, int64_t n, int64_t tokens)
{
    int64_t rows = 0;
    while (rows < n && tokens > 0 && (!rows || (w[rows].length + AROUND) * (rows + 1) <= PADDED_TOKENS))
        tokens -= w[rows++].length + AROUND;
    return rows;
}

static void make_batches(qkv__reading *r)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < r->n_windows; i++) tokens += r->all_windows[i].length + AROUND;
    tokens = qkv__ceil_div(tokens, qkv__count_batches(tokens, BATCH_TOKENS, 1));
    for (int64_t at = 0; at < r->n_windows; at += batch_rows(r->all_windows + at, r->n_windows - at, tokens))
        r->first[r->n_batches++] = at;
    r->first[r->n_batches] = r->n_windows;
}

static int by_text(const void *a, const void *b)
{
    const qkv__window *x = a, *y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (x->text > y->text) - (x->text < y->text);
}

/* Places for the results of all windows, one after the other. */
static qkv_status place_results(qkv__reading *r)
{
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_windows; i++) {
        const qkv__wrap *f = r->all_windows[i].is_pair ? &r->f.pair : &r->f.single;
        r->all_windows[i].result = n;
        n += result_numbers(r, r->all_windows[i].length + f->before.n + f->after.n);
    }
    r->results_bytes = sizeof *r->results * (size_t)n; /* ids are fewer than 2^31 a text, and rows lie in memory too */
    return (r->results = qkv__alloc(r->results_bytes)) ? QKV_OK : QKV_MEMORY;
}

static qkv_status ask_to_cancel(void *reading) { return qkv__cancelled(((const qkv__reading *)reading)->hooks, "texts"); }

qkv_status qkv__reading_run(qkv__reading *r)
{
    size_t firsts = sizeof *r->first * ((size_t)r->n_windows + 1);
    qsort(r->all_windows, (size_t)r->n_windows, sizeof *r->all_windows, by_text_length);
    r->first = qkv__alloc(firsts);
    qkv_status status = r->first ? place_results(r) : QKV_MEMORY;
    if (!status) {
        make_batches(r);
        status = qkv__run_batches(&(qkv__batches){ .n = r->n_batches,
                                                   .work = r,
                                                   .start = start_texts,
                                                   .end = end_texts,
                                                   .run = run_batch,
                                                   .each_step = ask_to_cancel,
                                                   .each_step_data = r });
    }
    qkv__release(r->first, firsts);
    r->first = NULL;
    return status;
}

void qkv__reading_sort(qkv__reading *r)
{
    if (r->n_windows) qsort(r->all_windows, (size_t)r->n_windows, sizeof *r->all_windows, by_text);
}

void qkv__reading_free(qkv__reading *r)
{
    qkv__reader_free(&r->all);
    qkv__release(r->all_windows, r->windows_bytes);
    qkv__release(r->results, r->results_bytes);
}

/* The mean over a text's windows, which are added in the order of their lengths. */
static void average_windows(qkv__reading *r, int64_t n, float *rows)
{
    for (int64_t i = 0; i < r->n_windows; i++)
        for (int64_t k = 0; k < r->width; k++) rows[r->all_windows[i].text * r->width + k] += r->results[i * r->width + k];
    qkv__reading_sort(r);
    for (int64_t i = 0, k = 0; i < n; i++) {
        int64_t windows = 0;
        for (; k < r->n_windows && r->all_windows[k].text == i; k++) windows++;
        for (int64_t j = 0; j < r->width && windows > 1; j++) rows[i * r->width + j] /= (float)windows;
    }
}

/* ---- the call ---- */

qkv_status qkv__reading_start(qkv__reading *r, const qkv_encoder_opts *given)
{
    qkv_encoder_opts own, *opts = &own;
    if (QKV__READ_OPTIONS(opts, hooks, given, "texts")) return QKV_USAGE;
    const qkv_config *o = qkv__model_config(r->m);
    if (!o) return qkv__fail(QKV_USAGE, "texts: a model is needed");
    if (!o->encoder_layers) return qkv_model_check_ability(r->m, QKV_CAN_EMBED);
    qkv_status status = qkv__special_tokens_needed(r->m, &r->f);
    if (!status) status = qkv__reader_room(&r->f, opts->max_length, &r->room);
    r->room = qkv__max(r->room, 1);
    r->windows = opts->windows;
    r->hooks = opts->hooks;
    return status;
}

static qkv_status read_rows(qkv__reading *r, const qkv__texts *texts, const qkv_encoder_opts *opts, qkv_matrix *out,
                            float **rows)
{
    size_t numbers;
    if (!r->m || texts->n < 0 || (texts->n && !texts->texts && !texts->ids))
        return qkv__fail(QKV_USAGE, "texts: a model and texts are needed");
    if (texts->ids && (texts->pairs || !texts->n_ids))
        return qkv__fail(QKV_USAGE, "texts: token ids need their numbers, and have no pairs");
    if (!qkv__size_mul((size_t)texts->n, (size_t)r->width, &numbers) || !qkv__size_mul(numbers, sizeof **rows, &numbers))
        return qkv__fail(QKV_LIMIT, "texts: too many results");
    qkv_status status = qkv__reading_start(r, opts);
    if (!status && texts->n) status = read_all_texts(r, texts);
    if (!status && texts->n) status = qkv__reading_run(r);
    if (!status && !(*rows = qkv__result_alloc(out, numbers))) status = QKV_MEMORY;
    if (status) return status;
    memset(*rows, 0, numbers);
    average_windows(r, texts->n, *rows);
    *out = (qkv_matrix){ *rows, texts->n, r->width, r->truncated };
    return QKV_OK;
}

qkv_status qkv__read_texts(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts, qkv__head *head,
                           const void *data, int64_t width, qkv_matrix **out, float **rows)
{
    static const qkv__result_kind kind = { sizeof(qkv_matrix), NULL };
    qkv_encoder_opts o;
    if (!out) return qkv__fail(QKV_USAGE, "texts: a place for the results is needed");
    qkv_matrix *result = qkv__result_begin(*out, &kind);
    if (!result) return qkv_error_status();
    *out = result;
    qkv_status status = QKV__READ_OPTIONS(&o, hooks, opts, "texts");
    const qkv__texts given = { texts, o.pairs, n, o.ids, o.n_ids };
    qkv__reading r = { .m = m, .head = head, .head_data = data, .width = width };
    if (!status) status = read_rows(&r, &given, &o, result, rows);
    qkv__reading_free(&r);
    if (status) qkv__result_clear(result);
    return status;
}

int64_t qkv__likeliest_class(const float *row, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}
