/* test_touch.c: models with changes, the logit lens, attributions and the walk, against PyTorch (golden/make_touch.py), against
 * finite differences, and against what each change is to be the same as. */
#include <qkv/qkv.h>
#include "nn/params.h"
#include "report/attention.h"
#include "model/model.h"
#include "as_strings.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PAIR, ENCODER, DECODER, MODELS };
enum { VOCABULARY = 14, LAYERS = 2, HEADS = 4, DIM = 16, SOURCE = 6, READ = 5, TEXT = 7, STEPS = 8, AT = 2, CLASSES = 3 };

/* ---- models ---- */

static const qkv_config options[MODELS] = {
    [PAIR] = { .vocab_size = VOCABULARY, .encoder_layers = 2, .decoder_layers = 2, .dim = DIM, .heads = HEADS, .d_ff = 32 },
    [ENCODER] = { .vocab_size = VOCABULARY,
                  .encoder_layers = 2,
                  .dim = DIM,
                  .heads = HEADS,
                  .d_ff = 32,
                  .positions = QKV_POSITION_LEARNED,
                  .max_positions = 9,
                  .pre_norm = 1,
                  .activation = QKV_ACTIVATION_GELU,
                  .classes = CLASSES,
                  .pooler = QKV_POOLER_TANH },
    [DECODER] = { .vocab_size = VOCABULARY,
                  .decoder_layers = 2,
                  .dim = DIM,
                  .heads = HEADS,
                  .kv_heads = 2,
                  .d_ff = 32,
                  .positions = QKV_POSITION_ROPE,
                  .pre_norm = 1,
                  .norm = QKV_NORM_RMS,
                  .activation = QKV_ACTIVATION_SWIGLU,
                  .no_bias = 1,
                  .untied = 1,
                  .unscaled = 1 },
};
static const char *const sources[MODELS] = { "bcadc", "bcadc", "bcadc" }, *const targets[MODELS] = { "cbda", NULL, NULL };

/* Numbers that depend on a weight's name alone, as in test_transformer.c. */
static void draw_weight(const char *name, qkv_tensor *w)
{
    uint32_t state = 2166136261u;
    size_t n = strlen(name);
    bool is_gain = n >= 11 && !strcmp(name + n - 11, "norm.weight");
    for (const char *c = name; *c; c++) state = (state ^ (unsigned char)*c) * 16777619u;
    for (int64_t i = 0; i < qkv_tensor_count(w); i++) {
        state = state * 1664525u + 1013904223u;
        double x = (double)(state >> 8) / 8388608.0 - 1;
        qkv_tensor_data_mut(w)[i] = (float)(qkv_tensor_ndim(w) == 2 ? 0.3 * x : is_gain ? 1 + 0.1 * x : 0.1 * x);
    }
}

/* a is token 4, b 5, and so on. */
static qkv_tokenizer *learn_letters(void)
{
    static const char text[] = "aaaaaaaaaabbbbbbbbbcccccccddddddeeeeefffgghi";
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_CHARACTERS);
    assert_int_equal(qkv_word_counts_add(w, qkv_cstr(text)), QKV_OK);
    qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = VOCABULARY, .min_count = 1 });
    qkv_word_counts_free(w);
    assert_non_null(t);
    return t;
}

static qkv_model *make_model(int which)
{
    qkv_model *m = qkv_model_new(&options[which], 1);
    assert_non_null(m);
    assert_int_equal(qkv_model_set_tokenizers(m, learn_letters(), NULL), QKV_OK);
    qkv_params *p = qkv__model_params(m);
    for (int i = 0; i < qkv_params_size(p); i++) draw_weight(qkv_params_name(p, i), qkv_params_at(p, i));
    return m;
}

static qkv_attention_capture *capture(const qkv_model *m, int which)
{
    qkv_attention_capture *a = NULL;
    const char *target = targets[which];
    if (qkv_attend(m, qkv_cstr(sources[which]), &(qkv_attend_opts){ .target = qkv_cstr(target), .split_characters = 1 }, &a))
        fail_msg("%s", qkv_error());
    return a;
}

static const int32_t source_ids[] = { 5, 6, 4, 7, 6, 2 }, read_ids[] = { 1, 6, 5, 7, 4 }, text_ids[] = { 1, 5, 6, 4, 7, 6, 2 };

/* ---- golden numbers ---- */

static float *golden;
static size_t golden_at, golden_count;

static int read_golden(void **state)
{
    (void)state;
    FILE *f = fopen(QKV_GOLDEN "/touch.f32", "rb");
    golden = malloc(1 << 16);
    if (!f || !golden) return -1;
    golden_count = fread(golden, sizeof *golden, (1 << 16) / sizeof *golden, f);
    golden_at = 0;
    fclose(f);
    return golden_count ? 0 : -1;
}

static int free_golden(void **state)
{
    (void)state;
    free(golden);
    return 0;
}

static void expect_near(double here, double there, const char *what, int64_t i)
{
    if (!(fabs(here - there) <= 2e-5 * (1 + fabs(there)))) fail_msg("%s %d: %.9g, expected %.9g", what, (int)i, here, there);
}

static const float *take_golden(int64_t n)
{
    assert_true(golden_at + (size_t)n <= golden_count);
    golden_at += (size_t)n;
    return golden + golden_at - n;
}

static void expect_floats(const float *here, int64_t n, const char *what)
{
    const float *there = take_golden(n);
    for (int64_t i = 0; i < n; i++) expect_near((double)here[i], (double)there[i], what, i);
}

static void expect_doubles(const double *here, int64_t n, const char *what)
{
    const float *there = take_golden(n);
    for (int64_t i = 0; i < n; i++) expect_near(here[i], (double)there[i], what, i);
}

/* ---- changes ---- */

