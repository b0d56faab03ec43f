/* lesson.c: what every lesson uses: paragraphs and pictures. */
#include "lesson.h"

#include "../cli/term/errors.h"
#include "../cli/term/print.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_WIDTH = 78, PARAGRAPH_BYTES = 4096, LONGEST_PICTURE_NAME = 64 };

const char *lesson_data;
static const char *picture_folder;

/* ---- paragraphs ---- */

/* Whether a line may end between two characters: Chinese breaks anywhere but before what closes and after what opens. */
static bool may_break(const char *before, const char *after)
{
    static const char closing[] = "，。、；：？！）】》”’…,.;:?!)%", opening[] = "（【《“‘(";
    if (*before == ' ' || *after == ' ') return true;
    return (display_width(before) == 2 || display_width(after) == 2) && !strstr(closing, after) && !strstr(opening, before);
}

/* The character at text, as a text of its own; gives its bytes. */
static size_t character_at(const char *text, char one[8])
{
    size_t bytes = 0;
    if (*text) qkv_utf8_decode(text, strlen(text), &bytes);
    snprintf(one, 8, "%.*s", (int)bytes, text);
    return bytes;
}

/* Bytes of the piece that text starts with, which stays on one line. */
static size_t piece_bytes(const char *text)
{
    char one[8], next[8];
    size_t bytes = character_at(text, one);
    while (text[bytes] && text[bytes] != '\n') {
        size_t more = character_at(text + bytes, next);
        if (may_break(one, next)) break;
        memcpy(one, next, sizeof one);
        bytes += more;
    }
    return bytes;
}

static void print_wrapped(const char *text)
{
    int column = 0;
    bool space = false;
    while (*text) {
        char piece[PARAGRAPH_BYTES];
        if (*text == '\n') column = 0, space = false, text++, putchar('\n');
        else if (*text == ' ') space = column > 0, text++;
        else {
            size_t bytes = piece_bytes(text);
            snprintf(piece, sizeof piece, "%.*s", (int)bytes, text);
            int width = display_width(piece);
            if (column && column + space + width > LINE_WIDTH) column = 0, space = false, putchar('\n');
            printf("%s%s", space ? " " : "", piece);
            column += space + width;
            space = false;
            text += bytes;
        }
    }
    puts("\n");
}

void say(const char *format, ...)
{
    char text[PARAGRAPH_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_wrapped(text);
}

void say_heading(const char *text)
{
    puts(text);
    for (int i = 0; i < display_width(text); i++) putchar('-');
    puts("\n");
}

/* ---- pictures ---- */

qkv_status set_picture_folder(const char *folder)
{
    if (strlen(folder) + LONGEST_PICTURE_NAME > PATH_MAX) return fail(QKV_IO, "%s: the name is too long", folder);
    if (mkdir(folder, 0777) && errno != EEXIST) return fail(QKV_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
    picture_folder = folder;
    return QKV_OK;
}

const char *picture_path(const char *name)
{
    static char path[PATH_MAX + LONGEST_PICTURE_NAME];
    if (!picture_folder) return NULL;
    snprintf(path, sizeof path, "%s/%s.png", picture_folder, name);
    return path;
}

void tell_picture(const char *path)
{
    fflush(stdout); /* so that it stands where the picture belongs */
    fprintf(stderr, _("Picture: %s\n"), path);
}

qkv_status draw_maps(const char *name, const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *opts)
{
    const char *path = picture_path(name);
    if (!path) return QKV_OK;
    if (qkv_picture_heatmaps(path, maps, n, opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}

qkv_status draw_curves(const char *name, const qkv_curve *curves, int64_t n, const qkv_curve_opts *opts)
{
    const char *path = picture_path(name);
    if (!path) return QKV_OK;
    if (qkv_picture_curves(path, curves, n, opts)) return library_failed();
    tell_picture(path);
    return QKV_OK;
}
