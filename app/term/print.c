/* print.c: tables of numbers, aligned by what a terminal shows. */
#include "print.h"

#include "language.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NAME_BYTES = 64, CELL_BYTES = 64 };

static const char *label(const labels *l, int64_t i, char text[NAME_BYTES])
{
    if (l->names) return l->names[i];
    snprintf(text, NAME_BYTES, "%s%lld", l->prefix ? l->prefix : "", (long long)i);
    return text;
}

int display_width(const char *text) { return (int)qkv_utf8_width(text, strlen(text)); }

size_t fitting_bytes(const char *text, int columns)
{
    size_t used = 0;
    for (size_t left = strlen(text), bytes; left; used += bytes, left -= bytes) {
        qkv_utf8_next(text + used, left, &bytes);
        if ((columns -= (int)qkv_utf8_width(text + used, bytes)) < 0) break;
    }
    return used;
}

static int larger(int a, int b) { return a > b ? a : b; }

int terminal_width(void)
{
    enum { NARROWEST = 24 };
    struct winsize size = { 0 };
    const char *columns = getenv("COLUMNS");
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col) return larger(size.ws_col, NARROWEST);
    long given = columns ? strtol(columns, NULL, 10) : 0;
    return given > 0 && given <= 10000 ? larger((int)given, NARROWEST) : 80;
}

void print_name(const char *name, int width, bool right)
{
    int gap = larger(width - display_width(name), 0);
    if (right) printf("%*s%s", gap, "", name);
    else printf("%s%*s", name, gap, "");
}

/* ---- paragraphs ---- */

/* Whether a line may end between two characters. */
static bool may_break(const char *before, const char *after)
{
    static const char closing[] = "，。、；：？！）】》”’…,.;:?!)%", opening[] = "（【《“‘(";
    if (*before == ' ' || *after == ' ') return true;
    return (display_width(before) == 2 || display_width(after) == 2) && !strstr(closing, after) && !strstr(opening, before);
}

/* The character at text, as a text of its own; gives its bytes. */
static size_t character_at(const char *text, char one[8])
{
    size_t bytes = 0;
    if (*text) qkv_utf8_next(text, strlen(text), &bytes);
    snprintf(one, 8, "%.*s", (int)bytes, text);
    return bytes;
}

size_t piece_bytes(const char *text)
{
    char one[8], next[8];
    size_t bytes = character_at(text, one);
    while (text[bytes] && text[bytes] != '\n') {
        size_t more = character_at(text + bytes, next);
        if (may_break(one, next)) break;
        memcpy(one, next, sizeof one);
        bytes += more;
    }
    return bytes;
}

void write_wrapped(FILE *f, const char *text, int column, const char *margin, int width)
{
    bool is_start = true, space = false; /* of a line; before what follows */
    int indent = display_width(margin);
    while (*text) {
        if (*text == ' ') space = !is_start, text++;
        else if (*text == '\n') fprintf(f, "\n%s", margin), column = indent, is_start = true, space = false, text++;
        else {
            size_t bytes = piece_bytes(text);
            int taken = (int)qkv_utf8_width(text, bytes);
            if (!is_start && column + space + taken > width) fprintf(f, "\n%s", margin), column = indent, space = false;
            fprintf(f, "%s%.*s", space ? " " : "", (int)bytes, text);
            column += space + taken;
            is_start = space = false;
            text += bytes;
        }
    }
}

void print_wrapped(const char *text, int column, int indent, int width)
{
    char margin[64];
    snprintf(margin, sizeof margin, "%*s", indent, "");
    write_wrapped(stdout, text, column, margin, width);
}

/* ---- tables ---- */

/* Numbers too long to line up are shown by their leading digits. */
static int format_number(char text[CELL_BYTES], float x, int decimals)
{
    if (isnan(x)) return snprintf(text, CELL_BYTES, "nan");  /* its sign means nothing */
    if (fabsf(x) < 0.5f * powf(10, (float)-decimals)) x = 0; /* no "-0.000" */
    if (isfinite(x) && fabsf(x) >= 1e9f) return snprintf(text, CELL_BYTES, "%.*e", decimals, (double)x);
    return snprintf(text, CELL_BYTES, "%.*f", decimals, (double)x);
}

static float row_sum(const table *t, int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < t->columns; j++) sum += (double)t->values[i * t->columns + j];
    return (float)sum;
}

static int name_width(const labels *l, int64_t n)
{
    char text[NAME_BYTES];
    int width = 0;
    for (int64_t i = 0; i < n; i++) width = larger(width, display_width(label(l, i, text)));
    return width;
}

static int64_t shown_rows(const table *t) { return t->most_rows && t->most_rows < t->rows ? t->most_rows : t->rows; }

static int format_cell(char text[CELL_BYTES], const table *t, int64_t i)
{
    if (t->hidden && t->hidden[i]) return snprintf(text, CELL_BYTES, "///");
    return format_number(text, t->values[i], t->decimals);
}

static int cell_width(const table *t)
{
    char text[CELL_BYTES];
    int width = larger(name_width(&t->column, t->columns), t->decimals + 2);
    for (int64_t i = 0; i < shown_rows(t) * t->columns; i++) width = larger(width, format_cell(text, t, i));
    return width;
}

static int64_t fitting_columns(const table *t, int left, int width)
{
    enum { INDENT = 4, ELLIPSIS = 3, SUM = 12 };
    int room = terminal_width() - INDENT - left - (t->sums ? SUM : 0);
    int64_t n = larger(1, room / (width + 2));
    if (t->fit == FIT_NOT || n >= t->columns) return t->columns;
    return t->fit == FIT_CUT ? larger(1, (room - ELLIPSIS) / (width + 2)) : n;
}

/* Columns from .. to - 1. */
static void print_columns(const table *t, int64_t from, int64_t to, int left, int width)
{
    char text[CELL_BYTES];
    const char *after = t->fit == FIT_CUT && to < t->columns ? "  …" : "";
    bool sums = t->sums && to == t->columns;
    printf("    %*s", left, "");
    for (int64_t j = from; j < to; j++) fputs("  ", stdout), print_name(label(&t->column, j, text), width, true);
    if (sums) printf("  |  %s", _("sum"));
    puts(after);
    for (int64_t i = 0; i < shown_rows(t); i++) {
        fputs("    ", stdout);
        print_name(label(&t->row, i, text), left, false);
        for (int64_t j = from; j < to; j++) format_cell(text, t, i * t->columns + j), printf("  %*s", width, text);
        if (sums) format_number(text, row_sum(t, i), t->decimals), printf("  |  %s", text);
        puts(after);
    }
    if (shown_rows(t) < t->rows) puts("    …");
}

void print_table(const table *t)
{
    int left = name_width(&t->row, shown_rows(t)), width = cell_width(t);
    int64_t across = fitting_columns(t, left, width);
    for (int64_t from = 0; from < t->columns || from == 0; from += across) {
        print_columns(t, from, from + across < t->columns ? from + across : t->columns, left, width);
        if (t->fit != FIT_PANELS) break;
    }
}

const char *last_part(const char *folder)
{
    static char name[256];
    size_t end = strlen(folder);
    while (end && folder[end - 1] == '/') end--;
    size_t begin = end;
    while (begin && folder[begin - 1] != '/') begin--;
    snprintf(name, sizeof name, "%.*s", (int)(end - begin), folder + begin);
    return *name && strcmp(name, ".") ? name : "qkv";
}
