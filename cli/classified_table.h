/* classified_table.h: the texts of a table or of JSON lines through a classifier. */
#ifndef QKV_CLI_CLASSIFIED_TABLE_H
#define QKV_CLI_CLASSIFIED_TABLE_H

#include "options.h"

typedef struct table_task {
    const qkv_model *model;
    const qkv_labelled_opts *how; /* how the rows are read */
    const qkv_reading_opts *reading;
    const qkv_classified_opts *said;
    int batch;
    bool is_quiet;
} table_task;

/* Whether a path ends as tables and JSON lines do: .csv, .tsv, .jsonl or .json, and a .gz after it. */
bool is_table_path(const char *path);

/* USAGE, reported: the results cannot be written to --out in the form that its name has. */
qkv_status check_table_output(bool json);

/* Reads the rows of --input, "-" and NULL being standard input, and prints a result for each, in their order. Where --out ends in
 * .csv or .tsv it gets the columns of the rows, the prediction and its probability, where it ends in .jsonl the same as members;
 * else what texts on lines get. Rows without a text have no prediction. *cut: texts that were longer than is read at once. Reports
 * its errors; what comes before a row that is refused is classified. */
qkv_status classify_table(const table_task *task, int64_t *cut);

#endif
