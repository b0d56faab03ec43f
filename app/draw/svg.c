/* svg.c: what cairo's SVG lacks: text that can be found and copied, and the same bytes every time. */
#include "svg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */

static void put_svg_text(qkv__picture *p, qkv__bytes *to, const char *text) { qkv__put(p, to, text, strlen(text)); }

static void put_attribute(qkv__picture *p, const char *name, double value)
{
    char number[QKV__NUMBER_BYTES], attribute[80];
    snprintf(attribute, sizeof attribute, " %s=\"%s\"", name, qkv__number_text(number, "%.2f", value));
    put_svg_text(p, &p->layer, attribute);
}

static void put_turn(qkv__picture *p, const qkv__label *l, const qkv__svg_place *at)
{
    char x[QKV__NUMBER_BYTES], y[QKV__NUMBER_BYTES], turn[QKV__NUMBER_BYTES], attribute[160];
    if (l->turn == 0) return;
    snprintf(attribute, sizeof attribute, " transform=\"rotate(%s %s %s)\"", qkv__number_text(turn, "%.2f", l->turn),
             qkv__number_text(x, "%.2f", at->x), qkv__number_text(y, "%.2f", at->y));
    put_svg_text(p, &p->layer, attribute);
}

/* XML has no place for control characters, nor for U+FFFE and U+FFFF. */
static void put_escaped(qkv__picture *p, const char *text)
{
    for (; *text; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (c == '&') put_svg_text(p, &p->layer, "&amp;");
        else if (c == '<') put_svg_text(p, &p->layer, "&lt;");
        else if (c == '>') put_svg_text(p, &p->layer, "&gt;");
        else if (c == '\n') put_svg_text(p, &p->layer, "↵");
        else if (c >= 0x20 && c != 0x7F && (c & 0xFFFE) != 0xFFFE)
            qkv__put(p, &p->layer, text, (size_t)(g_utf8_next_char(text) - text));
    }
}

void qkv__svg_text(qkv__picture *p, const qkv__label *l, const qkv__svg_place *at)
{
    put_svg_text(p, &p->layer, "<text");
    put_attribute(p, "x", at->x + at->start);
    put_attribute(p, "y", at->y + at->baseline);
    put_attribute(p, "font-size", l->size);
    put_attribute(p, "textLength", at->width);
    put_turn(p, l, at);
    put_svg_text(p, &p->layer, " lengthAdjust=\"spacingAndGlyphs\">");
    put_escaped(p, l->is_token && *l->text == ' ' && l->text[1] ? l->text + 1 : l->text);
    put_svg_text(p, &p->layer, "</text>\n");
}

/* ---- the file ---- */

/* cairo numbers what it draws through the life of the process: counted from the surface's own number they are always the
 * same. Gives the end of the number. */
static const char *put_svg_number(qkv__picture *p, qkv__bytes *to, const char *digits, long first)
{
    char number[32], *end;
    snprintf(number, sizeof number, "%ld", strtol(digits, &end, 10) - first);
    put_svg_text(p, to, number);
    return end;
}

/* A map's cells stay sharp when the picture is enlarged. */
static void put_sharpness(qkv__picture *p, qkv__bytes *to, const char *after_number)
{
    char size[96];
    int length = snprintf(size, sizeof size, "\" width=\"%lld\" height=\"%lld\"", (long long)p->pixels_across,
                          (long long)p->pixels_down);
    if (!strncmp(after_number, size, (size_t)length)) put_svg_text(p, to, "\" style=\"image-rendering:pixelated");
}

static void put_drawing(qkv__picture *p, qkv__bytes *to, const char *from, const char *end)
{
    const char *own = strstr(from, "id=\"surface");
    long first = own ? strtol(own + strlen("id=\"surface"), NULL, 10) - 1 : 0;
    for (const char *at; !p->status && (at = strpbrk(from, "\"#")) && at < end;) {
        size_t name = !strncmp(at + 1, "image", 5) ? 6 : !strncmp(at + 1, "surface", 7) ? 8 : 0;
        qkv__put(p, to, from, (size_t)(at + (name ? name : 1) - from));
        from = at + (name ? name : 1);
        if (!name) continue;
        from = put_svg_number(p, to, from, first);
        put_sharpness(p, to, from);
    }
    qkv__put(p, to, from, (size_t)(end - from));
}

void qkv__svg_finish(qkv__picture *p)
{
    qkv__bytes whole = { 0 };
    qkv__put(p, &p->file, "", 1);
    if (p->status) return;
    const char *text = (const char *)p->file.data, *end = g_strrstr(text, "</svg>");
    if (!end) {
        p->status = qkv__fail(QKV_FAILURE, "%s: cairo gave an SVG without an end", p->call);
        return;
    }
    put_drawing(p, &whole, text, end);
    put_svg_text(p, &whole, "<g fill-opacity=\"0\" font-family=\"sans-serif\">\n");
    qkv__put(p, &whole, p->layer.data, p->layer.size);
    put_svg_text(p, &whole, "</g>\n</svg>\n");
    qkv__bytes_free(&p->file);
    p->file = whole;
}
