/* test_search.c: beam search finds what trying everything finds; a sentence's result depends on nothing but itself. */
#include <qkv/session.h>
#include <qkv/task.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "nn/params.h"
#include "model/model.h"

enum { VOCABULARY = 7, START = 1, END = 2, PAD = 0, SENTENCES = 7, LENGTH = 9 };

static const int32_t lengths[SENTENCES] = { 9, 1, 4, 2, 7, 3, 5 };
static int32_t sources[SENTENCES * LENGTH];

static const qkv_config small = {
    .vocab_size = VOCABULARY, .encoder_layers = 1, .decoder_layers = 2, .dim = 16, .heads = 2, .d_ff = 32, .dropout = 0.1f
};

/* Random weights, larger than usual, so that the model has opinions. */
static qkv_model *make_model(const qkv_config *o)
{
    qkv_model *m = qkv_model_new(o, 7);
    if (!m) return NULL;
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 1.7f;
    float *end = qkv_tensor_data_mut(qkv_params_find(p, "embed.weight")) + END * o->dim;
    for (int64_t i = 0; i < o->dim; i++) end[i] *= 0.3f; /* and does not end at once */
    return m;
}

static int draw_sources(void **state)
{
    (void)state;
    uint32_t seed = 9;
    for (int i = 0; i < SENTENCES * LENGTH; i++) {
        seed = seed * 1664525u + 1013904223u;
        int place = i % LENGTH, n = lengths[i / LENGTH];
        sources[i] = place == n - 1 ? END : place < n ? 3 + (int32_t)(seed >> 16) % (VOCABULARY - 3) : PAD;
    }
    return 0;
}

/* ---- against trying everything ---- */

/* log p of each next id after start and n ids, by a whole forward. */
static void log_p_after(const qkv_model *m, int sentence, const int32_t *ids, int64_t n, double *log_p)
{
    int32_t row[32] = { START };
    memcpy(row + 1, ids, sizeof(int32_t) * (size_t)n);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *memory = qkv__transformer_encode(
        x, t, &(qkv_tokens){ .ids = sources + sentence * LENGTH, .rows = 1, .length = lengths[sentence] });
    qkv_tensor *all = qkv_log_softmax(qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = row, .rows = 1, .length = n + 1 }, memory, NULL)));
    for (int i = 0; i < VOCABULARY; i++) log_p[i] = (double)qkv_tensor_data(all)[n * VOCABULARY + i];
    qkv_tape_free(t);
}

typedef struct best {
    int32_t ids[32];
    int64_t n;
    double score;
} best;

/* Every sequence of up to `most` tokens that ends, and those cut there. */
static void try_all(const qkv_model *m, int sentence, int32_t *ids, int64_t n, double so_far, int64_t most, double alpha,
                    best *found)
{
    double log_p[VOCABULARY];
    log_p_after(m, sentence, ids, n, log_p);
    double ended = (so_far + log_p[END]) / pow((5.0 + (double)n + 1) / 6, alpha),
           cut = so_far / pow((5.0 + (double)n) / 6, alpha);
    double score = n == most ? cut : ended;
    if (score > found->score) {
        found->score = score;
        found->n = n;
        memcpy(found->ids, ids, sizeof(int32_t) * (size_t)n);
    }
    for (int32_t id = 3; n < most && id < VOCABULARY; id++) {
        ids[n] = id;
        try_all(m, sentence, ids, n + 1, so_far + log_p[id], most, alpha, found);
    }
}

static void beam_finds_the_best(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *f = NULL;
    const qkv_search_opts opts = {
        .start = START, .end = END, .pad = PAD, .beam_size = 100, .max_length = 3, .length_penalty = 0.8f
    };
    for (int i = 0; i < SENTENCES; i++) {
        best expected = { .score = -INFINITY };
        int32_t ids[32];
        try_all(m, i, ids, 0, 0, 3, (double)0.8f, &expected);
        assert_int_equal(
            qkv_beam_search(m, &(qkv_tokens){ .ids = sources + i * LENGTH, .rows = 1, .length = lengths[i] }, &opts, &f),
            QKV_OK);
        assert_int_equal(f->best[0].n, expected.n);
        assert_memory_equal(f->best[0].ids, expected.ids, sizeof(int32_t) * (size_t)expected.n);
        assert_true(fabs(f->best[0].score - expected.score) < 1e-5);
    }
    qkv_free(f);
    qkv_model_free(m);
}

