/* qkv/model.h: a model: a Transformer with its weights and tokenizers, its folder, and its forward pass.
 *
 * Threads: any number of threads may use one model that nobody changes: every call that takes a const qkv_model, saving too.
 * What changes it (its tokenizers, labels or weights, training) is for one thread, alone. */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include <qkv/nn.h>
#include <qkv/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the Transformer ----
 * One model, described by its options: the paper's with an encoder and a decoder, one of the two alone, and the variants that
 * published models use. Zero is the paper's choice, but for the sizes, which must be given. <qkv/transformer.def> lists the
 * options for programs that read, write or show them. */
/* How hidden states become one vector a row: over the row's real tokens the mean, the first, the last, or a weighted mean whose
 * weights are an attention with a learned query. */
typedef enum qkv_pooling { QKV_POOLING_MEAN, QKV_POOLING_FIRST, QKV_POOLING_LAST, QKV_POOLING_ATTENTION } qkv_pooling;

/* What lies between the pooled vector and the classifier: nothing, f(x W^T + b), W (dim, dim), or the model's head. */
typedef enum qkv_pooler { QKV_POOLER_NONE, QKV_POOLER_TANH, QKV_POOLER_RELU, QKV_POOLER_HEAD, QKV_POOLER_GELU } qkv_pooler;

/* What the classes are of: a text as a whole; each of its tokens; the two ends of a span in it, the first class its first
 * token's, the second its last one's. */
typedef enum qkv_classes_of { QKV_CLASSES_OF_TEXTS, QKV_CLASSES_OF_TOKENS, QKV_CLASSES_OF_SPANS } qkv_classes_of;

/* How frequencies are scaled, f_i = base^(-2i/D), by rope_factor and, but for LINEAR, by how often they turn in rope_length
 * positions, so that longer texts than those can be read. */
typedef enum qkv_rope_scaling {
    QKV_ROPE_LLAMA3, /* at least rope_high turns: as they are; at most rope_low: divided; else in between, by turns */
    QKV_ROPE_LINEAR, /* all are divided */
    QKV_ROPE_YARN,   /* as LLAMA3, but in between by the number i of the frequency (Peng et al. 2023) */
    QKV_ROPE_LONG    /* LongRoPE: each is divided by a number of its own, which a published model's files have and options
                          cannot hold: a model made of options alone has none; rope_factor is 0 */
} qkv_rope_scaling;

