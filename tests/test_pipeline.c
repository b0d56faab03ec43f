/* test_pipeline.c: published tokenizers against Hugging Face's own, step by step; their files are not trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"
#include "lcg.h"
#include "megabyte.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <jansson.h>
#include <string.h>

#define GOLDEN(name) QKV_GOLDEN "/" name

static char folder[64], path[96];
static json_t *golden;

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-pipeline-XXXXXX");
    golden = json_load_file(GOLDEN("pipeline.json"), 0, NULL);
    json_t *text = json_load_file(GOLDEN("text_tokenizer.json"), 0, NULL);
    json_object_set(json_object_get(golden, "shared"), "text_tokenizer", json_object_get(text, "model"));
    json_decref(text);
    if (!golden || !mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[128];
    json_decref(golden);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char place[160];
    snprintf(place, sizeof place, "%s/%s", folder, name);
    return place;
}

static void put_file(const char *name, const char *text)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* ---- the golden cases ---- */

static const json_t *case_of(const char *name)
{
    const json_t *cases = json_object_get(golden, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(cases, i), "name")), name))
            return json_array_get(cases, i);
    fail_msg("no case %s", name);
    return NULL;
}

/* Puts what a name stands for in its place. */
static void resolve(json_t *model, const char *key)
{
    const char *name = json_string_value(json_object_get(model, key));
    json_t *value = name ? json_object_get(json_object_get(golden, "shared"), name) : NULL;
    if (!name) return;
    if (!strcmp(name, "text_tokenizer")) value = json_object_get(value, key);
    assert_non_null(value);
    json_object_set_new(model, key, json_deep_copy(value));
}

static json_t *file_of(const json_t *one)
{
    json_t *top = json_deep_copy(json_object_get(one, "tokenizer")), *model = json_object_get(top, "model");
    resolve(model, "vocab");
    resolve(model, "merges");
    return top;
}

static qkv_tokenizer *load(const char *name)
{
    qkv_tokenizer *t = qkv_tokenizer_load(name);
    if (!t) fail_msg("%s", qkv_error());
    return t;
}

static qkv_tokenizer *load_case(const char *name)
{
    json_t *top = file_of(case_of(name));
    assert_int_equal(json_dump_file(top, path, 0), 0);
    json_decref(top);
    return load(path);
}

static bool same_numbers(const int32_t *ids, size_t n, const json_t *wanted)
{
    bool same = n == json_array_size(wanted);
    for (size_t i = 0; same && i < n; i++) same = ids[i] == json_integer_value(json_array_get(wanted, i));
    return same;
}

/* What was put before a text comes from nothing here; there it has the first character's place. */
static void check_spans(const char *name, const char *line, const qkv_ids *ids, const json_t *wanted)
{
    if (json_is_null(wanted)) return;
    for (size_t i = 0; i < ids->n; i++) {
        size_t first = (size_t)json_integer_value(json_array_get(wanted, 2 * i));
        size_t last = (size_t)json_integer_value(json_array_get(wanted, 2 * i + 1));
        if (ids->spans[i].begin == first && ids->spans[i].end == first) continue;
        if (ids->spans[i].begin != first || ids->spans[i].end != last)
            fail_msg("%s: token %zu of \"%s\" is at %zu..%zu, not %zu..%zu", name, i, line, ids->spans[i].begin,
                     ids->spans[i].end, first, last);
    }
}

/* A row has ids, the text they give, spans, and ids with a frame. */
static void check_row(const qkv_tokenizer *t, const char *name, const char *line, const json_t *row, qkv_ids *ids,
                      qkv_buffer *text)
{
    const json_t *decoded = json_array_get(row, 1), *framed = json_array_get(row, 3);
    qkv_encode_opts opts = { .specials = 1 };
    assert_int_equal(qkv_tokenizer_encode(t, line, strlen(line), &opts, ids), QKV_OK);
    if (!same_numbers(ids->ids, ids->n, json_array_get(row, 0))) fail_msg("%s: other ids for \"%s\"", name, line);
    check_spans(name, line, ids, json_array_get(row, 2));
    assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, 0, text), QKV_OK);
    if (json_is_string(decoded) && strcmp(text->data, json_string_value(decoded)))
        fail_msg("%s: \"%s\" is decoded as \"%s\", not \"%s\"", name, line, text->data, json_string_value(decoded));
    opts.with_special_tokens = 1;
    assert_int_equal(qkv_tokenizer_encode(t, line, strlen(line), &opts, ids), QKV_OK);
    if (!same_numbers(ids->ids, ids->n, json_is_null(framed) ? json_array_get(row, 0) : framed))
        fail_msg("%s: another frame for \"%s\"", name, line);
    assert_int_equal(ids->second, ids->n);
}

static void check_case(const qkv_tokenizer *t, const json_t *one)
{
    const char *name = json_string_value(json_object_get(one, "name"));
    const json_t *lines = json_object_get(golden, "lines"), *pair = json_object_get(one, "pair");
    const char *a = json_string_value(json_array_get(lines, 0)), *b = json_string_value(json_array_get(lines, 1));
    qkv_ids ids = { 0 };
    qkv_buffer text = { 0 };
    for (size_t i = 0; i < json_array_size(lines); i++)
        check_row(t, name, json_string_value(json_array_get(lines, i)), json_array_get(json_object_get(one, "rows"), i), &ids,
                  &text);
    const qkv_encode_opts opts = { .specials = 1, .with_special_tokens = 1 };
    assert_int_equal(qkv_tokenizer_encode_pair(t, a, strlen(a), b, strlen(b), &opts, &ids), QKV_OK);
    if (!same_numbers(ids.ids, ids.n, json_array_get(pair, 0))) fail_msg("%s: other ids for two texts", name);
    if (!same_numbers(ids.types, ids.n, json_array_get(pair, 1))) fail_msg("%s: other types for two texts", name);
    assert_true(ids.second > 0 && ids.second < ids.n);
    qkv_ids_free(&ids);
    qkv_buffer_free(&text);
}

