/* architecture.c: a Transformer as a list of its parts, each with its shape and how many weights it has. */
#include "view.h"
#include "architecture.h"
#include "text_label.h"

#include "../term/translator.h"
#include "../../src/base/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EMBEDDING = 0xf6dbe3, ATTENTION = 0xfce0b8, FEED_FORWARD = 0xd3e6f7, NORM = 0xf4f1bf, OUTPUT = 0xdcefd9 };
static const char call[] = "model drawing";

typedef struct maker {
    qkv_config o;
    qkv_model_drawing_opts opts;
    qkv__architecture *a;
    qkv__stack_drawing *s; /* the one at hand */
    char lengths[2][24];   /* of source and target, in shapes */
} maker;

/* ---- numbers ---- */

/* 1050624 as 1,050,624. */
static const char *grouped(char text[32], int64_t n)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = digits[i];
    }
    text[used] = '\0';
    return text;
}

static int64_t attention_weights(const qkv_config *o)
{
    int64_t kv_heads = o->kv_heads ? o->kv_heads : o->heads, d_k = o->d_k ? o->d_k : o->dim / o->heads;
    int64_t wide = o->heads * d_k, narrow = kv_heads * d_k, weights = 2 * o->dim * (wide + narrow);
    if (!o->no_bias || o->qkv_bias) weights += wide + 2 * narrow;
    return weights + (o->no_bias ? 0 : o->dim);
}

static int64_t ffn_weights(const qkv_config *o)
{
    int64_t into = o->activation >= QKV_ACTIVATION_SWIGLU ? 2 : 1;
    return (into + 1) * o->dim * o->d_ff + (o->no_bias ? 0 : into * o->d_ff + o->dim);
}

static int64_t norm_weights_of(const qkv_config *o, int64_t width)
{
    return o->norm == QKV_NORM_RMS || o->no_norm_bias ? width : 2 * width;
}

static int64_t norm_weights(const qkv_config *o) { return norm_weights_of(o, o->dim); }

static int64_t embed_width(const qkv_config *o) { return o->embed_dim ? o->embed_dim : o->dim; }

/* How often the weights of a layer are there, of a stack with so many. */
static int64_t copies_of_layer(const qkv_config *o, int64_t layers) { return o->shared_layers && layers ? 1 : layers; }

/* ---- blocks ---- */

/* A block whose second line is what was put into more, and its weights; copies: how often it is there. */
static qkv__block *add_block(maker *m, const char *name, uint32_t colour, int64_t weights, int64_t copies)
{
    qkv__block *b = &m->s->blocks[m->s->n++];
    char number[32];
    size_t used = strlen(b->more);
    snprintf(b->name, sizeof b->name, "%s", name);
    b->colour = colour;
    b->residual = -1;
    b->weights = weights * copies;
    m->a->weights += b->weights;
    if (!weights) return b;
    snprintf(b->more + used, sizeof b->more - used, used ? qkv__translated(", %s weights") : qkv__translated("%s weights"),
             grouped(number, weights));
    return b;
}

/* Where the second line of the next block is written. */
static char *next_more(maker *m)
{
    char *more = m->s->blocks[m->s->n].more;
    *more = '\0';
    return more;
}

static const char *norm_name(const qkv_config *o) { return o->norm == QKV_NORM_RMS ? "RMSNorm" : "LayerNorm"; }

static void add_norm(maker *m, int64_t copies)
{
    next_more(m);
    add_block(m, norm_name(&m->o), NORM, norm_weights(&m->o), copies);
}

/* The norm before attention, of a model whose first layer has none. */
static void add_norm_but_first(maker *m)
{
    snprintf(next_more(m), QKV__BLOCK_TEXT, "%s", qkv__translated("not in the first layer"));
    add_block(m, norm_name(&m->o), NORM, norm_weights(&m->o), copies_of_layer(&m->o, m->s->layers - 1));
}

static void add_positions(maker *m)
{
    const qkv_config *o = &m->o;
    int64_t rows = o->max_positions + o->first_position, width = embed_width(o);
    char *more = next_more(m);
    if (o->positions == QKV_POSITION_LEARNED) {
        snprintf(more, QKV__BLOCK_TEXT, "%lld × %lld", (long long)rows, (long long)width);
        add_block(m, qkv__translated("+ learned positions"), EMBEDDING, rows * width, 1);
    } else if (o->positions != QKV_POSITION_ROPE && o->positions != QKV_POSITION_NONE) {
        snprintf(more, QKV__BLOCK_TEXT, "%s", qkv__translated("nothing to learn"));
        add_block(m, qkv__translated("+ positions: sines and cosines"), EMBEDDING, 0, 1);
    }
}

