/* test_shards.c: weights in several files and of several types; and folders that are malformed in more than 500 ways, each of
 * which must give its status and never a model. */
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
#include "folder.h"
#include "io/safetensors.h"
#include "nn/params.h"
#include "json_values.h"
#include "model/model.h"

static void put_file(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text) { put_file(name, text, strlen(text)); }

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    bytes[*size] = '\0';
    fclose(f);
    return bytes;
}

static void put_json(const char *name, const qkv__json_value *value)
{
    char *text = json_text(value, QKV__JSON_COMPACT);
    put_text(name, text);
    free(text);
}

/* ---- a safetensors file as its header and its numbers ---- */

typedef struct parts {
    const qkv__json_value *header;
    char *file, *data; /* data is inside file */
    size_t data_size;
} parts;

static parts take_apart(const char *path)
{
    size_t size;
    parts p = { .file = read_file(path, &size) };
    uint64_t length;
    memcpy(&length, p.file, 8);
    p.header = json_parse(p.file + 8, (size_t)length);
    assert_non_null(p.header);
    p.data = p.file + 8 + length;
    p.data_size = size - 8 - (size_t)length;
    return p;
}

static void free_parts(parts *p)
{
    json_free(p->header);
    free(p->file);
}

static void put_raw(const char *name, const char *header, size_t length, const char *data, size_t data_size)
{
    char *all = malloc(8 + length + data_size);
    const uint64_t said = length;
    memcpy(all, &said, 8);
    memcpy(all + 8, header, length);
    memcpy(all + 8 + length, data, data_size);
    put_file(name, all, 8 + length + data_size);
    free(all);
}

static void put_parts(const char *name, const qkv__json_value *header, const char *data, size_t data_size)
{
    char *text = json_text(header, QKV__JSON_COMPACT);
    put_raw(name, text, strlen(text), data, data_size);
    free(text);
}

/* A member of a header: the tensor with other bytes. dtype: NULL for its own. */
static void put_moved(qkv__json_writer *w, const char *name, const qkv__json_value *tensor, const char *dtype, size_t begin,
                      size_t end)
{
    qkv__json_open_object(w, name);
    qkv__json_put_text(w, "dtype", dtype ? dtype : qkv__json_get_text(tensor, "dtype"));
    qkv__json_put_value(w, "shape", qkv__json_get(tensor, "shape"));
    qkv__json_open_array(w, "data_offsets");
    qkv__json_put_int(w, NULL, (int64_t)begin);
    qkv__json_put_int(w, NULL, (int64_t)end);
    qkv__json_close(w);
    qkv__json_close(w);
}

static size_t offset(const qkv__json_value *tensor, size_t i)
{
    return (size_t)qkv__json_int(qkv__json_at(qkv__json_get(tensor, "data_offsets"), i));
}

/* Every second tensor of a file from number `from` on in a file of their own, in the order of their bytes. */
static void put_some(const char *name, const parts *p, size_t from, qkv__json_writer *map)
{
    qkv__json_writer header = { 0 };
    char *data = malloc(p->data_size + 1);
    size_t at = 0, number = 0;
    qkv__json_open_object(&header, NULL);
    for (size_t i = 0; i < qkv__json_size(p->header); i++) {
        const char *tensor = qkv__json_key(p->header, i);
        const qkv__json_value *entry = qkv__json_at(p->header, i);
        if (!strcmp(tensor, "__metadata__") || number++ % 2 != from) continue;
        size_t begin = offset(entry, 0), bytes = offset(entry, 1) - begin;
        memcpy(data + at, p->data + begin, bytes);
        put_moved(&header, tensor, entry, NULL, at, at + bytes);
        if (map) qkv__json_put_text(map, tensor, name);
        at += bytes;
    }
    qkv__json_close(&header);
    put_raw(name, header.text, header.length, data, at);
    qkv__json_writer_free(&header);
    free(data);
}

static const char first_shard[] = "model-00001-of-00002.safetensors", second_shard[] = "model-00002-of-00002.safetensors";

