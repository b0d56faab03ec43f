/* test_bench.c: what qkv_bench() reports is of what it says, and bad input is refused. No time is judged: that a figure is there
 * is all that a test can say of it. */
#include "bench/bench.h"
#include <qkv/model.h>

#include "../app/bench/measure.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"

typedef struct rows {
    qkv_bench_row at[32];
    int n, most;
} rows;

static qkv_status keep_row(void *data, const qkv_bench_row *row)
{
    rows *r = data;
    assert_true(r->n < 32);
    r->at[r->n++] = *row;
    return r->n == r->most ? QKV_FAILURE : QKV_OK;
}

static rows measure(qkv_bench_kind kind, const qkv_bench_opts *o, int most)
{
    rows r = { .most = most };
    assert_int_equal(qkv_bench(kind, o, keep_row, &r), r.most ? QKV_FAILURE : QKV_OK);
    for (int i = 0; i < r.n; i++) {
        const qkv_bench_row *x = &r.at[i];
        assert_int_equal(x->kind, kind);
        assert_int_equal(x->threads, qkv_num_threads());
        assert_true(x->amount > 0 && x->operations > 0 && x->peak > 0);
        assert_true(x->best > 0 && x->median >= x->best && isfinite(x->median));
        assert_true(!(x->bytes > 0) == !(x->bandwidth > 0));
        assert_true(!(x->bytes > 0) == !(x->share_median > 0));
        assert_true(x->share_best >= x->share_median && isfinite(x->share_best));
        double about = x->bytes / x->median / x->bandwidth; /* the machine may be busy in one of the two */
        if (x->bytes > 0) assert_true(x->share_median > about / 30 && x->share_median < about * 30);
    }
    return r;
}

/* ---- models of our own ---- */

static const qkv_config small = { .vocab_size = 50, .dim = 8, .heads = 2, .d_ff = 16, .untied = 1 };

static const char *saved(const char *name, int encoder, int decoder)
{
    qkv_config o = small;
    o.encoder_layers = encoder;
    o.decoder_layers = decoder;
    qkv_model *m = qkv_model_new(&o, 1);
    assert_non_null(m);
    const char *path = in_folder(name);
    assert_int_equal(qkv_model_save(m, path, NULL), QKV_OK);
    qkv_model_free(m);
    return path;
}

/* Weights of a layer that every token meets: 4 of attention, 2 of feed-forward; of cross-attention those of queries and
 * results, and for a source token keys and values. */
enum { ATTENTION = 8 * 8, FFN = 2 * 8 * 16, OUTPUT = 50 * 8 };

static void a_translator(void **state)
{
    (void)state;
    qkv_bench_opts o = {
        .folder = saved("translator", 2, 1), .repeat = 3, .batch = 2, .beam = 2, .length = 5, .new_tokens = 4
    };
    rows r = measure(QKV_BENCH_TRANSLATE, &o, 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.at[0].samples, 3);
    assert_string_equal(r.at[0].name, "model, 2 sentences, beam 2, 5 to 4");
    assert_true(r.at[0].amount == 8);
    double source = 2 * (4 * ATTENTION + FFN) + 2 * ATTENTION, step = 6 * ATTENTION + FFN + OUTPUT;
    assert_true(r.at[0].operations == 2 * 2 * (5 * source + 4 * 2 * step));
    assert_true(r.at[0].bytes == 4 * (source + 4 * step));
    assert_true(r.at[0].block == 4 * step);
    o.batch = o.beam = 0;
    assert_int_equal(measure(QKV_BENCH_TRANSLATE, &o, 0).n, 4);
}

static void a_generator(void **state)
{
    (void)state;
    const qkv_bench_opts o = { .folder = saved("generator", 0, 2), .quick = 1, .batch = 3, .length = 6, .new_tokens = 2 };
    rows r = measure(QKV_BENCH_GENERATE, &o, 0);
    double layers = 2 * (4 * ATTENTION + FFN);
    assert_int_equal(r.n, 2);
    assert_true(r.at[0].amount == 18 && r.at[0].operations == 2 * 3 * (6 * layers + OUTPUT));
    assert_true(r.at[1].amount == 6 && r.at[1].operations == 2 * 3 * 2 * (layers + OUTPUT));
    double cached = 2 * (8 + 8) * 3 * (7 + 8); /* keys and values of 2 layers, 3 rows, 7 tokens and then 8 */
    assert_true(r.at[1].bytes == 4 * (2 * (layers + OUTPUT) + cached));
}

static void random_models(void **state)
{
    (void)state;
    const qkv_bench_opts o = { .repeat = 1, .batch = 3, .length = 9 };
    rows r = measure(QKV_BENCH_EMBED, &o, 0);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.at[0].name, "MiniLM, 3 sentences of 9 tokens");
    assert_true(r.at[0].operations == 2.0 * 3 * 9 * 6 * (4 * 384 * 384 + 2 * 384 * 1536));
}

static void shapes(void **state)
{
    (void)state;
    rows r = measure(QKV_BENCH_MATMUL, &(qkv_bench_opts){ .repeat = 2, .batch = 1, .quick = 1 }, 0);
    assert_int_equal(r.n, 4); /* 512 x 512, 2048 x 512, 512 x 2048 and 32000 x 512 */
    assert_string_equal(r.at[0].name, "1 x 512 x 512");
    assert_true(r.at[0].operations == 2.0 * 512 * 512 && r.at[0].bytes == 4.0 * 512 * 512);
    r = measure(QKV_BENCH_ATTENTION, &(qkv_bench_opts){ .repeat = 1, .batch = 2, .length = 16 }, 0);
    assert_int_equal(r.n, 4);
    assert_string_equal(r.at[3].name, "B2 H8 T16 D64, causal, both ways");
    assert_true(r.at[0].operations == 4.0 * 2 * 8 * 64 * 16 * 16 && r.at[3].operations == 1.5 * r.at[0].operations);
    r = measure(QKV_BENCH_TRAIN, &(qkv_bench_opts){ .repeat = 1, .quick = 1, .batch = 1, .length = 4 }, 0);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.at[0].name, "small, 1 pairs of 4 tokens");
}

