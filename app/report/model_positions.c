/* model_positions.c: the table of positions that a model adds to its tokens. */
#include "arrays.h"
#include "results.h"
#include "npy.h"
#include "../../src/nn/layer.h"
#include "../../src/tensor/op.h"

#include <qkv/model.h>

#include <stdio.h>
#include <string.h>

static const char call[] = "positions";

/* Rows 0 .. n-1, whatever type of numbers the weight has; 0: all. */
static qkv_tensor *learned_rows(qkv_model *m, qkv_tape *t, const char *side, int64_t n)
{
    char name[64];
    snprintf(name, sizeof name, "%s.positions.weight", side);
    qkv_tensor *table = qkv_params_find(qkv_model_params(m), name);
    if (!table) return qkv__fail(QKV_USAGE, "%s: the model has no %s", call, side), NULL;
    if (!n) n = table->shape[0];
    if (n > table->shape[0])
        return qkv__fail(QKV_USAGE, "%s: %lld are asked for, the model has learned %lld", call, (long long)n,
                         (long long)table->shape[0]),
               NULL;
    int32_t *places = qkv__save(t, sizeof *places * (size_t)n);
    for (int64_t i = 0; places && i < n; i++) places[i] = (int32_t)i;
    return places ? qkv_gather(t, table, places, 1, &n) : NULL;
}

static qkv_tensor *position_rows(qkv_model *m, qkv_side side, qkv_tape *t, int64_t n)
{
    enum { USUAL = 50 };
    qkv_config o = { .size = sizeof o };
    qkv_model_config(m, &o);
    if (o.positions == QKV_POSITION_LEARNED) return learned_rows(m, t, side == QKV_SIDE_TARGET ? "decoder" : "encoder", n);
    if (qkv__adds_positions(&o)) return qkv_sinusoid(t, o.first_position, n ? n : USUAL, qkv__embed_width(&o), o.positions);
    qkv__fail(QKV_USAGE, "%s: the model has no table of them: it %s", call,
              o.positions == QKV_POSITION_ROPE ? "turns queries and keys (rotary positions)" : "knows no positions");
    return NULL;
}

qkv_status qkv_model_positions(qkv_model *m, qkv_side side, int64_t n, qkv_array *out)
{
    if (!m || !out || n < 0) return qkv__fail(QKV_USAGE, "%s: a model, how many, and a place for them are needed", call);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    if (!t) return qkv_error_status();
    const qkv_tensor *rows = position_rows(m, side, t, n);
    qkv_status status = rows ? QKV_OK : qkv_tape_status(t) ? qkv_tape_status(t) : qkv_error_status();
    qkv_array found = { .ndim = 2 };
    if (rows) {
        memcpy(found.shape, qkv_tensor_shape(rows), 2 * sizeof *found.shape);
        size_t bytes = sizeof(float) * (size_t)qkv_tensor_count(rows);
        if ((found.data = qkv__alloc(bytes))) memcpy(found.data, qkv_tensor_data(rows), bytes);
        else status = QKV_MEMORY;
    }
    if (!status) *out = found;
    qkv_tape_free(t);
    return status;
}
