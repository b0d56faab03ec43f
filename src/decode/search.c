/* search.c: beam search (section 6.1 of the paper; Wu et al. 2016 for the length penalty). Beam 1 is greedy. */
#include <qkv/session.h>

#include "../base/memory.h"
#include "../base/options.h"
#include "../base/pool.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../model/model_info.h"
#include "../model/special_tokens.h"
#include "../tensor/softmax.h"
#include "../tensor/tape.h"
#include "batches.h"
#include "search.h"
#include "session.h"
#include "shortlist.h"
#include "../model/model.h"

#include <math.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 20 };

/* A row to go on with, or a result. */
typedef struct row {
    double log_p;
    int32_t *ids;
    int64_t n;
} row;

/* What may come next: row `from` with one more id. */
typedef struct candidate {
    double log_p;
    int64_t from;
    int32_t id;
} candidate;

typedef struct sentence {
    int64_t most; /* tokens */
    row *live;    /* beam of them; log_p -inf: none, nor any after it */
    row *next;    /* the same, for the step after */
    row *done;    /* n_best of them, best first by `scores` */
    double *scores;
    bool *cut;
    int n_done;
    int64_t first_row;   /* of its live rows in the session */
    const float *logits; /* (live rows, n_ids), of this step, and their sums */
    const qkv__log_sum *sums;
    const int32_t *ids; /* that it may have, ascending; NULL: any */
    int64_t n_ids;
    candidate *candidates; /* of this step: twice beam, as ends may be among the best */
    int n_candidates;      /* -1: a log-probability is not a number */
} sentence;

typedef struct search {
    qkv_search_opts o;
    qkv_each_step each_step; /* NULL: none */
    void *each_step_data;
    int64_t vocabulary, room; /* ids, and tokens a row has room for */
    int64_t max_positions;    /* that learned positions, or the files of a published model, allow; 0: any */
    const int32_t *sources;   /* (n_all, length) */
    int64_t length;           /* of the sources, padded */
    const int32_t *lengths;   /* without padding; NULL: none */
    sentence *all;
    int64_t n_all, n_active;
    int64_t *active; /* sentences that still go on */
    int32_t *ids;    /* last id of every live row */
    int64_t *parents;
    qkv__batch_targets targets; /* of the shortlist */
    int32_t *listed;            /* ids at their places */
    size_t listed_bytes;
    void *memory;
    size_t bytes;
} search;

/* Of a sentence's own length, so that its result does not depend on the sentences beside it. */
static int64_t most_tokens(const search *s, int64_t i)
{
    if (s->o.max_length) return s->o.max_length;
    int64_t most = s->o.n_prefix + 2 * (s->lengths ? s->lengths[i] : s->length) + 20;
    return s->max_positions ? qkv__min(most, s->max_positions) : most;
}

/* ---- scores ---- */

double qkv__search_penalty(const qkv_search_opts *o, int64_t length)
{
    double alpha = (double)o->length_penalty;
    return o->length_norm ? pow((double)length, alpha) : pow((5.0 + (double)length) / 6.0, alpha);
}

/* ---- candidates ---- */

static bool better(const candidate *a, const candidate *b)
{
    if (a->log_p != b->log_p) return a->log_p > b->log_p;
    return a->from != b->from ? a->from < b->from : a->id < b->id;
}

/* Keeps the best 2*beam, sorted. */
static void offer(const search *s, sentence *x, candidate c)
{
    int most = 2 * s->o.beam_size, at = x->n_candidates;
    if (at == most && !better(&c, &x->candidates[at - 1])) return;
    if (at < most) x->n_candidates++;
    else at--;
    for (; at > 0 && better(&c, &x->candidates[at - 1]); at--) x->candidates[at] = x->candidates[at - 1];
    x->candidates[at] = c;
}

/* Whether id would complete a run of no_repeat tokens that the row has already. */
static bool repeats(const search *s, const row *r, int32_t id)
{
    int64_t run = s->o.no_repeat_ngram;
    if (run < 1 || r->n < run) return false;
    const int32_t *last = r->ids + r->n - (run - 1);
    for (int64_t i = 0; i + run <= r->n; i++)
        if (r->ids[i + run - 1] == id && !memcmp(r->ids + i, last, sizeof(int32_t) * (size_t)(run - 1))) return true;
    return false;
}

