/* test_ngrams.c: naive Bayes beside attention, compared with double precision: the sums of a text without its own counts, the fitted
 * weights, and the loss where texts are parts of other texts. */
#include <qkv/qkv.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "lcg.h"
#include "nn/layer.h"
#include "nn/ngrams.h"
#include "model/model.h"

enum { VOCABULARY = 12, SLOTS = 4096, CLASSES = 3, TEXTS = 6, LENGTH = 4, OF_TEXT = 2 * CLASSES };
static const qkv_config opts = { .size = sizeof opts,
                                 .vocab_size = VOCABULARY,
                                 .encoder_layers = 1,
                                 .dim = 8,
                                 .heads = 2,
                                 .d_ff = 8,
                                 .classes = CLASSES,
                                 .ngrams = SLOTS };
static const int32_t texts[TEXTS][LENGTH] = { { 5, 6, 7, 2 }, { 5, 5, 8, 2 },  { 9, 6, 7, 2 },
                                              { 9, 8, 6, 2 }, { 10, 5, 6, 2 }, { 10, 11, 7, 2 } };
static const int32_t classes[TEXTS] = { 0, 0, 1, 1, 2, 2 };

static qkv_model *counted_model(double overlap)
{
    qkv_model *m = qkv_model_new(&opts, 3);
    assert_non_null(m);
    const qkv__transformer *x = qkv__model_transformer(m);
    lcg_state = 5;
    lcg_fill(qkv_tensor_data_mut(x->classifier.weight), CLASSES * 8); /* which begins as 0 */
    qkv__ngrams_clear(x);
    for (int i = 0; i < TEXTS; i++) assert_int_equal(qkv__ngrams_count(x, texts[i], LENGTH, classes[i]), QKV_OK);
    qkv__ngrams_finish(x, overlap);
    return m;
}

static bool has_gram(const int32_t *ids, int order, const int32_t *gram)
{
    bool has = false;
    for (int i = 0; i + order < LENGTH; i++) has = has || !memcmp(ids + i, gram, sizeof *gram * (size_t)(order + 1));
    return has;
}

/* How many texts of a class have it; left_out: a text that is not counted, or -1. */
static double count_of(int order, const int32_t *gram, int32_t class_id, int left_out)
{
    double n = 0;
    for (int i = 0; i < TEXTS; i++) n += i != left_out && classes[i] == class_id && has_gram(texts[i], order, gram);
    return n;
}

/* The formula of ngrams.h. The totals are those of all texts. */
static void evidence_by_hand(int text, int left_out, double to[OF_TEXT])
{
    for (int order = 0; order < 2; order++) {
        double mean = 0, distinct = 0, sums[CLASSES] = { 0 }, totals[CLASSES] = { 0 };
        for (int i = 0; i < TEXTS; i++)
            for (int at = 0; at + order < LENGTH; at++) {
                bool is_new = true;
                for (int j = 0; j < i; j++) is_new = is_new && !has_gram(texts[j], order, texts[i] + at);
                for (int j = 0; j < at; j++)
                    is_new = is_new && memcmp(texts[i] + j, texts[i] + at, sizeof(int32_t) * (size_t)(order + 1)) != 0;
                distinct += is_new;
                for (int k = 0; is_new && k < CLASSES; k++) totals[k] += count_of(order, texts[i] + at, k, -1);
            }
        for (int at = 0; at + order < LENGTH; at++) {
            double counts[CLASSES], any = 0;
            bool is_first = true;
            for (int j = 0; j < at; j++)
                is_first = is_first && memcmp(texts[text] + j, texts[text] + at, sizeof(int32_t) * (size_t)(order + 1)) != 0;
            for (int k = 0; k < CLASSES; k++) any += counts[k] = count_of(order, texts[text] + at, k, left_out);
            for (int k = 0; is_first && any > 0 && k < CLASSES; k++) sums[k] += log((counts[k] + 1) / (totals[k] + distinct));
        }
        for (int k = 0; k < CLASSES; k++) mean += sums[k] / CLASSES;
        for (int k = 0; k < CLASSES; k++) to[2 * k + order] = (order ? 0.7 : 1.4) / sqrt(LENGTH) * (sums[k] - mean);
    }
}

static void evidence_without_its_own(void **state)
{
    (void)state;
    qkv_model *m = counted_model(0);
    for (int i = 0; i < TEXTS; i++)
        for (int leaves_out = 0; leaves_out < 2; leaves_out++) {
            double wanted[OF_TEXT];
            float got[OF_TEXT];
            evidence_by_hand(i, leaves_out ? i : -1, wanted);
            assert_int_equal(qkv__ngrams_judge(qkv__model_transformer(m), texts[i], LENGTH, leaves_out ? classes[i] : -1, got),
                             QKV_OK);
            for (int k = 0; k < OF_TEXT; k++) assert_true(fabs(wanted[k] - (double)got[k]) < 1e-6);
        }
    qkv_model_free(m);
}

/* ---- the weights ---- */

enum { FITTED = 400 };

