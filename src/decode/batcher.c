/* batcher.c: the rows of one session, read together for the threads that own them. */
#include "batcher.h"

#include "../base/clock.h"
#include "../base/memory.h"
#include "../base/size.h"
#include "session.h"
#include "../model/model.h"

#include <pthread.h>
#include <string.h>

enum {
    MOST_KEPT = 256,   /* closed rows */
    ALONE_BLOCK = 512, /* tokens of a prompt at a time */
    SHARED_BLOCK = 128 /* the same beside other rows: of all prompts in a forward */
};
#define LEAST_PATIENCE 1e-3 /* seconds */

struct qkv__batch_row {
    bool is_open;
    int32_t *ids; /* what it has read, n of them */
    size_t ids_bytes;
    int64_t n;
    uint64_t used; /* when it was closed: the oldest makes room */
    /* what its thread waits for */
    bool is_waiting;
    uint64_t turn;
    const int32_t *next;
    int64_t n_next, wanted;
    float *logits;
    size_t logits_bytes;
    qkv_status status;
    char sentence[QKV_SENTENCE_MAX];
};

struct qkv__batcher {
    const qkv_model *model;
    int64_t vocabulary;
    size_t most_kept; /* bytes */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    qkv_session *session; /* NULL: nothing is open or kept. The thread that set is_reading has it, else the one with the lock */
    bool is_reading;
    double next_at; /* when a forward begins though not all rows wait; seconds */
    uint64_t clock; /* counts what has come */
    int most_open, n_open, n_waiting, n_closing;
    int64_t n_rows;
    qkv__batch_row *rows; /* (n_rows), as the session has them */
    int64_t *chosen;      /* rows of this forward, n_chosen of them, ascending; and then (n_rows) each, for the session: */
    int64_t *counts, *wanted, *parents;
    int64_t n_chosen;
    int32_t *ids;
    size_t ids_bytes;
};

/* ---- making ---- */

static bool begin_batcher(qkv__batcher *b)
{
    pthread_condattr_t steady;
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &steady);
    pthread_condattr_destroy(&steady);
    b->rows = qkv__alloc_zero(sizeof *b->rows * (size_t)b->n_rows);
    b->chosen = qkv__alloc(4 * sizeof *b->chosen * (size_t)b->n_rows);
    if (!b->rows || !b->chosen) return false;
    b->counts = b->chosen + b->n_rows;
    b->wanted = b->counts + b->n_rows;
    b->parents = b->wanted + b->n_rows;
    return true;
}

qkv__batcher *qkv__batcher_new(const qkv_model *m, int rows, size_t kept_bytes)
{
    const qkv_config *o = qkv__model_config(m);
    qkv__batcher *b = qkv__alloc_zero(sizeof *b);
    if (!b) return NULL;
    b->model = m;
    b->vocabulary = o->target_vocab_size ? o->target_vocab_size : o->vocab_size;
    b->most_open = rows;
    b->most_kept = kept_bytes;
    b->n_rows = rows + MOST_KEPT;
    if (begin_batcher(b)) return b;
    qkv__batcher_free(b);
    return NULL;
}

static void release_row(qkv__batch_row *r)
{
    qkv__release(r->ids, r->ids_bytes);
    qkv__release(r->logits, r->logits_bytes);
    *r = (qkv__batch_row){ 0 };
}

void qkv__batcher_free(qkv__batcher *b)
{
    if (!b) return;
    for (int64_t i = 0; b->rows && i < b->n_rows; i++) release_row(&b->rows[i]);
    qkv_session_free(b->session);
    qkv__release(b->rows, sizeof *b->rows * (size_t)b->n_rows);
    qkv__release(b->chosen, 4 * sizeof *b->chosen * (size_t)b->n_rows);
    qkv__release(b->ids, b->ids_bytes);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    qkv__release(b, sizeof *b);
}

/* ---- rows that are kept ---- */

static bool is_kept(const qkv__batch_row *r) { return !r->is_open && r->n; }

static void drop_batch_row(qkv__batcher *b, qkv__batch_row *r)
{
    qkv_session_rewind(b->session, r - b->rows, 0);
    release_row(r);
}

