/* test_generate.c: a generated text is what whole forwards say, at any number of threads; where it ends, what it gives out. */
#include <qkv/task.h>
#include <qkv/unstable/util.h>

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

static const char *const corpus[] = {
    "the cat sat on the mat", "I love you", "you love the cat",    "我爱你",
    "猫坐在垫子上",           "你爱猫",     "the dog and the cat", "the mat and the dog",
};

static const char prompt[] = "the cat and 我";
enum { START = 1, END = 2, SPECIALS = 4, LONGEST = 24, ROOM = 200 };

static qkv_tokenizer *learn(qkv_token_kind kind)
{
    qkv_word_counts *w = qkv_word_counts_new(kind);
    qkv_tokenizer *t = NULL;
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus && !status; i++) status = qkv_word_counts_add(w, qkv_cstr(corpus[i]));
    if (!status) t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 300, .min_count = 1 });
    qkv_word_counts_free(w);
    return t;
}

/* Random weights, larger than usual, so that the model has opinions; spare: ids that the tokenizer does not know. */
static qkv_model *make_model_of(qkv_token_kind kind, qkv_position_kind positions, int spare)
{
    qkv_tokenizer *t = learn(kind);
    if (!t) return NULL;
    const qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t) + spare,
                           .decoder_layers = 2,
                           .dim = 16,
                           .heads = 2,
                           .d_ff = 32,
                           .pre_norm = 1,
                           .dropout = 0.1f,
                           .positions = positions,
                           .max_positions = LONGEST };
    qkv_model *m = qkv_model_new(&o, 3);
    if (m && qkv_model_set_tokenizers(m, t, NULL)) {
        qkv_model_free(m);
        m = NULL;
    }
    if (!m) {
        qkv_tokenizer_free(t);
        return NULL;
    }
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 1.7f;
    float *end = qkv_tensor_data_mut(qkv_params_find(p, "embed.weight")) + END * o.dim;
    for (int64_t i = 0; i < o.dim; i++) end[i] *= 0.3f; /* and does not end at once */
    return m;
}

static qkv_model *make_model(qkv_position_kind positions) { return make_model_of(QKV_TOKEN_BPE, positions, 0); }

static void generate(const qkv_model *m, qkv_generate_opts o, qkv_generated **g)
{
    assert_int_equal(qkv_generate(m, qkv_cstr(prompt), &o, g), QKV_OK);
    assert_int_equal((*g)->text.data[(*g)->text.length], 0);
}

static void same(const qkv_generated *a, const qkv_generated *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->text.length, b->text.length);
    assert_memory_equal(a->text.data, b->text.data, a->text.length);
    assert_memory_equal(a->ids, b->ids, sizeof *a->ids * (size_t)a->n);
    assert_memory_equal(a->log_p, b->log_p, sizeof *a->log_p * (size_t)a->n);
}

/* ---- against whole forwards ---- */

/* The logits after the start, the prompt and the first n new ids, by a forward over all of them at once. */
static const float *whole_forward(const qkv_model *m, qkv_tape *t, const qkv_generated *g, int64_t n)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    int32_t ids[ROOM] = { START };
    int64_t length = 1 + g->n_prompt + n;
    assert_true(length <= ROOM);
    if (g->n_prompt) memcpy(ids + 1, g->prompt_ids, sizeof *ids * (size_t)g->n_prompt);
    if (n) memcpy(ids + 1 + g->n_prompt, g->ids, sizeof *ids * (size_t)n);
    qkv_tape_reset(t);
    qkv_tensor *logits = qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = length }, NULL, NULL));
    assert_non_null(logits);
    return qkv_tensor_data(logits) + (length - 1) * qkv_tensor_dim(logits, 2);
}

static bool may_come(int32_t id, int32_t known) { return id == END || (id >= SPECIALS && id < known); }

static int32_t largest(const float *logits, int32_t n, int32_t known)
{
    int32_t best = END;
    for (int32_t id = 0; id < n; id++)
        if (may_come(id, known) && (logits[id] > logits[best] || (logits[id] == logits[best] && id < best))) best = id;
    return best;
}

static double log_softmax(const float *logits, int32_t n, int32_t id)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)logits[id]);
    return -log(sum);
}

