/* mpi.c: the plugin. Bytes are exchanged between ranks, and a watch in a thread of its own notices a rank that has stopped: each
 * rank hears from the one before it every second, and ends all when it has heard nothing for half a minute. A rank that died is
 * noticed by the launcher. */
#include "plugin.h"

#include <mpi.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 28 }; /* bytes of a message: MPI counts by int */
static const double beat_seconds = 1, silence_seconds = 30;

static MPI_Comm world;
static int rank, ranks, provided; /* provided: what threads may do */
static char host[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
static char words[MPI_MAX_ERROR_STRING + 64];

static const char *mpi_error(int code)
{
    int length;
    if (code == MPI_SUCCESS) return NULL;
    if (MPI_Error_string(code, words, &length)) snprintf(words, sizeof words, "MPI error %d", code);
    return words;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(long microseconds) { nanosleep(&(struct timespec){ .tv_nsec = microseconds * 1000 }, NULL); }

static void end_all(int status, const char *sentence)
{
    fprintf(stderr, "qkv: %s (rank %d on %s)\n", sentence, rank, host);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

/* ---- the watch ---- */

static struct {
    MPI_Comm comm;
    pthread_t thread;
    bool runs;
    atomic_bool ends;
    char *hosts; /* of every rank, MPI_MAX_PROCESSOR_NAME bytes each */
} watch;

enum { ALIVE = 'a', BYE = 'b' };

static void tell_silence(int who)
{
    char sentence[MPI_MAX_PROCESSOR_NAME + 160];
    snprintf(sentence, sizeof sentence,
             "rank %d on %s has not answered for %.0f seconds: it is stopped, or cut off; all ranks end", who,
             watch.hosts + (size_t)who * MPI_MAX_PROCESSOR_NAME, silence_seconds);
    end_all(3, sentence);
}

/* Says that this rank lives; a message that is still under way stands for the next one too. */
static void beat(MPI_Request *sending, char *message, char kind, int to)
{
    int is_sent = 1;
    if (*sending != MPI_REQUEST_NULL) MPI_Test(sending, &is_sent, MPI_STATUS_IGNORE);
    if (!is_sent) return;
    *message = kind;
    MPI_Isend(message, 1, MPI_CHAR, to, 0, watch.comm, sending);
}

/* Ends when this rank said goodbye and heard it, so that no message is left. */
static void *watch_main(void *unused)
{
    int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, has_come;
    char said = 0, heard = 0;
    MPI_Request sending = MPI_REQUEST_NULL, receiving;
    double last_said = 0, last_heard = now();
    bool said_bye = false;
    MPI_Irecv(&heard, 1, MPI_CHAR, from, 0, watch.comm, &receiving);
    for (bool heard_bye = false; !said_bye || !heard_bye; rest(20000)) {
        MPI_Test(&receiving, &has_come, MPI_STATUS_IGNORE);
        if (has_come && !heard_bye) {
            last_heard = now();
            if (heard == BYE) heard_bye = true;
            else MPI_Irecv(&heard, 1, MPI_CHAR, from, 0, watch.comm, &receiving);
        }
        if (!heard_bye && now() - last_heard > silence_seconds) tell_silence(from);
        if (atomic_load(&watch.ends) && !said_bye) {
            if (sending != MPI_REQUEST_NULL) MPI_Wait(&sending, MPI_STATUS_IGNORE);
            beat(&sending, &said, BYE, to);
            said_bye = true;
        } else if (!said_bye && now() - last_said > beat_seconds) {
            beat(&sending, &said, ALIVE, to);
            last_said = now();
        }
    }
    MPI_Wait(&sending, MPI_STATUS_IGNORE);
    return unused;
}

static const char *start_watch(void)
{
    watch.hosts = calloc((size_t)ranks, MPI_MAX_PROCESSOR_NAME);
    if (!watch.hosts) return "out of memory";
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &watch.comm);
    if (!code)
        code = MPI_Allgather(host, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, watch.hosts, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, watch.comm);
    if (code) return mpi_error(code);
    watch.runs = !pthread_create(&watch.thread, NULL, watch_main, NULL);
    return watch.runs ? NULL : "no thread to watch the others";
}

/* ---- the table ---- */

static int is_threaded(void) { return provided == MPI_THREAD_MULTIPLE; }

static const char *start(int *own_rank, int *all_ranks, const char **own_host, const char **version)
{
    int length, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    if (!code) code = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (!code) code = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (!code) code = MPI_Comm_rank(world, &rank);
    if (!code) code = MPI_Comm_size(world, &ranks);
    if (!code) code = MPI_Get_processor_name(host, &length);
    if (!code) code = MPI_Get_library_version(library, &length);
    if (code) return mpi_error(code);
    library[strcspn(library, ",\n")] = '\0';
    const char mpich[] = "MPICH Version:"; /* and a tab before the number */
    if (!strncmp(library, mpich, sizeof mpich - 1))
        memmove(library + 6, library + sizeof mpich, strlen(library + sizeof mpich) + 1);
    *own_rank = rank, *all_ranks = ranks, *own_host = host, *version = library;
    return ranks > 1 && is_threaded() ? start_watch() : NULL;
}

/* Spins for a moment, then gives the core away: ranks may share it. */
static const char *finish(int n, MPI_Request *requests, double seconds)
{
    double began = now();
    for (int looks = 0, at = 0;; looks++) {
        for (int done = 1; at < n && done; at += done) {
            int code = MPI_Test(&requests[at], &done, MPI_STATUS_IGNORE);
            if (code) return mpi_error(code);
        }
        if (at == n) return NULL;
        if (seconds > 0 && now() - began > seconds) return "the others did not come";
        if (looks < 200) sched_yield();
        else rest(looks < 2000 ? 50 : 500);
    }
}

static int pieces(size_t bytes) { return (int)((bytes + PIECE - 1) / PIECE); }

static int begin(MPI_Request *requests, const void *send, void *receive, size_t bytes, int with, int tag)
{
    int n = 0;
    for (size_t at = 0; at < bytes; at += PIECE, n++) {
        int count = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        if (send) MPI_Isend((const char *)send + at, count, MPI_BYTE, with, tag, world, &requests[n]);
        else MPI_Irecv((char *)receive + at, count, MPI_BYTE, with, tag, world, &requests[n]);
    }
    return n;
}

static const char *exchange(const void *const *send, const size_t *send_bytes, void *const *receive,
                            const size_t *receive_bytes, double seconds, int tag)
{
    int room = 0, n = 0;
    for (int r = 0; r < ranks; r++) room += pieces(send_bytes[r]) + pieces(receive_bytes[r]);
    MPI_Request *requests = malloc(sizeof *requests * (size_t)(room + 1));
    if (!requests) return "out of memory";
    if (receive_bytes[rank]) memmove(receive[rank], send[rank], receive_bytes[rank]);
    for (int i = 1; i < ranks; i++) {
        int r = (rank + i) % ranks; /* so that not all begin with the same one */
        n += begin(requests + n, NULL, receive[r], receive_bytes[r], r, tag);
    }
    for (int i = 1; i < ranks; i++) {
        int r = (rank + ranks - i) % ranks;
        n += begin(requests + n, send[r], NULL, send_bytes[r], r, tag);
    }
    const char *wrong = finish(n, requests, seconds);
    free(requests);
    return wrong;
}

static const char *sum(float *values, size_t n)
{
    const size_t most = PIECE / sizeof *values;
    for (size_t at = 0; at < n; at += most) {
        MPI_Request request;
        int code = MPI_Iallreduce(MPI_IN_PLACE, values + at, (int)(n - at < most ? n - at : most), MPI_FLOAT, MPI_SUM, world,
                                  &request);
        const char *wrong = code ? mpi_error(code) : finish(1, &request, 0);
        if (wrong) return wrong;
    }
    return NULL;
}

static void stop(void)
{
    if (watch.runs) {
        atomic_store(&watch.ends, true);
        pthread_join(watch.thread, NULL);
        MPI_Comm_free(&watch.comm);
    }
    free(watch.hosts);
    MPI_Comm_free(&world);
    MPI_Finalize();
}

extern const qkv__plugin qkv_mpi_plugin;
__attribute__((visibility("default"))) const qkv__plugin qkv_mpi_plugin = { .version = QKV__PLUGIN_VERSION,
                                                                            .start = start,
                                                                            .exchange = exchange,
                                                                            .sum = sum,
                                                                            .stop = stop,
                                                                            .abort = end_all,
                                                                            .is_threaded = is_threaded };
