/* exercise.c: hands out exercises and checks them with the C compiler of the machine. */
#include "exercise.h"

#include "lesson.h"
#include "../term/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 10, NO_COMMAND = 127, TIMED_OUT = -2, INTERRUPTED = -3 };

/* The status of a checker that has come to its end and found nothing wrong: not that of an exit(0) before it. */
enum { PASSED = 42 };
#define PASSED_OPTION "-DCHECK_PASSED=42"

typedef struct exercise {
    const char *name;                /* of its files */
    const char *title, *text, *hint; /* N_() */
} exercise;

static const exercise exercises[] = {
#define EXERCISE(name, title, text, hint) { name, title, text, hint },
#include "exercises.def"
};
enum { EXERCISES = sizeof exercises / sizeof *exercises };

static const char makefile[] = "# make softmax && ./softmax; any exercise of this folder in place of softmax\n"
                               "%: %.c %_check.c check.h\n"
                               "\t$(CC) -std=c11 -Wall -O1 -o $@ $< $*_check.c -lm\n";

/* ---- the files ---- */

static const char *file_text(const char *name, const char *ending)
{
    char file[64];
    snprintf(file, sizeof file, "%s%s", name, ending);
    for (int i = 0; exercise_file_names[i]; i++)
        if (!strcmp(exercise_file_names[i], file)) return exercise_file_texts[i];
    return "";
}

static bool is_line(const char *line, size_t length, const char *text)
{
    return strlen(text) == length && !strncmp(line, text, length);
}

/* The comment that `text` begins with, in the reader's language: tools/catalogue joins its lines as here. Returns its bytes. */
static size_t put_comment(FILE *f, const char *text)
{
    char joined[512];
    const char *end = strstr(text, " */");
    size_t used = 0, length = (size_t)(end - text) + strlen(" */");
    for (const char *at = text + strlen("/* "); at < end && used + 1 < sizeof joined;) {
        joined[used++] = *at == '\n' ? ' ' : *at;
        at += *at == '\n' ? strlen("\n * ") : 1;
    }
    joined[used] = '\0';
    const char *own = _(joined);
    if (own == joined) return fprintf(f, "%.*s", (int)length, text), length;
    fputs("/* ", f);
    write_wrapped(f, own, 3, " * ", 100);
    fputs(" */", f);
    return length;
}

/* The file with its hole or with its solution: one of the two sides of #ifdef SOLUTION. */
static void put_side(FILE *f, const char *text, bool is_solution)
{
    bool is_put = true;
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        if (!strncmp(text, "/* ", 3)) text += put_comment(f, text);
        length = strcspn(text, "\n");
        if (is_line(text, length, "#ifdef SOLUTION")) is_put = is_solution;
        else if (is_line(text, length, "#else")) is_put = !is_solution;
        else if (is_line(text, length, "#endif")) is_put = true;
        else if (is_put) fprintf(f, "%.*s\n", (int)length, text);
    }
}

static void put_paragraph(FILE *f, const char *text)
{
    fputs(" * ", f);
    write_wrapped(f, text, 3, " * ", 80);
    fputc('\n', f);
}

static void put_task(FILE *f, const exercise *e)
{
    fputs("/*\n", f);
    put_paragraph(f, _(e->title));
    fputs(" *\n", f);
    put_paragraph(f, _(e->text));
    fputs(" */\n", f);
    put_side(f, file_text(e->name, ".c"), false);
}

/* DIR/NAME.ENDING, opened for writing; NULL, reported. */
static FILE *create(const char *folder, const char *name, const char *ending, const char *mode)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s%s", folder, name, ending) >= (int)sizeof path) errno = ENAMETOOLONG;
    else {
        FILE *f = fopen(path, mode);
        if (f) return f;
    }
    if (errno == EEXIST) fail(QKV_IO, "%s: is there already, and may be your work: it is not replaced", path);
    else fail(QKV_IO, "%s: cannot be written: %s", path, _(strerror(errno)));
    return NULL;
}

static qkv_status finish(FILE *f, const char *folder)
{
    bool has_failed = ferror(f);
    return (fclose(f) || has_failed) ? fail(QKV_IO, "%s: cannot write to it: %s", folder, _(strerror(errno))) : QKV_OK;
}

/* The text of a file of ours, with what stands between quotes in the reader's language where there is a translation. */
static void put_translated(FILE *f, const char *text)
{
    char quoted[128];
    for (int before, length; text[before = (int)strcspn(text, "\"")]; text += before + length + 2) {
        length = (int)strcspn(text + before + 1, "\"");
        if (snprintf(quoted, sizeof quoted, "%.*s", length, text + before + 1) >= (int)sizeof quoted) break;
        fprintf(f, "%.*s\"%s\"", before, text, *quoted ? _(quoted) : "");
    }
    fputs(text, f);
}

