/* results.h: results of the tasks as text, JSON and tables; labelled texts through a classifier. */
#ifndef QKV_APP_REPORT_RESULTS_H
#define QKV_APP_REPORT_RESULTS_H

#include <qkv/qkv.h>
#include <qkv/unstable/buffer.h>
#include "arrays.h"

/* What a side of m adds to the embeddings of its tokens for their places, an array (n, dim), which is yours: of sinusoids those
 * from first_position on, 50 for an n of 0; of a learned table its rows from 0 on, all for an n of 0. USAGE for NULL, a negative
 * n or one above the rows, a side that m does not have, and a model without such a table (rotary positions, none); MEMORY. *out
 * is untouched then. */
QKV_API qkv_status qkv_model_positions(qkv_model *m, qkv_side side, int64_t n, qkv_array *out);

/* The translations of text i as a JSON object in *out, which is yours: "source_tokens", and "translations", best first, each
 * with "text", "score", "log_p", "cut" and "tokens"; with attention also with "alignment", pairs of places, and "attention",
 * the mean over layers and heads, both empty where none was kept. USAGE for NULL and for a text that is not there; MEMORY. */
QKV_API qkv_status qkv_translations_json(const qkv_model *m, const qkv_translations *t, int64_t i, int with_attention,
                                         qkv_buffer *out);

/* What was generated as a JSON object in *out, which is yours: "text", "tokens", "ids", "log_p" and "finish", which is "end",
 * "stop", "length" or "cancelled". USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_generated_json(const qkv_model *m, const qkv_generated *g, qkv_buffer *out);

/* One row of qkv_classify()'s results as text, which is yours, without a newline: the likeliest label, a TAB and its
 * probability; with all every label, the likeliest first; with json an object with "label" and "probabilities". Of a model with
 * one class the label, 1 / (1 + e^-x) and its logit x. Of a model whose texts may have several labels those that are at or
 * above the threshold, the likeliest first, which may be none; with json "labels" and "probabilities". Of one that tells numbers
 * the number, with json "number". USAGE for NULL and a model without classes; MEMORY. The first has a threshold of 0.5. */
typedef struct qkv_classified_opts {
    size_t size;
    double threshold; /* 0 means 0.5, and a negative number 0 */
    int all, json;
} qkv_classified_opts;
QKV_API qkv_status qkv_classified_text(const qkv_model *m, const float *row, int all, int json, qkv_buffer *out);
QKV_API qkv_status qkv_classified_text_with(const qkv_model *m, const float *row, const qkv_classified_opts *opts,
                                            qkv_buffer *out);

/* What labelled texts are, and what a model says they are. Starts as zero; used again and again. qkv_score_classes() and
 * qkv_classes_text() of <qkv/score.h> make scores of it. */
typedef struct qkv_confusion {
    int64_t classes, texts; /* texts: that were counted */
    int64_t *counts;        /* (classes, classes): what it is, what was said */
    const char **labels;    /* (classes): the model's, which must live as long */
    int64_t cut;            /* texts that were longer than max_length */
    size_t counts_bytes, labels_bytes;
    int64_t unknown; /* texts with a label that the model does not have: left out */
    void *reserved[3];
} qkv_confusion;
QKV_API void qkv_confusion_free(qkv_confusion *c);

typedef struct qkv_classify_labelled_opts {
    size_t size;
    const qkv_labelled_opts *labelled; /* how the file is read; NULL: all zero, and so is the next */
    const qkv_encoder_opts *reading;
    int64_t batch;                              /* texts to read and classify at a time; 0 means 256: any gives the same */
    void (*note)(void *data, const char *text); /* a sentence about lines that were repaired or left out; NULL: none */
    void *note_data;
    double threshold; /* of several labels, as in qkv_classified_opts */
    int merge_labels; /* 1: a label may differ from the model's in case and white space */
} qkv_classify_labelled_opts;

/* Classifies every text of a file or folder of labelled texts, see qkv_read_labelled(), and counts what was said of it: the
 * likeliest class, of equals the first. Texts with a label that the model does not have are left out and counted; when
 * labelled->strict they are FORMAT. UNSUPPORTED for a model without labels, or with one; FORMAT for no text at all, and
 * for none with a label that it has; USAGE for NULL; and the errors of qkv_read_labelled() and qkv_classify(). *out then holds
 * nothing. note is called on the thread of the call. */
QKV_API qkv_status qkv_classify_labelled(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts,
                                         qkv_confusion *out);

/* The same for a model whose texts may have several labels (separated by labelled->separator, else by
 * what the model learned with, or ","; an empty label is none), or that tells numbers. */
typedef struct qkv_labelled_score {
    qkv_problem problem;
    int64_t texts, cut;
    int64_t exact; /* of several labels: texts that have just the labels that were said */
    double micro_f1, macro_f1;
    qkv_regression_score numbers;
    int64_t unknown; /* texts with a label that the model does not have: left out */
    void *reserved[3];
} qkv_labelled_score;

/* text: what was measured as in qkv_labels_text() or qkv_numbers_text(), with json as an object; it is yours. UNSUPPORTED for
 * any other model; FORMAT also for a label that is not a number; else as qkv_classify_labelled(). */
