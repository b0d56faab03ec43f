/* qkv/text.h: UTF-8, and a byte-level tokenizer: text to ids and back.
 *
 * Text is bytes with a length; it may hold NUL. Results go to structs that start as zero and are used again and again, like
 * the line of getline(3): they grow when they must, and their free function takes them back. */
#ifndef QKV_TEXT_H
#define QKV_TEXT_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- text that grows ---- */
typedef struct qkv_text {
    char *data; /* length bytes and a NUL after them; NULL while nothing was ever put there */
    size_t length;
    size_t capacity;
} qkv_text;
QKV_API void qkv_text_free(qkv_text *t);

/* ---- UTF-8: no overlong form, no surrogate, nothing above U+10FFFF, nothing cut ---- */

/* The offset of the first byte that is part of no character; length when there is none. */
QKV_API size_t qkv_utf8_check(const char *text, size_t length);

/* The code point text starts with, and how many bytes it takes to *bytes. -1 when it starts with none: *bytes is then how many
 * belong to that one mistake (at least 1; 0 for empty text). */
QKV_API int32_t qkv_utf8_decode(const char *text, size_t length, size_t *bytes);

/* Text with U+FFFD for each mistake (the longest start of a character counts as one, as the Unicode standard advises).
 * text must not be out's own. MEMORY. */
QKV_API qkv_status qkv_utf8_repair(const char *text, size_t length, qkv_text *out);

/* ---- the tokenizer: byte-level BPE, as GPT-2 has it ----
 * Text is cut into words by GPT-2's pattern (a word takes the space before it with it); the bytes of a word are joined pair by
 * pair, the merge learned first goes first. Every byte has a token, so there is no unknown text, and decoding gives back the
 * very bytes. A token is spelled with one visible character a byte: "\u0120cat" is " cat".
 * A tokenizer does not change once made: any number of threads may use it at once, each with its own results. */
typedef struct qkv_tokenizer qkv_tokenizer;

/* Reads a Hugging Face tokenizer.json of this kind: model BPE, pre-tokenizer ByteLevel, added tokens. NULL on error: IO;
 * FORMAT for anything malformed, the file and the key named; UNSUPPORTED for anything that would give other ids, the key named;
 * LIMIT for a file of more than 256 MiB; MEMORY. You own it. */
QKV_API qkv_tokenizer *qkv_tokenizer_load(const char *path);
QKV_API void qkv_tokenizer_free(qkv_tokenizer *t);

/* Writes a tokenizer.json that Hugging Face's tokenizers read with the same ids: whole or not at all. USAGE for NULL; IO;
 * MEMORY. */
QKV_API qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path);

QKV_API int32_t qkv_tokenizer_size(const qkv_tokenizer *t);                       /* ids are 0 .. size-1; 0 for NULL */
QKV_API const char *qkv_tokenizer_token(const qkv_tokenizer *t, int32_t id);      /* its spelling; NULL out of range */
QKV_API int32_t qkv_tokenizer_find(const qkv_tokenizer *t, const char *spelling); /* its id; -1 when there is none */
QKV_API int qkv_tokenizer_is_special(const qkv_tokenizer *t, int32_t id);         /* such as <pad>; 0 out of range */

/* ---- text to ids ---- */
typedef struct qkv_span {
    size_t begin, end; /* bytes begin .. end-1 of the text */
} qkv_span;

typedef struct qkv_ids {
    int32_t *ids;    /* n of them */
    qkv_span *spans; /* where each comes from: side by side, together the whole text */
    size_t n;
    size_t ids_bytes, spans_bytes; /* of the allocations */
    struct qkv__encoder *encoder;  /* working memory */
} qkv_ids;
QKV_API void qkv_ids_free(qkv_ids *ids);

typedef struct qkv_encode_opts {
    int specials;  /* 1: special tokens written in the text become their ids; else they are text like any other */
    int any_bytes; /* 1: bytes that are not UTF-8 are taken too, as they are */
} qkv_encode_opts;

