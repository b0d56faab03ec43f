/* score_words.c: how sacreBLEU makes words of text. A tokenizer is a list of replacements and rules that put white space into
 * the text, each applied from left to right to what the one before it left. */
#include "score_words.h"

#include <qkv/data.h>
#include <qkv/unstable/util.h>

#include <string.h>
#include <utf8proc.h>

/* ---- classes of characters ---- */

/* What Python calls white space. */
static bool is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool is_not_space(uint32_t c) { return !is_space(c); }
static bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
static bool is_not_digit(uint32_t c) { return !is_digit(c); }
static bool is_point(uint32_t c) { return c == '.' || c == ','; }
static bool is_dash(uint32_t c) { return c == '-'; }

static bool is_ascii_punctuation(uint32_t c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* Those that are words wherever they stand: not the apostrophe, and not what may be inside a number. */
static bool is_separate(uint32_t c) { return is_ascii_punctuation(c) && c != '\'' && c != '-' && !is_point(c); }

static utf8proc_category_t category(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c); }

static bool is_number(uint32_t c)
{
    utf8proc_category_t of = category(c);
    return of >= UTF8PROC_CATEGORY_ND && of <= UTF8PROC_CATEGORY_NO;
}

static bool is_punctuation(uint32_t c)
{
    utf8proc_category_t of = category(c);
    return of >= UTF8PROC_CATEGORY_PC && of <= UTF8PROC_CATEGORY_PO;
}

static bool is_symbol(uint32_t c)
{
    utf8proc_category_t of = category(c);
    return of >= UTF8PROC_CATEGORY_SM && of <= UTF8PROC_CATEGORY_SO;
}

static bool is_not_number(uint32_t c) { return !is_number(c); }

