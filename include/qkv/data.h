/* qkv/data.h: text files, datasets of token ids, batches.
 *
 * Threads: any number of threads may read a loader, or a dataset that no thread adds to, each with a separate batch. Only one
 * thread at a time may add to a dataset. Callbacks run on the calling thread. */
#ifndef QKV_DATA_H
#define QKV_DATA_H

#include <qkv/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- datasets: pairs of id sequences ---- */
typedef struct qkv_dataset qkv_dataset;
QKV_API qkv_dataset *qkv_dataset_new(void); /* NULL when out of memory. You own it. */
QKV_API void qkv_dataset_free(qkv_dataset *p);
QKV_API int64_t qkv_dataset_size(const qkv_dataset *p);

/* Adds a copy of one pair: n source ids and m target ids, without start and end.
 * Above QKV_PAIRS_IN_MEMORY bytes, ids are stored in a temporary file in TMPDIR (default: /tmp). The file is removed when p is
 * freed and when the program ends, even if it crashes. Memory then holds the lengths only, 16 bytes per pair, and the order of
 * an epoch, at most 48 more bytes per pair.
 * USAGE for NULL; LIMIT for 2^31 - 1 ids or more on a side; MEMORY; IO. On error, nothing is added. */
#define QKV_PAIRS_IN_MEMORY ((size_t)256 << 20)
QKV_API qkv_status qkv_dataset_add_ids(qkv_dataset *p, const int32_t *source, size_t n, const int32_t *target, size_t m);

/* ---- a corpus: pairs of lines in files, plain or gzip ----
 * Line i of one file belongs to line i of the other. If the second path is NULL, each line of the single file is
 * "source TAB target". A last line without a newline counts as a line. A carriage return at the end of a line and a byte order
 * mark at the start of a file are ignored.
 * Zero means the default shown. NULL options are all zero. */
typedef struct qkv_corpus_opts {
    size_t size;
    int strict;         /* 1: reject lines that are not UTF-8; 0: replace each error with U+FFFD */
    int64_t max_length; /* skip pairs with more tokens on either side; 0: no limit. Ignored when reading text without tokens */
    int64_t held_every; /* k: hold out the last of every k pairs of lines and read the others only; 0: hold out none */
    int64_t held;       /* 1: read only the held-out pairs */
} qkv_corpus_opts;

/* Counts of a read. The caller's struct begins with its size (see QKV_OPTS); a function fills that many bytes, also after an
 * error. USAGE for an invalid size. Line numbers start at 1. */
typedef struct qkv_read_stats {
    size_t size;
    int64_t lines, pairs;                           /* lines read per side; pairs added */
    int64_t repaired, first_repaired;               /* lines of the (first) file that were not UTF-8; number of the first one */
    int64_t empty, first_empty;                     /* pairs skipped because a side has only white space */
    int64_t too_long, first_too_long;               /* pairs skipped because of max_length */
    int64_t target_repaired, first_target_repaired; /* lines of the second file that were not UTF-8; number of the first one */
    int64_t unlabelled, first_unlabelled;           /* labelled texts skipped because they have no label */
} qkv_read_stats;

/* Trains a tokenizer on all lines of n files, plain or gzip. A TAB separates texts. Lines that are not UTF-8 are repaired. NULL
 * options are all zero. You own the result.
 * NULL on error: USAGE for NULL and for n = 0; FORMAT for damaged gzip and for files without words; UNSUPPORTED for data that
 * are not text, see qkv_text_start(); IO; MEMORY; and the errors of qkv_tokenizer_train(). */
QKV_API qkv_tokenizer *qkv_tokenizer_train_files(const char *const *paths, int n, const qkv_tokenizer_opts *opts);

/* Calls each(data, source, target) for every pair of lines, unchanged, including pairs with an empty side and pairs of any
 * length. The strings are valid during the callback only. If the callback returns a status other than OK, reading stops and
 * that status is returned.
 * FORMAT, with file and line, for files with different numbers of lines, for a line without a TAB or with more than one (single
 * file), for a line that is not UTF-8 (strict) and for damaged gzip; UNSUPPORTED as in qkv_text_start(); IO; USAGE for NULL or
 * a negative max_length; MEMORY. */
