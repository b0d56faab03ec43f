/* peers.c: other libraries, loaded at run time so that nothing needs them. */
#include "bench.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Each is looked for where Debian keeps it, so that both can be there at once, and then by the loader. */
static const struct {
    const char *name, *set_threads, *paths[3];
} known[N_PEERS] = {
    { "OpenBLAS",
      "openblas_set_num_threads",
      { "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
        "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0", "libopenblas.so.0" } },
    { "BLIS",
      "bli_thread_set_num_threads",
      { "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4", "/usr/lib/aarch64-linux-gnu/blis-pthread/libblis.so.4",
        "libblis.so.4" } },
};

/* ISO C has no cast from void * to a function; POSIX promises that the bits are the same. */
static void find_call(void *library, const char *name, void *call)
{
    memcpy(call, &(void *){ dlsym(library, name) }, sizeof(void *));
}

static void (*blis_set_threads)(int64_t);
static void set_blis_threads(int n) { blis_set_threads(n); }

static peer load(int i)
{
    peer p = { .name = known[i].name };
    void *library = NULL;
    for (int j = 0; j < 3 && !library; j++) library = dlopen(known[i].paths[j], RTLD_NOW | RTLD_LOCAL);
    if (!library) return p;
    find_call(library, "cblas_sgemm", &p.sgemm);
    find_call(library, known[i].set_threads, &p.set_threads);
    if (i == 1 && p.set_threads) { /* BLIS counts in its own 64-bit type */
        find_call(library, known[i].set_threads, &blis_set_threads);
        p.set_threads = set_blis_threads;
    }
    if (!p.set_threads) p.sgemm = NULL; /* a figure at an unknown number of threads says nothing */
    return p;
}

const peer *load_peers(void)
{
    static peer peers[N_PEERS];
    for (int i = 0; i < N_PEERS; i++)
        if (!peers[i].name) peers[i] = load(i);
    return peers;
}
