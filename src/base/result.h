/* result.h: structs that the library allocates and qkv_free() frees; one owner for all that they point to. */
#ifndef QKV_SRC_RESULT_H
#define QKV_SRC_RESULT_H

#include "buffer.h"

/* One constant for each type of result; its address identifies the type. */
typedef struct qkv__result_kind {
    size_t size;
    void (*release)(void *result); /* frees what is not on the result's arena; NULL: nothing */
} qkv__result_kind;

/* Whether it is a result of this kind; NULL is none. */
bool qkv__result_is(const void *result, const qkv__result_kind *kind);

/* The result to fill: `result` emptied, or a new one for NULL; members are zero. NULL with the error set: USAGE for a result of
 * another kind, MEMORY. */
void *qkv__result_begin(void *result, const qkv__result_kind *kind);

/* Empties a result after an error. NULL is allowed. */
void qkv__result_clear(void *result);

/* Memory at a multiple of 64 bytes, not cleared, that lives until the result is emptied or freed. NULL: MEMORY. */
void *qkv__result_alloc(void *result, size_t bytes);

/* A copy with a NUL behind it. data is NULL with the error set: MEMORY. */
qkv_str qkv__result_copy(void *result, const char *data, size_t length);

/* The buffer of a text to write to, empty; NULL with the error set. qkv__text_end() shows what was written, or for a status
 * that is not OK nothing, and returns the status. */
qkv_buffer *qkv__text_begin(qkv_text **out);
qkv_status qkv__text_end(qkv_text *text, qkv_status status);

/* Whether the caller wants to stop: sets the error of QKV_CANCELLED and returns it, else OK. hooks may be NULL. */
qkv_status qkv__cancelled(const qkv_hooks *hooks, const char *call);

#endif
