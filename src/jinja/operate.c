/* operate.c: operators, comparisons, tests. */
#include "strings.h"

#include "../base/status.h"

#include <math.h>
#include <string.h>

static bool is_number(jinja_value v) { return v.kind == JINJA_INTEGER || v.kind == JINJA_FLOAT || v.kind == JINJA_BOOLEAN; }

static double as_double(jinja_value v)
{
    return v.kind == JINJA_FLOAT ? v.number : v.kind == JINJA_BOOLEAN ? v.truth : (double)v.whole;
}

static int64_t as_whole(jinja_value v) { return v.kind == JINJA_BOOLEAN ? v.truth : v.whole; }

static qkv_status refuse_operands(jinja_run *r, jinja_string sign, jinja_value a, jinja_value b)
{
    return JINJA_REFUSE(r, "\"%.*s\" does not go between %s and %s", (int)sign.length, sign.data, qkv__jinja_kind_name(a),
                        qkv__jinja_kind_name(b));
}

/* ---- arithmetic ---- */

/* b^e for e >= 0; false when it does not fit. */
static bool power(int64_t b, int64_t e, int64_t *out)
{
    *out = 1;
    for (; e > 0; e--) {
        if (__builtin_mul_overflow(*out, b, out)) return false;
        if (*out == 0 || (*out == 1 && b == 1)) break;
        if (b == -1) return *out = e % 2 ? -1 : 1, true;
    }
    return true;
}

/* Rounded down, as Python has it. */
static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static qkv_status operate_wholes(jinja_run *r, jinja_string sign, int64_t a, int64_t b, jinja_value *out)
{
    int64_t x = 0;
    bool fits = true;
    switch (*sign.data) {
    case '+': fits = !__builtin_add_overflow(a, b, &x); break;
    case '-': fits = !__builtin_sub_overflow(a, b, &x); break;
    case '%':
    case '/':
        if (!b) return JINJA_REFUSE(r, "division by zero");
        if (b == -1) fits = a != INT64_MIN, x = fits && *sign.data == '/' ? -a : 0;
        else x = *sign.data == '/' ? divide_down(a, b) : a - divide_down(a, b) * b;
        break;
    default: fits = sign.length == 2 ? power(a, b, &x) : !__builtin_mul_overflow(a, b, &x); break;
    }
    *out = jinja_integer(x);
    return fits ? QKV_OK : qkv__jinja_fail(QKV_LIMIT, r->place, "the whole number does not fit into 64 bits");
}

static qkv_status operate_doubles(jinja_run *r, jinja_string sign, double a, double b, jinja_value *out)
{
    const bool is_division = *sign.data == '/' || *sign.data == '%';
    if (is_division && b == 0) return JINJA_REFUSE(r, "division by zero");
    double x = *sign.data == '+'                       ? a + b
               : *sign.data == '-'                     ? a - b
               : *sign.data == '%'                     ? a - floor(a / b) * b
               : *sign.data == '/' && sign.length == 2 ? floor(a / b)
               : *sign.data == '/'                     ? a / b
               : sign.length == 2                      ? pow(a, b)
                                                       : a * b;
    *out = jinja_float(x);
    return QKV_OK;
}

static qkv_status operate_numbers(jinja_run *r, jinja_string sign, jinja_value a, jinja_value b, jinja_value *out)
{
    const bool is_float = a.kind == JINJA_FLOAT || b.kind == JINJA_FLOAT || qkv__jinja_is_word(sign, "/") ||
                          (qkv__jinja_is_word(sign, "**") && as_whole(b) < 0);
    return is_float ? operate_doubles(r, sign, as_double(a), as_double(b), out)
                    : operate_wholes(r, sign, as_whole(a), as_whole(b), out);
}

qkv_status qkv__jinja_negate(jinja_run *r, jinja_string sign, jinja_value a, jinja_value *out)
{
    const bool is_minus = *sign.data == '-';
    if (!is_number(a)) return JINJA_REFUSE(r, "%s has no sign", qkv__jinja_kind_name(a));
    if (a.kind == JINJA_FLOAT) return *out = jinja_float(is_minus ? -a.number : a.number), QKV_OK;
    return operate_wholes(r, (jinja_string){ is_minus ? "-" : "+", 1 }, 0, as_whole(a), out);
}

/* ---- putting together ---- */

static qkv_status join_texts(jinja_run *r, jinja_value a, jinja_value b, jinja_value *out)
{
    const size_t from = r->out->length;
    qkv_status status = qkv__jinja_write(a, r->out);
    if (!status) status = qkv__jinja_write(b, r->out);
    return qkv__jinja_take_printed(r, from, status, out);
}

