/* filters.c: the filters of templates. */
#include "strings.h"

#include "../base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER(name) static qkv_status name(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)

/* ---- arguments ---- */

static bool flag_of(const jinja_arguments *a, int64_t i, const char *name)
{
    const jinja_value *v = qkv__jinja_argument(a, i, name);
    return v && qkv__jinja_truth(*v);
}

/* A new list as the result. */
static qkv_status begin_list(jinja_run *r, jinja_value *out)
{
    *out = (jinja_value){ .kind = JINJA_LIST, .list = qkv__jinja_list(&r->memory) };
    return out->list ? QKV_OK : qkv_error_status();
}

/* ---- as text ---- */

FILTER(filter_tojson)
{
    const jinja_value *indent = qkv__jinja_argument(a, 0, "indent"), *separators = qkv__jinja_argument(a, -1, "separators");
    const bool is_indented = indent && indent->kind == JINJA_INTEGER;
    jinja_json_style style = { .indent = is_indented ? indent->whole : -1,
                               .ascii = flag_of(a, -1, "ensure_ascii"),
                               .sort_keys = flag_of(a, -1, "sort_keys"),
                               .between = { ", ", is_indented ? 1 : 2 },
                               .behind_key = { ": ", 2 } };
    qkv_status status = QKV_OK;
    if (is_indented && (style.indent < 0 || style.indent > 64)) return JINJA_REFUSE(r, "an indent is from 0 to 64");
    if (separators && separators->kind == JINJA_LIST && separators->list->n == 2) {
        status = qkv__jinja_need_text(r, &separators->list->items[0], "a separator", &style.between);
        if (!status) status = qkv__jinja_need_text(r, &separators->list->items[1], "a separator", &style.behind_key);
    }
    const size_t from = r->out->length;
    if (!status) status = qkv__jinja_write_json(self, &style, 0, r->out);
    return qkv__jinja_take_printed(r, from, status, out);
}

FILTER(filter_string)
{
    (void)a;
    const size_t from = r->out->length;
    return qkv__jinja_take_printed(r, from, qkv__jinja_write(self, r->out), out);
}

FILTER(filter_join)
{
    const jinja_value *given = qkv__jinja_argument(a, 0, "d"), *attribute = qkv__jinja_argument(a, 1, "attribute");
    jinja_list *items = NULL;
    jinja_string between = { "", 0 };
    const size_t from = r->out->length;
    qkv_status status = given ? qkv__jinja_need_text(r, given, "what joins a list", &between) : QKV_OK;
    if (!status) status = qkv__jinja_elements(r, self, &items);
    for (int64_t i = 0; items && i < items->n && !status; i++) {
        jinja_value v = items->items[i];
        if (attribute) status = qkv__jinja_path(r, v, *attribute, &v);
        if (i && !status) status = qkv__buffer_put(r->out, between.data, between.length);
        if (!status) status = qkv__jinja_write(v, r->out);
        if (!status && r->out->length - from > JINJA_MOST_TEXT) break;
    }
    return qkv__jinja_take_printed(r, from, status, out);
}

FILTER(filter_indent)
{
    const jinja_value *width = qkv__jinja_argument(a, 0, "width");
    const bool first = flag_of(a, 1, "first"), blank = flag_of(a, 2, "blank");
    const int64_t columns = width && width->kind == JINJA_INTEGER ? width->whole : 4;
    const size_t from = r->out->length;
    jinja_string s;
    qkv_status status = qkv__jinja_need_text(r, &self, "what is indented", &s);
    if (!status && (columns < 0 || columns > 256)) status = JINJA_REFUSE(r, "an indent is from 0 to 256");
    for (size_t at = 0, end; !status && at <= s.length; at = end + 1) {
        const char *newline = memchr(s.data + at, '\n', s.length - at);
        end = newline ? (size_t)(newline - s.data) : s.length;
        const bool is_indented = (at || first) && (end > at || blank);
        for (int64_t i = 0; is_indented && i < columns && !status; i++) status = qkv__buffer_put(r->out, " ", 1);
        if (!status) status = qkv__buffer_put(r->out, s.data + at, end - at + (newline != NULL));
        if (r->out->length - from > JINJA_MOST_TEXT) break;
    }
    return qkv__jinja_take_printed(r, from, status, out);
}

/* ---- numbers ---- */

/* As many digits as a string begins with; false: none. */
static bool number_in(jinja_string s, double *x)
{
    char digits[64], *end;
    while (s.length && (*s.data == ' ' || *s.data == '\n' || *s.data == '\t')) s.data++, s.length--;
    snprintf(digits, sizeof digits, "%.*s", (int)(s.length < 63 ? s.length : 63), s.data);
    *x = strtod(digits, &end);
    return end > digits && isfinite(*x);
}

