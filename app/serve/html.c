/* html.c: HTML as markup and texts. It is scanned, not parsed: every byte of the markup is given back. */
#include "html.h"

#include "../../src/base/memory.h"
#include "../../src/base/status.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

/* ---- entities ---- */

/* The characters from U+00A0 to U+00FF. */
static const char latin[] = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 "
                            "sup3 acute micro para middot "
                            "cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig "
                            "Ccedil Egrave Eacute Ecirc Euml "
                            "Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute "
                            "Ucirc Uuml Yacute THORN szlig "
                            "agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc "
                            "iuml eth ntilde ograve oacute "
                            "ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml ";
static const struct {
    const char *name;
    int32_t character;
} entities[] = { { "amp", '&' },      { "lt", '<' },        { "gt", '>' },        { "quot", '"' },     { "apos", '\'' },
                 { "ndash", 0x2013 }, { "mdash", 0x2014 },  { "lsquo", 0x2018 },  { "rsquo", 0x2019 }, { "sbquo", 0x201A },
                 { "ldquo", 0x201C }, { "rdquo", 0x201D },  { "bdquo", 0x201E },  { "bull", 0x2022 },  { "hellip", 0x2026 },
                 { "prime", 0x2032 }, { "lsaquo", 0x2039 }, { "rsaquo", 0x203A }, { "euro", 0x20AC },  { "trade", 0x2122 },
                 { "larr", 0x2190 },  { "rarr", 0x2192 },   { "minus", 0x2212 },  { "OElig", 0x0152 }, { "oelig", 0x0153 },
                 { "Scaron", 0x160 }, { "scaron", 0x0161 }, { "ensp", 0x2002 },   { "emsp", 0x2003 },  { "thinsp", 0x2009 },
                 { "zwnj", 0x200C },  { "zwj", 0x200D },    { "lrm", 0x200E },    { "rlm", 0x200F } };

enum { MOST_NAME = 31, NOT_A_CHARACTER = 0xFFFD };

static int32_t named_character(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (strlen(entities[i].name) == length && !memcmp(entities[i].name, name, length)) return entities[i].character;
    int32_t character = 0xA0;
    for (const char *at = latin, *end; *at; at = end + 1, character++) {
        end = strchr(at, ' ');
        if ((size_t)(end - at) == length && !memcmp(at, name, length)) return character;
    }
    return -1;
}

/* The digits of &#65; or &#x41;; -1: they are none. */
static int32_t numbered_character(const char *digits, size_t length)
{
    const bool is_hex = length && (*digits == 'x' || *digits == 'X');
    int32_t value = 0;
    if (length <= is_hex) return -1;
    for (size_t i = is_hex; i < length; i++) {
        const int c = tolower((unsigned char)digits[i]);
        if (!(is_hex ? isxdigit(c) : isdigit(c))) return -1;
        if (value < 0x110000) value = value * (is_hex ? 16 : 10) + (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return !value || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF) ? NOT_A_CHARACTER : value;
}

/* The character of the entity that begins at the "&" of a text, with its length; -1: there is none that is known. */
static int32_t entity_at(const char *text, size_t length, size_t *used)
{
    const char *end = memchr(text, ';', length < MOST_NAME + 2 ? length : MOST_NAME + 2);
    if (!end || end < text + 2) return -1;
    *used = (size_t)(end + 1 - text);
    return text[1] == '#' ? numbered_character(text + 2, *used - 3) : named_character(text + 1, *used - 2);
}

/* An unknown entity is copied: the document has it too. */
qkv_status qkv__html_put_text(qkv_buffer *out, const char *text, size_t length)
{
    qkv_status status = QKV_OK;
    for (size_t at = 0, next; at < length && !status; at = next) {
        for (next = at; next < length && !strchr("&<>", text[next]);) next++;
        if (next < length && !text[next]) next++; /* strchr() finds a NUL */
        status = qkv__buffer_put(out, text + at, next - at);
        if (status || next == length || !strchr("&<>", text[next]) || !text[next]) continue;
        const char c = text[next];
        size_t n = 1;
        while (c == '&' && next + n < length && n <= MOST_NAME && isalnum((unsigned char)text[next + n])) n++;
        const bool is_unknown = n > 1 && next + n < length && text[next + n] == ';' && isalpha((unsigned char)text[next + 1]) &&
                                named_character(text + next + 1, n - 1) < 0;
        if (is_unknown) status = qkv__buffer_put(out, "&", 1);
        else status = c == '&' ? qkv__buffer_put(out, "&amp;", 5) : qkv__buffer_put(out, c == '<' ? "&lt;" : "&gt;", 4);
        next++;
    }
    return status;
}

/* ---- tags ---- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

typedef struct tag {
    const char *name;
    size_t name_length, length;
    bool is_end, is_empty; /* </x>; <x/> */
} tag;

