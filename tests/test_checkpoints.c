/* test_checkpoints.c: the models that a training kept: how they are found, and that the engine answers with each of them. */
#include "folder.h"
#include "json_values.h"
#include "nn/params.h"
#include "serve/checkpoints.h"
#include "serve_models.h"
#include "as_strings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { KEPT = 3 };
static const char text[] = "I love you";
static qkv_model *models_of[KEPT]; /* of steps 9, 10 and 100 */

static void write_file(const char *name, const char *bytes)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(bytes, f);
    fclose(f);
}

/* Three models that differ, the second of which is the best. */
static int make_run(void **state)
{
    static const char *const names[KEPT] = { "run/step-9", "run/step-10", "run/step-100" };
    if (make_folder(state) || mkdir(in_folder("run"), 0777)) return -1;
    for (int i = 0; i < KEPT; i++) {
        qkv_model *m = models_of[i] = make_served(MODEL_PAIR);
        for (int64_t k = 0; k < qkv__params_block(qkv_model_params(m)); k++)
            qkv__params_data(qkv_model_params(m))[k] *= 1 + 0.2f * (float)i;
        if (qkv_model_save(m, in_folder(names[i]), NULL) || (i == 1 && qkv_model_save(m, in_folder("run"), NULL))) return -1;
    }
    mkdir(in_folder("run/step-x"), 0777);
    mkdir(in_folder("run/step-50"), 0777); /* nothing is in it */
    write_file("run/training.json", "{\"steps\": 120, \"best_step\": 10}");
    write_file("run/log.jsonl", "{\"step\": 5, \"loss\": 4}\n{\"step\": 9, \"valid_loss\": 3.5}\n{\"step\": 10, \"loss\": 3}\n"
                                "{\"step\": 10, \"valid_loss\": 2.5}\n{\"step\": 100, \"loss\": 1}\n");
    return 0;
}

static int free_run(void **state)
{
    for (int i = 0; i < KEPT; i++) qkv_model_free(models_of[i]);
    return remove_folder(state);
}

static void spells(const char *expected, const qkv__kept_list *list)
{
    qkv__json_writer w = { 0 };
    qkv__put_kept(list, &w);
    assert_int_equal(QKV_OK, w.status);
    assert_string_equal(expected, w.text);
    qkv__json_writer_free(&w);
}

static void the_folder_of_a_training_lists_what_it_kept(void **state)
{
    (void)state;
    qkv__kept_list list;
    assert_int_equal(QKV_OK, qkv__find_checkpoints(in_folder("run"), &list));
    spells("[{\"step\":9,\"folder\":\"step-9\",\"loss\":4.0,\"valid\":3.5},"
           "{\"step\":10,\"loss\":3.0,\"valid\":2.5},"
           "{\"step\":100,\"folder\":\"step-100\",\"loss\":1.0}]",
           &list);
    qkv__thin_checkpoints(&list, 1);
    spells("[{\"step\":9,\"folder\":\"step-9\",\"loss\":4.0,\"valid\":3.5},"
           "{\"step\":10,\"loss\":3.0,\"valid\":2.5}]",
           &list);
    qkv__kept_free(&list);
}

/* The model may be of a step whose own folder is no longer kept, and where nothing was measured it is the last. */
static void the_model_itself_is_always_listed(void **state)
{
    (void)state;
    qkv__kept_list list;
    write_file("run/training.json", "{\"steps\": 120, \"best_step\": 0}");
    assert_int_equal(QKV_OK, qkv__find_checkpoints(in_folder("run"), &list));
    assert_int_equal(4, list.n);
    assert_int_equal(120, list.all[3].step);
    assert_null(list.all[3].folder);
    qkv__kept_free(&list);
    write_file("run/training.json", "{\"steps\": 120, \"best_step\": 10}");
}

static void other_folders_list_nothing(void **state)
{
    (void)state;
    qkv__kept_list list;
    assert_int_equal(QKV_OK, qkv__find_checkpoints(in_folder("run/step-9"), &list));
    assert_int_equal(0, list.n);
    assert_int_equal(QKV_OK, qkv__find_checkpoints(in_folder("nothing"), &list));
    assert_int_equal(0, list.n);
    mkdir(in_folder("torn"), 0777);
    write_file("torn/training.json", "{\"steps\"");
    assert_int_equal(QKV_FORMAT, qkv__find_checkpoints(in_folder("torn"), &list));
    assert_int_equal(0, list.n);
}

