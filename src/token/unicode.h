/* unicode.h: Unicode's tables at the versions of the tokenizers that ours are to agree with. Hugging Face's library cuts words by
 * Unicode 16, which may be younger than utf8proc and PCRE2; its normalizers of BERT know Unicode 8, its normal forms and scripts 9. */
#ifndef QKV_SRC_UNICODE_H
#define QKV_SRC_UNICODE_H

#include "../base/buffer.h"

#include <utf8proc.h>

/* The general category, at Unicode 16 or what utf8proc has. */
utf8proc_category_t qkv__category(int32_t c);

/* The lower case of a character but U+0130, which has two. */
int32_t qkv__to_lower(int32_t c);

/* Whether c was assigned after version 8 or 9. */
bool qkv__came_after(int32_t c, int version);

/* Which script c has, a number of its own for each, Han and kana sharing one; 0: Unicode 9 gave it none. */
int qkv__script(int32_t c);

/* Adds those of a category ("L", "Nd") that PCRE2 may not know yet, as ranges of a class: nothing for another property. MEMORY */
qkv_status qkv__put_newer(const char *category, size_t length, qkv_buffer *out);

#endif