static bool is_among_ids(const int32_t *ids, int n, int32_t id)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static bool ends_hypothesis(const qkv_search_opts *o, int32_t id)
{
    return id == o->end || is_among_ids(o->ends, o->n_ends, id);
}

static bool is_never_found(const qkv_search_opts *o, int32_t id)
{
    return id == o->pad || id == o->start || is_among_ids(o->banned, o->n_banned, id);
}

static bool is_allowed(const search *s, const row *r, int32_t id)
{
    if (r->n < s->o.n_prefix) return id == s->o.prefix[r->n];
    if (ends_hypothesis(&s->o, id)) return r->n >= s->o.min_length && !repeats(s, r, id);
    return !is_never_found(&s->o, id) && !repeats(s, r, id);
}

/* One row of the session: what may follow live row `from` of a sentence. */
typedef struct next_ids {
    int64_t from;
    const float *logits;
    const qkv__log_sum *sum;
} next_ids;

/* A number below which no log-probability makes row r a candidate; -inf: any may. Sums are rounded, but never past each other:
 * what holds for this number holds for those below it. */
static float least_of_interest(const search *s, const sentence *x, const row *r)
{
    if (x->n_candidates < 2 * s->o.beam_size) return -INFINITY;
    double worst = x->candidates[x->n_candidates - 1].log_p, gap = worst - r->log_p;
    float least = (float)(gap - 1e-6 * fabs(gap) - 1e-12 * fabs(worst));
    return r->log_p + (double)least < worst ? least : -INFINITY;
}

/* The same for logits. */
static float least_logit(const search *s, const sentence *x, const next_ids *n)
{
    float least = least_of_interest(s, x, &x->live[n->from]);
    double max = (double)n->sum->max, log_sum = (double)n->sum->log_sum, z = (double)least + max + log_sum;
    float logit = (float)(z - 1e-6 * (fabs(z) + fabs(max) + fabs(log_sum)));
    return qkv__log_p(n->sum, logit) < least ? logit : -INFINITY;
}

/* Whether one of them is not below `least`: a NaN is not. No branch inside, so that a compiler takes several at once. */
static bool any_of_interest(const float *logits, int64_t n, float least)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++) found |= !(logits[i] < least);
    return found != 0;
}

/* False: a log-probability is not a number. */
static bool offer_ids(const search *s, sentence *x, const next_ids *n, int64_t first, int64_t end)
{
    const row *r = &x->live[n->from];
    for (int64_t i = first; i < end; i++) {
        int32_t id = x->ids ? x->ids[i] : (int32_t)i;
        double log_p = r->n < s->o.n_forced ? 0 : (double)qkv__log_p(n->sum, n->logits[i]);
        candidate c = { r->log_p + log_p, n->from, id };
        if (x->n_candidates == 2 * s->o.beam_size && c.log_p < x->candidates[x->n_candidates - 1].log_p) continue;
        if (c.log_p != c.log_p) return false;
        if (c.log_p != -INFINITY && is_allowed(s, r, c.id)) offer(s, x, c);
    }
    return true;
}

/* Of sentence `task` of the active ones. */
static void find_candidates(void *work, int64_t task, void *scratch)
{
    (void)scratch;
    enum { GLANCE = 128 }; /* ids: nearly all of them are too unlikely */
    const search *s = work;
    sentence *x = &s->all[s->active[task]];
    x->n_candidates = 0;
    for (int64_t b = 0; b < s->o.beam_size && x->live[b].log_p != -INFINITY; b++) {
        const next_ids n = { b, x->logits + b * x->n_ids, &x->sums[b] };
        for (int64_t i = 0; i < x->n_ids; i += GLANCE) {
            int64_t end = qkv__min(i + GLANCE, x->n_ids);
            if (!any_of_interest(n.logits + i, end - i, least_logit(s, x, &n))) continue;
            if (offer_ids(s, x, &n, i, end)) continue;
            x->n_candidates = -1;
            return;
        }
    }
}

/* ---- results ---- */

static void finish_hypothesis(const search *s, sentence *x, const row *r, double log_p, int64_t length, bool cut)
{
    double score = log_p / qkv__search_penalty(&s->o, length);
    int at = x->n_done;
    if (at == s->o.n_best && !(score > x->scores[at - 1])) return;
    if (at < s->o.n_best) x->n_done++;
    else at--;
    row place = x->done[at];
    for (; at > 0 && score > x->scores[at - 1]; at--) {
        x->done[at] = x->done[at - 1];
        x->scores[at] = x->scores[at - 1];
        x->cut[at] = x->cut[at - 1];
    }
    memcpy(place.ids, r->ids, sizeof(int32_t) * (size_t)r->n);
    x->done[at] = (row){ log_p, place.ids, r->n };
    x->scores[at] = score;
    x->cut[at] = cut;
}

