/* forward.h: tokens that join the rows of a session: the layers of a decoder over them, and their keys and values in the cache. */
#ifndef QKV_SRC_FORWARD_H
#define QKV_SRC_FORWARD_H

#include "../base/size.h"
#include "../nn/layer.h"
#include "../tensor/packed.h"

#include <qkv/session.h>

/* What the encoder gave for one source; rows share it. */
typedef struct qkv__kept_source {
    qkv__sequence kept;
    uint8_t *hidden; /* (length); NULL: none */
    int64_t users;
} qkv__kept_source;

typedef struct qkv__session_row {
    qkv__sequence read;
    qkv__kept_source *source; /* NULL for a decoder alone */
    int64_t before;           /* tokens before the read in work */
} qkv__session_row;

/* What one thread reads with. */
typedef struct qkv__read_tapes {
    qkv_tape *tape, *layer_tape; /* of a forward, and of one of its layers */
} qkv__read_tapes;

struct qkv_session {
    const qkv__transformer *x;
    qkv_session_opts o;
    qkv_tape *tape, *encoder_tape;          /* of the last read, of the last encode */
    qkv_tensor *encoded;                    /* on the latter */
    qkv_tape *layer_tape;                   /* of one layer */
    qkv__read_tapes spare[QKV_MAX_THREADS]; /* of threads that have read a part each, n_spare of them: the last is taken next */
    int n_spare;
    qkv__cache self, cross;
    qkv__session_row *rows;
    int64_t n_rows;
    int64_t read_rows; /* of the last read: rows with new tokens */
    float *states;     /* of the last layer, whose logits are wanted */
    size_t states_bytes;
    qkv_tensor *logits;            /* on the tape */
    qkv_tape *output_tape;         /* of `outputs`; NULL until there are some */
    qkv_tensor outputs, biases;    /* rows of the output layer that logits are computed of; no rows: all of it */
    qkv__packing packing;          /* of outputs */
    uint8_t *heads_off;            /* (layers, 2, heads); NULL: none */
    uint8_t *layers_off;           /* (layers); NULL: none */
    int64_t n_layers, n_heads_off; /* of them, and the model's dim: the model may be gone when the session is freed */
    int64_t dim;
    float *sinusoid;     /* rows of dim, as many as were wanted so far */
    int64_t n_sinusoids; /* positions of it */
};

static inline const qkv__stack *qkv__session_decoder(const qkv_session *s) { return &s->x->stacks[QKV__DECODER]; }

static inline bool qkv__session_keeps(const qkv_session *s) { return s->o.keep_attention || s->o.keep_hidden; }

/* What comes out of the last layer, after the norm at the end where there is one. */
qkv_tensor *qkv__session_norm(const qkv_session *s, qkv_tensor *x);

/* Which tokens a read has, and how far it is. */
typedef struct qkv__new_tokens {
    const int32_t *ids;
    const int64_t *counts; /* NULL: 1 each */
    const int64_t *wanted; /* of each row, so many of its last new tokens give logits; NULL: by the kind */
    qkv_logits logits;
    int64_t row, done, left; /* the row in work, how many of its tokens are read, how many of all are not */
    int64_t n_wanted;        /* states of those that are */
} qkv__new_tokens;

static inline int64_t qkv__count_new(const qkv__new_tokens *r, int64_t i) { return r->counts ? r->counts[i] : 1; }

/* Tokens at the end of what row i reads whose logits are wanted. */
static inline int64_t qkv__count_wanted(const qkv__new_tokens *r, int64_t i)
{
    int64_t n = qkv__count_new(r, i);
    if (r->wanted) return qkv__min(r->wanted[i], n);
    return r->logits == QKV_LOGITS_ALL ? n : r->logits == QKV_LOGITS_LAST ? n > 0 : 0;
}

/* Reads all of them, for which there is room in the cache; states whose logits are wanted go to s->states, (wanted, dim). On an
 * error the rows may have some of them. */
qkv_status qkv__read_new_tokens(qkv_session *s, qkv__new_tokens *r);

void qkv__drop_spare_tapes(qkv_session *s);

#endif
