/* qkv/view.h: pictures. Heatmaps, curves and the flow of attention, drawn once and written as PNG, SVG or PDF; or as text, for
 * a terminal.
 *
 * The ending of the path chooses the format: .png, .svg or .pdf, in any case. A file is written whole or not at all. Names and
 * titles are UTF-8 of any script; what no font on the machine can draw is shown as U+XXXX, and a line under the picture says
 * which characters and what to install. The text of SVG and PDF can be searched and copied. Everything is read during the call
 * only.
 *
 * Threads: any number of calls at a time; they draw one after the other.
 *
 * Errors of every call: USAGE for NULL, a size that does not fit, or text that is not UTF-8; UNSUPPORTED for another ending
 * (the sentence names those that are known) or a machine without any font; LIMIT for a picture of more than QKV_PICTURE_SIDE
 * points on a side; IO; MEMORY. Of what gives text: USAGE for NULL and for sizes; MEMORY. */
#ifndef QKV_VIEW_H
#define QKV_VIEW_H

#include <qkv/unstable/inspect.h>
#include <qkv/unstable/buffer.h>
#include "../report/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QKV_PICTURE_SIDE 20000

/* ---- colours ---- */
typedef enum qkv_colours {
    QKV_COLOURS_VIRIDIS, /* dark blue, green, yellow: for weights */
    QKV_COLOURS_RED_BLUE /* blue, white, red: for signed tables */
} qkv_colours;

/* The colour of x, which is 0 at the low end and 1 at the high one and is moved there from outside, as 0xRRGGBB; grey for
 * NaN. */
QKV_API uint32_t qkv_colour(qkv_colours colours, double x);

/* The colour of the cells in a picture whose values go from low to high. */
QKV_API uint32_t qkv_colour_of(qkv_colours colours, float low, float high, float value);

/* ---- heatmaps ---- */
typedef struct qkv_heatmap {
    const float *values; /* (rows, columns) */
    const char *title;   /* above it; NULL: none */
} qkv_heatmap;

/* What the maps of one picture share; zero means the default shown. */
typedef struct qkv_heatmap_opts {
    size_t size;
    int64_t rows, columns;                              /* of every map, at least 1 */
    const char *const *row_names, *const *column_names; /* NULL: places from 0, every so often */
    const char *row_axis, *column_axis;                 /* what rows and columns are; NULL: nothing is written */
    const char *title;                                  /* of the whole picture */
    qkv_colours colours;
    float low, high;       /* values at the ends of the colours. When both are 0: viridis 0 to the largest value (1 when none is
                        above 0), red-blue the largest size on both sides; of finite values */
    int across;            /* maps side by side; 0: as fits */
    int no_values;         /* 1: no numbers in the cells; else where they fit, of one map alone */
    const uint8_t *hidden; /* (rows, columns): 1 where a mask hides the cell of every map: it is hatched and has no number;
                                NULL: nowhere */
    const char *hidden_name; /* what hatching means; NULL: "masked" */
    const char *bar_name;    /* what the colours mean, beside their bar; NULL: nothing is written */
    const char *note;        /* a line under the picture, such as whose maps they are; NULL: none */
} qkv_heatmap_opts;

/* Draws n maps with one colour bar: one map large with its names on both axes; several as a grid, names where they can be read.
 * Cells grow smaller as they become more, down to a point; where names would overlap, every so many cells have one, and a line
 * under the picture says so. */
QKV_API qkv_status qkv_picture_heatmaps(const char *path, const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *opts);

/* What a map as text is shown on; zero means the default shown. */
typedef struct qkv_screen_opts {
    size_t size;
    int width;             /* columns; 0: 80; 24 at least are used */
    int height;            /* lines, which bound a map without names; 0: 50; 10 at least are used */
    int colour;            /* 1: coloured blocks, by the escapes that terminals have for 24 bits; else shades of blocks */
    const char *shades;    /* of maps without negative numbers: what precedes the largest; NULL: "blank to █: 0 to" */
    const char *elsewhere; /* where to find names that are too many; NULL: "a picture has them" */
} qkv_screen_opts;

/* One map, values (rows, columns), as lines of text in *out, which is yours: its title where it has one, the names, the cells,
 * and what the colours or shades mean. It is no wider than the screen: names that do not fit are shortened or written from top
 * to bottom, and columns that do not fit follow in further panels. Only a map of more than 2,000 lines loses its names; one
 * without them may have a block for the mean of several numbers. Shades ░▒▓█ show the sizes of numbers, .-=# of negative ones; the
 * key names both. Hidden cells are shown as //. Of opts, axes, across, no_values, bar_name and note mean nothing here; where low
 * and high are 0, high is the largest size. */
QKV_API qkv_status qkv_heatmap_text(const float *values, const qkv_heatmap_opts *opts, const qkv_screen_opts *screen,
                                    qkv_buffer *out);

/* ---- maps of attention, see qkv_attention_maps_make() in <qkv/unstable/inspect.h> ---- */

/* As text in *out, which is yours: the title of all, and each map by qkv_heatmap_text(), of several with its own title. NULL
 * screen means all zero. */
QKV_API qkv_status qkv_attention_maps_text(const qkv_attention_maps *maps, const qkv_screen_opts *screen, qkv_buffer *out);

/* As a file, by its ending: .csv or .json as qkv_attention_maps_csv() and qkv_attention_maps_json() have them, else a picture
 * with its axes named and a note under it (NULL: none). */
