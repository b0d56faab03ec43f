/* test_serve_heads.c: what the server says of words, answers, passages, several labels and numbers is what the library says. */
#include "serve/serve.h"
#include "json_values.h"
#include "http_client.h"
#include "serve_models.h"
#include "as_strings.h"
#include "report/results.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TAGS, ANSWERS, RANKS, SEVERAL, NUMBERS, HEADS };

static const struct {
    int64_t classes;
    qkv_classes_of of;
    qkv_problem problem;
} heads[HEADS] = { { 5, QKV_CLASSES_OF_TOKENS, QKV_PROBLEM_CLASSIFICATION },
                   { 2, QKV_CLASSES_OF_SPANS, QKV_PROBLEM_CLASSIFICATION },
                   { 1, QKV_CLASSES_OF_TEXTS, QKV_PROBLEM_CLASSIFICATION },
                   { 3, QKV_CLASSES_OF_TEXTS, QKV_PROBLEM_MULTILABEL },
                   { 1, QKV_CLASSES_OF_TEXTS, QKV_PROBLEM_REGRESSION } };
static qkv_model *made[HEADS];
static qkv_server *serving[HEADS];

static qkv_model *make_head(int head)
{
    static const char *const labels[] = { "O", "B-PER", "I-PER", "B-<LOC>", "I-<LOC>" };
    qkv_tokenizer *t = learn_tokens();
    qkv_config o = {
        .size = sizeof o, .vocab_size = qkv_tokenizer_vocab_size(t), .dim = 16, .heads = 2, .d_ff = 32, .encoder_layers = 2
    };
    o.classes = heads[head].classes;
    o.classes_of = heads[head].of;
    qkv_model *m = qkv_model_new(&o, 11);
    assert_int_equal(qkv_model_set_tokenizers(m, t, NULL), QKV_OK);
    const int64_t n_labels = head == ANSWERS ? 0 : o.classes;
    assert_int_equal(qkv_model_set_labels(m, n_labels ? labels : NULL, n_labels, heads[head].problem, NULL), QKV_OK);
    sharpen(m, o.dim);
    return m;
}

static int start(void **state)
{
    (void)state;
    for (int i = 0; i < HEADS; i++)
        if (!(made[i] = make_head(i)) || !(serving[i] = qkv_server_new(made[i], NULL))) return -1;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < HEADS; i++) qkv_server_free(serving[i]), qkv_model_free(made[i]);
    qkv_shutdown();
    return 0;
}

static const qkv__json_value *posted(int head, const char *path, const char *body, int status)
{
    reply r = post(qkv_server_port(serving[head]), path, body);
    if (r.status != status) fail_msg("%s %s: %d: %s", path, body, r.status, r.text);
    const qkv__json_value *x = json_parse(r.body, r.body_length);
    assert_non_null(x);
    free_reply(&r);
    return x;
}

/* What the library wrote is one of the results. */
static void is_result(const qkv__json_value *result, qkv_buffer *text)
{
    const qkv__json_value *wanted = json_parse(text->data, text->length);
    assert_non_null(wanted);
    assert_true(qkv__json_equal(result, wanted));
    json_free(wanted);
}

static void tags_are_the_librarys(void **state)
{
    static const char *const texts[] = { "the cat sat on the mat", "", "我爱 <b>the dog</b>" };
    qkv_tagged *found = NULL;
    qkv_buffer text = { 0 };
    (void)state;
    assert_int_equal(qkv_tag(made[TAGS], as_strings(texts, NULL, 3), 3, NULL, &found), QKV_OK);
    assert_true(found->texts[0].n_words == 6 && found->texts[0].n_entities > 0);
    for (int words = 0; words < 2; words++) {
        char body[256];
        sprintf(body, "{\"text\":[\"%s\",\"%s\",\"%s\"],\"words\":%s}", texts[0], texts[1], texts[2], words ? "true" : "false");
        const qkv__json_value *all = posted(TAGS, "/tag", body, 200);
        assert_int_equal(qkv__json_size(qkv__json_get(all, "results")), 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(qkv_tagged_lines(found, i, words, 1, &text), QKV_OK);
            is_result(qkv__json_at(qkv__json_get(all, "results"), (size_t)i), &text);
        }
        json_free(all);
    }
    const qkv__json_value *one = posted(TAGS, "/tag", "{\"text\":\"the cat sat on the mat\"}", 200);
    assert_int_equal(qkv_tagged_lines(found, 0, 0, 1, &text), QKV_OK);
    is_result(one, &text);
    json_free(one);
    qkv_buffer_free(&text);
    qkv_free(found);
}

