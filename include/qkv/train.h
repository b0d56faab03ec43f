/* qkv/train.h: optimizers, learning-rate schedules, and training a model on examples.
 *
 * Threads: an optimizer or a trainer is for one thread at a time, and so is the model that it changes; several may train models
 * of their own at once. Functions of the caller (validate, on_event, hooks) are called on the thread of the call. */
#ifndef QKV_TRAIN_H
#define QKV_TRAIN_H

#include <qkv/data.h>
#include <qkv/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One optimizer type; which rule it follows is chosen when it is made. g is the gradient, t the step from 1. */
typedef enum qkv_optimizer_rule {
    QKV_OPTIMIZER_SGD,     /* v = momentum v + g (v = g at the first step);  w -= lr v,  or lr (g + momentum v) with nesterov */
    QKV_OPTIMIZER_ADAGRAD, /* s += g^2;  w -= lr g / (sqrt(s) + eps) */
    QKV_OPTIMIZER_RMSPROP, /* s = alpha s + (1-alpha) g^2;  w -= lr g / (sqrt(s) + eps), through momentum if given */
    QKV_OPTIMIZER_ADAM,    /* m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr m/(1-b1^t) / (sqrt(v/(1-b2^t)) + eps) */
    QKV_OPTIMIZER_ADAMW    /* Adam; w is first multiplied by 1 - lr weight_decay */
} qkv_optimizer_rule;

