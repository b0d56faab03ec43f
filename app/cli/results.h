/* results.h: what a command computed, printed or written. */
#ifndef QKV_CLI_RESULTS_H
#define QKV_CLI_RESULTS_H

#include <qkv/qkv.h>

#include <stdbool.h>
#include <stdio.h>

/* A result as the user gave the operands: without the dimensions they did not have. It points into the tensor. */
typedef struct result {
    int ndim; /* at least 2 */
    int64_t shape[4];
    const float *data;
} result;
result drop_dims(const qkv_tensor *x, bool drop_0, bool drop_1);

/* Prints each matrix of r as a table. row and column are the prefixes of the numbers at its sides; sums: see print.h. */
void print_result(const char *name, const result *r, const char *row, const char *column, bool sums);

/* IO, reported, when nothing can be written to path: better known before a long computation than after it, and before another
 * file is written. Does nothing without a path. */
qkv_status check_output(const char *path);

/* Writes r as .npy and tells so on stderr unless quiet; reports its error. Does nothing without a path. */
qkv_status write_result(const char *path, const result *r, bool quiet);

#endif
