/* test_translate.c: a text's translation depends on nothing but the text; its attention is that of a whole forward. */
#include <qkv/task.h>
#include <qkv/unstable/util.h>

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "as_strings.h"
#include "nn/params.h"
#include "model/model.h"

static const char *const corpus[] = {
    "the cat sat on the mat", "I love you", "you love the cat",    "我爱你",
    "猫坐在垫子上",           "你爱猫",     "the dog and the cat", "the mat and the dog",
};

enum { TEXTS = 45, BEAM = 3 };
static char storage[TEXTS][200];
static const char *texts[TEXTS];

static qkv_tokenizer *learn(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_tokenizer *t = NULL;
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus && !status; i++) status = qkv_word_counts_add(w, qkv_cstr(corpus[i]));
    if (!status) t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 290 });
    qkv_word_counts_free(w);
    return t;
}

/* Random weights, larger than usual, so that the model has opinions; spare: ids that the tokenizer does not know. */
static qkv_model *make_model(qkv_position_kind positions, int spare)
{
    qkv_tokenizer *t = learn();
    if (!t) return NULL;
    const qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t) + spare,
                           .encoder_layers = 1,
                           .decoder_layers = 2,
                           .dim = 16,
                           .heads = 2,
                           .d_ff = 32,
                           .positions = positions,
                           .max_positions = 12 };
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
    return m;
}

/* Words of the corpus, in texts of many lengths, in no order. */
static int draw_texts(void **state)
{
    (void)state;
    uint32_t seed = 5;
    for (int i = 0; i < TEXTS; i++) {
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t n = 1 + (seed >> 16) % 5; n; n--) {
            seed = seed * 1664525u + 1013904223u;
            if (*storage[i]) strcat(storage[i], " ");
            strcat(storage[i], corpus[(seed >> 16) % 8]);
        }
        texts[i] = storage[i];
    }
    texts[4] = "";
    texts[9] = " \t\xE3\x80\x80"; /* U+3000 is white space too */
    texts[13] = "I \xFF love";
    return 0;
}

static void same(const qkv_translations *a, int64_t i, const qkv_translations *b, int64_t j)
{
    assert_int_equal(a->status[i], b->status[j]);
    assert_int_equal(a->n_best, b->n_best);
    assert_int_equal(a->n_source[i], b->n_source[j]);
    for (int k = 0; k < a->n_best; k++) {
        const qkv_translation *x = &a->best[i * a->n_best + k], *y = &b->best[j * b->n_best + k];
        assert_int_equal(x->n_ids, y->n_ids);
        assert_string_equal(x->text.data, y->text.data);
        assert_int_equal(x->text.length, y->text.length);
        assert_true(x->score == y->score && x->log_p == y->log_p && x->truncated == y->truncated);
        if (x->n_ids > 0) assert_memory_equal(x->ids, y->ids, sizeof(int32_t) * (size_t)x->n_ids);
        assert_int_equal(!x->attention, !y->attention);
        if (x->attention)
            assert_memory_equal(x->attention, y->attention,
                                sizeof(float) * (size_t)(a->layers * a->heads * (x->n_ids + 1) * a->n_source[i]));
    }
}

static void same_in_any_batch_and_on_any_threads(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_translations *all = NULL, *part = NULL;
    const qkv_translate_opts opts = { .beam_size = BEAM, .n_best = 2, .max_length = 12, .attention = 1 };
    static const int sizes[] = { 1, 7, 32 };
    qkv_set_num_threads(1);
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, TEXTS), TEXTS, &opts, &all), QKV_OK);
    assert_int_equal(all->n, TEXTS);
    int different = 0;
    for (int i = 1; i < TEXTS; i++) different += strcmp(all->best[2 * i].text.data, all->best[2 * i - 2].text.data) != 0;
    assert_true(different > TEXTS / 2); /* else this shows nothing */
    for (int threads = 1; threads <= 4; threads *= 2)
        for (int k = 0; k < 3; k++) {
            qkv_set_num_threads(threads);
            for (int first = 0; first < TEXTS; first += sizes[k]) {
                int n = first + sizes[k] < TEXTS ? sizes[k] : TEXTS - first;
                assert_int_equal(qkv_translate(m, as_strings(texts + first, NULL, n), n, &opts, &part), QKV_OK);
                for (int i = 0; i < n; i++) same(all, first + i, part, i);
            }
        }
    qkv_set_num_threads(0);
    qkv_free(all);
    qkv_free(part);
    qkv_model_free(m);
}