/* Cuts model.safetensors of the folder into two; gives the index. */
static const qkv__json_value *cut_in_two(void)
{
    parts p = take_apart(in_folder("model.safetensors"));
    qkv__json_writer w = { 0 };
    qkv__json_open_object(&w, NULL);
    qkv__json_open_object(&w, "metadata");
    qkv__json_put_int(&w, "total_size", 7);
    qkv__json_close(&w);
    qkv__json_open_object(&w, "weight_map");
    put_some(first_shard, &p, 0, &w);
    put_some(second_shard, &p, 1, &w);
    qkv__json_close(&w);
    qkv__json_close(&w);
    unlink(in_folder("model.safetensors"));
    free_parts(&p);
    const qkv__json_value *index = json_parse(w.text, w.length);
    qkv__json_writer_free(&w);
    put_json("model.safetensors.index.json", index);
    return index;
}

/* Every F32 number of model.safetensors as BF16, rounded to the nearest. */
static void make_bfloat(void)
{
    parts p = take_apart(in_folder("model.safetensors"));
    qkv__json_writer header = { 0 };
    uint16_t *narrow = malloc(p.data_size / 2);
    for (size_t i = 0; i < p.data_size / 4; i++) {
        uint32_t bits;
        memcpy(&bits, p.data + 4 * i, 4);
        narrow[i] = (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
    qkv__json_open_object(&header, NULL);
    for (size_t i = 0; i < qkv__json_size(p.header); i++) {
        const qkv__json_value *tensor = qkv__json_at(p.header, i);
        if (!strcmp(qkv__json_key(p.header, i), "__metadata__")) continue;
        put_moved(&header, qkv__json_key(p.header, i), tensor, "BF16", offset(tensor, 0) / 2, offset(tensor, 1) / 2);
    }
    qkv__json_close(&header);
    put_raw("model.safetensors", header.text, header.length, (const char *)narrow, p.data_size / 2);
    qkv__json_writer_free(&header);
    free(narrow);
    free_parts(&p);
}

static void copy_folder(const char *from)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf %s && cp -r '%s' %s && chmod -R u+w %s && rm -f %s/golden.safetensors", folder,
             from, folder, folder, folder);
    assert_int_equal(system(command), 0);
}

static qkv_model *load(void)
{
    qkv_model *m = qkv_model_load(folder, NULL);
    if (!m) fail_msg("%s", qkv_error());
    return m;
}

/* ---- several files, several types ---- */

static void same_weights(const qkv_model *a, const qkv_model *b)
{
    qkv_params *p = qkv__model_params(a), *q = qkv__model_params(b);
    assert_int_equal(qkv__params_materialize(p), QKV_OK); /* some may be kept in 16 bits */
    assert_int_equal(qkv__params_materialize(q), QKV_OK);
    assert_int_equal(qkv_params_size(p), qkv_params_size(q));
    for (int i = 0; i < qkv_params_size(p); i++) {
        qkv_tensor *w = qkv_params_at(p, i), *other = qkv_params_at(q, i);
        assert_memory_equal(qkv_tensor_data(w), qkv_tensor_data(other), sizeof(float) * (size_t)qkv_tensor_count(w));
    }
}

static void two_files_are_as_good_as_one(void **state)
{
    (void)state;
    static const char *const names[] = { "marian", "bert_mlm", "gpt2", "qwen2" };
    for (int i = 0; i < 4; i++) {
        char path[512];
        snprintf(path, sizeof path, QKV_GOLDEN "/families/%s", names[i]);
        copy_folder(path);
        json_free(cut_in_two());
        qkv_model *one = qkv_model_load(path, NULL), *two = load();
        assert_non_null(one);
        same_weights(one, two);
        assert_int_equal(qkv_model_get_info(two)->n_files, 2);
        qkv_model_free(one);
        qkv_model_free(two);
    }
}

