/* suggestions.c: what was meant by an option or a command that there is not. */
#include "suggestions.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- names of other programs ---- */

/* clang-format off */
/* What fairseq, Marian, OpenNMT, transformers, llama.cpp and others call an option of ours, for commands that start so. */
static const struct {
    const char *ours, *command, *theirs;
} foreign_options[] = {
    { "train", "train", "train-sets train-file train-data training-data dataset data" },
    { "valid", "train", "valid-sets validation-file validation-data validation eval-file dev dev-file" },
    { "split", "train", "val-split valid-split validation-split val-fraction val-size test-size holdout" },
    { "minutes", "train", "time time-limit max-time max-minutes max-train-time" },
    { "fit", "train translate", "length-penalty lenpen" },
    { "epochs", "train", "max-epoch max-epochs num-epochs n-epochs num-train-epochs after-epochs" },
    { "steps", "train", "max-update max-updates max-steps num-steps train-steps iterations after-batches" },
    { "lr", "", "learning-rate" },
    { "schedule", "train", "lr-scheduler lr-schedule lr-scheduler-type scheduler decay-method" },
    { "warmup", "train", "lr-warmup num-warmup-steps" },
    { "max-tokens", "train", "batch-size mini-batch per-device-train-batch-size" },
    { "batch", "", "batch-size mini-batch" },
    { "update-freq", "train", "gradient-accumulation-steps accumulate-grad-batches accum-count optimizer-delay" },
    { "clip-norm", "train", "max-grad-norm gradient-clip-val grad-clip clip" },
    { "weight-decay", "train", "wd l2" },
    { "beta1", "train", "adam-beta1 adam-betas betas" },
    { "beta2", "train", "adam-beta2" },
    { "eps", "train", "adam-eps adam-epsilon epsilon" },
#define QKV_TRAIN_OPTION(member, kind, name, value, job, from, group, help, theirs, ...) { name, "train", theirs },
#include <qkv/transformer.def>
    { "layers", "train", "n-layers n-layer num-layers num-hidden-layers" },
    { "context", "train generate", "block-size context-length max-seq-length" },
    { "max-length", "train", "max-seq-length max-seq-len max-source-positions block-size" },
    { "patience", "train", "early-stopping early-stop early-stopping-patience" },
    { "valid-every", "train", "valid-freq valid-steps validate-interval eval-steps eval-interval" },
    { "save-every", "train", "save-freq save-steps save-interval save-checkpoint-steps" },
    { "log-every", "train", "log-interval logging-steps disp-freq report-every" },
    { "keep", "train", "save-total-limit keep-checkpoint" },
    { "resume", "train", "continue" },
    { "from", "train", "restore-file train-from init-from model-name-or-path pretrained-model" },
    { "size", "tokenizer", "vocab-size vocab" },
    { "model", "", "model-name-or-path checkpoint" },
    { "input", "", "src" },
    { "out", "", "save-dir output-dir save-model model-dir dest" },
    { "beam", "", "num-beams" },
    { "length-penalty", "", "lenpen" },
    { "max-tokens", "generate", "max-new-tokens n-predict max-length" },
    { "max-length", "translate", "max-new-tokens max-len-b" },
    { "samples", "generate", "num-return-sequences num-samples" },
    { "repetition-penalty", "generate", "repeat-penalty" },
    { "ref", "score", "references tgt" },
    { "hyp", "score", "hypothesis hypotheses sys" },
    { "seed", "", "random-seed random-state" },
    { "threads", "", "num-workers workers cpu-threads num-threads n-threads" },
};

static const struct {
    const char *ours, *theirs;
} foreign_commands[] = {
    { "export", "convert" },
    { "score", "bleu sacrebleu evaluate eval" },
    { "perplexity", "ppl" },
    { "generate", "complete predict" },
    { "attend", "visualize heatmap" },
    { "tokenize", "encode" },
    { "detokenize", "decode" },
    { "serve", "web ui" },
};

/* What there is nothing for, and why. */
static const struct {
    const char *theirs, *reason;
} foreign_wishes[] = {
    { "gpu gpus gpu-id cuda no-cuda device devices device-map n-gpu-layers ngl tpu", N_("qkv runs on the CPU, with --threads") },
    { "fp16 bf16 half amp precision mixed-precision dtype", N_("qkv computes in float32") },
    { "finetune fine-tune", N_("\"qkv train JOB --from DIR\" goes on from a model") },
    { "download pull", N_("qkv downloads nothing: a model is a folder on this machine") },
};
/* clang-format on */

/* Whether a word is one of those with spaces between them. */
static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; length && (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' ')) return true;
    return false;
}

static const char *foreign_reason(const char *name)
{
    for (size_t i = 0; i < sizeof foreign_wishes / sizeof *foreign_wishes; i++)
        if (has_word(foreign_wishes[i].theirs, name)) return _(foreign_wishes[i].reason);
    return NULL;
}

/* ---- names that are nearly the same ---- */

enum { LONGEST_NAME = 32, MOST_CHANGES = 3 };

static int least(int a, int b) { return a < b ? a : b; }

/* Letters to add, drop, change or swap with the next to make one name of the other, of n letters, at most LONGEST_NAME. */
static int distance(const char *a, const char *b, int n)
{
    int rows[3][LONGEST_NAME + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= n; j++) above[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = least(row[j], before[j - 2] + 1);
        }
        int *oldest = before;
        before = above, above = row, row = oldest;
    }
    return above[n];
}

