/* heatmap.c: numbers as coloured blocks in a terminal, as shades elsewhere. */
#include "heatmap.h"

#include "language.h"
#include "errors.h"
#include "print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    MARGIN = 4,
    CELL = 2,
    NAME_BYTES = 128,
    TALLEST = 16,     /* characters of a name that is written from top to bottom */
    MOST_LINES = 2000 /* of cells: a larger map is shown without names */
};

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
    if (*used + bytes + strlen("…") >= NAME_BYTES) return;
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

/* The texts of all tokens in a row; token i ends before ends[i]. An id that the tokenizer does not have is a space. To be
 * freed; NULL when memory is out. */
static char *decode_tokens(token_side s, size_t *ends)
{
    char *all = NULL;
    size_t size, length = 0;
    qkv_text text = { 0 };
    FILE *to = open_memstream(&all, &size);
    for (int64_t i = 0; i < s.n && to; i++) {
        bool is_known = !qkv_tokenizer_decode(s.tokenizer, s.ids + i, 1, 0, &text);
        if (is_known) fwrite(text.data, 1, text.length, to);
        else putc(' ', to);
        ends[i] = length += is_known ? text.length : 1;
    }
    qkv_text_free(&text);
    if (to && !fclose(to)) return all;
    free(all);
    return NULL;
}

