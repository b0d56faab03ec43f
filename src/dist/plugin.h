/* plugin.h: what libqkv needs of an MPI library, as a table that a plugin fills. The plugin alone is compiled against MPI, and
 * each MPI library has its own: their ABIs differ. All ranks call collective functions in the same order. */
#ifndef QKV_SRC_DIST_PLUGIN_H
#define QKV_SRC_DIST_PLUGIN_H

#include <stddef.h>

enum { QKV__PLUGIN_VERSION = 6 };
#define QKV__PLUGIN_SYMBOL "qkv_mpi_plugin"

/* Errors are 0 for none, else what MPI calls them, in words that stay until the next. */
typedef struct qkv__plugin {
    int version;
    /* silence: seconds after which a rank that says nothing is given up. NULL, or why not. */
    const char *(*start)(double silence, int *rank, int *ranks, const char **host, const char **library);

    /* Begins to send send_bytes[r] bytes to each rank r and to receive at most receive_bytes[r] from it; both ends know what may
     * be sent at most, here send_most[r]. A message meets one of the same tag alone, and those of a tag meet in the order they
     * were posted. NULL, with *wrong. */
    void *(*post)(const void *const *send, const size_t *send_bytes, const size_t *send_most, void *const *receive,
                  const size_t *receive_bytes, int tag, const char **wrong);

    /* Waits for the end of it. After `seconds` without one (0: for ever) it gives up, and nothing may be posted any more.
     * received[r]: how many bytes have come from each other rank r; or NULL. NULL, or what went wrong. */
    const char *(*finish)(void *posted, double seconds, size_t *received);

    /* By 1 when a thread begins to wait for what another one finishes, and by -1 when it does so no more: it looks more often. */
    void (*hurry)(int by);

    void (*stop)(void);                              /* after the last exchange, by all ranks */
    void (*abort)(int status, const char *sentence); /* ends all ranks */

    int (*is_threaded)(void); /* 1: any thread may post and finish */
} qkv__plugin;

#endif
