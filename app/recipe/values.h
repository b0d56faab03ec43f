/* values.h: the options of a training: what they are set to, and by whom. */
#ifndef QKV_SRC_JOB_VALUES_H
#define QKV_SRC_JOB_VALUES_H

#include <qkv/train.h>
#include <qkv/unstable/buffer.h>

#include <stdbool.h>

typedef struct qkv__paths {
    char **at;
    size_t bytes; /* of `at` */
    int n;
} qkv__paths;

/* Their members are those of qkv/training.def and of the options of qkv/transformer.def that "qkv train" has. */
typedef struct qkv__training_values {
#define VALUE_OF_FLAG bool
#define VALUE_OF_COUNT int
#define VALUE_OF_INT int
#define VALUE_OF_WHOLE int64_t
#define VALUE_OF_NUMBER float
#define VALUE_OF_WORD int
#define VALUE_OF_TEXT char *
#define VALUE_OF_FILES qkv__paths
#define VALUE_OF_INPUT qkv__paths
#define VALUE_OF_OUTPUT char *
#define QKV_TRAINING_OPTION(member, kind, ...) VALUE_OF_##kind member;
#include "training.def"
#define QKV_TRAIN_OPTION(member, kind, ...) VALUE_OF_##kind member;
#include <qkv/transformer.def>
} qkv__training_values;

typedef enum qkv__option { /* QKV__SET_lr, ... */
#define QKV_TRAIN_OPTION(member, ...) QKV__SET_##member,
#include <qkv/transformer.def>
#define QKV_TRAINING_OPTION(member, ...) QKV__SET_##member,
#include "training.def"
                           QKV__SET_OPTIONS
} qkv__option;

typedef enum qkv__origin { QKV__NOT_SET, QKV__SET, QKV__CHOSEN } qkv__origin; /* by nobody, by the caller, by a rule */

/* The jobs that have an option, added up. */
enum { QKV__TRANSLATE = 1, QKV__CLASSIFY = 2, QKV__GENERATE = 4, QKV__MASK = 8, QKV__DOCUMENTS = 12, QKV__EVERY = 15 };

typedef struct qkv__options {
    int job; /* one of these */
    qkv__training_values v;
    unsigned char origin[QKV__SET_OPTIONS];
} qkv__options;

void qkv__options_new(qkv__options *o, int job); /* nothing is set */
void qkv__options_free(qkv__options *o);

/* As qkv_training_set(); origin says on whose behalf. A rule never changes what the caller set. */
qkv_status qkv__options_set(qkv__options *o, const char *name, const char *value, qkv__origin origin);

/* What nobody set becomes what it is in `defaults`, but for paths. */
void qkv__options_fill(qkv__options *o, const qkv__training_values *defaults);

/* An option that the caller did not set is as if it had never been filled or chosen; and all of them. */
void qkv__options_unset(qkv__options *o, qkv__option i);
void qkv__options_forget_choices(qkv__options *o);

/* The paths of an option of kind FILES; NULL for others. */
const qkv__paths *qkv__options_paths(const qkv__options *o, qkv__option i);

/* What option i is, as text into a buffer that is grown. MEMORY. */
qkv_status qkv__options_text(const qkv__options *o, qkv__option i, qkv_buffer *out);

qkv__option qkv__options_find(const qkv__options *o, const char *name); /* QKV__SET_OPTIONS: the job has no such option */
const char *qkv__options_name(qkv__option i);
bool qkv__options_has(const qkv__options *o, qkv__option i); /* whether it is an option of the job */
bool qkv__options_is_path(qkv__option i);                    /* or several, or another text of the caller's */
const char *qkv__options_word(qkv__option i, int value);     /* of a WORD; NULL after the last */

/* Whether member is set, by the caller or a rule. */
#define QKV__IS_SET(o, member) ((o)->origin[QKV__SET_##member] != QKV__NOT_SET)
#define QKV__IS_GIVEN(o, member) ((o)->origin[QKV__SET_##member] == QKV__SET)

#endif
