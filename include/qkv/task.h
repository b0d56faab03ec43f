/* qkv/task.h: what a model is for, text in and text out: translate, generate, classify, tag, answer, rank, embed, fill in
 * masked words, measure how likely a text is; and the loss that some of these learn by.
 *
 * Threads: any number of calls at a time on one model that nobody changes; a result is written by one call at a time. */
#ifndef QKV_TASK_H
#define QKV_TASK_H

#include <qkv/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is translated at once. Results are joined: lines stay lines; sentences in Chinese, Japanese and Thai are joined without a
 * space, others with the white space of the text, or a space. White space around the text is not kept. */
typedef enum qkv_split {
    QKV_SPLIT_NONE,      /* the whole text */
    QKV_SPLIT_SENTENCES, /* a sentence, see qkv_sentence_next() */
    QKV_SPLIT_PARTS,     /* as many sentences as max_source allows; lines are not kept */
    QKV_SPLIT_AUTO       /* a line; or its sentences one by one, if it has more of them than the lines in training
                            (qkv_model_info.sentences), or more tokens than max_source; with a prefix always the line */
} qkv_split;

/* ---- translation: an encoder and a decoder ----
 * The search is that of <qkv/session.h>. Of a published model beam_size, length_penalty (with length_norm) and the largest
 * max_length are what its files say, unless the options do; and so are its ends and what is never found. A source is at most
 * its context. Of a model of ours length_penalty is what was kept with it, see qkv_model_set_length_penalty(), or 0.6. */
typedef struct qkv_translate_opts {
    size_t size;
    int beam_size;         /* 0 means 4, or n_best if that is more; 1 is greedy */
    int n_best;            /* 0 means 1; at most beam_size */
    float length_penalty;  /* as in qkv_search_opts, and so are the next three; what is 0 is as the model's files say */
    int no_length_penalty; /* 1: a score is log p, whatever length_penalty is */
    int64_t max_length;
    int no_repeat_ngram;
    const char *target_prefix; /* every translation starts with this text; NULL: none */
    int64_t max_source;        /* tokens of a source, what stands around it not counted; 0 means 1024; see qkv_source_bound */
    int attention;             /* 1: the attention and the alignment of every translation are kept */
    const qkv_shortlist *shortlist; /* as in qkv_search_opts; NULL: none */
    /* Codes of languages, of a model that has several: as its tokenizer spells them, "en_XX", "eng_Latn", or "en" for "__en__" and
     * ">>en<<". NULL: as its files say. USAGE for one that it has not, and for no target where it needs one. */
    const char *source_lang, *target_lang;
    const char *source_prefix;         /* put before every source, and counted in max_source; NULL: nothing */
    qkv_split split;                   /* with attention, anything but NONE is USAGE */
    int64_t min_length;                /* tokens of a translation, at least; 0 is as the model's files say */
    qkv_each_candidate each_candidate; /* as in qkv_search_opts, of one text alone: with several USAGE; NULL: none */
    void *each_candidate_data;
    const qkv_hooks *hooks; /* cancel, before every step; NULL: none */
} qkv_translate_opts;

/* One translation of one text. */
typedef struct qkv_translation {
    qkv_str text; /* with a NUL behind it; bytes of the model that make no character have become U+FFFD */
    double log_p, score;
    int truncated;      /* it reached max_length before its end */
    const int32_t *ids; /* n_ids of them, without start and end */
    int64_t n_ids;      /* -1: the search found fewer than n_best, and there is none here */
    /* With `attention`; NULL without, and for an empty text. Row i is what the decoder attends to while it chooses id i, the last
     * row while it chooses the end. */
    const float *attention;      /* cross-attention: (layers, heads, n_ids + 1, n_source) */
    const float *mean_attention; /* its mean over layers and heads: (n_ids + 1, n_source) */
    const int64_t *alignment;    /* (n_ids): which of the text's own tokens, counted from 0 and without what stands around them,
                                    each attends to most by the mean, the first of equals */
} qkv_translation;

/* What bounds the tokens of a source: the options, learned positions, or max_position_embeddings of a published config.json. */
typedef enum qkv_source_bound { QKV_SOURCE_BOUND_OPTION, QKV_SOURCE_BOUND_POSITIONS, QKV_SOURCE_BOUND_CONFIG } qkv_source_bound;

