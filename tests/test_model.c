/* test_model.c: models in folders, and learning-rate schedules. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "report/arrays.h"
#include "report/results.h"

#include <float.h>
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
#include "io/safetensors.h"
#include "nn/params.h"
#include "model/model.h"

static const qkv_config tiny = { .size = sizeof(qkv_config),
                                 .vocab_size = 11,
                                 .encoder_layers = 1,
                                 .decoder_layers = 2,
                                 .dim = 8,
                                 .heads = 2,
                                 .d_ff = 12,
                                 .dropout = 0.1f };
static const qkv_config odd = { .size = sizeof(qkv_config),
                                .vocab_size = 11,
                                .decoder_layers = 1,
                                .dim = 8,
                                .heads = 4,
                                .kv_heads = 2,
                                .d_k = 6,
                                .d_ff = 12,
                                .pre_norm = 1,
                                .norm = QKV_NORM_RMS,
                                .norm_eps = 1e-6f,
                                .activation = QKV_ACTIVATION_SWIGLU,
                                .positions = QKV_POSITION_ROPE,
                                .first_position = 3,
                                .rope_base = 500000,
                                .no_bias = 1,
                                .untied = 1,
                                .unscaled = 1,
                                .dropout = 0.3f,
                                .attention_dropout = 0.2f,
                                .ffn_dropout = 0.15f };

static const qkv_config variant = { .size = sizeof(qkv_config),
                                    .vocab_size = 11,
                                    .encoder_layers = 1,
                                    .dim = 8,
                                    .heads = 2,
                                    .d_ff = 12,
                                    .activation = QKV_ACTIVATION_GELU,
                                    .positions = QKV_POSITION_LEARNED,
                                    .max_positions = 5,
                                    .unscaled = 1,
                                    .classes = 3,
                                    .pooling = QKV_POOLING_FIRST,
                                    .pooler = QKV_POOLER_RELU,
                                    .embed_norm = 1,
                                    .token_types = 2,
                                    .head = 1,
                                    .output_bias = 1 };
static const qkv_config scaled = { .size = sizeof(qkv_config),
                                   .vocab_size = 11,
                                   .decoder_layers = 1,
                                   .dim = 8,
                                   .heads = 2,
                                   .d_ff = 12,
                                   .positions = QKV_POSITION_ROPE,
                                   .no_bias = 1,
                                   .qkv_bias = 1,
                                   .rope_factor = 8,
                                   .rope_low = 1,
                                   .rope_high = 4,
                                   .rope_length = 64 };

/* ---- a folder of its own for every test ---- */

