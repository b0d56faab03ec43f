/* test_results_json.c: what models gave, as JSON that says the same. */
#include <qkv/qkv.h>
#include "report/results.h"
#include "report/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json_values.h"
#include "failing.h"
#include "as_strings.h"

static qkv_model *make_model(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_tokenizer *t = NULL;
    if (w && !qkv_word_counts_add(w, (qkv_str){ "a \"b\" c", 7 }))
        t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .min_count = 1 });
    qkv_word_counts_free(w);
    if (!t) return NULL;
    const qkv_config o = {
        .vocab_size = qkv_tokenizer_vocab_size(t), .encoder_layers = 1, .decoder_layers = 1, .dim = 8, .heads = 2, .d_ff = 16
    };
    qkv_model *m = qkv_model_new(&o, 5);
    if (m && !qkv_model_set_tokenizers(m, t, NULL)) return m;
    qkv_tokenizer_free(t);
    qkv_model_free(m);
    return NULL;
}

static const qkv__json_value *parsed(const qkv_buffer *text)
{
    const qkv__json_value *all = json_parse(text->data, text->length);
    if (!all) fail_msg("%s: %s", qkv_error(), text->data);
    return all;
}

static const char *string_at(const qkv__json_value *list, size_t i) { return qkv__json_text(qkv__json_at(list, i)); }

static void translations_have_all_of_it(void **state)
{
    (void)state;
    const char *const texts[] = { "a \"b\"", "" };
    qkv_translations *t = NULL;
    qkv_buffer text = { 0 };
    qkv_model *m = make_model();
    const qkv_translate_opts opts = { .beam_size = 2, .n_best = 2, .max_length = 4, .attention = 1 };
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 2), 2, &opts, &t), QKV_OK);
    assert_int_equal(qkv_translations_json(m, t, 0, 1, &text), QKV_OK);
    const qkv__json_value *all = parsed(&text);
    assert_string_equal(string_at(qkv__json_get(all, "source_tokens"), 1), "\"b\"");
    const qkv__json_value *one = qkv__json_at(qkv__json_get(all, "translations"), 1);
    assert_string_equal(qkv__json_text(qkv__json_get(one, "text")), t->best[1].text.data);
    assert_true(qkv__json_number(qkv__json_get(one, "log_p")) == t->best[1].log_p);
    assert_int_equal(qkv__json_size(qkv__json_get(one, "tokens")), t->best[1].n_ids);
    assert_int_equal(qkv__json_size(qkv__json_get(one, "alignment")), t->best[1].n_ids);
    const qkv__json_value *row = qkv__json_at(qkv__json_get(one, "attention"), 0);
    assert_int_equal(qkv__json_size(row), t->n_source[0]);
    assert_true((float)qkv__json_number(qkv__json_at(row, 1)) == t->best[1].mean_attention[1]);
    json_free(all);
    assert_int_equal(qkv_translations_json(m, t, 1, 1, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\"alignment\": [], \"attention\": []"));
    assert_int_equal(qkv_translations_json(m, t, 0, 0, &text), QKV_OK);
    assert_null(strstr(text.data, "attention"));
    assert_int_equal(qkv_translations_json(m, t, 2, 0, &text), QKV_USAGE);
    qkv_free(t);
    qkv_buffer_free(&text);
    qkv_model_free(m);
}

static void what_was_generated(void **state)
{
    (void)state;
    int32_t ids[] = { 4, 5 };
    double log_p[] = { -0.1, -2 };
    qkv_generated g = { .text = { "x\n\xFF", 3 }, .ids = ids, .n = 2, .log_p = log_p };
    qkv_buffer text = { 0 };
    qkv_model *m = make_model();
    assert_int_equal(qkv_generated_json(m, &g, &text), QKV_OK);
    const qkv__json_value *all = parsed(&text);
    assert_string_equal(qkv__json_text(qkv__json_get(all, "text")), "x\n\xEF\xBF\xBD");
    assert_string_equal(string_at(qkv__json_get(all, "tokens"), 1),
                        qkv_tokenizer_token(qkv_model_tokenizer(m, QKV_SIDE_TARGET), ids[1]));
    assert_true(qkv__json_number(qkv__json_at(qkv__json_get(all, "log_p"), 0)) == log_p[0]);
    json_free(all);
    qkv_buffer_free(&text);
    qkv_model_free(m);
}

