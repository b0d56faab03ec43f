/* value.c: the values of a template's expressions. */
#include "value.h"

#include "../base/status.h"

#include <string.h>

enum { CHUNK = 32 << 10, MOST_DEPTH = 100, MOST_KEYS = 4096 };

/* ---- memory ---- */

static qkv_status next_chunk(jinja_memory *m, size_t bytes)
{
    size_t size = bytes > CHUNK ? bytes : CHUNK;
    if (bytes > m->most || m->used > m->most - bytes)
        return qkv__fail(QKV_LIMIT, "chat template: its values need more than %zu bytes of memory", m->most);
    char *chunk = qkv__arena_take(&m->arena, size);
    if (!chunk) return QKV_MEMORY;
    m->at = chunk;
    m->left = size;
    m->used += size;
    return QKV_OK;
}

void *qkv__jinja_take(jinja_memory *m, size_t bytes)
{
    const size_t padded = bytes <= SIZE_MAX - 15 ? (bytes + 15) & ~(size_t)15 : SIZE_MAX;
    if (padded > m->left && next_chunk(m, padded)) return NULL;
    void *taken = m->at;
    m->at += padded;
    m->left -= padded;
    return memset(taken, 0, bytes);
}

/* ---- strings ---- */

bool qkv__jinja_same(jinja_string a, jinja_string b) { return a.length == b.length && !memcmp(a.data, b.data, a.length); }

bool qkv__jinja_is_word(jinja_string a, const char *word) { return qkv__jinja_same(a, (jinja_string){ word, strlen(word) }); }

qkv_status qkv__jinja_string(jinja_memory *m, const char *data, size_t length, jinja_value *out)
{
    char *copy = qkv__jinja_take(m, length ? length : 1);
    if (!copy) return qkv_error_status();
    if (length) memcpy(copy, data, length);
    *out = jinja_text(copy, length);
    return QKV_OK;
}

/* ---- what a value is ---- */

const char *qkv__jinja_kind_name(jinja_value v)
{
    static const char *const names[] = { "undefined", "none",       "a boolean", "a whole number", "a number",
                                         "a string",  "a list",     "a mapping", "a namespace",    "a loop",
                                         "a macro",   "a function", "a method" };
    return names[v.kind];
}

bool qkv__jinja_truth(jinja_value v)
{
    switch (v.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOLEAN: return v.truth;
    case JINJA_INTEGER: return v.whole != 0;
    case JINJA_FLOAT: return v.number != 0;
    case JINJA_STRING: return v.text.length > 0;
    case JINJA_LIST: return v.list->n > 0;
    case JINJA_DICT: return v.dict->n > 0;
    default: return true;
    }
}

static bool is_number(jinja_value v) { return v.kind == JINJA_BOOLEAN || v.kind == JINJA_INTEGER || v.kind == JINJA_FLOAT; }

static double number_of(jinja_value v)
{
    return v.kind == JINJA_BOOLEAN ? v.truth : v.kind == JINJA_INTEGER ? (double)v.whole : v.number;
}

static bool equal_at(jinja_memory *m, jinja_value a, jinja_value b, int depth);

static bool equal_lists(jinja_memory *m, const jinja_list *a, const jinja_list *b, int depth)
{
    if (a->n != b->n) return false;
    for (int64_t i = 0; i < a->n; i++)
        if (!equal_at(m, a->items[i], b->items[i], depth)) return false;
    return true;
}

static bool equal_dicts(jinja_memory *m, const jinja_dict *a, const jinja_dict *b, int depth)
{
    if (a->n != b->n) return false;
    for (int64_t i = 0; i < a->n; i++) {
        const jinja_value *other = qkv__jinja_find(b, a->entries[i].key);
        m->steps -= a->n / 16;
        if (!other || !equal_at(m, a->entries[i].value, *other, depth)) return false;
    }
    return true;
}

/* What is too deep, or takes too long, is not equal: the next step then ends the template. */
static bool equal_at(jinja_memory *m, jinja_value a, jinja_value b, int depth)
{
    if (--m->steps < 0 || depth > MOST_DEPTH) return false;
    if (is_number(a) && is_number(b)) return number_of(a) == number_of(b);
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return true;
    case JINJA_STRING: m->steps -= (int64_t)(a.text.length / 64); return qkv__jinja_same(a.text, b.text);
    case JINJA_LIST: return equal_lists(m, a.list, b.list, depth + 1);
    case JINJA_DICT: return equal_dicts(m, a.dict, b.dict, depth + 1);
    case JINJA_FUNCTION: return a.function == b.function;
    default: return a.dict == b.dict; /* the same one */
    }
}

bool qkv__jinja_equal(jinja_memory *m, jinja_value a, jinja_value b) { return equal_at(m, a, b, 0); }