QKV_API qkv_status qkv_attention_maps_write(const char *path, const qkv_attention_maps *maps, const char *note);

/* ---- curves ---- */
typedef struct qkv_curve {
    const char *name;
    const double *x, *y; /* n points; one that is not finite breaks the line */
    int64_t n;
} qkv_curve;

typedef struct qkv_curve_opts {
    size_t size;
    const char *title, *x_axis, *y_axis; /* NULL: none */
    int log_x, log_y;                    /* 1: a logarithmic axis; points that are not above 0 are left out */
} qkv_curve_opts;

/* Draws n curves over one pair of axes with round numbers on them, a colour and a name each. */
QKV_API qkv_status qkv_picture_curves(const char *path, const qkv_curve *curves, int64_t n, const qkv_curve_opts *opts);

/* A curve as text in *out, which is yours: its name, where it has one, and at most 16 of its points from the first to the last,
 * a line each: the name of the x axis ("x" unless given), x, y, and a bar whose length is y, of at most 50 blocks. Nothing for
 * a curve without points. Of opts, the rest means nothing here. */
QKV_API qkv_status qkv_curve_text(const qkv_curve *curve, const qkv_curve_opts *opts, qkv_buffer *out);

/* ---- the flow of attention ---- */
typedef struct qkv_flow {
    int64_t tokens, dim, heads, d_k, d_v; /* each at least 1 */
    int64_t memory;                       /* tokens of the other side, for cross-attention; 0: self-attention */
} qkv_flow;

/* Draws attention as boxes and arrows with the shape at every arrow: X, W_Q, W_K, W_V, Q, K, V, split into heads (when there
 * are several), the scores, scaling, softmax, the weighted sum, concat and W_O. */
QKV_API qkv_status qkv_picture_flow(const char *path, const qkv_flow *flow);

/* The same as a table in *out, which is yours: a line for each step, what it is, how it comes about, and its shape. */
QKV_API qkv_status qkv_flow_text(const qkv_flow *flow, qkv_buffer *out);

typedef struct qkv_flow_opts {
    size_t size;
    int mask;      /* 1: a mask between scaling and softmax */
    int64_t batch; /* sequences, the first of all shapes; 0: shapes are of one sequence */
} qkv_flow_opts;

/* The same for n flows, at most 4, side by side or, as text, one after the other: such as one head and several. USAGE for more.
 * NULL opts means all zero. */
QKV_API qkv_status qkv_picture_flows(const char *path, const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts);
QKV_API qkv_status qkv_flows_text(const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts, qkv_buffer *out);

/* ---- a whole Transformer ---- */
typedef struct qkv_model_drawing_opts {
    size_t size;
    const char *title; /* above it; NULL: "Transformer" */
    int64_t tokens;    /* the length of source and target in all shapes; 0: the letters S and T */
} qkv_model_drawing_opts;

/* Draws a model of these options as the paper's figure 1 does, from the tokens at the bottom to the probabilities at the top:
 * embeddings and positions, one layer of each stack with how often it is repeated, the attentions with their marks, norms where
 * they are, residual connections as arrows around, the output layer; each with its shape and how many weights it has. */
QKV_API qkv_status qkv_picture_model(const char *path, const qkv_config *model, const qkv_model_drawing_opts *opts);

/* The same as lines of text in *out, which is yours, from the tokens at the top down. */
QKV_API qkv_status qkv_model_drawing_text(const qkv_config *model, const qkv_model_drawing_opts *opts, qkv_buffer *out);

/* ---- trainings, as the files in their folders tell of them ---- */

/* The losses of a training over its steps. Starts as zero; used again and again. What the curves point to is its own. */
typedef struct qkv_training_curves {
    qkv_curve trained, valid; /* "training loss" and "validation loss" */
    struct qkv_training_curves_work *work;
    void *reserved[4];
} qkv_training_curves;

/* From log.jsonl in the folder of a training, also of one that still runs; or from such a file itself. In logs of
 * version 0.1.0, lines after the step that a run was resumed from are left out; and so is a last line without its end. IO; FORMAT for a line that
 * is no report, with its number, and for none at all; LIMIT for more than 4 GiB; USAGE for NULL; MEMORY. *out then holds
 * nothing. */
QKV_API qkv_status qkv_training_curves_read(const char *path, qkv_training_curves *out);
QKV_API void qkv_training_curves_free(qkv_training_curves *c);

/* The losses of n trainings over one pair of axes, each curve with its folder before its name where they are several: as a
 * picture, and as text by qkv_curve_text(), one after the other, in *out, which is yours. Title and axes are the folder (of one),
 * "step" and "loss" unless opts has others. The errors of qkv_training_curves_read(), and of every call here. */
QKV_API qkv_status qkv_picture_trainings(const char *path, const char *const *folders, int64_t n, const qkv_curve_opts *opts);
QKV_API qkv_status qkv_trainings_curves_text(const char *const *folders, int64_t n, const qkv_curve_opts *opts,
                                             qkv_buffer *out);

/* n trainings as text, which is yours: a table with a line for each, of its folder, job, steps, minutes, best score and when,
 * why it ended, and each option that is not the same in all of them; or with json an object a line, with all that training.json
 * has. IO, also for a folder without training.json; FORMAT; USAGE for NULL and for n below 1; MEMORY. */
QKV_API qkv_status qkv_trainings_text(const char *const *folders, int64_t n, int json, qkv_buffer *out);

#ifdef __cplusplus
}
#endif
#endif
