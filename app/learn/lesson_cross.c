/* lesson_cross.c: lesson 5: self- against cross-attention, in a tiny translator trained on the spot. */
#include "../draw/view.h"
#include "../corpora/grammar.h"
#include "../draw/print_maps.h"
#include "lesson.h"
#include "../term/errors.h"
#include "../term/print.h"

#include <stdio.h>
#include <string.h>

enum { SUBJECT, VERB, OBJECT, PLACE, TIME, KINDS };
enum { EACH = 5, WORDS = KINDS * EACH, ABSENT = -1 };
enum { SOURCE_FIRST = 1, START = 1, END = 2, TARGET_FIRST = 3 }; /* ids of words and marks; 0 is padding on both sides */
enum { LONGEST = KINDS, ROWS = LONGEST + 1 };                    /* words of a sentence; what the decoder reads and chooses */
enum { ALL = EACH * EACH * EACH * (EACH + 1) * (EACH + 1), MOST = ALL / 4, BATCH = 64, STEPS = 250 };

/* A word here may be a short phrase: it is one token. */
static const struct {
    const char *english, *chinese;
} words[WORDS] = {
    { "I", "我" },
    { "you", "你" },
    { "she", "她" },
    { "we", "我们" },
    { "they", "他们" },
    { "saw", "看见了" },
    { "bought", "买了" },
    { "sold", "卖了" },
    { "found", "找到了" },
    { "drew", "画了" },
    { "books", "书" },
    { "apples", "苹果" },
    { "cats", "猫" },
    { "flowers", "花" },
    { "cups", "杯子" },
    { "at home", "在家里" },
    { "in the park", "在公园" },
    { "at school", "在学校" },
    { "in town", "在城里" },
    { "here", "在这里" },
    { "today", "今天" },
    { "yesterday", "昨天" },
    { "on Sunday", "星期天" },
    { "last week", "上周" },
    { "in May", "五月" },
};
static const int english_order[KINDS] = { SUBJECT, VERB, OBJECT, PLACE, TIME };
static const int chinese_order[KINDS] = { SUBJECT, TIME, PLACE, VERB, OBJECT };

/* Which word of each kind it has; place and time may be ABSENT. */
typedef struct sentence {
    int word[KINDS];
} sentence;

/* Sentences as the model takes them. `aligned` is the place in the source of the word that a chosen word translates. */
typedef struct batch {
    int64_t n;
    int32_t source[MOST * LONGEST], source_lengths[MOST];
    int32_t read[MOST * ROWS], chosen[MOST * ROWS], lengths[MOST];
    int32_t aligned[MOST * ROWS];
} batch;

/* ---- sentences ---- */

static sentence sentence_of(int number)
{
    sentence s;
    for (int kind = 0; kind < KINDS; kind++) {
        int choices = kind == PLACE || kind == TIME ? EACH + 1 : EACH;
        s.word[kind] = number % choices;
        if (s.word[kind] == EACH) s.word[kind] = ABSENT;
        number /= choices;
    }
    return s;
}

/* A fifth of all sentences is never trained on: every pair of words is met in training, these wholes are not. */
static bool is_held_out(const sentence *s)
{
    int sum = 0;
    for (int kind = 0; kind < KINDS; kind++) sum += s->word[kind] + 1;
    return sum % 5 == 1;
}

static void add_target(batch *b, const sentence *s, const int *place_of)
{
    int32_t *read = b->read + b->n * ROWS, *chosen = b->chosen + b->n * ROWS, *aligned = b->aligned + b->n * ROWS;
    int n = 0;
    for (int i = 0; i < KINDS; i++) {
        int kind = chinese_order[i];
        if (s->word[kind] == ABSENT) continue;
        chosen[n] = TARGET_FIRST + kind * EACH + s->word[kind];
        aligned[n++] = place_of[kind];
    }
    chosen[n] = END;
    read[0] = START;
    memcpy(read + 1, chosen, (size_t)n * sizeof *read);
    b->lengths[b->n] = n + 1;
}

static void add_to_batch(batch *b, const sentence *s)
{
    int place_of[KINDS] = { 0 }, n = 0;
    for (int i = 0; i < KINDS; i++) {
        int kind = english_order[i];
        if (s->word[kind] == ABSENT) continue;
        place_of[kind] = n;
        b->source[b->n * LONGEST + n++] = SOURCE_FIRST + kind * EACH + s->word[kind];
    }
    b->source_lengths[b->n] = n;
    add_target(b, s, place_of);
    b->n++;
}

static void draw_batch(batch *b, uint64_t *state)
{
    memset(b, 0, sizeof *b);
    while (b->n < BATCH) {
        sentence s = sentence_of(random_below(state, ALL));
        if (!is_held_out(&s)) add_to_batch(b, &s);
    }
}

