/* trainer.c: a model learns from examples, one update at a time. All that an update depends on is in the checkpoint or
 * in the options: the batches come from (seed, epoch, place), dropout from (seed, step), so that a resumed run equals one that
 * never stopped. */
#include "trainer.h"

#include "micro_batches.h"
#include "norm.h"
#include "optimizer.h"
#include "shard.h"

#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/options.h"
#include "../base/size.h"
#include "../dist/all_gather.h"
#include "../dist/tree.h"
#include "../base/number.h"
#include "../io/safetensors.h"
#include "../tensor/tape.h"
#include "../data/pairs.h"
#include "../nn/params.h"
#include "../model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qkv_trainer {
    qkv_model *model;
    const qkv_dataset *pairs;
    qkv_trainer_opts o; /* what it points to are copies, the members that follow */
    qkv_loss loss;
    qkv_schedule schedule;
    qkv_optimizer_opts optimizer_opts;
    qkv_batch_opts batch_opts;
    bool has_schedule;
    qkv_optimizer *optimizer;
    qkv_tape *tape;
    qkv_loader *epoch;
    uint64_t number; /* of the epoch */
    int64_t next;    /* batch of the epoch */
    uint64_t passes; /* forwards so far: the step of the tape, which dropout depends on */
    qkv__best_so_far best_so_far;
    qkv__loss_so_far loss_so_far;
    qkv_batch **batches; /* of an update, or its micro-batches */
    double *losses;      /* of the micro-batches, each times its share of the tokens */
    int64_t *tokens;     /* of the micro-batches */
    int64_t n_batches;   /* there is room for */
    qkv__partial_sums sums;
    qkv__slices slices;         /* of the weights */
    bool is_sharded;            /* of several ranks: each updates its slices and keeps their state */
    qkv__all_gather *gathering; /* the others' slices of the weights are on their way; else NULL */
    uint64_t pairs_hash;
};

qkv_status qkv__make_batch(const qkv_loss *o, const qkv_loader *e, int64_t i, int64_t part, int64_t parts, uint64_t seed,
                           uint64_t pass, qkv_batch **out)
{
    qkv_status status = qkv__loader_part(e, i, part, parts, out);
    return status || !o->prepare || !(*out)->rows ? status : o->prepare(o, *out, seed, pass);
}

/* ---- making ---- */

static qkv_status check_trainer_options(const qkv_model *m, const qkv_dataset *pairs, const qkv_trainer_opts *o)
{
    const qkv_config *t = qkv__model_config(m);
    if (!t || !o) return qkv__fail(QKV_USAGE, "training needs a model and options");
    if (!o->loss && (!t->encoder_layers || !t->decoder_layers))
        return qkv__fail(QKV_USAGE, "training on pairs needs an encoder and a decoder");
    if (!qkv_dataset_size(pairs)) return qkv__fail(QKV_USAGE, "training: there are no pairs");
    if (o->accumulate < 0 || o->accumulate > 10000)
        return qkv__fail(QKV_USAGE, "training: %lld batches in an update, expected 1 to 10000", (long long)o->accumulate);
    if (o->micro_batches < 0 || o->micro_batches > 4096)
        return qkv__fail(QKV_USAGE, "training: %lld micro-batches in a batch, expected 1 to 4096", (long long)o->micro_batches);
    if (qkv_dist_size() > 1 && o->micro_batches < qkv_dist_size())
        return qkv__fail(QKV_USAGE, "training: %d ranks share %lld micro-batches: there must be one for each", qkv_dist_size(),
                         (long long)o->micro_batches);
    if (!(o->clip_norm >= 0))
        return qkv__fail(QKV_USAGE, "training: the gradients are clipped at %g, expected 0 or more", (double)o->clip_norm);
    return QKV_OK;
}

static qkv_status read_trainer_options(qkv_trainer *t, const qkv_trainer_opts *opts)
{
    qkv_status status = QKV__READ_OPTIONS(&t->o, micro_batches, opts, "training");
    if (!status) status = QKV__READ_OPTIONS(&t->optimizer_opts, decay_all, t->o.optimizer, "training");
    if (!status) status = QKV__READ_OPTIONS(&t->batch_opts, source_has_end, t->o.batches, "training");
    if (!status) status = QKV__READ_OPTIONS(&t->schedule, final_lr, t->o.schedule, "training");
    if (!status && t->schedule.lr != 0) status = qkv__schedule_check(&t->schedule);
    return status ? status : check_trainer_options(t->model, t->pairs, opts ? &t->o : NULL);
}

static qkv_status begin_epoch(qkv_trainer *t, uint64_t number)
{
    qkv_loader *e = qkv_loader_new(t->pairs, &t->batch_opts, number);
    if (!e) return qkv_error_status();
    qkv_loader_free(t->epoch);
    t->epoch = e;
    t->number = number;
    return QKV_OK;
}

