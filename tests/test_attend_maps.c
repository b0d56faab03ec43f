/* test_attend_maps.c: maps have the weights of the heads they name, as JSON and CSV too; ranks have the order they promise. */
#include <qkv/qkv.h>
#include "term/read_text.h"
#include "report/attention.h"
#include "draw/view.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json_values.h"
#include "failing.h"
#include "folder.h"

enum { LAYERS = 2, HEADS = 2, ROOM = 256 };

static qkv_model *model, *other;
static qkv_attention_capture *attended, *minus;
static qkv_attention_maps maps;
static qkv_buffer text;

static qkv_model *make_model(uint64_t seed)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_WORDS);
    qkv_tokenizer *t = NULL;
    if (w && !qkv_word_counts_add(w, (qkv_str){ "a, \"b\" c", 8 }))
        t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .min_count = 1 });
    qkv_word_counts_free(w);
    if (!t) return NULL;
    const qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t),
                           .encoder_layers = LAYERS,
                           .decoder_layers = LAYERS,
                           .dim = 16,
                           .heads = HEADS,
                           .d_ff = 32 };
    qkv_model *m = qkv_model_new(&o, seed);
    if (m && !qkv_model_set_tokenizers(m, t, NULL)) return m;
    qkv_tokenizer_free(t);
    qkv_model_free(m);
    return NULL;
}

static int make_captures(void **state)
{
    (void)state;
    const qkv_attend_opts opts = { .target = qkv_cstr("a b") };
    model = make_model(1);
    other = model ? make_model(2) : NULL;
    return !model || !other || qkv_attend(model, qkv_cstr("a, \"b\" c"), &opts, &attended) ||
           qkv_attend(other, qkv_cstr("a, \"b\" c"), &opts, &minus);
}

static int free_captures(void **state)
{
    (void)state;
    qkv_attention_maps_free(&maps);
    qkv_buffer_free(&text);
    qkv_free(attended);
    qkv_free(minus);
    attended = minus = NULL;
    qkv_model_free(model);
    qkv_model_free(other);
    model = other = NULL;
    return 0;
}

static void make_maps(qkv_attention_maps_opts o) { assert_int_equal(qkv_attention_maps_make(attended, &o, &maps), QKV_OK); }

/* ---- maps ---- */

static void each_head_has_its_map(void **state)
{
    (void)state;
    float wanted[ROOM], less[ROOM];
    make_maps((qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS,
                                         .layer = QKV_ATTENTION_EACH,
                                         .head = QKV_ATTENTION_EACH,
                                         .minus = minus,
                                         .minus_name = "that" });
    int64_t cells = maps.rows->n * maps.columns->n;
    assert_true(cells > 0 && cells <= ROOM);
    assert_int_equal(maps.n, LAYERS * HEADS);
    assert_int_equal(maps.across, HEADS);
    assert_string_equal(maps.title, "cross-attention, all layers and heads, minus the other model's");
    assert_string_equal(maps.maps[2].title, "layer 1, head 0");
    for (int64_t i = 0; i < maps.n; i++) {
        int layer = maps.maps[i].layer, head = maps.maps[i].head;
        assert_true(layer == i / HEADS && head == i % HEADS);
        assert_int_equal(qkv_attention_weights(attended, QKV_ATTENTION_CROSS, layer, head, wanted), QKV_OK);
        assert_int_equal(qkv_attention_weights(minus, QKV_ATTENTION_CROSS, layer, head, less), QKV_OK);
        for (int64_t k = 0; k < cells; k++) assert_true(maps.maps[i].weights[k] == wanted[k] - less[k]);
    }
}

