/* qkv/train.h: optimizers and learning-rate schedules. */
#ifndef QKV_TRAIN_H
#define QKV_TRAIN_H

#include <qkv/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One optimizer type; which rule it follows is chosen when it is made. g is the gradient, t the step from 1. */
typedef enum qkv_rule {
    QKV_SGD,     /* v = momentum v + g (v = g at the first step);  w -= lr v,  or lr (g + momentum v) with nesterov */
    QKV_ADAGRAD, /* s += g^2;  w -= lr g / (sqrt(s) + eps) */
    QKV_RMSPROP, /* s = alpha s + (1-alpha) g^2;  w -= lr g / (sqrt(s) + eps), through momentum if given */
    QKV_ADAM,    /* m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) */
    QKV_ADAMW    /* Adam; w is first multiplied by 1 - lr weight_decay */
} qkv_rule;

/* Zero means the default shown. A value that must be a true zero is given as a negative number. */
typedef struct qkv_optimizer_opts {
    qkv_rule rule;
    float lr;       /* 0.01 for SGD, AdaGrad and RMSProp, 0.001 for Adam and AdamW */
    float momentum; /* 0 */
    int nesterov;
    float beta1, beta2; /* 0.9, 0.999 */
    float alpha;        /* 0.99 */
    float eps;          /* 1e-8; AdaGrad 1e-10 */
    float weight_decay; /* 0; AdamW 0.01. Others than AdamW add it to the gradient: g += weight_decay w.
                           Weights of fewer than two dimensions (biases, gains) do not decay unless decay_all. */
    int decay_all;
} qkv_optimizer_opts;

typedef struct qkv_optimizer qkv_optimizer;

/* For the weights p has now; make it after the layers. NULL opts means all zero. You own it; p must outlive it. NULL on error:
 * what qkv_params_status(p) tells, USAGE for a value out of range (momentum, beta1, beta2, alpha are below 1), MEMORY. */
QKV_API qkv_optimizer *qkv_optimizer_new(qkv_params *p, const qkv_optimizer_opts *opts);
QKV_API void qkv_optimizer_free(qkv_optimizer *o);

/* One step with the gradients p holds, which are zero afterwards. On an error nothing has changed: USAGE when p has gained
 * weights since, or lr is negative or not finite; MEMORY. */
QKV_API qkv_status qkv_optimizer_step(qkv_optimizer *o);

/* The rate of the steps to come; 0 is a true zero here. */
QKV_API void qkv_optimizer_set_lr(qkv_optimizer *o, float lr);
QKV_API float qkv_optimizer_lr(const qkv_optimizer *o);
QKV_API int64_t qkv_optimizer_steps(const qkv_optimizer *o); /* steps taken */

/* ---- the learning rate of each step; t counts from 1, and for t < 1 as if it were 1 ---- */
typedef enum qkv_schedule_kind {
    QKV_CONSTANT, /* lr min(1, t/warmup) */
    QKV_PAPER,    /* lr dim^-0.5 min(t^-0.5, t warmup^-1.5), equation 3 of the paper */
    QKV_LINEAR,   /* as constant to warmup, then in a straight line to last at step `steps`, and last after it */
    QKV_COSINE    /* the same along half a cosine */
} qkv_schedule_kind;

typedef struct qkv_schedule {
    qkv_schedule_kind kind;
    double lr;      /* of QKV_PAPER a factor, usually 1 */
    int64_t warmup; /* steps; 0 none, QKV_PAPER needs at least 1 */
    int64_t steps;  /* of the whole training, more than warmup */
    int64_t dim;    /* d_model */
    double last;    /* where the line or the cosine ends */
} qkv_schedule;

/* USAGE when a number it needs is missing or does not fit. */
QKV_API qkv_status qkv_schedule_check(const qkv_schedule *s);
QKV_API double qkv_schedule_lr(const qkv_schedule *s, int64_t step); /* of a schedule that passed the check */

#ifdef __cplusplus
}
#endif
#endif
