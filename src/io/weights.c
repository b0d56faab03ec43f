/* weights.c: the tensors of a model's folder, in one file or in several. */
#include "weights.h"

#include "../base/json.h"
#include "../base/size.h"
#include "../base/error_list.h"
#include "pytorch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The ways that a folder may have its weights; the first that is there is read. */
static const struct qkv__weights_form {
    const char *one, *index, *ending;
    qkv_status (*open)(const char *path, bool is_copy, qkv__safetensors *out);
} forms[] = { { "model.safetensors", "model.safetensors.index.json", ".safetensors", qkv__safetensors_open },
              { "pytorch_model.bin", "pytorch_model.bin.index.json", ".bin", qkv__pytorch_open } };
enum { FORMS = sizeof forms / sizeof *forms };
#define INDEX_MAX ((size_t)64 << 20)
enum { PATH_MAX_BYTES = 4096 };

static qkv_status weights_in_folder(const char *folder, const char *name, char out[PATH_MAX_BYTES])
{
    int n = snprintf(out, PATH_MAX_BYTES, "%s/%s", folder, name);
    return n < PATH_MAX_BYTES ? QKV_OK : qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", folder);
}

/* ---- the files ---- */

static qkv_status make_files(qkv__weights *w, int n)
{
    w->files = qkv__alloc_zero(sizeof *w->files * (size_t)n);
    w->paths = qkv__alloc_zero(sizeof *w->paths * (size_t)n);
    w->n_files = n;
    return w->files && w->paths ? QKV_OK : QKV_MEMORY;
}

static qkv_status open_file(qkv__weights *w, int i, const char *folder, const char *name)
{
    char path[PATH_MAX_BYTES];
    qkv_status status = weights_in_folder(folder, name, path);
    if (status) return status;
    if (!(w->paths[i] = qkv__copy_text(path))) return QKV_MEMORY;
    status = w->form->open(w->paths[i], w->is_copy, &w->files[i]);
    if (!status) w->bytes += w->files[i].file.size;
    return status;
}

