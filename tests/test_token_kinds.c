/* test_token_kinds.c: tokenizers of words and of characters: what they learn, find and refuse, against Hugging Face's. */
#include "data/corpus.h"
#include "token/word_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_values.h"
#include "failing.h"
#include "lcg.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "report/tokens.h"
#include "as_strings.h"

#define GOLDEN(name) QKV_GOLDEN "/" name

static char folder[64], path[96], other_path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-kinds-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(other_path, sizeof other_path, "%s/other", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(other_path);
    return rmdir(folder);
}

/* A whole file with a NUL after it; free() it. */
static char *get_file(const char *name, size_t *size)
{
    char *bytes = malloc(1 << 16);
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    *size = fread(bytes, 1, (1 << 16) - 1, f);
    fclose(f);
    assert_true(*size < (1 << 16) - 1);
    bytes[*size] = '\0';
    return bytes;
}

static void put_text(const char *name, const char *text)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void same_file(const qkv_tokenizer *t, const char *name)
{
    size_t n, m;
    assert_non_null(t);
    assert_int_equal(qkv_tokenizer_save(t, path), QKV_OK);
    char *ours = get_file(path, &n), *wanted = get_file(name, &m);
    assert_int_equal(n, m);
    assert_memory_equal(ours, wanted, n);
    free(ours);
    free(wanted);
}

/* Lines end with a NULL. */
static qkv_tokenizer *learn(qkv_token_kind kind, const char *const *lines, const qkv_tokenizer_opts *opts)
{
    qkv_word_counts *w = qkv_word_counts_new(kind);
    qkv_status status = w ? QKV_OK : qkv_error_status();
    for (; !status && *lines; lines++) status = qkv_word_counts_add(w, qkv_cstr(*lines));
    qkv_tokenizer *t = status ? NULL : qkv_tokenizer_train(w, opts);
    qkv_word_counts_free(w);
    return t;
}

static const qkv_tokenizer_opts all = { .min_count = 1 };

/* ---- training ---- */

/* The tokens after the special ones, with a bar after each. */
static void has_tokens(const qkv_tokenizer *t, const char *wanted)
{
    char got[400] = "";
    assert_non_null(t);
    for (int32_t id = 4; id < qkv_tokenizer_vocab_size(t); id++) strcat(strcat(got, qkv_tokenizer_token(t, id)), "|");
    assert_string_equal(got, wanted);
}

static void learns(qkv_token_kind kind, const char *const *lines, int32_t size, int64_t min_count, const char *wanted)
{
    static const char *const specials[] = { "<pad>", "<s>", "</s>", "<unk>" };
    qkv_tokenizer *t = learn(kind, lines, &(qkv_tokenizer_opts){ .vocab_size = size, .min_count = min_count });
    has_tokens(t, wanted);
    assert_int_equal(qkv_tokenizer_kind(t), kind);
    for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t); id++) {
        assert_int_equal(qkv_tokenizer_is_special(t, id), id < 4);
        if (id < 4) assert_string_equal(qkv_tokenizer_token(t, id), specials[id]);
        assert_int_equal(qkv_tokenizer_id(t, qkv_tokenizer_token(t, id)), id);
    }
    qkv_tokenizer_free(t);
}

static void the_most_frequent_are_learned(void **state)
{
    (void)state;
    static const char *const lines[] = { "To be, or not to be", "  BE\tor\xC2\xA0not\xE3\x80\x80ToBe ", "猫 É é abc ab", NULL };
    learns(QKV_TOKEN_WORDS, lines, 0, 1, "be|not|or|to|é|ab|abc|be,|tobe|猫|");
    learns(QKV_TOKEN_WORDS, lines, 0, 0, "be|not|or|to|é|");
    learns(QKV_TOKEN_WORDS, lines, 6, 1, "be|not|");
    learns(QKV_TOKEN_WORDS, lines, 4, 1, "");
    static const char *const letters[] = { "aB a", "猫é a", "  éc", NULL };
    learns(QKV_TOKEN_CHARACTERS, letters, 0, 1, " |a|é|B|c|猫|");
    learns(QKV_TOKEN_CHARACTERS, letters, 0, 3, " |a|");
    learns(QKV_TOKEN_CHARACTERS, letters, 5, 1, " |");
}

static void special_tokens_are_not_learned(void **state)
{
    (void)state;
    static const char *const lines[] = { "<S> <s> <s> a a <unk>", NULL };
    learns(QKV_TOKEN_WORDS, lines, 0, 1, "a|");
    qkv_tokenizer *t = learn(
        QKV_TOKEN_CHARACTERS, (const char *const[]){ "aab", NULL },
        &(qkv_tokenizer_opts){ .min_count = 1, .specials = (const char *[]){ "a", "<unk>" }, .n_specials = 2 });
    assert_int_equal(qkv_tokenizer_vocab_size(t), 3);
    assert_string_equal(qkv_tokenizer_token(t, 2), "b");
    qkv_tokenizer_free(t);
}

