/* decoding.h: a decoder one token at a time. The keys and values of the tokens so far are kept: a step costs one token. */
#ifndef QKV_SRC_DECODING_H
#define QKV_SRC_DECODING_H

#include <qkv/nn.h>

typedef struct qkv__decoding qkv__decoding;

/* `sentences` sentences with `beam` rows each, of at most `room` tokens. memory (sentences, Ts, dim), with `lengths` real
 * tokens each, is what the encoder gave; NULL for a decoder alone. The memory is read during the call only. NULL on error:
 * USAGE, LIMIT, MEMORY. */
qkv__decoding *qkv__decoding_new(const qkv_transformer *m, qkv_tensor *memory, const int32_t *lengths, int64_t sentences,
                                 int64_t beam, int64_t room);
void qkv__decoding_free(qkv__decoding *d);

/* The next token of every row: ids (rows)   ->   logits (rows, vocabulary). Errors stay on the tape. The same bits as a forward
 * over all tokens at once gives at that place. */
qkv_tensor *qkv__decoding_step(qkv__decoding *d, qkv_tape *t, const int32_t *ids);

/* Goes on with `sentences` of the sentences, kept[i] in growing order; row i of them becomes what row parents[i] of all rows
 * was. */
void qkv__decoding_select(qkv__decoding *d, int64_t sentences, const int64_t *kept, const int64_t *parents);

#endif
