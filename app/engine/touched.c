/* touched.c: switches inside the model, and the requests that look into it: walk, lens, why. The calls are those of
 * <qkv/unstable/inspect.h>. */
#include "../report/attention.h"
#include "inside.h"

#include <qkv/unstable/inspect.h>

#include <string.h>

enum { MOST_SWITCHES = 256, MOST_K = 64 };

/* ---- switches ---- */

/* "NAME=TEXT", each as an option of "qkv attend" has them. */
static qkv_status add_switch(const char *given, const qkv_model *m, qkv_touches *list)
{
    static const char *const names[] = {
#define TOUCH_NAME(constant, name) name,
        QKV_EDIT_LIST(TOUCH_NAME)
#undef TOUCH_NAME
    };
    const char *equals = given ? strchr(given, '=') : NULL;
    for (int i = 0; equals && i < QKV_EDIT_KINDS; i++)
        if (strlen(names[i]) == (size_t)(equals - given) && !strncmp(given, names[i], strlen(names[i])))
            return qkv_touches_add(list, m, (qkv_edit_kind)i, equals + 1);
    return qkv__fail(QKV_USAGE, "\"switches\": \"%.60s\" is none: a switch is a text like \"without-head=1.3\"",
                     given ? given : "null");
}

static qkv_status touch_model(const qkv__json_value *given, const qkv_model *m, qkv_model **touched)
{
    qkv_touches list = { 0 };
    qkv_status status = QKV_OK;
    size_t n = qkv__json_size(given);
    if (!qkv__json_is_array(given) || n > MOST_SWITCHES)
        return qkv__fail(QKV_USAGE, "\"switches\" must be an array of at most %d texts", MOST_SWITCHES);
    for (size_t i = 0; i < n && !status; i++) status = add_switch(qkv__json_text(qkv__json_at(given, i)), m, &list);
    if (!status && !(*touched = qkv_model_edit(m, list.touches, list.n))) status = qkv_error_status();
    qkv_touches_free(&list);
    return status;
}

/* What is remembered of one model is not of another. */
static qkv_status spell_changes(const qkv__json_value *body, qkv__asking *a)
{
    qkv__json_open_array(&a->changes, NULL);
    qkv__json_put_value(&a->changes, NULL, qkv__json_get(body, "checkpoint"));
    qkv__json_put_value(&a->changes, NULL, qkv__json_get(body, "switches"));
    qkv__json_close(&a->changes);
    a->asked.changes = a->changes.text;
    return a->changes.status;
}

qkv_status qkv__asking_begin(qkv__engine *e, const qkv__json_value *body, qkv__asking *a)
{
    const qkv__json_value *given = qkv__json_get(body, "switches");
    *a = (qkv__asking){ .asked = { .job = e->job, .generate = { .hooks = e->hooks } } };
    qkv_status status = qkv__get_checkpoint(e, body, &a->asked.model);
    if (!status && given && (!qkv__json_is_array(given) || qkv__json_size(given))) {
        status = touch_model(given, a->asked.model, &a->touched);
        a->asked.model = a->touched;
    }
    if (!status && a->asked.model != e->model) status = spell_changes(body, a);
    return status ? status : qkv__asked_read(&a->asked, body);
}

void qkv__asking_end(qkv__asking *a)
{
    qkv__asked_free(&a->asked);
    qkv_model_free(a->touched);
    qkv__json_writer_free(&a->changes);
}

/* ---- looking inside ---- */

/* Writes the answer, an object. */
typedef qkv_status look(const qkv_model *m, const qkv__json_value *body, const qkv_attention_capture *c, qkv__json *j);

static qkv_status answer_look(qkv__engine *e, const qkv__json_value *body, qkv__json *j, look *run)
{
    const qkv_attention_capture *capture;
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = qkv__asking_attend(e, &a, true, true, &capture);
    if (!status) status = run(a.asked.model, body, capture, j);
    qkv__asking_end(&a);
    return status;
}

/* An object that a call of the library wrote, without the brace that ends it, so that more can follow. */
static void put_open_object(qkv__json *j, const qkv_buffer *object)
{
    size_t length = object->length;
    while (length && object->data[length - 1] != '}') length--;
    if (length) qkv__put_bytes(j, object->data, length - 1);
}

/* A token, or a class, that a model says. */
static qkv_status put_output_name(qkv__json *j, const qkv_model *m, int64_t id)
{
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    if (!o.classes) return qkv__put_token_text(j, qkv_model_tokenizer(m, QKV_SIDE_TARGET), (int32_t)id);
    const char *label = qkv_model_label(m, id);
    qkv__put_name(j, label ? label : "");
    return QKV_OK;
}

