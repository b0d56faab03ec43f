/* out.c: text for people and other programs, put together piece by piece. */
#include "out.h"

#include <qkv/unstable/util.h>

#include <locale.h>
#include <stdio.h>
#include <string.h>

qkv__out qkv__out_begin(qkv_buffer *text)
{
    qkv__buffer_clear(text);
    return (qkv__out){ .text = text, .status = qkv__buffer_put(text, "", 0) };
}

void qkv__out_bytes(qkv__out *o, const void *bytes, size_t size)
{
    if (!o->status) o->status = qkv__buffer_put(o->text, bytes, size);
}

/* Formats into the text itself, which has room bytes behind its end; how many bytes it takes, without the NUL. */
static int format_into(qkv_buffer *t, size_t room, const char *format, va_list args)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = plain ? uselocale(plain) : (locale_t)0;
    int taken = vsnprintf(t->data + t->length, room, format, args);
    if (plain) uselocale(before), freelocale(plain);
    return taken;
}

void qkv__out_printf(qkv__out *o, const char *format, ...)
{
    for (int taken = 64, tries = 0; !o->status && tries < 2; tries++) {
        va_list args;
        size_t room = (size_t)taken + 1;
        if ((o->status = qkv__grow((void **)&o->text->data, &o->text->capacity, o->text->length + room))) return;
        va_start(args, format);
        taken = format_into(o->text, room, format, args);
        va_end(args);
        if (taken < 0) o->status = qkv__fail(QKV_MEMORY, "out of memory: a line cannot be put together");
        else if ((size_t)taken < room) {
            o->text->length += (size_t)taken;
            return;
        }
    }
}

int qkv__width(const char *text) { return (int)qkv_utf8_width(text, strlen(text)); }

void qkv__out_name(qkv__out *o, const char *name, int width, bool right)
{
    int gap = width - qkv__width(name);
    if (gap < 0) gap = 0;
    if (right) qkv__out_printf(o, "%*s%s", gap, "", name);
    else qkv__out_printf(o, "%s%*s", name, gap, "");
}

void qkv__out_json(qkv__out *o, const char *text, size_t length)
{
    qkv__out_bytes(o, "\"", 1);
    for (size_t bytes; length; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_next(text, length, &bytes);
        if (c < 0) qkv__out_bytes(o, "\xEF\xBF\xBD", 3);
        else if (c == '"' || c == '\\') qkv__out_printf(o, "\\%c", (char)c);
        else if (c < 0x20) qkv__out_printf(o, "\\u%04x", (unsigned)c);
        else qkv__out_bytes(o, text, bytes);
    }
    qkv__out_bytes(o, "\"", 1);
}

qkv_status qkv__out_end(qkv__out *o)
{
    if (o->status) qkv__buffer_clear(o->text);
    return o->status;
}
