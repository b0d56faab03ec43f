/* learn.c: a tiny translator that learns to reverse, sort or copy letters while one looks on. All of it depends on the options
 * alone: the same numbers come on every machine that computes alike. */
#include "inside.h"

#include <qkv/train.h>

#include "../../src/base/clock.h"
#include "../../src/base/random.h"

#include <math.h>
#include <string.h>

enum {
    MOST_LETTERS = 26,
    MOST_LENGTH = 12,
    PAIRS = 4096,
    TESTS = 64,
    SHOWN = 8,
    MOST_STEPS = 1000,
    PAD = 0, /* ids of <pad>, <s> and </s>, with which a tokenizer begins */
    START = 1,
    END = 2
};

typedef enum toy { TOY_REVERSE, TOY_SORT, TOY_COPY, TOYS } toy;
static const char *const toy_names[TOYS] = { "reverse", "sort", "copy" };

/* Letters with spaces between them. */
typedef struct letters {
    char text[2 * MOST_LENGTH];
} letters;

typedef struct qkv__learning {
    toy task;
    int64_t letters, length, seed;
    qkv_model *model;
    qkv_dataset *pairs;
    qkv_trainer *trainer;
    qkv_train_state at;
    int64_t tokens; /* that were learned from */
    double seconds;
    letters sources[TESTS], targets[TESTS];
} qkv__learning;

void qkv__learning_free(qkv__learning *l)
{
    if (!l) return;
    qkv_trainer_free(l->trainer);
    qkv_dataset_free(l->pairs);
    qkv_model_free(l->model);
    qkv__release(l, sizeof *l);
}

/* ---- made-up pairs ---- */

/* Number `place` of pair i, below `below`. */
static int64_t draw_number(const qkv__learning *l, int64_t i, int64_t place, int64_t below)
{
    uint32_t word[2];
    qkv__threefry(qkv__key_for((uint64_t)l->seed, (uint64_t)i, 0), (uint32_t)place, 0, word);
    return (int64_t)(((uint64_t)word[0] * (uint64_t)below) >> 32);
}

static void spell(const char *letter, int64_t n, letters *out)
{
    for (int64_t i = 0; i < n; i++) out->text[2 * i] = letter[i], out->text[2 * i + 1] = ' ';
    out->text[2 * n - 1] = '\0';
}

static void sort_letters(char *letter, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0 && letter[k] < letter[k - 1]; k--) {
            char spare = letter[k];
            letter[k] = letter[k - 1];
            letter[k - 1] = spare;
        }
}

static void make_pair(const qkv__learning *l, int64_t i, letters *source, letters *target)
{
    char letter[MOST_LENGTH], wanted[MOST_LENGTH];
    int64_t n = 2 + draw_number(l, i, MOST_LENGTH, l->length - 1);
    for (int64_t k = 0; k < n; k++) letter[k] = (char)('a' + draw_number(l, i, k, l->letters));
    for (int64_t k = 0; k < n; k++) wanted[k] = letter[l->task == TOY_REVERSE ? n - 1 - k : k];
    if (l->task == TOY_SORT) sort_letters(wanted, n);
    spell(letter, n, source);
    spell(wanted, n, target);
}

/* ---- the model ---- */

static qkv_tokenizer *learn_letters(int64_t n)
{
    qkv_word_counts *words = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_tokenizer *t = NULL;
    qkv_status status = words ? QKV_OK : QKV_MEMORY;
    for (int64_t i = 0; i < n && !status; i++)
        status = qkv_word_counts_add(words, (qkv_str){ (char[]){ (char)('a' + i), '\0' }, 1 });
    if (!status) t = qkv_tokenizer_train(words, &(qkv_tokenizer_opts){ .min_count = 1 });
    qkv_word_counts_free(words);
    return t;
}

static qkv_status make_tiny_model(qkv__learning *l)
{
    qkv_tokenizer *t = learn_letters(l->letters);
    if (!t) return qkv_error_status();
    const qkv_config tiny = {
        .vocab_size = qkv_tokenizer_vocab_size(t), .encoder_layers = 1, .decoder_layers = 1, .dim = 32, .heads = 2, .d_ff = 64
    };
    l->model = qkv_model_new(&tiny, (uint64_t)l->seed);
    qkv_status status = l->model ? qkv_model_set_tokenizers(l->model, t, NULL) : qkv_error_status();
    if (status) qkv_tokenizer_free(t);
    return status;
}

