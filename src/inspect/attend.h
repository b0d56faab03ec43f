/* attend.h: what is kept of a model's attention: tokens with their text, and where the weights lie. */
#ifndef QKV_SRC_ATTEND_H
#define QKV_SRC_ATTEND_H

#include <qkv/session.h>
#include <qkv/unstable/inspect.h>
#include <qkv/unstable/buffer.h>

#include "../base/arena.h"
#include "../token/encode.h"

#include <stdbool.h>

/* Tokens with the text each stands for. Zero is ready; used again and again. */
typedef struct qkv__tokens {
    int32_t *ids; /* n of them */
    uint8_t *special;
    size_t *ends; /* token i is the bytes of text from where token i - 1 ends to ends[i] - 1 */
    int64_t n;
    qkv_buffer text;
    size_t ids_bytes, special_bytes, ends_bytes;
    qkv__ids encoded; /* working memory, and so is the next */
    qkv_buffer decoded;
} qkv__tokens;
void qkv__tokens_free(qkv__tokens *t);
void qkv__tokens_clear(qkv__tokens *t);

/* Add one special token; the tokens of UTF-8, each with the text it comes from; ids, with the text they decode to. */
qkv_status qkv__tokens_put_special(qkv__tokens *t, const qkv_tokenizer *tokenizer, int32_t id);
qkv_status qkv__tokens_put_text(qkv__tokens *t, const qkv_tokenizer *tokenizer, const char *text, size_t length,
                                const qkv_encode_opts *opts);
qkv_status qkv__tokens_put_ids(qkv__tokens *t, const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n);

/* Text as a name, which ends with its only NUL; bytes that are no character as U+FFFD, with pieces like \\xE6. MEMORY. */
qkv_status qkv__put_unit_name(qkv_buffer *name, const char *text, size_t length, bool pieces);

/* Units of the tokens from `from` on, n of them, by the options; their memory is the result's. MEMORY. */
qkv_status qkv__axis_make(void *result, const qkv__tokens *t, int64_t from, int64_t n, const qkv_attend_opts *o,
                          qkv_axis *axis);

/* Maps between tokens, joined to one between units: columns of a unit's tokens are added, rows averaged, and so are the maps. */
typedef struct qkv__joining {
    const float *const *blocks; /* n_blocks of them, each (.., tokens, tokens), of which heads maps from first_head on count */
    int n_blocks, first_head, heads;
    qkv_axis rows, columns; /* begin NULL: every token is a unit */
    float *out;             /* (units, units) */
} qkv__joining;
qkv_status qkv__join_maps(const qkv__joining *j); /* MEMORY */

/* A qkv_attention_capture. */
typedef struct qkv__capture {
    qkv_attention_capture shown; /* first: what the caller sees */
    qkv_session *session;        /* the weights */
    qkv__tokens source, target;
    qkv_buffer text, more;
    qkv_translations *found;
    const float **maps[QKV_ATTENTION_KINDS]; /* (layers): each (heads, tokens of the rows, tokens of the columns) */
} qkv__capture;

static inline const qkv__capture *qkv__capture_of(const qkv_attention_capture *a) { return (const qkv__capture *)a; }

#endif
