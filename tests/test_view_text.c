/* test_view_text.c: maps, curves and the flow of attention as text: what stands where, how wide it is, and what is refused. */
#include "draw/view.h"

#include <qkv/unstable/util.h>

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"

static const char *const rows[] = { " the", "爱" }, *const columns[] = { "a", "b\n", "" };
static const float values[] = { 0, 0.5f, 1, -1, 0.25f, NAN };
static const qkv_heatmap_opts small = { .rows = 2, .columns = 3, .row_names = rows, .column_names = columns };
static qkv_buffer text;

static int free_text(void **state) { return (void)state, qkv_buffer_free(&text), 0; }

/* ---- heatmaps ---- */

static void shades_show_sizes(void **state)
{
    (void)state;
    qkv_heatmap_opts o = small;
    o.title = "Title";
    assert_int_equal(qkv_heatmap_text(values, &o, NULL, &text), QKV_OK);
    assert_string_equal(text.data, "Title\n"
                                   "        a  b· ␣ \n"
                                   "    the    ▒▒ ██\n"
                                   "     爱 ## ░░ ??\n"
                                   "        -1.00 #=-. ░▒▓█ 1.00\n");
    const float positive[] = { 0, 0.5f, 1, 0.6f, 0.25f, NAN };
    assert_int_equal(qkv_heatmap_text(positive, &o, NULL, &text), QKV_OK);
    assert_non_null(strstr(text.data, "     爱 ▓▓ ░░ ??\n        blank to █: 0 to 1.00\n"));
    assert_int_equal(qkv_heatmap_text(positive, &o, &(qkv_screen_opts){ .shades = "up to" }, &text), QKV_OK);
    assert_non_null(strstr(text.data, "        up to 1.00\n"));
}

static void colours_are_those_of_pictures(void **state)
{
    (void)state;
    char cell[64];
    uint32_t c = qkv_colour_of(QKV_COLOURS_RED_BLUE, -1, 1, 0.5f);
    qkv_heatmap_opts o = small;
    o.colours = QKV_COLOURS_RED_BLUE;
    assert_int_equal(qkv_heatmap_text(values, &o, &(qkv_screen_opts){ .colour = 1 }, &text), QKV_OK);
    snprintf(cell, sizeof cell, "\033[48;2;%u;%u;%um  \033[0m", c >> 16, c >> 8 & 255, c & 255);
    assert_non_null(strstr(text.data, cell));
    assert_non_null(strstr(text.data, " -1.00 "));
}

/* The widest line, with all escapes left out. */
static int64_t widest_line(void)
{
    int64_t most = 0;
    for (const char *line = text.data; *line;) {
        size_t length = strcspn(line, "\n");
        int64_t width = qkv_utf8_width(line, length);
        if (width > most) most = width;
        line += length + (line[length] == '\n');
    }
    return most;
}

static void text_is_no_wider_than_the_screen(void **state)
{
    enum { N = 50 };
    static float many[N * N];
    const char *names[N];
    (void)state;
    for (int i = 0; i < N; i++) names[i] = i % 3 ? "word" : "a much longer name";
    const qkv_heatmap_opts o = { .rows = N, .columns = N, .row_names = names, .column_names = names };
    for (int width = 28; width < 200; width += 11) {
        assert_int_equal(qkv_heatmap_text(many, &o, &(qkv_screen_opts){ .width = width }, &text), QKV_OK);
        assert_true(widest_line() <= width);
        assert_true((strstr(text.data, "columns 1 to ") != NULL) == (width < 120));
    }
}

static void large_maps_lose_their_names(void **state)
{
    enum { N = 2100 };
    float *many = calloc(N, sizeof *many);
    const char **names = malloc(N * sizeof *names);
    (void)state;
    for (int i = 0; i < N; i++) names[i] = "name";
    qkv_heatmap_opts o = { .rows = N, .columns = 1, .row_names = names, .column_names = names };
    qkv_screen_opts screen = { .height = 20 };
    assert_int_equal(qkv_heatmap_text(many, &o, &screen, &text), QKV_OK);
    assert_null(strstr(text.data, "name "));
    assert_non_null(strstr(text.data, " 2100 x 1 numbers; a block is the mean of those it stands for\n"
                                      " too many names for a terminal: a picture has them\n"));
    screen.elsewhere = "ask";
    assert_int_equal(qkv_heatmap_text(many, &o, &screen, &text), QKV_OK);
    assert_non_null(strstr(text.data, "terminal: ask\n"));
    o.rows = 1900;
    assert_int_equal(qkv_heatmap_text(many, &o, &screen, &text), QKV_OK);
    assert_non_null(strstr(text.data, "    name "));
    free(names);
    free(many);
}

static void blocks_are_means(void **state)
{
    float many[40] = { 0 };
    (void)state;
    for (int i = 0; i < 40; i++) many[i] = i < 20 ? 1 : 0; /* the upper half */
    const qkv_heatmap_opts o = { .rows = 40, .columns = 1 };
    assert_int_equal(qkv_heatmap_text(many, &o, &(qkv_screen_opts){ .height = 10 }, &text), QKV_OK);
    assert_memory_equal(text.data, "█\n█\n█\n \n \n \n", 15);
}

/* ---- curves and flow ---- */

