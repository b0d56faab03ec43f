/* cmd_generate.c: qkv generate: a prompt in, the prompt and what follows out. */
#include "../report/results.h"
#include "json.h"
#include "lines.h"
#include "model.h"
#include "options.h"
#include "sampling.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model, *prompt;
    int samples;
    bool special, chat, no_echo, json;
} given = { .samples = 1 };

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    TOUCH_ROWS,
    TEXT_ROWS(INPUT_GROUP),
    { "prompt", 'p', .group = INPUT_GROUP, .value = "TEXT", .help = "the prompt, the same as TEXT", .text = &given.prompt,
      .may_be_empty = true },
    { "special", .is_rare = true, .group = INPUT_GROUP, .help = "recognize special tokens in the prompt",
      .flag = &given.special },
    { "chat", .group = INPUT_GROUP, .help = "each prompt is a message or a JSON conversation; print only the answer",
      .flag = &given.chat },
    TEMPLATE_ROW(INPUT_GROUP),
    SAMPLING_ROWS("maximum new tokens (default: the model's files, else what its context leaves, else 128)"),
    { "past-context", .is_rare = true, .group = SAMPLING_GROUP,
      .help = "generate past the model's context; not with learned positions", .flag = &sampling.past_context },
    { "samples", .is_rare = true, .group = SAMPLING_GROUP, .value = "N", .help = "sample N continuations per prompt",
      .count = &given.samples },
    RESULT_ROW(RESULT_GROUP),
    { "no-echo", .group = RESULT_GROUP, .help = "do not print the prompt", .flag = &given.no_echo },
    { "json", .group = RESULT_GROUP, .help = "print one JSON object per line, with log-probabilities", .flag = &given.json },
    { 0 },
};

/* What is continued. */
typedef struct prompt {
    const char *text;
    size_t length;
    int64_t line; /* of the input, from 1; 0: it was given as an argument */
    bool is_shown;
} prompt;

typedef struct work {
    qkv_model *model;
    qkv_generate_opts opts;
    qkv_chat *chat; /* NULL: prompts are no messages */
    qkv_generated *made;
    qkv_status refused; /* of the first line that could not be continued */
    bool is_full;       /* the context ended a text, which was reported */
} work;

/* ---- text out ---- */

/* Text of a line stays one line. */
static void put_on_line(const prompt *p, const char *text, size_t length)
{
    if (!p->line) {
        fwrite(text, 1, length, stdout);
        return;
    }
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n') fputs("\\n", stdout);
        else if (text[i] == '\r') fputs("\\r", stdout);
        else if (text[i] == '\\') fputs("\\\\", stdout);
        else putchar(text[i]);
}

/* Not before the first piece of what follows: a prompt that is refused gives no result. */
static void show_prompt(prompt *p)
{
    if (!p->is_shown && !given.no_echo && !given.chat) put_on_line(p, p->text, p->length);
    p->is_shown = true;
}

static qkv_status put_stream_piece(void *data, const qkv_generated *so_far, qkv_str piece)
{
    (void)so_far;
    prompt *p = data;
    if (given.json) return QKV_OK;
    show_prompt(p);
    put_on_line(p, piece.data, piece.length);
    fflush(stdout);
    return ferror(stdout) ? QKV_IO : QKV_OK;
}

static void end_text(prompt *p)
{
    show_prompt(p);
    putchar('\n');
    fflush(stdout);
}

/* ---- JSON out ---- */

static void open_json(const prompt *p)
{
    putchar('{');
    if (p->line) printf("\"line\": %lld, ", (long long)p->line);
}

static qkv_status put_json(const work *w, const prompt *p)
{
    qkv_buffer text = { 0 };
    open_json(p);
    printf("\"sample\": %lld, \"prompt\": ", (long long)w->opts.sample);
    put_json_text(p->text, p->length);
    fputs(", ", stdout);
    qkv_status status = put_json_rest(qkv_generated_json(w->model, w->made, &text), &text);
    fflush(stdout);
    return status;
}

/* ---- prompts ---- */

/* A line that cannot be continued is told and stands empty; the others go on. */
static void refuse_line(const prompt *p)
{
    const char *said = qkv_error(), *call = "generate: "; /* which the command's name says already */
    if (!strncmp(said, call, strlen(call))) said += strlen(call);
    fail(qkv_error_status(), "line %lld: %s", (long long)p->line, said);
    if (given.json) {
        open_json(p);
        fputs("\"error\": ", stdout);
        put_json_text(said, strlen(said));
        putchar('}');
    }
    putchar('\n');
}

static qkv_status continue_prompt(work *w, prompt *p)
{
    const qkv_str text = { p->text, p->length };
    w->opts.on_text = put_stream_piece;
    w->opts.on_text_data = p;
    if (!w->chat) return qkv_generate(w->model, text, &w->opts, &w->made);
    qkv_status status = qkv_chat_from_json(w->chat, text);
    return status ? status : qkv_chat_reply(w->chat, &w->opts, &w->made, NULL);
}

/* Once: the lines of a file may all be longer. */
static void report_full_context(work *w)
{
    int64_t context = qkv_model_get_info(w->model)->max_positions;
    bool is_capped = !w->opts.max_tokens || w->made->n < w->opts.max_tokens;
    if (w->is_full || !context || w->chat || w->made->finish != QKV_FINISH_LENGTH || !is_capped || w->opts.past_context) return;
    fprintf(stderr, _("qkv: the text ends at the model's context of %lld tokens\n"), (long long)context);
    w->is_full = true;
}