/* Bytes of a comment or a declaration, up to the end of the document if it is not closed. */
static size_t declaration_length(const char *at, size_t left)
{
    const bool is_comment = left >= 4 && !memcmp(at, "<!--", 4);
    const char *end = is_comment ? memmem(at + 4, left - 4, "-->", 3) : memchr(at, '>', left);
    return !end ? left : (size_t)(end - at) + (is_comment ? 3 : 1);
}

/* The tag at a "<"; false: it is text. A quoted value may contain ">". */
static bool read_tag(const char *at, size_t left, tag *x)
{
    *x = (tag){ .is_end = left > 1 && at[1] == '/' };
    size_t i = 1 + x->is_end;
    if (left > 1 && (at[1] == '!' || at[1] == '?')) {
        x->length = declaration_length(at, left);
        return true;
    }
    if (i >= left || !isalpha((unsigned char)at[i])) return false;
    x->name = at + i;
    while (i < left && !is_blank(at[i]) && at[i] != '>' && at[i] != '/') i++;
    x->name_length = (size_t)(at + i - x->name);
    for (char quote = 0; i < left && (quote || at[i] != '>'); i++)
        if (quote ? at[i] == quote : at[i] == '"' || at[i] == '\'') quote = quote ? 0 : at[i];
    x->is_empty = i < left && at[i - 1] == '/';
    x->length = i < left ? i + 1 : left;
    return true;
}

static bool is_named(const tag *x, const char *name)
{
    return x->name && strlen(name) == x->name_length && !strncasecmp(x->name, name, x->name_length);
}

static bool is_one_of(const tag *x, const char *const *names)
{
    while (*names && !is_named(x, *names)) names++;
    return *names;
}

static bool says_no(const tag *x)
{
    static const char key[] = "translate";
    const char *end = x->name + x->length - 1, *at = x->name + x->name_length;
    for (; end - at > (ptrdiff_t)strlen(key); at++) {
        if (!is_blank(*at) || strncasecmp(at + 1, key, strlen(key))) continue;
        const char *value = at + 1 + strlen(key);
        while (value < end && is_blank(*value)) value++;
        if (value == end || *value++ != '=') continue;
        while (value < end && (is_blank(*value) || *value == '"' || *value == '\'')) value++;
        if (end - value >= 2 && !strncasecmp(value, "no", 2) && (end - value == 2 || !isalnum((unsigned char)value[2])))
            return true;
    }
    return false;
}

/* ---- documents ---- */

typedef struct scan {
    qkv__html *h;
    const char *at, *end, *markup; /* markup: its begin */
    tag skipped;                   /* the element whose texts stay; without a name: none */
    int64_t depth;                 /* of elements of its name */
    int64_t kept_lines;            /* elements that line breaks mean something in */
    int64_t most;
} scan;

static qkv_status end_piece(scan *s, const char *markup_end, size_t text, size_t text_length)
{
    qkv__html *h = s->h;
    if (h->n > s->most) return qkv__fail(QKV_LIMIT, "the documents have more than %lld texts between tags", (long long)s->most);
    if (qkv__grow((void **)&h->pieces, &h->bytes, sizeof *h->pieces * ((size_t)h->n + 1))) return QKV_MEMORY;
    h->pieces[h->n++] = (qkv__html_piece){
        .markup = s->markup, .markup_length = (size_t)(markup_end - s->markup), .text = text, .text_length = text_length
    };
    return QKV_OK;
}

