/* jansson_file.h: a whole JSON file as jansson values. */
#ifndef QKV_APP_JANSSON_FILE_H
#define QKV_APP_JANSSON_FILE_H

#include "../../src/base/file.h"

#include <jansson.h>

/* IO; FORMAT with the line for what is not JSON or has a key twice; LIMIT for more than limit bytes; MEMORY. *out, yours, is
 * NULL on error. */
qkv_status qkv__json_read(const char *path, size_t limit, json_t **out);

/* Writes it whole or not at all. IO; MEMORY, also for NULL, which is what jansson gives when memory is out. */
qkv_status qkv__json_write(const char *path, const json_t *value);

/* Whether json_loadb() of this text failed for want of memory: it says so in several ways, one of which is bad syntax. */
bool qkv__json_out_of_memory(const json_error_t *error, const char *text, size_t size);

#endif
