/* spm.c: SentencePiece's model files, which are protocol buffers: fields of a number, a kind and a value. */
#include "../base/number.h"

#include <qkv/unstable/util.h>
#include "alphabet.h"
#include "pipeline.h"
#include "tokenizer_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields ---- */

typedef struct cursor {
    const char *path;
    const unsigned char *start, *at, *end; /* start is the file's, for sentences */
    qkv_status status;                     /* the first error */
} cursor;

typedef struct field {
    uint64_t number;            /* 0 after the last */
    uint64_t value;             /* of a number */
    const unsigned char *bytes; /* NULL for a number */
    size_t size;
} field;

static qkv_status broken(cursor *c, const char *what)
{
    return c->status = qkv__fail(QKV_FORMAT, "%s: byte %zu: not a SentencePiece model: %s", c->path, (size_t)(c->at - c->start),
                                 what);
}

static uint64_t read_varint(cursor *c)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (c->at == c->end) break;
        unsigned char byte = *c->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
    broken(c, "a number does not end");
    return 0;
}

static void read_fixed(cursor *c, field *f, size_t size)
{
    if ((size_t)(c->end - c->at) < size) {
        broken(c, "a number is cut off");
        return;
    }
    f->value = qkv__load(c->at, (int)size, false);
    c->at += size;
}

static void read_bytes(cursor *c, field *f)
{
    uint64_t size = read_varint(c);
    if (c->status) return;
    if (size > (uint64_t)(c->end - c->at)) {
        broken(c, "a field is longer than the file");
        return;
    }
    f->bytes = c->at;
    f->size = (size_t)size;
    c->at += size;
}

/* False after the last field, or on an error. */
static bool next_field(cursor *c, field *f)
{
    *f = (field){ 0 };
    if (c->status || c->at == c->end) return false;
    uint64_t key = read_varint(c);
    if (c->status) return false;
    f->number = key >> 3;
    switch (key & 7) {
    case 0: f->value = read_varint(c); break;
    case 1: read_fixed(c, f, 8); break;
    case 2: read_bytes(c, f); break;
    case 5: read_fixed(c, f, 4); break;
    default: broken(c, "a field of an unknown kind");
    }
    if (!c->status && !f->number) broken(c, "a field without a number");
    return !c->status;
}

static cursor inside(const cursor *c, const field *f)
{
    return (cursor){ c->path, c->start, f->bytes, f->bytes + f->size, QKV_OK };
}

/* ---- what they say ---- */

enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3, DENORMALIZER = 5 };

/* What is done with the characters of a text, before it is encoded or after it was decoded. */
typedef struct character_rules {
    bool dummy_prefix, remove_extra, escape;
    const unsigned char *map;
    size_t map_size;
} character_rules;

typedef enum model_type { UNIGRAM = 1, BPE, WORDS, CHARACTERS } model_type;

typedef struct model {
    size_t n;      /* pieces */
    uint64_t type; /* a model_type */
    bool byte_fallback, suffix;
    character_rules before, after;
    const unsigned char *unknown;
    size_t unknown_size;
} model;

static qkv_status read_trainer(cursor c, model *m)
{
    for (field f; next_field(&c, &f);) {
        if (f.number == 3) m->type = f.value;
        if (f.number == 24) m->suffix = f.value;
        if (f.number == 35) m->byte_fallback = f.value;
        if (f.number == 44) m->unknown = f.bytes, m->unknown_size = f.size;
    }
    return c.status;
}

static qkv_status read_character_rules(cursor c, character_rules *r)
{
    for (field f; next_field(&c, &f);) {
        if (f.number == 2) r->map = f.bytes, r->map_size = f.size;
        if (f.number == 3) r->dummy_prefix = f.value;
        if (f.number == 4) r->remove_extra = f.value;
        if (f.number == 5) r->escape = f.value;
    }
    return c.status;
}

