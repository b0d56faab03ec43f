/* test_labels.c: texts with several labels, and texts with numbers: what is learned, saved, told and measured; the same bits at
 * any number of threads and after a stop; labels and numbers that are none. */
#include <qkv/qkv.h>
#include "report/scores.h"
#include "report/results.h"
#include "recipe/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"
#include "as_strings.h"

/* ---- scores ---- */

static void near_to(double got, double expected)
{
    if (fabs(got - expected) > 1e-9) fail_msg("%.12g, expected %.12g", got, expected);
}

static void f1_by_hand(void **state)
{
    (void)state;
    const int64_t said[] = { 4, 0, 2 }, is[] = { 5, 1, 0 }, right[] = { 3, 0, 0 }, less[] = { -1, 0, 0 };
    qkv_class_scores *all = NULL;
    assert_int_equal(qkv_score_multilabel(said, is, right, 3, &all), QKV_OK);
    const qkv_class_score *each = all->classes;
    near_to(each[0].precision, 0.75);
    near_to(each[0].recall, 0.6);
    near_to(each[0].f1, 6. / 9);
    near_to(each[1].f1 + each[2].f1, 0);
    near_to(all->micro_f1, 6. / 12);
    near_to(all->macro_f1, 2. / 9);
    assert_int_equal(qkv_score_multilabel(less, is, right, 3, &all), QKV_USAGE);
    assert_int_equal(qkv_score_multilabel(said, is, right, 0, &all), QKV_USAGE);
    qkv_free(all);
}

/* Ranks of 1 2 2 9 are 1 2.5 2.5 4; of 3 1 2 8, 3 1 2 4. */
static void correlations_by_hand(void **state)
{
    (void)state;
    const double a[] = { 1, 2, 2, 9 }, b[] = { 3, 1, 2, 8 }, same[] = { 5, 5, 5, 5 }, lost[] = { 1, 2, NAN, 4 };
    qkv_regression_score *s = NULL;
    assert_int_equal(qkv_score_regression(a, b, 4, &s), QKV_OK);
    near_to(s->rmse, sqrt((4 + 1 + 0 + 1) / 4.));
    near_to(s->mae, 1);
    near_to(s->pearson, 32 / sqrt(41 * 29.)); /* of -2.5 -1.5 -1.5 5.5 and -0.5 -2.5 -1.5 4.5 */
    near_to(s->spearman, 1.5 / sqrt(4.5 * 5));
    assert_int_equal(qkv_score_regression(a, same, 4, &s), QKV_OK);
    assert_true(isnan(s->pearson) && isnan(s->spearman)); /* there is none */
    qkv_buffer text = { 0 };
    assert_int_equal(qkv_numbers_text(s, 0, &text), QKV_OK);
    assert_non_null(strstr(text.data, "Pearson undefined\nSpearman undefined\n"));
    assert_int_equal(qkv_numbers_text(s, 1, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\"pearson\": null, \"spearman\": null}"));
    qkv_buffer_free(&text);
    assert_int_equal(qkv_score_regression(a, lost, 4, &s), QKV_NUMERIC);
    assert_int_equal(qkv_score_regression(a, b, 0, &s), QKV_USAGE);
    qkv_free(s);
}

/* ---- trainings ---- */

static void write_texts(const char *name, int n, int numbers, const char *first)
{
    static const char *const words[] = { "ball", "bank", "soup" }, *const labels[] = { "sport", "money", "food" };
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(first, f);
    for (int i = 0; i < n; i++) {
        int has = i * 5 % 8; /* bits; every eighth text has no label */
        if (numbers) fprintf(f, "%d", 1000 + 100 * (i % 5));
        for (int k = 0, more = 0; k < 3 && !numbers; k++)
            if (has >> k & 1) fprintf(f, "%s%s", more++ ? "; " : "", labels[k]);
        fprintf(f, "\tthe day");
        for (int k = 0; k < 3; k++)
            if (!numbers && has >> k & 1) fprintf(f, " %s", words[k]);
        for (int k = 0; k < i % 5 && numbers; k++) fprintf(f, " good");
        fprintf(f, " and more\n");
    }
    fclose(f);
}

