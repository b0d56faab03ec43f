/* shared_lines.c: lines that the ranks of mpirun share. Rank 0 sends each group to all, each rank handles the lines of its share, and
 * rank 0 prints what all of them have printed, in the order of the lines. */
#include "shared_lines.h"

#include "ranks.h"

#include <qkv/dist.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- lines ---- */

/* What rank 0 sends: this, then the lengths, then the lines, each with a NUL. */
typedef struct group_head {
    int64_t n, before;
    bool is_last;
} group_head;

static qkv_status pack_group(const line_group *g, bool is_last, qkv_text *out)
{
    const group_head head = { g->n, g->before, is_last };
    size_t lengths = sizeof *g->lengths * (size_t)g->n;
    out->length = sizeof head + lengths;
    for (int64_t i = 0; i < g->n; i++) out->length += g->lengths[i] + 1;
    if (!(out->data = malloc(out->length))) return fail(QKV_MEMORY, "out of memory");
    memcpy(out->data, &head, sizeof head);
    if (g->n) memcpy(out->data + sizeof head, g->lengths, lengths);
    char *at = out->data + sizeof head + lengths;
    for (int64_t i = 0; i < g->n; at += g->lengths[i++] + 1) {
        memcpy(at, g->at[i], g->lengths[i]);
        at[g->lengths[i]] = '\0';
    }
    return QKV_OK;
}

static qkv_status handle_share(const char *packed, const line_group *whole, int64_t most, group_handler handle, void *data)
{
    group_head head;
    memcpy(&head, packed, sizeof head);
    size_t n = (size_t)head.n, *lengths = malloc(sizeof *lengths * (n + 1));
    char **at = malloc(sizeof *at * (n + 1)), *line = (char *)(uintptr_t)packed + sizeof head + sizeof *lengths * n;
    qkv_status status = lengths && at ? QKV_OK : fail(QKV_MEMORY, "out of memory");
    if (!status) {
        memcpy(lengths, packed + sizeof head, sizeof *lengths * n);
        for (size_t i = 0; i < n; line += lengths[i++] + 1) at[i] = line;
        int64_t to = qkv_dist_first(lengths, head.n, qkv_dist_rank() + 1);
        for (int64_t i = qkv_dist_first(lengths, head.n, qkv_dist_rank()); i < to && !status; i += most) {
            line_group own = { whole->name, at + i, lengths + i, NULL, to - i < most ? to - i : most, head.before + i };
            status = handle(data, &own);
        }
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
static qkv_status pass_on(const captured *c, int i, qkv_text *all)
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
    for (int r = 1; !status && speaks_for_ranks() && r < qkv_dist_ranks(); r++)
        fwrite(all[r].data, 1, all[r].length, i ? stderr : stdout);
    free(bytes);
    return status;
}

static qkv_status share_group(const line_group *g, int64_t most, bool *is_last, const captured *c, group_handler handle,
                              void *data)
{
    qkv_text packed = { 0 }, *all = calloc((size_t)qkv_dist_ranks(), sizeof *all);
    bool speaks = speaks_for_ranks();
    qkv_status status = !all ? fail(QKV_MEMORY, "out of memory") : speaks ? pack_group(g, *is_last, &packed) : QKV_OK;
    if (!status && qkv_dist_broadcast(&packed)) status = library_failed();
    if (!status) memcpy(is_last, packed.data + offsetof(group_head, is_last), sizeof *is_last);
    qkv_status handled = status ? status : handle_share(packed.data, g, most, handle, data);
    for (int i = 0; i < 2 && !status; i++) status = pass_on(c, i, all);
    for (int r = 0; all && r < qkv_dist_ranks(); r++) qkv_text_free(&all[r]);
    free(all);
    if (speaks) free(packed.data);
    else qkv_text_free(&packed);
    return status ? status : handled;
}

qkv_status each_shared_group(line_group *g, int64_t most, group_reader *read, void *reader, group_handler handle, void *data)
{
    captured c = { 0 };
    qkv_status read_status = QKV_OK, status = begin_capture(&c);
    for (bool is_last = false; !status && !is_last;) {
        if (speaks_for_ranks()) {
            bool more = true;
            read_status = read(reader, g, &more);
            is_last = read_status || !more || ferror(stdout);
        }
        status = share_group(g, most, &is_last, &c, handle, data);
        fflush(stdout);
    }
    end_capture(&c);
    return read_status ? read_status : status;
}
