/* test_jinja.c: chat templates: what they write, as @huggingface/jinja does (golden/templates.json), and what is refused. */
#include "jinja/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "json_values.h"
#include "failing.h"

static qkv_status render_with(const char *template, const char *variables, const qkv__chat_render_opts *opts, qkv_buffer *out)
{
    qkv__chat_template *t = qkv__chat_template_new(template, strlen(template));
    qkv_status status = t ? qkv__chat_template_render_json(t, variables, strlen(variables), opts, out) : qkv_error_status();
    qkv__chat_template_free(t);
    return status;
}

static qkv_status render(const char *template, const char *variables, qkv_buffer *out)
{
    return render_with(template, variables, NULL, out);
}

/* ---- what templates write ---- */

static void equal_to_the_golden_ones(void **state)
{
    (void)state;
    qkv_buffer out = { 0 };
    const qkv__json_value *all = json_read(QKV_GOLDEN "/templates.json");
    if (!all) fail_msg("%s", qkv_error());
    const qkv__json_value *cases = qkv__json_get(all, "cases"), *conversations = qkv__json_get(all, "conversations");
    assert_true(qkv__json_size(cases) > 30);
    for (size_t i = 0; i < qkv__json_size(cases); i++) {
        const qkv__json_value *c = qkv__json_at(cases, i), *text = qkv__json_get(c, "text");
        const char *name = qkv__json_text(qkv__json_get(c, "name"));
        size_t which = (size_t)qkv__json_int(qkv__json_get(c, "conversation"));
        const char *template = qkv__json_text(qkv__json_get(qkv__json_get(all, "templates"), name));
        char *variables = json_text(qkv__json_at(conversations, which), QKV__JSON_SPACED);
        qkv_status status = render(template, variables, &out);
        if (qkv__json_is_null(text) != (status != QKV_OK)) fail_msg("%s %zu: %s", name, which, status ? qkv_error() : out.data);
        if (!status) assert_string_equal(out.data, qkv__json_text(text));
        free(variables);
    }
    json_free(all);
    qkv_buffer_free(&out);
}

/* Where other programs of this language do less, or otherwise, than Jinja itself. */
static void like_jinja_itself(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "{{ '\\n\\n  x'.lstrip('\\n') }}", "  x" },
        { "{{ 'xxaxx'.strip('x') }}{{ 'ab ' .rstrip() }}|", "aab|" },
        { "{{ not [] }}{{ not {} }}{{ [1] == [1] }}{{ {'a': [1]} == {'a': [1]} }}", "truetruetruetrue" },
        { "{% for c in 'aé' %}{{ c }},{% endfor %}", "a,é," },
        { "{% for x in [1, 2] %}{{ y | default('-') }}{% set y = x %}{% endfor %}", "--" },
        { "{% for x in nothing %}x{% else %}none{% endfor %}{{ nothing | length }}", "none0" },
        { "{{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** -1 }} {{ 'ab' * 2 }}", "-4 2 0.5 abab" },
        { "{{ [] | tojson(indent=2) }}{{ {} | tojson(indent=2) }}{{ 1.0 | tojson }}", "[]{}1.0" },
        { "{{ [1, 2, 3] | map('string') | join('+') }} {{ [1, 2, 3] | select('odd') | list }} {{ [1, 2] | reject('eq', 1) | "
          "list }}",
          "1+2+3 [1, 3] [2]" },
        { "{{ 3 is divisibleby 3 }}{{ 2 is in [1, 2] }}{{ 'a' is eq('a') }}{{ 4 is gt 5 }}", "truetruetruefalse" },
        { "{{ '{} of {}{{}}'.format(1, 'b') }}", "1 of b{}" },
        { "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}{{ dict(x=1) | tojson }}", "3{\"x\": 1}" },
        { "{% macro m() %}{{ outer }}{% endmacro %}{% set outer = 1 %}{% for outer in [2] %}{{ m() }}{% endfor %}", "1" },
        { "{{ [3, 1] | min }}{{ ['b', 'A'] | max }}{{ 'x'.join(['1', '2']) }}{{ 'a\\nb\\n'.splitlines() }}",
          "1b1x2[\"a\", \"b\"]" },
        { "{%+ if true %}a{% endif +%}\nb", "a\nb" },
        { "{{ 'Straße 日本'.upper() }} {{ 'ÀB' | lower }}", "STRASSE 日本 àb" },
        { "{{ tool.items() | length }}{{ tool['items'] }}{{ tool.items }}", "177" },
        { "", "" },
    };
    qkv_buffer out = { 0 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (render(rows[i][0], "{\"tool\": {\"items\": 7}}", &out)) fail_msg("%s: %s", rows[i][0], qkv_error());
        assert_string_equal(out.data, rows[i][1]);
    }
    qkv_buffer_free(&out);
}