/* A spelling ends at its NUL, so what has one cannot be learned. */
static void nul_is_not_learned(void **state)
{
    (void)state;
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        qkv_word_counts *w = qkv_word_counts_new((qkv_token_kind)kind);
        for (int i = 0; i < 3; i++) assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "a\0b a", 5 }), QKV_OK);
        qkv_tokenizer *t = qkv_tokenizer_train(w, NULL);
        has_tokens(t, kind == QKV_TOKEN_WORDS ? "a|" : "a| |b|");
        qkv_tokenizer_free(t);
        qkv_word_counts_free(w);
    }
}

/* The golden file, from the lines of text.txt in their order or backwards. */
static void training_is_deterministic(void **state)
{
    (void)state;
    size_t size;
    char *text = get_file(GOLDEN("text.txt"), &size);
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++)
        for (int backwards = 0; backwards < 2; backwards++) {
            bool words = kind == QKV_TOKEN_WORDS;
            qkv_word_counts *w = qkv_word_counts_new((qkv_token_kind)kind);
            if (!backwards) assert_int_equal(qkv__word_counts_add_file(w, GOLDEN("text.txt"), 1, NULL), QKV_OK);
            for (char *end = text + size - 1, *start; backwards && end > text; end = start - 1) {
                for (start = end; start > text && start[-1] != '\n';) start--;
                assert_int_equal(qkv_word_counts_add(w, (qkv_str){ start, (size_t)(end - start) }), QKV_OK);
                if (start == text) break;
            }
            qkv_tokenizer *t = qkv_tokenizer_train(w,
                                                   words ? &(qkv_tokenizer_opts){ .vocab_size = 160, .min_count = 1 } : NULL);
            same_file(t, words ? GOLDEN("text_words.json") : GOLDEN("text_characters.json"));
            qkv_tokenizer_free(t);
            qkv_word_counts_free(w);
        }
    free(text);
}

static void bad_training_options(void **state)
{
    (void)state;
    static const struct {
        int32_t size;
        const char *specials[3];
        int n_specials;
        const char *says;
    } rows[] = {
        { 3, { 0 }, 0, "no room for 4 special tokens" },
        { -1, { 0 }, 0, "no room" },
        { 9, { 0 }, -1, "<unk>" },
        { 9, { "<pad>", "<s>" }, 2, "<unk>" },
        { 9, { "<unk>", "" }, 2, "empty" },
        { 9, { "<unk>", NULL }, 2, "empty" },
        { 9, { "<unk>", "<unk>" }, 2, "twice" },
        { 9, { "<unk>", "\xFF" }, 2, "not UTF-8" },
    };
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        qkv_word_counts *w = qkv_word_counts_new((qkv_token_kind)kind);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const qkv_tokenizer_opts o = { .vocab_size = rows[i].size,
                                           .specials = rows[i].specials,
                                           .n_specials = rows[i].n_specials };
            if (qkv_tokenizer_train(w, &o)) fail_msg("row %zu is taken", i);
            assert_int_equal(qkv_error_status(), QKV_USAGE);
            if (!strstr(qkv_error(), rows[i].says)) fail_msg("row %zu: %s", i, qkv_error());
        }
        assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "a\xFF", 2 }), QKV_FORMAT);
        qkv_word_counts_free(w);
    }
    assert_null(qkv_word_counts_new(QKV_TOKEN_PUBLISHED));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    assert_null(qkv_word_counts_new((qkv_token_kind)-1));
    assert_int_equal(qkv_tokenizer_kind(NULL), QKV_TOKEN_BPE);
}

/* ---- the same ids as Hugging Face's ---- */

static qkv_tokenizer *load(const char *name)
{
    qkv_tokenizer *t = qkv_tokenizer_load(name);
    if (!t) fail_msg("%s", qkv_error());
    return t;
}

static const qkv__json_value *load_json(const char *name)
{
    const qkv__json_value *json = json_read(name);
    assert_non_null(json);
    return json;
}

static void check_ids(const qkv_tokenizer *t, const char *text, size_t length, const qkv__json_value *wanted,
                      qkv_encoding **ids)
{
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, length }, &(qkv_encode_opts){ .parse_special = 1 }, ids), QKV_OK);
    bool same = (size_t)(*ids)->n == qkv__json_size(wanted);
    for (size_t i = 0; same && i < (size_t)(*ids)->n; i++) same = (*ids)->ids[i] == qkv__json_int(qkv__json_at(wanted, i));
    if (!same) fail_msg("other ids for \"%.*s\"", (int)length, text);
}

