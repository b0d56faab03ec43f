/* test_dist.c: the tree of a sum: however it is shared, the same additions. What goes between processes is tested by ranks.sh. */
#include "base/memory.h"
#include "dist/all_gather.h"
#include "dist/aside.h"
#include "dist/changes.h"
#include "dist/deal.h"
#include "dist/reduction.h"
#include "tensor/tape.h"

#include <qkv/nn.h>
#include <qkv/tensor.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_LEAVES = 40, MOST_RANKS = 12 };

/* Numbers whose sum depends on its order. */
static double leaf_value(int64_t i) { return (i % 3 ? 1e16 : -1e16) / (double)(i + 1) + (double)(i * i); }

static void test_tree_by_hand(void **state)
{
    (void)state;
    const double leaf[] = { 1e16, 1, -1e16, 1, 0.5 };
    assert_int_equal(qkv__tree_middle((qkv__node){ 0, 2 }), 1);
    assert_int_equal(qkv__tree_middle((qkv__node){ 0, 5 }), 4);
    assert_int_equal(qkv__tree_middle((qkv__node){ 4, 7 }), 6);
    /* ((1e16 + 1) + (-1e16 + 1)) + 0.5: 1e16 + 1 is 1e16, and -1e16 + 1 is -1e16 + 2 or -1e16, whichever is even */
    const double left = 1e16 + 1, right = -1e16 + 1;
    assert_true(qkv__tree_sum(leaf, (qkv__node){ 0, 5 }) == left + right + 0.5);
}

/* As the ranks do it: sums of their nodes, then what is above them. */
static double sum_shared(const double *leaf, qkv__node n, const qkv__node *nodes, int *next)
{
    if (nodes[*next].from == n.from && nodes[*next].to == n.to) return (*next)++, qkv__tree_sum(leaf, n);
    int64_t middle = qkv__tree_middle(n);
    double left = sum_shared(leaf, (qkv__node){ n.from, middle }, nodes, next);
    return left + sum_shared(leaf, (qkv__node){ middle, n.to }, nodes, next);
}

static void test_tree_shared(void **state)
{
    (void)state;
    double leaf[MOST_LEAVES];
    for (int64_t i = 0; i < MOST_LEAVES; i++) leaf[i] = leaf_value(i);
    for (int64_t leaves = 1; leaves <= MOST_LEAVES; leaves++)
        for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
            qkv__node nodes[MOST_RANKS * QKV__MAX_NODES];
            int n = 0, next = 0;
            for (int r = 0; r < ranks; r++) n += qkv__tree_nodes(leaves, qkv__tree_share(leaves, r, ranks), nodes + n);
            int64_t at = 0; /* every leaf once, in order */
            for (int i = 0; i < n; i++) {
                assert_int_equal(nodes[i].from, at);
                at = nodes[i].to;
            }
            assert_int_equal(at, leaves);
            double sum = sum_shared(leaf, (qkv__node){ 0, leaves }, nodes, &next);
            assert_int_equal(next, n);
            assert_true(sum == qkv__tree_sum(leaf, (qkv__node){ 0, leaves }));
        }
}

static void test_powers_of_two_are_one_node(void **state)
{
    (void)state;
    qkv__node nodes[QKV__MAX_NODES];
    for (int ranks = 1; ranks <= 16; ranks *= 2)
        for (int r = 0; r < ranks; r++) assert_int_equal(qkv__tree_nodes(16, qkv__tree_share(16, r, ranks), nodes), 1);
}

/* However many ranks there are, their slices are all of a block, in order, and lie one after the other without a gap. */
static void test_slices(void **state)
{
    (void)state;
    const int64_t counts[] = { 16, 4080, QKV__BUCKET - 16, QKV__BUCKET, 3 * QKV__BUCKET + 5008, 40 * QKV__BUCKET + 16 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int ranks = 1; ranks <= 300; ranks += ranks < 8 ? 1 : 73) {
            qkv__slices s = { .count = counts[i], .ranks = ranks };
            int64_t at = 0, all = 0, place;
            for (int64_t b = 0; b < qkv__buckets(&s); b++) {
                qkv__span whole = qkv__bucket(&s, b);
                assert_true(whole.from < whole.to && whole.to - whole.from <= qkv__bucket_floats(&s));
                for (int r = 0; r < ranks; r++) {
                    qkv__span slice = qkv__slice(&s, b, r);
                    assert_int_equal(slice.from, at);
                    assert_true(slice.to - slice.from <= qkv__slice_most(&s));
                    assert_true(slice.to >= at && (slice.from % QKV__UNIT == 0 || slice.from == slice.to));
                    at = slice.to;
                }
            }
            assert_int_equal(at, counts[i]);
            for (s.rank = 0; s.rank < ranks; s.rank++) {
                int64_t next = 0;
                for (int64_t b = 0; b < qkv__buckets(&s); b++) {
                    qkv__span own = qkv__slice_of(&s, b, (qkv__span){ 0, s.count }, &place);
                    assert_int_equal(place, next);
                    next += own.to - own.from;
                }
                assert_int_equal(qkv__slice_place(&s, qkv__buckets(&s)), next);
                all += next;
            }
            assert_int_equal(all, counts[i]);
        }
}

