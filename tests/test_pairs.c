/* test_pairs.c: pairs of id sequences and the batches of an epoch. */
#include <qkv/data.h>

#include "../src/data/pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing.h"

enum { PAIRS = 500, START = 1, END = 2, PAD = 0 };

static const qkv_batch_opts opts = { .max_tokens = 200, .seed = 7, .start = START, .end = END, .pad = PAD };

/* Pair i begins with its number on both sides; lengths go up and down. */
static int64_t source_length(int i) { return 1 + i * 7 % 23; }
static int64_t target_length(int i) { return 1 + i * 5 % 19; }

static qkv_dataset *make_pairs(void)
{
    qkv_dataset *p = qkv_dataset_new();
    if (!p) return NULL;
    for (int i = 0; i < PAIRS; i++) {
        int32_t source[32], target[32];
        for (int k = 0; k < 32; k++) source[k] = 1000 + 10 * i + k, target[k] = 20000 + 10 * i + k;
        if (qkv_dataset_add_ids(p, source, (size_t)source_length(i), target, (size_t)target_length(i))) {
            qkv_dataset_free(p);
            return NULL;
        }
    }
    return p;
}

static void check_row(const qkv_batch *b, int64_t row, int i)
{
    const int32_t *source = b->source + row * b->source_length, *target = b->target + row * b->target_length;
    const int32_t *labels = b->labels + row * b->target_length;
    assert_int_equal(b->source_lengths[row], source_length(i) + 1);
    assert_int_equal(b->target_lengths[row], target_length(i) + 1);
    for (int64_t k = 0; k < b->source_length; k++)
        assert_int_equal(source[k], k < source_length(i) ? 1000 + 10 * i + k : k == source_length(i) ? END : PAD);
    for (int64_t k = 0; k < b->target_length; k++) {
        assert_int_equal(target[k], k == 0 ? START : k <= target_length(i) ? 20000 + 10 * i + k - 1 : PAD);
        assert_int_equal(labels[k], k < target_length(i) ? 20000 + 10 * i + k : k == target_length(i) ? END : QKV_IGNORED);
    }
}

/* Every pair once, as it was added, in batches that are not too large, and not much of them padding. */
static void each_pair_once(void **state)
{
    (void)state;
    qkv_dataset *p = make_pairs();
    qkv_batch *b = NULL;
    for (uint64_t number = 0; number < 3; number++) {
        qkv_loader *e = qkv_loader_new(p, &opts, number);
        int seen[PAIRS] = { 0 };
        int64_t real = 0, padded = 0;
        for (int64_t i = 0; i < qkv_loader_size(e); i++) {
            assert_int_equal(qkv_loader_batch(e, i, &b), QKV_OK);
            assert_true(b->rows * b->source_length <= opts.max_tokens && b->rows * b->target_length <= opts.max_tokens);
            int64_t tokens = 0;
            for (int64_t row = 0; row < b->rows; row++) {
                int pair = (b->source[row * b->source_length] - 1000) / 10;
                check_row(b, row, pair);
                seen[pair]++;
                tokens += target_length(pair) + 1;
            }
            assert_int_equal(b->tokens, tokens);
            real += tokens;
            padded += b->rows * b->target_length;
        }
        for (int i = 0; i < PAIRS; i++) assert_int_equal(seen[i], 1);
        assert_true(padded < real * 11 / 10);
        qkv_loader_free(e);
    }
    qkv_free(b);
    qkv_dataset_free(p);
}