/* What is wrong is said at once: missing, of another shape, without a place. */
static void all_at_once(void **state)
{
    (void)state;
    copy_folder(QKV_GOLDEN "/families/llama");
    parts p = take_apart(in_folder("model.safetensors"));
    char *norm = json_text(qkv__json_get(p.header, "model.norm.weight"), QKV__JSON_COMPACT);
    json_edit(&p.header, "model.norm.weight", NULL);
    json_edit(&p.header, "model.nrom.weight", norm);
    json_edit(&p.header, "model.layers.1.self_attn.k_proj.weight/shape", "[16, 8]");
    free(norm);
    put_parts("model.safetensors", p.header, p.data, p.data_size);
    free_parts(&p);
    assert_null(qkv_model_load(folder, NULL));
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "\"model.norm.weight\" is missing"));
    assert_non_null(strstr(qkv_error(), "\"model.layers.1.self_attn.k_proj.weight\" is (16, 8), expected (8, 16)"));
    assert_non_null(strstr(qkv_error(), "\"model.nrom.weight\" has no place"));
}

static void no_safetensors(void **state)
{
    (void)state;
    copy_folder(QKV_GOLDEN "/families/llama");
    unlink(in_folder("model.safetensors"));
    assert_null(qkv_model_load(folder, NULL));
    assert_int_equal(qkv_error_status(), QKV_IO);
    put_text("tf_model.h5", "HDF");
    assert_null(qkv_model_load(folder, NULL));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "safe_serialization=True"));
    put_text("pytorch_model.bin", "PK"); /* which is read where there is no model.safetensors */
    assert_null(qkv_model_load(folder, NULL));
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
}

/* ---- stories260K in other forms ---- */

enum { STORY = 61 };

static int64_t next_words(const qkv_model *m, const int32_t *ids, int64_t length, int32_t *to)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *logits = qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = length }, NULL, NULL));
    int64_t size = qkv_tensor_dim(logits, -1);
    for (int64_t i = 0; i < length; i++) {
        to[i] = 0;
        for (int32_t k = 1; k < size; k++)
            if (qkv_tensor_data(logits)[i * size + k] > qkv_tensor_data(logits)[i * size + to[i]]) to[i] = k;
    }
    qkv_tape_free(t);
    return size;
}

static void stories(void **state)
{
    (void)state;
    const qkv__json_value *said = json_read(STORIES "/reference_logits.json");
    if (!said) {
        print_message("skipped: there is no " STORIES "\n");
        skip();
    }
    const qkv__json_value *list = qkv__json_get(said, "greedy_ids");
    int32_t ids[STORY], whole[STORY], cut[STORY], narrow[STORY];
    assert_int_equal(qkv__json_size(list), STORY);
    for (size_t i = 0; i < STORY; i++) ids[i] = (int32_t)qkv__json_int(qkv__json_at(list, i));
    size_t prompt = qkv__json_size(qkv__json_get(said, "ids"));
    copy_folder(STORIES);
    qkv_model *m = load();
    next_words(m, ids, STORY, whole);
    for (size_t i = prompt - 1; i + 1 < STORY; i++) assert_int_equal(whole[i], ids[i + 1]); /* greedy, word for word */
    json_free(cut_in_two());
    qkv_model *shards = load();
    same_weights(m, shards);
    next_words(shards, ids, STORY, cut);
    assert_memory_equal(whole, cut, sizeof whole);
    qkv_model_free(shards);
    copy_folder(STORIES);
    make_bfloat();
    qkv_model *half = load();
    next_words(half, ids, STORY, narrow);
    int same = 0;
    for (int i = 0; i < STORY; i++) same += whole[i] == narrow[i];
    print_message("BF16 chooses the same word %d times of %d\n", same, STORY);
    assert_true(same >= STORY - 4); /* near ties */
    qkv_model_free(half);
    qkv_model_free(m);
    json_free(said);
}

/* ---- malformed ---- */

static int refused;

static void refuses(qkv_status status, const char *format, ...) QKV_PRINTF(2, 3);
static void refuses(qkv_status status, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    qkv_model *m = qkv_model_load(folder, NULL);
    if (m) fail_msg("%s: it was loaded", what);
    if (qkv_error_status() != status)
        fail_msg("%s: status %d, \"%s\"; expected %d", what, (int)qkv_error_status(), qkv_error(), (int)status);
    if (strncmp(qkv_error(), folder, strlen(folder))) fail_msg("%s: the file is not named: \"%s\"", what, qkv_error());
    refused++;
}

typedef enum kind { SIZE, NUMBER, WORD } kind; /* of a key */

