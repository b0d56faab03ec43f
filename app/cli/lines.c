/* lines.c: the lines of a text file, one at a time, in groups or all of them. */
#include "lines.h"

#include "options.h"
#include "ranks.h"
#include "shared_lines.h"

#include <qkv/unstable/dist.h>
#include <qkv/unstable/util.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

qkv_status open_lines(text_stream *r, const char *path)
{
    *r = (text_stream){ .name = path ? path : _("standard input"), .file = path ? fopen(path, "re") : stdin };
    return r->file ? QKV_OK : fail(QKV_IO, "%s: cannot open: %s", path, _(strerror(errno)));
}

/* Of the first line, with its newline. */
static qkv_status drop_mark(const text_stream *r, char *line, size_t *length)
{
    size_t mark;
    if (qkv_text_start(r->name, line, *length, &mark)) return library_failed();
    *length -= mark;
    memmove(line, line + mark, *length + 1);
    return QKV_OK;
}

qkv_status next_line(text_stream *r, char **line, size_t *room, size_t *length, bool *more)
{
    errno = 0;
    ssize_t got = getline(line, room, r->file);
    *length = got < 0 ? 0 : (size_t)got;
    *more = got >= 0;
    if (!*more && feof(r->file)) return QKV_OK;
    if (!*more) return fail(errno == ENOMEM ? QKV_MEMORY : QKV_IO, "%s: cannot read: %s", r->name, _(strerror(errno)));
    qkv_status status = r->number++ ? QKV_OK : drop_mark(r, *line, length);
    *more = *length > 0; /* a file of a byte order mark alone has no line, as an empty one has none */
    if (*length && (*line)[*length - 1] == '\n') (*line)[--*length] = '\0';
    return status;
}

enum { MOST_TOLD = 10 };

qkv_status check_line(const text_stream *r, const char *line, size_t length, bool strict, bool quiet)
{
    size_t good = qkv_utf8_valid(line, length);
    long long number = (long long)r->number;
    if (good == length) return QKV_OK;
    if (strict) return fail(QKV_FORMAT, "%s: line %lld: byte %zu is not UTF-8", r->name, number, good + 1);
    static int told; /* a file of another encoding may have a million such lines */
    if (quiet || told > MOST_TOLD) return QKV_OK;
    if (told++ < MOST_TOLD)
        fprintf(stderr, _("qkv: %s: line %lld: byte %zu is not UTF-8: replaced by U+FFFD\n"), r->name, number, good + 1);
    else
        fprintf(stderr,
                _("qkv: %s: more lines are not UTF-8 and are not reported: is it in another encoding? \"iconv\" converts it\n"),
                r->name);
    return QKV_OK;
}

void tell_note(void *data, const char *text)
{
    (void)data;
    fprintf(stderr, "qkv: %s\n", text);
}

void tell_repaired(const char *path, int64_t n, int64_t first)
{
    if (n == 1)
        fprintf(stderr,
                _("qkv: %s: line %lld is not UTF-8: replaced by U+FFFD; if the file has another encoding: "
                  "iconv -f WINDOWS-1252 -t UTF-8\n"),
                path, (long long)first);
    if (n > 1)
        fprintf(stderr,
                _("qkv: %s: %lld lines are not UTF-8, the first is line %lld: replaced by U+FFFD; if the file has another "
                  "encoding: iconv -f WINDOWS-1252 -t UTF-8\n"),
                path, (long long)n, (long long)first);
}

/* ---- in groups ---- */

static qkv_status read_group(line_group *g, text_stream *in, int64_t most, bool strict, bool quiet, bool *more)
{
    qkv_status status = QKV_OK;
    for (g->before += g->n, g->n = 0; g->n < most && !status; g->n += !status) {
        size_t length;
        status = next_line(in, &g->at[g->n], &g->rooms[g->n], &length, more);
        if (status || !*more) break;
        const char *line = g->at[g->n];
        if (length && line[length - 1] == '\r') length--; /* part of the newline, as in a corpus */
        g->lengths[g->n] = length;
        status = check_line(in, line, length, strict, quiet);
    }
    return status;
}

typedef struct reading {
    text_stream *in;
    int64_t most;
    bool strict, quiet;
} reading;

static qkv_status read_shared(void *reader, line_group *g, bool *more)
{
    const reading *r = reader;
    return read_group(g, r->in, r->most, r->strict, r->quiet, more);
}

/* Lines that are read at once. Ranks get several times as many as they handle at once: the more, the more even are their
 * shares. */
static int64_t lines_at_once(int64_t most)
{
    enum { TIMES = 8 };
    return qkv_dist_size() == 1 ? most : most * qkv_dist_size() * (most > 1 ? TIMES : 1);
}

