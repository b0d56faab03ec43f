/* touched.c: switches inside the model, and the requests that look into it: walk, lens, why. The calls are those of
 * <qkv/touch.h>. */
#include "inside.h"

#include <qkv/touch.h>

#include <string.h>

enum { MOST_SWITCHES = 256, MOST_ROW = 4096, MOST_K = 64 };

/* ---- switches ---- */

#define QUOTED_TOUCH(constant, name) " \"" name "\""
static qkv_status get_what(const json_t *given, qkv_touch *t)
{
    static const char *const names[] = {
#define TOUCH_NAME(constant, name) name,
        QKV_TOUCH_LIST(TOUCH_NAME)
#undef TOUCH_NAME
    };
    const char *what = json_string_value(json_object_get(given, "what"));
    for (int i = 0; what && i < QKV_TOUCH_KINDS; i++)
        if (!strcmp(what, names[i])) return t->what = (qkv_touch_what)i, QKV_OK;
    return qkv__fail(QKV_USAGE, "\"switches\": \"what\" is one of" QKV_TOUCH_LIST(QUOTED_TOUCH));
}

/* The row lies in `rows`, behind those before it. */
static qkv_status get_row(const json_t *given, qkv_touch *t, float *rows, int64_t *used)
{
    const json_t *row = json_object_get(given, "row");
    size_t n = json_array_size(row);
    if (*used + (int64_t)n > MOST_ROW) return qkv__fail(QKV_LIMIT, "\"switches\": rows of more than %d weights", MOST_ROW);
    t->row = rows + *used;
    t->n_row = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        if (!json_is_number(json_array_get(row, i))) return qkv__fail(QKV_USAGE, "\"row\": element %zu is no number", i);
        rows[(*used)++] = (float)json_number_value(json_array_get(row, i));
    }
    return QKV_OK;
}

static qkv_status get_switch(const json_t *given, qkv_touch *t, float *rows, int64_t *used)
{
    int64_t layer = -1, head = 0;
    int kind;
    *t = (qkv_touch){ 0 };
    qkv_status status = get_what(given, t);
    if (!status) status = qkv__get_kind(given, &kind);
    if (!status && kind == QKV__NO_KIND) status = qkv__fail(QKV_USAGE, "\"switches\": \"kind\" is missing");
    if (!status) status = qkv__get_whole(given, "layer", -1, INT32_MAX, &layer);
    if (!status) status = qkv__get_whole(given, "head", 0, INT32_MAX, &head);
    if (!status) status = qkv__get_whole(given, "place", 0, INT64_MAX, &t->place);
    if (!status) status = qkv__get_whole(given, "other", 0, INT64_MAX, &t->other);
    if (status) return status;
    t->kind = (qkv_attention_kind)kind;
    t->layer = (int)layer;
    t->head = (int)head;
    return get_row(given, t, rows, used);
}

static qkv_status touch_model(const json_t *given, const qkv_model *m, qkv_model **touched)
{
    size_t n = json_array_size(given), bytes = n * sizeof(qkv_touch) + MOST_ROW * sizeof(float);
    if (!json_is_array(given) || n > MOST_SWITCHES)
        return qkv__fail(QKV_USAGE, "\"switches\" must be an array of at most %d objects", MOST_SWITCHES);
    qkv_touch *all = qkv__alloc(bytes);
    if (!all) return QKV_MEMORY;
    int64_t used = 0;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) status = get_switch(json_array_get(given, i), &all[i], (float *)(all + n), &used);
    if (!status && !(*touched = qkv_model_touched(m, all, (int64_t)n))) status = qkv_error_status();
    qkv__release(all, bytes);
    return status;
}

qkv_status qkv__asking_begin(qkv__engine *e, const json_t *body, qkv__asking *a)
{
    const json_t *given = json_object_get(body, "switches");
    *a = (qkv__asking){ .asked = { .model = e->model, .job = e->job } };
    if (given && (!json_is_array(given) || json_array_size(given))) {
        qkv_status status = touch_model(given, e->model, &a->touched);
        if (status) return status;
        if (!(a->switches = json_dumps(given, JSON_COMPACT))) return QKV_MEMORY;
        a->asked.model = a->touched;
        a->asked.switches = a->switches;
    }
    return qkv__asked_read(&a->asked, body);
}

void qkv__asking_end(qkv__asking *a)
{
    qkv__asked_free(&a->asked);
    qkv_model_free(a->touched);
    free(a->switches);
}

