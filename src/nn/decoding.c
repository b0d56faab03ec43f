/* decoding.c: a decoder one token at a time, with caches. */
#include "decoding.h"

#include "../base/memory.h"
#include "../base/size.h"
#include "../tensor/tape.h"
#include "layer.h"

#include <string.h>

struct qkv__decoding {
    const qkv_transformer *m;
    int64_t beam, all_rows, all_sentences; /* as they began: the caches have room for these */
    qkv__steps s;
    qkv__cache *caches; /* one a layer */
    int32_t *lengths;   /* (sentences) of the memory */
    int32_t *seen;      /* (rows) */
    int32_t *positions; /* (rows), for rotary ones */
    void *spare;        /* as large as the largest cache: rows are gathered into it, then it is swapped in */
    size_t cache_bytes, cross_bytes, spare_bytes;
};

static size_t floats(int64_t a, int64_t b, int64_t c)
{
    int64_t n;
    return qkv__shape_count(3, (int64_t[]){ a, b, c }, &n) ? sizeof(float) * (size_t)n : SIZE_MAX;
}

static int64_t width_of(const qkv_linear *l) { return l->weight->shape[0]; }

/* Keys and values of a decoder have one width here: d_v is d_k in a qkv_transformer. */
static qkv_status allocate(qkv__decoding *d)
{
    const qkv__stack *stack = &d->m->stacks[QKV__DECODER];
    const qkv_mha *self = &stack->layers[0].self;
    d->cache_bytes = floats(d->all_rows, d->s.room, width_of(&self->k));
    d->cross_bytes = d->s.memory_length ? floats(d->all_sentences, d->s.memory_length, width_of(&self->k)) : 0;
    d->spare_bytes = d->cache_bytes > d->cross_bytes ? d->cache_bytes : d->cross_bytes;
    d->caches = qkv__alloc_zero(sizeof *d->caches * (size_t)stack->n);
    d->lengths = qkv__alloc(sizeof(int32_t) * (size_t)d->all_sentences);
    d->seen = qkv__alloc(sizeof(int32_t) * (size_t)d->all_rows);
    d->positions = qkv__alloc(sizeof(int32_t) * (size_t)d->all_rows);
    d->spare = qkv__alloc(d->spare_bytes);
    if (!d->caches || !d->lengths || !d->seen || !d->positions || !d->spare) return QKV_MEMORY;
    for (int i = 0; i < stack->n; i++) {
        qkv__cache *c = &d->caches[i];
        c->k = qkv__alloc(d->spare_bytes);
        c->v = qkv__alloc(d->spare_bytes);
        if (d->cross_bytes) {
            c->cross_k = qkv__alloc(d->spare_bytes);
            c->cross_v = qkv__alloc(d->spare_bytes);
        }
        if (!c->k || !c->v || (d->cross_bytes && (!c->cross_k || !c->cross_v))) return QKV_MEMORY;
    }
    return QKV_OK;
}

/* Keys and values of the memory, for every layer. */
static qkv_status project_memory(qkv__decoding *d, qkv_tensor *memory)
{
    const qkv__stack *stack = &d->m->stacks[QKV__DECODER];
    for (int i = 0; i < stack->n; i++) {
        qkv_tensor *k = qkv_linear_forward(&stack->layers[i].cross.k, memory),
                   *v = qkv_linear_forward(&stack->layers[i].cross.v, memory);
        if (!k || !v) return qkv_tape_status(memory->tape);
        memcpy(d->caches[i].cross_k, qkv_data(k), d->cross_bytes);
        memcpy(d->caches[i].cross_v, qkv_data(v), d->cross_bytes);
    }
    return QKV_OK;
}

static qkv_status check(const qkv_transformer *m, const qkv_tensor *memory, int64_t sentences, int64_t beam, int64_t room)
{
    if (!m || !m->stacks[QKV__DECODER].n) return qkv__fail(QKV_USAGE, "decoding: the model has no decoder");
    if (!memory != !m->stacks[QKV__ENCODER].n)
        return qkv__fail(QKV_USAGE, "decoding: a memory is needed just where the model has an encoder");
    if (sentences < 1 || beam < 1 || room < 1 || (memory && (memory->ndim != 3 || memory->shape[0] != sentences)))
        return qkv__fail(QKV_USAGE,
                         "decoding: %lld sentences, %lld rows each, %lld tokens: each must be at least 1, and the memory fit",
                         (long long)sentences, (long long)beam, (long long)room);
    return QKV_OK;
}

