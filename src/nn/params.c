/* params.c: named weights in two flat blocks, values and gradients, so that an optimizer step or a norm is one loop. */
#include "params.h"

#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/pool.h"
#include "../tensor/packed.h"
#include "../tensor/types.h"
#include "../tensor/tape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LINE = 16,      /* floats in 64 bytes: where weights start */
    TASK = 1 << 14, /* floats of a task, at least */
    MAX_CUTS = 64   /* pieces a pass over a whole block is cut into */
};

/* A weight. Its address never changes, its values move when the blocks grow. */
typedef struct entry {
    qkv_tensor tensor;
    qkv__packing packing; /* while the values lie elsewhere */
    int64_t offset;       /* in both blocks */
    uint64_t hash;        /* of the name */
    size_t bytes;         /* of this allocation */
    char name[];
} entry;

/* Memory of a model made of the weights. */
typedef struct kept {
    struct kept *next;
    size_t bytes; /* of this allocation */
} kept;

struct qkv_params {
    uint64_t seed;
    kept *models;
    entry **entries;
    size_t entries_bytes;
    int n_entries;
    float *data, *grad;
    size_t data_bytes, grad_bytes; /* allocated */
    int64_t block;                 /* floats used of each block */
    int64_t count;                 /* of them in weights */
    int32_t *slots;                /* of entries by the hash of their names: one more than the place in entries, 0 for none */
    size_t slots_bytes;
    bool is_mapped; /* the values lie elsewhere, and there are no gradients */
    void *retained;
    void (*release_held)(void *);
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
};

qkv_params *qkv_params_new(uint64_t seed)
{
    if (!qkv_isa()) return NULL;
    qkv_params *p = qkv__alloc_zero(sizeof *p);
    if (p) p->seed = seed;
    return p;
}

qkv_params *qkv__params_plan(void)
{
    qkv_params *p = qkv_params_new(0);
    if (p) p->is_mapped = true;
    return p;
}

static void release_retained(qkv_params *p)
{
    if (p->retained) p->release_held(p->retained);
    p->retained = NULL;
}

void qkv_params_free(qkv_params *p)
{
    if (!p) return;
    release_retained(p);
    for (int i = 0; i < p->n_entries; i++) {
        qkv__packing_free(&p->entries[i]->packing);
        qkv__release(p->entries[i], p->entries[i]->bytes);
    }
    for (kept *k = p->models, *next; k; k = next) {
        next = k->next;
        qkv__release(k, k->bytes);
    }
    qkv__release(p->entries, p->entries_bytes);
    qkv__release(p->slots, p->slots_bytes);
    qkv__release(p->data, p->data_bytes);
    qkv__release(p->grad, p->grad_bytes);
    qkv__release(p, sizeof *p);
}

/* ---- errors ---- */

bool qkv__params_error_below(qkv_params *p)
{
    if (p && !p->status) {
        p->status = qkv_error_status();
        snprintf(p->sentence, sizeof p->sentence, "%s", qkv_error());
    }
    return false;
}

bool qkv__params_fail(qkv_params *p, qkv_status status, const char *format, ...)
{
    if (!p) return false; /* the error that made it NULL says more */
    va_list args;
    va_start(args, format);
    qkv__fail_with(status, format, args);
    va_end(args);
    return qkv__params_error_below(p);
}

qkv_status qkv_params_status(const qkv_params *p)
{
    if (!p) return qkv_error_status() ? qkv_error_status() : qkv__fail(QKV_USAGE, "there are no params");
    return p->status ? qkv__fail_again(p->status, p->sentence) : QKV_OK;
}

/* ---- initial values ---- */

typedef struct filling {
    float *to;
    int64_t count;
    qkv__key key;
    qkv_init init;
    double scale; /* half the width of the uniform, or the deviation of the normal */
} filling;