static qkv_status as_number(jinja_value self, const jinja_arguments *a, double *x, const jinja_value **other)
{
    *other = NULL;
    *x = 0;
    if (self.kind == JINJA_INTEGER) *x = (double)self.whole;
    else if (self.kind == JINJA_FLOAT) *x = self.number;
    else if (self.kind == JINJA_BOOLEAN) *x = self.truth;
    else if (self.kind != JINJA_STRING || !number_in(self.text, x)) *other = qkv__jinja_argument(a, 0, "default"), *x = 0;
    return QKV_OK;
}

FILTER(filter_int)
{
    (void)r;
    const jinja_value *other;
    double x;
    if (self.kind == JINJA_INTEGER) return *out = self, QKV_OK;
    as_number(self, a, &x, &other);
    *out = other ? *other : jinja_integer(fabs(x) < 9e18 ? (int64_t)x : 0);
    return QKV_OK;
}

FILTER(filter_float)
{
    (void)r;
    const jinja_value *other;
    double x;
    as_number(self, a, &x, &other);
    *out = other ? *other : jinja_float(x);
    return QKV_OK;
}

FILTER(filter_abs)
{
    (void)a;
    if (self.kind == JINJA_FLOAT) return *out = jinja_float(fabs(self.number)), QKV_OK;
    if (self.kind != JINJA_INTEGER || self.whole == INT64_MIN) return JINJA_REFUSE(r, "abs is for numbers");
    *out = jinja_integer(self.whole < 0 ? -self.whole : self.whole);
    return QKV_OK;
}

FILTER(filter_round)
{
    (void)a;
    if (self.kind == JINJA_FLOAT) return *out = jinja_float(nearbyint(self.number)), QKV_OK;
    if (self.kind != JINJA_INTEGER) return JINJA_REFUSE(r, "round is for numbers");
    *out = self;
    return QKV_OK;
}

/* ---- what is there ---- */

FILTER(filter_default)
{
    (void)r;
    const jinja_value *other = qkv__jinja_argument(a, 0, "default_value");
    const bool is_missing = self.kind == JINJA_UNDEFINED || (flag_of(a, 1, "boolean") && !qkv__jinja_truth(self));
    *out = !is_missing ? self : other ? *other : jinja_text("", 0);
    return QKV_OK;
}

FILTER(filter_same)
{
    (void)r, (void)a;
    *out = self;
    return QKV_OK;
}

FILTER(filter_bool)
{
    (void)r, (void)a;
    *out = jinja_boolean(qkv__jinja_truth(self));
    return QKV_OK;
}

FILTER(filter_length)
{
    (void)a;
    int64_t n = 0;
    switch (self.kind) {
    case JINJA_STRING:
        for (size_t i = 0; i < self.text.length; i++) n += ((unsigned char)self.text.data[i] & 0xC0) != 0x80;
        break;
    case JINJA_LIST: n = self.list->n; break;
    case JINJA_DICT: n = self.dict->n; break;
    case JINJA_UNDEFINED: break;
    default: return JINJA_REFUSE(r, "%s has no length", qkv__jinja_kind_name(self));
    }
    *out = jinja_integer(n);
    return QKV_OK;
}

/* ---- lists ---- */

FILTER(filter_list)
{
    (void)a;
    jinja_list *l = NULL;
    qkv_status status = qkv__jinja_elements(r, self, &l);
    *out = (jinja_value){ .kind = JINJA_LIST, .list = l };
    return status;
}

FILTER(filter_first)
{
    (void)a;
    return qkv__jinja_item(r, self, jinja_integer(0), out);
}

FILTER(filter_last)
{
    (void)a;
    return qkv__jinja_item(r, self, jinja_integer(-1), out);
}

FILTER(filter_reverse)
{
    (void)a;
    return qkv__jinja_slice(r, self, jinja_undefined(), jinja_undefined(), jinja_integer(-1), out);
}

FILTER(filter_unique)
{
    (void)a;
    jinja_list *items = NULL;
    qkv_status status = qkv__jinja_elements(r, self, &items);
    if (!status) status = begin_list(r, out);
    for (int64_t i = 0; !status && i < items->n; i++) {
        bool is_new = true;
        for (int64_t k = 0; k < out->list->n && is_new; k++)
            is_new = !qkv__jinja_equal(&r->memory, out->list->items[k], items->items[i]);
        if (is_new) status = qkv__jinja_append(&r->memory, out->list, items->items[i]);
        if (!status) status = qkv__jinja_charge(r, 0);
    }
    return status;
}