/* A result, see qkv_free(). */
typedef struct qkv_translations {
    int64_t n; /* texts */
    int n_best;
    const qkv_status *status; /* (n): QKV_OK, or LIMIT for a source of more than max_source tokens: it has no translation */
    const int32_t *const *source_ids; /* (n): n_source[i] ids, the end included; NULL where there is nothing to translate */
    const int64_t *n_source;          /* (n); 0 for an empty text; for a source over the limit, how many it would have */
    const qkv_translation *best;      /* (n, n_best), best first */
    int64_t max_source;               /* tokens that a source may have, the source_around that stand around it not counted */
    int64_t source_around;            /* n_source counts them */
    qkv_source_bound source_bound;    /* what says so */
    int layers, heads;                /* of attention */
} qkv_translations;

/* Translates n texts, which may hold any bytes; what is not UTF-8 is read as U+FFFD. A text's result does not depend on the texts
 * beside it, nor on threads. An empty text, or one of white space alone, gives an empty translation with score 0. What stands
 * around texts is told at qkv_special_tokens in <qkv/model.h>; the padding of a model of ours is <pad>. USAGE for NULL, options
 * that do not fit, or a model without encoder, decoder, tokenizer or those tokens; NUMERIC, LIMIT, MEMORY; CANCELLED. */
QKV_API qkv_status qkv_translate(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                                 qkv_translations **out);

/* Summarizes n texts as qkv_translate() translates them, with two differences. What opts leave 0 is as the model's files say of
 * summaries. A text with more tokens than are read at once is summarized in parts, whose summaries are
 * joined by spaces. The errors are the same. */
QKV_API qkv_status qkv_summarize(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                                 qkv_translations **out);

/* ---- generation: a decoder alone continues a text ---- */

/* CANCELLED: hooks ended it, and the result has what was there. END also when no_repeat_ngram leaves no id that may come. */
typedef enum qkv_finish { QKV_FINISH_END, QKV_FINISH_STOP, QKV_FINISH_LENGTH, QKV_FINISH_CANCELLED } qkv_finish;

/* An id and its log-probability, as log_p below. */
typedef struct qkv_likely {
    int32_t id; /* -1: none */
    double log_p;
} qkv_likely;

/* A result, see qkv_free(). */
typedef struct qkv_generated {
    qkv_str text;        /* the new text, with a NUL behind it and without the stop string; bytes that make no character have
                            become U+FFFD */
    const int32_t *ids;  /* n new ids, the end not among them, those of a stop string too */
    const double *log_p; /* of each, by the model's own probabilities (before temperature and the rest) */
    int64_t n, n_prompt; /* new ids; ids of the prompt, without the start */
    int64_t n_cached;    /* ids of the prompt that were not read, as a chat had read them before */
    qkv_finish finish;
    const int32_t *prompt_ids;    /* (n_prompt) */
    const qkv_likely *top;        /* (n, n_top): likeliest first, of equally likely ones the smaller id */
    const qkv_likely *prompt_top; /* (n_prompt, n_top) with score_prompt; ids of -1 where nothing is before the first id */
    const double *prompt_log_p;   /* (n_prompt) with score_prompt; NaN where nothing is before the first id */
} qkv_generated;

/* A piece of new text, whole characters only, as soon as no stop string can begin in it; so_far is the result up to it, and valid
 * during the call. Not OK ends the generation with that status. */
typedef qkv_status (*qkv_on_text)(void *data, const qkv_generated *so_far, qkv_str piece);

typedef struct qkv_generate_opts {
    size_t size;
    int64_t max_tokens;       /* new ones at most; 0: what a published model's files say (max_new_tokens), else what the context
                                 leaves, else 128. More than the context leaves is capped */
    float temperature;        /* logits are divided by it; 0 is greedy, and the default */
    int top_k;                /* only the k likeliest; 0: any */
    float top_p;              /* only the likeliest whose probabilities together reach p, in (0, 1]; 0 means 1 */
    float min_p;              /* only those at least min_p times as likely as the likeliest, in [0, 1] */
    float repetition_penalty; /* > 0; logits of ids that the text, prompt included, has already are divided (above 0) or
                                 multiplied (below 0) by it; 0 means 1, none */
    float presence_penalty;   /* taken from the logits of ids that have come, the prompt not counted; may be negative */
    float frequency_penalty;  /* the same, as often as each has come */
    int no_repeat_ngram;      /* a run of so many tokens does not come twice, prompt included; 0: any may */
    const char *const *stops; /* the text ends before the first of these strings to be complete; n_stops of them */
    int n_stops;
    uint64_t seed;
    int64_t sample;      /* number of the sample: others for other numbers */
    int32_t start, end;  /* ids that every text starts with and ends with; -1: none. When both are 0, a text starts as the model
                           reads it, and any id ends it that the model's files name; of ours <s> and </s> */
    const int32_t *ends; /* n_ends ids that end a text too */
    int n_ends;
    const int32_t *prompt_ids; /* the prompt as ids of the tokenizer instead of text, n_prompt_ids of them; what a text starts
                                  with goes before them unless they begin with it. NULL: none */
    int64_t n_prompt_ids;
    int parse_special;   /* 1: special tokens that are spelled in the prompt are these tokens; else they are text */
    int no_special;      /* 1: nothing goes before the prompt: it has its own start, as chat templates write it */
    int past_context;    /* 1: goes on past the model's context; UNSUPPORTED for positions that end there */
    int no_new_tokens;   /* 1: the prompt is read, and nothing comes behind it */
    int no_log_p;        /* 1: the log_p of new ids is not computed and NaN: a sum over the vocabulary less for each */
    int n_top;           /* for every id, so many that were the likeliest in its place; at most 32 */
    int score_prompt;    /* 1: for the ids of the prompt too, and their log_p */
    qkv_on_text on_text; /* NULL: none */
    void *on_text_data;
    const qkv_hooks *hooks; /* cancel, before every step; NULL: none */
} qkv_generate_opts;

