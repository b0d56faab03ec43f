/* qkv/model.h: a model: a Transformer with its weights and tokenizers, its folder, and its forward pass.
 *
 * Threads: any number of threads may call functions that take a const qkv_model, including saving, on the same model. Functions
 * that change a model (tokenizers, labels, weights, training) need exclusive access. */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include <qkv/nn.h>
#include <qkv/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the Transformer ----
 * One architecture, configured by options: the paper's encoder-decoder, an encoder or a decoder alone, and the variants of
 * published models. Zero selects the paper's choice, except for the sizes, which are required. <qkv/transformer.def> lists the
 * options for programs that read, write or show them. */
/* Pooling of hidden states to one vector per row: the mean over the row's real tokens, the first, the last, or a weighted mean
 * with the weights of an attention with a learned query. */
typedef enum qkv_pooling { QKV_POOLING_MEAN, QKV_POOLING_FIRST, QKV_POOLING_LAST, QKV_POOLING_ATTENTION } qkv_pooling;

/* The layer between the pooled vector and the classifier: none, f(x W^T + b) with W (dim, dim), or the model's head. */
typedef enum qkv_pooler { QKV_POOLER_NONE, QKV_POOLER_TANH, QKV_POOLER_RELU, QKV_POOLER_HEAD, QKV_POOLER_GELU } qkv_pooler;

/* The unit of classification: whole texts; tokens; or spans, where class 0 scores the first token of the span and class 1 the
 * last. */
typedef enum qkv_classes_of { QKV_CLASSES_OF_TEXTS, QKV_CLASSES_OF_TOKENS, QKV_CLASSES_OF_SPANS } qkv_classes_of;

/* Scaling of rotary frequencies, f_i = base^(-2i/D), for longer texts. Frequencies are divided by rope_factor; except with
 * LINEAR, this depends on their number of turns in rope_length positions. */
typedef enum qkv_rope_scaling {
    QKV_ROPE_LLAMA3, /* at least rope_high turns: unchanged; at most rope_low: divided; else interpolated by turns */
    QKV_ROPE_LINEAR, /* all are divided */
    QKV_ROPE_YARN,   /* as LLAMA3, but interpolated by the index i of the frequency (Peng et al. 2023) */
    QKV_ROPE_LONG    /* LongRoPE: a separate divisor per frequency. The divisors are in the files of a published model and are
                          not options, so a model made from options alone has none. rope_factor is 0 */
} qkv_rope_scaling;

