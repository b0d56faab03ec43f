/* test_options.c: the Transformer's options in files. */
#include "io/json.h"
#include "model/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* What 0.1.0 wrote for a translator that was trained with an option of every kind. */
static qkv_transformer_opts first_release(void)
{
    qkv_transformer_opts o;
    qkv__labels labels = { 0 };
    json_t *config;
    assert_int_equal(qkv__json_read(QKV_GOLDEN "/config_0.1.0.json", QKV__CONFIG_MAX, &config), QKV_OK);
    assert_int_equal(qkv__config_read("config.json", config, &o, &labels), QKV_OK);
    json_decref(config);
    return o;
}

static void test_first_release(void **state)
{
    (void)state;
    const qkv_transformer_opts o = first_release();
    assert_int_equal(o.vocabulary, 300);
    assert_int_equal(o.target_vocabulary, 300);
    assert_int_equal(o.encoder_layers, 1);
    assert_int_equal(o.decoder_layers, 1);
    assert_int_equal(o.dim, 16);
    assert_int_equal(o.heads, 4);
    assert_int_equal(o.d_ff, 40);
    assert_int_equal(o.kv_heads, 2);
    assert_int_equal(o.pre_norm, 1);
    assert_int_equal(o.norm, QKV_NORM_RMS);
    assert_int_equal(o.activation, QKV_ACTIVATION_GELU_TANH);
    assert_int_equal(o.positions, QKV_POSITION_LEARNED);
    assert_int_equal(o.max_positions, 70);
    assert_int_equal(o.no_bias, 1);
    assert_int_equal(o.untied, 1);
    assert_int_equal(o.unscaled, 0);
    assert_true(o.dropout == 0.11f && o.attention_dropout == 0.12f && o.ffn_dropout == 0.13f);
    assert_int_equal(o.no_source_eos, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_release) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
