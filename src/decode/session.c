/* session.c: rows of tokens that a decoder has read, with their keys and values. */
#include "session.h"

#include <qkv/unstable/util.h>

#include "../base/memory.h"
#include "../base/options.h"
#include "../tensor/tape.h"
#include "forward.h"
#include "../model/model.h"

#include <string.h>

/* ---- rows ---- */

static void leave_source(qkv_session *s, qkv__kept_source *x)
{
    if (!x || --x->users) return;
    qkv__release(x->hidden, (size_t)x->kept.length);
    qkv__cache_drop(&s->cross, &x->kept);
    qkv__release(x, sizeof *x);
}

static void drop_row(qkv_session *s, qkv__session_row *r)
{
    qkv__cache_drop(&s->self, &r->read);
    leave_source(s, r->source);
    *r = (qkv__session_row){ 0 };
}

static void forget_results(qkv_session *s)
{
    s->logits = NULL;
    s->read_rows = 0;
    qkv_tape_reset(s->tape);
}

static void drop_rows(qkv_session *s, qkv__session_row *rows, int64_t n)
{
    for (int64_t i = 0; i < n; i++) drop_row(s, &rows[i]);
    qkv__release(rows, sizeof *rows * (size_t)n);
}

static void replace_rows(qkv_session *s, qkv__session_row *rows, int64_t n)
{
    drop_rows(s, s->rows, s->n_rows);
    s->rows = rows;
    s->n_rows = n;
}

/* ---- making ---- */

static void set_cache(qkv__cache *c, int64_t layers, const qkv_mha *m)
{
    *c = (qkv__cache){ .layers = layers,
                       .kv_heads = m->kv_heads,
                       .dk = m->k.weight->shape[0] / m->kv_heads,
                       .dv = m->v.weight->shape[0] / m->kv_heads };
}

/* Heads and layers of the decoder that are off in the model. */
static qkv_status apply_edits(qkv_session *s)
{
    const qkv__touches *x = &s->x->touches;
    for (int64_t i = 0; i < x->n; i++) {
        const qkv_edit *edit = &x->list[i];
        if (edit->kind == QKV_ATTENTION_ENCODER) continue;
        if (edit->what == QKV_EDIT_ABLATE_HEAD) {
            if (!s->heads_off && !(s->heads_off = qkv__alloc_zero((size_t)s->n_heads_off))) return QKV_MEMORY;
            s->heads_off[(2 * edit->layer + (edit->kind == QKV_ATTENTION_CROSS)) * s->x->o.heads + edit->head] = 1;
        }
        if (edit->what == QKV_EDIT_ABLATE_LAYER) {
            if (!s->layers_off && !(s->layers_off = qkv__alloc_zero((size_t)s->n_layers))) return QKV_MEMORY;
            s->layers_off[edit->layer] = 1;
        }
    }
    return QKV_OK;
}

qkv_session *qkv_session_new(const qkv_model *m, const qkv_session_opts *opts)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    if (!x) {
        qkv__fail(QKV_USAGE, "session: there is no model");
        return NULL;
    }
    qkv_session_opts o;
    if (QKV__READ_OPTIONS(&o, keep_hidden, opts, "session")) return NULL;
    qkv_session *s = qkv__alloc_zero(sizeof *s);
    if (!s) return NULL;
    s->x = x;
    s->o = o;
    s->dim = x->o.dim;
    s->n_layers = x->stacks[QKV__DECODER].n;
    s->n_heads_off = 2 * s->n_layers * x->o.heads;
    const qkv__layer *first = qkv__session_decoder(s)->layers;
    if (first) set_cache(&s->self, qkv__session_decoder(s)->n, &first->self);
    if (first && x->stacks[QKV__ENCODER].n) set_cache(&s->cross, qkv__session_decoder(s)->n, &first->cross);
    if (apply_edits(s)) return qkv_session_free(s), NULL;
    const qkv_tape_opts tape = { .inference = 1, .keep_attention = s->o.keep_attention, .keep_hidden = s->o.keep_hidden };
    s->tape = qkv_tape_new(&tape);
    s->layer_tape = s->tape ? qkv_tape_new(&(qkv_tape_opts){ .inference = 1 }) : NULL;
    s->encoder_tape = s->layer_tape && x->stacks[QKV__ENCODER].n ? qkv_tape_new(&tape) : NULL;
    if (s->layer_tape && (s->encoder_tape || !x->stacks[QKV__ENCODER].n)) return s;
    qkv_session_free(s);
    return NULL;
}