static int by_name(const void *a, const void *b)
{
    const qkv__stored *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* All tensors in one list. */
static qkv_status merge(qkv__weights *w)
{
    size_t n = 0;
    for (int i = 0; i < w->n_files; i++) n += (size_t)w->files[i].n;
    if (n > INT32_MAX) return qkv__fail(QKV_LIMIT, "%s: %zu tensors are too many", w->path, n);
    w->tensors_bytes = sizeof *w->tensors * n;
    if (!(w->tensors = qkv__alloc(w->tensors_bytes))) return QKV_MEMORY;
    for (int i = 0; i < w->n_files; i++) {
        const qkv__safetensors *file = &w->files[i];
        if (file->n) memcpy(w->tensors + w->n, file->tensors, sizeof *w->tensors * (size_t)file->n);
        w->n += file->n;
    }
    qsort(w->tensors, (size_t)w->n, sizeof *w->tensors, by_name);
    return QKV_OK;
}

/* ---- the index ---- */

/* A name in this folder, and nowhere else. */
static bool is_shard_name(const char *name, const char *end)
{
    size_t length = name ? strlen(name) : 0, ending = strlen(end);
    return length > ending && !strcmp(name + length - ending, end) && *name != '.' && !strpbrk(name, "/\\");
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The names of the files, each once; *names has room for as many as there are tensors. */
static qkv_status list_shards(const qkv__weights *w, const qkv__json_value *map, const char **names, int *n)
{
    size_t all = qkv__json_size(map);
    for (size_t i = 0; i < all; i++) {
        names[i] = qkv__json_text(qkv__json_at(map, i));
        if (!is_shard_name(names[i], w->form->ending))
            return qkv__fail(QKV_FORMAT, "%s: tensor \"%.200s\": expected the name of a %s file in the same folder", w->path,
                             qkv__json_key(map, i), w->form->ending);
    }
    qsort(names, all, sizeof *names, by_text);
    *n = 0;
    for (size_t i = 0; i < all; i++)
        if (!i || strcmp(names[i], names[i - 1])) names[(*n)++] = names[i];
    return QKV_OK;
}

static const char *shown_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Every tensor of the index is in its file, and every tensor of a file is in the index. */
static qkv_status check_index(const qkv__weights *w, const qkv__json_value *map)
{
    qkv__error_list wrong = { 0 };
    for (int i = 1; i < w->n; i++)
        if (!strcmp(w->tensors[i].name, w->tensors[i - 1].name))
            qkv__error_list_add(&wrong, "tensor \"%.200s\" is in two files", w->tensors[i].name);
    size_t found = 0;
    for (int i = 0; i < w->n_files; i++) {
        const char *shard = shown_name(w->paths[i]);
        for (const qkv__stored *t = w->files[i].tensors; t < w->files[i].tensors + w->files[i].n; t++) {
            const char *said = qkv__json_get_text(map, t->name);
            if (said && !strcmp(said, shard)) found++;
            else qkv__error_list_add(&wrong, "tensor \"%.200s\" is in %.100s, but the index does not say so", t->name, shard);
        }
    }
    for (size_t i = 0; found < qkv__json_size(map) && i < qkv__json_size(map); i++)
        if (!qkv__weights_find(w, qkv__json_key(map, i)))
            qkv__error_list_add(&wrong, "tensor \"%.200s\" is not in %.100s", qkv__json_key(map, i),
                                qkv__json_text(qkv__json_at(map, i)));
    return qkv__error_list_end(&wrong, w->path, QKV_FORMAT);
}

static qkv_status open_shards(qkv__weights *w, const char *folder, const qkv__json_value *map)
{
    size_t bytes = sizeof(char *) * qkv__json_size(map);
    int n = 0;
    if (!qkv__json_is_object(map) || !bytes)
        return qkv__fail(QKV_FORMAT, "%s: key \"weight_map\": expected an object with the file of each tensor", w->path);
    const char **names = qkv__alloc(bytes);
    qkv_status status = names ? list_shards(w, map, names, &n) : QKV_MEMORY;
    if (!status) status = make_files(w, n);
    for (int i = 0; i < n && !status; i++) status = open_file(w, i, folder, names[i]);
    if (!status) status = merge(w);
    if (!status) status = check_index(w, map);
    qkv__release(names, bytes);
    return status;
}

static qkv_status read_index(qkv__weights *w, const char *folder)
{
    qkv__json_doc index;
    qkv_status status = qkv__json_load(w->path, INDEX_MAX, &index);
    if (!status) status = open_shards(w, folder, qkv__json_get(index.top, "weight_map"));
    qkv__json_free(&index);
    return status;
}

/* ---- the folder ---- */

static qkv_status is_there(const char *folder, const char *name, bool *there)
{
    char path[PATH_MAX_BYTES];
    qkv_status status = weights_in_folder(folder, name, path);
    *there = !status && qkv__file_exists(path);
    return status;
}

/* Files of other programs, by name or by ending, the most telling first; and what to do. */
static const struct foreign {
    const char *name, *advice;
} foreign[] = {
    { "model_index.json", "a diffusers pipeline makes pictures, and only models of text are run" },
    { "adapter_config.json", "a PEFT adapter changes another model: merge it into its base model first, in Python with "
                             "merge_and_unload() and save_pretrained(), and give the merged folder" },
    { ".gguf", "GGUF is not read: take the model that the file was made of, a folder with config.json and model.safetensors" },
    { "tf_model.h5",
      "only safetensors and PyTorch's files are read: fetch the model's model.safetensors, or in Python load the "
      "model with transformers and call save_pretrained(folder, safe_serialization=True)" },
    { "flax_model.msgpack", "only safetensors and PyTorch's files are read: fetch the model's model.safetensors, or in Python "
                            "load the model with transformers and call save_pretrained(folder, safe_serialization=True)" },
    { "saved_model.pb", "TensorFlow's files are not read: fetch the model's model.safetensors" },
    { ".ckpt.index", "TensorFlow's files are not read: fetch the model's model.safetensors" },
    { "consolidated.00.pth", "this form of Meta's has no config.json: fetch the same model with model.safetensors" },
    { ".onnx", "ONNX is not read: fetch the model's model.safetensors" },
    { "onnx", "ONNX is not read: fetch the model's model.safetensors" }
};

static bool is_foreign_file(const struct foreign *f, const char *name)
{
    size_t n = strlen(name), length = strlen(f->name);
    return !strcmp(name, f->name) || (*f->name == '.' && n > length && !strcmp(name + n - length, f->name));
}

qkv_status qkv__weights_refuse_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
        if (is_foreign_file(&foreign[k], slash ? slash + 1 : path))
            return qkv__fail(QKV_UNSUPPORTED, "%s: %s", path, foreign[k].advice);
    return QKV_OK;
}

qkv_status qkv__weights_refuse_folder(const char *folder)
{
    qkv__names names;
    qkv_status status = qkv__folder_list(folder, &names);
    if (status == QKV_IO) status = QKV_OK; /* opening a file of it says why */
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign && !status; k++)
        for (size_t i = 0; i < names.n && !status; i++)
            if (is_foreign_file(&foreign[k], names.at[i]))
                status = qkv__fail(QKV_UNSUPPORTED, "%s/%s: %s", folder, names.at[i], foreign[k].advice);
    qkv__names_free(&names);
    return status;
}