/* Every case, and again from the file that it is saved as. */
static void same_as_hugging_face(void **state)
{
    (void)state;
    const json_t *cases = json_object_get(golden, "cases");
    assert_true(json_array_size(cases) > 20 && json_array_size(json_object_get(golden, "lines")) > 50);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        qkv_tokenizer *t = load_case(json_string_value(json_object_get(one, "name")));
        check_case(t, one);
        assert_int_equal(qkv_tokenizer_kind(t), QKV_TOKEN_PUBLISHED);
        assert_int_equal(qkv_tokenizer_save(t, in_folder("again.json")), QKV_OK);
        qkv_tokenizer_free(t);
        t = load(in_folder("again.json"));
        check_case(t, one);
        qkv_tokenizer_free(t);
    }
}

/* ---- what is found in text ---- */

static void no_text_is_special_unless_asked(void **state)
{
    (void)state;
    static const char text[] = "<s>cat</s> <unk> [CLS] the [MASK] <pad>";
    static const char *const names[] = { "llama3", "bert", "bert_cased", "t5", "unigram_bytes", "llama2", "added" };
    qkv_ids ids = { 0 };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        qkv_tokenizer *t = load_case(names[k]);
        int32_t unknown = qkv_tokenizer_id(t, names[k][0] == 'b' ? "[UNK]" : "<unk>");
        assert_int_equal(qkv_tokenizer_encode(t, text, strlen(text), NULL, &ids), QKV_OK);
        for (size_t i = 0; i < ids.n; i++)
            if (qkv_tokenizer_is_special(t, ids.ids[i]) && ids.ids[i] != unknown) fail_msg("%s: token %zu", names[k], i);
        size_t n = 0;
        assert_int_equal(qkv_tokenizer_encode(t, text, strlen(text), &(qkv_encode_opts){ .specials = 1 }, &ids), QKV_OK);
        for (size_t i = 0; i < ids.n; i++) n += qkv_tokenizer_is_special(t, ids.ids[i]) && ids.ids[i] != unknown;
        assert_true(n > 1);
        qkv_tokenizer_free(t);
    }
    qkv_ids_free(&ids);
}

/* Each mistake is U+FFFD to the tokenizer, and spans stay those of the text as it is. */
static void bad_bytes(void **state)
{
    (void)state;
    static const char bad[] = "cat \xFF\xE4\xBD mat", good[] = "cat \xEF\xBF\xBD\xEF\xBF\xBD mat";
    static const char *const names[] = { "llama3", "bert", "t5", "llama2", "words" };
    qkv_ids ids = { 0 }, wanted = { 0 };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        qkv_tokenizer *t = load_case(names[k]);
        assert_int_equal(qkv_tokenizer_encode(t, bad, strlen(bad), NULL, &ids), QKV_FORMAT);
        assert_int_equal(qkv_tokenizer_encode(t, bad, strlen(bad), &(qkv_encode_opts){ .any_bytes = 1 }, &ids), QKV_OK);
        assert_int_equal(qkv_tokenizer_encode(t, good, strlen(good), NULL, &wanted), QKV_OK);
        assert_int_equal(ids.n, wanted.n);
        assert_memory_equal(ids.ids, wanted.ids, ids.n * sizeof *ids.ids);
        assert_int_equal(ids.spans[ids.n - 1].end, strlen(bad));
        qkv_tokenizer_free(t);
    }
    qkv_ids_free(&ids);
    qkv_ids_free(&wanted);
}

static void spans_of_a_frame_are_empty(void **state)
{
    (void)state;
    qkv_tokenizer *t = load_case("bert");
    qkv_ids ids = { 0 };
    assert_int_equal(qkv_tokenizer_encode(t, "the cat", 7, &(qkv_encode_opts){ .with_special_tokens = 1 }, &ids), QKV_OK);
    assert_true(ids.spans[0].begin == 0 && ids.spans[0].end == 0);
    assert_true(ids.spans[ids.n - 1].begin == 7 && ids.spans[ids.n - 1].end == 7);
    assert_int_equal(qkv_tokenizer_encode_pair(t, "the cat", 7, "mat", 3, &(qkv_encode_opts){ .with_special_tokens = 1 }, &ids),
                     QKV_OK);
    assert_true(ids.spans[ids.second].begin == 0 && ids.types[ids.second] == 1 && ids.types[ids.second - 1] == 0);
    assert_true(ids.spans[ids.n - 1].begin == 3 && ids.spans[ids.n - 1].end == 3);
    qkv_ids_free(&ids);
    qkv_tokenizer_free(t);
}

/* A Latin letter and its mark, put together, come from both; what is left out belongs to nothing. */
static void spans_of_what_changed(void **state)
{
    (void)state;
    qkv_tokenizer *t = load_case("words_nfc");
    qkv_ids ids = { 0 };
    assert_int_equal(qkv_tokenizer_encode(t, "x e\xCC\x81 y", 7, NULL, &ids), QKV_OK);
    assert_int_equal(ids.n, 3);
    assert_true(ids.spans[1].begin == 2 && ids.spans[1].end == 5 && ids.spans[2].begin == 6);
    qkv_tokenizer_free(t);
    t = load_case("bert");
    assert_int_equal(qkv_tokenizer_encode(t, "\xC3\x89\xE2\x80\x8B, a", 8, NULL, &ids), QKV_OK);
    assert_true(ids.spans[0].begin == 0 && ids.spans[0].end == 2 && ids.spans[1].begin == 5 && ids.spans[1].end == 6);
    qkv_ids_free(&ids);
    qkv_tokenizer_free(t);
}

/* ---- other files with the same meaning ---- */

/* The tokens of an object, by id, a line each. */
static void put_vocab_txt(const json_t *vocab)
{
    const char **by_id = calloc(json_object_size(vocab), sizeof *by_id), *token;
    json_t *id;
    json_object_foreach ((json_t *)vocab, token, id) by_id[json_integer_value(id)] = token;
    FILE *f = fopen(in_folder("vocab.txt"), "wb");
    for (size_t i = 0; i < json_object_size(vocab); i++) fprintf(f, "%s%s", by_id[i], i % 2 ? "\r\n" : "\n");
    fclose(f);
    free(by_id);
}

