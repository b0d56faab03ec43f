/* test_engine.c: what the live page is told is what the library computes. */
#include "engine/engine.h"
#include "json_values.h"
#include "serve_models.h"
#include "as_strings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static qkv_model *made[MODEL_KINDS];
static qkv__engine *engines[MODEL_KINDS];

/* The model that translates ends its texts sooner or later. */
static void scale_end(float by)
{
    enum { END = 2, DIM = 16 };
    float *end = qkv_tensor_data_mut(qkv_params_find(qkv_model_params(made[MODEL_PAIR]), "embed.weight")) + END * DIM;
    for (int i = 0; i < DIM; i++) end[i] *= by;
}

static int make_engines(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_KINDS; kind++)
        if (!(made[kind] = make_served(kind)) || !(engines[kind] = qkv__engine_new(made[kind], "test"))) return -1;
    return 0;
}

static int free_engines(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_KINDS; kind++) qkv__engine_free(engines[kind]), qkv_model_free(made[kind]);
    qkv_shutdown();
    return 0;
}

static const qkv__json_value *ask(int kind, const char *request)
{
    qkv_buffer answer = { 0 };
    assert_int_equal(QKV_OK, qkv__engine_request(engines[kind], request, strlen(request), &answer));
    const qkv__json_value *object = json_parse(answer.data, answer.length);
    assert_non_null(object);
    qkv_buffer_free(&answer);
    return object;
}

static double number(const qkv__json_value *o, const char *name)
{
    assert_true(qkv__json_is_number(qkv__json_get(o, name)));
    return qkv__json_number(qkv__json_get(o, name));
}

static const char *word(const qkv__json_value *o, const char *name)
{
    assert_true(qkv__json_is_string(qkv__json_get(o, name)));
    return qkv__json_text(qkv__json_get(o, name));
}

/* A request about a text whose translation comes to its end by itself, and that translation. */
static const qkv__json_value *ask_of_ended(const char *start, int beam, qkv_translations **found)
{
    static const char *const texts[] = { "I love you",   "the cat sat", "the mat",     "you",
                                         "猫坐在垫子上", "dog",         "cat and dog", "我" };
    char request[128];
    for (size_t i = 0, n = sizeof texts / sizeof *texts; i < 12 * n; i++) {
        const qkv_translate_opts opts = { .beam_size = beam };
        if (i && i % n == 0) scale_end(i == 6 * n ? -0.1f : 1.5f); /* larger, and then the other way */
        assert_int_equal(QKV_OK, qkv_translate(made[MODEL_PAIR], as_strings(&texts[i % n], NULL, 1), 1, &opts, found));
        snprintf(request, sizeof request, "{%s,\"text\":\"%s\",\"beam\":%d}", start, texts[i % n], beam);
        if (!(*found)->best->truncated && (*found)->best->n_ids) return ask(MODEL_PAIR, request);
    }
    fail_msg("no translation of these ends");
    return NULL;
}

/* ---- texts to begin with ---- */

/* The first is that of "example"; no text of another language, or in letters alone, follows. */
static void examples_begin_with_the_example(void **state)
{
    (void)state;
    static const char *const wanted[MODEL_KINDS] = { "I love you", "The film was wonderful", "Once upon a time",
                                                     "The cat sat on the mat" };
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        const qkv__json_value *a = ask(kind, "{\"do\":\"info\"}");
        const qkv__json_value *all = qkv__json_get(a, "examples");
        assert_string_equal(wanted[kind], word(a, "example"));
        assert_string_equal(wanted[kind], qkv__json_text(qkv__json_at(all, 0)));
        for (size_t i = 1; i < qkv__json_size(all); i++) assert_true(qkv__json_text(qkv__json_at(all, i))[0] < 0x7f);
        json_free(a);
    }
}

/* ---- the beam ---- */

