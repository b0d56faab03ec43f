/* main.c: qkv COMMAND [options]. */
#include "options.h"
#include "ranks.h"
#include "streams.h"
#include "suggestions.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const command *const commands[] = {
    &translate_command, &summarize_command, &classify_command, &generate_command, &chat_command, &perplexity_command,
    &fill_command, &tag_command, &answer_command, &embed_command,
    &similar_command, &rank_command, &serve_command, &page_command,
    &train_translate_command, &train_classify_command, &train_generate_command, &train_mask_command,
    &runs_command, &average_command, &export_command, &quantize_command, &shortlist_command, &score_command,
    &tokenizer_command, &tokenize_command, &detokenize_command,
    &attend_command, &lens_command, &why_command, &show_model_command, &show_positions_command, &show_flow_command, &show_curve_command, &show_array_command,
    &forward_command, &attention_command,
    &learn_command, &quiz_command, &exercise_command, &explain_command, &line_command,
    &example_translate_command, &example_summarize_command, &example_classify_command, &example_generate_command,
    &info_command, &bench_command,
    NULL,
};

const command *const common_commands[] = {
    &translate_command, &classify_command, &generate_command, &chat_command, &serve_command, &train_translate_command,
    &train_classify_command, &train_generate_command, &tokenize_command, &attend_command, &show_model_command, &learn_command,
    NULL,
};

const command_heading command_headings[] = {
    { &translate_command, N_("use a model") },
    { &train_translate_command, N_("train a model") },
    { &tokenizer_command, N_("text and tokens") },
    { &attend_command, N_("look inside") },
    { &learn_command, N_("learn and try out") },
    { &info_command, N_("about") },
    { NULL, NULL },
};
/* clang-format on */

static const command *running;

/* ---- the standard streams ---- */

/* A file opened while stdout is closed would become stdout and take what is printed. A stand-in that refuses writing keeps the
 * number taken, and printing fails as it should. */
static void hold_standard_streams(void)
{
    int fd;
    do fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
    signal(SIGPIPE, SIG_IGN); /* a training and a server go on without a reader; see finish_output() */
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is a write error */
}

/* Whether nobody reads standard output any more, as after "| head". */
static bool reader_is_gone(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&out, 1, 0) > 0 && out.revents & POLLERR;
}

static qkv_status finish_output(qkv_status status)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout)) return status;
    if ((!status || status == QKV_IO) && reader_is_gone()) return common.signal = SIGPIPE, QKV_OK; /* quietly, as others do */
    return status ? status
                  : fail(QKV_IO, "cannot write to %s: %s", results_name(), errno ? _(strerror(errno)) : _("write error"));
}

/* ---- commands ---- */

/* Whether name is the first word of a command with a job. */
static bool has_jobs(const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; commands[i]; i++)
        if (!strncmp(commands[i]->name, name, length) && commands[i]->name[length] == ' ') return true;
    return false;
}

/* The command that the arguments start with; *arguments is then past its name. */
static const command *find_command(char ***arguments)
{
    const char *name = *(*arguments)++, *job = "";
    char full[256];
    bool needs_job = has_jobs(name);
    const char *resumed = needs_job && !strcmp(name, "train") ? find_resumed_job(*arguments) : NULL;
    if (resumed && ***arguments == '-') job = resumed;
    else if (needs_job && **arguments) job = *(*arguments)++;
    snprintf(full, sizeof full, "%s%s%s", name, needs_job ? " " : "", job);
    for (int i = 0; commands[i]; i++)
        if (!strcmp(commands[i]->name, full)) return commands[i];
    if (needs_job) unknown_job(name, job);
    else unknown_command(name);
    return NULL;
}

static bool is_help(const char *argument) { return argument && (!strcmp(argument, "--help") || !strcmp(argument, "-h")); }

static qkv_status run_command(char **arguments)
{
    if (has_jobs(*arguments) && is_help(arguments[1])) return print_jobs_help(*arguments), QKV_OK;
    if (!(running = find_command(&arguments))) return QKV_USAGE;
    name_errors(running->name);
    qkv_status status = parse_options(running, arguments);
    if (status) return status;
    if (common.help) return print_command_help(running, common.all), QKV_OK;
    if (common.threads > QKV_MAX_THREADS) return fail(QKV_USAGE, "--threads %d: at most %d", common.threads, QKV_MAX_THREADS);
    if (common.threads && qkv_set_num_threads(common.threads)) return library_failed();
    if (running->is_shared && (status = join_ranks(common.threads))) return status;
    status = running->run();
    qkv_shutdown();
    return running->is_shared ? leave_ranks(status) : status;
}

/* What follows "qkv help": a command, the first word of several, or all. */
static qkv_status help_about(char **arguments)
{
    const char *name = *arguments;
    bool all = name && (!strcmp(name, "all") || !strcmp(name, "--all"));
    if (all || !name || *name == '-' || !strcmp(name, "help") || !strcmp(name, "version")) return print_help(all), QKV_OK;
    if (has_jobs(name) && (!arguments[1] || *arguments[1] == '-')) return print_jobs_help(name), QKV_OK;
    const command *c = find_command(&arguments);
    if (!c) return QKV_USAGE;
    print_command_help(c, *arguments && !strcmp(*arguments, "--all"));
    return QKV_OK;
}

static qkv_status run_arguments(char **arguments)
{
    if (!(arguments = choose_language(arguments))) return QKV_USAGE;
    const char *first = *arguments;
    if (!first) return fail(QKV_USAGE, "no command given: see \"qkv --help\"");
    if (is_help(first) || !strcmp(first, "help")) return help_about(arguments + 1);
    if (!strcmp(first, "--version") || !strcmp(first, "version")) return printf("qkv %s\n", qkv_version()), QKV_OK;
    if (!strcmp(first, "--man")) return print_manual(), QKV_OK;
    if (!strcmp(first, "--texts")) return list_texts(), QKV_OK;
    if (*first == '-') return fail(QKV_USAGE, "unknown option \"%s\": see \"qkv --help\"", first);
    return run_command(arguments);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    catch_cut_files();
    qkv_status status = finish_output(run_arguments(argv + (argc > 0)));
    return !status && common.signal ? 128 + common.signal : (int)status;
}
