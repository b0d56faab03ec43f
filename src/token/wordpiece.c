/* wordpiece.c: a word as the longest tokens it starts with, one after the other; or as a whole. */
#include "pipeline.h"

#include <string.h>

static size_t count_characters(const char *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* The longest token at `at`, and its end; inside a word it is spelled with the prefix. -1 when there is none. */
static int32_t longest_at(const qkv_tokenizer *t, const qkv__encoder *e, qkv__piece word, size_t at, size_t *end)
{
    const char *prefix = at > word.begin ? t->pipeline->prefix : "";
    qkv__walk w = qkv__walk_begin(t);
    int32_t found = -1;
    for (; *prefix; prefix++)
        if (!qkv__walk_step(t, &w, (unsigned char)*prefix)) return -1;
    for (size_t i = at; i < word.end && qkv__walk_step(t, &w, (unsigned char)e->now.text.data[i]); i++) {
        int32_t id = qkv__walk_token(t, &w);
        if (!qkv__may_give(t, e, id)) continue;
        found = id;
        *end = i + 1;
    }
    return found;
}

qkv_status qkv__wordpiece_encode(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out)
{
    const qkv__pipeline *p = t->pipeline;
    const char *text = out->encoder->now.text.data + piece.begin;
    size_t before = out->n, length = piece.end - piece.begin, end = piece.begin;
    if (p->model == QKV__WORD_LEVEL) {
        int32_t id = qkv__tokenizer_find(t, text, length);
        bool is_known = qkv__may_give(t, out->encoder, id);
        if (!is_known && p->is_spm) return qkv__put_unknown(t, piece.begin, piece.end, out);
        return qkv__put_token(t, is_known ? id : t->unknown, piece.begin, piece.end, out);
    }
    bool known = count_characters(text, length) <= p->longest_word;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin; known && at < piece.end && !status; at = end) {
        int32_t id = longest_at(t, out->encoder, piece, at, &end);
        known = id >= 0;
        if (known) status = qkv__put_token(t, id, at, end, out);
    }
    if (known || status) return status;
    out->n = before; /* a part that is not known makes the whole word unknown */
    return qkv__put_token(t, t->unknown, piece.begin, piece.end, out);
}
