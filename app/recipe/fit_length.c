/* fit_length.c: the length penalty with which a translator's translations of validation text are best by BLEU. */
#include <qkv/task.h>

#include "fit_length.h"
#include "../report/scores.h"
#include "../../src/base/memory.h"
#include "../../src/base/options.h"
#include "../../src/base/size.h"
#include "../../src/decode/search.h"
#include "../../src/model/model_info.h"
#include "../../src/task/translate.h"

#include <math.h>
#include <string.h>

enum { FIRST_TENTH = 2, LAST_TENTH = 20, STEP_TENTHS = 2 };

typedef struct fitting {
    const qkv_model *m;
    qkv_fit_length_opts o;
    int64_t n;
    qkv_str *sources;        /* (n) of those given; one block with the next two */
    const char **references; /* (n) of those given */
    const char **hypotheses; /* (n): one of each line's, as it is printed */
    size_t bytes;
    qkv_search_opts scores; /* by which formula */
    qkv_translations *found;
    void *printed; /* texts of found with line breaks as spaces, each with its NUL, in the order of found */
    size_t printed_bytes;
} fitting;

/* ---- lines ---- */

/* Evenly spaced: a text may change its manner from its first line to its last. */
static qkv_status take_lines(fitting *f, const char *const *sources, const char *const *references, int64_t given)
{
    int64_t most = f->o.max_lines ? f->o.max_lines : QKV__FITTED_LINES;
    f->n = qkv__min(given, most);
    size_t count;
    if (!qkv__size_mul((size_t)f->n, 2, &count) || !qkv__size_mul(count, sizeof *f->sources, &f->bytes))
        return qkv__fail(QKV_LIMIT, "length penalty: too many lines");
    if (!(f->sources = qkv__alloc(f->bytes))) return QKV_MEMORY;
    f->references = (const char **)(f->sources + f->n);
    f->hypotheses = f->references + f->n;
    for (int64_t i = 0; i < f->n; i++) {
        int64_t at = (int64_t)((double)i * (double)given / (double)f->n);
        if (!sources[at] || !references[at])
            return qkv__fail(QKV_USAGE, "length penalty: line %lld has no source or no reference", (long long)at);
        f->sources[i] = qkv_cstr(sources[at]);
        f->references[i] = references[at];
    }
    return QKV_OK;
}

/* ---- translations ---- */

/* A translation as "qkv translate" prints it, so that BLEU is what "qkv score" says of its lines: one line stays one. */
static void print_on_one_line(char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\r') *text = ' ';
}

static qkv_status print_found(fitting *f)
{
    const qkv_translations *t = f->found;
    size_t total = 0;
    for (int64_t i = 0; i < t->n * t->n_best; i++) total += t->best[i].text.length + 1;
    if (qkv__grow(&f->printed, &f->printed_bytes, total)) return QKV_MEMORY;
    char *to = f->printed;
    for (int64_t i = 0; i < t->n * t->n_best; i++) {
        size_t length = t->best[i].text.length + 1;
        memcpy(to, t->best[i].text.data, length);
        print_on_one_line(to);
        to += length;
    }
    return QKV_OK;
}

static qkv_status translate_lines(fitting *f, float alpha, int n_best)
{
    const qkv_translate_opts opts = { .size = sizeof opts,
                                      .beam_size = f->o.beam,
                                      .n_best = n_best,
                                      .length_penalty = alpha < 0 ? 0 : alpha,
                                      .no_length_penalty = alpha < 0,
                                      .split = QKV_SPLIT_AUTO, /* as "qkv translate" */
                                      .hooks = f->o.hooks };
    qkv_status status = qkv_translate(f->m, f->sources, f->n, &opts, &f->found);
    return status ? status : print_found(f);
}

/* ---- the best of each line ---- */

/* The score that a search with this penalty gives: the same bits. What was cut has no end to count. */
static double score_with(const fitting *f, const qkv_translation *x)
{
    return x->log_p / qkv__search_penalty(&f->scores, x->n_ids + !x->truncated);
}

/* Of those that were found, the first of equals. */
static int best_of_line(const fitting *f, const qkv_translation *all)
{
    int best = 0;
    for (int k = 1; k < f->found->n_best && all[k].n_ids >= 0; k++)
        if (score_with(f, &all[k]) > score_with(f, &all[best])) best = k;
    return best;
}

