/* pipeline.c: text through all that a published tokenizer does with it. */
#include "pipeline.h"

#include <qkv/unstable/util.h>

#include <stdio.h>
#include <string.h>

/* ---- steps ---- */

qkv__step *qkv__steps_add(qkv__steps *s)
{
    if (qkv__grow((void **)&s->at, &s->bytes, (s->n + 1) * sizeof *s->at)) return NULL;
    s->at[s->n] = (qkv__step){ 0 };
    return &s->at[s->n++];
}

void qkv__steps_free(qkv__steps *s)
{
    for (size_t i = 0; i < s->n; i++) {
        qkv__release_text(s->at[i].text);
        qkv__release_text(s->at[i].content);
        qkv__pattern_free(s->at[i].pattern);
        qkv__charsmap_free(s->at[i].map);
    }
    qkv__release(s->at, s->bytes);
    *s = (qkv__steps){ 0 };
}

void qkv__traced_texts_swap(qkv__encoder *e)
{
    qkv__traced_text now = e->now;
    e->now = e->next;
    e->next = now;
}

void qkv__steps_bound(qkv__encoder *e, size_t length)
{
    e->now.most = e->next.most = QKV__MOST_GROWN(length);
    e->cutter.budget = QKV__CUT_BUDGET(length);
}

static qkv_status name_step(const qkv__step *s, size_t i)
{
    char reason[256];
    snprintf(reason, sizeof reason, "%s", qkv_error());
    return qkv__fail(QKV_LIMIT, "%s: %s, step %zu of its file", reason, s->name, i + 1);
}

qkv_status qkv__steps_run(const qkv__steps *s, qkv__encoder *e, bool all)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < s->n && !status; i++) {
        qkv__traced_text_clear(&e->next);
        for (size_t k = 0; k < e->now.n && !status; k++) {
            qkv__piece piece = e->now.pieces[k];
            status = all || piece.id < 0 ? s->at[i].rewrite(&s->at[i], e, piece)
                                         : qkv__traced_text_keep(&e->next, &e->now, piece);
        }
        qkv__traced_texts_swap(e);
        if (status == QKV_LIMIT && s->at[i].name) return name_step(&s->at[i], i);
    }
    return status;
}

/* ---- making and freeing ---- */

qkv_status qkv__template_put(qkv__template *f, int32_t id, int32_t type)
{
    if (qkv__grow((void **)&f->at, &f->bytes, (f->n + 1) * sizeof *f->at)) return QKV_MEMORY;
    f->at[f->n++] = (qkv__template_item){ id, type };
    return QKV_OK;
}

static void free_arrays(qkv__pipeline *p, size_t n)
{
    qkv__release(p->scores, n * sizeof *p->scores);
    qkv__release(p->types, n * sizeof *p->types);
    qkv__release(p->ranks, n * sizeof *p->ranks);
}

void qkv__pipeline_free(qkv__pipeline *p, size_t n)
{
    if (!p) return;
    for (int i = 0; i < 2; i++) qkv__added_free(&p->added[i]);
    qkv__added_free(&p->user_defined);
    qkv__steps_free(&p->normalizers);
    qkv__steps_free(&p->pre_tokenizers);
    qkv__steps_free(&p->decoders);
    qkv__release(p->single.at, p->single.bytes);
    qkv__release(p->pair.at, p->pair.bytes);
    qkv__release_text(p->prefix);
    qkv__release_text(p->suffix);
    free_arrays(p, n);
    if (p->pieces) qkv__release(p->ids_of_pieces, p->pieces->n * sizeof *p->ids_of_pieces);
    qkv_tokenizer_free(p->pieces);
    qkv_buffer_free(&p->source);
    qkv__release(p, sizeof *p);
}

/* ---- ids ---- */

/* Where another tokenizer cuts the text, its token is looked up here by its spelling; an unknown one by its text. */
static int32_t outer_id(const qkv_tokenizer *t, const qkv__encoder *e, int32_t id, size_t begin, size_t end)
{
    const qkv_tokenizer *outer = e->outer;
    if (!outer) return id;
    if (id != t->unknown) return outer->pipeline->ids_of_pieces[id];
    int32_t found = qkv__tokenizer_find(outer, e->now.text.data + begin, end - begin);
    return qkv__may_give(outer, e, found) ? found : outer->unknown;
}

static qkv_status put_id(const qkv_tokenizer *t, int32_t id, size_t begin, size_t end, qkv__ids *out)
{
    qkv__range from = qkv__traced_text_from(&out->encoder->now, begin, end);
    return qkv__put_id(out, outer_id(t, out->encoder, id, begin, end), from.begin, from.end);
}

qkv_status qkv__put_token(const qkv_tokenizer *t, int32_t id, size_t begin, size_t end, qkv__ids *out)
{
    out->encoder->unknown_end = 0;
    return put_id(t, id, begin, end, out);
}

static bool has_bytes(const qkv__pipeline *p, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (p->byte_ids[(unsigned char)text[i]] < 0) return false;
    return p->byte_fallback;
}

static qkv_status put_byte_ids(const qkv_tokenizer *t, size_t begin, size_t end, qkv__ids *out)
{
    qkv_status status = QKV_OK;
    for (size_t i = begin; i < end && !status; i++)
        status = qkv__put_token(t, t->pipeline->byte_ids[(unsigned char)out->encoder->now.text.data[i]], i, i + 1, out);
    return status;
}

