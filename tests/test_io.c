/* test_io.c: .npy and safetensors files: what is written is read back; no file and no machine is trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "failing.h"
#include "nn/params.h"
#include "io/safetensors.h"

#include <qkv/qkv.h>
#include "report/arrays.h"
#include "report/results.h"

#include <dirent.h>
#include <math.h>
#include <string.h>

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/qkv-io-XXXXXX");
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

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void put_file(const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static size_t get_file(char *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(bytes, 1, room, f);
    fclose(f);
    assert_true(size < room);
    return size;
}

/* Reads the file cut at every byte: each cut is a malformed file, and nothing is held afterwards. */
static void each_cut_is_refused(qkv_status (*read)(void))
{
    const qkv__memory table = { failing_alloc, failing_release };
    char whole[4096];
    size_t size = get_file(whole, sizeof whole);
    qkv_shutdown();
    qkv__set_memory(&table);
    failing = (struct failing){ .fail_at = -1 };
    for (size_t cut = 0; cut < size; cut++) {
        put_file(whole, cut);
        if (read() != QKV_FORMAT) fail_msg("cut at %zu: %s", cut, qkv_error());
        qkv_shutdown();
        assert_int_equal(failing.held, 0);
    }
    put_file(whole, size);
    assert_int_equal(read(), QKV_OK);
    put_file(whole, size + 1);
    assert_int_equal(read(), QKV_FORMAT);
    qkv_shutdown();
    assert_int_equal(failing.held, 0);
    qkv__set_memory(NULL);
}

/* Saves over an old file, failing each file call in turn: before the rename the old file stays, after it the new is whole. */
static void each_file_call_fails(qkv_status (*save)(void))
{
    static const char old[] = "the old file";
    char new[4096], found[4096];
    assert_int_equal(save(), QKV_OK);
    size_t new_size = get_file(new, sizeof new);
    for (long n = 0;; n++) {
        put_file(old, sizeof old);
        use_failing_files(n);
        qkv_status status = save();
        qkv__set_files(NULL);
        assert_int_equal(failing.open, 0);
        assert_int_equal(files_in_folder(), 1);
        size_t size = get_file(found, sizeof found);
        if (failing.renamed) {
            assert_true(size == new_size && !memcmp(found, new, size));
        } else {
            assert_true(size == sizeof old && !memcmp(found, old, size));
            assert_int_equal(status, QKV_IO);
        }
        if (failing.failed) continue;
        assert_int_equal(status, QKV_OK);
        assert_true(n > 6);
        break;
    }
}

/* ---- npy ---- */

static const struct {
    const char *name, *bytes;
    size_t size;
    double numbers[6];
} by_numpy[] = {
#include "golden/npy.inc"
};

static void reads_what_numpy_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof by_numpy / sizeof *by_numpy; i++) {
        qkv_array a = { 0 };
        put_file(by_numpy[i].bytes, by_numpy[i].size);
        assert_int_equal(qkv_npy_read(path, &a), QKV_OK);
        assert_true(a.ndim == 2 && a.shape[0] == 2 && a.shape[1] == 3);
        for (int j = 0; j < 6; j++)
            if (a.data[j] != (float)by_numpy[i].numbers[j])
                fail_msg("%s, number %d: %.9g", by_numpy[i].name, j, (double)a.data[j]);
        qkv_array_free(&a);
        assert_null(a.data);
    }
}

/* Every half there is, against the definition: (-1)^s 2^(e-15) (1 + f/1024), or 2^-14 f/1024 where e is 0. */
static void halves(void **state)
{
    (void)state;
    enum { HEADER = 128, N = 65536 };
    unsigned char *file = malloc(HEADER + 2 * N);
    memset(file, ' ', HEADER);
    memcpy(file, "\223NUMPY\1\0v\0{'descr': '<f2', 'fortran_order': False, 'shape': (65536,), }", 71);
    for (int i = 0; i < N; i++) {
        file[HEADER + 2 * i] = (unsigned char)(i & 255);
        file[HEADER + 2 * i + 1] = (unsigned char)(i >> 8);
    }
    put_file(file, HEADER + 2 * N);
    free(file);
    qkv_array a = { 0 };
    assert_int_equal(qkv_npy_read(path, &a), QKV_OK);
    for (int i = 0; i < N; i++) {
        int e = i >> 10 & 31, f = i & 1023;
        double x = e == 0 ? ldexp(f, -24) : e == 31 ? (f ? (double)NAN : (double)INFINITY) : ldexp(1024 + f, e - 25);
        if (i >> 15) x = -x;
        assert_true(isnan(x) ? isnan(a.data[i]) : (double)a.data[i] == x && signbit(a.data[i]) == signbit((float)x));
    }
    qkv_array_free(&a);
}