/* Sets *out to the options that a published model's files ask for (generation_config.json, else config.json): do_sample with
 * temperature (1 unless said), top_k, top_p and min_p; repetition_penalty, no_repeat_ngram_size and max_new_tokens. What they
 * do not say, or say out of range, and all of it for NULL or a model of ours, is zero. qkv_generate() itself takes max_tokens
 * alone from them. USAGE for no place. */
QKV_API qkv_status qkv_sampling_defaults(const qkv_model *m, qkv_generate_opts *out);

/* Continues `prompt` (may be empty), or the ids of the options. The penalties and filters go in the
 * order they have above, each on what the one before has left, the three penalties and no_repeat_ngram before all others. Special
 * tokens but the end, and ids without a token, stand for no text and never come. The same seed and sample give the same text
 * at any number of threads. Prompt and new text, the start counted, have at most as many tokens as the model's context
 * (qkv_model_info.max_positions; 2^20 tokens where that is 0, and with past_context): generation stops there with QKV_FINISH_LENGTH,
 * and a prompt that leaves no room for one more token is LIMIT. USAGE for NULL, options out of range, a
 * model that has an encoder or no tokenizer, or an empty prompt without a start; FORMAT for a prompt that is not UTF-8;
 * NUMERIC; MEMORY; and what on_text gave. */
QKV_API qkv_status qkv_generate(const qkv_model *m, qkv_str prompt, const qkv_generate_opts *opts, qkv_generated **out);

/* ---- texts as an encoder reads them ----
 * An encoder alone reads <s> text </s>, and of a pair <s> text </s> pair </s>; the encoder of a translator reads text </s>.
 * More than max_length ids, the last </s> not counted, are cut off, or read in windows of as many. A published encoder reads
 * what its tokenizer makes of text and pair; of a pair that is too long the longer of the two is cut, at its end. */
typedef struct qkv_encoder_opts {
    size_t size;
    int64_t max_length;        /* 0 means 512 */
    int windows;               /* 1: a longer text is read window by window, and the results averaged; else it is cut */
    const qkv_str *pairs;      /* (n): second texts; one whose data is NULL is none. NULL: none at all */
    const int32_t *const *ids; /* (n): token ids instead of texts, which are then not looked at: n_ids[i] of them, with or
                                  without the special tokens around a text. For qkv_classify() and qkv_embed(). NULL: none */
    const int64_t *n_ids;      /* (n) */
    const qkv_hooks *hooks;    /* cancel, before every batch; NULL: none */
} qkv_encoder_opts;

/* A row of `width` numbers for each text. A result, see qkv_free(). */
typedef struct qkv_matrix {
    const float *data; /* (rows, width) */
    int64_t rows, width;
    int64_t truncated; /* texts that were longer than max_length */
} qkv_matrix;

/* ---- classification: an encoder alone, pooled, and a classifier ---- */

/* The probability of each class, (n, classes); of a model whose texts may have several labels (see qkv_problem) that of each by
 * itself. Another model with one class (a cross-encoder, a reranker, a regression) gives its logit x instead, (n, 1);
 * 1 / (1 + e^-x) brings it between 0 and 1. A text's numbers do not depend on the texts beside it. An empty text is read as
 * <s> </s>. What is not UTF-8 is read as U+FFFD. USAGE for NULL, a model without classifier or tokenizer, pairs of ids and an id
 * outside the vocabulary; LIMIT, MEMORY, NUMERIC; CANCELLED. */
