/* qkv/text.h: UTF-8, and tokenizers, of one's own or as models are published with them: text to ids and back.
 *
 * Text is bytes with a length; it may hold NUL. Results go to structs that start as zero and are used again and again, like
 * the line of getline(3): they grow when they must, and their free function takes them back.
 *
 * Threads: any number of calls at a time; what a call changes (a result, word counts, pairs) is for one thread at a time, and
 * what it only reads (a tokenizer, pairs that nobody adds to, an epoch) for any number, each with results of its own. */
#ifndef QKV_TEXT_H
#define QKV_TEXT_H

#include <qkv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- text that grows ---- */
typedef struct qkv_buffer {
    char *data; /* length bytes and a NUL after them; NULL while nothing was ever put there */
    size_t length;
    size_t capacity;
} qkv_buffer;
QKV_API void qkv_buffer_free(qkv_buffer *t);

/* ---- UTF-8: no overlong form, no surrogate, nothing above U+10FFFF, nothing cut ---- */

/* The offset of the first byte that is part of no character; length when there is none. */
QKV_API size_t qkv_utf8_valid(const char *text, size_t length);

/* The code point text starts with, and how many bytes it takes to *bytes. -1 when it starts with none: *bytes is then how many
 * belong to that one mistake (at least 1; 0 for empty text). */
QKV_API int32_t qkv_utf8_next(const char *text, size_t length, size_t *bytes);

/* Text with U+FFFD for each mistake (the longest start of a character counts as one, as the Unicode standard advises).
 * text must not be out's own. MEMORY. */
QKV_API qkv_status qkv_utf8_repair(const char *text, size_t length, qkv_buffer *out);

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

/* The tokenizers of a model's folder, the first that it has of: tokenizer.json (with target_tokenizer.json for the other side);
 * source.spm, target.spm and vocab.json, as OPUS-MT's models have them; vocab.json and merges.txt; vocab.txt; tokenizer.model,
 * spiece.model or another *.model. *target is NULL where one tokenizer does both; both are NULL where there is none at all.
 * You own them. USAGE for NULL, or the errors of qkv_tokenizer_load(): both are then NULL. */
QKV_API qkv_status qkv_tokenizers_load(const char *folder, qkv_tokenizer **source, qkv_tokenizer **target);
QKV_API void qkv_tokenizer_free(qkv_tokenizer *t);

/* Writes a tokenizer.json that Hugging Face's tokenizers read with the same ids: whole or not at all. USAGE for NULL;
 * UNSUPPORTED for one that was read from SentencePiece's files; IO; MEMORY. */
QKV_API qkv_status qkv_tokenizer_save(const qkv_tokenizer *t, const char *path);

QKV_API qkv_token_kind qkv_tokenizer_kind(const qkv_tokenizer *t); /* QKV_TOKEN_BPE for NULL */
QKV_API int32_t qkv_tokenizer_vocab_size(const qkv_tokenizer *t);  /* ids are 0 .. size-1, maybe with gaps; 0 for NULL */
QKV_API const char *qkv_tokenizer_token(const qkv_tokenizer *t, int32_t id); /* its spelling, "" in a gap; NULL out of range */
QKV_API int32_t qkv_tokenizer_id(const qkv_tokenizer *t, const char *spelling); /* its id; -1 when there is none */
QKV_API int qkv_tokenizer_is_special(const qkv_tokenizer *t, int32_t id);       /* such as <pad>; 0 out of range */

/* A token for people. Where each character of a spelling stands for a byte (byte pairs, also published ones), and of words and
 * characters, it is the text of the token: a space is U+2581, as SentencePiece spells it; a byte that is no whole character, a
 * control character and the sign U+2581 itself are bytes such as <0xE7>. Other tokens are shown as they are spelled, which is
 * readable. USAGE for NULL or an id out of range; MEMORY. */
QKV_API qkv_status qkv_tokenizer_show(const qkv_tokenizer *t, int32_t id, qkv_buffer *out);
QKV_API int32_t qkv_tokenizer_find_shown(const qkv_tokenizer *t,
                                         const char *shown); /* its id; -1 when there is none, or memory is out */

