/* test_language.c: documents in windows, masked words, surprise; and trainings of every loss: the same bytes at any thread
 * count and after any stop. */
#include <qkv/qkv.h>
#include "nn/params.h"
#include "report/results.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"
#include "model/model.h"

enum { PAD, START, END, UNKNOWN, MASK, FIRST, WORDS = 20, VOCABULARY = FIRST + WORDS };
static const qkv_special_tokens special = { .start = START, .end = END, .pad = PAD, .mask = MASK, .first_ordinary = FIRST };

static uint32_t state_of_chance = 1;

static int chance(int n)
{
    state_of_chance = state_of_chance * 1664525u + 1013904223u;
    return (int)(state_of_chance >> 16) % n;
}

static qkv_tokenizer *word_tokenizer(void)
{
    static const char text[] = "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19";
    static const char *const specials[] = { "<pad>", "<s>", "</s>", "<unk>", "<mask>" };
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_tokenizer *t = NULL;
    if (w && !qkv_word_counts_add(w, qkv_cstr(text)))
        t = qkv_tokenizer_train(
            w, &(qkv_tokenizer_opts){ .vocab_size = 100, .min_count = 1, .specials = specials, .n_specials = 5 });
    qkv_word_counts_free(w);
    return t;
}

static const qkv_config decoder = { .vocab_size = VOCABULARY,
                                    .decoder_layers = 2,
                                    .dim = 16,
                                    .heads = 2,
                                    .d_ff = 32,
                                    .pre_norm = 1,
                                    .positions = QKV_POSITION_ROPE };

static qkv_model *word_model(const qkv_config *o)
{
    qkv_tokenizer *t = word_tokenizer();
    qkv_model *m = t ? qkv_model_new(o, 8) : NULL;
    if (!m || qkv_model_set_tokenizers(m, t, NULL)) {
        qkv_tokenizer_free(t);
        qkv_model_free(m);
        return NULL;
    }
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 2; /* opinions */
    return m;
}

/* A text of n words, and its ids between <s> and </s>. */
static void draw_text(const qkv_tokenizer *t, int n, char *text, int32_t *ids)
{
    *text = '\0';
    ids[0] = START;
    for (int i = 0; i < n; i++) {
        char word[8];
        sprintf(word, "w%d", chance(WORDS));
        sprintf(text + strlen(text), "%s%s", i ? " " : "", word);
        ids[i + 1] = qkv_tokenizer_id(t, word);
    }
    ids[n + 1] = END;
}

/* ---- windows ---- */

static const qkv_batch_opts bare = {
    .max_tokens = 40, .sequential = 1, .target_has_both = 1, .start = START, .end = END, .pad = PAD
};

static void each_token_once(void **state)
{
    (void)state;
    enum { DOCUMENTS = 12 };
    qkv_model *m = word_model(&decoder);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    for (int64_t context = 1; context <= 12; context += context < 4 ? 1 : 4) {
        qkv_dataset *p = qkv_dataset_new();
        int32_t ids[DOCUMENTS][64];
        int lengths[DOCUMENTS];
        for (int i = 0; i < DOCUMENTS; i++) {
            char text[400];
            lengths[i] = i * 3; /* the first is empty: only its end is to be told */
            draw_text(t, lengths[i], text, ids[i]);
            assert_int_equal(
                qkv_dataset_add(
                    p, m,
                    &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { text, strlen(text) }, .max_length = context }),
                QKV_OK);
        }
        qkv_loader *e = qkv_loader_new(p, &bare, 0);
        qkv_batch *b = NULL;
        int document = 0, at = 0; /* at: tokens of the document that were predicted */
        for (int64_t i = 0; i < qkv_loader_size(e); i++) {
            int64_t counted = 0;
            assert_int_equal(qkv_loader_batch(e, i, &b), QKV_OK);
            for (int64_t r = 0; r < b->rows; r++) {
                const int32_t *in = b->target + r * b->target_length, *out = b->labels + r * b->target_length;
                assert_true(b->target_lengths[r] >= 1 && b->target_lengths[r] <= context);
                for (int64_t k = 0; k < b->target_length; k++) {
                    if (k >= b->target_lengths[r]) {
                        assert_int_equal(in[k], PAD);
                        assert_int_equal(out[k], QKV_IGNORED);
                        continue;
                    }
                    assert_int_equal(in[k], ids[document][at]); /* the one before, of the same document */
                    assert_int_equal(out[k], ids[document][++at]);
                    counted++;
                }
                bool is_over = at == lengths[document] + 1;
                assert_true(is_over || b->target_lengths[r] == context); /* no window is shorter than it must be */
                if (is_over) document++, at = 0;
            }
            assert_int_equal(b->tokens, counted);
        }
        assert_int_equal(document, DOCUMENTS);
        qkv_free(b);
        qkv_loader_free(e);
        qkv_dataset_free(p);
    }
    qkv_model_free(m);
}