void qkv_session_free(qkv_session *s)
{
    if (!s) return;
    replace_rows(s, NULL, 0);
    qkv__cache_trim(&s->self);
    qkv__cache_trim(&s->cross);
    qkv__release(s->heads_off, (size_t)s->n_heads_off);
    qkv__release(s->layers_off, (size_t)s->n_layers);
    qkv__release(s->sinusoid, sizeof(float) * (size_t)(s->n_sinusoids * s->dim));
    qkv__release(s->states, s->states_bytes);
    qkv_tape_free(s->tape);
    qkv_tape_free(s->encoder_tape);
    qkv_tape_free(s->layer_tape);
    qkv_tape_free(s->output_tape);
    qkv__drop_spare_tapes(s);
    qkv__packing_free(&s->packing);
    qkv__release(s, sizeof *s);
}

qkv_status qkv_session_start(qkv_session *s, int64_t rows)
{
    if (!s || rows < 0) return qkv__fail(QKV_USAGE, "session: a session and a number of rows from 0 are needed");
    if (s->x->stacks[QKV__ENCODER].n)
        return qkv__fail(QKV_USAGE,
                         "session: the model has an encoder: begin with qkv_session_encode(), not qkv_session_start()");
    size_t bytes;
    qkv__session_row *all = qkv__size_mul((size_t)rows, sizeof *all, &bytes) ? qkv__alloc_zero(bytes) : NULL;
    if (!all) return qkv__fail(QKV_MEMORY, "session: %lld rows are more than there is memory for", (long long)rows);
    forget_results(s);
    replace_rows(s, all, rows);
    return QKV_OK;
}

/* ---- sources ---- */

static qkv_status check_lengths(const int32_t *lengths, int64_t rows, int64_t length)
{
    for (int64_t i = 0; lengths && i < rows; i++)
        if (lengths[i] < 0 || lengths[i] > length)
            return qkv__fail(QKV_USAGE, "session: source %lld has %d tokens, expected 0 to %lld", (long long)i, lengths[i],
                             (long long)length);
    return QKV_OK;
}

static qkv_status make_sources(qkv_session *s, qkv__session_row *rows, int64_t n, int64_t length, const int32_t *lengths)
{
    for (int64_t i = 0; i < n; i++) {
        qkv__kept_source *x = rows[i].source = qkv__alloc_zero(sizeof *x);
        if (!x) return QKV_MEMORY;
        x->users = 1;
        qkv_status status = s->cross.layers ? qkv__cache_reserve(&s->cross, &x->kept, lengths ? lengths[i] : length) : QKV_OK;
        if (status) return status;
    }
    return QKV_OK;
}

/* What the model's changes hide of a source. */
static qkv_status hide_touched_source(qkv_session *s, qkv__kept_source *x)
{
    size_t n = (size_t)x->kept.length;
    const uint8_t *hidden = qkv__hidden_keys(s->encoder_tape, &s->x->touches, QKV_ATTENTION_CROSS, x->kept.length, 1);
    if (!hidden) return qkv_tape_status(s->encoder_tape);
    if (!(x->hidden = qkv__alloc(n))) return QKV_MEMORY;
    memcpy(x->hidden, hidden, n);
    return QKV_OK;
}

/* Keys and values of the encoder's result, for every layer of the decoder. Its rows are `stride` tokens apart; 0: one begins
 * where the other ends. */
static qkv_status project_sources(qkv_session *s, qkv_tensor *memory, qkv__session_row *rows, const qkv_tokens *x,
                                  int64_t stride)
{
    for (int l = 0; l < qkv__session_decoder(s)->n; l++) {
        qkv_tape_reset(s->layer_tape);
        const qkv_mha *cross = &qkv__session_decoder(s)->layers[l].cross;
        qkv_tensor *in = qkv__borrow(s->layer_tape, memory->ndim, memory->shape, qkv__tensor_data(memory)), *kv[2];
        if (!qkv__linear_together((const qkv_linear *const[]){ &cross->k, &cross->v }, 2, in, kv))
            return qkv_tape_status(s->layer_tape);
        for (int64_t i = 0, at = 0, n; i < x->rows; at += stride ? stride : n, i++) {
            n = x->lengths ? x->lengths[i] : x->length;
            qkv__cache_write(&s->cross, &rows[i].source->kept, l, 0, n, qkv_tensor_data(kv[0]) + at * qkv_tensor_dim(kv[0], -1),
                             qkv_tensor_data(kv[1]) + at * qkv_tensor_dim(kv[1], -1));
        }
    }
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < x->rows && !status; i++) {
        rows[i].source->kept.length = x->lengths ? x->lengths[i] : x->length;
        if (s->x->touches.n) status = hide_touched_source(s, rows[i].source);
    }
    return status;
}

