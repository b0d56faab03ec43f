/* test_classify.c: pooling and the classifier against plain numbers in double; labels in files; texts to classes and vectors:
 * the same bits whatever lies beside them. */
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
#include "lcg.h"
#include "model/model.h"
#include "as_strings.h"

enum { BATCH = 4, LENGTH = 6, DIM = 8, CLASSES = 3, HIDDEN = BATCH * LENGTH * DIM };
static const int32_t lengths[BATCH] = { 6, 3, 1, 4 };
static const int32_t classes[BATCH] = { 2, 0, 1, 2 };
static const char *const pooling_names[] = { "mean", "first", "last", "attention" };

/* ---- pooling and classifier in double ---- */

typedef struct numbers {
    double hidden[HIDDEN], query[DIM], weight[CLASSES * DIM], bias[CLASSES];
} numbers;

/* How much token i of row b counts. */
static void shares(const numbers *x, int b, qkv_pooling how, double out[LENGTH])
{
    double sum = 0;
    for (int i = 0; i < LENGTH; i++) {
        double score = 0;
        for (int d = 0; d < DIM; d++) score += x->query[d] * x->hidden[(b * LENGTH + i) * DIM + d];
        bool real = i < lengths[b];
        if (how == QKV_POOLING_MEAN) out[i] = real;
        else if (how == QKV_POOLING_FIRST) out[i] = i == 0;
        else if (how == QKV_POOLING_LAST) out[i] = i == lengths[b] - 1;
        else out[i] = real ? exp(score / sqrt(DIM)) : 0;
        sum += out[i];
    }
    for (int i = 0; i < LENGTH; i++) out[i] /= sum;
}

static void pooled_row(const numbers *x, int b, qkv_pooling how, double out[DIM])
{
    double share[LENGTH];
    shares(x, b, how, share);
    for (int d = 0; d < DIM; d++) {
        out[d] = 0;
        for (int i = 0; i < lengths[b]; i++) out[d] += share[i] * x->hidden[(b * LENGTH + i) * DIM + d];
    }
}

/* The mean cross-entropy of `classes`. */
static double loss_of(const numbers *x, qkv_pooling how)
{
    double loss = 0;
    for (int b = 0; b < BATCH; b++) {
        double pooled[DIM], logits[CLASSES], sum = 0;
        pooled_row(x, b, how, pooled);
        for (int k = 0; k < CLASSES; k++) {
            logits[k] = x->bias[k];
            for (int d = 0; d < DIM; d++) logits[k] += x->weight[k * DIM + d] * pooled[d];
            sum += exp(logits[k]);
        }
        loss += (log(sum) - logits[classes[b]]) / BATCH;
    }
    return loss;
}

/* ---- the same in the library ---- */

typedef struct setup {
    qkv_params *params;
    qkv__transformer *model;
    qkv_tape *tape;
    numbers x;
    float hidden[HIDDEN];
} setup;

static void copy_out(double *to, const float *from, int n)
{
    for (int i = 0; i < n; i++) to[i] = (double)from[i];
}

static void begin(setup *s, qkv_pooling how)
{
    const qkv_config o = {
        .vocab_size = 9, .encoder_layers = 1, .dim = DIM, .heads = 2, .d_ff = 8, .classes = CLASSES, .pooling = how
    };
    *s = (setup){ .params = qkv_params_new(1), .tape = qkv_tape_new(NULL) };
    s->model = qkv__transformer_new(s->params, &o);
    assert_non_null(s->model);
    lcg_state = 5;
    lcg_fill(s->hidden, HIDDEN);
    copy_out(s->x.hidden, s->hidden, HIDDEN);
    for (int b = 0; b < BATCH; b++) /* padding that would be seen if it counted */
        for (int i = lengths[b]; i < LENGTH; i++)
            for (int d = 0; d < DIM; d++) s->hidden[(b * LENGTH + i) * DIM + d] = 1e30f;
    qkv_tensor *query = qkv_params_find(s->params, "pool.weight");
    qkv_tensor *weight = qkv_params_find(s->params, "classifier.weight"), *bias = qkv_params_find(s->params, "classifier.bias");
    assert_int_equal(!query, how != QKV_POOLING_ATTENTION);
    for (int d = 0; query && d < DIM; d++) assert_true(qkv_tensor_data(query)[d] == 0); /* it starts as the mean */
    if (query) lcg_fill(qkv_tensor_data_mut(query), DIM);
    lcg_fill(qkv_tensor_data_mut(bias), CLASSES);
    if (query) copy_out(s->x.query, qkv_tensor_data(query), DIM);
    copy_out(s->x.weight, qkv_tensor_data(weight), CLASSES * DIM);
    copy_out(s->x.bias, qkv_tensor_data(bias), CLASSES);
}

static void end(setup *s)
{
    qkv_tape_free(s->tape);
    qkv_params_free(s->params);
}

static void pooling_counts_real_tokens(void **state)
{
    (void)state;
    for (qkv_pooling how = QKV_POOLING_MEAN; how <= QKV_POOLING_ATTENTION; how++) {
        setup s;
        begin(&s, how);
        qkv_tensor *hidden = qkv_constant(s.tape, QKV_SHAPE(BATCH, LENGTH, DIM), s.hidden);
        const qkv_tensor *pooled = qkv__transformer_pool(s.model, hidden, lengths, how);
        assert_int_equal(qkv_tape_status(s.tape), QKV_OK);
        assert_int_equal(qkv_tensor_ndim(pooled), 2);
        assert_int_equal(qkv_tensor_dim(pooled, 0), BATCH);
        assert_int_equal(qkv_tensor_dim(pooled, 1), DIM);
        for (int b = 0; b < BATCH; b++) {
            double wanted[DIM];
            pooled_row(&s.x, b, how, wanted);
            for (int d = 0; d < DIM; d++) assert_true(fabs(wanted[d] - (double)qkv_tensor_data(pooled)[b * DIM + d]) < 2e-6);
        }
        end(&s);
    }
}

