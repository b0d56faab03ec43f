/* cmd_page.c: qkv page: a model in one file that a browser runs. */
#include "../serve/serve.h"
#include "options.h"
#include "../term/print.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    const char *model, *out, *engine, *name;
    int64_t bits, checkpoints;
    bool quiet;
} given = { .bits = 16, .checkpoints = -1 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    { "out", 'o', .value = "FILE", .help = "HTML file to write", .required = true, .text = &given.out },
    { "bits", .value = "N", .help = "bits per weight: 8, 16 or 32 (default: 16)", .whole = &given.bits },
    { "checkpoints", .value = "N", .help = "include at most N models kept by --keep (default: as many as fit in 8 MiB)",
      .whole = &given.checkpoints },
    { "name", .value = "TEXT", .help = "name of the model on the page (default: the folder's name)", .text = &given.name },
    { "engine", .is_rare = true, .value = "FILE", .help = "engine.wasm.gz from \"make wasm\" (default: searched)",
      .text = &given.engine },
    { "quiet", .is_rare = true, .help = "do not report files written", .flag = &given.quiet },
    { 0 },
};

/* Beside the command as it was built, or where it was installed. */
static const char *find_engine(void)
{
    static const char *const places[] = { "engine.wasm.gz", "../wasm/engine.wasm.gz", "../share/qkv/engine.wasm.gz" };
    static char path[PATH_MAX + 64];
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    if (n <= 0) return NULL;
    own[n] = '\0';
    char *slash = strrchr(own, '/');
    if (slash) *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%s", own, places[i]);
        if (!access(path, R_OK)) return path;
    }
    return NULL;
}

static qkv_status run_page(void)
{
    const char *engine = given.engine ? given.engine : find_engine();
    if (!engine)
        return fail(QKV_UNSUPPORTED,
                    "this build has no engine for browsers: make one with \"make wasm\", or give --engine FILE");
    if (was_given("checkpoints") && (given.checkpoints < 0 || given.checkpoints > 1000000))
        return fail(QKV_USAGE, "--checkpoints %lld: expected 0 to 1000000", (long long)given.checkpoints);
    if (given.bits != 8 && given.bits != 16 && given.bits != 32)
        return fail(QKV_USAGE, "--bits %lld: expected 8, 16 or 32", (long long)given.bits);
    const qkv_page_opts opts = { .size = sizeof opts,
                                 .engine = engine,
                                 .bits = (int)given.bits,
                                 .checkpoints = given.checkpoints < 0 ? 0
                                                : given.checkpoints   ? (int)given.checkpoints
                                                                      : -1,
                                 .name = given.name ? given.name : last_part(given.model) };
    if (qkv_page_write(given.out, given.model, &opts)) return library_failed();
    if (!given.quiet) fprintf(stderr, _("qkv: wrote %s\n"), given.out);
    return QKV_OK;
}

const command page_command = {
    .name = "page",
    .summary = "write a web page that runs a model in the browser",
    .about = "Writes one file with the model, the library as WebAssembly and a page around them. It\n"
             "opens from disk in Chromium and Firefox, computes in the browser and asks nothing of\n"
             "anyone: type a text, see what the model makes of it and what every head attends to.\n"
             "Weights have 16 bits in it unless --bits says otherwise. Models that a training kept\n"
             "in the folder (--keep) are put in too, for a slider that shows how it learnt. The same\n"
             "page, with this program computing, is /live of \"qkv serve\".",
    .example = "  qkv page -m demo/model -o live.html",
    .options = options,
    .run = run_page,
};