static void set_kept(qkv__engine *e, const char *path, const qkv__kept_list *list)
{
    qkv__json_writer w = { 0 };
    qkv__put_kept(list, &w);
    assert_int_equal(QKV_OK, qkv__engine_set_checkpoints(e, path, w.text, w.length));
    qkv__json_writer_free(&w);
}

static const qkv__json_value *ask_engine(qkv__engine *e, const char *request)
{
    qkv_buffer answer = { 0 };
    assert_int_equal(QKV_OK, qkv__engine_request(e, request, strlen(request), &answer));
    const qkv__json_value *object = json_parse(answer.data, answer.length);
    assert_non_null(object);
    qkv_buffer_free(&answer);
    return object;
}

static const char *translation_of(const qkv__json_value *answer)
{
    const qkv__json_value *all = qkv__json_get(qkv__json_get(answer, "output"), "translations");
    return qkv__json_text(qkv__json_get(qkv__json_at(all, 0), "text"));
}

static void same_as_model(qkv__engine *e, const char *more, const qkv_model *m)
{
    char request[128];
    const char *source = text;
    qkv_translations *found = NULL;
    snprintf(request, sizeof request, "{\"do\":\"run\",\"text\":\"%s\"%s}", text, more);
    const qkv__json_value *a = ask_engine(e, request);
    assert_int_equal(QKV_OK,
                     qkv_translate(m, as_strings(&source, NULL, 1), 1, &(qkv_translate_opts){ .beam_size = 4 }, &found));
    assert_string_equal(found->best->text.data, translation_of(a));
    qkv_free(found);
    json_free(a);
}

/* Back and forth, so that nothing of one model is remembered for another. */
static void every_checkpoint_answers_as_its_model(void **state)
{
    (void)state;
    static const int order[] = { 0, 2, 1, 0, 2 };
    qkv__kept_list list;
    assert_int_equal(QKV_OK, qkv__find_checkpoints(in_folder("run"), &list));
    qkv__engine *e = qkv__engine_new(models_of[1], "run");
    set_kept(e, in_folder("run"), &list);
    qkv__kept_free(&list);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        char more[32];
        snprintf(more, sizeof more, ",\"checkpoint\":%d", order[i]);
        same_as_model(e, more, models_of[order[i]]);
        same_as_model(e, "", models_of[1]);
    }
    static const char *const heads[] = {
        "{\"do\":\"head\",\"text\":\"you\",\"target\":\"you\",\"kind\":\"cross\",\"layer\":0,\"head\":0}",
        "{\"do\":\"head\",\"text\":\"you\",\"target\":\"you\",\"kind\":\"cross\",\"layer\":0,\"head\":0,\"checkpoint\":2}"
    };
    const qkv__json_value *own = ask_engine(e, heads[0]), *other = ask_engine(e, heads[1]), *again = ask_engine(e, heads[0]);
    assert_false(qkv__json_equal(own, other));
    assert_true(qkv__json_equal(own, again));
    json_free(own), json_free(other), json_free(again);
    qkv__engine_free(e);
}

static void wrong_checkpoints_are_refused(void **state)
{
    (void)state;
    qkv__kept_list list;
    qkv__engine *e = qkv__engine_new(models_of[1], "run");
    const qkv__json_value *a = ask_engine(e, "{\"do\":\"run\",\"text\":\"a\",\"checkpoint\":0}");
    assert_string_equal("\"checkpoint\": the training of this model kept none",
                        qkv__json_text(qkv__json_get(qkv__json_get(a, "error"), "message")));
    json_free(a);
    assert_int_equal(QKV_OK, qkv__find_checkpoints(in_folder("run"), &list));
    set_kept(e, in_folder("nothing"), &list);
    qkv__kept_free(&list);
    static const struct {
        const char *more;
        int status;
    } rows[] = { { "3", QKV_USAGE }, { "-1", QKV_USAGE }, { "\"a\"", QKV_USAGE }, { "0", QKV_IO } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char request[96];
        snprintf(request, sizeof request, "{\"do\":\"run\",\"text\":\"a\",\"checkpoint\":%s}", rows[i].more);
        a = ask_engine(e, request);
        assert_int_equal(rows[i].status, qkv__json_int(qkv__json_get(qkv__json_get(a, "error"), "status")));
        json_free(a);
    }
    same_as_model(e, "", models_of[1]);
    qkv__engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_of_a_training_lists_what_it_kept),
        cmocka_unit_test(the_model_itself_is_always_listed),
        cmocka_unit_test(other_folders_list_nothing),
        cmocka_unit_test(every_checkpoint_answers_as_its_model),
        cmocka_unit_test(wrong_checkpoints_are_refused),
    };
    return cmocka_run_group_tests(tests, make_run, free_run);
}
