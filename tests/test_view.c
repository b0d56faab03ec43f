/* test_view.c: pictures show what they were given: colours, places, names; and nothing is left behind by a failure. */
#include "draw/view.h"

#include "draw/picture.h"

#include <cairo.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"

static char folder[] = "/tmp/qkv-view-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* A few at a time stay valid. */
static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static char *read_all(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = malloc(1 << 24);
    assert_non_null(text);
    *size = fread(text, 1, (1 << 24) - 1, f);
    text[*size] = '\0';
    fclose(f);
    return text;
}

static bool has(const char *path, const char *piece)
{
    size_t size;
    char *text = read_all(path, &size);
    bool found = strstr(text, piece) != NULL;
    free(text);
    return found;
}

static bool is_same(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_all(a, &n), *y = read_all(b, &m);
    bool same = n == m && !memcmp(x, y, n);
    free(x);
    free(y);
    return same;
}

/* ---- PNG, read back ---- */

typedef struct pixels {
    cairo_surface_t *surface;
    int width, height;
} pixels;

static pixels read_png(const char *path)
{
    pixels p = { .surface = cairo_image_surface_create_from_png(path) };
    assert_int_equal(cairo_surface_status(p.surface), CAIRO_STATUS_SUCCESS);
    p.width = cairo_image_surface_get_width(p.surface);
    p.height = cairo_image_surface_get_height(p.surface);
    return p;
}

static uint32_t pixel(const pixels *p, int x, int y)
{
    const unsigned char *row = cairo_image_surface_get_data(p->surface) + y * cairo_image_surface_get_stride(p->surface);
    return ((const uint32_t *)(const void *)row)[x] & 0xffffff;
}

typedef struct box {
    int left, top, right, bottom, n; /* the first and last pixel of a colour, and how many there are */
} box;

/* Pixels of a colour left of the colour bar. */
static box find_colour(const pixels *p, uint32_t colour)
{
    box b = { .left = p->width, .top = p->height };
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width - 118; x++) {
            if (pixel(p, x, y) != colour) continue;
            if (x < b.left) b.left = x;
            if (x > b.right) b.right = x;
            if (y < b.top) b.top = y;
            if (y > b.bottom) b.bottom = y;
            b.n++;
        }
    return b;
}

/* ---- colours ---- */

static void near_colour(uint32_t got, uint32_t wanted, int within)
{
    for (int shift = 0; shift <= 16; shift += 8)
        assert_true(abs((int)(got >> shift & 255) - (int)(wanted >> shift & 255)) <= within);
}

static void colours_are_the_known_ones(void **state)
{
    (void)state;
    assert_int_equal(qkv_colour(QKV_COLOURS_VIRIDIS, 0), 0x440154);
    assert_int_equal(qkv_colour(QKV_COLOURS_VIRIDIS, 1), 0xfde725);
    near_colour(qkv_colour(QKV_COLOURS_VIRIDIS, 0.5), 0x21918c, 1);
    near_colour(qkv_colour(QKV_COLOURS_VIRIDIS, 0.25), 0x3b528b, 2);
    near_colour(qkv_colour(QKV_COLOURS_VIRIDIS, 0.75), 0x5ec962, 2);
    assert_int_equal(qkv_colour(QKV_COLOURS_RED_BLUE, 0.5), 0xf7f7f7);
    assert_int_equal(qkv_colour(QKV_COLOURS_RED_BLUE, 0), 0x053061);
    assert_int_equal(qkv_colour(QKV_COLOURS_RED_BLUE, 1), 0x67001f);
    assert_int_equal(qkv_colour(QKV_COLOURS_VIRIDIS, -7), 0x440154);
    assert_int_equal(qkv_colour(QKV_COLOURS_VIRIDIS, INFINITY), 0xfde725);
    assert_int_equal(qkv_colour_of(QKV_COLOURS_VIRIDIS, -2, 2, 2), 0xfde725);
    assert_int_equal(qkv_colour_of(QKV_COLOURS_RED_BLUE, -2, 2, 0), 0xf7f7f7);
    assert_int_equal(qkv_colour_of(QKV_COLOURS_VIRIDIS, 1, 1, 1), 0x440154);
    uint32_t grey = qkv_colour(QKV_COLOURS_VIRIDIS, NAN);
    assert_true((grey & 255) == (grey >> 8 & 255) && (grey & 255) == grey >> 16);
    assert_int_equal(qkv_colour_of(QKV_COLOURS_RED_BLUE, 0, 1, NAN), grey);
}

