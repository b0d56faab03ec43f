/* test_decoders.c: published families that are decoders alone: PyTorch's numbers, tokens and gradients, windows, and their files
 * written and read again. tests/golden/decoders.py makes the models. */
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

#include "json_values.h"
#include "folder.h"
#include "io/safetensors.h"
#include "model/family.h"
#include "nn/params.h"
#include "model/model.h"

enum { BATCH = 2, MOST = 4096 };

static const struct decoder {
    const char *name, *family;
    int64_t window; /* of the layers in `local` */
    int layers, local;
} models[] = {
    { "qwen3", "qwen3", 0, 2, 0 },      { "qwen2_window", "qwen2", 4, 3, 6 },  { "mistral_window", "mistral", 5, 2, 3 },
    { "gemma", "gemma", 0, 2, 0 },      { "gemma2", "gemma2", 4, 3, 5 },       { "gemma3_text", "gemma3_text", 4, 3, 5 },
    { "phi3", "phi3", 6, 2, 3 },        { "phi3_long", "phi3", 262144, 2, 0 }, { "opt", "opt", 0, 2, 0 },
    { "gpt_neox", "gpt_neox", 0, 2, 0 }
};
enum { MODELS = sizeof models / sizeof *models };

static const char *golden_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, QKV_GOLDEN "/decoders/%s", name);
    return path;
}

static qkv_model *load(const char *path)
{
    qkv_model *m = qkv_model_load(path, NULL);
    if (!m) fail_msg("%s: %s", path, qkv_error());
    return m;
}

/* ---- what PyTorch says ---- */

static qkv__safetensors golden;

static void open_golden(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, QKV_GOLDEN "/decoders/%s/golden.safetensors", name);
    assert_int_equal(qkv__safetensors_read(path, &golden), QKV_OK);
}

static int64_t numbers(const char *name, float *to)
{
    const qkv__stored *t = qkv__safetensors_find(&golden, name);
    if (!t) return -1;
    assert_true(t->count <= MOST);
    qkv__safetensors_decode_some(t, 0, t->count, to);
    return t->count;
}

static int64_t ids_of(const char *name, int32_t *to)
{
    float values[MOST];
    int64_t n = numbers(name, values);
    for (int64_t i = 0; i < n; i++) to[i] = (int32_t)values[i];
    return n;
}

/* Rows of padding are not compared. */
static void compare(const char *model, const char *what, const qkv_tensor *got, const int32_t *lengths, double most)
{
    float expected[MOST];
    int64_t n = numbers(what, expected), width = qkv_tensor_dim(got, -1), length = qkv_tensor_dim(got, 1);
    if (!got) fail_msg("%s: %s: %s", model, what, qkv_error());
    assert_int_equal(qkv_tensor_count(got), n);
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs((double)qkv_tensor_data((qkv_tensor *)(uintptr_t)got)[i] - (double)expected[i]);
        if (i / width % length < lengths[i / width / length] && !(difference <= most))
            fail_msg("%s: %s: number %lld is %.8g, PyTorch says %.8g", model, what, (long long)i,
                     (double)qkv_tensor_data((qkv_tensor *)(uintptr_t)got)[i], (double)expected[i]);
    }
}

static void compare_folder(const char *path, const char *name)
{
    int32_t ids[64], lengths[BATCH];
    qkv_model *model = load(path);
    const qkv__transformer *m = qkv__model_transformer(model);
    open_golden(name);
    int64_t length = ids_of("ids", ids) / BATCH;
    ids_of("lengths", lengths);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_hidden = 1 });
    qkv_tensor *last = qkv__transformer_decode(
        m, t, &(qkv_tokens){ .ids = ids, .rows = BATCH, .length = length, .lengths = lengths }, NULL, NULL);
    if (!last) fail_msg("%s: %s", name, qkv_error());
    compare(name, "logits", qkv__transformer_logits(m, last), lengths, 1e-4);
    int n = 0;
    for (char what[32]; snprintf(what, sizeof what, "hidden.%d", n), qkv__safetensors_find(&golden, what); n++)
        compare(name, what, qkv_tape_hidden(t, n), lengths, 1e-4);
    assert_int_equal(n, qkv__transformer_config(m)->decoder_layers + 1);
    qkv_tape_free(t);
    qkv__safetensors_free(&golden);
    qkv_model_free(model);
}

