/* cmd_quantize.c: qkv quantize: a model's weights in 8 or 4 bits, and what that costs. */
#include "../report/results.h"
#include "lines.h"
#include "model.h"
#include "../draw/print_maps.h"

#include <stdio.h>

static struct {
    const char *model, *out, *texts, *references;
    bool quiet, json;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "model folder", .required = true, .plain = true, .text = &given.model },
    { "out", 'o', .value = "DIR", .help = "folder to write", .required = true, .plain = true, .text = &given.out },
    INTEGER_ROWS(NO_GROUP),
    { "texts", .value = "FILE", .help = "measure the cost on these lines", .text = &given.texts },
    { "references", .value = "FILE", .help = "reference translations, for BLEU", .text = &given.references },
    { "json", .help = "print the cost as JSON", .flag = &given.json },
    { "quiet", .is_rare = true, .help = "do not report files written", .flag = &given.quiet },
    { 0 },
};

static qkv_status check_quantize_options(void)
{
    if (!weights.int8 && !weights.int4) return fail(QKV_USAGE, "--int8 or --int4 is missing: see \"qkv quantize --help\"");
    if (given.references && !given.texts) return fail(QKV_USAGE, "--references needs --texts");
    return check_new_folder(given.out);
}

static qkv_status read_texts_given(lines *texts, lines *references)
{
    qkv_status status = given.texts ? read_lines(texts, given.texts, true) : QKV_OK;
    if (!status && given.references) status = read_lines(references, given.references, true);
    if (!status && given.texts && !texts->n) status = fail(QKV_FORMAT, "%s: there are no lines", given.texts);
    if (!status && given.references && references->n != texts->n)
        status = fail(QKV_FORMAT, "%s has %lld lines, %s has %lld", given.texts, (long long)texts->n, given.references,
                      (long long)references->n);
    return status;
}

/* The model as it was against the one that was written. */
static qkv_status tell_cost(const qkv_model *quantized, const lines *texts, const lines *references)
{
    qkv_buffer text = { 0 };
    qkv_model_comparison found;
    qkv_model *before = qkv_model_load(given.model, NULL);
    qkv_status status = before ? QKV_OK : library_failed();
    if (!status && qkv_compare_models(before, quantized, (const char *const *)texts->at,
                                      given.references ? (const char *const *)references->at : NULL, texts->n, &found))
        status = library_failed();
    if (!status) status = print_text(qkv_model_comparison_text(&found, given.json, &text), &text);
    qkv_model_free(before);
    return status;
}

static qkv_status run_quantize(void)
{
    lines texts = { 0 }, references = { 0 };
    qkv_model *m = NULL;
    qkv_status status = check_quantize_options();
    if (!status) status = read_texts_given(&texts, &references);
    if (!status) status = load_model(given.model, &m);
    if (!status && qkv_model_save(m, given.out, NULL)) status = library_failed();
    if (!status && !given.quiet) fprintf(stderr, "qkv: wrote %s\n", given.out);
    if (!status && given.texts) status = tell_cost(m, &texts, &references);
    qkv_model_free(m);
    free_lines(&texts);
    free_lines(&references);
    return status;
}

const command quantize_command = {
    .name = "quantize",
    .summary = "quantize a model to 8 or 4 bits",
    .about = "Writes the model with its matrices in 8 bits, or in 4 with tables of tokens and the\n"
             "output in 8: about a quarter or an eighth of the bytes, and as much less to read for\n"
             "every token. Norms, biases and positions stay float32. Every command runs such a\n"
             "folder as it lies there; it cannot be trained. --int8 and --int4 of those commands\n"
             "do the same for one run, without writing anything.\n"
             "\n"
             "With --texts the model is compared with itself as it was: a translator by BLEU\n"
             "between the translations of both, and with --references by BLEU against these; a\n"
             "language model by perplexity; a classifier by how many texts keep their class;\n"
             "another encoder by the cosine of its embeddings.",
    .example = "  qkv quantize ours ours-int8 --int8\n"
               "  qkv quantize ours ours-int4 --int4 --texts test.en --references test.de",
    .options = options,
    .run = run_quantize,
};
