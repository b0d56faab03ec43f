/* cmd_example.c: qkv example: data to try the jobs on, made by grammars. */
#include "../examples/data/grammar.h"
#include "options.h"
#include "results.h"
#include "../examples/data/sentiment.h"
#include "../examples/data/toy_language.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HELD_OUT = 500, MOST = 200000, LINE_ROOM = 2 * SENTENCE_ROOM };
_Static_assert((int)LINE_ROOM >= (int)TOY_ROOM && (int)REVIEW_ROOM <= (int)SENTENCE_ROOM, "every line has room");

static struct {
    const char *out;
    int count;
    int64_t seed;
    bool quiet;
} given = { .count = 20000, .seed = 1 };

#define OPTIONS(name, help_of_count)                                                                           \
    {                                                                                                          \
        { "out",                                                                                               \
          'o',                                                                                                 \
          .value = "DIR",                                                                                      \
          .help = "the folder to write to, made if it is not there",                                           \
          .required = true,                                                                                    \
          .text = &given.out },                                                                                \
            { name, .value = "N", .help = help_of_count, .count = &given.count },                              \
            { "seed", .value = "N", .help = "others for another seed, 1 unless given", .whole = &given.seed }, \
            { "quiet", .help = "tell nothing but errors", .flag = &given.quiet }, { 0 },                       \
    }

typedef struct example {
    char line[LINE_ROOM];
    int key, key_length; /* the part of the line that no other line has */
    double nats;         /* its surprise, where that is known */
} example;

/* What is different from one kind of data to the other. */
typedef struct job {
    const char *things; /* as the option that counts them is called */
    const char *ending; /* of the files' names */
    void (*draw)(uint64_t *state, example *out);
    const char *const (*named)[2]; /* pairs that come first, NULL: none. They are never trained on */
    double (*entropy)(void);       /* of a language whose lines are drawn as they come, so that some may come again; or NULL */
} job;

/* ---- collecting ---- */

/* Examples, and a table that finds one by its key: places in `at` counted from 1, 0 for a free slot. */
typedef struct collection {
    example *at;
    int n;
    int *slots, n_slots; /* a power of two, at most half full */
} collection;

static bool make_room_for_examples(collection *c, int n)
{
    for (c->n_slots = 1; c->n_slots < 2 * n; c->n_slots *= 2) continue;
    c->at = malloc((size_t)n * sizeof *c->at);
    c->slots = calloc((size_t)c->n_slots, sizeof *c->slots);
    return c->at && c->slots;
}

static bool same_key(const example *a, const example *b)
{
    return a->key_length == b->key_length && !memcmp(a->line + a->key, b->line + b->key, (size_t)a->key_length);
}

static int *find_slot(const collection *c, const example *x)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (int i = 0; i < x->key_length; i++) hash = (hash ^ (unsigned char)x->line[x->key + i]) * 0x100000001b3;
    int i = (int)(hash >> 32) & (c->n_slots - 1);
    while (c->slots[i] && !same_key(&c->at[c->slots[i] - 1], x)) i = (i + 1) & (c->n_slots - 1);
    return &c->slots[i];
}

static void keep_if_new(collection *c, const example *x)
{
    int *slot = find_slot(c, x);
    if (*slot) return;
    c->at[c->n++] = *x;
    *slot = c->n;
}

static void set_pair(example *x, const char *first, const char *second, bool second_is_key)
{
    int length = (int)strlen(first);
    snprintf(x->line, sizeof x->line, "%s\t%s", first, second);
    x->key = second_is_key ? length + 1 : 0;
    x->key_length = second_is_key ? (int)strlen(second) : length;
}

/* What is drawn often is drawn early, so all but the named ones are shuffled. */
static void shuffle(collection *c, int from, uint64_t *state)
{
    for (int i = c->n - 1; i > from; i--) {
        int j = from + random_below(state, i - from + 1);
        example x = c->at[i];
        c->at[i] = c->at[j];
        c->at[j] = x;
    }
}

static void fill_collection(collection *c, const job *what, int n, uint64_t state)
{
    example x = { 0 };
    for (int i = 0; what->named && what->named[i][0]; i++) {
        set_pair(&x, what->named[i][0], what->named[i][1], false);
        keep_if_new(c, &x);
    }
    int named = c->n;
    while (c->n < n) {
        what->draw(&state, &x);
        if (what->entropy) c->at[c->n++] = x;
        else keep_if_new(c, &x);
    }
    shuffle(c, named, &state);
}

/* ---- writing ---- */

static void tell(const job *what, const char *path, const example *examples, int n)
{
    double nats = 0, bytes = 0;
    if (given.quiet) return;
    fprintf(stderr, "qkv: wrote %s: %d %s", path, n, what->things);
    for (int i = 0; i < n; i++) nats += examples[i].nats, bytes += (double)strlen(examples[i].line) + 1;
    if (what->entropy) fprintf(stderr, ", %.3f nats a line, %.4f a character", nats / n, nats / bytes);
    fputc('\n', stderr);
}