static void gradients_are_those_of_double(void **state)
{
    (void)state;
    for (qkv_pooling how = QKV_POOLING_MEAN; how <= QKV_POOLING_ATTENTION; how++) {
        setup s;
        begin(&s, how);
        qkv_tensor *hidden = qkv_variable(s.tape, QKV_SHAPE(BATCH, LENGTH, DIM), s.hidden);
        qkv_tensor *loss = qkv_cross_entropy(qkv__transformer_classify(s.model, hidden, lengths), classes, NULL);
        assert_true(fabs((double)qkv_tensor_item(loss) - loss_of(&s.x, how)) < 2e-6);
        assert_int_equal(qkv_backward(loss), QKV_OK);
        const struct part {
            double *at;
            const float *grad;
            int n;
        } parts[] = {
            { s.x.hidden, qkv_tensor_grad(hidden), HIDDEN },
            { s.x.query, qkv_tensor_grad(qkv_params_find(s.params, "pool.weight")), DIM },
            { s.x.weight, qkv_tensor_grad(qkv_params_find(s.params, "classifier.weight")), CLASSES * DIM },
            { s.x.bias, qkv_tensor_grad(qkv_params_find(s.params, "classifier.bias")), CLASSES },
        };
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
            for (int i = 0; parts[p].grad && i < parts[p].n; i++) {
                const double step = 1e-5, x = parts[p].at[i];
                parts[p].at[i] = x + step;
                double above = loss_of(&s.x, how);
                parts[p].at[i] = x - step;
                double below = loss_of(&s.x, how);
                parts[p].at[i] = x;
                if (fabs((above - below) / (2 * step) - (double)parts[p].grad[i]) > 1e-6)
                    fail_msg("%s, part %zu, place %d: %g, expected %g", pooling_names[how], p, i, (double)parts[p].grad[i],
                             (above - below) / (2 * step));
            }
        end(&s);
    }
}

static void pooling_refuses(void **state)
{
    (void)state;
    setup s;
    begin(&s, QKV_POOLING_MEAN);
    const int32_t none[BATCH] = { 6, 0, 1, 4 }, many[BATCH] = { 6, 7, 1, 4 };
    for (int i = 0; i < 5; i++) {
        qkv_tensor *hidden = qkv_constant(s.tape, QKV_SHAPE(BATCH, LENGTH, DIM), s.hidden);
        const qkv_tensor *y = i == 0   ? qkv__transformer_pool(s.model, hidden, lengths, QKV_POOLING_ATTENTION)
                              : i == 1 ? qkv__transformer_pool(s.model, hidden, none, QKV_POOLING_LAST)
                              : i == 2 ? qkv__transformer_pool(s.model, hidden, many, QKV_POOLING_LAST)
                              : i == 3 ? qkv__transformer_pool(s.model, hidden, lengths, (qkv_pooling)9)
                                       : qkv__transformer_pool(s.model, qkv_reshape(hidden, QKV_SHAPE(BATCH * LENGTH, DIM)),
                                                               lengths, QKV_POOLING_MEAN);
        assert_null(y);
        assert_int_equal(qkv_tape_status(s.tape), QKV_USAGE);
        qkv_tape_reset(s.tape);
    }
    assert_null(qkv__transformer_pool(s.model, NULL, NULL, QKV_POOLING_MEAN));
    assert_null(qkv__transformer_classify(s.model, NULL, NULL));
    end(&s);
    qkv_params *p = qkv_params_new(1);
    const qkv__transformer *plain = qkv__transformer_new(
        p, &(qkv_config){ .vocab_size = 9, .encoder_layers = 1, .dim = DIM, .heads = 2, .d_ff = 8 });
    qkv_tape *t = qkv_tape_new(NULL);
    assert_null(qkv__transformer_classify(plain, qkv_constant(t, QKV_SHAPE(1, 2, DIM), NULL), NULL));
    assert_int_equal(qkv_tape_status(t), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no classifier"));
    qkv_tape_free(t);
    qkv_params_free(p);
}

/* ---- bits ---- */

enum { ROWS = 7, LONGEST = 45, WIDE = 48 };

/* Logits of rows of these lengths, padded to `length`. */
static void logits_of(const qkv__transformer *m, const int32_t *ids, int64_t rows, int64_t length, const int32_t *of_rows,
                      float *out)
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *hidden = qkv__transformer_encode(
        m, t, &(qkv_tokens){ .ids = ids, .rows = rows, .length = length, .lengths = of_rows });
    const float *logits = qkv_tensor_data(qkv__transformer_classify(m, hidden, of_rows));
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    memcpy(out, logits, sizeof *out * (size_t)(rows * CLASSES));
    qkv_tape_free(t);
}

static void rows_alone_and_together(void **state)
{
    (void)state;
    const int32_t of_rows[ROWS] = { 45, 1, 17, 44, 2, 30, 9 };
    int32_t ids[ROWS * LONGEST];
    for (int i = 0; i < ROWS * LONGEST; i++) ids[i] = (i * 7 + i / 5) % 50;
    for (qkv_pooling how = QKV_POOLING_MEAN; how <= QKV_POOLING_ATTENTION; how++) {
        const qkv_config o = {
            .vocab_size = 50, .encoder_layers = 2, .dim = WIDE, .heads = 4, .d_ff = 96, .classes = CLASSES, .pooling = how
        };
        qkv_params *p = qkv_params_new(3);
        const qkv__transformer *m = qkv__transformer_new(p, &o);
        qkv_tensor *query = qkv_params_find(p, "pool.weight");
        if (query) lcg_fill(qkv_tensor_data_mut(query), WIDE);
        float together[ROWS * CLASSES], other[ROWS * CLASSES];
        qkv_set_num_threads(1);
        logits_of(m, ids, ROWS, LONGEST, of_rows, together);
        for (int threads = 2; threads <= 4; threads += 2) {
            qkv_set_num_threads(threads);
            logits_of(m, ids, ROWS, LONGEST, of_rows, other);
            assert_memory_equal(together, other, sizeof together);
        }
        for (int r = 0; r < ROWS; r++) { /* without a neighbour and without padding */
            logits_of(m, ids + r * LONGEST, 1, of_rows[r], NULL, other);
            assert_memory_equal(together + r * CLASSES, other, sizeof *other * CLASSES);
        }
        qkv_set_num_threads(0);
        qkv_params_free(p);
    }
}

/* ---- a model that knows words ---- */

static const char vocabulary_text[] = "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19";
enum { START = 1, END, UNKNOWN, FIRST_WORD };

static qkv_tokenizer *word_tokenizer(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_tokenizer *t = NULL;
    if (w && !qkv_word_counts_add(w, qkv_cstr(vocabulary_text)))
        t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 100, .min_count = 1 });
    qkv_word_counts_free(w);
    return t;
}

static const qkv_config reader = { .vocab_size = 24,
                                   .encoder_layers = 2,
                                   .dim = 16,
                                   .heads = 2,
                                   .d_ff = 32,
                                   .classes = CLASSES,
                                   .pooling = QKV_POOLING_ATTENTION };
static const char *const names[CLASSES] = { "bad", "good", "gr\xc3\xbc\xc3\x9f" };

