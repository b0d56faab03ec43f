/* why.c: which tokens an output is due to. By gradients: gradient x input, integrated gradients. By how tokens are mixed from
 * layer to layer, whatever the output: value zeroing, attention rollout. */
#include "inside.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../model/special_tokens.h"
#include "../nn/ngrams.h"
#include "../tensor/inputs.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_STEPS = 256, MOST_STEPS = 100000 };

/* Embeddings of one side, and gradients of them: (n, width). */
typedef struct why_side {
    int64_t n;
    float *e, *at, *grad; /* of the tokens; where f is computed; there */
    const float *base;    /* (width) of the baseline */
} why_side;

typedef struct why_job {
    const qkv_model *m;
    qkv__inside in;
    qkv_attribute_opts o;
    qkv_tape *tape; /* of one evaluation */
    why_side sides[QKV__STACKS];
    int64_t width, outputs;
    double *numbers[QKV__STACKS][QKV_ATTRIBUTE_METHODS]; /* of the result */
    qkv_attribution *out;
} why_job;

/* Memory of the result, working memory too. */
static void *take(why_job *j, size_t size, int64_t n) { return qkv__result_alloc(j->out, size * (size_t)n); }

static bool wants(const why_job *j, qkv_attribute_method method) { return j->o.methods >> method & 1; }

/* ---- f and its gradient ---- */

/* Logits of all outputs for the embeddings at `at`, (.., outputs), which are variables where gradients are wanted. */
static qkv_tensor *logits_at(why_job *j, qkv_tensor *embedded[QKV__STACKS])
{
    const qkv__transformer *x = j->in.x;
    qkv_tensor *h = NULL;
    qkv_tape_reset(j->tape);
    for (int s = 0; s < QKV__STACKS; s++) {
        why_side *side = &j->sides[s];
        embedded[s] = side->n ? qkv_variable(j->tape, QKV_SHAPE(1, side->n, j->width), side->at) : NULL;
        if (side->n) h = qkv__run_embedded(x, s, embedded[s], h);
    }
    const qkv_tokens ids = { .ids = j->in.source, .rows = 1, .length = j->in.n_source };
    if (j->in.stack == QKV__ENCODER) return qkv__ngrams_add(x, qkv__transformer_classify(x, h, NULL), &ids, NULL);
    return qkv__transformer_logits(x, qkv_slice(h, 1, j->o.at, j->o.at + 1));
}

/* f there; with gradients where `grads`. */
static qkv_status evaluate(why_job *j, bool grads, double *f)
{
    qkv_tensor *embedded[QKV__STACKS], *logits = logits_at(j, embedded);
    qkv_tensor *y = logits ? qkv_slice(logits, qkv_tensor_ndim(logits) - 1, j->out->output, j->out->output + 1) : NULL;
    qkv_status status = !y ? qkv_tape_status(j->tape) : grads ? qkv__backward_inputs(y) : QKV_OK;
    if (status) return status;
    *f = (double)qkv_tensor_data(y)[0];
    if (!isfinite(*f)) return qkv__fail(QKV_NUMERIC, "why: the model's logit is not finite");
    for (int s = 0; s < QKV__STACKS && grads; s++)
        if (j->sides[s].n)
            memcpy(j->sides[s].grad, qkv_tensor_grad(embedded[s]), sizeof(float) * (size_t)(j->sides[s].n * j->width));
    return QKV_OK;
}

/* at = base + part (e - base) */
static void set_interpolated_inputs(why_job *j, double part)
{
    for (int s = 0; s < QKV__STACKS; s++) {
        why_side *side = &j->sides[s];
        for (int64_t i = 0; i < side->n * j->width; i++) {
            double base = (double)side->base[i % j->width];
            side->at[i] = (float)(base + part * ((double)side->e[i] - base));
        }
    }
}

