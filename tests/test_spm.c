/* test_spm.c: SentencePiece's models and OPUS-MT's folders against SentencePiece itself, and published tokenizers of all kinds
 * where they are; no file is trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"
#include "megabyte.h"
#include "lcg.h"

#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <string.h>

#define GOLDEN(name) QKV_GOLDEN "/" name
#define PUBLISHED QKV_GOLDEN "/../../../shared/data/"

static char folder[64], path[96];

static int begin(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-spm-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/some.model", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static const char *in_folder(const char *name)
{
    static char place[160];
    snprintf(place, sizeof place, "%s/%s", folder, name);
    return place;
}

static void put_file(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text) { put_file(in_folder(name), text, strlen(text)); }

/* A whole file with a NUL after it; free() it. */
static char *get_file(const char *name, size_t *size)
{
    enum { MOST = 1 << 20 };
    char *bytes = malloc(MOST);
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    *size = fread(bytes, 1, MOST - 1, f);
    fclose(f);
    assert_true(*size < MOST - 1);
    bytes[*size] = '\0';
    return bytes;
}

static void copy_file(const char *from, const char *to)
{
    size_t size;
    char *bytes = get_file(from, &size);
    put_file(to, bytes, size);
    free(bytes);
}

static qkv_tokenizer *load(const char *name)
{
    qkv_tokenizer *t = qkv_tokenizer_load(name);
    if (!t) fail_msg("%s", qkv_error());
    return t;
}

static qkv_tokenizer *load_golden(const char *name)
{
    char file[512];
    snprintf(file, sizeof file, GOLDEN("spm_%s.model"), name);
    return load(file);
}

/* ---- the same as SentencePiece ---- */

/* Ids with a space between them, as its tools print them. */
static char *print_ids(const qkv_encoding *ids)
{
    char *text = malloc(12 * (size_t)ids->n + 1), *at = text;
    *at = '\0';
    for (int64_t i = 0; i < ids->n; i++) at += sprintf(at, i ? " %d" : "%d", ids->ids[i]);
    return text;
}

/* Spans go forward, inside the text. */
static void check_spans(const qkv_encoding *ids, size_t length)
{
    size_t last = 0;
    for (int64_t i = 0; i < ids->n; last = ids->spans[i++].begin) {
        assert_true(ids->spans[i].begin >= last && ids->spans[i].end >= ids->spans[i].begin);
        assert_true(ids->spans[i].end <= length);
    }
}

static void check_line(const qkv_tokenizer *t, const char *name, const char *line, size_t length, const char *wanted)
{
    qkv_encoding *ids = NULL;
    qkv_text *text = NULL;
    const char *bar = strchr(wanted, '|'), *over = strchr(wanted, '\n');
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ line, length }, NULL, &ids), QKV_OK);
    char *printed = print_ids(ids);
    if (strlen(printed) != (size_t)(bar - wanted) || memcmp(printed, wanted, strlen(printed)))
        fail_msg("%s: \"%.*s\" gives %s, not %.*s", name, (int)length, line, printed, (int)(bar - wanted), wanted);
    check_spans(ids, length);
    assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &text), QKV_OK);
    if (text->length != (size_t)(over - bar - 1) || memcmp(text->data, bar + 1, text->length))
        fail_msg("%s: \"%.*s\" is decoded as \"%s\"", name, (int)length, line, text->data);
    free(printed);
    qkv_free(ids);
    qkv_free(text);
}

/* After "# name", "ids|text" for each line of spm_text.txt. */
static void same_as_sentencepiece(void **state)
{
    (void)state;
    size_t size, lines_size;
    char *golden = get_file(GOLDEN("spm_ids.txt"), &size), *lines = get_file(GOLDEN("spm_text.txt"), &lines_size);
    int models = 0;
    for (char *at = golden; *at; models++) {
        char name[32];
        assert_int_equal(sscanf(at, "# %31s", name), 1);
        qkv_tokenizer *t = load_golden(name);
        at = strchr(at, '\n') + 1;
        for (const char *line = lines; *line; line = strchr(line, '\n') + 1, at = strchr(at, '\n') + 1)
            check_line(t, name, line, (size_t)(strchr(line, '\n') - line), at);
        qkv_tokenizer_free(t);
    }
    assert_int_equal(models, 7);
    free(golden);
    free(lines);
}

