/* qkv/serve.h: the explorer page and a model behind HTTP. */
#ifndef QKV_SERVE_H
#define QKV_SERVE_H

#include <qkv/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the page as a file ---- */

/* Writes the explorer page with everything that was attended to in it: a file that works from disk and asks nothing of anyone.
 * m is the model that *a comes from. kind -1: every kind, else one; layer and head -1: all. LIMIT when the weights are more than
 * QKV_PAGE_BYTES (the sentence says what to leave out); USAGE; IO; MEMORY. */
#define QKV_PAGE_BYTES ((size_t)64 << 20)
QKV_API qkv_status qkv_explorer_write(const char *path, const qkv_model *m, const qkv_attended *a, int kind, int layer,
                                      int head);

/* ---- the server ---- */
typedef struct qkv_server_opts {
    const char *host;  /* to listen on; NULL means 127.0.0.1. Another needs a token */
    int port;          /* 0: any that is free */
    const char *token; /* requests must say "Authorization: Bearer TOKEN"; NULL: none is asked for */
    const char *name;  /* of the model, for /v1/models; NULL means "qkv" */
    const char *source_language, *target_language; /* codes for /languages; NULL: "source" and "target" */
    size_t max_request;                            /* bytes of a body; 0 means 1 MiB */
    int timeout;                                   /* seconds a request may take to arrive; 0 means 10 */
    int connections_per_address;                   /* of one client, 1 to 128; 0 means 96 (of 128 in all). See docs/serve.md */
} qkv_server_opts;

typedef struct qkv_server qkv_server;

/* Starts to answer, on threads of its own. The model must outlive it and is shared. A second after work, free memory of the
 * process is given back to the system (malloc_trim of glibc), of other arenas than the first one only in part: a program that serves alone may want
 * mallopt(M_ARENA_MAX, 1), as `qkv serve` does. NULL on error: USAGE for options that do not
 * fit, a host other than a loopback address without a token; IO when the address cannot be had (the sentence says why); MEMORY.
 *
 *   GET  /                page, see docs/serve.md
 *   GET  /health          GET /info                GET /languages         GET /v1/models
 *   POST /translate       POST /classify           POST /attention        POST /tokenize
 *   POST /v1/completions  POST /v1/embeddings
 *
 * docs/serve.md has what each takes and gives. A job the model cannot do is 404 with a sentence. */
QKV_API qkv_server *qkv_server_new(const qkv_model *m, const qkv_server_opts *opts);
QKV_API int qkv_server_port(const qkv_server *s);

/* Answers what has arrived, takes nothing new, and ends. */
QKV_API void qkv_server_free(qkv_server *s);

#ifdef __cplusplus
}
#endif
#endif
