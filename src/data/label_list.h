/* label_list.h: a label field that holds several labels, or a number. */
#ifndef QKV_SRC_LABEL_LIST_H
#define QKV_SRC_LABEL_LIST_H

#include "../base/status.h"

#include <qkv/data.h>
#include <qkv/unstable/buffer.h>

#include <stdbool.h>

enum { QKV__LABEL_MAX = 256 }; /* bytes of one label among several, its NUL included */

/* Where the labels begin; NULL: the text has none. */
const char *qkv__first_label(const qkv_labelled *x);

/* The label behind *at, without white space around it, copied to `label`; *at moves behind it, and is NULL after the last. False
 * with FORMAT, file and line named, for one that is empty or too long. */
bool qkv__next_label(const qkv_labelled *x, const char **at, const char *separator, char label[QKV__LABEL_MAX]);

/* A label as a text that is the same for all that differ only in case or white space: case folded, one space for any run of white
 * space. MEMORY. */
qkv_status qkv__label_key(const char *label, qkv_buffer *key);

/* The number in the label field. FORMAT, file and line named, for anything else and for one that a float cannot hold. */
qkv_status qkv__label_number(const qkv_labelled *x, double *number);

#endif
