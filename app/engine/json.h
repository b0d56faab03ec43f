/* json.h: JSON out, into text that grows; JSON in, field by field. */
#ifndef QKV_SRC_SERVE_JSON_H
#define QKV_SRC_SERVE_JSON_H

#include "../../src/base/buffer.h"
#include "../../src/base/json.h"

/* ---- out ---- */

/* The first error stays; what is put after it is lost. Starts as zero. */
typedef struct qkv__json {
    qkv_buffer text;
    qkv_status status;
} qkv__json;

void qkv__put_raw(qkv__json *j, const char *raw); /* as it is */
void qkv__put_bytes(qkv__json *j, const void *raw, size_t size);
void qkv__put_string(qkv__json *j, const char *text, size_t length); /* UTF-8, in quotes; "<" too is escaped, for HTML */
void qkv__put_name(qkv__json *j, const char *name);                  /* the same for text that ends with a NUL */
void qkv__put_whole(qkv__json *j, int64_t x);
void qkv__put_float(qkv__json *j, float x);   /* as many digits as give the same number back; null for none */
void qkv__put_double(qkv__json *j, double x); /* the same */
void qkv__put_ids(qkv__json *j, const int32_t *ids, int64_t n);
void qkv__put_base64(qkv__json *j, const void *bytes, size_t size);     /* in quotes */
void qkv__put_float_base64(qkv__json *j, const float *x, size_t count); /* little-endian */

/* {"shape": [..], "f32": ".."}: an array of numbers as the live page reads it */
void qkv__put_array(qkv__json *j, const float *x, int n_dims, const int64_t *dims);

/* ,"name": and what follows; a number; a text */
void qkv__put_key(qkv__json *j, const char *name);
void qkv__put_named_whole(qkv__json *j, const char *name, int64_t x);
void qkv__put_named_double(qkv__json *j, const char *name, double x);

/* ---- in: members of an object ----
 * A member that is missing or null leaves its default. USAGE, with the member's name, for another type or a number out of
 * range. */
qkv_status qkv__get_whole(const qkv__json_value *o, const char *name, int64_t least, int64_t most, int64_t *x);
qkv_status qkv__get_number(const qkv__json_value *o, const char *name, double least, double most, float *x);
qkv_status qkv__get_flag(const qkv__json_value *o, const char *name, bool *x);
qkv_status qkv__get_string(const qkv__json_value *o, const char *name, const char **text, size_t *length);

/* A string, or an array of at most QKV__TEXTS of them; n is 0 where there is none. The strings are the object's. */
enum { QKV__TEXTS = 64 };
typedef struct qkv__strings {
    qkv_str texts[QKV__TEXTS];
    int64_t n;
    bool is_array;
} qkv__strings;
qkv_status qkv__get_strings(const qkv__json_value *o, const char *name, qkv__strings *x);

/* The same, and USAGE when it is missing or an empty array. */
qkv_status qkv__need_strings(const qkv__json_value *o, const char *name, qkv__strings *x);

#endif