static void greedy_is_the_largest_of_whole_forwards(void **state)
{
    (void)state;
    static const qkv_position_kind kinds[] = { QKV_POSITION_SINUSOID, QKV_POSITION_ROPE, QKV_POSITION_LEARNED };
    qkv_generated *g = NULL;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    for (int k = 0; k < 4; k++) {
        int spare = k == 3 ? 500 : 0; /* the likeliest ids then have no token */
        qkv_model *m = make_model_of(QKV_TOKEN_BPE, kinds[k % 3], spare);
        int32_t known = qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE)), n = known + spare;
        int skipped = 0;
        generate(m, (qkv_generate_opts){ .max_tokens = 15 }, &g);
        assert_true(g->n > 5);
        for (int64_t i = 0; i < g->n; i++) {
            const float *logits = whole_forward(m, t, g, i);
            assert_int_equal(g->ids[i], largest(logits, n, known));
            skipped += largest(logits, n, n) != g->ids[i];
            assert_true(fabs(g->log_p[i] - log_softmax(logits, n, g->ids[i])) < 1e-12); /* floats differ by 1e-8 at least */
        }
        if (g->finish == QKV_FINISH_END) assert_int_equal(largest(whole_forward(m, t, g, g->n), n, known), END);
        assert_true(!spare || skipped);
        qkv_model_free(m);
    }
    qkv_tape_free(t);
    qkv_free(g);
}

/* Filters and temperature change what comes, not the log-probabilities told. */
static void log_p_is_the_models_own(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_model *m = make_model(QKV_POSITION_ROPE);
    int32_t known = qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE));
    generate(m, (qkv_generate_opts){ .max_tokens = 30, .temperature = 1.5f, .top_k = 40, .repetition_penalty = 1.3f }, &g);
    assert_true(g->n > 5);
    for (int64_t i = 0; i < g->n; i++)
        assert_true(fabs(g->log_p[i] - log_softmax(whole_forward(m, t, g, i), known, g->ids[i])) < 1e-12);
    qkv_model_free(m);
    qkv_tape_free(t);
    qkv_free(g);
}

/* ---- seeds, samples, threads ---- */

static void same_on_any_threads(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_ROPE);
    qkv_generated *one = NULL, *many = NULL;
    for (int sample = 0; sample < 4; sample++) {
        const qkv_generate_opts o = { .max_tokens = 40, .temperature = (float)sample * 0.5f, .top_p = 0.95f, .sample = sample };
        for (int threads = 1; threads <= 4; threads *= 2) {
            qkv_set_num_threads(threads);
            generate(m, o, threads == 1 ? &one : &many);
            if (threads > 1) same(one, many);
        }
    }
    qkv_set_num_threads(0);
    qkv_free(one);
    qkv_free(many);
    qkv_model_free(m);
}

static void seeds_and_samples_differ(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *a = NULL, *b = NULL;
    qkv_generate_opts o = { .max_tokens = 20, .temperature = 1, .seed = 5 };
    generate(m, o, &a);
    generate(m, o, &b);
    same(a, b);
    o.seed = 6;
    generate(m, o, &b);
    assert_string_not_equal(a->text.data, b->text.data);
    o.seed = 5;
    o.sample = 1;
    generate(m, o, &b);
    assert_string_not_equal(a->text.data, b->text.data);
    qkv_free(a);
    qkv_free(b);
    qkv_model_free(m);
}

