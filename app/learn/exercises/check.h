/* check.h: what the checkers of the exercises share. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>

#define CHECK_TEXT(text) text /* is in the reader's language in the file that the reader gets */

#ifndef CHECK_PASSED
#define CHECK_PASSED 0
#endif

static int check_failures;

/* Every number within 0.00005 of the one that is wanted; the first that is not is told. */
static inline void check_close(const char *what, const float *got, const float *wanted, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(got[i] - wanted[i]) <= 5e-5f)) {
            printf("%s  ", CHECK_TEXT("FAILED"));
            printf(CHECK_TEXT("%s: number %d is %g, wanted %g"), what, i, (double)got[i], (double)wanted[i]);
            putchar('\n');
            check_failures++;
            return;
        }
    printf("%s  %s\n", CHECK_TEXT("passed"), what);
}

static inline int check_result(void)
{
    puts(check_failures ? CHECK_TEXT("Not yet.") : CHECK_TEXT("All passed."));
    return check_failures ? 1 : CHECK_PASSED;
}

#endif
