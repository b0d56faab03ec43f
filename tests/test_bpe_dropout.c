/* test_bpe_dropout.c: how often a text is cut in each way; pairs that each epoch cuts anew, with the same bits at any number of
 * threads and after any stop. */
#include <qkv/qkv.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "text/pairs.h"
#include "train/bpe_dropout.h"

/* Merges a+b, ab+ab, ab+c, in this order. */
static qkv_tokenizer *three_merges(void)
{
    static const char *const words[] = { "abab", "abc", "ab" };
    static const int counts[] = { 9, 4, 2 };
    qkv_word_counts *w = qkv_word_counts_new();
    qkv_status status = w ? QKV_OK : QKV_MEMORY;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < counts[i] && !status; k++) status = qkv_word_counts_add(w, words[i], strlen(words[i]));
    qkv_tokenizer *t = status ? NULL : qkv_tokenizer_train(w, &(qkv_bpe_opts){ .vocabulary = 263 });
    qkv_word_counts_free(w);
    return t;
}

/* ---- one text ---- */

static qkv_encode_opts dropping(float p, uint64_t seed)
{
    return (qkv_encode_opts){ .size = sizeof(qkv_encode_opts), .dropout = p, .dropout_seed = seed };
}

enum { SEEDS = 20000 };

/* How often, of so many seeds, the text is cut into these tokens. */
static double share_of(const qkv_tokenizer *t, const char *text, float p, const char *tokens)
{
    qkv_ids ids = { 0 };
    qkv_text line = { 0 };
    int found = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const qkv_encode_opts o = dropping(p, seed);
        assert_int_equal(qkv_tokenizer_encode(t, text, strlen(text), &o, &ids), QKV_OK);
        assert_int_equal(qkv_tokens_text(t, ids.ids, ids.n, QKV_TOKEN_STYLE_RAW, &line), QKV_OK);
        found += !strcmp(line.data, tokens);
    }
    qkv_ids_free(&ids);
    qkv_text_free(&line);
    return (double)found / SEEDS;
}

static void assert_share(const qkv_tokenizer *t, const char *text, double p, const char *tokens, double expected)
{
    double found = share_of(t, text, (float)p, tokens), sigma = sqrt(expected * (1 - expected) / SEEDS);
    if (fabs(found - expected) > 4 * sigma) fail_msg("%s as \"%s\": %g, expected %g", text, tokens, found, expected);
}

/* A merge is made when it survives; what was left out may come back before the next one. */
static void ways_to_cut(void **state)
{
    (void)state;
    qkv_tokenizer *t = three_merges();
    assert_non_null(t);
    assert_true(qkv_tokenizer_size(t) == 263 && qkv_tokenizer_find(t, "abab") == 261 && qkv_tokenizer_find(t, "abc") == 262);
    for (double p = 0.1; p < 1; p += 0.4) {
        const double q = 1 - p;
        assert_share(t, "abc", p, "abc", q * q);
        assert_share(t, "abc", p, "ab c", q * p);
        assert_share(t, "abc", p, "a b c", p);
        /* either pair first, then the other, then both */
        assert_share(t, "abab", p, "abab", (1 - p * p) * q * q);
        assert_share(t, "abab", p, "ab ab", (1 - p * p) * q * p);
        assert_share(t, "abab", p, "ab a b", q * p);
        assert_share(t, "abab", p, "a b ab", p * q * p);
        assert_share(t, "abab", p, "a b a b", p * p);
    }
    qkv_tokenizer_free(t);
}

static void ends_of_the_range(void **state)
{
    (void)state;
    qkv_tokenizer *t = three_merges();
    qkv_ids ids = { 0 };
    assert_true(share_of(t, "abab abc", 0, "abab \xc4\xa0 abc") == 1); /* G with a dot stands for the space */
    assert_true(share_of(t, "abab abc", 1, "a b a b \xc4\xa0 a b c") == 1);
    for (int i = 0; i < 3; i++) {
        const qkv_encode_opts o = dropping(i == 0 ? -0.1f : i == 1 ? 1.5f : NAN, 1);
        assert_int_equal(qkv_tokenizer_encode(t, "ab", 2, &o, &ids), QKV_USAGE);
    }
    qkv_ids_free(&ids);
    qkv_tokenizer_free(t);
}

