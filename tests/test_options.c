/* test_options.c: the Transformer's options in files. */
#include "base/json.h"
#include "model/config.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"
#include "model/model.h"

/* What 0.1.0 wrote for a translator that was trained with an option of every kind. */
static qkv_config first_release(void)
{
    qkv_config o;
    qkv__labels labels = { 0 };
    qkv__config_extras extras;
    qkv__json_doc config;
    assert_int_equal(qkv__json_load(QKV_GOLDEN "/config_0.1.0.json", QKV__CONFIG_MAX, &config), QKV_OK);
    assert_int_equal(qkv__config_read("config.json", config.top, &o, &labels, &extras), QKV_OK);
    qkv__json_free(&config);
    return o;
}

static void test_first_release(void **state)
{
    (void)state;
    const qkv_config o = first_release();
    assert_int_equal(o.vocab_size, 300);
    assert_int_equal(o.target_vocab_size, 300);
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

/* What checkpoints of 0.1.0 say of their models: they must resume. The last one has options that are hashed where they are not
 * 0. */
static void test_old_hashes(void **state)
{
    (void)state;
    const qkv_config translator = first_release();
    assert_true(qkv__transformer_hash(&translator) == 0x3202b80d14d8f361);
    const qkv_config classifier = { .vocab_size = 300,
                                    .encoder_layers = 2,
                                    .dim = 16,
                                    .heads = 4,
                                    .d_ff = 40,
                                    .activation = QKV_ACTIVATION_SWIGLU,
                                    .positions = QKV_POSITION_ROPE,
                                    .dropout = 0.1f,
                                    .classes = 2,
                                    .pooling = QKV_POOLING_ATTENTION };
    assert_true(qkv__transformer_hash(&classifier) == 0x192d6ed4dbee5b01);
    const qkv_config generator = { .vocab_size = 33,
                                   .decoder_layers = 2,
                                   .dim = 16,
                                   .heads = 4,
                                   .d_ff = 40,
                                   .pre_norm = 1,
                                   .activation = QKV_ACTIVATION_SILU,
                                   .positions = QKV_POSITION_SINUSOID_HALVES,
                                   .dropout = 0.1f };
    assert_true(qkv__transformer_hash(&generator) == 0x7f70b25c492ec1bb);
    qkv_config published = classifier;
    published.pooler = QKV_POOLER_TANH;
    published.token_types = 2;
    published.rope_factor = 8;
    assert_true(qkv__transformer_hash(&published) == 0x8a06d858a3db79bc);
    qkv_config newer = translator; /* than 0.1.0 */
    newer.no_source_eos = 1;
    assert_true(qkv__transformer_hash(&newer) == 0xfd7c302c6755aabc);
}

/* ---- every row of transformer.def ---- */

static const qkv_config zero;

static bool is_same(const qkv_config *a, const qkv_config *b)
{
    bool same = true;
#define QKV_OPTION(member, ...) same = same && a->member == b->member;
#include <qkv/transformer.def>
    return same;
}

/* Written and read again, an option is what it was; and a checkpoint knows that it is another. */
static void check_row(const char *name, const qkv_config *o)
{
    qkv_config back;
    qkv__labels labels = { 0 };
    qkv__config_extras extras;
    qkv__json_doc config;
    const char *path = in_folder("config.json");
    assert_int_equal(qkv__config_write(path, o, &labels, &(qkv__model_info){ .family = "qkv" }, 0), QKV_OK);
    assert_int_equal(qkv__json_load(path, QKV__CONFIG_MAX, &config), QKV_OK);
    assert_int_equal(qkv__config_read(path, config.top, &back, &labels, &extras), QKV_OK);
    qkv__json_free(&config);
    if (!is_same(o, &back)) fail_msg("%s is not read as it was written", name);
    if (qkv__transformer_hash(o) == qkv__transformer_hash(&zero)) fail_msg("%s is not hashed", name);
}

static void test_every_option(void **state)
{
    (void)state;
    enum { COUNT = 3, INT = 2, FLAG = 1, UNLESS = 1, NUMBER = 7, WORD = 1 };
    qkv_config o;
#define QKV_OPTION(member, kind, ...)      \
    memset(&o, 0, sizeof o);               \
    o.member = (__typeof__(o.member))kind; \
    check_row(#member, &o);
#include <qkv/transformer.def>
}

/* Each value of an enum has a word of its own, in the file and on the command line. */
static void test_every_value(void **state)
{
    (void)state;
    qkv_config o;
#define QKV_OPTION_VALUE(member, value, ...)                        \
    memset(&o, 0, sizeof o);                                        \
    o.member = value;                                               \
    o.vocab_size = 1; /* the first values are those of all zeros */ \
    check_row(#value, &o);
#include <qkv/transformer.def>
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_release), cmocka_unit_test(test_old_hashes),
                                        cmocka_unit_test(test_every_option), cmocka_unit_test(test_every_value) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