/* ---- more texts than a batch has: each thread takes its own ---- */

typedef struct steps {
    pthread_t caller;
    int n, last; /* calls, and the one that ends the work; 0: none */
} steps;

static int step(void *data)
{
    steps *s = data;
    assert_true(pthread_equal(s->caller, pthread_self()));
    return ++s->n == s->last;
}

static void batches_on_threads_of_their_own(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_translations *one = NULL, *all = NULL;
    steps s = { .caller = pthread_self() };
    const qkv_translate_opts opts = {
        .beam_size = BEAM, .n_best = 2, .max_length = 12, .hooks = &(qkv_hooks){ .data = &s, .cancel = step }
    };
    for (int threads = 1; threads <= 4; threads++) {
        qkv_set_num_threads(threads);
        s = (steps){ .caller = s.caller };
        assert_int_equal(qkv_translate(m, as_strings(texts, NULL, TEXTS), TEXTS, &opts, threads == 1 ? &one : &all), QKV_OK);
        assert_true(s.n > 0);
        for (int i = 0; i < TEXTS && threads > 1; i++) same(one, i, all, i);
        s = (steps){ .caller = s.caller, .last = 2 };
        qkv_status status = qkv_translate(m, as_strings(texts, NULL, TEXTS), TEXTS, &opts, &all);
        if (s.n < 2 && threads > 1) continue; /* the others have taken all of it before the caller came to a second step */
        assert_int_equal(status, QKV_CANCELLED);
        assert_int_equal(s.n, 2); /* it is not asked again */
        assert_int_equal(all->n, 0);
        assert_string_equal(qkv_error(), "translate: cancelled");
    }
    qkv_set_num_threads(0);
    qkv_free(one);
    qkv_free(all);
    qkv_model_free(m);
}

/* Text i is translated by hand: encode, search, decode. */
static void in_the_order_given(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    qkv_translations *all = NULL;
    qkv_search_result *f = NULL;
    qkv_encoding *ids = NULL;
    qkv_text *text = NULL, *repaired = NULL;
    const qkv_search_opts opts = { .start = 1, .end = 2, .pad = 0, .beam_size = 4 };
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 12), 12, NULL, &all), QKV_OK);
    for (int i = 0; i < 12; i++) {
        if (i == 4 || i == 9) continue;
        int32_t row[200];
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(texts[i]), NULL, &ids), QKV_OK);
        memcpy(row, ids->ids, sizeof *row * (size_t)ids->n);
        row[ids->n] = 2;
        assert_int_equal(all->n_source[i], ids->n + 1);
        assert_memory_equal(all->source_ids[i], row, sizeof *row * (size_t)(ids->n + 1));
        assert_int_equal(qkv_beam_search(m, &(qkv_tokens){ .ids = row, .rows = 1, .length = ids->n + 1 }, &opts, &f), QKV_OK);
        assert_int_equal(qkv_tokenizer_decode(t, f->best[0].ids, f->best[0].n, QKV_DECODE_SKIP_SPECIAL, &text), QKV_OK);
        assert_int_equal(qkv_utf8_repair((qkv_str){ text->data, text->length }, &repaired), QKV_OK);
        assert_string_equal(all->best[i].text.data, repaired->data);
        assert_true(all->best[i].score == f->best[0].score);
        assert_null(all->best[i].attention);
    }
    qkv_free(text);
    qkv_free(repaired);
    qkv_free(ids);
    qkv_free(f);
    qkv_free(all);
    qkv_model_free(m);
}