static const float numbers[12] = { 1, -2, 3.5f, 0, 1e-40f, 3e38f, -0.0f, 7, 8, 9, 10, 11 };

static qkv_status write_npy(void) { return qkv_npy_write(path, QKV_SHAPE(3, 4), numbers); }

static qkv_status read_npy(void)
{
    qkv_array a = { 0 };
    qkv_status status = qkv_npy_read(path, &a);
    qkv_array_free(&a);
    return status;
}

static void npy_round_trip(void **state)
{
    (void)state;
    const struct {
        int ndim;
        int64_t shape[6], count;
        const char *text;
    } cases[] = {
        { 0, { 0 }, 1, "(), }" },
        { 1, { 12 }, 12, "(12,), }" },
        { 1, { 0 }, 0, "(0,), }" },
        { 2, { 3, 4 }, 12, "(3, 4), }" },
        { 3, { 2, 0, 5 }, 0, "(2, 0, 5), }" },
        { 6, { 1, 2, 1, 3, 2, 1 }, 12, "(1, 2, 1, 3, 2, 1), }" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char file[512] = { 0 };
        qkv_array a = { 0 };
        assert_int_equal(qkv_npy_write(path, cases[i].ndim, cases[i].shape, numbers), QKV_OK);
        assert_int_equal(qkv_npy_read(path, &a), QKV_OK);
        assert_int_equal(a.ndim, cases[i].ndim);
        assert_int_equal(qkv_array_count(&a), cases[i].count);
        assert_memory_equal(a.shape, cases[i].shape, sizeof(int64_t) * (size_t)a.ndim);
        assert_memory_equal(a.data, numbers, sizeof(float) * (size_t)cases[i].count);
        qkv_array_free(&a);
        get_file(file, sizeof file);
        assert_non_null(strstr(file + 10, cases[i].text));
        assert_int_equal(((unsigned char)file[8] + 256 * file[9] + 10) % 64, 0);
    }
    assert_int_equal(qkv_npy_write(path, 7, (int64_t[7]){ 1 }, numbers), QKV_USAGE);
    assert_int_equal(qkv_npy_write(path, QKV_SHAPE(-1), numbers), QKV_USAGE);
    assert_int_equal(qkv_npy_write(path, QKV_SHAPE(3), NULL), QKV_USAGE);
    assert_int_equal(qkv_npy_write(NULL, QKV_SHAPE(3), numbers), QKV_USAGE);
    assert_int_equal(qkv_npy_write("/no/such/folder/file", QKV_SHAPE(3), numbers), QKV_IO);
    assert_int_equal(qkv_npy_read("/no/such/folder/file", &(qkv_array){ 0 }), QKV_IO);
    assert_int_equal(qkv_npy_read(folder, &(qkv_array){ 0 }), QKV_IO);
}

static void npy_cut_anywhere(void **state)
{
    (void)state;
    assert_int_equal(write_npy(), QKV_OK);
    each_cut_is_refused(read_npy);
}

#define DICT(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

/* Headers of a file with 8 bytes after them. */
static void npy_hostile_headers(void **state)
{
    (void)state;
    const struct {
        qkv_status status;
        const char *dict;
    } cases[] = {
        { QKV_OK, DICT("'<f4'", "False", "(2,)") },
        { QKV_OK, DICT("\"<f4\"", "False", "(2, 1)") "    \n" },
        { QKV_OK, "{'shape':(8,),'descr':'|u1','fortran_order':True}" },
        { QKV_OK, DICT("'=f8'", "False", "()") },
        { QKV_UNSUPPORTED, DICT("'|O'", "False", "(1,)") },
        { QKV_UNSUPPORTED, DICT("'<c8'", "False", "(1,)") },
        { QKV_UNSUPPORTED, DICT("'<U2'", "False", "(1,)") },
        { QKV_UNSUPPORTED, DICT("'|S8'", "False", "(1,)") },
        { QKV_UNSUPPORTED, DICT("'<M8[ns]'", "False", "(1,)") },
        { QKV_UNSUPPORTED, DICT("'<f16'", "False", "(1,)") },
        { QKV_UNSUPPORTED, DICT("'<f3'", "False", "(2,)") },
        { QKV_UNSUPPORTED, DICT("'<4 '", "False", "(2,)") },
        { QKV_UNSUPPORTED, DICT("'f4'", "False", "(2,)") },
        { QKV_UNSUPPORTED, DICT("''", "False", "(2,)") },
        { QKV_UNSUPPORTED, DICT("[('a', '<f4'), ('b', '<f4')]", "False", "(1,)") },
        { QKV_LIMIT, DICT("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 2)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(3,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(1,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(0,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(2)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(-2,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(2.0,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(1 2)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "[2]") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(9223372036854775807,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(9223372036854775808,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(99999999999999999999999999,)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(4611686018427387905, 2)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(4294967296, 4294967296, 0)") },
        { QKV_FORMAT, DICT("'<f4'", "False", "(100000000000,)") },
        { QKV_FORMAT, DICT("'<f4'", "None", "(2,)") },
        { QKV_UNSUPPORTED, DICT("'<f4", "False", "(2,)") }, /* the quote ends at fortran_order: "<f4, " is no dtype */
        { QKV_FORMAT, "{'descr': '<f4" },
        { QKV_FORMAT, DICT("4", "False", "(2,)") },
        { QKV_FORMAT, "{'descr': '<f4', 'shape': (2,), }" },
        { QKV_FORMAT, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" },
        { QKV_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}" },
        { QKV_FORMAT, "{'descr' '<f4', 'fortran_order': False, 'shape': (2,), }" },
        { QKV_FORMAT, "{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }" },
        { QKV_FORMAT, DICT("'<f4'", "False", "(2,)") "x" },
        { QKV_FORMAT, DICT("'<f4'", "False", "(2,)") "\n\n" },
        { QKV_FORMAT, "{'descr': '<f4', 'fortran_order': False, 'shape': (2," },
        { QKV_FORMAT, "{" },
        { QKV_FORMAT, "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int version = 1; version <= 3; version++) {
            char file[256] = "\223NUMPY";
            size_t width = version == 1 ? 2 : 4, length = strlen(cases[i].dict);
            file[6] = (char)version;
            file[8] = (char)length;
            memcpy(file + 8 + width, cases[i].dict, length);
            put_file(file, 8 + width + length + 8);
            if (read_npy() != cases[i].status) fail_msg("%s: %s", cases[i].dict, qkv_error());
            if (cases[i].status) assert_non_null(strstr(qkv_error(), path));
        }
}

static void npy_hostile_starts(void **state)
{
    (void)state;
    static const struct {
        qkv_status status;
        char bytes[13];
        size_t size;
    } cases[] = {
        { QKV_FORMAT, "\200\002}q\001.abcdef", 12 }, /* a pickle */
        { QKV_FORMAT, "PK\003\004abcdefgh", 12 },    /* a .npz */
        { QKV_UNSUPPORTED, "\223NUMPY\004\0\1\0\0\0", 12 },
        { QKV_UNSUPPORTED, "\223NUMPY\0\0\1\0\0\0", 12 },
        { QKV_UNSUPPORTED, "\223NUMPY\1\1\1\0\0\0", 12 },
        { QKV_FORMAT, "\223NUMPY\1\0\377\377ab", 12 },
        { QKV_FORMAT, "\223NUMPY\2\0\377\377\377\377", 12 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_file(cases[i].bytes, cases[i].size);
        assert_int_equal(read_npy(), cases[i].status);
    }
}

static void npy_survives_a_failing_machine(void **state)
{
    (void)state;
    each_file_call_fails(write_npy);
    assert_true(each_allocation_fails(write_npy) >= 3);
    assert_int_equal(files_in_folder(), 1);
    assert_true(each_allocation_fails(read_npy) >= 2);
}

/* ---- safetensors ---- */

/* A file of our making: the length of the header, the header, and `data_bytes` bytes 0, 1, 2, ... */
static void put_safetensors(const char *header, size_t data_bytes)
{
    unsigned char file[2048] = { 0 };
    size_t length = strlen(header);
    file[0] = (unsigned char)length;
    file[1] = (unsigned char)(length >> 8);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++) file[8 + length + i] = (unsigned char)i;
    put_file(file, 8 + length + data_bytes);
}

static qkv_status read_safetensors(void)
{
    qkv__safetensors s;
    qkv_status status = qkv__safetensors_read(path, &s);
    if (!status) qkv__safetensors_free(&s);
    return status;
}

#define TENSOR(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define A "{\"a\":" TENSOR("F32", "[2]", "[0,8]")

/* Each rule of the format broken once; the data has 16 bytes. */
static void safetensors_rules(void **state)
{
    (void)state;
    const struct {
        qkv_status status;
        const char *header, *says;
    } cases[] = {
        { QKV_OK, A ",\"b\":" TENSOR("F32", "[1,2]", "[8,16]") "}", "" },
        { QKV_OK, "{\"b\":" TENSOR("I16", "[4]", "[8,16]") ",\"a\":" TENSOR("F32", "[2]", "[0,8]") "}   ", "" },
        { QKV_OK,
          "{\"a\":" TENSOR("F64", "[]", "[0,8]") ",\"e\":" TENSOR("F32", "[0,5]", "[8,8]") ",\"b\":" TENSOR("F4", "[16]",
                                                                                                            "[8,16]") "}",
          "" },
        { QKV_OK, "{\"__metadata__\":{\"format\":\"pt\"},\"a\":" TENSOR("U8", "[16]", "[0,16]") "}", "" },
        { QKV_FORMAT, " " A ",\"b\":" TENSOR("F32", "[2]", "[8,16]") "}", "does not start with {" },
        { QKV_FORMAT, "", "does not start with {" },
        { QKV_FORMAT, "[]", "does not start with {" },
        { QKV_FORMAT, A, "not JSON" },
        { QKV_FORMAT, A "}}", "not JSON" },
        { QKV_FORMAT, A ",\"b\":" TENSOR("F32", "[2]", "[8,16]") ",\"b\":" TENSOR("F32", "[2]", "[8,16]") "}", "duplicate" },
        { QKV_FORMAT, "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", "duplicate" },
        { QKV_FORMAT, "{\"\377\":" TENSOR("F32", "[4]", "[0,16]") "}", "not JSON" },
        { QKV_FORMAT, "{\"a\\u0000b\":" TENSOR("F32", "[4]", "[0,16]") "}", "not JSON" },
        { QKV_FORMAT, "{\"__metadata__\":{\"n\":1},\"a\":" TENSOR("U8", "[16]", "[0,16]") "}", "only text" },
        { QKV_FORMAT, "{\"__metadata__\":\"x\",\"a\":" TENSOR("U8", "[16]", "[0,16]") "}", "only text" },
        { QKV_FORMAT, "{\"a\":1}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":null}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":{\"dtype\":\"U8\",\"shape\":[16]}}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,16]}}", "shape is not" },
        { QKV_FORMAT, "{\"a\":{\"shape\":[16],\"data_offsets\":[0,16]}}", "dtype is not" },
        { QKV_FORMAT, "{\"a\":{\"dtype\":7,\"shape\":[16],\"data_offsets\":[0,16]}}", "dtype is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F31", "[4]", "[0,16]") "}", "dtype is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("f32", "[4]", "[0,16]") "}", "dtype is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "4", "[0,16]") "}", "shape is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[-4]", "[0,16]") "}", "dimension is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4.0]", "[0,16]") "}", "dimension is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[\"4\"]", "[0,16]") "}", "dimension is not" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[0]") "}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[0,16,16]") "}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[0,1.6e1]") "}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[-16,0]") "}", "expected dtype" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[16,0]") "}", "outside" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[5]", "[0,20]") "}", "outside" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[0,9223372036854775807]") "}", "outside" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4]", "[0,18446744073709551616]") "}", "not JSON" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[3]", "[0,16]") "}", "do not make" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F64", "[4]", "[0,16]") "}", "do not make" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F4", "[33]", "[0,16]") "}", "do not make" }, /* 16 bytes and a half */
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[4,0]", "[0,16]") "}", "do not make" },
        { QKV_FORMAT, "{\"a\":" TENSOR("U8", "[4294967296,4294967296]", "[0,0]") "}", "larger than memory" },
        { QKV_FORMAT, "{\"a\":" TENSOR("U8", "[4294967296,4294967296,0]", "[0,0]") "}", "larger than memory" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[1152921504606846975]", "[0,16]") "}", "do not make" },
        { QKV_LIMIT, "{\"a\":" TENSOR("F32", "[1,1,1,1,1,1,4]", "[0,16]") "}", "7 dimensions" },
        { QKV_FORMAT, A ",\"b\":" TENSOR("F32", "[3]", "[4,16]") "}", "overlaps" },
        { QKV_FORMAT, A ",\"b\":" TENSOR("F32", "[2]", "[0,8]") "}", "overlaps" },
        { QKV_FORMAT, A ",\"b\":" TENSOR("F32", "[1]", "[12,16]") "}", "hole" },
        { QKV_FORMAT, "{\"a\":" TENSOR("F32", "[2]", "[8,16]") "}", "hole" },
        { QKV_FORMAT, A "}", "after the last tensor" },
        { QKV_FORMAT, "{}", "after the last tensor" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_safetensors(cases[i].header, 16);
        if (read_safetensors() != cases[i].status) fail_msg("%s: %s", cases[i].header, qkv_error());
        if (!cases[i].status) continue;
        if (!strstr(qkv_error(), cases[i].says)) fail_msg("%s: %s", cases[i].header, qkv_error());
        assert_non_null(strstr(qkv_error(), path));
    }
    put_safetensors("{}", 0);
    assert_int_equal(read_safetensors(), QKV_OK);
    put_file("\1\341\365\5\0\0\0\0{", 9); /* one byte over the limit */
    assert_int_equal(read_safetensors(), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "100000001"));
    put_file("\377\377\377\377\377\377\377\377{", 9);
    assert_int_equal(read_safetensors(), QKV_FORMAT);
}

