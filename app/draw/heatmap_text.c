/* heatmap_text.c: numbers as coloured blocks on a terminal, as shades elsewhere. */
#include "../term/translator.h"

#include <qkv/unstable/util.h>
#include "../../src/base/options.h"
#include "../../src/base/size.h"
#include "../report/out.h"

#include "view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MARGIN = 4,
    CELL = 2,
    NAME_BYTES = 128,
    TALLEST = 16,     /* characters of a name that is written from top to bottom */
    MOST_LINES = 2000 /* of cells: a larger map is shown without names */
};
static const char call[] = "heatmap";

/* Tokens as they are shown. */
typedef struct names {
    char (*text)[NAME_BYTES];
    int64_t n;
} names;

/* What is shown, and how. */
typedef struct screen {
    qkv__out out;
    const float *values;
    const qkv_heatmap_opts *o;
    const qkv_screen_opts *s;
    int width;       /* columns of the terminal */
    float low, high; /* values at the ends of the colours */
    bool is_signed;  /* some cell is negative: shades say of which sign a cell is */
} screen;

static int smaller_int(int a, int b) { return a < b ? a : b; }
static int larger_int(int a, int b) { return a > b ? a : b; }

/* ---- names ---- */

static void put_character(char *name, size_t *used, const char *character, size_t bytes)
{
    if (*used + bytes + strlen("…") >= NAME_BYTES) return;
    memcpy(name + *used, character, bytes);
    name[ *used += bytes] = '\0';
}

/* The text of a token without the space it starts with; what cannot be shown as a dot. */
static void make_name(const char *text, char name[NAME_BYTES])
{
    size_t length = strlen(text), used = 0, bytes;
    *name = '\0';
    if (length && *text == ' ') text++, length--;
    for (; length; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_next(text, length, &bytes);
        if (c < 0) put_character(name, &used, "\xEF\xBF\xBD", 3);
        else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) put_character(name, &used, "·", strlen("·"));
        else put_character(name, &used, text, bytes);
    }
    if (!used) put_character(name, &used, "␣", strlen("␣"));
}

static qkv_status make_names(const char *const *from, int64_t n, names *out)
{
    size_t bytes;
    if (!qkv__size_mul((size_t)n, NAME_BYTES, &bytes)) return qkv__fail(QKV_MEMORY, "%s: too many names", call);
    if (!(out->text = qkv__alloc(bytes))) return QKV_MEMORY;
    for (out->n = 0; out->n < n; out->n++) make_name(from[out->n], out->text[out->n]);
    return QKV_OK;
}

static void free_names(names *x, int64_t n) { qkv__release(x->text, (size_t)n * NAME_BYTES); }

/* ---- colours and shades ---- */

static float largest_size(const float *cells, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(cells[i]) && fabsf(cells[i]) > most) most = fabsf(cells[i]);
    return most;
}

static bool has_negative(const float *cells, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isfinite(cells[i]) && cells[i] < 0) return true;
    return false;
}

static void choose_scale(screen *s)
{
    s->is_signed = has_negative(s->values, s->o->rows * s->o->columns);
    s->low = s->o->low;
    s->high = s->o->high;
    if (s->low != 0 || s->high != 0) return;
    s->high = largest_size(s->values, s->o->rows * s->o->columns);
    if (s->s->colour && !(s->high > 0)) s->high = 1;
    if (s->o->colours == QKV_COLOURS_RED_BLUE) s->low = -s->high;
}

static float largest_shown(const screen *s) { return fmaxf(fabsf(s->low), fabsf(s->high)); }

static const char *shade(const screen *s, float value)
{
    static const char *const shades[2][5] = { { " ", "░", "▒", "▓", "█" }, { " ", ".", "-", "=", "#" } };
    float most = largest_shown(s), part = most > 0 ? fabsf(value) / most : 0;
    if (isnan(value)) return "?";
    return shades[value < 0][(part >= 0.1f) + (part >= 0.3f) + (part >= 0.55f) + (part >= 0.8f)];
}

static void put_colour(screen *s, int layer, uint32_t c)
{
    qkv__out_printf(&s->out, "\033[%d;2;%u;%u;%um", layer, c >> 16, c >> 8 & 255, c & 255);
}

static uint32_t colour_of(const screen *s, float value) { return qkv_colour_of(s->o->colours, s->low, s->high, value); }

