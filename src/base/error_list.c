/* error_list.c: all that is wrong with a file as one sentence. */
#include "error_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void qkv__error_list_add(qkv__error_list *c, const char *format, ...)
{
    char item[512];
    va_list args;
    va_start(args, format);
    vsnprintf(item, sizeof item, format, args);
    va_end(args);
    size_t length = strlen(item);
    if (c->length + length + 2 >= sizeof c->text) {
        c->hidden++;
        return;
    }
    c->length += (size_t)snprintf(c->text + c->length, sizeof c->text - c->length, "%s%s", c->shown++ ? "; " : "", item);
}

qkv_status qkv__error_list_end(const qkv__error_list *c, const char *path, qkv_status status)
{
    char more[48] = "";
    if (!c->shown && !c->hidden) return QKV_OK;
    if (c->hidden) snprintf(more, sizeof more, "; and %d more like these", c->hidden);
    return qkv__fail(status, "%.150s: %s%s", path, c->text, more);
}
