/* ids_json.c: the tokens of a text as JSON. */
#include "tokens.h"

#include <qkv/unstable/util.h>
#include "../../src/base/json.h"
#include "../../src/base/buffer.h"

#include <string.h>

static void put_numbers(qkv__json_writer *w, const char *key, const int32_t *at, int64_t n)
{
    qkv__json_open_array(w, key);
    for (int64_t i = 0; i < n; i++) qkv__json_put_int(w, NULL, at[i]);
    qkv__json_close(w);
}

static void put_spellings(qkv__json_writer *w, const qkv_tokenizer *t, const qkv_encoding *ids)
{
    qkv__json_open_array(w, "tokens");
    for (int64_t i = 0; i < ids->n; i++) {
        const char *token = qkv_tokenizer_token(t, ids->ids[i]);
        qkv__json_put_text(w, NULL, token ? token : "");
    }
    qkv__json_close(w);
}

static void put_shown(qkv__json_writer *w, const qkv_tokenizer *t, const qkv_encoding *ids)
{
    qkv_text *shown = NULL;
    qkv__json_open_array(w, "shown");
    for (int64_t i = 0; i < ids->n && !w->status; i++) {
        w->status = qkv_tokenizer_show(t, ids->ids[i], &shown);
        if (!w->status) qkv__json_put_string(w, NULL, shown->data, shown->length);
    }
    qkv__json_close(w);
    qkv_free(shown);
}

qkv_status qkv_ids_json(const qkv_tokenizer *t, const qkv_encoding *ids, int with_types, qkv_buffer *out)
{
    if (!t || !ids || !out) return qkv__fail(QKV_USAGE, "ids: a tokenizer, ids and a place for the JSON are needed");
    qkv__json_writer w = { .text = out->data, .capacity = out->capacity, .style = QKV__JSON_SPACED, .long_escapes = true };
    qkv__json_open_object(&w, NULL);
    put_numbers(&w, "ids", ids->ids, ids->n);
    if (with_types) put_numbers(&w, "types", ids->types, ids->n);
    put_spellings(&w, t, ids);
    put_shown(&w, t, ids);
    qkv__json_open_array(&w, "spans");
    for (int64_t i = 0; i < ids->n; i++) {
        qkv__json_open_array(&w, NULL);
        qkv__json_put_int(&w, NULL, (int64_t)ids->spans[i].begin);
        qkv__json_put_int(&w, NULL, (int64_t)ids->spans[i].end);
        qkv__json_close(&w);
    }
    qkv__json_close(&w);
    qkv__json_close(&w);
    *out = (qkv_buffer){ w.text, w.length, w.capacity };
    if (w.status) qkv__buffer_clear(out);
    return w.status;
}
