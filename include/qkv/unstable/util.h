/* qkv/unstable/util.h: utilities shared by the library and the command: UTF-8, files, tokenizers, the machine, memory use.
 *
 * Threads: any function may be called from any thread. Exception: qkv_set_isa() must not run while another thread computes. */
#ifndef QKV_UNSTABLE_UTIL_H
#define QKV_UNSTABLE_UTIL_H

#ifndef QKV_UNSTABLE
#error "qkv/unstable/ may change in every release: define QKV_UNSTABLE before including it"
#endif

#include <qkv/data.h>
#include <qkv/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- UTF-8: strict; overlong forms, surrogates, code points above U+10FFFF and truncated sequences are malformed ---- */

/* The offset of the first malformed byte; length if there is none. */
QKV_API size_t qkv_utf8_valid(const char *text, size_t length);

/* Decodes the first code point of text; *bytes gets its length. -1 for a malformed sequence: *bytes is then the length of that
 * sequence (at least 1; 0 for empty text). */
QKV_API int32_t qkv_utf8_next(const char *text, size_t length, size_t *bytes);

/* Replaces each malformed sequence by U+FFFD. The longest prefix of a character counts as one, as the Unicode standard
 * recommends. text must not be the text of *out. USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_utf8_repair(qkv_str text, qkv_text **out);

/* The number of terminal columns of text. An East Asian character takes two, a combining mark none; any other character and
 * each malformed sequence takes one. 0 for NULL. */
QKV_API int64_t qkv_utf8_width(const char *text, size_t length);

/* The smallest number of leading pieces that together form whole characters, with at least one byte. Piece i is the bytes from
 * ends[i - 1] (`begin` for the first) to ends[i] - 1. At most 8 of the n pieces are tried, since a character has few bytes. 1
 * if none match; 0 for NULL and for no pieces. Use it to display tokens that are parts of a character. */
QKV_API int64_t qkv_utf8_join(const char *text, size_t begin, const size_t *ends, int64_t n);

/* Checks the first bytes of a text file (64, or all if fewer). *mark gets the length of the byte order mark, which is not part
 * of the text: 3 or 0. UNSUPPORTED, with a remedy, for content that is not UTF-8 text: gzip, xz, bzip2, Zstandard, ZIP, Office
 * files, PDF, RTF, Parquet, SQLite, UTF-32 and UTF-16. `name` is used in the message. USAGE for NULL. Functions that read text
 * files apply the same checks after decompressing gzip. They also read UTF-16 with a byte order mark, and reject a file with a
 * NUL byte as FORMAT. */
QKV_API qkv_status qkv_text_start(const char *name, const char *start, size_t length, size_t *mark);

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes a whole file. The library writes all files in this way. A regular or new file is written atomically: the old one
 * stays until all data is on the disk. For a symbolic link, the link stays and its target is replaced or created. A device, a
 * pipe or a terminal is written to directly. IO, also for a folder; MEMORY; LIMIT for a path of 4096 bytes or more. */
QKV_API qkv_status qkv_file_write(const char *path, const void *bytes, size_t size);

/* Checks whether qkv_file_write() can start; call it before a long computation. Writes nothing. IO with the reason, LIMIT. */
QKV_API qkv_status qkv_file_writable(const char *path);

/* Finds the file mapped at an address, to report a truncated model file. Safe to call in a SIGBUS handler. path gets the file's
 * path, truncated to `room` bytes including the NUL. Returns 0, with an empty path, if no file is mapped there. */
QKV_API int qkv_mapped_file(const void *address, char *path, size_t room);

/* ---- tokenizers ---- */

QKV_API qkv_token_kind qkv_tokenizer_kind(const qkv_tokenizer *t); /* QKV_TOKEN_BPE for NULL */

/* A printable form of a token. For byte-level tokenizers (byte pairs, also published ones) and for words and characters, it is
 * the text of the token. A space is U+2581, as in SentencePiece. Incomplete characters, control characters and U+2581 itself
 * are bytes such as <0xE7>. Tokens of other tokenizers keep their spelling. USAGE for NULL or an id out of range; MEMORY. */
QKV_API qkv_status qkv_tokenizer_show(const qkv_tokenizer *t, int32_t id, qkv_text **out);
QKV_API int32_t qkv_tokenizer_find_shown(const qkv_tokenizer *t,
                                         const char *shown); /* its id; -1 if not found or out of memory */

