/* cmd_explain.c: qkv explain: one attention, step by step, with the numbers. */
#include "../learn/explain.h"

#include <qkv/unstable/inspect.h>
#include "options.h"
#include "streams.h"

#define KIND_NAME(constant, name) name,
static const char *const kind_names[] = { QKV_ATTENTION_LIST(KIND_NAME) NULL };

static explain_input given = { .kind = -1 };
static struct {
    int kind;
    bool json, latex;
} chosen;

static const option options[] = {
    { "q", .group = INPUT_GROUP, .value = "ARRAY", .help = "queries (T, D), with --k and --v", .text = &given.q },
    { "k", .group = INPUT_GROUP, .value = "ARRAY", .help = "keys", .text = &given.k },
    { "v", .group = INPUT_GROUP, .value = "ARRAY", .help = "values", .text = &given.v },
    { "x", .group = INPUT_GROUP, .value = "ARRAY", .help = "or embeddings (T, D), with --wq, --wk and --wv", .text = &given.x },
    { "embed", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "or an embedding table, with --ids",
      .text = &given.embed },
    { "ids", .is_rare = true, .group = INPUT_GROUP, .value = "IDS", .help = "rows of --embed, such as 133,23,58",
      .text = &given.ids },
    { "y", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "input of keys and values (default: --x)",
      .text = &given.y },
    { "wq", .group = INPUT_GROUP, .value = "ARRAY", .help = "W_Q, (in, out): Q = X W_Q", .text = &given.w[PART_Q] },
    { "wk", .group = INPUT_GROUP, .value = "ARRAY", .help = "W_K", .text = &given.w[PART_K] },
    { "wv", .group = INPUT_GROUP, .value = "ARRAY", .help = "W_V", .text = &given.w[PART_V] },
    { "wo", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "W_O, for the output of the heads",
      .text = &given.w[PART_O] },
    { "bq", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "the bias of each product: Q = X W_Q + b_Q",
      .text = &given.b[PART_Q] },
    { "bk", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "", .text = &given.b[PART_K] },
    { "bv", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "", .text = &given.b[PART_V] },
    { "bo", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "", .text = &given.b[PART_O] },
    { "sequence", .is_rare = true, .group = INPUT_GROUP, .value = "I",
      .help = "which sequence of a batch (B, T, D), from 0 (default: 0)", .whole = &given.sequence },
    { "heads", .group = INPUT_GROUP, .value = "N", .help = "number of heads, side by side in the columns",
      .count = &given.heads },
    { "mask", .group = INPUT_GROUP, .value = "MASK", .help = "causal, padding:3,5 (keys from 0), or causal+padding:3",
      .text = &given.mask },
    { "causal", .group = INPUT_GROUP, .help = "causal mask: query i sees keys 0..i; with fewer queries, the last sees all",
      .flag = &given.causal },
    { "bias", .is_rare = true, .group = INPUT_GROUP, .value = "ARRAY", .help = "added to the scaled scores; -inf hides",
      .text = &given.bias },
    { "tokens", .group = INPUT_GROUP, .value = "NAMES", .help = "names of the tokens, such as \"the cat sat\"",
      .text = &given.tokens },
    { "model", 'm', .group = MODEL_GROUP, .value = "DIR", .help = "model folder", .text = &given.model },
    { "text", .group = MODEL_GROUP, .value = "TEXT", .help = "its input text", .plain = true, .text = &given.text },
    { "target", .is_rare = true, .group = MODEL_GROUP, .value = "TEXT",
      .help = "translation to look at (default: the model's own)", .text = &given.target },
    { "kind", .is_rare = true, .group = MODEL_GROUP, .value = "NAME", .help = " (default: cross for a translator)",
      .choice = &chosen.kind, .names = kind_names },
    { "layer", .group = MODEL_GROUP, .value = "L", .help = "layer number from 0 (default: 0)", .text = &given.layer },
    { "head", .group = RESULT_GROUP, .value = "H", .help = "head number from 0, or all (default: 0 for a model)",
      .text = &given.head },
    { "token", .group = RESULT_GROUP, .value = "T", .help = "show only this query: number from 0, or the token",
      .text = &given.token },
    { "json", .group = RESULT_GROUP, .help = "print JSON, with all digits", .flag = &chosen.json },
    { "latex", .is_rare = true, .group = RESULT_GROUP, .help = "print a LaTeX document", .flag = &chosen.latex },
    RESULT_ROW(RESULT_GROUP),
    { 0 },
};

static qkv_status open_explained(void) { return open_results(NULL); }

static qkv_status run_explain(void)
{
    if (chosen.json && chosen.latex) return fail(QKV_USAGE, "--json and --latex: choose one");
    if (was_given("kind")) given.kind = chosen.kind;
    return explain(&given, chosen.json ? EXPLAIN_JSON : chosen.latex ? EXPLAIN_LATEX : EXPLAIN_TEXT, open_explained);
}

const command explain_command = {
    .name = "explain",
    .summary = "compute one attention step by step",
    .about = "Shows softmax(Q K^T / sqrt(d_k)) V step by step: embeddings, queries, keys, values,\n"
             "heads, scores, scaled and masked scores, weights and output, each as a table, and\n"
             "in a sentence what each token attends to. Without arguments it shows an example of\n"
             "three tokens.\n"
             "\n"
             "An ARRAY is typed, as \"[[1, 0], [0, 1]]\" or \"1 0; 0 1\", or the name of a file: .npy,\n"
             "or rows of numbers such as CSV. What a mask hides is shown as ///.\n"
             "\n"
             "With --model it shows one attention inside a model while it reads a text, with the\n"
             "numbers that \"qkv forward\" and \"qkv attend\" give; wide tables are cut, --json has\n"
             "all of them.",
    .example = "  qkv explain\n"
               "  qkv explain --q \"1 0\" --k \"1 0; 0 1; 1 0\" --v \"10 0; 0 20; 30 0\"\n"
               "  qkv explain --x \"[[1,0],[0,1]]\" --wq \"1 0; 0 1\" --wk \"1 0; 0 1\" \\\n"
               "    --wv \"1 2; 3 4\" --mask causal\n"
               "  qkv explain -m model \"I love you\" --layer 1 --head 3 --token 2",
    .options = options,
    .run = run_explain,
};
