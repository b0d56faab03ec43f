/* qkv/touch.h: a model taken apart while it runs. Parts of it are switched off or changed (qkv_model_edit()), and what then
 * comes out is beside what came out before; what each layer would say already (qkv_logit_lens()); which tokens an output is due to
 * (qkv_attribute()); and every number on the way to one cell of attention and past it (qkv_trace()).
 *
 * All of them stand on qkv_attend(), which reads the texts and, for a translator, searches the translation: its capture has the
 * tokens, and lens, why and walk take it. A capture made with `pieces` and without `no_special` has a name for every token, in
 * the order in which they are counted here: as the model reads them, from 0, special ones included.
 *
 * Threads: any number of calls at a time on one model, touched or not; a result is written by one. */
#ifndef QKV_TOUCH_H
#define QKV_TOUCH_H

#include <qkv/attend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- touching ---- */

/* <qkv/nn.h> has the changes, qkv_edit, and <qkv/model.h> qkv_model_edit(), which gives a model with some of them, for any
 * call that takes a model. */

/* ---- the logit lens ---- */

/* The distribution over the vocabulary that the states between the layers give, each through the norm at the end, where there
 * is one, and the output layer (nostalgebraist 2020). Starts as zero; used again and again. All it points to is its own. */
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
    struct qkv_lens_work *work;
    void *reserved[4];
} qkv_logit_lens_result;

typedef struct qkv_logit_lens_opts {
    size_t size;
    int k; /* 5 */
} qkv_logit_lens_opts;

/* Runs m over the tokens of a capture: the decoder of a translator or of a language model, or an encoder that fills words in.
 * USAGE for NULL, k outside 1..vocabulary, a capture of other tokens than m has; UNSUPPORTED for a model without an output
 * layer; NUMERIC; MEMORY. *out then holds nothing. */
QKV_API qkv_status qkv_logit_lens(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_opts *opts,
                                  qkv_logit_lens_result *out);
QKV_API void qkv_logit_lens_free(qkv_logit_lens_result *lens);

/* As text in *out, which is yours: a table, a row for each token and a column for each layer with the likeliest token and its
 * probability, and the surprise; or with json an object with "tokens", "next", "surprise" and "layers", each an array over the
 * places of {"next_p", "best": [{"id", "token", "p"}, ..]}. USAGE for NULL, and for a capture of other tokens; MEMORY. */
QKV_API qkv_status qkv_logit_lens_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_logit_lens_result *lens,
                                       int json, qkv_buffer *out);

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

/* "gradient" and so on; static text. NULL for another number. */
QKV_API const char *qkv_attribute_method_name(qkv_attribute_method method);

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

/* Starts as zero; used again and again. All it points to is its own. */
typedef struct qkv_attribution {
    int64_t output;               /* what was explained: a class, or a token's id */
    double logit, baseline_logit; /* f(e); f(b), 0 without INTEGRATED; both with what counts of words add (ngrams) */
    int64_t source, read;         /* tokens that numbers are given for: of the encoder, and of the decoder up to `at` */
    const double *of_source[QKV_ATTRIBUTE_METHODS],
        *of_read[QKV_ATTRIBUTE_METHODS]; /* (source), (read); NULL: not asked for, or none */
    struct qkv_why_work *work;
    void *reserved[4];
} qkv_attribution;

/* What the tokens of a capture have done for an output of m: a class of an encoder with a classifier, the next token of a
 * decoder. Value zeroing runs every layer once for each token. USAGE for NULL, options that do not fit, a capture of
 * other tokens than m has; UNSUPPORTED for a model without a classifier of texts and a decoder; NUMERIC; MEMORY. *out then holds
 * nothing. */
QKV_API qkv_status qkv_attribute(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribute_opts *opts,
                                 qkv_attribution *out);
QKV_API void qkv_attribution_free(qkv_attribution *why);

/* As text in *out, which is yours: a table, a row for each token and a column for each method; or with json an object with
 * "output", "name", "logit", with INTEGRATED "baseline_logit", "source" and "read", each an array of {"token", and a number for
 * each method}. USAGE for NULL, and for a capture of other tokens; MEMORY. */
QKV_API qkv_status qkv_attribution_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribution *why,
                                        int json, qkv_buffer *out);

/* ---- the walk ---- */

typedef struct qkv_trace_opts {
    size_t size;
    qkv_attention_kind kind;
    int layer, head; /* from 0 */
    int64_t query;   /* place of the token that attends */
    int k;           /* of the likeliest tokens at the end; 5 */
} qkv_trace_opts;

/* Every number from what one query of one head reads to what its layer gives, and what the model says there, in their order.
 * Starts as zero; used again and again. All it points to is its own. */
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
    const int64_t *best;     /* (n_best), likeliest first */
    const double *best_p;
    const float *best_logits;
    struct qkv_walk_work *work;
    void *reserved[4];
} qkv_trace_result;

/* Walks through the cell. USAGE for NULL, a kind, layer, head or query that is not there, a capture of other tokens than m has;
 * NUMERIC; MEMORY. *out then holds nothing. */
QKV_API qkv_status qkv_trace(const qkv_model *m, const qkv_attention_capture *a, const qkv_trace_opts *opts,
                             qkv_trace_result *out);
QKV_API void qkv_trace_free(qkv_trace_result *walk);

/* As a JSON object in *out, which is yours: every member above under its name, matrices as arrays of rows, -inf as null. USAGE
 * for NULL and a walk that holds nothing; MEMORY. */
QKV_API qkv_status qkv_trace_json(const qkv_trace_result *walk, qkv_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
