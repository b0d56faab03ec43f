/* test_run.c: a training in its folder: stopped anywhere it goes on to the same files; limits, patience, the best model;
 * folders that are refused. */
#include <qkv/qkv.h>
#include <qkv/unstable/runs.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"

enum { VOCABULARY = 12, FIRST = 3, STEPS = 12 };

static const qkv_config small = {
    .vocab_size = VOCABULARY, .encoder_layers = 1, .decoder_layers = 1, .dim = 16, .heads = 2, .d_ff = 32, .dropout = 0.1f
};

static qkv_dataset *pairs;

static int make_pairs(void **state)
{
    pairs = qkv_dataset_new();
    for (int i = 0; i < 60; i++) {
        int32_t ids[4], n = 1 + i % 4;
        for (int k = 0; k < n; k++) ids[k] = FIRST + (7 * i + 3 * k) % (VOCABULARY - FIRST);
        if (qkv_dataset_add_ids(pairs, ids, (size_t)n, ids, (size_t)n)) return -1;
    }
    return make_folder(state);
}

static int forget_pairs(void **state)
{
    qkv_dataset_free(pairs);
    return remove_folder(state);
}

/* What a run told, and when it is to stop. */
typedef struct witness {
    int64_t stop_at; /* 0: never */
    int64_t saved;   /* step of the checkpoint */
    int64_t step, validations, steps_told, begun, resumed, last_steps, ends;
    double scores[STEPS + 1]; /* of each validation, in turn */
    int n_scores;
} witness;

static void look_on(void *data, const qkv_train_event *e)
{
    witness *w = data;
    w->step = e->state->step;
    switch (e->kind) {
    case QKV_EVENT_BEGIN: w->begun++; break;
    case QKV_EVENT_RESUME: w->resumed = e->state->step; break;
    case QKV_EVENT_STEP: w->steps_told++; break;
    case QKV_EVENT_VALIDATION: assert_non_null(e->score); break;
    case QKV_EVENT_LAST_STEP: w->last_steps++; break;
    case QKV_EVENT_CHECKPOINT: w->saved = e->state->step; break;
    case QKV_EVENT_END: w->ends++; assert_true(e->end <= QKV_END_CANCELLED);
    }
}

static int stop_there(void *data)
{
    const witness *w = data;
    return w->stop_at && w->step >= w->stop_at;
}

static qkv_status give_score(void *data, const qkv_model *m, qkv_train_score *out)
{
    witness *w = data;
    assert_non_null(m);
    if (w->n_scores) out->score = w->scores[w->validations % w->n_scores];
    w->validations++;
    snprintf(out->summary, sizeof out->summary, "score %g", out->score);
    snprintf(out->json, sizeof out->json, "\"score\": %g", out->score);
    return QKV_OK;
}

static qkv_trainer_opts how;  /* of the last options, */
static qkv_schedule schedule; /* its schedule, */
static qkv_hooks hooks;       /* and hooks */

static qkv_train_opts options_of(const char *name, witness *w)
{
    static const qkv_optimizer_opts adam = { .rule = QKV_OPTIMIZER_ADAM };
    static const qkv_batch_opts batches = { .max_tokens = 60, .start = 1, .end = 2 };
    schedule = (qkv_schedule){ .kind = QKV_SCHEDULE_LINEAR, .lr = 1e-2, .warmup = 2, .steps = STEPS };
    how = (qkv_trainer_opts){ .optimizer = &adam, .schedule = &schedule, .batches = &batches, .seed = 5 };
    hooks = (qkv_hooks){ .data = w, .cancel = stop_there };
    return (qkv_train_opts){ .folder = name ? in_folder(name) : NULL,
                             .job = "copy",
                             .trainer = &how,
                             .steps = STEPS,
                             .validate_every = 4,
                             .save_every = 3,
                             .log_every = 5,
                             .on_event = look_on,
                             .hooks = &hooks,
                             .data = w };
}

/* A copy of the result; zero after an error. */
typedef struct ended {
    qkv_train_result r;
    qkv_train_state at;
} ended;

