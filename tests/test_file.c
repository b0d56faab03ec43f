/* test_file.c: what writing to a path does: to a file, through links, into a pipe or a terminal; and error sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/file.h"
#include "failing.h"
#include "folder.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <sys/stat.h>
#include <termios.h>

static const char text[] = "what is written", old[] = "the old file";
enum { SIZE = sizeof text - 1 };

static void put(const char *path, const char *words)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(words, f);
    assert_int_equal(fclose(f), 0);
}

static void holds(const char *path, const char *words)
{
    char found[256] = "";
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_true(fread(found, 1, sizeof found - 1, f) > 0);
    fclose(f);
    assert_string_equal(found, words);
}

static mode_t kind_of(const char *path)
{
    struct stat about = { 0 };
    return lstat(path, &about) ? 0 : about.st_mode & S_IFMT;
}

static ino_t inode_of(const char *path)
{
    struct stat about = { 0 };
    assert_int_equal(stat(path, &about), 0);
    return about.st_ino;
}

static int names_in(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; (e = readdir(d));) n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

static void arrives(int fd)
{
    char found[256] = "";
    assert_int_equal(read(fd, found, sizeof found - 1), SIZE);
    assert_string_equal(found, text);
}

/* ---- what is no regular file is written into ---- */

static void into_a_pipe(void **state)
{
    (void)state;
    const char *pipe = in_folder("pipe"), *link = in_folder("to-pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink("pipe", link), 0);
    int reader = open(pipe, O_RDWR | O_NONBLOCK); /* a pipe with a reader is opened at once, and holds 64 KB */
    assert_true(reader >= 0);
    const char *const paths[] = { pipe, link };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(qkv_file_writable(paths[i]), QKV_OK);
        assert_int_equal(qkv_file_write(paths[i], text, SIZE), QKV_OK);
        arrives(reader);
    }
    assert_true(kind_of(pipe) == S_IFIFO && kind_of(link) == S_IFLNK);
    assert_int_equal(names_in(folder), 2);
    close(reader);
    unlink(pipe);
    unlink(link);
}

static void into_a_terminal(void **state)
{
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal)) skip();
    const char *path = ptsname(terminal);
    int other = open(path, O_RDWR | O_NOCTTY); /* so that it stays after the write */
    if (other < 0) skip();
    assert_int_equal(qkv_file_writable(path), QKV_OK);
    assert_int_equal(qkv_file_write(path, text, SIZE), QKV_OK);
    arrives(terminal);
    assert_true(kind_of(path) == S_IFCHR);
    close(other);
    close(terminal);
}

/* A path such as /dev/stdout stands for a file that is open already: it goes on where it is. */
static void into_an_open_file(void **state)
{
    (void)state;
    char path[64];
    const char *log = in_folder("log");
    put(log, old);
    int fd = open(log, O_WRONLY | O_APPEND);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (kind_of(path) != S_IFLNK) skip();
    assert_int_equal(qkv_file_writable(path), QKV_OK);
    assert_int_equal(qkv_file_write(path, text, SIZE), QKV_OK);
    holds(log, "the old filewhat is written");
    assert_int_equal(unlink(log), 0);
    assert_int_equal(qkv_file_write(path, text, SIZE), QKV_OK); /* a file without a name stays without */
    assert_int_equal(names_in(folder), 0);
    close(fd);
}

/* ---- links stay ---- */

/* folder/link -> folder/far/second -> first -> far/target */
static void make_links(void)
{
    char far[256];
    mkdir(in_folder("far"), 0700);
    snprintf(far, sizeof far, "%s/far/second", folder);
    assert_int_equal(symlink(far, in_folder("link")), 0);
    assert_int_equal(symlink("first", in_folder("far/second")), 0);
    assert_int_equal(symlink("../far/target", in_folder("far/first")), 0);
}

static void remove_links(void)
{
    static const char *const names[] = { "link", "far/second", "far/first", "far/target", "far" };
    for (int i = 0; i < 5; i++) remove(in_folder(names[i]));
    assert_int_equal(names_in(folder), 0);
}