static void beam_1_is_greedy(void **state)
{
    (void)state;
    enum { MOST = 12 };
    qkv_model *m = make_model(&small);
    qkv_search_result *f = NULL;
    const qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .max_length = MOST };
    int64_t tokens = 0, ended = 0;
    assert_int_equal(
        qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths }, &opts, &f),
        QKV_OK);
    for (int i = 0; i < SENTENCES; i++) {
        int32_t ids[32];
        int64_t n = 0;
        for (; n < MOST; n++) {
            double log_p[VOCABULARY];
            log_p_after(m, i, ids, n, log_p);
            int32_t top = END;
            for (int32_t id = 3; id < VOCABULARY; id++)
                if (log_p[id] > log_p[top]) top = id;
            if (top == END) break;
            ids[n] = top;
        }
        assert_int_equal(f->best[i].n, n);
        assert_int_equal(f->best[i].truncated, n == MOST);
        assert_memory_equal(f->best[i].ids, ids, sizeof(int32_t) * (size_t)n);
        tokens += n;
        ended += n < MOST;
    }
    print_message("%d tokens, %d of %d sentences ended\n", (int)tokens, (int)ended, SENTENCES);
    assert_true(tokens > SENTENCES && ended > 0);
    qkv_free(f);
    qkv_model_free(m);
}

/* ---- a sentence depends on nothing but itself ---- */

static void same_alone_and_on_any_threads(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *all = NULL, *one = NULL;
    static const int32_t prefix[2] = { 4, 6 };
    qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .beam_size = 3, .n_best = 3, .prefix = prefix };
    for (int threads = 1; threads <= 4; threads++) {
        opts.n_prefix = threads / 3 * 2; /* without, and with it */
        qkv_set_num_threads(threads);
        assert_int_equal(
            qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths }, &opts,
                            &all),
            QKV_OK);
        for (int i = 0; i < SENTENCES; i++) {
            qkv_set_num_threads(1);
            assert_int_equal(
                qkv_beam_search(m, &(qkv_tokens){ .ids = sources + i * LENGTH, .rows = 1, .length = lengths[i] }, &opts, &one),
                QKV_OK);
            for (int k = 0; k < 3; k++) {
                const qkv_hypothesis *a = &all->best[i * 3 + k], *b = &one->best[k];
                assert_int_equal(a->n, b->n);
                if (a->n < 0) continue;
                assert_memory_equal(a->ids, b->ids, sizeof(int32_t) * (size_t)a->n);
                assert_true(a->score == b->score && a->log_p == b->log_p);
                if (k && all->best[i * 3 + k - 1].n >= 0) assert_true(all->best[i * 3 + k - 1].score >= a->score);
            }
        }
    }
    qkv_set_num_threads(0);
    qkv_free(all);
    qkv_free(one);
    qkv_model_free(m);
}

/* So many that each thread searches for its own. */
static void same_where_threads_have_their_own(void **state)
{
    (void)state;
    enum { MANY = 8 * SENTENCES + 1, BEAM = 3 };
    qkv_model *m = make_model(&small);
    qkv_search_result *few = NULL, *all = NULL;
    static int32_t many[MANY * LENGTH], many_lengths[MANY];
    for (int i = 0; i < MANY; i++) {
        memcpy(many + i * LENGTH, sources + i % SENTENCES * LENGTH, sizeof(int32_t) * LENGTH);
        many_lengths[i] = lengths[i % SENTENCES];
    }
    qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .beam_size = BEAM, .n_best = 2 };
    assert_int_equal(qkv_beam_search(m,
                                     &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths },
                                     &opts, &few),
                     QKV_OK);
    for (int threads = 1; threads <= 4; threads++) {
        qkv_set_num_threads(threads);
        assert_int_equal(qkv_beam_search(m,
                                         &(qkv_tokens){ .ids = many, .rows = MANY, .length = LENGTH, .lengths = many_lengths },
                                         &opts, &all),
                         QKV_OK);
        assert_int_equal(all->rows, MANY);
        for (int i = 0; i < 2 * MANY; i++) {
            const qkv_hypothesis *a = &all->best[i], *b = &few->best[i % (2 * SENTENCES)];
            assert_int_equal(a->n, b->n);
            if (a->n > 0) assert_memory_equal(a->ids, b->ids, sizeof(int32_t) * (size_t)a->n);
            assert_true(a->score == b->score && a->log_p == b->log_p && a->truncated == b->truncated);
        }
    }
    qkv_set_num_threads(0);
    qkv_free(few);
    qkv_free(all);
    qkv_model_free(m);
}