/* Bytes of all kept rows, how many there are, and the oldest. */
static size_t count_kept(const qkv__batcher *b, int *n, qkv__batch_row **oldest)
{
    size_t bytes = 0;
    *n = 0;
    *oldest = NULL;
    for (int64_t i = 0; i < b->n_rows; i++) {
        qkv__batch_row *r = &b->rows[i];
        if (!is_kept(r)) continue;
        (*n)++;
        if (!*oldest || r->used < (*oldest)->used) *oldest = r;
        bytes += qkv__session_row_bytes(b->session, i);
    }
    return bytes;
}

static bool begins_with(const qkv__batch_row *r, const qkv__batch_row *with)
{
    return with->n <= r->n && !memcmp(r->ids, with->ids, sizeof *r->ids * (size_t)with->n);
}

/* Of two kept rows that begin alike the longer is enough. */
static void drop_what_others_have(qkv__batcher *b, qkv__batch_row *closed)
{
    for (int64_t i = 0; i < b->n_rows; i++) {
        qkv__batch_row *r = &b->rows[i];
        if (r == closed || !is_kept(r)) continue;
        if (begins_with(closed, r)) drop_batch_row(b, r);
        else if (begins_with(r, closed)) {
            r->used = closed->used;
            drop_batch_row(b, closed);
            return;
        }
    }
}

/* A row was closed: the oldest go until the rest keeps the limit, and with the last open row all memory that is not needed. */
static void settle_kept(qkv__batcher *b, qkv__batch_row *closed)
{
    int n;
    qkv__batch_row *oldest;
    if (qkv__session_row_bytes(b->session, closed - b->rows) > b->most_kept) drop_batch_row(b, closed);
    if (closed->n) drop_what_others_have(b, closed);
    while (count_kept(b, &n, &oldest) > b->most_kept || n > MOST_KEPT) drop_batch_row(b, oldest);
    if (b->n_open) return;
    if (n) qkv__session_trim(b->session);
    else qkv_session_free(b->session), b->session = NULL;
}

size_t qkv__batcher_kept(qkv__batcher *b)
{
    int n;
    qkv__batch_row *oldest;
    pthread_mutex_lock(&b->lock);
    while (b->is_reading) pthread_cond_wait(&b->changed, &b->lock);
    size_t bytes = b->session ? count_kept(b, &n, &oldest) : 0;
    pthread_mutex_unlock(&b->lock);
    return bytes;
}

/* ---- open rows ---- */

/* How many ids a row has in common with a text, but its last. */
static int64_t common_ids(const qkv__batch_row *r, const qkv__id_run *start, const int32_t *ids, int64_t n)
{
    int64_t most = qkv__min(r->n, start->n + n - 1), i = 0;
    while (i < most && r->ids[i] == (i < start->n ? start->ids[i] : ids[i - start->n])) i++;
    return i;
}

/* The row that begins most like a text; NULL: none does. */
static qkv__batch_row *find_common(qkv__batcher *b, const qkv__id_run *start, const int32_t *ids, int64_t n, int64_t *common)
{
    qkv__batch_row *best = NULL;
    *common = 0;
    for (int64_t i = 0; i < b->n_rows && b->most_kept; i++) {
        int64_t some = common_ids(&b->rows[i], start, ids, n);
        if (some > *common) best = &b->rows[i], *common = some;
    }
    return best;
}

/* There always is one: kept rows leave room for all that may be open. */
static qkv__batch_row *free_row(qkv__batcher *b)
{
    qkv__batch_row *r = b->rows;
    while (r->is_open || r->n) r++;
    return r;
}

static qkv_status begin_session(qkv__batcher *b)
{
    if (b->session) return QKV_OK;
    if (!(b->session = qkv_session_new(b->model, NULL))) return qkv_error_status();
    qkv_status status = qkv_session_start(b->session, b->n_rows);
    if (status) qkv_session_free(b->session), b->session = NULL;
    return status;
}

/* r, which is empty, has the first n tokens of `from`. */
static qkv_status share_beginning(qkv__batcher *b, qkv__batch_row *r, const qkv__batch_row *from, int64_t n)
{
    size_t bytes = sizeof *r->ids * (size_t)n;
    qkv_status status = qkv__grow((void **)&r->ids, &r->ids_bytes, bytes);
    for (int64_t i = 0; i < b->n_rows; i++) b->parents[i] = i;
    b->parents[r - b->rows] = from - b->rows;
    if (!status) status = qkv_session_select(b->session, b->parents, b->n_rows);
    if (status) return status;
    memcpy(r->ids, from->ids, bytes);
    r->n = n;
    return qkv_session_rewind(b->session, r - b->rows, n);
}

