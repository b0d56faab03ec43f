/* names.c: the names along the rows and the columns of a map. */
#include "names.h"

#include <math.h>

enum {
    LARGEST_NAME = 13, /* letters, in points */
    HIGHEST_STACK = 12 /* characters */
};

static const char *name_of(const qkv__side *s, int64_t i, char number[QKV__NUMBER_BYTES])
{
    return s->names ? s->names[i] : qkv__number_text(number, "%.0f", (double)i);
}

static qkv__label label_of(const qkv__side *s, int64_t i, char number[QKV__NUMBER_BYTES])
{
    return (qkv__label){ .text = name_of(s, i, number),
                         .size = s->size,
                         .colour = s->names ? QKV__INK : QKV__SOFT_INK,
                         .is_token = s->names != NULL,
                         .widest = fmax(160, 11 * s->size) };
}

static double widest_name(qkv__picture *p, const qkv__side *s)
{
    char number[QKV__NUMBER_BYTES];
    double most = 0, width, height;
    for (int64_t i = 0; s->step && i < s->n && !p->status; i += s->step) {
        qkv__label label = label_of(s, i, number);
        qkv__label_size(p, &label, &width, &height);
        most = fmax(most, width);
    }
    return most;
}

static bool can_stack(const qkv__picture *p, const char *text)
{
    return qkv__is_wide(text) && g_utf8_strlen(text, -1) <= (p->format == QKV__PDF ? 1 : HIGHEST_STACK);
}

static double tallest_stack(qkv__picture *p, const qkv__side *s)
{
    char number[QKV__NUMBER_BYTES];
    double most = 0, width, height;
    for (int64_t i = 0; s->names && s->step && i < s->n && !p->status; i += s->step) {
        qkv__label label = label_of(s, i, number);
        if (!(label.is_stacked = can_stack(p, label.text))) continue;
        qkv__label_size(p, &label, &width, &height);
        most = fmax(most, height);
    }
    return most;
}

static double largest_name(const qkv__side *s) { return s->largest > 0 ? s->largest : LARGEST_NAME; }

/* Every name where it can stand, else every so many, the places at round numbers. */
static void choose_step(qkv__side *s, double scale, bool is_grid)
{
    s->size = fmin(largest_name(s), 0.8 * s->cell);
    s->step = 1;
    if (s->names && s->cell >= (is_grid ? 9 : QKV__NAMED_CELL)) return;
    s->size = s->names ? fmin(10 * scale, fmax(largest_name(s), 10)) : fmin(11 * scale, 24);
    double often = s->size * (s->names ? 1.15 : 2.2) / s->cell;
    if (often > 1) s->step = (int64_t)ceil(s->names ? often : qkv__round_step(often * 1.001, 1));
    if (is_grid && !s->names && s->step >= s->n) s->step = 0;
}

void qkv__choose_row_names(qkv__picture *p, qkv__side *s, double scale, bool is_grid)
{
    choose_step(s, scale, is_grid);
    s->room = s->step ? widest_name(p, s) + QKV__NAME_GAP : 0;
}

static void slant(qkv__side *s, double widest)
{
    const double half = sqrt(0.5);
    s->how = QKV__SLANTED;
    s->room = widest * half + s->size + QKV__NAME_GAP;
    s->beyond = fmax(0, (widest + s->size) * half - s->cell / 2);
}

/* Names stand across their columns where they fit, a little smaller if need be; else they are turned. Readers of PDF cannot
 * find words that are slanted, or whose characters stand below each other: there they are turned by a right angle. */
void qkv__choose_column_names(qkv__picture *p, qkv__side *s, double scale, bool is_grid)
{
    choose_step(s, scale, is_grid);
    if (!s->step) return;
    if (s->names && s->step == 1) s->size = largest_name(s);
    double widest = widest_name(p, s), room = s->cell * (double)s->step - 4;
    s->how = QKV__ACROSS;
    s->room = s->size * 1.3 + QKV__NAME_GAP;
    if (widest <= room) return;
    if (!s->names) {
        s->step = (int64_t)qkv__round_step((widest + 12) / s->cell, 1);
        return;
    }
    double smaller = s->size * room / widest;
    if (smaller >= 0.75 * largest_name(s)) {
        s->size = smaller;
        return;
    }
    if (!is_grid && s->step == 1 && s->cell >= 1.5 * s->size && p->format != QKV__PDF) {
        slant(s, widest);
        return;
    }
    s->how = QKV__UPRIGHT;
    if (s->step == 1) s->size = fmin(largest_name(s), 0.8 * s->cell);
    s->room = fmax(widest_name(p, s), tallest_stack(p, s)) + QKV__NAME_GAP;
}

void qkv__draw_row_names(qkv__picture *p, const qkv__side *s, double x, double y)
{
    char number[QKV__NUMBER_BYTES];
    for (int64_t i = 0; s->step && i < s->n; i += s->step) {
        qkv__label label = label_of(s, i, number);
        label.place = 1;
        double at = y + ((double)i + 0.5) * s->cell;
        qkv__label_draw(p, &label, x - QKV__NAME_GAP, at);
        if (s->step > 1) qkv__draw_line(p, x - 4, at, x, at, 1, QKV__FRAME);
    }
}

static void draw_column_name(qkv__picture *p, const qkv__side *s, int64_t i, double x, double y)
{
    char number[QKV__NUMBER_BYTES];
    qkv__label label = label_of(s, i, number);
    if (s->how == QKV__ACROSS) {
        label.place = 0.5;
        qkv__label_draw(p, &label, x, y - QKV__NAME_GAP - s->size * 0.6);
    } else if (s->how == QKV__SLANTED) {
        label.turn = -45;
        qkv__label_draw(p, &label, x, y - QKV__NAME_GAP - 2);
    } else {
        label.is_stacked = can_stack(p, label.text);
        label.place = label.is_stacked ? 0.5 : 0;
        label.turn = label.is_stacked ? 0 : -90;
        qkv__label_draw(p, &label, x, y - QKV__NAME_GAP);
    }
}

void qkv__draw_column_names(qkv__picture *p, const qkv__side *s, double x, double y)
{
    for (int64_t i = 0; s->step && i < s->n; i += s->step) {
        double at = x + ((double)i + 0.5) * s->cell;
        draw_column_name(p, s, i, at, y);
        if (s->step > 1) qkv__draw_line(p, at, y - 4, at, y, 1, QKV__FRAME);
    }
}
