/* model.c: a Transformer, its weights, and the folder they live in. */
#include <qkv/model.h>

#include "../base/file.h"
#include "config.h"

#include <stdio.h>
#include <string.h>

struct qkv_model {
    qkv_params *params;
    qkv_transformer *transformer;    /* the params own it */
    qkv_tokenizer *tokenizer;        /* NULL: the model knows ids only */
    qkv_tokenizer *target_tokenizer; /* NULL: the same one */
    qkv__labels labels;
};

qkv_model *qkv_model_new(const qkv_transformer_opts *opts, uint64_t seed)
{
    qkv_model *m = qkv__alloc_zero(sizeof *m);
    if (!m) return NULL;
    m->params = qkv_params_new(seed);
    m->transformer = m->params ? qkv_transformer_new(m->params, opts) : NULL;
    if (m->transformer) return m;
    qkv_model_free(m);
    return NULL;
}

void qkv_model_free(qkv_model *m)
{
    if (!m) return;
    qkv_params_free(m->params);
    qkv_tokenizer_free(m->tokenizer);
    qkv_tokenizer_free(m->target_tokenizer);
    qkv__labels_free(&m->labels);
    qkv__release(m, sizeof *m);
}

qkv_params *qkv_model_params(const qkv_model *m) { return m ? m->params : NULL; }

const qkv_transformer *qkv_model_transformer(const qkv_model *m) { return m ? m->transformer : NULL; }

/* ---- tokenizers ---- */

static qkv_status check_size(const char *which, const qkv_tokenizer *t, int64_t vocabulary)
{
    if (qkv_tokenizer_size(t) <= vocabulary) return QKV_OK;
    return qkv__fail(QKV_USAGE, "the %s has %d tokens, but the model's vocabulary %lld", which, qkv_tokenizer_size(t),
                     (long long)vocabulary);
}

qkv_status qkv_model_set_tokenizers(qkv_model *m, qkv_tokenizer *source, qkv_tokenizer *target)
{
    const qkv_transformer_opts *o = m ? qkv_transformer_options(m->transformer) : NULL;
    if (!o || !source) return qkv__fail(QKV_USAGE, "a model and a tokenizer are needed");
    if (!target != !o->target_vocabulary)
        return qkv__fail(QKV_USAGE, "a model with %s needs %s", target ? "one vocabulary" : "two vocabularies",
                         target ? "one tokenizer" : "a tokenizer for each");
    qkv_status status = check_size("tokenizer", source, o->vocabulary);
    if (!status && target) status = check_size("target's tokenizer", target, o->target_vocabulary);
    if (status) return status;
    qkv_tokenizer_free(m->tokenizer);
    qkv_tokenizer_free(m->target_tokenizer);
    m->tokenizer = source;
    m->target_tokenizer = target;
    return QKV_OK;
}

const qkv_tokenizer *qkv_model_source_tokenizer(const qkv_model *m) { return m ? m->tokenizer : NULL; }

const qkv_tokenizer *qkv_model_target_tokenizer(const qkv_model *m)
{
    return m && m->target_tokenizer ? m->target_tokenizer : qkv_model_source_tokenizer(m);
}

/* ---- labels ---- */

qkv_status qkv_model_set_labels(qkv_model *m, const char *const *names, int64_t n)
{
    const qkv_transformer_opts *o = m ? qkv_transformer_options(m->transformer) : NULL;
    if (!o || n < 0 || (n && !names)) return qkv__fail(QKV_USAGE, "a model and names are needed");
    if (n != o->classes)
        return qkv__fail(QKV_USAGE, "%lld labels for a model of %lld classes", (long long)n, (long long)o->classes);
    for (int64_t i = 0; i < n; i++)
        if (!names[i] || !*names[i] || qkv_utf8_check(names[i], strlen(names[i])) < strlen(names[i]))
            return qkv__fail(QKV_USAGE, "label %lld is empty or not UTF-8", (long long)i);
    return qkv__labels_copy(&m->labels, names, n);
}

const char *qkv_model_label(const qkv_model *m, int64_t i)
{
    return m && i >= 0 && i < m->labels.n ? m->labels.names[i] : NULL;
}

/* ---- the folder ---- */

typedef struct folder {
    char config[4096], weights[4096], tokenizer[4096], target_tokenizer[4096];
} folder;

static qkv_status in_folder(const char *path, const char *name, char out[4096])
{
    int n = snprintf(out, 4096, "%s/%s", path, name);
    return n < 4096 ? QKV_OK : qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than 4096 bytes", path);
}

static qkv_status name_files(const char *path, folder *out)
{
    if (!path || !*path) return qkv__fail(QKV_USAGE, "model: a folder is needed");
    qkv_status status = in_folder(path, "config.json", out->config);
    if (!status) status = in_folder(path, "model.safetensors", out->weights);
    if (!status) status = in_folder(path, "tokenizer.json", out->tokenizer);
    return status ? status : in_folder(path, "target_tokenizer.json", out->target_tokenizer);
}

/* What does not fit a file is the file's fault here. */
static qkv_status blame(const char *file)
{
    char reason[512];
    if (qkv_error_status() != QKV_USAGE) return qkv_error_status();
    snprintf(reason, sizeof reason, "%s", qkv_error());
    return qkv__fail(QKV_FORMAT, "%s: %s", file, reason);
}

static qkv_status load_tokenizers(qkv_model *m, const folder *f)
{
    bool two = qkv_transformer_options(m->transformer)->target_vocabulary != 0;
    if (!qkv__file_exists(f->tokenizer) && !(two && qkv__file_exists(f->target_tokenizer))) return QKV_OK;
    qkv_tokenizer *source = qkv_tokenizer_load(f->tokenizer);
    qkv_tokenizer *target = source && two ? qkv_tokenizer_load(f->target_tokenizer) : NULL;
    bool loaded = source && (target || !two);
    if (loaded && !qkv_model_set_tokenizers(m, source, target)) return QKV_OK;
    if (loaded) blame(f->tokenizer);
    qkv_tokenizer_free(source);
    qkv_tokenizer_free(target);
    return qkv_error_status();
}

qkv_model *qkv_model_load(const char *path)
{
    folder f;
    qkv_transformer_opts opts;
    qkv__labels labels = { 0 };
    if (name_files(path, &f) || qkv__config_read(f.config, &opts, &labels)) return NULL;
    qkv_model *m = qkv_model_new(&opts, 0);
    if (!m) return qkv__labels_free(&labels), blame(f.config), NULL;
    m->labels = labels;
    if (!qkv_params_load(m->params, f.weights) && !load_tokenizers(m, &f)) return m;
    qkv_model_free(m);
    return NULL;
}

qkv_status qkv_model_save(const qkv_model *m, const char *path)
{
    folder f;
    if (!m) return qkv__fail(QKV_USAGE, "model: there is none to save");
    qkv_status status = name_files(path, &f);
    if (!status) status = qkv__folder_make(path);
    if (!status && m->tokenizer) status = qkv_tokenizer_save(m->tokenizer, f.tokenizer);
    if (!status && m->target_tokenizer) status = qkv_tokenizer_save(m->target_tokenizer, f.target_tokenizer);
    if (!status) status = qkv_params_save(m->params, f.weights);
    return status ? status : qkv__config_write(f.config, qkv_transformer_options(m->transformer), &m->labels);
}