/* Bare targets that are too short to tell anything. */
static void short_targets(void **state)
{
    (void)state;
    const int32_t ids[] = { 7, 8, 9 };
    qkv_dataset *p = qkv_dataset_new();
    for (size_t n = 0; n <= 3; n++) assert_int_equal(qkv_dataset_add_ids(p, NULL, 0, ids, n), QKV_OK);
    qkv_loader *e = qkv_loader_new(p, &bare, 0);
    qkv_batch *b = NULL;
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
    const int32_t in[] = { PAD, PAD, 7, PAD, 7, PAD, 7, 8 }, none = QKV_IGNORED;
    const int32_t out[] = { none, none, none, none, 8, none, 8, 9 };
    assert_int_equal(b->rows, 4);
    assert_int_equal(b->target_length, 2);
    assert_int_equal(b->tokens, 3);
    assert_memory_equal(b->target, in, sizeof in);
    assert_memory_equal(b->labels, out, sizeof out);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
}

/* ---- surprise ---- */

/* -log p of ids[place], given those from `begin` on. */
static double nll_of(const qkv_model *m, const int32_t *ids, int begin, int place)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *hidden = qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids + begin, .rows = 1, .length = place - begin },
                                                 NULL, NULL);
    const float *logits = qkv_tensor_data(qkv__transformer_logits(x, hidden));
    assert_non_null(logits);
    logits += (place - begin - 1) * VOCABULARY;
    double sum = 0;
    for (int k = 0; k < VOCABULARY; k++) sum += exp((double)logits[k]);
    double nats = log(sum) - (double)logits[ids[place]];
    qkv_tape_free(t);
    return nats;
}

static void strides(void **state)
{
    (void)state;
    enum { N = 23, CONTEXT = 6 };
    qkv_model *m = word_model(&decoder);
    char text[400];
    int32_t ids[N + 2];
    draw_text(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), N, text, ids);
    for (int stride = 1; stride <= CONTEXT; stride++) {
        qkv_nll got = { 0 };
        double wanted = 0;
        int begin = 0;
        for (int place = 1; place < N + 2; place++) { /* the first window that has it */
            while (place > begin + CONTEXT) begin += stride;
            wanted += nll_of(m, ids, begin, place);
        }
        assert_int_equal(
            qkv_log_likelihood(m, qkv_cstr(text), &(qkv_likelihood_opts){ .context = CONTEXT, .stride = stride }, &got),
            QKV_OK);
        assert_int_equal(got.tokens, N + 1);
        assert_true(fabs(got.nats - wanted) < 1e-5 * wanted);
    }
    qkv_model_free(m);
}

static void training_reports_the_same(void **state)
{
    (void)state;
    qkv_model *m = word_model(&decoder);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    const qkv_loss o = qkv_loss_language_model();
    for (int64_t context = 1; context <= 64; context *= 4) {
        qkv_dataset *p = qkv_dataset_new();
        qkv_nll sum = { 0 };
        state_of_chance = 3;
        for (int i = 0; i < 15; i++) {
            char text[400];
            int32_t ids[64];
            draw_text(t, i * 2, text, ids);
            assert_int_equal(
                qkv_dataset_add(
                    p, m,
                    &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { text, strlen(text) }, .max_length = context }),
                QKV_OK);
            assert_int_equal(qkv_log_likelihood(m, qkv_cstr(text), &(qkv_likelihood_opts){ .context = context }, &sum), QKV_OK);
        }
        qkv_batch_opts opts = bare;
        for (opts.sequential = 0; opts.sequential < 2; opts.sequential++) {
            double loss, wanted = sum.nats / (double)sum.tokens;
            assert_int_equal(qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &opts }, &loss), QKV_OK);
            assert_true(fabs(loss - wanted) < 1e-6 * wanted);
        }
        qkv_dataset_free(p);
    }
    qkv_model_free(m);
}