static qkv_params *new_params(void)
{
    qkv_params *p = qkv_params_new(9);
    qkv_params_add(p, "z.weight", QKV_SHAPE(3, 5), QKV_INIT_NORMAL, 0);
    qkv_params_add(p, "层.\"bias\"", QKV_SHAPE(3), QKV_INIT_NORMAL, 0);
    qkv_params_add(p, "scalar", 0, NULL, QKV_INIT_NORMAL, 0);
    qkv_params_add(p, "empty", QKV_SHAPE(0, 4), QKV_INIT_ZERO, 0);
    return p;
}

static qkv_status save_params(void)
{
    qkv_params *p = new_params();
    qkv_status status = p ? qkv_params_save(p, path) : qkv_error_status();
    qkv_params_free(p);
    return status;
}

static qkv_status load_params(void)
{
    qkv_params *p = new_params();
    float before[64] = { 0 };
    size_t bytes = sizeof(float) * (size_t)qkv__params_block(p);
    assert_true(bytes <= sizeof before);
    if (p && qkv__params_data(p)) {
        qkv__params_data(p)[0] = 77;
        memcpy(before, qkv__params_data(p), bytes);
    }
    qkv_status status = p ? qkv_params_load(p, path) : qkv_error_status();
    if (status && bytes) assert_memory_equal(before, qkv__params_data(p), bytes); /* nothing changes on an error */
    if (!status) assert_true(qkv__params_data(p)[0] != 77);
    qkv_params_free(p);
    return status;
}

