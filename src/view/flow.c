/* flow.c: attention as boxes and arrows, with the shape at every arrow. */
#include "picture.h"

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
    if (is_cross) draw_box(p, 1, 2, 0, INPUT, carried(text, "Y, the other side", 1, f->memory, f->dim));
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
        snprintf(text, sizeof text, "split into %lld heads", (long long)f->heads);
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
    draw_box(p, 0, 1, at, STEP, "scores: Q Kᵀ");
    draw_arrow(p, middle, at, at + 1, carried(text, "scores", f->heads, f->tokens, d->keys));
    snprintf(text, sizeof text, "scale: divide by √d_k = √%lld", (long long)f->d_k);
    draw_box(p, 0, 1, at + 1, STEP, text);
    draw_arrow(p, middle, at + 1, at + 2, carried(text, "scaled", f->heads, f->tokens, d->keys));
    draw_box(p, 0, 1, at + 2, STEP, "softmax: each row sums to 1");
    draw_arrow(p, middle, at + 2, at + 3, carried(text, "weights", f->heads, f->tokens, d->keys));
    return at + 3;
}

static int draw_output(qkv__picture *p, const drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
    draw_box(p, 0, 2, at, STEP, "sum of the values: weights V");
    draw_arrow(p, column(1), at, at + 1, carried(text, f->heads > 1 ? "heads" : "head", f->heads, f->tokens, f->d_v));
    if (f->heads > 1) {
        at++;
        snprintf(text, sizeof text, "concat: %lld heads side by side", (long long)f->heads);
        draw_box(p, 0, 2, at, STEP, text);
        draw_arrow(p, column(1), at, at + 1, carried(text, "concat", 1, f->tokens, d->all_v));
    }
    draw_box(p, 1, 1, at + 1, WEIGHT, carried(text, "W_O", 1, d->all_v, f->dim));
    draw_arrow(p, column(1), at + 1, at + 2, carried(text, "output", 1, f->tokens, f->dim));
    draw_box(p, 1, 1, at + 2, INPUT, carried(text, "output", 1, f->tokens, f->dim));
    return at + 2;
}

static void draw_flow(qkv__picture *p, const void *what)
{
    const drawing *d = what;
    char title[LABEL_BYTES];
    p->width = column(2) + BOX / 2.0 + MARGIN;
    snprintf(title, sizeof title, "%s with %lld head%s: softmax(Q Kᵀ / √d_k) V",
             d->f->memory ? "Cross-attention" : "Self-attention", (long long)d->f->heads, d->f->heads > 1 ? "s" : "");
    qkv__label_draw(p, &(qkv__label){ .text = title, .size = 16, .is_bold = true, .colour = QKV__INK }, MARGIN, MARGIN + 10);
    int last = draw_output(p, d, draw_weights(p, d, draw_projections(p, d, draw_inputs(p, d))));
    p->height = row(last) + TALL + MARGIN;
}

qkv_status qkv_picture_flow(const char *path, const qkv_flow *flow)
{
    drawing d = { .f = flow };
    if (!flow) return qkv__fail(QKV_USAGE, "%s: there is nothing to draw", call);
    if (flow->tokens < 1 || flow->dim < 1 || flow->heads < 1 || flow->d_k < 1 || flow->d_v < 1 || flow->memory < 0)
        return qkv__fail(
            QKV_USAGE,
            "%s: %lld tokens of %lld numbers, %lld heads of %lld and %lld, %lld tokens on the other side: each is at "
            "least 1, the last at least 0",
            call, (long long)flow->tokens, (long long)flow->dim, (long long)flow->heads, (long long)flow->d_k,
            (long long)flow->d_v, (long long)flow->memory);
    if (__builtin_mul_overflow(flow->heads, flow->d_k, &d.all_k) || __builtin_mul_overflow(flow->heads, flow->d_v, &d.all_v))
        return qkv__fail(QKV_USAGE, "%s: %lld heads of %lld and %lld are too many numbers", call, (long long)flow->heads,
                         (long long)flow->d_k, (long long)flow->d_v);
    d.keys = flow->memory ? flow->memory : flow->tokens;
    return qkv__picture_write(call, path, draw_flow, &d);
}