static void add_embeddings(maker *m, int64_t vocabulary, bool is_shared)
{
    const qkv_config *o = &m->o;
    int64_t width = embed_width(o);
    char *more = next_more(m), times[64] = "";
    if (!o->unscaled) snprintf(times, sizeof times, " · √%lld", (long long)o->dim);
    snprintf(more, QKV__BLOCK_TEXT, "%lld × %lld%s%s", (long long)vocabulary, (long long)width, times,
             is_shared ? qkv__translated(", the table of the encoder") : "");
    add_block(m, qkv__translated("Token embedding"), EMBEDDING, is_shared ? 0 : vocabulary * width, 1);
    if (o->token_types && !m->s->is_decoder) {
        snprintf(next_more(m), QKV__BLOCK_TEXT, "%lld × %lld", (long long)o->token_types, (long long)width);
        add_block(m, qkv__translated("+ token types"), EMBEDDING, o->token_types * width, 1);
    }
    add_positions(m);
    if (o->embed_norm) next_more(m), add_block(m, norm_name(o), NORM, norm_weights_of(o, width), 1);
    if (!o->embed_dim) return;
    snprintf(next_more(m), QKV__BLOCK_TEXT, "%lld × %lld", (long long)width, (long long)o->dim);
    add_block(m, qkv__translated("Projection"), EMBEDDING, (width + 1) * o->dim, 1);
}

/* ---- one layer ---- */

static void add_attention(maker *m, const char *name, bool is_cross)
{
    const qkv_config *o = &m->o;
    int64_t d_k = o->d_k ? o->d_k : o->dim / o->heads;
    char *more = next_more(m), groups[64] = "", window[64] = "";
    int64_t norms = o->qk_norm && !is_cross ? 2 * d_k : 0;
    bool is_rotary = o->positions == QKV_POSITION_ROPE && !is_cross;
    if (o->kv_heads && o->kv_heads != o->heads)
        snprintf(groups, sizeof groups, qkv__translated(", %lld of K and V"), (long long)o->kv_heads);
    if (o->window_size && !is_cross)
        snprintf(window, sizeof window, qkv__translated(", window %lld"), (long long)o->window_size);
    snprintf(more, QKV__BLOCK_TEXT, qkv__translated("%lld heads%s, d_k = %lld%s"), (long long)o->heads, groups, (long long)d_k,
             is_rotary                          ? qkv__translated(", rotary positions")
             : o->relative_buckets && !is_cross ? qkv__translated(", a bias by distance")
                                                : "");
    strncat(more, window, QKV__BLOCK_TEXT - strlen(more) - 1);
    add_block(m, name, ATTENTION, attention_weights(o) + norms, copies_of_layer(o, m->s->layers))->takes_memory = is_cross;
    if (!is_cross) m->a->weights += o->relative_buckets * o->heads; /* one table for all layers */
}

static void add_ffn(maker *m)
{
    static const char *const names[] = { "ReLU", "GELU", "GELU", "SiLU", "SwiGLU", "GeGLU", "GeGLU" };
    const qkv_config *o = &m->o;
    snprintf(next_more(m), QKV__BLOCK_TEXT, qkv__translated("%lld → %lld → %lld, %s"), (long long)o->dim, (long long)o->d_ff,
             (long long)o->dim, names[o->activation]);
    add_block(m, qkv__translated("Feed-forward"), FEED_FORWARD, ffn_weights(o), copies_of_layer(o, m->s->layers));
}

/* The sum with what passed by, and, as in the paper, the norm after it. */
static void add_residual(maker *m, int from)
{
    char name[QKV__BLOCK_TEXT];
    next_more(m);
    if (m->o.pre_norm) {
        add_block(m, qkv__translated("Add"), NORM, 0, 1)->residual = from;
        return;
    }
    snprintf(name, sizeof name, qkv__translated("Add and %s"), norm_name(&m->o));
    add_block(m, name, NORM, norm_weights(&m->o), copies_of_layer(&m->o, m->s->layers))->residual = from;
}

typedef enum sub_layer { SELF, CROSS, FFN } sub_layer;

static void add_sub_layer(maker *m, sub_layer which)
{
    int from = m->s->n;
    if (m->o.pre_norm && which == SELF && m->o.no_first_norm) add_norm_but_first(m);
    else if (m->o.pre_norm) add_norm(m, copies_of_layer(&m->o, m->s->layers));
    if (which == SELF)
        add_attention(m, m->s->is_decoder ? qkv__translated("② Masked self-attention") : qkv__translated("① Self-attention"),
                      false);
    else if (which == CROSS) add_attention(m, qkv__translated("③ Cross-attention"), true);
    else add_ffn(m);
    if (m->o.post_norm) add_norm(m, copies_of_layer(&m->o, m->s->layers));
    add_residual(m, from);
}

