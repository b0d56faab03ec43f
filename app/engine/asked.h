/* asked.h: a text and its target as a request gives them, what the model makes of it, and what its heads attend to. */
#ifndef QKV_SRC_ENGINE_ASKED_H
#define QKV_SRC_ENGINE_ASKED_H

#include "about.h"
#include "attention_capture.h"

#include <pthread.h>

typedef struct qkv__asked {
    const qkv_model *model; /* set by the caller, and so are the next three */
    qkv__job job;
    const char *changes;        /* what is different in the model, as text; NULL: nothing */
    qkv_generate_opts generate; /* its hooks are those of all work */
    const char *text, *target;
    size_t length, target_length;
    int64_t beam, n_best;
    bool special, pieces;
    bool has_target; /* ids are the target: no search */
    int32_t *ids;    /* n_ids of them */
    int64_t n_ids;
    size_t ids_bytes;
    qkv_translations *found;
    qkv_generated *made;
} qkv__asked;

/* Reads "text", "target" or "target_ids", how a target is searched for, "special" and "pieces". The texts are the request's.
 * USAGE. Freed in any case. */
qkv_status qkv__asked_read(qkv__asked *a, const qkv__json_value *body);
void qkv__asked_free(qkv__asked *a);

/* The target as ids, whatever it was given as; where it was not given, what the model finds. */
qkv_status qkv__asked_find_target(qkv__asked *a);

/* The last text that was attended to: a page asks about it head by head. Whoever looks at it or changes it has the lock. */
typedef struct qkv__remembered {
    pthread_mutex_t lock;
    qkv_attention_capture *attended;
    qkv_buffer key; /* the text, target and options it comes from; empty: none */
} qkv__remembered;
qkv_status qkv__asked_attend(const qkv__asked *a, qkv__remembered *to);

/* What the model made of the text; and that with "task", "text", "target_ids", "sides" and "kinds", without the brace that ends
 * it. */
qkv_status qkv__put_asked_output(const qkv__asked *a, qkv__json *j);
qkv_status qkv__put_overview(const qkv__asked *a, qkv__json *j, const qkv_attention_capture *attended);

/* "kind", QKV__NO_KIND where there is none; and a layer or head: a number, "mean" or "rollout", as QKV__MEAN and QKV__ROLLOUT.
 * USAGE for another, and for a place that is missing. */
enum { QKV__NO_KIND = -1 };
qkv_status qkv__get_kind(const qkv__json_value *body, int *kind);
qkv_status qkv__get_place(const qkv__json_value *body, const char *name, bool may_roll, int *place);

#endif