static void more_results_same_best(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *one = NULL, *many = NULL;
    qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .beam_size = 4 };
    assert_int_equal(qkv_beam_search(m,
                                     &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths },
                                     &opts, &one),
                     QKV_OK);
    opts.n_best = 4;
    assert_int_equal(qkv_beam_search(m,
                                     &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths },
                                     &opts, &many),
                     QKV_OK);
    for (int i = 0; i < SENTENCES; i++) {
        assert_int_equal(one->best[i].n, many->best[i * 4].n);
        assert_true(one->best[i].score == many->best[i * 4].score);
        assert_memory_equal(one->best[i].ids, many->best[i * 4].ids, sizeof(int32_t) * (size_t)one->best[i].n);
    }
    qkv_free(one);
    qkv_free(many);
    qkv_model_free(m);
}

static void no_run_comes_twice(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *f = NULL;
    int repeated = 0;
    for (int no_repeat = 0; no_repeat <= 2; no_repeat += 2) {
        const qkv_search_opts opts = { .start = START,
                                       .end = END,
                                       .pad = PAD,
                                       .beam_size = 2,
                                       .max_length = 30,
                                       .length_penalty = 8,
                                       .no_repeat_ngram = no_repeat };
        assert_int_equal(
            qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths }, &opts,
                            &f),
            QKV_OK);
        for (int i = 0; i < SENTENCES; i++)
            for (int64_t a = 0; a + 1 < f->best[i].n; a++)
                for (int64_t b = a + 1; b + 1 < f->best[i].n; b++) {
                    bool same = f->best[i].ids[a] == f->best[i].ids[b] && f->best[i].ids[a + 1] == f->best[i].ids[b + 1];
                    if (no_repeat) assert_false(same);
                    repeated += same;
                }
    }
    assert_true(repeated > 0); /* it does when it may */
    qkv_free(f);
    qkv_model_free(m);
}

/* ---- chains: models that look at the last id alone, so that a search can be followed by hand ---- */

enum { A = 3, B, C, D };

static float *weights_of(qkv_model *m, const char *name)
{
    qkv_tensor *w = qkv_params_find(qkv_model_params(m), name);
    assert_non_null(w);
    return qkv_tensor_data_mut(w);
}

static const qkv_config chain_opts = { .vocab_size = VOCABULARY,
                                       .encoder_layers = 1,
                                       .decoder_layers = 1,
                                       .dim = VOCABULARY,
                                       .heads = 1,
                                       .d_ff = 1,
                                       .pre_norm = 1,
                                       .norm = QKV_NORM_RMS,
                                       .positions = QKV_POSITION_LEARNED,
                                       .max_positions = 16,
                                       .untied = 1 };

/* p[last][next]; after the id `broken`, unless that is 0, nothing is a number. Everything is zero but these: an id is a long
 * vector of its own, the last norm makes it sqrt(dim) long, and the output has the logarithms of its row. */
static qkv_model *make_chain(const float p[VOCABULARY][VOCABULARY], int32_t broken)
{
    qkv_model *m = qkv_model_new(&chain_opts, 1);
    assert_non_null(m);
    memset(qkv__params_data(qkv_model_params(m)), 0, sizeof(float) * (size_t)qkv__params_block(qkv_model_params(m)));
    float *embed = weights_of(m, "embed.weight"), *output = weights_of(m, "output.weight");
    float *gain = weights_of(m, "decoder.norm.weight");
    for (int last = 0; last < VOCABULARY; last++) {
        gain[last] = 1;
        embed[last * VOCABULARY + last] = broken && last == broken ? NAN : 100;
        for (int next = 0; next < VOCABULARY; next++)
            output[next * VOCABULARY + last] = logf(fmaxf(p[last][next], 1e-9f)) / sqrtf(VOCABULARY);
    }
    return m;
}

typedef struct chain_row {
    const char *what;
    float p[VOCABULARY][VOCABULARY];
    int32_t broken;
    int n_best;  /* the beam is 2 */
    float alpha; /* -1: none */
    int64_t most;
    qkv_status status;
    struct {
        const char *ids;
        double p;
    } wanted[2];
} chain_row;

