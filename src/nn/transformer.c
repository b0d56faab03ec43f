/* transformer.c: embeddings, a stack of encoder layers, a stack of decoder layers, the layer before the softmax. */
#include "layer.h"
#include "ngrams.h"

#include "../base/options.h"
#include "../tensor/tape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ENCODER = QKV__ENCODER, DECODER = QKV__DECODER };
static const char *const stack_names[] = { "encoder", "decoder" };
static const char *const classifier_names[] = { "classifier", "token_classifier", "span_classifier" }; /* by classes_of */

/* ---- making ---- */

static const char *check_rotary(const qkv_config *o)
{
    int64_t width = o->d_k ? o->d_k : o->heads > 0 ? o->dim / o->heads : 0;
    if (!(o->rope_base >= 0 && o->rope_base < INFINITY)) return "the rotary base cannot be negative";
    if (!(o->window_rope_base >= 0 && o->window_rope_base < INFINITY)) return "the local rotary base cannot be negative";
    if (!(o->rope_scale >= 0 && o->rope_scale < INFINITY)) return "the rotary scale cannot be negative";
    if (o->rope_width < 0 || o->rope_width > width || o->rope_width % 2)
        return "the rotary width must be an even part of a head";
    if (o->positions == QKV_POSITION_ROPE && !o->rope_width && width % 2)
        return "rotary positions turn pairs: a head needs an even width";
    if ((unsigned)o->rope_scaling > QKV_ROPE_LONG) return "there is no such rotary scaling";
    if (o->rope_factor == 0) return NULL;
    if (o->positions != QKV_POSITION_ROPE) return "scaled frequencies need rotary positions";
    if (!(o->rope_factor >= 1 && o->rope_factor < INFINITY)) return "the rotary factor must be at least 1";
    if (o->rope_scaling == QKV_ROPE_LINEAR) return NULL;
    if (!(o->rope_low > 0 && o->rope_high > o->rope_low && o->rope_high < INFINITY))
        return "rotary_low must be more than 0, and rotary_high more than that";
    return o->rope_length < 1 ? "scaled frequencies need the rotary length" : NULL;
}

static const char *check_attention(const qkv_config *o)
{
    if (o->window_size < 0 || o->window_from_layer < 0 || o->global_every < 0 || o->global_at < 0)
        return "a window cannot be negative";
    if (!(o->attention_scale >= 0 && o->attention_scale < INFINITY)) return "the scale of attention cannot be negative";
    if (!(o->score_softcap >= 0 && o->score_softcap < INFINITY && o->logit_softcap >= 0 && o->logit_softcap < INFINITY))
        return "caps cannot be negative";
    if ((o->post_norm || o->parallel) && !o->pre_norm) return "post norms and parallel sub-layers need pre_norm";
    if (o->parallel && o->encoder_layers && o->decoder_layers) return "parallel sub-layers leave no place for an encoder's";
    return check_rotary(o);
}

/* What published models have besides. */
static const char *check_variant(const qkv_config *o)
{
    if ((unsigned)o->pooler > QKV_POOLER_GELU) return "there is no such pooler";
    if (o->token_types < 0) return "token types cannot be negative";
    if (o->token_types && !o->encoder_layers) return "token types need an encoder";
    if (o->pooler == QKV_POOLER_HEAD && !o->head) return "the pooler is the head, which the model does not have";
    if (o->no_first_norm && !o->pre_norm) return "only norms before each sub-layer (pre_norm) have one to leave out";
    return check_attention(o);
}

/* What T5, ELECTRA and ALBERT have. */
static const char *check_sharing(const qkv_config *o)
{
    int64_t least = o->encoder_layers ? 4 : 2; /* one exact distance on either side */
    if (o->relative_buckets < 0 || o->relative_max_distance < 0 || o->embed_dim < 0) return "no size may be negative";
    if (o->relative_buckets && o->relative_buckets < least)
        return "a bias by distance needs at least 4 buckets, 2 in a decoder";
    if (o->relative_buckets && (o->relative_max_distance ? o->relative_max_distance : 128) <= o->relative_buckets / 2)
        return "relative_distance must be more than half of relative_buckets";
    if (o->relative_per_layer && !o->relative_buckets) return "only a bias by distance (relative_buckets) can be of each layer";
    if (o->relative_buckets && o->score_softcap > 0)
        return "a bias by distance and a cap of scores (score_cap) exclude each other";
    if (!o->embed_dim) return NULL;
    if (o->decoder_layers) return "only an encoder alone has tables of another width (embed_dim)";
    return o->pooler == QKV_POOLER_HEAD ? "a head of another width (embed_dim) is no pooler" : NULL;
}