static char folder[64], config_path[96], weights_path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-model-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(config_path, sizeof config_path, "%s/config.json", folder);
    snprintf(weights_path, sizeof weights_path, "%s/model.safetensors", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void save(const qkv_config *o)
{
    qkv_model *m = qkv_model_new(o, 7);
    assert_non_null(m);
    assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
    qkv_model_free(m);
}

static char *read_text(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- there and back ---- */

static void round_trip(void **state)
{
    (void)state;
    const qkv_config *all[] = { &tiny, &odd, &variant, &scaled };
    for (int i = 0; i < 4; i++) {
        save(all[i]);
        qkv_model *first = qkv_model_new(all[i], 7), *m = qkv_model_load(folder, NULL);
        if (!m) fail_msg("%s", qkv_error());
        assert_memory_equal(qkv__model_config(m), all[i], sizeof tiny);
        qkv_params *p = qkv_model_params(first), *q = qkv_model_params(m);
        assert_int_equal(qkv__params_block(p), qkv__params_block(q));
        assert_memory_equal(qkv__params_data(p), qkv__params_data(q), sizeof(float) * (size_t)qkv__params_block(p));
        qkv_model_free(first);
        qkv_model_free(m);
    }
}

/* A config.json from before there were classifiers is what it was. */
static void older_configs(void **state)
{
    (void)state;
    save(&tiny);
    char whole[8192];
    strcpy(whole, read_text(config_path));
    char *first = strstr(whole, "\"classes\""), *comma = first;
    assert_non_null(first);
    while (*comma != ',') comma--;
    strcpy(comma, "\n}\n");
    write_text(config_path, whole);
    qkv_model *m = qkv_model_load(folder, NULL);
    if (!m) fail_msg("%s", qkv_error());
    assert_memory_equal(qkv__model_config(m), &tiny, sizeof tiny);
    qkv_model_free(m);
}

/* ---- bad folders ---- */

static void refuses(qkv_status status, const char *words)
{
    assert_null(qkv_model_load(folder, NULL));
    if (qkv_error_status() != status || !strstr(qkv_error(), words))
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", (int)qkv_error_status(), qkv_error(), (int)status, words);
}

/* config.json with the first `from` replaced. */
static void change_config(const char *from, const char *to)
{
    char changed[8192], *text = read_text(config_path), *at = strstr(text, from);
    if (!at) fail_msg("there is no %s in %s", from, text);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(config_path, changed);
}

static void bad_configs(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        qkv_status status;
        const char *words;
    } rows[] = {
        { "{", "", QKV_FORMAT, "line 2" },
        { "\"qkv\"", "\"rwkv\"", QKV_UNSUPPORTED, "unsupported architecture \"rwkv\": supported are marian, pegasus, bart" },
        { "\"model_type\": \"qkv\",", "", QKV_FORMAT, "\"model_type\" is missing" },
        { "\"heads\": 2,", "", QKV_FORMAT, "\"heads\" is missing" },
        { "\"heads\"", "\"hands\": 1, \"heads\"", QKV_FORMAT, "\"hands\" is unknown" },
        { "\"heads\"", "\"dim\": 8, \"heads\"", QKV_FORMAT, "duplicate" },
        { "\"heads\": 2", "\"heads\": \"2\"", QKV_FORMAT, "\"heads\": expected a whole number" },
        { "\"heads\": 2", "\"heads\": -2", QKV_FORMAT, "\"heads\": expected a whole number" },
        { "\"heads\": 2", "\"heads\": 3", QKV_FORMAT, "does not divide" },
        { "\"heads\": 2", "\"heads\": 99999999999999999999", QKV_FORMAT, "line" },
        { "\"encoder_layers\": 1", "\"encoder_layers\": 1000000", QKV_FORMAT, "0 to 10000" },
        { "\"pre_norm\": false", "\"pre_norm\": 0", QKV_FORMAT, "true or false" },
        { "\"relu\"", "\"swish\"", QKV_UNSUPPORTED, "\"swish\"" },
        { "\"relu\"", "3", QKV_FORMAT, "\"activation\"" },
        { "\"pooler\": \"none\"", "\"pooler\": \"swish\"", QKV_UNSUPPORTED, "\"pooler\"" },
        { "\"embed_norm\": false", "\"embed_norm\": 1", QKV_FORMAT, "\"embed_norm\": expected true or false" },
        { "\"embed_norm\": false", "\"embed_norm\": true", QKV_FORMAT, "\"encoder.embed_norm.weight\" is missing" },
        { "\"rotary_factor\": 0.0", "\"rotary_factor\": 8.0", QKV_FORMAT, "rotary positions" },
        { "\"norm_eps\": 0.0", "\"norm_eps\": 1e300", QKV_FORMAT, "a finite number" },
        { "\"vocabulary\": 11", "\"vocabulary\": 12", QKV_FORMAT, "\"embed.weight\" is (11, 8), expected (12, 8)" },
        { "\"decoder_layers\": 2", "\"decoder_layers\": 3", QKV_FORMAT, "\"decoder.2.self.q.weight\" is missing" },
        { "\"decoder_layers\": 2", "\"decoder_layers\": 1", QKV_FORMAT, "\"decoder.1.cross.k.bias\" has no place" },
        { "\"dim\": 8", "\"dim\": 4611686018427387904", QKV_FORMAT, "cannot have the shape" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        save(&tiny);
        change_config(rows[i].from, rows[i].to);
        refuses(rows[i].status, rows[i].words);
    }
}

static void missing_files(void **state)
{
    (void)state;
    refuses(QKV_IO, "holds no config.json");
    save(&tiny);
    unlink(weights_path);
    refuses(QKV_IO, "model.safetensors: cannot open");
    assert_null(qkv_model_load(NULL, NULL));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
}

/* Files of other programs are named, with what to do. */
static void folders_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *file, *words;
        bool has_config;
    } rows[] = {
        { "model.Q4_K_M.gguf", "/model.Q4_K_M.gguf: GGUF is not read: take the model that the file was made of", false },
        { "model.Q4_K_M.gguf", "GGUF is not read", true },
        { "adapter_config.json", "adapter_config.json: a PEFT adapter changes another model: merge it", false },
        { "adapter_config.json", "with merge_and_unload()", true },
        { "model_index.json", "a diffusers pipeline makes pictures", false },
        { "tf_model.h5", "only safetensors and PyTorch's files are read", true },
        { "flax_model.msgpack", "only safetensors and PyTorch's files are read", true },
        { "model.ckpt.index", "TensorFlow's files are not read", false },
        { "consolidated.00.pth", "this form of Meta's has no config.json", false },
        { "model.onnx", "ONNX is not read: fetch the model's model.safetensors", true },
        { "onnx", "ONNX is not read", true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[256];
        save(&tiny);
        unlink(weights_path);
        snprintf(path, sizeof path, "%s/%s", folder, rows[i].file);
        write_text(path, "");
        if (!rows[i].has_config) {
            char config[256];
            snprintf(config, sizeof config, "%s/config.json", folder);
            unlink(config);
        }
        refuses(QKV_UNSUPPORTED, rows[i].words);
        unlink(path);
    }
    char file[256];
    snprintf(file, sizeof file, "%s/a.gguf", folder);
    write_text(file, "GGUF");
    assert_null(qkv_model_load(file, NULL));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "a.gguf: GGUF is not read"));
    unlink(file);
}

