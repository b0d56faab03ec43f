/* sentences.c: where one sentence ends and the next one begins. */
#include "../base/buffer.h"

#include <qkv/unstable/util.h>

#include <string.h>
#include <utf8proc.h>

static bool is_among_code_points(int32_t c, const int32_t *set)
{
    for (; *set; set++)
        if (*set == c) return true;
    return false;
}

static bool is_line_end(int32_t c) { return (c >= 0x0A && c <= 0x0D) || c == 0x85 || c == 0x2028 || c == 0x2029; }

/* Ends a sentence wherever it stands: 。！？ and the narrow 。 */
static bool is_wide_stop(int32_t c)
{
    static const int32_t set[] = { 0x3002, 0xFF01, 0xFF1F, 0xFF61, 0 };
    return is_among_code_points(c, set);
}

/* May end one: . ! ? and an ellipsis, the Arabic question mark and full stop, the danda. */
static bool is_stop(int32_t c)
{
    static const int32_t set[] = { '.', '!', '?', 0x2026, 0x061F, 0x06D4, 0x0964, 0 };
    return is_among_code_points(c, set);
}

/* Right behind a stop belongs to its sentence. Some of these open elsewhere: „so“. */
static bool is_closing(int32_t c)
{
    static const int32_t set[] = { '"',    '\'',   ')',    ']',    '}',    0xBB,   0x2018, 0x2019, 0x201C, 0x201D,
                                   0x203A, 0x3009, 0x300B, 0x300D, 0x300F, 0x3011, 0xFF09, 0xFF3D, 0 };
    return is_among_code_points(c, set);
}

/* May stand before the first letter of a sentence. */
static bool is_opening(int32_t c)
{
    static const int32_t set[] = { '"',    '\'',   '(',    '[',    '{',    '-',    0xA1,   0xAB, 0xBF,
                                   0x2013, 0x2014, 0x2018, 0x201A, 0x201C, 0x201E, 0x2039, 0 };
    return is_among_code_points(c, set);
}

static bool is_ideograph(int32_t c) { return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF) || c >= 0x20000; }

/* ---- a dot that ends no sentence ---- */

typedef struct word {
    const char *text;
    size_t length;
} word;

static bool is_listed(word w, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == w.length && !memcmp(*list, w.text, w.length)) return true;
    return false;
}

/* What goes on with a name or a number behind its dot. What may end a sentence as well (etc., Inc., usw.) is not here. */
static bool is_abbreviation(word w, bool is_before_number)
{
    static const char *const always[] = { "Mr",   "Mrs",  "Ms",   "Mx",     "Dr",  "Dra", "Prof", "St",  "Gen",
                                          "Col",  "Capt", "Lt",   "Sgt",    "Rev", "Hon", "Gov",  "Sen", "Rep",
                                          "Pres", "Mme",  "Mlle", "Messrs", "Hr",  "Fr",  "Sr",   "Sra", "Srta",
                                          "Sig",  "vs",   "cf",   "approx", "ca",  "bzw", "vgl",  NULL };
    static const char *const counting[] = { "No",  "Nos", "Nr",  "Fig", "Figs", "Eq",  "Sec", "Vol", "Ch",   "pp",
                                            "Art", "Abb", "Tab", "Bd",  "Jan",  "Feb", "Mar", "Apr", "Jun",  "Jul",
                                            "Aug", "Sep", "Oct", "Nov", "Dec",  "nos", "fig", "vol", "Sept", NULL };
    return is_listed(w, always) || (is_before_number && is_listed(w, counting));
}

/* An initial, or letters with dots between them: J. as in J. Bach; e.g. or U.S. without the last dot. */
static bool is_initials(word w)
{
    size_t at = 0, bytes;
    while (at < w.length) {
        int32_t c = qkv_utf8_next(w.text + at, w.length - at, &bytes);
        if (c < 0 || utf8proc_category(c) < UTF8PROC_CATEGORY_LU || utf8proc_category(c) > UTF8PROC_CATEGORY_LT) return false;
        at += bytes;
        if (at < w.length && w.text[at++] != '.') return false;
    }
    return w.length > 0;
}

static bool is_number(word w)
{
    for (size_t i = 0; i < w.length; i++)
        if (w.text[i] < '0' || w.text[i] > '9') return false;
    return w.length > 0;
}

/* The word that ends at `end`, without what opens before it. */
static word word_before(const char *text, size_t begin, size_t end)
{
    size_t at = end, bytes;
    while (at > begin && (unsigned char)text[at - 1] > ' ') at--;
    while (at < end && is_opening(qkv_utf8_next(text + at, end - at, &bytes))) at += bytes;
    return (word){ text + at, end - at };
}

static bool is_mere_dot(const char *text, size_t begin, size_t dot, int32_t next)
{
    word w = word_before(text, begin, dot);
    bool is_item = w.text == text + begin && is_number(w); /* "1. Introduction" */
    return is_item || is_initials(w) || is_abbreviation(w, next >= '0' && next <= '9');
}

/* ---- ends ---- */

static size_t pass_over(const char *text, size_t length, size_t at, bool (*is_of)(int32_t c))
{
    for (size_t bytes; at < length && is_of(qkv_utf8_next(text + at, length - at, &bytes));) at += bytes;
    return at;
}

static bool is_any_stop(int32_t c) { return is_stop(c) || is_wide_stop(c); }

/* Whether the sentence from `begin` ends with the stops at `stop`, and what belongs to them, up to `end`. */
static bool ends_here(const char *text, size_t length, size_t begin, size_t stop, size_t end)
{
    size_t bytes, next = pass_over(text, length, end, qkv__is_space);
    if (next == length) return true;
    int32_t first = qkv_utf8_next(text + end, length - end, &bytes);
    if (next == end) return text[stop] != '.' && is_ideograph(first); /* else 3.14, or a.b */
    for (size_t at = end; at < next; at += bytes)
        if (is_line_end(qkv_utf8_next(text + at, length - at, &bytes))) return true;
    next = pass_over(text, length, next, is_opening);
    int32_t letter = qkv_utf8_next(text + next, length - next, &bytes);
    if (letter >= 0 && utf8proc_category(letter) == UTF8PROC_CATEGORY_LL) return false;
    return text[stop] != '.' || end != stop + 1 || !is_mere_dot(text, begin, stop, letter);
}

int qkv_sentence_next(const char *text, size_t length, qkv_span *s)
{
    if (!s || (!text && length)) return 0;
    size_t bytes, at = pass_over(text, length, s->end, qkv__is_space);
    *s = (qkv_span){ at, at };
    while (at < length) {
        int32_t c = qkv_utf8_next(text + at, length - at, &bytes);
        size_t behind = at + bytes;
        if (is_line_end(c)) break;
        if (is_any_stop(c)) {
            behind = pass_over(text, length, pass_over(text, length, at, is_any_stop), is_closing);
            if (is_wide_stop(c) || ends_here(text, length, s->begin, at, behind)) return s->end = behind, 1;
        }
        if (!qkv__is_space(c)) s->end = behind;
        at = behind;
    }
    return s->end > s->begin;
}