typedef qkv_status (*qkv_line_pair_each)(void *data, qkv_str source, qkv_str target);
QKV_API qkv_status qkv_read_pairs(const char *source, const char *target, const qkv_corpus_opts *opts, qkv_line_pair_each each,
                                  void *data);

/* ---- labelled texts and documents, read one at a time ---- */

/* One labelled text. All strings are valid during the callback only. */
typedef struct qkv_labelled {
    qkv_str label, text, pair; /* UTF-8, each NUL-terminated; pair.data is NULL for a single text */
    const char *path;          /* the source file and the line in it, for messages */
    int64_t line;
    int64_t repaired;       /* file in a folder: the first line that was not UTF-8; 0: none, or another format */
    const qkv_str *columns; /* with `rows`: the n_columns columns of a table, or the one object of JSONL; else NULL */
    int64_t n_columns;
    int separator; /* column separator of a table: , ; | or TAB; else 0 */
    int is_quoted; /* 1: fields of the table may be quoted */
    int is_header; /* with `rows`: 1 for the header of a table */
} qkv_labelled;
typedef qkv_status (*qkv_labelled_each)(void *data, const qkv_labelled *x);

typedef enum qkv_labelled_format {
    QKV_LABELLED_BY_NAME, /* by path: a folder, *.csv, *.jsonl or *.json (a trailing .gz is ignored); otherwise TSV */
    QKV_LABELLED_TSV,     /* label TAB text, or label TAB text TAB pair; with another separator as CSV, except for the header */
    QKV_LABELLED_CSV,     /* RFC 4180: quoted fields may hold commas, quotes and newlines; always with a header */
    QKV_LABELLED_JSONL,   /* one object per line */
    QKV_LABELLED_FOLDER   /* DIR/LABEL/ *.txt, the layout of the IMDb reviews. Every folder name is a label, including "unsup",
                             which the caller can skip. Labels and files are sorted by bytes */
} qkv_labelled_format;

typedef struct qkv_labelled_opts {
    size_t size;
    qkv_labelled_format format;
    const char *label, *text, *pair; /* names of columns or members. A number is a column index, from 1, if no column has that
                                        name. CSV and JSONL default to "label" and "text". TSV: names imply a header, numbers do
                                        not. With numbers only, an omitted label or text is the first remaining column */
    int strict;                      /* as in qkv_corpus_opts; also requires a label for every text */
    int no_label;                    /* 1: labels are optional (missing: ""). TSV lines without a header are text only, TABs
                                        included. .txt files may be in DIR itself */
    int header;                      /* 1: the first line of TSV is a header, with or without names */
    const char *separator; /* multi-label texts: joins the strings of a label array in JSONL, and allows empty labels; NULL:
                              neither is allowed */
    int numbers;           /* 1: a JSONL label may be any number */
    const char *column_separator; /* of tables: "tab", "comma", "semicolon", "bar" or the character. NULL: detected in the first
                                     256 KiB. CSV: , TAB ; or |, the one whose header has the names and that gives all rows the
                                     same number of columns. TSV: a TAB if the first row has one, else ; | or , */
    int rows;      /* 1: pass every row of a file with its columns: a header first; rows without a text are included, with text
                      "". Labels are not examined. TSV has a header if its names are common names of texts and labels. A table
                      of one column holds texts only */
    int preferred; /* 1: ignore given columns that are not in the file */
} qkv_labelled_opts;