#define AT_HEAD(k, l, h)                                                               \
    {                                                                                  \
        .what = QKV_EDIT_ABLATE_HEAD, .kind = QKV_ATTENTION_##k, .layer = l, .head = h \
    }
#define CHANGE(w, k, l, p, o)                                                               \
    {                                                                                       \
        .what = QKV_EDIT_##w, .kind = QKV_ATTENTION_##k, .layer = l, .place = p, .other = o \
    }
#define EDIT(k, l, h, p, n)                                                                                        \
    {                                                                                                              \
        .what = QKV_EDIT_ROW, .kind = QKV_ATTENTION_##k, .layer = l, .head = h, .place = p, .row = row, .n_row = n \
    }

static const float row[] = { 0.25f, 0.0f, 0.5f, 0.5f };

typedef struct changes {
    int model, n;
    qkv_edit list[4];
} changes;

/* In the order of make_touch.py. */
static const changes lists[] = {
    { PAIR, 0, { { 0 } } },
    { PAIR, 1, { AT_HEAD(ENCODER, 1, 1) } },
    { PAIR, 1, { AT_HEAD(DECODER, 0, 3) } },
    { PAIR, 2, { AT_HEAD(CROSS, 1, 0), AT_HEAD(CROSS, 1, 2) } },
    { PAIR, 1, { CHANGE(ABLATE_LAYER, ENCODER, 0, 0, 0) } },
    { PAIR, 1, { CHANGE(ABLATE_LAYER, DECODER, 1, 0, 0) } },
    { PAIR, 2, { CHANGE(HIDE_KEY, ENCODER, 0, 1, 0), CHANGE(HIDE_KEY, CROSS, 0, 1, 0) } },
    { PAIR, 1, { CHANGE(HIDE_KEY, DECODER, 0, 1, 0) } },
    { PAIR, 1, { CHANGE(HIDE_KEY, DECODER, 0, 0, 0) } },
    { PAIR, 1, { CHANGE(SET_POSITION, ENCODER, 0, 1, 4) } },
    { PAIR, 1, { CHANGE(SET_POSITION, DECODER, 0, 2, 9) } },
    { PAIR, 1, { EDIT(ENCODER, 0, 2, 3, 4) } },
    { PAIR, 1, { EDIT(DECODER, 1, 1, 3, 4) } },
    { PAIR, 1, { EDIT(CROSS, 1, 3, 2, 4) } },
    { PAIR, 1, { CHANGE(SWAP_VALUES, ENCODER, -1, 0, 3) } },
    { PAIR, 1, { CHANGE(SWAP_VALUES, DECODER, -1, 3, 1) } },
    { PAIR, 1, { CHANGE(SWAP_VALUES, CROSS, 1, 2, 4) } },
    { PAIR, 2, { CHANGE(ZERO_VALUE, DECODER, 0, 1, 0), CHANGE(SWAP_VALUES, DECODER, 0, 1, 2) } },
    { PAIR,
      4,
      { CHANGE(SWAP_VALUES, DECODER, -1, 3, 0), EDIT(DECODER, 0, 0, 3, 4), AT_HEAD(DECODER, 0, 0),
        CHANGE(SWAP_VALUES, DECODER, -1, 1, 2) } },
    { ENCODER, 0, { { 0 } } },
    { ENCODER, 1, { AT_HEAD(ENCODER, 0, 2) } },
    { ENCODER, 1, { CHANGE(ABLATE_LAYER, ENCODER, 1, 0, 0) } },
    { ENCODER, 1, { CHANGE(HIDE_KEY, ENCODER, 0, 2, 0) } },
    { ENCODER, 1, { CHANGE(SET_POSITION, ENCODER, 0, 2, 8) } },
    { ENCODER, 1, { EDIT(ENCODER, 1, 0, 5, 4) } },
    { ENCODER, 1, { CHANGE(SWAP_VALUES, ENCODER, 0, 1, 5) } },
    { DECODER, 0, { { 0 } } },
    { DECODER, 1, { AT_HEAD(DECODER, 1, 1) } },
    { DECODER, 1, { CHANGE(ABLATE_LAYER, DECODER, 0, 0, 0) } },
    { DECODER, 1, { CHANGE(HIDE_KEY, DECODER, 0, 2, 0) } },
    { DECODER, 1, { CHANGE(SET_POSITION, DECODER, 0, 1, 30) } },
    { DECODER, 1, { EDIT(DECODER, 1, 3, 4, 4) } },
    { DECODER, 1, { CHANGE(SWAP_VALUES, DECODER, 1, 3, 1) } },
};

/* Of a model for which gradient x input is asked. */
static const changes touched_why[MODELS] = {
    [PAIR] = { PAIR,
               4,
               { AT_HEAD(CROSS, 0, 1), EDIT(DECODER, 1, 1, 2, 3), CHANGE(SWAP_VALUES, DECODER, -1, 2, 1),
                 CHANGE(HIDE_KEY, ENCODER, 0, 2, 0) } },
    [ENCODER] = { ENCODER, 2, { AT_HEAD(ENCODER, 1, 1), CHANGE(SET_POSITION, ENCODER, 0, 2, 4) } },
    [DECODER] = { DECODER, 3, { AT_HEAD(DECODER, 0, 1), EDIT(DECODER, 1, 2, 2, 3), CHANGE(ZERO_VALUE, DECODER, -1, 1, 0) } },
};

static qkv_model *touch(const qkv_model *m, const changes *x)
{
    qkv_model *touched = qkv_model_edit(m, x->list, x->n);
    if (!touched) fail_msg("%s", qkv_error());
    return touched;
}

/* ---- logits by each way ---- */

