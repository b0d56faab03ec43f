/* dist.c: the ranks: which plugin speaks for them, what they agree on when they start, and how bytes go between them. */
#include "dist.h"

#include <qkv/unstable/util.h>

#include "plugin.h"

#include "../base/memory.h"
#include "../base/buffer.h"
#include "../base/pool.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 256 };
enum { DATA, SOME, END }; /* tags: a rank that ends early is not taken for one that computes */

static struct {
    const qkv__plugin *plugin; /* NULL: alone */
    int rank, ranks;
    qkv_dist_info info;
    /* of an exchange, a place for each rank */
    const void **send;
    void **receive;
    size_t *send_bytes, *receive_bytes;
    /* the same of qkv__dist_post_some(), which another thread may call meanwhile */
    const void **some;
    size_t *some_bytes, *some_most, *receive_most;
    size_t bytes; /* of all eight, one allocation */
} dist = { .ranks = 1, .info = { .ranks = 1, .library = "", .host = "" } };

int qkv_dist_rank(void) { return dist.rank; }
int qkv_dist_size(void) { return dist.ranks; }
const qkv_dist_info *qkv_dist_get_info(void) { return &dist.info; }

/* ---- the plugin ---- */

static const char *const plugins[] = { "openmpi", "mpich" };
enum { PLUGINS = sizeof plugins / sizeof *plugins };

/* Beside the library; for a program that holds the library, where both are installed or built. */
static bool plugin_path(const char *name, char path[4096])
{
    static const char *const places[] = { "", "/../" QKV_LIBDIR, "/../src" };
    Dl_info own;
    if (!dladdr((void *)(uintptr_t)qkv_dist_init, &own) || !own.dli_fname) return false;
    const char *slash = strrchr(own.dli_fname, '/');
    int folder = slash ? (int)(slash - own.dli_fname) : 1;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, 4096, "%.*s%s/libqkv-mpi-%s.so", folder, slash ? own.dli_fname : ".", places[i], name) < 4096 &&
            !access(path, R_OK))
            return true;
    return false;
}

const char *qkv_dist_plugin(int i)
{
    char path[4096];
    for (int k = 0; i >= 0 && k < PLUGINS; k++)
        if (plugin_path(plugins[k], path) && !i--) return plugins[k];
    return NULL;
}

/* The MPI library whose launcher started this process; NULL: none did. Slurm alone says nothing: a batch script has its variables
 * too, and is no rank. */
static const char *launched_by(void)
{
    const char *wish = getenv("QKV_MPI");
    if (wish && *wish) return strcmp(wish, "none") ? wish : NULL;
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK")) return "openmpi";
    if (getenv("PMI_SIZE") || getenv("PMI_RANK")) return "mpich";
    return NULL;
}

/* MPI libraries load parts of their own, which look for its names among all: RTLD_GLOBAL. */
static const qkv__plugin *load_plugin(const char *name)
{
    char path[4096];
    bool known = false;
    for (int i = 0; i < PLUGINS; i++) known = known || !strcmp(name, plugins[i]);
    if (!known) return qkv__fail(QKV_USAGE, "QKV_MPI is \"%.40s\", expected openmpi, mpich or none", name), NULL;
    void *file = plugin_path(name, path) ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    const qkv__plugin *p = file ? dlsym(file, QKV__PLUGIN_SYMBOL) : NULL;
    if (p && p->version == QKV__PLUGIN_VERSION) return p;
    const char *why = p ? "it is of another version" : dlerror();
    qkv__fail(QKV_UNSUPPORTED, "several ranks need the plugin of %s, which cannot be loaded: %.500s (QKV_MPI=none: stay alone)",
              name, why ? why : "not found");
    return NULL;
}

/* ---- bytes between ranks ---- */

/* What others have sent may still arrive, in weights too, until all ranks end. */
static qkv_status mpi_failed(const char *why)
{
    if (!why) return QKV_OK;
    qkv__keep_memory();
    return qkv__fail(QKV_IO, "rank %d on %.200s: MPI: %.400s", dist.rank, dist.info.host, why);
}

