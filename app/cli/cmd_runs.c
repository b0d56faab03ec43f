/* cmd_runs.c: qkv runs: trainings side by side: how they went, and the options that differ. */
#include "../draw/view.h"
#include "options.h"
#include "streams.h"
#include "../draw/print_maps.h"

static struct {
    value_list folders;
    bool json;
} given;

static const option options[] = {
    { "folder", .value = "DIR", .help = "training folders", .required = true, .plain = true, .list = &given.folders },
    { "json", .help = "print one JSON object per line, with all options", .flag = &given.json },
    RESULT_ROW(NO_GROUP),
    { 0 },
};

static qkv_status run_runs(void)
{
    qkv_buffer text = { 0 };
    const char *const *folders = (const char *const *)given.folders.at;
    if (qkv_trainings_text(folders, given.folders.n, given.json, &text)) return qkv_buffer_free(&text), library_failed();
    qkv_status status = open_results(NULL);
    if (!status) return print_text(QKV_OK, &text);
    qkv_buffer_free(&text);
    return status;
}

const command runs_command = {
    .name = "runs",
    .summary = "compare trainings",
    .about = "A line for each training: its folder, job, updates, minutes, best validation and its\n"
             "step, and why it ended. Options that are not the same in all of them follow, in the\n"
             "table where they fit into 80 columns.",
    .example = "  qkv runs models/*",
    .options = options,
    .run = run_runs,
};
