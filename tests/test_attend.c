/* test_attend.c: the weights are those of a tape, joined as plain loops join them; names are the text that was given; the
 * target is what qkv_translate() finds; rollout and measures against plain references. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include "inspect/attend.h"
#include "report/attention.h"
#include "nn/params.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "model/model.h"
#include "as_strings.h"

enum { LAYERS = 2, HEADS = 2, ROOM = 64 };

static const char *const corpus[] = {
    "the cat sat on the mat", "I love you", "you love the cat",    "我爱你",
    "猫坐在垫子上",           "你爱猫",     "the dog and the cat", "the mat and the dog",
};

typedef struct shape {
    int encoder, decoder;
    qkv_token_kind kind;
    qkv_position_kind positions;
    int spare; /* ids that the tokenizer does not know */
} shape;

static const shape pair = { 1, LAYERS, QKV_TOKEN_BPE, QKV_POSITION_SINUSOID, 0 };
static const shape encoder = { LAYERS, 0, QKV_TOKEN_BPE, QKV_POSITION_SINUSOID, 0 };
static const shape decoder = { 0, LAYERS, QKV_TOKEN_BPE, QKV_POSITION_SINUSOID, 0 };

static qkv_tokenizer *learn(qkv_token_kind kind)
{
    qkv_word_counts *w = qkv_word_counts_new(kind);
    qkv_tokenizer *t = NULL;
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus && !status; i++) status = qkv_word_counts_add(w, qkv_cstr(corpus[i]));
    if (!status)
        t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 290, .min_count = kind == QKV_TOKEN_BPE ? 2 : 1 });
    qkv_word_counts_free(w);
    return t;
}

/* Random weights, larger than usual, so that the model has opinions. It owns the tokenizer. */
static qkv_model *make_model_with(shape s, qkv_tokenizer *t)
{
    if (!t) return NULL;
    const qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t) + s.spare,
                           .encoder_layers = s.encoder,
                           .decoder_layers = s.decoder,
                           .dim = 16,
                           .heads = HEADS,
                           .d_ff = 32,
                           .positions = s.positions,
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

static qkv_model *make_model(shape s) { return make_model_with(s, learn(s.kind)); }

static qkv_attention_capture *attend(const qkv_model *m, const char *source, const char *target, const qkv_attend_opts *opts)
{
    qkv_attention_capture *a = NULL;
    qkv_attend_opts all = opts ? *opts : (qkv_attend_opts){ 0 };
    all.target = qkv_cstr(target);
    qkv_status status = qkv_attend(m, qkv_cstr(source), &all, &a);
    if (status) fail_msg("attend gave %d: %s", (int)status, qkv_error());
    return a;
}

static float *weights_of(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, int head)
{
    int64_t cells = qkv_attention_rows(a, kind)->n * qkv_attention_columns(a, kind)->n;
    float *weights = malloc(sizeof *weights * (size_t)(cells + 1));
    assert_non_null(weights);
    assert_int_equal(qkv_attention_weights(a, kind, layer, head, weights), QKV_OK);
    return weights;
}

/* ---- against a tape by hand ---- */

/* The ids a tape reads, with their start and end, and what it kept. */
typedef struct by_hand {
    qkv_tape *tape;
    int32_t source[ROOM], read[ROOM];
    int64_t n_source, n_read;
} by_hand;

static int64_t encode(const qkv_model *m, const char *text, int32_t start, int32_t end, int32_t *out)
{
    qkv_encoding *ids = NULL;
    int64_t n = 0;
    assert_int_equal(qkv_tokenizer_encode(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), qkv_cstr(text), NULL, &ids), QKV_OK);
    assert_true(ids->n + 2 <= ROOM);
    if (start >= 0) out[n++] = start;
    memcpy(out + n, ids->ids, (size_t)ids->n * sizeof *out);
    n += ids->n;
    if (end >= 0) out[n++] = end;
    qkv_free(ids);
    return n;
}

static by_hand run_by_hand(const qkv_model *m, const char *source, const char *target)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    by_hand b = { .tape = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1 }) };
    if (source) b.n_source = encode(m, source, target ? -1 : 1, 2, b.source);
    if (target) b.n_read = encode(m, target, 1, -1, b.read);
    qkv_tensor *memory = source ? qkv__transformer_encode(x, b.tape,
                                                          &(qkv_tokens){ .ids = b.source, .rows = 1, .length = b.n_source })
                                : NULL;
    if (target)
        assert_non_null(
            qkv__transformer_decode(x, b.tape, &(qkv_tokens){ .ids = b.read, .rows = 1, .length = b.n_read }, memory, NULL));
    return b;
}

/* With pieces, token by token: the same bits as attention i of the tape; rows sum to 1. */
static void same_as_tape(const qkv_attention_capture *a, qkv_attention_kind kind, int layer, const by_hand *b, int i,
                         int64_t rows, int64_t columns)
{
    const float *kept = qkv_tensor_data(qkv_tape_attention(b->tape, i));
    assert_non_null(kept);
    assert_int_equal(qkv_attention_rows(a, kind)->n, rows);
    assert_int_equal(qkv_attention_columns(a, kind)->n, columns);
    for (int h = 0; h < HEADS; h++) {
        float *weights = weights_of(a, kind, layer, h);
        assert_memory_equal(weights, kept + h * rows * columns, sizeof *weights * (size_t)(rows * columns));
        for (int64_t r = 0; r < rows; r++) {
            double sum = 0;
            for (int64_t c = 0; c < columns; c++) sum += (double)weights[r * columns + c];
            assert_true(fabs(sum - 1) < 1e-5);
        }
        free(weights);
    }
}