static void compare_two(const qkv_tokenizer *a, const qkv_tokenizer *b)
{
    const json_t *lines = json_object_get(golden, "lines");
    qkv_ids x = { 0 }, y = { 0 };
    const qkv_encode_opts opts = { .specials = 1, .with_special_tokens = 1 };
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));
        assert_int_equal(qkv_tokenizer_encode(a, line, strlen(line), &opts, &x), QKV_OK);
        assert_int_equal(qkv_tokenizer_encode(b, line, strlen(line), &opts, &y), QKV_OK);
        if (x.n != y.n || memcmp(x.ids, y.ids, x.n * sizeof *x.ids)) fail_msg("other ids for \"%s\"", line);
    }
    qkv_ids_free(&x);
    qkv_ids_free(&y);
}

/* max_input_chars_per_word is 100 there. */
static qkv_tokenizer *load_bert(json_t *top)
{
    json_object_set_new(json_object_get(top, "model"), "max_input_chars_per_word", json_integer(100));
    assert_int_equal(json_dump_file(top, path, 0), 0);
    return load(path);
}

static void vocab_txt(void **state)
{
    (void)state;
    json_t *top = file_of(case_of("bert")), *normalizer = json_object_get(top, "normalizer");
    qkv_tokenizer *wanted = load_bert(top), *t;
    put_vocab_txt(json_object_get(json_object_get(top, "model"), "vocab"));
    t = load(in_folder("vocab.txt"));
    compare_two(wanted, t);
    assert_int_equal(qkv_tokenizer_save(t, in_folder("again.json")), QKV_OK);
    qkv_tokenizer_free(t);
    t = load(in_folder("again.json"));
    compare_two(wanted, t);
    qkv_tokenizer_free(wanted);
    qkv_tokenizer_free(t);
    put_file("tokenizer_config.json", "{\"do_lower_case\": false, \"strip_accents\": true, \"tokenize_chinese_chars\": false}");
    json_object_set_new(normalizer, "lowercase", json_false());
    json_object_set_new(normalizer, "strip_accents", json_true());
    json_object_set_new(normalizer, "handle_chinese_chars", json_false());
    wanted = load_bert(top);
    t = load(in_folder("vocab.txt"));
    compare_two(wanted, t);
    qkv_tokenizer_free(wanted);
    qkv_tokenizer_free(t);
    unlink(in_folder("tokenizer_config.json"));
    json_decref(top);
}

static void put_merges_txt(const json_t *merges)
{
    FILE *f = fopen(in_folder("merges.txt"), "wb");
    fprintf(f, "#version: 0.2\n");
    for (size_t i = 0; i < json_array_size(merges); i++) fprintf(f, "%s\n", json_string_value(json_array_get(merges, i)));
    fclose(f);
}

/* With <mask> it is RoBERTa's: a frame, and white space before <mask> is part of it. */
static void vocab_json_and_merges(void **state)
{
    (void)state;
    json_t *top = file_of(case_of("roberta")), *model = json_object_get(top, "model"), *vocab = json_object_get(model, "vocab");
    put_merges_txt(json_object_get(model, "merges"));
    json_object_set_new(json_object_get(top, "pre_tokenizer"), "add_prefix_space", json_false());
    for (int with_mask = 0; with_mask < 2; with_mask++) {
        if (with_mask) json_object_set_new(vocab, "<mask>", json_integer(700));
        else json_object_set_new(top, "post_processor", json_null());
        assert_int_equal(json_dump_file(vocab, in_folder("vocab.json"), 0), 0);
        qkv_tokenizer *t = load(in_folder("vocab.json"));
        if (with_mask) {
            json_decref(top);
            top = file_of(case_of("roberta"));
            json_object_set_new(json_object_get(top, "pre_tokenizer"), "add_prefix_space", json_false());
        } else json_array_remove(json_object_get(top, "added_tokens"), 4);
        assert_int_equal(json_dump_file(top, path, 0), 0);
        qkv_tokenizer *wanted = load(path);
        assert_int_equal(qkv_tokenizer_kind(t), with_mask ? QKV_TOKEN_PUBLISHED : QKV_TOKEN_BPE);
        compare_two(wanted, t);
        qkv_tokenizer_free(wanted);
        qkv_tokenizer_free(t);
        if (!with_mask) model = json_object_get(top, "model"), vocab = json_object_get(model, "vocab");
    }
    json_decref(top);
    unlink(in_folder("merges.txt"));
    assert_null(qkv_tokenizer_load(in_folder("vocab.json")));
    assert_int_equal(qkv_error_status(), QKV_IO);
    unlink(in_folder("vocab.json"));
}

static void what_a_folder_has(void **state)
{
    (void)state;
    qkv_tokenizer *source, *target;
    unlink(path);
    unlink(in_folder("vocab.txt"));
    unlink(in_folder("again.json"));
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_true(!source && !target);
    assert_int_equal(qkv_tokenizers_load("/no/such/folder", &source, &target), QKV_IO);
    assert_int_equal(qkv_tokenizers_load(NULL, &source, &target), QKV_USAGE);
    put_file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_true(qkv_tokenizer_vocab_size(source) == 5 && !target);
    qkv_tokenizer_free(source);
    qkv_tokenizer *t = load_case("words"); /* leaves its file there */
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_true(qkv_tokenizer_vocab_size(source) == qkv_tokenizer_vocab_size(t) && !target);
    qkv_tokenizer_free(source);
    assert_int_equal(qkv_tokenizer_save(t, in_folder("target_tokenizer.json")), QKV_OK);
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_OK);
    assert_true(source && target && source != target);
    qkv_tokenizer_free(source);
    qkv_tokenizer_free(target);
    put_file("target_tokenizer.json", "{");
    assert_int_equal(qkv_tokenizers_load(folder, &source, &target), QKV_FORMAT);
    assert_true(!source && !target);
    unlink(in_folder("target_tokenizer.json"));
    unlink(in_folder("vocab.txt"));
    qkv_tokenizer_free(t);
}

/* ---- published files ---- */

