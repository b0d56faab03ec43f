/* error_list.h: all that is wrong with a file as one sentence. */
#ifndef QKV_SRC_ERROR_LIST_H
#define QKV_SRC_ERROR_LIST_H

#include "../base/status.h"

#include <stddef.h>

/* As much as fits, then how much more there is. Zero: nothing is wrong. */
typedef struct qkv__complaint {
    char text[QKV_SENTENCE_MAX - 256]; /* room for the path and the count */
    size_t length;
    int shown, hidden;
} qkv__complaint;

void qkv__complain(qkv__complaint *c, const char *format, ...) QKV_PRINTF(2, 3);

/* The sentence about the file; OK when nothing is wrong. */
qkv_status qkv__complaint_end(const qkv__complaint *c, const char *path, qkv_status status);

#endif