static const chain_row chain_rows[] = {
    { .what = "an end at the last place of the beam is a result",
      .p = { [START] = { [A] = 0.8f, [END] = 0.11f, [B] = 0.09f },
             [A] = { [END] = 0.9f, [C] = 0.1f },
             [B] = { [C] = 1 },
             [C] = { [END] = 1 } },
      .n_best = 2,
      .alpha = -1,
      .most = 5,
      .wanted = { { "A", 0.72 }, { "", 0.11 } } },
    { .what = "an end behind the beam is none: B is not found, though 0.12",
      .p = { [START] = { [A] = 0.5f, [B] = 0.3f, [D] = 0.2f },
             [A] = { [END] = 0.8f, [C] = 0.2f },
             [B] = { [C] = 0.6f, [END] = 0.4f },
             [C] = { [END] = 0.6f, [D] = 0.4f } },
      .n_best = 2,
      .alpha = -1,
      .most = 5,
      .wanted = { { "A", 0.4 }, { "BC", 0.108 } } },
    { .what = "what is worse with one token more may be the best at full length",
      .p = { [START] = { [END] = 0.6f, [A] = 0.4f }, [A] = { [END] = 0.6f, [A] = 0.4f } },
      .n_best = 1,
      .alpha = 4,
      .most = 10,
      .wanted = { { "AAAAAAAAA", 0.6 * 0.000262144 } } },
    { .what = "no step once nothing likelier can come",
      .p = { [START] = { [END] = 0.5f, [A] = 0.4f, [B] = 0.1f } },
      .broken = A,
      .n_best = 1,
      .alpha = -1,
      .most = 10,
      .wanted = { { "", 0.5 } } },
    { .what = "no step once nothing can score more at full length: log 0.427 / (7/6) is less than log 0.4966",
      .p = { [START] = { [END] = 0.4966f, [A] = 0.427f, [B] = 0.0764f } },
      .broken = A,
      .n_best = 1,
      .alpha = 1,
      .most = 2,
      .wanted = { { "", 0.4966 } } },
    { .what = "and one more token of room is a step: log 0.427 / (8/6) is more",
      .p = { [START] = { [END] = 0.4966f, [A] = 0.427f, [B] = 0.0764f } },
      .broken = A,
      .n_best = 1,
      .alpha = 1,
      .most = 3,
      .status = QKV_NUMERIC },
};

static void check_chain(const chain_row *r)
{
    qkv_model *m = make_chain(r->p, r->broken);
    qkv_search_result *f = NULL;
    const qkv_search_opts opts = { .start = START,
                                   .end = END,
                                   .pad = PAD,
                                   .beam_size = 2,
                                   .n_best = r->n_best,
                                   .length_penalty = r->alpha < 0 ? 0 : r->alpha,
                                   .no_length_penalty = r->alpha < 0,
                                   .max_length = r->most };
    if (qkv_beam_search(m, &(qkv_tokens){ .ids = (const int32_t[]){ END }, .rows = 1, .length = 1 }, &opts, &f) != r->status)
        fail_msg("%s: %s", r->what, qkv_error());
    for (int k = 0; !r->status && k < r->n_best; k++) {
        char found[16] = "";
        for (int64_t i = 0; i < f->best[k].n; i++) found[i] = (char)('A' + f->best[k].ids[i] - A);
        if (strcmp(found, r->wanted[k].ids) || fabs(exp(f->best[k].log_p) - r->wanted[k].p) > 1e-6)
            fail_msg("%s: %d: \"%s\" with %g", r->what, k, found, exp(f->best[k].log_p));
    }
    qkv_free(f);
    qkv_model_free(m);
}

static void chains_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof chain_rows / sizeof *chain_rows; i++) check_chain(&chain_rows[i]);
}

/* ---- many ids ---- */

enum { MANY = 1000, BEAM = 4 };

typedef struct pair {
    double log_p;
    int32_t ids[2];
} pair;

/* The best BEAM of all ids after a row, best first; to be called row by row. */
static void add_to_best(pair *top, int *n, const pair *row, int at, const float *log_p)
{
    for (int32_t id = END; id < MANY; id++) {
        pair x = *row;
        x.ids[at] = id;
        x.log_p += (double)log_p[id];
        int place = *n;
        while (place > 0 && x.log_p > top[place - 1].log_p) place--;
        if (place == BEAM) continue;
        if (*n < BEAM) ++*n;
        memmove(top + place + 1, top + place, sizeof *top * (size_t)(*n - place - 1));
        top[place] = x;
    }
}

