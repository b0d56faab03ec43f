/* masking.c: words to guess (Devlin et al. 2019, section 3.1). */
#include "texts.h"

#include <qkv/train.h>

#include "../base/options.h"
#include "../base/random.h"
#include "../tensor/tape.h"

qkv_status qkv_pairs_add_masked(qkv_dataset *p, const qkv_model *m, const char *text, size_t length, int64_t max_length)
{
    if (!p || (length && !text)) return qkv__fail(QKV_USAGE, "masking: pairs and a text are needed");
    qkv__reader r = { 0 };
    qkv_status status = qkv__reader_training_example(&r, m, &(qkv__given){ .text = text, .length = length }, max_length);
    /* The target makes room for as many labels as the source has ids. */
    if (!status) status = qkv_dataset_add_ids(p, r.ids, (size_t)r.n, r.ids, (size_t)r.n);
    qkv__reader_free(&r);
    return status;
}

typedef struct chances {
    uint32_t chosen, kind;
} chances;

static chances draw_chances(qkv__key key, int64_t place)
{
    uint32_t out[2];
    qkv__threefry(key, (uint32_t)place, (uint32_t)((uint64_t)place >> 32), out);
    return (chances){ out[0], out[1] };
}

/* What a chosen token becomes: 8 of 10 the mask, 1 any other, 1 itself. */
static int32_t hide(const qkv_masked_lm_opts *o, int32_t id, uint32_t kind)
{
    const uint32_t tenth = UINT32_MAX / 10;
    if (kind < 8 * tenth) return o->mask;
    if (kind >= 9 * tenth) return id;
    return o->first + (int32_t)((uint64_t)(kind - 8 * tenth) * (uint64_t)(o->vocabulary - o->first) / tenth);
}

static double rate_of(const qkv_masked_lm_opts *o) { return o->rate > 0 ? (double)o->rate : 0.15; }

/* Ids that are special are never chosen: <s>, </s>, padding. Where chance chooses none, the first ordinary token is. */
static qkv_status choose_masked(const qkv_loss *objective, qkv_batch *b, uint64_t seed, uint64_t pass)
{
    qkv_masked_lm_opts own, *o = &own;
    if (QKV__READ_OPTIONS(o, vocabulary, (const qkv_masked_lm_opts *)objective->data, "masking")) return QKV_USAGE;
    const double rate = rate_of(o);
    const qkv__key key = qkv__key_for(seed, pass, 0x6d61736b);
    int64_t all = b->rows * b->source_length, fallback = -1;
    if (b->target_length < b->source_length)
        return qkv__fail(QKV_USAGE, "masking: the texts were not added by qkv_pairs_add_masked()");
    b->tokens = 0;
    for (int64_t i = 0; i < all; i++) {
        int32_t id = b->source[i];
        chances c = draw_chances(key, i);
        bool ordinary = id >= o->first && id != o->mask && i % b->source_length < b->source_lengths[i / b->source_length];
        b->labels[i] = QKV_IGNORED;
        if (ordinary && fallback < 0) fallback = i;
        if (!ordinary || (double)c.chosen >= rate * 4294967296.0) continue;
        b->labels[i] = id;
        b->source[i] = hide(o, id, c.kind);
        b->tokens++;
    }
    if (!b->tokens && fallback >= 0) {
        b->labels[fallback] = b->source[fallback];
        b->source[fallback] = o->mask;
        b->tokens = 1;
    }
    return QKV_OK;
}

/* Of the chosen tokens alone: the layer before the softmax is most of the work, and the others would not count. */
static qkv_tensor *masked_loss(const qkv_loss *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)o;
    const qkv_transformer *x = qkv_model_transformer(m);
    int64_t all = b->rows * b->source_length, n = 0;
    int32_t *places = qkv__save(t, 2 * sizeof *places * (size_t)b->tokens), *labels = places + b->tokens;
    if (!places) return NULL;
    for (int64_t i = 0; i < all; i++)
        if (b->labels[i] != QKV_IGNORED) places[n] = (int32_t)i, labels[n++] = b->labels[i];
    qkv_tensor *hidden = qkv_transformer_encode(x, t, b->source, b->rows, b->source_length, b->source_lengths);
    qkv_tensor *rows = qkv_reshape(hidden, 2, (int64_t[]){ all, -1 });
    qkv_tensor *logits = qkv_transformer_logits(x, qkv_gather(t, rows, places, 1, &n));
    return qkv_cross_entropy_with(logits, labels, &(qkv_cross_entropy_opts){ .smoothing = smoothing });
}

static qkv_tensor *no_masking(const qkv_loss *o, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)o, (void)m, (void)b, (void)smoothing;
    return qkv__error(t, QKV_USAGE, "masking: there are no options, or they are of no size that is known");
}

qkv_loss qkv_loss_masked_lm(const qkv_masked_lm_opts *opts)
{
    qkv_masked_lm_opts o;
    if (!opts || QKV__READ_OPTIONS(&o, vocabulary, opts, "masking"))
        return (qkv_loss){ .loss = no_masking, .name = 0x6d61736b };
    uint64_t name = 0x6d61736b ^ (uint64_t)(rate_of(&o) * 1e6) << 32;
    return (qkv_loss){ .prepare = choose_masked, .loss = masked_loss, .data = opts, .name = name };
}
