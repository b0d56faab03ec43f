/* strings.h: the texts of the application as the library takes them. */
#ifndef QKV_APP_REPORT_STRINGS_H
#define QKV_APP_REPORT_STRINGS_H

#include <qkv/base.h>

/* n strings; lengths NULL: the texts end with a NUL. free() them. NULL with the error set: MEMORY. */
qkv_str *qkv__strings_of(const char *const *texts, const size_t *lengths, int64_t n);

#endif
