/* summarize.c: a summary is a translation into fewer words, of as much as the model reads at once. */
#include <qkv/task.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../model/special_tokens.h"

static qkv_status take_options(const qkv_model *m, const qkv_translate_opts *opts, qkv_translate_opts *o)
{
    if (QKV__READ_OPTIONS(o, hooks, opts, "summarize")) return QKV_USAGE;
    o->size = sizeof *o;
    const qkv__model_info *info = qkv__model_get_info(m);
    if (!info) return qkv__fail(QKV_USAGE, "summarize: a model is needed");
    if (!(info->can & QKV_CAN_TRANSLATE)) return qkv__fail(QKV_USAGE, "summarize: the model needs an encoder and a decoder");
    if (!qkv_model_tokenizer(m, QKV_SIDE_SOURCE)) return qkv__refuse_without_tokenizer(m, "summarize");
    const qkv__summary_params *said = &info->summary;
    if (!o->beam_size) o->beam_size = said->beam;
    if (o->length_penalty == 0 && said->length_penalty < 0) o->no_length_penalty = 1;
    else if (o->length_penalty == 0) o->length_penalty = said->length_penalty;
    if (!o->max_length && said->max_length > 1) o->max_length = said->max_length - 1;
    if (!o->min_length && said->min_length > 1) o->min_length = said->min_length - 1;
    if (!o->no_repeat_ngram) o->no_repeat_ngram = said->no_repeat;
    if (!o->source_prefix && *said->prefix) o->source_prefix = said->prefix;
    if (!o->split) o->split = QKV_SPLIT_PARTS;
    return QKV_OK;
}

qkv_status qkv_summarize(const qkv_model *m, const qkv_str *texts, int64_t n, const qkv_translate_opts *opts,
                         qkv_translations **out)
{
    qkv_translate_opts o;
    qkv_status status = take_options(m, opts, &o);
    if (!status) return qkv_translate(m, texts, n, &o, out);
    if (out) qkv__result_clear(*out);
    return status;
}
