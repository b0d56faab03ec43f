/* test_length_penalty.c: a model's own length penalty, in its folder and in its translations; and the one that fits a text. */
#include <qkv/task.h>
#include <qkv/unstable/util.h>
#include "nn/params.h"
#include "recipe/fit_length.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"
#include "scores.h"
#include "folder.h"
#include "model/model.h"
#include "as_strings.h"

enum { TEXTS = 40 };
static const char *const words[] = { "the cat", "sat on", "the mat", "I love", "you and", "a dog", "who ran", "home" };
static char storage[TEXTS][100];
static const char *texts[TEXTS];

static qkv_tokenizer *learn(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_tokenizer *t = NULL;
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (int i = 0; i < 8 && !status; i++) status = qkv_word_counts_add(w, qkv_cstr(words[i]));
    if (!status) t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 290 });
    qkv_word_counts_free(w);
    return t;
}

/* Random weights, larger than usual, so that the model has opinions; the end is likely or unlikely anywhere, so that a beam has
 * short and long translations. */
static qkv_model *make_model(void)
{
    qkv_tokenizer *t = learn();
    const qkv_config o = { .vocab_size = t ? qkv_tokenizer_vocab_size(t) : 1,
                           .encoder_layers = 1,
                           .decoder_layers = 1,
                           .dim = 16,
                           .heads = 2,
                           .d_ff = 32,
                           .positions = QKV_POSITION_SINUSOID_HALVES };
    qkv_model *m = t ? qkv_model_new(&o, 3) : NULL;
    if (!m || qkv_model_set_tokenizers(m, t, NULL)) return qkv_model_free(m), qkv_tokenizer_free(t), NULL;
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 1.7f;
    float *row = qkv_tensor_data_mut(qkv_params_find(p, "embed.weight")) + (int64_t)qkv_tokenizer_id(t, QKV_SPECIAL_END) * 16;
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

static float own_penalty(const qkv_model *m)
{
    qkv_generation *said = NULL;
    assert_int_equal(qkv_model_generation(m, &said), QKV_OK);
    float alpha = said->length_penalty;
    qkv_free(said);
    return alpha;
}

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
    assert_int_equal(qkv_model_save(m, in_folder(name), family), QKV_OK);
    qkv_model_free(m);
    m = qkv_model_load(in_folder(name), NULL);
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
        assert_null(qkv_model_load(in_folder("wrong"), NULL));
        assert_int_equal(qkv_error_status(), QKV_FORMAT);
        assert_non_null(strstr(qkv_error(), "config.json: key \"length_penalty\": expected a number above 0 and below 100"));
    }
    sprintf(at, "null\n}\n");
    write_config(in_folder("wrong"), whole);
    m = (qkv_model_free(m), qkv_model_load(in_folder("wrong"), NULL));
    assert_true(m && own_penalty(m) == 0);
    qkv_model_free(m);
}

/* The formula of a published model is another: a penalty stays with its formula, and with what translates. */
static void handed_on(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    qkv_config o = *qkv__model_config(m);
    assert_int_equal(qkv_model_set_length_penalty(m, 1.3f), QKV_OK);
    qkv_model *like = qkv_model_adapt(m, &o, 1);
    assert_true(own_penalty(like) == 1.3f);
    qkv_model_free(like);
    o.decoder_layers = 0;
    like = qkv_model_adapt(m, &o, 1);
    assert_true(own_penalty(like) == 0);
    assert_int_equal(qkv_model_set_length_penalty(like, 1), QKV_USAGE);
    qkv_model_free(like);
    m = again(m, "marian", "marian");
    assert_string_equal(qkv_model_get_info(m)->family, "marian");
    assert_true(own_penalty(m) == 0);
    assert_int_equal(qkv_model_set_length_penalty(m, 1), QKV_OK); /* what none stands for, here */
    assert_true(own_penalty(m) == 0);
    assert_int_equal(qkv_model_set_length_penalty(m, 0.6f), QKV_OK);
    m = again(m, "marian2", NULL);
    assert_true(own_penalty(m) == 0.6f);
    o = *qkv__model_config(m);
    o.positions = QKV_POSITION_SINUSOID; /* which Marian does not have */
    like = qkv_model_adapt(m, &o, 1);
    assert_string_equal(qkv_model_get_info(like)->family, "qkv");
    assert_true(own_penalty(like) == 0);
    qkv_model_free(like);
    m = again(m, "ours", "qkv");
    assert_true(own_penalty(m) == 0);
    qkv_model_free(m);
}