/* ---- heatmaps ---- */

static const char *const words[] = { "I", " love", "我爱", "你", "</s>" };
static const float weights[15] = {
    0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 0.15f, 0.25f, 0.35f, 0.45f, 0.55f
};
static const qkv_heatmap_opts small = { .rows = 3,
                                        .columns = 5,
                                        .row_names = words,
                                        .column_names = words,
                                        .row_axis = "query (attending)",
                                        .column_axis = "key (attended)",
                                        .title = "a < b & c" };

static qkv_status draw(const char *name, const qkv_heatmap_opts *o)
{
    return qkv_picture_heatmaps(in_folder(name), &(qkv_heatmap){ weights, "head 0" }, 1, o);
}

static void cells_have_their_colours_at_their_places(void **state)
{
    (void)state;
    qkv_heatmap_opts o = small;
    o.no_values = 1;
    o.high = 1;
    assert_int_equal(draw("cells.png", &o), QKV_OK);
    pixels p = read_png(in_folder("cells.png"));
    box first = find_colour(&p, qkv_colour_of(QKV_COLOURS_VIRIDIS, 0, 1, weights[0]));
    int side = first.right - first.left + 1;
    assert_true(side >= 80 && first.bottom - first.top + 1 == side);
    for (int i = 0; i < 15; i++) {
        box b = find_colour(&p, qkv_colour_of(QKV_COLOURS_VIRIDIS, 0, 1, weights[i]));
        assert_int_equal(b.n, side * side); /* all of one colour, and none of it elsewhere */
        assert_int_equal(b.left, first.left + i % 5 * (side + 2));
        assert_int_equal(b.top, first.top + i / 5 * (side + 2));
    }
    assert_true(p.width > 5 * side && p.width < 1200 && p.height > 3 * side && p.height < 900);
    cairo_surface_destroy(p.surface);
}

/* Cells that a mask hides are hatched: of two colours that no number has, without a number. */
static void hidden_cells_are_hatched(void **state)
{
    (void)state;
    uint8_t hidden[15] = { 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1 };
    qkv_heatmap_opts o = small;
    o.size = sizeof o;
    o.high = 1;
    o.hidden = hidden;
    o.bar_name = "attention weight";
    o.note = "a model: a text";
    assert_int_equal(draw("hidden.png", &o), QKV_OK);
    pixels p = read_png(in_folder("hidden.png"));
    assert_true(find_colour(&p, qkv_colour_of(QKV_COLOURS_VIRIDIS, 0, 1, weights[1])).n < 100); /* in the bar alone */
    assert_true(find_colour(&p, qkv_colour_of(QKV_COLOURS_VIRIDIS, 0, 1, weights[0])).n > 1000);
    assert_true(find_colour(&p, 0xf4f4f4).n > 9 * 2000);
    cairo_surface_destroy(p.surface);
    assert_int_equal(draw("hidden.svg", &o), QKV_OK);
    const char *svg = in_folder("hidden.svg");
    assert_true(has(svg, ">0.10<") && !has(svg, ">0.20<") && has(svg, ">0.60<") && !has(svg, ">0.80<"));
    assert_true(has(svg, ">masked<") && has(svg, ">attention weight<") && has(svg, ">a model: a text<"));
    o.hidden_name = "掩码";
    assert_int_equal(draw("hidden.svg", &o), QKV_OK);
    assert_true(has(in_folder("hidden.svg"), ">掩码<"));
    o.size = 0; /* a program that was compiled before has no such options */
    assert_int_equal(draw("hidden.svg", &o), QKV_OK);
    assert_true(has(in_folder("hidden.svg"), ">0.20<"));
}

