/* lesson_families.c: lesson 15: encoder only, decoder only, both; RNN, LSTM and CNN beside them; and whom "he" means. */
#include "lesson.h"

#include "../term/errors.h"

#include <stdio.h>
#include <string.h>

/* ---- three kinds of model ---- */

enum { LENGTH = 4 };

/* Which keys a query has a weight on, of one head: "x", and "/" where the mask hides the key. */
static void print_pattern(const char *name, const qkv_tensor *w)
{
    printf("    %s\n", name);
    for (int i = 0; i < LENGTH; i++) {
        fputs("       ", stdout);
        for (int j = 0; j < LENGTH; j++) printf(" %c", qkv_tensor_data(w)[i * LENGTH + j] > 0 ? 'x' : '/');
        putchar('\n');
    }
    putchar('\n');
}

static qkv_status show_pattern(const char *name, int encoder_layers, int decoder_layers, int which)
{
    static const int32_t ids[LENGTH] = { 4, 5, 6, 7 };
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 });
    const qkv_config o = {
        .vocab_size = 8, .encoder_layers = encoder_layers, .decoder_layers = decoder_layers, .dim = 8, .heads = 1, .d_ff = 16
    };
    qkv_model *m = qkv_model_new(&o, 15);
    qkv_tensor *memory = m && encoder_layers ? qkv_model_encode(m, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = LENGTH })
                                             : NULL;
    if (m && decoder_layers) qkv_model_decode(m, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = LENGTH }, memory, NULL);
    qkv_status status = !m || !t || qkv_tape_status(t) ? library_failed() : QKV_OK;
    if (!status) print_pattern(name, qkv_tape_attention(t, which));
    qkv_tape_free(t);
    qkv_model_free(m);
    return status;
}

static qkv_status show_patterns(void)
{
    say(_(
        "The paper's model has an encoder and a decoder. Its two halves became families of their own. What differs is who may "
        "look at whom; here are models of one layer each, made and run now, with an x wherever there is a weight "
        "and a / where a mask hides the key:"));
    qkv_status status = show_pattern(_("encoder only (BERT): every token sees every token"), 1, 0, 0);
    if (!status) status = show_pattern(_("decoder only (GPT): a token sees itself and those before it"), 0, 1, 0);
    if (!status) status = show_pattern(_("both (the paper, T5, Marian): a decoder that also sees the whole source"), 1, 1, 2);
    return status;
}

typedef struct row {
    const char *cells[4];
} row;

static void print_rows(const row *rows, size_t n, const int *widths)
{
    for (size_t i = 0; i < n; i++) {
        fputs("    ", stdout);
        for (int j = 0; j < 4 && rows[i].cells[j]; j++) print_name(_(rows[i].cells[j]), widths[j], false);
        putchar('\n');
    }
    putchar('\n');
}

static void show_kinds(void)
{
    static const row rows[] = {
        { { "", "BERT", "GPT", N_("encoder-decoder") } },
        { { N_("mask"), N_("padding only"), N_("causal"), N_("both, and cross") } },
        { { N_("trained to"), N_("fill in hidden words"), N_("tell the next word"), N_("tell the next target word") } },
        { { N_("good at"), N_("understanding"), N_("generating"), N_("turning one text into another") } },
        { { N_("used for"), N_("classify, embed, search"), N_("write, chat"), N_("translate, summarise") } },
        { { N_("command"), "qkv train mask", "qkv train generate", "qkv train translate" } },
    };
    static const int widths[] = { 14, 26, 22, 0 };
    print_rows(rows, sizeof rows / sizeof *rows, widths);
    say(_("BERT sees both sides of a word and so knows it better, but it cannot write: it would see the word that it is asked "
          "for. GPT sees only what comes before, so each place of a text is a question, and its answers can be read back in as "
          "the text goes on."));
}

