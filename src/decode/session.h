/* session.h: what the library itself does with a session beside <qkv/session.h>. What it is given is not NULL. */
#ifndef QKV_SRC_SESSION_H
#define QKV_SRC_SESSION_H

#include <qkv/session.h>

/* qkv_session_read() with logits of the last wanted[i] new tokens of every row i. */
qkv_status qkv__session_read_wanted(qkv_session *s, const int32_t *ids, const int64_t *counts, const int64_t *wanted);

/* Bytes of the pages of a row, those it shares too. */
size_t qkv__session_row_bytes(const qkv_session *s, int64_t row);

/* Gives back the memory that no row needs. What the last read gave is gone. */
void qkv__session_trim(qkv_session *s);

/* From now on logits are of these n ids alone, (rows or tokens, n), the bits of each as among all; n 0: of all again. The rows
 * of the output layer are copied once; those with scales as float32, so that the bits are not those of the whole then. USAGE for
 * an id that the model does not have, MEMORY. */
qkv_status qkv__session_set_outputs(qkv_session *s, const int32_t *ids, int64_t n);

#endif
