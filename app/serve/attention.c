/* attention.c: POST /attention: a text, what the model makes of it, and what its heads attend to. */
#include "server.h"

enum { MOST_CELLS = 256 };

typedef struct asking {
    qkv__asked asked;
    int kind; /* or QKV__NO_KIND */
    int layer, head;
    int64_t cells; /* of thumbnails; 0: none are asked for */
    bool rank;
} asking;

static qkv_status get_view(asking *a, const qkv__json_value *body)
{
    qkv_status status = qkv__get_kind(body, &a->kind);
    if (!status) status = qkv__get_whole(body, "thumbnails", 1, MOST_CELLS, &a->cells);
    if (!status) status = qkv__get_flag(body, "rank", &a->rank);
    if (status || a->kind == QKV__NO_KIND || a->cells || a->rank) return status;
    status = qkv__get_place(body, "layer", true, &a->layer);
    return status || a->layer == QKV__ROLLOUT ? status : qkv__get_place(body, "head", false, &a->head);
}

static qkv_status put_view(const asking *a, qkv__json *j, const qkv_attention_capture *attended)
{
    qkv_attention_kind kind = (qkv_attention_kind)a->kind;
    if (a->cells) return qkv__put_thumbnails(j, attended, kind, a->cells);
    if (a->rank) return qkv__put_ranks(j, attended, kind, -1, -1);
    return qkv__put_head(j, attended, kind, a->layer, a->head, qkv__put_float_base64);
}

static qkv_status answer_attention(const asking *a, qkv__remembered *remembered, qkv__json *j)
{
    pthread_mutex_lock(&remembered->lock);
    qkv_status status = qkv__asked_attend(&a->asked, remembered);
    if (!status && a->kind != QKV__NO_KIND) status = put_view(a, j, remembered->attended);
    else if (!status) {
        status = qkv__put_overview(&a->asked, j, remembered->attended);
        qkv__put_raw(j, "}");
    }
    pthread_mutex_unlock(&remembered->lock);
    qkv__put_raw(j, "\n");
    return status;
}

qkv_status qkv__serve_attention(qkv__request *r)
{
    asking a = { .asked = { .model = r->served->model,
                            .job = r->served->job,
                            .generate = { .hooks = &(qkv_hooks){ .data = r, .cancel = qkv__request_cancel } } } };
    qkv_status status = qkv__asked_read(&a.asked, r->body);
    if (!status) status = get_view(&a, r->body);
    if (!status) status = qkv__asked_find_target(&a.asked);
    if (!status) status = answer_attention(&a, &r->served->remembered, &r->answer);
    qkv__asked_free(&a.asked);
    return status;
}