static void same_ids(const qkv_axis *side, const int32_t *ids, int64_t n)
{
    assert_int_equal(side->first[side->n], n);
    assert_memory_equal(side->ids, ids, sizeof *ids * (size_t)n);
}

static void weights_are_those_of_a_tape(void **state)
{
    (void)state;
    const qkv_attend_opts pieces = { .split_characters = 1 };
    qkv_model *m = make_model(pair);
    qkv_attention_capture *a = attend(m, "I love the 狗", "我爱狗 dog", &pieces);
    by_hand b = run_by_hand(m, "I love the 狗", "我爱狗 dog");
    assert_true(a->layers[0] == 1 && a->layers[1] == LAYERS && a->layers[2] == LAYERS && a->heads == HEADS && !a->found);
    same_ids(&a->source, b.source, b.n_source);
    same_ids(&a->target, b.read, b.n_read);
    b.read[b.n_read] = 2;
    same_ids(&a->predicted, b.read + 1, b.n_read);
    same_as_tape(a, QKV_ATTENTION_ENCODER, 0, &b, 0, b.n_source, b.n_source);
    for (int l = 0; l < LAYERS; l++) {
        same_as_tape(a, QKV_ATTENTION_DECODER, l, &b, 1 + 2 * l, b.n_read, b.n_read);
        same_as_tape(a, QKV_ATTENTION_CROSS, l, &b, 2 + 2 * l, b.n_read, b.n_source);
    }
    qkv_tape_free(b.tape);
    qkv_model_free(m);

    m = make_model(encoder); /* the result is used again */
    assert_int_equal(qkv_attend(m, qkv_cstr("I love you"), &pieces, &a), QKV_OK);
    b = run_by_hand(m, "I love you", NULL);
    assert_true(a->layers[0] == LAYERS && !a->layers[1] && !a->layers[2] && !a->target.n && !a->predicted.n);
    assert_null(qkv_attention_rows(a, QKV_ATTENTION_DECODER));
    assert_null(qkv_attention_columns(a, QKV_ATTENTION_CROSS));
    same_ids(&a->source, b.source, b.n_source);
    for (int l = 0; l < LAYERS; l++) same_as_tape(a, QKV_ATTENTION_ENCODER, l, &b, l, b.n_source, b.n_source);
    qkv_tape_free(b.tape);
    qkv_model_free(m);

    m = make_model(decoder);
    assert_int_equal(
        qkv_attend(m, qkv_cstr("I love "), &(qkv_attend_opts){ .target = qkv_cstr("you"), .split_characters = 1 }, &a), QKV_OK);
    b = run_by_hand(m, NULL, "I love you");
    assert_true(!a->layers[0] && a->layers[1] == LAYERS && !a->layers[2] && !a->source.n && !a->predicted.n);
    same_ids(&a->target, b.read, b.n_read);
    for (int l = 0; l < LAYERS; l++) same_as_tape(a, QKV_ATTENTION_DECODER, l, &b, l, b.n_read, b.n_read);
    qkv_tape_free(b.tape);
    qkv_free(a);
    qkv_model_free(m);
}

/* SentencePiece drops a space at the start of a text; the token that is one is a space wherever it stands. */
static void a_space_is_seen(void **state)
{
    (void)state;
    qkv_model *m = make_model_with(decoder, qkv_tokenizer_load(QKV_GOLDEN "/spm_bytes.model"));
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    const int32_t ids[] = { qkv_tokenizer_id(t, "\xE2\x96\x81"), qkv_tokenizer_id(t, "\xE2\x96\x81the") };
    assert_true(ids[0] > 0 && ids[1] > 0);
    qkv_attention_capture *a = attend(m, "the", NULL, &(qkv_attend_opts){ .target_ids = ids, .n_target_ids = 2 });
    assert_int_equal(a->target.n, 4);
    assert_string_equal(a->target.names[1], "the");
    assert_string_equal(a->target.names[2], " ");
    assert_string_equal(a->target.names[3], "the");
    qkv_free(a);
    a = attend(m, "\xE7\x88\xB1", NULL, NULL); /* the space that is put before it is a token of its own */
    assert_int_equal(a->target.n, 3);
    assert_string_equal(a->target.names[1], " ");
    assert_string_equal(a->target.names[2], "\xE7\x88\xB1");
    qkv_free(a);
    qkv_model_free(m);
}

/* Ids behind a text, as a continuation that was generated. */
static void ids_are_a_target_too(void **state)
{
    (void)state;
    qkv_model *m = make_model(decoder);
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    const int32_t the = qkv_tokenizer_id(t, "\xC4\xA0the"), ids[3] = { the, 2, the };
    assert_true(the > 0);
    qkv_attention_capture *a = attend(m, "I", NULL, &(qkv_attend_opts){ .target_ids = ids, .n_target_ids = 3 });
    assert_int_equal(a->target.n, 5);
    assert_string_equal(a->target.names[1], "I");
    assert_string_equal(a->target.names[2], " the");
    assert_string_equal(a->target.names[3], "</s>");
    assert_memory_equal(a->target.is_special, "\1\0\0\1\0", 5);
    qkv_free(a);
    qkv_model_free(m);

    m = make_model((shape){ 1, 1, QKV_TOKEN_BPE, QKV_POSITION_SINUSOID, 7 });
    const int32_t unknown = qkv_tokenizer_vocab_size(qkv_model_tokenizer(m, QKV_SIDE_SOURCE)) + 3;
    char name[16];
    snprintf(name, sizeof name, "<%d>", unknown);
    a = attend(m, "I", NULL, &(qkv_attend_opts){ .target_ids = &unknown, .n_target_ids = 1 });
    assert_true(a->predicted.n == 2 && a->target.n == 2 && !a->found);
    assert_string_equal(a->predicted.names[0], name);
    assert_string_equal(a->predicted.names[1], "</s>");
    assert_string_equal(a->target.names[0], "<s>");
    assert_string_equal(a->target.names[1], name);
    assert_int_equal(qkv_attend(m, qkv_cstr("I"), &(qkv_attend_opts){ .target_ids = ids }, &a), QKV_OK);
    assert_true(a->predicted.n == 1 && a->target.n == 1 && !a->found); /* ids, but none of them: an empty target */
    qkv_model_free(m);
    m = make_model(encoder);
    assert_int_equal(qkv_attend(m, qkv_cstr("I"), &(qkv_attend_opts){ .target_ids = ids }, &a), QKV_OK);
    qkv_free(a);
    qkv_model_free(m);
}

