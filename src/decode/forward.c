/* forward.c: tokens that join the rows of a session. */
#include "forward.h"

#include "../base/memory.h"
#include "../base/pool.h"
#include "../base/status.h"
#include "../tensor/tape.h"
#include "../nn/transformer.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCK = 512,    /* tokens of a forward: more than that fills no cache better */
    PART = 128,     /* of one that has a thread to itself: what is between its layers stays in the thread's cache */
    LEAST_PART = 64 /* with fewer, reading the weights on every thread takes longer than computing */
};
_Static_assert((int)LEAST_PART >= 2 * (int)QKV__PAGE, "a block has a whole page at least: see fill_block()");

/* What is kept of a layer must outlive it. */
static qkv_tape *layer_tape_of(const qkv_session *s) { return qkv__session_keeps(s) ? NULL : s->layer_tape; }

/* ---- positions ---- */

/* Positions 0 .. n-1 of the paper's sinusoids, computed once. */
static qkv_status need_sinusoids(qkv_session *s, int64_t n)
{
    const qkv_config *o = &s->x->o;
    if (n <= s->n_sinusoids) return QKV_OK;
    n = qkv__round_up(n, 64);
    float *all = qkv__alloc(sizeof *all * (size_t)(n * o->dim));
    qkv_tape *t = all ? qkv_tape_new(&(qkv_tape_opts){ .inference = 1 }) : NULL;
    int64_t more = n - s->n_sinusoids;
    qkv_tensor *table = t ? qkv_sinusoid(t, s->n_sinusoids, more, o->dim, o->positions) : NULL;
    if (table) {
        if (s->sinusoid) memcpy(all, s->sinusoid, sizeof *all * (size_t)(s->n_sinusoids * o->dim));
        memcpy(all + s->n_sinusoids * o->dim, qkv_tensor_data(table), sizeof *all * (size_t)(more * o->dim));
        qkv__release(s->sinusoid, sizeof *all * (size_t)(s->n_sinusoids * o->dim));
        s->sinusoid = all;
        s->n_sinusoids = n;
    } else qkv__release(all, sizeof *all * (size_t)(n * o->dim));
    qkv_tape_free(t);
    return table ? QKV_OK : qkv_error_status();
}

static qkv_tensor *sinusoids_at(const qkv_session *s, qkv_tape *t, const int32_t *positions, int64_t n)
{
    int64_t dim = s->x->o.dim;
    qkv_tensor *y = qkv__result(t, 3, (int64_t[]){ n, 1, dim }, NULL, 0, NULL);
    for (int64_t i = 0; y && i < n; i++)
        memcpy(qkv__tensor_data(y) + i * dim, s->sinusoid + positions[i] * dim, sizeof(float) * (size_t)dim);
    return y;
}

/* What is added to the embedding of tokens at these positions, learned or sinusoids. */
static qkv_tensor *positions_at(const qkv_session *s, qkv_tape *t, const int32_t *positions, int64_t n)
{
    const qkv_embedding *learned = &qkv__session_decoder(s)->positions;
    if (learned->weight) return qkv_embedding_forward(&(qkv_embedding){ learned->weight }, t, positions, n, 1);
    return sinusoids_at(s, t, positions, n);
}

/* ---- a forward ---- */

/* The tokens of one forward; everything it points to is on the session's tape. */
typedef struct block {
    int64_t tokens, rows;
    qkv__sequence **sequences; /* of the rows, and what each of them reads */
    qkv__paged_part *self, *cross;
    int32_t *ids, *positions;
    int64_t *wanted;                /* tokens whose states are wanted */
    int64_t n_wanted, first_wanted; /* and how many are before them in s->states */
    qkv__turn turn;                 /* where it runs beside others */
} block;