/* ---- the output ---- */

static int64_t head_weights(const qkv_config *o)
{
    int64_t width = embed_width(o);
    return o->head ? (o->dim + (o->no_head_bias ? 0 : 1)) * width + norm_weights_of(o, width) : 0;
}

static void add_classifier(maker *m)
{
    static const char *const pooling[] = { QKV__N("the mean of all tokens"), QKV__N("the first token"),
                                           QKV__N("the last token"), QKV__N("a learned mean of the tokens") };
    const qkv_config *o = &m->o;
    if (!o->classes_of) {
        snprintf(next_more(m), QKV__BLOCK_TEXT, "%s", qkv__translated(pooling[o->pooling]));
        add_block(m, qkv__translated("Pooling"), OUTPUT, o->pooling == QKV_POOLING_ATTENTION ? o->dim : 0, 1);
    }
    if (o->pooler == QKV_POOLER_HEAD) {
        snprintf(next_more(m), QKV__BLOCK_TEXT, qkv__translated("%lld × %lld, %s"), (long long)o->dim, (long long)o->dim,
                 norm_name(o));
        add_block(m, qkv__translated("Head"), OUTPUT, head_weights(o), 1);
    } else if (o->pooler && !o->classes_of) {
        snprintf(next_more(m), QKV__BLOCK_TEXT, qkv__translated("%lld × %lld, %s"), (long long)o->dim, (long long)o->dim,
                 o->pooler == QKV_POOLER_TANH   ? "tanh"
                 : o->pooler == QKV_POOLER_GELU ? "GELU"
                                                : "ReLU");
        add_block(m, qkv__translated("Pooler"), OUTPUT, (o->dim + 1) * o->dim, 1);
    }
    snprintf(next_more(m), QKV__BLOCK_TEXT, "%lld × %lld", (long long)o->dim, (long long)o->classes);
    add_block(m, qkv__translated("Classifier"), OUTPUT, (o->dim + 1) * o->classes, 1);
    if (!o->ngrams) return;
    snprintf(next_more(m), QKV__BLOCK_TEXT, qkv__translated("counts of words and pairs, %lld × %lld"),
             (long long)(o->vocab_size + o->ngrams), (long long)o->classes);
    add_block(m, qkv__translated("Naive Bayes"), OUTPUT, (o->vocab_size + o->ngrams + 2) * o->classes + 5, 1);
}

static int64_t output_size(const qkv_config *o) { return o->target_vocab_size ? o->target_vocab_size : o->vocab_size; }

static int64_t output_width(const qkv_config *o) { return o->head ? embed_width(o) : o->dim; }

static int64_t output_weights(const qkv_config *o)
{
    return (o->untied ? output_width(o) * output_size(o) : 0) + (o->output_bias ? output_size(o) : 0);
}

/* The layer before the softmax. */
static void add_output(maker *m)
{
    const qkv_config *o = &m->o;
    int64_t size = output_size(o);
    if (o->head) {
        snprintf(next_more(m), QKV__BLOCK_TEXT, qkv__translated("%lld × %lld, %s"), (long long)o->dim,
                 (long long)output_width(o), norm_name(o));
        add_block(m, qkv__translated("Head"), OUTPUT, head_weights(o), 1);
    }
    snprintf(next_more(m), QKV__BLOCK_TEXT, "%lld × %lld%s", (long long)output_width(o), (long long)size,
             o->untied ? "" : qkv__translated(", tied: the embedding's matrix"));
    add_block(m, qkv__translated("Output layer"), OUTPUT, output_weights(o), 1);
    snprintf(next_more(m), QKV__BLOCK_TEXT, qkv__translated("%s × %lld probabilities"), m->lengths[m->s->is_decoder],
             (long long)size);
    add_block(m, "Softmax", OUTPUT, 0, 1);
}

/* What a model has and this job of it does not use. */
static int64_t unused_weights(const qkv_config *o)
{
    bool has_own_pooler = o->pooler && o->pooler != QKV_POOLER_HEAD;
    int64_t pooler = has_own_pooler && (!o->classes || o->classes_of) ? (o->dim + 1) * o->dim : 0;
    if (!o->classes) return pooler;
    return (o->pooler == QKV_POOLER_HEAD ? 0 : head_weights(o)) + output_weights(o) + pooler;
}

/* ---- the whole ---- */