/* Sixteen words in many maps keep their names; where there is no room for all, a line says how many are there. */
static void names_of_grids_are_not_lost(void **state)
{
    enum { WORDS = 16, MAPS = 64, MANY = 90 };
    (void)state;
    static float values[MANY * MANY];
    char text[MANY][16];
    const char *names[MANY];
    qkv_heatmap maps[MAPS];
    for (int i = 0; i < MANY; i++) snprintf(text[i], sizeof text[i], "word%d", i), names[i] = text[i];
    for (int i = 0; i < MAPS; i++) maps[i] = (qkv_heatmap){ values, "head" };
    qkv_heatmap_opts o = { .size = sizeof o, .rows = WORDS, .columns = WORDS, .row_names = names, .column_names = names };
    assert_int_equal(qkv_picture_heatmaps(in_folder("grid.svg"), maps, MAPS, &o), QKV_OK);
    for (int i = 0; i < WORDS; i++) {
        char name[32];
        snprintf(name, sizeof name, ">word%d<", i);
        assert_true(has(in_folder("grid.svg"), name));
    }
    o.rows = o.columns = MANY;
    assert_int_equal(qkv_picture_heatmaps(in_folder("grid.svg"), maps, MAPS, &o), QKV_OK);
    assert_true(has(in_folder("grid.svg"), ">word0<") && has(in_folder("grid.svg"), "th name is written<"));
}

/* Letters of both sides are of one size, also where the cells are strips. */
static void names_of_both_sides_are_of_one_size(void **state)
{
    (void)state;
    static float values[4 * 120];
    char text[120][16];
    const char *names[120];
    for (int i = 0; i < 120; i++) snprintf(text[i], sizeof text[i], "w%d", i), names[i] = text[i];
    const qkv_heatmap_opts o = { .rows = 4, .columns = 120, .row_names = words, .column_names = names };
    assert_int_equal(qkv_picture_heatmaps(in_folder("strip.svg"), &(qkv_heatmap){ values, NULL }, 1, &o), QKV_OK);
    size_t size;
    char *svg = read_all(in_folder("strip.svg"), &size);
    double letters[2] = { 0 };
    const char *const found[] = { strstr(svg, ">I</text>"), strstr(svg, ">w7</text>") };
    for (int i = 0; i < 2; i++) {
        assert_non_null(found[i]);
        const char *at = found[i];
        while (strncmp(at, "font-size=\"", 11)) at--;
        letters[i] = strtod(at + 11, NULL);
    }
    free(svg);
    assert_true(fabs(letters[0] - letters[1]) < 0.01);
}

static void large_maps_are_sharp_and_of_reasonable_size(void **state)
{
    (void)state;
    static const int sizes[] = { 30, 300, 500, 2000 };
    for (int k = 0; k < 4; k++) {
        int64_t n = sizes[k];
        float *values = calloc((size_t)(n * n), sizeof *values);
        const char **names = malloc((size_t)n * sizeof *names);
        for (int64_t i = 0; i < n; i++) names[i] = words[i % 5];
        values[n / 2 * n + n / 4] = 1;
        const qkv_heatmap_opts o = {
            .rows = n, .columns = n, .row_names = names, .column_names = names, .high = 2, .no_values = 1
        };
        assert_int_equal(qkv_picture_heatmaps(in_folder("large.png"), &(qkv_heatmap){ values, NULL }, 1, &o), QKV_OK);
        pixels p = read_png(in_folder("large.png"));
        assert_true(p.width < 3600 && p.height < 3600 && p.width > 900);
        box b = find_colour(&p, qkv_colour(QKV_COLOURS_VIRIDIS, 0.5)),
            rest = find_colour(&p, qkv_colour(QKV_COLOURS_VIRIDIS, 0));
        int side = b.right - b.left + 1, gap = n == 30 ? 2 : 0;
        assert_true(side >= 1 && b.bottom - b.top + 1 == side);
        assert_int_equal(b.n, side * side);
        assert_int_equal(b.left - rest.left, n / 4 * (side + gap));
        assert_int_equal(b.top - rest.top, n / 2 * (side + gap));
        cairo_surface_destroy(p.surface);
        free(values);
        free(names);
    }
}

