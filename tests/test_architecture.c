/* test_architecture.c: the drawing of a whole model: nothing lies over anything else, every part and every weight is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "draw/architecture.h"
#include "draw/picture.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "draw/view.h"
#include "term/translator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MODELS = 10, MOST_AREAS = 400 };

typedef struct named_model {
    const char *name;
    qkv_config o;
} named_model;

/* The presets, and the shapes of a BERT, a GPT-2, a Llama and a classifier. */
static int list_models(named_model models[MODELS])
{
    static const char *const presets[] = { "tiny", "base", "big" };
    int n = 0;
    for (; n < 3; n++) {
        models[n] = (named_model){ .name = presets[n] };
        assert_int_equal(qkv_config_preset(presets[n], 37000, &models[n].o), QKV_OK);
    }
    models[n++] = (named_model){ "bert",
                                 { .vocab_size = 30522,
                                   .encoder_layers = 12,
                                   .dim = 768,
                                   .heads = 12,
                                   .d_ff = 3072,
                                   .positions = QKV_POSITION_LEARNED,
                                   .max_positions = 512,
                                   .embed_norm = 1,
                                   .token_types = 2,
                                   .head = 1,
                                   .output_bias = 1,
                                   .unscaled = 1,
                                   .activation = QKV_ACTIVATION_GELU,
                                   .pooler = QKV_POOLER_TANH } };
    models[n++] = (named_model){ "gpt2",
                                 { .vocab_size = 50257,
                                   .decoder_layers = 12,
                                   .dim = 768,
                                   .heads = 12,
                                   .d_ff = 3072,
                                   .pre_norm = 1,
                                   .positions = QKV_POSITION_LEARNED,
                                   .max_positions = 1024,
                                   .unscaled = 1,
                                   .activation = QKV_ACTIVATION_GELU_TANH } };
    models[n++] = (named_model){ "llama",
                                 { .vocab_size = 128256,
                                   .decoder_layers = 32,
                                   .dim = 4096,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .d_ff = 14336,
                                   .pre_norm = 1,
                                   .norm = QKV_NORM_RMS,
                                   .no_bias = 1,
                                   .unscaled = 1,
                                   .untied = 1,
                                   .positions = QKV_POSITION_ROPE,
                                   .activation = QKV_ACTIVATION_SWIGLU } };
    models[n++] = (named_model){ "modernbert",
                                 { .vocab_size = 50368,
                                   .encoder_layers = 22,
                                   .dim = 768,
                                   .heads = 12,
                                   .d_ff = 1152,
                                   .pre_norm = 1,
                                   .no_bias = 1,
                                   .no_norm_bias = 1,
                                   .no_head_bias = 1,
                                   .embed_norm = 1,
                                   .head = 1,
                                   .output_bias = 1,
                                   .unscaled = 1,
                                   .positions = QKV_POSITION_ROPE,
                                   .activation = QKV_ACTIVATION_GEGLU,
                                   .no_first_norm = 1 } };
    models[n++] = (named_model){ "t5",
                                 { .size = sizeof(qkv_config),
                                   .vocab_size = 32128,
                                   .encoder_layers = 12,
                                   .decoder_layers = 12,
                                   .dim = 768,
                                   .heads = 12,
                                   .d_ff = 2048,
                                   .pre_norm = 1,
                                   .norm = QKV_NORM_RMS,
                                   .no_bias = 1,
                                   .unscaled = 1,
                                   .untied = 1,
                                   .positions = QKV_POSITION_NONE,
                                   .relative_buckets = 32,
                                   .attention_scale = 1,
                                   .activation = QKV_ACTIVATION_GEGLU_TANH } };
    models[n++] = (named_model){ "albert",
                                 { .size = sizeof(qkv_config),
                                   .vocab_size = 30000,
                                   .encoder_layers = 12,
                                   .dim = 768,
                                   .heads = 12,
                                   .d_ff = 3072,
                                   .embed_norm = 1,
                                   .token_types = 2,
                                   .head = 1,
                                   .output_bias = 1,
                                   .unscaled = 1,
                                   .positions = QKV_POSITION_LEARNED,
                                   .max_positions = 512,
                                   .activation = QKV_ACTIVATION_GELU_TANH,
                                   .embed_dim = 128,
                                   .shared_layers = 1 } };
    models[n++] = (named_model){ "classifier",
                                 { .vocab_size = 8000,
                                   .encoder_layers = 2,
                                   .dim = 128,
                                   .heads = 4,
                                   .d_ff = 512,
                                   .classes = 2,
                                   .pooling = QKV_POOLING_ATTENTION } };
    return n;
}