static bool is_chinese(uint32_t c)
{
    /* A trap that scores depend on: sacreBLEU writes U+20000..U+2A6D6 and U+2F800..U+2FA1D with escapes of four digits, which
     * makes them U+2001..U+2A6D and U+2F81..U+2FA1: general punctuation is split, the rare characters are not. */
    static const uint32_t ranges[][2] = {
        { 0x2001, 0x2A6D }, { 0x2E80, 0x2FDF }, { 0x2FF0, 0x303F }, { 0x3100, 0x312F }, { 0x31A0, 0x31EF },
        { 0x3200, 0x4DB5 }, { 0x4E00, 0x9FBB }, { 0xF900, 0xFA2D }, { 0xFA30, 0xFA6A }, { 0xFA70, 0xFAD9 },
        { 0xFE10, 0xFE1F }, { 0xFE30, 0xFE4F }, { 0xFF00, 0xFFEF },
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

/* ---- lower case ---- */

static uint32_t lower(uint32_t c) { return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c); }

static bool is_cased(uint32_t c)
{
    utf8proc_category_t of = category(c);
    if (of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_LT) return true;
    return lower(c) != c || utf8proc_toupper((utf8proc_int32_t)c) != (utf8proc_int32_t)c || c == 0xAA || c == 0xBA;
}

/* Unicode's Case_Ignorable: accents, format characters, and what may stand inside a word. */
static bool is_case_ignorable(uint32_t c)
{
    static const uint32_t inside_words[] = { '\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                             0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A };
    for (size_t i = 0; i < sizeof inside_words / sizeof *inside_words; i++)
        if (c == inside_words[i]) return true;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
    }
}

/* A capital sigma at the end of a word has a lower case of its own. */
static bool ends_word(const qkv__symbols *s, size_t i)
{
    size_t before = i, after = i + 1;
    while (before > 0 && is_case_ignorable(s->at[before - 1])) before--;
    while (after < s->n && is_case_ignorable(s->at[after])) after++;
    return before > 0 && is_cased(s->at[before - 1]) && !(after < s->n && is_cased(s->at[after]));
}

/* ---- forms of the text ---- */

/* Makes the spare, written meanwhile, the text. */
static qkv_status swap(qkv__score_words *w)
{
    qkv__symbols old = w->text;
    w->text = w->spare;
    w->spare = old;
    return QKV_OK;
}

static qkv_status make_spare(qkv__score_words *w, size_t n)
{
    w->spare.n = 0;
    return qkv__symbols_reserve(&w->spare, n);
}

static void put_code_point(qkv__score_words *w, uint32_t c) { w->spare.at[w->spare.n++] = c; }

static qkv_status make_lowercase(qkv__score_words *w)
{
    enum { CAPITAL_SIGMA = 0x3A3, FINAL_SIGMA = 0x3C2, CAPITAL_DOTTED_I = 0x130, DOT_ABOVE = 0x307 };
    if (make_spare(w, 2 * w->text.n)) return QKV_MEMORY;
    for (size_t i = 0; i < w->text.n; i++) {
        uint32_t c = w->text.at[i];
        put_code_point(w, c == CAPITAL_SIGMA && ends_word(&w->text, i) ? FINAL_SIGMA : c == CAPITAL_DOTTED_I ? 'i' : lower(c));
        if (c == CAPITAL_DOTTED_I) put_code_point(w, DOT_ABOVE);
    }
    return swap(w);
}

static qkv_status too_long(qkv__place place)
{
    return qkv__fail(QKV_LIMIT, "%s %lld has more than %d characters", place.what, (long long)place.number,
                     QKV_SCORE_CHARACTERS);
}

static qkv_status read_characters(qkv__symbols *s, qkv_str text, qkv__place place)
{
    size_t size = text.length, taken;
    if (size > 4 * (size_t)QKV_SCORE_CHARACTERS) return too_long(place);
    if (qkv__symbols_reserve(s, size)) return QKV_MEMORY;
    s->n = 0;
    for (size_t at = 0; at < size; at += taken) {
        int32_t c = qkv_utf8_next(text.data + at, size - at, &taken);
        if (c < 0) return qkv__fail(QKV_FORMAT, "%s %lld: byte %zu is not UTF-8", place.what, (long long)place.number, at + 1);
        if (s->n == QKV_SCORE_CHARACTERS) return too_long(place);
        s->at[s->n++] = (uint32_t)c;
    }
    return QKV_OK;
}

qkv_status qkv__score_words_read(qkv__score_words *w, qkv_str text, bool lowercase, qkv__place place)
{
    qkv_status status = read_characters(&w->text, text, place);
    return status || !lowercase ? status : make_lowercase(w);
}

/* ---- tokenizers ---- */

typedef struct replacement {
    const char *from, *to;
} replacement;

/* Where the characters are of these classes, they are written in this form: 1 and 2 stand for them. */
typedef struct rule {
    bool (*first)(uint32_t c);
    bool (*second)(uint32_t c); /* NULL: the rule is about one character */
    const char *form;
} rule;

static bool starts_with(const uint32_t *text, size_t n, const char *word)
{
    size_t i = 0;
    while (i < n && word[i] && text[i] == (unsigned char)word[i]) i++;
    return !word[i];
}

static qkv_status replace(qkv__score_words *w, const replacement *r)
{
    if (make_spare(w, w->text.n)) return QKV_MEMORY; /* nothing becomes longer */
    for (size_t i = 0; i < w->text.n;) {
        if (starts_with(w->text.at + i, w->text.n - i, r->from)) {
            for (const char *c = r->to; *c; c++) put_code_point(w, (unsigned char)*c);
            i += strlen(r->from);
        } else put_code_point(w, w->text.at[i++]);
    }
    return swap(w);
}

/* Matches do not overlap: after "a." the next may begin at what follows the point, not at the point. */
static qkv_status apply(qkv__score_words *w, const rule *r)
{
    if (make_spare(w, 3 * w->text.n)) return QKV_MEMORY;
    const uint32_t *end = w->text.at + w->text.n;
    for (const uint32_t *c = w->text.at; c < end;) {
        if (r->first(c[0]) && (!r->second || (end - c > 1 && r->second(c[1])))) {
            for (const char *f = r->form; *f; f++) put_code_point(w, *f == ' ' ? ' ' : c[*f - '1']);
            c += r->second ? 2 : 1;
        } else put_code_point(w, *c++);
    }
    return swap(w);
}

static qkv_status replace_all(qkv__score_words *w, const replacement *r)
{
    for (; r->from; r++)
        if (replace(w, r)) return QKV_MEMORY;
    return QKV_OK;
}

static qkv_status apply_all(qkv__score_words *w, const rule *r)
{
    for (; r->first; r++)
        if (apply(w, r)) return QKV_MEMORY;
    return QKV_OK;
}

/* In this order: "&amp;lt;" ends as "<". */
static const replacement entities[] = {
    { "<skipped>", "" }, { "-\n", "" },   { "\n", " " },   { "&quot;", "\"" },
    { "&amp;", "&" },    { "&lt;", "<" }, { "&gt;", ">" }, { 0 },
};
static const rule western[] = {
    { is_separate, NULL, " 1 " },
    { is_not_digit, is_point, "1 2 " },
    { is_point, is_not_digit, " 1 2" },
    { is_digit, is_dash, "1 2 " },
    { 0 },
};
static const rule international[] = {
    { is_not_number, is_punctuation, "1 2 " },
    { is_punctuation, is_not_number, " 1 2" },
    { is_symbol, NULL, " 1 " },
    { 0 },
};
static const rule chinese[] = { { is_chinese, NULL, " 1 " }, { 0 } };
static const rule characters[] = { { is_not_space, NULL, " 1 " }, { 0 } };

/* The rules see neighbours, and the space around a text is one: 13a puts it there, zh takes it away. */
static void trim_end(qkv__symbols *s)
{
    while (s->n > 0 && is_space(s->at[s->n - 1])) s->n--;
}

static qkv_status trim_start(qkv__score_words *w)
{
    size_t start = 0;
    while (start < w->text.n && is_space(w->text.at[start])) start++;
    if (make_spare(w, w->text.n)) return QKV_MEMORY;
    while (start < w->text.n) put_code_point(w, w->text.at[start++]);
    return swap(w);
}

static qkv_status surround(qkv__score_words *w)
{
    if (make_spare(w, w->text.n + 2)) return QKV_MEMORY;
    put_code_point(w, ' ');
    for (size_t i = 0; i < w->text.n; i++) put_code_point(w, w->text.at[i]);
    put_code_point(w, ' ');
    return swap(w);
}

qkv_status qkv__score_words_tokenize(qkv__score_words *w, qkv_score_tokenizer tokenizer)
{
    trim_end(&w->text);
    switch (tokenizer) {
    case QKV_SCORE_TOKENIZER_13A: return replace_all(w, entities) || surround(w) || apply_all(w, western) ? QKV_MEMORY : QKV_OK;
    case QKV_SCORE_TOKENIZER_ZH: return trim_start(w) || apply_all(w, chinese) || apply_all(w, western) ? QKV_MEMORY : QKV_OK;
    case QKV_SCORE_TOKENIZER_CHAR: return apply_all(w, characters);
    case QKV_SCORE_TOKENIZER_INTL: return apply_all(w, international);
    case QKV_SCORE_TOKENIZER_NONE: return QKV_OK;
    }
    return QKV_OK;
}

const char *qkv__tokenizer_name(qkv_score_tokenizer tokenizer)
{
    static const char *const names[] = { "13a", "zh", "char", "intl", "none" };
    return (unsigned)tokenizer < sizeof names / sizeof *names ? names[tokenizer] : NULL;
}

/* ---- words ---- */

/* The next word at or after *at: its length, and *at where it starts. 0 when there is none. */
static size_t next_word(const qkv__symbols *s, size_t *at)
{
    while (*at < s->n && is_space(s->at[*at])) ++*at;
    size_t end = *at;
    while (end < s->n && !is_space(s->at[end])) end++;
    return end - *at;
}

/* One sign at most: at the end, or else at the start. */
qkv_status qkv__score_words_split_punctuation(qkv__score_words *w)
{
    if (make_spare(w, 3 * w->text.n)) return QKV_MEMORY;
    for (size_t at = 0, length; (length = next_word(&w->text, &at)); at += length) {
        const uint32_t *word = w->text.at + at;
        bool at_end = length > 1 && is_ascii_punctuation(word[length - 1]);
        bool at_start = length > 1 && !at_end && is_ascii_punctuation(word[0]);
        for (size_t i = 0; i < length; i++) {
            if ((at_end && i == length - 1) || (at_start && i == 1)) put_code_point(w, ' ');
            put_code_point(w, word[i]);
        }
        put_code_point(w, ' ');
    }
    return swap(w);
}

static uint32_t number(qkv__trie *dictionary, const uint32_t *word, size_t length)
{
    uint32_t node = 0;
    for (size_t i = 0; i < length; i++)
        if (!(node = qkv__trie_child(dictionary, node, word[i]))) return 0;
    return node;
}

qkv_status qkv__score_words_number(qkv__score_words *w, qkv__symbols *numbers)
{
    numbers->n = 0;
    if (qkv__symbols_reserve(numbers, w->text.n)) return QKV_MEMORY;
    for (size_t at = 0, length; (length = next_word(&w->text, &at)); at += length) {
        uint32_t word = number(&w->dictionary, w->text.at + at, length);
        if (!word) return QKV_MEMORY;
        numbers->at[numbers->n++] = word;
    }
    return QKV_OK;
}

qkv_status qkv__score_words_characters(const qkv__score_words *w, qkv__symbols *to)
{
    to->n = 0;
    if (qkv__symbols_reserve(to, w->text.n)) return QKV_MEMORY;
    for (size_t i = 0; i < w->text.n; i++)
        if (!is_space(w->text.at[i])) to->at[to->n++] = w->text.at[i];
    return QKV_OK;
}

void qkv__score_words_free(qkv__score_words *w)
{
    qkv__symbols_free(&w->text);
    qkv__symbols_free(&w->spare);
    qkv__trie_free(&w->dictionary);
}
