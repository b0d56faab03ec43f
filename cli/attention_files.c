/* attention_files.c: maps of attention as JSON, CSV and pictures. */
#include "attention_maps.h"
#include "options.h"
#include "results.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- JSON ---- */

static void put_json_string(FILE *to, const char *text)
{
    json_t *string = json_string(text);
    json_dumpf(string, to, JSON_ENCODE_ANY);
    json_decref(string);
}

static void put_side_tokens(FILE *to, const char *key, const qkv_attention_side *side)
{
    fprintf(to, "\"%s\": [", key);
    for (int64_t i = 0; i < side->n; i++) {
        if (i) fputs(", ", to);
        put_json_string(to, side->names[i]);
    }
    fputs("],\n ", to);
}

static void put_part_number(FILE *to, const char *key, int number)
{
    if (number == MEAN_OF_THEM) fprintf(to, ", \"%s\": \"mean\"", key);
    else fprintf(to, ", \"%s\": %d", key, number);
}

static void put_map_json(FILE *to, const attention_maps *m, const attention_map *map)
{
    fprintf(to, "{\"kind\": \"%s\"", attention_kind_names[m->choice.kind]);
    if (m->choice.rollout) fputs(", \"layer\": \"rollout\"", to);
    else put_part_number(to, "layer", map->layer), put_part_number(to, "head", map->head);
    if (m->minus) fputs(", \"minus\": ", to), put_json_string(to, m->minus);
    fputs(",\n ", to);
    put_side_tokens(to, "queries", m->rows);
    put_side_tokens(to, "keys", m->columns);
    fputs("\"weights\": [", to);
    for (int64_t i = 0; i < m->rows->n; i++) {
        fputs(i ? ",\n  [" : "\n  [", to);
        for (int64_t k = 0; k < m->columns->n; k++)
            fprintf(to, "%s%.9g", k ? ", " : "", (double)map->weights[i * m->columns->n + k]);
        putc(']', to);
    }
    fputs("]}", to);
}

void put_maps_json(FILE *to, const attention_maps *m)
{
    if (m->n > 1) putc('[', to);
    for (int64_t i = 0; i < m->n; i++) {
        if (i) fputs(",\n", to);
        put_map_json(to, m, &m->at[i]);
    }
    fputs(m->n > 1 ? "]\n" : "\n", to);
}

/* ---- CSV, as RFC 4180 has it ---- */

static void put_field(FILE *to, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted) putc('"', to);
    for (; *text; text++) {
        if (*text == '"') putc('"', to);
        putc(*text, to);
    }
    if (quoted) putc('"', to);
}

static void put_csv_part(FILE *to, int number)
{
    if (number == MEAN_OF_THEM) fputs("mean,", to);
    else fprintf(to, "%d,", number);
}

/* One map: a column of queries, and one a key. Of several, each row says first which it belongs to. */
static void put_maps_csv(FILE *to, const attention_maps *m)
{
    if (m->n > 1) fputs("layer,head,", to);
    for (int64_t k = 0; k < m->columns->n; k++) {
        putc(',', to);
        put_field(to, m->columns->names[k]);
    }
    fputs("\r\n", to);
    for (int64_t i = 0; i < m->n; i++)
        for (int64_t r = 0; r < m->rows->n; r++) {
            if (m->n > 1) put_csv_part(to, m->at[i].layer), put_csv_part(to, m->at[i].head);
            put_field(to, m->rows->names[r]);
            for (int64_t k = 0; k < m->columns->n; k++) fprintf(to, ",%.9g", (double)m->at[i].weights[r * m->columns->n + k]);
            fputs("\r\n", to);
        }
}

/* ---- files ---- */

static qkv_status write_text(const char *path, void (*put)(FILE *, const attention_maps *), const attention_maps *m)
{
    text_file file;
    if (!begin_text(&file)) return QKV_MEMORY;
    put(file.to, m);
    return end_text(&file, path);
}

static qkv_status write_picture(const char *path, const attention_maps *m)
{
    qkv_heatmap *maps = malloc(sizeof *maps * (size_t)m->n);
    if (!maps) return fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < m->n; i++) maps[i] = (qkv_heatmap){ m->at[i].weights, m->n > 1 ? m->at[i].title : NULL };
    const qkv_heatmap_opts opts = { .rows = m->rows->n,
                                    .columns = m->columns->n,
                                    .row_names = m->rows->names,
                                    .column_names = m->columns->names,
                                    .row_axis = "query (attending)",
                                    .column_axis = "key (attended)",
                                    .title = m->title,
                                    .colours = m->minus ? QKV_COLOURS_RED_BLUE : QKV_COLOURS_VIRIDIS,
                                    .across = m->across };
    qkv_status status = qkv_picture_heatmaps(path, maps, m->n, &opts) ? library_failed() : QKV_OK;
    free(maps);
    return status;
}

qkv_status write_maps(const char *path, const attention_maps *m)
{
    const char *dot = strrchr(path, '.');
    qkv_status status = dot && !strcasecmp(dot, ".csv")    ? write_text(path, put_maps_csv, m)
                        : dot && !strcasecmp(dot, ".json") ? write_text(path, put_maps_json, m)
                                                           : write_picture(path, m);
    return status;
}