/* ---- the search ---- */

static void target_is_the_translation(void **state)
{
    (void)state;
    qkv_model *m = make_model(pair);
    static const struct {
        int beam;
        float penalty;
    } searches[] = { { 0, 0 }, { 1, 0 }, { 3, 1.5f }, { 4, 0.5f } };
    qkv_translations *t = NULL;
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus; i++)
        for (size_t k = 0; k < sizeof searches / sizeof *searches; k++) {
            const qkv_attend_opts opts = { .beam_size = searches[k].beam, .length_penalty = searches[k].penalty };
            const qkv_translate_opts same = { .beam_size = opts.beam_size,
                                              .length_penalty = opts.length_penalty,
                                              .attention = 1 };
            qkv_attention_capture *a = attend(m, corpus[i], NULL, &opts);
            assert_int_equal(qkv_translate(m, as_strings(&corpus[i], NULL, 1), 1, &same, &t), QKV_OK);
            const qkv_translation *x = t->best;
            assert_non_null(a->found);
            assert_string_equal(a->found->text.data, x->text.data);
            assert_true(a->found->score == x->score && a->found->log_p == x->log_p && a->found->truncated == x->truncated);
            assert_int_equal(a->found->n_ids, x->n_ids);
            assert_int_equal(a->predicted.first[a->predicted.n], x->n_ids + 1);
            assert_memory_equal(a->predicted.ids, x->ids, sizeof *x->ids * (size_t)x->n_ids);
            qkv_free(a);
            a = attend(m, corpus[i], NULL,
                       &(qkv_attend_opts){
                           .beam_size = opts.beam_size, .length_penalty = opts.length_penalty, .split_characters = 1 });
            int64_t map = (x->n_ids + 1) * t->n_source[0];
            for (int l = 0; l < LAYERS; l++)
                for (int h = 0; h < HEADS; h++) {
                    float *weights = weights_of(a, QKV_ATTENTION_CROSS, l, h);
                    assert_memory_equal(weights, x->attention + (l * HEADS + h) * map, sizeof *weights * (size_t)map);
                    free(weights);
                }
            qkv_free(a);
        }
    qkv_free(t);
    qkv_model_free(m);
}

/* ---- names and units ---- */

static void units_have_the_text_that_was_given(void **state)
{
    (void)state;
    static const char text[] = "the 狗,  \xF0\x9F\x98\x80 مرحبا x";
    qkv_model *m = make_model(encoder);
    qkv_attention_capture *a = attend(m, text, NULL, NULL),
                          *p = attend(m, text, NULL, &(qkv_attend_opts){ .split_characters = 1 });
    char joined[100] = "";
    for (int64_t i = 0; i < a->source.n; i++) {
        assert_int_equal(qkv_utf8_valid(a->source.names[i], strlen(a->source.names[i])), strlen(a->source.names[i]));
        assert_int_equal(a->source.is_special[i], i == 0 || i == a->source.n - 1);
        if (!a->source.is_special[i]) strcat(joined, a->source.names[i]);
    }
    assert_string_equal(joined, text);
    assert_true(a->source.n < p->source.n); /* the dog and the face are several tokens each */
    assert_int_equal(a->source.first[a->source.n], p->source.n);
    assert_string_equal(a->source.names[0], "<s>");
    assert_string_equal(a->source.names[1], "the");
    int bytes = 0;
    for (int64_t i = 0; i < p->source.n; i++) bytes += strstr(p->source.names[i], "\\x") != NULL;
    assert_true(bytes >= 3);
    qkv_free(a);
    qkv_free(p);

    a = attend(m, "a\xFF\xE7\x8B", NULL, NULL); /* what is not UTF-8 is read, and shown, as U+FFFD */
    assert_string_equal(a->source.names[a->source.n - 2], "\xEF\xBF\xBD");
    assert_int_equal(qkv_attend(m, (qkv_str){ "a\0b", 3 }, NULL, &a), QKV_OK);
    assert_string_equal(a->source.names[2], "\xE2\x90\x80");
    qkv_free(a);
    qkv_model_free(m);
}

/* A word that is not known is shown as it was written, and is not special. */
static void unknown_words_keep_their_text(void **state)
{
    (void)state;
    qkv_model *m = make_model((shape){ 1, 0, QKV_TOKEN_WORDS, QKV_POSITION_SINUSOID, 0 });
    qkv_attention_capture *a = attend(m, "  The Zebra\tSAT", NULL, &(qkv_attend_opts){ .no_special = 1 });
    assert_int_equal(a->source.n, 3);
    assert_string_equal(a->source.names[0], "The");
    assert_string_equal(a->source.names[1], "Zebra");
    assert_string_equal(a->source.names[2], "SAT");
    assert_int_equal(a->source.ids[1], qkv_tokenizer_id(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), "<unk>"));
    assert_int_equal(qkv_attend(m, (qkv_str){ " \t", 2 }, NULL, &a), QKV_OK); /* <s> </s> */
    assert_int_equal(a->source.n, 2);
    qkv_free(a);
    qkv_model_free(m);
    m = make_model((shape){ 1, 0, QKV_TOKEN_CHARACTERS, QKV_POSITION_SINUSOID, 0 });
    a = attend(m, "我Z", NULL, NULL);
    assert_int_equal(a->source.n, 4);
    assert_string_equal(a->source.names[1], "我");
    assert_string_equal(a->source.names[2], "Z");
    qkv_free(a);
    qkv_model_free(m);
}

