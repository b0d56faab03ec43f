/* errors.h: errors as sentences on standard error. */
#ifndef QKV_TERM_ERRORS_H
#define QKV_TERM_ERRORS_H

#include <qkv/base.h>

#include <stdbool.h>

/* Prints "qkv: command: sentence" on stderr, in the reader's language, and gives status back. */
qkv_status fail(qkv_status status, const char *format, ...) QKV_PRINTF(2, 3);

/* The same with the library's last error. */
qkv_status library_failed(void);

/* The library's last error in the reader's language, where it is a common one; else in English. Valid until the next call. */
const char *library_error(void);

/* The command that errors are of, from now on; the name is borrowed. */
void name_errors(const char *command);

/* From now on the first error is kept instead of printed, "" for none: another process says it, unless it has not met it. */
void hold_errors(bool hold);
const char *held_error(void);

#endif
