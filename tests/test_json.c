/* test_json.c: the JSON reader and writer: accepted and rejected texts, error positions, values, output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>

#include "base/json.h"
#include "failing.h"
#include "folder.h"

#define LENIENT (QKV__JSON_NUL | QKV__JSON_REPEATED)

/* ---- reading by both ways ---- */

/* All values, one by one, into a writer. */
static void copy_pulled(qkv__json_pull *p, qkv__json_type type, qkv__json_writer *w)
{
    char number[32] = "";
    switch (type) {
    case QKV__JSON_NULL: qkv__json_put_null(w, NULL); break;
    case QKV__JSON_FALSE:
    case QKV__JSON_TRUE: qkv__json_put_bool(w, NULL, type == QKV__JSON_TRUE); break;
    case QKV__JSON_INT: qkv__json_put_int(w, NULL, p->whole); break;
    case QKV__JSON_REAL:
        qkv__json_put_real(w, NULL, qkv__json_real(p), 17);
        if (p->length < sizeof number)
            assert_float_equal(strtod(memcpy(number, p->text, p->length), NULL), qkv__json_real(p), 0);
        break;
    case QKV__JSON_STRING: qkv__json_put_string(w, NULL, p->text, p->length); break;
    case QKV__JSON_ARRAY:
    case QKV__JSON_OBJECT:
        type == QKV__JSON_ARRAY ? qkv__json_open_array(w, NULL) : qkv__json_open_object(w, NULL);
        qkv__json_enter(p);
        while ((type = qkv__json_next(p))) {
            if (p->key) qkv__json_put_key(w, p->key, p->key_length);
            copy_pulled(p, type, w);
        }
        qkv__json_close(w);
        break;
    case QKV__JSON_NONE: break;
    }
}

static qkv_status pull_all(const qkv__json_source *source, bool skips, qkv__json_writer *w)
{
    qkv__json_pull p;
    qkv__json_pull_begin(&p, source);
    qkv__json_type type = qkv__json_next(&p);
    if (!skips) copy_pulled(&p, type, w);
    assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
    assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
    return qkv__json_pull_end(&p);
}

/* The tree, the pull reader and skipping must agree. The text ends at the end of its allocation, for sanitizers. */
static qkv_status read_text(const char *text, size_t length, unsigned flags)
{
    char *bytes = malloc(length ? length : 1);
    assert_non_null(memcpy(bytes, text, length));
    const qkv__json_source source = { .name = "file", .text = bytes, .length = length, .flags = flags };
    qkv__json_doc doc, again;
    qkv__json_writer pulled = { 0 }, written = { 0 };
    qkv_status status = qkv__json_parse(&source, &doc);
    assert_int_equal(status, status ? qkv_error_status() : QKV_OK);
    assert_int_equal(!status, doc.top != NULL);
    if (!status || flags & QKV__JSON_REPEATED) {
        char sentence[QKV_SENTENCE_MAX] = "";
        if (status) strcpy(sentence, qkv_error());
        assert_int_equal(pull_all(&source, false, &pulled), status);
        if (status) assert_string_equal(qkv_error(), sentence);
        assert_int_equal(pull_all(&source, true, NULL), status);
        if (status) assert_string_equal(qkv_error(), sentence);
    }
    if (!status) {
        qkv__json_put_value(&written, NULL, doc.top);
        assert_int_equal(written.status, QKV_OK);
        assert_string_equal(written.text, pulled.text);
        const qkv__json_source copy = { .name = "copy", .text = written.text, .length = written.length, .flags = flags };
        assert_int_equal(qkv__json_parse(&copy, &again), QKV_OK);
        assert_true(qkv__json_equal(doc.top, again.top));
        qkv__json_free(&again);
    }
    qkv__json_writer_free(&written);
    qkv__json_writer_free(&pulled);
    qkv__json_free(&doc);
    free(bytes);
    return status;
}

#define TEXT(text) text, sizeof text - 1

