/* translate.c: text in, text out: encode, search in batches of like lengths, decode. */
#include <qkv/task.h>
#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../base/buffer.h"
#include "../model/model_info.h"
#include "../model/languages.h"
#include "../decode/batches.h"
#include "translate.h"
#include "../decode/search.h"
#include "../model/model.h"
#include "../token/encode.h"

#include <stdlib.h>
#include <string.h>

/* A batch of either so many sentences or so many tokens, padding included: the caches of a search grow with both. */
enum { BATCH_SENTENCES = 32, BATCH_TOKENS = 2048, DEFAULT_SOURCE = 1024, DEFAULT_BEAM = 4, MOST_BEAM = 1000 };

/* Which text, for sorting. */
typedef struct place {
    int64_t text, length;
} place;

/* Places from `first` on, of which the last is the longest. */
typedef struct batch {
    int64_t first, rows, length;
    int32_t *ids, *lengths; /* (rows, length), (rows) */
    qkv_search_result *found;
} batch;

typedef struct job {
    const qkv_model *m;
    const qkv_tokenizer *source, *target;
    qkv_search_opts search;
    qkv__special_tokens f;
    int32_t first; /* of every translation; -1: any */
    const char *source_prefix;
    qkv_session *attending; /* keeps attention; NULL: not wanted */
    const qkv_hooks *hooks;
    qkv_translations *out;
    qkv_status *status; /* of the result, to be written, and so are the next three */
    const int32_t **source_ids;
    int64_t *n_source;
    qkv_translation *best;
    qkv__ids ids; /* working memory, and so are the next two */
    qkv_buffer repaired, bytes;
    place *places; /* sorted by length */
    batch *batches;
    int64_t n_batches;
} job;

static void *take_from_arena(job *j, int64_t count, size_t size)
{
    size_t bytes;
    if (!qkv__size_mul((size_t)count, size, &bytes)) bytes = SIZE_MAX;
    return qkv__result_alloc(j->out, bytes);
}

static void *copy_to_arena(job *j, const void *from, int64_t count, size_t size)
{
    void *to = take_from_arena(j, count, size);
    if (to && count) memcpy(to, from, (size_t)count * size);
    return to;
}

/* ---- options ---- */

int qkv__usual_beam(const qkv__model_info *info)
{
    return qkv__info_is_published(info) && info->beam ? (int)qkv__min(info->beam, MOST_BEAM) : DEFAULT_BEAM;
}

/* As the files of a published model say; scores are Hugging Face's. */
static void search_as_published(job *j, const qkv_translate_opts *o)
{
    const qkv__model_info *info = j->f.info;
    qkv_search_opts *s = &j->search;
    s->banned = info->banned;
    s->n_banned = info->n_banned;
    s->length_norm = 1;
    if (!o->no_repeat_ngram) s->no_repeat_ngram = info->no_repeat;
}

static qkv_status find_specials(job *j, const qkv_translate_opts *o)
{
    qkv_search_opts *s = &j->search;
    qkv_status status = qkv__special_tokens_needed(j->m, &j->f);
    if (status) return status;
    status = qkv__choose_languages(&j->f, o->source_lang, o->target_lang, &j->first);
    if (status) return status;
    s->start = j->f.ids.start;
    s->end = j->f.ids.end;
    s->pad = j->f.ids.pad < 0 ? s->start : j->f.ids.pad;
    s->ends = j->f.ends;
    s->n_ends = j->f.n_ends;
    if (j->f.is_published) search_as_published(j, o);
    return QKV_OK;
}

/* What the model begins every translation with, and then what the caller does. */
static qkv_status encode_prefix(job *j, const char *prefix)
{
    qkv__ids *ids = &j->ids;
    qkv_status status = qkv__encode(j->target, prefix ? prefix : "", prefix ? strlen(prefix) : 0, NULL, ids);
    if (status == QKV_FORMAT) return qkv__fail(QKV_USAGE, "translate: the prefix is not UTF-8");
    if (status) return status;
    j->search.n_forced = j->first >= 0;
    j->search.n_prefix = (int64_t)ids->n + j->search.n_forced;
    int32_t *all = take_from_arena(j, j->search.n_prefix, sizeof *all);
    if (!all) return QKV_MEMORY;
    if (j->first >= 0) all[0] = j->first;
    if (ids->n) memcpy(all + j->search.n_forced, ids->ids, ids->n * sizeof *all);
    j->search.prefix = all;
    return QKV_OK;
}

