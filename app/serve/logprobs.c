/* logprobs.c: the tokens of a completion with their log-probabilities, as OpenAI's completions have them. */
#include "logprobs.h"

#include <qkv/unstable/util.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

void qkv__logprobs_begin(qkv__logprobs *l) { l->characters = 0; }

void qkv__logprobs_free(qkv__logprobs *l)
{
    qkv_free(l->shorter);
    qkv_free(l->longer);
    for (int i = 0; i <= QKV__TOP; i++) qkv_buffer_free(&l->keys[i]);
}

/* ---- tokens as text ---- */

static qkv_status spell_bytes(const char *bytes, size_t length, qkv_buffer *out)
{
    char hex[8];
    qkv_status status = qkv__buffer_put(out, "bytes:", 6);
    for (size_t i = 0; i < length && !status; i++) {
        snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)bytes[i]);
        status = qkv__buffer_put(out, hex, 4);
    }
    return status;
}

qkv_status qkv__find_token_piece(qkv__logprobs *l, const qkv_tokenizer *t, int32_t before, int32_t id, const char **piece,
                                 size_t *length)
{
    const int32_t ids[2] = { before, id };
    const int has_before = before >= 0;
    qkv_status status = qkv_tokenizer_decode(t, ids, has_before, 0, &l->shorter);
    if (!status) status = qkv_tokenizer_decode(t, ids + !has_before, has_before + 1, 0, &l->longer);
    size_t begin = 0;
    while (!status && begin < l->shorter->length && begin < l->longer->length &&
           l->shorter->data[begin] == l->longer->data[begin])
        begin++;
    *piece = status ? NULL : l->longer->data + begin;
    *length = status ? 0 : l->longer->length - begin;
    return status;
}

/* A model may have more ids than its tokenizer has tokens: those add nothing. */
static qkv_status spell_token(qkv__logprobs *l, const qkv_tokenizer *t, int32_t before, int32_t id, qkv_buffer *out)
{
    qkv__buffer_clear(out);
    l->of_token = 0;
    l->length = 0;
    qkv_status status = qkv__buffer_put(out, "", 0);
    if (status || id >= qkv_tokenizer_vocab_size(t)) return status;
    if ((status = qkv__find_token_piece(l, t, before, id, &l->piece, &l->length))) return status;
    for (size_t i = 0; i < l->length; i++) l->of_token += ((unsigned char)l->piece[i] & 0xC0) != 0x80;
    if (qkv_utf8_valid(l->piece, l->length) < l->length) return spell_bytes(l->piece, l->length, out);
    return qkv__buffer_put(out, l->piece, l->length);
}

/* ---- one token ---- */

typedef struct place {
    int32_t before, id;
    double log_p;
    const qkv_likely *top;
} place;

/* Of the prompt, and behind it the new ones. */
static int32_t id_at(const qkv_generated *g, int64_t i) { return i < g->n_prompt ? g->prompt_ids[i] : g->ids[i - g->n_prompt]; }

static place place_of_token(const qkv_generated *g, int n_top, int64_t i)
{
    int64_t k = i - g->n_prompt;
    return (place){ .before = i ? id_at(g, i - 1) : -1,
                    .id = id_at(g, i),
                    .log_p = k < 0 ? g->prompt_log_p[i] : g->log_p[k],
                    .top = !n_top  ? NULL
                           : k < 0 ? g->prompt_top + i * n_top
                                   : g->top + k * n_top };
}

static bool is_told(const qkv__logprobs *l, int n)
{
    for (int i = 0; i < n; i++)
        if (l->keys[i].length == l->keys[n].length && !memcmp(l->keys[i].data, l->keys[n].data, l->keys[n].length)) return true;
    return false;
}

/* Two tokens that add the same text have one key: that of the likelier one. */
static void put_likely(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, int32_t before, qkv_likely x, int *n)
{
    qkv_status status = x.id < 0 ? QKV_OK : spell_token(l, t, before, x.id, &l->keys[*n]);
    if (!j->status) j->status = status;
    if (status || x.id < 0 || is_told(l, *n)) return;
    qkv__put_raw(j, *n ? "," : "");
    qkv__put_string(j, l->keys[*n].data, l->keys[*n].length);
    qkv__put_raw(j, ":");
    qkv__put_double(j, x.log_p);
    ++*n;
}