static void check_text(const qkv_tokenizer *t, const qkv_encoding *ids, unsigned flags, const char *wanted)
{
    qkv_text *out = NULL;
    assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, flags, &out), QKV_OK);
    assert_string_equal(out->data, wanted);
    qkv_free(out);
}

static void compare(const qkv_tokenizer *t, const qkv__json_value *golden)
{
    size_t size, n = 0;
    char *text = get_file(GOLDEN("text.txt"), &size);
    const qkv__json_value *lines = qkv__json_get(golden, "lines");
    qkv_encoding *ids = NULL;
    for (const char *line = text; line < text + size; line = strchr(line, '\n') + 1, n++)
        check_ids(t, line, (size_t)(strchr(line, '\n') - line), qkv__json_at(lines, n), &ids);
    assert_int_equal(n, 27);
    check_ids(t, text, size, qkv__json_get(golden, "whole"), &ids);
    check_text(t, ids, 0, qkv__json_text(qkv__json_get(golden, "decoded")));
    check_text(t, ids, 1, qkv__json_text(qkv__json_get(golden, "without_specials")));
    qkv_free(ids);
    free(text);
}

static void same_ids_as_hugging_face(void **state)
{
    (void)state;
    static const char *const names[] = { "words", "characters" };
    static const char *const files[] = { GOLDEN("text_words.json"), GOLDEN("text_characters.json") };
    const qkv__json_value *golden = load_json(GOLDEN("text_kinds_ids.json"));
    for (int i = 0; i < 2; i++) {
        qkv_tokenizer *t = load(files[i]);
        assert_int_equal(qkv_tokenizer_kind(t), QKV_TOKEN_WORDS + i);
        compare(t, qkv__json_get(golden, names[i]));
        same_file(t, files[i]);
        qkv_tokenizer_free(t);
    }
    json_free(golden);
}

/* A tokenizer that learned the text in lower case knows all of it in capitals. */
static void same_lower_case_as_hugging_face(void **state)
{
    (void)state;
    const qkv__json_value *golden = load_json(GOLDEN("text_kinds_ids.json"));
    const qkv__json_value *lower = qkv__json_get(golden, "lower");
    assert_int_equal(qkv__json_size(lower), 15);
    for (size_t i = 0; i < qkv__json_size(lower); i++) {
        const char *text = qkv__json_text(qkv__json_at(qkv__json_at(lower, i), 0));
        const char *wanted = qkv__json_text(qkv__json_at(qkv__json_at(lower, i), 1));
        qkv_tokenizer *t = learn(QKV_TOKEN_WORDS, (const char *const[]){ wanted, NULL }, &all);
        qkv_encoding *ids = NULL;
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
        check_text(t, ids, 0, wanted);
        qkv_free(ids);
        qkv_tokenizer_free(t);
    }
    json_free(golden);
}

/* ---- encoding and decoding ---- */

static const char *const cats[] = { "the cat sat on the mat", "猫 über i̇", NULL };

/* What text gives: each token with the bytes it comes from. decoded NULL: not looked at. */
static const struct {
    qkv_token_kind kind;
    const char *text;
    size_t length;
    int specials;
    const char *tokens, *decoded;
} rows[] = {
    { QKV_TOKEN_WORDS, "", 0, 0, "", "" },
    { QKV_TOKEN_WORDS, " \t\r\n", 4, 0, "", "" },
    { QKV_TOKEN_WORDS, "The  CAT", 8, 0, "the 0-3, cat 5-8, ", "the cat" },
    { QKV_TOKEN_WORDS, " dog\xE3\x80\x80mat ", 11, 0, "<unk> 1-4, mat 7-10, ", "<unk> mat" },
    { QKV_TOKEN_WORDS, "cat. sat", 8, 0, "<unk> 0-4, sat 5-8, ", "<unk> sat" },
    { QKV_TOKEN_WORDS, "ÜBER İ 猫", 12, 0, "über 0-5, i̇ 6-8, 猫 9-12, ", "über i̇ 猫" },
    { QKV_TOKEN_WORDS, "cat\0sat on", 10, 0, "<unk> 0-7, on 8-10, ", NULL },
    { QKV_TOKEN_WORDS, "cat\0 on\0", 8, 0, "<unk> 0-4, <unk> 5-8, ", NULL },
    { QKV_TOKEN_WORDS, "\xFF cat\xE7\x8C sat", 11, 0, "<unk> 0-1, <unk> 2-7, sat 8-11, ", NULL },
    { QKV_TOKEN_WORDS, "<s> the</s><unk>", 16, 0, "<unk> 0-3, <unk> 4-16, ", "<unk> <unk>" },
    { QKV_TOKEN_WORDS, "<s> the</s><unk>", 16, 1, "<s> 0-3, the 4-7, </s> 7-11, <unk> 11-16, ", "<s> the </s> <unk>" },
    { QKV_TOKEN_WORDS, "<S>cat <S>", 10, 0, "<unk> 0-6, <unk> 7-10, ", NULL },
    { QKV_TOKEN_WORDS, "<S>cat <S>", 10, 1, "<unk> 0-6, <s> 7-10, ", NULL }, /* as Hugging Face has it */
    { QKV_TOKEN_CHARACTERS, "", 0, 0, "", "" },
    { QKV_TOKEN_CHARACTERS, "a  T", 4, 0, "a 0-1,   1-2,   2-3, <unk> 3-4, ", "a  <unk>" },
    { QKV_TOKEN_CHARACTERS, "猫ü\xCC\x87", 7, 0, "猫 0-3, ü 3-5, \xCC\x87 5-7, ", "猫ü\xCC\x87" },
    { QKV_TOKEN_CHARACTERS, "a\0b", 3, 0, "a 0-1, <unk> 1-2, b 2-3, ", NULL },
    { QKV_TOKEN_CHARACTERS,
      "a\xFF\xE7\x8C"
      "a",
      5, 0, "a 0-1, <unk> 1-2, <unk> 2-4, a 4-5, ", NULL },
    { QKV_TOKEN_CHARACTERS, "<s>", 3, 0, "<unk> 0-1, s 1-2, <unk> 2-3, ", NULL },
    { QKV_TOKEN_CHARACTERS, "a<s>a", 5, 1, "a 0-1, <s> 1-4, a 4-5, ", "a<s>a" },
};

