/* table.h: how the columns of a table are written, and the words that headers have. */
#ifndef QKV_SRC_TABLE_H
#define QKV_SRC_TABLE_H

#include "../base/status.h"

#include <qkv/data.h>

#include <stdbool.h>

typedef struct qkv__table {
    char separator; /* , ; | or TAB */
    bool is_quoted; /* fields may be in quotes, as in CSV */
} qkv__table;

/* "tab", "comma", "semicolon", "bar", or the character itself; TAB also as "\t". 0: none of them. */
char qkv__separator_of(const char *text);

/* The separator of a table, from its first bytes; is_whole: it has no more. given: the separator, or 0 to find it. names: n columns
 * that the header should have.
 *   CSV    Of , TAB ; | the one whose first row has all names; of those, or of all, one by which all rows have as many columns;
 *          of those the comma. It must make two columns at least. Else the comma.
 *   other  A TAB, where the first row has one. Else of ; | , the first by which the first row has all names, or all rows have as
 *          many columns, two at least. Else a TAB.
 * Fields are quoted unless the separator is a TAB and the table is no CSV: then only where quotes are doubled, or where the rows
 * have as many columns by that rule alone. */
qkv__table qkv__detect_table(const char *start, size_t length, bool is_whole, bool is_csv, char given, const char *const *names,
                             int n);

/* The format of a labelled file or folder, from its name. IO. */
qkv_status qkv__labelled_format(const char *path, qkv_labelled_format *format);

/* Words that headers have for columns of texts, and of labels; case does not count. */
bool qkv__names_texts(const char *word);
bool qkv__names_labels(const char *word);

#endif
