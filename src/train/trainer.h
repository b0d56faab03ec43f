/* trainer.h: what a checkpoint knows of its model; and how ranks have the same. */
#ifndef QKV_SRC_TRAINER_H
#define QKV_SRC_TRAINER_H

#include <qkv/train.h>

#include <stdbool.h>

/* Differs where an option does: a checkpoint fits no other model. Two models of the same options have the same hash in every
 * release; qkv/transformer.def says how. */
uint64_t qkv__transformer_hash(const qkv_config *o);

/* As qkv_trainer_load(), called by all ranks: rank 0 reads the file, and every rank's trainer goes on where it is: weights,
 * optimizer, position and the best so far. */
qkv_status qkv__trainer_resume_all(qkv_trainer *t, const char *path);

/* A part of the i-th batch of an epoch, ready for the forward of that number. A batch of few rows has parts without any. The
 * errors of qkv_loader_batch() and of the loss. */
qkv_status qkv__make_batch(const qkv_loss *o, const qkv_loader *e, int64_t i, int64_t part, int64_t parts, uint64_t seed,
                           uint64_t pass, qkv_batch **out);

/* As qkv_trainer_step(), but where ranks shard an update it may end before their parts of the weights have come together: they
 * are on their way while the next step begins. The weights are the update's once qkv__trainer_settle() was called, by
 * all ranks, or the next step. */
qkv_status qkv__trainer_step_ahead(qkv_trainer *t, qkv_train_state *out);
qkv_status qkv__trainer_settle(qkv_trainer *t);

/* The losses of the updates since the last line of the log, which a checkpoint keeps: the first line after a resume is then the
 * same. */
typedef struct qkv__loss_so_far {
    double sum; /* each times its tokens */
    int64_t tokens;
} qkv__loss_so_far;
qkv__loss_so_far *qkv__trainer_loss_so_far(qkv_trainer *t);

/* The best validation so far, when, and how many missed it since; and its loss where that decides between equal scores, 0 where it
 * does not. A checkpoint keeps it. NULL for NULL. */
typedef struct qkv__best_so_far {
    double best;
    int64_t best_step, missed;
    double best_loss;
} qkv__best_so_far;
qkv__best_so_far *qkv__trainer_best_so_far(qkv_trainer *t);

/* Where it is: what the last step reported, without tokens, loss, rate and norm. */
qkv_train_state qkv__trainer_at(const qkv_trainer *t);

/* USAGE when a number that it needs is missing or does not fit. */
qkv_status qkv__schedule_check(const qkv_schedule *s);

/* Whether the optimizer's state is sharded: all ranks save then. */
bool qkv__trainer_is_sharded(const qkv_trainer *t);

#endif
