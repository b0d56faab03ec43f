/* served.c: the model that a server answers with, and how it is loaded again when its files change. Requests keep the model that
 * they began with; the last one frees it. */
#include "serve.h"
#include "server.h"

#include "../../src/base/file.h"
#include "../../src/model/bind.h"
#include "../../src/model/model.h"
#include "../../src/model/special_tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int qkv__look_every = 1000;

/* ---- one model ---- */

/* Chat templates are optional: the reason is kept for requests that want one. A template that was asked for must be there. */
static qkv_status begin_chat(const qkv_server *s, qkv__served *x)
{
    x->chat = qkv_chat_new(x->model, &(qkv_chat_opts){ .template_file = s->template_file });
    x->chat_end = qkv_chat_end(x->chat);
    if (x->chat) return QKV_OK;
    if (s->template_file || qkv_error_status() == QKV_MEMORY) return qkv_error_status();
    return (x->no_chat = qkv__copy_text(qkv_error())) ? QKV_OK : QKV_MEMORY;
}

static void free_served(qkv__served *x)
{
    qkv__batcher_free(x->batcher);
    qkv_chat_free(x->chat);
    qkv_free(x->remembered.attended);
    qkv_buffer_free(&x->remembered.key);
    pthread_mutex_destroy(&x->remembered.lock);
    qkv__engine_free(x->engine);
    pthread_mutex_destroy(&x->engine_lock);
    qkv__joint_end(&x->joint);
    qkv__release_text(x->no_chat);
    qkv_model_free(x->own);
    qkv__release(x, sizeof *x);
}

qkv_status qkv__served_new(const qkv_server *s, const qkv_model *m, qkv_model *own, qkv__served **out)
{
    qkv_status status = qkv_model_tokenizer(m, QKV_SIDE_SOURCE) ? QKV_OK : qkv__refuse_without_tokenizer(m, "serve");
    *out = NULL;
    qkv__served *x = status ? NULL : qkv__alloc_zero(sizeof *x);
    if (!x) {
        qkv_model_free(own);
        return status ? status : QKV_MEMORY;
    }
    x->model = m;
    x->own = own;
    x->job = qkv__job_of(m);
    x->users = 1;
    pthread_mutex_init(&x->remembered.lock, NULL);
    pthread_mutex_init(&x->engine_lock, NULL);
    qkv__joint_begin(&x->joint);
    x->coding = qkv__language_coding(m);
    if (x->job == QKV__GENERATES) {
        if (!(x->batcher = qkv__batcher_new(m, 2 * s->batch, s->prefix_cache))) status = QKV_MEMORY;
        if (!status) status = begin_chat(s, x);
    }
    if (status) free_served(x);
    else *out = x;
    return status;
}

qkv__served *qkv__served_take(qkv_server *s)
{
    pthread_mutex_lock(&s->served_lock);
    qkv__served *x = s->served;
    x->users++;
    pthread_mutex_unlock(&s->served_lock);
    return x;
}

void qkv__served_leave(qkv_server *s, qkv__served *x)
{
    if (!x) return;
    pthread_mutex_lock(&s->served_lock);
    bool is_last = !--x->users;
    pthread_mutex_unlock(&s->served_lock);
    if (is_last) free_served(x);
}

/* ---- the files ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), n = strlen(end);
    return length > n && !strcmp(name + length - n, end);
}

/* Whether a file may be one that a model is read from. A training in this folder writes its record more often than its model. */
static bool is_model_file(const char *name)
{
    static const char *const ends[] = { ".safetensors", ".bin", ".json", ".txt", ".model", ".spm", ".jinja" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i])) return strcmp(name, "training.json") != 0;
    return false;
}

static void hash_bytes(uint64_t *hash, const void *bytes, size_t n)
{
    for (const unsigned char *b = bytes; n--; b++) *hash = (*hash ^ *b) * 0x100000001B3u;
}

