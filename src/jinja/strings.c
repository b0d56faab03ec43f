/* strings.c: what templates do with strings, as methods and as filters. */
#include "strings.h"

#include <qkv/unstable/util.h>

#include "../base/status.h"

#include <string.h>
#include <utf8proc.h>

/* ---- case ---- */

typedef enum letter_case { LOWER, UPPER, CAPITAL, TITLE } letter_case;

/* Letter by letter; the first of the text, or of every word, may be another case than the rest. */
static qkv_status change_case(jinja_run *r, jinja_string s, letter_case wanted, jinja_value *out)
{
    char *text = qkv__jinja_take(&r->memory, s.length * 2 + 4); /* a letter of n bytes has at most 2n in another case */
    size_t length = 0, size;
    bool is_first = true;
    if (!text) return qkv_error_status();
    for (size_t at = 0; at < s.length; at += size) {
        int32_t c = qkv_utf8_next(s.data + at, s.length - at, &size);
        if (c < 0) {
            memcpy(text + length, s.data + at, size);
            length += size;
            continue;
        }
        bool is_upper = wanted == UPPER || (wanted != LOWER && is_first);
        utf8proc_category_t kind = utf8proc_category(c);
        is_first = wanted == TITLE && !(kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO);
        if (c == 0xDF && is_upper) { /* the one letter of Europe that has no capital of its own in use */
            memcpy(text + length, wanted == UPPER ? "SS" : "Ss", 2);
            length += 2;
            continue;
        }
        length += (size_t)utf8proc_encode_char(is_upper ? utf8proc_toupper(c) : utf8proc_tolower(c),
                                               (utf8proc_uint8_t *)text + length);
    }
    *out = jinja_text(text, length);
    return QKV_OK;
}

static qkv_status change_value(jinja_run *r, jinja_value self, letter_case wanted, jinja_value *out)
{
    jinja_string s;
    qkv_status status = qkv__jinja_need_text(r, &self, "what has upper and lower case", &s);
    return status ? status : change_case(r, s, wanted, out);
}

#define CASE(name, wanted)                                                                      \
    qkv_status name(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out) \
    {                                                                                           \
        (void)a;                                                                                \
        return change_value(r, self, wanted, out);                                              \
    }
CASE(qkv__jinja_lower, LOWER)
CASE(qkv__jinja_upper, UPPER)
CASE(qkv__jinja_capitalize, CAPITAL)
CASE(qkv__jinja_title, TITLE)
#undef CASE

/* ---- white space around a text ---- */

/* Whether the character at `at` is to be stripped: white space, or one of `which`. */
static bool is_stripped(const char *at, size_t left, const jinja_string *which, size_t *size)
{
    int32_t c = qkv_utf8_next(at, left, size);
    if (!which) return c >= 0 && (qkv__is_space(c) || (c >= 0x1C && c <= 0x1F) || c == 0xFEFF);
    return memmem(which->data, which->length, at, *size) != NULL;
}

static size_t begin_of_last(jinja_string s)
{
    size_t at = s.length - 1;
    while (at && ((unsigned char)s.data[at] & 0xC0) == 0x80) at--;
    return at;
}

static jinja_value strip(jinja_string s, bool left, bool right, const jinja_string *which)
{
    size_t size;
    while (left && s.length && is_stripped(s.data, s.length, which, &size)) s.data += size, s.length -= size;
    while (right && s.length) {
        size_t last = begin_of_last(s);
        if (!is_stripped(s.data + last, s.length - last, which, &size)) break;
        s.length = last;
    }
    return jinja_text(s.data, s.length);
}

static qkv_status strip_value(jinja_run *r, jinja_value self, const jinja_arguments *a, bool left, bool right, jinja_value *out)
{
    const jinja_value *given = qkv__jinja_argument(a, 0, "chars");
    jinja_string s, which = { 0 };
    if (self.kind == JINJA_UNDEFINED) self = jinja_text("", 0);
    qkv_status status = qkv__jinja_need_text(r, &self, "what is stripped", &s);
    const bool has_which = given && given->kind != JINJA_NONE;
    if (!status && has_which) status = qkv__jinja_need_text(r, given, "the characters to strip", &which);
    if (!status) *out = strip(s, left, right, has_which ? &which : NULL);
    return status;
}

qkv_status qkv__jinja_trim(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    return strip_value(r, self, a, true, true, out);
}

