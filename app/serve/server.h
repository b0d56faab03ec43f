/* server.h: what the parts of the server share: the server, a request, and the functions that answer one. */
#ifndef QKV_SRC_SERVER_H
#define QKV_SRC_SERVER_H

#include <qkv/chat.h>
#include "serve.h"

#include "../../src/decode/batcher.h"
#include "../engine/about.h"
#include "../engine/asked.h"
#include "../engine/engine.h"
#include "../../src/model/languages.h"
#include "joint.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

/* ---- connections and work ---- */

/* What a request waits for: the model, which few use at a time, as each needs memory of its own; or a place in what is done
 * together for many. */
typedef enum qkv__turn { QKV__TURN_MODEL, QKV__TURN_BATCH, QKV__TURNS } qkv__turn;

/* A connection. Its deadline is when the next request must have arrived, in milliseconds; 0 while one is being answered. */
typedef struct qkv__link {
    int fd;
    int64_t deadline;
    unsigned char address[16]; /* of the client, as IPv6 has it: of IPv4 all of it, else its network, of 64 bits */
    bool is_surplus;           /* one too many: it is told so */
    bool is_dropped;           /* it is being closed, and counts no more */
    bool has_turn;
    qkv__turn turn;
    uint64_t served; /* when it last got a turn, as the connections count */
    size_t reserved; /* bytes of a large body */
    struct qkv__link *next, **from;
} qkv__link;

/* A request that waits for a turn, on its thread's stack. */
typedef struct qkv__waiter {
    const qkv__link *link;
    qkv__turn turn;
    uint64_t came;
    struct qkv__waiter *next;
} qkv__waiter;

typedef struct qkv__connections {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t watch; /* ends connections whose time is up */
    bool is_watching;
    qkv__link *first;
    int n, active; /* connections; requests that have arrived and are not answered yet */
    int most_of_address;
    int working[QKV__TURNS], most[QKV__TURNS]; /* requests that have a turn now, and how many may */
    qkv__waiter *waiting;                      /* for a turn */
    uint64_t clock;                            /* counts waiters and turns */
    bool stop;                                 /* the watch ends */
    atomic_bool hurry;                         /* nobody waits for work any more, and what can be cut short is */
    int64_t patience;                          /* milliseconds for a request to arrive */
    int64_t trim_at;                           /* when free memory goes back to the system; 0: there was no work since it did */
} qkv__connections;
enum { QKV__LINKS = 128 }; /* connections that are served; further ones are answered 503 */
qkv_status qkv__connections_begin(qkv__connections *l, int timeout, int most_of_address, int batch);
void qkv__connections_end(qkv__connections *l);
void qkv__connections_drain(qkv__connections *l); /* waits until all that has arrived is answered, or until patience ends */

/* For MHD_OPTION_NOTIFY_CONNECTION. */
void qkv__link_event(void *connections, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what);
qkv__link *qkv__link_of(struct MHD_Connection *c); /* NULL when there was no memory for it */

/* A request has arrived; it is over. */
void qkv__link_busy(qkv__connections *l, qkv__link *link);
void qkv__link_idle(qkv__connections *l, qkv__link *link);

/* Whether the client of a connection has left: it has ended its side, or the whole connection. Nothing can be asked for on it
 * any more, and almost no client that ends its side still reads. */
bool qkv__link_is_left(const qkv__link *link);

/* Reserves bytes for a body: false if all bodies would have more than `most`, or those of its client more than half of it. 0 bytes
 * release them. */
bool qkv__link_reserve(qkv__connections *l, qkv__link *link, size_t bytes, size_t most);

/* Waits for a turn. Clients take turns: the one that holds the fewest is next, then the one that was served least recently. A client
 * that holds no place in a batch gets one beyond `most`, up to twice as many, so nobody waits for the long texts of others. At most
 * QKV__WAITING requests of a client wait. FAILURE when the server ends or the client has left, LIMIT when too many wait. */
enum { QKV__WAITING = 64 };
qkv_status qkv__work_begin(qkv__connections *l, qkv__link *link, qkv__turn turn);
qkv_status qkv__work_yield(qkv__connections *l, qkv__link *link); /* gives the turn up and waits for another one */
void qkv__work_end(qkv__connections *l, qkv__link *link);         /* nothing where it has no turn */

/* When a client was last served, 0: never; and that it is now. */
uint64_t qkv__client_served(qkv__connections *l, const qkv__link *link);
void qkv__serve_client(qkv__connections *l, qkv__link *link);

/* ---- the server ---- */

enum { QKV__ORIGINS = 16 };

