/* typed_line.c: lines typed at a terminal, with editing and history if the command was built with libedit. */
#include "typed_line.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* False: it was the interrupt. */
static bool wait_for_input(int interrupt)
{
    struct pollfd both[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = interrupt, .events = POLLIN } };
    while (poll(both, 2, -1) < 0 && errno == EINTR) {}
    return !(both[1].revents & POLLIN);
}

/* ---- without libedit ---- */

static typed_line read_plain_line(const char *prompt, int interrupt, char **line, size_t *room)
{
    fputs(prompt, stdout);
    fflush(stdout);
    if (!wait_for_input(interrupt)) return TYPED_INTERRUPT;
    return getline(line, room, stdin) < 0 ? TYPED_END : TYPED_LINE;
}

/* ---- with libedit ---- */

#ifdef QKV_LIBEDIT
#include <histedit.h>
#include <locale.h>
#include <wchar.h>

static struct {
    EditLine *edit;
    History *history;
    const char *prompt;
    int interrupt;
    bool is_interrupted;
} editor;

static char *give_prompt(EditLine *e) { return (void)e, (char *)editor.prompt; }

/* libedit reads by this function, so that an interrupt ends the line. 1: a character; 0: the end; -1: an error. */
static int read_character(EditLine *e, wchar_t *c)
{
    mbstate_t state = { 0 };
    (void)e;
    for (;;) {
        char byte;
        if ((editor.is_interrupted = !wait_for_input(editor.interrupt))) return -1;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return (int)n;
        size_t used = mbrtowc(c, &byte, 1, &state);
        if (used == (size_t)-2) continue;
        if (used == (size_t)-1) *c = 0xFFFD;
        return 1;
    }
}

static bool open_editor(void)
{
    HistEvent event;
    if (editor.edit) return true;
    const char *terminal = getenv("TERM");
    if (!terminal || !strcmp(terminal, "dumb") || !setlocale(LC_CTYPE, "C.UTF-8")) return false; /* it reads wide characters */
    editor.edit = el_init("qkv", stdin, stdout, stderr);
    editor.history = editor.edit ? history_init() : NULL;
    if (!editor.history) return end_typed_lines(), false;
    history(editor.history, &event, H_SETSIZE, 1000);
    history(editor.history, &event, H_SETUNIQUE, 1);
    el_set(editor.edit, EL_EDITOR, "emacs");
    el_set(editor.edit, EL_SIGNAL, 0);
    el_set(editor.edit, EL_PROMPT, give_prompt);
    el_set(editor.edit, EL_HIST, history, editor.history);
    el_set(editor.edit, EL_GETCFN, read_character);
    return true;
}

static typed_line read_edited_line(char **line, size_t *room)
{
    HistEvent event;
    int length = 0;
    const char *typed = el_gets(editor.edit, &length);
    if (editor.is_interrupted) el_reset(editor.edit);
    if (editor.is_interrupted) return editor.is_interrupted = false, TYPED_INTERRUPT;
    if (!typed || length <= 0) return TYPED_END;
    if (length > 1) history(editor.history, &event, H_ENTER, typed);
    if (*room < (size_t)length + 1) {
        char *larger = realloc(*line, (size_t)length + 1);
        if (!larger) return TYPED_END;
        *line = larger;
        *room = (size_t)length + 1;
    }
    memcpy(*line, typed, (size_t)length);
    (*line)[length] = '\0';
    return TYPED_LINE;
}

void end_typed_lines(void)
{
    if (editor.edit) el_end(editor.edit);
    if (editor.history) history_end(editor.history);
    editor.edit = NULL;
    editor.history = NULL;
}

typed_line read_typed_line(const char *prompt, int interrupt, char **line, size_t *room)
{
    if (!open_editor()) return read_plain_line(prompt, interrupt, line, room);
    editor.prompt = prompt;
    editor.interrupt = interrupt;
    return read_edited_line(line, room);
}

#else

void end_typed_lines(void) {}

typed_line read_typed_line(const char *prompt, int interrupt, char **line, size_t *room)
{
    return read_plain_line(prompt, interrupt, line, room);
}
#endif
