/* label.c: text in a picture: white space made visible, and characters that no font has. */
#include "picture.h"

#include "svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FAINT = 0x9a9a9a,
    NAMED = 8,     /* characters without a font that the note names */
    LONGEST = 1000 /* characters that are laid out: more than any picture has room for */
};

/* ---- text as it is shown ---- */

static void put_character(qkv__picture *p, gunichar c)
{
    char bytes[6];
    qkv__put(p, &p->label, bytes, (size_t)g_unichar_to_utf8(c, bytes));
}

/* A mark that stands for white space. */
static void put_mark(qkv__picture *p, PangoAttrList *marks, gunichar c)
{
    PangoAttribute *faint = pango_attr_foreground_new((FAINT >> 16) * 257, (FAINT >> 8 & 255) * 257, (FAINT & 255) * 257);
    faint->start_index = (guint)p->label.size;
    put_character(p, c);
    faint->end_index = (guint)p->label.size;
    pango_attr_list_insert(marks, faint);
}

/* Past the last character that is no white space. */
static const char *end_of_words(const char *text)
{
    const char *end = text;
    for (; *text; text = g_utf8_next_char(text))
        if (!g_unichar_isspace(g_utf8_get_char(text))) end = g_utf8_next_char(text);
    return end;
}

bool qkv__is_missing(const qkv__picture *p, gunichar c)
{
    char bytes[6];
    PangoLayout *l = pango_layout_new(p->fonts);
    pango_layout_set_text(l, bytes, g_unichar_to_utf8(c, bytes));
    bool missing = pango_layout_get_unknown_glyphs_count(l) > 0;
    g_object_unref(l);
    return missing;
}

static void remember_missing(qkv__picture *p, gunichar c)
{
    for (int i = 0; i < p->n_missing; i++)
        if (p->missing[i] == c) return;
    if (p->n_missing < QKV__MISSING_MOST) p->missing[p->n_missing++] = c;
}

static void put_code(qkv__picture *p, gunichar c)
{
    char code[16];
    if (p->is_sketch) remember_missing(p, c);
    qkv__put(p, &p->label, code, (size_t)snprintf(code, sizeof code, "%sU+%04X", p->label.size ? " " : "", c));
}

/* Letters and digits after _ become a subscript; gives their end, or text where none begins. */
static const char *put_subscript(qkv__picture *p, PangoAttrList *marks, const qkv__label *l, const char *text)
{
    guint from = (guint)p->label.size;
    const char *end = text + 1;
    if (!l->has_subscripts || *text != '_' || !g_ascii_isalnum(*end)) return text;
    for (; g_ascii_isalnum(*end); end++) put_character(p, (gunichar)*end);
    PangoAttribute *const both[] = { pango_attr_scale_new(0.72), pango_attr_rise_new((int)(-0.22 * l->size * PANGO_SCALE)) };
    for (int i = 0; i < 2; i++) {
        both[i]->start_index = from;
        both[i]->end_index = (guint)p->label.size;
        pango_attr_list_insert(marks, both[i]);
    }
    return end;
}

/* White space is seen where it would not be: at the ends, and where it breaks a line. */
static void put_shown(qkv__picture *p, PangoAttrList *marks, const qkv__label *l, bool as_codes)
{
    const char *text = l->text, *end = end_of_words(text);
    bool started = false;
    if (l->is_token && *text == ' ' && text[1]) text++;
    for (int n = 0; *text && n < LONGEST; text = g_utf8_next_char(text), n++) {
        gunichar c = g_utf8_get_char(text);
        bool at_end = l->is_token && (!started || text >= end);
        const char *after = put_subscript(p, marks, l, text);
        if (after != text) {
            text = after - 1; /* ASCII: the loop goes on to what follows */
            continue;
        }
        if (c == '\n') put_mark(p, marks, 0x21B5);
        else if (c == '\t') put_mark(p, marks, 0x21E5);
        else if (c == ' ' && at_end) put_mark(p, marks, 0x2423);
        else if (g_unichar_iscntrl(c) || c == 0x2028 || c == 0x2029) put_mark(p, marks, 0xB7);
        else if (as_codes && qkv__is_missing(p, c)) put_code(p, c);
        else put_character(p, c);
        if (!g_unichar_isspace(c)) started = true;
        if (l->is_stacked && *g_utf8_next_char(text)) put_character(p, '\n');
    }
    qkv__put(p, &p->label, "", 1);
}

/* Emoji stand alone only: what follows one may belong to it. */
bool qkv__is_wide(const char *text)
{
    if (*text == ' ') text++;
    bool is_single = *text && !*g_utf8_next_char(text);
    for (; *text; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (!g_unichar_iswide(c) || (!is_single && c >= 0x1F000 && c < 0x20000)) return false;
    }
    return true;
}

/* ---- characters without a font ---- */

typedef struct script {
    gunichar first, last;
    const char *package;
} script;

