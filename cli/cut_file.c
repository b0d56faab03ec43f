/* cut_file.c: a model's file that is cut while it is mapped ends the command with a sentence and the status of input and
 * output, not with a signal. Only calls that a handler may make: open, read, write, pause, _exit. */
#include "options.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* ---- /proc/self/maps: "7f00-7f10 r--p 00000000 fe:01 1234    /path" ---- */

static struct {
    int fd;
    ssize_t size, at;
    char bytes[4096];
} maps;

static int next_char(void)
{
    if (maps.at == maps.size) {
        maps.size = read(maps.fd, maps.bytes, sizeof maps.bytes);
        maps.at = 0;
        if (maps.size <= 0) return maps.size = 0, -1;
    }
    return (unsigned char)maps.bytes[maps.at++];
}

static uintptr_t next_number(void)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t n = 0;
    for (const char *digit;; n = n * 16 + (uintptr_t)(digit - digits)) {
        int c = next_char();
        if (c <= 0 || !(digit = strchr(digits, c))) return n; /* with it goes the character behind the number */
    }
}

/* What is left of a line behind the four fields before the path; false at the end of the file. */
static bool next_path(char *path, size_t room)
{
    size_t length = 0;
    int fields = 0, c, before = 'x';
    while ((c = next_char()) > 0 && c != '\n') {
        if (fields == 4 && c != ' ') fields = 5;
        if (fields == 5 && length + 1 < room) path[length++] = (char)c;
        if (fields < 4 && c == ' ' && before != ' ') fields++;
        before = c;
    }
    path[length] = '\0';
    return c == '\n';
}

static bool find_file(uintptr_t address, char *path, size_t room)
{
    maps.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (bool more = maps.fd >= 0; more;) {
        uintptr_t from = next_number(), to = next_number();
        more = next_path(path, room);
        if (more && from <= address && address < to) return *path == '/';
    }
    return false;
}

/* ---- the signal ---- */

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void end_with_a_sentence(int number, siginfo_t *info, void *context)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    static char path[4096];
    (void)context;
    while (atomic_flag_test_and_set(&is_told)) pause(); /* another thread is telling */
    if (!find_file((uintptr_t)info->si_addr, path, sizeof path)) {
        signal(number, SIG_DFL); /* it was something else, and comes again */
        return;
    }
    say("qkv: ");
    say(path);
    say(": the file was cut, or cannot be read any more, while it was in use: start again when it is whole\n");
    _exit(QKV_IO);
}

void catch_cut_files(void)
{
    struct sigaction action = { .sa_sigaction = end_with_a_sentence, .sa_flags = SA_SIGINFO };
    sigaction(SIGBUS, &action, NULL);
}
