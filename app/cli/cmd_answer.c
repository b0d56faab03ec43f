/* cmd_answer.c: qkv answer: where a text answers questions. */
#include "../report/results.h"
#include "../term/read_text.h"

#include <qkv/unstable/util.h>
#include "json.h"
#include "lines.h"
#include "model.h"
#include "streams.h"
#include "../draw/print_maps.h"

#include <stdio.h>
#include <string.h>

static struct {
    const char *model, *context;
    int n_best, max_length, overlap, max_answer;
    bool must_answer, json;
} given = { .n_best = 1 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "folder of a question answering model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "context", 'c', .value = "FILE", .help = "file with the text to find answers in", .required = true,
      .text = &given.context },
    TEXT_ROWS(NO_GROUP),
    RESULT_ROW(NO_GROUP),
    { "n-best", .value = "N", .help = "answers per question (default: 1)", .count = &given.n_best },
    { "must-answer", .help = "always give an answer, even if the text may have none", .flag = &given.must_answer },
    { "max-length", .is_rare = true, .value = "N", .help = "maximum tokens read at a time (default: 384)",
      .count = &given.max_length },
    { "overlap", .is_rare = true, .value = "N", .help = "overlap of windows in tokens (default: 128)",
      .count = &given.overlap },
    { "max-answer", .is_rare = true, .value = "N", .help = "maximum tokens per answer (default: 30)",
      .count = &given.max_answer },
    { "json", .help = "print one JSON object per line", .flag = &given.json },
    { 0 },
};

typedef struct work {
    qkv_model *model;
    qkv_buffer context;
    qkv_answers *found;
} work;

static qkv_status answer_question(void *data, const text_stream *in, char *question, size_t length)
{
    work *w = data;
    qkv_buffer text = { 0 };
    const qkv_answer_opts opts = { .n_best = given.n_best,
                                   .max_length = given.max_length,
                                   .overlap = given.overlap,
                                   .max_answer = given.max_answer,
                                   .must_answer = given.must_answer };
    check_line(in, question, length, false, false);
    const qkv_str context = { w->context.data, w->context.length };
    if (qkv_answer(w->model, (qkv_str){ question, length }, context, &opts, &w->found)) return library_failed();
    if (given.json) {
        fputs("{\"question\": ", stdout);
        put_json_text(question, length);
        fputs(", ", stdout);
        return put_json_rest(qkv_answers_lines(w->found, 1, &text), &text);
    }
    if (given.n_best > 1 && in->number > 1) putchar('\n');
    return print_text(qkv_answers_lines(w->found, 0, &text), &text);
}

/* U+FFFD will stand in for what is not UTF-8. */
static void check_context(const qkv_buffer *context)
{
    size_t good = qkv_utf8_valid(context->data, context->length);
    int64_t line = 1;
    for (size_t i = 0; i < good; i++) line += context->data[i] == '\n';
    if (good < context->length) tell_repaired(given.context, 1, line);
}

static qkv_status run_answer(void)
{
    work w = { 0 };
    text_stream in = { 0 };
    qkv_status status = load_model_for(given.model, QKV_CAN_ANSWER, &w.model);
    if (!status && qkv_text_read(given.context, 0, &w.context)) status = library_failed();
    if (!status) check_context(&w.context);
    if (!status) status = open_texts(&in);
    if (!status) status = open_results(&in);
    if (!status) status = each_line(&in, answer_question, &w);
    close_texts(&in);
    qkv_free(w.found);
    qkv_buffer_free(&w.context);
    qkv_model_free(w.model);
    return status;
}

const command answer_command = {
    .name = "answer",
    .summary = "answer questions from a text",
    .about = "Prints for each question, or line, the score of the best answer, a TAB and the words\n"
             "of the text that are it; with --n-best so many lines, and an empty one between\n"
             "questions. Nothing behind the TAB: the text has no answer, says the model.\n"
             "\n"
             "A text longer than the model reads at once is read in windows that overlap, each\n"
             "with the question before it. The score is the probability of the answer's first\n"
             "token times that of its last, within its window; that of no answer the smallest of\n"
             "all windows.\n"
             "\n"
             "Models that can: published ones whose architecture ends in ForQuestionAnswering.\n"
             "With --json, span is where the answer is in bytes, characters in code points.",
    .example = "  qkv answer -m roberta-base-squad2 --context article.txt \"Who won?\"",
    .options = options,
    .run = run_answer,
};