static bool start_block(qkv_session *s, block *b, int64_t tokens)
{
    size_t rows = (size_t)qkv__min(s->n_rows, tokens), n = (size_t)tokens;
    *b = (block){ .sequences = qkv__save(s->tape, sizeof *b->sequences * rows) };
    b->self = qkv__save(s->tape, sizeof *b->self * rows);
    b->cross = s->cross.layers ? qkv__save(s->tape, sizeof *b->cross * rows) : NULL;
    b->ids = qkv__save(s->tape, sizeof *b->ids * n);
    b->positions = qkv__save(s->tape, sizeof *b->positions * n);
    b->wanted = qkv__save(s->tape, sizeof *b->wanted * n);
    return !qkv_tape_status(s->tape);
}

/* The next n tokens of a row, which has them from now on. */
static void add_to_block(const qkv_session *s, block *b, qkv__session_row *r, const int32_t *ids, int64_t n, int64_t wanted)
{
    int64_t i = b->rows++, first = s->x->o.first_position;
    b->sequences[i] = &r->read;
    b->self[i] = (qkv__paged_part){ .n = n, .keys = r->read.length + n, .pages = r->read.pages };
    if (b->cross)
        b->cross[i] = (qkv__paged_part){
            .n = n, .keys = r->source->kept.length, .pages = r->source->kept.pages, .hidden = r->source->hidden
        };
    if (s->x->touches.n)
        b->self[i].hidden = qkv__hidden_keys(s->tape, &s->x->touches, QKV_ATTENTION_DECODER, b->self[i].keys, 1);
    for (int64_t k = 0; k < n; k++, b->tokens++) {
        b->ids[b->tokens] = ids[k];
        b->positions[b->tokens] = (int32_t)(first + qkv__moved_position(&s->x->touches, QKV__DECODER, r->read.length + k));
        if (k >= n - wanted) b->wanted[b->n_wanted++] = b->tokens;
    }
    r->read.length += n;
}

static qkv_tensor *embed_block(const qkv_session *s, qkv_tape *t, const block *b)
{
    const qkv_config *o = &s->x->o;
    const qkv__stack *stack = qkv__session_decoder(s);
    qkv_tensor *x = qkv_embedding_forward(&stack->embed, t, b->ids, b->tokens, 1);
    if (!o->unscaled) x = qkv_scale(x, sqrtf((float)o->dim));
    if (qkv__adds_positions(o)) x = qkv_add(x, positions_at(s, t, b->positions, b->tokens));
    return o->embed_norm ? qkv_norm_forward(&stack->embed_norm, x) : x;
}

qkv_tensor *qkv__session_norm(const qkv_session *s, qkv_tensor *x)
{
    return s->x->o.pre_norm ? qkv_norm_forward(&qkv__session_decoder(s)->final_norm, x) : x;
}

/* A layer that is off reads too, so that its keys and values are there when it is on again; what it makes of x is not used. */
static qkv_tensor *read_past_layer(const qkv__layer *l, qkv_tensor *x, const qkv__pass *pass)
{
    size_t bytes = x ? sizeof(float) * (size_t)x->count : 0;
    float *kept = x ? qkv__save(x->tape, bytes) : NULL;
    if (!kept) return NULL;
    memcpy(kept, qkv_tensor_data(x), bytes);
    qkv_tensor *y = qkv__layer_forward(l, x, pass);
    if (y) memcpy(qkv__tensor_data(y), kept, bytes);
    return y;
}

static int64_t longest_of_block(const block *b)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < b->rows; i++) longest = qkv__max(longest, b->self[i].keys);
    return longest;
}

static qkv_tensor *run_layers(const qkv_session *s, qkv__read_tapes own, const block *b)
{
    const qkv__transformer *m = s->x;
    const qkv__stack *stack = qkv__session_decoder(s);
    qkv__cached_forward f = { .self_cache = &s->self,
                              .cross_cache = &s->cross,
                              .sequences = b->sequences,
                              .self = b->self,
                              .cross = b->cross,
                              .rows = b->rows,
                              .heads_off = s->heads_off,
                              .turn = b->turn.own ? &b->turn : NULL };
    qkv__pass pass = { .o = &m->o,
                       .cached = &f,
                       .longest = longest_of_block(b),
                       .layer_tape = own.layer_tape,
                       .touches = m->touches,
                       .stack = QKV__DECODER };
    qkv__set_rotary(m, b->positions, &pass);
    qkv_tensor *x = embed_block(s, own.tape, b);
    for (f.layer = 0; f.layer < stack->n; f.layer++) {
        pass.layer = f.layer;
        const qkv__layer *layer = &stack->layers[f.layer];
        bool is_off = s->layers_off && s->layers_off[f.layer];
        qkv__keep_hidden(own.tape, x);
        qkv__set_relative(m, own.tape, &pass);
        x = is_off ? read_past_layer(layer, x, &pass) : qkv__layer_forward(layer, x, &pass);
    }
    if (s->o.keep_hidden) qkv__keep_hidden(own.tape, qkv__session_norm(s, x));
    return x;
}