typedef struct qkv_config {
    size_t size;
    int64_t vocab_size;                 /* of the source, and of the target unless target_vocab_size is set */
    int64_t target_vocab_size;          /* 0: source and target share one vocabulary and one table */
    int encoder_layers, decoder_layers; /* at least one is not 0; a decoder without an encoder has no cross-attention */
    int64_t dim, heads, d_ff;           /* d_model, h, d_ff */
    int64_t kv_heads, d_k;              /* 0 means heads, and dim/heads */
    int pre_norm;                       /* x + f(norm(x)), with a final norm, instead of norm(x + f(x)) */
    qkv_norm_kind norm;
    float norm_eps; /* 0 means 1e-5 */
    qkv_activation activation;
    qkv_position_kind positions;
    int64_t max_positions;  /* of learned positions */
    int64_t first_position; /* of the first token */
    float rope_base;        /* 0 means 10000 */
    int no_bias;            /* in attention and feed-forward */
    int untied;             /* the output layer has separate weights, not those of the embedding */
    int unscaled;           /* embeddings are not multiplied by sqrt(dim) */
    float dropout;          /* of the result of every sub-layer and of embedding + position */
    float attention_dropout, ffn_dropout;
    int64_t classes; /* of a classifier over the pooled hidden states; 0: none */
    qkv_pooling pooling;
    qkv_pooler pooler;
    int embed_norm;      /* a norm of embedding + position, before dropout */
    int64_t token_types; /* segment embeddings of an encoder, e.g. first and second text, added to each token; 0: none */
    int head;            /* before the output layer: norm(f(x W^T + b)), f = activation (of a gated one, its gate) */
    int output_bias;     /* the output layer, tied or not, has a bias */
    int qkv_bias;        /* with no_bias: queries, keys and values keep their biases */
    /* rope_factor not 0: rotary frequencies are scaled, see qkv_rope_scaling. */
    float rope_factor, rope_low, rope_high;
    int64_t rope_length;
    int no_source_eos; /* the encoder of a translator reads source text without </s>. Affects text, not ids */
    int no_norm_bias;  /* layer norms have a gain only */
    int no_first_norm; /* with pre_norm: the attention of the first layer reads the embeddings without a norm */
    int no_head_bias;
    /* Sliding-window self-attention: a token attends to tokens at a distance below `window_size`; 0: no window. Layers before
     * `window_from_layer` have none. Of every `global_every` layers (0: none), layer `global_at` (from 0) has none. */
    int64_t window_size;
    int window_from_layer, global_every, global_at;
    float window_rope_base;             /* RoPE base of layers with a window, unscaled; 0: same as the other layers */
    qkv_rope_scaling rope_scaling;      /* with rope_factor */
    float rope_scale;                   /* factor of the rotated components; 0 means 1 */
    int64_t rope_width;                 /* number of rotated components per head, from the first; 0: all */
    int qk_norm;                        /* RMS norms of the queries and keys of every head, before RoPE */
    int post_norm;                      /* with pre_norm: a norm of each sub-layer's result before it is added */
    int parallel;                       /* with pre_norm: attention and feed-forward read the same x, both are added to it */
    float attention_scale;              /* of scores; 0 means 1/sqrt(d_k) */
    float score_softcap, logit_softcap; /* c not 0: x becomes c tanh(x / c): scaled scores of self-attention; logits */
    /* Not 0: relative position bias of self-attention scores, as in T5: (relative_buckets, heads), learned, one for the encoder
     * and one for the decoder, shared by their layers. Small distances have one bucket each. Larger ones share buckets, up to
     * relative_max_distance (0 means 128). All distances from there on use one bucket. An encoder uses half of the buckets for
     * keys to the left. */
    int64_t relative_buckets, relative_max_distance;
    int scaled_output;         /* hidden states are divided by sqrt(dim) before the output layer, or before its head */
    int64_t embed_dim;         /* width of an encoder's tables and their norm; a linear layer projects it to dim; 0 means dim */
    int shared_layers;         /* all layers of a stack share the weights of the first one */
    qkv_classes_of classes_of; /* of an encoder alone; with SPANS classes is 2 */
    int relative_per_layer;    /* with relative_buckets: a separate bias per layer, as in UMT5 */
    /* Not 0: naive Bayes on tokens and token pairs adds to the logits of a text classifier (formula: src/nn/ngrams.h). The
     * value is the number of hash slots for pairs. Requires an encoder with at least 2 classes. */
    int64_t ngrams;
} qkv_config;

/* Presets: "base" and "big" of the paper's table 3, and "tiny" and "small", which train on a laptop. *config has its size, or
 * 0. UNSUPPORTED for another name, USAGE for NULL. */
QKV_API qkv_status qkv_config_preset(const char *name, int64_t vocab_size, qkv_config *config);

/* ---- a model and its folder ----
 * The folder of a native qkv model holds:
 *   config.json            the options, one key each, "model_type": "qkv", the names of classes, a fitted length penalty
 *   model.safetensors      the weights
 *   tokenizer.json         for a model with a tokenizer
 *   target_tokenizer.json  if source and target have separate vocabularies
 * A published model has its original files. Its family is its "model_type" and defines the meaning of keys and tensors. The
 * families are marian, pegasus, bart, mbart, m2m_100, t5, mt5, bert, roberta, xlm-roberta, camembert, distilbert, mpnet,
 * electra, albert, modernbert, gpt2, opt, gpt_neox, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text and phi3. Weights
 * may be split into several files, listed in model.safetensors.index.json. If neither exists, they are read from
 * pytorch_model.bin or the files of its index. PyTorch files are read, never written. */
typedef struct qkv_model qkv_model;

/* A Transformer with new weights, initialized from the seed and owned by the model. They are named "embed.weight",
 * "encoder.0.self.q.weight", "decoder.3.cross_norm.bias", and so on. NULL on error: USAGE for inconsistent options, MEMORY. You
 * own it. */
