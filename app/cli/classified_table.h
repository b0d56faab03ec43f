/* classified_table.h: classify the rows of a table or of JSON lines. */
#ifndef QKV_CLI_CLASSIFIED_TABLE_H
#define QKV_CLI_CLASSIFIED_TABLE_H

#include "../report/results.h"
#include "options.h"

typedef struct table_task {
    const qkv_model *model;
    const qkv_labelled_opts *how; /* how the rows are read */
    const qkv_encoder_opts *reading;
    const qkv_classified_opts *said;
    int batch;
    bool is_quiet;
} table_task;

/* Whether a path ends as tables and JSON lines do: .csv, .tsv, .jsonl or .json, and a .gz after it. */
bool is_table_path(const char *path);

/* USAGE, reported: --out names a format that the input cannot be written in. */
qkv_status check_table_output(bool json);

/* Reads the rows of --input ("-" and NULL: standard input) and writes a result for each, in their order. An --out that ends in .csv or
 * .tsv gets the columns of the row, the prediction and its probability; one that ends in .jsonl the same as members; any other
 * one line a row. Rows without a text have no prediction. *cut: the number of truncated texts. Reports its errors; rows before a
 * malformed one are classified. */
qkv_status classify_table(const table_task *task, int64_t *cut);

#endif
