/* training_rows.h: the rows of a job of "qkv train", to be included in its table: what qkv/training.def and qkv/transformer.def
 * list for the job. The table defines ROW_OF_TRANSLATE and so on as TRAINING_ROW for what it has and as NO_ROW for the rest. */
/* clang-format off */
#define IS_RARE(...) (sizeof #__VA_ARGS__ == 1) /* no level */
#define QKV_TRAINING_OPTION(member, kind, name, value, job, group, help, ...) \
    ROW_OF_##job(member, kind, name, value, group, help, IS_RARE(__VA_ARGS__), NULL)
#include "../recipe/training.def"
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, group, help, theirs, ...) \
    ROW_OF_##job(member, kind, name, value, group, help, IS_RARE(__VA_ARGS__), transformer_value_names[TRANSFORMER_##member])
#include <qkv/transformer.def>
#undef IS_RARE
#undef ROW_OF_TRANSLATE
#undef ROW_OF_CLASSIFY
#undef ROW_OF_GENERATE
#undef ROW_OF_MASK
#undef ROW_OF_DOCUMENTS
/* clang-format on */
