/* attend.c: a model over a text with the weights of every head kept. */
#include "attend.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../base/buffer.h"
#include "../model/special_tokens.h"
#include "../nn/params.h"
#include "../task/translate.h"
#include "../model/model.h"

#include <math.h>
#include <string.h>

#define DEFAULT_BYTES ((size_t)2 << 30)

typedef struct job {
    const qkv_model *m;
    const qkv__transformer *transformer;
    const qkv_config *t;
    const qkv_tokenizer *source, *target;
    qkv_attend_opts o;
    qkv__special_tokens f;
    qkv__capture *to;
} job;

static bool has_encoder(const job *j) { return j->t->encoder_layers > 0; }
static bool has_decoder(const job *j) { return j->t->decoder_layers > 0; }

/* ---- options ---- */

static qkv_status check_target(const job *j)
{
    const qkv_attend_opts *o = &j->o;
    int64_t size = j->t->target_vocab_size ? j->t->target_vocab_size : j->t->vocab_size;
    if (!has_decoder(j) && (o->target.data || o->n_target_ids))
        return qkv__fail(QKV_USAGE, "attend: an encoder alone reads one text: there is no target");
    if (o->target.data && o->target_ids)
        return qkv__fail(QKV_USAGE, "attend: the target is given as text and as ids: choose one");
    if (o->n_target_ids < 0 || (o->n_target_ids && !o->target_ids))
        return qkv__fail(QKV_USAGE, "attend: the ids of the target are missing");
    for (int64_t i = 0; i < o->n_target_ids; i++)
        if (o->target_ids[i] < 0 || o->target_ids[i] >= size)
            return qkv__fail(QKV_USAGE, "attend: id %lld of the target is %d, outside 0..%lld", (long long)i, o->target_ids[i],
                             (long long)size - 1);
    return QKV_OK;
}

static qkv_status find_ends(job *j)
{
    return has_encoder(j) ? qkv__special_tokens_needed(j->m, &j->f) : qkv__special_tokens_of(j->m, &j->f);
}

static qkv_status resolve_attend_options(job *j, qkv_str source)
{
    j->transformer = qkv__model_transformer(j->m);
    j->t = qkv__transformer_config(j->transformer);
    j->source = qkv_model_tokenizer(j->m, QKV_SIDE_SOURCE);
    j->target = qkv_model_tokenizer(j->m, QKV_SIDE_TARGET);
    if (!j->source) return qkv__refuse_without_tokenizer(j->m, "attend");
    if (!j->o.max_bytes) j->o.max_bytes = DEFAULT_BYTES;
    qkv_status status = check_target(j);
    if (status) return status;
    bool is_empty = has_encoder(j) && has_decoder(j) ? qkv__is_blank(source.data, source.length) : !source.length;
    if (is_empty) return qkv__fail(QKV_USAGE, "attend: the text is empty: there is nothing to attend to");
    return find_ends(j);
}

/* ---- limits ---- */

/* Of so many tokens that the encoder reads and the decoder reads. */
static qkv_status check_bytes(const job *j, int64_t source, int64_t read)
{
    double n = (double)source, m = (double)read;
    double cells = (double)j->t->encoder_layers * n * n + (double)j->t->decoder_layers * m * (m + n);
    double bytes = cells * (double)j->t->heads * (double)sizeof(float);
    if (bytes <= (double)j->o.max_bytes) return QKV_OK;
    return qkv__fail(QKV_LIMIT,
                     "attend: the weights of %lld tokens take %.0f MiB, more than the %.0f MiB that are allowed: "
                     "give a shorter text",
                     (long long)(source + read), ceil(bytes / 1048576), (double)j->o.max_bytes / 1048576);
}

/* ---- what the model reads ---- */

static qkv_status put_special_ids(qkv__tokens *to, const qkv_tokenizer *t, const qkv__id_run *run)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < run->n && !status; i++) status = qkv__tokens_put_special(to, t, run->ids[i]);
    return status;
}

/* As qkv_fill_mask() reads it: a mask, however it is spelled, is the token. */
static qkv_status read_masked(job *j, const qkv_buffer *text)
{
    qkv_buffer *spelled = &j->to->more;
    const char *mask = qkv_tokenizer_token(j->source, j->f.ids.mask);
    qkv__buffer_clear(spelled);
    qkv_status status = QKV_OK;
    for (size_t at = 0, n; at < text->length && !status; at += n ? n : 1) {
        n = qkv__mask_at(&j->f, text->data + at, text->length - at);
        status = n ? qkv__buffer_put(spelled, mask, strlen(mask)) : qkv__buffer_put(spelled, text->data + at, 1);
    }
    const qkv_encode_opts opts = { .parse_special = 1 };
    return status ? status : qkv__tokens_put_text(&j->to->source, j->source, spelled->data, spelled->length, &opts);
}

