/* arrays.h: arrays in files, and masks of attention made of them. Files are not trusted: every count is checked against the bytes that are there.
 *
 * Threads: any number of calls at a time, each with an array of its own. */
#ifndef QKV_APP_REPORT_ARRAYS_H
#define QKV_APP_REPORT_ARRAYS_H

#include <qkv/qkv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An array read from a file. qkv_array_free() it; zero is an empty one. */
typedef struct qkv_array {
    int ndim;
    int64_t shape[QKV_MAX_DIMS];
    float *data; /* row-major */
    void *reserved[4];
} qkv_array;
QKV_API int64_t qkv_array_count(const qkv_array *a);
QKV_API void qkv_array_free(qkv_array *a);

/* Reads a .npy file, format 1.0 to 3.0: float16, float32, float64, bool or any integer type of 1 to 8 bytes, either byte
 * order, C or Fortran order; turned into float32 in C order. IO when the file cannot be read; FORMAT when it is not a .npy
 * file, is cut, or goes on after its array; UNSUPPORTED for other dtypes; LIMIT for more than QKV_MAX_DIMS dimensions; MEMORY.
 * *out is untouched on error. */
QKV_API qkv_status qkv_npy_read(const char *path, qkv_array *out);

/* Reads numbers as people type them, `length` bytes of text: rows of numbers, each ended by a semicolon or the end of a line
 * ("1 0; 0 1", or a CSV file), which give 2 dimensions; or lists in brackets as JSON, Python and numpy write them
 * ("[[1, 0], [0, 1]]"), of any depth up to QKV_MAX_DIMS. Commas and white space separate; inf, -inf and nan are numbers.
 * FORMAT, with the row and the column from 1, for what is no number and for rows of different lengths; LIMIT; MEMORY; USAGE
 * for NULL. The sentence begins with name. *out is untouched on error. */
QKV_API qkv_status qkv_array_parse(const char *text, size_t length, const char *name, qkv_array *out);

/* Reads the array that a person has named: a file, .npy or text as above, told apart by its first byte; or, where there is no
 * file of that name and it begins as numbers do, the text itself, where
 * full-width commas, semicolons and blanks count as those of ASCII. The errors of the two, and IO. A pipe is read once, so it
 * can give text only. */
QKV_API qkv_status qkv_array_read(const char *source, qkv_array *out);

/* The matrix at an index such as "1,0", a number from 0 for each dimension but the last two (NULL or "" where there are none
 * before them): rows and columns go to shape; an array of one dimension is a row. It lives as long as the array. NULL on error:
 * USAGE, in a sentence that calls the array by name and the index --index, for another index, an empty array and NULL. */
QKV_API const float *qkv_array_matrix(const qkv_array *a, const char *index, const char *name, int64_t shape[2]);

/* Writes float32, C order, format 1.0: whole or not at all (a temporary file in the same folder, then a rename).
 * USAGE for a bad shape, IO, MEMORY. */
QKV_API qkv_status qkv_npy_write(const char *path, int ndim, const int64_t *shape, const float *data);

/* ---- masks of attention, as people give them ---- */

/* A mask and the memory it points to; zero hides nothing. qkv_mask_arrays_free() it. `mask` is for qkv_attention(); its causal
 * is yours to set. */
typedef struct qkv_mask_arrays {
    qkv_mask mask;
    qkv_array bias; /* what mask points to, here and below */
    uint8_t *keep;
    int32_t *lengths;
    size_t keep_bytes, lengths_bytes;
    void *reserved[4];
} qkv_mask_arrays;
QKV_API void qkv_mask_arrays_free(qkv_mask_arrays *m);

/* Reads mask.keep or mask.bias, in place of one that was there, by qkv_array_read(): 1 to 4 dimensions, which are the last of
 * (B,H,Tq,Tk); with one_head 3 are (B,Tq,Tk), for scores that have no dimension of heads. USAGE for NULL, other dimensions, and a
 * keep map that has anything but 1 and 0, NUMERIC for NaN in one, and for NaN and inf in a bias; and what qkv_array_read() gives.
 * m then lacks that part. */
QKV_API qkv_status qkv_mask_read_keep(const char *source, int one_head, qkv_mask_arrays *m);
QKV_API qkv_status qkv_mask_read_bias(const char *source, int one_head, qkv_mask_arrays *m);

/* Reads mask.key_lengths of `batch` sequences, such as "3,5". USAGE, in a sentence that begins with name, for anything else and
 * for another number of them; MEMORY. m then has no lengths. */
QKV_API qkv_status qkv_mask_parse_lengths(const char *text, int64_t batch, const char *name, qkv_mask_arrays *m);

#ifdef __cplusplus
}
#endif
#endif
