/* why.c */
#include <qkv/touch.h>

#include "../base/status.h"

qkv_status qkv_why(const qkv_model *m, const qkv_attention_capture *a, const qkv_why_opts *opts, qkv_why_result *out)
{
    (void)opts;
    if (!m || !a || !out) return qkv__fail(QKV_USAGE, "why: a model, a capture and a place for the result are needed");
    return qkv__fail(QKV_UNSUPPORTED, "why: this version does not have it yet");
}

void qkv_why_free(qkv_why_result *x)
{
    if (x) *x = (qkv_why_result){ 0 };
}

qkv_status qkv_why_text(const qkv_model *m, const qkv_attention_capture *a, const qkv_why_result *x, int json, qkv_text *out)
{
    (void)json;
    if (!m || !a || !x || !out) return qkv__fail(QKV_USAGE, "why: a model, a capture, a result and a place are needed");
    return qkv__fail(QKV_UNSUPPORTED, "why: this version does not have it yet");
}

const char *qkv_why_method_name(qkv_why_method method)
{
#define NAME(constant, name) name,
    static const char *const names[] = { QKV_WHY_LIST(NAME) };
#undef NAME
    return (unsigned)method < QKV_WHY_METHODS ? names[method] : NULL;
}
