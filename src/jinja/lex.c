/* lex.c: a template as tokens. */
#include "node.h"

#include "../base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    jinja_memory *memory;
    const char *source;
    size_t length, at;
    jinja_place place; /* of `placed` */
    size_t placed;
    int braces;            /* open ones of mappings: "}}" ends none of them */
    bool trims, trims_all; /* what the last tag takes of the text behind it: a newline, or all white space */
    jinja_tokens *out;
} lexer;

qkv_status qkv__jinja_fail(qkv_status status, jinja_place at, const char *format, ...)
{
    char what[QKV_SENTENCE_MAX / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qkv__fail(status, "chat template: line %d, column %d: %s", at.line, at.column, what);
}

/* ---- where it is ---- */

/* Forwards only. */
static jinja_place place_at(lexer *l, size_t at)
{
    for (; l->placed < at; l->placed++) {
        bool is_newline = l->source[l->placed] == '\n';
        l->place.line += is_newline;
        l->place.column = is_newline ? 1 : l->place.column + 1;
    }
    return l->place;
}

static bool is_at(const lexer *l, const char *sign)
{
    size_t length = strlen(sign);
    return l->length - l->at >= length && !memcmp(l->source + l->at, sign, length);
}

static qkv_status add_token(lexer *l, jinja_token t)
{
    jinja_tokens *o = l->out;
    if (o->n == o->room) {
        int64_t room = o->room ? o->room * 2 : 256;
        jinja_token *larger = qkv__jinja_take(l->memory, (size_t)room * sizeof *larger);
        if (!larger) return qkv_error_status();
        if (o->n) memcpy(larger, o->at, (size_t)o->n * sizeof *larger);
        o->at = larger;
        o->room = room;
    }
    o->at[o->n++] = t;
    return QKV_OK;
}

static qkv_status add_span(lexer *l, jinja_token_kind kind, size_t from, size_t to)
{
    return add_token(l, (jinja_token){ .kind = kind, .place = place_at(l, from), .text = { l->source + from, to - from } });
}

/* ---- text between tags ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t'; }
static bool is_white(char c) { return is_blank(c) || (c >= '\n' && c <= '\r'); }

static size_t find_tag(const lexer *l)
{
    for (size_t i = l->at; i + 1 < l->length; i++)
        if (l->source[i] == '{' && strchr("%{#", l->source[i + 1])) return i;
    return l->length;
}

/* What is left of the text in front of a tag. */
static size_t end_of_text(const lexer *l, size_t from, size_t tag)
{
    if (tag >= l->length) return tag;
    char modifier = tag + 2 < l->length ? l->source[tag + 2] : '\0';
    size_t to = tag;
    if (modifier == '-') {
        while (to > from && is_white(l->source[to - 1])) to--;
        return to;
    }
    if (l->source[tag + 1] == '{' || modifier == '+') return tag;
    while (to > from && is_blank(l->source[to - 1])) to--;
    return !to || l->source[to - 1] == '\n' ? to : tag;
}

static qkv_status lex_text(lexer *l)
{
    size_t from = l->at, tag;
    if (l->trims_all)
        while (from < l->length && is_white(l->source[from])) from++;
    else if (l->trims) {
        if (from + 1 < l->length && l->source[from] == '\r' && l->source[from + 1] == '\n') from++;
        if (from < l->length && l->source[from] == '\n') from++;
    }
    l->at = from;
    tag = find_tag(l);
    size_t to = end_of_text(l, from, tag);
    l->at = tag;
    l->trims = l->trims_all = false;
    return to > from ? add_span(l, JINJA_TOKEN_TEXT, from, to) : QKV_OK;
}

/* ---- inside a tag ---- */

static qkv_status skip_comment(lexer *l)
{
    size_t from = l->at;
    for (l->at += 2; l->at < l->length && !is_at(l, "#}"); l->at++) {}
    if (l->at == l->length) return qkv__jinja_fail(QKV_FORMAT, place_at(l, from), "the comment has no end");
    l->trims_all = l->at - from > 2 && l->source[l->at - 1] == '-';
    l->trims = true;
    l->at += 2;
    return QKV_OK;
}

static char unescaped(char c)
{
    static const char from[] = "ntrbfv", to[] = "\n\t\r\b\f\v";
    const char *found = c ? strchr(from, c) : NULL;
    return found ? to[found - from] : c;
}

static qkv_status lex_string(lexer *l)
{
    const size_t from = l->at;
    const char quote = l->source[l->at++];
    size_t end = l->at, length = 0;
    for (; end < l->length && l->source[end] != quote; end++)
        if (l->source[end] == '\\') end++;
    if (end >= l->length) return qkv__jinja_fail(QKV_FORMAT, place_at(l, from), "the string has no end");
    char *text = qkv__jinja_take(l->memory, end - l->at + 1);
    if (!text) return qkv_error_status();
    for (; l->at < end; l->at++) {
        const bool is_escaped = l->source[l->at] == '\\';
        l->at += is_escaped;
        text[length++] = is_escaped ? unescaped(l->source[l->at]) : l->source[l->at];
    }
    l->at++;
    return add_token(
        l, (jinja_token){ .kind = JINJA_TOKEN_LITERAL, .place = place_at(l, from), .value = jinja_text(text, length) });
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* A number behind a point is an index, and has no fraction of its own. */
static qkv_status lex_number(lexer *l)
{
    const jinja_token *before = l->out->n ? &l->out->at[l->out->n - 1] : NULL;
    const bool is_index = before && before->kind == JINJA_TOKEN_SIGN && qkv__jinja_is_word(before->text, ".");
    char digits[64];
    size_t from = l->at;
    while (l->at < l->length && is_digit(l->source[l->at])) l->at++;
    bool is_whole = is_index || l->at + 1 >= l->length || l->source[l->at] != '.' || !is_digit(l->source[l->at + 1]);
    if (!is_whole)
        for (l->at++; l->at < l->length && is_digit(l->source[l->at]); l->at++) {}
    if (l->at - from > 18) return qkv__jinja_fail(QKV_LIMIT, place_at(l, from), "the number has too many digits");
    snprintf(digits, sizeof digits, "%.*s", (int)(l->at - from), l->source + from);
    jinja_value v = jinja_integer(strtoll(digits, NULL, 10));
    if (!is_whole) {
        const char *point = strchr(digits, '.');
        double scale = 1; /* and not strtod(), whose point is that of a locale */
        for (const char *c = point + 1; *c; c++) scale *= 10, v.whole = v.whole * 10 + (*c - '0');
        v = jinja_float((double)v.whole / scale);
    }
    return add_token(l, (jinja_token){ .kind = JINJA_TOKEN_LITERAL, .place = place_at(l, from), .value = v });
}

static qkv_status lex_sign(lexer *l)
{
    static const char *const signs[] = { "**", "//", "<=", ">=", "==", "!=", "(", ")", "{", "}", "[", "]", ",",
                                         ".",  ":",  "|",  "<",  ">",  "+",  "-", "~", "*", "/", "%", "=" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!is_at(l, signs[i])) continue;
        l->braces += *signs[i] == '{' ? 1 : *signs[i] == '}' ? -1 : 0;
        size_t from = l->at;
        l->at += strlen(signs[i]);
        return add_span(l, JINJA_TOKEN_SIGN, from, l->at);
    }
    return qkv__jinja_fail(QKV_FORMAT, place_at(l, l->at), "a character that no expression has");
}

static qkv_status lex_expression_token(lexer *l)
{
    char c = l->source[l->at];
    if (c == '\'' || c == '"') return lex_string(l);
    if (is_digit(c)) return lex_number(l);
    if (!is_letter(c)) return lex_sign(l);
    size_t from = l->at;
    while (l->at < l->length && (is_letter(l->source[l->at]) || is_digit(l->source[l->at]))) l->at++;
    return add_span(l, JINJA_TOKEN_NAME, from, l->at);
}

/* Whether the tag ends here, and with which modifier. */
static bool is_end(const lexer *l, const char *close, char *modifier)
{
    const char *s = l->source + l->at;
    size_t left = l->length - l->at;
    *modifier = left > 2 && (*s == '-' || *s == '+') && !memcmp(s + 1, close, 2) ? *s : '\0';
    return *modifier || (left >= 2 && !memcmp(s, close, 2));
}

static qkv_status lex_tag(lexer *l)
{
    const bool is_statement = is_at(l, "{%");
    const char *close = is_statement ? "%}" : "}}";
    const size_t from = l->at;
    char modifier = '\0';
    qkv_status status = add_span(l, is_statement ? JINJA_TOKEN_OPEN_STATEMENT : JINJA_TOKEN_OPEN_OUTPUT, from, from + 2);
    l->at += 2;
    l->at += l->at < l->length && (l->source[l->at] == '-' || (l->source[l->at] == '+' && is_statement));
    for (l->braces = 0; !status; status = lex_expression_token(l)) {
        while (l->at < l->length && is_white(l->source[l->at])) l->at++;
        if (l->at == l->length) return qkv__jinja_fail(QKV_FORMAT, place_at(l, l->length), "a tag has no end");
        if (l->braces <= 0 && is_end(l, close, &modifier)) break;
    }
    if (status) return status;
    l->at += modifier ? 3 : 2;
    l->trims_all = modifier == '-';
    l->trims = is_statement && modifier != '+';
    return add_span(l, is_statement ? JINJA_TOKEN_CLOSE_STATEMENT : JINJA_TOKEN_CLOSE_OUTPUT, l->at - 2, l->at);
}

qkv_status qkv__jinja_lex(jinja_memory *m, jinja_string source, jinja_tokens *out)
{
    lexer l = { .memory = m, .source = source.data, .length = source.length, .place = { 1, 1 }, .out = out };
    qkv_status status = QKV_OK;
    if (l.length && l.source[l.length - 1] == '\n') l.length--; /* the last newline is the file's */
    *out = (jinja_tokens){ 0 };
    while (l.at < l.length && !status) {
        status = lex_text(&l);
        if (status || l.at == l.length) break;
        status = is_at(&l, "{#") ? skip_comment(&l) : lex_tag(&l);
    }
    return status ? status : add_span(&l, JINJA_TOKEN_END, l.length, l.length);
}
