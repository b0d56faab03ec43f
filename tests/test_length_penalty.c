/* test_length_penalty.c: a model's own length penalty, in its folder and in its translations; and the one that fits a text. */
#include <qkv/task.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"

enum { TEXTS = 40 };
static const char *const words[] = { "the cat", "sat on", "the mat", "I love", "you and", "a dog", "who ran", "home" };
static char storage[TEXTS][100];
static const char *texts[TEXTS];

static qkv_tokenizer *learn(void)
{
    qkv_word_counts *w = qkv_word_counts_new();
    qkv_tokenizer *t = NULL;
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (int i = 0; i < 8 && !status; i++) status = qkv_word_counts_add(w, words[i], strlen(words[i]));
    if (!status) t = qkv_tokenizer_train(w, &(qkv_bpe_opts){ .vocabulary = 290 });
    qkv_word_counts_free(w);
    return t;
}

/* Random weights, larger than usual, so that the model has opinions; the end is likely or unlikely anywhere, so that a beam has
 * short and long translations. */
static qkv_model *make_model(void)
{
    qkv_tokenizer *t = learn();
    const qkv_transformer_opts o = { .vocabulary = t ? qkv_tokenizer_size(t) : 1,
                                     .encoder_layers = 1,
                                     .decoder_layers = 1,
                                     .dim = 16,
                                     .heads = 2,
                                     .d_ff = 32,
                                     .positions = QKV_POSITION_SINUSOID_HALVES };
    qkv_model *m = t ? qkv_model_new(&o, 3) : NULL;
    if (!m || qkv_model_set_tokenizers(m, t, NULL)) return qkv_model_free(m), qkv_tokenizer_free(t), NULL;
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv_params_block(p); i++) qkv_params_data(p)[i] *= 1.7f;
    float *row = qkv_data(qkv_params_find(p, "embed.weight")) + (int64_t)qkv_tokenizer_find(t, QKV_SPECIAL_END) * 16;
    for (int i = 0; i < 16; i++) row[i] *= 2.4f;
    return m;
}
static int draw_texts(void **state)
{
    uint32_t seed = 5;
    for (int i = 0; i < TEXTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t n = 1 + (seed >> 16) % 5; n; n--) {
            seed = seed * 1664525u + 1013904223u;
            if (*storage[i]) strcat(storage[i], " ");
            strcat(storage[i], words[(seed >> 16) % 8]);
        }
        texts[i] = storage[i];
    }
    return make_folder(state);
}

/* ---- in a model and its folder ---- */

static float own_penalty(const qkv_model *m) { return qkv_model_info_of(m)->length_penalty; }

static char *read_config(const char *of)
{
    static char text[8192];
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", of);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void write_config(const char *of, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", of);
    assert_int_equal(qkv_file_write(path, text, strlen(text)), QKV_OK);
}

/* m, saved and loaded, as a family; it is freed. */
static qkv_model *again(qkv_model *m, const char *name, const char *family)
{
    assert_int_equal(family ? qkv_model_save_as(m, in_folder(name), family) : qkv_model_save(m, in_folder(name)), QKV_OK);
    qkv_model_free(m);
    m = qkv_model_load(in_folder(name));
    assert_non_null(m);
    return m;
}

static void saved_and_loaded(void **state)
{
    (void)state;
    char without[8192];
    qkv_model *m = again(make_model(), "model", NULL);
    strcpy(without, read_config(in_folder("model")));
    assert_true(own_penalty(m) == 0 && !strstr(without, "length_penalty"));
    assert_int_equal(qkv_model_set_length_penalty(m, 1.3f), QKV_OK);
    m = again(m, "model", NULL);
    assert_true(own_penalty(m) == 1.3f);
    assert_non_null(strstr(read_config(in_folder("model")), "\"length_penalty\": 1.2"));
    for (int k = 0; k < 2; k++) { /* none, and what none stands for: the file of before */
        assert_int_equal(qkv_model_set_length_penalty(m, 1.3f), QKV_OK);
        assert_int_equal(qkv_model_set_length_penalty(m, k ? 0.6f : 0), QKV_OK);
        m = again(m, "model", NULL);
        assert_true(own_penalty(m) == 0);
        assert_string_equal(read_config(in_folder("model")), without);
    }
    qkv_model_free(m);
}