static qkv_status make_names(token_side s, names *out)
{
    size_t *ends = malloc((size_t)(s.n + 1) * sizeof *ends);
    char *all = ends ? decode_tokens(s, ends) : NULL;
    *out = (names){ .text = malloc((size_t)(s.n + 1) * NAME_BYTES), .first = malloc((size_t)(s.n + 1) * sizeof(int64_t)) };
    bool has_memory = all && out->text && out->first;
    int64_t at = 0;
    for (size_t begin = 0; has_memory && at < s.n; out->n++, begin = ends[at - 1]) {
        out->first[out->n] = at;
        at += qkv_utf8_join(all, begin, ends + at, s.n - at);
        make_name(all + begin, ends[at - 1] - begin, out->text[out->n]);
    }
    if (has_memory) out->first[out->n] = at;
    free(all);
    free(ends);
    return has_memory ? QKV_OK : fail(QKV_MEMORY, "out of memory");
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

/* ---- colours and shades ---- */

bool shows_colours(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
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
    if (s.colours == QKV_COLOURS_RED_BLUE) s.low = -s.high;
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
    if (s->colour) {
        put_colour(48, colour_of(s, value));
        printf("%*s\033[0m", width, "");
        return;
    }
    while (width--) fputs(shade(s, value), stdout);
}

static int smaller_int(int a, int b) { return a < b ? a : b; }
static int larger_int(int a, int b) { return a > b ? a : b; }

/* Under the cells, or further to the left where there is no room for it. */
static void print_legend(const scale *s, int left)
{
    char text[128];
    if (!s->colour) {
        snprintf(text, sizeof text, _("blank to █: 0 to %.2f"), (double)fmaxf(fabsf(s->low), fabsf(s->high)));
        printf("%*s %s\n", larger_int(0, smaller_int(left, terminal_width() - 1 - display_width(text))), "", text);
        return;
    }
    snprintf(text, sizeof text, "%.2f  %.2f", (double)s->low, (double)s->high);
    int blocks = smaller_int(20, terminal_width() - left - 3 - display_width(text));
    if (blocks < 4) left = 0, blocks = smaller_int(20, larger_int(4, terminal_width() - 3 - display_width(text)));
    printf("%*s %.2f ", left, "", (double)s->low);
    for (int i = 0; i <= blocks; i++) put_colour(48, qkv_colour(s->colours, i / (double)blocks)), putchar(' ');
    printf("\033[0m %.2f\n", (double)s->high);
}

/* ---- names along the sides ---- */

static int widest(const names *x)
{
    int width = 0;
    for (int64_t i = 0; i < x->n; i++) width = larger_int(width, display_width(x->text[i]));
    return width;
}

static int characters(const char *text)
{
    int n = 0;
    for (size_t left = strlen(text), bytes; left; text += bytes, left -= bytes, n++) qkv_utf8_decode(text, left, &bytes);
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
    return l->is_upright ? CELL : larger_int(CELL, display_width(column->text[j]));
}

static int64_t total_width(const names *column, const layout *l)
{
    int64_t width = l->left;
    for (int64_t j = 0; j < column->n; j++) width += l->gap + column_width(column, j, l);
    return width;
}

/* No wider than the terminal: names across their columns where there is room, else from top to bottom, else without gaps, else
 * in several panels. */
static layout lay_out_map(names *row, names *column)
{
    int width = terminal_width();
    shorten(row, larger_int(6, width / 3 - MARGIN), display_width);
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

static void print_nth_character(const char *text, int n, int gap)
{
    char one[8] = "";
    size_t left = strlen(text), bytes = 0;
    for (; n >= 0 && left; text += bytes, left -= bytes) {
        qkv_utf8_decode(text, left, &bytes);
        if (!n--) snprintf(one, sizeof one, "%.*s", (int)bytes, text);
    }
    printf("%*s", gap, "");
    print_name(one, CELL, false);
}

/* Columns from .. to - 1, one line a character, the last characters in the last line. */
static void print_upright(const names *column, int64_t from, int64_t to, const layout *l)
{
    int lines = 0;
    for (int64_t j = from; j < to; j++) lines = larger_int(lines, characters(column->text[j]));
    for (int line = 0; line < lines; line++) {
        printf("%*s", l->left, "");
        for (int64_t j = from; j < to; j++)
            print_nth_character(column->text[j], line - (lines - characters(column->text[j])), l->gap);
        putchar('\n');
    }
}

static void print_across(const names *column, const layout *l)
{
    printf("%*s", l->left, "");
    for (int64_t j = 0; j < column->n; j++) {
        putchar(' ');
        print_name(column->text[j], column_width(column, j, l), false);
    }
    putchar('\n');
}

/* ---- all of it ---- */

/* Columns from .. to - 1 of the map. */
static void print_panel(const names *row, const names *column, const float *cells, int64_t from, int64_t to, const layout *l,
                        const scale *s)
{
    if (l->across < column->n)
        printf("%*s columns %lld to %lld of %lld\n", smaller_int(l->left, MARGIN), "", (long long)from + 1, (long long)to,
               (long long)column->n);
    if (l->is_upright) print_upright(column, from, to, l);
    else print_across(column, l);
    int width = widest(row);
    for (int64_t i = 0; i < row->n; i++) {
        printf("%*s", MARGIN, "");
        print_name(row->text[i], width, true);
        if (!l->gap) putchar(' ');
        for (int64_t j = from; j < to; j++) {
            printf("%*s", l->gap, "");
            print_cell(s, cells[i * column->n + j], column_width(column, j, l));
        }
        putchar('\n');
    }
}

static void print_cells(const names *row, const names *column, const float *cells, const layout *l, const scale *s)
{
    for (int64_t from = 0; from < column->n; from += l->across) {
        int64_t to = from + l->across;
        print_panel(row, column, cells, from, to < column->n ? to : column->n, l, s);
    }
    print_legend(s, l->left);
}

/* ---- without names ---- */

/* Lines of the terminal; room for a page where there is none. */
static int terminal_height(void)
{
    struct winsize size = { 0 };
    bool is_known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row >= 10;
    return is_known ? size.ws_row : 50;
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

static void print_blocks(const named_map *m, const scale *s)
{
    int64_t across = terminal_width(), down = (terminal_height() - 4) * (s->colour ? 2 : 1);
    if (across > m->columns) across = m->columns;
    if (down > m->rows) down = m->rows;
    if (s->colour) print_halves(m, s, down, across);
    else print_shades(m, s, down, across);
    print_legend(s, 0);
    if (across < m->columns || down < m->rows)
        printf(" %lld x %lld numbers; a block is the mean of those it stands for\n", (long long)m->rows, (long long)m->columns);
}

/* With its names, of which a text of many pages has too many. */
static void print_with_names(names *row, names *column, const named_map *m, const scale *s)
{
    layout l = lay_out_map(row, column);
    int64_t panels = (column->n + l.across - 1) / l.across;
    if (panels * row->n <= MOST_LINES) {
        print_cells(row, column, m->values, &l, s);
        return;
    }
    print_blocks(m, s);
    puts(" too many names for a terminal: \"qkv attend -o FILE\" writes them");
}

qkv_status print_named_map(const named_map *m)
{
    names rows = { 0 }, columns = { 0 };
    qkv_status status = QKV_OK;
    bool is_named = m->row_names && m->column_names;
    scale s = scale_of(m);
    if (is_named) status = copy_names(m->row_names, m->rows, &rows);
    if (is_named && !status) status = copy_names(m->column_names, m->columns, &columns);
    if (!status && is_named) print_with_names(&rows, &columns, m, &s);
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
    if (!status && qkv_attention_join(values, rows.first, rows.n, columns.first, columns.n, cells)) status = library_failed();
    if (!status) {
        const named_map m = { .values = cells, .rows = rows.n, .columns = columns.n };
        scale s = scale_of(&m);
        print_with_names(&rows, &columns, &m, &s);
    }
    free(cells);
    free_names(&rows);
    free_names(&columns);
    return status;
}
