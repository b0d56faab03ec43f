/* generate.c: a decoder alone continues a text, token by token. */
#include "generate.h"

#include <qkv/unstable/util.h>

#include "../base/options.h"
#include "../base/result.h"
#include "../base/size.h"
#include "../model/special_tokens.h"
#include "../decode/sample.h"
#include "../decode/stream.h"
#include "../model/model.h"
#include "../token/encode.h"

#include <math.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 20, DEFAULT_TOKENS = 128, MOST_TOP = 32, PROMPT_BLOCK = 512 };

/* Arrays that grow while the caller looks on. */
typedef struct generated {
    qkv_generated shown; /* first: what the caller sees */
    qkv_buffer text;
    qkv__ids prompt; /* its ids, and behind them the new ones */
    int32_t *ids;
    double *log_p, *prompt_log_p;
    qkv_likely *top, *prompt_top;
    size_t ids_bytes, log_p_bytes, top_bytes, prompt_top_bytes, prompt_log_p_bytes;
} generated;

typedef struct generation {
    const qkv__transformer *transformer;
    const qkv_config *t;
    const qkv_tokenizer *tokenizer;
    qkv__special_tokens f;
    bool by_model;       /* the model says what starts and ends a text, not the caller */
    qkv__id_run started; /* what the text starts with */
    int64_t vocabulary;
    qkv_generate_opts o;
    int64_t most; /* new tokens */
    generated *out;
    qkv_session *session;
    qkv__batcher *batcher; /* reads instead of a session; NULL: none */
    qkv__batch_row *row;
    int64_t n_read;      /* tokens that the row had read when it was opened */
    const float *logits; /* of what comes next; of the session or the row */
    qkv__sampler sampler;
    qkv__stream stream;
    qkv_buffer shorter, longer; /* of the token before, and of it with the new one */
    bool is_cancelled;
} generation;

/* ---- options ---- */

static qkv_status check_more_ends(const generation *g)
{
    const qkv_generate_opts *o = &g->o;
    if (o->n_ends < 0 || (o->n_ends && !o->ends)) return qkv__fail(QKV_USAGE, "generate: the ids that end a text are missing");
    for (int i = 0; i < o->n_ends; i++)
        if (o->ends[i] < 0 || o->ends[i] >= g->vocabulary)
            return qkv__fail(QKV_USAGE, "generate: %d ends a text: ids are 0..%lld", o->ends[i], (long long)g->vocabulary - 1);
    return QKV_OK;
}

static qkv_status find_ends(generation *g)
{
    qkv_generate_opts *o = &g->o;
    g->by_model = !o->start && !o->end;
    if (g->by_model) {
        g->started = g->f.single.before;
        o->start = g->started.n ? g->started.ids[0] : -1;
        o->end = g->f.ids.end;
    }
    if (o->start < -1 || o->start >= g->vocabulary || o->end < -1 || o->end >= g->vocabulary)
        return qkv__fail(QKV_USAGE, "generate: start %d and end %d: ids are 0..%lld, and -1 means none", o->start, o->end,
                         (long long)g->vocabulary - 1);
    if (!g->by_model && o->start >= 0) g->started = (qkv__id_run){ .ids = { o->start }, .n = 1 };
    if (o->no_special) g->started.n = 0;
    return check_more_ends(g);
}

static qkv_status check_stops(const qkv_generate_opts *o)
{
    if (o->n_stops < 0 || (o->n_stops && !o->stops)) return qkv__fail(QKV_USAGE, "generate: the stop strings are missing");
    for (int i = 0; i < o->n_stops; i++) {
        const char *stop = o->stops[i];
        if (!stop || !*stop) return qkv__fail(QKV_USAGE, "generate: stop string %d is empty", i + 1);
        if (qkv_utf8_valid(stop, strlen(stop)) < strlen(stop))
            return qkv__fail(QKV_USAGE, "generate: stop string %d is not UTF-8", i + 1);
    }
    return QKV_OK;
}

static qkv_generate_opts options_of_files(const qkv__model_info *f)
{
    qkv_generate_opts o = { 0 };
    if (!f) return o;
    o.max_tokens = qkv__min(f->max_new, MOST_TOKENS);
    o.no_repeat_ngram = f->no_repeat;
    if (f->repetition_penalty > 0) o.repetition_penalty = f->repetition_penalty;
    o.top_k = f->top_k;
    if (f->top_p > 0 && f->top_p <= 1) o.top_p = f->top_p;
    if (f->min_p > 0 && f->min_p <= 1) o.min_p = f->min_p;
    if (f->sample) o.temperature = f->temperature > 0 ? f->temperature : 1;
    return o;
}