static void measuring_refuses(void **state)
{
    (void)state;
    qkv_config other = decoder;
    other.encoder_layers = 1;
    qkv_model *m = word_model(&decoder), *translator = word_model(&other), *ids = qkv_model_new(&decoder, 1);
    other = decoder, other.positions = QKV_POSITION_LEARNED, other.max_positions = 4;
    qkv_model *learned = word_model(&other);
    qkv_nll sum = { 0 };
    assert_int_equal(qkv_log_likelihood(NULL, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(translator, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "decoder alone"));
    assert_int_equal(qkv_log_likelihood(ids, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(m, (qkv_str){ NULL, 2 }, &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(m, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4 }, NULL), QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(m, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = -1 }, &sum), QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(m, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4, .stride = 5 }, &sum),
                     QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(m, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4, .stride = -1 }, &sum),
                     QKV_USAGE);
    assert_int_equal(qkv_log_likelihood(learned, qkv_cstr("w1 w2 w3 w4 w5"), &(qkv_likelihood_opts){ .context = 5 }, &sum),
                     QKV_USAGE);
    assert_string_equal(qkv_error(), "perplexity: a context of 5 tokens, the model has positions for 4");
    assert_int_equal(sum.tokens, 0);
    assert_int_equal(qkv_log_likelihood(learned, qkv_cstr("w1 w2 w3 w4 w5"), &(qkv_likelihood_opts){ .context = 4 }, &sum),
                     QKV_OK);
    assert_int_equal(sum.tokens, 6);
    assert_int_equal(qkv_log_likelihood(m, qkv_cstr(""), &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_OK); /* its end */
    assert_int_equal(sum.tokens, 7);
    assert_int_equal(qkv_log_likelihood(m, (qkv_str){ "w1 \xff", 4 }, &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_OK);
    assert_int_equal(sum.tokens, 10);
    qkv__tensor_data(qkv_params_find(qkv_model_params(m), "embed.weight"))[3] = NAN;
    assert_int_equal(qkv_log_likelihood(m, qkv_cstr("w1"), &(qkv_likelihood_opts){ .context = 4 }, &sum), QKV_NUMERIC);
    assert_int_equal(sum.tokens, 10);
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(
        qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { "w1", 2 }, .max_length = 0 }), QKV_USAGE);
    assert_int_equal(
        qkv_dataset_add(p, NULL, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { "w1", 2 }, .max_length = 4 }),
        QKV_USAGE);
    assert_int_equal(
        qkv_dataset_add(NULL, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { "w1", 2 }, .max_length = 4 }),
        QKV_USAGE);
    assert_int_equal(
        qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { NULL, 2 }, .max_length = 4 }), QKV_USAGE);
    assert_int_equal(qkv_dataset_size(p), 0);
    qkv_dataset_free(p);
    qkv_model_free(m);
    qkv_model_free(translator);
    qkv_model_free(ids);
    qkv_model_free(learned);
}

static void count_note(void *data, const char *text)
{
    assert_non_null(strstr(text, "b: line 1 is not UTF-8: replaced by U+FFFD"));
    ++*(int *)data;
}

static const char *text_file(const char *name, const char *text)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static void files_are_measured(void **state)
{
    make_folder(state);
    qkv_model *m = word_model(&decoder);
    const char *const paths[] = { text_file("a", "w1 w2\n\nw3\n"), text_file("b", "w4 \xff\n") };
    static const char *const documents[] = { "w1 w2", "w3", "w4 \xEF\xBF\xBD" };
    qkv_nll wanted = { 0 };
    qkv_measured found = { 0 };
    qkv_buffer text = { 0 };
    char line[64];
    int told = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            qkv_log_likelihood(m, qkv_cstr(documents[i]), &(qkv_likelihood_opts){ .context = 2, .stride = 1 }, &wanted),
            QKV_OK);
    const qkv_measure_opts o = { .context = 2, .stride = 1, .note = count_note, .note_data = &told };
    assert_int_equal(qkv_measure_files(m, paths, 2, &o, &found), QKV_OK);
    assert_true(found.documents == 3 && found.bytes == 13 && told == 1);
    assert_true(found.sum.tokens == wanted.tokens && found.sum.nats == wanted.nats);
    assert_int_equal(qkv_measured_text(&found, 0, &text), QKV_OK);
    assert_memory_equal(text.data, "documents    3\ntokens       8\nbytes        13\n", 46);
    snprintf(line, sizeof line, "\nperplexity   %.4f\n", exp(wanted.nats / 8));
    assert_non_null(strstr(text.data, line));
    snprintf(line, sizeof line, "\nbits/byte    %.4f\n", wanted.nats / log(2) / 13);
    assert_non_null(strstr(text.data, line));
    assert_int_equal(qkv_measured_text(&found, 1, &text), QKV_OK);
    snprintf(line, sizeof line, "\"nats_per_token\": %.17g, ", wanted.nats / 8);
    assert_non_null(strstr(text.data, line));
    const char *const blank[] = { text_file("c", " \n\n") };
    assert_int_equal(qkv_measure_files(m, blank, 1, NULL, &found), QKV_FORMAT);
    assert_int_equal(found.documents, 3);
    qkv_buffer_free(&text);
    qkv_model_free(m);
    remove_folder(state);
}