typedef struct qkv_config {
    size_t size;
    int64_t vocab_size;                 /* of the source, and of the target unless that has its own */
    int64_t target_vocab_size;          /* 0: source and target share one vocabulary and one table */
    int encoder_layers, decoder_layers; /* at least one of them not 0; a decoder without an encoder has no cross-attention */
    int64_t dim, heads, d_ff;           /* d_model, h, d_ff */
    int64_t kv_heads, d_k;              /* 0 means heads, and dim/heads */
    int pre_norm;                       /* x + f(norm(x)), and a norm at the end, instead of norm(x + f(x)) */
    qkv_norm_kind norm;
    float norm_eps; /* 0 means 1e-5 */
    qkv_activation activation;
    qkv_position_kind positions;
    int64_t max_positions;  /* of learned positions */
    int64_t first_position; /* of the first token */
    float rope_base;        /* 0 means 10000 */
    int no_bias;            /* in attention and feed-forward */
    int untied;             /* the layer before the softmax has weights of its own */
    int unscaled;           /* embeddings are not multiplied by sqrt(dim) */
    float dropout;          /* of every sub-layer's result and of embedding + position */
    float attention_dropout, ffn_dropout;
    int64_t classes; /* of a classifier over the pooled hidden states; 0: none */
    qkv_pooling pooling;
    qkv_pooler pooler;
    int embed_norm;      /* a norm of embedding + position, before dropout */
    int64_t token_types; /* of an encoder's tokens, such as first and second text: each has a vector that is added; 0: none */
    int head;            /* before the output layer: norm(f(x W^T + b)), f the activation, of a gated one the gate's */
    int output_bias;     /* the output layer, tied or not, has a bias */
    int qkv_bias;        /* with no_bias: queries, keys and values have one all the same */
    /* rope_factor not 0: rotary frequencies are scaled, see qkv_rope_scaling. */
    float rope_factor, rope_low, rope_high;
    int64_t rope_length;
    int no_source_eos; /* of text, not of numbers: the encoder of a translator reads a source without </s> */
    int no_norm_bias;  /* layer norms have a gain alone */
    int no_first_norm; /* with pre_norm: the first layer's attention reads the embeddings as they are */
    int no_head_bias;
    /* Self-attention with a window: a token sees only those less than `window_size` places away; 0: all. Layers before
     * `window_from_layer` have none, and of every `global_every` layers (0: none) number `global_at`, from 0 on, has none. */
    int64_t window_size;
    int window_from_layer, global_every, global_at;
    float window_rope_base;             /* of layers with a window, not scaled; 0: they turn as the others do */
    qkv_rope_scaling rope_scaling;      /* with rope_factor */
    float rope_scale;                   /* what turns is multiplied by it; 0 means 1 */
    int64_t rope_width;                 /* so many numbers of a head turn, the first ones; 0: all */
    int qk_norm;                        /* RMS norms of every head's queries and keys, before they turn */
    int post_norm;                      /* with pre_norm: each sub-layer's result has a norm before it is added */
    int parallel;                       /* with pre_norm: attention and feed-forward read the same x, both are added to it */
    float attention_scale;              /* of scores; 0 means 1/sqrt(d_k) */
    float score_softcap, logit_softcap; /* c not 0: x becomes c tanh(x / c): scaled scores of self-attention; logits */
    /* Not 0: the scores of self-attention have a learned bias by the distance of key and query, (relative_buckets, heads) for the
     * encoder and for the decoder, shared by their layers: near distances have a bucket each, farther ones share them, up to
     * relative_max_distance (0 means 128), from which on there is one, as in T5. An encoder has half of them for keys to the
     * left. */
    int64_t relative_buckets, relative_max_distance;
    int scaled_output;         /* hidden states are divided by sqrt(dim) before the output layer, or before its head */
    int64_t embed_dim;         /* of an encoder's tables and of their norm, which a linear layer brings to dim; 0 means dim */
    int shared_layers;         /* all layers of a stack have the weights of its first */
    qkv_classes_of classes_of; /* of an encoder alone; with SPANS classes is 2 */
    int relative_per_layer;    /* with relative_buckets: each layer has a bias of its own, as in UMT5 */
    /* Not 0: naive Bayes on tokens and on pairs of tokens adds to the logits of a classifier of texts (src/nn/ngrams.h has the
     * formula). Pairs are hashed into so many slots. For an encoder with 2 classes or more. */
    int64_t ngrams;
} qkv_config;

/* Options of the paper's table 3, "base" and "big", and of smaller models that train on a laptop, "tiny" and "small", for the
 * vocabulary given; *config has its size, or 0. UNSUPPORTED for another name, USAGE for NULL. */
QKV_API qkv_status qkv_config_preset(const char *name, int64_t vocab_size, qkv_config *config);

/* ---- a model and its folder ----
 * The folder of a model of ours holds config.json (the options, one key each, "model_type": "qkv", the names of classes and a
 * length penalty that was fitted), model.safetensors and, for a model that knows its text, tokenizer.json; and
 * target_tokenizer.json when source and target have a vocabulary each. A published model has the files that its authors gave
 * it: its family, which is its "model_type", says how their keys and tensors are meant. The families are marian, pegasus, bart,
 * mbart, m2m_100, t5, mt5, bert, roberta, xlm-roberta, camembert, distilbert, mpnet, electra, albert, modernbert, gpt2, opt,
 * gpt_neox, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text and phi3. Weights may lie in several files that model.safetensors.index.json names; where neither is there, in
 * pytorch_model.bin or those of its index, which are only read. */
typedef struct qkv_model qkv_model;

/* A Transformer with its own params, new weights by the seed, named "embed.weight", "encoder.0.self.q.weight",
 * "decoder.3.cross_norm.bias", and so on. NULL on error: USAGE for options that do not fit, MEMORY. You own it. */
