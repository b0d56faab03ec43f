/* qkv/tokenizer.h: text to ids and back; training a tokenizer.
 *
 * Threads: any number of threads may use one tokenizer, each with results of its own; word counts are for one thread at a time. */
#ifndef QKV_TOKENIZER_H
#define QKV_TOKENIZER_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- how special tokens are spelled ----
 * Here and nowhere else: what stands around a text is asked of a model, see qkv_model_special_tokens(). Ours: */
#define QKV_SPECIAL_PAD "<pad>"
#define QKV_SPECIAL_START "<s>"
#define QKV_SPECIAL_END "</s>"
#define QKV_SPECIAL_UNKNOWN "<unk>" /* words and characters that are not known */
#define QKV_SPECIAL_MASK "<mask>"
/* What a tokenizer is trained with unless asked otherwise: the ids 0 to 3. */
#define QKV_SPECIALS QKV_SPECIAL_PAD, QKV_SPECIAL_START, QKV_SPECIAL_END, QKV_SPECIAL_UNKNOWN
/* Those of published models that are spelled otherwise: BERT's; GPT-2's, which begins and ends a document with the same one. */
#define QKV_SPECIAL_BERT_PAD "[PAD]"
#define QKV_SPECIAL_BERT_UNKNOWN "[UNK]"
#define QKV_SPECIAL_BERT_START "[CLS]"
#define QKV_SPECIAL_BERT_END "[SEP]"
#define QKV_SPECIAL_BERT_MASK "[MASK]"
#define QKV_SPECIAL_GPT2_END "<|endoftext|>"

/* ---- the tokenizer ----
 * Byte pairs are byte-level BPE, as GPT-2 has it. Text is cut into words by GPT-2's pattern (a word takes the space before it
 * with it); the bytes of a word are joined pair by pair, the merge learned first goes first. Every byte has a token, so there
 * is no unknown text, and decoding gives back the very bytes. A token is spelled with one visible character a byte: "\u0120cat"
 * is " cat".
 *
 * Words are as they lie between white space (Unicode's White_Space), in lower case: "Great film!" gives "great" and "film!"; a
 * word that the tokenizer has not learned is <unk>. Characters are code points as they are; one that is not known is <unk>. In
 * both kinds decoding gives back the text of known tokens (words with one space between them). Lower case goes code point by
 * code point, as Hugging Face's Lowercase does it: also U+0130 becomes i and U+0307, and a capital sigma never a final one.
 * Letters younger than utf8proc's Unicode stay as they are.
 *
 * Wordpunct is like words, but punctuation marks are separate tokens, as BertPreTokenizer splits them: "Great film!" gives
 * "great", "film" and "!". Decoding puts a space between all of them.
 *
 * Any other tokenizer is a published one: it does with text what its file says, step by step, and gives the ids of Hugging
 * Face's tokenizers or of SentencePiece. Characters younger than utf8proc's Unicode, or than theirs, may be of another kind.
 *
 * A tokenizer does not change once made: any number of threads may use it at once, each with its own results. */
typedef enum qkv_token_kind {
    QKV_TOKEN_BPE,
    QKV_TOKEN_WORDS,
    QKV_TOKEN_CHARACTERS,
    QKV_TOKEN_WORDPUNCT,
    QKV_TOKEN_PUBLISHED
} qkv_token_kind;
typedef struct qkv_tokenizer qkv_tokenizer;

/* Reads one file, and what belongs to it in the same folder (tokenizer_config.json where it is there):
 *   tokenizer.json  Hugging Face's: the models BPE, WordPiece, Unigram and WordLevel; the normalizers NFC, NFD, NFKC, NFKD,
 *                   Lowercase, StripAccents, BertNormalizer, Replace, Prepend, Strip and Precompiled; the pre-tokenizers
 *                   ByteLevel, Split, Whitespace, WhitespaceSplit, BertPreTokenizer, Metaspace, Digits and Punctuation; the
 *                   post-processors TemplateProcessing, BertProcessing, RobertaProcessing and ByteLevel; the decoders
 *                   ByteLevel, WordPiece, Metaspace, Replace, ByteFallback, Fuse, Strip and BPEDecoder; Sequences of them;
 *                   added tokens. A model without a type is the one whose keys it has. Truncation and padding are the caller's:
 *                   they are passed over, and so are keys that Hugging Face's reader ignores
 *   *vocab.json     GPT-2's and RoBERTa's, with *merges.txt beside it; add_prefix_space of tokenizer_config.json counts
 *   *.txt           BERT's vocab.txt, a token a line; do_lower_case, strip_accents and tokenize_chinese_chars count
 *   *.model, *.spm  SentencePiece's, of the type unigram or bpe; add_bos_token, add_eos_token and tokenizer_class count
 * NULL on error: IO; FORMAT for anything malformed, the file and the key, line or byte named; UNSUPPORTED for anything that
 * would give other ids, the key named; LIMIT for a file of more than 256 MiB; MEMORY. You own it. */
QKV_API qkv_tokenizer *qkv_tokenizer_load(const char *path);

QKV_API void qkv_tokenizer_free(qkv_tokenizer *t);

/* Writes a tokenizer.json that Hugging Face's tokenizers read with the same ids: whole or not at all. USAGE for NULL;
 * UNSUPPORTED for one that was read from SentencePiece's files; IO; MEMORY. */
QKV_API qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path);