static const char *check_classes_of(const qkv_config *o)
{
    if ((unsigned)o->classes_of > QKV_CLASSES_OF_SPANS) return "there are classes of texts, tokens and spans";
    if (!o->classes_of) return NULL;
    if (!o->encoder_layers || o->decoder_layers) return "only an encoder alone has classes of tokens and spans (classes_of)";
    return o->classes_of == QKV_CLASSES_OF_SPANS && o->classes != 2 ? "a span has 2 classes, its first and its last token"
                                                                    : NULL;
}

static bool check_transformer_options(qkv_params *p, const qkv_config *o)
{
    const char *problem = NULL;
    if (o->vocab_size < 1 || o->target_vocab_size < 0) problem = "a vocabulary has at least 1 token";
    else if (o->encoder_layers < 0 || o->decoder_layers < 0) problem = "layers cannot be negative";
    else if (!o->encoder_layers && !o->decoder_layers) problem = "an encoder or a decoder needs at least 1 layer";
    else if (o->target_vocab_size && (!o->encoder_layers || !o->decoder_layers))
        problem = "a target vocabulary of its own needs an encoder and a decoder";
    else if (o->d_ff < 1) problem = "the feed-forward layer needs an inner width of at least 1";
    else if ((unsigned)o->norm > QKV_NORM_RMS) problem = "there is no such norm";
    else if ((unsigned)o->positions > QKV_POSITION_SINUSOID_FAIRSEQ) problem = "there is no such kind of positions";
    else if (o->positions == QKV_POSITION_LEARNED && o->max_positions < 1) problem = "learned positions need a longest length";
    else if (o->first_position < 0) problem = "the first position cannot be negative";
    else if (!(o->norm_eps >= 0)) problem = "the norm's eps cannot be negative";
    else if (o->classes < 0) problem = "classes cannot be negative";
    else if ((unsigned)o->pooling > QKV_POOLING_ATTENTION) problem = "there is no such pooling";
    else if (!(o->dropout >= 0 && o->dropout < 1)) problem = "dropout must be at least 0 and below 1";
    else problem = check_variant(o);
    if (!problem) problem = check_sharing(o);
    if (!problem) problem = check_classes_of(o);
    if (!problem) problem = qkv__ngrams_check(o);
    return !problem || qkv__params_fail(p, QKV_USAGE, "transformer: %s", problem);
}

int64_t qkv__embed_width(const qkv_config *o) { return o->embed_dim ? o->embed_dim : o->dim; }

/* The tables, and what becomes of their sum. */
static void make_embeddings(qkv_params *p, qkv__transformer *m, int which)
{
    const qkv_config *o = &m->o;
    qkv__stack *s = &m->stacks[which];
    const char *name = stack_names[which];
    int64_t width = qkv__embed_width(o);
    char part[QKV_NAME_MAX];
    if (which == DECODER && o->target_vocab_size) s->embed = qkv_embedding_new(p, "target_embed", o->target_vocab_size, width);
    else if (which == DECODER && m->stacks[ENCODER].n) s->embed = m->stacks[ENCODER].embed;
    else s->embed = qkv_embedding_new(p, "embed", o->vocab_size, width);
    if (which == ENCODER && o->token_types) s->types = qkv_embedding_new(p, "token_types", o->token_types, width);
    if (o->positions == QKV_POSITION_LEARNED && qkv__join_name(p, part, name, "positions"))
        s->positions = qkv_embedding_new(p, part, o->max_positions + o->first_position, width);
    if (o->embed_norm) s->embed_norm = qkv__norm_of_width(p, name, "embed_norm", o, width, o->norm);
    if (o->embed_dim) s->widen = qkv__linear_part(p, name, "widen", width, o->dim, false);
}

/* The bias by distance of the whole stack, or of one layer. */
static qkv_tensor *make_relative(qkv_params *p, const char *of, const qkv_config *o)
{
    int64_t shape[] = { o->relative_buckets, o->heads };
    return o->relative_buckets ? qkv__add_part(p, of, "relative_positions.weight", 2, shape, QKV_INIT_NORMAL, 0.02f) : NULL;
}

