/* training.h: what the jobs of "qkv train" share: the options of the model and of the training, and the training itself. */
#ifndef QKV_CLI_TRAINING_H
#define QKV_CLI_TRAINING_H

#include "options.h"
#include "term/progress.h"
#include "transformer_names.h"

#include <stdio.h>

/* ---- options ---- */

/* Those of the Transformer are what qkv/transformer.def says, by the names of their members. */
#define VALUE_OF_COUNT int
#define VALUE_OF_INT int
#define VALUE_OF_FLAG bool
#define VALUE_OF_NUMBER float
#define VALUE_OF_WORD int

typedef struct training_values {
    const char *out, *from, *tokenizer;
    int vocabulary, tokens; /* of the tokenizer to train; tokens: its kind */
    int preset, layers;
#define QKV_TRAIN_OPTION(member, kind, ...) VALUE_OF_##kind member;
#include <qkv/transformer.def>
    float smoothing;
    int optimizer, schedule, warmup;
    float lr, last_lr, momentum, beta1, beta2, alpha, eps, weight_decay, clip;
    bool nesterov;
    int max_tokens, update_freq, max_length;
    int64_t seed, steps, epochs, patience, valid_every, save_every, keep;
    float minutes;
    int log_every;
    bool resume, dry_run, strict, quiet;
} training_values;
extern training_values training;

extern const char *const preset_names[], *const optimizer_names[], *const schedule_names[], *const token_names[];

