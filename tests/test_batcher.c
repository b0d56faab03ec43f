/* test_batcher.c: texts that are made together are those that are made alone; what rows share, keep and leave. */
#include "serve_models.h"

#include "task/generate.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing.h"

enum { KEPT = 64 << 20, POSITIONS = 64 };

static qkv_model *model;

/* ---- texts ---- */

#define TIMES_8(text) text text text text text text text text
#define LONG TIMES_8(TIMES_8("the cat and the dog, 我爱你 "))

static const char *const stops[] = { "e ", "猫" };
static const struct {
    const char *prompt;
    qkv_generate_opts o;
} cases[] = {
    { "the cat", { .max_tokens = 40, .temperature = 1, .seed = 1 } },
    { "the cat", { .max_tokens = 40, .temperature = 0.7f, .top_k = 9, .seed = 2 } },
    { "the cat", { .max_tokens = 25, .n_top = 3 } },
    { "the cat sat on the mat and I love you", { .max_tokens = 30, .temperature = 1.3f, .top_p = 0.9f, .seed = 3 } },
    { "the cat sat on the mat and I hate you", { .max_tokens = 30, .temperature = 1, .min_p = 0.01f, .seed = 3 } },
    { "我爱你", { .max_tokens = 20, .temperature = 1, .seed = 4, .score_prompt = 1, .n_top = 2 } },
    { LONG, { .max_tokens = 10, .temperature = 1, .seed = 5 } },
    { LONG "and", { .max_tokens = 6, .score_prompt = 1, .n_top = 1 } },
    { LONG, { .no_new_tokens = 1, .score_prompt = 1 } },
    { "you love the cat", { .max_tokens = 60, .temperature = 1, .seed = 6, .stops = stops, .n_stops = 2 } },
    { "", { .max_tokens = 15, .temperature = 1, .seed = 7, .repetition_penalty = 1.2f } },
    { "the", { .max_tokens = 50, .presence_penalty = 1, .frequency_penalty = 0.5f, .no_repeat_ngram = 3 } },
};
enum { CASES = sizeof cases / sizeof *cases, STOPPED = 9 };
static qkv_generated *alone[CASES];

static qkv_status generate_case(qkv__batcher *b, int i, int64_t *cached, qkv_generated **out)
{
    qkv_status status = qkv__generate(model, qkv_cstr(cases[i].prompt), &cases[i].o, b, out);
    *cached = status ? 0 : (*out)->n_cached;
    return status;
}

static bool same_doubles(const double *a, const double *b, int64_t n) { return !n || !memcmp(a, b, sizeof *a * (size_t)n); }

static bool same_top(const qkv_likely *a, const qkv_likely *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i].id != b[i].id || !same_doubles(&a[i].log_p, &b[i].log_p, 1)) return false;
    return true;
}

/* To the last bit. */
static bool is_same(const qkv_generated *a, const qkv_generated *b, const qkv_generate_opts *o)
{
    int64_t scored = o->score_prompt ? b->n_prompt : 0;
    return a->n == b->n && a->n_prompt == b->n_prompt && a->finish == b->finish && a->text.length == b->text.length &&
           !memcmp(a->text.data, b->text.data, b->text.length) && same_doubles(a->log_p, b->log_p, b->n) &&
           same_top(a->top, b->top, b->n * o->n_top) && same_doubles(a->prompt_log_p, b->prompt_log_p, scored) &&
           same_top(a->prompt_top, b->prompt_top, scored * o->n_top);
}

static int use_model(void **state)
{
    (void)state;
    int64_t cached;
    model = make_served(MODEL_LANGUAGE);
    if (!model) return -1;
    for (int i = 0; i < CASES; i++)
        if (generate_case(NULL, i, &cached, &alone[i]) || cached) return -1;
    return alone[STOPPED]->finish == QKV_FINISH_STOP ? 0 : -1;
}

static int free_model(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) qkv_free(alone[i]);
    qkv_model_free(model);
    qkv_shutdown();
    return 0;
}

/* ---- together ---- */

enum { WRITERS = 8, ROUNDS = 3 };

