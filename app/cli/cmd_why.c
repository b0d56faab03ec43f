/* cmd_why.c: qkv why: which tokens an output is due to. */
#include "model.h"
#include "streams.h"
#include "../draw/print_maps.h"
#include "../report/attention.h"

#include <stdlib.h>
#include <string.h>

#define METHOD_NAME(constant, name) name,
static const char *const method_names[] = { QKV_ATTRIBUTE_LIST(METHOD_NAME) NULL };

static struct {
    const char *model, *class_name;
    captured_text from;
    int method, steps;
    int64_t at;
    bool json, pad;
} given;

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    CAPTURE_ROWS(given.from),
    TOUCH_ROWS,
    { "class", .group = INPUT_GROUP, .value = "LABEL", .help = "class to explain: name or number (default: the most likely)",
      .text = &given.class_name },
    { "at", .is_rare = true, .group = INPUT_GROUP, .value = "I",
      .help = "explain the token after decoder token I (default: 0; the last for a text alone)", .whole = &given.at },
    { "method", .group = RESULT_GROUP, .value = "NAME", .help = " (default: all)", .choice = &given.method,
      .names = method_names },
    { "steps", .is_rare = true, .group = RESULT_GROUP, .value = "N", .help = "steps of integrated gradients (default: 256)",
      .count = &given.steps },
    { "pad-baseline", .is_rare = true, .group = RESULT_GROUP,
      .help = "baseline of integrated gradients: the padding token instead of zeros", .flag = &given.pad },
    { "json", .group = RESULT_GROUP, .help = "print JSON instead of a table", .flag = &given.json },
    { 0 },
};

static qkv_status find_class(const qkv_model *m, qkv_attribute_opts *o)
{
    char *end;
    if (!given.class_name) return QKV_OK;
    o->has_output = 1;
    for (o->output = 0; qkv_model_label(m, o->output); o->output++)
        if (!strcmp(qkv_model_label(m, o->output), given.class_name)) return QKV_OK;
    o->output = strtoll(given.class_name, &end, 10);
    return *end ? fail(QKV_USAGE, "--class %s: the model has no such class", given.class_name) : QKV_OK;
}

static qkv_status run_why(void)
{
    qkv_model *m = NULL;
    qkv_attention_capture *a = NULL;
    qkv_attribution *why = NULL;
    qkv_buffer text = { 0 };
    qkv_attribute_opts o = {
        .methods = was_given("method") ? 1u << given.method : 0, .at = given.at, .steps = given.steps, .pad_baseline = given.pad
    };
    qkv_status status = load_touched_model(given.model, 0, &m);
    qkv_config config = { .size = sizeof config };
    if (!status) qkv_model_config(m, &config);
    if (!status && was_given("at") && !config.decoder_layers)
        status = fail(QKV_USAGE, "--at: %s has no decoder, and one output a text", given.model);
    if (!status) status = find_class(m, &o);
    if (!status) status = capture_text(m, &given.from, &a);
    if (!status) note_ngrams(m);
    if (!status && !was_given("at") && !a->source.n) o.at = a->target.n - 1;
    if (!status && qkv_attribute(m, a, &o, &why)) status = library_failed();
    if (!status) status = print_text(qkv_attribution_text(m, a, why, given.json, &text), &text);
    qkv_free(why);
    qkv_free(a);
    qkv_model_free(m);
    return status;
}

const command why_command = {
    .name = "why",
    .summary = "attribute an output to input tokens",
    .about = "Gives every token that was read a number for each method: how much it has done\n"
             "for the logit of a class, or of the token that a decoder says next.\n"
             "\n"
             "gradient is gradient x input. integrated is integrated gradients (Sundararajan\n"
             "et al. 2017), which add up to the logit minus that of the baseline, embeddings\n"
             "of zeros. value-zeroing (Mohebbi et al. 2023) is how far states move without the\n"
             "value of a token, rollout (Abnar and Zuidema 2020) how attention flows; both\n"
             "multiply the layers, are shares of 1, and do not know the output but its place.\n"
             "\n"
             "A translator reads the text and the translation that it finds, or --target;\n"
             "--at I asks why the token after the I-th comes, 0 being the start.",
    .example = "  qkv why -m reviews \"a wonderful film\" --class positive\n"
               "  qkv why -m model \"I love you\" --at 1 --method value-zeroing",
    .options = options,
    .run = run_why,
};
