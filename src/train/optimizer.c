/* optimizer.c: one step of each rule, equal to PyTorch's. The state is flat like the weights; a step is one parallel loop. */
#include "optimizer.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../base/pool.h"
#include "../base/size.h"
#include "../dist/changes.h"
#include "../base/number.h"
#include "../nn/params.h"

#include <math.h>
#include <string.h>

enum { PIECE = 1 << 14 }; /* floats in a task */

/* A part of one weight, so that a task knows whether its floats decay. */
typedef struct piece {
    int64_t from, count; /* in the block */
    int64_t state;       /* where its state begins */
    bool decays;
    bool is_finite; /* after the last step */
} piece;

typedef struct settings {
    double lr, momentum, beta1, beta2, alpha, eps, weight_decay;
    bool nesterov;
} settings;

/* What one step multiplies by, worked out once in double. */
typedef struct factors {
    float lr, momentum, eps, decay;
    float keep1, take1; /* m = keep1 m + take1 g */
    float keep2, take2; /* v = keep2 v + take2 g^2 */
    float root;         /* sqrt(1 - beta2^t) */
    bool nesterov;
} factors;

/* Steps n weights w with gradients g and states a and b (NULL where the rule has none), and clears g. */
typedef void update(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict a, float *restrict b);

struct qkv_optimizer {
    qkv_params *params;
    qkv_optimizer_rule rule;
    settings set;
    update *update;
    factors now;
    float *state[2]; /* NULL: not needed */
    int64_t block;
    int64_t states;     /* floats of each state: the params' block, or the slices of this rank one after the other */
    qkv__slices slices; /* of the block, where it is sharded; else all of it is one rank's */
    piece *pieces;
    int64_t n_pieces;
    int64_t steps;
};

/* ---- the rules ---- */

static void sgd(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict a, float *restrict b)
{
    (void)a, (void)b;
    for (int64_t i = 0; i < n; i++) {
        w[i] -= f->lr * (g[i] + f->decay * w[i]);
        g[i] = 0;
    }
}

static void momentum(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict v, float *restrict b)
{
    (void)b;
    const float ahead = f->nesterov ? f->momentum : 1, now = f->nesterov ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + f->decay * w[i];
        v[i] = f->momentum * v[i] + slope; /* v starts at 0: the first step has v = g */
        w[i] -= f->lr * (now * slope + ahead * v[i]);
        g[i] = 0;
    }
}

static void adagrad(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict s, float *restrict b)
{
    (void)b;
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + f->decay * w[i];
        s[i] += slope * slope;
        w[i] -= f->lr * slope / (sqrtf(s[i]) + f->eps);
        g[i] = 0;
    }
}

static void rmsprop(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict s, float *restrict b)
{
    (void)b;
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + f->decay * w[i];
        s[i] = f->keep2 * s[i] + f->take2 * slope * slope;
        w[i] -= f->lr * slope / (sqrtf(s[i]) + f->eps);
        g[i] = 0;
    }
}

static void rmsprop_momentum(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict s,
                             float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + f->decay * w[i];
        s[i] = f->keep2 * s[i] + f->take2 * slope * slope;
        v[i] = f->momentum * v[i] + slope / (sqrtf(s[i]) + f->eps);
        w[i] -= f->lr * v[i];
        g[i] = 0;
    }
}

static void adam(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict m, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        float slope = g[i] + f->decay * w[i];
        m[i] = f->keep1 * m[i] + f->take1 * slope;
        v[i] = f->keep2 * v[i] + f->take2 * slope * slope;
        w[i] -= f->lr * m[i] / (sqrtf(v[i]) / f->root + f->eps); /* lr already holds 1 / (1 - beta1^t) */
        g[i] = 0;
    }
}

static void adamw(const factors *f, int64_t n, float *restrict w, float *restrict g, float *restrict m, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = f->keep1 * m[i] + f->take1 * g[i];
        v[i] = f->keep2 * v[i] + f->take2 * g[i] * g[i];
        w[i] = w[i] * (1 - f->decay) - f->lr * m[i] / (sqrtf(v[i]) / f->root + f->eps);
        g[i] = 0;
    }
}

