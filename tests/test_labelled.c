/* test_labelled.c: labelled texts of every format, and documents. */
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

/* ---- files ---- */

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-labelled-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_bytes(const char *to, const char *bytes, size_t size)
{
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void write_gzip(const char *to, const char *bytes, size_t size)
{
    gzFile f = gzopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, bytes, (unsigned)size), (int)size);
    assert_int_equal(gzclose(f), Z_OK);
}

/* A file of the folder, and the folders it lies in. */
static void put_file(const char *name, const char *text)
{
    char at[128];
    snprintf(at, sizeof at, "%s/%s", folder, name);
    for (char *slash = at + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        assert_true(!mkdir(at, 0777) || errno == EEXIST);
    }
    write_bytes(at, text, strlen(text));
}

#define PLACED(text) (text), sizeof(text) - 1

/* ---- what was given ---- */

/* "line:label|text|pair;" each; a NUL shows as @. */
static struct {
    char text[4096];
    size_t n;
    int calls, stop_at; /* the call that gives FAILURE, from 1; 0: none */
} seen;

static void see(const char *piece, size_t length)
{
    assert_int_equal(piece[length], '\0'); /* a NUL after it */
    for (size_t i = 0; i < length && seen.n + 2 < sizeof seen.text; i++) seen.text[seen.n++] = piece[i] ? piece[i] : '@';
    seen.text[seen.n] = '\0';
}

static qkv_status see_labelled(void *data, const qkv_labelled *x)
{
    char number[32];
    assert_ptr_equal(data, &seen);
    see(number, (size_t)snprintf(number, sizeof number, "%lld:", (long long)x->line));
    see(x->label.data, x->label.length);
    see("|", 1);
    see(x->text.data, x->text.length);
    if (x->pair.data) see("|", 1), see(x->pair.data, x->pair.length);
    else assert_int_equal(x->pair.length, 0);
    see(";", 1);
    return ++seen.calls == seen.stop_at ? QKV_FAILURE : QKV_OK;
}

static qkv_status see_document(void *data, qkv_str text)
{
    assert_ptr_equal(data, &seen);
    see(text.data, text.length);
    see(";", 1);
    return ++seen.calls == seen.stop_at ? QKV_FAILURE : QKV_OK;
}

static void see_nothing(void) { memset(&seen, 0, sizeof seen); }

static void same_read(const char *name, const qkv_read_stats *got, const qkv_read_stats *wanted)
{
    if (memcmp(got, wanted, sizeof *got))
        fail_msg("%s: %lld lines, %lld given, %lld repaired (%lld), %lld empty (%lld)", name, (long long)got->lines,
                 (long long)got->pairs, (long long)got->repaired, (long long)got->first_repaired, (long long)got->empty,
                 (long long)got->first_empty);
}

/* ---- formats of one file ---- */

typedef struct row {
    const char *name;
    const char *text;
    size_t size;
    const char *given;
    qkv_labelled_opts o;
    qkv_read_stats read;
} row;

#define BOM "\xEF\xBB\xBF"
#define TSV .format = QKV_LABELLED_TSV
#define CSV .format = QKV_LABELLED_CSV
#define JSONL .format = QKV_LABELLED_JSONL
#define WHOLE .size = sizeof(qkv_labelled_opts)