/* Two as they were published, without the model's type: what Hugging Face's tokenizers make of the lines of text.txt. */
static void untyped_published_files(void **state)
{
    (void)state;
    static const char *const names[] = { "bert", "t5" };
    qkv_ids ids = { 0 };
    int compared = 0;
    for (int i = 0; i < 2; i++) {
        char published[512], wanted[512], line[1024];
        snprintf(published, sizeof published, QKV_GOLDEN "/../../../shared/data/tokenizers/untyped-%s/tokenizer.json",
                 names[i]);
        snprintf(wanted, sizeof wanted, QKV_GOLDEN "/text_%s_ids.json", names[i]);
        if (access(published, R_OK)) {
            print_message("skipped: there is no %s\n", published);
            continue;
        }
        qkv_tokenizer *t = load(published);
        json_t *all = json_load_file(wanted, 0, NULL);
        const json_t *rows = json_object_get(json_object_get(all, "plain"), "lines");
        FILE *f = fopen(GOLDEN("text.txt"), "rb");
        assert_true(f && json_array_size(rows) > 20);
        for (size_t k = 0; fgets(line, sizeof line, f); k++) {
            const qkv_encode_opts opts = { .specials = 1 };
            assert_int_equal(qkv_tokenizer_encode(t, line, strcspn(line, "\n"), &opts, &ids), QKV_OK);
            if (!same_numbers(ids.ids, ids.n, json_array_get(rows, k))) fail_msg("%s: other ids for %s", names[i], line);
        }
        fclose(f);
        json_decref(all);
        qkv_tokenizer_free(t);
        compared++;
    }
    qkv_ids_free(&ids);
    if (!compared) skip();
}

/* The ids are those of Hugging Face's tokenizers. U+FDD0 is no NUL, and an escaped backslash starts no escape. */
static void nul_in_a_vocabulary(void **state)
{
    (void)state;
    static const char *const models[] = {
        "{\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"a\":1,\"b\":2,\"\\u0000\":3,\"\\u0000\\u0000\":4,"
        "\"a\\u0000\":5,\"\\\\u0000\":6,\"\\\\\":7,\"u\":8,\"0\":9},\"merges\":[\"\\u0000 \\u0000\",\"a \\u0000\"]}",
        "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"b\",-1],[\"\\u0000\",-2],"
        "[\"\\u0000\\u0000\",-3],[\"\",-9]]}",
    };
    static const struct {
        const char *text;
        size_t length, n[2];
        int32_t ids[2][6];
    } rows[] = { { "a\0b", 3, { 2, 3 }, { { 5, 2 }, { 1, 3, 2 } } },
                 { "\0", 1, { 1, 1 }, { { 3 }, { 3 } } },
                 { "ab\0\0", 4, { 3, 3 }, { { 1, 2, 4 }, { 1, 2, 4 } } },
                 { "\\u0000", 6, { 6, 1 }, { { 7, 8, 9, 9, 9, 9 }, { 0 } } },
                 { "\xEF\xB7\x90", 3, { 1, 1 }, { { 0 }, { 0 } } } };
    qkv_ids ids = { 0 };
    qkv_buffer text = { 0 };
    for (int m = 0; m < 2; m++) {
        char file[1024];
        snprintf(file, sizeof file, "{\"model\":%s,\"decoder\":{\"type\":\"Fuse\"}}", models[m]);
        put_file("tokenizer.json", file);
        qkv_tokenizer *t = load(path);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            assert_int_equal(qkv_tokenizer_encode(t, rows[i].text, rows[i].length, NULL, &ids), QKV_OK);
            assert_int_equal(ids.n, rows[i].n[m]);
            assert_memory_equal(ids.ids, rows[i].ids[m], ids.n * sizeof *ids.ids);
            assert_int_equal(qkv_tokenizer_decode(t, ids.ids, ids.n, 0, &text), QKV_OK);
            if (i < 3) assert_memory_equal(text.data, rows[i].text, rows[i].length);
        }
        assert_int_equal(qkv_tokenizer_save(t, in_folder("again.json")), QKV_OK);
        qkv_tokenizer_free(t);
        t = load(in_folder("again.json"));
        assert_int_equal(qkv_tokenizer_encode(t, "a\0b", 3, NULL, &ids), QKV_OK);
        assert_int_equal(ids.n, rows[0].n[m]);
        qkv_tokenizer_free(t);
    }
    qkv_ids_free(&ids);
    qkv_buffer_free(&text);
}

/* An id that no token has: nothing is found there, and nothing is said for it. */
static void ids_with_gaps(void **state)
{
    (void)state;
    qkv_tokenizer *t = load_case("gaps");
    qkv_buffer text = { 0 };
    int32_t ids[] = { qkv_tokenizer_id(t, "the"), 51, qkv_tokenizer_id(t, "the") };
    assert_string_equal(qkv_tokenizer_token(t, 51), "");
    assert_true(ids[0] > 0 && qkv_tokenizer_id(t, "") < 0);
    assert_int_equal(qkv_tokenizer_decode(t, ids, 3, 0, &text), QKV_OK);
    assert_string_equal(text.data, "the the");
    qkv_buffer_free(&text);
    qkv_tokenizer_free(t);
}

/* ---- hostile files ---- */

static qkv_status load_path(void)
{
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    qkv_tokenizer_free(t);
    return t ? QKV_OK : qkv_error_status();
}

/* What would be looked for is the sign that stands in for a NUL: no step and no added token may be quietly without effect. */
static void nul_outside_a_vocabulary(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"%s\"},\"content\":\"b\"},", "" },
        { "\"added_tokens\":[{\"id\":2,\"content\":\"a%s\"}],", "" },
        { "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"BPEDecoder\",\"suffix\":\"%s\"}]},", "" },
        { "", "\"end_of_word_suffix\":\"%s\"," },
    };
    static const char *const signs[] = { "\\u0000", "\\u0001" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 2; k++) {
            char format[512], file[512];
            snprintf(format, sizeof format,
                     "{%s\"model\":{%s\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u0000\":1},\"merges\":[]}}", rows[i][0],
                     rows[i][1]);
            snprintf(file, sizeof file, format, signs[k]);
            put_file("tokenizer.json", file);
            assert_int_equal(load_path(), k ? QKV_OK : QKV_UNSUPPORTED);
            if (!k) assert_non_null(strstr(qkv_error(), "a NUL is supported in model.vocab"));
        }
}

#define LIST(key, steps) "{\"type\":\"Sequence\",\"" key "\":[" steps "]}"
#define TYPE(type, rest) "{\"type\":\"" type "\"" rest "}"

