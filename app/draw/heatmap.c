/* heatmap.c: numbers as coloured cells, with the names of rows and columns. */
#include "view.h"
#include "names.h"

#include "../term/translator.h"
#include "../../src/base/options.h"
#include "../../src/base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MARGIN = 12,
    TITLE = 26, /* heights of lines over the maps */
    MAP_TITLE = 21,
    AXIS = 21,
    SPREAD = 720,        /* cells become smaller once the map is so large, */
    LARGEST_CELL = 52,   /* from this */
    NAMED_SPREAD = 3000, /* to QKV__NAMED_CELL, and on, down to 1, once the map is so large; */
    PLAIN_SPREAD = 1024, /* this without names */
    GRID_CELL = 28,      /* the largest of several maps */
    GRID_WIDEST = 6000,  /* their cells have room for names as long as the picture is no larger */
    HATCH = 6,           /* points between two lines of hatching */
    NOTE = 18
};
enum { HIDDEN = 0xf4f4f4, HATCHING = 0xa8a8a8 };
static const char call[] = "heatmap";

typedef struct layout {
    const qkv_heatmap *maps;
    int64_t n, across, down;
    const qkv_heatmap_opts *o;
    float low, high;
    qkv__side rows, columns;
    double scale; /* of letters that are not names */
    double map_width, map_height, map_title;
    double left, top; /* of the first map */
    double stride_x, stride_y;
} layout;

/* ---- what is asked for ---- */

static qkv_status check_names(const char *what, const char *const *names, int64_t n)
{
    for (int64_t i = 0; names && i < n; i++) {
        if (!names[i]) return qkv__fail(QKV_USAGE, "%s: %s %lld has no name", call, what, (long long)i);
        if (!qkv__is_label(names[i]))
            return qkv__fail(QKV_USAGE, "%s: the name of %s %lld is not UTF-8", call, what, (long long)i);
    }
    return QKV_OK;
}

static qkv_status check_sizes(int64_t n, const qkv_heatmap_opts *o)
{
    if (n < 1 || o->rows < 1 || o->columns < 1)
        return qkv__fail(QKV_USAGE, "%s: %lld maps of %lld x %lld, expected at least 1 of each", call, (long long)n,
                         (long long)o->rows, (long long)o->columns);
    if (n > QKV_PICTURE_SIDE || o->rows > QKV_PICTURE_SIDE || o->columns > QKV_PICTURE_SIDE)
        return qkv__fail(QKV_LIMIT, "%s: %lld maps of %lld x %lld, a picture has room for %d on a side", call, (long long)n,
                         (long long)o->rows, (long long)o->columns, QKV_PICTURE_SIDE);
    if (o->across < 0) return qkv__fail(QKV_USAGE, "%s: %d maps side by side", call, o->across);
    return QKV_OK;
}

static qkv_status check_maps(const qkv_heatmap *maps, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!maps[i].values) return qkv__fail(QKV_USAGE, "%s: map %lld has no values", call, (long long)i);
        if (!qkv__is_label(maps[i].title))
            return qkv__fail(QKV_USAGE, "%s: the title of map %lld is not UTF-8", call, (long long)i);
    }
    return QKV_OK;
}

static qkv_status check_heatmaps(const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *o)
{
    if (!maps || !o) return qkv__fail(QKV_USAGE, "%s: there are no %s", call, maps ? "options" : "maps");
    qkv_status status = check_sizes(n, o);
    if (!status) status = check_maps(maps, n);
    if (!status) status = check_names("row", o->row_names, o->rows);
    if (!status) status = check_names("column", o->column_names, o->columns);
    if (!status) status = qkv__check_label(call, "the title", o->title);
    if (!status) status = qkv__check_label(call, "the name of the rows", o->row_axis);
    if (!status) status = qkv__check_label(call, "the name of the columns", o->column_axis);
    if (!status) status = qkv__check_label(call, "the name of what is hidden", o->hidden_name);
    if (!status) status = qkv__check_label(call, "the name of the colours", o->bar_name);
    if (!status) status = qkv__check_label(call, "the note", o->note);
    if (status) return status;
    if (o->colours != QKV_COLOURS_VIRIDIS && o->colours != QKV_COLOURS_RED_BLUE)
        return qkv__fail(QKV_USAGE, "%s: there are no colours %d", call, (int)o->colours);
    if ((o->low != 0 || o->high != 0) && !(isfinite(o->low) && isfinite(o->high) && o->low < o->high))
        return qkv__fail(QKV_USAGE, "%s: colours from %g to %g", call, (double)o->low, (double)o->high);
    return QKV_OK;
}

