/* mpi.c: the plugin. Bytes are exchanged between ranks, and a watch in a thread of its own notices a rank that has stopped:
 * each rank hears from the one before it every second, says so when it has heard nothing for 20 (QKV_MPI_SILENCE), and ends
 * all 10 seconds later. A rank that died is noticed by the launcher. One that does not end the others, but asks them to end
 * (Slurm), has them wait for the dead one: a rank that was asked has less patience. */
#include "plugin.h"

#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Bytes. A message is at most PIECE, since MPI counts by int. What is not large goes in pieces that MPI sends without asking
 * the receiver first: its answer would wait behind what that one is sending itself, and a link would carry one direction at a
 * time. */
enum { PIECE = 1 << 28, UNASKED = 60 << 10, LARGE = 4 << 20 };
static const double beat_seconds = 1, end_seconds = 10, asked_seconds = 4;
static double silence_seconds;

static MPI_Comm world;
static int rank, ranks, provided; /* provided: what threads may do */
static char host[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
static _Thread_local char words[MPI_MAX_ERROR_STRING + 64];
static int errors; /* standard error as it was at the start: what a command prints may go elsewhere */

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

static void say(const char *sentence) { dprintf(errors, "qkv: %s (rank %d on %s)\n", sentence, rank, host); }

static int exit_status;
static void on_alarm(int signal)
{
    (void)signal;
    _exit(exit_status);
}

/* MPI_Abort() asks the launcher, which may be cut off: no longer than a moment. Hydra must have read the sentence by then. With
 * Open MPI 4 a message of the library's own about the abort is handled by two threads of mpirun at once, which garble it and may
 * crash: it is left out. */
static void end_all(int status, const char *sentence)
{
    bool *is_quiet = dlsym(RTLD_DEFAULT, "orte_execute_quiet");
    fflush(stderr);
    say(sentence);
    rest(100000);
    if (is_quiet) *is_quiet = true;
    exit_status = status;
    signal(SIGALRM, on_alarm);
    alarm(5);
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

/* Whether this process was asked to end: the handler of a signal that is caught once (SA_RESETHAND) is gone then. */
static bool was_asked_to_end(void)
{
    static bool had_handler;
    struct sigaction now_set;
    if (sigaction(SIGTERM, NULL, &now_set)) return false;
    bool has_handler = now_set.sa_handler != SIG_DFL && now_set.sa_handler != SIG_IGN;
    had_handler = had_handler || has_handler;
    return had_handler && !has_handler;
}

/* A launcher that has lost a host itself, and would hang on telling it to end, has the time between to notice. */
static void judge_silence(int who, double seconds, bool *is_told)
{
    char sentence[MPI_MAX_PROCESSOR_NAME + 160];
    const char *where = watch.hosts + (size_t)who * MPI_MAX_PROCESSOR_NAME;
    if (was_asked_to_end() && seconds > asked_seconds) {
        snprintf(sentence, sizeof sentence,
                 "rank %d on %s has not answered for %.0f seconds, and this one was asked to end: all ranks end", who, where,
                 asked_seconds);
        end_all(3, sentence);
    }
    bool is_over = seconds > silence_seconds + end_seconds, is_new = seconds > silence_seconds && !*is_told;
    *is_told = seconds > silence_seconds;
    if (!is_over && !is_new) return;
    snprintf(sentence, sizeof sentence,
             is_over
                 ? "rank %d on %s has not answered for %.0f seconds: all ranks end"
                 : "rank %d on %s has not answered for %.0f seconds: it is stopped, or cut off; all ranks end if it stays so",
             who, where, is_over ? silence_seconds + end_seconds : silence_seconds);
    if (is_over) end_all(3, sentence);
    say(sentence);
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
    double last_said = 0, last_look = now(), silent = 0;
    bool said_bye = false, is_told = false;
    MPI_Irecv(&heard, 1, MPI_CHAR, from, 0, watch.comm, &receiving);
    for (bool heard_bye = false; !said_bye || !heard_bye; rest(20000)) {
        MPI_Test(&receiving, &has_come, MPI_STATUS_IGNORE);
        if (has_come && !heard_bye) {
            silent = 0;
            if (heard == BYE) heard_bye = true;
            else MPI_Irecv(&heard, 1, MPI_CHAR, from, 0, watch.comm, &receiving);
        }
        /* A look is every 20 ms: when all ranks were stopped and went on, none has been silent for long. */
        double since = now() - last_look;
        last_look += since;
        silent += since < beat_seconds ? since : beat_seconds;
        if (!heard_bye) judge_silence(from, silent, &is_told);
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

static const char *start(double silence, int *own_rank, int *all_ranks, const char **own_host, const char **version)
{
    silence_seconds = silence;
    if ((errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) < 0) errors = STDERR_FILENO;
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

static atomic_int hurried;
static void hurry(int by) { atomic_fetch_add(&hurried, by); }

/* Looks for a moment, then sleeps between looks: other ranks, or a thread that computes, may share the core. Not by
 * sched_yield(), after which such a thread keeps the core for milliseconds. A look costs some 20 microseconds: what takes long
 * anyway, since it is large, has few of them unless somebody waits, who computes nothing then. The bytes of the first requests,
 * `receives`, are counted. */
static const char *wait_for(int n, MPI_Request *requests, bool is_large, double seconds, int receives, size_t *received)
{
    const double began = now(), moment = 20e-6, soon = 300e-6;
    for (int at = 0;;) {
        for (int done = 1; at < n && done; at += done) {
            MPI_Status end;
            int count, code = MPI_Test(&requests[at], &done, &end);
            if (code) return mpi_error(code);
            if (!done || at >= receives) continue;
            if ((code = MPI_Get_count(&end, MPI_BYTE, &count))) return mpi_error(code);
            received[end.MPI_SOURCE] += (size_t)count;
        }
        if (at == n) return NULL;
        double waited = now() - began;
        if (seconds > 0 && waited > seconds) return "the others did not come";
        if (waited > moment) rest(atomic_load(&hurried) ? 100 : is_large ? 1000 : waited < soon ? 20 : 300);
    }
}

static size_t piece_of(size_t bytes) { return bytes <= LARGE ? UNASKED : PIECE; }

static int pieces(size_t bytes) { return (int)((bytes + piece_of(bytes) - 1) / piece_of(bytes)); }

/* As many messages as there are at most, the last ones perhaps empty: who receives them waits for as many. */
static int begin(MPI_Request *requests, const void *send, void *receive, size_t bytes, size_t most, int with, int tag)
{
    int n = 0;
    for (size_t at = 0, piece = piece_of(most); at < most; at += piece, n++) {
        size_t left = at < bytes ? bytes - at : 0;
        int count = (int)(left < piece ? left : piece);
        if (send) MPI_Isend((const char *)send + (left ? at : 0), count, MPI_BYTE, with, tag, world, &requests[n]);
        else MPI_Irecv((char *)receive + at, count, MPI_BYTE, with, tag, world, &requests[n]);
    }
    return n;
}

typedef struct posted {
    bool is_large;
    int n, receives; /* requests, and how many of them, the first ones, are receives */
    MPI_Request requests[];
} posted;

static void *post(const void *const *send, const size_t *send_bytes, const size_t *send_most, void *const *receive,
                  const size_t *receive_bytes, int tag, const char **wrong)
{
    int room = 0;
    bool is_large = false;
    for (int r = 0; r < ranks; r++) {
        room += pieces(send_most[r]) + pieces(receive_bytes[r]);
        is_large = is_large || send_most[r] > UNASKED || receive_bytes[r] > UNASKED;
    }
    posted *p = malloc(sizeof *p + sizeof *p->requests * (size_t)room);
    if (!p) return *wrong = "out of memory", NULL;
    p->n = 0;
    p->is_large = is_large;
    if (receive_bytes[rank]) memmove(receive[rank], send[rank], receive_bytes[rank]);
    for (int i = 1; i < ranks; i++) {
        int r = (rank + i) % ranks; /* so that not all begin with the same one */
        p->n += begin(p->requests + p->n, NULL, receive[r], receive_bytes[r], receive_bytes[r], r, tag);
    }
    p->receives = p->n;
    for (int i = 1; i < ranks; i++) {
        int r = (rank + ranks - i) % ranks;
        p->n += begin(p->requests + p->n, send[r], NULL, send_bytes[r], send_most[r], r, tag);
    }
    return p;
}

static const char *finish(void *data, double seconds, size_t *received)
{
    posted *p = data;
    if (received) memset(received, 0, (size_t)ranks * sizeof *received);
    const char *wrong = wait_for(p->n, p->requests, p->is_large, seconds, received ? p->receives : 0, received);
    free(p);
    return wrong;
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
                                                                            .post = post,
                                                                            .finish = finish,
                                                                            .hurry = hurry,
                                                                            .stop = stop,
                                                                            .abort = end_all,
                                                                            .is_threaded = is_threaded };