static void params_round_trip(void **state)
{
    (void)state;
    qkv_params *p = new_params();
    float values[4] = { -0.0f, INFINITY, 1e-42f, 0 };
    uint32_t odd_nan = 0x7fc12345u;
    memcpy(&values[3], &odd_nan, 4);
    memcpy(qkv_tensor_data_mut(qkv_params_find(p, "z.weight")), values, sizeof values);
    float before[64];
    size_t bytes = sizeof(float) * (size_t)qkv__params_block(p);
    memcpy(before, qkv__params_data(p), bytes);
    assert_int_equal(qkv_params_save(p, path), QKV_OK);
    memset(qkv__params_data(p), 1, bytes);
    assert_int_equal(qkv_params_load(p, path), QKV_OK);
    for (int i = 0; i < 4; i++) {
        const qkv_tensor *w = qkv_params_at(p, i);
        assert_memory_equal(qkv_tensor_data(w), before + (qkv_tensor_data(w) - qkv__params_data(p)),
                            sizeof(float) * (size_t)qkv_tensor_count(w));
    }
    qkv_params_free(p);

    char file[2048];
    size_t size = get_file(file, sizeof file), header = (size_t)(unsigned char)file[0] + 256 * (size_t)(unsigned char)file[1];
    static const char expected[] = "{\"empty\":" TENSOR("F32", "[0,4]", "[0,0]") ",\"scalar\":" TENSOR(
        "F32", "[]", "[0,4]") ",\"z.weight\":" TENSOR("F32", "[3,5]", "[4,64]") ",\"层.\\\"bias\\\"\":" TENSOR("F32", "[3]",
                                                                                                               "[64,76]") "}";
    assert_int_equal(header % 8, 0);
    assert_int_equal(size, 8 + header + 76);
    assert_memory_equal(file + 8, expected, sizeof expected - 1);
    for (size_t i = 8 + sizeof expected - 1; i < 8 + header; i++) assert_int_equal(file[i], ' ');
}