static bool has_mask(const job *j, const qkv_buffer *text)
{
    if (has_decoder(j) || !(qkv__model_get_info(j->m)->can & QKV_CAN_FILL)) return false;
    for (size_t at = 0; at < text->length; at++)
        if (qkv__mask_at(&j->f, text->data + at, text->length - at)) return true;
    return false;
}

static qkv_status read_source(job *j, qkv_str source)
{
    qkv__tokens *to = &j->to->source;
    qkv_buffer *text = &j->to->text;
    qkv_status status = put_special_ids(to, j->source, &j->f.single.before);
    if (!status) status = qkv__utf8_repair(source.data, source.length, text);
    if (!status && has_mask(j, text)) status = read_masked(j, text);
    else if (!status) status = qkv__tokens_put_text(to, j->source, text->data, text->length, NULL);
    if (!status) status = put_special_ids(to, j->source, &j->f.single.after);
    if (!status) status = qkv__check_length(QKV_LIMIT, "attend: the text has", to->n, j->f.max_tokens);
    return status ? status : check_bytes(j, to->n, has_decoder(j));
}

static qkv_status search(job *j)
{
    const qkv_str text = { j->to->text.data, j->to->text.length };
    const qkv_translate_opts opts = { .beam_size = j->o.beam_size,
                                      .length_penalty = j->o.length_penalty,
                                      .max_source = j->to->source.n };
    qkv_status status = qkv_translate(j->m, &text, 1, &opts, &j->to->found);
    if (status) return status;
    const qkv_translations *found = j->to->found;
    if (found->status[0]) return qkv__refuse_source(found, 0, "attend: the text");
    if (found->best->n_ids < 0) return qkv__fail(QKV_FAILURE, "attend: the search found no translation");
    j->to->shown.found = found->best;
    return qkv__tokens_put_ids(&j->to->target, j->target, found->best->ids, found->best->n_ids);
}

/* <s>, the target, </s>: what the decoder reads and, one place on, what it chooses. */
static qkv_status read_target(job *j)
{
    qkv__tokens *to = &j->to->target;
    qkv_buffer *text = &j->to->more;
    qkv_status status = qkv__tokens_put_special(to, j->target, j->f.ids.start);
    if (status) return status;
    if (j->o.target_ids) status = qkv__tokens_put_ids(to, j->target, j->o.target_ids, j->o.n_target_ids);
    else if (!j->o.target.data) status = search(j);
    else if (!(status = qkv__utf8_repair(j->o.target.data, j->o.target.length, text)))
        status = qkv__tokens_put_text(to, j->target, text->data, text->length, NULL);
    if (!status) status = qkv__check_length(QKV_LIMIT, "attend: the target with its start has", to->n, j->f.max_tokens);
    if (!status) status = check_bytes(j, j->to->source.n, to->n);
    return status ? status : qkv__tokens_put_special(to, j->target, j->f.ids.end);
}

/* A decoder alone reads both as one text. */
static qkv_status read_document(job *j, qkv_str source)
{
    qkv__tokens *to = &j->to->target;
    qkv_buffer *text = &j->to->text, *more = &j->to->more;
    qkv_status status = put_special_ids(to, j->target, &j->f.single.before);
    if (!status) status = qkv__utf8_repair(source.data, source.length, text);
    if (!status && j->o.target.data) status = qkv__utf8_repair(j->o.target.data, j->o.target.length, more);
    if (!status && j->o.target.data) status = qkv__buffer_put(text, more->data, more->length);
    if (!status) status = qkv__tokens_put_text(to, j->target, text->data, text->length, NULL);
    if (!status) status = qkv__tokens_put_ids(to, j->target, j->o.target_ids, j->o.n_target_ids);
    if (!status && !to->n) return qkv__fail(QKV_USAGE, "attend: the text has no tokens");
    if (!status) status = qkv__check_length(QKV_LIMIT, "attend: the text has", to->n, j->f.max_tokens);
    return status ? status : check_bytes(j, 0, to->n);
}

static qkv_status read_texts(job *j, qkv_str source)
{
    if (!has_encoder(j)) return read_document(j, source);
    qkv_status status = read_source(j, source);
    return status || !has_decoder(j) ? status : read_target(j);
}