/* The lock is held and nobody reads. */
static qkv_status open_row(qkv__batcher *b, const qkv__id_run *start, const int32_t *ids, int64_t n, qkv__batch_row **row)
{
    int64_t common;
    qkv_status status = begin_session(b);
    if (status) return status;
    const qkv__batch_row *from = find_common(b, start, ids, n, &common);
    qkv__batch_row *r = free_row(b);
    if (from && (status = share_beginning(b, r, from, common))) return release_row(r), status;
    r->is_open = true;
    *row = r;
    return QKV_OK;
}

qkv_status qkv__batch_open(qkv__batcher *b, const qkv__id_run *start, const int32_t *ids, int64_t n, int64_t *n_read,
                           qkv__batch_row **row)
{
    qkv_status status = QKV_OK;
    *row = NULL;
    pthread_mutex_lock(&b->lock);
    if (b->n_open == b->most_open) status = qkv__fail(QKV_LIMIT, "generate: %d texts are made at a time already", b->n_open);
    else {
        b->n_open++; /* so that the next forward waits for it, and not it for one after the other */
        while (b->is_reading) pthread_cond_wait(&b->changed, &b->lock);
        if ((status = open_row(b, start, ids, n, row))) b->n_open--;
    }
    *n_read = *row ? (*row)->n : 0;
    pthread_mutex_unlock(&b->lock);
    return status;
}

void qkv__batch_close(qkv__batcher *b, qkv__batch_row *row)
{
    if (!row) return;
    pthread_mutex_lock(&b->lock);
    b->n_closing++;
    pthread_cond_broadcast(&b->changed); /* the others may all be waiting now */
    while (b->is_reading) pthread_cond_wait(&b->changed, &b->lock);
    b->n_closing--;
    b->n_open--;
    row->is_open = false;
    row->used = ++b->clock;
    qkv__release(row->logits, row->logits_bytes);
    row->logits = NULL;
    row->logits_bytes = 0;
    settle_kept(b, row);
    pthread_mutex_unlock(&b->lock);
}

int64_t qkv__batch_block(qkv__batcher *b)
{
    pthread_mutex_lock(&b->lock);
    int64_t n = b->n_open > 1 ? SHARED_BLOCK : ALONE_BLOCK;
    pthread_mutex_unlock(&b->lock);
    return n;
}

/* ---- a forward ---- */

static bool is_step(const qkv__batch_row *r) { return r->n_next == 1; }

/* Of the prompts that wait and are not yet chosen, the one that has waited longest; NULL: none. Chosen rows have a count. */
static qkv__batch_row *next_prompt(const qkv__batcher *b)
{
    qkv__batch_row *first = NULL;
    for (int64_t i = 0; i < b->n_rows; i++) {
        qkv__batch_row *r = &b->rows[i];
        if (r->is_waiting && !is_step(r) && !b->counts[i] && (!first || r->turn < first->turn)) first = r;
    }
    return first;
}

/* Every step, and prompts in the order they came as far as they fit; one in any case. */
static void choose_rows(qkv__batcher *b)
{
    int64_t tokens = 0;
    for (int64_t i = 0; i < b->n_rows; i++) b->counts[i] = b->rows[i].is_waiting && is_step(&b->rows[i]);
    for (qkv__batch_row *r; (r = next_prompt(b)) && (!tokens || tokens + r->n_next <= SHARED_BLOCK); tokens += r->n_next)
        b->counts[r - b->rows] = r->n_next;
    b->n_chosen = 0;
    for (int64_t i = 0; i < b->n_rows; i++)
        if (b->counts[i]) b->chosen[b->n_chosen++] = i;
}

static qkv_status list_tokens(qkv__batcher *b, const int64_t *chosen, int64_t n)
{
    int64_t at = 0;
    memset(b->counts, 0, 2 * sizeof *b->counts * (size_t)b->n_rows); /* and wanted, which is behind it */
    for (int64_t i = 0; i < n; i++) {
        const qkv__batch_row *r = &b->rows[chosen[i]];
        if (qkv__grow((void **)&b->ids, &b->ids_bytes, sizeof *b->ids * (size_t)(at + r->n_next))) return QKV_MEMORY;
        memcpy(b->ids + at, r->next, sizeof *b->ids * (size_t)r->n_next);
        at += b->counts[chosen[i]] = r->n_next;
        b->wanted[chosen[i]] = r->wanted;
    }
    return QKV_OK;
}

