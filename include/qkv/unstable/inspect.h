/* qkv/unstable/inspect.h: attention weights, model edits at run time, the logit lens, attribution, and a trace of one attention
 * head.
 *
 * Threads: any number of concurrent calls may share one model. Any number of threads may read a capture; only one may write
 * it. */
#ifndef QKV_UNSTABLE_INSPECT_H
#define QKV_UNSTABLE_INSPECT_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of attention: QKV_ATTENTION_ENCODER and so on, each with its name. */
#define QKV_ATTENTION_LIST(A)                                              \
    A(ENCODER, "encoder") /* self-attention over the source */             \
    A(DECODER, "decoder") /* causal self-attention over the tokens read */ \
    A(CROSS, "cross")     /* from the predicted tokens to the source */

#define QKV_ATTENTION_ENUM(constant, name) QKV_ATTENTION_##constant,
typedef enum qkv_attention_kind { QKV_ATTENTION_LIST(QKV_ATTENTION_ENUM) QKV_ATTENTION_KINDS } qkv_attention_kind;
#undef QKV_ATTENTION_ENUM

/* The edits of a model: QKV_EDIT_ABLATE_HEAD and so on, each with its name. */
#define QKV_EDIT_LIST(T)                                                                                                      \
    T(ABLATE_HEAD, "without-head")   /* kind, layer, head: the head outputs zeros before W_O; its weights remain visible */   \
    T(ABLATE_LAYER, "without-layer") /* kind (ENCODER or DECODER stack), layer: hidden states skip the layer */               \
    T(HIDE_KEY, "hide-key")          /* kind, place: this key is masked for every query of every layer */                     \
    T(SET_POSITION, "move")       /* kind (ENCODER or DECODER), place, other: the token gets the position of place `other` */ \
    T(ROW, "edit-row")            /* kind, layer, head, place of the query, row, n_row: replaces its weights by row */        \
    T(SWAP_VALUES, "swap-values") /* kind, layer (-1: all), place, other: swaps the values of the two keys */                 \
    T(ZERO_VALUE, "zero-value")   /* kind, layer (-1: all), place: the value of this key is zero */

#define QKV_EDIT_ENUM(constant, name) QKV_EDIT_##constant,
typedef enum qkv_edit_kind { QKV_EDIT_LIST(QKV_EDIT_ENUM) QKV_EDIT_KINDS } qkv_edit_kind;
#undef QKV_EDIT_ENUM

/* One edit. Members that an edit does not name are ignored. Layers, heads and places count from 0. A place is the index of a
 * token in its text, the same for every row of a batch. A place past the end of a text has no effect on it. */
typedef struct qkv_edit {
    qkv_edit_kind what;
    qkv_attention_kind kind;
    int layer, head;
    int64_t place, other;
    const float *row; /* (n_row): weights of the first keys; the other keys get 0. Finite and not negative. They need not sum
                         to 1 and are not normalized. For DECODER at most place + 1 weights, because of the causal mask. */
    int64_t n_row;
} qkv_edit;

/* Returns m with n edits (see qkv_edit), for any call that takes a model: qkv_attend(), qkv_translate() with any beam size,
 * qkv_generate(), qkv_classify(), qkv_embed(), sessions, and the functions of <qkv/unstable/inspect.h>. You own it: free it
 * with qkv_model_free(). It shares the weights and tokenizers of m; m must outlive it and must not be modified. If n is 0,
 * results have the bits of m. Editing an edited model applies both sets of edits.
 * A query whose keys are all hidden gets zeros from that attention. In the decoder, swapped values apply to the queries that
 * see both keys. Masks and windows use places, not moved positions.
 * NULL on error: USAGE for NULL, a layer, head or kind that does not exist, a negative place, or an invalid row (see
 * qkv_edit); LIMIT for a position that the model does not have, or above 65535; UNSUPPORTED for SET_POSITION in a model whose
 * positions are a bias by distance; MEMORY. */
QKV_API qkv_model *qkv_model_edit(const qkv_model *m, const qkv_edit *touches, int64_t n);

/* ---- intermediate tensors of a tape or a session ---- */

/* The inputs of one multi-head attention, and its tensors before W_O. */
typedef struct qkv_projections {
    qkv_tensor *x, *y;     /* inputs: x (B,Tq,dim) for queries, y (B,Tk,kv_dim) for keys and values */
    qkv_tensor *q, *k, *v; /* x W_Q, y W_K, y W_V with biases, heads concatenated; after rotation for rotary positions */
    qkv_tensor *heads;     /* head outputs, concatenated: (B,Tq,heads*Dv) */
} qkv_projections;

/* Gets the projections of the i-th multi-head attention since the last reset, in the order of qkv_tape_attention(). An encoder
 * has one per layer. The decoder of an encoder-decoder model has two: self-attention, then cross-attention. USAGE for NULL, a
 * tape that keeps no projections, and i out of range. */