static void numbers_that_are_none_are_grey(void **state)
{
    (void)state;
    const float values[4] = { NAN, INFINITY, -INFINITY, 0.5f };
    const qkv_heatmap_opts o = { .rows = 2, .columns = 2, .no_values = 1 };
    assert_int_equal(qkv_picture_heatmaps(in_folder("nan.png"), &(qkv_heatmap){ values, NULL }, 1, &o), QKV_OK);
    pixels p = read_png(in_folder("nan.png"));
    box low = find_colour(&p, 0x440154), high = find_colour(&p, 0xfde725);
    assert_int_equal(high.n, 2 * low.n); /* infinity, and the largest number */
    assert_true(low.left < high.left && high.top < low.top && high.bottom == low.bottom);
    assert_int_equal(pixel(&p, low.left + 9, high.top + 9), qkv_colour(QKV_COLOURS_VIRIDIS, NAN));
    cairo_surface_destroy(p.surface);
    const float none[1] = { NAN };
    const qkv_heatmap_opts one = { .rows = 1, .columns = 1 };
    assert_int_equal(qkv_picture_heatmaps(in_folder("nan.svg"), &(qkv_heatmap){ none, NULL }, 1, &one), QKV_OK);
    assert_true(has(in_folder("nan.svg"), ">nan</text>"));
}

static void grids_share_a_bar_and_names(void **state)
{
    (void)state;
    qkv_heatmap maps[6];
    char titles[6][32];
    for (int i = 0; i < 6; i++) {
        snprintf(titles[i], sizeof titles[i], "head %d", i);
        maps[i] = (qkv_heatmap){ weights, titles[i] };
    }
    assert_int_equal(qkv_picture_heatmaps(in_folder("grid.svg"), maps, 6, &small), QKV_OK);
    assert_true(has(in_folder("grid.svg"), ">head 5</text>") && has(in_folder("grid.svg"), ">love</text>"));
    assert_int_equal(qkv_picture_heatmaps(in_folder("grid.png"), maps, 6, &small), QKV_OK);
    pixels wide = read_png(in_folder("grid.png"));
    qkv_heatmap_opts o = small;
    o.across = 1;
    assert_int_equal(qkv_picture_heatmaps(in_folder("tall.png"), maps, 6, &o), QKV_OK);
    pixels tall = read_png(in_folder("tall.png"));
    assert_true(tall.height > wide.height && tall.width < wide.width);
    cairo_surface_destroy(wide.surface);
    cairo_surface_destroy(tall.surface);
}

/* ---- text ---- */

static void labels_can_be_found_in_svg(void **state)
{
    (void)state;
    assert_int_equal(draw("labels.svg", &small), QKV_OK);
    const char *path = in_folder("labels.svg");
    assert_true(has(path, ">I</text>") && has(path, ">love</text>") && has(path, ">我爱</text>"));
    assert_true(has(path, ">&lt;/s&gt;</text>") && has(path, ">a &lt; b &amp; c</text>"));
    assert_true(has(path, ">query (attending)</text>") && has(path, ">key (attended)</text>") && has(path, ">0.15</text>"));
    assert_false(has(path, "No font")); /* needs a font with Chinese: see tools/deps */
}

static void white_space_is_shown(void **state)
{
    (void)state;
    const char *const names[] = { " a", "\n", " ", "  b", "c\x01", "" };
    const qkv_heatmap_opts o = { .rows = 1, .columns = 6, .row_names = names, .column_names = names };
    assert_int_equal(qkv_picture_heatmaps(in_folder("space.svg"), &(qkv_heatmap){ weights, NULL }, 1, &o), QKV_OK);
    assert_true(has(in_folder("space.svg"), ">a</text>") && has(in_folder("space.svg"), ">↵</text>"));
    assert_true(has(in_folder("space.svg"), ">c</text>")); /* XML has no U+0001 */
    assert_false(has(in_folder("space.svg"), "\x01"));
}

