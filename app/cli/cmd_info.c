/* cmd_info.c: qkv info: what this build is and what it chose on this machine; or what a model is. */
#include "../report/results.h"

#include <qkv/unstable/util.h>
#include <qkv/unstable/dist.h>
#include "options.h"
#include "streams.h"
#include "../draw/print_maps.h"
#include "../term/print.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *model;
    bool json;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "describe the model in this folder", .plain = true, .text = &given.model },
    { "json", .help = "print JSON", .flag = &given.json },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

/* ---- two ways to say it ---- */

/* The environment may hold any bytes; in JSON each odd one becomes an escape. */
static void put_json_text(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c >= 0x7f || *c == '"' || *c == '\\') printf("\\u%04x", *c);
        else putchar(*c);
    }
    putchar('"');
}

static void print_text_line(const char *name, const char *key, const char *text)
{
    if (!given.json) {
        print_name(_(name), 23, false);
        puts(text ? text : _("(none)"));
        return;
    }
    printf("  \"%s\": ", key);
    if (text) put_json_text(text);
    else fputs("null", stdout);
    puts(",");
}

static void print_available(void)
{
    if (given.json) fputs("  \"available\": [", stdout);
    else print_name(_("available"), 23, false);
    for (int i = 0; qkv_isa_at(i); i++) {
        fputs(i ? ", " : "", stdout);
        if (given.json) put_json_text(qkv_isa_at(i));
        else fputs(qkv_isa_at(i), stdout);
    }
    puts(given.json ? "]," : "");
}

/* The variable that the library takes the number from, see qkv_num_threads(). */
static const char *threads_source(void)
{
    static const char *const variables[] = { "QKV_THREADS", "OMP_NUM_THREADS" };
    for (int i = 0; i < 2; i++) {
        const char *text = getenv(variables[i]);
        char *end;
        if (text && isdigit((unsigned char)*text) && strtol(text, &end, 10) > 0 && (!*end || *end == ',')) return variables[i];
    }
    return N_("physical cores");
}

static void print_threads(void)
{
    const char *source = common.threads ? "--threads" : threads_source();
    if (!given.json) print_name(_("threads"), 23, false);
    printf(given.json ? "  \"threads\": %d,\n  \"threads_from\": \"%s\"\n" : _("%d (from %s)\n"), qkv_num_threads(),
           given.json ? source : _(source));
}

static void print_packed(void)
{
    if (!given.json) print_name(_("packed weights"), 23, false);
    printf(given.json ? "  \"packed_limit\": %zu,\n" : _("up to %zu MiB (QKV_PACKED)\n"),
           given.json ? qkv_packed_limit() : qkv_packed_limit() >> 20);
}

static void print_plugins(void)
{
    char names[64] = "";
    for (int i = 0; qkv_dist_plugin(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", qkv_dist_plugin(i));
    print_text_line(N_("several machines"), "mpi", *names ? names : NULL);
}

static qkv_status print_build(void)
{
    const char *wish = getenv("QKV_ISA"), *isa = qkv_isa();
    qkv_status status = open_results(NULL);
    if (status) return status;
    if (given.json) puts("{");
    print_text_line(N_("version"), "version", qkv_version());
    print_text_line(N_("instruction set"), "isa", isa);
    print_available();
    print_text_line("QKV_ISA", "isa_wish", wish && *wish ? wish : NULL);
    print_text_line(N_("compiler"), "compiler", COMPILER);
    print_text_line(N_("built without"), "without", *WITHOUT ? WITHOUT : NULL);
    print_plugins();
    print_packed();
    print_threads();
    if (given.json) puts("}");
    return isa ? QKV_OK : library_failed();
}

/* Weights are mapped, not read. */
static qkv_status print_model(void)
{
    qkv_buffer text = { 0 };
    qkv_model *m = qkv_model_load(given.model, NULL);
    if (!m) return library_failed();
    qkv_status status = open_results(NULL);
    if (!status) status = print_text(qkv_model_describe(m, given.model, given.json, &text), &text);
    qkv_model_free(m);
    return status;
}

static qkv_status run_info(void) { return given.model ? print_model() : print_build(); }

const command info_command = {
    .name = "info",
    .summary = "describe this build or a model",
    .about = "Shows the version, the instruction set in use and those this machine can run\n"
             "(best last; QKV_ISA chooses), how many threads compute and where that number\n"
             "came from, how much memory weights may take a second time, in the order that\n"
             "large products read them (QKV_PACKED chooses), which MPI libraries it can run on\n"
             "several machines with, and what the program was built with.\n"
             "\n"
             "With a model's folder: its architecture, parameters, files, sizes, tokenizer and\n"
             "the commands that it can do its work in. Weights are not read, so that even a\n"
             "large model is told of at once.",
    .example = "  qkv info --json\n"
               "  qkv info opus-mt-en-de",
    .options = options,
    .run = run_info,
};
