/* fit_length.h: the length penalty that gives the best BLEU on validation text. */
#ifndef QKV_APP_RECIPE_FIT_LENGTH_H
#define QKV_APP_RECIPE_FIT_LENGTH_H

#include <qkv/qkv.h>

/* ---- the length penalty that fits ---- */
typedef struct qkv_fit_length_opts {
    size_t size;
    qkv_score_tokenizer tokenizer; /* of BLEU */
    int beam;                      /* 0: as in qkv_translate_opts */
    int64_t max_lines;             /* of more lines, so many are used, evenly spaced; 0 means 1000 */
    const qkv_hooks *hooks;        /* cancel; NULL: none */
} qkv_fit_length_opts;

typedef struct qkv_length_fit {
    float length_penalty;    /* alpha, for qkv_model_set_length_penalty() */
    double usual_bleu, bleu; /* with what the model has until now, and with this */
    int64_t lines;           /* that were used */
    void *reserved[4];
} qkv_length_fit;

/* Finds the length penalty with which m's translations of n sources have the highest BLEU against their references, texts that
 * end with a NUL. The lines are translated once, with what m has (see qkv_model_set_length_penalty()) and all `beam` results
 * kept; among these each of 0.2, 0.4 .. 2.0 chooses anew by the same formula. With the one of the highest BLEU the lines are
 * translated again: it is the result if its BLEU is truly higher than before; else one halfway back is tried, in tenths, and so
 * on. Where none is higher, for one line, and for a beam of 1, what m has stays. BLEU is that of the lines as the command
 * prints them: line breaks are spaces, and a source of too many tokens gives an empty line. m does not change. The same bits at
 * any number of threads. Errors as of qkv_translate() and qkv_bleu(), USAGE for NULL, no line and options out of range; and
 * CANCELLED. *out is untouched then. */
QKV_API qkv_status qkv_fit_length_penalty(const qkv_model *m, const char *const *sources, const char *const *references,
                                          int64_t n, const qkv_fit_length_opts *opts, qkv_length_fit *out);

/* BLEU of the translations of n lines, as "qkv translate" prints and "qkv score" counts them (fit_length.c). The errors of
 * qkv_translate() and qkv_bleu(). */
qkv_status qkv__lines_bleu(const qkv_model *m, const char *const *sources, const char *const *references, int64_t n,
                           qkv_score_tokenizer tokenizer, double *bleu);

#endif
