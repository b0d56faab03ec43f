/* cmd_serve.c: qkv serve: a model behind HTTP, with a page to look at it. */
#include "../serve/serve.h"

#include <qkv/unstable/util.h>
#include "model.h"
#include "options.h"
#include "sampling.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *model, *host, *token, *token_file, *access_log;
    int64_t port, prefix_cache;
    int per_address, batch;
    value_list languages, origins;
} given = { .port = 8080, .prefix_cache = 256 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "port", .value = "N", .help = "port to listen on (default: 8080); 0 = any free port", .whole = &given.port },
    { "host", .value = "NAME", .help = "address to listen on (default: 127.0.0.1); 0.0.0.0 = all; others need --token",
      .text = &given.host },
    { "token", .value = "TEXT", .help = "require \"Authorization: Bearer TEXT\" of requests", .text = &given.token },
    { "token-file", .value = "FILE", .help = "read the token from the first line of FILE (default: $QKV_TOKEN)",
      .text = &given.token_file },
    { "languages", .value = "SOURCE TARGET", .help = "language codes of a translator, such as en zh",
      .list = &given.languages },
    { "allow-origin", .is_rare = true, .value = "ORIGIN...",
      .help = "allow pages of these origins (CORS), such as http://localhost:3000; * = any", .list = &given.origins },
    { "access-log", .is_rare = true, .value = "FILE", .help = "append one line per request to FILE; - = standard output",
      .text = &given.access_log },
    { "connections-per-address", .is_rare = true, .value = "N",
      .help = "maximum connections per client, 1 to 128 (default: 96)", .count = &given.per_address },
    { "batch", .is_rare = true, .value = "N", .help = "maximum requests per batch, 1 to 128 (default: 16)",
      .count = &given.batch },
    { "prefix-cache", .is_rare = true, .value = "N", .help = "size of the prefix cache in MiB (default: 256); 0 = off",
      .whole = &given.prefix_cache },
    TEMPLATE_ROW(NO_GROUP),
    { 0 },
};

/* ---- signals ---- */

static volatile sig_atomic_t caught, wants_reload;

static void catch_signal(int number)
{
    if (number == SIGHUP) wants_reload = 1;
    else caught = number;
}

/* A second Ctrl-C ends the program at once. The signals are blocked except while the program waits for them, so none is lost
 * between a look and the wait; threads that start now never get them. */
static void catch_signals(sigset_t *before)
{
    const struct sigaction once = { .sa_handler = catch_signal, .sa_flags = (int)SA_RESETHAND };
    const struct sigaction always = { .sa_handler = catch_signal };
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigprocmask(SIG_BLOCK, &held, before);
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
    sigaction(SIGHUP, &always, NULL);
}

/* SIGHUP also comes when the terminal is closed; then the server ends. */
static void wait_for_signals(qkv_server *s, const sigset_t *before)
{
    const bool has_terminal = isatty(STDIN_FILENO);
    while (!caught) {
        sigsuspend(before);
        if (!wants_reload) continue;
        wants_reload = 0;
        if (has_terminal && !isatty(STDIN_FILENO)) caught = SIGHUP;
        else qkv_server_reload(s);
    }
}

static void tell_reload(void *data, const char *error)
{
    (void)data;
    if (error)
        fprintf(stderr,
                _("qkv: serve: the model's files have changed, but cannot be loaded; the old model is still served: %s\n"),
                error);
    else fprintf(stderr, _("qkv: serve: %s was loaded again\n"), given.model);
}

/* ---- serving ---- */

/* The last part of the folder's path. */
static const char *name_of(const char *folder, char *room, size_t size)
{
    snprintf(room, size, "%s", folder);
    size_t length = strlen(room);
    while (length > 1 && room[length - 1] == '/') room[--length] = '\0';
    const char *slash = strrchr(room, '/');
    const char *name = slash && slash[1] ? slash + 1 : room;
    return *name && strcmp(name, ".") && strcmp(name, "..") && qkv_utf8_valid(name, strlen(name)) == strlen(name) ? name : NULL;
}

/* Only the token of --token is printed. */
static qkv_status tell_address(const qkv_server *s)
{
    qkv_buffer text = { 0 };
    qkv_status status = qkv_server_address(s, &text) ? library_failed() : QKV_OK;
    char *token = status || given.token ? NULL : strstr(text.data, "/#token=");
    if (token) *token = '\0';
    if (!status) puts(text.data), fflush(stdout);
    qkv_buffer_free(&text);
    return status;
}

/* ---- the token ---- */

enum { MOST_TOKEN = 4096 };
static char token_room[MOST_TOKEN + 2];

/* The first line of a file, without its line break. An empty token is an error here: the library would ask for none. */
static qkv_status read_token(const char *path, const char **token)
{
    FILE *f = fopen(path, "re");
    if (!f) return fail(QKV_IO, "%s: cannot be opened: %s", path, _(strerror(errno)));
    bool has_line = fgets(token_room, sizeof token_room, f) != NULL, failed = ferror(f);
    fclose(f);
    if (failed) return fail(QKV_IO, "%s: cannot be read: %s", path, _(strerror(errno)));
    size_t length = has_line ? strcspn(token_room, "\r\n") : 0;
    token_room[length] = '\0';
    if (!length) return fail(QKV_FORMAT, "%s: its first line is empty: the token must be there", path);
    if (length > MOST_TOKEN) return fail(QKV_FORMAT, "%s: a token has at most %d bytes", path, MOST_TOKEN);
    *token = token_room;
    return QKV_OK;
}

