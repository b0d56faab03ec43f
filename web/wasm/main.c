/* main.c: the engine as a page's worker calls it. One thread, one model, one request at a time. */
#include "../../app/engine/engine.h"
#include "../../src/base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(name), used))

static qkv_model *model;
static qkv__engine *engine;
static qkv_buffer answer;

/* The comparison of the sort that is going on: sorts are not nested. */
static int (*compare_with_data)(const void *, const void *, void *);
static void *compared_data;
static int compare_two(const void *a, const void *b) { return compare_with_data(a, b, compared_data); }

void qsort_r(void *base, size_t n, size_t size, int (*compare)(const void *, const void *, void *), void *data)
{
    compare_with_data = compare;
    compared_data = data;
    qsort(base, n, size, compare_two);
}

/* A file is mapped by reading it; anonymous pages are zero. */
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t from)
{
    enum { PAGE = 4096 };
    char *memory = flags & MAP_SHARED ? NULL : aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    (void)at, (void)protection;
    if (memory && (flags & MAP_ANONYMOUS)) return memset(memory, 0, bytes);
    for (size_t done = 0; memory && done < bytes;) {
        ssize_t got = pread(fd, memory + done, bytes - done, from + (off_t)done);
        if (got > 0) done += (size_t)got;
        else free(memory), memory = NULL;
    }
    return memory ? memory : MAP_FAILED;
}
int munmap(void *at, size_t bytes) { return (void)bytes, free(at), 0; }

/* The system has no pages to be advised of. */
int madvise(void *memory, size_t bytes, int advice) { return (void)memory, (void)bytes, (void)advice, 0; }

/* Room for bytes that the worker writes: a name, a request. */
EXPORT("room") void *room(size_t bytes) { return malloc(bytes); }
EXPORT("give_back") void give_back(void *memory) { free(memory); }

/* Models that a training kept may lie beside it. */
static void find_checkpoints(void)
{
    static const char list[] = "/model/checkpoints.json";
    qkv__bytes kept = { 0 };
    if (qkv__file_exists(list) && !qkv__file_read(list, 1 << 20, &kept))
        qkv__engine_set_checkpoints(engine, "/model", (const char *)kept.data, kept.size);
    qkv__bytes_free(&kept);
}

/* Loads the folder that the worker shows as /model. The status; error() says why. */
EXPORT("load") int load_model(const char *name)
{
    qkv_set_num_threads(1);
    model = qkv_model_load("/model", &QKV_OPTS(qkv_load_opts, .dtype = QKV_DTYPE_F32)); /* to be read fast */
    if (!model) model = qkv_model_load("/model", NULL); /* of few bits, or memory is too small */
    engine = model ? qkv__engine_new(model, name) : NULL;
    if (engine) find_checkpoints();
    return engine ? QKV_OK : (int)qkv_error_status();
}
EXPORT("error") const char *last_error(void) { return qkv_error(); }

/* Answers a request; the answer lies at answer_text() and has answer_length() bytes, until the next one. */
EXPORT("ask") int ask(const char *request, size_t length) { return (int)qkv__engine_request(engine, request, length, &answer); }
EXPORT("answer_text") const char *answer_text(void) { return answer.data; }
EXPORT("answer_length") size_t answer_length(void) { return answer.length; }