static qkv_status read_model(cursor c, model *m)
{
    *m = (model){ .type = UNIGRAM, .before = { true, true, true, NULL, 0 }, .after = { true, true, true, NULL, 0 } };
    for (field f; next_field(&c, &f);) {
        if (f.number > DENORMALIZER || f.number == 4) continue;
        if (!f.bytes) return broken(&c, "a part is no message");
        m->n += f.number == PIECES;
        if (f.number == TRAINER) c.status = read_trainer(inside(&c, &f), m);
        if (f.number == NORMALIZER) c.status = read_character_rules(inside(&c, &f), &m->before);
        if (f.number == DENORMALIZER) c.status = read_character_rules(inside(&c, &f), &m->after);
    }
    if (c.status) return c.status;
    if (!m->n) return qkv__fail(QKV_FORMAT, "%s: not a SentencePiece model: it has no pieces", c.path);
    if (m->n > INT32_MAX) return qkv__fail(QKV_LIMIT, "%s: it has %zu pieces", c.path, m->n);
    if (m->type >= UNIGRAM && m->type <= CHARACTERS) return QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED, "%s: trainer_spec.model_type: only unigram, bpe, word and char are supported", c.path);
}

/* ---- pieces ---- */

typedef struct piece {
    const unsigned char *text;
    size_t length;
    float score;
    uint64_t type;
} piece;

static qkv_status read_piece(cursor c, size_t i, piece *p)
{
    *p = (piece){ .type = QKV__NORMAL };
    for (field f; next_field(&c, &f);) {
        if (f.number == 1 && f.bytes) p->text = f.bytes, p->length = f.size;
        if (f.number == 2) p->score = qkv__float_of_bits((uint32_t)f.value);
        if (f.number == 3) p->type = f.value;
    }
    if (c.status) return c.status;
    const char *wrong = NULL;
    if (!p->length) wrong = "it is empty";
    else if (qkv_utf8_valid((const char *)p->text, p->length) < p->length || memchr(p->text, 0, p->length))
        wrong = "it is not UTF-8, or has a NUL";
    else if (!isfinite(p->score)) wrong = "its score is no finite number";
    else if (p->type < QKV__NORMAL || p->type > QKV__BYTE) wrong = "its type is unknown";
    return wrong ? qkv__fail(QKV_FORMAT, "%s: piece %zu: %s", c.path, i, wrong) : QKV_OK;
}

static qkv_status set_piece(const char *path, qkv_tokenizer *t, int32_t id, const piece *p, qkv_buffer *spelling)
{
    bool special = p->type == QKV__CONTROL || p->type == QKV__UNKNOWN_PIECE;
    qkv__buffer_clear(spelling);
    qkv_status status = qkv__buffer_put(spelling, p->text, p->length);
    if (!status) status = qkv__tokenizer_set(t, id, spelling->data, special, special);
    if (status) return status;
    t->pipeline->types[id] = (unsigned char)p->type;
    t->pipeline->scores[id] = (double)p->score;
    if (p->type != QKV__UNKNOWN_PIECE) return QKV_OK;
    if (t->unknown >= 0)
        return qkv__fail(QKV_FORMAT, "%s: pieces %d and %d are both for what is unknown", path, t->unknown, id);
    t->unknown = id;
    return QKV_OK;
}

static qkv_status read_pieces(cursor c, qkv_tokenizer *t)
{
    qkv_buffer spelling = { 0 };
    int32_t id = 0, twice = -1;
    for (field f; next_field(&c, &f);) {
        piece p;
        if (f.number != PIECES) continue;
        c.status = read_piece(inside(&c, &f), (size_t)id, &p);
        if (!c.status) c.status = set_piece(c.path, t, id++, &p, &spelling);
    }
    qkv_buffer_free(&spelling);
    if (!c.status) c.status = qkv__tokenizer_sort(t, &twice);
    if (!c.status && twice >= 0)
        return qkv__fail(QKV_FORMAT, "%s: piece %d: \"%.200s\" is there twice", c.path, twice,
                         qkv__tokenizer_spelling(t, twice));
    if (!c.status && t->unknown < 0) return qkv__fail(QKV_FORMAT, "%s: no piece is for what is unknown", c.path);
    return c.status;
}

/* ---- what encoding needs ---- */