QKV_API qkv_model *qkv_model_new(const qkv_config *config, uint64_t seed);

/* dtype: the storage type of the matrices: as in the files, or quantized to 8 or 4 bits with scales at load.
 * INT8, INT4: biases, norms and positions stay float32. With INT4, token tables and the output layer have 8 bits. Products also
 * quantize activations to 8 bits: see docs/published.md. The result is bit-identical on every instruction set.
 * BF16: rounded to the nearest bfloat16, unless the files already are. On the instruction sets "amx" and "avx512_bf16",
 * products also round activations and sum in an order specific to the set; on others activations stay float32. So results fall
 * into three classes of bits.
 * F32: all weights are copied into memory as float32, with gradients, so that they can be changed and trained. */
typedef struct qkv_load_opts {
    size_t size; /* sizeof(qkv_load_opts): QKV_OPTS() sets it */
    qkv_dtype dtype;
    int in_memory; /* 1: read the weights instead of mapping them; the files may then change while the model exists */
} qkv_load_opts;

/* Loads a model from a folder. NULL opts are all zero. You own the model.
 *
 * Weights are mapped, not read: float32 weights remain in their files for the lifetime of the model, see QKV_DTYPE_F32. The
 * files may be replaced during that time, but not truncated.
 *
 * A model in 8 or 4 bits can be run and saved. The saved folder loads without conversion. It cannot be trained or averaged
 * (UNSUPPORTED).
 *
 * NULL on error:
 *   IO           also for a path that is not a model folder; the message describes it
 *   FORMAT       config.json is not JSON, lacks a key, has a key of the wrong type or (native) an unknown key; or
 *                weights do not match it. The message names the key or tensor
 *   UNSUPPORTED  another model_type; an unsupported value of a key; a tensor of a type other than F64, F32, F16 and BF16; other
 *                weight formats; a pytorch_model.bin that would execute code; a folder with weights of another bit width than
 *                requested, or in 8 or 4 bits if float32 is requested
 *   NUMERIC      a weight is not representable in the requested bits
 *   USAGE        F16 or an unknown dtype
 *   LIMIT, MEMORY */
QKV_API qkv_model *qkv_model_load(const char *folder, const qkv_load_opts *opts);

QKV_API void qkv_model_free(qkv_model *m);

/* A new model with these options and all weights of m that match in name and shape. Other weights are initialized from the
 * seed. A head that m lacks starts as the identity if its shape allows that (ModernBERT's, with a bias). The result has m's
 * family if the options allow it, and m's info. It has no tokenizers and no labels. NULL on error: USAGE for inconsistent
 * options, MEMORY. You own it. */
QKV_API qkv_model *qkv_model_adapt(const qkv_model *m, const qkv_config *config, uint64_t seed);

/* Saves m in the format of its family. Creates the folder if it does not exist. Each file is written atomically. m does not
 * change: its weights are read in place. Tokenizer files that are not regenerated are copied from the folder m was loaded from.
 * Matrices in 8 or 4 bits are saved as such, other weights as float32.
 *
 * family: NULL for m's family, "qkv", or another family, for programs that read its format. After loading again, the weights
 * have the same bits. A family with a head that m lacks gets an identity head for its word predictions; logits are the same up
 * to rounding.
 *
 * NUMERIC for a weight that is not finite, and IO if the original folder no longer exists: nothing is written then. UNSUPPORTED
 * for an unsupported family and for options that the family does not have; the message names them. IO, MEMORY. */
QKV_API qkv_status qkv_model_save(const qkv_model *m, const char *folder, const char *family);

typedef enum qkv_side { QKV_SIDE_SOURCE, QKV_SIDE_TARGET } qkv_side; /* encoder input; decoder input */

/* Sets the tokenizers of m, which takes ownership. target is NULL for a model with one vocabulary; two tokenizers may also
 * share one vocabulary. The tokenizers are saved and loaded with m. USAGE if one has more tokens than the model's vocabulary,
 * or if target is missing for a model with two vocabularies; they then remain yours. */
