/* attention_maps.c: maps of attention as pictures, as text, and as files of whatever their ending says. */
#include "../report/attention.h"

#include <qkv/unstable/util.h>
#include "../../src/base/memory.h"
#include "../../src/base/options.h"
#include "../report/out.h"

#include "view.h"
#include "../term/translator.h"

#include <string.h>
#include <strings.h>

static const char call[] = "attention maps";

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

static qkv_status check_maps(const qkv_attention_maps *m, const void *out)
{
    if (m && out && m->rows && m->columns && m->n > 0) return QKV_OK;
    return qkv__fail(QKV_USAGE, "%s: maps and a place for them are needed", call);
}

qkv_status qkv_attention_maps_text(const qkv_attention_maps *maps, const qkv_screen_opts *screen, qkv_buffer *out)
{
    qkv_screen_opts shown;
    qkv_buffer map = { 0 };
    qkv_status status = QKV__READ_OPTIONS(&shown, elsewhere, screen, call);
    if (!status) status = check_maps(maps, out);
    if (status) return status;
    const qkv_heatmap_opts o = map_opts(maps);
    qkv__out all = qkv__out_begin(out);
    qkv__out_printf(&all, "%s\n", maps->title);
    for (int64_t i = 0; i < maps->n && !status; i++) {
        if (maps->n > 1) qkv__out_printf(&all, "\n%s\n", maps->maps[i].title);
        status = qkv_heatmap_text(maps->maps[i].weights, &o, screen, &map);
        if (!status) qkv__out_bytes(&all, map.data, map.length);
    }
    qkv_buffer_free(&map);
    if (!all.status) all.status = status;
    return qkv__out_end(&all);
}

static qkv_status draw_maps(const char *path, const qkv_attention_maps *m, const char *note)
{
    size_t bytes = sizeof(qkv_heatmap) * (size_t)m->n;
    qkv_heatmap *maps = qkv__alloc(bytes);
    if (!maps) return QKV_MEMORY;
    for (int64_t i = 0; i < m->n; i++) maps[i] = (qkv_heatmap){ m->maps[i].weights, m->n > 1 ? m->maps[i].title : NULL };
    qkv_heatmap_opts o = map_opts(m);
    o.row_axis = qkv__translated("query (attending)");
    o.column_axis = qkv__translated("key (attended)");
    o.title = m->title;
    o.bar_name = m->minus ? qkv__translated("difference of weights") : qkv__translated("attention weight");
    o.note = note;
    o.across = m->across;
    qkv_status status = qkv_picture_heatmaps(path, maps, m->n, &o);
    qkv__release(maps, bytes);
    return status;
}

qkv_status qkv_attention_maps_write(const char *path, const qkv_attention_maps *maps, const char *note)
{
    qkv_buffer text = { 0 };
    qkv_status status = check_maps(maps, path);
    if (status) return status;
    const char *dot = strrchr(path, '.');
    bool is_csv = dot && !strcasecmp(dot, ".csv"), is_json = dot && !strcasecmp(dot, ".json");
    if (!is_csv && !is_json) return draw_maps(path, maps, note);
    status = is_csv ? qkv_attention_maps_csv(maps, &text) : qkv_attention_maps_json(maps, &text);
    if (!status) status = qkv_file_write(path, text.data, text.length);
    qkv_buffer_free(&text);
    return status;
}
