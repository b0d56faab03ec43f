/* table.c: how the columns of a table are written: found in its first rows, since files of one ending have several forms. */
#include "table.h"

#include <string.h>
#include <strings.h>

/* ---- separators ---- */

char qkv__separator_of(const char *text)
{
    static const struct {
        const char *name;
        char separator;
    } names[] = { { "tab", '\t' },      { "\t", '\t' }, { "\\t", '\t' }, { "comma", ',' }, { ",", ',' },
                  { "semicolon", ';' }, { ";", ';' },   { "bar", '|' },  { "|", '|' } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i].name)) return names[i].separator;
    return 0;
}

/* ---- rows ---- */

typedef enum field_end { MORE_FIELDS, LAST_FIELD, CUT_FIELD, WRONG_FIELD } field_end;

typedef struct table_start {
    const char *text;
    size_t length;
    bool is_whole;
} table_start;

/* The rows as one separator splits them. */
typedef struct rows_look {
    size_t rows, columns;         /* columns: of the first row */
    unsigned names;               /* a bit for each that the first row has */
    bool is_even;                 /* all rows have as many columns, and quotes follow RFC 4180 */
    bool has_doubled, has_inside; /* inside quotes: a doubled quote; a separator or newline */
} rows_look;

static bool ends_line(const table_start *t, size_t at)
{
    return t->text[at] == '\n' || (t->text[at] == '\r' && at + 1 < t->length && t->text[at + 1] == '\n');
}

/* Scans the field at *at and moves *at past its separator. *field and *length: the bytes without quotes around them. */
static field_end scan_field(const table_start *t, char separator, bool quotes, size_t *at, rows_look *k, const char **field,
                            size_t *length)
{
    const char *text = t->text;
    size_t begin = *at, end = begin;
    if (quotes && text[begin] == '"') {
        for (end++;; end++) {
            const char *quote = memchr(text + end, '"', t->length - end);
            if (!quote) return t->is_whole ? WRONG_FIELD : CUT_FIELD;
            size_t inside = (size_t)(quote - text) - end;
            k->has_inside |= memchr(text + end, '\n', inside) || memchr(text + end, separator, inside);
            end += inside + 1;
            if (end == t->length || text[end] != '"') break;
            k->has_doubled = true;
        }
        *field = text + begin + 1;
        *length = end - begin - 2;
    } else {
        for (; end < t->length && text[end] != separator && !ends_line(t, end); end++)
            if (quotes && text[end] == '"') return WRONG_FIELD;
        *field = text + begin;
        *length = end - begin;
    }
    *at = end;
    if (end == t->length) return t->is_whole ? LAST_FIELD : CUT_FIELD;
    if (text[end] != separator && !ends_line(t, end)) return WRONG_FIELD;
    *at += text[end] == '\r' ? 2 : 1;
    return text[end] == separator ? MORE_FIELDS : LAST_FIELD;
}

static rows_look look_at_rows(const table_start *t, char separator, bool quotes, const char *const *names, int n)
{
    rows_look k = { .is_even = true };
    size_t columns = 0, length;
    const char *field;
    for (size_t at = 0; at < t->length || columns;) {
        if (at < t->length && !columns && ends_line(t, at)) { /* an empty line */
            at += t->text[at] == '\r' ? 2 : 1;
            continue;
        }
        bool is_over = at == t->length; /* an empty field at the end of the file */
        field_end end = !is_over      ? scan_field(t, separator, quotes, &at, &k, &field, &length)
                        : t->is_whole ? LAST_FIELD
                                      : CUT_FIELD;
        if (end == WRONG_FIELD) k.is_even = false;
        if (end == WRONG_FIELD || end == CUT_FIELD) break;
        columns++;
        for (int i = 0; i < n && !k.rows && !is_over; i++)
            if (strlen(names[i]) == length && !memcmp(names[i], field, length)) k.names |= 1u << i;
        if (end == MORE_FIELDS) continue;
        if (!k.rows++) k.columns = columns;
        k.is_even = k.is_even && columns == k.columns;
        columns = 0;
    }
    return k;
}

/* ---- the decision ---- */

static bool has_tab(const table_start *t)
{
    size_t at = 0;
    while (at < t->length && ends_line(t, at)) at++; /* empty lines */
    const char *newline = memchr(t->text + at, '\n', t->length - at);
    return memchr(t->text + at, '\t', newline ? (size_t)(newline - t->text) - at : t->length - at) != NULL;
}

/* A text may begin with a quote and another end with one: where rows are even without quotes, they are read with quotes only if
 * these are doubled, and no line belongs to the one before it. */
static bool tabs_are_quoted(const table_start *t)
{
    rows_look plain = look_at_rows(t, '\t', false, NULL, 0), quoted = look_at_rows(t, '\t', true, NULL, 0);
    if (!quoted.is_even || quoted.columns < 2) return false;
    if (plain.is_even) return quoted.has_doubled && quoted.rows == plain.rows;
    return quoted.has_doubled || quoted.has_inside;
}

qkv__table qkv__detect_table(const char *start, size_t length, bool is_whole, bool is_csv, char given, const char *const *names,
                             int n)
{
    const table_start t = { start, length, is_whole };
    const char *order = is_csv ? ",\t;|" : ";|,";
    qkv__table best = { is_csv ? ',' : '\t', is_csv };
    if (given) best = (qkv__table){ given, is_csv || given != '\t' };
    if (!length) return best;
    int best_points = 0;
    for (const char *c = order; *c && !given && (is_csv || !has_tab(&t)); c++) {
        rows_look k = look_at_rows(&t, *c, true, names, n);
        bool has_names = n && k.names == (1u << n) - 1;
        int points = k.columns < 2 ? 0 : 4 * has_names + 2 * k.is_even + is_csv * (*c == ',');
        if (points > best_points) best = (qkv__table){ *c, true }, best_points = points;
    }
    if (best.separator == '\t' && !is_csv) best.is_quoted = tabs_are_quoted(&t);
    return best;
}

/* ---- headers ---- */

static bool is_among_words(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (!strcasecmp(word, *words)) return true;
    return false;
}

bool qkv__names_texts(const char *word)
{
    static const char *const words[] = { "text",    "texts", "sentence", "sentences",   "sentence1", "sentence2", "review",
                                         "reviews", "title", "content",  "contents",    "document",  "comment",   "comments",
                                         "message", "tweet", "phrase",   "question",    "query",     "premise",   "utterance",
                                         "body",    "post",  "headline", "description", "article",   "abstract",  "email",
                                         "文本",    "句子",  "评论",     "内容",        "正文",      NULL };
    return is_among_words(word, words);
}

bool qkv__names_labels(const char *word)
{
    static const char *const words[] = { "label", "labels", "class",    "category", "sentiment", "target", "tag",
                                         "topic", "intent", "polarity", "rating",   "stars",     "score",  "emotion",
                                         "lang",  "标签",   "类别",     "情感",     NULL };
    return is_among_words(word, words);
}
