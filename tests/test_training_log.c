/* test_training_log.c: the curves of a training, and trainings side by side, from the files in their folders. */
#include "term/read_text.h"
#include "draw/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"

static qkv_training_curves curves;
static qkv_buffer text;

static int free_all(void **state)
{
    qkv_training_curves_free(&curves);
    qkv_buffer_free(&text);
    return remove_folder(state);
}

static void write_file(const char *name, const char *bytes)
{
    FILE *f = fopen(in_folder(name), "w");
    assert_non_null(f);
    fputs(bytes, f);
    fclose(f);
}

/* ---- curves ---- */

static void a_log_becomes_curves(void **state)
{
    (void)state;
    write_file("log.jsonl", "{\"step\": 10, \"loss\": 3, \"seconds\": 60}\n{\"step\": 10, \"valid_loss\": 4}\n\n"
                            "{\"step\": 20, \"loss\": 2, \"seconds\": 120}\n{\"step\": 30, \"loss\": 9}\n"
                            "{\"step\": 20, \"loss\": 2.5, \"seconds\": 30}\n{\"step\": 30, \"lo");
    assert_int_equal(qkv_training_curves_read(folder, &curves), QKV_OK);
    assert_string_equal(curves.trained.name, "training loss");
    assert_int_equal(curves.trained.n, 2); /* it was resumed after step 10 */
    assert_true(curves.trained.x[1] == 20 && curves.trained.y[1] == 2.5);
    assert_int_equal(curves.valid.n, 1);
    assert_true(curves.valid.y[0] == 4);
    assert_int_equal(qkv_training_curves_read(in_folder("log.jsonl"), &curves), QKV_OK);
    assert_int_equal(curves.trained.n, 2);
}

static void what_is_no_log_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes, *said;
        qkv_status status;
    } rows[] = {
        { "nothere", NULL, "nothere: cannot open", QKV_IO },
        { "empty", "", "there are no reports yet", QKV_FORMAT },
        { "torn", "{\"step\": 1, \"loss\": 2}\n{\"step\": 1\n", "torn: line 2 is no report of a training: ", QKV_FORMAT },
        { "other", "{\"a\": 1}\n", "line 1 is no report of a training: it wants \"step\"", QKV_FORMAT },
        { "list", "[1]\n", "line 1 is no report", QKV_FORMAT },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].bytes) write_file(rows[i].name, rows[i].bytes);
        assert_int_equal(qkv_training_curves_read(in_folder(rows[i].name), &curves), rows[i].status);
        if (!strstr(qkv_error(), rows[i].said)) fail_msg("%s", qkv_error());
        assert_int_equal(curves.trained.n, 0);
    }
}

/* ---- side by side ---- */

static void trainings_stand_side_by_side(void **state)
{
    (void)state;
    const char *const paths[] = { folder };
    write_file("training.json", "{\"job\": \"translate\", \"steps\": 20, \"best_step\": 10, \"best_score\": 31.5, "
                                "\"stopped\": \"steps\", \"options\": {\"lr\": \"0.1\", \"metric\": \"bleu\"}}");
    assert_int_equal(qkv_trainings_text(paths, 1, 0, &text), QKV_OK);
    assert_non_null(strstr(text.data, "  translate  20     2.5      BLEU 31.50 at 10  steps\n")); /* 120 and 30 seconds */
    assert_null(strstr(text.data, "lr"));
    assert_int_equal(qkv_trainings_text(paths, 1, 1, &text), QKV_OK);
    assert_non_null(strstr(text.data, "\"minutes\": 2.5, \"job\": \"translate\""));
    write_file("training.json", "{\"job\": 1}");
    assert_int_equal(qkv_trainings_text(paths, 1, 0, &text), QKV_FORMAT);
    remove(in_folder("training.json"));
    assert_int_equal(qkv_trainings_text(paths, 1, 0, &text), QKV_IO);
    assert_non_null(strstr(qkv_error(), "it is no training's folder"));
    assert_int_equal(qkv_trainings_text(paths, 0, 0, &text), QKV_USAGE);
}

static void losses_over_one_pair_of_axes(void **state)
{
    (void)state;
    char both[2][300];
    write_file("a.jsonl", "{\"step\": 10, \"loss\": 3}\n{\"step\": 10, \"valid_loss\": 4}\n");
    write_file("b.jsonl", "{\"step\": 20, \"loss\": 2}\n");
    snprintf(both[0], sizeof *both, "%s", in_folder("a.jsonl"));
    snprintf(both[1], sizeof *both, "%s", in_folder("b.jsonl"));
    const char *const paths[] = { both[0], both[1] };
    assert_int_equal(qkv_trainings_curves_text(paths, 1, NULL, &text), QKV_OK);
    assert_memory_equal(text.data, "training loss\n", 14);
    assert_non_null(strstr(text.data, "\nvalidation loss\n"));
    assert_non_null(strstr(text.data, "step       10    4.0000"));
    assert_int_equal(qkv_trainings_curves_text(paths, 2, NULL, &text), QKV_OK);
    assert_non_null(strstr(text.data, "a.jsonl: validation loss\n"));
    assert_non_null(strstr(text.data, "b.jsonl: training loss\n"));
    assert_null(strstr(text.data, "b.jsonl: validation loss")); /* it has no points */
    const qkv_curve_opts named = { .x_axis = "updates" };
    assert_int_equal(qkv_picture_trainings(in_folder("c.svg"), paths, 2, &named), QKV_OK);
    assert_int_equal(qkv_text_read(in_folder("c.svg"), 0, &text), QKV_OK);
    assert_true(strstr(text.data, "updates") && strstr(text.data, ">loss<") && strstr(text.data, "b.jsonl: training loss"));
    assert_int_equal(qkv_trainings_curves_text(paths, 0, NULL, &text), QKV_USAGE);
    assert_int_equal(qkv_trainings_curves_text((const char *const[]){ folder, NULL }, 2, NULL, &text), QKV_USAGE);
    assert_int_equal(qkv_trainings_curves_text((const char *const[]){ both[0], "/no" }, 2, NULL, &text), QKV_IO);
}

static qkv_status read_both(void)
{
    qkv_training_curves c = { 0 };
    qkv_buffer out = { 0 };
    const char *const paths[] = { folder };
    qkv_status status = qkv_training_curves_read(folder, &c);
    if (!status) status = qkv_trainings_text(paths, 1, 0, &out);
    if (!status) status = qkv_trainings_curves_text(paths, 1, NULL, &out);
    qkv_training_curves_free(&c);
    qkv_buffer_free(&out);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    write_file("training.json", "{\"options\": {}}");
    qkv_training_curves_free(&curves);
    qkv_buffer_free(&text);
    assert_true(each_allocation_fails(read_both) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_becomes_curves),         cmocka_unit_test(what_is_no_log_is_refused),
        cmocka_unit_test(trainings_stand_side_by_side), cmocka_unit_test(losses_over_one_pair_of_axes),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, free_all);
}
