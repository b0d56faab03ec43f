/* model.h: the model that a command runs. */
#ifndef QKV_CLI_MODEL_H
#define QKV_CLI_MODEL_H

#include "options.h"

/* ---- options ---- */
typedef struct model_values {
    bool int8, int4, bf16;
} model_values;
extern model_values weights;

/* clang-format off */
#define INTEGER_ROWS(in_group) \
    { "int8", .help = "bring the model's matrices to 8 bits", .group = in_group, .flag = &weights.int8 }, \
    { "int4", .help = "to 4 bits, its tables of tokens to 8", .group = in_group, .flag = &weights.int4 }
#define WEIGHT_ROWS(in_group) \
    INTEGER_ROWS(in_group), \
    { "bf16", .help = "to bfloat16; with AMX products are of bfloat16 too", .group = in_group, .flag = &weights.bf16 }
/* clang-format on */

/* What they ask for; USAGE, reported, for more than one. */
qkv_status chosen_weights(qkv_weights *out);

/* Loads a folder with these options. Reports its error: USAGE for two of them, else the library's; *out is NULL then. */
qkv_status load_model(const char *folder, qkv_model **out);

/* The same for a command that needs a head: UNSUPPORTED, reported, for a model that has another one. */
qkv_status load_model_for(const char *folder, qkv_ability ability, qkv_model **out);

/* A model that is there stays, as parts of two would lie in one folder: USAGE, reported. */
qkv_status check_new_folder(const char *folder);

#endif
