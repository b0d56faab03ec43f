/* test_corpus.c: pairs of lines in files, and ids that lie in a file. */
#include "data/corpus.h"
#include "token/word_counts.h"

#include <qkv/data.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "failing.h"

#include "data/pairs.h"

enum { START = 1, END = 2, PAD = 0 };

static const qkv_batch_opts in_order = { .max_tokens = 1, .sequential = 1, .start = START, .end = END, .pad = PAD };

/* ---- files ---- */

static char folder[64], first_path[96], second_path[96];
static qkv_tokenizer *bytes_only; /* one token a byte */

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-corpus-XXXXXX");
    if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1)) return -1;
    snprintf(first_path, sizeof first_path, "%s/first", folder);
    snprintf(second_path, sizeof second_path, "%s/second", folder);
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    bytes_only = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 260 });
    qkv_word_counts_free(w);
    return bytes_only ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    qkv_tokenizer_free(bytes_only);
    unlink(first_path);
    unlink(second_path);
    return rmdir(folder); /* and nothing else was left in it */
}

static void write_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void write_gzip(const char *path, const char *bytes, size_t size)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(f), Z_OK);
}

/* ---- what a corpus gives ---- */

/* The pairs as text, "source|target\n" each. */
static void read_back(const qkv_dataset *p, qkv_buffer *out)
{
    static char text[1 << 16];
    size_t n = 0;
    qkv_loader *e = qkv_loader_new(p, &in_order, 0);
    qkv_batch *b = NULL;
    qkv_text *side = NULL;
    assert_int_equal(qkv_loader_size(e), qkv_dataset_size(p)); /* one pair each */
    for (int64_t i = 0; i < qkv_loader_size(e); i++) {
        assert_int_equal(qkv_loader_batch(e, i, &b), QKV_OK);
        for (int s = 0; s < 2; s++) {
            const int32_t *ids = s ? b->labels : b->source;
            int64_t length = (s ? b->target_length : b->source_length) - 1;
            assert_int_equal(qkv_tokenizer_decode(bytes_only, ids, length, 0, &side), QKV_OK);
            memcpy(text + n, side->data, side->length);
            n += side->length;
            text[n++] = s ? '\n' : '|';
        }
    }
    *out = (qkv_buffer){ text, n, 0 };
    qkv_free(side);
    qkv_free(b);
    qkv_loader_free(e);
}

static const char *second(const char *target) { return target ? second_path : NULL; }

#define PLACED(text) (text), sizeof(text) - 1

typedef struct row {
    const char *name;
    const char *source, *target; /* without target: one file */
    const char *pairs;
    qkv_corpus_opts o;
    qkv_read_stats read;
} row;