static void characters_without_a_font_are_named(void **state)
{
    (void)state;
    const char *const names[] = { "\xEE\x80\x80", "x\xEE\x80\x81y" }; /* private use: U+E000, U+E001 */
    const qkv_heatmap_opts o = { .rows = 2, .columns = 2, .row_names = names, .column_names = names };
    assert_int_equal(qkv_picture_heatmaps(in_folder("private.svg"), &(qkv_heatmap){ weights, NULL }, 1, &o), QKV_OK);
    assert_true(has(in_folder("private.svg"), ">No font here can draw U+E000 (private use), U+E001 (private use)</text>"));
    assert_string_equal(qkv__font_package(0x4E2D), "fonts-wqy-microhei");
    assert_string_equal(qkv__font_package(0x1F600), "fonts-noto-color-emoji");
    assert_string_equal(qkv__font_package(0x0939), "fonts-noto-core");
    assert_null(qkv__font_package(0xE000));
    char note[1024];
    qkv__picture p = { .missing = { 0x4E2D, 0x6587, 0x0939 }, .n_missing = 3 };
    assert_true(qkv__missing_note(&p, note, sizeof note));
    assert_string_equal(note, "No font here can draw U+4E2D, U+6587, U+0939: install fonts that have them, such as Debian's "
                              "fonts-wqy-microhei, fonts-noto-core");
}

static void the_same_picture_gives_the_same_bytes(void **state)
{
    (void)state;
    static const char *const endings[] = { "png", "svg", "PDF" };
    enum { N = 120 }; /* drawn as an image, which cairo numbers */
    float *values = calloc(N * N, sizeof *values);
    const qkv_heatmap_opts o = { .rows = N, .columns = N };
    for (int i = 0; i < 3; i++) {
        char first[16], again[16];
        snprintf(first, sizeof first, "one.%s", endings[i]);
        snprintf(again, sizeof again, "two.%s", endings[i]);
        assert_int_equal(qkv_picture_heatmaps(in_folder(first), &(qkv_heatmap){ values, "我" }, 1, &o), QKV_OK);
        assert_int_equal(draw("other.svg", &small), QKV_OK);
        assert_int_equal(qkv_picture_heatmaps(in_folder(again), &(qkv_heatmap){ values, "我" }, 1, &o), QKV_OK);
        assert_true(is_same(in_folder(first), in_folder(again)));
    }
    assert_true(has(in_folder("one.svg"), "image-rendering:pixelated"));
    assert_false(has(in_folder("one.PDF"), "CreationDate"));
    free(values);
}

/* ---- numbers ---- */

static void steps_are_round(void **state)
{
    (void)state;
    static const double cases[][3] = { { 1, 5, 0.2 }, { 0.83, 6, 0.2 }, { 100, 4, 50 }, { 7, 7, 1 }, { 0.003, 6, 0.0005 } };
    for (int i = 0; i < 5; i++)
        assert_true(fabs(qkv__round_step(cases[i][0], (int)cases[i][1]) - cases[i][2]) < 1e-9 * cases[i][2]);
    char text[QKV__NUMBER_BYTES];
    assert_string_equal(qkv__mark_text(text, 0.6, 0.2), "0.6");
    assert_string_equal(qkv__mark_text(text, -1e-17, 0.2), "0.0");
    assert_string_equal(qkv__mark_text(text, 150, 50), "150");
    assert_string_equal(qkv__mark_text(text, 2e-7, 1e-7), "2e-07");
    assert_string_equal(qkv__number_text(text, "%.2f", -0.001), "0.00");
}

/* ---- curves ---- */