/* ---- sorting ---- */

typedef struct sorting {
    const jinja_value *attribute; /* by which elements are compared; NULL: they themselves */
    bool is_exact, is_reversed;
} sorting;

static qkv_status order_of(jinja_run *r, const sorting *by, jinja_value a, jinja_value b, int *order)
{
    qkv_status status = by->attribute ? qkv__jinja_path(r, a, *by->attribute, &a) : QKV_OK;
    if (by->attribute && !status) status = qkv__jinja_path(r, b, *by->attribute, &b);
    if (!status) status = qkv__jinja_compare(r, a, b, by->is_exact, order);
    if (by->is_reversed) *order = -*order;
    return status ? status : qkv__jinja_charge(r, 1);
}

/* Merges: equal ones stay in their order. */
static qkv_status sort_range(jinja_run *r, const sorting *by, jinja_value *items, jinja_value *spare, int64_t n)
{
    const int64_t half = n / 2;
    if (n < 2) return QKV_OK;
    qkv_status status = sort_range(r, by, items, spare, half);
    if (!status) status = sort_range(r, by, items + half, spare, n - half);
    for (int64_t i = 0, k = half, at = 0; at < n && !status; at++) {
        int order = 0;
        if (i < half && k < n) status = order_of(r, by, items[i], items[k], &order);
        spare[at] = k >= n || (i < half && order <= 0) ? items[i++] : items[k++];
    }
    if (!status) memcpy(items, spare, (size_t)n * sizeof *items);
    return status;
}

static qkv_status sort_list(jinja_run *r, const sorting *by, const jinja_list *from, jinja_value *out)
{
    qkv_status status = begin_list(r, out);
    for (int64_t i = 0; !status && i < from->n; i++) status = qkv__jinja_append(&r->memory, out->list, from->items[i]);
    jinja_value *spare = status ? NULL : qkv__jinja_take(&r->memory, (size_t)(from->n + 1) * sizeof *spare);
    if (!status && !spare) status = qkv_error_status();
    return status ? status : sort_range(r, by, out->list->items, spare, from->n);
}

FILTER(filter_sort)
{
    jinja_list *items = NULL;
    const sorting by = { .attribute = qkv__jinja_argument(a, 2, "attribute"),
                         .is_exact = flag_of(a, 1, "case_sensitive"),
                         .is_reversed = flag_of(a, 0, "reverse") };
    qkv_status status = qkv__jinja_elements(r, self, &items);
    return status ? status : sort_list(r, &by, items, out);
}

FILTER(filter_items)
{
    (void)a;
    qkv_status status = begin_list(r, out);
    if (self.kind == JINJA_UNDEFINED) return status;
    if (!status && self.kind != JINJA_DICT) status = JINJA_REFUSE(r, "%s has no keys", qkv__jinja_kind_name(self));
    for (int64_t i = 0; !status && i < self.dict->n; i++) {
        const jinja_entry *e = &self.dict->entries[i];
        jinja_value pair;
        status = begin_list(r, &pair);
        if (!status) status = qkv__jinja_append(&r->memory, pair.list, jinja_text(e->key.data, e->key.length));
        if (!status) status = qkv__jinja_append(&r->memory, pair.list, e->value);
        if (!status) status = qkv__jinja_append(&r->memory, out->list, pair);
    }
    return status;
}

FILTER(filter_dictsort)
{
    const jinja_value *which = qkv__jinja_argument(a, 1, "by");
    const bool by_value = which && which->kind == JINJA_STRING && qkv__jinja_is_word(which->text, "value");
    const jinja_value place = jinja_integer(by_value);
    const sorting by = { .attribute = &place,
                         .is_exact = flag_of(a, 0, "case_sensitive"),
                         .is_reversed = flag_of(a, 2, "reverse") };
    jinja_value pairs;
    qkv_status status = filter_items(r, self, a, &pairs);
    return status ? status : sort_list(r, &by, pairs.list, out);
}

/* ---- choosing ---- */

/* Of the arguments those behind the first n, for a test or a filter that they name. */
static jinja_arguments behind(const jinja_arguments *a, int64_t n)
{
    jinja_arguments rest = { .names = a->names };
    if (a->places.n > n) rest.places = (jinja_list){ .items = a->places.items + n, .n = a->places.n - n };
    return rest;
}