/* A case with one value changed; json NULL removes the key. */
static const struct {
    const char *name, *at, *key, *json;
    qkv_status status;
    const char *says;
} hostile_rows[] = {
    { "bert", "", "normalizer", TYPE("Mtn", ""), QKV_UNSUPPORTED, "normalizer.type: \"Mtn\"" },
    { "bert", "", "normalizer", LIST("normalizers", TYPE("NFC", "") "," TYPE("Wow", "")), QKV_UNSUPPORTED,
      "normalizers[1].type" },
    { "bert", "", "normalizer", LIST("normalizers", "7"), QKV_UNSUPPORTED, "normalizers[0].type" },
    { "bert", "", "normalizer", LIST("pretokenizers", ""), QKV_FORMAT, "normalizer.normalizers: an array" },
    { "bert", "", "normalizer", "7", QKV_UNSUPPORTED, "normalizer.type" },
    { "bert", "", "normalizer", TYPE("Replace", ""), QKV_FORMAT, "normalizer.pattern" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"String\":\"\"},\"content\":\"\""), QKV_FORMAT, "empty" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"String\":\"a\"}"), QKV_FORMAT, "normalizer.content" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"Regex\":\"(\"},\"content\":\"\""), QKV_UNSUPPORTED,
      "pattern" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"Regex\":\"a*\"},\"content\":\"\""), QKV_UNSUPPORTED, "empty" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"Regex\":\"\\\\C\"},\"content\":\"\""), QKV_UNSUPPORTED,
      "pattern" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"Regex\":\"[a&&b]\"},\"content\":\"\""), QKV_UNSUPPORTED,
      "brackets" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"Regex\":\"[a[b]]\"},\"content\":\"\""), QKV_UNSUPPORTED,
      "brackets" },
    { "bert", "", "normalizer", TYPE("Replace", ",\"pattern\":{\"Regex\":\"\\\\[[^\\\\[\\\\]]+\"},\"content\":\"\""), QKV_OK,
      "" },
    { "bert", "", "normalizer", TYPE("Prepend", ""), QKV_FORMAT, "normalizer.prepend" },
    { "bert", "", "normalizer", TYPE("Precompiled", ""), QKV_FORMAT, "precompiled_charsmap" },
    { "bert", "", "normalizer", TYPE("Precompiled", ",\"precompiled_charsmap\":\"!!!!\""), QKV_FORMAT, "base64" },
    { "bert", "", "normalizer", TYPE("Precompiled", ",\"precompiled_charsmap\":\"AAA\""), QKV_FORMAT, "base64" },
    { "bert", "", "normalizer", TYPE("Precompiled", ",\"precompiled_charsmap\":\"AAAA\""), QKV_FORMAT, "trie" },
    { "bert", "", "normalizer", TYPE("Precompiled", ",\"precompiled_charsmap\":\"////////\""), QKV_FORMAT, "trie" },
    { "bert", "", "normalizer", TYPE("Precompiled", ",\"precompiled_charsmap\":\"\""), QKV_OK, "" },
    { "bert", "normalizer", "lowercase", "7", QKV_UNSUPPORTED, "normalizer.lowercase" },
    { "bert", "normalizer", "surprise", "7", QKV_OK, "" },
    { "bert", "", "pre_tokenizer", TYPE("UnicodeBlocks", ""), QKV_UNSUPPORTED, "pre_tokenizer.type" },
    { "bert", "", "pre_tokenizer", TYPE("Split", ""), QKV_FORMAT, "pre_tokenizer.pattern" },
    { "bert", "", "pre_tokenizer", TYPE("Split", ",\"pattern\":{\"String\":\"a\"}"), QKV_FORMAT, "pre_tokenizer.behavior" },
    { "bert", "", "pre_tokenizer", TYPE("Split", ",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Wow\""), QKV_UNSUPPORTED,
      "Wow" },
    { "bert", "", "pre_tokenizer", TYPE("Split", ",\"pattern\":{\"String\":\"a\",\"Regex\":\"a\"}"), QKV_FORMAT, "pattern" },
    { "bert", "", "pre_tokenizer", TYPE("Metaspace", ""), QKV_FORMAT, "pre_tokenizer.replacement" },
    { "bert", "", "pre_tokenizer", TYPE("Metaspace", ",\"replacement\":\"\""), QKV_FORMAT, "empty" },
    { "t5", "pre_tokenizer", "prepend_scheme", "\"last\"", QKV_UNSUPPORTED, "pre_tokenizer.prepend_scheme: \"last\"" },
    { "bert", "", "pre_tokenizer", TYPE("Digits", ",\"individual_digits\":1"), QKV_UNSUPPORTED, "individual_digits" },
    { "bert", "", "post_processor", TYPE("Wow", ""), QKV_UNSUPPORTED, "post_processor.type" },
    { "bert", "", "post_processor", TYPE("BertProcessing", ""), QKV_FORMAT, "post_processor.cls" },
    { "bert", "", "post_processor", TYPE("BertProcessing", ",\"cls\":[\"a\",99999],\"sep\":[\"a\",0]"), QKV_FORMAT, "cls" },
    { "bert", "post_processor", "special_tokens", "{}", QKV_FORMAT, "post_processor.special_tokens" },
    { "bert", "post_processor", "single", "[]", QKV_UNSUPPORTED, "post_processor.single" },
    { "bert", "post_processor", "single", "[{\"Sequence\":{\"id\":\"C\",\"type_id\":0}}]", QKV_FORMAT, "A or B" },
    { "bert", "post_processor", "single", "[{\"Sequence\":{\"id\":\"A\",\"type_id\":-1}}]", QKV_FORMAT,
      "post_processor.single" },
    { "bert", "post_processor", "single", "[{\"Wow\":{\"id\":\"A\",\"type_id\":0}}]", QKV_FORMAT, "post_processor.single" },
    { "bert", "post_processor", "pair", "[{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}]", QKV_UNSUPPORTED, "A before B" },
    { "bert", "", "decoder", TYPE("CTX", ""), QKV_UNSUPPORTED, "decoder.type" },
    { "bert", "decoder", "prefix", NULL, QKV_FORMAT, "decoder.prefix" },
    { "bert", "", "decoder", TYPE("Strip", ",\"content\":\"\",\"start\":0,\"stop\":0"), QKV_FORMAT, "decoder.content" },
    { "bert", "", "decoder", TYPE("Strip", ",\"content\":\" \",\"start\":-1,\"stop\":0"), QKV_UNSUPPORTED, "decoder.start" },
    { "bert", "model", "type", "\"Wow\"", QKV_UNSUPPORTED, "model.type" },
    { "bert", "model", "unk_token", "\"none\"", QKV_FORMAT, "model.unk_token" },
    { "bert", "model", "unk_token", NULL, QKV_FORMAT, "model.unk_token" },
    { "bert", "model", "max_input_chars_per_word", "-1", QKV_UNSUPPORTED, "model.max_input_chars_per_word" },
    { "bert", "model", "max_input_chars_per_word", "9223372036854775807", QKV_OK, "" },
    { "bert", "model", "merges", "[]", QKV_OK, "" },
    { "bert", "post_processor", "add_prefix_space", "true", QKV_OK, "" },
    { "bert", "model", "type", NULL, QKV_OK, "" },
    { "t5", "model", "type", NULL, QKV_OK, "" },
    { "words", "model", "type", NULL, QKV_OK, "" },
    { "bpe_fused", "model", "type", NULL, QKV_OK, "" },
    { "t5", "model", "vocab", "{}", QKV_FORMAT, "model.vocab: an array" },
    { "t5", "model", "vocab", "[]", QKV_FORMAT, "model.unk_id" },
    { "t5", "model", "vocab", "[[\"a\"]]", QKV_FORMAT, "model.vocab[0]" },
    { "t5", "model", "vocab", "[[\"a\",\"b\"]]", QKV_FORMAT, "model.vocab[0]" },
    { "t5", "model", "vocab", "[[\"a\",0],[\"a\",1]]", QKV_FORMAT, "model.vocab[1]: \"a\" is there twice" },
    { "t5", "model", "unk_id", "99999", QKV_FORMAT, "model.unk_id" },
    { "t5", "model", "unk_id", "-1", QKV_FORMAT, "model.unk_id" },
    { "t5", "model", "unk_id", "null", QKV_OK, "" },
    { "llama3", "model", "merges", "{}", QKV_FORMAT, "model.merges" },
    { "llama2", "model", "end_of_word_suffix", "\"</w>\"", QKV_UNSUPPORTED, "model.byte_fallback" },
    { "bpe_fused", "model", "end_of_word_suffix", "\"</w>\"", QKV_OK, "" },
    { "llama2", "", "truncation", "{\"max_length\":3}", QKV_OK, "" },
    { "llama2", "", "surprise", "1", QKV_UNSUPPORTED, "surprise" },
};