static qkv_status train(const qkv_train_opts *o, ended *end)
{
    qkv_model *m = qkv_model_new(&small, 3);
    assert_non_null(m);
    qkv_train_result *result = NULL;
    qkv_status status = qkv_train(m, pairs, o, end ? &result : NULL);
    if (end) *end = (ended){ 0 };
    if (end && !status) end->r = *result, end->at = *result->state;
    if (status && result) assert_null(result->state);
    qkv_free(result);
    qkv_model_free(m);
    return status;
}

/* A file of a run's folder, to be freed; "" when it is not there. */
static char *contents(const char *run, const char *file, size_t *n)
{
    char name[128], *bytes;
    snprintf(name, sizeof name, "%s/%s", run, file);
    FILE *f = fopen(in_folder(name), "rb");
    *n = 0;
    if (!f) return calloc(1, 1);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    bytes = calloc((size_t)size + 1, 1);
    *n = fread(bytes, 1, (size_t)size, f);
    fclose(f);
    return bytes;
}

static void assert_same_file(const char *a, const char *b, const char *file)
{
    size_t n, m;
    char *x = contents(a, file, &n), *y = contents(b, file, &m);
    assert_int_equal(n, m);
    assert_true(n > 0);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

/* The log without its times. */
static char *timeless_log(const char *run)
{
    size_t n, used = 0;
    char *log = contents(run, "log.jsonl", &n), *out = calloc(1, n + 1);
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        const char *times = strstr(line, ", \"tokens_per_second\"");
        used += (size_t)sprintf(out + used, "%.*s\n", times ? (int)(times - line) : (int)strlen(line), line);
    }
    free(log);
    return out;
}

static void assert_same_log(const char *a, const char *b)
{
    char *x = timeless_log(a), *y = timeless_log(b);
    assert_true(*x);
    assert_string_equal(x, y);
    free(x);
    free(y);
}

/* Stopped there, or at a limit, which measures once more. */
static void the_log_is_that_of_one_run(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_train_opts o = options_of("logged", &w);
    o.validate = give_score;
    assert_int_equal(train(&o, NULL), QKV_OK);
    for (int64_t at = 1; at < 2 * STEPS; at++) {
        char name[32];
        snprintf(name, sizeof name, "logged%lld", (long long)at);
        w = (witness){ .stop_at = at / 2 };
        o = options_of(name, &w), o.validate = give_score;
        if (at % 2) o.steps = (at + 1) / 2, w.stop_at = 0;
        assert_int_equal(train(&o, NULL), QKV_OK);
        w = (witness){ 0 };
        o.resume = 1, o.steps = STEPS;
        assert_int_equal(train(&o, NULL), QKV_OK);
        assert_same_log("logged", name);
    }
}

/* What a kill after the checkpoint of step 9 leaves: lines of steps that are made again. */
static void a_killed_run_writes_no_line_twice(void **state)
{
    (void)state;
    witness w = { .stop_at = 9 };
    qkv_train_opts o = options_of("killed", &w);
    o.validate = give_score;
    assert_int_equal(train(&o, NULL), QKV_OK);
    FILE *f = fopen(in_folder("killed/log.jsonl"), "ab");
    fputs("{\"step\": 10, \"epoch\": 1, \"loss\": 9, \"lr\": 1, \"norm\": 1, \"tokens_per_second\": 1, \"seconds\": 70.5}\n"
          "{\"step\": 10, \"score\": 0, \"best\": false}\n",
          f);
    assert_int_equal(fclose(f), 0);
    w = (witness){ 0 }, o.resume = 1;
    assert_int_equal(train(&o, NULL), QKV_OK);
    assert_same_log("logged", "killed");
    size_t n;
    char *log = contents("killed", "log.jsonl", &n);
    assert_non_null(strstr(log, "\"seconds\": 70.5")); /* time that was spent stays counted */
    free(log);
}

