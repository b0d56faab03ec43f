/* out.h: text for people and other programs, put together piece by piece. */
#ifndef QKV_APP_REPORT_OUT_H
#define QKV_APP_REPORT_OUT_H

#include "../../src/base/buffer.h"

/* The first error stays; what is put after it is lost. */
typedef struct qkv__out {
    qkv_buffer *text;
    qkv_status status;
} qkv__out;

/* Begins a result: *text becomes empty. */
qkv__out qkv__out_begin(qkv_buffer *text);

/* As printf, with a point in numbers whatever the locale. */
void qkv__out_printf(qkv__out *o, const char *format, ...) QKV_PRINTF(2, 3);
void qkv__out_bytes(qkv__out *o, const void *bytes, size_t size);

/* A name and spaces that fill it up to width columns, before it when right. */
void qkv__out_name(qkv__out *o, const char *name, int width, bool right);

/* A text in quotes, escaped where JSON wants it; U+FFFD for what is not UTF-8. */
void qkv__out_json(qkv__out *o, const char *text, size_t length);

/* The status of all of it; on an error nothing is left of the text. */
qkv_status qkv__out_end(qkv__out *o);

/* Columns that UTF-8 ending with a NUL takes, see qkv_utf8_width(). */
int qkv__width(const char *text);

#endif