static const row rows[] = {
    /* TSV */
    { "TSV",
      PLACED("pos\tA good one\nneg\tA bad one"),
      "1:pos|A good one;2:neg|A bad one;",
      { TSV },
      { .lines = 2, .pairs = 2 } },
    { "TSV by name", PLACED("a\tb\n"), "1:a|b;", { 0 }, { .lines = 1, .pairs = 1 } },
    { "TSV pairs", PLACED("1\ta b\tc\n0\td\te\n"), "1:1|a b|c;2:0|d|e;", { TSV }, { .lines = 2, .pairs = 2 } },
    { "carriage returns", PLACED("a\tb\r\nc\td\r\r\n"), "1:a|b;2:c|d\r;", { TSV }, { .lines = 2, .pairs = 2 } },
    { "quotes are text", PLACED("a\t\"b\n"), "1:a|\"b;", { TSV }, { .lines = 1, .pairs = 1 } },
    { "a byte order mark", PLACED(BOM "a\tb\n" BOM "c\td\n"), "1:a|b;2:" BOM "c|d;", { TSV }, { .lines = 2, .pairs = 2 } },
    { "empty texts",
      PLACED("a\tb\nc\t \n\t\nd\te\n"),
      "1:a|b;4:d|e;",
      { TSV },
      { .lines = 4, .pairs = 2, .empty = 2, .first_empty = 2 } },
    { "an empty pair",
      PLACED("a\tb\t\nc\td\te\n"),
      "2:c|d|e;",
      { TSV },
      { .lines = 2, .pairs = 1, .empty = 1, .first_empty = 1 } },
    { "an empty file", PLACED(""), "", { TSV }, { 0 } },
    { "an empty line is an empty text",
      PLACED("a\tb\n\nc\td\n \n"),
      "1:a|b;3:c|d;",
      { TSV },
      { .lines = 4, .pairs = 2, .empty = 2, .first_empty = 2 } },
    { "texts without a label",
      PLACED("a\tb\n\tc\n\xC2\xA0 \td\n\t\n"),
      "1:a|b;",
      { TSV },
      { .lines = 4, .pairs = 1, .empty = 1, .first_empty = 4, .unlabelled = 2, .first_unlabelled = 2 } },
    { "labels are trimmed",
      PLACED(" a \tb\n\xE3\x80\x80"
             "c d\xC2\xA0\te \n"),
      "1:a|b;2:c d|e ;",
      { TSV },
      { .lines = 2, .pairs = 2 } },
    { "UTF-16",
      PLACED("\xFF\xFE"
             "a\0\t\0\x60\x4F\r\0\n\0"),
      "1:a|\xE4\xBD\xA0;",
      { TSV },
      { .lines = 1, .pairs = 1 } },
    { "UTF-16, big-endian", PLACED("\xFE\xFF\0a\0\t\x4F\x60\0\n"), "1:a|\xE4\xBD\xA0;", { TSV }, { .lines = 1, .pairs = 1 } },
    { "UTF-16 with half a character and half a unit",
      PLACED("\xFE\xFF\0a\0\t\xD8\x3D\0b\0\n\0c\0\t\0d\0"),
      "1:a|\xEF\xBF\xBD"
      "b;2:c|d\xEF\xBF\xBD;",
      { TSV },
      { .lines = 2, .pairs = 2, .repaired = 2, .first_repaired = 1 } },
    { "repaired",
      PLACED("a\tb\nc\t\xFF"
             "d\n\xC3\te\n"),
      "1:a|b;2:c|\xEF\xBF\xBD"
      "d;3:\xEF\xBF\xBD|e;",
      { TSV },
      { .lines = 3, .pairs = 3, .repaired = 2, .first_repaired = 2 } },
    { "columns by name",
      PLACED("sentence\tn\tlabel\nGood\t1\tpos\nBad\t2\tneg\n"),
      "2:pos|Good;3:neg|Bad;",
      { TSV, .text = "sentence" },
      { .lines = 3, .pairs = 2 } },
    { "pairs by name",
      PLACED("a\tb\tc\n1\t2\t3\n"),
      "2:3|1|2;",
      { TSV, .label = "c", .text = "a", .pair = "b" },
      { .lines = 2, .pairs = 1 } },
    { "one column as text and pair",
      PLACED("a\tb\n1\t2\n"),
      "2:1|2|2;",
      { TSV, .label = "a", .text = "b", .pair = "b" },
      { .lines = 2, .pairs = 1 } },
    { "text alone",
      PLACED(BOM "a\tb\n\nc\r\n"),
      "1:|a\tb;3:|c;",
      { TSV, .no_label = 1 },
      { .lines = 3, .pairs = 2, .empty = 1, .first_empty = 2 } },
    { "a header to pass over", PLACED("x\ty\na\tb\n"), "2:a|b;", { TSV, .header = 1 }, { .lines = 2, .pairs = 1 } },
    { "a header of texts alone",
      PLACED("x\na\tb\n"),
      "2:|a\tb;",
      { TSV, .no_label = 1, .header = 1 },
      { .lines = 2, .pairs = 1 } },
    { "columns by number", PLACED("a\tb\tc\n"), "1:c|b;", { TSV, .label = "3", .text = "2" }, { .lines = 1, .pairs = 1 } },
    { "one by number", PLACED("a\tb\n"), "1:b|a;", { TSV, .label = "2" }, { .lines = 1, .pairs = 1 } },
    { "the text by number", PLACED("a\tb\tc\n"), "1:b|a|c;", { TSV, .text = "1", .pair = "3" }, { .lines = 1, .pairs = 1 } },
    { "by number under a header",
      PLACED("x\ty\na\tb\n"),
      "2:b|a;",
      { TSV, .label = "2", .header = 1 },
      { .lines = 2, .pairs = 1 } },
    { "text alone by number", PLACED("a\tb\n"), "1:|b;", { TSV, .text = "2", .no_label = 1 }, { .lines = 1, .pairs = 1 } },
    { "a name and a number", PLACED("x\ty\na\tb\n"), "2:b|a;", { TSV, .label = "y", .text = "1" }, { .lines = 2, .pairs = 1 } },
    { "a number that is a name",
      PLACED("2,1\na,b\n"),
      "2:b|a;",
      { CSV, .label = "1", .text = "2" },
      { .lines = 2, .pairs = 1 } },
    { "CSV by number", PLACED("x,y\na,b\n"), "2:b|a;", { CSV, .label = "2", .text = "1" }, { .lines = 2, .pairs = 1 } },
    { "a header without label",
      PLACED("text\nb\n"),
      "2:|b;",
      { TSV, .text = "text", .no_label = 1 },
      { .lines = 2, .pairs = 1 } },
    { "a header with a label that may be missing",
      PLACED("text\tlabel\nb\tx\nc\t\n"),
      "2:x|b;3:|c;",
      { TSV, .text = "text", .no_label = 1 },
      { .lines = 3, .pairs = 2 } },
    /* separators */
    { "commas in the text of TSV", PLACED("a\tb, c\nd\te, f\n"), "1:a|b, c;2:d|e, f;", { TSV }, { .lines = 2, .pairs = 2 } },
    { "quotes in TSV", PLACED("a\t\"b\" c\nd\t\"e\"\n"), "1:a|\"b\" c;2:d|\"e\";", { TSV }, { .lines = 2, .pairs = 2 } },
    { "quotes that open and close on different lines of TSV",
      PLACED("a\t\"b\nc\td\"\n"),
      "1:a|\"b;2:c|d\";",
      { TSV },
      { .lines = 2, .pairs = 2 } },
    { "quotes of a spreadsheet in TSV",
      PLACED("a\t\"say \"\"no\"\"\"\r\nd\te\r\n"),
      "1:a|say \"no\";2:d|e;",
      { TSV },
      { .lines = 2, .pairs = 2 } },
    { "newlines of a spreadsheet in TSV",
      PLACED("a\t\"b\nc\"\nd\te\n"),
      "1:a|b\nc;3:d|e;",
      { TSV },
      { .lines = 3, .pairs = 2 } },
    { "CSV with semicolons",
      PLACED(BOM "label;text\r\na;Gut, sehr gut\r\nb;\"schlecht; \"\"naja\"\"\nnein\"\r\n"),
      "2:a|Gut, sehr gut;3:b|schlecht; \"naja\"\nnein;",
      { CSV },
      { .lines = 4, .pairs = 2 } },
    { "CSV with semicolons in UTF-16",
      PLACED("\xFF\xFE"
             "l\0a\0b\0e\0l\0;\0t\0e\0x\0t\0\n\0a\0;\0\x60\x4F,\0b\0\n\0"),
      "2:a|\xE4\xBD\xA0,b;",
      { CSV },
      { .lines = 2, .pairs = 1 } },
    { "CSV with TABs", PLACED("label\ttext\na\t\"b\tc\"\n"), "2:a|b\tc;", { CSV }, { .lines = 2, .pairs = 1 } },
    { "CSV with bars", PLACED("label|text\na|b, c\n"), "2:a|b, c;", { CSV }, { .lines = 2, .pairs = 1 } },
    { "names decide",
      PLACED("id, as counted;Art;Text\n1;a;b\n"),
      "2:a|b;",
      { CSV, .label = "Art", .text = "Text" },
      { .lines = 2, .pairs = 1 } },
    { "semicolons in CSV with commas",
      PLACED("label,text\na,b;c\nd,e\n"),
      "2:a|b;c;3:d|e;",
      { CSV },
      { .lines = 3, .pairs = 2 } },
    { "two even separators: the comma",
      PLACED("x;a,y;b\n1;2,3;4\n"),
      "2:1;2|3;4;",
      { CSV, .label = "1", .text = "2" },
      { .lines = 2, .pairs = 1 } },
    { "semicolons without a header",
      PLACED("a;b, c\nd;\"e; f\"\n"),
      "1:a|b, c;2:d|e; f;",
      { TSV },
      { .lines = 2, .pairs = 2 } },
    { "commas without a header", PLACED("a,b\nd,\"e, f\"\n"), "1:a|b;2:d|e, f;", { TSV }, { .lines = 2, .pairs = 2 } },
    { "semicolons by names",
      PLACED("Text;Art\nb;a\n"),
      "2:a|b;",
      { TSV, .label = "Art", .text = "Text" },
      { .lines = 2, .pairs = 1 } },
    { "an explicit bar",
      PLACED("label,text|x\na,b|y\n"),
      "2:y|a,b;",
      { WHOLE, CSV, .label = "x", .text = "label,text", .column_separator = "bar" },
      { .lines = 2, .pairs = 1 } },
    { "an explicit TAB",
      PLACED("a;b\tc;d\n"),
      "1:a;b|c;d;",
      { WHOLE, TSV, .column_separator = "tab" },
      { .lines = 1, .pairs = 1 } },
    { "an explicit comma",
      PLACED("a,\"b\tc\"\n"),
      "1:a|b\tc;",
      { WHOLE, TSV, .column_separator = "," },
      { .lines = 1, .pairs = 1 } },
    { "a sep= line", PLACED("sep=;\r\nlabel;text\r\na;b\r\n"), "3:a|b;", { CSV }, { .lines = 3, .pairs = 1 } },
    { "preferred columns",
      PLACED("review,label\nb,a\n"),
      "2:a|b;",
      { WHOLE, CSV, .text = "review", .preferred = 1 },
      { .lines = 2, .pairs = 1 } },
    { "preferred columns, missing",
      PLACED("a\tb\n"),
      "1:a|b;",
      { WHOLE, TSV, .text = "review", .label = "y", .preferred = 1 },
      { .lines = 1, .pairs = 1 } },
    { "preferred numbers, missing",
      PLACED("text,label\nb,a\n"),
      "2:a|b;",
      { WHOLE, CSV, .text = "3", .preferred = 1 },
      { .lines = 2, .pairs = 1 } },
    { "preferred members, missing",
      PLACED("{\"label\":1,\"text\":\"a\"}\n"),
      "1:1|a;",
      { WHOLE, JSONL, .text = "review", .preferred = 1 },
      { .lines = 1, .pairs = 1 } },
    /* CSV */
    { "an empty line in CSV",
      PLACED("label,text\na,b\n\r\nc,d\n"),
      "2:a|b;4:c|d;",
      { CSV },
      { .lines = 4, .pairs = 2, .empty = 1, .first_empty = 3 } },
    { "CSV", PLACED("label,text\npos,Good\nneg,Bad"), "2:pos|Good;3:neg|Bad;", { CSV }, { .lines = 3, .pairs = 2 } },
    { "quoted fields",
      PLACED("text,label\n\"a, b\",1\n\"say \"\"no\"\"\",\"0\"\n\"\"\"\",x\n"),
      "2:1|a, b;3:0|say \"no\";4:x|\";",
      { CSV },
      { .lines = 4, .pairs = 3 } },
    { "newlines in quotes",
      PLACED("label,text\r\na,\"one\r\ntwo\n\n\"\r\nb,\"three\"\r\n"),
      "2:a|one\r\ntwo\n\n;6:b|three;",
      { CSV },
      { .lines = 6, .pairs = 2 } },
    { "a quoted header",
      PLACED(BOM "\"label\",\"the\ntext\"\na,b\n"),
      "3:a|b;",
      { CSV, .text = "the\ntext" },
      { .lines = 3, .pairs = 1 } },
    { "CSV pairs",
      PLACED("id,q,a,label\n1,w?,\"x, y\",yes\n"),
      "2:yes|w?|x, y;",
      { CSV, .text = "q", .pair = "a" },
      { .lines = 2, .pairs = 1 } },
    { "empty fields",
      PLACED("label,text,x\na,b,\nc,,\nd,\"\",\ne,f,\"\"\n"),
      "2:a|b;5:e|f;",
      { CSV },
      { .lines = 5, .pairs = 2, .empty = 2, .first_empty = 3 } },
    { "a carriage return inside", PLACED("label,text\na,b\rc\n"), "2:a|b\rc;", { CSV }, { .lines = 2, .pairs = 1 } },
    { "CSV without label", PLACED("text\na\n\"b\"\n"), "2:|a;3:|b;", { CSV, .no_label = 1 }, { .lines = 3, .pairs = 2 } },
    { "an empty line is an empty field",
      PLACED("text\na\n\nb\n"),
      "2:|a;4:|b;",
      { CSV, .no_label = 1 },
      { .lines = 4, .pairs = 2, .empty = 1, .first_empty = 3 } },
    { "repaired inside quotes",
      PLACED("label,text\na,\"b\n\xFF\"\n"),
      "2:a|b\n\xEF\xBF\xBD;",
      { CSV },
      { .lines = 3, .pairs = 1, .repaired = 1, .first_repaired = 3 } },
    { "a header alone", PLACED("label,text\n"), "", { CSV }, { .lines = 1 } },
    /* JSONL */
    { "JSONL",
      PLACED(BOM "{\"label\": \"pos\", \"text\": \"Good\", \"x\": [1]}\n{\"text\":\"Bad\",\"label\":\"neg\"}"),
      "1:pos|Good;2:neg|Bad;",
      { JSONL },
      { .lines = 2, .pairs = 2 } },
    { "labels of other kinds",
      PLACED("{\"label\":-3,\"text\":\"a\"}\n{\"label\":true,\"text\":\"b\"}\n{\"label\":false,\"text\":\"c\"}\n"),
      "1:-3|a;2:true|b;3:false|c;",
      { JSONL },
      { .lines = 3, .pairs = 3 } },
    { "JSONL without some labels",
      PLACED("{\"text\":\"a\"}\n{\"label\":null,\"text\":\"b\"}\n{\"label\":\" \",\"text\":\"c\"}\n{\"label\":\" "
             "x\\n\",\"text\":\"d\"}\n"),
      "4:x|d;",
      { JSONL },
      { .lines = 4, .pairs = 1, .unlabelled = 3, .first_unlabelled = 1 } },
    { "a null text", PLACED("{\"label\":1,\"text\":null}\n"), "", { JSONL }, { .lines = 1, .empty = 1, .first_empty = 1 } },
    { "a null pair",
      PLACED("{\"label\":1,\"text\":\"a\",\"b\":null}\n{\"label\":2,\"text\":\"c\",\"b\":\"d\"}\n"),
      "2:2|c|d;",
      { JSONL, .text = "text", .pair = "b" },
      { .lines = 2, .pairs = 1, .empty = 1, .first_empty = 1 } },
    { "a null label that may be missing",
      PLACED("{\"label\":null,\"text\":\"a\"}\n"),
      "1:|a;",
      { JSONL, .no_label = 1 },
      { .lines = 1, .pairs = 1 } },
    { "escapes",
      PLACED("{\"label\":\"\\u00e9\",\"text\":\"a\\tb\\nc\\u0000d\"}\r\n"),
      "1:\xC3\xA9|a\tb\nc@d;",
      { JSONL },
      { .lines = 1, .pairs = 1 } },
    { "empty lines",
      PLACED("\n{\"label\":1,\"text\":\"a\"}\n \r\n{\"label\":2,\"text\":\"b\"}\n\n"),
      "2:1|a;4:2|b;",
      { JSONL },
      { .lines = 5, .pairs = 2 } },
    { "members by name",
      PLACED("{\"y\":1,\"a\":\"p\",\"b\":\"q\"}\n"),
      "1:1|p|q;",
      { JSONL, .label = "y", .text = "a", .pair = "b" },
      { .lines = 1, .pairs = 1 } },
    { "an empty text",
      PLACED("{\"label\":1,\"text\":\"\"}\n{\"label\":1,\"text\":\"\\u3000\"}\n"),
      "",
      { JSONL },
      { .lines = 2, .empty = 2, .first_empty = 1 } },
    { "JSONL without label",
      PLACED("{\"text\":\"a\"}\n{\"label\":7,\"text\":\"b\"}\n"),
      "1:|a;2:7|b;",
      { JSONL, .no_label = 1 },
      { .lines = 2, .pairs = 2 } },
    { "repaired JSONL",
      PLACED("{\"label\":1,\"text\":\"a\xFF\"}\n"),
      "1:1|a\xEF\xBF\xBD;",
      { JSONL },
      { .lines = 1, .pairs = 1, .repaired = 1, .first_repaired = 1 } },
};

