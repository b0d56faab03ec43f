/* transformer_names.c: the names of qkv/transformer.def as tables. */
#include "transformer_names.h"

#include <qkv/model.h>

const char *const transformer_option_names[TRANSFORMER_OPTIONS] = {
#define QKV_TRAIN_OPTION(member, kind, name, ...) [TRANSFORMER_##member] = name,
#include <qkv/transformer.def>
};

const char *const transformer_value_names[TRANSFORMER_OPTIONS][16] = {
#define QKV_OPTION_VALUE(member, value, word, name, ...) [TRANSFORMER_##member][value] = name,
#include <qkv/transformer.def>
};