/* As SentencePiece has it: what is unknown is 10 worse than the worst piece, and a user's symbol goes before all else. */
static void set_scores(qkv_tokenizer *t)
{
    qkv__pipeline *p = t->pipeline;
    float lowest = 0, highest = 0x1p-126f;
    bool any = false;
    for (size_t i = 0; i < t->n; i++) {
        float score = (float)p->scores[i];
        if (p->types[i] != QKV__NORMAL) continue;
        if (!any || score < lowest) lowest = score;
        if (score > highest) highest = score;
        any = true;
    }
    p->unknown_score = (double)(lowest - 10.0f);
    for (size_t i = 0; i < t->n; i++)
        if (p->types[i] == QKV__USER_DEFINED) p->scores[i] = (double)((float)t->tokens[i].spelling_length * highest) - 0.1;
}

static int by_score(const void *a, const void *b, void *scores)
{
    double x = ((const double *)scores)[*(const int32_t *)a], y = ((const double *)scores)[*(const int32_t *)b];
    return (x < y) - (x > y);
}

/* Pieces of the same score have the same rank: of their places in the text the leftmost goes first. Without merges, characters
 * stay apart. */
static qkv_status rank_pieces(const char *path, qkv_tokenizer *t, bool merges)
{
    qkv__pipeline *p = t->pipeline;
    int32_t *order = qkv__alloc(t->n * sizeof *order);
    p->ranks = qkv__alloc(t->n * sizeof *p->ranks);
    qkv_status status = order && p->ranks ? QKV_OK : QKV_MEMORY;
    for (size_t i = 0; i < t->n && !status; i++) {
        order[i] = (int32_t)i;
        if (p->types[i] == QKV__UNUSED && merges)
            status = qkv__fail(QKV_UNSUPPORTED, "%s: piece %zu: a BPE with unused pieces is not supported", path, i);
    }
    if (!status) qsort_r(order, t->n, sizeof *order, by_score, p->scores);
    uint32_t rank = 0;
    for (size_t i = 0; i < t->n && !status; i++) {
        if (i && p->scores[order[i]] != p->scores[order[i - 1]]) rank++;
        bool mergeable = p->types[order[i]] == QKV__NORMAL || p->types[order[i]] == QKV__USER_DEFINED;
        p->ranks[order[i]] = mergeable && merges ? rank : QKV__NO_RANK;
    }
    qkv__release(order, t->n * sizeof *order);
    return status;
}

static qkv_status list_user_defined(qkv_tokenizer *t)
{
    qkv__added *a = &t->pipeline->user_defined;
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += t->pipeline->types[i] == QKV__USER_DEFINED;
    if (!n) return QKV_OK;
    qkv_status status = qkv__added_begin(a, n);
    n = 0;
    for (size_t i = 0; i < t->n && !status; i++)
        if (t->pipeline->types[i] == QKV__USER_DEFINED)
            status = qkv__added_set(a, n++, qkv__tokenizer_spelling(t, (int32_t)i), (int32_t)i);
    return status ? status : qkv__added_end(a);
}

static qkv_status find_byte_pieces(const char *path, qkv_tokenizer *t)
{
    for (int byte = 0; byte < 256; byte++) {
        char spelling[QKV__BYTE_LENGTH + 1];
        qkv__spell_byte_token(byte, spelling);
        int32_t id = qkv_tokenizer_id(t, spelling);
        if (id < 0 || t->pipeline->types[id] != QKV__BYTE)
            return qkv__fail(QKV_FORMAT, "%s: trainer_spec.byte_fallback: there is no piece %s", path, spelling);
        t->pipeline->byte_ids[byte] = id;
    }
    return QKV_OK;
}

static qkv_status add_character_rules(const char *path, const char *key, qkv_tokenizer *t, const character_rules *r,
                                      bool suffix, qkv__steps *steps)
{
    char name[512];
    qkv__step *s = qkv__steps_add(steps);
    if (!s) return QKV_MEMORY;
    *s = (qkv__step){ .rewrite = qkv__spm_normalize,
                      .tokenizer = t,
                      .dummy_prefix = r->dummy_prefix,
                      .remove_extra = r->remove_extra,
                      .escape = r->escape,
                      .suffix = suffix };
    snprintf(name, sizeof name, "%s: %s.precompiled_charsmap", path, key);
    if (r->map_size && !(s->map = qkv__charsmap_new(name, r->map, r->map_size))) return qkv_error_status();
    return QKV_OK;
}

