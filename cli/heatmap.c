/* heatmap.c: numbers as coloured blocks in a terminal, as shades elsewhere. */
#include "heatmap.h"

#include "language.h"
#include "options.h"
#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MARGIN = 4, WIDEST = 100, CELL = 2, NAME_BYTES = 128, MOST_PARTS = 8 };

/* How values are shown. */
typedef struct scale {
    bool colour;
    qkv_colours colours;
    float low, high;
} scale;

/* Tokens as they are shown: name i stands for tokens first[i] .. first[i + 1] - 1. */
typedef struct names {
    char (*text)[NAME_BYTES];
    int64_t *first;
    int64_t n;
} names;

/* ---- names ---- */

static void put_character(char *name, size_t *used, const char *character, size_t bytes)
{
    if (*used + bytes >= NAME_BYTES) return;
    memcpy(name + *used, character, bytes);
    name[ *used += bytes] = '\0';
}

/* The text of a token without the space it starts with; what cannot be shown as a dot. */
static void make_name(const char *text, size_t length, char name[NAME_BYTES])
{
    size_t used = 0, bytes;
    *name = '\0';
    if (length && *text == ' ') text++, length--;
    for (; length; text += bytes, length -= bytes) {
        int32_t c = qkv_utf8_decode(text, length, &bytes);
        if (c < 0) put_character(name, &used, "\xEF\xBF\xBD", 3);
        else if (c < 0x20 || (c >= 0x7F && c < 0xA0)) put_character(name, &used, "·", strlen("·"));
        else put_character(name, &used, text, bytes);
    }
    if (!used) put_character(name, &used, "␣", strlen("␣"));
}

/* How many tokens from `at` on make whole characters; one where none do. Their text goes to *text. */
static int64_t whole_tokens(token_side s, int64_t at, qkv_text *text)
{
    for (int64_t n = 1; n <= MOST_PARTS && at + n <= s.n; n++)
        if (!qkv_tokenizer_decode(s.tokenizer, s.ids + at, (size_t)n, 0, text) && text->length &&
            qkv_utf8_check(text->data, text->length) == text->length)
            return n;
    qkv_tokenizer_decode(s.tokenizer, s.ids + at, 1, 0, text);
    return 1;
}

static qkv_status make_names(token_side s, names *out)
{
    qkv_text text = { 0 };
    *out = (names){ .text = malloc((size_t)(s.n + 1) * NAME_BYTES), .first = malloc((size_t)(s.n + 1) * sizeof(int64_t)) };
    if (!out->text || !out->first) return fail(QKV_MEMORY, "out of memory");
    int64_t at = 0;
    for (; at < s.n; out->n++) {
        out->first[out->n] = at;
        at += whole_tokens(s, at, &text);
        make_name(text.data ? text.data : "", text.length, out->text[out->n]);
    }
    out->first[out->n] = at;
    qkv_text_free(&text);
    return QKV_OK;
}

static qkv_status copy_names(const char *const *from, int64_t n, names *out)
{
    *out = (names){ .text = malloc((size_t)(n + 1) * NAME_BYTES), .first = calloc((size_t)(n + 1), sizeof(int64_t)), .n = n };
    if (!out->text || !out->first) return fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < n; i++) make_name(from[i], strlen(from[i]), out->text[i]);
    return QKV_OK;
}

static void free_names(names *x)
{
    free(x->text);
    free(x->first);
}

/* ---- cells ---- */

/* values (tokens, tokens) as cells (rows, columns). */
static void merge(const names *row, const names *column, const float *values, float *cells)
{
    int64_t across = column->first[column->n];
    for (int64_t i = 0; i < row->n; i++)
        for (int64_t j = 0; j < column->n; j++) {
            double sum = 0;
            for (int64_t r = row->first[i]; r < row->first[i + 1]; r++)
                for (int64_t c = column->first[j]; c < column->first[j + 1]; c++) sum += (double)values[r * across + c];
            cells[i * column->n + j] = (float)(sum / (double)(row->first[i + 1] - row->first[i]));
        }
}

/* ---- colours and shades ---- */

bool shows_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no);
}

static float largest_size(const float *cells, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(cells[i]) && fabsf(cells[i]) > most) most = fabsf(cells[i]);
    return most;
}

