/* cmd_perplexity.c: qkv perplexity: how surprised a language model is by a text. */
#include "lines.h"
#include "model.h"
#include "ranks.h"
#include "streams.h"
#include "term/heatmap.h"

static struct {
    const char *model;
    value_list files;
    int documents, context, stride;
    bool strict, json;
} given = { .context = 256 };

static const char *const document_names[] = { "lines", "paragraphs", "files", NULL }; /* in the order of qkv_document_kind */

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "the folder of a language model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "input", 'i', .group = DATA_GROUP, .value = "FILES", .help = "the text, plain or gzip", .required = true, .plain = true,
      .list = &given.files },
    { "documents", .group = DATA_GROUP, .value = "KIND",
      .help = "what a document is: lines (unless given), paragraphs or files", .choice = &given.documents,
      .names = document_names },
    { "context", .group = DATA_GROUP, .value = "N", .help = "tokens the model sees at once, 256 unless given",
      .count = &given.context },
    { "stride", .group = DATA_GROUP, .value = "N", .help = "how far a window moves; --context unless given",
      .count = &given.stride },
    { "strict", .group = DATA_GROUP, .help = "refuse a line that is not UTF-8 instead of repairing it", .flag = &given.strict },
    RESULT_ROW(NO_GROUP),
    { "json", .help = "print a JSON object", .flag = &given.json },
    { 0 },
};

static qkv_status run_perplexity(void)
{
    if (given.stride > given.context)
        return fail(QKV_USAGE, "--stride %d is more than --context %d", given.stride, given.context);
    qkv_model *m;
    qkv_status status = load_model_for(given.model, QKV_ABILITY_GENERATE, &m);
    if (status) return status;
    const qkv_measure_opts opts = { .documents = (qkv_document_kind)given.documents,
                                    .context = given.context,
                                    .stride = given.stride,
                                    .strict = given.strict,
                                    .note = speaks_for_ranks() ? tell_note : NULL };
    qkv_measured found;
    qkv_text text = { 0 };
    if (qkv_measure_files(m, (const char *const *)given.files.at, given.files.n, &opts, &found)) status = library_failed();
    if (!status) status = open_results(NULL);
    if (!status) status = print_text(qkv_measured_text(&found, given.json, &text), &text);
    qkv_model_free(m);
    return status;
}

const command perplexity_command = {
    .name = "perplexity",
    .summary = "tell how surprised a language model is by a text",
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
