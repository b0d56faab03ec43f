/* test_text.c: UTF-8, the tokenizer against Hugging Face's, its files and its training; no text, file or machine is trusted. */
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
#include "token/tokenizer.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>
#include "term/read_text.h"

#include <pthread.h>
#include <string.h>
#include <zlib.h>

#define GOLDEN(name) QKV_GOLDEN "/" name
#define GPT2 QKV_GOLDEN "/../../../shared/data/tokenizers/gpt2/tokenizer.json"

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-text-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put_file(const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put_gzip(const void *bytes, size_t size)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(f), Z_OK);
}

#define PLACED(text) (text), sizeof(text) - 1

/* A whole file with a NUL after it; free() it. */
static char *get_file(const char *name, size_t *size)
{
    char *bytes = malloc(1 << 20);
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    *size = fread(bytes, 1, (1 << 20) - 1, f);
    fclose(f);
    assert_true(*size < (1 << 20) - 1);
    bytes[*size] = '\0';
    return bytes;
}

static uint32_t random_below(uint32_t n)
{
    lcg();
    return (lcg_state >> 8) % n;
}

/* ---- UTF-8 ---- */

static size_t put_code_point(int32_t c, char out[4])
{
    if (c < 0x80) return out[0] = (char)c, 1;
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(n == 2 ? 0xC0 | c : n == 3 ? 0xE0 | c : 0xF0 | c);
    return n;
}

static void every_code_point(void **state)
{
    (void)state;
    for (int32_t c = 0; c < 0x110100; c++) {
        char text[4];
        size_t n = put_code_point(c, text), bytes;
        bool valid = c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
        if (qkv_utf8_next(text, n, &bytes) != (valid ? c : -1)) fail_msg("U+%04X is decoded wrongly", c);
        if (valid) assert_int_equal(bytes, n);
        assert_int_equal(qkv_utf8_valid(text, n), valid ? n : 0);
        for (size_t cut = 1; valid && cut < n; cut++) assert_int_equal(qkv_utf8_valid(text, cut), 0);
    }
}

#define BAD "\xEF\xBF\xBD"
static const struct {
    const char *text;
    size_t length, good;
    const char *repaired;
} utf8_rows[] = {
    { "", 0, 0, "" },
    { "plain", 5, 5, "plain" },
    { "a\0b", 3, 3, "a" }, /* compared up to its NUL */
    { "\x80", 1, 0, BAD },
    { "ab\xFFxy", 5, 2, "ab" BAD "xy" },
    { "\xC0\xAF", 2, 0, BAD BAD },                 /* overlong / */
    { "\xC1\xBF", 2, 0, BAD BAD },                 /* overlong DEL */
    { "\xE0\x80\xAF", 3, 0, BAD BAD BAD },         /* overlong / */
    { "\xE0\x9F\xBF", 3, 0, BAD BAD BAD },         /* overlong U+07FF */
    { "\xF0\x8F\xBF\xBF", 4, 0, BAD BAD BAD BAD }, /* overlong U+FFFF */
    { "\xED\xA0\x80", 3, 0, BAD BAD BAD },         /* a surrogate */
    { "\xED\xBF\xBF", 3, 0, BAD BAD BAD },         /* the last one */
    { "\xF4\x90\x80\x80", 4, 0, BAD BAD BAD BAD }, /* U+110000 */
    { "\xF5\x80\x80\x80", 4, 0, BAD BAD BAD BAD },
    { "x\xE4\xBD", 3, 1, "x" BAD }, /* cut */
    { "\xF0\x9F\x98", 3, 0, BAD },  /* cut */
    { "\xE4\xBD\xE4\xBD\xA0", 5, 0, BAD "\xE4\xBD\xA0" },
    { "\xF0\x9F\x98z\xF0\x9F\x98\x80", 8, 0, BAD "z\xF0\x9F\x98\x80" },
    { "\xE4\xBD\xA0\xA0", 4, 3, "\xE4\xBD\xA0" BAD },
};

static void utf8_mistakes(void **state)
{
    (void)state;
    qkv_text *out = NULL;
    for (size_t i = 0; i < sizeof utf8_rows / sizeof *utf8_rows; i++) {
        if (qkv_utf8_valid(utf8_rows[i].text, utf8_rows[i].length) != utf8_rows[i].good)
            fail_msg("row %zu is checked wrongly", i);
        assert_int_equal(qkv_utf8_repair((qkv_str){ utf8_rows[i].text, utf8_rows[i].length }, &out), QKV_OK);
        assert_string_equal(out->data, utf8_rows[i].repaired);
        assert_int_equal(qkv_utf8_valid(out->data, out->length), out->length);
    }
    size_t bytes = 9;
    assert_int_equal(qkv_utf8_next("", 0, &bytes), -1);
    assert_int_equal(bytes, 0);
    qkv_free(out);
    qkv_buffer_free(NULL);
}

/* Pieces, each with its length, that a reader can only show together. */
static void pieces_of_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t begin, ends[10];
        int64_t n, wanted;
    } rows[] = {
        { "ab", 0, { 1, 2 }, 2, 1 },
        { "\xE7\x88\xB1!", 0, { 3, 4 }, 2, 1 },
        { "\xE7\x88\xB1!", 0, { 1, 2, 3, 4 }, 4, 3 },
        { "a\xE7\x88\xB1", 0, { 2, 4 }, 2, 2 },
        { "a\xE7\x88\xB1", 1, { 2, 3, 4 }, 3, 3 },
        { "\xE7\x88\xB1", 0, { 1, 2 }, 2, 1 },        /* never whole */
        { "\xE7\x88</s>", 0, { 1, 2, 6 }, 3, 1 },     /* what follows mends nothing */
        { "\xB1\xB1", 0, { 1, 2 }, 2, 1 },            /* a mistake from the start */
        { "a", 0, { 0, 0, 1 }, 3, 3 },                /* pieces without a byte go with the next */
        { "a", 0, { 0, 0, 0, 0, 0, 0, 0, 1 }, 8, 8 }, /* as many as are tried */
        { "a", 0, { 0, 0, 0, 0, 0, 0, 0, 0, 1 }, 9, 1 },
        { "", 0, { 0 }, 1, 1 },
        { "a", 0, { 1 }, 0, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (qkv_utf8_join(rows[i].text, rows[i].begin, rows[i].ends, rows[i].n) != rows[i].wanted) fail_msg("row %zu", i);
    assert_int_equal(qkv_utf8_join(NULL, 0, rows[0].ends, 1), 0);
    assert_int_equal(qkv_utf8_join("a", 0, NULL, 1), 0);
}

static void a_file_is_one_text(void **state)
{
    char name[] = "/tmp/qkv-text-XXXXXX";
    qkv_buffer text = { 0 };
    int fd = mkstemp(name);
    (void)state;
    assert_true(fd >= 0 && write(fd,
                                 "\xEF\xBB\xBF"
                                 "a\nb\r\n\n",
                                 9) == 9);
    assert_int_equal(qkv_text_read(name, 0, &text), QKV_OK);
    assert_string_equal(text.data, "a\nb");
    assert_int_equal(qkv_text_read(name, 8, &text), QKV_LIMIT);
    assert_int_equal(text.length, 0);
    assert_int_equal(pwrite(fd, "\x1F\x8B", 2, 0), 2);
    assert_int_equal(qkv_text_read(name, 0, &text), QKV_UNSUPPORTED);
    unlink(name);
    assert_int_equal(qkv_text_read(name, 0, &text), QKV_IO);
    qkv_buffer_free(&text);
    close(fd);
}

static void width_is_what_a_terminal_shows(void **state)
{
    static const struct {
        const char *text;
        int64_t width;
    } rows[] = { { "", 0 }, { "abc", 3 }, { "爱a", 3 }, { "e\xCC\x81", 1 }, { "\xFF\xE7\x88", 2 }, { "é한", 3 }, { "😀", 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(qkv_utf8_width(rows[i].text, strlen(rows[i].text)), rows[i].width);
    assert_int_equal(qkv_utf8_width("a\0b", 3), 3);
    assert_int_equal(qkv_utf8_width(NULL, 3), 0);
}

/* ---- the same ids as Hugging Face's ---- */

static qkv_tokenizer *load(const char *name)
{
    qkv_tokenizer *t = qkv_tokenizer_load(name);
    if (!t) fail_msg("%s", qkv_error());
    return t;
}

/* Spans lie side by side and the ids give the text back. */
static void check_round_trip(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encoding *ids)
{
    qkv_text *out = NULL;
    size_t at = 0;
    for (int64_t i = 0; i < ids->n; at = ids->spans[i++].end) assert_int_equal(ids->spans[i].begin, at);
    assert_int_equal(at, length);
    assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &out), QKV_OK);
    assert_int_equal(out->length, length);
    assert_memory_equal(out->data, text, length);
    qkv_free(out);
}

static void check_ids(const qkv_tokenizer *t, const char *text, size_t length, const qkv__json_value *wanted,
                      qkv_encoding **ids, const char *name)
{
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, length }, &(qkv_encode_opts){ .parse_special = 1 }, ids), QKV_OK);
    bool same = (size_t)(*ids)->n == qkv__json_size(wanted);
    for (size_t i = 0; same && i < (size_t)(*ids)->n; i++) same = (*ids)->ids[i] == qkv__json_int(qkv__json_at(wanted, i));
    if (!same) fail_msg("%s: other ids for \"%.*s\"", name, (int)length, text);
}