static void where_tokens_come_from(void **state)
{
    (void)state;
    static const char text[] = "the \xEF\xAC\x81ne cat";
    qkv_tokenizer *t = load_golden("unigram");
    qkv_encoding *ids = NULL;
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
    assert_true(ids->n > 3 && ids->spans[0].begin == 0 && ids->spans[ids->n - 1].end == strlen(text));
    bool ligature = false;
    for (int64_t i = 0; i < ids->n; i++) ligature |= ids->spans[i].begin <= 4 && ids->spans[i].end >= 7;
    assert_true(ligature);
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

static void special_tokens(void **state)
{
    (void)state;
    static const char text[] = "<s>the</s><ctl>";
    qkv_tokenizer *t = load_golden("suffix");
    qkv_encoding *ids = NULL;
    int32_t first = qkv_tokenizer_id(t, "<s>"), last = qkv_tokenizer_id(t, "<ctl>");
    assert_true(first >= 0 && last >= 0 && qkv_tokenizer_is_special(t, last));
    assert_false(qkv_tokenizer_is_special(t, qkv_tokenizer_id(t, "<tag>")));
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
    for (int64_t i = 0; i < ids->n; i++) assert_true(ids->ids[i] != first && ids->ids[i] != last);
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), &(qkv_encode_opts){ .parse_special = 1 }, &ids), QKV_OK);
    assert_true(ids->ids[0] == first && ids->ids[ids->n - 1] == last);
    assert_true(ids->spans[0].begin == 0 && ids->spans[0].end == 3);
    assert_int_equal(qkv_tokenizer_save(t, path), QKV_UNSUPPORTED);
    qkv_free(ids);
    qkv_tokenizer_free(t);
}

/* tokenizer_config.json beside it says what goes around a text. */
static void frames(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        int first, last;
    } rows[] = { { "{}", 0, 0 },
                 { "{\"tokenizer_class\": \"LlamaTokenizer\"}", 1, 0 },
                 { "{\"tokenizer_class\": \"T5Tokenizer\"}", 0, 1 },
                 { "{\"add_bos_token\": true, \"add_eos_token\": true}", 1, 1 },
                 { "{\"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": false}", 0, 0 } };
    qkv_encoding *bare = NULL, *framed = NULL;
    copy_file(GOLDEN("spm_unigram.model"), path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_text("tokenizer_config.json", rows[i].config);
        qkv_tokenizer *t = load(path);
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("the cat"), NULL, &bare), QKV_OK);
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr("the cat"), &(qkv_encode_opts){ .add_special = 1 }, &framed), QKV_OK);
        assert_int_equal(framed->n, bare->n + rows[i].first + rows[i].last);
        if (rows[i].first) assert_int_equal(framed->ids[0], qkv_tokenizer_id(t, "<s>"));
        if (rows[i].last) assert_int_equal(framed->ids[framed->n - 1], qkv_tokenizer_id(t, "</s>"));
        qkv_tokenizer_free(t);
    }
    put_text("tokenizer_config.json", "[]");
    assert_null(qkv_tokenizer_load(path));
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    unlink(in_folder("tokenizer_config.json"));
    qkv_free(bare);
    qkv_free(framed);
}

/* ---- OPUS-MT ---- */

/* The pieces of a model that are not special, numbered from 3 on backwards, every 7th left out; <unk> is 1, </s> 0, <pad> 2. */
static void put_vocabulary(const qkv_tokenizer *pieces)
{
    FILE *f = fopen(in_folder("vocab.json"), "wb");
    fprintf(f, "{\"</s>\": 0, \"<unk>\": 1, \"<pad>\": 2");
    int n = 3;
    for (int32_t i = qkv_tokenizer_vocab_size(pieces) - 1; i >= 0; i--) {
        const char *piece = qkv_tokenizer_token(pieces, i);
        if (qkv_tokenizer_is_special(pieces, i) || i % 7 == 0 || strpbrk(piece, "\"\\")) continue;
        fprintf(f, ", \"%s\": %d", piece, n++);
    }
    fprintf(f, ", \">>de<<\": %d, \"\xF0\x9F\x90\xA2\xF0\x9F\x90\xA2\": %d}", n, n + 1);
    fclose(f);
}

