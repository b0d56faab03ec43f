/* json.c: reads JSON. The tree is built on the pull reader. */
#include "json.h"

#include "file.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- characters ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The first byte of a string, or its end, that is not ASCII without escape: below 0x20, a quote, a backslash, or above 0x7F.
 * 8 bytes at a time: a byte sets its high bit in `found` if it is one of these; only bytes after the first one may be wrong. */
static const char *skip_plain(const char *at, const char *end)
{
    const uint64_t ones = 0x0101010101010101u;
    for (; end - at >= 8; at += 8) {
        uint64_t x;
        memcpy(&x, at, 8);
        uint64_t found = ((x - 0x20 * ones) | ((x ^ '"' * ones) - ones) | ((x ^ '\\' * ones) - ones) | x) & 0x80 * ones;
        if (found) return at + __builtin_ctzll(found) / 8; /* little-endian, as io/number.h asserts */
    }
    while (at < end && (unsigned char)(*at - 0x20) < 0x60 && *at != '"' && *at != '\\') at++;
    return at;
}

size_t qkv__json_character(const char *text, const char *end, bool *is_right)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned lead = s[0],
             low = lead == 0xE0   ? 0xA0
                   : lead == 0xF0 ? 0x90
                                  : 0x80,
             high = lead == 0xED   ? 0x9F
                    : lead == 0xF4 ? 0x8F
                                   : 0xBF;
    size_t n = 1, wanted = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4, length = (size_t)(end - text);
    *is_right = lead < 0x80 || (lead >= 0xC2 && lead <= 0xF4);
    for (; *is_right && n < wanted; low = 0x80, high = 0xBF) {
        *is_right = n < length && s[n] >= low && s[n] <= high;
        n += *is_right;
    }
    return n;
}

bool qkv__json_is_utf8(const char *text, size_t length)
{
    bool is_right = true;
    for (const char *end = text + length; text < end && is_right;) text += qkv__json_character(text, end, &is_right);
    return is_right;
}

static size_t put_utf8(uint32_t code, char *to)
{
    if (code < 0x80) return to[0] = (char)code, 1;
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; --i; code >>= 6) to[i] = (char)(0x80 | (code & 0x3F));
    to[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | code);
    return n;
}

/* ---- errors ---- */

static qkv__json_type refuse_at(qkv__json_pull *p, const char *at, const char *why)
{
    const qkv__json_source *s = p->source;
    if (!p->status)
        p->status = qkv__fail(QKV_FORMAT, "%s: line %zu, byte %zu: not JSON: %s", s->name, s->first_line + p->line + 1,
                              s->first_byte + (size_t)(at - s->text), at == p->end ? "it ends too early" : why);
    return QKV__JSON_NONE;
}

static qkv__json_type refuse(qkv__json_pull *p, const char *why) { return refuse_at(p, p->at, why); }

/* ---- strings ---- */

/* Four hex digits; -1 if they are not. */
static int32_t read_unit(const char *at, const char *end)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++, at++) {
        char c = at < end ? *at : 0, letter = (char)(c | 0x20);
        if (is_digit(c)) unit = unit * 16 + (c - '0');
        else if (letter >= 'a' && letter <= 'f') unit = unit * 16 + (letter - 'a' + 10);
        else return -1;
    }
    return unit;
}

static size_t refuse_escape(qkv__json_pull *p, const char *at, const char *why) { return (size_t)refuse_at(p, at, why); }

/* Length of the escape at `at`; 0 with the error set. */
static size_t check_escape(qkv__json_pull *p, const char *at)
{
    const char *end = p->end;
    if (end - at < 2) return refuse_escape(p, end, NULL);
    if (at[1] != 'u') return at[1] && strchr("\"\\/bfnrt", at[1]) ? 2 : refuse_escape(p, at, "an unknown escape");
    int32_t unit = read_unit(at + 2, end);
    if (unit < 0) return refuse_escape(p, at, "\\u without four digits");
    if (!unit && !(p->source->flags & QKV__JSON_NUL)) return refuse_escape(p, at, "\\u0000, which is refused here");
    if (unit < 0xD800 || unit > 0xDFFF) return 6;
    int32_t low = unit < 0xDC00 && end - at > 7 && at[6] == '\\' && at[7] == 'u' ? read_unit(at + 8, end) : -1;
    return low >= 0xDC00 && low <= 0xDFFF ? 12 : refuse_escape(p, at, "half of a surrogate pair");
}

