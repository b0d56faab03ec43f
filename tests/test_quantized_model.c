/* test_quantized_model.c: models in 8 and 4 bits: the same bits however they are run, folders that are loaded as they lie,
 * files that are refused, and no training. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "term/read_text.h"
#include "report/average.h"

#include "folder.h"
#include "io/safetensors.h"
#include "nn/params.h"
#include "tensor/quantized.h"
#include "model/model.h"

enum { VOCABULARY = 90, TOKENS = 40 };

/* Widths that are no multiple of a group, so that every row has an end of its own. */
static const qkv_config decoder = { .vocab_size = VOCABULARY,
                                    .decoder_layers = 2,
                                    .dim = 72,
                                    .heads = 4,
                                    .d_ff = 130,
                                    .pre_norm = 1,
                                    .norm = QKV_NORM_RMS,
                                    .activation = QKV_ACTIVATION_SWIGLU,
                                    .positions = QKV_POSITION_ROPE,
                                    .untied = 1 };
static const qkv_config translator = {
    .vocab_size = VOCABULARY, .encoder_layers = 1, .decoder_layers = 1, .dim = 64, .heads = 4, .d_ff = 100
};

static const qkv_dtype kinds[] = { QKV_DTYPE_INT8, QKV_DTYPE_INT4, QKV_DTYPE_BF16 };
static const char *const kind_names[] = { "int8", "int4", "bf16" };

/* The last path stays valid. */
static const char *saved(const char *name, const qkv_config *o)
{
    static char path[256];
    snprintf(path, sizeof path, "%s", in_folder(name));
    qkv_model *m = qkv_model_new(o, 7);
    assert_int_equal(qkv_model_save(m, path, NULL), QKV_OK);
    qkv_model_free(m);
    return path;
}

static qkv_model *load(const char *path, qkv_dtype kind)
{
    qkv_load_opts o = QKV_OPTS(qkv_load_opts);
    o.dtype = kind;
    qkv_model *m = qkv_model_load(path, &o);
    if (!m) fail_msg("%s", qkv_error());
    return m;
}

/* The logits of the last of TOKENS tokens, read `step` at a time in a session of `rows` rows alike. */
static void last_logits(const qkv_model *m, int64_t rows, int64_t step, float out[VOCABULARY])
{
    int32_t ids[64 * TOKENS];
    qkv_session *s = qkv_session_new(m, NULL);
    assert_int_equal(qkv_session_start(s, rows), QKV_OK);
    for (int64_t at = 0; at < TOKENS; at += step) {
        int64_t counts[64], n = TOKENS - at < step ? TOKENS - at : step;
        for (int64_t r = 0; r < rows; r++) {
            counts[r] = n;
            for (int64_t i = 0; i < n; i++) ids[r * n + i] = (int32_t)((at + i) * 37 % VOCABULARY);
        }
        assert_int_equal(qkv_session_read(s, ids, counts, QKV_LOGITS_LAST), QKV_OK);
    }
    memcpy(out, qkv_tensor_data(qkv_session_logits(s)) + (rows - 1) * VOCABULARY, sizeof(float) * VOCABULARY);
    qkv_session_free(s);
}

/* ---- bits ---- */

static void same_at_any_batch_and_threads(void **state)
{
    (void)state;
    static const int64_t rows[] = { 1, 1, 7, 32, 3 }, steps[] = { 1, TOKENS, 1, 5, 17 };
    const char *path = saved("batches", &decoder);
    for (int kind = 0; kind < 3; kind++) {
        float first[VOCABULARY], other[VOCABULARY];
        qkv_model *m = load(path, kinds[kind]);
        last_logits(m, 1, 1, first);
        for (int threads = 1; threads <= 4; threads *= 2)
            for (int i = 0; i < 5; i++) {
                assert_int_equal(qkv_set_num_threads(threads), QKV_OK);
                last_logits(m, rows[i], steps[i], other);
                if (memcmp(first, other, sizeof first))
                    fail_msg("%s, %d threads, %lld rows: other bits", kind_names[kind], threads, (long long)rows[i]);
            }
        qkv_set_num_threads(0);
        qkv_model_free(m);
    }
}