static bool make_layer(qkv_params *p, const qkv_config *o, int which, int i, qkv__layer *l)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%d", stack_names[which], i);
    if (!qkv__layer_make(p, l, name, i, o, which == DECODER && o->encoder_layers > 0)) return false;
    if (o->relative_per_layer) l->relative = make_relative(p, name, o);
    return true;
}

static bool make_stack(qkv_params *p, qkv__transformer *m, int which)
{
    const qkv_config *o = &m->o;
    qkv__stack *s = &m->stacks[which];
    const char *name = stack_names[which];
    s->n = which == ENCODER ? o->encoder_layers : o->decoder_layers;
    if (!s->n) return true;
    make_embeddings(p, m, which);
    qkv_tensor *relative = o->relative_per_layer ? NULL : make_relative(p, name, o);
    s->layers = qkv__params_keep(p, sizeof *s->layers * (size_t)s->n);
    for (int i = 0; s->layers && i < s->n; i++) {
        if (i && o->shared_layers) s->layers[i] = s->layers[0];
        else if (!make_layer(p, o, which, i, &s->layers[i])) return false;
        if (relative) s->layers[i].relative = relative;
        s->layers[i].window = qkv__has_window(o, i) ? o->window_size : 0;
    }
    if (o->pre_norm) s->final_norm = qkv__norm_part(p, name, "norm", o);
    return !qkv_params_status(p);
}

static int64_t output_size(const qkv_config *o) { return o->target_vocab_size ? o->target_vocab_size : o->vocab_size; }

static void make_output(qkv_params *p, qkv__transformer *m)
{
    const qkv_config *o = &m->o;
    int64_t size = output_size(o), width = o->head ? qkv__embed_width(o) : o->dim;
    if (o->head) {
        m->head = qkv_linear_new(p, "head", o->dim, width, !o->no_head_bias);
        m->head_norm = qkv__norm_of_width(p, "head", "norm", o, width, o->norm);
    }
    if (o->untied) m->output = qkv_linear_new(p, "output", width, size, false);
    else m->output.weight = m->stacks[m->stacks[DECODER].n ? DECODER : ENCODER].embed.weight;
    if (o->output_bias) m->output.bias = qkv_params_add(p, "output.bias", 1, &size, QKV_INIT_ZERO, 0);
}

/* Beside counts of words the classifier starts at 0: what it says by chance would drown them where training is short. */
static void make_classifier(qkv_params *p, qkv__transformer *m)
{
    const qkv_config *o = &m->o;
    qkv_linear *c = &m->classifier;
    if (!o->ngrams) *c = qkv_linear_new(p, classifier_names[o->classes_of], o->dim, o->classes, true);
    if (!o->ngrams) return;
    c->weight = qkv_params_add(p, "classifier.weight", QKV_SHAPE(o->classes, o->dim), QKV_INIT_ZERO, 0);
    c->bias = qkv_params_add(p, "classifier.bias", 1, &o->classes, QKV_INIT_ZERO, 0);
    qkv__ngrams_make(p, m);
}

static const double two_pi = 6.283185307179586;

/* The number, maybe between two, of the frequency that turns so often within the length: turns = length base^(-i/half) / 2 pi. */
static double number_of_frequency(const qkv_config *o, double base, double half, double turns)
{
    return half * log((double)o->rope_length / (turns * two_pi)) / log(base);
}

/* How much of frequency i stays as it is. Of Llama 3: by how often it turns within the length that the model was first trained
 * on. YaRN (section 3.2 and its authors' code): by i, from the whole numbers around those that turn `high` and `low` times. */
static double part_kept(const qkv_config *o, double base, double half, double i)
{
    double low = (double)o->rope_low, high = (double)o->rope_high;
    if (o->rope_scaling == QKV_ROPE_LINEAR) return 0;
    if (o->rope_scaling == QKV_ROPE_LLAMA3) {
        double turns = (double)o->rope_length * pow(base, -i / half) / two_pi;
        return fmin(fmax((turns - low) / (high - low), 0), 1);
    }
    double from = fmax(floor(number_of_frequency(o, base, half, high)), 0);
    double to = fmin(ceil(number_of_frequency(o, base, half, low)), 2 * half - 1);
    return 1 - fmin(fmax((i - from) / (to == from ? 0.001 : to - from), 0), 1);
}

int64_t qkv__rotary_pairs(const qkv_config *o)
{
    return (o->rope_width ? o->rope_width : o->d_k ? o->d_k : o->dim / o->heads) / 2;
}

