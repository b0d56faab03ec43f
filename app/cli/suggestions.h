/* suggestions.h: what was meant by an option or a command that there is not. */
#ifndef QKV_CLI_SUGGESTIONS_H
#define QKV_CLI_SUGGESTIONS_H

#include "options.h"

/* Report it, with what was probably meant: a name that is nearly the same, begins the same, or that other programs have for it.
 * USAGE. */
qkv_status unknown_option(const command *c, const char *argument);
qkv_status unknown_command(const char *name);
qkv_status unknown_job(const char *name, const char *job); /* "" for none; name is the first word of commands with a job */

#endif