static const row rows[] = {
    { "two files", "a b\nc\n", "A\nB C\n", "a b|A\nc|B C\n", { 0 }, { 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "no last newline", "a\nb", "A\nB\n", "a|A\nb|B\n", { 0 }, { 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "carriage returns", "a\r\nb\r\r\n", "A\nB\r\n", "a|A\nb\r|B\n", { 0 }, { 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "white space stays", " a \n", "\tA\n", " a |\tA\n", { 0 }, { 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "columns", "a b\tA\nc\tB C", NULL, "a b|A\nc|B C\n", { 0 }, { 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "columns and carriage returns",
      "a\tA\r\nb\tB\r\n",
      NULL,
      "a|A\nb|B\n",
      { 0 },
      { 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "empty lines", "a\n\nc\nd\n \n", "A\nB\n\r\nD\nE\n", "a|A\nd|D\n", { 0 }, { 0, 5, 2, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0 } },
    { "wide white space", "a\n\xE3\x80\x80\xC2\xA0\n", "A\nB\n", "a|A\n", { 0 }, { 0, 2, 1, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0 } },
    { "empty columns", "\tA\nb\t\nc\tC\n", NULL, "c|C\n", { 0 }, { 0, 3, 1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0 } },
    { "long pairs",
      "a\nbbbb\nccc\nd\n",
      "A\nB\nCCC\nDDDD\n",
      "a|A\nccc|CCC\n",
      { .max_length = 3 },
      { 0, 4, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0 } },
    { "repaired",
      "a\nb\xFFz\nc\n",
      "A\xE2\x82\nB\nC\n",
      "a|A\xEF\xBF\xBD\nb\xEF\xBF\xBDz|B\nc|C\n",
      { 0 },
      { 0, 3, 3, 1, 2, 0, 0, 0, 0, 1, 1, 0, 0 } },
    { "repaired columns",
      "a\tA\nb\xFF\t\xC3\n",
      NULL,
      "a|A\nb\xEF\xBF\xBD|\xEF\xBF\xBD\n",
      { 0 },
      { 0, 2, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "byte order marks",
      "\xEF\xBB\xBF"
      "a\n\xEF\xBB\xBF"
      "b\n",
      "\xEF\xBB\xBFTo\nB\n",
      "a|To\n\xEF\xBB\xBF"
      "b|B\n",
      { .strict = 1 },
      { 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "a mark and no more than its columns",
      "\xEF\xBB\xBFx\tX",
      NULL,
      "x|X\n",
      { 0 },
      { 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
    { "special tokens are text",
      "<s>a\n",
      "</s>\n",
      "<s>a|</s>\n",
      { .strict = 1 },
      { 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
};

static void check_row(const row *r, void (*write)(const char *, const char *, size_t))
{
    qkv_dataset *p = qkv_dataset_new();
    qkv_read_stats read = { 0 }, of_words = { 0 };
    qkv_buffer text;
    write(first_path, r->source, strlen(r->source));
    if (r->target) write(second_path, r->target, strlen(r->target));
    if (qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, second(r->target), &r->o, &read))
        fail_msg("%s: %s", r->name, qkv_error());
    read_back(p, &text);
    if (text.length != strlen(r->pairs) || memcmp(text.data, r->pairs, text.length))
        fail_msg("%s: \"%.*s\", expected \"%s\"", r->name, (int)text.length, text.data, r->pairs);
    if (memcmp(&read, &r->read, sizeof read)) fail_msg("%s: %lld lines, ..", r->name, (long long)read.lines);
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    assert_int_equal(qkv__word_counts_add_corpus(w, w, first_path, second(r->target), &r->o, &of_words), QKV_OK);
    assert_true(qkv__word_counts_size(w) > 0);
    of_words.pairs -= r->read.too_long; /* words have no tokens */
    of_words.too_long = r->read.too_long;
    of_words.first_too_long = r->read.first_too_long;
    assert_memory_equal(&of_words, &r->read, sizeof of_words);
    qkv_word_counts_free(w);
    qkv_dataset_free(p);
}

static void what_a_corpus_gives(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(&rows[i], write_bytes);
        check_row(&rows[i], write_gzip);
    }
}

/* Each side's words go to its own bag, and none of a pair that is left out. */
static void words_of_each_side(void **state)
{
    (void)state;
    qkv_word_counts *sources = qkv_word_counts_new(QKV_TOKEN_BPE), *targets = qkv_word_counts_new(QKV_TOKEN_BPE);
    write_bytes(first_path, PLACED("a b\nc\nd e f\n"));
    write_bytes(second_path, PLACED("A\n\nA\n"));
    assert_int_equal(qkv__word_counts_add_corpus(sources, targets, first_path, second_path, NULL, NULL), QKV_OK);
    assert_int_equal(qkv__word_counts_size(sources), 5); /* "a", " b", "d", " e", " f" */
    assert_int_equal(qkv__word_counts_size(targets), 1);
    assert_int_equal(qkv_word_counts_add(targets, (qkv_str){ "A", 1 }), QKV_OK);
    assert_int_equal(qkv__word_counts_size(targets), 1);
    qkv_word_counts_free(sources);
    qkv_word_counts_free(targets);
}

static qkv_status put_pair(void *data, qkv_str source, qkv_str target)
{
    char *text = data;
    sprintf(text + strlen(text), "%.*s|%.*s\n", (int)source.length, source.data, (int)target.length, target.data);
    return strlen(text) < 20 ? QKV_OK : QKV_LIMIT;
}

/* Pairs of lines as they stand: empty sides too. */
static void lines_as_they_stand(void **state)
{
    (void)state;
    char text[64] = "";
    write_bytes(first_path, PLACED("\na  b\r\nc\n"));
    write_bytes(second_path, PLACED("A\n\nB"));
    assert_int_equal(qkv_read_pairs(first_path, second_path, NULL, put_pair, text), QKV_OK);
    assert_string_equal(text, "|A\na  b|\nc|B\n");
    write_gzip(first_path, PLACED("a\t\n\tb\n"));
    assert_int_equal(qkv_read_pairs(first_path, NULL, NULL, put_pair, strcpy(text, "")), QKV_OK);
    assert_string_equal(text, "a|\n|b\n");
    assert_int_equal(qkv_read_pairs(first_path, NULL, NULL, put_pair, strcpy(text, "a status that ends")), QKV_LIMIT);
    assert_int_equal(qkv_read_pairs(first_path, NULL, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv_read_pairs(NULL, NULL, NULL, put_pair, text), QKV_USAGE);
}

/* The last of every k pairs of lines is held back: read alone, or all the others. */
static void lines_that_are_held_back(void **state)
{
    (void)state;
    char text[64] = "";
    qkv_corpus_opts o = QKV_OPTS(qkv_corpus_opts);
    write_bytes(first_path, PLACED("a\tA\nb\tB\nc\tC\nd\tD\ne\tE\n"));
    o.held_every = 2;
    assert_int_equal(qkv_read_pairs(first_path, NULL, &o, put_pair, text), QKV_OK);
    assert_string_equal(text, "a|A\nc|C\ne|E\n");
    o.held = 1;
    assert_int_equal(qkv_read_pairs(first_path, NULL, &o, put_pair, strcpy(text, "")), QKV_OK);
    assert_string_equal(text, "b|B\nd|D\n");
    qkv_word_counts *words = qkv_word_counts_new(QKV_TOKEN_BPE);
    assert_int_equal(qkv__word_counts_add_corpus(words, words, first_path, NULL, &o, NULL), QKV_OK);
    assert_int_equal(qkv__word_counts_size(words), 4);
    qkv_word_counts_free(words);
    o.held_every = -1;
    assert_int_equal(qkv_read_pairs(first_path, NULL, &o, put_pair, text), QKV_USAGE);
}

static void nul_bytes(void **state)
{
    (void)state;
    qkv_dataset *p = qkv_dataset_new();
    write_bytes(first_path, PLACED("a\tA\na\0b\tA\n"));
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, NULL, NULL, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "first: line 2: byte 2 is NUL: not a text file"));
    qkv_dataset_free(p);
}

/* As Excel and Notepad write "Unicode text": both byte orders, a character of two units. */
static void utf_16(void **state)
{
    (void)state;
    qkv_dataset *p = qkv_dataset_new();
    qkv_buffer text;
    write_bytes(first_path, PLACED("\xFF\xFE"
                                   "a\0\n\0\x3D\xD8\x00\xDE\n\0"));
    write_bytes(second_path, PLACED("\xFE\xFF\0A\0\r\0\n\0\xE9\x4F\x60"));
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, second_path, NULL, NULL), QKV_OK);
    read_back(p, &text);
    assert_int_equal(text.length, 15);
    assert_memory_equal(text.data, "a|A\n\xF0\x9F\x98\x80|\xC3\xA9\xE4\xBD\xA0\n", 15);
    qkv_dataset_free(p);
}

static void a_megabyte_line(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    char *line = malloc(LENGTH + 3);
    qkv_dataset *p = qkv_dataset_new();
    qkv_loader *e;
    qkv_batch *b = NULL;
    memset(line, 'x', LENGTH);
    memcpy(line + LENGTH, "\ty\n", 3);
    write_gzip(first_path, line, LENGTH + 3);
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, NULL, NULL, NULL), QKV_OK);
    assert_non_null(e = qkv_loader_new(p, &in_order, 0));
    assert_int_equal(qkv_loader_batch(e, 0, &b), QKV_OK);
    assert_int_equal(b->source_length, LENGTH + 1);
    assert_int_equal(b->target_length, 2);
    qkv_free(b);
    qkv_loader_free(e);
    qkv_dataset_free(p);
    free(line);
}

/* ---- what it refuses ---- */

typedef struct bad_row {
    const char *name;
    const char *source, *target;
    const char *words;
    qkv_corpus_opts o;
    qkv_status status;
    bool words_too; /* qkv__word_counts_add_corpus() refuses it as well */
} bad_row;

static const bad_row bad_rows[] = {
    { "short source", "a\nb\n", "A\nB\nC\n", "first ends at line 2, but ", { 0 }, QKV_FORMAT, true },
    { "short source", "a\nb\n", "A\nB\nC\n", "second goes on: line 3 has no translation", { 0 }, QKV_FORMAT, true },
    { "short target", "a\nb\nc\nd\n", "A", "second ends at line 1, but ", { 0 }, QKV_FORMAT, true },
    { "short target", "a\nb\nc\nd\n", "A", "first goes on: line 2 has no translation", { 0 }, QKV_FORMAT, true },
    { "one more newline", "a\n", "A\n\n", "line 2 has no translation", { 0 }, QKV_FORMAT, true },
    { "empty source", "", "A\n", "first is empty, but ", { 0 }, QKV_FORMAT, true },
    { "no TAB", "a\tA\nb\n", NULL, "first: line 2 has no TAB", { 0 }, QKV_FORMAT, true },
    { "no TAB in an empty line", "\n", NULL, "no TAB between source and target: give two files", { 0 }, QKV_FORMAT, true },
    { "two TABs", "a\tA\nb\tB\t\n", NULL, "first: line 2 has more than one TAB", { 0 }, QKV_FORMAT, true },
    { "strict source", "a\nxy\xFF\n", "A\nB\n", "first: line 2: byte 3 is not UTF-8", { .strict = 1 }, QKV_FORMAT, true },
    { "strict target", "a\nb\n", "\xC3\nB\n", "second: line 1: byte 1 is not UTF-8", { .strict = 1 }, QKV_FORMAT, true },
    { "strict columns", "a\tA\n\n", NULL, "line 2 has no TAB", { .strict = 1 }, QKV_FORMAT, true },
    { "a negative length", "a\n", "A\n", "max_length is -1", { .max_length = -1 }, QKV_USAGE, true },
    { "a ZIP archive", "a\n", "PK\3\4", "second: it is a ZIP archive", { 0 }, QKV_UNSUPPORTED, true },
    { "damaged gzip", "\x1F\x8B\x08z", "A\n", "first: damaged gzip", { 0 }, QKV_FORMAT, true },
    { "empty files", "", "", "second: there are no lines", { 0 }, QKV_FORMAT, false },
    { "an empty file", "", NULL, "first: there are no lines", { 0 }, QKV_FORMAT, false },
    { "empty lines", "\n\n", "A\nB\n", "none of 2 pairs is left: 2 with nothing on a side", { 0 }, QKV_FORMAT, false },
    { "all left out",
      "aa\nbb\n\n",
      "A\nB\nC\n",
      "none of 3 pairs is left: 1 with nothing on a side, 2 with more than 1 tokens",
      { .max_length = 1 },
      QKV_FORMAT,
      false },
};

static void refused(const bad_row *r, qkv_status status)
{
    if (status != r->status || (status && !strstr(qkv_error(), r->words)))
        fail_msg("%s: %d, \"%s\", expected \"%s\"", r->name, (int)status, qkv_error(), r->words);
}

static void what_it_refuses(void **state)
{
    (void)state;
    for (const bad_row *r = bad_rows; r < bad_rows + sizeof bad_rows / sizeof *bad_rows; r++) {
        qkv_dataset *p = qkv_dataset_new();
        qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
        write_bytes(first_path, r->source, strlen(r->source));
        if (r->target) write_bytes(second_path, r->target, strlen(r->target));
        refused(r, qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, second(r->target), &r->o, NULL));
        qkv_status status = qkv__word_counts_add_corpus(w, w, first_path, second(r->target), &r->o, NULL);
        if (r->words_too) refused(r, status);
        else assert_int_equal(status, QKV_OK);
        qkv_word_counts_free(w);
        qkv_dataset_free(p);
    }
}

static void what_is_not_there(void **state)
{
    (void)state;
    qkv_dataset *p = qkv_dataset_new();
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_read_stats read = { .lines = 99 };
    write_bytes(first_path, PLACED("a\n"));
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, second_path, NULL, &read), QKV_IO);
    assert_non_null(strstr(qkv_error(), "second: cannot open"));
    assert_int_equal(read.lines, 0);
    qkv_read_stats none = { .size = 12 };
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, second_path, NULL, &none), QKV_USAGE);
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, folder, NULL, NULL, NULL), QKV_IO);
    assert_non_null(strstr(qkv_error(), "cannot read"));
    assert_int_equal(qkv__dataset_add_corpus(NULL, bytes_only, bytes_only, first_path, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv__dataset_add_corpus(p, NULL, bytes_only, first_path, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, NULL, first_path, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv__dataset_add_corpus(p, bytes_only, bytes_only, NULL, first_path, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv__word_counts_add_corpus(NULL, w, first_path, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv__word_counts_add_corpus(w, NULL, first_path, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv__word_counts_add_corpus(w, w, NULL, NULL, NULL, NULL), QKV_USAGE);
    qkv_word_counts_free(w);
    qkv_dataset_free(p);
}

/* ---- ids in a file ---- */

/* A temporary file that could not be unlinked has its name still. Gives whether there was one. */
static bool remove_left_over(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/qkv-%ld-0.tmp", folder, (long)getpid());
    return !unlink(path);
}

enum { MANY = 20000, LIMIT = 100000 }; /* about 800 kB of ids: the file grows several times */

static qkv_status add_many(qkv_dataset *p, int n)
{
    int32_t ids[32];
    qkv_status status = QKV_OK;
    for (int i = 0; i < n && !status; i++) {
        for (int k = 0; k < 32; k++) ids[k] = 100 * i + k;
        status = qkv_dataset_add_ids(p, ids, (size_t)(i * 7 % 11), ids + 16, (size_t)(i * 5 % 13));
    }
    return status;
}

static void same_batch(const qkv_batch *a, const qkv_batch *b)
{
    size_t ids = (size_t)(a->rows * (a->source_length + 2 * a->target_length + 2)); /* all arrays are one block */
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->source_length, b->source_length);
    assert_int_equal(a->target_length, b->target_length);
    assert_int_equal(a->tokens, b->tokens);
    assert_memory_equal(a->source, b->source, sizeof(int32_t) * ids);
}

static void ids_in_a_file_are_the_same(void **state)
{
    (void)state;
    const qkv_batch_opts opts = { .seed = 3, .start = START, .end = END, .pad = PAD };
    static const size_t limits[] = { 0, LIMIT };
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(add_many(p, MANY), QKV_OK);
    qkv_loader *e = qkv_loader_new(p, &opts, 1);
    for (size_t l = 0; l < 2; l++) {
        use_failing_files(-1);
        qkv_dataset *q = qkv__dataset_new_with_limit(limits[l]);
        qkv_batch *a = NULL, *b = NULL;
        assert_int_equal(add_many(q, MANY), QKV_OK);
        assert_true(failing.mapped > 500000);
        qkv_loader *f = qkv_loader_new(q, &opts, 1);
        assert_int_equal(qkv_loader_size(e), qkv_loader_size(f));
        for (int64_t i = 0; i < qkv_loader_size(e); i++) {
            assert_int_equal(qkv_loader_batch(e, i, &a), QKV_OK);
            assert_int_equal(qkv_loader_batch(f, i, &b), QKV_OK);
            same_batch(a, b);
        }
        qkv_free(a);
        qkv_free(b);
        qkv_loader_free(f);
        qkv_dataset_free(q);
        assert_int_equal(failing.mapped, 0);
        assert_int_equal(failing.open, 0);
        qkv__set_files(NULL);
    }
    qkv_loader_free(e);
    qkv_dataset_free(p);
}

/* A few ids make no file. */
static void little_stays_in_memory(void **state)
{
    (void)state;
    use_failing_files(0);
    qkv_dataset *p = qkv_dataset_new();
    assert_int_equal(add_many(p, MANY), QKV_OK);
    assert_false(failing.failed);
    qkv__set_files(NULL);
    qkv_dataset_free(p);
}

/* An error adds nothing, and what was there can still be used and added to. */
static void a_full_disk(void **state)
{
    (void)state;
    const int32_t ids[] = { 5, 6, 7 };
    qkv_batch *b = NULL;
    for (long n = 0; n < 4; n++) { /* open, unlink, posix_fallocate, mmap */
        qkv_dataset *p = qkv__dataset_new_with_limit(16);
        assert_int_equal(qkv_dataset_add_ids(p, ids, 2, ids, 1), QKV_OK);
        use_failing_files(n);
        assert_int_equal(qkv_dataset_add_ids(p, ids, 3, ids, 3), QKV_IO);
        assert_true(failing.failed);
        assert_non_null(strstr(qkv_error(), "temporary file"));
        if (n == 2) assert_non_null(strstr(qkv_error(), "No space left"));
        assert_int_equal(remove_left_over(), n == 1);
        assert_int_equal(failing.open, 0);
        assert_int_equal(qkv_dataset_size(p), 1);
        assert_int_equal(qkv_dataset_add_ids(p, ids, 3, ids, 3), QKV_OK);
        qkv_loader *e = qkv_loader_new(p, &in_order, 0);
        assert_int_equal(qkv_loader_batch(e, 1, &b), QKV_OK);
        assert_memory_equal(b->source, ids, sizeof ids);
        qkv_loader_free(e);
        qkv_dataset_free(p);
        qkv__set_files(NULL);
    }
    qkv_free(b);
}

/* A name that somebody has is passed over, and theirs stays; a folder that is not there is named. */
static void temporary_files(void **state)
{
    (void)state;
    char taken[128];
    const int32_t ids[] = { 5, 6, 7 };
    qkv_dataset *p = qkv__dataset_new_with_limit(0);
    snprintf(taken, sizeof taken, "%s/qkv-%ld-0.tmp", folder, (long)getpid());
    write_bytes(taken, PLACED("mine"));
    assert_int_equal(qkv_dataset_add_ids(p, ids, 3, ids, 3), QKV_OK);
    qkv_dataset_free(p);
    assert_true(remove_left_over());
    p = qkv__dataset_new_with_limit(0);
    setenv("TMPDIR", "/tmp/qkv-no-such-folder", 1);
    assert_int_equal(qkv_dataset_add_ids(p, ids, 3, ids, 3), QKV_IO);
    assert_non_null(strstr(qkv_error(), "/tmp/qkv-no-such-folder/"));
    qkv_dataset_free(p);
}

/* ---- failing calls ---- */

static qkv_status use_corpus(void)
{
    qkv_word_counts *w = qkv_word_counts_new(QKV_TOKEN_BPE);
    qkv_dataset *p = qkv__dataset_new_with_limit(64);
    qkv_status status = w && p ? QKV_OK : qkv_error_status();
    if (!status) status = qkv__word_counts_add_corpus(w, w, first_path, second_path, NULL, NULL);
    if (!status) status = qkv__dataset_add_corpus(p, bytes_only, bytes_only, first_path, second_path, NULL, NULL);
    qkv_dataset_free(p);
    qkv_word_counts_free(w);
    return status;
}

static void write_for_failures(void)
{
    write_gzip(first_path, PLACED("Some words\n\nand more\xFF of them\n"));
    write_bytes(second_path, PLACED("Einige Worte\nleer\nund mehr davon\n"));
}

static void memory_runs_out(void **state)
{
    (void)state;
    write_for_failures();
    assert_true(each_allocation_fails(use_corpus) > 20);
}

static void any_file_call_may_fail(void **state)
{
    (void)state;
    int harmless = 0, left_over = 0;
    write_for_failures();
    for (long n = 0;; n++) {
        use_failing_files(n);
        qkv_status status = use_corpus();
        bool failed = failing.failed;
        assert_int_equal(failing.open, 0);
        assert_int_equal(failing.mapped, 0);
        qkv__set_files(NULL);
        left_over += remove_left_over();
        if (status != QKV_IO && status != QKV_OK) fail_msg("call %ld: %s", n, qkv_error());
        if (!failed) {
            assert_int_equal(status, QKV_OK);
            break;
        }
        harmless += status == QKV_OK;
    }
    assert_int_equal(harmless, 5); /* closing what was read, twice two files, and the temporary file */
    assert_int_equal(left_over, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(what_a_corpus_gives),
        TEST(words_of_each_side),
        TEST(lines_as_they_stand),
        TEST(nul_bytes),
        TEST(utf_16),
        TEST(lines_that_are_held_back),
        TEST(a_megabyte_line),
        TEST(what_it_refuses),
        TEST(what_is_not_there),
        TEST(ids_in_a_file_are_the_same),
        TEST(little_stays_in_memory),
        TEST(a_full_disk),
        TEST(temporary_files),
        TEST(memory_runs_out),
        TEST(any_file_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