bool qkv__set_divisors(qkv_params *p, qkv__transformer *m, const float *divisors)
{
    int64_t half = qkv__rotary_pairs(&m->o);
    float *all = qkv__params_keep(p, 3 * sizeof *all * (size_t)half), *to = all ? all + 2 * half : NULL;
    if (!all) return false;
    memcpy(all, divisors, 2 * sizeof *all * (size_t)half);
    double base = m->o.rope_base == 0 ? 10000.0 : (double)m->o.rope_base;
    for (int64_t i = 0; i < half; i++) to[i] = (float)(pow(base, -(double)i / (double)half) / (double)divisors[i]);
    m->divisors = all;
    m->frequencies = to;
    return true;
}

static void scale_frequencies(qkv_params *p, qkv__transformer *m)
{
    const qkv_config *o = &m->o;
    int64_t half = qkv__rotary_pairs(o);
    float *to = qkv__params_keep(p, sizeof *to * (size_t)half);
    double base = o->rope_base == 0 ? 10000.0 : (double)o->rope_base, factor = (double)o->rope_factor;
    for (int64_t i = 0; to && i < half; i++) {
        double frequency = pow(base, -(double)i / (double)half), kept = part_kept(o, base, (double)half, (double)i);
        to[i] = (float)(kept * frequency + (1 - kept) * frequency / factor);
    }
    m->frequencies = to;
}

qkv__transformer *qkv__transformer_new(qkv_params *p, const qkv_config *given)
{
    qkv_config own, *opts = &own;
    if (QKV__READ_OPTIONS(opts, no_head_bias, given, "transformer")) return qkv__params_error_below(p), NULL;
    if (!p || !given || !check_transformer_options(p, opts)) return NULL;
    qkv__transformer *m = qkv__params_keep(p, sizeof *m);
    if (!m) return NULL;
    m->o = *opts;
    if (!make_stack(p, m, ENCODER) || !make_stack(p, m, DECODER)) return NULL;
    if (opts->classes && opts->pooling == QKV_POOLING_ATTENTION) /* starts as the mean */
        m->pool_query = qkv_params_add(p, "pool.weight", QKV_SHAPE(1, opts->dim), QKV_INIT_ZERO, 0);
    if (opts->pooler && opts->pooler != QKV_POOLER_HEAD) m->pooler = qkv_linear_new(p, "pooler", opts->dim, opts->dim, true);
    if (opts->classes) make_classifier(p, m);
    make_output(p, m);
    if (opts->rope_factor != 0) scale_frequencies(p, m);
    return qkv_params_status(p) ? NULL : m;
}

const qkv_config *qkv__transformer_config(const qkv__transformer *m) { return m ? &m->o : NULL; }

/* ---- presets ---- */

qkv_status qkv_config_preset(const char *name, int64_t vocab_size, qkv_config *opts)
{
    static const struct {
        const char *name;
        int layers;
        int64_t dim, heads, d_ff;
        float dropout;
    } table[] = {
        { "tiny", 2, 128, 4, 512, 0.1f },
        { "small", 3, 256, 4, 1024, 0.1f },
        { "base", 6, 512, 8, 2048, 0.1f }, /* the paper's table 3 */
        { "big", 6, 1024, 16, 4096, 0.3f },
    };
    if (!opts) return qkv__fail(QKV_USAGE, "transformer: a place for the options is needed");
    for (size_t i = 0; name && i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name)) continue;
        const qkv_config o = { .vocab_size = vocab_size,
                               .encoder_layers = table[i].layers,
                               .decoder_layers = table[i].layers,
                               .dim = table[i].dim,
                               .heads = table[i].heads,
                               .d_ff = table[i].d_ff,
                               .dropout = table[i].dropout };
        return QKV__WRITE_OPTIONS(opts, no_head_bias, &o, "transformer");
    }
    return qkv__fail(QKV_UNSUPPORTED, "there is no preset \"%.40s\": the presets are tiny, small, base and big",
                     name ? name : "");
}

int64_t qkv__max_positions(const qkv_config *o) { return o->positions == QKV_POSITION_LEARNED ? o->max_positions : 0; }

/* ---- forward ---- */