/* ---- after an error ---- */

static int n_released;
static void *counted_alloc(size_t bytes, size_t alignment) { return (void)alignment, malloc(bytes); }
static void counted_release(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
    n_released++;
}

/* What others may still write to is not given back. In a process of its own, since it is for ever. */
static void test_kept_memory(void **state)
{
    (void)state;
    int how;
    pid_t child = fork();
    if (!child) {
        qkv__set_memory(&(qkv__memory){ counted_alloc, counted_release });
        qkv__release(qkv__alloc(8), 8);
        qkv__keep_memory();
        qkv__release(qkv__alloc(8), 8);
        _exit(n_released);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 1);
}

/* One rank has all pieces, and their numbers stay in order. */
static void test_deal(void **state)
{
    (void)state;
    qkv__deal d = { 0 };
    for (int i = 0; i < 100; i++) {
        bool is_own = false;
        assert_int_equal(qkv__deal_piece(&d, i % 7, &is_own), QKV_OK);
        assert_true(is_own);
        d.pieces[d.n - 1].number = i;
    }
    assert_int_equal(qkv__deal_join(&d), QKV_OK);
    assert_int_equal(d.n, 100);
    for (int i = 0; i < 100; i++) assert_true(d.pieces[i].number == i && !d.pieces[i].rank);
    qkv__deal_free(&d);
    const size_t lengths[] = { 3, 0, 70 };
    assert_int_equal(qkv_dist_first(lengths, 3, 0), 0);
    assert_int_equal(qkv_dist_first(lengths, 3, 1), 3);
    assert_int_equal(qkv_dist_first(NULL, 3, 1), 0);
}

/* ---- when a gradient is final ---- */

typedef struct told {
    const qkv_tensor *weight[8];
    float grad[8];
    int n;
} told;

static void note_final(void *data, const qkv_tensor *w)
{
    told *t = data;
    assert_true(t->n < 8);
    t->weight[t->n] = w;
    t->grad[t->n++] = w->grad[0];
}

/* y = x a b a: a is used first and last, and told of when the backward pass has passed its first use. */
static void test_gradients_are_final_once_told(void **state)
{
    (void)state;
    const int64_t shape[] = { 1, 1 };
    const float three = 3;
    qkv_params *p = qkv_params_new(1);
    qkv_tensor *a = qkv_params_add(p, "a", 2, shape, QKV_INIT_ONE, 0), *b = qkv_params_add(p, "b", 2, shape, QKV_INIT_ONE, 0);
    qkv_tensor *unused = qkv_params_add(p, "unused", 2, shape, QKV_INIT_ONE, 0);
    qkv_tape *t = qkv_tape_new(NULL);
    told all = { 0 };
    qkv_tensor_data_mut(a)[0] = 2;
    qkv_tensor_data_mut(b)[0] = 5;
    qkv__tell_final(t, note_final, &all);
    qkv_tensor *x = qkv_constant(t, 2, shape, &three);
    qkv_tensor *y = qkv_matmul(qkv_matmul(qkv_matmul(x, qkv_on(t, a), 0), b, 0), a, 0);
    assert_int_equal(qkv_backward(y), QKV_OK);
    assert_int_equal(all.n, 2);
    assert_true(all.weight[0] == b && all.grad[0] == 12); /* x a^2 */
    assert_true(all.weight[1] == a && all.grad[1] == 60); /* 2 x a b */
    assert_true(qkv_tensor_grad(unused)[0] == 0);
    qkv_tape_free(t);
    qkv_params_free(p);
    qkv_shutdown();
}

/* ---- weights on their way ---- */

/* Sets a weight that is waited for. */
static void bring(void *data, const qkv_tensor *w)
{
    ++*(int *)data;
    w->data[0] = 7;
}

