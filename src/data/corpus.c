/* corpus.c: a corpus: pairs of lines, from two files or from the two columns of one. */
#include "lines.h"
#include "corpus.h"

#include "../base/options.h"
#include "../base/size.h"
#include "../token/encode.h"

#include <stdio.h>
#include <string.h>

enum { SOURCE, TARGET, SIDES };

typedef struct corpus {
    qkv_corpus_opts o;
    int n_files;
    qkv__lines files[SIDES];
    const char *text[SIDES]; /* of the pair that was read last */
    size_t length[SIDES];
    qkv_read_stats read;
} corpus;

/* ---- the files ---- */

static qkv_status open_corpus(corpus *c, const char *source, const char *target, const qkv_corpus_opts *opts,
                              qkv_read_stats *read)
{
    *c = (corpus){ .n_files = target ? 2 : 1 };
    if (qkv__read_stats_write(read, &c->read)) return QKV_USAGE;
    if (QKV__READ_OPTIONS(&c->o, max_length, opts, "corpus")) return QKV_USAGE;
    if (!source) return qkv__fail(QKV_USAGE, "corpus: a path is needed");
    if (c->o.max_length < 0)
        return qkv__fail(QKV_USAGE, "corpus: max_length is %lld, expected 0 or more", (long long)c->o.max_length);
    if (c->o.held_every < 0)
        return qkv__fail(QKV_USAGE, "corpus: held_every is %lld, expected 0 or more", (long long)c->o.held_every);
    qkv_status status = qkv__lines_open(&c->files[SOURCE], source);
    return status || !target ? status : qkv__lines_open(&c->files[TARGET], target);
}

static void close_corpus(corpus *c, qkv_read_stats *read)
{
    c->read.repaired = c->files[SOURCE].repaired;
    c->read.first_repaired = c->files[SOURCE].first_repaired;
    c->read.target_repaired = c->files[TARGET].repaired;
    c->read.first_target_repaired = c->files[TARGET].first_repaired;
    for (int s = 0; s < SIDES; s++) qkv__lines_close(&c->files[s]);
    qkv__read_stats_write(read, &c->read);
}

/* ---- the next pair ---- */

static qkv_status no_translation(const qkv__lines *shorter, const qkv__lines *longer)
{
    if (!shorter->number) return qkv__fail(QKV_FORMAT, "%s is empty, but %s is not", shorter->path, longer->path);
    return qkv__fail(QKV_FORMAT, "%s ends at line %lld, but %s goes on: line %lld has no translation", shorter->path,
                     (long long)shorter->number, longer->path, (long long)longer->number);
}

static qkv_status next_lines(corpus *c, bool *more)
{
    bool has[SIDES];
    for (int s = 0; s < SIDES; s++) {
        qkv_status status = qkv__lines_next_text(&c->files[s], c->o.strict, &has[s]);
        if (status) return status;
        c->text[s] = c->files[s].line.data;
        c->length[s] = c->files[s].line.length;
    }
    *more = has[SOURCE];
    if (has[SOURCE] == has[TARGET]) return QKV_OK;
    return no_translation(&c->files[has[SOURCE] ? TARGET : SOURCE], &c->files[has[SOURCE] ? SOURCE : TARGET]);
}

static qkv_status next_columns(corpus *c, bool *more)
{
    qkv__lines *l = &c->files[SOURCE];
    qkv_status status = qkv__lines_next_text(l, c->o.strict, more);
    if (status || !*more) return status;
    size_t length = l->line.length;
    const char *line = l->line.data, *end = line + length, *tab = length ? memchr(line, '\t', length) : NULL;
    if (!tab && l->number == 1)
        return qkv__fail(QKV_FORMAT,
                         "%s: line 1 has no TAB between source and target: give two files, or one with \"source TAB target\" "
                         "on each line",
                         l->path);
    if (!tab) return qkv__fail(QKV_FORMAT, "%s: line %lld has no TAB between source and target", l->path, (long long)l->number);
    if (memchr(tab + 1, '\t', (size_t)(end - tab - 1)))
        return qkv__fail(QKV_FORMAT, "%s: line %lld has more than one TAB, expected source TAB target", l->path,
                         (long long)l->number);
    c->text[SOURCE] = line;
    c->length[SOURCE] = (size_t)(tab - line);
    c->text[TARGET] = tab + 1;
    c->length[TARGET] = (size_t)(end - tab - 1);
    return QKV_OK;
}

static void count(const corpus *c, int64_t *n, int64_t *first)
{
    if (!(*n)++) *first = c->read.lines;
}

static bool is_passed_over(const corpus *c)
{
    return c->o.held_every && (c->read.lines % c->o.held_every == 0) != (c->o.held != 0);
}

static qkv_status next_raw_pair(corpus *c, bool *more)
{
    qkv_status status;
    do {
        status = c->n_files == 2 ? next_lines(c, more) : next_columns(c, more);
        c->read.lines += !status && *more;
    } while (!status && *more && is_passed_over(c));
    return status;
}

