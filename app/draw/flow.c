/* flow.c: attention as boxes and arrows, with the shape at every arrow. */
#include "view.h"
#include "picture.h"

#include "../../src/base/language.h"
#include "../../src/base/options.h"
#include "../../src/base/out.h"

#include <math.h>
#include <stdio.h>

enum { MARGIN = 20, BOX = 150, TALL = 40, GAP = 44, COLUMN = 200, TITLE = 44 };
enum { EDGE = 0x777777, INPUT = 0xdbe9f6, WEIGHT = 0xfce8c9, STEP = 0xe3f1e1 };
enum { LABEL_BYTES = 160, MOST_FLOWS = 4 };
static const char call[] = "flow";

typedef struct drawing {
    const qkv_flow *f;
    const qkv_flow_opts *o;
    double x;             /* where it begins */
    int64_t keys;         /* tokens that are attended to */
    int64_t all_k, all_v; /* of all heads together */
} drawing;

/* Flows side by side. */
typedef struct drawings {
    drawing at[MOST_FLOWS];
    int64_t n;
    qkv_flow_opts o;
} drawings;

static double column(const drawing *d, int i) { return d->x + MARGIN + BOX / 2.0 + i * COLUMN; }
static double row(int i) { return MARGIN + TITLE + i * (TALL + GAP); }

/* A box from column `first` to `last`. */
static void draw_box(qkv__picture *p, const drawing *d, int first, int last, int at, uint32_t colour, const char *text)
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
static const char *sized(char text[LABEL_BYTES], const char *name, int64_t rows, int64_t columns)
{
    snprintf(text, LABEL_BYTES, "%s  %lld × %lld", name, (long long)rows, (long long)columns);
    return text;
}

/* What goes from box to box: "Q  2 × 3 × 4", without the heads when there is one, the batch before them where there is one. */
static const char *carried(const drawing *d, char text[LABEL_BYTES], const char *name, int64_t heads, int64_t rows,
                           int64_t columns)
{
    char batch[32] = "", front[32] = "";
    if (d->o->batch) snprintf(batch, sizeof batch, "%lld × ", (long long)d->o->batch);
    if (heads > 1) snprintf(front, sizeof front, "%lld × ", (long long)heads);
    snprintf(text, LABEL_BYTES, "%s  %s%s%lld × %lld", name, batch, front, (long long)rows, (long long)columns);
    return text;
}