QKV_API qkv_status qkv_tape_projections(const qkv_tape *t, int i, qkv_projections *out);

/* ---- session internals ---- */
/* The attention weights of the last read, with keep_attention: (1, heads, new tokens, keys), valid as long as the logits. row
 * counts the rows that had new tokens. For QKV_ATTENTION_ENCODER the weights of the last encode, (rows, heads, length,
 * length), for row 0; valid as long as the encoder output. NULL otherwise, and for a layer or row that does not exist. */
QKV_API qkv_tensor *qkv_session_attention(const qkv_session *s, qkv_attention_kind kind, int layer, int64_t row);

/* The hidden states of the last read, with keep_hidden: (tokens, 1, dim). For i from 0, the input of layer i. For i = layers,
 * the output of the last layer after the final norm, if the model has one. NULL otherwise. Valid as long as the logits. */
QKV_API qkv_tensor *qkv_session_hidden(const qkv_session *s, int i);

/* ---- attention of a text ---- */

/* Tokens with their text. A unit is one token, or several tokens that only together form whole characters. */
typedef struct qkv_axis {
    int64_t n;                 /* units */
    const char *const *names;  /* (n): input text of each unit, NUL-terminated UTF-8 with white space; for special tokens their
                                  spelling. An unknown word is shown unchanged, a NUL as U+2400. Generated bytes that form no
                                  character are shown as U+FFFD. */
    const uint8_t *is_special; /* (n): 1 for a special token */
    const int64_t *first;      /* (n + 1): unit i has ids first[i] .. first[i + 1] - 1 */
    const int32_t *ids;        /* (first[n]): ids of the units */
    int64_t n_tokens;          /* length of the whole sequence, with tokens that have no unit (no_special) */
    const int64_t *begin;      /* (n): index of the first token of a unit in that sequence */
} qkv_axis;

typedef struct qkv_attend_opts {
    size_t size;
    int beam_size; /* for the search of a target; this and the next as in qkv_translate_opts */
    float length_penalty;
    qkv_str target;            /* target text; NULL data: none is given */
    const int32_t *target_ids; /* (n_target_ids): target as ids without start and end, instead of text. NULL: none */
    int64_t n_target_ids;
    int split_characters; /* 1: never join tokens; bytes that form no character are named like \xE6 */
    int no_special;       /* 1: omit special tokens; the other weights are not renormalized */
    size_t max_bytes;     /* limit for all weights; 0 means 2 GiB; LIMIT above it */
} qkv_attend_opts;

/* Captured attention. A result. */
typedef struct qkv_attention_capture {
    qkv_axis source;                 /* encoder input */
    qkv_axis target;                 /* decoder input: <s> and the target */
    qkv_axis predicted;              /* decoder output, shifted by one: the target and </s>; the rows of cross-attention */
    int layers[QKV_ATTENTION_KINDS]; /* number of layers by kind; 0: the model has no such attention */
    int heads;
    const int64_t *windows;       /* window size of self-attention by layer, for the stack with more layers; 0: unlimited */
    const qkv_translation *found; /* translation found by the search, without its attention; NULL: no search */
} qkv_attention_capture;

/* Runs the model over a text and keeps the weights of every head. Invalid UTF-8 is read as U+FFFD.
 *   encoder and decoder: source is translated. The target is the best translation, with the ids found by the search (the same
 *     bits as without attention). A target in the options replaces the search.
 *   encoder alone: source is read as in classification; no target
 *   decoder alone: source, then the optional target, are read as one text; no cross-attention
 * USAGE for NULL, a source whose data is NULL, options that do not fit, a model without tokenizer, an empty text (for a
 * translator also white space alone), and a target for an encoder alone; LIMIT for more tokens than the model has positions
 * for, or more than max_bytes; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_attend(const qkv_model *m, qkv_str source, const qkv_attend_opts *opts, qkv_attention_capture **out);

/* The axes of a kind: rows are queries, columns are keys. NULL if the model has no such attention. */
QKV_API const qkv_axis *qkv_attention_rows(const qkv_attention_capture *a, qkv_attention_kind kind);
QKV_API const qkv_axis *qkv_attention_columns(const qkv_attention_capture *a, qkv_attention_kind kind);

/* Writes the weights of one head to (rows, columns) floats. layer and head count from 0; -1 is the mean over all. The tokens
 * of a unit are joined: columns are summed, rows are averaged. USAGE for a kind, layer or head that does not exist (the
 * message lists the valid ones); MEMORY. */
QKV_API qkv_status qkv_attention_weights(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                                         float *weights);