static void params_cut_anywhere(void **state)
{
    (void)state;
    assert_int_equal(save_params(), QKV_OK);
    each_cut_is_refused(load_params);
}

static void params_survive_a_failing_machine(void **state)
{
    (void)state;
    each_file_call_fails(save_params);
    assert_true(each_allocation_fails(save_params) > 10);
    assert_int_equal(files_in_folder(), 1);
    assert_int_equal(save_params(), QKV_OK);
    assert_true(each_allocation_fails(load_params) > 10);
    for (long n = 0; n < 2; n++) { /* opening, the first read */
        use_failing_files(n);
        assert_int_equal(load_params(), QKV_IO);
        qkv__set_files(NULL);
        assert_int_equal(failing.open, 0);
    }
}

/* F64, F16 and BF16 become float32. */
static void other_float_types(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    const qkv_tensor *a = qkv_params_add(p, "a", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    const qkv_tensor *b = qkv_params_add(p, "b", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    const qkv_tensor *c = qkv_params_add(p, "c", QKV_SHAPE(1), QKV_INIT_ZERO, 0);
    const char *header = "{\"a\":" TENSOR("F64", "[1]", "[0,8]") ",\"b\":" TENSOR("F16", "[1]", "[8,10]") ",\"c\":" TENSOR(
        "BF16", "[1]", "[10,12]") "}";
    char file[512] = { (char)strlen(header) };
    size_t at = 8 + strlen(header);
    memcpy(file + 8, header, at - 8);
    memcpy(file + at, "\0\0\0\0\0\0\010\300\0\075\300\277", 12); /* -3, 1.25, -1.5 */
    put_file(file, at + 12);
    assert_int_equal(qkv_params_load(p, path), QKV_OK);
    assert_true(qkv_tensor_item(a) == -3 && qkv_tensor_item(b) == 1.25f && qkv_tensor_item(c) == -1.5f);
    qkv_params_free(p);
}

static void params_and_file_differ(void **state)
{
    (void)state;
    qkv_params *p = qkv_params_new(1);
    qkv_params_add(p, "a", QKV_SHAPE(2), QKV_INIT_ONE, 0);
    qkv_params_add(p, "missing", QKV_SHAPE(2), QKV_INIT_ONE, 0);
    qkv_params_add(p, "turned", QKV_SHAPE(3, 1), QKV_INIT_ONE, 0);
    qkv_params_add(p, "flat", QKV_SHAPE(1), QKV_INIT_ONE, 0);
    put_safetensors(A ",\"extra\":" TENSOR("U8", "[4]", "[8,12]") ",\"flat\":" TENSOR(
                        "F32", "[]", "[12,16]") ",\"turned\":" TENSOR("F32", "[1,3]", "[16,28]") "}",
                    28);
    assert_int_equal(qkv_params_load(p, path), QKV_FORMAT);
    const char *says[] = { path, "\"missing\" is missing", "\"turned\" is (1, 3), expected (3, 1)", "\"extra\" has no place",
                           "\"flat\" is (), expected (1)" };
    for (int i = 0; i < 5; i++) assert_non_null(strstr(qkv_error(), says[i]));
    assert_true(qkv__params_data(p)[0] == 1);
    qkv_params_free(p);

    p = qkv_params_new(1);
    qkv_params_add(p, "a", QKV_SHAPE(2), QKV_INIT_ONE, 0);
    put_safetensors("{\"a\":" TENSOR("I32", "[2]", "[0,8]") "}", 8);
    assert_int_equal(qkv_params_load(p, path), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "\"a\" is I32"));
    for (int i = 0; i < 100; i++) {
        char name[64];
        snprintf(name, sizeof name, "a.weight.with.a.rather.long.name.%d", i);
        qkv_params_add(p, name, QKV_SHAPE(2), QKV_INIT_ONE, 0);
    }
    assert_int_equal(qkv_params_load(p, path), QKV_FORMAT); /* more than a sentence holds: it says how many more */
    assert_true(strlen(qkv_error()) < 1023);
    assert_non_null(strstr(qkv_error(), " more like these"));
    qkv_params_free(p);
}

static void names_the_format_cannot_hold(void **state)
{
    (void)state;
    const char *names[] = { "__metadata__", "\377\376" };
    for (int i = 0; i < 2; i++) {
        qkv_params *p = qkv_params_new(1);
        qkv_params_add(p, names[i], QKV_SHAPE(2), QKV_INIT_ONE, 0);
        assert_int_equal(qkv_params_save(p, path), QKV_USAGE);
        qkv_params_free(p);
    }
    assert_int_equal(qkv_params_save(NULL, path), QKV_USAGE);
    assert_int_equal(qkv_params_load(NULL, path), QKV_USAGE);
}

/* ---- arrays as text ---- */

static void numbers_that_are_typed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int ndim;
        int64_t shape[3];
        float values[6];
    } cases[] = {
        { "1 0; 0 1", 2, { 2, 2 }, { 1, 0, 0, 1 } },
        { "[[1,0],[0,1]]", 2, { 2, 2 }, { 1, 0, 0, 1 } },
        { " [[1 0]\n [0 1]]\n", 2, { 2, 2 }, { 1, 0, 0, 1 } },
        { "1,2.5,-3e-1\r\n4,5,6\r\n\r\n", 2, { 2, 3 }, { 1, 2.5f, -0.3f, 4, 5, 6 } },
        { "7", 2, { 1, 1 }, { 7 } },
        { "1\t2;", 2, { 1, 2 }, { 1, 2 } },
        { "1，-2； 3、\u30004；", 2, { 2, 2 }, { 1, -2, 3, 4 } },
        { "[1, 2, 3]", 1, { 3 }, { 1, 2, 3 } },
        { "[[[1],[2]],[[3],[-inf]]]", 3, { 2, 2, 1 }, { 1, 2, 3, -INFINITY } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_array a = { 0 };
        assert_int_equal(qkv_array_read(cases[i].text, &a), QKV_OK);
        assert_int_equal(a.ndim, cases[i].ndim);
        for (int d = 0; d < a.ndim; d++) assert_int_equal(a.shape[d], cases[i].shape[d]);
        for (int64_t k = 0; k < qkv_array_count(&a); k++) assert_true(a.data[k] == cases[i].values[k]);
        qkv_array_free(&a);
    }
}

