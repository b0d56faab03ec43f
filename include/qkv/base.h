/* qkv/base.h: status codes and error messages, strings, results, hooks, options, threads.
 *
 * Threads: any function may be called from any thread. Exceptions: qkv_set_num_threads() and qkv_shutdown() must not run while
 * another thread computes. Each thread has a separate error. The thread pool serves one call at a time. A concurrent call
 * computes on its calling thread only, to the same bits. */
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

/* The version of the running library, which may be newer than the header. */
QKV_API const char *qkv_version(void);

/* ---- status ------------------------------------------------------------------------------------
 * A call that can fail returns a qkv_status, or a pointer that is NULL on error.
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

/* A short description of a status, such as "malformed file". Static text. */
QKV_API const char *qkv_status_string(qkv_status status);

/* The last error of this thread: one sentence that names the call, the shapes, the file and the offset.
 * "" before the first error. Valid until this thread's next error. */
QKV_API const char *qkv_error(void);

/* The status of qkv_error(). */
QKV_API qkv_status qkv_error_status(void);

/* Sets the error of a callback or of application code, as returned by qkv_error() and qkv_error_status(). A sentence of 1024
 * bytes or more is truncated. NULL means "". Returns status. */
QKV_API qkv_status qkv_set_error(qkv_status status, const char *sentence);

/* ---- strings -------------------------------------------------------------------------------------
 * A string owned by the caller: length bytes of UTF-8, no NUL needed. A call reads it and keeps no pointer to it.
 * { NULL, 0 } is the empty string. */
typedef struct qkv_str {
    const char *data;
    size_t length;
} qkv_str;

/* Converts a NUL-terminated string; NULL gives the empty string. */
static inline qkv_str qkv_cstr(const char *s)
{
    qkv_str string = { s, s ? strlen(s) : 0 };
    return string;
}

/* Text returned by the library: length bytes of UTF-8 and a NUL. A result. */
typedef struct qkv_text {
    const char *data; /* "" if empty, never NULL */
    size_t length;
} qkv_text;

/* ---- results -------------------------------------------------------------------------------------
 * A call that returns a struct of the library takes T **out. *out must be NULL or a result of an earlier call with the same T.
 * An earlier result is reused and its contents are overwritten. Its members are read-only. The library allocates results, so
 * members can be added in later versions. A result owns all memory that it points to. After an error *out is NULL or empty.
 * qkv_free() frees a result of any type:
 *
 *   qkv_translations *t = NULL;
 *   for (..) status = qkv_translate(m, texts, n, NULL, &t);
 *   qkv_free(t);
 *
 * NULL is allowed. A pointer that is not a result is left alone and sets USAGE in qkv_error(). */
QKV_API void qkv_free(void *result);

/* ---- hooks ---------------------------------------------------------------------------------------
 * Progress and cancellation of long calls. Each hook may be NULL. Hooks run on the thread of the call. They change no bit of a
 * result. */
typedef struct qkv_hooks {
    size_t size;
    void *data;                                    /* first argument of each hook */
    int (*cancel)(void *data);                     /* nonzero: the call ends with QKV_CANCELLED */
    void (*progress)(void *data, double done);     /* 0 to 1; negative: unknown */
    void (*warn)(void *data, const char *message); /* for example, text was repaired or skipped */
} qkv_hooks;

/* ---- options -------------------------------------------------------------------------------------
 * An option struct starts with its size and grows at its end. Zero is the default of every member. NULL options mean all zero
 * if a function allows them. QKV_OPTS gives a struct with its size set; in C it also takes members:
 *
 *   qkv_translate(m, texts, n, &QKV_OPTS(qkv_translate_opts, .beam_size = 8), &found)
 *
 * In C++: qkv_translate_opts o = QKV_OPTS(qkv_translate_opts); o.beam_size = 8;
 * Size 0 means the size in 0.2.0. USAGE for a set option that the library is too old to know, and for an invalid size. */
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
 * A thread pool shares the work. It starts with the first parallel call. The number of threads changes no bit of any result. It
 * is QKV_THREADS, else OMP_NUM_THREADS, else the number of physical cores available to this process. */
QKV_API int qkv_num_threads(void);

/* Sets the number of threads (1..QKV_MAX_THREADS; 0: choose again as at the start). Do not call while another thread computes.
 * USAGE outside that range. */
#define QKV_MAX_THREADS 256
QKV_API qkv_status qkv_set_num_threads(int n);

/* Stops the pool and frees its memory. The next parallel call restarts it. */
QKV_API void qkv_shutdown(void);

/* ---- the machine -------------------------------------------------------------------------------
 * The instruction set in use: "ref", "baseline", "avx2", "avx_vnni", "avx512", "avx512_vnni", "avx512_bf16", "amx", "neon" or
 * "neon_dot". Chosen once: QKV_ISA, else the best that the machine supports. NULL (see qkv_error()) if QKV_ISA is unknown or
 * not supported by the machine. Every tape then refuses to compute, with the same error. */
QKV_API const char *qkv_isa(void);

#ifdef __cplusplus
}
#endif
#endif