/* Of a whole forward: (rows, vocabulary) or (1, classes). */
static qkv_tensor *whole(const qkv_model *m, int which, qkv_tape *t)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *memory = NULL;
    if (which == ENCODER)
        return qkv__transformer_classify(
            x, qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = text_ids, .rows = 1, .length = TEXT }), NULL);
    if (which == DECODER)
        return qkv__transformer_logits(
            x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = text_ids, .rows = 1, .length = TEXT - 1 }, NULL, NULL));
    memory = qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = source_ids, .rows = 1, .length = SOURCE });
    return qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = read_ids, .rows = 1, .length = READ }, memory, NULL));
}

/* Token by token, with the source beside a longer one, so that rows are not of one length. */
static void session_is_same(const qkv_model *m, int which, const qkv_tensor *expected, int keeps)
{
    qkv_session *s = qkv_session_new(m, &(qkv_session_opts){ .keep_attention = keeps });
    int32_t both[2 * 8] = { 0 };
    const int32_t *ids = which == PAIR ? read_ids : text_ids;
    int64_t n = which == PAIR ? READ : TEXT - 1, length = which == PAIR ? SOURCE : TEXT;
    memcpy(both, which == PAIR ? source_ids : text_ids, sizeof(int32_t) * (size_t)length);
    for (int i = 0; i < 8; i++) both[8 + i] = 4 + i % 5;
    if (which == DECODER) assert_int_equal(qkv_session_start(s, 2), QKV_OK);
    else
        assert_int_equal(
            qkv_session_encode(
                s, &(qkv_tokens){ .ids = both, .rows = 2, .length = 8, .lengths = (int32_t[]){ (int32_t)length, 8 } }),
            QKV_OK);
    if (which == ENCODER) {
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        qkv_tensor *hidden = qkv_constant(t, QKV_SHAPE(1, length, DIM), qkv_tensor_data(qkv_session_encoded(s)));
        const qkv_tensor *logits = qkv__transformer_classify(qkv__model_transformer(m), hidden, NULL);
        for (int i = 0; i < CLASSES; i++)
            expect_near((double)qkv_tensor_data(logits)[i], (double)qkv_tensor_data(expected)[i], "class of a batch", i);
        qkv_tape_free(t);
    } else
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(qkv_session_read(s, (int32_t[]){ ids[i], 4 }, NULL, QKV_LOGITS_LAST), QKV_OK);
            const float *logits = qkv_tensor_data(qkv_session_logits(s));
            for (int v = 0; v < VOCABULARY; v++)
                expect_near((double)logits[v], (double)qkv_tensor_data(expected)[i * VOCABULARY + v], "logit of a session",
                            i * VOCABULARY + v);
        }
    qkv_session_free(s);
}

/* The weights of the row that was edited are the row. */
static void edits_are_seen(const qkv_model *touched, int which, const changes *x)
{
    for (int i = 0; i < x->n; i++) {
        if (x->list[i].what != QKV_EDIT_ROW) continue;
        qkv_attention_capture *a = capture(touched, which);
        int64_t keys = qkv_attention_columns(a, x->list[i].kind)->n;
        float weights[64];
        assert_int_equal(qkv_attention_weights(a, x->list[i].kind, x->list[i].layer, x->list[i].head, weights), QKV_OK);
        for (int64_t k = 0; k < keys; k++)
            assert_true(weights[x->list[i].place * keys + k] == (k < x->list[i].n_row ? row[k] : 0));
        qkv_free(a);
    }
}

static void changes_are_those_of_pytorch(int which)
{
    qkv_model *m = make_model(which);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i].model != which) continue;
        qkv_model *touched = touch(m, &lists[i]);
        qkv_tape_reset(t);
        const qkv_tensor *logits = whole(touched, which, t);
        if (!logits) fail_msg("list %d: %s", (int)i, qkv_error());
        char what[32];
        snprintf(what, sizeof what, "list %d, logit", (int)i);
        expect_floats(qkv_tensor_data(logits), qkv_tensor_count(logits), what);
        session_is_same(touched, which, logits, 0);
        session_is_same(touched, which, logits, 1);
        edits_are_seen(touched, which, &lists[i]);
        qkv_model_free(touched);
    }
    qkv_tape_free(t);
    qkv_model_free(m);
}

/* ---- lens and why ---- */

static void lens_is_that_of_pytorch(const qkv_model *m, int which)
{
    qkv_attention_capture *a = capture(m, which);
    qkv_logit_lens_result *lens = NULL;
    int64_t places = which == PAIR ? READ : TEXT - 1, next = which == PAIR ? READ : TEXT - 2;
    assert_int_equal(qkv_logit_lens(m, a, &(qkv_logit_lens_opts){ .k = 3 }, &lens), QKV_OK);
    assert_int_equal(lens->places, places);
    assert_int_equal(lens->layers, LAYERS);
    for (int l = 0; l <= LAYERS; l++) {
        expect_doubles(lens->next_p + l * places, next, "lens");
        for (int64_t i = 0; i < places; i++) {
            const double *p = lens->p + (l * places + i) * 3;
            assert_true(p[0] >= p[1] && p[1] >= p[2] && p[2] > 0);
            for (int k = 0; k < 3; k++)
                if (lens->ids[(l * places + i) * 3 + k] == lens->next[i])
                    expect_near(p[k], lens->next_p[l * places + i], "p of the lens", i);
        }
    }
    for (int64_t i = 0; i < next; i++) expect_near(lens->surprise[i], -log2(lens->next_p[LAYERS * places + i]), "surprise", i);
    if (which == DECODER) assert_true(lens->next[places - 1] == -1 && lens->surprise[places - 1] == 0);
    qkv_free(lens);
    qkv_free(a);
}

static void expect_why(const qkv_attribution *why, qkv_attribute_method method)
{
    if (why->n_source) expect_doubles(why->of_source[method], why->n_source, qkv_attribute_method_name(method));
    if (why->n_target) expect_doubles(why->of_target[method], why->n_target, qkv_attribute_method_name(method));
}