static void what_was_filled_in(void **state)
{
    (void)state;
    const qkv_span place = { 2, 8 };
    const qkv_filling best = { .id = 7, .p = 0.25, .token = qkv_cstr("cat"), .text = qkv_cstr("a cat") };
    qkv_buffer text = { 0 };
    assert_int_equal(qkv_filled_json(&(qkv_filled){ .masks = 1, .n_best = 1, .places = &place, .best = &best }, &text), QKV_OK);
    assert_string_equal(text.data, "{\"masks\": [{\"span\": [2, 8], \"best\": [{\"id\": 7, \"p\": 0.25, \"token\": \"cat\", "
                                   "\"text\": \"a cat\"}]}]}");
    qkv_buffer_free(&text);
}

static void what_was_classified(void **state)
{
    (void)state;
    const qkv_config o = { .vocab_size = 9, .encoder_layers = 1, .dim = 8, .heads = 2, .d_ff = 8, .classes = 3 };
    const char *const labels[] = { "a", "b", "\"c\"" };
    const float row[] = { 0.25f, 0.125f, 0.625f };
    qkv_buffer text = { 0 };
    qkv_model *m = qkv_model_new(&o, 1);
    assert_int_equal(qkv_model_set_labels(m, labels, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    assert_int_equal(qkv_classified_text(m, row, 0, 0, &text), QKV_OK);
    assert_string_equal(text.data, "\"c\"\t0.625000");
    assert_int_equal(qkv_classified_text(m, row, 1, 0, &text), QKV_OK);
    assert_string_equal(text.data, "\"c\"\t0.625000\ta\t0.250000\tb\t0.125000");
    assert_int_equal(qkv_classified_text(m, row, 0, 1, &text), QKV_OK);
    assert_string_equal(text.data,
                        "{\"label\": \"\\\"c\\\"\", \"probabilities\": {\"\\\"c\\\"\": 0.625, \"a\": 0.25, \"b\": 0.125}}");
    qkv_model_free(m);
    m = make_model();
    assert_int_equal(qkv_classified_text(m, row, 0, 1, &text), QKV_USAGE);
    qkv_model_free(m);
    qkv_buffer_free(&text);
}

static qkv_status use_ids(qkv_buffer *text)
{
    qkv_encoding *ids = NULL;
    qkv_model *m = make_model();
    const qkv_tokenizer *t = m ? qkv_model_tokenizer(m, QKV_SIDE_SOURCE) : NULL;
    qkv_status status = m ? qkv_tokenizer_encode(t, qkv_cstr("c \"b\""), NULL, &ids) : qkv_error_status();
    if (!status) status = qkv_ids_json(t, ids, 1, text);
    qkv_free(ids);
    qkv_model_free(m);
    return status;
}

static void ids_with_their_tokens(void **state)
{
    (void)state;
    qkv_buffer text = { 0 };
    assert_int_equal(use_ids(&text), QKV_OK);
    const qkv__json_value *all = parsed(&text);
    assert_int_equal(qkv__json_size(qkv__json_get(all, "types")), 2);
    assert_string_equal(string_at(qkv__json_get(all, "tokens"), 1), "\"b\"");
    assert_int_equal(qkv__json_size(qkv__json_get(all, "shown")), 2);
    assert_int_equal(qkv__json_int(qkv__json_at(qkv__json_at(qkv__json_get(all, "spans"), 1), 0)), 2);
    json_free(all);
    qkv_buffer_free(&text);
}

static qkv_status use_once(void)
{
    qkv_buffer text = { 0 };
    qkv_status status = use_ids(&text);
    qkv_buffer_free(&text);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(use_once) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translations_have_all_of_it), cmocka_unit_test(what_was_generated),
        cmocka_unit_test(what_was_filled_in),          cmocka_unit_test(what_was_classified),
        cmocka_unit_test(ids_with_their_tokens),       cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