static void check_row(const row *r, void (*write)(const char *, const char *, size_t))
{
    qkv_read_stats read = { 0 };
    write(path, r->text, r->size);
    see_nothing();
    if (qkv_read_labelled(path, &r->o, see_labelled, &seen, &read)) fail_msg("%s: %s", r->name, qkv_error());
    if (strcmp(seen.text, r->given)) fail_msg("%s: \"%s\", expected \"%s\"", r->name, seen.text, r->given);
    same_read(r->name, &read, &r->read);
}

static void what_files_give(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + sizeof rows / sizeof *rows; r++) {
        check_row(r, write_bytes);
        check_row(r, write_gzip);
    }
}

static void formats_by_name(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        { "a.csv", "label,text\na,b\n" },
        { "a.csv.gz", "label,text\na,b\n" },
        { "a.jsonl", "{\"label\":\"a\",\"text\":\"b\"}\n" },
        { "a.jsonl.gz", "{\"label\":\"a\",\"text\":\"b\"}\n" },
        { "a.json", "{\"label\":\"a\",\"text\":\"b\"}\n" },
        { "a.txt", "a\tb\n" },
        { "csv", "a\tb\n" },
        { "a.csv.tsv", "a\tb\n" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char at[128];
        snprintf(at, sizeof at, "%s/%s", folder, names[i][0]);
        write_bytes(at, names[i][1], strlen(names[i][1]));
        see_nothing();
        if (qkv_read_labelled(at, NULL, see_labelled, &seen, NULL)) fail_msg("%s: %s", names[i][0], qkv_error());
        assert_non_null(strstr(seen.text, ":a|b;"));
    }
}

