/* qkv/train.h: optimizers, learning-rate schedules, losses, and training.
 *
 * Threads: one thread at a time per optimizer or trainer and the model that it changes. Several may run concurrently on
 * different models. Callbacks (validate, on_event, save, hooks) run on the thread of the call. */
#ifndef QKV_TRAIN_H
#define QKV_TRAIN_H

#include <qkv/data.h>
#include <qkv/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Update rules. g is the gradient, t the step, counted from 1. */
typedef enum qkv_optimizer_rule {
    QKV_OPTIMIZER_SGD,     /* v = momentum v + g (v = g at the first step);  w -= lr v,  or lr (g + momentum v) with nesterov */
    QKV_OPTIMIZER_ADAGRAD, /* s += g^2;  w -= lr g / (sqrt(s) + eps) */
    QKV_OPTIMIZER_RMSPROP, /* s = alpha s + (1-alpha) g^2;  w -= lr g / (sqrt(s) + eps), with momentum if set */
    QKV_OPTIMIZER_ADAM,    /* m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) */
    QKV_OPTIMIZER_ADAMW    /* Adam; w is first multiplied by 1 - lr weight_decay */
} qkv_optimizer_rule;

/* Zero means the default shown. Pass a negative number for a true zero. */
typedef struct qkv_optimizer_opts {
    size_t size;
    qkv_optimizer_rule rule;
    float lr;       /* 0.01 for SGD, AdaGrad and RMSProp, 0.001 for Adam and AdamW */
    float momentum; /* 0 */
    int nesterov;
    float beta1, beta2; /* 0.9, 0.999 */
    float alpha;        /* 0.99 */
    float eps;          /* 1e-8; AdaGrad 1e-10 */
    float weight_decay; /* 0; AdamW 0.01. Rules other than AdamW add it to the gradient: g += weight_decay w.
                           Weights of fewer than two dimensions (biases, gains) do not decay unless decay_all. */
    int decay_all;
} qkv_optimizer_opts;

typedef struct qkv_optimizer qkv_optimizer;

/* Creates an optimizer for the current weights of p: create the layers first. NULL opts means all zero. The caller owns it; p
 * must outlive it. NULL on error: the error of qkv_params_status(p), USAGE for a value out of range (momentum, beta1, beta2 and
 * alpha must be below 1), MEMORY. */
QKV_API qkv_optimizer *qkv_optimizer_new(qkv_params *p, const qkv_optimizer_opts *opts);
QKV_API void qkv_optimizer_free(qkv_optimizer *o);

/* One step with the gradients of p, which it then zeroes. On error nothing changes: USAGE if p has gained weights since, or if
 * lr is negative or not finite; MEMORY. */
QKV_API qkv_status qkv_optimizer_step(qkv_optimizer *o);

/* Sets the learning rate of the next steps; 0 is a true zero here. */
QKV_API void qkv_optimizer_set_lr(qkv_optimizer *o, float lr);

/* ---- learning-rate schedules; the step t counts from 1; t < 1 is treated as 1 ---- */
typedef enum qkv_schedule_kind {
    QKV_SCHEDULE_CONSTANT,     /* lr min(1, t/warmup) */
    QKV_SCHEDULE_INVERSE_SQRT, /* lr dim^-0.5 min(t^-0.5, t warmup^-1.5), equation 3 of the paper */
    QKV_SCHEDULE_LINEAR,       /* constant schedule up to warmup, then linear to final_lr at step `steps` */
    QKV_SCHEDULE_COSINE        /* constant schedule up to warmup, then half a cosine to final_lr at step `steps` */
} qkv_schedule_kind;

typedef struct qkv_schedule {
    size_t size;
    qkv_schedule_kind kind;
    double lr;       /* QKV_SCHEDULE_INVERSE_SQRT: a factor, usually 1 */
    int64_t warmup;  /* steps (0: none); QKV_SCHEDULE_INVERSE_SQRT needs at least 1 */
    int64_t steps;   /* total training steps, more than warmup */
    int64_t dim;     /* d_model */
    double final_lr; /* rate at the end of the line or cosine, and after it */
} qkv_schedule;

