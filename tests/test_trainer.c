/* test_trainer.c: a small model learns; the same bits at any thread count and after any stop; bad checkpoints; numbers that
 * blow up. */
#include <qkv/qkv.h>

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
#include "io/safetensors.h"
#include "nn/params.h"
#include "train/trainer.h"

enum { VOCABULARY = 12, FIRST = 3, STEPS = 60 };

static const qkv_config small = { .vocab_size = VOCABULARY,
                                  .encoder_layers = 1,
                                  .decoder_layers = 1,
                                  .dim = 16,
                                  .heads = 2,
                                  .d_ff = 32,
                                  .dropout = 0.1f,
                                  .attention_dropout = 0.1f,
                                  .ffn_dropout = 0.1f };
static const qkv_optimizer_opts adam = { .rule = QKV_OPTIMIZER_ADAM, .beta2 = 0.98f, .eps = 1e-9f };
static const qkv_batch_opts batches = { .max_tokens = 100, .start = 1, .end = 2 };
static const qkv_trainer_opts options = {
    .optimizer = &adam,
    .batches = &batches,
    .schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .warmup = 30, .dim = 16 },
    .accumulate = 2,
    .label_smoothing = 0.1f,
    .clip_norm = 1,
    .seed = 11
};

/* Sequences of 1 to 5 numbers; the target is the source backwards. */
static qkv_dataset *make_pairs(int n, uint32_t seed)
{
    qkv_dataset *p = qkv_dataset_new();
    for (int i = 0; p && i < n; i++) {
        int32_t source[5], target[5];
        seed = seed * 1664525u + 1013904223u;
        int length = 1 + (int)(seed >> 16) % 5;
        for (int k = 0; k < length; k++) {
            seed = seed * 1664525u + 1013904223u;
            source[k] = target[length - 1 - k] = FIRST + (int32_t)(seed >> 16) % (VOCABULARY - FIRST);
        }
        if (qkv_dataset_add_ids(p, source, (size_t)length, target, (size_t)length)) {
            qkv_dataset_free(p);
            return NULL;
        }
    }
    return p;
}

static char path[64];

static int make_path(void **state)
{
    (void)state;
    strcpy(path, "/tmp/qkv-trainer-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
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

/* The checkpoint after STEPS steps, stopped and resumed with new objects at each of the given ones. */
static char *train(const qkv_dataset *pairs, int threads, int n_stops, const int *stops, size_t *n)
{
    qkv_set_num_threads(threads);
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &options);
    assert_non_null(t);
    for (int step = 1; step <= STEPS; step++) {
        qkv_train_state now = { 0 };
        assert_int_equal(qkv_trainer_step(t, &now), QKV_OK);
        assert_int_equal(now.step, step);
        qkv__trainer_best_so_far(t)->best = now.loss;
        if (step > STEPS / 2) qkv__trainer_best_so_far(t)->best_loss = now.loss / 3; /* before, it is not written */
        for (int i = 0; i < n_stops; i++) {
            if (stops[i] != step) continue;
            assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
            qkv_trainer_free(t);
            qkv_model_free(m);
            m = qkv_model_new(&small, 99); /* other weights, which the checkpoint replaces */
            t = qkv_trainer_new(m, pairs, &options);
            assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_OK);
            assert_true(qkv__trainer_best_so_far(t)->best_loss == (step > STEPS / 2 ? now.loss / 3 : 0));
        }
    }
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_set_num_threads(0);
    return bytes_of(path, n);
}

static void same_bytes_on_any_threads(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(300, 1);
    size_t n, m;
    char *first = train(pairs, 1, 0, NULL, &n);
    for (int threads = 2; threads <= 4; threads += 2) {
        char *other = train(pairs, threads, 0, NULL, &m);
        assert_int_equal(n, m);
        assert_memory_equal(first, other, n);
        free(other);
    }
    free(first);
    qkv_dataset_free(pairs);
}