static float largest(const layout *l, bool of_size)
{
    float most = 0;
    for (int64_t m = 0; m < l->n; m++)
        for (int64_t i = 0; i < l->o->rows * l->o->columns; i++) {
            float x = of_size ? fabsf(l->maps[m].values[i]) : l->maps[m].values[i];
            if (isfinite(x) && x > most) most = x;
        }
    return most > 0 ? most : 1;
}

static void choose_range(layout *l)
{
    bool is_signed = l->o->colours == QKV_COLOURS_RED_BLUE;
    l->low = l->o->low;
    l->high = l->o->high;
    if (l->low != 0 || l->high != 0) return;
    l->high = largest(l, is_signed);
    if (is_signed) l->low = -l->high;
}

/* ---- how large ---- */

static double cell_of(int64_t n, bool is_grid, bool is_named, double spread)
{
    double cell = floor(spread / (double)n);
    if (!is_grid)
        cell = fmax(cell, is_named ? fmin(floor(NAMED_SPREAD / (double)n), QKV__NAMED_CELL) : floor(PLAIN_SPREAD / (double)n));
    return fmin(fmax(cell, 1), is_grid ? GRID_CELL : LARGEST_CELL);
}

/* Whether the cells of several maps can be large enough for names without making too large a picture. */
static bool fits_names(const layout *l)
{
    return l->o->row_names && l->o->column_names && l->across * l->o->columns * QKV__NAMED_CELL <= GRID_WIDEST &&
           l->down * l->o->rows * QKV__NAMED_CELL <= GRID_WIDEST;
}

/* Cells are squares unless that makes a strip of the map. */
static void choose_cells(layout *l)
{
    const qkv_heatmap_opts *o = l->o;
    bool is_grid = l->n > 1;
    double spread = is_grid ? fmin(fmax(1100 / (double)l->across, 120), 300) : SPREAD;
    double w = cell_of(o->columns, is_grid, o->column_names != NULL, spread);
    double h = cell_of(o->rows, is_grid, o->row_names != NULL, spread);
    if (is_grid && fits_names(l)) w = fmax(w, QKV__NAMED_CELL), h = fmax(h, QKV__NAMED_CELL);
    double smaller = fmin(w, h), larger = smaller;
    if (qkv__max(o->rows, o->columns) / qkv__min(o->rows, o->columns) >= 3) larger = fmin(fmax(w, h), smaller * 4);
    l->columns.cell = w <= h ? smaller : larger;
    l->rows.cell = w <= h ? larger : smaller;
    l->map_width = l->columns.cell * (double)o->columns;
    l->map_height = l->rows.cell * (double)o->rows;
}

/* About as many across as down, or a little more where that leaves no hole. */
static void choose_grid(layout *l)
{
    int64_t root = (int64_t)ceil(sqrt((double)l->n) - 1e-9), across = root;
    while (across <= root + root / 2 && l->n % across) across++;
    if (l->n % across) across = root;
    l->across = qkv__min(l->o->across ? l->o->across : across, l->n);
    l->down = qkv__ceil_div(l->n, l->across);
}

/* ---- cells ---- */

static bool has_boxes(const layout *l)
{
    return fmin(l->rows.cell, l->columns.cell) >= QKV__NAMED_CELL && l->o->rows * l->o->columns * l->n <= 5000;
}

static bool is_hidden(const layout *l, int64_t i) { return l->o->hidden && l->o->hidden[i]; }

static uint32_t colour_at(const layout *l, const float *values, int64_t i)
{
    if (is_hidden(l, i)) return HIDDEN;
    return qkv_colour_of(l->o->colours, l->low, l->high, values[i]);
}

