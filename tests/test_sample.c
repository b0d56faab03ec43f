/* test_sample.c: draws come as often as they should, filters keep what they should; streams give out whole characters, and
 * where they stop does not depend on how the text is cut. */
#include <qkv/task.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/sample.h"
#include "decode/stream.h"

enum { IDS = 10, DRAWS = 100000 };

static const float logits[IDS] = { 0.3f, -1.2f, 1.9f, 0.8f, -0.4f, 1.1f, -2.0f, 0.8f, 0.0f, -0.9f };

/* What 1 of 1000 chi-squares of true draws exceeds, by degrees of freedom from 1. */
static const double critical[IDS - 1] = { 10.828, 13.816, 16.266, 18.467, 20.515, 22.458, 24.322, 26.124, 27.877 };

static qkv_generate_opts settled(qkv_generate_opts o)
{
    assert_int_equal(qkv__sampling_resolve_options(&o), QKV_OK);
    return o;
}

/* ---- the probabilities, by the definition of each filter ---- */

typedef struct setting {
    const char *name;
    qkv_generate_opts o;
    int32_t history[4];
    int n_history;
    int forbidden; /* an id, 0: none */
    int left;      /* how many ids may come */
} setting;

static const float *shown;
static int likelier(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return shown[x] != shown[y] ? (shown[x] > shown[y] ? -1 : 1) : x - y;
}

static void softmax(const float z[IDS], double p[IDS])
{
    double sum = 0;
    for (int i = 0; i < IDS; i++) sum += p[i] = exp((double)z[i]);
    for (int i = 0; i < IDS; i++) p[i] /= sum;
}

static void expect(const setting *c, double p[IDS])
{
    float z[IDS];
    int order[IDS];
    bool seen[IDS] = { false };
    for (int i = 0; i < c->n_history; i++) seen[c->history[i]] = true;
    for (int i = 0; i < IDS; i++) {
        z[i] = logits[i];
        if (seen[i] && c->o.repetition_penalty > 0)
            z[i] = z[i] > 0 ? z[i] / c->o.repetition_penalty : z[i] * c->o.repetition_penalty;
        if (c->forbidden && c->forbidden == i) z[i] = -INFINITY;
        if (c->o.no_repeat_ngram == 1 && seen[i]) z[i] = -INFINITY;
        z[i] /= c->o.temperature;
        order[i] = i;
    }
    shown = z;
    qsort(order, IDS, sizeof *order, likelier);
    for (int k = c->o.top_k; k && k < IDS; k++) z[order[k]] = -INFINITY;
    softmax(z, p);
    double sum = 0;
    for (int k = 0; k < IDS; k++) {
        if (c->o.top_p > 0 && sum >= (double)c->o.top_p) z[order[k]] = -INFINITY;
        sum += p[order[k]];
    }
    for (int i = 0; i < IDS; i++)
        if (p[i] < (double)c->o.min_p * p[order[0]]) z[i] = -INFINITY;
    softmax(z, p);
}

/* ---- draws ---- */

static void count_draws(const setting *c, qkv_generate_opts o, int which, int counts[IDS])
{
    qkv__sampler s;
    o = settled(o);
    assert_int_equal(qkv__sampler_start(&s, &o, IDS), QKV_OK);
    if (c->forbidden) s.forbidden[c->forbidden] = true;
    memset(counts, 0, sizeof(int) * IDS);
    for (int i = 0; i < DRAWS; i++) {
        int32_t id;
        double log_p;
        uint64_t step = which == 0 ? (uint64_t)i : 3;
        if (which == 1) o.sample = i;
        if (which == 2) o.seed = (uint64_t)i;
        assert_int_equal(qkv__sample(&s, logits, (qkv__history){ c->history, c->n_history, 0 }, step, &id, &log_p), QKV_OK);
        assert_true(id >= 0 && id < IDS);
        counts[id]++;
    }
    qkv__sampler_free(&s);
}

/* An id that may not come must never have come. */
static double chi_square(const int counts[IDS], const double p[IDS], int *left)
{
    double sum = 0;
    *left = 0;
    for (int i = 0; i < IDS; i++) {
        double wanted = p[i] * DRAWS, d = counts[i] - wanted;
        if (p[i] > 0) sum += d * d / wanted, ++*left;
        else if (counts[i]) fail_msg("id %d came %d times, it must never", i, counts[i]);
    }
    return sum;
}