static void same_bytes_after_any_stop(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(300, 1);
    static const int stops[] = { 1, 7, 8, 15, 22, 23, 31, 44, 58, 59 };
    size_t n, m;
    char *first = train(pairs, 2, 0, NULL, &n);
    for (int i = 0; i < 10; i++) {
        char *other = train(pairs, 2, 1, &stops[i], &m);
        assert_int_equal(n, m);
        assert_memory_equal(first, other, n);
        free(other);
    }
    char *all = train(pairs, 2, 10, stops, &m);
    assert_int_equal(n, m);
    assert_memory_equal(first, all, n);
    free(all);
    free(first);
    qkv_dataset_free(pairs);
}

/* It learns to reverse; with targets of other sources it does not, as it must not. */
static void it_learns(void **state)
{
    (void)state;
    const qkv_batch_opts plain = { .start = 1, .end = 2 };
    qkv_config o = small;
    o.dim = 32, o.d_ff = 64, o.dropout = o.attention_dropout = o.ffn_dropout = 0;
    qkv_trainer_opts fast = options;
    qkv_schedule schedule = *fast.schedule;
    schedule.dim = 32, schedule.warmup = 100, fast.schedule = &schedule;
    fast.batches = &(qkv_batch_opts){ .max_tokens = 400, .start = 1, .end = 2 };
    qkv_dataset *pairs = make_pairs(2000, 1), *unseen = make_pairs(200, 77);
    qkv_model *m = qkv_model_new(&o, 3);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &fast);
    double before, after;
    assert_int_equal(qkv_evaluate(m, unseen, &(qkv_evaluate_opts){ .batches = &plain }, &before), QKV_OK);
    for (int step = 0; step < 500; step++) assert_int_equal(qkv_trainer_step(t, NULL), QKV_OK);
    assert_int_equal(qkv_evaluate(m, unseen, &(qkv_evaluate_opts){ .batches = &plain }, &after), QKV_OK);
    print_message("loss of a token it has not seen: %.3f before, %.3f after\n", before, after);
    assert_true(before > 2 && after < 0.35);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
    qkv_dataset_free(unseen);
}

/* Two batches in an update give the gradient of one batch with all their pairs. */
static void parts_make_the_whole(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(60, 5);
    qkv_config o = small;
    o.dropout = o.attention_dropout = o.ffn_dropout = 0;
    float *weights[2];
    int64_t n = 0;
    for (int parts = 0; parts < 2; parts++) {
        qkv_model *m = qkv_model_new(&o, 3);
        qkv_trainer_opts sgd = { .optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD, .lr = 0.5f },
                                 .batches = &(qkv_batch_opts){ .max_tokens = parts ? 60 : 1000, .start = 1, .end = 2 },
                                 .label_smoothing = 0.1f };
        sgd.accumulate = parts ? 100 : 1;
        qkv_trainer *t = qkv_trainer_new(m, pairs, &sgd);
        qkv_train_state now = { 0 };
        assert_int_equal(qkv_trainer_step(t, &now), QKV_OK);
        assert_true(parts ? now.batches > 3 : now.batches == 1);
        assert_int_equal(now.batch, now.batches);
        n = qkv__params_block(qkv_model_params(m));
        weights[parts] = malloc(sizeof(float) * (size_t)n);
        memcpy(weights[parts], qkv__params_data(qkv_model_params(m)), sizeof(float) * (size_t)n);
        qkv_trainer_free(t);
        qkv_model_free(m);
    }
    for (int64_t i = 0; i < n; i++) assert_true(fabsf(weights[0][i] - weights[1][i]) < 1e-5f);
    free(weights[0]);
    free(weights[1]);
    qkv_dataset_free(pairs);
}

/* A learning rate that blows the weights up ends the training with a name, and not with a checkpoint of NaN. */
static void numbers_that_blow_up(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(100, 1);
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer_opts wild = options;
    wild.optimizer = &(qkv_optimizer_opts){ .rule = QKV_OPTIMIZER_SGD };
    wild.schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_CONSTANT, .lr = 1e38 };
    wild.clip_norm = 0;
    qkv_trainer *t = qkv_trainer_new(m, pairs, &wild);
    qkv_status status = QKV_OK;
    int steps = 0;
    while (!status && steps++ < 20) status = qkv_trainer_step(t, NULL);
    assert_int_equal(status, QKV_NUMERIC);
    char step[32];
    snprintf(step, sizeof step, "step %d: ", steps);
    assert_ptr_equal(strstr(qkv_error(), step), qkv_error());
    assert_non_null(strstr(qkv_error(), "not finite"));
    qkv_params *p = qkv_model_params(m);
    for (int64_t i = 0; i < qkv__params_block(p); i++) assert_true(qkv__params_grad(p)[i] == 0);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
}

