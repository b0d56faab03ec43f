/* cmd_perplexity.c: qkv perplexity: how surprised a language model is by a text. */
#include "../report/results.h"
#include "lines.h"
#include "model.h"
#include "ranks.h"
#include "streams.h"
#include "../draw/print_maps.h"

static struct {
    const char *model;
    value_list files;
    int documents, context, stride;
    bool strict, json;
} given = { .context = 256 };

static const char *const document_names[] = { "lines", "paragraphs", "files", NULL }; /* in the order of qkv_document_kind */

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "folder of a language model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "input", 'i', .group = DATA_GROUP, .value = "FILES", .help = "text files, plain or gzip", .required = true, .plain = true,
      .list = &given.files },
    { "documents", .group = DATA_GROUP, .value = "KIND",
      .help = "unit of a document: lines, paragraphs or files (default: lines)", .choice = &given.documents,
      .names = document_names },
    { "context", .group = DATA_GROUP, .value = "N", .help = "context in tokens (default: 256)", .count = &given.context },
    { "stride", .is_rare = true, .group = DATA_GROUP, .value = "N",
      .help = "stride of the window in tokens (default: --context)", .count = &given.stride },
    { "strict", .is_rare = true, .group = DATA_GROUP, .help = "reject lines that are not UTF-8 instead of repairing them",
      .flag = &given.strict },
    RESULT_ROW(NO_GROUP),
    { "json", .help = "print a JSON object", .flag = &given.json },
    { 0 },
};

static qkv_status run_perplexity(void)
{
    if (given.stride > given.context)
        return fail(QKV_USAGE, "--stride %d is more than --context %d", given.stride, given.context);
    qkv_model *m;
    qkv_status status = load_model_for(given.model, QKV_CAN_GENERATE, &m);
    if (status) return status;
    const qkv_measure_opts opts = { .documents = (qkv_document_kind)given.documents,
                                    .context = given.context,
                                    .stride = given.stride,
                                    .strict = given.strict,
                                    .note = speaks_for_ranks() ? tell_note : NULL };
    qkv_measured found;
    qkv_buffer text = { 0 };
    if (qkv_measure_files(m, (const char *const *)given.files.at, given.files.n, &opts, &found)) status = library_failed();
    if (!status) status = open_results(NULL);
    if (!status) status = print_text(qkv_measured_text(&found, given.json, &text), &text);
    qkv_model_free(m);
    return status;
}

const command perplexity_command = {
    .name = "perplexity",
    .summary = "compute the perplexity of a text",
    .about = "Prints the mean of -log p of a token in nats, its exponential (the perplexity),\n"
             "and the same in bits a token and bits a byte. Windows of --context tokens move\n"
             "by --stride: each token is counted once, given the tokens before it in the first\n"
             "window that has it. Without --stride, nats/token is the loss that \"qkv train\n"
             "generate\" reports for the same text and context.",
    .example = "  qkv perplexity -m play valid.txt --documents files --stride 64",
    .options = options,
    .run = run_perplexity,
    .is_shared = true,
};