static void values_out_of_range(void **state)
{
    (void)state;
    static const float wrong[] = { -1, -1e-30f, 100, INFINITY, NAN };
    static const char *const values[] = { "-1", "0", "0.0", "100", "99.99999999999", "1e-60", "\"1\"", "true", "[1]" };
    qkv_model *m = make_model();
    assert_int_equal(qkv_model_set_length_penalty(m, 99), QKV_OK);
    for (int i = 0; i < 5; i++) assert_int_equal(qkv_model_set_length_penalty(m, wrong[i]), QKV_USAGE);
    assert_true(own_penalty(m) == 99);
    m = again(m, "wrong", NULL);
    char whole[8192], *at;
    strcpy(whole, read_config(in_folder("wrong")));
    at = strstr(whole, "99.0");
    assert_non_null(at);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        sprintf(at, "%s\n}\n", values[i]);
        write_config(in_folder("wrong"), whole);
        assert_null(qkv_model_load(in_folder("wrong")));
        assert_int_equal(qkv_error_status(), QKV_FORMAT);
        assert_non_null(strstr(qkv_error(), "config.json: key \"length_penalty\": expected a number above 0 and below 100"));
    }
    sprintf(at, "null\n}\n");
    write_config(in_folder("wrong"), whole);
    m = (qkv_model_free(m), qkv_model_load(in_folder("wrong")));
    assert_true(m && own_penalty(m) == 0);
    qkv_model_free(m);
}

/* The formula of a published model is another: a penalty stays with its formula, and with what translates. */
static void handed_on(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    qkv_transformer_opts o = *qkv_transformer_options(qkv_model_transformer(m));
    assert_int_equal(qkv_model_set_length_penalty(m, 1.3f), QKV_OK);
    qkv_model *like = qkv_model_like(m, &o, 1);
    assert_true(own_penalty(like) == 1.3f);
    qkv_model_free(like);
    o.decoder_layers = 0;
    like = qkv_model_like(m, &o, 1);
    assert_true(own_penalty(like) == 0);
    assert_int_equal(qkv_model_set_length_penalty(like, 1), QKV_USAGE);
    qkv_model_free(like);
    m = again(m, "marian", "marian");
    assert_string_equal(qkv_model_info_of(m)->family, "marian");
    assert_true(own_penalty(m) == 0);
    assert_int_equal(qkv_model_set_length_penalty(m, 1), QKV_OK); /* what none stands for, here */
    assert_true(own_penalty(m) == 0);
    assert_int_equal(qkv_model_set_length_penalty(m, 0.6f), QKV_OK);
    m = again(m, "marian2", NULL);
    assert_true(own_penalty(m) == 0.6f);
    o = *qkv_transformer_options(qkv_model_transformer(m));
    o.positions = QKV_POSITION_SINUSOID; /* which Marian does not have */
    like = qkv_model_like(m, &o, 1);
    assert_string_equal(qkv_model_info_of(like)->family, "qkv");
    assert_true(own_penalty(like) == 0);
    qkv_model_free(like);
    m = again(m, "ours", "qkv");
    assert_true(own_penalty(m) == 0);
    qkv_model_free(m);
}

/* ---- in translations ---- */

static void translate_with(const qkv_model *m, float alpha, qkv_translations *out)
{
    assert_int_equal(qkv_translate(m, texts, NULL, TEXTS, &(qkv_translate_opts){ .length_penalty = alpha }, out), QKV_OK);
}

/* How many of them are the same, scores too. */
static int count_same(const qkv_translations *a, const qkv_translations *b)
{
    int n = 0;
    for (int i = 0; i < TEXTS; i++) n += !strcmp(a->best[i].text, b->best[i].text) && a->best[i].score == b->best[i].score;
    return n;
}

static void used_unless_given(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    qkv_translations usual = { 0 }, larger = { 0 }, none = { 0 }, now = { 0 };
    translate_with(m, 0, &usual);
    translate_with(m, 1.4f, &larger);
    translate_with(m, -1, &none);
    assert_true(count_same(&usual, &larger) < TEXTS && count_same(&usual, &none) < TEXTS);
    assert_int_equal(qkv_model_set_length_penalty(m, 1.4f), QKV_OK);
    translate_with(m, 0, &now);
    assert_int_equal(count_same(&now, &larger), TEXTS);
    translate_with(m, 0.6f, &now);
    assert_int_equal(count_same(&now, &usual), TEXTS);
    translate_with(m, -1, &now);
    assert_int_equal(count_same(&now, &none), TEXTS);
    qkv_translations_free(&usual);
    qkv_translations_free(&larger);
    qkv_translations_free(&none);
    qkv_translations_free(&now);
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(values_out_of_range),
        cmocka_unit_test(handed_on),
        cmocka_unit_test(used_unless_given),
    };
    return cmocka_run_group_tests(tests, draw_texts, remove_folder);
}