static void answers_are_the_librarys(void **state)
{
    static const char *const questions[] = { "the dog", "我" };
    static const char context[] = "the cat sat on the mat and you love the cat";
    const qkv_answer_opts three = { .n_best = 3, .max_answer = 2, .must_answer = 1 };
    qkv_answers *found = NULL;
    qkv_buffer text = { 0 };
    (void)state;
    const qkv__json_value *all = posted(
        ANSWERS, "/answer",
        "{\"question\":[\"the dog\",\"我\"],\"context\":\"the cat sat on the mat and you love the cat\","
        "\"n_best\":3,\"max_answer\":2,\"must_answer\":true}",
        200);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qkv_answer(made[ANSWERS], qkv_cstr(questions[i]), qkv_cstr(context), &three, &found), QKV_OK);
        assert_int_equal(qkv_answers_lines(found, 1, &text), QKV_OK);
        assert_int_equal(found->n, 3);
        is_result(qkv__json_at(qkv__json_get(all, "results"), (size_t)i), &text);
    }
    json_free(all);
    const qkv__json_value *one = posted(
        ANSWERS, "/answer", "{\"question\":\"the dog\",\"context\":\"the cat sat on the mat and you love the cat\"}", 200);
    assert_int_equal(qkv_answer(made[ANSWERS], qkv_cstr(questions[0]), qkv_cstr(context), NULL, &found), QKV_OK);
    assert_int_equal(qkv_answers_lines(found, 1, &text), QKV_OK);
    is_result(one, &text);
    json_free(one);
    qkv_buffer_free(&text);
    qkv_free(found);
}

static void ranks_are_the_librarys(void **state)
{
    static const char *const passages[] = { "the dog", "you love the cat", "", "我爱你 <b>" };
    qkv_ranking *ranking = NULL;
    (void)state;
    assert_int_equal(qkv_rank(made[RANKS], qkv_cstr("the cat"), as_strings(passages, NULL, 4), 4, NULL, &ranking), QKV_OK);
    const qkv_ranked *best = ranking->best;
    for (int top = 2; top <= 4; top += 2) {
        char body[256];
        sprintf(body, "{\"query\":\"the cat\",\"passages\":[\"%s\",\"%s\",\"%s\",\"%s\"]%s}", passages[0], passages[1],
                passages[2], passages[3], top == 2 ? ",\"top\":2" : "");
        const qkv__json_value *all = posted(RANKS, "/rank", body, 200);
        const qkv__json_value *found = qkv__json_get(all, "best");
        assert_int_equal(qkv__json_size(found), top);
        assert_int_equal(qkv__json_int(qkv__json_get(all, "cut")), 0);
        for (int i = 0; i < top; i++) {
            const qkv__json_value *x = qkv__json_at(found, (size_t)i);
            assert_int_equal(qkv__json_int(qkv__json_get(x, "index")), best[i].index);
            assert_true((float)qkv__json_number(qkv__json_get(x, "score")) == best[i].score);
            assert_string_equal(qkv__json_text(qkv__json_get(x, "text")), passages[best[i].index]);
        }
        json_free(all);
    }
    qkv_free(ranking);
}

static void labels_and_numbers_are_the_librarys(void **state)
{
    static const char *const texts[] = { "the cat", "我爱你" };
    qkv_matrix *rows = NULL;
    (void)state;
    assert_int_equal(qkv_classify(made[SEVERAL], as_strings(texts, NULL, 2), 2, NULL, &rows), QKV_OK);
    const qkv__json_value *all = posted(SEVERAL, "/classify", "{\"text\":[\"the cat\",\"我爱你\"]}", 200);
    for (size_t i = 0; i < 2; i++) {
        const qkv__json_value *x = qkv__json_at(qkv__json_get(all, "results"), i), *classes = qkv__json_get(x, "classes");
        size_t likely = 0;
        for (size_t k = 0; k < 3; k++) {
            const char *label = qkv__json_text(qkv__json_get(qkv__json_at(classes, k), "label"));
            int64_t id = !strcmp(label, "O") ? 0 : !strcmp(label, "B-PER") ? 1 : 2;
            float p = (float)qkv__json_number(qkv__json_get(qkv__json_at(classes, k), "probability"));
            assert_true(p == rows->data[(int64_t)i * 3 + id]);
            likely += p >= 0.5f;
        }
        assert_true(qkv__json_is_array(qkv__json_get(x, "labels")));
        assert_int_equal(qkv__json_size(qkv__json_get(x, "labels")), likely);
    }
    json_free(all);
    assert_int_equal(qkv_classify(made[NUMBERS], as_strings(texts, NULL, 2), 2, NULL, &rows), QKV_OK);
    all = posted(NUMBERS, "/classify", "{\"text\":[\"the cat\",\"我爱你\"]}", 200);
    for (size_t i = 0; i < 2; i++) {
        const qkv__json_value *x = qkv__json_at(qkv__json_get(all, "results"), i);
        assert_true((float)qkv__json_number(qkv__json_get(x, "number")) == rows->data[i]);
        assert_null(qkv__json_get(x, "classes"));
    }
    json_free(all);
    qkv_free(rows);
}

