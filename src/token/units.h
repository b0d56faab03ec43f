/* units.h: text as words between white space, or as characters: what is looked up whole. */
#ifndef QKV_SRC_UNITS_H
#define QKV_SRC_UNITS_H

#include "../text/buffer.h"

/* The first word or character from *end on: its bytes are *begin .. *end-1. False when there is none left. Each mistake in
 * text that is not UTF-8 is a character, or part of a word. */
bool qkv__next_unit(qkv_token_kind kind, const char *text, size_t length, size_t *begin, size_t *end);

/* What a token for it is spelled like: a word in lower case, a character as it is. MEMORY. */
qkv_status qkv__spell_unit(qkv_token_kind kind, const char *unit, size_t length, qkv_text *out);

#endif
