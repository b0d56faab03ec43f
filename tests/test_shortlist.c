/* test_shortlist.c: what is learned of a toy corpus is right; a shortlist of everything changes nothing; what a sentence gives
 * depends on no other; files that are not so are refused. */
#include <qkv/task.h>
#include <qkv/unstable/shortlist.h>
#include "recipe/shortlist_learn.h"

#include "../src/decode/shortlist.h"
#include "../src/io/safetensors.h"
#include "nn/params.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"

enum { SPECIALS = 4, WORDS = 20, VOCABULARY = 60, PAIRS = 400, SENTENCES = 32, LENGTH = 9, START = 1, END = 2 };

static const qkv_config small = {
    .vocab_size = VOCABULARY, .encoder_layers = 1, .decoder_layers = 1, .dim = 16, .heads = 2, .d_ff = 32, .output_bias = 1
};

static qkv_model *make_translator(void)
{
    qkv_model *m = qkv_model_new(&small, 5);
    if (!m) return NULL;
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++)
        qkv__params_data(p)[i] = qkv__params_data(p)[i] * 1.7f + 0.01f * (float)(i % 7);
    return m;
}

static uint32_t state_of_draw;
static int draw(int n)
{
    state_of_draw = state_of_draw * 1664525u + 1013904223u;
    return (int)((state_of_draw >> 16) % (uint32_t)n);
}

/* Word w becomes word WORDS + w, in any order; beside them stands the same word in every target. */
static int32_t word(int w) { return SPECIALS + w; }
static int32_t translated(int w) { return SPECIALS + WORDS + w; }
enum { FILLER = SPECIALS + 2 * WORDS };

static qkv_dataset *toy_pairs(int n)
{
    qkv_dataset *p = qkv_dataset_new();
    qkv_status status = p ? QKV_OK : QKV_MEMORY;
    state_of_draw = 3;
    for (int i = 0; i < n && !status; i++) {
        int32_t source[6], target[7] = { FILLER };
        int length = 2 + draw(4), turn = draw(length);
        for (int k = 0; k < length; k++) {
            int w = draw(WORDS);
            source[k] = word(w);
            target[1 + (k + turn) % length] = translated(w);
        }
        status = qkv_dataset_add_ids(p, source, (size_t)length, target, (size_t)length + 1);
    }
    if (!status) return p;
    qkv_dataset_free(p);
    return NULL;
}

static qkv_shortlist *learned(const qkv_model *m, int likeliest, int frequent)
{
    qkv_dataset *p = toy_pairs(PAIRS);
    qkv_shortlist_opts o = QKV_OPTS(qkv_shortlist_opts);
    o.likeliest = likeliest;
    o.frequent = frequent;
    qkv_shortlist *s = qkv_shortlist_learn(m, p, &o);
    qkv_dataset_free(p);
    return s;
}

static bool has(const int32_t *ids, int64_t n, int32_t id)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

/* ---- learning ---- */

static void learns_a_toy_language(void **state)
{
    (void)state;
    qkv_model *m = make_translator();
    qkv_shortlist *s = learned(m, 1, 1);
    assert_non_null(s);
    for (int w = 0; w < WORDS; w++) {
        int32_t source = word(w), ids[VOCABULARY];
        int64_t n = qkv__shortlist_ids(s, &source, 1, ids);
        assert_int_equal(n, 3); /* the translation, what is most frequent, and the word as it is */
        assert_true(has(ids, n, translated(w)) && has(ids, n, FILLER) && has(ids, n, source));
        for (int64_t i = 1; i < n; i++) assert_true(ids[i - 1] < ids[i]);
    }
    int32_t both[] = { word(3), word(7) }, ids[VOCABULARY];
    int64_t n = qkv__shortlist_ids(s, both, 2, ids);
    assert_true(n == 5 && has(ids, n, translated(3)) && has(ids, n, translated(7)));
    assert_int_equal(qkv__shortlist_ids(s, NULL, 0, NULL), 1);
    qkv_shortlist_free(s);
    qkv_model_free(m);
}

