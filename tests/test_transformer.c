/* test_transformer.c: encoder-decoder, encoder and decoder with the same weights as in PyTorch: the same logits, gradients and
 * losses; the bits do not depend on threads, batch or padding; a later token changes no earlier logit. */
#include <qkv/qkv.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "nn/params.h"
#include "nn/transformer.h"

enum { BATCH = 3, SOURCE = 7, TARGET = 6, STEPS = 20, MODELS = 8 };
static const int32_t source_lengths[BATCH] = { 7, 4, 1 }, target_lengths[BATCH] = { 6, 3, 5 };

/* golden/make_transformer.py has the same ones */
static const qkv_config models[MODELS] = {
    { .vocab_size = 23, .encoder_layers = 2, .decoder_layers = 2, .dim = 16, .heads = 4, .d_ff = 32 },
    { .vocab_size = 23,
      .encoder_layers = 2,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_LEARNED,
      .max_positions = 9,
      .pre_norm = 1,
      .activation = QKV_ACTIVATION_GELU },
    { .vocab_size = 23,
      .decoder_layers = 2,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_ROPE,
      .pre_norm = 1,
      .norm = QKV_NORM_RMS,
      .activation = QKV_ACTIVATION_SWIGLU,
      .no_bias = 1,
      .kv_heads = 2,
      .untied = 1,
      .unscaled = 1 },
    { .vocab_size = 23,
      .target_vocab_size = 19,
      .encoder_layers = 1,
      .decoder_layers = 2,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_SINUSOID_HALVES,
      .first_position = 2,
      .activation = QKV_ACTIVATION_GELU_TANH,
      .kv_heads = 1,
      .d_k = 6 },
    { .vocab_size = 23,
      .encoder_layers = 2,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_LEARNED,
      .max_positions = 7,
      .first_position = 2,
      .activation = QKV_ACTIVATION_GELU,
      .unscaled = 1,
      .norm_eps = 1e-12f,
      .embed_norm = 1,
      .token_types = 2,
      .head = 1,
      .output_bias = 1,
      .classes = 3,
      .pooling = QKV_POOLING_FIRST,
      .pooler = QKV_POOLER_TANH },
    { .vocab_size = 23,
      .decoder_layers = 2,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_ROPE,
      .pre_norm = 1,
      .norm = QKV_NORM_RMS,
      .activation = QKV_ACTIVATION_SWIGLU,
      .no_bias = 1,
      .kv_heads = 2,
      .untied = 1,
      .unscaled = 1,
      .output_bias = 1,
      .qkv_bias = 1,
      .rope_base = 500,
      .rope_factor = 4,
      .rope_low = 1,
      .rope_high = 4,
      .rope_length = 24 },
    { .vocab_size = 23,
      .encoder_layers = 1,
      .decoder_layers = 1,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_LEARNED,
      .max_positions = 9,
      .activation = QKV_ACTIVATION_SILU,
      .embed_norm = 1,
      .head = 1,
      .output_bias = 1,
      .token_types = 3,
      .classes = 3,
      .pooler = QKV_POOLER_RELU },
    { .vocab_size = 23,
      .encoder_layers = 2,
      .dim = 16,
      .heads = 4,
      .d_ff = 32,
      .positions = QKV_POSITION_ROPE,
      .pre_norm = 1,
      .activation = QKV_ACTIVATION_GEGLU,
      .no_bias = 1,
      .unscaled = 1,
      .embed_norm = 1,
      .head = 1,
      .output_bias = 1,
      .no_norm_bias = 1,
      .no_first_norm = 1,
      .no_head_bias = 1,
      .classes = 3,
      .pooler = QKV_POOLER_HEAD },
};

/* ---- numbers that depend on a name alone ---- */

static uint32_t draw_from(const char *name)
{
    uint32_t state = 2166136261u;
    for (; *name; name++) state = (state ^ (unsigned char)*name) * 16777619u;
    return state;
}

static double draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 8388608.0 - 1;
}

static void draw_ids(int32_t *to, const char *name, int64_t vocabulary, int n)
{
    uint32_t state = draw_from(name);
    for (int i = 0; i < n; i++) to[i] = (int32_t)((draw(&state) + 1) / 2 * (double)vocabulary);
}

static bool is_gain(const char *name)
{
    size_t n = strlen(name), ending = strlen("norm.weight");
    return n >= ending && !strcmp(name + n - ending, "norm.weight");
}