QKV_API qkv_model *qkv_model_new(const qkv_config *config, uint64_t seed);

/* dtype: how the matrices of a model are kept: as its files have them, or in 8 or 4 bits with scales, made here. Biases, norms and
 * positions stay float32; of INT4 the tables of tokens and what is before a softmax have 8 bits. A product then takes its
 * activations in 8 bits too: see docs/published.md. Its bits are the same on every instruction set.
 * BF16: rounded to the nearest bfloat16, unless the files have them so. On the instruction sets "amx" and "avx512_bf16" a
 * product rounds its activations too, and sums in an order of that set; on others they stay float32: three classes of bits.
 * F32: all weights are copied into memory as float32, with gradients, so that they can be changed and trained. */
typedef struct qkv_load_opts {
    size_t size; /* sizeof(qkv_load_opts): QKV_OPTS() sets it */
    qkv_dtype dtype;
    int in_memory; /* read the weights, do not map them: the files may then change in any way while the model lives */
} qkv_load_opts;

/* Reads a folder. Weights are mapped, not read: those of float32 stay in their files as long as the model lives, see
 * QKV_DTYPE_F32; the files may be replaced meanwhile, but not cut. NULL on error: IO, which for a path
 * that is no model's folder says what it is instead; FORMAT for a config.json that is not JSON, lacks a key, has one of
 * another type or (in ours) one that is unknown, or weights that do not fit it, each named; UNSUPPORTED for
 * another model_type, a value of a key that the Transformer here does not have, a tensor of a type other than F64, F32, F16
 * and BF16, and for weights of other kinds or a pytorch_model.bin that would run something; LIMIT; MEMORY.
 *
 * A model in 8 or 4 bits can be run and saved, which writes a folder that is loaded without converting anything; it cannot be
 * trained or averaged (UNSUPPORTED). UNSUPPORTED for a folder whose weights are kept in other bits than are asked for, or in 8
 * or 4 bits where float32 is, NUMERIC for a weight that so few bits cannot hold, USAGE for F16 and an unknown dtype. NULL opts
 * means all zero. You own the model. */
QKV_API qkv_model *qkv_model_load(const char *folder, const qkv_load_opts *opts);

QKV_API void qkv_model_free(qkv_model *m);

/* A model with these options that has every weight of m that fits in name and shape; the others are new, by the seed, but a head
 * that m does not have begins as one that lets everything through, where its shape allows that (ModernBERT's, with a bias). It is
 * of m's family where the options allow it, and what is known of m is known of it; it has no tokenizers and no labels. NULL on
 * error: USAGE for options that do not fit, MEMORY. You own it. */
QKV_API qkv_model *qkv_model_adapt(const qkv_model *m, const qkv_config *config, uint64_t seed);

/* Writes its files as its family has them, each whole or not at all; makes the folder if it is not there. m does not change:
 * its weights are read where they lie. Files of a tokenizer that is not written anew are copied from the folder m was loaded
 * from. Matrices in 8 or 4 bits are written so, other weights as float32. NUMERIC for a weight that is not finite, IO when that
 * folder is gone: then nothing was written; IO, MEMORY.
 *
 * family: NULL for its own; else the files are those that programs of that family read, or of "qkv". Loaded again, the weights
 * have the same bits; words that were learned without the head that the family has get one that lets everything through, and the
 * same logits but for rounding. UNSUPPORTED for another family, and for options that the family does not have: the sentence
 * says which. */
QKV_API qkv_status qkv_model_save(const qkv_model *m, const char *folder, const char *family);

typedef enum qkv_side { QKV_SIDE_SOURCE, QKV_SIDE_TARGET } qkv_side; /* what the encoder reads; what the decoder does */

/* Gives m its tokenizers, which it owns from then on; target is NULL when the model has one vocabulary. They are saved and
 * loaded with it. USAGE, and they stay yours, when one has more tokens than the model's vocabulary, or the target is
 * missing where the model has two vocabularies. A target may also be given for one vocabulary that two tokenizers share. The
 * getter gives NULL for a model without text and for an unknown side; without a target both sides give the same. */
