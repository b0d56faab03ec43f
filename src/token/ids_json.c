/* ids_json.c: the tokens of a text as JSON. */
#include "../text/out.h"

#include <string.h>

static void put_numbers(qkv__out *out, const char *key, const int32_t *at, size_t n)
{
    qkv__out_printf(out, "\"%s\": [", key);
    for (size_t i = 0; i < n; i++) qkv__out_printf(out, "%s%d", i ? ", " : "", at[i]);
    qkv__out_printf(out, "], ");
}

static void put_spellings(qkv__out *out, const qkv_tokenizer *t, const qkv_ids *ids)
{
    qkv__out_printf(out, "\"tokens\": [");
    for (size_t i = 0; i < ids->n; i++) {
        const char *token = qkv_tokenizer_token(t, ids->ids[i]);
        if (i) qkv__out_printf(out, ", ");
        qkv__out_json(out, token ? token : "", token ? strlen(token) : 0);
    }
    qkv__out_printf(out, "], ");
}

static qkv_status put_shown(qkv__out *out, const qkv_tokenizer *t, const qkv_ids *ids)
{
    qkv_text shown = { 0 };
    qkv_status status = QKV_OK;
    qkv__out_printf(out, "\"shown\": [");
    for (size_t i = 0; i < ids->n && !(status = qkv_tokenizer_show(t, ids->ids[i], &shown)); i++) {
        if (i) qkv__out_printf(out, ", ");
        qkv__out_json(out, shown.data, shown.length);
    }
    qkv__out_printf(out, "], ");
    qkv_text_free(&shown);
    return status;
}

qkv_status qkv_ids_json(const qkv_tokenizer *t, const qkv_ids *ids, int with_types, qkv_text *out)
{
    if (!t || !ids || !out) return qkv__fail(QKV_USAGE, "ids: a tokenizer, ids and a place for the JSON are needed");
    qkv__out text = qkv__out_begin(out);
    qkv__out_printf(&text, "{");
    put_numbers(&text, "ids", ids->ids, ids->n);
    if (with_types) put_numbers(&text, "types", ids->types, ids->n);
    put_spellings(&text, t, ids);
    qkv_status status = put_shown(&text, t, ids);
    qkv__out_printf(&text, "\"spans\": [");
    for (size_t i = 0; i < ids->n; i++)
        qkv__out_printf(&text, "%s[%zu, %zu]", i ? ", " : "", ids->spans[i].begin, ids->spans[i].end);
    qkv__out_printf(&text, "]}");
    if (status && !text.status) text.status = status;
    return qkv__out_end(&text);
}
