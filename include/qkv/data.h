/* qkv/data.h: files of text, datasets of token ids, batches.
 *
 * Threads: a dataset that nobody adds to and a loader are read by any number of threads, each with a batch of its own; what adds is
 * for one thread at a time. Callbacks run on the thread of the call. */
#ifndef QKV_DATA_H
#define QKV_DATA_H

#include <qkv/tokenizer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pairs of id sequences, and batches of them ---- */
typedef struct qkv_dataset qkv_dataset;
QKV_API qkv_dataset *qkv_dataset_new(void); /* NULL when memory is out. You own it. */
QKV_API void qkv_dataset_free(qkv_dataset *p);
QKV_API int64_t qkv_dataset_size(const qkv_dataset *p);

/* Adds a copy of one pair: n source ids and m target ids, without start and end. USAGE for NULL; LIMIT for 2^31 - 1 ids or more
 * on a side; MEMORY; IO: then nothing was added. Ids of more than QKV_PAIRS_IN_MEMORY bytes lie in a temporary file (in TMPDIR,
 * or /tmp) that is gone when p is freed, or when the program ends however it ends. The memory they need is then that of their
 * lengths, 16 bytes a pair, and of their order, at most 48 more for an epoch. */
#define QKV_PAIRS_IN_MEMORY ((size_t)256 << 20)
QKV_API qkv_status qkv_dataset_add_ids(qkv_dataset *p, const int32_t *source, size_t n, const int32_t *target, size_t m);

/* ---- a corpus: pairs of lines in files, plain or gzip ----
 * Line i of one file belongs to line i of the other; or, where the second path is NULL, each line of the one file is
 * "source TAB target". A last line without a newline is a line; a carriage return at the end of a line is not part of it, nor
 * is a byte order mark at the start of a file.
 * Zero means the default shown; NULL options are all zero. */
typedef struct qkv_corpus_opts {
    size_t size;
    int strict;         /* 1: a line that is not UTF-8 is refused; else U+FFFD stands in for each mistake */
    int64_t max_length; /* a pair with more tokens than this on either side is left out; 0: none is. Words have no tokens */
    int64_t held_every; /* k: the last of every k pairs of lines is held back, and only the others are read; 0: none is */
    int64_t held;       /* 1: only those that are held back are read */
} qkv_corpus_opts;

/* Counts of a reading. The caller's struct begins with its size (see QKV_OPTS), and a function fills as much of it, after an error
 * too. USAGE for a size that no struct has. Numbers of lines count from 1. */
typedef struct qkv_read_stats {
    size_t size;
    int64_t lines, pairs;             /* of each side read, added */
    int64_t repaired, first_repaired; /* lines of the file, or of the first of two, that were not UTF-8; the first one */
    int64_t empty, first_empty;       /* pairs with nothing but white space on a side: left out */
    int64_t too_long, first_too_long; /* pairs left out for max_length */
    int64_t target_repaired, first_target_repaired; /* lines of the second file that were not UTF-8; the first one */
    int64_t unlabelled, first_unlabelled;           /* labelled texts without a label: left out */
} qkv_read_stats;

/* A tokenizer trained on all lines of n files, plain or gzip; a TAB separates texts. Lines that are not UTF-8 are repaired. NULL
 * options are all zero. NULL on error: USAGE for NULL and no files; FORMAT for damaged gzip and for files without words;
 * UNSUPPORTED for data that are no text, see qkv_text_start(); IO; MEMORY; and as qkv_tokenizer_train(). You own it. */
QKV_API qkv_tokenizer *qkv_tokenizer_train_files(const char *const *paths, int n, const qkv_tokenizer_opts *opts);

/* Calls each(data, source, target) for every pair of lines in the files, unchanged, one with an empty side or of any
 * length too; the texts end when the callback returns. A status that is not OK ends it and is handed on. FORMAT, with the file and the line, for
 * files of unequally many lines, a line without a TAB or with more than one (one file), a line that is not UTF-8 (strict), damaged
 * gzip; UNSUPPORTED as in qkv_text_start(); IO; USAGE for NULL or a negative max_length; MEMORY. */