/* Elements for which a test holds, or those for which it does not; by their attribute, or as they are. */
static qkv_status choose(jinja_run *r, jinja_value self, const jinja_arguments *a, bool by_attribute, bool wanted,
                         jinja_value *out)
{
    const jinja_value *attribute = by_attribute ? qkv__jinja_argument(a, 0, NULL) : NULL;
    const jinja_value *test = qkv__jinja_argument(a, by_attribute, NULL);
    const jinja_arguments rest = behind(a, 1 + by_attribute);
    jinja_list *items = NULL;
    jinja_string name = { 0 };
    qkv_status status = qkv__jinja_elements(r, self, &items);
    if (!status && test) status = qkv__jinja_need_text(r, test, "the name of a test", &name);
    if (!status && by_attribute && !attribute) status = JINJA_REFUSE(r, "an attribute is needed");
    if (!status) status = begin_list(r, out);
    for (int64_t i = 0; !status && i < items->n; i++) {
        jinja_value v = items->items[i];
        bool holds = false;
        if (attribute) status = qkv__jinja_path(r, v, *attribute, &v);
        if (!status && test) status = qkv__jinja_test(r, name, v, &rest, &holds);
        else holds = qkv__jinja_truth(v);
        if (!status && holds == wanted) status = qkv__jinja_append(&r->memory, out->list, items->items[i]);
        if (!status) status = qkv__jinja_charge(r, 1);
    }
    return status;
}

FILTER(filter_selectattr) { return choose(r, self, a, true, true, out); }
FILTER(filter_rejectattr) { return choose(r, self, a, true, false, out); }
FILTER(filter_select) { return choose(r, self, a, false, true, out); }
FILTER(filter_reject) { return choose(r, self, a, false, false, out); }

/* map(attribute="name"), or map("filter", its arguments) */
FILTER(filter_map)
{
    const jinja_value *attribute = qkv__jinja_argument(a, -1, "attribute"), *other = qkv__jinja_argument(a, -1, "default");
    const jinja_value *filter = qkv__jinja_argument(a, 0, NULL);
    const jinja_arguments rest = behind(a, 1);
    const jinja_function *f = NULL;
    jinja_list *items = NULL;
    qkv_status status = qkv__jinja_elements(r, self, &items);
    if (!attribute && filter && filter->kind == JINJA_STRING) f = qkv__jinja_named(qkv__jinja_filters, filter->text);
    if (!status && !attribute && !f) status = JINJA_REFUSE(r, "map needs an attribute or the name of a filter");
    if (!status) status = begin_list(r, out);
    for (int64_t i = 0; !status && i < items->n; i++) {
        jinja_value v;
        status = f ? f->call(r, items->items[i], &rest, &v) : qkv__jinja_path(r, items->items[i], *attribute, &v);
        if (!status && v.kind == JINJA_UNDEFINED && other) v = *other;
        if (!status) status = qkv__jinja_append(&r->memory, out->list, v);
        if (!status) status = qkv__jinja_charge(r, 1);
    }
    return status;
}

/* The least or the greatest. */
static qkv_status extreme(jinja_run *r, jinja_value self, int wanted, jinja_value *out)
{
    jinja_list *items = NULL;
    qkv_status status = qkv__jinja_elements(r, self, &items);
    *out = jinja_undefined();
    for (int64_t i = 0; !status && i < items->n; i++) {
        int order = wanted;
        if (i) status = qkv__jinja_compare(r, items->items[i], *out, false, &order);
        if (!status && order * wanted > 0) *out = items->items[i];
    }
    return status;
}

FILTER(filter_min) { return (void)a, extreme(r, self, -1, out); }
FILTER(filter_max) { return (void)a, extreme(r, self, 1, out); }

const jinja_function qkv__jinja_filters[] = {
    { "tojson", filter_tojson },
    { "trim", qkv__jinja_trim },
    { "length", filter_length },
    { "count", filter_length },
    { "default", filter_default },
    { "d", filter_default },
    { "join", filter_join },
    { "replace", qkv__jinja_replace },
    { "upper", qkv__jinja_upper },
    { "lower", qkv__jinja_lower },
    { "capitalize", qkv__jinja_capitalize },
    { "title", qkv__jinja_title },
    { "string", filter_string },
    { "safe", filter_same },
    { "indent", filter_indent },
    { "list", filter_list },
    { "first", filter_first },
    { "last", filter_last },
    { "reverse", filter_reverse },
    { "unique", filter_unique },
    { "sort", filter_sort },
    { "items", filter_items },
    { "dictsort", filter_dictsort },
    { "selectattr", filter_selectattr },
    { "rejectattr", filter_rejectattr },
    { "select", filter_select },
    { "reject", filter_reject },
    { "map", filter_map },
    { "min", filter_min },
    { "max", filter_max },
    { "int", filter_int },
    { "float", filter_float },
    { "abs", filter_abs },
    { "round", filter_round },
    { "bool", filter_bool },
    { 0 },
};
