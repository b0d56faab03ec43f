/* family.h: published models. A family maps the keys of its config.json onto the options of the one Transformer, and the
 * names of our weights onto those of its files. */
#ifndef QKV_SRC_FAMILY_H
#define QKV_SRC_FAMILY_H

#include "../io/weights.h"
#include "../nn/params.h"
#include "config.h"
#include "../nn/transformer.h"

/* What a folder says of its model. */
typedef struct qkv__published {
    const char *path; /* of config.json, for sentences */
    const qkv__json_value *config;
    const qkv__weights *weights;
    bool *is_read; /* of each member of config: something has asked for it; NULL: not kept */
} qkv__published;

/* A weight of ours whose name begins with `ours` has the name that begins with `theirs` and goes on as ours does. Where several
 * rows fit, the first that the file has counts. */
typedef struct qkv__rename {
    const char *ours, *theirs;
    /* TURNED: a matrix (in, out); SQUEEZED: a vector as (1, n); LESS_ONE: a vector whose numbers are ours less 1; BY_HEAD: rows of
     * each head follow those of the same head in the part before, of parts of one size */
    enum { QKV__AS_IS, QKV__TURNED, QKV__SQUEEZED, QKV__LESS_ONE, QKV__BY_HEAD } how;
    int part, parts; /* not 0: ours is part number `part` of theirs, side by side; parts may have different sizes */
} qkv__rename;

/* A key that the Transformer has one answer for: missing, null, or this. */
typedef struct qkv__fixed {
    const char *key;
    int flag;
    const char *word; /* NULL: the flag counts */
} qkv__fixed;

/* What a model has beyond its stacks. */
enum { QKV__PART_HEAD = 1, QKV__PART_CLASSIFIER = 2, QKV__PART_TOKENS = 4, QKV__PART_SPANS = 8 };
typedef struct qkv__architecture {
    const char *name;
    int parts;
} qkv__architecture;

/* What encoders alone are published as; more rows may follow. */
#define QKV__ENCODER_ARCHITECTURES(name)                                                                                     \
    { name "Model", 0 }, { name "ForMaskedLM", QKV__PART_HEAD }, { name "ForSequenceClassification", QKV__PART_CLASSIFIER }, \
        { name "ForTokenClassification", QKV__PART_TOKENS },                                                                 \
    {                                                                                                                        \
        name "ForQuestionAnswering", QKV__PART_SPANS                                                                         \
    }

typedef struct qkv__family {
    const char *type;                       /* "model_type" */
    const qkv__architecture *architectures; /* the first is what we write for a model without a head or classifier */
    const char *prefix;                     /* that names in a file may lack */
    const char *encoder, *decoder;          /* how a layer's names begin, # its number */
    const qkv__rename *layer, *others;      /* names within a layer, and all others; up to a row without ours */
    const qkv__rename *decoder_layer;       /* where a decoder's layers have other names; NULL: they have the same */
    const char *const *ignored;             /* tensors that files may have besides; a * at either end stands for anything */
    const qkv__config_key *keys;
    const qkv__fixed *fixed;
    const char *classifier, *head; /* a tensor that tells that a model has one, whatever its architecture */
    qkv_config options;            /* that every model of the family has */
    bool renumbers_pieces;         /* its ids are not those of its SentencePiece file, which alone is refused */
    qkv_status (*read)(const qkv__published *p, int parts, qkv_config *o); /* what the keys do not say alone */
    void (*write)(const qkv_config *o, qkv__json_writer *w);               /* the inverse; writes after the keys */
    const char *(*missing)(const qkv_config *o); /* why a model cannot be written as this family; NULL: it can */
    /* The one of several with this type that a config is of, or a model with these options; NULL: there is only this. */
    const struct qkv__family *(*variant)(const qkv__published *p, const qkv_config *o);
} qkv__family;

extern const qkv__family qkv__marian, qkv__pegasus, qkv__bart, qkv__mbart, qkv__m2m_100, qkv__t5, qkv__mt5, qkv__umt5,
    qkv__bert, qkv__roberta, qkv__xlm_roberta, qkv__camembert, qkv__distilbert, qkv__mpnet, qkv__electra, qkv__albert,
    qkv__modernbert, qkv__gpt2, qkv__llama, qkv__mistral, qkv__qwen2, qkv__qwen3, qkv__gemma, qkv__gemma2, qkv__gemma3_text,
    qkv__phi3, qkv__opt, qkv__gpt_neox;

/* "model_type" of a config, or, where that was left out (UMT5), that of the family with its architecture; NULL: neither is there. */
const char *qkv__model_type(const qkv__json_value *config);

/* NULL when there is none of that name; a sentence's part that lists them all. */
const qkv__family *qkv__family_find(const char *type);
const char *qkv__family_names(void);