/* Numbers 2 pair and 2 pair + 1 of a weight: they depend on the key and on pair only. */
static void draw_pair(const filling *f, int64_t pair, double out[2])
{
    const double two_pi = 6.283185307179586;
    uint32_t word[2];
    qkv__threefry(f->key, (uint32_t)pair, (uint32_t)((uint64_t)pair >> 32), word);
    double u = qkv__uniform(word[0]), v = qkv__uniform(word[1]);
    if (f->init == QKV_INIT_NORMAL) { /* Box-Muller; u is never 0 */
        double radius = f->scale * sqrt(-2.0 * log(u));
        out[0] = radius * cos(two_pi * v);
        out[1] = radius * sin(two_pi * v);
    } else {
        out[0] = f->scale * (2.0 * u - 1.0);
        out[1] = f->scale * (2.0 * v - 1.0);
    }
}

static void fill_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    const filling *f = work;
    int64_t end = qkv__min((task + 1) * TASK, f->count);
    for (int64_t i = task * TASK; i < end; i += 2) {
        double pair[2];
        draw_pair(f, i / 2, pair);
        f->to[i] = (float)pair[0];
        if (i + 1 < end) f->to[i + 1] = (float)pair[1];
    }
}

static qkv_status fill_entry(const qkv_params *p, entry *e, qkv_init init, float scale)
{
    qkv_tensor *x = &e->tensor;
    if (init == QKV_INIT_ONE)
        for (int64_t i = 0; i < x->count; i++) x->data[i] = 1.0f;
    if (init == QKV_INIT_ZERO || init == QKV_INIT_ONE) return QKV_OK;
    filling f = { x->data, x->count, qkv__key_for(p->seed, e->hash, 0), init, scale == 0 ? 1.0 : (double)scale };
    if (init == QKV_INIT_XAVIER) f.scale *= sqrt(6.0 / ((double)x->shape[0] + (double)x->shape[1]));
    return qkv__parallel(qkv__ceil_div(x->count, TASK), 0, fill_task, &f);
}

/* ---- names ---- */

/* The slot of a name, or the free one where it would be. There are always free ones. */
static int32_t *slot_of(const qkv_params *p, int32_t *slots, size_t n, uint64_t hash, const char *name)
{
    for (size_t i = (size_t)(hash % n);; i = (i + 1) % n) {
        const entry *e = slots[i] ? p->entries[slots[i] - 1] : NULL;
        if (!e || (e->hash == hash && !strcmp(e->name, name))) return &slots[i];
    }
}

static entry *find_entry(const qkv_params *p, const char *name)
{
    if (!p->slots) return NULL;
    int32_t found = *slot_of(p, p->slots, p->slots_bytes / sizeof *p->slots,
                             qkv__hash_bytes(QKV__HASH_START, name, strlen(name)), name);
    return found ? p->entries[found - 1] : NULL;
}

/* At least twice as many slots as there will be names with one more. */
static bool make_slots(qkv_params *p)
{
    size_t n = p->slots_bytes / sizeof *p->slots, wanted = 4 * ((size_t)p->n_entries + 16);
    if (n / 2 > (size_t)p->n_entries) return true;
    int32_t *slots = qkv__alloc_zero(sizeof *slots * wanted);
    if (!slots) return qkv__params_error_below(p);
    for (int i = 0; i < p->n_entries; i++)
        *slot_of(p, slots, wanted, p->entries[i]->hash, p->entries[i]->name) = (int32_t)i + 1;
    qkv__release(p->slots, p->slots_bytes);
    p->slots = slots;
    p->slots_bytes = sizeof *slots * wanted;
    return true;
}

/* ---- adding ---- */