/* The encoder's result, and keys and values of it; what is kept of an encoder is kept of padding too. */
static qkv_status encode_sources(qkv_session *s, qkv__session_row *rows, const qkv_tokens *x)
{
    qkv_tape *t = s->encoder_tape;
    qkv_tensor *memory = qkv__session_keeps(s) ? qkv__transformer_encode(s->x, t, x)
                                               : qkv__encode_rows(s->x, t, s->layer_tape, x);
    qkv_status status = memory ? make_sources(s, rows, x->rows, x->length, x->lengths) : qkv_tape_status(t);
    if (!status) status = project_sources(s, memory, rows, x, qkv__session_keeps(s) ? x->length : 0);
    if (status) return status;
    s->encoded = qkv__session_keeps(s) ? memory : qkv__pad_rows(memory, x);
    return s->encoded ? QKV_OK : qkv_tape_status(t);
}

qkv_status qkv_session_encode(qkv_session *s, const qkv_tokens *source)
{
    qkv_tokens own, *x = &own;
    if (QKV__READ_OPTIONS(x, lengths, source, "session")) return QKV_USAGE;
    if (!s || !x->ids || x->rows < 1 || x->length < 1 || !s->x->stacks[QKV__ENCODER].n)
        return qkv__fail(QKV_USAGE, "session: sources need a model with an encoder, ids, and at least 1 row of 1 token");
    if (x->types && !s->x->o.token_types) return qkv__fail(QKV_USAGE, "session: the model's tokens have no types");
    qkv_status status = check_lengths(x->lengths, x->rows, x->length);
    qkv__session_row *all = status ? NULL : qkv__alloc_zero(sizeof *all * (size_t)x->rows);
    if (!all) return status ? status : QKV_MEMORY;
    forget_results(s);
    qkv_tape_reset(s->encoder_tape);
    s->encoded = NULL;
    status = encode_sources(s, all, x);
    if (status) drop_rows(s, all, x->rows);
    else replace_rows(s, all, x->rows);
    return status;
}

qkv_tensor *qkv_session_encoded(const qkv_session *s) { return s ? s->encoded : NULL; }

/* ---- positions ---- */

static qkv_status check_positions(const qkv_session *s, const int64_t *counts)
{
    int64_t most = qkv__max_positions(&s->x->o);
    if (!most) most = INT32_MAX - s->x->o.first_position;
    for (int64_t i = 0; i < s->n_rows; i++) {
        int64_t n = counts ? counts[i] : 1, length = s->rows[i].read.length;
        if (n < 0) return qkv__fail(QKV_USAGE, "session: row %lld is to read %lld tokens", (long long)i, (long long)n);
        if (n > most - length)
            return qkv__fail(QKV_LIMIT, "session: row %lld has %lld tokens and would read %lld more: positions end at %lld",
                             (long long)i, (long long)length, (long long)n, (long long)most);
    }
    return QKV_OK;
}

/* ---- reading ---- */

static void settle_row(void *session, int64_t i, void *scratch)
{
    (void)scratch;
    qkv_session *s = session;
    qkv__cache_settle(&s->self, &s->rows[i].read);
}

/* Of beams that go on from one, each copies a page: a good part of a step, so all threads do it. */
static void settle_rows(qkv_session *s)
{
    int64_t copies = 0;
    for (int64_t i = 0; i < s->n_rows; i++) copies += s->rows[i].read.last_was != NULL;
    if (!copies || !qkv__parallel(s->n_rows, 0, settle_row, s)) return;
    for (int64_t i = 0; i < s->n_rows; i++) settle_row(s, i, NULL); /* without other threads */
}

/* Pages for the new tokens of each row. */
static qkv_status reserve(qkv_session *s, const qkv__new_tokens *r)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < s->n_rows && !status; i++) {
        int64_t n = qkv__count_new(r, i);
        if (n) status = qkv__cache_reserve(&s->self, &s->rows[i].read, n);
    }
    settle_rows(s);
    return status;
}