/* A word begins at each sign of a space, or ends there. */
static qkv_status add_word_split(qkv_tokenizer *t, bool suffix)
{
    qkv__step *s = qkv__steps_add(&t->pipeline->pre_tokenizers);
    if (!s) return QKV_MEMORY;
    s->rewrite = qkv__split;
    s->behavior = suffix ? QKV__MERGED_WITH_PREVIOUS : QKV__MERGED_WITH_NEXT;
    return (s->text = qkv__copy_text("\xE2\x96\x81")) ? QKV_OK : QKV_MEMORY;
}

static qkv_status add_decoder(qkv_tokenizer *t, const model *m)
{
    qkv_buffer surface = { 0 };
    qkv__step *s = qkv__steps_add(&t->pipeline->decoders);
    qkv_status status = s ? qkv__buffer_put(&surface, m->unknown ? (const void *)m->unknown : " \xE2\x81\x87 ",
                                            m->unknown ? m->unknown_size : 5)
                          : QKV_MEMORY;
    if (!status) {
        *s = (qkv__step){ .rewrite = qkv__decode_spm,
                          .tokenizer = t,
                          .text = qkv__copy_text(surface.data),
                          .dummy_prefix = m->before.dummy_prefix,
                          .remove_extra = m->before.remove_extra };
        if (!s->text) status = QKV_MEMORY;
    }
    qkv_buffer_free(&surface);
    return status;
}

/* The text of all tokens together, rewritten once more. */
static qkv_status add_denormalizer(const char *path, qkv_tokenizer *t, const model *m)
{
    qkv__steps *decoders = &t->pipeline->decoders;
    if (!m->after.map_size) return QKV_OK;
    qkv__step *fuse = qkv__steps_add(decoders);
    if (!fuse) return QKV_MEMORY;
    fuse->rewrite = qkv__decode_fuse;
    return add_character_rules(path, "denormalizer_spec", t, &m->after, false, decoders);
}

static qkv_status finish_spm(const char *path, qkv_tokenizer *t, const model *m)
{
    t->pipeline->model = m->type == UNIGRAM ? QKV__UNIGRAM : m->type == WORDS ? QKV__WORD_LEVEL : QKV__BPE;
    t->pipeline->is_spm = t->pipeline->single_precision = t->pipeline->fuse_unknown = true;
    t->pipeline->byte_fallback = m->byte_fallback;
    qkv_status status = m->type == BPE || m->type == CHARACTERS ? rank_pieces(path, t, m->type == BPE) : QKV_OK;
    set_scores(t);
    if (!status && m->byte_fallback) status = find_byte_pieces(path, t);
    if (!status) status = list_user_defined(t);
    if (!status) status = add_character_rules(path, "normalizer_spec", t, &m->before, m->suffix, &t->pipeline->normalizers);
    if (!status && m->type == WORDS) status = add_word_split(t, m->suffix);
    if (!status) status = add_decoder(t, m);
    if (!status) status = add_denormalizer(path, t, m);
    return status ? status : qkv__pipeline_finish(t);
}

qkv_tokenizer *qkv__tokenizer_from_spm(const char *path, const unsigned char *bytes, size_t size)
{
    model m;
    const cursor whole = { path, bytes, bytes, bytes + size, QKV_OK };
    if (read_model(whole, &m)) return NULL;
    qkv_tokenizer *t = qkv__tokenizer_new(QKV_TOKEN_PUBLISHED, m.n, 0);
    if (t && (t->pipeline = qkv__alloc_zero(sizeof *t->pipeline))) {
        t->pipeline->types = qkv__alloc_zero(t->n);
        t->pipeline->scores = qkv__alloc_zero(t->n * sizeof *t->pipeline->scores);
        if (t->pipeline->types && t->pipeline->scores && !read_pieces(whole, t) && !finish_spm(path, t, &m)) return t;
    }
    qkv_tokenizer_free(t);
    return NULL;
}