/* The first id of many samples, drawn from the K likeliest: as often as the model's probabilities say. */
static void samples_come_as_often_as_the_model_says(void **state)
{
    (void)state;
    enum { K = 6, SAMPLES = 10000 };
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *g = NULL;
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_generate_opts o = { .max_tokens = 1, .temperature = 2, .top_k = K, .start = START, .end = END };
    int32_t known = qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE)), likeliest[K];
    int counts[K] = { 0 };
    double sum = 0, chi = 0;
    const float *logits = whole_forward(m, t, &(qkv_generated){ 0 }, 0);
    for (int k = 0; k < K; k++) {
        likeliest[k] = -1;
        for (int32_t id = 0; id < known; id++) {
            bool taken = false;
            for (int j = 0; j < k; j++) taken |= likeliest[j] == id;
            if (!taken && may_come(id, known) && (likeliest[k] < 0 || logits[id] > logits[likeliest[k]])) likeliest[k] = id;
        }
        sum += exp((double)logits[likeliest[k]] / 2);
    }
    for (o.sample = 0; o.sample < SAMPLES; o.sample++) {
        int k = 0;
        assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_OK);
        int32_t id = g->n ? g->ids[0] : END;
        while (k < K && likeliest[k] != id) k++;
        assert_true(k < K);
        counts[k]++;
    }
    for (int k = 0; k < K; k++) {
        double wanted = SAMPLES * exp((double)logits[likeliest[k]] / 2) / sum, d = counts[k] - wanted;
        chi += d * d / wanted;
    }
    assert_true(chi < 20.515); /* 1 of 1000 exceeds it, with 5 degrees of freedom */
    qkv_tape_free(t);
    qkv_free(g);
    qkv_model_free(m);
}

/* ---- pieces and stop strings ---- */

typedef struct pieces {
    char text[2000];
    size_t length;
    int n, refuse_at; /* -1: none */
} pieces;

static qkv_status keep_piece(void *data, const qkv_generated *so_far, qkv_str given)
{
    pieces *p = data;
    const char *piece = given.data;
    const size_t length = given.length;
    assert_true(so_far->text.length == p->length + length && !memcmp(so_far->text.data + p->length, piece, length));
    assert_true(length > 0 && p->length + length < sizeof p->text);
    assert_int_equal(qkv_utf8_valid(piece, length), length);
    if (p->n++ == p->refuse_at) return QKV_FAILURE;
    memcpy(p->text + p->length, piece, length);
    p->length += length;
    return QKV_OK;
}

static void pieces_make_the_text(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *g = NULL;
    qkv_text *repaired = NULL;
    qkv_text *bytes = NULL;
    int n = 0, broken = 0;
    for (int sample = 0; sample < 10; sample++) {
        pieces p = { .refuse_at = -1 };
        const qkv_generate_opts o = {
            .max_tokens = 60, .temperature = 1, .sample = sample, .on_text = keep_piece, .on_text_data = &p
        };
        assert_int_equal(qkv_generate(m, qkv_cstr(prompt), &o, &g), QKV_OK);
        assert_int_equal(p.length, g->text.length);
        assert_memory_equal(p.text, g->text.data, p.length);
        assert_int_equal(qkv_tokenizer_decode(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), g->ids, g->n, 0, &bytes), QKV_OK);
        assert_int_equal(qkv_utf8_repair((qkv_str){ bytes->data, bytes->length }, &repaired), QKV_OK);
        assert_int_equal(g->text.length, repaired->length);
        assert_memory_equal(g->text.data, repaired->data, repaired->length);
        broken += qkv_utf8_valid(bytes->data, bytes->length) < bytes->length;
        n += p.n;
    }
    assert_true(n > 100 && broken); /* there was something to cut and to repair */
    pieces p = { .refuse_at = 2 };
    const qkv_generate_opts o = { .max_tokens = 60, .temperature = 1, .on_text = keep_piece, .on_text_data = &p };
    assert_int_equal(qkv_generate(m, qkv_cstr(prompt), &o, &g), QKV_FAILURE);
    assert_int_equal(p.n, 3);
    assert_int_equal(g->n, 0);
    assert_int_equal(g->text.length, 0);
    qkv_free(bytes);
    qkv_free(repaired);
    qkv_free(g);
    qkv_model_free(m);
}