static void encoding_by_rows(void **state)
{
    (void)state;
    qkv_tokenizer *of_kind[] = { NULL, learn(QKV_TOKEN_WORDS, cats, &all), learn(QKV_TOKEN_CHARACTERS, cats, &all) };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const qkv_tokenizer *t = of_kind[rows[i].kind];
        const qkv_encode_opts o = { .parse_special = rows[i].specials, .allow_invalid_utf8 = 1 };
        qkv_encoding *ids = NULL;
        char got[200] = "";
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ rows[i].text, rows[i].length }, &o, &ids), QKV_OK);
        for (int64_t k = 0; k < ids->n; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s %zu-%zu, ", qkv_tokenizer_token(t, ids->ids[k]),
                     ids->spans[k].begin, ids->spans[k].end);
        if (strcmp(got, rows[i].tokens)) fail_msg("row %zu: %s", i, got);
        if (rows[i].decoded) check_text(t, ids, 0, rows[i].decoded);
        bool valid = qkv_utf8_valid(rows[i].text, rows[i].length) == rows[i].length;
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ rows[i].text, rows[i].length }, NULL, &ids),
                         valid ? QKV_OK : QKV_FORMAT);
        if (!valid) assert_int_equal(ids->n, 0);
        qkv_free(ids);
    }
    qkv_tokenizer_free(of_kind[QKV_TOKEN_WORDS]);
    qkv_tokenizer_free(of_kind[QKV_TOKEN_CHARACTERS]);
}

static void decoding_without_specials(void **state)
{
    (void)state;
    int32_t ids[] = { 1, 4, 3, 4, 2, 0 };
    qkv_text *out = NULL;
    qkv_tokenizer *t = learn(QKV_TOKEN_WORDS, cats, &all);
    assert_int_equal(qkv_tokenizer_decode(t, ids, 6, QKV_DECODE_SKIP_SPECIAL, &out), QKV_OK);
    assert_string_equal(out->data, "the the");
    ids[3] = qkv_tokenizer_vocab_size(t);
    assert_int_equal(qkv_tokenizer_decode(t, ids, 6, QKV_DECODE_SKIP_SPECIAL, &out), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "at place 3"));
    assert_int_equal(out->length, 0);
    qkv_free(out);
    qkv_tokenizer_free(t);
}

static void line_and_back(const qkv_tokenizer *t, const char *text, qkv_token_style style, const char *wanted)
{
    qkv_encoding *ids = NULL;
    token_ids back = { 0 };
    qkv_buffer line = { 0 };
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
    assert_int_equal(qkv_tokens_text(t, ids->ids, (size_t)ids->n, style, &line), QKV_OK);
    assert_string_equal(line.data, wanted);
    assert_int_equal(qkv_tokens_parse(t, line.data, style, "it", &back), QKV_OK);
    assert_int_equal(back.n, ids->n);
    assert_memory_equal(back.ids, ids->ids, (size_t)ids->n * sizeof *ids->ids);
    qkv_free(ids);
    token_ids_free(&back);
    qkv_buffer_free(&line);
}

