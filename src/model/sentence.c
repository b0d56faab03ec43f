/* sentence.c: the files of sentence-transformers, read and written. */
#include "sentence.h"

#include "../base/file.h"
#include "../base/size.h"
#include "../base/file.h"
#include "../base/json.h"
#include "../io/weights.h"
#include "config.h"
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

static const char *const pooling_keys[QKV__POOL_KINDS] = {
    "pooling_mode_cls_token",           "pooling_mode_max_tokens",
    "pooling_mode_mean_tokens",         "pooling_mode_mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"
};

static double identity(double x) { return x; }
static double relu(double x) { return x > 0 ? x : 0; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) { return x * 0.5 * (1 + erf(x * 0.70710678118654752)); }
static const struct activation {
    const char *place, *name;
    double (*f)(double x);
} activations[] = { { "linear", "Identity", identity },
                    { "activation", "Tanh", tanh },
                    { "activation", "ReLU", relu },
                    { "activation", "GELU", gelu },
                    { "activation", "Sigmoid", sigmoid } };

bool qkv__sentence_is_more(const qkv__sentence *s)
{
    const int known = QKV__POOL_FIRST | QKV__POOL_MEAN | QKV__POOL_LAST;
    return s->n_dense || s->poolings & ~known || s->poolings & (s->poolings - 1);
}

void qkv__sentence_free(qkv__sentence *s)
{
    for (int i = 0; i < s->n_dense; i++)
        qkv__release(s->dense[i].weight, sizeof(float) * (size_t)(s->dense[i].out * (s->dense[i].in + 1)));
    *s = (qkv__sentence){ 0 };
}

/* Room for its numbers, of which there are fewer than a file has bytes. */
static bool add_dense(qkv__sentence *s, qkv__dense d)
{
    d.weight = qkv__alloc(sizeof(float) * (size_t)(d.out * (d.in + 1)));
    if (d.weight) s->dense[s->n_dense++] = d;
    return d.weight;
}

qkv_status qkv__sentence_copy(const qkv__sentence *from, qkv__sentence *to)
{
    *to = (qkv__sentence){ .poolings = from->poolings, .width = from->width };
    for (int i = 0; i < from->n_dense; i++) {
        const qkv__dense *d = &from->dense[i];
        if (!add_dense(to, *d)) return QKV_MEMORY;
        memcpy(to->dense[i].weight, d->weight, sizeof(float) * (size_t)(d->out * (d->in + d->has_bias)));
    }
    return QKV_OK;
}

/* ---- reading ---- */

