/* loss.c: what a model learns. */
#include "examples.h"

#include "../base/hash.h"
#include "../base/options.h"
#include "../base/random.h"
#include "../model/classes.h"
#include "../nn/ngrams.h"
#include "../tensor/tape.h"
#include "../model/model.h"

#include <string.h>

/* Ids in checkpoints: words as numbers. Translation has 0. */
static const uint64_t NEXT = 0x6e657874, MASKED = 0x6d61736b, CLASS = 0x636c617373, SEVERAL = 0x7365766572616c,
                      NUMBER = 0x6e756d626572;

/* ---- translation ---- */

static qkv_tensor *translation_loss(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)l;
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *memory = qkv__transformer_encode(
        x, t, &(qkv_tokens){ .ids = b->source, .rows = b->rows, .length = b->source_length, .lengths = b->source_lengths });
    qkv_tensor *hidden = qkv__transformer_decode(
        x, t, &(qkv_tokens){ .ids = b->target, .rows = b->rows, .length = b->target_length, .lengths = b->target_lengths },
        memory, b->source_lengths);
    const qkv_cross_entropy_opts opts = { .label_smoothing = smoothing };
    return qkv_cross_entropy(qkv__transformer_logits(x, hidden), b->labels, &opts);
}

qkv_loss qkv_loss_seq2seq(void) { return (qkv_loss){ .compute = translation_loss }; }

/* ---- language ---- */

static qkv_tensor *next_token_loss(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)l;
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *hidden = qkv__transformer_decode(
        x, t, &(qkv_tokens){ .ids = b->target, .rows = b->rows, .length = b->target_length, .lengths = b->target_lengths },
        NULL, NULL);
    const qkv_cross_entropy_opts opts = { .label_smoothing = smoothing };
    return qkv_cross_entropy(qkv__transformer_logits(x, hidden), b->labels, &opts);
}

qkv_loss qkv_loss_language_model(void) { return (qkv_loss){ .compute = next_token_loss, .id = NEXT }; }

/* ---- masked words (Devlin et al. 2019, section 3.1) ---- */

enum { RATE, MASK, FIRST, VOCAB_SIZE }; /* in arg */

/* Special ids are never chosen: <s>, </s>, padding. Of the chosen tokens 8 of 10 become the mask, 1 another by chance, 1 stays.
 * Where chance chooses none, the first ordinary token is. */
static qkv_status choose_masked(const qkv_loss *l, qkv_batch *b, uint64_t seed, uint64_t pass)
{
    const int32_t mask = (int32_t)l->arg[MASK], first = (int32_t)l->arg[FIRST], vocab_size = (int32_t)l->arg[VOCAB_SIZE];
    const uint32_t tenth = UINT32_MAX / 10;
    const qkv__key key = qkv__key_for(seed, pass, 0x6d61736b);
    int64_t all = b->rows * b->source_length, fallback = -1;
    if (b->target_length < b->source_length)
        return qkv__fail(QKV_USAGE, "masking: the texts are not of kind QKV_EXAMPLE_TEXT of qkv_dataset_add()");
    b->tokens = 0;
    for (int64_t i = 0; i < all; i++) {
        int32_t id = b->source[i];
        uint32_t chance[2];
        qkv__threefry(key, (uint32_t)i, (uint32_t)((uint64_t)i >> 32), chance);
        bool ordinary = id >= first && id != mask && i % b->source_length < b->source_lengths[i / b->source_length];
        b->labels[i] = QKV_IGNORED;
        if (ordinary && fallback < 0) fallback = i;
        if (!ordinary || (double)chance[0] >= l->arg[RATE] * 4294967296.0) continue;
        b->labels[i] = id;
        b->tokens++;
        if (chance[1] < 8 * tenth) b->source[i] = mask;
        else if (chance[1] < 9 * tenth)
            b->source[i] = first + (int32_t)((uint64_t)(chance[1] - 8 * tenth) * (uint64_t)(vocab_size - first) / tenth);
    }
    if (!b->tokens && fallback >= 0) {
        b->labels[fallback] = b->source[fallback];
        b->source[fallback] = mask;
        b->tokens = 1;
    }
    return QKV_OK;
}

/* Of the chosen tokens alone: the layer before the softmax is most of the work, and the others would not count. */
static qkv_tensor *masked_loss(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)l;
    const qkv__transformer *x = qkv__model_transformer(m);
    int64_t all = b->rows * b->source_length, n = 0;
    int32_t *places = qkv__save(t, 2 * sizeof *places * (size_t)b->tokens), *labels = places + b->tokens;
    if (!places) return NULL;
    for (int64_t i = 0; i < all; i++)
        if (b->labels[i] != QKV_IGNORED) places[n] = (int32_t)i, labels[n++] = b->labels[i];
    qkv_tensor *hidden = qkv__transformer_encode(
        x, t, &(qkv_tokens){ .ids = b->source, .rows = b->rows, .length = b->source_length, .lengths = b->source_lengths });
    qkv_tensor *rows = qkv_reshape(hidden, 2, (int64_t[]){ all, -1 });
    qkv_tensor *logits = qkv__transformer_logits(x, qkv_gather(t, rows, places, 1, &n));
    return qkv_cross_entropy(logits, labels, &(qkv_cross_entropy_opts){ .label_smoothing = smoothing });
}

static qkv_tensor *no_masking(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)l, (void)m, (void)b, (void)smoothing;
    return qkv__error(t, QKV_USAGE, "masking: the options fit no release, or there is no mask, or no vocabulary");
}