static void draw_boxes(qkv__picture *p, const layout *l, const float *values, double x, double y)
{
    for (int64_t i = 0; i < l->o->rows; i++)
        for (int64_t j = 0; j < l->o->columns; j++)
            qkv__fill_box(p, x + (double)j * l->columns.cell, y + (double)i * l->rows.cell, l->columns.cell - 1,
                          l->rows.cell - 1, colour_at(l, values, i * l->o->columns + j));
}

static void draw_image(qkv__picture *p, const layout *l, const float *values, double x, double y)
{
    int64_t n = l->o->rows * l->o->columns;
    uint32_t *pixels = qkv__alloc((size_t)n * sizeof *pixels);
    if (!pixels) {
        p->status = QKV_MEMORY;
        return;
    }
    for (int64_t i = 0; i < n; i++) pixels[i] = colour_at(l, values, i);
    qkv__draw_pixels(p, pixels, l->o->columns, l->o->rows, x, y, l->columns.cell, l->rows.cell);
    qkv__release(pixels, (size_t)n * sizeof *pixels);
    qkv__set_colour(p, QKV__FRAME);
    cairo_set_line_width(p->cr, 1);
    cairo_rectangle(p->cr, x - 0.5, y - 0.5, l->map_width + 1, l->map_height + 1);
    cairo_stroke(p->cr);
}

/* Lines from the lower left to the upper right, inside what was clipped. */
static void draw_hatching(qkv__picture *p, double x, double y, double width, double height)
{
    qkv__set_colour(p, HATCHING);
    cairo_set_line_width(p->cr, 1);
    for (double from = x - height; from < x + width; from += HATCH) {
        cairo_move_to(p->cr, from, y + height);
        cairo_line_to(p->cr, from + height, y);
    }
    cairo_stroke(p->cr);
}

/* Cells of one row that are hidden and lie side by side are one box. */
static void hatch_hidden(qkv__picture *p, const layout *l, double x, double y)
{
    double w = l->columns.cell, h = l->rows.cell, edge = has_boxes(l) ? 1 : 0;
    if (!l->o->hidden) return;
    cairo_save(p->cr);
    cairo_new_path(p->cr);
    for (int64_t i = 0; i < l->o->rows; i++)
        for (int64_t j = 0, to; j < l->o->columns; j = to + 1) {
            for (to = j; to < l->o->columns && is_hidden(l, i * l->o->columns + to);) to++;
            if (to > j) cairo_rectangle(p->cr, x + (double)j * w, y + (double)i * h, (double)(to - j) * w - edge, h - edge);
        }
    cairo_clip(p->cr);
    draw_hatching(p, x, y, l->map_width, l->map_height);
    cairo_restore(p->cr);
}

/* ---- numbers in the cells ---- */

static const char *value_format(const layout *l)
{
    double most = fmax(fabs((double)l->low), fabs((double)l->high));
    return most >= 1e5 || most < 1e-3 ? "%.1e" : most >= 100 ? "%.0f" : most >= 10 ? "%.1f" : most < 0.05 ? "%.4f" : "%.2f";
}

/* Dark or light, whichever can be told from the colour more easily (the contrast of WCAG 2). */
static uint32_t ink_on(uint32_t colour)
{
    double light = 0;
    for (int i = 0; i < 3; i++) {
        double part = (colour >> (16 - 8 * i) & 255) / 255.0;
        light += (double[]){ 0.2126, 0.7152, 0.0722 }[i] * pow(part, 2.2);
    }
    return light > 0.179 ? QKV__INK : 0xffffff;
}

/* 0: they do not fit. */
static double value_size(qkv__picture *p, const layout *l)
{
    char text[QKV__NUMBER_BYTES], longest[QKV__NUMBER_BYTES] = "";
    double width, height;
    if (l->n > 1 || l->o->no_values || !has_boxes(l)) return 0;
    for (int64_t i = 0; i < l->o->rows * l->o->columns; i++)
        if (strlen(qkv__number_text(text, value_format(l), (double)l->maps[0].values[i])) > strlen(longest))
            strcpy(longest, text);
    for (char *c = longest; *c; c++) *c = *c >= '0' && *c <= '9' ? '0' : *c;
    qkv__label_size(p, &(qkv__label){ .text = longest, .size = 10 }, &width, &height);
    double size = fmin(fmin(12, 10 * (l->columns.cell - 4) / width), 0.55 * l->rows.cell);
    return size >= 7 ? size : 0;
}