/* The closing quote of a valid string. */
static const char *end_of_string(const char *at, bool *has_escapes)
{
    for (*has_escapes = false; *at != '"'; at++)
        if (*at == '\\') *has_escapes = true, at++;
    return at;
}

/* Validates the string from p->at on and returns its closing quote; NULL with the error set. */
static const char *check_string(qkv__json_pull *p, bool *has_escapes)
{
    const char *at = p->at, *end = p->end;
    *has_escapes = false;
    for (;;) {
        at = skip_plain(at, end);
        if (at == end) return refuse_at(p, at, NULL), NULL;
        if (*at == '"') return at;
        if ((unsigned char)*at < 0x20) return refuse_at(p, at, "a control character in a string"), NULL;
        bool is_escape = *at == '\\', is_right = true;
        size_t n = is_escape ? check_escape(p, at) : qkv__json_character(at, end, &is_right);
        if (!n || !is_right) return refuse_at(p, at, "not UTF-8"), NULL; /* check_escape() has set its error */
        *has_escapes = *has_escapes || is_escape;
        at += n;
    }
}

/* Unescapes a validated string; `to` may be `from`. Returns the length. */
static size_t unescape(const char *from, const char *end, char *to)
{
    static const char signs[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    char *start = to;
    while (from < end) {
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        if (from[1] != 'u') {
            *to++ = meanings[strchr(signs, from[1]) - signs];
            from += 2;
            continue;
        }
        uint32_t code = (uint32_t)read_unit(from + 2, end);
        from += 6;
        if (code >= 0xD800 && code <= 0xDFFF) {
            code = 0x10000 + ((code & 0x3FF) << 10) + ((uint32_t)read_unit(from + 2, end) & 0x3FF);
            from += 6;
        }
        to += put_utf8(code, to);
    }
    return (size_t)(to - start);
}

/* Reads the string at p->at. A tree unescapes it in place, a pull reader into the buffer `which` (0: key, 1: value). */
static bool read_string(qkv__json_pull *p, bool skips, int which, const char **text, size_t *length)
{
    bool has_escapes;
    const char *start = ++p->at, *end = p->is_valid ? end_of_string(start, &has_escapes) : check_string(p, &has_escapes);
    if (!end) return false;
    p->at = end + 1;
    if (skips) return true;
    *text = start;
    *length = (size_t)(end - start);
    char *to = p->in_place ? (char *)(uintptr_t)start : NULL;
    if (has_escapes && !p->in_place) {
        void **memory = (void **)&p->unescaped[which].text;
        if (qkv__grow(memory, &p->unescaped[which].bytes, *length)) return p->status = QKV_MEMORY, false;
        *text = to = p->unescaped[which].text;
    }
    if (has_escapes) *length = unescape(start, end, to);
    if (p->in_place) to[*length] = '\0';
    return true;
}

/* ---- numbers ---- */

enum { DIGITS = 19 }; /* 10^19 - 1 fits into 64 bits */

static double to_double(const qkv__json_pull *p);
/* Adds digits to p->digits, n of which are significant so far; returns the first other byte. */
static const char *read_digits(qkv__json_pull *p, const char *at, int *n, bool is_fraction)
{
    uint64_t digits = p->digits;
    for (; at < p->end && is_digit(*at); at++)
        if (*n < DIGITS) {
            digits = digits * 10 + (uint64_t)(*at - '0');
            p->exponent -= is_fraction;
            *n += digits != 0;
        } else {
            p->is_cut = p->is_cut || *at != '0';
            p->exponent += !is_fraction;
        }
    p->digits = digits;
    return at;
}

static qkv__json_type read_number(qkv__json_pull *p)
{
    const char *at = p->at, *end = p->end;
    bool has_point = false, has_exponent = false;
    int n = 0;
    p->text = at;
    p->digits = 0;
    p->exponent = 0;
    p->is_cut = false;
    p->is_negative = *at == '-';
    at += p->is_negative;
    if (at == end || !is_digit(*at))
        return refuse_at(p, at, p->is_negative ? "a minus without a number" : "a value is expected");
    if (*at == '0' && at + 1 < end && is_digit(at[1])) return refuse_at(p, at, "a number that begins with 0");
    at = read_digits(p, at, &n, false);
    if (at < end && *at == '.') {
        has_point = true;
        if (++at == end || !is_digit(*at)) return refuse_at(p, at, "a decimal point without digits");
        at = read_digits(p, at, &n, true);
    }
    if (at < end && (*at | 0x20) == 'e') {
        int64_t exponent = 0;
        bool below = ++at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) at++;
        if (at == end || !is_digit(*at)) return refuse_at(p, at, "an exponent without digits");
        for (; at < end && is_digit(*at); at++)
            if (exponent < INT64_C(1000000000000)) exponent = exponent * 10 + (*at - '0');
        p->exponent += below ? -exponent : exponent;
        has_exponent = true;
    }
    p->length = (size_t)(at - p->text);
    if (!has_point && !has_exponent) {
        uint64_t most = (uint64_t)INT64_MAX + p->is_negative;
        if (p->exponent || p->digits > most) return refuse(p, "a whole number of more than 64 bits");
        p->whole = p->is_negative ? (int64_t)-p->digits : (int64_t)p->digits;
    } else if (p->exponent + n > 308 && !isfinite(to_double(p))) return refuse(p, "a number beyond a double");
    p->at = at;
    return has_point || has_exponent ? QKV__JSON_REAL : QKV__JSON_INT;
}