static const struct family_keys {
    const char *name;
    struct {
        const char *key;
        kind kind;
        bool optional;
    } keys[12];
} family_keys[] = {
    { "marian",
      { { "vocab_size", SIZE, false },
        { "d_model", SIZE, false },
        { "encoder_layers", SIZE, false },
        { "decoder_layers", SIZE, false },
        { "encoder_attention_heads", SIZE, false },
        { "encoder_ffn_dim", SIZE, false },
        { "activation_function", WORD, false },
        { "dropout", NUMBER, true } } },
    { "bert_mlm",
      { { "vocab_size", SIZE, false },
        { "hidden_size", SIZE, false },
        { "num_hidden_layers", SIZE, false },
        { "num_attention_heads", SIZE, false },
        { "intermediate_size", SIZE, false },
        { "max_position_embeddings", SIZE, false },
        { "type_vocab_size", SIZE, false },
        { "hidden_act", WORD, false },
        { "layer_norm_eps", NUMBER, true } } },
    { "distilbert_classify",
      { { "vocab_size", SIZE, false },
        { "dim", SIZE, false },
        { "n_layers", SIZE, false },
        { "n_heads", SIZE, false },
        { "hidden_dim", SIZE, false },
        { "max_position_embeddings", SIZE, false },
        { "activation", WORD, false } } },
    { "roberta_classify",
      { { "vocab_size", SIZE, false },
        { "hidden_size", SIZE, false },
        { "num_hidden_layers", SIZE, false },
        { "intermediate_size", SIZE, false },
        { "max_position_embeddings", SIZE, false } } },
    { "gpt2",
      { { "vocab_size", SIZE, false },
        { "n_embd", SIZE, false },
        { "n_layer", SIZE, false },
        { "n_head", SIZE, false },
        { "n_positions", SIZE, false },
        { "activation_function", WORD, true },
        { "layer_norm_epsilon", NUMBER, true } } },
    { "llama",
      { { "vocab_size", SIZE, false },
        { "hidden_size", SIZE, false },
        { "num_hidden_layers", SIZE, false },
        { "num_attention_heads", SIZE, false },
        { "intermediate_size", SIZE, false },
        { "rope_theta", NUMBER, true },
        { "rms_norm_eps", NUMBER, true } } },
};

static void bad_value(const char *family, const qkv__json_value *config, const char *key, const char *value, qkv_status status)
{
    const qkv__json_value *changed = json_edited(config, key, value);
    put_json("config.json", changed);
    json_free(changed);
    refuses(status, "%s: %s is %s", family, key, value ? value : "missing");
}

/* Every key of every family with values that it cannot have. */
static void bad_configs(void)
{
    static const char *const sizes[] = { "null",   "\"16\"", "-1", "1.5", "[]", "{}", "true", "0", "9223372036854775807",
                                         "1000003" };
    static const char *const numbers[] = { "\"1\"", "1e300", "-1", "[]", "false" };
    for (size_t f = 0; f < sizeof family_keys / sizeof *family_keys; f++) {
        char path[512];
        snprintf(path, sizeof path, QKV_GOLDEN "/families/%s", family_keys[f].name);
        copy_folder(path);
        const qkv__json_value *config = json_read(in_folder("config.json"));
        json_edit(&config, "decoder_attention_heads", NULL); /* without them, Marian's are the encoder's */
        json_edit(&config, "decoder_ffn_dim", NULL);
        for (int k = 0; family_keys[f].keys[k].key; k++) {
            const char *key = family_keys[f].keys[k].key, *name = family_keys[f].name;
            if (!family_keys[f].keys[k].optional) bad_value(name, config, key, NULL, QKV_FORMAT);
            if (family_keys[f].keys[k].kind == SIZE)
                for (size_t v = 0; v < sizeof sizes / sizeof *sizes; v++) bad_value(name, config, key, sizes[v], QKV_FORMAT);
            else if (family_keys[f].keys[k].kind == NUMBER)
                for (size_t v = 0; v < sizeof numbers / sizeof *numbers; v++)
                    bad_value(name, config, key, numbers[v], QKV_FORMAT);
            else {
                bad_value(name, config, key, "7", QKV_FORMAT);
                bad_value(name, config, key, "\"mish\"", QKV_UNSUPPORTED);
            }
        }
        json_free(config);
    }
}