static void stopped_anywhere_it_goes_on_to_the_same_files(void **state)
{
    (void)state;
    witness whole = { 0 };
    qkv_train_opts o = options_of("whole", &whole);
    ended end;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_int_equal(end.at.step, STEPS);
    assert_int_equal(end.r.saved_step, STEPS);
    assert_int_equal(end.r.end, QKV_END_STEPS);
    assert_true(whole.begun == 1 && whole.steps_told == STEPS && whole.last_steps == 1 && whole.ends == 1);
    for (int64_t at = 1; at < STEPS; at++) {
        char name[32];
        snprintf(name, sizeof name, "stop%lld", (long long)at);
        witness first = { .stop_at = at }, second = { 0 };
        o = options_of(name, &first);
        assert_int_equal(train(&o, &end), QKV_OK);
        assert_int_equal(end.r.saved_step, at);
        assert_int_equal(end.r.end, QKV_END_CANCELLED);
        o = options_of(name, &second);
        o.resume = 1;
        assert_int_equal(train(&o, &end), QKV_OK);
        assert_int_equal(second.resumed, at);
        assert_int_equal(second.steps_told, STEPS - at);
        assert_same_file("whole", name, "model.safetensors");
        assert_same_file("whole", name, "checkpoint.safetensors");
        assert_same_file("whole", name, "training.json");
    }
}

/* Validations at 4, 8 and 12; the model of the best stays, and is found again. */
static void the_best_model_stays(void **state)
{
    (void)state;
    witness w = { .scores = { 1, 3, 2 }, .n_scores = 3 }, short_one = { .scores = { 1, 3 }, .n_scores = 2 };
    qkv_train_opts o = options_of("best", &w);
    ended end;
    o.validate = give_score;
    o.keep = 1;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_int_equal(end.r.best_step, 8);
    assert_true(end.r.best == 3 && end.r.missed == 1);
    assert_int_equal(access(in_folder("best/step-12/model.safetensors"), F_OK), 0);
    assert_int_equal(access(in_folder("best/step-8"), F_OK), -1); /* only the last one is kept */
    o = options_of("eight", &short_one);
    o.validate = give_score;
    o.steps = 8;
    schedule.steps = STEPS;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_same_file("best", "eight", "model.safetensors");
    size_t n;
    char *log = contents("best", "log.jsonl", &n);
    assert_non_null(strstr(log, "{\"step\": 8, \"score\": 3, \"best\": true}"));
    assert_non_null(strstr(log, "{\"step\": 12, \"score\": 2, \"best\": false}"));
    assert_non_null(strstr(log, "{\"step\": 5, \"epoch\": "));
    free(log);
}

/* A limit between two validations: what is measured last is not counted, but the folder and the record have it. */
static void the_last_validation_is_told(void **state)
{
    (void)state;
    witness w = { .scores = { 1, 3 }, .n_scores = 2 };
    qkv_train_opts o = options_of("between", &w);
    ended end;
    o.validate = give_score;
    o.steps = 6;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_int_equal(end.r.best_step, 4);
    size_t n;
    char *record = contents("between", "training.json", &n);
    assert_non_null(strstr(record, "\"best_step\": 6"));
    assert_non_null(strstr(record, "\"best_score\": 3"));
    free(record);
}

static void patience_and_epochs_end_it(void **state)
{
    (void)state;
    witness w = { .scores = { 3, 2, 1 }, .n_scores = 3 };
    qkv_train_opts o = options_of(NULL, &w);
    ended end;
    int64_t epoch_steps, last;
    o.validate = give_score;
    o.validate_every = 2;
    o.patience = 2;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_int_equal(end.at.step, 6);
    assert_int_equal(end.r.end, QKV_END_PATIENCE);
    o.patience = 0;
    o.epochs = 1;
    assert_int_equal(qkv_train_steps(pairs, &o, &epoch_steps, &last), QKV_OK);
    assert_true(epoch_steps > 1 && epoch_steps < STEPS && last == epoch_steps);
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_int_equal(end.at.step, epoch_steps);
    assert_int_equal(end.r.end, QKV_END_EPOCHS);
    assert_int_equal(end.r.saved_step, -1); /* without a folder nothing is written */
}

/* How far it is, by the limit that is nearest. */
typedef struct progress_seen {
    int64_t last_step, told;
    double minutes;
} progress_seen;

static void look_at_progress(void *data, const qkv_train_event *e)
{
    progress_seen *p = data;
    double done = p->last_step ? (double)e->state->step / (double)p->last_step : 0;
    assert_int_equal(e->last_step, p->last_step);
    if (p->minutes > 0) { /* which never end here: hours are left */
        assert_true(e->done >= done && e->done < done + 0.01);
        if (!p->last_step || !e->state->step) assert_true(e->seconds_left > 3600 && e->seconds_left <= 60 * p->minutes);
        else assert_true(e->seconds_left >= 0 && e->seconds_left < 3600);
    } else {
        assert_true(e->done == done);
        if (e->state->step) assert_true(e->seconds_left >= 0);
        else assert_true(e->seconds_left < 0); /* nobody knows yet */
    }
    if (e->state->step == p->last_step && p->last_step) assert_true(e->done == 1 && e->seconds_left == 0);
    p->told++;
}