static qkv_status make_axes(job *j)
{
    qkv__capture *to = j->to;
    bool has_both = has_encoder(j) && has_decoder(j);
    int64_t read = to->target.n - has_both; /* what is predicted last is not read */
    qkv_status status = QKV_OK;
    if (has_encoder(j)) status = qkv__axis_make(to, &to->source, 0, to->source.n, &j->o, &to->shown.source);
    if (!status && has_decoder(j)) status = qkv__axis_make(to, &to->target, 0, read, &j->o, &to->shown.target);
    if (!status && has_both) status = qkv__axis_make(to, &to->target, 1, read, &j->o, &to->shown.predicted);
    return status;
}

/* ---- the forward ---- */

static qkv_status forward_captured(job *j)
{
    qkv__capture *to = j->to;
    if (!(to->session = qkv_session_new(j->m, &(qkv_session_opts){ .keep_attention = 1 }))) return qkv_error_status();
    qkv_status status = has_encoder(j)
                            ? qkv_session_encode(to->session,
                                                 &(qkv_tokens){ .ids = to->source.ids, .rows = 1, .length = to->source.n })
                            : qkv_session_start(to->session, 1);
    if (status || !has_decoder(j)) return status;
    return qkv_session_read(to->session, to->target.ids, &to->shown.target.n_tokens, QKV_LOGITS_NONE);
}

static qkv_status check_finite(const qkv_tensor *map)
{
    const float *weights = qkv_tensor_data(map);
    for (int64_t i = 0; i < qkv_tensor_count(map); i++)
        if (!isfinite(weights[i])) return qkv__fail(QKV_NUMERIC, "attend: the model's attention is not finite");
    return QKV_OK;
}

static qkv_status find_maps(job *j, qkv_attention_kind kind, int layers)
{
    qkv__capture *to = j->to;
    qkv_status status = QKV_OK;
    if (!(to->maps[kind] = qkv__result_alloc(to, sizeof *to->maps[kind] * (size_t)layers))) return QKV_MEMORY;
    for (int l = 0; l < layers && !status; l++) {
        const qkv_tensor *map = qkv_session_attention(to->session, kind, l, 0);
        to->maps[kind][l] = qkv_tensor_data(map);
        status = check_finite(map);
    }
    to->shown.layers[kind] = layers;
    return status;
}

static qkv_status keep_maps(job *j)
{
    int encoder = j->t->encoder_layers, decoder = j->t->decoder_layers, cross = encoder ? decoder : 0;
    int layers = encoder > decoder ? encoder : decoder;
    int64_t *windows = qkv__result_alloc(j->to, sizeof *windows * (size_t)layers);
    if (!windows) return QKV_MEMORY;
    for (int i = 0; i < layers; i++) windows[i] = qkv__has_window(j->t, i) ? j->t->window_size : 0;
    j->to->shown.windows = windows;
    j->to->shown.heads = (int)j->t->heads;
    qkv_status status = find_maps(j, QKV_ATTENTION_ENCODER, encoder);
    if (!status) status = find_maps(j, QKV_ATTENTION_DECODER, decoder);
    return status ? status : find_maps(j, QKV_ATTENTION_CROSS, cross);
}

/* ---- the call ---- */

static void release_capture(void *result)
{
    qkv__capture *x = result;
    qkv_session_free(x->session);
    qkv__tokens_free(&x->source);
    qkv__tokens_free(&x->target);
    qkv_buffer_free(&x->text);
    qkv_buffer_free(&x->more);
    qkv_free(x->found);
}

qkv_status qkv_attend(const qkv_model *m, qkv_str source, const qkv_attend_opts *opts, qkv_attention_capture **out)
{
    static const qkv__result_kind kind = { sizeof(qkv__capture), release_capture };
    if (!m || !source.data || !out)
        return qkv__fail(QKV_USAGE, "attend: a model, a text and a place for the result are needed");
    job j = { .m = m, .to = qkv__result_begin(*out, &kind) };
    if (!j.to) return qkv_error_status();
    *out = &j.to->shown;
    qkv_status status = QKV__READ_OPTIONS(&j.o, max_bytes, opts, "attend");
    if (!status) status = resolve_attend_options(&j, source);
    if (!status) status = read_texts(&j, source);
    if (!status) status = make_axes(&j);
    if (!status) status = forward_captured(&j);
    if (!status) status = keep_maps(&j);
    if (status) qkv__result_clear(j.to);
    return status;
}