/* Most ids are passed over many at a time: the best are found wherever they stand. */
static void the_best_of_many_ids(void **state)
{
    (void)state;
    qkv_config o = small;
    o.vocab_size = MANY;
    qkv_model *m = qkv_model_new(&o, 3);
    qkv_session *s = qkv_session_new(m, NULL);
    const int32_t source[3] = { 7, 900, END };
    pair first[BEAM], second[BEAM];
    int n_first = 0, n_second = 0;
    assert_int_equal(qkv_session_encode(s, &(qkv_tokens){ .ids = source, .rows = 1, .length = 3 }), QKV_OK);
    assert_int_equal(qkv_session_read(s, (const int32_t[]){ START }, NULL, QKV_LOGITS_LAST), QKV_OK);
    add_to_best(first, &n_first, &(pair){ 0 }, 0, qkv_tensor_data(qkv_log_softmax(qkv_session_logits(s))));
    assert_int_equal(qkv_session_select(s, (const int64_t[BEAM]){ 0 }, BEAM), QKV_OK);
    assert_int_equal(qkv_session_read(s,
                                      (const int32_t[]){ first[0].ids[0], first[1].ids[0], first[2].ids[0], first[3].ids[0] },
                                      NULL, QKV_LOGITS_LAST),
                     QKV_OK);
    const float *log_p = qkv_tensor_data(qkv_log_softmax(qkv_session_logits(s)));
    for (int i = 0; i < BEAM; i++) add_to_best(second, &n_second, &first[i], 1, log_p + i * MANY);
    const qkv_search_opts opts = {
        .start = START, .end = END, .pad = PAD, .beam_size = BEAM, .n_best = BEAM, .no_length_penalty = 1, .max_length = 2
    };
    qkv_search_result *f = NULL;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = source, .rows = 1, .length = 3 }, &opts, &f), QKV_OK);
    for (int i = 0; i < BEAM; i++) {
        assert_int_equal(f->best[i].n, 2);
        assert_memory_equal(f->best[i].ids, second[i].ids, sizeof second[i].ids);
        assert_true(f->best[i].log_p == second[i].log_p);
    }
    qkv_free(f);
    qkv_session_free(s);
    qkv_model_free(m);
}

/* ---- options of a search, on chains ---- */

/* A goes on with A, B ends or goes on with C, C ends. */
static const float turns[VOCABULARY][VOCABULARY] = { [START] = { [A] = 0.6f, [B] = 0.4f },
                                                     [A] = { [A] = 0.9f, [END] = 0.1f },
                                                     [B] = { [END] = 0.6f, [C] = 0.4f },
                                                     [C] = { [END] = 1 } };

static void found_with(const qkv_model *m, qkv_search_opts o, const char *wanted, double p)
{
    qkv_search_result *f = NULL;
    o.start = START, o.end = END, o.pad = PAD;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = (const int32_t[]){ END }, .rows = 1, .length = 1 }, &o, &f),
                     QKV_OK);
    char found[64] = "";
    for (int64_t i = 0; i < f->best[0].n; i++) found[i] = (char)('A' + f->best[0].ids[i] - A);
    assert_string_equal(found, wanted);
    if (fabs(exp(f->best[0].log_p) - p) > 1e-6) fail_msg("%s: %g, not %g", wanted, exp(f->best[0].log_p), p);
    double length = (double)f->best[0].n + !f->best[0].truncated;
    double alpha = o.no_length_penalty ? 0 : o.length_penalty == 0 ? (double)0.6f : (double)o.length_penalty;
    double penalty = pow(o.length_norm ? length : (5 + length) / 6, alpha);
    assert_true(fabs(f->best[0].score - f->best[0].log_p / penalty) < 1e-9);
    qkv_free(f);
}

static void options_by_hand(void **state)
{
    (void)state;
    qkv_model *m = make_chain(turns, 0);
    const int32_t a = A, c = C, b_and_end[] = { B, END };
    found_with(m, (qkv_search_opts){ .max_length = 4 }, "AAAA", 0.6 * 0.9 * 0.9 * 0.9);
    found_with(m, (qkv_search_opts){ .max_length = 15 }, "AAAAAAAAAAAAAAA", 0.6 * pow(0.9, 14)); /* the start takes a place */
    found_with(m, (qkv_search_opts){ 0 }, "AAAAAAAAAAAAAAA", 0.6 * pow(0.9, 14));
    found_with(m, (qkv_search_opts){ .no_repeat_ngram = 1, .max_length = 9 }, "A", 0.6 * 0.1);
    found_with(m, (qkv_search_opts){ .no_repeat_ngram = 2, .max_length = 9 }, "AA", 0.6 * 0.9 * 0.1);
    found_with(m, (qkv_search_opts){ .no_repeat_ngram = 3, .max_length = 9 }, "AAA", 0.6 * 0.9 * 0.9 * 0.1);
    found_with(m, (qkv_search_opts){ .banned = &a, .n_banned = 1 }, "B", 0.4 * 0.6);
    found_with(m, (qkv_search_opts){ .banned = &a, .n_banned = 1, .length_norm = 1, .length_penalty = 2 }, "B", 0.4 * 0.6);
    found_with(m, (qkv_search_opts){ .ends = &a, .n_ends = 1 }, "", 0.6);
    found_with(m, (qkv_search_opts){ .banned = b_and_end, .n_banned = 2, .no_repeat_ngram = 1 }, "A",
               0.6 * 0.1); /* an end stays one */
    found_with(m, (qkv_search_opts){ .banned = &a, .n_banned = 1, .ends = &c, .n_ends = 1, .beam_size = 2 }, "B", 0.4 * 0.6);
    qkv_model_free(m);
}