qkv_status qkv_sampling_defaults(const qkv_model *m, qkv_generate_opts *out)
{
    if (!out) return qkv__fail(QKV_USAGE, "generate: a place for the options is needed");
    const qkv_generate_opts o = options_of_files(qkv__model_get_info(m));
    return QKV__WRITE_OPTIONS(out, hooks, &o, "generate");
}

static qkv_status resolve_generate_options(generation *g, const qkv_model *m)
{
    g->transformer = qkv__model_transformer(m);
    g->t = qkv__transformer_config(g->transformer);
    if (!g->t || g->t->encoder_layers || !g->t->decoder_layers)
        return qkv__fail(QKV_USAGE, "generate: the model must be a decoder alone, without an encoder");
    g->tokenizer = qkv_model_tokenizer(m, QKV_SIDE_TARGET);
    if (!g->tokenizer) return qkv__refuse_without_tokenizer(m, "generate");
    g->vocabulary = g->t->target_vocab_size ? g->t->target_vocab_size : g->t->vocab_size;
    if (!g->o.max_tokens) g->o.max_tokens = qkv__min(qkv__model_get_info(m)->max_new, MOST_TOKENS);
    if (!g->o.max_tokens) g->o.max_tokens = qkv__model_get_info(m)->context ? MOST_TOKENS : DEFAULT_TOKENS;
    if (g->o.max_tokens < 0 || g->o.max_tokens > MOST_TOKENS)
        return qkv__fail(QKV_USAGE, "generate: max_tokens is %lld: it must be from 1 to %d", (long long)g->o.max_tokens,
                         MOST_TOKENS);
    if (g->o.n_top < 0 || g->o.n_top > MOST_TOP)
        return qkv__fail(QKV_USAGE, "generate: n_top is %d: it must be from 0 to %d", g->o.n_top, MOST_TOP);
    qkv_status status = qkv__special_tokens_of(m, &g->f);
    if (!status) status = qkv__sampling_resolve_options(&g->o);
    if (!status) status = check_stops(&g->o);
    return status ? status : find_ends(g);
}

/* ---- the prompt ---- */

/* How many new tokens fit behind the prompt, its start counted. No model generates past its context unless asked to, and one
 * with learned positions or longrope cannot: longrope turns all tokens by other frequencies there. */
static qkv_status find_room(generation *g, int64_t taken)
{
    int64_t positions = g->f.max_tokens, context = g->f.info->context, longest = MOST_TOKENS;
    if (g->o.past_context && (positions || (context && g->t->rope_scaling == QKV_ROPE_LONG)))
        return qkv__fail(QKV_UNSUPPORTED, "generate: the model's positions end at %lld: it cannot go past its context",
                         (long long)(positions ? positions : context));
    if (positions) longest = qkv__min(longest, positions);
    if (context && !g->o.past_context) longest = qkv__min(longest, context);
    if (taken < 1) return qkv__fail(QKV_USAGE, "generate: an empty prompt needs a token " QKV_SPECIAL_START " to start with");
    const char *start = g->started.n ? qkv_tokenizer_token(g->tokenizer, g->started.ids[0]) : NULL;
    if (taken + !g->o.no_new_tokens > longest)
        return qkv__fail(QKV_LIMIT, "generate: a prompt of %lld tokens%s%s%s leaves no room: %s %lld", (long long)taken,
                         start ? ", " : "", start ? start : "", start ? " counted," : "",
                         longest == positions ? "the model's positions end at"
                         : longest == context ? "the model's context is"
                                              : "a text ends at",
                         (long long)longest);
    g->most = g->o.no_new_tokens ? 0 : qkv__min(g->o.max_tokens, longest - taken);
    return QKV_OK;
}

static qkv_status take_prompt_ids(generation *g)
{
    qkv__ids *to = &g->out->prompt;
    int64_t n = g->o.n_prompt_ids, size = qkv__min(g->vocabulary, qkv_tokenizer_vocab_size(g->tokenizer));
    if (n < 0 || n > MOST_TOKENS)
        return qkv__fail(QKV_USAGE, "generate: a prompt of %lld ids: it has 0 to %d", (long long)n, MOST_TOKENS);
    for (int64_t i = 0; i < n; i++)
        if (g->o.prompt_ids[i] < 0 || g->o.prompt_ids[i] >= size)
            return qkv__fail(QKV_USAGE, "generate: id %lld of the prompt is %d: ids are 0..%lld", (long long)i,
                             g->o.prompt_ids[i], (long long)size - 1);
    if (qkv__grow((void **)&to->ids, &to->ids_bytes, (size_t)n * sizeof *to->ids)) return QKV_MEMORY;
    if (n) memcpy(to->ids, g->o.prompt_ids, (size_t)n * sizeof *to->ids);
    to->n = (size_t)n;
    return QKV_OK;
}