static void typing_errors_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
        qkv_status status;
    } cases[] = {
        { "1 2; 3 x", "row 2, column 2: \"x\" is not a number", QKV_FORMAT },
        { "1,,2", "row 1, column 2: there is no number", QKV_FORMAT },
        { "1 2,", "row 1, column 3: there is no number", QKV_FORMAT },
        { "1 2; 3", "row 2: 1 numbers here, 2 in the first", QKV_FORMAT },
        { "[[1,2],[3]]", "row 2: 1 numbers here, 2 in the first", QKV_FORMAT },
        { "[[1],[2]", "row 3: a bracket is not closed", QKV_FORMAT },
        { "[[1],2]", "row 2: a number where a list is expected", QKV_FORMAT },
        { "[1,[2]]", "row 1: a list where a number is expected", QKV_FORMAT },
        { "[[1]] 2", "follows the last bracket", QKV_FORMAT },
        { "[[[1]],[[2],[3]]]", "2 rows or lists of them here, 1 in the first", QKV_FORMAT },
        { "[]", "there are no numbers", QKV_FORMAT },
        { "0x10", "\"0x10\" is not a number", QKV_FORMAT },
        { "[[[[[[[1]]]]]]]", "more than 6 dimensions", QKV_LIMIT },
        { "nowhere/a.npy", "nowhere/a.npy", QKV_IO },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_array a = { 0 };
        assert_int_equal(qkv_array_read(cases[i].text, &a), cases[i].status);
        if (!strstr(qkv_error(), cases[i].sentence)) fail_msg("\"%s\": %s", cases[i].text, qkv_error());
        assert_null(a.data);
    }
}

