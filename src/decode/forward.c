/* forward.c: tokens that join the rows of a session. */
#include "forward.h"

#include "../base/memory.h"
#include "../tensor/tape.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 512 }; /* tokens of a forward: more than that fills no cache better */

/* What is kept of a layer must outlive it. */
static qkv_tape *layer_tape_of(const qkv_session *s) { return qkv__session_keeps(s) ? NULL : s->layer_tape; }

/* ---- positions ---- */

/* Positions 0 .. n-1 of the paper's sinusoids, computed once. */
static qkv_status need_sinusoids(qkv_session *s, int64_t n)
{
    const qkv_transformer_opts *o = &s->x->o;
    if (n <= s->n_sinusoids) return QKV_OK;
    n = qkv__round_up(n, 64);
    float *all = qkv__alloc(sizeof *all * (size_t)(n * o->dim));
    qkv_tape *t = all ? qkv_tape_new(&(qkv_tape_opts){ .no_grad = 1 }) : NULL;
    int64_t more = n - s->n_sinusoids;
    qkv_tensor *table = t ? qkv__sinusoid(t, s->n_sinusoids, more, o->dim, o->positions) : NULL;
    if (table) {
        if (s->sinusoid) memcpy(all, s->sinusoid, sizeof *all * (size_t)(s->n_sinusoids * o->dim));
        memcpy(all + s->n_sinusoids * o->dim, qkv_data(table), sizeof *all * (size_t)(more * o->dim));
        qkv__release(s->sinusoid, sizeof *all * (size_t)(s->n_sinusoids * o->dim));
        s->sinusoid = all;
        s->n_sinusoids = n;
    } else qkv__release(all, sizeof *all * (size_t)(n * o->dim));
    qkv_tape_free(t);
    return table ? QKV_OK : qkv_error_status();
}

static qkv_tensor *sinusoids_at(qkv_session *s, const int32_t *positions, int64_t n)
{
    int64_t dim = s->x->o.dim, last = 0;
    for (int64_t i = 0; i < n; i++) last = qkv__max(last, positions[i]);
    if (need_sinusoids(s, last + 1)) return qkv__error_below(s->tape);
    qkv_tensor *y = qkv__result(s->tape, 3, (int64_t[]){ n, 1, dim }, NULL, 0, NULL);
    for (int64_t i = 0; y && i < n; i++)
        memcpy(qkv_data(y) + i * dim, s->sinusoid + positions[i] * dim, sizeof(float) * (size_t)dim);
    return y;
}

/* What is added to the embedding of tokens at these positions, learned or sinusoids. */
static qkv_tensor *positions_at(qkv_session *s, const int32_t *positions, int64_t n)
{
    const qkv_positions *learned = &qkv__session_decoder(s)->positions;
    if (learned->weight) return qkv_embed_forward(&(qkv_embed){ learned->weight }, s->tape, positions, n, 1);
    return sinusoids_at(s, positions, n);
}

/* ---- a forward ---- */

/* The tokens of one forward; everything it points to is on the tape. */
typedef struct block {
    int64_t tokens, rows;
    qkv__session_row **of; /* the rows, and what each of them reads */
    qkv__sequence **sequences;
    qkv__paged_part *self, *cross;
    int32_t *ids, *positions;
    int64_t *wanted; /* tokens whose logits are wanted */
    int64_t n_wanted;
} block;

static bool start_block(qkv_session *s, block *b, int64_t tokens)
{
    size_t rows = (size_t)qkv__min(s->n_rows, tokens), n = (size_t)tokens;
    *b = (block){ .of = qkv__save(s->tape, sizeof *b->of * rows) };
    b->sequences = qkv__save(s->tape, sizeof *b->sequences * rows);
    b->self = qkv__save(s->tape, sizeof *b->self * rows);
    b->cross = s->cross.layers ? qkv__save(s->tape, sizeof *b->cross * rows) : NULL;
    b->ids = qkv__save(s->tape, sizeof *b->ids * n);
    b->positions = qkv__save(s->tape, sizeof *b->positions * n);
    b->wanted = qkv__save(s->tape, sizeof *b->wanted * n);
    return !qkv_tape_status(s->tape);
}

/* Keys that the model's changes hide join those of the row. */
static void hide_touched(const qkv_session *s, const qkv__session_row *r, qkv__paged_part *part)
{
    uint8_t *all = qkv__hidden_keys(s->tape, &s->x->touches, QKV_ATTENTION_DECODER, part->keys, 1);
    if (!all) return;
    for (int64_t i = 0; r->hidden && i < r->read.length; i++) all[i] |= r->hidden[i];
    part->hidden = all;
}

/* The next n tokens of a row. */
static void add_to_block(const qkv_session *s, block *b, qkv__session_row *r, const int32_t *ids, int64_t n, int64_t wanted)
{
    int64_t i = b->rows++, first = s->x->o.first_position;
    b->of[i] = r;
    b->sequences[i] = &r->read;
    b->self[i] = (qkv__paged_part){ .n = n, .keys = r->read.length + n, .pages = r->read.pages, .hidden = r->hidden };
    if (b->cross)
        b->cross[i] = (qkv__paged_part){
            .n = n, .keys = r->source->kept.length, .pages = r->source->kept.pages, .hidden = r->source->hidden
        };
    if (s->x->touches.n) hide_touched(s, r, &b->self[i]);
    for (int64_t k = 0; k < n; k++, b->tokens++) {
        b->ids[b->tokens] = ids[k];
        b->positions[b->tokens] = (int32_t)(first + qkv__moved_position(&s->x->touches, QKV__DECODER, r->read.length + k));
        if (k >= n - wanted) b->wanted[b->n_wanted++] = b->tokens;
    }
}

