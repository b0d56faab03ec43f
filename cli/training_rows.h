/* training_rows.h: the rows of a job of "qkv train", to be included in its table: what qkv/training.def and qkv/transformer.def
 * list for the job. The table defines ROW_OF_TRANSLATE and so on as TRAINING_ROW for what it has and as NO_ROW for the rest. */
/* clang-format off */
#define QKV_TRAINING_OPTION(member, kind, name, value, job, group, help, ...) \
    ROW_OF_##job(member, kind, name, value, group, help, NULL)
#include <qkv/training.def>
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, group, help, ...) \
    ROW_OF_##job(member, kind, name, value, group, help, transformer_value_names[TRANSFORMER_##member])
#include <qkv/transformer.def>
#undef ROW_OF_TRANSLATE
#undef ROW_OF_CLASSIFY
#undef ROW_OF_GENERATE
#undef ROW_OF_MASK
#undef ROW_OF_DOCUMENTS
/* clang-format on */