/* How many tokens, and how many of them give logits. */
static int64_t count_tokens(const qkv_session *s, const qkv__new_tokens *r, int64_t *wanted)
{
    int64_t tokens = 0;
    *wanted = 0;
    for (int64_t i = 0; i < s->n_rows; i++) {
        tokens += qkv__count_new(r, i);
        *wanted += qkv__count_wanted(r, i);
    }
    return tokens;
}

qkv_status qkv__session_set_outputs(qkv_session *s, const int32_t *ids, int64_t n)
{
    const qkv_linear *all = &s->x->output;
    s->outputs = s->biases = (qkv_tensor){ 0 };
    qkv__packing_free(&s->packing);
    s->packing.uses = 0;
    if (!n) return QKV_OK;
    if (!s->output_tape && !(s->output_tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 }))) return qkv_error_status();
    qkv_tape_reset(s->output_tape);
    qkv_tensor *rows = qkv_gather(s->output_tape, all->weight, ids, 1, &n);
    float *biases = rows && all->bias ? qkv__save(s->output_tape, sizeof *biases * (size_t)n) : NULL;
    if (!rows || (all->bias && !biases)) return qkv_tape_status(s->output_tape);
    for (int64_t i = 0; i < n && biases; i++) biases[i] = qkv_tensor_data(all->bias)[ids[i]];
    s->outputs = (qkv_tensor){
        .data = qkv__tensor_data(rows), .count = n * s->dim, .ndim = 2, .shape = { n, s->dim }, .packing = &s->packing
    };
    if (biases) s->biases = (qkv_tensor){ .data = biases, .count = n, .ndim = 1, .shape = { n } };
    return QKV_OK;
}

static qkv_linear output_of(qkv_session *s)
{
    return s->outputs.count ? (qkv_linear){ &s->outputs, s->biases.count ? &s->biases : NULL } : s->x->output;
}

static qkv_status compute_logits(qkv_session *s, int64_t n)
{
    if (!n) return QKV_OK;
    const qkv_linear output = output_of(s);
    if (!qkv__session_keeps(s)) qkv_tape_reset(s->tape);
    qkv_tensor *x = qkv__borrow(s->tape, 2, (int64_t[]){ n, s->x->o.dim }, s->states);
    x = qkv__session_norm(s, x);
    s->logits = x ? qkv__output_logits(s->x, x, &output) : NULL;
    return qkv_tape_status(s->tape);
}

static qkv_status read_rows(qkv_session *s, qkv__new_tokens r)
{
    qkv_status status = check_positions(s, r.counts);
    if (status) return status;
    forget_results(s);
    int64_t wanted;
    r.left = count_tokens(s, &r, &wanted);
    status = qkv__grow((void **)&s->states, &s->states_bytes, sizeof(float) * (size_t)(wanted * s->x->o.dim));
    for (int64_t i = 0; i < s->n_rows; i++) s->rows[i].before = s->rows[i].read.length;
    if (!status) status = reserve(s, &r);
    if (!status) status = qkv__read_new_tokens(s, &r);
    if (!status) status = compute_logits(s, wanted);
    if (!status) return QKV_OK;
    for (int64_t i = 0; i < s->n_rows; i++) qkv__cache_cut(&s->self, &s->rows[i].read, s->rows[i].before);
    forget_results(s);
    return status;
}

qkv_status qkv_session_read(qkv_session *s, const int32_t *ids, const int64_t *counts, qkv_logits logits)
{
    if (!s || (!ids && s->n_rows) || (unsigned)logits > QKV_LOGITS_ALL || !qkv__session_decoder(s)->n)
        return qkv__fail(QKV_USAGE, "session: a model with a decoder, ids, and a kind of logits are needed");
    return read_rows(s, (qkv__new_tokens){ .ids = ids, .counts = counts, .logits = logits });
}

qkv_status qkv__session_read_wanted(qkv_session *s, const int32_t *ids, const int64_t *counts, const int64_t *wanted)
{
    return read_rows(s, (qkv__new_tokens){ .ids = ids, .counts = counts, .wanted = wanted });
}

/* ---- rows again ---- */

/* Row i of the new ones shares what its parent has. */
static qkv_status share_row(qkv__session_row *to, const qkv__session_row *from)
{
    qkv_status status = qkv__cache_share(&to->read, &from->read);
    to->source = from->source;
    if (to->source) to->source->users++;
    return status;
}

