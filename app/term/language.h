/* language.h: texts in the reader's language. */
#ifndef QKV_TERM_LANGUAGE_H
#define QKV_TERM_LANGUAGE_H

#include <stdbool.h>

#if defined(__GNUC__)
#define FORMAT_OF(n) __attribute__((format_arg(n))) /* a translated format takes what the format itself takes */
#else
#define FORMAT_OF(n)
#endif

typedef enum language { LANGUAGE_OF_LOCALE, ENGLISH, CHINESE } language;
extern const char *const language_names[]; /* in that order, as --lang has them; NULL after the last */

/* From now on texts, the library's too, are in this language, or in that which LC_ALL, LC_MESSAGES or LANG, the first that is
 * set, says; until then they are in English. false where it is Chinese and there are no such texts to be found. */
bool speak(language l);
bool speaks_chinese(void);

/* The text in the reader's language; and a mark for text in tables, which is translated where it is printed. */
const char *translated(const char *text) FORMAT_OF(1);
#define _(text) translated(text)
#define N_(text) text

#endif
