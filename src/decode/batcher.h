/* batcher.h: texts that go on at the same time, each on a thread of its own, are read in the forwards of one session.
 *
 * A forward begins when every open row waits for one, and the thread that came last runs it for all of them; a row whose thread
 * is busy with its last token for longer than the last forward took is not waited for. A forward has the next token of every
 * row that waits, and beside them some tokens of prompts, so that a long prompt does not hold up the others. What a row reads
 * has the bits that it has in a session of its own: see <qkv/session.h>.
 *
 * What closed rows have read is kept, the latest as far as a limit goes: a row that begins like one of them, or like one that
 * is open, shares its caches instead of reading that again. */
#ifndef QKV_SRC_BATCHER_H
#define QKV_SRC_BATCHER_H

#include "../model/special_tokens.h"

typedef struct qkv__batcher qkv__batcher;
typedef struct qkv__batch_row qkv__batch_row;

/* For a decoder alone, which must outlive it: at most `rows` open at a time. kept_bytes bounds the caches of closed rows; what
 * several have in common counts for each. 0: none are kept, and nothing is shared. NULL on error: MEMORY. Any number of threads
 * may use it; it is freed when no row is open. */
qkv__batcher *qkv__batcher_new(const qkv_model *m, int rows, size_t kept_bytes);
void qkv__batcher_free(qkv__batcher *b);

/* A row that is to read `start` and n ids. *n_read of all these are read already: at most all but the last, so that there is
 * one whose logits come next. LIMIT when as many rows as there may be are open; MEMORY. Close it. */
qkv_status qkv__batch_open(qkv__batcher *b, const qkv__id_run *start, const int32_t *ids, int64_t n, int64_t *n_read,
                           qkv__batch_row **row);
void qkv__batch_close(qkv__batcher *b, qkv__batch_row *row);

/* How many tokens of a prompt should be read at a time: fewer where others go on. */
int64_t qkv__batch_block(qkv__batcher *b);

/* Reads n > 0 more tokens of a row, and waits until that is done. The logits of the last `wanted` of them, (wanted,
 * vocabulary), live until the row's next call; NULL for none. Errors as qkv_session_read() has them; the row is then as it
 * was. */
qkv_status qkv__batch_read(qkv__batcher *b, qkv__batch_row *row, const int32_t *ids, int64_t n, int64_t wanted,
                           const float **logits);

/* Bytes of the caches that are kept, counted as kept_bytes has it. */
size_t qkv__batcher_kept(qkv__batcher *b);

#endif