/* What stands where a model's folder should be, seen from within the test's folder. */
static void explained(const char *path, const char *words)
{
    assert_null(qkv_model_load(path, NULL));
    assert_int_equal(qkv_error_status(), QKV_IO);
    if (!strstr(qkv_error(), words)) fail_msg("\"%s\" is missing in: %s", words, qkv_error());
}

static void paths_that_are_no_folder(void **state)
{
    (void)state;
    static const char plain[] = ": there is no such folder: a model is", hub[] = ", and qkv downloads nothing";
    static const char *const no_names[] = { "none", "/none/there", "./a/b", "~a/b", "a/", "a/b/c", "opus/en-de" };
    char before[4096], long_name[300];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    explained("opus/en-de", hub);
    assert_int_equal(mkdir("opus", 0700), 0); /* now it is a path */
    for (size_t i = 0; i < sizeof no_names / sizeof *no_names; i++) explained(no_names[i], plain);
    memset(long_name, 'a', sizeof long_name);
    strcpy(long_name + 255, "/b"); /* as long as a name can be */
    explained(long_name, hub);
    explained("opus", "this one holds nothing");
    write_text("opus/d", ""), write_text("opus/b", ""), write_text("opus/c", "");
    write_text("opus/a2345678901234567890123456789012345678901234567890", "");
    explained("opus", "this one holds a234567890123456789012345678901234567890, b, c, d");
    assert_null(strstr(qkv_error(), "more"));
    write_text("opus/e", "");
    explained("opus", ", b, c, d and 1 more");
    explained("opus/e", "opus/e is not a folder, as a model is, with config.json");
    write_text("file", "");
    explained("file", "file is not a folder, as a model is, with config.json");
    write_text("config.json", "{}");
    explained("file", "file is not a folder, as a model is: give \".\"");
    assert_int_equal(mkdir("opus/f", 0700), 0);
    write_text("opus/f/config.json", "{}");
    explained("opus", "opus holds no config.json, so no model; but \"opus/f\" does");
    explained("opus/f/config.json", "give \"opus/f\"");
    assert_int_equal(chdir(before), 0);
}