/* Without a decimal point, which depends on the locale. The midpoint of two doubles has at most 767 digits; of further digits
 * it only matters whether one is nonzero. */
static double real_by_strtod(const qkv__json_pull *p)
{
    enum { MOST = 800 };
    char text[MOST + 64];
    int64_t exponent = p->exponent;
    size_t n = 0;
    if (!p->is_cut) n = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)p->digits);
    else {
        bool has_rest = false;
        for (size_t i = 0; i < p->length && (p->text[i] | 0x20) != 'e'; i++) {
            if (!is_digit(p->text[i]) || (!n && p->text[i] == '0')) continue;
            if (n < MOST) text[n++] = p->text[i];
            else has_rest = has_rest || p->text[i] != '0';
        }
        exponent -= (int64_t)n - DIGITS;
        if (has_rest) text[n++] = '1', exponent--;
    }
    snprintf(text + n, sizeof text - n, "e%lld", (long long)exponent);
    return strtod(text, NULL);
}

static double to_double(const qkv__json_pull *p)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    double x = (double)p->digits;
    bool is_exact = !p->is_cut && p->digits <= UINT64_C(1) << 53 && p->exponent >= -22 && p->exponent <= 22;
    /* Both operands are exact, so one operation rounds correctly. */
    if (is_exact && FLT_EVAL_METHOD == 0) x = p->exponent < 0 ? x / powers[-p->exponent] : x * powers[p->exponent];
    else if (p->digits) x = real_by_strtod(p);
    return p->is_negative ? -x : x;
}

double qkv__json_real(const qkv__json_pull *p) { return p->type == QKV__JSON_INT ? (double)p->whole : to_double(p); }

/* ---- values ---- */

static void skip_space(qkv__json_pull *p)
{
    const char *at = p->at, *end = p->end;
    for (; at < end && (unsigned char)*at <= ' '; at++) {
        if (*at == '\n') p->line++;
        else if (*at != ' ' && *at != '\t' && *at != '\r') break;
    }
    p->at = at;
}

static bool in_object(const qkv__json_pull *p) { return p->objects[(p->depth - 1) / 64] >> (p->depth - 1) % 64 & 1; }

static void set_level(qkv__json_pull *p, bool is_object)
{
    uint64_t *levels = &p->objects[p->depth / 64], bit = UINT64_C(1) << p->depth % 64;
    *levels = is_object ? *levels | bit : *levels & ~bit;
    p->depth++;
    p->is_first = true;
}

