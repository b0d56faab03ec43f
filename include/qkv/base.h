/* qkv/base.h: status codes and the error sentence, strings, results, options, hooks, threads.
 *
 * Threads: any function from any thread, except qkv_set_num_threads() and qkv_shutdown(): not while another thread computes. The error is one for each thread. One call at a time has the pool of threads; another one that comes
 * meanwhile computes on its own thread alone, to the same bits. */
#ifndef QKV_BASE_H
#define QKV_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QKV_API __attribute__((visibility("default")))
#define QKV_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define QKV_API
#define QKV_PRINTF(text, first)
#endif

#define QKV_VERSION_MAJOR 0
#define QKV_VERSION_MINOR 1
#define QKV_VERSION_PATCH 0
#define QKV_VERSION_STRING "0.1.0"

/* The version of the library that runs, which may be newer than the header's. */
QKV_API const char *qkv_version(void);

/* ---- status ------------------------------------------------------------------------------------
 * Every call that can fail gives a qkv_status, or NULL where it gives a pointer.
 * The numbers are also the exit codes of the command. */
#define QKV_STATUS_LIST(S)                 \
    S(OK, 0, "ok")                         \
    S(FAILURE, 1, "failure")               \
    S(USAGE, 2, "wrong argument or shape") \
    S(IO, 3, "input/output error")         \
    S(FORMAT, 4, "malformed file")         \
    S(UNSUPPORTED, 5, "unsupported")       \
    S(LIMIT, 6, "over a limit")            \
    S(MEMORY, 7, "out of memory")          \
    S(NUMERIC, 8, "not a finite number")   \
    S(CANCELLED, 9, "cancelled")

#define QKV_STATUS_ENUM(name, number, words) QKV_##name = number,
typedef enum qkv_status { QKV_STATUS_LIST(QKV_STATUS_ENUM) QKV_STATUS_COUNT } qkv_status;
#undef QKV_STATUS_ENUM

/* A few words for a status, such as "malformed file". Static text. */
QKV_API const char *qkv_status_string(qkv_status status);

/* The last error of this thread: one sentence that names the call, the shapes, the file and the offset.
 * "" when nothing has failed yet. Valid until this thread's next error. */
QKV_API const char *qkv_error(void);

/* The status that belongs to qkv_error(). */
QKV_API qkv_status qkv_error_status(void);

/* The error of a callback or of a program's own code: what qkv_error() and qkv_error_status() give from now on. A sentence of
 * 1024 bytes or more is cut. NULL is "". Returns status. */
QKV_API qkv_status qkv_set_error(qkv_status status, const char *sentence);

/* ---- strings -------------------------------------------------------------------------------------
 * A string that the caller owns: length bytes of UTF-8, no NUL needed. A call reads it and keeps no pointer to it.
 * { NULL, 0 } is the empty string. */
typedef struct qkv_str {
    const char *data;
    size_t length;
} qkv_str;

/* A string that ends with NUL; NULL gives the empty one. */
static inline qkv_str qkv_cstr(const char *s)
{
    qkv_str string = { s, s ? strlen(s) : 0 };
    return string;
}

/* Text that the library returns: length bytes of UTF-8 and a NUL. A result. */
typedef struct qkv_text {
    const char *data; /* "" while empty, never NULL */
    size_t length;
} qkv_text;

/* ---- results -------------------------------------------------------------------------------------
 * A call that returns a struct of the library's takes T **out. *out is NULL, or a result of an earlier call with the same T,
 * which is used again: its old contents are gone. Read its members only; the library allocates it, so that members can be added.
 * All memory that a result points to is its own. After an error *out is NULL or empty. qkv_free() frees a result of any type:
 *
 *   qkv_translations *t = NULL;
 *   for (..) status = qkv_translate(m, texts, n, NULL, &t);
 *   qkv_free(t);
 *
 * NULL is allowed. A pointer that is no result is left as it is, with USAGE in qkv_error(). */
QKV_API void qkv_free(void *result);

/* ---- hooks ---------------------------------------------------------------------------------------
 * Long calls report and can be cancelled. All are called on the thread of the call; each may be NULL. They change no bit of a
 * result. */
typedef struct qkv_hooks {
    size_t size;
    void *data;                                    /* first argument of each */
    int (*cancel)(void *data);                     /* nonzero: the call ends with QKV_CANCELLED */
    void (*progress)(void *data, double done);     /* 0 to 1; negative: unknown */
    void (*warn)(void *data, const char *message); /* text repaired or left out, .. */
} qkv_hooks;

/* ---- options -------------------------------------------------------------------------------------
 * Option structs start with their size and grow at their end; zero is the default of every member, and NULL options are all
 * zero where a function allows them. QKV_OPTS gives a struct with its size set, in C with members:
 *
 *   qkv_translate(m, texts, n, &QKV_OPTS(qkv_translate_opts, .beam_size = 8), &found)
 *
 * In C++: qkv_translate_opts o = QKV_OPTS(qkv_translate_opts); o.beam_size = 8;
 * A size of 0 is that of 0.2.0. USAGE for an option that is set and that the library is too old to know, and for a size that
 * no struct has. */
#ifdef __cplusplus
} /* a template has no C linkage */
template <class T> inline T qkv_options_of_size()
{
    T options = T();
    options.size = sizeof(T);
    return options;
}
extern "C" {
#define QKV_OPTS(type) (qkv_options_of_size<type>())
#else
#define QKV_OPTS(...) QKV_OPTS_LIST(__VA_ARGS__, )
#define QKV_OPTS_LIST(type, ...) ((type){ .size = sizeof(type), __VA_ARGS__ })
#endif

/* ---- threads -----------------------------------------------------------------------------------
 * Work is shared by a pool of threads that starts with the first parallel call. How many there are never changes
 * a bit of any result. The count is QKV_THREADS, else OMP_NUM_THREADS, else the number of physical cores this process
 * may run on. */
QKV_API int qkv_num_threads(void);

/* Uses n threads from now on (1..QKV_MAX_THREADS; 0: choose again as at the start). Not while another thread computes.
 * USAGE outside that range. */
#define QKV_MAX_THREADS 256
QKV_API qkv_status qkv_set_num_threads(int n);

/* Ends the pool and gives back its memory; the next parallel call starts it again. */
QKV_API void qkv_shutdown(void);

/* ---- the machine -------------------------------------------------------------------------------
 * The instruction set in use: "ref", "baseline", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx", "neon" or
 * "neon_dot".
 * Chosen once: the best the machine has, or QKV_ISA. NULL (see qkv_error) when QKV_ISA names one that is unknown or that the
 * machine lacks: then every tape refuses to compute, with the same sentence. */
QKV_API const char *qkv_isa(void);

#ifdef __cplusplus
}
#endif
#endif