qkv_loss qkv_loss_masked_lm(const qkv_model *m, const qkv_masked_lm_opts *opts)
{
    qkv_masked_lm_opts o;
    qkv_special_tokens own = { .size = sizeof own };
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    bool is_known = !QKV__READ_OPTIONS(&o, vocab_size, opts, "masking");
    if (is_known && !o.special && !qkv_model_special_tokens(m, &own)) o.special = &own;
    if (is_known && !o.vocab_size && t) o.vocab_size = qkv_tokenizer_vocab_size(t);
    if (!is_known || !o.special || o.special->mask < 0 || o.vocab_size < 1)
        return (qkv_loss){ .compute = no_masking, .id = MASKED };
    double rate = o.rate > 0 ? (double)o.rate : 0.15;
    return (qkv_loss){ .prepare = choose_masked,
                       .compute = masked_loss,
                       .arg = { rate, o.special->mask, o.special->first_ordinary, (double)o.vocab_size },
                       .id = MASKED ^ (uint64_t)(rate * 1e6) << 32 };
}

/* ---- classes ---- */

static int32_t class_of(const qkv_batch *b, int64_t row) { return b->labels[row * b->target_length]; }

static qkv_status count_texts(const qkv_loss *l, qkv_batch *b, uint64_t seed, uint64_t pass)
{
    (void)l, (void)seed, (void)pass;
    b->tokens = b->rows;
    return QKV_OK;
}

/* The weight of each row's class, all 1 without any; and their sum. NULL with the error on the tape. */
static float *row_weights(const float *weights, int64_t n, qkv_tape *t, const qkv_batch *b, double *sum)
{
    float *of_rows = qkv__save(t, sizeof *of_rows * (size_t)b->rows);
    *sum = 0;
    for (int64_t i = 0; of_rows && i < b->rows; i++) {
        int32_t class_id = class_of(b, i);
        if (class_id < 0 || class_id >= n) {
            qkv__error(t, QKV_USAGE, "classify: class %ld is outside 0..%lld", (long)class_id, (long long)n - 1);
            return NULL;
        }
        of_rows[i] = weights ? weights[class_id] : 1;
        *sum += (double)of_rows[i];
    }
    return of_rows;
}

/* sum w_i loss_i / texts. Divided by the texts and not by their weights, batches add up to the whole, and weights count in a
 * batch of one text too. */
static qkv_tensor *class_loss(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    double sum;
    int32_t *classes = qkv__save(t, sizeof *classes * (size_t)b->rows);
    const qkv__transformer *x = qkv__model_transformer(m);
    const float *weights = row_weights(l->data, qkv__transformer_config(x)->classes, t, b, &sum);
    if (!classes || !weights) return NULL;
    for (int64_t i = 0; i < b->rows; i++) classes[i] = class_of(b, i);
    qkv_tokens s;
    qkv_tensor *attention = qkv__batch_logits(m, t, b, &s), *logits = qkv__ngrams_add(x, attention, &s, classes);
    const qkv_cross_entropy_opts opts = { .label_smoothing = smoothing, .weights = weights };
    qkv_tensor *loss = qkv_cross_entropy(logits, classes, &opts);
    float alone = qkv__is_training(t) ? qkv__ngrams_overlap(x) : 0;
    if (alone > 0) loss = qkv_add(qkv_scale(loss, 1 - alone), qkv_scale(qkv_cross_entropy(attention, classes, &opts), alone));
    return qkv_scale(loss, (float)(sum / (double)b->rows));
}

qkv_loss qkv_loss_classification(const float *weights, int64_t classes)
{
    uint64_t id = CLASS; /* and the weights */
    for (int64_t i = 0; weights && i < classes; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i], sizeof bits);
        id = qkv__hash_add(id, bits);
    }
    return (qkv_loss){ .prepare = count_texts, .compute = class_loss, .data = weights, .id = id };
}

static const int32_t *target_of(const qkv_batch *b, int64_t row) { return b->labels + row * b->target_length; }

/* The mean over texts and labels; smoothing moves each target that share of the way to 1/2. */
static qkv_tensor *labels_loss(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)l;
    int64_t labels = qkv__model_config(m)->classes;
    if (labels < 1 || b->target_length <= (labels - 1) / QKV__LABEL_BITS)
        return qkv__error(t, QKV_USAGE, "classify: the texts are not of kind QKV_EXAMPLE_LABELS of qkv_dataset_add()");
    float *wanted = qkv__save(t, sizeof *wanted * (size_t)(b->rows * labels));
    for (int64_t i = 0; wanted && i < b->rows; i++)
        for (int64_t k = 0; k < labels; k++)
            wanted[i * labels + k] = qkv__labels_have(target_of(b, i), k) ? 1 - smoothing / 2 : smoothing / 2;
    if (!wanted) return NULL;
    return qkv_binary_cross_entropy(qkv__classify_batch(m, t, b), qkv_constant(t, QKV_SHAPE(b->rows, labels), wanted));
}

qkv_loss qkv_loss_multilabel(void) { return (qkv_loss){ .prepare = count_texts, .compute = labels_loss, .id = SEVERAL }; }

static qkv_tensor *number_loss(const qkv_loss *l, const qkv_model *m, qkv_tape *t, const qkv_batch *b, float smoothing)
{
    (void)l, (void)smoothing;
    float *wanted = qkv__save(t, sizeof *wanted * (size_t)b->rows);
    for (int64_t i = 0; wanted && i < b->rows; i++) wanted[i] = qkv__label_value(target_of(b, i));
    if (!wanted) return NULL;
    return qkv_mse(qkv__classify_batch(m, t, b), qkv_constant(t, QKV_SHAPE(b->rows, 1), wanted));
}

qkv_loss qkv_loss_regression(void) { return (qkv_loss){ .prepare = count_texts, .compute = number_loss, .id = NUMBER }; }