QKV_API qkv_status qkv_classify(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts,
                                qkv_matrix **out);

/* ---- labels of words: an encoder alone, and a classifier of its tokens ---- */
typedef struct qkv_tagged_span {
    qkv_span bytes;      /* of the text */
    qkv_span characters; /* the same counted in code points */
    int64_t label_id;    /* of a word; of an entity that of its first word */
    qkv_str label; /* the model's, else "LABEL_3", with a NUL behind it; of an entity without the B- and the like before it */
    double score;  /* of a word the probability of its label; of an entity the mean of its words' */
} qkv_tagged_span;

typedef struct qkv_tagged_text {
    qkv_str text;                            /* as it was given, but with U+FFFD for what was not UTF-8; a NUL follows */
    const qkv_tagged_span *words, *entities; /* in the order of the text */
    int64_t n_words, n_entities;
    int64_t windows; /* that the text was read in */
} qkv_tagged_text;

/* A result, see qkv_free(). */
typedef struct qkv_tagged {
    int64_t n;
    const qkv_tagged_text *texts; /* (n) */
} qkv_tagged;

/* The likeliest label of every word of n texts (pairs and ids are not read). A word has the label of its first token, which may be
 * the space before it where that is a token of its own. Where a tokenizer marks tokens that go on with a word (WordPiece),
 * words are what it says; else they end at white space, and where letters, marks and digits meet other characters; each
 * ideograph or kana begins one. Words are joined to entities by their labels: B-X begins one and I-X goes on with it, or
 * begins one where there is none; of IOBES and BILOU E- and L- end one, S- and U- are one alone, and M- is like I-. Labels
 * without such marks are names by themselves: words in a row that have the same are one entity. O is no entity. A text of
 * more tokens than max_length is read in windows, `windows` or not, that share a quarter of their tokens: each token counts
 * where more stands around it. A text's results do not depend on the texts beside it. UNSUPPORTED for a model that does not
 * tag; and as qkv_classify(). */
QKV_API qkv_status qkv_tag(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts, qkv_tagged **out);

/* ---- answers: an encoder alone, and a classifier of the two ends of a span ---- */
typedef struct qkv_answer_opts {
    size_t size;
    int n_best;         /* 0 means 1; at most 100 */
    int64_t max_length; /* tokens of a window, question and special tokens counted; 0 means 384; at most what the model reads */
    int64_t overlap;    /* tokens of the context that two windows share; 0 means 128; at most half of what a window has */
    int64_t max_answer; /* tokens of an answer; 0 means 30 */
    int must_answer;    /* 1: "no answer" is none */
    const qkv_hooks *hooks; /* cancel, before every batch; NULL: none */
} qkv_answer_opts;

typedef struct qkv_answer_span {
    qkv_span bytes;      /* of the context */
    qkv_span characters; /* the same counted in code points */
    double score;
    int is_none; /* 1: the context has no answer, says the model; the spans are empty */
} qkv_answer_span;

/* A result, see qkv_free(). */
typedef struct qkv_answers {
    qkv_str context;             /* as it was given, but with U+FFFD for what was not UTF-8; a NUL follows */
    const qkv_answer_span *best; /* n of them, best first; at most n_best */
    int n;
    double none_score; /* of no answer */
    int64_t windows;   /* that the context was read in */
} qkv_answers;

/* Where a context answers a question. It is read with the question before each of its windows; of a question that takes more
 * than half of a window the rest is cut off. In a window p(i) is softmax of the logits of the first token of an answer and
 * q(j) of its last one, over the tokens of the context and the one that all texts begin with; the score of an answer from i
 * to j is p(i) q(j), the same in two windows counts once, by its better score. Answers are whole words, as in qkv_tag(). "No
 * answer" has the score of the text's first token as both ends, the smallest of all windows, as models of SQuAD 2 mean it,
 * and is in its place among the others. So Hugging Face's pipeline computes them. UNSUPPORTED for a model that finds
 * no answers; USAGE for NULL and options out of range; and as qkv_classify(). */
QKV_API qkv_status qkv_answer(const qkv_model *m, qkv_str question, qkv_str context, const qkv_answer_opts *opts,
                              qkv_answers **out);

/* ---- ranking: a cross-encoder reads a query with each passage ---- */
typedef struct qkv_ranked {
    int64_t index; /* of the passage */
    float score;   /* 1 / (1 + e^-logit), or the logit if the model's files ask for that */
    float logit;
} qkv_ranked;

