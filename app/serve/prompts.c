/* prompts.c: inputs of a request: texts or token ids. */
#include "prompts.h"

qkv_status qkv__prompts_add(qkv__prompts *p, qkv__prompt x)
{
    if (qkv__grow((void **)&p->all, &p->all_bytes, sizeof x * ((size_t)p->n + 1))) return QKV_MEMORY;
    p->all[p->n++] = x;
    return QKV_OK;
}

/* Memory for the ids of every prompt at once: it does not move while they are read. */
static qkv_status make_room_for_ids(qkv__prompts *p, const qkv__json_value *given)
{
    size_t n = qkv__json_size(given);
    for (size_t i = 0; i < qkv__json_size(given); i++) n += qkv__json_size(qkv__json_at(given, i));
    return qkv__grow((void **)&p->ids, &p->bytes, n * sizeof *p->ids) ? QKV_MEMORY : QKV_OK;
}

static qkv_status add_ids(qkv__prompts *p, const char *name, const qkv__json_value *array, int64_t vocabulary)
{
    const size_t n = qkv__json_size(array);
    int32_t *ids = p->ids + p->n_ids;
    for (size_t i = 0; i < n; i++) {
        const qkv__json_value *id = qkv__json_at(array, i);
        const int64_t value = qkv__json_int(id);
        if (!qkv__json_is_int(id)) return qkv__fail(QKV_USAGE, "\"%s\": element %zu is not an id, as the others are", name, i);
        if (value < 0 || value >= vocabulary)
            return qkv__fail(QKV_USAGE, "\"%s\": element %zu is the id %lld: the model has the ids 0 to %lld", name, i,
                             (long long)value, (long long)vocabulary - 1);
        ids[i] = (int32_t)value;
    }
    p->n_ids += n;
    return qkv__prompts_add(p, (qkv__prompt){ .ids = ids, .n_ids = (int64_t)n });
}

qkv_status qkv__get_ids(const qkv__json_value *body, const char *name, int64_t vocabulary, qkv__prompts *p)
{
    const qkv__json_value *given = qkv__json_get(body, name);
    if (!qkv__json_is_array(given)) return qkv__fail(QKV_USAGE, "\"%s\" must be an array of ids", name);
    qkv_status status = make_room_for_ids(p, given);
    return status ? status : add_ids(p, name, given, vocabulary);
}

static qkv_status add_element(qkv__prompts *p, const char *name, const qkv__json_value *given, size_t i, int64_t vocabulary)
{
    const qkv__json_value *x = qkv__json_at(given, i);
    const bool has_ids = qkv__json_is_array(qkv__json_at(given, 0));
    if (has_ids && qkv__json_size(x)) return add_ids(p, name, x, vocabulary);
    if (has_ids)
        return qkv__fail(QKV_USAGE, "\"%s\": element %zu is %s", name, i,
                         qkv__json_is_array(x) ? "an array without ids" : "not an array of ids");
    if (!qkv__json_is_string(x)) return qkv__fail(QKV_USAGE, "\"%s\": element %zu is not a string", name, i);
    return qkv__prompts_add(p, (qkv__prompt){ .text = qkv__json_text(x), .length = qkv__json_length(x) });
}

qkv_status qkv__get_prompts(const qkv__json_value *body, const char *name, int64_t most, int64_t vocabulary, qkv__prompts *p)
{
    const qkv__json_value *given = qkv__json_get(body, name);
    const size_t n = qkv__json_size(given);
    if (!given || qkv__json_is_null(given)) return qkv__fail(QKV_USAGE, "\"%s\" is missing", name);
    if (qkv__json_is_string(given))
        return qkv__prompts_add(p, (qkv__prompt){ .text = qkv__json_text(given), .length = qkv__json_length(given) });
    if (!qkv__json_is_array(given))
        return qkv__fail(QKV_USAGE, "\"%s\" must be a string, or an array of strings or of ids", name);
    if (!n) return qkv__fail(QKV_USAGE, "\"%s\" is empty", name);
    if (qkv__json_is_int(qkv__json_at(given, 0))) return qkv__get_ids(body, name, vocabulary, p);
    if ((int64_t)n > most)
        return qkv__fail(QKV_USAGE, "\"%s\" has %zu texts: at most %lld go in one request", name, n, (long long)most);
    qkv_status status = make_room_for_ids(p, given);
    for (size_t i = 0; i < n && !status; i++) status = add_element(p, name, given, i, vocabulary);
    return status;
}

void qkv__prompts_free(qkv__prompts *p)
{
    qkv__release(p->ids, p->bytes);
    qkv__release(p->all, p->all_bytes);
    *p = (qkv__prompts){ 0 };
}