/* An update that overflows is noticed at its own step, and the last checkpoint stays. */
static void updates_that_overflow(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(100, 1);
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer_opts wild = options;
    wild.schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_CONSTANT, .lr = 1e38 };
    qkv_trainer *t = qkv_trainer_new(m, pairs, &wild);
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
    size_t n, still;
    char *before = bytes_of(path, &n);
    assert_int_equal(qkv_trainer_step(t, NULL), QKV_NUMERIC);
    assert_non_null(strstr(qkv_error(), "step 1: after its update a value of \""));
    assert_int_equal(qkv_trainer_save(t, path), QKV_NUMERIC);
    assert_non_null(strstr(qkv_error(), "is not finite"));
    char *after = bytes_of(path, &still);
    assert_true(n == still && !memcmp(before, after, n));
    free(before);
    free(after);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
}

/* ---- checkpoints that do not fit ---- */

static void refuses(qkv_trainer *t, qkv_status status, const char *words)
{
    if (qkv_trainer_load(t, path, NULL) != status) fail_msg("\"%s\", expected \"%s\"", qkv_error(), words);
    if (!strstr(qkv_error(), words)) fail_msg("\"%s\", expected \"%s\"", qkv_error(), words);
}

static void other_checkpoints(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(50, 1), *others = make_pairs(50, 2);
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &options), *other;
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);

    other = qkv_trainer_new(m, others, &options);
    refuses(other, QKV_USAGE, "other pairs");
    qkv_trainer_free(other);

    qkv_trainer_opts o = options;
    o.label_smoothing = 0.2f;
    other = qkv_trainer_new(m, pairs, &o);
    refuses(other, QKV_USAGE, "other options");
    qkv_trainer_free(other);

    qkv_config wider = small;
    wider.d_ff = 48;
    qkv_model *m2 = qkv_model_new(&wider, 3);
    other = qkv_trainer_new(m2, pairs, &options);
    refuses(other, QKV_USAGE, "other model");
    qkv_trainer_free(other);
    qkv_model_free(m2);

    assert_int_equal(qkv_params_save(qkv_model_params(m), path), QKV_OK); /* weights alone */
    refuses(t, QKV_FORMAT, "not a checkpoint");
    unlink(path);
    refuses(t, QKV_IO, "cannot open");
    make_path(NULL);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
    qkv_dataset_free(others);
}

/* The checkpoint again, but one note has another value, or none; and but one tensor: its numbers are fewer, or it is missing; a
 * tensor called `added` joins it. NULL: none of these. */
static void rewrite_checkpoint(const char *note, const char *value, const char *tensor, int64_t numbers, const char *added)
{
    static const char *const keys[] = { "pairs",  "model", "options",   "steps",  "epoch",    "next",
                                        "passes", "best",  "best_step", "missed", "best_loss" };
    enum { KEYS = sizeof keys / sizeof *keys, MOST = 200 };
    qkv__safetensors file;
    qkv__to_store tensors[MOST];
    qkv__note notes[KEYS];
    int n = 0, n_notes = 0;
    const float one[16] = { 1 };
    const int64_t shape = numbers;
    assert_int_equal(qkv__safetensors_read(path, &file), QKV_OK);
    assert_true(file.n < MOST);
    for (int i = 0; i < file.n; i++) {
        const qkv__stored *t = &file.tensors[i];
        bool changes = tensor && !strcmp(t->name, tensor);
        if (changes && !numbers) continue;
        if (changes) tensors[n++] = (qkv__to_store){ .name = tensor, .ndim = 1, .shape = &shape, .count = shape, .data = one };
        else
            tensors[n++] = (qkv__to_store){
                .name = t->name, .ndim = t->ndim, .shape = t->shape, .count = t->count, .data = qkv__safetensors_floats(t)
            };
    }
    if (added) tensors[n++] = (qkv__to_store){ .name = added, .ndim = 1, .shape = &shape, .count = shape, .data = one };
    for (int i = 0; i < KEYS; i++) {
        const char *written = note && !strcmp(keys[i], note) ? value : qkv__safetensors_note(&file, keys[i]);
        if (written) notes[n_notes++] = (qkv__note){ keys[i], written };
    }
    assert_int_equal(qkv__safetensors_write(path, n, tensors, n_notes, notes), QKV_OK);
    qkv__safetensors_free(&file);
}