/* The loop of a rule and how many states it has. */
static update *choose_update(qkv_optimizer_rule rule, bool has_momentum, int *states)
{
    static const struct {
        update *plain, *with_momentum;
        int states[2];
    } table[] = {
        [QKV_OPTIMIZER_SGD] = { sgd, momentum, { 0, 1 } },
        [QKV_OPTIMIZER_ADAGRAD] = { adagrad, adagrad, { 1, 1 } },
        [QKV_OPTIMIZER_RMSPROP] = { rmsprop, rmsprop_momentum, { 1, 2 } },
        [QKV_OPTIMIZER_ADAM] = { adam, adam, { 2, 2 } },
        [QKV_OPTIMIZER_ADAMW] = { adamw, adamw, { 2, 2 } },
    };
    *states = table[rule].states[has_momentum];
    return has_momentum ? table[rule].with_momentum : table[rule].plain;
}

/* ---- making one ---- */

/* 0 stands for the default, a negative number for 0. */
static double or_default(float given, double standard) { return given < 0 ? 0 : given == 0 ? standard : (double)given; }

static settings resolve_optimizer_options(const qkv_optimizer_opts *o)
{
    bool is_adam = o->rule == QKV_OPTIMIZER_ADAM || o->rule == QKV_OPTIMIZER_ADAMW;
    return (settings){
        .lr = or_default(o->lr, is_adam ? 1e-3 : 1e-2),
        .momentum = or_default(o->momentum, 0),
        .beta1 = or_default(o->beta1, 0.9),
        .beta2 = or_default(o->beta2, 0.999),
        .alpha = or_default(o->alpha, 0.99),
        .eps = or_default(o->eps, o->rule == QKV_OPTIMIZER_ADAGRAD ? 1e-10 : 1e-8),
        .weight_decay = or_default(o->weight_decay, o->rule == QKV_OPTIMIZER_ADAMW ? 0.01 : 0),
        .nesterov = o->nesterov != 0,
    };
}

static qkv_status check_optimizer_settings(qkv_optimizer_rule rule, const settings *s)
{
    const struct {
        const char *name;
        double value, below;
    } table[] = {
        { "lr", s->lr, INFINITY },
        { "momentum", s->momentum, 1 },
        { "beta1", s->beta1, 1 },
        { "beta2", s->beta2, 1 },
        { "alpha", s->alpha, 1 },
        { "eps", s->eps, INFINITY },
        { "weight_decay", s->weight_decay, INFINITY },
    };
    if ((unsigned)rule > QKV_OPTIMIZER_ADAMW) return qkv__fail(QKV_USAGE, "optimizer: there is no rule %d", (int)rule);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!(table[i].value < table[i].below))
            return qkv__fail(QKV_USAGE, "optimizer: %s is %g, expected less than %g", table[i].name, table[i].value,
                             table[i].below);
    if (s->nesterov && !(rule == QKV_OPTIMIZER_SGD && s->momentum > 0))
        return qkv__fail(QKV_USAGE, "optimizer: nesterov is for SGD with momentum");
    return QKV_OK;
}

/* Cuts a span of a weight into pieces; with pieces NULL only counts them. */
static int64_t cut_span(qkv__span own, int64_t state, bool decays, piece *pieces)
{
    int64_t n = 0;
    for (int64_t at = own.from; at < own.to; at += PIECE, n++)
        if (pieces) pieces[n] = (piece){ at, qkv__min(PIECE, own.to - at), state + (at - own.from), decays, true };
    return n;
}

static int64_t cut_weight(const qkv_optimizer *o, qkv__span w, bool decays, piece *pieces)
{
    int64_t n = 0;
    if (o->slices.ranks == 1) return cut_span(w, w.from, decays, pieces);
    for (int64_t b = w.from / qkv__bucket_floats(&o->slices), state; qkv__bucket(&o->slices, b).from < w.to; b++) {
        qkv__span own = qkv__slice_of(&o->slices, b, w, &state);
        n += cut_span(own, state, decays, pieces ? pieces + n : NULL);
    }
    return n;
}

