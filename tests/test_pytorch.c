/* test_pytorch.c: weights in PyTorch's files: every type, strides, folders of one file and of several; and files that are
 * malformed or malicious in more than 300 ways, each of which must give its status, and nothing of which may run. */
#include <qkv/qkv.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing.h"
#include "folder.h"
#include "io/pytorch.h"
#include "tensor/types.h"

#define BIN QKV_GOLDEN "/bin/"

typedef struct bytes {
    unsigned char at[65536];
    size_t n;
} bytes;

static void put(bytes *b, const void *more, size_t n)
{
    assert_true(n <= sizeof b->at - b->n);
    memcpy(b->at + b->n, more, n);
    b->n += n;
}

static void put_number(bytes *b, uint64_t number, int size)
{
    for (int i = 0; i < size; i++) put(b, &(unsigned char){ (unsigned char)(number >> 8 * i) }, 1);
}

static bytes read_bytes(const char *path)
{
    static bytes b;
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    b.n = fread(b.at, 1, sizeof b.at, f);
    fclose(f);
    return b;
}

static const char *put_file(const char *name, const void *at, size_t n)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(at, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static qkv_status read_bin(const bytes *b)
{
    qkv__safetensors file;
    qkv_status status = qkv__pytorch_read(put_file("file.bin", b->at, b->n), &file);
    if (!status) qkv__safetensors_free(&file);
    else assert_true(!file.n && !file.tensors && !file.made && !file.file.data);
    return status;
}

/* ---- files that PyTorch wrote ---- */

static void has_numbers(const qkv__safetensors *s, const char *name, const char *dtype, int n, const double *expected)
{
    const qkv__stored *t = qkv__safetensors_find(s, name);
    if (!t) fail_msg("there is no %s", name);
    assert_string_equal(t->dtype, dtype);
    assert_int_equal(t->count, n);
    for (int i = 0; i < n; i++) {
        float got;
        qkv__safetensors_decode_some(t, i, 1, &got);
        if ((double)got != expected[i]) fail_msg("%s[%d] is %g, not %g", name, i, (double)got, expected[i]);
    }
}

static void has_whole_numbers(const qkv__safetensors *s, const char *name, const char *dtype, int size)
{
    const qkv__stored *t = qkv__safetensors_find(s, name);
    if (!t) fail_msg("there is no %s", name);
    assert_string_equal(t->dtype, dtype);
    assert_int_equal(t->count, 6);
    for (int i = 0; i < 6; i++) {
        int64_t got = 0;
        memcpy(&got, t->data + i * size, (size_t)size);
        assert_int_equal(got, strcmp(dtype, "BOOL") ? i : i % 2);
    }
}

static bool lies_in_file(const qkv__safetensors *s, const char *name)
{
    const qkv__stored *t = qkv__safetensors_find(s, name);
    return t->data >= s->file.data && t->data + t->count <= s->file.data + s->file.size;
}

static void check_types(const char *path)
{
    qkv__safetensors s;
    const double halves[] = { -1, -0.5, 0, 0.5, 1, 1.5 }, turned[] = { -1, 0.5, -0.5, 1, 0, 1.5 };
    if (qkv__pytorch_read(path, &s)) fail_msg("%s", qkv_error());
    assert_int_equal(s.n, 20);
    has_numbers(&s, "f32", "F32", 6, halves);
    has_numbers(&s, "f16", "F16", 6, halves);
    has_numbers(&s, "bf16", "BF16", 6, halves);
    has_numbers(&s, "f64", "F64", 6, halves);
    has_whole_numbers(&s, "i64", "I64", 8);
    has_whole_numbers(&s, "i32", "I32", 4);
    has_whole_numbers(&s, "i16", "I16", 2);
    has_whole_numbers(&s, "i8", "I8", 1);
    has_whole_numbers(&s, "u8", "U8", 1);
    has_whole_numbers(&s, "bool", "BOOL", 1);
    has_numbers(&s, "tied", "F32", 6, halves);
    has_numbers(&s, "turned", "F32", 6, turned);
    has_numbers(&s, "row", "F32", 3, halves + 3);
    has_numbers(&s, "column", "F32", 2, (double[]){ -0.5, 1 });
    has_numbers(&s, "repeated", "F32", 3, (double[]){ 7, 7, 7 });
    has_numbers(&s, "parameter", "F32", 3, (double[]){ 1, 1, 1 });
    has_numbers(&s, "scalar", "F32", 1, (double[]){ 5 });
    has_numbers(&s, "empty", "F32", 0, NULL);
    has_numbers(&s, "narrow", "F32", 4, (double[]){ 0, 1, 2, 3 });
    double swapped[24];
    for (int i = 0; i < 24; i++) swapped[i] = i / 6 + i / 3 % 2 * 12 + i % 3 * 4; /* (4, 2, 3) of (2, 3, 4) */
    has_numbers(&s, "swapped", "F16", 24, swapped);
    assert_int_equal(qkv__safetensors_find(&s, "swapped")->shape[0], 4);
    assert_int_equal(qkv__safetensors_find(&s, "scalar")->ndim, 0);
    assert_true(lies_in_file(&s, "f32") && lies_in_file(&s, "row") && lies_in_file(&s, "narrow") && lies_in_file(&s, "i64"));
    assert_false(lies_in_file(&s, "turned") || lies_in_file(&s, "column"));
    assert_ptr_equal(qkv__safetensors_find(&s, "tied")->data, qkv__safetensors_find(&s, "f32")->data);
    assert_non_null(qkv__safetensors_floats(qkv__safetensors_find(&s, "f32"))); /* used where it lies */
    qkv__safetensors_free(&s);
}

static void types(void **state)
{
    (void)state;
    check_types(BIN "dtypes.bin");
    check_types(BIN "protocol4.bin");
}

static void older_files_are_told(void **state)
{
    (void)state;
    qkv__safetensors s;
    assert_int_equal(qkv__pytorch_read(BIN "old.bin", &s), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "old.bin: written in the way of PyTorch before 1.6"));
}