static qkv_model *word_model(const qkv_config *o)
{
    qkv_tokenizer *t = word_tokenizer();
    qkv_model *m = t ? qkv_model_new(o, 8) : NULL;
    if (!m || qkv_model_set_tokenizers(m, t, NULL) ||
        (o->classes && qkv_model_set_labels(m, names, o->classes, QKV_PROBLEM_CLASSIFICATION, NULL))) {
        if (!m || !qkv_model_tokenizer(m, QKV_SIDE_SOURCE)) qkv_tokenizer_free(t);
        qkv_model_free(m);
        return NULL;
    }
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) qkv__params_data(p)[i] *= 2; /* opinions */
    return m;
}

/* Probabilities of ids as they are. */
static void probabilities_of(const qkv_model *m, const int32_t *ids, int64_t n, float out[CLASSES])
{
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    const float *p = qkv_tensor_data(qkv_softmax(qkv__transformer_classify(
        x, qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = n }), NULL)));
    assert_int_equal(qkv_tape_status(t), QKV_OK);
    memcpy(out, p, sizeof *out * CLASSES);
    qkv_tape_free(t);
}

static int32_t word_id(const qkv_model *m, const char *word)
{
    int32_t id = qkv_tokenizer_id(qkv_model_tokenizer(m, QKV_SIDE_SOURCE), word);
    assert_true(id >= FIRST_WORD);
    return id;
}

/* One class: its logit, of each text, by hand. */
static void only_class(void **state)
{
    (void)state;
    qkv_config o = reader;
    o.classes = 1;
    qkv_model *m = word_model(&o);
    static const char *const two[] = { "w1 w2 w3", "w4" };
    qkv_matrix *found = NULL;
    assert_int_equal(qkv_classify(m, as_strings(two, NULL, 2), 2, NULL, &found), QKV_OK);
    assert_int_equal(found->width, 1);
    const int32_t ids[] = { START, word_id(m, "w1"), word_id(m, "w2"), word_id(m, "w3"), END };
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    const qkv__transformer *x = qkv__model_transformer(m);
    float logit = qkv_tensor_item(
        qkv__transformer_classify(x, qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 5 }), NULL));
    assert_true(found->data[0] == logit && found->data[0] != found->data[1] && logit != 1);
    qkv_tape_free(t);
    qkv_free(found);
    qkv_model_free(m);
}

/* ---- learning ---- */

typedef struct learned {
    qkv_dataset *pairs;
    qkv_batch *batch;
    qkv_loader *epoch;
} learned;

static const qkv_batch_opts in_order = { .max_tokens = 4000, .sequential = 1, .start = START, .end = END };

static void add_texts(learned *l, const qkv_model *m, int n, const char *const *texts, const int32_t *of_texts)
{
    *l = (learned){ .pairs = qkv_dataset_new() };
    for (int i = 0; i < n; i++)
        assert_int_equal(
            qkv_dataset_add(
                l->pairs, m,
                &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { texts[i], strlen(texts[i]) }, .class_id = of_texts[i] }),
            QKV_OK);
    l->epoch = qkv_loader_new(l->pairs, &in_order, 0);
    assert_int_equal(qkv_loader_batch(l->epoch, 0, &l->batch), QKV_OK);
    assert_int_equal(l->batch->rows, n);
}

static void free_learned(learned *l)
{
    qkv_free(l->batch);
    qkv_loader_free(l->epoch);
    qkv_dataset_free(l->pairs);
}

enum { TEXTS = 5 };
static const char *const texts[TEXTS] = { "w1 w2 w3", "w4", "W5 w6 w7 w8 w9 w10 w11", "w1 w2 unheard", "w3 w2 w1 w0" };
static const int32_t of_texts[TEXTS] = { 0, 2, 2, 1, 0 };

static void weights_by_hand(void **state)
{
    (void)state;
    const float weights[CLASSES] = { 0.5f, 4, 1.25f };
    const float smoothing = 0.1f;
    qkv_model *m = word_model(&reader);
    learned l;
    add_texts(&l, m, TEXTS, texts, of_texts);
    for (int weighs = 0; weighs < 2; weighs++) {
        const qkv_loss o = qkv_loss_classification(weighs ? weights : NULL, CLASSES);
        qkv_batch *b = l.batch;
        assert_int_equal(o.prepare(&o, b, 1, 0), QKV_OK);
        assert_int_equal(b->tokens, TEXTS);
        double wanted = 0;
        for (int r = 0; r < TEXTS; r++) {
            float p[CLASSES];
            probabilities_of(m, b->source + r * b->source_length, b->source_lengths[r], p);
            double loss = -(1 - (double)smoothing) * log((double)p[of_texts[r]]);
            for (int k = 0; k < CLASSES; k++) loss -= (double)smoothing / CLASSES * log((double)p[k]);
            wanted += (weighs ? (double)weights[of_texts[r]] : 1) * loss / TEXTS;
        }
        qkv_tape *t = qkv_tape_new(NULL);
        double got = (double)qkv_tensor_item(o.compute(&o, m, t, b, smoothing));
        assert_true(fabs(got - wanted) < 2e-6 * wanted);
        qkv_tape_free(t);
        double whole, parts; /* batches add up, weights and all */
        qkv_batch_opts small = in_order;
        small.max_tokens = 6;
        assert_int_equal(qkv_evaluate(m, l.pairs, &(qkv_evaluate_opts){ .loss = &o, .batches = &in_order }, &whole), QKV_OK);
        assert_int_equal(qkv_evaluate(m, l.pairs, &(qkv_evaluate_opts){ .loss = &o, .batches = &small }, &parts), QKV_OK);
        assert_true(fabs(whole - parts) < 1e-6 * whole);
    }
    const qkv_loss a = qkv_loss_classification(NULL, CLASSES), b = qkv_loss_classification(weights, CLASSES);
    assert_true(a.id != b.id && a.id && b.id);
    free_learned(&l);
    qkv_model_free(m);
}

static void classes_that_are_none(void **state)
{
    (void)state;
    const float weights[CLASSES] = { 1, 2, 3 };
    const int32_t wrong[] = { CLASSES, -1, INT32_MAX };
    qkv_model *m = word_model(&reader);
    for (int i = 0; i < 3; i++) {
        learned l;
        double loss;
        add_texts(&l, m, 1, texts, &wrong[i]);
        const qkv_loss o = qkv_loss_classification(weights, CLASSES);
        assert_int_equal(qkv_evaluate(m, l.pairs, &(qkv_evaluate_opts){ .loss = &o, .batches = &in_order }, &loss), QKV_USAGE);
        assert_non_null(strstr(qkv_error(), "outside 0..2"));
        free_learned(&l);
    }
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(qkv_dataset_add(NULL, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { "w1", 2 } }), QKV_USAGE);
    assert_int_equal(qkv_dataset_add(p, NULL, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { "w1", 2 } }), QKV_USAGE);
    assert_int_equal(qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { NULL, 2 } }), QKV_USAGE);
    assert_int_equal(qkv_dataset_add(p, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { "w1", 2 }, .max_length = -1 }),
                     QKV_USAGE);
    assert_int_equal(qkv_dataset_size(p), 0);
    qkv_dataset_free(p);
    qkv_model_free(m);
}