/* The learning rate of a step. NaN, with USAGE in qkv_error(), if a required member is missing or invalid. */
QKV_API double qkv_schedule_lr(const qkv_schedule *s, int64_t step);

/* ---- losses ----
 * The mean loss of a batch, used by the trainer and qkv_evaluate() (default: qkv_loss_seq2seq()). The functions below return
 * the library's losses. An application may define others. */
typedef struct qkv_loss qkv_loss;
struct qkv_loss {
    /* Prepares a batch. May change its ids and labels. Sets b->tokens, the number of items that the loss averages. pass is the
     * index of the forward pass, from 0. Randomness depends only on seed and pass. NULL: the batch is unchanged. */
    qkv_status (*prepare)(const qkv_loss *l, qkv_batch *b, uint64_t seed, uint64_t pass);
    /* The mean loss of the batch, shape (). */
    qkv_tensor *(*compute)(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing);
    const void *data; /* argument of its functions, not owned */
    double arg[4];    /* numeric arguments, owned */
    uint64_t id;      /* identifies the loss and its data; a checkpoint with another id is rejected */
};

/* Translation: mean cross-entropy of the target ids, including the end token, given the source and the preceding target ids.
 * b->tokens counts the target ids. */
QKV_API qkv_loss qkv_loss_seq2seq(void);

/* Language model (decoder only): cross-entropy of each next token of documents. b->tokens counts tokens. Batches need
 * qkv_batch_opts.target_has_both. */
QKV_API qkv_loss qkv_loss_language_model(void);

/* Masked language model (encoder): cross-entropy of the original tokens at selected positions. Selects a fraction `rate` of the
 * tokens of each text, at least 1 per batch. Of these, 8 of 10 become the mask token, 1 becomes a random token, 1 is unchanged.
 * b->tokens counts the selected tokens. m may be NULL if the options have both special and vocab_size. If the options are
 * invalid or the model has no mask token, computing the loss fails with USAGE. */
typedef struct qkv_masked_lm_opts {
    size_t size;
    float rate;                        /* fraction of selected tokens; 0 means 0.15 */
    const qkv_special_tokens *special; /* its mask and first_ordinary are used; NULL: the model's */
    int64_t vocab_size;                /* 0: the size of the model's tokenizer */
} qkv_masked_lm_opts;
QKV_API qkv_loss qkv_loss_masked_lm(const qkv_model *m, const qkv_masked_lm_opts *opts);

/* Classification: sum w_i cross-entropy_i / texts. b->tokens counts texts. weights: one per class of the model, above 0, must
 * outlive the loss; NULL: all 1. */
QKV_API qkv_loss qkv_loss_classification(const float *weights, int64_t classes);

/* Multilabel classification: binary cross-entropy of each label, smoothed towards 1/2, mean over texts and labels. */
QKV_API qkv_loss qkv_loss_multilabel(void);

/* Regression: mean squared error. Scale the targets to about mean 0 and magnitude 1. */
QKV_API qkv_loss qkv_loss_regression(void);

/* ---- examples: texts with training targets ---- */
typedef enum qkv_example_kind {
    QKV_EXAMPLE_TRANSLATION, /* text and target, for qkv_loss_seq2seq() */
    QKV_EXAMPLE_CLASS,       /* text, pair and class_id, for qkv_loss_classification() */
    QKV_EXAMPLE_LABELS,      /* text, pair and labels, for qkv_loss_multilabel() */
    QKV_EXAMPLE_VALUE,       /* text, pair and value, for qkv_loss_regression() */
    QKV_EXAMPLE_TEXT,        /* text, for qkv_loss_masked_lm() */
    QKV_EXAMPLE_DOCUMENT     /* text, for qkv_loss_language_model() */
} qkv_example_kind;