/* The first row that comes from a parent takes over what it has; the others share it. */
static qkv_status select_rows(qkv_session *s, qkv__session_row *all, const int64_t *parents, int64_t n, int64_t *heir)
{
    for (int64_t i = 0; i < s->n_rows; i++) heir[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        if (heir[parents[i]] < 0) heir[parents[i]] = i;
        else if (share_row(&all[i], &s->rows[parents[i]])) return QKV_MEMORY;
    }
    for (int64_t i = 0; i < s->n_rows; i++)
        if (heir[i] >= 0) all[heir[i]] = s->rows[i], s->rows[i] = (qkv__session_row){ 0 };
    return QKV_OK;
}

qkv_status qkv_session_select(qkv_session *s, const int64_t *parents, int64_t n)
{
    if (!s || n < 0 || (n && !parents)) return qkv__fail(QKV_USAGE, "session: a session and rows to go on with are needed");
    for (int64_t i = 0; i < n; i++)
        if (parents[i] < 0 || parents[i] >= s->n_rows)
            return qkv__fail(QKV_USAGE, "session: row %lld is to come from row %lld of %lld", (long long)i,
                             (long long)parents[i], (long long)s->n_rows);
    bool same = n == s->n_rows;
    for (int64_t i = 0; i < n && same; i++) same = parents[i] == i;
    forget_results(s);
    if (same) return QKV_OK;
    qkv__session_row *all = qkv__alloc_zero(sizeof *all * (size_t)n);
    int64_t *heir = qkv__alloc(sizeof *heir * (size_t)s->n_rows);
    qkv_status status = all && heir ? select_rows(s, all, parents, n, heir) : QKV_MEMORY;
    qkv__release(heir, sizeof *heir * (size_t)s->n_rows);
    if (!status) replace_rows(s, all, n);
    else if (all) drop_rows(s, all, n);
    return status;
}

qkv_status qkv_session_rewind(qkv_session *s, int64_t row_number, int64_t length)
{
    if (!s || length < 0 || length > qkv_session_length(s, row_number))
        return qkv__fail(QKV_USAGE, "session: row %lld cannot go back to %lld tokens", (long long)row_number,
                         (long long)length);
    forget_results(s);
    qkv__cache_cut(&s->self, &s->rows[row_number].read, length);
    return QKV_OK;
}

void qkv__session_trim(qkv_session *s)
{
    forget_results(s);
    qkv__tape_trim(s->tape);
    qkv__tape_trim(s->layer_tape);
    qkv__drop_spare_tapes(s);
    qkv__cache_trim(&s->self);
    qkv__release(s->states, s->states_bytes);
    s->states = NULL;
    s->states_bytes = 0;
}

/* ---- looking ---- */

qkv_tensor *qkv_session_logits(const qkv_session *s) { return s ? s->logits : NULL; }

int64_t qkv_session_length(const qkv_session *s, int64_t row_number)
{
    return s && row_number >= 0 && row_number < s->n_rows ? s->rows[row_number].read.length : -1;
}

size_t qkv__session_row_bytes(const qkv_session *s, int64_t row_number)
{
    return (size_t)s->rows[row_number].read.n_pages * qkv__cache_page_bytes(&s->self);
}

size_t qkv_session_bytes(const qkv_session *s) { return s ? qkv__cache_bytes(&s->self) + qkv__cache_bytes(&s->cross) : 0; }

static bool has_layer(const qkv_session *s, qkv_attention_kind kind, int layer)
{
    return s && layer >= 0 && layer < qkv__session_decoder(s)->n &&
           (kind == QKV_ATTENTION_DECODER || (kind == QKV_ATTENTION_CROSS && s->cross.layers));
}

/* Kept layer by layer, self before cross, row by row. */
qkv_tensor *qkv_session_attention(const qkv_session *s, qkv_attention_kind kind, int layer, int64_t row_number)
{
    if (kind == QKV_ATTENTION_ENCODER)
        return s && s->encoded && layer >= 0 && layer < s->x->stacks[QKV__ENCODER].n && !row_number
                   ? qkv_tape_attention(s->encoder_tape, layer)
                   : NULL;
    if (!has_layer(s, kind, layer) || row_number < 0 || row_number >= s->read_rows) return NULL;
    int64_t sides = s->cross.layers ? 2 : 1, at = (layer * sides + (kind == QKV_ATTENTION_CROSS)) * s->read_rows + row_number;
    return qkv_tape_attention(s->tape, (int)at);
}

qkv_tensor *qkv_session_hidden(const qkv_session *s, int i) { return s && s->read_rows ? qkv_tape_hidden(s->tape, i) : NULL; }