static void same_bytes(const qkv_shortlist *a, const qkv_shortlist *b)
{
    assert_int_equal(a->sources, b->sources);
    assert_int_equal(a->targets, b->targets);
    assert_int_equal(a->n_always, b->n_always);
    assert_memory_equal(a->always, b->always, sizeof *a->always * (size_t)a->n_always);
    assert_memory_equal(a->begins, b->begins, sizeof *a->begins * (size_t)(a->sources + 1));
    assert_memory_equal(a->ids, b->ids, sizeof *a->ids * (size_t)a->begins[a->sources]);
}

static void same_on_any_threads_and_in_a_file(void **state)
{
    (void)state;
    qkv_model *m = make_translator();
    qkv_set_num_threads(1);
    qkv_shortlist *one = learned(m, 6, 3);
    for (int threads = 2; threads <= 4; threads += 2) {
        qkv_set_num_threads(threads);
        qkv_shortlist *many = learned(m, 6, 3);
        same_bytes(one, many);
        qkv_shortlist_free(many);
    }
    const char *path = in_folder("list");
    assert_int_equal(qkv_shortlist_save(one, path), QKV_OK);
    qkv_shortlist *read = qkv_shortlist_load(path);
    assert_non_null(read);
    same_bytes(one, read);
    qkv_shortlist_free(read);
    qkv_shortlist_free(one);
    qkv_model_free(m);
}

