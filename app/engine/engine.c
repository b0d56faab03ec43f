/* engine.c: requests to a model, by name. docs/engine.md */
#include "inside.h"

#include "../report/attention.h"

#include "../../src/base/clock.h"
#include "../../src/base/size.h"

#include <string.h>

enum { PROTOCOL = 1, MOST_CELLS = 1 << 26, USUAL_CELLS = 1 << 22 };

/* ---- a text that is asked about ---- */

qkv_status qkv__asking_attend(qkv__engine *e, qkv__asking *a, bool finds, bool whole, const qkv_attention_capture **capture)
{
    if (whole) a->asked.pieces = a->asked.special = true;
    if (!finds && !a->asked.target) a->asked.has_target = true;
    qkv_status status = qkv__asked_find_target(&a->asked);
    if (!status) status = qkv__asked_attend(&a->asked, &e->remembered);
    *capture = e->remembered.attended;
    return status;
}

/* ---- weights ---- */

static bool is_kind_wanted(const qkv__json_value *body, qkv_attention_kind kind)
{
    const qkv__json_value *kinds = qkv__json_get(body, "attention");
    if (!qkv__json_is_array(kinds)) return true;
    for (size_t i = 0; i < qkv__json_size(kinds); i++) {
        const char *name = qkv__json_text(qkv__json_at(kinds, i));
        if (name && !strcmp(name, qkv_attention_kind_name(kind))) return true;
    }
    return false;
}

static qkv_status put_kind_weights(qkv__json *j, const qkv_attention_capture *a, qkv_attention_kind kind, const int64_t *dims)
{
    int64_t cells = dims[2] * dims[3];
    size_t bytes = sizeof(float) * (size_t)(dims[0] * dims[1] * cells);
    float *all = qkv__alloc(bytes);
    qkv_status status = all ? QKV_OK : QKV_MEMORY;
    for (int64_t i = 0; i < dims[0] * dims[1] && !status; i++)
        status = qkv_attention_weights(a, kind, (int)(i / dims[1]), (int)(i % dims[1]), all + i * cells);
    if (!status) qkv__put_array(j, all, 4, dims);
    qkv__release(all, bytes);
    return status;
}

qkv_status qkv__put_all_weights(qkv__json *j, const qkv__json_value *body, const qkv_attention_capture *a)
{
    int64_t left = USUAL_CELLS;
    qkv_status status = qkv__get_whole(body, "max_cells", 0, MOST_CELLS, &left);
    bool follows = false;
    qkv__put_raw(j, ",\"weights\":{");
    for (qkv_attention_kind kind = 0; kind < QKV_ATTENTION_KINDS && !status; kind++) {
        if (!a->layers[kind] || !is_kind_wanted(body, kind)) continue;
        const int64_t dims[] = { a->layers[kind], a->heads, qkv_attention_rows(a, kind)->n, qkv_attention_columns(a, kind)->n };
        if (dims[0] * dims[1] * dims[2] * dims[3] > left) continue;
        left -= dims[0] * dims[1] * dims[2] * dims[3];
        if (follows) qkv__put_raw(j, ",");
        qkv__put_name(j, qkv_attention_kind_name(kind));
        qkv__put_raw(j, ":");
        status = put_kind_weights(j, a, kind, dims);
        follows = true;
    }
    qkv__put_raw(j, "}");
    return status;
}

/* ---- run, head, tokenize ---- */

static qkv_status answer_run(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    double begin = qkv__seconds();
    const qkv_attention_capture *capture;
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = qkv__asking_attend(e, &a, true, false, &capture);
    if (!status) status = qkv__put_overview(&a.asked, j, capture);
    if (!status) status = qkv__put_all_weights(j, body, capture);
    qkv__put_named_double(j, "milliseconds", (qkv__seconds() - begin) * 1e3);
    qkv__put_raw(j, "}");
    qkv__asking_end(&a);
    return status;
}

static void put_number_or_word(qkv__json *j, const char *name, int x)
{
    qkv__put_key(j, name);
    if (x >= 0) qkv__put_whole(j, x);
    else qkv__put_name(j, x == QKV__MEAN ? "mean" : "rollout");
}