void qkv__set_rotary(const qkv__transformer *m, const int32_t *positions, qkv__pass *pass)
{
    const qkv_config *o = &m->o;
    qkv_rope_opts *turns = pass->turns;
    if (o->positions != QKV_POSITION_ROPE) return;
    turns[0] = (qkv_rope_opts){ .size = sizeof *turns,
                                .base = o->rope_base,
                                .frequencies = m->frequencies,
                                .positions = positions,
                                .width = o->rope_width,
                                .scale = o->rope_scale };
    turns[1] = turns[0];
    if (o->window_rope_base != 0)
        turns[1] = (qkv_rope_opts){
            .size = sizeof *turns, .base = o->window_rope_base, .positions = positions, .width = o->rope_width
        };
    pass->rotary = &turns[0];
    pass->local_rotary = &turns[1];
}

/* Section 3.5 of the paper; x itself where positions are not added. */
static qkv_tensor *add_positions(const qkv_config *o, const qkv__stack *s, qkv_tensor *x, const int32_t *places)
{
    if (!x || !qkv__adds_positions(o)) return x;
    int64_t first = o->first_position, batch = x->shape[0], length = x->shape[1], n = length;
    for (int64_t i = 0; places && i < batch * length; i++) n = qkv__max(n, places[i] + 1);
    qkv_tensor *table = o->positions == QKV_POSITION_LEARNED
                            ? qkv__positions_forward(&s->positions, x->tape, first, n)
                            : qkv_sinusoid(x->tape, first, n, qkv__embed_width(o), o->positions);
    if (table && places) table = qkv_gather(x->tape, table, places, 2, (int64_t[]){ batch, length });
    return qkv_add(x, table);
}

/* Section 3.4 of the paper: embedding times sqrt(dim). */
static qkv_tensor *embed_ids(const qkv__transformer *m, int which, qkv_tape *t, const int32_t *ids, int64_t batch,
                             int64_t length)
{
    qkv_tensor *x = qkv_embedding_forward(&m->stacks[which].embed, t, ids, batch, length);
    return m->o.unscaled ? x : qkv_scale(x, sqrtf((float)m->o.dim));
}

qkv_tensor *qkv__token_embeddings(const qkv__transformer *m, int which, qkv_tape *t, const int32_t *ids, int64_t n)
{
    return embed_ids(m, which, t, ids, 1, n);
}

/* What goes into the first layer: x, plus the types' vectors (types NULL: those of type 0), plus the positions, the norm, then
 * dropout. */
static qkv_tensor *place_tokens(const qkv__transformer *m, const qkv__stack *s, qkv_tensor *x, const qkv__pass *pass)
{
    static const int32_t zero[1] = { 0 };
    const qkv_config *o = &m->o;
    if (!x) return NULL;
    if (s->types.weight)
        x = qkv_add(x, pass->types ? qkv_embedding_forward(&s->types, x->tape, pass->types, x->shape[0], x->shape[1])
                                   : qkv_embedding_forward(&s->types, x->tape, zero, 1, 1));
    x = add_positions(o, s, x, pass->places);
    if (o->embed_norm) x = qkv_norm_forward(&s->embed_norm, x);
    x = qkv_dropout(x, o->dropout);
    return s->widen.weight ? qkv_linear_forward(&s->widen, x) : x;
}

/* Keys that nobody sees, of both attentions. */
static void hide_keys(qkv_tape *t, int64_t length, qkv__pass *pass)
{
    int64_t source = pass->memory ? pass->memory->shape[1] : 0;
    pass->self.keep = qkv__hidden_keys(t, &pass->touches, qkv__self_of(pass), length, 0);
    pass->cross.keep = source ? qkv__hidden_keys(t, &pass->touches, QKV_ATTENTION_CROSS, source, 0) : NULL;
    memcpy(pass->self.keep_shape, (int64_t[]){ 1, 1, 1, length }, sizeof pass->self.keep_shape);
    memcpy(pass->cross.keep_shape, (int64_t[]){ 1, 1, 1, source }, sizeof pass->cross.keep_shape);
}

/* What a forward of (batch, length) tokens has beside them. False with the error on the tape. */
static bool start_pass(const qkv__transformer *m, int which, qkv_tape *t, int64_t batch, int64_t length, qkv__pass *pass)
{
    if (!t || !m || qkv_tape_status(t)) return false;
    const qkv__stack *s = &m->stacks[which];
    if (!s->n) return qkv__error(t, QKV_USAGE, "transformer: the model has no %s", stack_names[which]);
    pass->o = &m->o;
    pass->stack = which;
    pass->places = pass->ragged ? pass->ragged->positions : qkv__moved_positions(t, &pass->touches, which, batch, length);
    qkv__set_rotary(m, pass->places, pass);
    pass->longest = pass->ragged ? pass->ragged->longest : length;
    if (pass->touches.n) hide_keys(t, length, pass);
    return !qkv_tape_status(t);
}