static void hostile_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile_rows / sizeof *hostile_rows; i++) {
        json_t *top = file_of(case_of(hostile_rows[i].name));
        json_t *object = *hostile_rows[i].at ? json_object_get(top, hostile_rows[i].at) : top;
        if (hostile_rows[i].json)
            json_object_set_new(object, hostile_rows[i].key, json_loads(hostile_rows[i].json, JSON_DECODE_ANY, NULL));
        else json_object_del(object, hostile_rows[i].key);
        assert_int_equal(json_dump_file(top, path, 0), 0);
        json_decref(top);
        qkv_status status = load_path();
        if (status != hostile_rows[i].status ||
            (status && (!strstr(qkv_error(), hostile_rows[i].says) || !strstr(qkv_error(), path))))
            fail_msg("row %zu (%s %s): status %d: %s", i, hostile_rows[i].key, hostile_rows[i].json, (int)status, qkv_error());
    }
}

/* Texts that no tree of jansson's can be. */
static void hostile_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *says;
    } rows[] = {
#define MODEL(vocab) "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":" vocab "}"
        { MODEL("{\"a\":0,\"b\":1}") "}", QKV_OK, "" },
        { MODEL("{\"a\":0,\"abcdefghi\":1,\"abcdefgh\":2,\"abcdefghj\":3,\"abcdefghi\":4}") "}", QKV_FORMAT,
          "duplicate key \"abcdefghi\"" },
        { MODEL("{\"a\":0,\"b\":1,\"\\u0061\":2}") "}", QKV_FORMAT, "duplicate key \"a\"" },
        { MODEL("{\"a\":0}") ",\"model\":{}}", QKV_FORMAT, "duplicate key \"model\"" },
        { MODEL("{\"a\":0,\"b\" 1}") "}", QKV_FORMAT, "line 1, byte 64: not JSON: a colon is expected" },
        { MODEL("{\"a\":0,\"b\":1.0}") "}", QKV_FORMAT, "the id of \"b\" is no whole number" },
        { MODEL("{\"a\":0,\"b\":{\"c\":1}}") "}", QKV_FORMAT, "the id of \"b\" is no whole number" },
        { MODEL("{\"a\":0,\"\\u0000\":1}") "}", QKV_OK, "" },
        { MODEL("{\"a\":0}") ",\"decoder\":{\"type\":\"\\u0000\"}}", QKV_UNSUPPORTED, "a NUL is supported" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"\\u00e9\":1,\"a\u00e9\":2},\"merges\":[\"a \\u00e9\"]}}", QKV_OK,
          "" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"\\u0061\",\"\\u0062\"]]}}", QKV_OK,
          "" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"a\",\"a\"]]}}", QKV_FORMAT,
          "model.merges[0]" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", QKV_FORMAT, "model.merges[0]" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[7]}}", QKV_FORMAT, "model.merges[0]" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}}", QKV_FORMAT, "model.merges[0]" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *f = fopen(path, "wb");
        assert_true(f && fputs(rows[i].text, f) >= 0 && !fclose(f));
        qkv_status status = load_path();
        if (status != rows[i].status || (status && !strstr(qkv_error(), rows[i].says)))
            fail_msg("%s: status %d: %s", rows[i].text, (int)status, qkv_error());
    }
}