static void fill_held_out(batch *b)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < ALL && b->n < MOST; i++) {
        sentence s = sentence_of(i);
        if (is_held_out(&s)) add_to_batch(b, &s);
    }
}

/* ---- the translator ---- */

static qkv_tensor *logits_of(const qkv_model *m, qkv_tape *t, const batch *b)
{
    qkv_tensor *memory = qkv_model_encode(
        m, t, &(qkv_tokens){ .ids = b->source, .rows = b->n, .length = LONGEST, .lengths = b->source_lengths });
    return qkv_model_logits(
        m, qkv_model_decode(m, t, &(qkv_tokens){ .ids = b->read, .rows = b->n, .length = ROWS, .lengths = b->lengths }, memory,
                            b->source_lengths));
}

static qkv_status train_translator(const qkv_model *m, qkv_tape *t, qkv_optimizer *o, batch *b, float losses[STEPS])
{
    uint64_t state = 5;
    int32_t targets[MOST * ROWS];
    const qkv_schedule schedule = { .kind = QKV_SCHEDULE_LINEAR, .lr = 5e-3, .warmup = 20, .steps = STEPS };
    for (int step = 0; step < STEPS; step++) {
        draw_batch(b, &state);
        qkv_tape_reset(t);
        for (int i = 0; i < MOST * ROWS; i++) targets[i] = b->chosen[i] ? b->chosen[i] : QKV_IGNORE;
        qkv_tensor *loss = qkv_cross_entropy(logits_of(m, t, b), targets, NULL);
        if (qkv_backward(loss)) return library_failed();
        losses[step] = qkv_tensor_item(loss);
        qkv_optimizer_set_lr(o, (float)qkv_schedule_lr(&schedule, step + 1));
        if (qkv_optimizer_step(o)) return library_failed();
    }
    return QKV_OK;
}

