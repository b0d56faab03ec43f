/* lesson_architecture.c: lesson 11: the whole Transformer: its parts, its three attentions, the shapes through it. */
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VOCABULARY = 100, BATCH = 2, SOURCE = 5, TARGET = 4, PAPER_VOCABULARY = 37000 };

static const int32_t source[BATCH * SOURCE] = { 11, 12, 13, 14, 2, 21, 22, 23, 2, 0 }, source_lengths[BATCH] = { 5, 4 };
static const int32_t target[BATCH * TARGET] = { 1, 31, 32, 33, 1, 41, 42, 0 }, target_lengths[BATCH] = { 4, 3 };

/* ---- the plan ---- */

static void show_plan(void)
{
    say(_("A Transformer translates a sequence into another. The encoder reads the source and makes a vector of every token. "
          "The decoder writes the target token by token, and looks at both. From the bottom to the top:"));
    static const char *const plan[] = {
        N_("source ids -> embedding x sqrt(d_model) + position -> dropout"),
        N_("  encoder layer, N = 6 times:"),
        N_("    self-attention (all see all)          then LayerNorm(x + Sublayer(x))"),
        N_("    feed-forward                          then LayerNorm(x + Sublayer(x))"),
        N_("target ids, shifted right -> embedding x sqrt(d_model) + position -> dropout"),
        N_("  decoder layer, N = 6 times:"),
        N_("    masked self-attention (no look ahead) then LayerNorm(x + Sublayer(x))"),
        N_("    cross-attention to the encoder        then LayerNorm(x + Sublayer(x))"),
        N_("    feed-forward                          then LayerNorm(x + Sublayer(x))"),
        N_("linear layer (tied to the embedding) -> softmax -> the next token"),
    };
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) printf("    %s\n", _(plan[i]));
    putchar('\n');
    say(_(
        "A sub-layer is attention or feed-forward; an encoder layer has 2 of them, a decoder layer 3. Around each one goes a "
        "residual connection and a layer norm, so all of them, and the embeddings, give vectors of one width, d_model = 512 in "
        "the paper."));
}

/* ---- shapes ---- */

typedef struct passage {
    qkv_tensor *memory, *hidden, *logits;
} passage;

static qkv_status pass_through(const qkv_model *m, qkv_tape *t, const int32_t *target_ids, passage *p)
{
    qkv_tape_reset(t);
    p->memory = qkv_model_encode(m, t,
                                 &(qkv_tokens){ .ids = source, .rows = BATCH, .length = SOURCE, .lengths = source_lengths });
    p->hidden = qkv_model_decode(m, t,
                                 &(qkv_tokens){ .ids = target_ids, .rows = BATCH, .length = TARGET, .lengths = target_lengths },
                                 p->memory, source_lengths);
    p->logits = qkv_model_logits(m, p->hidden);
    return qkv_tape_status(t) ? library_failed() : QKV_OK;
}

static void show_shapes(const qkv_tape *t, const passage *p, const qkv_config *o)
{
    say_heading(_("Shapes, computed"));
    say(_("A small one is made now: N = %d, d_model = %d, h = %d, d_ff = %d, a vocabulary of %d. %d sources of %d tokens and "
          "%d targets of %d go through it:"),
        o->encoder_layers, (int)o->dim, (int)o->heads, (int)o->d_ff, VOCABULARY, BATCH, SOURCE, BATCH, TARGET);
    show_shape(_("source embedded, with positions"), qkv_tape_hidden(t, 0));
    show_shape(_("after encoder layer 0"), qkv_tape_hidden(t, 1));
    show_shape(_("encoder's output, the memory"), p->memory);
    show_shape(_("target embedded, with positions"), qkv_tape_hidden(t, o->encoder_layers + 1));
    show_shape(_("decoder's output"), p->hidden);
    show_shape(_("logits: a score for every word"), p->logits);
    putchar('\n');
}

/* ---- the three attentions ---- */

/* The largest weight on keys that the mask should hide: those after the query, or those past the length. */
static double largest_hidden(const qkv_tensor *w, bool is_causal, const int32_t *lengths)
{
    int64_t heads = qkv_tensor_dim(w, 1), queries = qkv_tensor_dim(w, 2), keys = qkv_tensor_dim(w, 3);
    double most = 0;
    for (int64_t i = 0; i < qkv_tensor_count(w); i++) {
        int64_t key = i % keys, query = i / keys % queries, row = i / (keys * queries * heads);
        if ((is_causal && key > query) || key >= lengths[row]) most = fmax(most, (double)qkv_tensor_data(w)[i]);
    }
    return most;
}