/* What is learned from is what is read later. */
static void learning_and_using_read_alike(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    learned l;
    add_texts(&l, m, TEXTS, texts, of_texts);
    qkv_matrix *found = NULL;
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, TEXTS), TEXTS, NULL, &found), QKV_OK);
    for (int r = 0; r < TEXTS; r++) {
        float p[CLASSES];
        const int32_t *row = l.batch->source + r * l.batch->source_length;
        assert_int_equal(row[0], START);
        assert_int_equal(row[l.batch->source_lengths[r] - 1], END);
        assert_int_equal(l.batch->labels[r * l.batch->target_length], of_texts[r]);
        probabilities_of(m, row, l.batch->source_lengths[r], p);
        assert_memory_equal(p, found->data + r * CLASSES, sizeof p);
    }
    assert_int_equal(l.batch->source[3 * l.batch->source_length + 3], UNKNOWN);
    free_learned(&l);
    l = (learned){ .pairs = qkv_dataset_new() }; /* a pair, cut */
    assert_int_equal(
        qkv_dataset_add(
            l.pairs, m,
            &(qkv_example){
                .kind = QKV_EXAMPLE_CLASS, .text = { "w1 w2", 5 }, .pair = { "w3 w4", 5 }, .max_length = 5, .class_id = 1 }),
        QKV_OK);
    l.epoch = qkv_loader_new(l.pairs, &in_order, 0);
    assert_int_equal(qkv_loader_batch(l.epoch, 0, &l.batch), QKV_OK);
    const int32_t wanted[] = { START, word_id(m, "w1"), word_id(m, "w2"), END, word_id(m, "w3"), END };
    assert_int_equal(l.batch->source_length, 6);
    assert_memory_equal(l.batch->source, wanted, sizeof wanted);
    free_learned(&l);
    qkv_free(found);
    qkv_model_free(m);
}

/* ---- using ---- */

static void one_by_one_and_together(void **state)
{
    (void)state;
    enum { MANY = 90 };
    char room[MANY][200];
    const char *many[MANY];
    for (int i = 0; i < MANY; i++) { /* of 0 to 29 words, so that batches have padding and come in another order */
        room[i][0] = '\0';
        for (int k = 0; k < i * 7 % 30; k++) sprintf(room[i] + strlen(room[i]), "w%d ", (i + k * k) % 20);
        many[i] = room[i];
    }
    qkv_model *m = word_model(&reader);
    qkv_matrix *all = NULL, *one = NULL;
    for (int windows = 0; windows < 2; windows++) {
        const qkv_encoder_opts opts = { .max_length = windows ? 8 : 0, .windows = windows };
        qkv_set_num_threads(1);
        assert_int_equal(qkv_classify(m, as_strings(many, NULL, MANY), MANY, &opts, &all), QKV_OK);
        assert_int_equal(all->rows, MANY);
        assert_int_equal(all->width, CLASSES);
        for (int threads = 2; threads <= 4; threads += 2) {
            qkv_set_num_threads(threads);
            assert_int_equal(qkv_classify(m, as_strings(many, NULL, MANY), MANY, &opts, &one), QKV_OK);
            assert_memory_equal(all->data, one->data, sizeof(float) * MANY * CLASSES);
        }
        for (int i = 0; i < MANY; i++) {
            double sum = 0;
            assert_int_equal(qkv_classify(m, as_strings(many + i, NULL, 1), 1, &opts, &one), QKV_OK);
            assert_memory_equal(all->data + i * CLASSES, one->data, sizeof(float) * CLASSES);
            for (int k = 0; k < CLASSES; k++) sum += (double)one->data[k];
            assert_true(fabs(sum - 1) < 1e-6);
        }
        qkv_set_num_threads(0);
    }
    qkv_free(all);
    qkv_free(one);
    qkv_model_free(m);
}

/* Of texts that fail the same one is told, on any threads. */
static void the_first_batch_that_fails(void **state)
{
    (void)state;
    enum { MANY = 150 };
    char room[MANY][80], told[200] = "";
    const char *many[MANY];
    for (int i = 0; i < MANY; i++) {
        room[i][0] = '\0';
        for (int k = 0; k < 1 + i % 12; k++) sprintf(room[i] + strlen(room[i]), "w%d ", (i + k) % 19);
        many[i] = room[i];
    }
    many[31] = "w1 w19 w2 w3"; /* 4 words, 2 and 11: in three batches, and only w19 is broken */
    many[64] = "w19 w1";
    many[137] = "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w19";
    qkv_model *m = word_model(&reader);
    qkv_matrix *found = NULL;
    qkv_params *p = qkv_model_params(m);
    qkv_tensor *table = qkv_params_find(p, "embed.weight");
    assert_non_null(table);
    qkv_tensor_data_mut(table)[word_id(m, "w19") * 16] = NAN;
    for (int threads = 1; threads <= 4; threads++) {
        qkv_set_num_threads(threads);
        assert_int_equal(qkv_classify(m, as_strings(many, NULL, MANY), MANY, NULL, &found), QKV_NUMERIC);
        assert_int_equal(found->rows, 0);
        if (threads == 1) strcpy(told, qkv_error());
        assert_string_equal(qkv_error(), told);
    }
    assert_string_equal(told, "text 64: the result is not finite");
    qkv_set_num_threads(0);
    qkv_free(found);
    qkv_model_free(m);
}

