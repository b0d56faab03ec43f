/* json_writer.c: writes JSON. */
#include "file.h"

#include <qkv/unstable/util.h>
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IS_ARRAY = 4, HAS_SOME = 8, HAS_KEY = 16, STYLE = 3 }; /* of a level */

static void put(qkv__json_writer *w, const char *text, size_t length)
{
    if (!w->status) w->status = qkv__grow((void **)&w->text, &w->capacity, w->length + length + 1);
    if (w->status) return;
    if (length) memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = '\0';
}

static void put_line_end(qkv__json_writer *w, int depth)
{
    put(w, "\n", 1);
    for (int i = 0; i < depth; i++) put(w, "  ", 2);
}

static bool is_plain(char c) { return (unsigned char)(c - 0x20) < 0x60 && c != '"' && c != '\\'; }

static void put_inside_quotes(qkv__json_writer *w, const char *text, size_t length)
{
    static const char signs[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    for (const char *end = text + length, *next = text; text < end; text = next) {
        char escaped[8];
        bool is_right = true;
        while (next < end && (is_plain(*next) || ((unsigned char)*next >= 0x80 && is_right))) {
            size_t n = qkv__json_character(next, end, &is_right);
            if (is_right) next += n;
        }
        put(w, text, (size_t)(next - text));
        if (next == end) return;
        const char *sign = *next ? memchr(signs, *next, w->long_escapes ? 2 : sizeof signs - 1) : NULL;
        if (!is_right) {
            next += qkv__json_character(next, end, &is_right);
            put(w, "\xEF\xBF\xBD", 3);
            continue;
        }
        if (sign) snprintf(escaped, sizeof escaped, "\\%c", letters[sign - signs]);
        else snprintf(escaped, sizeof escaped, w->long_escapes ? "\\u%04x" : "\\u%04X", *next);
        put(w, escaped, strlen(escaped));
        next++;
    }
}

static void put_quoted(qkv__json_writer *w, const char *text, size_t length)
{
    put(w, "\"", 1);
    put_inside_quotes(w, text, length);
    put(w, "\"", 1);
}

/* ---- replacing a member ----
 * In LINES only members of the outermost object start with a newline, two spaces and a quote: strings escape newlines. */

static char *find_value(const qkv__json_writer *w, const char *key, char **end)
{
    static const char start[] = "\n  \"";
    size_t n = strlen(key);
    char *at = w->status || !w->text ? NULL : strstr(w->text, start);
    while (at && (strncmp(at + 4, key, n) != 0 || strncmp(at + 4 + n, "\": ", 3) != 0)) at = strstr(at + 4, start);
    if (!at) return NULL;
    char *next = strstr(at + 4, start);
    *end = next ? next - 1 : w->text + w->length; /* the comma */
    return at + 4 + n + 3;
}

static void reverse(char *from, char *end)
{
    for (; from < end; from++) {
        char c = *--end;
        *end = *from;
        *from = c;
    }
}

/* Moves the new value from the end of the text to the place of the old one. */
static void replace_value(qkv__json_writer *w)
{
    char *at = w->text + w->old, *added = w->text + w->replacing - w->old_length;
    w->replacing = 0;
    if (w->status) return;
    w->length -= w->old_length;
    memmove(at, at + w->old_length, (size_t)(w->text + w->length - at) + 1);
    reverse(at, added);
    reverse(added, w->text + w->length);
    reverse(at, w->text + w->length);
}

/* ---- values ---- */

/* Separator before a member or element. */
static void put_gap(qkv__json_writer *w)
{
    uint8_t *level = &w->levels[w->depth];
    int style = *level & STYLE;
    bool is_first = !(*level & HAS_SOME);
    *level |= HAS_SOME;
    if (!w->depth) return;
    if (!is_first) put(w, ",", 1);
    if (style == QKV__JSON_LINES) put_line_end(w, w->depth);
    else if (is_first ? style == QKV__JSON_PADDED && !(*level & IS_ARRAY) : style != QKV__JSON_COMPACT) put(w, " ", 1);
}

void qkv__json_put_key(qkv__json_writer *w, const char *key, size_t length)
{
    put_gap(w);
    put_quoted(w, key, length);
    put(w, ": ", (w->levels[w->depth] & STYLE) == QKV__JSON_COMPACT ? 1 : 2);
    w->levels[w->depth] |= HAS_KEY;
}

static void begin_value(qkv__json_writer *w, const char *key)
{
    char *end, *old = key && w->replaces && w->depth == 1 ? find_value(w, key, &end) : NULL;
    if (old) {
        w->old = (size_t)(old - w->text);
        w->old_length = (size_t)(end - old);
        w->replacing = w->length;
    } else if (key) qkv__json_put_key(w, key, strlen(key));
    else if (!(w->levels[w->depth] & HAS_KEY)) put_gap(w);
    w->levels[w->depth] &= (uint8_t)~HAS_KEY;
}

static void end_value(qkv__json_writer *w)
{
    if (w->replacing && w->depth == 1) replace_value(w);
}

static void open_level(qkv__json_writer *w, const char *key, bool is_array)
{
    begin_value(w, key);
    put(w, is_array ? "[" : "{", 1);
    if (w->depth + 1 == (int)sizeof w->levels) w->status = qkv__fail(QKV_LIMIT, "JSON of more than %d levels", w->depth);
    else w->levels[++w->depth] = (uint8_t)(w->style | (is_array ? IS_ARRAY : 0));
}

void qkv__json_open_object(qkv__json_writer *w, const char *key) { open_level(w, key, false); }
void qkv__json_open_array(qkv__json_writer *w, const char *key) { open_level(w, key, true); }

void qkv__json_close(qkv__json_writer *w)
{
    if (!w->depth) return; /* after an error */
    uint8_t level = w->levels[w->depth--];
    bool is_array = level & IS_ARRAY;
    if ((level & STYLE) == QKV__JSON_LINES && (level & HAS_SOME || w->wraps_empty)) put_line_end(w, w->depth);
    if ((level & STYLE) == QKV__JSON_PADDED && level & HAS_SOME && !is_array) put(w, " ", 1);
    put(w, is_array ? "]" : "}", 1);
    end_value(w);
}

void qkv__json_put_raw(qkv__json_writer *w, const char *key, const char *json, size_t length)
{
    begin_value(w, key);
    put(w, json, length);
    end_value(w);
}

bool qkv__json_has(const qkv__json_writer *w, const char *key)
{
    char *end;
    return find_value(w, key, &end);
}

void qkv__json_put_copy(qkv__json_writer *w, const char *key, const char *of)
{
    char *end, *value = find_value(w, of, &end);
    size_t at = value ? (size_t)(value - w->text) : 0, length = value ? (size_t)(end - value) : 0;
    if (!value) {
        qkv__json_put_null(w, key);
        return;
    }
    begin_value(w, key);
    if (!w->status) w->status = qkv__grow((void **)&w->text, &w->capacity, w->length + length + 1);
    if (!w->status) put(w, w->text + at, length); /* no reallocation here: the source is in w->text */
    end_value(w);
}

void qkv__json_put_string(qkv__json_writer *w, const char *key, const char *text, size_t length)
{
    begin_value(w, key);
    put_quoted(w, text, length);
    end_value(w);
}

void qkv__json_put_text(qkv__json_writer *w, const char *key, const char *text)
{
    qkv__json_put_string(w, key, text, strlen(text));
}

void qkv__json_put_int(qkv__json_writer *w, const char *key, int64_t x)
{
    char text[24];
    qkv__json_put_raw(w, key, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)x));
}