static void opus_folder(void **state)
{
    (void)state;
    static const char text[] = "the cat sat on \xF0\x9F\x90\xA2\xF0\x9F\x90\xA2 \xF0\x9F\x90\xA2 mats";
    qkv_tokenizer *pieces = load_golden("unigram"), *source, *target;
    qkv_encoding *cut = NULL, *ids = NULL;
    qkv_text *out = NULL;
    unlink(path);
    copy_file(GOLDEN("spm_unigram.model"), in_folder("source.spm"));
    copy_file(GOLDEN("spm_suffix.model"), in_folder("target.spm"));
    put_vocabulary(pieces);
    if (qkv_tokenizers_load(folder, &source, &target)) fail_msg("%s", qkv_error());
    assert_true(source && target);
    assert_int_equal(qkv_tokenizer_encode(pieces, qkv_cstr(text), NULL, &cut), QKV_OK);
    assert_int_equal(qkv_tokenizer_encode(source, qkv_cstr(text), &(qkv_encode_opts){ .add_special = 1 }, &ids), QKV_OK);
    assert_int_equal(ids->n, cut->n + 1);
    assert_int_equal(ids->ids[cut->n], 0);
    int known = 0, unknown = 0;
    for (int64_t i = 0; i < cut->n; i++) {
        int32_t wanted = qkv_tokenizer_id(source, qkv_tokenizer_token(pieces, cut->ids[i]));
        bool is_turtles = cut->spans[i].begin == 15; /* two of them are one unknown piece, which the vocabulary knows */
        if (is_turtles) wanted = qkv_tokenizer_id(source, "\xF0\x9F\x90\xA2\xF0\x9F\x90\xA2");
        assert_int_equal(ids->ids[i], wanted < 0 ? 1 : wanted);
        assert_true(ids->spans[i].begin == cut->spans[i].begin && ids->spans[i].end == cut->spans[i].end);
        known += ids->ids[i] != 1;
        unknown += ids->ids[i] == 1;
    }
    assert_true(known > 4 && unknown > 0);
    assert_int_equal(qkv_tokenizer_encode(source, qkv_cstr(">>de<< the cat"), NULL, &ids), QKV_OK);
    assert_int_equal(ids->ids[0], qkv_tokenizer_id(source, ">>de<<"));
    assert_int_equal(qkv_tokenizer_decode(source, ids->ids + 1, ids->n - 1, QKV_DECODE_SKIP_SPECIAL, &out), QKV_OK);
    assert_int_equal(qkv_tokenizer_save(source, path), QKV_UNSUPPORTED);
    qkv_tokenizer_free(source);
    qkv_tokenizer_free(target);
    qkv_tokenizer_free(pieces);
    qkv_free(cut);
    qkv_free(ids);
    qkv_free(out);
}

static qkv_status load_folder(void)
{
    qkv_tokenizer *source, *target;
    qkv_encoding *ids = NULL;
    qkv_status status = qkv_tokenizers_load(folder, &source, &target);
    if (!status)
        status = qkv_tokenizer_encode(source, qkv_cstr("the \xF0\x9F\x90\xA2"), &(qkv_encode_opts){ .add_special = 1 }, &ids);
    qkv_free(ids);
    qkv_tokenizer_free(source);
    qkv_tokenizer_free(target);
    return status;
}

static void hostile_vocabularies(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        qkv_status status;
        const char *says;
    } rows[] = {
        { "{", QKV_FORMAT, "not JSON" },
        { "[]", QKV_FORMAT, "no object" },
        { "{}", QKV_FORMAT, "<unk>" },
        { "{\"<unk>\": 1}", QKV_FORMAT, "no id below 1" },
        { "{\"<unk>\": -1}", QKV_FORMAT, "no id below 1" },
        { "{\"<unk>\": \"0\"}", QKV_FORMAT, "no id below 1" },
        { "{\"<unk>\": 0, \"a\": 0}", QKV_FORMAT, "both have the id 0" },
        { "{\"<unk>\": 0, \"<unk>\": 1}", QKV_FORMAT, "not JSON" },
        { "{\"<unk>\": 0}", QKV_OK, "" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put_text("vocab.json", rows[i].json);
        if (load_folder() != rows[i].status || (rows[i].status && !strstr(qkv_error(), rows[i].says)))
            fail_msg("row %zu: %s", i, qkv_error());
    }
    qkv_tokenizer *pieces = load_golden("unigram");
    put_vocabulary(pieces);
    qkv_tokenizer_free(pieces);
}