static void why_is_that_of_pytorch(const qkv_model *m, int which)
{
    qkv_attention_capture *a = capture(m, which);
    qkv_attribution *why = NULL;
    qkv_params_zero_grad(qkv__model_params(m));
    qkv_attribute_opts opts = { .at = AT, .steps = STEPS };
    if (qkv_attribute(m, a, &opts, &why)) fail_msg("%s", qkv_error());
    expect_doubles((double[]){ (double)why->output, why->logit, why->baseline_logit }, 3, "output");
    for (int k = 0; k < QKV_ATTRIBUTE_METHODS; k++) expect_why(why, (qkv_attribute_method)k);
    qkv_model *touched = touch(m, &touched_why[which]);
    opts.methods = 1 << QKV_ATTRIBUTE_GRADIENT;
    opts.has_output = 1;
    opts.output = why->output;
    assert_int_equal(qkv_attribute(touched, a, &opts, &why), QKV_OK);
    assert_true(!why->of_source[QKV_ATTRIBUTE_ROLLOUT] && !why->of_target[QKV_ATTRIBUTE_ROLLOUT]);
    expect_doubles(&why->logit, 1, "logit with changes");
    expect_why(why, QKV_ATTRIBUTE_GRADIENT);
    qkv_params *p = qkv__model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) assert_true(qkv__params_grad(p)[i] == 0); /* none of the weights' */
    qkv_model_free(touched);
    qkv_free(why);
    qkv_free(a);
}

static void all_are_those_of_pytorch(void **state)
{
    (void)state;
    for (int which = 0; which < MODELS; which++) {
        changes_are_those_of_pytorch(which);
        qkv_model *m = make_model(which);
        if (which != ENCODER) lens_is_that_of_pytorch(m, which);
        why_is_that_of_pytorch(m, which);
        qkv_model_free(m);
    }
    assert_int_equal(golden_at, golden_count);
}

/* ---- what changes are the same as ---- */

static void nothing_changed_gives_the_bits(void **state)
{
    (void)state;
    for (int which = 0; which < MODELS; which++) {
        qkv_model *m = make_model(which), *same = qkv_model_edit(m, NULL, 0);
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        const qkv_tensor *a = whole(m, which, t), *b = whole(same, which, t);
        assert_memory_equal(qkv_tensor_data(a), qkv_tensor_data(b), sizeof(float) * (size_t)qkv_tensor_count(a));
        qkv_tape_free(t);
        qkv_model_free(same);
        qkv_model_free(m);
    }
}

static void a_hidden_key_is_padding(void **state)
{
    (void)state;
    qkv_model *m = make_model(PAIR);
    const changes last = { PAIR,
                           2,
                           { CHANGE(HIDE_KEY, ENCODER, 0, SOURCE - 1, 0), CHANGE(HIDE_KEY, CROSS, 0, SOURCE - 1, 0) } };
    qkv_model *touched = touch(m, &last);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    const int32_t length[] = { SOURCE - 1 };
    qkv_tensor *memory = qkv__transformer_encode(
        x, t, &(qkv_tokens){ .ids = source_ids, .rows = 1, .length = SOURCE, .lengths = length });
    const qkv_tensor *padded = qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = read_ids, .rows = 1, .length = READ }, memory, length));
    const qkv_tensor *hidden = whole(touched, PAIR, t);
    for (int64_t i = 0; i < qkv_tensor_count(padded); i++)
        expect_near((double)qkv_tensor_data(hidden)[i], (double)qkv_tensor_data(padded)[i], "logit", i);
    qkv_tape_free(t);
    qkv_model_free(touched);
    qkv_model_free(m);
}

/* W_O without the columns that read the head. */
static void a_head_that_is_off_is_not_read(void **state)
{
    (void)state;
    qkv_model *m = make_model(PAIR), *other = make_model(PAIR);
    const changes off = { PAIR, 1, { AT_HEAD(CROSS, 1, 2) } };
    qkv_model *touched = touch(m, &off);
    float *w = qkv_tensor_data_mut(qkv_params_find(qkv__model_params(other), "decoder.1.cross.out.weight"));
    for (int64_t i = 0; i < DIM; i++)
        for (int64_t k = 0; k < DIM / HEADS; k++) w[i * DIM + 2 * DIM / HEADS + k] = 0;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv_tensor *a = whole(touched, PAIR, t), *b = whole(other, PAIR, t);
    for (int64_t i = 0; i < qkv_tensor_count(a); i++)
        expect_near((double)qkv_tensor_data(a)[i], (double)qkv_tensor_data(b)[i], "logit", i);
    qkv_tape_free(t);
    qkv_model_free(touched);
    qkv_model_free(other);
    qkv_model_free(m);
}

/* log p of a translation by a whole forward, the end counted unless it was cut. */
static double log_p_of(const qkv_model *m, const int32_t *ids, int64_t n, bool is_cut)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    int32_t read[64] = { 1 };
    double sum = 0;
    assert_true(n < 63);
    if (n) memcpy(read + 1, ids, sizeof *read * (size_t)n);
    qkv_tensor *memory = qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = source_ids, .rows = 1, .length = SOURCE });
    qkv_tensor *p = qkv_softmax(qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = read, .rows = 1, .length = n + 1 }, memory, NULL)));
    for (int64_t i = 0; i < n + !is_cut; i++) sum += log((double)qkv_tensor_data(p)[i * VOCABULARY + (i < n ? ids[i] : 2)]);
    qkv_tape_free(t);
    return sum;
}