/* Calls each(data, x) for every text of a file (plain or gzip) or folder. NULL opts are all zero. The strings of x are valid
 * during the callback only. If the callback returns a status other than OK, reading stops and that status is returned.
 *
 * Skipped and counted as empty: texts of only white space, texts with such a pair, null texts in JSON, empty lines of a table.
 * Skipped and counted as unlabelled: texts without a label; in JSON also a null or missing member.
 * Ignored: white space around a label, a byte order mark at the start of a file, a line "sep=;" before a table, empty lines of
 * JSONL. A JSON label may be an integer or a boolean. If TSV without a header has pairs, every line must have one.
 *
 * FORMAT, with file and line, for: a line with missing or extra columns; a column that is missing from the header or occurs
 * twice in it; an unterminated quote (the line of its start); a JSON line that is not an object or lacks a member; JSON lines
 * that all lack the label; a label with a TAB, a newline or a NUL; a text without a label and an empty line (strict); a folder
 * without subfolders. LIMIT for a file in a folder, or a quoted field, of more than 64 MiB; USAGE for NULL path or callback, or
 * an unknown format; UNSUPPORTED as in qkv_text_start(); IO; MEMORY.
 * *read (may be NULL) receives the counts: lines of a file, or files of a folder, each counted as a line. */
QKV_API qkv_status qkv_read_labelled(const char *path, const qkv_labelled_opts *opts, qkv_labelled_each each, void *data,
                                     qkv_read_stats *read);

/* Documents of plain text: lines, paragraphs (lines up to a blank one, joined by newlines), or whole files. The text is valid
 * during the callback only. */
typedef enum qkv_document_kind { QKV_DOCUMENT_LINES, QKV_DOCUMENT_PARAGRAPHS, QKV_DOCUMENT_FILES } qkv_document_kind;
typedef qkv_status (*qkv_document_each)(void *data, qkv_str text);

/* Calls each(data, text) for every document of a file, plain or gzip, in order. Documents of only white space are skipped and
 * counted as empty; pairs counts the others. A carriage return at the end of a line is dropped from lines and paragraphs and
 * kept in whole files. A whole file counts as one line, also in the count of repaired lines.
 * FORMAT for damaged gzip or, if strict, a line that is not UTF-8; UNSUPPORTED as in qkv_text_start(); USAGE; IO; MEMORY. */
QKV_API qkv_status qkv_read_documents(const char *path, qkv_document_kind kind, int strict, qkv_document_each each, void *data,
                                      qkv_read_stats *read);

/* ---- batches ---- */
typedef struct qkv_batch_opts {
    size_t size;
    int64_t max_tokens; /* rows times the longest row, padding included, for source and target each; 0 means 2048 */
    uint64_t seed;
    int sequential;      /* 1: in the order of insertion; 0: pairs sorted by length, batches shuffled */
    int32_t start, end;  /* decoder input: start + ids; labels: ids + end; encoder input: ids + end */
    int target_has_both; /* 1: target ids include start and end. Input: all but the last id; labels: all but the first */
    int32_t pad;
    int source_has_end; /* 1: source ids include the end; it is added to empty sources only */
} qkv_batch_opts;

/* The label of positions that are excluded from the loss. */
#define QKV_IGNORED (-100)

/* One batch, a result. The elements of its arrays may be changed. */
typedef struct qkv_batch {
    int64_t rows, source_length, target_length; /* lengths of the longest row */
    int64_t tokens;                             /* number of labels that are not ignored */
    int32_t *source, *target, *labels;          /* (rows, length), padded */
    int32_t *source_lengths, *target_lengths;   /* (rows) */
} qkv_batch;

/* One epoch: all pairs, each once, in batches. It depends only on the pairs, the options and the epoch number, so a resumed
 * training sees the same batches as an uninterrupted one. The pairs must outlive it and must not change. NULL on error: USAGE,
 * MEMORY. You own it. */
typedef struct qkv_loader qkv_loader;
QKV_API qkv_loader *qkv_loader_new(const qkv_dataset *p, const qkv_batch_opts *opts, uint64_t number);
QKV_API void qkv_loader_free(qkv_loader *e);
QKV_API int64_t qkv_loader_size(const qkv_loader *e);

/* The i-th batch. A pair longer than max_tokens forms a batch alone. *out is NULL or an earlier batch, whose memory is reused.
 * You own it: qkv_free(). USAGE for NULL and for i out of range; MEMORY. On error, *out is NULL or empty. */
QKV_API qkv_status qkv_loader_batch(const qkv_loader *e, int64_t i, qkv_batch **out);

#ifdef __cplusplus
}
#endif
#endif