/* ---- hostile models ---- */

static qkv_status load_path(void)
{
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    qkv_tokenizer_free(t);
    return t ? QKV_OK : qkv_error_status();
}

/* A field with a length; what it holds has less than 128 bytes. */
static size_t put_field(char *out, int number, const char *bytes, size_t size)
{
    out[0] = (char)(number << 3 | 2);
    out[1] = (char)size;
    memcpy(out + 2, bytes, size);
    return size + 2;
}

static size_t put_piece(char *out, const char *text, int type)
{
    char piece[64];
    size_t n = put_field(piece, 1, text, strlen(text));
    memcpy(piece + n, "\x15\x00\x00\x80\xBF\x18", 6); /* a score of -1, and the type */
    piece[n + 6] = (char)type;
    return put_field(out, 1, piece, n + 7);
}

/* <unk> and "a", and what the row adds. */
static const struct {
    const char *bytes;
    size_t size;
    qkv_status status;
    const char *says;
} model_rows[] = {
    { "", 0, QKV_OK, "" },
    { "\x0A", 1, QKV_FORMAT, "does not end" },
    { "\x0A\x05xx", 4, QKV_FORMAT, "longer than the file" },
    { "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11, QKV_FORMAT, "longer than the file" },
    { "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 12, QKV_FORMAT, "does not end" },
    { "\x0B", 1, QKV_FORMAT, "unknown kind" },
    { "\x02\x00", 2, QKV_FORMAT, "without a number" },
    { "\x08\x01", 2, QKV_FORMAT, "no message" },
    { "\x3D\x01\x02", 3, QKV_FORMAT, "cut off" },
    { "\x3A\x03xyz", 5, QKV_OK, "" }, /* a field of a later version */
    { "\x0A\x00", 2, QKV_FORMAT, "piece 2: it is empty" },
    { "\x0A\x03\x0A\x01\xFF", 5, QKV_FORMAT, "piece 2: it is not UTF-8" },
    { "\x0A\x03\x0A\x01\x00", 5, QKV_FORMAT, "piece 2: it is not UTF-8, or has a NUL" },
    { "\x0A\x03\x0A\x01"
      "a",
      5, QKV_FORMAT, "\"a\" is there twice" },
    { "\x0A\x08\x0A\x01"
      "b\x15\x00\x00\xC0\x7F",
      10, QKV_FORMAT, "no finite number" },
    { "\x0A\x05\x0A\x01"
      "b\x18\x09",
      7, QKV_FORMAT, "its type is unknown" },
    { "\x0A\x05\x0A\x01"
      "b\x18\x02",
      7, QKV_FORMAT, "both for what is unknown" },
    { "\x12\x02\x18\x02", 4, QKV_OK, "" }, /* BPE */
    { "\x12\x02\x18\x03", 4, QKV_OK, "" }, /* words */
    { "\x12\x02\x18\x05", 4, QKV_UNSUPPORTED, "model_type" },
    { "\x12\x03\x98\x02\x01", 5, QKV_FORMAT, "no piece <0x00>" }, /* byte_fallback */
    { "\x1A\x03\x12\x01x", 5, QKV_FORMAT, "precompiled_charsmap" },
    { "\x1A\x06\x12\x04\xFF\xFF\xFF\x7F", 8, QKV_FORMAT, "precompiled_charsmap" },
    { "\x2A\x03\x12\x01x", 5, QKV_FORMAT, "denormalizer_spec.precompiled_charsmap" },
};

static void hostile_models(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof model_rows / sizeof *model_rows; i++) {
        char model[256];
        size_t n = put_piece(model, "<unk>", 2);
        n += put_piece(model + n, "a", 1);
        memcpy(model + n, model_rows[i].bytes, model_rows[i].size);
        put_file(path, model, n + model_rows[i].size);
        qkv_status status = load_path();
        if (status != model_rows[i].status ||
            (status && (!strstr(qkv_error(), model_rows[i].says) || !strstr(qkv_error(), path))))
            fail_msg("row %zu: status %d: %s", i, (int)status, qkv_error());
    }
    char model[64];
    put_file(path, "", 0);
    assert_int_equal(load_path(), QKV_FORMAT);
    put_file(path, model, put_piece(model, "a", 1));
    assert_int_equal(load_path(), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "no piece is for what is unknown"));
}