/* NULL opts means all zero. Time grows with length * log(length) at most. FORMAT, with the offset, for text that is not UTF-8;
 * LIMIT for text of 2 GiB or more; USAGE for NULL; MEMORY. *out then holds no ids. */
QKV_API qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encode_opts *opts,
                                        qkv_ids *out);

/* ---- ids to text ---- */

/* The bytes of n ids; skip_specials leaves special tokens out. Ids of a model need not make whole characters: see
 * qkv_utf8_repair(). USAGE, with the place, for an id out of range; MEMORY. *out is then empty. */
QKV_API qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, int skip_specials, qkv_text *out);

/* ---- training ----
 * The words of a corpus with how often each occurs: all that training needs, however large the corpus. */
typedef struct qkv_words qkv_words;
QKV_API qkv_words *qkv_words_new(void); /* NULL when memory is out. You own it. */
QKV_API void qkv_words_free(qkv_words *w);
QKV_API int64_t qkv_words_distinct(const qkv_words *w);

/* Adds the words of one line, given without its newline. FORMAT, with the offset, for text that is not UTF-8; USAGE for
 * NULL; MEMORY: part of the line may have been added. */
QKV_API qkv_status qkv_words_add(qkv_words *w, const char *line, size_t length);

typedef struct qkv_lines_read {
    int64_t lines;
    int64_t repaired, first_repaired; /* lines that were not UTF-8, and the number (from 1) of the first one */
} qkv_lines_read;

/* Adds the words of every line of a file, plain or gzip. Lines that are not UTF-8 are repaired, or refused with their number
 * when strict: FORMAT. FORMAT for damaged gzip; IO; USAGE for NULL; MEMORY. What was read goes to *read (may be NULL). */
QKV_API qkv_status qkv_words_add_file(qkv_words *w, const char *path, int strict, qkv_lines_read *read);

/* Zero means the default shown. */
typedef struct qkv_bpe_opts {
    int32_t size;                /* of the vocabulary, special tokens and the 256 bytes included; 8000 */
    int64_t min_count;           /* a pair that occurs less often is not merged; 2 */
    const char *const *specials; /* ids 0, 1, ..; <pad> <s> </s> <unk> */
    int n_specials;              /* negative: none */
} qkv_bpe_opts;

/* Learns merges: again and again the pair that occurs most often, of those the one with the smaller first id, then the smaller
 * second id. Same words, same tokenizer, in whatever order they came. Words that give no more pairs end it early: ask
 * qkv_tokenizer_size(). No merge spells a special token. NULL on error: USAGE when size has no room for special tokens and
 * bytes, or a special token is empty, given twice, not UTF-8 or the spelling of a byte; LIMIT for 4 GiB of distinct words;
 * MEMORY. */
QKV_API qkv_tokenizer *qkv_tokenizer_train(const qkv_words *w, const qkv_bpe_opts *opts);

/* ---- pairs of id sequences, and batches of them ---- */
typedef struct qkv_pairs qkv_pairs;
QKV_API qkv_pairs *qkv_pairs_new(void); /* NULL when memory is out. You own it. */
QKV_API void qkv_pairs_free(qkv_pairs *p);
QKV_API int64_t qkv_pairs_count(const qkv_pairs *p);

/* Adds a copy of one pair: n source ids and m target ids, without start and end. USAGE for NULL; LIMIT for 2^31 - 1 ids or more
 * on a side; MEMORY; IO: then nothing was added. Ids of more than QKV_PAIRS_IN_MEMORY bytes lie in a temporary file (in TMPDIR,
 * or /tmp) that is gone when p is freed, or when the program ends however it ends. The memory they need is then that of their
 * lengths, 16 bytes a pair, and of their order, at most 48 more for an epoch. */
#define QKV_PAIRS_IN_MEMORY ((size_t)256 << 20)
QKV_API qkv_status qkv_pairs_add(qkv_pairs *p, const int32_t *source, size_t n, const int32_t *target, size_t m);