static qkv_status in_module(const char *folder, const char *module, const char *name, char out[PATH_BYTES])
{
    if (!module || !*module || *module == '.' || strpbrk(module, "/\\"))
        return qkv__fail(QKV_FORMAT, "%s/modules.json: key \"path\": expected a folder in the same folder", folder);
    int n = snprintf(out, PATH_BYTES, "%s/%s%s%s", folder, module, *name ? "/" : "", name);
    return n < PATH_BYTES ? QKV_OK : qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

static qkv_status read_module_config(const char *folder, const char *module, char path[PATH_BYTES], qkv__json_doc *out)
{
    *out = (qkv__json_doc){ 0 };
    qkv_status status = in_module(folder, module, "config.json", path);
    return status ? status : qkv__json_load(path, QKV__CONFIG_MAX, out);
}

/* One of those that qkv_pooling has is told of too. */
static qkv_status choose_pooling(const char *path, const qkv__json_value *config, int64_t dim, qkv__model_info *info,
                                 qkv__sentence *s)
{
    int n = 0;
    s->poolings = 0;
    for (int i = 0; i < QKV__POOL_KINDS; i++)
        if (qkv__json_is_true(qkv__json_get(config, pooling_keys[i]))) s->poolings |= 1 << i, n++;
    if (!n) return qkv__fail(QKV_FORMAT, "%s: no key says how tokens are pooled", path);
    const qkv__json_value *width = qkv__json_get(config, "word_embedding_dimension");
    if (width && !qkv__json_is_null(width) && qkv__json_int(width) != dim)
        return qkv__fail(QKV_FORMAT, "%s: key \"word_embedding_dimension\": the model's is %lld", path, (long long)dim);
    s->width = n * dim;
    if (s->poolings == QKV__POOL_FIRST) info->pooling = QKV_POOLING_FIRST;
    if (s->poolings == QKV__POOL_LAST) info->pooling = QKV_POOLING_LAST;
    return QKV_OK;
}

static qkv_status read_pooling(const char *folder, const char *module, int64_t dim, qkv__model_info *info, qkv__sentence *s)
{
    char path[PATH_BYTES];
    qkv__json_doc config;
    qkv_status status = read_module_config(folder, module, path, &config);
    if (!status) status = choose_pooling(path, config.top, dim, info, s);
    qkv__json_free(&config);
    return status;
}

static qkv_status read_dense_config(const char *path, const qkv__json_value *config, qkv__dense *d)
{
    const char *name = qkv__json_get_text(config, "activation_function");
    const char *dot = name ? strrchr(name, '.') : NULL, *kind = dot ? dot + 1 : name ? name : "Tanh";
    const qkv__json_value *bias = qkv__json_get(config, "bias");
    *d = (qkv__dense){ .in = qkv__json_int(qkv__json_get(config, "in_features")),
                       .out = qkv__json_int(qkv__json_get(config, "out_features")),
                       .has_bias = !bias || qkv__json_is_true(bias) };
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (!strcmp(kind, activations[i].name)) d->activation = activations[i].name, d->f = activations[i].f;
    if (d->in < 1 || d->out < 1 || d->in > INT32_MAX || d->out > INT32_MAX)
        return qkv__fail(QKV_FORMAT, "%s: keys \"in_features\" and \"out_features\": expected whole numbers from 1", path);
    const char *input = qkv__json_get_text(config, "module_input_name");
    if (input && strcmp(input, "sentence_embedding"))
        return qkv__fail(QKV_UNSUPPORTED, "%s: key \"module_input_name\": \"%.80s\": only sentence_embedding is supported",
                         path, input);
    if (d->f) return QKV_OK;
    return qkv__fail(QKV_UNSUPPORTED,
                     "%s: key \"activation_function\": \"%.80s\": only Identity, Tanh, ReLU, GELU and Sigmoid are supported",
                     path, kind);
}

static qkv_status read_dense_tensor(const qkv__weights *w, const char *name, int64_t rows, int64_t columns, float *to)
{
    const qkv__stored *t = qkv__weights_find(w, name);
    bool fits = t && t->ndim == 1 + (columns > 0) && t->shape[0] == rows && (!columns || t->shape[1] == columns);
    if (!fits || !qkv__safetensors_decodes(t))
        return qkv__fail(QKV_FORMAT, "%s: tensor \"%s\" is missing, or not %lld x %lld floats", w->path, name, (long long)rows,
                         (long long)qkv__max(columns, 1));
    if (to) qkv__safetensors_decode(t, to);
    return QKV_OK;
}

/* The shapes are those of the file before memory is asked for. */
static qkv_status read_dense_weights(const char *folder, const char *module, qkv__dense d, qkv__sentence *s)
{
    char path[PATH_BYTES];
    qkv__weights w = { 0 };
    qkv_status status = in_module(folder, module, "", path);
    if (!status) status = qkv__weights_open(path, true, &w);
    if (!status) status = read_dense_tensor(&w, "linear.weight", d.out, d.in, NULL);
    if (!status && !add_dense(s, d)) status = QKV_MEMORY;
    float *to = status ? NULL : s->dense[s->n_dense - 1].weight;
    if (!status) status = read_dense_tensor(&w, "linear.weight", d.out, d.in, to);
    if (!status && !d.has_bias && qkv__weights_find(&w, "linear.bias"))
        status = qkv__fail(QKV_FORMAT, "%s: tensor \"linear.bias\" has no place: key \"bias\" of config.json is false", w.path);
    if (!status && d.has_bias) status = read_dense_tensor(&w, "linear.bias", d.out, 0, to + d.out * d.in);
    qkv__weights_close(&w);
    return status;
}

static qkv_status read_dense(const char *folder, const char *module, const qkv__model_info *info, qkv__sentence *s)
{
    char path[PATH_BYTES];
    qkv__json_doc config;
    qkv__dense d;
    qkv_status status = read_module_config(folder, module, path, &config);
    if (!status) status = read_dense_config(path, config.top, &d);
    qkv__json_free(&config);
    if (status) return status;
    if (info->normalise || s->n_dense == QKV__DENSE_MAX)
        return qkv__fail(QKV_UNSUPPORTED, "%s/modules.json: at most %d Dense modules are supported, before Normalize", folder,
                         QKV__DENSE_MAX);
    if (d.in != s->width)
        return qkv__fail(QKV_FORMAT, "%s: key \"in_features\": %lld, but the module before gives %lld numbers", path,
                         (long long)d.in, (long long)s->width);
    s->width = d.out;
    return read_dense_weights(folder, module, d, s);
}

static qkv_status read_module(const char *folder, const qkv__json_value *module, int64_t dim, qkv__model_info *info,
                              qkv__sentence *s)
{
    const char *type = qkv__json_get_text(module, "type"), *dot = type ? strrchr(type, '.') : NULL;
    const char *kind = dot ? dot + 1 : type ? type : "", *path = qkv__json_get_text(module, "path");
    if (!strcmp(kind, "Transformer") || !strcmp(kind, "Dropout")) return QKV_OK;
    if (!strcmp(kind, "Normalize")) return info->normalise = 1, QKV_OK;
    if (!strcmp(kind, "Pooling") && !s->n_dense) return read_pooling(folder, path, dim, info, s);
    if (!strcmp(kind, "Dense")) return read_dense(folder, path, info, s);
    return qkv__fail(type ? QKV_UNSUPPORTED : QKV_FORMAT,
                     "%s/modules.json: module type \"%.80s\": only Transformer, Pooling, Dense and Normalize are supported, in "
                     "this order",
                     folder, kind);
}

/* A JSON file of the folder that may be missing: then *out is empty. */
static qkv_status read_beside(const char *folder, const char *name, char path[PATH_BYTES], qkv__json_doc *out)
{
    *out = (qkv__json_doc){ 0 };
    if (snprintf(path, PATH_BYTES, "%s/%s", folder, name) >= PATH_BYTES)
        return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
    return qkv__file_exists(path) ? qkv__json_load(path, QKV__CONFIG_MAX, out) : QKV_OK;
}

static qkv_status read_embed_length(const char *folder, qkv__model_info *info)
{
    char path[PATH_BYTES];
    qkv__json_doc config;
    qkv_status status = read_beside(folder, "sentence_bert_config.json", path, &config);
    const qkv__json_value *length = qkv__json_get(config.top, "max_seq_length");
    int64_t n = qkv__json_int(length);
    if (!status && length && !qkv__json_is_null(length) && (!qkv__json_is_int(length) || n < 0 || n > INT32_MAX))
        status = qkv__fail(QKV_FORMAT, "%s: key \"max_seq_length\": expected a whole number, at least 0", path);
    if (!status) info->embed_length = n;
    qkv__json_free(&config);
    return status;
}

qkv_status qkv__sentence_read(const char *folder, int64_t dim, qkv__model_info *info, qkv__sentence *out)
{
    char path[PATH_BYTES];
    qkv__json_doc list;
    *out = (qkv__sentence){ 0 };
    qkv_status status = read_beside(folder, "modules.json", path, &list);
    if (status || !list.top) return status;
    if (!qkv__json_is_array(list.top)) status = qkv__fail(QKV_FORMAT, "%s: expected a list of modules", path);
    for (size_t i = 0; i < qkv__json_size(list.top) && !status; i++)
        status = read_module(folder, qkv__json_at(list.top, i), dim, info, out);
    qkv__json_free(&list);
    return status ? status : read_embed_length(folder, info);
}

/* ---- writing ---- */

static qkv_status put_file(const char *folder, const char *name, qkv__json_writer *w)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path) return qkv__json_save(w, path);
    qkv__json_writer_free(w);
    return qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