/* ---- text to ids ---- */
typedef struct qkv_span {
    size_t begin, end; /* bytes begin .. end-1 of the text */
} qkv_span;

/* The sentence behind *s, which starts as zero: 1, and where it is, without white space around it; 0 when there is no more. A
 * sentence ends with its line; with 。！or ？; and with . ! ? or an ellipsis where white space follows, and then no small letter.
 * Quotation marks and brackets that close right behind belong to it. A dot behind an initial, a number that begins the
 * sentence, or an abbreviation that goes on (Dr., e.g., "Fig." before a number) ends none. Text may hold any bytes. */
QKV_API int qkv_sentence_next(const char *text, size_t length, qkv_span *s);

typedef struct qkv_ids {
    int32_t *ids;    /* n of them */
    qkv_span *spans; /* where each comes from in the text as it was given. Those of byte pairs and characters lie side by side
                      * and are together the whole text; white space between words belongs to none of them. A token that
                      * stands around the text has an empty one */
    int32_t *types;  /* of which text each is, as the tokenizer says it: 0 unless there are two, mostly 1 for the second one */
    size_t n;
    size_t second; /* ids from this one on belong to the second text: their spans are in that one. n where there is one text */
    size_t ids_bytes, spans_bytes, types_bytes; /* of the allocations */
    struct qkv_ids_encoder *encoder;            /* working memory */
    void *reserved[4];
} qkv_ids;
QKV_API void qkv_ids_free(qkv_ids *ids);

typedef struct qkv_encode_opts {
    size_t size;
    int specials;  /* 1: special tokens written in the text become their ids; else they are text like any other */
    int any_bytes; /* 1: bytes that are not UTF-8 are taken too, as they are: a word with such bytes is not known, and of
                    * characters each mistake is one that is not known; to a published tokenizer each is U+FFFD */
    int with_special_tokens; /* 1: with the tokens that a published tokenizer's file puts around text, such as [CLS] and [SEP].
                              * Models may add more, such as the <s> of a Llama: see qkv_model_tokenize() */
} qkv_encode_opts;

/* NULL opts means all zero. Time grows with length * log(length) at most (and with the longest token of a published one).
 * FORMAT, with the offset, for text that is not UTF-8; LIMIT for text of 2 GiB or more, or one that an expression of the
 * tokenizer's file takes too long for; UNSUPPORTED for text that a published tokenizer has no token for; USAGE for NULL;
 * MEMORY. *out then holds no ids. */
QKV_API qkv_status qkv_tokenizer_encode(const qkv_tokenizer *t, const char *text, size_t length, const qkv_encode_opts *opts,
                                        qkv_ids *out);

/* The ids of two texts, the first before the second, as a model reads them that judges one by the other. The same errors. */
QKV_API qkv_status qkv_tokenizer_encode_pair(const qkv_tokenizer *t, const char *text, size_t length, const char *second,
                                             size_t second_length, const qkv_encode_opts *opts, qkv_ids *out);

/* ---- ids to text ---- */

/* The bytes of n ids, words with a space between them, those of a published tokenizer as its file says (SentencePiece never
 * shows its control tokens); skip_specials leaves special tokens out. Decode the ids of a text together: a SentencePiece
 * tokenizer drops the space before the first word, so ids that are decoded one by one lose every space. Ids of a model need not
 * make whole characters: see qkv_utf8_repair(). USAGE, with the place, for an id out of range; MEMORY. *out is then empty. */
QKV_API qkv_status qkv_tokenizer_decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, int skip_specials,
                                        qkv_buffer *out);

/* ---- training ---- */

/* The words (or characters) of a corpus with how often each occurs: all that training needs, however large the corpus. */
typedef struct qkv_word_counts qkv_word_counts;
QKV_API qkv_word_counts *qkv_word_counts_new(void);                   /* for byte pairs; NULL when memory is out. You own it. */
QKV_API qkv_word_counts *qkv_word_counts_new_of(qkv_token_kind kind); /* the same for any kind; USAGE for another */
QKV_API void qkv_word_counts_free(qkv_word_counts *w);
QKV_API int64_t qkv_word_counts_distinct(const qkv_word_counts *w);