/* The logits of a batch's rows; the row of the other document must not move by a bit when one changes. */
static void documents_do_not_see_each_other(void **state)
{
    (void)state;
    qkv_model *m = word_model(&decoder);
    const qkv__transformer *x = qkv__model_transformer(m);
    const char *const first[2] = { "w1 w2 w3 w4 w5 w6", "w1 w2 w9 w4 w5 w6" };
    static const char second[] = "w7 w8 w9 w10";
    float *logits[2];
    int64_t n = 0;
    for (int k = 0; k < 2; k++) {
        qkv_dataset *p = qkv_dataset_new();
        qkv_batch *b = NULL;
        assert_int_equal(
            qkv_dataset_add(
                p, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { first[k], strlen(first[k]) }, .max_length = 7 }),
            QKV_OK);
        assert_int_equal(
            qkv_dataset_add(
                p, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { second, strlen(second) }, .max_length = 7 }),
            QKV_OK);
        qkv_loader *e = qkv_loader_new(p, &bare, 0);
        assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
        assert_int_equal(b->rows, 2);
        assert_int_equal(b->target_length, 7);
        qkv_tape *tape = qkv_tape_new(NULL);
        const qkv_tensor *y = qkv__transformer_logits(
            x,
            qkv__transformer_decode(
                x, tape, &(qkv_tokens){ .ids = b->target, .rows = 2, .length = b->target_length, .lengths = b->target_lengths },
                NULL, NULL));
        n = qkv_tensor_count(y) / 2;
        logits[k] = malloc(sizeof(float) * (size_t)qkv_tensor_count(y));
        memcpy(logits[k], qkv_tensor_data(y), sizeof(float) * (size_t)qkv_tensor_count(y));
        qkv_tape_free(tape);
        qkv_free(b);
        qkv_loader_free(e);
        qkv_dataset_free(p);
    }
    assert_memory_equal(logits[0] + n, logits[1] + n, sizeof(float) * 5 * VOCABULARY); /* the second's five tokens */
    assert_memory_equal(logits[0], logits[1], sizeof(float) * 3 * VOCABULARY);         /* before the change */
    assert_memory_not_equal(logits[0], logits[1], sizeof(float) * 7 * VOCABULARY);
    free(logits[0]);
    free(logits[1]);
    qkv_model_free(m);
}

/* ---- masking ---- */

static const qkv_batch_opts together = { .max_tokens = 1 << 20, .sequential = 1, .start = START, .end = END, .pad = PAD };

typedef struct masked {
    qkv_dataset *pairs;
    qkv_loader *epoch;
    qkv_batch *before, *after;
} masked;

/* rows texts of `length` words each, the last of them one shorter so that there is padding. */
static void draw_masked(masked *x, int rows, int length)
{
    *x = (masked){ .pairs = qkv_dataset_new() };
    int32_t *ids = malloc(sizeof *ids * (size_t)(length + 1));
    for (int i = 0; i < rows; i++) {
        size_t n = (size_t)(i == rows - 1 && rows > 1 ? length : length + 1);
        ids[0] = START;
        for (int k = 0; k < length; k++) ids[k + 1] = FIRST + chance(WORDS);
        assert_int_equal(qkv_dataset_add_ids(x->pairs, ids, n, ids, n), QKV_OK);
    }
    free(ids);
    x->epoch = qkv_loader_new(x->pairs, &together, 0);
    assert_int_equal(qkv_loader_batch(x->epoch, 0, &x->before), QKV_OK);
    assert_int_equal(x->before->rows, rows);
}

static void mask_again(masked *x, const qkv_loss *o, uint64_t seed, uint64_t pass)
{
    assert_int_equal(qkv_loader_batch(x->epoch, 0, &x->after), QKV_OK);
    assert_int_equal(o->prepare(o, x->after, seed, pass), QKV_OK);
}

static void free_masked(masked *x)
{
    qkv_free(x->before);
    qkv_free(x->after);
    qkv_loader_free(x->epoch);
    qkv_dataset_free(x->pairs);
}