/* Adds module i to the list. Its folder is named after its number and kind. */
static void put_module(qkv__json_writer *list, int i, const char *type, char path[64])
{
    char name[16], whole[64];
    snprintf(name, sizeof name, "%d", i);
    snprintf(whole, sizeof whole, "sentence_transformers.models.%s", type);
    *path = '\0'; /* the Transformer's files lie in the folder itself */
    if (i) snprintf(path, 64, "%d_%s", i, type);
    qkv__json_open_object(list, NULL);
    qkv__json_put_int(list, "idx", i);
    qkv__json_put_text(list, "name", name);
    qkv__json_put_text(list, "path", path);
    qkv__json_put_text(list, "type", whole);
    qkv__json_close(list);
}

static qkv_status write_pooling(const char *folder, const char *module, int64_t dim, const qkv__model_info *info,
                                const qkv__sentence *s)
{
    static const int of[] = { [QKV_POOLING_MEAN] = QKV__POOL_MEAN,
                              [QKV_POOLING_FIRST] = QKV__POOL_FIRST,
                              [QKV_POOLING_LAST] = QKV__POOL_LAST,
                              [QKV_POOLING_ATTENTION] = QKV__POOL_MEAN };
    char path[PATH_BYTES];
    int poolings = s->poolings ? s->poolings : of[info->pooling];
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv_status status = in_module(folder, module, "", path);
    if (!status) status = qkv__folder_make(path);
    if (status) return status;
    qkv__json_open_object(&w, NULL);
    qkv__json_put_int(&w, "word_embedding_dimension", dim);
    for (int i = 0; i < QKV__POOL_KINDS; i++) qkv__json_put_bool(&w, pooling_keys[i], poolings >> i & 1);
    qkv__json_close(&w);
    return put_file(path, "config.json", &w);
}