/* What was read goes to its rows, which have room for it. */
static void hand_out(qkv__batcher *b, const int64_t *chosen, int64_t n, qkv_status status)
{
    const float *logits = qkv_tensor_data(qkv_session_logits(b->session));
    for (int64_t i = 0; i < n; i++) {
        qkv__batch_row *r = &b->rows[chosen[i]];
        if ((r->status = status)) {
            strcpy(r->sentence, qkv_error());
            continue;
        }
        if (r->wanted) memcpy(r->logits, logits, sizeof *logits * (size_t)(r->wanted * b->vocabulary));
        if (logits) logits += r->wanted * b->vocabulary;
        memcpy(r->ids + r->n, r->next, sizeof *r->ids * (size_t)r->n_next);
        r->n += r->n_next;
    }
}

static qkv_status read_rows(qkv__batcher *b, const int64_t *chosen, int64_t n)
{
    qkv_status status = list_tokens(b, chosen, n);
    if (!status) status = qkv__session_read_wanted(b->session, b->ids, b->counts, b->wanted);
    hand_out(b, chosen, n, status);
    return status;
}

/* One row that cannot be read does not take the others with it. */
static void read_chosen(qkv__batcher *b)
{
    if (!read_rows(b, b->chosen, b->n_chosen) || b->n_chosen == 1) return;
    for (int64_t i = 0; i < b->n_chosen; i++) read_rows(b, &b->chosen[i], 1);
}

/* The lock is held, but not while the model works. */
static void run_forward(qkv__batcher *b)
{
    choose_rows(b);
    b->is_reading = true;
    pthread_mutex_unlock(&b->lock);
    double begin = qkv__seconds();
    read_chosen(b);
    double end = qkv__seconds();
    pthread_mutex_lock(&b->lock);
    for (int64_t i = 0; i < b->n_chosen; i++) b->rows[b->chosen[i]].is_waiting = false;
    b->n_waiting -= (int)b->n_chosen;
    b->next_at = end + (end - begin > LEAST_PATIENCE ? end - begin : LEAST_PATIENCE);
    b->is_reading = false;
    pthread_cond_broadcast(&b->changed);
}

static void wait_for_others(qkv__batcher *b)
{
    const struct timespec t = { .tv_sec = (time_t)b->next_at,
                                .tv_nsec = (long)((b->next_at - (double)(time_t)b->next_at) * 1e9) };
    pthread_cond_timedwait(&b->changed, &b->lock, &t);
}

/* The lock is held. */
static void wait_for_row(qkv__batcher *b, qkv__batch_row *r)
{
    r->turn = ++b->clock;
    r->is_waiting = true;
    b->n_waiting++;
    while (r->is_waiting) {
        if (b->is_reading) pthread_cond_wait(&b->changed, &b->lock);
        else if (b->n_waiting == b->n_open - b->n_closing || qkv__seconds() >= b->next_at) run_forward(b);
        else wait_for_others(b);
    }
}

qkv_status qkv__batch_read(qkv__batcher *b, qkv__batch_row *row, const int32_t *ids, int64_t n, int64_t wanted,
                           const float **logits)
{
    size_t all = sizeof *row->ids * (size_t)(row->n + n), bytes = sizeof *row->logits * (size_t)(wanted * b->vocabulary);
    *logits = NULL;
    if (qkv__grow((void **)&row->logits, &row->logits_bytes, bytes)) return QKV_MEMORY;
    row->next = ids;
    row->n_next = n;
    row->wanted = wanted;
    pthread_mutex_lock(&b->lock);
    qkv_status status = qkv__grow((void **)&row->ids, &row->ids_bytes, all); /* others look at them */
    if (!status) {
        wait_for_row(b, row);
        status = row->status ? qkv__fail_again(row->status, row->sentence) : QKV_OK;
    }
    pthread_mutex_unlock(&b->lock);
    if (!status && wanted) *logits = row->logits;
    return status;
}
