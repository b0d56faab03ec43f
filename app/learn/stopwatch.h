/* stopwatch.h: how long a piece of work takes. */
#ifndef QKV_LEARN_STOPWATCH_H
#define QKV_LEARN_STOPWATCH_H

#include <qkv/qkv.h>

/* Runs the work a few times and gives the least time in seconds, the one that other work of the machine disturbed least.
 * A status that is not OK ends it and is handed on. */
qkv_status least_seconds(qkv_status (*work)(void *data), void *data, double *seconds);

#endif
