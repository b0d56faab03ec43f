/* test_pipeline.c: published tokenizers against Hugging Face's own, step by step; their files are not trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_values.h"
#include "failing.h"
#include "lcg.h"
#include "megabyte.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <string.h>

#define GOLDEN(name) QKV_GOLDEN "/" name

static char folder[64], path[96];
static const qkv__json_value *golden;

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-pipeline-XXXXXX");
    golden = json_read(GOLDEN("pipeline.json"));
    const qkv__json_value *text = json_read(GOLDEN("text_tokenizer.json"));
    if (!golden || !text || !mkdtemp(folder)) return 1;
    char *model = json_text(qkv__json_get(text, "model"), QKV__JSON_COMPACT);
    json_edit(&golden, "shared/text_tokenizer", model);
    free(model);
    json_free(text);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[128];
    json_free(golden);
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

static const qkv__json_value *case_of(const char *name)
{
    const qkv__json_value *cases = qkv__json_get(golden, "cases");
    for (size_t i = 0; i < qkv__json_size(cases); i++)
        if (!strcmp(qkv__json_text(qkv__json_get(qkv__json_at(cases, i), "name")), name)) return qkv__json_at(cases, i);
    fail_msg("no case %s", name);
    return NULL;
}

/* Puts what a name stands for in its place. */
static void resolve(const qkv__json_value **top, const char *key)
{
    const char *name = qkv__json_text(qkv__json_get(qkv__json_get(*top, "model"), key));
    const qkv__json_value *value = name ? qkv__json_get(qkv__json_get(golden, "shared"), name) : NULL;
    char place[32], *text;
    if (!name) return;
    if (!strcmp(name, "text_tokenizer")) value = qkv__json_get(value, key);
    assert_non_null(value);
    snprintf(place, sizeof place, "model/%s", key);
    json_edit(top, place, text = json_text(value, QKV__JSON_COMPACT));
    free(text);
}

static const qkv__json_value *file_of(const qkv__json_value *one)
{
    const qkv__json_value *top = json_edited(qkv__json_get(one, "tokenizer"), NULL, NULL);
    resolve(&top, "vocab");
    resolve(&top, "merges");
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
    const qkv__json_value *top = file_of(case_of(name));
    assert_int_equal(json_write(top, path), 0);
    json_free(top);
    return load(path);
}

static bool same_numbers(const int32_t *ids, int64_t n, const qkv__json_value *wanted)
{
    bool same = (size_t)n == qkv__json_size(wanted);
    for (size_t i = 0; same && i < (size_t)n; i++) same = ids[i] == qkv__json_int(qkv__json_at(wanted, i));
    return same;
}

/* What was put before a text comes from nothing here; there it has the first character's place. */
static void check_spans(const char *name, const char *line, const qkv_encoding *ids, const qkv__json_value *wanted)
{
    if (qkv__json_is_null(wanted)) return;
    for (size_t i = 0; i < (size_t)ids->n; i++) {
        size_t first = (size_t)qkv__json_int(qkv__json_at(wanted, 2 * i));
        size_t last = (size_t)qkv__json_int(qkv__json_at(wanted, 2 * i + 1));
        if (ids->spans[i].begin == first && ids->spans[i].end == first) continue;
        if (ids->spans[i].begin != first || ids->spans[i].end != last)
            fail_msg("%s: token %zu of \"%s\" is at %zu..%zu, not %zu..%zu", name, i, line, ids->spans[i].begin,
                     ids->spans[i].end, first, last);
    }
}

/* A row has ids, the text they give, spans, and ids with a frame. */
static void check_row(const qkv_tokenizer *t, const char *name, const char *line, const qkv__json_value *row,
                      qkv_encoding **ids, qkv_text **text)
{
    const qkv__json_value *decoded = qkv__json_at(row, 1), *framed = qkv__json_at(row, 3);
    qkv_encode_opts opts = { .parse_special = 1 };
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(line), &opts, ids), QKV_OK);
    if (!same_numbers((*ids)->ids, (*ids)->n, qkv__json_at(row, 0))) fail_msg("%s: other ids for \"%s\"", name, line);
    check_spans(name, line, *ids, qkv__json_at(row, 2));
    assert_int_equal(qkv_tokenizer_decode(t, (*ids)->ids, (*ids)->n, 0, text), QKV_OK);
    if (qkv__json_is_string(decoded) && strcmp((*text)->data, qkv__json_text(decoded)))
        fail_msg("%s: \"%s\" is decoded as \"%s\", not \"%s\"", name, line, (*text)->data, qkv__json_text(decoded));
    opts.add_special = 1;
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(line), &opts, ids), QKV_OK);
    if (!same_numbers((*ids)->ids, (*ids)->n, qkv__json_is_null(framed) ? qkv__json_at(row, 0) : framed))
        fail_msg("%s: another frame for \"%s\"", name, line);
    assert_int_equal((*ids)->second, (*ids)->n);
}