static void the_tree_leads_to_the_translations(void **state)
{
    (void)state;
    qkv_translations *found = NULL;
    const qkv__json_value *a = ask_of_ended("\"do\":\"beam\"", 3, &found);
    const qkv__json_value *nodes = qkv__json_get(a, "nodes"), *best = qkv__json_at(qkv__json_get(a, "translations"), 0),
                          *end = NULL;
    int kept[256] = { 0 };
    for (size_t i = 0; i < qkv__json_size(nodes); i++) {
        const qkv__json_value *node = qkv__json_at(nodes, i);
        assert_true(number(node, "parent") < (double)i);
        if (!strcmp(word(node, "state"), "kept")) assert_true(++kept[(int)number(node, "step")] <= 3);
        if (!strcmp(word(node, "state"), "done") && fabs(number(node, "score") - number(best, "score")) < 1e-12) end = node;
    }
    assert_non_null(end);
    const qkv__json_value *ids = qkv__json_get(best, "ids");
    for (size_t i = qkv__json_size(ids); i-- > 0;) {
        end = qkv__json_at(nodes, (size_t)number(end, "parent"));
        assert_true(number(end, "id") == qkv__json_number(qkv__json_at(ids, i)));
        assert_true(number(end, "step") == (double)(i + 1));
    }
    assert_true(number(end, "parent") == 0);
    assert_string_equal(found->best->text.data, word(best, "text"));
    qkv_free(found);
    json_free(a);
}

/* ---- distributions ---- */

static void sum_tokens(const qkv__json_value *a, double *p, double *drawn, int *n_drawn)
{
    const qkv__json_value *tokens = qkv__json_get(a, "tokens");
    *p = *drawn = *n_drawn = 0;
    double before = 2;
    for (size_t i = 0; i < qkv__json_size(tokens); i++) {
        const qkv__json_value *t = qkv__json_at(tokens, i);
        assert_true(number(t, "p") <= before);
        *p += before = number(t, "p");
        *drawn += number(t, "drawn");
        *n_drawn += number(t, "drawn") > 0;
    }
}

static void next_tokens_have_the_probabilities_of_a_draw(void **state)
{
    (void)state;
    double p, drawn;
    int n;
    const qkv__json_value *a = ask(MODEL_LANGUAGE,
                                   "{\"do\":\"next\",\"text\":\"the cat\",\"n\":200,\"temperature\":0.8,\"top_k\":7}");
    sum_tokens(a, &p, &drawn, &n);
    assert_true(p > 0.5 && p <= 1 + 1e-9 && fabs(drawn - 1) < 1e-9 && n == 7);
    assert_true(number(a, "entropy") > 0 && number(a, "candidates") == 7);
    json_free(a);
    a = ask(MODEL_LANGUAGE, "{\"do\":\"next\",\"text\":\"the cat\",\"n\":200}");
    sum_tokens(a, &p, &drawn, &n);
    assert_true(n == 1 && drawn == 1);
    json_free(a);
}

/* The nats of all tokens together are the translation's. */
static void surprise_adds_up_to_the_translation(void **state)
{
    (void)state;
    double bits = 0;
    qkv_translations *found = NULL;
    const qkv__json_value *a = ask_of_ended("\"do\":\"surprise\"", 4, &found);
    const qkv__json_value *tokens = qkv__json_get(a, "tokens");
    for (size_t i = 0; i < qkv__json_size(tokens); i++) bits += number(qkv__json_at(tokens, i), "bits");
    assert_int_equal(found->best->n_ids + 1, qkv__json_size(tokens));
    assert_true(fabs(bits * log(2.0) + found->best->log_p) < 1e-4);
    qkv_free(found);
    json_free(a);
}

/* ---- run ---- */

static void run_has_what_every_model_makes_of_a_text(void **state)
{
    (void)state;
    static const char *const outputs[] = { "translations", "classes", "text" };
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        const qkv__json_value *a = ask(kind, "{\"do\":\"run\",\"text\":\"I love you\",\"max_tokens\":4}");
        const qkv__json_value *kinds = qkv__json_get(a, "kinds"), *weights = qkv__json_get(a, "weights");
        assert_int_equal(kind == MODEL_PAIR ? 3 : 1, qkv__json_size(kinds));
        assert_int_equal(qkv__json_size(kinds), qkv__json_size(weights));
        if (kind < 3) assert_non_null(qkv__json_get(qkv__json_get(a, "output"), outputs[kind]));
        json_free(a);
    }
    const qkv__json_value *a = ask(MODEL_PAIR,
                                   "{\"do\":\"run\",\"text\":\"I love you\",\"attention\":[\"cross\"],\"max_cells\":1}");
    assert_int_equal(0, qkv__json_size(qkv__json_get(a, "weights")));
    json_free(a);
}