static qkv_status count_bytes(void *data, const qkv_labelled *x)
{
    *(size_t *)data += x->text.length;
    return QKV_OK;
}

static void a_megabyte_in_each_format(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    static const struct {
        qkv_labelled_opts o;
        const char *before, *after;
    } formats[] = {
        { { TSV }, "a\t", "\n" },
        { { CSV }, "label,text\na,", "\n" },
        { { CSV }, "label,text\na,\"", "\"\n" },
        { { JSONL }, "{\"label\":1,\"text\":\"", "\"}\n" },
    };
    char *text = malloc(LENGTH + 100);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t before = strlen(formats[i].before), after = strlen(formats[i].after), given = 0;
        memcpy(text, formats[i].before, before);
        memset(text + before, 'x', LENGTH);
        memcpy(text + before + LENGTH, formats[i].after, after);
        write_bytes(path, text, before + LENGTH + after);
        assert_int_equal(qkv_read_labelled(path, &formats[i].o, count_bytes, &given, NULL), QKV_OK);
        assert_int_equal(given, LENGTH);
    }
    free(text);
}

/* ---- folders ---- */

static void write_reviews(void)
{
    put_file("pos/10.txt", "Good\nand long\n");
    put_file("pos/9.txt", "Great");
    put_file("pos/2.txt", " \n");
    put_file("pos/notes.md", "no text");
    put_file("pos/.hidden.txt", "hidden");
    put_file("neg/1.txt", BOM "Bad\xFF");
    put_file("unsup/1.txt", "Who knows");
    put_file(".git/1.txt", "hidden");
    put_file("README", "about");
    put_file("alone.txt", "Alone");
}

static void what_a_folder_gives(void **state)
{
    (void)state;
    qkv_read_stats read = { 0 };
    write_reviews();
    see_nothing();
    assert_int_equal(qkv_read_labelled(folder, NULL, see_labelled, &seen, &read), QKV_OK);
    assert_string_equal(seen.text, "1:neg|Bad\xEF\xBF\xBD;1:pos|Good\nand long\n;1:pos|Great;1:unsup|Who knows;");
    same_read("folder", &read,
              &(qkv_read_stats){ .lines = 5, .pairs = 4, .repaired = 1, .first_repaired = 1, .empty = 1, .first_empty = 3 });
    see_nothing();
    assert_int_equal(qkv_read_labelled(folder, &(qkv_labelled_opts){ .no_label = 1 }, see_labelled, &seen, &read), QKV_OK);
    assert_non_null(strstr(seen.text, "1:|Alone;1:neg|Bad"));
    assert_int_equal(read.first_repaired, 2);
}

static qkv_status last_path(void *data, const qkv_labelled *x)
{
    snprintf(data, 256, "%s", x->path);
    return QKV_OK;
}

static void a_file_of_a_folder_is_named(void **state)
{
    (void)state;
    char last[256], wanted[128];
    put_file("b/2.txt", "two");
    put_file("b/1.txt", "one");
    assert_int_equal(qkv_read_labelled(folder, NULL, last_path, last, NULL), QKV_OK);
    snprintf(wanted, sizeof wanted, "%s/b/2.txt", folder);
    assert_string_equal(last, wanted);
    put_file("b/1.txt", "one\ntwo\xC3!\n");
    assert_int_equal(qkv_read_labelled(folder, &(qkv_labelled_opts){ .strict = 1 }, last_path, last, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "/b/1.txt: line 2: byte 4 is not UTF-8"));
}