static qkv_status bleu_with(fitting *f, float alpha, double *bleu)
{
    const qkv_translations *t = f->found;
    const char *text = f->printed;
    f->scores.length_penalty = alpha > 0 ? alpha : 0;
    for (int64_t i = 0; i < f->n; i++) {
        int best = best_of_line(f, t->best + i * t->n_best);
        for (int k = 0; k < t->n_best; k++, text += strlen(text) + 1)
            if (k == best) f->hypotheses[i] = text;
    }
    return qkv__bleu_of_lines(f->hypotheses, f->references, f->n, f->o.tokenizer, bleu);
}

static void free_fitting(fitting *f)
{
    qkv_free(f->found);
    qkv__release(f->printed, f->printed_bytes);
    qkv__release(f->sources, f->bytes);
}

qkv_status qkv__lines_bleu(const qkv_model *m, const char *const *sources, const char *const *references, int64_t n,
                           qkv_score_tokenizer tokenizer, double *bleu)
{
    fitting f = { .m = m, .o = { .tokenizer = tokenizer, .max_lines = n } };
    qkv_status status = take_lines(&f, sources, references, n);
    if (!status) status = translate_lines(&f, 0, 1);
    if (!status) status = bleu_with(&f, 0, bleu);
    free_fitting(&f);
    return status;
}

/* ---- the fit ---- */

static float of_tenths(int tenths) { return (float)tenths / 10; }

/* Among what one search found; what others would have found is not there, so that this is a promise only. */
static qkv_status choose_penalty(fitting *f, double bleu, int *tenths)
{
    qkv_status status = QKV_OK;
    for (int tried = FIRST_TENTH; tried <= LAST_TENTH && !status; tried += STEP_TENTHS) {
        double other;
        status = bleu_with(f, of_tenths(tried), &other);
        if (status || !(other > bleu)) continue;
        bleu = other;
        *tenths = tried;
    }
    return status;
}

/* A search of its own tells; one that went too far is followed by one halfway back. */
static qkv_status keep_promise(fitting *f, int tenths, int usual, qkv_length_fit *fit)
{
    qkv_status status = QKV_OK;
    for (; tenths != usual && !status && fit->bleu == fit->usual_bleu; tenths = usual + (tenths - usual) / 2) {
        double bleu;
        status = translate_lines(f, of_tenths(tenths), 1);
        if (!status) status = bleu_with(f, of_tenths(tenths), &bleu);
        if (!status && bleu > fit->usual_bleu) fit->bleu = bleu, fit->length_penalty = of_tenths(tenths);
    }
    return status;
}

static qkv_status fit_penalty(fitting *f, qkv_length_fit *fit)
{
    qkv_status status = translate_lines(f, fit->length_penalty, f->o.beam);
    if (!status) status = bleu_with(f, fit->length_penalty, &fit->usual_bleu);
    fit->bleu = fit->usual_bleu;
    if (status || f->n < 2) return status;                                  /* one line says nothing of others */
    int usual = (int)lrintf(10 * f->scores.length_penalty), chosen = usual; /* below 1000, or there were no translations */
    status = choose_penalty(f, fit->usual_bleu, &chosen);
    return status ? status : keep_promise(f, chosen, usual, fit);
}

qkv_status qkv_fit_length_penalty(const qkv_model *m, const char *const *sources, const char *const *references, int64_t n,
                                  const qkv_fit_length_opts *opts, qkv_length_fit *out)
{
    fitting f = { .m = m };
    if (!m || !sources || !references || n < 1 || !out)
        return qkv__fail(QKV_USAGE,
                         "length penalty: a model, at least one line, its reference and a place for results are needed");
    if (QKV__READ_OPTIONS(&f.o, hooks, opts, "length penalty")) return QKV_USAGE;
    if (f.o.max_lines < 0) return qkv__fail(QKV_USAGE, "length penalty: max_lines is negative");
    const qkv__model_info *info = qkv__model_get_info(m);
    if (!f.o.beam) f.o.beam = qkv__usual_beam(info);
    f.scores.length_norm = qkv__info_is_published(info);
    qkv_length_fit fit = { .length_penalty = qkv__length_penalty_of(info) };
    qkv_status status = take_lines(&f, sources, references, n);
    if (!status) status = fit_penalty(&f, &fit);
    fit.lines = f.n;
    free_fitting(&f);
    if (!status) *out = fit;
    return status;
}
