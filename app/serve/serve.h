/* qkv/serve.h: the explorer page and a model behind HTTP.
 *
 * Threads: a server answers on threads of its own and only reads its model, which others may use too as long as nobody changes
 * it. qkv_server_free() is called once, by one thread, after all other calls. */
#ifndef QKV_SERVE_H
#define QKV_SERVE_H

#include <qkv/unstable/inspect.h>
#include <qkv/unstable/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the page as a file ---- */

/* Writes the explorer page with everything that was attended to in it: a file that works from disk and asks nothing of anyone.
 * m is the model that *a comes from. kind -1: every kind, else one; layer and head -1: all. Weights of more than 4 MiB as
 * float32 are rounded to a multiple of 1/65535 and packed, and the page says so. LIMIT when they are more than QKV_PAGE_BYTES
 * (the sentence says what to leave out); USAGE; IO; MEMORY. */
#define QKV_PAGE_BYTES ((size_t)64 << 20)
QKV_API qkv_status qkv_explorer_write(const char *path, const qkv_model *m, const qkv_attention_capture *a, int kind, int layer,
                                      int head);

typedef struct qkv_page_opts {
    size_t size;
    const char *engine; /* the file engine.wasm.gz, which "make wasm" makes */
    int bits;           /* of the numbers of a matrix: 8, 16 or 32; 0 means 16, which are bfloat16 */
    const char *name;   /* of the model; NULL means "qkv" */
    int checkpoints;    /* of the models that its training kept, at most so many; 0: what fits into 8 MiB; negative: none */
} qkv_page_opts;

/* Writes the live page with the model of a folder and the engine in it: a file that works from disk, computes in the browser and
 * asks nothing of anyone. docs/engine.md. USAGE for NULL, other bits, a model without tokenizer; FORMAT for an engine that is not
 * gzip; LIMIT for more than QKV_PAGE_BYTES; IO; MEMORY; and the errors of qkv_model_load(). */
QKV_API qkv_status qkv_page_write(const char *path, const char *folder, const qkv_page_opts *opts);

/* ---- the server ---- */

/* A request that is over, as an access log has it. Texts are the server's, for the call alone; path may hold any bytes. */
typedef struct qkv_access {
    const char *address, *method, *path; /* of the client; path without what is behind a "?" */
    int status;                          /* 0: the connection ended without an answer */
    uint64_t bytes;                      /* of the answer's body */
    double milliseconds;                 /* from its head to its end */
} qkv_access;

/* A line of an access log without its newline, in *out, which is yours: when (seconds since 1970) in UTC, address, method, path,
 * status, bytes and milliseconds, a space between them. What could end or fake a field is written like \x20. USAGE for NULL;
 * MEMORY. */
QKV_API qkv_status qkv_access_text(const qkv_access *a, int64_t when, qkv_buffer *out);

typedef struct qkv_server_opts {
    size_t size;
    const char *host;  /* to listen on; NULL means 127.0.0.1. Another needs a token */
    int port;          /* 0: any that is free */
    const char *token; /* requests must say "Authorization: Bearer TOKEN"; NULL: none is asked for */
    const char *name;  /* of the model, for /v1/models; NULL means "qkv" */
    const char *source_language, *target_language; /* codes for /languages; NULL: those that are kept with the model; without
                                                      any, "source" and "target", and any code is accepted */
    size_t max_request;                            /* bytes of a body; 0 means 1 MiB */
    int timeout;                                   /* seconds a request may take to arrive; 0 means 10 */
    const char *const *origins; /* n_origins of them: pages from these may use the server too, "*": from any */
    int n_origins;
    void (*each_access)(void *data, const qkv_access *a); /* after every request, on any thread; NULL: none */
    void *each_access_data;
    int connections_per_address; /* of one client, 1 to 128; 0 means 96 (of 128 in all). See docs/serve.md */
    int64_t prefix_cache;        /* bytes of what was read for completions that are kept, for prompts that begin alike; 0 means
                                    256 MiB, negative: none */
    int batch;                   /* requests that are answered at a time, together where they can be, 1 to 128; 0 means 16 */
    const char *template_file;   /* the chat template of conversations; NULL: that of the model's folder, if it has one */
    const char *folder;          /* of the model: the live page shows what its training kept there; NULL: nothing */
    const qkv_load_opts *reload; /* how the folder is loaded again when its files change, always in_memory; NULL: it is not */
    void (*each_reload)(void *data,
                        const char *error); /* after each reload, on a thread of its own; error NULL: the new model is
                                                           served, else the old one still is. May be NULL */
    void *each_reload_data;
} qkv_server_opts;

typedef struct qkv_server qkv_server;

/* Starts to answer, on threads of its own. The model must outlive it and is shared. With `reload`, files that change are loaded
 * when they have been still for a second: docs/serve.md. A second after work, free memory of the
 * process is given back to the system (malloc_trim of glibc), of other arenas than the first one only in part: a program that
 * serves alone may want mallopt(M_ARENA_MAX, 1), as `qkv serve` does. NULL on error: USAGE for options that do not fit, a host
 * other than a loopback address without a token; IO when the address cannot be had (the sentence says why); MEMORY.
 *
 *   GET  /                page, see docs/serve.md
 *   GET  /live            the live page, which asks POST /engine; see docs/engine.md
 *   GET  /health          GET /info                GET /languages         GET /v1/models        GET /v1/models/ID
 *   POST /translate       POST /classify           POST /attention        POST /tokenize         POST /detokenize
 *   POST /tag             POST /answer             POST /rank
 *   POST /v1/completions  POST /v1/embeddings
 *
 * docs/serve.md has what each takes and gives. A job the model cannot do is 404 with a sentence. */
QKV_API qkv_server *qkv_server_new(const qkv_model *m, const qkv_server_opts *opts);
QKV_API int qkv_server_port(const qkv_server *s);

/* The address for a browser, such as http://127.0.0.1:8080, in *out, which is yours. A server on all addresses gets the address of
 * this machine in its network, or loopback without a network. With a token it ends with "/#token=TOKEN", which browsers keep to
 * themselves. USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_server_address(const qkv_server *s, qkv_buffer *out);

/* Loads the folder again soon, changed or not, on the server's own thread; nothing without `reload`. Requests that have begun keep
 * the old model, which is freed after the last of them: for that time both are in memory. Safe from any thread, not from a signal
 * handler. */
QKV_API void qkv_server_reload(qkv_server *s);

/* Answers what has arrived, takes nothing new, and ends. */
QKV_API void qkv_server_free(qkv_server *s);

#ifdef __cplusplus
}
#endif
#endif