/* What a search finds has the score that the model with its changes gives it, by every change, greedily and not. */
static void searches_see_the_changes(void **state)
{
    (void)state;
    qkv_model *m = make_model(PAIR);
    int differ = 0;
    for (size_t i = 1; i < sizeof lists / sizeof *lists && lists[i].model == PAIR; i++)
        for (int beam = 1; beam <= 3; beam += 2) {
            qkv_model *touched = touch(m, &lists[i]);
            qkv_search_result *found = NULL;
            const qkv_search_opts opts = {
                .start = 1, .end = 2, .pad = 0, .beam_size = beam, .no_length_penalty = 1, .max_length = 8
            };
            assert_int_equal(
                qkv_beam_search(
                    touched, &(qkv_tokens){ .ids = source_ids, .rows = 1, .length = SOURCE, .lengths = (int32_t[]){ SOURCE } },
                    &opts, &found),
                QKV_OK);
            const qkv_hypothesis *best = found->best;
            expect_near(best->log_p, log_p_of(touched, best->ids, best->n, best->truncated), "log p", (int64_t)i);
            differ += fabs(best->log_p - log_p_of(m, best->ids, best->n, best->truncated)) > 1e-3;
            qkv_free(found);
            qkv_model_free(touched);
        }
    assert_true(differ > 10);
    qkv_model_free(m);
}

/* Each new token of a text is the likeliest of a whole forward over what is before it, and has its probability. */
static void goes_on_as_forward(const qkv_model *touched, const qkv_generated *g, int64_t change)
{
    enum { BEFORE = TEXT - 1, LETTER_A = 4, LETTER_I = 12 }; /* no others are written */
    const qkv__transformer *x = qkv__model_transformer(touched);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    int32_t read[BEFORE + STEPS];
    memcpy(read, text_ids, sizeof *read * BEFORE);
    memcpy(read + BEFORE, g->ids, sizeof *read * (size_t)g->n);
    const qkv_tensor *p = qkv_softmax(qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = read, .rows = 1, .length = BEFORE + g->n }, NULL, NULL)));
    for (int64_t i = 0; i < g->n; i++) {
        const float *row_p = qkv_tensor_data(p) + (BEFORE - 1 + i) * VOCABULARY;
        expect_near(g->log_p[i], log((double)row_p[g->ids[i]]), "log p", change);
        for (int k = LETTER_A; k <= LETTER_I; k++) assert_true(row_p[k] <= row_p[g->ids[i]]);
    }
    qkv_tape_free(t);
}

static void texts_go_on_by_the_changes(void **state)
{
    (void)state;
    qkv_model *m = make_model(DECODER);
    qkv_generated *plain = NULL, *g = NULL;
    const qkv_generate_opts opts = {
        .size = sizeof opts, .max_tokens = STEPS, .start = 1, .end = -1, .prompt_ids = text_ids, .n_prompt_ids = TEXT - 1
    };
    int differ = 0;
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &opts, &plain), QKV_OK);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lists[i].model != DECODER) continue;
        qkv_model *touched = touch(m, &lists[i]);
        assert_int_equal(qkv_generate(touched, qkv_cstr(""), &opts, &g), QKV_OK);
        assert_int_equal(g->n, STEPS);
        goes_on_as_forward(touched, g, (int64_t)i);
        differ += fabs(g->log_p[0] - plain->log_p[0]) > 1e-3;
        qkv_model_free(touched);
    }
    assert_true(differ >= 5);
    qkv_free(plain);
    qkv_free(g);
    qkv_model_free(m);
}

/* The tasks take such a model: an embedding and a class change, and a text goes on otherwise. */
static void tasks_see_the_changes(void **state)
{
    (void)state;
    qkv_model *m = make_model(ENCODER);
    const changes off = { ENCODER, 1, { CHANGE(ABLATE_LAYER, ENCODER, 1, 0, 0) } };
    qkv_model *touched = touch(m, &off);
    const char *text[] = { "bcadc", "dd" };
    qkv_matrix *plain = NULL, *changed = NULL;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    assert_int_equal(qkv_classify(m, as_strings(text, NULL, 2), 2, NULL, &plain), QKV_OK);
    assert_int_equal(qkv_classify(touched, as_strings(text, NULL, 2), 2, NULL, &changed), QKV_OK);
    const qkv_tensor *p = qkv_softmax(whole(touched, ENCODER, t));
    for (int i = 0; i < CLASSES; i++) expect_near((double)changed->data[i], (double)qkv_tensor_data(p)[i], "class", i);
    assert_true(fabsf(plain->data[0] - changed->data[0]) > 1e-3f);
    assert_int_equal(qkv_embed(m, as_strings(text, NULL, 2), 2, NULL, &plain), QKV_OK);
    assert_int_equal(qkv_embed(touched, as_strings(text, NULL, 2), 2, NULL, &changed), QKV_OK);
    assert_true(fabsf(plain->data[0] - changed->data[0]) > 1e-3f);
    qkv_tape_free(t);
    qkv_free(plain);
    qkv_free(changed);
    qkv_model_free(touched);
    qkv_model_free(m);
}

/* ---- attributions by what they mean ---- */

static double class_logit(const qkv_model *m, int64_t class_id)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    double logit = (double)qkv_tensor_data(whole(m, ENCODER, t))[class_id];
    qkv_tape_free(t);
    return logit;
}

/* d f / d (1 + h) with a token's embedding times 1 + h. Tokens that occur twice move together. */
static void gradients_are_differences(void **state)
{
    (void)state;
    qkv_model *m = make_model(ENCODER);
    qkv_attention_capture *a = capture(m, ENCODER);
    qkv_attribution *why = NULL;
    float *table = qkv_tensor_data_mut(qkv_params_find(qkv__model_params(m), "embed.weight")), kept[DIM];
    assert_int_equal(qkv_attribute(m, a, &(qkv_attribute_opts){ .methods = 1 << QKV_ATTRIBUTE_GRADIENT }, &why), QKV_OK);
    for (int32_t id = 1; id < 8; id++) {
        double sum = 0, f[2], h = 1e-2;
        for (int64_t i = 0; i < TEXT; i++) sum += text_ids[i] == id ? why->of_source[QKV_ATTRIBUTE_GRADIENT][i] : 0;
        memcpy(kept, table + id * DIM, sizeof kept);
        for (int s = 0; s < 2; s++) {
            for (int d = 0; d < DIM; d++) table[id * DIM + d] = kept[d] * (float)(s ? 1 + h : 1 - h);
            f[s] = class_logit(m, why->output);
        }
        memcpy(table + id * DIM, kept, sizeof kept);
        if (fabs(sum - (f[1] - f[0]) / (2 * h)) > 1e-3 * (1 + fabs(sum)))
            fail_msg("token %d: %g, by differences %g", id, sum, (f[1] - f[0]) / (2 * h));
    }
    qkv_free(why);
    qkv_free(a);
    qkv_model_free(m);
}