/* Within five standard deviations of n draws of probability p. */
static void assert_share(const char *what, int64_t got, int64_t n, double p)
{
    double deviations = ((double)got - p * (double)n) / sqrt(p * (1 - p) * (double)n);
    if (!(fabs(deviations) < 5))
        fail_msg("%s: %lld of %lld, %.1f standard deviations from %g", what, (long long)got, (long long)n, deviations, p);
}

static void as_many_as_said(void **state)
{
    (void)state;
    enum { ROWS = 300, LENGTH = 100 };
    const float rates[] = { 0, 0.15f, 0.5f };
    masked x;
    draw_masked(&x, ROWS, LENGTH);
    for (int k = 0; k < 3; k++) {
        const qkv_masked_lm_opts opts = { .rate = rates[k], .special = &special, .vocab_size = VOCABULARY };
        const qkv_loss o = qkv_loss_masked_lm(NULL, &opts);
        int64_t chosen = 0, masks = 0, others = 0, kept = 0, ordinary = 0, by_word[WORDS] = { 0 };
        mask_again(&x, &o, 7, 3);
        for (int64_t i = 0; i < x.before->rows * x.before->source_length; i++) {
            int32_t was = x.before->source[i], is = x.after->source[i], label = x.after->labels[i];
            ordinary += was >= FIRST;
            if (label == QKV_IGNORED) {
                assert_int_equal(is, was);
                continue;
            }
            assert_int_equal(label, was); /* what is to be guessed is what it was, and never a special token */
            assert_true(was >= FIRST);
            chosen++;
            masks += is == MASK;
            kept += is == was;
            if (is == MASK || is == was) continue;
            assert_true(is >= FIRST && is < VOCABULARY);
            others++;
            by_word[is - FIRST]++;
        }
        assert_int_equal(ordinary, ROWS * LENGTH - 1);
        assert_int_equal(x.after->tokens, chosen);
        assert_share("chosen", chosen, ordinary, k == 2 ? 0.5 : 0.15);
        assert_share("masks", masks, chosen, 0.8);
        assert_share("kept", kept, chosen, 0.1 + 0.1 / WORDS); /* chance may draw what it was */
        assert_share("others", others, chosen, 0.1 - 0.1 / WORDS);
        for (int w = 0; w < WORDS; w++) assert_share("a word", by_word[w], others, 1.0 / WORDS);
    }
    free_masked(&x);
}

static void each_pass_chooses_anew(void **state)
{
    (void)state;
    enum { ROWS = 40, LENGTH = 50, ALL = ROWS * (LENGTH + 2) };
    const qkv_masked_lm_opts opts = { .special = &special, .vocab_size = VOCABULARY };
    const qkv_loss o = qkv_loss_masked_lm(NULL, &opts);
    masked x;
    draw_masked(&x, ROWS, LENGTH);
    static int32_t source[ALL], labels[ALL];
    mask_again(&x, &o, 7, 3);
    memcpy(source, x.after->source, sizeof source);
    memcpy(labels, x.after->labels, sizeof labels);
    mask_again(&x, &o, 7, 3);
    assert_memory_equal(source, x.after->source, sizeof source);
    assert_memory_equal(labels, x.after->labels, sizeof labels);
    for (int k = 0; k < 2; k++) { /* another pass, another seed */
        int64_t both = 0;
        mask_again(&x, &o, k ? 8 : 7, k ? 3 : 4);
        for (int i = 0; i < ALL; i++) both += labels[i] != QKV_IGNORED && x.after->labels[i] != QKV_IGNORED;
        assert_share("chosen twice", both, ROWS * LENGTH, 0.15 * 0.15);
    }
    free_masked(&x);
}