static void check_case(const qkv_tokenizer *t, const qkv__json_value *one)
{
    const char *name = qkv__json_text(qkv__json_get(one, "name"));
    const qkv__json_value *lines = qkv__json_get(golden, "lines"), *pair = qkv__json_get(one, "pair");
    const char *a = qkv__json_text(qkv__json_at(lines, 0)), *b = qkv__json_text(qkv__json_at(lines, 1));
    qkv_encoding *ids = NULL;
    qkv_text *text = NULL;
    for (size_t i = 0; i < qkv__json_size(lines); i++)
        check_row(t, name, qkv__json_text(qkv__json_at(lines, i)), qkv__json_at(qkv__json_get(one, "rows"), i), &ids, &text);
    const qkv_encode_opts opts = { .pair = qkv_cstr(b), .parse_special = 1, .add_special = 1 };
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(a), &opts, &ids), QKV_OK);
    if (!same_numbers(ids->ids, ids->n, qkv__json_at(pair, 0))) fail_msg("%s: other ids for two texts", name);
    if (!same_numbers(ids->types, ids->n, qkv__json_at(pair, 1))) fail_msg("%s: other types for two texts", name);
    assert_true(ids->second > 0 && ids->second < ids->n);
    qkv_free(ids);
    qkv_free(text);
}

/* Every case, and again from the file that it is saved as. */
static void same_as_hugging_face(void **state)
{
    (void)state;
    const qkv__json_value *cases = qkv__json_get(golden, "cases");
    assert_true(qkv__json_size(cases) > 20 && qkv__json_size(qkv__json_get(golden, "lines")) > 50);
    for (size_t i = 0; i < qkv__json_size(cases); i++) {
        const qkv__json_value *one = qkv__json_at(cases, i);
        qkv_tokenizer *t = load_case(qkv__json_text(qkv__json_get(one, "name")));
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
    qkv_encoding *ids = NULL;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        qkv_tokenizer *t = load_case(names[k]);
        int32_t unknown = qkv_tokenizer_id(t, names[k][0] == 'b' ? "[UNK]" : "<unk>");
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
        for (int64_t i = 0; i < ids->n; i++)
            if (qkv_tokenizer_is_special(t, ids->ids[i]) && ids->ids[i] != unknown) fail_msg("%s: token %zu", names[k], i);
        size_t n = 0;
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), &(qkv_encode_opts){ .parse_special = 1 }, &ids), QKV_OK);
        for (int64_t i = 0; i < ids->n; i++) n += qkv_tokenizer_is_special(t, ids->ids[i]) && ids->ids[i] != unknown;
        assert_true(n > 1);
        qkv_tokenizer_free(t);
    }
    qkv_free(ids);
}

/* Each mistake is U+FFFD to the tokenizer, and spans stay those of the text as it is. */
static void bad_bytes(void **state)
{
    (void)state;
    static const char bad[] = "cat \xFF\xE4\xBD mat", good[] = "cat \xEF\xBF\xBD\xEF\xBF\xBD mat";
    static const char *const names[] = { "llama3", "bert", "t5", "llama2", "words" };
    qkv_encoding *ids = NULL, *wanted = NULL;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        qkv_tokenizer *t = load_case(names[k]);
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(bad), NULL, &ids), QKV_FORMAT);
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(bad), &(qkv_encode_opts){ .allow_invalid_utf8 = 1 }, &ids), QKV_OK);
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(good), NULL, &wanted), QKV_OK);
        assert_int_equal(ids->n, wanted->n);
        assert_memory_equal(ids->ids, wanted->ids, (size_t)ids->n * sizeof *ids->ids);
        assert_int_equal(ids->spans[ids->n - 1].end, strlen(bad));
        qkv_tokenizer_free(t);
    }
    qkv_free(ids);
    qkv_free(wanted);
}