/* Adds part (e - base) . grad to every token's number; not from_base: part e . grad. */
static void add_products(why_job *j, qkv_attribute_method method, bool from_base, double part)
{
    for (int s = 0; s < QKV__STACKS; s++) {
        const why_side *side = &j->sides[s];
        for (int64_t i = 0; i < side->n * j->width; i++) {
            double base = from_base ? (double)side->base[i % j->width] : 0;
            j->numbers[s][method][i / j->width] += part * ((double)side->e[i] - base) * (double)side->grad[i];
        }
    }
}

static qkv_status find_gradient(why_job *j)
{
    double f;
    set_interpolated_inputs(j, 1);
    qkv_status status = evaluate(j, true, &f);
    if (!status) add_products(j, QKV_ATTRIBUTE_GRADIENT, false, 1);
    return status;
}

/* Gauss and Legendre's 4 points of 0..1, and their weights. */
enum { POINTS = 4 };
static const double gauss_points[POINTS] = { 0.06943184420297371, 0.33000947820757187, 0.6699905217924281, 0.9305681557970263 };
static const double gauss_weights[POINTS] = { 0.17392742256872692, 0.32607257743127307, 0.32607257743127307,
                                              0.17392742256872692 };

/* Point `step` of 0..1, and its weight. Half of them are spread over 1/16..1, half over the logarithms below: where nothing but
 * the embedding goes into a model, its norms turn round at numbers that are smaller with every layer. */
static double path_point(int step, int steps, double *weight)
{
    const double knee = 1.0 / 16, span = 40; /* down to e^-40 / 16 */
    int panels = steps / (2 * POINTS), panel = step / POINTS % panels;
    double t = (panel + gauss_points[step % POINTS]) / panels, part = gauss_weights[step % POINTS] / panels;
    bool is_low = step >= steps / 2;
    double a = is_low ? knee * exp(span * (t - 1)) : knee + (1 - knee) * t;
    *weight = part * (is_low ? a * span : 1 - knee);
    return a;
}

static qkv_status integrate(why_job *j)
{
    double f, weight;
    set_interpolated_inputs(j, 0);
    qkv_status status = evaluate(j, false, &j->out->baseline_logit);
    for (int s = 0; s < j->o.steps && !status; s++) {
        set_interpolated_inputs(j, path_point(s, j->o.steps, &weight));
        status = evaluate(j, true, &f);
        if (!status) add_products(j, QKV_ATTRIBUTE_INTEGRATED, true, weight);
    }
    return status;
}

/* ---- how tokens are mixed ---- */

/* Rows over the tokens of a stack and, behind an encoder, over those of the source: (n, n + source). */
typedef struct mixing {
    int64_t n, source;
    double *layer, *all, *next; /* of one layer, of all so far, working memory */
} mixing;

static bool start_mixing(why_job *j, int64_t n, int64_t source, mixing *x)
{
    int64_t width = n + source;
    *x = (mixing){ n, source, take(j, sizeof(double), n * width), take(j, sizeof(double), n * width), NULL };
    x->next = take(j, sizeof(double), n * width);
    if (!x->layer || !x->all || !x->next) return false;
    for (int64_t i = 0; i < n * width; i++) x->all[i] = i / width == i % width;
    return true;
}

/* A row of the layer sums to 1; one that sums to 0 keeps its own token. */
static void make_shares(mixing *x)
{
    int64_t width = x->n + x->source;
    for (int64_t i = 0; i < x->n; i++) {
        double *row = x->layer + i * width, sum = 0;
        for (int64_t k = 0; k < width; k++) sum += row[k];
        for (int64_t k = 0; k < width; k++) row[k] = sum > 0 ? row[k] / sum : i == k;
    }
}