static void bad_json(void)
{
    enum { DEEP = 200000 };
    size_t size;
    copy_folder(QKV_GOLDEN "/families/llama");
    char *config = read_file(in_folder("config.json"), &size);
    for (size_t n = 0; n + 2 < size; n += 3) { /* what is cut off ends with } */
        put_file("config.json", config, n);
        refuses(QKV_FORMAT, "config.json cut at %zu", n);
    }
    char *deep = malloc(DEEP);
    memset(deep, '[', DEEP);
    put_file("config.json", deep, DEEP);
    refuses(QKV_FORMAT, "a deep config.json");
    for (int i = 0; i + 5 < DEEP; i += 5) memcpy(deep + i, "{\"a\":", 5);
    put_file("config.json", deep, DEEP);
    refuses(QKV_FORMAT, "a deep config.json of objects");
    static const char *const texts[] = { "",
                                         " ",
                                         "7",
                                         "[]",
                                         "null",
                                         "\"llama\"",
                                         "{\"model_type\": 7}",
                                         "{\"model_type\": \"llama\"",
                                         "{\"model_type\": \"llama\", \"model_type\": \"gpt2\"}",
                                         "{\"model_type\": \"\\u0000\"}",
                                         "{\"model_type\": \"\xff\"}" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text("config.json", texts[i]);
        refuses(QKV_FORMAT, "config.json is %s", texts[i]);
    }
    put_text("config.json", "{\"model_type\": \"xlnet\"}");
    refuses(QKV_UNSUPPORTED, "another family");
    put_file("config.json", config, size);
    put_file("generation_config.json", deep, DEEP);
    refuses(QKV_FORMAT, "a deep generation_config.json");
    unlink(in_folder("generation_config.json"));
    free(deep);
    free(config);
}

/* One thing wrong with one tensor of the header. */
static qkv_status break_tensor(const qkv__json_value **header, const char *name, int how)
{
    const qkv__json_value *t = qkv__json_get(*header, name);
    const long long begin = (long long)offset(t, 0), end = (long long)offset(t, 1);
    char offsets[5][64], size[32], *same = json_text(t, QKV__JSON_COMPACT),
                                   *shape = json_text(qkv__json_get(t, "shape"), QKV__JSON_COMPACT);
    char more[64], path[256];
    snprintf(offsets[0], 64, "[%lld,%lld]", begin + 4, end);
    snprintf(offsets[1], 64, "[%lld,%lld]", begin, end - 4);
    snprintf(offsets[2], 64, "[%lld,%lld]", begin, end + (1 << 30));
    snprintf(offsets[3], 64, "[%lld,%lld]", end, begin);
    snprintf(offsets[4], 64, "[%lld,%lld,%lld]", begin, end, end);
    snprintf(size, sizeof size, "[%lld]", (end - begin) / 4 + 1);
    snprintf(more, sizeof more, "[1,%s", shape + 1);
    const struct {
        const char *member, *json; /* member: NULL: the tensor itself */
        qkv_status status;
    } ways[] = {
        { "data_offsets", offsets[0], QKV_FORMAT },
        { "data_offsets", offsets[1], QKV_FORMAT },
        { "data_offsets", offsets[2], QKV_FORMAT },
        { "data_offsets/0", "-1", QKV_FORMAT },
        { "data_offsets", offsets[3], QKV_FORMAT },
        { "data_offsets", offsets[4], QKV_FORMAT },
        { "data_offsets", NULL, QKV_FORMAT },
        { "dtype", "\"F99\"", QKV_FORMAT },
        { "dtype", "\"F16\"", QKV_FORMAT }, /* half as many bytes */
        { "dtype", "\"I32\"", QKV_UNSUPPORTED },
        { "dtype", "32", QKV_FORMAT },
        { "dtype", NULL, QKV_FORMAT },
        { "shape", "[-4,-4]", QKV_FORMAT },
        { "shape", "[4294967296,4294967296,2]", QKV_FORMAT },
        { "shape", "[4.0]", QKV_FORMAT },
        { "shape", "[1,1,1,1,1,1,1]", QKV_LIMIT },
        { "shape", "3", QKV_FORMAT },
        { "shape", size, QKV_FORMAT },
        { "shape", more, QKV_FORMAT }, /* of another shape */
        { NULL, "[]", QKV_FORMAT },
        { "twin", same, QKV_FORMAT }, /* overlaps */
        { NULL, NULL, QKV_FORMAT },   /* a hole, or bytes that belong to none */
    };
    const bool is_over = how == (int)(sizeof ways / sizeof *ways);
    if (!is_over) {
        const char *member = ways[how].member;
        snprintf(path, sizeof path, "%s%s%s", name, member ? "/" : "", member ? member : "");
        json_edit(header, member && !strcmp(member, "twin") ? member : path, ways[how].json);
    }
    free(same);
    free(shape);
    return is_over ? QKV_OK : ways[how].status;
}

