/* progress.c: how far a training is: one line of a terminal, drawn again and again, or plain lines elsewhere. */
#include "progress.h"

#include "language.h"
#include "print.h"

#include <qkv/data.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_BAR = 10, MOST_BAR = 20, GAP = 2, USUAL_COLUMNS = 80 };

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the pieces of a line ---- */

enum { BAR, PERCENT, EPOCH, STEP, LOSS, BEST, RATE, SPEED, LEFT, PIECES };

typedef struct progress_line {
    char text[PIECES][96];
    bool is_shown[PIECES];
} progress_line;

void format_duration(char text[32], double seconds)
{
    long s = (long)(seconds + 0.5);
    if (s < 60) snprintf(text, 32, _("%ld s"), s);
    else if (s < 3600) snprintf(text, 32, _("%ld min %02ld s"), s / 60, s % 60);
    else snprintf(text, 32, _("%ld h %02ld min"), s / 3600, s / 60 % 60);
}

/* "step 12/30", or "step 12" without a limit */
static void format_of(char *text, size_t room, const char *name, int64_t n, int64_t of)
{
    if (of) snprintf(text, room, "%s %lld/%lld", name, (long long)n, (long long)of);
    else snprintf(text, room, "%s %lld", name, (long long)n);
}

static void format_bar(char *text, double done, int cells)
{
    int full = (int)(done * cells);
    *text++ = '[';
    for (int i = 0; i < cells; i++) *text++ = i < full ? '=' : i == full ? '>' : ' ';
    strcpy(text, "]");
}

static void format_pieces(progress_line *l, const progress_state *s)
{
    const size_t room = sizeof l->text[0];
    char left[32];
    memset(l, 0, sizeof *l);
    format_bar(l->text[BAR], s->done, LEAST_BAR);
    /* The last percent is not there before the last step; a share such as 0.29 may be a little below itself. */
    snprintf(l->text[PERCENT], room, "%3.0f%%", floor(100 * s->done + 1e-9));
    format_of(l->text[EPOCH], room, _("epoch"), s->epoch, s->epochs);
    format_of(l->text[STEP], room, _("step"), s->step, s->steps);
    snprintf(l->text[LOSS], room, _("loss %.3f"), s->loss);
    if (s->best) snprintf(l->text[BEST], room, _("best %.80s"), strncmp(s->best, "valid ", 6) ? s->best : s->best + 6);
    snprintf(l->text[RATE], room, _("lr %.2e"), s->lr);
    snprintf(l->text[SPEED], room, _("%.0f %s/s"), s->tokens_per_second, _(s->unit));
    if (s->seconds_left < 0) return;
    format_duration(left, s->seconds_left);
    snprintf(l->text[LEFT], room, _("%s left"), left);
}

/* Shows the pieces that matter most, as many as there is room for; the bar grows into what is left. */
static void fit_pieces(progress_line *l, int columns, double done)
{
    static const int by_weight[PIECES] = { PERCENT, STEP, LEFT, LOSS, BAR, BEST, EPOCH, SPEED, RATE };
    int left = columns + GAP; /* each piece is counted with a gap, and the first one has none */
    for (int i = 0; i < PIECES; i++) {
        const char *text = l->text[by_weight[i]];
        int taken = GAP + display_width(text);
        if (!*text || taken > left) continue;
        l->is_shown[by_weight[i]] = true;
        left -= taken;
    }
    int cells = LEAST_BAR + left;
    if (l->is_shown[BAR]) format_bar(l->text[BAR], done, cells < MOST_BAR ? cells : MOST_BAR);
}

static void join_pieces(const progress_line *l, char *line, size_t room)
{
    size_t used = 0;
    *line = '\0'; /* of a window that is too narrow for any */
    for (int i = 0; i < PIECES && used < room; i++)
        if (l->is_shown[i]) used += (size_t)snprintf(line + used, room - used, "%s%s", used ? "  " : "", l->text[i]);
}

/* ---- on a terminal ---- */

/* Asked before every drawing: a window may have changed. */
static int terminal_columns(void)
{
    struct winsize size;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : USUAL_COLUMNS;
}

progress start_progress(bool quiet, int64_t log_every)
{
    const char *terminal = getenv("TERM");
    return (progress){ .quiet = quiet,
                       .log_every = log_every,
                       .bar = isatty(STDERR_FILENO) && terminal && *terminal && strcmp(terminal, "dumb") };
}

void wipe_progress(progress *p)
{
    if (p->is_drawn) fputs("\r\033[K", stderr);
    p->is_drawn = false;
}

/* The last column stays free: some terminals begin a new line as soon as it is taken. */
static void draw_line(progress *p, progress_line *l, double done)
{
    char line[1024], drawing[1040];
    fit_pieces(l, terminal_columns() - 1, done);
    join_pieces(l, line, sizeof line);
    snprintf(drawing, sizeof drawing, "\r%s\033[K", line);
    fputs(drawing, stderr); /* at once: a half-drawn line flickers */
    p->is_drawn = true;
}

/* ---- for the training ---- */

static void print_progress(progress_line *l)
{
    char line[1024];
    for (int i = EPOCH; i < PIECES; i++) l->is_shown[i] = *l->text[i] && i != BEST; /* a line of its own told it */
    join_pieces(l, line, sizeof line);
    fprintf(stderr, "%s\n", line);
}

void show_progress(progress *p, const progress_state *s)
{
    progress_line line;
    double now = seconds_now();
    if (p->quiet) return;
    if (p->bar ? now - p->drawn_at < 0.2 && !s->is_last : (s->step % p->log_every && !s->is_last) || p->line_step == s->step)
        return;
    p->drawn_at = now;
    p->line_step = s->step;
    format_pieces(&line, s);
    if (p->bar) draw_line(p, &line, s->done);
    else print_progress(&line);
}

void say_line(progress *p, const char *format, ...)
{
    char text[2048];
    va_list args;
    if (p->quiet) return;
    wipe_progress(p);
    va_start(args, format);
    vsnprintf(text, sizeof text, translated(format), args);
    va_end(args);
    if (isatty(STDERR_FILENO)) write_wrapped(stderr, text, 0, "  ", terminal_columns() - 1);
    else fputs(text, stderr);
    fputc('\n', stderr);
}

static bool is_control(int32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

void say_text(progress *p, const char *mark, const char *text)
{
    if (p->quiet) return;
    wipe_progress(p);
    size_t length = p->bar ? fitting_bytes(text, terminal_columns() - 1 - display_width(mark)) : strlen(text);
    fputs(mark, stderr);
    for (size_t at = 0, bytes; at < length; at += bytes) {
        bool is_plain = !is_control(qkv_utf8_next(text + at, length - at, &bytes));
        fprintf(stderr, "%.*s", is_plain ? (int)bytes : 1, is_plain ? text + at : " ");
    }
    fputc('\n', stderr);
}
