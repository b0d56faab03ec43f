/* attention_maps.c: maps of attention as text and files, heads as a table. */
#include "attention_maps.h"

#include "options.h"
#include "term/heatmap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- maps ---- */

static qkv_heatmap_opts map_opts(const qkv_attention_maps *m)
{
    return (qkv_heatmap_opts){ .size = sizeof(qkv_heatmap_opts),
                               .rows = m->rows->n,
                               .columns = m->columns->n,
                               .row_names = m->rows->names,
                               .column_names = m->columns->names,
                               .hidden = m->hidden,
                               .colours = m->minus ? QKV_COLOURS_RED_BLUE : QKV_COLOURS_VIRIDIS };
}

qkv_status print_maps(const qkv_attention_maps *m, bool json)
{
    const qkv_heatmap_opts o = map_opts(m);
    qkv_text text = { 0 };
    qkv_status status = QKV_OK;
    if (json) return print_text(qkv_attention_maps_json(m, &text), &text);
    printf("%s\n", m->title);
    for (int64_t i = 0; i < m->n && !status; i++) {
        if (m->n > 1) printf("\n%s\n", m->maps[i].title);
        status = print_map(m->maps[i].weights, &o);
    }
    return status;
}

static qkv_status write_map_text(const char *path, qkv_status status, qkv_text *text)
{
    if (!status) status = qkv_file_write(path, text->data, text->length);
    qkv_text_free(text);
    return status ? library_failed() : QKV_OK;
}

static qkv_status write_picture(const char *path, const qkv_attention_maps *m, const char *note)
{
    qkv_heatmap *maps = malloc(sizeof *maps * (size_t)m->n);
    if (!maps) return fail(QKV_MEMORY, "out of memory");
    for (int64_t i = 0; i < m->n; i++) maps[i] = (qkv_heatmap){ m->maps[i].weights, m->n > 1 ? m->maps[i].title : NULL };
    qkv_heatmap_opts o = map_opts(m);
    o.row_axis = _("query (attending)");
    o.column_axis = _("key (attended)");
    o.title = m->title;
    o.bar_name = m->minus ? _("difference of weights") : _("attention weight");
    o.note = note;
    o.across = m->across;
    qkv_status status = qkv_picture_heatmaps(path, maps, m->n, &o) ? library_failed() : QKV_OK;
    free(maps);
    return status;
}

qkv_status write_maps(const char *path, const qkv_attention_maps *m, const char *note)
{
    const char *dot = strrchr(path, '.');
    qkv_text text = { 0 };
    if (dot && !strcasecmp(dot, ".csv")) return write_map_text(path, qkv_attention_maps_csv(m, &text), &text);
    if (dot && !strcasecmp(dot, ".json")) return write_map_text(path, qkv_attention_maps_json(m, &text), &text);
    return write_picture(path, m, note);
}

/* ---- ranks ---- */

#define MEASURE_ROW(constant, member) { #member, offsetof(qkv_head_measures, member) },
static const struct {
    const char *name;
    size_t at;
} measures[QKV_HEAD_MEASURE_COUNT] = { QKV_HEAD_MEASURE_LIST(MEASURE_ROW) };

static double measure_of(const qkv_ranked_head *h, int k)
{
    return *(const double *)((const char *)&h->measures + measures[k].at);
}

static void print_ranked(const qkv_ranked_head *heads, int64_t n)
{
    fputs(_("layer  head"), stdout);
    for (int k = 0; k < QKV_HEAD_MEASURE_COUNT; k++) printf("  %11s", measures[k].name);
    for (int64_t i = 0; i < n; i++) {
        printf("\n%5d  %4d", heads[i].layer, heads[i].head);
        for (int k = 0; k < QKV_HEAD_MEASURE_COUNT; k++) printf("  %11.6f", measure_of(&heads[i], k));
    }
    putchar('\n');
}

static void put_ranked_json(const qkv_ranked_head *heads, int64_t n, const char *kind)
{
    printf("{\"kind\": \"%s\", \"heads\": [", kind);
    for (int64_t i = 0; i < n; i++) {
        printf("%s\n {\"layer\": %d, \"head\": %d", i ? "," : "", heads[i].layer, heads[i].head);
        for (int k = 0; k < QKV_HEAD_MEASURE_COUNT; k++) printf(", \"%s\": %.17g", measures[k].name, measure_of(&heads[i], k));
        putchar('}');
    }
    puts("]}");
}

qkv_status print_ranks(const qkv_attention_capture *a, qkv_attention_kind kind, qkv_head_measure by, bool json)
{
    int64_t n = (int64_t)a->layers[kind] * a->heads;
    qkv_ranked_head *heads = malloc(sizeof *heads * (size_t)(n + 1));
    if (!heads) return fail(QKV_MEMORY, "out of memory");
    qkv_status status = qkv_attention_capture_rank(a, kind, by, heads) ? library_failed() : QKV_OK;
    if (!status && json) put_ranked_json(heads, n, qkv_attention_kind_name(kind));
    else if (!status) print_ranked(heads, n);
    free(heads);
    return status;
}