/* ---- what is refused ---- */

typedef struct refusal {
    int head;
    const char *path, *body, *why;
} refusal;

static void refused_with(const refusal *r, int status)
{
    const qkv__json_value *x = posted(r->head, r->path, r->body, status);
    const char *why = qkv__json_text(qkv__json_get(qkv__json_get(x, "error"), "message"));
    if (!strstr(why, r->why)) fail_msg("%s of %s: %s", r->path, r->body, why);
    json_free(x);
}

static void others_are_not_found(void **state)
{
    static const refusal rows[] = {
        { ANSWERS, "/tag", "{\"text\":\"x\"}", "/tag is not for the model of this server: the model has no head for \"tag\"" },
        { TAGS, "/answer", "{\"question\":\"x\",\"context\":\"y\"}", "no head for \"answer\": it can tag, embed" },
        { SEVERAL, "/rank", "{\"query\":\"x\",\"passages\":\"y\"}", "no head for \"rank\": it can classify, embed" },
        { TAGS, "/classify", "{\"text\":\"x\"}", "/classify is not for the model" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) refused_with(&rows[i], 404);
}

static void bad_members_are_refused(void **state)
{
    static const refusal rows[] = {
        { TAGS, "/tag", "{}", "\"text\" is missing" },
        { TAGS, "/tag", "{\"text\":1}", "\"text\"" },
        { TAGS, "/tag", "{\"text\":[]}", "\"text\"" },
        { TAGS, "/tag", "{\"text\":\"x\",\"words\":1}", "\"words\"" },
        { ANSWERS, "/answer", "{\"context\":\"x\"}", "\"question\" is missing" },
        { ANSWERS, "/answer", "{\"question\":\"x\"}", "\"context\" is missing" },
        { ANSWERS, "/answer", "{\"question\":\"x\",\"context\":[\"y\"]}", "\"context\"" },
        { ANSWERS, "/answer", "{\"question\":\"x\",\"context\":\"y\",\"n_best\":0}",
          "\"n_best\" is 0: it must be from 1 to 16" },
        { ANSWERS, "/answer", "{\"question\":\"x\",\"context\":\"y\",\"n_best\":17}", "\"n_best\"" },
        { ANSWERS, "/answer", "{\"question\":\"x\",\"context\":\"y\",\"max_answer\":0}", "\"max_answer\"" },
        { ANSWERS, "/answer", "{\"question\":\"x\",\"context\":\"y\",\"must_answer\":1}", "\"must_answer\"" },
        { RANKS, "/rank", "{\"passages\":[\"x\"]}", "\"query\" is missing" },
        { RANKS, "/rank", "{\"query\":\"x\"}", "\"passages\" is missing" },
        { RANKS, "/rank", "{\"query\":[\"x\"],\"passages\":[\"x\"]}", "\"query\"" },
        { RANKS, "/rank", "{\"query\":\"x\",\"passages\":[1]}", "\"passages\"" },
        { RANKS, "/rank", "{\"query\":\"x\",\"passages\":[\"x\"],\"top\":0}", "\"top\"" },
        { RANKS, "/rank", "{\"query\":\"x\",\"passages\":[\"x\"],\"top\":65}", "\"top\"" },
        { RANKS, "/rank", "{\"query\":\"x\",\"passages\":\"\xff\"}", "not UTF-8" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) refused_with(&rows[i], 400);
}

static void no_more_than_64_texts(void **state)
{
    static const struct {
        int head;
        const char *path, *before;
    } rows[] = { { TAGS, "/tag", "{\"text\":[" },
                 { ANSWERS, "/answer", "{\"context\":\"x\",\"question\":[" },
                 { RANKS, "/rank", "{\"query\":\"x\",\"passages\":[" } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int n = 64; n <= 65; n++) {
            char body[1024];
            int length = sprintf(body, "%s\"x\"", rows[i].before);
            for (int k = 1; k < n; k++) length += sprintf(body + length, ",\"x\"");
            sprintf(body + length, "]}");
            json_free(posted(rows[i].head, rows[i].path, body, n > 64 ? 400 : 200));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_are_the_librarys),  cmocka_unit_test(answers_are_the_librarys),
        cmocka_unit_test(ranks_are_the_librarys), cmocka_unit_test(labels_and_numbers_are_the_librarys),
        cmocka_unit_test(others_are_not_found),   cmocka_unit_test(bad_members_are_refused),
        cmocka_unit_test(no_more_than_64_texts),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