static const struct text {
    const char *name;
    bool is_accepted;
    const char *text;
    size_t length;
} cases[] = {
#define Y(name, text) { name, true, TEXT(text) },
#define N(name, text) { name, false, TEXT(text) },
#define I(accepted, name, text) { name, accepted, TEXT(text) },
#include "json_cases.def"
};
enum { CASES = sizeof cases / sizeof *cases };

static void texts_are_accepted_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const struct text *t = &cases[i];
        qkv_status status = read_text(t->text, t->length, LENIENT);
        if (t->is_accepted && status) fail_msg("%s: %s", t->name, qkv_error());
        if (!t->is_accepted && status != QKV_FORMAT) fail_msg("%s is accepted", t->name);
        if (status && strncmp(qkv_error(), "file: line ", 11) != 0) fail_msg("%s: %s", t->name, qkv_error());
    }
}

/* Every prefix of an array or object is refused, and one byte after it too. */
static void cut_texts_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const struct text *t = &cases[i];
        if (!t->is_accepted) continue;
        const char *begin = t->text + strspn(t->text, " \t\r\n"), *end = t->text + t->length;
        if (*begin != '[' && *begin != '{') continue;
        while (strchr(" \t\r\n", end[-1])) end--;
        for (size_t length = 0; length < (size_t)(end - t->text); length++)
            assert_int_equal(read_text(t->text, length, LENIENT), QKV_FORMAT);
        char longer[256] = { 0 };
        memcpy(longer, t->text, t->length);
        longer[t->length] = '}';
        assert_int_equal(read_text(longer, t->length + 1, LENIENT), QKV_FORMAT);
    }
}

/* 500 nested arrays are accepted (i_structure_500_nested_arrays). Any number of opened arrays and objects is refused at once
 * (n_structure_100000_opening_arrays, n_structure_open_array_object), and so are 100,000 nested arrays that are closed. */
static void depth_is_bounded(void **state)
{
    (void)state;
    enum { MANY = 1 << 20, NESTED = 100000 };
    static const int depths[] = { 500, QKV__JSON_DEPTH, NESTED, QKV__JSON_DEPTH + 1 };
    char *text = malloc(MANY);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        size_t depth = (size_t)depths[i];
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(read_text(text, 2 * depth, 0), depth > QKV__JSON_DEPTH ? QKV_FORMAT : QKV_OK);
    }
    assert_non_null(strstr(qkv_error(), "byte 1024: not JSON: too many levels"));
    memset(text, '[', MANY);
    assert_int_equal(read_text(text, NESTED, 0), QKV_FORMAT);
    assert_int_equal(read_text(text, MANY, 0), QKV_FORMAT);
    static const char *const pieces[] = { "{\"\":[", "[{\"\":" };
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i + 5 <= MANY; i += 5) memcpy(text + i, pieces[k], 5);
        assert_int_equal(read_text(text, MANY, 0), QKV_FORMAT);
    }
    free(text);
}