/* Sets a weight, and gives the state that draws what comes after it. */
static uint32_t draw_weight(const char *name, qkv_tensor *w)
{
    uint32_t state = draw_from(name);
    for (int64_t i = 0; i < qkv_tensor_count(w); i++) {
        double x = draw(&state);
        qkv_tensor_data_mut(w)[i] = (float)(qkv_tensor_ndim(w) == 2 ? 0.3 * x : is_gain(name) ? 1 + 0.1 * x : 0.1 * x);
    }
    return state;
}

static qkv__transformer *model_with_drawn_weights(qkv_params *p, int number)
{
    qkv__transformer *m = qkv__transformer_new(p, &models[number]);
    assert_non_null(m);
    for (int i = 0; i < qkv_params_size(p); i++) draw_weight(qkv_params_name(p, i), qkv_params_at(p, i));
    return m;
}

/* ---- one forward ---- */

typedef struct batch {
    int32_t source[BATCH * SOURCE], target[BATCH * TARGET];
} batch;

static int64_t output_size(const qkv_config *o) { return o->target_vocab_size ? o->target_vocab_size : o->vocab_size; }

static batch draw_batch(const qkv_config *o)
{
    batch b;
    draw_ids(b.source, "source", o->vocab_size, BATCH * SOURCE);
    draw_ids(b.target, "target", output_size(o), BATCH * TARGET);
    return b;
}

static qkv_tensor *encode(const qkv__transformer *m, qkv_tape *t, const batch *b)
{
    int64_t types = qkv__transformer_config(m)->token_types;
    if (!types)
        return qkv__transformer_encode(
            m, t, &(qkv_tokens){ .ids = b->source, .rows = BATCH, .length = SOURCE, .lengths = source_lengths });
    int32_t drawn[BATCH * SOURCE];
    draw_ids(drawn, "types", types, BATCH * SOURCE);
    return qkv__transformer_encode(
        m, t, &(qkv_tokens){ .ids = b->source, .types = drawn, .rows = BATCH, .length = SOURCE, .lengths = source_lengths });
}

static qkv_tensor *logits_of(const qkv__transformer *m, qkv_tape *t, const batch *b)
{
    const qkv_config *o = qkv__transformer_config(m);
    qkv_tensor *memory = NULL, *x;
    if (o->encoder_layers) memory = encode(m, t, b);
    x = memory;
    if (o->decoder_layers)
        x = qkv__transformer_decode(
            m, t, &(qkv_tokens){ .ids = b->target, .rows = BATCH, .length = TARGET, .lengths = target_lengths }, memory,
            o->encoder_layers ? source_lengths : NULL);
    return qkv__transformer_logits(m, x);
}

/* Of the words, and of the classes where there are any. */
static qkv_tensor *loss_with_classes(const qkv__transformer *m, qkv_tape *t, const batch *b, qkv_tensor *words)
{
    static const int32_t labels[BATCH] = { 0, 1, 2 };
    if (!qkv__transformer_config(m)->classes) return words;
    qkv_tensor *classes = qkv__transformer_classify(m, encode(m, t, b), source_lengths);
    return qkv_add(words, qkv_cross_entropy(classes, labels, NULL));
}

static qkv_tensor *loss_of(const qkv__transformer *m, qkv_tensor *logits)
{
    const qkv_config *o = qkv__transformer_config(m);
    const int32_t *lengths = o->decoder_layers ? target_lengths : source_lengths;
    int length = o->decoder_layers ? TARGET : SOURCE;
    int32_t labels[BATCH * SOURCE];
    draw_ids(labels, "labels", output_size(o), BATCH * length);
    for (int i = 0; i < BATCH * length; i++)
        if (i % length >= lengths[i / length]) labels[i] = -100;
    return qkv_cross_entropy(logits, labels, &(qkv_cross_entropy_opts){ .label_smoothing = 0.1f });
}

/* ---- against PyTorch ---- */

static double next_golden(FILE *f)
{
    float x;
    assert_int_equal(fread(&x, sizeof x, 1, f), 1);
    return (double)x;
}

static void assert_close(const char *what, int number, double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance)) fail_msg("model %d: %s is %.8g, PyTorch says %.8g", number, what, got, expected);
}