/* ---- a training ---- */

static const qkv_optimizer_opts adam = { .rule = QKV_OPTIMIZER_ADAM };
static const qkv_batch_opts batches = { .max_tokens = 60, .start = 1, .end = 2 };

static qkv_trainer_opts training_opts(double p)
{
    return (qkv_trainer_opts){
        .size = sizeof(qkv_trainer_opts), .optimizer = &adam, .batches = &batches, .seed = 5, .bpe_dropout = p
    };
}

static qkv_model *make_model(int64_t max_positions)
{
    const qkv_transformer_opts o = { .vocabulary = 263,
                                     .encoder_layers = 1,
                                     .decoder_layers = 1,
                                     .dim = 8,
                                     .heads = 2,
                                     .d_ff = 16,
                                     .positions = max_positions ? QKV_POSITION_LEARNED : QKV_POSITION_SINUSOID,
                                     .max_positions = max_positions };
    qkv_model *m = qkv_model_new(&o, 3);
    qkv_tokenizer *t = m ? three_merges() : NULL;
    if (t && !qkv_model_set_tokenizers(m, t, NULL)) return m;
    qkv_tokenizer_free(t);
    qkv_model_free(m);
    return NULL;
}

static qkv_pairs *make_pairs(const qkv_model *m)
{
    static const char *const texts[] = { "ab abab abc", "abc", "abab abab", "cab", "abab abc" };
    qkv_pairs *p = qkv_pairs_new();
    qkv_ids ids = { 0 };
    qkv_status status = p && m ? QKV_OK : QKV_MEMORY;
    for (size_t i = 0; i < 60 && !status; i++) {
        const char *text = texts[i % 5];
        status = qkv_tokenizer_encode(qkv_model_source_tokenizer(m), text, strlen(text), NULL, &ids);
        if (!status) status = qkv_pairs_add(p, ids.ids, ids.n, ids.ids, ids.n);
    }
    qkv_ids_free(&ids);
    if (!status) return p;
    qkv_pairs_free(p);
    return NULL;
}

static char folder[] = "/tmp/qkv-dropout-XXXXXX", path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    return snprintf(path, sizeof path, "%s/checkpoint", folder) < 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return unlink(path) || rmdir(folder) ? -1 : 0;
}

/* The weights after 40 steps, about 10 epochs, with a stop after one of them; free() them. */
static float *weights_after(double p, int threads, int stop, int64_t *n)
{
    qkv_set_threads(threads);
    const qkv_trainer_opts o = training_opts(p);
    qkv_model *m = make_model(0);
    qkv_pairs *pairs = make_pairs(m);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &o);
    for (int step = 1; step <= 40; step++) {
        assert_int_equal(qkv_trainer_step(t, NULL), QKV_OK);
        if (step != stop) continue;
        assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
        qkv_trainer_free(t);
        assert_non_null(t = qkv_trainer_new(m, pairs, &o));
        assert_int_equal(qkv_trainer_resume(t, path), QKV_OK);
    }
    *n = qkv_params_count(qkv_model_params(m));
    float *weights = malloc(sizeof *weights * (size_t)*n);
    memcpy(weights, qkv_params_data(qkv_model_params(m)), sizeof *weights * (size_t)*n);
    qkv_trainer_free(t);
    qkv_pairs_free(pairs);
    qkv_model_free(m);
    qkv_set_threads(0);
    return weights;
}

