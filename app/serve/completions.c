/* completions.c: POST /v1/completions and /v1/chat/completions: a language model continues texts or answers, all at once or piece
 * by piece. */
#include "serve.h"

#include <qkv/unstable/util.h>
#include "../../src/base/size.h"
#include "../../src/task/generate.h"
#include "chat.h"
#include "logprobs.h"
#include "prompts.h"
#include "server.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* MOST_ALL: tokens of all texts of a request. MOST_LOGPROBS: as OpenAI's; of chats it is QKV__TOP. */
enum {
    MOST_TOKENS = 4096,
    DEFAULT_TOKENS = 16,
    MOST_SAMPLES = 16,
    MOST_STOPS = 16,
    MOST_TEXTS = QKV__TEXTS,
    MOST_ALL = 65536,
    MOST_LOGPROBS = 5
};

typedef struct completion {
    const qkv_server *server;
    const qkv__served *served;
    qkv__prompts prompts;
    qkv__strings stops;
    const char *stop_texts[MOST_STOPS];
    qkv_generate_opts opts;
    qkv_hooks hooks;
    int64_t samples;
    bool is_chat, echo, streams, has_log_p, tells_usage;
    char id[48];
    int64_t created;
    qkv_generated *made; /* NULL: nothing yet */
    int64_t prompt_tokens, cached_tokens, tokens;
    /* the text that is being made, and for a stream its events */
    struct qkv__events *stream;
    qkv__json event;
    int64_t index;
    bool is_echoed, is_begun; /* the prompt was told; an event of the answer was */
    qkv_buffer echoed;        /* the prompt as text */
    qkv__logprobs logprobs;
    int64_t told; /* tokens whose log-probabilities were told, the prompt's counted */
} completion;

/* ---- the request ---- */

static qkv_status get_stops(completion *c, const qkv__json_value *body)
{
    qkv_status status = qkv__get_strings(body, "stop", &c->stops);
    if (status) return status;
    if (c->stops.n > MOST_STOPS) return qkv__fail(QKV_USAGE, "\"stop\" has at most %d strings", MOST_STOPS);
    for (int64_t i = 0; i < c->stops.n; i++)
        if (!c->stops.texts[i].length || strlen(c->stops.texts[i].data) != c->stops.texts[i].length)
            return qkv__fail(QKV_USAGE, "\"stop\" %lld is empty or has a NUL", (long long)i);
        else c->stop_texts[i] = c->stops.texts[i].data;
    c->opts.stops = c->stop_texts;
    c->opts.n_stops = (int)c->stops.n;
    return QKV_OK;
}

/* Another one for every request, and not above what every reader of JSON can read. */
static int64_t fresh_seed(const completion *c)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
        seed = (uint64_t)c->created * 0x9E3779B97F4A7C15u + atomic_load(&c->server->completions);
    return (int64_t)(seed >> 11);
}

static qkv_status get_sampling(completion *c, const qkv__json_value *body)
{
    int64_t tokens = c->is_chat ? MOST_TOKENS : DEFAULT_TOKENS, seed = fresh_seed(c), top_k = 0;
    c->opts.temperature = 1;
    c->opts.top_p = 1;
    c->opts.repetition_penalty = 1;
    qkv_status status = qkv__get_whole(body, "max_tokens", 0, INT64_MAX, &tokens);
    if (!status && c->is_chat) status = qkv__get_whole(body, "max_completion_tokens", 0, INT64_MAX, &tokens);
    if (!status) status = qkv__get_number(body, "temperature", 0, 2, &c->opts.temperature);
    if (!status) status = qkv__get_number(body, "top_p", 1e-6, 1, &c->opts.top_p);
    if (!status) status = qkv__get_whole(body, "top_k", 0, INT32_MAX, &top_k);
    if (!status) status = qkv__get_number(body, "min_p", 0, 1, &c->opts.min_p);
    if (!status) status = qkv__get_number(body, "repetition_penalty", 1e-3, 1e3, &c->opts.repetition_penalty);
    if (!status) status = qkv__get_number(body, "presence_penalty", -2, 2, &c->opts.presence_penalty);
    if (!status) status = qkv__get_number(body, "frequency_penalty", -2, 2, &c->opts.frequency_penalty);
    if (!status) status = qkv__get_whole(body, "seed", INT64_MIN, INT64_MAX, &seed);
    c->opts.max_tokens = qkv__min(tokens, qkv__min(MOST_TOKENS, MOST_ALL / (c->prompts.n * c->samples)));
    c->opts.no_new_tokens = !tokens;
    c->opts.seed = (uint64_t)seed;
    c->opts.top_k = (int)top_k;
    return status;
}