static void spans_of_a_frame_are_empty(void **state)
{
    (void)state;
    qkv_tokenizer *t = load_case("bert");
    qkv_encoding *ids = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("the cat"), &(qkv_encode_opts){ .add_special = 1 }, &ids), QKV_OK);
    assert_true(ids->spans[0].begin == 0 && ids->spans[0].end == 0);
    assert_true(ids->spans[ids->n - 1].begin == 7 && ids->spans[ids->n - 1].end == 7);
    const qkv_encode_opts pair = { .pair = qkv_cstr("mat"), .add_special = 1 };
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("the cat"), &pair, &ids), QKV_OK);
    assert_true(ids->spans[ids->second].begin == 0 && ids->types[ids->second] == 1 && ids->types[ids->second - 1] == 0);
    assert_true(ids->spans[ids->n - 1].begin == 3 && ids->spans[ids->n - 1].end == 3);
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

/* A Latin letter and its mark, put together, come from both; what is left out belongs to nothing. */
static void spans_of_what_changed(void **state)
{
    (void)state;
    qkv_tokenizer *t = load_case("words_nfc");
    qkv_encoding *ids = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("x e\xCC\x81 y"), NULL, &ids), QKV_OK);
    assert_int_equal(ids->n, 3);
    assert_true(ids->spans[1].begin == 2 && ids->spans[1].end == 5 && ids->spans[2].begin == 6);
    qkv_tokenizer_free(t);
    t = load_case("bert");
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("\xC3\x89\xE2\x80\x8B, a"), NULL, &ids), QKV_OK);
    assert_true(ids->spans[0].begin == 0 && ids->spans[0].end == 2 && ids->spans[1].begin == 5 && ids->spans[1].end == 6);
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

/* ---- other files with the same meaning ---- */

/* The tokens of an object, by id, a line each. */
static void put_vocab_txt(const qkv__json_value *vocab)
{
    const char **by_id = calloc(qkv__json_size(vocab), sizeof *by_id);
    for (size_t i = 0; i < qkv__json_size(vocab); i++) by_id[qkv__json_int(qkv__json_at(vocab, i))] = qkv__json_key(vocab, i);
    FILE *f = fopen(in_folder("vocab.txt"), "wb");
    for (size_t i = 0; i < qkv__json_size(vocab); i++) fprintf(f, "%s%s", by_id[i], i % 2 ? "\r\n" : "\n");
    fclose(f);
    free(by_id);
}

static void compare_two(const qkv_tokenizer *a, const qkv_tokenizer *b)
{
    const qkv__json_value *lines = qkv__json_get(golden, "lines");
    qkv_encoding *x = NULL, *y = NULL;
    const qkv_encode_opts opts = { .parse_special = 1, .add_special = 1 };
    for (size_t i = 0; i < qkv__json_size(lines); i++) {
        const char *line = qkv__json_text(qkv__json_at(lines, i));
        assert_int_equal(qkv_tokenizer_encode(a, qkv_cstr(line), &opts, &x), QKV_OK);
        assert_int_equal(qkv_tokenizer_encode(b, qkv_cstr(line), &opts, &y), QKV_OK);
        if (x->n != y->n || memcmp(x->ids, y->ids, (size_t)x->n * sizeof *x->ids)) fail_msg("other ids for \"%s\"", line);
    }
    qkv_free(x);
    qkv_free(y);
}

/* max_input_chars_per_word is 100 there. */
static qkv_tokenizer *load_bert(const qkv__json_value **top)
{
    json_edit(top, "model/max_input_chars_per_word", "100");
    assert_int_equal(json_write(*top, path), 0);
    return load(path);
}