/* What is there already stays: the folder may be one with a Makefile of its own. */
static qkv_status write_text(const char *folder, const char *name, const char *ending, const char *text)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s%s", folder, name, ending) < (int)sizeof path && !access(path, F_OK)) return QKV_OK;
    FILE *f = create(folder, name, ending, "wx");
    if (!f) return QKV_IO;
    put_translated(f, text);
    return finish(f, folder);
}

static qkv_status write_checker(const char *folder, const exercise *e)
{
    qkv_status status = write_text(folder, e->name, "_check.c", file_text(e->name, "_check.c"));
    return status ? status : write_text(folder, "check.h", "", file_text("check.h", ""));
}

static qkv_status write_exercise(const char *folder, const exercise *e)
{
    if (mkdir(folder, 0777) && errno != EEXIST) return fail(QKV_IO, "%s: cannot make the folder: %s", folder, _(strerror(errno)));
    FILE *f = create(folder, e->name, ".c", "wx");
    if (!f) return QKV_IO;
    put_task(f, e);
    qkv_status status = finish(f, folder);
    if (!status) status = write_checker(folder, e);
    if (!status) status = write_text(folder, "Makefile", "", makefile);
    if (status) return status;
    printf(_("Now fill in %s/%s.c, then: qkv exercise %d --check %s/%s.c"), folder, e->name, (int)(e - exercises) + 1, folder,
           e->name);
    putchar('\n');
    return QKV_OK;
}

/* ---- checking ---- */

/* A test need not wait so long: QKV_EXERCISE_SECONDS. */
static unsigned seconds_allowed(void)
{
    const char *text = getenv("QKV_EXERCISE_SECONDS");
    long seconds = text ? strtol(text, NULL, 10) : 0;
    return seconds >= 1 && seconds < SECONDS ? (unsigned)seconds : SECONDS;
}

/* ---- Ctrl-C: what was begun is ended and taken away, then the signal does what it does ---- */

static volatile sig_atomic_t caught;

static void catch_signal(int number) { caught = number; }

/* One that is ignored, as that of a command in the background, stays so. */
static void catch_signals(void (*handle)(int number))
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    for (int i = 0; i < 3; i++)
        if (signal(numbers[i], handle) == SIG_IGN) signal(numbers[i], SIG_IGN);
}

static void end_by_signal(void)
{
    catch_signals(SIG_DFL);
    if (caught) raise(caught);
}

/* Whether a child has ended within some hundredths of a second, its wait status then in *status; -1: there is none. */
static pid_t wait_a_while(pid_t child, unsigned hundredths, bool unless_caught, int *status)
{
    const struct timespec moment = { .tv_nsec = 10000000 };
    pid_t ended = 0;
    for (; hundredths && !ended && !(unless_caught && caught); hundredths--)
        if (!(ended = waitpid(child, status, WNOHANG))) nanosleep(&moment, NULL);
    return ended;
}

/* The wait status of a child that leads a process group; when its time is up, or it has ended, so has the whole group. On a
 * signal of ours a compiler may take its own files away first. */
static int wait_for_group(pid_t child)
{
    int status = 0;
    pid_t ended = wait_a_while(child, 100 * seconds_allowed(), true, &status);
    if (!ended && caught && !kill(-child, SIGTERM)) ended = wait_a_while(child, 100, false, &status);
    kill(-child, SIGKILL);
    if (!ended) waitpid(child, &status, 0);
    if (caught) return INTERRUPTED;
    return ended < 0 ? -1 : ended ? status : TIMED_OUT;
}

/* Runs a program, which reads nothing, and gives its wait status, TIMED_OUT or INTERRUPTED; -1, reported, when it cannot be
 * started. */
static int run_program(char *const *arguments)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDONLY);
        setpgid(0, 0);
        if (nothing >= 0) dup2(nothing, STDIN_FILENO);
        alarm(seconds_allowed() + 1); /* for when the command itself is ended before it */
        execvp(arguments[0], arguments);
        _exit(NO_COMMAND);
    }
    if (child > 0) setpgid(child, child);
    int status = child < 0 ? -1 : wait_for_group(child);
    if (status == -1) fail(QKV_FAILURE, "cannot start a program: %s", _(strerror(errno)));
    return status;
}

/* One that did not come to an end of its own. */
static qkv_status tell_ended(int status, const char *file)
{
    if (status != TIMED_OUT) return QKV_FAILURE; /* which was told, or needs no words */
    return fail(QKV_FAILURE, "%s: was ended after %d seconds", file, (int)seconds_allowed());
}

