/* print_maps.c: what the library gives as text, shown as this terminal can show it. */
#include "view.h"
#include "print_maps.h"
#include "../report/attention.h"

#include "../term/errors.h"
#include "../term/language.h"
#include "../term/print.h"

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

qkv_status print_text(qkv_status status, qkv_buffer *text)
{
    if (status) status = library_failed();
    else fwrite(text->data, 1, text->length, stdout);
    qkv_buffer_free(text);
    return status;
}

qkv_screen_opts this_screen(void)
{
    return (qkv_screen_opts){ .width = terminal_width(),
                              .height = terminal_height(),
                              .colour = shows_colours(),
                              .shades = _("blank to █: 0 to"),
                              .elsewhere = _("\"qkv attend -o FILE\" writes them") };
}

qkv_status print_map(const float *values, const qkv_heatmap_opts *o)
{
    const qkv_screen_opts screen = this_screen();
    qkv_buffer text = { 0 };
    return print_text(qkv_heatmap_text(values, o, &screen, &text), &text);
}

/* ---- between tokens ---- */

qkv_status print_token_map(token_side row, token_side column, const float *values)
{
    qkv_axis *rows = NULL, *columns = NULL;
    qkv_status status = qkv_token_names(row.tokenizer, row.ids, row.n, &rows);
    if (!status) status = qkv_token_names(column.tokenizer, column.ids, column.n, &columns);
    status = status ? library_failed() : QKV_OK;
    float *cells = status ? NULL : malloc(sizeof *cells * (size_t)(rows->n * columns->n + 1));
    if (!status && !cells) status = fail(QKV_MEMORY, "out of memory");
    if (!status && qkv_attention_join(values, rows->first, rows->n, columns->first, columns->n, cells))
        status = library_failed();
    if (!status)
        status = print_map(
            cells, &(qkv_heatmap_opts){
                       .rows = rows->n, .columns = columns->n, .row_names = rows->names, .column_names = columns->names });
    free(cells);
    qkv_free(rows);
    qkv_free(columns);
    return status;
}
