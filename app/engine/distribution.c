/* distribution.c: what comes next, and how expected each token was. */
#include "inside.h"

#include <qkv/unstable/util.h>

#include "../../src/decode/sample.h"
#include "../../src/inspect/attend.h"

#include <math.h>
#include <string.h>

enum { MOST_SHOWN = 200 };

qkv_status qkv__put_token_text(qkv__json *j, const qkv_tokenizer *t, int32_t id)
{
    qkv_axis *names = NULL;
    qkv_buffer text = { 0 };
    bool is_special = qkv_tokenizer_is_special(t, id);
    qkv_status status = is_special ? QKV_OK : qkv_token_names(t, &id, 1, &names);
    const char *spelling = is_special ? qkv_tokenizer_token(t, id) : !status && names->n ? names->names[0] : "";
    if (!status) status = qkv__put_unit_name(&text, spelling, strlen(spelling), true);
    qkv__put_string(j, text.data, text.length);
    qkv_free(names);
    qkv_buffer_free(&text);
    return status;
}

qkv_status qkv__put_json_token(qkv__json *j, const qkv_tokenizer *t, int32_t id)
{
    qkv__put_raw(j, "{\"id\":");
    qkv__put_whole(j, id);
    qkv__put_key(j, "token");
    qkv_status status = qkv__put_token_text(j, t, id);
    if (qkv_tokenizer_is_special(t, id)) qkv__put_raw(j, ",\"special\":true");
    return status;
}

/* ---- the tokens of a capture, read by a session ---- */

static qkv_status read_capture(qkv_session *s, const qkv_attention_capture *c, qkv_logits logits)
{
    const qkv_axis *source = &c->source, *read = &c->target;
    int64_t n = read->first[read->n];
    qkv_status status = c->layers[QKV_ATTENTION_ENCODER]
                            ? qkv_session_encode(
                                  s, &(qkv_tokens){ .ids = source->ids, .rows = 1, .length = source->first[source->n] })
                            : qkv_session_start(s, 1);
    return status ? status : qkv_session_read(s, read->ids, &n, logits);
}

/* What is asked, read; s is to be freed in any case. */
static qkv_status read_asked(qkv__engine *e, qkv__asking *a, bool finds, qkv_logits logits,
                             const qkv_attention_capture **capture, qkv_session **s)
{
    qkv_status status = qkv__asking_attend(e, a, finds, true, capture);
    if (status) return status;
    if (!(*s = qkv_session_new(a->asked.model, NULL))) return qkv_error_status();
    return read_capture(*s, *capture, logits);
}

/* ---- next ---- */

/* Ids that never come: special ones, but for those that end a text, and those that stand for nothing. */
static qkv_status forbid_special(const qkv_model *m, qkv__sampler *s)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    qkv_generation *said = NULL;
    qkv_special_tokens special = { .size = sizeof special };
    qkv_status status = qkv_model_special_tokens(m, &special);
    if (!status) status = qkv_model_generation(m, &said);
    for (int32_t id = 0; id < s->vocabulary; id++)
        s->forbidden[id] = id >= qkv_tokenizer_vocab_size(t) || qkv_tokenizer_is_special(t, id);
    if (!status && special.end >= 0) s->forbidden[special.end] = false;
    for (int i = 0; said && i < said->n_ends; i++) s->forbidden[said->ends[i]] = false;
    for (int i = 0; said && i < said->n_banned; i++) s->forbidden[said->banned[i]] = true;
    qkv_free(said);
    return status;
}

/* The probability that a draw gives an id, of candidates that weigh `total` together. */
static double drawn_probability(const qkv__sampler *s, double total, int64_t id)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->candidates[i].id == id) return s->candidates[i].weight / total;
    return 0;
}

static double entropy_in_bits(const float *logits, int64_t n)
{
    double largest = (double)logits[0], sum = 0, weighted = 0;
    for (int64_t i = 1; i < n; i++) largest = fmax(largest, (double)logits[i]);
    for (int64_t i = 0; i < n; i++) {
        double z = (double)logits[i] - largest, p = exp(z);
        sum += p;
        if (p > 0) weighted += p * z;
    }
    return (log(sum) - weighted / sum) / log(2.0);
}

static qkv_status put_next(qkv__json *j, const qkv_model *m, const float *logits, const qkv__sampler *s, int n)
{
    int32_t ids[MOST_SHOWN];
    double p[MOST_SHOWN], total = 0;
    qkv_status status = qkv_top_k(logits, s->vocabulary, n, ids, p);
    if (status) return status;
    for (int64_t i = 0; i < s->n; i++) total += s->candidates[i].weight;
    qkv__put_raw(j, "{\"n\":");
    qkv__put_whole(j, s->vocabulary);
    qkv__put_named_double(j, "entropy", entropy_in_bits(logits, s->vocabulary));
    qkv__put_named_whole(j, "candidates", s->n);
    qkv__put_key(j, "tokens");
    for (int i = 0; i < n && !status; i++) {
        qkv__put_raw(j, i ? "," : "[");
        status = qkv__put_json_token(j, qkv_model_tokenizer(m, QKV_SIDE_TARGET), ids[i]);
        qkv__put_named_double(j, "logit", (double)logits[ids[i]]);
        qkv__put_named_double(j, "p", p[i]);
        qkv__put_named_double(j, "drawn", drawn_probability(s, total, ids[i]));
        qkv__put_raw(j, "}");
    }
    qkv__put_raw(j, "]}");
    return status;
}

