/* qkv/unstable/util.h: what the command shares with the library: UTF-8, files, the machine, memory in use.
 *
 * Threads: any function from any thread, except qkv_set_isa(): not while another thread computes. */
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

/* ---- UTF-8: no overlong form, no surrogate, nothing above U+10FFFF, nothing cut ---- */

/* The offset of the first byte that is part of no character; length when there is none. */
QKV_API size_t qkv_utf8_valid(const char *text, size_t length);

/* The code point text starts with, and how many bytes it takes to *bytes. -1 when it starts with none: *bytes is then how many
 * belong to that one mistake (at least 1; 0 for empty text). */
QKV_API int32_t qkv_utf8_next(const char *text, size_t length, size_t *bytes);

/* Text with U+FFFD for each mistake (the longest start of a character counts as one, as the Unicode standard advises). text is
 * not that of *out. USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_utf8_repair(qkv_str text, qkv_text **out);

/* Columns that text takes on a terminal: an East Asian character takes two, a mark that stands on the letter before it none,
 * all others, and each mistake, one. 0 for NULL. */
QKV_API int64_t qkv_utf8_width(const char *text, size_t length);

/* How many of n pieces of a text, from the first on and as few as do, together make whole characters, at least one byte of
 * them: piece i is the bytes from ends[i - 1] (`begin` for the first) to ends[i] - 1. 1 where none do: a character has few
 * bytes, so 8 pieces are tried; 0 for NULL and for no pieces. Tokens may be parts of a character: joined by this, they can be
 * shown. */
QKV_API int64_t qkv_utf8_join(const char *text, size_t begin, const size_t *ends, int64_t n);

/* What the first bytes of a file say (64 are enough, or all there are): *mark is how many of them are a byte order mark, which
 * is no part of the text: 3 or 0. UNSUPPORTED, with what to do, for data that are not text in UTF-8, by their content: gzip, xz,
 * bzip2, Zstandard, ZIP, Office files, PDF, RTF, Parquet, SQLite, UTF-32 and UTF-16. `name` stands in the sentence. USAGE for
 * NULL. Functions that read text from files follow the same rule, after gzip, but read UTF-16 with a byte order mark; a file
 * with a NUL byte is FORMAT. */
QKV_API qkv_status qkv_text_start(const char *name, const char *start, size_t length, size_t *mark);

/* ---- files ----------------------------------------------------------------------------------- */

/* Writes a whole file, by the rule that every file of the library is written by: a regular file, or one that is not there yet,
 * appears under its name when all of it is on the disk, and until then the old one stays; a link stays, and the file that it
 * leads to is the one that is replaced or made; a device, a pipe or a terminal is written into. IO, also for a folder; MEMORY;
 * LIMIT for a path of 4096 bytes. */
QKV_API qkv_status qkv_file_write(const char *path, const void *bytes, size_t size);

/* Whether qkv_file_write() could begin: better known before a long computation than after it. Writes nothing. IO with the
 * reason, LIMIT. */
QKV_API qkv_status qkv_file_writable(const char *path);

/* Which file is mapped at an address, for a handler of SIGBUS that tells of a model's file that was cut: safe to call there.
 * Its path, cut to `room` bytes with its NUL, goes to path. 0, and an empty path, where there is no file. */
QKV_API int qkv_mapped_file(const void *address, char *path, size_t room);

/* ---- tokenizers ---- */

QKV_API qkv_token_kind qkv_tokenizer_kind(const qkv_tokenizer *t); /* QKV_TOKEN_BPE for NULL */

/* A token for people. Where each character of a spelling stands for a byte (byte pairs, also published ones), and of words and
 * characters, it is the text of the token: a space is U+2581, as SentencePiece spells it; a byte that is no whole character, a
 * control character and the sign U+2581 itself are bytes such as <0xE7>. Other tokens are shown as they are spelled, which is
 * readable. USAGE for NULL or an id out of range; MEMORY. */
QKV_API qkv_status qkv_tokenizer_show(const qkv_tokenizer *t, int32_t id, qkv_text **out);
QKV_API int32_t qkv_tokenizer_find_shown(const qkv_tokenizer *t,
                                         const char *shown); /* its id; -1 when there is none, or memory is out */

