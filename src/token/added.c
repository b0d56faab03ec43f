/* added.c: added tokens, found in text before anything else is done with it. */
#include "pipeline.h"

#include <qkv/unstable/util.h>

#include <string.h>

/* ---- a set of them ---- */

qkv_status qkv__added_begin(qkv__added *a, size_t n)
{
    *a = (qkv__added){ .n = n };
    a->spellings = qkv__tokenizer_new(QKV_TOKEN_CHARACTERS, n, 0);
    a->ids = qkv__alloc(n * sizeof *a->ids);
    return a->spellings && a->ids ? QKV_OK : QKV_MEMORY;
}

qkv_status qkv__added_set(qkv__added *a, size_t i, const char *spelling, int32_t id)
{
    a->ids[i] = id;
    return qkv__tokenizer_set(a->spellings, (int32_t)i, spelling, true, false);
}

qkv_status qkv__added_end(qkv__added *a)
{
    int32_t twice; /* two that a normalizer makes alike: either is found */
    return qkv__tokenizer_sort(a->spellings, &twice);
}

void qkv__added_free(qkv__added *a)
{
    qkv_tokenizer_free(a->spellings);
    qkv__release(a->ids, a->n * sizeof *a->ids);
    *a = (qkv__added){ 0 };
}

/* The longest one that text starts with, of those that are wanted. */
static int32_t longest(const qkv__added *a, const char *text, size_t length, const qkv_tokenizer *t, bool specials,
                       size_t *bytes)
{
    int32_t found = -1;
    qkv__walk w = qkv__walk_begin(a->spellings);
    for (size_t i = 0; i < length && qkv__walk_step(a->spellings, &w, (unsigned char)text[i]); i++) {
        int32_t at = qkv__walk_token(a->spellings, &w), id = at < 0 ? -1 : a->ids[at];
        if (id < 0 || (t && !specials && t->tokens[id].is_special)) continue;
        found = id;
        *bytes = i + 1;
    }
    return found;
}

int32_t qkv__added_at(const qkv__added *a, const char *text, size_t length, size_t *bytes)
{
    return a->n ? longest(a, text, length, NULL, true, bytes) : -1;
}

/* ---- in text ---- */

static bool word_ends_at(const char *text, size_t begin, size_t at)
{
    size_t bytes, start = at;
    while (start > begin && ((unsigned char)text[--start] & 0xC0) == 0x80) {}
    return at > begin && qkv__is_word(qkv_utf8_next(text + start, at - start, &bytes));
}

static bool word_starts_at(const char *text, size_t at, size_t end)
{
    size_t bytes;
    return at < end && qkv__is_word(qkv_utf8_next(text + at, end - at, &bytes));
}

/* The white space from `at` back to `begin`, and on to `end`. */
static size_t space_before(const char *text, size_t begin, size_t at)
{
    for (size_t start = at, bytes; start > begin; at = start) {
        while (start > begin && ((unsigned char)text[--start] & 0xC0) == 0x80) {}
        if (!qkv__is_space(qkv_utf8_next(text + start, at - start, &bytes))) break;
    }
    return at;
}

static size_t space_after(const char *text, size_t at, size_t end)
{
    for (size_t bytes; at < end && qkv__is_space(qkv_utf8_next(text + at, end - at, &bytes));) at += bytes;
    return at;
}

/* Cuts the tokens out of one piece. */
static qkv_status cut_piece(const qkv_tokenizer *t, qkv__encoder *e, const qkv__added *a, qkv__piece piece)
{
    const char *text = e->now.text.data;
    size_t done = piece.begin, bytes;
    qkv_status status = QKV_OK;
    for (size_t at = piece.begin; at < piece.end && !status;) {
        int32_t id = longest(a, text + at, piece.end - at, t, e->specials, &bytes);
        const qkv__token *token = id < 0 ? NULL : &t->tokens[id];
        size_t end = id < 0 ? at + 1 : at + bytes;
        bool inside = token && token->single_word &&
                      (word_ends_at(text, piece.begin, at) || word_starts_at(text, end, piece.end));
        if (token && !inside) {
            size_t begin = token->takes_left ? space_before(text, done, at) : at;
            if (token->takes_right) end = space_after(text, end, piece.end);
            status = qkv__traced_text_keep(&e->next, &e->now, (qkv__piece){ done, begin, -1 });
            if (!status) status = qkv__traced_text_keep(&e->next, &e->now, (qkv__piece){ begin, end, id });
            done = end;
        }
        at = end;
    }
    return status ? status : qkv__traced_text_keep(&e->next, &e->now, (qkv__piece){ done, piece.end, -1 });
}

qkv_status qkv__cut_added(const qkv_tokenizer *t, qkv__encoder *e, const qkv__added *a)
{
    qkv_status status = QKV_OK;
    if (!a->n) return QKV_OK;
    qkv__traced_text_clear(&e->next);
    for (size_t i = 0; i < e->now.n && !status; i++) {
        qkv__piece piece = e->now.pieces[i];
        status = piece.id < 0 ? cut_piece(t, e, a, piece) : qkv__traced_text_keep(&e->next, &e->now, piece);
    }
    qkv__traced_texts_swap(e);
    return status;
}

/* ---- those of a tokenizer ---- */

/* What the normalizers make of a spelling, in e->now; one that they cut or empty is as it was. */
static qkv_status normalize(const qkv_tokenizer *t, qkv__encoder *e, const char *spelling)
{
    size_t length = strlen(spelling);
    uint64_t budget = e->cutter.budget; /* one for all of them */
    qkv__steps_bound(e, length);
    e->cutter.budget = budget;
    qkv__traced_text_clear(&e->now);
    qkv_status status = qkv__traced_text_put(&e->now, spelling, length, (qkv__range){ 0 });
    if (!status) status = qkv__traced_text_end(&e->now, 0, -1);
    return status ? status : qkv__steps_run(&t->pipeline->normalizers, e, false);
}

static qkv_status list_added(qkv_tokenizer *t, qkv__encoder *e, bool normalized)
{
    qkv__added *a = &t->pipeline->added[normalized];
    size_t n = 0;
    for (size_t id = 0; id < t->n; id++) n += t->tokens[id].is_added && t->tokens[id].is_normalized == normalized;
    if (!n) return QKV_OK;
    qkv_status status = qkv__added_begin(a, n);
    e->cutter.budget = QKV__CUT_BUDGET(t->pool.length);
    n = 0;
    for (size_t id = 0; id < t->n && !status; id++) {
        if (!t->tokens[id].is_added || t->tokens[id].is_normalized != normalized) continue;
        const char *spelling = qkv__tokenizer_spelling(t, (int32_t)id);
        status = normalized ? normalize(t, e, spelling) : QKV_OK;
        if (!status) status = qkv__added_set(a, n++, normalized ? e->now.text.data : spelling, (int32_t)id);
    }
    return status ? status : qkv__added_end(a);
}

qkv_status qkv__pipeline_finish(qkv_tokenizer *t)
{
    qkv__encoder e = { 0 };
    qkv_status status = list_added(t, &e, false);
    if (!status) status = list_added(t, &e, true);
    qkv__encoder_free(&e);
    return status;
}