static const setting settings[] = {
    { "plain", { .temperature = 1 }, .left = 10 },
    { "cold", { .temperature = 0.6f, .seed = 1 }, .left = 10 },
    { "hot", { .temperature = 2.5f, .seed = 2 }, .left = 10 },
    { "top-k", { .temperature = 1, .top_k = 4 }, .left = 4 },
    { "top-k that cuts between equals", { .temperature = 1, .top_k = 3 }, .left = 3 },
    { "top-p", { .temperature = 1, .top_p = 0.8f }, .left = 5 },
    { "min-p", { .temperature = 1, .min_p = 0.2f }, .left = 5 },
    { "all three", { .temperature = 1.3f, .top_k = 6, .top_p = 0.9f, .min_p = 0.4f }, .left = 4 },
    { "top-p of what top-k left", { .temperature = 1, .top_k = 5, .top_p = 0.75f }, .left = 3 },
    { "penalty", { .temperature = 1, .repetition_penalty = 1.5f }, { 2, 6, 2, 4 }, 4, .left = 10 },
    { "no repeats", { .temperature = 1, .no_repeat_ngram = 1 }, { 2, 6, 2, 4 }, 4, .left = 7 },
    { "forbidden", { .temperature = 1 }, .forbidden = 2, .left = 9 },
};

static void draws_come_as_often_as_they_should(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        const setting *c = &settings[k];
        double p[IDS];
        int counts[IDS], left;
        expect(c, p);
        count_draws(c, c->o, 0, counts);
        double chi = chi_square(counts, p, &left);
        if (left != c->left) fail_msg("%s: %d ids are left, %d must be", c->name, left, c->left);
        if (!(chi < critical[left - 2])) fail_msg("%s: chi-square is %g, at most %g", c->name, chi, critical[left - 2]);
    }
}

static void samples_and_seeds_are_as_random_as_steps(void **state)
{
    (void)state;
    double p[IDS];
    int counts[IDS], left;
    expect(&settings[0], p);
    for (int which = 1; which < 3; which++) {
        count_draws(&settings[0], settings[0].o, which, counts);
        assert_true(chi_square(counts, p, &left) < critical[IDS - 2]);
    }
    /* and the measure can tell: a little warmer is too much */
    count_draws(&settings[0], (qkv_generate_opts){ .temperature = 1.05f }, 0, counts);
    assert_true(chi_square(counts, p, &left) > critical[IDS - 2]);
}

static void a_draw_depends_on_seed_sample_and_step_alone(void **state)
{
    (void)state;
    qkv_generate_opts o = settled((qkv_generate_opts){ .temperature = 1, .seed = 9, .sample = 4 });
    qkv__sampler a, b;
    int32_t x, y;
    double log_p;
    assert_int_equal(qkv__sampler_start(&a, &o, IDS), QKV_OK);
    assert_int_equal(qkv__sampler_start(&b, &o, IDS), QKV_OK);
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(qkv__sample(&a, logits, (qkv__history){ 0 }, i, &x, &log_p), QKV_OK);
        for (uint64_t other = 0; other < 3; other++)
            assert_int_equal(qkv__sample(&b, logits, (qkv__history){ 0 }, 100 + i + other, &y, &log_p), QKV_OK);
        assert_int_equal(qkv__sample(&b, logits, (qkv__history){ 0 }, i, &y, &log_p), QKV_OK);
        assert_int_equal(x, y);
    }
    qkv__sampler_free(&a);
    qkv__sampler_free(&b);
}

/* ---- the edges ---- */

static int32_t sample_one(const float *z, int n, qkv_generate_opts o, qkv__history h, double *log_p)
{
    qkv__sampler s;
    int32_t id;
    o = settled(o);
    assert_int_equal(qkv__sampler_start(&s, &o, n), QKV_OK);
    assert_int_equal(qkv__sample(&s, z, h, 0, &id, log_p), QKV_OK);
    qkv__sampler_free(&s);
    return id;
}