static void draw_values(qkv__picture *p, const layout *l, double x, double y)
{
    char text[QKV__NUMBER_BYTES];
    double size = value_size(p, l);
    for (int64_t i = 0; size > 0 && i < l->o->rows * l->o->columns; i++) {
        if (is_hidden(l, i)) continue;
        qkv__label label = { .text = qkv__number_text(text, value_format(l), (double)l->maps[0].values[i]),
                             .size = size,
                             .place = 0.5,
                             .colour = ink_on(colour_at(l, l->maps[0].values, i)) };
        qkv__label_draw(p, &label, x + ((double)(i % l->o->columns) + 0.5) * l->columns.cell - 0.5,
                        y + ((double)(i / l->o->columns) + 0.5) * l->rows.cell - 0.5);
    }
}

/* ---- the colour bar ---- */

static void fill_bar(qkv__picture *p, const layout *l, double x, double y, double width, double height)
{
    cairo_pattern_t *colours = cairo_pattern_create_linear(0, y + height, 0, y);
    for (int i = 0; i <= 20; i++) {
        uint32_t c = qkv_colour(l->o->colours, i / 20.0);
        cairo_pattern_add_color_stop_rgb(colours, i / 20.0, (c >> 16) / 255.0, (c >> 8 & 255) / 255.0, (c & 255) / 255.0);
    }
    cairo_rectangle(p->cr, x, y, width, height);
    cairo_set_source(p->cr, colours);
    cairo_fill(p->cr);
    cairo_pattern_destroy(colours);
}

/* Gives how wide it is with its numbers. */
static double draw_bar(qkv__picture *p, const layout *l, double x, double y, double height)
{
    char text[QKV__NUMBER_BYTES];
    double low = (double)l->low, span = (double)l->high - low, width = 14 * l->scale, size = 11 * l->scale, widest = 0;
    double step = qkv__round_step(span, height < 120 * l->scale ? 3 : 6);
    fill_bar(p, l, x, y, width, height);
    for (double k = ceil(low / step - 1e-9); k * step <= (double)l->high + 1e-6 * step; k++) {
        qkv__label label = { .text = qkv__mark_text(text, k * step, step), .size = size, .colour = QKV__INK };
        double at = y + height * (1 - (k * step - low) / span), wide, high;
        qkv__draw_line(p, x + width, at, x + width + 4 * l->scale, at, l->scale, QKV__SOFT_INK);
        qkv__label_draw(p, &label, x + width + 6 * l->scale, at);
        qkv__label_size(p, &label, &wide, &high);
        widest = fmax(widest, wide);
    }
    return width + 6 * l->scale + widest;
}

/* What the colours mean, upwards beside their bar; gives how wide bar and name are. */
static double name_bar(qkv__picture *p, const layout *l, double x, double y, double height, double width)
{
    if (!l->o->bar_name) return width;
    double size = 12 * l->scale;
    qkv__label label = {
        .text = l->o->bar_name, .size = size, .turn = -90, .place = 0.5, .colour = QKV__SOFT_INK, .widest = height
    };
    qkv__label_draw(p, &label, x + width + size, y + height / 2);
    return width + 2 * size;
}

/* Under the bar: what hatching means. Gives how wide it is. */
static double draw_hidden_key(qkv__picture *p, const layout *l, double x, double y)
{
    if (!l->o->hidden) return 0;
    double side = 14 * l->scale, width, height;
    qkv__label label = { .text = l->o->hidden_name ? l->o->hidden_name : qkv__translated("masked"),
                         .size = 11 * l->scale,
                         .colour = QKV__INK };
    qkv__fill_box(p, x, y, side, side, HIDDEN);
    cairo_save(p->cr);
    cairo_rectangle(p->cr, x, y, side, side);
    cairo_clip(p->cr);
    draw_hatching(p, x, y, side, side);
    cairo_restore(p->cr);
    qkv__label_draw(p, &label, x + side + 6 * l->scale, y + side / 2);
    qkv__label_size(p, &label, &width, &height);
    p->height = fmax(p->height, y + side + MARGIN);
    return side + 6 * l->scale + width;
}