static void tokens_are_lines(void **state)
{
    (void)state;
    static const char *const letters[] = { "ab ba", NULL };
    qkv_tokenizer *words = learn(QKV_TOKEN_WORDS, cats, &all), *characters = learn(QKV_TOKEN_CHARACTERS, letters, &all),
                  *bytes = learn(QKV_TOKEN_BPE, letters, &all);
    line_and_back(words, "the cat", QKV_TOKEN_STYLE_RAW, "the cat");
    line_and_back(words, "the the", QKV_TOKEN_STYLE_ID, "4 4");
    line_and_back(characters, "a b", QKV_TOKEN_STYLE_RAW, "a   b");
    line_and_back(characters, "a b", QKV_TOKEN_STYLE_SHOWN, "a \xe2\x96\x81 b");
    line_and_back(bytes, "z\t", QKV_TOKEN_STYLE_ID, "93 201"); /* behind 4 special tokens, the visible bytes first */
    line_and_back(bytes, "z\t", QKV_TOKEN_STYLE_SHOWN, "z <0x09>");
    token_ids ids = { 0 };
    qkv_buffer line = { 0 };
    assert_int_equal(qkv_tokens_parse(words, "  the   cat ", QKV_TOKEN_STYLE_RAW, "it", &ids), QKV_OK);
    assert_int_equal(ids.n, 2);
    assert_int_equal(qkv_tokens_parse(words, "the zebra", QKV_TOKEN_STYLE_SHOWN, "it", &ids), QKV_FORMAT);
    assert_string_equal(qkv_error(), "\"zebra\" is no token of it");
    assert_int_equal(ids.n, 0);
    assert_int_equal(qkv_tokens_parse(words, "4 99", QKV_TOKEN_STYLE_ID, "it", &ids), QKV_FORMAT);
    assert_string_equal(qkv_error(), "\"99\" is no id of it");
    assert_int_equal(qkv_tokens_text(words, (const int32_t[]){ 99 }, 1, QKV_TOKEN_STYLE_ID, &line), QKV_USAGE);
    assert_int_equal(qkv_tokens_text(words, NULL, 0, QKV_TOKEN_STYLE_ID, &line), QKV_OK);
    assert_string_equal(line.data, "");
    assert_int_equal(qkv_tokens_text(words, NULL, 0, (qkv_token_style)3, &line), QKV_USAGE);
    qkv_buffer_free(&line);
    token_ids_free(&ids);
    qkv_tokenizer_free(words), qkv_tokenizer_free(characters), qkv_tokenizer_free(bytes);
}

static void typed_ids(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "5,", ",5", "5 6", "5,x", "-1", "5,99999999999999999999" };
    token_ids ids = { 0 };
    assert_int_equal(qkv_ids_parse("5,6,0", 7, "--ids", &ids), QKV_OK);
    assert_int_equal(ids.n, 3);
    assert_memory_equal(ids.ids, ((int32_t[]){ 5, 6, 0 }), 12);
    assert_int_equal(qkv_ids_parse("5,7", 7, "--ids", &ids), QKV_USAGE);
    assert_string_equal(qkv_error(), "--ids: 7 is outside 0..6");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(qkv_ids_parse(bad[i], 7, "--ids", &ids), QKV_USAGE);
        assert_non_null(strstr(qkv_error(), "is not a list of ids such as 5,6,7"));
        assert_int_equal(ids.n, 0);
    }
    token_ids_free(&ids);
}

/* Characters lie side by side; between words there is white space alone, and none inside. */
static void any_bytes_have_spans(void **state)
{
    (void)state;
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        qkv_tokenizer *t = learn((qkv_token_kind)kind, cats, &all);
        qkv_encoding *ids = NULL;
        for (int round = 0; round < 1000; round++) {
            char text[100];
            size_t n = 1 + (unsigned)round % 100, at = 0;
            for (size_t i = 0; i < n; i++) lcg(), text[i] = (char)(lcg_state >> (round % 2 ? 16 : 27));
            assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, n },
                                                  &(qkv_encode_opts){ .allow_invalid_utf8 = 1, .parse_special = 1 }, &ids),
                             QKV_OK);
            for (int64_t i = 0; i <= ids->n; i++) {
                size_t begin = i < ids->n ? ids->spans[i].begin : n, end = i < ids->n ? ids->spans[i].end : n;
                assert_true(begin >= at && begin <= end && (i == ids->n || begin < end) && end <= n);
                if (kind == QKV_TOKEN_CHARACTERS) assert_int_equal(begin, at);
                for (; at < begin; at++) assert_true((text[at] >= 9 && text[at] <= 13) || text[at] == ' ' || text[at] < 0);
                for (; at < end; at++) assert_true(kind == QKV_TOKEN_CHARACTERS || !memchr(" \t\n\v\f\r", text[at], 6));
            }
        }
        qkv_free(ids);
        qkv_tokenizer_free(t);
    }
}