/* The likeliest, and the one that came. */
static void put_top(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, place p, int n_top)
{
    int n = 0;
    bool is_among = false;
    if (isnan(p.log_p)) {
        qkv__put_raw(j, "null");
        return;
    }
    qkv__put_raw(j, "{");
    for (int k = 0; k < n_top; k++) {
        is_among |= p.top[k].id == p.id;
        put_likely(j, l, t, p.before, p.top[k], &n);
    }
    if (!is_among) put_likely(j, l, t, p.before, (qkv_likely){ p.id, p.log_p }, &n);
    qkv__put_raw(j, "}");
}

static void put_token(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, place p)
{
    qkv_status status = spell_token(l, t, p.before, p.id, &l->keys[0]);
    if (!j->status) j->status = status;
    if (!status) qkv__put_string(j, l->keys[0].data, l->keys[0].length);
}

/* ---- all ---- */

void qkv__put_logprobs(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, const qkv_generated *g, int n_top, int64_t from,
                       int64_t to)
{
    qkv__json offsets = { 0 };
    qkv__put_raw(j, "{\"tokens\":[");
    for (int64_t i = from; i < to && !j->status; i++) {
        if (i > from) qkv__put_raw(j, ","), qkv__put_raw(&offsets, ",");
        put_token(j, l, t, place_of_token(g, n_top, i));
        qkv__put_whole(&offsets, l->characters);
        l->characters += l->of_token;
    }
    qkv__put_raw(j, "],\"token_logprobs\":[");
    for (int64_t i = from; i < to; i++) {
        if (i > from) qkv__put_raw(j, ",");
        qkv__put_double(j, place_of_token(g, n_top, i).log_p);
    }
    qkv__put_raw(j, "],\"top_logprobs\":[");
    for (int64_t i = from; i < to && !j->status; i++) {
        if (i > from) qkv__put_raw(j, ",");
        put_top(j, l, t, place_of_token(g, n_top, i), n_top);
    }
    qkv__put_raw(j, "],\"text_offset\":[");
    qkv__put_bytes(j, offsets.text.data, offsets.text.length);
    qkv__put_raw(j, "]}");
    if (!j->status) j->status = offsets.status;
    qkv_buffer_free(&offsets.text);
}

/* ---- as chats have it ---- */

/* The members of one token; the object stays open. */
static void put_chat_token(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, int32_t before, qkv_likely x)
{
    qkv_status status = spell_token(l, t, before, x.id, &l->keys[0]);
    if (!j->status) j->status = status;
    if (status) return;
    qkv__put_raw(j, "{\"token\":");
    qkv__put_string(j, l->keys[0].data, l->keys[0].length);
    qkv__put_raw(j, ",\"logprob\":");
    qkv__put_double(j, x.log_p);
    qkv__put_raw(j, ",\"bytes\":[");
    for (size_t i = 0; i < l->length; i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_whole(j, (unsigned char)l->piece[i]);
    }
    qkv__put_raw(j, "]");
}

void qkv__put_chat_logprobs(qkv__json *j, qkv__logprobs *l, const qkv_tokenizer *t, const qkv_generated *g, int n_top,
                            int64_t from, int64_t to)
{
    qkv__put_raw(j, "{\"content\":[");
    for (int64_t i = from; i < to && !j->status; i++) {
        const place p = place_of_token(g, n_top, i);
        if (i > from) qkv__put_raw(j, ",");
        put_chat_token(j, l, t, p.before, (qkv_likely){ p.id, p.log_p });
        qkv__put_raw(j, ",\"top_logprobs\":[");
        for (int k = 0; k < n_top && p.top[k].id >= 0; k++) {
            if (k) qkv__put_raw(j, ",");
            put_chat_token(j, l, t, p.before, p.top[k]);
            qkv__put_raw(j, "}");
        }
        qkv__put_raw(j, "]}");
    }
    qkv__put_raw(j, "],\"refusal\":null}");
}
