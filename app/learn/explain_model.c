/* explain_model.c: one attention inside a model: the numbers that its forward computes, and the weights they come from. */
#include "explained.h"

#include "../report/attention.h"

#include <qkv/unstable/inspect.h>

#include "../term/errors.h"
#include "../term/language.h"
#include "../../src/model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which attention. */
typedef struct place {
    const qkv_config *o;
    qkv_attention_kind kind;
    int layer, layers;
} place;

static qkv_status find_place(place *at, const explain_input *in, const qkv_attention_capture *a)
{
    char *end = NULL;
    bool both = a->layers[QKV_ATTENTION_CROSS] > 0;
    at->kind = in->kind >= 0                      ? (qkv_attention_kind)in->kind
               : both                             ? QKV_ATTENTION_CROSS
               : a->layers[QKV_ATTENTION_ENCODER] ? QKV_ATTENTION_ENCODER
                                                  : QKV_ATTENTION_DECODER;
    at->layers = a->layers[at->kind];
    if (!at->layers)
        return fail(QKV_USAGE, "--kind %s: %s has no such attention", qkv_attention_kind_name(at->kind), in->model);
    long layer = !in->layer ? 0 : isdigit((unsigned char)*in->layer) ? strtol(in->layer, &end, 10) : -1;
    if (layer < 0 || layer >= at->layers || (end && *end))
        return fail(QKV_USAGE, "--layer %s: give a number from 0 to %d", in->layer, at->layers - 1);
    at->layer = (int)layer;
    return QKV_OK;
}

/* The forward of "qkv forward", with what each attention computes kept. */
static qkv_status run_forward_kept(explained *e, const qkv_model *m, const qkv_attention_capture *a, const place *at,
                                   qkv_projections *out)
{
    const qkv_axis *source = &a->source, *read = &a->target;
    int encoder = at->o->encoder_layers, index = at->layer;
    qkv_tensor *memory = NULL;
    if (encoder)
        memory = qkv_model_encode(m, e->tape,
                                  &(qkv_tokens){ .ids = source->ids, .rows = 1, .length = source->first[source->n] });
    if (at->kind != QKV_ATTENTION_ENCODER)
        qkv_model_decode(m, e->tape, &(qkv_tokens){ .ids = read->ids, .rows = 1, .length = read->first[read->n] }, memory,
                         NULL);
    if (qkv_tape_status(e->tape)) return library_failed();
    if (encoder && at->kind != QKV_ATTENTION_ENCODER) index = encoder + 2 * at->layer + (at->kind == QKV_ATTENTION_CROSS);
    return qkv_tape_projections(e->tape, index, out) ? library_failed() : QKV_OK;
}

/* ---- weights ---- */

/* A weight as (in, out), by its product with the identity: 16-bit ones have no numbers to look at. */
static qkv_tensor *weight_as_matrix(qkv_tape *t, qkv_tensor *weight)
{
    int64_t n = qkv_tensor_dim(weight, 1);
    qkv_tensor *identity = qkv_constant(t, QKV_SHAPE(n, n), NULL);
    for (int64_t i = 0; identity && i < n; i++) qkv_tensor_data_mut(identity)[i * n + i] = 1;
    return qkv_linear_forward(&(qkv_linear){ .weight = weight }, identity);
}

static qkv_tensor *find_weight(qkv_model *m, const place *at, int part, const char *what)
{
    static const char *const parts[PARTS] = { "q", "k", "v", "out" };
    char name[128];
    snprintf(name, sizeof name, "%s.%d.%s.%s.%s", at->kind == QKV_ATTENTION_ENCODER ? "encoder" : "decoder", at->layer,
             at->kind == QKV_ATTENTION_CROSS ? "cross" : "self", parts[part], what);
    return qkv_params_find(qkv_model_params(m), name);
}

static void take_weights(explained *e, qkv_model *m, const place *at)
{
    for (int i = 0; i < PARTS; i++) {
        e->w[i] = weight_as_matrix(e->tape, find_weight(m, at, i, "weight"));
        qkv_tensor *bias = find_weight(m, at, i, "bias");
        if (bias) e->b[i] = qkv_reshape(qkv_on(e->tape, bias), QKV_SHAPE(1, qkv_tensor_count(bias)));
    }
}

/* ---- one head ---- */

/* Part i of n equal ones of the columns. */
static qkv_tensor *columns_of(qkv_tensor *x, int64_t i, int64_t n)
{
    int64_t width = qkv_tensor_dim(x, 1) / n;
    return x ? qkv_slice(x, 1, i * width, (i + 1) * width) : NULL;
}

/* Leaves this head alone, as an attention of one head whose output is what it adds to that of all. */
static void keep_one_head(explained *e, int64_t h)
{
    int64_t of[] = { h, h / (e->heads / e->kv_heads), h / (e->heads / e->kv_heads) };
    int64_t heads[] = { e->heads, e->kv_heads, e->kv_heads }, rows = qkv_tensor_dim(e->w[PART_O], 0) / e->heads;
    qkv_tensor **const projected[] = { &e->q, &e->k, &e->v };
    for (int i = 0; i < 3; i++) {
        *projected[i] = columns_of(*projected[i], of[i], heads[i]);
        e->w[i] = columns_of(e->w[i], of[i], heads[i]);
        e->b[i] = columns_of(e->b[i], of[i], heads[i]);
    }
    e->w[PART_O] = qkv_slice(e->w[PART_O], 0, h * rows, (h + 1) * rows);
    e->b[PART_O] = NULL;
    e->is_part = e->heads > 1;
    e->heads = e->kv_heads = 1;
}