static qkv__json_type read_word(qkv__json_pull *p, const char *word, qkv__json_type type)
{
    size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n)) return refuse(p, "a value is expected");
    p->at += n;
    return type;
}

static qkv__json_type read_value(qkv__json_pull *p, bool skips)
{
    if (p->at == p->end) return refuse(p, NULL);
    switch (*p->at) {
    case '"': return read_string(p, skips, 1, &p->text, &p->length) ? QKV__JSON_STRING : QKV__JSON_NONE;
    case 'n': return read_word(p, "null", QKV__JSON_NULL);
    case 't': return read_word(p, "true", QKV__JSON_TRUE);
    case 'f': return read_word(p, "false", QKV__JSON_FALSE);
    case '[':
    case '{':
        if (p->depth == QKV__JSON_DEPTH) return refuse(p, "too many levels");
        set_level(p, *p->at++ == '{');
        return in_object(p) ? QKV__JSON_OBJECT : QKV__JSON_ARRAY;
    default: return read_number(p);
    }
}

/* The next value at this level, or NONE at its end. Arrays and objects are entered. */
static qkv__json_type step(qkv__json_pull *p, bool skips)
{
    skip_space(p);
    p->key = NULL;
    if (!p->depth) {
        bool is_over = p->is_done;
        p->is_done = true;
        if (!is_over) return read_value(p, skips);
        return p->at < p->end ? refuse(p, "text after the end") : QKV__JSON_NONE;
    }
    bool is_object = in_object(p), is_first = p->is_first;
    p->is_first = false;
    if (p->at < p->end && *p->at == (is_object ? '}' : ']')) {
        p->at++;
        p->depth--;
        return QKV__JSON_NONE;
    }
    if (!is_first) {
        if (p->at == p->end || *p->at != ',')
            return refuse(p, is_object ? "a comma or } is expected" : "a comma or ] is expected");
        p->at++;
        skip_space(p);
    }
    if (is_object) {
        if (p->at == p->end || *p->at != '"') return refuse(p, "a key is expected");
        if (!read_string(p, skips, 0, &p->key, &p->key_length)) return QKV__JSON_NONE;
        skip_space(p);
        if (p->at == p->end || *p->at != ':') return refuse(p, "a colon is expected");
        p->at++;
        skip_space(p);
    }
    return read_value(p, skips);
}

/* Skips the rest of the innermost array or object; returns the number of its elements or members. */
static size_t skip_rest(qkv__json_pull *p)
{
    size_t n = 0;
    for (int depth = p->depth, before; (before = p->depth) >= depth && !p->status;) n += step(p, true) && before == depth;
    return n;
}

void qkv__json_pull_begin(qkv__json_pull *p, const qkv__json_source *source)
{
    *p = (qkv__json_pull){ .source = source, .at = source->text, .end = source->text + source->length };
}

qkv__json_type qkv__json_next(qkv__json_pull *p)
{
    if (p->is_open) {
        p->is_open = false;
        skip_rest(p);
    }
    if (p->status) return p->type = QKV__JSON_NONE;
    p->type = step(p, false);
    if (p->status) p->type = QKV__JSON_NONE;
    p->is_open = p->type >= QKV__JSON_ARRAY;
    return p->type;
}

void qkv__json_enter(qkv__json_pull *p) { p->is_open = false; }

qkv_status qkv__json_pull_end(qkv__json_pull *p)
{
    for (int i = 0; i < 2; i++) {
        qkv__release(p->unescaped[i].text, p->unescaped[i].bytes);
        p->unescaped[i].text = NULL;
    }
    return p->status;
}

/* ---- making a tree ---- */

enum { FEW = 16 }; /* linear search up to 16 members */

/* Values stay on the stack until their array or object ends, and are then moved to consecutive nodes. */
typedef struct builder {
    qkv__json_pull p;
    qkv__json_value *stack, *nodes;
    size_t n_stack, stack_bytes, n_nodes, nodes_bytes;
    int depth;
    bool has_nul;
    uint32_t open[QKV__JSON_DEPTH]; /* stack indices of the open arrays and objects */
} builder;

