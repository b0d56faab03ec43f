/* calls.c: macros, functions of ours, methods of mappings. */
#include "strings.h"

#include "../base/status.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_RANGE = 1 << 20 };

/* ---- what calls share ---- */

const jinja_value *qkv__jinja_argument(const jinja_arguments *a, int64_t i, const char *name)
{
    if (i >= 0 && i < a->places.n) return &a->places.items[i];
    return name ? qkv__jinja_find(&a->names, (jinja_string){ name, strlen(name) }) : NULL;
}

const jinja_function *qkv__jinja_named(const jinja_function *table, jinja_string name)
{
    for (; table->name; table++)
        if (qkv__jinja_is_word(name, table->name)) return table;
    return NULL;
}

qkv_status qkv__jinja_need_text(jinja_run *r, const jinja_value *v, const char *what, jinja_string *out)
{
    *out = (jinja_string){ "", 0 };
    if (!v) return JINJA_REFUSE(r, "%s is missing", what);
    if (v->kind != JINJA_STRING) return JINJA_REFUSE(r, "%s must be a string, not %s", what, qkv__jinja_kind_name(*v));
    *out = v->text;
    return QKV_OK;
}

qkv_status qkv__jinja_take_printed(jinja_run *r, size_t from, qkv_status status, jinja_value *out)
{
    const size_t length = r->out->length - from;
    if (!status && length > JINJA_MOST_TEXT)
        status = qkv__jinja_fail(QKV_LIMIT, r->place, "a text has more than %d bytes", JINJA_MOST_TEXT);
    if (!status) status = qkv__jinja_string(&r->memory, r->out->data ? r->out->data + from : "", length, out);
    r->out->length = from;
    return status;
}

/* ---- macros ---- */

/* The i-th parameter: the argument in its place or of its name, else its default. */
static qkv_status bind_parameter(jinja_run *r, const jinja_node *p, int64_t i, jinja_arguments *a, int64_t *used,
                                 jinja_scope *s)
{
    jinja_value v = jinja_undefined();
    const jinja_value *named = qkv__jinja_find(&a->names, p->text);
    qkv_status status = QKV_OK;
    *used += i >= a->places.n && named;
    if (i < a->places.n) v = a->places.items[i];
    else if (named) v = *named;
    else if (p->kind == JINJA_NODE_KEYWORD) status = qkv__jinja_evaluate(r, p->a, s, &v);
    return status ? status : qkv__jinja_set(r, s, p->text, v);
}

static qkv_status bind_parameters(jinja_run *r, const jinja_macro *m, const jinja_arguments *a, jinja_scope *s)
{
    int64_t n = 0, used = 0;
    qkv_status status = QKV_OK;
    jinja_arguments given = *a;
    for (const jinja_node *p = m->node->a; p && !status; p = p->next, n++) status = bind_parameter(r, p, n, &given, &used, s);
    if (status) return status;
    if (a->places.n > n || a->names.n > used)
        return JINJA_REFUSE(r, "the macro has %lld parameters, and gets others", (long long)n);
    return m->has_caller ? qkv__jinja_set(r, s, (jinja_string){ "caller", 6 }, m->caller) : QKV_OK;
}

static qkv_status call_macro(jinja_run *r, const jinja_macro *m, const jinja_arguments *a, jinja_value *out)
{
    jinja_scope *s = qkv__jinja_take(&r->memory, sizeof *s);
    if (!s) return qkv_error_status();
    s->parent = m->scope;
    qkv_status status = bind_parameters(r, m, a, s);
    if (!status) status = qkv__jinja_capture(r, m->node->c, s, out);
    r->jump = JINJA_GO_ON;
    return status;
}