/* Bytes a model chose need not make characters: each piece is then shown alone. */
static void broken_characters_are_shown(void **state)
{
    (void)state;
    qkv_model *m = make_model((shape){ 1, 1, QKV_TOKEN_BPE, QKV_POSITION_SINUSOID, 0 });
    const qkv_tokenizer *t = qkv_model_tokenizer(m, QKV_SIDE_SOURCE);
    qkv_encoding *dog = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("狗"), NULL, &dog), QKV_OK);
    assert_int_equal(dog->n, 3);
    const int32_t x = qkv_tokenizer_id(t, "x"), ids[] = { dog->ids[0], dog->ids[1], x,           dog->ids[0], dog->ids[1],
                                                          dog->ids[2], dog->ids[2], dog->ids[0], dog->ids[1] };
    qkv_attention_capture *a = attend(m, "x", NULL, &(qkv_attend_opts){ .target_ids = ids, .n_target_ids = 9 });
    static const char *const wanted[] = { "\xEF\xBF\xBD", "\xEF\xBF\xBD", "x",   "狗", "\xEF\xBF\xBD",
                                          "\xEF\xBF\xBD", "\xEF\xBF\xBD", "</s>" };
    assert_int_equal(a->predicted.n, 8);
    for (int i = 0; i < 8; i++) assert_string_equal(a->predicted.names[i], wanted[i]);
    assert_int_equal(
        qkv_attend(m, qkv_cstr("x"), &(qkv_attend_opts){ .target_ids = ids, .n_target_ids = 9, .split_characters = 1 }, &a),
        QKV_OK);
    assert_int_equal(a->predicted.n, 10);
    assert_string_equal(a->predicted.names[3], "\\xE7");
    assert_string_equal(a->predicted.names[4], "\\x8B");
    qkv_free(a);
    qkv_free(dog);
    qkv_model_free(m);
}

/* Where the units of b begin among the tokens of all. */
static int64_t begin_of(const qkv_axis *side, int64_t unit, int hidden_before) { return side->first[unit] + hidden_before; }

/* Joined by plain loops from the tokens one by one. first_row, first_column: special tokens that are hidden in front. */
static void joined_as_by_loops(const qkv_attention_capture *a, int row_hidden, int column_hidden,
                               const qkv_attention_capture *tokens, qkv_attention_kind kind, int layer, int head)
{
    const qkv_axis *rows = qkv_attention_rows(a, kind), *columns = qkv_attention_columns(a, kind);
    int64_t across = qkv_attention_columns(tokens, kind)->n;
    float *all = weights_of(tokens, kind, layer, head), *got = weights_of(a, kind, layer, head);
    for (int64_t i = 0; i < rows->n; i++)
        for (int64_t k = 0; k < columns->n; k++) {
            double sum = 0;
            for (int64_t r = begin_of(rows, i, row_hidden); r < begin_of(rows, i + 1, row_hidden); r++)
                for (int64_t c = begin_of(columns, k, column_hidden); c < begin_of(columns, k + 1, column_hidden); c++)
                    sum += (double)all[r * across + c];
            sum /= (double)(rows->first[i + 1] - rows->first[i]);
            assert_true(fabs(sum - (double)got[i * columns->n + k]) < 1e-6);
        }
    free(all);
    free(got);
}

static void pieces_are_joined_and_specials_left_out(void **state)
{
    (void)state;
    qkv_model *m = make_model(pair);
    const char *source = "the 狗 and \xF0\x9F\x98\x80", *target = "狗狗 dog";
    qkv_attention_capture *tokens = attend(m, source, target, &(qkv_attend_opts){ .split_characters = 1 }),
                          *a = attend(m, source, target, NULL),
                          *bare = attend(m, source, target, &(qkv_attend_opts){ .no_special = 1 });
    assert_true(a->source.n < tokens->source.n && a->target.n < tokens->target.n);
    assert_int_equal(bare->source.n, a->source.n - 1);
    assert_int_equal(bare->target.n, a->target.n - 1);
    assert_int_equal(bare->predicted.n, a->predicted.n - 1);
    for (int kind = 0; kind < QKV_ATTENTION_KINDS; kind++)
        for (int layer = -1; layer < a->layers[kind]; layer++)
            for (int head = -1; head < HEADS; head++) {
                int is_decoder = kind == QKV_ATTENTION_DECODER; /* the only axis that starts with a special token */
                joined_as_by_loops(a, 0, 0, tokens, (qkv_attention_kind)kind, layer, head);
                joined_as_by_loops(bare, is_decoder, is_decoder, tokens, (qkv_attention_kind)kind, layer, head);
            }
    /* In the middle: hidden, and the tokens after it keep their weights. */
    const int32_t the = qkv_tokenizer_id(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), "\xC4\xA0the"), ids[3] = { the, 2, the };
    assert_int_equal(qkv_attend(m, qkv_cstr("I"), &(qkv_attend_opts){ .target_ids = ids, .n_target_ids = 3 }, &a), QKV_OK);
    assert_int_equal(
        qkv_attend(m, qkv_cstr("I"), &(qkv_attend_opts){ .target_ids = ids, .n_target_ids = 3, .no_special = 1 }, &bare),
        QKV_OK);
    assert_int_equal(bare->predicted.n, 2);
    assert_int_equal(bare->predicted.first[2], 2);
    assert_int_equal(bare->predicted.ids[1], the);
    float *full = weights_of(a, QKV_ATTENTION_DECODER, 1, 1), *part = weights_of(bare, QKV_ATTENTION_DECODER, 1, 1);
    const int64_t kept[2] = { 1, 3 };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) assert_true(part[i * 2 + k] == full[kept[i] * 4 + kept[k]]);
    free(full);
    free(part);
    qkv_free(a);
    qkv_free(bare);
    qkv_free(tokens);
    qkv_model_free(m);
}