/* Where nothing may follow there is no result, and that is no error. */
static void nothing_may_follow(void **state)
{
    (void)state;
    qkv_model *m = make_chain(turns, 0);
    qkv_search_result *f = NULL;
    float *output = weights_of(m, "output.weight");
    for (int next = 0; next < VOCABULARY; next++)
        if (next != A) output[next * VOCABULARY + START] = output[next * VOCABULARY + A] = -3e38f; /* its logit is -inf */
    const qkv_search_opts o = {
        .start = START, .end = END, .pad = PAD, .no_repeat_ngram = 1, .beam_size = 2, .n_best = 2, .max_length = 5
    };
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = (const int32_t[]){ END }, .rows = 1, .length = 1 }, &o, &f),
                     QKV_OK);
    assert_int_equal(f->best[0].n, -1);
    assert_int_equal(f->best[1].n, -1);
    qkv_free(f);
    qkv_model_free(m);
}

static int count_step(void *data) { return !--*(int *)data; }

static void a_step_may_be_the_last(void **state)
{
    (void)state;
    qkv_model *m = make_chain(turns, 0);
    qkv_search_result *f = NULL;
    for (int left = 1; left <= 4; left++) { /* steps of "AAA", and one more than there are */
        int n = left;
        const qkv_hooks hooks = { .size = sizeof hooks, .data = &n, .cancel = count_step };
        const qkv_search_opts o = { .start = START, .end = END, .max_length = 3, .hooks = &hooks };
        assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = (const int32_t[]){ END }, .rows = 1, .length = 1 }, &o, &f),
                         left <= 3 ? QKV_CANCELLED : QKV_OK);
        assert_int_equal(n, left <= 3 ? 0 : 1);
    }
    qkv_free(f);
    qkv_model_free(m);
}

/* ---- a prefix ---- */

static void beam_finds_the_best_after_a_prefix(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *f = NULL;
    static const int32_t prefix[2] = { 5, 3 };
    const qkv_search_opts opts = { .start = START,
                                   .end = END,
                                   .pad = PAD,
                                   .beam_size = 100,
                                   .max_length = 4,
                                   .length_penalty = 0.8f,
                                   .prefix = prefix,
                                   .n_prefix = 2 };
    for (int i = 0; i < SENTENCES; i++) {
        best expected = { .score = -INFINITY };
        int32_t ids[32];
        double so_far = 0, log_p[VOCABULARY];
        for (int64_t n = 0; n < 2; n++) {
            log_p_after(m, i, ids, n, log_p);
            so_far += log_p[ids[n] = prefix[n]];
        }
        try_all(m, i, ids, 2, so_far, 4, (double)0.8f, &expected);
        assert_int_equal(
            qkv_beam_search(m, &(qkv_tokens){ .ids = sources + i * LENGTH, .rows = 1, .length = lengths[i] }, &opts, &f),
            QKV_OK);
        assert_int_equal(f->best[0].n, expected.n);
        assert_memory_equal(f->best[0].ids, expected.ids, sizeof(int32_t) * (size_t)expected.n);
        assert_true(fabs(f->best[0].score - expected.score) < 1e-5);
    }
    qkv_free(f);
    qkv_model_free(m);
}