static qkv_status add_ids(qkv__learning *l, const letters *source, const letters *target, qkv_encoding **a, qkv_encoding **b)
{
    const qkv_tokenizer *t = qkv_model_tokenizer(l->model, QKV_SIDE_SOURCE);
    qkv_status status = qkv_tokenizer_encode(t, qkv_cstr(source->text), NULL, a);
    if (!status) status = qkv_tokenizer_encode(t, qkv_cstr(target->text), NULL, b);
    return status ? status : qkv_dataset_add_ids(l->pairs, (*a)->ids, (size_t)(*a)->n, (*b)->ids, (size_t)(*b)->n);
}

static bool is_tested(const qkv__learning *l, const letters *source)
{
    for (int i = 0; i < TESTS; i++)
        if (!strcmp(l->sources[i].text, source->text)) return true;
    return false;
}

/* The first pairs are for testing: training never sees their sources. */
static qkv_status make_pairs(qkv__learning *l)
{
    letters source, target;
    qkv_encoding *a = NULL, *b = NULL;
    qkv_status status = (l->pairs = qkv_dataset_new()) ? QKV_OK : QKV_MEMORY;
    for (int64_t i = 0; i < TESTS; i++) make_pair(l, i, &l->sources[i], &l->targets[i]);
    for (int64_t i = TESTS; i < TESTS + PAIRS && !status; i++) {
        make_pair(l, i, &source, &target);
        if (!is_tested(l, &source)) status = add_ids(l, &source, &target, &a, &b);
    }
    qkv_free(a);
    qkv_free(b);
    return status;
}

static qkv_status start_trainer(qkv__learning *l)
{
    const qkv_trainer_opts how = { .optimizer = &(
                                       qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f, .eps = 1e-9f },
                                   .schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_CONSTANT, .lr = 3e-3, .warmup = 50 },
                                   .batches = &(qkv_batch_opts){ .max_tokens = 512, .start = START, .end = END, .pad = PAD },
                                   .clip_norm = 1,
                                   .seed = (uint64_t)l->seed };
    return (l->trainer = qkv_trainer_new(l->model, l->pairs, &how)) ? QKV_OK : qkv_error_status();
}

static qkv_status get_toy(const qkv__json_value *start, toy *task)
{
    const char *name = toy_names[TOY_REVERSE];
    size_t length;
    qkv_status status = qkv__get_string(start, "task", &name, &length);
    for (*task = 0; !status && *task < TOYS; (*task)++)
        if (!strcmp(name, toy_names[*task])) return QKV_OK;
    return status ? status : qkv__fail(QKV_USAGE, "\"task\" is \"%.40s\": it is \"reverse\", \"sort\" or \"copy\"", name);
}

static qkv_status start_learning(qkv__engine *e, const qkv__json_value *start)
{
    qkv__learning *l = qkv__alloc_zero(sizeof *l);
    if (!l) return QKV_MEMORY;
    l->letters = 8;
    l->length = 5;
    l->seed = 1;
    qkv_status status = get_toy(start, &l->task);
    if (!status) status = qkv__get_whole(start, "letters", 2, MOST_LETTERS, &l->letters);
    if (!status) status = qkv__get_whole(start, "length", 3, MOST_LENGTH, &l->length);
    if (!status) status = qkv__get_whole(start, "seed", 0, INT32_MAX, &l->seed);
    if (!status) status = make_tiny_model(l);
    if (!status) status = make_pairs(l);
    if (!status) status = start_trainer(l);
    qkv__learning_free(status ? l : e->learning);
    if (!status) e->learning = l;
    return status;
}

/* ---- looking on ---- */

static void put_example(qkv__json *j, const qkv__learning *l, int i, const char *found)
{
    qkv__put_raw(j, i ? ",{\"text\":" : "{\"text\":");
    qkv__put_name(j, l->sources[i].text);
    qkv__put_key(j, "target");
    qkv__put_name(j, l->targets[i].text);
    qkv__put_key(j, "found");
    qkv__put_name(j, found);
    qkv__put_raw(j, strcmp(found, l->targets[i].text) ? ",\"is_right\":false}" : ",\"is_right\":true}");
}

