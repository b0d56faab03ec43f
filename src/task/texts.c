/* texts.c: texts through an encoder, in batches of like lengths. */
#include "texts.h"

#include "../base/size.h"
#include "../tensor/tape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_TEXTS = 32, BATCH_TOKENS = 4096, DEFAULT_LENGTH = 512 };

/* ---- a text's ids ---- */

void qkv__reader_clear(qkv__reader *r) { r->n = 0; }

void qkv__reader_free(qkv__reader *r)
{
    qkv__release(r->ids, r->bytes);
    qkv_ids_free(&r->encoded);
    qkv_text_free(&r->repaired);
    *r = (qkv__reader){ 0 };
}

static qkv_status put_all(qkv__reader *r, const int32_t *ids, size_t n)
{
    size_t bytes;
    if (!qkv__size_add((size_t)r->n, n, &bytes) || !qkv__size_mul(bytes, sizeof *ids, &bytes))
        return qkv__fail(QKV_LIMIT, "texts: too many tokens");
    if (qkv__grow((void **)&r->ids, &r->bytes, bytes)) return QKV_MEMORY;
    if (n) memcpy(r->ids + r->n, ids, sizeof *ids * n);
    r->n += (int64_t)n;
    return QKV_OK;
}

qkv_status qkv__reader_put(qkv__reader *r, int32_t id) { return put_all(r, &id, 1); }

qkv_status qkv__reader_encode(qkv__reader *r, const qkv_tokenizer *t, const char *text, size_t length)
{
    if (qkv_utf8_check(text, length) < length) {
        if (qkv_utf8_repair(text, length, &r->repaired)) return QKV_MEMORY;
        text = r->repaired.data;
        length = r->repaired.length;
    }
    qkv_status status = qkv_tokenizer_encode(t, text, length, NULL, &r->encoded);
    return status ? status : put_all(r, r->encoded.ids, r->encoded.n);
}

static qkv_status settle_length(int64_t *max_length)
{
    if (*max_length < 0) return qkv__fail(QKV_USAGE, "texts: max_length is negative");
    if (!*max_length) *max_length = DEFAULT_LENGTH;
    return QKV_OK;
}

qkv_status qkv__reader_cut(qkv__reader *r, int64_t max_length)
{
    qkv_status status = settle_length(&max_length);
    if (!status) r->n = qkv__min(r->n, max_length);
    return status;
}

qkv_status qkv__find_ends(const qkv_tokenizer *t, int32_t *start, int32_t *end)
{
    if (!t) return qkv__fail(QKV_USAGE, "the model has no tokenizer: it knows ids, not text");
    *start = qkv_tokenizer_find(t, "<s>");
    *end = qkv_tokenizer_find(t, "</s>");
    return *start >= 0 && *end >= 0 ? QKV_OK : qkv__fail(QKV_USAGE, "the tokenizer has no token <s> or no token </s>");
}

/* ---- windows ---- */

/* A stretch of ids, which a batch gives its start and end. */
typedef struct window {
    int64_t text, begin, length;
} window;

typedef struct reading {
    const qkv_model *m;
    const qkv_tokenizer *tokenizer;
    qkv_reading_opts o;
    bool starts; /* <s> comes first */
    int32_t start, end;
    qkv__reader all; /* the ids of every text, one after the other */
    window *windows;
    int64_t n_windows;
    size_t windows_bytes;
    int32_t *batch; /* ids, then lengths */
    size_t batch_bytes;
    int64_t cut;
} reading;

static qkv_status add_window(reading *r, int64_t text, int64_t begin, int64_t length)
{
    if (qkv__grow((void **)&r->windows, &r->windows_bytes, sizeof *r->windows * ((size_t)r->n_windows + 1))) return QKV_MEMORY;
    r->windows[r->n_windows++] = (window){ text, begin, length };
    return QKV_OK;
}

static qkv_status add_windows(reading *r, int64_t text, int64_t begin)
{
    int64_t length = r->all.n - begin, room = qkv__max(r->o.max_length - r->starts, 1);
    qkv_status status = add_window(r, text, begin, qkv__min(length, room));
    r->cut += length > room;
    for (int64_t at = room; r->o.windows && at < length && !status; at += room)
        status = add_window(r, text, begin + at, qkv__min(length - at, room));
    return status;
}

static qkv_status read_text(reading *r, const qkv_texts *x, int64_t i)
{
    int64_t begin = r->all.n;
    const char *text = x->texts[i], *pair = x->pairs ? x->pairs[i] : NULL;
    if (!text) return qkv__fail(QKV_USAGE, "text %lld is NULL", (long long)i);
    qkv_status status = qkv__reader_encode(&r->all, r->tokenizer, text, x->lengths ? x->lengths[i] : strlen(text));
    if (!status && pair) status = qkv__reader_put(&r->all, r->end);
    if (!status && pair)
        status = qkv__reader_encode(&r->all, r->tokenizer, pair, x->pair_lengths ? x->pair_lengths[i] : strlen(pair));
    return status ? status : add_windows(r, i, begin);
}