/* Whether a live row may still become better than the worst result kept. The first is the likeliest; a log-probability only
 * falls, and the penalty (alpha is not negative) is largest at full length. */
static bool may_improve(const search *s, const sentence *x)
{
    return x->n_done < s->o.n_best || x->live[0].log_p / qkv__search_penalty(&s->o, x->most) > x->scores[x->n_done - 1];
}

/* ---- a step ---- */

enum { NOT_FOLLOWED = -1 };

/* Who looks on is told what becomes of candidate i: a live row, or NOT_FOLLOWED. */
static void tell_candidate(const search *s, const sentence *x, int i, int64_t length, int to)
{
    if (!s->o.each_candidate) return;
    const candidate *c = &x->candidates[i];
    bool ends = ends_hypothesis(&s->o, c->id) && i < s->o.beam_size;
    s->o.each_candidate(s->o.each_candidate_data,
                        &(qkv_search_candidate){ .sentence = x - s->all,
                                                 .step = length,
                                                 .from = (int)c->from,
                                                 .to = to,
                                                 .id = c->id,
                                                 .is_end = ends,
                                                 .log_p = c->log_p,
                                                 .score = ends ? c->log_p / qkv__search_penalty(&s->o, length) : 0 });
}

/* The live rows of x after this step; from[b] is the row that row b comes from. Gives whether x goes on. */
static bool advance(const search *s, sentence *x, int64_t length, int64_t *from)
{
    int live = 0, i = 0;
    for (; i < x->n_candidates && live < s->o.beam_size; i++) {
        const candidate *c = &x->candidates[i];
        const row *r = &x->live[c->from];
        tell_candidate(s, x, i, length, ends_hypothesis(&s->o, c->id) ? NOT_FOLLOWED : live);
        if (ends_hypothesis(&s->o, c->id)) {
            if (i < s->o.beam_size) finish_hypothesis(s, x, r, c->log_p, length, false);
            if (i == 0 && s->o.beam_size == 1) return false;
            continue;
        }
        row *to = &x->next[live];
        memcpy(to->ids, r->ids, sizeof(int32_t) * (size_t)r->n);
        to->ids[r->n] = c->id;
        to->n = r->n + 1;
        to->log_p = c->log_p;
        from[live++] = c->from;
    }
    for (; i < x->n_candidates; i++) tell_candidate(s, x, i, length, NOT_FOLLOWED);
    for (int b = live; b < s->o.beam_size; b++) x->next[b].log_p = -INFINITY, x->next[b].n = 0, from[b] = 0;
    row *spare = x->live;
    x->live = x->next;
    x->next = spare;
    if (length == x->most) /* no room for more: what there is counts, without its end */
        for (int b = 0; b < live; b++) finish_hypothesis(s, x, &x->live[b], x->live[b].log_p, length, true);
    return live > 0 && length < x->most && may_improve(s, x);
}

static int64_t count_live(const search *s, const sentence *x)
{
    int64_t n = 0;
    while (n < s->o.beam_size && x->live[n].log_p != -INFINITY) n++;
    return n;
}

/* The rows of the session are the live rows of the sentences that go on, sentence by sentence. */
static qkv_status read_live_rows(search *s, qkv_session *session)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < s->n_active; i++) {
        sentence *x = &s->all[s->active[i]];
        x->first_row = rows;
        for (int64_t b = 0, n = count_live(s, x); b < n; b++) {
            const row *r = &x->live[b];
            s->ids[rows++] = r->n ? r->ids[r->n - 1] : s->o.start;
        }
    }
    return qkv_session_read(session, s->ids, NULL, QKV_LOGITS_LAST);
}

/* The logits of the ids of one sentence, which lie among those of the whole batch: on their own, so that they are summed as if
 * there were no other sentence. */
