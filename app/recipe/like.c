/* like.c: --like: the shape of a published family from the start, so that what is trained can be exported as it. */
#include "job.h"
#include "training.h"

#include "../../src/base/status.h"
#include "../../src/model/family.h"

#include <stdio.h>
#include <string.h>

enum { ANY, MARIAN, PEGASUS, BERT, MODERNBERT, GPT2, LLAMA }; /* --like, as qkv/training.def lists it */

#define NORMS(where, kind, of_embeddings) \
    { "pre-norm", where }, { "norm", kind }, { "embed-norm", of_embeddings }
#define BIASES(none, none_of_norms) \
    { "no-bias", none }, { "no-norm-bias", none_of_norms }, { "no-head-bias", none }
#define HEAD \
    { "head", "yes" }, { "output-bias", "yes" }
#define TRANSLATOR(norms_first)                                                                                      \
    {                                                                                                                \
        NORMS(norms_first, "layer", ""), BIASES("", ""), { "positions", "sinusoid-halves" }, { "no-first-norm", "" } \
    }

/* What a rule would choose: the options that the family has one answer for, as far as the job has them. */
static const struct shape {
    int jobs;
    struct {
        const char *name, *value;
    } choices[16];
} shapes[] = {
    [MARIAN] = { QKV__TRANSLATE, TRANSLATOR("") },
    [PEGASUS] = { QKV__TRANSLATE, TRANSLATOR("yes") },
    [BERT] = { QKV__CLASSIFY | QKV__MASK,
               { NORMS("", "layer", "yes"),
                 BIASES("", ""),
                 HEAD,
                 { "positions", "learned" },
                 { "activation", "gelu" },
                 { "unscaled", "yes" },
                 { "pooling", "first" },
                 { "no-first-norm", "" } } },
    [MODERNBERT] = { QKV__CLASSIFY | QKV__MASK,
                     { NORMS("yes", "layer", "yes"),
                       BIASES("yes", "yes"),
                       HEAD,
                       { "positions", "rotary" },
                       { "activation", "gelu-gated" },
                       { "unscaled", "yes" },
                       { "no-first-norm", "yes" } } },
    [GPT2] = { QKV__GENERATE,
               { NORMS("yes", "layer", ""),
                 BIASES("", ""),
                 { "positions", "learned" },
                 { "activation", "gelu-tanh" },
                 { "unscaled", "yes" },
                 { "no-first-norm", "" } } },
    [LLAMA] = { QKV__GENERATE,
                { NORMS("yes", "rms", ""),
                  BIASES("yes", ""),
                  { "positions", "rotary" },
                  { "activation", "silu-gated" },
                  { "unscaled", "yes" },
                  { "no-first-norm", "" } } },
};
enum { CHOICES = sizeof shapes->choices / sizeof *shapes->choices };

static const char *family_of(const qkv_training *t) { return qkv__options_word(QKV__SET_like, t->o.v.like); }

qkv_status qkv__check_like(const qkv_training *t)
{
    char can[64] = "";
    if (!t->o.v.like || shapes[t->o.v.like].jobs & t->job->bit) return QKV_OK;
    for (int i = 1; i <= LLAMA; i++) {
        size_t length = strlen(can);
        if (shapes[i].jobs & t->job->bit)
            snprintf(can + length, sizeof can - length, "%s%s", length ? " or " : "", qkv__options_word(QKV__SET_like, i));
    }
    return qkv__fail(QKV_USAGE, "--like %s: \"qkv %s\" makes models like %s", family_of(t), t->job->command, can);
}

/* Only what is otherwise, so that the summary tells no more than that. */
static void choose_other(qkv_training *t, const char *name, const char *value)
{
    qkv__option i = qkv__options_find(&t->o, name);
    if (i == QKV__SET_OPTIONS || t->failed) return;
    if (!(t->failed = qkv__options_text(&t->o, i, &t->told)) && strcmp(t->told.data, value)) qkv__choose(t, name, "%s", value);
}

void qkv__choose_like(qkv_training *t)
{
    const qkv__training_values *v = &t->o.v;
    if (!v->like) return;
    for (int i = 0; i < CHOICES && shapes[v->like].choices[i].name; i++)
        choose_other(t, shapes[v->like].choices[i].name, shapes[v->like].choices[i].value);
    if (v->like == GPT2 && v->context > v->max_positions) qkv__choose(t, "longest", "%d", v->context);
}

qkv_status qkv__shape_like(const qkv_training *t, qkv_config *o)
{
    int like = t->o.v.like;
    if (!like) return QKV_OK;
    if (like == BERT) o->token_types = 2;
    if (like == BERT && o->classes) o->pooler = QKV_POOLER_TANH;
    if (like == MODERNBERT && o->classes) {
        o->pooler = QKV_POOLER_HEAD;
        o->head = 1;
        o->no_head_bias = o->no_bias;
    }
    const char *problem = qkv__family_find(family_of(t))->missing(o);
    return problem ? qkv__fail(QKV_USAGE, "--like %s: %s, which another option changes", family_of(t), problem) : QKV_OK;
}