/* ---- under the maps ---- */

/* How often there is a name, where it is not at every cell; "" where all are there. */
static const char *step_note(const layout *l, char text[160])
{
    bool rows = l->rows.names && l->rows.step > 1, columns = l->columns.names && l->columns.step > 1;
    *text = '\0';
    if (rows && columns && l->rows.step == l->columns.step)
        snprintf(text, 160, qkv__translated("every %lldth name is written"), (long long)l->rows.step);
    else if (rows && columns)
        snprintf(text, 160, qkv__translated("every %lldth row name and every %lldth column name is written"),
                 (long long)l->rows.step, (long long)l->columns.step);
    else if (rows) snprintf(text, 160, qkv__translated("every %lldth row name is written"), (long long)l->rows.step);
    else if (columns) snprintf(text, 160, qkv__translated("every %lldth column name is written"), (long long)l->columns.step);
    return text;
}

static void draw_note(qkv__picture *p, const layout *l, const char *text)
{
    if (!text || !*text) return;
    qkv__label label = { .text = text, .size = 12 * l->scale, .colour = QKV__SOFT_INK, .widest = p->width - 2 * MARGIN };
    qkv__label_draw(p, &label, MARGIN, p->height + NOTE * l->scale / 2 - MARGIN / 2.0);
    p->height += NOTE * l->scale;
}

/* ---- all of it ---- */

/* Draws a label over the maps, in the middle of them or, when it is longer, from their left on. Gives how far it reaches. */
static double draw_over(qkv__picture *p, qkv__label label, double x, double y, double room)
{
    double width, height;
    qkv__label_size(p, &label, &width, &height);
    double start = width < room ? x + (room - width) / 2 : x;
    qkv__label_draw(p, &label, start, y);
    return start + width;
}

static void lay_out_heatmaps(qkv__picture *p, layout *l)
{
    const qkv_heatmap_opts *o = l->o;
    choose_grid(l);
    choose_cells(l);
    l->scale = fmin(fmax(fmax(l->map_width * (double)l->across, l->map_height * (double)l->down) / 1100, 1), 2.6);
    qkv__choose_column_names(p, &l->columns, l->scale, l->n > 1);
    if (l->rows.names && l->columns.names) l->rows.largest = l->columns.size; /* letters of one size on both sides */
    qkv__choose_row_names(p, &l->rows, l->scale, l->n > 1);
    if (l->rows.names && l->columns.names && l->rows.size < l->columns.size) {
        l->columns.largest = l->rows.size;
        qkv__choose_column_names(p, &l->columns, l->scale, l->n > 1);
    }
    bool has_titles = false;
    for (int64_t i = 0; i < l->n; i++) has_titles = has_titles || l->maps[i].title;
    l->map_title = has_titles ? MAP_TITLE * l->scale : 0;
    /* whole points, so that cells end where pixels do */
    l->left = ceil(MARGIN + (o->row_axis ? AXIS * l->scale : 0) + l->rows.room);
    l->top = ceil(MARGIN + (o->title ? TITLE * l->scale : 0) + (o->column_axis ? AXIS * l->scale : 0) + l->map_title +
                  l->columns.room);
    l->stride_x = ceil(l->map_width + 16 * l->scale);
    l->stride_y = ceil(l->map_height + fmax(l->map_title + 4, 16 * l->scale));
}

/* Smaller letters, as far as they can be read, before the text is cut. */
static void fit_label(qkv__picture *p, qkv__label *label, double room)
{
    double width, height;
    qkv__label_size(p, label, &width, &height);
    if (width > room) label->size = fmax(label->size * room / width * 0.99, 8);
    label->widest = room;
}