/* Every piece of three characters of a text is a stop string once; most are parts of several tokens. */
static void stop_strings_span_tokens(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *all = NULL, *g = NULL;
    qkv_generate_opts o = { .max_tokens = 40, .temperature = 1, .seed = 2 };
    int tried = 0;
    generate(m, o, &all);
    const char *text = all->text.data, *end = text + all->text.length;
    for (const char *at = text; at < end;) {
        char stop[16] = "";
        const char *stops[2] = { "this does not come", stop };
        size_t size[3] = { 0 };
        const char *to = at;
        for (int k = 0; k < 3 && to < end; k++) qkv_utf8_next(to, (size_t)(end - to), &size[k]), to += size[k];
        size_t length = (size_t)(to - at);
        memcpy(stop, at, length);
        at += size[0];
        if (strlen(stop) < length) continue; /* a NUL ends a stop string, and may be in a text */
        o.stops = stops;
        o.n_stops = 2;
        generate(m, o, &g);
        assert_int_equal(g->finish, QKV_FINISH_STOP);
        assert_int_equal(g->text.length, (const char *)memmem(text, all->text.length, stop, length) - text);
        assert_memory_equal(g->text.data, text, g->text.length);
        assert_true(g->n >= 1 && g->n <= all->n);
        assert_memory_equal(g->ids, all->ids, sizeof *g->ids * (size_t)g->n);
        tried++;
    }
    assert_true(tried > 20);
    qkv_free(all);
    qkv_free(g);
    qkv_model_free(m);
}

/* ---- where it ends ---- */

static void positions_end(void **state)
{
    (void)state;
    static const char many[] = "zzzzzzzzzzzzzzzzzzzzzzzzzzz"; /* a token each: the corpus has no z */
    qkv_model *m = make_model(QKV_POSITION_LEARNED), *rotary = make_model(QKV_POSITION_ROPE);
    qkv_generated *g = NULL;
    const qkv_generate_opts o = { .max_tokens = 100, .temperature = 1, .start = START, .end = -1 }; /* never ends by itself */
    for (size_t n = 0; n < LONGEST + 3; n++) {
        qkv_status status = qkv_generate(m, (qkv_str){ many, n }, &o, &g);
        if (1 + n < LONGEST) {
            assert_int_equal(status, QKV_OK);
            assert_int_equal(g->n_prompt, n);
            assert_int_equal(1 + n + (size_t)g->n, LONGEST);
            assert_int_equal(g->finish, QKV_FINISH_LENGTH);
        } else {
            assert_int_equal(status, QKV_LIMIT);
            assert_non_null(strstr(qkv_error(), "positions end at 24"));
            assert_int_equal(g->n, 0);
        }
    }
    assert_int_equal(qkv_generate(rotary, qkv_cstr(many), &o, &g), QKV_OK);
    assert_int_equal(g->n, 100);
    assert_int_equal(g->finish, QKV_FINISH_LENGTH);
    qkv_free(g);
    qkv_model_free(m);
    qkv_model_free(rotary);
}

static void starts_and_ends(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *g = NULL, *other = NULL;
    /* an end that comes first is the third id of the text without it */
    qkv_generate_opts o = { .max_tokens = 20, .temperature = 1, .seed = 7, .start = START, .end = -1 };
    generate(m, o, &g);
    o.end = g->ids[2];
    generate(m, o, &other);
    assert_int_equal(other->finish, QKV_FINISH_END);
    assert_true(other->n <= 2);
    assert_memory_equal(other->ids, g->ids, sizeof *g->ids * (size_t)other->n);
    /* without a start another text; and no empty prompt */
    o.start = o.end = -1;
    o.temperature = 0;
    generate(m, o, &other);
    o.start = START;
    generate(m, o, &g);
    assert_true(memcmp(g->log_p, other->log_p, sizeof *g->log_p * 3) != 0);
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_OK);
    assert_int_equal(g->n_prompt, 0);
    o.start = -1;
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "empty prompt"));
    qkv_free(g);
    qkv_free(other);
    qkv_model_free(m);
}

static int repeated_pairs(const qkv_generated *g)
{
    int repeated = 0;
    int32_t ids[2 * ROOM];
    int64_t n = g->n_prompt + g->n;
    assert_true(n <= 2 * ROOM);
    memcpy(ids, g->prompt_ids, sizeof *ids * (size_t)g->n_prompt);
    memcpy(ids + g->n_prompt, g->ids, sizeof *ids * (size_t)g->n);
    for (int64_t i = 0; i + 1 < n; i++)
        for (int64_t j = i + 1; j + 1 < n; j++) repeated += ids[i] == ids[j] && ids[i + 1] == ids[j + 1];
    return repeated;
}

