/* curves.c: curves over one pair of axes. */
#include "view.h"
#include "picture.h"

#include "../../src/base/options.h"

#include <math.h>
#include <string.h>

enum { MARGIN = 12, WIDTH = 640, HEIGHT = 380, MARK = 11, LINE = 20, LEGEND_MOST = 300 };
enum { GRID = 0xe4e4e4 };
static const char call[] = "curves";

/* Okabe and Ito's colours, which everyone can tell apart; after the last, they come again with dashes. */
static const uint32_t colours[] = { 0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9, 0x000000 };
enum { COLOURS = sizeof colours / sizeof *colours };

/* From numbers to points. On a logarithmic axis low, high and step are powers of ten. */
typedef struct axis {
    bool is_log;
    double low, high, step;
    double from, to;
} axis;

typedef struct drawing {
    const qkv_curve *curves;
    int64_t n;
    const qkv_curve_opts *o;
    axis x, y;
} drawing;

/* ---- axes ---- */

/* Beyond this, the difference of two numbers might not be one. */
static bool counts(const axis *a, double value) { return fabs(value) <= 1e300 && !(a->is_log && !(value > 0)); }

static double on_axis(const axis *a, double value) { return a->is_log ? log10(value) : value; }

static double place_on_axis(const axis *a, double value)
{
    return a->from + (a->to - a->from) * ((on_axis(a, value) - a->low) / (a->high - a->low));
}

static bool is_shown(const drawing *d, const qkv_curve *c, int64_t i)
{
    return counts(&d->x, c->x[i]) && counts(&d->y, c->y[i]);
}

static void widen(axis *a, double value)
{
    a->low = fmin(a->low, on_axis(a, value));
    a->high = fmax(a->high, on_axis(a, value));
}

static void choose_marks(axis *a, double room, int n)
{
    if (!(a->low <= a->high)) a->low = 0, a->high = 1;
    double span = a->high - a->low, nothing = fmax(fabs(a->high) * 1e-9, 1e-300);
    if (!(span > nothing)) {
        double around = a->high != 0 && !a->is_log ? fabs(a->high) / 2 : 0.5;
        a->low -= around;
        a->high += around;
    } else {
        a->low -= span * room;
        a->high += span * room;
    }
    a->step = qkv__round_step(a->high - a->low, n);
    if (a->is_log && a->high - a->low >= 1.5) a->step = fmax(1, ceil(a->step));
}

static void choose_axes(drawing *d)
{
    d->x = (axis){ .is_log = d->o->log_x != 0, .low = INFINITY, .high = -INFINITY };
    d->y = (axis){ .is_log = d->o->log_y != 0, .low = INFINITY, .high = -INFINITY };
    for (int64_t c = 0; c < d->n; c++)
        for (int64_t i = 0; i < d->curves[c].n; i++)
            if (is_shown(d, &d->curves[c], i)) widen(&d->x, d->curves[c].x[i]), widen(&d->y, d->curves[c].y[i]);
    choose_marks(&d->x, 0.02, 8);
    choose_marks(&d->y, 0.05, 7);
}

/* The i-th mark of an axis, from the first at or above its low end; false after the last. On a short logarithmic axis 1, 2 and
 * 5 times the powers of ten have marks. */
static bool mark(const axis *a, int i, double *value)
{
    if (!a->is_log || a->step >= 1) {
        double at = (ceil(a->low / a->step - 1e-9) + i) * a->step;
        *value = a->is_log ? pow(10, at) : at;
        return at <= a->high + 1e-9 * a->step;
    }
    double power = floor(a->low) + i / 3;
    *value = pow(10, power) * (double[]){ 1, 2, 5 }[i % 3];
    return log10(*value) <= a->high;
}

static const char *mark_text(const axis *a, double value, char text[QKV__NUMBER_BYTES])
{
    return a->is_log ? qkv__number_text(text, "%.6g", value) : qkv__mark_text(text, value, a->step);
}

