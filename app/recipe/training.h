/* training.h: a training from files, inside: what the jobs share. */
#ifndef QKV_SRC_JOB_TRAINING_H
#define QKV_SRC_JOB_TRAINING_H

#include "../../src/base/json.h"
#include "../term/translator.h"
#include "../report/notes.h"
#include "../../src/data/repeats.h"
#include "labels.h"
#include "values.h"

#include "job.h"
#include <qkv/task.h>

/* What the rules look at: the training text. */
typedef struct qkv__survey {
    int64_t texts;                   /* pairs, labelled texts or lines */
    int64_t blank;                   /* lines without a word */
    double bytes, characters, words; /* of pairs, those of the target */
    double han;                      /* characters of the Chinese script */
    int64_t pairs;                   /* labelled texts that are two */
    bool is_header;                  /* the first pair is names of columns */
} qkv__survey;

void qkv__survey_text(qkv__survey *s, const char *text, size_t length); /* counts bytes, characters and words */

/* Lines of validation text as they stand in the files. */
typedef struct qkv__valid_lines {
    char **sources, **references;
    size_t sources_bytes, references_bytes;
    int64_t n;
} qkv__valid_lines;

/* How a job differs from the others. Each reports with qkv_error(). */
typedef struct qkv__job {
    const char *name;    /* "translate" */
    const char *command; /* "train translate", as training.json has it */
    int bit;
    const char *noun, *unit;
    const char *extra_special;                  /* a token that the tokenizer must have, such as <mask>; NULL: none */
    void (*set_paper)(qkv_training *t);         /* what the job has unless it is set, without the rules */
    qkv_status (*check)(const qkv_training *t); /* options that do not go together */
    qkv_status (*survey)(qkv_training *t, qkv__survey *s); /* looks at the text */
    void (*choose)(qkv_training *t, const qkv__survey *s); /* sets what is not set: recipe.c */
    /* Adds the text that the tokenizer is to learn from; targets is sources unless they have a vocabulary each. */
    qkv_status (*add_words)(qkv_training *t, qkv_word_counts *sources, qkv_word_counts *targets);
    /* Makes the options those of the job: without a decoder, with classes. `from` is the model that the training starts with;
     * NULL: none. */
    qkv_status (*adjust)(qkv_training *t, const qkv_model *from, qkv_config *o);
    qkv_status (*read)(qkv_training *t); /* the text as ids, and what is measured */
    qkv_status (*validate)(qkv_training *t, const qkv_model *m, qkv_train_score *out);
    void (*sample)(const qkv_training *t); /* shows what the model makes of a few texts; NULL: nothing */
    qkv_status (*finish)(qkv_training *t); /* after the last step; NULL: nothing */
    qkv_status (*save)(void *t, qkv_model *m, const char *folder); /* as in qkv_train_opts */
    /* What validations and the end cost beside the loss: seconds of a line that is searched, and how many lines; NULL: nothing. */
    qkv_status (*time_search)(const qkv_training *t, double most_seconds, double *seconds);
    int64_t (*lines_searched)(const qkv_training *t, int64_t validations);
} qkv__job;
extern const qkv__job qkv__translate_job, qkv__classify_job, qkv__generate_job, qkv__mask_job;

struct qkv_training {
    const qkv__job *job;
    qkv__options o;
    qkv_training_watch watch;
    qkv_status failed; /* the first error of qkv_training_set(), and its sentence */
    qkv_buffer sentence, told;
    double began;        /* seconds */
    const char *stopped; /* why the caller wants it to stop; NULL: it goes on */
    const char *end_texts[QKV_END_RANK + 1];
    bool made_folder, is_trial;
    bool has_too_few; /* texts, to hold some back */