/* A result, see qkv_free(). */
typedef struct qkv_ranking {
    int64_t n;
    const qkv_ranked *best; /* (n): all passages, best first, of equals the smaller index first */
    int64_t truncated;      /* pairs that were cut */
} qkv_ranking;

/* How well each of n passages fits a query (pairs and ids of opts are not read). UNSUPPORTED for a model that does not have one
 * class; and as qkv_classify(). */
QKV_API qkv_status qkv_rank(const qkv_model *m, qkv_str query, const qkv_str *passages, int64_t n, const qkv_encoder_opts *opts,
                            qkv_ranking **out);

/* ---- embedding: any encoder, pooled ---- */
typedef enum qkv_embed_as {
    QKV_EMBED_AS_PUBLISHED, /* what a published model's files say of it counts for pooling, normalize and a max_length of 0 */
    QKV_EMBED_AS_GIVEN      /* the options alone count */
} qkv_embed_as;

typedef struct qkv_embed_opts {
    size_t size;
    qkv_embed_as as;
    const qkv_encoder_opts *reading; /* NULL: all zero */
    qkv_pooling pooling;             /* of an encoder with a classifier also QKV_POOLING_ATTENTION */
    int normalize;                   /* 1: every vector has length 1 (one of zeros stays) */
} qkv_embed_opts;

/* A vector for each text, (n, dim); as published and of a folder of sentence-transformers as wide as its modules (Pooling of
 * any kind, Dense) make it. Errors as qkv_classify(), but no classifier is needed; UNSUPPORTED for a decoder alone. */
QKV_API qkv_status qkv_embed(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_embed_opts *opts, qkv_matrix **out);

/* ---- masked words ---- */
typedef struct qkv_fill_opts {
    size_t size;
    int n_best;             /* 0 means 5; at most the vocabulary */
    const qkv_hooks *hooks; /* cancel; NULL: none */
} qkv_fill_opts;

/* One token for a mask, and the text with it in the mask's place; the other masks stay. */
typedef struct qkv_filling {
    int32_t id;
    double p;      /* by softmax over the whole vocabulary */
    qkv_str token; /* what it stands for, without white space around it; a NUL follows, as in text */
    qkv_str text;  /* the token of a new word has the white space that the mask had */
} qkv_filling;

/* A result, see qkv_free(). */
typedef struct qkv_filled {
    int64_t masks; /* in the text */
    int n_best;
    const qkv_span *places;  /* (masks): where each mask is in the text as it was given, without white space around it */
    const qkv_filling *best; /* (masks, n_best), likeliest first, of equally likely ones the smaller id */
} qkv_filled;

/* The n_best likeliest tokens for every mask in a text. A mask is written as the tokenizer spells it, or [MASK], or <mask>;
 * other special tokens in the text are those tokens too. What is not UTF-8 is read as U+FFFD (then places are those of the
 * repaired text). USAGE for NULL, a negative n_best, a model that is not an encoder alone, has no tokenizer, does not fill words
 * or has no mask, and for a text without a mask; LIMIT for more tokens than the model has positions for; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_fill_mask(const qkv_model *m, qkv_str text, const qkv_fill_opts *opts, qkv_filled **out);

/* ---- likelihood ---- */

/* How surprising texts are: the sum of -log p over their tokens, the end included, and how many those are. Perplexity is
 * exp(nats / tokens), bits a byte nats / log(2) / bytes. Starts as zero. */
typedef struct qkv_nll {
    double nats;
    int64_t tokens;
} qkv_nll;

typedef struct qkv_likelihood_opts {
    size_t size;
    int64_t context;        /* tokens of a window; 0 means 256 */
    int64_t stride;         /* tokens that windows move by, from 1 to context; 0 means context */
    const qkv_hooks *hooks; /* cancel, before every window; NULL: none */
} qkv_likelihood_opts;

/* Adds a document's to *sum. Each token is counted once, in the first window that has it. With a stride of context, nats / tokens
 * is the mean loss that training reports for the same text. What is not UTF-8 is read as U+FFFD. USAGE for NULL, a model that has
 * an encoder or no tokenizer, or numbers out of range; NUMERIC; MEMORY; CANCELLED. *sum is then of no use. */
QKV_API qkv_status qkv_log_likelihood(const qkv_model *m, qkv_str text, const qkv_likelihood_opts *opts, qkv_nll *sum);

#ifdef __cplusplus
}
#endif
#endif