/* All batches of the first epoch have all ids. */
static qkv_status hash_pairs(const qkv_trainer *t, uint64_t *hash)
{
    qkv_batch_opts plain = t->batch_opts;
    plain.sequential = 1;
    qkv_loader *e = qkv_loader_new(t->pairs, &plain, 0);
    qkv_batch *b = NULL;
    qkv_status status = e ? QKV_OK : qkv_error_status();
    *hash = QKV__HASH_START;
    for (int64_t i = 0; !status && i < qkv_loader_size(e); i++) {
        if ((status = qkv_loader_batch(e, i, &b))) break;
        *hash = qkv__hash_bytes(*hash, b->source, sizeof(int32_t) * (size_t)(b->rows * b->source_length));
        *hash = qkv__hash_bytes(*hash, b->labels, sizeof(int32_t) * (size_t)(b->rows * b->target_length));
    }
    qkv_free(b);
    qkv_loader_free(e);
    return status;
}

/* Parts that a batch is cut into. */
static int64_t parts_of(const qkv_trainer *t) { return t->o.micro_batches ? t->o.micro_batches : 1; }

static uint64_t hash_options(const qkv_trainer *t);

/* One that is shared need not be read by everybody to be known as the same. */
static bool has_text_of_rank_0(const qkv_trainer *t) { return qkv_dist_rank() && qkv__dataset_are_opened(t->pairs); }

/* Every rank has made the same of its files: better known now than by a model that learns nothing. */
static qkv_status join_ranks(qkv_trainer *t)
{
    const uint64_t options = hash_options(t);
    qkv_params *p = qkv__model_params(t->model);
    uint64_t first = t->pairs_hash;
    qkv_status status = qkv__dist_copy(&first, sizeof first);
    if (has_text_of_rank_0(t)) t->pairs_hash = first;
    if (!status) status = qkv__dist_agree(&t->pairs_hash, sizeof t->pairs_hash, "the text");
    if (!status) status = qkv__dist_agree(&options, sizeof options, "the options");
    return status ? status : qkv__dist_copy(qkv__params_data(p), sizeof(float) * (size_t)qkv__params_block(p));
}

static qkv_status start(qkv_trainer *t)
{
    qkv_params *p = qkv__model_params(t->model);
    t->slices = qkv__slices_of(qkv__params_block(p));
    t->is_sharded = t->slices.ranks > 1;
    t->optimizer = t->is_sharded ? qkv__optimizer_new_of(p, &t->optimizer_opts, t->slices)
                                 : qkv_optimizer_new(p, &t->optimizer_opts);
    t->tape = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .overwrite_values = 1, .seed = t->o.seed });
    t->n_batches = t->o.accumulate * parts_of(t);
    t->batches = qkv__alloc_zero(sizeof *t->batches * (size_t)t->n_batches);
    t->losses = qkv__alloc_zero(sizeof *t->losses * (size_t)t->n_batches);
    t->tokens = qkv__alloc_zero(sizeof *t->tokens * (size_t)t->n_batches);
    if (!t->optimizer || !t->tape || !t->batches || !t->losses || !t->tokens) return qkv_error_status();
    qkv_status status = has_text_of_rank_0(t) ? QKV_OK : hash_pairs(t, &t->pairs_hash);
    if (!status) status = begin_epoch(t, 0);
    return status || qkv_dist_size() == 1 ? status : join_ranks(t);
}

qkv_trainer *qkv_trainer_new(qkv_model *m, const qkv_dataset *pairs, const qkv_trainer_opts *opts)
{
    qkv_trainer made = { .model = m, .pairs = pairs };
    if (read_trainer_options(&made, opts)) return NULL;
    qkv_trainer *t = qkv__alloc_zero(sizeof *t);
    if (!t) return NULL;
    *t = made;
    t->has_schedule = t->schedule.lr != 0;
    t->batch_opts.seed = t->o.seed;
    t->loss = t->o.loss ? *t->o.loss : qkv_loss_seq2seq();
    t->o.loss = &t->loss;
    if (!t->o.accumulate) t->o.accumulate = 1;
    if (!start(t)) return t;
    qkv_trainer_free(t);
    return NULL;
}

void qkv_trainer_free(qkv_trainer *t)
{
    if (!t) return;
    if (t->gathering) qkv__all_gather_abandon(t->gathering);
    for (int64_t i = 0; t->batches && i < t->n_batches; i++) qkv_free(t->batches[i]);
    qkv__release(t->batches, sizeof *t->batches * (size_t)t->n_batches);
    qkv__release(t->losses, sizeof *t->losses * (size_t)t->n_batches);
    qkv__release(t->tokens, sizeof *t->tokens * (size_t)t->n_batches);
    qkv__partial_sums_free(&t->sums);
    qkv_loader_free(t->epoch);
    qkv_tape_free(t->tape);
    qkv_optimizer_free(t->optimizer);
    qkv__release(t, sizeof *t);
}

qkv__best_so_far *qkv__trainer_best_so_far(qkv_trainer *t) { return t ? &t->best_so_far : NULL; }

qkv__loss_so_far *qkv__trainer_loss_so_far(qkv_trainer *t) { return &t->loss_so_far; }

bool qkv__trainer_is_sharded(const qkv_trainer *t) { return t->is_sharded; }