static void make_stack(maker *m, bool is_decoder)
{
    const qkv_config *o = &m->o;
    bool both = o->encoder_layers && o->decoder_layers;
    qkv__stack_drawing *s = m->s = &m->a->stacks[m->a->n++];
    s->is_decoder = is_decoder;
    s->layers = is_decoder ? o->decoder_layers : o->encoder_layers;
    snprintf(s->input, sizeof s->input,
             !both        ? qkv__translated("%s tokens, as ids")
             : is_decoder ? qkv__translated("%s target tokens, shifted right")
                          : qkv__translated("%s source tokens"),
             m->lengths[is_decoder]);
    snprintf(s->shape, sizeof s->shape, "%s × %lld", m->lengths[is_decoder], (long long)o->dim);
    int64_t own = is_decoder ? o->target_vocab_size : 0;
    add_embeddings(m, own ? own : o->vocab_size, both && is_decoder && !own);
    s->first = s->n;
    add_sub_layer(m, SELF);
    if (both && is_decoder) add_sub_layer(m, CROSS);
    add_sub_layer(m, FFN);
    s->last = s->n - 1;
    if (o->pre_norm) add_norm(m, 1);
}

static void add_note(maker *m, const char *text) { snprintf(m->a->notes[m->a->n_notes++], QKV__BLOCK_TEXT, "%s", text); }

static void make_notes(maker *m)
{
    const qkv_config *o = &m->o;
    char number[32], total[QKV__BLOCK_TEXT];
    bool both = o->encoder_layers && o->decoder_layers;
    if (o->encoder_layers) add_note(m, qkv__translated("① Every token sees every token of its text; padding is masked."));
    if (o->decoder_layers) add_note(m, qkv__translated("② Token i sees tokens 0 to i: a causal mask hides what comes later."));
    if (both) add_note(m, qkv__translated("③ Queries come from the decoder, keys and values from the encoder."));
    add_note(m, qkv__translated("Arrows around a block are residual connections: what goes in is added to what comes out."));
    snprintf(total, sizeof total,
             m->opts.tokens      ? qkv__translated("%s weights in all.")
             : both              ? qkv__translated("%s weights in all; S and T are the lengths of source and target.")
             : o->encoder_layers ? qkv__translated("%s weights in all; S is the length of the text.")
                                 : qkv__translated("%s weights in all; T is the length of the text."),
             grouped(number, m->a->weights));
    add_note(m, total);
}

static qkv_status check_model(const qkv_config *o)
{
    bool is_whole = o->vocab_size > 0 && o->dim > 0 && o->heads > 0 && o->d_ff > 0 && o->encoder_layers >= 0 &&
                    o->decoder_layers >= 0 && o->encoder_layers + o->decoder_layers > 0;
    bool is_known = (unsigned)o->activation <= QKV_ACTIVATION_GEGLU_TANH && (unsigned)o->pooling <= QKV_POOLING_ATTENTION;
    if (is_whole && is_known) return QKV_OK;
    return qkv__fail(QKV_USAGE, "%s: %lld tokens, dim %lld, %lld heads, d_ff %lld, %d and %d layers make no model", call,
                     (long long)o->vocab_size, (long long)o->dim, (long long)o->heads, (long long)o->d_ff, o->encoder_layers,
                     o->decoder_layers);
}

qkv_status qkv__architecture_make(const qkv_config *model, const qkv_model_drawing_opts *opts, qkv__architecture *out)
{
    maker m = { .a = out };
    if (!model) return qkv__fail(QKV_USAGE, "%s: there is no model", call);
    qkv_status status = QKV__READ_OPTIONS(&m.o, no_head_bias, model, call);
    if (!status) status = QKV__READ_OPTIONS(&m.opts, title, opts, call);
    if (!status && m.opts.tokens < 0) status = qkv__fail(QKV_USAGE, "%s: the number of tokens is negative", call);
    for (int i = 0; i < 2; i++) {
        if (m.opts.tokens) snprintf(m.lengths[i], sizeof m.lengths[i], "%lld", (long long)m.opts.tokens);
        else snprintf(m.lengths[i], sizeof m.lengths[i], "%s", i ? "T" : "S");
    }
    if (!status) status = check_model(&m.o);
    if (!status) status = qkv__check_label(call, "the title", m.opts.title);
    if (status) return status;
    *out = (qkv__architecture){ .n = 0 };
    if (m.o.encoder_layers) make_stack(&m, false);
    if (m.o.decoder_layers) make_stack(&m, true);
    if (m.o.classes) add_classifier(&m);
    else add_output(&m);
    out->weights += unused_weights(&m.o);
    snprintf(out->title, sizeof out->title, "%s", m.opts.title ? m.opts.title : "Transformer");
    make_notes(&m);
    return QKV_OK;
}