static bool check_parameter(qkv_params *p, const char *name, int ndim, const int64_t *shape, qkv_init init, float scale,
                            int64_t *count)
{
    if (!name || !*name) return qkv__params_fail(p, QKV_USAGE, "a weight needs a name");
    if (find_entry(p, name)) return qkv__params_fail(p, QKV_USAGE, "weight \"%.200s\": the name is used already", name);
    if (ndim < 0 || ndim > QKV_MAX_DIMS)
        return qkv__params_fail(p, QKV_USAGE, "weight \"%.200s\" has %d dimensions, expected 0 to %d", name, ndim,
                                QKV_MAX_DIMS);
    if (!qkv__shape_count(ndim, shape, count))
        return qkv__params_fail(p, QKV_USAGE, "weight \"%.200s\" cannot have the shape %s", name,
                                qkv__shape_text((char[QKV_SHAPE_TEXT]){ 0 }, ndim, shape));
    if ((unsigned)init > QKV_INIT_NORMAL)
        return qkv__params_fail(p, QKV_USAGE, "weight \"%.200s\": there is no initialiser %d", name, (int)init);
    if (init == QKV_INIT_XAVIER && ndim != 2)
        return qkv__params_fail(p, QKV_USAGE, "weight \"%.200s\" has %d dimensions, Xavier's initialiser wants 2", name, ndim);
    if (!isfinite(scale)) return qkv__params_fail(p, QKV_USAGE, "weight \"%.200s\": its scale is not finite", name);
    return true;
}

/* After a block has moved. */
static void point(qkv_params *p, int i)
{
    entry *e = p->entries[i];
    e->tensor.data = p->data + e->offset;
    e->tensor.grad = p->grad + e->offset;
}

/* Room for `floats` more in both blocks and for one more entry. What is there stays, maybe elsewhere. */
static bool make_room_for_weights(qkv_params *p, int64_t floats)
{
    size_t total, bytes, entries = sizeof(entry *) * ((size_t)p->n_entries + 1);
    if (!qkv__size_add((size_t)p->block, (size_t)floats, &total) || !qkv__size_mul(total, sizeof(float), &bytes))
        return qkv__params_fail(p, QKV_LIMIT, "all weights together are larger than memory can be");
    bool ok = make_slots(p) && !qkv__grow((void **)&p->entries, &p->entries_bytes, entries);
    if (p->is_mapped) return ok || qkv__params_error_below(p);
    ok = ok && !qkv__grow((void **)&p->data, &p->data_bytes, bytes) && !qkv__grow((void **)&p->grad, &p->grad_bytes, bytes);
    for (int i = 0; i < p->n_entries; i++) point(p, i);
    return ok || qkv__params_error_below(p);
}

static entry *new_entry(qkv_params *p, const char *name, int ndim, const int64_t *shape, int64_t count)
{
    size_t length = strlen(name), bytes = sizeof(entry) + length + 1;
    entry *e = qkv__alloc_zero(bytes);
    if (!e) return NULL;
    e->bytes = bytes;
    e->hash = qkv__hash_bytes(QKV__HASH_START, name, strlen(name));
    e->offset = p->block;
    memcpy(e->name, name, length);
    e->tensor = (qkv_tensor){ .count = count, .ndim = ndim, .wants_grad = !p->is_mapped, .keeps_grad = true };
    for (int i = 0; i < ndim; i++) e->tensor.shape[i] = shape[i];
    return e;
}

/* The first values of the newest entry, and zeros up to the next one. */
static qkv_status start_entry(qkv_params *p, qkv_init init, float scale, int64_t padded)
{
    memset(p->data + p->block, 0, sizeof(float) * (size_t)padded);
    memset(p->grad + p->block, 0, sizeof(float) * (size_t)padded);
    point(p, p->n_entries);
    return fill_entry(p, p->entries[p->n_entries], init, scale);
}

qkv_tensor *qkv_params_add(qkv_params *p, const char *name, int ndim, const int64_t *shape, qkv_init init, float scale)
{
    int64_t count = 0;
    if (!p) return NULL;
    if (p->retained && qkv__params_materialize(p)) return qkv__params_error_below(p), NULL;
    if (!check_parameter(p, name, ndim, shape, init, scale, &count)) return NULL;
    int64_t padded = qkv__round_up(count ? count : 1, LINE); /* an empty weight has an address too */
    if (!make_room_for_weights(p, padded)) return NULL;
    entry *e = new_entry(p, name, ndim, shape, count);
    if (!e) {
        qkv__params_error_below(p);
        return NULL;
    }
    p->entries[p->n_entries] = e;
    if (!p->is_mapped && start_entry(p, init, scale, padded)) {
        qkv__params_error_below(p);
        qkv__release(e, e->bytes);
        return NULL;
    }
    *slot_of(p, p->slots, p->slots_bytes / sizeof *p->slots, e->hash, name) = (int32_t)++p->n_entries;
    p->block += padded;
    p->count += count;
    return &e->tensor;
}