static int by_length(const void *a, const void *b)
{
    const window *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* ---- batches ---- */

static qkv_status fill_batch(reading *r, const window *w, int64_t rows, int64_t length)
{
    if (qkv__grow((void **)&r->batch, &r->batch_bytes, sizeof *r->batch * (size_t)(rows * (length + 1)))) return QKV_MEMORY;
    for (int64_t b = 0; b < rows; b++) {
        int32_t *to = r->batch + b * length, *at = to;
        if (r->starts) *at++ = r->start;
        if (w[b].length) memcpy(at, r->all.ids + w[b].begin, sizeof *at * (size_t)w[b].length);
        at += w[b].length;
        *at++ = r->end;
        r->batch[rows * length + b] = (int32_t)(at - to);
        while (at < to + length) *at++ = r->end; /* padding, which nothing sees */
    }
    return QKV_OK;
}

static qkv_status run_batch(reading *r, qkv_tape *t, const window *w, int64_t rows, qkv__head *head, const void *data,
                            qkv_rows *out)
{
    int64_t length = w[rows - 1].length + 1 + r->starts;
    qkv_status status = fill_batch(r, w, rows, length);
    if (status) return status;
    const int32_t *lengths = r->batch + rows * length;
    qkv_tape_reset(t);
    qkv_tensor *hidden = qkv_transformer_encode(qkv_model_transformer(r->m), t, r->batch, rows, length, lengths);
    const float *result = qkv_data(head(r->m, hidden, lengths, data));
    if (!result) return qkv_tape_status(t);
    for (int64_t b = 0; b < rows; b++)
        for (int64_t k = 0; k < out->width; k++) {
            float value = result[b * out->width + k];
            if (!isfinite(value)) return qkv__fail(QKV_NUMERIC, "text %lld: the result is not finite", (long long)w[b].text);
            out->data[w[b].text * out->width + k] += value;
        }
    return QKV_OK;
}

static int64_t batch_rows(const window *w, int64_t n)
{
    int64_t rows = 1;
    while (rows < n && rows < BATCH_TEXTS && (w[rows].length + 2) * (rows + 1) <= BATCH_TOKENS) rows++;
    return rows;
}

/* The mean over a text's windows. */
static void divide(const reading *r, qkv_rows *out)
{
    for (int64_t i = 0, k = 0; i < out->n; i++) { /* windows are in the order of texts again */
        int64_t windows = 0;
        for (; k < r->n_windows && r->windows[k].text == i; k++) windows++;
        for (int64_t j = 0; j < out->width && windows > 1; j++) out->data[i * out->width + j] /= (float)windows;
    }
}

static int by_text(const void *a, const void *b)
{
    const window *x = a, *y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (x->text > y->text) - (x->text < y->text);
}

static qkv_status run_all(reading *r, qkv__head *head, const void *data, qkv_rows *out)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 });
    qkv_status status = t ? QKV_OK : qkv_error_status();
    qsort(r->windows, (size_t)r->n_windows, sizeof *r->windows, by_length);
    for (int64_t at = 0, rows; at < r->n_windows && !status; at += rows) {
        rows = batch_rows(r->windows + at, r->n_windows - at);
        status = run_batch(r, t, r->windows + at, rows, head, data, out);
    }
    qkv_tape_free(t);
    if (status) return status;
    qsort(r->windows, (size_t)r->n_windows, sizeof *r->windows, by_text);
    divide(r, out);
    return QKV_OK;
}

/* ---- the call ---- */

static qkv_status settle(reading *r, const qkv_reading_opts *opts)
{
    const qkv_transformer_opts *o = qkv_transformer_options(qkv_model_transformer(r->m));
    if (!o || !o->encoder_layers) return qkv__fail(QKV_USAGE, "texts: the model needs an encoder");
    if (opts) r->o = *opts;
    qkv_status status = settle_length(&r->o.max_length);
    if (status) return status;
    if (o->positions == QKV_LEARNED) r->o.max_length = qkv__min(r->o.max_length, qkv__max(o->longest - 1, 1));
    r->starts = !o->decoder_layers;
    r->tokenizer = qkv_model_source_tokenizer(r->m);
    return qkv__find_ends(r->tokenizer, &r->start, &r->end);
}

qkv_status qkv__read_texts(const qkv_model *m, const qkv_texts *texts, const qkv_reading_opts *opts, qkv__head *head,
                           const void *data, int64_t width, qkv_rows *out)
{
    reading r = { .m = m };
    size_t numbers;
    if (!m || !texts || !out || texts->n < 0 || (texts->n && !texts->texts))
        return qkv__fail(QKV_USAGE, "texts: a model, texts and a place for results are needed");
    if (!qkv__size_mul((size_t)texts->n, (size_t)width, &numbers) || !qkv__size_mul(numbers, sizeof *out->data, &numbers))
        return qkv__fail(QKV_LIMIT, "texts: too many results");
    if (qkv__grow((void **)&out->data, &out->bytes, numbers)) return QKV_MEMORY;
    if (numbers) memset(out->data, 0, numbers);
    out->n = texts->n;
    out->width = width;
    qkv_status status = settle(&r, opts);
    for (int64_t i = 0; i < texts->n && !status; i++) status = read_text(&r, texts, i);
    if (!status && texts->n) status = run_all(&r, head, data, out);
    out->cut = r.cut;
    qkv__reader_free(&r.all);
    qkv__release(r.windows, r.windows_bytes);
    qkv__release(r.batch, r.batch_bytes);
    if (status) out->n = 0;
    return status;
}

void qkv_rows_free(qkv_rows *r)
{
    if (!r) return;
    qkv__release(r->data, r->bytes);
    *r = (qkv_rows){ 0 };
}
