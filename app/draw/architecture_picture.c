/* architecture_picture.c: a Transformer as boxes and arrows. */
#include "view.h"
#include "architecture.h"
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EDGE = 0x777777, FRAME_EDGE = 0xaaaaaa, FRAME_FILL = 0xf7f7f7 };
enum {
    MARGIN = 20,
    TITLE = 40,
    TALL = 44, /* of a block with two lines, and with one */
    SHORT = 26,
    GAP = 24,       /* between two blocks */
    ROOM = 16,      /* more of it where a frame begins or ends */
    SIDE = 30,      /* beside the blocks of a frame, for the arrows around them */
    CHANNEL = 64,   /* between two stacks */
    REPEATED = 52,  /* beside a frame, for how often it is there */
    INPUT = 26,     /* under a stack, for what goes in */
    NOTE_LINE = 20, /* of the notes under the picture */
    NAME_SIZE = 14,
    MORE_SIZE = 12
};
static const char call[] = "model drawing";

typedef struct plan {
    const qkv__architecture *a;
    double width, bottom; /* of a block; where stacks begin */
    double left[2];       /* of the blocks of each stack */
} plan;

/* ---- where ---- */

static double block_height(const qkv__block *b) { return *b->more ? TALL : SHORT; }

/* Below block i: more where a frame begins or ends. */
static double gap_below(const qkv__stack_drawing *s, int i) { return i == s->first || i == s->last + 1 ? GAP + ROOM : GAP; }

/* The top of block i; stacks grow upwards. */
static double block_top(const plan *p, const qkv__stack_drawing *s, int i)
{
    double y = p->bottom - INPUT;
    for (int k = 0; k <= i; k++) y -= gap_below(s, k) + block_height(&s->blocks[k]);
    return y;
}

static double stack_height(const qkv__stack_drawing *s)
{
    double height = INPUT;
    for (int k = 0; k < s->n; k++) height += gap_below(s, k) + block_height(&s->blocks[k]);
    return height + GAP + ROOM;
}

static double label_width(qkv__picture *p, const char *text, double size, bool is_bold)
{
    double width, height;
    qkv__label_size(p, &(qkv__label){ .text = text, .size = size, .is_bold = is_bold }, &width, &height);
    return width;
}

static double widest_block(qkv__picture *p, const qkv__architecture *a)
{
    double width = 200;
    for (int s = 0; s < a->n; s++)
        for (int i = 0; i < a->stacks[s].n; i++) {
            const qkv__block *b = &a->stacks[s].blocks[i];
            width = fmax(width, fmax(label_width(p, b->name, NAME_SIZE, true), label_width(p, b->more, MORE_SIZE, false)) + 24);
        }
    return ceil(width);
}

static plan lay_out_architecture(qkv__picture *p, const qkv__architecture *a)
{
    plan l = { .a = a, .width = widest_block(p, a) };
    double tallest = 0, widest_note = label_width(p, a->title, 18, true);
    for (int s = 0; s < a->n; s++) tallest = fmax(tallest, stack_height(&a->stacks[s]));
    for (int i = 0; i < a->n_notes; i++) widest_note = fmax(widest_note, label_width(p, a->notes[i], MORE_SIZE, false));
    l.bottom = MARGIN + TITLE + tallest;
    for (int s = 0; s < 2; s++) l.left[s] = MARGIN + REPEATED + SIDE + s * (l.width + SIDE + CHANNEL);
    double drawn = l.left[a->n - 1] + l.width + SIDE + REPEATED + MARGIN;
    p->width = fmax(drawn, widest_note + 2 * MARGIN);
    for (int s = 0; s < 2; s++) l.left[s] += (p->width - drawn) / 2; /* in the middle where a note is wider */
    p->height = l.bottom + MARGIN + a->n_notes * NOTE_LINE + MARGIN;
    return l;
}

/* ---- arrows ---- */

static void draw_head(qkv__picture *p, double x, double y, double dx, double dy)
{
    qkv__set_colour(p, EDGE);
    cairo_move_to(p->cr, x, y);
    cairo_line_to(p->cr, x - 8 * dx - 4 * dy, y - 8 * dy - 4 * dx);
    cairo_line_to(p->cr, x - 8 * dx + 4 * dy, y - 8 * dy + 4 * dx);
    cairo_fill(p->cr);
}

static void draw_up(qkv__picture *p, double x, double from, double to)
{
    qkv__draw_line(p, x, from, x, to + 6, 1.4, EDGE);
    draw_head(p, x, to, 0, -1);
}

/* From below block `from` around to the side of block `to`. */
static void draw_residual(qkv__picture *p, const plan *l, const qkv__stack_drawing *s, double left, int to)
{
    const qkv__block *b = &s->blocks[to], *first = &s->blocks[b->residual];
    double middle = left + l->width / 2, side = s->is_decoder ? left + l->width + SIDE / 2.0 + 3 : left - SIDE / 2.0 - 3;
    double start = block_top(l, s, b->residual) + block_height(first) + GAP / 2.0;
    double end = block_top(l, s, to) + block_height(b) / 2, edge = s->is_decoder ? left + l->width : left;
    qkv__draw_line(p, middle, start, side, start, 1.4, EDGE);
    qkv__draw_line(p, side, start, side, end, 1.4, EDGE);
    qkv__draw_line(p, side, end, edge + (s->is_decoder ? 6 : -6), end, 1.4, EDGE);
    draw_head(p, edge, end, s->is_decoder ? -1 : 1, 0);
}