static void translations_are_the_same_in_any_batch(void **state)
{
    (void)state;
    enum { SENTENCES = 32, LENGTH = 9 };
    const char *path = saved("translations", &translator);
    int32_t ids[SENTENCES * LENGTH];
    const qkv_search_opts opts = { .start = 1, .end = 2, .pad = 0, .beam_size = 4, .max_length = 12 };
    for (int i = 0; i < SENTENCES * LENGTH; i++) ids[i] = 3 + i * 29 % (VOCABULARY - 3);
    for (int kind = 0; kind < 3; kind++) {
        qkv_model *m = load(path, kinds[kind]);
        qkv_search_result *all = NULL, *some = NULL;
        assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = ids, .rows = SENTENCES, .length = LENGTH }, &opts, &all),
                         QKV_OK);
        for (int64_t at = 0, n = 1; at + n <= SENTENCES; at += n, n = n == 1 ? 7 : 1) {
            assert_int_equal(
                qkv_beam_search(m, &(qkv_tokens){ .ids = ids + at * LENGTH, .rows = n, .length = LENGTH }, &opts, &some),
                QKV_OK);
            for (int64_t i = 0; i < n; i++) {
                const qkv_hypothesis *a = &all->best[at + i], *b = &some->best[i];
                assert_int_equal(a->n, b->n);
                assert_memory_equal(a->ids, b->ids, sizeof *a->ids * (size_t)a->n);
                assert_true(a->score == b->score && a->log_p == b->log_p);
            }
        }
        qkv_free(all);
        qkv_free(some);
        qkv_model_free(m);
    }
}

/* ---- what is kept ---- */

/* Near to what it was: half a step of a row's scale; of 4 bits, where the ends of a group may be cut, in the mean. The tables
 * have 8 bits in both. */
static void weights_are_near(void **state)
{
    (void)state;
    const char *path = saved("near", &decoder);
    qkv_model *exact = load(path, QKV_DTYPE_STORED);
    for (int kind = 0; kind < 2; kind++) {
        qkv_model *m = load(path, kinds[kind]);
        assert_int_equal(qkv__model_get_info(m)->bits, kind ? 4 : 8);
        for (int i = 0; i < qkv_params_size(qkv_model_params(m)); i++) {
            const char *name = qkv_params_name(qkv_model_params(m), i);
            const qkv_tensor *w = qkv_params_at(qkv_model_params(m), i);
            const float *was = qkv_tensor_data(qkv_params_at(qkv_model_params(exact), i));
            bool is_table = !strcmp(name, "embed.weight") || !strcmp(name, "output.weight");
            assert_int_equal(qkv__is_quantized(w), w->ndim == 2);
            if (w->ndim != 2) continue;
            int bits = kind && !is_table ? 4 : 8;
            assert_int_equal(w->type->bits, bits);
            assert_int_equal(qkv_tensor_dtype(w), bits == 8 ? QKV_DTYPE_INT8 : QKV_DTYPE_INT4);
            assert_ptr_equal(qkv_tensor_bytes(w), w->values);
            for (int64_t r = 0; r < w->shape[0]; r++) {
                float now[256], largest = 0, off = 0, squares = 0;
                qkv__widen(w, r * w->shape[1], w->shape[1], now);
                for (int64_t c = 0; c < w->shape[1]; c++) {
                    largest = fmaxf(largest, fabsf(was[r * w->shape[1] + c]));
                    float lost = was[r * w->shape[1] + c] - now[c];
                    off = fmaxf(off, fabsf(lost));
                    squares += lost * lost;
                }
                assert_true(off <= largest / (bits == 8 ? 253.9f : 4));
                assert_true(sqrtf(squares / (float)w->shape[1]) <= largest / (bits == 8 ? 254 : 20));
            }
        }
        qkv_model_free(m);
    }
    qkv_model_free(exact);
}

/* Every matrix is the nearest bfloat16, and others are as they were. A folder of it has the same numbers, widened; without a
 * unit for bfloats they give the same bits, in 16 bits or in 32. */