static void errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        { "", "file: line 1, byte 0: not JSON: it ends too early" },
        { "{\n \"a\": 1,\n \"b\": x}", "file: line 3, byte 17: not JSON: a value is expected" },
        { "[1,\r\n2\n3]", "file: line 3, byte 7: not JSON: a comma or ] is expected" },
        { "{\"a\" 1}", "file: line 1, byte 5: not JSON: a colon is expected" },
        { "{\"a\": 1 \"b\"}", "file: line 1, byte 8: not JSON: a comma or } is expected" },
        { "[\n\"a\\nb\\q\"]", "file: line 2, byte 7: not JSON: an unknown escape" },
        { "[\"ab\tc\"]", "file: line 1, byte 4: not JSON: a control character in a string" },
        { "[\"ab\xFF\"]", "file: line 1, byte 4: not JSON: not UTF-8" },
        { "[\"\\ud800\"]", "file: line 1, byte 2: not JSON: half of a surrogate pair" },
        { "[\"\\u0000\"]", "file: line 1, byte 2: not JSON: \\u0000, which is refused here" },
        { "[\"\\u12g4\"]", "file: line 1, byte 2: not JSON: \\u without four digits" },
        { "[01]", "file: line 1, byte 1: not JSON: a number that begins with 0" },
        { "[-]", "file: line 1, byte 2: not JSON: a minus without a number" },
        { "[1.]", "file: line 1, byte 3: not JSON: a decimal point without digits" },
        { "[1e]", "file: line 1, byte 3: not JSON: an exponent without digits" },
        { "[1e999]", "file: line 1, byte 1: not JSON: a number beyond a double" },
        { "[9223372036854775808]", "file: line 1, byte 1: not JSON: a whole number of more than 64 bits" },
        { "{} {}", "file: line 1, byte 3: not JSON: text after the end" },
        { "{\"a\":1, \"b\":2, \"a\":3}", "file: line 1, byte 16: not JSON: duplicate key \"a\"" },
    };
    qkv__json_doc doc;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(read_text(rows[i].text, strlen(rows[i].text), 0), QKV_FORMAT);
        assert_string_equal(qkv_error(), rows[i].sentence);
    }
    const qkv__json_source line = { .name = "log", .text = "{\n]", .length = 3, .first_line = 4, .first_byte = 100 };
    assert_int_equal(qkv__json_parse(&line, &doc), QKV_FORMAT);
    assert_string_equal(qkv_error(), "log: line 6, byte 102: not JSON: a key is expected");
}

/* ---- values ---- */

static const qkv__json_value *parse(const char *text, qkv__json_doc *doc)
{
    const qkv__json_source source = { .name = "file", .text = text, .length = strlen(text), .flags = QKV__JSON_NUL };
    assert_int_equal(qkv__json_parse(&source, doc), QKV_OK);
    return doc->top;
}

static void values_are_found(void **state)
{
    (void)state;
    qkv__json_doc doc;
    const qkv__json_value *v = parse(
        "{\"null\": null, \"yes\": true, \"no\": false, \"n\": -7, \"x\": 2.5, \"s\": \"a\\u0000\\ud83d\\ude00\","
        " \"list\": [1, [2, {\"k\": 3}], {}, []], \"\": \"empty\"}",
        &doc);
    assert_true(doc.has_nul);
    assert_int_equal(qkv__json_size(v), 8);
    assert_true(qkv__json_is_null(qkv__json_get(v, "null")));
    assert_true(qkv__json_is_true(qkv__json_get(v, "yes")));
    assert_true(qkv__json_is_bool(qkv__json_get(v, "no")) && !qkv__json_is_true(qkv__json_get(v, "no")));
    assert_int_equal(qkv__json_int(qkv__json_get(v, "n")), -7);
    assert_float_equal(qkv__json_number(qkv__json_get(v, "n")), -7, 0);
    assert_float_equal(qkv__json_number(qkv__json_get(v, "x")), 2.5, 0);
    assert_int_equal(qkv__json_int(qkv__json_get(v, "x")), 0);
    assert_int_equal(qkv__json_length(qkv__json_get(v, "s")), 6);
    assert_memory_equal(qkv__json_get_text(v, "s"), "a\0\xF0\x9F\x98\x80", 7);
    const qkv__json_value *list = qkv__json_get(v, "list");
    assert_int_equal(qkv__json_size(list), 4);
    assert_int_equal(qkv__json_int(qkv__json_get(qkv__json_at(qkv__json_at(list, 1), 1), "k")), 3);
    assert_int_equal(qkv__json_size(qkv__json_at(list, 2)), 0);
    assert_null(qkv__json_at(qkv__json_at(list, 3), 0));
    assert_null(qkv__json_at(list, 4));
    assert_string_equal(qkv__json_key(v, 7), "");
    assert_string_equal(qkv__json_text(qkv__json_at(v, 7)), "empty");
    assert_null(qkv__json_key(v, 8));
    assert_null(qkv__json_key(list, 0));
    assert_null(qkv__json_get(v, "none"));
    assert_null(qkv__json_get(list, "k"));
    assert_null(qkv__json_get(NULL, "k"));
    assert_null(qkv__json_text(list));
    assert_int_equal(qkv__json_size(qkv__json_get(v, "s")), 0);
    qkv__json_free(&doc);
}