qkv_status qkv__put_unknown(const qkv_tokenizer *t, size_t begin, size_t end, qkv__ids *out)
{
    qkv__encoder *e = out->encoder;
    qkv_status status = QKV_OK;
    if (has_bytes(t->pipeline, e->now.text.data + begin, end - begin)) return put_byte_ids(t, begin, end, out);
    if (t->unknown < 0)
        return qkv__fail(QKV_UNSUPPORTED,
                         "tokenizer: the text has characters that no token spells, and there is no unknown token");
    if (t->pipeline->fuse_unknown && e->unknown_end == begin && begin) {
        out->ids[out->n - 1] = outer_id(t, e, t->unknown, e->unknown_begin, end);
        out->spans[out->n - 1].end = e->now.from[end - 1].end;
    } else {
        status = put_id(t, t->unknown, begin, end, out);
        e->unknown_begin = begin;
    }
    e->unknown_end = end;
    return status;
}

/* ---- text to ids ---- */

/* The text as it was given; U+FFFD stands in for each mistake in its UTF-8. */
static qkv_status read_given_text(qkv__encoder *e, const char *text, size_t length)
{
    qkv_status status = QKV_OK;
    qkv__traced_text_clear(&e->now);
    for (size_t at = 0, bytes; at < length && !status; at += bytes) {
        bool bad = qkv_utf8_next(text + at, length - at, &bytes) < 0;
        if (bad)
            status = qkv__traced_text_put(&e->now, "\xEF\xBF\xBD", 3, (qkv__range){ (uint32_t)at, (uint32_t)(at + bytes) });
        for (size_t i = at; i < at + bytes && !bad && !status; i++)
            status = qkv__traced_text_put(&e->now, text + i, 1, (qkv__range){ (uint32_t)i, (uint32_t)i + 1 });
    }
    return status ? status : qkv__traced_text_end(&e->now, 0, -1);
}

static qkv_status encode_piece(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out)
{
    if (!t->pipeline->is_spm) out->encoder->unknown_end = 0; /* SentencePiece's unknown words are one, as its characters are */
    switch (t->pipeline->model) {
    case QKV__BPE: return qkv__bpe_encode(t, piece, out);
    case QKV__UNIGRAM: return qkv__unigram_encode(t, piece, out);
    default: return qkv__wordpiece_encode(t, piece, out);
    }
}

static qkv_status encode_pieces(const qkv_tokenizer *t, const qkv_tokenizer *cutter, qkv__ids *out)
{
    qkv__encoder *e = out->encoder;
    qkv_status status = QKV_OK;
    e->outer = t == cutter ? NULL : t;
    e->unknown_end = 0;
    for (size_t i = 0; i < e->now.n && !status; i++) {
        qkv__piece piece = e->now.pieces[i];
        qkv__range from = qkv__traced_text_from(&e->now, piece.begin, piece.end);
        status = piece.id < 0 ? encode_piece(cutter, piece, out) : qkv__put_id(out, piece.id, from.begin, from.end);
    }
    return status;
}

qkv_status qkv__pipeline_encode(const qkv_tokenizer *t, const char *text, size_t length, bool specials, qkv__ids *out)
{
    const qkv_tokenizer *cutter = t->pipeline->pieces ? t->pipeline->pieces : t;
    qkv__encoder *e = out->encoder;
    e->specials = specials;
    qkv__steps_bound(e, length);
    qkv_status status = read_given_text(e, text, length);
    if (!status) status = qkv__cut_added(t, e, &t->pipeline->added[0]);
    if (!status) status = qkv__steps_run(&cutter->pipeline->normalizers, e, false);
    if (!status) status = qkv__cut_added(t, e, &t->pipeline->added[1]);
    if (!status) status = qkv__steps_run(&cutter->pipeline->pre_tokenizers, e, false);
    return status ? status : encode_pieces(t, cutter, out);
}

/* ---- ids to text ---- */

static qkv_status read_given_ids(const qkv_tokenizer *t, const int32_t *ids, size_t n, bool skip_specials, qkv__encoder *e)
{
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const qkv__token *token = &t->tokens[ids[i]];
        size_t begin = e->now.text.length;
        if (!token->is_set || (skip_specials && token->is_special)) continue;
        if (t->pipeline->join_with_spaces && begin) status = qkv__traced_text_put(&e->now, " ", 1, (qkv__range){ 0 });
        if (!status)
            status = qkv__traced_text_put(&e->now, t->pool.data + token->spelling, token->spelling_length, (qkv__range){ 0 });
        if (!status) status = qkv__traced_text_end(&e->now, begin, ids[i]);
    }
    return status;
}

qkv_status qkv__pipeline_decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, bool skip_specials, qkv_buffer *out)
{
    qkv__encoder e = { 0 };
    qkv_status status = read_given_ids(t, ids, n, skip_specials, &e);
    qkv__steps_bound(&e, e.now.text.length);
    if (!status) status = qkv__steps_run(&t->pipeline->decoders, &e, true);
    if (!status) status = qkv__buffer_put(out, e.now.text.data, e.now.text.length);
    qkv__encoder_free(&e);
    return status;
}
