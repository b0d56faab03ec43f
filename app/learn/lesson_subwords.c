/* lesson_subwords.c: lesson 17: text to pieces (BPE), probabilities to a text (beam search), a text to a score (BLEU). */
#include "lesson.h"

#include "../term/errors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- byte pairs ---- */

enum { KINDS = 4, PAIRS = 64, SHOWN = 4, MERGES = 8, BYTES_AND_SPECIALS = 260 };
static const struct {
    const char *word;
    int count;
} text[KINDS] = { { "low", 5 }, { "lower", 2 }, { "newest", 6 }, { "widest", 3 } };

typedef struct pair {
    char letters[3];
    int count;
} pair;

static void count_pair(pair *pairs, int *n, const char *at, int count)
{
    int i = 0;
    while (i < *n && memcmp(pairs[i].letters, at, 2)) i++;
    if (i == *n) pairs[(*n)++] = (pair){ { at[0], at[1], '\0' }, 0 };
    pairs[i].count += count;
}

static int by_count(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return x->count != y->count ? y->count - x->count : strcmp(x->letters, y->letters);
}

static void show_pairs(void)
{
    pair pairs[PAIRS];
    int n = 0;
    for (int i = 0; i < KINDS; i++)
        for (const char *at = text[i].word; at[1]; at++) count_pair(pairs, &n, at, text[i].count);
    qsort(pairs, (size_t)n, sizeof *pairs, by_count);
    say_heading(_("BPE: text in pieces"));
    say(_(
        "A vocabulary of words is never complete, one of letters makes long sequences. Byte-pair encoding lies between: start "
        "from single characters and, again and again, make one piece of the pair of neighbours that occurs most often. In a "
        "text of low (5 times), lower (2), newest (6), widest (3) the first count is"));
    for (int i = 0; i < SHOWN; i++) printf("    %s %d\n", pairs[i].letters, pairs[i].count);
    putchar('\n');
    say(_("so \"%s\" becomes a piece (of equal counts any may be first), then the pairs are counted again."), pairs[0].letters);
}

static qkv_tokenizer *train_pieces(void)
{
    qkv_word_counts *words = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_status status = words ? QKV_OK : QKV_MEMORY;
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; j < text[i].count && !status; j++) status = qkv_word_counts_add(words, qkv_cstr(text[i].word));
    qkv_tokenizer *t = status ? NULL
                              : qkv_tokenizer_train(words, &(qkv_tokenizer_opts){ .vocab_size = BYTES_AND_SPECIALS + MERGES });
    qkv_word_counts_free(words);
    return t;
}

static qkv_status show_encoded(const qkv_tokenizer *t, const char *word)
{
    qkv_encoding *ids = NULL;
    if (qkv_tokenizer_encode(t, qkv_cstr(word), NULL, &ids)) return library_failed();
    printf("    %-10s", word);
    for (int64_t i = 0; i < ids->n; i++) printf(" %s", qkv_tokenizer_token(t, ids->ids[i]));
    putchar('\n');
    qkv_free(ids);
    return QKV_OK;
}

static qkv_status show_merges(void)
{
    static const char *const examples[] = { "low", "lowest", "newer", "wide" };
    qkv_tokenizer *t = train_pieces();
    qkv_status status = t ? QKV_OK : library_failed();
    if (!status) {
        say(_("The library learns %d pieces from it, in this order:"), (int)qkv_tokenizer_vocab_size(t) - BYTES_AND_SPECIALS);
        fputs("   ", stdout);
        for (int i = BYTES_AND_SPECIALS; i < qkv_tokenizer_vocab_size(t); i++) printf(" %s", qkv_tokenizer_token(t, i));
        puts("\n");
        say(_("and cuts words that it knows, and words that it has never seen, into them:"));
        for (int i = 0; i < 4 && !status; i++) status = show_encoded(t, examples[i]);
        putchar('\n');
        say(_("No word is unknown: what has no piece is spelled in bytes. The paper has 37000 pieces, shared by both "
              "languages."));
    }
    qkv_tokenizer_free(t);
    return status;
}