static void bf16_is_rounded_and_kept(void **state)
{
    (void)state;
    const char *path = saved("rounded", &decoder), *isa = qkv_isa();
    float before[VOCABULARY], after[VOCABULARY];
    qkv_model *exact = load(path, QKV_DTYPE_STORED), *m = load(path, QKV_DTYPE_BF16);
    assert_int_equal(qkv__model_get_info(m)->bits, 0);
    for (int i = 0; i < qkv_params_size(qkv_model_params(m)); i++) {
        const qkv_tensor *w = qkv_params_at(qkv_model_params(m), i);
        const float *was = qkv_tensor_data(qkv_params_at(qkv_model_params(exact), i));
        for (int64_t at = 0; at < w->count; at++) {
            float now, off = ldexpf(fabsf(was[at]), -8);
            qkv__widen(w, at, 1, &now);
            assert_true(w->ndim == 2 ? fabsf(now - was[at]) <= off : now == was[at]);
        }
        assert_true(w->ndim == 2 ? w->type == qkv__type_bf16_both() : !w->type);
        assert_int_equal(qkv_tensor_dtype(w), w->ndim == 2 ? QKV_DTYPE_BF16 : QKV_DTYPE_F32);
        assert_ptr_equal(qkv_tensor_bytes(w), w->ndim == 2 ? w->values : w->data);
    }
    assert_int_equal(qkv_model_save(m, in_folder("rounded16"), NULL), QKV_OK);
    assert_int_equal(qkv_set_isa("baseline"), QKV_OK);
    last_logits(m, 1, TOKENS, before);
    for (int asked = 0; asked < 2; asked++) {
        qkv_model *other = load(in_folder("rounded16"), asked ? QKV_DTYPE_BF16 : QKV_DTYPE_STORED);
        last_logits(other, 1, TOKENS, after);
        assert_memory_equal(before, after, sizeof before);
        qkv_model_free(other);
    }
    qkv_set_isa(isa);
    qkv_model_free(exact);
    qkv_model_free(m);
}

/* A table of tokens gives whole number * scale, at any place. */
static void widened_anywhere(void **state)
{
    (void)state;
    const char *path = saved("widened", &decoder);
    qkv_model *m = load(path, QKV_DTYPE_INT4);
    for (int i = 0; i < qkv_params_size(qkv_model_params(m)); i++) {
        const qkv_tensor *w = qkv_params_at(qkv_model_params(m), i);
        if (!qkv__is_quantized(w)) continue;
        float *all = malloc(sizeof *all * (size_t)w->count), some[100];
        qkv__widen(w, 0, w->count, all);
        for (int64_t at = 0, n = 1; at + n <= w->count; at += n, n = n % 97 + 1) {
            qkv__widen(w, at, n, some);
            assert_memory_equal(some, all + at, sizeof *all * (size_t)n);
        }
        free(all);
    }
    qkv_model_free(m);
}

static void saved_and_loaded_is_the_same(void **state)
{
    (void)state;
    const char *const names[] = { "kept8", "kept4" }, *path = saved("kept", &decoder);
    for (int kind = 0; kind < 2; kind++) {
        float before[VOCABULARY], after[VOCABULARY];
        qkv_model *m = load(path, kinds[kind]);
        last_logits(m, 1, TOKENS, before);
        assert_int_equal(qkv_model_save(m, in_folder(names[kind]), NULL), QKV_OK);
        qkv_model_free(m);
        for (int asked = 0; asked < 2; asked++) {
            m = load(in_folder(names[kind]), asked ? kinds[kind] : QKV_DTYPE_STORED);
            assert_int_equal(qkv__model_get_info(m)->bits, kind ? 4 : 8);
            last_logits(m, 1, TOKENS, after);
            assert_memory_equal(before, after, sizeof before);
            qkv_model_free(m);
        }
        qkv_load_opts o = QKV_OPTS(qkv_load_opts);
        o.dtype = kinds[1 - kind];
        assert_null(qkv_model_load(in_folder(names[kind]), &o));
        assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
        assert_non_null(strstr(qkv_error(), "bits already"));
    }
}

