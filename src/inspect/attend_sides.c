/* attend_sides.c: the tokens of an axis: the text of each, and which of them only together make whole characters. */
#include "attend.h"

#include <qkv/unstable/util.h>

#include "../base/result.h"
#include "../base/size.h"
#include "../base/buffer.h"

#include <stdio.h>
#include <string.h>

/* ---- tokens ---- */

void qkv__tokens_clear(qkv__tokens *t)
{
    t->n = 0;
    qkv__buffer_clear(&t->text);
}

void qkv__tokens_free(qkv__tokens *t)
{
    qkv__release(t->ids, t->ids_bytes);
    qkv__release(t->special, t->special_bytes);
    qkv__release(t->ends, t->ends_bytes);
    qkv_buffer_free(&t->text);
    qkv__ids_free(&t->encoded);
    qkv_buffer_free(&t->decoded);
    *t = (qkv__tokens){ 0 };
}

static qkv_status put_token_text(qkv__tokens *t, int32_t id, bool special, const char *text, size_t length)
{
    size_t n = (size_t)t->n + 1;
    if (qkv__grow((void **)&t->ids, &t->ids_bytes, n * sizeof *t->ids) ||
        qkv__grow((void **)&t->special, &t->special_bytes, n * sizeof *t->special) ||
        qkv__grow((void **)&t->ends, &t->ends_bytes, n * sizeof *t->ends) || qkv__buffer_put(&t->text, text, length))
        return QKV_MEMORY;
    t->ids[t->n] = id;
    t->special[t->n] = special;
    t->ends[t->n++] = t->text.length;
    return QKV_OK;
}

qkv_status qkv__tokens_put_special(qkv__tokens *t, const qkv_tokenizer *tokenizer, int32_t id)
{
    const char *spelling = qkv_tokenizer_token(tokenizer, id);
    char number[24];
    snprintf(number, sizeof number, "<%d>", id); /* a model may have more ids than its tokenizer has tokens */
    return put_token_text(t, id, true, spelling ? spelling : number, strlen(spelling ? spelling : number));
}

/* A token as the text of its own, in t->decoded. At the start of a text a decoder may drop the space that a token is; behind
 * itself it is seen. */
static qkv_status decode_token(qkv__tokens *t, const qkv_tokenizer *tokenizer, int32_t id)
{
    const int32_t twice[] = { id, id };
    qkv_status status = qkv__decode(tokenizer, twice, 1, 0, &t->decoded);
    return status || t->decoded.length ? status : qkv__decode(tokenizer, twice, 2, 0, &t->decoded);
}

static qkv_status put_decoded(qkv__tokens *t, const qkv_tokenizer *tokenizer, int32_t id)
{
    qkv_status status = decode_token(t, tokenizer, id);
    return status ? status : put_token_text(t, id, false, t->decoded.data, t->decoded.length);
}

/* How many tokens from i on come from the same bytes. A published tokenizer may have a token for each byte of a character, all
 * with its span. */
static size_t same_span(const qkv__ids *x, size_t i)
{
    size_t n = 1;
    while (i + n < x->n && x->spans[i + n].begin == x->spans[i].begin && x->spans[i + n].end == x->spans[i].end) n++;
    return n;
}

qkv_status qkv__tokens_put_text(qkv__tokens *t, const qkv_tokenizer *tokenizer, const char *text, size_t length,
                                const qkv_encode_opts *opts)
{
    qkv__ids *x = &t->encoded;
    qkv_status status = qkv__encode(tokenizer, text, length, opts, x);
    for (size_t i = 0, n; !status && i < x->n; i += n) {
        const char *from = text + x->spans[i].begin;
        size_t bytes = x->spans[i].end - x->spans[i].begin;
        n = same_span(x, i);
        for (size_t k = 0; k < n && !status; k++)
            status = !bytes                ? put_decoded(t, tokenizer, x->ids[i + k]) /* a space put before the text */
                     : n > 1 && n == bytes ? put_token_text(t, x->ids[i + k], false, from + k, 1)
                                           : put_token_text(t, x->ids[i + k], false, from, bytes);
    }
    return status;
}

