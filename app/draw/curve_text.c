/* curve_text.c: a curve as lines of text. */
#include "view.h"

#include "../../src/base/options.h"
#include "../report/out.h"

#include <math.h>

static const char call[] = "curves";

enum { TEXT_LINES = 16, BAR_WIDTH = 50 };

static double highest_of(const qkv_curve *c)
{
    double most = 0;
    for (int64_t i = 0; i < c->n; i++)
        if (isfinite(c->y[i]) && c->y[i] > most) most = c->y[i];
    return most;
}

static void put_point(qkv__out *out, const char *axis_name, double x, double y, double most)
{
    qkv__out_printf(out, "  %s %8.0f  %8.4f  ", axis_name, x, y);
    for (double w = most / BAR_WIDTH; isfinite(y) && w > 0 && w <= y; w += most / BAR_WIDTH) qkv__out_printf(out, "█");
    qkv__out_printf(out, "\n");
}

qkv_status qkv_curve_text(const qkv_curve *curve, const qkv_curve_opts *opts, qkv_buffer *out)
{
    qkv_curve_opts o;
    qkv_status status = QKV__READ_OPTIONS(&o, log_y, opts, call);
    if (status) return status;
    if (!curve || !out) return qkv__fail(QKV_USAGE, "%s: a curve and a place for the text are needed", call);
    if (curve->n < 0 || (curve->n && !(curve->x && curve->y))) return qkv__fail(QKV_USAGE, "%s: it has no points", call);
    qkv__out text = qkv__out_begin(out);
    double most = highest_of(curve);
    if (curve->n && curve->name) qkv__out_printf(&text, "%s\n", curve->name);
    int64_t lines = curve->n < TEXT_LINES ? curve->n : TEXT_LINES;
    for (int64_t k = 0; k < lines; k++) {
        int64_t i = lines > 1 ? k * (curve->n - 1) / (lines - 1) : 0;
        put_point(&text, o.x_axis ? o.x_axis : "x", curve->x[i], curve->y[i], most);
    }
    return qkv__out_end(&text);
}