static void same_epoch_same_batches(void **state)
{
    (void)state;
    qkv_dataset *p = make_pairs();
    qkv_loader *first = qkv_loader_new(p, &opts, 4), *again = qkv_loader_new(p, &opts, 4), *next = qkv_loader_new(p, &opts, 5);
    qkv_batch *a = NULL, *b = NULL;
    int64_t differ = 0, n = qkv_loader_size(first);
    assert_true(n > 10);
    assert_int_equal(qkv_loader_size(again), n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(qkv_loader_batch(first, i, &a), QKV_OK);
        assert_int_equal(qkv_loader_batch(again, i, &b), QKV_OK);
        assert_int_equal(a->rows, b->rows);
        assert_memory_equal(a->source, b->source, sizeof(int32_t) * (size_t)(a->rows * a->source_length));
        if (i >= qkv_loader_size(next)) continue;
        assert_int_equal(qkv_loader_batch(next, i, &b), QKV_OK);
        differ += a->rows != b->rows || a->source[0] != b->source[0];
    }
    assert_true(differ > n / 2);
    qkv_free(a);
    qkv_free(b);
    qkv_loader_free(first);
    qkv_loader_free(again);
    qkv_loader_free(next);
    qkv_dataset_free(p);
}

static void in_order(void **state)
{
    (void)state;
    qkv_dataset *p = make_pairs();
    qkv_batch_opts o = opts;
    o.sequential = 1;
    qkv_loader *e = qkv_loader_new(p, &o, 0);
    qkv_batch *b = NULL;
    int next = 0;
    for (int64_t i = 0; i < qkv_loader_size(e); i++) {
        assert_int_equal(qkv_loader_batch(e, i, &b), QKV_OK);
        for (int64_t row = 0; row < b->rows; row++) check_row(b, row, next++);
    }
    assert_int_equal(next, PAIRS);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
}

/* Empty sides, a pair longer than a batch may be, no pairs at all. */
static void odd_pairs(void **state)
{
    (void)state;
    static int32_t ids[1000];
    qkv_dataset *p = qkv_dataset_new();
    qkv_loader *e = qkv_loader_new(p, &opts, 0);
    qkv_batch *b = NULL;
    assert_int_equal(qkv_loader_size(e), 0);
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_USAGE);
    qkv_loader_free(e);
    assert_int_equal(qkv_dataset_add_ids(p, NULL, 0, NULL, 0), QKV_OK);
    assert_int_equal(qkv_dataset_add_ids(p, ids, 1000, ids, 3), QKV_OK);
    assert_int_equal(qkv_dataset_add_ids(p, NULL, 3, ids, 3), QKV_USAGE);
    assert_int_equal(qkv_dataset_add_ids(NULL, ids, 3, ids, 3), QKV_USAGE);
    assert_int_equal(qkv_dataset_size(p), 2);
    e = qkv_loader_new(p, &opts, 0);
    assert_int_equal(qkv_loader_size(e), 2);
    int64_t longest = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qkv_loader_batch(e, i, &b), QKV_OK);
        assert_int_equal(b->rows, 1);
        if (b->source_length > longest) longest = b->source_length;
    }
    assert_int_equal(longest, 1001);
    assert_int_equal(qkv_loader_batch(e, -1, &b), QKV_USAGE);
    assert_null(qkv_loader_new(p, &(qkv_batch_opts){ .max_tokens = -1 }, 0));
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
}

/* Sources without the end, but for an empty one, which must have something to read. */
static void bare_sources(void **state)
{
    (void)state;
    const int32_t ids[] = { 7, 8, 9 }, wanted[] = { 7, 8, 9, 2, 0, 0 };
    const qkv_batch_opts o = { .sequential = 1, .start = 1, .end = 2, .source_has_end = 1 };
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(qkv_dataset_add_ids(p, ids, 3, ids, 2), QKV_OK);
    assert_int_equal(qkv_dataset_add_ids(p, NULL, 0, ids, 2), QKV_OK);
    qkv_loader *e = qkv_loader_new(p, &o, 0);
    qkv_batch *b = NULL;
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
    assert_true(b->rows == 2 && b->source_length == 3 && b->source_lengths[0] == 3 && b->source_lengths[1] == 1);
    assert_memory_equal(b->source, wanted, sizeof wanted);
    assert_int_equal(b->labels[2], 2);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
}

