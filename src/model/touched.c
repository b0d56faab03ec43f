/* touched.c: which changes a model can have. */
#include "touched.h"

#include "../base/status.h"
#include "../nn/transformer.h"

#include <math.h>
#include <stdbool.h>

enum { LAST_POSITION = 65535 }; /* a table of sinusoids up to there has 256 MiB in a model of 1,024 numbers */

#define NAME(constant, name) name,
static const char *const names[] = { QKV_EDIT_LIST(NAME) };
#undef NAME

const char *qkv__attention_kind_name(qkv_attention_kind kind)
{
#define KIND(constant, name) name,
    static const char *const kinds[] = { QKV_ATTENTION_LIST(KIND) };
#undef KIND
    return kinds[kind];
}

static int layers_of(const qkv_config *o, qkv_attention_kind kind)
{
    if (kind == QKV_ATTENTION_ENCODER) return o->encoder_layers;
    return kind == QKV_ATTENTION_DECODER || o->encoder_layers ? o->decoder_layers : 0;
}

static qkv_status check_kind(const qkv_config *o, const qkv_edit *x)
{
    bool is_stack = x->what == QKV_EDIT_ABLATE_LAYER || x->what == QKV_EDIT_SET_POSITION;
    if (is_stack && x->kind == QKV_ATTENTION_CROSS)
        return qkv__fail(QKV_USAGE, "%s: say encoder or decoder: cross-attention has no layers and positions of its own",
                         names[x->what]);
    if (layers_of(o, x->kind)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "%s: the model has no %s%s", names[x->what], qkv__attention_kind_name(x->kind),
                     x->kind == QKV_ATTENTION_CROSS ? "-attention" : "");
}

static qkv_status check_part(const qkv_config *o, const qkv_edit *x)
{
    bool any = x->what == QKV_EDIT_SWAP_VALUES || x->what == QKV_EDIT_ZERO_VALUE;
    bool has_head = x->what == QKV_EDIT_ABLATE_HEAD || x->what == QKV_EDIT_ROW;
    bool has_layer = any || has_head || x->what == QKV_EDIT_ABLATE_LAYER;
    int layers = layers_of(o, x->kind);
    if (has_layer && (x->layer < -any || x->layer >= layers))
        return qkv__fail(QKV_USAGE, "%s: there is no layer %d: %s has 0 to %d", names[x->what], x->layer,
                         qkv__attention_kind_name(x->kind), layers - 1);
    if (has_head && (x->head < 0 || x->head >= o->heads))
        return qkv__fail(QKV_USAGE, "%s: there is no head %d: a layer has 0 to %lld", names[x->what], x->head,
                         (long long)o->heads - 1);
    return QKV_OK;
}

static qkv_status check_places(const qkv_edit *x)
{
    bool has_place = x->what != QKV_EDIT_ABLATE_HEAD && x->what != QKV_EDIT_ABLATE_LAYER;
    bool has_other = x->what == QKV_EDIT_SET_POSITION || x->what == QKV_EDIT_SWAP_VALUES;
    if ((!has_place || x->place >= 0) && (!has_other || x->other >= 0)) return QKV_OK;
    return qkv__fail(QKV_USAGE, "%s: places count from 0", names[x->what]);
}

static qkv_status check_move(const qkv_config *o, const qkv_edit *x)
{
    int64_t most = qkv__max_positions(o), first = o->first_position;
    int64_t last = most && most - first - 1 < LAST_POSITION ? most - first - 1 : LAST_POSITION;
    if (x->what != QKV_EDIT_SET_POSITION) return QKV_OK;
    if (o->relative_buckets)
        return qkv__fail(QKV_UNSUPPORTED, "move: positions of this model are a bias by distance: tokens cannot be moved");
    if (x->other <= last) return QKV_OK;
    return qkv__fail(QKV_LIMIT, "move: position %lld: the last one is %lld", (long long)x->other, (long long)last);
}

static qkv_status check_row(const qkv_edit *x)
{
    if (x->what != QKV_EDIT_ROW) return QKV_OK;
    if (x->n_row < 0 || (x->n_row && !x->row)) return qkv__fail(QKV_USAGE, "edit-row: the weights are missing");
    for (int64_t i = 0; i < x->n_row; i++)
        if (!(x->row[i] >= 0 && x->row[i] < INFINITY))
            return qkv__fail(QKV_USAGE, "edit-row: weight %lld is %g, expected a number of at least 0", (long long)i,
                             (double)x->row[i]);
    if (x->kind != QKV_ATTENTION_DECODER || x->n_row <= x->place + 1) return QKV_OK;
    return qkv__fail(QKV_USAGE,
                     "edit-row: query %lld of the decoder sees %lld keys, not %lld: those that come later are hidden",
                     (long long)x->place, (long long)x->place + 1, (long long)x->n_row);
}

qkv_status qkv__check_touch(const qkv_config *o, const qkv_edit *x)
{
    if ((unsigned)x->what >= QKV_EDIT_KINDS || (unsigned)x->kind >= QKV_ATTENTION_KINDS)
        return qkv__fail(QKV_USAGE, "touch: there is no such change or kind of attention");
    qkv_status status = check_kind(o, x);
    if (!status) status = check_part(o, x);
    if (!status) status = check_places(x);
    if (!status) status = check_move(o, x);
    return status ? status : check_row(x);
}
