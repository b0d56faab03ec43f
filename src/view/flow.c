/* flow.c: attention as boxes and arrows, with the shape at every arrow. */
#include "picture.h"

#include "../text/out.h"

#include <math.h>
#include <stdio.h>

enum { MARGIN = 20, BOX = 150, TALL = 40, GAP = 44, COLUMN = 200, TITLE = 44 };
enum { EDGE = 0x777777, INPUT = 0xdbe9f6, WEIGHT = 0xfce8c9, STEP = 0xe3f1e1 };
enum { LABEL_BYTES = 160 };
static const char call[] = "flow";

typedef struct drawing {
    const qkv_flow *f;
    int64_t keys;         /* tokens that are attended to */
    int64_t all_k, all_v; /* of all heads together */
} drawing;

static double column(int i) { return MARGIN + BOX / 2.0 + i * COLUMN; }
static double row(int i) { return MARGIN + TITLE + i * (TALL + GAP); }

/* A box from column `first` to `last`. */
static void draw_box(qkv__picture *p, int first, int last, int at, uint32_t colour, const char *text)
{
    double x = column(first) - BOX / 2.0, width = BOX + (last - first) * COLUMN;
    qkv__fill_box(p, x, row(at), width, TALL, colour);
    qkv__set_colour(p, EDGE);
    cairo_set_line_width(p->cr, 1);
    cairo_rectangle(p->cr, x, row(at), width, TALL);
    cairo_stroke(p->cr);
    qkv__label label = { .text = text, .size = 13, .place = 0.5, .colour = QKV__INK, .widest = width - 10 };
    qkv__label_draw(p, &label, x + width / 2, row(at) + TALL / 2.0);
}

/* An arrow down to the top of a row from the bottom of another, with what it carries. */
static void draw_arrow(qkv__picture *p, double x, int from, int to, const char *text)
{
    double end = row(to), start = row(from) + TALL;
    qkv__draw_line(p, x, start, x, end - 6, 1.4, EDGE);
    cairo_move_to(p->cr, x, end);
    cairo_line_to(p->cr, x - 4, end - 8);
    cairo_line_to(p->cr, x + 4, end - 8);
    cairo_fill(p->cr);
    qkv__label label = { .text = text, .size = 12, .colour = QKV__SOFT_INK, .widest = COLUMN - 12 };
    qkv__label_draw(p, &label, x + 8, start + GAP / 2.0);
    double width, height;
    qkv__label_size(p, &label, &width, &height);
    p->width = fmax(p->width, x + 8 + width + MARGIN);
}

/* "Q  2 × 3 × 4", without the heads when there is one. */
static const char *carried(char text[LABEL_BYTES], const char *name, int64_t heads, int64_t rows, int64_t columns)
{
    char front[32] = "";
    if (heads > 1) snprintf(front, sizeof front, "%lld × ", (long long)heads);
    snprintf(text, LABEL_BYTES, "%s  %s%lld × %lld", name, front, (long long)rows, (long long)columns);
    return text;
}

static int draw_inputs(qkv__picture *p, const drawing *d)
{
    char text[LABEL_BYTES];
    const qkv_flow *f = d->f;
    bool is_cross = f->memory > 0;
    draw_box(p, 0, is_cross ? 0 : 2, 0, INPUT, carried(text, "X", 1, f->tokens, f->dim));
    if (is_cross) draw_box(p, 1, 2, 0, INPUT, carried(text, qkv__translated("Y, the other side"), 1, f->memory, f->dim));
    for (int i = 0; i < 3; i++) {
        bool is_other = is_cross && i > 0;
        draw_arrow(p, column(i), 0, 1, carried(text, is_other ? "Y" : "X", 1, i ? d->keys : f->tokens, f->dim));
    }
    return 1;
}