qkv_status qkv__jinja_call_value(jinja_run *r, jinja_value f, const jinja_arguments *a, jinja_value *out)
{
    *out = jinja_undefined();
    if (f.kind == JINJA_MACRO) return call_macro(r, f.macro, a, out);
    if (f.kind == JINJA_FUNCTION) return f.function->call(r, jinja_undefined(), a, out);
    if (f.kind != JINJA_METHOD) return JINJA_REFUSE(r, "%s cannot be called", qkv__jinja_kind_name(f));
    qkv_status status = qkv__jinja_charge(r, f.bound->self.kind == JINJA_STRING ? f.bound->self.text.length / 16 : 0);
    return status ? status : f.bound->function->call(r, f.bound->self, a, out);
}

/* ---- functions ---- */

#define FUNCTION(name) static qkv_status name(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)

FUNCTION(raise_exception)
{
    const jinja_value *said = qkv__jinja_argument(a, 0, "message");
    jinja_string s = said && said->kind == JINJA_STRING ? said->text : (jinja_string){ "no reason given", 15 };
    (void)self, (void)out;
    return qkv__jinja_fail(QKV_USAGE, r->place, "the template refuses the conversation: %.*s",
                           (int)(s.length < 400 ? s.length : 400), s.data);
}

FUNCTION(range)
{
    int64_t n = a->places.n, parts[3] = { 0, 0, 1 };
    (void)self;
    if (n < 1 || n > 3) return JINJA_REFUSE(r, "range has one to three whole numbers");
    for (int64_t i = 0; i < n; i++) {
        if (a->places.items[i].kind != JINJA_INTEGER) return JINJA_REFUSE(r, "range has whole numbers alone");
        parts[n == 1 ? 1 : i] = a->places.items[i].whole;
    }
    if (!parts[2]) return JINJA_REFUSE(r, "the step of a range is 0");
    *out = (jinja_value){ .kind = JINJA_LIST, .list = qkv__jinja_list(&r->memory) };
    qkv_status status = out->list ? QKV_OK : qkv_error_status();
    for (int64_t i = parts[0]; !status && (parts[2] > 0 ? i < parts[1] : i > parts[1]);) {
        if (out->list->n >= MOST_RANGE)
            return qkv__jinja_fail(QKV_LIMIT, r->place, "a range has more than %d numbers", MOST_RANGE);
        status = qkv__jinja_append(&r->memory, out->list, jinja_integer(i));
        if (__builtin_add_overflow(i, parts[2], &i)) break;
    }
    return status ? status : qkv__jinja_charge(r, (size_t)out->list->n);
}

/* The keys of a mapping that may be given, and those named. */
static qkv_status make_dict(jinja_run *r, const jinja_arguments *a, jinja_kind kind, jinja_value *out)
{
    const jinja_value *from = qkv__jinja_argument(a, 0, NULL);
    jinja_dict *d = qkv__jinja_dict(&r->memory);
    qkv_status status = d ? QKV_OK : qkv_error_status();
    *out = (jinja_value){ .kind = kind, .dict = d };
    if (!status && from && from->kind != JINJA_DICT)
        status = JINJA_REFUSE(r, "a mapping is needed, not %s", qkv__jinja_kind_name(*from));
    for (int64_t i = 0; !status && from && i < from->dict->n; i++)
        status = qkv__jinja_put(&r->memory, d, from->dict->entries[i].key, from->dict->entries[i].value);
    for (int64_t i = 0; !status && i < a->names.n; i++)
        status = qkv__jinja_put(&r->memory, d, a->names.entries[i].key, a->names.entries[i].value);
    return status;
}

FUNCTION(make_namespace) { return (void)self, make_dict(r, a, JINJA_NAMESPACE, out); }
FUNCTION(make_mapping) { return (void)self, make_dict(r, a, JINJA_DICT, out); }

/* ---- dates ---- */