static qkv_tensor *listed_logits(const search *s, const sentence *x, qkv_tensor *logits)
{
    const int32_t *places = s->targets.places + s->targets.begins[x - s->all];
    int64_t rows = count_live(s, x);
    qkv_tensor *own = qkv__result(logits->tape, 2, (int64_t[]){ rows, x->n_ids }, NULL, 0, NULL);
    for (int64_t b = 0; own && b < rows; b++)
        for (int64_t i = 0; i < x->n_ids; i++)
            own->data[b * x->n_ids + i] = logits->data[(x->first_row + b) * s->targets.n_all + places[i]];
    return own;
}

/* Sets the logits of every sentence that goes on. */
static qkv_status find_logits(search *s, qkv_tensor *logits)
{
    const qkv__log_sum *sums = s->o.shortlist ? NULL : qkv__log_sums(logits);
    for (int64_t i = 0; i < s->n_active; i++) {
        sentence *x = &s->all[s->active[i]];
        qkv_tensor *own = s->o.shortlist ? listed_logits(s, x, logits) : NULL;
        x->logits = own ? qkv_tensor_data(own) : qkv_tensor_data(logits) + x->first_row * s->vocabulary;
        x->sums = own ? qkv__log_sums(own) : sums ? sums + x->first_row : NULL;
        if (!x->sums) return qkv_error_status();
    }
    return QKV_OK;
}

static qkv_status step(search *s, qkv_session *session, int64_t length)
{
    int64_t going_on = 0, kept = 0;
    qkv_status status = read_live_rows(s, session);
    if (!status) status = find_logits(s, qkv_session_logits(session));
    if (!status) status = qkv__parallel(s->n_active, 0, find_candidates, s);
    if (status) return status;
    for (int64_t i = 0; i < s->n_active; i++) {
        sentence *x = &s->all[s->active[i]];
        int64_t *from = s->parents + kept;
        if (x->n_candidates < 0) return qkv__fail(QKV_NUMERIC, "search: a log-probability is not a number");
        if (!advance(s, x, length, from)) continue;
        int64_t live = count_live(s, x);
        for (int64_t b = 0; b < live; b++) from[b] += x->first_row;
        kept += live;
        s->active[going_on++] = s->active[i];
    }
    s->n_active = going_on;
    return going_on ? qkv_session_select(session, s->parents, kept) : QKV_OK;
}

/* ---- memory: one block for everything ---- */

/* The next n bytes of the block; counts only while there is none. */
static void *carve(search *s, size_t *used, size_t count, size_t size)
{
    void *at = s->memory ? (char *)s->memory + *used : NULL;
    *used += (count * size + 63) & ~(size_t)63;
    return at;
}

static void lay_rows(search *s, size_t *used, row **rows, int n)
{
    row *all = carve(s, used, (size_t)n, sizeof **rows);
    int32_t *ids = carve(s, used, (size_t)n * (size_t)s->room, sizeof *ids);
    for (int i = 0; all && i < n; i++) all[i] = (row){ -INFINITY, ids + i * s->room, 0 };
    if (rows && all) *rows = all;
}

static size_t lay_out_search(search *s)
{
    size_t used = 0, beam = (size_t)s->o.beam_size, n = (size_t)s->n_all;
    sentence none = { 0 };
    s->all = carve(s, &used, n, sizeof *s->all);
    s->active = carve(s, &used, n, sizeof *s->active);
    s->ids = carve(s, &used, n * beam, sizeof *s->ids);
    s->parents = carve(s, &used, n * beam, sizeof *s->parents);
    for (int64_t i = 0; i < s->n_all; i++) {
        sentence *x = s->all ? &s->all[i] : &none;
        *x = (sentence){ .most = most_tokens(s, i), .n_ids = s->vocabulary };
        lay_rows(s, &used, &x->live, s->o.beam_size);
        lay_rows(s, &used, &x->next, s->o.beam_size);
        lay_rows(s, &used, &x->done, s->o.n_best);
        x->candidates = carve(s, &used, 2 * beam, sizeof *x->candidates);
        x->scores = carve(s, &used, (size_t)s->o.n_best, sizeof *x->scores);
        x->cut = carve(s, &used, (size_t)s->o.n_best, sizeof *x->cut);
        if (s->all) x->live[0].log_p = 0, s->active[i] = i;
    }
    return used;
}

/* ---- the call ---- */