typedef struct qkv_example {
    size_t size; /* as in option structs */
    qkv_example_kind kind;
    int32_t class_id;
    qkv_str text, pair, target; /* pair.data NULL: one text */
    const uint8_t *labels;      /* (n_labels), one per class of the model: labels[k] is 1 if the text has label k */
    int64_t n_labels;
    float value; /* finite */
    /* Tokens; longer text is truncated. Translation: per side, 0 means no limit. Class, labels, value and text: including
     * special tokens, 0 means 512. Document: the window size, at least 1. */
    int64_t max_length;
} qkv_example;

/* Adds an example, tokenized by m. A text gets the tokens of qkv_model_special_tokens() except the end token, which batches
 * add. A document gets its begin and end tokens and is cut into windows of max_length tokens to predict. The last token of a
 * window is the first of the next, so that each token is predicted once. No window spans two documents. Bytes that are not
 * UTF-8 become U+FFFD. USAGE for NULL, an invalid kind or value, and a model without the tokenizers or special tokens needed.
 * Also the errors of qkv_dataset_add_ids(). On error some windows of a document may have been added. */
QKV_API qkv_status qkv_dataset_add(qkv_dataset *d, const qkv_model *m, const qkv_example *x);

/* Adds every line pair of a corpus as a translation, tokenized by m: see qkv_read_pairs(). The spelling of a special token in a
 * line is ordinary text. *read (may be NULL) gets the summary of the corpus. USAGE for a model without tokenizers. FORMAT for a
 * corpus without a pair. Also the errors of qkv_read_pairs() and qkv_dataset_add_ids(). On error some pairs may have been
 * added. */
QKV_API qkv_status qkv_dataset_add_files(qkv_dataset *d, const qkv_model *m, const char *source, const char *target,
                                         const qkv_corpus_opts *opts, qkv_read_stats *read);

/* ---- training ---- */
typedef struct qkv_trainer_opts {
    size_t size;
    const qkv_loss *loss;                /* NULL: qkv_loss_seq2seq(); copied; its data must outlive the trainer */
    const qkv_optimizer_opts *optimizer; /* copied, as the next two; NULL: all zero */
    const qkv_batch_opts *batches;       /* its seed is ignored: see seed; NULL: all zero */
    const qkv_schedule *schedule;        /* its lr replaces the optimizer's; NULL or lr 0: the optimizer's lr */
    int64_t accumulate;                  /* batches per update; 0 means 1 */
    float label_smoothing;               /* 0 to 1 */
    float clip_norm;                     /* maximum norm of the gradients; 0: no clipping */
    uint64_t seed;                       /* of dropout and batch order */
    /* Microbatches per batch, at most 4096. A batch is split by its rows only. Gradients of the microbatches are summed in one
     * fixed tree: docs/scaling.md. Ranks (<qkv/unstable/dist.h>) share the microbatches and need at least one each. The number
     * of ranks changes no bit. 0: no split, and a single rank. */
    int64_t micro_batches;
} qkv_trainer_opts;

/* Report of one update. */
typedef struct qkv_train_state {
    size_t size;
    int64_t step;           /* updates so far, from 1 */
    uint64_t epoch;         /* epochs started, from 0 */
    int64_t batch, batches; /* batches of this epoch: used, total */
    int64_t tokens;         /* counted target tokens of this update, or the loss's other items */
    double loss, lr;        /* mean loss per token, in nats */
    double grad_norm;       /* before clipping; 0 without clipping */
} qkv_train_state;

typedef struct qkv_trainer qkv_trainer;

/* Creates a trainer of m on the pairs; both must outlive it. The caller owns it. NULL on error: USAGE for invalid options, no
 * pairs, or translation without both an encoder and a decoder; MEMORY. */
QKV_API qkv_trainer *qkv_trainer_new(qkv_model *m, const qkv_dataset *pairs, const qkv_trainer_opts *opts);
QKV_API void qkv_trainer_free(qkv_trainer *t);

/* One update by all ranks, over `accumulate` batches (fewer at the end of an epoch). The gradient is that of the mean loss over
 * all their tokens. NUMERIC if the loss or the gradients are not finite: the weights are unchanged. NUMERIC also if the update
 * made a weight or its optimizer state not finite: resume from a checkpoint. The message names the first weight at fault.
 * MEMORY. */
