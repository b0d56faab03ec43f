/* read_text.h: a whole text from a file or from standard input. */
#ifndef QKV_APP_TERM_READ_TEXT_H
#define QKV_APP_TERM_READ_TEXT_H

#include <qkv/qkv.h>
#include <qkv/unstable/buffer.h>

/* All of a file as one text, in *out, which is yours: without a byte order mark and without the newlines at its end. "-" is
 * standard input. IO; UNSUPPORTED as above; LIMIT for more than `limit` bytes, 0 means 64 MiB; USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_text_read(const char *path, size_t limit, qkv_buffer *out);

#endif
