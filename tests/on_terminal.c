/* on_terminal.c: runs a command on a terminal of its own, and copies what the command writes there.
 * usage: on_terminal COLUMNS COMMAND ARGUMENTS... */
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    int master, status;
    if (count < 3) return 2;
    const struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)atoi(arguments[1]) };
    pid_t child = forkpty(&master, NULL, NULL, &size);
    if (child < 0) return perror("on_terminal"), 1;
    if (!child) {
        execvp(arguments[2], arguments + 2);
        perror(arguments[2]);
        _exit(127);
    }
    char bytes[4096];
    ssize_t n;
    while ((n = read(master, bytes, sizeof bytes)) > 0) /* an error is the end: the other side is closed */
        fwrite(bytes, 1, (size_t)n, stdout), fflush(stdout);
    if (waitpid(child, &status, 0) < 0) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