QKV_API qkv_status qkv_model_set_tokenizers(qkv_model *m, qkv_tokenizer *source, qkv_tokenizer *target);
/* The tokenizer of one side, owned by m. Without a target tokenizer, both sides return the same one. NULL for a model without
 * tokenizers and for an unknown side. */
QKV_API const qkv_tokenizer *qkv_model_tokenizer(const qkv_model *m, qkv_side side);

/* The meaning of a classifier's outputs: "problem_type" of config.json. */
typedef enum qkv_problem {
    QKV_PROBLEM_CLASSIFICATION, /* one label per text: softmax */
    QKV_PROBLEM_MULTILABEL,     /* each label independently: sigmoid ("multi_label_classification") */
    QKV_PROBLEM_REGRESSION      /* one number ("regression") */
} qkv_problem;

/* Sets the class names (copied), the problem type, and the separator of multiple labels in the training data. All are saved and
 * loaded with m. n is the number of classes, or 0 for no names. separator: up to 15 bytes; NULL: unknown.
 * USAGE for a model without classes, a wrong number of names, a name that is empty, not UTF-8, or contains a TAB or a line end,
 * an unknown problem, and a regression with several classes; MEMORY. */
QKV_API qkv_status qkv_model_set_labels(qkv_model *m, const char *const *names, int64_t n, qkv_problem problem,
                                        const char *separator);
QKV_API const char *qkv_model_label(const qkv_model *m, int64_t i); /* NULL without names, and out of range */

/* ---- model info ---- */
typedef enum qkv_ability {
    QKV_CAN_TRANSLATE = 1, /* encoder and decoder */
    QKV_CAN_GENERATE = 2,  /* a decoder alone */
    QKV_CAN_FILL = 4,      /* predicts masked words */
    QKV_CAN_CLASSIFY = 8,
    QKV_CAN_EMBED = 16,  /* an encoder */
    QKV_CAN_TAG = 32,    /* a label for each word */
    QKV_CAN_ANSWER = 64, /* extractive question answering */
    QKV_CAN_RANK = 128   /* a cross-encoder: a classifier with one class */
} qkv_ability;

/* From config.json; generation_config.json overrides it. 0 and "": not specified. */
typedef struct qkv_model_info {
    const char *family;                            /* "qkv": a native qkv model */
    unsigned can;                                  /* bitwise OR of QKV_CAN_TRANSLATE and so on */
    int64_t max_positions;                         /* maximum tokens of a sequence */
    int64_t parameters;                            /* total number of weights */
    int64_t bytes;                                 /* size of the weight files */
    int n_files;                                   /* number of weight files; 0 for a model that was not loaded */
    qkv_dtype dtype;                               /* INT8 or INT4 for quantized matrices; else STORED */
    int64_t n_labels;                              /* see qkv_model_label() */
    qkv_problem problem;                           /* of a classifier */
    char label_separator[16];                      /* between several labels of a text in its training data */
    int64_t sentences;                             /* per line in training, 99th percentile; 0 means 1 in a native qkv model */
    char source_language[16], target_language[16]; /* language codes of a translator, such as "en" */
} qkv_model_info;

/* The info of m. It is valid as long as m and changes only with m. NULL for NULL. */
QKV_API const qkv_model_info *qkv_model_get_info(const qkv_model *m);

/* Sets the default length penalty of a translator, e.g. one tuned on validation text. An explicit option overrides it. It is
 * saved and loaded with m ("length_penalty" in config.json) and copied by qkv_model_adapt(). It is not saved for other
 * families, which score by another formula. 0 and the default value remove it from config.json. USAGE for a number outside
 * [0, 100), and for a model without encoder or decoder. */
QKV_API qkv_status qkv_model_set_length_penalty(qkv_model *m, float alpha);

/* Writes the options of m to *out, up to the size that is set in it. USAGE for NULL and for an invalid size. */
QKV_API qkv_status qkv_model_config(const qkv_model *m, qkv_config *out);

/* The weights of m, owned by m. NULL for NULL. */
QKV_API qkv_params *qkv_model_params(qkv_model *m);

/* ---- special tokens ----
 * A native qkv model reads <s> text </s>; ids are looked up by these spellings. For a published model, its tokenizer adds the
 * special tokens, and its files define start, end and padding. If they do not, the spellings <s> </s> <pad> <mask> and [CLS]
 * [SEP] [PAD] [MASK] are looked up. */
