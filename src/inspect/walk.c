/* walk.c: every number on the way to one cell of attention and past it, to what the model says. */
#include "inside.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../model/touched.h"
#include "../nn/ngrams.h"

#include <math.h>
#include <string.h>

enum { DEFAULT_K = 5 };

typedef struct walk_job {
    const qkv_model *m;
    qkv__inside in;
    qkv_trace_opts o;
    int stack;
    qkv_tape *tape; /* of the layer */
    qkv__trail trail;
    qkv_trace_result *out;
} walk_job;

static float *take_floats(walk_job *j, int64_t n) { return qkv__result_alloc(j->out, sizeof(float) * (size_t)n); }

/* A copy of n floats; NULL: MEMORY. */
static const float *keep_floats(walk_job *j, const float *from, int64_t n)
{
    float *to = take_floats(j, n);
    return to ? memcpy(to, from, sizeof *to * (size_t)n) : NULL;
}

/* Columns from .. from+width-1 of n rows of x, whose rows are `row` apart. */
static const float *keep_columns(walk_job *j, const qkv_tensor *x, int64_t n, int64_t from, int64_t width)
{
    float *to = take_floats(j, n * width);
    for (int64_t i = 0; to && i < n; i++)
        memcpy(to + i * width, qkv_tensor_data(x) + i * qkv__last(x) + from, sizeof *to * (size_t)width);
    return to;
}

/* ---- the layer ---- */

static bool take_trail(walk_job *j)
{
    int64_t dim = j->in.x->o.dim;
    j->trail = (qkv__trail){ .layer = j->o.layer, .token = j->o.query };
    for (int s = 0; s < QKV__SUBS; s++)
        for (int k = 0; k < QKV__STEPS; k++)
            if (!(j->trail.rows[s][k] = take_floats(j, dim))) return false;
    return true;
}

/* The layer once more, on what went into it, with all that is on the way kept. */
static qkv_status run_followed(walk_job *j)
{
    const qkv__transformer *x = j->in.x;
    qkv_tensor *in = qkv__inside_hidden(&j->in, j->stack, j->o.layer), *memory = j->stack == QKV__DECODER ? j->in.memory : NULL;
    const qkv_tape_opts kept = { .size = sizeof kept, .inference = 1, .keep_attention = 1, .keep_projections = 1 };
    if (!(j->tape = qkv_tape_new(&kept))) return qkv_error_status();
    if (memory) memory = qkv__borrow(j->tape, 3, memory->shape, qkv__tensor_data(memory));
    in = qkv__borrow(j->tape, 3, in->shape, qkv__tensor_data(in));
    qkv__run_layer(x, j->stack, j->o.layer, in, memory, x->touches, &j->trail);
    return qkv_tape_status(j->tape);
}

static qkv_status keep_sub_layers(walk_job *j)
{
    qkv_trace_result *out = j->out;
    float **at = j->trail.rows[j->o.kind == QKV_ATTENTION_CROSS ? QKV__SUB_CROSS : QKV__SUB_SELF],
          **ffn = j->trail.rows[QKV__SUB_FFN];
    const qkv_ffn *f = &j->in.x->stacks[j->stack].layers[j->o.layer].ffn;
    out->in = at[QKV__AT_IN];
    out->x = at[QKV__AT_X];
    out->out = at[QKV__AT_OUT];
    out->sum = at[QKV__AT_SUM];
    out->norm = at[QKV__AT_NORM];
    out->ffn_in = ffn[QKV__AT_IN];
    out->ffn_x = ffn[QKV__AT_X];
    out->ffn_out = ffn[QKV__AT_OUT];
    out->ffn_sum = ffn[QKV__AT_SUM];
    out->layer_out = ffn[QKV__AT_NORM];
    qkv_tensor *hidden = qkv__ffn_hidden(f, qkv__borrow(j->tape, 2, (int64_t[]){ 1, out->dim }, ffn[QKV__AT_X]));
    if (!hidden) return qkv_tape_status(j->tape);
    out->d_ff = qkv_tensor_count(hidden);
    return (out->ffn_hidden = keep_floats(j, qkv_tensor_data(hidden), out->d_ff)) ? QKV_OK : QKV_MEMORY;
}

/* ---- the head ---- */

