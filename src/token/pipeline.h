/* pipeline.h: what text goes through in a published tokenizer.
 *
 *   text -> added tokens -> normalizers -> added tokens -> pre-tokenizers -> model -> template -> ids;  ids -> decoders -> text
 *
 * A step reads the pieces of one traced text and makes those of the next, one piece at a time. */
#ifndef QKV_SRC_PIPELINE_H
#define QKV_SRC_PIPELINE_H

#include "encoder.h"

/* ---- steps ---- */

typedef struct qkv__step qkv__step;

/* Puts what a piece of e->now becomes into e->next. MEMORY, LIMIT. */
typedef qkv_status qkv__rewrite(const qkv__step *s, qkv__encoder *e, qkv__piece piece);

typedef enum qkv__behavior {
    QKV__ISOLATED,
    QKV__REMOVED,
    QKV__CONTIGUOUS,
    QKV__MERGED_WITH_PREVIOUS,
    QKV__MERGED_WITH_NEXT
} qkv__behavior;

typedef enum qkv__prepend { QKV__NEVER, QKV__ALWAYS, QKV__FIRST } qkv__prepend;

struct qkv__charsmap;

/* One normalizer, pre-tokenizer or decoder; what the fields mean is its rewrite's business. */
struct qkv__step {
    qkv__rewrite *rewrite;
    const char *name;      /* of the file's step, for sentences; NULL: of no file */
    char *text, *content;  /* what is looked for, put in, or removed; what comes in its place */
    qkv__pattern *pattern; /* what is looked for, as a regular expression */
    struct qkv__charsmap *map;
    qkv__behavior behavior;
    qkv__prepend prepend;
    bool invert, compat, compose, left, right, individual, cleanup; /* of several */
    bool clean, chinese, strip_accents, lowercase;                  /* of BertNormalizer */
    bool dummy_prefix, remove_extra, escape, suffix;                /* of SentencePiece */
    int64_t start, stop;                                            /* of the decoder Strip; start: a FixedLength */
    const qkv_tokenizer *tokenizer;                                 /* SentencePiece's: its symbols */
};

typedef struct qkv__steps {
    qkv__step *at;
    size_t n, bytes;
} qkv__steps;

enum { QKV__STEPS_MAX = 256 }; /* of a file */

/* A zeroed step at the end; NULL with the error set. */
qkv__step *qkv__steps_add(qkv__steps *s);
void qkv__steps_free(qkv__steps *s);
void qkv__traced_texts_swap(qkv__encoder *e);

/* Sets what steps may spend on a text of so many bytes: the bytes that they make and the steps of expressions. */
void qkv__steps_bound(qkv__encoder *e, size_t length);

/* Runs them, one after the other, over the pieces of e->now: all of them, or those that are no added tokens. MEMORY, LIMIT. */
qkv_status qkv__steps_run(const qkv__steps *s, qkv__encoder *e, bool all);

/* normalize.c, forms.c, charsmap.c */
qkv__rewrite qkv__lowercase, qkv__strip_accents, qkv__bert_normalize, qkv__replace, qkv__prepend_text, qkv__strip, qkv__nmt,
    qkv__normal_form, qkv__precompiled, qkv__spm_normalize;

/* pretokenize.c */
qkv__rewrite qkv__byte_level, qkv__prepend_missing, qkv__split, qkv__whitespace, qkv__whitespace_split, qkv__bert_split,
    qkv__digits, qkv__punctuation, qkv__fixed_length, qkv__unicode_scripts;

/* decode.c: their pieces are tokens, and they see all of them one after the other */
qkv__rewrite qkv__decode_byte_level, qkv__decode_wordpiece, qkv__decode_metaspace, qkv__decode_byte_fallback, qkv__decode_fuse,
    qkv__decode_strip, qkv__decode_suffix, qkv__decode_ctc, qkv__decode_spm;

/* ---- characters ---- */

/* A character on its way through a normalizer. */
typedef struct qkv__letter {
    int32_t code;
    qkv__range from;
    uint32_t place;      /* among its piece's characters */
    unsigned char class; /* Unicode's combining class; 0: others may combine with it */
} qkv__letter;

/* The characters of a piece of e->now to e->letters; adds one; puts them into e->next as a piece. */
qkv_status qkv__letters_of(qkv__encoder *e, qkv__piece piece);
qkv_status qkv__letter_put(qkv__encoder *e, int32_t code, qkv__range from);
qkv_status qkv__letters_end(qkv__encoder *e);

/* e->letters in Unicode's decomposed form: canonical, or compatible. */
qkv_status qkv__decompose(qkv__encoder *e, bool compat);

/* A character in lower case; two of them for U+0130. Gives how many. */
int qkv__lower(int32_t code, int32_t out[2]);

bool qkv__is_word(int32_t c);        /* letters, marks, digits, connectors: \w as Unicode has it */
bool qkv__is_punctuation(int32_t c); /* Unicode's, and every sign of ASCII */
bool qkv__is_number(int32_t c);

/* ---- SentencePiece's compiled map of characters ---- */

/* From the bytes of a file, which are copied. NULL with the error set: FORMAT, name and key start the sentence; MEMORY. */
struct qkv__charsmap *qkv__charsmap_new(const char *name, const unsigned char *bytes, size_t size);
void qkv__charsmap_free(struct qkv__charsmap *m);

