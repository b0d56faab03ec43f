/* cmd_export.c: qkv export: a model, written as another family has it. */
#include "model.h"

#include "../recipe/model_card.h"

#include <stdio.h>

static const char *const family_names[] = { "marian",  "pegasus",  "bart",       "mbart",   "m2m_100",    "t5",
                                            "mt5",     "umt5",     "bert",       "roberta", "distilbert", "mpnet",
                                            "electra", "albert",   "modernbert", "gpt2",    "opt",        "llama",
                                            "mistral", "qwen2",    "qwen3",      "gemma",   "gemma2",     "gemma3_text",
                                            "phi3",    "gpt_neox", "qkv",        NULL };

static struct {
    const char *model, *out;
    int family;
    bool quiet;
} given;

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    { "as", .value = "FAMILY",
      .help = "marian, pegasus, bart, mbart, m2m_100, t5, mt5, umt5, bert, roberta, distilbert, mpnet, electra, albert, "
              "modernbert, "
              "gpt2, opt, llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text, phi3, gpt_neox or qkv",
      .choice = &given.family, .names = family_names },
    { "out", 'o', .value = "DIR", .help = "folder to write", .required = true, .text = &given.out },
    { "quiet", .help = "do not report files written", .flag = &given.quiet },
    { 0 },
};

static qkv_status run_export(void)
{
    if (!was_given("as")) return fail(QKV_USAGE, "--as is missing: see \"qkv export --help\"");
    qkv_status status = check_new_folder(given.out);
    if (status) return status;
    qkv_model *m = qkv_model_load(given.model, NULL);
    if (!m || qkv_model_save(m, given.out, family_names[given.family]) ||
        qkv__write_card(m, given.out, family_names[given.family]))
        status = library_failed();
    qkv_model_free(m);
    if (!status && !given.quiet) fprintf(stderr, _("qkv: wrote %s\n"), given.out);
    return status;
}

const command export_command = {
    .name = "export",
    .summary = "export a model in the format of another family",
    .about = "Writes a model's config, weights (float32) and tokenizer under the names that a\n"
             "published family has for them, so that other programs open it; or, with --as qkv,\n"
             "under our own. Loaded again, every weight has the same bits.\n"
             "\n"
             "A family has one shape, and a model of another cannot be written as it: the\n"
             "sentence says what differs. What \"qkv train translate\" makes without options\n"
             "is a Pegasus, what \"qkv train generate\" makes a Llama, what \"qkv train mask\"\n"
             "and \"qkv train classify\" make a ModernBERT; --like of a training chooses\n"
             "another. The folder is whole: tokens around a text, special tokens, how to\n"
             "generate, a card.",
    .example = "  qkv train translate --train a.en a.de --out ours\n"
               "  qkv export -m ours --as pegasus -o ours-pegasus",
    .options = options,
    .run = run_export,
};
