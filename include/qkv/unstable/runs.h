/* qkv/unstable/runs.h: what a program needs to know of a training before it starts.
 *
 * Threads: as qkv_train(). */
#ifndef QKV_UNSTABLE_RUNS_H
#define QKV_UNSTABLE_RUNS_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the folder may be written: USAGE for one that holds another training or a model, with resume for one without a
 * training or of other settings, each of which is named; FORMAT. qkv_train() asks it too: ask it before the text is read. */
QKV_API qkv_status qkv_train_check(const qkv_train_opts *opts);

/* Updates in an epoch, and in all (0: no limit), with these pairs and options; for a schedule that must know its end. USAGE for
 * no limit at all, and as qkv_loader_new(). */
QKV_API qkv_status qkv_train_steps(const qkv_dataset *pairs, const qkv_train_opts *opts, int64_t *epoch_steps,
                                   int64_t *last_step);

/* How many steps there is time for. */
typedef struct qkv_run_plan {
    int64_t steps, epoch_steps;
    double step_seconds, validation_seconds; /* as they were measured; 0 where there is no validation */
    void *reserved[4];
} qkv_run_plan;

/* Measures the speed of some updates, which it undoes, and of a validation, and tells how many steps there are in
 * opts->minutes, with a validation an epoch, but 5 to 20 in all and fewer where they would take more than 6% of the time, or one
 * every validate_every steps, and `reserve` seconds for what else there is to do; at least 1, and 0 where hooks->cancel ended it. Nothing is written, and the schedule plays no part.
 * The plan depends on the machine: what is trained by it, with opts->steps, does not. USAGE for minutes that are not above
 * 0; the errors of qkv_trainer_step() and of validate. */
QKV_API qkv_status qkv_train_plan(qkv_model *m, const qkv_dataset *pairs, const qkv_train_opts *opts, double reserve,
                                  qkv_run_plan *out);

#ifdef __cplusplus
}
#endif
#endif