static qkv_status push(builder *b, qkv__json_value v)
{
    if (qkv__grow((void **)&b->stack, &b->stack_bytes, (b->n_stack + 1) * sizeof v)) return QKV_MEMORY;
    b->stack[b->n_stack++] = v;
    return QKV_OK;
}

static qkv_status push_string(builder *b, const char *text, size_t length)
{
    if (b->p.source->flags & QKV__JSON_NUL) b->has_nul = b->has_nul || memchr(text, '\0', length);
    return push(b, (qkv__json_value){ .type = QKV__JSON_STRING, .n = (uint32_t)length, .of.text = text });
}

/* Moves a value to node `to` and makes the index of its children relative. */
static void place(builder *b, size_t to, qkv__json_value v)
{
    if (v.type >= QKV__JSON_ARRAY) v.of.children -= (ptrdiff_t)to;
    b->nodes[to] = v;
}

static int compare_keys(const char *a, size_t a_length, const qkv__json_value *b)
{
    if (a_length != b->n) return a_length < b->n ? -1 : 1;
    return memcmp(a, b->of.text, a_length);
}

/* Among equal keys the last one sorts first, so that lookups find it. */
static bool goes_before(const qkv__json_value *members, uint32_t a, uint32_t b)
{
    int order = compare_keys(members[2 * a].of.text, members[2 * a].n, &members[2 * b]);
    return order ? order < 0 : a > b;
}

/* Heapsort: no allocation, O(n log n) for any input. */
static void sort_keys(const qkv__json_value *members, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    for (uint32_t end = n, begin = n / 2; end > 1;) {
        if (begin) begin--;
        else {
            uint32_t first = order[0];
            order[0] = order[--end];
            order[end] = first;
        }
        for (uint32_t at = begin, child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && goes_before(members, order[child], order[child + 1])) child++;
            if (!goes_before(members, order[at], order[child])) break;
            uint32_t moved = order[at];
            order[at] = order[child];
            order[child] = moved;
        }
    }
}

static qkv_status refuse_key(builder *b, const qkv__json_value *key)
{
    char why[256];
    if (b->p.source->flags & QKV__JSON_REPEATED) return QKV_OK;
    snprintf(why, sizeof why, "duplicate key \"%.200s\"", key->of.text);
    refuse_at(&b->p, key->of.text, why);
    return b->p.status;
}

/* Rejects duplicate keys of a completed object; sorts the keys of a large one. */
static qkv_status check_keys(builder *b, const qkv__json_value *members, uint32_t n)
{
    qkv_status status = QKV_OK;
    if (n > FEW) {
        uint32_t *order = (uint32_t *)(uintptr_t)(members + 2 * (size_t)n);
        sort_keys(members, order, n);
        for (uint32_t i = 1; i < n && !status; i++) {
            const qkv__json_value *key = &members[2 * order[i - 1]];
            if (!compare_keys(key->of.text, key->n, &members[2 * order[i]])) status = refuse_key(b, key);
        }
        return status;
    }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = 0; k < i && !status; k++)
            if (!compare_keys(members[2 * i].of.text, members[2 * i].n, &members[2 * k]))
                status = refuse_key(b, &members[2 * i]);
    return status;
}

static qkv_status close_level(builder *b)
{
    uint32_t at = b->open[--b->depth];
    size_t n = b->n_stack - at - 1, begin = b->n_nodes, members = b->stack[at].type == QKV__JSON_OBJECT ? n / 2 : 0;
    size_t order = members > FEW ? (members + 3) / 4 : 0; /* nodes for the key order */
    if (qkv__grow((void **)&b->nodes, &b->nodes_bytes, (begin + n + order) * sizeof *b->nodes)) return QKV_MEMORY;
    for (size_t i = 0; i < n; i++) place(b, begin + i, b->stack[at + 1 + i]);
    b->n_nodes += n + order;
    b->n_stack = at + 1;
    b->stack[at].n = (uint32_t)(members ? members : n);
    b->stack[at].of.children = (ptrdiff_t)begin;
    return members ? check_keys(b, b->nodes + begin, (uint32_t)members) : QKV_OK;
}