static void folders_that_are_refused(void **state)
{
    (void)state;
    const qkv_labelled_opts as_folder = { .format = QKV_LABELLED_FOLDER };
    put_file("a.txt", "text");
    assert_int_equal(qkv_read_labelled(folder, NULL, see_labelled, &seen, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "there is no folder in it"));
    snprintf(path, sizeof path, "%s/a.txt", folder);
    assert_int_equal(qkv_read_labelled(path, &as_folder, see_labelled, &seen, NULL), QKV_IO);
    assert_non_null(strstr(qkv_error(), "a.txt: cannot list the folder"));
    assert_int_equal(qkv_read_labelled(folder, &(qkv_labelled_opts){ TSV }, see_labelled, &seen, NULL), QKV_IO);
    put_file("a\tb/1.txt", "text");
    assert_int_equal(qkv_read_labelled(folder, NULL, see_labelled, &seen, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "the label has a TAB"));
    put_file("\xFF/1.txt", "text");
    put_file("a\tb/1.txt", "");
    assert_int_equal(qkv_read_labelled(folder, NULL, see_labelled, &seen, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "is not UTF-8"));
}

/* A few bytes of gzip that become more than 64 MiB. */
static void a_file_without_end(void **state)
{
    (void)state;
    enum { PIECE = 1 << 20 };
    char *piece = calloc(1, PIECE), at[128];
    put_file("a/1.txt", "");
    snprintf(at, sizeof at, "%s/a/1.txt", folder);
    gzFile f = gzopen(at, "wb1");
    for (int i = 0; i < 65; i++) assert_int_equal(gzwrite(f, piece, PIECE), PIECE);
    assert_int_equal(gzclose(f), Z_OK);
    assert_int_equal(qkv_read_labelled(folder, NULL, see_labelled, &seen, NULL), QKV_LIMIT);
    assert_non_null(strstr(qkv_error(), "a/1.txt: a text of more than 67108864 bytes"));
    free(piece);
}

/* ---- rows with their columns ---- */

/* "line[column,column]text|pair;" each; # after the line of a header. */
static qkv_status see_row(void *data, const qkv_labelled *x)
{
    char number[32];
    assert_ptr_equal(data, &seen);
    see(number, (size_t)snprintf(number, sizeof number, "%lld%s[", (long long)x->line, x->is_header ? "#" : ""));
    for (int64_t i = 0; i < x->n_columns; i++) {
        if (i) see(",", 1);
        see(x->columns[i].data, x->columns[i].length);
    }
    see("]", 1);
    see(x->text.data, x->text.length);
    if (x->pair.data) see("|", 1), see(x->pair.data, x->pair.length);
    see(";", 1);
    return QKV_OK;
}

static void rows_with_their_columns(void **state)
{
    (void)state;
#define ROWS WHOLE, .rows = 1, .no_label = 1
    static const row tables[] = {
        { "CSV",
          PLACED("id;text;n\n1;\"a; b\";\n2;;x\n\n3; ;\n"),
          "1#[id,text,n];2[1,a; b,]a; b;3[2,,x];4[];5[3, ,];",
          { ROWS, CSV },
          { .lines = 5, .pairs = 4, .empty = 3, .first_empty = 3 } },
        { "the only column", PLACED("Satz\na\n"), "1#[Satz];2[a]a;", { ROWS, CSV }, { .lines = 2, .pairs = 1 } },
        { "the only column of texts",
          PLACED("id,Review\n1,a\n"),
          "1#[id,Review];2[1,a]a;",
          { ROWS, CSV },
          { .lines = 2, .pairs = 1 } },
        { "TSV of texts", PLACED("a, b\nc\n"), "1[a, b]a, b;2[c]c;", { ROWS, TSV }, { .lines = 2, .pairs = 2 } },
        { "TSV", PLACED("x\ta\ny\tb\n"), "1[x,a]a;2[y,b]b;", { ROWS, TSV }, { .lines = 2, .pairs = 2 } },
        { "TSV of pairs", PLACED("x\ta\tb\n"), "1[x,a,b]a|b;", { ROWS, TSV }, { .lines = 1, .pairs = 1 } },
        { "a label that is a header word",
          PLACED("question\tWhy\n"),
          "1[question,Why]Why;",
          { ROWS, TSV },
          { .lines = 1, .pairs = 1 } },
        { "TSV with a header", PLACED("id\tText\n1\ta\n"), "1#[id,Text];2[1,a]a;", { ROWS, TSV }, { .lines = 2, .pairs = 1 } },
        { "in any place",
          PLACED("review\tsentiment\na\t1\n"),
          "1#[review,sentiment];2[a,1]a;",
          { ROWS, TSV },
          { .lines = 2, .pairs = 1 } },
        { "an explicit header",
          PLACED("x\ty\n1\ta\n"),
          "1#[x,y];2[1,a]a;",
          { ROWS, TSV, .header = 1 },
          { .lines = 2, .pairs = 1 } },
        { "by number", PLACED("a\tx\n"), "1[a,x]a;", { ROWS, TSV, .text = "1" }, { .lines = 1, .pairs = 1 } },
        { "JSONL",
          PLACED("{\"text\":\"a\", \"n\":1}\n\n{\"text\":null}\n"),
          "1[{\"text\":\"a\", \"n\":1}]a;3[{\"text\":null}];",
          { ROWS, JSONL },
          { .lines = 3, .pairs = 2, .empty = 1, .first_empty = 3 } },
    };
    qkv_read_stats read = { 0 };
    for (const row *r = tables; r < tables + sizeof tables / sizeof *tables; r++) {
        write_bytes(path, r->text, r->size);
        see_nothing();
        if (qkv_read_labelled(path, &r->o, see_row, &seen, &read)) fail_msg("%s: %s", r->name, qkv_error());
        if (strcmp(seen.text, r->given)) fail_msg("%s: \"%s\", expected \"%s\"", r->name, seen.text, r->given);
        same_read(r->name, &read, &r->read);
    }
    write_bytes(path, PLACED("id,title,body\n1,a,b\n"));
    assert_int_equal(qkv_read_labelled(path, &(qkv_labelled_opts){ ROWS, CSV }, see_row, &seen, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "the header has no column \"text\", it has: id,title,body"));
}

/* A table that is longer than what is looked at, with a row across its end. */
static void a_long_table_with_semicolons(void **state)
{
    (void)state;
    size_t given = 0;
    FILE *f = fopen(path, "wb");
    fputs("label;text\n", f);
    for (int i = 0; i < 20000; i++) fprintf(f, "a;\"line\nand, %d\"\n", i % 10);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(qkv_read_labelled(path, &(qkv_labelled_opts){ CSV }, count_bytes, &given, NULL), QKV_OK);
    assert_int_equal(given, 20000 * 11);
}