static void greedy_takes_the_largest(void **state)
{
    (void)state;
    const float tied[4] = { 1, 3, 3, -2 };
    const qkv__history none = { 0 }, one = { (int32_t[]){ 1 }, 1, 0 };
    const qkv_generate_opts greedy = { 0 };
    double log_p;
    assert_int_equal(sample_one(tied, 4, greedy, none, &log_p), 1);
    assert_true(fabs(log_p - (3 - log(exp(1) + 2 * exp(3) + exp(-2)))) < 1e-12);
    assert_int_equal(sample_one(tied, 4, (qkv_generate_opts){ .repetition_penalty = 1.01f }, one, &log_p), 2);
    assert_true(fabs(log_p - (3 - log(exp(1) + 2 * exp(3) + exp(-2)))) < 1e-12); /* the model's own */
    assert_int_equal(sample_one(tied, 4, (qkv_generate_opts){ .repetition_penalty = 4 }, one, &log_p), 2);
    for (uint64_t seed = 0; seed < 200; seed++) { /* each leaves one */
        assert_int_equal(sample_one(tied, 4, (qkv_generate_opts){ .temperature = 1, .top_k = 1, .seed = seed }, none, &log_p),
                         1);
        assert_int_equal(
            sample_one(tied, 4, (qkv_generate_opts){ .temperature = 9, .top_p = 1e-6f, .seed = seed }, none, &log_p), 1);
        assert_int_equal(
            sample_one(logits, IDS, (qkv_generate_opts){ .temperature = 5, .min_p = 1, .seed = seed }, none, &log_p), 2);
        assert_int_equal(sample_one(logits, IDS, (qkv_generate_opts){ .temperature = 1e-30f, .seed = seed }, none, &log_p), 2);
    }
}

/* z - presence - n frequency, of what has come since the prompt alone. */
static void what_has_come_is_penalised(void **state)
{
    (void)state;
    const float z[4] = { 0, 1, 2, 3 };
    double log_p;
    const int32_t text[6] = { 3, 3, 2, 3, 2, 3 }; /* two of the prompt, then 2 3 2 3 */
    const qkv__history h = { text, 6, 4 }, old = { text, 6, 0 };
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .presence_penalty = 1.5f }, h, &log_p), 3);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .presence_penalty = 2.5f }, h, &log_p), 1);
    assert_true(fabs(log_p - (1 - log(1 + exp(1) + exp(2) + exp(3)))) < 1e-12); /* the model's own */
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .presence_penalty = 2.5f }, old, &log_p), 3);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .frequency_penalty = 0.9f }, h, &log_p), 3);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .frequency_penalty = 1.1f }, h, &log_p), 1);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .frequency_penalty = 0.9f }, (qkv__history){ text, 6, 3 }, &log_p),
                     3);
    const int32_t once[3] = { 2, 1, 1 };
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .frequency_penalty = -1.1f }, (qkv__history){ once, 3, 2 }, &log_p),
                     1);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .presence_penalty = -1.1f }, (qkv__history){ once, 3, 3 }, &log_p),
                     2);
    qkv_generate_opts wrong = { .presence_penalty = NAN }, too = { .frequency_penalty = INFINITY };
    assert_int_equal(qkv__sampling_resolve_options(&wrong), QKV_USAGE);
    assert_int_equal(qkv__sampling_resolve_options(&too), QKV_USAGE);
}

static void runs_do_not_come_twice(void **state)
{
    (void)state;
    const float z[4] = { 0, 1, 2, 3 };
    double log_p;
    const int32_t text[7] = { 1, 2, 3, 0, 2, 1, 2 }; /* after 1 2 came 3; after 2 came 3 and 1 */
    const qkv__history h = { text, 7, 0 };
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .no_repeat_ngram = 4 }, h, &log_p), 3);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .no_repeat_ngram = 3 }, h, &log_p), 2);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .no_repeat_ngram = 2 }, (qkv__history){ text, 6, 0 }, &log_p), 3);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .no_repeat_ngram = 1 }, h, &log_p), -1);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .no_repeat_ngram = 1, .temperature = 1 }, h, &log_p), -1);
    assert_int_equal(sample_one(z, 4, (qkv_generate_opts){ .no_repeat_ngram = 9 }, h, &log_p), 3);
}