static void a_megabyte_without_a_gap(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    memset(text, 'A', BYTES);
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        qkv_tokenizer *t = learn((qkv_token_kind)kind, (const char *const[]){ "A AA AAA AAAA", NULL }, &all);
        qkv_word_counts *w = qkv_word_counts_new((qkv_token_kind)kind);
        qkv_encoding *ids = NULL;
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, BYTES }, NULL, &ids), QKV_OK);
        assert_int_equal(ids->n, kind == QKV_TOKEN_WORDS ? 1 : BYTES);
        assert_string_equal(qkv_tokenizer_token(t, ids->ids[0]), kind == QKV_TOKEN_WORDS ? "<unk>" : "A");
        assert_int_equal(qkv_word_counts_add(w, (qkv_str){ text, BYTES }), QKV_OK);
        assert_int_equal(qkv__word_counts_size(w), 1);
        qkv_word_counts_free(w);
        qkv_free(ids);
        qkv_tokenizer_free(t);
    }
    free(text);
}

/* ---- tokenizer files ---- */

static qkv_status load_path(void)
{
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    qkv_tokenizer_free(t);
    return t ? QKV_OK : qkv_error_status();
}

#define SPLIT(pattern, behavior, invert) \
    "{\"type\":\"Split\",\"pattern\":" pattern ",\"behavior\":\"" behavior "\",\"invert\":" invert "}"
#define ANY "{\"Regex\":\"[\\\\s\\\\S]\"}"
#define ADDED(id, content, rest) "[{\"id\":" id ",\"content\":\"" content "\"" rest "}]"

/* A golden file with one value changed; json NULL removes the key. at is "", "model", .. */
static const struct {
    qkv_token_kind kind;
    const char *at, *key, *json;
    qkv_status status;
    const char *says;
} hostile_rows[] = {
    { QKV_TOKEN_WORDS, "", "normalizer", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "normalizer", "null", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "normalizer", "\"Lowercase\"", QKV_UNSUPPORTED, "normalizer" },
    { QKV_TOKEN_WORDS, "", "normalizer", "{\"type\":\"NFC\"}", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "normalizer", "surprise", "1", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "pre_tokenizer", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "pre_tokenizer", "{\"type\":\"Whitespace\"}", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "pre_tokenizer", "{\"type\":\"ByteLevel\"}", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "pre_tokenizer", SPLIT(ANY, "Isolated", "false"), QKV_OK, "" },
    { QKV_TOKEN_WORDS, "pre_tokenizer", "surprise", "1", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "post_processor", "{\"type\":\"ByteLevel\"}", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "post_processor", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "decoder", "{\"type\":\"Fuse\"}", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "decoder", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "truncation", "{}", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "model", "[]", QKV_FORMAT, "model" },
    { QKV_TOKEN_WORDS, "model", "type", "\"WordPiece\"", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "model", "type", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "model", "unk_token", NULL, QKV_FORMAT, "model.unk_token" },
    { QKV_TOKEN_WORDS, "model", "unk_token", "null", QKV_FORMAT, "model.unk_token" },
    { QKV_TOKEN_WORDS, "model", "unk_token", "3", QKV_FORMAT, "model.unk_token" },
    { QKV_TOKEN_WORDS, "model", "unk_token", "\"[UNK]\"", QKV_FORMAT, "model.unk_token" },
    { QKV_TOKEN_WORDS, "model", "unk_token", "\"the\"", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "model", "merges", "[]", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "model", "dropout", "null", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "model", "vocab", "[]", QKV_FORMAT, "model.vocab" },
    { QKV_TOKEN_WORDS, "model", "vocab", NULL, QKV_FORMAT, "model.vocab" },
    { QKV_TOKEN_WORDS, "model", "vocab", "{}", QKV_FORMAT, "model.unk_token" },
    { QKV_TOKEN_WORDS, "vocab", "the", "-1", QKV_FORMAT, "\"the\" has the id -1" },
    { QKV_TOKEN_WORDS, "vocab", "the", "160", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "vocab", "the", "5", QKV_FORMAT, "both have the id 5" },
    { QKV_TOKEN_WORDS, "vocab", "the", "4.0", QKV_FORMAT, "no whole number" },
    { QKV_TOKEN_WORDS, "vocab", "the", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "vocab", "", "160", QKV_OK, "" },
    { QKV_TOKEN_WORDS, "vocab", "<pad>", NULL, QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "vocab", "<pad>", NULL, QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "vocab", "<unk>", NULL, QKV_FORMAT, "model.unk_token" },
    { QKV_TOKEN_WORDS, "", "added_tokens", NULL, QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "added_tokens", "{}", QKV_FORMAT, "added_tokens" },
    { QKV_TOKEN_WORDS, "", "added_tokens", ADDED("4", "the", ""), QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "added_tokens", ADDED("5", "the", ""), QKV_FORMAT, "added_tokens[0]" },
    { QKV_TOKEN_WORDS, "", "added_tokens", ADDED("4", "the", ",\"normalized\":true"), QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "added_tokens", ADDED("4", "the", ",\"lstrip\":true"), QKV_OK, "" },
    { QKV_TOKEN_WORDS, "", "added_tokens", ADDED("160", "new", ""), QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "", "added_tokens", ADDED("4", " ", ",\"normalized\":true"), QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "", "normalizer", "{\"type\":\"Lowercase\"}", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "", "normalizer", NULL, QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "", "decoder", "null", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "", "decoder", "{\"type\":\"ByteLevel\"}", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "decoder", "surprise", "1", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "surprise", "1", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "pattern", NULL, QKV_FORMAT, "pre_tokenizer.pattern" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "pattern", "{}", QKV_FORMAT, "pre_tokenizer.pattern" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "pattern", "{\"String\":\"[\\\\s\\\\S]\"}", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "pattern", "{\"Regex\":\".\"}", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "behavior", "\"Removed\"", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "pre_tokenizer", "invert", "true", QKV_OK, "" },
    { QKV_TOKEN_CHARACTERS, "", "post_processor", "{\"type\":\"TemplateProcessing\"}", QKV_FORMAT, "post_processor" },
};