/* What would change the text and is not known here is refused; other members are not looked at. */
static qkv_status refuse_others(const completion *c, const qkv__json_value *body)
{
    int64_t best_of = c->samples;
    const qkv__json_value *bias = qkv__json_get(body, "logit_bias");
    qkv_status status = qkv__get_whole(body, "best_of", 0, INT64_MAX, &best_of);
    if (!status && best_of != c->samples)
        status = qkv__fail(
            QKV_USAGE,
            "\"best_of\" is %lld and \"n\" is %lld: they must be the same, as this server does not choose among samples",
            (long long)best_of, (long long)c->samples);
    if (!status && bias && !qkv__json_is_null(bias) && (!qkv__json_is_object(bias) || qkv__json_size(bias)))
        status = qkv__fail(QKV_USAGE, "\"logit_bias\" is not supported");
    if (!status && qkv__json_is_string(qkv__json_get(body, "suffix")))
        status = qkv__fail(QKV_USAGE, "\"suffix\" is not supported");
    return status;
}

static qkv_status get_stream(completion *c, const qkv__json_value *body)
{
    int64_t log_p = -1;
    const qkv__json_value *options = qkv__json_get(body, "stream_options");
    qkv_status status = qkv__get_flag(body, "stream", &c->streams);
    if (!status && c->is_chat) status = qkv__get_chat_logprobs(body, &log_p);
    if (!status && !c->is_chat) status = qkv__get_flag(body, "echo", &c->echo);
    if (!status && !c->is_chat) status = qkv__get_whole(body, "logprobs", 0, MOST_LOGPROBS, &log_p);
    if (!status && options && !qkv__json_is_null(options) && !qkv__json_is_object(options))
        status = qkv__fail(QKV_USAGE, "\"stream_options\" must be an object");
    if (!status) status = qkv__get_flag(options, "include_usage", &c->tells_usage);
    c->has_log_p = log_p >= 0;
    c->opts.n_top = c->has_log_p ? (int)log_p : 0;
    c->opts.score_prompt = c->has_log_p && c->echo;
    return status;
}

static qkv_status get_completion(completion *c, const qkv__json_value *body)
{
    qkv_config t = { .size = sizeof t };
    qkv_model_config(c->served->model, &t);
    const int64_t vocabulary = t.target_vocab_size ? t.target_vocab_size : t.vocab_size;
    qkv_status status = c->is_chat ? qkv__get_chat_prompt(c->served, body, &c->prompts)
                                   : qkv__get_prompts(body, "prompt", MOST_TEXTS, vocabulary, &c->prompts);
    c->samples = 1;
    if (!status) status = qkv__get_whole(body, "n", 1, MOST_SAMPLES, &c->samples);
    if (!status && c->prompts.n * c->samples > MOST_TEXTS)
        status = qkv__fail(QKV_USAGE, "%lld prompts %lld times: at most %d texts come of one request", (long long)c->prompts.n,
                           (long long)c->samples, MOST_TEXTS);
    if (!status) status = get_sampling(c, body);
    if (!status) status = get_stops(c, body);
    if (!status) status = get_stream(c, body);
    return status ? status : refuse_others(c, body);
}

/* ---- the answer ---- */

static void put_head(const completion *c, qkv__json *j)
{
    qkv__put_raw(j, "{\"id\":");
    qkv__put_name(j, c->id);
    qkv__put_raw(j, !c->is_chat  ? ",\"object\":\"text_completion\",\"created\":"
                    : c->streams ? ",\"object\":\"chat.completion.chunk\",\"created\":"
                                 : ",\"object\":\"chat.completion\",\"created\":");
    qkv__put_whole(j, c->created);
    qkv__put_raw(j, ",\"model\":");
    qkv__put_name(j, c->server->name);
    qkv__put_raw(j, ",\"seed\":");
    qkv__put_whole(j, (int64_t)c->opts.seed);
    qkv__put_raw(j, ",\"choices\":[");
}

static const char *finish_word(qkv_finish finish) { return finish == QKV_FINISH_LENGTH ? "\"length\"" : "\"stop\""; }

