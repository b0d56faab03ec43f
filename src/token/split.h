/* split.h: cuts text by regular expressions: into words by GPT-2's pattern, or as a published tokenizer has it. */
#ifndef QKV_SRC_SPLIT_H
#define QKV_SRC_SPLIT_H

#include "../base/memory.h"

#include <stdbool.h>

typedef struct qkv__pattern qkv__pattern; /* read-only: any number of cutters share it */

/* NULL with the error set: MEMORY. */
qkv__pattern *qkv__pattern_new(void);

/* A regular expression as published tokenizers have them: \s, \S and \w as Unicode has them, ^ and $ at the ends of lines. NULL
 * with the error set: UNSUPPORTED, name starts the sentence; MEMORY. */
qkv__pattern *qkv__pattern_compile(const char *name, const char *expression);
void qkv__pattern_free(qkv__pattern *p);

/* One walk over a text. A zeroed one is ready; its memory is kept from walk to walk. */
typedef struct qkv__cutter {
    const char *text;
    size_t length, at;
    size_t stretch, stretch_end; /* the piece of valid UTF-8 that `at` is in: the pattern never sees other bytes */
    void *found;                 /* PCRE2's match data */
    void *limits;                /* PCRE2's match context */
    uint64_t budget;             /* steps of qkv__cut_find() that are left for all walks over a text; each search takes some */
} qkv__cutter;
#define QKV__CUT_BUDGET(length) (1000000 + 1000 * (uint64_t)(length))
void qkv__cut_begin(qkv__cutter *c, const char *text, size_t length);

/* The next word's bytes; an empty one (*begin == *end) after the last. Words lie side by side; bytes that are not UTF-8 make
 * words of their own. MEMORY. */
qkv_status qkv__cut_next(qkv__cutter *c, const qkv__pattern *p, size_t *begin, size_t *end);

/* A walk over bytes begin .. end-1 of a text, which are UTF-8; and the first match from `at` on. Where there is none, *begin
 * and *end are the walk's end. The budget is the caller's to set. LIMIT for an expression that uses it up; MEMORY. */
void qkv__cut_begin_at(qkv__cutter *c, const char *text, size_t begin, size_t end);
qkv_status qkv__cut_find(qkv__cutter *c, const qkv__pattern *p, size_t at, size_t *begin, size_t *end);
void qkv__cutter_free(qkv__cutter *c);

#endif