/* A model that is served and what belongs to it. */
typedef struct qkv__served {
    const qkv_model *model;
    qkv_model *own; /* the model, where the server has loaded it itself */
    qkv__job job;
    qkv__remembered remembered;
    qkv__engine *engine; /* of the live page; NULL: no request yet */
    pthread_mutex_t engine_lock;
    qkv__batcher *batcher; /* of completions; NULL for other models */
    qkv_chat *chat;        /* renders prompts; NULL where the model has no template */
    int32_t chat_end;      /* of it */
    char *no_chat;         /* why there is none */
    qkv__joint joint;      /* of other texts */
    qkv__coding coding;
    int users; /* requests that began with it, and the server */
} qkv__served;

/* Loads a folder again when its files change, on a thread of its own. */
typedef struct qkv__reload {
    bool is_running;
    qkv_load_opts opts;
    void (*each)(void *data, const char *error);
    void *each_data;
    int every; /* milliseconds between looks */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop, wants;      /* with the lock: the thread ends; a reload was asked for */
    uint64_t seen, before; /* fingerprints of the files: as they were last loaded or refused, and at the last look */
    bool is_asked;
    atomic_int loads; /* that ended, well or not */
} qkv__reload;

struct qkv_server {
    qkv__served *served; /* by new requests */
    pthread_mutex_t served_lock;
    qkv__reload reload;
    int batch;
    size_t prefix_cache;
    char *template_file;                                           /* may be NULL */
    char *host, *token, *name, *source_language, *target_language; /* all but the name may be NULL */
    char *folder;                                                  /* of the model; NULL: not known */
    char address[64];                                              /* as a Host has it */
    bool is_any;                                                   /* it listens on all addresses of the machine */
    int port, timeout;
    char *origins[QKV__ORIGINS]; /* of other pages that may use the server */
    int n_origins;
    void (*each_access)(void *data, const qkv_access *a);
    void *each_access_data;
    size_t max_request;
    struct MHD_Daemon *daemon;
    int listening;
    qkv__connections connections;
    atomic_bool is_ending;
    atomic_ullong completions; /* for their names */
    atomic_ullong steps;       /* of models, for all requests together */
};

/* ---- a request ---- */

/* The kind of a body, by its Content-Type. A QKV__FORM may be JSON, see read_body() in http.c. */
typedef enum qkv__body_kind { QKV__JSON, QKV__FORM, QKV__MULTIPART } qkv__body_kind;

typedef struct qkv__request {
    qkv_server *server;
    qkv__served *served; /* as it was when the request began */
    struct MHD_Connection *connection;
    qkv__link *link; /* NULL when there was no memory for it */
    const struct qkv__route *route;
    const char *method, *path; /* MHD's, for as long as the request lives */
    const char *origin;        /* of a page elsewhere that may use the server; NULL: it is our own, or there is none */
    int64_t began;             /* microseconds */
    unsigned status;           /* of the answer; 0: none yet */
    bool is_preflight;         /* a browser asks whether a page elsewhere may ask */
    unsigned refused;          /* the status it gets without being looked at further; 0: none */
    char reason[QKV_SENTENCE_MAX];
    qkv__body_kind body_kind;
    bool is_busy;
    bool wants_key;      /* the token must be the field "api_key" */
    bool is_unread;      /* its body is not read: it is refused */
    atomic_bool is_left; /* its client has left: it is not answered. A stream sets it on a thread of its own */
    qkv_buffer received;
    size_t size;                 /* bytes that came, those over the limit too */
    const qkv__json_value *body; /* the top of sent; NULL: there is none */
    qkv__json_doc sent;
    qkv__json answer;
    struct qkv__events *stream; /* instead of an answer */
} qkv__request;

/* Takes a model over, `own` or NULL, which is freed on error. The first user is the caller. */
qkv_status qkv__served_new(const qkv_server *s, const qkv_model *m, qkv_model *own, qkv__served **out);
qkv__served *qkv__served_take(qkv_server *s);
void qkv__served_leave(qkv_server *s, qkv__served *x); /* NULL is allowed */
extern int qkv__look_every; /* milliseconds between looks at the files, for servers that start; tests change it */
qkv_status qkv__reload_begin(qkv_server *s, const qkv_server_opts *o);
void qkv__reload_end(qkv__reload *r);

/* A status that is not OK is an error with its sentence in qkv_error(), else the answer is in r->answer or r->stream. */
typedef qkv_status qkv__answer(qkv__request *r);

typedef struct qkv__route {
    const char *path;
    bool is_post, is_open; /* is_open: it needs no token */
    bool has_rest;         /* the path goes on: it ends with a slash */
    int jobs;              /* models that can do it, as bits of qkv__job; 0: all */
    int can;               /* what the model must be able to do besides, as bits of QKV_CAN_TAG and the like */
    bool is_libre;         /* LibreTranslate's: with forms, fields in the query, api_key and errors that are a string */
    bool takes_large;      /* bodies of up to QKV__LARGE times as much */
    qkv__turn turn;        /* that a POST waits for */
    qkv__answer *answer;
} qkv__route;