/* The rule of the longest start of text (or of the shortest): how many bytes it replaces, 0 for none, and by what. */
size_t qkv__charsmap_find(const struct qkv__charsmap *m, const char *text, size_t length, bool longest, const char **by,
                          size_t *by_length);

/* ---- the model ---- */

typedef enum qkv__model_kind { QKV__BPE, QKV__WORDPIECE, QKV__WORD_LEVEL, QKV__UNIGRAM } qkv__model_kind;

/* Types of SentencePiece's tokens, as its files number them. */
typedef enum qkv__piece_type {
    QKV__NORMAL = 1,
    QKV__UNKNOWN_PIECE,
    QKV__CONTROL,
    QKV__USER_DEFINED,
    QKV__UNUSED,
    QKV__BYTE
} qkv__piece_type;

/* A token of a template, or one of the texts. */
typedef struct qkv__template_item {
    int32_t id; /* or one of the two below */
    int32_t type;
} qkv__template_item;
enum { QKV__FIRST_TEXT = -1, QKV__SECOND_TEXT = -2 };

typedef struct qkv__template {
    qkv__template_item *at;
    size_t n, bytes;
} qkv__template;
qkv_status qkv__template_put(qkv__template *f, int32_t id, int32_t type); /* MEMORY */

/* Added tokens, looked for in text: their spellings (normalized ones as the normalizer has them), and their ids. */
typedef struct qkv__added {
    qkv_tokenizer *spellings;
    int32_t *ids;
    size_t n;
} qkv__added;

enum { QKV__AFFIX_MAX = 28 }; /* bytes of a BPE's prefix and suffix; the published ones have 4 */

struct qkv__pipeline {
    qkv__model_kind model;
    qkv__added added[2]; /* as they are, and after the normalizers */
    qkv__steps normalizers, pre_tokenizers, decoders;
    qkv__template single, pair; /* empty: the texts alone */
    bool join_with_spaces;      /* there are no decoders */

    char *prefix;          /* before a token that continues a word: WordPiece, and BPE where it is not NULL */
    char *suffix;          /* BPE: after one that ends a word; NULL: nothing */
    size_t longest_word;   /* WordPiece: a word of more characters is unknown */
    double *scores;        /* Unigram: of each token */
    double unknown_score;  /* Unigram */
    bool single_precision; /* Unigram: scores of ways are rounded as SentencePiece does it */
    bool byte_fallback, fuse_unknown, ignore_merges;
    int32_t byte_ids[256]; /* byte fallback: -1 where there is none */

    bool is_spm;             /* SentencePiece's own rules for what is unknown */
    bool template_is_said;   /* SentencePiece: a tokenizer_config.json says whether texts have tokens around them */
    unsigned char *types;    /* SentencePiece: of each token */
    uint32_t *ranks;         /* SentencePiece's BPE: of the merge that makes a token; a higher score goes first */
    qkv__added user_defined; /* SentencePiece: never cut, never changed */
    qkv_tokenizer *pieces;   /* OPUS-MT: cuts the text; the ids are those of the pieces' spellings here */
    int32_t *ids_of_pieces;  /* and of each of them */

    qkv_buffer source; /* the file, for saving; empty when it cannot be saved */
};
typedef struct qkv__pipeline qkv__pipeline;

/* Of a tokenizer with n tokens. */
void qkv__pipeline_free(qkv__pipeline *p, size_t n);

/* Lists the added tokens, after the tokens were sorted and the normalizers are known. LIMIT, MEMORY. */
qkv_status qkv__pipeline_finish(qkv_tokenizer *t);

/* The longest of the added tokens that text starts with, with its length; -1 when there is none. */
int32_t qkv__added_at(const qkv__added *a, const char *text, size_t length, size_t *bytes);

/* Room for n of them; sets the i-th; after the last. MEMORY. */
qkv_status qkv__added_begin(qkv__added *a, size_t n);
qkv_status qkv__added_set(qkv__added *a, size_t i, const char *spelling, int32_t id);
qkv_status qkv__added_end(qkv__added *a);
void qkv__added_free(qkv__added *a);

/* Cuts them out of the pieces of e->now. MEMORY. */
qkv_status qkv__cut_added(const qkv_tokenizer *t, qkv__encoder *e, const qkv__added *a);

/* Text to ids, without a template, added to out; and back, added to out. */
qkv_status qkv__pipeline_encode(const qkv_tokenizer *t, const char *text, size_t length, bool specials, qkv__ids *out);
qkv_status qkv__pipeline_decode(const qkv_tokenizer *t, const int32_t *ids, size_t n, bool skip_specials, qkv_buffer *out);

/* One piece of e->now to ids. */
qkv_status qkv__bpe_encode(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out);
qkv_status qkv__wordpiece_encode(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out);
qkv_status qkv__unigram_encode(const qkv_tokenizer *t, qkv__piece piece, qkv__ids *out);

/* Adds a token of bytes begin .. end-1 of the traced text. */
qkv_status qkv__put_token(const qkv_tokenizer *t, int32_t id, size_t begin, size_t end, qkv__ids *out);

/* Adds what stands for bytes that no token spells: bytes of their own where the model has them, else <unk>. */
qkv_status qkv__put_unknown(const qkv_tokenizer *t, size_t begin, size_t end, qkv__ids *out);

/* Whether text may give this token now. */
static inline bool qkv__may_give(const qkv_tokenizer *t, const qkv__encoder *e, int32_t id)
{
    return id >= 0 && (e->specials || !t->tokens[id].is_special);
}

#endif
