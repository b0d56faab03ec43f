/* test_session.c: whatever a session reads, in whatever blocks, beside whatever rows, has the bits of a whole forward. */
#include <qkv/session.h>
#include <qkv/unstable/util.h>
#include <qkv/unstable/inspect.h>

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
#include "nn/params.h"
#include "model/model.h"

/* The tests' own dice. */
typedef struct dice {
    uint32_t state;
} dice;
static int32_t throw(dice * d, int64_t below)
{
    d->state = d->state * 1664525u + 1013904223u;
    return (int32_t)((d->state >> 8) % (uint32_t)below);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

enum { VOCABULARY = 11, MOST = 240, SOURCE = 40, ROWS = 6 };

static const qkv_config small = { .vocab_size = VOCABULARY, .decoder_layers = 2, .dim = 24, .heads = 2, .d_ff = 32 };

/* Positions, norms, grouped heads, widths of heads that are whole vectors, parts of one, and both, biases by distance, windows and
 * caps. */
enum { KINDS = 10 };
static qkv_config kind_of(int i)
{
    qkv_config o = small;
    if (i == 1)
        o.positions = QKV_POSITION_ROPE, o.pre_norm = 1, o.norm = QKV_NORM_RMS, o.heads = 4, o.kv_heads = 2, o.dim = 144;
    if (i == 2)
        o.positions = QKV_POSITION_LEARNED, o.max_positions = MOST, o.first_position = 2, o.embed_norm = 1, o.output_bias = 1;
    if (i == 3) o.encoder_layers = 2, o.dim = 128;
    if (i == 4) o.encoder_layers = 1, o.pre_norm = 1, o.positions = QKV_POSITION_SINUSOID_HALVES, o.dim = 34;
    if (i == 5) o.encoder_layers = 1, o.positions = QKV_POSITION_ROPE, o.heads = 4, o.kv_heads = 1, o.dim = 80, o.unscaled = 1;
    if (i == 6) o.positions = QKV_POSITION_NONE, o.heads = 1, o.head = 1, o.untied = 1, o.activation = QKV_ACTIVATION_GELU;
    if (i > 6) o.size = sizeof o;
    if (i == 7)
        o.relative_buckets = 8, o.window_size = 20, o.window_from_layer = 1, o.shared_layers = 1, o.heads = 4, o.kv_heads = 2;
    if (i == 8)
        o.encoder_layers = 1, o.relative_buckets = 12, o.attention_scale = 1, o.scaled_output = 1,
        o.positions = QKV_POSITION_SINUSOID_FAIRSEQ;
    if (i == 9)
        o.window_size = 130, o.score_softcap = 0.5f, o.logit_softcap = 2, o.positions = QKV_POSITION_ROPE, o.qk_norm = 1;
    return o;
}

static qkv_model *make_model(const qkv_config *o)
{
    qkv_model *m = qkv_model_new(o, 7);
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; m && i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 1.5f;
    return m;
}

/* ---- what a row has read, and a forward over all of it ---- */

typedef struct shadow {
    int32_t ids[MOST];
    int64_t n;
    int source;
} shadow;

static int32_t sources[ROWS * SOURCE], source_lengths[ROWS] = { 40, 1, 17, 16, 33, 5 };

static qkv_tensor *whole_forward(const qkv_model *m, qkv_tape *t, const shadow *r)
{
    const qkv__transformer *x = qkv__model_transformer(m);
    qkv_tensor *memory = NULL;
    if (qkv__transformer_config(x)->encoder_layers)
        memory = qkv__transformer_encode(
            x, t, &(qkv_tokens){ .ids = sources + r->source * SOURCE, .rows = 1, .length = source_lengths[r->source] });
    return qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = r->ids, .rows = 1, .length = r->n }, memory, NULL));
}