static int draw_inputs(qkv__picture *p, const drawing *d)
{
    char text[LABEL_BYTES];
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
static int draw_projections(qkv__picture *p, const drawing *d, int at)
{
    static const char *const weights[] = { "W_Q", "W_K", "W_V" }, *const names[] = { "Q", "K", "V" };
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
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

static int draw_weights(qkv__picture *p, const drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
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

static int draw_output(qkv__picture *p, const drawing *d, int at)
{
    const qkv_flow *f = d->f;
    char text[LABEL_BYTES];
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

static void draw_flow(qkv__picture *p, const drawing *d)
{
    char title[LABEL_BYTES];
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
    drawings all = *(const drawings *)what;
    p->width = p->height = 0;
    for (int64_t i = 0; i < all.n; i++) {
        all.at[i].x = p->width;
        draw_flow(p, &all.at[i]);
    }
}

/* ---- as text ---- */

/* A flow on its way into text. */
typedef struct flow_text {
    qkv__out out;
    const drawing *d;
    int how; /* columns of how a step comes about */
} flow_text;

static void put_step(flow_text *t, const char *name, const char *how, int64_t heads, int64_t rows, int64_t columns)
{
    enum { NAME = 9 };
    qkv__out_printf(&t->out, "    ");
    qkv__out_name(&t->out, name, NAME, false);
    qkv__out_name(&t->out, how, t->how, false);
    if (t->d->o->batch) qkv__out_printf(&t->out, "%lld x ", (long long)t->d->o->batch);
    if (heads > 1) qkv__out_printf(&t->out, "%lld x ", (long long)heads);
    qkv__out_printf(&t->out, "%lld x %lld\n", (long long)rows, (long long)columns);
}

static void name_product(char how[LABEL_BYTES], const char *from, int64_t inner, int64_t columns)
{
    snprintf(how, LABEL_BYTES, qkv__translated("= %s, a matrix %lld x %lld"), from, (long long)inner, (long long)columns);
}

static void put_product(flow_text *t, const char *name, const char *from, int64_t inner, int64_t rows, int64_t columns)
{
    char how[LABEL_BYTES];
    name_product(how, from, inner, columns);
    put_step(t, name, how, 1, rows, columns);
}

/* So that the longest product, which has the largest numbers, is no nearer to its shape than two spaces. */
static int how_columns(const drawing *d)
{
    enum { USUAL = 41, GAP_COLUMNS = 2 };
    const int64_t sizes[][2] = { { d->f->dim, d->all_k }, { d->f->dim, d->all_v }, { d->all_v, d->f->dim } };
    const char *const from[] = { "X W_K", "X W_V", qkv__translated("concat W_O") };
    int most = USUAL;
    for (int i = 0; i < 3; i++) {
        char how[LABEL_BYTES];
        name_product(how, from[i], sizes[i][0], sizes[i][1]);
        if (qkv__width(how) + GAP_COLUMNS > most) most = qkv__width(how) + GAP_COLUMNS;
    }
    return most;
}

static void put_split(flow_text *t, const qkv_flow *f, int64_t keys)
{
    const char *how = qkv__translated("split into heads");
    if (f->heads == 1) return;
    put_step(t, "Q", how, f->heads, f->tokens, f->d_k);
    put_step(t, "K", how, f->heads, keys, f->d_k);
    put_step(t, "V", how, f->heads, keys, f->d_v);
}

static void put_scores(flow_text *t, const qkv_flow *f, int64_t keys)
{
    const drawing *d = t->d;
    char scale[96];
    snprintf(scale, sizeof scale, "= %s / sqrt(%lld)", qkv__translated("scores"), (long long)f->d_k);
    put_step(t, qkv__translated("scores"), "= Q K^T", f->heads, f->tokens, keys);
    put_step(t, qkv__translated("scaled"), scale, f->heads, f->tokens, keys);
    if (d->o->mask)
        put_step(t, qkv__translated("masked"), qkv__translated("what a mask hides becomes -inf"), f->heads, f->tokens, keys);
    put_step(t, qkv__translated("weights"),
             d->o->mask ? qkv__translated("= softmax(masked), rows sum to 1")
                        : qkv__translated("= softmax(scaled), rows sum to 1"),
             f->heads, f->tokens, keys);
}

static void put_flow(flow_text *t)
{
    const drawing *d = t->d;
    const qkv_flow *f = d->f;
    int64_t keys = d->keys, h = f->heads;
    const char *kind = f->memory ? qkv__translated("Cross-attention") : qkv__translated("Self-attention");
    qkv__out_printf(&t->out, h > 1 ? qkv__translated("%s, %lld heads") : qkv__translated("%s, %lld head"), kind, (long long)h);
    qkv__out_printf(&t->out, "\n\n");
    put_step(t, "X", "", 1, f->tokens, f->dim);
    if (f->memory) put_step(t, "Y", qkv__translated("the other text"), 1, f->memory, f->dim);
    put_product(t, "Q", "X W_Q", f->dim, f->tokens, d->all_k);
    put_product(t, "K", f->memory ? "Y W_K" : "X W_K", f->dim, keys, d->all_k);
    put_product(t, "V", f->memory ? "Y W_V" : "X W_V", f->dim, keys, d->all_v);
    put_split(t, f, keys);
    put_scores(t, f, keys);
    put_step(t, h > 1 ? qkv__translated("heads") : qkv__translated("head"), qkv__translated("= weights V"), h, f->tokens,
             f->d_v);
    if (h > 1) put_step(t, qkv__translated("concat"), qkv__translated("the heads side by side"), 1, f->tokens, d->all_v);
    put_product(t, qkv__translated("output"), h > 1 ? qkv__translated("concat W_O") : qkv__translated("head W_O"), d->all_v,
                f->tokens, f->dim);
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

static qkv_status take_flows(const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts, drawings *all)
{
    *all = (drawings){ .n = n };
    qkv_status status = QKV__READ_OPTIONS(&all->o, batch, opts, call);
    if (!status && (n < 1 || n > MOST_FLOWS))
        status = qkv__fail(QKV_USAGE, "%s: %lld of them side by side, expected 1 to %d", call, (long long)n, MOST_FLOWS);
    if (!status && all->o.batch < 0) status = qkv__fail(QKV_USAGE, "%s: a batch of %lld", call, (long long)all->o.batch);
    for (int64_t i = 0; i < n && !status; i++) {
        status = check_flow(flows ? &flows[i] : NULL, &all->at[i]);
        all->at[i].o = &all->o;
    }
    return status;
}

qkv_status qkv_picture_flows(const char *path, const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts)
{
    drawings all;
    qkv_status status = take_flows(flows, n, opts, &all);
    return status ? status : qkv__picture_write(call, path, draw_flows, &all);
}

qkv_status qkv_flows_text(const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts, qkv_buffer *out)
{
    drawings all;
    if (!out) return qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    qkv_status status = take_flows(flows, n, opts, &all);
    if (status) return status;
    flow_text text = { .out = qkv__out_begin(out) };
    for (int64_t i = 0; i < n; i++) {
        text.d = &all.at[i];
        text.how = how_columns(text.d);
        if (i) qkv__out_printf(&text.out, "\n");
        put_flow(&text);
    }
    return qkv__out_end(&text.out);
}

qkv_status qkv_picture_flow(const char *path, const qkv_flow *flow) { return qkv_picture_flows(path, flow, 1, NULL); }

qkv_status qkv_flow_text(const qkv_flow *flow, qkv_buffer *out) { return qkv_flows_text(flow, 1, NULL, out); }
