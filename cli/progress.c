/* progress.c: how far a training is. */
#include "training.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { BAR = 20 };

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void format_time(char text[32], double seconds)
{
    long s = (long)(seconds + 0.5);
    if (s < 60) snprintf(text, 32, "%ld s", s);
    else if (s < 3600) snprintf(text, 32, "%ld min %02ld s", s / 60, s % 60);
    else snprintf(text, 32, "%ld h %02ld min", s / 3600, s / 60 % 60);
}

/* "12/30", or "12" without a limit */
static void format_of(char text[48], int64_t n, int64_t of)
{
    if (of) snprintf(text, 48, "%lld/%lld", (long long)n, (long long)of);
    else snprintf(text, 48, "%lld", (long long)n);
}

static void wipe(progress *p)
{
    if (p->is_drawn) fputs("\r\033[K", stderr);
    p->is_drawn = false;
}

static void print_state(const progress_state *s)
{
    char step[48], epoch[48], left[32];
    format_of(step, s->step, s->steps);
    format_of(epoch, s->epoch, s->epochs);
    fprintf(stderr, "epoch %s  step %s  loss %.3f  lr %.2e  %.0f %s/s", epoch, step, s->loss, s->lr, s->tokens_per_second,
            s->unit);
    if (s->seconds_left >= 0) format_time(left, s->seconds_left), fprintf(stderr, "  %s left", left);
}

static void draw_bar(double done)
{
    int full = (int)(done * BAR);
    fputc('[', stderr);
    for (int i = 0; i < BAR; i++) fputc(i < full ? '=' : i == full ? '>' : ' ', stderr);
    fprintf(stderr, "] %3.0f%%  ", 100 * done);
}

void show_progress(progress *p, const progress_state *s)
{
    if (training.quiet) return;
    if (p->bar) {
        double now = seconds_now();
        if (now - p->drawn_at < 0.2 && !s->is_last) return;
        p->drawn_at = now;
        fputs("\r", stderr);
        draw_bar(s->done);
        print_state(s);
        fputs("\033[K", stderr);
        p->is_drawn = true;
        return;
    }
    if (s->step % training.log_every && !s->is_last) return;
    if (p->line_step == s->step) return;
    p->line_step = s->step;
    print_state(s);
    fputc('\n', stderr);
}

void say_line(progress *p, const char *format, ...)
{
    va_list args;
    if (training.quiet) return;
    wipe(p);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}