static bool is_table(const builder *b)
{
    const qkv__json_pull *p = &b->p;
    for (const char *const *name = p->source->tables; name && *name && p->key; name++)
        if (strlen(*name) == p->key_length && !memcmp(*name, p->key, p->key_length)) return true;
    return false;
}

/* The child of a table is one node that holds its text. */
static qkv_status push_table(builder *b, qkv__json_type type)
{
    const char *begin = b->p.at;
    size_t n = skip_rest(&b->p);
    b->p.is_open = false;
    if (b->p.status) return b->p.status;
    if (qkv__grow((void **)&b->nodes, &b->nodes_bytes, (b->n_nodes + 1) * sizeof *b->nodes)) return QKV_MEMORY;
    b->nodes[b->n_nodes++] = (qkv__json_value){ .n = (uint32_t)(b->p.at - begin), .of.text = begin };
    return push(b, (qkv__json_value){
                       .type = (uint8_t)type, .is_table = true, .n = (uint32_t)n, .of.children = (ptrdiff_t)b->n_nodes - 1 });
}

static qkv_status push_value(builder *b, qkv__json_type type)
{
    const qkv__json_pull *p = &b->p;
    qkv__json_value v = { .type = (uint8_t)type };
    qkv_status status = p->key ? push_string(b, p->key, p->key_length) : QKV_OK;
    if (status) return status;
    if (type == QKV__JSON_STRING) return push_string(b, p->text, p->length);
    if (type == QKV__JSON_INT) v.of.whole = p->whole;
    if (type == QKV__JSON_REAL) v.of.real = qkv__json_real(p);
    if (type < QKV__JSON_ARRAY) return push(b, v);
    if (is_table(b)) return push_table(b, type);
    qkv__json_enter(&b->p);
    b->open[b->depth++] = (uint32_t)b->n_stack;
    return push(b, v);
}

static qkv_status build(builder *b)
{
    qkv_status status = QKV_OK;
    for (;;) {
        qkv__json_type type = qkv__json_next(&b->p);
        if (b->p.status) return b->p.status;
        if (type) status = push_value(b, type);
        else if (b->depth) status = close_level(b);
        else break;
        if (status) return status;
    }
    if (qkv__grow((void **)&b->nodes, &b->nodes_bytes, (b->n_nodes + 1) * sizeof *b->nodes)) return QKV_MEMORY;
    place(b, b->n_nodes, b->stack[0]);
    return QKV_OK;
}

/* Parses in place: the text is modified. */
static qkv_status parse_own(const qkv__json_source *source, qkv__json_doc *out)
{
    builder *b;
    if (source->length >= UINT32_MAX)
        return qkv__fail(QKV_LIMIT, "%s: JSON of %zu bytes: at most 4 GiB are read", source->name, source->length);
    if (!(b = qkv__alloc_zero(sizeof *b))) return QKV_MEMORY;
    qkv__json_pull_begin(&b->p, source);
    b->p.in_place = true;
    qkv_status status = build(b);
    qkv__json_pull_end(&b->p);
    qkv__release(b->stack, b->stack_bytes);
    if (!status) {
        out->top = b->nodes + b->n_nodes;
        out->nodes = b->nodes;
        out->nodes_bytes = b->nodes_bytes;
        out->has_nul = b->has_nul;
    } else qkv__release(b->nodes, b->nodes_bytes);
    qkv__release(b, sizeof *b);
    return status;
}

qkv_status qkv__json_parse(const qkv__json_source *source, qkv__json_doc *out)
{
    *out = (qkv__json_doc){ .text_bytes = source->length + 1 };
    if (!(out->text = qkv__alloc(out->text_bytes))) return QKV_MEMORY;
    if (source->length) memcpy(out->text, source->text, source->length);
    out->text[source->length] = '\0';
    qkv__json_source own = *source;
    own.text = out->text;
    qkv_status status = parse_own(&own, out);
    if (status) qkv__json_free(out);
    return status;
}

