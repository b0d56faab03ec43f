/* test_published_configs_enc.c: config.json as authors of encoders and translators wrote it, but for its sizes: loaded, with random
 * weights, or refused, as docs/published.md says. */
#include <qkv/qkv.h>

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
#include "model/bind.h"
#include "model/family.h"
#include "model/model.h"

/* Weights that the config asks for, under the names of its family. Without a family, or where it is refused, a file of nothing. */
static void write_weights(void)
{
    const qkv__weights nothing = { 0 };
    qkv__json_doc config;
    assert_int_equal(qkv__json_load(in_folder("config.json"), QKV__CONFIG_MAX, &config), QKV_OK);
    const qkv__published p = { .path = "config.json", .config = config.top, .weights = &nothing };
    const char *type = qkv__model_type(config.top);
    const qkv__family *f = type ? qkv__family_find(type) : NULL;
    if (f && f->variant) f = f->variant(&p, NULL);
    qkv_config o;
    qkv_params *params = qkv_params_new(7);
    bool is_known = f && !qkv__family_read(f, &p, &o) && qkv__transformer_new(params, &o);
    assert_int_equal(
        qkv__bind_save(params, is_known ? f : NULL, is_known ? o.dim / o.heads : 0, in_folder("model.safetensors")), QKV_OK);
    qkv_params_free(params);
    qkv__json_free(&config);
}

/* A forward, so that every weight is read. */
static void run(const char *name, const qkv_model *m)
{
    static const int32_t ids[] = { 4, 5, 6, 7, 2 };
    const qkv__transformer *x = qkv__model_transformer(m);
    const qkv_config *o = qkv__transformer_config(x);
    qkv_tape *t = qkv_tape_new(&(qkv_tape_opts){ .inference = 1 });
    qkv_tensor *last = qkv__transformer_encode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 5 });
    if (o->decoder_layers)
        last = qkv__transformer_decode(x, t, &(qkv_tokens){ .ids = ids, .rows = 1, .length = 5 }, last, NULL);
    if (!o->classes && (o->decoder_layers || o->head)) last = qkv__transformer_logits(x, last);
    else if (o->classes) last = o->classes_of ? qkv__transformer_tag(x, last) : qkv__transformer_classify(x, last, NULL);
    if (!last) fail_msg("%s: %s", name, qkv_error());
    qkv_tape_free(t);
}

static void as_their_authors_wrote_them(void **state)
{
    (void)state;
    const qkv__json_value *rows = json_read(PUBLISHED_CONFIGS);
    assert_true(qkv__json_size(rows) >= 20);
    for (size_t i = 0; i < qkv__json_size(rows); i++) {
        const qkv__json_value *row = qkv__json_at(rows, i);
        const char *name = qkv__json_text(qkv__json_get(row, "name"));
        const char *loads = qkv__json_text(qkv__json_get(row, "loads"));
        const qkv__json_value *config = qkv__json_get(row, "config");
        assert_int_equal(json_write(config, in_folder("config.json")), 0);
        write_weights();
        qkv_model *m = qkv_model_load(folder, NULL);
        if (loads && !m) fail_msg("%s: %s", name, qkv_error());
        if (loads) assert_string_equal(qkv_model_get_info(m)->family, loads);
        if (loads) run(name, m);
        else if (m || !strstr(qkv_error(), qkv__json_text(qkv__json_get(row, "refused"))))
            fail_msg("%s: loaded, or refused otherwise: %s", name, qkv_error());
        qkv_model_free(m);
    }
    json_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(as_their_authors_wrote_them, make_folder,
                                                                        remove_folder) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