static void some_of_many_pairs(void **state)
{
    (void)state;
    qkv_model *m = make_translator();
    qkv_dataset *p = toy_pairs(PAIRS);
    qkv_shortlist_opts o = QKV_OPTS(qkv_shortlist_opts);
    o.max_pairs = PAIRS / 2;
    o.likeliest = o.frequent = 1;
    qkv_shortlist *s = qkv_shortlist_learn(m, p, &o);
    assert_non_null(s);
    int32_t source = word(5), ids[VOCABULARY];
    assert_true(has(ids, qkv__shortlist_ids(s, &source, 1, ids), translated(5)));
    qkv_shortlist_free(s);
    assert_int_equal(qkv_dataset_add_ids(p, (int32_t[]){ VOCABULARY }, 1, (int32_t[]){ 1 }, 1), QKV_OK);
    assert_null(qkv_shortlist_learn(m, p, NULL));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    o.likeliest = -1;
    assert_null(qkv_shortlist_learn(m, p, &o));
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* ---- searching ---- */

static int32_t sources[SENTENCES * LENGTH], lengths[SENTENCES];

static void draw_sources(void)
{
    state_of_draw = 11;
    for (int i = 0; i < SENTENCES; i++) {
        lengths[i] = 2 + draw(LENGTH - 2);
        for (int k = 0; k < LENGTH; k++)
            sources[i * LENGTH + k] = k < lengths[i] - 1 ? word(draw(WORDS)) : k < lengths[i] ? END : 0;
    }
}

static qkv_search_opts with_list(const qkv_shortlist *s)
{
    qkv_search_opts o = QKV_OPTS(qkv_search_opts);
    o.start = START;
    o.end = END;
    o.beam_size = 3;
    o.n_best = 2;
    o.max_length = 8;
    o.shortlist = s;
    return o;
}

static qkv_search_result *find(const qkv_model *m, const qkv_shortlist *s, int from, int n)
{
    qkv_search_result *found = NULL;
    const qkv_search_opts o = with_list(s);
    assert_int_equal(
        qkv_beam_search(m,
                        &(qkv_tokens){ .ids = sources + from * LENGTH, .rows = n, .length = LENGTH, .lengths = lengths + from },
                        &o, &found),
        QKV_OK);
    return found;
}

/* The first n of b are those of a from `from` on, to the last bit. */
static void same_results(const qkv_search_result *a, int from, const qkv_search_result *b, int n)
{
    for (int i = 0; i < n * a->n_best; i++) {
        const qkv_hypothesis *x = &a->best[from * a->n_best + i], *y = &b->best[i];
        assert_int_equal(x->n, y->n);
        assert_true(x->log_p == y->log_p && x->score == y->score);
        if (x->n > 0) assert_memory_equal(x->ids, y->ids, sizeof *x->ids * (size_t)x->n);
    }
}

static qkv_shortlist *everything(void)
{
    qkv_shortlist *s = qkv__shortlist_new(VOCABULARY, VOCABULARY, VOCABULARY, 0);
    for (int i = 0; s && i < VOCABULARY; i++) s->always[i] = i;
    return s;
}

static void everything_is_as_none(void **state)
{
    (void)state;
    qkv_model *m = make_translator();
    qkv_shortlist *all = everything();
    draw_sources();
    qkv_search_result *none = find(m, NULL, 0, SENTENCES), *listed = find(m, all, 0, SENTENCES);
    same_results(none, 0, listed, SENTENCES);
    qkv_free(none);
    qkv_free(listed);
    qkv_shortlist_free(all);
    qkv_model_free(m);
}

static void same_in_any_batch(void **state)
{
    (void)state;
    static const int batches[] = { 1, 7, 32 };
    qkv_model *m = make_translator();
    qkv_shortlist *s = learned(m, 3, 4);
    draw_sources();
    qkv_set_num_threads(1);
    qkv_search_result *all = find(m, s, 0, SENTENCES);
    bool differs = false;
    for (int threads = 1; threads <= 4; threads *= 2) {
        qkv_set_num_threads(threads);
        for (int b = 0; b < 3; b++)
            for (int from = 0; from < SENTENCES; from += batches[b]) {
                int n = SENTENCES - from < batches[b] ? SENTENCES - from : batches[b];
                qkv_search_result *part = find(m, s, from, n);
                same_results(all, from, part, n);
                qkv_free(part);
            }
    }
    for (int i = 0; i < SENTENCES; i++) { /* nothing but what its list has */
        int32_t ids[VOCABULARY];
        int64_t n = qkv__shortlist_ids(s, sources + i * LENGTH, lengths[i], ids);
        differs = differs || n < VOCABULARY;
        const qkv_hypothesis *h = &all->best[i * all->n_best];
        for (int64_t k = 0; k < h->n; k++) assert_true(has(ids, n, h->ids[k]));
        assert_true(h->n >= 0 && h->log_p <= 0);
    }
    assert_true(differs);
    qkv_free(all);
    qkv_shortlist_free(s);
    qkv_model_free(m);
}

/* Of one sentence the log-probabilities of a step are those of all tokens, moved by one number. */
static void probabilities_of_a_list_add_up_to_1(void **state)
{
    (void)state;
    qkv_model *m = make_translator();
    qkv_shortlist *s = qkv__shortlist_new(VOCABULARY, VOCABULARY, 1, 0);
    s->always[0] = 7;
    draw_sources();
    qkv_search_opts o = with_list(s);
    o.n_best = o.beam_size = 2;
    o.max_length = 1;
    o.no_length_penalty = 1;
    qkv_search_result *found = NULL;
    assert_int_equal(
        qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = LENGTH, .lengths = lengths }, &o, &found),
        QKV_OK);
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        assert_true(found->best[i].n == 0 || found->best[i].ids[0] == 7); /* or its end */
        sum += exp(found->best[i].log_p);
    }
    assert_true(fabs(sum - 1) < 1e-6);
    o.prefix = (const int32_t[]){ 9 }; /* on no list */
    o.n_prefix = 1;
    o.max_length = 2;
    assert_int_equal(
        qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = LENGTH, .lengths = lengths }, &o, &found),
        QKV_OK);
    assert_true(found->best[0].n >= 1 && found->best[0].ids[0] == 9);
    qkv_free(found);
    qkv_shortlist_free(s);
    qkv_model_free(m);
}

static void other_vocabularies_are_refused(void **state)
{
    (void)state;
    qkv_model *m = make_translator();
    qkv_shortlist *s = qkv__shortlist_new(VOCABULARY + 1, VOCABULARY, 0, 0);
    qkv_search_opts o = with_list(s);
    qkv_search_result *found = NULL;
    assert_int_equal(
        qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = LENGTH, .lengths = lengths }, &o, &found),
        QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "vocabularies of 61 and 60 tokens, the model has 60 and 60"));
    qkv_shortlist_free(s);
    qkv_model_free(m);
}

/* ---- files ---- */

