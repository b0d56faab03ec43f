/* qkv/model.h: a model: a Transformer with its weights and tokenizers, and the folder it lives in; what its files say of it;
 * what stands around its texts; and what it is to learn.
 *
 * Threads: any number of threads may use one model that nobody changes: every call that takes a const qkv_model, saving too.
 * What changes it (its tokenizers, labels or weights, qkv_params_materialize(), training) is for one thread, alone. */
#ifndef QKV_MODEL_H
#define QKV_MODEL_H

#include <qkv/nn.h>
#include <qkv/text.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes every weight as float32 to a safetensors file, under its name: whole or not at all. IO, MEMORY. */
QKV_API qkv_status qkv_params_save(const qkv_params *p, const char *path);

/* Reads every weight of p from a safetensors file (F64, F32, F16 or BF16, turned into float32). All or nothing: on any error no
 * weight changes. FORMAT when the file breaks a rule of the format, or lacks a weight, has one that p lacks, or one of another
 * shape (the sentence names them all); UNSUPPORTED for other types; IO; MEMORY. */
QKV_API qkv_status qkv_params_load(qkv_params *p, const char *path);

/* ---- a model and its folder ----
 * The folder of a model of ours holds config.json (the options, one key each, "model_type": "qkv", the names of classes and a
 * length penalty that was fitted), model.safetensors and, for a model that knows its text, tokenizer.json; and
 * target_tokenizer.json when source and target have a vocabulary each. A published model has the files that its authors gave
 * it: its family, which is its "model_type", says how their keys and tensors are meant. The families are marian, pegasus, bart,
 * mbart, m2m_100, t5, mt5, bert, roberta, xlm-roberta, camembert, distilbert, mpnet, electra, albert, modernbert, gpt2, opt,
 * gpt_neox, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text and phi3. Weights may lie in several files that model.safetensors.index.json names; where neither is there, in
 * pytorch_model.bin or those of its index, which are only read. */
typedef struct qkv_model qkv_model;

/* A Transformer with its own params, new weights by the seed. NULL on error: USAGE for options that do not fit, MEMORY. You own
 * it. */
QKV_API qkv_model *qkv_model_new(const qkv_config *opts, uint64_t seed);

/* Reads a folder. Weights are mapped, not read: those of float32 stay in their files as long as the model lives, see
 * qkv_params_materialize(); the files may be replaced meanwhile, but not cut. NULL on error: IO, which for a path
 * that is no model's folder says what it is instead; FORMAT for a config.json that is not JSON, lacks a key, has one of
 * another type or (in ours) one that is unknown, or weights that do not fit it, each named; UNSUPPORTED for
 * another model_type, a value of a key that the Transformer here does not have, a tensor of a type other than F64, F32, F16
 * and BF16, and for weights of other kinds or a pytorch_model.bin that would run something; LIMIT; MEMORY. You own it. */
QKV_API qkv_model *qkv_model_load(const char *folder);

/* How the matrices of a model are kept: as its files have them, or in 8 or 4 bits with scales, made here. Biases, norms and
 * positions stay float32; of INT4 the tables of tokens and what is before a softmax have 8 bits. A product then takes its
 * activations in 8 bits too: see docs/published.md. Its bits are the same on every instruction set.
 * BF16: rounded to the nearest bfloat16, unless the files have them so. On the instruction sets "amx" and "avx512_bf16" a
 * product rounds its activations too, and sums in an order of that set; on others they stay float32: three classes of bits. */
typedef enum qkv_weights { QKV_WEIGHTS_AS_STORED, QKV_WEIGHTS_INT8, QKV_WEIGHTS_INT4, QKV_WEIGHTS_BF16 } qkv_weights;

typedef struct qkv_load_opts {
    size_t size; /* sizeof(qkv_load_opts): QKV_OPTS() sets it */
    qkv_weights weights;
    int in_memory; /* read the weights, do not map them: the files may then change in any way while the model lives */
} qkv_load_opts;