/* Adds the words of one line, given without its newline. FORMAT, with the offset, for text that is not UTF-8; USAGE for
 * NULL; MEMORY: part of the line may have been added. */
QKV_API qkv_status qkv_word_counts_add(qkv_word_counts *w, const char *line, size_t length);

typedef struct qkv_lines_read {
    int64_t lines;
    int64_t repaired, first_repaired; /* lines that were not UTF-8, and the number (from 1) of the first one */
    void *reserved[4];
} qkv_lines_read;

/* Adds the words of every line of a file, plain or gzip. Lines that are not UTF-8 are repaired, or refused with their number
 * when strict: FORMAT. FORMAT for damaged gzip; UNSUPPORTED as in qkv_text_start(); IO; USAGE for NULL; MEMORY. What was read
 * goes to *read (may be NULL). */
QKV_API qkv_status qkv_word_counts_add_file(qkv_word_counts *w, const char *path, int strict, qkv_lines_read *read);

/* Zero means the default shown. */
typedef struct qkv_tokenizer_opts {
    size_t size;
    int32_t vocabulary;          /* tokens, the special ones and (byte pairs) the 256 bytes included; 8000 */
    int64_t min_count;           /* a pair, word or character that occurs less often is not learned; 2 */
    const char *const *specials; /* ids 0, 1, ..; <pad> <s> </s> <unk> */
    int n_specials;              /* negative: none */
} qkv_tokenizer_opts;

/* Byte pairs: learns merges, again and again the pair that occurs most often, of those the one with the smaller first id, then
 * the smaller second id. Words and characters: learns those that occur most often, of those the one with smaller bytes; never
 * one with a NUL. Same words, same tokenizer, in whatever order they came. Words that give no more tokens end it early: ask
 * qkv_tokenizer_vocab_size(). Nothing learned spells a special token. NULL on error: USAGE when the vocabulary has no room for
 * special tokens and bytes, a special token is empty, given twice, not UTF-8 or (byte pairs) the spelling of a byte, or when
 * (words and characters) <unk> is not among them; LIMIT for 4 GiB of distinct words (byte pairs); MEMORY. */
QKV_API qkv_tokenizer *qkv_tokenizer_train(const qkv_word_counts *w, const qkv_tokenizer_opts *opts);

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

/* What was read. Numbers of lines count from 1. */
typedef struct qkv_corpus_read {
    int64_t lines, pairs;             /* of each side read, added */
    int64_t repaired, first_repaired; /* lines of the file, or of the first of two, that were not UTF-8; the first one */
    int64_t empty, first_empty;       /* pairs with nothing but white space on a side: left out */
    int64_t too_long, first_too_long; /* pairs left out for max_length */
    int64_t target_repaired, first_target_repaired; /* lines of the second file that were not UTF-8; the first one */
    int64_t unlabelled, first_unlabelled;           /* labelled texts without a label: left out */
    void *reserved[2];
} qkv_corpus_read;

/* Adds the words of every pair of lines: the sources' to one bag, the targets' to the other, which may be the same. FORMAT,
 * with the file and the line, for files of unequally many lines, a line without a TAB or with more than one (one file), a line
 * that is not UTF-8 (strict), damaged gzip; UNSUPPORTED as in qkv_text_start(); IO; USAGE for NULL or a negative max_length;
 * MEMORY. What was read goes to *read (may be NULL). */
QKV_API qkv_status qkv_word_counts_add_corpus(qkv_word_counts *sources, qkv_word_counts *targets, const char *source,
                                              const char *target, const qkv_corpus_opts *opts, qkv_corpus_read *read);

/* Adds every pair of lines as ids; special tokens written in a line are text like any other. The same errors and those of
 * qkv_dataset_add_ids(); a corpus that gives no pair at all is FORMAT too. On an error some pairs may have been added. */