/* Refuses a key of config.json that nothing has read and that is not known to be harmless; after all reading. UNSUPPORTED;
 * MEMORY. */
qkv_status qkv__family_check_keys(const qkv__family *f, const qkv__published *p);

/* The options of a published model. The errors of qkv_model_load(). */
qkv_status qkv__family_read(const qkv__family *f, const qkv__published *p, qkv_config *o);

/* The n-th name that our weight may have, and how it lies there; false after the last. */
bool qkv__family_place(const qkv__family *f, const char *ours, int n, char theirs[QKV_NAME_MAX], qkv__rename *how);
bool qkv__family_ignores(const qkv__family *f, const char *theirs);

/* ---- for families ---- */
extern const qkv__enum_name qkv__published_activations[];
/* Llama's, for those that name their keys or tensors as it does. */
extern const qkv__config_key qkv__llama_keys[];
extern const qkv__rename qkv__llama_others[];
extern const char *const qkv__llama_ignored[];
const qkv__json_value *qkv__value(const qkv__published *p, const char *key); /* which counts as read */
const qkv__json_value *qkv__get(const qkv__published *p, const char *key);   /* the same; NULL for null too */
qkv_status qkv__read_keys(const qkv__published *p, const qkv__config_key *keys, qkv_config *o);
bool qkv__is_true(const qkv__published *p, const char *key, bool missing);
qkv_status qkv__unsupported(const qkv__published *p, const char *key, const char *supported);
bool qkv__has_tensor(const qkv__published *p, const qkv__family *f, const char *name); /* with its prefix or without */

/* Rotary positions as "rope_scaling" or, in newer files, "rope_parameters" have them, where the base is too, maybe in an object
 * for each kind of layers; `layers` names those that see everything, NULL: there is one kind. */
qkv_status qkv__read_rotary(const qkv__published *p, const char *layers, qkv_config *o);
void qkv__write_rotary(const qkv_config *o, qkv__json_writer *w);

/* LongRoPE's lists of numbers, which options cannot hold; nothing where a model has none. */
qkv_status qkv__read_divisors(const qkv__published *p, qkv_params *params, qkv__transformer *m);
void qkv__write_divisors(const qkv__transformer *m, qkv__json_writer *w);

/* The part of a head that turns, a number at most 1 that `key` has. */
qkv_status qkv__read_rotary_part(const qkv__published *p, const char *key, qkv_config *o);

/* "sliding_window", and "layer_types" where it is; else the layers that o names have it. And "layer_types" alone, of a window
 * that o has already. */
qkv_status qkv__read_window(const qkv__published *p, qkv_config *o);
void qkv__write_window(const qkv_config *o, qkv__json_writer *w);
void qkv__put_window(const qkv_config *o, qkv__json_writer *w); /* without "layer_types" */
qkv_status qkv__read_layer_types(const qkv__published *p, qkv_config *o);
void qkv__write_layer_types(const qkv_config *o, qkv__json_writer *w);

/* What most families have and a model leaves out, or has and they do not, as qkv__family.missing says it; NULL: nothing. And
 * only what they do not have. */
const char *qkv__leaves_out(const qkv_config *o);
const char *qkv__has_besides(const qkv_config *o);

/* Whether all heads have keys and values of their own, and share the width of the model. */
bool qkv__heads_are_alike(const qkv_config *o);

/* Of Marian, which BART has too: the keys of both stacks that must be alike, and its flags; the names within a layer. */
extern const qkv__rename qkv__marian_layer[];
qkv_status qkv__marian_read(const qkv__published *p, int parts, qkv_config *o);
void qkv__marian_write(const qkv_config *o, qkv__json_writer *w);

/* Of BERT, which its relatives have too: its names within a layer, the head and the classes; positions that begin after the
 * padding's; what stands in the way of every encoder of this kind. */
extern const qkv__rename qkv__bert_layer[];
qkv_status qkv__bert_read_parts(const qkv__published *p, int parts, qkv_config *o);
qkv_status qkv__bert_skip_padding(const qkv__published *p, qkv_config *o);
void qkv__bert_write_tied(const qkv_config *o, qkv__json_writer *w);
void qkv__bert_write_skipped(const qkv_config *o, qkv__json_writer *w);
const char *qkv__not_bert(const qkv_config *o);

/* Whether a model has a classifier of whole texts, which most families give a pooler of its own. */
bool qkv__classifies_texts(const qkv_config *o);

/* The classes of the classifier that these parts are, and what they are of; none without one. */
qkv_status qkv__read_classes(const qkv__published *p, int parts, qkv_config *o);

/* How many classes the config names: the size of id2label, or num_labels, or 2. FORMAT for none. */
qkv_status qkv__count_labels(const qkv__published *p, int64_t *n);

#endif