/* Many ids, many of them equal: what is drawn is among the first k in the order of weight, then id, and all of those come. */
static void the_first_k_of_many(void **state)
{
    (void)state;
    enum { MANY = 1000, K = 37 };
    static float z[MANY];
    static bool came[MANY];
    int n_came = 0;
    qkv__sampler s;
    qkv_generate_opts o = settled((qkv_generate_opts){ .temperature = 4, .top_k = K });
    uint32_t seed = 3;
    for (int i = 0; i < MANY; i++) seed = seed * 1664525u + 1013904223u, z[i] = (float)(seed >> 28) * 0.25f;
    assert_int_equal(qkv__sampler_start(&s, &o, MANY), QKV_OK);
    for (uint64_t step = 0; step < 3000; step++) {
        int32_t id;
        double log_p;
        int before = 0;
        assert_int_equal(qkv__sample(&s, z, (qkv__history){ 0 }, step, &id, &log_p), QKV_OK);
        for (int i = 0; i < MANY; i++) before += z[i] > z[id] || (z[i] == z[id] && i < id);
        assert_true(before < K);
        n_came += !came[id];
        came[id] = true;
    }
    assert_int_equal(n_came, K);
    qkv__sampler_free(&s);
}

/* Without log_p the same ids come: the largest in any place, among equal ones and ones that may not come, and draws. */
static void without_log_p(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static float z[MANY];
    uint32_t seed = 7;
    for (int round = 0; round < 60; round++) {
        int32_t with, without;
        double log_p;
        for (int kind = 0; kind < 2; kind++) {
            qkv__sampler s;
            qkv_generate_opts o = settled((qkv_generate_opts){ .temperature = (float)(round % 2), .no_log_p = kind });
            assert_int_equal(qkv__sampler_start(&s, &o, MANY), QKV_OK);
            for (int i = 0; i < MANY && !kind; i++) seed = seed * 1664525u + 1013904223u, z[i] = (float)(seed >> 22);
            for (int i = 0; i < MANY; i++) s.forbidden[i] = z[i] > (round % 3 ? 1020.0f : 2000.0f);
            assert_int_equal(qkv__sample(&s, z, (qkv__history){ 0 }, 1, kind ? &without : &with, &log_p), QKV_OK);
            assert_true(kind ? log_p != log_p : log_p <= 0);
            qkv__sampler_free(&s);
        }
        assert_int_equal(with, without);
        int32_t first = -1;
        for (int i = 0; i < MANY; i++)
            if (z[i] <= (round % 3 ? 1020.0f : 2000.0f) && (first < 0 || z[i] > z[first])) first = i;
        if (!(round % 2)) assert_int_equal(with, first);
    }
}

static void logits_that_are_no_numbers(void **state)
{
    (void)state;
    const float bad[3][3] = { { 0, NAN, 1 }, { INFINITY, 0, 1 }, { -INFINITY, -INFINITY, -INFINITY } };
    const float fine[3] = { -INFINITY, 2, -INFINITY };
    double log_p;
    int32_t id;
    for (int i = 0; i < 3; i++)
        for (int kind = 0; kind < 4; kind++) {
            qkv__sampler s;
            qkv_generate_opts o = settled((qkv_generate_opts){ .temperature = (float)(kind % 2), .no_log_p = kind / 2 });
            assert_int_equal(qkv__sampler_start(&s, &o, 3), QKV_OK);
            assert_int_equal(qkv__sample(&s, bad[i], (qkv__history){ 0 }, 0, &id, &log_p), QKV_NUMERIC);
            qkv__sampler_free(&s);
        }
    assert_int_equal(sample_one(fine, 3, (qkv_generate_opts){ .temperature = 1 }, (qkv__history){ 0 }, &log_p), 1);
    assert_true(log_p == 0);
}