/* -1 is the mean of what the numbers give one by one. */
static void means(void **state)
{
    (void)state;
    qkv_model *m = make_model(pair);
    qkv_attention_capture *a = attend(m, "the cat sat", "我爱狗", NULL);
    int64_t cells = a->predicted.n * a->source.n;
    float *all = weights_of(a, QKV_ATTENTION_CROSS, -1, -1), *heads = weights_of(a, QKV_ATTENTION_CROSS, 1, -1),
          *layers = weights_of(a, QKV_ATTENTION_CROSS, -1, 1), *one[LAYERS][HEADS];
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++) one[l][h] = weights_of(a, QKV_ATTENTION_CROSS, l, h);
    for (int64_t c = 0; c < cells; c++) {
        assert_true(fabsf(heads[c] - (one[1][0][c] + one[1][1][c]) / 2) < 1e-6f);
        assert_true(fabsf(layers[c] - (one[0][1][c] + one[1][1][c]) / 2) < 1e-6f);
        assert_true(fabsf(all[c] - (one[0][0][c] + one[0][1][c] + one[1][0][c] + one[1][1][c]) / 4) < 1e-6f);
    }
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++) free(one[l][h]);
    free(all);
    free(heads);
    free(layers);
    qkv_free(a);
    qkv_model_free(m);
}

/* ---- rollout ---- */

/* In double, layer by layer: R = (A + I) / 2 R. */
static void roll_plainly(const qkv_attention_capture *tokens, qkv_attention_kind kind, int64_t n, double *r)
{
    double *next = malloc(sizeof *next * (size_t)(n * n));
    for (int64_t i = 0; i < n * n; i++) r[i] = i % (n + 1) == 0;
    for (int l = 0; l < tokens->layers[kind]; l++) {
        float *mean = weights_of(tokens, kind, l, -1);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++) {
                double sum = 0;
                for (int64_t j = 0; j < n; j++) sum += ((double)mean[i * n + j] + (i == j)) / 2 * r[j * n + k];
                next[i * n + k] = sum;
            }
        memcpy(r, next, sizeof *r * (size_t)(n * n));
        free(mean);
    }
    free(next);
}

static void rollout_is_the_product_of_layers(void **state)
{
    (void)state;
    const char *text = "the 狗 and the cat";
    for (int which = 0; which < 2; which++) {
        qkv_model *m = make_model(which ? decoder : encoder);
        qkv_attention_kind kind = which ? QKV_ATTENTION_DECODER : QKV_ATTENTION_ENCODER;
        qkv_attention_capture *tokens = attend(m, text, NULL, &(qkv_attend_opts){ .split_characters = 1 }),
                              *a = attend(m, text, NULL, NULL);
        const qkv_axis *units = qkv_attention_rows(a, kind);
        int64_t n = qkv_attention_rows(tokens, kind)->n;
        double *plain = malloc(sizeof *plain * (size_t)(n * n));
        float *got = malloc(sizeof *got * (size_t)(n * n)), *joined = malloc(sizeof *joined * (size_t)(n * n));
        roll_plainly(tokens, kind, n, plain);
        assert_int_equal(qkv_attention_rollout(tokens, kind, got), QKV_OK);
        assert_int_equal(qkv_attention_rollout(a, kind, joined), QKV_OK);
        for (int64_t i = 0; i < n * n; i++) assert_true(fabs(plain[i] - (double)got[i]) < 1e-6);
        for (int64_t i = 0; i < units->n; i++)
            for (int64_t k = 0; k < units->n; k++) {
                double sum = 0;
                for (int64_t r = units->first[i]; r < units->first[i + 1]; r++)
                    for (int64_t c = units->first[k]; c < units->first[k + 1]; c++) sum += plain[r * n + c];
                sum /= (double)(units->first[i + 1] - units->first[i]);
                assert_true(fabs(sum - (double)joined[i * units->n + k]) < 1e-6);
            }
        free(plain);
        free(got);
        free(joined);
        qkv_free(tokens);
        qkv_free(a);
        qkv_model_free(m);
    }
}

/* ---- measures ---- */

/* One head of one layer with the weights given. */
static qkv_head_measures measure(const float *map, int64_t rows, int64_t columns)
{
    const qkv__capture capture = {
        .shown = { .source.n_tokens = columns, .predicted.n_tokens = rows, .layers[QKV_ATTENTION_CROSS] = 1, .heads = 1 },
        .maps = { [QKV_ATTENTION_CROSS] = &map }
    };
    qkv_head_measures x;
    assert_int_equal(qkv_attention_stats(&capture.shown, QKV_ATTENTION_CROSS, 0, 0, &x), QKV_OK);
    return x;
}

static void near(double wanted, double got) { assert_true(fabs(wanted - got) < 1e-6); }

