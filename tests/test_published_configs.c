/* test_published_configs.c: config.json of published models, keys as their authors wrote them, sizes small: loaded with weights
 * under the family's names, or refused in the words that the row has. published_configs.json is the table; docs/published.md says
 * what loads. */
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

#include "json_values.h"
#include "folder.h"
#include "model/family.h"
#include "nn/params.h"
#include "model/model.h"

static void put_config(const qkv__json_value *config) { assert_int_equal(json_write(config, in_folder("config.json")), 0); }

/* Random weights under the names that the family's files have. */
static qkv_model *write_weights(const char *name, const qkv__json_value *config)
{
    const qkv__weights none = { 0 };
    qkv__json_doc doc;
    put_config(config);
    assert_int_equal(qkv__json_load(in_folder("config.json"), QKV__CONFIG_MAX, &doc), QKV_OK);
    const qkv__published p = { .path = "config.json", .config = doc.top, .weights = &none };
    const qkv__family *f = qkv__family_find(qkv__json_get_text(doc.top, "model_type"));
    qkv_config o;
    if (!f) fail_msg("%s: there is no such family", name);
    if (qkv__family_read(f, &p, &o)) fail_msg("%s: %s", name, qkv_error());
    qkv__json_free(&doc);
    qkv_model *m = qkv_model_new(&o, 3);
    if (!m || qkv_model_save(m, folder, f->type)) fail_msg("%s: %s", name, qkv_error());
    put_config(config);
    return m;
}

static void check_numbers(const char *name, const qkv_tensor *y)
{
    if (!y) fail_msg("%s: %s", name, qkv_error());
    for (int64_t i = 0; i < qkv_tensor_count(y); i++)
        if (!isfinite(qkv_tensor_data((qkv_tensor *)(uintptr_t)y)[i])) fail_msg("%s: number %d is not finite", name, (int)i);
}

static void loads(const char *name, const qkv__json_value *config)
{
    static const int32_t ids[5] = { 3, 9, 1, 7, 5 };
    qkv_model *made = write_weights(name, config), *m = qkv_model_load(folder, NULL);
    if (!m) fail_msg("%s: %s", name, qkv_error());
    qkv_params *p = qkv_model_params(made), *q = qkv_model_params(m);
    assert_int_equal(qkv__params_materialize(q), QKV_OK);
    if (qkv__params_block(p) != qkv__params_block(q) ||
        memcmp(qkv__params_data(p), qkv__params_data(q), sizeof(float) * (size_t)qkv__params_block(p)))
        fail_msg("%s: its weights are others", name);
    const qkv__transformer *x = qkv__model_transformer(m);
    const qkv_config *o = qkv__transformer_config(x);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *y = o->encoder_layers ? qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 5 })
                                      : NULL;
    if (o->decoder_layers) y = qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 5 }, y, NULL);
    check_numbers(name, qkv__transformer_logits(x, y));
    qkv_tape_free(t);
    qkv_model_free(made);
    qkv_model_free(m);
}

/* With weights of another model beside it: the config is what is refused. */
static void is_refused(const char *name, const qkv__json_value *config, const char *words)
{
    put_config(config);
    qkv_model *m = qkv_model_load(folder, NULL);
    if (m) fail_msg("%s: it was loaded", name);
    if (qkv_error_status() != QKV_UNSUPPORTED || !strstr(qkv_error(), words))
        fail_msg("%s: \"%s\" has no \"%s\"", name, qkv_error(), words);
}

static void every_row(void **state)
{
    (void)state;
    const qkv__json_value *rows = json_read(PUBLISHED_CONFIGS);
    if (!rows) fail_msg("%s", qkv_error());
    assert_true(qkv__json_size(rows) >= 25);
    for (size_t i = 0; i < qkv__json_size(rows); i++) {
        const qkv__json_value *row = qkv__json_at(rows, i);
        const char *name = qkv__json_text(qkv__json_get(row, "name"));
        const char *words = qkv__json_text(qkv__json_get(row, "refused"));
        if (words) is_refused(name, qkv__json_get(row, "config"), words);
        else loads(name, qkv__json_get(row, "config"));
    }
    json_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_row) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
