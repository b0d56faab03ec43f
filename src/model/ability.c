/* ability.c: what a model can do, and a check of it before a task. */
#include "ability.h"

#include "../base/status.h"
#include "model.h"

#include <qkv/task.h>
#include <qkv/unstable/util.h>

#include <stdio.h>

const struct qkv__ability qkv__abilities[QKV__ABILITIES] = {
    { QKV_CAN_TRANSLATE, "translate" }, { QKV_CAN_GENERATE, "generate" }, { QKV_CAN_FILL, "fill" },
    { QKV_CAN_CLASSIFY, "classify" },   { QKV_CAN_RANK, "rank" },         { QKV_CAN_TAG, "tag" },
    { QKV_CAN_ANSWER, "answer" },       { QKV_CAN_EMBED, "embed" }
};

/* Such as "generate, embed". */
static void put_names(char *names, size_t room, int can)
{
    size_t used = 0;
    for (int i = 0; i < QKV__ABILITIES; i++)
        if (can & qkv__abilities[i].ability)
            used += (size_t)snprintf(names + used, room - used, "%s%s", used ? ", " : "", qkv__abilities[i].command);
}

qkv_status qkv_model_check_ability(const qkv_model *m, int wanted)
{
    if (!m) return qkv__fail(QKV_USAGE, "a model is needed");
    int can = qkv__model_get_info(m)->can;
    if ((can & wanted) == wanted) return QKV_OK;
    char lacks[128] = "", has[128] = ""; /* room for all names */
    put_names(lacks, sizeof lacks, wanted & ~can);
    put_names(has, sizeof has, can);
    return qkv__fail(QKV_UNSUPPORTED, "the model has no head for \"%s\": it can %s", lacks, has);
}