qkv_status qkv__json_load(const char *path, size_t limit, qkv__json_doc *out)
{
    qkv__bytes file;
    *out = (qkv__json_doc){ 0 };
    qkv_status status = qkv__file_read(path, limit, &file);
    if (status) return status;
    status = qkv__json_parse(&(qkv__json_source){ .name = path, .text = (const char *)file.data, .length = file.size }, out);
    qkv__bytes_free(&file);
    return status;
}

void qkv__json_free(qkv__json_doc *doc)
{
    qkv__release(doc->text, doc->text_bytes);
    qkv__release(doc->nodes, doc->nodes_bytes);
    *doc = (qkv__json_doc){ 0 };
}

void qkv__json_pull_table(qkv__json_pull *p, const qkv__json_source *source, const qkv__json_value *table)
{
    *p = (qkv__json_pull){ .source = source, .is_done = true, .is_valid = true };
    if (!table || !table->is_table) return;
    const qkv__json_value *text = table + table->of.children;
    p->at = text->of.text;
    p->end = p->at + text->n;
    set_level(p, table->type == QKV__JSON_OBJECT);
}

/* ---- looking at a tree ---- */

static const qkv__json_value *children(const qkv__json_value *v) { return v + v->of.children; }

const qkv__json_value *qkv__json_at(const qkv__json_value *v, size_t i)
{
    if (i >= qkv__json_size(v) || v->is_table) return NULL;
    return children(v) + (v->type == QKV__JSON_OBJECT ? 2 * i + 1 : i);
}

const char *qkv__json_key(const qkv__json_value *object, size_t i)
{
    return qkv__json_is_object(object) && i < object->n && !object->is_table ? children(object)[2 * i].of.text : NULL;
}

size_t qkv__json_find(const qkv__json_value *object, const char *key, size_t length)
{
    if (!qkv__json_is_object(object) || object->is_table) return SIZE_MAX;
    const qkv__json_value *members = children(object);
    size_t n = object->n;
    if (n <= FEW) {
        while (n-- > 0)
            if (!compare_keys(key, length, &members[2 * n])) return n;
        return SIZE_MAX;
    }
    const uint32_t *order = (const uint32_t *)(members + 2 * n);
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_keys(key, length, &members[2 * order[middle]]) > 0) low = middle + 1;
        else high = middle;
    }
    return low < n && !compare_keys(key, length, &members[2 * order[low]]) ? order[low] : SIZE_MAX;
}

const qkv__json_value *qkv__json_get(const qkv__json_value *object, const char *key)
{
    return qkv__json_at(object, qkv__json_find(object, key, strlen(key)));
}

double qkv__json_number(const qkv__json_value *v)
{
    return qkv__json_is_int(v) ? (double)v->of.whole : qkv__json_type_of(v) == QKV__JSON_REAL ? v->of.real : 0;
}

bool qkv__json_equal(const qkv__json_value *a, const qkv__json_value *b)
{
    qkv__json_type type = qkv__json_type_of(a);
    if (type != qkv__json_type_of(b)) return false;
    if (type == QKV__JSON_INT) return a->of.whole == b->of.whole;
    if (type == QKV__JSON_REAL) return !(a->of.real < b->of.real) && !(a->of.real > b->of.real);
    if (type == QKV__JSON_STRING) return !compare_keys(a->of.text, a->n, b);
    if (qkv__json_size(a) != qkv__json_size(b)) return false;
    if (type >= QKV__JSON_ARRAY && (a->is_table || b->is_table))
        return a->is_table && b->is_table && !compare_keys(children(a)->of.text, children(a)->n, children(b));
    for (size_t i = 0; i < qkv__json_size(a); i++) {
        size_t mine = i, other = i;
        if (type == QKV__JSON_OBJECT) { /* of a key that is there twice the last counts */
            const qkv__json_value *key = &children(a)[2 * i];
            mine = qkv__json_find(a, key->of.text, key->n);
            other = qkv__json_find(b, key->of.text, key->n);
            if (mine != i) continue; /* repeated: the last one is compared */
        }
        if (!qkv__json_equal(qkv__json_at(a, mine), qkv__json_at(b, other))) return false;
    }
    return true;
}