/* One sign behind a percent; months and days in English, whatever the locale. */
static qkv_status put_date_part(const struct tm *t, char sign, qkv_buffer *out)
{
    static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December" };
    static const char *const days[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday" };
    char part[64];
    switch (sign) {
    case 'Y': snprintf(part, sizeof part, "%d", t->tm_year + 1900); break;
    case 'y': snprintf(part, sizeof part, "%02d", t->tm_year % 100); break;
    case 'm': snprintf(part, sizeof part, "%02d", t->tm_mon + 1); break;
    case 'd': snprintf(part, sizeof part, "%02d", t->tm_mday); break;
    case 'H': snprintf(part, sizeof part, "%02d", t->tm_hour); break;
    case 'I': snprintf(part, sizeof part, "%02d", t->tm_hour % 12 ? t->tm_hour % 12 : 12); break;
    case 'M': snprintf(part, sizeof part, "%02d", t->tm_min); break;
    case 'S': snprintf(part, sizeof part, "%02d", t->tm_sec); break;
    case 'p': snprintf(part, sizeof part, "%s", t->tm_hour < 12 ? "AM" : "PM"); break;
    case 'j': snprintf(part, sizeof part, "%03d", t->tm_yday + 1); break;
    case 'B': snprintf(part, sizeof part, "%s", months[t->tm_mon]); break;
    case 'b': snprintf(part, sizeof part, "%.3s", months[t->tm_mon]); break;
    case 'A': snprintf(part, sizeof part, "%s", days[t->tm_wday]); break;
    case 'a': snprintf(part, sizeof part, "%.3s", days[t->tm_wday]); break;
    case '%': snprintf(part, sizeof part, "%%"); break;
    default: snprintf(part, sizeof part, "%%%c", sign);
    }
    return qkv__buffer_put(out, part, strlen(part));
}

FUNCTION(strftime_now)
{
    const time_t now = (time_t)r->now;
    const size_t from = r->out->length;
    struct tm t;
    jinja_string format;
    (void)self;
    qkv_status status = qkv__jinja_need_text(r, qkv__jinja_argument(a, 0, "format"), "the format of a date", &format);
    if (!status && !localtime_r(&now, &t)) status = JINJA_REFUSE(r, "there is no such date");
    for (size_t i = 0; !status && i < format.length; i++)
        if (format.data[i] == '%' && i + 1 < format.length) status = put_date_part(&t, format.data[++i], r->out);
        else status = qkv__buffer_put(r->out, format.data + i, 1);
    return qkv__jinja_take_printed(r, from, status, out);
}

const jinja_function qkv__jinja_functions[] = {
    { "raise_exception", raise_exception }, { "strftime_now", strftime_now }, { "range", range },
    { "namespace", make_namespace },        { "dict", make_mapping },         { 0 },
};

/* ---- methods of mappings ---- */

FUNCTION(get)
{
    const jinja_value *other = qkv__jinja_argument(a, 1, "default");
    jinja_string key;
    qkv_status status = qkv__jinja_need_text(r, qkv__jinja_argument(a, 0, "key"), "a key", &key);
    if (status) return status;
    const jinja_value *found = qkv__jinja_find(self.dict, key);
    *out = found ? *found : other ? *other : jinja_none();
    return qkv__jinja_charge(r, (size_t)self.dict->n / 16);
}

FUNCTION(items) { return qkv__jinja_named(qkv__jinja_filters, (jinja_string){ "items", 5 })->call(r, self, a, out); }
FUNCTION(keys) { return qkv__jinja_named(qkv__jinja_filters, (jinja_string){ "list", 4 })->call(r, self, a, out); }

FUNCTION(values)
{
    (void)a;
    *out = (jinja_value){ .kind = JINJA_LIST, .list = qkv__jinja_list(&r->memory) };
    qkv_status status = out->list ? QKV_OK : qkv_error_status();
    for (int64_t i = 0; !status && i < self.dict->n; i++)
        status = qkv__jinja_append(&r->memory, out->list, self.dict->entries[i].value);
    return status;
}

const jinja_function qkv__jinja_dict_methods[] = {
    { "get", get }, { "items", items }, { "keys", keys }, { "values", values }, { 0 },
};