static int stop_after_five(void *data) { return ((progress_seen *)data)->told > 5; }

static void progress_is_told(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) { /* by steps, by steps and minutes, by minutes */
        progress_seen p = { .last_step = k < 2 ? STEPS : 0, .minutes = k ? 1000 : 0 };
        qkv_train_opts o = options_of(NULL, NULL);
        ended end;
        o.data = &p, o.on_event = look_at_progress,
        hooks = (qkv_hooks){ .data = &p, .cancel = k == 2 ? stop_after_five : NULL }, o.minutes = p.minutes;
        if (k == 2) o.steps = 0;
        assert_int_equal(train(&o, &end), QKV_OK);
        assert_int_equal(end.r.end, k == 2 ? QKV_END_CANCELLED : QKV_END_STEPS);
        assert_true(p.told > 5);
    }
    qkv_train_opts o = options_of(NULL, &(witness){ 0 });
    ended end;
    o.minutes = 1e-15; /* less than it takes to look at the clock twice */
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_int_equal(end.r.end, QKV_END_TIME);
    assert_int_equal(end.at.step, 0);
    int64_t epoch_steps, last;
    o.steps = 0, o.epochs = INT64_MAX;
    assert_int_equal(qkv_train_steps(pairs, &o, &epoch_steps, &last), QKV_OK);
    assert_true(last == INT64_MAX);
    o.epochs = 3;
    assert_int_equal(qkv_train_steps(pairs, &o, &epoch_steps, &last), QKV_OK);
    assert_true(last == 3 * epoch_steps);
    assert_int_equal(qkv_train_steps(NULL, &o, &epoch_steps, &last), QKV_USAGE);
}

/* ---- files of others, and files of an earlier run ---- */

static void put_file(const char *name)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_true(f && fputs("x", f) >= 0 && !fclose(f));
}

static bool is_there(const char *name) { return access(in_folder(name), F_OK) == 0; }

static void what_was_half_written_is_swept(void **state)
{
    (void)state;
    static const char *const folders[] = { "swept", "swept/step-3", "swept/step-3/1_Pooling", "swept/mine" };
    static const char *const gone[] = { "a.1.tmp", "config.json.12.tmp" };
    static const char *const stay[] = { ".1.tmp", "12.tmp", "a.tmp", "a.b.tmp", "a.1b.tmp",
                                        "a1.tmp", "a.1.tm", "tmp",   "a.1.tmp2" };
    witness w = { 0 };
    char name[64];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(mkdir(in_folder(folders[i]), 0700), 0);
        for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
            snprintf(name, sizeof name, "%s/%s", folders[i], gone[k]), put_file(name);
        for (size_t k = 0; k < sizeof stay / sizeof *stay; k++)
            snprintf(name, sizeof name, "%s/%s", folders[i], stay[k]), put_file(name);
    }
    qkv_train_opts o = options_of("swept", &w);
    assert_int_equal(train(&o, NULL), QKV_OK);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < sizeof gone / sizeof *gone; k++) {
            snprintf(name, sizeof name, "%s/%s", folders[i], gone[k]);
            assert_int_equal(is_there(name), i == 3); /* a folder that is not a training's is left alone */
        }
        for (size_t k = 0; k < sizeof stay / sizeof *stay; k++) {
            snprintf(name, sizeof name, "%s/%s", folders[i], stay[k]);
            if (!is_there(name)) fail_msg("%s is gone", name);
        }
    }
}