/* Zero means the default shown. A value that must be a true zero is given as a negative number. */
typedef struct qkv_optimizer_opts {
    size_t size;
    qkv_optimizer_rule rule;
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

/* ---- the learning rate of each step; t counts from 1, and for t < 1 as if it were 1 ---- */
typedef enum qkv_schedule_kind {
    QKV_SCHEDULE_CONSTANT,     /* lr min(1, t/warmup) */
    QKV_SCHEDULE_INVERSE_SQRT, /* lr dim^-0.5 min(t^-0.5, t warmup^-1.5), equation 3 of the paper */
    QKV_SCHEDULE_LINEAR,       /* as constant to warmup, then in a straight line to final_lr at step `steps` */
    QKV_SCHEDULE_COSINE        /* the same along half a cosine */
} qkv_schedule_kind;

typedef struct qkv_schedule {
    size_t size;
    qkv_schedule_kind kind;
    double lr;       /* of QKV_SCHEDULE_INVERSE_SQRT a factor, usually 1 */
    int64_t warmup;  /* steps; 0 none, QKV_SCHEDULE_INVERSE_SQRT needs at least 1 */
    int64_t steps;   /* of the whole training, more than warmup */
    int64_t dim;     /* d_model */
    double final_lr; /* where the line or the cosine ends, and stays */
} qkv_schedule;

/* NaN, with USAGE in qkv_error(), when a number that it needs is missing or does not fit. */
QKV_API double qkv_schedule_lr(const qkv_schedule *s, int64_t step);

/* ---- losses ----
 * How the mean loss of a batch is computed. The trainer and qkv_evaluate() use it; without one they take qkv_loss_seq2seq(). The
 * functions below give those of the library; a program may fill in its own. */
typedef struct qkv_loss qkv_loss;
struct qkv_loss {
    /* Makes a batch ready; may change its ids and labels, and sets b->tokens: how many things the mean loss is over. pass is
     * the number of the forward, from 0: all that is random depends on seed and pass. NULL: the batch stays as it is. */
    qkv_status (*prepare)(const qkv_loss *l, qkv_batch *b, uint64_t seed, uint64_t pass);
    /* The mean loss of the batch, shape (). */
    qkv_tensor *(*compute)(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing);
    const void *data; /* what its functions need */
    double arg[4];    /* and numbers that it owns */
    uint64_t id;      /* of the loss and its data: a checkpoint of another is refused */
};

/* Translation: the mean cross-entropy of the ids of the target, its end included, given the source and the ids before each.
 * b->tokens counts these. */
QKV_API qkv_loss qkv_loss_seq2seq(void);

/* A decoder alone: the cross-entropy of each next token of documents. b->tokens counts tokens. Batches have
 * qkv_batch_opts.bare. */
QKV_API qkv_loss qkv_loss_language_model(void);

/* An encoder guesses masked tokens: of every text, rate of the tokens are chosen; 8 of 10 of those become the mask, 1 another
 * token by chance, 1 stays; the loss is the cross-entropy of what they were. b->tokens counts the chosen ones, at least 1 a
 * batch. m may be NULL where the options have both special and vocab_size. A loss of options that are no such, or of a model
 * without mask, computes USAGE. */
typedef struct qkv_masked_lm_opts {
    size_t size;
    float rate;                        /* 0 means 0.15 */
    const qkv_special_tokens *special; /* mask and first_ordinary of it; NULL: the model's */
    int64_t vocab_size;                /* 0: that of the model's tokenizer */
} qkv_masked_lm_opts;
QKV_API qkv_loss qkv_loss_masked_lm(const qkv_model *m, const qkv_masked_lm_opts *opts);

/* The class of each text: sum w_i cross-entropy_i / texts; b->tokens counts texts. weights: one for each class of the model,
 * above 0, which must outlive the loss; NULL: all 1. */
QKV_API qkv_loss qkv_loss_classification(const float *weights, int64_t classes);

/* Texts with several labels, or none: the binary cross-entropy of each label, smoothing towards 1/2, mean over texts and labels. */
QKV_API qkv_loss qkv_loss_multilabel(void);

/* Texts with a number: the mean squared error. A model learns it well where numbers are around 0 and about as large as 1. */
QKV_API qkv_loss qkv_loss_regression(void);

/* ---- examples: texts with what is to be learned of them ---- */
typedef enum qkv_example_kind {
    QKV_EXAMPLE_TRANSLATION, /* text and target, for qkv_loss_seq2seq() */
    QKV_EXAMPLE_CLASS,       /* text, pair and class_id, for qkv_loss_classification() */
    QKV_EXAMPLE_LABELS,      /* text, pair and labels, for qkv_loss_multilabel() */
    QKV_EXAMPLE_VALUE,       /* text, pair and value, for qkv_loss_regression() */
    QKV_EXAMPLE_TEXT,        /* text, for qkv_loss_masked_lm() */
    QKV_EXAMPLE_DOCUMENT     /* text, for qkv_loss_language_model() */
} qkv_example_kind;

typedef struct qkv_example {
    size_t size; /* as of options */
    qkv_example_kind kind;
    int32_t class_id;
    qkv_str text, pair, target; /* pair.data NULL: one text */
    const uint8_t *labels;      /* (n_labels), one for each class of the model: labels[k] is 1 for label k */
    int64_t n_labels;
    float value; /* finite */
    int64_t
        max_length; /* tokens; longer is cut. Translation, each side: 0 means any. Class, labels, value and text: 0 means 512,
                           what stands around a text included. Document: the window, at least 1 */
} qkv_example;

/* Adds a text as m reads it: of qkv_model_special_tokens() a text has all but the end, which batches add. A document has its
 * own begin and end, and is cut into windows of max_length tokens to predict; the last token of a window is the first of the
 * next, so that each token is predicted once, and no window has tokens of two documents. What is not UTF-8 becomes U+FFFD. USAGE
 * for NULL, a kind or value that is none, and a model that lacks tokenizers or special tokens; and as qkv_dataset_add_ids(). On an
 * error some windows of a document may have been added. */
QKV_API qkv_status qkv_dataset_add(qkv_dataset *d, const qkv_model *m, const qkv_example *x);

/* Adds every pair of lines of a corpus, see qkv_read_pairs(), as translations by the tokenizers of m; special tokens that are
 * spelled in a line are ordinary text. What was read goes to *read (may be NULL). USAGE for a model without tokenizers; FORMAT for a
 * corpus without a pair; the errors of qkv_read_pairs() and qkv_dataset_add_ids(). On an error some pairs may have been added. */
QKV_API qkv_status qkv_dataset_add_files(qkv_dataset *d, const qkv_model *m, const char *source, const char *target,
                                         const qkv_corpus_opts *opts, qkv_corpus_read *read);

/* ---- training ---- */
typedef struct qkv_trainer_opts {
    size_t size;
    const qkv_loss *loss;                /* NULL: qkv_loss_seq2seq(); copied, what it points to must outlive the trainer */
    const qkv_optimizer_opts *optimizer; /* this and the next two are copied; NULL: all zero */
    const qkv_batch_opts *batches;       /* their seed is not used: see seed; NULL: all zero */
    const qkv_schedule *schedule;        /* its lr replaces the optimizer's; NULL or lr 0: the optimizer's own */
    int64_t accumulate;                  /* batches in an update; 0 means 1 */
    float label_smoothing;               /* 0 to 1 */
    float clip_norm;                     /* the largest norm of the gradients; 0: any */
    uint64_t seed;                       /* of dropout and of the batches */
    /* Each batch is cut into so many parts, by its rows alone, and the gradients of the parts are added in one tree: docs/scaling.md.
     * Ranks (<qkv/unstable/dist.h>) share the parts, of which there must be one for each, and the bits do not depend on how many ranks there
     * are. 0: not cut, and one rank; at most 4096. */
    int64_t micro_batches;
} qkv_trainer_opts;

/* One update, reported. */
typedef struct qkv_train_state {
    size_t size;
    int64_t step;           /* updates so far, from 1 */
    uint64_t epoch;         /* passes begun, from 0 */
    int64_t batch, batches; /* batches of this epoch used so far, and in all */
    int64_t tokens;         /* target tokens of this update that count, or what else the loss counts */
    double loss, lr;        /* mean loss of a token in nats */
    double grad_norm;       /* before clipping, 0 without */
} qkv_train_state;

typedef struct qkv_trainer qkv_trainer;

/* Trains m on the pairs, both of which must outlive it. NULL on error: USAGE for options that do not fit, no pairs, or for
 * translation a model without an encoder and a decoder; MEMORY. You own it. */
QKV_API qkv_trainer *qkv_trainer_new(qkv_model *m, const qkv_dataset *pairs, const qkv_trainer_opts *opts);
QKV_API void qkv_trainer_free(qkv_trainer *t);

/* One update, by all ranks together: accumulate batches, fewer at the end of an epoch, whose gradients together are those of the mean loss over all
 * their tokens. NUMERIC, naming the first weight that is at fault, when the loss or the gradients are not finite: the weights
 * are then as they were; or when the update made a weight, or the optimizer's state of one, not finite: then go on from a
 * checkpoint. MEMORY. */
QKV_API qkv_status qkv_trainer_step(qkv_trainer *t, qkv_train_state *out);

/* Writes weights, optimizer, position and the best so far to one safetensors file, whole or not at all. NUMERIC for a value
 * that is not finite; IO, MEMORY. The file that was there stays on an error. */
QKV_API qkv_status qkv_trainer_save(const qkv_trainer *t, const char *path);

/* Goes on from such a file, bit for bit as if there had been no stop. USAGE, saying what differs, when it was written with
 * other pairs, model or options; FORMAT; IO; MEMORY. On any error nothing has changed. *state (may be NULL) is what the last step
 * reported, without tokens, loss, rate and norm. */
QKV_API qkv_status qkv_trainer_load(qkv_trainer *t, const char *path, qkv_train_state *state);

typedef struct qkv_evaluate_opts {
    size_t size;
    const qkv_loss *loss;          /* NULL: qkv_loss_seq2seq() */
    const qkv_batch_opts *batches; /* NULL: all zero */
    const qkv_hooks *hooks;        /* asked before each batch */
} qkv_evaluate_opts;

/* The mean loss of all examples in nats, without label smoothing and dropout; ranks share the batches. USAGE for no examples or none
 * that counts; NULL opts are all zero; CANCELLED; MEMORY. */
QKV_API qkv_status qkv_evaluate(const qkv_model *m, const qkv_dataset *d, const qkv_evaluate_opts *opts, double *mean);

/* ---- a training in its folder ----
 * The whole of a training: steps, validation, the best model so far, patience, limits, checkpoints, going on after a stop. The
 * folder holds the best model, ready to use, and beside it
 *   checkpoint.safetensors   all that going on needs; written whole or not at all
 *   training.json            what it was started with, and how it went
 *   log.jsonl                a line for each report and each validation
 * Whenever a run ends, and however, going on from its last checkpoint gives the same files as a run that never stopped. One
 * thing is left out of that: a run that reaches its limit between two validations measures once more, and a model that is
 * then the best stays in the folder until a better one comes. Signals and drawing are the caller's. */

/* How good a model is: the higher score is better, and of equal scores the one with the lower loss. Neither may be NaN, which
 * ends the run with NUMERIC. */
typedef struct qkv_train_score {
    double score, loss; /* loss: 0 where it does not decide */
    char summary[128];  /* what was measured, for people: "valid loss 2.345" */
    char json[128];     /* the same as members of a JSON object, for log.jsonl: "\"valid_loss\": 2.345"; "": none */
} qkv_train_score;

/* What a training was asked for: options as a command spells them, without dashes. A resumed one must be asked for the same.
 * Bytes of a value that are not UTF-8 are written down and compared as U+FFFD. */
typedef struct qkv_train_setting {
    const char *name, *value;
    int is_default; /* 1: nobody asked for it, so a record without it, of an older training, fits */
    int may_differ; /* 1: written down only, as the path of a text is, whose content the checkpoint knows */
} qkv_train_setting;

typedef enum qkv_event_kind {
    QKV_EVENT_BEGIN,      /* nothing has been trained or resumed yet */
    QKV_EVENT_RESUME,     /* going on after state->step, whose checkpoint was read */
    QKV_EVENT_STEP,       /* after every update; with several ranks the weights are whole at VALIDATION and END */
    QKV_EVENT_VALIDATION, /* score was measured */
    QKV_EVENT_CHECKPOINT, /* the checkpoint of state->step is whole */
    QKV_EVENT_LAST_STEP,  /* as STEP: the last one is repeated once the run is to end */
    QKV_EVENT_END         /* all is saved; end says why it ended */
} qkv_event_kind;

typedef enum qkv_end {
    QKV_END_STEPS,     /* opts->steps are made */
    QKV_END_EPOCHS,    /* or opts->epochs */
    QKV_END_TIME,      /* opts->minutes are over */
    QKV_END_PATIENCE,  /* too many validations without a better one */
    QKV_END_CANCELLED, /* hooks->cancel */
    QKV_END_RANK       /* another rank was to end */
} qkv_end;

/* Where a run is. Pointers live during the call. */
typedef struct qkv_train_event {
    qkv_event_kind kind;
    qkv_end end; /* of END */
    const qkv_train_state *state;
    int64_t epoch_steps, last_step; /* updates in an epoch; in all, 0: no limit */
    int64_t first_step, tokens;     /* where this run began; what it has counted since */
    double mean_loss;               /* since the last line of the log */
    double seconds, busy_seconds;   /* of this run; without validation */
    double done, seconds_left;      /* share of the way by the nearest limit, 0 to 1; negative: not known yet */
    const qkv_train_score *score;   /* of VALIDATION; else the best of this run so far, NULL: none */
    int is_best;
} qkv_train_event;

/* Whether a training goes on from its checkpoint. It must be asked for the same options. */
typedef enum qkv_resume {
    QKV_RESUME_NONE,  /* it is new */
    QKV_RESUME_MUST,  /* it goes on; USAGE for a folder without a training */
    QKV_RESUME_IF_ANY /* it goes on if the folder has a training, else it is new */
} qkv_resume;

typedef struct qkv_train_opts {
    size_t size;
    const char *folder; /* made if it is not there; NULL: nothing is written */
    qkv_resume resume;
    const char *job; /* what is trained, a word for training.json; NULL: none */
    const qkv_train_setting *settings;
    int64_t n_settings;
    const char *about;               /* more of training.json, a JSON object as text; NULL: none */
    const qkv_trainer_opts *trainer; /* NULL: all zero */
    int64_t steps, epochs;           /* limits, 0: none; the nearest counts */
    double minutes;                  /* of this run: by the clock, so that the bytes depend on the machine */
    int64_t patience;                /* ends after so many validations without a better one; 0: never */
    int64_t validate_every;          /* steps; 0: once an epoch */
    int64_t save_every;              /* steps between checkpoints; 0: with each validation only */
    int64_t keep;                    /* models of the last validations that are kept too, in folder/step-N */
    int64_t log_every;               /* steps between lines of the log; 0 means 100 */
    /* Measures the model; NULL: the last model is the best. */
    qkv_status (*validate)(void *data, const qkv_model *m, qkv_train_score *out);
    void (*on_event)(void *data, const qkv_train_event *e);
    /* Writes a model that is to be used; m is the same afterwards. NULL: qkv_model_save(). */
    qkv_status (*save)(void *data, qkv_model *m, const char *folder);
    void *data; /* first argument of the three */
    /* cancel is asked before each step. The run then ends with OK and QKV_END_CANCELLED, as it would be found by the next one,
     * without a last validation. */
    const qkv_hooks *hooks;
    const char *const
        *end_texts; /* for each qkv_end what "stopped" of training.json says, read at the end; NULL: the library's */
} qkv_train_opts;

/* How it ended. */
typedef struct qkv_train_result {
    const qkv_train_state *state;
    qkv_end end;
    int64_t saved_step;     /* of the checkpoint that is whole; -1: none */
    double best, best_loss; /* score and loss of the best validation so far, where there was one */
    int64_t best_step;      /* of it; 0: none */
    int64_t missed;         /* validations since */
} qkv_train_result;

/* Trains m on d until a limit, a cancel or an error; m is then the last model, and the folder has the best. Errors: those of
 * qkv_train_check(), qkv_trainer_new(), _step(), _save() and _load(), qkv_model_save() and of validate, which sets its own;
 * USAGE for a folder that another run is training in, and for a schedule that was made for another number of steps; IO. out
 * may be NULL; after an error the events have told which checkpoint is whole. */
QKV_API qkv_status qkv_train(qkv_model *m, const qkv_dataset *d, const qkv_train_opts *opts, qkv_train_result **out);

#ifdef __cplusplus
}
#endif
#endif