static void put_cell(screen *s, int64_t i, int width)
{
    float value = s->values[i];
    if (s->o->hidden && s->o->hidden[i]) {
        while (width--) qkv__out_printf(&s->out, "/");
        return;
    }
    if (s->s->colour) {
        put_colour(s, 48, colour_of(s, value));
        qkv__out_printf(&s->out, "%*s\033[0m", width, "");
        return;
    }
    while (width--) qkv__out_printf(&s->out, "%s", shade(s, value));
}

/* What the mark of hidden cells means; "" where none is. */
static const char *hidden_key(const screen *s, char text[64])
{
    if (s->o->hidden) snprintf(text, 64, "  // %.50s", s->o->hidden_name ? s->o->hidden_name : qkv__translated("masked"));
    return text;
}

static void put_shades_legend(screen *s, int left)
{
    const char *what = s->s->shades ? s->s->shades : "blank to █: 0 to";
    char number[64], range[96];
    snprintf(number, sizeof number, "%.2f", (double)largest_shown(s));
    snprintf(range, sizeof range, "-%s #=-. ░▒▓█", number);
    if (s->is_signed) what = range;
    int room = s->width - 2 - qkv__width(what) - qkv__width(number) - qkv__width(hidden_key(s, (char[64]){ 0 }));
    qkv__out_printf(&s->out, "%*s %s %s%s\n", larger_int(0, smaller_int(left, room)), "", what, number,
                    hidden_key(s, (char[64]){ 0 }));
}

/* Under the cells, or further to the left where there is no room for it. */
static void put_legend(screen *s, int left)
{
    char text[128];
    if (!s->s->colour) return put_shades_legend(s, left);
    int taken = snprintf(text, sizeof text, "%.2f  %.2f%s", (double)s->low, (double)s->high, hidden_key(s, (char[64]){ 0 }));
    int blocks = smaller_int(20, s->width - left - 3 - taken);
    if (blocks < 4) left = 0, blocks = smaller_int(20, larger_int(4, s->width - 3 - taken));
    qkv__out_printf(&s->out, "%*s %.2f ", left, "", (double)s->low);
    for (int i = 0; i <= blocks; i++) {
        put_colour(s, 48, qkv_colour(s->o->colours, i / (double)blocks));
        qkv__out_printf(&s->out, " ");
    }
    qkv__out_printf(&s->out, "\033[0m %.2f%s\n", (double)s->high, hidden_key(s, (char[64]){ 0 }));
}

/* ---- names along the sides ---- */

static int widest(const names *x)
{
    int width = 0;
    for (int64_t i = 0; i < x->n; i++) width = larger_int(width, qkv__width(x->text[i]));
    return width;
}

static int characters(const char *text)
{
    int n = 0;
    for (size_t left = strlen(text), bytes; left; text += bytes, left -= bytes, n++) qkv_utf8_next(text, left, &bytes);
    return n;
}

/* Names that measure more than `most` end with a sign for what is left out. */
static void shorten(names *x, int most, int (*measure)(const char *))
{
    for (int64_t i = 0; i < x->n; i++) {
        char *text = x->text[i];
        if (measure(text) <= most) continue;
        for (size_t length = strlen(text); length && measure(text) >= most;) {
            while (length && (text[--length] & 0xC0) == 0x80) {} /* back to the start of a character */
            text[length] = '\0';
        }
        strcat(text, "…");
    }
}

/* How a map is laid out. */
typedef struct layout {
    int left;        /* columns before the first cell */
    int gap;         /* between two cells */
    bool is_upright; /* names of columns are written from top to bottom */
    int64_t across;  /* cells side by side; the others follow in further panels */
} layout;

static int column_width(const names *column, int64_t j, const layout *l)
{
    return l->is_upright ? CELL : larger_int(CELL, qkv__width(column->text[j]));
}

static int64_t total_width(const names *column, const layout *l)
{
    int64_t width = l->left;
    for (int64_t j = 0; j < column->n; j++) width += l->gap + column_width(column, j, l);
    return width;
}

/* No wider than the terminal: names across their columns where there is room, else from top to bottom, else without gaps, else
 * in several panels. */