static void curves_are_bars(void **state)
{
    double x[100], y[100];
    (void)state;
    for (int i = 0; i < 100; i++) x[i] = i, y[i] = i == 50 ? (double)INFINITY : 99 - i;
    qkv_curve c = { .name = "loss", .x = x, .y = y, .n = 3 };
    const qkv_curve_opts step = { .x_axis = "step" };
    assert_int_equal(qkv_curve_text(&c, &step, &text), QKV_OK);
    assert_memory_equal(text.data, "loss\n  step        0   99.0000  ██████████", 44);
    c.n = 100;
    assert_int_equal(qkv_curve_text(&c, NULL, &text), QKV_OK);
    int lines = 0;
    for (const char *at = text.data; (at = strchr(at, '\n')); at++) lines++;
    assert_int_equal(lines, 17);
    assert_non_null(strstr(text.data, "  x       99    0.0000  \n"));
    c.n = 0;
    assert_int_equal(qkv_curve_text(&c, NULL, &text), QKV_OK);
    assert_string_equal(text.data, "");
}

static void flow_has_every_step(void **state)
{
    (void)state;
    qkv_flow f = { .tokens = 3, .dim = 4, .heads = 2, .d_k = 5, .d_v = 6, .memory = 7 };
    assert_int_equal(qkv_flow_text(&f, &text), QKV_OK);
    assert_non_null(strstr(text.data, "Cross-attention, 2 heads\n\n"));
    assert_non_null(strstr(text.data, "    scaled   = scores / sqrt(5)                       2 x 3 x 7\n"));
    assert_non_null(strstr(text.data, "    output   = concat W_O, a matrix 12 x 4            3 x 4\n"));
    const qkv_flow large = { .tokens = 1, .dim = 2000000000, .heads = 1, .d_k = 2000000000, .d_v = 2000000000 };
    assert_int_equal(qkv_flow_text(&large, &text), QKV_OK);
    assert_non_null(strstr(text.data, "= head W_O, a matrix 2000000000 x 2000000000    1 x 2000000000\n"));
    assert_non_null(strstr(text.data, "= X W_Q, a matrix 2000000000 x 2000000000       1 x 2000000000\n"));
    f.heads = 0;
    assert_int_equal(qkv_flow_text(&f, &text), QKV_USAGE);
    f.heads = INT64_MAX;
    assert_int_equal(qkv_flow_text(&f, &text), QKV_USAGE);
}

/* ---- what can go wrong ---- */

static void wrong_maps_are_refused(void **state)
{
    (void)state;
    const char *const without[] = { "a", NULL, "b" };
    qkv_heatmap_opts o = small;
    o.rows = 0;
    assert_int_equal(qkv_heatmap_text(values, &o, NULL, &text), QKV_USAGE);
    o.rows = o.columns = INT64_MAX;
    assert_int_equal(qkv_heatmap_text(values, &o, NULL, &text), QKV_USAGE);
    o = small;
    o.column_names = without;
    assert_int_equal(qkv_heatmap_text(values, &o, NULL, &text), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "column 1 has no name"));
    assert_int_equal(qkv_heatmap_text(NULL, &small, NULL, &text), QKV_USAGE);
    assert_int_equal(qkv_heatmap_text(values, NULL, NULL, &text), QKV_USAGE);
    assert_int_equal(qkv_curve_text(&(qkv_curve){ .n = 2 }, NULL, &text), QKV_USAGE);
}

static qkv_status give_each(void)
{
    const double x[] = { 1, 2 };
    qkv_buffer own = { 0 };
    qkv_status status = qkv_heatmap_text(values, &small, NULL, &own);
    if (!status) status = qkv_curve_text(&(qkv_curve){ .x = x, .y = x, .n = 2 }, NULL, &own);
    if (!status) status = qkv_flow_text(&(qkv_flow){ 3, 4, 2, 5, 6, 0 }, &own);
    qkv_buffer_free(&own);
    return status;
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    qkv_buffer_free(&text);
    assert_true(each_allocation_fails(give_each) > 4);
}

/* A program may have set a locale whose numbers have commas. */
static void numbers_have_a_point(void **state)
{
    (void)state;
    static const char *const locales[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8" };
    bool is_set = false;
    for (int i = 0; i < 4 && !is_set; i++) is_set = setlocale(LC_NUMERIC, locales[i]) != NULL;
    assert_int_equal(qkv_heatmap_text(values, &small, NULL, &text), QKV_OK);
    setlocale(LC_NUMERIC, "C");
    assert_non_null(strstr(text.data, "█ 1.00\n"));
    if (!is_set) skip();
}

static void hidden_cells_are_marked(void **state)
{
    (void)state;
    const float cells[4] = { 1, 0, 0.5f, 0.5f };
    const uint8_t hidden[4] = { 0, 1, 0, 0 };
    const char *const both[] = { "aa", "bb" };
    const qkv_heatmap_opts o = {
        .size = sizeof o, .rows = 2, .columns = 2, .row_names = both, .column_names = both, .hidden = hidden
    };
    for (int colour = 0; colour < 2; colour++) {
        qkv_buffer shown = { 0 };
        assert_int_equal(qkv_heatmap_text(cells, &o, &(qkv_screen_opts){ .colour = colour }, &shown), QKV_OK);
        const char *mark = strstr(shown.data, "//");
        assert_true(mark && mark < strstr(shown.data, "\n    bb")); /* in the first row, */
        assert_non_null(mark = strstr(mark + 2, "// masked"));      /* and then where it is explained */
        assert_null(strstr(mark + 2, "//"));
        qkv_buffer_free(&shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shades_show_sizes),
        cmocka_unit_test(hidden_cells_are_marked),
        cmocka_unit_test(colours_are_those_of_pictures),
        cmocka_unit_test(text_is_no_wider_than_the_screen),
        cmocka_unit_test(large_maps_lose_their_names),
        cmocka_unit_test(blocks_are_means),
        cmocka_unit_test(curves_are_bars),
        cmocka_unit_test(flow_has_every_step),
        cmocka_unit_test(wrong_maps_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(numbers_have_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, free_text);
}
