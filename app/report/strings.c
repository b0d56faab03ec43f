/* strings.c: the texts of the application as the library takes them. */
#include "strings.h"

#include "../../src/base/status.h"

#include <stdlib.h>

qkv_str *qkv__strings_of(const char *const *texts, const size_t *lengths, int64_t n)
{
    qkv_str *all = calloc((size_t)n + 1, sizeof *all);
    for (int64_t i = 0; all && i < n; i++) all[i] = lengths ? (qkv_str){ texts[i], lengths[i] } : qkv_cstr(texts[i]);
    if (!all) qkv__fail(QKV_MEMORY, "no memory for %lld texts", (long long)n);
    return all;
}
