/* sampling.c: how new tokens are chosen, and the chat template. */
#include "../term/read_text.h"
#include "sampling.h"

sampling_values sampling = { .top_p = 1, .repetition_penalty = 1 };

qkv_status check_sampling(void)
{
    if (!(sampling.temperature >= 0)) return fail(QKV_USAGE, "--temp %g: it must be at least 0", (double)sampling.temperature);
    if (!(sampling.top_p > 0 && sampling.top_p <= 1))
        return fail(QKV_USAGE, "--top-p %g: it must be above 0 and at most 1", (double)sampling.top_p);
    if (!(sampling.min_p >= 0 && sampling.min_p <= 1))
        return fail(QKV_USAGE, "--min-p %g: it must be from 0 to 1", (double)sampling.min_p);
    if (!(sampling.repetition_penalty > 0))
        return fail(QKV_USAGE, "--repetition-penalty %g: it must be above 0", (double)sampling.repetition_penalty);
    return QKV_OK;
}

static bool wants_draws(void)
{
    return was_given("top-k") || was_given("top-p") || was_given("min-p") || was_given("seed") || was_given("samples");
}

qkv_generate_opts sampling_options(const qkv_model *m)
{
    qkv_generate_opts o = QKV_OPTS(qkv_generate_opts);
    qkv_sampling_defaults(m, &o);
    if (was_given("temp")) o.temperature = sampling.temperature;
    else if (o.temperature == 0 && wants_draws()) o.temperature = 1;
    if (was_given("max-tokens")) o.max_tokens = sampling.max_tokens;
    if (was_given("top-k")) o.top_k = sampling.top_k;
    if (was_given("top-p")) o.top_p = sampling.top_p;
    if (was_given("min-p")) o.min_p = sampling.min_p;
    if (was_given("repetition-penalty")) o.repetition_penalty = sampling.repetition_penalty;
    if (was_given("no-repeat-ngram")) o.no_repeat_ngram = sampling.no_repeat;
    o.past_context = sampling.past_context;
    o.stops = (const char *const *)sampling.stops.at;
    o.n_stops = sampling.stops.n;
    o.seed = (uint64_t)sampling.seed;
    return o;
}

/* ---- chats ---- */

qkv_status open_chat(const qkv_model *m, const qkv_chat_opts *opts, const char *tools, qkv_chat **out)
{
    qkv_chat_opts o = QKV_OPTS(qkv_chat_opts);
    qkv_buffer text = { 0 };
    if (opts) o = *opts;
    *out = NULL;
    qkv_status status = tools ? qkv_text_read(tools, 0, &text) : QKV_OK;
    o.template_file = sampling.template;
    o.tools = text.data;
    if (!status && !(*out = qkv_chat_new(m, &o))) status = qkv_error_status();
    qkv_buffer_free(&text);
    if (status == QKV_UNSUPPORTED && !o.template_file) return fail(status, "%s: give one by --template FILE", library_error());
    return status ? library_failed() : QKV_OK;
}