static qkv_status put_walk(qkv__json *j, const qkv_model *m, const qkv_trace_result *walk, const qkv_buffer *object)
{
    qkv_status status = QKV_OK;
    put_open_object(j, object);
    qkv__put_key(j, "best_tokens");
    qkv__put_raw(j, "[");
    for (int i = 0; i < walk->n_best && !status; i++) {
        if (i) qkv__put_raw(j, ",");
        status = put_output_name(j, m, walk->best[i]);
    }
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    qkv__put_raw(j, o.pre_norm ? "],\"pre_norm\":true}" : "],\"pre_norm\":false}");
    return status;
}

static qkv_status look_walk(const qkv_model *m, const qkv__json_value *body, const qkv_attention_capture *c, qkv__json *j)
{
    qkv_trace_result *walk = NULL;
    qkv_buffer object = { 0 };
    int64_t layer = 0, head = 0, query = 0, k = 5;
    int kind;
    qkv_status status = qkv__get_kind(body, &kind);
    if (!status && kind == QKV__NO_KIND) status = qkv__fail(QKV_USAGE, "\"kind\" is missing");
    if (!status) status = qkv__get_whole(body, "layer", 0, INT32_MAX, &layer);
    if (!status) status = qkv__get_whole(body, "head", 0, INT32_MAX, &head);
    if (!status) status = qkv__get_whole(body, "query", 0, INT64_MAX, &query);
    if (!status) status = qkv__get_whole(body, "n", 1, MOST_K, &k);
    if (status) return status;
    const qkv_trace_opts opts = {
        .kind = (qkv_attention_kind)kind, .layer = (int)layer, .head = (int)head, .query = query, .k = (int)k
    };
    status = qkv_trace(m, c, &opts, &walk);
    if (!status) status = qkv_trace_json(walk, &object);
    if (!status) status = put_walk(j, m, walk, &object);
    qkv_buffer_free(&object);
    qkv_free(walk);
    return status;
}

static qkv_status look_lens(const qkv_model *m, const qkv__json_value *body, const qkv_attention_capture *c, qkv__json *j)
{
    qkv_logit_lens_result *lens = NULL;
    qkv_buffer object = { 0 };
    int64_t k = 5;
    qkv_status status = qkv__get_whole(body, "n", 1, MOST_K, &k);
    if (!status) status = qkv_logit_lens(m, c, &(qkv_logit_lens_opts){ .k = (int)k }, &lens);
    if (!status) status = qkv_logit_lens_text(m, c, lens, 1, &object);
    if (!status) qkv__put_bytes(j, object.data, object.length);
    qkv_buffer_free(&object);
    qkv_free(lens);
    return status;
}

static qkv_status get_methods(const qkv__json_value *body, unsigned *methods)
{
    const qkv__json_value *given = qkv__json_get(body, "methods");
    for (size_t i = 0; i < qkv__json_size(given); i++) {
        const char *name = qkv__json_text(qkv__json_at(given, i));
        int method = 0;
        while (name && method < QKV_ATTRIBUTE_METHODS && strcmp(name, qkv_attribute_method_name((qkv_attribute_method)method)))
            method++;
        if (!name || method == QKV_ATTRIBUTE_METHODS) return qkv__fail(QKV_USAGE, "\"methods\": element %zu is not known", i);
        *methods |= 1u << method;
    }
    return QKV_OK;
}

static qkv_status look_why(const qkv_model *m, const qkv__json_value *body, const qkv_attention_capture *c, qkv__json *j)
{
    enum { MOST_STEPS = 4096 };
    qkv_attribution *why = NULL;
    qkv_buffer object = { 0 };
    qkv_attribute_opts opts = { .size = sizeof opts, .output = -1 };
    int64_t steps = 0;
    qkv_status status = get_methods(body, &opts.methods);
    if (!status) status = qkv__get_whole(body, "at", 0, INT64_MAX, &opts.at);
    if (!status) status = qkv__get_whole(body, "output", 0, INT64_MAX, &opts.output);
    if (!status) status = qkv__get_whole(body, "steps", 1, MOST_STEPS, &steps);
    opts.has_output = opts.output >= 0;
    opts.steps = (int)steps;
    if (!status) status = qkv_attribute(m, c, &opts, &why);
    if (!status) status = qkv_attribution_text(m, c, why, 1, &object);
    if (!status) qkv__put_bytes(j, object.data, object.length);
    qkv_buffer_free(&object);
    qkv_free(why);
    return status;
}

qkv_status qkv__answer_walk(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    return answer_look(e, body, j, look_walk);
}
qkv_status qkv__answer_lens(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    return answer_look(e, body, j, look_lens);
}
qkv_status qkv__answer_why(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    return answer_look(e, body, j, look_why);
}