/* GPT-2 has its matrices the other way round, and three in one: as 8 bits they lie as ours do. */
static void saved_as_a_family_is_the_same(void **state)
{
    (void)state;
    const qkv_config o = { .vocab_size = VOCABULARY,
                           .decoder_layers = 2,
                           .dim = 48,
                           .heads = 4,
                           .d_ff = 192,
                           .pre_norm = 1,
                           .norm_eps = 1e-5f,
                           .activation = QKV_ACTIVATION_GELU_TANH,
                           .positions = QKV_POSITION_LEARNED,
                           .max_positions = 64,
                           .unscaled = 1 };
    qkv_model *ours = qkv_model_new(&o, 3);
    assert_non_null(ours);
    if (qkv_model_save(ours, in_folder("gpt2"), "gpt2")) fail_msg("%s", qkv_error());
    qkv_model_free(ours);
    for (int kind = 0; kind < 2; kind++) {
        float before[VOCABULARY], after[VOCABULARY];
        qkv_model *m = load(in_folder("gpt2"), kinds[kind]);
        last_logits(m, 2, TOKENS, before);
        const char *to = in_folder(kind ? "gpt2-4" : "gpt2-8");
        if (qkv_model_save(m, to, NULL)) fail_msg("%s", qkv_error());
        qkv_model_free(m);
        m = load(to, QKV_DTYPE_STORED);
        assert_string_equal(qkv_model_get_info(m)->family, "gpt2");
        last_logits(m, 2, TOKENS, after);
        assert_memory_equal(before, after, sizeof before);
        qkv_model_free(m);
    }
}

/* ---- files that are refused ---- */

/* The folder of a model in so many bits, with one tensor changed; NULL bytes: it is left out. */
typedef struct change {
    int bits;
    const char *tensor, *dtype;
    int64_t shape[2];
    int ndim, at; /* the number at place `at` becomes `value`; -1: none */
    uint32_t value;
    const char *says;
} change;

static void rewrite(const char *folder_path, const change *c)
{
    char path[512];
    qkv__safetensors file;
    snprintf(path, sizeof path, "%s/model.safetensors", folder_path);
    assert_int_equal(qkv__safetensors_read(path, &file), QKV_OK);
    static qkv__to_store all[256];
    static char changed[1 << 20];
    int n = 0;
    for (int i = 0; i < file.n; i++) {
        const qkv__stored *t = &file.tensors[i];
        all[n] = (qkv__to_store){
            .name = t->name, .dtype = t->dtype, .ndim = t->ndim, .shape = t->shape, .count = t->count, .data = t->data
        };
        if (!strcmp(t->name, c->tensor)) {
            if (!c->dtype && c->at < 0) continue;
            memcpy(changed, t->data, t->end - t->begin);
            size_t size = !strcmp(t->dtype, "F16") ? 2 : 4;
            if (c->at >= 0) memcpy(changed + (size_t)c->at * size, &c->value, size);
            all[n].data = changed;
            if (c->dtype) {
                all[n].dtype = c->dtype, all[n].ndim = c->ndim, all[n].shape = c->shape;
                all[n].count = c->shape[0] * (c->ndim > 1 ? c->shape[1] : 1);
            }
        }
        n++;
    }
    char other[600];
    snprintf(other, sizeof other, "%s.new", path);
    assert_int_equal(qkv__safetensors_write(other, n, all, 0, NULL), QKV_OK);
    qkv__safetensors_free(&file);
    assert_int_equal(rename(other, path), 0);
}