/* Two models are kept; what someone put beside one that is not stays. */
static void models_are_kept(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_train_opts o = options_of("kept", &w);
    o.validate = give_score, o.validate_every = 3, o.keep = 2;
    assert_int_equal(mkdir(in_folder("kept"), 0700), 0);
    assert_int_equal(mkdir(in_folder("kept/step-3"), 0700), 0);
    put_file("kept/step-3/notes.txt");
    assert_int_equal(train(&o, NULL), QKV_OK);
    assert_true(is_there("kept/step-12/config.json") && is_there("kept/step-9/model.safetensors"));
    assert_true(!is_there("kept/step-6") && is_there("kept/step-3/notes.txt") && !is_there("kept/step-3/config.json"));
    w = (witness){ 0 };
    o = options_of("none_kept", &w);
    o.validate = give_score, o.validate_every = 3;
    assert_int_equal(train(&o, NULL), QKV_OK);
    assert_true(!is_there("none_kept/step-12") && is_there("none_kept/checkpoint.safetensors"));
    w = (witness){ 0 };
    o = options_of(NULL, &w); /* nowhere to keep them */
    o.validate = give_score, o.validate_every = 3, o.keep = 2;
    assert_int_equal(train(&o, NULL), QKV_OK);
    assert_int_equal(w.validations, 4);
}

/* Of equal scores the lower loss is better, and an equal one is not. */
static qkv_status equal_scores(void *data, const qkv_model *m, qkv_train_score *out)
{
    static const double losses[] = { 5, 5, 4, 4 };
    int *n = data;
    (void)m;
    *out = (qkv_train_score){ .score = 1, .loss = losses[*n % 4] };
    ++*n;
    snprintf(out->json, sizeof out->json, "\"score\": 1");
    return QKV_OK;
}

static void losses_decide_between_equal_scores(void **state)
{
    (void)state;
    int n = 0;
    qkv_train_opts o = options_of("equal", NULL);
    ended end;
    o.data = &n, o.on_event = NULL, o.hooks = NULL, o.validate = equal_scores, o.validate_every = 3;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_true(n == 4 && end.r.best_step == 9 && end.r.missed == 1 && end.r.best_loss == 4);
    size_t size;
    char *log = contents("equal", "log.jsonl", &size), *record = contents("equal", "training.json", &size);
    assert_non_null(strstr(log, "{\"step\": 12, \"score\": 1, \"best\": false}\n"));
    assert_non_null(strstr(record, "\"best_step\": 9"));
    assert_non_null(strstr(record, "\"stopped\": \"all steps are made\""));
    free(log);
    free(record);
}

static qkv_status fail_at_second(void *data, const qkv_model *m, qkv_train_score *out)
{
    int *n = data;
    (void)m;
    snprintf(out->json, sizeof out->json, "\"score\": 0");
    return ++*n == 2 ? QKV_FAILURE : QKV_OK;
}

/* An error of a step, of a validation or of a checkpoint is what the run gives, at once. */
static void errors_end_it(void **state)
{
    (void)state;
    witness w = { 0 };
    ended end;
    qkv_train_opts o = options_of(NULL, &w);
    qkv_trainer_opts wild = *o.trainer;
    wild.schedule = &(qkv_schedule){ .kind = QKV_SCHEDULE_CONSTANT, .lr = 1e38 };
    o.trainer = &wild;
    assert_int_equal(train(&o, &end), QKV_NUMERIC);
    assert_true(end.at.step == 0 && w.steps_told == 0 && w.ends == 0);
    int n = 0;
    o = options_of("failing", NULL);
    o.data = &n, o.on_event = NULL, o.hooks = NULL, o.validate = fail_at_second, o.validate_every = 3;
    assert_int_equal(train(&o, &end), QKV_FAILURE);
    assert_int_equal(n, 2);
    put_file("failing/checkpoint.safetensors");
    n = 2;
    o.resume = 1;
    assert_int_equal(train(&o, &end), QKV_FORMAT);
    assert_true(n == 2 && end.at.step == 0);
}

static void says(qkv_status wanted, qkv_status status, const char *words)
{
    assert_int_equal(status, wanted);
    if (!strstr(qkv_error(), words)) fail_msg("\"%s\" is not in: %s", words, qkv_error());
}

