/* quiz_numbers.c: the numbers in the answers of the quiz, computed by the library. */
#include "quiz.h"

#include "lesson.h"
#include "line_fit.h"
#include "../term/errors.h"

#include <math.h>

static qkv_status take(qkv_tape *t, const qkv_tensor *x, int count, double *n)
{
    if (qkv_tape_status(t)) return library_failed();
    for (int i = 0; i < count; i++) n[i] = (double)qkv_tensor_data(x)[i];
    return QKV_OK;
}

qkv_status numbers_of_shares(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    static const float q[] = { 1, 0 }, k[] = { 1, 0, 0, 1, 1, 0 }, v[] = { 10, 0, 0, 20, 30, 0 };
    qkv_tensor *weights = NULL;
    qkv_tensor *y = qkv_attention(qkv_constant(t, QKV_SHAPE(1, 2), q), qkv_constant(t, QKV_SHAPE(3, 2), k),
                                  qkv_constant(t, QKV_SHAPE(3, 2), v), NULL, &(qkv_attention_opts){ .weights = &weights });
    qkv_status status = take(t, y, 1, n + 3);
    return status ? status : take(t, weights, 3, n);
}

qkv_status numbers_of_softmax(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    static const float x[] = { 2, 1, 0.1f };
    return take(t, qkv_softmax(qkv_constant(t, QKV_SHAPE(1, 3), x)), 3, n);
}

qkv_status numbers_of_layernorm(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    static const float heights[] = { 140, 150, 160, 170, 180 }, ones[] = { 1, 1, 1, 1, 1 };
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(1, 5), heights), *gain = qkv_constant(t, QKV_SHAPE(5), ones);
    qkv_status status = take(t, qkv_layer_norm(x, gain, NULL, 1e-5f), 2, n);
    return status ? status : take(t, qkv_rms_norm(x, gain, 1e-5f), 2, n + 2);
}

qkv_status numbers_of_smoothing(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    static const float logits[] = { 2, 1, 0.1f, 0.5f, 2.5f, 0.3f }, targets[] = { 0.9f, 0.05f, 0.05f, 0.05f, 0.9f, 0.05f };
    static const int32_t classes[] = { 0, 1 };
    qkv_tensor *x = qkv_constant(t, QKV_SHAPE(2, 3), logits);
    /* KL(target || p) = sum of target (log target - log p), over 2 rows */
    float log_targets[6];
    for (int i = 0; i < 6; i++) log_targets[i] = logf(targets[i]);
    qkv_tensor *gap = qkv_sub(qkv_constant(t, QKV_SHAPE(2, 3), log_targets), qkv_log_softmax(x));
    qkv_tensor *kl = qkv_scale(qkv_sum(qkv_mul(qkv_constant(t, QKV_SHAPE(2, 3), targets), gap), QKV_ALL_DIMS), 0.5f);
    qkv_tensor *soft = qkv_cross_entropy(x, classes, &(qkv_cross_entropy_opts){ .label_smoothing = 0.1f });
    qkv_status status = take(t, qkv_cross_entropy(x, classes, NULL), 1, n);
    if (!status) status = take(t, soft, 1, n + 1);
    return status ? status : take(t, kl, 1, n + 2);
}

qkv_status numbers_of_rate(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    qkv_schedule s = { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 4000, .dim = 512 };
    (void)t;
    n[0] = qkv_schedule_lr(&s, 4000);
    s.dim = 256;
    n[1] = qkv_schedule_lr(&s, 4000);
    return QKV_OK;
}

qkv_status numbers_of_position(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    return take(t, qkv_sinusoid(t, 4, 1, 4, QKV_POSITION_SINUSOID), 4, n);
}

qkv_status numbers_of_layer(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    qkv_params *p = qkv_params_new(1);
    (void)t;
    qkv_mha_new(p, "attention", &(qkv_mha_opts){ .dim = 512, .heads = 8 });
    n[0] = (double)qkv_params_count(p);
    qkv_ffn_new(p, "ffn", &(qkv_ffn_opts){ .dim = 512, .d_ff = 2048 });
    n[1] = (double)qkv_params_count(p) - n[0];
    qkv_status status = qkv_params_status(p) ? library_failed() : QKV_OK;
    qkv_params_free(p);
    return status;
}

qkv_status numbers_of_models(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    qkv_config base = { 0 }, big = { 0 };
    (void)t;
    if (qkv_config_preset("base", 37000, &base) || qkv_config_preset("big", 37000, &big)) return library_failed();
    n[0] = count_weights(&base).total / 1e6, n[1] = count_weights(&big).total / 1e6,
    n[2] = count_weights(&base).embedding / 1e6;
    return QKV_OK;
}

qkv_status numbers_of_bleu(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    const qkv_str hypothesis = qkv_cstr("the quick brown fox jumps over the dog"),
                  reference = qkv_cstr("the quick brown fox jumps over the lazy dog"), *references = &reference;
    qkv_bleu_score *score = NULL;
    (void)t;
    if (qkv_bleu(&hypothesis, &references, 1, 1, NULL, &score)) return library_failed();
    n[0] = score->score, n[1] = score->brevity_penalty;
    qkv_free(score);
    return QKV_OK;
}

qkv_status numbers_of_rotary(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    static const float x[] = { 1, 0 };
    static const int32_t place = 1;
    return take(t, qkv_rope(qkv_constant(t, QKV_SHAPE(1, 1, 2), x), &(qkv_rope_opts){ .positions = &place }), 2, n);
}

qkv_status numbers_of_line(qkv_tape *t, double n[QUIZ_NUMBERS])
{
    line_fit f;
    float loss = 0;
    (void)t;
    qkv_status status = start_line(&f, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = 0.01f });
    if (!status) status = step_line(&f, &loss);
    if (!status) n[0] = (double)loss, n[1] = (double)qkv_tensor_item(f.w), n[2] = (double)qkv_tensor_item(f.b);
    free_line(&f);
    return status;
}
