/* cmd_example.c: qkv example: data to try the jobs on, made by a grammar. */
#include "grammar.h"
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HELD_OUT = 500, MOST_PAIRS = 200000, NAMED = 3 };

static struct {
    const char *out;
    int pairs;
    int64_t seed;
    bool quiet;
} given = { .pairs = 20000, .seed = 1 };

static const option options[] = {
    { "out", 'o', .value = "DIR", .help = "the folder to write to, made if it is not there", .required = true,
      .text = &given.out },
    { "pairs", .value = "N", .help = "pairs to train on, 20000 unless given", .count = &given.pairs },
    { "seed", .value = "N", .help = "other pairs for another seed, 1 unless given", .whole = &given.seed },
    { "quiet", .help = "tell nothing but errors", .flag = &given.quiet },
    { 0 },
};

/* Different sentences, and a table that finds one by its English: places in `at` counted from 1, 0 for a free slot. */
typedef struct collection {
    sentence_pair *at;
    int n;
    int *slots, n_slots; /* a power of two, at most half full */
} collection;

static bool make_room(collection *c, int n)
{
    for (c->n_slots = 1; c->n_slots < 2 * n; c->n_slots *= 2) continue;
    c->at = malloc((size_t)n * sizeof *c->at);
    c->slots = calloc((size_t)c->n_slots, sizeof *c->slots);
    return c->at && c->slots;
}

static int *find_slot(const collection *c, const char *english)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (const char *s = english; *s; s++) hash = (hash ^ (unsigned char)*s) * 0x100000001b3;
    int i = (int)(hash >> 32) & (c->n_slots - 1);
    while (c->slots[i] && strcmp(c->at[c->slots[i] - 1].english, english)) i = (i + 1) & (c->n_slots - 1);
    return &c->slots[i];
}

static void keep_if_new(collection *c, const sentence_pair *p)
{
    int *slot = find_slot(c, p->english);
    if (*slot) return;
    c->at[c->n++] = *p;
    *slot = c->n;
}

/* The named sentences come first: they are never trained on. What is drawn often is drawn early, so the rest is shuffled. */
static void fill(collection *c, int n, uint64_t state)
{
    sentence_pair p;
    for (int i = 0; i < NAMED; i++) {
        snprintf(p.english, sizeof p.english, "%s", named_sentences[i][0]);
        snprintf(p.chinese, sizeof p.chinese, "%s", named_sentences[i][1]);
        keep_if_new(c, &p);
    }
    while (c->n < n) {
        draw_sentence(&state, &p);
        keep_if_new(c, &p);
    }
    for (int i = n - 1; i > NAMED; i--) {
        int j = NAMED + random_below(&state, i - NAMED + 1);
        p = c->at[i];
        c->at[i] = c->at[j];
        c->at[j] = p;
    }
}

static qkv_status write_pairs(const char *name, const sentence_pair *pairs, int n)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", given.out, name) >= (int)sizeof path)
        return fail(QKV_IO, "%s: the name is too long", given.out);
    FILE *file = fopen(path, "w");
    if (!file) return fail(QKV_IO, "%s: cannot write: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) fprintf(file, "%s\t%s\n", pairs[i].english, pairs[i].chinese);
    bool failed = ferror(file) || fflush(file);
    int reason = errno;
    fclose(file);
    if (failed) return fail(QKV_IO, "%s: cannot write: %s", path, strerror(reason));
    if (!given.quiet) fprintf(stderr, "qkv: wrote %s: %d pairs\n", path, n);
    return QKV_OK;
}

static qkv_status write_all(const collection *c)
{
    qkv_status status = write_pairs("test.tsv", c->at, HELD_OUT);
    if (!status) status = write_pairs("valid.tsv", c->at + HELD_OUT, HELD_OUT);
    if (!status) status = write_pairs("train.tsv", c->at + 2 * HELD_OUT, given.pairs);
    return status;
}

static qkv_status run(void)
{
    if (given.pairs > MOST_PAIRS) return fail(QKV_USAGE, "--pairs: at most %d, not %d", MOST_PAIRS, given.pairs);
    if (mkdir(given.out, 0777) && errno != EEXIST)
        return fail(QKV_IO, "%s: cannot make the folder: %s", given.out, strerror(errno));
    collection c = { 0 };
    qkv_status status = QKV_OK;
    if (!make_room(&c, given.pairs + 2 * HELD_OUT)) status = fail(QKV_MEMORY, "no memory for %d pairs", given.pairs);
    else {
        fill(&c, given.pairs + 2 * HELD_OUT, (uint64_t)given.seed);
        status = write_all(&c);
    }
    free(c.at);
    free(c.slots);
    return status;
}

const command example_translate_command = {
    .name = "example translate",
    .summary = "make English-Chinese sentence pairs to train on",
    .about = "Writes train.tsv, valid.tsv and test.tsv: a sentence in English, a TAB, the same\n"
             "in Chinese. A small grammar makes them: everyday sentences of some 300 words,\n"
             "whose parts stand in another order in Chinese. No sentence is in two of the\n"
             "files, and an English sentence has one translation only, so that a translation\n"
             "is right or wrong. The same seed gives the same files.\n"
             "\n"
             "valid.tsv and test.tsv have 500 pairs each. test.tsv starts with \"I love you\",\n"
             "\"The cat sat on the mat\" and \"Xiao Ming went to the shop to buy apples, then he\n"
             "went home\", which are never in train.tsv.",
    .example = "  qkv example translate --out example\n"
               "  qkv train translate --train example/train.tsv --valid example/valid.tsv \\\n"
               "    --out model --preset tiny --vocab 1100 --max-tokens 1024 \\\n"
               "    --schedule linear --lr 2e-3 --warmup 150 --steps 1200",
    .options = options,
    .run = run,
};
