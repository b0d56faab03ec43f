/* qkv/unstable/inspect.h: attention weights, edits of a model while it runs, the logit lens, attribution, and a trace of one cell
 * of attention.
 *
 * Threads: any number of calls at a time on one model; a capture is read by any number of threads, and written by one. */
#ifndef QKV_UNSTABLE_INSPECT_H
#define QKV_UNSTABLE_INSPECT_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who attends to what: QKV_ATTENTION_ENCODER, and so on, each with its name. */
#define QKV_ATTENTION_LIST(A)                                                                    \
    A(ENCODER, "encoder") /* source to source */                                                 \
    A(DECODER, "decoder") /* what the decoder has read to itself; nothing to what comes later */ \
    A(CROSS, "cross")     /* what the decoder chooses to the source */

#define QKV_ATTENTION_ENUM(constant, name) QKV_ATTENTION_##constant,
typedef enum qkv_attention_kind { QKV_ATTENTION_LIST(QKV_ATTENTION_ENUM) QKV_ATTENTION_KINDS } qkv_attention_kind;
#undef QKV_ATTENTION_ENUM

/* What is done to a model: QKV_EDIT_ABLATE_HEAD, and so on, each with its name. */
#define QKV_EDIT_LIST(T)                                                                                                     \
    T(ABLATE_HEAD, "without-head")   /* kind, layer, head: the head's output is zeros before W_O; its weights stay seen */   \
    T(ABLATE_LAYER, "without-layer") /* kind (ENCODER or DECODER: which stack), layer: states pass it as they are */         \
    T(HIDE_KEY, "hide-key")          /* kind, place: no query of any layer sees this key */                                  \
    T(SET_POSITION, "move")       /* kind (ENCODER or DECODER), place, other: the token has the position of place `other` */ \
    T(ROW, "edit-row")            /* kind, layer, head, place of the query, row, n_row: its weights are these */             \
    T(SWAP_VALUES, "swap-values") /* kind, layer (-1: every), place, other: the values of the two keys change places */      \
    T(ZERO_VALUE, "zero-value")   /* kind, layer (-1: every), place: the value of this key is zeros */

#define QKV_EDIT_ENUM(constant, name) QKV_EDIT_##constant,
typedef enum qkv_edit_kind { QKV_EDIT_LIST(QKV_EDIT_ENUM) QKV_EDIT_KINDS } qkv_edit_kind;
#undef QKV_EDIT_ENUM

/* One change; members that a change does not name are not read. Layers, heads and places count from 0; a place is that of a
 * token in its own text, the same in every row of a batch; one that a text does not have changes nothing there. */
typedef struct qkv_edit {
    qkv_edit_kind what;
    qkv_attention_kind kind;
    int layer, head;
    int64_t place, other;
    const float *row; /* n_row weights, of the first keys; the others have 0. Finite and not negative; they need not sum to 1:
                         what they are multiplied with is added up as they are. Of DECODER at most place + 1 of them: a query
                         sees nothing to its right */
    int64_t n_row;
} qkv_edit;

/* m with n changes (see qkv_edit), for any call that takes a model: qkv_attend(), qkv_translate() with any beam,
 * qkv_generate(), qkv_classify(), qkv_embed(), sessions, and what <qkv/unstable/inspect.h> has. It shares m's weights and tokenizers,
 * so that m must outlive it and must not be changed; with n of 0 it gives the bits of m. A query that sees no key, because all are
 * hidden, gets zeros from that attention. In the decoder, values change places for the queries that see both. Masks and windows
 * go by places, not by positions that were moved. NULL on error: USAGE for NULL, a layer, head or kind that is not there, a
 * negative place, a row that is not as qkv_edit has it; LIMIT for a position that the model does not have, or above 65535;
 * UNSUPPORTED for MOVE in a model whose positions are a bias by distance; MEMORY. You own it: qkv_model_free(). Touching a
 * touched model gives both changes. */
QKV_API qkv_model *qkv_model_edit(const qkv_model *m, const qkv_edit *touches, int64_t n);

/* ---- what a tape and a session keep ---- */

