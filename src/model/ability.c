/* ability.c: what a model can do, and a check of it before a task. */
#include "ability.h"

#include "../base/out.h"
#include "../base/status.h"

#include <qkv/task.h>

const struct qkv__ability qkv__abilities[QKV__ABILITIES] = {
    { QKV_CAN_TRANSLATE, "translate" }, { QKV_CAN_GENERATE, "generate" }, { QKV_CAN_FILL, "fill" },
    { QKV_CAN_CLASSIFY, "classify" },   { QKV_CAN_RANK, "rank" },         { QKV_CAN_TAG, "tag" },
    { QKV_CAN_ANSWER, "answer" },       { QKV_CAN_EMBED, "embed" }
};

/* Such as "generate, embed". */
static void put_names(qkv__out *out, int can)
{
    const char *between = "";
    for (int i = 0; i < QKV__ABILITIES; i++) {
        if (!(can & qkv__abilities[i].ability)) continue;
        qkv__out_printf(out, "%s%s", between, qkv__abilities[i].command);
        between = ", ";
    }
}

qkv_status qkv_model_check_ability(const qkv_model *m, int wanted)
{
    if (!m) return qkv__fail(QKV_USAGE, "a model is needed");
    int can = qkv_model_get_info(m)->can;
    if ((can & wanted) == wanted) return QKV_OK;
    qkv_buffer texts[2] = { 0 };
    qkv_status status = QKV_OK;
    for (int i = 0; i < 2 && !status; i++) {
        qkv__out names = qkv__out_begin(&texts[i]);
        put_names(&names, i ? can : wanted & ~can);
        status = qkv__out_end(&names);
    }
    if (!status)
        status = qkv__fail(QKV_UNSUPPORTED, "the model has no head for \"%s\": it can %s", texts[0].data, texts[1].data);
    qkv_buffer_free(&texts[0]);
    qkv_buffer_free(&texts[1]);
    return status;
}
