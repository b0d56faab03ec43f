/* qkv/task.h: tasks from text to results: translate, summarize, generate, classify, tag, answer, rank, embed, fill masks, and
 * measure likelihood. The negative log-likelihood is also the training loss of language models.
 *
 * Threads: any number of concurrent calls may share one model while no thread modifies it. Only one call at a time may write a
 * given result. */
#ifndef QKV_TASK_H
#define QKV_TASK_H

#include <qkv/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The unit of translation. The results of the units are joined. Line breaks are kept. Sentences in Chinese, Japanese and Thai
 * are joined without a space; other sentences are joined with the original white space, or with a space. Leading and trailing
 * white space of the text is removed. */
typedef enum qkv_split {
    QKV_SPLIT_NONE,      /* the whole text */
    QKV_SPLIT_SENTENCES, /* one sentence, see qkv_sentence_next() */
    QKV_SPLIT_PARTS,     /* as many sentences as max_source allows; line breaks are not kept */
    QKV_SPLIT_AUTO       /* one line. A line is split into sentences if it has more sentences than the training lines
                            (qkv_model_info.sentences) or more tokens than max_source. With a prefix, always the line. */
} qkv_split;

/* ---- translation: an encoder and a decoder ----
 * The search is that of <qkv/session.h>. For a published model, its files give the defaults of beam_size, length_penalty (with
 * length_norm) and the largest max_length; the options override them. The files also give the end tokens and the banned tokens.
 * The context of a published model limits the source length. For a native qkv model, the default length_penalty is the value
 * stored by qkv_model_set_length_penalty(), else 0.6. */
typedef struct qkv_translate_opts {
    size_t size;
    int beam_size;         /* 0 means 4, or n_best if that is larger; 1 is greedy */
    int n_best;            /* 0 means 1; at most beam_size */
    float length_penalty;  /* this and the next three: as in qkv_search_opts; 0 means the value in the model's files */
    int no_length_penalty; /* 1: the score is log p; length_penalty is ignored */
    int64_t max_length;
    int no_repeat_ngram;
    const char *target_prefix;      /* every translation starts with this text; NULL: none */
    int64_t max_source;             /* source tokens without special tokens; 0 means 1024; see qkv_source_bound */
    int attention;                  /* 1: keep the attention and the alignment of every translation */
    const qkv_shortlist *shortlist; /* as in qkv_search_opts; NULL: none */
    /* Language codes for a multilingual model, as its tokenizer spells them: "en_XX", "eng_Latn", or "en" for "__en__" and
     * ">>en<<". NULL: the codes in the model's files. USAGE for an unknown code, and for a missing target code that the model
     * requires. */
    const char *source_lang, *target_lang;
    const char *source_prefix;         /* prepended to every source, and counted in max_source; NULL: nothing */
    qkv_split split;                   /* with attention, anything but NONE is USAGE */
    int64_t min_length;                /* minimum tokens of a translation; 0 means the value in the model's files */
    qkv_each_candidate each_candidate; /* as in qkv_search_opts, for a single text; USAGE for several texts; NULL: none */
    void *each_candidate_data;
    const qkv_hooks *hooks; /* cancel, before every step; NULL: none */
} qkv_translate_opts;

/* One translation of one text. */
typedef struct qkv_translation {
    qkv_str text; /* NUL-terminated; model bytes that form no character become U+FFFD */
    double log_p, score;
    int truncated;      /* 1: it reached max_length before its end */
    const int32_t *ids; /* (n_ids), without start and end */
    int64_t n_ids;      /* -1: no translation, the search found fewer than n_best */
    /* With `attention`; NULL otherwise and for an empty text. Row i holds the weights of the decoder while it chooses id i. The
     * last row belongs to the end token. */
    const float *attention;      /* cross-attention: (layers, heads, n_ids + 1, n_source) */
    const float *mean_attention; /* its mean over layers and heads: (n_ids + 1, n_source) */
    const int64_t *alignment;    /* (n_ids): the source token with the largest mean weight; ties take the first. Counted from 0,
                                    without special tokens. */
} qkv_translation;

/* The origin of the source limit: options, learned positions, or max_position_embeddings of a published config.json. */
typedef enum qkv_source_bound { QKV_SOURCE_BOUND_OPTION, QKV_SOURCE_BOUND_POSITIONS, QKV_SOURCE_BOUND_CONFIG } qkv_source_bound;