static int32_t most_likely(const float *logits)
{
    int32_t best = 0;
    for (int32_t i = 1; i < TARGET_FIRST + WORDS; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Writes to `out` what the model chooses word by word, having read its own words; gives the sentences that are all right. */
static qkv_status translate_batch(const qkv_model *m, qkv_tape *t, const batch *b, batch *out, int64_t *right)
{
    *out = *b;
    memset(out->read, 0, sizeof out->read);
    for (int64_t i = 0; i < b->n; i++) out->read[i * ROWS] = START, out->lengths[i] = ROWS;
    for (int at = 0; at < ROWS; at++) {
        qkv_tape_reset(t);
        qkv_tensor *logits = logits_of(m, t, out);
        if (qkv_tape_status(t)) return library_failed();
        for (int64_t i = 0; i < b->n; i++) {
            int32_t next = most_likely(qkv_tensor_data(logits) + (i * ROWS + at) * (TARGET_FIRST + WORDS));
            out->chosen[i * ROWS + at] = next;
            if (at + 1 < ROWS) out->read[i * ROWS + at + 1] = next;
        }
    }
    *right = 0;
    for (int64_t i = 0; i < b->n; i++)
        *right += !memcmp(out->chosen + i * ROWS, b->chosen + i * ROWS, (size_t)b->lengths[i] * sizeof *b->chosen);
    return QKV_OK;
}

/* Chosen words whose largest weight is on the word they translate, of all. */
static void count_aligned(const batch *b, const float *cross, int64_t *aligned, int64_t *all)
{
    *aligned = *all = 0;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t r = 0; r + 1 < b->lengths[i]; r++, ++*all) {
            const float *row = cross + (i * ROWS + r) * LONGEST;
            int best = 0;
            for (int j = 1; j < LONGEST; j++)
                if (row[j] > row[best]) best = j;
            *aligned += best == b->aligned[i * ROWS + r];
        }
}

/* ---- the lesson ---- */

static const char *target_name(int32_t id)
{
    static const char *const marks[TARGET_FIRST] = { QKV_SPECIAL_PAD, QKV_SPECIAL_START, QKV_SPECIAL_END };
    return id < TARGET_FIRST ? marks[id] : words[id - TARGET_FIRST].chinese;
}

static void introduce_cross(void)
{
    say(_("Where do queries, keys and values come from? In self-attention all three are made of the same tokens X: a sentence "
          "looks at itself. In cross-attention the queries are made of one sequence Y and the keys and values of another, X: Y "
          "looks at X. The formula is the same."));
    printf("    %s  Q = X W_Q    K = X W_K    V = X W_V\n", _("self: "));
    printf("    %s  Q = Y W_Q    K = X W_K    V = X W_V\n\n", _("cross:"));
    say(_(
        "A translator has both. Its encoder reads the source by self-attention. Its decoder writes the translation word by "
        "word: "
        "it looks at what it has written so far by self-attention under a causal mask, and at the source by cross-attention."));
    say_heading(_("A tiny translator"));
    say(_("English says who did what, where, when; Chinese says who, when, where, did what. Place and time may be missing:"));
    puts("    she | bought | apples | in the park | yesterday    ->    她 | 昨天 | 在公园 | 买了 | 苹果");
    puts("    we | drew | cats | here                            ->    我们 | 在这里 | 画了 | 猫\n");
    say(_("With %d words of each kind there are %d such sentences. Every fifth is held out: the model never sees it in "
          "training."),
        EACH, ALL);
}

static void tell_training(const qkv_params *p, const float losses[STEPS])
{
    const float told[] = { losses[0], losses[STEPS / 5], losses[STEPS / 2], losses[STEPS - 1] };
    char names[4][48];
    const int steps[] = { 1, STEPS / 5 + 1, STEPS / 2 + 1, STEPS };
    for (int i = 0; i < 4; i++) snprintf(names[i], sizeof names[i], _("step %d"), steps[i]);
    say(_("The model has one encoder layer and one decoder layer with one head each, %lld weights in all. It is trained now, "
          "%d "
          "steps of %d sentences; the loss is the mean cross-entropy of a word, in nats:"),
        (long long)qkv_params_count(p), STEPS, BATCH);
    print_table(&(table){ .values = told,
                          .rows = 1,
                          .columns = 4,
                          .row.names = (const char *const[]){ _("loss") },
                          .column.names = (const char *const[]){ names[0], names[1], names[2], names[3] },
                          .decimals = 3 });
    putchar('\n');
}

/* The attentions that one pass leaves on the tape, in the order they are computed. */
enum { ENCODER, DECODER, CROSS, ATTENTIONS };

typedef struct shown {
    const char *source[LONGEST], *read[ROWS], *chosen[ROWS];
    qkv_tensor *weights[ATTENTIONS];
    uint8_t later[ROWS * ROWS]; /* what the decoder's self-attention hides */
} shown;

static void name_words(const batch *b, shown *s)
{
    for (int i = 0; i < LONGEST; i++) s->source[i] = words[b->source[i] - SOURCE_FIRST].english;
    for (int i = 0; i < ROWS; i++) s->read[i] = target_name(b->read[i]), s->chosen[i] = target_name(b->chosen[i]);
    for (int i = 0; i < ROWS * ROWS; i++) s->later[i] = i % ROWS > i / ROWS;
}

/* The title has the numbers of rows and columns, and may have a special token. */
static void show_cross_map(const char *title, const char *special, const qkv_tensor *weights, const uint8_t *hidden,
                           const char *const *rows, const char *const *columns)
{
    say(title, (int)qkv_tensor_dim(weights, -2), (int)qkv_tensor_dim(weights, -1), special);
    print_table(&(table){ .values = qkv_tensor_data(weights),
                          .hidden = hidden,
                          .rows = qkv_tensor_dim(weights, -2),
                          .columns = qkv_tensor_dim(weights, -1),
                          .row.names = rows,
                          .column.names = columns,
                          .decimals = 2 });
    putchar('\n');
}

static qkv_status show_cross_maps(const shown *s)
{
    say_heading(_("What it looks at"));
    say(_("The first sentence above is one of those held out. Rows attend, columns are attended to."));
    show_cross_map(_("The encoder's self-attention, source to source, %d x %d:"), "", s->weights[ENCODER], NULL, s->source,
                   s->source);
    show_cross_map(
        _("The decoder's self-attention over the tokens read so far, %d x %d. It starts from %s, and what is above the "
          "diagonal is hidden (///): a word cannot see the words after it."),
        QKV_SPECIAL_START, s->weights[DECODER], s->later, s->read, s->read);
    show_cross_map(
        _("Cross-attention, each word it chooses to the source, %d x %d. It need not be square: a row for each word of the "
          "translation, a column for each word of the source. Only %s, the end, has no word to translate and may look "
          "anywhere."),
        QKV_SPECIAL_END, s->weights[CROSS], NULL, s->chosen, s->source);
    say(_("The same as a picture: the order of the words changes, so the weights leave the diagonal."));
    const qkv_heatmap_opts o = {
        .rows = ROWS, .columns = LONGEST, .row_names = s->chosen, .column_names = s->source, .high = 1
    };
    qkv_status status = print_map(qkv_tensor_data(s->weights[CROSS]), &o);
    putchar('\n');
    return status;
}

static qkv_status draw_cross(const shown *s)
{
    static const char *const names[] = { "cross_encoder", "cross_decoder", "cross" };
    const char *const *const rows[] = { s->source, s->read, s->chosen }, *const *const columns[] = { s->source, s->read,
                                                                                                     s->source };
    const char *const titles[] = { _("self-attention of the encoder"), _("self-attention of the decoder"),
                                   _("cross-attention") };
    qkv_status status = QKV_OK;
    for (int i = 0; i < ATTENTIONS && !status; i++)
        status = draw_maps(names[i], &(qkv_heatmap){ .values = qkv_tensor_data(s->weights[i]) }, 1,
                           &(qkv_heatmap_opts){ .size = sizeof(qkv_heatmap_opts),
                                                .rows = qkv_tensor_dim(s->weights[i], -2),
                                                .columns = qkv_tensor_dim(s->weights[i], -1),
                                                .row_names = rows[i],
                                                .column_names = columns[i],
                                                .row_axis = _("query (attending)"),
                                                .column_axis = _("key (attended)"),
                                                .title = titles[i],
                                                .high = 1,
                                                .hidden = i == DECODER ? s->later : NULL });
    return status;
}

/* The first sentence of the introduction, translated by the model, with what it attends to. */
static qkv_status show_one(const qkv_model *m, qkv_tape *t, batch *b, batch *own)
{
    shown s = { 0 };
    int64_t right;
    memset(b, 0, sizeof *b);
    add_to_batch(b, &(sentence){ { 2, 1, 1, 1, 1 } });
    qkv_status status = translate_batch(m, t, b, own, &right);
    if (status) return status;
    for (int i = 0; i < ATTENTIONS; i++) s.weights[i] = qkv_tape_attention(t, i);
    name_words(own, &s);
    status = show_cross_maps(&s);
    return status ? status : draw_cross(&s);
}

static qkv_status test(const qkv_model *m, qkv_tape *t, batch *b, batch *own)
{
    int64_t right = 0, aligned, all;
    fill_held_out(b);
    qkv_status status = translate_batch(m, t, b, own, &right);
    if (status) return status;
    count_aligned(b, qkv_tensor_data(qkv_tape_attention(t, CROSS)), &aligned, &all);
    say(_("Of the %lld sentences held out it translates %lld without a mistake. Now count over all of them: how often is a "
          "chosen "
          "word's largest weight in cross-attention on the very word that it translates? %lld times of %lld. Nobody told the "
          "model which word belongs to which. It found the alignment because looking there makes the next word easy to tell."),
        (long long)b->n, (long long)right, (long long)aligned, (long long)all);
    return QKV_OK;
}

static qkv_status teach_cross(qkv_model *m, qkv_optimizer *o, qkv_tape *training, qkv_tape *running)
{
    static batch b, own; /* too large for some stacks */
    float losses[STEPS];
    introduce_cross();
    qkv_status status = train_translator(m, training, o, &b, losses);
    if (status) return status;
    tell_training(qkv_model_params(m), losses);
    status = show_one(m, running, &b, &own);
    return status ? status : test(m, running, &b, &own);
}

static qkv_status run_cross_lesson(void)
{
    static const qkv_config opts = { .vocab_size = SOURCE_FIRST + WORDS,
                                     .target_vocab_size = TARGET_FIRST + WORDS,
                                     .encoder_layers = 1,
                                     .decoder_layers = 1,
                                     .dim = 32,
                                     .heads = 1,
                                     .d_ff = 64,
                                     .pre_norm = 1 };
    qkv_model *m = qkv_model_new(&opts, 5);
    qkv_optimizer *o = m ? qkv_optimizer_new(qkv_model_params(m), &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM }) : NULL;
    qkv_tape *training = o ? qkv_tape_new(NULL) : NULL;
    qkv_tape *running = training ? qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 }) : NULL;
    qkv_status status = running ? teach_cross(m, o, training, running) : library_failed();
    qkv_tape_free(running);
    qkv_tape_free(training);
    qkv_optimizer_free(o);
    qkv_model_free(m);
    return status;
}

const lesson lesson_cross = {
    .name = "5",
    .title = N_("Self-attention against cross-attention"),
    .run = run_cross_lesson,
    .question = N_(
        "While a translation is written word by word, which of the cross-attention's Q, K and V can be computed once and "
        "kept, and what does each new word need?"),
    .answer = N_(
        "K and V: they are made of the source, which does not change. Each new word needs one new query, one new row of "
        "weights. In the decoder's self-attention a new word also adds one key and one value, which are kept for the "
        "words after it. That is the key/value cache of all fast decoders."),
};
