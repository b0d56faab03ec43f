/* sampler.c: the public sampler: the next id of a text, from logits and its history. */
#include "sample.h"

#include "../base/memory.h"
#include "../base/options.h"
#include "../model/model.h"
#include "../model/special_tokens.h"

struct qkv_sampler {
    qkv_generate_opts o;
    qkv__sampler sampler;
};

/* Special tokens, ids without a token, and those that the model's files ban; but not what ends a text. */
static void forbid(qkv_sampler *s, const qkv_model *m)
{
    qkv__special_tokens f;
    bool *forbidden = s->sampler.forbidden;
    if (!qkv_model_tokenizer(m, QKV_SIDE_TARGET) || qkv__special_tokens_of(m, &f)) return;
    for (int32_t id = 0; id < s->sampler.vocabulary; id++)
        forbidden[id] = id >= qkv_tokenizer_vocab_size(f.target) || qkv_tokenizer_is_special(f.target, id);
    if (f.ids.start >= 0) forbidden[f.ids.start] = true;
    for (int i = 0; i < f.info->n_banned; i++) forbidden[f.info->banned[i]] = true;
    if (f.ids.end >= 0) forbidden[f.ids.end] = false;
    for (int i = 0; i < f.n_ends; i++) forbidden[f.ends[i]] = false;
}

qkv_sampler *qkv_sampler_new(const qkv_model *m, const qkv_sampling_opts *opts)
{
    const qkv_config *t = qkv__model_config(m);
    if (!t || !t->decoder_layers) return qkv__fail(QKV_USAGE, "sampler: a model with a decoder is needed"), NULL;
    qkv_sampling_opts o;
    if (QKV__READ_OPTIONS(&o, sample, opts, "sampler")) return NULL;
    qkv_sampler *s = qkv__alloc_zero(sizeof *s);
    if (!s) return NULL;
    s->o = (qkv_generate_opts){ .temperature = o.temperature,
                                .top_k = o.top_k,
                                .top_p = o.top_p,
                                .min_p = o.min_p,
                                .repetition_penalty = o.repetition_penalty,
                                .presence_penalty = o.presence_penalty,
                                .frequency_penalty = o.frequency_penalty,
                                .no_repeat_ngram = o.no_repeat_ngram,
                                .seed = o.seed,
                                .sample = o.sample,
                                .no_log_p = 1 };
    qkv_status status = qkv__sampling_resolve_options(&s->o);
    if (!status) status = qkv__sampler_start(&s->sampler, &s->o, t->target_vocab_size ? t->target_vocab_size : t->vocab_size);
    if (status) return qkv_sampler_free(s), NULL;
    forbid(s, m);
    return s;
}

void qkv_sampler_free(qkv_sampler *s)
{
    if (!s) return;
    qkv__sampler_free(&s->sampler);
    qkv__release(s, sizeof *s);
}

qkv_status qkv_sampler_next(qkv_sampler *s, const float *logits, const int32_t *history, int64_t n, int64_t n_prompt,
                            int32_t *id)
{
    double log_p;
    if (!s || !logits || !id || n < 0 || (n && !history) || n_prompt < 0 || n_prompt > n || n < s->sampler.n_seen ||
        n - n_prompt < s->sampler.n_counted)
        return qkv__fail(QKV_USAGE, "sampler: logits, a history that only grows, and a place for the id are needed");
    for (int64_t i = s->sampler.n_seen; i < n; i++)
        if (history[i] < 0 || history[i] >= s->sampler.vocabulary)
            return qkv__fail(QKV_USAGE, "sampler: id %d of the history is outside 0..%lld", history[i],
                             (long long)s->sampler.vocabulary - 1);
    const qkv__history h = { history, n, n - n_prompt };
    return qkv__sample(&s->sampler, logits, h, (uint64_t)h.n_new, id, &log_p);
}