/* ---- beam search ---- */

/* A toy: the first word and the second, given the first. */
static void show_toy_beam(void)
{
    say_heading(_("Beam search: why wider finds better"));
    say(_("A decoder gives the probability of each next token. Which text is the likeliest? Taking the best token each time "
          "(greedy) can miss it. Let the first word be A with 0.5, B with 0.4; after A the words are all unlikely, the best "
          "0.3; "
          "after B one is 0.9. Greedy takes A and arrives at 0.5 * 0.3 = %.2f; B would have given 0.4 * 0.9 = %.2f. A beam of "
          "2 "
          "keeps both beginnings until it knows."),
        0.5 * 0.3, 0.4 * 0.9);
}

enum { VOCABULARY = 40, SENTENCES = 40, SOURCE = 4, BEAMS = 4 };
static const int beams[BEAMS] = { 1, 2, 4, 8 };

/* A fresh model whose scores are made far apart, so that its choices matter. */
static qkv_model *make_chooser(void)
{
    const qkv_config o = {
        .vocab_size = VOCABULARY, .encoder_layers = 1, .decoder_layers = 1, .dim = 32, .heads = 2, .d_ff = 64
    };
    qkv_model *m = qkv_model_new(&o, 17);
    qkv_tensor *embed = m ? qkv_params_find(qkv_model_params(m), "embed.weight") : NULL;
    for (int64_t i = 0; embed && i < qkv_tensor_count(embed); i++) qkv_tensor_data_mut(embed)[i] *= 1.5f;
    return m;
}

static qkv_status search_all(const qkv_model *m, const int32_t *ids, int beam, double log_p[SENTENCES])
{
    qkv_search_result *found = NULL;
    const qkv_search_opts opts = { .start = 1, .end = 2, .pad = 0, .beam_size = beam, .no_length_penalty = 1, .max_length = 6 };
    qkv_status status = qkv_beam_search(m, &(qkv_tokens){ .ids = ids, .rows = SENTENCES, .length = SOURCE }, &opts, &found)
                            ? library_failed()
                            : QKV_OK;
    for (int i = 0; i < SENTENCES && !status; i++) log_p[i] = found->best[i].log_p;
    qkv_free(found);
    return status;
}

static void print_beam(int beam, double greedy[SENTENCES], double log_p[SENTENCES])
{
    int better = 0;
    double mean = 0;
    for (int i = 0; i < SENTENCES; i++) better += log_p[i] > greedy[i] + 1e-6, mean += log_p[i] / SENTENCES;
    printf("    %4d  %8.4f  %6d\n", beam, mean, better);
}

static qkv_status show_real_beam(void)
{
    int32_t ids[SENTENCES * SOURCE];
    double log_p[BEAMS][SENTENCES];
    qkv_model *m = make_chooser();
    qkv_status status = m ? QKV_OK : library_failed();
    for (int i = 0; i < SENTENCES * SOURCE; i++)
        ids[i] = i % SOURCE == SOURCE - 1 ? 2 : 3 + (i * 7 + i / SOURCE) % (VOCABULARY - 3);
    for (int i = 0; i < BEAMS && !status; i++) status = search_all(m, ids, beams[i], log_p[i]);
    if (!status) {
        say(_("With a model: a small Transformer translates %d sources with 4 widths of the beam. The mean log-probability of "
              "what "
              "is found, and in how many sentences it is better than greedy:"),
            SENTENCES);
        fputs("  ", stdout);
        print_name(_("beam"), 6, true);
        printf("  %8s  %6s\n", "log p", ">");
        for (int i = 0; i < BEAMS; i++) print_beam(beams[i], log_p[0], log_p[i]);
        putchar('\n');
        say(_(
            "Wider finds likelier texts, at as many times the work. Longer texts have more "
            "factors "
            "below 1, so the paper divides log p by ((5 + length) / 6)^0.6: beam 4 with this penalty is its setting. Likelier "
            "is not always better: very wide beams find short, dull texts."));
    }
    qkv_model_free(m);
    return status;
}