static void show_older(void)
{
    static const row rows[] = {
        { { "", N_("RNN, LSTM"), "CNN", "Transformer" } },
        { { N_("reads"), N_("word after word"), N_("window by window"), N_("all words at once") } },
        { { N_("in parallel"), N_("no"), N_("yes"), N_("yes") } },
        { { N_("far words"), N_("through n states"), N_("through log n layers"), N_("directly") } },
        { { N_("word order"), N_("built in"), N_("built in"), N_("by positions") } },
        { { N_("cost"), "O(n d^2)", "O(k n d^2)", "O(n^2 d)" } },
        { { N_("limited by"), N_("size of the state"), N_("width of the windows"), N_("length of the context") } },
        { { N_("suited to"), N_("streams"), N_("images, sound"), N_("text, large data") } },
    };
    static const int widths[] = { 14, 20, 24, 0 };
    say_heading(_("Before the Transformer: RNN, LSTM, CNN"));
    print_rows(rows, sizeof rows / sizeof *rows, widths);
    say(_("An RNN carries one state from word to word; an LSTM adds gates that decide what the state keeps, so that it forgets "
          "later. Neither can start on a word before the one in front of it is done (lesson 10 measures it)."));
}

/* ---- whom "he" means ---- */

enum { MEN = 3, WOMEN = 3, VERBS = 3, NAMES = MEN + WOMEN, WORDS = NAMES + VERBS + 3, SENTENCE = 5, DIM = 16, STEPS = 120 };
enum { BECAUSE = NAMES + VERBS, HE, SHE, PRONOUN = SENTENCE - 1 };
static const char *const words[WORDS] = { "小明", "小刚", "小强", "小红", "小丽", "小芳",
                                          "帮助", "感谢", "等",   "因为", "他",   "她" };
enum { SENTENCES = 2 * MEN * WOMEN * VERBS * 2, HELD_OUT = 6, TRAINED = SENTENCES - SENTENCES / HELD_OUT };

static struct {
    int32_t ids[SENTENCES][SENTENCE], who[SENTENCES];
} corpus;

/* "A helps B, because he ...": the one of the two whom the pronoun fits. Those held out come last. */
static void write_sentences(void)
{
    int next = 0, held = TRAINED;
    for (int i = 0; i < SENTENCES; i++) {
        int man = i / 2 % MEN, woman = MEN + i / (2 * MEN) % WOMEN, verb = NAMES + i / (2 * MEN * WOMEN) % VERBS;
        bool man_first = i % 2, is_he = i >= SENTENCES / 2;
        const int32_t ids[] = { man_first ? man : woman, verb, man_first ? woman : man, BECAUSE, is_he ? HE : SHE };
        int place = i % HELD_OUT == 1 ? held++ : next++;
        memcpy(corpus.ids[place], ids, sizeof ids);
        corpus.who[place] = is_he ? man : woman;
    }
}

typedef struct reader {
    qkv_params *params;
    qkv_tape *tape;
    qkv_embedding words;
    qkv_mha attention;
    qkv_linear out;
} reader;

/* The names' scores at the pronoun, which sees the sentence by one head of attention and nothing else. */
static qkv_tensor *guess(const reader *r, int first, int n)
{
    qkv_tensor *x = qkv_embedding_forward(&r->words, r->tape, corpus.ids[first], n, SENTENCE);
    x = qkv_scale(x, 4); /* sqrt(DIM) */
    qkv_tensor *y = qkv_mha_forward(&r->attention, qkv_slice(x, 1, PRONOUN, SENTENCE), x, NULL);
    return qkv_linear_forward(&r->out, qkv_reshape(y, QKV_SHAPE(n, DIM)));
}

static qkv_status make_reader(reader *r)
{
    *r = (reader){ .params = qkv_params_new(7), .tape = qkv_tape_new(&(qkv_tape_opts){ .keep_attention = 1 }) };
    if (!r->params || !r->tape) return library_failed();
    r->words = qkv_embedding_new(r->params, "words", WORDS, DIM);
    r->attention = qkv_mha_new(r->params, "attention", &(qkv_mha_opts){ .dim = DIM, .heads = 1 });
    r->out = qkv_linear_new(r->params, "out", DIM, NAMES, true);
    return qkv_params_status(r->params) ? library_failed() : QKV_OK;
}