/* From the encoder's top to the attention of the decoder that reads it. */
static void draw_memory(qkv__picture *p, const plan *l)
{
    const qkv__stack_drawing *from = &l->a->stacks[0], *to = &l->a->stacks[1];
    int i = 0;
    while (i < to->n && !to->blocks[i].takes_memory) i++;
    double x = l->left[0] + l->width / 2, top = block_top(l, from, from->n - 1), up = top - GAP - ROOM / 2.0;
    double channel = l->left[1] - SIDE - 12, y = block_top(l, to, i) + block_height(&to->blocks[i]) / 2;
    qkv__draw_line(p, x, top, x, up, 1.4, EDGE);
    qkv__draw_line(p, x, up, channel, up, 1.4, EDGE);
    qkv__draw_line(p, channel, up, channel, y, 1.4, EDGE);
    qkv__draw_line(p, channel, y, l->left[1] - 6, y, 1.4, EDGE);
    draw_head(p, l->left[1], y, 1, 0);
    qkv__label label = { .text = from->shape, .size = MORE_SIZE, .colour = QKV__SOFT_INK, .place = 0.5 };
    qkv__label_draw(p, &label, x, up - 12);
}

/* ---- blocks ---- */

static void draw_outlined(qkv__picture *p, double x, double y, double width, double height, uint32_t fill, uint32_t edge)
{
    qkv__fill_box(p, x, y, width, height, fill);
    qkv__set_colour(p, edge);
    cairo_set_line_width(p->cr, 1);
    cairo_rectangle(p->cr, x, y, width, height);
    cairo_stroke(p->cr);
}

static void draw_block(qkv__picture *p, const plan *l, const qkv__block *b, double x, double y)
{
    double height = block_height(b), middle = x + l->width / 2;
    bool is_tall = *b->more;
    draw_outlined(p, x, y, l->width, height, b->colour, EDGE);
    qkv__note_area(p, QKV__AREA_BOX, x, y, l->width, height);
    qkv__label name = { .text = b->name, .size = NAME_SIZE, .is_bold = is_tall, .place = 0.5, .colour = QKV__INK };
    qkv__label more = { .text = b->more, .size = MORE_SIZE, .place = 0.5, .colour = QKV__SOFT_INK, .has_subscripts = true };
    qkv__label_draw(p, &name, middle, is_tall ? y + 13 : y + height / 2);
    if (is_tall) qkv__label_draw(p, &more, middle, y + 31);
}

/* The frame around one layer, and how often it is there. */
static void draw_frame(qkv__picture *p, const plan *l, const qkv__stack_drawing *s, double left)
{
    char times[32];
    double top = block_top(l, s, s->last) - 8, down = block_top(l, s, s->first) + block_height(&s->blocks[s->first]) + GAP - 2;
    draw_outlined(p, left - SIDE, top, l->width + 2 * SIDE, down - top, FRAME_FILL, FRAME_EDGE);
    snprintf(times, sizeof times, "%d ×", s->layers);
    qkv__label label = { .text = times, .size = 17, .is_bold = true, .colour = QKV__INK, .place = s->is_decoder ? 0 : 1 };
    qkv__label_draw(p, &label, s->is_decoder ? left + l->width + SIDE + 8 : left - SIDE - 8, (top + down) / 2);
}

static void draw_stack(qkv__picture *p, const plan *l, const qkv__stack_drawing *s, double left)
{
    double middle = left + l->width / 2, from = l->bottom - INPUT;
    draw_frame(p, l, s, left);
    qkv__label input = { .text = s->input, .size = 13, .place = 0.5, .colour = QKV__INK };
    qkv__label_draw(p, &input, middle, l->bottom - INPUT / 2.0);
    for (int i = 0; i < s->n; i++) {
        double y = block_top(l, s, i), bottom = y + block_height(&s->blocks[i]);
        draw_up(p, middle, from, bottom);
        draw_block(p, l, &s->blocks[i], left, y);
        if (s->blocks[i].residual >= 0) draw_residual(p, l, s, left, i);
        from = y;
    }
    qkv__label shape = { .text = s->shape, .size = MORE_SIZE, .colour = QKV__SOFT_INK };
    qkv__label_draw(p, &shape, middle + 8, block_top(l, s, s->first - 1) - 9);
    if (s->last + 1 < s->n) qkv__label_draw(p, &shape, middle + 8, block_top(l, s, s->last) - 8 - (GAP + ROOM - 8) / 2.0);
}

void qkv__draw_architecture(qkv__picture *p, const void *what)
{
    const qkv__architecture *a = what;
    plan l = lay_out_architecture(p, a);
    qkv__label title = { .text = a->title, .size = 18, .is_bold = true, .colour = QKV__INK };
    qkv__label_draw(p, &title, MARGIN, MARGIN + 10);
    for (int s = 0; s < a->n; s++) draw_stack(p, &l, &a->stacks[s], l.left[s]);
    if (a->n > 1) draw_memory(p, &l);
    for (int i = 0; i < a->n_notes; i++) {
        qkv__label note = { .text = a->notes[i], .size = MORE_SIZE, .colour = QKV__SOFT_INK };
        qkv__label_draw(p, &note, MARGIN, l.bottom + MARGIN + (i + 0.5) * NOTE_LINE);
    }
}

qkv_status qkv_picture_model(const char *path, const qkv_config *model, const qkv_model_drawing_opts *opts)
{
    qkv__architecture a;
    qkv_status status = qkv__architecture_make(model, opts, &a);
    return status ? status : qkv__picture_write(call, path, qkv__draw_architecture, &a);
}