qkv_status each_group(text_stream *in, int at_once, bool strict, bool quiet, group_handler handle, void *data)
{
    if (is_typed(in)) at_once = 1;
    int64_t most = lines_at_once(at_once);
    size_t n = (size_t)most;
    line_group g = { .name = in->name,
                     .at = calloc(n, sizeof *g.at),
                     .rooms = calloc(n, sizeof *g.rooms),
                     .lengths = calloc(n, sizeof *g.lengths) };
    qkv_status status = g.at && g.rooms && g.lengths ? QKV_OK : fail(QKV_MEMORY, "no memory for --batch %d", at_once);
    reading r = { in, most, strict, quiet };
    bool is_shared = qkv_dist_size() > 1;
    if (!status && is_shared) status = each_shared_group(&g, at_once, read_shared, &r, handle, data);
    for (bool more = !is_shared; !status && more && !ferror(stdout);) {
        status = read_group(&g, in, most, strict, quiet, &more);
        qkv_status handled = g.n ? handle(data, &g) : QKV_OK;
        fflush(stdout);
        if (!status) status = handled;
    }
    for (size_t i = 0; g.at && i < n; i++) free(g.at[i]);
    free(g.at), free(g.rooms), free(g.lengths);
    return status;
}

/* ---- one at a time ---- */

typedef struct line_work {
    line_handler handle;
    void *data;
} line_work;

static qkv_status handle_each(void *data, line_group *g)
{
    const line_work *w = data;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < g->n && !status; i++)
        status = w->handle(w->data, &(text_stream){ .name = g->name, .number = g->before + i + 1 }, g->at[i], g->lengths[i]);
    return status;
}

static qkv_status each_read_line(text_stream *in, line_handler handle, void *data)
{
    char *line = NULL;
    size_t room = 0, length;
    bool more = true;
    qkv_status status = QKV_OK;
    while (!status && !ferror(stdout) && !(status = next_line(in, &line, &room, &length, &more)) && more)
        status = handle(data, in, line, length);
    free(line);
    return status;
}

qkv_status each_line(text_stream *in, line_handler handle, void *data)
{
    if (qkv_dist_size() == 1) return each_read_line(in, handle, data);
    return each_group(in, 16, false, true, handle_each, &(line_work){ handle, data });
}

/* ---- all of them ---- */

/* A copy in which U+FFFD stands in for what is not UTF-8; NULL without memory. */
static char *repaired_copy(const char *line, size_t length)
{
    qkv_text *text = NULL;
    char *copy = qkv_utf8_repair((qkv_str){ line, length }, &text) ? NULL : strdup(text->data);
    qkv_free(text);
    return copy;
}

static qkv_status keep_line(void *data, const text_stream *r, char *line, size_t length)
{
    lines *l = data;
    qkv_status status = check_line(r, line, length, l->is_strict, was_given("quiet"));
    size_t good = strlen(line);
    if (!status && good < length)
        status = fail(QKV_FORMAT, "%s: line %lld: byte %zu is NUL", l->name, (long long)r->number, good + 1);
    if (status) return status;
    if (l->n == l->room) {
        int64_t room = l->room ? 2 * l->room : 1024;
        char **larger = realloc(l->at, (size_t)room * sizeof *larger);
        if (!larger) return fail(QKV_MEMORY, "%s: out of memory", l->name);
        l->at = larger;
        l->room = room;
    }
    if (!(l->at[l->n] = repaired_copy(line, length))) return fail(QKV_MEMORY, "%s: out of memory", l->name);
    l->n++;
    return QKV_OK;
}

/* All lines of what was opened, which it closes. */
static qkv_status read_all_lines(lines *l, text_stream *in, bool strict, qkv_status status)
{
    *l = (lines){ .name = in->name, .is_strict = strict };
    if (!status) status = each_read_line(in, keep_line, l);
    close_texts(in);
    return status;
}

qkv_status read_lines(lines *l, const char *path, bool strict)
{
    text_stream in;
    qkv_status status = open_lines(&in, path);
    return read_all_lines(l, &in, strict, status);
}

static qkv_status keep_sent(lines *l, char *text, size_t length)
{
    text_stream in = { .name = l->name, .number = 1, .file = length ? fmemopen(text, length, "r") : NULL };
    if (!length) return QKV_OK;
    return in.file ? read_all_lines(l, &in, false, QKV_OK) : fail(QKV_MEMORY, "out of memory");
}

/* Rank 0 has read them: all lines to all ranks. What fails there is not waited for elsewhere. */
static qkv_status send_lines(lines *l, qkv_status status)
{
    qkv_buffer text = { 0 };
    size_t room = 0;
    FILE *out = speaks_for_ranks() ? open_memstream(&text.data, &room) : NULL;
    if (out) fputc(status ? 'n' : 'y', out);
    for (int64_t i = 0; out && !status && i < l->n; i++) fprintf(out, "%s\n", l->at[i]);
    bool is_written = out && !ferror(out);
    if (out && fclose(out)) is_written = false;
    text.length = room;
    if (speaks_for_ranks() && !is_written) return free(text.data), fail(QKV_MEMORY, "out of memory");
    if (qkv_dist_broadcast(&text)) return library_failed();
    if (!speaks_for_ranks()) status = *text.data == 'y' ? keep_sent(l, text.data + 1, text.length - 1) : QKV_IO;
    if (speaks_for_ranks()) free(text.data);
    else qkv_buffer_free(&text);
    return status;
}

qkv_status read_texts(lines *l)
{
    text_stream in;
    qkv_status status = open_texts(&in);
    status = read_all_lines(l, &in, false, status);
    return qkv_dist_size() == 1 ? status : send_lines(l, status);
}

void free_lines(lines *l)
{
    for (int64_t i = 0; i < l->n; i++) free(l->at[i]);
    free(l->at);
    *l = (lines){ 0 };
}