static qkv_status check_prefix(const qkv_search_opts *o, int64_t vocabulary)
{
    if (o->n_prefix < 0 || (o->n_prefix && !o->prefix)) return qkv__fail(QKV_USAGE, "search: the prefix is missing");
    if (o->max_length && o->n_prefix > o->max_length)
        return qkv__fail(QKV_USAGE, "search: a prefix of %lld tokens does not fit into a max_length of %lld",
                         (long long)o->n_prefix, (long long)o->max_length);
    for (int64_t i = 0; i < o->n_prefix; i++) {
        int32_t id = o->prefix[i];
        if (id < 0 || id >= vocabulary)
            return qkv__fail(QKV_USAGE, "search: id %d of the prefix is outside 0..%lld", id, (long long)vocabulary - 1);
        if (ends_hypothesis(o, id) || is_never_found(o, id))
            return qkv__fail(QKV_USAGE, "search: id %d of the prefix is the start, the end or the padding, or it is banned",
                             id);
    }
    return QKV_OK;
}

static qkv_status check_shortlist(const qkv_shortlist *list, const qkv_model *m, const qkv_config *t)
{
    int64_t targets = t->target_vocab_size ? t->target_vocab_size : t->vocab_size;
    if (!list) return QKV_OK;
    if (list->sources != t->vocab_size || list->targets != targets)
        return qkv__fail(QKV_USAGE,
                         "search: the shortlist is for vocabularies of %lld and %lld tokens, the model has %lld and %lld",
                         (long long)list->sources, (long long)list->targets, (long long)t->vocab_size, (long long)targets);
    uint64_t own = qkv__tokenizers_fingerprint(m);
    if (!own || !list->tokenizers || own == list->tokenizers) return QKV_OK;
    return qkv__fail(QKV_USAGE, "search: the shortlist was learned with other tokenizers than the model's: learn one for it");
}

/* The start takes one of the positions that end somewhere. 0: they do not. */
static int64_t max_positions_of(const qkv_config *t)
{
    int64_t most = qkv__max_positions(t);
    return most ? qkv__max(most - 1, 1) : 0;
}

/* What the files of a published model allow counts the start; 0: they do not say. */
static int64_t usual_length(const qkv_model *m)
{
    int64_t most = qkv__model_get_info(m)->max_length;
    return most > 1 ? most - 1 : 0;
}

qkv_status qkv__search_resolve_options(const qkv_model *m, qkv_search_opts *o)
{
    const qkv_config *t = qkv__model_config(m);
    if (!t || !t->encoder_layers || !t->decoder_layers)
        return qkv__fail(QKV_USAGE, "search: the model needs an encoder and a decoder");
    if (!o->beam_size) o->beam_size = 1;
    if (!o->n_best) o->n_best = 1;
    if (o->beam_size < 1 || o->beam_size > 1000 || o->n_best < 1 || o->n_best > o->beam_size)
        return qkv__fail(QKV_USAGE, "search: beam %d and %d results: expected a beam of 1 to 1000 and at most as many results",
                         o->beam_size, o->n_best);
    if (o->max_length < 0 || o->max_length > MOST_TOKENS || o->no_repeat_ngram < 0 || o->min_length < 0 || o->n_forced < 0 ||
        !(o->length_penalty >= 0 && o->length_penalty < QKV__LENGTH_PENALTY_END))
        return qkv__fail(QKV_USAGE,
                         "search: max_length, min_length, no_repeat_ngram, n_forced or length_penalty is out of range");
    if (o->n_ends < 0 || o->n_banned < 0 || (o->n_ends && !o->ends) || (o->n_banned && !o->banned))
        return qkv__fail(QKV_USAGE, "search: the ids that end a result, or are never found, are missing");
    qkv_status status = check_shortlist(o->shortlist, m, t);
    if (!status) status = qkv__check_length(QKV_USAGE, "search: a max_length of", o->max_length, max_positions_of(t));
    return status ? status : check_prefix(o, t->target_vocab_size ? t->target_vocab_size : t->vocab_size);
}

/* s has the sources and the options as they were given. */
static qkv_status resolve_search(search *s, const qkv_model *m)
{
    const qkv_config *t = qkv__model_config(m);
    qkv_status status = qkv__search_resolve_options(m, &s->o);
    if (status) return status;
    if (s->o.length_penalty == 0 && !s->o.no_length_penalty) s->o.length_penalty = QKV__LENGTH_PENALTY;
    s->vocabulary = t->target_vocab_size ? t->target_vocab_size : t->vocab_size;
    s->max_positions = max_positions_of(t);
    if (usual_length(m)) s->max_positions = s->max_positions ? qkv__min(s->max_positions, usual_length(m)) : usual_length(m);
    for (int64_t i = 0; i < s->n_all; i++) s->room = qkv__max(s->room, most_tokens(s, i));
    if (s->room > MOST_TOKENS || s->o.n_prefix > s->room)
        return qkv__fail(QKV_USAGE, "search: results of up to %lld tokens: more than the model or the search can take",
                         (long long)qkv__max(s->room, s->o.n_prefix));
    return QKV_OK;
}

