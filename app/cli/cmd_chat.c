/* cmd_chat.c: qkv chat: a talk with a language model, line by line. */
#include "../term/read_text.h"

#include <qkv/unstable/util.h>
#include "model.h"
#include "sampling.h"
#include "typed_line.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *model, *system, *tools;
    int context;
    bool tokens;
} given;

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    { "system", .group = INPUT_GROUP, .value = "TEXT", .help = "system message", .text = &given.system },
    { "tools", .is_rare = true, .group = INPUT_GROUP, .value = "FILE", .help = "JSON array of tools for the chat template",
      .text = &given.tools },
    TEMPLATE_ROW(INPUT_GROUP),
    { "context", .group = INPUT_GROUP, .value = "N",
      .help = "maximum tokens of the conversation (default: the model's context, at most 8192)", .count = &given.context },
    SAMPLING_ROWS("maximum tokens per answer (default: the model's, else what fits)"),
    { "tokens", .is_rare = true, .help = "report token counts after each answer", .flag = &given.tokens },
    { 0 },
};

typedef struct talk {
    qkv_chat *chat;
    qkv_generate_opts opts;
    qkv_generated *answer;
    bool is_typed;      /* at a terminal */
    bool is_full;       /* messages were dropped, which was reported */
    bool has_ended;     /* by /exit */
    qkv_status refused; /* of the first message that was not answered, or command that failed */
} talk;

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;
static int noted[2]; /* a byte for each: the signal may come to any thread, and before a read has begun */

static void note_interrupt(int number)
{
    const int kept = errno;
    interrupted = number;
    if (write(noted[1], "", 1) < 0) errno = 0; /* it is full of them */
    errno = kept;
}

static int is_interrupted(void *data) { return (void)data, interrupted; }

static qkv_status catch_interrupts(void)
{
    const struct sigaction note = { .sa_handler = note_interrupt, .sa_flags = SA_RESTART };
    if (pipe2(noted, O_NONBLOCK | O_CLOEXEC)) return fail(QKV_IO, "no pipe: %s", _(strerror(errno)));
    sigaction(SIGINT, &note, NULL);
    return QKV_OK;
}

static void forget_interrupts(void)
{
    char bytes[64];
    while (read(noted[0], bytes, sizeof bytes) > 0) {}
}

/* ---- a turn ---- */

static qkv_status print_piece(void *data, const qkv_generated *so_far, qkv_str piece)
{
    (void)data, (void)so_far;
    fwrite(piece.data, 1, piece.length, stdout);
    fflush(stdout);
    return ferror(stdout) ? QKV_IO : QKV_OK;
}

static void tell_turn(talk *t, const qkv_chat_usage *usage)
{
    if (t->answer->finish == QKV_FINISH_CANCELLED) fprintf(stderr, "%s\n", _("(stopped)"));
    if (usage->dropped_messages && !t->is_full)
        fprintf(stderr, _("(the context of %lld tokens is full: the oldest messages are dropped from now on)\n"),
                (long long)usage->max_context);
    t->is_full |= usage->dropped_messages > 0;
    if (given.tokens)
        fprintf(stderr, _("(%lld tokens before the answer, %lld of them read now; %lld said)\n"),
                (long long)usage->prompt_tokens, (long long)usage->evaluated_tokens, (long long)t->answer->n);
}

/* A message that cannot be answered is told; the talk goes on. */
static void say(talk *t, const char *text, size_t length)
{
    qkv_chat_usage usage = QKV_OPTS(qkv_chat_usage);
    interrupted = 0;
    qkv_status status = qkv_chat_add(t->chat, "user", (qkv_str){ text, length });
    if (!status && (status = qkv_chat_reply(t->chat, &t->opts, &t->answer, &usage))) qkv_chat_remove_last(t->chat);
    if (status && !ferror(stdout)) library_failed();
    if (!t->refused) t->refused = status;
    if (!status) putchar('\n');
    fflush(stdout);
    if (!status) tell_turn(t, &usage);
    forget_interrupts();
}

/* ---- commands ---- */

/* A conversation as qkv_chat_to_json() writes it has a message on each line. */
static int64_t count_messages(const qkv_text *all)
{
    int64_t n = 0;
    for (size_t i = 0; i < all->length; i++) n += all->data[i] == '\n';
    return !strncmp(all->data, "[]", 2) ? 0 : n;
}

static qkv_status save(const talk *t, const char *path)
{
    qkv_text *all = NULL;
    if (!*path) return fail(QKV_USAGE, "/save needs the name of a file");
    qkv_status status = qkv_chat_to_json(t->chat, &all);
    if (!status) status = qkv_file_write(path, all->data, all->length);
    if (!status) fprintf(stderr, _("(%lld messages are in %s)\n"), (long long)count_messages(all), path);
    qkv_free(all);
    return status ? library_failed() : QKV_OK;
}