typedef qkv_status (*qkv_line_pair_each)(void *data, qkv_str source, qkv_str target);
QKV_API qkv_status qkv_read_pairs(const char *source, const char *target, const qkv_corpus_opts *opts, qkv_line_pair_each each,
                                  void *data);

/* ---- labelled text and documents, read one at a time ---- */

/* One labelled text; the strings end when the callback returns. */
typedef struct qkv_labelled {
    qkv_str label, text, pair; /* UTF-8, each ends with a NUL; pair.data is NULL for one text */
    const char *path;          /* the file it comes from, and its line there, for sentences */
    int64_t line;
    int64_t repaired;       /* of a file in a folder: the first line that was not UTF-8; 0: none, or another format */
    const qkv_str *columns; /* with `rows`: n_columns of a table, or the one object of JSONL; else NULL */
    int64_t n_columns;
    int separator; /* of the columns of a table: , ; | or TAB; else 0 */
    int is_quoted; /* and fields may be in quotes */
    int is_header; /* with `rows`: it is the header of a table */
} qkv_labelled;
typedef qkv_status (*qkv_labelled_each)(void *data, const qkv_labelled *x);

typedef enum qkv_labelled_format {
    QKV_LABELLED_BY_NAME, /* a folder, *.csv, *.jsonl or *.json (a .gz after them does not count); anything else is TSV */
    QKV_LABELLED_TSV,     /* label TAB text, or label TAB text TAB pair; with another separator as CSV, but for the header */
    QKV_LABELLED_CSV,     /* RFC 4180: quoted fields may hold commas, quotes and newlines; always with a header */
    QKV_LABELLED_JSONL,   /* an object a line */
    QKV_LABELLED_FOLDER   /* DIR/LABEL/ *.txt, as the IMDb reviews are: the folder's name is the label, whatever it is ("unsup"
                             is one too: the caller can pass it over); labels and files in the order of their bytes */
} qkv_labelled_format;

typedef struct qkv_labelled_opts {
    size_t size;
    qkv_labelled_format format;
    const char *label, *text, *pair; /* names of columns or members; a number, from 1, is the place of a column where no column
                                        has it for a name. CSV and JSONL: "label" and "text" unless given. TSV: given names
                                        say that there is a header, numbers do not; with numbers alone, a label or text that
                                        is not given is in the first column left */
    int strict;                      /* as in qkv_corpus_opts; and every text has a label */
    int no_label;                    /* 1: the label may be missing (its string is then ""): TSV lines without a header are
                                        text alone, TABs and all; .txt files may lie in DIR itself */
    int header;                      /* 1: the first line of TSV is a header, whether names are given or not */
    const char *separator; /* a text may have several labels, or none: a label of JSONL may be an array of texts, which are
                              joined with this, and a label may be empty; NULL: neither */
    int numbers;           /* 1: a label of JSONL may be any number */
    const char *column_separator; /* of tables: "tab", "comma", "semicolon" or "bar", or the character. NULL: found in the first
                                     256 KiB: of CSV , TAB ; or |, the one whose header has the names, and by which all rows
                                     have as many columns; of TSV a TAB where the first row has one, else ; | or , */
    int rows;      /* 1: every row of a file is given, with its columns: a header first, and those without a text,
                                     which is then "". Labels are not looked at. TSV has a header where it has names that texts
                                     and labels mostly have; a table of one column is texts alone */
    int preferred; /* 1: columns that are not in the file are as if they were not given */
} qkv_labelled_opts;