/* ---- the shortlist ---- */

/* What the list of every sentence has whatever the list says: its ends and its prefix. */
static qkv_status find_own_targets(search *s)
{
    size_t n = 0, bytes = sizeof *s->ids * (size_t)(1 + s->o.n_ends + s->o.n_prefix);
    int32_t *more = qkv__alloc(bytes);
    if (!more) return QKV_MEMORY;
    if (s->o.end >= 0 && s->o.end < s->vocabulary) more[n++] = s->o.end;
    for (int i = 0; i < s->o.n_ends; i++)
        if (s->o.ends[i] >= 0 && s->o.ends[i] < s->vocabulary) more[n++] = s->o.ends[i];
    for (int64_t i = 0; i < s->o.n_prefix; i++) more[n++] = s->o.prefix[i];
    qkv_status status = qkv__batch_targets_find(s->o.shortlist, s->sources, s->n_all, s->length, s->lengths, more, (int64_t)n,
                                                &s->targets);
    qkv__release(more, bytes);
    return status;
}

static qkv_status use_shortlist(search *s, qkv_session *session)
{
    const qkv__batch_targets *t = &s->targets;
    if (!s->o.shortlist) return qkv__session_set_outputs(session, NULL, 0);
    qkv_status status = find_own_targets(s);
    if (status) return status;
    int64_t all = t->begins[s->n_all];
    if (qkv__grow((void **)&s->listed, &s->listed_bytes, sizeof *s->listed * (size_t)all)) return QKV_MEMORY;
    for (int64_t i = 0; i < all; i++) s->listed[i] = t->all[t->places[i]];
    for (int64_t i = 0; i < s->n_all; i++) {
        s->all[i].ids = s->listed + t->begins[i];
        s->all[i].n_ids = t->begins[i + 1] - t->begins[i];
    }
    return qkv__session_set_outputs(session, t->all, t->n_all);
}

static qkv_status search_all(search *s, qkv_session *session)
{
    qkv_status status = qkv_session_encode(
        session, &(qkv_tokens){ .ids = s->sources, .rows = s->n_all, .length = s->length, .lengths = s->lengths });
    if (!status) status = use_shortlist(s, session);
    for (int64_t n = 1; s->n_active && !status; n++) {
        if (s->each_step) status = s->each_step(s->each_step_data);
        if (!status) status = step(s, session, n);
    }
    return status;
}

/* ---- what is reported ---- */

static const qkv__result_kind result_kind = { .size = sizeof(qkv_search_result) };

/* Hypotheses of all sentences, none found as yet. NULL: MEMORY. */
static qkv_hypothesis *make_room(const search *s, qkv_search_result *out)
{
    size_t n = (size_t)s->n_all * (size_t)s->o.n_best;
    qkv_hypothesis *best = qkv__result_alloc(out, sizeof *best * n);
    int32_t *ids = qkv__result_alloc(out, sizeof *ids * n * (size_t)s->room);
    if (!best || !ids) return NULL;
    for (size_t i = 0; i < n; i++) best[i] = (qkv_hypothesis){ .ids = ids + i * (size_t)s->room, .n = -1 };
    out->rows = s->n_all;
    out->n_best = s->o.n_best;
    out->best = best;
    return best;
}

static void report(const search *s, qkv_hypothesis *best)
{
    for (int64_t i = 0; i < s->n_all; i++)
        for (int k = 0; k < s->all[i].n_done; k++) {
            const sentence *x = &s->all[i];
            qkv_hypothesis *h = &best[i * s->o.n_best + k];
            int32_t *ids = (int32_t *)h->ids;
            *h = (qkv_hypothesis){
                .ids = ids, .n = x->done[k].n, .log_p = x->done[k].log_p, .score = x->scores[k], .truncated = x->cut[k]
            };
            memcpy(ids, x->done[k].ids, sizeof(int32_t) * (size_t)x->done[k].n);
        }
}