/* all = S all + X [0 | source], the layer being [S | X] and `source` what the encoder's layers have mixed. */
static void mix_layer(mixing *x, const mixing *source)
{
    int64_t width = x->n + x->source;
    make_shares(x);
    memset(x->next, 0, sizeof(double) * (size_t)(x->n * width));
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t k = 0; k < width; k++) {
            double share = x->layer[i * width + k], *to = x->next + i * width;
            for (int64_t c = 0; k < x->n && share > 0 && c < width; c++) to[c] += share * x->all[k * width + c];
            for (int64_t c = 0; k >= x->n && share > 0 && c < x->source; c++)
                to[x->n + c] += share * source->all[(k - x->n) * x->source + c];
        }
    double *all = x->all;
    x->all = x->next;
    x->next = all;
}

static void mix_nothing(mixing *x)
{
    for (int64_t i = 0, width = x->n + x->source; i < x->n * width; i++) x->layer[i] = i / width == i % width;
}

/* ---- rollout ---- */

/* (A + I) / 2, and half of it where the other half is what cross-attention sees; A of so many heads, of rows of `keys`. */
static void add_heads(mixing *x, const qkv_tensor *weights, int64_t first, double part)
{
    int64_t heads = weights->shape[1], queries = weights->shape[2], keys = weights->shape[3], width = x->n + x->source;
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < x->n; i++)
            for (int64_t k = 0; k < keys && first + k < width; k++)
                x->layer[i * width + first + k] += part / (double)heads *
                                                   (double)qkv_tensor_data(weights)[(h * queries + i) * keys + k];
}

static void roll_layer(why_job *j, int stack, int layer, mixing *x)
{
    int encoder = j->in.n_source ? j->in.x->stacks[QKV__ENCODER].n : 0;
    int at = stack == QKV__ENCODER ? layer : encoder ? encoder + 2 * layer : layer;
    double part = x->source ? 0.25 : 0.5;
    mix_nothing(x);
    if (qkv__layer_is_off(&j->in.x->touches, stack, layer)) return;
    for (int64_t i = 0; i < x->n * (x->n + x->source); i++) x->layer[i] *= part;
    add_heads(x, qkv_tape_attention(j->in.tape, at), 0, part);
    if (x->source) add_heads(x, qkv_tape_attention(j->in.tape, at + 1), x->n, 0.5);
}

/* ---- value zeroing ---- */