static qkv_status join_lists(jinja_run *r, const jinja_list *a, const jinja_list *b, jinja_value *out)
{
    jinja_list *l = qkv__jinja_list(&r->memory);
    if (!l) return qkv_error_status();
    *out = (jinja_value){ .kind = JINJA_LIST, .list = l };
    if (!(l->items = qkv__jinja_take(&r->memory, (size_t)(a->n + b->n + 1) * sizeof *l->items))) return qkv_error_status();
    if (a->n) memcpy(l->items, a->items, (size_t)a->n * sizeof *l->items);
    if (b->n) memcpy(l->items + a->n, b->items, (size_t)b->n * sizeof *l->items);
    l->n = a->n + b->n;
    l->room = l->n + 1;
    return QKV_OK;
}

/* "ab" * 3 */
static qkv_status repeat_text(jinja_run *r, jinja_string text, int64_t times, jinja_value *out)
{
    times = times < 0 ? 0 : times;
    if (text.length && (size_t)times > JINJA_MOST_TEXT / text.length)
        return qkv__jinja_fail(QKV_LIMIT, r->place, "a text has more than %d bytes", JINJA_MOST_TEXT);
    size_t length = text.length * (size_t)times;
    char *all = qkv__jinja_take(&r->memory, length + 1);
    if (!all) return qkv_error_status();
    for (size_t at = 0; at < length; at += text.length) memcpy(all + at, text.data, text.length);
    *out = jinja_text(all, length);
    return QKV_OK;
}

/* ---- comparisons ---- */

static qkv_status contains(jinja_run *r, jinja_value in, jinja_value v, bool *found)
{
    *found = false;
    if (in.kind == JINJA_UNDEFINED) return QKV_OK;
    if (in.kind == JINJA_DICT && v.kind == JINJA_STRING) return *found = qkv__jinja_find(in.dict, v.text) != NULL, QKV_OK;
    if (in.kind == JINJA_STRING && v.kind == JINJA_STRING)
        return *found = memmem(in.text.data, in.text.length, v.text.data, v.text.length) != NULL, QKV_OK;
    if (in.kind != JINJA_LIST) return refuse_operands(r, (jinja_string){ "in", 2 }, v, in);
    for (int64_t i = 0; i < in.list->n && !*found; i++) *found = qkv__jinja_equal(&r->memory, in.list->items[i], v);
    return QKV_OK;
}