static void same_bits(void **state)
{
    (void)state;
    static const struct {
        int threads, stop;
    } rows[] = { { 2, 0 }, { 4, 0 }, { 1, 3 }, { 1, 17 }, { 2, 39 } };
    int64_t n, m;
    float *first = weights_after(0.3, 1, 0, &n), *plain = weights_after(0, 1, 0, &m);
    assert_memory_not_equal(first, plain, sizeof *first * (size_t)n);
    free(plain);
    for (int i = 0; i < 5; i++) {
        float *other = weights_after(0.3, rows[i].threads, rows[i].stop, &m);
        assert_memory_equal(first, other, sizeof *first * (size_t)n);
        free(other);
    }
    free(first);
}

/* The texts stay, and the ids of each epoch are others. A side that the model could not read stays as it was. */
static void every_epoch_cuts_anew(void **state)
{
    (void)state;
    qkv_model *m = make_model(10);
    qkv_pairs *pairs = make_pairs(m);
    qkv_pairs *drawn[3] = { qkv__drop_merges(pairs, m, 0.3, 5, 0), qkv__drop_merges(pairs, m, 0.3, 5, 0),
                            qkv__drop_merges(pairs, m, 0.3, 5, 1) };
    qkv_text was = { 0 }, is = { 0 };
    int64_t same, n, k, changed = 0;
    assert_int_equal(qkv__pairs_overlap(drawn[0], drawn[1], &same), QKV_OK);
    assert_int_equal(same, 60);
    assert_int_equal(qkv__pairs_overlap(drawn[0], drawn[2], &same), QKV_OK);
    assert_true(same < 60);
    for (int64_t i = 0; i < 60; i++)
        for (int side = 0; side < 2; side++) {
            const int32_t *a = qkv__pairs_side(pairs, i, side, &n), *b = qkv__pairs_side(drawn[0], i, side, &k);
            assert_int_equal(qkv_tokenizer_decode(qkv_model_source_tokenizer(m), a, (size_t)n, 0, &was), QKV_OK);
            assert_int_equal(qkv_tokenizer_decode(qkv_model_source_tokenizer(m), b, (size_t)k, 0, &is), QKV_OK);
            assert_string_equal(was.data, is.data);
            assert_true(k < 10 || k == n);
            changed += k != n;
        }
    assert_true(changed > 30);
    for (int i = 0; i < 3; i++) qkv_pairs_free(drawn[i]);
    qkv_text_free(&was);
    qkv_text_free(&is);
    qkv_pairs_free(pairs);
    qkv_model_free(m);
}

static void refused(void **state)
{
    (void)state;
    qkv_model *m = make_model(0), *bare = qkv_model_new(qkv_transformer_options(qkv_model_transformer(m)), 1);
    qkv_pairs *pairs = make_pairs(m);
    for (int i = 0; i < 3; i++) {
        const qkv_trainer_opts o = training_opts(i == 0 ? -0.1 : i == 1 ? 1 : (double)NAN);
        assert_null(qkv_trainer_new(m, pairs, &o));
        assert_int_equal(qkv_error_status(), QKV_USAGE);
    }
    const qkv_trainer_opts o = training_opts(0.1), other = training_opts(0.2);
    assert_null(qkv_trainer_new(bare, pairs, &o));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &o), *u = qkv_trainer_new(m, pairs, &other);
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
    assert_int_equal(qkv_trainer_resume(u, path), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "other options"));
    qkv_trainer_free(t);
    qkv_trainer_free(u);
    qkv_pairs_free(pairs);
    qkv_model_free(m);
    qkv_model_free(bare);
}

static qkv_status draw_once(void)
{
    qkv_model *m = make_model(0);
    qkv_pairs *pairs = make_pairs(m), *drawn = pairs ? qkv__drop_merges(pairs, m, 0.3, 5, 0) : NULL;
    qkv_status status = drawn ? QKV_OK : qkv_error_status();
    qkv_pairs_free(drawn);
    qkv_pairs_free(pairs);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    qkv_set_threads(1);
    assert_true(each_allocation_fails(draw_once) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_to_cut),           cmocka_unit_test(ends_of_the_range), cmocka_unit_test(same_bits),
        cmocka_unit_test(every_epoch_cuts_anew), cmocka_unit_test(refused),           cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
