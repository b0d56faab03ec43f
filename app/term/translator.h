/* translator.h: texts for people, in the reader's language. Not for errors, nor for what programs read. Apart from language.h, as
 * the page's engine has no gettext. */
#ifndef QKV_APP_TERM_TRANSLATOR_H
#define QKV_APP_TERM_TRANSLATOR_H

/* The translation of an English text, or the text itself; static text, and of a printf format one that takes the same. */
typedef const char *(*qkv_translator)(const char *english);

/* The words in pictures, tables and notes go through it from now on. NULL: all is English. */
void qkv_set_translator(qkv_translator translator);

/* What the translator gives for a text, or the text. */
#if defined(__GNUC__)
__attribute__((format_arg(1)))
#endif
const char *
qkv__translated(const char *english);

/* Marks a text that is translated elsewhere, such as by the command that prints it. */
#define QKV__N(text) text

#endif