static const qkv__json_value *load_json(const char *name)
{
    const qkv__json_value *json = json_read(name);
    assert_non_null(json);
    return json;
}

/* Every line of text.txt, and the whole of it. */
static void compare(const qkv_tokenizer *t, const qkv__json_value *golden, const char *name, bool round_trip)
{
    size_t size, n = 0;
    char *text = get_file(GOLDEN("text.txt"), &size);
    const qkv__json_value *lines = qkv__json_get(golden, "lines");
    qkv_encoding *ids = NULL;
    for (const char *line = text; line < text + size; line = strchr(line, '\n') + 1, n++) {
        size_t length = (size_t)(strchr(line, '\n') - line);
        check_ids(t, line, length, qkv__json_at(lines, n), &ids, name);
        if (round_trip) check_round_trip(t, line, length, ids);
    }
    assert_int_equal(n, qkv__json_size(lines));
    assert_true(n > 20);
    check_ids(t, text, size, qkv__json_get(golden, "whole"), &ids, name);
    if (round_trip) check_round_trip(t, text, size, ids);
    qkv_free(ids);
    free(text);
}

static void add_token(const qkv__json_value **top, const char *content, int id)
{
    char place[32], token[256];
    snprintf(place, sizeof place, "added_tokens/%zu", qkv__json_size(qkv__json_get(*top, "added_tokens")));
    snprintf(token, sizeof token,
             "{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
             "\"special\":false}",
             id, content);
    json_edit(top, place, token);
}

/* The changes of golden/make_text.js. */
static void change(const qkv__json_value **top, const char *variant)
{
    int n = (int)qkv__json_size(qkv__json_get(qkv__json_get(*top, "model"), "vocab"));
    if (!strcmp(variant, "prefix_space")) json_edit(top, "pre_tokenizer/add_prefix_space", "true");
    if (!strcmp(variant, "whole_text")) json_edit(top, "pre_tokenizer/use_regex", "false");
    if (strcmp(variant, "added")) return;
    add_token(top, "小明", n);
    add_token(top, "mat", n + 1);
    add_token(top, "mats", n + 2);
    add_token(top, "two inside", n + 3);
}

static void same_ids_as_hugging_face(void **state)
{
    (void)state;
    static const char *const variants[] = { "plain", "prefix_space", "whole_text", "added" };
    const qkv__json_value *golden = load_json(GOLDEN("text_ids.json"));
    for (int i = 0; i < 4; i++) {
        const qkv__json_value *top = load_json(GOLDEN("text_tokenizer.json"));
        change(&top, variants[i]);
        assert_int_equal(json_write(top, path), 0);
        qkv_tokenizer *t = load(path);
        compare(t, qkv__json_get(golden, variants[i]), variants[i], i != 1);
        assert_int_equal(qkv_tokenizer_save(t, path), QKV_OK); /* and again from our own file */
        qkv_tokenizer_free(t);
        t = load(path);
        compare(t, qkv__json_get(golden, variants[i]), variants[i], i != 1);
        qkv_tokenizer_free(t);
        json_free(top);
    }
    json_free(golden);
}

static void same_ids_with_gpt2(void **state)
{
    (void)state;
    if (access(GPT2, R_OK)) {
        print_message("GPT-2's tokenizer.json is not here: not compared\n");
        skip();
    }
    qkv_tokenizer *t = load(GPT2);
    const qkv__json_value *golden = load_json(GOLDEN("text_gpt2_ids.json"));
    assert_int_equal(qkv_tokenizer_vocab_size(t), 50257);
    compare(t, qkv__json_get(golden, "plain"), "gpt2", true);
    json_free(golden);
    qkv_tokenizer_free(t);
}

/* Newer files have the merges as pairs. */
static void merges_as_pairs(void **state)
{
    (void)state;
    const qkv__json_value *top = load_json(GOLDEN("text_tokenizer.json")), *golden = load_json(GOLDEN("text_ids.json"));
    const qkv__json_value *merges = qkv__json_get(qkv__json_get(top, "model"), "merges");
    qkv__json_writer w = { 0 };
    qkv__json_open_array(&w, NULL);
    for (size_t i = 0; i < qkv__json_size(merges); i++) {
        const char *both = qkv__json_text(qkv__json_at(merges, i)), *space = strchr(both, ' ');
        qkv__json_open_array(&w, NULL);
        qkv__json_put_string(&w, NULL, both, (size_t)(space - both));
        qkv__json_put_text(&w, NULL, space + 1);
        qkv__json_close(&w);
    }
    qkv__json_close(&w);
    json_edit(&top, "model/merges", w.text);
    qkv__json_writer_free(&w);
    assert_int_equal(json_write(top, path), 0);
    qkv_tokenizer *t = load(path);
    compare(t, qkv__json_get(golden, "plain"), "pairs", true);
    qkv_tokenizer_free(t);
    json_free(top);
    json_free(golden);
}

