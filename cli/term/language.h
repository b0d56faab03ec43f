/* language.h: texts in the reader's language. */
#ifndef QKV_TERM_LANGUAGE_H
#define QKV_TERM_LANGUAGE_H

#if defined(__GNUC__)
#define FORMAT_OF(n) __attribute__((format_arg(n))) /* a translated format takes what the format itself takes */
#else
#define FORMAT_OF(n)
#endif

/* From now on texts are in Chinese; until then they are in English. Tells on stderr when there are none to be found. */
void speak_chinese(void);

/* The text in the reader's language; and a mark for text in tables, which is translated where it is printed. */
const char *translated(const char *text) FORMAT_OF(1);
#define _(text) translated(text)
#define N_(text) text

#endif