static void parity_with_pytorch(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) compare_folder(golden_folder(models[i].name), models[i].name);
}

/* The prompt in one read, then token by token: each the likeliest that is not there yet. */
static void writes_what_pytorch_writes(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        int32_t prompt[32], wanted[32];
        bool written[64] = { false };
        qkv_model *m = load(golden_folder(models[i].name));
        open_golden(models[i].name);
        int64_t n = ids_of("prompt", prompt), more = ids_of("greedy", wanted);
        int64_t size = qkv__model_config(m)->vocab_size;
        qkv_session *s = qkv_session_new(m, NULL);
        assert_int_equal(qkv_session_start(s, 1), QKV_OK);
        for (int64_t k = 0; k < n; k++) written[prompt[k]] = true;
        assert_int_equal(qkv_session_read(s, prompt, &n, QKV_LOGITS_LAST), QKV_OK);
        assert_int_equal(more, 20);
        for (int64_t k = 0; k < more; k++) {
            const float *logits = qkv_tensor_data(qkv_session_logits(s));
            int32_t best = -1;
            for (int32_t id = 0; id < size; id++)
                if (!written[id] && (best < 0 || logits[id] > logits[best])) best = id;
            if (best != wanted[k]) fail_msg("%s: token %d is %d, PyTorch's is %d", models[i].name, (int)k, best, wanted[k]);
            written[best] = true;
            assert_int_equal(qkv_session_read(s, &best, NULL, QKV_LOGITS_LAST), QKV_OK);
        }
        qkv_session_free(s);
        qkv__safetensors_free(&golden);
        qkv_model_free(m);
    }
}

/* Held against grad.NAME, whose numbers are parts of the largest. */
static void compare_gradient(const struct decoder *d, const qkv_params *p, int i)
{
    char theirs[QKV_NAME_MAX], name[QKV_NAME_MAX + 32];
    float part[MOST], scale;
    qkv__rename how;
    const qkv_tensor *w = qkv_params_at(p, i);
    assert_true(qkv__family_place(qkv__family_find(d->family), qkv_params_name(p, i), 0, theirs, &how));
    snprintf(name, sizeof name, how.parts ? "grad.%s#%d" : "grad.%s", theirs, how.part);
    int64_t n = numbers(name, part);
    if (n != qkv_tensor_count(w)) fail_msg("%s: there is no %s of %lld numbers", d->name, name, (long long)qkv_tensor_count(w));
    snprintf(name, sizeof name, how.parts ? "grad_scale.%s#%d" : "grad_scale.%s", theirs, how.part);
    assert_int_equal(numbers(name, &scale), 1);
    const float *got = qkv_tensor_grad(qkv_params_at(p, i));
    for (int64_t k = 0; k < n; k++)
        if (!(fabs((double)got[k] - (double)scale * (double)part[k]) <=
              1e-3 * (double)scale + 1e-6)) /* biases of keys have none */
            fail_msg("%s: %s: number %d is %.6g, PyTorch says %.6g", d->name, name, (int)k, (double)got[k],
                     (double)scale * (double)part[k]);
}

static void gradients_are_pytorchs(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        int32_t ids[64];
        qkv_model *model = load(golden_folder(models[i].name));
        const qkv__transformer *m = qkv__model_transformer(model);
        qkv_params *p = qkv_model_params(model);
        assert_int_equal(qkv__params_materialize(p), QKV_OK);
        open_golden(models[i].name);
        int64_t length = ids_of("ids", ids) / BATCH;
        qkv_tape *t = qkv_tape_new(NULL);
        qkv_tensor *hidden = qkv__transformer_decode(m, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = length - 1 }, NULL,
                                                     NULL);
        qkv_tensor *loss = qkv_cross_entropy(qkv__transformer_logits(m, hidden), ids + 1, NULL);
        if (qkv_backward(loss)) fail_msg("%s: %s", models[i].name, qkv_error());
        for (int k = 0; k < qkv_params_size(p); k++) compare_gradient(&models[i], p, k);
        qkv_tape_free(t);
        qkv__safetensors_free(&golden);
        qkv_model_free(model);
    }
}