static qkv_status write_dense(const char *folder, const char *module, const qkv__dense *d)
{
    char path[PATH_BYTES], file[PATH_BYTES], name[64] = "";
    const int64_t shape[] = { d->out, d->in };
    qkv__to_store tensors[] = {
        { .name = "linear.weight", .ndim = 2, .shape = shape, .count = d->out * d->in, .data = d->weight },
        { .name = "linear.bias", .ndim = 1, .shape = shape, .count = d->out, .data = d->weight + d->out * d->in }
    };
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (activations[i].f == d->f)
            snprintf(name, sizeof name, "torch.nn.modules.%s.%s", activations[i].place, activations[i].name);
    qkv_status status = in_module(folder, module, "", path);
    if (!status) status = in_module(folder, module, "model.safetensors", file);
    if (!status) status = qkv__folder_make(path);
    if (status) return status;
    qkv__json_open_object(&w, NULL);
    qkv__json_put_int(&w, "in_features", d->in);
    qkv__json_put_int(&w, "out_features", d->out);
    qkv__json_put_bool(&w, "bias", d->has_bias);
    qkv__json_put_text(&w, "activation_function", name);
    qkv__json_close(&w);
    status = put_file(path, "config.json", &w);
    return status ? status : qkv__safetensors_write(file, 1 + d->has_bias, tensors, 1, &(qkv__note){ "format", "pt" });
}

static qkv_status write_length(const char *folder, const qkv__model_info *info)
{
    qkv__json_writer w = { .style = QKV__JSON_LINES };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_int(&w, "max_seq_length", info->embed_length);
    qkv__json_close(&w);
    return put_file(folder, "sentence_bert_config.json", &w);
}

qkv_status qkv__sentence_write(const char *folder, int64_t dim, const qkv__model_info *info, const qkv__sentence *s)
{
    char path[64];
    int n = 0;
    bool is_mean = info->pooling == QKV_POOLING_MEAN || info->pooling == QKV_POOLING_ATTENTION;
    if (!info->normalise && !info->embed_length && is_mean && !qkv__sentence_is_more(s)) return QKV_OK;
    qkv__json_writer list = { .style = QKV__JSON_LINES };
    qkv__json_open_array(&list, NULL);
    put_module(&list, n++, "Transformer", path);
    put_module(&list, n++, "Pooling", path);
    qkv_status status = write_pooling(folder, path, dim, info, s);
    for (int i = 0; i < s->n_dense && !status; i++) {
        put_module(&list, n++, "Dense", path);
        status = write_dense(folder, path, &s->dense[i]);
    }
    if (info->normalise) put_module(&list, n++, "Normalize", path);
    qkv__json_close(&list);
    if (!status && info->embed_length) status = write_length(folder, info);
    if (!status) return put_file(folder, "modules.json", &list);
    qkv__json_writer_free(&list);
    return status;
}