static void titles_say_what_is_shown(void **state)
{
    (void)state;
    const struct {
        qkv_attention_maps_opts o;
        const char *title;
        int64_t n;
    } rows[] = {
        { { .kind = QKV_ATTENTION_ENCODER, .layer = 1, .head = 0 }, "encoder self-attention, layer 1, head 0", 1 },
        { { .kind = QKV_ATTENTION_DECODER, .layer = -1, .head = -1 },
          "decoder self-attention, mean of all layers and heads",
          1 },
        { { .kind = QKV_ATTENTION_CROSS, .layer = 0, .head = -1 }, "cross-attention, layer 0, mean of heads", 1 },
        { { .kind = QKV_ATTENTION_CROSS, .layer = -2, .head = 1 }, "cross-attention, all layers, head 1", LAYERS },
        { { .kind = QKV_ATTENTION_ENCODER, .layer = -1, .rollout = 1 }, "encoder self-attention, rollout", 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_maps(rows[i].o);
        assert_string_equal(maps.title, rows[i].title);
        assert_int_equal(maps.n, rows[i].n);
        assert_int_equal(maps.across, 0);
    }
}

static void json_has_all_of_them(void **state)
{
    (void)state;
    make_maps(
        (qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS, .layer = QKV_ATTENTION_MEAN, .head = QKV_ATTENTION_EACH });
    assert_int_equal(qkv_attention_maps_json(&maps, &text), QKV_OK);
    const qkv__json_value *all = json_parse_text(text.data);
    assert_int_equal(qkv__json_size(all), HEADS);
    const qkv__json_value *one = qkv__json_at(all, 1);
    assert_string_equal(qkv__json_text(qkv__json_get(one, "layer")), "mean");
    assert_int_equal(qkv__json_int(qkv__json_get(one, "head")), 1);
    assert_string_equal(qkv__json_text(qkv__json_at(qkv__json_get(one, "keys"), 2)), maps.columns->names[2]);
    const qkv__json_value *row = qkv__json_at(qkv__json_get(one, "weights"), 1);
    assert_int_equal(qkv__json_size(row), maps.columns->n);
    for (int64_t k = 0; k < maps.columns->n; k++)
        assert_true((float)qkv__json_number(qkv__json_at(row, (size_t)k)) == maps.maps[1].weights[maps.columns->n + k]);
    json_free(all);
}

static void csv_is_quoted(void **state)
{
    (void)state;
    make_maps((qkv_attention_maps_opts){ .kind = QKV_ATTENTION_ENCODER });
    assert_int_equal(qkv_attention_maps_csv(&maps, &text), QKV_OK);
    assert_non_null(strstr(text.data, ",\"a,\","));
    assert_non_null(strstr(text.data, "\"\"b\"\"\","));
    assert_null(strstr(text.data, "layer"));
    make_maps((qkv_attention_maps_opts){ .kind = QKV_ATTENTION_ENCODER, .layer = QKV_ATTENTION_EACH, .head = -1 });
    assert_int_equal(qkv_attention_maps_csv(&maps, &text), QKV_OK);
    assert_memory_equal(text.data, "layer,head,,", 12);
    assert_non_null(strstr(text.data, "\r\n1,mean,"));
}

static void text_has_every_map(void **state)
{
    (void)state;
    const qkv_screen_opts screen = { .width = 60 };
    make_maps((qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS, .head = QKV_ATTENTION_EACH });
    assert_int_equal(qkv_attention_maps_text(&maps, &screen, &text), QKV_OK);
    assert_memory_equal(text.data, "cross-attention, layer 0, all heads\n\nhead 0\n", 44);
    assert_non_null(strstr(text.data, "\n\nhead 1\n"));
    make_maps((qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS });
    assert_int_equal(qkv_attention_maps_text(&maps, &screen, &text), QKV_OK);
    assert_memory_equal(text.data, "cross-attention, layer 0, head 0\n", 33);
    assert_null(strstr(text.data, "\nhead 0\n"));
}

static void files_are_what_their_ending_says(void **state)
{
    make_folder(state);
    qkv_buffer file = { 0 };
    make_maps((qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS, .minus = minus });
    assert_int_equal(qkv_attention_maps_csv(&maps, &text), QKV_OK);
    assert_int_equal(qkv_attention_maps_write(in_folder("map.CSV"), &maps, NULL), QKV_OK);
    assert_int_equal(qkv_text_read(in_folder("map.CSV"), 0, &file), QKV_OK);
    assert_memory_equal(file.data, text.data, file.length - 1); /* the last newline is not read */
    assert_int_equal(qkv_attention_maps_write(in_folder("map.json"), &maps, NULL), QKV_OK);
    assert_int_equal(qkv_text_read(in_folder("map.json"), 0, &file), QKV_OK);
    assert_memory_equal(file.data, "{\"kind\": \"cross\"", 16);
    static const char *const pieces[] = { "query (attending)", "key (attended)", "difference of weights", "a note of ours" };
    assert_int_equal(qkv_attention_maps_write(in_folder("map.svg"), &maps, "a note of ours"), DRAWS ? QKV_OK : QKV_UNSUPPORTED);
    if (DRAWS) assert_int_equal(qkv_text_read(in_folder("map.svg"), 0, &file), QKV_OK);
    for (int i = 0; i < 4 && DRAWS; i++) assert_non_null(strstr(file.data, pieces[i]));
    assert_int_equal(qkv_attention_maps_write(in_folder("map.txt"), &maps, NULL), QKV_UNSUPPORTED);
    qkv_buffer_free(&file);
    remove_folder(state);
}

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    qkv_attention_maps_opts o = { .kind = QKV_ATTENTION_CROSS, .layer = LAYERS };
    assert_int_equal(qkv_attention_maps_make(attended, &o, &maps), QKV_USAGE);
    assert_null(maps.maps);
    o = (qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS, .layer = -3 };
    assert_int_equal(qkv_attention_maps_make(attended, &o, &maps), QKV_USAGE);
    o = (qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS, .rollout = 1 };
    assert_int_equal(qkv_attention_maps_make(attended, &o, &maps), QKV_USAGE);
    qkv_attention_capture *short_text = NULL;
    assert_int_equal(qkv_attend(other, qkv_cstr("a"), &(qkv_attend_opts){ .target = qkv_cstr("a b") }, &short_text), QKV_OK);
    o = (qkv_attention_maps_opts){ .kind = QKV_ATTENTION_CROSS, .minus = short_text, .minus_name = "that" };
    assert_int_equal(qkv_attention_maps_make(attended, &o, &maps), QKV_USAGE);
    assert_string_equal(qkv_error(), "that cuts this text into other tokens: they cannot be compared");
    qkv_free(short_text);
    assert_int_equal(qkv_attention_maps_csv(&maps, &text), QKV_USAGE);
}