QKV_API qkv_status qkv_trainer_step(qkv_trainer *t, qkv_train_state *out);

/* Writes weights, optimizer state, position and the best score so far to one safetensors file. Atomic: on error an existing
 * file is kept. NUMERIC for a value that is not finite; IO, MEMORY. */
QKV_API qkv_status qkv_trainer_save(const qkv_trainer *t, const char *path);

/* Resumes from such a file, bit for bit as if training had not been interrupted. USAGE, naming the difference, if it was
 * written with other pairs, model or options; FORMAT; IO; MEMORY. On error nothing changes. *state (may be NULL) gets the
 * report of the last step, without tokens, loss, rate and norm. */
QKV_API qkv_status qkv_trainer_load(qkv_trainer *t, const char *path, qkv_train_state *state);

typedef struct qkv_evaluate_opts {
    size_t size;
    const qkv_loss *loss;          /* NULL: qkv_loss_seq2seq() */
    const qkv_batch_opts *batches; /* NULL: all zero */
    const qkv_hooks *hooks;        /* cancel is called before each batch */
} qkv_evaluate_opts;

/* The mean loss of all examples in nats, without label smoothing and dropout. Ranks share the batches. NULL opts means all
 * zero. USAGE for no examples, or none that counts; CANCELLED; MEMORY. */
QKV_API qkv_status qkv_evaluate(const qkv_model *m, const qkv_dataset *d, const qkv_evaluate_opts *opts, double *mean);

/* ---- training runs ----
 * A complete run: steps, validation, best model, early stopping, limits, checkpoints, resuming. The folder holds the best
 * model, ready to use, and
 *   checkpoint.safetensors   the complete state for resuming; written atomically
 *   training.json            settings and results of the run
 *   log.jsonl                one line per report and per validation
 * Resuming from the last checkpoint gives the same files as an uninterrupted run, however the run ended. One exception: a run
 * that reaches its limit between two validations validates once more. If that model is the best, it stays in the folder until a
 * better one replaces it. Signal handling and display are left to the caller. */

/* A validation score. The higher score is better; ties go to the lower loss. NaN in either ends the run with NUMERIC. */
typedef struct qkv_train_score {
    double score, loss; /* loss: 0 if not used */
    char summary[128];  /* the measured values, for display: "valid loss 2.345" */
    char json[128];     /* the same as JSON members, for log.jsonl: "\"valid_loss\": 2.345"; "": none */
} qkv_train_score;

/* A setting of a run: an option of the command, without dashes. A resumed run must have the same settings.
 * Bytes of a value that are not UTF-8 are recorded and compared as U+FFFD. */
typedef struct qkv_train_setting {
    const char *name, *value;
    int is_default; /* 1: not set by the user; a record of an older run without it matches */
    int may_differ; /* 1: recorded, not compared; for example a path, since the checkpoint identifies the content */
} qkv_train_setting;

typedef enum qkv_event_kind {
    QKV_EVENT_BEGIN,      /* before any training or resuming */
    QKV_EVENT_RESUME,     /* resuming after state->step; its checkpoint was read */
    QKV_EVENT_STEP,       /* after every update; with several ranks the weights are complete only at VALIDATION and END */
    QKV_EVENT_VALIDATION, /* score has a new result */
    QKV_EVENT_CHECKPOINT, /* the checkpoint of state->step is complete */
    QKV_EVENT_LAST_STEP,  /* the last STEP again, when the run is about to end */
    QKV_EVENT_END         /* everything is saved; end has the reason */
} qkv_event_kind;

typedef enum qkv_end {
    QKV_END_STEPS,     /* reached opts->steps */
    QKV_END_EPOCHS,    /* reached opts->epochs */
    QKV_END_TIME,      /* reached opts->minutes */
    QKV_END_PATIENCE,  /* opts->patience validations without improvement */
    QKV_END_CANCELLED, /* hooks->cancel */
    QKV_END_RANK       /* another rank ended */
} qkv_end;

