/* strings.h: methods of strings that are filters too. */
#ifndef QKV_SRC_JINJA_STRINGS_H
#define QKV_SRC_JINJA_STRINGS_H

#include "run.h"

jinja_call qkv__jinja_lower, qkv__jinja_upper, qkv__jinja_capitalize, qkv__jinja_title, qkv__jinja_trim, qkv__jinja_replace;

/* What was printed behind `from` becomes a value, and is printed no more; `status` is that of the printing. LIMIT for too long
 * a text. */
qkv_status qkv__jinja_take_printed(jinja_run *r, size_t from, qkv_status status, jinja_value *out);

#endif
