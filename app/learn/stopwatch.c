/* stopwatch.c: how long a piece of work takes. */
#include "stopwatch.h"

#include "../term/progress.h"

enum { MOST_RUNS = 20 };
static const double patience = 0.2;

qkv_status least_seconds(qkv_status (*work)(void *data), void *data, double *seconds)
{
    qkv_status status = work(data); /* the first run also finds its memory */
    double start = seconds_now(), before = start, least = 0;
    for (int run = 0; run < MOST_RUNS && !status && (!run || before - start < patience); run++) {
        status = work(data);
        double now = seconds_now();
        if (!run || now - before < least) least = now - before;
        before = now;
    }
    *seconds = least;
    return status;
}