static qkv_status read_block(const qkv_session *s, qkv__read_tapes own, const block *b)
{
    const int64_t dim = s->x->o.dim;
    qkv_tensor *x = run_layers(s, own, b);
    qkv_status status = qkv_tape_status(own.tape);
    if (status) return status;
    for (int64_t i = 0; i < b->n_wanted; i++)
        memcpy(s->states + (b->first_wanted + i) * dim, qkv_tensor_data(x) + b->wanted[i] * dim, sizeof(float) * (size_t)dim);
    return QKV_OK;
}

/* ---- reading ---- */

/* At most so many tokens, and a row that goes on in the next block ends with a whole page: those of the page that follows may be
 * written while this block reads. */
static void fill_block(qkv_session *s, qkv__new_tokens *r, block *b, int64_t most)
{
    while (b->tokens < most) {
        qkv__session_row *row = &s->rows[r->row];
        int64_t count = qkv__count_new(r, r->row), n = qkv__min(count - r->done, most - b->tokens);
        bool ends = r->done + n == count;
        if (!ends) n -= qkv__min(n, (row->read.length + n) % QKV__PAGE);
        if (!ends && !n) return;
        int64_t wanted = qkv__max(0, qkv__min(n, r->done + n - (count - qkv__count_wanted(r, r->row))));
        if (n) add_to_block(s, b, row, r->ids, n, wanted);
        r->ids += n;
        r->left -= n;
        r->done = ends ? 0 : r->done + n;
        if (ends) r->row++;
    }
}

/* What is looked up of positions is there before a forward begins: several may look. */
static qkv_status need_positions(qkv_session *s, const block *b)
{
    int64_t last = 0;
    if (!qkv__adds_positions(&s->x->o) || qkv__session_decoder(s)->positions.weight) return QKV_OK;
    for (int64_t i = 0; i < b->tokens; i++) last = qkv__max(last, b->positions[i]);
    return need_sinusoids(s, last + 1);
}

static qkv_status next_block(qkv_session *s, qkv__new_tokens *r, int64_t tokens, block *b)
{
    if (!start_block(s, b, tokens)) return qkv_tape_status(s->tape);
    fill_block(s, r, b, tokens);
    b->first_wanted = r->n_wanted;
    r->n_wanted += b->n_wanted;
    s->read_rows = b->rows;
    qkv_status status = qkv_tape_status(s->tape);
    return status ? status : need_positions(s, b);
}

static qkv_status read_next_block(qkv_session *s, qkv__new_tokens *r)
{
    block b;
    qkv_status status = next_block(s, r, qkv__session_keeps(s) ? r->left : qkv__min(r->left, BLOCK), &b);
    return status ? status : read_block(s, (qkv__read_tapes){ s->tape, layer_tape_of(s) }, &b);
}

/* ---- parts ----
 * Many tokens are read in parts, each by a thread that has its layers to itself: nothing is cut, and no thread waits at the end of
 * every product for the others. A part waits in each layer for the keys and values of those before it, and begins after them. */

typedef struct parts {
    qkv_session *s;
    block *blocks;
    atomic_int *written;  /* layers of each part: see qkv__turn */
    pthread_mutex_t lock; /* of the rest, and of s->spare */
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
} parts;

static void free_tapes(qkv__read_tapes x)
{
    qkv_tape_free(x.tape);
    qkv_tape_free(x.layer_tape);
}