static double fit_loss(const float *said, const int32_t *of, const double w[2])
{
    double loss = 20 * ((w[0] - 1) * (w[0] - 1) + (w[1] - 1) * (w[1] - 1)) / 2;
    for (int i = 0; i < FITTED; i++) {
        double sum = 0, own = 0;
        for (int k = 0; k < CLASSES; k++) {
            const float *s = said + i * OF_TEXT + 2 * k;
            double logit = w[0] * (double)s[0] + w[1] * (double)s[1];
            sum += exp(logit);
            if (k == of[i]) own = logit;
        }
        loss += log(sum) - own;
    }
    return loss;
}

/* Words that say more than 1.4 assumes, and pairs that say nothing: no weights nearby are better. */
static void weights_fit_best(void **state)
{
    (void)state;
    static float said[FITTED * OF_TEXT];
    int32_t of[FITTED];
    qkv_model *m = counted_model(0);
    const qkv__transformer *x = qkv__model_transformer(m);
    lcg_state = 9;
    lcg_fill(said, FITTED * OF_TEXT);
    for (int i = 0; i < FITTED; i++) {
        const float *s = said + i * OF_TEXT;
        of[i] = i % 2 ? i / 2 % CLASSES : s[0] > s[2] ? (s[0] > s[4] ? 0 : 2) : s[2] > s[4] ? 1 : 2;
    }
    qkv__ngrams_fit(x, said, of, FITTED);
    const float *w = qkv_tensor_data(x->ngram_weights);
    assert_true(w[0] > 1.1f && w[0] < 4 && w[1] > 0.25f && w[1] < 0.8f);
    const double least = fit_loss(said, of, (double[]){ (double)w[0], (double)w[1] });
    for (int i = 0; i < 4; i++) {
        double off = i % 2 ? 0.01 : -0.01, near[2] = { (double)w[0] + (i < 2 ? off : 0), (double)w[1] + (i < 2 ? 0 : off) };
        assert_true(fit_loss(said, of, near) > least);
    }
    memset(said, 0, sizeof said); /* nothing said: nothing learned */
    qkv__ngrams_fit(x, said, of, FITTED);
    assert_true(w[0] == 1 && w[1] == 1);
    for (int i = 0; i < FITTED; i++) said[i * OF_TEXT + 2 * of[i]] = 1e4f; /* certain and right, then certain and wrong */
    qkv__ngrams_fit(x, said, of, FITTED);
    assert_true(w[0] == 1 && w[1] == 1);
    for (int i = 0; i < FITTED; i++) said[i * OF_TEXT + 2 * of[i]] = -1e4f;
    qkv__ngrams_fit(x, said, of, FITTED);
    assert_true(w[0] == 0.25f && w[1] == 1);
    qkv_model_free(m);
}

/* ---- the loss ---- */

static double cross_entropy(const float *logits)
{
    double loss = 0;
    for (int i = 0; i < TEXTS; i++) {
        double sum = 0;
        for (int k = 0; k < CLASSES; k++) sum += exp((double)logits[i * CLASSES + k]);
        loss += (log(sum) - (double)logits[i * CLASSES + classes[i]]) / TEXTS;
    }
    return loss;
}

/* Validation takes the loss of the sum, and leaves no counts out. */
static void attention_learns_alone_too(void **state)
{
    (void)state;
    int32_t ids[TEXTS * LENGTH], of[TEXTS], lengths[TEXTS];
    memcpy(ids, texts, sizeof ids);
    memcpy(of, classes, sizeof of);
    for (int i = 0; i < TEXTS; i++) lengths[i] = LENGTH;
    const qkv_batch b = {
        .rows = TEXTS, .source_length = LENGTH, .target_length = 1, .source = ids, .labels = of, .source_lengths = lengths
    };
    const qkv_loss o = qkv_loss_classification(NULL, CLASSES);
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        const double overlap = overlaps ? 0.375 : 0;
        qkv_model *m = counted_model(overlap);
        const qkv__transformer *x = qkv__model_transformer(m);
        assert_true((double)qkv__ngrams_overlap(x) == overlap);
        for (int trains = 0; trains < 2; trains++) {
            qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .train = trains });
            const qkv_tokens s = { .ids = ids, .rows = TEXTS, .length = LENGTH, .lengths = lengths };
            qkv_tensor *alone = qkv__transformer_classify(x, qkv__transformer_encode(x, t, &s), lengths);
            const qkv_tensor *both = qkv__ngrams_add(x, alone, &s, trains ? of : NULL);
            double a = trains ? overlap : 0;
            double wanted = (1 - a) * cross_entropy(qkv_tensor_data(both)) + a * cross_entropy(qkv_tensor_data(alone));
            assert_true(fabs((double)qkv_tensor_item(o.compute(&o, m, t, &b, 0)) - wanted) < 1e-5);
            qkv_tape_free(t);
        }
        qkv_model_free(m);
    }
}

static qkv_status judge_once(void)
{
    qkv_model *m = qkv_model_new(&opts, 3);
    float to[OF_TEXT];
    if (!m) return QKV_MEMORY;
    qkv_status status = qkv__ngrams_count(qkv__model_transformer(m), texts[0], LENGTH, 0);
    if (!status) status = qkv__ngrams_judge(qkv__model_transformer(m), texts[0], LENGTH, -1, to);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(judge_once) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evidence_without_its_own),
        cmocka_unit_test(weights_fit_best),
        cmocka_unit_test(attention_learns_alone_too),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