static void draw_map(qkv__picture *p, const layout *l, int64_t i)
{
    double x = l->left + (double)(i % l->across) * l->stride_x, y = l->top + (double)(i / l->across) * l->stride_y;
    bool is_highest = i < l->across, is_leftmost = i % l->across == 0;
    if (is_leftmost) qkv__draw_row_names(p, &l->rows, x, y);
    if (is_highest) qkv__draw_column_names(p, &l->columns, x, y);
    if (l->n > 1 && l->maps[i].title) {
        qkv__label label = { .text = l->maps[i].title, .size = 12 * l->scale, .colour = QKV__INK };
        fit_label(p, &label, l->map_width);
        draw_over(p, label, x, y - (is_highest ? l->columns.room : 4) - label.size * 0.7, l->map_width);
    }
    if (p->is_sketch) return;
    if (has_boxes(l)) draw_boxes(p, l, l->maps[i].values, x, y);
    else draw_image(p, l, l->maps[i].values, x, y);
    hatch_hidden(p, l, x, y);
}

/* One line over the maps, `height` high; *y goes on to the next. */
static void draw_heading(qkv__picture *p, const layout *l, qkv__label label, double *y, double height, double width)
{
    if (!label.text) return;
    label.widest = 900 * l->scale;
    p->width = fmax(p->width, draw_over(p, label, l->left, *y + height * l->scale / 2, width) + MARGIN);
    *y += height * l->scale;
}

static void draw_around(qkv__picture *p, const layout *l, double width, double height)
{
    double y = MARGIN, wide = 0, high;
    qkv__label title = { .text = l->o->title, .size = 16 * l->scale, .is_bold = true, .colour = QKV__INK };
    qkv__label map_title = { .text = l->n > 1 ? NULL : l->maps[0].title, .size = 14 * l->scale, .colour = QKV__INK };
    qkv__label axis = { .text = l->o->column_axis, .size = 13 * l->scale, .colour = QKV__SOFT_INK };
    draw_heading(p, l, title, &y, TITLE, width);
    draw_heading(p, l, map_title, &y, MAP_TITLE, width);
    draw_heading(p, l, axis, &y, AXIS, width);
    if ((axis.text = l->o->row_axis)) {
        axis.turn = -90;
        axis.place = 0.5;
        axis.widest = 900 * l->scale;
        qkv__label_size(p, &axis, &wide, &high);
        qkv__label_draw(p, &axis, MARGIN + 8 * l->scale, l->top + fmax(height, wide) / 2);
    }
    p->height = fmax(p->height, l->top + fmax(height, wide)) + MARGIN;
}

static void draw_heatmaps(qkv__picture *p, const void *what)
{
    layout l = *(const layout *)what;
    lay_out_heatmaps(p, &l);
    double width = l.stride_x * (double)(l.across - 1) + l.map_width, height = l.stride_y * (double)(l.down - 1) + l.map_height;
    double bar = fmin(fmax(height, 90), 300 * l.scale);
    p->width = l.left + width + fmax(l.columns.beyond, 0) + MARGIN;
    p->height = l.top + bar;
    if (p->status || !(p->width <= QKV_PICTURE_SIDE && l.top + height <= QKV_PICTURE_SIDE)) {
        p->height = l.top + height + MARGIN;
        return;
    }
    draw_around(p, &l, width, height);
    for (int64_t i = 0; i < l.n && !p->status; i++) draw_map(p, &l, i);
    draw_values(p, &l, l.left, l.top);
    double bar_x = l.left + width + 18 * l.scale, bar_width = draw_bar(p, &l, bar_x, l.top, bar);
    bar_width = name_bar(p, &l, bar_x, l.top, bar, bar_width);
    bar_width = fmax(bar_width, draw_hidden_key(p, &l, bar_x, l.top + bar + 14 * l.scale));
    p->width = fmax(p->width, bar_x + bar_width + MARGIN);
    char text[160];
    draw_note(p, &l, step_note(&l, text));
    draw_note(p, &l, l.o->note);
}

qkv_status qkv_picture_heatmaps(const char *path, const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *opts)
{
    qkv_heatmap_opts o;
    qkv_status status = QKV__READ_OPTIONS(&o, no_values, opts, call);
    if (!status) status = check_heatmaps(maps, n, opts ? &o : NULL);
    if (status) return status;
    layout l = { .maps = maps,
                 .n = n,
                 .o = &o,
                 .rows = { .names = o.row_names, .n = o.rows },
                 .columns = { .names = o.column_names, .n = o.columns } };
    choose_range(&l);
    return qkv__picture_write(call, path, draw_heatmaps, &l);
}
