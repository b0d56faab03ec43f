/* picture.c: the surface of a picture, and its way into a file. */
#include "view.h"

#include <qkv/unstable/util.h>
#include "picture.h"

#include "svg.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

enum {
    SHARP_SIDE = 1500, /* a PNG has two pixels a point up to here, one above */
    NOTE_SIZE = 11,
    MARGIN = 12
};

/* One font map serves all threads, one after the other: it keeps the fonts it has read. */
static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;
static PangoFontMap *font_map;

/* ---- what is said ---- */

static qkv_status find_format(const char *call, const char *path, qkv__format *format)
{
    static const char *const endings[] = { ".png", ".svg", ".pdf" };
    if (!path) return qkv__fail(QKV_USAGE, "%s: there is no path to write to", call);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *ending = strrchr(name, '.');
    for (int i = 0; ending && ending > name && i < 3; i++)
        if (!strcasecmp(ending, endings[i])) return *format = (qkv__format)i, QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED, "%.600s: the name of a picture ends with .png, .svg or .pdf", path);
}

static void keep_status(qkv__picture *p, cairo_status_t status)
{
    if (p->status || !status) return;
    if (status == CAIRO_STATUS_NO_MEMORY) p->status = qkv__fail(QKV_MEMORY, "%s: out of memory while drawing", p->call);
    else p->status = qkv__fail(QKV_FAILURE, "%s: cannot draw: %s", p->call, cairo_status_to_string(status));
}

/* ---- bytes ---- */

void qkv__put(qkv__picture *p, qkv__bytes *to, const void *bytes, size_t size)
{
    if (!p->status) p->status = qkv__grow((void **)&to->data, &to->capacity, to->size + size);
    if (p->status) return;
    if (size) memcpy(to->data + to->size, bytes, size);
    to->size += size;
}

