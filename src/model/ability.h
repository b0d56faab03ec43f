/* ability.h: what a model can do, by the command that does it. */
#ifndef QKV_SRC_MODEL_ABILITY_H
#define QKV_SRC_MODEL_ABILITY_H

enum { QKV__ABILITIES = 8 };
extern const struct qkv__ability {
    int ability; /* QKV_CAN_... */
    const char *command;
} qkv__abilities[QKV__ABILITIES];

#endif