/* Objects of many members have an order to look in; the order of the file stays. */
static void large_objects_are_searched(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    char *text = malloc(64 * MOST), key[32];
    for (int n = 1; n < MOST; n += n < 40 ? 1 : 977) {
        size_t length = 1;
        text[0] = '{';
        for (int i = 0; i < n; i++)
            length += (size_t)sprintf(text + length, "%s\"k%d\": [%d]", i ? ", " : "", i * 7919 % 3001, i);
        strcpy(text + length, "}");
        qkv__json_doc doc;
        const qkv__json_value *v = parse(text, &doc);
        assert_int_equal(qkv__json_size(v), n);
        for (int i = 0; i < n; i++) {
            snprintf(key, sizeof key, "k%d", i * 7919 % 3001);
            assert_int_equal(qkv__json_int(qkv__json_at(qkv__json_get(v, key), 0)), i);
            assert_string_equal(qkv__json_key(v, (size_t)i), key);
            assert_int_equal(qkv__json_find(v, key, strlen(key)), i);
        }
        assert_null(qkv__json_get(v, "k"));
        assert_null(qkv__json_get(v, "k99999"));
        qkv__json_free(&doc);
        sprintf(text + length, ", \"k%d\": 0}", (n / 2) * 7919 % 3001);
        assert_int_equal(read_text(text, strlen(text), 0), QKV_FORMAT);
        snprintf(key, sizeof key, "duplicate key \"k%d\"", (n / 2) * 7919 % 3001);
        assert_non_null(strstr(qkv_error(), key));
        const qkv__json_source source = { .name = "file", .text = text, .length = strlen(text), .flags = QKV__JSON_REPEATED };
        assert_int_equal(qkv__json_parse(&source, &doc), QKV_OK);
        snprintf(key, sizeof key, "k%d", (n / 2) * 7919 % 3001);
        assert_true(qkv__json_is_int(qkv__json_get(doc.top, key)));
        qkv__json_free(&doc);
    }
    free(text);
}

static void alike_values_are_equal(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "{\"a\": 1, \"b\": [2.5, \"x\", null]}", "{\"b\":[2.5,\"\\u0078\",null],\"a\":1}" },
        { "[1]", "[1.0]" },
        { "{\"a\": 1}", "{\"b\": 1}" },
        { "{\"a\": 1}", "{\"a\": 1, \"b\": 1}" },
        { "[true]", "[false]" },
        { "\"a\"", "\"ab\"" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv__json_doc a, b;
        assert_int_equal(qkv__json_equal(parse(rows[i][0], &a), parse(rows[i][1], &b)), i == 0);
        assert_true(qkv__json_equal(a.top, a.top));
        qkv__json_free(&a);
        qkv__json_free(&b);
    }
}