/* ---- boxes ---- */

static bool overlap(const qkv__area *a, const qkv__area *b)
{
    const double touch = 0.5;
    return a->x + a->width > b->x + touch && b->x + b->width > a->x + touch && a->y + a->height > b->y + touch &&
           b->y + b->height > a->y + touch;
}

static bool inside(const qkv__area *a, const qkv__area *b)
{
    return a->x >= b->x && a->y >= b->y && a->x + a->width <= b->x + b->width && a->y + a->height <= b->y + b->height;
}

/* A line over a text has no thickness of its own. */
static qkv__area thick(qkv__area a)
{
    if (a.kind == QKV__AREA_LINE) a.x -= 1, a.y -= 1, a.width += 2, a.height += 2;
    return a;
}

static bool may_meet(const qkv__area *a, const qkv__area *b)
{
    if (a->kind == QKV__AREA_LINE) return b->kind != QKV__AREA_TEXT; /* lines end at boxes and at each other */
    if (b->kind == QKV__AREA_LINE) return a->kind != QKV__AREA_TEXT;
    if (a->kind == QKV__AREA_TEXT && b->kind == QKV__AREA_BOX) return inside(a, b);
    if (b->kind == QKV__AREA_TEXT && a->kind == QKV__AREA_BOX) return inside(b, a);
    return false;
}

static void check_areas(const char *name, const qkv__areas *areas)
{
    assert_true(areas->n > 20 && areas->n <= areas->most);
    const qkv__area page = { .width = areas->width, .height = areas->height };
    for (int i = 0; i < areas->n; i++) {
        qkv__area a = thick(areas->at[i]);
        if (!inside(&a, &page)) fail_msg("%s: area %d leaves the page: %g %g %g %g", name, i, a.x, a.y, a.width, a.height);
        for (int k = 0; k < i; k++) {
            qkv__area b = thick(areas->at[k]);
            if (overlap(&a, &b) && !may_meet(&a, &b))
                fail_msg("%s: areas %d (%g %g %g %g) and %d (%g %g %g %g) overlap", name, i, a.x, a.y, a.width, a.height, k,
                         b.x, b.y, b.width, b.height);
        }
    }
}

/* As long as a translation may be. */
static const char *longer(const char *text)
{
    return strcmp(text, "Feed-forward")
               ? strcmp(text, "③ Cross-attention") ? text : "③ 交叉注意力，查询来自解码器，键和值来自编码器"
               : "前馈层：两个线性层，中间是激活函数，逐个词元计算";
}

static void nothing_lies_over_anything(void **state)
{
    (void)state;
    named_model models[MODELS];
    int n = list_models(models);
    for (int i = 0; i < 2 * n; i++) {
        const qkv_model_drawing_opts opts = { .title = models[i / 2].name };
        qkv_set_translator(i % 2 ? longer : NULL);
        qkv__area at[MOST_AREAS];
        qkv__areas areas = { .at = at, .most = MOST_AREAS };
        qkv__architecture a;
        assert_int_equal(qkv__architecture_make(&models[i / 2].o, &opts, &a), QKV_OK);
        assert_int_equal(qkv__picture_areas(qkv__draw_architecture, &a, &areas), QKV_OK);
        check_areas(models[i / 2].name, &areas);
    }
    qkv_set_translator(NULL);
}

/* ---- weights ---- */

/* The same model in small, so that it can be made. */
static qkv_config shrunk(qkv_config o)
{
    o.vocab_size = 50;
    o.dim = 32;
    o.d_ff = 48;
    o.heads = o.kv_heads ? 8 : 4;
    if (o.kv_heads) o.kv_heads = 2;
    if (o.max_positions) o.max_positions = 20;
    if (o.encoder_layers) o.encoder_layers = 3;
    if (o.decoder_layers) o.decoder_layers = 2;
    return o;
}

