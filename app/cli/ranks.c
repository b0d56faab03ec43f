/* ranks.c: a command that several ranks run as one. */
#include "ranks.h"

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

qkv_status join_ranks(int threads)
{
    if (qkv_dist_init(threads)) return library_failed();
    if (!speaks_for_ranks()) be_silent();
    if (was_given("quiet") || !speaks_for_ranks() || qkv_dist_size() == 1) return QKV_OK;
    fprintf(stderr, "qkv: %s\n", qkv_dist_about());
    if (*qkv_dist_warning()) fprintf(stderr, "qkv: %s\n", qkv_dist_warning());
    return QKV_OK;
}

qkv_status leave_ranks(qkv_status status)
{
    int others;
    bool has_failed = status != QKV_OK, speaks = speaks_for_ranks();
    status = qkv_dist_finalize(status, &others);
    if (others < 0) qkv_dist_abort(status, speaks ? "all ranks end" : held_error());
    if (has_failed && !speaks && !others && *held_error()) fprintf(stderr, "qkv: %s (%s)\n", held_error(), qkv_dist_place());
    return speaks ? status : QKV_OK;
}