/* As strtod() reads them in the C locale, also in locales with a decimal comma (if installed). */
static void numbers_are_exact(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "0.0",
        "-0.0",
        "1.0",
        "0.1",
        "1e22",
        "1e23",
        "123456789012345678",
        "9007199254740993.0",
        "9007199254740992.5",
        "0.1e-6",
        "3.14159265358979323846264338327950288",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "1e-400",
        "1e-1000000000000000000000",
        "0e1000000000000000000000",
        "10000000000000000000000.0",
        "0.00000000000000000000000000000000000000001",
        "-9.210340371976182",
        "1.00000000000000011102230246251565404236316680908203125", /* between two doubles: the even one */
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "1.00000000000000033306690738754696212708950042724609375",
        "123456789012345678901234567890e-10",
        "100000000000000000000e-20",
        "9999999999999999999.0",
        "99999999999999999999.0",
        "18446744073709551615e0",
    };
    static const char *const locales[] = { "C", "de_DE.UTF-8", "fr_FR.UTF-8" };
    char text[2000];
    for (size_t k = 0; k < sizeof locales / sizeof *locales; k++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            qkv__json_doc doc;
            setlocale(LC_ALL, "C");
            double wanted = strtod(rows[i], NULL);
            setlocale(LC_ALL, locales[k]);
            double x = qkv__json_number(parse(rows[i], &doc));
            if (memcmp(&x, &wanted, sizeof x)) fail_msg("%s: %.17g, not %.17g", rows[i], x, wanted);
            qkv__json_free(&doc);
        }
    setlocale(LC_ALL, "C");
    /* 1 + 2^-53 is half way; one more digit, after 900 zeros, decides. */
    strcpy(text, "1.00000000000000011102230246251565404236316680908203125");
    size_t n = strlen(text);
    memset(text + n, '0', 900);
    for (int last = 0; last < 2; last++) {
        qkv__json_doc doc;
        strcpy(text + n + 900, last ? "1" : "0");
        assert_true(qkv__json_number(parse(text, &doc)) == (last ? 1 + 0x1p-52 : 1));
        qkv__json_free(&doc);
    }
    for (uint64_t seed = 1, i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double x, y;
        uint64_t bits = seed ^ seed >> 29;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) continue;
        qkv__json_doc doc;
        snprintf(text, sizeof text, i % 3 ? "%.17e" : i % 2 ? "%.10e" : "%.25e", x);
        y = qkv__json_number(parse(text, &doc));
        assert_true(y == strtod(text, NULL));
        qkv__json_free(&doc);
    }
}

/* ---- tables ---- */

static void tables_are_left_as_text(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": {\"vocab\": {\"x\\ny\": 1, \"\xC3\xA9\": {\"in\": [2, 3]}, \"z\": -0.5e1}, \"after\": \"q\\t\"},\n"
        " \"merges\": [\"a b\", [\"c\", \"d\"]], \"none\": {}, \"vocab\": 7, \"e\": {\"vocab\": []}}";
    static const char *const tables[] = { "vocab", "merges", NULL };
    const qkv__json_source source = { .name = "file", .text = text, .length = sizeof text - 1, .tables = tables };
    qkv__json_doc doc;
    qkv__json_pull p;
    assert_int_equal(qkv__json_parse(&source, &doc), QKV_OK);
    const qkv__json_value *a = qkv__json_get(doc.top, "a"), *vocab = qkv__json_get(a, "vocab");
    assert_true(qkv__json_is_object(vocab) && vocab->is_table);
    assert_int_equal(qkv__json_size(vocab), 3);
    assert_null(qkv__json_at(vocab, 0));
    assert_null(qkv__json_key(vocab, 0));
    assert_null(qkv__json_get(vocab, "z"));
    assert_string_equal(qkv__json_get_text(a, "after"), "q\t");
    assert_int_equal(qkv__json_int(qkv__json_get(doc.top, "vocab")), 7);
    for (int times = 0; times < 2; times++) { /* the text stays */
        qkv__json_pull_table(&p, &source, vocab);
        assert_int_equal(qkv__json_next(&p), QKV__JSON_INT);
        assert_int_equal(p.key_length, 3);
        assert_memory_equal(p.key, "x\ny", 3);
        assert_int_equal(p.whole, 1);
        assert_int_equal(qkv__json_next(&p), QKV__JSON_OBJECT);
        assert_memory_equal(p.key, "\xC3\xA9", 2);
        if (times) {
            qkv__json_enter(&p);
            assert_int_equal(qkv__json_next(&p), QKV__JSON_ARRAY);
            assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
        }
        assert_int_equal(qkv__json_next(&p), QKV__JSON_REAL);
        assert_true(qkv__json_real(&p) == -5 && p.digits == 5 && p.exponent == 0 && p.is_negative);
        assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
        assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
        assert_int_equal(qkv__json_pull_end(&p), QKV_OK);
    }
    const qkv__json_value *merges = qkv__json_get(doc.top, "merges");
    assert_int_equal(qkv__json_size(merges), 2);
    qkv__json_pull_table(&p, &source, merges);
    assert_int_equal(qkv__json_next(&p), QKV__JSON_STRING);
    assert_int_equal(qkv__json_next(&p), QKV__JSON_ARRAY);
    qkv__json_pull_end(&p);
    qkv__json_pull_table(&p, &source, qkv__json_get(qkv__json_get(doc.top, "e"), "vocab"));
    assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
    qkv__json_pull_end(&p);
    qkv__json_pull_table(&p, &source, a); /* no table */
    assert_int_equal(qkv__json_next(&p), QKV__JSON_NONE);
    assert_int_equal(qkv__json_pull_end(&p), QKV_OK);
    qkv__json_writer w = { 0 };
    qkv__json_put_value(&w, NULL, doc.top);
    const qkv__json_source copy = { .name = "copy", .text = w.text, .length = w.length, .tables = tables };
    qkv__json_doc again;
    assert_int_equal(qkv__json_parse(&copy, &again), QKV_OK);
    assert_true(qkv__json_equal(doc.top, again.top));
    assert_false(qkv__json_equal(vocab, qkv__json_get(qkv__json_get(doc.top, "e"), "vocab")));
    qkv__json_free(&again);
    qkv__json_writer_free(&w);
    qkv__json_free(&doc);
    static const char damaged[] = "{\"vocab\": {\"a\": 1, \"b\" 2}}";
    const qkv__json_source bad = { .name = "file", .text = damaged, .length = sizeof damaged - 1, .tables = tables };
    assert_int_equal(qkv__json_parse(&bad, &doc), QKV_FORMAT);
    assert_string_equal(qkv_error(), "file: line 1, byte 23: not JSON: a colon is expected");
}

