/* print.h: tables of numbers for people. */
#ifndef QKV_CLI_PRINT_H
#define QKV_CLI_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/* Names of rows or columns: names[i], or prefix and number where there are none. */
typedef struct labels {
    const char *const *names;
    const char *prefix;
} labels;

typedef struct table {
    const float *values; /* row-major */
    int64_t rows, columns;
    labels row, column;
    int decimals;
    bool sums; /* a last column with the sum of each row */
} table;

void print_table(const table *t);

#endif
