/* cmd_fill.c: qkv fill: the likeliest words for the masks in a text. */
#include "../report/results.h"

#include <qkv/unstable/util.h>
#include "json.h"
#include "lines.h"
#include "model.h"
#include "options.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model;
    int n_best;
    bool json;
} given = { .n_best = 5 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "folder of a masked language model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    TEXT_ROWS(NO_GROUP),
    RESULT_ROW(NO_GROUP),
    { "n-best", .value = "N", .help = "tokens per mask (default: 5)", .count = &given.n_best },
    { "json", .help = "print one JSON object per line", .flag = &given.json },
    { 0 },
};

typedef struct work {
    qkv_model *model;
    qkv_filled *found;
    int64_t number;   /* of the line, from 1; 0: the text was given */
    qkv_status first; /* of the lines that could not be filled */
} work;

/* ---- results ---- */

static qkv_status print_filled_json(const qkv_filled *f, const char *text, size_t length)
{
    qkv_buffer json = { 0 };
    fputs("{\"text\": ", stdout);
    put_json_text(text, length);
    fputs(", ", stdout);
    return put_json_rest(qkv_filled_json(f, &json), &json);
}

/* The masks of a text, and of a line before, are an empty line apart. */
static void print_lines(const work *w)
{
    const qkv_filled *f = w->found;
    qkv_text *shown = NULL;
    for (int64_t i = 0; i < f->masks; i++) {
        if (i || w->number > 1) putchar('\n');
        for (int k = 0; k < f->n_best; k++) {
            const qkv_filling *x = &f->best[i * f->n_best + k];
            bool is_shown = !qkv_tokenizer_show(qkv_model_tokenizer(w->model, QKV_SIDE_SOURCE), x->id, &shown);
            printf("%.4f\t%s\t", x->p, is_shown ? shown->data : x->token.data);
            fwrite(x->text.data, 1, x->text.length, stdout);
            putchar('\n');
        }
    }
    qkv_free(shown);
}

/* A line that cannot be filled is told of, and does not keep the next ones waiting. */
static qkv_status refuse_line(work *w, qkv_status status)
{
    if (!w->first) w->first = status;
    fail(status, "line %lld: %s", (long long)w->number, library_error());
    if (given.json) {
        fputs("{\"error\": ", stdout);
        put_json_text(qkv_error(), strlen(qkv_error()));
        puts("}");
    } else if (w->number > 1) putchar('\n');
    return QKV_OK;
}

static qkv_status fill_text(work *w, const char *text, size_t length)
{
    qkv_status status = qkv_fill_mask(w->model, (qkv_str){ text, length }, &(qkv_fill_opts){ .n_best = given.n_best },
                                      &w->found);
    bool is_its_own = status == QKV_USAGE || status == QKV_LIMIT || status == QKV_FORMAT;
    if (status) return w->number && is_its_own ? refuse_line(w, status) : library_failed();
    if (given.json) status = print_filled_json(w->found, text, length);
    else print_lines(w);
    fflush(stdout);
    return status;
}

static qkv_status fill_line(void *data, const text_stream *in, char *line, size_t length)
{
    work *w = data;
    w->number = in->number;
    check_line(in, line, length, false, false);
    return fill_text(w, line, length);
}

/* A text alone is no line with a number. */
static qkv_status fill_texts(work *w)
{
    text_stream in;
    const char *only = streams.texts.n == 1 ? streams.texts.at[0] : NULL;
    qkv_status status = open_texts(&in);
    if (!status) status = open_results(&in);
    if (!status) status = only ? fill_text(w, only, strlen(only)) : each_line(&in, fill_line, w);
    close_texts(&in);
    return status ? status : w->first;
}

/* ---- from options to the end ---- */

static qkv_status run_fill(void)
{
    work w = { 0 };
    qkv_status status = load_model_for(given.model, QKV_CAN_FILL, &w.model);
    if (!status) status = fill_texts(&w);
    qkv_free(w.found);
    qkv_model_free(w.model);
    return status;
}

const command fill_command = {
    .name = "fill",
    .summary = "fill in masked words",
    .about = "Prints the likeliest tokens for every mask in a text, best first: the\n"
             "probability, the token as \"qkv tokenize\" shows it and the text with it, with a\n"
             "TAB between them. A mask is written " QKV_SPECIAL_BERT_MASK " or " QKV_SPECIAL_MASK
             ", or as the model's tokenizer\n"
             "has it. Without a text, lines are read from --input or standard input; results are\n"
             "an empty line apart.\n"
             "\n"
             "Models that can: BERT and its kin with their masked-word heads, and those of \"qkv\n"
             "train mask\". With --json, span is where the mask is, in bytes.\n"
             "\n"
             "A line without a mask gives an empty line (in JSON an \"error\") and a sentence on\n"
             "standard error; the others are filled, and the exit status at the end is that of\n"
             "the first such line.",
    .example = "  qkv fill -m bert-base-uncased \"Paris is the " QKV_SPECIAL_BERT_MASK " of France.\"",
    .options = options,
    .run = run_fill,
};