/* The longest path that fits, and one byte more. */
static void paths_that_are_long(void **state)
{
    (void)state;
    char path[4200];
    for (int more = 0; more < 2; more++) {
        size_t n = 4095 - strlen("/target_tokenizer.json") + (size_t)more;
        memset(path, 'a', n);
        path[n] = '\0';
        for (size_t i = 0; i < n; i += 200) path[i] = '/';
        assert_null(qkv_model_load(path, NULL));
        assert_int_equal(qkv_error_status(), more ? QKV_LIMIT : QKV_IO);
        qkv_model *m = qkv_model_new(&tiny, 1);
        assert_int_equal(qkv_model_save(m, path, NULL), more ? QKV_LIMIT : QKV_IO);
        qkv_model_free(m);
    }
}

/* Cut after every byte: never a model, never a crash. */
static void cut_configs(void **state)
{
    (void)state;
    save(&tiny);
    char whole[8192];
    strcpy(whole, read_text(config_path));
    for (size_t n = 0; n + 2 < strlen(whole); n++) {
        char part[8192];
        snprintf(part, sizeof part, "%.*s", (int)n, whole);
        write_text(config_path, part);
        refuses(QKV_FORMAT, "config.json");
    }
}

/* A weight of as many dimensions as there may be comes back, and one that differs in the last of them does not fit. */
static void every_dimension_counts(void **state)
{
    (void)state;
    int64_t shape[QKV_MAX_DIMS];
    for (int i = 0; i < QKV_MAX_DIMS; i++) shape[i] = i + 1 == QKV_MAX_DIMS ? 2 : 1;
    qkv_params *p = qkv_params_new(1), *q = qkv_params_new(2), *other = qkv_params_new(3);
    const qkv_tensor *a = qkv_params_add(p, "w", QKV_MAX_DIMS, shape, QKV_INIT_NORMAL, 1);
    const qkv_tensor *b = qkv_params_add(q, "w", QKV_MAX_DIMS, shape, QKV_INIT_NORMAL, 1);
    shape[QKV_MAX_DIMS - 1] = 1, shape[QKV_MAX_DIMS - 2] = 2;
    assert_non_null(qkv_params_add(other, "w", QKV_MAX_DIMS, shape, QKV_INIT_NORMAL, 1));
    assert_int_equal(qkv_params_save(p, weights_path), QKV_OK);
    if (qkv_params_load(q, weights_path)) fail_msg("%s", qkv_error());
    assert_memory_equal(qkv_tensor_data(a), qkv_tensor_data(b), 2 * sizeof(float));
    assert_int_equal(qkv_params_load(other, weights_path), QKV_FORMAT);
    qkv_params_free(p);
    qkv_params_free(q);
    qkv_params_free(other);
}

/* ---- failing calls ---- */

static qkv_status load_once(void)
{
    qkv_model *m = qkv_model_load(folder, NULL);
    qkv_status status = m ? QKV_OK : qkv_error_status();
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    save(&tiny);
    assert_true(each_allocation_fails(load_once) > 20);
}

/* Every file call of a save fails once: an IO error, and the folder still loads as the old model or as the new one. */
static void any_file_call_may_fail(void **state)
{
    (void)state;
    save(&tiny);
    qkv_model *m = qkv_model_new(&tiny, 8);
    for (long n = 0;; n++) {
        use_failing_files(n);
        qkv_status status = qkv_model_save(m, folder, NULL);
        bool failed = failing.failed;
        assert_int_equal(failing.open, 0);
        qkv__set_files(NULL);
        qkv_model *loaded = qkv_model_load(folder, NULL);
        assert_non_null(loaded);
        qkv_model_free(loaded);
        if (!failed) {
            assert_int_equal(status, QKV_OK);
            break;
        }
        assert_true(status == QKV_IO || status == QKV_OK); /* a folder that cannot be opened to sync it is no loss */
    }
    qkv_model_free(m);
}