static qkv_status compile(const char *folder, const exercise *e, const char *file, char *program)
{
    char include[PATH_MAX + 2], checker[PATH_MAX], path[PATH_MAX + 2];
    snprintf(path, sizeof path, "%s%s", *file == '/' ? "" : "./", file); /* no name is an option */
    snprintf(include, sizeof include, "-I%s", folder);
    if (snprintf(checker, sizeof checker, "%s/%s_check.c", folder, e->name) >= (int)sizeof checker)
        return fail(QKV_IO, "%s: the name is too long", folder);
    /* through the shell, because CC may have arguments of its own */
    char *const arguments[] = { "sh",  "-c",          "exec ${CC:-cc} \"$@\"",
                                "sh",  "-std=c11",    "-Wall",
                                "-O1", PASSED_OPTION, include,
                                "-o",  program,       "-x",
                                "c",   path,          checker,
                                "-x",  "none",        "-lm",
                                NULL };
    int status = run_program(arguments);
    if (status < 0) return tell_ended(status, file);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_COMMAND)
        return fail(QKV_UNSUPPORTED, "there is no C compiler: install one, or name one in CC");
    return status ? fail(QKV_FAILURE, "%s: does not compile", file) : QKV_OK;
}

static qkv_status run_check(const char *file, char *program)
{
    int status = run_program((char *const[]){ program, NULL });
    if (status < 0) return tell_ended(status, file);
    if (WIFEXITED(status) && WEXITSTATUS(status) == PASSED) return QKV_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_COMMAND)
        return fail(QKV_UNSUPPORTED, "the C compiler made no program: see CC");
    if (WIFEXITED(status)) return fail(QKV_FAILURE, "%s: does not pass yet; --hint helps", file);
    return fail(QKV_FAILURE, "%s: crashed: %s", file, strsignal(WTERMSIG(status)));
}

static void remove_checker(const char *folder, const exercise *e, const char *program)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s_check.c", folder, e->name), unlink(path);
    snprintf(path, sizeof path, "%s/check.h", folder), unlink(path);
    unlink(program), rmdir(folder);
}

static qkv_status check_exercise(const char *file, const exercise *e)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX - 64], program[PATH_MAX];
    struct stat about;
    if (stat(file, &about) || access(file, R_OK)) return fail(QKV_IO, "%s: cannot be read: %s", file, _(strerror(errno)));
    if (!S_ISREG(about.st_mode)) return fail(QKV_IO, "%s: expected a regular file", file);
    catch_signals(catch_signal);
    if (snprintf(folder, sizeof folder, "%s/qkv-exercise-XXXXXX", base && *base ? base : "/tmp") >= (int)sizeof folder ||
        !mkdtemp(folder))
        return fail(QKV_IO, "cannot make a folder in %s: %s", base && *base ? base : "/tmp", _(strerror(errno)));
    snprintf(program, sizeof program, "%s/program", folder);
    qkv_status status = write_checker(folder, e);
    if (!status) status = compile(folder, e, file, program);
    if (!status) status = run_check(file, program);
    remove_checker(folder, e, program);
    end_by_signal();
    return status;
}

/* ---- all of them ---- */

static void list_exercises(void)
{
    for (int i = 0; i < EXERCISES; i++) printf("  %2d  %-16s %s\n", i + 1, exercises[i].name, _(exercises[i].title));
    putchar('\n');
    say(_("\"qkv exercise 1 -o DIR\" writes a file with a hole for you to fill, \"qkv exercise 1 --check DIR/softmax.c\" "
          "checks it; "
          "--hint and --solution help."));
}

static qkv_status show_exercise(const exercise_opts *o, const exercise *e)
{
    if (o->with_solution) put_side(stdout, file_text(e->name, ".c"), true);
    if (o->with_hint) say(_("Hint: %s"), _(e->hint));
    if (o->with_solution || o->with_hint) return QKV_OK;
    say_heading(_(e->title));
    say("%s", _(e->text));
    put_side(stdout, file_text(e->name, ".c"), false);
    return QKV_OK;
}

qkv_status run_exercise(const exercise_opts *o)
{
    if (!o->number && (o->folder || o->check || o->with_hint || o->with_solution))
        return fail(QKV_USAGE, "which exercise? give its number; \"qkv exercise\" lists them");
    if (!o->number) return list_exercises(), QKV_OK;
    if (o->number > EXERCISES) return fail(QKV_USAGE, "there is no exercise %d: the last is %d", o->number, EXERCISES);
    const exercise *e = &exercises[o->number - 1];
    if (o->check) return check_exercise(o->check, e);
    return o->folder ? write_exercise(o->folder, e) : show_exercise(o, e);
}
