/* attend.c: a model over a text with the weights of every head kept. */
#include "attend.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/size.h"
#include "../base/buffer.h"
#include "../model/special_tokens.h"
#include "../nn/params.h"
#include "../task/translate.h"

#include <math.h>
#include <string.h>

#define DEFAULT_BYTES ((size_t)2 << 30)

typedef struct job {
    const qkv_model *m;
    const qkv_transformer *transformer;
    const qkv_config *t;
    const qkv_tokenizer *source, *target;
    qkv_attend_opts o;
    qkv__special_tokens f;
    qkv_attention_capture *out;
    struct qkv_attention_capture_work *work;
} job;

/* A text as the caller gave it; data NULL: none. */
typedef struct given {
    const char *data;
    size_t length;
} given;

static bool has_encoder(const job *j) { return j->t->encoder_layers > 0; }
static bool has_decoder(const job *j) { return j->t->decoder_layers > 0; }

/* ---- options ---- */

static qkv_status check_target(const job *j, given target)
{
    const qkv_attend_opts *o = &j->o;
    int64_t size = j->t->target_vocabulary ? j->t->target_vocabulary : j->t->vocabulary;
    if (!has_decoder(j) && (target.data || o->n_target_ids))
        return qkv__fail(QKV_USAGE, "attend: an encoder alone reads one text: there is no target");
    if (target.data && o->target_ids) return qkv__fail(QKV_USAGE, "attend: the target is given as text and as ids: choose one");
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

static qkv_status resolve_attend_options(job *j, given source, given target)
{
    j->transformer = qkv_model_transformer(j->m);
    j->t = qkv_transformer_options(j->transformer);
    j->source = qkv_model_tokenizer(j->m, QKV_SIDE_SOURCE);
    j->target = qkv_model_tokenizer(j->m, QKV_SIDE_TARGET);
    if (!j->source) return qkv__refuse_without_tokenizer(j->m, "attend");
    if (!j->o.max_bytes) j->o.max_bytes = DEFAULT_BYTES;
    qkv_status status = check_target(j, target);
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
    qkv_buffer *spelled = &j->work->more;
    const char *mask = qkv_tokenizer_token(j->source, j->f.ids.mask);
    qkv__buffer_clear(spelled);
    qkv_status status = QKV_OK;
    for (size_t at = 0, n; at < text->length && !status; at += n ? n : 1) {
        n = qkv__mask_at(&j->f, text->data + at, text->length - at);
        status = n ? qkv__buffer_put(spelled, mask, strlen(mask)) : qkv__buffer_put(spelled, text->data + at, 1);
    }
    const qkv_encode_opts opts = { .specials = 1 };
    return status ? status : qkv__tokens_put_text(&j->work->source, j->source, spelled->data, spelled->length, &opts);
}

static bool has_mask(const job *j, const qkv_buffer *text)
{
    if (has_decoder(j) || !(qkv_model_get_info(j->m)->can & QKV_CAN_FILL)) return false;
    for (size_t at = 0; at < text->length; at++)
        if (qkv__mask_at(&j->f, text->data + at, text->length - at)) return true;
    return false;
}

static qkv_status read_source(job *j, given source)
{
    qkv__tokens *to = &j->work->source;
    qkv_buffer *text = &j->work->text;
    qkv_status status = put_special_ids(to, j->source, &j->f.single.before);
    if (!status) status = qkv_utf8_repair(source.data, source.length, text);
    if (!status && has_mask(j, text)) status = read_masked(j, text);
    else if (!status) status = qkv__tokens_put_text(to, j->source, text->data, text->length, NULL);
    if (!status) status = put_special_ids(to, j->source, &j->f.single.after);
    if (!status) status = qkv__check_length(QKV_LIMIT, "attend: the text has", to->n, j->f.max_tokens);
    return status ? status : check_bytes(j, to->n, has_decoder(j));
}

static qkv_status search(job *j)
{
    qkv_translations *found = &j->work->found;
    const char *text = j->work->text.data;
    const qkv_translate_opts opts = { .beam = j->o.beam,
                                      .length_penalty = j->o.length_penalty,
                                      .max_source = j->work->source.n };
    qkv_status status = qkv_translate(j->m, &text, &j->work->text.length, 1, &opts, found);
    if (status) return status;
    if (found->status[0]) return qkv__refuse_source(found, 0, "attend: the text");
    if (found->best->n_ids < 0) return qkv__fail(QKV_FAILURE, "attend: the search found no translation");
    j->out->found = found->best;
    return qkv__tokens_put_ids(&j->work->target, j->target, found->best->ids, found->best->n_ids);
}

/* <s>, the target, </s>: what the decoder reads and, one place on, what it chooses. */
static qkv_status read_target(job *j, given target)
{
    qkv__tokens *to = &j->work->target;
    qkv_buffer *text = &j->work->more;
    qkv_status status = qkv__tokens_put_special(to, j->target, j->f.ids.start);
    if (status) return status;
    if (j->o.target_ids) status = qkv__tokens_put_ids(to, j->target, j->o.target_ids, j->o.n_target_ids);
    else if (!target.data) status = search(j);
    else if (!(status = qkv_utf8_repair(target.data, target.length, text)))
        status = qkv__tokens_put_text(to, j->target, text->data, text->length, NULL);
    if (!status) status = qkv__check_length(QKV_LIMIT, "attend: the target with its start has", to->n, j->f.max_tokens);
    if (!status) status = check_bytes(j, j->work->source.n, to->n);
    return status ? status : qkv__tokens_put_special(to, j->target, j->f.ids.end);
}

/* A decoder alone reads both as one text. */
static qkv_status read_document(job *j, given source, given target)
{
    qkv__tokens *to = &j->work->target;
    qkv_buffer *text = &j->work->text, *more = &j->work->more;
    qkv_status status = put_special_ids(to, j->target, &j->f.single.before);
    if (!status) status = qkv_utf8_repair(source.data, source.length, text);
    if (!status && target.data) status = qkv_utf8_repair(target.data, target.length, more);
    if (!status && target.data) status = qkv__buffer_put(text, more->data, more->length);
    if (!status) status = qkv__tokens_put_text(to, j->target, text->data, text->length, NULL);
    if (!status) status = qkv__tokens_put_ids(to, j->target, j->o.target_ids, j->o.n_target_ids);
    if (!status && !to->n) return qkv__fail(QKV_USAGE, "attend: the text has no tokens");
    if (!status) status = qkv__check_length(QKV_LIMIT, "attend: the text has", to->n, j->f.max_tokens);
    return status ? status : check_bytes(j, 0, to->n);
}

static qkv_status read_texts(job *j, given source, given target)
{
    qkv__tokens_clear(&j->work->source);
    qkv__tokens_clear(&j->work->target);
    if (!has_encoder(j)) return read_document(j, source, target);
    qkv_status status = read_source(j, source);
    return status || !has_decoder(j) ? status : read_target(j, target);
}

/* ---- sides ---- */

static qkv_status make_sides(job *j)
{
    struct qkv_attention_capture_work *w = j->work;
    qkv_attention_capture *out = j->out;
    int64_t read = w->target.n - (has_encoder(j) && has_decoder(j)); /* what is chosen last is not read */
    qkv_status status = QKV_OK;
    if (has_encoder(j))
        status = qkv__side_make(&w->arena, &w->source, 0, w->source.n, &j->o, &out->source, &w->axes[QKV__SOURCE]);
    if (!status && has_decoder(j))
        status = qkv__side_make(&w->arena, &w->target, 0, read, &j->o, &out->read, &w->axes[QKV__READ]);
    if (!status && has_encoder(j) && has_decoder(j))
        status = qkv__side_make(&w->arena, &w->target, 1, read, &j->o, &out->chosen, &w->axes[QKV__CHOSEN]);
    return status;
}

/* ---- the forward ---- */

static qkv_status forward_captured(job *j)
{
    struct qkv_attention_capture_work *w = j->work;
    qkv_session_free(w->session); /* which may be another model's */
    if (!(w->session = qkv_session_new(j->m, &(qkv_session_opts){ .keep_attention = 1 }))) return qkv_error_status();
    qkv_status status = has_encoder(j) ? qkv_session_encode(w->session, w->source.ids, 1, w->source.n, NULL)
                                       : qkv_session_start(w->session, 1);
    if (status || !has_decoder(j)) return status;
    return qkv_session_read(w->session, w->target.ids, &w->axes[QKV__READ].tokens, QKV_LOGITS_NONE);
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
    struct qkv_attention_capture_work *w = j->work;
    qkv_status status = QKV_OK;
    if (!(w->maps[kind] = qkv__arena_take(&w->arena, sizeof *w->maps[kind] * (size_t)layers))) return QKV_MEMORY;
    for (int l = 0; l < layers && !status; l++) {
        const qkv_tensor *map = qkv_session_attention(w->session, kind, l, 0);
        w->maps[kind][l] = qkv_tensor_data(map);
        status = check_finite(map);
    }
    j->out->layers[kind] = layers;
    return status;
}

static qkv_status keep_windows(job *j)
{
    int layers = j->t->encoder_layers > j->t->decoder_layers ? j->t->encoder_layers : j->t->decoder_layers;
    int64_t *windows = qkv__arena_take(&j->work->arena, sizeof *windows * (size_t)layers);
    if (!windows) return QKV_MEMORY;
    for (int i = 0; i < layers; i++) windows[i] = qkv__has_window(j->t, i) ? j->t->window : 0;
    j->work->windows = windows;
    return QKV_OK;
}

static qkv_status keep_maps(job *j)
{
    int encoder = j->t->encoder_layers, decoder = j->t->decoder_layers, cross = encoder ? decoder : 0;
    j->out->heads = (int)j->t->heads;
    qkv_status status = keep_windows(j);
    if (!status) status = find_maps(j, QKV_ATTENTION_ENCODER, encoder);
    if (!status) status = find_maps(j, QKV_ATTENTION_DECODER, decoder);
    return status ? status : find_maps(j, QKV_ATTENTION_CROSS, cross);
}

/* ---- the call ---- */

static qkv_status capture_attention(job *j, given source, given target)
{
    qkv_status status = resolve_attend_options(j, source, target);
    if (!status) status = read_texts(j, source, target);
    if (!status) status = make_sides(j);
    if (!status) status = forward_captured(j);
    return status ? status : keep_maps(j);
}

qkv_status qkv_attend(const qkv_model *m, const char *source, size_t source_length, const char *target, size_t target_length,
                      const qkv_attend_opts *opts, qkv_attention_capture *out)
{
    if (!m || !source || !out) return qkv__fail(QKV_USAGE, "attend: a model, a text and a place for the result are needed");
    struct qkv_attention_capture_work *work = out->work;
    *out = (qkv_attention_capture){ .work = work };
    qkv_attend_opts o;
    if (QKV__READ_OPTIONS(&o, max_bytes, opts, "attend")) return QKV_USAGE;
    if (!work && !(work = out->work = qkv__alloc_zero(sizeof *work))) return QKV_MEMORY;
    qkv__arena_reset(&work->arena);
    job j = { .m = m, .o = o, .out = out, .work = work };
    qkv_status status = capture_attention(&j, (given){ source, source_length }, (given){ target, target_length });
    if (status) *out = (qkv_attention_capture){ .work = work };
    return status;
}

void qkv_attention_capture_free(qkv_attention_capture *a)
{
    if (!a) return;
    if (a->work) {
        qkv__arena_free(&a->work->arena);
        qkv_session_free(a->work->session);
        qkv__tokens_free(&a->work->source);
        qkv__tokens_free(&a->work->target);
        qkv_buffer_free(&a->work->text);
        qkv_buffer_free(&a->work->more);
        qkv_translations_free(&a->work->found);
        qkv__release(a->work, sizeof *a->work);
    }
    *a = (qkv_attention_capture){ 0 };
}