/* A result, see qkv_free(). */
typedef struct qkv_translations {
    int64_t n; /* texts */
    int n_best;
    const qkv_status *status;         /* (n): QKV_OK, or LIMIT for a source above max_source tokens, which has no translation */
    const int32_t *const *source_ids; /* (n): n_source[i] ids with the end token; NULL if there is nothing to translate */
    const int64_t *n_source;          /* (n): 0 for an empty text; for a source above the limit, the length it would have */
    const qkv_translation *best;      /* (n, n_best), best first */
    int64_t max_source;               /* source limit in tokens, without the source_around special tokens */
    int64_t source_around;            /* special tokens per source; n_source includes them */
    qkv_source_bound source_bound;    /* origin of the limit */
    int layers, heads;                /* of attention */
} qkv_translations;

/* Translates n texts. Texts may hold any bytes; invalid UTF-8 is read as U+FFFD. The result of a text is independent of the
 * other texts and of the number of threads. An empty text, or one of white space alone, gives an empty translation with score
 * 0. Special tokens: see qkv_special_tokens in <qkv/model.h>; a native qkv model pads with <pad>.
 * Errors: USAGE for NULL, options that do not fit, or a model without encoder, decoder, tokenizer or those tokens; NUMERIC,
 * LIMIT, MEMORY; CANCELLED. */
QKV_API qkv_status qkv_translate(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                                 qkv_translations **out);

/* Summarizes n texts. It differs from qkv_translate() in two ways. Options of 0 take the summarization values in the model's
 * files. A text above the source limit is summarized in parts, and the summaries are joined by spaces. Errors are those of
 * qkv_translate(). */
QKV_API qkv_status qkv_summarize(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                                 qkv_translations **out);

/* ---- generation: a decoder alone continues a text ---- */

/* CANCELLED: hooks cancelled the call; the result holds the text up to then. END also if no_repeat_ngram leaves no id. */
typedef enum qkv_finish { QKV_FINISH_END, QKV_FINISH_STOP, QKV_FINISH_LENGTH, QKV_FINISH_CANCELLED } qkv_finish;

/* An id and its log-probability, as log_p below. */
typedef struct qkv_likely {
    int32_t id; /* -1: none */
    double log_p;
} qkv_likely;

/* A result, see qkv_free(). */
typedef struct qkv_generated {
    qkv_str text;        /* the new text, NUL-terminated, without the stop string; bytes that form no character become
                            U+FFFD */
    const int32_t *ids;  /* (n): new ids without the end token, with those of a stop string */
    const double *log_p; /* (n): by the model's probabilities before temperature, penalties and filters */
    int64_t n, n_prompt; /* new ids; prompt ids without the start token */
    int64_t n_cached;    /* prompt ids already in the KV cache of a chat, not read again */
    qkv_finish finish;
    const int32_t *prompt_ids;    /* (n_prompt) */
    const qkv_likely *top;        /* (n, n_top): likeliest first; ties by the smaller id */
    const qkv_likely *prompt_top; /* (n_prompt, n_top) with score_prompt; id -1 for a first id without predecessor */
    const double *prompt_log_p;   /* (n_prompt) with score_prompt; NaN for a first id without predecessor */
} qkv_generated;

/* Receives new text in whole characters, once no stop string can begin in it. so_far is the result up to this piece; it is
 * valid during the call. A status other than OK ends the generation with that status. */
typedef qkv_status (*qkv_on_text)(void *data, const qkv_generated *so_far, qkv_str piece);

typedef struct qkv_generate_opts {
    size_t size;
    int64_t max_tokens;       /* maximum new tokens; 0: max_new_tokens of a published model's files, else the rest of the
                                 context, else 128. Capped to the rest of the context. */
    float temperature;        /* divides the logits; 0 is greedy (default) */
    int top_k;                /* keep the k likeliest; 0: all */
    float top_p;              /* keep the likeliest whose total probability reaches p, in (0, 1]; 0 means 1 */
    float min_p;              /* keep those at least min_p times as likely as the likeliest, in [0, 1] */
    float repetition_penalty; /* > 0; for ids already in the text or prompt: divides logits above 0, multiplies logits below 0;
                                 0 means 1, none */
    float presence_penalty;   /* subtracted from the logits of ids already generated, without the prompt; may be negative */
    float frequency_penalty;  /* the same, times the number of occurrences */
    int no_repeat_ngram;      /* no n-gram of this size occurs twice, prompt included; 0: no restriction */
    const char *const *stops; /* (n_stops): the text ends before the first complete occurrence of one of these strings */
    int n_stops;
    uint64_t seed;
    int64_t sample; /* sample number; each number gives a different sample */
    int32_t start,
        end; /* start and end ids of every text; -1: none. If both are 0, the model's defaults apply: its usual start,
                            and all end ids named in its files; for a native qkv model <s> and </s>. */
    const int32_t *ends; /* (n_ends): additional end ids */
    int n_ends;
    const int32_t *prompt_ids; /* (n_prompt_ids): the prompt as tokenizer ids instead of text. The start tokens are prepended
                                  if the ids do not begin with them. NULL: none */
    int64_t n_prompt_ids;
    int parse_special;   /* 1: special tokens spelled in the prompt are parsed as such; 0: they are ordinary text */
    int no_special;      /* 1: prepend nothing to the prompt; chat templates write their start tokens themselves */
    int past_context;    /* 1: continue past the model's context; UNSUPPORTED for positions that end there */
    int no_new_tokens;   /* 1: read the prompt and generate nothing */
    int no_log_p;        /* 1: log_p of new ids is NaN; this saves a sum over the vocabulary per token */
    int n_top;           /* likeliest alternatives to report for every id; at most 32 */
    int score_prompt;    /* 1: report alternatives and log_p for the prompt ids too */
    qkv_on_text on_text; /* NULL: none */
    void *on_text_data;
    const qkv_hooks *hooks; /* cancel, before every step; NULL: none */
} qkv_generate_opts;