/* Cuts every weight. */
static int64_t cut(const qkv_optimizer *o, bool decay_all, piece *pieces)
{
    int64_t n = 0;
    for (int i = 0; i < qkv_params_size(o->params); i++) {
        const qkv_tensor *w = qkv_params_at(o->params, i);
        int64_t start = qkv_tensor_data(w) - qkv__params_data(o->params);
        qkv__span all = { start, start + qkv_tensor_count(w) };
        n += cut_weight(o, all, decay_all || qkv_tensor_ndim(w) >= 2, pieces ? pieces + n : NULL);
    }
    return n;
}

static qkv_status allocate(qkv_optimizer *o, int states, bool decay_all)
{
    for (int i = 0; i < states; i++)
        if (!(o->state[i] = qkv__alloc_zero(sizeof(float) * (size_t)o->states))) return QKV_MEMORY;
    o->n_pieces = cut(o, decay_all, NULL);
    if (!(o->pieces = qkv__alloc(sizeof(piece) * (size_t)o->n_pieces))) return QKV_MEMORY;
    cut(o, decay_all, o->pieces);
    return QKV_OK;
}

qkv_optimizer *qkv_optimizer_new(qkv_params *p, const qkv_optimizer_opts *opts)
{
    return qkv__optimizer_new_of(p, opts, (qkv__slices){ .ranks = 1 });
}

qkv_optimizer *qkv__optimizer_new_of(qkv_params *p, const qkv_optimizer_opts *opts, qkv__slices slices)
{
    qkv_optimizer_opts given;
    if (QKV__READ_OPTIONS(&given, decay_all, opts, "optimizer")) return NULL;
    const settings set = resolve_optimizer_options(&given);
    if (qkv_params_status(p) || check_optimizer_settings(given.rule, &set) || qkv__params_materialize(p)) return NULL;
    qkv_optimizer *o = qkv__alloc_zero(sizeof *o);
    if (!o) return NULL;
    *o = (qkv_optimizer){ .params = p, .rule = given.rule, .set = set, .block = qkv__params_block(p), .slices = slices };
    o->slices.count = o->block;
    o->states = slices.ranks == 1 ? o->block : qkv__slice_place(&o->slices, qkv__buckets(&o->slices));
    int states;
    o->update = choose_update(o->rule, set.momentum > 0, &states);
    if (!allocate(o, states, given.decay_all != 0)) return o;
    qkv_optimizer_free(o);
    return NULL;
}

void qkv_optimizer_free(qkv_optimizer *o)
{
    if (!o) return;
    for (int i = 0; i < 2; i++) qkv__release(o->state[i], sizeof(float) * (size_t)o->states);
    qkv__release(o->pieces, sizeof(piece) * (size_t)o->n_pieces);
    qkv__release(o, sizeof *o);
}

/* ---- a step ---- */

static factors factors_of(const qkv_optimizer *o)
{
    const settings *s = &o->set;
    bool is_adam = o->rule == QKV_OPTIMIZER_ADAM || o->rule == QKV_OPTIMIZER_ADAMW;
    double t = (double)o->steps + 1, keep2 = is_adam ? s->beta2 : s->alpha;
    double correction1 = is_adam ? 1 - pow(s->beta1, t) : 1, correction2 = is_adam ? 1 - pow(s->beta2, t) : 1;
    return (factors){
        .lr = (float)(s->lr / correction1),
        .momentum = (float)s->momentum,
        .eps = (float)s->eps,
        .decay = (float)(o->rule == QKV_OPTIMIZER_ADAMW ? s->lr * s->weight_decay : s->weight_decay),
        .keep1 = (float)s->beta1,
        .take1 = (float)(1 - s->beta1),
        .keep2 = (float)keep2,
        .take2 = (float)(1 - keep2),
        .root = (float)sqrt(correction2),
        .nesterov = s->nesterov,
    };
}