/* ---- looking inside ---- */

/* What a look writes as text, an object, is the answer. */
typedef qkv_status look(const qkv_model *m, const json_t *body, const qkv_attention_capture *c, qkv_text *out);

static qkv_status answer_look(qkv__engine *e, const json_t *body, qkv__json *j, look *run)
{
    const qkv_attention_capture *capture;
    qkv_text text = { 0 };
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = qkv__asking_attend(e, &a, true, true, &capture);
    if (!status) status = run(a.asked.model, body, capture, &text);
    if (!status) qkv__put_bytes(j, text.data, text.length);
    qkv_text_free(&text);
    qkv__asking_end(&a);
    return status;
}

static qkv_status look_walk(const qkv_model *m, const json_t *body, const qkv_attention_capture *c, qkv_text *out)
{
    qkv_walk_result walk = { 0 };
    int64_t layer = 0, head = 0, query = 0, k = 5;
    int kind;
    qkv_status status = qkv__get_kind(body, &kind);
    if (!status && kind == QKV__NO_KIND) status = qkv__fail(QKV_USAGE, "\"kind\" is missing");
    if (!status) status = qkv__get_whole(body, "layer", 0, INT32_MAX, &layer);
    if (!status) status = qkv__get_whole(body, "head", 0, INT32_MAX, &head);
    if (!status) status = qkv__get_whole(body, "query", 0, INT64_MAX, &query);
    if (!status) status = qkv__get_whole(body, "k", 1, MOST_K, &k);
    if (status) return status;
    const qkv_walk_opts opts = {
        .kind = (qkv_attention_kind)kind, .layer = (int)layer, .head = (int)head, .query = query, .k = (int)k
    };
    status = qkv_walk(m, c, &opts, &walk);
    if (!status) status = qkv_walk_json(&walk, out);
    qkv_walk_free(&walk);
    return status;
}

static qkv_status look_lens(const qkv_model *m, const json_t *body, const qkv_attention_capture *c, qkv_text *out)
{
    qkv_lens_result lens = { 0 };
    int64_t k = 5;
    qkv_status status = qkv__get_whole(body, "k", 1, MOST_K, &k);
    if (!status) status = qkv_lens(m, c, &(qkv_lens_opts){ .k = (int)k }, &lens);
    if (!status) status = qkv_lens_text(m, c, &lens, 1, out);
    qkv_lens_free(&lens);
    return status;
}

static qkv_status get_methods(const json_t *body, unsigned *methods)
{
    const json_t *given = json_object_get(body, "methods");
    for (size_t i = 0; i < json_array_size(given); i++) {
        const char *name = json_string_value(json_array_get(given, i));
        int method = 0;
        while (name && method < QKV_WHY_METHODS && strcmp(name, qkv_why_method_name((qkv_why_method)method))) method++;
        if (!name || method == QKV_WHY_METHODS) return qkv__fail(QKV_USAGE, "\"methods\": element %zu is not known", i);
        *methods |= 1u << method;
    }
    return QKV_OK;
}

static qkv_status look_why(const qkv_model *m, const json_t *body, const qkv_attention_capture *c, qkv_text *out)
{
    enum { MOST_STEPS = 4096 };
    qkv_why_result why = { 0 };
    qkv_why_opts opts = { .size = sizeof opts, .output = -1 };
    int64_t steps = 0;
    qkv_status status = get_methods(body, &opts.methods);
    if (!status) status = qkv__get_whole(body, "at", 0, INT64_MAX, &opts.at);
    if (!status) status = qkv__get_whole(body, "output", 0, INT64_MAX, &opts.output);
    if (!status) status = qkv__get_whole(body, "steps", 1, MOST_STEPS, &steps);
    opts.has_output = opts.output >= 0;
    opts.steps = (int)steps;
    if (!status) status = qkv_why(m, c, &opts, &why);
    if (!status) status = qkv_why_text(m, c, &why, 1, out);
    qkv_why_free(&why);
    return status;
}

qkv_status qkv__answer_walk(qkv__engine *e, const json_t *body, qkv__json *j) { return answer_look(e, body, j, look_walk); }
qkv_status qkv__answer_lens(qkv__engine *e, const json_t *body, qkv__json *j) { return answer_look(e, body, j, look_lens); }
qkv_status qkv__answer_why(qkv__engine *e, const json_t *body, qkv__json *j) { return answer_look(e, body, j, look_why); }