static void compare_row(const qkv_model *m, const shadow *r, const float *logits)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const float *whole = qkv_tensor_data(whole_forward(m, t, r));
    assert_non_null(whole);
    assert_memory_equal(logits, whole + (r->n - 1) * VOCABULARY, sizeof(float) * VOCABULARY);
    qkv_tape_free(t);
}

/* ---- doing things at random ---- */

typedef struct play {
    const qkv_model *m;
    qkv_session *s;
    shadow rows[ROWS];
    int64_t n;
    dice random;
} play;

static void read_some(play *p, int64_t most)
{
    int64_t counts[ROWS], n = 0;
    int32_t ids[ROWS * MOST];
    for (int64_t i = 0; i < p->n; i++) {
        shadow *r = &p->rows[i];
        counts[i] = throw(&p->random, most + 1);
        if (counts[i] > MOST - r->n) counts[i] = MOST - r->n;
        for (int64_t k = 0; k < counts[i]; k++) ids[n++] = r->ids[r->n++] = throw(&p->random, VOCABULARY);
    }
    assert_int_equal(qkv_session_read(p->s, ids, counts, QKV_LOGITS_LAST), QKV_OK);
    const float *logits = qkv_tensor_data(qkv_session_logits(p->s));
    for (int64_t i = 0; i < p->n; i++) {
        assert_int_equal(qkv_session_length(p->s, i), p->rows[i].n);
        if (counts[i]) compare_row(p->m, &p->rows[i], logits), logits += VOCABULARY;
    }
}

static void select_some(play *p)
{
    shadow before[ROWS];
    int64_t parents[ROWS], n = 1 + throw(&p->random, ROWS);
    memcpy(before, p->rows, sizeof before);
    for (int64_t i = 0; i < n; i++) p->rows[i] = before[parents[i] = throw(&p->random, p->n)];
    assert_int_equal(qkv_session_select(p->s, parents, n), QKV_OK);
    p->n = n;
}

static void rewind_some(play *p)
{
    int64_t i = throw(&p->random, p->n);
    p->rows[i].n = throw(&p->random, p->rows[i].n + 1);
    assert_int_equal(qkv_session_rewind(p->s, i, p->rows[i].n), QKV_OK);
}

static void start(play *p)
{
    bool has_encoder = qkv__model_config(p->m)->encoder_layers > 0;
    p->n = ROWS;
    for (int i = 0; i < ROWS; i++) p->rows[i] = (shadow){ .source = i };
    assert_int_equal(has_encoder
                         ? qkv_session_encode(
                               p->s, &(qkv_tokens){ .ids = sources, .rows = ROWS, .length = SOURCE, .lengths = source_lengths })
                         : qkv_session_start(p->s, ROWS),
                     QKV_OK);
}

static void play_with(int kind)
{
    const qkv_config o = kind_of(kind);
    qkv_model *m = make_model(&o);
    play p = { .m = m, .s = qkv_session_new(m, NULL), .random = { 5 + (uint32_t)kind } };
    assert_non_null(p.s);
    for (int round = 0; round < 3; round++) {
        start(&p);
        read_some(&p, 100);
        for (int i = 0; i < 12; i++) {
            int32_t what = throw(&p.random, 6);
            if (what < 2) read_some(&p, 1);
            else if (what == 2) read_some(&p, 7);
            else if (what == 3) read_some(&p, 60);
            else if (what == 4) select_some(&p);
            else rewind_some(&p);
        }
    }
    qkv_session_free(p.s);
    qkv_model_free(m);
}

static void everything_has_the_bits_of_a_whole_forward(void **state)
{
    (void)state;
    const char *isa, *now = qkv_isa();
    for (int i = 0; (isa = qkv_isa_at(i)); i++) {
        if (IS_SANITIZED && strcmp(isa, now)) continue; /* ten times as slow there */
        assert_int_equal(qkv_set_isa(isa), QKV_OK);
        for (int kind = 0; kind < KINDS; kind++) play_with(kind);
    }
    qkv_set_isa(now);
}

