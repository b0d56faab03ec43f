/* status.h: how the library reports an error. */
#ifndef QKV_SRC_STATUS_H
#define QKV_SRC_STATUS_H

#include <qkv/base.h>

#include <stdarg.h>

#define QKV_SENTENCE_MAX 1024

/* Stores the sentence for qkv_error() and gives status back, so that a failing call reads: return qkv__fail(...).
 * Sentences are cut at QKV_SENTENCE_MAX, at the start of a character. */
qkv_status qkv__fail(qkv_status status, const char *format, ...) QKV_PRINTF(2, 3);

/* The same for a caller that has its own "..." */
qkv_status qkv__fail_with(qkv_status status, const char *format, va_list args);

/* Puts a sentence that was stored elsewhere (on a tape, in params) back into qkv_error(). */
qkv_status qkv__fail_again(qkv_status status, const char *sentence);

/* "(2, 3, 4)" into text, for sentences. */
#define QKV_SHAPE_TEXT 128
const char *qkv__shape_text(char text[QKV_SHAPE_TEXT], int ndim, const int64_t *shape);

/* The first of some bytes that nobody has checked, for sentences: what is not printable ASCII becomes a question mark. */
enum { QKV__SHOWN_BYTES = 101 };
const char *qkv__shown(char text[QKV__SHOWN_BYTES], const void *bytes, size_t n);
#define QKV__SHOWN(bytes, n) qkv__shown((char[QKV__SHOWN_BYTES]){ 0 }, bytes, n)

#endif
