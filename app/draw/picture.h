/* picture.h: a picture is drawn by one function, whatever the file. Sizes are in points, y goes down. */
#ifndef QKV_SRC_PICTURE_H
#define QKV_SRC_PICTURE_H

#include "../../src/base/file.h"

#include "text_label.h"
#include "view.h"

#include <pango/pangocairo.h>

enum { QKV__MISSING_MOST = 64 }; /* characters without a font that are counted */

enum { QKV__INK = 0x1a1a1a, QKV__SOFT_INK = 0x555555, QKV__FRAME = 0x999999 }; /* colours of text and lines */

typedef enum qkv__format { QKV__PNG, QKV__SVG, QKV__PDF } qkv__format;

/* Where a text, a box or a line is, for tests: no text may lie over another one, the edge of a box, or a line. */
typedef enum qkv__area_kind { QKV__AREA_TEXT, QKV__AREA_BOX, QKV__AREA_LINE } qkv__area_kind;
typedef struct qkv__area {
    qkv__area_kind kind;
    double x, y, width, height;
} qkv__area;
typedef struct qkv__areas {
    qkv__area *at;
    int n, most;          /* what is past the most is counted only */
    double width, height; /* of the picture */
} qkv__areas;

typedef struct qkv__picture {
    qkv__areas *areas; /* NULL: nobody wants to know */
    const char *call;  /* for sentences */
    qkv__format format;
    double width, height; /* the drawing sets them */
    bool is_sketch;       /* nothing is kept of it: only sizes, and characters without a font, count */
    cairo_t *cr;
    PangoContext *fonts;
    qkv_status status;                   /* the first error, whose sentence is kept; nothing is drawn after it */
    qkv__bytes file;                     /* what becomes the file */
    qkv__bytes layer;                    /* SVG: the text that can be selected */
    qkv__bytes label;                    /* the text at hand, as it is shown */
    gunichar missing[QKV__MISSING_MOST]; /* characters that no font has */
    int n_missing;
    int64_t pixels_across, pixels_down; /* of the last image */
} qkv__picture;

/* Draws and writes a file. draw() is called twice: for a sketch and for good; it sets the size each time. */
typedef void qkv__drawing(qkv__picture *p, const void *what);
qkv_status qkv__picture_write(const char *call, const char *path, qkv__drawing *draw, const void *what);

/* A sketch alone, to tell where its texts and boxes are. */
qkv_status qkv__picture_areas(qkv__drawing *draw, const void *what, qkv__areas *out);
void qkv__note_area(qkv__picture *p, qkv__area_kind kind, double x, double y, double width, double height);

/* Adds bytes; an error stays in p. */
void qkv__put(qkv__picture *p, qkv__bytes *to, const void *bytes, size_t size);

/* ---- text ---- */
typedef struct qkv__label {
    const char *text;
    double size;     /* of the letters, in points */
    double place;    /* 0: x is its left end, 0.5: its middle, 1: its right end; y is the middle of its height */
    double turn;     /* in degrees, clockwise, around (x, y) */
    double widest;   /* what is longer ends with an ellipsis; 0: any */
    uint32_t colour; /* 0xRRGGBB */
    bool is_bold;
    bool is_token;       /* without the space it starts with */
    bool is_stacked;     /* one character below the other, y is its lower end */
    bool has_subscripts; /* letters after _ are below the line, and without it: W_Q, d_k */
} qkv__label;
void qkv__label_draw(qkv__picture *p, const qkv__label *l, double x, double y);
void qkv__label_size(qkv__picture *p, const qkv__label *l, double *width, double *height);

/* Whether it can be written from top to bottom: nothing but wide characters. */
bool qkv__is_wide(const char *text);

/* Whether no font has the character. */
bool qkv__is_missing(const qkv__picture *p, gunichar c);

/* The note about characters without a font; false when there are none. */
bool qkv__missing_note(const qkv__picture *p, char *note, size_t room);

/* The Debian package of a font that has the character; NULL for private use, which means something in one font only. */
const char *qkv__font_package(gunichar c);

/* ---- shapes ---- */
void qkv__set_colour(qkv__picture *p, uint32_t colour);
void qkv__fill_box(qkv__picture *p, double x, double y, double width, double height, uint32_t colour);
void qkv__draw_line(qkv__picture *p, double x0, double y0, double x1, double y1, double thick, uint32_t colour);

/* pixels (down, across) as 0xRRGGBB, each drawn as a box of this size, sharp however large */
void qkv__draw_pixels(qkv__picture *p, uint32_t *pixels, int64_t across, int64_t down, double x, double y, double box_width,
                      double box_height);

/* ---- numbers ---- */

/* The smallest of 1, 2 and 5 times a power of ten that fits into span at most n times. */
double qkv__round_step(double span, int n);

/* A number by a format such as "%.2f", with a point in any locale and without the sign of zero. */
enum { QKV__NUMBER_BYTES = 32 };
const char *qkv__number_text(char text[QKV__NUMBER_BYTES], const char *format, double x);

/* The number at a mark of an axis with this step. */
const char *qkv__mark_text(char text[QKV__NUMBER_BYTES], double x, double step);

#endif