const char *qkv__font_package(gunichar c)
{
    static const script scripts[] = {
        { 0x2600, 0x27BF, "fonts-noto-color-emoji" },
        { 0x2E80, 0x9FFF, "fonts-wqy-microhei" },
        { 0xAC00, 0xD7A3, "fonts-noto-cjk" },
        { 0xE000, 0xF8FF, NULL },
        { 0xF900, 0xFAFF, "fonts-noto-cjk" },
        { 0xFF00, 0xFFEF, "fonts-wqy-microhei" },
        { 0x1F000, 0x1FAFF, "fonts-noto-color-emoji" },
        { 0x20000, 0x3FFFF, "fonts-noto-cjk" },
        { 0xF0000, 0x10FFFF, NULL },
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (c >= scripts[i].first && c <= scripts[i].last) return scripts[i].package;
    return "fonts-noto-core";
}

static void put_packages(const qkv__picture *p, char *note, size_t room, size_t used)
{
    const char *before = ": install a font that has it, such as Debian's ";
    if (p->n_missing > 1) before = ": install fonts that have them, such as Debian's ";
    size_t first = used;
    for (int i = 0; i < p->n_missing; i++) {
        const char *package = qkv__font_package(p->missing[i]);
        if (!package || strstr(note + first, package)) continue;
        used += (size_t)snprintf(note + used, room - used, "%s%s", before, package);
        before = ", ";
    }
}

bool qkv__missing_note(const qkv__picture *p, char *note, size_t room)
{
    if (!p->n_missing) return false;
    size_t used = (size_t)snprintf(note, room, "No font here can draw");
    for (int i = 0; i < p->n_missing && i < NAMED; i++)
        used += (size_t)snprintf(note + used, room - used, "%s U+%04X%s", i ? "," : "", p->missing[i],
                                 qkv__font_package(p->missing[i]) ? "" : " (private use)");
    if (p->n_missing > NAMED) used += (size_t)snprintf(note + used, room - used, " and %d more", p->n_missing - NAMED);
    put_packages(p, note, room, used);
    return true;
}

/* ---- layout ---- */

static void set_text(qkv__picture *p, PangoLayout *layout, const qkv__label *l, bool as_codes)
{
    PangoAttrList *marks = pango_attr_list_new();
    p->label.size = 0;
    put_shown(p, marks, l, as_codes);
    if (!p->status) {
        pango_layout_set_attributes(layout, marks);
        pango_layout_set_text(layout, (const char *)p->label.data, -1);
    }
    pango_attr_list_unref(marks);
}

/* The label ready to draw; free it with g_object_unref. p->label holds its text with every character. */
static PangoLayout *lay_out_label(qkv__picture *p, const qkv__label *l)
{
    PangoLayout *layout = pango_layout_new(p->fonts);
    PangoFontDescription *font = pango_font_description_from_string(l->is_bold ? "sans-serif bold" : "sans-serif");
    pango_font_description_set_absolute_size(font, l->size * PANGO_SCALE);
    pango_layout_set_font_description(layout, font);
    pango_font_description_free(font);
    pango_layout_set_auto_dir(layout, FALSE);
    if (l->widest > 0 && !l->is_stacked) {
        pango_layout_set_width(layout, (int)(l->widest * PANGO_SCALE));
        pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
        pango_layout_set_single_paragraph_mode(layout, TRUE);
    }
    if (l->is_stacked) {
        pango_layout_set_alignment(layout, PANGO_ALIGN_CENTER);
        pango_layout_set_line_spacing(layout, 0.9f);
    }
    set_text(p, layout, l, false);
    if (!p->status && pango_layout_get_unknown_glyphs_count(layout) > 0) set_text(p, layout, l, true);
    return layout;
}

/* Where the text itself is: a layout of limited width is as wide as the limit, and its text may stand on its right. */
static void measure_layout(PangoLayout *layout, double *x, double *width, double *height)
{
    PangoRectangle box;
    pango_layout_get_extents(layout, NULL, &box);
    *x = (double)box.x / PANGO_SCALE;
    *width = (double)box.width / PANGO_SCALE;
    *height = (double)box.height / PANGO_SCALE;
}

void qkv__label_size(qkv__picture *p, const qkv__label *l, double *width, double *height)
{
    double x;
    PangoLayout *layout = lay_out_label(p, l);
    measure_layout(layout, &x, width, height);
    g_object_unref(layout);
}

void qkv__label_draw(qkv__picture *p, const qkv__label *l, double x, double y)
{
    if (p->status || !*l->text) return;
    double left, width, height;
    PangoLayout *layout = lay_out_label(p, l);
    measure_layout(layout, &left, &width, &height);
    if (l->turn == 0)
        qkv__note_area(p, QKV__AREA_TEXT, x - width * l->place, l->is_stacked ? y - height : y - height / 2, width, height);
    if (!p->status && !p->is_sketch) {
        double top = l->is_stacked ? -height : -height / 2, start = -width * l->place;
        double baseline = top + (double)pango_layout_get_baseline(layout) / PANGO_SCALE;
        cairo_save(p->cr);
        cairo_translate(p->cr, x, y);
        cairo_rotate(p->cr, l->turn * G_PI / 180);
        cairo_move_to(p->cr, start - left, top);
        qkv__set_colour(p, l->colour);
        pango_cairo_show_layout(p->cr, layout);
        cairo_restore(p->cr);
        if (p->format == QKV__SVG) qkv__svg_text(p, l, &(qkv__svg_place){ x, y, start, baseline, width });
    }
    g_object_unref(layout);
}