/* ---- what is refused ---- */

typedef struct bad_row {
    const char *name;
    const char *text;
    size_t size;
    const char *words;
    qkv_labelled_opts o;
} bad_row;

static const bad_row bad_rows[] = {
    { "no TAB", PLACED("a\n"), "file: line 1 has no TAB", { TSV } },
    { "no TAB later", PLACED("a\tb\nc\n"), "file: line 2 has 1 column, but line 1 has 2", { TSV } },
    { "a pair among texts", PLACED("a\tb\nc\td\te\n"), "file: line 2 has 3 columns, but line 1 has 2", { TSV } },
    { "too many TABs", PLACED("a\tb\tc\td\n"), "file: line 1 has 4 columns, expected label TAB text", { TSV } },
    { "strict: an empty line", PLACED("a\tb\n\n"), "file: line 2 has 1 column", { TSV, .strict = 1 } },
    { "strict: an empty label", PLACED("a\tb\n\tc\n"), "file: line 2: the label is empty", { TSV, .strict = 1 } },
    { "strict: a blank label", PLACED("a\tb\n \tc\n"), "file: line 2: the label is empty", { TSV, .strict = 1 } },
    { "strict: a null label",
      PLACED("{\"label\":null,\"text\":\"a\"}\n"),
      "is expected in the member \"label\"",
      { JSONL, .strict = 1 } },
    { "strict: no label",
      PLACED("{\"label\":1,\"text\":\"a\"}\n{\"text\":\"a\"}\n"),
      "file: line 2: there is no member \"label\"",
      { JSONL, .strict = 1 } },
    { "no label at all",
      PLACED("\n{\"text\":\"a\"}\n"),
      "file: line 2: there is no member \"label\", nor in any other",
      { JSONL } },
    { "semicolons that are uneven", PLACED("a;b\nc;d;e\n"), "file: line 1 has no TAB", { TSV } },
    { "a label with a carriage return",
      PLACED("a\rb\tc\n"),
      "file: line 1: the label has a TAB, a newline or a NUL in it: is that the label column?",
      { TSV } },
    { "a NUL", PLACED("a\tb\nc\td\0e\n"), "file: line 2: byte 4 is NUL: not a text file, or UTF-16", { TSV } },
    { "a NUL in quotes", PLACED("label,text\na,\"b\n\0\"\n"), "file: line 3: byte 1 is NUL", { CSV } },
    { "not UTF-8", PLACED("a\tb\nc\t\xFF\n"), "file: line 2: byte 3 is not UTF-8", { TSV, .strict = 1 } },
    { "no such column",
      PLACED("a\tb\nc\td\n"),
      "line 1: the header has no column \"text\", it has: a,b",
      { TSV, .label = "a" } },
    { "a column beyond", PLACED("a\tb\n"), "file: line 1 has 2 columns: there is no column 3", { TSV, .label = "3" } },
    { "one column for both",
      PLACED("a\tb\n"),
      "file: line 1: label and text need a column each",
      { TSV, .label = "1", .text = "1" } },
    { "one column", PLACED("a\n"), "file: line 1: label and text need a column each", { TSV, .label = "1" } },
    { "no header", PLACED(""), "file: it is empty, a header line is expected", { TSV, .label = "a" } },
    { "a column twice",
      PLACED("label\ttext\tlabel\n"),
      "line 1: the header has two columns \"label\"",
      { TSV, .text = "text" } },
    { "a short line",
      PLACED("text\tlabel\na\tb\nc\n"),
      "file: line 3 has 1 column, but line 1 has 2",
      { TSV, .text = "text" } },
    { "CSV without header", PLACED(""), "file: it is empty, a header line is expected", { CSV } },
    { "CSV without the label", PLACED("text,x\na,b\n"), "line 1: the header has no column \"label\", it has: text,x", { CSV } },
    { "a column in another case",
      PLACED("Nr,Text , Label\na,b,c\n"),
      "line 1: the header has no column \"label\": did you mean \" Label\"?",
      { CSV, .label = "label" } },
    { "CSV without the pair", PLACED("label,text\na,b\n"), "no column \"other\"", { CSV, .pair = "other" } },
    { "an open quote", PLACED("label,text\na,\"b\nc,d\ne,f\n"), "file: line 2 opens a quote that is never closed", { CSV } },
    { "a record over two lines", PLACED("label,text\na,\"b\nc\",d\ne,\""), "file: line 2 has 3 columns", { CSV } },
    { "an open quote further on", PLACED("label,text\na,\"b\nc\"\ne,\""), "file: line 4 opens a quote", { CSV } },
    { "a doubled quote closes nothing", PLACED("label,text\na,\"b\"\"\n"), "file: line 2 opens a quote", { CSV } },
    { "an open quote in the header", PLACED("label,\"text\na,b\n"), "file: line 1 opens a quote", { CSV } },
    { "a quote inside", PLACED("label,text\na,b\na,5\" wide\n"), "file: line 3: a quote inside a field", { CSV } },
    { "text after a quote", PLACED("label,text\na,\"b\nc\"d\n"), "file: line 3: a closing quote, and no separator", { CSV } },
    { "too many fields", PLACED("label,text\na,b\nc,d,e\n"), "file: line 3 has 3 columns, but line 1 has 2", { CSV } },
    { "too few fields after a long one", PLACED("label,text\na,\"b\n\n\"\nc\n"), "file: line 5 has 1 column", { CSV } },
    { "a label of lines", PLACED("label,text\n\"a\nb\",c\n"), "file: line 2: the label has a TAB, a newline", { CSV } },
    { "CSV that is not UTF-8", PLACED("label,text\na,\"b\nc\xFF\"\n"), "line 3: byte 2 is not UTF-8", { CSV, .strict = 1 } },
    { "not JSON", PLACED("{\"label\":1,\"text\":\"a\"}\n{\"label\":1,\n"), "file: line 2, byte 11: not JSON", { JSONL } },
    { "an array", PLACED("[1]\n"), "file: line 1: not a JSON object", { JSONL } },
    { "a string", PLACED("\n\"text\"\n"), "file: line 2: not a JSON object", { JSONL } },
    { "two objects", PLACED("{\"label\":1,\"text\":\"a\"} {}\n"), "file: line 1, byte 23: not JSON", { JSONL } },
    { "a member twice", PLACED("{\"label\":1,\"text\":\"a\",\"text\":\"b\"}\n"), "file: line 1, byte 23: not JSON", { JSONL } },
    { "no text",
      PLACED("{\"label\":\"a\",\"body\":\"b\"}\n"),
      "file: line 1: there is no member \"text\", it has: label, body",
      { JSONL } },
    { "no pair", PLACED("{\"label\":1,\"text\":\"a\"}\n"), "file: line 1: there is no member \"b\"", { JSONL, .pair = "b" } },
    { "a text that is none",
      PLACED("{\"label\":1,\"text\":7}\n"),
      "line 1: text is expected in the member \"text\"",
      { JSONL } },
    { "a label that is none",
      PLACED("{\"label\":1.5,\"text\":\"a\"}\n"),
      "true or false is expected in the member \"label\"",
      { JSONL } },
    { "a JSON label with a TAB", PLACED("{\"label\":\"a\\tb\",\"text\":\"a\"}\n"), "line 1: the label has a TAB", { JSONL } },
    { "a JSON label with a NUL", PLACED("{\"label\":\"a\\u0000\",\"text\":\"a\"}\n"), "line 1: the label has", { JSONL } },
    { "half a character", PLACED("{\"label\":1,\"text\":\"\\ud800\"}\n"), "file: line 1, byte 19: not JSON", { JSONL } },
    { "damaged gzip", PLACED("\x1F\x8B\x08z"), "file: damaged gzip", { TSV } },
};

