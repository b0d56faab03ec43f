/* bench_attention.c: attention forward, and with backward. */
#include "bench.h"
#include "measure.h"

#include "../../src/base/clock.h"
#include "../../src/base/memory.h"
#include "../../src/tensor/tape.h"

#include <qkv/tensor.h>

#include <stdio.h>
#include <string.h>

enum { HEADS = 8, HEAD_DIM = 64 };

typedef struct shape {
    int64_t batch, length;
} shape;
static const shape shapes[] = { { 4, 512 }, { 1, 2048 } };

typedef struct attention {
    shape s;
    bool is_causal, has_backward;
    qkv_tape *tape;
    float *numbers; /* of q, k and v */
    size_t bytes;
} attention;

/* Two products of T x T x D. Causal counts half of them; the backward pass has twice as many, and what it computes again from
 * the forward pass does not count. */
static double operations_of(const attention *a)
{
    double forward = 4.0 * (double)(a->s.batch * HEADS * HEAD_DIM) * (double)a->s.length * (double)a->s.length;
    return forward * (a->is_causal ? 0.5 : 1) * (a->has_backward ? 3 : 1);
}

static qkv_tensor *attention_operand(attention *a)
{
    return qkv_variable(a->tape, QKV_SHAPE(a->s.batch, HEADS, a->s.length, HEAD_DIM), a->numbers);
}

static qkv_status attend_once(void *work, double *aside)
{
    attention *a = work;
    double begin = qkv__seconds();
    qkv_tape_reset(a->tape);
    qkv_tensor *q = attention_operand(a), *k = attention_operand(a), *v = attention_operand(a);
    *aside += qkv__seconds() - begin;
    qkv_tensor *y = qkv_attention(q, k, v, &(qkv_mask){ .causal = a->is_causal }, NULL);
    if (a->has_backward) qkv_backward(qkv_sum(y, QKV_ALL_DIMS));
    return qkv_tape_status(a->tape);
}

static qkv_status measure_attention(const qkv__bench *b, attention *a)
{
    qkv_bench_row row = { .unit = "calls", .amount = 1, .operations = operations_of(a) };
    snprintf(row.name, sizeof row.name, "B%lld H%d T%lld D%d, %s, %s", (long long)a->s.batch, HEADS, (long long)a->s.length,
             HEAD_DIM, a->is_causal ? "causal" : "full", a->has_backward ? "both ways" : "forward");
    a->tape = qkv_tape_new(&(qkv_tape_opts){ .inference = !a->has_backward });
    qkv_status status = a->tape ? qkv__bench_measure(b, row, attend_once, a) : qkv_error_status();
    qkv_tape_free(a->tape);
    return status;
}

static qkv_status measure_shape(const qkv__bench *b, shape s)
{
    int64_t count = s.batch * HEADS * s.length * HEAD_DIM;
    attention a = { .s = s, .bytes = sizeof(float) * (size_t)count };
    qkv_status status = (a.numbers = qkv__alloc(a.bytes)) ? QKV_OK : QKV_MEMORY;
    for (int64_t i = 0; i < count && !status; i++) a.numbers[i] = (float)((i * 7919) % 2003) * 1e-3f - 1;
    for (int i = 0; i < 4 && !status; i++) {
        a.is_causal = i / 2;
        a.has_backward = i % 2;
        status = measure_attention(b, &a);
    }
    qkv__release(a.numbers, a.bytes);
    return status;
}

qkv_status qkv__bench_attention(const qkv__bench *b)
{
    const qkv_bench_opts *o = &b->o;
    if (o->batch || o->length) return measure_shape(b, (shape){ o->batch ? o->batch : 1, o->length ? o->length : 512 });
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !status; i++) status = measure_shape(b, shapes[i]);
    return status;
}
