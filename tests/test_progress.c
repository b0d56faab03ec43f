/* test_progress.c: the line that tells how far a training is, drawn on a terminal of the test's own. */
#include "../app/term/print.h"
#include "../app/term/progress.h"

#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const progress_state states[] = {
    { .step = 1, .steps = 60, .epoch = 1, .loss = 5.5, .lr = 1e-5, .unit = "tokens", .done = 1 / 60.0, .seconds_left = -1 },
    { .step = 29,
      .steps = 100,
      .epoch = 2,
      .epochs = 7,
      .loss = 1,
      .lr = 1e-3,
      .unit = "texts",
      .done = 0.29,
      .seconds_left = 9 },
    { .step = 2999999,
      .steps = 3000000,
      .epoch = 299,
      .epochs = 300,
      .loss = 123.456,
      .lr = 1e-3,
      .tokens_per_second = 123456,
      .unit = "target tokens",
      .done = 2999999 / 3e6,
      .seconds_left = 359999 },
    { .step = 500, .epoch = 1, .loss = 2, .lr = 1e-3, .tokens_per_second = 99, .unit = "词元", .done = 1, .seconds_left = 754 },
};
enum { STATES = sizeof states / sizeof *states };

/* ---- a process that draws on a terminal when it is told to ---- */

typedef struct drawer {
    int terminal, orders;
    pid_t process;
} drawer;

static void draw_on_orders(int orders)
{
    unsigned char state;
    progress p = start_progress(false, 10);
    while (read(orders, &state, 1) == 1) {
        p.drawn_at = 0; /* no pause between two */
        if (state < STATES) show_progress(&p, &states[state]);
        else say_line(&p, "a line that stays");
    }
    _exit(0);
}

static drawer start_drawer(const char *terminal)
{
    drawer d;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    if (terminal) setenv("TERM", terminal, 1);
    else unsetenv("TERM");
    d.process = forkpty(&d.terminal, NULL, NULL, NULL);
    assert_true(d.process >= 0);
    close(ends[d.process ? 0 : 1]);
    if (!d.process) draw_on_orders(ends[0]);
    d.orders = ends[1];
    return d;
}

static void end_drawer(drawer *d)
{
    int status;
    close(d->orders);
    assert_int_equal(waitpid(d->process, &status, 0), d->process);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    close(d->terminal);
}

/* What it writes for one order, up to the piece that ends it. */
static const char *order(drawer *d, int columns, int state, const char *end)
{
    static char text[4096];
    const struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
    unsigned char byte = (unsigned char)state;
    size_t used = 0;
    assert_int_equal(ioctl(d->terminal, TIOCSWINSZ, &size), 0);
    assert_int_equal(write(d->orders, &byte, 1), 1);
    for (*text = '\0'; !strstr(text, end); text[used] = '\0') {
        ssize_t n = read(d->terminal, text + used, sizeof text - 1 - used);
        assert_true(n > 0);
        used += (size_t)n;
    }
    return text;
}

static const char *drawn(drawer *d, int columns, int state)
{
    static char line[4096];
    const char *text = order(d, columns, state, "\033[K");
    size_t length = strlen(text);
    assert_true(*text == '\r' && length >= 4 && !strcmp(text + length - 3, "\033[K"));
    snprintf(line, sizeof line, "%.*s", (int)length - 4, text + 1);
    if (strpbrk(line, "\r\n\033") || display_width(line) >= columns) fail_msg("on %d columns: \"%s\"", columns, line);
    return line;
}

/* ---- tests ---- */

static void one_line_at_any_width(void **state)
{
    (void)state;
    drawer d = start_drawer("xterm");
    for (int columns = 10; columns <= 300; columns++)
        for (int s = 0; s < STATES; s++) assert_non_null(strchr(drawn(&d, columns, s), '%'));
    end_drawer(&d);
}

/* Where not even the percent has room nothing is drawn, and nothing of what was drawn before. */
static void a_window_too_narrow(void **state)
{
    (void)state;
    drawer d = start_drawer("xterm");
    for (int columns = 1; columns < 10; columns++) {
        drawn(&d, 300, 2);
        assert_string_equal(drawn(&d, columns, 2), columns > 4 ? " 99%" : "");
    }
    end_drawer(&d);
}

static void a_window_that_changes(void **state)
{
    (void)state;
    drawer d = start_drawer("xterm");
    for (int columns = 10; columns <= 150; columns += 7) {
        drawn(&d, columns, 2);
        drawn(&d, 310 - columns, 2);
    }
    end_drawer(&d);
}

static void what_is_shown(void **state)
{
    (void)state;
    drawer d = start_drawer("xterm");
    assert_string_equal(drawn(&d, 200, 1),
                        "[=====>              ]   29%  epoch 2/7  step 29/100  loss 1.000  lr 1.00e-03  0 texts/s  9 s left");
    assert_string_equal(drawn(&d, 80, 2), "[================>]   99%  step 2999999/3000000  loss 123.456  99 h 59 min left");
    assert_string_equal(drawn(&d, 40, 1), " 29%  step 29/100  loss 1.000  9 s left");
    assert_string_equal(drawn(&d, 10, 1), " 29%");
    assert_non_null(strstr(drawn(&d, 80, 3), "100%"));
    end_drawer(&d);
}

static void lines_that_stay_wipe_it(void **state)
{
    (void)state;
    drawer d = start_drawer("xterm");
    drawn(&d, 80, 0);
    assert_string_equal(order(&d, 80, STATES, "\n"), "\r\033[Ka line that stays\r\n");
    assert_string_equal(order(&d, 80, STATES, "\n"), "a line that stays\r\n");
    end_drawer(&d);
}

static void plain_lines_on_a_dumb_terminal(void **state)
{
    (void)state;
    static const char *const terminals[] = { "dumb", "", NULL };
    for (int i = 0; i < 3; i++) {
        drawer d = start_drawer(terminals[i]);
        assert_string_equal(order(&d, 20, 3, "\n"),
                            "epoch 1  step 500  loss 2.000  lr 1.00e-03  99 词元/s  12 min 34 s left\r\n");
        end_drawer(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_at_any_width),   cmocka_unit_test(a_window_too_narrow),
        cmocka_unit_test(a_window_that_changes),   cmocka_unit_test(what_is_shown),
        cmocka_unit_test(lines_that_stay_wipe_it), cmocka_unit_test(plain_lines_on_a_dumb_terminal),
    };
    alarm(60); /* a line that never comes ends the test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