/* Whatever a file says, text goes through it or it is refused. */
static void try_model(void)
{
    static const char text[] = " the cats \xEF\xAC\x81 e\xCC\x81 \xE6\x88\x91 \xF0\x9F\x98\x80<tag>";
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    if (t) {
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
        check_spans(ids, strlen(text));
        assert_int_equal(qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &out), QKV_OK);
    } else if (qkv_error_status() != QKV_FORMAT && qkv_error_status() != QKV_UNSUPPORTED) fail_msg("%s", qkv_error());
    qkv_free(ids);
    qkv_free(out);
    qkv_tokenizer_free(t);
}

static void broken_models(void **state)
{
    (void)state;
    static const char *const names[] = { GOLDEN("spm_unigram.model"), GOLDEN("spm_bytes.model"), GOLDEN("spm_suffix.model") };
    for (int k = 0; k < 3; k++) {
        size_t size;
        char *whole = get_file(names[k], &size), *changed = malloc(size);
        for (size_t cut = 0; cut < size; cut += 1 + size / 150) {
            put_file(path, whole, cut);
            try_model();
        }
        for (int round = 0; round < 400; round++) {
            memcpy(changed, whole, size);
            for (int i = 0; i <= round % 4; i++) {
                lcg();
                size_t at = (lcg_state >> 4) % size;
                if (round % 2) at = size - 1 - at % (size / 4); /* where the map and the options are */
                lcg();
                changed[at] = (char)(lcg_state >> 16);
            }
            put_file(path, changed, size);
            try_model();
        }
        free(whole);
        free(changed);
    }
}

/* ---- published tokenizers ---- */

static const struct {
    const char *name, *path;
    bool is_folder, target;
    qkv_encode_opts opts;
} published[] = {
    { "bert", PUBLISHED "tokenizers/bert/bert-base-uncased-vocab.txt", .opts = { .parse_special = 1, .add_special = 1 } },
    { "gpt2", PUBLISHED "tokenizers/gpt2/tokenizer.json", .opts = { .parse_special = 1, .add_special = 1 } },
    { "gpt2", PUBLISHED "tokenizers/gpt2/gpt2_vocab.json", .opts = { .parse_special = 1, .add_special = 1 } },
    { "opus-source", PUBLISHED "tokenizers/opus-mt-fr-en", .is_folder = true, .opts = { .add_special = 1 } },
    { "opus-target", PUBLISHED "tokenizers/opus-mt-fr-en", .is_folder = true, .target = true, .opts = { .add_special = 1 } },
    { "test_model", PUBLISHED "tokenizers/spm/test_model.model", .opts = { 0 } },
    { "test_ja_model", PUBLISHED "tokenizers/spm/test_ja_model.model", .opts = { 0 } },
    { "test_sentencepiece_with_bytefallback", PUBLISHED "tokenizers/spm/test_sentencepiece_with_bytefallback.model",
      .opts = { 0 } },
    { "tok512", PUBLISHED "stories260K/tok512.model", .opts = { 0 } },
};