/* What stands around a source takes places too. */
static void bound_source(qkv_translations *out, int64_t places, qkv_source_bound by)
{
    int64_t most = qkv__max(places - out->source_around, 0);
    if (places < 1 || most >= out->max_source) return;
    out->max_source = most;
    out->source_bound = by;
}

static void bound_sources(job *j, const qkv_translate_opts *o)
{
    qkv_translations *out = j->out;
    out->max_source = o->max_source ? o->max_source : DEFAULT_SOURCE;
    out->source_around = j->f.single.before.n + j->f.single.after.n;
    out->source_bound = QKV_SOURCE_BOUND_OPTION;
    bound_source(out, j->f.max_tokens, QKV_SOURCE_BOUND_POSITIONS);
    if (j->f.is_published) bound_source(out, j->f.info->context, QKV_SOURCE_BOUND_CONFIG);
}

qkv_status qkv__refuse_source(const qkv_translations *t, int64_t i, const char *what)
{
    static const char *const why[] = {
        [QKV_SOURCE_BOUND_OPTION] = "no more are read at once",
        [QKV_SOURCE_BOUND_POSITIONS] = "the model has positions for no more",
        [QKV_SOURCE_BOUND_CONFIG] = "max_position_embeddings of its config.json allows no more"
    };
    return qkv__fail(QKV_LIMIT, "%s has %lld tokens, more than %lld: %s", what, (long long)(t->n_source[i] - t->source_around),
                     (long long)t->max_source, why[t->source_bound]);
}

static qkv_status resolve_translate_options(job *j, const qkv_translate_opts *o)
{
    const qkv_config *t = qkv__model_config(j->m);
    if (!t || !t->encoder_layers || !t->decoder_layers)
        return qkv__fail(QKV_USAGE, "translate: the model needs an encoder and a decoder");
    if (!(qkv__model_get_info(j->m)->can & QKV_CAN_TRANSLATE))
        return qkv__fail(QKV_UNSUPPORTED, "translate: the model classifies texts: its decoder writes none");
    j->source = qkv_model_tokenizer(j->m, QKV_SIDE_SOURCE);
    j->target = qkv_model_tokenizer(j->m, QKV_SIDE_TARGET);
    if (!j->source) return qkv__refuse_without_tokenizer(j->m, "translate");
    if (o->max_source < 0) return qkv__fail(QKV_USAGE, "translate: max_source is negative");
    const qkv__model_info *info = qkv__model_get_info(j->m);
    const float usual = qkv__length_penalty_of(info), alpha = o->length_penalty != 0 ? o->length_penalty
                                                              : usual < 0            ? 0
                                                                                     : usual;
    j->search = (qkv_search_opts){ .beam_size = o->beam_size ? o->beam_size : (int)qkv__max(qkv__usual_beam(info), o->n_best),
                                   .n_best = o->n_best,
                                   .length_penalty = o->no_length_penalty ? 0 : alpha,
                                   .no_length_penalty = o->no_length_penalty || (o->length_penalty == 0 && usual < 0),
                                   .max_length = o->max_length,
                                   .no_repeat_ngram = o->no_repeat_ngram,
                                   .min_length = o->min_length ? o->min_length : qkv__max(0, info->min_length - 1),
                                   .shortlist = o->shortlist,
                                   .each_candidate = o->each_candidate,
                                   .each_candidate_data = o->each_candidate_data };
    j->source_prefix = o->source_prefix;
    j->hooks = o->hooks;
    j->out->layers = t->decoder_layers;
    j->out->heads = (int)t->heads;
    qkv_status status = find_specials(j, o);
    if (!status) bound_sources(j, o);
    if (!status && (o->target_prefix || j->first >= 0)) status = encode_prefix(j, o->target_prefix);
    if (!status) status = qkv__search_resolve_options(j->m, &j->search);
    if (!status && o->attention && !(j->attending = qkv_session_new(j->m, &(qkv_session_opts){ .keep_attention = 1 })))
        status = qkv_error_status();
    return status;
}

/* ---- sources ---- */

