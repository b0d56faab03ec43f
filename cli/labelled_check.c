/* labelled_check.c: labelled text that is evidently not what it is taken for: a header among the texts, columns the other way
 * round. Such text trains without an error to a model that has learned nothing. */
#include "labelled.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- headers ---- */

static bool is_among_words(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (!strcasecmp(word, *words)) return true;
    return false;
}

static bool names_texts(const char *word)
{
    static const char *const words[] = { "text",    "texts", "sentence", "sentences",   "sentence1", "sentence2", "review",
                                         "reviews", "title", "content",  "contents",    "document",  "comment",   "comments",
                                         "message", "tweet", "phrase",   "question",    "query",     "premise",   "utterance",
                                         "body",    "post",  "headline", "description", "article",   "abstract",  "email",
                                         "文本",    "句子",  "评论",     "内容",        "正文",      NULL };
    return is_among_words(word, words);
}

static bool names_labels(const char *word)
{
    static const char *const words[] = { "label", "labels", "class",    "category", "sentiment", "target", "tag",
                                         "topic", "intent", "polarity", "rating",   "stars",     "score",  "emotion",
                                         "lang",  "标签",   "类别",     "情感",     NULL };
    return is_among_words(word, words);
}

static bool is_header_word(const char *word) { return names_texts(word) || names_labels(word); }

const char *header_hint(const qkv_labelled *x)
{
    return x->line == 1 && (is_header_word(x->label) || is_header_word(x->text)) ? ": if line 1 is a header, give --header"
                                                                                 : "";
}

/* ---- what is seen of the texts ---- */

void look_at_labelled(labelled_look *k, const char *path, const qkv_labelled *x)
{
    k->texts++;
    k->label_bytes += (double)x->label_length;
    k->text_bytes += (double)x->text_length;
    k->spaced += memchr(x->label, ' ', x->label_length) != NULL;
    /* A folder's texts have paths of their own. */
    if (k->texts > 1 || x->line != 1 || strcmp(x->path, path) || strstr(path, ".json")) return;
    k->starts_at_1 = true;
    snprintf(k->first_label, sizeof k->first_label, "%s", x->label);
    snprintf(k->first_text, sizeof k->first_text, "%s", x->text);
}

static bool has_columns(void) { return labelled.label_column || labelled.text_column; }

static const char *swap_hint(void)
{
    return has_columns() ? "--label-column NAME or NUMBER chooses another"
                         : "give --label-column 2 --text-column 1 for text TAB label";
}

static int shown_bytes(const char *label)
{
    size_t length = strlen(label);
    return (int)qkv_utf8_check(label, length < 40 ? length : 40); /* whole characters */
}

static qkv_status many_labels(const labelled_look *k, const label_set *s, const char *path)
{
    return fail(QKV_FORMAT,
                "%s: %lld texts have %d different labels, such as \"%.*s\": is that the label's column? Then --label-column 1 "
                "says so; %s",
                path, (long long)k->texts, s->n, shown_bytes(s->names[0]), s->names[0], swap_hint());
}

/* ---- the verdict ---- */

static qkv_status header_found(const labelled_look *k, const char *path)
{
    if (names_texts(k->first_label) && names_labels(k->first_text) && !has_columns())
        return fail(QKV_FORMAT, "%s: line 1, \"%s TAB %s\", is a header: give --label-column %s --text-column %s", path,
                    k->first_label, k->first_text, k->first_text, k->first_label);
    return fail(QKV_FORMAT, "%s: line 1, \"%s\" with the text \"%s\", is a header: give --header", path, k->first_label,
                k->first_text);
}

/* Not certain: said, and trained all the same. */
static void warn_of_labelled(const labelled_look *k, const label_set *s, const char *path, bool is_alone)
{
    const char *label = k->first_label;
    if (is_alone && (is_header_word(label) || k->texts >= 100))
        fprintf(stderr, "qkv: %s: the label \"%s\" of line 1 occurs nowhere else: if line 1 is a header, give --header\n", path,
                label);
    if (k->label_bytes > k->text_bytes && 2 * k->spaced > k->texts)
        fprintf(stderr, "qkv: %s: the labels are longer than the texts, such as \"%.*s\": %s\n", path, shown_bytes(s->names[0]),
                s->names[0], swap_hint());
    else if (k->texts >= 100 && 4 * (int64_t)s->n > k->texts)
        fprintf(stderr, "qkv: %s: %lld texts have %d different labels, such as \"%.*s\"\n", path, (long long)k->texts, s->n,
                shown_bytes(s->names[0]), s->names[0]);
}

/* Only TSV has its label in a column that nobody named. */
static bool is_guessed(const labelled_look *k) { return !labelled.label_column && (k->starts_at_1 || labelled.header); }

qkv_status check_labelled(const labelled_look *k, const label_set *s, const char *path, bool quiet)
{
    enum { ENOUGH = 20 }; /* fewer texts may well have a label each */
    int first = k->starts_at_1 ? find_label(s, k->first_label) : -1;
    bool is_alone = first >= 0 && s->counts[first] == 1;
    if (is_alone && is_header_word(k->first_text)) return header_found(k, path);
    if (is_guessed(k) && k->texts >= ENOUGH && 2 * (int64_t)s->n > k->texts) return many_labels(k, s, path);
    if (!quiet) warn_of_labelled(k, s, path, is_alone);
    return QKV_OK;
}
