/* draw.c: examples of a language that a grammar makes, no two alike where that can be. */
#include "draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void fill_collection(collection *c, const example_job *what, int n, uint64_t state)
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

example *draw_examples(const example_job *what, int n, uint64_t seed)
{
    collection c = { 0 };
    bool has_memory = make_room_for_examples(&c, n);
    if (has_memory) fill_collection(&c, what, n, seed);
    free(c.slots);
    if (has_memory) return c.at;
    free(c.at);
    return NULL;
}

char *join_examples(const example *examples, int n, size_t *length)
{
    *length = 0;
    for (int i = 0; i < n; i++) *length += strlen(examples[i].line) + 1;
    char *text = malloc(*length + 1), *at = text;
    for (int i = 0; text && i < n; i++) at += sprintf(at, "%s\n", examples[i].line);
    return text;
}

/* ---- what is drawn ---- */

static void draw_translation(uint64_t *state, example *out)
{
    sentence_pair p;
    draw_sentence(state, &p);
    set_pair(out, p.english, p.chinese, false);
}

const example_job translation_examples = {
    .things = "pairs", .ending = "tsv", .draw = draw_translation, .named = named_sentences
};

static void draw_labelled(uint64_t *state, example *out)
{
    char review[REVIEW_ROOM];
    bool praise = draw_review(state, review);
    set_pair(out, praise ? "pos" : "neg", review, true);
}

const example_job labelled_examples = { .things = "pairs", .ending = "tsv", .draw = draw_labelled };

static void draw_line(uint64_t *state, example *out) { out->nats = draw_toy_line(state, out->line); }

const example_job toy_language_examples = { .things = "lines", .ending = "txt", .draw = draw_line, .entropy = toy_entropy };

static void draw_summary(uint64_t *state, example *out)
{
    report x;
    draw_report(state, &x);
    set_pair(out, x.text, x.summary, false);
}

const example_job summary_examples = { .things = "pairs", .ending = "tsv", .draw = draw_summary };
