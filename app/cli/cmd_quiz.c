/* cmd_quiz.c: qkv quiz: interview questions. */
#include "../learn/lesson.h"
#include "../learn/quiz.h"
#include "options.h"

static quiz_opts given;

static const option options[] = {
    { "number", .value = "N", .help = "ask only this question", .plain = true, .count = &given.number },
    { "topic", .value = "NAME",
      .help = "ask about one topic: attention, heads, masks, positions, parts, model, training, "
              "families or search",
      .text = &given.topic },
    { "list", .help = "list the questions", .flag = &given.is_list },
    { "answers", .help = "print questions, model answers and the commands that show them", .flag = &given.with_answers },
    { 0 },
};

static qkv_status run_quiz_command(void)
{
    if (given.number && given.topic) return fail(QKV_USAGE, "a number and --topic do not go together");
    return run_quiz(&given);
}

const command quiz_command = {
    .name = "quiz",
    .summary = "interview questions about attention",
    .about = "Asks, reads a line and answers: a letter where there are choices; else whatever you\n"
             "type is shown beside the model answer. Numbers in the answers are computed, and each\n"
             "answer names a command that shows it. Ends when standard input does.",
    .example = "  qkv quiz\n  qkv quiz 7\n  qkv quiz --topic masks --lang zh\n  qkv quiz --answers",
    .options = options,
    .run = run_quiz_command,
};