static cairo_status_t take_bytes(void *to, const unsigned char *bytes, unsigned size)
{
    qkv__picture *p = to;
    qkv__put(p, &p->file, bytes, size);
    return p->status ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

/* ---- shapes ---- */

void qkv__set_colour(qkv__picture *p, uint32_t colour)
{
    cairo_set_source_rgb(p->cr, (colour >> 16) / 255.0, (colour >> 8 & 255) / 255.0, (colour & 255) / 255.0);
}

void qkv__fill_box(qkv__picture *p, double x, double y, double width, double height, uint32_t colour)
{
    qkv__set_colour(p, colour);
    cairo_rectangle(p->cr, x, y, width, height);
    cairo_fill(p->cr);
}

void qkv__draw_line(qkv__picture *p, double x0, double y0, double x1, double y1, double thick, uint32_t colour)
{
    qkv__note_area(p, QKV__AREA_LINE, fmin(x0, x1), fmin(y0, y1), fabs(x1 - x0), fabs(y1 - y0));
    qkv__set_colour(p, colour);
    cairo_set_line_width(p->cr, thick);
    cairo_move_to(p->cr, x0, y0);
    cairo_line_to(p->cr, x1, y1);
    cairo_stroke(p->cr);
}

void qkv__draw_pixels(qkv__picture *p, uint32_t *pixels, int64_t across, int64_t down, double x, double y, double box_width,
                      double box_height)
{
    cairo_surface_t *image = cairo_image_surface_create_for_data((unsigned char *)pixels, CAIRO_FORMAT_RGB24, (int)across,
                                                                 (int)down, (int)across * 4);
    p->pixels_across = across;
    p->pixels_down = down;
    cairo_save(p->cr);
    cairo_translate(p->cr, x, y);
    cairo_scale(p->cr, box_width, box_height);
    cairo_set_source_surface(p->cr, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(p->cr), CAIRO_FILTER_NEAREST);
    cairo_rectangle(p->cr, 0, 0, (double)across, (double)down);
    cairo_fill(p->cr);
    cairo_restore(p->cr);
    cairo_surface_finish(image); /* what PDF still needs of it is copied now: the pixels are the caller's */
    cairo_surface_destroy(image);
}

/* ---- numbers ---- */

double qkv__round_step(double span, int n)
{
    double power = pow(10, floor(log10(span / n)));
    if (!(power > 0)) return span > 0 ? span : 1;
    for (int i = 0; i < 3; i++) {
        double step = power * (double[]){ 1, 2, 5 }[i];
        if (span / step <= n * (1 + 1e-9)) return step;
    }
    return power * 10;
}

const char *qkv__number_text(char text[QKV__NUMBER_BYTES], const char *format, double x)
{
    if (!isfinite(x)) return strcpy(text, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    g_ascii_formatd(text, QKV__NUMBER_BYTES, format, x);
    if (*text == '-' && !text[1 + strspn(text + 1, "0.")]) memmove(text, text + 1, strlen(text));
    return text;
}

const char *qkv__mark_text(char text[QKV__NUMBER_BYTES], double x, double step)
{
    char format[] = "%.0f";
    double decimals = ceil(-log10(step) - 1e-9);
    if (fabs(x) < step / 1000) x = 0;
    if (!(decimals <= 5) || fabs(x) >= 1e6) return qkv__number_text(text, "%.4g", x);
    if (decimals > 0) format[2] = (char)('0' + (int)decimals);
    return qkv__number_text(text, format, x);
}

/* ---- from a drawing to a file ---- */

static void open_fonts(qkv__picture *p)
{
    if (!font_map) font_map = pango_cairo_font_map_new();
    p->fonts = pango_font_map_create_context(font_map);
    cairo_font_options_t *options = cairo_font_options_create(); /* not the desktop's: the same picture everywhere */
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(p->fonts, options);
    cairo_font_options_destroy(options);
    pango_context_set_round_glyph_positions(p->fonts, FALSE);
    pango_context_set_language(p->fonts, pango_language_from_string("en"));
    if (qkv__is_missing(p, 'a'))
        p->status = qkv__fail(QKV_UNSUPPORTED,
                              "%s: there is no font on this machine: install one, such as Debian's "
                              "fonts-dejavu-core",
                              p->call);
}

static void sketch(qkv__picture *p, qkv__drawing *draw, const void *what)
{
    cairo_surface_t *nothing = cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1);
    p->is_sketch = true;
    p->cr = cairo_create(nothing);
    draw(p, what);
    cairo_destroy(p->cr);
    cairo_surface_destroy(nothing);
    p->is_sketch = false;
}

static void draw_all(qkv__picture *p, qkv__drawing *draw, const void *what, double height)
{
    char note[1024];
    qkv__fill_box(p, 0, 0, p->width, height, 0xffffff);
    draw(p, what);
    if (qkv__missing_note(p, note, sizeof note))
        qkv__label_draw(p, &(qkv__label){ .text = note, .size = NOTE_SIZE, .colour = 0xb00020 }, MARGIN,
                        height - MARGIN - NOTE_SIZE / 2.0);
}

/* The note needs a place of its own under the drawing. */
static double room_for_note(qkv__picture *p)
{
    char note[1024];
    double width, height;
    if (!qkv__missing_note(p, note, sizeof note)) return 0;
    qkv__label_size(p, &(qkv__label){ .text = note, .size = NOTE_SIZE }, &width, &height);
    p->width = fmax(p->width, ceil(width) + 2 * MARGIN);
    return ceil(height) + MARGIN;
}

static cairo_surface_t *make_surface(qkv__picture *p, double width, double height, double scale, uint32_t *pixels)
{
    cairo_surface_t *s;
    if (p->format == QKV__SVG) {
        s = cairo_svg_surface_create_for_stream(take_bytes, p, width, height);
    } else if (p->format == QKV__PDF) {
        s = cairo_pdf_surface_create_for_stream(take_bytes, p, width, height);
        cairo_pdf_surface_set_metadata(s, CAIRO_PDF_METADATA_CREATE_DATE, ""); /* the same picture gives the same bytes */
    } else {
        int across = (int)(width * scale), down = (int)(height * scale);
        s = cairo_image_surface_create_for_data((unsigned char *)pixels, CAIRO_FORMAT_RGB24, across, down, across * 4);
        cairo_surface_set_device_scale(s, scale, scale);
    }
    return s;
}

static void draw_for_good(qkv__picture *p, qkv__drawing *draw, const void *what, uint32_t *pixels, double height, double scale)
{
    cairo_surface_t *s = make_surface(p, p->width, height, scale, pixels);
    p->cr = cairo_create(s);
    draw_all(p, draw, what, height);
    keep_status(p, cairo_status(p->cr));
    cairo_destroy(p->cr);
    if (!p->status && p->format == QKV__PNG) keep_status(p, cairo_surface_write_to_png_stream(s, take_bytes, p));
    cairo_surface_finish(s);
    keep_status(p, cairo_surface_status(s));
    cairo_surface_destroy(s);
    if (!p->status && p->format == QKV__SVG) qkv__svg_finish(p);
}

static void draw_file(qkv__picture *p, qkv__drawing *draw, const void *what)
{
    sketch(p, draw, what);
    double height = p->status ? 0 : ceil(p->height) + room_for_note(p);
    double wanted_width = p->width = ceil(p->width);
    if (p->status) return;
    if (!(wanted_width <= QKV_PICTURE_SIDE && height <= QKV_PICTURE_SIDE)) {
        p->status = qkv__fail(QKV_LIMIT, "%s: the picture would have %.0f x %.0f points, more than %d on a side", p->call,
                              wanted_width, height, QKV_PICTURE_SIDE);
        return;
    }
    double scale = fmax(wanted_width, height) <= SHARP_SIDE ? 2 : 1;
    size_t bytes = p->format == QKV__PNG ? (size_t)(wanted_width * scale) * (size_t)(height * scale) * sizeof(uint32_t) : 0;
    uint32_t *pixels = bytes ? qkv__alloc_zero(bytes) : NULL;
    if (bytes && !pixels) p->status = QKV_MEMORY;
    else draw_for_good(p, draw, what, pixels, height, scale);
    qkv__release(pixels, bytes);
}

qkv_status qkv__picture_write(const char *call, const char *path, qkv__drawing *draw, const void *what)
{
    qkv__picture p = { .call = call };
    qkv_status status = find_format(call, path, &p.format);
    if (status) return status;
    pthread_mutex_lock(&drawing);
    open_fonts(&p);
    if (!p.status) draw_file(&p, draw, what);
    g_object_unref(p.fonts);
    if (!p.status) p.status = qkv_file_write(path, p.file.data, p.file.size);
    pthread_mutex_unlock(&drawing);
    qkv__bytes_free(&p.file);
    qkv__bytes_free(&p.layer);
    qkv__bytes_free(&p.label);
    return p.status;
}

void qkv__note_area(qkv__picture *p, qkv__area_kind kind, double x, double y, double width, double height)
{
    if (!p->areas || p->areas->n++ >= p->areas->most) return;
    p->areas->at[p->areas->n - 1] = (qkv__area){ kind, x, y, width, height };
}

qkv_status qkv__picture_areas(qkv__drawing *draw, const void *what, qkv__areas *out)
{
    qkv__picture p = { .call = "areas", .areas = out, .format = QKV__SVG };
    pthread_mutex_lock(&drawing);
    open_fonts(&p);
    if (!p.status) sketch(&p, draw, what);
    g_object_unref(p.fonts);
    pthread_mutex_unlock(&drawing);
    qkv__bytes_free(&p.label);
    out->width = p.width;
    out->height = p.height;
    return p.status;
}