/* The bias of the head for every key, where positions are a bias by distance; NULL: none. */
static const float *bias_of_keys(walk_job *j)
{
    const qkv__transformer *x = j->in.x;
    int64_t n = j->out->keys;
    qkv_tensor *table = x->stacks[j->stack].layers[j->o.layer].relative;
    if (j->o.kind == QKV_ATTENTION_CROSS || !table) return NULL;
    const qkv_tensor *bias = qkv__relative_bias(j->tape, table, n, x->o.relative_max_distance, j->stack == QKV__DECODER);
    return bias ? qkv_tensor_data(bias) + j->o.head * (2 * n - 1) + n - 1 - j->o.query : NULL;
}

static bool is_masked(const walk_job *j, int64_t key, const uint8_t *hidden)
{
    int64_t window = j->in.x->stacks[j->stack].layers[j->o.layer].window, distance = key - j->o.query;
    if (hidden && hidden[key]) return true;
    if (j->o.kind == QKV_ATTENTION_CROSS) return false;
    return (j->stack == QKV__DECODER && distance > 0) || (window && (distance >= window || -distance >= window));
}

static qkv_status compute_scores(walk_job *j)
{
    qkv_trace_result *out = j->out;
    const qkv_config *o = &j->in.x->o;
    bool is_self = j->o.kind != QKV_ATTENTION_CROSS;
    float *scores = take_floats(j, out->keys), *scaled = take_floats(j, out->keys), cap = is_self ? o->score_softcap : 0;
    uint8_t *masked = qkv__result_alloc(j->out, (size_t)out->keys);
    const uint8_t *hidden = qkv__hidden_keys(j->tape, &j->in.x->touches, j->o.kind, out->keys, 1);
    const float *bias = bias_of_keys(j);
    if (!scores || !scaled || !masked || qkv_tape_status(j->tape)) return QKV_MEMORY;
    out->scale = o->attention_scale == 0 ? (float)(1 / sqrt((double)out->d_k)) : o->attention_scale;
    for (int64_t key = 0; key < out->keys; key++) {
        double sum = 0;
        for (int64_t d = 0; d < out->d_k; d++) sum += (double)out->q[d] * (double)out->k[key * out->d_k + d];
        scores[key] = (float)sum;
        masked[key] = is_masked(j, key, hidden);
        float s = scores[key] * out->scale + (bias ? bias[key] : 0);
        scaled[key] = masked[key] ? -INFINITY : cap > 0 ? cap * tanhf(s / cap) : s;
    }
    out->scores = scores;
    out->scaled = scaled;
    out->masked = masked;
    return QKV_OK;
}

static qkv_status keep_head(walk_job *j)
{
    qkv_projections p;
    qkv_trace_result *out = j->out;
    int index = j->o.kind == QKV_ATTENTION_CROSS;
    const qkv_config *o = &j->in.x->o;
    qkv_status status = qkv_tape_projections(j->tape, index, &p);
    if (status) return status;
    const qkv_tensor *weights = qkv_tape_attention(j->tape, index);
    int64_t kv_heads = o->kv_heads ? o->kv_heads : o->heads, h = j->o.head, kv = h / (o->heads / kv_heads), at = j->o.query;
    out->heads = o->heads;
    out->dim = o->dim;
    out->keys = p.k->shape[1];
    out->d_k = qkv__last(p.k) / kv_heads;
    out->d_v = qkv__last(p.v) / kv_heads;
    out->q = keep_floats(j, qkv_tensor_data(p.q) + at * qkv__last(p.q) + h * out->d_k, out->d_k);
    out->k = keep_columns(j, p.k, out->keys, kv * out->d_k, out->d_k);
    out->v = keep_columns(j, p.v, out->keys, kv * out->d_v, out->d_v);
    out->concat = keep_floats(j, qkv_tensor_data(p.heads) + at * qkv__last(p.heads), qkv__last(p.heads));
    out->weights = keep_floats(j, qkv_tensor_data(weights) + (h * weights->shape[2] + at) * out->keys, out->keys);
    if (!out->q || !out->k || !out->v || !out->concat || !out->weights) return QKV_MEMORY;
    out->head = out->concat + h * out->d_v;
    return compute_scores(j);
}

/* ---- what the model says ---- */