/* Of the tokens that were not told yet, up to `to`; those of the prompt count only where it is echoed. */
static void put_log_p(completion *c, qkv__json *j, int64_t to)
{
    if (!c->echo && c->told < c->made->n_prompt) c->told = c->made->n_prompt;
    (c->is_chat ? qkv__put_chat_logprobs : qkv__put_logprobs)(
        j, &c->logprobs, qkv_model_tokenizer(c->served->model, QKV_SIDE_TARGET), c->made, c->opts.n_top, c->told, to);
    c->told = to;
}

/* finish NULL: it goes on. The text is that of the tokens up to `to`, or of most of them. */
static void put_choice(completion *c, qkv__json *j, const qkv_buffer *text, int64_t to, const char *finish)
{
    if (c->is_chat) qkv__put_chat_message(j, text, c->streams, c->is_begun);
    else {
        qkv__put_raw(j, "{\"text\":");
        qkv__put_string(j, text->data, text->length);
    }
    c->is_begun = true;
    qkv__put_raw(j, ",\"index\":");
    qkv__put_whole(j, c->index);
    qkv__put_raw(j, ",\"logprobs\":");
    if (c->has_log_p) put_log_p(c, j, to);
    else qkv__put_raw(j, "null");
    qkv__put_raw(j, ",\"finish_reason\":");
    qkv__put_raw(j, finish ? finish : "null");
    qkv__put_raw(j, "}");
}

static void put_usage(const completion *c, qkv__json *j)
{
    qkv__put_raw(j, ",\"usage\":{\"prompt_tokens\":");
    qkv__put_whole(j, c->prompt_tokens);
    qkv__put_raw(j, ",\"completion_tokens\":");
    qkv__put_whole(j, c->tokens);
    qkv__put_raw(j, ",\"total_tokens\":");
    qkv__put_whole(j, c->prompt_tokens + c->tokens);
    qkv__put_raw(j, ",\"prompt_tokens_details\":{\"cached_tokens\":");
    qkv__put_whole(j, c->cached_tokens);
    qkv__put_raw(j, "}}");
}

/* ---- texts ---- */

static int64_t tokens_so_far(const completion *c) { return c->made->n_prompt + c->made->n; }

static qkv_status find_echo(completion *c)
{
    const qkv__prompt *p = &c->prompts.all[c->index / c->samples];
    qkv_text *bytes = NULL, *text = NULL;
    qkv__buffer_clear(&c->echoed);
    if (!p->ids) return qkv__buffer_put(&c->echoed, p->text, p->length);
    qkv_status status = qkv_tokenizer_decode(qkv_model_tokenizer(c->served->model, QKV_SIDE_TARGET), p->ids, p->n_ids, 0,
                                             &bytes);
    if (!status) status = qkv_utf8_repair((qkv_str){ bytes->data, bytes->length }, &text);
    if (!status) status = qkv__buffer_put(&c->echoed, text->data, text->length);
    qkv_free(bytes);
    qkv_free(text);
    return status;
}

static qkv_status put_whole_text(completion *c, qkv__json *j)
{
    qkv__buffer_clear(&c->echoed);
    qkv_status status = c->echo ? find_echo(c) : QKV_OK;
    if (!status) status = qkv__buffer_put(&c->echoed, c->made->text.data, c->made->text.length);
    if (c->index) qkv__put_raw(j, ",");
    if (!status) put_choice(c, j, &c->echoed, tokens_so_far(c), finish_word(c->made->finish));
    return status;
}

static qkv_status put_event(completion *c, const qkv_buffer *text, int64_t to, const char *finish)
{
    put_head(c, &c->event);
    put_choice(c, &c->event, text, to, finish);
    qkv__put_raw(&c->event, "]}");
    return qkv__events_put(c->stream, &c->event);
}

/* Not before the first piece of what follows: a prompt that is refused is no stream. */
static qkv_status put_echo(completion *c)
{
    if (!c->echo || c->is_echoed) return QKV_OK;
    c->is_echoed = true;
    qkv_status status = find_echo(c);
    return status ? status : put_event(c, &c->echoed, c->made->n_prompt, NULL);
}

static qkv_status put_completion_piece(void *data, const qkv_generated *so_far, qkv_str piece)
{
    (void)so_far; /* c has it */
    completion *c = data;
    if (!c->stream) return QKV_OK;
    qkv_status status = put_echo(c);
    const qkv_buffer text = { .data = (char *)(uintptr_t)piece.data, .length = piece.length };
    return status ? status : put_event(c, &text, tokens_so_far(c), NULL);
}