static qkv_tensor *embed_block(qkv_session *s, const block *b)
{
    const qkv_transformer_opts *o = &s->x->o;
    const qkv__stack *stack = qkv__session_decoder(s);
    qkv_tensor *x = qkv_embed_forward(&stack->embed, s->tape, b->ids, b->tokens, 1);
    if (!o->unscaled) x = qkv_scale(x, sqrtf((float)o->dim));
    if (qkv__adds_positions(o)) x = qkv_add(x, positions_at(s, b->positions, b->tokens));
    return o->embed_norm ? qkv_norm_forward(&stack->embed_norm, x) : x;
}

qkv_tensor *qkv__session_norm(const qkv_session *s, qkv_tensor *x)
{
    return s->x->o.pre_norm ? qkv_norm_forward(&qkv__session_decoder(s)->final_norm, x) : x;
}

/* A layer that is off reads too, so that its keys and values are there when it is on again; what it makes of x is not used. */
static qkv_tensor *read_past_layer(qkv_session *s, const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    size_t bytes = x ? sizeof(float) * (size_t)x->count : 0;
    float *kept = x ? qkv__save(s->tape, bytes) : NULL;
    if (!kept) return NULL;
    memcpy(kept, qkv_data(x), bytes);
    qkv_tensor *y = qkv__layer_forward(l, x, pass);
    if (y) memcpy(qkv_data(y), kept, bytes);
    return y;
}

static int64_t longest_of_block(const block *b)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < b->rows; i++) longest = qkv__max(longest, b->self[i].keys);
    return longest;
}

static qkv_tensor *run_layers(qkv_session *s, const block *b)
{
    const qkv_transformer *m = s->x;
    const qkv__stack *stack = qkv__session_decoder(s);
    qkv__cached_forward f = { .self_cache = &s->self,
                              .cross_cache = &s->cross,
                              .sequences = b->sequences,
                              .self = b->self,
                              .cross = b->cross,
                              .rows = b->rows,
                              .heads_off = s->heads_off };
    qkv__pass pass = { .o = &m->o,
                       .cached = &f,
                       .longest = longest_of_block(b),
                       .layer_tape = layer_tape_of(s),
                       .touches = m->touches,
                       .stack = QKV__DECODER };
    qkv__set_rotary(m, b->positions, &pass);
    qkv_tensor *x = embed_block(s, b);
    for (f.layer = 0; f.layer < stack->n; f.layer++) {
        pass.layer = f.layer;
        const qkv__layer *layer = &stack->layers[f.layer];
        bool is_off = s->layers_off && s->layers_off[f.layer];
        qkv__keep_hidden(s->tape, x);
        qkv__set_relative(m, s->tape, &pass);
        x = is_off ? read_past_layer(s, layer, x, &pass) : qkv__layer_forward(layer, x, &pass);
    }
    if (s->o.keep_hidden) qkv__keep_hidden(s->tape, qkv__session_norm(s, x));
    return x;
}

/* Reads a block; the states whose logits are wanted go to `states`. */
static qkv_status read_block(qkv_session *s, const block *b, float *states)
{
    const int64_t dim = s->x->o.dim;
    qkv_tensor *x = run_layers(s, b);
    if (!x) return qkv_tape_status(s->tape);
    for (int64_t i = 0; i < b->n_wanted; i++)
        memcpy(states + i * dim, qkv_data(x) + b->wanted[i] * dim, sizeof(float) * (size_t)dim);
    for (int64_t i = 0; i < b->rows; i++) b->of[i]->read.length += b->self[i].n;
    s->read_rows = b->rows;
    return QKV_OK;
}

/* ---- reading ---- */

static void fill_block(qkv_session *s, qkv__new_tokens *r, block *b, int64_t most)
{
    while (b->tokens < most) {
        int64_t count = qkv__count_new(r, r->row), n = qkv__min(count - r->done, most - b->tokens);
        bool ends = r->done + n == count;
        int64_t wanted = qkv__max(0, qkv__min(n, r->done + n - (count - qkv__count_wanted(r, r->row))));
        if (n) add_to_block(s, b, &s->rows[r->row], r->ids, n, wanted);
        r->ids += n;
        r->left -= n;
        r->done = ends ? 0 : r->done + n;
        if (ends) r->row++;
    }
}

qkv_status qkv__read_new_tokens(qkv_session *s, qkv__new_tokens *r)
{
    float *states = s->states;
    while (r->left) {
        int64_t tokens = qkv__session_keeps(s) ? r->left : qkv__min(r->left, BLOCK);
        block b;
        qkv_tape_reset(s->tape);
        if (!start_block(s, &b, tokens)) return qkv_tape_status(s->tape);
        fill_block(s, r, &b, tokens);
        qkv_status status = read_block(s, &b, states);
        if (status) return status;
        states += b.n_wanted * s->x->o.dim;
    }
    return QKV_OK;
}