/* ---- BLEU ---- */

static const char *const hypothesis = "the quick brown fox jumps over the dog";
static const char *const reference = "the quick brown fox jumps over the lazy dog";
enum { MOST_WORDS = 16, WORD_BYTES = 16 };

typedef struct sentence {
    char words[MOST_WORDS][WORD_BYTES];
    int n;
} sentence;

static sentence split(const char *line)
{
    sentence s = { .n = 0 };
    for (int used; s.n < MOST_WORDS && sscanf(line, "%15s%n", s.words[s.n], &used) == 1; s.n++) line += used;
    return s;
}

static bool same_words(const sentence *a, int i, const sentence *b, int j, int n)
{
    for (int k = 0; k < n; k++)
        if (strcmp(a->words[i + k], b->words[j + k])) return false;
    return true;
}

/* How many n-grams of h are in r; one of r counts once. */
static int matching(const sentence *h, const sentence *r, int n)
{
    bool used[MOST_WORDS] = { false };
    int matches = 0;
    for (int i = 0; i + n <= h->n; i++)
        for (int j = 0; j + n <= r->n; j++)
            if (!used[j] && same_words(h, i, r, j, n)) {
                used[j] = true, matches++;
                break;
            }
    return matches;
}

static qkv_status show_bleu(void)
{
    sentence h = split(hypothesis), r = split(reference);
    const qkv_str told = qkv_cstr(hypothesis), wanted = qkv_cstr(reference), *references = &wanted;
    qkv_bleu_score *score = NULL;
    double product = 1, penalty = exp(1 - (double)r.n / h.n);
    if (qkv_bleu(&told, &references, 1, 1, NULL, &score)) return library_failed();
    say_heading(_("BLEU: how good is a translation?"));
    puts("    BLEU = BP (p1 p2 p3 p4)^(1/4)      BP = min(1, exp(1 - r / c))\n");
    say(_("Count how many runs of 1, 2, 3 and 4 words are in a reference too. The translation and the reference:"));
    printf("    %s\n    %s\n\n", hypothesis, reference);
    for (int n = 1; n <= QKV_BLEU_ORDER; n++) {
        int matches = matching(&h, &r, n), all = h.n + 1 - n;
        product *= (double)matches / all;
        printf("    p%d = %d / %d = %.4f\n", n, matches, all, (double)matches / all);
    }
    printf("    BP = exp(1 - %d / %d) = %.4f\n\n", r.n, h.n, penalty);
    say(_("By hand: 100 * %.4f * %.4f^(1/4) = %.4f. By the library, qkv_bleu(): %.4f. BP, the brevity penalty, is for those "
          "who "
          "leave out what they are not sure of: the matches alone would not notice the missing word."),
        penalty, product, 100 * penalty * pow(product, 0.25), score->score);
    qkv_free(score);
    say(_(
        "BLEU is counted over a whole corpus, not sentence by sentence, and compares only where words are cut alike; sacreBLEU "
        "fixes that, and \"qkv score\" gives its numbers."));
    return QKV_OK;
}

static qkv_status run_subwords_lesson(void)
{
    say(_("Three tools stand around the model: one makes tokens of a text, one makes a text of probabilities, and one says how "
          "good it is."));
    show_pairs();
    qkv_status status = show_merges();
    if (status) return status;
    show_toy_beam();
    status = show_real_beam();
    return status ? status : show_bleu();
}

const lesson lesson_subwords = {
    .name = "17",
    .title = N_("BPE, beam search and BLEU"),
    .run = run_subwords_lesson,
    .question = N_(
        "A translation says \"the the the the the the the\", and the reference has \"the\" twice. What would p1 be if "
        "matches were counted without care, and what is it?"),
    .answer = N_(
        "7 / 7 without care: each \"the\" is in the reference. BLEU counts an n-gram at most as often as the reference "
        "has it, so p1 = 2 / 7. No pair \"the the\" is there, so p2 is 0, and without smoothing so is BLEU."),
};