static void curves_are_drawn(void **state)
{
    (void)state;
    double x[100], y[100], falling[100];
    for (int i = 0; i < 100; i++) x[i] = i, y[i] = i, falling[i] = 99 - i;
    y[50] = NAN; /* breaks the line */
    const qkv_curve curves[] = { { "rises", x, y, 100 }, { "falls", x, falling, 100 }, { "nothing", NULL, NULL, 0 } };
    const qkv_curve_opts o = { .title = "lines", .x_axis = "step", .y_axis = "loss" };
    assert_int_equal(qkv_picture_curves(in_folder("curves.png"), curves, 3, &o), QKV_OK);
    pixels p = read_png(in_folder("curves.png"));
    box blue = find_colour(&p, 0x0072b2), red = find_colour(&p, 0xd55e00);
    assert_true(blue.n > 1000 && red.n > 1000);
    cairo_surface_destroy(p.surface);
    assert_int_equal(qkv_picture_curves(in_folder("curves.svg"), curves, 3, &o), QKV_OK);
    const char *path = in_folder("curves.svg");
    assert_true(has(path, ">rises</text>") && has(path, ">step</text>") && has(path, ">loss</text>") &&
                has(path, ">80</text>"));
    const qkv_curve_opts logs = { .log_x = 1, .log_y = 1 };
    assert_int_equal(qkv_picture_curves(in_folder("logs.svg"), curves, 2, &logs), QKV_OK);
    assert_true(has(in_folder("logs.svg"), ">10</text>") && !has(in_folder("logs.svg"), ">80</text>"));
}

static void odd_curves_are_drawn_too(void **state)
{
    (void)state;
    static double odd[][2] = { { 5, 5 },       { -1e308, 1e308 },     { NAN, NAN },         { INFINITY, 3 },
                               { 1e-300, 0 },  { 1e299, -1e299 },     { -4, -4.000000001 }, { 1e-12, 1e12 },
                               { 1e6, 1.1e6 }, { 123456, 123456.01 }, { 2e-310, 5e-320 },   { 0, 0 } };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int log = 0; log < 2; log++) {
            const qkv_curve c = { "odd", odd[i], odd[sizeof odd / sizeof *odd - 1 - i], 2 };
            const qkv_curve_opts o = { .log_x = log, .log_y = log };
            assert_int_equal(qkv_picture_curves(in_folder("odd.svg"), &c, 1, &o), QKV_OK);
            assert_false(has(in_folder("odd.svg"), "nan") || has(in_folder("odd.svg"), "inf"));
        }
    assert_int_equal(qkv_picture_curves(in_folder("odd.pdf"), &(qkv_curve){ 0 }, 1, NULL), QKV_OK);
}

/* ---- flow ---- */

static void flow_has_the_shape_at_every_arrow(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "X  3 × 4",          "W_Q  4 × 8",        "W_K  4 × 8",         "W_V  4 × 16",      "Q  3 × 8",
        "V  3 × 16",         "Q  2 × 3 × 4",      "K  2 × 3 × 4",       "V  2 × 3 × 8",     "scores: Q Kᵀ",
        "scores  2 × 3 × 3", "scaled  2 × 3 × 3", "weights  2 × 3 × 3", "heads  2 × 3 × 8", "split into 2 heads",
        "concat  3 × 16",    "W_O  16 × 4",       "output  3 × 4",
    };
    char piece[64];
    assert_int_equal(
        qkv_picture_flow(in_folder("flow.svg"), &(qkv_flow){ .tokens = 3, .dim = 4, .heads = 2, .d_k = 4, .d_v = 8 }), QKV_OK);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        snprintf(piece, sizeof piece, ">%s</text>", texts[i]);
        if (!has(in_folder("flow.svg"), piece)) fail_msg("no \"%s\"", texts[i]);
    }
    const qkv_flow single = { .tokens = 3, .dim = 4, .heads = 1, .d_k = 2, .d_v = 5, .memory = 7 };
    assert_int_equal(qkv_picture_flow(in_folder("single.svg"), &single), QKV_OK);
    assert_false(has(in_folder("single.svg"), "split") || has(in_folder("single.svg"), "concat"));
    assert_true(has(in_folder("single.svg"), ">weights  3 × 7</text>") && has(in_folder("single.svg"), ">K  7 × 2</text>"));
    assert_true(has(in_folder("single.svg"), ">Y  7 × 4</text>") && has(in_folder("single.svg"), ">W_O  5 × 4</text>"));
    const qkv_flow huge = { .tokens = INT64_MAX, .dim = INT64_MAX, .heads = 1, .d_k = INT64_MAX, .d_v = INT64_MAX };
    assert_int_equal(qkv_picture_flow(in_folder("huge.svg"), &huge), QKV_OK);
}