static qkv_status answer_from_logits(const qkv_model *m, const qkv__json_value *body, qkv_generate_opts *o,
                                     const qkv_tensor *logits, qkv__json *j)
{
    int64_t vocabulary = qkv_tensor_dim(logits, 1), n = 10;
    qkv__sampler sampler = { 0 };
    qkv_status status = qkv__get_whole(body, "n", 1, MOST_SHOWN, &n);
    if (!status) status = qkv__sampling_resolve_options(o);
    if (!status) status = qkv__sampler_start(&sampler, o, vocabulary);
    if (!status) status = forbid_special(m, &sampler);
    if (!status) status = qkv__sample_candidates(&sampler, qkv_tensor_data(logits), (qkv__history){ 0 });
    if (!status) status = put_next(j, m, qkv_tensor_data(logits), &sampler, (int)(n < vocabulary ? n : vocabulary));
    qkv__sampler_free(&sampler);
    return status;
}

qkv_status qkv__answer_next(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    const qkv_attention_capture *capture;
    qkv_session *s = NULL;
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = read_asked(e, &a, false, QKV_LOGITS_LAST, &capture, &s);
    if (!status) status = answer_from_logits(a.asked.model, body, &a.asked.generate, qkv_session_logits(s), j);
    qkv_session_free(s);
    qkv__asking_end(&a);
    return status;
}

/* ---- surprise ---- */

static int64_t rank_of(const float *logits, int64_t n, int32_t id)
{
    int64_t rank = 0;
    for (int64_t i = 0; i < n; i++) rank += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
    return rank;
}

static qkv_status put_best(qkv__json *j, const qkv_tokenizer *t, const qkv_likely *top, int n)
{
    qkv_status status = QKV_OK;
    qkv__put_key(j, "best");
    qkv__put_raw(j, "[");
    for (int i = 0; i < n && top[i].id >= 0 && !status; i++) {
        if (i) qkv__put_raw(j, ",");
        status = qkv__put_json_token(j, t, top[i].id);
        qkv__put_named_double(j, "p", exp(top[i].log_p));
        qkv__put_raw(j, "}");
    }
    qkv__put_raw(j, "]");
    return status;
}

static qkv_status put_surprise(qkv__json *j, const qkv_tokenizer *t, const float *logits, int64_t vocabulary, int32_t id, int n)
{
    qkv_likely top[MOST_SHOWN];
    double log_p;
    qkv_status status = qkv__score_logits(logits, vocabulary, id, &log_p, top, n);
    if (!status) status = qkv__put_json_token(j, t, id);
    qkv__put_named_double(j, "bits", -log_p / log(2.0));
    qkv__put_named_whole(j, "rank", status ? 0 : rank_of(logits, vocabulary, id));
    if (!status) status = put_best(j, t, top, n);
    qkv__put_raw(j, "}");
    return status;
}

/* Token i of what is expected comes after i + 1 tokens that were read: behind an encoder it is what is chosen, else what is read
 * one place on. */
static qkv_status put_surprises(qkv__json *j, const qkv_model *m, const qkv_attention_capture *c, const qkv_tensor *logits,
                                int n)
{
    bool chooses = c->layers[QKV_ATTENTION_CROSS] > 0;
    const qkv_axis *expected = chooses ? &c->predicted : &c->target;
    int64_t vocabulary = qkv_tensor_dim(logits, 1), skipped = chooses ? 0 : 1;
    qkv_status status = QKV_OK;
    qkv__put_raw(j, "{\"tokens\":[");
    for (int64_t i = skipped; i < expected->first[expected->n] && !status; i++) {
        if (i > skipped) qkv__put_raw(j, ",");
        status = put_surprise(j, qkv_model_tokenizer(m, QKV_SIDE_TARGET), qkv_tensor_data(logits) + (i - skipped) * vocabulary,
                              vocabulary, expected->ids[i], n);
    }
    qkv__put_raw(j, "]}");
    return status;
}

qkv_status qkv__answer_surprise(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    const qkv_attention_capture *capture;
    qkv_session *s = NULL;
    int64_t n = 5;
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = qkv__get_whole(body, "n", 0, MOST_SHOWN, &n);
    if (!status) status = read_asked(e, &a, e->job == QKV__TRANSLATES, QKV_LOGITS_ALL, &capture, &s);
    if (!status) status = put_surprises(j, a.asked.model, capture, qkv_session_logits(s), (int)n);
    qkv_session_free(s);
    qkv__asking_end(&a);
    return status;
}
