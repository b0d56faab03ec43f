/* score.c: the corpus of hypotheses and references. */
#include "score.h"

qkv_status qkv__corpus_check(const qkv__corpus *c, const char *call)
{
    if (c->n < 1) return qkv__fail(QKV_USAGE, "%s: there are no sentences", call);
    if (c->n_references < 1) return qkv__fail(QKV_USAGE, "%s: there are no references", call);
    if (c->n_references > QKV_SCORE_REFERENCES)
        return qkv__fail(QKV_LIMIT, "%s: %d references, at most %d", call, c->n_references, QKV_SCORE_REFERENCES);
    if (!c->hypotheses || !c->references) return qkv__fail(QKV_USAGE, "%s: a list of texts is NULL", call);
    for (int r = 0; r < c->n_references; r++)
        if (!c->references[r]) return qkv__fail(QKV_USAGE, "%s: a list of texts is NULL", call);
    return QKV_OK;
}

static qkv_status read_score_text(qkv_str text, bool lowercase, qkv__score_words *w, qkv__place place)
{
    if (text.length && !text.data) return qkv__fail(QKV_USAGE, "%s %lld is NULL", place.what, (long long)place.number);
    return qkv__score_words_read(w, text, lowercase, place);
}

qkv_status qkv__read_hypothesis(const qkv__corpus *c, int64_t i, bool lowercase, qkv__score_words *w)
{
    return read_score_text(c->hypotheses[i], lowercase, w, (qkv__place){ "hypothesis", i + 1 });
}

qkv_status qkv__read_reference(const qkv__corpus *c, int r, int64_t i, bool lowercase, qkv__score_words *w)
{
    return read_score_text(c->references[r][i], lowercase, w, (qkv__place){ "reference", i + 1 });
}