/* Progress of a run. Pointers are valid during the call only. */
typedef struct qkv_train_event {
    qkv_event_kind kind;
    qkv_end end; /* of END */
    const qkv_train_state *state;
    int64_t epoch_steps, last_step; /* updates per epoch; in total, 0: no limit */
    int64_t first_step, tokens;     /* step at which this run started; tokens counted since */
    double mean_loss;               /* since the last log line */
    double seconds, busy_seconds;   /* elapsed in this run; the same without validation */
    double done, seconds_left;      /* fraction of the nearest limit, 0 to 1; negative: not known yet */
    const qkv_train_score *score;   /* VALIDATION: the new score; otherwise the best so far in this run, NULL: none */
    int is_best;
} qkv_train_event;

/* Whether a run resumes from its checkpoint. A resumed run must have the same settings. */
typedef enum qkv_resume {
    QKV_RESUME_NONE,  /* start a new run */
    QKV_RESUME_MUST,  /* resume; USAGE for a folder without a run */
    QKV_RESUME_IF_ANY /* resume if the folder has a run, otherwise start a new one */
} qkv_resume;

typedef struct qkv_train_opts {
    size_t size;
    const char *folder; /* created if missing; NULL: nothing is written */
    qkv_resume resume;
    const char *job; /* the task, a word for training.json; NULL: none */
    const qkv_train_setting *settings;
    int64_t n_settings;
    const char *about;               /* more members for training.json, a JSON object as text; NULL: none */
    const qkv_trainer_opts *trainer; /* NULL: all zero */
    int64_t steps, epochs;           /* limits, 0: none; the first one reached applies */
    double minutes;                  /* wall-clock limit of this run, 0: none; results then depend on the machine */
    int64_t patience;                /* early stopping after this number of validations without improvement; 0: never */
    int64_t validate_every;          /* steps; 0: once an epoch */
    int64_t save_every;              /* steps between checkpoints; 0: only at validations */
    int64_t keep;                    /* number of models of the last validations to keep in folder/step-N */
    int64_t log_every;               /* steps between log lines; 0 means 100 */
    /* Scores the model. NULL: the last model is the best. */
    qkv_status (*validate)(void *data, const qkv_model *m, qkv_train_score *out);
    void (*on_event)(void *data, const qkv_train_event *e);
    /* Writes a model for use; must leave m unchanged. NULL: qkv_model_save(). */
    qkv_status (*save)(void *data, qkv_model *m, const char *folder);
    void *data; /* first argument of the three callbacks */
    /* cancel is called before each step. The run then ends with OK and QKV_END_CANCELLED, without a last validation. The next
     * run resumes from there. */
    const qkv_hooks *hooks;
    /* Per qkv_end, the value of "stopped" in training.json; read at the end; NULL: the library's. */
    const char *const *end_texts;
} qkv_train_opts;

/* Result of a run. */
typedef struct qkv_train_result {
    const qkv_train_state *state;
    qkv_end end;
    int64_t saved_step;     /* of the last complete checkpoint; -1: none */
    double best, best_loss; /* score and loss of the best validation so far, if any */
    int64_t best_step;      /* step of the best validation; 0: none */
    int64_t missed;         /* validations since the best */
} qkv_train_result;

/* Trains m on d until a limit, a cancel or an error. Then m is the last model and the folder holds the best one. out may be
 * NULL. Errors: those of qkv_train_check(), qkv_trainer_new(), _step(), _save() and _load(), qkv_model_save() and of validate,
 * which sets its error. USAGE for a folder that another run is training in, and for a schedule made for another number of
 * steps. IO. After an error, the last QKV_EVENT_CHECKPOINT names the complete checkpoint. */
QKV_API qkv_status qkv_train(qkv_model *m, const qkv_dataset *d, const qkv_train_opts *opts, qkv_train_result **out);

#ifdef __cplusplus
}
#endif
#endif