static qkv_status take_prompt_text(generation *g, qkv_str prompt)
{
    qkv_encode_opts o = QKV_OPTS(qkv_encode_opts);
    o.parse_special = g->o.parse_special;
    return qkv__encode(g->tokenizer, prompt.data, prompt.length, &o, &g->out->prompt);
}

/* A prompt of ids, or with special tokens, may have its start itself. */
static void find_start(generation *g)
{
    const qkv__ids *p = &g->out->prompt;
    const bool may_have = g->o.prompt_ids || g->o.parse_special;
    if (may_have && p->n && g->started.n && p->ids[0] == g->started.ids[0]) g->started.n = 0;
}

/* The new ids go behind those of the prompt too: together they are the text so far. */
static qkv_status encode_prompt(generation *g, qkv_str prompt)
{
    generated *out = g->out;
    qkv_status status = g->o.prompt_ids ? take_prompt_ids(g) : take_prompt_text(g, prompt);
    if (status == QKV_FORMAT)
        return qkv__fail(QKV_FORMAT, "generate: the prompt is not UTF-8 at byte %zu",
                         qkv_utf8_valid(prompt.data, prompt.length) + 1);
    if (status) return status;
    find_start(g);
    out->shown.n_prompt = (int64_t)out->prompt.n;
    if (!out->shown.n_prompt && !g->started.n && g->by_model && g->f.ids.start >= 0)
        g->started = (qkv__id_run){ .ids = { g->f.ids.start }, .n = 1 }; /* something must be read before the first token */
    if ((status = find_room(g, out->shown.n_prompt + g->started.n))) return status;
    size_t most = (size_t)g->most;
    if (qkv__grow((void **)&out->prompt.ids, &out->prompt.ids_bytes, (out->prompt.n + most) * sizeof *out->prompt.ids) ||
        qkv__grow((void **)&out->ids, &out->ids_bytes, most * sizeof *out->ids) ||
        qkv__grow((void **)&out->log_p, &out->log_p_bytes, most * sizeof *out->log_p))
        return QKV_MEMORY;
    return QKV_OK;
}

static qkv_status read_tokens(generation *g, const int32_t *ids, int64_t n, qkv_logits logits)
{
    qkv_status status = qkv__cancelled(g->o.hooks, "generate");
    g->is_cancelled = status != QKV_OK;
    if (!status && g->row) {
        int64_t wanted = logits == QKV_LOGITS_ALL ? n : logits == QKV_LOGITS_LAST;
        return qkv__batch_read(g->batcher, g->row, ids, n, wanted, &g->logits);
    }
    if (!status) status = qkv_session_read(g->session, ids, &n, logits);
    g->logits = qkv_tensor_data(qkv_session_logits(g->session));
    return status;
}

/* Room for the numbers of one more place of `n`, and the first of its likeliest. NULL without n_top. */
static qkv_status make_top(const generation *g, qkv_likely **top, size_t *bytes, int64_t n)
{
    size_t wanted = (size_t)(n + 1) * (size_t)g->o.n_top * sizeof **top;
    return wanted && qkv__grow((void **)top, bytes, wanted) ? QKV_MEMORY : QKV_OK;
}

/* By what was read before it. */
static qkv_status score_prompt_id(generation *g, int64_t i)
{
    generated *out = g->out;
    qkv_status status = make_top(g, &out->prompt_top, &out->prompt_top_bytes, i);
    if (!status) status = qkv__grow((void **)&out->prompt_log_p, &out->prompt_log_p_bytes, (size_t)(i + 1) * sizeof(double));
    if (status) return status;
    qkv_likely *top = g->o.n_top ? out->prompt_top + i * g->o.n_top : NULL;
    if (g->logits)
        return qkv__score_logits(g->logits, g->vocabulary, out->prompt.ids[i], &out->prompt_log_p[i], top, g->o.n_top);
    out->prompt_log_p[i] = NAN;
    for (int k = 0; k < g->o.n_top; k++) top[k] = (qkv_likely){ -1, NAN };
    return QKV_OK;
}