/* qkv_model_load() with options; NULL: none. A model in 8 or 4 bits can be run and saved, which writes a folder that is loaded
 * without converting anything; it cannot be trained or averaged (UNSUPPORTED). UNSUPPORTED for a folder whose weights are kept
 * in other bits than are asked for, NUMERIC for a weight that so few bits cannot hold, USAGE for no such weights. */
QKV_API qkv_model *qkv_model_load_with(const char *folder, const qkv_load_opts *opts);

/* Whether the files that m's weights are mapped from are those that were loaded, by device, inode, size and time of change; OK
 * for weights that lie in memory. IO with the name of one that is not: what is computed from one that was written over may be
 * wrong, and one that was cut ends the process with SIGBUS when its end is looked at. The library handles no signal: a program
 * whose models may be written over can load them in_memory, as `qkv serve` does, call this before each use, as qkv_server does, or
 * handle SIGBUS itself (qkv_mapped_file() says which file it was), as the command does. */
QKV_API qkv_status qkv_model_check_files(const qkv_model *m);
QKV_API void qkv_model_free(qkv_model *m);

/* m with n changes (see qkv_edit), for any call that takes a model: qkv_attend(), qkv_translate() with any beam,
 * qkv_generate(), qkv_classify(), qkv_embed(), sessions, and what <qkv/touch.h> has. It shares m's weights and tokenizers,
 * so that m must outlive it and must not be changed; with n of 0 it gives the bits of m. A query that sees no key, because all are
 * hidden, gets zeros from that attention. In the decoder, values change places for the queries that see both. Masks and windows
 * go by places, not by positions that were moved. NULL on error: USAGE for NULL, a layer, head or kind that is not there, a
 * negative place, a row that is not as qkv_edit has it; LIMIT for a position that the model does not have, or above 65535;
 * UNSUPPORTED for MOVE in a model whose positions are a bias by distance; MEMORY. You own it: qkv_model_free(). Touching a
 * touched model gives both changes. */
QKV_API qkv_model *qkv_model_edit(const qkv_model *m, const qkv_edit *touches, int64_t n);

/* A model with these options that has every weight of m that fits in name and shape; the others are new, by the seed, but a head
 * that m does not have begins as one that lets everything through, where its shape allows that (ModernBERT's, with a bias). It is
 * of m's family where the options allow it, and what is known of m is known of it; it has no tokenizers and no labels. NULL on
 * error: USAGE for options that do not fit, MEMORY. You own it. */
QKV_API qkv_model *qkv_model_adapt(const qkv_model *m, const qkv_config *opts, uint64_t seed);

/* Writes its files as its family has them, each whole or not at all; makes the folder if it is not there. m does not change:
 * its weights are read where they lie. Files of a tokenizer that is not written anew are copied from the folder m was loaded
 * from. Matrices in 8 or 4 bits are written so, other weights as float32. NUMERIC for a weight that is not finite, IO when that
 * folder is gone: then nothing was written; IO, MEMORY. */
QKV_API qkv_status qkv_model_save(const qkv_model *m, const char *folder);

/* The same as another family, or "qkv". Loaded again, its weights have the same bits; words that were learned without the head
 * that the family has get one that lets everything through, and the same logits but for rounding. UNSUPPORTED for another
 * family, and for options that the family does not have: the sentence says which. */
QKV_API qkv_status qkv_model_save_as(const qkv_model *m, const char *folder, const char *family);

/* Gives m its tokenizers, which it owns from then on; target is NULL when the model has one vocabulary. They are saved and
 * loaded with it. USAGE, and they stay yours, when one has more tokens than the model's vocabulary, or the target is
 * missing where the model has two vocabularies. A target may also be given for one vocabulary that two tokenizers share. The
 * getters give NULL for a model without text; without a target both give the same. */
QKV_API qkv_status qkv_model_set_tokenizers(qkv_model *m, qkv_tokenizer *source, qkv_tokenizer *target);
QKV_API const qkv_tokenizer *qkv_model_source_tokenizer(const qkv_model *m);
QKV_API const qkv_tokenizer *qkv_model_target_tokenizer(const qkv_model *m);