static void empty_long_and_broken_texts(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_translations *t = NULL;
    char longest[3000];
    memset(longest, 'x', sizeof longest);
    const char *odd[6] = { "", "I love you", longest, "I \xFF love", "I \xEF\xBF\xBD love", "a\0b" };
    const size_t lengths[6] = { 0, 10, sizeof longest, 8, 10, 3 };
    assert_int_equal(qkv_translate(m, as_strings(odd, lengths, 6), 6, &(qkv_translate_opts){ .attention = 1 }, &t), QKV_OK);
    assert_string_equal(t->best[0].text.data, "");
    assert_int_equal(t->best[0].n_ids, 0);
    assert_int_equal(t->n_source[0], 0);
    assert_true(t->best[0].score == 0 && !t->best[0].attention);
    assert_int_equal(t->status[2], QKV_LIMIT);
    assert_int_equal(t->n_source[2], 3001);
    assert_int_equal(t->best[2].n_ids, -1);
    assert_int_equal(t->status[1], QKV_OK);
    assert_true(t->best[1].n_ids >= 0);
    same(t, 3, t, 4);                        /* what is no UTF-8 is read as U+FFFD */
    assert_int_equal(t->n_source[5], 3 + 1); /* a NUL is a byte like any other */
    for (int i = 0; i < 6; i++)
        assert_int_equal(qkv_utf8_valid(t->best[i].text.data, t->best[i].text.length), t->best[i].text.length);
    /* A limit is the number of tokens that just pass. */
    int64_t tokens = t->n_source[1] - 1;
    assert_int_equal(qkv_translate(m, as_strings(odd + 1, NULL, 1), 1, &(qkv_translate_opts){ .max_source = tokens }, &t),
                     QKV_OK);
    assert_int_equal(t->status[0], QKV_OK);
    assert_int_equal(qkv_translate(m, as_strings(odd + 1, NULL, 1), 1, &(qkv_translate_opts){ .max_source = tokens - 1 }, &t),
                     QKV_OK);
    assert_int_equal(t->status[0], QKV_LIMIT);
    assert_int_equal(qkv_translate(m, NULL, 0, NULL, &t), QKV_OK);
    assert_int_equal(t->n, 0);
    qkv_free(t);
    qkv_model_free(m);
}

static void every_translation_starts_with_the_prefix(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_translations *t = NULL;
    static const char *const prefixes[] = { "我", "the dog", "zz" };
    for (int i = 0; i < 3; i++) {
        const qkv_translate_opts opts = { .target_prefix = prefixes[i], .n_best = 3 };
        assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 4), 4, &opts, &t), QKV_OK);
        for (int k = 0; k < 12; k++)
            if (t->best[k].n_ids >= 0) assert_int_equal(strncmp(t->best[k].text.data, prefixes[i], strlen(prefixes[i])), 0);
    }
    qkv_free(t);
    qkv_model_free(m);
}

static void n_best_are_sorted(void **state)
{
    (void)state;
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_translations *t = NULL;
    assert_int_equal(
        qkv_translate(m, as_strings(texts, NULL, 10), 10, &(qkv_translate_opts){ .beam_size = 5, .n_best = 5 }, &t), QKV_OK);
    int pairs = 0;
    for (int i = 0; i < 10; i++)
        for (int k = 1; k < 5 && t->best[i * 5 + k].n_ids >= 0; k++, pairs++)
            assert_true(t->best[i * 5 + k - 1].score >= t->best[i * 5 + k].score);
    assert_true(pairs > 20);
    qkv_free(t);
    qkv_model_free(m);
}

/* Against a forward of the whole batch, padded; each row of weights sums to 1. */
static void attention_is_that_of_a_whole_forward(void **state)
{
    (void)state;
    enum { ROWS = 4, ROOM = 80 };
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_translations *t = NULL;
    assert_int_equal(
        qkv_translate(m, as_strings(texts, NULL, ROWS), ROWS, &(qkv_translate_opts){ .max_length = 9, .attention = 1 }, &t),
        QKV_OK);
    assert_int_equal(t->layers, 2);
    assert_int_equal(t->heads, 2);
    int32_t source[ROWS * ROOM] = { 0 }, target[ROWS * 10] = { 0 }, lengths[ROWS];
    for (int i = 0; i < ROWS; i++) {
        assert_true(t->n_source[i] <= ROOM);
        lengths[i] = (int32_t)t->n_source[i];
        memcpy(source + i * ROOM, t->source_ids[i], sizeof *source * (size_t)t->n_source[i]);
        target[i * 10] = 1;
        memcpy(target + i * 10 + 1, t->best[i].ids, sizeof *target * (size_t)t->best[i].n_ids);
    }
    qkv_tape *tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 });
    qkv_tensor *memory = qkv__transformer_encode(
        x, tape, &(qkv_tokens){ .ids = source, .rows = ROWS, .length = ROOM, .lengths = lengths });
    assert_non_null(
        qkv__transformer_decode(x, tape, &(qkv_tokens){ .ids = target, .rows = ROWS, .length = 10 }, memory, lengths));
    for (int i = 0; i < ROWS; i++)
        for (int l = 0; l < 2; l++)
            for (int h = 0; h < 2; h++)
                for (int64_t row = 0; row <= t->best[i].n_ids; row++) {
                    int64_t n = t->n_source[i];
                    const float *got = t->best[i].attention + (((l * 2 + h) * (t->best[i].n_ids + 1)) + row) * n;
                    const float *whole = qkv_tensor_data(qkv_tape_attention(tape, 1 + 2 * l + 1)) +
                                         ((i * 2 + h) * 10 + row) * ROOM;
                    double sum = 0;
                    for (int64_t j = 0; j < n; j++) sum += (double)got[j];
                    assert_true(fabs(sum - 1) < 1e-5);
                    assert_memory_equal(got, whole, sizeof *got * (size_t)n);
                }
    qkv_tape_free(tape);
    qkv_free(t);
    qkv_model_free(m);
}