/* A prefix that greedy search takes by itself changes nothing; another one is taken, by any beam, and no_repeat lets it be. */
static void every_result_starts_with_the_prefix(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *greedy = NULL, *f = NULL;
    static const int32_t odd[4] = { 6, 6, 6, 6 };
    qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .max_length = 12 };
    assert_int_equal(qkv_beam_search(m,
                                     &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths },
                                     &opts, &greedy),
                     QKV_OK);
    for (int i = 0; i < SENTENCES; i++) {
        opts.prefix = greedy->best[i].ids, opts.n_prefix = greedy->best[i].n / 2;
        assert_int_equal(
            qkv_beam_search(m, &(qkv_tokens){ .ids = sources + i * LENGTH, .rows = 1, .length = lengths[i] }, &opts, &f),
            QKV_OK);
        assert_int_equal(f->best[0].n, greedy->best[i].n);
        assert_memory_equal(f->best[0].ids, greedy->best[i].ids, sizeof(int32_t) * (size_t)f->best[0].n);
        assert_true(f->best[0].log_p == greedy->best[i].log_p);
    }
    opts.prefix = odd, opts.n_prefix = 4, opts.no_repeat_ngram = 1;
    for (opts.beam_size = 1; opts.beam_size <= 3; opts.beam_size++) {
        assert_int_equal(
            qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths }, &opts,
                            &f),
            QKV_OK);
        for (int i = 0; i < SENTENCES; i++) {
            assert_true(f->best[i].n >= 4);
            assert_memory_equal(f->best[i].ids, odd, sizeof odd);
            for (int64_t k = 4; k < f->best[i].n; k++) assert_int_not_equal(f->best[i].ids[k], 6);
        }
    }
    int32_t many[40]; /* more than twice the source and 20: there is room for it, and for what comes after */
    for (int k = 0; k < 40; k++) many[k] = 3 + k % 4;
    opts = (qkv_search_opts){ .start = START, .end = END, .pad = PAD, .prefix = many, .n_prefix = 40 };
    assert_int_equal(
        qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths }, &opts, &f),
        QKV_OK);
    for (int i = 0; i < SENTENCES; i++) assert_true(f->best[i].n >= 40 && !memcmp(f->best[i].ids, many, sizeof many));
    qkv_free(greedy);
    qkv_free(f);
    qkv_model_free(m);
}

/* ---- bad input ---- */

static void bad_options(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *f = NULL;
    static const int32_t prefix[4] = { 4, PAD, VOCABULARY, END }, fits[3] = { 3, 4, 5 };
    const qkv_search_opts rows[] = {
        { .beam_size = -1 },
        { .beam_size = 2, .n_best = 3 },
        { .max_length = -1 },
        { .no_repeat_ngram = -1 },
        { .beam_size = 5000 },
        { .n_prefix = 1 },
        { .prefix = prefix, .n_prefix = -1 },
        { .prefix = prefix + 2, .n_prefix = 1 },                             /* no id */
        { .prefix = prefix + 1, .n_prefix = 1, .start = START, .end = END }, /* the padding is none for a result */
        { .prefix = prefix + 3, .n_prefix = 1, .start = START, .end = END }, /* nor is the end */
        { .prefix = prefix, .n_prefix = 1, .start = START, .end = END, .length_penalty = 200 },
        { .prefix = fits, .n_prefix = 3, .start = START, .end = END, .max_length = 2 }, /* longer than can be */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 3 }, &rows[i], &f), QKV_USAGE);
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 0, .length = 3 }, &rows[0], &f), QKV_USAGE);
    for (int64_t i = 0; i < qkv__params_block(qkv_model_params(m)); i++) qkv__params_data(qkv_model_params(m))[i] = NAN;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 3 },
                                     &(qkv_search_opts){ .start = START, .end = END }, &f),
                     QKV_NUMERIC);
    qkv_free(f);
    qkv_model_free(m);
}

/* The start takes one of the 16. */
static void positions_end(void **state)
{
    (void)state;
    qkv_model *m = qkv_model_new(&chain_opts, 1);
    qkv_search_result *f = NULL;
    qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .max_length = 16 };
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 3 }, &opts, &f), QKV_USAGE);
    assert_string_equal(qkv_error(), "search: a max_length of 16 tokens, the model has positions for 15");
    opts.max_length = 15;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 3 }, &opts, &f), QKV_OK);
    opts.max_length = 0;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 3 }, &opts, &f), QKV_OK);
    assert_true(f->best[0].n <= 15);
    qkv_free(f);
    qkv_model_free(m);
}

static void refused(const qkv_model *m, qkv_search_opts o, const char *piece)
{
    qkv_search_result *f = NULL;
    o.start = START, o.end = END;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 3 }, &o, &f), QKV_USAGE);
    if (!strstr(qkv_error(), piece)) fail_msg("\"%s\" is missing in: %s", piece, qkv_error());
    assert_true(!f || !f->best);
    qkv_free(f);
}