/* Sets *out to the sampling options in a published model's files (generation_config.json, else config.json): do_sample with
 * temperature (default: 1), top_k, top_p and min_p; repetition_penalty, no_repeat_ngram_size and max_new_tokens. Missing and
 * out-of-range values are zero. For NULL and for a native qkv model, all are zero. qkv_generate() itself reads only max_tokens
 * from the files. USAGE if out is NULL. */
QKV_API qkv_status qkv_sampling_defaults(const qkv_model *m, qkv_generate_opts *out);

/* Continues `prompt` (may be empty), or prompt_ids of the options.
 * Penalties and filters apply in the order of the options, each to the output of the previous one. The three penalties and
 * no_repeat_ngram precede all others. Special tokens other than the end, and ids without a token, have no text and are never
 * generated. The same seed and sample give the same text at any number of threads.
 * The context limits prompt plus new text, with the start token: qkv_model_info.max_positions, or 2^20 tokens if that is 0 or
 * with past_context. Generation stops at the limit with QKV_FINISH_LENGTH. LIMIT for a prompt that leaves no room for one more
 * token.
 * Errors: USAGE for NULL, options out of range, a model that has an encoder or no tokenizer, or an empty prompt without a
 * start; FORMAT for a prompt that is not UTF-8; NUMERIC; MEMORY; and any status returned by on_text. */
QKV_API qkv_status qkv_generate(const qkv_model *m, qkv_str prompt, const qkv_generate_opts *opts, qkv_generated **out);

/* ---- encoder input ----
 * An encoder alone reads <s> text </s>, and for a pair <s> text </s> pair </s>. The encoder of a translator reads text </s>. A
 * published encoder reads the output of its tokenizer for text and pair. Ids above max_length, the last </s> not counted, are
 * cut off, or read in windows of max_length. For a published encoder, a pair that is too long is cut at the end of its longer
 * text. */
typedef struct qkv_encoder_opts {
    size_t size;
    int64_t max_length;        /* 0 means 512 */
    int windows;               /* 1: a longer text is read in windows and the results are averaged; 0: it is cut */
    const qkv_str *pairs;      /* (n): second texts; an entry with NULL data is none. NULL: no pairs */
    const int32_t *const *ids; /* (n): n_ids[i] token ids, with or without special tokens; texts are then ignored. For
                                  qkv_classify() and qkv_embed(). NULL: none */
    const int64_t *n_ids;      /* (n) */
    const qkv_hooks *hooks;    /* cancel, before every batch; NULL: none */
} qkv_encoder_opts;

/* A row of `width` numbers for each text. A result, see qkv_free(). */
typedef struct qkv_matrix {
    const float *data; /* (rows, width) */
    int64_t rows, width;
    int64_t truncated; /* number of texts longer than max_length */
} qkv_matrix;

/* ---- classification: an encoder alone, pooled, and a classifier ---- */

/* Computes class probabilities, (n, classes). For a multi-label model (see qkv_problem) each probability is independent.
 * Any other model with one class (a cross-encoder, a reranker, a regression) gives its logit x instead, (n, 1);
 * 1 / (1 + e^-x) maps it to (0, 1). The numbers of a text are independent of the other texts. An empty text is read as <s>
 * </s>. Invalid UTF-8 is read as U+FFFD.
 * Errors: USAGE for NULL, a model without classifier or tokenizer, pairs of ids, and an id outside the vocabulary; LIMIT,
 * MEMORY, NUMERIC; CANCELLED. */