static void no_pair_comes_twice(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_ROPE);
    qkv_generated *g = NULL;
    qkv_generate_opts o = { .max_tokens = 80, .start = START, .end = -1 };
    generate(m, o, &g);
    assert_true(repeated_pairs(g) > 0);
    o.no_repeat_ngram = 2;
    generate(m, o, &g);
    assert_int_equal(g->n, 80);
    assert_int_equal(repeated_pairs(g), 0);
    o.no_repeat_ngram = 1; /* until nothing is left */
    o.max_tokens = 1000;
    generate(m, o, &g);
    assert_int_equal(g->finish, QKV_FINISH_END);
    assert_true(g->n > 200 && g->n < 300);
    for (int64_t i = 0; i < g->n; i++) assert_true(g->ids[i] >= SPECIALS); /* which are no text */
    qkv_free(g);
    qkv_model_free(m);
}

/* ---- other tokenizers ---- */

static void words_and_characters(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    const qkv_generate_opts o = { .max_tokens = 5, .start = START, .end = -1 };
    qkv_model *m = make_model_of(QKV_TOKEN_WORDS, QKV_POSITION_ROPE, 0);
    generate(m, o, &g);
    assert_int_equal(g->text.data[0], ' '); /* a word follows a word */
    int spaces = 0;
    for (size_t i = 0; i < g->text.length; i++) spaces += g->text.data[i] == ' ';
    assert_int_equal(spaces, 5);
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_OK);
    assert_int_not_equal(g->text.data[0], ' ');
    qkv_model_free(m);
    m = make_model_of(QKV_TOKEN_CHARACTERS, QKV_POSITION_ROPE, 0);
    generate(m, o, &g);
    size_t at = 0, bytes, characters = 0;
    for (; at < g->text.length; at += bytes, characters++) qkv_utf8_next(g->text.data + at, g->text.length - at, &bytes);
    assert_int_equal(characters, 5);
    qkv_free(g);
    qkv_model_free(m);
}

/* ---- bad input, and memory that is out ---- */

static void refused(const qkv_model *m, qkv_status wanted, const qkv_generate_opts *o, const char *piece)
{
    qkv_generated *g = NULL;
    assert_int_equal(qkv_generate(m, qkv_cstr("the"), o, &g), wanted);
    if (!strstr(qkv_error(), piece)) fail_msg("\"%s\" is missing in: %s", piece, qkv_error());
    assert_int_equal(g->n, 0);
    assert_int_equal(g->text.length, 0);
    qkv_free(g);
}

static void bad_models_and_options(void **state)
{
    (void)state;
    qkv_config t = { .vocab_size = 400, .encoder_layers = 1, .decoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8 };
    qkv_model *pair = qkv_model_new(&t, 0);
    t.encoder_layers = 0;
    qkv_model *ids = qkv_model_new(&t, 0), *m = make_model(QKV_POSITION_ROPE);
    qkv_generated *g = NULL;
    refused(NULL, QKV_USAGE, NULL, "a model");
    refused(pair, QKV_USAGE, NULL, "without an encoder");
    refused(ids, QKV_USAGE, NULL, "no tokenizer");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .max_tokens = -1 }, "max_tokens is -1");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .max_tokens = INT64_MAX }, "max_tokens");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .temperature = -1 }, "temperature of -1");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .top_p = 2 }, "top_p of 2");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .min_p = 2 }, "min_p of 2");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .start = 100000, .end = 2 }, "start 100000");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .start = 1, .end = -2 }, "end -2");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .n_stops = 1 }, "stop strings are missing");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .n_stops = -1, .stops = (const char *[]){ "a" } }, "stop strings are missing");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .n_stops = 1, .stops = (const char *[]){ NULL } }, "stop string 1 is empty");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .max_tokens = (1 << 20) + 1 }, "max_tokens is 1048577");
    const int32_t size = qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE)), last = size - 1;
    char range[40];
    snprintf(range, sizeof range, "ids are 0..%d", (int)last);
    for (int i = 0; i < 2; i++) { /* the last id is one, the next is none */
        const qkv_generate_opts start = { .start = last + i, .end = END, .max_tokens = 1 };
        const qkv_generate_opts end = { .start = START, .end = last + i, .max_tokens = 1 };
        const qkv_generate_opts ids_of = { .prompt_ids = (int32_t[]){ last + i }, .n_prompt_ids = 1, .max_tokens = 1 };
        const qkv_generate_opts *all[] = { &start, &end, &ids_of };
        for (int k = 0; k < 3; k++)
            if (i) refused(m, QKV_USAGE, all[k], range);
            else assert_int_equal(qkv_generate(m, qkv_cstr("the"), all[k], &g), QKV_OK);
    }
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .prompt_ids = (int32_t[]){ last, -1 }, .n_prompt_ids = 2 },
            "id 1 of the prompt");
    int32_t *many = calloc((1 << 20) + 1, sizeof *many);
    refused(m, QKV_LIMIT, &(qkv_generate_opts){ .prompt_ids = many, .n_prompt_ids = 1 << 20 }, "a text ends at 1048576");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .prompt_ids = many, .n_prompt_ids = (1 << 20) + 1 }, "it has 0 to 1048576");
    free(many);
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .n_stops = 2, .stops = (const char *[]){ "a", "" } }, "stop string 2 is empty");
    refused(m, QKV_USAGE, &(qkv_generate_opts){ .n_stops = 1, .stops = (const char *[]){ "\xFF" } },
            "stop string 1 is not UTF-8");
    assert_int_equal(qkv_generate(m, (qkv_str){ "a\xFFz", 3 }, NULL, &g), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "byte 2"));
    float *weights = qkv_tensor_data_mut(qkv_params_find(qkv_model_params(m), "embed.weight"));
    weights[START * 16] = NAN;
    refused(m, QKV_NUMERIC, NULL, "not finite");
    qkv_free(g);
    qkv_model_free(pair);
    qkv_model_free(ids);
    qkv_model_free(m);
}