static void vocab_txt(void **state)
{
    (void)state;
    const qkv__json_value *top = file_of(case_of("bert"));
    qkv_tokenizer *wanted = load_bert(&top), *t;
    put_vocab_txt(qkv__json_get(qkv__json_get(top, "model"), "vocab"));
    t = load(in_folder("vocab.txt"));
    compare_two(wanted, t);
    assert_int_equal(qkv_tokenizer_save(t, in_folder("again.json")), QKV_OK);
    qkv_tokenizer_free(t);
    t = load(in_folder("again.json"));
    compare_two(wanted, t);
    qkv_tokenizer_free(wanted);
    qkv_tokenizer_free(t);
    put_file("tokenizer_config.json", "{\"do_lower_case\": false, \"strip_accents\": true, \"tokenize_chinese_chars\": false}");
    json_edit(&top, "normalizer/lowercase", "false");
    json_edit(&top, "normalizer/strip_accents", "true");
    json_edit(&top, "normalizer/handle_chinese_chars", "false");
    wanted = load_bert(&top);
    t = load(in_folder("vocab.txt"));
    compare_two(wanted, t);
    qkv_tokenizer_free(wanted);
    qkv_tokenizer_free(t);
    unlink(in_folder("tokenizer_config.json"));
    json_free(top);
}

static void put_merges_txt(const qkv__json_value *merges)
{
    FILE *f = fopen(in_folder("merges.txt"), "wb");
    fprintf(f, "#version: 0.2\n");
    for (size_t i = 0; i < qkv__json_size(merges); i++) fprintf(f, "%s\n", qkv__json_text(qkv__json_at(merges, i)));
    fclose(f);
}

/* With <mask> it is RoBERTa's: a frame, and white space before <mask> is part of it. */
static void vocab_json_and_merges(void **state)
{
    (void)state;
    const qkv__json_value *top = file_of(case_of("roberta"));
    put_merges_txt(qkv__json_get(qkv__json_get(top, "model"), "merges"));
    json_edit(&top, "pre_tokenizer/add_prefix_space", "false");
    for (int with_mask = 0; with_mask < 2; with_mask++) {
        if (with_mask) json_edit(&top, "model/vocab/<mask>", "700");
        else json_edit(&top, "post_processor", "null");
        assert_int_equal(json_write(qkv__json_get(qkv__json_get(top, "model"), "vocab"), in_folder("vocab.json")), 0);
        qkv_tokenizer *t = load(in_folder("vocab.json"));
        if (with_mask) {
            json_free(top);
            top = file_of(case_of("roberta"));
            json_edit(&top, "pre_tokenizer/add_prefix_space", "false");
        } else json_edit(&top, "added_tokens/4", NULL);
        assert_int_equal(json_write(top, path), 0);
        qkv_tokenizer *wanted = load(path);
        assert_int_equal(qkv_tokenizer_kind(t), with_mask ? QKV_TOKEN_PUBLISHED : QKV_TOKEN_BPE);
        compare_two(wanted, t);
        qkv_tokenizer_free(wanted);
        qkv_tokenizer_free(t);
    }
    json_free(top);
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
    qkv_encoding *ids = NULL;
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
        const qkv__json_value *all = json_read(wanted);
        const qkv__json_value *rows = qkv__json_get(qkv__json_get(all, "plain"), "lines");
        FILE *f = fopen(GOLDEN("text.txt"), "rb");
        assert_true(f && qkv__json_size(rows) > 20);
        for (size_t k = 0; fgets(line, sizeof line, f); k++) {
            const qkv_encode_opts opts = { .parse_special = 1 };
            assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ line, strcspn(line, "\n") }, &opts, &ids), QKV_OK);
            if (!same_numbers(ids->ids, ids->n, qkv__json_at(rows, k))) fail_msg("%s: other ids for %s", names[i], line);
        }
        fclose(f);
        json_free(all);
        qkv_tokenizer_free(t);
        compared++;
    }
    qkv_free(ids);
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
    qkv_encoding *ids = NULL;
    qkv_text *text = NULL;
    for (int m = 0; m < 2; m++) {
        char file[1024];
        snprintf(file, sizeof file, "{\"model\":%s,\"decoder\":{\"type\":\"Fuse\"}}", models[m]);
        put_file("tokenizer.json", file);
        qkv_tokenizer *t = load(path);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ rows[i].text, rows[i].length }, NULL, &ids), QKV_OK);
            assert_int_equal(ids->n, rows[i].n[m]);
            assert_memory_equal(ids->ids, rows[i].ids[m], (size_t)ids->n * sizeof *ids->ids);
            assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &text), QKV_OK);
            if (i < 3) assert_memory_equal(text->data, rows[i].text, rows[i].length);
        }
        assert_int_equal(qkv_tokenizer_save(t, in_folder("again.json")), QKV_OK);
        qkv_tokenizer_free(t);
        t = load(in_folder("again.json"));
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ "a\0b", 3 }, NULL, &ids), QKV_OK);
        assert_int_equal(ids->n, rows[0].n[m]);
        qkv_tokenizer_free(t);
    }
    qkv_free(ids);
    qkv_free(text);
}

