/* bpe_dropout.c: an epoch cuts its texts anew (Provilkov et al. 2020). The ids of a pair tell its texts, so that nothing but
 * the pairs is kept; what is drawn depends on (seed, epoch, pair, side) alone, so that threads and resumed runs agree. */
#include "bpe_dropout.h"

#include "../base/pool.h"
#include "../base/random.h"
#include "../base/size.h"
#include "../text/pairs.h"
#include "../token/tokenizer.h"

enum { SIDES = 2, GROUP = 1024, TASK = 32, TASKS = GROUP / TASK };

/* Of published tokenizers, decoding gives the text back only for the eye. */
static bool tells_text(const qkv_tokenizer *t) { return t && !t->pipeline && t->kind == QKV_TOKEN_BYTE_PAIRS; }

qkv_status qkv__check_bpe_dropout(const qkv_model *m, double share)
{
    if (!(share >= 0 && share < 1)) return qkv__fail(QKV_USAGE, "BPE dropout: %g is not at least 0 and below 1", share);
    if (tells_text(qkv_model_source_tokenizer(m)) && tells_text(qkv_model_target_tokenizer(m))) return QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED, "BPE dropout: it needs tokenizers of byte pairs that were trained here");
}

/* Pairs that are cut at a time, on all threads. */
typedef struct cutting {
    const qkv_pairs *from;
    const qkv_tokenizer *tokenizers[SIDES];
    float share;
    uint64_t seed, epoch;
    int64_t first, n, most; /* most: ids that the model reads of a side; 0: any number */
    qkv_ids ids[GROUP][SIDES];
    qkv_text texts[TASKS];
    qkv_status status[TASKS];
} cutting;

static uint64_t seed_of_text(const cutting *c, int64_t pair, int side)
{
    qkv__key key = qkv__key_for(c->seed, c->epoch, (uint64_t)(SIDES * pair + side));
    return (uint64_t)key.word[1] << 32 | key.word[0];
}

static qkv_status cut_side(cutting *c, int64_t task, int64_t i, int side)
{
    int64_t n, pair = c->first + i;
    const int32_t *ids = qkv__pairs_side(c->from, pair, side, &n);
    const qkv_tokenizer *t = c->tokenizers[side];
    qkv_text *text = &c->texts[task];
    qkv_encode_opts o = { .size = sizeof o, .any_bytes = 1, .dropout = c->share, .dropout_seed = seed_of_text(c, pair, side) };
    qkv_status status = qkv_tokenizer_decode(t, ids, (size_t)n, 0, text);
    return status ? status : qkv_tokenizer_encode(t, text->data, text->length, &o, &c->ids[i][side]);
}

static void cut_pairs(void *work, int64_t task, void *scratch)
{
    cutting *c = work;
    (void)scratch;
    for (int64_t i = task * TASK; i < qkv__min((task + 1) * TASK, c->n) && !c->status[task]; i++)
        for (int s = 0; s < SIDES && !c->status[task]; s++) c->status[task] = cut_side(c, task, i, s);
}

/* A side with start or end may be too long for the model: it stays as it was. */
static qkv_status add_cut(const cutting *c, int64_t i, qkv_pairs *to)
{
    const int32_t *ids[SIDES];
    int64_t n[SIDES];
    for (int s = 0; s < SIDES; s++) {
        const qkv_ids *cut = &c->ids[i][s];
        ids[s] = qkv__pairs_side(c->from, c->first + i, s, &n[s]);
        if (!c->most || (int64_t)cut->n < c->most) ids[s] = cut->ids, n[s] = (int64_t)cut->n;
    }
    return qkv_pairs_add(to, ids[0], (size_t)n[0], ids[1], (size_t)n[1]);
}

static qkv_status cut_group(cutting *c, qkv_pairs *to)
{
    qkv_status status = qkv__parallel(qkv__ceil_div(c->n, TASK), 0, cut_pairs, c);
    for (int i = 0; i < TASKS && !status; i++)
        if ((status = c->status[i])) qkv__fail(status, "BPE dropout: a text could not be cut anew");
    for (int64_t i = 0; i < c->n && !status; i++) status = add_cut(c, i, to);
    return status;
}

static qkv_status cut_all(cutting *c, qkv_pairs *to)
{
    qkv_status status = QKV_OK;
    int64_t all = qkv_pairs_count(c->from);
    for (; c->first < all && !status; c->first += GROUP) {
        c->n = qkv__min(GROUP, all - c->first);
        status = cut_group(c, to);
    }
    return status;
}

qkv_pairs *qkv__drop_merges(const qkv_pairs *pairs, const qkv_model *m, double share, uint64_t seed, uint64_t epoch)
{
    qkv_pairs *to = qkv_pairs_new();
    cutting *c = to ? qkv__alloc_zero(sizeof *c) : NULL;
    if (!c) return qkv_pairs_free(to), NULL;
    c->from = pairs;
    c->tokenizers[0] = qkv_model_source_tokenizer(m);
    c->tokenizers[1] = qkv_model_target_tokenizer(m);
    c->share = (float)share;
    c->seed = seed;
    c->epoch = epoch;
    c->most = qkv_transformer_max_positions(qkv_transformer_options(qkv_model_transformer(m)));
    qkv_status status = cut_all(c, to);
    for (int i = 0; i < GROUP; i++)
        for (int s = 0; s < SIDES; s++) qkv_ids_free(&c->ids[i][s]);
    for (int i = 0; i < TASKS; i++) qkv_text_free(&c->texts[i]);
    qkv__release(c, sizeof *c);
    if (!status) return to;
    qkv_pairs_free(to);
    return NULL;
}