/* Loads the tokenizers of a model's folder from the first of these that exists: tokenizer.json (with target_tokenizer.json for
 * the target side); source.spm, target.spm and vocab.json, as in OPUS-MT models; vocab.json and merges.txt; vocab.txt;
 * tokenizer.model, spiece.model or another *.model. *target is NULL if one tokenizer serves both sides. Both are NULL if the
 * folder has none. The caller owns them. On error both are NULL: USAGE for NULL, or the errors of qkv_tokenizer_load(). */
QKV_API qkv_status qkv_tokenizers_load(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target);

/* Finds the sentence after *s (zero at the start). Returns 1 and its span without surrounding white space, or 0 at the end.
 * A sentence ends at the end of its line; at 。！or ？; and at . ! ? or an ellipsis if white space follows, but no lowercase
 * letter after it. Closing quotation marks and brackets that follow directly belong to the sentence. A dot does not end a
 * sentence after an initial, after a number that begins the sentence, or after an abbreviation that continues (Dr., e.g.,
 * "Fig." before a number). Text may contain any bytes. */
QKV_API int qkv_sentence_next(const char *text, size_t length, qkv_span *s);

/* ---- models ---- */

/* Checks that the mapped files of m's weights are unchanged since loading, by device, inode, size and change time. OK for
 * weights in memory. IO with the name of a changed file. Results from an overwritten file may be wrong. Access beyond the end
 * of a truncated file ends the process with SIGBUS. The library handles no signals. If model files may be overwritten, a
 * program can load models with in_memory (as `qkv serve` does), call this before each use (as qkv_server does), or handle
 * SIGBUS and name the file by qkv_mapped_file() (as the command does). */
QKV_API qkv_status qkv_model_check_files(const qkv_model *m);

/* The search and sampling defaults of a model's files; 0: none. A result. Models in qkv's format have only a length penalty. */
typedef struct qkv_generation {
    int beam_size;
    /* alpha of beam scores. Published models: sum of log-probabilities / length^alpha; 0 means 1. Models in qkv's format: the
     * sum divided by ((5 + length) / 6)^alpha; 0 means 0.6. */
    float length_penalty;
    int64_t max_length, min_length; /* tokens of a text, including its start */
    int64_t max_new;                /* tokens generated after a prompt */
    int do_sample;                  /* 1: sampling, 0: the likeliest token */
    int top_k, no_repeat_ngram;
    float temperature, top_p, min_p, repetition_penalty;
    const int32_t *ends, *banned; /* ids that end a text; ids that are never chosen */
    int n_ends, n_banned;
} qkv_generation;

/* USAGE for NULL, MEMORY. */
QKV_API qkv_status qkv_model_generation(const qkv_model *m, qkv_generation **out);

/* ---- the machine and memory ---- */

/* The i-th instruction set that this build has and the machine supports, best last; NULL after the last. */
QKV_API const char *qkv_isa_at(int i);

/* Sets the instruction set. Do not call while another thread computes. UNSUPPORTED if it is unknown or the machine does not
 * support it. Results of different instruction sets differ in their last bits. */
QKV_API qkv_status qkv_set_isa(const char *name);

/* ---- packed weights ----------------------------------------------------------------------------
 * Weights of a loaded model that large products reuse get a second copy, in the layout of the product. This changes the speed
 * and no bit. The total size is limited to QKV_PACKED of the environment (bytes, or a number with suffix K, M or G; 0: none),
 * else 1 GiB. Both functions may be called from any thread. */
QKV_API size_t qkv_packed_limit(void);
QKV_API size_t qkv_packed_bytes(void); /* in use now */

/* The peak memory of this tape in bytes. */
QKV_API size_t qkv_tape_peak_bytes(const qkv_tape *t);

QKV_API size_t qkv_session_bytes(const qkv_session *s); /* of all caches */

/* ---- abilities of a model ---- */

/* UNSUPPORTED unless m has all of these abilities (a sum of qkv_ability); the message lists the abilities it has. USAGE for
 * NULL. */
QKV_API qkv_status qkv_model_check_ability(const qkv_model *m, int abilities);

#ifdef __cplusplus
}
#endif
#endif