/* Queries, keys and values, at row `at`; gives the row that they come to. */
static int draw_projections(qkv__picture *p, const drawing *d, int at)
{
    static const char *const weights[] = { "W_Q", "W_K", "W_V" }, *const names[] = { "Q", "K", "V" };
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
    bool is_split = f->heads > 1;
    for (int i = 0; i < 3; i++) {
        int64_t tokens = i ? d->keys : f->tokens, width = i == 2 ? d->all_v : d->all_k;
        draw_box(p, i, i, at, WEIGHT, carried(text, weights[i], 1, f->dim, width));
        if (!is_split) continue;
        draw_arrow(p, column(i), at, at + 1, carried(text, names[i], 1, tokens, width));
        snprintf(text, sizeof text, qkv__translated("split into %lld heads"), (long long)f->heads);
        draw_box(p, i, i, at + 1, STEP, text);
    }
    int last = is_split ? at + 1 : at;
    draw_arrow(p, column(0), last, last + 1, carried(text, "Q", f->heads, f->tokens, f->d_k));
    draw_arrow(p, column(1), last, last + 1, carried(text, "K", f->heads, d->keys, f->d_k));
    draw_arrow(p, column(2), last, last + 4, carried(text, "V", f->heads, d->keys, f->d_v));
    return last + 1;
}

static int draw_weights(qkv__picture *p, const drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
    double middle = (column(0) + column(1)) / 2;
    draw_box(p, 0, 1, at, STEP, qkv__translated("scores: Q Kᵀ"));
    draw_arrow(p, middle, at, at + 1, carried(text, qkv__translated("scores"), f->heads, f->tokens, d->keys));
    snprintf(text, sizeof text, qkv__translated("scale: divide by √d_k = √%lld"), (long long)f->d_k);
    draw_box(p, 0, 1, at + 1, STEP, text);
    draw_arrow(p, middle, at + 1, at + 2, carried(text, qkv__translated("scaled"), f->heads, f->tokens, d->keys));
    draw_box(p, 0, 1, at + 2, STEP, qkv__translated("softmax: each row sums to 1"));
    draw_arrow(p, middle, at + 2, at + 3, carried(text, qkv__translated("weights"), f->heads, f->tokens, d->keys));
    return at + 3;
}

static int draw_output(qkv__picture *p, const drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
    draw_box(p, 0, 2, at, STEP, qkv__translated("sum of the values: weights V"));
    draw_arrow(p, column(1), at, at + 1,
               carried(text, qkv__translated(f->heads > 1 ? QKV__N("heads") : QKV__N("head")), f->heads, f->tokens, f->d_v));
    if (f->heads > 1) {
        at++;
        snprintf(text, sizeof text, qkv__translated("concat: %lld heads side by side"), (long long)f->heads);
        draw_box(p, 0, 2, at, STEP, text);
        draw_arrow(p, column(1), at, at + 1, carried(text, qkv__translated("concat"), 1, f->tokens, d->all_v));
    }
    draw_box(p, 1, 1, at + 1, WEIGHT, carried(text, "W_O", 1, d->all_v, f->dim));
    draw_arrow(p, column(1), at + 1, at + 2, carried(text, qkv__translated("output"), 1, f->tokens, f->dim));
    draw_box(p, 1, 1, at + 2, INPUT, carried(text, qkv__translated("output"), 1, f->tokens, f->dim));
    return at + 2;
}

static void draw_flow(qkv__picture *p, const void *what)
{
    const drawing *d = what;
    char title[LABEL_BYTES];
    p->width = column(2) + BOX / 2.0 + MARGIN;
    const char *kind = qkv__translated(d->f->memory ? QKV__N("Cross-attention") : QKV__N("Self-attention"));
    const char *format = d->f->heads > 1 ? QKV__N("%s with %lld heads: softmax(Q Kᵀ / √d_k) V")
                                         : QKV__N("%s with %lld head: softmax(Q Kᵀ / √d_k) V");
    snprintf(title, sizeof title, qkv__translated(format), kind, (long long)d->f->heads);
    qkv__label_draw(p, &(qkv__label){ .text = title, .size = 16, .is_bold = true, .colour = QKV__INK }, MARGIN, MARGIN + 10);
    int last = draw_output(p, d, draw_weights(p, d, draw_projections(p, d, draw_inputs(p, d))));
    p->height = row(last) + TALL + MARGIN;
}

/* ---- as text ---- */

static void put_step(qkv__out *out, const char *name, const char *how, int64_t heads, int64_t rows, int64_t columns)
{
    char front[32] = "";
    if (heads > 1) snprintf(front, sizeof front, "%lld x ", (long long)heads);
    qkv__out_printf(out, "    ");
    qkv__out_name(out, qkv__translated(name), 9, false);
    qkv__out_name(out, qkv__translated(how), 41, false);
    qkv__out_printf(out, "%s%lld x %lld\n", front, (long long)rows, (long long)columns);
}