static layout lay_out_map(names *row, names *column, int width)
{
    shorten(row, larger_int(6, width / 3 - MARGIN), qkv__width);
    layout l = { .left = MARGIN + widest(row), .gap = 1, .across = column->n };
    if (total_width(column, &l) <= width) return l;
    shorten(column, TALLEST, characters);
    l.is_upright = true;
    if (total_width(column, &l) <= width) return l;
    l.gap = 0;
    l.left++; /* the gap between names and cells stays */
    int64_t most = larger_int(1, (width - l.left) / CELL), panels = (column->n + most - 1) / most;
    l.across = (column->n + panels - 1) / panels; /* all about as wide */
    return l;
}

static void put_nth_character(qkv__out *out, const char *text, int n, int gap)
{
    char one[8] = "";
    size_t left = strlen(text), bytes = 0;
    for (; n >= 0 && left; text += bytes, left -= bytes) {
        qkv_utf8_next(text, left, &bytes);
        if (!n--) snprintf(one, sizeof one, "%.*s", (int)bytes, text);
    }
    qkv__out_printf(out, "%*s", gap, "");
    qkv__out_name(out, one, CELL, false);
}

/* Columns from .. to - 1, one line a character, the last characters in the last line. */
static void put_upright(qkv__out *out, const names *column, int64_t from, int64_t to, const layout *l)
{
    int lines = 0;
    for (int64_t j = from; j < to; j++) lines = larger_int(lines, characters(column->text[j]));
    for (int line = 0; line < lines; line++) {
        qkv__out_printf(out, "%*s", l->left, "");
        for (int64_t j = from; j < to; j++)
            put_nth_character(out, column->text[j], line - (lines - characters(column->text[j])), l->gap);
        qkv__out_printf(out, "\n");
    }
}

static void put_across(qkv__out *out, const names *column, const layout *l)
{
    qkv__out_printf(out, "%*s", l->left, "");
    for (int64_t j = 0; j < column->n; j++) {
        qkv__out_printf(out, " ");
        qkv__out_name(out, column->text[j], column_width(column, j, l), false);
    }
    qkv__out_printf(out, "\n");
}

/* ---- all of it ---- */

static void put_row(screen *s, const names *column, int64_t i, int64_t from, int64_t to, const layout *l)
{
    if (!l->gap) qkv__out_printf(&s->out, " ");
    for (int64_t j = from; j < to; j++) {
        qkv__out_printf(&s->out, "%*s", l->gap, "");
        put_cell(s, i * column->n + j, column_width(column, j, l));
    }
    qkv__out_printf(&s->out, "\n");
}

/* Columns from .. to - 1 of the map. */
static void put_panel(screen *s, const names *row, const names *column, int64_t from, int64_t to, const layout *l)
{
    if (l->across < column->n)
        qkv__out_printf(&s->out, qkv__translated("%*s columns %lld to %lld of %lld\n"), smaller_int(l->left, MARGIN), "",
                        (long long)from + 1, (long long)to, (long long)column->n);
    if (l->is_upright) put_upright(&s->out, column, from, to, l);
    else put_across(&s->out, column, l);
    int width = widest(row);
    for (int64_t i = 0; i < row->n; i++) {
        qkv__out_printf(&s->out, "%*s", MARGIN, "");
        qkv__out_name(&s->out, row->text[i], width, true);
        put_row(s, column, i, from, to, l);
    }
}

static void put_panels(screen *s, const names *row, const names *column, const layout *l)
{
    for (int64_t from = 0; from < column->n; from += l->across)
        put_panel(s, row, column, from, qkv__min(from + l->across, column->n), l);
    put_legend(s, l->left);
}

/* ---- without names ---- */

/* The mean of the numbers that block (i, j) of down x across stands for. */
static float mean_of_block(const screen *s, int64_t i, int64_t j, int64_t down, int64_t across)
{
    double sum = 0, n = 0;
    int64_t rows = s->o->rows, columns = s->o->columns;
    for (int64_t r = i * rows / down; r < (i + 1) * rows / down; r++)
        for (int64_t c = j * columns / across; c < (j + 1) * columns / across; c++, n++)
            sum += (double)s->values[r * columns + c];
    return (float)(sum / n);
}

/* Two numbers a character: the upper half of the block in front, the lower one behind. */
static void put_halves(screen *s, int64_t down, int64_t across)
{
    for (int64_t i = 0; i < down; i += 2) {
        for (int64_t j = 0; j < across; j++) {
            put_colour(s, 38, colour_of(s, mean_of_block(s, i, j, down, across)));
            if (i + 1 < down) put_colour(s, 48, colour_of(s, mean_of_block(s, i + 1, j, down, across)));
            qkv__out_printf(&s->out, "▀");
        }
        qkv__out_printf(&s->out, "\033[0m\n");
    }
}

