/* model.c: a Transformer, its weights, and the folder they live in. */
#include <qkv/model.h>

#include "../base/file.h"
#include "config.h"

#include <stdio.h>

struct qkv_model {
    qkv_params *params;
    qkv_transformer *transformer; /* the params own it */
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
    qkv__release(m, sizeof *m);
}

qkv_params *qkv_model_params(const qkv_model *m) { return m ? m->params : NULL; }

const qkv_transformer *qkv_model_transformer(const qkv_model *m) { return m ? m->transformer : NULL; }

/* ---- the folder ---- */

typedef struct path {
    char text[4096];
} path;

static qkv_status in_folder(const char *folder, const char *name, path *out)
{
    if (!folder || !*folder) return qkv__fail(QKV_USAGE, "model: a folder is needed");
    int n = snprintf(out->text, sizeof out->text, "%s/%s", folder, name);
    return n < (int)sizeof out->text
               ? QKV_OK
               : qkv__fail(QKV_LIMIT, "%.60s...: the path is longer than %zu bytes", folder, sizeof out->text);
}

qkv_model *qkv_model_load(const char *folder)
{
    path config, weights;
    qkv_transformer_opts opts;
    if (in_folder(folder, "config.json", &config) || in_folder(folder, "model.safetensors", &weights)) return NULL;
    if (qkv__config_read(config.text, &opts)) return NULL;
    qkv_model *m = qkv_model_new(&opts, 0);
    if (!m && qkv_error_status() == QKV_USAGE) { /* sizes that do not fit are the file's fault here */
        char reason[512];
        snprintf(reason, sizeof reason, "%s", qkv_error());
        qkv__fail(QKV_FORMAT, "%s: %s", config.text, reason);
    }
    if (!m || !qkv_params_load(m->params, weights.text)) return m;
    qkv_model_free(m);
    return NULL;
}

qkv_status qkv_model_save(const qkv_model *m, const char *folder)
{
    path config, weights;
    if (!m) return qkv__fail(QKV_USAGE, "model: there is none to save");
    qkv_status status = in_folder(folder, "config.json", &config);
    if (!status) status = in_folder(folder, "model.safetensors", &weights);
    if (!status) status = qkv__folder_make(folder);
    if (!status) status = qkv_params_save(m->params, weights.text);
    return status ? status : qkv__config_write(config.text, qkv_transformer_options(m->transformer));
}