typedef struct writer {
    pthread_t thread;
    qkv__batcher *batcher;
    int number, wrong; /* the case that came out otherwise; -1: none */
    int64_t cached;
} writer;

/* All cases, each writer in an order of its own. */
static void *write_texts(void *data)
{
    writer *w = data;
    qkv_generated *g = NULL;
    for (int k = 0; k < ROUNDS * CASES && w->wrong < 0; k++) {
        int64_t cached;
        int i = (k * (2 * (w->number % 2) + 5) + w->number) % CASES; /* 5 and 7: every case once a round */
        if (generate_case(w->batcher, i, &cached, &g) || !is_same(g, alone[i], &cases[i].o)) w->wrong = i;
        w->cached += cached;
    }
    qkv_free(g);
    return NULL;
}

static int64_t run_writers(qkv__batcher *b, int n)
{
    writer writers[WRITERS];
    int64_t cached = 0;
    for (int i = 0; i < n; i++) {
        writers[i] = (writer){ .batcher = b, .number = i, .wrong = -1 };
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_texts, &writers[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(writers[i].thread, NULL);
        cached += writers[i].cached;
    }
    for (int i = 0; i < n; i++) assert_int_equal(writers[i].wrong, -1);
    return cached;
}

/* With room for what was read, with room for some of it, and with none. */
static void texts_made_together_are_those_made_alone(void **state)
{
    static const size_t rooms[] = { KEPT, 100000, 0 };
    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        qkv__batcher *b = qkv__batcher_new(model, WRITERS, rooms[i]);
        assert_non_null(b);
        int64_t cached = run_writers(b, WRITERS);
        assert_int_equal(cached > 0, rooms[i] > 0);
        assert_true(qkv__batcher_kept(b) <= rooms[i]);
        qkv__batcher_free(b);
    }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        assert_int_equal(qkv_set_num_threads(threads), QKV_OK);
        qkv__batcher *b = qkv__batcher_new(model, WRITERS, KEPT);
        run_writers(b, 3);
        qkv__batcher_free(b);
    }
    qkv_set_num_threads(0);
}

/* ---- what is kept ---- */

static int64_t cached_of(qkv__batcher *b, const char *prompt)
{
    int64_t cached;
    qkv_generated *g = NULL;
    const qkv_generate_opts o = { .max_tokens = 1 };
    assert_int_equal(qkv__generate(model, qkv_cstr(prompt), &o, b, &g), QKV_OK);
    cached = g->n_cached;
    assert_in_range(cached, 0, g->n_prompt ? g->n_prompt - 1 : 0);
    qkv_free(g);
    return cached;
}

static int64_t tokens_of(const char *text)
{
    qkv_encoding *ids = NULL;
    assert_int_equal(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SIDE_TARGET), qkv_cstr(text), NULL, &ids), QKV_OK);
    int64_t n = (int64_t)ids->n;
    qkv_free(ids);
    return n;
}

static void prompts_that_begin_alike_are_read_once(void **state)
{
    (void)state;
    qkv__batcher *b = qkv__batcher_new(model, 1, KEPT);
    assert_int_equal(cached_of(b, "the cat sat on"), 0);
    assert_int_equal(cached_of(b, "the cat sat on"), tokens_of("the cat sat on") - 1); /* the last one is read again */
    size_t one = qkv__batcher_kept(b);
    assert_int_equal(cached_of(b, "the cat sat on the mat"), tokens_of("the cat sat on"));
    assert_int_equal(qkv__batcher_kept(b), one); /* instead of its beginning, in the same page */
    assert_int_equal(cached_of(b, "the cat"), tokens_of("the cat") - 1);
    assert_int_equal(qkv__batcher_kept(b), one);
    assert_int_equal(cached_of(b, "the dog"), tokens_of("the"));
    assert_int_equal(qkv__batcher_kept(b), 2 * one);
    assert_int_equal(cached_of(b, "I love you"), 0);
    qkv__batcher_free(b);
}

