/* qkv/tokenizer.h: text to ids and back; training a tokenizer.
 *
 * Threads: any number of threads may use one tokenizer, each with separate results. Only one thread at a time may use a
 * qkv_word_counts. */
#ifndef QKV_TOKENIZER_H
#define QKV_TOKENIZER_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- spellings of special tokens ----
 * Spellings are defined here only. For the special tokens of a model, see qkv_model_special_tokens(). Native models use: */
#define QKV_SPECIAL_PAD "<pad>"
#define QKV_SPECIAL_START "<s>"
#define QKV_SPECIAL_END "</s>"
#define QKV_SPECIAL_UNKNOWN "<unk>" /* unknown words and characters */
#define QKV_SPECIAL_MASK "<mask>"
/* The default special tokens of a trained tokenizer, ids 0 to 3. */
#define QKV_SPECIALS QKV_SPECIAL_PAD, QKV_SPECIAL_START, QKV_SPECIAL_END, QKV_SPECIAL_UNKNOWN
/* Other spellings in published models: BERT's, and GPT-2's, which starts and ends a document with the same token. */
#define QKV_SPECIAL_BERT_PAD "[PAD]"
#define QKV_SPECIAL_BERT_UNKNOWN "[UNK]"
#define QKV_SPECIAL_BERT_START "[CLS]"
#define QKV_SPECIAL_BERT_END "[SEP]"
#define QKV_SPECIAL_BERT_MASK "[MASK]"
#define QKV_SPECIAL_GPT2_END "<|endoftext|>"

/* ---- the tokenizer ----
 * BPE: byte-level byte-pair encoding, as in GPT-2. GPT-2's pattern splits text into words; a word includes the space before it.
 * The bytes of a word are merged pair by pair, in the order in which the merges were learned. Every byte has a token, so no
 * text is unknown, and decoding restores the exact bytes. A token is spelled with one visible character per byte: "\u0120cat"
 * is " cat".
 *
 * WORDS: words separated by white space (Unicode's White_Space), lowercased: "Great film!" gives "great" and "film!". Unknown
 * words map to <unk>. CHARACTERS: code points, unchanged. Unknown characters map to <unk>. With both kinds, decoding restores
 * the text of known tokens, with one space between words. Lowercasing maps each code point separately, as Hugging Face's
 * Lowercase: U+0130 becomes i and U+0307, and a capital sigma never becomes a final one. Letters newer than utf8proc's Unicode
 * version are unchanged.
 *
 * WORDPUNCT: like WORDS, but punctuation marks are separate tokens, as split by BertPreTokenizer: "Great film!" gives "great",
 * "film" and "!". Decoding puts a space between all tokens.
 *
 * PUBLISHED: a tokenizer of a published model. It applies the steps of its file and gives the ids of Hugging Face's tokenizers
 * or of SentencePiece. Characters newer than utf8proc's Unicode version, or than theirs, may be classified differently.
 *
 * A tokenizer is immutable: any number of threads may use it at once, each with separate results. */
typedef enum qkv_token_kind {
    QKV_TOKEN_BPE,
    QKV_TOKEN_WORDS,
    QKV_TOKEN_CHARACTERS,
    QKV_TOKEN_WORDPUNCT,
    QKV_TOKEN_PUBLISHED
} qkv_token_kind;
typedef struct qkv_tokenizer qkv_tokenizer;

/* Reads one file and its companion files in the same folder (including tokenizer_config.json if it exists):
 *   tokenizer.json  Hugging Face's: the models BPE, WordPiece, Unigram and WordLevel; the normalizers NFC, NFD, NFKC, NFKD,
 *                   Lowercase, StripAccents, BertNormalizer, Replace, Prepend, Strip and Precompiled; the pre-tokenizers
 *                   ByteLevel, Split, Whitespace, WhitespaceSplit, BertPreTokenizer, Metaspace, Digits and Punctuation; the
 *                   post-processors TemplateProcessing, BertProcessing, RobertaProcessing and ByteLevel; the decoders
 *                   ByteLevel, WordPiece, Metaspace, Replace, ByteFallback, Fuse, Strip and BPEDecoder; Sequences of them;
 *                   added tokens. The type of a model without one is inferred from its keys. Truncation and padding are
 *                   ignored: they are the caller's task. Keys that Hugging Face's reader ignores are ignored
 *   *vocab.json     GPT-2's and RoBERTa's, with *merges.txt in the same folder; add_prefix_space of
 *                   tokenizer_config.json applies
 *   *.txt           BERT's vocab.txt, one token per line; do_lower_case, strip_accents and tokenize_chinese_chars apply
 *   *.model, *.spm  SentencePiece's, type unigram or bpe; add_bos_token, add_eos_token and tokenizer_class apply
 * You own the result. NULL on error: IO; FORMAT for malformed files, with the file and the key, line or byte; UNSUPPORTED for
 * features that would change the ids, with the key; LIMIT for a file of more than 256 MiB; MEMORY. */
QKV_API qkv_tokenizer *qkv_tokenizer_load(const char *path);

QKV_API void qkv_tokenizer_free(qkv_tokenizer *t);

/* Writes a tokenizer.json that gives the same ids in Hugging Face's tokenizers. The write is atomic. USAGE for NULL;
 * UNSUPPORTED for a tokenizer read from SentencePiece files; IO; MEMORY. */
QKV_API qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path);

