/* labels.c: the names of classes; and labelled text that is evidently not what it is taken for: a header among the texts,
 * columns the other way round. Such text trains without an error to a model that has learned nothing. */
#include "labels.h"

#include <qkv/unstable/util.h>

#include "../term/translator.h"
#include "../../src/base/memory.h"
#include "../../src/data/label_list.h"
#include "../../src/data/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* Where a name is, or would be. */
static int place_of_label(const qkv__label_set *s, const char *name)
{
    int from = 0, to = s->n;
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (strcmp(s->names[middle], name) < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

int qkv__label_find(const qkv__label_set *s, const char *name)
{
    int at = place_of_label(s, name);
    return at < s->n && !strcmp(s->names[at], name) ? at : -1;
}

static qkv_status insert_label(qkv__label_set *s, const char *name)
{
    size_t n = (size_t)s->n + 1;
    qkv_status status = qkv__grow((void **)&s->names, &s->names_bytes, n * sizeof *s->names);
    if (!status) status = qkv__grow((void **)&s->counts, &s->counts_bytes, n * sizeof *s->counts);
    char *copy = status ? NULL : qkv__copy_text(name);
    if (!copy) return qkv_error_status();
    int at = place_of_label(s, name);
    memmove(s->names + at + 1, s->names + at, sizeof *s->names * (size_t)(s->n - at));
    memmove(s->counts + at + 1, s->counts + at, sizeof *s->counts * (size_t)(s->n - at));
    s->names[at] = copy;
    s->counts[at] = 1;
    s->n++;
    return QKV_OK;
}

qkv_status qkv__label_add(qkv__label_set *s, const char *name)
{
    int at = qkv__label_find(s, name);
    if (at < 0) return insert_label(s, name);
    s->counts[at]++;
    return QKV_OK;
}

/* ---- names that differ only in case or white space ---- */

typedef struct qkv__label_key {
    char *text;
    int class_id;
} label_key;

static int by_key(const void *a, const void *b)
{
    const label_key *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->class_id > y->class_id) - (x->class_id < y->class_id);
}

static void free_keys(qkv__label_set *s)
{
    for (int i = 0; i < s->n_keys; i++) qkv__release_text(s->keys[i].text);
    qkv__release(s->keys, s->keys_bytes);
    s->keys = NULL;
    s->n_keys = 0;
    s->keys_bytes = 0;
}

static qkv_status make_keys(qkv__label_set *s)
{
    qkv_buffer key = { 0 };
    free_keys(s);
    qkv_status status = qkv__grow((void **)&s->keys, &s->keys_bytes, ((size_t)s->n + 1) * sizeof *s->keys);
    for (int i = 0; i < s->n && !status; i++) {
        if ((status = qkv__label_key(s->names[i], &key))) break;
        s->keys[i] = (label_key){ qkv__copy_text(key.data), i };
        if (s->keys[i].text) s->n_keys++;
        else status = QKV_MEMORY;
    }
    qkv_buffer_free(&key);
    if (!status) qsort(s->keys, (size_t)s->n_keys, sizeof *s->keys, by_key);
    return status;
}

/* Adds a group of names, keys[from] to keys[to - 1], to the list. */
static void put_group(const qkv__label_set *s, int from, int to, char list[512])
{
    enum { SHOWN = 3 };
    for (int i = from; i < to && i < from + SHOWN; i++) {
        int c = s->keys[i].class_id;
        size_t used = strlen(list);
        snprintf(list + used, 512 - used, "%s\"%.40s\" (%lld)",
                 i > from ? ", "
                 : used   ? "; "
                          : "",
                 s->names[c], (long long)s->counts[c]);
    }
    size_t used = strlen(list);
    if (to - from > SHOWN) snprintf(list + used, 512 - used, ", ...");
}

/* The names of keys[from] to keys[to - 1] become the one that occurs most often: of the others, counts are -1. */
static void join_group(qkv__label_set *s, int from, int to)
{
    int best = s->keys[from].class_id;
    int64_t all = 0;
    for (int i = from; i < to; i++) {
        int c = s->keys[i].class_id;
        all += s->counts[c];
        if (s->counts[c] > s->counts[best]) best = c;
    }
    for (int i = from; i < to; i++) s->counts[s->keys[i].class_id] = -1;
    s->counts[best] = all;
}

qkv_status qkv__labels_alike(qkv__label_set *s, bool merges, int *alike, char list[512])
{
    enum { GROUPS = 3 };
    int groups = 0, kept = 0;
    *alike = 0;
    *list = '\0';
    qkv_status status = make_keys(s);
    for (int from = 0, to; from < s->n_keys && !status; from = to) {
        for (to = from + 1; to < s->n_keys && !strcmp(s->keys[to].text, s->keys[from].text);) to++;
        if (to - from < 2) continue;
        *alike += to - from;
        if (groups++ < GROUPS) put_group(s, from, to, list);
        if (merges) join_group(s, from, to);
    }
    if (groups > GROUPS) snprintf(list + strlen(list), 512 - strlen(list), "; ...");
    for (int i = 0; i < s->n && !status; i++) {
        if (s->counts[i] < 0) {
            qkv__release_text(s->names[i]);
            continue;
        }
        s->names[kept] = s->names[i];
        s->counts[kept++] = s->counts[i];
    }
    if (!status) s->n = kept;
    if (!status && merges) return make_keys(s);
    free_keys(s);
    return status;
}

qkv_status qkv__label_match(const qkv__label_set *s, const char *name, int *class_id)
{
    *class_id = qkv__label_find(s, name);
    if (*class_id >= 0 || !s->n_keys) return QKV_OK;
    qkv_buffer key = { 0 };
    qkv_status status = qkv__label_key(name, &key);
    for (int from = 0, to = s->n_keys; from < to && !status;) {
        int middle = from + (to - from) / 2, order = strcmp(s->keys[middle].text, key.data);
        if (!order) *class_id = s->keys[middle].class_id;
        if (order < 0) from = middle + 1;
        else to = order ? middle : from;
    }
    qkv_buffer_free(&key);
    return status;
}

void qkv__label_set_free(qkv__label_set *s)
{
    free_keys(s);
    for (int i = 0; i < s->n; i++) qkv__release_text(s->names[i]);
    qkv__release(s->names, s->names_bytes);
    qkv__release(s->counts, s->counts_bytes);
    *s = (qkv__label_set){ 0 };
}

/* ---- headers ---- */

static bool is_header_word(const char *word) { return qkv__names_texts(word) || qkv__names_labels(word); }

const char *qkv__header_hint(const qkv_labelled *x)
{
    return x->line == 1 && (is_header_word(x->label.data) || is_header_word(x->text.data))
               ? ": if line 1 is a header, give --header"
               : "";
}

/* ---- what is seen of the texts ---- */

void qkv__labelled_look_at(qkv__labelled_look *k, const char *path, const qkv_labelled *x)
{
    k->texts++;
    k->label_bytes += (double)x->label.length;
    k->text_bytes += (double)x->text.length;
    k->spaced += memchr(x->label.data, ' ', x->label.length) != NULL;
    /* A folder's texts have paths of their own. */
    if (k->texts > 1 || x->line != 1 || strcmp(x->path, path) || strstr(path, ".json")) return;
    k->starts_at_1 = true;
    snprintf(k->first_label, sizeof k->first_label, "%s", x->label.data);
    snprintf(k->first_text, sizeof k->first_text, "%s", x->text.data);
}

static bool has_columns(const qkv__labelled_look *k) { return k->opts->label || k->opts->text; }

static const char *swap_hint(const qkv__labelled_look *k)
{
    return has_columns(k) ? QKV__N("--label-column NAME or NUMBER chooses another")
                          : QKV__N("give --label-column 2 --text-column 1 for text TAB label");
}

static int shown_bytes(const char *label)
{
    size_t length = strlen(label);
    return (int)qkv_utf8_valid(label, length < 40 ? length : 40); /* whole characters */
}

static qkv_status many_labels(const qkv__labelled_look *k, const qkv__label_set *s, const char *path)
{
    return qkv__fail(
        QKV_FORMAT,
        "%s: %lld texts have %d different labels, such as \"%.*s\": is that the label's column? Then --label-column 1 "
        "says so; %s",
        path, (long long)k->texts, s->n, shown_bytes(s->names[0]), s->names[0], swap_hint(k));
}

/* ---- the verdict ---- */

static qkv_status header_found(const qkv__labelled_look *k, const char *path)
{
    if (qkv__names_texts(k->first_label) && qkv__names_labels(k->first_text) && !has_columns(k))
        return qkv__fail(QKV_FORMAT, "%s: line 1, \"%s TAB %s\", is a header: give --label-column %s --text-column %s", path,
                         k->first_label, k->first_text, k->first_text, k->first_label);
    return qkv__fail(QKV_FORMAT, "%s: line 1, \"%s\" with the text \"%s\", is a header: give --header", path, k->first_label,
                     k->first_text);
}

/* Not certain: said, and trained all the same. */
static void warn_of_labelled(const qkv__labelled_look *k, const qkv__label_set *s, const char *path, bool is_alone,
                             char warning[512])
{
    const char *label = k->first_label;
    if (is_alone && (is_header_word(label) || k->texts >= 100))
        snprintf(
            warning, 512,
            qkv__translated("%.256s: the label \"%s\" of line 1 occurs nowhere else: if line 1 is a header, give --header"),
            path, label);
    else if (k->label_bytes > k->text_bytes && 2 * k->spaced > k->texts)
        snprintf(warning, 512, qkv__translated("%.256s: the labels are longer than the texts, such as \"%.*s\": %s"), path,
                 shown_bytes(s->names[0]), s->names[0], qkv__translated(swap_hint(k)));
    else if (k->texts >= 100 && 4 * (int64_t)s->n > k->texts)
        snprintf(warning, 512, qkv__translated("%.256s: %lld texts have %d different labels, such as \"%.*s\": %s"), path,
                 (long long)k->texts, s->n, shown_bytes(s->names[0]), s->names[0], qkv__translated(swap_hint(k)));
}

/* Only TSV has its label in a column that nobody named. */
static bool is_guessed(const qkv__labelled_look *k) { return !k->opts->label && (k->starts_at_1 || k->opts->header); }

qkv_status qkv__labelled_check(const qkv__labelled_look *k, const qkv__label_set *s, const char *path, char warning[512])
{
    enum { ENOUGH = 20 }; /* fewer texts may well have a label each */
    *warning = '\0';
    int first = k->starts_at_1 ? qkv__label_find(s, k->first_label) : -1;
    bool is_alone = first >= 0 && s->counts[first] == 1;
    if (is_alone && is_header_word(k->first_text)) return header_found(k, path);
    if (is_guessed(k) && k->texts >= ENOUGH && 2 * (int64_t)s->n > k->texts) return many_labels(k, s, path);
    warn_of_labelled(k, s, path, is_alone, warning);
    return QKV_OK;
}