static uint32_t digest(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* Which column of the table a tokenizer has. */
static int column_of(const char *header, const char *name)
{
    int column = 0;
    size_t n = strlen(name);
    for (const char *at = header; strncmp(at, name, n) || (at[n] != ' ' && at[n] != '\n'); at = strchr(at, ' ') + 1) column++;
    return column;
}

static qkv_tokenizer *load_published(size_t i)
{
    qkv_tokenizer *source, *target;
    if (!published[i].is_folder) return load(published[i].path);
    if (qkv_tokenizers_load(published[i].path, &source, &target)) fail_msg("%s", qkv_error());
    qkv_tokenizer_free(published[i].target ? source : target);
    return published[i].target ? target : source;
}

static void compare_published(size_t i, const char *lines, size_t size, const char *table)
{
    qkv_tokenizer *t = load_published(i);
    qkv_encode_opts opts = published[i].opts;
    qkv_encoding *ids = NULL;
    qkv_text *repaired = NULL;
    int column = column_of(table, published[i].name), number = 0;
    for (const char *line = lines, *over; line < lines + size; line = over + 1) {
        over = memchr(line, '\n', (size_t)(lines + size - line));
        table = strchr(table, '\n') + 1;
        number++;
        assert_int_equal(qkv_utf8_repair((qkv_str){ line, (size_t)(over - line) }, &repaired), QKV_OK);
        assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ repaired->data, repaired->length }, &opts, &ids), QKV_OK);
        char *printed = print_ids(ids);
        if (digest(printed) != (uint32_t)strtoul(table + 9 * column, NULL, 16))
            fail_msg("%s: line %d: other ids for \"%s\": %s", published[i].path, number, repaired->data, printed);
        free(printed);
    }
    assert_true(number > 1000);
    qkv_free(ids);
    qkv_free(repaired);
    qkv_tokenizer_free(t);
}

static void same_as_published(void **state)
{
    (void)state;
    size_t size, table_size;
    char *lines = get_file(GOLDEN("lines.txt"), &size), *table = get_file(GOLDEN("lines_ids.txt"), &table_size);
    int compared = 0;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        if (access(published[i].path, R_OK)) {
            print_message("%s is not here: not compared\n", published[i].path);
            continue;
        }
        compare_published(i, lines, size, table);
        compared++;
    }
    free(lines);
    free(table);
    if (!compared) skip();
}

/* ---- long texts and a failing machine ---- */

/* A second is what is promised; ten times that keeps slow machines out of it. */
static void a_megabyte_of_one_letter(void **state)
{
    (void)state;
    static const char *const names[] = { "unigram", "bytes", "suffix", "plain" }, *const parts[] = { "a", " ", "\xE6\x88\x91",
                                                                                                     "\xF0\x9F\x98\x80" };
    for (int k = 0; k < 4; k++) {
        qkv_tokenizer *t = load_golden(names[k]);
        for (int p = 0; p < 4; p++) encode_megabyte(names[k], t, parts[p]);
        qkv_tokenizer_free(t);
    }
}

static qkv_status use_path(void)
{
    static const char text[] = "the <tag>cats \xEF\xAC\x81 \xF0\x9F\x98\x80";
    qkv_encoding *ids = NULL;
    qkv_text *out = NULL;
    qkv_tokenizer *t = qkv_tokenizer_load(path);
    qkv_status status = t ? QKV_OK : qkv_error_status();
    if (!status) status = qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids);
    if (!status) status = qkv_tokenizer_decode(t, ids->ids, ids->n, 0, &out);
    qkv_free(ids);
    qkv_free(out);
    qkv_tokenizer_free(t);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    static const char *const names[] = { GOLDEN("spm_unigram.model"), GOLDEN("spm_bytes.model"), GOLDEN("spm_suffix.model") };
    for (int k = 0; k < 3; k++) {
        copy_file(names[k], path);
        assert_true(each_allocation_fails(use_path) > 20);
    }
    assert_true(each_allocation_fails(load_folder) > 40);
}

static void files_fail(void **state)
{
    (void)state;
    int harmless = 0;
    for (long n = 0;; n++) {
        use_failing_files(n);
        qkv_status status = load_folder();
        bool failed = failing.failed;
        assert_int_equal(failing.open, 0);
        qkv__set_files(NULL);
        if (!failed) break;
        harmless += status == QKV_OK;
    }
    assert_true(harmless > 0); /* closing what was read */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_sentencepiece), cmocka_unit_test(where_tokens_come_from),
        cmocka_unit_test(special_tokens),        cmocka_unit_test(frames),
        cmocka_unit_test(opus_folder),           cmocka_unit_test(hostile_vocabularies),
        cmocka_unit_test(hostile_models),        cmocka_unit_test(broken_models),
        cmocka_unit_test(same_as_published),     cmocka_unit_test(a_megabyte_of_one_letter),
        cmocka_unit_test(memory_runs_out),       cmocka_unit_test(files_fail),
    };
    return cmocka_run_group_tests_name("spm", tests, begin, end);
}