QKV_API int32_t qkv_tokenizer_vocab_size(const qkv_tokenizer *t); /* ids are 0 .. size-1, possibly with gaps; 0 for NULL */
QKV_API const char *qkv_tokenizer_token(const qkv_tokenizer *t, int32_t id); /* its spelling; "" in a gap; NULL out of range */
QKV_API int32_t qkv_tokenizer_id(const qkv_tokenizer *t, const char *spelling); /* its id; -1 if there is none */
QKV_API int qkv_tokenizer_is_special(const qkv_tokenizer *t, int32_t id);       /* such as <pad>; 0 out of range */

/* ---- encoding ---- */
typedef struct qkv_span {
    size_t begin, end; /* bytes begin .. end-1 of the text */
} qkv_span;

typedef struct qkv_encoding { /* a result */
    int32_t *ids;             /* (n) */
    int32_t *types; /* (n) segment ids, as defined by the tokenizer: 0 for a single text; for a pair usually 1 in the second */
    qkv_span
        *spans; /* (n) byte ranges in the original text. Spans of byte pairs and characters are adjacent and cover the whole
                      * text. White space between words is in no span. Added special tokens have empty spans */
    int64_t n;
    int64_t second; /* index of the first id of the second text; spans from there on refer to that text. n for a single text */
} qkv_encoding;

typedef struct qkv_encode_opts {
    size_t size;
    qkv_str pair;      /* a second text, for models that read pairs; data is not NULL then, even if the text is empty */
    int parse_special; /* 1: special tokens written in the text become their ids; 0: they are ordinary text */
    int add_special;   /* 1: add the special tokens of a published tokenizer's file, such as [CLS] and [SEP]. Models may add
                        * more, such as the <s> of a Llama: see qkv_model_tokenize() */
    int no_special;    /* 1: qkv_model_tokenize(), which adds special tokens, adds none */
    int allow_invalid_utf8; /* 1: accept bytes that are not UTF-8, unchanged. A word with such bytes is unknown; of characters
                             * each error is an unknown one; a published tokenizer reads each as U+FFFD */
} qkv_encode_opts;

/* Encodes a text, or two, the first before the second. NULL opts are all zero. Time is at most proportional to
 * length * log(length), and to the longest token of a published tokenizer.
 * FORMAT, with the offset, for text that is not UTF-8; LIMIT for text of 2 GiB or more, or if a regular expression of the
 * tokenizer's file takes too long; UNSUPPORTED for text without a token in a published tokenizer; USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, qkv_str text, const qkv_encode_opts *opts, qkv_encoding **out);

/* ---- decoding ---- */
enum { QKV_DECODE_SKIP_SPECIAL = 1 }; /* omits special tokens */

/* Decodes n ids to bytes. Words are separated by a space. A published tokenizer applies the decoder of its file; SentencePiece
 * control tokens are never shown. flags is 0 or QKV_DECODE_SKIP_SPECIAL.
 * Decode all ids of a text in one call: SentencePiece tokenizers drop the space before the first word, so decoding ids one by
 * one loses every space. Ids of a model may form incomplete characters; the text is then not UTF-8: see qkv_utf8_repair().
 * USAGE, with the index, for an id out of range; USAGE for NULL, a negative n and other flags; MEMORY. */
QKV_API qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, int64_t n, unsigned flags, qkv_text **out);

/* ---- training ---- */

/* The words (or characters) of a corpus with their counts. Training needs nothing else, however large the corpus. */
typedef struct qkv_word_counts qkv_word_counts;
QKV_API qkv_word_counts *qkv_word_counts_new(qkv_token_kind kind); /* NULL on error: USAGE, MEMORY. You own it. */
QKV_API void qkv_word_counts_free(qkv_word_counts *w);

/* Adds the words of one line, given without its newline. FORMAT, with the offset, for text that is not UTF-8; USAGE for
 * NULL; MEMORY: part of the line may have been added. */
QKV_API qkv_status qkv_word_counts_add(qkv_word_counts *w, qkv_str line);

/* Zero means the default shown. */
typedef struct qkv_tokenizer_opts {
    size_t size;
    int32_t vocab_size;          /* number of tokens, including special tokens and the 256 bytes of BPE; 8000 */
    int64_t min_count;           /* minimum count of a pair, word or character; 2 */
    const char *const *specials; /* ids 0, 1, ..; <pad> <s> </s> <unk> */
    int n_specials;              /* negative: none */
    qkv_token_kind kind;         /* for qkv_tokenizer_train_files(); otherwise the kind of the word counts is used */
} qkv_tokenizer_opts;

/* Trains a tokenizer. BPE: repeatedly merges the most frequent pair; ties go to the smaller first id, then to the smaller
 * second id. Words and characters: takes the most frequent ones; ties go to the smaller bytes; entries with a NUL are skipped.
 * The result does not depend on the order of the words. Training stops early if the words give no more tokens: see
 * qkv_tokenizer_vocab_size(). No learned token has the spelling of a special token. You own the result.
 * NULL on error: USAGE if vocab_size is too small for special tokens and bytes; if a special token is empty, duplicate, not
 * UTF-8, or (BPE) the spelling of a byte; if (words and characters) <unk> is not a special token; LIMIT for 4 GiB of distinct
 * words (BPE); MEMORY. */
QKV_API qkv_tokenizer *qkv_tokenizer_train(const qkv_word_counts *w, const qkv_tokenizer_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