/* ---- windows, longer than a tile of keys ---- */

enum { LONG = 250 };

static void long_text(int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)((i * i * 7 + i * 3 + 1) % 31);
}

static qkv_model *with_window(const struct decoder *d, int64_t window)
{
    qkv_model *from = load(golden_folder(d->name));
    qkv_config o = *qkv__model_config(from);
    o.size = sizeof o;
    o.window_size = window;
    qkv_model *m = qkv_model_new(&o, 7);
    if (!m) fail_msg("%s: %s", d->name, qkv_error());
    qkv_model_free(from);
    return m;
}

static bool sees(const struct decoder *d, int64_t window, int layer, int64_t query, int64_t key)
{
    return key <= query && (!(d->local >> layer & 1) || query - key < window);
}

/* Every weight inside is above 0, every other is 0; a session, read in pieces of any size, has the same bits everywhere. */
static void check_windows(const struct decoder *d, int64_t window)
{
    int32_t ids[LONG];
    long_text(ids, LONG);
    qkv_model *model = with_window(d, window);
    const qkv__transformer *m = qkv__model_transformer(model);
    int64_t heads = qkv__transformer_config(m)->heads, size = qkv__transformer_config(m)->vocab_size;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 });
    const float *whole = qkv_tensor_data(qkv__transformer_logits(
        m, qkv__transformer_decode(m, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = LONG }, NULL, NULL)));
    for (int layer = 0; layer < d->layers; layer++)
        for (int64_t i = 0; i < heads * LONG * LONG; i++)
            if ((qkv_tensor_data(qkv_tape_attention(t, layer))[i] > 0) != sees(d, window, layer, i / LONG % LONG, i % LONG))
                fail_msg("%s: layer %d: number %d", d->name, layer, (int)i);
    qkv_session *s = qkv_session_new(model, &(qkv_session_opts){ .keep_attention = 1 });
    assert_int_equal(qkv_session_start(s, 1), QKV_OK);
    for (int64_t at = 0, n = 1; at < LONG; at += n, n = at % 50 + 1) {
        if (n > LONG - at) n = LONG - at;
        assert_int_equal(qkv_session_read(s, ids + at, &n, QKV_LOGITS_ALL), QKV_OK);
        assert_memory_equal(qkv_tensor_data(qkv_session_logits(s)), whole + at * size, sizeof(float) * (size_t)(n * size));
        for (int layer = 0; layer < d->layers; layer++)
            for (int64_t r = 0; r < heads * n; r++) {
                const float *row = qkv_tensor_data(qkv_session_attention(s, QKV_ATTENTION_DECODER, layer, 0)) + r * (at + n);
                const float *expected = qkv_tensor_data(qkv_tape_attention(t, layer)) + (r / n * LONG + at + r % n) * LONG;
                assert_memory_equal(row, expected, sizeof(float) * (size_t)(at + n));
            }
    }
    qkv_session_free(s);
    qkv_tape_free(t);
    qkv_model_free(model);
}

static void windows_hide_what_is_far(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++)
        for (int k = 0; models[i].local && k < 3; k++) check_windows(&models[i], (int64_t[]){ 1, 20, 130 }[k]);
}

/* ---- the files ---- */