/* One value that is not finite, anywhere, and nothing is written. */
static void values_that_are_not_saved(void **state)
{
    (void)state;
    static const float values[] = { INFINITY, -INFINITY, NAN };
    save(&tiny);
    qkv_model *m = qkv_model_new(&tiny, 8);
    qkv_params *p = qkv_model_params(m);
    qkv_tensor *last = qkv_params_at(p, qkv_params_size(p) - 1);
    use_failing_files(0); /* none may be called */
    for (int64_t k = 0; k < qkv_tensor_count(last); k++) {
        float was = qkv_tensor_data(last)[k];
        qkv_tensor_data_mut(last)[k] = values[k % 3];
        assert_int_equal(qkv_model_save(m, folder, NULL), QKV_NUMERIC);
        assert_non_null(strstr(qkv_error(), qkv_params_name(p, qkv_params_size(p) - 1)));
        qkv_tensor_data_mut(last)[k] = was;
    }
    assert_false(failing.failed);
    qkv__set_files(NULL);
    qkv_tensor_data_mut(last)[0] = FLT_MAX;
    assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
    qkv_model_free(m);
}

/* A pipe, or a file without an end, in the place of any file of a model. */
static void pipes_for_files(void **state)
{
    (void)state;
    static const char *const names[] = { "config.json", "model.safetensors" };
    save(&tiny);
    alarm(20);
    for (int i = 0; i < 4; i++) {
        char file[256], kept[300];
        snprintf(file, sizeof file, "%s/%s", folder, names[i % 2]);
        snprintf(kept, sizeof kept, "%s.kept", file);
        assert_int_equal(rename(file, kept), 0);
        assert_int_equal(i < 2 ? mkfifo(file, 0600) : symlink("/dev/zero", file), 0);
        refuses(QKV_IO, "it is a pipe or a device");
        assert_int_equal(rename(kept, file), 0);
    }
    alarm(0);
}

/* What is mapped is known by its file: written over, made longer, replaced, gone. */
static void files_that_change(void **state)
{
    (void)state;
    save(&tiny);
    char file[256];
    snprintf(file, sizeof file, "%s/model.safetensors", folder);
    for (int how = 0; how < 5; how++) {
        struct stat about;
        qkv_model *m = qkv_model_load(folder, NULL);
        assert_non_null(m);
        assert_int_equal(stat(file, &about), 0);
        assert_int_equal(qkv_model_check_files(m), QKV_OK);
        struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1 } };
        if (how == 0) assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
        if (how == 1) assert_int_equal(truncate(file, 0), 0);
        if (how >= 1 && how <= 3) save(&tiny);
        times[1] = about.st_mtim; /* another file of the same size and time */
        if (how == 3) assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
        if (how == 4) assert_int_equal(unlink(file), 0);
        assert_int_equal(qkv_model_check_files(m), QKV_IO);
        assert_non_null(strstr(qkv_error(), "model.safetensors: the file has changed"));
        if (how != 1) assert_int_equal(qkv__params_materialize(qkv_model_params(m)), QKV_OK);
        if (how != 1) assert_int_equal(qkv_model_check_files(m), QKV_OK);
        qkv_model_free(m);
    }
    assert_int_equal(qkv_model_check_files(NULL), QKV_USAGE);
}

/* A model that was read into memory stays what it was when its file is cut, in all kinds of weights. */
static void models_in_memory(void **state)
{
    (void)state;
    const qkv_config wide = { .vocab_size = 64, .encoder_layers = 1, .dim = 64, .heads = 2, .d_ff = 256 };
    char other[96], saved[128];
    snprintf(other, sizeof other, "%s/saved", folder);
    snprintf(saved, sizeof saved, "%s/model.safetensors", other);
    for (qkv_dtype kind = QKV_DTYPE_STORED; kind <= QKV_DTYPE_BF16; kind++) {
        qkv__bytes from_map, from_copy;
        save(&wide);
        qkv_load_opts o = { .size = sizeof o, .dtype = kind };
        qkv_model *mapped = qkv_model_load(folder, &o);
        o.in_memory = 1;
        qkv_model *copy = qkv_model_load(folder, &o);
        assert_true(mapped && copy);
        assert_int_equal(qkv_model_save(mapped, other, NULL), QKV_OK);
        assert_int_equal(qkv__file_read(saved, SIZE_MAX, &from_map), QKV_OK);
        assert_int_equal(truncate(weights_path, 0), 0);
        assert_int_equal(qkv_model_check_files(mapped), QKV_IO);
        assert_int_equal(qkv_model_check_files(copy), QKV_OK);
        assert_int_equal(qkv_model_save(copy, other, NULL), QKV_OK);
        assert_int_equal(qkv__file_read(saved, SIZE_MAX, &from_copy), QKV_OK);
        assert_true(from_map.size > 4096 && from_map.size == from_copy.size);
        assert_memory_equal(from_map.data, from_copy.data, from_map.size);
        qkv__bytes_free(&from_map);
        qkv__bytes_free(&from_copy);
        qkv_model_free(mapped);
        qkv_model_free(copy);
    }
}