static qkv_status lay_out_results(job *j, int64_t n)
{
    qkv_translations *out = j->out;
    int64_t all;
    if (__builtin_mul_overflow(n, (int64_t)j->search.n_best, &all)) return qkv__fail(QKV_LIMIT, "translate: too many texts");
    out->n_best = j->search.n_best;
    out->status = j->status = take_from_arena(j, n, sizeof *j->status);
    out->source_ids = j->source_ids = take_from_arena(j, n, sizeof *j->source_ids);
    out->n_source = j->n_source = take_from_arena(j, n, sizeof *j->n_source);
    out->best = j->best = take_from_arena(j, all, sizeof *j->best);
    if (!j->status || !j->source_ids || !j->n_source || !j->best) return QKV_MEMORY;
    for (int64_t i = 0; i < all; i++) j->best[i] = (qkv_translation){ .text = { "", 0 }, .n_ids = -1 };
    return QKV_OK;
}

static qkv_status put_prefix(job *j, qkv_str *text)
{
    qkv_buffer *whole = &j->bytes;
    qkv__buffer_clear(whole);
    if (qkv__buffer_put(whole, j->source_prefix, strlen(j->source_prefix)) || qkv__buffer_put(whole, text->data, text->length))
        return QKV_MEMORY;
    *text = (qkv_str){ whole->data, whole->length };
    return QKV_OK;
}

static qkv_status encode_source(job *j, int64_t i, qkv_str text)
{
    qkv__ids *ids = &j->ids;
    const qkv_translations *out = j->out;
    j->status[i] = QKV_OK;
    j->source_ids[i] = NULL;
    j->n_source[i] = 0;
    if (qkv__is_blank(text.data, text.length)) {
        j->best[i * out->n_best] = (qkv_translation){ .text = { "", 0 } };
        return QKV_OK;
    }
    if (qkv_utf8_valid(text.data, text.length) < text.length) {
        if (qkv__utf8_repair(text.data, text.length, &j->repaired)) return QKV_MEMORY;
        text = (qkv_str){ j->repaired.data, j->repaired.length };
    }
    if (j->source_prefix && put_prefix(j, &text)) return QKV_MEMORY;
    qkv_status status = qkv__encode(j->source, text.data, text.length, NULL, ids);
    if (status && status != QKV_LIMIT) return status;
    const qkv__id_run *before = &j->f.single.before, *after = &j->f.single.after;
    j->n_source[i] = (int64_t)ids->n + before->n + after->n;
    if (status || (int64_t)ids->n > out->max_source) return j->status[i] = QKV_LIMIT, QKV_OK;
    if (!j->n_source[i]) { /* nothing that a token stands for, and no end */
        j->best[i * out->n_best] = (qkv_translation){ .text = { "", 0 } };
        return QKV_OK;
    }
    int32_t *to = take_from_arena(j, j->n_source[i] + 1, sizeof *to);
    if (!to) return QKV_MEMORY;
    j->source_ids[i] = to;
    memcpy(to, before->ids, sizeof *to * (size_t)before->n);
    if (ids->n) memcpy(to + before->n, ids->ids, sizeof *to * ids->n);
    memcpy(to + before->n + ids->n, after->ids, sizeof *to * (size_t)after->n);
    return QKV_OK;
}

/* ---- results ---- */

/* A model may have more ids than its tokenizer has tokens: those stand for no text. */
static qkv_status decode_translation(job *j, qkv_translation *x)
{
    int32_t *known = take_from_arena(j, x->n_ids, sizeof *known);
    size_t n = 0;
    if (!known) return QKV_MEMORY;
    for (int64_t i = 0; i < x->n_ids; i++)
        if (x->ids[i] < qkv_tokenizer_vocab_size(j->target)) known[n++] = x->ids[i];
    qkv_status status = qkv__decode(j->target, known, n, 1, &j->bytes);
    if (!status) status = qkv__utf8_repair(j->bytes.data, j->bytes.length, &j->repaired);
    if (status) return status;
    x->text = qkv__result_copy(j->out, j->repaired.data, j->repaired.length);
    return x->text.data ? QKV_OK : QKV_MEMORY;
}

/* The mean of the maps, (rows, columns) each, and of each row but the last which of the first `tokens` columns is the largest. */
static qkv_status align(job *j, qkv_translation *x, int64_t columns, int64_t tokens)
{
    const int64_t rows = x->n_ids + 1, maps = (int64_t)j->out->layers * j->out->heads;
    float *mean = take_from_arena(j, rows * columns, sizeof *mean);
    int64_t *alignment = take_from_arena(j, rows, sizeof *alignment);
    if (!mean || !alignment) return QKV_MEMORY;
    for (int64_t row = 0; row < rows; row++) {
        float *weights = mean + row * columns;
        for (int64_t k = 0; k < columns; k++) {
            double sum = 0;
            for (int64_t map = 0; map < maps; map++) sum += (double)x->attention[(map * rows + row) * columns + k];
            weights[k] = (float)(sum / (double)maps);
        }
        alignment[row] = 0;
        for (int64_t k = 1; k < tokens; k++)
            if (weights[k] > weights[alignment[row]]) alignment[row] = k;
    }
    x->mean_attention = mean;
    x->alignment = alignment;
    return QKV_OK;
}

