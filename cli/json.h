/* json.h: text as JSON. */
#ifndef QKV_CLI_JSON_H
#define QKV_CLI_JSON_H

#include <stddef.h>

/* Prints text in quotes, escaped where JSON wants it; U+FFFD for what is not UTF-8. */
void put_json_text(const char *text, size_t length);

#endif
