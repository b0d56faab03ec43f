/* fill.c: the likeliest tokens for the masks in a text. */
#include "../model/special_tokens.h"
#include "texts.h"

#include <qkv/session.h>
#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../tensor/tape.h"
#include "../token/encode.h"
#include "../model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BEST = 5 };

typedef struct filled_work {
    qkv_buffer given;           /* the text, UTF-8 */
    qkv_buffer spelled;         /* the same with every mask as the tokenizer spells it */
    qkv__ids encoded;           /* of that */
    qkv__reader read;           /* with what is around it */
    qkv_buffer shorter, longer; /* of the token before a mask, and of it with a token in the mask's place */
    qkv_buffer token, text;     /* results, before they are kept */
    qkv_span *places;           /* masks in the given text */
    size_t places_bytes;
    int64_t *tokens; /* and their places among the encoded ids */
} filled_work;

typedef struct likely {
    float p;
    int32_t id;
} likely;

typedef struct job {
    const qkv_model *m;
    qkv__special_tokens f;
    int n_best;
    qkv_filled *out;
    filled_work work;
} job;

/* ---- masks in a text ---- */

static qkv_status add_place(job *j, size_t begin, size_t end)
{
    filled_work *w = &j->work;
    if (qkv__grow((void **)&w->places, &w->places_bytes, sizeof *w->places * ((size_t)j->out->masks + 1))) return QKV_MEMORY;
    w->places[j->out->masks++] = (qkv_span){ begin, end };
    return QKV_OK;
}

static qkv_status spell_masks(job *j)
{
    filled_work *w = &j->work;
    const char *text = w->given.data, *spelling = qkv_tokenizer_token(j->f.source, j->f.ids.mask);
    size_t length = w->given.length;
    qkv__buffer_clear(&w->spelled);
    qkv_status status = qkv__buffer_put(&w->spelled, "", 0);
    for (size_t at = 0, n; at < length && !status; at += n) {
        bool is_mask = (n = qkv__mask_at(&j->f, text + at, length - at)) > 0;
        if (!is_mask) n = 1;
        if (is_mask) status = add_place(j, at, at + n);
        if (!status) status = qkv__buffer_put(&w->spelled, is_mask ? spelling : text + at, is_mask ? strlen(spelling) : n);
    }
    if (!status && !j->out->masks) return qkv__fail(QKV_USAGE, "fill: the text has no mask: write %s", spelling);
    return status;
}

static qkv_status find_masks(job *j)
{
    filled_work *w = &j->work;
    int64_t n = 0;
    if (!(w->tokens = qkv__result_alloc(j->out, sizeof *w->tokens * (size_t)j->out->masks))) return QKV_MEMORY;
    for (size_t i = 0; i < w->encoded.n; i++) {
        if (w->encoded.ids[i] != j->f.ids.mask) continue;
        if (n < j->out->masks) w->tokens[n] = (int64_t)i;
        n++;
    }
    if (n == j->out->masks) return QKV_OK;
    return qkv__fail(QKV_USAGE, "fill: the tokenizer reads %lld of the %lld masks as a mask: put spaces around each",
                     (long long)n, (long long)j->out->masks);
}

static qkv_status read_masked_text(job *j, qkv_str text)
{
    filled_work *w = &j->work;
    qkv_status status = qkv__utf8_repair(text.data, text.length, &w->given);
    if (!status) status = spell_masks(j);
    const qkv_encode_opts opts = { .parse_special = 1 };
    if (!status) status = qkv__encode(j->f.source, w->spelled.data, w->spelled.length, &opts, &w->encoded);
    if (!status) status = find_masks(j);
    qkv__reader_clear(&w->read);
    if (!status) status = qkv__reader_put(&w->read, &j->f.single.before);
    if (!status) status = qkv__reader_add(&w->read, w->encoded.ids, w->encoded.n);
    if (!status) status = qkv__reader_put(&w->read, &j->f.single.after);
    return status ? status : qkv__check_length(QKV_LIMIT, "fill: the text has", w->read.n, j->f.max_tokens);
}