qkv_status qkv__tokens_put_ids(qkv__tokens *t, const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n)
{
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        if (ids[i] >= qkv_tokenizer_vocab_size(tokenizer) || qkv_tokenizer_is_special(tokenizer, ids[i]))
            status = qkv__tokens_put_special(t, tokenizer, ids[i]);
        else status = put_decoded(t, tokenizer, ids[i]);
    }
    return status;
}

/* ---- units ---- */

static size_t token_begin(const qkv__tokens *t, int64_t i) { return i ? t->ends[i - 1] : 0; }

/* How many tokens from `from` on, and before `to`, make whole characters; 1 where none do, and of a token without text. A
 * special token is never joined: its spelling is whole. */
static int64_t whole_tokens(const qkv__tokens *t, int64_t from, int64_t to)
{
    size_t begin = token_begin(t, from);
    return begin == t->ends[from] ? 1 : qkv_utf8_join(t->text.data, begin, t->ends + from, to - from);
}

qkv_status qkv__put_unit_name(qkv_buffer *name, const char *text, size_t length, bool pieces)
{
    qkv_status status = qkv__buffer_put(name, "", 0);
    for (size_t bytes; length && !status; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_next(text, length, &bytes);
        if (c < 0 && pieces) status = qkv__buffer_put_hex(name, "\\x", text, bytes, "");
        else if (c < 0) status = qkv__buffer_put(name, "\xEF\xBF\xBD", 3);
        else if (!c) status = qkv__buffer_put(name, "\xE2\x90\x80", 3); /* U+2400, the picture of a NUL */
        else status = qkv__buffer_put(name, text, bytes);
    }
    return status;
}

typedef struct units {
    const char **names;
    uint8_t *special;
    int64_t *first, *begin;
    int32_t *ids;
    int64_t n;
} units;

static bool lay_out_units(void *result, int64_t n, units *u)
{
    size_t most = (size_t)n + 1;
    return (u->names = qkv__result_alloc(result, most * sizeof *u->names)) && (u->special = qkv__result_alloc(result, most)) &&
           (u->first = qkv__result_alloc(result, most * sizeof *u->first)) &&
           (u->begin = qkv__result_alloc(result, most * sizeof *u->begin)) &&
           (u->ids = qkv__result_alloc(result, most * sizeof *u->ids));
}

/* The unit of `count` tokens from `at` on, which is token `begin` of what the model read. */
static qkv_status put_unit(void *result, const qkv__tokens *t, int64_t at, int64_t begin, int64_t count, bool pieces,
                           qkv_buffer *name, units *u)
{
    size_t from = token_begin(t, at), length = t->ends[at + count - 1] - from;
    qkv__buffer_clear(name);
    if (qkv__put_unit_name(name, t->text.data + from, length, pieces)) return QKV_MEMORY;
    if (!(u->names[u->n] = qkv__result_copy(result, name->data, name->length).data)) return QKV_MEMORY;
    u->special[u->n] = t->special[at];
    u->begin[u->n] = begin;
    memcpy(u->ids + u->first[u->n], t->ids + at, (size_t)count * sizeof *u->ids);
    u->first[u->n + 1] = u->first[u->n] + count;
    u->n++;
    return QKV_OK;
}

qkv_status qkv__axis_make(void *result, const qkv__tokens *t, int64_t from, int64_t n, const qkv_attend_opts *o, qkv_axis *axis)
{
    units u = { 0 };
    qkv_buffer name = { 0 };
    qkv_status status = lay_out_units(result, n, &u) ? QKV_OK : QKV_MEMORY;
    if (!status) u.first[0] = 0;
    for (int64_t at = from, count; at < from + n && !status; at += count) {
        count = o->split_characters ? 1 : whole_tokens(t, at, from + n);
        if (!o->no_special || !t->special[at])
            status = put_unit(result, t, at, at - from, count, o->split_characters, &name, &u);
    }
    qkv_buffer_free(&name);
    if (status) return status;
    *axis = (qkv_axis){
        .n = u.n, .names = u.names, .is_special = u.special, .first = u.first, .ids = u.ids, .n_tokens = n, .begin = u.begin
    };
    return QKV_OK;
}