/* Mapped weights are read only; a model loaded as float32 has its own, which can be changed, saved and trained. */
static void models_to_change(void **state)
{
    (void)state;
    save(&tiny);
    qkv_model *mapped = qkv_model_load(folder, NULL);
    qkv_model *own = qkv_model_load(folder, &QKV_OPTS(qkv_load_opts, .dtype = QKV_DTYPE_F32));
    assert_true(mapped && own);
    for (int i = 0; i < qkv_params_size(qkv_model_params(own)); i++) {
        qkv_tensor *w = qkv_params_at(qkv_model_params(mapped), i), *x = qkv_params_at(qkv_model_params(own), i);
        assert_null(qkv_tensor_data_mut(w));
        assert_null(qkv_tensor_grad(w));
        assert_ptr_equal(qkv_tensor_data_mut(x), qkv_tensor_data(x));
        assert_non_null(qkv_tensor_grad(x));
        assert_memory_equal(qkv_tensor_data(w), qkv_tensor_data(x), sizeof(float) * (size_t)qkv_tensor_count(x));
    }
    qkv_optimizer *o = qkv_optimizer_new(qkv_model_params(mapped), NULL);
    assert_non_null(o);
    assert_non_null(qkv_tensor_data_mut(qkv_params_at(qkv_model_params(mapped), 0)));
    assert_null(qkv_tensor_data_mut(NULL));
    qkv_optimizer_free(o);
    qkv_model_free(mapped);
    qkv_model_free(own);
}

/* ---- schedules ---- */

