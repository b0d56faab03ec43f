/* test_describe.c: what is known of a model, as lines and as JSON; and one model out of several. */
#include <qkv/qkv.h>
#include "nn/params.h"
#include "report/average.h"
#include "report/results.h"

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
#include "folder.h"

static qkv_model *make_model_of(int64_t classes, uint64_t seed)
{
    const qkv_config o = { .vocab_size = 20, .encoder_layers = 2, .dim = 8, .heads = 2, .d_ff = 16, .classes = classes };
    return qkv_model_new(&o, seed);
}

static qkv_model *make_model(void) { return make_model_of(3, 1); }

static void lines_are_for_people(void **state)
{
    (void)state;
    qkv_buffer text = { 0 };
    qkv_model *m = make_model();
    assert_int_equal(qkv_model_describe(m, NULL, 0, &text), QKV_OK);
    assert_memory_equal(text.data, "architecture    qkv\nparameters      ", 36);
    assert_non_null(strstr(text.data, "\nlayers          2 of the encoder\ndim             8\nheads           2\n"));
    assert_non_null(strstr(text.data, "\ntokenizer       none\n"));
    assert_non_null(strstr(text.data, "\nclasses         3\n"));
    qkv_buffer_free(&text);
    qkv_model_free(m);
}

static void json_is_for_programs(void **state)
{
    (void)state;
    qkv_buffer text = { 0 };
    qkv_model *m = make_model();
    assert_int_equal(qkv_model_describe(m, "nowhere", 1, &text), QKV_OK);
    const qkv__json_value *all = json_parse_text(text.data);
    assert_non_null(all);
    assert_int_equal(qkv__json_int(qkv__json_get(all, "parameters")), qkv_params_count(qkv_model_params(m)));
    assert_int_equal(qkv__json_int(qkv__json_get(all, "encoder_layers")), 2);
    assert_true(qkv__json_is_null(qkv__json_get(all, "tokenizer")));
    assert_true(qkv__json_is_null(qkv__json_get(all, "generation")));
    json_free(all);
    qkv_buffer_free(&text);
    qkv_model_free(m);
}

static qkv_status describe_once(void)
{
    qkv_buffer text = { 0 };
    qkv_model *m = make_model();
    qkv_status status = m ? qkv_model_describe(m, NULL, 0, &text) : qkv_error_status();
    if (!status) status = qkv_model_describe(m, NULL, 1, &text);
    qkv_buffer_free(&text);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(describe_once) > 10);
}

/* ---- one out of several ---- */

static void save_in(const char *name, int64_t classes, uint64_t seed)
{
    qkv_model *m = make_model_of(classes, seed);
    assert_int_equal(qkv_model_save(m, in_folder(name), NULL), QKV_OK);
    qkv_model_free(m);
}

static void means_of_models(void **state)
{
    (void)state;
    save_in("a", 3, 1), save_in("b", 3, 2), save_in("c", 4, 1);
    const char *const two[] = { in_folder("a"), in_folder("b") }, *const other[] = { two[0], in_folder("c") };
    qkv_model *a = qkv_model_load(two[0], NULL), *b = qkv_model_load(two[1], NULL), *mean = qkv_model_average(two, 2);
    assert_non_null(mean);
    const float *x = qkv__params_data(qkv_model_params(a)), *y = qkv__params_data(qkv_model_params(b)),
                *z = qkv__params_data(qkv_model_params(mean));
    for (int64_t i = 0; i < qkv__params_block(qkv_model_params(a)); i++)
        assert_true(z[i] == (float)(((double)x[i] + (double)y[i]) / 2));
    qkv_model_free(a), qkv_model_free(b), qkv_model_free(mean);
    assert_null(qkv_model_average(other, 2));
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "these are models of two kinds"));
    assert_null(qkv_model_average(two, 0));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_for_people),
        cmocka_unit_test(json_is_for_programs),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(means_of_models),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
