/* json_values.h: JSON for tests: documents that are freed by their top value, and edited copies. Errors end the test. */
#ifndef QKV_TESTS_JSON_VALUES_H
#define QKV_TESTS_JSON_VALUES_H

#include "base/json.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct json_kept {
    qkv__json_doc doc;
    struct json_kept *next;
} json_kept;
static json_kept *json_kept_docs;
static pthread_mutex_t json_lock = PTHREAD_MUTEX_INITIALIZER;

/* NULL if it is not JSON; U+0000 is accepted in strings. */
static inline const qkv__json_value *json_parse(const char *text, size_t length)
{
    json_kept *kept = calloc(1, sizeof *kept);
    const qkv__json_source source = { .name = "test", .text = text, .length = length, .flags = QKV__JSON_NUL };
    if (!kept) abort();
    if (qkv__json_parse(&source, &kept->doc)) return free(kept), NULL;
    pthread_mutex_lock(&json_lock);
    kept->next = json_kept_docs;
    json_kept_docs = kept;
    pthread_mutex_unlock(&json_lock);
    return kept->doc.top;
}

static inline const qkv__json_value *json_parse_text(const char *text) { return json_parse(text, strlen(text)); }

/* The top value of a document, or NULL. */
static inline void json_free(const qkv__json_value *top)
{
    pthread_mutex_lock(&json_lock);
    json_kept **at = &json_kept_docs;
    while (*at && (*at)->doc.top != top) at = &(*at)->next;
    json_kept *found = *at;
    if (found) *at = found->next;
    pthread_mutex_unlock(&json_lock);
    if (top && !found) abort();
    if (found) qkv__json_free(&found->doc);
    free(found);
}

/* NULL if it cannot be read. */
static inline const qkv__json_value *json_read(const char *path)
{
    char *text = NULL;
    size_t length = 0, room = 0;
    FILE *f = fopen(path, "rb");
    while (f && !feof(f)) {
        if (room < length + 65536 && !(text = realloc(text, room = 2 * room + 65536))) abort();
        length += fread(text + length, 1, 65536, f);
    }
    if (!f) return NULL;
    fclose(f);
    const qkv__json_value *top = json_parse(text, length);
    free(text);
    return top;
}

/* The value as text, to be freed. */
static inline char *json_text(const qkv__json_value *v, qkv__json_style style)
{
    qkv__json_writer w = { .style = style };
    qkv__json_put_value(&w, NULL, v);
    char *text = w.status ? NULL : strdup(w.text);
    if (!text) abort();
    qkv__json_writer_free(&w);
    return text;
}

static inline int json_write(const qkv__json_value *v, const char *path)
{
    qkv__json_writer w = { .style = QKV__JSON_COMPACT };
    qkv__json_put_value(&w, NULL, v);
    return qkv__json_save(&w, path) ? -1 : 0;
}

static inline void json_put_edited(qkv__json_writer *w, const char *key, const qkv__json_value *v, const char *path,
                                   const char *json)
{
    bool is_object = qkv__json_is_object(v), is_there = false;
    if (!path || (!is_object && !qkv__json_is_array(v))) {
        qkv__json_put_value(w, key, v);
        return;
    }
    const char *rest = strchr(path, '/');
    size_t length = rest ? (size_t)(rest - path) : strlen(path);
    if (is_object) qkv__json_open_object(w, key);
    else qkv__json_open_array(w, key);
    for (size_t i = 0; i < qkv__json_size(v); i++) {
        char number[24];
        const char *name = qkv__json_key(v, i);
        snprintf(number, sizeof number, "%zu", i);
        bool is_it = strlen(name ? name : number) == length && !strncmp(name ? name : number, path, length);
        is_there = is_there || is_it;
        if (!is_it || rest) json_put_edited(w, name, qkv__json_at(v, i), is_it ? rest + 1 : NULL, json);
        else if (json) qkv__json_put_raw(w, name, json, strlen(json));
    }
    if (!is_there && !rest && json) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        qkv__json_put_raw(w, is_object ? name : NULL, json, strlen(json));
    }
    qkv__json_close(w);
}

/* A copy in which the member or element at a path such as "model/vocab/0" has another value, is added, or, with NULL, is left
 * out. The path of what holds it must exist. */
static inline const qkv__json_value *json_edited(const qkv__json_value *v, const char *path, const char *json)
{
    qkv__json_writer w = { 0 };
    json_put_edited(&w, NULL, v, path, json);
    const qkv__json_value *made = w.status ? NULL : json_parse(w.text, w.length);
    if (!made) abort();
    qkv__json_writer_free(&w);
    return made;
}

/* The same in place: frees the old document. */
static inline void json_edit(const qkv__json_value **top, const char *path, const char *json)
{
    const qkv__json_value *made = json_edited(*top, path, json);
    json_free(*top);
    *top = made;
}

#endif
