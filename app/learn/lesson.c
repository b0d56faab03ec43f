/* lesson.c: what every lesson uses: paragraphs and pictures. */
#include "../draw/view.h"
#include "lesson.h"

#include "../term/errors.h"
#include "../term/print.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_WIDTH = 78, PARAGRAPH_BYTES = 4096, LONGEST_PICTURE_NAME = 64 };

const char *lesson_data;
static const char *picture_folder;

/* ---- paragraphs ---- */

void say(const char *format, ...)
{
    char text[PARAGRAPH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_wrapped(text, 0, 0, LINE_WIDTH);
    puts("\n");
}

void say_heading(const char *text)
{
    puts(text);
    for (int i = 0; i < display_width(text); i++) putchar('-');
    puts("\n");
}

/* ---- numbers ---- */

void show_numbers(const float *values, int64_t rows, int64_t columns, labels row, labels column, int decimals)
{
    print_table(
        &(table){ .values = values, .rows = rows, .columns = columns, .row = row, .column = column, .decimals = decimals });
    putchar('\n');
}

void show_shape(const char *name, const qkv_tensor *x)
{
    fputs("    ", stdout);
    print_name(name, 44, false);
    for (int i = 0; i < qkv_tensor_ndim(x); i++) printf("%s%lld", i ? ", " : "  (", (long long)qkv_tensor_dim(x, i));
    puts(")");
}

const char *large_number(double n, char text[32])
{
    char *unit;
    double size = strtod(_("1e6 million"), &unit); /* and its name */
    snprintf(text, 32, "%.*f%s", n / size < 1000 && size > 1e5 ? 1 : 0, n / size, unit);
    return text;
}

double largest_difference(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

weight_counts count_weights(const qkv_config *o)
{
    double d = (double)o->dim, heads = (double)o->heads, kv_heads = o->kv_heads ? (double)o->kv_heads : heads;
    double biases = o->no_bias ? 0 : 1, matrices = o->activation >= QKV_ACTIVATION_SWIGLU ? 3 : 2;
    double layers = o->encoder_layers + o->decoder_layers, cross = o->encoder_layers ? o->decoder_layers : 0;
    double kv = d * kv_heads / heads, norm = o->norm == QKV_NORM_RMS ? d : 2 * d, d_ff = (double)o->d_ff;
    weight_counts n = {
        .embedding = (double)o->vocab_size * d * (o->untied ? 2 : 1),
        .attention = (layers + cross) * (2 * d * (d + kv) + biases * (2 * d + 2 * kv)),
        .feed_forward = layers * (matrices * d * d_ff + biases * (d + (matrices - 1) * d_ff)),
        .norms = (2 * layers + cross + (o->pre_norm ? (o->encoder_layers > 0) + (o->decoder_layers > 0) : 0)) * norm,
    };
    n.total = n.embedding + n.attention + n.feed_forward + n.norms;
    return n;
}

/* ---- pictures ---- */

qkv_status set_picture_folder(const char *folder)
{
    if (strlen(folder) + LONGEST_PICTURE_NAME > PATH_MAX) return fail(QKV_IO, "%s: the name is too long", folder);
    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail(QKV_IO, "%s: cannot make the folder: %s", folder, _(strerror(errno)));
    picture_folder = folder;
    return QKV_OK;
}

const char *picture_path(const char *name)
{
    static char path[PATH_MAX + LONGEST_PICTURE_NAME];
    if (!picture_folder) return NULL;
    snprintf(path, sizeof path, "%s/%s.png", picture_folder, name);
    return path;
}

void tell_picture(const char *path)
{
    fflush(stdout); /* so that it stands where the picture belongs */
    fprintf(stderr, _("Picture: %s\n"), path);
}

qkv_status draw_maps(const char *name, const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *opts)
{
    const char *path = picture_path(name);
    if (!path) return QKV_OK;
    if (qkv_picture_heatmaps(path, maps, n, opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

qkv_status draw_curves(const char *name, const qkv_curve *curves, int64_t n, const qkv_curve_opts *opts)
{
    const char *path = picture_path(name);
    if (!path) return QKV_OK;
    if (qkv_picture_curves(path, curves, n, opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}