/* ---- a step ---- */

/* Which weight is not finite, or has a gradient that is not. Gradients that ranks still add up are not looked at: they may be
 * another's, and are written just now. */
static qkv_status not_finite(const qkv_trainer *t, const char *what, double value, bool has_grad)
{
    const qkv_params *p = qkv__model_params(t->model);
    for (int i = 0; i < qkv_params_size(p); i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        for (int64_t k = 0; k < w->count; k++)
            if (!isfinite(w->data[k]) || (has_grad && !isfinite(w->grad[k])))
                return qkv__fail(QKV_NUMERIC,
                                 "step %lld: the %s is %g: %s of \"%s\" is not finite; a smaller learning rate may help",
                                 (long long)qkv__optimizer_steps(t->optimizer) + 1, what, value,
                                 isfinite(w->data[k]) ? "the gradient" : "a value", qkv_params_name(p, i));
    }
    return qkv__fail(QKV_NUMERIC, "step %lld: the %s is %g though every weight is finite",
                     (long long)qkv__optimizer_steps(t->optimizer) + 1, what, value);
}

/* An update may overflow though its gradients did not. */
static qkv_status check_update(const qkv_trainer *t)
{
    qkv_params *p = qkv__model_params(t->model);
    int64_t at = qkv__optimizer_lost(t->optimizer);
    for (int i = 0; at >= 0 && i < qkv_params_size(p); i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        int64_t start = w->data - qkv__params_data(p);
        if (at < start || at >= start + w->count) continue;
        return qkv__fail(QKV_NUMERIC,
                         "step %lld: after its update %s of \"%s\" is not finite; a smaller learning rate may help",
                         (long long)qkv__optimizer_steps(t->optimizer),
                         qkv__all_finite(w->count, w->data) ? "the optimizer's state" : "a value", qkv_params_name(p, i));
    }
    return QKV_OK;
}

/* ---- weights on their way ---- */

static void await_weight(void *data, const qkv_tensor *w)
{
    const qkv_trainer *t = data;
    const qkv_params *p = qkv__model_params(t->model);
    uintptr_t start = (uintptr_t)qkv_params_at(p, 0)->data, at = (uintptr_t)w->data;
    int64_t from = (int64_t)((at - start) / sizeof(float));
    if (at < start || from >= t->slices.count) return; /* of another model */
    qkv__all_gather_wait(t->gathering, from + w->count);
}

/* The gradients of other ranks' slices: this rank's have its changes, which go with the weights. */
static void zero_others(const qkv_trainer *t)
{
    float *grad = qkv__params_grad(qkv__model_params(t->model));
    for (int64_t b = 0; b < qkv__buckets(&t->slices); b++) {
        qkv__span all = qkv__bucket(&t->slices, b), own = qkv__slice(&t->slices, b, t->slices.rank);
        memset(grad + all.from, 0, sizeof *grad * (size_t)(own.from - all.from));
        memset(grad + own.to, 0, sizeof *grad * (size_t)(all.to - own.to));
    }
}

/* All weights are there. */
static qkv_status end_gathering(qkv_trainer *t)
{
    if (!t->gathering) return QKV_OK;
    qkv_status status = qkv__all_gather_end(t->gathering);
    t->gathering = NULL;
    qkv__await_weights(t->tape, NULL, NULL);
    return status;
}

/* After an error: the others may never come. */
static void abandon_gathering(qkv_trainer *t)
{
    if (!t->gathering) return;
    qkv__all_gather_abandon(t->gathering);
    t->gathering = NULL;
    qkv__await_weights(t->tape, NULL, NULL);
}

/* What a forward pass reads first is updated and sent first, and waited for where it is read. */
static qkv_status begin_gathering(qkv_trainer *t)
{
    qkv_params *p = qkv__model_params(t->model);
    qkv_status status = end_gathering(t); /* where there was nothing to compute */
    if (status) return status;
    t->gathering = qkv__all_gather_begin(&t->slices, qkv__params_data(p), qkv__params_grad(p));
    if (!t->gathering) return QKV_MEMORY;
    qkv__await_weights(t->tape, await_weight, t);
    return QKV_OK;
}

static void tell_updated(void *data, int64_t to) { qkv__all_gather_ready(((const qkv_trainer *)data)->gathering, to); }

qkv_status qkv__trainer_settle(qkv_trainer *t) { return end_gathering(t); }

/* ---- gradients ---- */

/* Adds the gradients of share times the mean loss of a batch, in the forward of that number. */
static qkv_status learn(qkv_trainer *t, const qkv_batch *b, uint64_t pass, double share, double *loss)
{
    qkv__tape_set_step(t->tape, pass);
    qkv_tensor *mean = t->loss.compute(&t->loss, t->model, t->tape, b, t->o.label_smoothing);
    qkv_tensor *scaled = share == 1 ? mean : qkv_scale(mean, (float)share);
    qkv_status status = end_gathering(t);
    if (!status) status = qkv_backward(scaled);
    double value = (double)qkv_tensor_item(mean);
    *loss += share * value;
    qkv_tape_reset(t->tape);
    return status || isfinite(value) ? status : not_finite(t, "loss", value, qkv_dist_size() == 1);
}