static double total(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; x && i < n; i++) sum += x[i];
    return sum;
}

/* Integrated gradients add up to f(e) - f(b), shares to 1; of either baseline. */
static void attributions_add_up(void **state)
{
    (void)state;
    for (int which = 0; which < MODELS; which++)
        for (int pad = 0; pad < 2; pad++) {
            qkv_model *m = make_model(which);
            qkv_attention_capture *a = capture(m, which);
            qkv_attribution *why = NULL;
            const qkv_attribute_opts opts = { .at = AT, .pad_baseline = pad };
            assert_int_equal(qkv_attribute(m, a, &opts, &why), QKV_OK);
            double sums[QKV_ATTRIBUTE_METHODS];
            for (int k = 0; k < QKV_ATTRIBUTE_METHODS; k++)
                sums[k] = total(why->of_source[k], why->n_source) + total(why->of_target[k], why->n_target);
            double whole_way = why->logit - why->baseline_logit;
            if (fabs(sums[QKV_ATTRIBUTE_INTEGRATED] - whole_way) > 0.01 * fabs(whole_way))
                fail_msg("model %d: %g of %g", which, sums[QKV_ATTRIBUTE_INTEGRATED], whole_way);
            expect_near(sums[QKV_ATTRIBUTE_VALUE_ZEROING], 1, "value zeroing of", which);
            expect_near(sums[QKV_ATTRIBUTE_ROLLOUT], 1, "rollout of", which);
            qkv_free(why);
            qkv_free(a);
            qkv_model_free(m);
        }
}

/* ---- the walk ---- */

static void expect_sum(const float *a, const float *b, const float *sum, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++) expect_near((double)(a[i] + b[i]), (double)sum[i], what, i);
}

/* Each step follows from those before it. */
static void steps_follow(const qkv_trace_result *w, const float *weights, bool is_off)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < w->keys; k++) {
        double score = 0;
        for (int64_t d = 0; d < w->d_k; d++) score += (double)(w->q[d] * w->k[k * w->d_k + d]);
        expect_near((double)w->scores[k], score, "score", k);
        if (w->masked[k]) assert_true(w->scaled[k] == -INFINITY && w->weights[k] == 0);
        else expect_near((double)w->scaled[k], score * (double)w->scale, "scaled", k);
        largest = fmax(largest, (double)w->scaled[k]);
    }
    for (int64_t k = 0; k < w->keys; k++) sum += exp((double)w->scaled[k] - largest);
    for (int64_t k = 0; k < w->keys; k++) {
        expect_near((double)w->weights[k], exp((double)w->scaled[k] - largest) / sum, "weight", k);
        expect_near((double)w->weights[k], (double)weights[k], "weight of the capture", k);
    }
    for (int64_t d = 0; d < w->d_v; d++) {
        double y = 0;
        for (int64_t k = 0; k < w->keys; k++) y += (double)(w->weights[k] * w->v[k * w->d_v + d]);
        expect_near((double)w->head[d], is_off ? 0 : y, "head", d);
    }
    expect_sum(w->in, w->out, w->sum, w->dim, "sum");
    expect_sum(w->ffn_in, w->ffn_out, w->ffn_sum, w->dim, "feed-forward");
}

static void cell_is_walked(const qkv_model *m, const qkv_attention_capture *a, const qkv_trace_opts *o, bool is_off)
{
    qkv_trace_result *w = NULL;
    qkv_buffer json = { 0 };
    float weights[64];
    if (qkv_trace(m, a, o, &w)) fail_msg("%s", qkv_error());
    assert_int_equal(qkv_attention_weights(a, o->kind, o->layer, o->head, weights), QKV_OK);
    steps_follow(w, weights + o->query * w->keys, is_off);
    assert_int_equal(qkv_trace_json(w, &json), QKV_OK);
    assert_non_null(strstr(json.data, "\"ffn_hidden\": ["));
    qkv_buffer_free(&json);
    qkv_free(w);
}

static void every_cell_is_walked(void **state)
{
    (void)state;
    for (int which = 0; which < MODELS; which++) {
        qkv_model *m = make_model(which);
        qkv_attention_capture *a = capture(m, which);
        for (int kind = 0; kind < QKV_ATTENTION_KINDS; kind++) {
            if (!a->layers[kind]) continue;
            int64_t queries = qkv_attention_rows(a, (qkv_attention_kind)kind)->n;
            for (int64_t i = 0; i < queries * LAYERS * HEADS; i++)
                cell_is_walked(m, a,
                               &(qkv_trace_opts){ .kind = (qkv_attention_kind)kind,
                                                  .layer = (int)(i / queries % LAYERS),
                                                  .head = (int)(i / queries / LAYERS),
                                                  .query = i % queries },
                               false);
        }
        qkv_free(a);
        qkv_model_free(m);
    }
}