static qkv_status keep_best(walk_job *j, const qkv_tensor *logits)
{
    qkv_trace_result *out = j->out;
    int64_t n = qkv__last(logits);
    out->n_best = (int)qkv__min(j->o.k ? j->o.k : DEFAULT_K, n);
    int32_t *best = qkv__result_alloc(j->out, sizeof *best * (size_t)out->n_best);
    double *p = qkv__result_alloc(j->out, sizeof *p * (size_t)out->n_best);
    float *of_best = take_floats(j, out->n_best);
    if (!best || !p || !of_best) return QKV_MEMORY;
    qkv_status status = qkv_top_k(qkv_tensor_data(logits), n, out->n_best, best, p);
    for (int i = 0; i < out->n_best && !status; i++) of_best[i] = qkv_tensor_data(logits)[best[i]];
    out->best = best;
    out->best_p = p;
    out->best_logits = of_best;
    return status;
}

static qkv_status hear_model(walk_job *j)
{
    const qkv__inside *in = &j->in;
    bool classifies = in->x->o.classes && in->stack == QKV__ENCODER;
    if (j->stack != in->stack || !(classifies || qkv__inside_speaks(j->m, in))) return QKV_OK;
    const qkv_tokens ids = { .ids = in->source, .rows = 1, .length = in->n_source };
    qkv_tensor *logits = classifies ? qkv__ngrams_add(in->x, qkv__transformer_classify(in->x, in->last, NULL), &ids, NULL)
                                    : qkv__transformer_logits(in->x, qkv_slice(in->last, 1, j->o.query, j->o.query + 1));
    return logits ? keep_best(j, logits) : qkv_tape_status(in->tape);
}

/* ---- what is asked for ---- */

static qkv_status check_walk_options(walk_job *j)
{
    const qkv_trace_opts *o = &j->o;
    const qkv__transformer *x = j->in.x;
    if ((unsigned)o->kind >= QKV_ATTENTION_KINDS) return qkv__fail(QKV_USAGE, "walk: there is no such kind of attention");
    j->stack = o->kind == QKV_ATTENTION_ENCODER ? QKV__ENCODER : QKV__DECODER;
    int layers = o->kind == QKV_ATTENTION_CROSS && !j->in.n_source ? 0 : x->stacks[j->stack].n;
    int64_t queries = j->stack == QKV__ENCODER ? j->in.n_source : j->in.n_read;
    if (!layers) return qkv__fail(QKV_USAGE, "walk: the model has no %s attention", qkv__attention_kind_name(o->kind));
    if (o->layer < 0 || o->layer >= layers || o->head < 0 || o->head >= x->o.heads)
        return qkv__fail(QKV_USAGE, "walk: there is no layer %d with a head %d: layers are 0 to %d, heads 0 to %lld", o->layer,
                         o->head, layers - 1, (long long)x->o.heads - 1);
    if (o->query < 0 || o->query >= queries)
        return qkv__fail(QKV_USAGE, "walk: there is no query %lld: they are 0 to %lld", (long long)o->query,
                         (long long)queries - 1);
    return o->k < 0 ? qkv__fail(QKV_USAGE, "walk: k is %d, expected at least 1", o->k) : QKV_OK;
}

static qkv_status walk_through(walk_job *j)
{
    qkv_status status = check_walk_options(j);
    if (!status) status = qkv__inside_run(&j->in, &(qkv_tape_opts){ .inference = 1, .keep_hidden = 1 });
    if (!status && !take_trail(j)) status = QKV_MEMORY;
    if (!status) status = run_followed(j);
    if (!status) status = keep_head(j);
    if (!status) status = keep_sub_layers(j);
    return status ? status : hear_model(j);
}

qkv_status qkv_trace(const qkv_model *m, const qkv_attention_capture *a, const qkv_trace_opts *opts, qkv_trace_result **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_trace_result), NULL };
    if (!m || !a || !out) return qkv__fail(QKV_USAGE, "walk: a model, a capture and a place for the result are needed");
    walk_job j = { .m = m, .out = qkv__result_begin(*out, &kind) };
    if (!j.out) return qkv_error_status();
    *out = j.out;
    qkv_status status = QKV__READ_OPTIONS(&j.o, k, opts, "walk");
    if (!status) status = qkv__inside_read("walk", m, a, &j.in);
    if (!status) status = walk_through(&j);
    qkv_tape_free(j.tape);
    qkv__inside_free(&j.in);
    if (status) qkv__result_clear(j.out);
    return status;
}