/* Whether it is read as it is, under another name, or by a table's operation, which has a tape of its own. */
static void test_weights_are_awaited(void **state)
{
    (void)state;
    const int64_t shape[] = { 1, 1 };
    const int32_t first = 0;
    const float three = 3;
    qkv_params *p = qkv_params_new(1);
    qkv_tensor *a = qkv_params_add(p, "a", 2, shape, QKV_INIT_ONE, 0);
    qkv_tape *t = qkv_tape_new(NULL);
    qkv_tensor *x = qkv_constant(t, 2, shape, &three);
    int waits = 0;
    qkv__await_weights(t, bring, &waits);
    assert_true(qkv_tensor_item(qkv_matmul(x, a, 0)) == 21);
    qkv_tensor_data_mut(a)[0] = 1;
    assert_true(qkv_tensor_item(qkv_matmul(x, qkv_on(t, a), 0)) == 21);
    qkv_tensor_data_mut(a)[0] = 1;
    assert_true(qkv_tensor_item(qkv_gather(t, a, &first, 0, NULL)) == 7);
    assert_true(waits >= 3);
    qkv__await_weights(t, NULL, NULL);
    qkv_tensor_data_mut(a)[0] = 1;
    assert_true(qkv_tensor_item(qkv_matmul(x, a, 0)) == 3);
    qkv_tape_free(t);
    qkv_params_free(p);
}

typedef struct relay {
    qkv__mark mark;
    int64_t numbers[1000];
} relay;

static void *write_numbers(void *data)
{
    relay *r = data;
    for (int64_t i = 0; i < 1000; i++) {
        r->numbers[i] = i + 1;
        qkv__mark_raise(&r->mark, i + 1);
        qkv__mark_raise(&r->mark, i); /* it stays where it is */
    }
    return NULL;
}

static void test_mark(void **state)
{
    (void)state;
    static relay r;
    pthread_t thread;
    qkv__mark_init(&r.mark);
    assert_int_equal(pthread_create(&thread, NULL, write_numbers, &r), 0);
    for (int64_t i = 0; i < 1000; i++) {
        qkv__mark_wait(&r.mark, i + 1);
        assert_int_equal(r.numbers[i], i + 1);
    }
    pthread_join(thread, NULL);
    qkv__mark_destroy(&r.mark);
}

/* ---- weights as what changed ---- */

enum { MOST_CHANGES = 3 * QKV__UNIT + 7 };

static uint32_t next_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Packs what makes `from` to `to`, applies it to the former, and gives the bytes it took. Bits count, not values: NaNs do. */
static size_t carry(int64_t n, const float *from, const float *to)
{
    float changes[MOST_CHANGES], got[MOST_CHANGES];
    size_t most = qkv__packed_most(n);
    unsigned char *packed = malloc(most + 1);
    memcpy(got, from, sizeof *got * (size_t)n);
    packed[most] = 123;
    qkv__find_changes(n, from, to, changes);
    size_t bytes = qkv__pack_changes(n, changes, packed);
    assert_true(bytes <= most && packed[most] == 123);
    unsigned char *exact = memcpy(malloc(bytes + 1), packed, bytes);
    assert_true(qkv__apply_changes(n, got, exact, bytes));
    assert_memory_equal(got, to, sizeof *got * (size_t)n);
    assert_false(qkv__apply_changes(n, got, packed, bytes - 1));
    exact[bytes] = 0;
    assert_false(qkv__apply_changes(n, got, exact, bytes + 1));
    free(exact);
    free(packed);
    return bytes;
}

static void test_changes(void **state)
{
    (void)state;
    const int64_t counts[] = { 1, 2, 7, 500, QKV__UNIT - 1, QKV__UNIT, QKV__UNIT + 1, 2 * QKV__UNIT, MOST_CHANGES };
    const float odd[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f, 3e38f, -3e38f, 1, -1 };
    enum { ODD = sizeof odd / sizeof *odd };
    float from[MOST_CHANGES], to[MOST_CHANGES];
    uint64_t random = 1;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        int64_t n = counts[c];
        size_t heads = 2 * (size_t)((n + QKV__UNIT - 1) / QKV__UNIT);
        for (int64_t i = 0; i < n; i++) from[i] = to[i] = odd[i % ODD];
        assert_int_equal(carry(n, from, to), heads); /* nothing changed, and nothing is sent */
        for (int64_t i = 0; i < n; i++) to[i] = odd[(i * 5 + 3) % ODD];
        carry(n, from, to);
        /* changes of so many bits: one byte or more of each, none of them wasted */
        for (int bits = 1; bits <= 32; bits++) {
            for (int64_t i = 0; i < n; i++) {
                uint32_t old = next_bits(&random), change = next_bits(&random) >> (32 - bits),
                         new = old + change - (1u << (bits - 1));
                memcpy(&from[i], &old, sizeof old);
                memcpy(&to[i], &new, sizeof new);
            }
            assert_true(carry(n, from, to) <= heads + (size_t)((bits + 7) / 8) * (size_t)n);
        }
    }
}

