/* heatmap.c: weights between tokens, as shades for people. */
#include "heatmap.h"

#include "options.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 4, WIDEST = 100, CELL = 2, NAME_BYTES = 128, MOST_PARTS = 8 };

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

static float largest(const float *cells, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        if (cells[i] > most) most = cells[i];
    return most;
}

static const char *shade(float cell, float most)
{
    float part = most > 0 ? cell / most : 0;
    return part < 0.1f ? " " : part < 0.3f ? "░" : part < 0.55f ? "▒" : part < 0.8f ? "▓" : "█";
}

static void print_cell(const char *with, int width)
{
    putchar(' ');
    while (width--) fputs(with, stdout);
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

static void print_cells(const names *row, const names *column, const float *cells)
{
    int left = widest(row);
    float most = largest(cells, row->n * column->n);
    bool upright = is_wide(column, left);
    if (upright) print_upright(column, left);
    else print_across(column, left);
    for (int64_t i = 0; i < row->n; i++) {
        printf("%*s", MARGIN, "");
        print_name(row->text[i], left, true);
        for (int64_t j = 0; j < column->n; j++)
            print_cell(shade(cells[i * column->n + j], most), column_width(column, j, upright));
        putchar('\n');
    }
    printf("%*s blank to █: 0 to %.2f\n", MARGIN + left, "", (double)most);
}

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
        print_cells(&rows, &columns, cells);
    }
    free(cells);
    free_names(&rows);
    free_names(&columns);
    return status;
}
