/* qkv/job.h: a training from files to a model: all that "qkv train" does, for any program. The files are read and checked, a
 * tokenizer is learned, what nobody chose follows from the amount and kind of the text, and the run of <qkv/train.h> does the
 * rest: validation, the best model so far, checkpoints, going on after a stop.
 *
 *     qkv_training *t = qkv_training_new("translate");
 *     qkv_training_set(t, "train", "train.tsv");
 *     qkv_training_set(t, "valid", "valid.tsv");
 *     qkv_training_set(t, "out", "model");
 *     if (qkv_training_run(t, NULL, NULL)) puts(qkv_error());
 *     qkv_training_free(t);
 *
 * Threads: a training is for one thread at a time; several may run at once, in folders of their own. Functions of the caller
 * are called on the thread of the call. */
#ifndef QKV_JOB_H
#define QKV_JOB_H

#include <qkv/train.h>
#include <qkv/unstable/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_training qkv_training;

/* job: "translate" (pairs of lines), "classify" (labelled texts), "generate" or "mask" (plain text). NULL on error: USAGE for
 * another job, MEMORY. You own it. */
QKV_API qkv_training *qkv_training_new(const char *job);
QKV_API void qkv_training_free(qkv_training *t);

/* Sets an option of the job by its name on the command line, without the dashes, to a value that is spelled as there; of a flag
 * "yes", or "" for off. Each call for "train" and "valid" adds a file. qkv/training.def and qkv/transformer.def list all of
 * them. Values are copied. USAGE, naming the option, for a name or a value that there is not; MEMORY. The first error is kept,
 * and qkv_training_run() gives it too, so that calls in a row need no check each. */
QKV_API qkv_status qkv_training_set(qkv_training *t, const char *name, const char *value);

/* What an option is, spelled as it is set; once the training has begun also where a rule chose it. "" for a flag that is off,
 * and where nothing is set; NULL for a name that there is not, and out of memory. It lives until the next call with t. */
QKV_API const char *qkv_training_get(qkv_training *t, const char *name);

/* The n-th option that a rule chose for this training, from 0, in the order of the tables: its name. NULL after the last, and
 * before the text was read. With all of them set, a training gives the same bytes. */
QKV_API const char *qkv_training_chosen(const qkv_training *t, int n);

/* What was read; pointers live as long as the training. */
typedef struct qkv_training_text {
    const char *noun;            /* what the texts are: "pairs" */
    const char *parts;           /* what they were cut into, where that is what is trained on: "windows"; NULL: nothing */
    int64_t texts, n_parts;      /* that are trained on; n_parts 0: they are whole */
    int64_t empty, too_long;     /* left out */
    int64_t valid;               /* to measure progress on */
    int64_t overlap;             /* of these, those that are trained on too; labelled texts with any label */
    const char *const *labels;   /* of a classifier, in their order; NULL: none */
    const int64_t *label_counts; /* texts of each */
    int64_t n_labels;
    const char *unit;      /* what a step counts: "target tokens", "texts" */
    int64_t unlabelled;    /* labelled texts without a label: left out too */
    int64_t repeated;      /* of pairs and labelled texts that are trained on, those that equal another one before them */
    const char *separator; /* column separator of the training file, such as ";"; NULL: the usual one of its ending */
    void *reserved[1];
} qkv_training_text;

/* NULL before the text was read. The model is the one that is trained, and NULL before it is made. Both are the training's. */
QKV_API const qkv_training_text *qkv_training_text_of(const qkv_training *t);
QKV_API const qkv_model *qkv_training_model(const qkv_training *t);

/* What the training is about to do, for people, as lines of at most 80 columns in *out, which is yours: its text, classes,
 * vocabulary and parameters, what the rules chose, as if it had been typed, and its updates. The steps are those of
 * qkv_train_event, from QKV_EVENT_BEGIN on; last_step 0: no limit. USAGE for NULL, steps that are none and before the text was
 * read; MEMORY. */
QKV_API qkv_status qkv_training_summary(qkv_training *t, int64_t epoch_steps, int64_t last_step, qkv_buffer *out);

/* Who looks on. All may be NULL. */
typedef struct qkv_training_watch {
    size_t size;
    void (*note)(void *data, const char *text);         /* a sentence about the text or the options that is no error */
    void (*each)(void *data, const qkv_train_event *e); /* as on_event of qkv_train_opts */
    const char *(*stop)(void *data);                    /* asked before each step: why to end now, or NULL to go on */
    /* Translations of the validation text, after a validation that was the best so far: n sources, references and what the
     * model makes of them, not more than n_samples and 16. They live during the call. */
    void (*sample)(void *data, int64_t n, const char *const *sources, const char *const *references,
                   const char *const *translations);
    int64_t n_samples; /* of "translate" */
    void *data;
} qkv_training_watch;

/* Reads the text, chooses what is not set, and trains until a limit, stop or an error; then out, which may be NULL, tells
 * how it ended, and the folder "out" holds the best model. With "resume" it goes on as if it had never stopped: "out" and "resume"
 * are enough, all other options are those of its start unless they are set, and one that may not change is refused. "minutes" measures the speed of some updates, which it undoes, and of a validation, and fixes the
 * number of steps: a training of so many steps gives the same bytes. Stopped before that, nothing is written, and there is
 * nothing to resume. A training may run again: what is not set is then chosen anew. Errors: those of qkv_train(); of the files
 * (IO, FORMAT), naming file and line; USAGE for options that do not go together, and with "resume" for a training of another
 * job; FORMAT for its record. */
typedef struct qkv_training_end {
    int64_t step;
    int64_t saved_step; /* of the checkpoint that is whole, after an error too; -1: none */
    const char *reason; /* N_(); NULL on an error */
} qkv_training_end;
QKV_API qkv_status qkv_training_run(qkv_training *t, const qkv_training_watch *watch, qkv_training_end *out);

/* Of an event of kind QKV_EVENT_END: the reason, N_(). */
QKV_API const char *qkv_training_reason(const qkv_training *t, qkv_end end);

#ifdef __cplusplus
}
#endif
#endif