static void hostile_values(void **state)
{
    (void)state;
    const qkv__memory table = { failing_alloc, failing_release };
    for (size_t i = 0; i < sizeof hostile_rows / sizeof *hostile_rows; i++) {
        const qkv__json_value *top = load_json(hostile_rows[i].kind == QKV_TOKEN_WORDS ? GOLDEN("text_words.json")
                                                                                       : GOLDEN("text_characters.json"));
        const char *at = hostile_rows[i].at;
        char place[128];
        snprintf(place, sizeof place, "%s%s%s%s", !strcmp(at, "vocab") ? "model/" : "", at, *at ? "/" : "",
                 hostile_rows[i].key);
        json_edit(&top, place, hostile_rows[i].json);
        assert_int_equal(json_write(top, path), 0);
        json_free(top);
        qkv__set_memory(&table);
        failing = (struct failing){ .fail_at = -1 };
        qkv_status status = load_path();
        assert_int_equal(failing.held, 0);
        qkv__set_memory(NULL);
        if (status != hostile_rows[i].status ||
            (status && (!strstr(qkv_error(), hostile_rows[i].says) || !strstr(qkv_error(), path))))
            fail_msg("row %zu (%s %s): status %d: %s", i, hostile_rows[i].key, hostile_rows[i].json, (int)status, qkv_error());
    }
}

/* Another name for <unk>, added tokens that are no special ones, and spellings that need care in JSON. */
static void files_come_back(void **state)
{
    (void)state;
    const qkv__json_value *top = load_json(GOLDEN("text_words.json"));
    json_edit(&top, "model/unk_token", "\"[UNK]\"");
    json_edit(&top, "model/vocab/[UNK]", "160");
    json_edit(&top, "model/vocab/\"\\\x01\xC5\x82", "161");
    json_edit(&top, "added_tokens", ADDED("10", "mat", ""));
    assert_int_equal(json_write(top, path), 0);
    qkv_tokenizer *t = load(path);
    assert_int_equal(qkv_tokenizer_save(t, other_path), QKV_OK);
    qkv_tokenizer_free(t);
    t = load(other_path);
    same_file(t, other_path);
    qkv_encoding *ids = NULL;
    static const char text[] = "nothing \"\\\x01\xC5\x82 mats \xC5\x82";
    const int32_t wanted[] = { 160, 161, 10, 160, 160 };
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, sizeof text - 1 }, NULL, &ids), QKV_OK);
    assert_int_equal(ids->n, 5);
    assert_memory_equal(ids->ids, wanted, sizeof wanted);
    check_text(t, ids, 0, "[UNK] \"\\\x01\xC5\x82 mat [UNK] [UNK]"); /* U+0142 spells a byte in a BPE alone */
    qkv_free(ids);
    qkv_tokenizer_free(t);
    json_free(top);
}

/* ---- what is built on tokenizers ---- */

