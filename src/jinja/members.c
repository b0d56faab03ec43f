/* members.c: attributes, elements and slices of values; what a loop goes through. */
#include "run.h"

#include <qkv/unstable/util.h>

#include "../base/size.h"
#include "../base/status.h"

#include <string.h>

/* ---- attributes ---- */

static jinja_value loop_attribute(const jinja_loop *l, jinja_string name)
{
    const int64_t i = l->at, n = l->items->n;
    const struct {
        const char *name;
        jinja_value value;
    } all[] = { { "index", jinja_integer(i + 1) },
                { "index0", jinja_integer(i) },
                { "revindex", jinja_integer(n - i) },
                { "revindex0", jinja_integer(n - i - 1) },
                { "first", jinja_boolean(i == 0) },
                { "last", jinja_boolean(i == n - 1) },
                { "length", jinja_integer(n) },
                { "previtem", i > 0 ? l->items->items[i - 1] : jinja_undefined() },
                { "nextitem", i < n - 1 ? l->items->items[i + 1] : jinja_undefined() } };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (qkv__jinja_is_word(name, all[k].name)) return all[k].value;
    return jinja_undefined();
}

static qkv_status bind_method(jinja_run *r, const jinja_function *table, jinja_value self, jinja_string name, jinja_value *out)
{
    const jinja_function *f = qkv__jinja_named(table, name);
    if (!f) return QKV_OK;
    jinja_bound *b = qkv__jinja_take(&r->memory, sizeof *b);
    if (!b) return qkv_error_status();
    *b = (jinja_bound){ f, self };
    *out = (jinja_value){ .kind = JINJA_METHOD, .bound = b };
    return QKV_OK;
}

static qkv_status dict_attribute(jinja_run *r, jinja_value a, jinja_string name, bool is_called, jinja_value *out)
{
    const jinja_value *found = qkv__jinja_find(a.dict, name);
    r->memory.steps -= a.dict->n / 16;
    if (found) *out = *found;
    if (a.kind == JINJA_NAMESPACE || (found && !is_called)) return QKV_OK;
    return bind_method(r, qkv__jinja_dict_methods, a, name, out);
}

/* A mapping may have keys such as "items", so only calls are of its methods first. */
qkv_status qkv__jinja_attribute(jinja_run *r, jinja_value a, jinja_string name, bool is_called, jinja_value *out)
{
    *out = jinja_undefined();
    switch (a.kind) {
    case JINJA_DICT:
    case JINJA_NAMESPACE: return dict_attribute(r, a, name, is_called, out);
    case JINJA_LOOP: *out = loop_attribute(a.loop, name); return QKV_OK;
    case JINJA_STRING: return bind_method(r, qkv__jinja_string_methods, a, name, out);
    default: return QKV_OK;
    }
}

/* ---- elements ---- */

/* Where character i of a text begins; its length for one behind the last. */
static size_t offset_of(jinja_string s, int64_t i)
{
    size_t at = 0, size;
    for (; i > 0 && at < s.length; i--, at += size) qkv_utf8_next(s.data + at, s.length - at, &size);
    return at;
}

static int64_t characters(jinja_string s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.length; i++) n += ((unsigned char)s.data[i] & 0xC0) != 0x80;
    return n;
}

static jinja_value part_of_text(jinja_string s, int64_t from, int64_t to)
{
    size_t begin = offset_of(s, from), end = begin + offset_of((jinja_string){ s.data + begin, s.length - begin }, to - from);
    return jinja_text(s.data + begin, end - begin);
}

qkv_status qkv__jinja_item(jinja_run *r, jinja_value a, jinja_value index, jinja_value *out)
{
    *out = jinja_undefined();
    if (index.kind == JINJA_STRING) return qkv__jinja_attribute(r, a, index.text, false, out);
    if (a.kind != JINJA_LIST && a.kind != JINJA_STRING) {
        if (a.kind == JINJA_UNDEFINED || a.kind == JINJA_DICT) return QKV_OK;
        return JINJA_REFUSE(r, "%s has no elements", qkv__jinja_kind_name(a));
    }
    if (index.kind != JINJA_INTEGER) return JINJA_REFUSE(r, "an index is a whole number, not %s", qkv__jinja_kind_name(index));
    qkv_status status = qkv__jinja_charge(r, a.kind == JINJA_STRING ? a.text.length / 16 : 0);
    const int64_t n = a.kind == JINJA_LIST ? a.list->n : characters(a.text),
                  i = index.whole < 0 ? index.whole + n : index.whole;
    if (status || i < 0 || i >= n) return status;
    *out = a.kind == JINJA_LIST ? a.list->items[i] : part_of_text(a.text, i, i + 1);
    return QKV_OK;
}

/* One end of a slice of n elements, within them; `other` where it is left out. */
static qkv_status find_bound(jinja_run *r, jinja_value v, int64_t n, bool backwards, int64_t other, int64_t *out)
{
    *out = other;
    if (v.kind == JINJA_UNDEFINED || v.kind == JINJA_NONE) return QKV_OK;
    if (v.kind != JINJA_INTEGER) return JINJA_REFUSE(r, "a slice has whole numbers, not %s", qkv__jinja_kind_name(v));
    int64_t i = v.whole < 0 ? v.whole + n : v.whole, least = backwards ? -1 : 0;
    *out = i < least ? least : qkv__min(i, n + least);
    return QKV_OK;
}