/* The last layer's is what the output layer reads; a head that is off gives zeros. */
static void walks_end_in_the_logits(void **state)
{
    (void)state;
    qkv_model *m = make_model(PAIR);
    const changes off = { PAIR, 1, { AT_HEAD(CROSS, 1, 2) } };
    qkv_model *touched = touch(m, &off);
    qkv_attention_capture *a = capture(touched, PAIR);
    qkv_trace_result *w = NULL;
    qkv_trace_opts o = { .kind = QKV_ATTENTION_CROSS, .layer = 1, .head = 2, .query = 3, .k = 2 };
    cell_is_walked(touched, a, &o, true);
    assert_int_equal(qkv_trace(touched, a, &o, &w), QKV_OK);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv_tensor *all = whole(touched, PAIR, t);
    qkv_tensor *last = qkv_constant(t, QKV_SHAPE(1, DIM), w->layer_out);
    const qkv_tensor *logits = qkv__transformer_logits(qkv__model_transformer(touched), last);
    for (int v = 0; v < VOCABULARY; v++)
        expect_near((double)qkv_tensor_data(logits)[v], (double)qkv_tensor_data(all)[3 * VOCABULARY + v], "logit", v);
    assert_int_equal(w->n_best, 2);
    expect_near((double)w->best_logits[0], (double)qkv_tensor_data(logits)[w->best[0]], "best logit", 0);
    assert_true(w->best_p[0] > w->best_p[1]);
    qkv_tape_free(t);
    qkv_free(w);
    qkv_free(a);
    qkv_model_free(touched);
    qkv_model_free(m);
}

/* ---- as they are typed; errors ---- */

static void changes_are_read(void **state)
{
    (void)state;
    qkv_model *m = make_model(PAIR), *decoder = make_model(DECODER);
    qkv_touches list = { 0 };
    assert_int_equal(qkv_touches_add(&list, m, QKV_EDIT_ABLATE_HEAD, "1.3;encoder:0.2"), QKV_OK);
    assert_int_equal(qkv_touches_add(&list, m, QKV_EDIT_HIDE_KEY, "2"), QKV_OK);
    assert_int_equal(qkv_touches_add(&list, m, QKV_EDIT_ROW, "decoder:1.0.2=0.5,0,1e-1"), QKV_OK);
    assert_int_equal(qkv_touches_add(&list, m, QKV_EDIT_SWAP_VALUES, "0=3;1.2=4"), QKV_OK);
    assert_int_equal(list.n, 7);
    const qkv_edit *x = list.touches;
    assert_true(x[0].kind == QKV_ATTENTION_CROSS && x[0].layer == 1 && x[0].head == 3);
    assert_true(x[1].kind == QKV_ATTENTION_ENCODER && x[1].layer == 0 && x[1].head == 2);
    assert_true(x[2].kind == QKV_ATTENTION_ENCODER && x[2].place == 2 && x[3].kind == QKV_ATTENTION_CROSS && x[3].place == 2);
    assert_true(x[4].kind == QKV_ATTENTION_DECODER && x[4].place == 2 && x[4].n_row == 3 && x[4].row[2] == 0.1f);
    assert_true(x[5].layer == -1 && x[5].place == 0 && x[5].other == 3 && x[6].layer == 1 && x[6].other == 4);
    static const struct {
        qkv_edit_kind what;
        const char *text;
    } bad[] = { { QKV_EDIT_ABLATE_HEAD, "1" },        { QKV_EDIT_ABLATE_HEAD, "1.2.3" },
                { QKV_EDIT_ABLATE_HEAD, "" },         { QKV_EDIT_ABLATE_HEAD, "middle:1.2" },
                { QKV_EDIT_ABLATE_LAYER, "1.2" },     { QKV_EDIT_HIDE_KEY, "-1" },
                { QKV_EDIT_HIDE_KEY, "99999999999" }, { QKV_EDIT_SET_POSITION, "1" },
                { QKV_EDIT_SET_POSITION, "1=2x" },    { QKV_EDIT_ROW, "1.2.3=" },
                { QKV_EDIT_ROW, "1.2=0.5" },          { QKV_EDIT_SWAP_VALUES, "1.2.3=4" },
                { QKV_EDIT_HIDE_KEY, "1;" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (qkv_touches_add(&list, m, bad[i].what, bad[i].text) != QKV_USAGE) fail_msg("\"%s\" was taken", bad[i].text);
        assert_int_equal(list.n, 7);
    }
    qkv_touches_free(&list);
    assert_int_equal(qkv_touches_add(&list, decoder, QKV_EDIT_HIDE_KEY, "2"), QKV_OK);
    assert_true(list.n == 1 && list.touches->kind == QKV_ATTENTION_DECODER);
    qkv_touches_free(&list);
    qkv_model_free(decoder);
    qkv_model_free(m);
}

static void expect_refused(const qkv_model *m, qkv_edit x, qkv_status status)
{
    assert_null(qkv_model_edit(m, &x, 1));
    assert_int_equal(qkv_error_status(), status);
}

static void bad_changes_are_refused(void **state)
{
    (void)state;
    static const float nan_row[] = { NAN }, negative[] = { -0.5f };
    qkv_model *m = make_model(PAIR), *encoder = make_model(ENCODER);
    expect_refused(m, (qkv_edit)AT_HEAD(CROSS, 2, 0), QKV_USAGE);
    expect_refused(m, (qkv_edit)AT_HEAD(CROSS, -1, 0), QKV_USAGE);
    expect_refused(m, (qkv_edit)AT_HEAD(CROSS, 0, 4), QKV_USAGE);
    expect_refused(encoder, (qkv_edit)AT_HEAD(CROSS, 0, 0), QKV_USAGE);
    expect_refused(m, (qkv_edit)CHANGE(ABLATE_LAYER, CROSS, 0, 0, 0), QKV_USAGE);
    expect_refused(m, (qkv_edit)CHANGE(HIDE_KEY, CROSS, 0, -1, 0), QKV_USAGE);
    expect_refused(m, (qkv_edit)CHANGE(SET_POSITION, ENCODER, 0, 1, 65536), QKV_LIMIT);
    expect_refused(encoder, (qkv_edit)CHANGE(SET_POSITION, ENCODER, 0, 1, 9), QKV_LIMIT);
    expect_refused(m, (qkv_edit)EDIT(DECODER, 0, 0, 2, 4), QKV_USAGE); /* the query sees 3 keys */
    expect_refused(m, (qkv_edit){ .what = QKV_EDIT_ROW, .row = nan_row, .n_row = 1 }, QKV_USAGE);
    expect_refused(m, (qkv_edit){ .what = QKV_EDIT_ROW, .row = negative, .n_row = 1 }, QKV_USAGE);
    expect_refused(m, (qkv_edit){ .what = QKV_EDIT_ROW, .n_row = 1 }, QKV_USAGE);
    expect_refused(m, (qkv_edit){ .what = QKV_EDIT_KINDS }, QKV_USAGE);
    qkv_attention_capture *a = capture(encoder, ENCODER);
    qkv_logit_lens_result *lens = NULL;
    qkv_attribution *why = NULL;
    qkv_trace_result *walk = NULL;
    assert_int_equal(qkv_logit_lens(m, a, NULL, &lens), QKV_USAGE); /* of another kind */
    assert_int_equal(qkv_logit_lens(m, &(qkv_attention_capture){ 0 }, NULL, &lens), QKV_USAGE);
    assert_int_equal(qkv_attribute(encoder, a, &(qkv_attribute_opts){ .has_output = 1, .output = CLASSES }, &why), QKV_USAGE);
    assert_int_equal(qkv_attribute(encoder, a, &(qkv_attribute_opts){ .steps = -1 }, &why), QKV_USAGE);
    assert_int_equal(qkv_attribute(encoder, a, &(qkv_attribute_opts){ .methods = 16 }, &why), QKV_USAGE);
    assert_int_equal(qkv_trace(encoder, a, &(qkv_trace_opts){ .kind = QKV_ATTENTION_CROSS }, &walk), QKV_USAGE);
    assert_int_equal(qkv_trace(encoder, a, &(qkv_trace_opts){ .query = TEXT }, &walk), QKV_USAGE);
    qkv_free(lens);
    qkv_free(why);
    qkv_free(walk);
    qkv_free(a);
    qkv_model_free(encoder);
    qkv_model_free(m);
}

/* Without any key an attention gives zeros, and the model still answers; changes of a model with changes join. */
static void corners(void **state)
{
    (void)state;
    qkv_model *m = make_model(DECODER);
    const changes first = { DECODER, 1, { CHANGE(HIDE_KEY, DECODER, 0, 0, 0) } };
    qkv_edit rest[5];
    for (int i = 0; i < 5; i++) rest[i] = (qkv_edit)CHANGE(HIDE_KEY, DECODER, 0, i + 1, 0);
    qkv_model *some = touch(m, &first), *all = qkv_model_edit(some, rest, 5);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 });
    const qkv_tensor *logits = whole(all, DECODER, t);
    for (int64_t i = 0; i < qkv_tensor_count(logits); i++) assert_true(isfinite(qkv_tensor_data(logits)[i]));
    const qkv_tensor *weights = qkv_tape_attention(t, 0);
    for (int64_t i = 0; i < qkv_tensor_count(weights); i++) assert_true(qkv_tensor_data(weights)[i] == 0);
    assert_int_equal(qkv_model_set_labels(all, NULL, 0, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_USAGE);
    qkv_tape_free(t);
    qkv_model_free(all);
    qkv_model_free(some);
    qkv_model_free(m);
}