/* ---- what is told beside the text ---- */

static double log_p_of(const float *logits, int64_t n, int32_t id)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp((double)logits[i]);
    return (double)logits[id] - log(sum);
}

static void check_top(const qkv_likely *top, int n_top, const float *logits, int64_t n)
{
    for (int k = 0; k < n_top; k++) {
        int larger = 0;
        assert_true(fabs(top[k].log_p - log_p_of(logits, n, top[k].id)) < 1e-5);
        for (int64_t i = 0; i < n; i++) larger += logits[i] > logits[top[k].id] + 1e-6f;
        assert_true(larger <= k);
        for (int other = 0; other < k; other++) assert_true(top[other].id != top[k].id);
    }
}

static void the_likeliest_are_told(void **state)
{
    enum { TOP = 5 };
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_generated *g = NULL, *plain = NULL;
    (void)state;
    assert_true(m && t);
    int64_t n = qkv__model_config(m)->vocab_size;
    const qkv_generate_opts o = { .max_tokens = 12, .temperature = 0.8f, .seed = 4 };
    qkv_generate_opts told = o;
    told.n_top = TOP, told.score_prompt = 1;
    generate(m, o, &plain);
    generate(m, told, &g);
    same(g, plain);
    for (int64_t i = 0; i < g->n; i++) check_top(g->top + i * TOP, TOP, whole_forward(m, t, g, i), n);
    int64_t n_prompt = g->n_prompt;
    for (int64_t i = 0; i < n_prompt; i++) {
        g->n_prompt = i; /* a forward over the first of them */
        const float *logits = whole_forward(m, t, g, 0);
        assert_true(fabs(g->prompt_log_p[i] - log_p_of(logits, n, g->prompt_ids[i])) < 1e-5);
        check_top(g->prompt_top + i * TOP, TOP, logits, n);
    }
    told.no_new_tokens = 1;
    generate(m, told, &g);
    assert_int_equal(g->n, 0);
    assert_int_equal(g->n_prompt, n_prompt);
    assert_int_equal(g->text.length, 0);
    assert_int_equal(g->finish, QKV_FINISH_LENGTH);
    told.start = -1, told.end = END; /* nothing is before the first id */
    generate(m, told, &g);
    assert_true(isnan(g->prompt_log_p[0]) && g->prompt_top[0].id == -1 && !isnan(g->prompt_log_p[1]));
    qkv_free(g);
    qkv_free(plain);
    qkv_tape_free(t);
    qkv_model_free(m);
}