/* Makes this rank's share of n batches: nobody else reads their text. */
static qkv_status make_batches(qkv_trainer *t, int64_t n)
{
    int64_t parts = parts_of(t);
    qkv__node share = qkv__tree_share(n * parts, qkv_dist_rank(), qkv_dist_size());
    qkv_status status = QKV_OK;
    for (int64_t i = share.from; i < share.to && !status; i++) {
        status = qkv__make_batch(&t->loss, t->epoch, t->next + i / parts, i % parts, parts, t->o.seed, t->passes + (uint64_t)i,
                                 &t->batches[i]);
        if (!status) t->tokens[i] = t->batches[i]->tokens;
    }
    return status || qkv_dist_size() == 1 ? status : qkv__share_parts(t->tokens, sizeof *t->tokens, n * parts);
}

/* The batches of the next update, and how many tokens they have. */
static qkv_status gather(qkv_trainer *t, int64_t *n, int64_t *tokens)
{
    int64_t left = qkv_loader_size(t->epoch) - t->next;
    if (left <= 0) {
        qkv_status status = begin_epoch(t, t->number + 1);
        if (status) return status;
        t->next = 0;
        left = qkv_loader_size(t->epoch);
    }
    *n = qkv__min(t->o.accumulate, left);
    qkv_status status = make_batches(t, *n);
    *tokens = 0;
    for (int64_t i = 0; i < *n * parts_of(t); i++) *tokens += t->tokens[i];
    return status;
}

/* An update without anything that counts moves nothing. */
static double share_of(const qkv_batch *b, int64_t tokens) { return tokens ? (double)b->tokens / (double)tokens : 0; }

/* One after the other: the gradients of each are added to the sum of those before it. */
static qkv_status learn_in_turn(qkv_trainer *t, qkv_train_state *out, int64_t n)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++)
        status = learn(t, t->batches[i], t->passes++, share_of(t->batches[i], out->tokens), &out->loss);
    return status;
}

typedef struct shared_update {
    qkv_trainer *trainer;
    int64_t tokens;
} shared_update;

static qkv_status learn_micro_batch(void *data, int64_t i)
{
    const shared_update *u = data;
    const qkv_batch *b = u->trainer->batches[i];
    double *loss = &u->trainer->losses[i];
    *loss = 0;
    if (!b->tokens) return end_gathering(u->trainer);
    return learn(u->trainer, b, u->trainer->passes + (uint64_t)i, share_of(b, u->tokens), loss);
}

/* Micro-batches, on all ranks, their gradients added in the order of a tree. */
static qkv_status learn_in_tree(qkv_trainer *t, const qkv_train_state *out, int64_t n)
{
    shared_update u = { t, out->tokens };
    int64_t leaves = n * t->o.micro_batches;
    qkv_status status = qkv__sum_micro_batches(&(qkv__micro_batches){ .params = qkv__model_params(t->model),
                                                                      .tape = t->tape,
                                                                      .n = leaves,
                                                                      .run = learn_micro_batch,
                                                                      .data = &u,
                                                                      .sums = &t->sums });
    t->passes += (uint64_t)leaves;
    return status;
}

/* Their losses, in the same order. */
static qkv_status sum_losses(const qkv_trainer *t, qkv_train_state *out, int64_t n)
{
    int64_t leaves = n * t->o.micro_batches;
    qkv_status status = qkv__share_parts(t->losses, sizeof *t->losses, leaves);
    if (!status) out->loss = qkv__tree_sum(t->losses, (qkv__node){ 0, leaves });
    return status;
}

/* Without micro-batches the norm is that of before there were any. */
static qkv_status clip(qkv_trainer *t, float *norm)
{
    qkv_params *p = qkv__model_params(t->model);
    if (!(t->o.clip_norm > 0)) return QKV_OK;
    qkv_status status = t->o.micro_batches ? qkv__clip_slices(p, &t->slices, t->o.clip_norm, norm)
                                           : qkv_params_clip_grad(p, t->o.clip_norm, norm);
    if (!status || isfinite(*norm)) return status;
    if (t->is_sharded) status = qkv__share_block(&t->slices, qkv__params_grad(p)); /* so that each can tell which it is */
    return status == QKV_IO ? status : not_finite(t, "norm of the gradients", (double)*norm, true);
}

/* Where it is sharded each rank updates its slices, and they begin to come together meanwhile. After an error too: the others
 * wait for them. */
static qkv_status update_weights(qkv_trainer *t)
{
    qkv_status status = t->is_sharded ? begin_gathering(t) : QKV_OK;
    if (status) return status;
    status = qkv__optimizer_step_in_order(t->optimizer, t->is_sharded ? tell_updated : NULL, t);
    if (t->is_sharded) tell_updated(t, t->slices.count), zero_others(t);
    if (qkv__optimizer_lost(t->optimizer) >= 0) abandon_gathering(t); /* which weight it is is looked at */
    return status ? status : check_update(t);
}