static qkv_status put_measured(qkv__json *j, const qkv__learning *l)
{
    qkv_str texts[TESTS];
    qkv_translations *found = NULL;
    int right = 0;
    for (int i = 0; i < TESTS; i++) texts[i] = qkv_cstr(l->sources[i].text);
    qkv_status status = qkv_translate(l->model, texts, TESTS, &(qkv_translate_opts){ .beam_size = 1 }, &found);
    if (!status) {
        for (int i = 0; i < TESTS; i++) right += !strcmp(found->best[i].text.data, l->targets[i].text);
        qkv__put_named_double(j, "accuracy", (double)right / TESTS);
        qkv__put_key(j, "examples");
        qkv__put_raw(j, "[");
        for (int i = 0; i < SHOWN; i++) put_example(j, l, i, found->best[i].text.data);
        qkv__put_raw(j, "]");
    }
    qkv_free(found);
    return status;
}

/* What the first example attends to, with the target that it should have. */
static qkv_status put_attention(qkv__json *j, const qkv__json_value *body, const qkv__learning *l)
{
    qkv_attention_capture *a = NULL;
    const qkv_attend_opts opts = { .target = qkv_cstr(l->targets[0].text) };
    qkv_status status = qkv_attend(l->model, qkv_cstr(l->sources[0].text), &opts, &a);
    if (!status) {
        qkv__put_raw(j, ",");
        qkv__put_sides(j, a, -1);
        status = qkv__put_all_weights(j, body, a);
    }
    qkv_free(a);
    return status;
}

static qkv_status put_learned(qkv__json *j, const qkv__json_value *body, const qkv__learning *l)
{
    bool measure = true;
    qkv_status status = qkv__get_flag(body, "measure", &measure);
    qkv__put_raw(j, "{\"task\":");
    qkv__put_name(j, toy_names[l->task]);
    qkv__put_named_whole(j, "step", l->at.step);
    qkv__put_named_whole(j, "parameters", qkv_model_get_info(l->model)->parameters);
    qkv__put_named_whole(j, "tokens", l->tokens);
    qkv__put_named_double(j, "loss", l->at.step ? l->at.loss : NAN);
    qkv__put_named_double(j, "lr", l->at.lr);
    qkv__put_named_double(j, "seconds", l->seconds);
    if (!status && measure) status = put_measured(j, l);
    if (!status && measure) status = put_attention(j, body, l);
    qkv__put_raw(j, "}");
    return status;
}

static qkv_status learn_steps(qkv__learning *l, int64_t steps)
{
    qkv_status status = QKV_OK;
    double begin = qkv__seconds();
    for (int64_t i = 0; i < steps && !status; i++) {
        status = qkv_trainer_step(l->trainer, &l->at);
        l->tokens += status ? 0 : l->at.tokens;
    }
    l->seconds += qkv__seconds() - begin;
    return status;
}

static qkv_status put_params(qkv__json *j, qkv_model *m)
{
    const qkv_params *p = qkv_model_params(m);
    qkv__put_raw(j, "{\"names\":[");
    for (int i = 0; i < qkv_params_size(p); i++) {
        if (i) qkv__put_raw(j, ",");
        qkv__put_name(j, qkv_params_name(p, i));
    }
    qkv__put_raw(j, "],\"values\":[");
    for (int i = 0; i < qkv_params_size(p); i++) {
        const qkv_tensor *t = qkv_params_at(p, i);
        const int64_t count = qkv_tensor_count(t);
        if (i) qkv__put_raw(j, ",");
        qkv__put_array(j, qkv_tensor_data(t), 1, &count);
    }
    qkv__put_raw(j, "]}");
    return QKV_OK;
}

qkv_status qkv__answer_learn(qkv__engine *e, const qkv__json_value *body, qkv__json *j)
{
    const qkv__json_value *start = qkv__json_get(body, "start");
    bool weights = false;
    int64_t steps = 0;
    qkv_status status = start ? start_learning(e, start) : QKV_OK;
    if (!status && !e->learning) status = qkv__fail(QKV_USAGE, "nothing is learning yet: \"start\" it");
    if (!status) status = qkv__get_whole(body, "steps", 0, MOST_STEPS, &steps);
    if (!status) status = qkv__get_flag(body, "weights", &weights);
    if (!status) status = learn_steps(e->learning, steps);
    if (status) return status;
    return weights ? put_params(j, e->learning->model) : put_learned(j, body, e->learning);
}