/* What one multi-head attention reads and computes before W_O. */
typedef struct qkv_projections {
    qkv_tensor *x, *y; /* what it reads: queries are made of x (B,Tq,dim), keys and values of y (B,Tk,kv_dim) */
    qkv_tensor *q, *k,
        *v;            /* x W_Q, y W_K, y W_V with their biases, the heads side by side; turned where positions are rotary */
    qkv_tensor *heads; /* what the heads give, side by side: (B,Tq,heads*Dv) */
} qkv_projections;

/* Those of the i-th multi-head attention since the last reset, in the order of qkv_tape_attention(): of an encoder one a layer;
 * of a decoder behind it two, to itself and to the source. USAGE for NULL, a tape that keeps none, and after the last. */
QKV_API qkv_status qkv_tape_projections(const qkv_tape *t, int i, qkv_projections *out);

/* ---- looking inside ---- */
/* With keep_attention the weights of the last read, (1, heads, new tokens, keys), which live as the logits do; rows count those
 * that had new tokens. Of QKV_ATTENTION_ENCODER those of the last encode, (rows, heads, length, length), for row 0, which live
 * as what it gave. NULL otherwise, and where there is no such layer or row. */
QKV_API qkv_tensor *qkv_session_attention(const qkv_session *s, qkv_attention_kind kind, int layer, int64_t row);

/* The states of the tokens of the last read, (tokens, 1, dim), with keep_hidden: what goes into layer i, from 0; of i = layers
 * what comes out of the last, after the norm at the end where there is one. NULL otherwise. Lives as the logits do. */
QKV_API qkv_tensor *qkv_session_hidden(const qkv_session *s, int i);

/* ---- attention of a text ---- */

/* Tokens with their text. A unit is a token, or several that only together make whole characters. */
typedef struct qkv_axis {
    int64_t n;                 /* units */
    const char *const *names;  /* (n): the text of each as it was given, UTF-8 with a NUL, white space included; of special
                                  tokens their spelling. A word of the text that is not known is shown as it is, a NUL as
                                  U+2400; what a model chose and makes no character as U+FFFD */
    const uint8_t *is_special; /* (n): 1 for a special token */
    const int64_t *first;      /* (n + 1): unit i is ids first[i] .. first[i + 1] - 1 */
    const int32_t *ids;        /* (first[n]): those of the units */
    int64_t n_tokens;          /* of the whole sequence, with tokens that have no unit (no_special) */
    const int64_t *begin;      /* (n): the place of a unit's first token in that sequence */
} qkv_axis;

typedef struct qkv_attend_opts {
    size_t size;
    int beam_size; /* of the search for a target, as in qkv_translate_opts; and so is the next */
    float length_penalty;
    qkv_str target;            /* the target; data NULL: none is given */
    const int32_t *target_ids; /* the target as ids, without start and end, instead of text; n_target_ids of them. NULL: none */
    int64_t n_target_ids;
    int split_characters; /* 1: tokens are never joined; bytes that are no character are named like \xE6 */
    int no_special;       /* 1: special tokens are left out; the weights of the others stay as they are */
    size_t max_bytes;     /* of all weights together; 0 means 2 GiB; LIMIT above that */
} qkv_attend_opts;

/* What was attended to; a result. */
typedef struct qkv_attention_capture {
    qkv_axis source;                 /* what the encoder reads */
    qkv_axis target;                 /* what the decoder reads: <s> and the target */
    qkv_axis predicted;              /* what it chooses, one place on: the target and </s>; rows of cross-attention */
    int layers[QKV_ATTENTION_KINDS]; /* 0: the model has no such attention */
    int heads;
    const int64_t *windows;       /* of self-attention by layer, of the stack with more layers: how far a query sees; 0: all */
    const qkv_translation *found; /* the translation that was searched for, without its attention; NULL: none was */
} qkv_attention_capture;