/* A member that came twice would fail in ask(). */
static void why_names_its_output(void **state)
{
    (void)state;
    const qkv__json_value *a = ask(MODEL_CLASSES,
                                   "{\"do\":\"why\",\"text\":\"I love you\",\"output\":1,\"methods\":[\"gradient\"]}");
    assert_string_equal(word(a, "name"), "bad");
    assert_null(qkv__json_get(a, "baseline_logit"));
    json_free(a);
    a = ask(MODEL_LANGUAGE, "{\"do\":\"why\",\"text\":\"the cat\",\"methods\":[\"integrated\"],\"steps\":8}");
    assert_true(*word(a, "name"));
    number(a, "baseline_logit");
    json_free(a);
}

static void refused(int kind, const char *request, int status, const char *piece)
{
    const qkv__json_value *a = ask(kind, request);
    const qkv__json_value *error = qkv__json_get(a, "error");
    assert_non_null(error);
    assert_int_equal(status, number(error, "status"));
    assert_non_null(strstr(word(error, "message"), piece));
    json_free(a);
}

static void bad_requests_are_refused_with_a_sentence(void **state)
{
    (void)state;
    refused(MODEL_PAIR, "{", QKV_FORMAT, "not JSON");
    refused(MODEL_PAIR, "[]", QKV_USAGE, "\"do\"");
    refused(MODEL_PAIR, "{\"do\":\"fly\"}", QKV_USAGE, "fly");
    refused(MODEL_PAIR, "{\"do\":\"run\"}", QKV_USAGE, "\"text\" is missing");
    refused(MODEL_PAIR, "{\"do\":\"head\",\"text\":\"I\"}", QKV_USAGE, "\"kind\" is missing");
    refused(MODEL_PAIR, "{\"do\":\"head\",\"text\":\"I\",\"kind\":\"cross\",\"layer\":9,\"head\":0}", QKV_USAGE, "9");
    refused(MODEL_PAIR, "{\"do\":\"run\",\"text\":\"I\",\"switches\":[\"fly\"]}", QKV_USAGE, "fly");
    refused(MODEL_CLASSES, "{\"do\":\"beam\",\"text\":\"I\"}", QKV_UNSUPPORTED, "classify");
    refused(MODEL_PAIR, "{\"do\":\"learn\",\"steps\":1}", QKV_USAGE, "start");
    refused(MODEL_PAIR, "{\"do\":\"learn\",\"start\":{\"task\":\"fly\"}}", QKV_USAGE, "fly");
}

/* ---- learning ---- */

static void a_toy_is_learned_the_same_way_twice(void **state)
{
    (void)state;
    json_free(ask(MODEL_PAIR, "{\"do\":\"learn\",\"start\":{\"task\":\"copy\",\"seed\":3}}"));
    const qkv__json_value *first = ask(MODEL_PAIR, "{\"do\":\"learn\",\"steps\":120}"), *again;
    assert_true(number(first, "loss") < 1.5 && number(first, "step") == 120 && number(first, "accuracy") >= 0);
    const qkv__json_value *weights = ask(MODEL_PAIR, "{\"do\":\"learn\",\"weights\":true}"), *others;
    json_free(ask(MODEL_ENCODER, "{\"do\":\"learn\",\"start\":{\"task\":\"copy\",\"seed\":3}}"));
    again = ask(MODEL_ENCODER, "{\"do\":\"learn\",\"steps\":120,\"measure\":false}");
    others = ask(MODEL_ENCODER, "{\"do\":\"learn\",\"weights\":true}");
    assert_true(number(first, "loss") == number(again, "loss"));
    assert_true(qkv__json_equal(weights, others));
    assert_null(qkv__json_get(again, "examples"));
    json_free(first), json_free(again), json_free(weights), json_free(others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_begin_with_the_example),
        cmocka_unit_test(bad_requests_are_refused_with_a_sentence),
        cmocka_unit_test(run_has_what_every_model_makes_of_a_text),
        cmocka_unit_test(why_names_its_output),
        cmocka_unit_test(the_tree_leads_to_the_translations),
        cmocka_unit_test(next_tokens_have_the_probabilities_of_a_draw),
        cmocka_unit_test(surprise_adds_up_to_the_translation),
        cmocka_unit_test(a_toy_is_learned_the_same_way_twice),
    };
    return cmocka_run_group_tests(tests, make_engines, free_engines);
}