/* An id that no token has: nothing is found there, and nothing is said for it. */
static void ids_with_gaps(void **state)
{
    (void)state;
    qkv_tokenizer *t = load_case("gaps");
    qkv_text *text = NULL;
    int32_t ids[] = { qkv_tokenizer_id(t, "the"), 51, qkv_tokenizer_id(t, "the") };
    assert_string_equal(qkv_tokenizer_token(t, 51), "");
    assert_true(ids[0] > 0 && qkv_tokenizer_id(t, "") < 0);
    assert_int_equal(qkv_tokenizer_decode(t, ids, 3, 0, &text), QKV_OK);
    assert_string_equal(text->data, "the the");
    qkv_free(text);
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
        const qkv__json_value *top = file_of(case_of(hostile_rows[i].name));
        char place[128];
        snprintf(place, sizeof place, "%s%s%s", hostile_rows[i].at, *hostile_rows[i].at ? "/" : "", hostile_rows[i].key);
        json_edit(&top, place, hostile_rows[i].json);
        assert_int_equal(json_write(top, path), 0);
        json_free(top);
        qkv_status status = load_path();
        if (status != hostile_rows[i].status ||
            (status && (!strstr(qkv_error(), hostile_rows[i].says) || !strstr(qkv_error(), path))))
            fail_msg("row %zu (%s %s): status %d: %s", i, hostile_rows[i].key, hostile_rows[i].json, (int)status, qkv_error());
    }
}

/* Texts that no tree can be written as. */
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
    const qkv__json_value *top = file_of(case_of("words"));
    qkv_encoding *ids = NULL;
    char text[4000];
    memset(text, 'a', sizeof text);
    json_edit(&top, "pre_tokenizer", TYPE("Split", ",\"pattern\":{\"Regex\":\"(a+a*)+[bc]\"},\"behavior\":\"Isolated\""));
    assert_int_equal(json_write(top, path), 0);
    json_free(top);
    qkv_tokenizer *t = load(path);
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, sizeof text }, NULL, &ids), QKV_LIMIT);
    assert_int_equal(ids->n, 0);
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("aab"), NULL, &ids), QKV_OK);
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

/* A step of a file, `type`, that puts n letters where `pattern` is found, or before a text (NULL). */
static void put_growing_step(qkv__json_writer *w, const char *type, const char *pattern, const char *found, size_t n)
{
    char *many = calloc(1, n + 1);
    assert_non_null(many);
    memset(many, 'a', n);
    qkv__json_open_object(w, NULL);
    qkv__json_put_text(w, "type", type);
    if (pattern) {
        qkv__json_open_object(w, "pattern");
        qkv__json_put_text(w, pattern, found);
        qkv__json_close(w);
    }
    qkv__json_put_text(w, pattern ? "content" : "prepend", many);
    qkv__json_close(w);
    free(many);
}

/* Puts a sequence of n equal steps in the place of a part of a file. */
static void set_sequence(const qkv__json_value **top, const char *part, const char *list, const char *step, size_t n)
{
    qkv__json_writer w = { 0 };
    qkv__json_open_object(&w, NULL);
    qkv__json_put_text(&w, "type", "Sequence");
    qkv__json_open_array(&w, list);
    for (size_t k = 0; k < n; k++) qkv__json_put_raw(&w, NULL, step, strlen(step));
    qkv__json_close(&w);
    qkv__json_close(&w);
    json_edit(top, part, w.text);
    qkv__json_writer_free(&w);
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
        const qkv__json_value *top = file_of(case_of("words"));
        qkv__json_writer step = { 0 };
        json_edit(&top, "added_tokens", "[]");
        put_growing_step(&step, rows[i].type, rows[i].pattern, rows[i].found, rows[i].n);
        set_sequence(&top, rows[i].part, rows[i].list, step.text, rows[i].times);
        qkv__json_writer_free(&step);
        assert_int_equal(json_write(top, path), 0);
        json_free(top);
        qkv_tokenizer *t = load(path);
        qkv_encoding *ids = NULL;
        qkv_text *text = NULL;
        qkv_status status = qkv_tokenizer_encode(t, qkv_cstr("aaaaaaaaaa"), NULL, &ids);
        if (!strcmp(rows[i].part, "decoder")) {
            const int32_t id = qkv_tokenizer_id(t, "mat");
            status = qkv_tokenizer_decode(t, &id, 1, 0, &text);
        }
        if (status != QKV_LIMIT || !strstr(qkv_error(), rows[i].says)) fail_msg("row %zu: %d, %s", i, (int)status, qkv_error());
        qkv_free(text);
        qkv_free(ids);
        qkv_tokenizer_free(t);
    }
}