QKV_API qkv_status qkv_model_set_tokenizers(qkv_model *m, qkv_tokenizer *source, qkv_tokenizer *target);
QKV_API const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *m, qkv_side side);

/* What the numbers of a classifier stand for: "problem_type" of config.json. */
typedef enum qkv_problem {
    QKV_PROBLEM_CLASSIFICATION, /* a text has one of the labels: softmax */
    QKV_PROBLEM_MULTILABEL,     /* each of the labels by itself: sigmoid ("multi_label_classification") */
    QKV_PROBLEM_REGRESSION      /* one number ("regression") */
} qkv_problem;

/* Sets the names of its classes, copied, what they are of, and what stands between several labels of a text in its data; all is
 * saved and loaded with it. n is the number of classes, or 0: they have no names. separator: up to 15 bytes; NULL: not known. USAGE
 * for a model without classes, another number of names, one that is empty, not UTF-8, or has a TAB or a line end, an unknown
 * problem, and a regression of several classes; MEMORY. */
QKV_API qkv_status qkv_model_set_labels(qkv_model *m, const char *const *names, int64_t n, qkv_problem problem,
                                        const char *separator);
QKV_API const char *qkv_model_label(const qkv_model *m, int64_t i); /* NULL without names, and out of range */

/* ---- what is known of a model ---- */
typedef enum qkv_ability {
    QKV_CAN_TRANSLATE = 1, /* encoder and decoder */
    QKV_CAN_GENERATE = 2,  /* a decoder alone */
    QKV_CAN_FILL = 4,      /* words that are masked */
    QKV_CAN_CLASSIFY = 8,
    QKV_CAN_EMBED = 16,  /* an encoder */
    QKV_CAN_TAG = 32,    /* a label for each word */
    QKV_CAN_ANSWER = 64, /* where in a text a question is answered */
    QKV_CAN_RANK = 128   /* a cross-encoder: a classifier with one class */
} qkv_ability;

/* From config.json, which generation_config.json overrides. 0 and "": not said. */
typedef struct qkv_model_info {
    const char *family;                            /* "qkv": ours */
    unsigned can;                                  /* QKV_CAN_TRANSLATE and so on, added up */
    int64_t max_positions;                         /* tokens of a sequence, at most */
    int64_t parameters;                            /* numbers of all its weights */
    int64_t bytes;                                 /* of the files that its weights came from */
    int n_files;                                   /* of these; 0 for a model that was made here */
    qkv_dtype dtype;                               /* INT8 or INT4: its matrices are kept so; else STORED */
    int64_t n_labels;                              /* see qkv_model_label() */
    qkv_problem problem;                           /* of a classifier */
    char label_separator[16];                      /* between several labels of a text in its training data */
    int64_t sentences;                             /* of a line in training, 99th percentile; 0 means 1 in a model of ours */
    char source_language[16], target_language[16]; /* codes of a translator's languages, such as "en" */
} qkv_model_info;

/* What is known of m; it lives as long as m and changes only with it. NULL for NULL. */
QKV_API const qkv_model_info *qkv_model_get_info(const qkv_model *m);

/* Gives a translator the length penalty that its translations have where no option says another, such as the one that
 * a search on validation text found. It is saved and loaded with m ("length_penalty" in config.json); what is made
 * of m by qkv_model_adapt() has it too, but not what is saved as another family, whose scores are by another formula. 0, and
 * the default, take it away: config.json then says nothing. USAGE for a number outside
 * [0, 100), and for a model without encoder or decoder. */
QKV_API qkv_status qkv_model_set_length_penalty(qkv_model *m, float alpha);

/* Its options: as much as *out has room for, by the size that is set in it. USAGE for NULL and for a size that no struct has. */
QKV_API qkv_status qkv_model_config(const qkv_model *m, qkv_config *out);

/* Its weights, which are the model's. NULL for NULL. */
QKV_API qkv_params *qkv_model_params(qkv_model *m);

/* ---- what stands around a model's texts ----
 * A model of ours reads <s> text </s>, looked up by these spellings. A published one reads what its tokenizer puts around text,
 * and its files say what starts, ends and pads a text; where they do not, the spellings <s> </s> <pad> <mask> and [CLS] [SEP]
 * [PAD] [MASK] do. */
