/* shared_lines.c: lines that the ranks of mpirun share. Rank 0 sends each group to all, each rank handles the lines of its share, and
 * rank 0 prints what all of them have printed, in the order of the lines. */
#include "shared_lines.h"

#include "ranks.h"

#include <qkv/unstable/dist.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- lines ---- */

/* What rank 0 sends to a rank: this, then the lengths, then the lines, each with a NUL. */
typedef struct group_head {
    int64_t n, before;
    bool is_last;
} group_head;

/* Lines from `from` to `to` of the group. */
static qkv_status pack_lines(const line_group *g, int64_t from, int64_t to, bool is_last, qkv_buffer *out)
{
    const group_head head = { to - from, g->before + from, is_last };
    size_t lengths = sizeof *g->lengths * (size_t)head.n;
    out->length = sizeof head + lengths;
    for (int64_t i = from; i < to; i++) out->length += g->lengths[i] + 1;
    if (!(out->data = malloc(out->length))) return fail(QKV_MEMORY, "out of memory");
    memcpy(out->data, &head, sizeof head);
    if (head.n) memcpy(out->data + sizeof head, g->lengths + from, lengths);
    char *at = out->data + sizeof head + lengths;
    for (int64_t i = from; i < to; at += g->lengths[i++] + 1) {
        memcpy(at, g->at[i], g->lengths[i]);
        at[g->lengths[i]] = '\0';
    }
    return QKV_OK;
}

/* To every rank its part of the group, in *own. */
static qkv_status scatter_lines(const line_group *g, bool is_last, qkv_buffer *own)
{
    int ranks = speaks_for_ranks() ? qkv_dist_size() : 0;
    qkv_buffer *parts = ranks ? calloc((size_t)ranks, sizeof *parts) : NULL;
    qkv_status status = ranks && !parts ? fail(QKV_MEMORY, "out of memory") : QKV_OK;
    for (int r = 0; r < ranks && !status; r++)
        status = pack_lines(g, qkv_dist_first(g->lengths, g->n, r), qkv_dist_first(g->lengths, g->n, r + 1), is_last,
                            &parts[r]);
    if (!status && qkv_dist_scatter(parts, own)) status = library_failed();
    for (int r = 0; r < ranks && parts; r++) free(parts[r].data);
    free(parts);
    return status;
}

/* *tokens: what the handler says that it read and wrote. */
static qkv_status handle_lines(const char *name, const qkv_buffer *packed, int64_t most, group_handler handle, void *data,
                               int64_t *tokens)
{
    group_head head;
    memcpy(&head, packed->data, sizeof head);
    size_t n = (size_t)head.n, *lengths = malloc(sizeof *lengths * (n + 1));
    char **at = malloc(sizeof *at * (n + 1)), *line = packed->data + sizeof head + sizeof *lengths * n;
    qkv_status status = lengths && at ? QKV_OK : fail(QKV_MEMORY, "out of memory");
    if (!status) memcpy(lengths, packed->data + sizeof head, sizeof *lengths * n);
    for (size_t i = 0; i < n && !status; line += lengths[i++] + 1) at[i] = line;
    for (int64_t i = 0; i < head.n && !status; i += most) {
        line_group own = { .name = name,
                           .at = at + i,
                           .lengths = lengths + i,
                           .n = head.n - i < most ? head.n - i : most,
                           .before = head.before + i };
        status = handle(data, &own);
        *tokens += own.tokens;
    }
    free(lengths), free(at);
    return status;
}

/* ---- what the other ranks print ---- */

/* Standard output and error of a rank that does not speak go to files without a name; where they went before. */
typedef struct captured {
    FILE *file[2];
    int before[2];
} captured;

static qkv_status begin_capture(captured *c)
{
    if (speaks_for_ranks()) return QKV_OK;
    hold_errors(false);
    for (int i = 0; i < 2; i++) {
        if (!(c->file[i] = tmpfile())) return fail(QKV_IO, "cannot make a temporary file");
        c->before[i] = dup(1 + i);
        dup2(fileno(c->file[i]), 1 + i);
    }
    return QKV_OK;
}

