/* model.h: the inside of a model, for the library. */
#ifndef QKV_SRC_MODEL_H
#define QKV_SRC_MODEL_H

#include "../nn/transformer.h"

/* NULL for NULL. They live as long as the model. */
const qkv_config *qkv__model_config(const qkv_model *m);
const qkv__transformer *qkv__model_transformer(const qkv_model *m);
qkv_params *qkv__model_params(const qkv_model *m);

/* Of summaries, from "task_specific_params"; 0: as for any other text. */
typedef struct qkv__summary_params {
    char prefix[64]; /* before a text to summarize: "summarize: " */
    int beam, no_repeat;
    float length_penalty;
    int64_t max_length, min_length; /* tokens, the start counted */
} qkv__summary_params;

/* From config.json, which generation_config.json overrides, and the files of sentence-transformers. 0 (of ids -1): not said.
 * A config.json of ours has the length penalty and the number of sentences only. */
typedef struct qkv__model_info {
    const char *family;           /* "qkv": ours */
    int can;                      /* QKV_CAN_TRANSLATE and so on, added up */
    int files;                    /* that its weights came from; 0 for a model that was made here */
    int64_t bytes;                /* of these files */
    int64_t parameters;           /* numbers of all its weights */
    int64_t context;              /* tokens of a sequence, at most */
    int32_t start, begin, pad;    /* the first id of a decoder behind an encoder; the first of a text; padding */
    const int32_t *ends, *banned; /* ids that end a text, and ids that are never chosen */
    int n_ends, n_banned;
    int beam;
    float length_penalty;        /* alpha of a beam's scores: of a published model they are the sum of log-probabilities /
                                    length^alpha, 0 means 1; of ours / ((5 + length) / 6)^alpha, and 0 for 0.6 */
    int64_t max_length, max_new; /* tokens of a text; tokens added to a prompt */
    int sample;                  /* 1: chosen at random, else the most probable */
    int top_k, no_repeat;        /* no_repeat: an n-gram of this size does not come twice */
    float temperature, top_p, min_p, repetition_penalty;
    qkv_pooling pooling;  /* of embeddings; MEAN too for one that is not named here, and for several */
    int normalise;        /* embeddings have length 1 */
    int64_t embed_length; /* tokens that an embedding reads, at most */
    int bits;             /* 8 or 4: its matrices are kept so, see qkv_load_opts */
    int32_t forced_first; /* the id after `start` in every translation, such as the code of its language; -1: any id */
    int64_t min_length;   /* tokens of a translation, its start counted; 0: any number */
    qkv__summary_params summary;
    int scores_logits;        /* 1: the score of a cross-encoder is its logit x, else 1 / (1 + e^-x) */
    qkv_problem problem;      /* of a classifier */
    char label_separator[16]; /* between several labels of a text in its training data; "": none */
    int64_t sentences;        /* of a line in training, 99th percentile; 0: not said, which means 1 in a model of ours */
    char source_language[16], target_language[16]; /* codes of a translator's languages, such as "en"; "": not known */
} qkv__model_info;

/* The metadata of m; it lives as long as m and changes only with it. NULL for NULL. */
const qkv__model_info *qkv__model_get_info(const qkv_model *m);

#endif