/* ---- a corpus: pairs of lines in files, plain or gzip ----
 * Line i of one file belongs to line i of the other; or, where the second path is NULL, each line of the one file is
 * "source TAB target". A last line without a newline is a line; a carriage return at the end of a line is not part of it.
 * Zero means the default shown; NULL options are all zero. */
typedef struct qkv_corpus_opts {
    int strict;         /* 1: a line that is not UTF-8 is refused; else U+FFFD stands in for each mistake */
    int64_t max_length; /* a pair with more tokens than this on either side is left out; 0: none is. Words have no tokens */
} qkv_corpus_opts;

/* What was read. Numbers of lines count from 1. */
typedef struct qkv_corpus_read {
    int64_t lines, pairs;             /* of each side read, added */
    int64_t repaired, first_repaired; /* lines that were not UTF-8, of both files; the first one */
    int64_t empty, first_empty;       /* pairs with nothing but white space on a side: left out */
    int64_t too_long, first_too_long; /* pairs left out for max_length */
} qkv_corpus_read;

/* Adds the words of every pair of lines: the sources' to one bag, the targets' to the other, which may be the same. FORMAT,
 * with the file and the line, for files of unequally many lines, a line without a TAB or with more than one (one file), a line
 * that is not UTF-8 (strict), damaged gzip; IO; USAGE for NULL or a negative max_length; MEMORY. What was read goes to *read
 * (may be NULL). */
QKV_API qkv_status qkv_words_add_corpus(qkv_words *sources, qkv_words *targets, const char *source, const char *target,
                                        const qkv_corpus_opts *opts, qkv_corpus_read *read);

/* Adds every pair of lines as ids; special tokens written in a line are text like any other. The same errors and those of
 * qkv_pairs_add(); a corpus that gives no pair at all is FORMAT too. On an error some pairs may have been added. */
QKV_API qkv_status qkv_pairs_add_corpus(qkv_pairs *p, const qkv_tokenizer *sources, const qkv_tokenizer *targets,
                                        const char *source, const char *target, const qkv_corpus_opts *opts,
                                        qkv_corpus_read *read);

typedef struct qkv_batch_opts {
    int64_t max_tokens; /* rows times the longest row, of source and of target each, padding included; 0 means 2048 */
    uint64_t seed;
    int in_order;       /* 1: as the pairs were added; else sorted by length, and the batches shuffled */
    int32_t start, end; /* a target goes in as start + ids and must come out as ids + end; a source is ids + end */
    int32_t pad;
} qkv_batch_opts;

/* What a label is that does not count. */
#define QKV_IGNORED (-100)

/* One batch; a zero struct is an empty one, used again and again. */
typedef struct qkv_batch {
    int64_t rows, source_length, target_length; /* the longest of the rows */
    int64_t tokens;                             /* labels that count */
    int32_t *source, *target, *labels;          /* (rows, length), padded */
    int32_t *source_lengths, *target_lengths;   /* (rows) */
    void *memory;
    size_t bytes;
} qkv_batch;
QKV_API void qkv_batch_free(qkv_batch *b);

/* One pass over all pairs, cut into batches: each pair once. It depends on the pairs, the options and the number of the epoch
 * alone, so a training that goes on later sees the batches it would have seen. NULL on error: USAGE, MEMORY. You own it; the
 * pairs must outlive it and not change. */
typedef struct qkv_epoch qkv_epoch;
QKV_API qkv_epoch *qkv_epoch_new(const qkv_pairs *p, const qkv_batch_opts *opts, uint64_t number);
QKV_API void qkv_epoch_free(qkv_epoch *e);
QKV_API int64_t qkv_epoch_batches(const qkv_epoch *e);

/* The i-th batch; a pair that is longer than max_tokens is a batch of its own. USAGE for i out of range, MEMORY. */
QKV_API qkv_status qkv_epoch_batch(const qkv_epoch *e, int64_t i, qkv_batch *out);

#ifdef __cplusplus
}
#endif
#endif