/* Runs the model over a text and keeps the weights of every head. What is not UTF-8 is read as U+FFFD.
 *   encoder and decoder: source is translated, and the best translation is the target, with the ids the search found (the same
 *     bits as without attention); unless the options give a target
 *   encoder alone: source is read as classification reads it; there is no target
 *   decoder alone: source and, where there is one, target after it are read as one text; there is no cross-attention
 * USAGE for NULL, a source whose data is NULL, options that do not fit, a model without tokenizer, an empty text (white space
 * alone is one for a translator), a target for an encoder alone; LIMIT for more tokens than the model has positions for, or
 * max_bytes; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_attend(const qkv_model *m, qkv_str source, const qkv_attend_opts *opts, qkv_attention_capture **out);

/* The axes of a kind: rows attend (queries), columns are attended to (keys). NULL where the model has no such attention. */
QKV_API const qkv_axis *qkv_attention_rows(const qkv_attention_capture *a, qkv_attention_kind kind);
QKV_API const qkv_axis *qkv_attention_columns(const qkv_attention_capture *a, qkv_attention_kind kind);

/* The weights of one head to (rows, columns) floats. layer, head: from 0; -1: the mean over all. The tokens of a unit are
 * joined: their columns added, their rows averaged. USAGE for a kind, layer or head that is not there (the sentence says which
 * are); MEMORY. */
QKV_API qkv_status qkv_attention_weights(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                                         float *weights);

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
} qkv_head_measures;
QKV_API qkv_status qkv_attention_stats(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head,
                                       qkv_head_measures *out);

/* ---- ids as names, for maps of one's own ---- */

/* The text that ids stand for, as units: ids that only together make a character are one. Names are the bytes that the ids
 * decode to, a NUL as U+0001; of an id that the tokenizer does not have a space. USAGE for NULL and a negative n; MEMORY. */
QKV_API qkv_status qkv_token_names(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_axis **out);

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

/* ---- the logit lens ---- */

/* The distribution over the vocabulary that the states between the layers give, each through the norm at the end, where there
 * is one, and the output layer (nostalgebraist 2020). A result. */
typedef struct qkv_logit_lens_result {
    int layers;             /* of states there are layers + 1: what goes into the first layer, and what comes out of each */
    int64_t places;         /* tokens that the decoder reads, or an encoder alone */
    int k;                  /* likeliest tokens of each */
    const int32_t *ids;     /* (layers + 1, places, k), best first */
    const double *p;        /* their probabilities */
    const int32_t *next;    /* (places): what comes next in the text, which the model is to say; of an encoder alone the token
                               itself; -1 where nothing comes */
    const double *next_p;   /* (layers + 1, places): the probability of that; 0 where nothing comes */
    const double *surprise; /* (places): -log2 of the last layer's next_p, in bits; 0 where nothing comes */
} qkv_logit_lens_result;

typedef struct qkv_logit_lens_opts {
    size_t size;
    int k; /* 5 */
} qkv_logit_lens_opts;

/* Runs m over the tokens of a capture: the decoder of a translator or of a language model, or an encoder that fills words in.
 * USAGE for NULL, k outside 1..vocabulary, a capture of other tokens than m has; UNSUPPORTED for a model without an output
 * layer; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_logit_lens(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_opts *opts,
                                  qkv_logit_lens_result **out);

/* ---- why ---- */

/* How an output is put down to tokens: QKV_ATTRIBUTE_GRADIENT, and so on, each with its name.
 *   f is the logit of the output, e_i the embedding of token i (with its scale, without its position).
 *   GRADIENT      gradient x input: e_i . df/de_i
 *   INTEGRATED    integrated gradients (Sundararajan et al. 2017): (e_i - b_i) . the integral over a from 0 to 1 of df/de_i at
 *                 b + a (e - b), by `steps` points, half of them close to b; all add up to f(e) - f(b), nearly
 *   VALUE_ZEROING (Mohebbi et al. 2023): C_l[i][j] is the cosine distance of what layer l makes of token i with and without the
 *                 value of token j, rows made to sum to 1; the layers multiplied, first rightmost
 *   ROLLOUT       (Abnar and Zuidema 2020): the layers' (A + I) / 2 multiplied, A the mean over the heads
 * The last two are shares of 1 and know nothing of which output it is, only of its place. They are those of the place that
 * gives the output; of a classifier that pools all places their mean. In a decoder behind an encoder a layer has keys on both
 * sides: VALUE_ZEROING has rows over the tokens read and those of the source, which together sum to 1; ROLLOUT is half
 * (A + I) / 2 of the tokens read and half what cross-attention sees of the source. Both go on through the encoder's layers. */
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
    int64_t at;       /* of a decoder: the output after so many tokens and the one at this place are read */
    int has_output;   /* 1: `output` is explained, a class or a token; else the likeliest class, and of a decoder the token that
                         comes next in the text, the likeliest where none does */
    int64_t output;
    int steps;        /* of INTEGRATED, in eights; 256 */
    int pad_baseline; /* 1: b_i is the embedding of the padding token; else zeros */
} qkv_attribute_opts;

