/* recipe.c: what follows from the amount and kind of a text: the options that nobody set. docs/recipes.md has the measurements
 * that the numbers here come from. */
#include "job.h"

#include <qkv/unstable/util.h>
#include "training.h"

#include "../../src/base/buffer.h"

#include <math.h>

/* ---- looking at a text ---- */

static bool is_han(int32_t c) { return (c >= 0x3400 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff) || c >= 0x20000; }

void qkv__survey_text(qkv__survey *s, const char *text, size_t length)
{
    bool in_word = false;
    s->bytes += (double)length;
    for (size_t at = 0, bytes = 1; at < length; at += bytes ? bytes : 1) {
        int32_t c = qkv_utf8_next(text + at, length - at, &bytes);
        bool is_space = c >= 0 && qkv__is_space(c);
        s->characters++;
        s->han += c >= 0 && is_han(c);
        s->words += !is_space && !in_word;
        in_word = !is_space;
    }
}

/* ---- what the jobs share ---- */

static bool has_limit(const qkv_training *t) { return t->o.v.steps > 0 || QKV__IS_SET(&t->o, epochs) || t->o.v.minutes > 0; }

/* A rate belongs to its schedule and optimizer: where these are set, it keeps their default. */
static void choose_schedule(qkv_training *t, const char *schedule, double lr)
{
    bool is_free = !QKV__IS_GIVEN(&t->o, schedule) && !QKV__IS_GIVEN(&t->o, optimizer);
    if (!QKV__IS_GIVEN(&t->o, schedule)) qkv__choose(t, "schedule", "%s", schedule);
    if (is_free) qkv__choose(t, "lr", "%g", lr);
    qkv__choose(t, "patience", "0");
}

/* A twentieth, and not more than about a thousand texts. Of few texts none can be spared. */
static void choose_split(qkv_training *t, int64_t texts)
{
    enum { FEWEST = 400, MOST_HELD = 1000 };
    if (t->o.v.valid.n || QKV__IS_SET(&t->o, split)) return;
    double share = texts < FEWEST ? 0 : texts / 20 > MOST_HELD ? (double)MOST_HELD / (double)texts : 0.05;
    t->has_too_few = texts < FEWEST;
    qkv__choose(t, "split", "%.4g", share > 0 ? 1 / round(1 / share) : 0);
}

static bool has_shape(const qkv_training *t) { return t->o.v.from != NULL; }

/* Nothing of a tokenizer that is there already. */
static void choose_tokens(qkv_training *t, const char *kind, int vocabulary)
{
    if (t->o.v.tokenizer) return;
    if (kind) qkv__choose(t, "tokens", "%s", kind);
    qkv__choose(t, "vocab", "%d", vocabulary);
}

static bool has_size(const qkv_training *t)
{
    return QKV__IS_GIVEN(&t->o, preset) || QKV__IS_GIVEN(&t->o, encoder_layers) || QKV__IS_GIVEN(&t->o, decoder_layers);
}

/* ---- translation ---- */

void qkv__choose_translation(qkv_training *t, const qkv__survey *s)
{
    int64_t n = s->texts;
    bool is_little = n < 12000, is_much = n >= 100000;
    choose_split(t, n);
    if (!has_shape(t)) {
        choose_tokens(t, NULL, n < 2500 ? 2000 : is_little ? 4000 : 8000);
        if (!is_little && !is_much && !has_size(t)) qkv__choose(t, "layers", "4"); /* deep and narrow */
        qkv__choose(t, "preset", "%s", is_much ? "small" : "tiny");
        qkv__choose(t, "pre-norm", "yes");
        qkv__choose(t, "positions", "sinusoid-halves");
    }
    qkv__choose(t, "dropout", "%g", is_little ? 0.3 : 0.2);
    qkv__choose(t, "attention-dropout", "0.1");
    qkv__choose(t, "inner-dropout", "0.1");
    qkv__choose(t, "label-smoothing", "0.1");
    qkv__choose(t, "max-tokens", "1024");
    choose_schedule(t, "linear", is_little || is_much ? 0.002 : 0.003);
    /* On so little the loss rises while translations get better, until the rate has come down. */
    if (n < 2500 && qkv__schedule_has_end(t)) qkv__choose(t, "metric", "last");
    if (!has_limit(t)) qkv__choose(t, "epochs", "%d", n < 2500 ? 60 : is_little ? 40 : is_much ? 8 : 25);
    if (s->han > 0.3 * s->characters) qkv__choose(t, "bleu-tokenizer", "zh");
    if (t->o.v.valid.n || t->o.v.split > 0) qkv__choose(t, "fit", "length");
}

/* ---- shapes ---- */

/* Rotary positions, norms before each sub-layer, a gate, no biases. */
static void choose_gated(qkv_training *t, const char *activation)
{
    qkv__choose(t, "pre-norm", "yes");
    qkv__choose(t, "positions", "rotary");
    qkv__choose(t, "activation", "%s", activation);
    qkv__choose(t, "no-bias", "yes");
    qkv__choose(t, "unscaled", "yes");
}