static void put_back(const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* What a checkpoint counts is a count, its numbers are numbers, and its tensors are all there and no more. */
static void changed_checkpoints(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(50, 1);
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &options);
    assert_int_equal(qkv_trainer_step(t, NULL), QKV_OK);
    *qkv__trainer_best_so_far(t) = (qkv__best_so_far){ .best = 1.5, .best_step = 1, .missed = 2, .best_loss = 0.25 };
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
    size_t n;
    char *whole = bytes_of(path, &n), words[80];
    static const char *const counts[] = { "steps", "epoch", "next", "passes", "best_step", "missed" };
    static const char *const no_counts[] = { NULL, "", "-1", " 1", "1x", "x", "99999999999999999999" };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t k = 0; k < sizeof no_counts / sizeof *no_counts; k++) {
            rewrite_checkpoint(counts[i], no_counts[k], NULL, 0, NULL);
            snprintf(words, sizeof words, "\"%s\" is missing or not a count", counts[i]);
            refuses(t, QKV_FORMAT, words);
            put_back(whole, n);
        }
    static const char *const no_numbers[] = { "", "x", "1x", NULL };
    for (size_t k = 0; k < sizeof no_numbers / sizeof *no_numbers; k++) {
        rewrite_checkpoint("best", no_numbers[k], NULL, 0, NULL);
        refuses(t, QKV_FORMAT, "\"best\" is missing or not a number");
        put_back(whole, n);
        if (!no_numbers[k]) continue; /* an older checkpoint has none */
        rewrite_checkpoint("best_loss", no_numbers[k], NULL, 0, NULL);
        refuses(t, QKV_FORMAT, "\"best_loss\" is missing or not a number");
        put_back(whole, n);
    }
    static const char name[] = "optimizer.1.embed.weight";
    rewrite_checkpoint(NULL, NULL, name, 0, NULL);
    refuses(t, QKV_FORMAT, "optimizer.1.embed.weight\" is missing");
    put_back(whole, n);
    rewrite_checkpoint(NULL, NULL, name, 15, NULL);
    refuses(t, QKV_FORMAT, "optimizer.1.embed.weight\" has another shape or type");
    put_back(whole, n);
    rewrite_checkpoint(NULL, NULL, NULL, 3, "one.more");
    refuses(t, QKV_FORMAT, "tensors, expected ");
    put_back(whole, n);
    *qkv__trainer_best_so_far(t) = (qkv__best_so_far){ 0 };
    rewrite_checkpoint("best_loss", NULL, NULL, 0, NULL);
    assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_OK);
    const qkv__best_so_far *best = qkv__trainer_best_so_far(t);
    assert_true(best->best == 1.5 && best->best_step == 1 && best->missed == 2 && best->best_loss == 0);
    put_back(whole, n);
    assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_OK);
    assert_true(best->best_loss == 0.25);
    free(whole);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
}

/* Cut at many places: refused, and the trainer goes on as if nothing had been tried. */
static void cut_checkpoints(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(50, 1);
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer *t = qkv_trainer_new(m, pairs, &options);
    assert_int_equal(qkv_trainer_save(t, path), QKV_OK);
    size_t n;
    char *whole = bytes_of(path, &n);
    float first = qkv__params_data(qkv_model_params(m))[0];
    for (size_t cut = 0; cut < n; cut += cut < 3000 ? 13 : 4001) {
        FILE *f = fopen(path, "wb");
        assert_int_equal(fwrite(whole, 1, cut, f), cut);
        fclose(f);
        assert_int_equal(qkv_trainer_load(t, path, NULL), QKV_FORMAT);
        assert_true(qkv__params_data(qkv_model_params(m))[0] == first);
    }
    free(whole);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
}