static qkv_status run_once(void)
{
    qkv_dataset *p = make_pairs();
    qkv_loader *e = p ? qkv_loader_new(p, &opts, 0) : NULL;
    qkv_batch *b = NULL;
    qkv_status status = e ? QKV_OK : qkv_error_status();
    for (int64_t i = 0; !status && i < qkv_loader_size(e); i++) status = qkv_loader_batch(e, i, &b);
    double share;
    if (!status) status = qkv__dataset_shared_runs(p, 2, &share);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(run_once) > 10);
}

/* Every third pair goes to one side, the others to the other; together they are all, and nothing is on both. */
static void split_and_overlap(void **state)
{
    (void)state;
    qkv_dataset *all = make_pairs(), *kept = qkv_dataset_new(), *held = qkv_dataset_new();
    int64_t count, repeated, ids = 0;
    for (int i = 0; i < PAIRS; i++) ids += target_length(i);
    assert_int_equal(qkv__dataset_target_ids(all), ids);
    assert_int_equal(qkv__dataset_split(all, 3, kept, held), QKV_OK);
    assert_int_equal(qkv_dataset_size(held), PAIRS / 3);
    assert_int_equal(qkv_dataset_size(kept), PAIRS - PAIRS / 3);
    assert_int_equal(qkv__dataset_repeats(kept, held, &repeated, &count), QKV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(qkv__dataset_repeats(all, held, &repeated, &count), QKV_OK);
    assert_int_equal(count, PAIRS / 3);
    assert_int_equal(repeated, 0);
    /* The same ids, cut elsewhere, are another pair. */
    const int32_t one[] = { 1, 2, 3 };
    qkv_dataset *a = qkv_dataset_new(), *b = qkv_dataset_new();
    assert_int_equal(qkv_dataset_add_ids(a, one, 1, one + 1, 2), QKV_OK);
    assert_int_equal(qkv_dataset_add_ids(b, one, 2, one + 2, 1), QKV_OK);
    assert_int_equal(qkv__dataset_repeats(a, b, &repeated, &count), QKV_OK);
    assert_int_equal(count, 0);
    assert_int_equal(qkv_dataset_add_ids(a, one, 1, one + 1, 2), QKV_OK);
    assert_int_equal(qkv__dataset_repeats(a, b, &repeated, &count), QKV_OK);
    assert_int_equal(repeated, 1);
    qkv_dataset *const every[] = { all, kept, held, a, b };
    for (int i = 0; i < 5; i++) qkv_dataset_free(every[i]);
}

/* Equal sources and parts of others count, sources that share shorter runs do not. */
static void runs_in_common(void **state)
{
    (void)state;
    static const struct {
        int32_t ids[5];
        size_t n;
    } sources[] = { { { 1, 2, 3, 4, 5 }, 5 },
                    { { 1, 2, 3, 4, 5 }, 5 },
                    { { 2, 3, 4, 6 }, 4 },
                    { { 6, 7, 8, 9 }, 4 },
                    { { 7 }, 1 },
                    { { 7 }, 1 },
                    { { 8 }, 1 },
                    { { 0 }, 0 } };
    const struct {
        int64_t run;
        double share;
    } wanted[] = { { 5, 0.5 }, { 4, 0.5 }, { 1000, 0.5 } };
    double share = 1;
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(qkv__dataset_shared_runs(p, 4, &share), QKV_OK);
    assert_true(share == 0);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        assert_int_equal(qkv_dataset_add_ids(p, sources[i].ids, sources[i].n, sources[0].ids, 1), QKV_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_int_equal(qkv__dataset_shared_runs(p, wanted[i].run, &share), QKV_OK);
        assert_true(share == wanted[i].share);
    }
    qkv_dataset_free(p);
    /* 64 windows of 20 places along one text: each has the least run of a neighbour. */
    int32_t line[84];
    p = qkv_dataset_new();
    for (int i = 0; i < 84; i++) line[i] = i;
    for (int i = 0; i < 64; i++) assert_int_equal(qkv_dataset_add_ids(p, line + i, 20, line, 1), QKV_OK);
    assert_int_equal(qkv__dataset_shared_runs(p, 6, &share), QKV_OK);
    assert_true(share > 0.9);
    qkv_dataset_free(p);
}

/* Written and mapped again they are the same pairs; a file that is cut, or another, is none. */
static void opened_from_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/test-pairs-XXXXXX";
    const int32_t one[] = { 1 };
    int64_t overlap, repeated, n, m;
    close(mkstemp(path));
    qkv_dataset *all = make_pairs(), *opened = qkv_dataset_new();
    assert_int_equal(qkv__dataset_write(all, path), QKV_OK);
    assert_int_equal(qkv_dataset_add_ids(opened, one, 1, one, 1), QKV_OK);
    assert_int_equal(qkv__dataset_open(opened, path), QKV_OK);
    assert_true(qkv__dataset_are_opened(opened) && !qkv__dataset_are_opened(all));
    assert_int_equal(qkv_dataset_size(opened), PAIRS);
    for (int i = 0; i < 2 * PAIRS; i++) {
        const int32_t *a = qkv__dataset_side(all, i / 2, i % 2, &n), *b = qkv__dataset_side(opened, i / 2, i % 2, &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, sizeof *a * (size_t)n);
    }
    assert_int_equal(qkv__dataset_repeats(all, opened, &repeated, &overlap), QKV_OK);
    assert_int_equal(overlap, PAIRS);
    assert_int_equal(qkv_dataset_add_ids(opened, one, 1, one, 1), QKV_USAGE);
    qkv_dataset_free(opened);
    opened = qkv_dataset_new();
    for (off_t cut = 0; cut <= 40; cut += 20) {
        assert_int_equal(qkv__dataset_write(all, path), QKV_OK);
        assert_int_equal(truncate(path, cut), 0);
        assert_int_equal(qkv__dataset_open(opened, path), QKV_FORMAT);
    }
    assert_int_equal(qkv_dataset_size(opened), 0);
    qkv_dataset_free(all);
    qkv_dataset_free(opened);
    unlink(path);
}