/* Written as its own family and read again: the same options (zero may be said as what it stands for) and the same bits. */
static void files_written_again(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        qkv_model *m = load(golden_folder(models[i].name));
        if (qkv_model_save(m, folder, models[i].family)) fail_msg("%s: %s", models[i].name, qkv_error());
        compare_folder(folder, models[i].name);
        qkv_model *again = load(folder);
        const qkv_config *a = qkv__model_config(m);
        const qkv_config *b = qkv__model_config(again);
#define QKV_OPTION(member, ...) \
    if (a->member != 0 && a->member != b->member) fail_msg("%s: %s differs", models[i].name, #member);
#include <qkv/transformer.def>
        qkv_params *p = qkv_model_params(m), *q = qkv_model_params(again);
        assert_int_equal(qkv__params_materialize(p) || qkv__params_materialize(q), QKV_OK);
        assert_memory_equal(qkv__params_data(p), qkv__params_data(q), sizeof(float) * (size_t)qkv__params_block(p));
        qkv_model_free(again);
        qkv_model_free(m);
    }
    qkv_model *m = load(golden_folder("phi3_long"));
    assert_int_equal(qkv_model_get_info(m)->max_positions, 32); /* what short_factor is for */
    assert_int_equal(qkv_model_save(m, folder, "qkv"), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "longrope"));
    qkv_model_free(m);
}

/* What is trained from a model has its switches, LongRoPE's lists too: the same weights give the same numbers. */
static void models_made_of_others(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        qkv_model *from = load(golden_folder(models[i].name));
        qkv_config o = *qkv__model_config(from);
        o.size = sizeof o;
        qkv_model *m = qkv_model_adapt(from, &o, 5);
        if (!m || qkv_model_save(m, folder, NULL)) fail_msg("%s: %s", models[i].name, qkv_error());
        compare_folder(folder, models[i].name);
        qkv_model_free(m);
        qkv_model_free(from);
    }
}

/* ---- what is refused ---- */

static void copy_golden(const char *name)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r '%s' %s && chmod -R u+w %s", folder, golden_folder(name), folder,
             folder);
    assert_int_equal(system(command), 0);
}

static void set_key(const char *key, const char *value)
{
    const qkv__json_value *config = json_read(in_folder("config.json"));
    json_edit(&config, key, value);
    assert_int_equal(json_write(config, in_folder("config.json")), 0);
    json_free(config);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *model, *key, *value;
        qkv_status status;
        const char *words;
    } rows[] = {
        { "gemma2", "layer_types", "[\"full_attention\"]", QKV_FORMAT, "\"layer_types\": expected 3 words" },
        { "gemma2", "layer_types", "[\"full_attention\", \"chunked\", 3]", QKV_FORMAT, "expected 3 words" },
        { "gemma2", "query_pre_attn_scalar", "0", QKV_FORMAT, "query_pre_attn_scalar" },
        { "gemma2", "attn_logit_softcapping", "-1.0", QKV_FORMAT, "caps cannot be negative" },
        { "gemma2", "hidden_activation", "\"relu\"", QKV_UNSUPPORTED, "hidden_activation" },
        { "gemma3_text", "sliding_window_pattern", "0", QKV_FORMAT, "sliding_window_pattern" },
        { "gemma3_text", "sliding_window", "-4", QKV_FORMAT, "sliding_window" },
        { "gemma3_text", "use_bidirectional_attention", "true", QKV_UNSUPPORTED,
          "key \"use_bidirectional_attention\" is true: only false is supported" },
        { "gpt_neox", "rope_theta", "5.5", QKV_UNSUPPORTED, "only the value of rotary_emb_base" },
        { "phi3", "lm_head_bias", "true", QKV_UNSUPPORTED, "\"lm_head_bias\" is true: only false" },
        { "gemma3_text", "attention_bias", "true", QKV_UNSUPPORTED, "attention_bias" },
        { "qwen3", "attention_bias", "true", QKV_UNSUPPORTED, "attention_bias" },
        { "qwen3", "head_dim", "7", QKV_FORMAT, "" },
        { "phi3", "partial_rotary_factor", "0.3", QKV_UNSUPPORTED, "partial_rotary_factor" },
        { "phi3", "partial_rotary_factor", "1.5", QKV_FORMAT, "partial_rotary_factor" },
        { "phi3", "num_key_value_heads", "4", QKV_FORMAT, "qkv_proj" },
        { "phi3_long", "original_max_position_embeddings", "\"4k\"", QKV_FORMAT, "original_max_position_embeddings" },
        { "phi3_long", "rope_scaling", "{\"type\": \"longrope\", \"short_factor\": [1, 2], \"long_factor\": [1]}", QKV_FORMAT,
          "expected 2 numbers above 0" },
        { "phi3_long", "rope_scaling", "{\"type\": \"su\", \"short_factor\": [1, 0], \"long_factor\": [1, 1]}", QKV_FORMAT,
          "expected 2 numbers above 0" },
        { "opt", "do_layer_norm_before", "false", QKV_UNSUPPORTED, "do_layer_norm_before" },
        { "gpt_neox", "rotary_pct", "2", QKV_FORMAT, "rotary_pct" },
        { "opt", "word_embed_proj_dim", "8", QKV_UNSUPPORTED, "word_embed_proj_dim" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_golden(rows[i].model);
        set_key(rows[i].key, rows[i].value);
        qkv_model *m = qkv_model_load(folder, NULL);
        if (m) fail_msg("%s with %s %s was loaded", rows[i].model, rows[i].key, rows[i].value);
        if (qkv_error_status() != rows[i].status || !strstr(qkv_error(), rows[i].words))
            fail_msg("%s with %s %s: %s", rows[i].model, rows[i].key, rows[i].value, qkv_error());
    }
}

