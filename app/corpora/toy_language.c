/* toy_language.c: a language of a few rules, whose entropy is known.
 *
 *   clause    = subject [relative | aside] predicate         half of the subjects have one, of either kind
 *   subject   = "the" [adjective] noun                       of one or of many, which its verb agrees with
 *   relative  = "that the" noun verb                         "the cats that the dog sees run"
 *   aside     = "(" clause ")" | "[" clause "]"              "the cats ( the dog sleeps ) run", at most DEEPEST in each other
 *   predicate = verb | verb "the" [adjective] noun
 *
 * To foretell a verb one must remember a noun across the clauses between, and to foretell a bracket the one that is open. A
 * line can be drawn in one way only (no word is in two tables, none is the same for one and for many), so that its probability
 * is the product of its choices. */
#include "toy_language.h"

#include "grammar.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ADJECTIVES = 6, NOUNS = 8, VERBS = 6, DEEPEST = 2 };
enum { ONE, MANY };

static const char *const adjectives[ADJECTIVES] = { "small", "big", "old", "young", "quiet", "red" };
static const char *const nouns[NOUNS][2] = { { "cat", "cats" }, { "dog", "dogs" },   { "bird", "birds" }, { "fox", "foxes" },
                                             { "hen", "hens" }, { "frog", "frogs" }, { "goat", "goats" }, { "mouse", "mice" } };
static const char *const lone_verbs[VERBS][2] = { { "sleeps", "sleep" }, { "runs", "run" },   { "sings", "sing" },
                                                  { "jumps", "jump" },   { "hides", "hide" }, { "waits", "wait" } };
static const char *const verbs[VERBS][2] = { { "sees", "see" },   { "likes", "like" }, { "follows", "follow" },
                                             { "hears", "hear" }, { "helps", "help" }, { "finds", "find" } };
static const char *const brackets[][2] = { { "(", ")" }, { "[", "]" } };

/* ---- drawing ---- */

typedef struct drawing {
    uint64_t *state;
    char *line;
    double nats;
} drawing;

static int choose(drawing *d, int n)
{
    d->nats += log(n);
    return random_below(d->state, n);
}

static void add(drawing *d, const char *word)
{
    size_t n = strlen(d->line);
    snprintf(d->line + n, TOY_ROOM - n, "%s%s", n ? " " : "", word);
}

static int add_noun(drawing *d, bool may_have_adjective)
{
    add(d, "the");
    if (may_have_adjective && choose(d, 2)) add(d, adjectives[choose(d, ADJECTIVES)]);
    int number = choose(d, 2);
    add(d, nouns[choose(d, NOUNS)][number]);
    return number;
}

static void add_clause(drawing *d, int depth)
{
    int number = add_noun(d, true);
    if (choose(d, 2)) {
        if (depth < DEEPEST && choose(d, 2)) {
            const char *const *bracket = brackets[choose(d, 2)];
            add(d, bracket[0]);
            add_clause(d, depth + 1);
            add(d, bracket[1]);
        } else {
            add(d, "that");
            int inner = add_noun(d, false);
            add(d, verbs[choose(d, VERBS)][inner]);
        }
    }
    bool has_object = choose(d, 2);
    add(d, (has_object ? verbs : lone_verbs)[choose(d, VERBS)][number]);
    if (has_object) add_noun(d, true);
}

double draw_toy_line(uint64_t *state, char line[TOY_ROOM])
{
    drawing d = { .state = state, .line = line };
    *line = '\0';
    add_clause(&d, 0);
    return d.nats;
}

/* ---- the mean over all drawings: a choice of n adds ln n, what follows one side of a coin counts half ---- */

static double clause_entropy(int depth)
{
    double bare_noun = log(2) + log(NOUNS), noun = log(2) + log(ADJECTIVES) / 2 + bare_noun;
    double relative = bare_noun + log(VERBS), between = relative;
    if (depth < DEEPEST) between = log(2) + (relative + log(2) + clause_entropy(depth + 1)) / 2;
    double predicate = log(2) + log(VERBS) + noun / 2;
    return noun + log(2) + between / 2 + predicate;
}

double toy_entropy(void) { return clause_entropy(0); }