static void options_out_of_range(void **state)
{
    (void)state;
    qkv_generate_opts bad[] = {
        { .temperature = -1 },
        { .temperature = NAN },
        { .temperature = INFINITY },
        { .top_p = 2 },
        { .top_p = -0.1f },
        { .top_p = NAN },
        { .min_p = 1.5f },
        { .min_p = -0.5f },
        { .min_p = NAN },
        { .repetition_penalty = -1 },
        { .repetition_penalty = NAN },
        { .top_k = -1 },
        { .no_repeat_ngram = -1 },
        { .repetition_penalty = INFINITY },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(qkv__sampling_resolve_options(&bad[i]), QKV_USAGE);
}

/* ---- streams ---- */

typedef struct pieces {
    char text[200];
    size_t length;
    int n, refuse_at; /* -1: none */
} pieces;

static qkv_status keep_piece(void *data, const char *piece, size_t length)
{
    pieces *p = data;
    assert_true(length > 0);
    assert_int_equal(qkv_utf8_valid(piece, length), length);
    if (p->n++ == p->refuse_at) return QKV_FAILURE;
    memcpy(p->text + p->length, piece, length);
    p->length += length;
    return QKV_OK;
}

/* Bytes cut in pieces of `cut`, the first of `first`. */
static bool stream(const char *bytes, size_t first, size_t cut, const char *const *stops, int n_stops, qkv_buffer *text)
{
    pieces p = { .refuse_at = -1 };
    qkv__stream s = { .stops = stops, .n_stops = n_stops, .each = keep_piece, .data = &p, .text = text };
    text->length = 0;
    for (size_t at = 0, n = strlen(bytes), size = first < n ? first : n; at < n;) {
        assert_int_equal(qkv__stream_put(&s, bytes + at, size), QKV_OK);
        at += size;
        size = cut < n - at ? cut : n - at;
    }
    assert_int_equal(qkv__stream_end(&s), QKV_OK);
    assert_int_equal(p.length, text->length);
    if (p.length) assert_memory_equal(p.text, text->data, p.length);
    qkv__stream_free(&s);
    return s.is_stopped;
}

static void streams_do_not_depend_on_cuts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *stops[2], *text;
        bool is_stopped;
    } cases[] = {
        { "a\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 z", { 0 }, "a\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 z", false },
        { "a\xC3\xA9 \xE2\x82\xAC stop it", { "stop" }, "a\xC3\xA9 \xE2\x82\xAC ", true },
        { "no sto", { "stop" }, "no sto", false },
        { "aab aabaac", { "aabaac" }, "aab ", true },
        { "xabcd", { "abcd", "bc" }, "xa", true }, /* bc is complete first */
        { "xabcd", { "cd", "abcd" }, "x", true },  /* both at once: the longer */
        { "\xE2\x82\xAC\xE2\x82\xAC!", { "\xE2\x82\xAC!" }, "\xE2\x82\xAC", true },
        { "a\xFF\xE2\x82 b\xC3", { 0 }, "a\xEF\xBF\xBD\xEF\xBF\xBD b\xEF\xBF\xBD", false },
        { "ab\xE2\x82", { "\xEF\xBF\xBD" }, "ab", true },
        { "stop", { "stop" }, "", true },
    };
    qkv_buffer text = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t first = 1; first < 8; first++)
            for (size_t cut = 1; cut < 8; cut++) {
                int n_stops = (cases[i].stops[0] != NULL) + (cases[i].stops[1] != NULL);
                assert_int_equal(stream(cases[i].bytes, first, cut, cases[i].stops, n_stops, &text), cases[i].is_stopped);
                assert_int_equal(text.length, strlen(cases[i].text));
                if (text.length) assert_memory_equal(text.data, cases[i].text, text.length);
            }
    qkv_buffer_free(&text);
}

static void streams_give_out_what_they_can(void **state)
{
    (void)state;
    static const char *const stops[] = { "\n\n", "END" };
    qkv_buffer text = { 0 };
    pieces p = { .refuse_at = -1 };
    qkv__stream s = { .stops = stops, .n_stops = 2, .each = keep_piece, .data = &p, .text = &text };
    static const struct {
        const char *bytes;
        size_t length; /* given out after it */
    } steps[] = { { "ab", 2 }, { "E", 2 }, { "N", 2 }, { "x", 5 }, { "\n", 5 }, { "E", 6 }, { "\xE2\x82", 6 }, { "\xAC", 10 } };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(qkv__stream_put(&s, steps[i].bytes, strlen(steps[i].bytes)), QKV_OK);
        assert_int_equal(p.length, steps[i].length);
    }
    p.refuse_at = p.n;
    assert_int_equal(qkv__stream_put(&s, "more", 4), QKV_FAILURE);
    qkv__stream_free(&s);
    qkv_buffer_free(&text);
}