/* The mean over layers and heads, and where it is largest: what stands around the source does not count. */
static void alignment_by_hand(void **state)
{
    (void)state;
    enum { ROWS = 4 };
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_translations *t = NULL;
    const qkv_translate_opts opts = { .max_length = 9, .attention = 1 };
    int moved = 0;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, ROWS), ROWS, &opts, &t), QKV_OK);
    for (int i = 0; i < ROWS; i++) {
        const qkv_translation *x = &t->best[i];
        const int64_t rows = x->n_ids + 1, columns = t->n_source[i];
        for (int64_t row = 0; row < rows; row++) {
            int64_t best = 0;
            for (int64_t k = 0; k < columns; k++) {
                double sum = 0;
                for (int map = 0; map < t->layers * t->heads; map++)
                    sum += (double)x->attention[(map * rows + row) * columns + k];
                const float *mean = x->mean_attention + row * columns;
                assert_true(fabs((double)mean[k] - sum / (t->layers * t->heads)) < 1e-7);
                if (k < columns - t->source_around && mean[k] > mean[best]) best = k;
            }
            if (row < x->n_ids) assert_int_equal(x->alignment[row], best);
            moved += best > 0;
        }
    }
    assert_true(moved > 0);
    qkv_free(t);
    qkv_model_free(m);
}

/* Positions that end, and ids without a token, are no trap. */
static void odd_models(void **state)
{
    (void)state;
    qkv_translations *t = NULL;
    const char *both[2] = { "I love you", "xxxxxxxxxxxxxxxxxxxxxxxxx" };
    qkv_model *m = make_model(QKV_POSITION_LEARNED, 0);
    assert_int_equal(qkv_translate(m, as_strings(both, NULL, 2), 2, &(qkv_translate_opts){ .attention = 1 }, &t), QKV_OK);
    assert_int_equal(t->status[0], QKV_OK);
    assert_int_equal(t->status[1], QKV_LIMIT);
    assert_true(t->max_source == 11 && t->source_around == 1 && t->source_bound == QKV_SOURCE_BOUND_POSITIONS);
    for (int64_t most = 10; most <= 12; most++) { /* what allows less counts */
        assert_int_equal(qkv_translate(m, as_strings(both, NULL, 2), 2, &(qkv_translate_opts){ .max_source = most }, &t),
                         QKV_OK);
        assert_int_equal(t->max_source, most < 11 ? most : 11);
        assert_int_equal(t->source_bound, most <= 11 ? QKV_SOURCE_BOUND_OPTION : QKV_SOURCE_BOUND_POSITIONS);
    }
    assert_int_equal(qkv_translate(m, as_strings(both, NULL, 2), 2, &(qkv_translate_opts){ .max_length = 12 }, &t), QKV_USAGE);
    assert_int_equal(t->n, 0);
    qkv_model_free(m);
    m = make_model(QKV_POSITION_SINUSOID, 3000);
    int unknown = 0;
    assert_int_equal(
        qkv_translate(m, as_strings(texts, NULL, 10), 10, &(qkv_translate_opts){ .beam_size = 1, .max_length = 9 }, &t),
        QKV_OK);
    for (int i = 0; i < 10; i++)
        for (int64_t k = 0; k < t->best[i].n_ids; k++)
            unknown += t->best[i].ids[k] >= qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE));
    assert_true(unknown > 0);
    qkv_free(t);
    qkv_model_free(m);
}

/* ---- bad input ---- */

static void refused(const qkv_model *m, const qkv_translate_opts *opts, const char *piece)
{
    qkv_translations *t = NULL;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 1), 1, opts, &t), QKV_USAGE);
    if (!strstr(qkv_error(), piece)) fail_msg("\"%s\" is missing in: %s", piece, qkv_error());
    assert_int_equal(t->n, 0);
    assert_null(t->best);
    qkv_free(t);
}