qkv__decoding *qkv__decoding_new(const qkv_transformer *m, qkv_tensor *memory, const int32_t *lengths, int64_t sentences,
                                 int64_t beam, int64_t room)
{
    if (check(m, memory, sentences, beam, room)) return NULL;
    qkv__decoding *d = qkv__alloc_zero(sizeof *d);
    if (!d) return NULL;
    int64_t length = memory ? memory->shape[1] : 0;
    *d = (qkv__decoding){ .m = m, .beam = beam, .all_rows = sentences * beam, .all_sentences = sentences };
    d->s = (qkv__steps){ .rows = d->all_rows, .sentences = sentences, .room = room, .memory_length = length };
    qkv_status status = allocate(d);
    if (!status) {
        for (int64_t i = 0; i < sentences; i++) d->lengths[i] = lengths ? lengths[i] : (int32_t)length;
        d->s.seen = d->seen;
        d->s.memory_lengths = d->lengths;
        if (length) status = project_memory(d, memory);
    }
    if (!status) return d;
    qkv__decoding_free(d);
    return NULL;
}

void qkv__decoding_free(qkv__decoding *d)
{
    if (!d) return;
    int layers = d->m->stacks[QKV__DECODER].n;
    for (int i = 0; d->caches && i < layers; i++) {
        qkv__release(d->caches[i].k, d->spare_bytes);
        qkv__release(d->caches[i].v, d->spare_bytes);
        qkv__release(d->caches[i].cross_k, d->spare_bytes);
        qkv__release(d->caches[i].cross_v, d->spare_bytes);
    }
    qkv__release(d->caches, sizeof *d->caches * (size_t)layers);
    qkv__release(d->lengths, sizeof(int32_t) * (size_t)d->all_sentences);
    qkv__release(d->seen, sizeof(int32_t) * (size_t)d->all_rows);
    qkv__release(d->positions, sizeof(int32_t) * (size_t)d->all_rows);
    qkv__release(d->spare, d->spare_bytes);
    qkv__release(d, sizeof *d);
}

qkv_tensor *qkv__decoding_step(qkv__decoding *d, qkv_tape *t, const int32_t *ids)
{
    const qkv__stack *stack = &d->m->stacks[QKV__DECODER];
    qkv__steps *s = &d->s;
    if (qkv_tape_status(t)) return NULL;
    if (s->step >= s->room) return qkv__error(t, QKV_LIMIT, "decoding: there is room for %lld tokens", (long long)s->room);
    for (int64_t r = 0; r < s->rows; r++) d->seen[r] = (int32_t)s->step + 1, d->positions[r] = (int32_t)s->step;
    const qkv_rotary_opts turns = { .base = d->m->o.rotary_base, .positions = d->positions, .frequencies = d->m->frequencies };
    qkv__pass pass = { .o = &d->m->o, .steps = s, .rotary = d->m->o.positions == QKV_ROTARY ? &turns : NULL };
    qkv_tensor *x = qkv__embed(d->m, stack, t, ids, NULL, s->rows, 1, s->step);
    for (int i = 0; i < stack->n; i++) {
        pass.cache = &d->caches[i];
        x = qkv__layer_forward(&stack->layers[i], x, &pass);
    }
    if (d->m->o.pre_norm) x = qkv_norm_forward(&stack->final_norm, x);
    qkv_tensor *logits = qkv_transformer_logits(d->m, x);
    if (logits) s->step++;
    return logits ? qkv_reshape(logits, 2, (int64_t[]){ s->rows, -1 }) : NULL;
}

/* ---- selecting ---- */

/* Blocks from[i] of *cache, each `block` floats of which `used` matter, to place i: gathered into the spare memory, which then
 * takes the place of the cache. */
static void gather(qkv__decoding *d, float **cache, int64_t n, const int64_t *from, int64_t block, int64_t used)
{
    if (!*cache) return;
    float *to = d->spare;
    for (int64_t i = 0; i < n; i++) memcpy(to + i * block, *cache + from[i] * block, sizeof(float) * (size_t)used);
    d->spare = *cache;
    *cache = to;
}

void qkv__decoding_select(qkv__decoding *d, int64_t sentences, const int64_t *kept, const int64_t *parents)
{
    const qkv__stack *stack = &d->m->stacks[QKV__DECODER];
    qkv__steps *s = &d->s;
    int64_t rows = sentences * d->beam;
    bool same_sentences = sentences == s->sentences;
    for (int i = 0; i < stack->n; i++) {
        int64_t width = width_of(&stack->layers[i].self.k);
        gather(d, &d->caches[i].k, rows, parents, s->room * width, s->step * width);
        gather(d, &d->caches[i].v, rows, parents, s->room * width, s->step * width);
        if (same_sentences) continue;
        gather(d, &d->caches[i].cross_k, sentences, kept, s->memory_length * width, s->memory_length * width);
        gather(d, &d->caches[i].cross_v, sentences, kept, s->memory_length * width, s->memory_length * width);
    }
    for (int64_t i = 0; i < sentences; i++) d->lengths[i] = d->lengths[kept[i]];
    s->sentences = sentences;
    s->rows = rows;
}
