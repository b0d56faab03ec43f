/* qkv/unstable/runs.h: checks and estimates before a training run.
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

/* Checks whether the folder can be used. USAGE if it holds another run or a model. With resume: USAGE if it holds no run, or a
 * run with different settings, each of which is named. FORMAT. qkv_train() makes the same check. Call this before reading
 * the text. */
QKV_API qkv_status qkv_train_check(const qkv_train_opts *opts);

/* Updates per epoch and in total (0: no limit) with these pairs and options, for schedules with an end. USAGE if no limit is
 * set; also the errors of qkv_loader_new(). */
QKV_API qkv_status qkv_train_steps(const qkv_dataset *pairs, const qkv_train_opts *opts, int64_t *epoch_steps,
                                   int64_t *last_step);

/* The number of steps that fit into a time limit. */
typedef struct qkv_run_plan {
    int64_t steps, epoch_steps;
    double step_seconds, validation_seconds; /* measured; 0 without validation */
    void *reserved[4];
} qkv_run_plan;

/* Computes the number of steps for opts->minutes, minus `reserve` seconds for other work. Measures the time of some updates,
 * which it undoes, and of a validation. Plans one validation every validate_every steps. If that is 0: one per epoch, between 5
 * and 20 in total, fewer if they would take more than 6% of the time. The result is at least 1, or 0 if hooks->cancel ended the
 * measurement. Writes nothing and ignores the schedule. The plan depends on the machine; training with it as opts->steps does
 * not. USAGE if minutes is not above 0; the errors of qkv_trainer_step() and of validate. */
QKV_API qkv_status qkv_train_plan(qkv_model *m, const qkv_dataset *pairs, const qkv_train_opts *opts, double reserve,
                                  qkv_run_plan *out);

#ifdef __cplusplus
}
#endif
#endif