typedef struct qkv_special_tokens {
    size_t size;
    int32_t start;          /* what a decoder behind an encoder starts with; what other texts begin with. -1: nothing */
    int32_t end;            /* the last id of a text, and of a source; -1: nothing */
    int32_t pad;            /* where nothing is said, the end, or 0: padding is never seen */
    int32_t mask;           /* -1: none */
    int32_t first_ordinary; /* the first id of ordinary tokens, for qkv_masked_lm_opts */
    int32_t source_end;     /* what the source of a translator ends with; of other models the end. -1: nothing */
} qkv_special_tokens;

/* Fills *out, by the size that is set in it, for qkv_batch_opts and qkv_masked_lm_opts. USAGE for a model without tokenizer, for an encoder without start or end, for a
 * decoder behind one without start or end, and for a translator of ours without padding, or with an end that is not the same
 * id in the tokenizers of source and target. */
QKV_API qkv_status qkv_model_special_tokens(const qkv_model *m, qkv_special_tokens *out);

/* The ids of a text as one side of m reads it, for qkv_model_encode() and qkv_model_decode(): of a translator the
 * source with its end and the target with its start, of a published model with what its tokenizer and its files put around a
 * text, special tokens in it included; of a decoder alone the prompt as qkv_generate() reads it, ready for qkv_session_read(); of
 * an encoder of ours as it is. Of opts (NULL: all zero), no_special adds nothing and reads none in the text; parse_special reads
 * them in the text of any model; add_special changes nothing. Added tokens have empty spans. USAGE for NULL, a side that is none,
 * a model without tokenizer, and as above; and the errors of qkv_tokenizer_encode(). */
QKV_API qkv_status qkv_model_tokenize(const qkv_model *m, qkv_side side, qkv_str text, const qkv_encode_opts *opts,
                                      qkv_encoding **out);

/* ---- the forward pass ----
 * On a tape of yours: NULL and the error on the tape where something does not fit. */

/* Rows of tokens. ids (rows, length), of which the first lengths[i] of row i count; NULL: all. types, of the same shape: which
 * text of a pair each token of an encoder is of; NULL: the first. */
typedef struct qkv_tokens {
    size_t size;
    const int32_t *ids, *types;
    int64_t rows, length;
    const int32_t *lengths;
} qkv_tokens;

/* The encoder   ->   (rows, length, dim). USAGE without an encoder, and for types in a model that has none. */
QKV_API qkv_tensor *qkv_model_encode(const qkv_model *m, qkv_tape *t, const qkv_tokens *source);

/* The decoder, each token of which sees itself and those before it. memory (rows, source length, dim) with memory_lengths is
 * what the encoder gave; NULL for a decoder alone   ->   (rows, length, dim). USAGE without a decoder. */
QKV_API qkv_tensor *qkv_model_decode(const qkv_model *m, qkv_tape *t, const qkv_tokens *target, qkv_tensor *memory,
                                     const int32_t *memory_lengths);

/* hidden (..., dim)   ->   (..., vocabulary of the target): the head, if there is one, and the layer before the softmax */
QKV_API qkv_tensor *qkv_model_logits(const qkv_model *m, qkv_tensor *hidden);

/* hidden (rows, length, dim) with `lengths` real tokens in each row (NULL: all are)   ->   (rows, dim). USAGE for a row
 * without tokens, and for attention pooling where the model has no weights for it. */
QKV_API qkv_tensor *qkv_model_pool(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths, qkv_pooling how);

/* The classifier. Of texts: pooled as the options say, the pooler, dropout, a linear layer: hidden (rows, length, dim)   ->
 * (rows, classes). Of tokens and spans: the head where the pooler is that, dropout, a linear layer: hidden (..., dim)   ->
 * (..., classes); lengths are not read. USAGE without one. With ngrams this is attention's part alone: qkv_classify() reads the
 * text. */
QKV_API qkv_tensor *qkv_model_classify(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths);

#ifdef __cplusplus
}
#endif
#endif