/* The changes stay where the gradients were: other ranks have the old weights. Few at a time, which stay in the first cache. */
static void step_and_tell(const qkv_optimizer *o, const factors *f, int64_t n, float *w, float *g, float *a, float *b)
{
    float old[QKV__UNIT];
    for (int64_t at = 0, some; at < n; at += some) {
        some = qkv__min(QKV__UNIT, n - at);
        memcpy(old, w + at, sizeof *old * (size_t)some);
        o->update(f, some, w + at, g + at, a ? a + at : NULL, b ? b + at : NULL);
        qkv__find_changes(some, old, w + at, g + at);
    }
}

static void step_piece(const qkv_optimizer *o, piece *at)
{
    factors f = o->now;
    if (!at->decays) f.decay = 0;
    float *state[2];
    for (int i = 0; i < 2; i++) state[i] = o->state[i] ? o->state[i] + at->state : NULL;
    float *weights = qkv__params_data(o->params) + at->from, *gradients = qkv__params_grad(o->params) + at->from;
    if (o->slices.ranks > 1) step_and_tell(o, &f, at->count, weights, gradients, state[0], state[1]);
    else o->update(&f, at->count, weights, gradients, state[0], state[1]);
    at->is_finite = qkv__all_finite(at->count, weights); /* while it lies in the cache */
    for (int i = 0; i < 2 && state[i]; i++) at->is_finite = at->is_finite && qkv__all_finite(at->count, state[i]);
}

/* So many pieces a thread at a time, for who wants to know how far it is: some tens of microseconds. */
enum { PIECES_AT_A_TIME = 4 };

typedef struct some_pieces {
    const qkv_optimizer *optimizer;
    int64_t first;
} some_pieces;

static void step_some(void *work, int64_t task, void *scratch)
{
    const some_pieces *s = work;
    (void)scratch;
    step_piece(s->optimizer, &s->optimizer->pieces[s->first + task]);
}

qkv_status qkv__optimizer_step_in_order(qkv_optimizer *o, void (*tell)(void *data, int64_t to), void *data)
{
    if (!o) return qkv_error_status() ? qkv_error_status() : qkv__fail(QKV_USAGE, "there is no optimizer");
    if (o->block != qkv__params_block(o->params))
        return qkv__fail(QKV_USAGE, "optimizer: weights were added after it was made");
    if (!(o->set.lr >= 0 && o->set.lr < INFINITY))
        return qkv__fail(QKV_USAGE, "optimizer: lr is %g, expected a finite number, at least 0", o->set.lr);
    o->now = factors_of(o);
    int64_t at_a_time = tell ? PIECES_AT_A_TIME * qkv_num_threads() : o->n_pieces;
    for (int64_t i = 0; i < o->n_pieces; i += at_a_time) {
        int64_t n = qkv__min(at_a_time, o->n_pieces - i);
        if (qkv__parallel(n, 0, step_some, &(some_pieces){ o, i })) return QKV_MEMORY;
        if (tell) tell(data, i + n < o->n_pieces ? o->pieces[i + n].from : o->block);
    }
    o->steps++;
    return QKV_OK;
}

qkv_status qkv_optimizer_step(qkv_optimizer *o) { return qkv__optimizer_step_in_order(o, NULL, NULL); }

void qkv_optimizer_set_lr(qkv_optimizer *o, float lr)
{
    if (o) o->set.lr = (double)lr;
}

float qkv__optimizer_lr(const qkv_optimizer *o) { return o ? (float)o->set.lr : 0; }

int64_t qkv__optimizer_steps(const qkv_optimizer *o) { return o ? o->steps : 0; }

float *qkv__optimizer_state(const qkv_optimizer *o, int i) { return i >= 0 && i < 2 ? o->state[i] : NULL; }

int64_t qkv__optimizer_lost(const qkv_optimizer *o)
{
    for (int64_t i = 0; i < o->n_pieces; i++)
        if (!o->pieces[i].is_finite) return o->pieces[i].from;
    return -1;
}

void qkv__optimizer_set_steps(qkv_optimizer *o, int64_t steps) { o->steps = steps; }