static qkv_status train_reader(reader *r)
{
    qkv_optimizer *o = qkv_optimizer_new(r->params, &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .lr = 0.02f });
    qkv_status status = o ? QKV_OK : library_failed();
    for (int step = 0; step < STEPS && !status; step++) {
        qkv_tape_reset(r->tape);
        if (qkv_backward(qkv_cross_entropy(guess(r, 0, TRAINED), corpus.who, NULL)) || qkv_optimizer_step(o))
            status = library_failed();
    }
    qkv_optimizer_free(o);
    return status;
}

static int right_guesses(const float *logits, int first, int n)
{
    int right = 0;
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int j = 1; j < NAMES; j++)
            if (logits[i * NAMES + j] > logits[i * NAMES + best]) best = j;
        right += best == corpus.who[first + i];
    }
    return right;
}

/* The weights of the pronoun of a sentence, as a table; *most is the largest. */
static qkv_status show_pronoun(const reader *r, int sentence, float *most)
{
    const char *names[SENTENCE];
    qkv_tape_reset(r->tape);
    guess(r, sentence, 1);
    if (qkv_tape_status(r->tape)) return library_failed();
    const float *weights = qkv_tensor_data(qkv_tape_attention(r->tape, 0));
    *most = 0;
    for (int i = 0; i < SENTENCE; i++) {
        names[i] = words[corpus.ids[sentence][i]];
        if (weights[i] > *most) *most = weights[i];
    }
    show_numbers(weights, 1, SENTENCE, (labels){ .names = &names[PRONOUN] }, (labels){ .names = names }, 4);
    return QKV_OK;
}

static qkv_status show_he_and_she(const reader *r)
{
    int he = TRAINED;
    float most, other;
    while (corpus.ids[he][PRONOUN] != HE || corpus.who[he]) he++; /* 小明 */
    qkv_status status = show_pronoun(r, he, &most);
    if (status) return status;
    say(_("他 takes %.1f %% of what it takes from 小明. Nobody told the model: looking there made the answer easy. With 她 in "
          "the "
          "same sentence the query is another vector, and the weights move to the woman:"),
        100 * (double)most);
    corpus.ids[he][PRONOUN] = SHE;
    status = show_pronoun(r, he, &other);
    if (!status) say(_("A dot product has asked \"who is a he?\", and a key has answered."));
    return status;
}

static qkv_status show_reader(const reader *r)
{
    int n = SENTENCES - TRAINED;
    qkv_tape_reset(r->tape);
    const float *logits = qkv_tensor_data(guess(r, TRAINED, n));
    if (qkv_tape_status(r->tape)) return library_failed();
    say(_("%d sentences train it for %d steps, %d are held out. Of those it names the right person in %d. In one of them the "
          "weights of the pronoun are"),
        TRAINED, STEPS, n, right_guesses(logits, TRAINED, n));
    return show_he_and_she(r);
}

static qkv_status teach_pronoun(void)
{
    reader r;
    say_heading(_("Why 他 is 小明"));
    say(_("小明帮助小红，因为他...: \"Xiao Ming helps Xiao Hong, because he ...\". Who is he? A reader looks back for the one "
          "whom the word fits. Here is a model that can do nothing else: one head of attention, from the pronoun to the "
          "sentence, no positions, and a layer that names a person."));
    write_sentences();
    qkv_status status = make_reader(&r);
    if (!status) status = train_reader(&r);
    if (!status) status = show_reader(&r);
    qkv_tape_free(r.tape);
    qkv_params_free(r.params);
    return status;
}

static qkv_status run_families_lesson(void)
{
    qkv_status status = show_patterns();
    if (status) return status;
    show_kinds(), show_older();
    return teach_pronoun();
}

const lesson lesson_families = {
    .name = "15",
    .title = N_("BERT, GPT and encoder-decoder"),
    .run = run_families_lesson,
    .question = N_("BERT is to be used as a text generator. What goes wrong, and why does the same not happen to GPT?"),
    .answer = N_(
        "BERT was trained with both sides visible and some words hidden. Asked for the next word it has nothing on the "
        "right, which it never saw in training; and each new word changes what all words before it see, so nothing can "
        "be kept and everything is computed again. GPT was trained with nothing but the left side, at every place of "
        "the text: generating is exactly what it practised, and keys and values of the words before stay as they are."),
};