QKV_API qkv_status qkv_classify(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts,
                                qkv_matrix **out);

/* ---- token classification: an encoder alone, and a classifier of its tokens ---- */
typedef struct qkv_tagged_span {
    qkv_span bytes;      /* in the text */
    qkv_span characters; /* the same in code points */
    int64_t label_id;    /* label of the word; for an entity, of its first word */
    qkv_str label;       /* the model's label, else "LABEL_3"; NUL-terminated; for an entity without B- and similar marks */
    double score;        /* word: probability of its label; entity: mean over its words */
} qkv_tagged_span;

typedef struct qkv_tagged_text {
    qkv_str text;                            /* the input, with U+FFFD for invalid UTF-8; NUL-terminated */
    const qkv_tagged_span *words, *entities; /* in text order */
    int64_t n_words, n_entities;
    int64_t windows; /* number of windows read */
} qkv_tagged_text;

/* A result, see qkv_free(). */
typedef struct qkv_tagged {
    int64_t n;
    const qkv_tagged_text *texts; /* (n) */
} qkv_tagged;

/* Finds the likeliest label of every word of n texts. pairs and ids of opts are ignored.
 * Words: the label of a word is that of its first token, which may be the preceding space if the tokenizer makes that a
 * separate token. A tokenizer that marks continuation tokens (WordPiece) defines the words. Otherwise words end at white space
 * and where letters, marks and digits meet other characters; each ideograph or kana begins a word.
 * Entities: words are joined by their labels. B-X begins an entity. I-X continues one, or begins one if none is open. In IOBES
 * and BILOU, E- and L- end an entity, and S- and U- are a single word. M- is like I-. Labels without such marks are plain
 * names: consecutive words with the same label form one entity. O is no entity.
 * Windows: a text above max_length tokens is read in windows that share a quarter of their tokens; the `windows` option is
 * ignored. Each token is taken from the window that gives it more context.
 * The results of a text are independent of the other texts. UNSUPPORTED for a model that does not tag; other errors as
 * qkv_classify(). */
QKV_API qkv_status qkv_tag(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts, qkv_tagged **out);

/* ---- extractive question answering: an encoder alone, and a classifier of the two ends of a span ---- */
typedef struct qkv_answer_opts {
    size_t size;
    int n_best;             /* 0 means 1; at most 100 */
    int64_t max_length;     /* tokens of a window with question and special tokens; 0 means 384; at most the model's limit */
    int64_t overlap;        /* context tokens shared by two windows; 0 means 128; at most half of the context in a window */
    int64_t max_answer;     /* tokens of an answer; 0 means 30 */
    int must_answer;        /* 1: exclude "no answer" */
    const qkv_hooks *hooks; /* cancel, before every batch; NULL: none */
} qkv_answer_opts;

typedef struct qkv_answer_span {
    qkv_span bytes;      /* in the context */
    qkv_span characters; /* the same in code points */
    double score;
    int is_none; /* 1: the model found no answer in the context; the spans are empty */
} qkv_answer_span;

/* A result, see qkv_free(). */
typedef struct qkv_answers {
    qkv_str context;             /* the input, with U+FFFD for invalid UTF-8; NUL-terminated */
    const qkv_answer_span *best; /* (n), best first; at most n_best */
    int n;
    double none_score; /* score of "no answer" */
    int64_t windows;   /* number of windows read */
} qkv_answers;

/* Finds the spans of a context that answer a question, as Hugging Face's pipeline does.
 * Every window holds the question followed by a part of the context. A question is cut to half of a window.
 *   p = softmax of the start logits, q = softmax of the end logits, per window, over the context tokens and the first token
 *   score(i, j) = p(i) q(j)
 * An answer found in two windows counts once, with its better score. Answers are whole words, as in qkv_tag().
 * The score of "no answer" is that of the first token of the text as both ends, as in models of SQuAD 2; the minimum over all
 * windows. "No answer" is ranked among the other answers.
 * UNSUPPORTED for a model that finds no answers; USAGE for NULL and options out of range; other errors as qkv_classify(). */
QKV_API qkv_status qkv_answer(const qkv_model *m, qkv_str question, qkv_str context, const qkv_answer_opts *opts,
                              qkv_answers **out);

/* ---- ranking: a cross-encoder reads a query with each passage ---- */
typedef struct qkv_ranked {
    int64_t index; /* of the passage */
    float score;   /* 1 / (1 + e^-logit), or the logit if the model's files request it */
    float logit;
} qkv_ranked;