QKV_API int32_t qkv_tokenizer_vocab_size(const qkv_tokenizer *t); /* ids are 0 .. size-1, maybe with gaps; 0 for NULL */
QKV_API const char *qkv_tokenizer_token(const qkv_tokenizer *t, int32_t id); /* its spelling, "" in a gap; NULL out of range */
QKV_API int32_t qkv_tokenizer_id(const qkv_tokenizer *t, const char *spelling); /* its id; -1 when there is none */
QKV_API int qkv_tokenizer_is_special(const qkv_tokenizer *t, int32_t id);       /* such as <pad>; 0 out of range */

/* ---- text to ids ---- */
typedef struct qkv_span {
    size_t begin, end; /* bytes begin .. end-1 of the text */
} qkv_span;

typedef struct qkv_encoding { /* a result */
    int32_t *ids;             /* n of them */
    int32_t *types;  /* of which text each is, as the tokenizer says it: 0 unless there are two, mostly 1 for the second one */
    qkv_span *spans; /* where each comes from in the text as it was given. Those of byte pairs and characters lie side by side
                      * and are together the whole text; white space between words belongs to none of them. A token that
                      * stands around the text has an empty one */
    int64_t n;
    int64_t second; /* ids from this one on belong to the second text: their spans are in that one. n where there is one text */
} qkv_encoding;

typedef struct qkv_encode_opts {
    size_t size;
    qkv_str pair; /* a second text, for a model that judges one by the other; its data is not NULL then, even if it is empty */
    int parse_special; /* 1: special tokens written in the text become their ids; else they are text like any other */
    int add_special;   /* 1: with the tokens that a published tokenizer's file puts around text, such as [CLS] and [SEP]. Models
                        * may add more, such as the <s> of a Llama: see qkv_model_tokenize() */
    int no_special;    /* of qkv_model_tokenize(), which adds special tokens: 1 adds none */
    int allow_invalid_utf8; /* 1: bytes that are not UTF-8 are taken too, as they are: a word with such bytes is not known, and
                             * of characters each mistake is one that is not known; to a published tokenizer each is U+FFFD */
} qkv_encode_opts;

/* The ids of a text, or of two, the first before the second. NULL opts means all zero. Time grows with length * log(length) at
 * most (and with the longest token of a published one). FORMAT, with the offset, for text that is not UTF-8; LIMIT for text of
 * 2 GiB or more, or one that an expression of the tokenizer's file takes too long for; UNSUPPORTED for text that a published
 * tokenizer has no token for; USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, qkv_str text, const qkv_encode_opts *opts, qkv_encoding **out);

/* ---- ids to text ---- */
enum { QKV_DECODE_SKIP_SPECIAL = 1 }; /* leaves special tokens out */

/* The bytes of n ids, words with a space between them, those of a published tokenizer as its file says (SentencePiece never
 * shows its control tokens); flags is 0 or QKV_DECODE_SKIP_SPECIAL. Decode the ids of a text together: a SentencePiece
 * tokenizer drops the space before the first word, so ids that are decoded one by one lose every space. Ids of a model need not
 * make whole characters, and the text is then no UTF-8: see qkv_utf8_repair(). USAGE, with the place, for an id out of range;
 * USAGE for NULL, a negative n and other flags; MEMORY. */
QKV_API qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, int64_t n, unsigned flags, qkv_text **out);

/* ---- training ---- */

/* The words (or characters) of a corpus with how often each occurs: all that training needs, however large the corpus. */
typedef struct qkv_word_counts qkv_word_counts;
QKV_API qkv_word_counts *qkv_word_counts_new(qkv_token_kind kind); /* NULL on error: USAGE, MEMORY. You own it. */
QKV_API void qkv_word_counts_free(qkv_word_counts *w);

/* Adds the words of one line, given without its newline. FORMAT, with the offset, for text that is not UTF-8; USAGE for
 * NULL; MEMORY: part of the line may have been added. */
QKV_API qkv_status qkv_word_counts_add(qkv_word_counts *w, qkv_str line);

/* Zero means the default shown. */
typedef struct qkv_tokenizer_opts {
    size_t size;
    int32_t vocab_size;          /* tokens, the special ones and (byte pairs) the 256 bytes included; 8000 */
    int64_t min_count;           /* a pair, word or character that occurs less often is not learned; 2 */
    const char *const *specials; /* ids 0, 1, ..; <pad> <s> </s> <unk> */
    int n_specials;              /* negative: none */
    qkv_token_kind kind;         /* of qkv_tokenizer_train_files(); else that of the words counts */
} qkv_tokenizer_opts;

/* Byte pairs: learns merges, again and again the pair that occurs most often, of those the one with the smaller first id, then
 * the smaller second id. Words and characters: learns those that occur most often, of those the one with smaller bytes; never
 * one with a NUL. Same words, same tokenizer, in whatever order they came. Words that give no more tokens end it early: ask
 * qkv_tokenizer_vocab_size(). Nothing learned spells a special token. NULL on error: USAGE when vocab_size has no room for
 * special tokens and bytes, a special token is empty, given twice, not UTF-8 or (byte pairs) the spelling of a byte, or when
 * (words and characters) <unk> is not among them; LIMIT for 4 GiB of distinct words (byte pairs); MEMORY. */
QKV_API qkv_tokenizer *qkv_tokenizer_train(const qkv_word_counts *w, const qkv_tokenizer_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