/* Read once more, by itself: the bits are those of the search, and so is the attention. */
static qkv_status keep_attention(job *j, int64_t i, qkv_translation *x)
{
    int64_t n = x->n_ids + 1, map = j->out->heads * n * j->out->n_source[i];
    int32_t *ids = take_from_arena(j, n, sizeof *ids);
    float *cross = take_from_arena(j, map, sizeof *cross * (size_t)j->out->layers);
    if (!ids || !cross) return QKV_MEMORY;
    ids[0] = j->search.start;
    memcpy(ids + 1, x->ids, sizeof *ids * (size_t)x->n_ids);
    qkv_status status = qkv_session_encode(
        j->attending, &(qkv_tokens){ .ids = j->out->source_ids[i], .rows = 1, .length = j->out->n_source[i] });
    if (!status) status = qkv_session_read(j->attending, ids, &n, QKV_LOGITS_NONE);
    for (int l = 0; l < j->out->layers && !status; l++)
        memcpy(cross + l * map, qkv_tensor_data(qkv_session_attention(j->attending, QKV_ATTENTION_CROSS, l, 0)),
               sizeof *cross * (size_t)map);
    x->attention = cross;
    return status ? status : align(j, x, j->n_source[i], j->n_source[i] - j->out->source_around);
}

static qkv_status keep_translation(job *j, int64_t i, int k, const qkv_hypothesis *h)
{
    qkv_translation *x = &j->best[i * j->out->n_best + k];
    if (h->n < 0) return QKV_OK;
    *x = (qkv_translation){ .text = { "", 0 }, .log_p = h->log_p, .score = h->score, .truncated = h->truncated, .n_ids = h->n };
    if (!(x->ids = copy_to_arena(j, h->ids, h->n, sizeof *h->ids))) return QKV_MEMORY;
    qkv_status status = decode_translation(j, x);
    return status || !j->attending ? status : keep_attention(j, i, x);
}

/* ---- batches ---- */

static int by_source_length(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->text < y->text ? -1 : x->text > y->text;
}

/* The first of n places, sorted by length, which make a batch of so many at most: it is full when it has `tokens`. */
static int64_t batch_size(const place *places, int64_t n, int64_t most, int64_t tokens)
{
    int64_t rows = 0;
    while (rows < n && rows < most && tokens > 0 && (!rows || places[rows].length * (rows + 1) <= BATCH_TOKENS))
        tokens -= places[rows++].length;
    return rows;
}

static qkv_status fill_batch(job *j, batch *b)
{
    const place *places = j->places + b->first;
    b->length = places[b->rows - 1].length;
    b->ids = take_from_arena(j, b->rows * b->length, sizeof *b->ids);
    b->lengths = take_from_arena(j, b->rows, sizeof *b->lengths);
    if (!b->ids || !b->lengths) return QKV_MEMORY;
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t n = places[r].length;
        memcpy(b->ids + r * b->length, j->source_ids[places[r].text], sizeof *b->ids * (size_t)n);
        for (int64_t k = n; k < b->length; k++) b->ids[r * b->length + k] = j->search.pad;
        b->lengths[r] = (int32_t)n;
    }
    return QKV_OK;
}

/* Where each thread has only one, it is tokens that are shared evenly: half the sentences, the longer ones, are more than half
 * the work. */
static qkv_status make_batches(job *j, int64_t n)
{
    int64_t batches = qkv__count_batches(n, BATCH_SENTENCES, j->search.beam_size), most = qkv__ceil_div(n, batches), tokens = 0,
            rows;
    for (int64_t i = 0; i < n; i++) tokens += j->places[i].length;
    if (n <= BATCH_SENTENCES) most = n, tokens = qkv__ceil_div(tokens, batches);
    qkv_status status = QKV_OK;
    if (!(j->batches = take_from_arena(j, n, sizeof *j->batches))) return QKV_MEMORY;
    for (int64_t at = 0; at < n && !status; at += rows) {
        rows = batch_size(j->places + at, n - at, most, tokens);
        j->batches[j->n_batches] = (batch){ .first = at, .rows = rows };
        status = fill_batch(j, &j->batches[j->n_batches++]);
    }
    return status;
}

