/* dropout.c: in training, each value is zeroed with probability p, the others multiplied by 1/(1-p). Backward draws the same
 * numbers again: nothing is kept but their key. */
#include "inplace.h"
#include "parallel_for.h"

typedef struct drops {
    qkv__key key;
    uint32_t below; /* a value is kept when its random word is below this */
    float by;
} drops;

typedef struct work {
    const drops *d;
    float *to;
    bool add;
    const float *from;
} work;

/* Tasks begin at multiples of 32, as the kernel wants. `to` may be `from`. */
static void drop_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    const drops *d = w->d;
    if (w->add) kern->dropout_grad(w->to + from, w->from + from, to - from, from, d->key, d->below, d->by);
    else kern->dropout(w->to + from, w->from + from, to - from, from, d->key, d->below, d->by);
}

/* y = keep x / (1-p):   dx += keep dy / (1-p) */
static void dropout_backward(qkv_tensor *y)
{
    work w = { .d = y->saved, .from = y->grad };
    if ((w.to = qkv__grad_from(y->in[0], y, &w.add))) qkv__parallel_for(y->tape, y->count, QKV_TASK_ELEMENTS, drop_range, &w);
}

static qkv_tensor *drop(qkv_tensor *x, float p, bool over)
{
    qkv_tape *t = qkv__operands("dropout", 1, &x);
    if (!t) return NULL;
    if (!(p >= 0 && p < 1))
        return qkv__error(t, QKV_USAGE, "dropout: the probability is %g, it must be in 0 <= p < 1", (double)p);
    if (p == 0 || !qkv__is_training(t)) return x;
    qkv_tensor *y = over ? qkv__result_inplace(t, x, dropout_backward, 1, &x)
                         : qkv__result(t, x->ndim, x->shape, dropout_backward, 1, &x);
    drops *d = qkv__save(t, sizeof *d);
    if (!y || !d) return NULL;
    *d = (drops){ qkv__next_key(t), qkv__keep_below(p), 1.0f / (1.0f - p) };
    y->saved = d;
    work w = { .d = d, .to = y->data, .from = qkv_tensor_data(x) };
    return qkv__parallel_for(t, y->count, QKV_TASK_ELEMENTS, drop_range, &w) ? y : NULL;
}

qkv_tensor *qkv_dropout(qkv_tensor *x, float p) { return drop(x, p, false); }

qkv_tensor *qkv__dropout_inplace(qkv_tensor *x, float p) { return drop(x, p, true); }
