/* asked.c: a text and its target as a request gives them, what the model makes of it, and what its heads attend to. */
#include "asked.h"

#include "../report/attention.h"

#include <qkv/unstable/util.h>

#include "../../src/task/translate.h"

#include <string.h>

enum { MOST_TOKENS = 4096, MOST_BEAM = 16, DEFAULT_BEAM = 4, DEFAULT_TOKENS = 32 };
#define MOST_BYTES ((size_t)1 << 30)

/* ---- the request ---- */

static qkv_status get_target_ids(qkv__asked *a, const qkv__json_value *body)
{
    const qkv__json_value *given = qkv__json_get(body, "target_ids");
    if (!given || qkv__json_is_null(given)) return QKV_OK;
    size_t n = qkv__json_size(given);
    if (!qkv__json_is_array(given) || n > MOST_TOKENS)
        return qkv__fail(QKV_USAGE, "\"target_ids\" must be an array of at most %d ids", MOST_TOKENS);
    if (a->target) return qkv__fail(QKV_USAGE, "\"target\" and \"target_ids\" are given: choose one");
    a->ids_bytes = (n + 1) * sizeof *a->ids;
    if (!(a->ids = qkv__alloc(a->ids_bytes))) return QKV_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const qkv__json_value *id = qkv__json_at(given, i);
        int64_t value = qkv__json_is_int(id) ? qkv__json_int(id) : -1;
        if (value < 0 || value > INT32_MAX) return qkv__fail(QKV_USAGE, "\"target_ids\": element %zu is not an id", i);
        a->ids[i] = (int32_t)value;
    }
    a->n_ids = (int64_t)n;
    a->has_target = true;
    return QKV_OK;
}

static qkv_status get_texts(qkv__asked *a, const qkv__json_value *body)
{
    qkv_status status = qkv__get_string(body, "text", &a->text, &a->length);
    if (!status && !a->text) status = qkv__fail(QKV_USAGE, "\"text\" is missing");
    if (!status) status = qkv__get_string(body, "target", &a->target, &a->target_length);
    return status ? status : get_target_ids(a, body);
}

static qkv_status get_search(qkv__asked *a, const qkv__json_value *body)
{
    int64_t tokens = DEFAULT_TOKENS, seed = 0, top_k = 0;
    a->n_best = 1;
    qkv_status status = qkv__get_whole(body, "n_best", 1, MOST_BEAM, &a->n_best);
    a->beam = a->n_best > DEFAULT_BEAM ? a->n_best : DEFAULT_BEAM;
    if (!status) status = qkv__get_whole(body, "beam", 1, MOST_BEAM, &a->beam);
    if (!status && a->n_best > a->beam)
        status = qkv__fail(QKV_USAGE, "\"n_best\" is %lld, more than the \"beam\" of %lld", (long long)a->n_best,
                           (long long)a->beam);
    if (!status) status = qkv__get_whole(body, "max_tokens", 0, MOST_TOKENS, &tokens);
    if (!status) status = qkv__get_number(body, "temperature", 0, 100, &a->generate.temperature);
    if (!status) status = qkv__get_whole(body, "top_k", 0, INT32_MAX, &top_k);
    if (!status) status = qkv__get_number(body, "top_p", 0, 1, &a->generate.top_p);
    if (!status) status = qkv__get_number(body, "min_p", 0, 1, &a->generate.min_p);
    if (!status) status = qkv__get_whole(body, "seed", INT64_MIN, INT64_MAX, &seed);
    a->generate.max_tokens = tokens;
    a->generate.top_k = (int)top_k;
    a->generate.seed = (uint64_t)seed;
    return status;
}

qkv_status qkv__asked_read(qkv__asked *a, const qkv__json_value *body)
{
    a->special = true;
    qkv_status status = get_texts(a, body);
    if (!status) status = get_search(a, body);
    if (!status) status = qkv__get_flag(body, "special", &a->special);
    return status ? status : qkv__get_flag(body, "pieces", &a->pieces);
}

/* ---- which head ---- */

qkv_status qkv__get_place(const qkv__json_value *body, const char *name, bool may_roll, int *place)
{
    const qkv__json_value *given = qkv__json_get(body, name);
    const char *word = qkv__json_text(given);
    int64_t number = 0;
    if (word && !strcmp(word, "mean")) return *place = QKV__MEAN, QKV_OK;
    if (word && may_roll && !strcmp(word, "rollout")) return *place = QKV__ROLLOUT, QKV_OK;
    if (!given || qkv__json_is_null(given)) return qkv__fail(QKV_USAGE, "\"%s\" is missing", name);
    if (!qkv__json_is_int(given))
        return qkv__fail(QKV_USAGE, "\"%s\" must be a number from 0 or \"mean\"%s", name, may_roll ? " or \"rollout\"" : "");
    qkv_status status = qkv__get_whole(body, name, 0, INT32_MAX, &number);
    *place = (int)number;
    return status;
}