/* ---- folders ---- */

static void copy_file(const char *from, const char *to)
{
    bytes b = read_bytes(from);
    put_file(to, b.at, b.n);
}

static void same_weights(const char *family)
{
    char path[512];
    snprintf(path, sizeof path, QKV_GOLDEN "/families/%s", family);
    qkv_model *expected = qkv_model_load(path, NULL), *m = qkv_model_load(folder, NULL);
    if (!expected || !m) fail_msg("%s", qkv_error());
    const qkv_params *a = qkv_model_params(expected), *b = qkv_model_params(m);
    assert_int_equal(qkv_params_size(a), qkv_params_size(b));
    for (int i = 0; i < qkv_params_size(a); i++) {
        const qkv_tensor *x = qkv_params_at(a, i), *y = qkv_params_at(b, i);
        assert_int_equal(qkv_tensor_count(x), qkv_tensor_count(y));
        float *values[2] = { malloc(sizeof(float) * (size_t)qkv_tensor_count(x)),
                             malloc(sizeof(float) * (size_t)qkv_tensor_count(x)) };
        qkv__widen(x, 0, qkv_tensor_count(x), values[0]);
        qkv__widen(y, 0, qkv_tensor_count(y), values[1]);
        assert_memory_equal(values[0], values[1], sizeof(float) * (size_t)qkv_tensor_count(x));
        free(values[0]);
        free(values[1]);
    }
    qkv_model_free(expected);
    qkv_model_free(m);
}

static void folder_of_one_file(void **state)
{
    (void)state;
    copy_file(QKV_GOLDEN "/families/bert_classify/config.json", "config.json");
    copy_file(BIN "bert_classify/pytorch_model.bin", "pytorch_model.bin");
    same_weights("bert_classify");
    put_file("model.safetensors", "no", 2); /* which is read where both are */
    assert_null(qkv_model_load(folder, NULL));
    assert_non_null(strstr(qkv_error(), "model.safetensors: not a safetensors file"));
    unlink(in_folder("model.safetensors"));
    unlink(in_folder("pytorch_model.bin"));
}