static void a_corpus_of_any_kind(void **state)
{
    (void)state;
    put_text(path, "The cat\n\nthe mat sat\n");
    put_text(other_path, "cat the\nx\nTHE dog\n");
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        qkv_tokenizer *t = learn((qkv_token_kind)kind, cats, &all);
        qkv_dataset *p = qkv_dataset_new();
        qkv_read_stats read = { 0 };
        assert_int_equal(qkv__dataset_add_corpus(p, t, t, path, other_path, NULL, &read), QKV_OK);
        assert_true(read.pairs == 2 && read.empty == 1 && qkv_dataset_size(p) == 2);
        qkv_loader *e = qkv_loader_new(p, &(qkv_batch_opts){ .sequential = 1, .start = 1, .end = 2 }, 0);
        qkv_batch *b = NULL;
        assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
        assert_int_equal(b->source_lengths[0], (kind == QKV_TOKEN_WORDS ? 2 : 7) + 1);
        if (kind == QKV_TOKEN_WORDS) {
            assert_int_equal(b->source[0], qkv_tokenizer_id(t, "the"));
            assert_int_equal(b->source[1], qkv_tokenizer_id(t, "cat"));
            assert_int_equal(b->target[b->target_length + 2], qkv_tokenizer_id(t, "<unk>"));
        }
        qkv_free(b);
        qkv_loader_free(e);
        qkv_dataset_free(p);
        qkv_tokenizer_free(t);
    }
}

/* The weights are random: what counts is that text goes in and comes out. */
static void translation_of_any_kind(void **state)
{
    (void)state;
    static const char *const texts[] = { "The cat sat", "a dog on the mat", "猫" };
    static const int n_words[] = { 3, 5, 1 };
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        qkv_tokenizer *t = learn((qkv_token_kind)kind, cats, &all);
        const qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t),
                               .encoder_layers = 1,
                               .decoder_layers = 1,
                               .dim = 8,
                               .heads = 2,
                               .d_ff = 16 };
        qkv_model *m = qkv_model_new(&o, 7);
        qkv_translations *out = NULL;
        qkv_text *text = NULL;
        assert_int_equal(qkv_model_set_tokenizers(m, t, NULL), QKV_OK);
        const qkv_translate_opts opts = { .beam_size = 2, .max_length = 6, .target_prefix = "THE" };
        assert_int_equal(qkv_translate(m, as_strings(texts, NULL, 3), 3, &opts, &out), QKV_OK);
        for (int i = 0; i < 3; i++) {
            const qkv_translation *x = &out->best[i];
            if (kind == QKV_TOKEN_WORDS) assert_int_equal(out->n_source[i], n_words[i] + 1);
            assert_int_equal(qkv_tokenizer_decode(t, x->ids, x->n_ids, QKV_DECODE_SKIP_SPECIAL, &text), QKV_OK);
            assert_string_equal(x->text.data, text->data);
            if (kind == QKV_TOKEN_WORDS) assert_memory_equal(x->text.data, "the", 3);
        }
        qkv_free(text);
        qkv_free(out);
        qkv_model_free(m);
    }
}

/* ---- a failing machine ---- */

static qkv_token_kind failing_kind;

static qkv_status learn_and_use(void)
{
    static const char text[] = "The cat <s> DOG \xFF";
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    qkv_tokenizer *t = learn(failing_kind, cats, &all), *again = NULL;
    qkv_status status = t ? qkv_tokenizer_save(t, path) : qkv_error_status();
    if (!status && !(again = qkv_tokenizer_load(path))) status = qkv_error_status();
    const qkv_encode_opts o = { .parse_special = 1, .allow_invalid_utf8 = 1 };
    if (!status) status = qkv_tokenizer_encode(again, (qkv_str){ text, sizeof text - 1 }, &o, &ids);
    if (!status) status = qkv_tokenizer_decode(again, ids->ids, ids->n, 0, &out);
    qkv_free(ids);
    qkv_free(out);
    qkv_tokenizer_free(t);
    qkv_tokenizer_free(again);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    for (int kind = QKV_TOKEN_WORDS; kind <= QKV_TOKEN_CHARACTERS; kind++) {
        failing_kind = (qkv_token_kind)kind;
        assert_true(each_allocation_fails(learn_and_use) > 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_frequent_are_learned),
        cmocka_unit_test(special_tokens_are_not_learned),
        cmocka_unit_test(nul_is_not_learned),
        cmocka_unit_test(training_is_deterministic),
        cmocka_unit_test(bad_training_options),
        cmocka_unit_test(same_ids_as_hugging_face),
        cmocka_unit_test(same_lower_case_as_hugging_face),
        cmocka_unit_test(encoding_by_rows),
        cmocka_unit_test(decoding_without_specials),
        cmocka_unit_test(tokens_are_lines),
        cmocka_unit_test(typed_ids),
        cmocka_unit_test(any_bytes_have_spans),
        cmocka_unit_test(a_megabyte_without_a_gap),
        cmocka_unit_test(hostile_values),
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(a_corpus_of_any_kind),
        cmocka_unit_test(translation_of_any_kind),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests_name("token kinds", tests, make_folder, remove_folder);
}
