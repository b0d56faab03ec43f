/* type_at.c: types at a command on a terminal of its own, and copies what is seen there.
 * usage: type_at SECONDS WHAT... -- COMMAND ARGUMENTS...
 * WHAT, one after the other: "+TEXT" waits until TEXT is seen, behind what was waited for before; "TEXT" types it and Enter;
 * "^C" and "^D" are these keys. Ends with the command's status, or 99 when the seconds are over. */
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 20 };
static char seen[MOST + 1];
static size_t length, passed;

/* False at the end. */
static int see_more(int terminal)
{
    ssize_t n = read(terminal, seen + length, MOST - length);
    if (n <= 0) return 0;
    fwrite(seen + length, 1, (size_t)n, stdout);
    length += (size_t)n;
    return 1;
}

static int wait_for(int terminal, const char *text)
{
    const char *found;
    while (!(found = memmem(seen + passed, length - passed, text, strlen(text))))
        if (!see_more(terminal)) return 0;
    passed = (size_t)(found - seen) + strlen(text);
    return 1;
}

static int type(int terminal, const char *text)
{
    if (!strcmp(text, "^C")) return write(terminal, "\003", 1) == 1;
    if (!strcmp(text, "^D")) return write(terminal, "\004", 1) == 1;
    return write(terminal, text, strlen(text)) == (ssize_t)strlen(text) && write(terminal, "\n", 1) == 1;
}

static void give_up(int number)
{
    (void)number;
    _exit(99);
}

int main(int count, char **arguments)
{
    int terminal, status, i = 2, command = 2;
    while (command < count && strcmp(arguments[command], "--")) command++;
    if (command + 1 >= count) return 2;
    const struct winsize size = { .ws_row = 24, .ws_col = 80 };
    pid_t child = forkpty(&terminal, NULL, NULL, &size);
    if (child < 0) return perror("type_at"), 1;
    if (!child) {
        execvp(arguments[command + 1], arguments + command + 1);
        _exit(127);
    }
    signal(SIGALRM, give_up);
    alarm((unsigned)atoi(arguments[1]));
    for (; i < command; i++)
        if (!(*arguments[i] == '+' ? wait_for(terminal, arguments[i] + 1) : type(terminal, arguments[i]))) break;
    while (see_more(terminal)) {}
    if (waitpid(child, &status, 0) < 0) return 1;
    if (i < command) return 98; /* it ended before all was typed */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
