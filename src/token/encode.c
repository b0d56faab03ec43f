/* encode.c: text to ids and back. */
#include "encoder.h"

#include <qkv/unstable/util.h>
#include "pipeline.h"
#include "units.h"

#include "../base/options.h"

#include <string.h>

/* ---- results ---- */

void qkv__encoder_free(qkv__encoder *e)
{
    qkv__cutter_free(&e->cutter);
    qkv_buffer_free(&e->spaced);
    qkv_buffer_free(&e->spelling);
    qkv__traced_text_free(&e->now);
    qkv__traced_text_free(&e->next);
    qkv__release(e->symbols, e->symbols_bytes);
    qkv__release(e->heap, e->heap_bytes);
    qkv__release(e->cuts, e->cuts_bytes);
    qkv__release(e->letters, e->letters_bytes);
    qkv__release(e->best, e->best_bytes);
    *e = (qkv__encoder){ 0 };
}

void qkv_ids_free(qkv_ids *ids)
{
    if (!ids) return;
    qkv__release(ids->ids, ids->ids_bytes);
    qkv__release(ids->spans, ids->spans_bytes);
    qkv__release(ids->types, ids->types_bytes);
    if (ids->encoder) {
        qkv__encoder_free(ids->encoder);
        qkv__release(ids->encoder, sizeof *ids->encoder);
    }
    *ids = (qkv_ids){ 0 };
}

qkv_status qkv__put_id(qkv_ids *out, int32_t id, size_t begin, size_t end)
{
    if (qkv__grow((void **)&out->ids, &out->ids_bytes, (out->n + 1) * sizeof *out->ids) ||
        qkv__grow((void **)&out->spans, &out->spans_bytes, (out->n + 1) * sizeof *out->spans) ||
        qkv__grow((void **)&out->types, &out->types_bytes, (out->n + 1) * sizeof *out->types))
        return QKV_MEMORY;
    out->ids[out->n] = id;
    out->types[out->n] = 0;
    out->spans[out->n++] = (qkv_span){ begin, end };
    return QKV_OK;
}

/* ---- byte pairs ---- */

static qkv_status encode_word(const qkv_tokenizer *t, const char *word, size_t length, size_t offset, qkv_ids *out)
{
    qkv__symbol *symbols;
    qkv_status status = qkv__bpe_room(out->encoder, length);
    if (status) return status;
    symbols = out->encoder->symbols;
    for (size_t i = 0; i < length; i++) symbols[i] = (qkv__symbol){ .id = t->byte_ids[(unsigned char)word[i]] };
    qkv__bpe_merge(t, out->encoder, length, word, length);
    for (uint32_t i = 0; i != QKV__NONE && !status; i = symbols[i].next) {
        uint32_t next = symbols[i].next;
        status = qkv__put_id(out, symbols[i].id, offset + i, offset + (next == QKV__NONE ? length : next));
    }
    return status;
}

/* ---- words ---- */

static qkv_status encode_words(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, qkv_ids *out)
{
    qkv__cutter *c = &out->encoder->cutter;
    if (t->whole_text) return length ? encode_word(t, text, length, offset, out) : QKV_OK;
    qkv__cut_begin(c, text, length);
    for (size_t begin, end;;) {
        qkv_status status = qkv__cut_next(c, t->pattern, &begin, &end);
        if (!status && begin == end) return QKV_OK;
        if (!status) status = encode_word(t, text + begin, end - begin, offset + begin, out);
        if (status) return status;
    }
}

static qkv_status encode_spaced(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, qkv_ids *out)
{
    if (!length || !t->prefix_space || text[0] == ' ') return encode_words(t, text, length, offset, out);
    qkv_buffer *spaced = &out->encoder->spaced;
    size_t before = out->n;
    qkv__buffer_clear(spaced);
    qkv_status status = qkv__buffer_put(spaced, " ", 1);
    if (!status) status = qkv__buffer_put(spaced, text, length);
    if (!status) status = encode_words(t, spaced->data, spaced->length, offset, out);
    for (qkv_span *s = out->spans + before; !status && s < out->spans + out->n; s++) {
        s->begin -= s->begin > offset; /* the space is no byte of the text */
        s->end--;
    }
    return status;
}

/* Words or characters, each looked up whole. Only where special tokens are asked for may one be found. */
static qkv_status encode_units(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, bool specials,
                               qkv_ids *out)
{
    qkv_buffer *spelling = &out->encoder->spelling;
    qkv_status status = QKV_OK;
    for (size_t begin, end = 0; !status && qkv__next_unit(t->kind, text, length, &begin, &end);) {
        status = qkv__spell_unit(t->kind, text + begin, end - begin, spelling);
        if (status) break;
        int32_t id = qkv__tokenizer_find(t, spelling->data, spelling->length);
        if (id < 0 || (t->tokens[id].is_special && !specials)) id = t->unknown;
        status = qkv__put_id(out, id, offset + begin, offset + end);
    }
    return status;
}

/* Text between added tokens. */
static qkv_status encode_piece(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, bool specials,
                               qkv_ids *out)
{
    return t->kind == QKV_TOKEN_BPE ? encode_spaced(t, text, length, offset, out)
                                    : encode_units(t, text, length, offset, specials, out);
}

/* The longest added token that text starts with, -1 when there is none. */
static int32_t added_at(const qkv_tokenizer *t, const char *text, size_t length, bool specials)
{
    unsigned char byte = (unsigned char)text[0];
    for (size_t i = t->added_first[byte]; i < t->added_first[byte + 1]; i++) {
        const qkv__token *token = &t->tokens[t->added[i]];
        if ((specials || !token->is_special) && token->spelling_length <= length &&
            !memcmp(text, t->pool.data + token->spelling, token->spelling_length))
            return t->added[i];
    }
    return -1;
}