static qkv_tokenizer *specially(const qkv_word_counts *w, const char *const *specials, int n)
{
    return qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .specials = specials, .n_specials = n });
}

static void bad_models_and_options(void **state)
{
    (void)state;
    const qkv_config o = { .vocab_size = 400, .encoder_layers = 1, .decoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8 };
    qkv_config alone = o;
    alone.encoder_layers = 0;
    qkv_model *m = qkv_model_new(&o, 0), *decoder = qkv_model_new(&alone, 0);
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    static const char *const specials[] = { "<pad>", "</s>" }, *const unpadded[] = { "<s>", "</s>" };
    static const char *const one[] = { "<pad>", "<s>", "</s>" }, *const other[] = { "<pad>", "</s>", "<s>" };
    refused(NULL, NULL, "a model");
    refused(decoder, NULL, "an encoder and a decoder");
    refused(m, NULL, "no tokenizer");
    assert_int_equal(qkv_model_set_tokenizers(m, specially(w, specials, 2), NULL), QKV_OK);
    refused(m, NULL, "no token <s>");
    assert_int_equal(qkv_model_set_tokenizers(m, specially(w, unpadded, 2), NULL), QKV_OK);
    refused(m, NULL, "no token <pad>");
    qkv_model_free(m);
    qkv_config two = o;
    two.target_vocab_size = o.vocab_size;
    m = qkv_model_new(&two, 0);
    assert_int_equal(qkv_model_set_tokenizers(m, specially(w, other, 3), specially(w, one, 3)), QKV_OK);
    refused(m, NULL, "</s> must have the same id");
    assert_int_equal(qkv_model_special_tokens(m, &(qkv_special_tokens){ 0 }), QKV_USAGE);
    qkv_word_counts_free(w);
    qkv_model_free(m);
    qkv_model_free(decoder);
    m = make_model(QKV_POSITION_SINUSOID, 0);
    refused(m, &(qkv_translate_opts){ .beam_size = 2, .n_best = 3 }, "3 results");
    refused(m, &(qkv_translate_opts){ .beam_size = -1 }, "beam -1");
    refused(m, &(qkv_translate_opts){ .max_source = -1 }, "max_source");
    refused(m, &(qkv_translate_opts){ .max_length = -1 }, "max_length");
    refused(m, &(qkv_translate_opts){ .target_prefix = "\xFF" }, "the prefix is not UTF-8");
    refused(m, &(qkv_translate_opts){ .target_prefix = "xyz", .max_length = 2 }, "a prefix of 3 tokens");
    qkv_translations *t = NULL;
    assert_int_equal(qkv_translate(m, &(qkv_str){ NULL, 1 }, 1, NULL, &t), QKV_USAGE);
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 1), -1, NULL, &t), QKV_USAGE);
    for (int64_t i = 0; i < qkv__params_block(qkv_model_params(m)); i++) qkv__params_data(qkv_model_params(m))[i] = NAN;
    assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 3), 3, NULL, &t), QKV_NUMERIC);
    assert_int_equal(t->n, 0);
    qkv_free(t);
    qkv_model_free(m);
}

static qkv_status translate_once(void)
{
    const char *some[3] = { "I \xFF love", "", "the cat" };
    qkv_translations *t = NULL;
    const qkv_translate_opts opts = { .beam_size = 2, .n_best = 2, .max_length = 4, .attention = 1, .target_prefix = "我" };
    qkv_model *m = make_model(QKV_POSITION_SINUSOID, 0);
    qkv_status status = m ? qkv_translate(m, as_strings(some, NULL, 3), 3, &opts, &t) : qkv_error_status();
    qkv_free(t);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(translate_once) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_in_any_batch_and_on_any_threads),
        cmocka_unit_test(batches_on_threads_of_their_own),
        cmocka_unit_test(in_the_order_given),
        cmocka_unit_test(empty_long_and_broken_texts),
        cmocka_unit_test(every_translation_starts_with_the_prefix),
        cmocka_unit_test(n_best_are_sorted),
        cmocka_unit_test(attention_is_that_of_a_whole_forward),
        cmocka_unit_test(alignment_by_hand),
        cmocka_unit_test(odd_models),
        cmocka_unit_test(bad_models_and_options),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, draw_texts, NULL);
}