/* ---- the text with a token in a mask's place ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* What a token adds behind the one before it, which says whether it starts a word. */
static qkv_status decode_filling(job *j, int64_t at, int32_t id)
{
    filled_work *w = &j->work;
    const qkv_tokenizer *t = j->f.source;
    int32_t both[] = { at ? w->encoded.ids[at - 1] : -1, id };
    size_t before = at && !qkv_tokenizer_is_special(t, both[0]), same = 0;
    qkv_status status = qkv__decode(t, both + 1 - before, before, 0, &w->shorter);
    if (!status) status = qkv__decode(t, both + 1 - before, before + 1, 0, &w->longer);
    if (status) return status;
    while (same < w->shorter.length && same < w->longer.length && w->shorter.data[same] == w->longer.data[same]) same++;
    return qkv__utf8_repair(w->longer.data + same, w->longer.length - same, &w->token);
}

/* White space before a mask that is part of no token: a token that continues a word does not have it. */
static size_t loose_space(const job *j, int64_t k)
{
    const filled_work *w = &j->work;
    int64_t at = w->tokens[k];
    size_t end = w->places[k].begin, n = 0, most = 0;
    size_t begin = w->encoded.spans[at].begin;
    while (begin < w->spelled.length && is_space(w->spelled.data[begin])) begin++; /* a mask may take the space before it */
    if (at && w->encoded.spans[at - 1].end < begin) most = begin - w->encoded.spans[at - 1].end;
    while (n < most && n < end && is_space(w->given.data[end - n - 1])) n++;
    return n;
}

static qkv_status fill_in(job *j, int64_t k, likely best, qkv_filling *out)
{
    filled_work *w = &j->work;
    qkv_span place = w->places[k];
    qkv_status status = decode_filling(j, w->tokens[k], best.id);
    if (status) return status;
    const char *token = w->token.data;
    size_t length = w->token.length, cut = w->shorter.length && length && !is_space(*token) ? loose_space(j, k) : 0;
    for (; length && is_space(*token); token++) length--;
    while (length && is_space(token[length - 1])) length--;
    qkv__buffer_clear(&w->text);
    status = qkv__buffer_put(&w->text, w->given.data, place.begin - cut);
    if (!status) status = qkv__buffer_put(&w->text, token, length);
    if (!status) status = qkv__buffer_put(&w->text, w->given.data + place.end, w->given.length - place.end);
    if (status) return status;
    *out = (qkv_filling){ .id = best.id, .p = (double)best.p };
    out->token = qkv__result_copy(j->out, token, length);
    out->text = qkv__result_copy(j->out, w->text.data, w->text.length);
    return out->token.data && out->text.data ? QKV_OK : QKV_MEMORY;
}

/* ---- the model ---- */

static int by_p(const void *a, const void *b)
{
    const likely *x = a, *y = b;
    return x->p != y->p ? (x->p > y->p ? -1 : 1) : (x->id > y->id) - (x->id < y->id);
}

static qkv_status choose_likeliest(job *j, const float *p, int64_t vocabulary, likely *all, qkv_filling *best)
{
    int32_t size = qkv_tokenizer_vocab_size(j->f.source);
    for (int64_t k = 0; k < j->out->masks; k++, p += vocabulary) {
        for (int32_t id = 0; id < size; id++) {
            if (!isfinite(p[id])) return qkv__fail(QKV_NUMERIC, "fill: a probability is not a number");
            all[id] = (likely){ p[id], id };
        }
        qsort(all, (size_t)size, sizeof *all, by_p);
        for (int i = 0; i < j->n_best; i++) {
            qkv_status status = fill_in(j, k, all[i], &best[k * j->n_best + i]);
            if (status) return status;
        }
    }
    return QKV_OK;
}