/* A result. */
typedef struct qkv_attribution {
    int64_t output;               /* what was explained: a class, or a token's id */
    double logit, baseline_logit; /* f(e); f(b), 0 without INTEGRATED; both with what counts of words add (ngrams) */
    int64_t n_source, n_target;   /* tokens that numbers are given for: of the encoder, and of the decoder up to `at` */
    const double *of_source[QKV_ATTRIBUTE_METHODS],
        *of_target[QKV_ATTRIBUTE_METHODS]; /* (n_source), (n_target); NULL: not asked for, or none */
} qkv_attribution;

/* What the tokens of a capture have done for an output of m: a class of an encoder with a classifier, the next token of a
 * decoder. Value zeroing runs every layer once for each token. USAGE for NULL, options that do not fit, a capture of
 * other tokens than m has; UNSUPPORTED for a model without a classifier of texts and a decoder; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_attribute(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribute_opts *opts,
                                 qkv_attribution **out);

/* ---- the walk ---- */

typedef struct qkv_trace_opts {
    size_t size;
    qkv_attention_kind kind;
    int layer, head; /* from 0 */
    int64_t query;   /* place of the token that attends */
    int k;           /* of the likeliest tokens at the end; 5 */
} qkv_trace_opts;

/* Every number from what one query of one head reads to what its layer gives, and what the model says there, in their order.
 * A result. */
typedef struct qkv_trace_result {
    int64_t keys, dim, d_k, d_v, heads, d_ff; /* keys: all there are, masked ones too */
    const float *in;                          /* (dim): what comes into the sub-layer, and goes around it */
    const float *x;                           /* (dim): what attention reads: `in`, with pre_norm after the norm */
    const float *q;                           /* (d_k) of the head: x W_Q + b, with its norm and turned where it is so */
    const float *k, *v;                       /* (keys, d_k), (keys, d_v) that the head reads */
    const float *scores;                      /* (keys): q . k_j */
    float scale;
    const float *scaled;     /* (keys): scores * scale + bias, capped; of masked keys -inf */
    const uint8_t *masked;   /* (keys): 1 where the query does not see the key */
    const float *weights;    /* (keys): softmax of them, or the row that a touch gave */
    const float *head;       /* (d_v): sum of weights_j v_j; zeros where the head is off */
    const float *concat;     /* (heads * d_v): all heads side by side */
    const float *out;        /* (dim): concat W_O + b */
    const float *sum;        /* (dim): in + out (with a post norm, of out after it) */
    const float *norm;       /* (dim): after the norm; with pre_norm the same as sum */
    const float *ffn_in;     /* (dim): what goes into and around the feed-forward, after all attention of the layer */
    const float *ffn_x;      /* (dim): what it reads: ffn_in, with pre_norm after the norm */
    const float *ffn_hidden; /* (d_ff): after the activation, of a gated one the product */
    const float *ffn_out;    /* (dim) */
    const float *ffn_sum;    /* (dim): ffn_in + ffn_out */
    const float *layer_out;  /* (dim): after the norm; with pre_norm the same; what the next layer reads */
    int n_best;              /* of the whole model at this place: tokens, or classes; 0 where it says nothing there */
    const int32_t *best;     /* (n_best), likeliest first */
    const double *best_p;
    const float *best_logits;
} qkv_trace_result;

/* Walks through the cell. USAGE for NULL, a kind, layer, head or query that is not there, a capture of other tokens than m has;
 * NUMERIC; MEMORY. */
QKV_API qkv_status qkv_trace(const qkv_model *m, const qkv_attention_capture *a, const qkv_trace_opts *opts,
                             qkv_trace_result **out);

#ifdef __cplusplus
}
#endif
#endif