static void end_capture(const captured *c)
{
    for (int i = 0; i < 2 && c->file[i]; i++) {
        dup2(c->before[i], 1 + i);
        close(c->before[i]);
        fclose(c->file[i]);
    }
    hold_errors(!speaks_for_ranks());
}

/* What was printed since the last time to rank 0, which prints it, rank by rank; i: 0 for standard output, 1 for error. */
static qkv_status pass_on(const captured *c, int i, qkv_buffer *all)
{
    char *bytes = NULL;
    off_t n = 0;
    if (c->file[i]) {
        fflush(stdout);
        n = lseek(1 + i, 0, SEEK_END);
        bytes = malloc((size_t)n + 1);
        if (!bytes || pread(1 + i, bytes, (size_t)n, 0) != n) return free(bytes), fail(QKV_IO, "cannot read a temporary file");
        if (ftruncate(1 + i, 0) || lseek(1 + i, 0, SEEK_SET)) return free(bytes), fail(QKV_IO, "cannot write a temporary file");
    }
    qkv_status status = qkv_dist_gather(bytes, (size_t)n, all) ? library_failed() : QKV_OK;
    for (int r = 1; !status && speaks_for_ranks() && r < qkv_dist_size(); r++)
        fwrite(all[r].data, 1, all[r].length, i ? stderr : stdout);
    free(bytes);
    return status;
}

/* ---- how even the shares are ---- */

/* Of all groups: the tokens of all ranks, and those of the busiest rank of each, for which the others wait. */
typedef struct balance {
    int64_t all, busiest;
} balance;

static qkv_status weigh_group(balance *b, int64_t tokens, qkv_buffer *each)
{
    int64_t most = 0;
    if (qkv_dist_gather((const char *)&tokens, sizeof tokens, each)) return library_failed();
    for (int r = 0; speaks_for_ranks() && r < qkv_dist_size(); r++) {
        memcpy(&tokens, each[r].data, sizeof tokens);
        b->all += tokens;
        if (tokens > most) most = tokens;
    }
    b->busiest += most;
    return QKV_OK;
}

static void tell_balance(const balance *b)
{
    const int64_t few = 10000; /* of which it says nothing */
    if (!speaks_for_ranks() || was_given("quiet") || b->all < few) return;
    fprintf(stderr, _("qkv: %lld tokens; uneven shares leave the ranks idle for %.2f%% of them\n"), (long long)b->all,
            100 - 100 * (double)b->all / ((double)b->busiest * qkv_dist_size()));
}

/* ---- all of it ---- */

static qkv_status share_group(const line_group *g, int64_t most, bool *is_last, const captured *c, group_handler handle,
                              void *data, balance *b)
{
    qkv_buffer own = { 0 }, *all = calloc((size_t)qkv_dist_size(), sizeof *all);
    int64_t tokens = 0;
    qkv_status status = all ? scatter_lines(g, *is_last, &own) : fail(QKV_MEMORY, "out of memory");
    if (!status) memcpy(is_last, own.data + offsetof(group_head, is_last), sizeof *is_last);
    qkv_status handled = status ? status : handle_lines(g->name, &own, most, handle, data, &tokens);
    for (int i = 0; i < 2 && !status; i++) status = pass_on(c, i, all);
    if (!status) status = weigh_group(b, tokens, all);
    for (int r = 0; all && r < qkv_dist_size(); r++) qkv_buffer_free(&all[r]);
    free(all);
    qkv_buffer_free(&own);
    return status ? status : handled;
}

qkv_status each_shared_group(line_group *g, int64_t most, group_reader *read, void *reader, group_handler handle, void *data)
{
    captured c = { 0 };
    balance b = { 0 };
    qkv_status read_status = QKV_OK, status = begin_capture(&c);
    for (bool is_last = false; !status && !is_last;) {
        if (speaks_for_ranks()) {
            bool more = true;
            read_status = read(reader, g, &more);
            is_last = read_status || !more || ferror(stdout);
        }
        status = share_group(g, most, &is_last, &c, handle, data, &b);
        fflush(stdout);
    }
    end_capture(&c);
    tell_balance(&b);
    return read_status ? read_status : status;
}