static void prefix_space_spans(void **state)
{
    (void)state;
    const qkv__json_value *top = load_json(GOLDEN("text_tokenizer.json"));
    change(&top, "prefix_space");
    assert_int_equal(json_write(top, path), 0);
    qkv_tokenizer *t = load(path);
    qkv_encoding *ids = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("cat mat"), NULL, &ids), QKV_OK);
    assert_int_equal(ids->n, 2);
    assert_string_equal(qkv_tokenizer_token(t, ids->ids[0]), "\xC4\xA0"
                                                             "cat");
    assert_true(ids->spans[0].begin == 0 && ids->spans[0].end == 3 && ids->spans[1].begin == 3 && ids->spans[1].end == 7);
    qkv_free(ids);
    qkv_tokenizer_free(t);
    json_free(top);
}

/* ---- encoding and decoding ---- */

/* The definition: again and again the adjacent pair of the lowest rank, the leftmost of equal ones. */
static size_t merge_slowly(const qkv_tokenizer *t, int32_t *ids, size_t n)
{
    for (;;) {
        size_t best = n;
        uint32_t lowest = QKV__NO_RANK;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t rank = qkv__tokenizer_rank(t, ids[i], ids[i + 1]);
            if (rank < lowest) lowest = rank, best = i;
        }
        if (best == n) return n;
        ids[best] = t->merges[lowest].made;
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

static void words_are_merged_by_the_definition(void **state)
{
    (void)state;
    qkv_tokenizer *t = load(GOLDEN("text_tokenizer.json"));
    qkv_encoding *ids = NULL;
    for (int round = 0; round < 3000; round++) {
        char word[40];
        int32_t slow[40];
        size_t n = 1 + random_below(40);
        for (size_t i = 0; i < n; i++) word[i] = "abcehimnorstu"[random_below(13)];
        for (size_t i = 0; i < n; i++) slow[i] = t->byte_ids[(unsigned char)word[i]];
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ word, n }, NULL, &ids), QKV_OK);
        n = merge_slowly(t, slow, n);
        assert_int_equal(ids->n, n);
        assert_memory_equal(ids->ids, slow, n * sizeof *slow);
    }
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    qkv_tokenizer *t = load(GOLDEN("text_tokenizer.json"));
    qkv_encoding *ids = NULL;
    for (int round = 0; round < 2000; round++) {
        char text[200];
        size_t n = random_below(200);
        for (size_t i = 0; i < n; i++) text[i] = (char)random_below(round % 2 ? 256 : 128);
        bool valid = qkv_utf8_valid(text, n) == n;
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, n }, NULL, &ids), valid ? QKV_OK : QKV_FORMAT);
        if (!valid) assert_int_equal(ids->n, 0);
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, n },
                                              &(qkv_encode_opts){ .allow_invalid_utf8 = 1, .parse_special = 1 }, &ids),
                         QKV_OK);
        check_round_trip(t, text, n, ids);
    }
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("ab\xFF"), NULL, &ids), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "offset 2"));
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

/* A word as long as the text, and a gap as long as the text: neither may take memory or time out of proportion. */
static void a_megabyte_without_a_gap(void **state)
{
    (void)state;
    static const char *const parts[] = { "a", " ", "\xE3\x80\x80", "ha", "我", ".", "7", "\xFF" };
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES + 4);
    qkv_tokenizer *t = load(GOLDEN("text_tokenizer.json"));
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        size_t n = 0;
        qkv_encoding *ids = NULL;
        while (n < BYTES) n += (size_t)sprintf(text + n, "%s", parts[p]);
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, n }, &(qkv_encode_opts){ .allow_invalid_utf8 = 1 }, &ids),
                         QKV_OK);
        check_round_trip(t, text, n, ids);
        qkv_free(ids);
    }
    qkv_tokenizer_free(t);
    free(text);
}

static void special_tokens_in_text(void **state)
{
    (void)state;
    const char *text = "<s>cat</s>";
    qkv_tokenizer *t = load(GOLDEN("text_tokenizer.json"));
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, 10 }, NULL, &ids), QKV_OK);
    assert_true(ids->n > 3);
    for (int64_t i = 0; i < ids->n; i++) assert_false(qkv_tokenizer_is_special(t, ids->ids[i]));
    check_round_trip(t, text, 10, ids);
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, 10 }, &(qkv_encode_opts){ .parse_special = 1 }, &ids), QKV_OK);
    assert_true(ids->ids[0] == 1 && ids->ids[ids->n - 1] == 2);
    check_round_trip(t, text, 10, ids);
    assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, QKV_DECODE_SKIP_SPECIAL, &out), QKV_OK);
    assert_string_equal(out->data, "cat");
    qkv_free(out);
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

static void looking_up(void **state)
{
    (void)state;
    qkv_tokenizer *t = load(GOLDEN("text_tokenizer.json"));
    qkv_text *out = NULL;
    static const char *const specials[] = { "<pad>", "<s>", "</s>", "<unk>" };
    for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t); id++) {
        assert_int_equal(qkv_tokenizer_id(t, qkv_tokenizer_token(t, id)), id);
        assert_int_equal(qkv_tokenizer_is_special(t, id), id < 4);
        if (id < 4) assert_string_equal(qkv_tokenizer_token(t, id), specials[id]);
    }
    assert_null(qkv_tokenizer_token(t, -1));
    assert_null(qkv_tokenizer_token(t, qkv_tokenizer_vocab_size(t)));
    assert_int_equal(qkv_tokenizer_id(t, "no such token"), -1);
    assert_int_equal(qkv_tokenizer_is_special(t, -1), 0);
    assert_int_equal(qkv_tokenizer_decode(t, (int32_t[]){ 5, 700 }, 2, 0, &out), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "id 700 at place 1"));
    assert_int_equal(out->length, 0);
    assert_int_equal(qkv_tokenizer_decode(t, (int32_t[]){ -1 }, 1, 0, &out), QKV_USAGE);
    assert_int_equal(qkv_tokenizer_decode(t, NULL, 0, 0, &out), QKV_OK);
    assert_string_equal(out->data, "");
    qkv_free(out);
    qkv_tokenizer_free(t);
}

/* Every token is readable, and found by what is shown. */
static void shown_tokens(void **state)
{
    (void)state;
    static const char *const files[] = { "text_tokenizer.json", "text_words.json", "text_characters.json", "spm_bytes.model" };
    qkv_text *shown = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char file[512];
        snprintf(file, sizeof file, QKV_GOLDEN "/%s", files[i]);
        qkv_tokenizer *t = qkv_tokenizer_load(file);
        assert_non_null(t);
        for (int32_t id = 0; id < qkv_tokenizer_vocab_size(t); id++) {
            assert_int_equal(qkv_tokenizer_show(t, id, &shown), QKV_OK);
            if (qkv_tokenizer_find_shown(t, shown->data) != id) fail_msg("%s: token %d is shown as %s", file, id, shown->data);
            assert_int_equal(qkv_utf8_valid(shown->data, shown->length), shown->length);
            if (qkv_tokenizer_kind(t) == QKV_TOKEN_PUBLISHED) continue; /* as the file has it */
            if (strpbrk(shown->data, " \n\t") || !shown->length) fail_msg("%s: token %d: \"%s\"", file, id, shown->data);
        }
        assert_int_equal(qkv_tokenizer_show(t, qkv_tokenizer_vocab_size(t), &shown), QKV_USAGE);
        assert_int_equal(qkv_tokenizer_find_shown(t, "no such token"), -1);
        assert_int_equal(qkv_tokenizer_find_shown(t, "\xC4\xA0the"), -1); /* a spelling is not what is shown */
        qkv_tokenizer_free(t);
    }
    assert_int_equal(qkv_tokenizer_show(NULL, 0, &shown), QKV_USAGE);
    assert_int_equal(qkv_tokenizer_find_shown(NULL, "x"), -1);
    qkv_free(shown);
}