/* s: n sentences from number `first` on of what is asked for. */
static qkv_status search_part(search s, int64_t first, int64_t n, qkv_session *session, qkv_hypothesis *best)
{
    s.n_all = s.n_active = n;
    s.sources += first * s.length;
    if (s.lengths) s.lengths += first;
    s.bytes = lay_out_search(&s);
    if (!(s.memory = qkv__alloc(s.bytes))) return QKV_MEMORY;
    lay_out_search(&s);
    qkv_status status = search_all(&s, session);
    if (!status) report(&s, best + first * s.o.n_best);
    qkv__release(s.memory, s.bytes);
    qkv__batch_targets_free(&s.targets);
    qkv__release(s.listed, s.listed_bytes);
    return status;
}

/* s: the caller's sources and options. */
static qkv_status begin_result(search *s, const qkv_model *m, qkv_search_result **out, qkv_hypothesis **best)
{
    qkv_search_result *r = qkv__result_begin(*out, &result_kind);
    if (!r) return qkv_error_status();
    *out = r;
    qkv_status status = resolve_search(s, m);
    return status || (*best = make_room(s, r)) ? status : QKV_MEMORY;
}

qkv_status qkv__search_in(qkv_session *session, const qkv_model *m, const qkv_tokens *x, const qkv_search_opts *opts,
                          qkv_each_step each_step, void *each_step_data, qkv_search_result **out)
{
    search s = { .o = *opts,
                 .each_step = each_step,
                 .each_step_data = each_step_data,
                 .sources = x->ids,
                 .n_all = x->rows,
                 .length = x->length,
                 .lengths = x->lengths };
    qkv_hypothesis *best;
    qkv_status status = begin_result(&s, m, out, &best);
    if (!status) status = search_part(s, 0, x->rows, session, best);
    if (status) qkv__result_clear(*out);
    return status;
}

/* ---- the call: each thread its own sentences where there are many ---- */

typedef struct parts {
    const search *s;
    const qkv_model *m;
    int64_t most; /* sentences of one */
    qkv_hypothesis *best;
} parts;

static void *start_session(void *work) { return qkv_session_new(((const parts *)work)->m, NULL); }

static void end_session(void *session) { qkv_session_free(session); }

static qkv_status run_part(void *work, void *session, int64_t part, qkv_each_step each_step, void *each_step_data)
{
    const parts *p = work;
    search s = *p->s;
    int64_t first = part * p->most;
    s.each_step = each_step;
    s.each_step_data = each_step_data;
    return search_part(s, first, qkv__min(p->most, s.n_all - first), session, p->best);
}

static qkv_status ask_hooks(void *work) { return qkv__cancelled(((const parts *)work)->s->o.hooks, "search"); }

qkv_status qkv_beam_search(const qkv_model *m, const qkv_tokens *source, const qkv_search_opts *opts, qkv_search_result **out)
{
    qkv_tokens x;
    search s = { 0 };
    qkv_hypothesis *best = NULL;
    qkv_status status = QKV__READ_OPTIONS(&x, lengths, source, "search");
    if (!status && (!m || !x.ids || !opts || !out || x.rows < 1 || x.length < 1))
        status = qkv__fail(
            QKV_USAGE,
            "search: a model, at least one sentence with at least one id, options and a place for results are needed");
    if (!status && x.types) status = qkv__fail(QKV_USAGE, "search: a translator's tokens have no types");
    if (!status) status = QKV__READ_OPTIONS(&s.o, each_candidate_data, opts, "search");
    s.sources = x.ids, s.n_all = x.rows, s.length = x.length, s.lengths = x.lengths;
    if (!status) status = begin_result(&s, m, out, &best);
    if (!status) { /* step by step where somebody looks on */
        int64_t n = s.o.each_candidate ? 1 : qkv__count_batches(x.rows, x.rows, s.o.beam_size);
        parts p = { &s, m, qkv__ceil_div(x.rows, n), best };
        status = qkv__run_batches(&(qkv__batches){ .n = qkv__ceil_div(x.rows, p.most),
                                                   .work = &p,
                                                   .start = start_session,
                                                   .end = end_session,
                                                   .run = run_part,
                                                   .each_step = s.o.hooks ? ask_hooks : NULL,
                                                   .each_step_data = &p });
    }
    if (status && out) qkv__result_clear(*out);
    return status;
}
