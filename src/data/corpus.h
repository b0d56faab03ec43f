/* corpus.h: the words of files, and pairs of lines as ids by two tokenizers. */
#ifndef QKV_SRC_DATA_CORPUS_H
#define QKV_SRC_DATA_CORPUS_H

#include <qkv/data.h>

typedef struct qkv__lines_read {
    int64_t lines;
    int64_t repaired, first_repaired; /* lines that were not UTF-8, and the number (from 1) of the first one */
} qkv__lines_read;

/* Adds the words of every line of a file, plain or gzip. Lines that are not UTF-8 are repaired, or refused with their number
 * when strict: FORMAT. FORMAT for damaged gzip; UNSUPPORTED as in qkv_text_start(); IO; USAGE for NULL; MEMORY. What was read
 * goes to *read (may be NULL). */
qkv_status qkv__word_counts_add_file(qkv_word_counts *w, const char *path, int strict, qkv__lines_read *read);

/* Adds the words of every pair of lines: those of the sources to one bag, those of the targets to the other, which may be the
 * same. The errors of qkv_read_pairs(). What was read goes to *read (may be NULL). */
qkv_status qkv__word_counts_add_corpus(qkv_word_counts *sources, qkv_word_counts *targets, const char *source,
                                       const char *target, const qkv_corpus_opts *opts, qkv_read_stats *read);

/* Adds every pair of lines as ids; special tokens written in a line are ordinary text. The errors of qkv_read_pairs() and of
 * qkv_dataset_add_ids(); FORMAT for a corpus without a pair. On an error some pairs may have been added. */
qkv_status qkv__dataset_add_corpus(qkv_dataset *p, const qkv_tokenizer *sources, const qkv_tokenizer *targets,
                                   const char *source, const char *target, const qkv_corpus_opts *opts, qkv_read_stats *read);

#endif
