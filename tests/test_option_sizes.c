/* test_option_sizes.c: option structs of programs that were compiled with an older or a newer release. */
#include <qkv/qkv.h>
#include "draw/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "scores.h"

/* The struct of a newer release: members behind ours. */
#define NEWER(type)           \
    struct {                  \
        type options;         \
        size_t younger, more; \
    }

static const char *const one[] = { "THE cat sat on the mat" }, *const two[] = { "the cat sat on the mat" };
static const char *const *const references[] = { two };

static double bleu_of(const void *opts)
{
    qkv_bleu_score score;
    assert_int_equal(bleu_of_strings(one, references, 1, 1, opts, &score), QKV_OK);
    return score.score;
}

static void with_size_or_without(void **state)
{
    (void)state;
    qkv_bleu_opts o = QKV_OPTS(qkv_bleu_opts);
    assert_int_equal(o.size, sizeof o);
    assert_true(bleu_of(&o) < 90 && bleu_of(NULL) < 90);
    o.lowercase = 1;
    assert_true(bleu_of(&o) > 99);
    assert_true(bleu_of(&(qkv_bleu_opts){ .lowercase = 1 }) > 99);
}

/* What is behind a shorter struct is not the library's to read. */
static void older_programs(void **state)
{
    (void)state;
    qkv_curve_opts curve = { .size = offsetof(qkv_curve_opts, x_axis), .x_axis = "\xff", .y_axis = "\xff" };
    const double x[] = { 1, 2 };
    const qkv_curve line = { .x = x, .y = x, .n = 2 };
    assert_int_equal(qkv_picture_curves("no/such.folder", &line, 1, &curve), QKV_UNSUPPORTED); /* the ending, not the axes */
    curve.size = sizeof curve;
    assert_int_equal(qkv_picture_curves("no/such.folder", &line, 1, &curve), QKV_USAGE);

    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "a b a b", 7 }), QKV_OK);
    qkv_tokenizer_opts bpe = {
        .size = offsetof(qkv_tokenizer_opts, min_count), .vocab_size = 300, .min_count = -1, .n_specials = 7
    };
    qkv_tokenizer *t = qkv_tokenizer_train(w, &bpe);
    assert_non_null(t);
    assert_true(qkv_tokenizer_vocab_size(t) <= 300 && qkv_tokenizer_id(t, "<pad>") == 0);
    bpe.size = 0;
    assert_null(qkv_tokenizer_train(w, &bpe));
    qkv_tokenizer_free(t);
    qkv_word_counts_free(w);

    qkv_tape *tape = qkv_tape_new(NULL);
    qkv_tensor *logits = qkv_constant(tape, QKV_SHAPE(2, 2), (float[]){ 1, 2, 3, 4 });
    const float weights[] = { -1, -1 };
    qkv_cross_entropy_opts entropy = { .size = offsetof(qkv_cross_entropy_opts, weights), .weights = weights };
    assert_non_null(qkv_cross_entropy(logits, (int32_t[]){ 0, 1 }, &entropy));
    entropy.size = sizeof entropy;
    assert_null(qkv_cross_entropy(logits, (int32_t[]){ 0, 1 }, &entropy));
    qkv_tape_free(tape);
}

static void newer_programs(void **state)
{
    (void)state;
    NEWER(qkv_bleu_opts) bleu = { .options = { .lowercase = 1 } };
    bleu.options.size = sizeof bleu;
    assert_true(bleu_of(&bleu) > 99);
    NEWER(qkv_tape_opts) tape = { .options = { .inference = 1 } };
    tape.options.size = sizeof tape;
    qkv_tape *t = qkv_tape_new(&tape.options);
    assert_non_null(t);
    NEWER(qkv_rope_opts) rotary = { .options = { .heads = 2 } };
    rotary.options.size = sizeof rotary;
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(1, 1, 8), NULL);
    assert_non_null(qkv_rope(x, &rotary.options));
    NEWER(qkv_mask) mask = { .options = { .causal = 1 } };
    mask.options.size = sizeof mask;
    assert_non_null(qkv_attention(x, x, x, &mask.options, NULL));
    mask.younger = 1;
    assert_null(qkv_attention(x, x, x, &mask.options, NULL));
    assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    qkv_tape_reset(t);
    x = qkv_constant(t, QKV_SHAPE(1, 1, 8), NULL);

    bleu.more = tape.more = rotary.younger = 1;
    qkv_bleu_score score;
    assert_int_equal(bleu_of_strings(one, references, 1, 1, &bleu.options, &score), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "bleu: an option is set that this libqkv (" QKV_VERSION_STRING ") does not know"));
    assert_null(qkv_tape_new(&tape.options));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    assert_null(qkv_rope(x, &rotary.options));
    assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    qkv_tape_free(t);
}

static void sizes_that_no_struct_has(void **state)
{
    (void)state;
    const size_t sizes[] = { 1, sizeof(size_t), sizeof(qkv_bleu_opts) + 1, 4104, SIZE_MAX - 7 };
    qkv_bleu_score score;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const qkv_bleu_opts o = { .size = sizes[i] };
        assert_int_equal(bleu_of_strings(one, references, 1, 1, &o, &score), QKV_USAGE);
        assert_non_null(strstr(qkv_error(), "QKV_OPTS()"));
    }
}

/* Options that the library gives go no further than the caller has room. */
static void options_as_results(void **state)
{
    (void)state;
    qkv_generate_opts shorter, whole = QKV_OPTS(qkv_generate_opts);
    memset(&shorter, 0x5a, sizeof shorter);
    shorter.size = offsetof(qkv_generate_opts, stops);
    assert_int_equal(qkv_sampling_defaults(NULL, &shorter), QKV_OK);
    assert_true(shorter.size == offsetof(qkv_generate_opts, stops) && shorter.temperature == 0 && shorter.no_repeat_ngram == 0);
    assert_int_equal(shorter.seed, 0x5a5a5a5a5a5a5a5a);
    whole.top_k = 3;
    assert_int_equal(qkv_sampling_defaults(NULL, &whole), QKV_OK);
    assert_true(whole.size == sizeof whole && whole.top_k == 0);
    NEWER(qkv_generate_opts) newer = { .options = { .size = sizeof newer }, .younger = 7 };
    assert_int_equal(qkv_sampling_defaults(NULL, &newer.options), QKV_OK);
    assert_true(newer.younger == 0 && newer.options.size == sizeof newer);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(with_size_or_without), cmocka_unit_test(older_programs),
                                        cmocka_unit_test(newer_programs), cmocka_unit_test(sizes_that_no_struct_has),
                                        cmocka_unit_test(options_as_results) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