qkv_tensor *qkv__final_norm(const qkv__transformer *m, int which, qkv_tensor *x)
{
    return m->o.pre_norm ? qkv_norm_forward(&m->stacks[which].final_norm, x) : x;
}

/* x, the tokens' embeddings, through the layers; one that is off computes, so that its attention can be seen. */
static qkv_tensor *run_layers(const qkv__transformer *m, int which, qkv_tensor *x, qkv__pass *pass)
{
    const qkv__stack *s = &m->stacks[which];
    x = place_tokens(m, s, x, pass);
    for (pass->layer = 0; x && pass->layer < s->n; pass->layer++) {
        qkv__keep_hidden(x->tape, x);
        qkv__set_relative(m, x->tape, pass);
        qkv_tensor *y = qkv__layer_forward(&s->layers[pass->layer], x, pass);
        if (!y || !qkv__layer_is_off(&pass->touches, which, pass->layer)) x = y;
    }
    x = qkv__final_norm(m, which, x);
    if (x) qkv__keep_hidden(x->tape, x);
    return x;
}

static qkv_tensor *run_stack(const qkv__transformer *m, int which, qkv_tape *t, const qkv_tokens *x, qkv__pass *pass)
{
    if (m) pass->touches = m->touches;
    if (!start_pass(m, which, t, x->rows, x->length, pass)) return NULL;
    return run_layers(m, which, embed_ids(m, which, t, x->ids, x->rows, x->length), pass);
}

qkv_tensor *qkv__run_embedded(const qkv__transformer *m, int which, qkv_tensor *embedded, qkv_tensor *memory)
{
    if (!embedded) return NULL;
    qkv__pass pass = { .touches = m->touches, .self = { .causal = which == DECODER }, .memory = memory };
    return start_pass(m, which, embedded->tape, 1, embedded->shape[1], &pass) ? run_layers(m, which, embedded, &pass) : NULL;
}

qkv_tensor *qkv__run_layer(const qkv__transformer *m, int which, int layer, qkv_tensor *x, qkv_tensor *memory,
                           qkv__touches touches, const qkv__trail *trail)
{
    if (!x) return NULL;
    qkv__pass pass = {
        .touches = touches, .self = { .causal = which == DECODER }, .memory = memory, .trail = trail, .layer = layer
    };
    if (!start_pass(m, which, x->tape, 1, x->shape[1], &pass)) return NULL;
    qkv__set_relative(m, x->tape, &pass);
    return qkv__layer_forward(&m->stacks[which].layers[layer], x, &pass);
}

/* ---- rows of different lengths ---- */

static int64_t real_tokens(const qkv_tokens *x, int64_t row) { return x->lengths ? x->lengths[row] : x->length; }

static bool measure_rows(qkv_tape *t, const qkv_tokens *x, qkv__ragged *r)
{
    *r = (qkv__ragged){ .n = x->rows, .lengths = qkv__save(t, sizeof *r->lengths * (size_t)x->rows) };
    for (int64_t i = 0; r->lengths && i < x->rows; i++) {
        int64_t n = r->lengths[i] = real_tokens(x, i);
        r->tokens += n;
        r->longest = qkv__max(r->longest, n);
    }
    r->positions = r->lengths ? qkv__save(t, sizeof *r->positions * (size_t)r->tokens) : NULL;
    return r->positions;
}

/* The real ones of (rows, length) numbers, one row after the other; NULL for NULL. */
static const int32_t *without_padding(qkv_tape *t, const int32_t *from, const qkv_tokens *x, const qkv__ragged *r)
{
    int32_t *all = from ? qkv__save(t, sizeof *all * (size_t)r->tokens) : NULL, *to = all;
    for (int64_t i = 0; all && i < r->n; to += r->lengths[i++])
        if (r->lengths[i]) memcpy(to, from + i * x->length, sizeof *to * (size_t)r->lengths[i]);
    return all;
}

/* The same as rows with padding, the tokens of all rows one after the other: what can be changed in attention is written for
 * such rows. */