static void bad_options(void **state)
{
    (void)state;
    qkv_dataset *pairs = make_pairs(5, 1), *none = qkv_dataset_new();
    qkv_model *m = qkv_model_new(&small, 3);
    qkv_trainer_opts o = options;
    assert_null(qkv_trainer_new(m, none, &o));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    for (int i = 0; i < 2; i++) {
        o = options, o.clip_norm = i ? -1 : NAN;
        assert_null(qkv_trainer_new(m, pairs, &o));
        o = options, o.accumulate = i ? 10001 : -1;
        assert_null(qkv_trainer_new(m, pairs, &o));
        assert_int_equal(qkv_error_status(), QKV_USAGE);
        qkv_config half = small; /* an encoder or a decoder alone translates nothing */
        if (i) half.encoder_layers = 0;
        else half.decoder_layers = 0;
        qkv_model *alone = qkv_model_new(&half, 3);
        assert_null(qkv_trainer_new(alone, pairs, &options));
        assert_non_null(strstr(qkv_error(), "an encoder and a decoder"));
        qkv_model_free(alone);
    }
    o = options, o.clip_norm = 0, o.accumulate = 10000; /* more than there are */
    qkv_trainer *t = qkv_trainer_new(m, pairs, &o);
    qkv_train_state at = { 0 };
    assert_int_equal(qkv_trainer_step(t, &at), QKV_OK);
    assert_true(at.step == 1 && at.epoch == 0 && at.batch == at.batches && at.grad_norm == 0);
    assert_int_equal(qkv_trainer_step(t, &at), QKV_OK);
    assert_true(at.step == 2 && at.epoch == 1 && at.batch == at.batches);
    assert_int_equal(qkv_trainer_step(NULL, &at), QKV_USAGE);
    assert_int_equal(qkv_trainer_save(t, NULL), QKV_USAGE);
    assert_int_equal(qkv_trainer_save(NULL, "x"), QKV_USAGE);
    assert_int_equal(qkv_trainer_load(t, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv_trainer_load(NULL, "x", NULL), QKV_USAGE);
    qkv_trainer_free(t);
    o = options, o.schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_INVERSE_SQRT, .lr = 1, .dim = 16 };
    assert_null(qkv_trainer_new(m, pairs, &o));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    double loss;
    assert_int_equal(qkv_evaluate(m, none, &(qkv_evaluate_opts){ .batches = &batches }, &loss), QKV_USAGE);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
    qkv_dataset_free(none);
}

static qkv_status all_of_it(void)
{
    qkv_dataset *pairs = make_pairs(30, 1);
    qkv_model *m = pairs ? qkv_model_new(&small, 3) : NULL;
    qkv_trainer *t = m ? qkv_trainer_new(m, pairs, &options) : NULL;
    double loss;
    qkv_status status = t ? qkv_trainer_step(t, NULL) : qkv_error_status();
    if (!status) status = qkv_trainer_save(t, path);
    if (!status) status = qkv_trainer_load(t, path, NULL);
    if (!status) status = qkv_evaluate(m, pairs, &(qkv_evaluate_opts){ .batches = &batches }, &loss);
    qkv_trainer_free(t);
    qkv_model_free(m);
    qkv_dataset_free(pairs);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(all_of_it) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_bytes_on_any_threads, make_path, remove_path),
        cmocka_unit_test_setup_teardown(same_bytes_after_any_stop, make_path, remove_path),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(numbers_that_blow_up),
        cmocka_unit_test_setup_teardown(updates_that_overflow, make_path, remove_path),
        cmocka_unit_test_setup_teardown(other_checkpoints, make_path, remove_path),
        cmocka_unit_test_setup_teardown(changed_checkpoints, make_path, remove_path),
        cmocka_unit_test_setup_teardown(cut_checkpoints, make_path, remove_path),
        cmocka_unit_test(bad_options),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, make_path, remove_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
