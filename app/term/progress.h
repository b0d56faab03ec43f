/* progress.h: how far a training is: one line drawn again and again on a terminal, lines elsewhere, nothing when quiet. */
#ifndef QKV_TERM_PROGRESS_H
#define QKV_TERM_PROGRESS_H

#include <qkv/base.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool quiet;        /* nothing is said */
    int64_t log_every; /* steps between lines where nothing can be drawn */
    bool bar;          /* drawn in place */
    bool is_drawn;     /* something to wipe is on the line */
    double drawn_at;
    int64_t line_step; /* of the last line */
} progress;

typedef struct progress_state {
    int64_t step, steps; /* so far and in all; 0: no limit */
    int64_t epoch, epochs;
    double loss, lr, tokens_per_second;
    const char *unit;
    const char *best;    /* what the best validation so far measured; NULL: none */
    double done;         /* share of the way, 0 to 1 */
    double seconds_left; /* negative: not known */
    bool is_last;
} progress_state;

double seconds_now(void);
void format_duration(char text[32], double seconds); /* "3 min 05 s" */
/* By what standard error is: a terminal that can draw, or anything else, which has a line every log_every steps. */
progress start_progress(bool quiet, int64_t log_every);
void show_progress(progress *p, const progress_state *s);
void wipe_progress(progress *p);                                      /* before anything else is written */
void say_line(progress *p, const char *format, ...) QKV_PRINTF(2, 3); /* a line that stays, in the reader's language */

/* Text of files or models after a mark, as a line that stays: no more of it than a terminal's line has room for, and without
 * control characters, which would be orders to the terminal. */
void say_text(progress *p, const char *mark, const char *text);

#endif