static scale scale_of(const named_map *m)
{
    scale s = { shows_colours(), m->colours, m->low, m->high };
    if (s.low != 0 || s.high != 0) return s;
    s.high = largest_size(m->values, m->rows * m->columns);
    if (s.colour && !(s.high > 0)) s.high = 1;
    if (s.colours == QKV_RED_BLUE) s.low = -s.high;
    return s;
}

static const char *shade(const scale *s, float value)
{
    float most = fmaxf(fabsf(s->low), fabsf(s->high)), part = most > 0 ? fabsf(value) / most : 0;
    if (isnan(value)) return "?";
    return part < 0.1f ? " " : part < 0.3f ? "░" : part < 0.55f ? "▒" : part < 0.8f ? "▓" : "█";
}

static void put_colour(int layer, uint32_t c) { printf("\033[%d;2;%u;%u;%um", layer, c >> 16, c >> 8 & 255, c & 255); }

static uint32_t colour_of(const scale *s, float value) { return qkv_colour_of(s->colours, s->low, s->high, value); }

static void print_cell(const scale *s, float value, int width)
{
    putchar(' ');
    if (s->colour) {
        put_colour(48, colour_of(s, value));
        printf("%*s\033[0m", width, "");
        return;
    }
    while (width--) fputs(shade(s, value), stdout);
}

static void print_legend(const scale *s, int left)
{
    if (!s->colour) {
        printf(_("%*s blank to █: 0 to %.2f\n"), left, "", (double)fmaxf(fabsf(s->low), fabsf(s->high)));
        return;
    }
    printf("%*s %.2f ", left, "", (double)s->low);
    for (int i = 0; i <= 20; i++) put_colour(48, qkv_colour(s->colours, i / 20.0)), putchar(' ');
    printf("\033[0m %.2f\n", (double)s->high);
}

/* ---- names of columns ---- */

static int widest(const names *x)
{
    int width = 0;
    for (int64_t i = 0; i < x->n; i++) width = display_width(x->text[i]) > width ? display_width(x->text[i]) : width;
    return width;
}

static int column_width(const names *column, int64_t j, bool upright)
{
    int width = display_width(column->text[j]);
    return upright || width < CELL ? CELL : width;
}

static bool is_wide(const names *column, int left)
{
    int64_t width = MARGIN + left;
    for (int64_t j = 0; j < column->n; j++) width += 1 + column_width(column, j, false);
    return width > WIDEST;
}

static int64_t characters(const char *text)
{
    int64_t n = 0;
    for (size_t left = strlen(text), bytes; left; text += bytes, left -= bytes, n++) qkv_utf8_decode(text, left, &bytes);
    return n;
}

static void print_nth_character(const char *text, int64_t n)
{
    char one[8] = "";
    size_t left = strlen(text), bytes = 0;
    for (; n >= 0 && left; text += bytes, left -= bytes) {
        qkv_utf8_decode(text, left, &bytes);
        if (!n--) snprintf(one, sizeof one, "%.*s", (int)bytes, text);
    }
    putchar(' ');
    print_name(one, CELL, false);
}

/* One line a character, the last characters in the last line. */
static void print_upright(const names *column, int left)
{
    int64_t lines = 0;
    for (int64_t j = 0; j < column->n; j++) lines = characters(column->text[j]) > lines ? characters(column->text[j]) : lines;
    for (int64_t line = 0; line < lines; line++) {
        printf("%*s", MARGIN + left, "");
        for (int64_t j = 0; j < column->n; j++)
            print_nth_character(column->text[j], line - (lines - characters(column->text[j])));
        putchar('\n');
    }
}

static void print_across(const names *column, int left)
{
    printf("%*s", MARGIN + left, "");
    for (int64_t j = 0; j < column->n; j++) {
        putchar(' ');
        print_name(column->text[j], column_width(column, j, false), false);
    }
    putchar('\n');
}

/* ---- all of it ---- */

static void print_cells(const names *row, const names *column, const float *cells, const scale *s)
{
    int left = widest(row);
    bool upright = is_wide(column, left);
    if (upright) print_upright(column, left);
    else print_across(column, left);
    for (int64_t i = 0; i < row->n; i++) {
        printf("%*s", MARGIN, "");
        print_name(row->text[i], left, true);
        for (int64_t j = 0; j < column->n; j++) print_cell(s, cells[i * column->n + j], column_width(column, j, upright));
        putchar('\n');
    }
    print_legend(s, MARGIN + left);
}