static qkv_status find_token(const char **token)
{
    const char *variable = getenv("QKV_TOKEN");
    if (given.token && given.token_file) return fail(QKV_USAGE, "--token and --token-file: choose one");
    *token = given.token ? given.token : variable && *variable ? variable : NULL;
    return given.token_file ? read_token(given.token_file, token) : QKV_OK;
}

/* ---- the access log ---- */

/* Called on many threads: one line at a time. */
static void log_access(void *data, const qkv_access *a)
{
    FILE *to = data;
    qkv_buffer line = { 0 };
    if (qkv_access_text(a, time(NULL), &line)) return;
    flockfile(to);
    fprintf(to, "%s\n", line.data);
    fflush(to);
    funlockfile(to);
    qkv_buffer_free(&line);
}

static qkv_status open_log(FILE **log)
{
    *log = NULL;
    if (!given.access_log) return QKV_OK;
    *log = strcmp(given.access_log, "-") ? fopen(given.access_log, "ae") : stdout;
    return *log ? QKV_OK : fail(QKV_IO, "%s: cannot be opened: %s", given.access_log, _(strerror(errno)));
}

static qkv_status serve(const qkv_model *m, const qkv_load_opts *load, const char *token, FILE *log)
{
    char room[256];
    sigset_t before;
    const qkv_server_opts opts = { .size = sizeof opts,
                                   .template_file = sampling.template,
                                   .host = given.host,
                                   .port = (int)given.port,
                                   .token = token,
                                   .name = name_of(given.model, room, sizeof room),
                                   .source_language = given.languages.n ? given.languages.at[0] : NULL,
                                   .target_language = given.languages.n ? given.languages.at[1] : NULL,
                                   .origins = (const char *const *)given.origins.at,
                                   .n_origins = given.origins.n,
                                   .each_access = log ? log_access : NULL,
                                   .each_access_data = log,
                                   .connections_per_address = given.per_address,
                                   .prefix_cache = given.prefix_cache ? given.prefix_cache << 20 : -1,
                                   .batch = given.batch,
                                   .folder = given.model,
                                   .reload = load,
                                   .each_reload = tell_reload };
    catch_signals(&before);
    qkv_server *s = qkv_server_new(m, &opts);
    if (!s) return library_failed();
    qkv_status status = tell_address(s);
    if (!status) wait_for_signals(s, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    qkv_server_free(s);
    common.signal = caught;
    return status;
}

static qkv_status check_serve_options(const char *token)
{
    if (given.port > 65535) return fail(QKV_USAGE, "--port %lld: ports are 0 to 65535", (long long)given.port);
    if (given.host && !token)
        return fail(QKV_USAGE,
                    "--host lets others reach the model: it needs --token, --token-file or QKV_TOKEN, which they must know");
    if (given.prefix_cache > INT64_MAX >> 20)
        return fail(QKV_USAGE, "--prefix-cache %lld: that is more than there are bytes", (long long)given.prefix_cache);
    if (given.languages.n && given.languages.n != 2) return fail(QKV_USAGE, "--languages takes two codes, source and target");
    return QKV_OK;
}

/* Every connection has a thread, and malloc as many arenas as there are threads, up to 8 a core. Each keeps what it once
 * needed, and only of the first one the library can give it all back. Requests allocate seldom: one arena is enough. */
static void use_one_arena(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

static qkv_status run_serve(void)
{
    const char *token = NULL;
    qkv_status status = find_token(&token);
    if (!status) status = check_serve_options(token);
    if (status) return status;
    use_one_arena();
    FILE *log;
    if ((status = open_log(&log))) return status;
    qkv_load_opts load = { .size = sizeof load, .in_memory = 1 };
    status = chosen_weights(&load.dtype);
    qkv_model *m = status ? NULL : qkv_model_load(given.model, &load);
    if (!status) status = m ? serve(m, &load, token, log) : library_failed();
    qkv_model_free(m);
    if (log && log != stdout && fclose(log) && !status) status = fail(QKV_IO, "%s: cannot be written", given.access_log);
    return status;
}

const command serve_command = {
    .name = "serve",
    .summary = "serve a model over HTTP, with a web page",
    .about = "Prints the address when it is ready: open it in a browser to type texts and see\n"
             "what every head attends to. The same address answers programs: POST /translate\n"
             "and GET /languages as LibreTranslate has them, POST /v1/completions (streaming\n"
             "too), POST /v1/embeddings and GET /v1/models as OpenAI has them, POST /classify,\n"
             "POST /tag, POST /answer, POST /rank, POST /attention, POST /tokenize,\n"
             "POST /detokenize, GET /info and GET /health. Ctrl-C ends it, after what has arrived is answered.\n"
             "\n"
             "Requests that come at the same time are answered in one batch, and a prompt is read\n"
             "from where it differs from recent ones. Answers are those of the commands.\n"
             "\n"
             "Only this machine can reach it, unless --host names another address; then a token\n"
             "is needed: --token, which other users of this machine can see, --token-file or the\n"
             "variable QKV_TOKEN. The printed address has the token of --token after the #, which\n"
             "browsers keep to themselves. For the other two, add /#token=... to the address. There is no encryption: over a "
             "network you do not trust, put it\n"
             "behind a proxy that has some.",
    .example = "  qkv serve -m models/en-zh --languages en zh\n"
               "  curl -d '{\"q\": \"I love you\", \"source\": \"en\", \"target\": \"zh\"}' \\\n"
               "      -H 'Content-Type: application/json' \\\n"
               "      http://127.0.0.1:8080/translate\n"
               "\n"
               "  qkv serve -m tickets\n"
               "  curl -d '{\"text\": \"refund!\"}' -H 'Content-Type: application/json' \\\n"
               "      http://127.0.0.1:8080/classify",
    .options = options,
    .run = run_serve,
};