/* Layers as a list says them, where no number does. */
static void layers_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        int local; /* a bit a layer */
    } rows[] = { { "[\"sliding_attention\", \"full_attention\", \"full_attention\"]", -1 },
                 { "[\"full_attention\", \"full_attention\", \"sliding_attention\"]", 4 },
                 { "[\"full_attention\", \"sliding_attention\", \"full_attention\"]", 2 },
                 { "[\"sliding_attention\", \"sliding_attention\", \"sliding_attention\"]", 7 },
                 { "[\"full_attention\", \"full_attention\", \"full_attention\"]", 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_golden("gemma2");
        set_key("layer_types", rows[i].list);
        qkv_model *m = qkv_model_load(folder, NULL);
        if (rows[i].local < 0) {
            assert_null(m);
            assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
            continue;
        }
        if (!m) fail_msg("%s: %s", rows[i].list, qkv_error());
        for (int k = 0; k < 3; k++) assert_int_equal(qkv__has_window(qkv__model_config(m), k), rows[i].local >> k & 1);
        qkv_model_free(m);
    }
}

/* Quantized, saved and mapped again: every token is the same, and near those of floats. */
static void quantized(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        int32_t ids[64];
        float expected[MOST];
        qkv_model *m[2] = { qkv_model_load(golden_folder(models[i].name), &(qkv_load_opts){ .dtype = QKV_DTYPE_INT8 }) };
        if (!m[0] || qkv_model_save(m[0], folder, models[i].family)) fail_msg("%s: %s", models[i].name, qkv_error());
        m[1] = load(folder);
        open_golden(models[i].name);
        int64_t length = ids_of("ids", ids) / BATCH, n = numbers("logits", expected) / BATCH;
        double dot = 0, a = 0, b = 0;
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
        const float *got[2];
        for (int k = 0; k < 2; k++) {
            const qkv__transformer *x = qkv__model_transformer(m[k]);
            got[k] = qkv_tensor_data(qkv__transformer_logits(
                x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = length }, NULL, NULL)));
        }
        assert_memory_equal(got[0], got[1], sizeof(float) * (size_t)n);
        for (int64_t k = 0; k < n; k++) {
            dot += (double)got[0][k] * (double)expected[k];
            a += (double)got[0][k] * (double)got[0][k];
            b += (double)expected[k] * (double)expected[k];
        }
        if (!(dot / sqrt(a * b) > 0.999)) fail_msg("%s: cosine %g", models[i].name, dot / sqrt(a * b));
        qkv_tape_free(t);
        qkv__safetensors_free(&golden);
        qkv_model_free(m[0]);
        qkv_model_free(m[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parity_with_pytorch),    cmocka_unit_test(writes_what_pytorch_writes),
        cmocka_unit_test(gradients_are_pytorchs), cmocka_unit_test(windows_hide_what_is_far),
        cmocka_unit_test(files_written_again),    cmocka_unit_test(quantized),
        cmocka_unit_test(models_made_of_others),  cmocka_unit_test(refusals),
        cmocka_unit_test(layers_by_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
