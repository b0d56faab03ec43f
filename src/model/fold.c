/* fold.c: weights that make up for another shape. */
#include "fold.h"

#include "../base/memory.h"
#include "../tensor/types.h"

#include <math.h>
#include <string.h>

enum { REORDER = 1, SCALE = 2 };

static bool reorders(const qkv_config *o, const qkv_config *folded) { return o->positions != folded->positions; }

static bool scales(const qkv_config *o, const qkv_config *folded) { return o->unscaled != folded->unscaled; }

static bool fold_one_way(const qkv_config *o, int how, qkv_config *folded)
{
    *folded = *o;
    if (how & REORDER) {
        if (o->positions != QKV_POSITION_SINUSOID || o->dim % 2) return false;
        folded->positions = QKV_POSITION_SINUSOID_HALVES;
    }
    if (how & SCALE) {
        if (o->unscaled) return false;
        folded->unscaled = 1;
        if (o->decoder_layers || o->head) folded->untied = 1;
    }
    return true;
}

bool qkv__fold_options(const qkv__family *f, const qkv_config *o, qkv_config *folded)
{
    for (int how = REORDER; how <= (REORDER | SCALE); how++)
        if (fold_one_way(o, how, folded) && !f->missing(folded)) return true;
    return false;
}

/* ---- the weights ---- */

/* Where number i of a hidden state goes: 2k is sine k, 2k + 1 cosine k. */
static int64_t new_place(int64_t i, int64_t dim) { return i % 2 ? dim / 2 + i / 2 : i / 2; }

/* What a layer gives is its first axis, what norms have their only one; what a layer or a table of words reads or holds, the
 * second of a matrix. Other vectors are of numbers inside. */
static void reorder(const char *name, qkv_tensor *w, const float *from)
{
    bool is_given = strstr(name, ".out.") || strstr(name, "norm.");
    int64_t rows = qkv_tensor_dim(w, 0), columns = qkv_tensor_count(w) / rows;
    float *to = qkv__tensor_data(w);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) {
            int64_t row = is_given ? new_place(i, rows) : i;
            int64_t column = is_given || qkv_tensor_ndim(w) < 2 ? k : new_place(k, columns);
            to[row * columns + column] = from[i * columns + k];
        }
}

static const char *old_name(const qkv_params *from, const char *name)
{
    if (qkv_params_find(from, name) || strcmp(name, "output.weight")) return name;
    return qkv_params_find(from, "target_embed.weight") ? "target_embed.weight" : "embed.weight"; /* it was tied */
}

static bool is_table(const char *name) { return !strcmp(name, "embed.weight") || !strcmp(name, "target_embed.weight"); }

static qkv_status fold_weight(const qkv_config *o, const qkv_tensor *old, const qkv_config *folded, const char *name,
                              qkv_tensor *w)
{
    int64_t n = qkv_tensor_count(w);
    size_t bytes = sizeof(float) * (size_t)n;
    float by = sqrtf((float)o->dim), *from = qkv__alloc(bytes);
    if (!from) return QKV_MEMORY;
    qkv__widen(old, 0, n, from);
    if (reorders(o, folded)) reorder(name, w, from);
    else memcpy(qkv__tensor_data(w), from, bytes);
    for (int64_t k = 0; scales(o, folded) && is_table(name) && k < n; k++) qkv__tensor_data(w)[k] *= by;
    qkv__release(from, bytes);
    return QKV_OK;
}

qkv_status qkv__fold_weights(const qkv_config *o, const qkv_params *from, const qkv_config *folded, const qkv_params *to)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < qkv_params_size(to) && !status; i++) {
        const char *name = qkv_params_name(to, i);
        status = fold_weight(o, qkv_params_find(from, old_name(from, name)), folded, name, qkv_params_at(to, i));
    }
    return status;
}