static qkv_status generate(work *w, prompt p)
{
    for (int i = 0; i < given.samples; i++) {
        w->opts.sample = i;
        p.is_shown = false;
        if (i && !p.line && !given.json) puts("---");
        qkv_status status = continue_prompt(w, &p);
        if (ferror(stdout)) return QKV_OK; /* told at the end */
        if (status && p.line && (status == QKV_LIMIT || status == QKV_FORMAT)) return refuse_line(&p), status;
        if (status) return library_failed();
        if (!given.json) end_text(&p);
        else if ((status = put_json(w, &p))) return status;
        report_full_context(w);
    }
    return QKV_OK;
}

/* One that is refused does not keep the others waiting. */
static qkv_status continue_line(void *data, const text_stream *in, char *line, size_t length)
{
    work *w = data;
    if (length && line[length - 1] == '\r') length--; /* part of the newline, as in a corpus */
    qkv_status status = generate(w, (prompt){ .text = line, .length = length, .line = in->number });
    if (status != QKV_LIMIT && status != QKV_FORMAT) return status;
    if (!w->refused) w->refused = status;
    return QKV_OK;
}

/* A text among the arguments is a prompt as it is, newlines and all. */
static qkv_status continue_text(work *w, const char *text)
{
    return generate(w, (prompt){ .text = text, .length = strlen(text) });
}

static qkv_status each_text(work *w)
{
    qkv_status status = QKV_OK;
    for (int i = 0; i < streams.texts.n && !status && !ferror(stdout); i++) {
        if (i && !given.json) puts("---");
        status = continue_text(w, streams.texts.at[i]);
    }
    return status;
}

static qkv_status generate_all(work *w)
{
    text_stream in;
    qkv_status status = open_texts(&in);
    if (!status) status = open_results(given.prompt ? NULL : &in);
    if (!status)
        status = given.prompt      ? continue_text(w, given.prompt)
                 : streams.texts.n ? each_text(w)
                                   : each_line(&in, continue_line, w);
    close_texts(&in);
    return status ? status : w->refused;
}

/* ---- from options to the end ---- */

static qkv_status check_generate_options(void)
{
    if (given.prompt && (streams.texts.n || streams.input)) return fail(QKV_USAGE, "--prompt and other texts: choose one");
    if (given.chat && (given.special || given.samples > 1)) return fail(QKV_USAGE, "--chat has no --special and no --samples");
    return check_sampling();
}

static qkv_status run_generate(void)
{
    qkv_status status = check_generate_options();
    if (status) return status;
    work w = { 0 };
    if ((status = load_touched_model(given.model, QKV_CAN_GENERATE, &w.model))) return status;
    w.opts = sampling_options(w.model);
    w.opts.no_log_p = !given.json;
    w.opts.parse_special = given.special;
    if (given.chat) status = open_chat(w.model, NULL, NULL, &w.chat);
    if (!status) status = generate_all(&w);
    qkv_chat_free(w.chat);
    qkv_free(w.made);
    qkv_model_free(w.model);
    return status;
}

const command generate_command = {
    .name = "generate",
    .summary = "generate text from a prompt",
    .about = "Continues a text, an argument or --prompt, and prints both as they come; or continues\n"
             "each line of --input or standard input and prints both on a line of their own, a newline in\n"
             "it as \\n, a carriage return as \\r and a backslash as \\\\. An empty prompt is one\n"
             "too. The results are the same bytes with any number of threads, and those of a\n"
             "line or a sample do not depend on the others.\n"
             "\n"
             "Without options the likeliest token follows. --temp draws tokens at random, by\n"
             "the model's probabilities at 1, nearer to the likeliest below it. Where it is not\n"
             "given, it is 1 with any of --top-k, --top-p, --min-p, --seed and --samples, else\n"
             "0. The files of a published model may ask for draws, filters and penalties of\n"
             "their own (qkv info tells): an option overrides its part of that, and --temp 0\n"
             "takes the likeliest token whatever they say. The filters work in the order\n"
             "top-k, top-p, min-p, after penalty and repeats. Samples of a text, and texts, are\n"
             "printed with a line --- between them.\n"
             "\n"
             "With --json, log_p has the logarithm of each token's probability by the model\n"
             "itself, before temperature and filters; finish is \"end\" (the text came to its\n"
             "end), \"stop\" (a --stop text came) or \"length\" (--max-tokens, or the model's\n"
             "context, ended it). Prompt and new text together never have more tokens than the\n"
             "context that the model's files give, unless --past-context is set.\n"
             "\n"
             "With --chat a text is a message of the user, or a conversation as OpenAI's API\n"
             "has it: a JSON array of messages, or an object with \"messages\" and \"tools\". The\n"
             "model's chat template writes it, and the answer is printed. \"qkv chat\" talks.\n"
             "\n"
             "A line that leaves no room for another token, or is not UTF-8, gives an empty\n"
             "line (in JSON an \"error\") and a sentence on standard error; the others are\n"
             "continued, and the exit status at the end is that of the first such line.",
    .example = "  qkv generate -m models/shakespeare \"ROMEO:\" --temp 0.8 \\\n"
               "    --top-p 0.95 --seed 7",
    .options = options,
    .run = run_generate,
    .is_shared = true,
};