/* ---- values that lie elsewhere ---- */

void qkv__params_place(qkv_params *p, int i, float *values)
{
    p->entries[i]->tensor.data = values;
    p->entries[i]->tensor.packing = &p->entries[i]->packing;
}

void qkv__params_place_typed(qkv_params *p, int i, const void *values, const void *scales, const qkv__type *type)
{
    p->entries[i]->tensor.values = values;
    p->entries[i]->tensor.scales = scales;
    p->entries[i]->tensor.type = type;
    p->entries[i]->tensor.packing = type->scales ? NULL : &p->entries[i]->packing; /* read as it lies at any size */
}

int qkv__params_bits(const qkv_params *p)
{
    int bits = 0;
    for (int i = 0; i < p->n_entries; i++) {
        const qkv_tensor *w = &p->entries[i]->tensor;
        if (qkv__is_quantized(w) && (!bits || w->type->bits < bits)) bits = w->type->bits;
    }
    return bits;
}

qkv_status qkv__params_check_floats(const qkv_params *p)
{
    int bits = qkv__params_bits(p);
    return !bits ? QKV_OK
                 : qkv__fail(QKV_UNSUPPORTED,
                             "the weights are kept in %d bits, which cannot be trained: take the model that they were made of",
                             bits);
}

void qkv__params_retain(qkv_params *p, void *what, void (*release)(void *))
{
    p->retained = what;
    p->release_held = release;
}

const void *qkv__params_held(const qkv_params *p) { return p->retained; }

qkv_status qkv__params_materialize(qkv_params *p)
{
    if (!p) return qkv_params_status(p);
    if (!p->is_mapped || !p->n_entries) return QKV_OK;
    qkv_status status = qkv__params_check_floats(p);
    if (status) return status;
    size_t bytes = sizeof(float) * (size_t)p->block;
    float *data = qkv__alloc_zero(bytes), *grad = data ? qkv__alloc_zero(bytes) : NULL;
    if (!grad) {
        qkv__release(data, bytes);
        return QKV_MEMORY;
    }
    p->data = data, p->grad = grad;
    p->data_bytes = p->grad_bytes = bytes;
    for (int i = 0; i < p->n_entries; i++) {
        qkv_tensor *w = &p->entries[i]->tensor;
        qkv__widen(w, 0, w->count, data + p->entries[i]->offset);
        w->type = NULL;
        w->packing = NULL;
        qkv__packing_free(&p->entries[i]->packing);
        w->wants_grad = true;
        point(p, i);
    }
    p->is_mapped = false;
    release_retained(p);
    return QKV_OK;
}

/* ---- what layers are made with ---- */

void *qkv__params_keep(qkv_params *p, size_t bytes)
{
    enum { HEAD = 64 }; /* what follows is aligned as an allocation is */
    kept *k = qkv__alloc_zero(HEAD + bytes);
    if (!k) {
        qkv__params_error_below(p);
        return NULL;
    }
    *k = (kept){ .next = p->models, .bytes = HEAD + bytes };
    p->models = k;
    return (char *)k + HEAD;
}

bool qkv__join_name(qkv_params *p, char joined[QKV_NAME_MAX], const char *layer, const char *part)
{
    if (!layer || !*layer) return qkv__params_fail(p, QKV_USAGE, "a layer needs a name");
    if (snprintf(joined, QKV_NAME_MAX, "%s.%s", layer, part) < QKV_NAME_MAX) return true;
    return qkv__params_fail(p, QKV_USAGE, "layer \"%.40s...\": its name is longer than %d bytes", layer, QKV_NAME_MAX - 1);
}

