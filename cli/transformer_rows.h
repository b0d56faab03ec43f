/* transformer_rows.h: the rows of a job's table that say of what kind the model is, to be included there: the options that
 * qkv/transformer.def says every job has. A job with rows of its own defines ROW_OF_TRANSLATE or ROW_OF_CLASSIFY as
 * TRANSFORMER_ROW before. */
#ifndef ROW_OF_TRANSLATE
#define ROW_OF_TRANSLATE(...)
#endif
#ifndef ROW_OF_CLASSIFY
#define ROW_OF_CLASSIFY(...)
#endif
/* clang-format off */
    { "preset", .group = MODEL_GROUP, .value = "NAME", .help = "tiny, small, base or big; small unless given",
      .choice = &training.preset, .names = preset_names },
    { "layers", .group = MODEL_GROUP, .value = "N", .help = "of the encoder and of the decoder", .count = &training.layers },
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, group, help, ...) \
    ROW_OF_##job(member, kind, name, value, group, help)
#include <qkv/transformer.def>
/* clang-format on */