/* ---- writing ---- */

static void put_sample(qkv__json_writer *w)
{
    qkv__json_open_object(w, NULL);
    qkv__json_put_int(w, "n", INT64_MIN);
    qkv__json_open_array(w, "list");
    qkv__json_put_bool(w, NULL, true);
    qkv__json_open_object(w, NULL);
    qkv__json_put_null(w, "x");
    qkv__json_close(w);
    qkv__json_open_array(w, NULL);
    qkv__json_close(w);
    qkv__json_close(w);
    qkv__json_open_object(w, "none");
    qkv__json_close(w);
    qkv__json_put_text(w, "s", "a\"b");
    qkv__json_close(w);
}

static void styles_are_kept(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        [QKV__JSON_COMPACT] = "{\"n\":-9223372036854775808,\"list\":[true,{\"x\":null},[]],\"none\":{},\"s\":\"a\\\"b\"}",
        [QKV__JSON_SPACED] =
            "{\"n\": -9223372036854775808, \"list\": [true, {\"x\": null}, []], \"none\": {}, \"s\": \"a\\\"b\"}",
        [QKV__JSON_PADDED] =
            "{ \"n\": -9223372036854775808, \"list\": [true, { \"x\": null }, []], \"none\": {}, \"s\": \"a\\\"b\" }",
        [QKV__JSON_LINES] =
            "{\n  \"n\": -9223372036854775808,\n  \"list\": [\n    true,\n    {\n      \"x\": null\n    },\n    []\n  ],\n"
            "  \"none\": {},\n  \"s\": \"a\\\"b\"\n}"
    };
    for (int style = QKV__JSON_COMPACT; style <= QKV__JSON_LINES; style++) {
        qkv__json_writer w = { .style = (qkv__json_style)style };
        put_sample(&w);
        assert_int_equal(w.status, QKV_OK);
        assert_string_equal(w.text, wanted[style]);
        assert_int_equal(w.length, strlen(w.text));
        qkv__json_writer_free(&w);
    }
}