static qkv_status lstrip(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    return strip_value(r, self, a, true, false, out);
}

static qkv_status rstrip(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    return strip_value(r, self, a, false, true, out);
}

/* ---- beginnings and ends ---- */

static bool has_end(jinja_string s, jinja_string part, bool at_end)
{
    return part.length <= s.length && !memcmp(s.data + (at_end ? s.length - part.length : 0), part.data, part.length);
}

/* A string, or any of several. */
static qkv_status check_end(jinja_run *r, jinja_value self, const jinja_arguments *a, bool at_end, jinja_value *out)
{
    const jinja_value *given = qkv__jinja_argument(a, 0, NULL);
    jinja_string part = { 0 };
    qkv_status status = QKV_OK;
    const bool is_list = given && given->kind == JINJA_LIST;
    bool found = false;
    for (int64_t i = 0; i < (is_list ? given->list->n : 1) && !status && !found; i++) {
        status = qkv__jinja_need_text(r, is_list ? &given->list->items[i] : given, "the beginning or end of a string", &part);
        found = !status && has_end(self.text, part, at_end);
    }
    *out = jinja_boolean(found);
    return status;
}

static qkv_status startswith(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    return check_end(r, self, a, false, out);
}

static qkv_status endswith(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    return check_end(r, self, a, true, out);
}

/* ---- parts ---- */

static qkv_status split_at(jinja_run *r, jinja_string s, jinja_string between, int64_t most, jinja_list *l)
{
    qkv_status status = QKV_OK;
    for (const char *next; most && !status; most -= most > 0) {
        if (!(next = memmem(s.data, s.length, between.data, between.length))) break;
        size_t length = (size_t)(next - s.data);
        status = qkv__jinja_append(&r->memory, l, jinja_text(s.data, length));
        s.data += length + between.length;
        s.length -= length + between.length;
    }
    return status ? status : qkv__jinja_append(&r->memory, l, jinja_text(s.data, s.length));
}

static qkv_status split_words(jinja_run *r, jinja_string s, int64_t most, jinja_list *l)
{
    qkv_status status = QKV_OK;
    size_t size;
    for (s = strip(s, true, false, NULL).text; s.length && most && !status; most -= most > 0) {
        size_t length = 0;
        while (length < s.length && !is_stripped(s.data + length, s.length - length, NULL, &size)) length += size;
        status = qkv__jinja_append(&r->memory, l, jinja_text(s.data, length));
        s = strip((jinja_string){ s.data + length, s.length - length }, true, false, NULL).text;
    }
    return status || !s.length ? status : qkv__jinja_append(&r->memory, l, jinja_text(s.data, s.length));
}

static qkv_status split(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    const jinja_value *given = qkv__jinja_argument(a, 0, "sep"), *most = qkv__jinja_argument(a, 1, "maxsplit");
    jinja_string between = { 0 };
    jinja_list *l = qkv__jinja_list(&r->memory);
    if (!l) return qkv_error_status();
    *out = (jinja_value){ .kind = JINJA_LIST, .list = l };
    if (most && most->kind != JINJA_INTEGER) return JINJA_REFUSE(r, "how often a string is split is a whole number");
    if (!given || given->kind == JINJA_NONE) return split_words(r, self.text, most ? most->whole : -1, l);
    qkv_status status = qkv__jinja_need_text(r, given, "what a string is split at", &between);
    if (!status && !between.length) status = JINJA_REFUSE(r, "a string cannot be split at nothing");
    return status ? status : split_at(r, self.text, between, most ? most->whole : -1, l);
}

static qkv_status splitlines(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    (void)a;
    jinja_list *l = qkv__jinja_list(&r->memory);
    if (!l) return qkv_error_status();
    *out = (jinja_value){ .kind = JINJA_LIST, .list = l };
    if (!self.text.length) return QKV_OK;
    const bool ends = self.text.data[self.text.length - 1] == '\n';
    return split_at(r, (jinja_string){ self.text.data, self.text.length - ends }, (jinja_string){ "\n", 1 }, -1, l);
}

/* ---- other text for some of it ---- */