static void at_least_one(void **state)
{
    (void)state;
    const qkv_masked_lm_opts opts = { .rate = 0.01f, .special = &special, .vocab_size = VOCABULARY };
    const qkv_loss o = qkv_loss_masked_lm(NULL, &opts);
    qkv_config encoder = decoder;
    encoder.encoder_layers = 1, encoder.decoder_layers = 0;
    qkv_model *m = word_model(&encoder);
    masked x;
    draw_masked(&x, 1, 2);
    for (uint64_t pass = 0; pass < 200; pass++) {
        mask_again(&x, &o, 1, pass);
        assert_true(x.after->tokens >= 1);
    }
    free_masked(&x);
    qkv_dataset *p = qkv_dataset_new(); /* nothing to guess at all */
    double loss;
    assert_int_equal(qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "", 0 } }), QKV_OK);
    assert_int_equal(qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &together }, &loss), QKV_USAGE);
    qkv_trainer *t = qkv_trainer_new(m, p, &(qkv_trainer_opts){ .loss = &o, .batches = &together });
    qkv_train_state now = { 0 };
    assert_int_equal(qkv_trainer_step(t, &now), QKV_OK);
    assert_int_equal(now.tokens, 0);
    assert_true(now.loss == 0);
    qkv_trainer_free(t);
    qkv_dataset_free(p);
    p = qkv_dataset_new(); /* labels have no room where texts were added in another way */
    assert_int_equal(qkv_dataset_add_ids(p, (int32_t[]){ 7, 8, 9 }, 3, (int32_t[]){ 1 }, 1), QKV_OK);
    assert_int_equal(qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &together }, &loss), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "QKV_EXAMPLE_TEXT"));
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* The loss is over the chosen tokens alone. */
static void masked_loss_by_hand(void **state)
{
    (void)state;
    const qkv_masked_lm_opts opts = { .special = &special, .vocab_size = VOCABULARY };
    const qkv_loss o = qkv_loss_masked_lm(NULL, &opts);
    qkv_config encoder = decoder;
    encoder.encoder_layers = 2, encoder.decoder_layers = 0;
    qkv_model *m = word_model(&encoder);
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(
        qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "w1 w2 w3 w4 w5 w6 w7 w8 w9", 26 } }),
        QKV_OK);
    assert_int_equal(
        qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "w5 w6 w7 w8 w9", 14 }, .max_length = 4 }),
        QKV_OK);
    qkv_loader *e = qkv_loader_new(p, &together, 0);
    qkv_batch *b = NULL;
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
    assert_int_equal(b->source[0], START);
    assert_int_equal(b->source_lengths[0], 11);
    assert_int_equal(b->source_lengths[1], 5); /* cut to 4, and its end */
    assert_int_equal(o.prepare(&o, b, 1, 2), QKV_OK);
    qkv_tape *tape = qkv_tape_new(NULL);
    double got = (double)qkv_tensor_item(o.compute(&o, m, tape, b, 0)), wanted = 0;
    const float *logits = qkv_tensor_data(qkv__transformer_logits(
        x, qkv__transformer_encode(
               x, tape,
               &(qkv_tokens){ .ids = b->source, .rows = b->rows, .length = b->source_length, .lengths = b->source_lengths })));
    assert_int_equal(qkv_tape_status(tape), QKV_OK);
    int64_t n = 0;
    for (int64_t i = 0; i < b->rows * b->source_length; i++) {
        if (b->labels[i] == QKV_IGNORED) continue;
        double sum = 0;
        for (int k = 0; k < VOCABULARY; k++) sum += exp((double)logits[i * VOCABULARY + k]);
        wanted += log(sum) - (double)logits[i * VOCABULARY + b->labels[i]];
        n++;
    }
    assert_true(n > 0 && n == b->tokens);
    assert_true(fabs(got - wanted / (double)n) < 1e-5 * got);
    assert_int_equal(qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "w1", 2 }, .max_length = -1 }),
                     QKV_USAGE);
    assert_int_equal(qkv_dataset_add(p, NULL, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "w1", 2 } }), QKV_USAGE);
    assert_int_equal(qkv_dataset_add(NULL, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { "w1", 2 } }), QKV_USAGE);
    qkv_tape_free(tape);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* ---- trainings ---- */

enum { CLASSIFY, WEIGHED, GENERATE, GUESS, JOBS, STEPS = 24 };
static const float class_weights[2] = { 0.5f, 2 };
static const qkv_masked_lm_opts guessing = { .rate = 0.3f, .special = &special, .vocab_size = VOCABULARY };
static char path[64];