/* Pairs with nothing on a side are passed over. */
static qkv_status next_pair(corpus *c, bool *more)
{
    for (;;) {
        qkv_status status = next_raw_pair(c, more);
        if (status || !*more) return status;
        if (!qkv__is_blank(c->text[SOURCE], c->length[SOURCE]) && !qkv__is_blank(c->text[TARGET], c->length[TARGET]))
            return QKV_OK;
        count(c, &c->read.empty, &c->read.first_empty);
    }
}

/* ---- lines ---- */

qkv_status qkv_read_pairs(const char *source, const char *target, const qkv_corpus_opts *opts, qkv_line_pair_each each,
                          void *data)
{
    corpus c;
    bool more = true;
    if (!each) return qkv__fail(QKV_USAGE, "corpus: a function is needed");
    qkv_status status = open_corpus(&c, source, target, opts, NULL);
    while (!status && !(status = next_raw_pair(&c, &more)) && more)
        status = each(data, (qkv_str){ c.length[SOURCE] ? c.text[SOURCE] : "", c.length[SOURCE] },
                      (qkv_str){ c.length[TARGET] ? c.text[TARGET] : "", c.length[TARGET] });
    close_corpus(&c, NULL);
    return status;
}

/* ---- words ---- */

qkv_status qkv__word_counts_add_corpus(qkv_word_counts *sources, qkv_word_counts *targets, const char *source,
                                       const char *target, const qkv_corpus_opts *opts, qkv_read_stats *read)
{
    corpus c;
    bool more = true;
    if (!sources || !targets) return qkv__fail(QKV_USAGE, "corpus: there are no words to add to");
    qkv_status status = open_corpus(&c, source, target, opts, read);
    while (!status && !(status = next_pair(&c, &more)) && more) {
        status = qkv_word_counts_add(sources, (qkv_str){ c.text[SOURCE], c.length[SOURCE] });
        if (!status) status = qkv_word_counts_add(targets, (qkv_str){ c.text[TARGET], c.length[TARGET] });
        if (!status) c.read.pairs++;
    }
    close_corpus(&c, read);
    return status;
}

/* ---- ids ---- */

static qkv_status add_ids(qkv_dataset *p, const qkv_tokenizer *const tokenizers[SIDES], corpus *c, qkv__ids ids[SIDES])
{
    for (int s = 0; s < SIDES; s++) {
        qkv_status status = qkv__encode(tokenizers[s], c->text[s], c->length[s], NULL, &ids[s]);
        if (status) return status;
    }
    int64_t longest = qkv__max((int64_t)ids[SOURCE].n, (int64_t)ids[TARGET].n);
    if (c->o.max_length && longest > c->o.max_length) return count(c, &c->read.too_long, &c->read.first_too_long), QKV_OK;
    qkv_status status = qkv_dataset_add_ids(p, ids[SOURCE].ids, ids[SOURCE].n, ids[TARGET].ids, ids[TARGET].n);
    if (!status) c->read.pairs++;
    return status;
}

static qkv_status nothing_left(const corpus *c)
{
    const char *source = c->files[SOURCE].path, *joined = c->n_files == 2 ? " and " : "";
    const char *target = c->n_files == 2 ? c->files[TARGET].path : "";
    char long_ones[80] = "";
    if (!c->read.lines) return qkv__fail(QKV_FORMAT, "%s%s%s: there are no lines", source, joined, target);
    if (c->read.too_long)
        snprintf(long_ones, sizeof long_ones, ", %lld with more than %lld tokens", (long long)c->read.too_long,
                 (long long)c->o.max_length);
    return qkv__fail(QKV_FORMAT, "%s%s%s: none of %lld pairs is left: %lld with nothing on a side%s", source, joined, target,
                     (long long)c->read.lines, (long long)c->read.empty, long_ones);
}

qkv_status qkv__dataset_add_corpus(qkv_dataset *p, const qkv_tokenizer *sources, const qkv_tokenizer *targets,
                                   const char *source, const char *target, const qkv_corpus_opts *opts, qkv_read_stats *read)
{
    const qkv_tokenizer *const tokenizers[SIDES] = { sources, targets };
    qkv__ids ids[SIDES] = { 0 };
    corpus c;
    bool more = true;
    if (!p || !sources || !targets) return qkv__fail(QKV_USAGE, "corpus: pairs and tokenizers are needed");
    qkv_status status = open_corpus(&c, source, target, opts, read);
    while (!status && !(status = next_pair(&c, &more)) && more) status = add_ids(p, tokenizers, &c, ids);
    if (!status && !c.read.pairs) status = nothing_left(&c);
    for (int s = 0; s < SIDES; s++) qkv__ids_free(&ids[s]);
    close_corpus(&c, read);
    return status;
}