static double cosine_distance(const float *a, const float *b, int64_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (int64_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    return aa > 0 && bb > 0 ? fmax(0, 1 - ab / sqrt(aa * bb)) : 0;
}

/* Column `column` of the layer: how far each token's state moves without the value of one key. */
static qkv_status zero_value(why_job *j, int stack, mixing *x, int64_t column, const qkv_edit *zero, const float *plain,
                             qkv_edit *touches)
{
    const qkv__transformer *m = j->in.x;
    int64_t dim = m->o.dim, n = m->touches.n;
    qkv_tape_reset(j->tape);
    touches[n] = *zero;
    qkv_tensor *in = qkv__inside_hidden(&j->in, stack, zero->layer), *memory = stack == QKV__DECODER ? j->in.memory : NULL;
    if (memory) memory = qkv__borrow(j->tape, 3, memory->shape, qkv__tensor_data(memory));
    in = qkv__borrow(j->tape, 3, in->shape, qkv__tensor_data(in));
    const qkv_tensor *y = qkv__run_layer(m, stack, zero->layer, in, memory, (qkv__touches){ touches, n + 1 }, NULL);
    if (!y) return qkv_tape_status(j->tape);
    for (int64_t i = 0; i < x->n; i++)
        x->layer[i * (x->n + x->source) + column] = cosine_distance(plain + i * dim, qkv_tensor_data(y) + i * dim, dim);
    return QKV_OK;
}

/* What the layer makes of its states as the model is, kept. */
static qkv_status run_plain(why_job *j, int stack, int layer, float *to)
{
    qkv_tensor *in = qkv__inside_hidden(&j->in, stack, layer), *memory = stack == QKV__DECODER ? j->in.memory : NULL;
    qkv_tape_reset(j->tape);
    if (memory) memory = qkv__borrow(j->tape, 3, memory->shape, qkv__tensor_data(memory));
    in = qkv__borrow(j->tape, 3, in->shape, qkv__tensor_data(in));
    const qkv_tensor *y = qkv__run_layer(j->in.x, stack, layer, in, memory, j->in.x->touches, NULL);
    if (!y) return qkv_tape_status(j->tape);
    memcpy(to, qkv_tensor_data(y), sizeof(float) * (size_t)qkv_tensor_count(y));
    return QKV_OK;
}

static qkv_status zero_layer(why_job *j, int stack, int layer, mixing *x)
{
    const qkv__touches *old = &j->in.x->touches;
    qkv_edit *touches = take(j, sizeof *touches, old->n + 1);
    float *plain = take(j, sizeof *plain, x->n * j->in.x->o.dim);
    if (!touches || !plain) return QKV_MEMORY;
    if (old->n) memcpy(touches, old->list, sizeof *touches * (size_t)old->n);
    mix_nothing(x);
    if (qkv__layer_is_off(old, stack, layer)) return QKV_OK;
    qkv_status status = run_plain(j, stack, layer, plain);
    for (int64_t k = 0; k < x->n + x->source && !status; k++) {
        bool is_cross = k >= x->n;
        const qkv_edit zero = { .what = QKV_EDIT_ZERO_VALUE,
                                .kind = is_cross                ? QKV_ATTENTION_CROSS
                                        : stack == QKV__DECODER ? QKV_ATTENTION_DECODER
                                                                : QKV_ATTENTION_ENCODER,
                                .layer = layer,
                                .place = is_cross ? k - x->n : k };
        status = zero_value(j, stack, x, k, &zero, plain, touches);
    }
    return status;
}

/* ---- both ---- */

static qkv_status mix_stack(why_job *j, qkv_attribute_method method, int stack, const mixing *source, mixing *x)
{
    int64_t n = stack == QKV__DECODER ? j->in.n_read : j->in.n_source;
    if (!start_mixing(j, n, source ? j->in.n_source : 0, x)) return QKV_MEMORY;
    qkv_status status = QKV_OK;
    for (int layer = 0; layer < j->in.x->stacks[stack].n && !status; layer++) {
        if (method == QKV_ATTRIBUTE_ROLLOUT) roll_layer(j, stack, layer, x);
        else status = zero_layer(j, stack, layer, x);
        if (!status) mix_layer(x, source);
    }
    return status;
}

/* The place that gives the output: of a classifier the one that it pools, or -1 for all of them. */
static int64_t place_of_output(const why_job *j)
{
    qkv_pooling pooling = j->in.x->o.pooling;
    if (j->in.stack == QKV__DECODER) return j->o.at;
    return pooling == QKV_POOLING_FIRST ? 0 : pooling == QKV_POOLING_LAST ? j->in.n_source - 1 : -1;
}

static void give_shares(why_job *j, qkv_attribute_method method, const mixing *x)
{
    int64_t place = place_of_output(j), width = x->n + x->source;
    for (int64_t i = 0; i < x->n * width; i++) {
        int64_t column = i % width, row = i / width;
        int s = j->in.stack == QKV__ENCODER || column >= x->n ? QKV__ENCODER : QKV__DECODER;
        double share = place < 0 ? x->all[i] / (double)x->n : row == place ? x->all[i] : 0;
        j->numbers[s][method][column >= x->n ? column - x->n : column] += share;
    }
}

static qkv_status find_shares(why_job *j, qkv_attribute_method method)
{
    mixing encoder, decoder;
    qkv_status status = j->in.n_source ? mix_stack(j, method, QKV__ENCODER, NULL, &encoder) : QKV_OK;
    if (!status && j->in.n_read) status = mix_stack(j, method, QKV__DECODER, j->in.n_source ? &encoder : NULL, &decoder);
    if (!status) give_shares(j, method, j->in.n_read ? &decoder : &encoder);
    return status;
}

/* ---- what is asked for ---- */

static qkv_status take_embeddings(why_job *j, int s, const int32_t *ids, int64_t n)
{
    why_side *side = &j->sides[s];
    size_t bytes = sizeof(float) * (size_t)(n * j->width);
    qkv__special_tokens f = { .ids = { .pad = -1 } };
    float *base = take(j, sizeof(float), j->width);
    *side = (why_side){ n, take(j, 1, (int64_t)bytes), take(j, 1, (int64_t)bytes), take(j, 1, (int64_t)bytes), base };
    if (!side->e || !side->at || !side->grad || !base) return QKV_MEMORY;
    qkv_tape_reset(j->tape);
    const qkv_tensor *e = qkv__token_embeddings(j->in.x, s, j->tape, ids, n);
    if (!e) return qkv_tape_status(j->tape);
    memcpy(side->e, qkv_tensor_data(e), bytes);
    memset(base, 0, sizeof(float) * (size_t)j->width);
    if (!j->o.pad_baseline) return QKV_OK;
    qkv_status status = qkv__special_tokens_of(j->m, &f);
    if (!status && f.ids.pad < 0) return qkv__fail(QKV_USAGE, "why: the model has no padding token for a baseline");
    if (status || !(e = qkv__token_embeddings(j->in.x, s, j->tape, &f.ids.pad, 1))) return qkv_error_status();
    memcpy(base, qkv_tensor_data(e), sizeof(float) * (size_t)j->width);
    return QKV_OK;
}

static qkv_status check_output(why_job *j)
{
    if (!j->o.has_output || (j->o.output >= 0 && j->o.output < j->outputs)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "why: there is no %s %lld: they are 0 to %lld", j->in.stack == QKV__ENCODER ? "class" : "token",
                     (long long)j->o.output, (long long)j->outputs - 1);
}

static qkv_status check_why_options(why_job *j)
{
    const qkv_config *t = &j->in.x->o;
    const qkv_attribute_opts *o = &j->o;
    if (!j->o.methods) j->o.methods = (1u << QKV_ATTRIBUTE_METHODS) - 1;
    if (!j->o.steps) j->o.steps = DEFAULT_STEPS;
    j->width = qkv__embed_width(t);
    j->outputs = j->in.stack == QKV__ENCODER ? t->classes : t->target_vocab_size ? t->target_vocab_size : t->vocab_size;
    if (!j->outputs || (j->in.stack == QKV__ENCODER && t->classes_of))
        return qkv__fail(QKV_UNSUPPORTED, "why: the model has no classifier of texts and no decoder: it gives no output");
    if (t->encoder_layers && t->decoder_layers && !(qkv__model_get_info(j->m)->can & QKV_CAN_TRANSLATE))
        return qkv__fail(QKV_UNSUPPORTED, "why: of a classifier with a decoder attributions are not computed");
    if (o->methods >> QKV_ATTRIBUTE_METHODS) return qkv__fail(QKV_USAGE, "why: there is no such method");
    if (o->steps < 1 || o->steps > MOST_STEPS)
        return qkv__fail(QKV_USAGE, "why: %d steps, expected 1 to %d", o->steps, MOST_STEPS);
    j->o.steps = (int)qkv__round_up(o->steps, 2 * POINTS);
    if (j->in.stack == QKV__DECODER && (o->at < 0 || o->at >= j->in.n_read))
        return qkv__fail(QKV_USAGE, "why: there is no output at %lld: they are at 0 to %lld", (long long)o->at,
                         (long long)j->in.n_read - 1);
    if (j->in.stack == QKV__DECODER) j->in.n_read = o->at + 1; /* what comes later has done nothing */
    return check_output(j);
}

/* Chooses the output, and its logit. */
static qkv_status choose_output(why_job *j)
{
    qkv_tensor *embedded[QKV__STACKS];
    set_interpolated_inputs(j, 1);
    const qkv_tensor *logits = logits_at(j, embedded);
    if (!logits) return qkv_tape_status(j->tape);
    bool is_next = j->in.stack == QKV__DECODER && j->o.at < j->in.n_next;
    int64_t best = 0;
    for (int64_t i = 0; i < j->outputs; i++)
        if (qkv_tensor_data(logits)[i] > qkv_tensor_data(logits)[best]) best = i;
    j->out->output = j->o.has_output ? j->o.output : is_next ? j->in.next[j->o.at] : best;
    j->out->logit = (double)qkv_tensor_data(logits)[j->out->output];
    return isfinite(j->out->logit) ? QKV_OK : qkv__fail(QKV_NUMERIC, "why: the model's logit is not finite");
}

static qkv_status take_numbers(why_job *j)
{
    j->out->n_source = j->in.n_source;
    j->out->n_target = j->in.n_read;
    for (int k = 0; k < QKV_ATTRIBUTE_METHODS; k++)
        for (int s = 0; s < QKV__STACKS; s++) {
            int64_t n = s == QKV__ENCODER ? j->in.n_source : j->in.n_read;
            if (!n || !wants(j, (qkv_attribute_method)k)) continue;
            double *numbers = j->numbers[s][k] = take(j, sizeof *numbers, n);
            if (!numbers) return QKV_MEMORY;
            memset(numbers, 0, sizeof *numbers * (size_t)n);
            (s == QKV__ENCODER ? j->out->of_source : j->out->of_target)[k] = numbers;
        }
    return QKV_OK;
}

static qkv_status run_methods(why_job *j)
{
    const qkv_tape_opts kept = { .inference = 1, .keep_hidden = 1, .keep_attention = wants(j, QKV_ATTRIBUTE_ROLLOUT) };
    qkv_status status = take_numbers(j);
    if (!status && j->in.n_source) status = take_embeddings(j, QKV__ENCODER, j->in.source, j->in.n_source);
    if (!status && j->in.n_read) status = take_embeddings(j, QKV__DECODER, j->in.read, j->in.n_read);
    if (!status) status = choose_output(j);
    if (!status && wants(j, QKV_ATTRIBUTE_GRADIENT)) status = find_gradient(j);
    if (!status && wants(j, QKV_ATTRIBUTE_INTEGRATED)) status = integrate(j);
    if (!status && j->o.methods >> QKV_ATTRIBUTE_VALUE_ZEROING) status = qkv__inside_run(&j->in, &kept);
    if (!status && wants(j, QKV_ATTRIBUTE_VALUE_ZEROING)) status = find_shares(j, QKV_ATTRIBUTE_VALUE_ZEROING);
    if (!status && wants(j, QKV_ATTRIBUTE_ROLLOUT)) status = find_shares(j, QKV_ATTRIBUTE_ROLLOUT);
    return status;
}

qkv_status qkv_attribute(const qkv_model *m, const qkv_attention_capture *a, const qkv_attribute_opts *opts,
                         qkv_attribution **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_attribution), NULL };
    if (!m || !a || !out) return qkv__fail(QKV_USAGE, "why: a model, a capture and a place for the result are needed");
    why_job j = { .m = m, .out = qkv__result_begin(*out, &kind) };
    if (!j.out) return qkv_error_status();
    *out = j.out;
    qkv_status status = QKV__READ_OPTIONS(&j.o, pad_baseline, opts, "why");
    if (!status) status = qkv__inside_read("why", m, a, &j.in);
    if (!status) status = check_why_options(&j);
    if (!status && !(j.tape = qkv_tape_new(NULL))) status = qkv_error_status();
    if (!status) status = run_methods(&j);
    qkv_tape_free(j.tape);
    qkv__inside_free(&j.in);
    if (status) qkv__result_clear(j.out);
    return status;
}