static void compare_gradient(FILE *f, int number, qkv_params *p, int i)
{
    qkv_tensor *w = qkv_params_at(p, i);
    const char *name = qkv_params_name(p, i);
    const float *grad = qkv_tensor_grad(w);
    uint32_t state = draw_from(name);
    for (int64_t k = 0; k < qkv_tensor_count(w); k++) draw(&state);
    double squares = 0, product = 0;
    for (int64_t k = 0; k < qkv_tensor_count(w); k++) {
        squares += (double)grad[k] * (double)grad[k];
        product += (double)grad[k] * draw(&state);
    }
    double length = next_golden(f), along = next_golden(f);
    assert_close(name, number, sqrt(squares), length, 1e-3 * length + 1e-7);
    assert_close(name, number, product, along, 1e-3 * length + 1e-7);
}

static void compare_model(FILE *f, int number)
{
    qkv_params *p = qkv_params_new(1);
    qkv__transformer *m = model_with_drawn_weights(p, number);
    qkv_optimizer *adam = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .lr = 3e-3f });
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .train = 1 });
    batch b = draw_batch(&models[number]);
    for (int step = 0; step < STEPS; step++) {
        qkv_tensor *logits = logits_of(m, t, &b), *loss = loss_with_classes(m, t, &b, loss_of(m, logits));
        for (int64_t i = 0; step == 0 && i < qkv_tensor_count(logits); i++)
            assert_close("a logit", number, (double)qkv_tensor_data(logits)[i], next_golden(f), 1e-4);
        assert_int_equal(qkv_backward(loss), QKV_OK);
        for (int i = 0; step == 0 && i < qkv_params_size(p); i++) compare_gradient(f, number, p, i);
        assert_close("a loss", number, (double)qkv_tensor_item(loss), next_golden(f), 1e-3);
        assert_int_equal(qkv_optimizer_step(adam), QKV_OK);
        qkv_tape_reset(t);
    }
    qkv_tape_free(t);
    qkv_optimizer_free(adam);
    qkv_params_free(p);
}

static void parity_with_pytorch(void **state)
{
    (void)state;
    FILE *f = fopen(QKV_GOLDEN "/transformer.f32", "rb");
    assert_non_null(f);
    for (int number = 0; number < MODELS; number++) compare_model(f, number);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

/* ---- bits ---- */

/* All logits of a model, in a buffer of its own. */
static int64_t copy_logits(const qkv__transformer *m, const batch *b, float *to)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *logits = logits_of(m, t, b);
    int64_t n = qkv_tensor_count(logits);
    assert_true(n > 0 && n <= 1024);
    memcpy(to, qkv_tensor_data(logits), sizeof(float) * (size_t)n);
    qkv_tape_free(t);
    return n;
}

/* Dropout on, 5 steps of training: the same weights, whatever the threads. */
static void train_briefly(int number, int threads, float *weights, int64_t room)
{
    qkv_set_num_threads(threads);
    qkv_params *p = qkv_params_new(1);
    qkv_config o = models[number];
    o.dropout = o.attention_dropout = o.ffn_dropout = 0.2f;
    qkv__transformer *m = qkv__transformer_new(p, &o);
    qkv_optimizer *adam = qkv_optimizer_new(p, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAMW });
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .train = 1, .seed = 4 });
    batch b = draw_batch(&o);
    for (int step = 0; step < 5; step++) {
        assert_int_equal(qkv_backward(loss_of(m, logits_of(m, t, &b))), QKV_OK);
        assert_int_equal(qkv_optimizer_step(adam), QKV_OK);
        qkv_tape_reset(t);
    }
    assert_int_equal(qkv__params_block(p), room);
    memcpy(weights, qkv__params_data(p), sizeof(float) * (size_t)room);
    qkv_tape_free(t);
    qkv_optimizer_free(adam);
    qkv_params_free(p);
    qkv_set_num_threads(0);
}

static void same_weights_on_any_threads(void **state)
{
    (void)state;
    for (int number = 0; number < MODELS; number++) {
        qkv_params *p = qkv_params_new(1);
        assert_non_null(qkv__transformer_new(p, &models[number]));
        int64_t room = qkv__params_block(p);
        float *first = malloc(sizeof(float) * (size_t)room), *other = malloc(sizeof(float) * (size_t)room);
        train_briefly(number, 1, first, room);
        assert_memory_not_equal(first, qkv__params_data(p), sizeof(float) * (size_t)room); /* it did train */
        for (int threads = 2; threads <= 4; threads++) {
            train_briefly(number, threads, other, room);
            assert_memory_equal(first, other, sizeof(float) * (size_t)room);
        }
        free(first);
        free(other);
        qkv_params_free(p);
    }
}

