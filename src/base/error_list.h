/* error_list.h: all that is wrong with a file as one sentence. */
#ifndef QKV_SRC_ERROR_LIST_H
#define QKV_SRC_ERROR_LIST_H

#include "status.h"

#include <stddef.h>

/* As much as fits, then how much more there is. Zero: nothing is wrong. */
typedef struct qkv__error_list {
    char text[QKV_SENTENCE_MAX - 256]; /* room for the path and the count */
    size_t length;
    int shown, hidden;
} qkv__error_list;

void qkv__error_list_add(qkv__error_list *c, const char *format, ...) QKV_PRINTF(2, 3);

/* The sentence about the file; OK when nothing is wrong. */
qkv_status qkv__error_list_end(const qkv__error_list *c, const char *path, qkv_status status);

#endif
