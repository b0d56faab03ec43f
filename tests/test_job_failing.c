/* test_job_failing.c: a training from files whose memory or files fail once, at each of its calls in turn: an error, nothing held,
 * and a folder that the next run can use. */
#include <qkv/qkv.h>
#include "recipe/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"

enum { LINES = 24 };

static int make_texts(void **state)
{
    if (make_folder(state)) return -1;
    FILE *pairs = fopen(in_folder("pairs.tsv"), "w"), *labels = fopen(in_folder("labels.tsv"), "w");
    if (!pairs || !labels) return -1;
    for (int i = 0; i < LINES; i++) {
        fprintf(pairs, "a%d b c\tc b a%d\n", i % 9, i % 9);
        fprintf(labels, "%c\ta%d b c\n", i % 2 ? 'x' : i % 6 ? 'y' : 'Y', i % 9);
    }
    return fclose(pairs) | fclose(labels);
}

static bool exists(const char *path)
{
    FILE *f = fopen(in_folder(path), "rb");
    if (f) fclose(f);
    return f != NULL;
}

static const char *job, *out; /* what train_once() does */

/* Goes on where the folder holds a training already. */
static qkv_status train_once(void)
{
    static const char *const options[] = { "layers", "1",     "dim",        "8",           "heads", "1",          "inner",
                                           "8",      "steps", "3",          "valid-every", "2",     "save-every", "1",
                                           "tokens", "words", "max-tokens", "64",          "split", "0.25",       NULL };
    char record[128];
    const char *path = in_folder(strcmp(job, "classify") ? "pairs.tsv" : "labels.tsv");
    qkv_training *t = qkv_training_new(job);
    if (!t) return qkv_error_status();
    snprintf(record, sizeof record, "%s/training.json", out);
    if (exists(record)) qkv_training_set(t, "resume", "yes");
    for (int i = 0; options[i]; i += 2) qkv_training_set(t, options[i], options[i + 1]);
    if (!strcmp(job, "generate") || !strcmp(job, "mask")) qkv_training_set(t, "documents", "lines");
    if (!strcmp(job, "classify")) qkv_training_set(t, "merge-labels", "yes");
    qkv_training_set(t, "train", path);
    qkv_training_set(t, "out", in_folder(out));
    qkv_status status = qkv_training_run(t, NULL, NULL);
    qkv_training_free(t);
    return status;
}

static char *contents(const char *name, const char *file, size_t *n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", name, file);
    FILE *f = fopen(in_folder(path), "rb");
    assert_non_null(f);
    char *bytes = calloc(1, 1 << 20);
    *n = fread(bytes, 1, (1 << 20) - 1, f);
    fclose(f);
    return bytes;
}

static void assert_same_training(const char *a, const char *b)
{
    static const char *const files[] = { "model.safetensors", "checkpoint.safetensors", "config.json", "tokenizer.json" };
    for (int i = 0; i < 4; i++) {
        size_t n, m;
        char *x = contents(a, files[i], &n), *y = contents(b, files[i], &m);
        assert_true(n > 0 && n == m && !memcmp(x, y, n));
        free(x);
        free(y);
    }
}

static void assert_trains(void)
{
    if (train_once()) fail_msg("%s, in %s: %s", job, out, qkv_error());
}

/* The n-th folder of a job, as yet unused. */
static const char *fresh_folder(const char *kind, long n)
{
    static char name[64];
    snprintf(name, sizeof name, "%s-%s-%ld", job, kind, n);
    return name;
}

/* Which calls fail: of the first job every one, of the others all of the first, and then fewer of what is alike. */
static long next_call(int j, long n) { return n + 1 + (j ? n / 8 : 0); }

/* Most failures leave no folder; the others one in which the same comes out. */
static void assert_can_go_on(void)
{
    if (!exists(out)) return;
    assert_trains();
    assert_same_training(job, out);
}

static const char *const jobs[] = { "mask", "translate", "classify", "generate" };

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    const qkv__memory table = { failing_alloc, failing_release };
    for (int j = 0; j < 4; j++) {
        job = jobs[j];
        out = job;
        assert_trains();
        bool fails = true;
        for (long n = 0; fails; n = next_call(j, n)) {
            out = fresh_folder("memory", n);
            qkv_shutdown();
            failing = (struct failing){ .fail_at = n };
            qkv__set_memory(&table);
            qkv_status status = train_once();
            qkv_shutdown();
            fails = failing.failed;
            if (failing.held || status != (fails ? QKV_MEMORY : QKV_OK))
                fail_msg("%s, call %ld: %zu bytes are held, status %d", job, n, failing.held, status);
            failing.fail_at = -1;
            qkv__set_memory(NULL);
            assert_can_go_on();
        }
    }
}

static void use_failing_calls(long n)
{
    const qkv__files table = { failing_open,   failing_read,    whole_write,     failing_fsync,     failing_close,
                               failing_rename, failing_unlink,  failing_mkdir,   failing_fallocate, failing_mmap,
                               failing_munmap, failing_opendir, failing_readdir, failing_closedir };
    failing = (struct failing){ .fail_at = n };
    qkv__set_files(&table);
}

/* A call whose result does not matter, such as the end of a file that was read, may fail unseen. Any error will do: a file that
 * cannot be opened might be a training's. */
static void files_may_fail_anywhere(void **state)
{
    (void)state;
    for (int j = 0; j < 4; j++) {
        job = jobs[j];
        bool fails = true;
        long errors = 0;
        for (long n = 0; fails; n = next_call(j, n)) {
            out = fresh_folder("files", n);
            use_failing_calls(n);
            qkv_status status = train_once();
            fails = failing.failed;
            errors += status != QKV_OK;
            if (failing.open || failing.mapped || (status && !fails))
                fail_msg("%s, call %ld: %d files are open, %zu bytes mapped, status %d: %s", job, n, failing.open,
                         failing.mapped, status, qkv_error());
            qkv__set_files(NULL);
            assert_can_go_on();
        }
        assert_true(errors > 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(files_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, make_texts, remove_folder);
}
