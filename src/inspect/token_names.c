/* token_names.c: ids as the texts they stand for, those that only together make a character joined. */
#include "attend.h"

#include <qkv/unstable/util.h>

#include "../base/buffer.h"
#include "../base/result.h"

#include <string.h>

/* The texts of all ids in a row; id i ends before ends[i]. One that the tokenizer does not have is a space. */
static qkv_status decode_each(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_buffer *all, size_t *ends)
{
    qkv_buffer one = { 0 };
    qkv_status status = qkv__buffer_put(all, "", 0);
    for (int64_t i = 0; i < n && !status; i++) {
        status = qkv__decode(t, ids + i, 1, 0, &one);
        if (!status) status = qkv__buffer_put(all, one.data, one.length);
        else if (status == QKV_USAGE) status = qkv__buffer_put(all, " ", 1);
        ends[i] = all->length;
    }
    qkv_buffer_free(&one);
    return status;
}

/* A NUL in it, which would end it, is one of those characters that cannot be shown. */
static const char *keep_name(void *result, const char *text, size_t length)
{
    char *name = qkv__result_alloc(result, length + 1);
    for (size_t i = 0; name && i < length; i++) name[i] = text[i] ? text[i] : '\001';
    if (name) name[length] = '\0';
    return name;
}

static qkv_status join_each(const qkv_tokenizer *t, const int32_t *ids, int64_t n, const char *all, const size_t *ends,
                            qkv_axis *out)
{
    const size_t most = (size_t)n + 1;
    const char **names = qkv__result_alloc(out, most * sizeof *names);
    uint8_t *is_special = qkv__result_alloc(out, most);
    int64_t *first = qkv__result_alloc(out, most * sizeof *first), at = 0;
    int32_t *kept = qkv__result_alloc(out, most * sizeof *kept);
    if (!names || !is_special || !first || !kept) return QKV_MEMORY;
    if (n) memcpy(kept, ids, (size_t)n * sizeof *kept);
    first[0] = 0;
    for (size_t begin = 0; at < n; begin = ends[at - 1]) {
        is_special[out->n] = (uint8_t)(qkv_tokenizer_is_special(t, ids[at]) != 0);
        at += qkv_utf8_join(all, begin, ends + at, n - at);
        if (!(names[out->n] = keep_name(out, all + begin, ends[at - 1] - begin))) return QKV_MEMORY;
        first[++out->n] = at;
    }
    out->names = names;
    out->is_special = is_special;
    out->ids = kept;
    out->first = out->begin = first;
    out->n_tokens = n;
    return QKV_OK;
}

qkv_status qkv_token_names(const qkv_tokenizer *t, const int32_t *ids, int64_t n, qkv_axis **out)
{
    static const qkv__result_kind kind = { sizeof(qkv_axis), NULL };
    if (!t || !ids || !out || n < 0)
        return qkv__fail(QKV_USAGE, "names: a tokenizer, ids and a place for the names are needed");
    qkv_axis *names = qkv__result_begin(*out, &kind);
    if (!names) return qkv_error_status();
    *out = names;
    qkv_buffer all = { 0 };
    size_t *ends = qkv__result_alloc(names, (size_t)(n + 1) * sizeof *ends);
    qkv_status status = ends ? decode_each(t, ids, n, &all, ends) : QKV_MEMORY;
    if (!status) status = join_each(t, ids, n, all.data, ends, names);
    qkv_buffer_free(&all);
    if (status) qkv__result_clear(names);
    return status;
}
