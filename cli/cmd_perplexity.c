/* cmd_perplexity.c: qkv perplexity: how surprised a language model is by a text. */
#include "documents.h"
#include "model.h"
#include "streams.h"
#include "term/print.h"

#include <math.h>
#include <stdio.h>

static struct {
    const char *model;
    value_list files;
    int context, stride;
    bool strict, json;
} given = { .context = 256 };

static const option options[] = {
    { "model", 'm', .value = "DIR", .help = "the folder of a language model", .required = true, .text = &given.model },
    WEIGHT_ROWS(NO_GROUP),
    { "input", 'i', .group = DATA_GROUP, .value = "FILES", .help = "the text, plain or gzip", .required = true, .plain = true,
      .list = &given.files },
    DOCUMENT_OPTIONS,
    { "context", .group = DATA_GROUP, .value = "N", .help = "tokens the model sees at once, 256 unless given",
      .count = &given.context },
    { "stride", .group = DATA_GROUP, .value = "N", .help = "how far a window moves; --context unless given",
      .count = &given.stride },
    { "strict", .group = DATA_GROUP, .help = "refuse a line that is not UTF-8 instead of repairing it", .flag = &given.strict },
    RESULT_ROW(NO_GROUP),
    { "json", .help = "print a JSON object", .flag = &given.json },
    { 0 },
};

typedef struct measured {
    const qkv_model *model;
    qkv_nll sum;
    int64_t bytes, documents;
} measured;

static qkv_status add_document(void *data, const char *text, size_t length)
{
    measured *x = data;
    x->bytes += (int64_t)length;
    x->documents++;
    return qkv_measure_text(x->model, text, length, given.context, given.stride, &x->sum);
}

static void print_row(const char *name, int decimals, double value)
{
    print_name(_(name), 13, false);
    printf("%.*f\n", decimals, value);
}

static void print_measured(const measured *x)
{
    double nats = x->sum.nats / (double)x->sum.tokens;
    double bits = x->sum.nats / log(2) / (double)x->bytes;
    if (given.json) {
        printf("{\"documents\": %lld, \"tokens\": %lld, \"bytes\": %lld, \"nats_per_token\": %.17g, \"perplexity\": %.17g, "
               "\"bits_per_token\": %.17g, \"bits_per_byte\": %.17g}\n",
               (long long)x->documents, (long long)x->sum.tokens, (long long)x->bytes, nats, exp(nats), nats / log(2), bits);
        return;
    }
    print_row(N_("documents"), 0, (double)x->documents);
    print_row(N_("tokens"), 0, (double)x->sum.tokens);
    print_row(N_("bytes"), 0, (double)x->bytes);
    print_row(N_("nats/token"), 4, nats);
    print_row(N_("perplexity"), 4, exp(nats));
    print_row(N_("bits/token"), 4, nats / log(2));
    print_row(N_("bits/byte"), 4, bits);
}

static qkv_status run_perplexity(void)
{
    if (given.stride > given.context)
        return fail(QKV_USAGE, "--stride %d is more than --context %d", given.stride, given.context);
    qkv_model *m;
    qkv_status status = load_model(given.model, &m);
    if (status) return status;
    measured x = { .model = m };
    status = read_documents(&given.files, given.strict, false, add_document, &x, NULL);
    if (!status) status = open_results(NULL);
    if (!status) print_measured(&x);
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
};