static void put_shades(screen *s, int64_t down, int64_t across)
{
    for (int64_t i = 0; i < down; i++) {
        for (int64_t j = 0; j < across; j++) qkv__out_printf(&s->out, "%s", shade(s, mean_of_block(s, i, j, down, across)));
        qkv__out_printf(&s->out, "\n");
    }
}

static void put_blocks(screen *s)
{
    enum { LOWEST = 10, USUAL_HEIGHT = 50, AROUND = 4 };
    int height = larger_int(s->s->height ? s->s->height : USUAL_HEIGHT, LOWEST);
    int64_t across = qkv__min(s->width, s->o->columns);
    int64_t down = qkv__min((int64_t)(height - AROUND) * (s->s->colour ? 2 : 1), s->o->rows);
    if (s->s->colour) put_halves(s, down, across);
    else put_shades(s, down, across);
    put_legend(s, 0);
    if (across < s->o->columns || down < s->o->rows)
        qkv__out_printf(&s->out, qkv__translated(" %lld x %lld numbers; a block is the mean of those it stands for\n"),
                        (long long)s->o->rows, (long long)s->o->columns);
}

/* With its names, of which a text of many pages has too many. */
static void put_named(screen *s, names *row, names *column)
{
    layout l = lay_out_map(row, column, s->width);
    int64_t panels = (column->n + l.across - 1) / l.across;
    if (panels * row->n <= MOST_LINES) {
        put_panels(s, row, column, &l);
        return;
    }
    put_blocks(s);
    qkv__out_printf(&s->out, qkv__translated(" too many names for a terminal: %s\n"),
                    s->s->elsewhere ? s->s->elsewhere : "a picture has them");
}

static qkv_status put_with_names(screen *s)
{
    names rows = { 0 }, columns = { 0 };
    qkv_status status = make_names(s->o->row_names, s->o->rows, &rows);
    if (!status) status = make_names(s->o->column_names, s->o->columns, &columns);
    if (!status) put_named(s, &rows, &columns);
    free_names(&rows, s->o->rows);
    free_names(&columns, s->o->columns);
    return status;
}

/* ---- from the call ---- */

static qkv_status check_map(const float *values, const qkv_heatmap_opts *o)
{
    int64_t cells;
    if (!values) return qkv__fail(QKV_USAGE, "%s: there are no values", call);
    if (o->rows < 1 || o->columns < 1 || !qkv__shape_count(2, (const int64_t[]){ o->rows, o->columns }, &cells))
        return qkv__fail(QKV_USAGE, "%s: a map of %lld x %lld", call, (long long)o->rows, (long long)o->columns);
    for (int64_t i = 0; o->row_names && i < o->rows; i++)
        if (!o->row_names[i]) return qkv__fail(QKV_USAGE, "%s: row %lld has no name", call, (long long)i);
    for (int64_t i = 0; o->column_names && i < o->columns; i++)
        if (!o->column_names[i]) return qkv__fail(QKV_USAGE, "%s: column %lld has no name", call, (long long)i);
    return QKV_OK;
}

qkv_status qkv_heatmap_text(const float *values, const qkv_heatmap_opts *opts, const qkv_screen_opts *screen_opts,
                            qkv_buffer *out)
{
    enum { NARROWEST = 24, USUAL_WIDTH = 80 };
    qkv_heatmap_opts o;
    qkv_screen_opts shown;
    qkv_status status = QKV__READ_OPTIONS(&o, no_values, opts, call);
    if (!status) status = QKV__READ_OPTIONS(&shown, elsewhere, screen_opts, call);
    if (!status && !out) status = qkv__fail(QKV_USAGE, "%s: a place for the text is needed", call);
    if (!status) status = check_map(values, &o);
    if (status) return status;
    screen s = { .out = qkv__out_begin(out), .values = values, .o = &o, .s = &shown };
    s.width = larger_int(shown.width ? shown.width : USUAL_WIDTH, NARROWEST);
    choose_scale(&s);
    if (o.title) qkv__out_printf(&s.out, "%s\n", o.title);
    if (!o.row_names || !o.column_names) put_blocks(&s);
    else if ((status = put_with_names(&s)) && !s.out.status) s.out.status = status;
    return qkv__out_end(&s.out);
}