static void put_product(qkv__out *out, const char *name, const char *from, int64_t inner, int64_t rows, int64_t columns)
{
    char how[64];
    snprintf(how, sizeof how, qkv__translated("= %s, a matrix %lld x %lld"), qkv__translated(from), (long long)inner,
             (long long)columns);
    put_step(out, name, how, 1, rows, columns);
}

static void put_flow(qkv__out *out, const qkv_flow *f)
{
    int64_t keys = f->memory ? f->memory : f->tokens, h = f->heads;
    char scale[64];
    qkv__out_printf(out, qkv__translated(h > 1 ? QKV__N("%s, %lld heads\n\n") : QKV__N("%s, %lld head\n\n")),
                    qkv__translated(f->memory ? "Cross-attention" : "Self-attention"), (long long)h);
    put_step(out, "X", "", 1, f->tokens, f->dim);
    if (f->memory) put_step(out, "Y", QKV__N("the other text"), 1, f->memory, f->dim);
    put_product(out, "Q", "X W_Q", f->dim, f->tokens, h * f->d_k);
    put_product(out, "K", f->memory ? "Y W_K" : "X W_K", f->dim, keys, h * f->d_k);
    put_product(out, "V", f->memory ? "Y W_V" : "X W_V", f->dim, keys, h * f->d_v);
    if (h > 1) {
        put_step(out, "Q", QKV__N("split into heads"), h, f->tokens, f->d_k);
        put_step(out, "K", QKV__N("split into heads"), h, keys, f->d_k);
        put_step(out, "V", QKV__N("split into heads"), h, keys, f->d_v);
    }
    snprintf(scale, sizeof scale, qkv__translated("= scores / sqrt(%lld)"), (long long)f->d_k);
    put_step(out, "scores", "= Q K^T", h, f->tokens, keys);
    put_step(out, "scaled", scale, h, f->tokens, keys);
    put_step(out, "weights", QKV__N("= softmax(scaled), rows sum to 1"), h, f->tokens, keys);
    put_step(out, h > 1 ? "heads" : "head", QKV__N("= weights V"), h, f->tokens, f->d_v);
    if (h > 1) put_step(out, "concat", QKV__N("the heads side by side"), 1, f->tokens, h * f->d_v);
    put_product(out, "output", h > 1 ? QKV__N("concat W_O") : QKV__N("head W_O"), h * f->d_v, f->tokens, f->dim);
}

/* ---- from the call ---- */

static qkv_status check_flow(const qkv_flow *flow, drawing *d)
{
    if (!flow) return qkv__fail(QKV_USAGE, "%s: there is nothing to draw", call);
    if (flow->tokens < 1 || flow->dim < 1 || flow->heads < 1 || flow->d_k < 1 || flow->d_v < 1 || flow->memory < 0)
        return qkv__fail(
            QKV_USAGE,
            "%s: %lld tokens of %lld numbers, %lld heads of %lld and %lld, %lld tokens on the other side: each is at "
            "least 1, the last at least 0",
            call, (long long)flow->tokens, (long long)flow->dim, (long long)flow->heads, (long long)flow->d_k,
            (long long)flow->d_v, (long long)flow->memory);
    if (__builtin_mul_overflow(flow->heads, flow->d_k, &d->all_k) || __builtin_mul_overflow(flow->heads, flow->d_v, &d->all_v))
        return qkv__fail(QKV_USAGE, "%s: %lld heads of %lld and %lld are too many numbers", call, (long long)flow->heads,
                         (long long)flow->d_k, (long long)flow->d_v);
    d->f = flow;
    d->keys = flow->memory ? flow->memory : flow->tokens;
    return QKV_OK;
}

qkv_status qkv_picture_flow(const char *path, const qkv_flow *flow)
{
    drawing d;
    qkv_status status = check_flow(flow, &d);
    return status ? status : qkv__picture_write(call, path, draw_flow, &d);
}

qkv_status qkv_flow_text(const qkv_flow *flow, qkv_text *out)
{
    drawing d;
    qkv_status status = out ? check_flow(flow, &d) : qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    if (status) return status;
    qkv__out text = qkv__out_begin(out);
    put_flow(&text, flow);
    return qkv__out_end(&text);
}
