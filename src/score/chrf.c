/* chrf.c: chrF and chrF++ over a corpus, as sacreBLEU computes them. */
#include <qkv/score.h>

#include "score.h"

#include "../base/options.h"
#include "../base/result.h"

#include <stdio.h>

enum { CHARACTER_ORDER = 6, WORD_ORDER = QKV_CHRF_ORDERS - CHARACTER_ORDER };

/* A text both ways. */
typedef struct text {
    qkv__symbols characters, words;
} text;

/* Memory that is kept from one sentence to the next. */
typedef struct chrf {
    qkv__corpus corpus;
    qkv_chrf_opts opts;
    qkv__score_words words;
    text hypothesis, reference;
    qkv__grams characters, pairs; /* n-grams of characters, n-grams of words */
} chrf;

/* ---- the score ---- */

static double ratio(int64_t part, int64_t whole) { return (double)part / (double)whole; }

static void set_score(qkv_chrf_score *s)
{
    double precision = 0, recall = 0, beta_2 = 4;
    int orders = 0;
    for (int i = 0; i < QKV_CHRF_ORDERS; i++) {
        if (!s->hyp_totals[i] || !s->ref_totals[i]) continue;
        precision += ratio(s->matches[i], s->hyp_totals[i]);
        recall += ratio(s->matches[i], s->ref_totals[i]);
        orders++;
    }
    if (orders) precision /= orders, recall /= orders;
    s->precision = 100 * precision;
    s->recall = 100 * recall;
    /* In sacreBLEU's order: which of two references is the better one may hang on the last bit. */
    s->score = precision + recall > 0 ? 100 * ((1 + beta_2) * precision * recall / (beta_2 * precision + recall)) : 0;
}

/* ---- counting ---- */

static qkv_status make_symbols(chrf *c, text *t)
{
    if (qkv__score_words_characters(&c->words, &t->characters)) return QKV_MEMORY;
    if (!c->opts.word_order) return QKV_OK;
    if (qkv__score_words_split_punctuation(&c->words)) return QKV_MEMORY;
    return qkv__score_words_number(&c->words, &t->words);
}

static qkv_status begin_hypothesis(chrf *c, int64_t i)
{
    qkv__trie_reset(&c->words.dictionary);
    qkv_status status = qkv__read_hypothesis(&c->corpus, i, c->opts.lowercase, &c->words);
    if (!status) status = make_symbols(c, &c->hypothesis);
    if (!status) status = qkv__grams_begin(&c->characters, &c->hypothesis.characters, CHARACTER_ORDER);
    return status ? status : qkv__grams_begin(&c->pairs, &c->hypothesis.words, c->opts.word_order);
}

static qkv_status count_reference(chrf *c, int r, int64_t i)
{
    qkv_status status = qkv__read_reference(&c->corpus, r, i, c->opts.lowercase, &c->words);
    if (!status) status = make_symbols(c, &c->reference);
    if (!status) status = qkv__grams_reference(&c->characters, &c->reference.characters);
    return status ? status : qkv__grams_reference(&c->pairs, &c->reference.words);
}

static void set_totals(const qkv__symbols *hypothesis, const qkv__symbols *reference, int orders, int first, qkv_chrf_score *s)
{
    for (int n = 1; n <= orders; n++) {
        int64_t of_reference = qkv__gram_count(reference->n, n);
        s->ref_totals[first + n - 1] = of_reference;
        s->hyp_totals[first + n - 1] = of_reference ? qkv__gram_count(hypothesis->n, n) : 0;
    }
}

/* The counts of the sentence with the latest reference. */
static qkv_chrf_score compare_ngrams(const chrf *c)
{
    qkv_chrf_score s = { 0 };
    set_totals(&c->hypothesis.characters, &c->reference.characters, CHARACTER_ORDER, 0, &s);
    set_totals(&c->hypothesis.words, &c->reference.words, c->opts.word_order, CHARACTER_ORDER, &s);
    qkv__grams_match(&c->characters, false, s.matches);
    qkv__grams_match(&c->pairs, false, s.matches + CHARACTER_ORDER);
    set_score(&s);
    return s;
}

static qkv_status add_chrf_sentence(chrf *c, int64_t i, qkv_chrf_score *out)
{
    qkv_chrf_score best = { .score = -1 };
    qkv_status status = begin_hypothesis(c, i);
    for (int r = 0; !status && r < c->corpus.n_references; r++) {
        if ((status = count_reference(c, r, i))) break;
        qkv_chrf_score s = compare_ngrams(c);
        if (s.score > best.score) best = s;
    }
    for (int k = 0; !status && k < QKV_CHRF_ORDERS; k++) {
        out->matches[k] += best.matches[k];
        out->hyp_totals[k] += best.hyp_totals[k];
        out->ref_totals[k] += best.ref_totals[k];
    }
    return status;
}

static void free_text(text *t)
{
    qkv__symbols_free(&t->characters);
    qkv__symbols_free(&t->words);
}

static void free_chrf(chrf *c)
{
    qkv__score_words_free(&c->words);
    free_text(&c->hypothesis);
    free_text(&c->reference);
    qkv__grams_free(&c->characters);
    qkv__grams_free(&c->pairs);
}

static const qkv__result_kind chrf_score_kind = { sizeof(qkv_chrf_score), NULL };

qkv_status qkv_chrf(const qkv_str *hypotheses, const qkv_str *const *references, int n_references, int64_t n,
                    const qkv_chrf_opts *opts, qkv_chrf_score **out)
{
    chrf c = { .corpus = { hypotheses, references, n_references, n } };
    if (!out) return qkv__fail(QKV_USAGE, "chrf: a place for the result is needed");
    qkv_chrf_score *score = qkv__result_begin(*out, &chrf_score_kind);
    if (!score) return qkv_error_status();
    *out = score;
    if (QKV__READ_OPTIONS(&c.opts, lowercase, opts, "chrf")) return QKV_USAGE;
    if (c.opts.word_order < 0 || c.opts.word_order > WORD_ORDER)
        return qkv__fail(QKV_USAGE, "chrf: the word order is %d, not 0 to %d", c.opts.word_order, WORD_ORDER);
    qkv_status status = qkv__corpus_check(&c.corpus, "chrf");
    for (int64_t i = 0; !status && i < n; i++) status = add_chrf_sentence(&c, i, score);
    free_chrf(&c);
    if (status) {
        qkv__result_clear(score);
        return status;
    }
    set_score(score);
    snprintf(score->signature, sizeof score->signature, "nrefs:%d|case:%s|eff:yes|nc:%d|nw:%d|space:no|version:qkv-%s",
             n_references, c.opts.lowercase ? "lc" : "mixed", CHARACTER_ORDER, c.opts.word_order, QKV_VERSION_STRING);
    return QKV_OK;
}