/* Room for two rows of a page: the one that was used longest ago goes. */
static void the_oldest_makes_room(void **state)
{
    (void)state;
    qkv__batcher *b = qkv__batcher_new(model, 1, KEPT);
    cached_of(b, "the cat");
    size_t one = qkv__batcher_kept(b);
    qkv__batcher_free(b);
    b = qkv__batcher_new(model, 1, 2 * one + 1);
    assert_int_equal(cached_of(b, "the cat"), 0);
    assert_int_equal(cached_of(b, "I love you"), 0);
    assert_true(cached_of(b, "the cat") > 0);
    assert_int_equal(cached_of(b, "猫坐在垫子上"), 0);
    assert_true(qkv__batcher_kept(b) <= 2 * one);
    assert_true(cached_of(b, "the cat") > 0);
    assert_int_equal(cached_of(b, "I love you"), 0);
    assert_int_equal(cached_of(b, LONG), tokens_of("the cat")); /* more than the limit: others are not pushed out for it */
    assert_int_equal(cached_of(b, LONG), tokens_of("the cat"));
    assert_true(cached_of(b, "I love you") > 0);
    qkv__batcher_free(b);
}

/* ---- rows that hold others up, leave, or are too many ---- */

typedef struct watched {
    qkv__batcher *batcher;
    atomic_int steps, most; /* each_step was called so often; and how often it may be, 0: any number */
} watched;

static int count_step(void *data)
{
    watched *w = data;
    int n = atomic_fetch_add(&w->steps, 1) + 1, most = atomic_load(&w->most);
    return most && n >= most;
}

static void *write_watched(void *data)
{
    watched *w = data;
    qkv_generated *g = NULL;
    const qkv_generate_opts o = { .max_tokens = 1 << 20,
                                  .no_repeat_ngram = 0,
                                  .end = -1,
                                  .start = 1,
                                  .hooks = &(qkv_hooks){ .data = w, .cancel = count_step } };
    qkv__generate(model, qkv_cstr("the"), &o, w->batcher, &g);
    qkv_free(g);
    return NULL;
}

/* A long prompt is read piece by piece, and a row that runs has its steps meanwhile. */
static void a_long_prompt_holds_nobody_up(void **state)
{
    pthread_t thread;
    (void)state;
    qkv__batcher *b = qkv__batcher_new(model, 2, 0);
    watched runs = { .batcher = b }, reads = { .batcher = b };
    assert_int_equal(pthread_create(&thread, NULL, write_watched, &runs), 0);
    while (atomic_load(&runs.steps) < 3) sched_yield();
    int before = atomic_load(&runs.steps);
    qkv_generated *g = NULL;
    const qkv_generate_opts o = { .no_new_tokens = 1, .hooks = &(qkv_hooks){ .data = &reads, .cancel = count_step } };
    assert_int_equal(qkv__generate(model, qkv_cstr(LONG), &o, b, &g), QKV_OK);
    int after = atomic_load(&runs.steps);
    assert_true(g->n_prompt > 4 * 128);
    assert_true(atomic_load(&reads.steps) >= g->n_prompt / 128);
    assert_true(after - before >= 2);
    atomic_store(&runs.most, 1);
    pthread_join(thread, NULL);
    qkv_free(g);
    qkv__batcher_free(b);
}

/* Others who leave in the middle of a text change nothing. */
static void those_who_leave_change_nothing(void **state)
{
    pthread_t threads[4];
    watched leaving[4];
    (void)state;
    qkv__batcher *b = qkv__batcher_new(model, 7, KEPT);
    for (int i = 0; i < 4; i++) {
        leaving[i] = (watched){ .batcher = b, .most = 5 + 9 * i };
        assert_int_equal(pthread_create(&threads[i], NULL, write_watched, &leaving[i]), 0);
    }
    run_writers(b, 3);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) assert_int_equal(leaving[i].steps, leaving[i].most);
    qkv__batcher_free(b);
}