/* More than one block, or several parts for each thread, and the logits of all tokens. */
static void a_long_read_is_cut_for_any_threads(void **state)
{
    (void)state;
    enum { LONG = 1100 };
    static const int threads[] = { 1, 2, 3, 7 };
    const qkv_config o = kind_of(1);
    qkv_model *m = make_model(&o);
    qkv_session *s = qkv_session_new(m, NULL);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    int32_t *ids = malloc(sizeof *ids * 2 * LONG);
    dice random = { 3 };
    for (int i = 0; i < 2 * LONG; i++) ids[i] = throw(&random, VOCABULARY);
    const float *whole = qkv_tensor_data(qkv__transformer_logits(
        x, qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 2, .length = LONG }, NULL, NULL)));
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        qkv_set_num_threads(threads[i]);
        assert_int_equal(qkv_session_start(s, 2), QKV_OK);
        assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ LONG, LONG }, QKV_LOGITS_ALL), QKV_OK);
        assert_int_equal(qkv_tensor_dim(qkv_session_logits(s), 0), 2 * LONG);
        assert_memory_equal(qkv_tensor_data(qkv_session_logits(s)), whole, sizeof(float) * 2 * LONG * VOCABULARY);
        assert_int_equal(qkv_session_start(s, 2), QKV_OK);
        assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ LONG, LONG }, QKV_LOGITS_LAST), QKV_OK);
        assert_memory_equal(qkv_tensor_data(qkv_session_logits(s)), whole + (LONG - 1) * VOCABULARY,
                            sizeof(float) * VOCABULARY);
        assert_memory_equal(qkv_tensor_data(qkv_session_logits(s)) + VOCABULARY, whole + (2 * LONG - 1) * VOCABULARY,
                            sizeof(float) * VOCABULARY);
    }
    qkv_set_num_threads(0);
    free(ids);
    qkv_tape_free(t);
    qkv_session_free(s);
    qkv_model_free(m);
}

/* What is changed in a model counts for the queries that see it, wherever the text is cut. */
static void a_touched_model_is_read_for_any_threads(void **state)
{
    (void)state;
    enum { LONG = 400 };
    const qkv_config o = kind_of(1);
    const float row[] = { 0.25f, 0.75f };
    const qkv_edit touches[] = {
        { .what = QKV_EDIT_ZERO_VALUE, .kind = QKV_ATTENTION_DECODER, .layer = 1, .place = 165 },
        { .what = QKV_EDIT_SWAP_VALUES, .kind = QKV_ATTENTION_DECODER, .place = 90, .other = 210 },
        { .what = QKV_EDIT_HIDE_KEY, .kind = QKV_ATTENTION_DECODER, .place = 100 },
        { .what = QKV_EDIT_ROW, .kind = QKV_ATTENTION_DECODER, .place = 130, .row = row, .n_row = 2 }
    };
    qkv_model *m = make_model(&o), *touched = qkv_model_edit(m, touches, sizeof touches / sizeof *touches);
    float first[LONG * VOCABULARY];
    int32_t ids[LONG];
    dice random = { 9 };
    assert_non_null(touched);
    for (int i = 0; i < LONG; i++) ids[i] = throw(&random, VOCABULARY);
    for (int threads = 1; threads <= 4; threads++) {
        qkv_session *s = qkv_session_new(touched, NULL);
        qkv_set_num_threads(threads);
        assert_int_equal(qkv_session_start(s, 1), QKV_OK);
        assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ LONG }, QKV_LOGITS_ALL), QKV_OK);
        if (threads == 1) memcpy(first, qkv_tensor_data(qkv_session_logits(s)), sizeof first);
        assert_memory_equal(qkv_tensor_data(qkv_session_logits(s)), first, sizeof first);
        qkv_session_free(s);
    }
    qkv_set_num_threads(0);
    qkv_model_free(touched);
    qkv_model_free(m);
}