static void every_weight_is_counted(void **state)
{
    (void)state;
    named_model models[MODELS];
    int n = list_models(models);
    for (int i = 0; i < 4 * n; i++) {
        qkv_config o = shrunk(models[i / 4].o);
        if (i % 4 == 1) o.untied = o.output_bias = 1;
        if (i % 4 == 2) o.pre_norm = !o.pre_norm, o.no_bias = 1, o.qkv_bias = 1, o.no_first_norm = 0;
        if (i % 4 == 3 && o.head) o.classes = 3, o.pooler = o.embed_dim ? QKV_POOLER_GELU : QKV_POOLER_HEAD;
        if (i % 4 == 3 && o.encoder_layers && o.decoder_layers) o.target_vocab_size = 70;
        qkv_model *m = qkv_model_new(&o, 1);
        assert_non_null(m);
        qkv__architecture a;
        assert_int_equal(qkv__architecture_make(&o, NULL, &a), QKV_OK);
        if (a.weights != qkv_params_count(qkv_model_params(m)))
            fail_msg("%s, variant %d: %lld weights are drawn, it has %lld", models[i / 4].name, i % 4, (long long)a.weights,
                     (long long)qkv_params_count(qkv_model_params(m)));
        qkv_model_free(m);
    }
}

/* ---- what is said ---- */

static void has_all(const qkv_config *o, const char *const *pieces)
{
    qkv_buffer text = { 0 };
    assert_int_equal(qkv_model_drawing_text(o, NULL, &text), QKV_OK);
    for (; *pieces; pieces++)
        if (!strstr(text.data, *pieces)) fail_msg("\"%s\" is missing in\n%s", *pieces, text.data);
    qkv_buffer_free(&text);
}

static void every_part_is_told(void **state)
{
    (void)state;
    named_model m[MODELS];
    list_models(m);
    has_all(&m[1].o,
            (const char *const[]){ "6 × {", "37000 × 512 · √512, 18,944,000 weights", "① Self-attention", "② Masked", "③ Cross",
                                   "8 heads, d_k = 64, 1,050,624 weights", "◄──┼── K, V", "Add and LayerNorm",
                                   "512 → 2048 → 512, ReLU, 2,099,712 weights", "tied", "63,082,496 weights", NULL });
    has_all(&m[3].o, (const char *const[]){ "+ token types", "2 × 768", "+ learned positions", "512 × 768", "Head", NULL });
    has_all(&m[4].o, (const char *const[]){ "12 × {", "│ Add ", "GELU", "50257 × 768, 38,597,376 weights", NULL });
    has_all(&m[5].o, (const char *const[]){ "32 heads, 8 of K and V, d_k = 128, rotary positions, 41,943,040 weights",
                                            "RMSNorm", "SwiGLU", "8,030,261,248 weights", NULL });
    has_all(&m[6].o, (const char *const[]){ "GeGLU", "not in the first layer, 768 weights", "Head", NULL });
    has_all(&m[7].o, (const char *const[]){ "a bias by distance", "GeGLU", "247,577,856 weights", NULL });
    has_all(&m[8].o, (const char *const[]){ "30000 × 128, 3,840,000 weights", "Projection", "128 × 768", "768 × 128", NULL });
    has_all(&m[9].o, (const char *const[]){ "Pooling", "a learned mean", "Classifier", "128 × 2, 258 weights", NULL });
}

static void what_makes_no_model_is_refused(void **state)
{
    (void)state;
    qkv_buffer text = { 0 };
    qkv_config o = { .vocab_size = 10, .dim = 8, .heads = 2, .d_ff = 8 };
    assert_int_equal(qkv_model_drawing_text(&o, NULL, &text), QKV_USAGE);
    o.encoder_layers = 1;
    assert_int_equal(qkv_model_drawing_text(&o, NULL, &text), QKV_OK);
    o.heads = 0;
    assert_int_equal(qkv_picture_model("/tmp/x.png", &o, NULL), QKV_USAGE);
    assert_int_equal(qkv_picture_model("/tmp/x.gif",
                                       &(qkv_config){ .vocab_size = 1, .encoder_layers = 1, .dim = 1, .heads = 1, .d_ff = 1 },
                                       NULL),
                     QKV_UNSUPPORTED);
    qkv_buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lies_over_anything),
        cmocka_unit_test(every_weight_is_counted),
        cmocka_unit_test(every_part_is_told),
        cmocka_unit_test(what_makes_no_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
