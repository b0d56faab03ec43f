/* attention_maps.h: which heads are looked at, and their weights; as text, JSON, CSV or pictures. */
#ifndef QKV_CLI_ATTENTION_MAPS_H
#define QKV_CLI_ATTENTION_MAPS_H

#include <qkv/qkv.h>

#include <stdbool.h>
#include <stdio.h>

/* What stands for a layer or head where it is no number: the mean over them, or each of them in turn. */
enum { MEAN_OF_THEM = -1, ALL_OF_THEM = -2 };

typedef struct map_choice {
    qkv_attention_kind kind;
    int layer, head;
    bool rollout; /* instead of a layer and head */
} map_choice;

typedef struct attention_map {
    int layer, head; /* MEAN_OF_THEM for a mean */
    float *weights;  /* (rows, columns) */
    char title[96];
} attention_map;

/* Maps of one kind, all with the same axes; the text of the axes is that of what was attended to, which must outlive them. */
typedef struct attention_maps {
    map_choice choice;
    const qkv_attention_side *rows, *columns;
    attention_map *at;
    int64_t n;
    int across;        /* maps side by side; 0: as fits */
    const char *minus; /* the model whose weights were subtracted; NULL: none */
    char title[160];
} attention_maps;

extern const char *const attention_kind_names[]; /* in the order of qkv_attention_kind, NULL after the last */

/* Fills *out with the maps that were chosen. other, where it is not NULL, is of a model with as many layers and heads, and is
 * subtracted from each. Reports its error: USAGE for what is not there, nothing to show, or other tokens; MEMORY. free_maps()
 * it in any case. */
qkv_status make_maps(const qkv_attention_capture *a, const qkv_attention_capture *other, const char *other_name,
                     map_choice choice, attention_maps *out);
void free_maps(attention_maps *maps);

/* One way out each; they report their error. */
qkv_status print_maps(const attention_maps *maps);                   /* heatmaps for people, to stdout */
void put_maps_json(FILE *to, const attention_maps *maps);            /* an object, of several maps an array of them */
qkv_status write_maps(const char *path, const attention_maps *maps); /* .png .svg .pdf .csv .json */

/* Prints what each head of a kind does, in the order of the measure numbered by. */
extern const char *const measure_names[]; /* NULL after the last */
qkv_status print_ranks(const qkv_attention_capture *a, qkv_attention_kind kind, int by, bool json);

#endif