static void too_many_rows_are_refused(void **state)
{
    static const qkv__id_run start = { .ids = { 1 }, .n = 1 };
    const float *logits;
    int64_t n_read;
    qkv__batch_row *row, *second;
    (void)state;
    qkv__batcher *b = qkv__batcher_new(model, 1, KEPT);
    assert_int_equal(qkv__batch_open(b, &start, NULL, 0, &n_read, &row), QKV_OK);
    assert_int_equal(qkv__batch_open(b, &start, NULL, 0, &n_read, &second), QKV_LIMIT);
    assert_int_equal(qkv__batch_read(b, row, (int32_t[]){ 1 << 20 }, 1, 1, &logits), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "1048576"));
    assert_null(logits);
    assert_int_equal(qkv__batch_read(b, row, (int32_t[]){ 1 }, 1, 1, &logits), QKV_OK);
    assert_non_null(logits);
    qkv__batch_close(b, row);
    assert_int_equal(qkv__batch_open(b, &start, NULL, 0, &n_read, &row), QKV_OK);
    assert_int_equal(n_read, 0); /* the only token is the one whose logits are wanted */
    qkv__batch_close(b, row);
    qkv__batcher_free(b);
}

/* A row that cannot be read, as its positions are full or its id is none, fails alone. */
typedef struct reader {
    pthread_t thread;
    qkv__batcher *batcher;
    int32_t last; /* the id that it reads after `good` others */
    int good;
    qkv_status status; /* the first that was not OK */
    int steps;
} reader;

static void *read_to_the_end(void *data)
{
    static const qkv__id_run nothing;
    reader *r = data;
    const float *logits;
    int64_t n_read;
    qkv__batch_row *row;
    r->status = qkv__batch_open(r->batcher, &nothing, NULL, 0, &n_read, &row);
    for (int32_t id = 3; !r->status && r->steps <= r->good; r->steps += !r->status) {
        if (r->steps == r->good) id = r->last;
        r->status = qkv__batch_read(r->batcher, row, &id, 1, 1, &logits);
    }
    qkv__batch_close(r->batcher, row);
    return NULL;
}

static void a_row_that_fails_fails_alone(void **state)
{
    const qkv_config o = { .vocab_size = 9,
                           .decoder_layers = 1,
                           .dim = 8,
                           .heads = 1,
                           .d_ff = 8,
                           .positions = QKV_POSITION_LEARNED,
                           .max_positions = POSITIONS };
    (void)state;
    qkv_model *m = qkv_model_new(&o, 1);
    qkv__batcher *b = qkv__batcher_new(m, 4, 0);
    reader readers[4] = { { .last = 4, .good = POSITIONS },
                          { .last = 9, .good = POSITIONS / 2 },
                          { .last = 4, .good = POSITIONS - 1 },
                          { .last = -1, .good = POSITIONS / 2 - 5 } };
    static const qkv_status wanted[4] = { QKV_LIMIT, QKV_USAGE, QKV_OK, QKV_USAGE };
    static const int steps[4] = { POSITIONS, POSITIONS / 2, POSITIONS, POSITIONS / 2 - 5 };
    for (int i = 0; i < 4; i++) {
        readers[i].batcher = b;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_to_the_end, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(readers[i].thread, NULL);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(readers[i].status, wanted[i]);
        assert_int_equal(readers[i].steps, steps[i]);
    }
    qkv__batcher_free(b);
    qkv_model_free(m);
}

/* ---- memory ---- */

static qkv_status generate_twice(void)
{
    int64_t cached;
    qkv_generated *g = NULL;
    model = make_served(MODEL_LANGUAGE);
    qkv__batcher *b = model ? qkv__batcher_new(model, 1, KEPT) : NULL;
    qkv_status status = b ? generate_case(b, 3, &cached, &g) : qkv_error_status();
    if (!status) status = generate_case(b, 4, &cached, &g);
    if (!status) assert_true(cached > 0 && is_same(g, alone[4], &cases[4].o));
    qkv_free(g);
    qkv__batcher_free(b);
    qkv_model_free(model);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    qkv_model *before = model;
    (void)state;
    assert_true(each_allocation_fails(generate_twice) > 20);
    model = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_made_together_are_those_made_alone),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(prompts_that_begin_alike_are_read_once),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(a_long_prompt_holds_nobody_up),
        cmocka_unit_test(those_who_leave_change_nothing),
        cmocka_unit_test(too_many_rows_are_refused),
        cmocka_unit_test(a_row_that_fails_fails_alone),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("batcher", tests, use_model, free_model);
}