/* What stands in the padding, and what comes later, changes no logit of a real and earlier place. */
static void padding_and_future_change_nothing(void **state)
{
    (void)state;
    static float before[1024], after[1024];
    for (int number = 0; number < MODELS; number++) {
        const qkv_config *o = &models[number];
        qkv_params *p = qkv_params_new(1);
        qkv__transformer *m = model_with_drawn_weights(p, number);
        batch b = draw_batch(o), other = b;
        for (int i = 0; i < BATCH * SOURCE; i++)
            if (i % SOURCE >= source_lengths[i / SOURCE]) other.source[i] = (b.source[i] + 1) % (int32_t)o->vocab_size;
        const int changed_at = 2; /* the third token of every target, and all after it */
        for (int i = 0; i < BATCH * TARGET; i++)
            if (i % TARGET >= changed_at) other.target[i] = (b.target[i] + 1) % (int32_t)output_size(o);
        int64_t size = output_size(o);
        copy_logits(m, &b, before);
        copy_logits(m, &other, after);
        int length = o->decoder_layers ? TARGET : SOURCE, changes = 0;
        for (int i = 0; i < BATCH * length; i++) {
            bool real = o->decoder_layers ? i % length < changed_at : i % length < source_lengths[i / length];
            bool same = !memcmp(before + i * size, after + i * size, sizeof(float) * (size_t)size);
            if (real) assert_true(same);
            changes += !same;
        }
        assert_true(changes > 0); /* the others did change */
        qkv_params_free(p);
    }
}

/* A sentence alone, without padding, has the bits it has in the batch. */
static void same_bits_alone_as_in_a_batch(void **state)
{
    (void)state;
    static float together[1024];
    for (int number = 0; number < MODELS; number++) {
        const qkv_config *o = &models[number];
        qkv_params *p = qkv_params_new(1);
        qkv__transformer *m = model_with_drawn_weights(p, number);
        batch b = draw_batch(o);
        copy_logits(m, &b, together);
        int64_t size = output_size(o), length = o->decoder_layers ? TARGET : SOURCE;
        for (int row = 0; row < BATCH; row++) {
            qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
            qkv_tensor *memory = NULL, *x;
            if (o->encoder_layers) {
                int32_t types[BATCH * SOURCE];
                draw_ids(types, "types", o->token_types, BATCH * SOURCE);
                memory = qkv__transformer_encode(m, t,
                                                 &(qkv_tokens){ .ids = b.source + row * SOURCE,
                                                                .types = o->token_types ? types + row * SOURCE : NULL,
                                                                .rows = 1,
                                                                .length = source_lengths[row] });
            }
            x = memory;
            if (o->decoder_layers)
                x = qkv__transformer_decode(
                    m, t, &(qkv_tokens){ .ids = b.target + row * TARGET, .rows = 1, .length = target_lengths[row] }, memory,
                    NULL);
            qkv_tensor *alone = qkv__transformer_logits(m, x);
            assert_int_equal(qkv_tape_status(t), QKV_OK);
            assert_memory_equal(qkv_tensor_data(alone), together + row * length * size,
                                sizeof(float) * (size_t)qkv_tensor_count(alone));
            qkv_tape_free(t);
        }
        qkv_params_free(p);
    }
}

/* ---- hidden states ---- */

static void hidden_states_are_kept(void **state)
{
    (void)state;
    for (int number = 0; number < MODELS; number++) {
        const qkv_config *o = &models[number];
        qkv_params *p = qkv_params_new(1);
        qkv__transformer *m = model_with_drawn_weights(p, number);
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_hidden = 1 });
        batch b = draw_batch(o);
        qkv_tensor *logits = logits_of(m, t, &b);
        int n = 0, expected = (o->encoder_layers ? o->encoder_layers + 1 : 0) + (o->decoder_layers ? o->decoder_layers + 1 : 0);
        while (qkv_tape_hidden(t, n)) assert_int_equal(qkv_tensor_dim(qkv_tape_hidden(t, n++), -1), o->dim);
        assert_int_equal(n, expected);
        qkv_tensor *again = qkv__transformer_logits(m, qkv_tape_hidden(t, n - 1));
        assert_memory_equal(qkv_tensor_data(again), qkv_tensor_data(logits), sizeof(float) * (size_t)qkv_tensor_count(logits));
        qkv_tape_reset(t);
        assert_null(qkv_tape_hidden(t, 0));
        qkv_tape_free(t);
        qkv_params_free(p);
    }
}