static void folders_that_are_refused(void **state)
{
    (void)state;
    witness w = { .stop_at = 3 };
    qkv_train_setting dim = { .name = "dim", .value = "16" }, text = { .name = "train", .value = "a", .may_differ = 1 };
    qkv_train_setting settings[] = { dim, text, { .name = "newer", .value = "x", .is_default = 1 } };
    qkv_train_opts o = options_of("refused", &w);
    o.settings = settings;
    o.n_settings = 2;
    o.about = "{\"why\": \"a test\"}";
    assert_int_equal(train(&o, NULL), QKV_OK);
    size_t n;
    char *record = contents("refused", "training.json", &n);
    assert_non_null(strstr(record, "\"dim\": \"16\""));
    assert_non_null(strstr(record, "\"why\": \"a test\""));
    free(record);
    says(QKV_USAGE, qkv_train_check(&o), "holds a training already");
    o.resume = 1;
    o.n_settings = 3; /* what nobody asked for, and the record does not know, fits; another path does too */
    settings[1].value = "b";
    assert_int_equal(qkv_train_check(&o), QKV_OK);
    settings[2].is_default = 0;
    says(QKV_USAGE, qkv_train_check(&o), "--newer was \"\" and is \"x\"");
    settings[2].is_default = 1;
    settings[0].value = "32";
    says(QKV_USAGE, train(&o, NULL), "--dim was \"16\" and is \"32\"");
    settings[0].value = "16";
    o.steps = schedule.steps = STEPS + 1;
    says(QKV_USAGE, train(&o, NULL), "made for 12 steps");
    o = options_of("nothing", &w);
    o.resume = 1;
    says(QKV_USAGE, qkv_train_check(&o), "there is no training in");
    qkv_model *m = qkv_model_new(&small, 1);
    assert_int_equal(qkv_model_save(m, in_folder("model"), NULL), QKV_OK);
    qkv_model_free(m);
    o = options_of("model", &w);
    says(QKV_USAGE, train(&o, NULL), "holds a model already");
    o = options_of("model/config.json/below", &w); /* a file is no folder */
    assert_int_equal(train(&o, NULL), QKV_IO);
}

static void options_that_do_not_fit(void **state)
{
    (void)state;
    witness w = { 0 };
    const qkv_train_opts good = options_of(NULL, &w);
    qkv_train_opts o = good;
    o.steps = 0;
    says(QKV_USAGE, train(&o, NULL), "needs a limit");
    o = good, o.keep = -1;
    says(QKV_USAGE, train(&o, NULL), "negative");
    o = good, o.resume = 1;
    says(QKV_USAGE, train(&o, NULL), "no folder to resume");
    for (int i = 0; i < 5; i++) {
        o = good;
        *(i == 0 ? &o.validate_every : i == 1 ? &o.save_every : i == 2 ? &o.keep : i == 3 ? &o.log_every : &o.patience) = -1;
        says(QKV_USAGE, train(&o, NULL), "negative");
    }
    char *path = malloc(6000);
    memset(path, 'a', 5999), path[5999] = '\0';
    o = good, o.folder = path;
    says(QKV_USAGE, train(&o, NULL), "too long");
    free(path);
    assert_int_equal(qkv_train(NULL, pairs, &good, NULL), QKV_USAGE);
    o = good, o.folder = in_folder("about"), o.about = "no JSON";
    says(QKV_USAGE, train(&o, NULL), "no JSON object");
    assert_int_equal(w.steps_told, 0);
}

static qkv_status refuse(void *data, const qkv_model *m, qkv_train_score *out)
{
    (void)data, (void)m, (void)out;
    return QKV_IO;
}

/* What was saved before an error is there to go on from. */
static void errors_leave_the_checkpoint(void **state)
{
    (void)state;
    witness w = { 0 };
    ended end;
    qkv_train_opts o = options_of("failed", &w);
    o.validate = refuse;
    assert_int_equal(train(&o, &end), QKV_IO);
    assert_int_equal(w.saved, 3);
    o.validate = NULL;
    o.resume = 1;
    assert_int_equal(train(&o, &end), QKV_OK);
    assert_same_file("failed", "whole", "model.safetensors");
}