/* Few that change much do not make the others wide. */
static void test_changes_with_exceptions(void **state)
{
    (void)state;
    float from[QKV__UNIT], to[QKV__UNIT];
    for (int64_t i = 0; i < QKV__UNIT; i++) to[i] = nextafterf(from[i] = 0.01f * (float)(i - 500), 100);
    from[3] = 1e-30f, to[3] = -1e-30f;
    from[QKV__UNIT - 1] = 1, to[QKV__UNIT - 1] = 2;
    assert_int_equal(carry(QKV__UNIT, from, to), 2 + QKV__UNIT + 2 * 6);
}

/* Bytes of another rank are read within their bounds, whatever they are. */
static void test_broken_changes(void **state)
{
    (void)state;
    float weights[QKV__UNIT + 1] = { 0 };
    unsigned char bytes[8 + 6 * QKV__UNIT];
    uint64_t random = 7;
    struct {
        uint16_t head, which;
        uint32_t folded;
    } one = { 8, 10, 2 };
    assert_true(qkv__apply_changes(11, weights, (unsigned char *)&one, sizeof one));
    assert_false(qkv__apply_changes(10, weights, (unsigned char *)&one, sizeof one)); /* there is no change 10 */
    one.head = 16;                                                                    /* a second exception is not there */
    assert_false(qkv__apply_changes(11, weights, (unsigned char *)&one, sizeof one));
    one.head = 5; /* bytes of each change */
    assert_false(qkv__apply_changes(1, weights, (unsigned char *)&one, 7));
    assert_false(qkv__apply_changes(QKV__UNIT + 1, weights, (unsigned char *)&one, 7)); /* nor is the next unit looked for */
    assert_false(qkv__apply_changes(1, weights, (unsigned char *)&one, 0));
    unsigned char *half = calloc(1, 1); /* of a head: a sanitizer watches its end */
    assert_false(qkv__apply_changes(1, weights, half, 1));
    free(half);
    for (int round = 0; round < 2000; round++) {
        size_t n = next_bits(&random) % sizeof bytes;
        unsigned char *exact = malloc(n);
        for (size_t i = 0; i < n; i++) exact[i] = (unsigned char)next_bits(&random);
        if (n > 1) exact[1] &= 3; /* few exceptions, so that some of them are looked at */
        qkv__apply_changes(next_bits(&random) % QKV__UNIT + 1, weights, exact, n);
        free(exact);
    }
}

/* One process: everything is there, and nothing is said. */
static void test_alone(void **state)
{
    (void)state;
    qkv_buffer text = { 0 }, all = { 0 };
    float values[] = { 1, 2, 3 };
    int others = 7;
    assert_int_equal(qkv_dist_size(), 1);
    assert_int_equal(qkv_dist_rank(), 0);
    assert_int_equal(qkv_dist_get_info()->hosts, 0);
    assert_int_equal(qkv_dist_gather("abc", 3, &all), QKV_OK);
    assert_string_equal(all.data, "abc");
    assert_int_equal(qkv_dist_broadcast(&text), QKV_OK);
    float late[] = { 10, 20, 30 };
    const qkv__reduction_opts o = {
        .leaves = 1, .values = (float *[]){ values }, .sum = values, .count = 3, .late = (float *[]){ late }, .n_late = 1
    };
    qkv__reduction *r = qkv__reduction_begin(&o);
    assert_non_null(r);
    assert_int_equal(qkv__reduction_end(r), QKV_OK);
    assert_true(values[0] == 11 && values[1] == 22 && values[2] == 33);
    const qkv__slices slices = qkv__slices_of(3);
    float changes[] = { 0, 0, 1 };
    qkv__all_gather *g = qkv__all_gather_begin(&slices, values, changes);
    assert_non_null(g);
    qkv__all_gather_ready(g, 2);
    qkv__all_gather_ready(g, 3);
    qkv__all_gather_wait(g, 3);
    assert_int_equal(qkv__all_gather_end(g), QKV_OK);
    assert_true(values[0] == 11 && values[2] == 33 && changes[2] == 0);
    assert_int_equal(qkv_dist_finalize(QKV_LIMIT, &others), QKV_LIMIT);
    assert_int_equal(others, 0);
    qkv_buffer_free(&all);
    qkv_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tree_by_hand),
                                        cmocka_unit_test(test_tree_shared),
                                        cmocka_unit_test(test_powers_of_two_are_one_node),
                                        cmocka_unit_test(test_slices),
                                        cmocka_unit_test(test_kept_memory),
                                        cmocka_unit_test(test_deal),
                                        cmocka_unit_test(test_gradients_are_final_once_told),
                                        cmocka_unit_test(test_weights_are_awaited),
                                        cmocka_unit_test(test_mark),
                                        cmocka_unit_test(test_changes),
                                        cmocka_unit_test(test_changes_with_exceptions),
                                        cmocka_unit_test(test_broken_changes),
                                        cmocka_unit_test(test_alone) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