static const char *exchange(const void *const *send, const size_t *send_bytes, void *const *receive,
                            const size_t *receive_bytes, double seconds, int tag)
{
    const char *wrong = NULL;
    void *posted = dist.plugin->post(send, send_bytes, send_bytes, receive, receive_bytes, tag, &wrong);
    return posted ? dist.plugin->finish(posted, seconds, NULL) : wrong;
}

qkv_status qkv__dist_post(const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                          void **posted)
{
    const char *wrong = NULL;
    *posted = dist.plugin ? dist.plugin->post(send, send_bytes, send_bytes, receive, receive_bytes, DATA, &wrong) : NULL;
    if (!dist.plugin && receive_bytes[0]) memmove(receive[0], send[0], receive_bytes[0]);
    return mpi_failed(wrong);
}

qkv_status qkv__dist_finish(void *posted) { return posted ? mpi_failed(dist.plugin->finish(posted, 0, NULL)) : QKV_OK; }

qkv_status qkv__dist_post_some(const void *own, size_t bytes, void *const *others, const size_t *most, void **posted)
{
    const char *wrong = NULL;
    *posted = NULL;
    if (!dist.plugin) return QKV_OK;
    for (int r = 0; r < dist.ranks; r++) {
        bool is_other = r != dist.rank;
        dist.some[r] = own;
        dist.some_bytes[r] = is_other ? bytes : 0;
        dist.some_most[r] = is_other ? most[dist.rank] : 0;
        dist.receive_most[r] = is_other ? most[r] : 0;
    }
    *posted = dist.plugin->post(dist.some, dist.some_bytes, dist.some_most, others, dist.receive_most, SOME, &wrong);
    return mpi_failed(wrong);
}

qkv_status qkv__dist_finish_some(void *posted, size_t *received)
{
    return posted ? mpi_failed(dist.plugin->finish(posted, 0, received)) : QKV_OK;
}

qkv_status qkv__dist_exchange(const void *const *send, const size_t *send_bytes, void *const *receive,
                              const size_t *receive_bytes)
{
    void *posted;
    qkv_status status = qkv__dist_post(send, send_bytes, receive, receive_bytes, &posted);
    return status ? status : qkv__dist_finish(posted);
}

static const char *spread_equal(const void *own, size_t bytes, void *all, double seconds, int tag)
{
    for (int r = 0; r < dist.ranks; r++) {
        dist.send[r] = own;
        dist.receive[r] = (char *)all + (size_t)r * bytes;
        dist.send_bytes[r] = dist.receive_bytes[r] = bytes;
    }
    return exchange(dist.send, dist.send_bytes, dist.receive, dist.receive_bytes, seconds, tag);
}

qkv_status qkv__dist_share(const void *own, size_t bytes, void *all)
{
    if (dist.plugin) return mpi_failed(spread_equal(own, bytes, all, 0, DATA));
    memmove(all, own, bytes);
    return QKV_OK;
}

qkv_status qkv__dist_post_join(void *array, const size_t *ends, void **posted)
{
    *posted = NULL;
    if (!dist.plugin) return QKV_OK;
    size_t own = dist.rank ? ends[dist.rank - 1] : 0;
    for (int r = 0; r < dist.ranks; r++) {
        size_t from = r ? ends[r - 1] : 0;
        bool is_other = r != dist.rank;
        dist.send[r] = (char *)array + own;
        dist.send_bytes[r] = is_other ? ends[dist.rank] - own : 0;
        dist.receive[r] = (char *)array + from;
        dist.receive_bytes[r] = is_other ? ends[r] - from : 0;
    }
    return qkv__dist_post(dist.send, dist.send_bytes, dist.receive, dist.receive_bytes, posted);
}

qkv_status qkv__dist_join(void *array, const size_t *ends)
{
    void *posted;
    qkv_status status = qkv__dist_post_join(array, ends, &posted);
    return status ? status : qkv__dist_finish(posted);
}