/* The names of its classes, copied; they are saved and loaded with it. USAGE when there are not as many as classes, or one is
 * empty or not UTF-8; MEMORY. The getter gives NULL for a model without names or a number out of range. */
QKV_API qkv_status qkv_model_set_labels(qkv_model *m, const char *const *names, int64_t n);
QKV_API const char *qkv_model_label(const qkv_model *m, int64_t i);

/* What the numbers of a classifier stand for: "problem_type" of config.json. */
typedef enum qkv_problem {
    QKV_PROBLEM_ONE_LABEL,      /* a text has one of the labels: softmax */
    QKV_PROBLEM_SEVERAL_LABELS, /* each of the labels by itself: sigmoid ("multi_label_classification") */
    QKV_PROBLEM_NUMBER          /* one number ("regression") */
} qkv_problem;

/* Sets it; it is saved and loaded with m, see qkv_model_info. USAGE for a model without classes, another number, and a number
 * where there are several classes. */
QKV_API qkv_status qkv_model_set_problem(qkv_model *m, qkv_problem problem);

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

/* What "task_specific_params" says of summaries; what it does not say is 0, and as for any other text. */
typedef struct qkv_summary_params {
    char prefix[64]; /* what stands before a text that is to become one: "summarize: " */
    int beam, no_repeat;
    float length_penalty;
    int64_t max_length, min_length; /* tokens, the start counted */
} qkv_summary_params;

/* From config.json, which generation_config.json overrides, and the files of sentence-transformers. 0 (of ids -1): not said.
 * A config.json of ours has the length penalty and the number of sentences only. */
typedef struct qkv_model_info {
    const char *family;           /* "qkv": ours */
    int can;                      /* QKV_CAN_TRANSLATE and so on, added up */
    int files;                    /* that its weights came from; 0 for a model that was made here */
    int64_t bytes;                /* of these files */
    int64_t context;              /* tokens of a sequence, at most */
    int32_t start, begin, pad;    /* what a decoder starts with after an encoder; what a text begins with; padding */
    const int32_t *ends, *banned; /* ids that end a text, and ids that are never chosen */
    int n_ends, n_banned;
    int beam;
    float length_penalty;        /* alpha of a beam's scores: of a published model they are the sum of log-probabilities /
                                    length^alpha, and 0 stands for 1; of ours / ((5 + length) / 6)^alpha, and 0 for 0.6 */
    int64_t max_length, max_new; /* tokens of a text, and of what is added to a prompt */
    int sample;                  /* 1: chosen at random, else the most probable */
    int top_k, no_repeat;        /* no_repeat: a run of so many tokens does not come twice */
    float temperature, top_p, min_p, repetition_penalty;
    qkv_pooling pooling;  /* of embeddings; MEAN too where it is one that is not named here, or several side by side */
    int normalise;        /* embeddings have length 1 */
    int64_t embed_length; /* tokens that an embedding reads, at most */
    int bits;             /* 8 or 4: its matrices are kept so, see qkv_load_opts */
    int32_t forced_first; /* what every translation begins with after `start`, such as the code of its language; -1: any id */
    int64_t min_length;   /* tokens of a translation, its start counted; 0: any number */
    qkv_summary_params summary;
    int scores_logits;        /* 1: the score of a cross-encoder is its logit x, else 1 / (1 + e^-x) */
    qkv_problem problem;      /* of a classifier */
    char label_separator[16]; /* what stood between several labels of a text in training; "": not said */
    int64_t sentences;        /* of a line in training, 99th percentile; 0: not said, which means 1 in a model of ours */
    char source_language[16], target_language[16]; /* codes of a translator's languages, such as "en"; "": not known */
} qkv_model_info;

/* What is known of m; it lives as long as m and changes only with it. NULL for NULL. */
QKV_API const qkv_model_info *qkv_model_get_info(const qkv_model *m);

