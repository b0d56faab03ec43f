/* heatmap.c: what the library gives as text, shown as this terminal can show it. */
#include "heatmap.h"

#include "errors.h"
#include "language.h"
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool shows_colours(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

/* Lines of the terminal; 0 where there is none. */
static int terminal_height(void)
{
    struct winsize size = { 0 };
    bool is_known = isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row >= 10;
    return is_known ? size.ws_row : 0;
}

qkv_status print_text(qkv_status status, qkv_text *text)
{
    if (status) status = library_failed();
    else fwrite(text->data, 1, text->length, stdout);
    qkv_text_free(text);
    return status;
}

qkv_status print_map(const float *values, const qkv_heatmap_opts *o)
{
    const qkv_screen_opts screen = { .width = terminal_width(),
                                     .height = terminal_height(),
                                     .colour = shows_colours(),
                                     .shades = _("blank to █: 0 to"),
                                     .elsewhere = "\"qkv attend -o FILE\" writes them" };
    qkv_text text = { 0 };
    return print_text(qkv_heatmap_text(values, o, &screen, &text), &text);
}

/* ---- between tokens ---- */

/* What is shown: name i stands for tokens first[i] .. first[i + 1] - 1. */
typedef struct token_names {
    char **at;
    int64_t *first, n;
} token_names;

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

/* A name of its own: a NUL in it, which ends nothing, is one of those that cannot be shown. */
static char *copy_name(const char *text, size_t length)
{
    char *name = malloc(length + 1);
    for (size_t i = 0; name && i < length; i++) name[i] = text[i] ? text[i] : '\001';
    if (name) name[length] = '\0';
    return name;
}

static bool join_tokens(token_side s, const char *all, const size_t *ends, token_names *out)
{
    int64_t at = 0;
    for (size_t begin = 0; at < s.n; begin = ends[at - 1]) {
        out->first[out->n] = at;
        at += qkv_utf8_join(all, begin, ends + at, s.n - at);
        if (!(out->at[out->n] = copy_name(all + begin, ends[at - 1] - begin))) return false;
        out->first[++out->n] = at;
    }
    return true;
}

static qkv_status name_tokens(token_side s, token_names *out)
{
    size_t *ends = malloc((size_t)(s.n + 1) * sizeof *ends);
    char *all = ends ? decode_tokens(s, ends) : NULL;
    out->at = calloc((size_t)(s.n + 1), sizeof *out->at);
    out->first = calloc((size_t)(s.n + 1), sizeof *out->first);
    bool has_memory = all && out->at && out->first && join_tokens(s, all, ends, out);
    free(all);
    free(ends);
    return has_memory ? QKV_OK : fail(QKV_MEMORY, "out of memory");
}

static void free_token_names(token_names *x)
{
    for (int64_t i = 0; i < x->n; i++) free(x->at[i]);
    free(x->at);
    free(x->first);
}

qkv_status print_token_map(token_side row, token_side column, const float *values)
{
    token_names rows = { 0 }, columns = { 0 };
    float *cells = NULL;
    qkv_status status = name_tokens(row, &rows);
    if (!status) status = name_tokens(column, &columns);
    if (!status && !(cells = malloc(sizeof *cells * (size_t)(rows.n * columns.n + 1))))
        status = fail(QKV_MEMORY, "out of memory");
    if (!status && qkv_attention_join(values, rows.first, rows.n, columns.first, columns.n, cells)) status = library_failed();
    if (!status)
        status = print_map(cells, &(qkv_heatmap_opts){ .rows = rows.n,
                                                       .columns = columns.n,
                                                       .row_names = (const char *const *)rows.at,
                                                       .column_names = (const char *const *)columns.at });
    free(cells);
    free_token_names(&rows);
    free_token_names(&columns);
    return status;
}