/* ---- in translations ---- */

static void translate_with(const qkv_model *m, float alpha, qkv_translations **out)
{
    const qkv_translate_opts o = { .length_penalty = alpha < 0 ? 0 : alpha, .no_length_penalty = alpha < 0 };
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, TEXTS), TEXTS, &o, out), QKV_OK);
}

/* How many of them are the same, scores too. */
static int count_same(const qkv_translations *a, const qkv_translations *b)
{
    int n = 0;
    for (int i = 0; i < TEXTS; i++)
        n += !strcmp(a->best[i].text.data, b->best[i].text.data) && a->best[i].score == b->best[i].score;
    return n;
}

static void used_unless_given(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    qkv_translations *usual = NULL, *larger = NULL, *none = NULL, *now = NULL;
    translate_with(m, 0, &usual);
    translate_with(m, 1.4f, &larger);
    translate_with(m, -1, &none);
    assert_true(count_same(usual, larger) < TEXTS && count_same(usual, none) < TEXTS);
    assert_int_equal(qkv_model_set_length_penalty(m, 1.4f), QKV_OK);
    translate_with(m, 0, &now);
    assert_int_equal(count_same(now, larger), TEXTS);
    translate_with(m, 0.6f, &now);
    assert_int_equal(count_same(now, usual), TEXTS);
    translate_with(m, -1, &now);
    assert_int_equal(count_same(now, none), TEXTS);
    qkv_free(usual);
    qkv_free(larger);
    qkv_free(none);
    qkv_free(now);
    qkv_model_free(m);
}

/* ---- the one that fits ---- */

enum { LINE = 1000 };

/* What the model says has few spaces. */
static const qkv_fit_length_opts by_characters = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR };

/* As the command prints it. */
static void print_line(const qkv_translation *x, char to[LINE])
{
    snprintf(to, LINE, "%s", x->text.data);
    for (; *to; to++)
        if (*to == '\n' || *to == '\r') *to = ' ';
}

typedef struct lines {
    char storage[TEXTS][LINE];
    const char *at[TEXTS];
} lines;

static void print_lines(const qkv_translations *t, lines *to)
{
    for (int i = 0; i < TEXTS; i++) {
        print_line(&t->best[i * t->n_best], to->storage[i]);
        to->at[i] = to->storage[i];
    }
}

static lines *lines_with(const qkv_model *m, float alpha)
{
    qkv_translations *t = NULL;
    lines *l = calloc(1, sizeof *l);
    translate_with(m, alpha, &t);
    print_lines(t, l);
    qkv_free(t);
    return l;
}

static double bleu_of(const qkv_model *m, float alpha, const lines *references)
{
    const char *const *all[] = { references->at };
    qkv_bleu_score score;
    lines *l = lines_with(m, alpha);
    assert_int_equal(bleu_of_strings(l->at, all, 1, TEXTS, &(qkv_bleu_opts){ .tokenizer = QKV_SCORE_TOKENIZER_CHAR }, &score),
                     QKV_OK);
    free(l);
    return score.score;
}

static qkv_length_fit fit_to(const qkv_model *m, const lines *references, const qkv_fit_length_opts *opts)
{
    qkv_length_fit fit;
    assert_int_equal(qkv_fit_length_penalty(m, texts, references->at, TEXTS, opts, &fit), QKV_OK);
    return fit;
}

/* References that this model finds with another penalty: the fit finds the direction, and both BLEU are the command's. */
static void found_on_both_sides(void **state)
{
    (void)state;
    static const float wanted[] = { 0.2f, 1.2f };
    qkv_model *m = make_model();
    for (int k = 0; k < 2; k++) {
        lines *references = lines_with(m, wanted[k]);
        qkv_length_fit fit = fit_to(m, references, &by_characters);
        assert_true(k ? fit.length_penalty > 0.6f : fit.length_penalty < 0.6f);
        assert_true(fit.bleu > fit.usual_bleu && fit.lines == TEXTS);
        assert_true(fit.usual_bleu == bleu_of(m, 0, references));
        assert_true(fit.bleu == bleu_of(m, fit.length_penalty, references));
        assert_int_equal(qkv_model_set_length_penalty(m, wanted[k]), QKV_OK); /* what m has is what is compared with */
        fit = fit_to(m, references, &by_characters);
        assert_true(fit.length_penalty == wanted[k] && fit.usual_bleu > 99.99 && fit.bleu == fit.usual_bleu);
        assert_int_equal(qkv_model_set_length_penalty(m, 0), QKV_OK);
        free(references);
    }
    qkv_model_free(m);
}