qkv_status qkv__dist_copy(void *bytes, size_t n)
{
    if (!dist.plugin) return QKV_OK;
    for (int r = 0; r < dist.ranks; r++) {
        dist.send[r] = bytes;
        dist.receive[r] = bytes;
        dist.send_bytes[r] = dist.rank == 0 ? n : 0;
        dist.receive_bytes[r] = r == 0 ? n : 0;
    }
    return qkv__dist_exchange(dist.send, dist.send_bytes, dist.receive, dist.receive_bytes);
}

qkv_status qkv__dist_agree(const void *bytes, size_t n, const char *what)
{
    char *all = qkv__alloc((size_t)dist.ranks * n);
    qkv_status status = all ? qkv__dist_share(bytes, n, all) : QKV_MEMORY;
    for (int r = 1; !status && r < dist.ranks; r++)
        if (memcmp(all, all + (size_t)r * n, n))
            status = qkv__fail(QKV_USAGE, "rank %d has other bytes of %s than rank 0: all ranks must read the same files", r,
                               what);
    qkv__release(all, (size_t)dist.ranks * n);
    return status;
}

bool qkv__dist_is_threaded(void) { return dist.plugin && dist.plugin->is_threaded(); }

void qkv__dist_hurry(int by)
{
    if (dist.plugin) dist.plugin->hurry(by);
}

/* ---- texts ---- */

static qkv_status make_room(qkv_buffer *t, size_t n)
{
    qkv__buffer_clear(t);
    qkv_status status = qkv__grow((void **)&t->data, &t->capacity, n + 1);
    if (status) return status;
    t->length = n;
    t->data[n] = '\0';
    return QKV_OK;
}

qkv_status qkv_dist_broadcast(qkv_buffer *text)
{
    if (!text) return qkv__fail(QKV_USAGE, "ranks: there is no text to share");
    size_t n = text->length;
    qkv_status status = qkv__dist_copy(&n, sizeof n);
    if (!status && dist.rank) status = make_room(text, n);
    return status || !n ? status : qkv__dist_copy(text->data, n);
}

qkv_status qkv_dist_scatter(const qkv_buffer *parts, qkv_buffer *own)
{
    if (!own || (!dist.rank && !parts)) return qkv__fail(QKV_USAGE, "ranks: there is nothing to scatter, or no place for it");
    size_t table = (size_t)dist.ranks * sizeof(size_t), *sizes = qkv__alloc(table);
    if (!sizes) return QKV_MEMORY;
    for (int r = 0; r < dist.ranks && !dist.rank; r++) sizes[r] = parts[r].length;
    qkv_status status = qkv__dist_copy(sizes, table);
    if (!status) status = make_room(own, sizes[dist.rank]);
    if (!status && !dist.plugin && own->length) memcpy(own->data, parts->data, own->length);
    for (int r = 0; !status && dist.plugin && r < dist.ranks; r++) {
        dist.send[r] = dist.rank ? NULL : parts[r].data;
        dist.send_bytes[r] = dist.rank ? 0 : sizes[r];
        dist.receive[r] = own->data;
        dist.receive_bytes[r] = r ? 0 : own->length;
    }
    if (!status && dist.plugin) status = qkv__dist_exchange(dist.send, dist.send_bytes, dist.receive, dist.receive_bytes);
    qkv__release(sizes, table);
    return status;
}

qkv_status qkv_dist_gather(const char *bytes, size_t n, qkv_buffer *all)
{
    if ((n && !bytes) || (!dist.rank && !all))
        return qkv__fail(QKV_USAGE, "ranks: there is nothing to gather, or no place for it");
    size_t table = (size_t)dist.ranks * sizeof n, *sizes = qkv__alloc(table);
    qkv_status status = sizes ? qkv__dist_share(&n, sizeof n, sizes) : QKV_MEMORY;
    for (int r = 0; !status && !dist.rank && r < dist.ranks; r++) status = make_room(&all[r], sizes[r]);
    if (!status && !dist.plugin && n) memcpy(all->data, bytes, n);
    for (int r = 0; !status && dist.plugin && r < dist.ranks; r++) {
        dist.send[r] = bytes;
        dist.send_bytes[r] = r == 0 ? n : 0;
        dist.receive[r] = dist.rank ? NULL : all[r].data;
        dist.receive_bytes[r] = dist.rank ? 0 : sizes[r];
    }
    if (!status && dist.plugin) status = qkv__dist_exchange(dist.send, dist.send_bytes, dist.receive, dist.receive_bytes);
    qkv__release(sizes, table);
    return status;
}

