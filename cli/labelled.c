/* labelled.c: labelled texts. */
#include "labelled.h"

#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

labelled_values labelled;
static bool is_told; /* what ended the reading was reported by the one who ended it */

qkv_status told(qkv_status status)
{
    is_told = status != QKV_OK;
    return status;
}

/* The caller's function, and the first file of a folder that was not UTF-8. */
typedef struct watched {
    qkv_labelled_each each;
    void *data;
    char *path; /* NULL: none so far */
    int64_t line;
} watched;

static qkv_status watch_repaired(void *data, const qkv_labelled *x)
{
    watched *w = data;
    if (x->repaired && !w->path && (w->path = strdup(x->path))) w->line = x->repaired;
    return w->each(w->data, x);
}

static void tell_read(const char *path, const qkv_corpus_read *read, const watched *w)
{
    if (w->path) tell_repaired(w->path, 1, w->line);
    else tell_repaired(path, read->repaired, read->first_repaired);
    if (w->path && read->repaired > 1)
        fprintf(stderr, _("qkv: %s: %lld more files are not UTF-8\n"), path, (long long)read->repaired - 1);
    if (read->empty)
        fprintf(stderr, _("qkv: %s: %lld texts are empty, the first is line %lld: left out\n"), path, (long long)read->empty,
                (long long)read->first_empty);
}

qkv_status read_labelled(const char *path, bool strict, bool no_label, bool quiet, qkv_labelled_each each, void *data,
                         qkv_corpus_read *out)
{
    const qkv_labelled_opts opts = { .label = labelled.label_column,
                                     .text = labelled.text_column,
                                     .pair = labelled.pair_column,
                                     .strict = strict,
                                     .no_label = no_label,
                                     .header = labelled.header };
    qkv_corpus_read read = { 0 };
    is_told = false;
    watched w = { .each = each, .data = data };
    qkv_status status = qkv_labelled_read(path, &opts, watch_repaired, &w, &read);
    if (out) *out = read;
    if (!status && !quiet) tell_read(path, &read, &w);
    free(w.path);
    /* What is wrong with the first line is mostly which columns it has. */
    if (status == QKV_FORMAT && !is_told && !strict && read.lines == 1 && !read.pairs && !read.empty)
        return fail(status, "%s: --label-column and --text-column choose columns, by name or number", qkv_error());
    return status && !is_told ? library_failed() : status;
}
