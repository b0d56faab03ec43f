/* model.c: the model that a command runs. */
#include "model.h"

#include <stdio.h>
#include <unistd.h>

model_values weights;

qkv_status chosen_weights(qkv_weights *out)
{
    *out = weights.int8   ? QKV_WEIGHTS_INT8
           : weights.int4 ? QKV_WEIGHTS_INT4
           : weights.bf16 ? QKV_WEIGHTS_BF16
                          : QKV_WEIGHTS_AS_STORED;
    return weights.int8 + weights.int4 + weights.bf16 > 1 ? fail(QKV_USAGE, "--int8, --int4 and --bf16: choose one") : QKV_OK;
}

qkv_status load_model(const char *folder, qkv_model **out)
{
    qkv_load_opts o = QKV_OPTS(qkv_load_opts);
    *out = NULL;
    qkv_status status = chosen_weights(&o.weights);
    if (status) return status;
    *out = qkv_model_load_with(folder, &o);
    return *out ? QKV_OK : library_failed();
}

qkv_status load_model_for(const char *folder, qkv_ability ability, qkv_model **out)
{
    qkv_status status = load_model(folder, out);
    if (status || !(status = qkv_model_check_ability(*out, ability))) return status;
    fail(status, "%s: %s", folder, qkv_error());
    qkv_model_free(*out);
    *out = NULL;
    return status;
}

qkv_status check_new_folder(const char *folder)
{
    char config[4096];
    snprintf(config, sizeof config, "%s/config.json", folder);
    return access(config, F_OK) ? QKV_OK : fail(QKV_USAGE, "%s holds a model already: give another folder", folder);
}