static qkv_tensor *encode_touched(const qkv__transformer *m, qkv_tape *t, const qkv_tokens *x, const qkv__ragged *r)
{
    qkv_tensor *y = qkv__transformer_encode(m, t, x);
    int32_t *places = qkv__save(t, sizeof *places * (size_t)r->tokens), *to = places;
    for (int64_t i = 0; places && i < r->n; i++)
        for (int64_t k = 0; k < r->lengths[i]; k++) *to++ = (int32_t)(i * x->length + k);
    y = qkv_reshape(y, 2, (int64_t[]){ x->rows * x->length, m->o.dim });
    return places ? qkv_gather(t, y, places, 2, (int64_t[]){ r->tokens, 1 }) : NULL;
}

qkv_tensor *qkv__encode_rows(const qkv__transformer *m, qkv_tape *t, qkv_tape *layer_tape, const qkv_tokens *x)
{
    qkv__ragged r;
    if (qkv_tape_status(t) || !measure_rows(t, x, &r)) return NULL;
    if (m->touches.n) return encode_touched(m, t, x, &r);
    for (int64_t i = 0, at = 0; i < r.n; i++)
        for (int64_t k = 0; k < r.lengths[i]; k++) r.positions[at++] = (int32_t)k;
    qkv__pass pass = { .layer_tape = layer_tape, .types = without_padding(t, x->types, x, &r), .ragged = &r };
    const qkv_tokens flat = { .ids = without_padding(t, x->ids, x, &r), .rows = r.tokens, .length = 1 };
    return run_stack(m, ENCODER, t, &flat, &pass);
}

qkv_tensor *qkv__pad_rows(qkv_tensor *tokens, const qkv_tokens *x)
{
    if (!tokens) return NULL;
    int64_t dim = qkv__last(tokens), shape[3] = { x->rows, x->length, dim };
    if (qkv__rows(tokens) == x->rows * x->length) return qkv__alias(tokens->tape, tokens, 3, shape);
    qkv_tensor *y = qkv_constant(tokens->tape, 3, shape, NULL);
    const float *from = qkv_tensor_data(tokens);
    for (int64_t i = 0; y && i < x->rows; from += real_tokens(x, i++) * dim)
        memcpy(qkv__tensor_data(y) + i * x->length * dim, from, sizeof(float) * (size_t)(real_tokens(x, i) * dim));
    return y;
}

/* ---- whole sequences ---- */

qkv_tensor *qkv__transformer_encode(const qkv__transformer *m, qkv_tape *t, const qkv_tokens *x)
{
    if (t && m && x->types && !m->o.token_types) return qkv__error(t, QKV_USAGE, "transformer: its tokens have no types");
    return run_stack(m, ENCODER, t, x, &(qkv__pass){ .self = { .key_lengths = x->lengths }, .types = x->types });
}

qkv_tensor *qkv__transformer_decode(const qkv__transformer *m, qkv_tape *t, const qkv_tokens *x, qkv_tensor *memory,
                                    const int32_t *memory_lengths)
{
    if (t && m && !qkv_tape_status(t) && !memory != !m->stacks[ENCODER].n)
        return qkv__error(t, QKV_USAGE, "transformer: a decoder %s",
                          memory ? "alone reads no memory" : "with an encoder needs its memory");
    return run_stack(m, DECODER, t, x,
                     &(qkv__pass){ .self = { .causal = 1, .key_lengths = x->lengths },
                                   .memory = memory,
                                   .cross = { .key_lengths = memory_lengths } });
}

qkv_tensor *qkv__head_forward(const qkv__transformer *m, qkv_tensor *x)
{
    return qkv_norm_forward(&m->head_norm, qkv__activate(m->o.activation, qkv_linear_forward(&m->head, x)));
}

qkv_tensor *qkv__output_logits(const qkv__transformer *m, qkv_tensor *hidden, const qkv_linear *output)
{
    float cap = m->o.logit_softcap;
    if (m->o.scaled_output) hidden = qkv_scale(hidden, 1 / sqrtf((float)m->o.dim));
    qkv_tensor *logits = qkv_linear_forward(output, m->o.head ? qkv__head_forward(m, hidden) : hidden);
    return cap > 0 ? qkv_scale(qkv_tanh(qkv_scale(logits, 1 / cap)), cap) : logits;
}

qkv_tensor *qkv__transformer_logits(const qkv__transformer *m, qkv_tensor *hidden)
{
    return m && hidden ? qkv__output_logits(m, hidden, &m->output) : NULL;
}
