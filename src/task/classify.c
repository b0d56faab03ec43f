/* classify.c: which class a text belongs to. */
#include "texts.h"

#include "../model/classes.h"
#include "../model/model_info.h"
#include "../nn/ngrams.h"
#include "../model/model.h"

/* One class alone has the probability 1 whatever the text: its logit is what such a model says. */
static qkv_tensor *class_scores(const qkv_model *m, qkv_tensor *hidden, const qkv_tokens *x, const void *data)
{
    (void)data;
    qkv_tensor *logits = qkv__ngrams_add(qkv__model_transformer(m), qkv__class_logits(m, hidden, x), x, NULL);
    if (qkv__model_get_info(m)->problem == QKV_PROBLEM_MULTILABEL) return qkv_sigmoid(logits);
    return qkv__model_config(m)->classes > 1 ? qkv_softmax(logits) : logits;
}

qkv_status qkv_classify(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_encoder_opts *opts, qkv_matrix **out)
{
    const qkv_config *o = qkv__model_config(m);
    float *rows;
    if (o && o->classes && !o->classes_of)
        return qkv__read_texts(m, texts, n, opts, class_scores, NULL, o->classes, out, &rows);
    if (out) qkv__result_clear(*out);
    return qkv__fail(QKV_USAGE, "classify: the model has no classifier");
}