static void *start_session(void *work) { return qkv_session_new(((const job *)work)->m, NULL); }

static void end_session(void *session) { qkv_session_free(session); }

static qkv_status search_batch(void *work, void *session, int64_t i, qkv_each_step each_step, void *each_step_data)
{
    const job *j = work;
    batch *b = &j->batches[i];
    const qkv_tokens x = { .ids = b->ids, .rows = b->rows, .length = b->length, .lengths = b->lengths };
    return qkv__search_in(session, j->m, &x, &j->search, each_step, each_step_data, &b->found);
}

static qkv_status keep_translations(job *j, const batch *b)
{
    qkv_status status = QKV_OK;
    for (int64_t r = 0; r < b->rows; r++)
        for (int k = 0; k < j->out->n_best && !status; k++)
            status = keep_translation(j, j->places[b->first + r].text, k, &b->found->best[r * j->out->n_best + k]);
    return status;
}

static qkv_status ask_to_cancel(void *work) { return qkv__cancelled(((const job *)work)->hooks, "translate"); }

static qkv_status translate_all(job *j, int64_t n)
{
    int64_t wanted = 0;
    if (!(j->places = take_from_arena(j, n, sizeof *j->places))) return QKV_MEMORY;
    for (int64_t i = 0; i < n; i++)
        if (j->out->source_ids[i]) j->places[wanted++] = (place){ i, j->out->n_source[i] };
    if (wanted) qsort(j->places, (size_t)wanted, sizeof *j->places, by_source_length);
    qkv_status status = make_batches(j, wanted);
    if (!status)
        status = qkv__run_batches(&(qkv__batches){ .n = j->n_batches,
                                                   .work = j,
                                                   .start = start_session,
                                                   .end = end_session,
                                                   .run = search_batch,
                                                   .each_step = ask_to_cancel,
                                                   .each_step_data = j });
    for (int64_t i = 0; i < j->n_batches && !status; i++) status = keep_translations(j, &j->batches[i]);
    for (int64_t i = 0; i < j->n_batches; i++) qkv_free(j->batches[i].found);
    return status;
}

/* ---- the call ---- */

static qkv_status translate_texts(job *j, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts)
{
    qkv_status status = resolve_translate_options(j, opts);
    if (!status) status = lay_out_results(j, n);
    for (int64_t i = 0; i < n && !status; i++) status = encode_source(j, i, texts[i]);
    return status ? status : translate_all(j, n);
}

static qkv_status translate_whole(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *o,
                                  qkv_translations *out)
{
    job j = { .m = m, .out = out, .first = -1 };
    qkv_status status = translate_texts(&j, texts, n, o);
    qkv_session_free(j.attending);
    qkv__ids_free(&j.ids);
    qkv_buffer_free(&j.repaired);
    qkv_buffer_free(&j.bytes);
    return status;
}

static qkv_status translate(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                            qkv_translations *out)
{
    qkv_translate_opts o;
    if (!m || n < 0 || (n && !texts)) return qkv__fail(QKV_USAGE, "translate: a model and texts are needed");
    for (int64_t i = 0; i < n; i++)
        if (!texts[i].data && texts[i].length) return qkv__fail(QKV_USAGE, "translate: text %lld is NULL", (long long)i);
    if (QKV__READ_OPTIONS(&o, hooks, opts, "translate")) return QKV_USAGE;
    o.size = sizeof o;
    if (o.each_candidate && (n > 1 || o.split))
        return qkv__fail(QKV_USAGE, "translate: candidates are told of one text that is not split");
    return o.split && n ? qkv__translate_split(m, texts, n, &o, out) : translate_whole(m, texts, n, &o, out);
}

qkv_status qkv_translate(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                         qkv_translations **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_translations), NULL };
    if (!out) return qkv__fail(QKV_USAGE, "translate: a place for the results is needed");
    qkv_translations *result = qkv__result_begin(*out, &kind);
    if (!result) return qkv_error_status();
    *out = result;
    qkv_status status = translate(m, texts, n, opts, result);
    if (status) qkv__result_clear(result);
    else result->n = n;
    return status;
}
