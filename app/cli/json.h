/* json.h: text as JSON. */
#ifndef QKV_CLI_JSON_H
#define QKV_CLI_JSON_H

#include <qkv/data.h>
#include <qkv/unstable/buffer.h>

/* Prints text in quotes, escaped where JSON wants it; U+FFFD for what is not UTF-8. */
void put_json_text(const char *text, size_t length);

/* Prints an object that a call with this status has put into text, but for its first brace, behind members of one's own, and
 * a newline; frees the text. Reports its error. */
qkv_status put_json_rest(qkv_status status, qkv_buffer *text);

#endif
