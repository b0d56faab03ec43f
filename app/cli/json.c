/* json.c: text as JSON. */
#include "json.h"

#include <qkv/unstable/util.h>

#include "../term/errors.h"

#include <stdio.h>

void put_json_text(const char *text, size_t length)
{
    putchar('"');
    for (size_t bytes; length; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_next(text, length, &bytes);
        if (c < 0) fputs("\xEF\xBF\xBD", stdout);
        else if (c == '"' || c == '\\') printf("\\%c", (char)c);
        else if (c < 0x20) printf("\\u%04x", (unsigned)c);
        else fwrite(text, 1, bytes, stdout);
    }
    putchar('"');
}

qkv_status put_json_rest(qkv_status status, qkv_buffer *text)
{
    if (status) status = library_failed();
    else puts(text->data + 1);
    qkv_buffer_free(text);
    return status;
}