static void same_on_any_threads(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    lines *references = lines_with(m, 1.2f);
    const qkv_fit_length_opts opts = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR, .beam = 3 };
    qkv_set_num_threads(1);
    qkv_length_fit one = fit_to(m, references, &opts);
    for (int threads = 2; threads <= 4; threads *= 2) {
        qkv_set_num_threads(threads);
        qkv_length_fit more = fit_to(m, references, &opts);
        assert_true(more.length_penalty == one.length_penalty && more.bleu == one.bleu && more.usual_bleu == one.usual_bleu);
    }
    qkv_set_num_threads(0);
    assert_true(one.bleu > one.usual_bleu);
    free(references);
    qkv_model_free(m);
}

/* References that the largest penalty chooses of what the usual search found: they promise it a BLEU of 100, which its own
 * search, that finds others, does not keep; halfway back is better than the usual one. */
static void a_promise_is_not_enough(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    qkv_translations *t = NULL;
    lines *references = calloc(1, sizeof *references);
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, TEXTS), TEXTS, &(qkv_translate_opts){ .n_best = 4 }, &t), QKV_OK);
    for (int i = 0; i < TEXTS; i++) {
        double highest = -INFINITY;
        for (const qkv_translation *x = &t->best[4 * i], *end = x + 4; x < end && x->n_ids >= 0; x++) {
            double length = (double)(x->n_ids + !x->truncated), score = x->log_p / pow((5 + length) / 6, 2);
            if (score <= highest) continue;
            highest = score;
            print_line(x, references->storage[i]);
        }
        references->at[i] = references->storage[i];
    }
    double usual = bleu_of(m, 0, references);
    assert_true(usual < 99 && bleu_of(m, 2, references) < usual);
    qkv_length_fit fit = fit_to(m, references, &by_characters);
    assert_true(fit.length_penalty > 0.6f && fit.length_penalty < 1.7f && fit.usual_bleu == usual && fit.bleu > usual);
    assert_true(fit.bleu == bleu_of(m, fit.length_penalty, references));
    free(references);
    qkv_free(t);
    qkv_model_free(m);
}

/* Nothing to be learnt: what the model has stays. */
static void nothing_to_fit(void **state)
{
    (void)state;
    static const qkv_fit_length_opts greedy = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR, .beam = 1 },
                                     one_line = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR, .max_lines = 1 };
    qkv_model *m = make_model();
    lines *references = lines_with(m, 1.2f), *nothing = calloc(1, sizeof *nothing);
    for (int i = 0; i < TEXTS; i++) nothing->at[i] = "";
    const struct {
        const lines *references;
        const qkv_fit_length_opts *opts;
        int64_t lines;
    } rows[] = { { references, &greedy, TEXTS }, { references, &one_line, 1 }, { nothing, &by_characters, TEXTS } };
    for (int i = 0; i < 3; i++) {
        qkv_length_fit fit = fit_to(m, rows[i].references, rows[i].opts);
        assert_true(fit.length_penalty == 0.6f && fit.bleu == fit.usual_bleu && fit.lines == rows[i].lines);
    }
    qkv_length_fit fit;
    assert_int_equal(qkv_fit_length_penalty(m, nothing->at, references->at, TEXTS, &by_characters, &fit), QKV_OK);
    assert_true(fit.length_penalty == 0.6f && fit.bleu == 0 && fit.usual_bleu == 0);
    free(references);
    free(nothing);
    qkv_model_free(m);
}

/* Twice the same line is text enough. */
static void one_line_is_none(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    lines *wanted = lines_with(m, 1.2f);
    int fitted = 0;
    for (int i = 0; i < TEXTS; i++) {
        const char *const twice[] = { texts[i], texts[i] }, *const references[] = { wanted->at[i], wanted->at[i] };
        qkv_length_fit two, one;
        assert_int_equal(qkv_fit_length_penalty(m, twice, references, 2, &by_characters, &two), QKV_OK);
        assert_int_equal(qkv_fit_length_penalty(m, twice, references, 1, &by_characters, &one), QKV_OK);
        fitted += two.length_penalty != 0.6f;
        assert_true(one.length_penalty == 0.6f && one.bleu == one.usual_bleu);
    }
    assert_true(fitted > 0);
    free(wanted);
    qkv_model_free(m);
}

