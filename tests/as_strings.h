/* as_strings.h: the texts of a test as the library takes them. */
#ifndef QKV_TESTS_AS_STRINGS_H
#define QKV_TESTS_AS_STRINGS_H

#include <qkv/base.h>

#include <stdlib.h>

/* n strings, which are used again after some thousand; lengths NULL: the texts end with a NUL. */
static inline const qkv_str *as_strings(const char *const *texts, const size_t *lengths, int64_t n)
{
    enum { ROOM = 1 << 13 };
    static _Thread_local qkv_str room[ROOM];
    static _Thread_local int64_t used;
    if (n > ROOM) abort();
    if (used + n > ROOM) used = 0;
    qkv_str *all = room + used;
    for (int64_t i = 0; i < n; i++) all[i] = lengths ? (qkv_str){ texts[i], lengths[i] } : qkv_cstr(texts[i]);
    used += n > 0 ? n : 0;
    return all;
}

#endif