/* The first form whose file or index is there; the first of all where none is. */
static qkv_status find_form(const char *folder, const struct qkv__weights_form **form, bool *one, bool *several)
{
    qkv_status status = QKV_OK;
    *one = *several = false;
    for (int i = 0; i < FORMS && !*one && !*several && !status; i++) {
        *form = &forms[i];
        status = is_there(folder, forms[i].one, one);
        if (!status && !*one) status = is_there(folder, forms[i].index, several);
    }
    if (!*one && !*several) *form = forms;
    return status;
}

const char *qkv__weights_name(const char *folder)
{
    const struct qkv__weights_form *form;
    bool one, several;
    find_form(folder, &form, &one, &several);
    return several ? form->index : form->one;
}

static qkv_status open_one(qkv__weights *w, const char *folder)
{
    qkv_status status = make_files(w, 1);
    if (!status) status = open_file(w, 0, folder, w->form->one);
    return status ? status : merge(w);
}

qkv_status qkv__weights_open(const char *folder, bool is_copy, qkv__weights *out)
{
    char path[PATH_MAX_BYTES];
    bool one, several;
    *out = (qkv__weights){ .is_copy = is_copy };
    qkv_status status = find_form(folder, &out->form, &one, &several);
    if (!status && !one && !several) status = qkv__weights_refuse_folder(folder);
    if (!status) status = weights_in_folder(folder, several ? out->form->index : out->form->one, path);
    if (!status && !(out->path = qkv__copy_text(path))) status = QKV_MEMORY;
    if (!status) status = several ? read_index(out, folder) : open_one(out, folder);
    if (status) qkv__weights_close(out);
    return status;
}

void qkv__weights_close(qkv__weights *w)
{
    for (int i = 0; i < w->n_files; i++) {
        if (w->files) qkv__safetensors_free(&w->files[i]);
        if (w->paths) qkv__release_text(w->paths[i]);
    }
    qkv__release(w->files, sizeof *w->files * (size_t)w->n_files);
    qkv__release(w->paths, sizeof *w->paths * (size_t)w->n_files);
    qkv__release(w->tensors, w->tensors_bytes);
    qkv__release_text(w->path);
    *w = (qkv__weights){ 0 };
}

const qkv__stored *qkv__weights_find(const qkv__weights *w, const char *name)
{
    const qkv__stored wanted = { .name = name };
    return w->n ? bsearch(&wanted, w->tensors, (size_t)w->n, sizeof wanted, by_name) : NULL;
}