/* Steps inside of steps, as deep as JSON goes. */
static void hostile_depth(void **state)
{
    (void)state;
    static const char before[] = "{\"type\":\"Sequence\",\"normalizers\":[", after[] = "]}";
    for (int depth = 500; depth <= 5000; depth *= 10) {
        FILE *f = fopen(path, "wb");
        fputs("{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}},\"normalizer\":", f);
        for (int i = 0; i < depth; i++) fputs(before, f);
        for (int i = 0; i < depth; i++) fputs(after, f);
        fputs("}", f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(load_path(), depth < 1000 ? QKV_OK : QKV_FORMAT);
    }
}

static void hostile_vocab_txt(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *says;
    } rows[] = {
        { "", QKV_FORMAT, "model.unk_token" },
        { "a\n", QKV_FORMAT, "model.unk_token" },
        { "[UNK]\na\na\n", QKV_FORMAT, "line 3: \"a\"" },
        { "[UNK]\n\xFF\n", QKV_FORMAT, "line 2" },
        { "[UNK]", QKV_OK, "" },
        { "[UNK]\n\n\n", QKV_FORMAT, "line 3" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_file("vocab.txt", rows[i].text);
        qkv_tokenizer *t = qkv_tokenizer_load(in_folder("vocab.txt"));
        if ((t ? QKV_OK : qkv_error_status()) != rows[i].status || (!t && !strstr(qkv_error(), rows[i].says)))
            fail_msg("row %zu: %s", i, qkv_error());
        qkv_tokenizer_free(t);
    }
    unlink(in_folder("vocab.txt"));
}

/* An expression that tries every way to cut a text ends, and says so. */
static void hostile_expression(void **state)
{
    (void)state;
    json_t *top = file_of(case_of("words"));
    qkv_ids ids = { 0 };
    char text[4000];
    memset(text, 'a', sizeof text);
    json_object_set_new(
        top, "pre_tokenizer",
        json_loads(TYPE("Split", ",\"pattern\":{\"Regex\":\"(a+a*)+[bc]\"},\"behavior\":\"Isolated\""), 0, NULL));
    assert_int_equal(json_dump_file(top, path, 0), 0);
    json_decref(top);
    qkv_tokenizer *t = load(path);
    assert_int_equal(qkv_tokenizer_encode(t, text, sizeof text, NULL, &ids), QKV_LIMIT);
    assert_int_equal(ids.n, 0);
    assert_int_equal(qkv_tokenizer_encode(t, "aab", 3, NULL, &ids), QKV_OK);
    qkv_ids_free(&ids);
    qkv_tokenizer_free(t);
}

/* A step of a file, `type`, that puts n letters where `pattern` is found, or before a text (NULL). */
static json_t *growing_step(const char *type, const char *pattern, const char *found, size_t n)
{
    char *many = calloc(1, n + 1);
    assert_non_null(many);
    memset(many, 'a', n);
    json_t *step = pattern ? json_pack("{s:s, s:{s:s}, s:s}", "type", type, "pattern", pattern, found, "content", many)
                           : json_pack("{s:s, s:s}", "type", type, "prepend", many);
    free(many);
    assert_non_null(step);
    return step;
}

/* Steps that multiply a text are stopped long before they fill memory, and named. */
static void growing_texts(void **state)
{
    (void)state;
    static const struct {
        const char *part, *list, *type, *pattern, *found;
        size_t n, times;
        const char *says;
    } rows[] = {
        { "normalizer", "normalizers", "Replace", "String", "a", 1000, 3, "Replace, step 1 of its file" },
        { "normalizer", "normalizers", "Replace", "Regex", "a", 1000, 3, "Replace, step 1 of its file" },
        { "normalizer", "normalizers", "Replace", "String", "a", 30, 3, "more than 1344 bytes" },
        { "normalizer", "normalizers", "Prepend", NULL, NULL, 5000, 1, "Prepend, step 1 of its file" },
        { "normalizer", "normalizers", "Prepend", NULL, NULL, 200, 20, "Prepend, step 7 of its file" },
        { "decoder", "decoders", "Replace", "String", "a", 1000, 3, "Replace, step 2 of its file" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *top = file_of(case_of("words")), *list = json_array();
        json_object_set_new(top, "added_tokens", json_array());
        for (size_t k = 0; k < rows[i].times; k++)
            json_array_append_new(list, growing_step(rows[i].type, rows[i].pattern, rows[i].found, rows[i].n));
        json_object_set_new(top, rows[i].part, json_pack("{s:s, s:o}", "type", "Sequence", rows[i].list, list));
        assert_int_equal(json_dump_file(top, path, 0), 0);
        json_decref(top);
        qkv_tokenizer *t = load(path);
        qkv_ids ids = { 0 };
        qkv_buffer text = { 0 };
        qkv_status status = qkv_tokenizer_encode(t, "aaaaaaaaaa", 10, NULL, &ids);
        if (!strcmp(rows[i].part, "decoder")) {
            const int32_t id = qkv_tokenizer_id(t, "mat");
            status = qkv_tokenizer_decode(t, &id, 1, 0, &text);
        }
        if (status != QKV_LIMIT || !strstr(qkv_error(), rows[i].says)) fail_msg("row %zu: %d, %s", i, (int)status, qkv_error());
        qkv_buffer_free(&text);
        qkv_ids_free(&ids);
        qkv_tokenizer_free(t);
    }
}

/* As many steps as a file may have, and one more. */
static void many_steps(void **state)
{
    (void)state;
    for (size_t n = 256; n <= 257; n++) {
        json_t *top = file_of(case_of("words")), *list = json_array();
        for (size_t k = 0; k < n; k++) json_array_append_new(list, json_pack("{s:s}", "type", "Lowercase"));
        json_object_set_new(top, "normalizer", json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", list));
        assert_int_equal(json_dump_file(top, path, 0), 0);
        json_decref(top);
        assert_int_equal(load_path(), n > 256 ? QKV_LIMIT : QKV_OK);
    }
}

/* Many regular expressions share one budget of steps, also where each match of them takes few. */
static void many_expressions(void **state)
{
    (void)state;
    json_t *top = file_of(case_of("words")), *list = json_array();
    for (size_t k = 0; k < 256; k++)
        json_array_append_new(list, json_loads(TYPE("Replace", ",\"pattern\":{\"Regex\":\"a\"},\"content\":\"a\""), 0, NULL));
    json_object_set_new(top, "normalizer", json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", list));
    assert_int_equal(json_dump_file(top, path, 0), 0);
    json_decref(top);
    char text[2000];
    memset(text, 'a', sizeof text);
    qkv_tokenizer *t = load(path);
    qkv_ids ids = { 0 };
    assert_int_equal(qkv_tokenizer_encode(t, text, sizeof text, NULL, &ids), QKV_LIMIT);
    assert_non_null(strstr(qkv_error(), "Replace, step"));
    qkv_ids_free(&ids);
    qkv_tokenizer_free(t);
}

/* Bytes changed at random: a file is refused, or text goes through what it says. */
static void broken_files(void **state)
{
    (void)state;
    static const char text[] = " The <s>cat e\xCC\x81 \xE6\x88\x91 [MASK] \xF0\x9F\x98\x80 12";
    static const char *const names[] = { "llama3", "bert", "t5", "llama2", "added" };
    int taken = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        json_t *top = file_of(case_of(names[k]));
        char *whole = json_dumps(top, JSON_COMPACT);
        size_t size = strlen(whole), far = size < 3000 ? size : 3000; /* the vocabulary comes last */
        for (int round = 0; round < 300; round++) {
            lcg();
            size_t at = (lcg_state >> 4) % (round % 3 ? far : size);
            char before = whole[at];
            whole[at] = "0179-\"{}[],:aZ\\ \xFF"[lcg_state >> 20 & 15];
            put_file("tokenizer.json", whole);
            whole[at] = before;
            qkv_tokenizer *t = qkv_tokenizer_load(path);
            qkv_ids ids = { 0 };
            const qkv_encode_opts opts = { .specials = 1, .with_special_tokens = 1 };
            qkv_status status = t ? qkv_tokenizer_encode(t, text, strlen(text), &opts, &ids) : qkv_error_status();
            if (t ? status && status != QKV_UNSUPPORTED : status != QKV_FORMAT && status != QKV_UNSUPPORTED)
                fail_msg("%s, byte %zu: %s", names[k], at, qkv_error());
            taken += t != NULL;
            qkv_ids_free(&ids);
            qkv_tokenizer_free(t);
        }
        free(whole);
        json_decref(top);
    }
    assert_true(taken > 20);
}

/* A model without a token for what is unknown. */
static void nothing_for_the_unknown(void **state)
{
    (void)state;
    json_t *top = file_of(case_of("t5"));
    qkv_ids ids = { 0 };
    json_object_set_new(json_object_get(top, "model"), "unk_id", json_null());
    assert_int_equal(json_dump_file(top, path, 0), 0);
    json_decref(top);
    qkv_tokenizer *t = load(path);
    assert_int_equal(qkv_tokenizer_encode(t, "cat", 3, NULL, &ids), QKV_OK);
    assert_int_equal(qkv_tokenizer_encode(t, "\xF0\x9F\x98\x80\xE0\xB8\xAA", 7, NULL, &ids), QKV_UNSUPPORTED);
    assert_int_equal(ids.n, 0);
    qkv_ids_free(&ids);
    qkv_tokenizer_free(t);
}

/* ---- long texts ---- */

/* A second is what is promised; ten times that is for slow machines. What grows with the square would take hours. */
static void a_megabyte_of_one_letter(void **state)
{
    (void)state;
    static const char *const names[] = { "llama3", "roberta",     "bert",  "t5",   "unigram_bytes",
                                         "llama2", "bpe_unknown", "words", "added" };
    static const char *const parts[] = { "a", " ", "\xE6\x88\x91", "\xCC\x81", "." };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        qkv_tokenizer *t = load_case(names[k]);
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) encode_megabyte(names[k], t, parts[p]);
        qkv_tokenizer_free(t);
    }
}

/* ---- a failing machine ---- */

static qkv_status use_path(void)
{
    static const char text[] = "The <s>cat sat [MASK] e\xCC\x81 \xE6\x88\x91 \xF0\x9F\x98\x80 hello world 12";
    qkv_ids ids = { 0 };
    qkv_buffer out = { 0 };
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    const qkv_encode_opts opts = { .specials = 1, .with_special_tokens = 1 };
    qkv_status status = t ? QKV_OK : qkv_error_status();
    if (!status) status = qkv_tokenizer_encode_pair(t, text, sizeof text - 1, "b", 1, &opts, &ids);
    if (!status) status = qkv_tokenizer_decode(t, ids.ids, ids.n, 0, &out);
    qkv_ids_free(&ids);
    qkv_buffer_free(&out);
    qkv_tokenizer_free(t);
    return status;
}

static qkv_status use_vocab_txt(void)
{
    qkv_tokenizer *source, *target;
    qkv_status status = qkv_tokenizers_load(folder, &source, &target);
    qkv_tokenizer_free(source);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const names[] = { "llama3", "bert", "t5", "llama2", "added", "words_nfkd" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qkv_tokenizer_free(load_case(names[i]));
        assert_true(each_allocation_fails(use_path) > 30);
    }
    unlink(path);
    put_file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\n##b\n");
    assert_true(each_allocation_fails(use_vocab_txt) > 20);
    unlink(in_folder("vocab.txt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_hugging_face),
        cmocka_unit_test(no_text_is_special_unless_asked),
        cmocka_unit_test(bad_bytes),
        cmocka_unit_test(spans_of_a_frame_are_empty),
        cmocka_unit_test(spans_of_what_changed),
        cmocka_unit_test(vocab_txt),
        cmocka_unit_test(vocab_json_and_merges),
        cmocka_unit_test(what_a_folder_has),
        cmocka_unit_test(untyped_published_files),
        cmocka_unit_test(nul_in_a_vocabulary),
        cmocka_unit_test(ids_with_gaps),
        cmocka_unit_test(nul_outside_a_vocabulary),
        cmocka_unit_test(hostile_values),
        cmocka_unit_test(hostile_texts),
        cmocka_unit_test(hostile_depth),
        cmocka_unit_test(hostile_vocab_txt),
        cmocka_unit_test(hostile_expression),
        cmocka_unit_test(growing_texts),
        cmocka_unit_test(many_steps),
        cmocka_unit_test(many_expressions),
        cmocka_unit_test(broken_files),
        cmocka_unit_test(nothing_for_the_unknown),
        cmocka_unit_test(a_megabyte_of_one_letter),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("pipeline", tests, begin, end);
}