static void folder_of_several_files(void **state)
{
    (void)state;
    const char *const files[] = { "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin",
                                  "pytorch_model.bin.index.json" };
    copy_file(QKV_GOLDEN "/families/qwen2/config.json", "config.json");
    for (int i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, BIN "qwen2/%s", files[i]);
        copy_file(path, files[i]);
    }
    same_weights("qwen2");
    copy_file(in_folder(files[0]), files[1]);
    assert_null(qkv_model_load(folder, NULL));
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    put_file(files[2], "{\"weight_map\": {\"a\": \"a.safetensors\"}}", 38);
    assert_null(qkv_model_load(folder, NULL));
    assert_non_null(strstr(qkv_error(), "expected the name of a .bin file in the same folder"));
    for (int i = 0; i < 3; i++) unlink(in_folder(files[i]));
}

/* ---- archives that nobody would write ---- */

typedef struct zipped {
    bytes file, directory;
    int n;
} zipped;

static void zip_begin(zipped *z) { z->file.n = z->directory.n = 0, z->n = 0; }

static void zip_put(zipped *z, const char *name, const void *data, size_t size)
{
    size_t begin = z->file.n, length = strlen(name);
    put(&z->file, "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
    put_number(&z->file, size, 4);
    put_number(&z->file, size, 4);
    put_number(&z->file, length, 4); /* and no extra field */
    put(&z->file, name, length);
    put(&z->file, data, size);
    put(&z->directory, "PK\1\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
    put_number(&z->directory, size, 4);
    put_number(&z->directory, size, 4);
    put_number(&z->directory, length, 2);
    put(&z->directory, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    put_number(&z->directory, begin, 4);
    put(&z->directory, name, length);
    z->n++;
}

static const bytes *zip_end(zipped *z)
{
    size_t begin = z->file.n;
    put(&z->file, z->directory.at, z->directory.n);
    put(&z->file, "PK\5\6\0\0\0\0", 8);
    put_number(&z->file, (uint64_t)z->n, 2);
    put_number(&z->file, (uint64_t)z->n, 2);
    put_number(&z->file, z->directory.n, 4);
    put_number(&z->file, begin, 4);
    put_number(&z->file, 0, 2);
    return &z->file;
}

/* An archive with this pickle, and storage 0 of 24 bytes. */
static const bytes *with_pickle(const void *pickle, size_t n)
{
    static zipped z;
    zip_begin(&z);
    zip_put(&z, "a/data.pkl", pickle, n);
    zip_put(&z, "a/data/0", "abcdefghijklmnopqrstuvwx", 24);
    return zip_end(&z);
}

/* The parts of a pickle as people write them: MARK STORAGE ... */
#define STORAGE_OF(type, key, count) "((X\7\0\0\0storagectorch\n" type "\nX\1\0\0\0" key "X\3\0\0\0cpuK" count "tQ"
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"
#define NAMED "}X\1\0\0\0w"
#define OF_SIX REBUILD STORAGE_OF("FloatStorage", "0", "\6")
#define SIX_FLOATS NAMED OF_SIX
#define REST "\x89}tRs."

static const struct pickle_case {
    const char *what, *pickle;
    size_t n;
    qkv_status status;
    const char *said;
} pickles[] = {
#define CASE(what, pickle, status, said) { what, pickle, sizeof pickle - 1, status, said },
#include "pickles.def"
#undef CASE
};
enum { PICKLES = sizeof pickles / sizeof *pickles };

static int refused; /* files, by all tests */

static void strange_pickles(void **state)
{
    (void)state;
    for (int i = 0; i < PICKLES; i++) {
        const struct pickle_case *c = &pickles[i];
        qkv_status status = read_bin(with_pickle(c->pickle, c->n));
        if (status != c->status) fail_msg("%s: status %d, not %d: %s", c->what, status, c->status, qkv_error());
        if (status && !strstr(qkv_error(), c->said)) fail_msg("%s: \"%s\" lacks \"%s\"", c->what, qkv_error(), c->said);
        refused += status != QKV_OK;
    }
}

/* A program of the shell in a pickle leaves no trace. */
static void nothing_is_run(void **state)
{
    (void)state;
    char command[256];
    static bytes pickle;
    snprintf(command, sizeof command, "touch %s", in_folder("ran"));
    put(&pickle, "cposix\nsystem\n(X", 16);
    put_number(&pickle, strlen(command), 4);
    put(&pickle, command, strlen(command));
    put(&pickle, "tR.", 3);
    copy_file(QKV_GOLDEN "/families/bert_classify/config.json", "config.json");
    const bytes *b = with_pickle(pickle.at, pickle.n);
    put_file("pytorch_model.bin", b->at, b->n);
    assert_null(qkv_model_load(folder, NULL));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "/pytorch_model.bin: byte 40: it names posix.system"));
    assert_int_not_equal(access(in_folder("ran"), F_OK), 0);
    unlink(in_folder("pytorch_model.bin"));
    refused++;
}

/* ---- archives ---- */

#define GOOD "\x80\2" SIX_FLOATS "K\0K\6\x85K\1\x85" REST

static void refuses_archive(const char *what, const bytes *b, qkv_status status, const char *said)
{
    qkv_status got = read_bin(b);
    if (got != status) fail_msg("%s: status %d, not %d: %s", what, got, status, qkv_error());
    if (!strstr(qkv_error(), said)) fail_msg("%s: \"%s\" lacks \"%s\"", what, qkv_error(), said);
    refused++;
}

/* The archive with a number of its directory's record changed; place is counted from the directory's start. */
static bytes changed(size_t place, uint64_t number, int size)
{
    bytes b = *with_pickle(GOOD, sizeof GOOD - 1);
    size_t directory = b.n - 22 - (46 + 10) - (46 + 8);
    for (int i = 0; i < size; i++) b.at[directory + place + (size_t)i] = (unsigned char)(number >> 8 * i);
    return b;
}

static void strange_directories(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t place;
        uint64_t number;
        int size;
        qkv_status status;
        const char *said;
    } cases[] = {
        { "compressed", 10, 8, 2, QKV_UNSUPPORTED, "entry \"a/data.pkl\" is compressed" },
        { "encrypted", 8, 1, 2, QKV_UNSUPPORTED, "encrypted" },
        { "on another disk", 34, 1, 2, QKV_UNSUPPORTED, "several parts" },
        { "larger unpacked", 24, 1 << 30, 4, QKV_FORMAT, "longer than the file" },
        { "larger packed", 20, 1 << 30, 4, QKV_FORMAT, "longer than the file" },
        { "64 bits without a field", 24, 0xFFFFFFFF, 4, QKV_FORMAT, "lacks its 64-bit numbers" },
        { "a place without an entry", 42, 7, 4, QKV_FORMAT, "is not where the directory says" },
        { "a place beyond", 42, 0x7FFFFFFF, 4, QKV_FORMAT, "is not where the directory says" },
        { "another's place", 56 + 42, 0, 4, QKV_FORMAT, "another name than in the directory" },
        { "a name too long", 28, 0xFFFF, 2, QKV_FORMAT, "is cut" },
        { "a comment too long", 32, 0xFFFF, 2, QKV_FORMAT, "is cut" },
        { "another name", 46, 'b', 1, QKV_FORMAT, "another name than in the directory" },
        { "no sign", 0, 'Q', 1, QKV_FORMAT, "an entry of the directory is expected" },
        { "a disk in the end", 110 + 4, 1, 2, QKV_UNSUPPORTED, "several parts" },
        { "more entries", 110 + 10, 3, 2, QKV_FORMAT, "" },
        { "many entries", 110 + 10, 0xFFFF, 2, QKV_FORMAT, "more entries than" },
        { "fewer entries", 110 + 10, 1, 2, QKV_FORMAT, "more bytes than entries" },
        { "a longer directory", 110 + 12, 111, 4, QKV_FORMAT, "not where it is said" },
        { "another directory", 110 + 16, 0, 4, QKV_FORMAT, "not where it is said" },
        { "no end", 110 + 2, 0, 1, QKV_FORMAT, "no directory at its end" },
        { "a comment", 110 + 20, 1, 2, QKV_FORMAT, "no directory at its end" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bytes b = changed(cases[i].place, cases[i].number, cases[i].size);
        refuses_archive(cases[i].what, &b, cases[i].status, cases[i].said);
    }
    bytes b = changed(24, sizeof GOOD + 4, 4); /* over the start of the other entry */
    memcpy(b.at + b.n - 22 - 110 + 20, b.at + b.n - 22 - 110 + 24, 4);
    refuses_archive("overlapping", &b, QKV_FORMAT, "overlaps another");
}

static void strange_archives(void **state)
{
    (void)state;
    static zipped z;
    zip_begin(&z);
    zip_put(&z, "a/other", GOOD, sizeof GOOD - 1);
    refuses_archive("no pickle", zip_end(&z), QKV_FORMAT, "it has no data.pkl");
    zip_begin(&z);
    zip_put(&z, "a/data.pkl", GOOD, sizeof GOOD - 1);
    zip_put(&z, "b/data.pkl", GOOD, sizeof GOOD - 1);
    refuses_archive("two pickles", zip_end(&z), QKV_FORMAT, "two pickles");
    zip_begin(&z);
    zip_put(&z, "a/data.pkl", GOOD, sizeof GOOD - 1);
    zip_put(&z, "a/data.pkl", "}.", 2);
    refuses_archive("one name twice", zip_end(&z), QKV_FORMAT, "the same name");
    zip_begin(&z);
    zip_put(&z, "a/data.pkl", GOOD, sizeof GOOD - 1);
    zip_put(&z, "a/byteorder", "big", 3);
    refuses_archive("big-endian", zip_end(&z), QKV_UNSUPPORTED, "not little-endian");
    zip_begin(&z);
    zip_put(&z, "a/data.pkl", GOOD, sizeof GOOD - 1);
    zip_put(&z, "a/constants.pkl", "", 0);
    refuses_archive("TorchScript", zip_end(&z), QKV_UNSUPPORTED, "TorchScript");
    zip_begin(&z);
    refuses_archive("no entry", zip_end(&z), QKV_FORMAT, "does not start like a zip archive");
    z.file.n = 0;
    refuses_archive("no bytes", &z.file, QKV_FORMAT, "does not start like a zip archive");
}

/* Every start of a file, and every byte of its pickle and of its directory as another: none may crash, and what is refused is
 * refused by one of three statuses. Starts are all refused. */
static void cut_and_changed_files(void **state)
{
    (void)state;
    bytes whole = *with_pickle(GOOD, sizeof GOOD - 1), b = whole;
    for (b.n = 0; b.n < whole.n; b.n++) refuses_archive("cut", &b, QKV_FORMAT, "");
    int changed_and_refused = 0;
    b = whole;
    for (size_t i = 0; i < whole.n; i++)
        for (int k = 0; k < 3; k++) {
            b.at[i] = (unsigned char)(k == 0 ? ~whole.at[i] : k == 1 ? whole.at[i] ^ 1 : 0xFF);
            qkv_status status = read_bin(&b);
            assert_true(!status || status == QKV_FORMAT || status == QKV_UNSUPPORTED || status == QKV_LIMIT);
            changed_and_refused += status != QKV_OK;
            b.at[i] = whole.at[i];
        }
    refused += changed_and_refused;
    assert_true(changed_and_refused > 300 && refused > 1000);
}

static qkv_status read_types(void)
{
    qkv__safetensors s;
    qkv_status status = qkv__pytorch_read(BIN "dtypes.bin", &s);
    if (!status) qkv__safetensors_free(&s);
    return status;
}

static void memory_may_end(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(read_types) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),
        cmocka_unit_test(older_files_are_told),
        cmocka_unit_test(folder_of_one_file),
        cmocka_unit_test(folder_of_several_files),
        cmocka_unit_test(strange_pickles),
        cmocka_unit_test(nothing_is_run),
        cmocka_unit_test(strange_directories),
        cmocka_unit_test(strange_archives),
        cmocka_unit_test(cut_and_changed_files),
        cmocka_unit_test(memory_may_end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
