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
    bool past_context;
} sampling_values;
extern sampling_values sampling;

/* clang-format off */
#define SAMPLING_ROWS(tokens_help) \
    { "max-tokens", 'n', .group = SAMPLING_GROUP, .value = "N", .help = tokens_help, .count = &sampling.max_tokens }, \
    { "temp", .group = SAMPLING_GROUP, .value = "T", .help = "temperature; 0 = greedy (default: the model's, else 0)", \
      .number = &sampling.temperature }, \
    { "top-k", .group = SAMPLING_GROUP, .value = "K", .help = "sample from the K most likely tokens", \
      .count = &sampling.top_k }, \
    { "top-p", .group = SAMPLING_GROUP, .value = "P", .help = "sample from the most likely tokens with total probability P", \
      .number = &sampling.top_p }, \
    { "min-p", .is_rare = true, .group = SAMPLING_GROUP, .value = "P", \
      .help = "sample from tokens at least P times as likely as the best", \
      .number = &sampling.min_p }, \
    { "repetition-penalty", .is_rare = true, .group = SAMPLING_GROUP, .value = "R", \
      .help = "penalize repeated tokens; R > 1", .number = &sampling.repetition_penalty }, \
    { "no-repeat-ngram", .is_rare = true, .group = SAMPLING_GROUP, .value = "N", .help = "repeat no N-gram", \
      .count = &sampling.no_repeat }, \
    { "stop", .group = SAMPLING_GROUP, .value = "TEXT..", .help = "stop before any of these texts", \
      .list = &sampling.stops }, \
    { "seed", .group = SAMPLING_GROUP, .value = "N", .help = "random seed (default: 0)", \
      .whole = &sampling.seed }
#define TEMPLATE_ROW(in_group) \
    { "template", .is_rare = true, .group = in_group, .value = "FILE", \
      .help = "chat template in Jinja (default: the model's)", \
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