static void array_files_are_told_apart(void **state)
{
    (void)state;
    qkv_array a = { 0 };
    put_file("1,2\n3,4\n", 8);
    assert_int_equal(qkv_array_read(path, &a), QKV_OK);
    assert_true(a.ndim == 2 && a.shape[0] == 2 && a.data[3] == 4);
    qkv_array_free(&a);
    assert_int_equal(qkv_npy_write(path, 1, (const int64_t[]){ 2 }, (const float[]){ 5, 6 }), QKV_OK);
    assert_int_equal(qkv_array_read(path, &a), QKV_OK);
    assert_true(a.ndim == 1 && a.data[1] == 6);
    qkv_array_free(&a);
    put_file("1\0002\n", 4);
    assert_int_equal(qkv_array_read(path, &a), QKV_FORMAT);
    put_file("", 0);
    assert_int_equal(qkv_array_read(path, &a), QKV_FORMAT);
}

static qkv_status read_typed_array(void)
{
    qkv_array a = { 0 };
    qkv_status status = qkv_array_read("[[1, 2], [3, 4]]", &a);
    qkv_array_free(&a);
    return status;
}

static void typed_arrays_survive_without_memory(void **state)
{
    (void)state;
    const qkv__memory table = { failing_alloc, failing_release };
    qkv_status status = QKV_MEMORY;
    qkv__set_memory(&table);
    for (int at = 0; status == QKV_MEMORY && at < 20; at++) {
        failing = (struct failing){ .fail_at = at };
        status = read_typed_array();
        assert_int_equal(failing.held, 0);
        assert_true(at > 0 || status == QKV_MEMORY);
    }
    qkv__set_memory(NULL);
    assert_int_equal(status, QKV_OK);
}

static void matrices_of_arrays(void **state)
{
    (void)state;
    int64_t shape[2];
    qkv_array a = { 0 };
    static const char *const bad[] = { "", "1,0,0", "1,x", "x", "-1", "0 1" };
    assert_int_equal(qkv_array_read("[[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]", &a), QKV_OK);
    const float *at = qkv_array_matrix(&a, "1", "a", shape);
    assert_true(at == a.data + 6 && shape[0] == 2 && shape[1] == 3);
    assert_true(qkv_array_matrix(&a, "0", "a", shape) == a.data);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(qkv_array_matrix(&a, bad[i], "a", shape));
        if (!strstr(qkv_error(), "a has 3 dimensions: give --index a number")) fail_msg("%s: %s", bad[i], qkv_error());
    }
    assert_null(qkv_array_matrix(&a, NULL, "a", shape));
    assert_null(qkv_array_matrix(&a, "2", "a", shape));
    assert_string_equal(qkv_error(), "--index 2: dimension 0 has 2 places, from 0");
    a.ndim = 4, memcpy(a.shape, ((int64_t[]){ 2, 3, 1, 2 }), 4 * sizeof *a.shape);
    assert_true(qkv_array_matrix(&a, "1,2", "a", shape) == a.data + 10 && shape[0] == 1 && shape[1] == 2);
    a.ndim = 1, a.shape[0] = 12;
    assert_true(qkv_array_matrix(&a, NULL, "a", shape) == a.data && shape[0] == 1 && shape[1] == 12);
    assert_null(qkv_array_matrix(&a, "0", "a", shape));
    qkv_array_free(&a);
    assert_null(qkv_array_matrix(&(qkv_array){ .ndim = 2, .shape = { 0, 3 } }, NULL, "a", shape));
    assert_string_equal(qkv_error(), "a: the array is empty");
}