static void nothing_is_refused(void **state)
{
    (void)state;
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    assert_int_equal(qkv_tokenizer_encode(NULL, qkv_cstr("a"), NULL, &ids), QKV_USAGE);
    assert_int_equal(qkv_tokenizer_decode(NULL, NULL, 0, 0, &out), QKV_USAGE);
    assert_int_equal(qkv_tokenizer_save(NULL, path), QKV_USAGE);
    assert_null(qkv_tokenizer_load(NULL));
    assert_null(qkv_tokenizer_train(NULL, NULL));
    assert_int_equal(qkv_word_counts_add(NULL, (qkv_str){ "a", 1 }), QKV_USAGE);
    assert_int_equal(qkv__word_counts_add_file(NULL, path, 0, NULL), QKV_USAGE);
    assert_int_equal(qkv_tokenizer_vocab_size(NULL), 0);
    assert_int_equal(qkv__word_counts_size(NULL), 0);
    qkv_tokenizer_free(NULL);
    qkv_word_counts_free(NULL);
    qkv_free(NULL);
}

/* ---- threads ---- */

static void *encode_often(void *tokenizer)
{
    const char *text = "The cat sat on the mat, 我爱你。";
    qkv_encoding *ids = NULL;
    int64_t n = 0;
    bool same = true;
    for (int i = 0; i < 500; i++) {
        same = same && !qkv_tokenizer_encode(tokenizer, qkv_cstr(text), NULL, &ids) && (!i || ids->n == n);
        n = ids->n;
    }
    qkv_free(ids);
    return same ? tokenizer : NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    (void)state;
    qkv_tokenizer *t = load(GOLDEN("text_tokenizer.json"));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_often, t), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, t);
    }
    qkv_tokenizer_free(t);
}

/* ---- training ---- */

static const qkv_tokenizer_opts golden_opts = { .vocab_size = 700, .min_count = 1 };

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

/* The same words in another order, or from a compressed file, give the same bytes. */
static void training_is_deterministic(void **state)
{
    (void)state;
    size_t size;
    char *text = get_file(GOLDEN("text.txt"), &size);
    for (int way = 0; way < 4; way++) {
        qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
        qkv__lines_read read = { 0 };
        if (way == 0) {
            assert_int_equal(qkv__word_counts_add_file(w, GOLDEN("text.txt"), 1, &read), QKV_OK);
            assert_int_equal(read.lines, 27);
            assert_int_equal(read.repaired, 0);
        } else if (way == 1) { /* from the last line to the first */
            for (char *end = text + size - 1, *start; end > text; end = start - 1) {
                for (start = end; start > text && start[-1] != '\n';) start--;
                assert_int_equal(qkv_word_counts_add(w, (qkv_str){ start, (size_t)(end - start) }), QKV_OK);
                if (start == text) break;
            }
        } else { /* one gzip file, or two joined in the middle of a character */
            size_t half = way == 2 ? size : size / 2 + 1;
            unlink(path);
            for (size_t at = 0; at < size; at += half) {
                gzFile f = gzopen(path, "ab");
                unsigned piece = (unsigned)(size - at < half ? size - at : half);
                assert_int_equal(gzwrite(f, text + at, piece), piece);
                assert_int_equal(gzclose(f), Z_OK);
            }
            assert_int_equal(qkv__word_counts_add_file(w, path, 1, &read), QKV_OK);
            assert_int_equal(read.lines, 27);
        }
        qkv_tokenizer *t = qkv_tokenizer_train(w, &golden_opts);
        same_file(t, GOLDEN("text_tokenizer.json"));
        qkv_tokenizer_free(t);
        qkv_word_counts_free(w);
    }
    free(text);
}

/* Learning by the definition: count every pair anew for each merge. Tokens are spelled by letters here. */
typedef struct slow_learner {
    int words[40][12], lengths[40], counts[40], n_words;
    char spelling[600][16];
    int n;
} slow_learner;

static int64_t count_pair(const slow_learner *s, int left, int right)
{
    int64_t count = 0;
    for (int w = 0; w < s->n_words; w++)
        for (int i = 0; i + 1 < s->lengths[w]; i++)
            count += s->words[w][i] == left && s->words[w][i + 1] == right ? s->counts[w] : 0;
    return count;
}

static void merge_pair(slow_learner *s, int left, int right, int made)
{
    for (int w = 0; w < s->n_words; w++) {
        int n = 0, *word = s->words[w];
        for (int i = 0; i < s->lengths[w]; i++) {
            bool both = i + 1 < s->lengths[w] && word[i] == left && word[i + 1] == right;
            word[n++] = both ? made : word[i];
            i += both;
        }
        s->lengths[w] = n;
    }
}

static bool learn_one(slow_learner *s)
{
    int64_t most = 1;
    int left = -1, right = -1;
    for (int w = 0; w < s->n_words; w++)
        for (int i = 0; i + 1 < s->lengths[w]; i++) {
            int a = s->words[w][i], b = s->words[w][i + 1];
            int64_t count = count_pair(s, a, b);
            if (count > most || (count == most && left >= 0 && (a < left || (a == left && b < right)))) {
                most = count;
                left = a;
                right = b;
            }
        }
    if (left < 0) return false;
    char both[32];
    int made = 0;
    snprintf(both, sizeof both, "%s%s", s->spelling[left], s->spelling[right]);
    while (made < s->n && strcmp(s->spelling[made], both)) made++;
    if (made == s->n) strcpy(s->spelling[s->n++], both);
    merge_pair(s, left, right, made);
    return true;
}

static void training_by_the_definition(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        slow_learner s = { .n_words = 40 };
        qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
        qkv_tokenizer *none = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 256, .n_specials = -1 });
        for (s.n = 0; s.n < 256; s.n++) strcpy(s.spelling[s.n], qkv_tokenizer_token(none, s.n));
        for (int i = 0; i < s.n_words; i++) {
            char word[13];
            s.lengths[i] = 1 + (int)random_below(12);
            s.counts[i] = 1 + (int)random_below(4);
            for (int k = 0; k < s.lengths[i]; k++) word[k] = (char)('a' + random_below(round % 2 ? 2 : 4));
            for (int k = 0; k < s.lengths[i]; k++) s.words[i][k] = none->byte_ids[(unsigned char)word[k]];
            for (int k = 0; k < s.counts[i]; k++)
                assert_int_equal(qkv_word_counts_add(w, (qkv_str){ word, (size_t)s.lengths[i] }), QKV_OK);
        }
        while (s.n < 500 && learn_one(&s)) {}
        qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 500, .n_specials = -1 });
        assert_non_null(t);
        assert_int_equal(qkv_tokenizer_vocab_size(t), s.n);
        for (int32_t id = 0; id < s.n; id++) assert_string_equal(qkv_tokenizer_token(t, id), s.spelling[id]);
        qkv_tokenizer_free(t);
        qkv_tokenizer_free(none);
        qkv_word_counts_free(w);
    }
}