static qkv_status put_one_map(qkv__json *j, const qkv_attention_capture *c, qkv_attention_kind kind, int layer, int head)
{
    const qkv_axis *rows = qkv_attention_rows(c, kind), *columns = qkv_attention_columns(c, kind);
    if (!rows || !columns) return qkv__fail(QKV_USAGE, "\"kind\" is one that the model does not have");
    const int64_t dims[] = { rows->n, columns->n };
    size_t bytes = sizeof(float) * (size_t)(dims[0] * dims[1]);
    float *weights = qkv__alloc(bytes);
    qkv_status status = !weights                ? QKV_MEMORY
                        : layer == QKV__ROLLOUT ? qkv_attention_rollout(c, kind, weights)
                                                : qkv_attention_weights(c, kind, layer, head, weights);
    qkv__put_raw(j, "{\"kind\":");
    qkv__put_name(j, qkv_attention_kind_name(kind));
    put_number_or_word(j, "layer", layer);
    put_number_or_word(j, "head", layer == QKV__ROLLOUT ? QKV__MEAN : head);
    qkv__put_key(j, "weights");
    if (!status) qkv__put_array(j, weights, 2, dims);
    qkv__put_raw(j, "}");
    qkv__release(weights, bytes);
    return status;
}

static qkv_status answer_head(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    int kind = QKV__NO_KIND, layer = 0, head = QKV__MEAN;
    const qkv_attention_capture *capture;
    qkv__asking a;
    qkv_status status = qkv__asking_begin(e, body, &a);
    if (!status) status = qkv__get_kind(body, &kind);
    if (!status && kind == QKV__NO_KIND) status = qkv__fail(QKV_USAGE, "\"kind\" is missing");
    if (!status) status = qkv__get_place(body, "layer", true, &layer);
    if (!status && layer != QKV__ROLLOUT) status = qkv__get_place(body, "head", false, &head);
    if (!status) status = qkv__asking_attend(e, &a, true, false, &capture);
    if (!status) status = put_one_map(j, capture, (qkv_attention_kind)kind, layer, head);
    qkv__asking_end(&a);
    return status;
}

static qkv_status answer_tokenize(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    const qkv_tokenizer *t = NULL;
    const char *text = NULL;
    size_t length = 0;
    qkv_encoding *ids = NULL;
    qkv_status status = qkv__get_string(body, "text", &text, &length);
    if (!status && !text) status = qkv__fail(QKV_USAGE, "\"text\" is missing");
    if (!status) status = qkv__get_tokenizer(body, e->model, &t);
    if (!status) status = qkv_tokenizer_encode(t, (qkv_str){ text, length }, NULL, &ids);
    if (!status) qkv__put_token_list(j, t, ids);
    qkv_free(ids);
    return status;
}

/* ---- the list of requests ---- */

static qkv__answering answer_info;

enum { DECODERS = QKV__TRANSLATES | QKV__GENERATES, EVERY_JOB = DECODERS | QKV__CLASSIFIES | QKV__ENCODES };

static const struct request {
    const char *name;
    int jobs; /* models that can do it, as bits of qkv__job */
    qkv__answering *answer;
} requests[] = { { "info", EVERY_JOB, answer_info },
                 { "tokenize", EVERY_JOB, answer_tokenize },
                 { "run", EVERY_JOB, answer_run },
                 { "head", EVERY_JOB, answer_head },
                 { "next", DECODERS, qkv__answer_next },
                 { "surprise", DECODERS, qkv__answer_surprise },
                 { "beam", QKV__TRANSLATES, qkv__answer_beam },
                 { "walk", EVERY_JOB, qkv__answer_walk },
                 { "lens", DECODERS, qkv__answer_lens },
                 { "why", DECODERS | QKV__CLASSIFIES, qkv__answer_why },
                 { "learn", EVERY_JOB, qkv__answer_learn } };
enum { REQUESTS = sizeof requests / sizeof *requests };