void qkv__drop_spare_tapes(qkv_session *s)
{
    while (s->n_spare) free_tapes(s->spare[--s->n_spare]);
}

static qkv__read_tapes take_tapes(parts *w)
{
    const qkv_tape_opts opts = { .inference = 1 };
    qkv__read_tapes own = { 0 };
    pthread_mutex_lock(&w->lock);
    if (w->s->n_spare) own = w->s->spare[--w->s->n_spare];
    pthread_mutex_unlock(&w->lock);
    if (!own.tape) own = (qkv__read_tapes){ qkv_tape_new(&opts), qkv_tape_new(&opts) };
    return own;
}

/* With what the part gave: the first error counts. */
static void leave_tapes(parts *w, qkv__read_tapes own, qkv_status status)
{
    pthread_mutex_lock(&w->lock);
    if (status && !w->status) {
        w->status = status;
        snprintf(w->sentence, sizeof w->sentence, "%s", qkv_error());
    }
    bool is_kept = own.tape && own.layer_tape && w->s->n_spare < QKV_MAX_THREADS;
    if (is_kept) w->s->spare[w->s->n_spare++] = own;
    pthread_mutex_unlock(&w->lock);
    if (!is_kept) free_tapes(own);
}

/* After an error the parts that follow go on with what the cache happens to have, which nobody sees; those before it have written
 * by then. */
static void read_part(void *work, int64_t i, void *scratch)
{
    (void)scratch;
    parts *w = work;
    qkv__read_tapes own = take_tapes(w);
    bool is_there = own.tape && own.layer_tape;
    if (is_there) qkv_tape_reset(own.tape);
    qkv_status status = is_there ? read_block(w->s, own, &w->blocks[i]) : QKV_MEMORY;
    leave_tapes(w, own, status);
    if (status && i) qkv__wait_for(&w->written[i - 1], INT_MAX);
    atomic_store_explicit(&w->written[i], INT_MAX, memory_order_release);
}

/* All that is left, in n parts. */
static qkv_status read_parts(qkv_session *s, qkv__new_tokens *r, int64_t n)
{
    const int64_t all = r->left;
    parts w = { .s = s,
                .blocks = qkv__save(s->tape, sizeof *w.blocks * (size_t)n),
                .written = qkv__save(s->tape, sizeof *w.written * (size_t)n),
                .lock = PTHREAD_MUTEX_INITIALIZER };
    qkv_status status = qkv_tape_status(s->tape);
    for (int64_t i = 0; i < n && !status; i++) {
        status = next_block(s, r, all * (i + 1) / n - (all - r->left), &w.blocks[i]);
        w.blocks[i].turn = (qkv__turn){ i ? &w.written[i - 1] : NULL, &w.written[i] };
        atomic_init(&w.written[i], 0);
    }
    qkv__tape_trim(s->layer_tape); /* a block's layer needs more than what is read one by one from now on */
    if (!status) status = qkv__parallel(n, 0, read_part, &w);
    pthread_mutex_destroy(&w.lock);
    return w.status ? qkv__fail_again(w.status, w.sentence) : status;
}

/* As many for each thread; 1: the threads share every product, as they do where weights are read for the first time, since a
 * second part would have copies of them packed for a prompt that may be the only one. */
static int64_t count_parts(const qkv_session *s, int64_t tokens)
{
    int64_t threads = qkv__is_alone() ? 1 : qkv_num_threads();
    const qkv__stack *stack = qkv__session_decoder(s);
    bool can = threads > 1 && tokens >= threads * LEAST_PART && !qkv__session_keeps(s);
    if (can && stack->n && qkv__packs_at_next_use(stack->layers->self.q.weight)) can = false;
    return can ? qkv__round_up(qkv__ceil_div(tokens, PART), threads) : 1;
}

qkv_status qkv__read_new_tokens(qkv_session *s, qkv__new_tokens *r)
{
    qkv_status status = QKV_OK;
    while (r->left && !status) {
        int64_t n = count_parts(s, r->left);
        qkv_tape_reset(s->tape);
        status = n > 1 ? read_parts(s, r, n) : read_next_block(s, r);
    }
    return status;
}
