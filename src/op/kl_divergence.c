/* kl_divergence.c: KL(target || exp(log_p)) = sum target (log target - log_p) / rows; the target is a constant. */
#include "parallel_for.h"

typedef struct work {
    float *dx;
    bool add;
    const float *target;
    float by;
} work;

static void kl_divergence_backward_range(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    kern->axpy(qkv__piece(w->dx + from, w->add, to - from), w->target + from, w->by, to - from);
}

/* y = sum target (log target - log_p) / rows:   dlog_p += -dy target / rows */
static void kl_divergence_backward(qkv_tensor *y)
{
    qkv_tensor *log_p = y->in[0];
    work w = { .target = qkv_data(y->in[1]), .by = -y->grad[0] / (float)qkv__rows(log_p) };
    if ((w.dx = qkv__grad_to(log_p, &w.add)))
        qkv__parallel_for(y->tape, log_p->count, QKV_TASK_ELEMENTS, kl_divergence_backward_range, &w);
}

qkv_tensor *qkv_kl_divergence(qkv_tensor *log_p, qkv_tensor *target)
{
    qkv_tensor *in[] = { log_p, target };
    qkv_tape *t = qkv__operands("kl_divergence", 2, in);
    double sum;
    if (!t) return NULL;
    if (!qkv__same_shape(log_p, target))
        return qkv__error(t, QKV_USAGE, "kl_divergence: log_p is %s, the target is %s: they must be equal", QKV_TEXT(log_p),
                          QKV_TEXT(target));
    qkv_tensor *y = qkv__result(t, 0, NULL, kl_divergence_backward, 2, in);
    if (!y || !qkv__sum_blocks(t, kern->kl_divergence, qkv_data(log_p), qkv_data(target), log_p->count, &sum)) return NULL;
    y->data[0] = (float)(sum / (double)qkv__rows(log_p));
    return y;
}
