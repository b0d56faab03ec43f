/* packed.c: weights that large products read again. Packing one costs about as much as a product of a few dozen rows, so it is
 * done at the second use; for training, whose weights change at every step, never. */
#include "packed.h"

#include <qkv/unstable/util.h>

#include "../base/memory.h"
#include "types.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t limit_read = PTHREAD_ONCE_INIT;
static atomic_size_t limit, in_use;

/* ---- the limit ---- */

static void read_limit(void)
{
    const char *text = getenv("QKV_PACKED");
    char *end;
    unsigned long long bytes = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 1ull << 30;
    int shift = 0;
    if (text && *text >= '0' && *text <= '9') shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    limit = bytes > SIZE_MAX >> shift ? SIZE_MAX : (size_t)bytes << shift;
}

size_t qkv_packed_limit(void)
{
    pthread_once(&limit_read, read_limit);
    return limit;
}

void qkv__set_packed_limit(size_t bytes)
{
    pthread_once(&limit_read, read_limit);
    limit = bytes;
}

size_t qkv_packed_bytes(void) { return in_use; }

/* ---- packing ---- */

enum { ROWS = QKV__PACK_COLUMNS }; /* of a task: rows of the weight are columns of the product */

typedef struct work {
    const qkv_tensor *w;
    float *out;
} work;

static void pack_rows(void *data, int64_t task, void *scratch)
{
    const work *x = data;
    int64_t n = x->w->shape[0], k = x->w->shape[1], from = task * ROWS, to = qkv__min(n, from + ROWS);
    const float *rows = x->w->type ? scratch : qkv_tensor_data(x->w) + from * k;
    if (x->w->type) qkv__widen(x->w, from * k, (to - from) * k, scratch);
    kern->pack_weight(x->out, rows, n, k, from, to);
}

/* Under the lock. *packed stays NULL where there is no room. */
static qkv_status pack(const qkv_tensor *w, const float **packed)
{
    qkv__packing *p = w->packing;
    size_t bytes = sizeof(float) * (size_t)kern->packed_floats(w->shape[0], w->shape[1]);
    if ((*packed = p->values)) return QKV_OK;
    if (!bytes || bytes > qkv_packed_limit() || in_use > qkv_packed_limit() - bytes) return QKV_OK;
    work x = { w, qkv__alloc(bytes) };
    if (!x.out) return QKV_MEMORY;
    size_t scratch = w->type ? sizeof(float) * (size_t)(ROWS * w->shape[1]) : 0;
    if (qkv__parallel(qkv__ceil_div(w->shape[0], ROWS), scratch, pack_rows, &x)) {
        qkv__release(x.out, bytes);
        return QKV_MEMORY;
    }
    in_use += bytes;
    p->bytes = bytes;
    p->by = kern;
    p->values = *packed = x.out;
    return QKV_OK;
}

qkv_status qkv__packed_weight(const qkv_tensor *w, int64_t rows, const float **packed)
{
    qkv__packing *p = w->packing;
    *packed = NULL;
    if (!p || rows <= QKV__PACK_ROWS || w->ndim != 2 || qkv__bfloat_unit(w)) return QKV_OK;
    if (!(*packed = p->values)) {
        if (atomic_fetch_add(&p->uses, 1) == 0 || !qkv_packed_limit()) return QKV_OK;
        pthread_mutex_lock(&lock);
        qkv_status status = pack(w, packed);
        pthread_mutex_unlock(&lock);
        if (status) return status;
    }
    if (*packed && p->by != kern) *packed = NULL;
    return QKV_OK;
}

bool qkv__packs_at_next_use(const qkv_tensor *w)
{
    const qkv__packing *p = w->packing;
    return p && !p->uses && !qkv__is_quantized(w) && !qkv__bfloat_unit(w) && qkv_packed_limit();
}

void qkv__packing_free(qkv__packing *p)
{
    if (!p->values) return;
    qkv__release((void *)(uintptr_t)p->values, p->bytes);
    in_use -= p->bytes;
    p->values = NULL;
    p->uses = 0;
}