/* An id that there is not, in one of several parts: the row is as it was. */
static void an_error_in_one_of_several_parts(void **state)
{
    (void)state;
    enum { LONG = 600 };
    const qkv_config o = kind_of(0);
    qkv_model *m = make_model(&o);
    qkv_session *s = qkv_session_new(m, NULL);
    int32_t ids[LONG] = { 0 };
    float logits[VOCABULARY];
    qkv_set_num_threads(4);
    assert_int_equal(qkv_session_start(s, 1), QKV_OK);
    for (int place = -1; place < LONG; place += 151) {
        assert_int_equal(qkv_session_rewind(s, 0, 0), QKV_OK);
        if (place >= 0) {
            ids[place] = VOCABULARY;
            assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ LONG }, QKV_LOGITS_LAST), QKV_USAGE);
            assert_int_equal(qkv_session_length(s, 0), 0);
            assert_null(qkv_session_logits(s));
            ids[place] = 0;
        }
        assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ LONG }, QKV_LOGITS_LAST), QKV_OK);
        if (place < 0) memcpy(logits, qkv_tensor_data(qkv_session_logits(s)), sizeof logits);
        assert_memory_equal(qkv_tensor_data(qkv_session_logits(s)), logits, sizeof logits);
    }
    qkv_set_num_threads(0);
    qkv_session_free(s);
    qkv_model_free(m);
}

/* ---- memory ---- */

/* What a session holds after it has encoded. */
static size_t bytes_of_encoding(int layers)
{
    qkv_config o = kind_of(3);
    o.encoder_layers = layers;
    qkv_model *m = make_model(&o);
    const qkv__memory table = { failing_alloc, failing_release };
    qkv_shutdown();
    failing = (struct failing){ .fail_at = -1 };
    qkv__set_memory(&table);
    qkv_session *s = qkv_session_new(m, NULL);
    assert_int_equal(
        qkv_session_encode(s, &(qkv_tokens){ .ids = sources, .rows = ROWS, .length = SOURCE, .lengths = source_lengths }),
        QKV_OK);
    size_t held = failing.held;
    qkv_session_free(s);
    qkv_shutdown();
    qkv__set_memory(NULL);
    qkv_model_free(m);
    return held;
}

static void the_layers_of_an_encoder_share_their_memory(void **state)
{
    (void)state;
    assert_int_equal(bytes_of_encoding(6), bytes_of_encoding(2));
}

static void rows_share_their_beginning(void **state)
{
    (void)state;
    const qkv_config o = kind_of(0);
    qkv_model *m = make_model(&o);
    qkv_session *s = qkv_session_new(m, NULL);
    int32_t ids[MOST] = { 0 };
    assert_int_equal(qkv_session_start(s, 1), QKV_OK);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 100 }, QKV_LOGITS_NONE), QKV_OK);
    assert_null(qkv_session_logits(s));
    size_t one = qkv_session_bytes(s);
    assert_int_equal(qkv_session_select(s, (int64_t[]){ 0, 0, 0, 0 }, 4), QKV_OK);
    assert_int_equal(qkv_session_bytes(s), one); /* nothing was copied */
    assert_int_equal(qkv_session_read(s, (int32_t[]){ 1, 2, 3, 4 }, NULL, QKV_LOGITS_LAST), QKV_OK);
    assert_true(qkv_session_bytes(s) < one + one / 2); /* but the last page */
    size_t four = qkv_session_bytes(s);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(qkv_session_select(s, (int64_t[]){ 3, 2, 1, 0 }, 4), QKV_OK);
        assert_int_equal(qkv_session_read(s, (int32_t[]){ 1, 2, 3, 4 }, NULL, QKV_LOGITS_LAST), QKV_OK);
    }
    assert_int_equal(qkv_session_bytes(s), four); /* what moved was not copied */
    qkv_session_free(s);
    qkv_model_free(m);
}

/* ---- looking inside ---- */