static qkv_status answer_info(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    (void)body;
    qkv_config o = { .size = sizeof o };
    qkv_model_config(e->model, &o);
    qkv__put_model_info(j, e->model, e->name);
    qkv__put_named_whole(j, "protocol", PROTOCOL);
    qkv__put_named_whole(j, "kv_heads", o.kv_heads ? o.kv_heads : o.heads);
    qkv__put_named_whole(j, "dim", o.dim);
    qkv__put_named_whole(j, "inner", o.d_ff);
    qkv__put_key(j, "max_positions");
    if (o.positions == QKV_POSITION_LEARNED) qkv__put_whole(j, o.max_positions);
    else qkv__put_raw(j, "null");
    qkv__put_key(j, "isa");
    qkv__put_name(j, qkv_isa());
    qkv__put_key(j, "can");
    const char *before = "[";
    for (int i = 0; i < REQUESTS; i++) {
        if (!(requests[i].jobs & (int)e->job)) continue;
        qkv__put_raw(j, before);
        qkv__put_name(j, requests[i].name);
        before = ",";
    }
    qkv__put_raw(j, ",\"switches\"]");
    qkv__put_checkpoints(e, j);
    qkv__put_key(j, "example");
    qkv_status status = qkv__put_example(j, e->model, "en");
    qkv__put_key(j, "examples");
    if (!status) status = qkv__put_examples(j, e->model, "en");
    qkv__put_raw(j, "}");
    return status;
}

static qkv_status answer_request(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    const char *name = qkv__json_text(qkv__json_get(body, "do"));
    if (!name) return qkv__fail(QKV_USAGE, "a request is an object with \"do\", its name");
    for (int i = 0; i < REQUESTS; i++) {
        if (strcmp(name, requests[i].name)) continue;
        if (requests[i].jobs & (int)e->job) return requests[i].answer(e, body, j);
        return qkv__fail(QKV_UNSUPPORTED, "\"%s\" is not for this model: it is one to %s", name, qkv__job_name(e->job));
    }
    return qkv__fail(QKV_USAGE, "\"do\" is \"%.40s\": there is no such request", name);
}

static void put_refusal(qkv__json *j, qkv_status status)
{
    qkv__buffer_clear(&j->text);
    j->status = QKV_OK;
    qkv__put_raw(j, "{\"error\":{\"message\":");
    qkv__put_name(j, qkv_error());
    qkv__put_named_whole(j, "status", status);
    qkv__put_raw(j, "}}");
}

void qkv__engine_answer(qkv__engine *e, const qkv__json_value *request, const qkv_hooks *hooks, qkv__json *j)
{
    e->hooks = hooks;
    qkv_status status = answer_request(e, request, j);
    if (status) put_refusal(j, status);
}

qkv_status qkv__engine_request(qkv__engine *e, const char *request, size_t length, qkv_buffer *answer)
{
    qkv__json_doc body;
    qkv__json j = { .text = *answer };
    qkv__buffer_clear(&j.text);
    const qkv__json_source source = { .name = "request", .text = request, .length = length, .flags = QKV__JSON_NUL };
    qkv_status status = qkv__json_parse(&source, &body);
    if (status) put_refusal(&j, status);
    else qkv__engine_answer(e, body.top, NULL, &j);
    qkv__json_free(&body);
    *answer = j.text;
    return j.status;
}

/* ---- the engine ---- */

qkv__engine *qkv__engine_new(const qkv_model *m, const char *name)
{
    qkv__engine *e = qkv__alloc_zero(sizeof *e);
    if (!e) return NULL;
    e->model = m;
    e->job = qkv__job_of(m);
    pthread_mutex_init(&e->remembered.lock, NULL);
    if ((e->name = qkv__copy_text(name))) return e;
    qkv__engine_free(e);
    return NULL;
}

void qkv__engine_free(qkv__engine *e)
{
    if (!e) return;
    qkv__learning_free(e->learning);
    qkv_model_free(e->checkpoint);
    qkv__json_free(&e->checkpoints);
    qkv__release_text(e->checkpoint_folder);
    qkv_free(e->remembered.attended);
    qkv_buffer_free(&e->remembered.key);
    pthread_mutex_destroy(&e->remembered.lock);
    qkv__release_text(e->name);
    qkv__release(e, sizeof *e);
}