static qkv_status slice_list(jinja_run *r, const jinja_list *l, int64_t from, int64_t to, int64_t by, jinja_value *out)
{
    jinja_list *some = qkv__jinja_list(&r->memory);
    qkv_status status = some ? QKV_OK : qkv_error_status();
    *out = (jinja_value){ .kind = JINJA_LIST, .list = some };
    for (int64_t i = from; (by > 0 ? i < to : i > to) && !status; i += by)
        status = qkv__jinja_append(&r->memory, some, l->items[i]);
    return status;
}

static qkv_status join_characters(jinja_run *r, const jinja_list *l, jinja_value *out)
{
    size_t length = 0;
    for (int64_t i = 0; i < l->n; i++) length += l->items[i].text.length;
    char *text = qkv__jinja_take(&r->memory, length + 1);
    if (!text) return qkv_error_status();
    *out = jinja_text(text, length);
    for (int64_t i = 0; i < l->n; text += l->items[i++].text.length)
        memcpy(text, l->items[i].text.data, l->items[i].text.length);
    return QKV_OK;
}

qkv_status qkv__jinja_slice(jinja_run *r, jinja_value a, jinja_value from, jinja_value to, jinja_value by, jinja_value *out)
{
    jinja_list *items = NULL;
    int64_t step = 1, begin = 0, end = 0;
    if (a.kind != JINJA_LIST && a.kind != JINJA_STRING) return JINJA_REFUSE(r, "%s has no slices", qkv__jinja_kind_name(a));
    if (by.kind == JINJA_INTEGER) step = by.whole;
    if (step == 0 || step > INT32_MAX || step < -INT32_MAX) return JINJA_REFUSE(r, "the step of a slice is 0, or too large");
    const bool is_text = a.kind == JINJA_STRING, backwards = step < 0;
    const int64_t n = is_text ? characters(a.text) : a.list->n;
    qkv_status status = qkv__jinja_charge(r, (size_t)n / 16);
    if (!status) status = find_bound(r, from, n, backwards, backwards ? n - 1 : 0, &begin);
    if (!status) status = find_bound(r, to, n, backwards, backwards ? -1 : n, &end);
    if (status) return status;
    if (is_text && step == 1) return *out = part_of_text(a.text, begin, end > begin ? end : begin), QKV_OK;
    if ((status = qkv__jinja_elements(r, a, &items))) return status;
    status = slice_list(r, items, begin, end, step, out);
    return status || !is_text ? status : join_characters(r, out->list, out);
}

/* ---- loops ---- */

qkv_status qkv__jinja_elements(jinja_run *r, jinja_value v, jinja_list **out)
{
    jinja_list *l = NULL;
    qkv_status status = QKV_OK;
    if (v.kind == JINJA_LIST) return *out = v.list, QKV_OK;
    if (v.kind != JINJA_DICT && v.kind != JINJA_STRING && v.kind != JINJA_UNDEFINED)
        return JINJA_REFUSE(r, "%s has no elements to go through", qkv__jinja_kind_name(v));
    if (!(l = *out = qkv__jinja_list(&r->memory))) return qkv_error_status();
    for (int64_t i = 0; v.kind == JINJA_DICT && i < v.dict->n && !status; i++)
        status = qkv__jinja_append(&r->memory, l, jinja_text(v.dict->entries[i].key.data, v.dict->entries[i].key.length));
    for (size_t at = 0, size; v.kind == JINJA_STRING && at < v.text.length && !status; at += size) {
        qkv_utf8_next(v.text.data + at, v.text.length - at, &size);
        status = qkv__jinja_append(&r->memory, l, jinja_text(v.text.data + at, size));
    }
    return status;
}

/* ---- paths ---- */

static jinja_value index_of(jinja_string part)
{
    int64_t i = 0;
    for (size_t k = 0; k < part.length; k++) {
        if (part.data[k] < '0' || part.data[k] > '9' || k > 9) return jinja_text(part.data, part.length);
        i = i * 10 + (part.data[k] - '0');
    }
    return part.length ? jinja_integer(i) : jinja_text("", 0);
}

qkv_status qkv__jinja_path(jinja_run *r, jinja_value v, jinja_value path, jinja_value *out)
{
    qkv_status status = QKV_OK;
    *out = jinja_undefined();
    if (path.kind != JINJA_STRING) return qkv__jinja_item(r, v, path, out);
    for (size_t at = 0, end; at <= path.text.length && !status; at = end + 1) {
        const char *point = memchr(path.text.data + at, '.', path.text.length - at);
        end = point ? (size_t)(point - path.text.data) : path.text.length;
        jinja_string part = { path.text.data + at, end - at };
        jinja_value index = v.kind == JINJA_LIST ? index_of(part) : jinja_text(part.data, part.length);
        status = v.kind == JINJA_UNDEFINED ? QKV_OK : qkv__jinja_item(r, v, index, out);
        v = *out;
    }
    return status;
}