static void measures_of_matrices_by_hand(void **state)
{
    (void)state;
    qkv_head_measures x = measure((const float[]){ 1, 0, 0, 0, 1, 0, 0, 0, 1 }, 3, 3);
    near(0, x.entropy);
    near(1, x.diagonality);
    near(1.0 / 3, x.first);
    near(0, x.previous);
    near(1, x.same);
    near(0, x.next);
    x = measure((const float[]){ 1, 0, 0, 1, 0, 0, 0, 1, 0 }, 3, 3); /* each to the one before it */
    near(1 - (0.5 + 0.5) / 3, x.diagonality);
    near(2.0 / 3, x.first);
    near(1, x.previous);
    near(1.0 / 3, x.same);
    x = measure((const float[]){ 0, 1, 0, 0, 0, 1, 0.5f, 0.25f, 0.25f }, 3, 3);
    near(1, x.next); /* the last row has no next */
    near(0.25 / 2, x.previous);
    near((0.5 * log(2) + 0.5 * log(4)) / 3, x.entropy);
    near(0.5 / 3, x.first);
    x = measure((const float[]){ 0.25f, 0.25f, 0.25f, 0.25f, 0, 0.5f, 0, 0.5f }, 2, 4);
    near((log(4) + log(2)) / 2, x.entropy);
    near(1 - ((1.0 / 3 + 2.0 / 3 + 1) / 4 + (2.0 / 3) / 2) / 2, x.diagonality);
    near((0.25 + 0.5) / 2, x.same);
    near((0.25 + 0) / 2, x.next);
    x = measure((const float[]){ 0.5f, 0.5f, 0.25f, 0.75f, 1, 0, 0, 1 }, 4, 2); /* more rows than columns */
    near((0.5 + 0.75) / 2, x.same);
    near(0.5, x.next);
    near((0.25 + 0) / 2, x.previous);
    x = measure((const float[]){ 1 }, 1, 1);
    near(1, x.diagonality);
    near(1, x.same);
    near(0, x.previous);
    near(0, x.next);
}

/* ---- bits ---- */

static void same_bits_on_any_threads(void **state)
{
    (void)state;
    enum { MOST = 80 * 80 };
    static float wanted[MOST], got[MOST], rolled[MOST], again[MOST];
    qkv_model *m = make_model(pair);
    qkv_head_measures first, now;
    for (int threads = 1; threads <= 4; threads *= 2) {
        qkv_set_num_threads(threads);
        qkv_attention_capture *a = attend(m, "the cat sat on the 狗 and the dog sat on the 猫, I love you and the mat", NULL,
                                          NULL);
        assert_true(a->source.n <= 80 && a->predicted.n <= 80);
        assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_CROSS, -1, -1, threads > 1 ? got : wanted), QKV_OK);
        assert_int_equal(qkv_attention_rollout(a, QKV_ATTENTION_ENCODER, threads > 1 ? again : rolled), QKV_OK);
        assert_int_equal(qkv_attention_stats(a, QKV_ATTENTION_CROSS, 1, 0, threads > 1 ? &now : &first), QKV_OK);
        if (threads > 1) {
            assert_memory_equal(wanted, got, sizeof wanted);
            assert_memory_equal(rolled, again, sizeof rolled);
            assert_memory_equal(&first, &now, sizeof first);
        }
        qkv_free(a);
    }
    qkv_set_num_threads(0);
    qkv_model_free(m);
}

/* ---- errors ---- */

static void refused(const qkv_model *m, const char *source, const char *target, const qkv_attend_opts *opts, qkv_status status,
                    const char *piece)
{
    qkv_attention_capture *a = NULL;
    qkv_attend_opts all = opts ? *opts : (qkv_attend_opts){ 0 };
    all.target = qkv_cstr(target);
    assert_int_equal(qkv_attend(m, qkv_cstr(source), &all, &a), status);
    if (!strstr(qkv_error(), piece)) fail_msg("\"%s\" is missing in: %s", piece, qkv_error());
    assert_true(!a || (!a->layers[0] && !a->layers[1] && !a->layers[2] && !a->source.n && !a->found));
    qkv_free(a);
}

static void bad_texts_and_options(void **state)
{
    (void)state;
    const int32_t big = 100000, small = -1;
    qkv_model *m = make_model(pair), *e = make_model(encoder), *d = make_model(decoder),
              *ids = qkv_model_new(&(qkv_config){ .vocab_size = 9, .encoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8 }, 0);
    refused(NULL, "x", NULL, NULL, QKV_USAGE, "a model");
    refused(m, NULL, NULL, NULL, QKV_USAGE, "a text");
    assert_int_equal(qkv_attend(m, qkv_cstr("x"), NULL, NULL), QKV_USAGE);
    refused(ids, "x", NULL, NULL, QKV_USAGE, "no tokenizer");
    refused(m, "", NULL, NULL, QKV_USAGE, "empty");
    refused(m, " \t\xE3\x80\x80", NULL, NULL, QKV_USAGE, "empty");
    refused(e, "", NULL, NULL, QKV_USAGE, "empty");
    refused(d, "", "x", NULL, QKV_USAGE, "empty");
    refused(e, "x", "y", NULL, QKV_USAGE, "no target");
    refused(e, "x", NULL, &(qkv_attend_opts){ .target_ids = &big, .n_target_ids = 1 }, QKV_USAGE, "no target");
    refused(m, "x", "y", &(qkv_attend_opts){ .target_ids = &big, .n_target_ids = 1 }, QKV_USAGE, "choose one");
    refused(m, "x", NULL, &(qkv_attend_opts){ .target_ids = &big, .n_target_ids = 1 }, QKV_USAGE, "100000, outside 0..");
    refused(d, "x", NULL, &(qkv_attend_opts){ .target_ids = &small, .n_target_ids = 1 }, QKV_USAGE, "-1, outside 0..");
    refused(m, "x", NULL, &(qkv_attend_opts){ .n_target_ids = 1 }, QKV_USAGE, "missing");
    refused(m, "x", NULL, &(qkv_attend_opts){ .target_ids = &big, .n_target_ids = -1 }, QKV_USAGE, "missing");
    refused(m, "x", NULL, &(qkv_attend_opts){ .beam_size = -1 }, QKV_USAGE, "beam -1");
    qkv_model_free(ids);
    qkv_model_free(d);
    qkv_model_free(e);
    for (int64_t i = 0; i < qkv__params_block(qkv_model_params(m)); i++) qkv__params_data(qkv_model_params(m))[i] = NAN;
    refused(m, "x", "y", NULL, QKV_NUMERIC, "not finite");
    refused(m, "x", NULL, NULL, QKV_NUMERIC, "");
    qkv_model_free(m);
}