/* A prompt that is scored needs the logits of all its tokens, and shares nothing that was read before. */
static qkv_status begin_reading(generation *g, const qkv_model *m)
{
    static const qkv__id_run nothing;
    const bool scored = g->o.score_prompt;
    if (g->batcher)
        return qkv__batch_open(g->batcher, scored ? &nothing : &g->started, g->out->prompt.ids,
                               scored ? 0 : g->out->shown.n_prompt, &g->n_read, &g->row);
    g->session = qkv_session_new(m, NULL);
    return g->session ? qkv_session_start(g->session, 1) : qkv_error_status();
}

/* In blocks: between them hooks are asked, and a prompt that is scored needs the logits of one block at a time. */
static qkv_status read_prompt(generation *g)
{
    const int64_t n = g->out->shown.n_prompt;
    const bool scored = g->o.score_prompt;
    qkv_status status = QKV_OK;
    if (g->n_read < g->started.n)
        status = read_tokens(g, g->started.ids + g->n_read, g->started.n - g->n_read,
                             n && !scored ? QKV_LOGITS_NONE : QKV_LOGITS_LAST);
    for (int64_t at = qkv__max(0, g->n_read - g->started.n), some; at < n && !status; at += some) {
        some = qkv__min(g->row ? qkv__batch_block(g->batcher) : PROMPT_BLOCK, n - at);
        if (scored) status = score_prompt_id(g, at);
        qkv_logits wanted = scored ? QKV_LOGITS_ALL : at + some < n ? QKV_LOGITS_NONE : QKV_LOGITS_LAST;
        if (!status) status = read_tokens(g, g->out->prompt.ids + at, some, wanted);
        for (int64_t i = 1; scored && i < some && !status; i++, g->logits += g->vocabulary) status = score_prompt_id(g, at + i);
    }
    return status;
}

/* ---- new tokens ---- */

/* What id adds to the text: a tokenizer of words puts a space between two, so the token before it matters. Decoders of
 * published tokenizers may take something away from that again; what was given out stays. */
static qkv_status put_token_text(generation *g, const int32_t *id, bool is_first)
{
    size_t before = is_first ? 0 : 1;
    qkv_status status = qkv__decode(g->tokenizer, id - before, before, 0, &g->shorter);
    if (!status) status = qkv__decode(g->tokenizer, id - before, before + 1, 0, &g->longer);
    if (status) return status;
    size_t same = 0;
    while (same < g->shorter.length && same < g->longer.length && g->shorter.data[same] == g->longer.data[same]) same++;
    return qkv__stream_put(&g->stream, g->longer.data + same, g->longer.length - same);
}

static bool ends_generation(const generation *g, int32_t id)
{
    for (int i = 0; i < g->o.n_ends; i++)
        if (g->o.ends[i] == id) return true;
    return g->by_model ? qkv__ends_text(&g->f, id) : id == g->o.end;
}

static qkv_status tell_top(generation *g, int32_t id)
{
    generated *out = g->out;
    double log_p;
    if (!g->o.n_top) return QKV_OK;
    qkv_status status = make_top(g, &out->top, &out->top_bytes, out->shown.n);
    if (status) return status;
    return qkv__score_logits(g->logits, g->vocabulary, id, &log_p, out->top + out->shown.n * g->o.n_top, g->o.n_top);
}

/* The next token. *done says whether it was the last one, and out->shown.finish why. */
static qkv_status add_token(generation *g, bool *done)
{
    generated *out = g->out;
    int32_t *all = out->prompt.ids, id;
    int64_t n = out->shown.n_prompt + out->shown.n;
    double log_p;
    qkv_status status = qkv__sample(&g->sampler, g->logits, (qkv__history){ all, n, out->shown.n }, (uint64_t)out->shown.n, &id,
                                    &log_p);
    if (status) return status;
    if ((*done = id < 0 || ends_generation(g, id))) return out->shown.finish = QKV_FINISH_END, QKV_OK;
    status = tell_top(g, id);
    if (status) return status;
    all[n] = out->ids[out->shown.n] = id;
    out->log_p[out->shown.n++] = log_p;
    status = put_token_text(g, all + n, n == 0);
    *done = g->stream.is_stopped || out->shown.n == g->most;
    out->shown.finish = QKV_FINISH_LENGTH;
    return status || *done ? status : read_tokens(g, &id, 1, QKV_LOGITS_LAST);
}

static qkv_status write_text(generation *g)
{
    bool done = false;
    qkv_status status = QKV_OK;
    while (!done && !status) status = add_token(g, &done);
    if (!status) status = qkv__stream_end(&g->stream);
    if (g->stream.is_stopped) g->out->shown.finish = QKV_FINISH_STOP;
    return status;
}

/* ---- the call ---- */

