/* joint.h: texts of requests that come at the same time, in one call of the library. Their results do not depend on the texts
 * beside them: <qkv/task.h> says so. */
#ifndef QKV_SRC_SERVE_JOINT_H
#define QKV_SRC_SERVE_JOINT_H

#include <qkv/task.h>

#include "../../src/base/status.h"

#include <pthread.h>
#include <stdbool.h>

struct qkv__request;

/* What came of the texts of one call; parts share it. */
typedef struct qkv__joint_result {
    qkv_matrix *rows;
    qkv_translations *translations;
    int64_t truncated; /* texts of which a request is told that they were cut */
    int users;
} qkv__joint_result;

/* Texts, or where ids is not NULL their token ids. */
typedef struct qkv__joint_texts {
    const qkv_str *texts;
    int64_t n;
    const int32_t *const *ids;
    const int64_t *n_ids;
} qkv__joint_texts;

struct qkv__part;

/* Makes a result of texts. What the parts ask for is the same for all, and is `first`'s. */
typedef qkv_status qkv__joint_run(const qkv_model *m, const qkv__joint_texts *texts, const struct qkv__part *first,
                                  const qkv_hooks *hooks, qkv__joint_result *out);

/* The texts of one request, which live until qkv__join() is over. */
typedef struct qkv__part {
    struct qkv__request *request;
    qkv__joint_run *run;
    int n_best;
    const char *source_lang, *target_lang; /* NULL: the model's */
    qkv__joint_texts texts;
    bool is_large; /* a slice of a large request: it runs beside small ones */
    /* what came of them */
    qkv__joint_result *result;
    int64_t first; /* where they begin in it */
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
    bool is_done;
    struct qkv__part *next;
} qkv__part;

/* Starts as zero, but for its lock and its list; see qkv__joint_begin(). */
typedef struct qkv__joint {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    qkv__part *waiting; /* the oldest first */
    bool is_running[2]; /* small parts, and a large one */
} qkv__joint;
void qkv__joint_begin(qkv__joint *j);
void qkv__joint_end(qkv__joint *j);

/* Runs p together with others that wait for the same, on the thread of one of them. Clients take turns. A request of many texts runs alone, and
 * beside it small ones go on. Work ends early when the clients of all its parts have left. Errors are those of p alone. Free it
 * in any case. */
qkv_status qkv__join(qkv__joint *j, qkv__part *p);
void qkv__part_free(qkv__joint *j, qkv__part *p);

/* The results of p's own texts, for as long as p is not freed; not to be freed themselves. */
qkv_matrix qkv__part_rows(const qkv__part *p);
qkv_translations qkv__part_translations(const qkv__part *p);

#endif