static qkv_status put_last_event(completion *c)
{
    static const qkv_buffer nothing = { 0 };
    qkv_status status = put_echo(c);
    return status ? status : put_event(c, &nothing, tokens_so_far(c), finish_word(c->made->finish));
}

/* The index-th text: sample index % samples of its prompt. */
static qkv_status make_text(completion *c, qkv__json *j)
{
    const qkv__prompt *p = &c->prompts.all[c->index / c->samples];
    c->opts.sample = c->index % c->samples;
    c->opts.prompt_ids = p->ids;
    c->opts.n_prompt_ids = p->n_ids;
    c->is_echoed = c->is_begun = false;
    c->told = 0;
    qkv__logprobs_begin(&c->logprobs);
    qkv_status status = qkv__generate(c->served->model, (qkv_str){ p->text, p->length }, &c->opts, c->served->batcher,
                                      &c->made);
    if (!status && c->made->finish == QKV_FINISH_CANCELLED) status = qkv__fail(QKV_CANCELLED, "generate: cancelled");
    if (status) return status;
    c->tokens += c->made->n;
    if (!c->opts.sample) c->prompt_tokens += c->made->n_prompt, c->cached_tokens += c->made->n_cached;
    return c->stream ? put_last_event(c) : put_whole_text(c, j);
}

/* Between texts the turn is given up, so that a request of many does not hold it longer than others. */
static qkv_status make_texts(completion *c, qkv__json *j)
{
    qkv__request *r = c->hooks.data;
    qkv_status status = QKV_OK;
    for (c->index = 0; c->index < c->prompts.n * c->samples && !status; c->index++) {
        if (c->index && (status = qkv__work_yield(&r->server->connections, r->link)))
            atomic_store(&r->is_left, qkv__link_is_left(r->link));
        if (!status) status = make_text(c, j);
    }
    return status;
}

static qkv_status fill_stream(struct qkv__events *s, void *data)
{
    completion *c = data;
    c->stream = s;
    qkv_status status = make_texts(c, NULL);
    if (status || !c->tells_usage) return status;
    put_head(c, &c->event);
    qkv__put_raw(&c->event, "]");
    put_usage(c, &c->event);
    qkv__put_raw(&c->event, "}");
    return qkv__events_put(s, &c->event);
}

static qkv_status answer_completion(completion *c, qkv__json *j)
{
    put_head(c, j);
    qkv_status status = make_texts(c, j);
    qkv__put_raw(j, "]");
    put_usage(c, j);
    qkv__put_raw(j, "}\n");
    return status;
}

static void release_completion(void *data)
{
    completion *c = data;
    qkv_free(c->made);
    qkv_buffer_free(&c->event.text);
    qkv_buffer_free(&c->echoed);
    qkv__logprobs_free(&c->logprobs);
    qkv__prompts_free(&c->prompts);
    qkv__release(c, sizeof *c);
}

static qkv_status serve_texts(qkv__request *r, bool is_chat)
{
    completion *c = qkv__alloc_zero(sizeof *c);
    if (!c) return QKV_MEMORY;
    c->server = r->server;
    c->served = r->served;
    c->is_chat = is_chat;
    c->opts.size = sizeof c->opts;
    c->opts.no_special = is_chat;
    c->opts.ends = &r->served->chat_end;
    c->opts.n_ends = is_chat && r->served->chat_end >= 0;
    c->hooks = (qkv_hooks){ .data = r, .cancel = qkv__request_cancel };
    c->opts.hooks = &c->hooks;
    c->opts.on_text = put_completion_piece;
    c->opts.on_text_data = c;
    c->created = (int64_t)time(NULL);
    snprintf(c->id, sizeof c->id, "%s-%llx-%llx", is_chat ? "chatcmpl" : "cmpl", (unsigned long long)c->created,
             (unsigned long long)atomic_fetch_add(&r->server->completions, 1));
    qkv_status status = get_completion(c, r->body);
    if (!status && c->streams) return qkv__events_start(r, fill_stream, c, release_completion);
    if (!status) status = answer_completion(c, &r->answer);
    release_completion(c);
    return status;
}

qkv_status qkv__serve_completions(qkv__request *r) { return serve_texts(r, false); }
qkv_status qkv__serve_chat(qkv__request *r) { return serve_texts(r, true); }
