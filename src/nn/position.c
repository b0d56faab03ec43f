/* position.c: where a token stands: sinusoids of the paper (section 3.5), or a learned table. */
#include "params.h"

#include "../tensor/tape.h"

#include <math.h>

bool qkv__adds_positions(const qkv_config *o) { return o->positions != QKV_POSITION_ROPE && o->positions != QKV_POSITION_NONE; }

qkv_tensor *qkv_sinusoid(qkv_tape *t, int64_t first, int64_t length, int64_t dim, qkv_position_kind kind)
{
    bool halves = kind != QKV_POSITION_SINUSOID;
    if (t && kind != QKV_POSITION_SINUSOID && kind != QKV_POSITION_SINUSOID_HALVES && kind != QKV_POSITION_SINUSOID_FAIRSEQ)
        return qkv__error(t, QKV_USAGE, "sinusoid: kind %d has no sinusoids", (int)kind);
    if (t && first < 0) return qkv__error(t, QKV_USAGE, "sinusoid: the first position is %lld", (long long)first);
    qkv_tensor *y = qkv_constant(t, 2, (int64_t[]){ length, dim }, NULL);
    if (!y) return NULL;
    float *table = qkv__tensor_data(y);
    double span = kind == QKV_POSITION_SINUSOID_FAIRSEQ ? fmax(2.0 * (double)(dim / 2) - 2, 2) : (double)dim;
    int64_t sines = dim - dim / 2; /* an odd dim ends with a sine that has no cosine */
    for (int64_t column = 0; column < dim; column++) {
        int64_t i = !halves ? column / 2 : column < sines ? column : column - sines;
        bool is_sine = halves ? column < sines : column % 2 == 0;
        double frequency = pow(10000.0, -2.0 * (double)i / span);
        for (int64_t row = 0; row < length; row++) {
            double angle = ((double)first + (double)row) * frequency;
            table[row * dim + column] = (float)(is_sine ? sin(angle) : cos(angle));
        }
    }
    return y;
}

qkv_tensor *qkv__positions_forward(const qkv_embedding *pos, qkv_tape *t, int64_t first, int64_t length)
{
    if (!t) return NULL;
    if (!pos->weight) return qkv__no_weights(t, "positions");
    int64_t max_positions = pos->weight->shape[0];
    if (first < 0 || length < 0 || first > max_positions || length > max_positions - first)
        return qkv__error(t, QKV_USAGE, "positions: %lld from %lld on are wanted, the table has %lld", (long long)length,
                          (long long)first, (long long)max_positions);
    return qkv_slice(qkv_on(t, pos->weight), 0, first, first + length);
}