static qkv_status update(qkv_trainer *t, qkv_train_state *out, int64_t n)
{
    float norm = 0;
    qkv_status status = t->o.micro_batches ? learn_in_tree(t, out, n) : learn_in_turn(t, out, n);
    if (!status) status = clip(t, &norm);
    if (status) return status;
    out->grad_norm = (double)norm;
    if (t->has_schedule) qkv_optimizer_set_lr(t->optimizer, (float)qkv_schedule_lr(&t->schedule, out->step));
    out->lr = (double)qkv__optimizer_lr(t->optimizer);
    status = update_weights(t);
    return status || !t->o.micro_batches ? status : sum_losses(t, out, n); /* while weights are on their way */
}

qkv_status qkv__trainer_step_ahead(qkv_trainer *t, qkv_train_state *out)
{
    qkv_train_state now = { 0 };
    int64_t n = 0;
    if (!t) return qkv__fail(QKV_USAGE, "training: there is no trainer");
    qkv_status status = gather(t, &n, &now.tokens);
    if (status) return status;
    now.step = qkv__optimizer_steps(t->optimizer) + 1;
    status = update(t, &now, n);
    char sentence[QKV_SENTENCE_MAX];
    if (status) snprintf(sentence, sizeof sentence, "%s", qkv_error());
    if (status) abandon_gathering(t);
    if (status) qkv_params_zero_grad(qkv__model_params(t->model)); /* half an update is none */
    if (status) return qkv__fail_again(status, sentence);
    t->next += n;
    now.epoch = t->number;
    now.batch = t->next;
    now.batches = qkv_loader_size(t->epoch);
    return out ? QKV__WRITE_OPTIONS(out, grad_norm, &now, "training") : QKV_OK;
}

qkv_status qkv_trainer_step(qkv_trainer *t, qkv_train_state *out)
{
    qkv_status status = qkv__trainer_step_ahead(t, out);
    return status ? status : qkv__trainer_settle(t);
}

qkv_train_state qkv__trainer_at(const qkv_trainer *t)
{
    if (!t) return (qkv_train_state){ 0 };
    return (qkv_train_state){
        .step = qkv__optimizer_steps(t->optimizer), .epoch = t->number, .batch = t->next, .batches = qkv_loader_size(t->epoch)
    };
}

/* ---- what a checkpoint must fit ---- */

static uint64_t hash_numbers(int n, const double *numbers)
{
    return qkv__hash_bytes(QKV__HASH_START, numbers, sizeof *numbers * (size_t)n);
}

uint64_t qkv__transformer_hash(const qkv_config *o)
{
    const struct {
        size_t turn;
        double value;
    } all[] = {
#define QKV_OPTION(member, kind, key, presence, hashed, ...) { hashed, (double)o->member },
#include <qkv/transformer.def>
    };
    enum { OPTIONS = sizeof all / sizeof *all };
    uint64_t hash = QKV__HASH_START;
    for (size_t turn = 0, done = 0, n; done < OPTIONS; turn++, done += n) {
        double values[OPTIONS];
        bool counts = turn == 0;
        n = 0;
        for (int i = 0; i < OPTIONS; i++) {
            if (all[i].turn != turn) continue;
            values[n++] = all[i].value;
            counts = counts || all[i].value != 0;
        }
        if (counts) hash = qkv__hash_bytes(hash, values, sizeof *values * n);
    }
    return hash;
}

static uint64_t hash_options(const qkv_trainer *t)
{
    const qkv_optimizer_opts *o = &t->optimizer_opts;
    const qkv_schedule *s = &t->schedule;
    const qkv_batch_opts *b = &t->batch_opts;
    const double numbers[] = { o->rule,
                               (double)o->lr,
                               (double)o->momentum,
                               o->nesterov,
                               (double)o->beta1,
                               (double)o->beta2,
                               (double)o->alpha,
                               (double)o->eps,
                               (double)o->weight_decay,
                               o->decay_all,
                               s->kind,
                               s->lr,
                               (double)s->warmup,
                               (double)s->steps,
                               (double)s->dim,
                               s->final_lr,
                               (double)b->max_tokens,
                               b->sequential,
                               b->start,
                               b->end,
                               b->pad,
                               b->target_has_both,
                               (double)t->o.accumulate,
                               (double)t->o.label_smoothing,
                               (double)t->o.clip_norm,
                               (double)(t->o.seed >> 32),
                               (double)(t->o.seed & 0xffffffffu),
                               (double)(t->loss.id >> 32),
                               (double)(t->loss.id & 0xffffffffu) };
    uint64_t hash = hash_numbers((int)(sizeof numbers / sizeof *numbers), numbers);
    return t->o.micro_batches ? qkv__hash_bytes(hash, &t->o.micro_batches, sizeof t->o.micro_batches) : hash;
}

/* ---- the file ---- */

enum { PAIRS, MODEL, OPTIONS, STEPS, EPOCH, NEXT, PASSES, BEST, BEST_STEP, MISSED, BEST_LOSS, LOSS_SUM, LOSS_TOKENS, NOTES };
static const char *const note_names[NOTES] = { "pairs", "model",     "options", "steps",     "epoch",    "next",       "passes",
                                               "best",  "best_step", "missed",  "best_loss", "loss_sum", "loss_tokens" };

