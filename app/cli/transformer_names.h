/* transformer_names.h: what the command line calls the Transformer's options and their values: the names of
 * qkv/transformer.def, by member. */
#ifndef QKV_CLI_TRANSFORMER_NAMES_H
#define QKV_CLI_TRANSFORMER_NAMES_H

enum { /* TRANSFORMER_dim, TRANSFORMER_heads, ... */
#define QKV_OPTION(member, ...) TRANSFORMER_##member,
#include <qkv/transformer.def>
       TRANSFORMER_OPTIONS
};

extern const char *const transformer_option_names[TRANSFORMER_OPTIONS];    /* NULL: "qkv train" does not have it */
extern const char *const transformer_value_names[TRANSFORMER_OPTIONS][16]; /* in the order of the enum, NULL after the last */

#endif
