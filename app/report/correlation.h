/* correlation.h: a correlation for people and for programs. */
#ifndef QKV_SRC_CORRELATION_H
#define QKV_SRC_CORRELATION_H

enum { QKV__CORRELATION = 16 }; /* bytes, of any language */

/* The number; of NaN, which is none, a word that says so, or with json null. */
void qkv__correlation_text(double x, int json, char out[QKV__CORRELATION]);

#endif