static void schedules(void **state)
{
    (void)state;
    static const struct {
        qkv_schedule s;
        int64_t step;
        double lr;
    } rows[] = {
        { { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 4000, .dim = 512 }, 1, 1.746928107421711e-07 },
        { { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 4000, .dim = 512 }, 4000, 6.987712429686843e-04 },
        { { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 4000, .dim = 512 }, 16000, 3.4938562148434214e-04 },
        { { .kind = QKV_SCHEDULE_CONSTANT, .lr = 0.5 }, 1, 0.5 },
        { { .kind = QKV_SCHEDULE_CONSTANT, .lr = 0.5, .warmup = 10 }, 4, 0.2 },
        { { .kind = QKV_SCHEDULE_CONSTANT, .lr = 0.5, .warmup = 10 }, 1000, 0.5 },
        { { .kind = QKV_SCHEDULE_LINEAR, .lr = 1, .warmup = 10, .steps = 110 }, 5, 0.5 },
        { { .kind = QKV_SCHEDULE_LINEAR, .lr = 1, .warmup = 10, .steps = 110, .final_lr = 0.2 }, 60, 0.6 },
        { { .kind = QKV_SCHEDULE_LINEAR, .lr = 1, .warmup = 10, .steps = 110, .final_lr = 0.2 }, 500, 0.2 },
        { { .kind = QKV_SCHEDULE_COSINE, .lr = 1, .warmup = 10, .steps = 110 }, 10, 1 },
        { { .kind = QKV_SCHEDULE_COSINE, .lr = 1, .warmup = 10, .steps = 110 }, 60, 0.5 },
        { { .kind = QKV_SCHEDULE_COSINE, .lr = 1, .warmup = 10, .steps = 110 }, 35, 0.8535533905932737 },
        { { .kind = QKV_SCHEDULE_COSINE, .lr = 1, .warmup = 10, .steps = 110, .final_lr = 0.1 }, 110, 0.1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double lr = qkv_schedule_lr(&rows[i].s, rows[i].step);
        if (!(fabs(lr - rows[i].lr) <= 1e-12)) fail_msg("row %zu: %.17g, expected %.17g", i, lr, rows[i].lr);
    }
}

static void bad_schedules(void **state)
{
    (void)state;
    static const qkv_schedule rows[] = {
        { .kind = (qkv_schedule_kind)9 },
        { .lr = NAN },
        { .lr = -1 },
        { .lr = 1, .warmup = -1 },
        { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .dim = 512 },
        { .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 10 },
        { .kind = QKV_SCHEDULE_LINEAR, .lr = 1, .warmup = 10, .steps = 10 },
        { .kind = QKV_SCHEDULE_COSINE, .lr = 1, .steps = 10, .final_lr = 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(isnan(qkv_schedule_lr(&rows[i], 1)));
        assert_int_equal(qkv_error_status(), QKV_USAGE);
    }
}

/* ---- positions ---- */

static void positions_of_a_model(void **state)
{
    (void)state;
    qkv_config o = { .vocab_size = 8, .encoder_layers = 1, .dim = 4, .heads = 1, .d_ff = 4, .first_position = 2 };
    qkv_array table = { 0 };
    qkv_model *m = qkv_model_new(&o, 1);
    assert_int_equal(qkv_model_positions(m, QKV_SIDE_SOURCE, 3, &table), QKV_OK);
    assert_true(table.ndim == 2 && table.shape[0] == 3 && table.shape[1] == 4);
    assert_true(fabs((double)table.data[4] - sin(3)) < 1e-6 && fabs((double)table.data[5] - cos(3)) < 1e-6);
    qkv_array_free(&table);
    qkv_model_free(m);
    o.positions = QKV_POSITION_LEARNED, o.max_positions = 5;
    m = qkv_model_new(&o, 1);
    const float *weight = qkv_tensor_data(qkv_params_find(qkv_model_params(m), "encoder.positions.weight"));
    assert_int_equal(qkv_model_positions(m, QKV_SIDE_SOURCE, 0, &table), QKV_OK);
    assert_int_equal(table.shape[0], 7); /* first_position rows before them */
    assert_memory_equal(table.data, weight, 28 * sizeof *weight);
    qkv_array_free(&table);
    assert_int_equal(qkv_model_positions(m, QKV_SIDE_SOURCE, 8, &table), QKV_USAGE);
    assert_string_equal(qkv_error(), "positions: 8 are asked for, the model has learned 7");
    assert_int_equal(qkv_model_positions(m, QKV_SIDE_TARGET, 1, &table), QKV_USAGE);
    assert_string_equal(qkv_error(), "positions: the model has no decoder");
    assert_int_equal(qkv_model_positions(m, QKV_SIDE_SOURCE, -1, &table), QKV_USAGE);
    qkv_model_free(m);
    o.positions = QKV_POSITION_ROPE, o.max_positions = 0, o.first_position = 0;
    m = qkv_model_new(&o, 1);
    assert_int_equal(qkv_model_positions(m, QKV_SIDE_SOURCE, 1, &table), QKV_USAGE);
    assert_null(table.data);
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_of_a_model),
        cmocka_unit_test_setup_teardown(round_trip, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(older_configs, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(bad_configs, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(missing_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(paths_that_are_no_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(folders_of_others, make_folder, remove_folder),
        cmocka_unit_test(paths_that_are_long),
        cmocka_unit_test_setup_teardown(cut_configs, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(every_dimension_counts, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(any_file_call_may_fail, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(values_that_are_not_saved, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(pipes_for_files, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_that_change, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(models_in_memory, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(models_to_change, make_folder, remove_folder),
        cmocka_unit_test(schedules),
        cmocka_unit_test(bad_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