qkv_tensor *qkv__add_part(qkv_params *p, const char *layer, const char *part, int ndim, const int64_t *shape, qkv_init init,
                          float scale)
{
    char name[QKV_NAME_MAX];
    return qkv__join_name(p, name, layer, part) ? qkv_params_add(p, name, ndim, shape, init, scale) : NULL;
}

qkv_tensor *qkv__no_weights(qkv_tape *t, const char *layer)
{
    if (t) qkv__error(t, QKV_USAGE, "%s: the layer has no weights because making it failed: see qkv_params_status()", layer);
    return NULL;
}

/* ---- looking ---- */

int64_t qkv_params_count(const qkv_params *p) { return p ? p->count : 0; }

int64_t qkv__params_block(const qkv_params *p) { return p ? p->block : 0; }

float *qkv__params_data(qkv_params *p) { return p && !qkv__params_materialize(p) ? p->data : NULL; }

float *qkv__params_grad(qkv_params *p) { return p && !qkv__params_materialize(p) ? p->grad : NULL; }

int qkv_params_size(const qkv_params *p) { return p ? p->n_entries : 0; }

static entry *at(const qkv_params *p, int i) { return p && i >= 0 && i < p->n_entries ? p->entries[i] : NULL; }

qkv_tensor *qkv_params_at(const qkv_params *p, int i)
{
    entry *e = at(p, i);
    return e ? &e->tensor : NULL;
}

const char *qkv_params_name(const qkv_params *p, int i)
{
    entry *e = at(p, i);
    return e ? e->name : NULL;
}

qkv_tensor *qkv_params_find(const qkv_params *p, const char *name)
{
    entry *e = p && name ? find_entry(p, name) : NULL;
    return e ? &e->tensor : NULL;
}

/* ---- gradients ---- */

void qkv_params_zero_grad(qkv_params *p)
{
    if (p && p->grad) memset(p->grad, 0, sizeof(float) * (size_t)p->block);
}

/* A pass over all gradients, cut by their number alone so that the sum has one order at any thread count. */
typedef struct pass {
    float *grad;
    int64_t block, cut; /* floats in all, and in a task */
    float factor;
    double sums[MAX_CUTS];
} pass;

static void sum_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    pass *c = work;
    double lane[8] = { 0 };
    int64_t end = qkv__min((task + 1) * c->cut, c->block);
    for (int64_t i = task * c->cut; i < end; i += 8) /* both ends are multiples of LINE */
        for (int j = 0; j < 8; j++) lane[j] += (double)c->grad[i + j] * (double)c->grad[i + j];
    c->sums[task] = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static void scale_task(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    pass *c = work;
    int64_t end = qkv__min((task + 1) * c->cut, c->block);
    for (int64_t i = task * c->cut; i < end; i++) c->grad[i] *= c->factor;
}

qkv_status qkv_params_clip_grad(qkv_params *p, float max_norm, float *norm)
{
    if (!p) return qkv_params_status(p);
    if (qkv__params_materialize(p)) return QKV_MEMORY;
    if (!(max_norm > 0)) return qkv__fail(QKV_USAGE, "clip: the largest norm is %g, expected more than 0", (double)max_norm);
    pass c = { .grad = p->grad, .block = p->block };
    c.cut = qkv__round_up(qkv__max(qkv__ceil_div(p->block, MAX_CUTS), TASK), LINE);
    int64_t tasks = qkv__ceil_div(p->block, c.cut);
    if (qkv__parallel(tasks, 0, sum_task, &c)) return QKV_MEMORY;
    double sum = 0;
    for (int64_t i = 0; i < tasks; i++) sum += c.sums[i];
    float found = (float)sqrt(sum);
    if (norm) *norm = found;
    if (!isfinite(found)) return qkv__fail(QKV_NUMERIC, "clip: the norm of the gradients is %g", (double)found);
    if (found <= max_norm) return QKV_OK;
    c.factor = (float)((double)max_norm / sqrt(sum));
    return qkv__parallel(tasks, 0, scale_task, &c);
}