/* ---- masks ---- */

static void masks_of_arrays(void **state)
{
    (void)state;
    qkv_mask_arrays m = { 0 };
    assert_int_equal(qkv_mask_read_keep("1 0; 0 1", 0, &m), QKV_OK);
    assert_memory_equal(m.mask.keep_shape, ((int64_t[]){ 1, 1, 2, 2 }), sizeof m.mask.keep_shape);
    assert_memory_equal(m.mask.keep, ((uint8_t[]){ 1, 0, 0, 1 }), 4);
    assert_int_equal(qkv_mask_read_keep("[[[1, 0]], [[0, 1]]]", 0, &m), QKV_OK);
    assert_memory_equal(m.mask.keep_shape, ((int64_t[]){ 1, 2, 1, 2 }), sizeof m.mask.keep_shape);
    assert_int_equal(qkv_mask_read_keep("[[[1, 0]], [[0, 1]]]", 1, &m), QKV_OK);
    assert_memory_equal(m.mask.keep_shape, ((int64_t[]){ 2, 1, 1, 2 }), sizeof m.mask.keep_shape);
    assert_int_equal(qkv_mask_read_bias("0.5 -inf", 0, &m), QKV_OK);
    assert_true(m.mask.bias[0] == 0.5f && m.mask.bias[1] == -INFINITY && m.mask.bias_shape[3] == 2);
    assert_int_equal(qkv_mask_parse_lengths("3,5", 2, "lengths", &m), QKV_OK);
    assert_memory_equal(m.mask.key_lengths, ((int32_t[]){ 3, 5 }), 8);
    assert_non_null(m.mask.keep); /* one part leaves the others */
    qkv_mask_arrays_free(&m);
    assert_true(!m.mask.keep && !m.mask.bias && !m.mask.key_lengths);
}

static void masks_that_are_none(void **state)
{
    (void)state;
    static const char *const lengths[] = { "3", "3,5,1", "3,", ",3", "3,-1", "3,x", "3,99999999999", "" };
    qkv_mask_arrays m = { 0 };
    assert_int_equal(qkv_mask_read_keep("1 0", 0, &m), QKV_OK);
    assert_int_equal(qkv_mask_read_keep("0 -inf", 0, &m), QKV_USAGE);
    assert_string_equal(qkv_error(), "0 -inf: number 1 is -inf: a keep map has 1 (may be seen) and 0 (hidden) only");
    assert_null(m.mask.keep);
    assert_int_equal(qkv_mask_read_keep("1 nan", 0, &m), QKV_NUMERIC);
    assert_int_equal(qkv_mask_read_keep("[[[[[1]]]]]", 0, &m), QKV_USAGE);
    assert_int_equal(qkv_mask_read_bias("0 inf", 0, &m), QKV_NUMERIC);
    assert_int_equal(qkv_mask_read_bias("0 nan", 0, &m), QKV_NUMERIC);
    assert_int_equal(qkv_mask_read_bias("no such file", 0, &m), QKV_IO);
    assert_null(m.mask.bias);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(qkv_mask_parse_lengths(lengths[i], 2, "--lengths", &m), QKV_USAGE);
        assert_memory_equal(qkv_error(), "--lengths: ", 11);
        assert_null(m.mask.key_lengths);
    }
    qkv_mask_arrays_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_numpy_writes),
        cmocka_unit_test(halves),
        cmocka_unit_test(npy_round_trip),
        cmocka_unit_test(npy_cut_anywhere),
        cmocka_unit_test(npy_hostile_headers),
        cmocka_unit_test(npy_hostile_starts),
        cmocka_unit_test(npy_survives_a_failing_machine),
        cmocka_unit_test(safetensors_rules),
        cmocka_unit_test(params_round_trip),
        cmocka_unit_test(params_cut_anywhere),
        cmocka_unit_test(params_survive_a_failing_machine),
        cmocka_unit_test(other_float_types),
        cmocka_unit_test(params_and_file_differ),
        cmocka_unit_test(names_the_format_cannot_hold),
        cmocka_unit_test(numbers_that_are_typed),
        cmocka_unit_test(typing_errors_are_named),
        cmocka_unit_test(array_files_are_told_apart),
        cmocka_unit_test(typed_arrays_survive_without_memory),
        cmocka_unit_test(matrices_of_arrays),
        cmocka_unit_test(masks_of_arrays),
        cmocka_unit_test(masks_that_are_none),
    };
    return cmocka_run_group_tests_name("io", tests, make_folder, remove_folder);
}