static void windows_and_cuts(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    int32_t w[8];
    for (int i = 0; i < 8; i++) w[i] = word_id(m, (char[]){ 'w', (char)('0' + i), '\0' });
    const char *const two[] = { "w0 w1 w2 w3 w4 w5 w6 w7", "w0 w1 w2" };
    const int32_t parts[3][5] = { { START, w[0], w[1], w[2], END },
                                  { START, w[3], w[4], w[5], END },
                                  { START, w[6], w[7], END } };
    float p[3][CLASSES];
    for (int i = 0; i < 3; i++) probabilities_of(m, parts[i], i < 2 ? 5 : 4, p[i]);
    qkv_matrix *found = NULL;
    qkv_encoder_opts opts = { .max_length = 4 };
    assert_int_equal(qkv_classify(m, as_strings(two, NULL, 2), 2, &opts, &found), QKV_OK);
    assert_int_equal(found->truncated, 1);
    assert_memory_equal(found->data, p[0], sizeof p[0]);
    assert_memory_equal(found->data + CLASSES, p[0], sizeof p[0]);
    opts.windows = 1;
    assert_int_equal(qkv_classify(m, as_strings(two, NULL, 2), 2, &opts, &found), QKV_OK);
    assert_int_equal(found->truncated, 1);
    for (int k = 0; k < CLASSES; k++) {
        double mean = ((double)p[0][k] + (double)p[1][k] + (double)p[2][k]) / 3;
        assert_true(fabs((double)found->data[k] - mean) < 1e-6);
        assert_true(fabs(mean - (double)p[0][k]) > 1e-4); /* or this would show nothing */
    }
    assert_memory_equal(found->data + CLASSES, p[0], sizeof p[0]);
    qkv_free(found), found = NULL;
    qkv_model_free(m);
    qkv_config learned_positions = reader; /* which end somewhere */
    learned_positions.positions = QKV_POSITION_LEARNED, learned_positions.max_positions = 5;
    m = word_model(&learned_positions);
    for (int i = 0; i < 3; i++) probabilities_of(m, parts[i], i < 2 ? 5 : 4, p[i]);
    assert_int_equal(qkv_classify(m, as_strings(two, NULL, 2), 2, NULL, &found), QKV_OK);
    assert_memory_equal(found->data, p[0], sizeof p[0]);
    qkv_free(found);
    qkv_model_free(m);
}

static void texts_of_all_kinds(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    const int32_t w1 = word_id(m, "w1"), w2 = word_id(m, "w2");
    qkv_matrix *found = NULL;
    float p[CLASSES];
    const char *const kinds[] = { "", " \t ", "w1 \xff\xfe w2", "w1 w2 w1", "w1" };
    const size_t sizes[] = { 0, 3, 8, 5, 2 };
    assert_int_equal(qkv_classify(m, as_strings(kinds, sizes, 5), 5, NULL, &found), QKV_OK);
    assert_int_equal(found->truncated, 0);
    probabilities_of(m, (int32_t[]){ START, END }, 2, p);
    assert_memory_equal(found->data, p, sizeof p);
    assert_memory_equal(found->data + CLASSES, p, sizeof p);
    probabilities_of(m, (int32_t[]){ START, w1, UNKNOWN, w2, END }, 5, p);
    assert_memory_equal(found->data + 2 * CLASSES, p, sizeof p);
    probabilities_of(m, (int32_t[]){ START, w1, w2, END }, 4, p); /* as long as its length says */
    assert_memory_equal(found->data + 3 * CLASSES, p, sizeof p);
    const char *const seconds[] = { "w2", NULL, "w2 w1", "", "w2" };
    const size_t second_sizes[] = { 2, 0, 2, 0, 2 };
    assert_int_equal(qkv_classify(m, as_strings(kinds, sizes, 5), 5,
                                  &(qkv_encoder_opts){ .pairs = as_strings(seconds, second_sizes, 5) }, &found),
                     QKV_OK);
    probabilities_of(m, (int32_t[]){ START, w1, END, w2, END }, 5, p);
    assert_memory_equal(found->data + 4 * CLASSES, p, sizeof p);
    probabilities_of(m, (int32_t[]){ START, w1, UNKNOWN, w2, END, w2, END }, 7, p);
    assert_memory_equal(found->data + 2 * CLASSES, p, sizeof p);
    probabilities_of(m, (int32_t[]){ START, w1, w2, END, END }, 5, p);
    assert_memory_equal(found->data + 3 * CLASSES, p, sizeof p);
    assert_int_equal(qkv_classify(m, NULL, 0, NULL, &found), QKV_OK);
    assert_int_equal(found->rows, 0);
    qkv_free(found);
    qkv_model_free(m);
}

static void classify_refuses(void **state)
{
    (void)state;
    qkv_config o = reader;
    o.classes = 0, o.pooling = QKV_POOLING_MEAN;
    qkv_model *m = word_model(&reader), *encoder = word_model(&o), *ids = qkv_model_new(&reader, 1);
    o.decoder_layers = 1, o.encoder_layers = 0;
    qkv_model *decoder = word_model(&o);
    qkv_matrix *found = NULL;
    assert_int_equal(qkv_classify(NULL, as_strings(texts, NULL, 1), 1, NULL, &found), QKV_USAGE);
    assert_int_equal(qkv_classify(encoder, as_strings(texts, NULL, 1), 1, NULL, &found), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no classifier"));
    assert_int_equal(qkv_classify(ids, as_strings(texts, NULL, 1), 1, NULL, &found), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "no tokenizer"));
    assert_int_equal(qkv_embed(decoder, as_strings(texts, NULL, 1), 1, NULL, &found), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "no head for \"embed\": it can generate"));
    assert_int_equal(qkv_embed(NULL, as_strings(texts, NULL, 1), 1, NULL, &found), QKV_USAGE);
    assert_int_equal(
        qkv_embed(encoder, as_strings(texts, NULL, 1), 1, &(qkv_embed_opts){ .pooling = QKV_POOLING_ATTENTION }, &found),
        QKV_USAGE);
    assert_int_equal(qkv_classify(m, NULL, 1, NULL, &found), QKV_USAGE);
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, 1), 1, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, 1), -1, NULL, &found), QKV_USAGE);
    assert_int_equal(qkv_classify(m, &(qkv_str){ NULL, 1 }, 1, NULL, &found), QKV_USAGE);
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, 1), 1, &(qkv_encoder_opts){ .max_length = -1 }, &found),
                     QKV_USAGE);
    assert_int_equal(found->rows, 0);
    qkv__tensor_data(qkv_params_find(qkv_model_params(m), "classifier.bias"))[1] = NAN;
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, 1), 1, NULL, &found), QKV_NUMERIC);
    assert_int_equal(found->rows, 0);
    qkv_free(found);
    qkv_model_free(m);
    qkv_model_free(encoder);
    qkv_model_free(decoder);
    qkv_model_free(ids);
}

/* ---- embedding ---- */