/* ---- without names ---- */

/* Columns and lines of the terminal; room for a page where there is none. */
static struct winsize terminal_size(void)
{
    struct winsize size = { 0 };
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20 || size.ws_row < 10)
        size.ws_col = WIDEST, size.ws_row = 50;
    return size;
}

/* The mean of the numbers that block (i, j) of down x across stands for. */
static float mean_of_block(const named_map *m, int64_t i, int64_t j, int64_t down, int64_t across)
{
    double sum = 0, n = 0;
    for (int64_t r = i * m->rows / down; r < (i + 1) * m->rows / down; r++)
        for (int64_t c = j * m->columns / across; c < (j + 1) * m->columns / across; c++, n++)
            sum += (double)m->values[r * m->columns + c];
    return (float)(sum / n);
}

/* Two numbers a character: the upper half of the block in front, the lower one behind. */
static void print_halves(const named_map *m, const scale *s, int64_t down, int64_t across)
{
    for (int64_t i = 0; i < down; i += 2) {
        for (int64_t j = 0; j < across; j++) {
            put_colour(38, colour_of(s, mean_of_block(m, i, j, down, across)));
            if (i + 1 < down) put_colour(48, colour_of(s, mean_of_block(m, i + 1, j, down, across)));
            fputs("▀", stdout);
        }
        puts("\033[0m");
    }
}

static void print_shades(const named_map *m, const scale *s, int64_t down, int64_t across)
{
    for (int64_t i = 0; i < down; i++) {
        for (int64_t j = 0; j < across; j++) fputs(shade(s, mean_of_block(m, i, j, down, across)), stdout);
        putchar('\n');
    }
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static void print_blocks(const named_map *m, const scale *s)
{
    struct winsize size = terminal_size();
    int64_t across = smaller(m->columns, size.ws_col), down = smaller(m->rows, (size.ws_row - 4) * (s->colour ? 2 : 1));
    if (s->colour) print_halves(m, s, down, across);
    else print_shades(m, s, down, across);
    print_legend(s, 0);
    if (across < m->columns || down < m->rows)
        printf(" %lld x %lld numbers; a block is the mean of those it stands for\n", (long long)m->rows, (long long)m->columns);
}

/* A line that a terminal breaks is no map any more. */
static bool fits(const names *row, const names *column)
{
    int64_t width = MARGIN + widest(row);
    bool upright = is_wide(column, widest(row));
    for (int64_t j = 0; j < column->n; j++) width += 1 + column_width(column, j, upright);
    return !isatty(STDOUT_FILENO) || width <= terminal_size().ws_col;
}

qkv_status print_named_map(const named_map *m)
{
    names rows = { 0 }, columns = { 0 };
    qkv_status status = QKV_OK;
    bool is_named = m->row_names && m->column_names;
    scale s = scale_of(m);
    if (is_named) status = copy_names(m->row_names, m->rows, &rows);
    if (is_named && !status) status = copy_names(m->column_names, m->columns, &columns);
    if (!status && is_named && fits(&rows, &columns)) print_cells(&rows, &columns, m->values, &s);
    else if (!status) print_blocks(m, &s);
    free_names(&rows);
    free_names(&columns);
    return status;
}

/* ---- between tokens ---- */

qkv_status print_heatmap(token_side row, token_side column, const float *values)
{
    names rows = { 0 }, columns = { 0 };
    float *cells = NULL;
    qkv_status status = make_names(row, &rows);
    if (!status) status = make_names(column, &columns);
    if (!status && !(cells = malloc(sizeof *cells * (size_t)(rows.n * columns.n + 1))))
        status = fail(QKV_MEMORY, "out of memory");
    if (!status) {
        merge(&rows, &columns, values, cells);
        const named_map m = { .values = cells, .rows = rows.n, .columns = columns.n };
        scale s = scale_of(&m);
        if (fits(&rows, &columns)) print_cells(&rows, &columns, cells, &s);
        else print_blocks(&m, &s);
    }
    free(cells);
    free_names(&rows);
    free_names(&columns);
    return status;
}
