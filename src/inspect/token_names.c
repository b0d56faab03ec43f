/* token_names.c: ids as the texts they stand for, those that only together make a character joined. */
#include "attend.h"

#include <qkv/unstable/util.h>

#include "../base/buffer.h"

#include <string.h>

struct qkv_token_names_work {
    qkv__arena arena; /* all that the names point to */
};

/* The texts of all ids in a row; id i ends before ends[i]. One that the tokenizer does not have is a space. */
static qkv_status decode_each(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_buffer *all, size_t *ends)
{
    qkv_buffer one = { 0 };
    qkv_status status = qkv__buffer_put(all, "", 0);
    for (int64_t i = 0; i < n && !status; i++) {
        status = qkv_tokenizer_decode(t, ids + i, 1, 0, &one);
        if (!status) status = qkv__buffer_put(all, one.data, one.length);
        else if (status == QKV_USAGE) status = qkv__buffer_put(all, " ", 1);
        ends[i] = all->length;
    }
    qkv_buffer_free(&one);
    return status;
}

/* A NUL in it, which would end it, is one of those characters that cannot be shown. */
static const char *keep_name(qkv__arena *arena, const char *text, size_t length)
{
    char *name = qkv__arena_take(arena, length + 1);
    for (size_t i = 0; name && i < length; i++) name[i] = text[i] ? text[i] : '\001';
    if (name) name[length] = '\0';
    return name;
}

static qkv_status join_each(qkv__arena *arena, const char *all, const size_t *ends, int64_t n, qkv_token_names *out)
{
    const char **names = qkv__arena_take(arena, (size_t)(n + 1) * sizeof *names);
    int64_t *first = qkv__arena_take(arena, (size_t)(n + 1) * sizeof *first), at = 0;
    if (!names || !first) return QKV_MEMORY;
    first[0] = 0;
    for (size_t begin = 0; at < n; begin = ends[at - 1]) {
        at += qkv_utf8_join(all, begin, ends + at, n - at);
        if (!(names[out->n] = keep_name(arena, all + begin, ends[at - 1] - begin))) return QKV_MEMORY;
        first[++out->n] = at;
    }
    out->names = names;
    out->first = first;
    return QKV_OK;
}

void qkv_token_names_free(qkv_token_names *x)
{
    if (!x) return;
    if (x->work) qkv__arena_free(&x->work->arena);
    qkv__release(x->work, sizeof *x->work);
    *x = (qkv_token_names){ 0 };
}

qkv_status qkv_token_names_make(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_token_names *out)
{
    if (!t || !ids || !out || n < 0)
        return qkv__fail(QKV_USAGE, "names: a tokenizer, ids and a place for the names are needed");
    qkv_token_names_free(out);
    if (!(out->work = qkv__alloc_zero(sizeof *out->work))) return QKV_MEMORY;
    qkv_buffer all = { 0 };
    size_t *ends = qkv__arena_take(&out->work->arena, (size_t)(n + 1) * sizeof *ends);
    qkv_status status = ends ? decode_each(t, ids, n, &all, ends) : QKV_MEMORY;
    if (!status) status = join_each(&out->work->arena, all.data, ends, n, out);
    qkv_buffer_free(&all);
    if (status) qkv_token_names_free(out);
    return status;
}