    qkv_model *model;
    qkv_dataset *pairs, *valid;
    qkv_special_tokens special;
    qkv_batch_opts batches, valid_batches;
    qkv_loss loss;
    bool has_loss; /* else translation's */
    qkv__label_set labels;
    qkv__hashes hashes, valid_hashes; /* of labelled texts, while they are read */
    struct {
        int64_t n;
        double mean, squares; /* squares: of the distances from the mean, added up */
    } numbers;                /* of --numbers */
    bool continues_numbers;   /* it starts with a model that tells them */
    uint8_t *has;             /* which labels a text has */
    size_t has_bytes;
    float *weights;        /* of the classes, where they are balanced */
    int64_t *valid_counts; /* validation texts of each class */
    size_t weights_bytes, valid_counts_bytes;
    qkv__valid_lines lines; /* of a translator, where they are needed */
    qkv_training_text text;
    char separator[2]; /* that it points to */
    bool has_text;
    int64_t planned_steps;                      /* that --minutes allows; 0: not planned */
    int64_t planned_validations;                /* the same; 0: not planned, or one every --valid-every steps */
    int64_t n_measured;                         /* validations of this run, and the best of them */
    double best_loss, best_accuracy, best_bleu; /* accuracy: of one label a text; below 0: not measured */
    int64_t step, saved_step;                   /* that the run is at; of the checkpoint that is whole, -1: none */
};

/* Whether the caller wants it to stop. */
bool qkv__training_stops(qkv_training *t);

/* A sentence about the text that is no error. */
void qkv__training_note(const qkv_training *t, const char *format, ...) QKV_PRINTF(2, 3);
qkv__notes qkv__training_notes(const qkv_training *t); /* who is told */

/* Sets an option by a rule, unless the caller set it: as if it had been typed. */
void qkv__choose(qkv_training *t, const char *name, const char *format, ...) QKV_PRINTF(3, 4);

/* `wanted` ids, or as many as the model has learned positions for. */
int64_t qkv__readable_length(const qkv_model *m, int64_t wanted);

/* The last of so many texts is held back for validation: --split; 0: none is. */
int64_t qkv__held_every(const qkv_training *t);

/* Writes texts to begin with beside the model. IO, MEMORY. */
qkv_status qkv__write_examples(const qkv_training *t);

/* ---- model.c ---- */
/* A new model with its tokenizers; or, with --from, one that starts with the weights of another, as far as it has them. */
qkv_status qkv__training_start(qkv_training *t);

/* ---- like.c: --like ---- */
qkv_status qkv__check_like(const qkv_training *t); /* USAGE: the job makes no such models */
void qkv__choose_like(qkv_training *t);            /* as rules choose */
/* What no option says. USAGE where another option has made a shape that the family has not. */
qkv_status qkv__shape_like(const qkv_training *t, qkv_config *o);

/* ---- learning.c: how it learns ---- */
qkv_optimizer_opts qkv__training_optimizer(const qkv_training *t);
/* But for optimizer, batches and loss; total_steps 0: not known. USAGE. */
qkv_status qkv__training_how(const qkv_training *t, int64_t total_steps, qkv_trainer_opts *out, qkv_schedule *s);

bool qkv__schedule_has_end(const qkv_training *t); /* it must know the last step */

/* ---- chance.c ---- */
/* Notes what one validation measured; accuracy below 0: none. */
void qkv__training_measured(qkv_training *t, double loss, double accuracy);
/* A note, with advice, where the best validation of this run is no better than a guess. MEMORY. */
qkv_status qkv__training_warn_of_chance(const qkv_training *t);

/* ---- record.c: what a training was asked for ---- */
typedef struct qkv__settings {
    qkv_train_setting *all;
    size_t bytes;
    int64_t n;
} qkv__settings;
qkv_status qkv__settings_of(const qkv_training *t, qkv__settings *out);
void qkv__settings_free(qkv__settings *s);
qkv_status qkv__training_about(const qkv_training *t,
                               qkv__json_writer *w); /* more for training.json, an object; free w in any case */
/* With --resume: takes from the record the options that the training was started with, unless they are set, what rules chose, and
 * what --minutes planned. */
qkv_status qkv__training_recall(qkv_training *t);
/* IO for a text, or a model to start from, that has been moved since: the sentence names the option to give. */
qkv_status qkv__training_find_files(const qkv_training *t);

/* ---- recipe.c ---- */
void qkv__choose_translation(qkv_training *t, const qkv__survey *s);
void qkv__choose_classes(qkv_training *t, const qkv__survey *s);
void qkv__choose_generation(qkv_training *t, const qkv__survey *s);
void qkv__choose_masking(qkv_training *t, const qkv__survey *s);

#endif