static void what_a_corpus_can_give(void **state)
{
    (void)state;
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_tokenizer *t = qkv_tokenizer_train(w, NULL);
    assert_int_equal(qkv_tokenizer_vocab_size(t), 260); /* nothing: special tokens and bytes */
    qkv_tokenizer_free(t);
    for (int i = 0; i < 3; i++) assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "<s> <s> abc", 11 }), QKV_OK);
    assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "once", 4 }), QKV_OK);
    t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 1000 });
    assert_true(qkv_tokenizer_vocab_size(t) > 260 && qkv_tokenizer_vocab_size(t) < 270);
    assert_true(qkv_tokenizer_id(t, "\xC4\xA0"
                                    "abc") > 0);
    assert_int_equal(qkv_tokenizer_id(t, "once"), -1);
    qkv_tokenizer_free(t);
    t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 1000, .min_count = 1 });
    assert_true(qkv_tokenizer_id(t, "once") > 0);
    qkv_tokenizer_free(t);
    t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 262 });
    assert_int_equal(qkv_tokenizer_vocab_size(t), 262);
    qkv_tokenizer_free(t);
    qkv_word_counts_free(w);
}

/* Letters that spell a special token stay apart, however often they occur. */
static void no_merge_spells_a_special_token(void **state)
{
    (void)state;
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_encoding *ids = NULL;
    for (int i = 0; i < 9; i++) assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "pad", 3 }), QKV_OK);
    qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .specials = (const char *[]){ "pad" }, .n_specials = 1 });
    assert_non_null(t);
    assert_int_equal(qkv_tokenizer_vocab_size(t), 258);
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("pad"), NULL, &ids), QKV_OK);
    assert_int_equal(ids->n, 2);
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("pad"), &(qkv_encode_opts){ .parse_special = 1 }, &ids), QKV_OK);
    assert_true(ids->n == 1 && ids->ids[0] == 0);
    qkv_free(ids);
    qkv_tokenizer_free(t);
    qkv_word_counts_free(w);
}

static void bad_training_options(void **state)
{
    (void)state;
    static const struct {
        int32_t size;
        int64_t min_count;
        const char *specials[3];
        int n_specials;
    } rows[] = {
        { 259, 0, { 0 }, 0 },          { 255, 0, { 0 }, -1 },           { 257, 0, { "<a>", "<b>" }, 2 }, { -1, 0, { 0 }, 0 },
        { 300, 0, { "" }, 1 },         { 300, 0, { "<a>", "<a>" }, 2 }, { 300, 0, { "\xFF" }, 1 },       { 300, 0, { "a" }, 1 },
        { 300, 0, { "\xC4\xA0" }, 1 }, { 300, -1, { 0 }, 0 },           { 300, 0, { NULL }, 1 },
    };
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const qkv_tokenizer_opts o = { .vocab_size = rows[i].size,
                                       .min_count = rows[i].min_count,
                                       .specials = rows[i].specials,
                                       .n_specials = rows[i].n_specials };
        if (qkv_tokenizer_train(w, &o)) fail_msg("row %zu is taken", i);
        assert_int_equal(qkv_error_status(), QKV_USAGE);
    }
    assert_null(qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .n_specials = 2 }));
    qkv_word_counts_free(w);
}

/* ---- the files of a corpus ---- */

static void lines_of_a_file(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        int lines, repaired, first, distinct;
    } rows[] = {
        { "", 0, 0, 0, 0, 0 },      { "\n", 1, 1, 0, 0, 0 },
        { "a", 1, 1, 0, 0, 1 },     { "a\nb", 3, 2, 0, 0, 2 },
        { "a\n\n", 3, 2, 0, 0, 1 }, { "a.b\n", 4, 1, 0, 0, 3 },
        { "\x1F", 1, 1, 0, 0, 1 },  { "a\n\xFF\nb\n\xC0", 7, 4, 2, 2, 3 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
        qkv__lines_read read;
        put_file(rows[i].text, rows[i].size);
        assert_int_equal(qkv__word_counts_add_file(w, path, 0, &read), QKV_OK);
        if (read.lines != rows[i].lines || read.repaired != rows[i].repaired || read.first_repaired != rows[i].first ||
            qkv__word_counts_size(w) != rows[i].distinct)
            fail_msg("row %zu: %d lines, %d repaired, %d words", i, (int)read.lines, (int)read.repaired,
                     (int)qkv__word_counts_size(w));
        qkv_word_counts_free(w);
    }
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    assert_int_equal(qkv__word_counts_add_file(w, path, 1, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "line 2: byte 1 is not UTF-8"));
    assert_int_equal(qkv_word_counts_add(w, (qkv_str){ "a\xFF", 2 }), QKV_FORMAT);
    assert_int_equal(qkv__word_counts_add_file(w, "/no/such/file", 0, NULL), QKV_IO);
    assert_int_equal(qkv__word_counts_add_file(w, folder, 0, NULL), QKV_IO);
    qkv_word_counts_free(w);
}

static qkv_status add_file(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_status status = w ? qkv__word_counts_add_file(w, path, 0, NULL) : qkv_error_status();
    qkv_word_counts_free(w);
    return status;
}

#define TWENTY_SIX "12345678901234567890123456"