/* Calls each(data, x) for every text of a file (plain or gzip) or folder; a status that is not OK ends it and is handed on.
 * Texts of nothing but white space (or with such a pair, or null in JSON) are left out and counted as empty, and so are empty lines of
 * a table; texts without a label (in JSON also null, or no member) are left out and counted as unlabelled. White space around a
 * label is no part of it. A byte order mark at the start of a file is no part of it, nor is a line "sep=;" before a table, nor an
 * empty line of JSONL a text. A label may be a whole number or boolean in JSON. Where there are pairs in TSV without a header,
 * every line has one.
 * FORMAT with file and line: a line without its columns or with others, a column that is not in the header or is there twice, a
 * quote that is open (the line it opens in), a JSON line that is not an object or lacks a member, JSON lines that all lack the label, a
 * label with a TAB, a newline or a NUL; when strict a text without a label and an empty line; a folder without folders; LIMIT for a file in a folder, or a quoted field, of more than 64 MiB;
 * USAGE for NULL or a format that is none; UNSUPPORTED as in qkv_text_start(); IO; MEMORY. What was read goes to *read (may be
 * NULL): lines of the file, or files of the folder, which then count as lines. */
QKV_API qkv_status qkv_read_labelled(const char *path, const qkv_labelled_opts *opts, qkv_labelled_each each, void *data,
                                     qkv_read_stats *read);

/* Documents of plain text: a line each, paragraphs (lines up to a blank one, joined by newlines), or the whole file. */
typedef enum qkv_document_kind { QKV_DOCUMENT_LINES, QKV_DOCUMENT_PARAGRAPHS, QKV_DOCUMENT_FILES } qkv_document_kind;
typedef qkv_status (*qkv_document_each)(void *data, qkv_str text);

/* Calls each for every document of a file, plain or gzip, in order; those of white space alone are left out and counted as
 * empty; pairs counts the others. A carriage return at the end of a line is no part of it, but of a whole file it is, which
 * counts as one line (those that were repaired are counted in it too). FORMAT for damaged gzip or, when strict, a line that is
 * not UTF-8; UNSUPPORTED as in qkv_text_start(); USAGE; IO; MEMORY. */
QKV_API qkv_status qkv_read_documents(const char *path, qkv_document_kind kind, int strict, qkv_document_each each, void *data,
                                      qkv_read_stats *read);

typedef struct qkv_batch_opts {
    size_t size;
    int64_t max_tokens; /* rows times the longest row, of source and of target each, padding included; 0 means 2048 */
    uint64_t seed;
    int sequential;      /* 1: as the pairs were added; else sorted by length, and the batches shuffled */
    int32_t start, end;  /* a target goes in as start + ids and must come out as ids + end; a source is ids + end */
    int target_has_both; /* 1: its ids have start and end: it goes in without its last id, must come out without its first */
    int32_t pad;
    int source_has_end; /* 1: its ids have the end, and none is added but to a source without any */
} qkv_batch_opts;

/* What a label is that does not count. */
#define QKV_IGNORED (-100)

/* One batch, a result; the elements of its arrays may be changed. */
typedef struct qkv_batch {
    int64_t rows, source_length, target_length; /* the longest of the rows */
    int64_t tokens;                             /* labels that count */
    int32_t *source, *target, *labels;          /* (rows, length), padded */
    int32_t *source_lengths, *target_lengths;   /* (rows) */
} qkv_batch;

/* One pass over all pairs, cut into batches: each pair once. It depends on the pairs, the options and the number of the epoch
 * alone, so a training that goes on later sees the batches it would have seen. NULL on error: USAGE, MEMORY. You own it; the
 * pairs must outlive it and not change. */
typedef struct qkv_loader qkv_loader;
QKV_API qkv_loader *qkv_loader_new(const qkv_dataset *p, const qkv_batch_opts *opts, uint64_t number);
QKV_API void qkv_loader_free(qkv_loader *e);
QKV_API int64_t qkv_loader_size(const qkv_loader *e);

/* The i-th batch; a pair that is longer than max_tokens is a batch of its own. *out is NULL or a batch of before, whose memory is
 * used again. You own it: qkv_free(). USAGE for NULL and i out of range; MEMORY. Then *out is NULL or empty. */
QKV_API qkv_status qkv_loader_batch(const qkv_loader *e, int64_t i, qkv_batch **out);

#ifdef __cplusplus
}
#endif
#endif