typedef struct notes {
    char text[NOTES][32];
} notes;

static void write_notes(const qkv_trainer *t, notes *n)
{
    const uint64_t hashes[] = { t->pairs_hash, qkv__transformer_hash(qkv__model_config(t->model)), hash_options(t) };
    for (int i = PAIRS; i <= OPTIONS; i++) snprintf(n->text[i], sizeof n->text[i], "%016" PRIx64, hashes[i]);
    const int64_t counts[] = { qkv__optimizer_steps(t->optimizer), (int64_t)t->number, t->next, (int64_t)t->passes };
    for (int i = STEPS; i <= PASSES; i++) snprintf(n->text[i], sizeof n->text[i], "%" PRId64, counts[i - STEPS]);
    snprintf(n->text[BEST], sizeof n->text[BEST], "%a", t->best_so_far.best);
    snprintf(n->text[BEST_STEP], sizeof n->text[BEST_STEP], "%" PRId64, t->best_so_far.best_step);
    snprintf(n->text[MISSED], sizeof n->text[MISSED], "%" PRId64, t->best_so_far.missed);
    snprintf(n->text[BEST_LOSS], sizeof n->text[BEST_LOSS], "%a", t->best_so_far.best_loss);
    snprintf(n->text[LOSS_SUM], sizeof n->text[LOSS_SUM], "%a", t->loss_so_far.sum);
    snprintf(n->text[LOSS_TOKENS], sizeof n->text[LOSS_TOKENS], "%" PRId64, t->loss_so_far.tokens);
}

/* The last notes are left out where they say nothing, as checkpoints of older versions do. */
static int list_notes(const qkv_trainer *t, const notes *n, qkv__note *out)
{
    int used = 0;
    for (int i = 0; i < NOTES; i++) {
        bool is_said = i < BEST_LOSS || (i == BEST_LOSS ? t->best_so_far.best_loss != 0 : t->loss_so_far.tokens > 0);
        if (is_said) out[used++] = (qkv__note){ note_names[i], n->text[i] };
    }
    return used;
}

/* Weights under their names, and the optimizer's states of each as "optimizer.0.NAME". Room for all of it in one block. */
typedef struct listing {
    qkv__to_store *tensors;
    char (*names)[300];
    qkv__scattered *states; /* where they are sharded, each at the place of its tensor */
    int n;
    size_t bytes;
} listing;

static void list_state(const qkv_trainer *t, listing *l, int k, int i, qkv__collection *all)
{
    qkv_params *p = qkv__model_params(t->model);
    const qkv_tensor *w = qkv_params_at(p, i);
    qkv__to_store *to = &l->tensors[l->n];
    int64_t start = w->data - qkv__params_data(p);
    *to = (qkv__to_store){ .name = l->names[l->n], .ndim = w->ndim, .shape = w->shape, .count = w->count };
    snprintf(l->names[l->n], sizeof l->names[l->n], "optimizer.%d.%s", k, qkv_params_name(p, i));
    l->states[l->n] = (qkv__scattered){ .all = all, .state = k, .start = start };
    if (t->is_sharded) to->get = qkv__collect, to->from = &l->states[l->n];
    else to->data = qkv__optimizer_state(t->optimizer, k) + start;
    l->n++;
}

static qkv_status list_tensors(const qkv_trainer *t, listing *l, qkv__collection *all)
{
    qkv_params *p = qkv__model_params(t->model);
    int weights = qkv_params_size(p), most = 3 * weights;
    *l = (listing){ .bytes = (sizeof *l->tensors + sizeof *l->states + sizeof *l->names) * (size_t)most };
    if (!(l->tensors = qkv__alloc(l->bytes))) return QKV_MEMORY;
    l->states = (qkv__scattered *)(l->tensors + most);
    l->names = (char(*)[300])(l->states + most);
    for (int i = 0; i < weights; i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        l->tensors[l->n++] = (qkv__to_store){
            .name = qkv_params_name(p, i), .ndim = w->ndim, .shape = w->shape, .count = w->count, .data = w->data
        };
        for (int k = 0; qkv__optimizer_state(t->optimizer, k); k++) list_state(t, l, k, i, all);
    }
    return QKV_OK;
}

/* What lost its numbers must not take the place of what has them. States that are sharded were looked at after the last
 * update. */
static qkv_status check_values(const listing *l, const char *path)
{
    for (int i = 0; i < l->n; i++)
        if (l->tensors[i].data && !qkv__all_finite(l->tensors[i].count, l->tensors[i].data))
            return qkv__fail(QKV_NUMERIC, "%s: not saved: a value of \"%s\" is not finite", path, l->tensors[i].name);
    return QKV_OK;
}