/* Text, and what only looks a little like something else, is read; the rest is named with what to do. */
static const struct {
    const char *start;
    size_t size;
    const char *words; /* NULL: it is text */
    size_t mark;
} starts[] = {
    { PLACED("text\n"), NULL, 0 },
    { PLACED(""), NULL, 0 },
    { PLACED("\xEF\xBB\xBF"), NULL, 3 },
    { PLACED("\xEF\xBB\xBFtext"), NULL, 3 },
    { PLACED("\xEF\xBB"), NULL, 0 },
    { PLACED("BZh9 is how they start\n"), NULL, 0 },
    { PLACED("PK\n"), NULL, 0 },
    { PLACED("PAR\n"), NULL, 0 },
    { PLACED("{\\rt\n"), NULL, 0 },
    { PLACED("\xFD\x37zXZ\0\0\4"), "it is xz, not text in UTF-8: decompress it first, as in \"xz -dc FILE", 0 },
    { PLACED("BZh91AY&SY\x12"), "it is bzip2, not text in UTF-8: decompress it first, as in \"bzip2 -dc FILE", 0 },
    { PLACED("BZh1\x17\x72\x45\x38\x50\x90"), "it is bzip2", 0 },
    { PLACED("\x28\xB5\x2F\xFD\4"), "it is Zstandard, not text in UTF-8: decompress it first, as in \"zstd -dc", 0 },
    { PLACED("PK\3\4\x14"), "it is a ZIP archive", 0 },
    { PLACED("PK\3\4" TWENTY_SIX "[Content_Types].xmlPK\3\4" TWENTY_SIX "xl/workbook.xml"),
      "it is an Excel workbook (.xlsx), not text in UTF-8: save it as CSV, in UTF-8", 0 },
    { PLACED("PK\3\4" TWENTY_SIX "word/document.xml"),
      "it is a Word document (.docx), not text in UTF-8: save it as plain text", 0 },
    { PLACED("PK\3\4" TWENTY_SIX "mimetypeapplication/vnd.oasis.opendocument.spreadsheet"), "it is a spreadsheet (.ods)", 0 },
    { PLACED("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), "it is an old Office file (.xls, .doc), not text in UTF-8: save it as CSV or",
      0 },
    { PLACED("%PDF-1.7\n"), "it is PDF, not text in UTF-8: convert it to plain text first, as in \"pdftotext FILE OUT\"", 0 },
    { PLACED("PAR1\x15\4"), "it is Parquet, not text in UTF-8: convert it to JSON lines", 0 },
    { PLACED("{\\rtf1\\ansi"), "it is rich text (RTF), not text in UTF-8: save it as plain text", 0 },
    { PLACED("SQLite format 3\0"), "it is an SQLite database", 0 },
    { PLACED("a\0\n\0"),
      "it is UTF-16 without a byte order mark, not text in UTF-8: convert it first, as in \"iconv -f UTF-16LE ", 0 },
    { PLACED("\0a\0b\0\n"), "iconv -f UTF-16BE ", 0 },
    { PLACED("\xFF\xFE\0\0a\0\0\0"), "iconv -f UTF-32 ", 0 },
};

static void how_files_start(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (int zipped = 0; zipped < 2; zipped++) {
            size_t mark = 9;
            qkv__lines_read read;
            qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
            if (zipped) put_gzip(starts[i].start, starts[i].size);
            else put_file(starts[i].start, starts[i].size);
            qkv_status status = qkv__word_counts_add_file(w, path, 0, &read);
            if (status != (starts[i].words ? QKV_UNSUPPORTED : QKV_OK)) fail_msg("row %zu: %s", i, qkv_error());
            if (starts[i].words && (!strstr(qkv_error(), starts[i].words) || strncmp(qkv_error(), path, strlen(path))))
                fail_msg("row %zu: %s", i, qkv_error());
            if (!status) assert_int_equal(read.lines, starts[i].size > starts[i].mark);
            qkv_word_counts_free(w);
            assert_int_equal(qkv_text_start("x", starts[i].start, starts[i].size, &mark), status);
            if (!status) assert_int_equal(mark, starts[i].mark);
        }
    size_t mark;
    assert_int_equal(qkv_text_start("x", "\x1F\x8B\x08", 3, &mark), QKV_UNSUPPORTED);
    assert_int_equal(qkv_text_start(NULL, "x", 1, &mark), QKV_USAGE);
    assert_int_equal(qkv_text_start("x", NULL, 1, &mark), QKV_USAGE);
    assert_int_equal(qkv_text_start("x", "x", 1, NULL), QKV_USAGE);
}

/* Files are read; callers that look at the first bytes themselves have to convert it. */
static void how_utf_16_starts(void **state)
{
    (void)state;
    size_t mark;
    qkv__lines_read read;
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    assert_int_equal(qkv_text_start("x", "\xFF\xFE\n", 4, &mark), QKV_UNSUPPORTED);
    assert_non_null(
        strstr(qkv_error(), "x: it is UTF-16, not text in UTF-8: convert it first, as in \"iconv -f UTF-16 -t UTF-8 FILE"));
    put_file(PLACED("\xFE\xFF\0a\0\n\0b"));
    assert_int_equal(qkv__word_counts_add_file(w, path, 0, &read), QKV_OK);
    assert_int_equal(read.lines, 2);
    assert_int_equal(qkv__word_counts_size(w), 2);
    qkv_word_counts_free(w);
    qkv_buffer text = { 0 };
    assert_int_equal(qkv_text_read(path, 0, &text), QKV_OK);
    assert_string_equal(text.data, "a\nb");
    qkv_buffer_free(&text);
}

/* The name decides where the bytes do not. */
static void office_files_by_name(void **state)
{
    (void)state;
    size_t mark;
    assert_int_equal(qkv_text_start("a.XLSX", "PK\3\4", 4, &mark), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "a.XLSX: it is an Excel workbook (.xlsx)"));
    assert_int_equal(qkv_text_start("a.xls", "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8, &mark), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "a.xls: it is an Excel workbook (.xls)"));
}

/* More plain text than the buffers hold, from little compressed text. */
static void a_long_gzip_line(void **state)
{
    (void)state;
    enum { BYTES = 300000 };
    char *text = malloc(BYTES);
    memset(text, 'x', BYTES);
    text[BYTES - 1] = '\n';
    put_gzip(text, BYTES);
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv__lines_read read;
    assert_int_equal(qkv__word_counts_add_file(w, path, 0, &read), QKV_OK);
    assert_true(read.lines == 1 && qkv__word_counts_size(w) == 1);
    qkv_word_counts_free(w);
    free(text);
}

static void damaged_gzip(void **state)
{
    (void)state;
    gzFile f = gzopen(path, "wb");
    for (int i = 0; i < 50; i++) gzprintf(f, "line %d of a file\n", i * i);
    assert_int_equal(gzclose(f), Z_OK);
    size_t size;
    char *whole = get_file(path, &size);
    for (size_t cut = 2; cut < size; cut++) {
        put_file(whole, cut);
        if (add_file() != QKV_FORMAT) fail_msg("cut at %zu: %s", cut, qkv_error());
    }
    whole[size / 2] ^= 0x20;
    put_file(whole, size);
    assert_int_equal(add_file(), QKV_FORMAT);
    whole[size / 2] ^= 0x20;
    whole[size] = 'x'; /* get_file left a byte there */
    put_file(whole, size + 1);
    assert_int_equal(add_file(), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "damaged gzip file after line 50"));
    put_file(whole, size);
    assert_int_equal(add_file(), QKV_OK);
    free(whole);
}

/* ---- hostile tokenizer files ---- */

static qkv_status load_path(void)
{
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    qkv_tokenizer_free(t);
    return t ? QKV_OK : qkv_error_status();
}

/* The golden file with one value changed; json NULL removes the key. at is "", "model", .. or "added" for the first added
 * token. */
static const struct {
    const char *at, *key, *json;
    qkv_status status;
    const char *says;
} hostile_rows[] = {
    { "", "version", "\"2.0\"", QKV_UNSUPPORTED, "version" },
    { "", "version", NULL, QKV_OK, "" },
    { "", "truncation", "{}", QKV_OK, "" },
    { "", "padding", "{}", QKV_OK, "" },
    { "", "normalizer", "{\"type\":\"NFC\"}", QKV_OK, "" },
    { "", "normalizer", "{\"type\":\"Mtn\"}", QKV_UNSUPPORTED, "normalizer" },
    { "", "normalizer", NULL, QKV_OK, "" },
    { "", "surprise", "1", QKV_UNSUPPORTED, "surprise" },
    { "", "pre_tokenizer", NULL, QKV_OK, "" },
    { "", "pre_tokenizer", "null", QKV_OK, "" },
    { "", "pre_tokenizer", "{\"type\":\"Whitespace\"}", QKV_OK, "" },
    { "", "pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[]}", QKV_OK, "" },
    { "", "pre_tokenizer", "\"ByteLevel\"", QKV_UNSUPPORTED, "pre_tokenizer" },
    { "pre_tokenizer", "use_regex", NULL, QKV_OK, "" },
    { "pre_tokenizer", "use_regex", "1", QKV_UNSUPPORTED, "pre_tokenizer.use_regex" },
    { "pre_tokenizer", "surprise", "1", QKV_OK, "" },
    { "", "post_processor", "{\"type\":\"ByteLevel\",\"trim_offsets\":true}", QKV_OK, "" },
    { "", "post_processor", "{\"type\":\"TemplateProcessing\"}", QKV_FORMAT, "post_processor.single" },
    { "", "decoder", "null", QKV_OK, "" },
    { "", "decoder", "{\"type\":\"Metaspace\"}", QKV_FORMAT, "decoder.replacement" },
    { "", "model", "null", QKV_FORMAT, "model" },
    { "", "model", NULL, QKV_FORMAT, "model" },
    { "model", "type", "\"Unigram\"", QKV_FORMAT, "model.vocab: an array" },
    { "model", "type", "\"Wow\"", QKV_UNSUPPORTED, "model.type" },
    { "model", "type", NULL, QKV_OK, "" },
    { "model", "dropout", "0.1", QKV_UNSUPPORTED, "model.dropout" },
    { "model", "dropout", "0.0", QKV_OK, "" },
    { "model", "unk_token", "\"<unk>\"", QKV_OK, "" },
    { "model", "unk_token", "\"none\"", QKV_FORMAT, "model.unk_token" },
    { "model", "unk_token", "3", QKV_UNSUPPORTED, "model.unk_token" },
    { "model", "continuing_subword_prefix", "\"##\"", QKV_FORMAT, "model.merges[0]" }, /* none of them has it */
    { "model", "continuing_subword_prefix", "7", QKV_UNSUPPORTED, "model.continuing_subword_prefix" },
    { "model", "end_of_word_suffix", "\"</w>\"", QKV_OK, "" },
    { "model", "end_of_word_suffix", "\"12345678901234567890123456789\"", QKV_UNSUPPORTED, "28 bytes" },
    { "model", "end_of_word_suffix", "\"\"", QKV_OK, "" },
    { "model", "ignore_merges", "true", QKV_OK, "" },
    { "model", "ignore_merges", "1", QKV_UNSUPPORTED, "model.ignore_merges" },
    { "model", "ignore_merges", "false", QKV_OK, "" },
    { "model", "surprise", "1", QKV_OK, "" },
    { "model", "vocab", NULL, QKV_FORMAT, "model.vocab" },
    { "model", "vocab", "[]", QKV_FORMAT, "model.vocab" },
    { "model", "vocab", "{}", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", NULL, QKV_FORMAT, "model.merges" },
    { "model", "merges", "{}", QKV_FORMAT, "model.merges" },
    { "model", "merges", "[]", QKV_OK, "" },
    { "model", "merges", "[\"a\"]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[\"a b c\"]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[\"\"]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[\" \"]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[7]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[[\"a\"]]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[[\"a\",\"t\",\"x\"]]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[[\"a\",7]]", QKV_FORMAT, "model.merges[0]" },
    { "model", "merges", "[[\"a\",\"t\"],\"zq a\"]", QKV_FORMAT, "model.merges[1]: \"zq\"" },
    { "model", "merges", "[\"a such\"]", QKV_FORMAT, "\"such\" is not" },
    { "model", "merges", "[\"q q\"]", QKV_FORMAT, "\"qq\" is not" },
    { "model", "merges", "[\"a t\",\"a t\"]", QKV_FORMAT, "twice" },
    { "model", "merges", "[\"< s>\"]", QKV_FORMAT, "\"s>\" is not" },
    { "vocab", "s>", "700", QKV_OK, "" },
    { "vocab", "!", "-1", QKV_FORMAT, "\"!\" has the id -1" },
    { "vocab", "!", "700", QKV_OK, "" }, /* a gap */
    { "vocab", "!", "71135", QKV_OK, "" },
    { "vocab", "!", "71136", QKV_FORMAT, "\"!\" has the id 71136, but there are 700" },
    { "vocab", "!", "4294967300", QKV_FORMAT, "4294967300" },
    { "vocab", "!", "9223372036854775807", QKV_FORMAT, "9223372036854775807" },
    { "vocab", "!", "5", QKV_FORMAT, "both have the id 5" },
    { "vocab", "!", "4.0", QKV_FORMAT, "no whole number" },
    { "vocab", "!", "\"4\"", QKV_FORMAT, "no whole number" },
    { "vocab", "!", NULL, QKV_FORMAT, "model.merges[173]: \"!\" is not" },
    { "vocab", "<unk>", "700", QKV_FORMAT, "does not agree" },
    { "vocab", "<pad>", NULL, QKV_OK, "" }, /* it is among the added tokens too */
    { "", "added_tokens", NULL, QKV_OK, "" },
    { "", "added_tokens", "null", QKV_OK, "" },
    { "", "added_tokens", "{}", QKV_FORMAT, "added_tokens" },
    { "", "added_tokens", "[7]", QKV_FORMAT, "added_tokens[0]" },
    { "", "added_tokens", "[{\"id\":700,\"content\":\"x!\"},{\"id\":701,\"content\":\"x!\"}]", QKV_FORMAT, "twice" },
    { "", "added_tokens", "[{\"id\":700,\"content\":\"x!\"},{\"id\":700,\"content\":\"y!\"}]", QKV_FORMAT, "added_tokens[1]" },
    { "", "added_tokens", "[{\"id\":1,\"content\":\"<s>\"},{\"id\":1,\"content\":\"<s>\"}]", QKV_FORMAT, "added_tokens[1]" },
    { "", "added_tokens", "[{\"id\":701,\"content\":\"x!\"}]", QKV_UNSUPPORTED, "the id 701 is not the next one, 700" },
    { "", "added_tokens", "[{\"id\":20,\"content\":\"x!\"}]", QKV_FORMAT, "does not agree" },
    { "", "added_tokens", "[{\"id\":37,\"content\":\"A\",\"special\":true}]", QKV_FORMAT, "does not agree" },
    { "", "added_tokens", "[{\"id\":4,\"content\":\"!\",\"special\":true}]", QKV_UNSUPPORTED, "byte 0x21" },
    { "added", "id", NULL, QKV_FORMAT, "no whole number" },
    { "added", "id", "1", QKV_FORMAT, "added_tokens[0]" },
    { "added", "id", "99999999999", QKV_FORMAT, "99999999999" },
    { "added", "content", NULL, QKV_FORMAT, "added_tokens[0]" },
    { "added", "content", "\"\"", QKV_FORMAT, "added_tokens[0]" },
    { "added", "content", "7", QKV_FORMAT, "added_tokens[0]" },
    { "added", "lstrip", "true", QKV_OK, "" },
    { "added", "lstrip", "1", QKV_UNSUPPORTED, "added_tokens[0].lstrip" },
    { "added", "rstrip", "true", QKV_OK, "" },
    { "added", "rstrip", "1", QKV_UNSUPPORTED, "added_tokens[0].rstrip" },
    { "added", "single_word", "true", QKV_OK, "" },
    { "added", "single_word", "1", QKV_UNSUPPORTED, "added_tokens[0].single_word" },
    { "added", "special", "1", QKV_UNSUPPORTED, "added_tokens[0].special" },
    { "added", "surprise", "1", QKV_OK, "" },
};

static void hostile_values(void **state)
{
    (void)state;
    const qkv__memory table = { failing_alloc, failing_release };
    for (size_t i = 0; i < sizeof hostile_rows / sizeof *hostile_rows; i++) {
        const qkv__json_value *top = load_json(GOLDEN("text_tokenizer.json"));
        const char *at = hostile_rows[i].at;
        if (!strcmp(at, "vocab")) at = "model/vocab";
        if (!strcmp(at, "added")) at = "added_tokens/0";
        char place[128];
        snprintf(place, sizeof place, "%s%s%s", at, *at ? "/" : "", hostile_rows[i].key);
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

static void hostile_text(void **state)
{
    (void)state;
    static const char *const rows[] = { "",
                                        "{",
                                        "[]",
                                        "null",
                                        "7",
                                        "\"text\"",
                                        "not json",
                                        "{}",
                                        "{\"model\":{},\"model\":{}}",
                                        "{\"model\":{\"vocab\":{\"a\":0,\"a\":1}}}",
                                        "{\"model\":{\"vocab\":{\"\xFF\":0}}}",
                                        "{\"model\":{\"vocab\":{\"\\u0000\":0}}}",
                                        "{} x" };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_file(rows[i], strlen(rows[i]));
        if (load_path() != QKV_FORMAT) fail_msg("row %zu: %s", i, qkv_error());
    }
    size_t size;
    char *whole = get_file(GOLDEN("text_tokenizer.json"), &size);
    for (size_t cut = 0; cut < size - 2; cut += 97) {
        put_file(whole, cut);
        if (load_path() != QKV_FORMAT) fail_msg("cut at %zu: %s", cut, qkv_error());
    }
    free(whole);
    char deep[20000];
    memset(deep, '[', sizeof deep);
    put_file(deep, sizeof deep);
    assert_int_equal(load_path(), QKV_FORMAT);
    unlink(path);
    assert_int_equal(load_path(), QKV_IO);
}

/* A merge that makes a special token would let any text become one. */
static void merges_cannot_make_special_tokens(void **state)
{
    (void)state;
    const qkv__json_value *top = load_json(GOLDEN("text_tokenizer.json"));
    char place[64];
    snprintf(place, sizeof place, "model/merges/%zu", qkv__json_size(qkv__json_get(qkv__json_get(top, "model"), "merges")));
    json_edit(&top, "model/vocab/s>", "700");
    json_edit(&top, place, "\"< s>\"");
    assert_int_equal(json_write(top, path), 0);
    assert_int_equal(load_path(), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "makes the special token \"<s>\""));
    json_free(top);
}

/* ---- a failing machine ---- */

static qkv_status load_golden(void)
{
    qkv_tokenizer *t = qkv_tokenizer_load(GOLDEN("text_tokenizer.json"));
    qkv_tokenizer_free(t);
    return t ? QKV_OK : qkv_error_status();
}

static qkv_status use_golden(void)
{
    static const char text[] = "The cat <s> sat on the mat \xFF";
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    qkv_tokenizer *t = qkv_tokenizer_load(GOLDEN("text_tokenizer.json"));
    qkv_status status = t ? QKV_OK : qkv_error_status();
    if (!status)
        status = qkv_tokenizer_encode(t, (qkv_str){ text, sizeof text - 1 },
                                      &(qkv_encode_opts){ .parse_special = 1, .allow_invalid_utf8 = 1 }, &ids);
    if (!status) status = qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &out);
    if (!status) status = qkv_utf8_repair((qkv_str){ text, sizeof text - 1 }, &out);
    if (!status) status = qkv_tokenizer_save(t, path);
    qkv_free(ids);
    qkv_free(out);
    qkv_tokenizer_free(t);
    return status;
}

static qkv_status train_golden(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_status status = w ? qkv__word_counts_add_file(w, GOLDEN("text.txt"), 0, NULL) : qkv_error_status();
    qkv_tokenizer *t = status ? NULL : qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 300 });
    if (!status && !t) status = qkv_error_status();
    qkv_tokenizer_free(t);
    qkv_word_counts_free(w);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(load_golden) > 10);
    assert_true(each_allocation_fails(use_golden) > 20);
    assert_true(each_allocation_fails(train_golden) > 40);
    gzFile f = gzopen(path, "wb");
    gzprintf(f, "a few words\nand bad bytes \xFF\n");
    assert_int_equal(gzclose(f), Z_OK);
    assert_true(each_allocation_fails(add_file) > 10);
}

