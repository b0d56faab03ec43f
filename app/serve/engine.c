/* engine.c: POST /engine: what the live page asks, one request at a time. */
#include "serve.h"
#include "checkpoints.h"
#include "server.h"

/* With the models that its training kept, where the model lies in a training's folder. */
static qkv_status open_engine(const qkv_server *s, qkv__served *x)
{
    qkv__kept_list kept = { 0 };
    qkv__json_writer w = { 0 };
    qkv_status status = s->folder ? qkv__find_checkpoints(s->folder, &kept) : QKV_OK;
    if (status && status != QKV_MEMORY) status = QKV_OK; /* without them the model still answers */
    if (!status && !(x->engine = qkv__engine_new(x->model, s->name))) status = QKV_MEMORY;
    if (!status && kept.n) {
        qkv__put_kept(&kept, &w);
        status = w.status ? w.status : qkv__engine_set_checkpoints(x->engine, s->folder, w.text, w.length);
    }
    qkv__json_writer_free(&w);
    qkv__kept_free(&kept);
    return status;
}

qkv_status qkv__serve_engine(qkv__request *r)
{
    qkv__served *x = r->served;
    pthread_mutex_lock(&x->engine_lock);
    qkv_status status = x->engine ? QKV_OK : open_engine(r->server, x);
    if (!status) qkv__engine_answer(x->engine, r->body, &(qkv_hooks){ .data = r, .cancel = qkv__request_cancel }, &r->answer);
    pthread_mutex_unlock(&x->engine_lock);
    qkv__put_raw(&r->answer, "\n");
    return status;
}