typedef struct parts {
    int64_t n_always, n_counts, n_ids;
    int32_t always[4], counts[4], ids[4];
    const char *format, *vocabulary, *dtype;
} parts;
static const parts sound = { 2, 3, 3, { 1, 5 }, { 2, 0, 1 }, { 0, 4, 5 }, "qkv-shortlist-1", "6", "I32" };

static qkv_status load_parts(const parts *p)
{
    const char *path = in_folder("parts");
    qkv__to_store tensors[] = {
        { .name = "always",
          .dtype = p->dtype,
          .ndim = 1,
          .shape = &p->n_always,
          .count = p->n_always,
          .data = (const float *)p->always },
        { .name = "counts",
          .dtype = p->dtype,
          .ndim = 1,
          .shape = &p->n_counts,
          .count = p->n_counts,
          .data = (const float *)p->counts },
        { .name = "ids", .dtype = p->dtype, .ndim = 1, .shape = &p->n_ids, .count = p->n_ids, .data = (const float *)p->ids },
    };
    const qkv__note notes[] = { { "format", p->format }, { "target_vocabulary", p->vocabulary } };
    assert_int_equal(qkv__safetensors_write(path, 3, tensors, 2, notes), QKV_OK);
    qkv_shortlist *s = qkv_shortlist_load(path);
    qkv_status status = s ? QKV_OK : qkv_error_status();
    qkv_shortlist_free(s);
    return status;
}

static void hostile_files(void **state)
{
    (void)state;
    parts p = sound;
    assert_int_equal(load_parts(&p), QKV_OK);
#define WRONG(change)                                 \
    do {                                              \
        p = sound;                                    \
        change;                                       \
        assert_int_equal(load_parts(&p), QKV_FORMAT); \
    } while (0)
    WRONG(p.counts[0] = 3); /* more ids than there are */
    WRONG(p.counts[0] = -1);
    WRONG(p.counts[0] = INT32_MAX);
    WRONG(p.counts[0] = 1); /* an id that is nobody's */
    WRONG(p.ids[1] = 0);    /* twice */
    WRONG(p.ids[1] = 6);    /* no target */
    WRONG(p.ids[0] = -1);
    WRONG(p.always[1] = 0); /* not ascending */
    WRONG(p.always[1] = 6);
    WRONG(p.vocabulary = "0");
    WRONG(p.vocabulary = "6x");
    WRONG(p.vocabulary = "-6");
    WRONG(p.vocabulary = "99999999999");
    WRONG(p.format = "qkv-shortlist-2");
    WRONG(p.dtype = "F32");
    assert_null(qkv_shortlist_load(in_folder("none")));
    assert_int_equal(qkv_error_status(), QKV_IO);
}

/* ---- memory ---- */

static qkv_status all_of_it(void)
{
    qkv_set_num_threads(1);
    qkv_model *m = make_translator();
    qkv_dataset *p = m ? toy_pairs(20) : NULL;
    qkv_shortlist *s = p ? qkv_shortlist_learn(m, p, NULL) : NULL;
    qkv_status status = s ? qkv_shortlist_save(s, in_folder("failing")) : qkv_error_status();
    qkv_shortlist *read = status ? NULL : qkv_shortlist_load(in_folder("failing"));
    if (!status && !read) status = qkv_error_status();
    const qkv_search_opts o = with_list(read);
    qkv_search_result *found = NULL;
    if (!status)
        status = qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 2, .length = LENGTH, .lengths = lengths }, &o,
                                 &found);
    if (!status && qkv__shortlist_ids(read, sources, 2, NULL) < 0) status = qkv_error_status();
    qkv_free(found);
    qkv_shortlist_free(read);
    qkv_shortlist_free(s);
    qkv_dataset_free(p);
    qkv_model_free(m);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    draw_sources();
    assert_true(each_allocation_fails(all_of_it) > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_a_toy_language),
        cmocka_unit_test(same_on_any_threads_and_in_a_file),
        cmocka_unit_test(some_of_many_pairs),
        cmocka_unit_test(everything_is_as_none),
        cmocka_unit_test(same_in_any_batch),
        cmocka_unit_test(probabilities_of_a_list_add_up_to_1),
        cmocka_unit_test(other_vocabularies_are_refused),
        cmocka_unit_test(hostile_files),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