/* Instead of the conversation so far. */
static qkv_status load(talk *t, const char *path)
{
    qkv_buffer all = { 0 };
    if (!*path) return fail(QKV_USAGE, "/load needs the name of a file");
    if (qkv_text_read(path, 0, &all)) return library_failed();
    bool is_json = all.length && (*all.data == '[' || *all.data == '{');
    qkv_status status = is_json ? qkv_chat_from_json(t->chat, (qkv_str){ all.data, all.length })
                                : fail(QKV_FORMAT, "%s: no conversation in JSON", path);
    qkv_buffer_free(&all);
    qkv_text *read = NULL;
    if (!status) status = qkv_chat_to_json(t->chat, &read);
    if (!status) fprintf(stderr, _("(%lld messages from %s)\n"), (long long)count_messages(read), path);
    qkv_free(read);
    return status && is_json ? library_failed() : status;
}

/* The argument of a command; NULL: it is another one. */
static const char *argument_of(const char *line, const char *name)
{
    const size_t length = strlen(name);
    if (strncmp(line, name, length) || (line[length] && line[length] != ' ')) return NULL;
    return line + length + strspn(line + length, " ");
}

static qkv_status run_slash(talk *t, const char *line)
{
    const char *rest;
    if ((rest = argument_of(line, "/system"))) return qkv_chat_set_system(t->chat, qkv_cstr(rest)) ? library_failed() : QKV_OK;
    if ((rest = argument_of(line, "/save"))) return save(t, rest);
    if ((rest = argument_of(line, "/load"))) return load(t, rest);
    if (argument_of(line, "/reset")) return qkv_chat_clear(t->chat), QKV_OK;
    if (argument_of(line, "/exit")) return t->has_ended = true, QKV_OK;
    if (!argument_of(line, "/help"))
        return fail(QKV_USAGE,
                    "\"%.*s\" is no command: /system, /reset, /save, /load, /exit, /help; // begins a message with a slash",
                    (int)strcspn(line, " "), line);
    fputs(_("/system TEXT  set the system message; without TEXT remove it\n"
            "/reset        forget all messages but the system message\n"
            "/save FILE    write the conversation to FILE, as JSON\n"
            "/load FILE    read a conversation from FILE\n"
            "/exit         end the chat, as Ctrl-D does\n"
            "/help         list the commands\n"
            "//TEXT        a message that begins with a slash\n"
            "Ctrl-C stops an answer.\n"),
          stderr);
    return QKV_OK;
}

/* ---- the talk ---- */

static void take_line(talk *t, char *line, size_t length)
{
    while (length && (line[length - 1] == '\n' || line[length - 1] == '\r')) line[--length] = '\0';
    if (!length) return;
    if (line[0] == '/' && line[1] != '/') {
        qkv_status status = run_slash(t, line);
        if (!t->refused) t->refused = status;
    } else say(t, line + (line[0] == '/'), length - (line[0] == '/'));
}

static void talk_line_by_line(talk *t)
{
    char *line = NULL;
    size_t room = 0;
    while (!ferror(stdout) && !t->has_ended) {
        typed_line got = TYPED_LINE;
        if (t->is_typed) got = read_typed_line("> ", noted[0], &line, &room);
        else if (getline(&line, &room, stdin) < 0) got = TYPED_END;
        if (got == TYPED_END) break;
        if (got == TYPED_LINE) take_line(t, line, strlen(line));
        else forget_interrupts(), putchar('\n');
    }
    if (t->is_typed) end_typed_lines(), putchar('\n');
    free(line);
}

static qkv_status run_chat(void)
{
    qkv_model *m;
    talk t = { .is_typed = isatty(STDIN_FILENO) };
    qkv_chat_opts o = QKV_OPTS(qkv_chat_opts);
    o.max_context = given.context;
    qkv_status status = check_sampling();
    if (!status) status = load_model_for(given.model, QKV_CAN_GENERATE, &m);
    if (status) return status;
    t.opts = sampling_options(m);
    t.opts.no_log_p = 1;
    t.opts.on_text = print_piece;
    t.opts.hooks = &(qkv_hooks){ .cancel = is_interrupted };
    status = open_chat(m, &o, given.tools, &t.chat);
    if (!status && given.system && qkv_chat_set_system(t.chat, qkv_cstr(given.system))) status = library_failed();
    if (!status) status = catch_interrupts();
    if (!status) talk_line_by_line(&t);
    if (!status && !t.is_typed) status = t.refused;
    qkv_free(t.answer);
    qkv_chat_free(t.chat);
    qkv_model_free(m);
    return status;
}

const command chat_command = {
    .name = "chat",
    .summary = "chat with a language model",
    .about = "Reads messages line by line and prints the model's answers as they come. The\n"
             "model's chat template (chat_template.jinja, or \"chat_template\" in\n"
             "tokenizer_config.json) writes the talk as the model was trained to read it;\n"
             "--template gives another. What was read is kept: a turn reads what is new alone.\n"
             "When the conversation no longer fits into --context tokens, its oldest messages are\n"
             "dropped, but never the system message. A note says so once.\n"
             "\n"
             "Ctrl-C stops an answer, and the talk goes on; Ctrl-D, or the end of the input,\n"
             "ends it. /system TEXT, /reset, /save FILE, /load FILE, /exit and /help are commands;\n"
             "// begins a message with a slash. Notes go to standard error, so that the answers alone can\n"
             "be piped; the exit status then is that of the first message or command that failed.",
    .example = "  qkv chat -m models/Qwen2.5-0.5B-Instruct --temp 0.7 --top-p 0.8",
    .options = options,
    .run = run_chat,
};