static qkv_status choose_head(explained *e, const char *typed)
{
    char *end = NULL;
    if (typed && !strcmp(typed, "all")) return QKV_OK;
    long long h = !typed ? 0 : isdigit((unsigned char)*typed) ? strtoll(typed, &end, 10) : -1;
    if (h < 0 || h >= e->heads || (end && *end))
        return fail(QKV_USAGE, "--head %s: give a number from 0 to %lld, or all", typed, (long long)e->heads - 1);
    keep_one_head(e, h);
    return QKV_OK;
}

/* ---- words ---- */

static qkv_status name_sides(explained *e, const qkv_attention_capture *a, const place *at)
{
    const qkv_axis *rows = qkv_attention_rows(a, at->kind), *columns = qkv_attention_columns(a, at->kind);
    if (!make_token_list(&e->query_list, rows->names, rows->n) || !make_token_list(&e->key_list, columns->names, columns->n))
        return fail(QKV_MEMORY, "out of memory");
    e->queries = (labels){ .names = e->query_list.names };
    e->keys = e->key_columns = (labels){ .names = e->key_list.names };
    e->words = e->query_list.names;
    e->key_words = e->key_list.names;
    e->is_self = at->kind != QKV_ATTENTION_CROSS;
    return QKV_OK;
}

static void tell_place(explained *e, const explain_input *in, const qkv_attention_capture *a, const place *at)
{
    static const char *const kinds[] = { N_("attention of the encoder to itself"), N_("attention of the decoder to itself"),
                                         N_("attention of the decoder to the source") };
    size_t used = (size_t)snprintf(e->about_text, sizeof e->about_text,
                                   _("%.300s, layer %d of 0 to %d, head %s of 0 to %lld: %s. The text is \"%.200s\"."),
                                   last_part(in->model), at->layer, at->layers - 1, in->head ? in->head : "0",
                                   (long long)at->o->heads - 1, _(kinds[at->kind]), in->text);
    if (a->found && used < sizeof e->about_text)
        snprintf(e->about_text + used, sizeof e->about_text - used, _(" The translation that was found is \"%.200s\"."),
                 a->found->text.data);
    e->about = e->about_text;
    e->x_note = at->o->pre_norm ? _("What this attention reads, after the norm before it: a row of numbers for each token.")
                                : _("What this attention reads: a row of numbers for each token.");
}

/* ---- all of it ---- */

static qkv_tensor *as_matrix(qkv_tensor *x) { return qkv_reshape(x, QKV_SHAPE(qkv_tensor_dim(x, 1), qkv_tensor_dim(x, 2))); }

static qkv_status take_projections(explained *e, const qkv_projections *p, const place *at)
{
    e->x = as_matrix(p->x);
    if (at->kind == QKV_ATTENTION_CROSS) e->y = as_matrix(p->y);
    e->q = as_matrix(p->q);
    e->k = as_matrix(p->k);
    e->v = as_matrix(p->v);
    e->heads = at->o->heads;
    e->kv_heads = at->o->kv_heads ? at->o->kv_heads : e->heads;
    e->mask.causal = at->kind == QKV_ATTENTION_DECODER;
    e->is_turned = at->o->positions == QKV_POSITION_ROPE && e->is_self;
    return qkv_tape_status(e->tape) ? library_failed() : QKV_OK;
}

/* The steps that are shown are the paper's. */
static qkv_status check_is_plain(const qkv_config *o)
{
    if (!o->window_size && !o->qk_norm && o->score_softcap == 0 && o->attention_scale == 0) return QKV_OK;
    return fail(QKV_UNSUPPORTED,
                "attention of this model has a window, a cap, a scale or norms of its own, which explain does not "
                "show: see its weights with \"qkv attend\"");
}

static qkv_status explain_captured(explained *e, const explain_input *in, qkv_model *m, const qkv_attention_capture *a)
{
    qkv_projections p;
    qkv_config config = { .size = sizeof config };
    qkv_model_config(m, &config);
    place at = { .o = &config };
    qkv_status status = check_is_plain(at.o);
    if (!status) status = find_place(&at, in, a);
    if (!status) status = name_sides(e, a, &at);
    if (!status) status = run_forward_kept(e, m, a, &at, &p);
    if (!status) status = take_projections(e, &p, &at);
    if (status) return status;
    take_weights(e, m, &at);
    status = choose_head(e, in->head);
    if (!status && in->token) status = find_token(in->token, &e->query_list, e->query_list.n, &e->token);
    tell_place(e, in, a, &at);
    return status ? status : compute_explained(e);
}

/* For the encoder alone no translation is searched for: an empty target will do. */
static const char *target_to_read(const explain_input *in, const qkv_model *m)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    bool needs_none = in->kind == QKV_ATTENTION_ENCODER && o.encoder_layers && o.decoder_layers;
    return !in->target && needs_none ? "" : in->target;
}

qkv_status explain_model(explained *e, const explain_input *in, qkv_model *m)
{
    qkv_attention_capture *a = NULL;
    const qkv_attend_opts opts = { .target = qkv_cstr(target_to_read(in, m)), .split_characters = 1 };
    qkv_status status = qkv_attend(m, qkv_cstr(in->text), &opts, &a);
    status = status ? library_failed() : explain_captured(e, in, m, a);
    qkv_free(a);
    return status;
}