static int compare_bytes(jinja_string a, jinja_string b)
{
    int order = memcmp(a.data, b.data, a.length < b.length ? a.length : b.length);
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static qkv_status lower(jinja_run *r, jinja_value v, jinja_value *out)
{
    static const jinja_arguments none;
    return qkv__jinja_named(qkv__jinja_filters, (jinja_string){ "lower", 5 })->call(r, v, &none, out);
}

qkv_status qkv__jinja_compare(jinja_run *r, jinja_value a, jinja_value b, bool is_exact, int *order)
{
    qkv_status status = QKV_OK;
    if (is_number(a) && is_number(b)) {
        double x = as_double(a), y = as_double(b);
        return *order = (x > y) - (x < y), QKV_OK;
    }
    if (a.kind == b.kind && a.kind <= JINJA_NONE) return *order = 0, QKV_OK;
    if (a.kind != JINJA_STRING || b.kind != JINJA_STRING)
        return JINJA_REFUSE(r, "%s cannot be compared with %s", qkv__jinja_kind_name(a), qkv__jinja_kind_name(b));
    if (!is_exact) status = lower(r, a, &a);
    if (!is_exact && !status) status = lower(r, b, &b);
    if (!status) *order = compare_bytes(a.text, b.text);
    return status;
}

static qkv_status operate_order(jinja_run *r, jinja_string sign, jinja_value a, jinja_value b, jinja_value *out)
{
    int order = 0;
    qkv_status status = qkv__jinja_compare(r, a, b, true, &order);
    const bool or_equal = sign.length == 2;
    *out = jinja_boolean((or_equal && !order) || (*sign.data == '<' ? order < 0 : order > 0));
    return status;
}

/* ---- all ---- */

static bool is_order(jinja_string sign) { return (*sign.data == '<' || *sign.data == '>'); }

static qkv_status operate_in(jinja_run *r, jinja_value a, jinja_value b, bool wanted, jinja_value *out)
{
    bool found = false;
    qkv_status status = contains(r, b, a, &found);
    *out = jinja_boolean(found == wanted);
    return status;
}

/* A string and another value are put together by "+" too, as the templates of some models have it. */
qkv_status qkv__jinja_operate(jinja_run *r, jinja_string sign, jinja_value a, jinja_value b, jinja_value *out)
{
    const bool is_plus = qkv__jinja_is_word(sign, "+"), is_times = qkv__jinja_is_word(sign, "*");
    if (qkv__jinja_is_word(sign, "==") || qkv__jinja_is_word(sign, "!="))
        return *out = jinja_boolean(qkv__jinja_equal(&r->memory, a, b) == (*sign.data == '=')), QKV_OK;
    if (qkv__jinja_is_word(sign, "in")) return operate_in(r, a, b, true, out);
    if (qkv__jinja_is_word(sign, "not in")) return operate_in(r, a, b, false, out);
    if (qkv__jinja_is_word(sign, "~")) return join_texts(r, a, b, out);
    if (is_order(sign)) return operate_order(r, sign, a, b, out);
    if (is_number(a) && is_number(b)) return operate_numbers(r, sign, a, b, out);
    if (is_plus && a.kind == JINJA_LIST && b.kind == JINJA_LIST) return join_lists(r, a.list, b.list, out);
    const bool is_text = a.kind == JINJA_STRING || b.kind == JINJA_STRING;
    const bool is_something = a.kind > JINJA_NONE && b.kind > JINJA_NONE;
    if (is_plus && is_text && is_something) return join_texts(r, a, b, out);
    if (is_times && a.kind == JINJA_STRING && b.kind == JINJA_INTEGER) return repeat_text(r, a.text, b.whole, out);
    return refuse_operands(r, sign, a, b);
}

/* ---- tests ---- */

typedef struct named_test {
    const char *name;
    unsigned kinds; /* bits of the kinds for which it holds */
} named_test;

#define KIND(k) (1u << JINJA_##k)
static const named_test tests_of_kind[] = {
    { "defined", ~KIND(UNDEFINED) },
    { "undefined", KIND(UNDEFINED) },
    { "none", KIND(NONE) },
    { "boolean", KIND(BOOLEAN) },
    { "integer", KIND(INTEGER) },
    { "float", KIND(FLOAT) },
    { "number", KIND(INTEGER) | KIND(FLOAT) },
    { "string", KIND(STRING) },
    { "mapping", KIND(DICT) },
    { "iterable", KIND(STRING) | KIND(LIST) | KIND(DICT) },
    { "sequence", KIND(STRING) | KIND(LIST) | KIND(DICT) },
    { "callable", KIND(MACRO) | KIND(FUNCTION) | KIND(METHOD) },
};

static bool is_case(jinja_run *r, jinja_value v, const char *filter, qkv_status *status)
{
    static const jinja_arguments none;
    jinja_value changed = v;
    if (v.kind != JINJA_STRING) return false;
    *status = qkv__jinja_named(qkv__jinja_filters, (jinja_string){ filter, strlen(filter) })->call(r, v, &none, &changed);
    return !*status && qkv__jinja_same(changed.text, v.text);
}

/* Tests of a value with another one; false: it is no such test. */
static bool test_pair(jinja_run *r, jinja_string name, jinja_value a, const jinja_value *b, bool *holds, qkv_status *status)
{
    static const struct {
        const char *name, *sign;
    } pairs[] = { { "eq", "==" }, { "equalto", "==" }, { "sameas", "==" }, { "ne", "!=" }, { "gt", ">" },
                  { "lt", "<" },  { "ge", ">=" },      { "le", "<=" },     { "in", "in" }, { "divisibleby", "%" } };
    jinja_value out = { 0 };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!qkv__jinja_is_word(name, pairs[i].name)) continue;
        if (!b) *status = JINJA_REFUSE(r, "the test \"%s\" needs something to compare with", pairs[i].name);
        else *status = qkv__jinja_operate(r, (jinja_string){ pairs[i].sign, strlen(pairs[i].sign) }, a, *b, &out);
        *holds = qkv__jinja_truth(out) != (*pairs[i].sign == '%');
        return true;
    }
    return false;
}

static bool test_content(jinja_run *r, jinja_string name, jinja_value v, bool *holds, qkv_status *status)
{
    const bool is_odd = qkv__jinja_is_word(name, "odd"), is_true = qkv__jinja_is_word(name, "true");
    if (is_true || qkv__jinja_is_word(name, "false")) return *holds = v.kind == JINJA_BOOLEAN && v.truth == is_true, true;
    if (qkv__jinja_is_word(name, "lower")) return *holds = is_case(r, v, "lower", status), true;
    if (qkv__jinja_is_word(name, "upper")) return *holds = is_case(r, v, "upper", status), true;
    if (!is_odd && !qkv__jinja_is_word(name, "even")) return false;
    if (v.kind != JINJA_INTEGER) *status = JINJA_REFUSE(r, "%s is neither odd nor even", qkv__jinja_kind_name(v));
    else *holds = (v.whole % 2 != 0) == is_odd;
    return true;
}

qkv_status qkv__jinja_test(jinja_run *r, jinja_string name, jinja_value v, const jinja_arguments *a, bool *holds)
{
    qkv_status status = QKV_OK;
    *holds = false;
    for (size_t i = 0; i < sizeof tests_of_kind / sizeof *tests_of_kind; i++)
        if (qkv__jinja_is_word(name, tests_of_kind[i].name)) return *holds = tests_of_kind[i].kinds >> v.kind & 1, QKV_OK;
    if (test_content(r, name, v, holds, &status)) return status;
    if (test_pair(r, name, v, qkv__jinja_argument(a, 0, NULL), holds, &status)) return status;
    return qkv__jinja_fail(QKV_UNSUPPORTED, r->place, "the test \"%.*s\" is not known here",
                           (int)(name.length < 32 ? name.length : 32), name.data);
}
