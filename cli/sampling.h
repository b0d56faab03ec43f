/* sampling.h: how new tokens are chosen, and the chat template: options of the commands that generate. */
#ifndef QKV_CLI_SAMPLING_H
#define QKV_CLI_SAMPLING_H

#include "options.h"

typedef struct sampling_values {
    int max_tokens, top_k, no_repeat;
    float temperature, top_p, min_p, repetition_penalty;
    value_list stops;
    int64_t seed;
    const char *template;
} sampling_values;
extern sampling_values sampling;

/* clang-format off */
#define SAMPLING_ROWS(tokens_help) \
    { "max-tokens", 'n', .group = SAMPLING_GROUP, .value = "N", .help = tokens_help, .count = &sampling.max_tokens }, \
    { "temp", .group = SAMPLING_GROUP, .value = "T", .help = "divide logits by T; 0 takes the likeliest token always", \
      .number = &sampling.temperature }, \
    { "top-k", .group = SAMPLING_GROUP, .value = "K", .help = "draw from the K likeliest tokens only", \
      .count = &sampling.top_k }, \
    { "top-p", .group = SAMPLING_GROUP, .value = "P", .help = "only from the likeliest that together have probability P", \
      .number = &sampling.top_p }, \
    { "min-p", .group = SAMPLING_GROUP, .value = "P", .help = "only from those at least P times as likely as the likeliest", \
      .number = &sampling.min_p }, \
    { "repetition-penalty", .group = SAMPLING_GROUP, .value = "R", \
      .help = "make tokens that the text has already less likely, for R above 1", .number = &sampling.repetition_penalty }, \
    { "no-repeat-ngram", .group = SAMPLING_GROUP, .value = "N", .help = "no run of N tokens comes twice", \
      .count = &sampling.no_repeat }, \
    { "stop", .group = SAMPLING_GROUP, .value = "TEXT..", .help = "end before the first of these texts", \
      .list = &sampling.stops }, \
    { "seed", .group = SAMPLING_GROUP, .value = "N", .help = "another number, other draws; 0 unless given", \
      .whole = &sampling.seed }
#define TEMPLATE_ROW(in_group) \
    { "template", .group = in_group, .value = "FILE", .help = "the chat template, in Jinja; else that of the model's folder", \
      .text = &sampling.template }
/* clang-format on */

/* USAGE, reported, for a number out of range. */
qkv_status check_sampling(void);

/* What the model's files ask for, and the options over it. */
qkv_generate_opts sampling_options(const qkv_model *m);

/* A chat with the template of --template, or of the model's folder; opts may be NULL, tools is the name of a JSON file or NULL.
 * Reports its error. */
qkv_status open_chat(const qkv_model *m, const qkv_chat_opts *opts, const char *tools, qkv_chat **out);

#endif