static qkv_status write_examples(const job *what, const char *name, const example *examples, int n)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.%s", given.out, name, what->ending) >= (int)sizeof path)
        return fail(QKV_IO, "%s: the name is too long", given.out);
    text_file file;
    if (!begin_text(&file)) return QKV_MEMORY;
    for (int i = 0; i < n; i++) fprintf(file.to, "%s\n", examples[i].line);
    qkv_status status = end_text(&file, path);
    if (!status) tell(what, path, examples, n);
    return status;
}

static qkv_status write_all(const job *what, const collection *c)
{
    qkv_status status = write_examples(what, "test", c->at, HELD_OUT);
    if (!status) status = write_examples(what, "valid", c->at + HELD_OUT, HELD_OUT);
    if (!status) status = write_examples(what, "train", c->at + 2 * HELD_OUT, given.count);
    if (!status && what->entropy && !given.quiet)
        fprintf(stderr, "qkv: the language itself has %.3f nats a line on average: no model can do better\n", what->entropy());
    return status;
}

static qkv_status run_job(const job *what)
{
    if (given.count > MOST) return fail(QKV_USAGE, "--%s: at most %d, not %d", what->things, MOST, given.count);
    if (mkdir(given.out, 0777) && errno != EEXIST)
        return fail(QKV_IO, "%s: cannot make the folder: %s", given.out, strerror(errno));
    collection c = { 0 };
    qkv_status status = QKV_OK;
    if (!make_room_for_examples(&c, given.count + 2 * HELD_OUT))
        status = fail(QKV_MEMORY, "no memory for %d %s", given.count, what->things);
    else {
        fill_collection(&c, what, given.count + 2 * HELD_OUT, (uint64_t)given.seed);
        status = write_all(what, &c);
    }
    free(c.at);
    free(c.slots);
    return status;
}

/* ---- translation ---- */

static void draw_translation(uint64_t *state, example *out)
{
    sentence_pair p;
    draw_sentence(state, &p);
    set_pair(out, p.english, p.chinese, false);
}

static qkv_status run_example_translate(void)
{
    return run_job(&(job){ .things = "pairs", .ending = "tsv", .draw = draw_translation, .named = named_sentences });
}

static const option translate_options[] = OPTIONS("pairs", "pairs to train on, 20000 unless given");

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
    .options = translate_options,
    .run = run_example_translate,
};

/* ---- classification ---- */

static void draw_labelled(uint64_t *state, example *out)
{
    char review[REVIEW_ROOM];
    bool praise = draw_review(state, review);
    set_pair(out, praise ? "pos" : "neg", review, true);
}

static qkv_status run_example_classify(void)
{
    return run_job(&(job){ .things = "pairs", .ending = "tsv", .draw = draw_labelled });
}

static const option classify_options[] = OPTIONS("pairs", "labelled sentences to train on, 20000 unless given");

const command example_classify_command = {
    .name = "example classify",
    .summary = "make labelled sentences about films to train on",
    .about = "Writes train.tsv, valid.tsv and test.tsv: \"pos\" or \"neg\", a TAB, a sentence\n"
             "about a film. A small grammar of some 100 words makes them. No word decides\n"
             "alone: \"The jokes were not bad at all\" is pos, \"I expected a great film but the\n"
             "plot was dull\" is neg. No sentence is in two of the files, and each has one\n"
             "label only. The same seed gives the same files. valid.tsv and test.tsv have 500\n"
             "sentences each.",
    .example = "  qkv example classify --out example",
    .options = classify_options,
    .run = run_example_classify,
};

/* ---- generation ---- */

static void draw_line(uint64_t *state, example *out) { out->nats = draw_toy_line(state, out->line); }

static qkv_status run_example_generate(void)
{
    return run_job(&(job){ .things = "lines", .ending = "txt", .draw = draw_line, .entropy = toy_entropy });
}

static const option generate_options[] = OPTIONS("lines", "lines to train on, 20000 unless given");

const command example_generate_command = {
    .name = "example generate",
    .summary = "make lines of a toy language to train on",
    .about = "Writes train.txt, valid.txt and test.txt: lines such as \"the cats [ the old dog\n"
             "sees the hen ] run\". Verbs agree with their nouns across whole clauses, and\n"
             "brackets close as they were opened. Lines are drawn as they come, so that some\n"
             "are in more than one file. The same seed gives the same files. valid.txt and\n"
             "test.txt have 500 lines each.\n"
             "\n"
             "The probability of each line is known. What is told of each file is the loss of\n"
             "a model that knows the language: nats a line, and a character (its newline is\n"
             "one).",
    .example = "  qkv example generate --out example",
    .options = generate_options,
    .run = run_example_generate,
};