/* The text without entities, and where line breaks mean nothing without them. */
static qkv_status put_plain(scan *s, const char *at, const char *end)
{
    qkv_buffer *out = &s->h->texts;
    qkv_status status = QKV_OK;
    while (at < end && !status) {
        const char *next = at;
        size_t used = 1;
        bool has_break = false;
        for (; next < end && is_blank(*next); next++) has_break |= *next == '\n' || *next == '\r';
        if (next > at)
            status = has_break && !s->kept_lines ? qkv__buffer_put(out, " ", 1) : qkv__buffer_put(out, at, (size_t)(next - at));
        else {
            const int32_t c = *at == '&' ? entity_at(at, (size_t)(end - at), &used) : -1;
            next = at + (c < 0 ? 1 : used);
            utf8proc_uint8_t character[4];
            status = c < 0 ? qkv__buffer_put(out, at, 1)
                           : qkv__buffer_put(out, character, (size_t)utf8proc_encode_char(c, character));
        }
        at = next;
    }
    return status;
}

/* The text up to the next tag. White space around it is markup. */
static qkv_status add_text(scan *s, const char *stop)
{
    const char *begin = s->at, *end = stop;
    s->at = stop;
    while (begin < end && is_blank(*begin)) begin++;
    while (end > begin && is_blank(end[-1])) end--;
    if (begin == end || s->skipped.name) return QKV_OK;
    const size_t at = s->h->texts.length;
    qkv_status status = put_plain(s, begin, end);
    if (!status) status = end_piece(s, begin, at, s->h->texts.length - at);
    s->markup = end;
    return status;
}

/* The end tag of <script> and <style>, whose text has no tags; the end of the document if it is missing. */
static const char *raw_end(const scan *s, const tag *x)
{
    for (const char *at = s->at; (at = memchr(at, '<', (size_t)(s->end - at))); at++)
        if ((size_t)(s->end - at) > x->name_length + 1 && at[1] == '/' && !strncasecmp(at + 2, x->name, x->name_length))
            return at;
    return s->end;
}

static void pass_tag(scan *s, const tag *x)
{
    static const char *const kept[] = {
        "address", "applet", "audio", "canvas", "code", "script", "style", "time", "video", NULL
    };
    static const char *const raw[] = { "script", "style", NULL }, *const with_lines[] = { "pre", "textarea", NULL };
    static const char *const empty[] = { "area", "base", "br",    "col",    "embed", "hr",  "img", "input",
                                         "link", "meta", "param", "source", "track", "wbr", NULL };
    s->at += x->length;
    if (!x->name || x->is_empty || is_one_of(x, empty)) return;
    if (is_one_of(x, with_lines))
        s->kept_lines = s->kept_lines + (x->is_end ? -1 : 1) < 0 ? 0 : s->kept_lines + (x->is_end ? -1 : 1);
    if (!x->is_end && is_one_of(x, raw)) s->at = raw_end(s, x);
    const bool is_same = s->skipped.name && s->skipped.name_length == x->name_length &&
                         !strncasecmp(s->skipped.name, x->name, x->name_length);
    if (is_same) s->depth += x->is_end ? -1 : 1;
    else if (!s->skipped.name && !x->is_end && (is_one_of(x, kept) || says_no(x))) s->skipped = *x, s->depth = 1;
    if (s->skipped.name && !s->depth) s->skipped = (tag){ 0 };
}

qkv_status qkv__html_add(qkv__html *h, const char *document, size_t length, int64_t most)
{
    scan s = { .h = h, .at = document, .end = document + length, .markup = document, .most = most };
    qkv_status status = qkv__buffer_put(&h->texts, "", 0);
    while (s.at < s.end && !status) {
        tag x = { 0 };
        const char *stop = s.at;
        while (stop < s.end && (*stop != '<' || !read_tag(stop, (size_t)(s.end - stop), &x))) stop++;
        status = add_text(&s, stop);
        if (!status && stop < s.end) pass_tag(&s, &x);
    }
    return status ? status : end_piece(&s, s.end, h->texts.length, 0);
}

void qkv__html_free(qkv__html *h)
{
    qkv_buffer_free(&h->texts);
    qkv__release(h->pieces, h->bytes);
    *h = (qkv__html){ 0 };
}
