/* model_info.h: what is known of a model in a folder. */
#ifndef QKV_CLI_MODEL_INFO_H
#define QKV_CLI_MODEL_INFO_H

#include <qkv/qkv.h>

#include <stdbool.h>

/* Prints it as lines or as a JSON object. Weights are mapped, not read. Reports its error. */
qkv_status print_model_info(const char *folder, bool json);

#endif