QKV_API qkv_status qkv_score_labelled(const qkv_model *m, const char *path, const qkv_classify_labelled_opts *opts, int json,
                                      qkv_labelled_score *out, qkv_buffer *text);

/* The tags of text i in *out, which is yours: a line for each entity, or with words for each word: label, TAB, score, TAB, its
 * text; nothing for none. With json an object without a newline: "entities", and with words "words" too, each with "label",
 * "score", "text", "span" and "characters". USAGE for NULL and a text that is not there; MEMORY. */
QKV_API qkv_status qkv_tagged_lines(const qkv_tagged *t, int64_t i, int words, int json, qkv_buffer *out);

/* The answers in *out, which is yours: a line for each: score, TAB, its text, in which white space is a space; nothing behind
 * the TAB where there is none. With json an object without a newline: "answers", each with "text", "score", "span" and
 * "characters", all but the score null where there is none; "none" and "windows". USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_answers_lines(const qkv_answers *a, int json, qkv_buffer *out);

/* A vector near to another. */
typedef struct qkv_neighbour {
    float similarity; /* the dot product, which is the cosine of vectors of length 1 (`normalize` in qkv_embed_opts) */
    int64_t index;    /* row of the vectors */
} qkv_neighbour;

/* The n vectors most similar to query, (vectors->width) numbers, most similar first, of equals the smaller index first,
 * those whose similarity is not a number last, to `out`; where there are fewer, the rest has the index -1. Sums are in double,
 * in order. USAGE for NULL and a negative n; MEMORY. */
QKV_API qkv_status qkv_nearest(const qkv_matrix *vectors, const float *query, int64_t n, qkv_neighbour *out);

/* The same as a JSON object in *out, which is yours: "masks", each with its "span" and the "best" of it: "id", "p", "token" and
 * "text". USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_filled_json(const qkv_filled *f, qkv_buffer *out);

typedef struct qkv_measure_opts {
    size_t size;
    qkv_document_kind documents;                /* what a document is */
    int64_t context, stride;                    /* as in qkv_likelihood_opts */
    int strict;                                 /* as in qkv_corpus_opts */
    void (*note)(void *data, const char *text); /* a sentence about lines that were repaired; NULL: none */
    void *note_data;
} qkv_measure_opts;

typedef struct qkv_measured {
    qkv_nll sum;
    int64_t bytes, documents;
    void *reserved[2];
} qkv_measured;

/* The same for all documents of n files, plain or gzip. FORMAT where there is no text; USAGE for NULL and no file; the errors of
 * qkv_read_documents() and those above; *out is untouched then. note is called on the thread of the call. */
QKV_API qkv_status qkv_measure_files(const qkv_model *m, const char *const *paths, int n, const qkv_measure_opts *opts,
                                     qkv_measured *out);

/* As lines for people or, with json, as an object with every digit, in *out, which is yours: documents, tokens, bytes,
 * nats / tokens, perplexity, and bits a token and a byte. USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_measured_text(const qkv_measured *x, int json, qkv_buffer *out);

/* ---- what a model is ----
 * Family, parameters, files, layers, sizes, tokenizer, what it can do, how it is used, labels: as lines of text or, with json,
 * as an object, in *out, which is yours. folder: where the tokenizer's files are looked for, to be named; NULL: they are not.
 * USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_model_describe(const qkv_model *m, const char *folder, int json, qkv_buffer *out);

/* ---- two models of one kind, on the same texts: what a model in fewer bits has lost ----
 * A translator is compared by its translations, with the search that its files or the defaults have; a decoder alone by the
 * perplexity of the texts, in windows of 256 tokens; a classifier by the class it finds likeliest; another encoder by its
 * embeddings. What is of another kind is 0. */
typedef struct qkv_model_comparison {
    int by;                         /* QKV_CAN_TRANSLATE, _GENERATE, _CLASSIFY or _EMBED */
    int has_references;             /* bleu is set */
    int64_t texts;                  /* that were compared */
    double perplexity[2];           /* of the first model, and of the second */
    double bleu[2];                 /* against the references */
    double bleu_between;            /* of the second's translations, the first's as references */
    double same;                    /* share of the texts with the same translation or class */
    double cosine, smallest_cosine; /* of the two embeddings of a text: the mean, and the smallest */
    void *reserved[4];
} qkv_model_comparison;

/* n texts that end with a NUL; references: of their translations, NULL: none. Errors as of qkv_translate(), qkv_bleu(),
 * qkv_log_likelihood(), qkv_classify() and qkv_embed(); USAGE for NULL, no text and models of two kinds. *out is untouched
 * then. The second gives its numbers as lines or, with json, as an object, in *out, which is yours: USAGE for NULL; MEMORY. */
QKV_API qkv_status qkv_compare_models(const qkv_model *a, const qkv_model *b, const char *const *texts,
                                      const char *const *references, int64_t n, qkv_model_comparison *out);
QKV_API qkv_status qkv_model_comparison_text(const qkv_model_comparison *c, int json, qkv_buffer *out);

#endif
