/* flow.c: attention as boxes and arrows, with the shape at every arrow. */
#include "flow.h"
#include "picture.h"

#include "../term/translator.h"

#include <math.h>
#include <stdio.h>

enum { MARGIN = 20, BOX = 150, TALL = 40, GAP = 44, COLUMN = 200, TITLE = 44 };
enum { EDGE = 0x777777, INPUT = 0xdbe9f6, WEIGHT = 0xfce8c9, STEP = 0xe3f1e1 };
static const char call[] = "flow";

static double column(const qkv__flow_drawing *d, int i) { return d->x + MARGIN + BOX / 2.0 + i * COLUMN; }
static double row(int i) { return MARGIN + TITLE + i * (TALL + GAP); }

/* A box from column `first` to `last`. */
static void draw_box(qkv__picture *p, const qkv__flow_drawing *d, int first, int last, int at, uint32_t colour,
                     const char *text)
{
    double x = column(d, first) - BOX / 2.0, width = BOX + (last - first) * COLUMN;
    qkv__fill_box(p, x, row(at), width, TALL, colour);
    qkv__set_colour(p, EDGE);
    cairo_set_line_width(p->cr, 1);
    cairo_rectangle(p->cr, x, row(at), width, TALL);
    cairo_stroke(p->cr);
    qkv__label label = {
        .text = text, .size = 13, .place = 0.5, .colour = QKV__INK, .widest = width - 10, .has_subscripts = true
    };
    qkv__note_area(p, QKV__AREA_BOX, x, row(at), width, TALL);
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
    qkv__label label = { .text = text, .size = 12, .colour = QKV__SOFT_INK, .widest = COLUMN - 12, .has_subscripts = true };
    qkv__label_draw(p, &label, x + 8, start + GAP / 2.0);
    double width, height;
    qkv__label_size(p, &label, &width, &height);
    p->width = fmax(p->width, x + 8 + width + MARGIN);
}

/* What weights are: "W_Q  4 × 8". */
static const char *sized(char text[QKV__FLOW_LABEL], const char *name, int64_t rows, int64_t columns)
{
    snprintf(text, QKV__FLOW_LABEL, "%s  %lld × %lld", name, (long long)rows, (long long)columns);
    return text;
}

/* What goes from box to box: "Q  2 × 3 × 4", without the heads when there is one, the batch before them where there is one. */
static const char *carried(const qkv__flow_drawing *d, char text[QKV__FLOW_LABEL], const char *name, int64_t heads,
                           int64_t rows, int64_t columns)
{
    char batch[32] = "", front[32] = "";
    if (d->o->batch) snprintf(batch, sizeof batch, "%lld × ", (long long)d->o->batch);
    if (heads > 1) snprintf(front, sizeof front, "%lld × ", (long long)heads);
    snprintf(text, QKV__FLOW_LABEL, "%s  %s%s%lld × %lld", name, batch, front, (long long)rows, (long long)columns);
    return text;
}

static int draw_inputs(qkv__picture *p, const qkv__flow_drawing *d)
{
    char text[QKV__FLOW_LABEL];
    const qkv_flow *f = d->f;
    bool is_cross = f->memory > 0;
    draw_box(p, d, 0, is_cross ? 0 : 2, 0, INPUT, carried(d, text, "X", 1, f->tokens, f->dim));
    if (is_cross) draw_box(p, d, 1, 2, 0, INPUT, carried(d, text, qkv__translated("Y, the other side"), 1, f->memory, f->dim));
    for (int i = 0; i < 3; i++) {
        bool is_other = is_cross && i > 0;
        draw_arrow(p, column(d, i), 0, 1, carried(d, text, is_other ? "Y" : "X", 1, i ? d->keys : f->tokens, f->dim));
    }
    return 1;
}

/* Queries, keys and values, at row `at`; gives the row that they come to. */
static int draw_projections(qkv__picture *p, const qkv__flow_drawing *d, int at)
{
    static const char *const weights[] = { "W_Q", "W_K", "W_V" }, *const names[] = { "Q", "K", "V" };
    const qkv_flow *f = d->f;
    char text[QKV__FLOW_LABEL];
    bool is_split = f->heads > 1;
    for (int i = 0; i < 3; i++) {
        int64_t tokens = i ? d->keys : f->tokens, width = i == 2 ? d->all_v : d->all_k;
        draw_box(p, d, i, i, at, WEIGHT, sized(text, weights[i], f->dim, width));
        if (!is_split) continue;
        draw_arrow(p, column(d, i), at, at + 1, carried(d, text, names[i], 1, tokens, width));
        snprintf(text, sizeof text, qkv__translated("split into %lld heads"), (long long)f->heads);
        draw_box(p, d, i, i, at + 1, STEP, text);
    }
    int last = is_split ? at + 1 : at;
    draw_arrow(p, column(d, 0), last, last + 1, carried(d, text, "Q", f->heads, f->tokens, f->d_k));
    draw_arrow(p, column(d, 1), last, last + 1, carried(d, text, "K", f->heads, d->keys, f->d_k));
    draw_arrow(p, column(d, 2), last, last + (d->o->mask ? 5 : 4), carried(d, text, "V", f->heads, d->keys, f->d_v));
    return last + 1;
}

