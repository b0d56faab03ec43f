/* cmd_tag.c: qkv tag: lines in, the names and places in them out. */
#include "../report/results.h"
#include "../report/strings.h"
#include "lines.h"
#include "model.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
    const char *model;
    int max_length, batch;
    bool words, json, strict, quiet;
} given = { .batch = 256 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "folder of a token classification model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    TEXT_ROWS(NO_GROUP),
    RESULT_ROW(NO_GROUP),
    { "words", .help = "print every word with its label, not only entities", .flag = &given.words },
    { "json", .help = "print one JSON object per line", .flag = &given.json },
    { "max-length", .is_rare = true, .value = "N", .help = "maximum tokens read at a time (default: the model's, at most 512)",
      .count = &given.max_length },
    { "batch", .is_rare = true, .value = "N", .help = "lines tagged at a time (default: 256)", .count = &given.batch },
    { "strict", .is_rare = true, .help = "reject lines that are not UTF-8 instead of repairing them", .flag = &given.strict },
    { "quiet", .is_rare = true, .help = "print errors only", .flag = &given.quiet },
    { 0 },
};

typedef struct work {
    qkv_model *model;
    qkv_tagged *found;
    qkv_buffer text;
} work;

static qkv_status print_tags(work *w, int64_t before)
{
    for (int64_t i = 0; i < w->found->n; i++) {
        if (qkv_tagged_lines(w->found, i, given.words, given.json, &w->text)) return library_failed();
        if (given.json) printf("{\"line\": %lld, %s\n", (long long)(before + i + 1), w->text.data + 1);
        else printf("%s%s", before + i ? "\n" : "", w->text.length ? w->text.data : "");
    }
    return QKV_OK;
}

static qkv_status tag_group(void *data, line_group *g)
{
    work *w = data;
    qkv_str *texts = qkv__strings_of((const char *const *)g->at, g->lengths, g->n);
    const qkv_encoder_opts opts = { .max_length = given.max_length };
    bool failed = !texts || qkv_tag(w->model, texts, g->n, &opts, &w->found);
    free(texts);
    return failed ? library_failed() : print_tags(w, g->before);
}

static qkv_status run_tag(void)
{
    work w = { 0 };
    text_stream in = { 0 };
    qkv_status status = load_model_for(given.model, QKV_CAN_TAG, &w.model);
    if (!status) status = open_texts(&in);
    if (!status) status = open_results(&in);
    if (!status) status = each_group(&in, given.batch, given.strict, given.quiet, tag_group, &w);
    close_texts(&in);
    qkv_free(w.found);
    qkv_buffer_free(&w.text);
    qkv_model_free(w.model);
    return status;
}

const command tag_command = {
    .name = "tag",
    .summary = "find names, places and other entities",
    .about = "Prints the entities of each text, or line: label, score and text, with TABs between\n"
             "them; with --words every word so. Results of two lines are an empty line apart.\n"
             "\n"
             "A word has the label of its first token, and its probability as score. Words are\n"
             "joined by their labels: B-PER begins an entity, I-PER goes on with it; of IOBES and\n"
             "BILOU E- and L- end one, S- and U- are one alone. Labels without such marks are\n"
             "names by themselves, and O is no entity. An entity's score is the mean of its\n"
             "words'. A line of more tokens than are read at once is read in windows that overlap.\n"
             "\n"
             "Models that can: published ones whose architecture ends in ForTokenClassification.\n"
             "With --json, span is where the text is in bytes, characters in code points.",
    .example = "  qkv tag -m bert-base-NER \"Angela Merkel lives in Berlin.\"",
    .options = options,
    .run = run_tag,
    .is_shared = true,
};
