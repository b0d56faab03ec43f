/* cmd_lens.c: qkv lens: what the model would say after each layer. */
#include "model.h"
#include "streams.h"
#include "../draw/print_maps.h"
#include "../report/attention.h"

static struct {
    const char *model;
    captured_text from;
    int k;
    bool json;
} given;

static const option options[] = {
    { "model", 'm', .group = INPUT_GROUP, .value = "DIR", .help = "model folder", .required = true, .text = &given.model },
    WEIGHT_ROWS(INPUT_GROUP),
    CAPTURE_ROWS(given.from),
    TOUCH_ROWS,
    { "top", 'k', .group = RESULT_GROUP, .value = "K", .help = "most likely tokens per position in the JSON (default: 5)",
      .count = &given.k },
    { "json", .group = RESULT_GROUP, .help = "print JSON instead of a table", .flag = &given.json },
    { 0 },
};

static qkv_status run_lens(void)
{
    qkv_model *m = NULL;
    qkv_attention_capture *a = NULL;
    qkv_logit_lens_result *lens = NULL;
    qkv_buffer text = { 0 };
    qkv_status status = load_touched_model(given.model, 0, &m);
    if (!status) status = capture_text(m, &given.from, &a);
    if (!status && qkv_logit_lens(m, a, &(qkv_logit_lens_opts){ .k = given.k }, &lens)) status = library_failed();
    if (!status) status = print_text(qkv_logit_lens_text(m, a, lens, given.json, &text), &text);
    qkv_free(lens);
    qkv_free(a);
    qkv_model_free(m);
    return status;
}

const command lens_command = {
    .name = "lens",
    .summary = "show the prediction after each layer (logit lens)",
    .about = "The logit lens: the states after each layer, and those before the first, go\n"
             "through the norm at the end and the output layer as if they were the last.\n"
             "Each row is a token that the decoder has read (or an encoder that fills words\n"
             "in), each column the likeliest token after that layer with its probability,\n"
             "then what comes next in the text, and how surprising it is: -log2 of its\n"
             "probability in the last layer.\n"
             "\n"
             "A translator reads the text and the translation that it finds, or --target.",
    .example = "  qkv lens -m model \"I love you\"\n"
               "  qkv lens -m model \"I love you\" --without-head cross:1.3 --json",
    .options = options,
    .run = run_lens,
};