static qkv_status write_checkpoint(const qkv_trainer *t, const char *path, qkv__collection *all)
{
    listing l;
    notes n;
    qkv__note lines[NOTES];
    write_notes(t, &n);
    int n_notes = list_notes(t, &n, lines);
    if (list_tensors(t, &l, all)) return QKV_MEMORY;
    qkv_status status = check_values(&l, path);
    if (!status) status = qkv__safetensors_write(path, l.n, l.tensors, n_notes, lines);
    qkv__release(l.tensors, l.bytes);
    return status;
}

qkv_status qkv_trainer_save(const qkv_trainer *t, const char *path)
{
    qkv__collection all;
    if (!t || !path) return qkv__fail(QKV_USAGE, "training: a trainer and a path are needed to save");
    if (!t->is_sharded) return write_checkpoint(t, path, NULL);
    if (t->slices.rank) return qkv__give_to_collection(t->optimizer, &t->slices);
    qkv_status status = qkv__collection_begin(&all, t->optimizer, &t->slices);
    if (!status) status = write_checkpoint(t, path, &all);
    qkv_status ended = qkv__collection_end(&all);
    return status ? status : ended;
}

/* ---- resuming ---- */

static qkv_status check_same(const qkv_trainer *t, const qkv__safetensors *file)
{
    static const char *const words[] = { "pairs", "model", "options" };
    notes own;
    qkv_status status = QKV_OK;
    write_notes(t, &own);
    for (int i = PAIRS; i <= OPTIONS && !status; i++) {
        const char *written = qkv__safetensors_note(file, note_names[i]);
        if (!written) status = qkv__fail(QKV_FORMAT, "%s: not a checkpoint: it lacks \"%s\"", file->path, note_names[i]);
        else if (strcmp(written, own.text[i]))
            status = qkv__fail(QKV_USAGE, "%s: it was trained with other %s", file->path, words[i]);
    }
    return status;
}

static qkv_status read_count(const qkv__safetensors *file, int which, int64_t *to)
{
    const char *text = qkv__safetensors_note(file, note_names[which]);
    char *end;
    errno = 0;
    long long n = text && *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
    if (n < 0 || *end || errno)
        return qkv__fail(QKV_FORMAT, "%s: \"%s\" is missing or not a count", file->path, note_names[which]);
    *to = n;
    return QKV_OK;
}

typedef struct position {
    int64_t steps, epoch, next, passes, best_step, missed;
    double best, best_loss;
    qkv__loss_so_far loss;
} position;

static qkv_status read_number(const qkv__safetensors *file, int which, double *to)
{
    const char *text = qkv__safetensors_note(file, note_names[which]);
    char *end = NULL;
    *to = text ? strtod(text, &end) : 0;
    if (text && end != text && !*end) return QKV_OK;
    return qkv__fail(QKV_FORMAT, "%s: \"%s\" is missing or not a number", file->path, note_names[which]);
}

static qkv_status read_position(const qkv__safetensors *file, position *p)
{
    int64_t *const to[] = { &p->steps, &p->epoch, &p->next, &p->passes, NULL, &p->best_step, &p->missed };
    for (int i = STEPS; i <= MISSED; i++) {
        qkv_status status = i == BEST ? QKV_OK : read_count(file, i, to[i - STEPS]);
        if (status) return status;
    }
    p->best_loss = 0;
    p->loss = (qkv__loss_so_far){ 0 };
    qkv_status status = read_number(file, BEST, &p->best);
    if (!status && qkv__safetensors_note(file, note_names[BEST_LOSS])) status = read_number(file, BEST_LOSS, &p->best_loss);
    if (status || !qkv__safetensors_note(file, note_names[LOSS_SUM])) return status;
    status = read_number(file, LOSS_SUM, &p->loss.sum);
    return status ? status : read_count(file, LOSS_TOKENS, &p->loss.tokens);
}

/* Every tensor of the listing must be in the file, of its shape, and nothing else. */
static qkv_status check_tensors(const listing *l, const qkv__safetensors *file)
{
    for (int i = 0; i < l->n; i++) {
        const qkv__stored *s = qkv__safetensors_find(file, l->tensors[i].name);
        if (!s) return qkv__fail(QKV_FORMAT, "%s: tensor \"%.200s\" is missing", file->path, l->tensors[i].name);
        bool same = s->ndim == l->tensors[i].ndim && !strcmp(s->dtype, "F32");
        for (int d = 0; same && d < s->ndim; d++) same = s->shape[d] == l->tensors[i].shape[d];
        if (!same)
            return qkv__fail(QKV_FORMAT, "%s: tensor \"%.200s\" has another shape or type", file->path, l->tensors[i].name);
    }
    if (file->n != l->n) return qkv__fail(QKV_FORMAT, "%s: it has %d tensors, expected %d", file->path, file->n, l->n);
    return QKV_OK;
}

/* Nothing here can fail. */
static void take_tensors(const listing *l, const qkv__safetensors *file)
{
    for (int i = 0; i < l->n; i++) {
        const qkv__to_store *to = &l->tensors[i];
        const qkv__stored *from = qkv__safetensors_find(file, to->name);
        if (to->data) qkv__safetensors_decode(from, (float *)(uintptr_t)to->data);
        else qkv__read_scattered(to->from, to->count, from);
    }
}

