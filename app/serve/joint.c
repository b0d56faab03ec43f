/* joint.c: requests that wait for the same, in one call. The first that finds nothing running takes the others along. */
#include "joint.h"

#include "server.h"

#include <string.h>

enum { MOST_JOINED = 64 }; /* texts of several requests; one that has more runs alone */

void qkv__joint_begin(qkv__joint *j)
{
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->changed, NULL);
}

void qkv__joint_end(qkv__joint *j)
{
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->lock);
}

/* Whether the client of a part has left: then it is over, and nobody reads a sentence. */
static bool is_left(qkv__part *p)
{
    if (!qkv__link_is_left(p->request->link)) return false;
    atomic_store(&p->request->is_left, true);
    p->status = QKV_FAILURE;
    return true;
}

/* ---- a run ---- */

/* One whose client has left is not answered, but does not end the work of the others. */
static int cancel_parts(void *data)
{
    bool is_wanted = false;
    for (qkv__part *p = data; p; p = p->next) is_wanted |= !qkv__request_step(p->request);
    return !is_wanted;
}

static void release_result(qkv__joint_result *x)
{
    qkv_free(x->rows);
    qkv_free(x->translations);
    qkv__release(x, sizeof *x);
}

/* Gives every part its place in x; NULL: the status is all there is. */
static void hand_out(qkv__part *parts, qkv__joint_result *x, qkv_status status)
{
    int64_t first = 0;
    for (qkv__part *p = parts; p; first += p->texts.n, p = p->next) {
        if ((p->status = status)) strcpy(p->sentence, qkv_error());
        if (!(p->result = x)) continue;
        p->first = first;
        x->users++;
    }
}

/* The texts of all parts are `texts`. False where each part must be run alone to know which one an error, or a text that was
 * cut, belongs to. */
static bool run_texts(qkv__part *parts, const qkv__joint_texts *texts)
{
    qkv__joint_result *x = qkv__alloc_zero(sizeof *x);
    const qkv_model *m = parts->request->served->model;
    const qkv_hooks hooks = { .data = parts, .cancel = cancel_parts };
    qkv_status status = x ? parts->run(m, texts, parts, &hooks, x) : QKV_MEMORY;
    bool is_known = !parts->next || (!status && !x->truncated);
    if (x && (status || !is_known)) release_result(x), x = NULL;
    if (is_known) hand_out(parts, x, status);
    return is_known;
}

static bool run_together(qkv__part *parts)
{
    qkv_str texts[MOST_JOINED];
    const int32_t *ids[MOST_JOINED];
    int64_t n_ids[MOST_JOINED];
    qkv__joint_texts all = { .texts = texts };
    if (!parts->next) return run_texts(parts, &parts->texts);
    for (const qkv__part *p = parts; p; all.n += p->texts.n, p = p->next) {
        if (!p->texts.n) continue; /* a text may have no sentence */
        if (p->texts.ids) {        /* all parts have them: they have the same run */
            memcpy(ids + all.n, p->texts.ids, sizeof *ids * (size_t)p->texts.n);
            memcpy(n_ids + all.n, p->texts.n_ids, sizeof *n_ids * (size_t)p->texts.n);
            all.ids = ids;
            all.n_ids = n_ids;
            continue;
        }
        memcpy(texts + all.n, p->texts.texts, sizeof *texts * (size_t)p->texts.n);
    }
    return run_texts(parts, &all);
}

static void run_parts(qkv__part *parts)
{
    if (run_together(parts)) return;
    for (qkv__part *p = parts, *next; p; p = next) {
        next = p->next;
        p->next = NULL;
        if (!is_left(p)) run_together(p);
        p->next = next;
    }
}

/* ---- who runs, and with whom ---- */

static bool is_large(const qkv__part *p) { return p->is_large || p->texts.n > MOST_JOINED; }

static bool is_same_code(const char *a, const char *b) { return a && b ? !strcmp(a, b) : !a && !b; }

static bool fits_to(const qkv__part *x, const qkv__part *first, int64_t n)
{
    return n + x->texts.n <= MOST_JOINED && x->run == first->run && x->n_best == first->n_best &&
           is_same_code(x->source_lang, first->source_lang) && is_same_code(x->target_lang, first->target_lang);
}

/* Those whose clients have left leave the list. */
static void drop_left_parts(qkv__joint *j)
{
    for (qkv__part **at = &j->waiting; *at;)
        if (((*at)->is_done = is_left(*at))) *at = (*at)->next;
        else at = &(*at)->next;
}

/* The part of its size whose client was served least recently, of one client the oldest. NULL: none is left. */
static qkv__part *choose_first(const qkv__joint *j, bool large)
{
    qkv__part *best = NULL;
    uint64_t least = UINT64_MAX;
    for (qkv__part *p = j->waiting; p; p = p->next) {
        uint64_t served = is_large(p) == large ? qkv__client_served(&p->request->server->connections, p->request->link) : least;
        if (served < least) least = served, best = p;
    }
    return best;
}

/* That part and those that fit to it, which leave the list. */
static qkv__part *take_parts(qkv__joint *j, bool large)
{
    drop_left_parts(j);
    qkv__part *first = choose_first(j, large), *taken = NULL, **end = &taken;
    int64_t n = first ? first->texts.n : 0;
    for (qkv__part **at = &j->waiting, *x; first && (x = *at);) {
        if (x != first && (is_large(x) != large || !fits_to(x, first, n))) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        x->next = NULL;
        *end = x;
        end = &x->next;
        n += x == first ? 0 : x->texts.n;
        qkv__serve_client(&x->request->server->connections, x->request->link);
    }
    return taken;
}

/* The lock is held, but not during the run. */
static void lead_run(qkv__joint *j, bool large)
{
    qkv__part *parts = take_parts(j, large);
    j->is_running[large] = true;
    pthread_mutex_unlock(&j->lock);
    if (parts) run_parts(parts);
    pthread_mutex_lock(&j->lock);
    j->is_running[large] = false;
    for (; parts; parts = parts->next) parts->is_done = true;
    pthread_cond_broadcast(&j->changed);
}

qkv_status qkv__join(qkv__joint *j, qkv__part *p)
{
    qkv__part **end = &j->waiting;
    pthread_mutex_lock(&j->lock);
    while (*end) end = &(*end)->next;
    *end = p;
    while (!p->is_done) {
        if (j->is_running[is_large(p)]) pthread_cond_wait(&j->changed, &j->lock);
        else lead_run(j, is_large(p));
    }
    pthread_mutex_unlock(&j->lock);
    return p->status ? qkv__fail_again(p->status, p->sentence) : QKV_OK;
}

/* ---- results ---- */

void qkv__part_free(qkv__joint *j, qkv__part *p)
{
    if (!p->result) return;
    pthread_mutex_lock(&j->lock);
    bool is_last = !--p->result->users;
    pthread_mutex_unlock(&j->lock);
    if (is_last) release_result(p->result);
    p->result = NULL;
}

qkv_matrix qkv__part_rows(const qkv__part *p)
{
    qkv_matrix rows = *p->result->rows;
    rows.data += p->first * rows.width;
    rows.rows = p->texts.n;
    return rows;
}

qkv_translations qkv__part_translations(const qkv__part *p)
{
    qkv_translations t = *p->result->translations;
    t.status += p->first;
    t.source_ids += p->first;
    t.n_source += p->first;
    t.best += p->first * t.n_best;
    t.n = p->texts.n;
    return t;
}