static void attention_is_that_of_a_whole_forward(void **state)
{
    (void)state;
    for (int kind = 3; kind < 6; kind++) {
        const qkv_config o = kind_of(kind);
        qkv_model *m = make_model(&o);
        const qkv__transformer *x = qkv__model_transformer(m);
        qkv_session *s = qkv_session_new(m, &(qkv_session_opts){ .keep_attention = 1, .keep_hidden = 1 });
        qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1, .keep_attention = 1, .keep_hidden = 1 });
        enum { N = 23, FIRST = 20 };
        int32_t ids[N];
        dice random = { 8 };
        for (int i = 0; i < N; i++) ids[i] = throw(&random, VOCABULARY);
        qkv_tensor *memory = qkv__transformer_encode(x, t,
                                                     &(qkv_tokens){ .ids = sources, .rows = 1, .length = source_lengths[0] });
        qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = N }, memory, NULL);
        assert_int_equal(
            qkv_session_encode(s, &(qkv_tokens){ .ids = sources, .rows = 1, .length = SOURCE, .lengths = source_lengths }),
            QKV_OK);
        assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ FIRST }, QKV_LOGITS_NONE), QKV_OK);
        assert_int_equal(qkv_session_read(s, ids + FIRST, (int64_t[]){ N - FIRST }, QKV_LOGITS_LAST), QKV_OK);
        for (int l = 0; l < o.decoder_layers; l++)
            for (int side = 0; side < 2; side++) {
                qkv_tensor *got = qkv_session_attention(s, (qkv_attention_kind)(QKV_ATTENTION_DECODER + side), l, 0);
                qkv_tensor *all = qkv_tape_attention(t, o.encoder_layers + 2 * l + side);
                int64_t keys = side ? source_lengths[0] : N;
                assert_int_equal(qkv_tensor_dim(got, 3), keys);
                for (int64_t h = 0; h < o.heads; h++)
                    assert_memory_equal(qkv_tensor_data(got) + h * (N - FIRST) * keys,
                                        qkv_tensor_data(all) + (h * N + FIRST) * keys,
                                        sizeof(float) * (size_t)((N - FIRST) * keys));
            }
        for (int l = 0; l < o.encoder_layers; l++) {
            qkv_tensor *got = qkv_session_attention(s, QKV_ATTENTION_ENCODER, l, 0), *all = qkv_tape_attention(t, l);
            assert_memory_equal(qkv_tensor_data(got), qkv_tensor_data(all), sizeof(float) * (size_t)qkv_tensor_count(all));
        }
        assert_memory_equal(qkv_tensor_data(qkv_session_encoded(s)), qkv_tensor_data(memory),
                            sizeof(float) * (size_t)qkv_tensor_count(memory));
        for (int l = 0; l <= o.decoder_layers; l++)
            assert_memory_equal(qkv_tensor_data(qkv_session_hidden(s, l)),
                                qkv_tensor_data(qkv_tape_hidden(t, o.encoder_layers + 1 + l)) + FIRST * o.dim,
                                sizeof(float) * (size_t)((N - FIRST) * o.dim));
        assert_null(qkv_session_attention(s, QKV_ATTENTION_DECODER, o.decoder_layers, 0));
        assert_null(qkv_session_attention(s, QKV_ATTENTION_DECODER, 0, 1));
        assert_null(qkv_session_hidden(s, o.decoder_layers + 1));
        qkv_tape_free(t);
        qkv_session_free(s);
        qkv_model_free(m);
    }
}

/* ---- what is refused ---- */

