/* model.h: the model that a command runs. */
#ifndef QKV_CLI_MODEL_H
#define QKV_CLI_MODEL_H

#include "options.h"

#include <qkv/unstable/inspect.h>

/* ---- options ---- */
typedef struct model_values {
    bool int8, int4, bf16;
} model_values;
extern model_values weights;

/* clang-format off */
#define INTEGER_ROWS(in_group) \
    { "int8", .is_rare = true, .help = "quantize weights to 8 bits at load", .group = in_group, .flag = &weights.int8 }, \
    { "int4", .is_rare = true, \
      .help = "quantize weights to 4 bits at load, embeddings to 8", .group = in_group, .flag = &weights.int4 }
#define WEIGHT_ROWS(in_group) \
    INTEGER_ROWS(in_group), \
    { "bf16", .is_rare = true, \
      .help = "convert weights to bfloat16 at load; matrix products use it where the CPU has AMX or AVX512_BF16", \
      .group = in_group, .flag = &weights.bf16 }
#define TOUCH_ROWS \
    { "without-head", .is_rare = true, .group = TOUCH_GROUP, .value = "L.H", \
      .help = "zero the output of head H in layer L, such as 1.3 or cross:1.3", \
      .text = &changes[QKV_EDIT_ABLATE_HEAD] }, \
    { "without-layer", .is_rare = true, .group = TOUCH_GROUP, .value = "L", .help = "skip layer L, such as 2 or encoder:2", \
      .text = &changes[QKV_EDIT_ABLATE_LAYER] }, \
    { "hide-key", .is_rare = true, .group = TOUCH_GROUP, .value = "I", .help = "no token attends to token I", \
      .text = &changes[QKV_EDIT_HIDE_KEY] }, \
    { "move", .is_rare = true, .group = TOUCH_GROUP, .value = "I=J", .help = "give token I the position J", \
      .text = &changes[QKV_EDIT_SET_POSITION] }, \
    { "edit-row", .is_rare = true, .group = TOUCH_GROUP, .value = "L.H.I=W,W,..", \
      .help = "set the attention weights of token I in head H of layer L", \
      .text = &changes[QKV_EDIT_ROW] }, \
    { "swap-values", .is_rare = true, .group = TOUCH_GROUP, .value = "I=J", \
      .help = "swap the value vectors of tokens I and J; L.I=J in layer L only", \
      .text = &changes[QKV_EDIT_SWAP_VALUES] }, \
    { "zero-value", .is_rare = true, .group = TOUCH_GROUP, .value = "I", \
      .help = "zero the value vector of token I; L.I in layer L only", \
      .text = &changes[QKV_EDIT_ZERO_VALUE] }
/* clang-format on */
extern const char *changes[QKV_EDIT_KINDS];

/* What they ask for; USAGE, reported, for more than one. */
qkv_status chosen_weights(qkv_dtype *out);

/* Loads a folder with these options. Reports its error: USAGE for two of them, else the library's; *out is NULL then. */
qkv_status load_model(const char *folder, qkv_model **out);

/* The same for a command that needs a head: UNSUPPORTED, reported, for a model that has another one. */
qkv_status load_model_for(const char *folder, int ability, qkv_model **out);

/* The same, of any head where ability is 0, with the changes that TOUCH_ROWS ask for; the model below them stays until the end. */
qkv_status load_touched_model(const char *folder, int ability, qkv_model **out);

/* What a model reads, for what lens and why look at: a text that was given, or a file's, or that on standard input. Reports its
 * error. */
#define CAPTURE_ROWS(the)                                                                                             \
    { "text",        .group = INPUT_GROUP, .value = "TEXT",    .help = "input text",                                  \
      .plain = true, .may_be_empty = true, .text = &(the).text },                                                     \
        { "input",                                                                                                    \
          'i',                                                                                                        \
          .group = INPUT_GROUP,                                                                                       \
          .value = "FILE",                                                                                            \
          .help = "read the text from FILE (default: standard input)",                                                \
          .text = &(the).input },                                                                                     \
    {                                                                                                                 \
        "target", .group = INPUT_GROUP, .value = "TEXT", .help = "translation to look at (default: the model's own)", \
                  .may_be_empty = true, .text = &(the).target                                                         \
    }
typedef struct captured_text {
    const char *text, *input, *target;
} captured_text;

/* Notes that attention is only a part of a classifier with counts of words. */
void note_ngrams(const qkv_model *m);

qkv_status capture_text(const qkv_model *m, const captured_text *from, qkv_attention_capture **out);

/* A model that is there stays, as parts of two would lie in one folder: USAGE, reported. */
qkv_status check_new_folder(const char *folder);

#endif