static void likeliest_are_in_order(void **state)
{
    (void)state;
    const float few[] = { 1, 3, 2, 3, -1 };
    int32_t ids[5];
    double p[5], sum = 0;
    assert_int_equal(qkv_top_k(few, 5, 3, ids, p), QKV_OK);
    assert_true(ids[0] == 1 && ids[1] == 3 && ids[2] == 2);
    for (int i = 0; i < 5; i++) sum += exp((double)few[i] - 3);
    for (int k = 0; k < 3; k++) assert_true(fabs(p[k] - exp((double)few[ids[k]] - 3) / sum) < 1e-12);
    assert_int_equal(qkv_top_k(few, 5, 5, ids, p), QKV_OK);
    assert_int_equal(ids[4], 4);
    assert_int_equal(qkv_top_k(few, 5, 6, ids, p), QKV_USAGE);
    assert_int_equal(qkv_top_k(few, 5, 0, ids, p), QKV_USAGE);
}

/* The public sampler draws the same ids as the internal one; without a tokenizer no id is forbidden. */
static void a_sampler_goes_on_with_a_text(void **state)
{
    (void)state;
    enum { NEW = 40, PROMPT = 2 };
    const qkv_config config = {
        .size = sizeof config, .vocab_size = IDS, .decoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8
    };
    qkv_model *m = qkv_model_new(&config, 1);
    const qkv_sampling_opts o = {
        .size = sizeof o, .temperature = 1, .top_k = 6, .repetition_penalty = 1.2f, .frequency_penalty = 0.1f, .seed = 3
    };
    const qkv_generate_opts same = settled(
        (qkv_generate_opts){ .temperature = 1, .top_k = 6, .repetition_penalty = 1.2f, .frequency_penalty = 0.1f, .seed = 3 });
    qkv_sampler *s = qkv_sampler_new(m, &o);
    qkv__sampler inner;
    int32_t text[PROMPT + NEW] = { 2, 5 }, id = -1;
    double log_p;
    assert_non_null(s);
    assert_int_equal(qkv__sampler_start(&inner, &same, IDS), QKV_OK);
    for (int64_t n = PROMPT; n < PROMPT + NEW; n++) {
        assert_int_equal(qkv_sampler_next(s, logits, text, n, PROMPT, &text[n]), QKV_OK);
        const qkv__history h = { text, n, n - PROMPT };
        assert_int_equal(qkv__sample(&inner, logits, h, (uint64_t)h.n_new, &id, &log_p), QKV_OK);
        assert_int_equal(text[n], id);
    }
    assert_int_equal(qkv_sampler_next(s, logits, text, PROMPT, PROMPT, &id), QKV_USAGE); /* shorter than before */
    qkv_sampler_free(s);
    qkv__sampler_free(&inner);
    assert_non_null(s = qkv_sampler_new(m, NULL));
    assert_int_equal(qkv_sampler_next(s, logits, NULL, 0, 0, &id), QKV_OK);
    assert_int_equal(id, 2);
    text[0] = IDS;
    assert_int_equal(qkv_sampler_next(s, logits, text, 1, 0, &id), QKV_USAGE);
    assert_int_equal(qkv_sampler_next(s, logits, text, 1, 2, &id), QKV_USAGE);
    qkv_sampler_free(s);
    assert_null(qkv_sampler_new(NULL, NULL));
    assert_null(qkv_sampler_new(m, &(qkv_sampling_opts){ .temperature = -1 }));
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likeliest_are_in_order),
        cmocka_unit_test(draws_come_as_often_as_they_should),
        cmocka_unit_test(samples_and_seeds_are_as_random_as_steps),
        cmocka_unit_test(a_draw_depends_on_seed_sample_and_step_alone),
        cmocka_unit_test(greedy_takes_the_largest),
        cmocka_unit_test(what_has_come_is_penalised),
        cmocka_unit_test(runs_do_not_come_twice),
        cmocka_unit_test(the_first_k_of_many),
        cmocka_unit_test(without_log_p),
        cmocka_unit_test(logits_that_are_no_numbers),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(a_sampler_goes_on_with_a_text),
        cmocka_unit_test(streams_do_not_depend_on_cuts),
        cmocka_unit_test(streams_give_out_what_they_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
