/* cut_file.c: a model's file that is cut while it is mapped ends the command with a sentence and the status of input and
 * output, not with a signal. Only calls that a handler may make: qkv_mapped_file, write, pause, _exit. */
#include "options.h"

#include <qkv/unstable/util.h>

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

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
    if (!qkv_mapped_file(info->si_addr, path, sizeof path)) {
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