/* The tokenizers of a model's folder, the first that it has of: tokenizer.json (with target_tokenizer.json for the other side);
 * source.spm, target.spm and vocab.json, as OPUS-MT's models have them; vocab.json and merges.txt; vocab.txt; tokenizer.model,
 * spiece.model or another *.model. *target is NULL where one tokenizer does both; both are NULL where there is none at all.
 * You own them. USAGE for NULL, or the errors of qkv_tokenizer_load(): both are then NULL. */
QKV_API qkv_status qkv_tokenizers_load(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target);

/* The sentence behind *s, which starts as zero: 1, and where it is, without white space around it; 0 when there is no more. A
 * sentence ends with its line; with 。！or ？; and with . ! ? or an ellipsis where white space follows, and then no small letter.
 * Quotation marks and brackets that close right behind belong to it. A dot behind an initial, a number that begins the
 * sentence, or an abbreviation that goes on (Dr., e.g., "Fig." before a number) ends none. Text may hold any bytes. */
QKV_API int qkv_sentence_next(const char *text, size_t length, qkv_span *s);

/* ---- models ---- */

/* Whether the files that m's weights are mapped from are those that were loaded, by device, inode, size and time of change; OK
 * for weights that lie in memory. IO with the name of one that is not: what is computed from one that was written over may be
 * wrong, and one that was cut ends the process with SIGBUS when its end is looked at. The library handles no signal: a program
 * whose models may be written over can load them in_memory, as `qkv serve` does, call this before each use, as qkv_server does, or
 * handle SIGBUS itself (qkv_mapped_file() says which file it was), as the command does. */
QKV_API qkv_status qkv_model_check_files(const qkv_model *m);

/* The defaults of search and sampling in a model's files; 0: none. A result. A model of ours has a length penalty alone. */
typedef struct qkv_generation {
    int beam_size;
    float
        length_penalty; /* alpha of a beam's scores: of a published model they are the sum of log-probabilities / length^alpha,
                             0 means 1; of ours / ((5 + length) / 6)^alpha, and 0 for 0.6 */
    int64_t max_length, min_length; /* tokens of a text, its start counted */
    int64_t max_new;                /* tokens that are added to a prompt */
    int do_sample;                  /* 1: drawn, else the likeliest */
    int top_k, no_repeat_ngram;
    float temperature, top_p, min_p, repetition_penalty;
    const int32_t *ends, *banned; /* ids that end a text, and ids that are never chosen */
    int n_ends, n_banned;
} qkv_generation;

/* USAGE for NULL, MEMORY. */
QKV_API qkv_status qkv_model_generation(const qkv_model *m, qkv_generation **out);

/* ---- the machine and memory ---- */

/* The i-th instruction set this build holds and the machine can run, best last; NULL after the last. */
QKV_API const char *qkv_isa_at(int i);

/* Uses the named instruction set from now on. Not while another thread computes. UNSUPPORTED when it is unknown or the
 * machine lacks it. Results of different instruction sets differ in their last bits. */
QKV_API qkv_status qkv_set_isa(const char *name);

/* ---- packed weights ----------------------------------------------------------------------------
 * A weight of a loaded model that large products read again is kept a second time, in the order the product wants. That changes
 * the speed and no bit. All of them together take at most the limit: QKV_PACKED in the environment (bytes, or with K, M or G
 * behind; 0: none), else 1 GiB. Both calls are for any thread. */
QKV_API size_t qkv_packed_limit(void);
QKV_API size_t qkv_packed_bytes(void); /* in use now */

/* The most bytes this tape ever held at once. */
QKV_API size_t qkv_tape_peak_bytes(const qkv_tape *t);

QKV_API size_t qkv_session_bytes(const qkv_session *s); /* of all caches */

/* ---- what a model can do ---- */

/* UNSUPPORTED unless m has all of these abilities (qkv_ability, added up), in a sentence that says what it can do instead;
 * USAGE for NULL. */
QKV_API qkv_status qkv_model_check_ability(const qkv_model *m, int abilities);

#ifdef __cplusplus
}
#endif
#endif