static qkv_status take(qkv_trainer *t, const qkv__safetensors *file)
{
    position at;
    listing l;
    qkv__collection own = { .optimizer = t->optimizer, .slices = &t->slices };
    qkv_status status = check_same(t, file);
    if (!status) status = read_position(file, &at);
    if (status) return status;
    if (list_tensors(t, &l, &own)) return QKV_MEMORY;
    status = check_tensors(&l, file);
    if (!status) status = begin_epoch(t, (uint64_t)at.epoch);
    if (!status) take_tensors(&l, file);
    qkv__release(l.tensors, l.bytes);
    if (status) return status;
    t->next = at.next;
    t->passes = (uint64_t)at.passes;
    t->best_so_far = (qkv__best_so_far){
        .best = at.best, .best_step = at.best_step, .missed = at.missed, .best_loss = at.best_loss
    };
    t->loss_so_far = at.loss;
    qkv__optimizer_set_steps(t->optimizer, at.steps);
    return QKV_OK;
}

qkv_status qkv_trainer_load(qkv_trainer *t, const char *path, qkv_train_state *state)
{
    qkv__safetensors file;
    if (!t || !path) return qkv__fail(QKV_USAGE, "training: a trainer and a path are needed to resume");
    qkv_status status = qkv__safetensors_read(path, &file);
    if (status) return status;
    status = take(t, &file);
    qkv__safetensors_free(&file);
    if (status || !state) return status;
    qkv_train_state now = qkv__trainer_at(t);
    return QKV__WRITE_OPTIONS(state, grad_norm, &now, "training");
}

/* ---- with other ranks ---- */

typedef struct shared_position {
    int64_t steps, next;
    uint64_t number, passes;
    qkv__best_so_far best_so_far;
} shared_position;

/* Position, weights and a state that is not sharded: rank 0's to all. */
static qkv_status share_position(qkv_trainer *t)
{
    qkv_params *p = qkv__model_params(t->model);
    size_t bytes = sizeof(float) * (size_t)qkv__params_block(p);
    shared_position at = { qkv__optimizer_steps(t->optimizer), t->next, t->number, t->passes, t->best_so_far };
    qkv_status status = qkv__dist_copy(&at, sizeof at);
    if (!status) status = qkv__dist_copy(qkv__params_data(p), bytes);
    for (int k = 0; !status && !t->is_sharded && qkv__optimizer_state(t->optimizer, k); k++)
        status = qkv__dist_copy(qkv__optimizer_state(t->optimizer, k), bytes);
    if (!status && at.number != t->number) status = begin_epoch(t, at.number);
    if (status) return status;
    t->next = at.next;
    t->passes = at.passes;
    t->best_so_far = at.best_so_far;
    qkv__optimizer_set_steps(t->optimizer, at.steps);
    return QKV_OK;
}

/* On rank 0: what the file has of a state in a bucket; between weights there are zeros. */
static void read_bucket(const qkv_trainer *t, const qkv__safetensors *file, int k, qkv__span bucket, float *to)
{
    qkv_params *p = qkv__model_params(t->model);
    char name[300];
    memset(to, 0, sizeof *to * (size_t)(bucket.to - bucket.from));
    for (int i = 0; i < qkv_params_size(p); i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        int64_t start = w->data - qkv__params_data(p);
        int64_t from = qkv__max(start, bucket.from), end = qkv__min(start + w->count, bucket.to);
        if (from >= end) continue;
        snprintf(name, sizeof name, "optimizer.%d.%s", k, qkv_params_name(p, i));
        qkv__safetensors_decode_some(qkv__safetensors_find(file, name), from - start, end - from, to + (from - bucket.from));
    }
}

/* Each rank gets its slices of the states from rank 0, which alone has the file, a bucket at a time. */
static qkv_status deal_states(qkv_trainer *t, const qkv__safetensors *file)
{
    size_t bytes = sizeof(float) * (size_t)qkv__bucket_floats(&t->slices);
    float *room = qkv__alloc(bytes), *own;
    qkv_status status = room ? QKV_OK : QKV_MEMORY;
    for (int k = 0; !status && (own = qkv__optimizer_state(t->optimizer, k)); k++)
        for (int64_t b = 0; b < qkv__buckets(&t->slices) && !status; b++) {
            if (file) read_bucket(t, file, k, qkv__bucket(&t->slices, b), room);
            status = qkv__deal_bucket(&t->slices, room, b, own);
        }
    qkv__release(room, bytes);
    return status;
}

qkv_status qkv__trainer_resume_all(qkv_trainer *t, const char *path)
{
    qkv__safetensors file;
    bool reads = !qkv_dist_rank();
    qkv_status status = reads ? qkv__safetensors_read(path, &file) : QKV_OK;
    if (status) return status;
    if (reads) status = take(t, &file);
    if (!status && qkv_dist_size() > 1) status = share_position(t);
    if (!status && t->is_sharded) status = deal_states(t, reads ? &file : NULL);
    if (reads) qkv__safetensors_free(&file);
    return status;
}