/* Gives a translator the length penalty that its translations have where no option says another, such as the one that
 * a search on validation text found. It is saved and loaded with m ("length_penalty" in config.json); what is made
 * of m by qkv_model_adapt() has it too, but not what is saved as another family, whose scores are by another formula. 0, and
 * the number that 0 stands for in qkv_model_info, take it away: config.json then says nothing. USAGE for a number outside
 * [0, 100), and for a model without encoder or decoder. */
QKV_API qkv_status qkv_model_set_length_penalty(qkv_model *m, float alpha);

/* ---- what a model is to learn ----
 * How the loss of a batch is computed. A task gives one; the trainer and qkv_evaluate() use it, and take translation where
 * there is none: the mean cross-entropy of the target tokens, the source and the tokens before them given. */
typedef struct qkv_loss qkv_loss;
struct qkv_loss {
    /* Makes a batch ready; may change its ids and labels, and sets b->tokens: how many things the mean loss is over. pass is
     * the number of the forward, from 0: all that is random depends on seed and pass. NULL: the batch stays as it is. */
    qkv_status (*prepare)(const qkv_loss *o, qkv_batch *b, uint64_t seed, uint64_t pass);
    /* The mean loss of the batch, shape (). */
    qkv_tensor *(*loss)(const qkv_loss *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing);
    const void *data; /* what its functions need */
    uint64_t name;    /* of the task and its data: a checkpoint of another is refused */
};

QKV_API qkv_params *qkv_model_params(const qkv_model *m);
QKV_API const qkv_transformer *qkv_model_transformer(const qkv_model *m);

/* ---- what stands around a model's texts ----
 * A model of ours reads <s> text </s>, looked up by these spellings. A published one reads what its tokenizer puts around text,
 * and its files say what starts, ends and pads a text; where they do not, the spellings <s> </s> <pad> <mask> and [CLS] [SEP]
 * [PAD] [MASK] do. */
typedef struct qkv_special_tokens {
    int32_t start;      /* what a decoder behind an encoder starts with; what other texts begin with. -1: nothing */
    int32_t end;        /* the last id of a text, and of a source; -1: nothing */
    int32_t pad;        /* where nothing is said, the end, or 0: padding is never seen */
    int32_t mask;       /* -1: none */
    int32_t first;      /* the first id that is no special token: texts have ids from here on, for qkv_masked_lm_opts */
    int32_t source_end; /* what the source of a translator ends with; of other models the end. -1: nothing */
    void *reserved[4];
} qkv_special_tokens;

/* For qkv_batch_opts and qkv_masking_opts. USAGE for a model without tokenizer, for an encoder without start or end, for a
 * decoder behind one without start or end, and for a translator of ours without padding, or with an end that is not the same
 * id in the tokenizers of source and target. */
QKV_API qkv_status qkv_model_special_tokens(const qkv_model *m, qkv_special_tokens *out);

typedef enum qkv_side { QKV_SIDE_SOURCE, QKV_SIDE_TARGET } qkv_side; /* what the encoder reads; what the decoder does */

/* The ids of a text as one side of m reads it, for qkv_transformer_encode() and qkv_transformer_decode(): of a translator the
 * source with its end and the target with its start, of a published model with what its tokenizer and its files put around a
 * text, special tokens in it included; of a decoder alone the prompt as qkv_generate() reads it, ready for qkv_session_read(); of
 * an encoder of ours as it is. Without a text (NULL) it gives the special tokens, if they have a start, of a decoder alone nothing.
 * raw: 1 adds nothing. Added tokens have empty spans. USAGE for NULL, a side that is none, a model
 * without tokenizer, and as above; and the errors of qkv_tokenizer_encode(). *out then holds no ids. */
QKV_API qkv_status qkv_model_tokenize(const qkv_model *m, qkv_side side, const char *text, size_t length, int raw,
                                      qkv_ids *out);

#ifdef __cplusplus
}
#endif
#endif
