/* text_label.h: what may stand in a picture or a drawing as text. */
#ifndef QKV_SRC_TEXT_LABEL_H
#define QKV_SRC_TEXT_LABEL_H

#include "../../src/base/status.h"

#include <qkv/unstable/util.h>
#include <stdbool.h>
#include <string.h>

/* NULL or UTF-8. */
static inline bool qkv__is_label(const char *text) { return !text || qkv_utf8_valid(text, strlen(text)) == strlen(text); }

/* Error: USAGE; `what` says whose text it is. */
static inline qkv_status qkv__check_label(const char *call, const char *what, const char *text)
{
    return qkv__is_label(text) ? QKV_OK : qkv__fail(QKV_USAGE, "%s: %s is not UTF-8", call, what);
}

#endif
