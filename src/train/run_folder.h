/* run_folder.h: the folder of a training: whether it may be written, its record, its log, the models that are kept. */
#ifndef QKV_SRC_RUN_FOLDER_H
#define QKV_SRC_RUN_FOLDER_H

#include "trainer.h"

#include <stdbool.h>

/* FOLDER/name */
typedef struct qkv__run_path {
    char text[4096];
} qkv__run_path;
qkv__run_path qkv__run_file(const qkv_train_opts *o, const char *name);
bool qkv__run_has(const qkv_train_opts *o, const char *name);

/* How far it is, for the record. */
typedef struct qkv__run_state {
    const qkv_model *model;
    int64_t pairs, step, epochs_begun;
    int64_t planned; /* steps that the schedule is made for; 0: any */
    const qkv__best_so_far *best;
    const char *reason; /* it ended; NULL: it did not */
} qkv__run_state;
qkv_status qkv__run_record(const qkv_train_opts *o, const qkv__run_state *s);

/* A number of the record of the training that goes on, such as the "schedule_steps" that its schedule was made for; 0: none. */
int64_t qkv__run_recorded(const qkv_train_opts *o, const char *name);

/* Opens the log and holds it: one training a folder. IO, USAGE. Adds a line to it: IO. */
qkv_status qkv__run_log_open(const qkv_train_opts *o, int *log);
/* Cuts off what a run without a stop would not have written up to `step`, from which the training goes on: lines of later steps,
 * and of this one the report unless has_report, and the validation unless has_validation. *seconds is what the last report had.
 * IO, MEMORY. */
qkv_status qkv__run_log_rewind(const qkv_train_opts *o, int log, int64_t step, bool has_report, bool has_validation,
                               double *seconds);
qkv_status qkv__run_log(const qkv_train_opts *o, int log, const char *format, ...) QKV_PRINTF(3, 4);

/* Removes what a killed run was writing; the model of a validation that is no longer kept. */
void qkv__run_sweep(const qkv_train_opts *o);
void qkv__run_forget(const qkv_train_opts *o, int64_t step);

#endif