static int make_path(void **state)
{
    (void)state;
    strcpy(path, "/tmp/qkv-language-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

static qkv_loss loss_of(int job)
{
    if (job == GENERATE) return qkv_loss_language_model();
    return job == GUESS ? qkv_loss_masked_lm(NULL, &guessing)
                        : qkv_loss_classification(job == WEIGHED ? class_weights : NULL, 2);
}

static qkv_model *model_of(int job, uint64_t seed)
{
    qkv_config o = decoder;
    o.dropout = o.attention_dropout = o.ffn_dropout = 0.1f;
    if (job != GENERATE) o.encoder_layers = 2, o.decoder_layers = 0;
    if (job == CLASSIFY || job == WEIGHED) o.classes = 2, o.pooling = QKV_POOLING_ATTENTION;
    return qkv_model_new(&o, seed);
}

static qkv_dataset *pairs_of(int job, int n)
{
    qkv_config o = decoder;
    if (job != GENERATE) o.encoder_layers = 2, o.decoder_layers = 0;
    qkv_model *m = word_model(&o);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    qkv_dataset *p = m ? qkv_dataset_new() : NULL;
    qkv_status status = p ? QKV_OK : qkv_error_status();
    state_of_chance = 9;
    for (int i = 0; i < n && !status; i++) {
        char text[200];
        int32_t ids[32];
        draw_text(t, 1 + i % 13, text, ids);
        if (job == GENERATE)
            status = qkv_dataset_add(
                p, m, &(qkv_example){ .kind = QKV_EXAMPLE_DOCUMENT, .text = { text, strlen(text) }, .max_length = 5 });
        else if (job == GUESS)
            status = qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_TEXT, .text = { text, strlen(text) } });
        else
            status = qkv_dataset_add(
                p, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { text, strlen(text) }, .class_id = i % 2 });
    }
    qkv_model_free(m);
    if (!status) return p;
    qkv_dataset_free(p);
    return NULL;
}

static qkv_trainer *trainer_of(int job, qkv_model *m, const qkv_dataset *p, const qkv_loss *o)
{
    const qkv_trainer_opts opts = {
        .loss = o,
        .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_ADAM },
        .schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_LINEAR, .lr = 0.01, .warmup = 4, .steps = STEPS },
        .batches = &(qkv_batch_opts){ .max_tokens = 60, .start = START, .end = END, .target_has_both = job == GENERATE },
        .accumulate = 2,
        .label_smoothing = 0.1f,
        .clip_norm = 1,
        .seed = 5,
    };
    return m && p ? qkv_trainer_new(m, p, &opts) : NULL;
}

/* A file's bytes; free() them. */
static char *bytes_of(const char *file, size_t *n)
{
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

/* The checkpoint after STEPS steps, stopped and resumed with new objects after `stop`. */
static char *train(int job, int threads, int stop, size_t *n, double *first, double *last)
{
    qkv_set_num_threads(threads);
    const qkv_loss o = loss_of(job);
    qkv_dataset *p = pairs_of(job, 40);
    qkv_model *m = model_of(job, 3);
    qkv_trainer *t = trainer_of(job, m, p, &o);
    assert_non_null(t);
    for (int step = 1; step <= STEPS; step++) {
        qkv_train_state now = { 0 };
        assert_int_equal(qkv_trainer_step(t, &now), QKV_OK);
        assert_int_equal(now.step, step);
        *(step == 1 ? first : last) = now.loss;
        if (step != stop) continue;
        assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
        qkv_trainer_free(t);
        qkv_model_free(m);
        m = model_of(job, 99); /* other weights, which the checkpoint replaces */
        t = trainer_of(job, m, p, &o);
        assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_OK);
    }
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(p);
    qkv_set_num_threads(0);
    return bytes_of(path, n);
}

static void same_bytes(void **state)
{
    (void)state;
    static const int ways[][2] = { { 2, 0 }, { 4, 0 }, { 1, 1 }, { 2, 7 }, { 1, 23 } }; /* threads, where it stops */
    for (int job = 0; job < JOBS; job++) {
        size_t n, m;
        double first = 0, last = 0;
        char *wanted = train(job, 1, 0, &n, &first, &last);
        assert_true(isfinite(last) && last != first); /* it moves */
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            char *got = train(job, ways[i][0], ways[i][1], &m, &first, &last);
            assert_int_equal(n, m);
            if (memcmp(wanted, got, n)) fail_msg("job %d differs at %d threads, stop %d", job, ways[i][0], ways[i][1]);
            free(got);
        }
        free(wanted);
    }
}

static void other_losses(void **state)
{
    (void)state;
    static const float others[2] = { 0.5f, 2.5f };
    const qkv_masked_lm_opts rarer = { .rate = 0.2f, .special = &special, .vocab_size = VOCABULARY };
    const qkv_loss own[] = { loss_of(CLASSIFY), loss_of(WEIGHED), loss_of(GUESS), loss_of(GUESS) };
    qkv_loss wrong[] = { loss_of(WEIGHED), qkv_loss_classification(others, 2), qkv_loss_masked_lm(NULL, &rarer),
                         loss_of(GUESS) };
    wrong[3].id ^= 1;
    for (int i = 0; i < 4; i++) {
        int job = i >= 2 ? GUESS : CLASSIFY;
        qkv_dataset *p = pairs_of(job, 10);
        qkv_model *m = model_of(job, 3);
        qkv_trainer *t = trainer_of(job, m, p, &own[i]), *other = trainer_of(job, m, p, &wrong[i]);
        assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
        assert_int_equal(qkv_trainer_load(other, path, NULL), QKV_USAGE);
        assert_non_null(strstr(qkv_error(), "other options"));
        assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_OK);
        qkv_trainer_free(t);
        qkv_trainer_free(other);
        qkv_model_free(m);
        qkv_dataset_free(p);
    }
    for (int a = 0; a < JOBS; a++) /* and no two jobs have one name, not even that of translation, 0 */
        for (int b = 0; b < JOBS; b++) assert_true(loss_of(a).id && (a == b || loss_of(a).id != loss_of(b).id));
}