/* ---- errors ---- */

static void says(qkv_status status, qkv_status wanted, const char *piece)
{
    if (status != wanted || !strstr(qkv_error(), piece))
        fail_msg("status %d, wanted %d; \"%s\", wanted \"%s\"", status, wanted, qkv_error(), piece);
}

static void wrong_maps_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "a", "b\xFF", "c", "d", "e" }, *const missing[] = { "a", NULL, "c", "d", "e" };
    const qkv_heatmap map = { weights, NULL };
#define REFUSED(wanted, piece, ...)                                                  \
    do {                                                                             \
        qkv_heatmap_opts o = { .rows = 3, .columns = 5, __VA_ARGS__ };               \
        says(qkv_picture_heatmaps(in_folder("no.png"), &map, 1, &o), wanted, piece); \
    } while (0)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
    REFUSED(QKV_USAGE, "at least 1", .rows = 0);
    REFUSED(QKV_USAGE, "at least 1", .columns = -1);
    REFUSED(QKV_LIMIT, "20000", .rows = INT64_MAX);
    REFUSED(QKV_LIMIT, "20000", .columns = QKV_PICTURE_SIDE + 1);
    REFUSED(QKV_USAGE, "row 1 is not UTF-8", .row_names = bad);
    REFUSED(QKV_USAGE, "column 1 has no name", .column_names = missing);
    REFUSED(QKV_USAGE, "the title is not UTF-8", .title = "\xC3");
    REFUSED(QKV_USAGE, "rows is not UTF-8", .row_axis = "\xED\xA0\x80");
    REFUSED(QKV_USAGE, "colours from 2 to 1", .low = 2, .high = 1);
    REFUSED(QKV_USAGE, "colours from", .low = NAN, .high = 1);
    REFUSED(QKV_USAGE, "no colours 7", .colours = (qkv_colours)7);
    REFUSED(QKV_USAGE, "side by side", .across = -1);
#pragma GCC diagnostic pop
    assert_int_not_equal(access(in_folder("no.png"), F_OK), 0);
    says(qkv_picture_heatmaps(in_folder("no.png"), NULL, 1, &small), QKV_USAGE, "no maps");
    says(qkv_picture_heatmaps(in_folder("no.png"), &map, 1, NULL), QKV_USAGE, "no options");
    says(qkv_picture_heatmaps(in_folder("no.png"), &map, 0, &small), QKV_USAGE, "at least 1");
    says(qkv_picture_heatmaps(in_folder("no.png"), &(qkv_heatmap){ 0 }, 1, &small), QKV_USAGE, "map 0 has no values");
    says(qkv_picture_heatmaps(in_folder("no.png"), &(qkv_heatmap){ weights, "\xFF" }, 1, &small), QKV_USAGE,
         "map 0 is not UTF-8");
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    static const char *const endings[] = { "no", "no.", "no.jpg", "png", ".png", "no.png.gz", "a.png/no" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        says(draw(endings[i], &small), QKV_UNSUPPORTED, ".png, .svg or .pdf");
    says(draw("no/no.png", &small), QKV_IO, "no/no.png");
    says(qkv_picture_heatmaps(NULL, &(qkv_heatmap){ weights, NULL }, 1, &small), QKV_USAGE, "no path");
    says(qkv_picture_curves(NULL, &(qkv_curve){ 0 }, 1, NULL), QKV_USAGE, "no path");
    says(qkv_picture_curves("x.png", NULL, 1, NULL), QKV_USAGE, "no curves");
    says(qkv_picture_curves("x.png", &(qkv_curve){ 0 }, 0, NULL), QKV_USAGE, "at least 1");
    says(qkv_picture_curves("x.png", &(qkv_curve){ .n = 1 }, 1, NULL), QKV_USAGE, "curve 0 has no points");
    says(qkv_picture_curves("x.png", &(qkv_curve){ .name = "\x80" }, 1, NULL), QKV_USAGE, "curve 0 is not UTF-8");
    qkv_curve *many = calloc(2000, sizeof *many);
    says(qkv_picture_curves("x.png", many, 2000, NULL), QKV_LIMIT, "points");
    free(many);
    says(qkv_picture_flow("x.png", NULL), QKV_USAGE, "nothing");
    says(qkv_picture_flow("x.png", &(qkv_flow){ 3, 4, 0, 4, 8, 0 }), QKV_USAGE, "at least 1");
    says(qkv_picture_flow("x.png", &(qkv_flow){ 3, 4, INT64_MAX, 4, 8, 0 }), QKV_USAGE, "too many");
}