static void dates(void **state)
{
    (void)state;
    qkv_buffer out = { 0 };
    const qkv__chat_render_opts opts = { .size = sizeof opts, .now = 1720000000 }; /* 3 July 2024, 09:46:40 UTC */
    setenv("TZ", "UTC", 1);
    tzset();
    assert_int_equal(render_with("{{ strftime_now('%d %b %Y|%B %-d %A %H:%M:%S %I%p %j %y %%') }}", "{}", &opts, &out), QKV_OK);
    assert_string_equal(out.data, "03 Jul 2024|July %-d Wednesday 09:46:40 09AM 185 24 %");
    qkv_buffer_free(&out);
}

/* ---- what is refused ---- */

typedef struct refusal {
    const char *template;
    qkv_status status;
    const char *sentence; /* a part of it */
} refusal;

static void check_refusals(const refusal *rows, size_t n)
{
    qkv_buffer out = { 0 };
    for (size_t i = 0; i < n; i++) {
        qkv_status status = render(rows[i].template, "{\"s\": \"text\", \"l\": [1]}", &out);
        if (status != rows[i].status) fail_msg("%s: %d %s", rows[i].template, (int)status, status ? qkv_error() : out.data);
        if (!strstr(qkv_error(), rows[i].sentence)) fail_msg("%s: %s", rows[i].template, qkv_error());
        assert_int_equal(out.length, 0);
    }
    qkv_buffer_free(&out);
}

static void mistakes_have_a_place(void **state)
{
    (void)state;
    static const refusal rows[] = {
        { "a\n {{ 1 + }}", QKV_FORMAT, "line 2, column 9: an expression is expected, not \"}}\"" },
        { "{% if x %}", QKV_FORMAT, "endif is expected, and the template ends" },
        { "{% for x of l %}{% endfor %}", QKV_FORMAT, "line 1, column 10: in is expected, not \"of\"" },
        { "{{ 'abc }}", QKV_FORMAT, "line 1, column 4: the string has no end" },
        { "{# never", QKV_FORMAT, "the comment has no end" },
        { "{{ x", QKV_FORMAT, "a tag has no end" },
        { "{{ x ? y }}", QKV_FORMAT, "line 1, column 6: a character" },
        { "{{ s[1 }}", QKV_FORMAT, "] is expected" },
        { "{% endif %}", QKV_UNSUPPORTED, "\"endif\" is not known here" },
        { "{{ s | nonsense }}", QKV_UNSUPPORTED, "line 1, column 8: the filter \"nonsense\" is not known here" },
        { "{{ s is nonsense }}", QKV_UNSUPPORTED, "the test \"nonsense\" is not known here" },
        { "{{ s + none }}", QKV_FORMAT, "\"+\" does not go between a string and none" },
        { "{{ s() }}", QKV_FORMAT, "a string cannot be called" },
        { "{{ 1 / 0 }}", QKV_FORMAT, "division by zero" },
        { "{{ l < s }}", QKV_FORMAT, "a list cannot be compared with a string" },
        { "{% set s.x = 1 %}", QKV_FORMAT, "a string has no attributes that can be set" },
        { "{% set a, b = [1] %}", QKV_FORMAT, "fewer values than names" },
        { "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", QKV_FORMAT, "1 parameters" },
        { "{{ raise_exception('only users') }}", QKV_USAGE, "refuses the conversation: only users" },
        { "{% include 'x' %}", QKV_UNSUPPORTED, "\"include\" asks for a file" },
        { "{% import '/etc/passwd' as x %}", QKV_UNSUPPORTED, "\"import\" asks for a file" },
        { "{% from 'x' import y %}", QKV_UNSUPPORTED, "asks for a file" },
        { "{% extends 'x' %}", QKV_UNSUPPORTED, "asks for a file" },
        { "{{ 9223372036854775 * 9223372036854775 }}", QKV_LIMIT, "64 bits" },
        { "\xff", QKV_FORMAT, "byte 1 is not UTF-8" },
    };
    check_refusals(rows, sizeof rows / sizeof *rows);
}