static qkv_status train(const char *texts, const char *out, int numbers, const char *steps, int resume, int threads)
{
    qkv_set_num_threads(threads);
    char path[256];
    snprintf(path, sizeof path, "%s", in_folder(out));
    qkv_training *t = qkv_training_new("classify");
    qkv_training_set(t, "train", in_folder(texts));
    qkv_training_set(t, "valid", in_folder(texts));
    qkv_training_set(t, numbers ? "numbers" : "label-separator", numbers ? "yes" : ";");
    qkv_training_set(t, "steps", steps);
    qkv_training_set(t, "schedule", "constant");
    qkv_training_set(t, "lr", "0.003");
    qkv_training_set(t, "dropout", "0");
    qkv_training_set(t, "inner-dropout", "0");
    qkv_training_set(t, "label-smoothing", "0");
    qkv_training_set(t, "max-tokens", "200");
    qkv_training_set(t, "valid-every", "20");
    qkv_training_set(t, "out", path);
    if (resume) qkv_training_set(t, "resume", "yes");
    qkv_status status = qkv_training_run(t, NULL, NULL);
    qkv_training_free(t);
    qkv_set_num_threads(0);
    return status;
}

static char *bytes_of(const char *out, size_t *n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder(out));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void same_bytes(const char *a, const char *b)
{
    size_t n, m;
    char *x = bytes_of(a, &n), *y = bytes_of(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void same_bits_of(const char *texts, int numbers)
{
    assert_int_equal(train(texts, "one", numbers, "60", 0, 1), QKV_OK);
    assert_int_equal(train(texts, "four", numbers, "60", 0, 4), QKV_OK);
    same_bytes("one", "four");
    assert_int_equal(train(texts, "stopped", numbers, "30", 0, 2), QKV_OK);
    assert_int_equal(train(texts, "stopped", numbers, "60", 1, 2), QKV_OK);
    same_bytes("one", "stopped");
}

static void forget(const char *out)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", in_folder(out));
    assert_int_equal(system(command), 0);
}

static qkv_labelled_score measure(const char *out, const char *texts, qkv_buffer *text)
{
    const qkv_classify_labelled_opts o = { .size = sizeof o, .batch = 7 }; /* the model knows what stands between labels */
    qkv_labelled_score s;
    qkv_model *m = qkv_model_load(in_folder(out), NULL);
    assert_non_null(m);
    assert_int_equal(qkv_score_labelled(m, in_folder(texts), &o, 0, &s, text), QKV_OK);
    qkv_model_free(m);
    return s;
}

static void said(const char *out, const char *text, double threshold, int json, const char *expected)
{
    qkv_model *m = qkv_model_load(in_folder(out), NULL);
    qkv_matrix *row = NULL;
    qkv_buffer line = { 0 };
    const qkv_classified_opts o = { .size = sizeof o, .threshold = threshold, .json = json };
    assert_int_equal(qkv_classify(m, as_strings(&text, NULL, 1), 1, NULL, &row), QKV_OK);
    assert_int_equal(qkv_classified_text_with(m, row->data, &o, &line), QKV_OK);
    if (strncmp(line.data, expected, strlen(expected))) fail_msg("\"%s\" is \"%s\", expected %s", text, line.data, expected);
    qkv_buffer_free(&line);
    qkv_free(row);
    qkv_model_free(m);
}

/* Sigmoids of the logits that softmax has: log(p / (1 - p)) of two labels is as far apart as the logarithms of softmax. */
static void sigmoids(const char *out)
{
    qkv_matrix *one = NULL, *several = NULL;
    qkv_model *m = qkv_model_load(in_folder(out), NULL);
    assert_int_equal(
        qkv_classify(m, as_strings((const char *const[]){ "the day ball soup and more" }, NULL, 1), 1, NULL, &several), QKV_OK);
    assert_int_equal(qkv_model_set_labels(m, NULL, 0, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    assert_int_equal(qkv_classify(m, as_strings((const char *const[]){ "the day ball soup and more" }, NULL, 1), 1, NULL, &one),
                     QKV_OK);
    double logit[3];
    for (int k = 0; k < 3; k++) logit[k] = log((double)several->data[k] / (1 - (double)several->data[k]));
    for (int k = 1; k < 3; k++)
        assert_true(fabs(log((double)one->data[k] / (double)one->data[0]) - (logit[k] - logit[0])) < 1e-3);
    qkv_free(one);
    qkv_free(several);
    qkv_model_free(m);
}

static void several_labels(void **state)
{
    (void)state;
    write_texts("several.tsv", 70, 0, "");
    same_bits_of("several.tsv", 0);
    qkv_buffer text = { 0 };
    qkv_labelled_score s = measure("one", "several.tsv", &text);
    assert_int_equal(s.problem, QKV_PROBLEM_MULTILABEL);
    assert_true(s.texts == 70 && s.exact > 65 && s.micro_f1 > 0.97);
    assert_non_null(strstr(text.data, "micro F1"));
    sigmoids("one");
    said("one", "the day soup and more", 0, 0, "food\t0.");
    said("one", "the day soup and more", 0, 1, "{\"labels\": [\"food\"], \"probabilities\": {\"food\": ");
    said("one", "the day soup and more", 1, 1, "{\"labels\": [], ");
    qkv_buffer_free(&text);
    forget("one"), forget("four"), forget("stopped");
}

/* Around 1000 and hundreds apart; the saved model says them so. */
static void numbers(void **state)
{
    (void)state;
    write_texts("numbers.tsv", 60, 1, "");
    same_bits_of("numbers.tsv", 1);
    qkv_buffer text = { 0 };
    qkv_labelled_score s = measure("one", "numbers.tsv", &text);
    assert_int_equal(s.problem, QKV_PROBLEM_REGRESSION);
    assert_true(s.numbers.n == 60 && s.numbers.rmse < 60 && s.numbers.pearson > 0.9);
    said("one", "the day good good good good and more", 0, 1, "{\"number\": 1");
    qkv_buffer_free(&text);
    forget("one"), forget("four"), forget("stopped");
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *first, *words;
        int numbers;
    } rows[] = {
        { "sport;\ta text\n", "line 1: one of the labels \"sport;\" is empty", 0 },
        { "1\ta text\n2,5\ta text\n", "line 2: \"2,5\" is not a number", 1 },
        { "inf\ta text\n", "line 1: \"inf\" is not a number", 1 },
        { "score\ttext\n", "if line 1 is a header, give --header", 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_texts("bad.tsv", 30, rows[i].numbers, rows[i].first);
        assert_int_equal(train("bad.tsv", "bad", rows[i].numbers, "1", 0, 1), QKV_FORMAT);
        if (!strstr(qkv_error(), rows[i].words)) fail_msg("%s: expected %s", qkv_error(), rows[i].words);
    }
    FILE *f = fopen(in_folder("equal.tsv"), "w");
    for (int i = 0; i < 9; i++) fputs("3\ta text\n", f);
    fclose(f);
    assert_int_equal(train("equal.tsv", "bad", 1, "1", 0, 1), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "every text has the number 3"));
    write_texts("some.tsv", 30, 1, "\ta text\n");
    assert_int_equal(train("some.tsv", "some", 1, "1", 0, 1), QKV_OK); /* a text without a number is left out */
    qkv_buffer text = { 0 };
    assert_int_equal(measure("some", "some.tsv", &text).numbers.n, 30);
    qkv_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f1_by_hand),     cmocka_unit_test(correlations_by_hand),
        cmocka_unit_test(several_labels), cmocka_unit_test(numbers),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