/* ---- lists and dicts ---- */

jinja_list *qkv__jinja_list(jinja_memory *m) { return qkv__jinja_take(m, sizeof(jinja_list)); }
jinja_dict *qkv__jinja_dict(jinja_memory *m) { return qkv__jinja_take(m, sizeof(jinja_dict)); }

/* Room for one more of `size` bytes: what was there is left behind, so it grows by doubling. */
static qkv_status make_room_for_one(jinja_memory *m, void **items, int64_t n, int64_t *room, size_t size)
{
    if (n < *room) return QKV_OK;
    int64_t wanted = *room ? *room * 2 : 4;
    void *larger = qkv__jinja_take(m, (size_t)wanted * size);
    if (!larger) return qkv_error_status();
    if (n) memcpy(larger, *items, (size_t)n * size);
    *items = larger;
    *room = wanted;
    return QKV_OK;
}

qkv_status qkv__jinja_append(jinja_memory *m, jinja_list *l, jinja_value v)
{
    qkv_status status = make_room_for_one(m, (void **)&l->items, l->n, &l->room, sizeof *l->items);
    if (!status) l->items[l->n++] = v;
    return status;
}

jinja_value *qkv__jinja_find(const jinja_dict *d, jinja_string key)
{
    for (int64_t i = 0; i < d->n; i++)
        if (qkv__jinja_same(d->entries[i].key, key)) return &d->entries[i].value;
    return NULL;
}

static qkv_status add_entry(jinja_memory *m, jinja_dict *d, jinja_string key, jinja_value v)
{
    if (d->n >= MOST_KEYS) return qkv__fail(QKV_LIMIT, "chat template: a mapping has more than %d keys", MOST_KEYS);
    qkv_status status = make_room_for_one(m, (void **)&d->entries, d->n, &d->room, sizeof *d->entries);
    if (!status) d->entries[d->n++] = (jinja_entry){ key, v };
    return status;
}

qkv_status qkv__jinja_put(jinja_memory *m, jinja_dict *d, jinja_string key, jinja_value v)
{
    jinja_value *old = qkv__jinja_find(d, key);
    m->steps -= d->n / 16;
    if (old) return *old = v, QKV_OK;
    return add_entry(m, d, key, v);
}

/* ---- from JSON ---- */

static qkv_status list_of_json(jinja_memory *m, const qkv__json_value *from, int depth, jinja_value *out)
{
    jinja_list *l = qkv__jinja_list(m);
    qkv_status status = l ? QKV_OK : qkv_error_status();
    for (size_t i = 0; i < qkv__json_size(from) && !status; i++) {
        jinja_value v;
        status = qkv__jinja_of_json(m, qkv__json_at(from, i), depth + 1, &v);
        if (!status) status = qkv__jinja_append(m, l, v);
    }
    *out = (jinja_value){ .kind = JINJA_LIST, .list = l };
    return status;
}

/* The keys of an object differ, so that none need be looked for. */
static qkv_status dict_of_json(jinja_memory *m, const qkv__json_value *from, int depth, jinja_value *out)
{
    jinja_dict *d = qkv__jinja_dict(m);
    qkv_status status = d ? QKV_OK : qkv_error_status();
    for (size_t i = 0; i < qkv__json_size(from) && !status; i++) {
        const char *key = qkv__json_key(from, i);
        jinja_value v;
        status = qkv__jinja_of_json(m, qkv__json_at(from, i), depth + 1, &v);
        if (!status) status = add_entry(m, d, (jinja_string){ key, strlen(key) }, v);
    }
    *out = (jinja_value){ .kind = JINJA_DICT, .dict = d };
    return status;
}

qkv_status qkv__jinja_of_json(jinja_memory *m, const qkv__json_value *from, int depth, jinja_value *out)
{
    if (depth > MOST_DEPTH)
        return qkv__fail(QKV_LIMIT, "chat template: its variables are more than %d levels deep", MOST_DEPTH);
    switch (qkv__json_type_of(from)) {
    case QKV__JSON_OBJECT: return dict_of_json(m, from, depth, out);
    case QKV__JSON_ARRAY: return list_of_json(m, from, depth, out);
    case QKV__JSON_STRING: *out = jinja_text(qkv__json_text(from), qkv__json_length(from)); return QKV_OK;
    case QKV__JSON_INT: *out = jinja_integer(qkv__json_int(from)); return QKV_OK;
    case QKV__JSON_REAL: *out = jinja_float(qkv__json_number(from)); return QKV_OK;
    case QKV__JSON_FALSE:
    case QKV__JSON_TRUE: *out = jinja_boolean(qkv__json_is_true(from)); return QKV_OK;
    case QKV__JSON_NONE:
    case QKV__JSON_NULL: break;
    }
    *out = jinja_none();
    return QKV_OK;
}
