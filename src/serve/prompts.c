/* prompts.c: what completions go on from: texts, or ids of the tokenizer. */
#include "prompts.h"

/* Memory for the ids of every prompt at once: it does not move while they are read. */
static qkv_status make_room_for_ids(qkv__prompts *p, const json_t *given)
{
    size_t n = json_array_size(given);
    for (size_t i = 0; i < json_array_size(given); i++) n += json_array_size(json_array_get(given, i));
    p->bytes = n * sizeof *p->ids;
    return (p->ids = qkv__alloc(p->bytes)) ? QKV_OK : QKV_MEMORY;
}

static qkv_status add_ids(qkv__prompts *p, const json_t *array)
{
    size_t n = json_array_size(array);
    int32_t *ids = p->ids + p->n_ids;
    if (!n) return qkv__fail(QKV_USAGE, "\"prompt\" is, or has, an array without ids");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(array, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
            return qkv__fail(QKV_USAGE, "\"prompt\": element %zu is not an id, as the others are", i);
        ids[i] = (int32_t)json_integer_value(id);
    }
    p->n_ids += n;
    p->all[p->n++] = (qkv__prompt){ .ids = ids, .n_ids = (int64_t)n };
    return QKV_OK;
}

static qkv_status add_arrays(qkv__prompts *p, const json_t *given)
{
    size_t n = json_array_size(given);
    qkv_status status = QKV_OK;
    if (n > QKV__TEXTS) return qkv__fail(QKV_USAGE, "\"prompt\" has %zu arrays: at most %d go in one request", n, QKV__TEXTS);
    for (size_t i = 0; i < n && !status; i++) {
        const json_t *array = json_array_get(given, i);
        if (!json_is_array(array)) return qkv__fail(QKV_USAGE, "\"prompt\": element %zu is not an array of ids", i);
        status = add_ids(p, array);
    }
    return status;
}

static qkv_status add_texts(qkv__prompts *p, const json_t *body)
{
    qkv__strings texts;
    qkv_status status = qkv__need_strings(body, "prompt", &texts);
    for (int64_t i = 0; i < texts.n && !status; i++)
        p->all[p->n++] = (qkv__prompt){ .text = texts.texts[i], .length = texts.lengths[i] };
    return status;
}

qkv_status qkv__get_prompts(const json_t *body, qkv__prompts *p)
{
    const json_t *given = json_object_get(body, "prompt"), *first = json_array_get(given, 0);
    if (!json_is_integer(first) && !json_is_array(first)) return add_texts(p, body);
    qkv_status status = make_room_for_ids(p, given);
    if (status) return status;
    return json_is_array(first) ? add_arrays(p, given) : add_ids(p, given);
}

void qkv__prompts_free(qkv__prompts *p) { qkv__release(p->ids, p->bytes); }