/* Each ends in a moment, whatever it would have done. */
static void hostile_ones_end(void **state)
{
    (void)state;
    static const refusal rows[] = {
        { "{% for a in range(1000000) %}{% for b in range(1000000) %}{% endfor %}{% endfor %}", QKV_LIMIT, "" },
        { "{% for a in range(1000000000000) %}{% endfor %}", QKV_LIMIT, "a range has more than" },
        { "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", QKV_LIMIT, "levels deep" },
        { "{{ 'x' * 1000000000 }}", QKV_LIMIT, "more than 16777216 bytes" },
        { "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", QKV_LIMIT,
          "bytes" },
        { "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}", QKV_LIMIT,
          "memory" },
        { "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
          QKV_LIMIT, "bytes" },
        { "{% set ns = namespace(l=[1], k=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
          "{% set ns.k = [ns.k, ns.k] %}{% endfor %}{{ ns.l == ns.k }}",
          QKV_LIMIT, "too many steps" },
        { "{% set ns = namespace(l=[1]) %}{% for i in range(500) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}", QKV_LIMIT,
          "levels deep" },
        { "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}", QKV_LIMIT, "levels deep" },
        { "{% for i in range(1000000) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}", QKV_LIMIT,
          "it prints more than" },
        { "{% set s = 'x' * 10000000 %}{% for i in range(100000) %}{% if s is upper %}{% endif %}{% endfor %}", QKV_LIMIT, "" },
        { "{% set s = 'x' * 10000000 %}{% for i in range(1000000) %}{{ 'y' in s }}{% endfor %}", QKV_LIMIT, "too many steps" },
        { "{{ range(1000000) | map('string') | join('xxxxxxxxxxxxxxxxxxxxxxxxxxxxx') }}", QKV_LIMIT, "bytes" },
        { "{{ ('a' * 4000000).replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaa') }}", QKV_LIMIT, "bytes" },
        { "{{ range(100000) | unique | list | length }}", QKV_LIMIT, "too many steps" },
    };
    check_refusals(rows, sizeof rows / sizeof *rows);
}

static void nested_too_deep(void **state)
{
    (void)state;
    static const char *const parts[] = { "(", "[", "not ", "-", "a if b else " };
    char template[8192];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        strcpy(template, "{{ ");
        for (int k = 0; k < 300; k++) strcat(template, parts[i]);
        strcat(template, "x }}");
        assert_null(qkv__chat_template_new(template, strlen(template)));
        assert_int_equal(qkv_error_status(), QKV_LIMIT);
    }
    strcpy(template, "");
    for (int k = 0; k < 300; k++) strcat(template, "{% if a %}");
    assert_null(qkv__chat_template_new(template, strlen(template)));
    assert_int_equal(qkv_error_status(), QKV_LIMIT);
    strcpy(template, "{{ 1");
    for (int k = 0; k < 1000; k++) strcat(template, "+1"); /* no brackets, and a deep tree all the same */
    strcat(template, "}}");
    qkv_buffer out = { 0 };
    assert_int_equal(render(template, "{}", &out), QKV_LIMIT);
    qkv_buffer_free(&out);
}

/* Chains have no brackets either: of filters, of a block's filters, of attributes, of calls. */
static void chains_too_long(void **state)
{
    (void)state;
    static const char *const parts[][3] = {
        { "{{ x", "|upper", "}}" }, { "{% filter upper", "|upper", "%}a{% endfilter %}" }, { "{{ x", ".a", "}}" },
        { "{{ x", "()", "}}" },     { "{% set x | upper", "|upper", "%}a{% endset %}" },   { "{{ x", " is none", "}}" }
    };
    enum { LINKS = 50000 };
    char *template = malloc(64 + LINKS * 8);
    qkv_buffer out = { 0 };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *at = stpcpy(template, parts[i][0]);
        for (int k = 0; k < LINKS; k++) at = stpcpy(at, parts[i][1]);
        strcpy(at, parts[i][2]);
        assert_int_equal(render(template, "{\"x\": \"a\"}", &out), QKV_LIMIT);
    }
    qkv_buffer_free(&out);
    free(template);
}

static void bad_variables(void **state)
{
    (void)state;
    qkv_buffer out = { 0 };
    char deep[1024] = "{\"x\":";
    assert_int_equal(render("", "[]", &out), QKV_FORMAT);
    assert_int_equal(render("", "{\"a\": 1, \"a\": 2}", &out), QKV_FORMAT);
    assert_int_equal(render("", "{", &out), QKV_FORMAT);
    for (int i = 0; i < 300; i++) strcat(deep, "[");
    for (int i = 0; i < 300; i++) strcat(deep, "]");
    strcat(deep, "}");
    assert_int_equal(render("", deep, &out), QKV_LIMIT);
    const qkv__chat_render_opts few = { .size = sizeof few, .most_steps = 5 };
    assert_int_equal(render_with("{{ 1 }}{{ 2 }}{{ 3 }}", "{}", &few, &out), QKV_LIMIT);
    qkv_buffer_free(&out);
}

static qkv_status render_small(void)
{
    qkv_buffer out = { 0 };
    qkv_status status = render("{% set a %}x{% endset %}{% for m in l %}{{ m | tojson }}{{ a ~ m.upper() }}{% endfor %}",
                               "{\"l\": [\"a\", \"b\"]}", &out);
    if (!status) assert_string_equal(out.data, "\"a\"xA\"b\"xB");
    qkv_buffer_free(&out);
    return status;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(render_small) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_the_golden_ones), cmocka_unit_test(like_jinja_itself), cmocka_unit_test(dates),
        cmocka_unit_test(mistakes_have_a_place),    cmocka_unit_test(hostile_ones_end),  cmocka_unit_test(nested_too_deep),
        cmocka_unit_test(chains_too_long),          cmocka_unit_test(bad_variables),     cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