/* The probabilities at every mask, (masks, vocabulary), which live as the session's results do; NULL with the error set. */
static const float *run_model(job *j, qkv_session *s, int32_t *rows)
{
    const qkv__transformer *x = qkv__model_transformer(j->m);
    int64_t n = j->out->masks;
    for (int64_t k = 0; k < n; k++) rows[k] = (int32_t)(j->work.tokens[k] + j->f.single.before.n);
    if (qkv_session_encode(s, &(qkv_tokens){ .ids = j->work.read.ids, .rows = 1, .length = j->work.read.n })) return NULL;
    qkv_tensor *places = qkv_reshape(qkv_session_encoded(s), 2, (int64_t[]){ j->work.read.n, -1 });
    return places ? qkv_tensor_data(qkv_softmax(qkv__transformer_logits(x, qkv_gather(places->tape, places, rows, 1, &n))))
                  : NULL;
}

static qkv_status fill_masks(job *j)
{
    size_t size = (size_t)qkv_tokenizer_vocab_size(j->f.source), masks = (size_t)j->out->masks, bytes;
    if (!qkv__size_mul(masks, (size_t)j->n_best, &bytes) || !qkv__size_mul(bytes, sizeof(qkv_filling), &bytes))
        return qkv__fail(QKV_LIMIT, "fill: too many results");
    qkv_filling *best = qkv__result_alloc(j->out, bytes);
    qkv_span *places = qkv__result_alloc(j->out, sizeof *places * masks);
    likely *all = qkv__result_alloc(j->out, sizeof *all * size);
    int32_t *rows = qkv__result_alloc(j->out, sizeof *rows * masks);
    if (!best || !places || !all || !rows) return QKV_MEMORY;
    memcpy(places, j->work.places, sizeof *places * masks);
    qkv_session *s = qkv_session_new(j->m, NULL);
    const float *p = s ? run_model(j, s, rows) : NULL;
    qkv_status status = p ? choose_likeliest(j, p, j->f.t->vocab_size, all, best) : qkv_error_status();
    qkv_session_free(s);
    j->out->best = best;
    j->out->places = places;
    return status;
}

/* ---- the call ---- */

static qkv_status resolve_fill(job *j)
{
    const qkv__model_info *info = qkv__model_get_info(j->m);
    if (!(info->can & QKV_CAN_FILL))
        return qkv__fail(QKV_USAGE, "fill: the model has no layer that says which word stands in a mask's place");
    qkv_status status = qkv__special_tokens_needed(j->m, &j->f);
    if (status) return status;
    if (j->f.ids.mask < 0)
        return qkv__fail(QKV_USAGE, "fill: the model's tokenizer has no token " QKV_SPECIAL_BERT_MASK " or " QKV_SPECIAL_MASK);
    j->n_best = (int)qkv__min(j->n_best ? j->n_best : DEFAULT_BEST, qkv_tokenizer_vocab_size(j->f.source));
    j->out->n_best = j->n_best;
    return QKV_OK;
}

static qkv_status fill_text(job *j, qkv_str text, const qkv_fill_opts *given)
{
    qkv_fill_opts o;
    qkv_status status = QKV__READ_OPTIONS(&o, hooks, given, "fill");
    if (status) return status;
    if (!j->m || (!text.data && text.length) || o.n_best < 0)
        return qkv__fail(QKV_USAGE, "fill: a model, a text and a number of results are needed");
    j->n_best = o.n_best;
    status = qkv__cancelled(o.hooks, "fill");
    if (!status) status = resolve_fill(j);
    if (!status) status = read_masked_text(j, text);
    return status ? status : fill_masks(j);
}

qkv_status qkv_fill_mask(const qkv_model *m, qkv_str text, const qkv_fill_opts *opts, qkv_filled **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_filled), NULL };
    if (!out) return qkv__fail(QKV_USAGE, "fill: a place for the results is needed");
    job j = { .m = m, .out = qkv__result_begin(*out, &kind) };
    if (!j.out) return qkv_error_status();
    *out = j.out;
    qkv_status status = fill_text(&j, text, opts);
    if (status) qkv__result_clear(j.out);
    filled_work *w = &j.work;
    qkv_buffer *texts[] = { &w->given, &w->spelled, &w->shorter, &w->longer, &w->token, &w->text };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) qkv_buffer_free(texts[i]);
    qkv__ids_free(&w->encoded);
    qkv__reader_free(&w->read);
    qkv__release(w->places, w->places_bytes);
    return status;
}