static qkv_status put_replaced(jinja_string s, jinja_string old, jinja_string new, int64_t most, qkv_buffer *out)
{
    qkv_status status = QKV_OK;
    for (const char *next; most && old.length && !status; most -= most > 0) {
        if (!(next = memmem(s.data, s.length, old.data, old.length))) break;
        size_t length = (size_t)(next - s.data);
        status = qkv__buffer_put(out, s.data, length);
        if (!status) status = qkv__buffer_put(out, new.data, new.length);
        s.data += length + old.length;
        s.length -= length + old.length;
        if (out->length > 2 * (size_t)JINJA_MOST_TEXT) return qkv__fail(QKV_LIMIT, "chat template: a text has too many bytes");
    }
    return status ? status : qkv__buffer_put(out, s.data, s.length);
}

qkv_status qkv__jinja_replace(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    const jinja_value *most = qkv__jinja_argument(a, 2, "count");
    jinja_string s, old, new;
    qkv_status status = qkv__jinja_need_text(r, &self, "what is changed", &s);
    if (!status) status = qkv__jinja_need_text(r, qkv__jinja_argument(a, 0, "old"), "what is replaced", &old);
    if (!status) status = qkv__jinja_need_text(r, qkv__jinja_argument(a, 1, "new"), "what replaces it", &new);
    if (status) return status;
    const size_t from = r->out->length;
    status = put_replaced(s, old, new, most && most->kind == JINJA_INTEGER ? most->whole : -1, r->out);
    return qkv__jinja_take_printed(r, from, status, out);
}

static qkv_status count_parts(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    jinja_string part;
    int64_t n = 0;
    qkv_status status = qkv__jinja_need_text(r, qkv__jinja_argument(a, 0, NULL), "what is counted", &part);
    if (status || !part.length) return *out = jinja_integer(0), status;
    const char *at = self.text.data, *end = at + self.text.length;
    for (; (at = memmem(at, (size_t)(end - at), part.data, part.length)); at += part.length) n++;
    *out = jinja_integer(n);
    return QKV_OK;
}

static qkv_status find_part(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    jinja_string part;
    qkv_status status = qkv__jinja_need_text(r, qkv__jinja_argument(a, 0, NULL), "what is looked for", &part);
    if (status) return status;
    const char *at = memmem(self.text.data, self.text.length, part.data, part.length);
    int64_t n = at ? 0 : -1;
    for (const char *c = self.text.data; at && c < at; c++) n += ((unsigned char)*c & 0xC0) != 0x80;
    *out = jinja_integer(n);
    return QKV_OK;
}

static qkv_status join_method(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    const jinja_value *list = qkv__jinja_argument(a, 0, NULL);
    jinja_arguments by = { .places = { .items = &self, .n = 1 } };
    if (!list) return JINJA_REFUSE(r, "join needs a list");
    return qkv__jinja_named(qkv__jinja_filters, (jinja_string){ "join", 4 })->call(r, *list, &by, out);
}

/* "{} and {}": the arguments one after the other; "{{" and "}}" are braces. */
static qkv_status format(jinja_run *r, jinja_value self, const jinja_arguments *a, jinja_value *out)
{
    const size_t from = r->out->length;
    const jinja_string s = self.text;
    qkv_status status = QKV_OK;
    int64_t next = 0;
    for (size_t i = 0; i < s.length && !status; i++) {
        const bool is_pair = i + 1 < s.length && (s.data[i] == '{' || s.data[i] == '}');
        if (is_pair && s.data[i + 1] == s.data[i]) status = qkv__buffer_put(r->out, &s.data[i++], 1);
        else if (is_pair && s.data[i] == '{' && s.data[i + 1] == '}') {
            const jinja_value *v = qkv__jinja_argument(a, next++, NULL);
            status = v ? qkv__jinja_write(*v, r->out) : JINJA_REFUSE(r, "format has fewer arguments than places");
            i++;
        } else if (s.data[i] == '{') status = JINJA_REFUSE(r, "format knows {} alone");
        else status = qkv__buffer_put(r->out, &s.data[i], 1);
    }
    return qkv__jinja_take_printed(r, from, status, out);
}

const jinja_function qkv__jinja_string_methods[] = {
    { "upper", qkv__jinja_upper },
    { "lower", qkv__jinja_lower },
    { "capitalize", qkv__jinja_capitalize },
    { "title", qkv__jinja_title },
    { "strip", qkv__jinja_trim },
    { "lstrip", lstrip },
    { "rstrip", rstrip },
    { "startswith", startswith },
    { "endswith", endswith },
    { "split", split },
    { "splitlines", splitlines },
    { "replace", qkv__jinja_replace },
    { "count", count_parts },
    { "find", find_part },
    { "join", join_method },
    { "format", format },
    { 0 },
};