/* Without types, all are of type 0. */
static void types_default_to_the_first(void **state)
{
    (void)state;
    static const int32_t zeros[BATCH * SOURCE];
    qkv_params *p = qkv_params_new(1);
    qkv__transformer *m = model_with_drawn_weights(p, 4);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    batch b = draw_batch(&models[4]);
    qkv_tensor *bare = qkv__transformer_encode(
        m, t, &(qkv_tokens){ .ids = b.source, .rows = BATCH, .length = SOURCE, .lengths = source_lengths });
    qkv_tensor *typed = qkv__transformer_encode(
        m, t, &(qkv_tokens){ .ids = b.source, .types = zeros, .rows = BATCH, .length = SOURCE, .lengths = source_lengths });
    qkv_tensor *drawn = encode(m, t, &b);
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    assert_memory_equal(qkv_tensor_data(bare), qkv_tensor_data(typed), sizeof(float) * (size_t)qkv_tensor_count(bare));
    assert_memory_not_equal(qkv_tensor_data(bare), qkv_tensor_data(drawn), sizeof(float) * (size_t)qkv_tensor_count(bare));
    qkv_tape_free(t);
    qkv_params_free(p);
}

/* ---- presets, names, bad input ---- */

static void presets(void **state)
{
    (void)state;
    qkv_config o = QKV_OPTS(qkv_config);
    assert_int_equal(qkv_config_preset("base", 37000, &o), QKV_OK);
    qkv_params *p = qkv_params_new(1);
    assert_non_null(qkv__transformer_new(p, &o));
    assert_int_equal(qkv_params_count(p), 63082496); /* the paper's table 3: 65 million */
    qkv_params_free(p);
    assert_int_equal(qkv_config_preset("big", 100, &o), QKV_OK);
    assert_true(o.dim == 1024 && o.heads == 16 && o.d_ff == 4096 && o.encoder_layers == 6);
    assert_int_equal(qkv_config_preset("huge", 100, &o), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "\"huge\""));
}

static void weights_are_saved_and_loaded(void **state)
{
    (void)state;
    static float first[1024], second[1024];
    char path[] = "/tmp/qkv-transformer-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (int number = 0; number < MODELS; number++) {
        qkv_params *p = qkv_params_new(1), *q = qkv_params_new(2);
        qkv__transformer *m = model_with_drawn_weights(p, number), *loaded = qkv__transformer_new(q, &models[number]);
        batch b = draw_batch(&models[number]);
        assert_int_equal(qkv_params_save(p, path), QKV_OK);
        assert_int_equal(qkv_params_load(q, path), QKV_OK);
        int64_t n = copy_logits(m, &b, first);
        assert_int_equal(copy_logits(loaded, &b, second), n);
        assert_memory_equal(first, second, sizeof(float) * (size_t)n);
        qkv_params_free(p);
        qkv_params_free(q);
    }
    unlink(path);
}