/* As those of another rank are. */
static void written_where_room_was_made(void **state)
{
    (void)state;
    qkv_dataset *all = make_pairs();
    qkv__pair_arrays from = qkv__dataset_arrays(all);
    for (int in_file = 0; in_file < 2; in_file++) {
        qkv_dataset *p = in_file ? qkv__dataset_new_with_limit(16) : qkv_dataset_new();
        const int32_t one[] = { 7 };
        int64_t overlap = 0, repeated;
        assert_int_equal(qkv_dataset_add_ids(p, one, 1, one, 1), QKV_OK);
        assert_int_equal(qkv__dataset_make_room(p, 0, 0), QKV_OK);
        assert_int_equal(qkv_dataset_size(p), 0);
        assert_int_equal(qkv__dataset_make_room(p, from.n, from.n_ids), QKV_OK);
        qkv__pair_arrays to = qkv__dataset_arrays(p);
        assert_int_equal(to.n, PAIRS);
        memcpy(to.ends, from.ends, 2 * sizeof *to.ends * (size_t)from.n);
        memcpy(to.ids, from.ids, sizeof *to.ids * (size_t)from.n_ids);
        assert_int_equal(qkv__dataset_arrays(p).n_ids, from.n_ids);
        assert_int_equal(qkv__dataset_repeats(all, p, &repeated, &overlap), QKV_OK);
        assert_int_equal(overlap, PAIRS);
        assert_int_equal(qkv_dataset_add_ids(p, one, 1, one, 1), QKV_OK);
        assert_int_equal(qkv_dataset_size(p), PAIRS + 1);
        qkv_dataset_free(p);
    }
    qkv_dataset_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_once),
        cmocka_unit_test(same_epoch_same_batches),
        cmocka_unit_test(in_order),
        cmocka_unit_test(bare_sources),
        cmocka_unit_test(odd_pairs),
        cmocka_unit_test(split_and_overlap),
        cmocka_unit_test(runs_in_common),
        cmocka_unit_test(opened_from_a_file),
        cmocka_unit_test(written_where_room_was_made),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
