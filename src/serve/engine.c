/* engine.c: POST /engine: what the live page asks, one request at a time. */
#include "server.h"

qkv_status qkv__serve_engine(qkv__request *r)
{
    qkv_server *s = r->server;
    pthread_mutex_lock(&s->engine_lock);
    if (!s->engine) s->engine = qkv__engine_new(s->model, s->name);
    qkv_status status = s->engine ? QKV_OK : QKV_MEMORY;
    if (!status) qkv__engine_answer(s->engine, r->body, qkv__request_step, r, &r->answer);
    pthread_mutex_unlock(&s->engine_lock);
    qkv__put_raw(&r->answer, "\n");
    return status;
}