/* Computes attention rollout (Abnar and Zuidema 2020) to (rows, columns) floats: the product over the layers, first layer
 * rightmost, of (A + I) / 2. A is the mean over the heads, with rows normalized to sum 1. It is computed over tokens, with
 * special tokens, and joined as in qkv_attention_weights(). USAGE for cross-attention, which has no I; MEMORY. */
QKV_API qkv_status qkv_attention_rollout(const qkv_attention_capture *a, qkv_attention_kind kind, float *weights);

/* Measures of one head. Each is a mean over the rows of all tokens (not units), with special tokens. USAGE as in
 * qkv_attention_weights(), and for a layer or head of -1: the measures are not defined for a mean. */
typedef struct qkv_head_measures {
    double entropy;              /* -sum w log w, in nats */
    double diagonality;          /* 1 - sum w |i/(rows-1) - j/(columns-1)|: 1 on the diagonal */
    double first;                /* weight on the first column */
    double previous, same, next; /* weight on the column before, at and after the row's place; rows without one are skipped */
} qkv_head_measures;
QKV_API qkv_status qkv_attention_stats(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                                       qkv_head_measures *out);

/* ---- names of ids, for custom maps ---- */

/* Splits ids into named units; ids that only together form a character are one unit. A name is the decoded bytes, with U+0001
 * for a NUL. An id unknown to the tokenizer is named by a space. USAGE for NULL and a negative n; MEMORY. */
QKV_API qkv_status qkv_token_names(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_axis **out);

/* ---- ranking of heads ---- */
/* Measures for ranking heads: QKV_HEAD_MEASURE_ENTROPY and so on, each with the member of qkv_head_measures. */
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

/* ---- attention maps: weights of selected heads, with titles ---- */
enum { QKV_ATTENTION_MEAN = -1, QKV_ATTENTION_EACH = -2 }; /* in place of a layer or head number */

/* ---- the logit lens ---- */

/* The logit lens (nostalgebraist 2020): the hidden states between layers, each passed through the final norm, if the model has
 * one, and the output layer, as distributions over the vocabulary. A result. */
typedef struct qkv_logit_lens_result {
    int layers;             /* layers + 1 states: the input of the first layer and the output of each */
    int64_t places;         /* tokens read by the decoder, or by an encoder alone */
    int k;                  /* likeliest tokens per state and place */
    const int32_t *ids;     /* (layers + 1, places, k), best first */
    const double *p;        /* their probabilities, same shape */
    const int32_t *next;    /* (places): the next token in the text, to be predicted; for an encoder alone the token itself; -1
                               if there is no next token */
    const double *next_p;   /* (layers + 1, places): probability of next; 0 if none */
    const double *surprise; /* (places): -log2 of next_p at the last layer, in bits; 0 if none */
} qkv_logit_lens_result;

typedef struct qkv_logit_lens_opts {
    size_t size;
    int k; /* default: 5 */
} qkv_logit_lens_opts;

/* Runs m over the tokens of a capture: the decoder of a translator or of a language model, or an encoder that fills masks.
 * USAGE for NULL, k outside 1..vocabulary, a capture with other tokens than those of m; UNSUPPORTED for a model without an
 * output layer; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_logit_lens(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_opts *opts,
                                  qkv_logit_lens_result **out);

/* ---- attribution ---- */

/* Attribution methods: QKV_ATTRIBUTE_GRADIENT and so on, each with its name.
 *   f is the logit of the output, e_i the embedding of token i (scaled, without position), b_i its baseline.
 *   GRADIENT      gradient x input: e_i . df/de_i
 *   INTEGRATED    integrated gradients (Sundararajan et al. 2017): (e_i - b_i) . integral over a in [0, 1] of df/de_i at
 *                 b + a (e - b). Quadrature with `steps` points, half of them close to b. The sum is approximately f(e) - f(b).
 *   VALUE_ZEROING (Mohebbi et al. 2023): C_l[i][j] is the cosine distance between the outputs of layer l for token i with and
 *                 without the value of token j, rows normalized to sum 1. The result is the product of the layers, first layer
 *                 rightmost.
 *   ROLLOUT       (Abnar and Zuidema 2020): the product of (A + I) / 2 over the layers, A the mean over the heads
 * VALUE_ZEROING and ROLLOUT give shares that sum to 1. They depend on the place of the output, not on the chosen class or
 * token. For a classifier that pools all places they are the mean over the places.
 * The decoder layers of an encoder-decoder model have keys of both sides. VALUE_ZEROING has rows over the tokens read and the
 * source tokens, which together sum to 1. ROLLOUT is half (A + I) / 2 of the tokens read and half the cross-attention to the
 * source. Both continue through the encoder layers. */
#define QKV_ATTRIBUTE_LIST(W)         \
    W(GRADIENT, "gradient")           \
    W(INTEGRATED, "integrated")       \
    W(VALUE_ZEROING, "value-zeroing") \
    W(ROLLOUT, "rollout")