#define QUOTED(constant, name) " \"" name "\""
qkv_status qkv__get_kind(const qkv__json_value *body, int *kind)
{
    const char *name = NULL;
    size_t length;
    qkv_status status = qkv__get_string(body, "kind", &name, &length);
    *kind = QKV__NO_KIND;
    for (qkv_attention_kind k = 0; name && k < QKV_ATTENTION_KINDS; k++)
        if (!strcmp(name, qkv_attention_kind_name(k))) *kind = (int)k;
    if (!status && name && *kind == QKV__NO_KIND)
        status = qkv__fail(QKV_USAGE, "\"kind\" is \"%.40s\": it is one of" QKV_ATTENTION_LIST(QUOTED), name);
    return status;
}

/* ---- the target ---- */

static bool serves_decoder(const qkv__asked *a) { return a->job == QKV__TRANSLATES || a->job == QKV__GENERATES; }

static qkv_status encode_side(const qkv_tokenizer *t, const char *name, const char *text, size_t length, qkv_encoding **ids)
{
    qkv_status status = qkv_tokenizer_encode(t, (qkv_str){ text, length }, NULL, ids);
    if (!status && (*ids)->n > MOST_TOKENS)
        status = qkv__fail(QKV_LIMIT, "\"%s\" has %lld tokens: at most %d are looked at", name, (long long)(*ids)->n,
                           MOST_TOKENS);
    return status;
}

static qkv_status take_ids(qkv__asked *a, const int32_t *ids, int64_t n)
{
    size_t wanted = ((size_t)n + 1) * sizeof *ids;
    if (qkv__grow((void **)&a->ids, &a->ids_bytes, wanted)) return QKV_MEMORY;
    if (n) memcpy(a->ids, ids, (size_t)n * sizeof *ids);
    a->n_ids = n;
    return QKV_OK;
}

static qkv_status translate_source(qkv__asked *a)
{
    const qkv_translate_opts opts = {
        .beam_size = (int)a->beam, .n_best = (int)a->n_best, .max_source = MOST_TOKENS, .hooks = a->generate.hooks
    };
    qkv_status status = qkv_translate(a->model, &(qkv_str){ a->text, a->length }, 1, &opts, &a->found);
    if (status) return status;
    if (a->found->status[0]) return qkv__refuse_source(a->found, 0, "\"text\"");
    if (a->found->best->n_ids < 0) return qkv__fail(QKV_FAILURE, "the search found no translation");
    return take_ids(a, a->found->best->ids, a->found->best->n_ids);
}

static qkv_status generate(qkv__asked *a)
{
    if (!a->generate.max_tokens) return take_ids(a, NULL, 0);
    qkv_status status = qkv_generate(a->model, (qkv_str){ a->text, a->length }, &a->generate, &a->made);
    if (!status && a->made->finish == QKV_FINISH_CANCELLED) status = qkv__fail(QKV_CANCELLED, "generate: cancelled");
    return status ? status : take_ids(a, a->made->ids, a->made->n);
}

qkv_status qkv__asked_find_target(qkv__asked *a)
{
    const qkv_model *m = a->model;
    qkv_encoding *ids = NULL;
    if (!serves_decoder(a) && (a->target || a->n_ids))
        return qkv__fail(QKV_USAGE, "an encoder alone reads one text: there is no target");
    qkv_status status = encode_side(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), "text", a->text, a->length, &ids);
    if (!status && a->target) {
        status = encode_side(qkv_model_tokenizer(m, QKV_SIDE_TARGET), "target", a->target, a->target_length, &ids);
        if (!status) status = take_ids(a, ids->ids, ids->n);
        a->has_target = true;
    }
    qkv_free(ids);
    if (status || a->has_target) return status;
    if (a->job == QKV__TRANSLATES) return translate_source(a);
    return a->job == QKV__GENERATES ? generate(a) : QKV_OK;
}

/* ---- the attention, remembered for the next request ---- */

static qkv_status make_key(const qkv__asked *a, qkv_buffer *key)
{
    const unsigned char flags[] = { a->special, a->pieces };
    qkv_status status = qkv__buffer_put(key, flags, sizeof flags);
    if (!status) status = qkv__buffer_put(key, &a->n_ids, sizeof a->n_ids);
    if (!status && a->n_ids) status = qkv__buffer_put(key, a->ids, (size_t)a->n_ids * sizeof *a->ids);
    if (!status && a->changes) status = qkv__buffer_put(key, a->changes, strlen(a->changes) + 1);
    return status ? status : qkv__buffer_put(key, a->text, a->length);
}

static bool is_same(const qkv_buffer *a, const qkv_buffer *b)
{
    return a->length == b->length && !memcmp(a->data, b->data, a->length);
}

