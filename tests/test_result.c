/* test_result.c: results are reused, freed once, and belong to one kind; strings; errors of a program's own. */
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"

typedef struct numbers {
    int64_t n;
    int32_t *of;
    int *released; /* counts */
} numbers;

static void release_numbers(void *result)
{
    numbers *x = result;
    if (x->released) (*x->released)++;
}

static const qkv__result_kind numbers_kind = { sizeof(numbers), release_numbers };
static const qkv__result_kind other_kind = { sizeof(numbers), NULL };

static void fill(numbers *x, int64_t n, int *released)
{
    x->of = qkv__result_alloc(x, sizeof *x->of * (size_t)n);
    assert_non_null(x->of);
    x->n = n, x->released = released;
    for (int64_t i = 0; i < n; i++) x->of[i] = (int32_t)i;
}

static void test_reuse(void **state)
{
    (void)state;
    int released = 0;
    numbers *x = qkv__result_begin(NULL, &numbers_kind);
    assert_non_null(x);
    fill(x, 1000, &released);
    numbers *again = qkv__result_begin(x, &numbers_kind);
    assert_ptr_equal(x, again);
    assert_int_equal(released, 1);
    assert_int_equal(x->n, 0);
    assert_null(x->of);
    fill(x, 10, &released);
    qkv__result_clear(x);
    assert_int_equal(released, 2);
    assert_int_equal(x->n, 0);
    fill(x, 3, &released);
    qkv_free(x);
    assert_int_equal(released, 3);
    qkv_free(NULL);
    qkv__result_clear(NULL);
}

static void test_kinds(void **state)
{
    (void)state;
    numbers *x = qkv__result_begin(NULL, &numbers_kind);
    assert_non_null(x);
    fill(x, 2, NULL);
    assert_null(qkv__result_begin(x, &other_kind));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    assert_int_equal(x->of[1], 1); /* kept */
    qkv_free(x);

    char foreign[256] = { 0 };
    qkv_set_error(QKV_OK, NULL);
    qkv_free(foreign + 128);
    assert_int_equal(qkv_error_status(), QKV_USAGE);
}

static qkv_status shout(qkv_str s, qkv_text **out, qkv_status status)
{
    qkv_buffer *b = qkv__text_begin(out);
    if (!b) return qkv_error_status();
    if (qkv__buffer_put(b, s.data, s.length) || qkv__buffer_put(b, "!", 1)) status = QKV_MEMORY;
    return qkv__text_end(*out, status);
}

static void test_text(void **state)
{
    (void)state;
    qkv_text *t = NULL;
    assert_int_equal(shout(qkv_cstr("ab"), &t, QKV_OK), QKV_OK);
    assert_string_equal(t->data, "ab!");
    assert_int_equal(t->length, 3);
    qkv_text *first = t;
    assert_int_equal(shout(qkv_cstr(NULL), &t, QKV_OK), QKV_OK);
    assert_ptr_equal(t, first);
    assert_string_equal(t->data, "!");
    assert_int_equal(shout(qkv_cstr("x"), &t, QKV_IO), QKV_IO);
    assert_string_equal(t->data, "");
    assert_int_equal(t->length, 0);
    assert_int_equal(shout(qkv_cstr("x"), NULL, QKV_OK), QKV_USAGE);
    qkv_free(t);
}

static void test_errors(void **state)
{
    (void)state;
    char sentence[2000];
    assert_int_equal(qkv_set_error(QKV_FORMAT, "row 3: 100% wrong"), QKV_FORMAT);
    assert_string_equal(qkv_error(), "row 3: 100% wrong");
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    memset(sentence, 'x', sizeof sentence), sentence[sizeof sentence - 1] = '\0';
    qkv_set_error(QKV_IO, sentence);
    assert_int_equal(strlen(qkv_error()), QKV_SENTENCE_MAX - 1);
}

static int no(void *data) { return (*(int *)data)++ > 1; }

static void test_cancel(void **state)
{
    (void)state;
    int calls = 0;
    qkv_hooks hooks = { .size = sizeof hooks, .data = &calls, .cancel = no };
    assert_int_equal(qkv__cancelled(NULL, "f"), QKV_OK);
    assert_int_equal(qkv__cancelled(&(qkv_hooks){ 0 }, "f"), QKV_OK);
    assert_int_equal(qkv__cancelled(&hooks, "f"), QKV_OK);
    assert_int_equal(qkv__cancelled(&hooks, "f"), QKV_OK);
    assert_int_equal(qkv__cancelled(&hooks, "f"), QKV_CANCELLED);
    assert_string_equal(qkv_error(), "f: cancelled");
}

static qkv_status make_results(void)
{
    qkv_text *t = NULL;
    numbers *x = qkv__result_begin(NULL, &numbers_kind);
    qkv_status status = x && qkv__result_copy(x, "abc", 3).data ? shout(qkv_cstr("abc"), &t, QKV_OK) : QKV_MEMORY;
    if (!status) assert_string_equal(t->data, "abc!");
    qkv_free(x);
    qkv_free(t);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(make_results) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse),  cmocka_unit_test(test_kinds),  cmocka_unit_test(test_text),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_cancel), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
