/* language.h: texts for people, in the reader's language. Not for errors, nor for what programs read. */
#ifndef QKV_SRC_LANGUAGE_H
#define QKV_SRC_LANGUAGE_H

#include <qkv/base.h>

/* What the translator of the program gives for a text, or the text. A translated format takes what the format takes. */
#if defined(__GNUC__)
__attribute__((format_arg(1)))
#endif
const char *
qkv__translated(const char *english);

/* Marks a text that is translated elsewhere, such as by the command that prints it. */
#define QKV__N(text) text

#endif
