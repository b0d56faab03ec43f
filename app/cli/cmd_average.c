/* cmd_average.c: qkv average: one model out of several of one training. */
#include "../report/average.h"
#include "options.h"

#include <stdio.h>

static struct {
    value_list models;
    const char *out;
    bool quiet;
} given;

static const option options[] = {
    { "models", 'm', .value = "DIR..", .help = "model folders", .required = true, .list = &given.models },
    { "out", 'o', .value = "DIR", .help = "folder to write", .required = true, .text = &given.out },
    { "quiet", .help = "print errors only", .flag = &given.quiet },
    { 0 },
};

static qkv_status run_average(void)
{
    qkv_model *mean = qkv_model_average((const char *const *)given.models.at, given.models.n);
    if (!mean) return library_failed();
    qkv_status status = qkv_model_save(mean, given.out, NULL) ? library_failed() : QKV_OK;
    if (!status && !given.quiet) fprintf(stderr, _("qkv: wrote %s\n"), given.out);
    qkv_model_free(mean);
    return status;
}

const command average_command = {
    .name = "average",
    .summary = "average several checkpoints of one training",
    .about = "Sets each weight to its mean over the models, and writes a model like them. The\n"
             "last few that a training saved are, averaged, mostly better than each of them.\n"
             "They must have the same config.json and the same tokenizers; a length penalty that\n"
             "was fitted to some of them alone is left out. The folder to write may be one of\n"
             "those that are read.",
    .example = "  qkv average --models run/step-8000 run/step-9000 run/step-10000 \\\n"
               "    --out averaged",
    .options = options,
    .run = run_average,
};
