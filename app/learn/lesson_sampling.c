/* lesson_sampling.c: lesson 19: what a language model's probabilities say: perplexity, and how the next token is chosen. */
#include "lesson.h"

#include "../term/print.h"
#include "../corpora/grammar.h"

#include <math.h>
#include <stdio.h>

enum { WORDS = 6, DRAWS = 10000 };
static const char *const words[WORDS] = { "mat", "floor", "sofa", "roof", "moon", "idea" }; /* by falling logits */
static const double logits[WORDS] = { 3, 2.2, 1.8, 0.7, -0.5, -2 };

/* ---- perplexity ---- */

static void show_perplexity(void)
{
    static const double p[] = { 0.20, 0.05, 0.60, 0.50 };
    enum { N = sizeof p / sizeof *p };
    double nats = 0;
    for (int i = 0; i < N; i++) nats -= log(p[i]) / N;
    say_heading(_("Perplexity"));
    puts("    perplexity = exp(-(log p_1 + ... + log p_n) / n)\n");
    say(_("A language model gives each token of a text a probability, from the tokens before it. Four tokens with the "
          "probabilities %.2f, %.2f, %.2f and %.2f have a mean of -log p of %.4f, so the perplexity is %.4f: the model is as "
          "unsure as if it chose among so many equally likely tokens."),
        p[0], p[1], p[2], p[3], nats, exp(nats));
    say(_("A model that knows nothing gives all V tokens 1 / V, and its perplexity is V: %.0f for V = 32000. A model that is "
          "always right has 1. Training lowers the loss, and the loss is the logarithm of the perplexity. Perplexities compare "
          "only over the same text and the same tokens. \"qkv perplexity -m DIR FILE\" measures a model."),
        exp(-log(1.0 / 32000)));
}

/* ---- choosing a token ---- */

typedef struct choice {
    const char *name;
    double temperature, top_p;
    int top_k;
} choice;

/* softmax(logits / temperature) over the k likeliest tokens and, of these, the fewest that have top_p together. */
static void distribution(const choice *c, double p[WORDS])
{
    int kept = c->top_k ? c->top_k : WORDS;
    double sum = 0, so_far = 0, rest = 0;
    for (int i = 0; i < WORDS; i++) sum += p[i] = i < kept ? exp(logits[i] / c->temperature) : 0;
    for (int i = 0; i < WORDS; i++) {
        p[i] = so_far < c->top_p ? p[i] / sum : 0;
        so_far += p[i];
    }
    for (int i = 0; i < WORDS; i++) rest += p[i];
    for (int i = 0; i < WORDS; i++) p[i] /= rest;
}

static void show_choices(void)
{
    static const choice choices[] = { { "softmax", 1, 1, 0 },
                                      { "temp 0.5", 0.5, 1, 0 },
                                      { "temp 2", 2, 1, 0 },
                                      { "top-k 3", 1, 1, 3 },
                                      { "top-p 0.95", 1, 0.95, 0 } };
    enum { N = sizeof choices / sizeof *choices };
    const char *names[N];
    float rows[N * WORDS];
    for (int i = 0; i < N; i++) {
        double p[WORDS];
        distribution(&choices[i], p);
        names[i] = choices[i].name;
        for (int j = 0; j < WORDS; j++) rows[i * WORDS + j] = (float)p[j];
    }
    say_heading(_("Temperature, top-k and top-p"));
    say(_("\"The cat sat on the ...\": six tokens with the logits 3, 2.2, 1.8, 0.7, -0.5 and -2. Greedy decoding takes the "
          "likeliest token each time: always the same text, and often repetitive. Sampling draws a token by its probability:"));
    print_table(&(table){
        .values = rows, .rows = N, .columns = WORDS, .row.names = names, .column.names = words, .decimals = 4, .sums = true });
    putchar('\n');
    say(_("Temperature divides the logits before the softmax. Below 1 the likely tokens gain, towards 0 it is greedy; above 1 "
          "the unlikely ones gain. Top-k keeps the k likeliest tokens. Top-p keeps the fewest tokens whose probabilities add "
          "up to p: few where the model is sure, many where it is not. Both cut the tail of a vocabulary, whose tokens are "
          "unlikely one by one and likely together."));
    say(_("This library applies temperature first, then top-k, then top-p, and divides what is left by its sum: "
          "\"qkv generate -m DIR -p TEXT --temp 0.8 --top-k 40 --top-p 0.95\". The same --seed draws the same text."));
}

static void show_draws(void)
{
    static const choice plain = { "", 1, 1, 0 }, cut = { "", 1, 0.95, 0 };
    const choice *const both[] = { &plain, &cut };
    float counts[2 * WORDS] = { 0 };
    for (int i = 0; i < 2; i++) {
        uint64_t random = 19;
        double p[WORDS];
        distribution(both[i], p);
        for (int n = 0; n < DRAWS; n++) {
            double left = random_below(&random, 1 << 20) / (double)(1 << 20);
            int j = 0;
            while (j < WORDS - 1 && (left -= p[j]) >= 0) j++;
            counts[i * WORDS + j]++;
        }
    }
    say(_("%d draws of each:"), DRAWS);
    show_numbers(counts, 2, WORDS, (labels){ .names = (const char *const[]){ "softmax", "top-p 0.95" } },
                 (labels){ .names = words }, 0);
}

static qkv_status run_sampling_lesson(void)
{
    show_perplexity();
    show_choices();
    show_draws();
    return QKV_OK;
}

const lesson lesson_sampling = {
    .name = "19",
    .title = N_("Perplexity and sampling"),
    .run = run_sampling_lesson,
    .question = N_("Which of temperature, top-k and top-p changes nothing for greedy decoding?"),
    .answer = N_("All three. Dividing logits by a positive number keeps their order, and both cuts keep the likeliest token."),
};