static double widest_mark(qkv__picture *p, const axis *a)
{
    char text[QKV__NUMBER_BYTES];
    double most = 0, width, height, value;
    for (int i = 0; mark(a, i, &value); i++) {
        qkv__label_size(p, &(qkv__label){ .text = mark_text(a, value, text), .size = MARK }, &width, &height);
        most = fmax(most, width);
    }
    return most;
}

static bool is_within(const axis *a, double value)
{
    double at = on_axis(a, value), slack = 1e-9 * (a->high - a->low);
    return at >= a->low - slack && at <= a->high + slack;
}

static void draw_axes(qkv__picture *p, const drawing *d)
{
    char text[QKV__NUMBER_BYTES];
    double value;
    for (int i = 0; mark(&d->x, i, &value); i++) {
        double at = place_on_axis(&d->x, value);
        if (!is_within(&d->x, value)) continue;
        qkv__draw_line(p, at, d->y.from, at, d->y.to, 1, GRID);
        qkv__label label = { .text = mark_text(&d->x, value, text), .size = MARK, .place = 0.5, .colour = QKV__SOFT_INK };
        qkv__label_draw(p, &label, at, d->y.from + 12);
    }
    for (int i = 0; mark(&d->y, i, &value); i++) {
        double at = place_on_axis(&d->y, value);
        if (!is_within(&d->y, value)) continue;
        qkv__draw_line(p, d->x.from, at, d->x.to, at, 1, GRID);
        qkv__label label = { .text = mark_text(&d->y, value, text), .size = MARK, .place = 1, .colour = QKV__SOFT_INK };
        qkv__label_draw(p, &label, d->x.from - 6, at);
    }
    qkv__set_colour(p, QKV__FRAME);
    cairo_set_line_width(p->cr, 1);
    cairo_rectangle(p->cr, d->x.from, d->y.to, WIDTH, HEIGHT);
    cairo_stroke(p->cr);
}

/* ---- curves ---- */

static void set_pen(qkv__picture *p, int64_t i)
{
    qkv__set_colour(p, colours[i % COLOURS]);
    cairo_set_line_width(p->cr, 1.8);
    cairo_set_line_join(p->cr, CAIRO_LINE_JOIN_ROUND);
    if (i >= COLOURS) cairo_set_dash(p->cr, (double[]){ 3.0 * (double)(i / COLOURS), 3 }, 2, 0);
}

static void draw_dot(qkv__picture *p, double x, double y)
{
    cairo_new_sub_path(p->cr);
    cairo_arc(p->cr, x, y, 2.4, 0, 2 * G_PI);
}

/* Few points are dots too, and so is one that stands alone. */
static void draw_curve(qkv__picture *p, const drawing *d, int64_t number)
{
    const qkv_curve *c = &d->curves[number];
    bool goes_on = false;
    cairo_save(p->cr);
    set_pen(p, number);
    for (int64_t i = 0; i < c->n; i++) {
        bool shown = is_shown(d, c, i);
        if (shown && goes_on) cairo_line_to(p->cr, place_on_axis(&d->x, c->x[i]), place_on_axis(&d->y, c->y[i]));
        else if (shown) cairo_move_to(p->cr, place_on_axis(&d->x, c->x[i]), place_on_axis(&d->y, c->y[i]));
        goes_on = shown;
    }
    cairo_stroke(p->cr);
    for (int64_t i = 0; i < c->n; i++) {
        bool is_alone = !(i > 0 && is_shown(d, c, i - 1)) && !(i + 1 < c->n && is_shown(d, c, i + 1));
        if (is_shown(d, c, i) && (c->n <= 30 || is_alone))
            draw_dot(p, place_on_axis(&d->x, c->x[i]), place_on_axis(&d->y, c->y[i]));
    }
    cairo_fill(p->cr);
    cairo_restore(p->cr);
}