/* A row for an option of the Transformer: see transformer_rows.h. */
#define TRANSFORMER_ROW(member, kind, name_, value_, group_, help_) \
    { .name = name_, .group = group_##_GROUP, .value = value_, .help = help_, GOES_TO_##kind(member) },
#define GOES_TO_COUNT(member) .count = &training.member
#define GOES_TO_INT(member) .count = &training.member
#define GOES_TO_FLAG(member) .flag = &training.member
#define GOES_TO_NUMBER(member) .number = &training.member
#define GOES_TO_WORD(member) .choice = &training.member, .names = transformer_value_names[TRANSFORMER_##member]
#define ROW_OF_EVERY TRANSFORMER_ROW

/* Rows for jobs that may train a tokenizer. */
#define TOKENIZER_OPTIONS                                                                                                \
    { "tokenizer", .group = DATA_GROUP, .value = "FILE", .help = "use this tokenizer.json; one is trained unless given", \
      .text = &training.tokenizer },                                                                                     \
        { "tokens",                                                                                                      \
          .group = DATA_GROUP,                                                                                           \
          .value = "KIND",                                                                                               \
          .help = "bpe (unless given), words or characters",                                                             \
          .choice = &training.tokens,                                                                                    \
          .names = token_names },                                                                                        \
    {                                                                                                                    \
        "vocab", .group = DATA_GROUP, .value = "N", .help = "tokens of the tokenizer to train, 8000 unless given",       \
                 .count = &training.vocabulary                                                                           \
    }

/* Rows for the table of a job, with what the job has unless given, as words. The first ones and those of transformer_rows.h say
 * what is learned, and must be the same when a training is resumed. */
/* clang-format off */
#define TRAINING_OPTIONS(SCHEDULES, SMOOTHING, MAX_TOKENS) \
    { "label-smoothing", .group = REGULAR_GROUP, .value = "E", .help = SMOOTHING " unless given", \
      .number = &training.smoothing }, \
    { "optimizer", .group = OPTIMIZER_GROUP, .value = "NAME", .help = "adam (unless given), adamw, sgd, adagrad or rmsprop", \
      .choice = &training.optimizer, .names = optimizer_names }, \
    { "schedule", .group = OPTIMIZER_GROUP, .value = "NAME", .help = SCHEDULES, \
      .choice = &training.schedule, .names = schedule_names }, \
    { "warmup", .group = OPTIMIZER_GROUP, .value = "N", .help = "steps until the rate is full; paper 4000, a tenth", \
      .count = &training.warmup }, \
    { "lr", .group = OPTIMIZER_GROUP, .value = "RATE", \
      .help = "the full learning rate; adam's is 1e-3 unless given; of the paper's schedule a factor, 1", \
      .number = &training.lr }, \
    { "last-lr", .group = OPTIMIZER_GROUP, .value = "RATE", .help = "where linear and cosine end, 0 unless given", \
      .number = &training.last_lr }, \
    { "momentum", .group = OPTIMIZER_GROUP, .value = "M", .help = "of sgd and rmsprop", .number = &training.momentum }, \
    { "nesterov", .group = OPTIMIZER_GROUP, .help = "of sgd", .flag = &training.nesterov }, \
    { "beta1", .group = OPTIMIZER_GROUP, .value = "B", .help = "of adam, 0.9 unless given", .number = &training.beta1 }, \
    { "beta2", .group = OPTIMIZER_GROUP, .value = "B", .help = "of adam, 0.98 unless given", .number = &training.beta2 }, \
    { "alpha", .group = OPTIMIZER_GROUP, .value = "A", .help = "of rmsprop, 0.99 unless given", .number = &training.alpha }, \
    { "eps", .group = OPTIMIZER_GROUP, .value = "E", .help = "of the optimizer; adam's is 1e-9 unless given", \
      .number = &training.eps }, \
    { "weight-decay", .group = REGULAR_GROUP, .value = "D", .help = "of matrices; adamw's is 0.01 unless given", \
      .number = &training.weight_decay }, \
    { "clip-norm", .group = REGULAR_GROUP, .value = "NORM", \
      .help = "largest norm of the gradients, 1 unless given; 0: any", .number = &training.clip }, \
    { "max-tokens", .group = OPTIMIZER_GROUP, .value = "N", .help = "in a batch, padding included; " MAX_TOKENS " unless given", \
      .count = &training.max_tokens }, \
    { "update-freq", .group = OPTIMIZER_GROUP, .value = "N", .help = "batches in an update, 1 unless given", \
      .count = &training.update_freq }, \
    { "max-length", .group = DATA_GROUP, .value = "N", .help = "longer pairs are left out, longer texts cut; 256", \
      .count = &training.max_length }, \
    { "seed", .group = OPTIMIZER_GROUP, .value = "N", \
      .help = "of weights, dropout and the order of batches, 1 unless given", .whole = &training.seed }, \
    { "from", .group = MODEL_GROUP, .value = "DIR", .help = "go on from the weights and the text of this model", \
      .text = &training.from }, \
    { "strict", .group = DATA_GROUP, .help = "refuse a line that is not UTF-8 instead of repairing it", \
      .flag = &training.strict }, \
    { "valid-every", .group = STOPPING_GROUP, .value = "N", .help = "steps; once an epoch unless given", \
      .whole = &training.valid_every }

#define TRAINING_LIMITS(EPOCHS) \
    { "patience", .group = STOPPING_GROUP, .value = "N", \
      .help = "stop when N validations brought nothing, 5 unless given; 0: never", \
      .whole = &training.patience }, \
    { "epochs", .group = STOPPING_GROUP, .value = "N", \
      .help = "stop after N passes over the text, " EPOCHS " unless a limit is given", \
      .whole = &training.epochs }, \
    { "steps", .group = STOPPING_GROUP, .value = "N", .help = "stop after N updates in all", .whole = &training.steps }, \
    { "minutes", .group = STOPPING_GROUP, .value = "M", .help = "stop after so much time of this run", \
      .number = &training.minutes }, \
    { "save-every", .group = SAVING_GROUP, .value = "N", .help = "steps between checkpoints, 500 unless given", \
      .whole = &training.save_every }, \
    { "keep", .group = SAVING_GROUP, .value = "N", .help = "keep the models of the last N validations too, in DIR/step-N", \
      .whole = &training.keep }, \
    { "out", 'o', .group = SAVING_GROUP, .value = "DIR", .help = "the folder to write", \
      .required = true, .text = &training.out }, \
    { "resume", .group = SAVING_GROUP, .help = "go on where the training in DIR stopped", .flag = &training.resume }, \
    { "dry-run", .group = SAVING_GROUP, .help = "tell size, memory and time; train and write nothing", \
      .flag = &training.dry_run }, \
    { "log-every", .group = SAVING_GROUP, .value = "N", .help = "steps between lines of progress, 100 unless given", \
      .count = &training.log_every }, \
    { "quiet", .group = SAVING_GROUP, .help = "tell nothing but errors", .flag = &training.quiet }
/* clang-format on */

/* ---- what they mean ---- */

/* The model that preset and options describe. USAGE, reported. */
qkv_status training_model(int64_t vocabulary, int64_t target_vocabulary, qkv_transformer_opts *out);

/* With --from: USAGE, reported, for an option that the model there decides; and what it leaves to the options, such as dropout,
 * where that is given. */
qkv_status check_fixed_options(void);
void set_free_options(qkv_transformer_opts *out);

/* How a job's model comes about. */
typedef struct training_plan {
    /* Adds the text that the tokenizer is to learn from; targets is sources unless separate. Reports its error. */
    qkv_status (*add_words)(void *data, qkv_word_counts *sources, qkv_word_counts *targets);
    bool separate;             /* source and target have a vocabulary each */
    const char *extra_special; /* a token that the tokenizer must have, such as <mask>; NULL: none */
    /* Makes the options those of the job: without a decoder, with classes. NULL: as they are. `from` is the model that the
     * training starts with; NULL: none. Reports its error. */
    qkv_status (*adjust)(void *data, const qkv_model *from, qkv_transformer_opts *o);
    void *data;
} training_plan;

/* A new model with its tokenizers; or, with --from, one that starts with the weights of another, as far as it has them. NULL:
 * reported, and *status says what. */
qkv_model *training_start(const training_plan *p, qkv_status *status);

bool is_published(const qkv_model *m); /* of a family that is not ours; false for NULL */

/* How to train a model of width dim, but for its optimizer and batches; total_steps 0: not known. USAGE, reported. */
qkv_optimizer_opts training_optimizer(void);
qkv_status training_opts(int64_t dim, int64_t total_steps, qkv_trainer_opts *out);

/* DIR/name */
typedef struct training_path {
    char text[4096];
} training_path;
training_path training_file(const char *name);

/* ---- a training ---- */

/* What was read, for people. */
struct label_set;
typedef struct training_data {
    const char *noun;               /* what the texts are: "pairs" */
    const char *parts;              /* what they were cut into, where that is what is trained on; NULL: nothing */
    int64_t used;                   /* texts, where they were cut into parts */
    int64_t empty, too_long;        /* left out */
    int64_t valid;                  /* of --valid */
    const struct label_set *labels; /* with how many texts each has; NULL: there are none */
} training_data;

typedef struct training_job training_job;
struct training_job {
    const command *c; /* whose options are recorded */
    qkv_model *model;
    const qkv_pairs *pairs;
    const qkv_objective *objective; /* NULL: translation */
    int32_t start, end, pad;
    bool bare;        /* batches of documents */
    bool bare_source; /* sources do not end with </s> */
    const char *unit; /* what is counted: NULL means tokens */
    training_data read;

    /* Measures the model; NULL without anything to measure it on. Reports its error. */
    qkv_status (*validate)(training_job *j, qkv_run_score *score);
    void *data;
};

/* Fills in what stands around the texts of the model. UNSUPPORTED, reported, where a tokenizer of the model lacks a token. */
qkv_status find_specials(training_job *j, qkv_special_tokens *frame);
/* `wanted` ids, or as many as there are learned positions for. */
int64_t readable_length(const qkv_model *m, int64_t wanted);

/* Refuses a folder that holds another training; and to resume with other options than those it was started with, each of which
 * is named. Reported. */
qkv_status check_training_folder(const command *c);
/* Returns `status`. A folder that this run made and an error left empty goes: it would look like a broken model. */
qkv_status leave_training_folder(qkv_status status);

/* Trains until a limit, Ctrl-C or an error; or, with --dry-run, tells what it would take. Everything is reported. */
qkv_status run_training(training_job *j);

/* ---- what a training tells first (training_summary.c), in lines of at most 80 columns ---- */

/* Data, model and length; last_step 0: no limit. */
void print_plan(FILE *to, const training_job *j, int64_t epoch_steps, int64_t last_step);

typedef struct training_cost {
    int64_t updates, tokens; /* that were measured */
    double seconds;
    int64_t updates_left; /* of the whole training; 0: not known */
    const char *unit;     /* as a job's */
} training_cost;
void print_cost(FILE *to, const training_cost *c); /* and the memory so far */

#endif