static qkv_status encode_all(const qkv_tokenizer *t, const char *text, size_t length, bool specials, qkv_ids *out)
{
    size_t done = 0;
    for (size_t at = 0; at < length;) {
        int32_t id = added_at(t, text + at, length - at, specials);
        if (id < 0) {
            at++;
            continue;
        }
        size_t end = at + t->tokens[id].spelling_length;
        qkv_status status = encode_piece(t, text + done, at - done, done, specials, out);
        if (!status) status = qkv__put_id(out, id, at, end);
        if (status) return status;
        done = at = end;
    }
    return encode_piece(t, text + done, length - done, done, specials, out);
}

/* ---- one text or two, and what goes around them ---- */

typedef struct texts {
    const char *text[2];
    size_t length[2];
    int n;
} texts;

static qkv_status check_text(const char *text, size_t length, bool any_bytes)
{
    if (!text && length) return qkv__fail(QKV_USAGE, "tokenizer: the text is NULL");
    if (length > INT32_MAX)
        return qkv__fail(QKV_LIMIT, "tokenizer: a text of %zu bytes, at most %d are taken", length, INT32_MAX);
    size_t good = any_bytes ? length : qkv_utf8_valid(text, length);
    return good == length ? QKV_OK : qkv__fail(QKV_FORMAT, "tokenizer: the text is not UTF-8 at offset %zu", good);
}

static qkv_status encode_text(const qkv_tokenizer *t, const texts *all, int i, int32_t type, bool specials, qkv_ids *out)
{
    size_t before = out->n;
    qkv_status status = t->pipeline ? qkv__pipeline_encode(t, all->text[i], all->length[i], specials, out)
                                    : encode_all(t, all->text[i], all->length[i], specials, out);
    if (i) out->second = before;
    for (size_t k = before; k < out->n && !status; k++) out->types[k] = type;
    return status;
}

static qkv_status encode_template(const qkv_tokenizer *t, const texts *all, const qkv_encode_opts *o, qkv_ids *out)
{
    static const qkv__template_item bare[] = { { QKV__FIRST_TEXT, 0 }, { QKV__SECOND_TEXT, 1 } };
    const qkv__template *f = !t->pipeline ? NULL : all->n > 1 ? &t->pipeline->pair : &t->pipeline->single;
    const qkv__template_item *items = f && f->n ? f->at : bare;
    size_t n = f && f->n ? f->n : (size_t)all->n, end = 0;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) {
        if (items[i].id < 0) {
            int k = items[i].id == QKV__SECOND_TEXT;
            status = encode_text(t, all, k, items[i].type, o->specials, out);
            end = all->length[k];
        } else if (o->with_special_tokens) {
            status = qkv__put_id(out, items[i].id, end, end);
            if (!status) out->types[out->n - 1] = items[i].type;
        }
    }
    return status;
}

static qkv_status encode_texts(const qkv_tokenizer *t, const texts *all, const qkv_encode_opts *opts, qkv_ids *out)
{
    qkv_encode_opts o;
    if (!t || !out) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer or result is NULL");
    out->n = out->second = 0;
    qkv_status status = QKV__READ_OPTIONS(&o, with_special_tokens, opts, "tokenizer");
    for (int i = 0; i < all->n && !status; i++) status = check_text(all->text[i], all->length[i], o.any_bytes);
    if (!status && !out->encoder && !(out->encoder = qkv__alloc_zero(sizeof *out->encoder))) status = QKV_MEMORY;
    if (!status) status = encode_template(t, all, &o, out);
    if (status) out->n = out->second = 0;
    else if (all->n < 2) out->second = out->n;
    return status;
}

qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encode_opts *opts,
                                qkv_ids *out)
{
    return encode_texts(t, &(texts){ { text }, { length }, 1 }, opts, out);
}

qkv_status qkv_tokenizer_encode_pair(const qkv_tokenizer *t, const char *text, size_t length, const char *second,
                                     size_t second_length, const qkv_encode_opts *opts, qkv_ids *out)
{
    return encode_texts(t, &(texts){ { text, second }, { length, second_length }, 2 }, opts, out);
}

/* ---- ids to text ---- */

static qkv_status check_ids(const qkv_tokenizer *t, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= t->n)
            return qkv__fail(QKV_USAGE, "tokenizer: id %d at place %zu is outside 0..%zu", ids[i], i, t->n - 1);
    return QKV_OK;
}

static qkv_status put_token_bytes(const qkv_tokenizer *t, const int32_t *ids, size_t n, int skip_specials, qkv_buffer *out)
{
    qkv_status status = qkv__buffer_put(out, "", 0);
    bool is_first = true;
    for (size_t i = 0; i < n && !status; i++) {
        const qkv__token *token = &t->tokens[ids[i]];
        if (skip_specials && token->is_special) continue;
        if (qkv__has_lower_words(t->kind) && !is_first) status = qkv__buffer_put(out, " ", 1);
        if (!status) status = qkv__buffer_put(out, t->pool.data + token->bytes, token->bytes_length);
        is_first = false;
    }
    return status;
}

qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, int skip_specials, qkv_buffer *out)
{
    if (!t || !out || (!ids && n)) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer, ids or result is NULL");
    qkv__buffer_clear(out);
    qkv_status status = check_ids(t, ids, n);
    if (!status)
        status = t->pipeline ? qkv__pipeline_decode(t, ids, n, skip_specials, out)
                             : put_token_bytes(t, ids, n, skip_specials, out);
    if (status) qkv__buffer_clear(out);
    return status;
}