static qkv_status draw_each(void)
{
    const double line[] = { 1, 2, 3 };
    enum { N = 80 };
    static float values[N * N];
    const qkv_heatmap_opts large = { .rows = N, .columns = N };
    qkv_status status = draw("failing.svg", &small);
    if (!status) status = draw("failing.png", &small);
    if (!status) status = qkv_picture_heatmaps(in_folder("failing.pdf"), &(qkv_heatmap){ values, NULL }, 1, &large);
    if (!status) status = qkv_picture_curves(in_folder("failing.png"), &(qkv_curve){ "line", line, line, 3 }, 1, NULL);
    if (!status) status = qkv_picture_flow(in_folder("failing.pdf"), &(qkv_flow){ 3, 4, 2, 4, 8, 0 });
    return status;
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(draw_each) > 40);
}

static void a_file_is_whole_or_as_it_was(void **state)
{
    (void)state;
    qkv_heatmap_opts other = small;
    other.title = NULL;
    assert_int_equal(draw("whole.svg", &small), QKV_OK);
    assert_int_equal(draw("old.svg", &small), QKV_OK);
    assert_int_equal(draw("new.svg", &other), QKV_OK);
    qkv_status status = QKV_IO;
    for (long n = 0; status; n++) {
        use_failing_files(n);
        status = draw("whole.svg", &other);
        bool renamed = failing.renamed, failed = failing.failed;
        assert_int_equal(failing.open, 0);
        qkv__set_files(NULL);
        assert_true(!failed || status == QKV_IO || renamed);
        assert_true(is_same(in_folder("whole.svg"), in_folder(renamed ? "new.svg" : "old.svg")));
        assert_int_equal(draw("whole.svg", &small), QKV_OK);
        if (failed) status = QKV_IO; /* a folder that cannot be synced is no error of the file */
        n += n > 20 ? 97 : 0;        /* it is written 100 bytes at a time */
    }
}

/* ---- threads ---- */

static void *draw_in_thread(void *name)
{
    for (int i = 0; i < 5; i++)
        if (draw(name, &small)) return name;
    return NULL;
}

static void threads_draw_the_same(void **state)
{
    (void)state;
    static char names[4][16] = { "t0.svg", "t1.svg", "t2.svg", "t3.svg" };
    char paths[4][128];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, draw_in_thread, names[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int i = 1; i < 4; i++) assert_true(is_same(paths[0], paths[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_the_known_ones),
        cmocka_unit_test(cells_have_their_colours_at_their_places),
        cmocka_unit_test(hidden_cells_are_hatched),
        cmocka_unit_test(names_of_grids_are_not_lost),
        cmocka_unit_test(names_of_both_sides_are_of_one_size),
        cmocka_unit_test(large_maps_are_sharp_and_of_reasonable_size),
        cmocka_unit_test(numbers_that_are_none_are_grey),
        cmocka_unit_test(grids_share_a_bar_and_names),
        cmocka_unit_test(labels_can_be_found_in_svg),
        cmocka_unit_test(white_space_is_shown),
        cmocka_unit_test(characters_without_a_font_are_named),
        cmocka_unit_test(the_same_picture_gives_the_same_bytes),
        cmocka_unit_test(steps_are_round),
        cmocka_unit_test(curves_are_drawn),
        cmocka_unit_test(odd_curves_are_drawn_too),
        cmocka_unit_test(flow_has_the_shape_at_every_arrow),
        cmocka_unit_test(wrong_maps_are_refused),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(a_file_is_whole_or_as_it_was),
        cmocka_unit_test(threads_draw_the_same),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