static void files_fail(void **state)
{
    (void)state;
    static const struct {
        qkv_status (*run)(void);
        int harmless; /* calls whose failure loses nothing: closing what was read, and opening and closing the folder */
    } rows[] = { { train_golden, 1 }, { load_golden, 1 }, { use_golden, 3 } };
    for (int r = 0; r < 3; r++) {
        int harmless = 0;
        for (long n = 0;; n++) {
            use_failing_files(n);
            qkv_status status = rows[r].run();
            bool failed = failing.failed;
            assert_int_equal(failing.open, 0);
            qkv__set_files(NULL);
            if (status != QKV_IO && status != QKV_OK) fail_msg("call %ld: %s", n, qkv_error());
            if (!failed) break;
            harmless += status == QKV_OK;
        }
        assert_int_equal(harmless, rows[r].harmless);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(utf8_mistakes),
        cmocka_unit_test(pieces_of_characters),
        cmocka_unit_test(width_is_what_a_terminal_shows),
        cmocka_unit_test(a_file_is_one_text),
        cmocka_unit_test(same_ids_as_hugging_face),
        cmocka_unit_test(same_ids_with_gpt2),
        cmocka_unit_test(merges_as_pairs),
        cmocka_unit_test(prefix_space_spans),
        cmocka_unit_test(words_are_merged_by_the_definition),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(a_megabyte_without_a_gap),
        cmocka_unit_test(special_tokens_in_text),
        cmocka_unit_test(looking_up),
        cmocka_unit_test(shown_tokens),
        cmocka_unit_test(nothing_is_refused),
        cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(training_is_deterministic),
        cmocka_unit_test(training_by_the_definition),
        cmocka_unit_test(what_a_corpus_can_give),
        cmocka_unit_test(no_merge_spells_a_special_token),
        cmocka_unit_test(bad_training_options),
        cmocka_unit_test(lines_of_a_file),
        cmocka_unit_test(how_files_start),
        cmocka_unit_test(how_utf_16_starts),
        cmocka_unit_test(office_files_by_name),
        cmocka_unit_test(a_long_gzip_line),
        cmocka_unit_test(damaged_gzip),
        cmocka_unit_test(hostile_values),
        cmocka_unit_test(hostile_text),
        cmocka_unit_test(merges_cannot_make_special_tokens),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(files_fail),
    };
    return cmocka_run_group_tests_name("text", tests, make_folder, remove_folder);
}