typedef struct qkv_special_tokens {
    size_t size;
    int32_t start;          /* first token of a decoder with an encoder; else first token of a text. -1: none */
    int32_t end;            /* last id of a text, and of a source; -1: none */
    int32_t pad;            /* if not specified, the end, or 0: padding is never attended to */
    int32_t mask;           /* -1: none */
    int32_t first_ordinary; /* the first id of ordinary tokens, for qkv_masked_lm_opts */
    int32_t source_end;     /* last token of a translator's source; for other models the end. -1: none */
} qkv_special_tokens;

/* Fills *out, up to the size that is set in it, for qkv_batch_opts and qkv_masked_lm_opts. USAGE for a model without tokenizer,
 * for an encoder without start or end, for a decoder with an encoder without start or end, and for a native qkv translator
 * without padding, or with different ids of the end in source and target tokenizers. */
QKV_API qkv_status qkv_model_special_tokens(const qkv_model *m, qkv_special_tokens *out);

/* Tokenizes text for one side of m, for qkv_model_encode() and qkv_model_decode():
 *   translator       the source with its end; the target with its start
 *   published model  with the special tokens of its tokenizer and files; special tokens in the text are parsed
 *   decoder alone    the prompt as in qkv_generate(), ready for qkv_session_read()
 *   native encoder   the text without additions
 * opts (NULL: all zero): no_special adds no special tokens and parses none; parse_special parses them for any model;
 * add_special has no effect. Added tokens have empty spans. USAGE for NULL, an unknown side, a model without tokenizer, and as
 * in qkv_model_special_tokens(); and the errors of qkv_tokenizer_encode(). */
QKV_API qkv_status qkv_model_tokenize(const qkv_model *m, qkv_side side, qkv_str text, const qkv_encode_opts *opts,
                                      qkv_encoding **out);

/* ---- the forward pass ----
 * Results belong to the given tape. On error, functions return NULL and record the error on the tape. */

/* Rows of tokens. ids (rows, length); the first lengths[i] ids of row i are real, the rest padding; NULL: no padding. types,
 * same shape: the segment of each token of an encoder; NULL: all first. */
typedef struct qkv_tokens {
    size_t size;
    const int32_t *ids, *types;
    int64_t rows, length;
    const int32_t *lengths;
} qkv_tokens;

/* The encoder   ->   (rows, length, dim). USAGE without an encoder, and for types in a model without token types. */
QKV_API qkv_tensor *qkv_model_encode(const qkv_model *m, qkv_tape *t, const qkv_tokens *source);

/* The decoder, with causal self-attention. memory (rows, source length, dim) with memory_lengths is the encoder's output; NULL
 * for a decoder alone   ->   (rows, length, dim). USAGE without a decoder. */
QKV_API qkv_tensor *qkv_model_decode(const qkv_model *m, qkv_tape *t, const qkv_tokens *target, qkv_tensor *memory,
                                     const int32_t *memory_lengths);

/* hidden (..., dim)   ->   (..., vocabulary of the target): the head, if any, and the output layer */
QKV_API qkv_tensor *qkv_model_logits(const qkv_model *m, qkv_tensor *hidden);

/* hidden (rows, length, dim) with `lengths` real tokens per row (NULL: all)   ->   (rows, dim). USAGE for a row without tokens,
 * and for attention pooling in a model without its weights. */
QKV_API qkv_tensor *qkv_model_pool(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths, qkv_pooling how);

/* The classifier.
 *   texts          pooling by the options, pooler, dropout, linear layer: hidden (rows, length, dim)   ->   (rows, classes)
 *   tokens, spans  head (with QKV_POOLER_HEAD), dropout, linear layer: hidden (..., dim)   ->   (..., classes); lengths
 *                  are ignored
 * USAGE without a classifier. With ngrams, this is the neural part only: qkv_classify() reads the text. */
QKV_API qkv_tensor *qkv_model_classify(const qkv_model *m, qkv_tensor *hidden, const int32_t *lengths);

#ifdef __cplusplus
}
#endif
#endif
