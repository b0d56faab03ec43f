/* bleu.c: BLEU over a corpus, as sacreBLEU computes it. */
#include <qkv/score.h>

#include "score.h"

#include "../base/options.h"
#include "../base/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ORDER = QKV_BLEU_ORDER };

/* Memory that is kept from one sentence to the next. */
typedef struct bleu {
    qkv__corpus corpus;
    qkv_bleu_opts opts;
    qkv__score_words words;
    qkv__symbols hypothesis, reference; /* numbers of words */
    qkv__grams grams;
} bleu;

/* ---- counting ---- */

static qkv_status make_words(bleu *b, qkv__symbols *numbers)
{
    if (qkv__score_words_tokenize(&b->words, b->opts.tokenizer)) return QKV_MEMORY;
    return qkv__score_words_number(&b->words, numbers);
}

static qkv_status begin_hypothesis(bleu *b, int64_t i)
{
    qkv__trie_reset(&b->words.dictionary);
    qkv_status status = qkv__read_hypothesis(&b->corpus, i, b->opts.lowercase, &b->words);
    if (!status) status = make_words(b, &b->hypothesis);
    return status ? status : qkv__grams_begin(&b->grams, &b->hypothesis, ORDER);
}

static qkv_status count_reference(bleu *b, int r, int64_t i)
{
    qkv_status status = qkv__read_reference(&b->corpus, r, i, b->opts.lowercase, &b->words);
    if (!status) status = make_words(b, &b->reference);
    return status ? status : qkv__grams_reference(&b->grams, &b->reference);
}

/* The length nearest to the hypothesis; the shorter of two equally near. */
static int64_t nearer(int64_t length, int64_t a, int64_t b)
{
    int64_t from_a = llabs(length - a), from_b = llabs(length - b);
    if (from_a == from_b) return a < b ? a : b;
    return from_a < from_b ? a : b;
}

static qkv_status add_bleu_sentence(bleu *b, int64_t i, qkv_bleu_score *out)
{
    qkv_status status = begin_hypothesis(b, i);
    int64_t length = (int64_t)b->hypothesis.n, nearest = 0;
    for (int r = 0; !status && r < b->corpus.n_references; r++) {
        status = count_reference(b, r, i);
        nearest = r ? nearer(length, nearest, (int64_t)b->reference.n) : (int64_t)b->reference.n;
    }
    if (status) return status;
    out->hyp_length += length;
    out->ref_length += nearest;
    for (int n = 1; n <= ORDER; n++) out->totals[n - 1] += qkv__gram_count(b->hypothesis.n, n);
    qkv__grams_match(&b->grams, true, out->matches);
    return QKV_OK;
}

/* ---- the score ---- */

static double brevity_penalty(const qkv_bleu_score *s)
{
    if (s->hyp_length >= s->ref_length) return 1;
    return s->hyp_length ? exp(1 - (double)s->ref_length / (double)s->hyp_length) : 0;
}

/* Smoothed only if there is any match at all: what shares no word with the references is worth nothing. */
static void set_precisions(qkv_bleu_score *s)
{
    double halved = 100;
    if (!s->matches[0]) return; /* no word, no longer n-gram */
    for (int n = 0; n < ORDER && s->totals[n]; n++) {
        if (!s->matches[n]) halved /= 2;
        s->precisions[n] = (s->matches[n] ? 100 * (double)s->matches[n] : halved) / (double)s->totals[n];
    }
}

static double geometric_mean(const double *precisions)
{
    double sum = 0;
    for (int n = 0; n < ORDER; n++) {
        if (!(precisions[n] > 0)) return 0;
        sum += log(precisions[n]);
    }
    return exp(sum / ORDER);
}

static void finish_bleu(const bleu *b, qkv_bleu_score *s)
{
    s->brevity_penalty = brevity_penalty(s);
    set_precisions(s);
    s->score = s->brevity_penalty * geometric_mean(s->precisions);
    snprintf(s->signature, sizeof s->signature, "nrefs:%d|case:%s|eff:no|tok:%s|smooth:exp|version:qkv-%s",
             b->corpus.n_references, b->opts.lowercase ? "lc" : "mixed", qkv__tokenizer_name(b->opts.tokenizer),
             QKV_VERSION_STRING);
}

static void free_bleu(bleu *b)
{
    qkv__score_words_free(&b->words);
    qkv__symbols_free(&b->hypothesis);
    qkv__symbols_free(&b->reference);
    qkv__grams_free(&b->grams);
}

static const qkv__result_kind bleu_score_kind = { sizeof(qkv_bleu_score), NULL };

qkv_status qkv_bleu(const qkv_str *hypotheses, const qkv_str *const *references, int n_references, int64_t n,
                    const qkv_bleu_opts *opts, qkv_bleu_score **out)
{
    bleu b = { .corpus = { hypotheses, references, n_references, n } };
    if (!out) return qkv__fail(QKV_USAGE, "bleu: a place for the result is needed");
    qkv_bleu_score *score = qkv__result_begin(*out, &bleu_score_kind);
    if (!score) return qkv_error_status();
    *out = score;
    if (QKV__READ_OPTIONS(&b.opts, lowercase, opts, "bleu")) return QKV_USAGE;
    if (!qkv__tokenizer_name(b.opts.tokenizer))
        return qkv__fail(QKV_USAGE, "bleu: there is no tokenizer %d", (int)b.opts.tokenizer);
    qkv_status status = qkv__corpus_check(&b.corpus, "bleu");
    for (int64_t i = 0; !status && i < n; i++) status = add_bleu_sentence(&b, i, score);
    free_bleu(&b);
    if (status) {
        qkv__result_clear(score);
        return status;
    }
    finish_bleu(&b, score);
    return QKV_OK;
}