#define QKV_ATTRIBUTE_ENUM(constant, name) QKV_ATTRIBUTE_##constant,
typedef enum qkv_attribute_method { QKV_ATTRIBUTE_LIST(QKV_ATTRIBUTE_ENUM) QKV_ATTRIBUTE_METHODS } qkv_attribute_method;
#undef QKV_ATTRIBUTE_ENUM

typedef struct qkv_attribute_opts {
    size_t size;
    unsigned methods; /* 1 << QKV_ATTRIBUTE_GRADIENT | ..; 0: all */
    int64_t at;       /* for a decoder: the place of the output; tokens 0 .. at have been read */
    int has_output;   /* 1: explain `output`, a class or a token. 0: the likeliest class; for a decoder the next token in the
                         text, or the likeliest token if there is none */
    int64_t output;
    int steps;        /* for INTEGRATED, rounded up to a multiple of 8; default: 256 */
    int pad_baseline; /* 1: b_i is the embedding of the padding token; 0: zeros */
} qkv_attribute_opts;

/* A result. */
typedef struct qkv_attribution {
    int64_t output;               /* the explained class or token id */
    double logit, baseline_logit; /* f(e); f(b), 0 without INTEGRATED; both include the n-gram terms (ngrams) */
    int64_t n_source, n_target;   /* attributed tokens: of the encoder, and of the decoder up to `at` */
    const double *of_source[QKV_ATTRIBUTE_METHODS],
        *of_target[QKV_ATTRIBUTE_METHODS]; /* (n_source), (n_target); NULL: not requested, or none */
} qkv_attribution;

/* Attributes an output of m to the tokens of a capture. The output is a class of an encoder with a classifier, or the next
 * token of a decoder. VALUE_ZEROING runs every layer once per token. USAGE for NULL, options that do not fit, a capture with
 * other tokens than those of m; UNSUPPORTED for a model with neither a text classifier nor a decoder; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_attribute(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribute_opts *opts,
                                 qkv_attribution **out);

/* ---- trace of one query of one head ---- */

typedef struct qkv_trace_opts {
    size_t size;
    qkv_attention_kind kind;
    int layer, head; /* from 0 */
    int64_t query;   /* place of the query token */
    int k;           /* likeliest tokens to report; default: 5 */
} qkv_trace_opts;

/* All values from the input of one query of one head to the output of its layer, and the model's prediction at that place, in
 * order of computation. A result. */
typedef struct qkv_trace_result {
    int64_t keys, dim, d_k, d_v, heads, d_ff; /* keys: all, with masked ones */
    const float *in;                          /* (dim): input of the sub-layer and of its residual connection */
    const float *x;                           /* (dim): input of attention: `in`, with pre_norm after the norm */
    const float *q;                           /* (d_k) of the head: x W_Q + b, after its norm and rotation, if any */
    const float *k, *v;                       /* (keys, d_k), (keys, d_v) of the head */
    const float *scores;                      /* (keys): q . k_j */
    float scale;
    const float *scaled;     /* (keys): scores * scale + bias, capped; -inf for masked keys */
    const uint8_t *masked;   /* (keys): 1 if the key is masked for the query */
    const float *weights;    /* (keys): softmax(scaled), or the row of an edit */
    const float *head;       /* (d_v): sum of weights_j v_j; zeros if the head is ablated */
    const float *concat;     /* (heads * d_v): all heads concatenated */
    const float *out;        /* (dim): concat W_O + b */
    const float *sum;        /* (dim): in + out (with a post norm: in + the norm of out) */
    const float *norm;       /* (dim): after the norm; with pre_norm equal to sum */
    const float *ffn_in;     /* (dim): input of the feed-forward sub-layer and its residual, after all attention of the layer */
    const float *ffn_x;      /* (dim): input of the feed-forward network: ffn_in, with pre_norm after the norm */
    const float *ffn_hidden; /* (d_ff): after the activation; for a gated one the product */
    const float *ffn_out;    /* (dim) */
    const float *ffn_sum;    /* (dim): ffn_in + ffn_out */
    const float *layer_out;  /* (dim): after the norm; with pre_norm equal to ffn_sum; input of the next layer */
    int n_best;              /* predictions of the whole model at this place: tokens or classes; 0 if it has none */
    const int32_t *best;     /* (n_best), likeliest first */
    const double *best_p;
    const float *best_logits;
} qkv_trace_result;

/* Traces one query of one head. USAGE for NULL, a kind, layer, head or query that does not exist, a capture with other tokens
 * than those of m; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_trace(const qkv_model *m, const qkv_attention_capture *a, const qkv_trace_opts *opts,
                             qkv_trace_result **out);

#ifdef __cplusplus
}
#endif
#endif
