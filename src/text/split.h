/* split.h: cuts text into words by GPT-2's pattern. */
#ifndef QKV_SRC_SPLIT_H
#define QKV_SRC_SPLIT_H

#include "../base/memory.h"

#include <stdbool.h>

typedef struct qkv__pattern qkv__pattern; /* read-only: any number of cutters share it */

/* NULL with the error set: MEMORY. */
qkv__pattern *qkv__pattern_new(void);
void qkv__pattern_free(qkv__pattern *p);

/* One walk over a text. A zeroed one is ready; its memory is kept from walk to walk. */
typedef struct qkv__cutter {
    const char *text;
    size_t length, at;
    size_t stretch, stretch_end; /* the piece of valid UTF-8 that `at` is in: the pattern never sees other bytes */
    void *found;                 /* PCRE2's match data */
} qkv__cutter;
void qkv__cut_begin(qkv__cutter *c, const char *text, size_t length);

/* The next word's bytes; an empty one (*begin == *end) after the last. Words lie side by side; bytes that are not UTF-8 make
 * words of their own. MEMORY. */
qkv_status qkv__cut_next(qkv__cutter *c, const qkv__pattern *p, size_t *begin, size_t *end);
void qkv__cutter_free(qkv__cutter *c);

#endif