static void bad_options(void **state)
{
    (void)state;
    const qkv_config good = models[0];
    struct {
        qkv_config o;
        const char *words;
    } rows[] = {
        { good, "at least 1 token" },
        { good, "negative" },
        { good, "at least 1 layer" },
        { good, "inner width" },
        { good, "does not divide" },
        { good, "longest" },
        { good, "dropout" },
        { good, "no such norm" },
        { good, "no such kind" },
        { good, "first position" },
        { good, "of its own" },
        { good, "no such pooler" },
        { good, "token types need" },
        { good, "one to leave out" },
        { good, "rotary positions" },
        { good, "at least 1" },
        { good, "rotary_low" },
        { good, "rotary length" },
        { good, "the pooler is the head" },
        { good, "exclude each other" },
        { good, "at least 4 buckets" },
        { good, "more than half of" },
        { good, "an encoder alone" },
    };
    rows[0].o.vocab_size = 0;
    rows[1].o.encoder_layers = -1;
    rows[2].o.encoder_layers = rows[2].o.decoder_layers = 0;
    rows[3].o.d_ff = 0;
    rows[4].o.heads = 5;
    rows[5].o.positions = QKV_POSITION_LEARNED;
    rows[6].o.dropout = NAN;
    rows[7].o.norm = (qkv_norm_kind)7;
    rows[8].o.positions = (qkv_position_kind)9;
    rows[9].o.first_position = -1;
    rows[10].o.target_vocab_size = 5, rows[10].o.decoder_layers = 0;
    rows[11].o.pooler = (qkv_pooler)7;
    rows[12].o.token_types = 2, rows[12].o.encoder_layers = 0;
    rows[13].o.no_first_norm = 1;
    for (int i = 14; i < 18; i++) {
        rows[i].o.positions = QKV_POSITION_ROPE;
        rows[i].o.rope_factor = 8, rows[i].o.rope_low = 1, rows[i].o.rope_high = 4, rows[i].o.rope_length = 64;
    }
    rows[14].o.positions = QKV_POSITION_SINUSOID;
    rows[15].o.rope_factor = NAN;
    rows[16].o.rope_high = 1;
    rows[17].o.rope_length = 0;
    rows[18].o.pooler = QKV_POOLER_HEAD;
    for (int i = 19; i < 23; i++) rows[i].o.size = sizeof good, rows[i].o.relative_buckets = 8;
    rows[19].o.score_softcap = 2;
    rows[20].o.relative_buckets = 3;
    rows[21].o.relative_max_distance = 4;
    rows[22].o.embed_dim = 4;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_params *p = qkv_params_new(1);
        assert_null(qkv__transformer_new(p, &rows[i].o));
        assert_int_equal(qkv_params_status(p), QKV_USAGE);
        if (!strstr(qkv_error(), rows[i].words)) fail_msg("row %zu says \"%s\"", i, qkv_error());
        qkv_params_free(p);
    }
}

static void bad_calls(void **state)
{
    (void)state;
    static const int32_t ids[12] = { 0 };
    const struct {
        int model;
        bool decode, memory;
        int64_t length;
        const char *words;
    } rows[] = { { 1, true, false, 3, "has no decoder" },
                 { 2, false, false, 3, "has no encoder" },
                 { 2, true, true, 3, "alone" },
                 { 0, true, false, 3, "needs its memory" },
                 { 1, false, false, 10, "the table has 9" },
                 { 4, false, false, 8, "the table has 9" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_params *p = qkv_params_new(1);
        qkv__transformer *m = model_with_drawn_weights(p, rows[i].model);
        qkv_tape *t = qkv_tape_new(NULL);
        qkv_tensor *memory = rows[i].memory ? qkv_constant(t, QKV_SHAPE(1, 2, 16), NULL) : NULL;
        if (rows[i].decode && rows[i].model == 1) memory = qkv_constant(t, QKV_SHAPE(1, 2, 16), NULL);
        assert_null(
            rows[i].decode
                ? qkv__transformer_decode(m, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = rows[i].length }, memory, NULL)
                : qkv__transformer_encode(m, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = rows[i].length }));
        assert_int_equal(qkv_tape_status(t), QKV_USAGE);
        if (!strstr(qkv_error(), rows[i].words)) fail_msg("row %zu says \"%s\"", i, qkv_error());
        qkv_tape_free(t);
        qkv_params_free(p);
    }
}

static qkv_status make_and_run(void)
{
    qkv_params *p = qkv_params_new(1);
    qkv__transformer *m = qkv__transformer_new(p, &models[0]);
    qkv_status status = qkv_params_status(p);
    qkv_tape *t = status ? NULL : qkv_tape_new(&(qkv_tape_opts){ .train = 1 });
    if (!status && !t) status = qkv_error_status();
    if (!status) {
        batch b = draw_batch(&models[0]);
        status = qkv_backward(loss_of(m, logits_of(m, t, &b)));
    }
    qkv_tape_free(t);
    qkv_params_free(p);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(make_and_run) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parity_with_pytorch),
        cmocka_unit_test(same_weights_on_any_threads),
        cmocka_unit_test(padding_and_future_change_nothing),
        cmocka_unit_test(same_bits_alone_as_in_a_batch),
        cmocka_unit_test(hidden_states_are_kept),
        cmocka_unit_test(types_default_to_the_first),
        cmocka_unit_test(presets),
        cmocka_unit_test(weights_are_saved_and_loaded),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
