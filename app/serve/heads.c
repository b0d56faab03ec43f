/* heads.c: POST /tag, /answer and /rank: the labels of words, answers that a text has, passages in the order of a query. */
#include "../report/results.h"
#include "server.h"

enum { MOST_BEST = 16, MOST_ANSWER = 512 };

/* A result as the library writes it, of texts in an array one of "results". */
static void put_result(qkv__json *j, const qkv__strings *given, int64_t i, const qkv_buffer *object)
{
    if (given->is_array) qkv__put_raw(j, i ? "," : "{\"results\":[");
    qkv__put_bytes(j, object->data, object->length);
    if (given->is_array && i == given->n - 1) qkv__put_raw(j, "]}");
    if (i == given->n - 1) qkv__put_raw(j, "\n");
}

qkv_status qkv__serve_tags(qkv__request *r)
{
    const qkv_hooks hooks = { .data = r, .cancel = qkv__request_cancel };
    const qkv_encoder_opts opts = { .hooks = &hooks };
    qkv__strings given;
    qkv_tagged *found = NULL;
    qkv_buffer object = { 0 };
    bool words = false;
    qkv_status status = qkv__need_strings(r->body, "text", &given);
    if (!status) status = qkv__get_flag(r->body, "words", &words);
    if (!status) status = qkv_tag(r->served->model, given.texts, given.n, &opts, &found);
    for (int64_t i = 0; i < given.n && !status; i++) {
        status = qkv_tagged_lines(found, i, words, 1, &object);
        if (!status) put_result(&r->answer, &given, i, &object);
    }
    qkv_free(found);
    qkv_buffer_free(&object);
    return status;
}

/* ---- answers ---- */

static qkv_status need_string(const qkv__json_value *body, const char *name, qkv_str *text)
{
    qkv_status status = qkv__get_string(body, name, &text->data, &text->length);
    return status || text->data ? status : qkv__fail(QKV_USAGE, "\"%s\" is missing", name);
}

static qkv_status get_answer_options(const qkv__json_value *body, qkv_answer_opts *o)
{
    int64_t n_best = 1, max_answer = 0;
    bool must_answer = false;
    qkv_status status = qkv__get_whole(body, "n_best", 1, MOST_BEST, &n_best);
    if (!status) status = qkv__get_whole(body, "max_answer", 1, MOST_ANSWER, &max_answer);
    if (!status) status = qkv__get_flag(body, "must_answer", &must_answer);
    o->n_best = (int)n_best;
    o->max_answer = (int)max_answer;
    o->must_answer = must_answer;
    return status;
}

qkv_status qkv__serve_answers(qkv__request *r)
{
    const qkv_hooks hooks = { .data = r, .cancel = qkv__request_cancel };
    qkv_answer_opts opts = { .hooks = &hooks };
    qkv__strings given;
    qkv_answers *found = NULL;
    qkv_buffer object = { 0 };
    qkv_str context = { NULL, 0 };
    qkv_status status = qkv__need_strings(r->body, "question", &given);
    if (!status) status = need_string(r->body, "context", &context);
    if (!status) status = get_answer_options(r->body, &opts);
    for (int64_t i = 0; i < given.n && !status; i++) {
        status = qkv_answer(r->served->model, given.texts[i], context, &opts, &found);
        if (!status) status = qkv_answers_lines(found, 1, &object);
        if (!status) put_result(&r->answer, &given, i, &object);
    }
    qkv_free(found);
    qkv_buffer_free(&object);
    return status;
}

/* ---- passages ---- */

static void put_ranked(qkv__json *j, const qkv__strings *passages, const qkv_ranking *found, int64_t n)
{
    const qkv_ranked *best = found->best;
    qkv__put_raw(j, "{\"best\":[");
    for (int64_t i = 0; i < n; i++) {
        qkv__put_raw(j, i ? ",{\"score\":" : "{\"score\":");
        qkv__put_float(j, best[i].score);
        qkv__put_named_whole(j, "index", best[i].index);
        qkv__put_key(j, "text");
        qkv__put_string(j, passages->texts[best[i].index].data, passages->texts[best[i].index].length);
        qkv__put_raw(j, "}");
    }
    qkv__put_raw(j, "]");
    qkv__put_named_whole(j, "cut", found->truncated);
    qkv__put_raw(j, "}\n");
}

qkv_status qkv__serve_ranks(qkv__request *r)
{
    const qkv_hooks hooks = { .data = r, .cancel = qkv__request_cancel };
    const qkv_encoder_opts opts = { .hooks = &hooks };
    qkv__strings passages;
    qkv_ranking *found = NULL;
    qkv_str query = { NULL, 0 };
    int64_t top = QKV__TEXTS;
    qkv_status status = qkv__need_strings(r->body, "passages", &passages);
    if (!status) status = need_string(r->body, "query", &query);
    if (!status) status = qkv__get_whole(r->body, "top", 1, QKV__TEXTS, &top);
    top = top < passages.n ? top : passages.n;
    if (!status) status = qkv_rank(r->served->model, query, passages.texts, passages.n, &opts, &found);
    if (!status) put_ranked(&r->answer, &passages, found, top);
    qkv_free(found);
    return status;
}