static void errors_leave_a_session_as_it_was(void **state)
{
    (void)state;
    const qkv_config o = kind_of(2), both = kind_of(3),
                     encoder = { .vocab_size = VOCABULARY, .encoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8 };
    qkv_model *m = make_model(&o), *translator = make_model(&both), *alone = make_model(&encoder);
    qkv_session *s = qkv_session_new(m, NULL), *t = qkv_session_new(translator, NULL);
    int32_t ids[MOST + 1] = { 0 };
    assert_null(qkv_session_new(NULL, NULL));
    qkv_session *e = qkv_session_new(alone, NULL);
    assert_int_equal(qkv_session_start(e, 1), QKV_USAGE);
    assert_null(qkv_session_encoded(e));
    assert_int_equal(qkv_session_encode(e, &(qkv_tokens){ .ids = ids, .rows = 2, .length = 3 }), QKV_OK);
    assert_int_equal(qkv_tensor_dim(qkv_session_encoded(e), 1), 3);
    assert_int_equal(qkv_session_read(e, ids, NULL, QKV_LOGITS_LAST), QKV_USAGE);
    assert_int_equal(qkv_session_encode(e, &(qkv_tokens){ .ids = (int32_t[]){ VOCABULARY }, .rows = 1, .length = 1 }),
                     QKV_USAGE);
    assert_null(qkv_session_encoded(e));
    qkv_session_free(e);
    assert_int_equal(qkv_session_encode(s, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 1 }), QKV_USAGE);
    assert_int_equal(qkv_session_start(t, 1), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "begin with qkv_session_encode()"));
    assert_int_equal(qkv_session_start(s, -1), QKV_USAGE);
    assert_int_equal(qkv_session_encode(t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 3, .lengths = (int32_t[]){ 4 } }),
                     QKV_USAGE);
    assert_int_equal(qkv_session_start(s, 2), QKV_OK);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 3, 2 }, QKV_LOGITS_LAST), QKV_OK);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 1, MOST - 1 }, QKV_LOGITS_LAST), QKV_LIMIT);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 1, -1 }, QKV_LOGITS_LAST), QKV_USAGE);
    assert_int_equal(qkv_session_read(s, (int32_t[]){ 0, VOCABULARY }, NULL, QKV_LOGITS_LAST), QKV_USAGE);
    assert_int_equal(qkv_session_read(s, NULL, NULL, QKV_LOGITS_LAST), QKV_USAGE);
    assert_null(qkv_session_logits(s));
    assert_int_equal(qkv_session_select(s, (int64_t[]){ 2 }, 1), QKV_USAGE);
    assert_int_equal(qkv_session_rewind(s, 0, 4), QKV_USAGE);
    assert_int_equal(qkv_session_rewind(s, 2, 0), QKV_USAGE);
    assert_int_equal(qkv_session_length(s, 0), 3);
    assert_int_equal(qkv_session_length(s, 1), 2);
    assert_int_equal(qkv_session_length(s, 2), -1);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 0, MOST - 2 }, QKV_LOGITS_LAST), QKV_OK); /* to the last position */
    assert_int_equal(qkv_tensor_dim(qkv_session_logits(s), 0), 1);
    assert_int_equal(qkv_session_read(s, ids, NULL, QKV_LOGITS_LAST), QKV_LIMIT);
    qkv_session_free(NULL);
    qkv_session_free(s);
    qkv_session_free(t);
    qkv_model_free(m);
    qkv_model_free(translator);
    qkv_model_free(alone);
}