static void vectors(void **state)
{
    (void)state;
    qkv_config translator = reader;
    translator.decoder_layers = 1, translator.classes = 0, translator.pooling = QKV_POOLING_MEAN;
    for (int translates = 0; translates < 2; translates++) {
        qkv_model *m = word_model(translates ? &translator : &reader);
        const int32_t w1 = word_id(m, "w1"), w2 = word_id(m, "w2");
        const int32_t ids[] = { START, w1, w2, END }; /* of a translator without the start */
        qkv_matrix *raw = NULL, *normal = NULL;
        for (qkv_pooling how = QKV_POOLING_MEAN; how <= (translates ? QKV_POOLING_LAST : QKV_POOLING_ATTENTION); how++) {
            const char *const both[] = { "w3 w4 w5 w6 w7", "w1 w2" };
            qkv_embed_opts o = { .pooling = how };
            assert_int_equal(qkv_embed(m, as_strings(both, NULL, 2), 2, &o, &raw), QKV_OK);
            o.normalize = 1;
            assert_int_equal(qkv_embed(m, as_strings(both, NULL, 2), 2, &o, &normal), QKV_OK);
            assert_int_equal(raw->width, 16);
            qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
            const qkv__transformer *x = qkv__model_transformer(m);
            qkv_tensor *hidden = qkv__transformer_encode(
                x, t, &(qkv_tokens){ .ids = ids + translates, .rows = 1, .length = 4 - translates });
            const qkv_tensor *wanted = qkv__transformer_pool(x, hidden, NULL, how);
            assert_memory_equal(raw->data + 16, qkv_tensor_data(wanted), sizeof(float) * 16);
            qkv_tape_free(t);
            for (int i = 0; i < 2; i++) {
                double length = 0, unit = 0;
                for (int d = 0; d < 16; d++) length += pow((double)raw->data[i * 16 + d], 2);
                for (int d = 0; d < 16; d++) unit += pow((double)normal->data[i * 16 + d], 2);
                assert_true(fabs(unit - 1) < 1e-6);
                for (int d = 0; d < 16; d++)
                    assert_true(fabs((double)raw->data[i * 16 + d] / sqrt(length) - (double)normal->data[i * 16 + d]) < 1e-6);
            }
        }
        qkv_free(raw);
        qkv_free(normal);
        qkv_model_free(m);
    }
}

static void a_vector_of_zeros_stays(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    qkv_params *p = qkv_model_params(m);
    memset(qkv__params_data(p), 0, sizeof(float) * (size_t)qkv__params_block(p));
    qkv_matrix *found = NULL;
    const qkv_embed_opts o = { .normalize = 1 };
    assert_int_equal(qkv_embed(m, as_strings(texts, NULL, 1), 1, &o, &found), QKV_OK);
    for (int d = 0; d < 16; d++) assert_true(found->data[d] == 0);
    qkv_free(found);
    qkv_model_free(m);
}

/* Threads read texts in parts: ids and windows of all of them, and of several errors the first. */
static void many_texts(void **state)
{
    (void)state;
    enum { MANY = 301 };
    static char words[MANY][32];
    const char *all[MANY];
    qkv_model *m = word_model(&reader);
    qkv_matrix *together = NULL, *alone = NULL;
    const qkv_encoder_opts windows = { .max_length = 4, .windows = 1 };
    for (int i = 0; i < MANY; i++) {
        int n = snprintf(words[i], sizeof *words, "w%d", i % 7 + 1);
        for (int k = 0; k < i % 9; k++) n += snprintf(words[i] + n, sizeof *words - (size_t)n, " w%d", (i + k) % 7 + 1);
        all[i] = words[i];
    }
    for (int threads = 1; threads <= 4; threads += 3) {
        qkv_set_num_threads(threads);
        assert_int_equal(qkv_classify(m, as_strings(all, NULL, MANY), MANY, &windows, &together), QKV_OK);
        for (int i = 0; i < MANY; i++) {
            assert_int_equal(qkv_classify(m, as_strings(all + i, NULL, 1), 1, &windows, &alone), QKV_OK);
            assert_memory_equal(together->data + i * CLASSES, alone->data, sizeof(float) * CLASSES);
        }
    }
    qkv_str missing[MANY];
    for (int i = 0; i < MANY; i++) missing[i] = i == 140 || i == 290 ? (qkv_str){ NULL, 1 } : qkv_cstr(all[i]);
    assert_int_equal(qkv_classify(m, missing, MANY, NULL, &together), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "text 140 is NULL"));
    assert_int_equal(together->rows, 0);
    qkv_set_num_threads(0);
    qkv_free(together);
    qkv_free(alone);
    qkv_model_free(m);
}

/* ---- labels in files ---- */

static char folder[64], config[80];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-classify-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    sprintf(config, "%s/config.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const files[] = { "config.json", "model.safetensors", "tokenizer.json" };
    for (int i = 0; i < 3; i++) {
        char path[100];
        sprintf(path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void labels_come_back(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    qkv_matrix *before = NULL, *after = NULL;
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, TEXTS), TEXTS, NULL, &before), QKV_OK);
    assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
    qkv_model_free(m);
    assert_non_null(m = qkv_model_load(folder, NULL));
    const qkv_config *o = qkv__model_config(m);
    assert_int_equal(o->classes, CLASSES);
    assert_int_equal(o->pooling, QKV_POOLING_ATTENTION);
    for (int i = 0; i < CLASSES; i++) assert_string_equal(qkv_model_label(m, i), names[i]);
    assert_null(qkv_model_label(m, CLASSES));
    assert_null(qkv_model_label(m, -1));
    assert_null(qkv_model_label(NULL, 0));
    assert_int_equal(qkv_classify(m, as_strings(texts, NULL, TEXTS), TEXTS, NULL, &after), QKV_OK);
    assert_memory_equal(before->data, after->data, sizeof(float) * TEXTS * CLASSES);
    qkv_free(before);
    qkv_free(after);
    qkv_model_free(m);
}

static char *config_text(char room[4096])
{
    FILE *f = fopen(config, "rb");
    assert_non_null(f);
    room[fread(room, 1, 4095, f)] = '\0';
    fclose(f);
    return room;
}

static void poolings_come_back(void **state)
{
    (void)state;
    for (qkv_pooling how = QKV_POOLING_MEAN; how <= QKV_POOLING_ATTENTION; how++) {
        char text[4096], wanted[40];
        qkv_config o = reader;
        o.pooling = how;
        qkv_model *m = word_model(&o);
        assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
        qkv_model_free(m);
        sprintf(wanted, "\"pooling\": \"%s\"", pooling_names[how]);
        assert_non_null(strstr(config_text(text), wanted));
        assert_non_null(m = qkv_model_load(folder, NULL));
        assert_int_equal(qkv__model_config(m)->pooling, how);
        qkv_model_free(m);
    }
}