static void bad_tensors(void)
{
    copy_folder(QKV_GOLDEN "/families/llama");
    parts p = take_apart(in_folder("model.safetensors"));
    for (size_t i = 0; i < qkv__json_size(p.header); i++) {
        const char *name = qkv__json_key(p.header, i);
        if (!strcmp(name, "__metadata__")) continue;
        for (int how = 0;; how++) {
            const qkv__json_value *changed = json_edited(p.header, NULL, NULL);
            qkv_status status = break_tensor(&changed, name, how);
            if (status) {
                put_parts("model.safetensors", changed, p.data, p.data_size);
                refuses(status, "%s broken in way %d", name, how);
            }
            json_free(changed);
            if (!status) break;
        }
    }
    free_parts(&p);
}

static void bad_files(void)
{
    size_t size;
    copy_folder(QKV_GOLDEN "/families/llama");
    char *file = read_file(in_folder("model.safetensors"), &size);
    for (size_t n = 0; n < size; n += n < 64 ? 1 : 97) {
        put_file("model.safetensors", file, n);
        refuses(QKV_FORMAT, "model.safetensors cut at %zu", n);
    }
    uint64_t length;
    memcpy(&length, file, 8);
    const uint64_t lengths[] = { 0,        1,         length - 1, length + 1,        size,
                                 size - 8, 100000001, UINT64_MAX, (uint64_t)1 << 63, UINT64_MAX - 7 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char *changed = malloc(size);
        memcpy(changed, file, size);
        memcpy(changed, &lengths[i], 8);
        put_file("model.safetensors", changed, size);
        refuses(QKV_FORMAT, "a header of %llu bytes", (unsigned long long)lengths[i]);
        free(changed);
    }
    char *longer = malloc(size + 4);
    memcpy(longer, file, size);
    memset(longer + size, 0, 4);
    put_file("model.safetensors", longer, size + 4);
    refuses(QKV_FORMAT, "4 bytes too many");
    free(longer);
    static const char twice[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    static const char *const headers[] = { "[]", "{", "{}", "{\"__metadata__\": 7}", "{\"__metadata__\": {\"a\": 7}}", twice };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        put_raw("model.safetensors", headers[i], strlen(headers[i]), "1234", i == 2 || i == 3 || i == 4 ? 0 : 4);
        refuses(QKV_FORMAT, "the header %s", headers[i]);
    }
    free(file);
}