int64_t qkv_dist_first(const size_t *lengths, int64_t n, int r)
{
    const double each = 16; /* what a text costs beside its bytes */
    double all = 0, before = 0;
    int64_t i = 0;
    if (!lengths || r >= dist.ranks) return lengths ? n : 0;
    for (int64_t k = 0; k < n; k++) all += (double)lengths[k] + each;
    double wanted = all * r / dist.ranks;
    for (; i < n && before + ((double)lengths[i] + each) / 2 < wanted; i++) before += (double)lengths[i] + each;
    return i;
}

/* ---- what the ranks agree on ---- */

typedef struct facts {
    char host[NAME_BYTES];
    char sets[NAME_BYTES]; /* the instruction sets that it may use, a space after each, best last */
    int cores;             /* of its processors */
    bool is_told;          /* how many threads to use */
#ifdef __linux__
    cpu_set_t processors;
#endif
} facts;

static qkv_status own_facts(facts *f, int threads)
{
    const char *best = qkv_isa();
    if (!best) return qkv_error_status();
    *f = (facts){ .cores = threads ? threads : qkv_num_threads() };
    f->is_told = threads || !strncmp(qkv__threads_source(), "QKV_", 4) || !strncmp(qkv__threads_source(), "OMP_", 4);
    snprintf(f->host, sizeof f->host, "%s", dist.info.host);
#ifdef __linux__
    sched_getaffinity(0, sizeof f->processors, &f->processors);
#endif
    size_t at = 0;
    for (int i = 0; qkv_isa_at(i); i++) {
        at += (size_t)snprintf(f->sets + at, sizeof f->sets - at, "%s ", qkv_isa_at(i));
        if (!strcmp(qkv_isa_at(i), best)) break;
    }
    return QKV_OK;
}

static bool has_set(const facts *f, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = f->sets; *at; at = strchr(at, ' ') + 1)
        if (!strncmp(at, name, length) && at[length] == ' ') return true;
    return false;
}