static int draw_weights(qkv__picture *p, const qkv__flow_drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[QKV__FLOW_LABEL];
    double middle = (column(d, 0) + column(d, 1)) / 2;
    snprintf(text, sizeof text, "%s: Q Kᵀ", qkv__translated("scores"));
    draw_box(p, d, 0, 1, at, STEP, text);
    draw_arrow(p, middle, at, at + 1, carried(d, text, qkv__translated("scores"), f->heads, f->tokens, d->keys));
    snprintf(text, sizeof text, qkv__translated("scale: divide by √d_k = √%lld"), (long long)f->d_k);
    draw_box(p, d, 0, 1, at + 1, STEP, text);
    draw_arrow(p, middle, at + 1, at + 2, carried(d, text, qkv__translated("scaled"), f->heads, f->tokens, d->keys));
    if (d->o->mask) {
        at++;
        draw_box(p, d, 0, 1, at + 1, STEP, qkv__translated("mask, where there is one: hidden scores are -∞"));
        draw_arrow(p, middle, at + 1, at + 2, carried(d, text, qkv__translated("masked"), f->heads, f->tokens, d->keys));
    }
    draw_box(p, d, 0, 1, at + 2, STEP, qkv__translated("softmax: each row sums to 1"));
    draw_arrow(p, middle, at + 2, at + 3, carried(d, text, qkv__translated("weights"), f->heads, f->tokens, d->keys));
    return at + 3;
}

static int draw_output(qkv__picture *p, const qkv__flow_drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[QKV__FLOW_LABEL];
    draw_box(p, d, 0, 2, at, STEP, qkv__translated("sum of the values: weights V"));
    draw_arrow(
        p, column(d, 1), at, at + 1,
        carried(d, text, f->heads > 1 ? qkv__translated("heads") : qkv__translated("head"), f->heads, f->tokens, f->d_v));
    if (f->heads > 1) {
        at++;
        snprintf(text, sizeof text, qkv__translated("concat: %lld heads side by side"), (long long)f->heads);
        draw_box(p, d, 0, 2, at, STEP, text);
        draw_arrow(p, column(d, 1), at, at + 1, carried(d, text, qkv__translated("concat"), 1, f->tokens, d->all_v));
    }
    draw_box(p, d, 1, 1, at + 1, WEIGHT, sized(text, "W_O", d->all_v, f->dim));
    draw_arrow(p, column(d, 1), at + 1, at + 2, carried(d, text, qkv__translated("output"), 1, f->tokens, f->dim));
    draw_box(p, d, 1, 1, at + 2, INPUT, carried(d, text, qkv__translated("output"), 1, f->tokens, f->dim));
    return at + 2;
}

static void draw_flow(qkv__picture *p, const qkv__flow_drawing *d)
{
    char title[QKV__FLOW_LABEL];
    const char *kind = d->f->memory ? qkv__translated("Cross-attention") : qkv__translated("Self-attention");
    if (d->f->heads > 1)
        snprintf(title, sizeof title, qkv__translated("%s with %lld heads: softmax(Q Kᵀ / √d_k) V"), kind,
                 (long long)d->f->heads);
    else snprintf(title, sizeof title, qkv__translated("%s with 1 head: softmax(Q Kᵀ / √d_k) V"), kind);
    qkv__label label = { .text = title, .size = 16, .is_bold = true, .colour = QKV__INK, .has_subscripts = true };
    qkv__label_draw(p, &label, d->x + MARGIN, MARGIN + 10);
    int last = draw_output(p, d, draw_weights(p, d, draw_projections(p, d, draw_inputs(p, d))));
    p->width = fmax(p->width, column(d, 2) + BOX / 2.0 + MARGIN);
    p->height = fmax(p->height, row(last) + TALL + MARGIN);
}

static void draw_flows(qkv__picture *p, const void *what)
{
    qkv__flow_drawings all = *(const qkv__flow_drawings *)what;
    p->width = p->height = 0;
    for (int64_t i = 0; i < all.n; i++) {
        all.at[i].x = p->width;
        draw_flow(p, &all.at[i]);
    }
}

qkv_status qkv_picture_flows(const char *path, const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts)
{
    qkv__flow_drawings all;
    qkv_status status = qkv__flows_take(flows, n, opts, &all);
    return status ? status : qkv__picture_write(call, path, draw_flows, &all);
}

qkv_status qkv_picture_flow(const char *path, const qkv_flow *flow) { return qkv_picture_flows(path, flow, 1, NULL); }