/* A decoder alone needs neither a start nor an end; who translates does. */
static void tokenizers_without_marks(void **state)
{
    (void)state;
    static const char *const specials[] = { "<pad>", "<s>", "</s>" };
    for (int k = 0; k < 9; k++) { /* neither of the two, one, the other */
        const char *has[] = { specials[0], specials[k / 3] };
        qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
        qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .specials = has, .n_specials = 1 + (k >= 3) });
        qkv_model *m = make_model_with(k % 3 == 0 ? decoder : k % 3 == 1 ? encoder : pair, t);
        if (k % 3) refused(m, "xyz", NULL, NULL, QKV_USAGE, k / 3 == 1 ? "no token </s>" : "no token <s>");
        else {
            qkv_attention_capture *a = attend(m, "xyz", NULL, NULL);
            assert_int_equal(a->target.n, k == 3 ? 4 : 3);
            qkv_free(a);
        }
        qkv_word_counts_free(w);
        qkv_model_free(m);
    }
}

/* A model that allows nothing but the padding, which no translation has. */
static void no_translation(void **state)
{
    (void)state;
    qkv_model *m = make_model(pair);
    qkv_params *p = qkv_model_params(m);
    qkv_tensor *embed = qkv_params_find(p, "embed.weight");
    float *gain = qkv_tensor_data_mut(qkv_params_find(p, "decoder.1.ffn_norm.weight")),
          *bias = qkv_tensor_data_mut(qkv_params_find(p, "decoder.1.ffn_norm.bias"));
    int32_t pad = qkv_tokenizer_id(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), "<pad>");
    for (int64_t i = 0; i < qkv_tensor_dim(embed, 0); i++)
        qkv_tensor_data_mut(embed)[i * qkv_tensor_dim(embed, 1)] = i == pad ? 0 : -1e4f;
    for (int64_t i = 0; i < qkv_tensor_dim(embed, 1); i++) gain[i] = 0, bias[i] = i ? 0 : 1e35f; /* all other logits are -inf */
    refused(m, "x", NULL, NULL, QKV_FAILURE, "the search found no translation");
    qkv_model_free(m);
}

static void limits(void **state)
{
    (void)state;
    qkv_model *m = make_model((shape){ 1, 1, QKV_TOKEN_BPE, QKV_POSITION_LEARNED, 0 });
    qkv_attention_capture *a = attend(m, "xxxxxxxxxxx", "xxxxxxxxxxx", NULL); /* 12 positions, one for </s> or <s> */
    qkv_free(a);
    refused(m, "xxxxxxxxxxxx", "x", NULL, QKV_LIMIT, "the text has 13 tokens, the model has positions for 12");
    refused(m, "x", "xxxxxxxxxxxx", NULL, QKV_LIMIT, "13 tokens");
    qkv_model_free(m);
    m = make_model((shape){ 0, 1, QKV_TOKEN_BPE, QKV_POSITION_LEARNED, 0 });
    refused(m, "xxxxxx", "xxxxxx", NULL, QKV_LIMIT, "13 tokens");
    qkv_model_free(m);
    m = make_model(pair);
    /* 4 ids read by the encoder, 3 by the decoder: 2 heads of 1 * 4 * 4 + 2 * (3 * 3 + 3 * 4) weights */
    size_t bytes = sizeof(float) * HEADS * (16 + 2 * (9 + 12));
    a = attend(m, "xxx", "xx", &(qkv_attend_opts){ .max_bytes = bytes });
    assert_int_equal(a->source.n * a->source.n + 2 * a->target.n * (a->target.n + a->source.n), 16 + 2 * (9 + 12));
    qkv_free(a);
    refused(m, "xxx", "xx", &(qkv_attend_opts){ .max_bytes = bytes - 1 }, QKV_LIMIT, "give a shorter text");
    refused(m, "xxx", NULL, &(qkv_attend_opts){ .max_bytes = 100 }, QKV_LIMIT, "give a shorter text");
    qkv_model_free(m);
}

static void joined_weights(void **state)
{
    (void)state;
    static const float weights[] = { 0.5f, 0.25f, 0.25f, 0.125f, 0.375f, 0.5f };
    static const int64_t two[] = { 0, 1, 3 }, one[] = { 0, 2 }, each[] = { 0, 1, 2 }, gap[] = { 0, 2, 2 }, late[] = { 1, 3 };
    float joined[4];
    assert_int_equal(qkv_attention_join(weights, each, 2, two, 2, joined), QKV_OK);
    assert_memory_equal(joined, ((const float[]){ 0.5f, 0.5f, 0.125f, 0.875f }), sizeof joined);
    assert_int_equal(qkv_attention_join(weights, one, 1, two, 2, joined), QKV_OK);
    assert_memory_equal(joined, ((const float[]){ 0.3125f, 0.6875f }), 2 * sizeof *joined);
    assert_int_equal(qkv_attention_join(weights, one, 1, gap, 2, joined), QKV_USAGE);
    assert_int_equal(qkv_attention_join(weights, late, 1, two, 2, joined), QKV_USAGE);
    assert_int_equal(qkv_attention_join(weights, one, -1, two, 2, joined), QKV_USAGE);
    assert_int_equal(qkv_attention_join(weights, NULL, 1, two, 2, joined), QKV_USAGE);
    assert_int_equal(qkv_attention_join(NULL, one, 1, two, 2, joined), QKV_USAGE);
    assert_int_equal(qkv_attention_join(weights, one, 1, two, 2, NULL), QKV_USAGE);
}