/* A result, see qkv_free(). */
typedef struct qkv_ranking {
    int64_t n;
    const qkv_ranked *best; /* (n): all passages, best first; ties by the smaller index */
    int64_t truncated;      /* number of truncated pairs */
} qkv_ranking;

/* Ranks n passages by relevance to a query. pairs and ids of opts are ignored. UNSUPPORTED for a model that does not have one
 * class; other errors as qkv_classify(). */
QKV_API qkv_status qkv_rank(const qkv_model *m, qkv_str query, const qkv_str *passages, int64_t n, const qkv_encoder_opts *opts,
                            qkv_ranking **out);

/* ---- embedding: any encoder, pooled ---- */
typedef enum qkv_embed_as {
    QKV_EMBED_AS_PUBLISHED, /* a published model's files override pooling, normalize and a max_length of 0 */
    QKV_EMBED_AS_GIVEN      /* only the options apply */
} qkv_embed_as;

typedef struct qkv_embed_opts {
    size_t size;
    qkv_embed_as as;
    const qkv_encoder_opts *reading; /* NULL: all zero */
    qkv_pooling pooling;             /* for an encoder with a classifier also QKV_POOLING_ATTENTION */
    int normalize;                   /* 1: scale every vector to length 1; a zero vector is unchanged */
} qkv_embed_opts;

/* Computes one vector per text, (n, dim). With QKV_EMBED_AS_PUBLISHED, the modules of a sentence-transformers folder (Pooling
 * of any kind, Dense) determine the width. Errors as qkv_classify(), but no classifier is needed; UNSUPPORTED for a decoder
 * alone. */
QKV_API qkv_status qkv_embed(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_embed_opts *opts, qkv_matrix **out);

/* ---- masked words ---- */
typedef struct qkv_fill_opts {
    size_t size;
    int n_best;             /* 0 means 5; at most the vocabulary */
    const qkv_hooks *hooks; /* cancel; NULL: none */
} qkv_fill_opts;

/* One token for one mask, and the text with the mask replaced. Other masks are kept. */
typedef struct qkv_filling {
    int32_t id;
    double p;      /* softmax over the whole vocabulary */
    qkv_str token; /* text of the token without surrounding white space; NUL-terminated */
    qkv_str text;  /* the filled text, NUL-terminated; a token that begins a word keeps the white space of the mask */
} qkv_filling;

/* A result, see qkv_free(). */
typedef struct qkv_filled {
    int64_t masks; /* number of masks in the text */
    int n_best;
    const qkv_span *places;  /* (masks): position of each mask in the input text, without surrounding white space */
    const qkv_filling *best; /* (masks, n_best), likeliest first; ties by the smaller id */
} qkv_filled;

/* Finds the n_best likeliest tokens for every mask in a text. A mask is spelled as in the tokenizer, or [MASK], or <mask>.
 * Other special tokens in the text are parsed too. Invalid UTF-8 is read as U+FFFD; places then refer to the repaired text.
 * Errors: USAGE for NULL, a negative n_best, a model that is not an encoder alone, has no tokenizer, does not fill words or
 * has no mask, and for a text without a mask; LIMIT for more tokens than the model has positions for; NUMERIC; MEMORY. */
QKV_API qkv_status qkv_fill_mask(const qkv_model *m, qkv_str text, const qkv_fill_opts *opts, qkv_filled **out);

/* ---- likelihood ---- */

/* Negative log-likelihood of texts. nats is the sum of -log p over their tokens, the end included; tokens is the token count.
 *   perplexity = exp(nats / tokens)      bits per byte = nats / log(2) / bytes
 * Initialize it to zero. */
typedef struct qkv_nll {
    double nats;
    int64_t tokens;
} qkv_nll;

typedef struct qkv_likelihood_opts {
    size_t size;
    int64_t context;        /* tokens of a window; 0 means 256 */
    int64_t stride;         /* tokens between window starts, from 1 to context; 0 means context */
    const qkv_hooks *hooks; /* cancel, before every window; NULL: none */
} qkv_likelihood_opts;

/* Adds the negative log-likelihood of a document to *sum. Each token is counted once, in the first window that has it. If
 * stride equals context, nats / tokens is the mean loss that training reports for the same text. Invalid UTF-8 is read as
 * U+FFFD.
 * Errors: USAGE for NULL, a model that has an encoder or no tokenizer, or numbers out of range; NUMERIC; MEMORY; CANCELLED.
 * After an error *sum is undefined. */
QKV_API qkv_status qkv_log_likelihood(const qkv_model *m, qkv_str text, const qkv_likelihood_opts *opts, qkv_nll *sum);

#ifdef __cplusplus
}
#endif
#endif
