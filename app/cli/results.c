/* results.c: what a command computed, printed or written. */
#include "../report/arrays.h"

#include <qkv/unstable/util.h>
#include "results.h"
#include "options.h"
#include "../term/print.h"

#include <stdio.h>

result drop_dims(const qkv_tensor *x, bool drop_0, bool drop_1)
{
    result r = { .data = qkv_tensor_data(x) };
    for (int i = 0; i < qkv_tensor_ndim(x); i++)
        if (!(i == 0 && drop_0) && !(i == 1 && drop_1)) r.shape[r.ndim++] = qkv_tensor_dim(x, i);
    return r;
}

static void print_heading(const char *name, const result *r, int64_t i)
{
    printf("%s (%lld, %lld)", _(name), (long long)r->shape[r->ndim - 2], (long long)r->shape[r->ndim - 1]);
    if (r->ndim == 3) printf(" [%lld]", (long long)i);
    if (r->ndim == 4) printf(" [%lld, %lld]", (long long)(i / r->shape[1]), (long long)(i % r->shape[1]));
    putchar('\n');
}

void print_result(const char *name, const result *r, const char *row, const char *column, bool sums)
{
    int64_t rows = r->shape[r->ndim - 2], columns = r->shape[r->ndim - 1], matrices = 1;
    for (int i = 0; i < r->ndim - 2; i++) matrices *= r->shape[i];
    for (int64_t i = 0; i < matrices; i++) {
        print_heading(name, r, i);
        print_table(&(table){ .values = r->data + i * rows * columns,
                              .rows = rows,
                              .columns = columns,
                              .row = { .prefix = row },
                              .column = { .prefix = column },
                              .decimals = 6,
                              .sums = sums });
    }
}

qkv_status check_output(const char *path) { return path && qkv_file_writable(path) ? library_failed() : QKV_OK; }

qkv_status write_result(const char *path, const result *r, bool quiet)
{
    if (!path) return QKV_OK;
    if (qkv_npy_write(path, r->ndim, r->shape, r->data)) return library_failed();
    if (!quiet) fprintf(stderr, _("qkv: wrote %s\n"), path);
    return QKV_OK;
}