static void strings_are_escaped(void **state)
{
    (void)state;
    static const char text[] =
        "a\0\x01\x1F\b\f\n\r\t/\\\"\x7F<\xC3\xA9\xF0\x9F\x98\x80|\xFF|\xC3|\xE2\x82|\xED\xA0\x80|\xF0\x9F\x98";
#define BAD "\xEF\xBF\xBD"
#define REPLACED "|" BAD "|" BAD "|" BAD "|" BAD BAD BAD "|" BAD "\""
    for (int is_long = 0; is_long < 2; is_long++) {
        qkv__json_writer w = { .long_escapes = is_long };
        qkv__json_put_string(&w, NULL, text, sizeof text - 1);
        assert_string_equal(
            w.text,
            is_long
                ? "\"a\\u0000\\u0001\\u001f\\u0008\\u000c\\u000a\\u000d\\u0009/\\\\\\\"\x7F<\xC3\xA9\xF0\x9F\x98\x80" REPLACED
                : "\"a\\u0000\\u0001\\u001F\\b\\f\\n\\r\\t/\\\\\\\"\x7F<\xC3\xA9\xF0\x9F\x98\x80" REPLACED);
        qkv__json_writer_free(&w);
    }
}

static void numbers_are_written(void **state)
{
    (void)state;
    static const struct {
        double x;
        int digits;
        const char *text;
    } rows[] = { { 0, 9, "0.0" },
                 { -0.0, 9, "-0.0" },
                 { 1, 9, "1.0" },
                 { 0.1f, 9, "0.100000001" },
                 { 0.1, 17, "0.10000000000000001" },
                 { 1e-5f, 9, "9.99999975e-6" },
                 { 1e-12f, 9, "9.99999996e-13" },
                 { 1e20, 9, "1e20" },
                 { -1e100, 17, "-1.0000000000000000e100" },
                 { 123456789, 9, "123456789.0" },
                 { 1234567890, 9, "1.23456789e9" },
                 { 10000, 9, "10000.0" },
                 { NAN, 9, "null" },
                 { -INFINITY, 9, "null" } };
    static const char *const locales[] = { "C", "de_DE.UTF-8", "fr_FR.UTF-8" };
    for (size_t k = 0; k < 3; k++) {
        setlocale(LC_ALL, locales[k]);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            qkv__json_writer w = { 0 };
            qkv__json_put_real(&w, NULL, rows[i].x, rows[i].digits);
            if (i != 8) assert_string_equal(w.text, rows[i].text);
            qkv__json_writer_free(&w);
        }
    }
    setlocale(LC_ALL, "C");
}

static void a_key_is_replaced(void **state)
{
    (void)state;
    qkv__json_writer w = { .style = QKV__JSON_LINES, .replaces = true };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_int(&w, "first", 1);
    qkv__json_put_text(&w, "text", "\n  \"first\": 9");
    qkv__json_open_object(&w, "inner");
    qkv__json_put_int(&w, "first", 2);
    qkv__json_close(&w);
    qkv__json_put_int(&w, "last", 3);
    assert_true(qkv__json_has(&w, "last") && !qkv__json_has(&w, "none") && !qkv__json_has(&w, "las"));
    qkv__json_put_int(&w, "first", 1234567);
    qkv__json_put_null(&w, "inner");
    qkv__json_open_array(&w, "text");
    qkv__json_put_int(&w, NULL, 5);
    qkv__json_put_int(&w, NULL, 6);
    qkv__json_close(&w);
    qkv__json_put_text(&w, "last", "");
    qkv__json_put_bool(&w, "new", false);
    qkv__json_put_bool(&w, "new", true);
    qkv__json_put_copy(&w, "first copy", "first");
    qkv__json_put_copy(&w, "inner", "text");
    qkv__json_put_copy(&w, "no copy", "none");
    qkv__json_close(&w);
    assert_string_equal(w.text, "{\n  \"first\": 1234567,\n  \"text\": [\n    5,\n    6\n  ],\n"
                                "  \"inner\": [\n    5,\n    6\n  ],\n  \"last\": \"\",\n  \"new\": true,\n"
                                "  \"first copy\": 1234567,\n  \"no copy\": null\n}");
    qkv__json_writer_free(&w);
}