static void results_are_written(void **state)
{
    (void)state;
    for (int which = 0; which < MODELS; which++) {
        qkv_model *m = make_model(which);
        qkv_attention_capture *a = capture(m, which);
        qkv_attribution *why = NULL;
        qkv_logit_lens_result *lens = NULL;
        qkv_buffer text = { 0 };
        assert_int_equal(qkv_attribute(m, a, &(qkv_attribute_opts){ .at = AT, .steps = 2 }, &why), QKV_OK);
        assert_int_equal(qkv_attribution_text(m, a, why, 0, &text), QKV_OK);
        assert_non_null(strstr(text.data, "value-zeroing"));
        assert_int_equal(qkv_attribution_text(m, a, why, 1, &text), QKV_OK);
        assert_non_null(strstr(text.data, "\"rollout\": "));
        if (which != ENCODER) {
            assert_int_equal(qkv_logit_lens(m, a, NULL, &lens), QKV_OK);
            assert_int_equal(qkv_logit_lens_text(m, a, lens, 0, &text), QKV_OK);
            assert_non_null(strstr(text.data, "layer 1"));
            assert_int_equal(qkv_logit_lens_text(m, a, lens, 1, &text), QKV_OK);
            assert_non_null(strstr(text.data, "\"next_p\": "));
        } else assert_int_equal(qkv_logit_lens(m, a, NULL, &lens), QKV_UNSUPPORTED);
        qkv_buffer_free(&text);
        qkv_free(lens);
        qkv_free(why);
        qkv_free(a);
        qkv_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_those_of_pytorch), cmocka_unit_test(nothing_changed_gives_the_bits),
        cmocka_unit_test(a_hidden_key_is_padding),  cmocka_unit_test(a_head_that_is_off_is_not_read),
        cmocka_unit_test(searches_see_the_changes), cmocka_unit_test(texts_go_on_by_the_changes),
        cmocka_unit_test(tasks_see_the_changes),    cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(attributions_add_up),      cmocka_unit_test(every_cell_is_walked),
        cmocka_unit_test(walks_end_in_the_logits),  cmocka_unit_test(changes_are_read),
        cmocka_unit_test(bad_changes_are_refused),  cmocka_unit_test(corners),
        cmocka_unit_test(results_are_written),
    };
    int failed = cmocka_run_group_tests(tests, read_golden, free_golden);
    qkv_shutdown();
    return failed;
}