static void bad_index(void)
{
    copy_folder(QKV_GOLDEN "/families/llama");
    const qkv__json_value *index = cut_in_two();
    static const char *const names[] = { "\"../model-00001-of-00002.safetensors\"",
                                         "\"/etc/passwd\"",
                                         "\"a/b.safetensors\"",
                                         "\"\"",
                                         "\".safetensors\"",
                                         "\".hidden.safetensors\"",
                                         "\"model.bin\"",
                                         "7",
                                         "null",
                                         "[]",
                                         "\"a\\\\b.safetensors\"",
                                         "\"..\"" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const qkv__json_value *changed = json_edited(index, "weight_map/model.norm.weight", names[i]);
        put_json("model.safetensors.index.json", changed);
        refuses(QKV_FORMAT, "a shard named %s", names[i]);
        json_free(changed);
    }
    const qkv__json_value *map = qkv__json_get(index, "weight_map");
    for (size_t i = 0; i < qkv__json_size(map); i++) { /* each in the other file, in none, unknown */
        const char *name = qkv__json_key(map, i);
        bool is_first = !strcmp(qkv__json_text(qkv__json_at(map, i)), first_shard);
        char path[256], other[64];
        snprintf(path, sizeof path, "weight_map/%s", name);
        snprintf(other, sizeof other, "\"%s\"", is_first ? second_shard : first_shard);
        const qkv__json_value *changed = json_edited(index, path, other);
        put_json("model.safetensors.index.json", changed);
        refuses(QKV_FORMAT, "%s in the wrong file", name);
        json_edit(&changed, path, NULL);
        put_json("model.safetensors.index.json", changed);
        refuses(QKV_FORMAT, "%s not in the index", name);
        json_edit(&changed, path, "\"model-00003-of-00002.safetensors\"");
        put_json("model.safetensors.index.json", changed);
        refuses(QKV_IO, "%s in a file that is not there", name);
        json_free(changed);
    }
    static const char *const texts[] = { "",
                                         "{",
                                         "[]",
                                         "{}",
                                         "{\"weight_map\": {}}",
                                         "{\"weight_map\": []}",
                                         "{\"weight_map\": 7}",
                                         "{\"weight_map\": {\"a\": \"a.safetensors\", \"a\": \"b.safetensors\"}}" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put_text("model.safetensors.index.json", texts[i]);
        refuses(QKV_FORMAT, "the index %s", texts[i]);
    }
    const qkv__json_value *more = json_edited(index, "weight_map/model.more.weight", "\"model-00001-of-00002.safetensors\"");
    put_json("model.safetensors.index.json", more); /* a tensor more than the file has, and one in both */
    refuses(QKV_FORMAT, "a tensor that its file lacks");
    json_free(more);
    put_json("model.safetensors.index.json", index);
    qkv_model_free(load());
    parts p = take_apart(in_folder(first_shard));
    put_some(second_shard, &p, 0, NULL);
    refuses(QKV_FORMAT, "tensors in two files");
    free_parts(&p);
    json_free(index);
}

static void malformed(void **state)
{
    (void)state;
    refused = 0;
    bad_configs();
    bad_json();
    bad_tensors();
    bad_files();
    bad_index();
    print_message("%d malformed folders were refused\n", refused);
    assert_true(refused >= 500);
}

/* Any byte of any file changed: a model or a sentence, and nothing else. Sanitizers watch. */
static void changed_bytes(void **state)
{
    (void)state;
    static const char *const files[] = { "config.json", "model.safetensors", "generation_config.json" };
    uint32_t seed = 3;
    int loaded = 0, wrong = 0;
    copy_folder(QKV_GOLDEN "/families/marian");
    for (int i = 0; i < 900; i++) {
        size_t size;
        const char *name = files[i % 3];
        char *bytes = read_file(in_folder(name), &size);
        seed = seed * 1664525u + 1013904223u;
        size_t at = (seed >> 8) % (size < 6000 ? size : 6000); /* numbers may be anything: the header is what counts */
        char kept = bytes[at];
        bytes[at] = (char)(kept ^ (1 << (seed >> 4) % 8));
        put_file(name, bytes, size);
        qkv_model *m = qkv_model_load(folder, NULL);
        loaded += m != NULL;
        wrong += m == NULL;
        if (!m) assert_true(qkv_error_status() >= QKV_IO && qkv_error_status() <= QKV_LIMIT && *qkv_error());
        qkv_model_free(m);
        bytes[at] = kept;
        put_file(name, bytes, size);
        free(bytes);
    }
    print_message("%d changes were refused, %d gave a model\n", wrong, loaded);
    assert_true(wrong > 400 && loaded > 10);
    qkv_model_free(load());
}

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
    copy_folder(QKV_GOLDEN "/families/llama");
    json_free(cut_in_two());
    assert_true(each_allocation_fails(load_once) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_files_are_as_good_as_one, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(all_at_once, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(no_safetensors, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(stories, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(malformed, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(changed_bytes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