/* ---- ranks ---- */

static void heads_are_in_order(void **state)
{
    (void)state;
    qkv_ranked_head heads[LAYERS * HEADS];
    for (int by = 0; by < QKV_HEAD_MEASURE_COUNT; by++) {
        assert_int_equal(qkv_attention_capture_rank(attended, QKV_ATTENTION_ENCODER, (qkv_head_measure)by, heads), QKV_OK);
        unsigned seen = 0;
        for (int i = 0; i < LAYERS * HEADS; i++) {
            const double *x = &heads[i].measures.entropy + by, *before = &heads[i ? i - 1 : 0].measures.entropy + by;
            assert_true(by == QKV_HEAD_MEASURE_ENTROPY ? *before <= *x : *before >= *x);
            seen |= 1u << (heads[i].layer * HEADS + heads[i].head);
        }
        assert_int_equal(seen, 15);
    }
    assert_int_equal(qkv_attention_capture_rank(attended, QKV_ATTENTION_CROSS, QKV_HEAD_MEASURE_COUNT, heads), QKV_USAGE);
}

static void ranks_are_tables(void **state)
{
    (void)state;
    qkv_ranked_head heads[LAYERS * HEADS];
    const qkv_head_measure by = QKV_HEAD_MEASURE_FIRST;
    char last[ROOM];
    assert_int_equal(qkv_attention_capture_rank(attended, QKV_ATTENTION_ENCODER, by, heads), QKV_OK);
    const qkv_ranked_head *end = &heads[LAYERS * HEADS - 1];
    assert_int_equal(qkv_attention_rank_text(attended, QKV_ATTENTION_ENCODER, by, 0, &text), QKV_OK);
    snprintf(last, sizeof last, "\n%5d  %4d  %11.3f  %11.3f  %11.3f  ", end->layer, end->head, end->measures.entropy,
             end->measures.diagonality, end->measures.first);
    assert_memory_equal(text.data, "layer  head      entropy  diagonality", 37);
    assert_non_null(strstr(text.data, last));
    assert_int_equal(qkv_attention_rank_text(attended, QKV_ATTENTION_ENCODER, by, 1, &text), QKV_OK);
    const qkv__json_value *all = json_parse_text(text.data);
    const qkv__json_value *one = qkv__json_at(qkv__json_get(all, "heads"), LAYERS * HEADS - 1);
    assert_true(qkv__json_number(qkv__json_get(one, "first")) == end->measures.first);
    assert_true(qkv__json_int(qkv__json_get(one, "head")) == end->head);
    json_free(all);
    assert_int_equal(qkv_attention_rank_text(attended, QKV_ATTENTION_KINDS, by, 0, &text), QKV_USAGE);
}

