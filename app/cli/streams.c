/* streams.c: where the texts of a command come from, and where its results go. */
#include "streams.h"

#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

stream_values streams;

/* ---- texts in ---- */

void tell_if_file(const char *text)
{
    struct stat about;
    if (was_given("quiet") || stat(text, &about) || !S_ISREG(about.st_mode)) return;
    fprintf(stderr, _("qkv: \"%s\" is taken as a text, but is a file too: \"--input %s\" reads it\n"), text, text);
}

/* The arguments as lines. */
static qkv_status open_arguments(text_stream *s)
{
    size_t room = 0, used = 0;
    for (int i = 0; i < streams.texts.n; i++) room += strlen(streams.texts.at[i]) + 1;
    s->name = _("the text");
    s->memory = malloc(room);
    for (int i = 0; s->memory && i < streams.texts.n; i++) {
        size_t length = strlen(streams.texts.at[i]);
        memcpy(s->memory + used, streams.texts.at[i], length);
        s->memory[used + length] = '\n';
        used += length + 1;
        tell_if_file(streams.texts.at[i]);
    }
    s->file = s->memory ? fmemopen(s->memory, room, "r") : NULL;
    return s->file ? QKV_OK : fail(QKV_MEMORY, "out of memory");
}

qkv_status open_texts(text_stream *s)
{
    bool is_standard = !streams.input || !strcmp(streams.input, "-");
    *s = (text_stream){ .name = is_standard ? _("standard input") : streams.input };
    if (!speaks_for_ranks()) return s->file = fopen("/dev/null", "re"), QKV_OK; /* rank 0 reads */
    if (streams.texts.n && streams.input) return fail(QKV_USAGE, "a text and --input: choose one");
    if (streams.texts.n) return open_arguments(s);
    s->file = is_standard ? stdin : fopen(streams.input, "re");
    return s->file ? QKV_OK : fail(QKV_IO, "%s: cannot open: %s", s->name, _(strerror(errno)));
}

void close_texts(text_stream *s)
{
    if (s->file && s->file != stdin) fclose(s->file);
    free(s->memory);
    *s = (text_stream){ 0 };
}

bool is_typed(const text_stream *s) { return s->file == stdin && isatty(STDIN_FILENO); }

/* ---- results out ---- */

static bool is_read(const text_stream *s, const char *path)
{
    struct stat in, out;
    if (!s || !s->file || s->memory || fstat(fileno(s->file), &in) || stat(path, &out)) return false;
    return S_ISREG(in.st_mode) && in.st_dev == out.st_dev && in.st_ino == out.st_ino;
}

qkv_status open_results(const text_stream *s)
{
    if (!streams.out || !strcmp(streams.out, "-") || !speaks_for_ranks()) return QKV_OK;
    if (is_read(s, streams.out)) return fail(QKV_USAGE, "--out %s is the file that is read: give another", streams.out);
    int fd = open(streams.out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return fail(QKV_IO, "%s: cannot write: %s", streams.out, _(strerror(errno)));
    bool is_moved = dup2(fd, STDOUT_FILENO) >= 0;
    close(fd);
    return is_moved ? QKV_OK : fail(QKV_IO, "%s: cannot write: %s", streams.out, _(strerror(errno)));
}

const char *results_name(void) { return streams.out ? streams.out : _("standard output"); }