/* Lines 0, 4, 8 and so on of 40: the same as those alone. */
static void lines_are_evenly_spaced(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    lines *references = lines_with(m, 1.2f);
    const char *some[10], *their_references[10];
    for (int i = 0; i < 10; i++) some[i] = texts[4 * i], their_references[i] = references->at[4 * i];
    const qkv_fit_length_opts ten = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR, .max_lines = 10 };
    qkv_length_fit fit = fit_to(m, references, &ten), alone;
    assert_int_equal(qkv_fit_length_penalty(m, some, their_references, 10, &by_characters, &alone), QKV_OK);
    assert_true(fit.lines == 10 && alone.lines == 10);
    assert_true(fit.length_penalty == alone.length_penalty && fit.bleu == alone.bleu && fit.usual_bleu == alone.usual_bleu);
    assert_true(fit.usual_bleu != fit_to(m, references, &by_characters).usual_bleu);
    free(references);
    qkv_model_free(m);
}

/* Scores of a published model are by length. */
static void by_length(void **state)
{
    (void)state;
    qkv_model *m = again(make_model(), "by-length", "marian");
    lines *references = lines_with(m, 0.2f);
    qkv_length_fit fit = fit_to(m, references, &by_characters);
    assert_true(fit.length_penalty < 1 && fit.bleu > fit.usual_bleu);
    assert_true(fit.usual_bleu == bleu_of(m, 1, references));
    assert_true(fit.bleu == bleu_of(m, fit.length_penalty, references));
    free(references);
    qkv_model_free(m);
}

static int end_at_once(void *data) { return ++*(int *)data; }

static void refused_and_ended(void **state)
{
    (void)state;
    qkv_model *m = make_model();
    qkv_length_fit fit = { .lines = -7 };
    int steps = 0;
    const qkv_fit_length_opts wrong[] = { { .max_lines = -1 }, { .beam = -1 }, { .beam = 1001 }, { .tokenizer = 99 } };
    for (int i = 0; i < 4; i++) assert_int_equal(qkv_fit_length_penalty(m, texts, texts, 2, &wrong[i], &fit), QKV_USAGE);
    assert_int_equal(qkv_fit_length_penalty(m, texts, texts, 0, NULL, &fit), QKV_USAGE);
    assert_int_equal(qkv_fit_length_penalty(m, texts, (const char *[]){ "a", NULL }, 2, NULL, &fit), QKV_USAGE);
    assert_int_equal(qkv_fit_length_penalty(m, texts, (const char *[]){ "a", "\xff" }, 2, NULL, &fit), QKV_FORMAT);
    const qkv_fit_length_opts ended = { .hooks = &(qkv_hooks){ .data = &steps, .cancel = end_at_once } };
    assert_int_equal(qkv_fit_length_penalty(m, texts, texts, TEXTS, &ended, &fit), QKV_CANCELLED);
    assert_true(steps == 1 && fit.lines == -7);
    qkv_model_free(m);
}

static qkv_status fit_once(void)
{
    static const char *const references[] = { "the cat sat", "the mat" };
    const qkv_fit_length_opts opts = { .tokenizer = QKV_SCORE_TOKENIZER_CHAR, .beam = 2 };
    qkv_length_fit fit;
    qkv_model *m = make_model();
    qkv_status status = m ? qkv_fit_length_penalty(m, texts, references, 2, &opts, &fit) : qkv_error_status();
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(fit_once) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(values_out_of_range),
        cmocka_unit_test(handed_on),
        cmocka_unit_test(used_unless_given),
        cmocka_unit_test(found_on_both_sides),
        cmocka_unit_test(same_on_any_threads),
        cmocka_unit_test(a_promise_is_not_enough),
        cmocka_unit_test(nothing_to_fit),
        cmocka_unit_test(lines_are_evenly_spaced),
        cmocka_unit_test(one_line_is_none),
        cmocka_unit_test(by_length),
        cmocka_unit_test(refused_and_ended),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, draw_texts, remove_folder);
}
