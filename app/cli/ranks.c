/* ranks.c: a command that several ranks run as one. */
#include "ranks.h"

#include "../term/language.h"

#include <qkv/unstable/dist.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool speaks_for_ranks(void) { return qkv_dist_rank() == 0; }

static void be_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO), close(nowhere);
    hold_errors(true);
}

static void tell_ranks(const qkv_dist_info *x)
{
    char where[256], each[256];
    snprintf(where, sizeof where,
             x->hosts > 1   ? _("%d ranks on %d hosts")
             : x->ranks > 1 ? _("%d ranks on %d host")
                            : _("%d rank on %d host"),
             x->ranks, x->hosts);
    snprintf(each, sizeof each, x->threads > 1 ? _("%d threads each") : _("%d thread each"), x->threads);
    fputs("qkv: ", stderr);
    fprintf(stderr, _("%s, %.100s, instruction set %s, %s"), where, x->library, qkv_isa(), each);
    if (x->sharing > x->cores) {
        fputs("\nqkv: ", stderr);
        fprintf(stderr, _("%d ranks on %.100s share %d cores: fewer ranks are as fast"), x->sharing, x->host, x->cores);
    } else if (x->has_threads && x->sharing * x->threads > x->cores) {
        fputs("\nqkv: ", stderr);
        fprintf(stderr, _("%d ranks on %.100s with %d threads each share %d cores: fewer threads are as fast"), x->sharing,
                x->host, x->threads, x->cores);
    }
    fputc('\n', stderr);
}

qkv_status join_ranks(int threads)
{
    if (qkv_dist_init(threads)) return library_failed();
    if (!speaks_for_ranks()) be_silent();
    if (was_given("quiet") || !speaks_for_ranks() || qkv_dist_size() == 1) return QKV_OK;
    tell_ranks(qkv_dist_get_info());
    return QKV_OK;
}

qkv_status leave_ranks(qkv_status status)
{
    int others;
    bool has_failed = status != QKV_OK, speaks = speaks_for_ranks();
    status = qkv_dist_finalize(status, &others);
    if (others < 0) qkv_dist_abort(status, speaks ? "all ranks end" : held_error());
    if (has_failed && !speaks && !others && *held_error()) {
        const qkv_dist_info *x = qkv_dist_get_info();
        fprintf(stderr, "qkv: %s (rank %d on %.200s)\n", held_error(), x->rank, x->host);
    }
    return speaks ? status : QKV_OK;
}