static void bad_labels(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    assert_int_equal(qkv_model_set_labels(m, names, 2, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_USAGE);
    assert_int_equal(qkv_model_set_labels(m, NULL, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_USAGE);
    assert_int_equal(qkv_model_set_labels(NULL, names, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_USAGE);
    assert_int_equal(qkv_model_set_labels(m, (const char *[]){ "a", "", "c" }, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_USAGE);
    assert_int_equal(qkv_model_set_labels(m, (const char *[]){ "a", "b\t1", "c" }, 3, QKV_PROBLEM_CLASSIFICATION, NULL),
                     QKV_USAGE);
    assert_int_equal(qkv_model_set_labels(m, (const char *[]){ "a", NULL, "c" }, 3, QKV_PROBLEM_CLASSIFICATION, NULL),
                     QKV_USAGE);
    assert_int_equal(qkv_model_set_labels(m, (const char *[]){ "a", "\xff", "c" }, 3, QKV_PROBLEM_CLASSIFICATION, NULL),
                     QKV_USAGE);
    assert_string_equal(qkv_model_label(m, 1), "good"); /* as they were */
    assert_int_equal(qkv_model_set_labels(m, (const char *[]){ "a", "b", "c" }, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    assert_string_equal(qkv_model_label(m, 1), "b");
    qkv_model_free(m);
}

/* config.json with one piece replaced by another. */
static void loads_as(const char *whole, const char *piece, const char *other, qkv_status status, const char *words)
{
    const char *at = strstr(whole, piece);
    FILE *f = fopen(config, "wb");
    if (!at) fail_msg("%s is not in %s", piece, whole);
    fprintf(f, "%.*s%s%s", (int)(at - whole), whole, other, at + strlen(piece));
    fclose(f);
    qkv_model *m = qkv_model_load(folder, NULL);
    if (status) assert_null(m);
    else assert_non_null(m);
    if (status) assert_int_equal(qkv_error_status(), status);
    if (status && !strstr(qkv_error(), words)) fail_msg("\"%s\", expected \"%s\"", qkv_error(), words);
    qkv_model_free(m);
}

static void hostile_configs(void **state)
{
    (void)state;
    qkv_model *m = word_model(&reader);
    assert_int_equal(qkv_model_set_labels(m, (const char *[]){ "a", "b", "c" }, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
    qkv_model_free(m);
    char whole[4096];
    config_text(whole);
    const char *list = strchr(strstr(whole, "\"labels\""), '[');
    char labels[100];
    sprintf(labels, "%.*s", (int)(strchr(list, ']') + 1 - list), list);
    static const struct {
        const char *labels, *words;
    } lists[] = {
        { "3", "list of 3" },
        { "\"abc\"", "list of 3" },
        { "{\"a\": 0}", "list of 3" },
        { "null", "list of 3" },
        { "[]", "list of 3" },
        { "[\"a\", \"b\"]", "list of 3" },
        { "[1, 2, 3]", "name 0" },
        { "[\"a\", [], \"c\"]", "name 1" },
        { "[\"a\", \"b\", \"\"]", "name 2" },
        { "[\"a\", \"b\", null]", "name 2" },
        { "[\"a\", \"b\", \"c\"", "line" },
        { "[\"a\", \"b\", \"\\u0000\"]", "line" },
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        loads_as(whole, labels, lists[i].labels, QKV_FORMAT, lists[i].words);
    loads_as(whole, "\"classes\": 3", "\"classes\": -1", QKV_FORMAT, "classes");
    loads_as(whole, "\"classes\": 3", "\"classes\": 3.5", QKV_FORMAT, "classes");
    loads_as(whole, "\"classes\": 3", "\"classes\": 4", QKV_FORMAT, "list of 4");
    loads_as(whole, "\"classes\": 3", "\"classes\": 0", QKV_FORMAT, "list of 0");
    loads_as(whole, "\"classes\": 3", "\"classes\": 9223372036854775807", QKV_FORMAT, "labels");
    loads_as(whole, "\"pooling\": \"attention\"", "\"pooling\": \"sum\"", QKV_UNSUPPORTED, "pooling");
    loads_as(whole, "\"pooling\": \"attention\"", "\"pooling\": 1", QKV_FORMAT, "pooling");
    loads_as(whole, "\"pooling\": \"attention\"", "\"pooling\": \"mean\"", QKV_FORMAT, "pool.weight");
    loads_as(whole, labels, "[\"a\", \"b\", \"c\"]", QKV_OK, "");
    char *no_labels = strdup(whole);
    strcpy(strchr(strstr(no_labels, "\"pooling\""), ','), "}"); /* the names may be missing, and then any number of classes */
    loads_as(no_labels, "\"classes\": 3", "\"classes\": 9223372036854775807", QKV_FORMAT, "config.json");
    loads_as(no_labels, "\"classes\": 3", "\"classes\": 3", QKV_OK, "");
    free(no_labels);
}

/* ---- labelled texts ---- */

static const char *labelled_file(const char *text)
{
    static char path[100];
    sprintf(path, "%s/labelled.tsv", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static void count_note(void *data, const char *text)
{
    assert_non_null(strstr(text, "labelled.tsv: empty texts: 1, the first is line 3: left out"));
    ++*(int *)data;
}

static void confusions_are_counted(void **state)
{
    (void)state;
    static const char *const of[] = { "good", "bad", "good", "gr\xc3\xbc\xc3\x9f", "bad" };
    int64_t wanted[CLASSES * CLASSES] = { 0 };
    qkv_model *m = word_model(&reader);
    qkv_matrix *found = NULL;
    qkv_confusion c = { 0 };
    char file[1024] = "";
    for (int i = 0; i < TEXTS; i++) {
        sprintf(file + strlen(file), "%s\t%s\n%s", of[i], texts[i], i == 1 ? "bad\t \n" : "");
        assert_int_equal(qkv_classify(m, as_strings(&texts[i], NULL, 1), 1, NULL, &found), QKV_OK);
        int is = !strcmp(of[i], names[0]) ? 0 : !strcmp(of[i], names[1]) ? 1 : 2, said = 0;
        for (int k = 1; k < CLASSES; k++)
            if (found->data[k] > found->data[said]) said = k;
        wanted[is * CLASSES + said]++;
    }
    const char *path = labelled_file(file);
    for (int batch = 0; batch < 4; batch++) {
        int told = 0;
        const qkv_classify_labelled_opts o = { .batch = batch, .note = count_note, .note_data = &told };
        assert_int_equal(qkv_classify_labelled(m, path, &o, &c), QKV_OK);
        assert_true(c.classes == CLASSES && c.texts == TEXTS && c.cut == 0 && told == 1);
        assert_memory_equal(c.counts, wanted, sizeof wanted);
        assert_string_equal(c.labels[1], "good");
    }
    const qkv_classify_labelled_opts cut = { .reading = &(qkv_encoder_opts){ .max_length = 4 } };
    assert_int_equal(qkv_classify_labelled(m, path, &cut, &c), QKV_OK);
    assert_true(c.cut > 0 && c.texts == TEXTS);
    qkv_confusion_free(&c);
    qkv_free(found);
    qkv_model_free(m);
    unlink(path);
}

static void refuses_labelled(const qkv_model *m, const char *file, qkv_status status, const char *words)
{
    qkv_confusion c = { 0 };
    const char *path = labelled_file(file);
    assert_int_equal(qkv_classify_labelled(m, path, NULL, &c), status);
    if (!strstr(qkv_error(), words)) fail_msg("%s", qkv_error());
    assert_true(!c.counts && !c.texts);
    unlink(path);
}

static void labelled_texts_that_do_not_fit(void **state)
{
    (void)state;
    qkv_config o = reader;
    qkv_model *m = word_model(&o);
    refuses_labelled(m, "meh\tw1\nso\tw2\n", QKV_FORMAT, "line 1: the model does not know the label \"meh\"");
    refuses_labelled(m, "\tw1\n", QKV_FORMAT, "there are no texts");
    refuses_labelled(m, "label\tw1\n", QKV_FORMAT, "\"label\": if line 1 is a header, give --header");
    refuses_labelled(m, "w1\n", QKV_FORMAT, "--label-column and --text-column choose columns");
    refuses_labelled(m, "good\t \n", QKV_FORMAT, "there are no texts");
    qkv_model_free(m);
    o.classes = 1;
    m = word_model(&o);
    refuses_labelled(m, "bad\tw1\n", QKV_UNSUPPORTED, "one label");
    qkv_model_free(m);
}

static void keep_note(void *data, const char *text) { snprintf(data, 256, "%.250s", text); }

/* Labels that a model does not know, or that are not there, are counted. */
static void labels_that_are_not_known(void **state)
{
    (void)state;
    static const char file[] = "good\tw1\nmeh\tw2\n Good \tw1\n\tw2\nbad\tw3\n";
    const qkv_labelled_opts strict = { .strict = 1 };
    qkv_model *m = word_model(&reader);
    qkv_confusion c = { 0 };
    const char *path = labelled_file(file);
    for (int merges = 0; merges < 2; merges++) {
        char told[256];
        const qkv_classify_labelled_opts o = { .size = sizeof o, .note = keep_note, .note_data = told, .merge_labels = merges };
        assert_int_equal(qkv_classify_labelled(m, path, &o, &c), QKV_OK);
        assert_true(c.texts == 2 + merges && c.unknown == 2 - merges);
        assert_non_null(strstr(told, "the first is line 2, \"meh\": left out"));
    }
    const qkv_classify_labelled_opts o = { .size = sizeof o, .labelled = &strict };
    assert_int_equal(qkv_classify_labelled(m, path, &o, &c), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "line 2: the model does not know the label \"meh\""));
    qkv_confusion_free(&c);
    qkv_model_free(m);
    unlink(path);
}

/* ---- memory ---- */

static qkv_status count_labelled(const qkv_model *m)
{
    qkv_confusion c = { 0 };
    const char *path = labelled_file("bad\tw1\ngood\tw2\nbad\tw3\n");
    const qkv_classify_labelled_opts o = { .batch = 2 };
    qkv_status status = qkv_classify_labelled(m, path, &o, &c);
    qkv_confusion_free(&c);
    unlink(path);
    return status;
}

static qkv_status all_of_it(void)
{
    qkv_model *m = word_model(&reader);
    qkv_dataset *p = m ? qkv_dataset_new() : NULL;
    qkv_matrix *found = NULL;
    const qkv_encoder_opts windows = { .max_length = 4, .windows = 1 };
    const qkv_str *all = as_strings((const char *[]){ "w1 w2 w3 w4 w5", "w1 \xff", "" }, NULL, 3);
    qkv_status status = p ? QKV_OK : qkv_error_status();
    if (!status) status = qkv_classify(m, all, 3, &windows, &found);
    if (!status) status = qkv_embed(m, all, 3, NULL, &found);
    if (!status) status = count_labelled(m);
    if (!status)
        status = qkv_dataset_add(
            p, m, &(qkv_example){ .kind = QKV_EXAMPLE_CLASS, .text = { "w1 \xff", 4 }, .pair = { "w2", 2 }, .class_id = 1 });
    double loss;
    const qkv_loss o = qkv_loss_classification((float[]){ 1, 2, 3 }, CLASSES);
    if (!status) status = qkv_evaluate(m, p, &(qkv_evaluate_opts){ .loss = &o, .batches = &in_order }, &loss);
    if (!status) status = qkv_model_save(m, folder, NULL);
    qkv_model *copy = status ? NULL : qkv_model_load(folder, NULL);
    if (!status && !copy) status = qkv_error_status();
    qkv_model_free(copy);
    qkv_free(found);
    qkv_dataset_free(p);
    qkv_model_free(m);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(all_of_it) > 50);
}

static void nearest_by_hand(void **state)
{
    (void)state;
    float data[] = { 1, 0, 0, 1, .6F, .8F, 1, 0 }, query[] = { 1, 0 };
    const qkv_matrix vectors = { .data = data, .rows = 4, .width = 2 };
    qkv_neighbour near[6];
    static const int64_t wanted[] = { 0, 3, 2, 1, -1, -1 }; /* of equals the smaller index; then there are no more */
    assert_int_equal(qkv_nearest(&vectors, query, 6, near), QKV_OK);
    for (int i = 0; i < 6; i++) assert_int_equal(near[i].index, wanted[i]);
    assert_true(near[0].similarity == 1 && near[2].similarity == .6F && near[3].similarity == 0);
    assert_int_equal(qkv_nearest(&vectors, query, 1, near), QKV_OK);
    assert_int_equal(near[0].index, 0);
    assert_int_equal(qkv_nearest(&vectors, query, -1, near), QKV_USAGE);
    data[2] = data[0] = NAN; /* what is no number comes last, and leaves the others in their order */
    static const int64_t numbers_first[] = { 3, 2, 0, 1 };
    assert_int_equal(qkv_nearest(&vectors, query, 4, near), QKV_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(near[i].index, numbers_first[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_by_hand),
        cmocka_unit_test(pooling_counts_real_tokens),
        cmocka_unit_test(gradients_are_those_of_double),
        cmocka_unit_test(pooling_refuses),
        cmocka_unit_test(rows_alone_and_together),
        cmocka_unit_test(only_class),
        cmocka_unit_test(weights_by_hand),
        cmocka_unit_test(classes_that_are_none),
        cmocka_unit_test(learning_and_using_read_alike),
        cmocka_unit_test(one_by_one_and_together),
        cmocka_unit_test(the_first_batch_that_fails),
        cmocka_unit_test(windows_and_cuts),
        cmocka_unit_test(texts_of_all_kinds),
        cmocka_unit_test(classify_refuses),
        cmocka_unit_test(vectors),
        cmocka_unit_test(a_vector_of_zeros_stays),
        cmocka_unit_test(many_texts),
        cmocka_unit_test_setup_teardown(labels_come_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(poolings_come_back, make_folder, remove_folder),
        cmocka_unit_test(bad_labels),
        cmocka_unit_test_setup_teardown(hostile_configs, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(confusions_are_counted, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(labelled_texts_that_do_not_fit, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(labels_that_are_not_known, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
