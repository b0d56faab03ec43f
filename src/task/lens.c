/* lens.c */
#include <qkv/touch.h>

#include "../base/status.h"

qkv_status qkv_lens(const qkv_model *m, const qkv_attention_capture *a, const qkv_lens_opts *opts, qkv_lens_result *out)
{
    (void)opts;
    if (!m || !a || !out) return qkv__fail(QKV_USAGE, "lens: a model, a capture and a place for the result are needed");
    return qkv__fail(QKV_UNSUPPORTED, "lens: this version does not have it yet");
}

void qkv_lens_free(qkv_lens_result *x)
{
    if (x) *x = (qkv_lens_result){ 0 };
}

qkv_status qkv_lens_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_lens_result *x, int json, qkv_text *out)
{
    (void)json;
    if (!m || !a || !x || !out) return qkv__fail(QKV_USAGE, "lens: a model, a capture, a result and a place are needed");
    return qkv__fail(QKV_UNSUPPORTED, "lens: this version does not have it yet");
}