/* ---- failing memory, files ---- */

static qkv_status read_and_write(void)
{
    static const char text[] =
        "{\"table\": {\"a\\tb\": [1, \"c\\u00e9\"]}, \"many\": [[[[1, 2.5e300]]], {\"a\": {}, \"b\\n\": \"\\u20ac\"}],"
        " \"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"10\":0,\"11\":0,\"12\":0,"
        " \"13\":0,\"14\":0,\"15\":0,\"16\":0,\"17\":0}";
    static const char *const tables[] = { "table", NULL };
    const qkv__json_source source = { .name = "file", .text = text, .length = sizeof text - 1 },
                           partly = { .name = "file", .text = text, .length = sizeof text - 1, .tables = tables };
    qkv__json_doc doc, cut = { 0 };
    qkv__json_pull p = { 0 };
    qkv__json_writer w = { .style = QKV__JSON_LINES, .replaces = true };
    qkv_status status = qkv__json_parse(&source, &doc);
    if (!status) {
        qkv__json_put_value(&w, NULL, doc.top);
        qkv__json_writer more = { .style = QKV__JSON_LINES, .replaces = true };
        qkv__json_open_object(&more, NULL);
        qkv__json_put_int(&more, "a", 1);
        qkv__json_put_int(&more, "a", 2);
        qkv__json_close(&more);
        status = w.status ? w.status : more.status;
        qkv__json_writer_free(&more);
    }
    if (!status) status = qkv__json_parse(&partly, &cut);
    if (!status) {
        qkv__json_pull_table(&p, &partly, qkv__json_get(cut.top, "table"));
        qkv__json_next(&p);
        qkv__json_enter(&p);
        while (qkv__json_next(&p)) {}
        status = qkv__json_pull_end(&p);
    }
    if (!status) status = qkv__json_save(&w, in_folder("saved.json"));
    qkv__json_writer_free(&w);
    qkv__json_free(&doc);
    qkv__json_free(&cut);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(read_and_write) > 10);
}

static void files_are_loaded_and_saved(void **state)
{
    (void)state;
    const char *path = in_folder("file.json");
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    put_sample(&w);
    assert_int_equal(qkv__json_save(&w, path), QKV_OK);
    assert_null(w.text);
    qkv__json_doc doc;
    assert_int_equal(qkv__json_load(path, 1000, &doc), QKV_OK);
    assert_string_equal(qkv__json_get_text(doc.top, "s"), "a\"b");
    assert_int_equal(doc.text[doc.text_bytes - 2], '\n');
    qkv__json_free(&doc);
    assert_int_equal(qkv__json_load(path, 10, &doc), QKV_LIMIT);
    assert_null(doc.top);
    assert_int_equal(qkv__json_load(in_folder("none.json"), 10, &doc), QKV_IO);
    w = (qkv__json_writer){ 0 };
    qkv__json_open_array(&w, NULL);
    assert_int_equal(qkv__json_save(&w, path), QKV_OK);
    assert_int_equal(qkv__json_load(path, 1000, &doc), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "file.json: line 2, byte 2: not JSON: it ends too early"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_accepted_or_refused),
        cmocka_unit_test(cut_texts_are_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(values_are_found),
        cmocka_unit_test(large_objects_are_searched),
        cmocka_unit_test(alike_values_are_equal),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(tables_are_left_as_text),
        cmocka_unit_test(styles_are_kept),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(numbers_are_written),
        cmocka_unit_test(a_key_is_replaced),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(files_are_loaded_and_saved),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