/* ---- samples ---- */

static void samples(void **state)
{
    (void)state;
    qkv__samples s = { 0 };
    static const double taken[] = { 5, 3, 9, 4, 7 };
    for (int i = 0; i < 5; i++) qkv__sample_add(&s, taken[i]);
    assert_true(qkv__samples_best(&s) == 3 && qkv__samples_median(&s) == 5);
    for (int i = 0; i < 2 * QKV__MOST_SAMPLES; i++) qkv__sample_add(&s, 1);
    assert_int_equal(s.n, QKV__MOST_SAMPLES);
}

/* ---- text ---- */

static void as_text(void **state)
{
    (void)state;
    qkv_bench_row row = { .kind = QKV_BENCH_TRANSLATE,
                          .name = "a \"model\"",
                          .unit = "tokens",
                          .amount = 10,
                          .threads = 2,
                          .samples = 5,
                          .best = 0.5,
                          .median = 1,
                          .operations = 4e9,
                          .peak = 16e9,
                          .bytes = 1e9,
                          .bandwidth = 4e9,
                          .block = 1e6,
                          .resident = 3e6,
                          .others = 1.5,
                          .is_busy = 1 };
    qkv_buffer text = { 0 };
    assert_int_equal(qkv_bench_text(&row, 0, &text), QKV_OK);
    assert_non_null(strstr(text.data, "20.0 /      10.0 tokens"));
    assert_non_null(strstr(text.data, " 8.0   0.50 / 0.25   0.50 / 0.25 "));
    assert_non_null(strstr(text.data, "busy: others use 1.5 cores"));
    row.share_best = 0.75, row.share_median = 0.375; /* pair by pair */
    assert_int_equal(qkv_bench_text(&row, 0, &text), QKV_OK);
    assert_non_null(strstr(text.data, " 8.0   0.50 / 0.25   0.75 / 0.38 "));
    assert_int_equal(qkv_bench_text(&row, 1, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\"share_of_bandwidth\": {\"best\": 0.75, \"median\": 0.375}"));
    assert_non_null(strstr(text.data, "{\"bench\": \"translate\", \"name\": \"a \\\"model\\\"\""));
    assert_non_null(strstr(text.data, "\"per_second\": {\"best\": 20, \"median\": 10}"));
    assert_non_null(strstr(text.data, "\"share_of_peak\": {\"best\": 0.5, \"median\": 0.25}"));
    assert_non_null(strstr(text.data, "\"busy\": true}"));
    qkv_buffer_free(&text);
}

/* ---- refused ---- */

static void refused(qkv_bench_kind kind, qkv_bench_opts o, const char *because)
{
    rows r = { 0 };
    assert_int_equal(qkv_bench(kind, &o, keep_row, &r), QKV_USAGE);
    if (!strstr(qkv_error(), because)) fail_msg("%s: %s", because, qkv_error());
    assert_int_equal(r.n, 0);
}

static void bad_input(void **state)
{
    (void)state;
    refused(QKV_BENCH_KINDS, (qkv_bench_opts){ 0 }, "something to measure");
    refused(QKV_BENCH_MATMUL, (qkv_bench_opts){ .batch = -1 }, "at least 0");
    refused(QKV_BENCH_MATMUL, (qkv_bench_opts){ .repeat = 513 }, "at most 512 samples");
    refused(QKV_BENCH_MATMUL, (qkv_bench_opts){ .batch = 1 << 20 }, "at most 65536");
    refused(QKV_BENCH_TRAIN, (qkv_bench_opts){ .folder = "x" }, "train needs no model");
    refused(QKV_BENCH_GENERATE, (qkv_bench_opts){ .folder = in_folder("translator") }, "a decoder alone");
    refused(QKV_BENCH_TRANSLATE, (qkv_bench_opts){ .folder = in_folder("generator") }, "an encoder and a decoder");
    refused(QKV_BENCH_EMBED, (qkv_bench_opts){ .folder = in_folder("translator") }, "an encoder and a tokenizer");
    rows r = { 0 };
    assert_int_equal(qkv_bench(QKV_BENCH_EMBED, &(qkv_bench_opts){ .folder = "/no/such" }, keep_row, &r), QKV_IO);
    setenv("TMPDIR", "/no/such", 1);
    assert_int_equal(qkv_bench(QKV_BENCH_EMBED, NULL, keep_row, &r), QKV_IO);
    unsetenv("TMPDIR");
    assert_int_equal(qkv_bench(QKV_BENCH_MATMUL, &(qkv_bench_opts){ .repeat = 1, .batch = 1 }, keep_row, &(rows){ .most = 1 }),
                     QKV_FAILURE);
    assert_null(qkv_bench_name(QKV_BENCH_KINDS));
}

static void the_machine(void **state)
{
    (void)state;
    assert_true(qkv_bench_peak() > 1e8);
    assert_true(qkv_bench_bandwidth(1) > 1e7 && qkv_bench_bandwidth(1 << 20) > 1e7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_translator), cmocka_unit_test(a_generator), cmocka_unit_test(random_models),
        cmocka_unit_test(shapes),       cmocka_unit_test(samples),     cmocka_unit_test(as_text),
        cmocka_unit_test(bad_input),    cmocka_unit_test(the_machine),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