static void through_links(void **state)
{
    (void)state;
    make_links();
    for (int i = 0; i < 2; i++) { /* at first they lead to nothing */
        if (i) put(in_folder("far/target"), old);
        ino_t before = i ? inode_of(in_folder("far/target")) : 0;
        assert_int_equal(qkv_file_writable(in_folder("link")), QKV_OK);
        assert_int_equal(qkv_file_write(in_folder("link"), text, SIZE), QKV_OK);
        holds(in_folder("far/target"), text);
        assert_true(kind_of(in_folder("link")) == S_IFLNK && kind_of(in_folder("far/first")) == S_IFLNK);
        assert_true(kind_of(in_folder("far/target")) == S_IFREG && inode_of(in_folder("link")) != before);
        assert_true(names_in(folder) == 2 && names_in(in_folder("far")) == 3);
    }
    remove_links();
}

/* The file at their end is the old one or the new one, whatever call fails. */
static void any_call_may_fail(void **state)
{
    (void)state;
    make_links();
    for (long n = 0;; n++) {
        put(in_folder("far/target"), old);
        use_failing_files(n);
        qkv_status status = qkv_file_write(in_folder("link"), text, SIZE);
        qkv__set_files(NULL);
        holds(in_folder("link"), failing.renamed ? text : old);
        assert_true(names_in(in_folder("far")) == 3 && failing.open == 0);
        if (failing.failed) continue;
        assert_int_equal(status, QKV_OK);
        assert_true(n > 6);
        break;
    }
    remove_links();
}

/* ---- refused ---- */

static void refuses(const char *path, qkv_status wanted, const char *words)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(i ? qkv_file_write(path, text, SIZE) : qkv_file_writable(path), wanted);
        if (!strstr(qkv_error(), words)) fail_msg("\"%s\" is missing in: %s", words, qkv_error());
    }
}

static void paths_that_take_nothing(void **state)
{
    (void)state;
    static char long_path[5000];
    memset(long_path, '/', sizeof long_path - 1);
    assert_int_equal(symlink("round", in_folder("round")), 0);
    assert_int_equal(symlink(".", in_folder("here")), 0);
    refuses(folder, QKV_IO, "it is a folder");
    refuses(in_folder("here"), QKV_IO, "it is a folder");
    refuses(in_folder("round"), QKV_IO, "symbolic links");
    refuses(in_folder("none/file"), QKV_IO, "none/file: cannot");
    refuses(long_path, QKV_LIMIT, "longer than 4095 bytes");
    refuses(NULL, QKV_USAGE, "path");
    assert_int_equal(names_in(folder), 2);
    unlink(in_folder("round"));
    unlink(in_folder("here"));
}

/* ---- what is no regular file is not read as one ---- */

static void pipes_and_devices_are_not_waited_for(void **state)
{
    (void)state;
    static const char *const names[] = { "pipe", "endless", "." };
    qkv__bytes bytes;
    alarm(20); /* a pipe without a writer would be waited for */
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(symlink("/dev/zero", in_folder("endless")), 0);
    for (int i = 0; i < 3; i++)
        for (int how = 0; how < 2; how++) {
            const char *path = in_folder(names[i]);
            use_failing_files(-1);
            assert_int_equal(how ? qkv__file_map(path, &bytes) : qkv__file_read(path, SIZE_MAX, &bytes), QKV_IO);
            assert_non_null(strstr(qkv_error(), i < 2 ? "it is a pipe or a device" : "it is a folder"));
            assert_true(!bytes.data && !failing.open && qkv__file_exists(path));
            qkv__set_files(NULL);
        }
    alarm(0);
    unlink(in_folder("pipe"));
    unlink(in_folder("endless"));
}

/* ---- a file is on the disk before it has its name ---- */

static char calls[64];
static int written, synced;

static void note(char call) { calls[strlen(calls)] = call; }

static ssize_t noted_write(int fd, const void *from, size_t bytes)
{
    note('w');
    written = fd;
    return write(fd, from, bytes);
}

static int noted_fsync(int fd)
{
    struct stat about;
    assert_int_equal(fstat(fd, &about), 0);
    note(S_ISDIR(about.st_mode) ? 'F' : 's');
    if (!S_ISDIR(about.st_mode)) synced = fd;
    return fsync(fd);
}