/* Gives how wide the names are. */
static double draw_legend(qkv__picture *p, const drawing *d, double x, double y)
{
    double most = 0, width, height;
    for (int64_t i = 0; i < d->n && !p->status; i++) {
        if (!d->curves[i].name) continue;
        qkv__label label = { .text = d->curves[i].name, .size = 12, .colour = QKV__INK, .widest = LEGEND_MOST };
        double at = y + LINE * ((double)i + 0.5);
        cairo_save(p->cr);
        set_pen(p, i);
        cairo_move_to(p->cr, x, at);
        cairo_line_to(p->cr, x + 22, at);
        cairo_stroke(p->cr);
        cairo_restore(p->cr);
        qkv__label_draw(p, &label, x + 28, at);
        qkv__label_size(p, &label, &width, &height);
        most = fmax(most, 28 + width);
    }
    return most;
}

static void draw_names(qkv__picture *p, const drawing *d)
{
    double middle = (d->x.from + d->x.to) / 2;
    qkv__label title = { .text = d->o->title, .size = 16, .place = 0.5, .colour = QKV__INK, .is_bold = true, .widest = WIDTH };
    if (d->o->title) qkv__label_draw(p, &title, middle, MARGIN + 10);
    qkv__label axis_name = { .text = d->o->x_axis, .size = 13, .place = 0.5, .colour = QKV__SOFT_INK, .widest = WIDTH };
    if (d->o->x_axis) qkv__label_draw(p, &axis_name, middle, d->y.from + 34);
    axis_name.text = d->o->y_axis;
    axis_name.turn = -90;
    axis_name.widest = HEIGHT;
    if (d->o->y_axis) qkv__label_draw(p, &axis_name, MARGIN + 8, d->y.to + HEIGHT / 2.0);
}

static void draw_curves(qkv__picture *p, const void *what)
{
    drawing d = *(const drawing *)what;
    d.x.from = MARGIN + (d.o->y_axis ? 22 : 0) + ceil(widest_mark(p, &d.y)) + 8;
    d.x.to = d.x.from + WIDTH;
    d.y.to = MARGIN + (d.o->title ? 30 : 4);
    d.y.from = d.y.to + HEIGHT;
    p->height = fmax(d.y.from + (d.o->x_axis ? 46 : 24), d.y.to + LINE * (double)d.n) + MARGIN;
    p->width = d.x.to + MARGIN;
    if (!(p->height <= QKV_PICTURE_SIDE)) return;
    draw_axes(p, &d);
    for (int64_t i = 0; i < d.n && !p->is_sketch; i++) draw_curve(p, &d, i);
    draw_names(p, &d);
    double names = draw_legend(p, &d, d.x.to + 14, d.y.to);
    p->width = fmax(p->width, d.x.to + (names > 0 ? 14 + names : 0) + MARGIN);
}

static qkv_status check_curves(const qkv_curve *curves, int64_t n, const qkv_curve_opts *o)
{
    if (!curves) return qkv__fail(QKV_USAGE, "%s: there are no curves", call);
    if (n < 1) return qkv__fail(QKV_USAGE, "%s: %lld curves, expected at least 1", call, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        if (curves[i].n < 0 || (curves[i].n && !(curves[i].x && curves[i].y)))
            return qkv__fail(QKV_USAGE, "%s: curve %lld has no points", call, (long long)i);
        if (!qkv__is_label(curves[i].name))
            return qkv__fail(QKV_USAGE, "%s: the name of curve %lld is not UTF-8", call, (long long)i);
    }
    qkv_status status = qkv__check_label(call, "the title", o->title);
    if (!status) status = qkv__check_label(call, "the name of the x axis", o->x_axis);
    if (!status) status = qkv__check_label(call, "the name of the y axis", o->y_axis);
    return status;
}

qkv_status qkv_picture_curves(const char *path, const qkv_curve *curves, int64_t n, const qkv_curve_opts *opts)
{
    qkv_curve_opts o;
    drawing d = { .curves = curves, .n = n, .o = &o };
    qkv_status status = QKV__READ_OPTIONS(&o, log_y, opts, call);
    if (!status) status = check_curves(curves, n, &o);
    if (status) return status;
    choose_axes(&d);
    return qkv__picture_write(call, path, draw_curves, &d);
}
