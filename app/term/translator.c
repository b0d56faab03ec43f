/* translator.c: texts for people, in the reader's language. */
#include "translator.h"

#include <stddef.h>

static qkv_translator translate;

void qkv_set_translator(qkv_translator translator) { translate = translator; }

const char *qkv__translated(const char *english) { return translate && *english ? translate(english) : english; }