static int noted_rename(const char *from, const char *to)
{
    note('r');
    return rename(from, to);
}

static void synced_before_renamed(void **state)
{
    (void)state;
    qkv__files table = { failing_open,   failing_read,    noted_write,     noted_fsync,       failing_close,
                         noted_rename,   failing_unlink,  failing_mkdir,   failing_fallocate, failing_mmap,
                         failing_munmap, failing_opendir, failing_readdir, failing_closedir };
    failing = (struct failing){ .fail_at = -1 };
    qkv__set_files(&table);
    qkv_status status = qkv_file_write(in_folder("file"), text, SIZE);
    qkv__set_files(NULL);
    assert_int_equal(status, QKV_OK);
    assert_string_equal(calls, "wsrF"); /* written, synced, renamed, and the folder synced */
    assert_true(written == synced);
    unlink(in_folder("file"));
}

/* ---- the sentence of an error ---- */

/* Cut wherever it is cut, it ends between two characters and loses no more than the one that has no room. */
static void cut_between_characters(void **state)
{
    (void)state;
    static const char *const characters[] = { "a", "\u00e9", "\u7231", "\U0001F600" };
    for (int i = 0; i < 4; i++)
        for (int shift = 0; shift < 8; shift++) {
            char words[3 * QKV_SENTENCE_MAX] = "";
            memset(words, '.', (size_t)shift);
            while (strlen(words) < 2 * QKV_SENTENCE_MAX) strcat(words, characters[i]);
            qkv__fail(QKV_IO, "%s", words);
            size_t length = strlen(qkv_error());
            assert_int_equal(qkv_utf8_valid(qkv_error(), length), length);
            assert_true(length < QKV_SENTENCE_MAX && length + 1 + strlen(characters[i]) > QKV_SENTENCE_MAX);
            assert_memory_equal(qkv_error(), words, length);
            qkv__fail_again(QKV_IO, words);
            assert_int_equal(strlen(qkv_error()), length);
        }
    qkv__fail(QKV_IO, "\u7231"); /* one that is whole keeps its last character */
    assert_string_equal(qkv_error(), "\u7231");
}

static void the_file_at_an_address(void **state)
{
    (void)state;
    char path[4096], cut[8];
    qkv__bytes file;
    assert_int_equal(qkv__file_map("/proc/self/exe", &file), QKV_OK);
    assert_int_equal(qkv_mapped_file(file.data + file.size / 2, path, sizeof path), 1);
    assert_non_null(strstr(path, "test_file"));
    assert_int_equal(qkv_mapped_file(file.data, cut, sizeof cut), 1);
    assert_true(strlen(cut) == 7 && !strncmp(cut, path, 7));
    qkv__bytes_free(&file);
    assert_int_equal(qkv_mapped_file(path, cut, sizeof cut), 0); /* the stack */
    assert_int_equal(qkv_mapped_file(NULL, path, sizeof path), 0);
    assert_string_equal(path, "");
}

/* What was written tells whether a page was let go: it is the file's again. Bytes that were read have no file behind them. */
static void pages_that_are_forgotten(void **state)
{
    (void)state;
    qkv__bytes file, copy;
    assert_int_equal(qkv__file_map("/proc/self/exe", &file), QKV_OK);
    assert_int_equal(qkv__file_read("/proc/self/exe", SIZE_MAX, &copy), QKV_OK);
    file.data[file.size / 2] ^= 1;
    qkv__bytes_forget(&file);
    qkv__bytes_forget(&copy);
    assert_int_equal(file.size, copy.size);
    assert_memory_equal(file.data, copy.data, file.size);
    qkv__bytes_free(&file);
    qkv__bytes_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_that_are_forgotten),
        cmocka_unit_test(the_file_at_an_address),
        cmocka_unit_test(into_a_pipe),
        cmocka_unit_test(into_a_terminal),
        cmocka_unit_test(into_an_open_file),
        cmocka_unit_test(through_links),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(paths_that_take_nothing),
        cmocka_unit_test(pipes_and_devices_are_not_waited_for),
        cmocka_unit_test(synced_before_renamed),
        cmocka_unit_test(cut_between_characters),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