/* Special tokens are no text, and a model may have more ids than its tokenizer has tokens. */
static void forbid(generation *g)
{
    for (int32_t id = 0; id < g->vocabulary; id++)
        g->sampler.forbidden[id] = id >= qkv_tokenizer_vocab_size(g->tokenizer) || qkv_tokenizer_is_special(g->tokenizer, id);
    if (g->o.start >= 0) g->sampler.forbidden[g->o.start] = true;
    if (g->o.end >= 0) g->sampler.forbidden[g->o.end] = false;
    const qkv__model_info *info = g->f.info;
    for (int i = 0; i < info->n_banned; i++) g->sampler.forbidden[info->banned[i]] = true;
    for (int i = 0; g->by_model && i < g->f.n_ends; i++) g->sampler.forbidden[g->f.ends[i]] = false;
    for (int i = 0; i < g->o.n_ends; i++) g->sampler.forbidden[g->o.ends[i]] = false;
}

static qkv_status generate_text(generation *g, const qkv_model *m, qkv_str prompt)
{
    qkv_status status = resolve_generate_options(g, m);
    if (!status) status = encode_prompt(g, prompt);
    if (!status) status = qkv__sampler_start(&g->sampler, &g->o, g->vocabulary);
    if (status) return status;
    forbid(g);
    g->stream.stops = g->o.stops;
    g->stream.n_stops = g->o.n_stops;
    g->out->shown.finish = QKV_FINISH_LENGTH;
    status = begin_reading(g, m);
    if (!status) status = read_prompt(g);
    if (!status && !g->o.no_new_tokens) status = write_text(g);
    if (!g->is_cancelled) return status;
    g->out->shown.finish = QKV_FINISH_CANCELLED;
    return QKV_OK;
}

static void release_generation(generation *g)
{
    qkv_session_free(g->session);
    qkv__batch_close(g->batcher, g->row);
    qkv__sampler_free(&g->sampler);
    qkv__stream_free(&g->stream);
    qkv_buffer_free(&g->shorter);
    qkv_buffer_free(&g->longer);
}

static void show(generated *x)
{
    x->shown.text = (qkv_str){ x->text.length ? x->text.data : "", x->text.length };
    x->shown.ids = x->ids;
    x->shown.log_p = x->log_p;
    x->shown.prompt_ids = x->prompt.ids;
    x->shown.top = x->top;
    x->shown.prompt_top = x->prompt_top;
    x->shown.prompt_log_p = x->prompt_log_p;
}

static qkv_status tell_piece(void *generation_, const char *piece, size_t length)
{
    const generation *g = generation_;
    if (!g->o.on_text) return QKV_OK;
    show(g->out);
    return g->o.on_text(g->o.on_text_data, &g->out->shown, (qkv_str){ piece, length });
}

static void release_generated(void *result)
{
    generated *x = result;
    qkv_buffer_free(&x->text);
    qkv__ids_free(&x->prompt);
    qkv__release(x->ids, x->ids_bytes);
    qkv__release(x->log_p, x->log_p_bytes);
    qkv__release(x->top, x->top_bytes);
    qkv__release(x->prompt_top, x->prompt_top_bytes);
    qkv__release(x->prompt_log_p, x->prompt_log_p_bytes);
}

qkv_status qkv__generate(const qkv_model *m, qkv_str prompt, const qkv_generate_opts *opts, qkv__batcher *batcher,
                         qkv_generated **out)
{
    static const qkv__result_kind kind = { sizeof(generated), release_generated };
    if (!out) return qkv__fail(QKV_USAGE, "generate: a place for the result is needed");
    generation g = { .out = qkv__result_begin(*out, &kind), .batcher = batcher };
    if (!g.out) return qkv_error_status();
    *out = &g.out->shown;
    g.stream = (qkv__stream){ .each = tell_piece, .data = &g, .text = &g.out->text };
    qkv_status status = QKV__READ_OPTIONS(&g.o, hooks, opts, "generate");
    if (!status && (!m || (!prompt.data && prompt.length)))
        status = qkv__fail(QKV_USAGE, "generate: a model and a prompt are needed");
    if (!status) status = generate_text(&g, m, prompt);
    show(g.out);
    g.out->shown.n_cached = qkv__max(0, g.n_read - g.started.n);
    release_generation(&g);
    if (status) qkv__result_clear(g.out);
    return status;
}

qkv_status qkv_generate(const qkv_model *m, qkv_str prompt, const qkv_generate_opts *opts, qkv_generated **out)
{
    return qkv__generate(m, prompt, opts, NULL, out);
}
