/* lesson.h: lessons about attention, in the terminal, with numbers that the library computes while they run. */
#ifndef QKV_LEARN_LESSON_H
#define QKV_LEARN_LESSON_H

#include "../draw/view.h"
#include "../term/language.h"
#include "../term/print.h"

#include <qkv/qkv.h>

#include <stdbool.h>
#include <stdio.h>

typedef struct lesson {
    const char *name;              /* what is typed after "qkv learn" */
    const char *title;             /* N_() */
    qkv_status (*run)(void);       /* prints it; has reported its error when it gives one */
    const char *question, *answer; /* N_(); shown at the end, the answer with --answer; NULL: none */
} lesson;

extern const lesson lesson_by_hand, lesson_scaling, lesson_masks, lesson_heads, lesson_cross, lesson_positions, lesson_parts,
    lesson_optimizers, lesson_additive, lesson_costs, lesson_imdb, lesson_architecture, lesson_embeddings, lesson_feed_forward,
    lesson_multihead, lesson_families, lesson_recipe, lesson_subwords, lesson_llama, lesson_sampling, lesson_summary;

/* Prints what they are about; the one of that name, NULL, reported, where there is none; teaches it, with the answer to its
 * question where that is asked for, and reports its error. */
void list_lessons(void);
const lesson *find_lesson(const char *name);
qkv_status teach(const lesson *l, bool answer);
qkv_status teach_all(bool answer);

/* Prints a paragraph, broken into lines of at most 78 columns (Chinese characters take two, and break anywhere), and an empty
 * line after it; and a heading. The format is translated by the caller. */
void say(const char *format, ...) QKV_PRINTF(1, 2);
void say_heading(const char *text);

/* Prints a table of (rows, columns) numbers and an empty line; and the shape of a tensor after its name, "(2, 8, 5, 5)". */
void show_numbers(const float *values, int64_t rows, int64_t columns, labels row, labels column, int decimals);
void show_shape(const char *name, const qkv_tensor *x);

/* n in the unit in which the reader's language counts large numbers: 18.9 million, 1890 万. */
const char *large_number(double n, char text[32]);

/* The largest difference between two of n numbers at the same place. */
double largest_difference(const float *a, const float *b, int64_t n);

/* The weights (parameters) of a Transformer with these options, by the formulas of its parts; lesson 11 compares it with one
 * that is made. Embeddings are tied, norms and biases counted. */
typedef struct weight_counts {
    double embedding, attention, feed_forward, norms, total;
} weight_counts;
weight_counts count_weights(const qkv_config *o);

/* Where pictures go; makes the folder. Reports its error: IO. */
qkv_status set_picture_folder(const char *folder);

/* DIR/NAME.png when pictures were asked for with -o, else NULL. Valid until the next call. After drawing, tell_picture(path)
 * prints where it is. */
const char *picture_path(const char *name);
void tell_picture(const char *path);

/* Draw to picture_path(name) and tell where it is; nothing without -o. Report their error. */
qkv_status draw_maps(const char *name, const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *opts);
qkv_status draw_curves(const char *name, const qkv_curve *curves, int64_t n, const qkv_curve_opts *opts);

/* What --data gives to the IMDb lesson; NULL: reviews made up on the spot. */
extern const char *lesson_data;

#endif