/* A number of the names and stamps of the model's files; another one after any change. 0: the folder cannot be listed. */
static uint64_t fingerprint(const char *folder)
{
    qkv__names names;
    uint64_t hash = 0xCBF29CE484222325u;
    char path[4096];
    if (qkv__folder_list(folder, &names)) return 0;
    for (size_t i = 0; i < names.n; i++) {
        qkv__stamp stamp = { 0 };
        if (!is_model_file(names.at[i]) || snprintf(path, sizeof path, "%s/%s", folder, names.at[i]) >= (int)sizeof path)
            continue;
        qkv__file_stamp(path, &stamp);
        hash_bytes(&hash, names.at[i], strlen(names.at[i]) + 1);
        hash_bytes(&hash, &stamp, sizeof stamp);
    }
    qkv__names_free(&names);
    return hash;
}

/* ---- loading again ---- */

/* On an error the server goes on with the model that it has. */
static void load_again(qkv_server *s, uint64_t files)
{
    qkv__reload *r = &s->reload;
    qkv__served *x = NULL;
    qkv_model *m = qkv_model_load(s->folder, &r->opts);
    qkv_status status = m ? qkv__served_new(s, m, m, &x) : qkv_error_status();
    if (fingerprint(s->folder) != files) { /* they changed meanwhile: the next look tries again */
        qkv__served_leave(s, x);
        return;
    }
    r->seen = files;
    r->is_asked = false;
    if (!status) {
        pthread_mutex_lock(&s->served_lock);
        qkv__served *old = s->served;
        s->served = x;
        pthread_mutex_unlock(&s->served_lock);
        qkv__served_leave(s, old);
    }
    atomic_fetch_add(&r->loads, 1);
    if (r->each) r->each(r->each_data, status ? qkv_error() : NULL);
}

/* Files that were copied over others change for a while: they are loaded when two looks see the same. */
static void look_at_files(qkv_server *s)
{
    qkv__reload *r = &s->reload;
    uint64_t files = fingerprint(s->folder);
    bool is_settled = files == r->before;
    r->before = files;
    if (is_settled && (r->is_asked || files != r->seen)) load_again(s, files);
}

static void *watch_files(void *server)
{
    qkv_server *s = server;
    qkv__reload *r = &s->reload;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        struct timespec when;
        clock_gettime(CLOCK_REALTIME, &when);
        when.tv_nsec += (long)(r->every % 1000) * 1000000;
        when.tv_sec += r->every / 1000 + when.tv_nsec / 1000000000;
        when.tv_nsec %= 1000000000;
        if (!r->wants && pthread_cond_timedwait(&r->changed, &r->lock, &when) != ETIMEDOUT && !r->wants) continue;
        bool wants = r->wants;
        r->wants = false;
        pthread_mutex_unlock(&r->lock);
        if (wants) r->is_asked = true, r->before = fingerprint(s->folder);
        look_at_files(s);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

qkv_status qkv__reload_begin(qkv_server *s, const qkv_server_opts *o)
{
    qkv__reload *r = &s->reload;
    if (!o->reload) return QKV_OK;
    if (!s->folder) return qkv__fail(QKV_USAGE, "serve: to load the model again its folder is needed");
    r->opts = *o->reload;
    r->opts.in_memory = 1;
    r->each = o->each_reload;
    r->each_data = o->each_reload_data;
    r->every = qkv__look_every;
    r->before = fingerprint(s->folder);
    r->seen = qkv__bind_check(qkv__model_params(s->served->model), true) ? 0 : r->before; /* they may have changed already */
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->is_running = !pthread_create(&r->thread, NULL, watch_files, s);
    return r->is_running ? QKV_OK : qkv__fail(QKV_MEMORY, "serve: a thread could not be had");
}

void qkv__reload_end(qkv__reload *r)
{
    if (!r->is_running) return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
}

void qkv_server_reload(qkv_server *s)
{
    if (!s || !s->reload.is_running) return;
    pthread_mutex_lock(&s->reload.lock);
    s->reload.wants = true;
    pthread_cond_broadcast(&s->reload.changed);
    pthread_mutex_unlock(&s->reload.lock);
}