QKV_API qkv_status qkv_dataset_add_files(qkv_dataset *p, const qkv_tokenizer *sources, const qkv_tokenizer *targets,
                                         const char *source, const char *target, const qkv_corpus_opts *opts,
                                         qkv_corpus_read *read);

/* Calls each(data, source, n, target, m) for every pair of lines as it stands in the files, one with an empty side or of any
 * length too; the texts end when the callback returns. A status that is not OK ends it and is handed on. The errors of
 * qkv_word_counts_add_corpus(). */
typedef qkv_status (*qkv_line_pair_each)(void *data, const char *source, size_t n, const char *target, size_t m);
QKV_API qkv_status qkv_read_pairs(const char *source, const char *target, const qkv_corpus_opts *opts, qkv_line_pair_each each,
                                  void *data);

/* ---- labelled text and documents, read one at a time ---- */

/* One labelled text; the strings end when the callback returns. pair is NULL where there is one text. */
typedef struct qkv_labelled {
    const char *label, *text, *pair; /* UTF-8, each ends with a NUL */
    size_t label_length, text_length, pair_length;
    const char *path; /* the file it comes from, and its line there, for sentences */
    int64_t line;
    int64_t repaired;           /* of a file in a folder: the first line that was not UTF-8; 0: none, or another format */
    const char *const *columns; /* with `rows`: n_columns of a table, or the one object of JSONL; else NULL */
    const size_t *column_lengths;
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
                                     qkv_corpus_read *read);

/* Documents of plain text: a line each, paragraphs (lines up to a blank one, joined by newlines), or the whole file. */
typedef enum qkv_document_kind { QKV_DOCUMENT_LINES, QKV_DOCUMENT_PARAGRAPHS, QKV_DOCUMENT_FILES } qkv_document_kind;
typedef qkv_status (*qkv_document_each)(void *data, const char *text, size_t length);

/* Calls each for every document of a file, plain or gzip, in order; those of white space alone are left out and counted as
 * empty; pairs counts the others. A carriage return at the end of a line is no part of it, but of a whole file it is, which
 * counts as one line (those that were repaired are counted in it too). FORMAT for damaged gzip or, when strict, a line that is
 * not UTF-8; UNSUPPORTED as in qkv_text_start(); USAGE; IO; MEMORY. */
QKV_API qkv_status qkv_read_documents(const char *path, qkv_document_kind kind, int strict, qkv_document_each each, void *data,
                                      qkv_corpus_read *read);

typedef struct qkv_batch_opts {
    size_t size;
    int64_t max_tokens; /* rows times the longest row, of source and of target each, padding included; 0 means 2048 */
    uint64_t seed;
    int in_order;       /* 1: as the pairs were added; else sorted by length, and the batches shuffled */
    int32_t start, end; /* a target goes in as start + ids and must come out as ids + end; a source is ids + end */
    int bare; /* 1: a target has its start and end already: it goes in without its last id and must come out without its first
               */
    int32_t pad;
    int bare_source; /* 1: a source is its ids alone; one without any has the end all the same */
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
    void *reserved[4];
} qkv_batch;
QKV_API void qkv_batch_free(qkv_batch *b);

/* One pass over all pairs, cut into batches: each pair once. It depends on the pairs, the options and the number of the epoch
 * alone, so a training that goes on later sees the batches it would have seen. NULL on error: USAGE, MEMORY. You own it; the
 * pairs must outlive it and not change. */
typedef struct qkv_loader qkv_loader;
QKV_API qkv_loader *qkv_loader_new(const qkv_dataset *p, const qkv_batch_opts *opts, uint64_t number);
QKV_API void qkv_loader_free(qkv_loader *e);
QKV_API int64_t qkv_loader_size(const qkv_loader *e);

/* The i-th batch; a pair that is longer than max_tokens is a batch of its own. USAGE for i out of range, MEMORY. */
QKV_API qkv_status qkv_loader_batch(const qkv_loader *e, int64_t i, qkv_batch *out);

#ifdef __cplusplus
}
#endif
#endif