static void hostile_files(void **state)
{
    (void)state;
    static const change changes[] = {
        { 8, "embed.weight_scale", .at = -1, .says = "\"embed.weight_scale\" is missing" },
        { 8, "embed.weight_scale", "F32", { 89 }, 1, -1, 0, "\"embed.weight_scale\" is F32 (89), expected F32 (90)" },
        { 8, "embed.weight_scale", "F16", { 90 }, 1, -1, 0, "is F16 (90), expected F32 (90)" },
        { 8, "embed.weight_scale", .at = 17, .value = 0x7fc00000, .says = "\"embed.weight_scale\": scale 17 is nan" },
        { 8, "embed.weight_scale", .at = 3, .value = 0xbf800000, .says = "scale 3 is -1" },
        { 8, "embed.weight_scale", .at = 3, .value = 0x7f800000, .says = "scale 3 is inf" },
        { 8, "embed.weight", "I8", { 89, 72 }, 2, -1, 0, "\"embed.weight\" of 8 bits is (89, 72), expected (90, 72)" },
        { 8, "embed.weight", "U8", { 90, 72 }, 2, -1, 0, "\"embed.weight\" of 4 bits is (90, 72), expected (90, 48)" },
        { 4, "decoder.0.self.q.weight", "U8", { 72, 47 }, 2, -1, 0, "of 4 bits is (72, 47), expected (72, 48)" },
        { 4, "decoder.0.self.q.weight_scale", .at = 5, .value = 0x7e00, .says = "scale 5 is nan" },
        { 4, "decoder.0.self.q.weight_scale", "F16", { 72, 2 }, 2, -1, 0, "is F16 (72, 2), expected F16 (72, 3)" },
        { 4, "decoder.norm.weight", "I8", { 72 }, 1, -1, 0, "\"decoder.norm.weight\" is I8, not a float type" },
    };
    const char *path = saved("honest", &decoder);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char name[32];
        snprintf(name, sizeof name, "hostile%zu", i);
        qkv_model *m = load(path, changes[i].bits == 8 ? QKV_DTYPE_INT8 : QKV_DTYPE_INT4);
        assert_int_equal(qkv_model_save(m, in_folder(name), NULL), QKV_OK);
        qkv_model_free(m);
        rewrite(in_folder(name), &changes[i]);
        assert_null(qkv_model_load(in_folder(name), NULL));
        assert_true(qkv_error_status() == QKV_FORMAT || qkv_error_status() == QKV_UNSUPPORTED);
        if (!strstr(qkv_error(), changes[i].says)) fail_msg("\"%s\" does not say: %s", qkv_error(), changes[i].says);
    }
}

/* Text in config.json that follows "quantization_config". */
static void hostile_configs(void **state)
{
    (void)state;
    static const struct {
        const char *value, *says;
        qkv_status status;
    } rows[] = { { "{\"bits\": 8}", "\"quant_method\" is missing", QKV_FORMAT },
                 { "{\"quant_method\": \"gptq\", \"bits\": 4}", "quantized by \"gptq\"", QKV_UNSUPPORTED },
                 { "{\"quant_method\": \"qkv\", \"bits\": 3}", "expected 8 bits, or 4", QKV_FORMAT },
                 { "{\"quant_method\": \"qkv\", \"bits\": 4, \"group_size\": 64}", "groups of 32", QKV_FORMAT },
                 { "[]", "\"quant_method\" is missing", QKV_FORMAT },
                 { "null", "_scale\" has no place", QKV_FORMAT } };
    char config[600], text[1 << 14], to[(1 << 14) + 600];
    qkv_model *m = load(saved("configs", &decoder), QKV_DTYPE_INT8);
    assert_int_equal(qkv_model_save(m, in_folder("odd"), NULL), QKV_OK);
    qkv_model_free(m);
    snprintf(config, sizeof config, "%s/config.json", in_folder("odd"));
    FILE *f = fopen(config, "r");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    char *key = strstr(text, "\"quantization_config\""), *end = strchr(key, '}') + 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = snprintf(to, sizeof to, "%.*s\"quantization_config\": %s%s", (int)(key - text), text, rows[i].value, end);
        f = fopen(config, "w");
        assert_int_equal(fwrite(to, 1, (size_t)n, f), n);
        fclose(f);
        assert_null(qkv_model_load(in_folder("odd"), NULL));
        assert_int_equal(qkv_error_status(), rows[i].status);
        if (!strstr(qkv_error(), rows[i].says)) fail_msg("\"%s\" does not say: %s", qkv_error(), rows[i].says);
    }
}