static qkv_status attend_anew(const qkv__asked *a, qkv__remembered *to, const qkv_buffer *key)
{
    const qkv_attend_opts opts = { .target_ids = serves_decoder(a) ? a->ids : NULL,
                                   .n_target_ids = a->n_ids,
                                   .split_characters = a->pieces,
                                   .no_special = !a->special,
                                   .max_bytes = MOST_BYTES };
    qkv__buffer_clear(&to->key);
    qkv_status status = qkv_attend(a->model, (qkv_str){ a->text, a->length }, &opts, &to->attended);
    return status ? status : qkv__buffer_put(&to->key, key->data, key->length);
}

qkv_status qkv__asked_attend(const qkv__asked *a, qkv__remembered *to)
{
    qkv_buffer key = { 0 };
    qkv_status status = make_key(a, &key);
    if (!status && !(to->key.length && is_same(&to->key, &key))) status = attend_anew(a, to, &key);
    qkv_buffer_free(&key);
    return status;
}

/* ---- the answer ---- */

/* The text of the target's ids; those that the tokenizer does not know stand for none. */
static qkv_status decode_target(const qkv__asked *a, qkv_text **out)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(a->model, QKV_SIDE_TARGET);
    qkv_text *bytes = NULL;
    int32_t *known = qkv__alloc(a->ids_bytes);
    int64_t n = 0;
    if (!known) return QKV_MEMORY;
    for (int64_t i = 0; i < a->n_ids; i++)
        if (a->ids[i] < qkv_tokenizer_vocab_size(t)) known[n++] = a->ids[i];
    qkv_status status = qkv_tokenizer_decode(t, known, n, QKV_DECODE_SKIP_SPECIAL, &bytes);
    if (!status) status = qkv_utf8_repair((qkv_str){ bytes->data, bytes->length }, out);
    qkv_free(bytes);
    qkv__release(known, a->ids_bytes);
    return status;
}

static qkv_status put_translations(const qkv__asked *a, qkv__json *j)
{
    qkv_text *text = NULL;
    qkv_status status = a->has_target ? decode_target(a, &text) : QKV_OK;
    qkv__put_raw(j, "{\"translations\":[");
    if (a->has_target && !status) qkv__put_translation(j, text->data, text->length, NULL, a->ids, a->n_ids);
    for (int i = 0; !a->has_target && a->found && i < a->found->n_best; i++) {
        const qkv_translation *x = &a->found->best[i];
        if (x->n_ids < 0) break;
        if (i) qkv__put_raw(j, ",");
        qkv__put_translation(j, x->text.data, x->text.length, &x->score, x->ids, x->n_ids);
    }
    qkv__put_raw(j, "]}");
    qkv_free(text);
    return status;
}

static qkv_status put_classes(const qkv__asked *a, qkv__json *j)
{
    qkv_matrix *rows = NULL;
    qkv_status status = qkv_classify(a->model, &(qkv_str){ a->text, a->length }, 1, NULL, &rows);
    qkv__put_raw(j, "{");
    if (!status) qkv__put_classes(j, a->model, rows->data, rows->width);
    qkv__put_raw(j, "}");
    qkv_free(rows);
    return status;
}

static qkv_status put_continuation(const qkv__asked *a, qkv__json *j)
{
    qkv_text *text = NULL;
    qkv_status status = a->has_target ? decode_target(a, &text) : QKV_OK;
    qkv__put_raw(j, "{\"text\":");
    if (!a->has_target) qkv__put_string(j, a->made ? a->made->text.data : "", a->made ? a->made->text.length : 0);
    else if (!status) qkv__put_string(j, text->data, text->length);
    qkv__put_raw(j, ",\"ids\":");
    qkv__put_ids(j, a->ids, a->n_ids);
    qkv__put_raw(j, "}");
    qkv_free(text);
    return status;
}

qkv_status qkv__put_asked_output(const qkv__asked *a, qkv__json *j)
{
    switch (a->job) {
    case QKV__TRANSLATES: return put_translations(a, j);
    case QKV__CLASSIFIES: return put_classes(a, j);
    case QKV__GENERATES: return put_continuation(a, j);
    default: return qkv__put_raw(j, "{}"), QKV_OK;
    }
}

qkv_status qkv__put_overview(const qkv__asked *a, qkv__json *j, const qkv_attention_capture *attended)
{
    qkv__put_raw(j, "{\"task\":");
    qkv__put_name(j, qkv__job_name(a->job));
    qkv__put_raw(j, ",\"text\":");
    qkv__put_string(j, a->text, a->length);
    qkv__put_raw(j, ",\"output\":");
    qkv_status status = qkv__put_asked_output(a, j);
    qkv__put_raw(j, ",\"target_ids\":");
    qkv__put_ids(j, a->ids, a->n_ids);
    qkv__put_raw(j, ",");
    qkv__put_sides(j, attended, -1);
    return status;
}

void qkv__asked_free(qkv__asked *a)
{
    qkv__release(a->ids, a->ids_bytes);
    qkv_free(a->found);
    qkv_free(a->made);
}