static void a_prompt_may_be_ids(void **state)
{
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *g = NULL, *plain = NULL;
    int32_t ids[ROOM] = { START };
    (void)state;
    qkv_generate_opts o = { .max_tokens = 12, .temperature = 0.8f, .seed = 4 };
    generate(m, o, &plain);
    memcpy(ids + 1, plain->prompt_ids, sizeof *ids * (size_t)plain->n_prompt);
    for (int with_start = 0; with_start < 2; with_start++) {
        o.prompt_ids = ids + !with_start;
        o.n_prompt_ids = plain->n_prompt + with_start;
        assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_OK);
        same(g, plain);
        assert_int_equal(g->n_prompt, plain->n_prompt + with_start);
    }
    static const int32_t wrong[] = { -1, 1 << 20 };
    for (int i = 0; i < 2; i++) {
        o.prompt_ids = wrong + i, o.n_prompt_ids = 1;
        assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_USAGE);
    }
    o = (qkv_generate_opts){ .n_top = 33 };
    assert_int_equal(qkv_generate(m, qkv_cstr("a"), &o, &g), QKV_USAGE);
    o.n_top = -1;
    assert_int_equal(qkv_generate(m, qkv_cstr("a"), &o, &g), QKV_USAGE);
    o = (qkv_generate_opts){ .n_top = 32, .max_tokens = 1 };
    assert_int_equal(qkv_generate(m, qkv_cstr("a"), &o, &g), QKV_OK);
    o = (qkv_generate_opts){ .prompt_ids = ids, .max_tokens = 1 }; /* none: an empty prompt */
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_OK);
    assert_int_equal(g->n_prompt, 0);
    o.n_prompt_ids = -1;
    assert_int_equal(qkv_generate(m, qkv_cstr(""), &o, &g), QKV_USAGE);
    qkv_free(g);
    qkv_free(plain);
    qkv_model_free(m);
}

static int stop_at_third(void *data) { return ++*(int *)data == 3; }

static void a_step_may_be_the_last(void **state)
{
    qkv_model *m = make_model(QKV_POSITION_SINUSOID);
    qkv_generated *g = NULL;
    int steps = 0;
    (void)state;
    const qkv_generate_opts o = { .max_tokens = 12, .hooks = &(qkv_hooks){ .data = &steps, .cancel = stop_at_third } };
    assert_int_equal(qkv_generate(m, qkv_cstr(prompt), &o, &g), QKV_OK);
    assert_int_equal(steps, 3);
    assert_int_equal(g->finish, QKV_FINISH_CANCELLED);
    assert_int_equal(g->n, 1); /* what there was: the start, the prompt and the first token were read in a step each */
    qkv_free(g);
    qkv_model_free(m);
}

static qkv_status generate_once(void)
{
    qkv_model *m = make_model(QKV_POSITION_LEARNED);
    qkv_generated *g = NULL;
    const qkv_generate_opts o = {
        .max_tokens = 3, .temperature = 1, .n_stops = 1, .stops = (const char *[]){ "zz" }, .n_top = 2, .score_prompt = 1
    };
    qkv_status status = m ? qkv_generate(m, qkv_cstr("the cat"), &o, &g) : qkv_error_status();
    if (status && g) assert_int_equal(g->n, 0);
    qkv_free(g);
    qkv_model_free(m);
    return status;
}

static void memory_that_is_out(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(generate_once) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_is_the_largest_of_whole_forwards),
        cmocka_unit_test(log_p_is_the_models_own),
        cmocka_unit_test(same_on_any_threads),
        cmocka_unit_test(seeds_and_samples_differ),
        cmocka_unit_test(samples_come_as_often_as_the_model_says),
        cmocka_unit_test(pieces_make_the_text),
        cmocka_unit_test(stop_strings_span_tokens),
        cmocka_unit_test(positions_end),
        cmocka_unit_test(starts_and_ends),
        cmocka_unit_test(no_pair_comes_twice),
        cmocka_unit_test(words_and_characters),
        cmocka_unit_test(the_likeliest_are_told),
        cmocka_unit_test(a_prompt_may_be_ids),
        cmocka_unit_test(a_step_may_be_the_last),
        cmocka_unit_test(bad_models_and_options),
        cmocka_unit_test(memory_that_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