/* ---- names of ids ---- */

/* Byte pairs without merges: a token a byte. */
static void ids_that_make_a_character_are_one(void **state)
{
    (void)state;
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_tokenizer *t = qkv_tokenizer_train(w, NULL);
    qkv_encoding *ids = NULL;
    qkv_axis *names = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ "a\xE7\x88\xB1\0", 5 }, NULL, &ids), QKV_OK);
    assert_int_equal(ids->n, 5);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(qkv_token_names(t, ids->ids, 5, &names), QKV_OK);
        assert_int_equal(names->n, 3);
        assert_string_equal(names->names[1], "爱");
        assert_string_equal(names->names[2], "\001");
        assert_true(names->first[1] == 1 && names->first[2] == 4 && names->first[3] == 5);
    }
    assert_int_equal(qkv_token_names(t, (const int32_t[]){ 1 << 30 }, 1, &names), QKV_OK);
    assert_string_equal(names->names[0], " ");
    qkv_free(names);
    qkv_free(ids);
    qkv_tokenizer_free(t);
    qkv_word_counts_free(w);
}

/* ---- memory ---- */

static qkv_status use_each(void)
{
    qkv_buffer out = { 0 };
    const qkv_attention_maps_opts o = { .kind = QKV_ATTENTION_CROSS, .head = QKV_ATTENTION_EACH, .minus = minus };
    qkv_status status = make_captures(NULL) ? qkv_error_status() : QKV_OK;
    if (!status) status = qkv_attention_maps_make(attended, &o, &maps);
    if (!status) status = qkv_attention_maps_json(&maps, &out);
    if (!status) status = qkv_attention_maps_csv(&maps, &out);
    if (!status) status = qkv_attention_maps_text(&maps, NULL, &out);
    if (!status) status = qkv_attention_rank_text(attended, QKV_ATTENTION_CROSS, QKV_HEAD_MEASURE_NEXT, 0, &out);
    qkv_axis *names = NULL;
    if (!status)
        status = qkv_token_names(qkv_model_tokenizer(model, QKV_SIDE_SOURCE), attended->source.ids, attended->source.n, &names);
    qkv_free(names);
    qkv_buffer_free(&out);
    free_captures(NULL);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    free_captures(state);
    assert_true(each_allocation_fails(use_each) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_head_has_its_map),
        cmocka_unit_test(titles_say_what_is_shown),
        cmocka_unit_test(json_has_all_of_them),
        cmocka_unit_test(csv_is_quoted),
        cmocka_unit_test(text_has_every_map),
        cmocka_unit_test(files_are_what_their_ending_says),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(heads_are_in_order),
        cmocka_unit_test(ranks_are_tables),
        cmocka_unit_test(ids_that_make_a_character_are_one),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_captures, free_captures);
}
