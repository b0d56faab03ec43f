/* unigram.c: of all ways to cut a piece into tokens, the one whose scores add up highest. */
#include "pipeline.h"

#include <qkv/unstable/util.h>

/* Whether text can give a token: SentencePiece keeps some for other uses. */
static bool counts(const qkv_tokenizer *t, const qkv__encoder *e, int32_t id)
{
    const unsigned char *types = t->pipeline->types;
    return qkv__may_give(t, e, id) && (!types || types[id] == QKV__NORMAL || types[id] == QKV__USER_DEFINED);
}

/* A way that is no better than the one before it does not take its place. */
static void offer(const qkv__pipeline *p, qkv__best *best, double score, size_t begin, int32_t id)
{
    if (best->begin != QKV__NONE && !(score > best->score)) return;
    *best = (qkv__best){ .score = p->single_precision ? (double)(float)score : score, .begin = (uint32_t)begin, .id = id };
}

/* All tokens that start at a place; a character that is none by itself may be unknown. */
static void offer_tokens(const qkv_tokenizer *t, const qkv__encoder *e, const char *text, size_t length, size_t at,
                         size_t bytes)
{
    const qkv__pipeline *p = t->pipeline;
    double before = e->best[at].score;
    bool is_known = false;
    qkv__walk w = qkv__walk_begin(t);
    for (size_t end = at; end < length && qkv__walk_step(t, &w, (unsigned char)text[end]); end++) {
        int32_t id = qkv__walk_token(t, &w);
        if (!counts(t, e, id)) continue;
        offer(p, &e->best[end + 1], p->scores[id] + before, at, id);
        is_known = is_known || w.depth == bytes;
    }
    if (!is_known) offer(p, &e->best[at + bytes], p->unknown_score + before, at, t->unknown);
}

static void find_best(const qkv_tokenizer *t, const qkv__encoder *e, const char *text, size_t length)
{
    e->best[0].score = 0;
    for (size_t i = 0; i <= length; i++) e->best[i].begin = QKV__NONE;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        qkv_utf8_next(text + at, length - at, &bytes);
        offer_tokens(t, e, text, length, at, bytes);
    }
    for (size_t end = length; end; end = e->best[end].begin) e->best[e->best[end].begin].next = (uint32_t)end;
}

qkv_status qkv__unigram_encode(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out)
{
    qkv__encoder *e = out->encoder;
    size_t length = piece.end - piece.begin;
    qkv_status status = qkv__grow((void **)&e->best, &e->best_bytes, (length + 1) * sizeof *e->best);
    if (status) return status;
    find_best(t, e, e->now.text.data + piece.begin, length);
    for (size_t at = 0; at < length && !status; at = e->best[at].next) {
        size_t end = e->best[at].next;
        int32_t id = e->best[end].id;
        status = id == t->unknown ? qkv__put_unknown(t, piece.begin + at, piece.begin + end, out)
                                  : qkv__put_token(t, id, piece.begin + at, piece.begin + end, out);
    }
    return status;
}