/* As many steps as a file may have, and one more. */
static void many_steps(void **state)
{
    (void)state;
    for (size_t n = 256; n <= 257; n++) {
        const qkv__json_value *top = file_of(case_of("words"));
        set_sequence(&top, "normalizer", "normalizers", "{\"type\":\"Lowercase\"}", n);
        assert_int_equal(json_write(top, path), 0);
        json_free(top);
        assert_int_equal(load_path(), n > 256 ? QKV_LIMIT : QKV_OK);
    }
}

/* Many regular expressions share one budget of steps, also where each match of them takes few. */
static void many_expressions(void **state)
{
    (void)state;
    const qkv__json_value *top = file_of(case_of("words"));
    set_sequence(&top, "normalizer", "normalizers", TYPE("Replace", ",\"pattern\":{\"Regex\":\"a\"},\"content\":\"a\""), 256);
    assert_int_equal(json_write(top, path), 0);
    json_free(top);
    char text[2000];
    memset(text, 'a', sizeof text);
    qkv_tokenizer *t = load(path);
    qkv_encoding *ids = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, sizeof text }, NULL, &ids), QKV_LIMIT);
    assert_non_null(strstr(qkv_error(), "Replace, step"));
    qkv_free(ids);
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
        const qkv__json_value *top = file_of(case_of(names[k]));
        char *whole = json_text(top, QKV__JSON_COMPACT);
        size_t size = strlen(whole), far = size < 3000 ? size : 3000; /* the vocabulary comes last */
        for (int round = 0; round < 300; round++) {
            lcg();
            size_t at = (lcg_state >> 4) % (round % 3 ? far : size);
            char before = whole[at];
            whole[at] = "0179-\"{}[],:aZ\\ \xFF"[lcg_state >> 20 & 15];
            put_file("tokenizer.json", whole);
            whole[at] = before;
            qkv_tokenizer *t = qkv_tokenizer_load(path);
            qkv_encoding *ids = NULL;
            const qkv_encode_opts opts = { .parse_special = 1, .add_special = 1 };
            qkv_status status = t ? qkv_tokenizer_encode(t, qkv_cstr(text), &opts, &ids) : qkv_error_status();
            if (t ? status && status != QKV_UNSUPPORTED : status != QKV_FORMAT && status != QKV_UNSUPPORTED)
                fail_msg("%s, byte %zu: %s", names[k], at, qkv_error());
            taken += t != NULL;
            qkv_free(ids);
            qkv_tokenizer_free(t);
        }
        free(whole);
        json_free(top);
    }
    assert_true(taken > 20);
}

/* A model without a token for what is unknown. */
static void nothing_for_the_unknown(void **state)
{
    (void)state;
    const qkv__json_value *top = file_of(case_of("t5"));
    qkv_encoding *ids = NULL;
    json_edit(&top, "model/unk_id", "null");
    assert_int_equal(json_write(top, path), 0);
    json_free(top);
    qkv_tokenizer *t = load(path);
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("cat"), NULL, &ids), QKV_OK);
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("\xF0\x9F\x98\x80\xE0\xB8\xAA"), NULL, &ids), QKV_UNSUPPORTED);
    assert_int_equal(ids->n, 0);
    qkv_free(ids);
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
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    const qkv_encode_opts opts = { .pair = qkv_cstr("b"), .parse_special = 1, .add_special = 1 };
    qkv_status status = t ? QKV_OK : qkv_error_status();
    if (!status) status = qkv_tokenizer_encode(t, (qkv_str){ text, sizeof text - 1 }, &opts, &ids);
    if (!status) status = qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &out);
    qkv_free(ids);
    qkv_free(out);
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
