/* qkv/attend.h: what every head of a model attends to while it reads or translates a text: the weights with the tokens they
 * belong to, attention rollout, and numbers that tell what a head does. qkv_attend() captures, the others look at the capture,
 * rank its heads, and make maps of it.
 *
 * Threads: any number of calls at a time on one model; a capture is read by any number of threads, and written by one. */
#ifndef QKV_ATTEND_H
#define QKV_ATTEND_H

#include <qkv/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The tokens of one axis. A unit is a token, or several that only together make whole characters. */
typedef struct qkv_attention_side {
    int64_t n;                /* units */
    const char *const *names; /* (n): the text of each as it was given, UTF-8 with a NUL, white space included; of special
                                 tokens their spelling. A word of the text that is not known is shown as it is, a NUL as
                                 U+2400; what a model chose and makes no character as U+FFFD */
    const uint8_t *special;   /* (n): 1 for a special token */
    const int64_t *first;     /* (n + 1): unit i is the tokens first[i] .. first[i + 1] - 1 of those that are shown */
    const int32_t *ids;       /* of those: first[n] of them */
    void *reserved[4];
} qkv_attention_side;

typedef struct qkv_attend_opts {
    size_t size;
    int beam; /* of the search for a target, as in qkv_translate_opts; and so is the next */
    float length_penalty;
    const int32_t *target_ids; /* the target as ids, without start and end, instead of text; n_target_ids of them. NULL: none */
    int64_t n_target_ids;
    int pieces;       /* 1: tokens are never joined; bytes that are no character are named like \xE6 */
    int no_special;   /* 1: special tokens are left out; the weights of the others stay as they are */
    size_t max_bytes; /* of all weights together; 0 means 2 GiB; LIMIT above that */
} qkv_attend_opts;

/* What was attended to. Starts as zero; used again and again. */
typedef struct qkv_attention_capture {
    qkv_attention_side source;       /* what the encoder reads */
    qkv_attention_side read;         /* what the decoder reads: <s> and the target */
    qkv_attention_side chosen;       /* what it chooses, one place on: the target and </s>; rows of cross-attention */
    int layers[QKV_ATTENTION_KINDS]; /* 0: the model has no such attention */
    int heads;
    const qkv_translation *found;            /* the translation that was searched for, without its cross; NULL: none was */
    struct qkv_attention_capture_work *work; /* the weights */
    void *reserved[4];
} qkv_attention_capture;
QKV_API void qkv_attention_capture_free(qkv_attention_capture *a);

/* Runs the model over a text and keeps the weights of every head. Texts are bytes with a length; what is not UTF-8 is read as
 * U+FFFD.
 *   encoder and decoder: source is translated, and the best translation is the target, with the ids the search found (the same
 *     bits as without attention); unless target is not NULL, or the options give its ids
 *   encoder alone: source is read as classification reads it; there is no target
 *   decoder alone: source and, where there is one, target after it are read as one text; there is no cross-attention
 * USAGE for NULL, options that do not fit, a model without tokenizer, an empty text (white space alone is one for a
 * translator), a target for an encoder alone; LIMIT for more tokens than the model has positions for, or max_bytes; NUMERIC;
 * MEMORY. *out then holds nothing. */
QKV_API qkv_status qkv_attend(const qkv_model *m, const char *source, size_t source_length, const char *target,
                              size_t target_length, const qkv_attend_opts *opts, qkv_attention_capture *out);

/* The axes of a kind: rows attend (queries), columns are attended to (keys). NULL where the model has no such attention. */
QKV_API const qkv_attention_side *qkv_attention_rows(const qkv_attention_capture *a, qkv_attention_kind kind);
QKV_API const qkv_attention_side *qkv_attention_columns(const qkv_attention_capture *a, qkv_attention_kind kind);

/* The weights of one head to (rows, columns) floats. layer, head: from 0; -1: the mean over all. The tokens of a unit are
 * joined: their columns added, their rows averaged. USAGE for a kind, layer or head that is not there (the sentence says which
 * are); MEMORY. */
QKV_API qkv_status qkv_attention_weights(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                                         float *weights);

/* Weights between tokens, (tokens of the rows, tokens of the columns), as weights between units, (rows, columns): the columns
 * of a unit's tokens are added, its rows averaged. Unit i of the rows is the tokens row_first[i] .. row_first[i + 1] - 1,
 * those of the columns likewise; the first unit begins at 0. USAGE for NULL and for a unit without tokens; MEMORY. */
QKV_API qkv_status qkv_attention_join(const float *weights, const int64_t *row_first, int64_t rows, const int64_t *column_first,
                                      int64_t columns, float *joined);

/* Attention rollout (Abnar and Zuidema 2020): the product over the layers, first layer rightmost, of (A + I) / 2 with A the
 * mean over the heads, rows made to sum to 1; to (rows, columns) floats. It is computed over tokens, special ones too, and
 * joined as above. USAGE for cross-attention, which has no I; MEMORY. */
QKV_API qkv_status qkv_attention_rollout(const qkv_attention_capture *a, qkv_attention_kind kind, float *weights);

/* What a head does, each a mean over the rows, of all tokens (not units), special ones included. USAGE as above, and for a
 * layer or head of -1: a mean does nothing of its own. */
typedef struct qkv_head_measures {
    double entropy;              /* -sum w log w, in nats */
    double diagonality;          /* 1 - sum w |i/(rows-1) - j/(columns-1)|: 1 on the diagonal */
    double first;                /* weight on the first column */
    double previous, same, next; /* on the column before, at and after the row's own place; rows without one are left out */
    void *reserved[4];
} qkv_head_measures;
QKV_API qkv_status qkv_attention_stats(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                                       qkv_head_measures *out);

/* ---- ids as names, for maps of one's own ---- */
/* The text that ids stand for, as units: ids that only together make a character are one. Starts as zero; used again and again.
 * All it points to is its own. */
typedef struct qkv_token_names {
    int64_t n;                /* units */
    const char *const *names; /* (n): UTF-8 where the ids make any; of one that the tokenizer does not have a space */
    const int64_t *first;     /* (n + 1): unit i is ids first[i] .. first[i + 1] - 1, as qkv_attention_join() takes them */
    struct qkv_token_names_work *work;
    void *reserved[4];
} qkv_token_names;

/* USAGE for NULL and a negative n; MEMORY. *out then holds nothing. */
QKV_API qkv_status qkv_token_names_make(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_token_names *out);
QKV_API void qkv_token_names_free(qkv_token_names *names);

/* ---- heads in the order of what they do ---- */
/* The measures by which heads are ranked: QKV_HEAD_MEASURE_ENTROPY, and so on, each with the member of qkv_head_measures. */
#define QKV_HEAD_MEASURE_LIST(M) \
    M(ENTROPY, entropy)          \
    M(DIAGONALITY, diagonality)  \
    M(FIRST, first)              \
    M(PREVIOUS, previous)        \
    M(SAME, same)                \
    M(NEXT, next)

#define QKV_HEAD_MEASURE_ENUM(constant, member) QKV_HEAD_MEASURE_##constant,
typedef enum qkv_head_measure { QKV_HEAD_MEASURE_LIST(QKV_HEAD_MEASURE_ENUM) QKV_HEAD_MEASURE_COUNT } qkv_head_measure;
#undef QKV_HEAD_MEASURE_ENUM

/* ---- maps: the weights of chosen heads, with titles, ready to be drawn or written ---- */
enum { QKV_ATTENTION_MEAN = -1, QKV_ATTENTION_EACH = -2 }; /* instead of a layer's or head's number */

#ifdef __cplusplus
}
#endif
#endif
