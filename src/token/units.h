/* units.h: splits text into words at white space, into words and punctuation marks, or into characters. */
#ifndef QKV_SRC_UNITS_H
#define QKV_SRC_UNITS_H

#include "../base/buffer.h"

#include <qkv/tokenizer.h>

/* Words in lower case, with spaces between them. */
static inline bool qkv__has_lower_words(qkv_token_kind kind) { return kind == QKV_TOKEN_WORDS || kind == QKV_TOKEN_WORDPUNCT; }

/* The first word, punctuation mark or character from *end on: its bytes are *begin .. *end-1. False when there is none left. Each mistake in
 * text that is not UTF-8 is a character, or part of a word. */
bool qkv__next_unit(qkv_token_kind kind, const char *text, size_t length, size_t *begin, size_t *end);

/* What a token for it is spelled like: a word in lower case, a character as it is. MEMORY. */
qkv_status qkv__spell_unit(qkv_token_kind kind, const char *unit, size_t length, qkv_buffer *out);

#endif