static void what_is_refused(void **state)
{
    (void)state;
    for (const bad_row *r = bad_rows; r < bad_rows + sizeof bad_rows / sizeof *bad_rows; r++) {
        write_bytes(path, r->text, r->size);
        see_nothing();
        qkv_status status = qkv_read_labelled(path, &r->o, see_labelled, &seen, NULL);
        if (status != QKV_FORMAT || !strstr(qkv_error(), r->words))
            fail_msg("%s: %d, \"%s\", expected \"%s\"", r->name, (int)status, status ? qkv_error() : seen.text, r->words);
    }
}

/* A forgotten quote does not take the memory of the file. */
static void a_quote_without_end(void **state)
{
    (void)state;
    enum { PIECE = 1 << 20 };
    char *piece = malloc(PIECE);
    memset(piece, 'x', PIECE);
    piece[PIECE - 1] = '\n';
    gzFile f = gzopen(path, "wb1");
    assert_int_equal(gzputs(f, "label,text\na,b\nc,\""), 18);
    for (int i = 0; i < 65; i++) assert_int_equal(gzwrite(f, piece, PIECE), PIECE);
    assert_int_equal(gzclose(f), Z_OK);
    assert_int_equal(qkv_read_labelled(path, &(qkv_labelled_opts){ CSV }, see_labelled, &seen, NULL), QKV_LIMIT);
    assert_non_null(strstr(qkv_error(), "file: line 3 opens a quote"));
    free(piece);
}

static void what_is_not_there(void **state)
{
    (void)state;
    qkv_read_stats read = { .lines = 99 };
    assert_int_equal(qkv_read_labelled(path, NULL, see_labelled, &seen, &read), QKV_IO);
    assert_non_null(strstr(qkv_error(), "file: cannot open"));
    assert_int_equal(read.lines, 0);
    assert_int_equal(qkv_read_labelled(NULL, NULL, see_labelled, &seen, NULL), QKV_USAGE);
    assert_int_equal(qkv_read_labelled(path, NULL, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv_read_labelled(path, &(qkv_labelled_opts){ .format = 9 }, see_labelled, &seen, NULL), QKV_USAGE);
    qkv_read_stats none = { .size = 12 }, older = { .size = offsetof(qkv_read_stats, pairs), .pairs = 99 };
    assert_int_equal(qkv_read_labelled(path, NULL, see_labelled, &seen, &none), QKV_USAGE);
    assert_int_equal(qkv_read_documents(path, QKV_DOCUMENT_LINES, 0, see_document, &seen, &none), QKV_USAGE);
    write_bytes(path, PLACED("a\nb\n"));
    see_nothing();
    assert_int_equal(qkv_read_documents(path, QKV_DOCUMENT_LINES, 0, see_document, &seen, &older), QKV_OK);
    assert_true(older.lines == 2 && older.pairs == 99);
    const qkv_labelled_opts colons = { WHOLE, CSV, .column_separator = ":" };
    write_bytes(path, PLACED("label:text\n"));
    assert_int_equal(qkv_read_labelled(path, &colons, see_labelled, &seen, NULL), QKV_USAGE);
    unlink(path);
    assert_int_equal(qkv_read_documents(path, QKV_DOCUMENT_LINES, 0, see_document, &seen, &read), QKV_IO);
    assert_int_equal(qkv_read_documents(NULL, QKV_DOCUMENT_LINES, 0, see_document, &seen, NULL), QKV_USAGE);
    assert_int_equal(qkv_read_documents(path, QKV_DOCUMENT_LINES, 0, NULL, NULL, NULL), QKV_USAGE);
    assert_int_equal(qkv_read_documents(path, (qkv_document_kind)3, 0, see_document, &seen, NULL), QKV_USAGE);
}

/* ---- documents ---- */

typedef struct document_row {
    const char *name;
    const char *text;
    size_t size;
    qkv_document_kind kind;
    const char *given;
    qkv_read_stats read;
} document_row;

static const document_row document_rows[] = {
    { "lines",
      PLACED("a b\r\n\n c\n\t\nd"),
      QKV_DOCUMENT_LINES,
      "a b; c;d;",
      { .lines = 5, .pairs = 3, .empty = 2, .first_empty = 2 } },
    { "a byte order mark", PLACED(BOM "a\n"), QKV_DOCUMENT_LINES, "a;", { .lines = 1, .pairs = 1 } },
    { "UTF-16",
      PLACED("\xFF\xFE"
             "a\0\n\0b\0"),
      QKV_DOCUMENT_FILES,
      "a\nb;",
      { .lines = 1, .pairs = 1 } },
    { "paragraphs", PLACED("a\r\nb\n\nc\n"), QKV_DOCUMENT_PARAGRAPHS, "a\nb;c;", { .lines = 4, .pairs = 2 } },
    { "blank lines around", PLACED(BOM "\n \na\n \r\n\n\nb\n\n"), QKV_DOCUMENT_PARAGRAPHS, "a;b;", { .lines = 8, .pairs = 2 } },
    { "white space stays", PLACED(" a\n\tb \n"), QKV_DOCUMENT_PARAGRAPHS, " a\n\tb ;", { .lines = 2, .pairs = 1 } },
    { "blank lines alone", PLACED("\n\n"), QKV_DOCUMENT_PARAGRAPHS, "", { .lines = 2 } },
    { "a whole file", PLACED("a\r\n\nb\n"), QKV_DOCUMENT_FILES, "a\r\n\nb\n;", { .lines = 1, .pairs = 1 } },
    { "a whole file with a mark",
      PLACED(BOM "\xFF\n\xFF"),
      QKV_DOCUMENT_FILES,
      "\xEF\xBF\xBD\n\xEF\xBF\xBD;",
      { .lines = 1, .pairs = 1, .repaired = 2, .first_repaired = 1 } },
    { "an empty file", PLACED(""), QKV_DOCUMENT_FILES, "", { .lines = 1, .empty = 1, .first_empty = 1 } },
    { "an empty file of lines", PLACED(""), QKV_DOCUMENT_LINES, "", { 0 } },
    { "repaired lines",
      PLACED("a\n\n\xC3\n"),
      QKV_DOCUMENT_PARAGRAPHS,
      "a;\xEF\xBF\xBD;",
      { .lines = 3, .pairs = 2, .repaired = 1, .first_repaired = 3 } },
};

static void check_document(const document_row *r, void (*write)(const char *, const char *, size_t))
{
    qkv_read_stats read = { 0 };
    write(path, r->text, r->size);
    see_nothing();
    if (qkv_read_documents(path, r->kind, 0, see_document, &seen, &read)) fail_msg("%s: %s", r->name, qkv_error());
    if (strcmp(seen.text, r->given)) fail_msg("%s: \"%s\", expected \"%s\"", r->name, seen.text, r->given);
    same_read(r->name, &read, &r->read);
    if (!r->read.repaired) return;
    assert_int_equal(qkv_read_documents(path, r->kind, 1, see_document, &seen, NULL), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "is not UTF-8"));
}