/* A config.json that was copied from a folder of other bits. */
static void configs_of_other_bits(void **state)
{
    (void)state;
    static const char *const says[3][3] = {
        [0] = { [1] = "8 bits: no matrix is quantized", [2] = "4 bits: no matrix is quantized" },
        [1] = { [2] = "says 4 bits: the matrices have 8" },
        [2] = { [1] = "says 8 bits: some matrices have 4" }
    };
    static const qkv_dtype stored[] = { QKV_DTYPE_STORED, QKV_DTYPE_INT8, QKV_DTYPE_INT4 };
    char name[32], from[48], to[600];
    const char *path = saved("source", &decoder);
    for (int i = 0; i < 3; i++) {
        qkv_model *m = load(path, stored[i]);
        snprintf(name, sizeof name, "kind%d", i);
        assert_int_equal(qkv_model_save(m, in_folder(name), NULL), QKV_OK);
        qkv_model_free(m);
    }
    for (int weights = 0; weights < 3; weights++)
        for (int config = 1; config < 3; config++) {
            if (weights == config) continue;
            qkv_buffer text = { 0 };
            snprintf(from, sizeof from, "kind%d/config.json", config);
            assert_int_equal(qkv_text_read(in_folder(from), 0, &text), QKV_OK);
            snprintf(name, sizeof name, "kind%d", weights);
            qkv_model *m = load(in_folder(name), QKV_DTYPE_STORED);
            assert_int_equal(qkv_model_save(m, in_folder("lying"), NULL), QKV_OK);
            qkv_model_free(m);
            snprintf(to, sizeof to, "%s/config.json", in_folder("lying"));
            assert_int_equal(qkv_file_write(to, text.data, text.length), QKV_OK);
            qkv_buffer_free(&text);
            assert_null(qkv_model_load(in_folder("lying"), NULL));
            assert_int_equal(qkv_error_status(), QKV_FORMAT);
            if (!strstr(qkv_error(), says[weights][config])) fail_msg("%d, %d: %s", weights, config, qkv_error());
        }
}

/* ---- what cannot be ---- */

static void no_training(void **state)
{
    (void)state;
    qkv_model *m = load(saved("untrained", &decoder), QKV_DTYPE_INT8);
    assert_null(qkv_model_adapt(m, &decoder, 1));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "8 bits, which cannot be trained"));
    assert_null(qkv__params_data(qkv_model_params(m)));
    assert_int_equal(qkv__params_materialize(qkv_model_params(m)), QKV_UNSUPPORTED);
    assert_int_equal(qkv_model_save(m, in_folder("untrained8"), NULL), QKV_OK);
    qkv_model_free(m);
    const char *const folders[] = { in_folder("untrained8") };
    assert_null(qkv_model_average(folders, 1));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    qkv_load_opts o = QKV_OPTS(qkv_load_opts);
    o.dtype = QKV_DTYPE_F16; /* only files have it */
    assert_null(qkv_model_load(in_folder("untrained"), &o));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
}

static void numbers_that_do_not_fit(void **state)
{
    (void)state;
    qkv_model *m = qkv_model_new(&decoder, 7);
    qkv_tensor_data_mut(qkv_params_find(qkv_model_params(m), "decoder.1.ffn.in.weight"))[3] = 3e38f;
    assert_int_equal(qkv_model_save(m, in_folder("large"), NULL), QKV_OK);
    qkv_model_free(m);
    qkv_model_free(load(in_folder("large"), QKV_DTYPE_INT8));
    qkv_load_opts o = QKV_OPTS(qkv_load_opts);
    o.dtype = QKV_DTYPE_INT4;
    assert_null(qkv_model_load(in_folder("large"), &o));
    assert_int_equal(qkv_error_status(), QKV_NUMERIC);
    assert_non_null(strstr(qkv_error(), "\"decoder.1.ffn.in.weight\" is not finite, or too large for 4 bits"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_at_any_batch_and_threads),
        cmocka_unit_test(translations_are_the_same_in_any_batch),
        cmocka_unit_test(weights_are_near),
        cmocka_unit_test(bf16_is_rounded_and_kept),
        cmocka_unit_test(widened_anywhere),
        cmocka_unit_test(saved_and_loaded_is_the_same),
        cmocka_unit_test(saved_as_a_family_is_the_same),
        cmocka_unit_test(hostile_files),
        cmocka_unit_test(hostile_configs),
        cmocka_unit_test(configs_of_other_bits),
        cmocka_unit_test(no_training),
        cmocka_unit_test(numbers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