/* Layers with a gate, of 8/3 the width, have as many weights as those of 4 times the width without. */
static void choose_inner(qkv_training *t)
{
    static const int inner[] = { 352, 704, 1376, 2752 }; /* by preset */
    if (!QKV__IS_SET(&t->o, dim)) qkv__choose(t, "inner", "%d", inner[t->o.v.preset]);
}

/* Llama's: RMS norms, SiLU. */
static void choose_llama(qkv_training *t)
{
    choose_gated(t, "silu-gated");
    choose_inner(t);
    qkv__choose(t, "norm", "rms");
}

/* ModernBERT's: GELU, a norm of the embeddings instead of the first layer's. Its head comes when the model leaves or gets classes:
 * words are learned slower behind one. What has biases has them everywhere. */
static void choose_modernbert(qkv_training *t)
{
    choose_gated(t, "gelu-gated");
    qkv__choose(t, "embed-norm", "yes");
    if (t->o.v.pre_norm && t->o.v.embed_norm) qkv__choose(t, "no-first-norm", "yes");
    if (t->o.v.no_bias) qkv__choose(t, "no-norm-bias", "yes");
}

/* ---- classes ---- */

/* Words stand between spaces; in Chinese they do not. */
static bool has_words(const qkv__survey *s) { return s->han < 0.1 * s->characters; }

/* Word pairs that share a slot are confused, so there are many slots; with many classes fewer, to bound the memory. */
static void choose_ngrams(qkv_training *t)
{
    enum { MOST_COUNTS = 1 << 21 };
    int64_t slots = MOST_COUNTS / 2;
    while (slots * t->labels.n > MOST_COUNTS) slots /= 2;
    qkv__choose(t, "ngrams", "%lld", (long long)slots);
}

void qkv__choose_classes(qkv_training *t, const qkv__survey *s)
{
    const double words = s->words + s->han / 1.5; /* Chinese has no spaces */
    bool is_little = words < 4e5;
    choose_split(t, s->texts);
    if (!has_shape(t)) {
        if (!t->o.v.numbers && !t->o.v.label_separator && !s->pairs && !t->o.v.like) choose_ngrams(t);
        /* Byte pairs cut the same word differently from text to text, which spreads its counts. */
        const char *kind = has_words(s) ? "wordpunct" : t->o.v.ngrams ? "characters" : "bpe";
        choose_tokens(t, kind, t->o.v.ngrams || !is_little ? 16000 : 8000);
        if (!has_size(t)) qkv__choose(t, "layers", "1");
        qkv__choose(t, "preset", "tiny");
        choose_modernbert(t);
    }
    qkv__choose(t, "dropout", t->o.v.numbers ? "0.1" : "0.4"); /* what is dropped in training shifts a number later */
    qkv__choose(t, "inner-dropout", "0.2");
    qkv__choose(t, "label-smoothing", t->o.v.numbers ? "0" : "0.1");
    qkv__choose(t, "max-length", t->o.v.ngrams && is_little ? "512" : "400");
    qkv__choose(t, "max-tokens", "%d", words < 1e6 ? 2048 : 4096);
    /* On few texts attention adds little to the counts and soon overfits. */
    choose_schedule(t, "linear", t->o.v.ngrams && is_little ? 0.0005 : 0.001);
    if (!has_limit(t)) qkv__choose(t, "epochs", "%d", t->o.v.ngrams ? (is_little ? 3 : 2) : is_little ? 8 : 3);
}

/* ---- plain text ---- */

/* Lines that are short are parts of something longer. */
static bool is_running_text(const qkv__survey *s) { return s->characters / fmax((double)s->texts, 1) < 120; }

void qkv__choose_generation(qkv_training *t, const qkv__survey *s)
{
    bool is_running = is_running_text(s);
    qkv__choose(t, "documents", "%s", is_running ? "files" : "lines");
    choose_split(t, is_running ? (int64_t)(s->words / 100) : s->texts);
    if (!has_shape(t)) {
        qkv__choose(t, "preset", "small");
        choose_llama(t);
    }
    qkv__choose(t, "context", "256");
    qkv__choose(t, "dropout", "0.05");
    qkv__choose(t, "label-smoothing", "0");
    qkv__choose(t, "max-tokens", "2048");
    choose_schedule(t, "cosine", 0.002);
    if (!has_limit(t)) qkv__choose(t, "epochs", "5");
}

void qkv__choose_masking(qkv_training *t, const qkv__survey *s)
{
    qkv__choose(t, "documents", "%s", is_running_text(s) && s->blank ? "paragraphs" : "lines");
    choose_split(t, s->texts);
    if (!has_shape(t)) {
        choose_tokens(t, has_words(s) ? "words" : "bpe", 8000);
        qkv__choose(t, "preset", "tiny");
        choose_modernbert(t);
        choose_inner(t);
    }
    qkv__choose(t, "rate", "0.3");
    qkv__choose(t, "max-length", "128");
    qkv__choose(t, "dropout", "0.05");
    qkv__choose(t, "label-smoothing", "0");
    qkv__choose(t, "max-tokens", "2048");
    choose_schedule(t, "cosine", has_shape(t) ? 0.0015 : 0.003);
    if (!has_limit(t)) qkv__choose(t, "epochs", "14");
}
