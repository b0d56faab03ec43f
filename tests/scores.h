/* scores.h: BLEU and chrF of C strings, as structs. */
#ifndef QKV_TESTS_SCORES_H
#define QKV_TESTS_SCORES_H

#include <qkv/score.h>

#include <stdlib.h>

typedef const char *const *c_strings;

/* (lists, n) strings; free() them. NULL for NULL. */
static inline qkv_str *strings_of(const c_strings *lists, int n_lists, int64_t n)
{
    qkv_str *s = calloc((size_t)(n_lists * n + 1), sizeof *s);
    for (int64_t i = 0; s && i < n_lists * n; i++) s[i] = qkv_cstr(lists[i / n] ? lists[i / n][i % n] : NULL);
    return s;
}

#define SCORE_OF(NAME)                                                                                                         \
    static inline qkv_status NAME##_of_strings(c_strings hypotheses, const c_strings *references, int n_references, int64_t n, \
                                               const qkv_##NAME##_opts *opts, qkv_##NAME##_score *out)                         \
    {                                                                                                                          \
        const qkv_str *lists[QKV_SCORE_REFERENCES + 1] = { NULL };                                                             \
        qkv_str *own = hypotheses ? strings_of(&hypotheses, 1, n) : NULL;                                                      \
        qkv_str *others = references ? strings_of(references, n_references, n) : NULL;                                         \
        qkv_##NAME##_score *s = NULL;                                                                                          \
        for (int r = 0; references && r < n_references; r++) lists[r] = references[r] ? others + r * n : NULL;                 \
        qkv_status status = qkv_##NAME(own, references ? lists : NULL, n_references, n, opts, &s);                             \
        *out = status ? (qkv_##NAME##_score){ 0 } : *s;                                                                        \
        qkv_free(s);                                                                                                           \
        free(own);                                                                                                             \
        free(others);                                                                                                          \
        return status;                                                                                                         \
    }
SCORE_OF(bleu)
SCORE_OF(chrf)
#undef SCORE_OF

#endif