/* A path of another encoding is written down with U+FFFD, and the same one fits when the training goes on. */
static void settings_of_any_bytes(void **state)
{
    (void)state;
    witness w = { .stop_at = 3 };
    qkv_train_setting setting = { .name = "column", .value = "a\xff" };
    qkv_train_opts o = options_of("bytes", &w);
    o.settings = &setting, o.n_settings = 1;
    assert_int_equal(train(&o, NULL), QKV_OK);
    o.resume = 1;
    assert_int_equal(qkv_train_check(&o), QKV_OK);
    setting.value = "b\xff";
    says(QKV_USAGE, qkv_train_check(&o), "--column was \"a\xEF\xBF\xBD\" and is \"b\xEF\xBF\xBD\"");
    setting.value = NULL;
    says(QKV_USAGE, qkv_train_check(&o), "needs a name");
    setting = (qkv_train_setting){ .name = "\xff", .value = "a" };
    says(QKV_USAGE, qkv_train_check(&o), "needs a name");
    setting.name = NULL;
    says(QKV_USAGE, qkv_train_check(&o), "needs a name");
    setting.name = "column", o.job = "\xff";
    says(QKV_USAGE, qkv_train_check(&o), "not UTF-8");
    put_file("file");
    o = options_of("file", &w);
    says(QKV_IO, qkv_train_check(&o), "it is a file");
}

static qkv_status score_alone(void *data, const qkv_model *m, qkv_train_score *out)
{
    (void)m;
    out->score = *(double *)data;
    return QKV_OK;
}

/* A line of the log is JSON without words of the caller too; what is not a number is nobody's best. */
static void scores_without_words(void **state)
{
    (void)state;
    double score = 1;
    size_t n;
    qkv_train_opts o = options_of("wordless", NULL);
    o.on_event = NULL, o.hooks = NULL, o.validate = score_alone, o.data = &score;
    assert_int_equal(train(&o, NULL), QKV_OK);
    char *log = contents("wordless", "log.jsonl", &n);
    assert_non_null(strstr(log, "{\"step\": 4, \"best\": true}\n"));
    free(log);
    o.folder = in_folder("unscored");
    score = NAN;
    says(QKV_NUMERIC, train(&o, NULL), "the loss of step 4 is not finite: try a lower learning rate");
}

/* As a full disk leaves it: the log goes on with a line of its own. */
static void a_cut_line_of_the_log_is_dropped(void **state)
{
    (void)state;
    witness w = { .stop_at = 5 };
    size_t n, whole;
    qkv_train_opts o = options_of("cut", &w);
    assert_int_equal(train(&o, NULL), QKV_OK);
    free(contents("cut", "log.jsonl", &whole));
    FILE *f = fopen(in_folder("cut/log.jsonl"), "ab");
    fputs("{\"step\": 5, \"ep", f);
    assert_int_equal(fclose(f), 0);
    w = (witness){ 0 }, o.resume = 1;
    assert_int_equal(train(&o, NULL), QKV_OK);
    char *log = contents("cut", "log.jsonl", &n);
    assert_true(whole > 0 && n > whole && log[whole - 1] == '\n');
    assert_memory_equal(log + whole, "{\"step\": 10, \"epoch\"", 20);
    free(log);
}

/* keep times valid_every is 2^64. */
static void more_models_are_kept_than_can_be_counted(void **state)
{
    (void)state;
    witness w = { 0 };
    qkv_train_opts o = options_of("all", &w);
    o.keep = INT64_C(1) << 62;
    assert_int_equal(train(&o, NULL), QKV_OK);
    assert_int_equal(access(in_folder("all/step-4/config.json"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_anywhere_it_goes_on_to_the_same_files),
        cmocka_unit_test(the_log_is_that_of_one_run),
        cmocka_unit_test(a_killed_run_writes_no_line_twice),
        cmocka_unit_test(the_best_model_stays),
        cmocka_unit_test(the_last_validation_is_told),
        cmocka_unit_test(patience_and_epochs_end_it),
        cmocka_unit_test(progress_is_told),
        cmocka_unit_test(what_was_half_written_is_swept),
        cmocka_unit_test(models_are_kept),
        cmocka_unit_test(errors_end_it),
        cmocka_unit_test(losses_decide_between_equal_scores),
        cmocka_unit_test(folders_that_are_refused),
        cmocka_unit_test(options_that_do_not_fit),
        cmocka_unit_test(errors_leave_the_checkpoint),
        cmocka_unit_test(settings_of_any_bytes),
        cmocka_unit_test(scores_without_words),
        cmocka_unit_test(a_cut_line_of_the_log_is_dropped),
        cmocka_unit_test(more_models_are_kept_than_can_be_counted),
    };
    return cmocka_run_group_tests(tests, make_pairs, forget_pairs);
}