static void what_documents_give(void **state)
{
    (void)state;
    for (const document_row *r = document_rows; r < document_rows + sizeof document_rows / sizeof *document_rows; r++) {
        check_document(r, write_bytes);
        check_document(r, write_gzip);
    }
}

/* ---- the caller's function ---- */

static void a_status_is_handed_on(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        qkv_labelled_opts o;
    } stopped[] = {
        { "a\tb\nc\td\ne\tf\n", { TSV } },
        { "a\nb\nc\n", { TSV, .no_label = 1 } },
        { "label,text\na,b\nc,d\ne,f\n", { CSV } },
        { "{\"label\":1,\"text\":\"a\"}\n{\"label\":1,\"text\":\"a\"}\n{\"label\":1,\"text\":\"a\"}\n", { JSONL } },
    };
    qkv_read_stats read = { 0 };
    for (size_t i = 0; i < sizeof stopped / sizeof *stopped; i++) {
        write_bytes(path, stopped[i].text, strlen(stopped[i].text));
        see_nothing();
        seen.stop_at = 2;
        assert_int_equal(qkv_read_labelled(path, &stopped[i].o, see_labelled, &seen, &read), QKV_FAILURE);
        assert_int_equal(seen.calls, 2);
        assert_int_equal(read.pairs, 1);
    }
    for (qkv_document_kind kind = QKV_DOCUMENT_LINES; kind <= QKV_DOCUMENT_FILES; kind++) {
        write_bytes(path, PLACED("a\n\nb\n\nc\n"));
        see_nothing();
        seen.stop_at = kind == QKV_DOCUMENT_FILES ? 1 : 2;
        assert_int_equal(qkv_read_documents(path, kind, 0, see_document, &seen, &read), QKV_FAILURE);
        assert_int_equal(seen.calls, seen.stop_at);
    }
    unlink(path);
    write_reviews();
    see_nothing();
    seen.stop_at = 2;
    assert_int_equal(qkv_read_labelled(folder, NULL, see_labelled, &seen, NULL), QKV_FAILURE);
    assert_int_equal(seen.calls, 2);
}

/* ---- failing calls ---- */

static const char *const failing_names[] = { "x.tsv", "x.csv.gz", "x.jsonl", "y.csv" };

static void write_for_failures(void)
{
    char at[128];
    put_file("x.tsv", "a\tb\nc\td\xFF\n");
    put_file("x.jsonl", "{\"label\":1,\"text\":\"a\"}\n");
    put_file("y.csv", "sep=;\nlabel;text\na ;\"b\"\n");
    snprintf(at, sizeof at, "%s/x.csv.gz", folder);
    write_gzip(at, PLACED("label,text\na,\"b\nc\"\n"));
    write_reviews();
}

static qkv_status read_everything(void)
{
    char at[128];
    qkv_status status = qkv_read_labelled(folder, NULL, see_labelled, &seen, NULL);
    for (size_t i = 0; i < sizeof failing_names / sizeof *failing_names && !status; i++) {
        snprintf(at, sizeof at, "%s/%s", folder, failing_names[i]);
        status = qkv_read_labelled(at, NULL, see_labelled, &seen, NULL);
        if (!status) status = qkv_read_labelled(at, &(qkv_labelled_opts){ WHOLE, .rows = 1 }, see_row, &seen, NULL);
        for (qkv_document_kind kind = QKV_DOCUMENT_LINES; kind <= QKV_DOCUMENT_FILES && !status; kind++)
            status = qkv_read_documents(at, kind, 0, see_document, &seen, NULL);
    }
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    write_for_failures();
    see_nothing();
    assert_true(each_allocation_fails(read_everything) > 30);
}

static void any_file_call_may_fail(void **state)
{
    (void)state;
    write_for_failures();
    see_nothing();
    assert_int_equal(read_everything(), QKV_OK);
    int wanted = seen.calls, harmless = 0;
    for (long n = 0;; n++) {
        see_nothing();
        use_failing_files(n);
        qkv_status status = read_everything();
        bool failed = failing.failed;
        assert_int_equal(failing.open, 0);
        qkv__set_files(NULL);
        if (status != QKV_IO && status != QKV_OK) fail_msg("call %ld: %s", n, qkv_error());
        if (!status) assert_int_equal(seen.calls, wanted); /* no text was passed over */
        if (!failed) break;
        harmless += status == QKV_OK;
    }
    /* Closing what was read: 4 folders that were asked whether they are some, and listed; 5 files in them; 4 files 5 times. */
    assert_int_equal(harmless, 4 + 4 + 5 + 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(what_files_give),
        TEST(formats_by_name),
        TEST(a_megabyte_in_each_format),
        TEST(what_a_folder_gives),
        TEST(a_file_of_a_folder_is_named),
        TEST(folders_that_are_refused),
        TEST(a_file_without_end),
        TEST(rows_with_their_columns),
        TEST(a_long_table_with_semicolons),
        TEST(what_is_refused),
        TEST(a_quote_without_end),
        TEST(what_is_not_there),
        TEST(what_documents_give),
        TEST(a_status_is_handed_on),
        TEST(memory_runs_out),
        TEST(any_file_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
