/* walk.c */
#include <qkv/touch.h>

#include "../base/status.h"

qkv_status qkv_walk(const qkv_model *m, const qkv_attention_capture *a, const qkv_walk_opts *opts, qkv_walk_result *out)
{
    (void)opts;
    if (!m || !a || !out) return qkv__fail(QKV_USAGE, "walk: a model, a capture and a place for the result are needed");
    return qkv__fail(QKV_UNSUPPORTED, "walk: this version does not have it yet");
}

void qkv_walk_free(qkv_walk_result *x)
{
    if (x) *x = (qkv_walk_result){ 0 };
}

qkv_status qkv_walk_json(const qkv_walk_result *x, qkv_text *out)
{
    if (!x || !out) return qkv__fail(QKV_USAGE, "walk: a walk and a place for its text are needed");
    return qkv__fail(QKV_UNSUPPORTED, "walk: this version does not have it yet");
}