/* The best one of rank 0's that all have: every rank finds the same. */
static qkv_status agree_on_set(const facts *all)
{
    char sets[NAME_BYTES], best[NAME_BYTES] = "", *rest = NULL;
    memcpy(sets, all->sets, sizeof sets);
    for (char *name = strtok_r(sets, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        bool is_common = true;
        for (int r = 1; r < dist.ranks; r++) is_common = is_common && has_set(&all[r], name);
        if (is_common) snprintf(best, sizeof best, "%s", name);
    }
    return *best ? qkv_set_isa(best) : qkv__fail(QKV_UNSUPPORTED, "ranks: there is no instruction set that all of them have");
}

static bool may_meet(const facts *a, const facts *b)
{
    if (strcmp(a->host, b->host)) return false;
#ifdef __linux__
    cpu_set_t both;
    if (!CPU_COUNT(&a->processors) || !CPU_COUNT(&b->processors)) return true; /* they are not known */
    CPU_AND(&both, &a->processors, &b->processors);
    return CPU_COUNT(&both) > 0;
#else
    return true;
#endif
}

static int count_processors(const facts *f)
{
#ifdef __linux__
    if (f->is_told && CPU_COUNT(&f->processors)) return CPU_COUNT(&f->processors);
#endif
    return f->cores;
}

/* Ranks that may run on the same processors share their cores. */
static qkv_status divide_cores(const facts *all)
{
    const facts *own = &all[dist.rank];
    int sharing = 0, has = count_processors(own);
    for (int r = 0; r < dist.ranks; r++) sharing += may_meet(&all[r], own);
    dist.info.sharing = sharing;
    dist.info.cores = has;
    dist.info.has_threads = own->is_told;
    dist.info.threads = own->is_told ? own->cores : sharing < own->cores ? own->cores / sharing : 1;
    return own->is_told ? QKV_OK : qkv_set_num_threads(dist.info.threads);
}

static int count_hosts(const facts *all)
{
    int hosts = 0;
    for (int r = 0; r < dist.ranks; r++) {
        bool is_new = true;
        for (int k = 0; k < r && is_new; k++) is_new = strcmp(all[k].host, all[r].host) != 0;
        hosts += is_new;
    }
    return hosts;
}

static qkv_status agree(int threads)
{
    facts own, *all = qkv__alloc((size_t)dist.ranks * sizeof *all);
    qkv_status status = all ? own_facts(&own, threads) : QKV_MEMORY;
    if (!status) status = qkv__dist_share(&own, sizeof own, all);
    if (!status) status = agree_on_set(all);
    if (!status) status = divide_cores(all);
    if (!status) dist.info.hosts = count_hosts(all);
    qkv__release(all, (size_t)dist.ranks * sizeof *all);
    return status;
}

/* ---- beginning and end ---- */

static qkv_status make_tables(void)
{
    size_t n = (size_t)dist.ranks;
    dist.bytes = n * (3 * sizeof(void *) + 5 * sizeof(size_t));
    if (!(dist.send = qkv__alloc_zero(dist.bytes))) return QKV_MEMORY;
    dist.some = dist.send + n;
    dist.receive = (void **)(uintptr_t)(dist.some + n);
    dist.send_bytes = (size_t *)(dist.receive + n);
    dist.receive_bytes = dist.send_bytes + n;
    dist.some_bytes = dist.receive_bytes + n;
    dist.some_most = dist.some_bytes + n;
    dist.receive_most = dist.some_most + n;
    return QKV_OK;
}

static qkv_status read_silence(double *seconds)
{
    const char *given = getenv("QKV_MPI_SILENCE");
    char *end;
    *seconds = 20;
    if (!given || !*given) return QKV_OK;
    *seconds = strtod(given, &end);
    if (!*end && *seconds >= 2 && *seconds <= 3600) return QKV_OK;
    return qkv__fail(QKV_USAGE, "QKV_MPI_SILENCE is \"%.40s\", expected seconds from 2 to 3600", given);
}

qkv_status qkv_dist_init(int threads)
{
    const char *name = launched_by();
    double silence;
    if (!name || dist.plugin) return QKV_OK;
    const qkv__plugin *p = load_plugin(name);
    if (!p || read_silence(&silence)) return qkv_error_status();
    const char *why = p->start(silence, &dist.rank, &dist.ranks, &dist.info.host, &dist.info.library);
    if (why) return qkv__fail(QKV_IO, "MPI does not start: %.400s", why);
    dist.plugin = p;
    dist.info.rank = dist.rank;
    dist.info.ranks = dist.ranks;
    qkv_status status = make_tables();
    return status ? status : agree(threads);
}

static void leave(void)
{
    dist.plugin->stop();
    qkv__release(dist.send, dist.bytes);
    dist.plugin = NULL;
    dist.rank = 0;
    dist.ranks = 1;
}

qkv_status qkv_dist_finalize(qkv_status status, int *others)
{
    if (others) *others = 0;
    if (!dist.plugin) return status;
    const double patience = 2; /* seconds */
    static qkv_status own;     /* it and `all` stay where the others have not come: they may be on their way */
    size_t bytes = (size_t)dist.ranks * sizeof own;
    qkv_status *all = qkv__alloc(bytes);
    own = status;
    const char *why = all ? spread_equal(&own, sizeof own, all, status ? patience : 0, END) : "out of memory";
    if (!why) {
        for (int r = 0; r < dist.ranks && !status; r++) status = all[r];
        if (others) *others = all[0] != QKV_OK;
        leave();
        qkv__release(all, bytes);
    } else if (others) *others = -1;
    return why && !status ? mpi_failed(why) : status;
}

void qkv_dist_abort(qkv_status status, const char *why)
{
    if (dist.plugin) dist.plugin->abort((int)status, why && *why ? why : qkv_status_string(status));
}