/* One begins with the other: "warmup-steps" and "warmup", "temperature" and "temp"; a few letters say little. */
static bool begin_alike(const char *mistyped, const char *name, size_t n)
{
    size_t m = strlen(mistyped);
    if (m < n) return m > 2 && !strncmp(mistyped, name, m);
    return !strncmp(mistyped, name, n) && (mistyped[n] == '-' ? n > 2 : n > 3);
}

typedef struct nearest {
    const char *mistyped;
    const char *name; /* the nearest so far, length letters of it; or NULL */
    int length, distance;
} nearest;

/* A third of the letters may be wrong. */
static void keep_nearer(nearest *x, const char *name, int length)
{
    int typed = (int)strlen(x->mistyped);
    if (typed > LONGEST_NAME || length > LONGEST_NAME) return;
    int d = distance(x->mistyped, name, length), allowed = least(MOST_CHANGES, (typed > length ? typed : length) / 3);
    if (d > allowed && !begin_alike(x->mistyped, name, (size_t)length)) return;
    if (d > allowed) d += LONGEST_NAME; /* after any that is nearly the same */
    if (x->name && d >= x->distance) return;
    x->name = name;
    x->length = length;
    x->distance = d;
}

/* ---- options ---- */

static const option *find_named(const option *table, const char *name)
{
    for (const option *o = table; o->name; o++)
        if (!strcmp(o->name, name)) return o;
    return NULL;
}

static const char *foreign_option(const command *c, const char *name)
{
    for (size_t i = 0; i < sizeof foreign_options / sizeof *foreign_options; i++) {
        const char *ours = foreign_options[i].ours, *start = foreign_options[i].command;
        if (strncmp(c->name, start, strlen(start)) || !has_word(foreign_options[i].theirs, name)) continue;
        if (find_named(c->options, ours) || find_named(common_options, ours)) return ours;
    }
    return NULL;
}

static const char *meant_option(const command *c, const char *name)
{
    nearest x = { .mistyped = name };
    const char *foreign = foreign_option(c, name);
    if (foreign) return foreign;
    for (const option *o = c->options; o->name; o++) keep_nearer(&x, o->name, (int)strlen(o->name));
    for (const option *o = common_options; o->name; o++) keep_nearer(&x, o->name, (int)strlen(o->name));
    return x.name;
}

static bool takes_texts(const command *c)
{
    for (const option *o = c->options; o->name; o++)
        if (o->plain && o->may_be_empty) return true;
    return false;
}

qkv_status unknown_option(const command *c, const char *argument)
{
    char name[64];
    snprintf(name, sizeof name, "%s", argument + strspn(argument, "-"));
    name[strcspn(name, "=")] = '\0';
    for (char *at = name; *at; at++)
        if (*at == '_') *at = '-';
    const char *reason = foreign_reason(name), *meant = name[0] && name[1] ? meant_option(c, name) : NULL;
    if (reason) return fail(QKV_USAGE, "unknown option \"%s\": %s", argument, reason);
    if (meant) return fail(QKV_USAGE, "unknown option \"%s\": did you mean \"--%s\"?", argument, meant);
    if (takes_texts(c) && strchr(argument, ' '))
        return fail(QKV_USAGE, "unknown option \"%s\": put -- before a text that starts with a dash", argument);
    return fail(QKV_USAGE, "unknown option \"%s\": see \"qkv %s --help\"", argument, c->name);
}

/* ---- commands ---- */

/* A command, or its first word. */
static nearest meant_command(const char *name)
{
    nearest x = { .mistyped = name };
    for (size_t i = 0; i < sizeof foreign_commands / sizeof *foreign_commands; i++)
        if (has_word(foreign_commands[i].theirs, name)) x.name = foreign_commands[i].ours, x.length = (int)strlen(x.name);
    for (int i = 0; commands[i]; i++) {
        keep_nearer(&x, commands[i]->name, (int)strcspn(commands[i]->name, " "));
        keep_nearer(&x, commands[i]->name, (int)strlen(commands[i]->name));
    }
    return x;
}

qkv_status unknown_command(const char *name)
{
    const char *reason = foreign_reason(name);
    nearest meant = meant_command(name);
    if (reason) return fail(QKV_USAGE, "unknown command \"%s\": %s", name, reason);
    if (meant.name) return fail(QKV_USAGE, "unknown command \"%s\": did you mean \"%.*s\"?", name, meant.length, meant.name);
    return fail(QKV_USAGE, "unknown command \"%s\": see \"qkv --help\"", name);
}

qkv_status unknown_job(const char *name, const char *job)
{
    char jobs[256] = "";
    nearest x = { .mistyped = job };
    size_t length = strlen(name), used = 0;
    for (int i = 0; commands[i] && used < sizeof jobs; i++) {
        if (strncmp(commands[i]->name, name, length) || commands[i]->name[length] != ' ') continue;
        const char *there = commands[i]->name + length + 1;
        used += (size_t)snprintf(jobs + used, sizeof jobs - used, "%s%s", used ? ", " : "", there);
        keep_nearer(&x, there, (int)strlen(there));
    }
    if (x.name) return fail(QKV_USAGE, "\"%s\" has no job \"%s\": did you mean \"%s %s\"?", name, job, name, x.name);
    return fail(QKV_USAGE, "\"%s\" needs a job, one of: %s; see \"qkv help %s JOB\"", name, jobs, name);
}