void qkv__json_put_bool(qkv__json_writer *w, const char *key, bool x)
{
    qkv__json_put_raw(w, key, x ? "true" : "false", x ? 4 : 5);
}

void qkv__json_put_null(qkv__json_writer *w, const char *key) { qkv__json_put_raw(w, key, "null", 4); }

void qkv__json_put_real(qkv__json_writer *w, const char *key, double x, int digits)
{
    char text[64], *exponent;
    if (!isfinite(x)) {
        qkv__json_put_null(w, key);
        return;
    }
    snprintf(text, sizeof text - 2, "%.*g", digits, x);
    for (char *c = text; *c; c++)
        if (!strchr("0123456789+-e", *c)) *c = '.'; /* some locales write a comma */
    if (!strpbrk(text, ".e")) strcat(text, ".0");
    if ((exponent = strchr(text, 'e'))) { /* 1e-05 becomes 1e-5, 1e+20 becomes 1e20 */
        char *from = exponent + 1, *to = from + (*from == '-');
        from += strspn(from, "+-0");
        memmove(to, from, strlen(from) + 1);
    }
    qkv__json_put_raw(w, key, text, strlen(text));
}

/* Recursion is bounded by QKV__JSON_DEPTH. */
void qkv__json_put_value(qkv__json_writer *w, const char *key, const qkv__json_value *v)
{
    bool is_object = qkv__json_is_object(v);
    switch (qkv__json_type_of(v)) {
    case QKV__JSON_NONE:
    case QKV__JSON_NULL: qkv__json_put_null(w, key); return;
    case QKV__JSON_FALSE:
    case QKV__JSON_TRUE: qkv__json_put_bool(w, key, v->type == QKV__JSON_TRUE); return;
    case QKV__JSON_INT: qkv__json_put_int(w, key, v->of.whole); return;
    case QKV__JSON_REAL: qkv__json_put_real(w, key, v->of.real, w->digits ? w->digits : QKV__JSON_DOUBLE); return;
    case QKV__JSON_STRING: qkv__json_put_string(w, key, v->of.text, v->n); return;
    case QKV__JSON_ARRAY:
    case QKV__JSON_OBJECT: break;
    }
    if (v->is_table) { /* its text starts after the bracket */
        const qkv__json_value *text = v + v->of.children;
        qkv__json_put_raw(w, key, text->of.text - 1, text->n + 1);
        return;
    }
    open_level(w, key, !is_object);
    for (size_t i = 0; i < v->n && !w->status; i++) {
        const qkv__json_value *member = qkv__json_at(v, i);
        if (is_object) qkv__json_put_key(w, qkv__json_key(v, i), (member - 1)->n);
        qkv__json_put_value(w, NULL, member);
    }
    qkv__json_close(w);
}

qkv_status qkv__json_save(qkv__json_writer *w, const char *path)
{
    put(w, "\n", 1);
    qkv_status status = w->status ? w->status : qkv_file_write(path, w->text, w->length);
    qkv__json_writer_free(w);
    return status;
}

void qkv__json_writer_free(qkv__json_writer *w)
{
    qkv__release(w->text, w->capacity);
    *w = (qkv__json_writer){ 0 };
}