static void show_attentions(const qkv_tape *t, const qkv_config *o)
{
    int first = o->encoder_layers; /* the encoder's come first, then self and cross of each decoder layer */
    const qkv_tensor *encoder = qkv_tape_attention(t, 0), *self = qkv_tape_attention(t, first);
    const qkv_tensor *cross = qkv_tape_attention(t, first + 1);
    say_heading(_("The three attentions"));
    say(_("One formula in three places. Their weights have the shape (batch, heads, queries, keys):"));
    show_shape(_("encoder: Q, K, V of the source"), encoder);
    show_shape(_("decoder: Q, K, V of the target, causal"), self);
    show_shape(_("cross: Q of the target, K, V of the memory"), cross);
    putchar('\n');
    say(_("The second source has only 4 tokens; the largest weight on its padding is %.0f in the encoder and %.0f in the "
          "cross-attention. The largest weight on a later token in the decoder is %.0f."),
        largest_hidden(encoder, false, source_lengths), largest_hidden(cross, false, source_lengths),
        largest_hidden(self, true, target_lengths));
}

/* ---- what may change what ---- */

static int count_changed(const float *a, const float *b, int64_t from, int64_t to)
{
    int n = 0;
    for (int64_t i = from; i < to; i++) n += a[i] != b[i];
    return n;
}

static qkv_status show_causality(const qkv_model *m, qkv_tape *t, const passage *before)
{
    int64_t d = qkv_tensor_dim(before->hidden, 2);
    float kept[TARGET * 256];
    int32_t other[BATCH * TARGET];
    passage p;
    memcpy(kept, qkv_tensor_data(before->hidden), sizeof(float) * (size_t)(TARGET * d));
    memcpy(other, target, sizeof other);
    other[TARGET - 1] = 77;
    qkv_status status = pass_through(m, t, other, &p);
    if (status) return status;
    const float *now = qkv_tensor_data(p.hidden);
    say(_("With another last token in the first target, %d of the %d numbers of the tokens before it change, and %d of its own "
          "%d. So all places of a target can be trained at once, each predicting the token after it: the target goes in "
          "shifted "
          "right, one place later than it is asked for."),
        count_changed(kept, now, 0, (TARGET - 1) * d), (int)((TARGET - 1) * d),
        count_changed(kept, now, (TARGET - 1) * d, TARGET * d), (int)d);
    return QKV_OK;
}

/* ---- sizes ---- */

static qkv_status show_sizes(int64_t made, const qkv_config *tiny)
{
    static const char *const presets[] = { "tiny", "small", "base", "big" };
    say_heading(_("Sizes"));
    say(_("The small one has %lld weights; by the formulas, 4 d^2 + 4 d for an attention, 2 d d_ff + d + d_ff for a "
          "feed-forward, 2 d for a norm and d for each word, it should have %.0f. By the same formulas, with a vocabulary of "
          "%d, "
          "in millions:"),
        (long long)made, count_weights(tiny).total, PAPER_VOCABULARY);
    printf("    %-6s %3s %6s %4s %6s %5s", "", "N", "d", "h", "d_ff", "d_k");
    print_name(_("embedding"), 12, true), print_name(_("attention"), 12, true), print_name(_("feed-forward"), 14, true);
    print_name(_("in all"), 10, true), putchar('\n');
    for (int i = 0; i < 4; i++) {
        qkv_config o = { 0 };
        if (qkv_config_preset(presets[i], PAPER_VOCABULARY, &o)) return library_failed();
        weight_counts n = count_weights(&o);
        printf("    %-6s %3d %6d %4d %6d %5d%12.1f%12.1f%14.1f%10.1f\n", presets[i], o.encoder_layers, (int)o.dim, (int)o.heads,
               (int)o.d_ff, (int)(o.dim / o.heads), n.embedding / 1e6, n.attention / 1e6, n.feed_forward / 1e6, n.total / 1e6);
    }
    putchar('\n');
    say(_("\"base\" and \"big\" are the paper's, which counts 65 and 213 million."));
    return QKV_OK;
}

static qkv_status teach_architecture(qkv_model *m, qkv_tape *t, const qkv_config *o)
{
    passage through;
    qkv_status status = pass_through(m, t, target, &through);
    if (status) return status;
    show_plan(), show_shapes(t, &through, o), show_attentions(t, o);
    status = show_causality(m, t, &through);
    return status ? status : show_sizes(qkv_model_get_info(m)->parameters, o);
}

static qkv_status run_architecture_lesson(void)
{
    qkv_config o = { 0 };
    qkv_model *m = qkv_config_preset("tiny", VOCABULARY, &o) ? NULL : qkv_model_new(&o, 11);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1, .keep_hidden = 1 });
    qkv_status status = m && t ? teach_architecture(m, t, &o) : library_failed();
    qkv_tape_free(t);
    qkv_model_free(m);
    return status;
}

const lesson lesson_architecture = {
    .name = "11",
    .title = N_("The whole Transformer"),
    .run = run_architecture_lesson,
    .question = N_("While a translation of 20 tokens is written, how often does the encoder run, and how often the decoder?"),
    .answer = N_(
        "The encoder once: the source does not change. The decoder once for each token, 21 times with the end token, "
        "because each token must be known before the next can be asked for. In training it is different: the target is "
        "known, so encoder and decoder run once for all its places, and the causal mask keeps it honest."),
};
