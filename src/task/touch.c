/* touch.c: a model of which parts are switched off or changed. */
#include <qkv/touch.h>

#include "../base/status.h"

qkv_model *qkv_model_touched(const qkv_model *m, const qkv_touch *touches, int64_t n)
{
    if (!m || n < 0 || (n && !touches)) qkv__fail(QKV_USAGE, "touch: a model and changes are needed");
    else qkv__fail(QKV_UNSUPPORTED, "touch: this version cannot change a model yet");
    return NULL;
}

qkv_status qkv_touches_add(qkv_touches *list, const qkv_model *m, qkv_touch_what what, const char *text)
{
    if (!list || !m || !text || (unsigned)what >= QKV_TOUCH_KINDS)
        return qkv__fail(QKV_USAGE, "touch: a list, a model, a change and its text are needed");
    return qkv__fail(QKV_UNSUPPORTED, "touch: this version cannot change a model yet");
}

void qkv_touches_free(qkv_touches *list)
{
    if (list) *list = (qkv_touches){ 0 };
}