qkv__answer qkv__serve_page, qkv__serve_health, qkv__serve_info, qkv__serve_languages, qkv__serve_models, qkv__serve_one_model,
    qkv__serve_tokens, qkv__serve_detokenized, qkv__serve_translation, qkv__serve_classes, qkv__serve_attention,
    qkv__serve_completions, qkv__serve_chat, qkv__serve_embeddings, qkv__serve_live_page, qkv__serve_engine, qkv__serve_tags,
    qkv__serve_answers, qkv__serve_ranks;

/* For MHD_start_daemon. */
enum MHD_Result qkv__handle(void *server, struct MHD_Connection *c, const char *path, const char *method, const char *version,
                            const char *bytes, size_t *size, void **request);
void qkv__completed(void *server, struct MHD_Connection *c, void **request, enum MHD_RequestTerminationCode how);

/* For qkv_hooks and qkv_each_step, with the request as their data: 1 and FAILURE when the client has left, or the server cannot wait any longer. */
int qkv__request_cancel(void *request);
qkv_status qkv__request_step(void *request);

/* Refuses r with a status and a sentence unless it was refused already. */
void qkv__refuse(qkv__request *r, unsigned status, const char *format, ...) QKV_PRINTF(3, 4);

/* The headers that let a page elsewhere read the answer to r, which it may. */
void qkv__add_origin(const qkv__request *r, struct MHD_Response *response);

/* Tells the server's owner of r, which is over. */
void qkv__tell_access(const qkv__request *r);
int64_t qkv__microseconds(void);

/* Bytes of events that were sent. */
uint64_t qkv__events_sent(const struct qkv__events *s);

/* Whether the path behind "/v1/models/" names the server's model; 404 if not. */
void qkv__check_model(qkv__request *r, const char *name);

/* Whether the headers let r in: Host and Origin, token, type and length of the body. They refuse it if not. */
void qkv__check_host(qkv__request *r);
void qkv__check_token(qkv__request *r);
void qkv__check_body(qkv__request *r);

/* Refuses r unless the field "api_key" is the token, if r->wants_key. */
void qkv__check_key(qkv__request *r);

/* Maximum bytes of the body of r: max_request, and QKV__LARGE times as much on routes with takes_large. */
enum { QKV__LARGE = 4 };
size_t qkv__most_bytes(const qkv__request *r);

/* Before a body of more than max_request bytes is read. Such bodies together have at most QKV__LARGE_BODIES times qkv__most_bytes(),
 * those of a client half of it: else false, and r is refused. */
enum { QKV__LARGE_BODIES = 16 };
bool qkv__reserve_body(qkv__request *r, size_t bytes);

/* Add the fields of a form, of the query, and of multipart/form-data with its Content-Type, to an open object as strings. Errors:
 * FORMAT for a malformed field, MEMORY. Repeated fields are not detected. */
qkv_status qkv__form_read(const char *text, size_t length, qkv__json_writer *object);
qkv_status qkv__query_read(struct MHD_Connection *c, qkv__json_writer *object);
qkv_status qkv__multipart_read(const char *type, const char *text, size_t length, qkv__json_writer *object);
bool qkv__has_query(const qkv__request *r);

/* ---- server-sent events ---- */

/* Fills events by qkv__events_put(). Not OK: qkv_error() says why. */
typedef qkv_status qkv__events_fill(struct qkv__events *s, void *data);

/* Starts filling on a thread of its own, which takes the turn of r over, and waits for the first event. An error before it is
 * handed on, and there is no stream; after it, the error is the last event. data is released in any case, when nobody needs it
 * any more. r->stream is freed by qkv__events_free(), which ends the filling early. */
qkv_status qkv__events_start(qkv__request *r, qkv__events_fill *fill, void *data, void (*release)(void *data));
void qkv__events_free(struct qkv__events *s);

/* Adds one event of JSON, "data: ...", and empties it. FAILURE when nobody listens any more. */
qkv_status qkv__events_put(struct qkv__events *s, qkv__json *event);
struct MHD_Response *qkv__events_response(struct qkv__events *s);

/* What the page that answers r may do, as a Content-Security-Policy; NULL: the answer is no page. */
const char *qkv__page_policy(const qkv__request *r);

/* {"error": ..} with the sentence, which may hold any bytes. */
void qkv__put_error(qkv__json *j, unsigned status, const char *sentence);

#endif