/* One before the first and one past the last of everything that is counted. */
static void nothing_lies_outside(void **state)
{
    (void)state;
    const qkv_config o = kind_of(3);
    qkv_model *m = make_model(&o);
    qkv_session *s = qkv_session_new(m, &(qkv_session_opts){ .keep_attention = 1 });
    int32_t ids[4] = { 1, 2, 3, 4 };
    assert_null(qkv_session_attention(s, QKV_ATTENTION_ENCODER, 0, 0)); /* nothing was read */
    assert_null(qkv_session_attention(s, QKV_ATTENTION_DECODER, 0, 0));
    assert_int_equal(
        qkv_session_encode(s, &(qkv_tokens){ .ids = sources, .rows = 2, .length = SOURCE, .lengths = (int32_t[]){ 3, -1 } }),
        QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "session: source 1 has -1 tokens, expected 0 to 40"));
    assert_int_equal(
        qkv_session_encode(
            s, &(qkv_tokens){ .ids = sources, .rows = 2, .length = SOURCE, .lengths = (int32_t[]){ SOURCE + 1, 3 } }),
        QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "session: source 0 has 41 tokens"));
    assert_int_equal(qkv_session_encode(s, &(qkv_tokens){ .ids = sources, .rows = 0, .length = SOURCE }), QKV_USAGE);
    assert_int_equal(qkv_session_encode(s, &(qkv_tokens){ .ids = sources, .rows = 1, .length = 0 }), QKV_USAGE);
    assert_int_equal(
        qkv_session_encode(s, &(qkv_tokens){ .ids = sources, .rows = 2, .length = SOURCE, .lengths = source_lengths }), QKV_OK);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 2, 2 }, (qkv_logits)(QKV_LOGITS_ALL + 1)), QKV_USAGE);
    assert_int_equal(qkv_session_read(s, ids, (int64_t[]){ 2, 2 }, QKV_LOGITS_LAST), QKV_OK);
    for (int side = 0; side < QKV_ATTENTION_KINDS; side++) {
        int layers = side == QKV_ATTENTION_ENCODER ? o.encoder_layers : o.decoder_layers;
        int64_t rows = side == QKV_ATTENTION_ENCODER ? 1 : 2;
        assert_non_null(qkv_session_attention(s, (qkv_attention_kind)side, layers - 1, rows - 1));
        assert_null(qkv_session_attention(s, (qkv_attention_kind)side, layers, 0));
        assert_null(qkv_session_attention(s, (qkv_attention_kind)side, -1, 0));
        assert_null(qkv_session_attention(s, (qkv_attention_kind)side, 0, rows));
        assert_null(qkv_session_attention(s, (qkv_attention_kind)side, 0, -1));
    }
    assert_int_equal(qkv_session_select(s, (int64_t[]){ 0, -1 }, 2), QKV_USAGE);
    assert_int_equal(qkv_session_select(s, (int64_t[]){ 0, 2 }, 2), QKV_USAGE);
    assert_int_equal(qkv_session_select(s, (int64_t[]){ 0 }, -1), QKV_USAGE);
    assert_int_equal(qkv_session_rewind(s, -1, 0), QKV_USAGE);
    assert_int_equal(qkv_session_rewind(s, 0, -1), QKV_USAGE);
    assert_int_equal(qkv_session_length(s, -1), -1);
    assert_non_null(qkv_session_logits(s));                /* what is refused forgets nothing */
    assert_int_equal(qkv_session_rewind(s, 1, 2), QKV_OK); /* to where it is */
    assert_null(qkv_session_logits(s));
    assert_null(qkv_session_attention(s, QKV_ATTENTION_DECODER, 0, 0));
    assert_int_equal(qkv_session_select(s, NULL, 0), QKV_OK);
    qkv_session_free(s);
    qkv_model_free(m);
}

static qkv_status use_a_session(void)
{
    const qkv_config o = kind_of(3);
    qkv_model *m = qkv_model_new(&o, 1);
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    int32_t ids[2 * 20] = { 0 };
    qkv_status status = s ? qkv_session_encode(
                                s, &(qkv_tokens){ .ids = sources, .rows = 2, .length = SOURCE, .lengths = source_lengths })
                          : qkv_error_status();
    if (!status) status = qkv_session_read(s, ids, (int64_t[]){ 18, 20 }, QKV_LOGITS_NONE);
    if (!status) status = qkv_session_select(s, (int64_t[]){ 1, 0, 0, 1 }, 4);
    if (!status) status = qkv_session_read(s, ids, NULL, QKV_LOGITS_LAST);
    if (!status) status = qkv_session_read(s, ids, NULL, QKV_LOGITS_LAST);
    qkv_session_free(s);
    qkv_model_free(m);
    return status;
}

