/* encode.c: text to ids and back. */
#include "encoder.h"

#include <qkv/unstable/util.h>
#include "pipeline.h"
#include "units.h"

#include "../base/options.h"
#include "../base/result.h"

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

void qkv__ids_free(qkv__ids *ids)
{
    if (!ids) return;
    qkv__release(ids->ids, ids->ids_bytes);
    qkv__release(ids->spans, ids->spans_bytes);
    qkv__release(ids->types, ids->types_bytes);
    if (ids->encoder) {
        qkv__encoder_free(ids->encoder);
        qkv__release(ids->encoder, sizeof *ids->encoder);
    }
    *ids = (qkv__ids){ 0 };
}

qkv_status qkv__put_id(qkv__ids *out, int32_t id, size_t begin, size_t end)
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

static qkv_status encode_word(const qkv_tokenizer *t, const char *word, size_t length, size_t offset, qkv__ids *out)
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

static qkv_status encode_words(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, qkv__ids *out)
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

static qkv_status encode_spaced(const qkv_tokenizer *t, const char *text, size_t length, size_t offset, qkv__ids *out)
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
                               qkv__ids *out)
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
                               qkv__ids *out)
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

static qkv_status encode_all(const qkv_tokenizer *t, const char *text, size_t length, bool specials, qkv__ids *out)
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

static qkv_status check_text(qkv_str text, bool allow_invalid_utf8)
{
    if (!text.data && text.length) return qkv__fail(QKV_USAGE, "tokenizer: the text is NULL");
    if (text.length > INT32_MAX)
        return qkv__fail(QKV_LIMIT, "tokenizer: a text of %zu bytes, at most %d are taken", text.length, INT32_MAX);
    size_t good = allow_invalid_utf8 ? text.length : qkv_utf8_valid(text.data, text.length);
    return good == text.length ? QKV_OK : qkv__fail(QKV_FORMAT, "tokenizer: the text is not UTF-8 at offset %zu", good);
}

static qkv_status encode_texts(const qkv_tokenizer *t, const qkv_str texts[2], const qkv_encode_opts *o, qkv__ids *out)
{
    static const qkv__template_item bare[] = { { QKV__FIRST_TEXT, 0 }, { QKV__SECOND_TEXT, 1 } };
    const bool is_pair = o->pair.data != NULL;
    const qkv__template *f = !t->pipeline ? NULL : is_pair ? &t->pipeline->pair : &t->pipeline->single;
    const qkv__template_item *items = f && f->n ? f->at : bare;
    size_t n = f && f->n ? f->n : is_pair ? 2 : 1, end = 0;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const size_t before = out->n;
        if (items[i].id < 0) {
            const bool is_second = items[i].id == QKV__SECOND_TEXT;
            const char *text = texts[is_second].data;
            end = texts[is_second].length;
            status = t->pipeline ? qkv__pipeline_encode(t, text, end, o->parse_special, out)
                                 : encode_all(t, text, end, o->parse_special, out);
            if (is_second) out->second = before;
        } else if (o->add_special) {
            status = qkv__put_id(out, items[i].id, end, end);
        }
        for (size_t k = before; k < out->n && !status; k++) out->types[k] = items[i].type;
    }
    if (!status && !is_pair) out->second = out->n;
    return status;
}

qkv_status qkv__encode(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encode_opts *opts, qkv__ids *out)
{
    qkv_encode_opts o = { 0 };
    if (!t || !out) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer or result is NULL");
    out->n = out->second = 0;
    qkv_status status = QKV__READ_OPTIONS(&o, allow_invalid_utf8, opts, "tokenizer");
    const qkv_str texts[2] = { { text, length }, o.pair };
    for (int i = 0; i < 2 && !status; i++) status = check_text(texts[i], o.allow_invalid_utf8);
    if (!status && !out->encoder && !(out->encoder = qkv__alloc_zero(sizeof *out->encoder))) status = QKV_MEMORY;
    if (!status) status = encode_texts(t, texts, &o, out);
    if (status) out->n = out->second = 0;
    return status;
}

/* ---- the result ---- */

typedef struct encoding {
    qkv_encoding shown; /* first: what the caller sees */
    qkv__ids ids;
} encoding;

static void release_encoding(void *result) { qkv__ids_free(&((encoding *)result)->ids); }

static const qkv__result_kind encoding_kind = { sizeof(encoding), release_encoding };

qkv__ids *qkv__encoding_begin(qkv_encoding **out)
{
    qkv__ids kept = { 0 };
    if (!out) return qkv__fail(QKV_USAGE, "tokenizer: tokenizer or result is NULL"), NULL;
    if (qkv__result_is(*out, &encoding_kind)) {
        kept = ((encoding *)*out)->ids;
        ((encoding *)*out)->ids = (qkv__ids){ 0 };
    }
    encoding *e = qkv__result_begin(*out, &encoding_kind);
    if (!e) return NULL;
    *out = &e->shown;
    e->ids = kept;
    e->ids.n = e->ids.second = 0;
    return &e->ids;
}

qkv_status qkv__encoding_end(qkv_encoding *shown, qkv_status status)
{
    qkv__ids *ids = &((encoding *)shown)->ids;
    if (status) ids->n = ids->second = 0;
    *shown = (qkv_encoding){ ids->ids, ids->types, ids->spans, (int64_t)ids->n, (int64_t)ids->second };
    return status;
}

qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, qkv_str text, const qkv_encode_opts *opts, qkv_encoding **out)
{
    qkv__ids *ids = qkv__encoding_begin(out);
    return ids ? qkv__encoding_end(*out, qkv__encode(t, text.data, text.length, opts, ids)) : qkv_error_status();
}

/* ---- ids to text ---- */

static qkv_status put_token_bytes(const qkv_tokenizer *t, const int32_t *ids, size_t n, bool skip_special, qkv_buffer *out)
{
    qkv_status status = qkv__buffer_put(out, "", 0);
    bool is_first = true;
    for (size_t i = 0; i < n && !status; i++) {
        const qkv__token *token = &t->tokens[ids[i]];
        if (skip_special && token->is_special) continue;
        if (qkv__has_lower_words(t->kind) && !is_first) status = qkv__buffer_put(out, " ", 1);
        if (!status) status = qkv__buffer_put(out, t->pool.data + token->bytes, token->bytes_length);
        is_first = false;
    }
    return status;
}

qkv_status qkv__decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, unsigned flags, qkv_buffer *out)
{
    if (!t || !out || (!ids && n) || flags > QKV_DECODE_SKIP_SPECIAL)
        return qkv__fail(QKV_USAGE, "tokenizer: a tokenizer, ids, known flags and a place for the text are needed");
    qkv__buffer_clear(out);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= t->n)
            return qkv__fail(QKV_USAGE, "tokenizer: id %d at place %zu is outside 0..%zu", ids[i], i, t->n - 1);
    const bool skip_special = flags & QKV_DECODE_SKIP_SPECIAL;
    qkv_status status = t->pipeline ? qkv__pipeline_decode(t, ids, n, skip_special, out)
                                    : put_token_bytes(t, ids, n, skip_special, out);
    if (status) qkv__buffer_clear(out);
    return status;
}

qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, int64_t n, unsigned flags, qkv_text **out)
{
    qkv_buffer *text = qkv__text_begin(out);
    if (!text) return qkv_error_status();
    if (n < 0) return qkv__fail(QKV_USAGE, "tokenizer: %lld ids", (long long)n);
    return qkv__text_end(*out, qkv__decode(t, ids, (size_t)n, flags, text));
}