static void heads_that_are_not_there(void **state)
{
    (void)state;
    float cells[ROOM];
    qkv_head_measures x;
    qkv_model *m = make_model(encoder);
    qkv_attention_capture *a = attend(m, "I", NULL, NULL);
    const qkv_attention_capture none = { 0 };
    assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_ENCODER, LAYERS, 0, cells), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no layer 2: encoder attention has layers 0 to 1"));
    assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_ENCODER, 0, HEADS, cells), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no head 2: every layer has heads 0 to 1"));
    assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_ENCODER, -2, 0, cells), QKV_USAGE);
    assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_ENCODER, 0, -2, cells), QKV_USAGE);
    assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_CROSS, 0, 0, cells), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no cross attention: it has encoder"));
    assert_int_equal(qkv_attention_weights(a, (qkv_attention_kind)3, 0, 0, cells), QKV_USAGE);
    assert_int_equal(qkv_attention_weights(a, (qkv_attention_kind)-1, 0, 0, cells), QKV_USAGE);
    assert_int_equal(qkv_attention_weights(a, QKV_ATTENTION_ENCODER, 0, 0, NULL), QKV_USAGE);
    assert_int_equal(qkv_attention_weights(NULL, QKV_ATTENTION_ENCODER, 0, 0, cells), QKV_USAGE);
    assert_int_equal(qkv_attention_weights(&none, QKV_ATTENTION_ENCODER, 0, 0, cells), QKV_USAGE);
    assert_int_equal(qkv_attention_stats(a, QKV_ATTENTION_ENCODER, 0, -1, &x), QKV_USAGE);
    assert_int_equal(qkv_attention_stats(a, QKV_ATTENTION_ENCODER, LAYERS, 0, &x), QKV_USAGE);
    assert_int_equal(qkv_attention_stats(a, QKV_ATTENTION_DECODER, 0, 0, &x), QKV_USAGE);
    assert_int_equal(qkv_attention_rollout(a, QKV_ATTENTION_DECODER, cells), QKV_USAGE);
    assert_null(qkv_attention_rows(&none, QKV_ATTENTION_ENCODER));
    assert_null(qkv_attention_columns(NULL, QKV_ATTENTION_ENCODER));
    qkv_free(a);
    qkv_model_free(m);
    m = make_model(pair);
    a = attend(m, "I", "x", NULL);
    assert_int_equal(qkv_attention_rollout(a, QKV_ATTENTION_CROSS, cells), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "two sides"));
    qkv_free(a);
    qkv_model_free(m);
}

static qkv_status attend_once(void)
{
    float cells[40 * 40];
    qkv_attention_capture *a = NULL;
    qkv_model *m = make_model((shape){ 1, 2, QKV_TOKEN_BPE, QKV_POSITION_LEARNED, 0 });
    qkv_status status = m ? qkv_attend(m, (qkv_str){ "I \xFF", 3 }, &(qkv_attend_opts){ .beam_size = 2 }, &a)
                          : qkv_error_status();
    if (!status) status = qkv_attend(m, qkv_cstr("the cat"), &(qkv_attend_opts){ .target = (qkv_str){ "我\xFF", 4 } }, &a);
    if (!status) status = qkv_attention_weights(a, QKV_ATTENTION_CROSS, -1, -1, cells);
    if (!status) status = qkv_attention_rollout(a, QKV_ATTENTION_DECODER, cells);
    qkv_free(a);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(attend_once) > 100);
}

static void names_of_kinds(void **state)
{
    (void)state;
    assert_string_equal(qkv_attention_kind_name(QKV_ATTENTION_ENCODER), "encoder");
    assert_string_equal(qkv_attention_kind_name(QKV_ATTENTION_DECODER), "decoder");
    assert_string_equal(qkv_attention_kind_name(QKV_ATTENTION_CROSS), "cross");
    assert_null(qkv_attention_kind_name(QKV_ATTENTION_KINDS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_a_tape),
        cmocka_unit_test(a_space_is_seen),
        cmocka_unit_test(ids_are_a_target_too),
        cmocka_unit_test(target_is_the_translation),
        cmocka_unit_test(units_have_the_text_that_was_given),
        cmocka_unit_test(unknown_words_keep_their_text),
        cmocka_unit_test(broken_characters_are_shown),
        cmocka_unit_test(pieces_are_joined_and_specials_left_out),
        cmocka_unit_test(means),
        cmocka_unit_test(rollout_is_the_product_of_layers),
        cmocka_unit_test(measures_of_matrices_by_hand),
        cmocka_unit_test(same_bits_on_any_threads),
        cmocka_unit_test(bad_texts_and_options),
        cmocka_unit_test(tokenizers_without_marks),
        cmocka_unit_test(no_translation),
        cmocka_unit_test(limits),
        cmocka_unit_test(joined_weights),
        cmocka_unit_test(heads_that_are_not_there),
        cmocka_unit_test(names_of_kinds),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
