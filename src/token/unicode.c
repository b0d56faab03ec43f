/* unicode.c: what utf8proc and PCRE2 do not know yet, and what others do not know yet. */
#include "unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unicode_row {
    int32_t first, last, value; /* a category, a version, or the lower case of the first */
} unicode_row;

/* Each sorted by first. */
static const unicode_row newer[] = {
#define NEWER(first, last, category) { first, last, UTF8PROC_CATEGORY_##category },
#define YOUNG(first, last, version)
#define LOWER(code, lower)
#include "unicode.def"
#undef NEWER
#undef YOUNG
#undef LOWER
};
static const unicode_row young[] = {
#define NEWER(first, last, category)
#define YOUNG(first, last, version) { first, last, version },
#define LOWER(code, lower)
#include "unicode.def"
#undef NEWER
#undef YOUNG
#undef LOWER
};
static const unicode_row lower_cases[] = {
#define NEWER(first, last, category)
#define YOUNG(first, last, version)
#define LOWER(code, lower) { code, code, lower },
#include "unicode.def"
#undef NEWER
#undef YOUNG
#undef LOWER
};
enum { NEWEST = 16 }; /* the version up to which the first and the last list go */

static int by_place(const void *code, const void *row)
{
    int32_t c = *(const int32_t *)code;
    const unicode_row *r = row;
    return c < r->first ? -1 : c > r->last;
}

/* The value of the row that has c; otherwise where there is none. */
static int32_t value_of(int32_t c, const unicode_row *rows, size_t n, int32_t otherwise)
{
    const unicode_row *found = c < rows[0].first ? NULL : bsearch(&c, rows, n, sizeof *rows, by_place);
    return found ? found->value : otherwise;
}

utf8proc_category_t qkv__category(int32_t c)
{
    utf8proc_category_t known = utf8proc_category(c);
    return known != UTF8PROC_CATEGORY_CN
               ? known
               : (utf8proc_category_t)value_of(c, newer, sizeof newer / sizeof *newer, UTF8PROC_CATEGORY_CN);
}

int32_t qkv__to_lower(int32_t c)
{
    int32_t lower = utf8proc_tolower(c);
    return lower != c ? lower : value_of(c, lower_cases, sizeof lower_cases / sizeof *lower_cases, c);
}

bool qkv__came_after(int32_t c, int version) { return value_of(c, young, sizeof young / sizeof *young, 0) > version; }

static const uint32_t script_starts[] = {
#include "scripts.def"
};

int qkv__script(int32_t c)
{
    size_t first = 0, end = sizeof script_starts / sizeof *script_starts; /* the last that begins at c or before it */
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if ((int32_t)(script_starts[middle] >> 8) <= c) first = middle;
        else end = middle;
    }
    utf8proc_category_t category = qkv__category(c);
    bool is_known = category != UTF8PROC_CATEGORY_CN && category != UTF8PROC_CATEGORY_CO && !qkv__came_after(c, 9);
    return is_known ? (int)(script_starts[first] & 0xff) : 0;
}

/* ---- for PCRE2 ---- */

static bool pcre2_is_newest(void)
{
    char version[64] = "";
    return pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version) > 0 && atoi(version) >= NEWEST;
}

static bool has_category(utf8proc_category_t c, const char *category, size_t length)
{
    static const char names[] = "CnLuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCo"; /* as utf8proc numbers them */
    return length && length <= 2 && !memcmp(names + 2 * (size_t)c, category, length);
}

qkv_status qkv__put_newer(const char *category, size_t length, qkv_buffer *out)
{
    qkv_status status = QKV_OK;
    if (pcre2_is_newest()) return QKV_OK;
    for (size_t i = 0; i < sizeof newer / sizeof *newer && !status; i++) {
        char range[48];
        if (!has_category((utf8proc_category_t)newer[i].value, category, length)) continue;
        int n = snprintf(range, sizeof range, "\\x{%X}-\\x{%X}", (unsigned)newer[i].first, (unsigned)newer[i].last);
        status = qkv__buffer_put(out, range, (size_t)n);
    }
    return status;
}