static void what_is_said_of_bad_options(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small), *chain = make_chain(turns, 0);
    qkv_search_result *f = NULL;
    const int32_t ids[] = { A, -1, VOCABULARY, START };
    refused(m, (qkv_search_opts){ .beam_size = 1001 }, "beam 1001 and 1 results");
    refused(m, (qkv_search_opts){ .n_best = -1 }, "beam 1 and -1 results");
    refused(m, (qkv_search_opts){ .max_length = (1 << 20) + 1 }, "out of range");
    refused(m, (qkv_search_opts){ .length_penalty = NAN }, "out of range");
    refused(m, (qkv_search_opts){ .n_ends = -1, .ends = ids }, "are missing");
    refused(m, (qkv_search_opts){ .n_banned = -1, .banned = ids }, "are missing");
    refused(m, (qkv_search_opts){ .n_ends = 1 }, "are missing");
    refused(m, (qkv_search_opts){ .n_banned = 1 }, "are missing");
    refused(m, (qkv_search_opts){ .prefix = ids, .n_prefix = 2 }, "id -1 of the prefix is outside 0..6");
    refused(m, (qkv_search_opts){ .prefix = ids + 2, .n_prefix = 1 }, "id 7 of the prefix is outside 0..6");
    refused(m, (qkv_search_opts){ .prefix = ids + 3, .n_prefix = 1 }, "id 1 of the prefix is the start");
    refused(m, (qkv_search_opts){ .prefix = ids, .n_prefix = 1, .banned = ids, .n_banned = 1 }, "or it is banned");
    refused(m, (qkv_search_opts){ .prefix = ids, .n_prefix = 1, .ends = ids, .n_ends = 1 }, "the end");
    refused(chain, (qkv_search_opts){ .max_length = 16 }, "a max_length of 16 tokens, the model has positions for 15");
    const qkv_search_opts o = { .start = START, .end = END };
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 0 }, &o, &f), QKV_USAGE);
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 0, .length = 1 }, &o, &f), QKV_USAGE);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(qkv_beam_search(i == 0 ? NULL : m,
                                         &(qkv_tokens){ .ids = i == 1 ? NULL : sources, .rows = 1, .length = 1 },
                                         i == 2 ? NULL : &o, i == 3 ? NULL : &f),
                         QKV_USAGE);
        assert_non_null(strstr(qkv_error(), "a model, at least one sentence"));
    }
    qkv_model_free(m);
    qkv_model_free(chain);
}

/* The largest values that are allowed are. */
static void as_much_as_there_may_be(void **state)
{
    (void)state;
    qkv_model *m = make_model(&small);
    qkv_search_result *all = NULL, *f = NULL;
    qkv_search_opts o = { .start = START, .end = END, .pad = PAD, .max_length = 12 };
    assert_int_equal(
        qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = SENTENCES, .length = LENGTH, .lengths = lengths }, &o, &all),
        QKV_OK);
    int i = 0;
    while (i < SENTENCES && all->best[i].truncated) i++;
    assert_true(i < SENTENCES);
    o.max_length = 1 << 20;
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources + i * LENGTH, .rows = 1, .length = lengths[i] }, &o, &f),
                     QKV_OK);
    assert_int_equal(f->best[0].n, all->best[i].n);
    o = (qkv_search_opts){ .start = START, .end = END, .beam_size = 1000, .n_best = 1000, .max_length = 1 };
    o.prefix = (const int32_t[]){ A }, o.n_prefix = 1; /* as long as a result may be: there is one */
    assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = sources + i * LENGTH, .rows = 1, .length = lengths[i] }, &o, &f),
                     QKV_OK);
    assert_int_equal(f->best[0].n, 1);
    assert_int_equal(f->best[1].n, -1);
    qkv_free(all);
    qkv_free(f);
    qkv_model_free(m);
}

static qkv_status search_once(void)
{
    qkv_model *m = make_model(&small);
    qkv_search_result *f = NULL;
    qkv_status status = qkv_error_status();
    const qkv_search_opts opts = { .start = START, .end = END, .pad = PAD, .beam_size = 2, .max_length = 5 };
    if (m)
        status = qkv_beam_search(m, &(qkv_tokens){ .ids = sources, .rows = 3, .length = LENGTH, .lengths = lengths }, &opts,
                                 &f);
    qkv_free(f);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(search_once) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beam_finds_the_best),
        cmocka_unit_test(beam_1_is_greedy),
        cmocka_unit_test(same_alone_and_on_any_threads),
        cmocka_unit_test(same_where_threads_have_their_own),
        cmocka_unit_test(more_results_same_best),
        cmocka_unit_test(no_run_comes_twice),
        cmocka_unit_test(chains_by_hand),
        cmocka_unit_test(the_best_of_many_ids),
        cmocka_unit_test(options_by_hand),
        cmocka_unit_test(nothing_may_follow),
        cmocka_unit_test(a_step_may_be_the_last),
        cmocka_unit_test(beam_finds_the_best_after_a_prefix),
        cmocka_unit_test(every_result_starts_with_the_prefix),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(positions_end),
        cmocka_unit_test(what_is_said_of_bad_options),
        cmocka_unit_test(as_much_as_there_may_be),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, draw_sources, NULL);
}