/* Parts that threads read: after an error nobody waits for one that is not read, and what was there before is there still. */
static qkv_status status_of_parts;
static int kind_of_parts;
static void *read_in_parts(void *unused)
{
    (void)unused;
    qkv_config o = kind_of(kind_of_parts);
    o.relative_per_layer = o.relative_buckets > 0; /* a table on the tape for every layer */
    qkv_model *m = qkv_model_new(&o, 1);
    qkv_session *s = m ? qkv_session_new(m, NULL) : NULL;
    int32_t ids[2 * MOST] = { 0 };
    qkv_status status = s ? qkv_session_start(s, 2) : qkv_error_status();
    if (!status) status = qkv_session_read(s, ids, (int64_t[]){ 3, 5 }, QKV_LOGITS_NONE);
    bool has_rows = !status;
    if (!status) status = qkv_session_read(s, ids, (int64_t[]){ MOST, MOST }, QKV_LOGITS_LAST);
    int64_t more = status ? 0 : MOST;
    bool is_right = !has_rows || (qkv_session_length(s, 0) == 3 + more && qkv_session_length(s, 1) == 5 + more);
    qkv_session_free(s);
    qkv_model_free(m);
    status_of_parts = is_right ? status : QKV_FAILURE;
    return NULL;
}

static qkv_status use_parts(void)
{
    pthread_t thread; /* whose scratch memory ends with it */
    if (pthread_create(&thread, NULL, read_in_parts, NULL)) return QKV_FAILURE;
    pthread_join(thread, NULL);
    return status_of_parts;
}

static void memory_runs_out(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(use_a_session) > 20);
    for (int threads = 1; threads <= 2; threads++)
        for (kind_of_parts = 0; kind_of_parts <= 7; kind_of_parts += 7) {
            qkv_set_num_threads(threads);
            assert_true(each_allocation_fails(use_parts) > 20);
        }
    qkv_set_num_threads(0);
}

/* ---- threads ---- */

typedef struct reader {
    const qkv_model *m;
    float logits[VOCABULARY];
} reader;

static void *read_in_thread(void *data)
{
    reader *r = data;
    qkv_session *s = qkv_session_new(r->m, NULL);
    int32_t ids[60] = { 1, 2, 3 };
    qkv_session_start(s, 1);
    for (int i = 0; i < 5; i++) qkv_session_read(s, ids, (int64_t[]){ 30 }, QKV_LOGITS_LAST);
    memcpy(r->logits, qkv_tensor_data(qkv_session_logits(s)), sizeof r->logits);
    qkv_session_free(s);
    return NULL;
}

static void sessions_in_threads_share_a_model(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    const qkv_config o = kind_of(1);
    qkv_model *m = make_model(&o);
    pthread_t threads[THREADS];
    reader readers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i].m = m;
        assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, &readers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++) assert_memory_equal(readers[i].logits, readers[0].logits, sizeof readers[0].logits);
    qkv_model_free(m);
}

static int draw_sources(void **state)
{
    (void)state;
    dice random = { 2 };
    for (int i = 0; i < ROWS * SOURCE; i++) sources[i] = throw(&random, VOCABULARY);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_has_the_bits_of_a_whole_forward),
        cmocka_unit_test(a_long_read_is_cut_for_any_threads),
        cmocka_unit_test(a_touched_model_is_read_for_any_threads),
        cmocka_unit_test(an_error_in_one_of_several_parts),
        cmocka_unit_test(the_layers_of_an_encoder_share_their_memory),
        cmocka_unit_test(rows_share_their_beginning),
        cmocka_unit_test(attention_is_that_of_a_whole_forward),
        cmocka_unit_test(errors_leave_a_session_as_it_was),
        cmocka_unit_test(nothing_lies_outside),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(sessions_in_threads_share_a_model),
    };
    return cmocka_run_group_tests(tests, draw_sources, NULL);
}