/* A loss that notes which seed and pass it is asked for. */
static uint64_t passes[100];
static int n_passes;

static qkv_status note_pass(const qkv_loss *o, qkv_batch *b, uint64_t seed, uint64_t pass)
{
    (void)o, (void)b;
    assert_int_equal(seed, 5);
    passes[n_passes++] = pass;
    return QKV_OK;
}

static void every_forward_has_its_number(void **state)
{
    (void)state;
    qkv_loss o = qkv_loss_language_model();
    o.prepare = note_pass;
    qkv_dataset *p = pairs_of(GENERATE, 40);
    qkv_model *m = model_of(GENERATE, 3);
    qkv_trainer *t = trainer_of(GENERATE, m, p, &o);
    n_passes = 0;
    for (int step = 0; step < 20; step++) {
        assert_int_equal(qkv_trainer_step(t, NULL), QKV_OK);
        if (step != 10) continue;
        assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
        qkv_trainer_free(t);
        assert_non_null(t = trainer_of(GENERATE, m, p, &o));
        assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_OK);
    }
    assert_true(n_passes > 30 && n_passes <= 40); /* two batches an update, but at the end of an epoch */
    for (int i = 0; i < n_passes; i++) assert_int_equal(passes[i], i);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(p);
}

/* A model that the loss does not fit is refused at the first step. */
static void models_that_do_not_fit(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        const qkv_loss o = loss_of(job);
        qkv_dataset *p = pairs_of(job, 10);
        qkv_model *m = model_of(job == GENERATE ? GUESS : GENERATE, 3);
        qkv_trainer *t = trainer_of(job, m, p, &o);
        assert_non_null(t);
        assert_int_equal(qkv_trainer_step(t, NULL), QKV_USAGE);
        qkv_trainer_free(t);
        qkv_model_free(m);
        qkv_dataset_free(p);
    }
}

/* ---- memory ---- */

static int failing_job;

static qkv_status all_of_it(void)
{
    const qkv_loss o = loss_of(failing_job);
    qkv_dataset *p = pairs_of(failing_job, 10);
    qkv_model *m = p ? model_of(failing_job, 3) : NULL;
    qkv_trainer *t = trainer_of(failing_job, m, p, &o);
    qkv_status status = t ? qkv_trainer_step(t, NULL) : qkv_error_status();
    double loss;
    const qkv_batch_opts batches = { .start = START, .end = END, .target_has_both = failing_job == GENERATE };
    if (!status) status = qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &batches }, &loss);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(p);
    return status;
}

static qkv_status measure(void)
{
    qkv_model *m = word_model(&decoder);
    qkv_nll sum = { 0 };
    qkv_status status = m ? qkv_log_likelihood(m, (qkv_str){ "w1 w2 w3 \xff w4", 13 },
                                               &(qkv_likelihood_opts){ .context = 3, .stride = 2 }, &sum)
                          : qkv_error_status();
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    for (failing_job = 0; failing_job < JOBS; failing_job++) assert_true(each_allocation_fails(all_of_it) > 50);
    assert_true(each_allocation_fails(measure) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_token_once),
        cmocka_unit_test(short_targets),
        cmocka_unit_test(strides),
        cmocka_unit_test(training_reports_the_same),
        cmocka_unit_test(measuring_refuses),
        cmocka_unit_test(files_are_measured),
        cmocka_unit_test(documents_do_not_see_each_other),
        cmocka_unit_test(as_many_as_said),
        cmocka_unit_test(each_pass_chooses_anew),
        cmocka_unit_test(at_least_one),
        cmocka_unit_test(masked_loss_by_hand),
        cmocka_unit_test_setup_teardown(same_bytes, make_path, remove_path),
        cmocka_unit_test_setup_teardown(other_losses, make_path, remove_path),
        cmocka_unit_test_setup_teardown(every_forward_has_its_number, make_path, remove_path),
        cmocka_unit_test(models_that_do_not_fit),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
