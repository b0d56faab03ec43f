/* test_serve_openai.c: completions with log-probabilities, ids and penalties, seeds, one model by its name; pages elsewhere;
 * what is told of each request. */
#include "serve/serve.h"
#include "json_values.h"
#include "http_client.h"
#include "serve_models.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static qkv_model *model;
static qkv_server *server;
static int port;

static const qkv__json_value *completed(const char *body)
{
    reply r = post(port, "/v1/completions", body);
    if (r.status != 200) print_error("%s\n", r.text);
    assert_int_equal(r.status, 200);
    const qkv__json_value *x = json_parse(r.body, r.body_length);
    assert_non_null(x);
    free_reply(&r);
    return x;
}

static const qkv__json_value *choice(const qkv__json_value *x, size_t i)
{
    return qkv__json_at(qkv__json_get(x, "choices"), i);
}
static const char *text_of(const qkv__json_value *x, size_t i) { return qkv__json_text(qkv__json_get(choice(x, i), "text")); }
static const qkv__json_value *member(const qkv__json_value *x, const char *name, size_t i)
{
    return qkv__json_at(qkv__json_get(x, name), i);
}

/* ---- log-probabilities ---- */

/* Arrays of a choice as long as `n`, each token's log-probability among its likeliest, offsets in the text. */
static void check_logprobs(const qkv__json_value *c, size_t n, size_t most)
{
    const qkv__json_value *l = qkv__json_get(c, "logprobs");
    static const char *const names[] = { "tokens", "token_logprobs", "top_logprobs", "text_offset" };
    for (int i = 0; i < 4; i++) assert_int_equal(qkv__json_size(qkv__json_get(l, names[i])), n);
    for (size_t i = 0; i < n; i++) {
        double log_p = qkv__json_number(member(l, "token_logprobs", i));
        const qkv__json_value *top = member(l, "top_logprobs", i);
        assert_true(log_p < 0);
        assert_in_range(qkv__json_size(top), 1, most + 1);
        const char *token = qkv__json_text(member(l, "tokens", i));
        assert_true(qkv__json_number(qkv__json_get(top, token)) >= log_p);
    }
}

static void log_probabilities_are_the_librarys(void **state)
{
    const qkv_generate_opts o = { .max_tokens = 9, .temperature = 0.9f, .seed = 7, .n_top = 3, .score_prompt = 1 };
    qkv_generated *g = NULL;
    (void)state;
    assert_int_equal(qkv_generate(model, qkv_cstr("the cat"), &o, &g), QKV_OK);
    for (int echo = 0; echo < 2; echo++) {
        const qkv__json_value *x = completed(
            echo ? "{\"prompt\":\"the cat\",\"max_tokens\":9,\"temperature\":0.9,\"seed\":7,\"logprobs\":3,"
                   "\"echo\":true}"
                 : "{\"prompt\":\"the cat\",\"max_tokens\":9,\"temperature\":0.9,\"seed\":7,\"logprobs\":3}");
        const qkv__json_value *l = qkv__json_get(choice(x, 0), "logprobs");
        int64_t before = echo ? g->n_prompt : 0;
        check_logprobs(choice(x, 0), (size_t)(before + g->n), 3);
        for (int64_t i = 0; i < before + g->n; i++) {
            double wanted = i < before ? g->prompt_log_p[i] : g->log_p[i - before];
            assert_true(qkv__json_number(member(l, "token_logprobs", (size_t)i)) == wanted);
        }
        if (echo) {
            assert_string_equal(qkv__json_text(member(l, "tokens", 0)), "the");
            assert_string_equal(qkv__json_text(member(l, "tokens", 1)), " cat");
            assert_int_equal(qkv__json_int(member(l, "text_offset", 1)), 3);
            assert_int_equal(qkv__json_int(member(l, "text_offset", 2)), 7);
        } else assert_int_equal(qkv__json_int(member(l, "text_offset", 0)), 0);
        json_free(x);
    }
    qkv_free(g);
}

/* Nothing new: what scoring a text takes. */
static void a_prompt_is_scored_alone(void **state)
{
    (void)state;
    const qkv__json_value *x = completed("{\"prompt\":[\"the cat\",\"我爱你\"],\"max_tokens\":0,\"logprobs\":2,\"echo\":true}");
    static const char *const prompts[] = { "the cat", "我爱你" };
    for (size_t i = 0; i < 2; i++) {
        qkv_generated *g = NULL;
        const qkv_generate_opts o = { .no_new_tokens = 1, .score_prompt = 1 };
        assert_int_equal(qkv_generate(model, qkv_cstr(prompts[i]), &o, &g), QKV_OK);
        assert_string_equal(text_of(x, i), prompts[i]);
        assert_string_equal(qkv__json_text(qkv__json_get(choice(x, i), "finish_reason")), "length");
        check_logprobs(choice(x, i), (size_t)g->n_prompt, 2);
        qkv_free(g);
    }
    assert_int_equal(qkv__json_int(qkv__json_get(qkv__json_get(x, "usage"), "completion_tokens")), 0);
    json_free(x);
    x = completed("{\"prompt\":\"the cat\",\"max_tokens\":0}");
    assert_string_equal(text_of(x, 0), "");
    json_free(x);
}

/* A token that is no whole character is told by its bytes, and tokens by the text they add. */
static void tokens_are_told_as_text(void **state)
{
    (void)state;
    const qkv__json_value *x = completed("{\"prompt\":\"狗\",\"max_tokens\":0,\"logprobs\":0,\"echo\":true}");
    const qkv__json_value *l = qkv__json_get(choice(x, 0), "logprobs");
    size_t n = qkv__json_size(qkv__json_get(l, "tokens"));
    assert_in_range(n, 2, 3);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strncmp(qkv__json_text(member(l, "tokens", i)), "bytes:\\x", 8), 0);
        assert_int_equal(qkv__json_size(member(l, "top_logprobs", i)), 1);
        assert_int_equal(qkv__json_int(member(l, "text_offset", i)), i > 0);
    }
    json_free(x);
}

/* Appends the elements of a list to a member of an object. */
static void extend(const qkv__json_value **object, const char *name, const qkv__json_value *list)
{
    size_t n = qkv__json_size(qkv__json_get(*object, name));
    for (size_t i = 0; i < qkv__json_size(list); i++) {
        char path[64], *element = json_text(qkv__json_at(list, i), QKV__JSON_COMPACT);
        snprintf(path, sizeof path, "%s/%zu", name, n + i);
        json_edit(object, path, element);
        free(element);
    }
}

/* The lists of a stream's events, one after the other, are those of the whole. */
static void a_stream_tells_the_same(void **state)
{
    static const char *const bodies[] = {
        "{\"prompt\":\"the cat\",\"max_tokens\":30,\"seed\":3,\"logprobs\":2%s}",
        "{\"prompt\":\"the cat\",\"max_tokens\":30,\"seed\":3,\"logprobs\":2,\"echo\":true%s}",
        "{\"prompt\":\"the cat\",\"max_tokens\":30,\"seed\":3,\"logprobs\":0,\"stop\":\"zq\"%s}",
        "{\"prompt\":\"the cat\",\"max_tokens\":0,\"logprobs\":1,\"echo\":true%s}",
    };
    static const char *const names[] = { "tokens", "token_logprobs", "top_logprobs", "text_offset" };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char whole[512], piece[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(whole, sizeof whole, bodies[i], "");
        snprintf(piece, sizeof piece, bodies[i], ",\"stream\":true");
#pragma GCC diagnostic pop
        const qkv__json_value *x = completed(whole),
                              *all = json_parse_text(
                                  "{\"tokens\":[],\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]}");
        reply r = post(port, "/v1/completions", piece);
        for (const char *line = r.body; (line = strstr(line, "data: {")); line += 6) {
            const qkv__json_value *event = json_parse(line + 6, (size_t)(strstr(line, "\n\n") - line - 6));
            const qkv__json_value *l = qkv__json_get(choice(event, 0), "logprobs");
            assert_true(qkv__json_is_object(l));
            for (int k = 0; k < 4; k++) extend(&all, names[k], qkv__json_get(l, names[k]));
            json_free(event);
        }
        assert_non_null(strstr(r.body, "data: [DONE]"));
        assert_true(qkv__json_equal(all, qkv__json_get(choice(x, 0), "logprobs")));
        free_reply(&r);
        json_free(all);
        json_free(x);
    }
}

/* ---- prompts, penalties, seeds ---- */

static void ids_are_prompts_too(void **state)
{
    qkv_generated *g = NULL;
    char body[1024];
    (void)state;
    const qkv_generate_opts o = { .max_tokens = 8, .temperature = 1, .seed = 3 };
    assert_int_equal(qkv_generate(model, qkv_cstr("the cat"), &o, &g), QKV_OK);
    for (int nested = 0; nested < 2; nested++) {
        int n = snprintf(body, sizeof body, "{\"max_tokens\":8,\"seed\":3,\"echo\":%s,\"prompt\":%s", nested ? "true" : "false",
                         nested ? "[[" : "[");
        for (int64_t i = 0; i < g->n_prompt; i++)
            n += snprintf(body + n, sizeof body - (size_t)n, "%s%d", i ? "," : "", g->prompt_ids[i]);
        snprintf(body + n, sizeof body - (size_t)n, nested ? "],[5]]}" : "]}");
        const qkv__json_value *x = completed(body);
        const char *text = text_of(x, 0);
        if (nested) assert_int_equal(strncmp(text, "the cat", 7), 0);
        assert_string_equal(text + (nested ? 7 : 0), g->text.data);
        assert_int_equal(qkv__json_size(qkv__json_get(x, "choices")), 1 + nested);
        json_free(x);
    }
    qkv_free(g);
}

/* A request of many texts has fewer tokens for each: they are not refused. */
static void tokens_of_many_texts_are_capped(void **state)
{
    (void)state;
    const qkv__json_value *x = completed(
        "{\"prompt\":[\"a\",\"b\"],\"n\":16,\"max_tokens\":100000,\"seed\":1,\"stop\":[\"a\",\"e\",\"i\",\"o\",\"t\",\" \"]}");
    assert_int_equal(qkv__json_size(qkv__json_get(x, "choices")), 32);
    json_free(x);
    x = completed("{\"prompt\":\"the\",\"max_tokens\":5000,\"temperature\":0}");
    int64_t tokens = qkv__json_int(qkv__json_get(qkv__json_get(x, "usage"), "completion_tokens"));
    const bool is_cut = !strcmp(qkv__json_text(qkv__json_get(choice(x, 0), "finish_reason")), "length");
    assert_true(is_cut ? tokens == 4096 : tokens < 4096);
    json_free(x);
}

static int64_t cached_tokens(const qkv__json_value *x)
{
    const qkv__json_value *details = qkv__json_get(qkv__json_get(x, "usage"), "prompt_tokens_details");
    assert_true(qkv__json_is_int(qkv__json_get(details, "cached_tokens")));
    return qkv__json_int(qkv__json_get(details, "cached_tokens"));
}

/* Each prompt of a request counts once, however many samples there are; a prompt that is scored is read again. */
static void what_was_read_is_told(void **state)
{
    static const char *const bodies[] = {
        "{\"prompt\":\"猫坐在垫子上，我爱你\",\"max_tokens\":9,\"seed\":7,\"n\":2}",
        "{\"prompt\":\"猫坐在垫子上，我爱你\",\"max_tokens\":9,\"seed\":7,\"n\":2}",
        "{\"prompt\":\"猫坐在垫子上，我爱你\",\"max_tokens\":9,\"seed\":7,\"logprobs\":1,\"echo\":true}",
    };
    const qkv__json_value *x[3];
    (void)state;
    for (int i = 0; i < 3; i++) x[i] = completed(bodies[i]);
    int64_t all = qkv__json_int(qkv__json_get(qkv__json_get(x[0], "usage"), "prompt_tokens"));
    assert_true(cached_tokens(x[0]) < all - 1);
    assert_int_equal(cached_tokens(x[1]), all - 1);
    assert_int_equal(cached_tokens(x[2]), 0);
    assert_true(qkv__json_equal(qkv__json_get(x[0], "choices"), qkv__json_get(x[1], "choices")));
    for (int i = 0; i < 3; i++) json_free(x[i]);
}

static void penalties_are_the_librarys(void **state)
{
    const qkv_generate_opts o = { .max_tokens = 40, .presence_penalty = 1.5f, .frequency_penalty = 0.75f };
    qkv_generated *g = NULL;
    (void)state;
    assert_int_equal(qkv_generate(model, qkv_cstr("the"), &o, &g), QKV_OK);
    const qkv__json_value *x = completed("{\"prompt\":\"the\",\"max_tokens\":40,\"temperature\":0,\"presence_penalty\":1.5,"
                                         "\"frequency_penalty\":0.75}"),
                          *y = completed("{\"prompt\":\"the\",\"max_tokens\":40,\"temperature\":0}");
    assert_string_equal(text_of(x, 0), g->text.data);
    assert_string_not_equal(text_of(x, 0), text_of(y, 0));
    json_free(x);
    json_free(y);
    qkv_free(g);
}

/* Another text for every request, by a seed that the answer tells and that gives the same text again. */
static void every_request_is_a_fresh_sample(void **state)
{
    enum { REQUESTS = 4 };
    const qkv__json_value *x[REQUESTS];
    int different = 0;
    (void)state;
    for (int i = 0; i < REQUESTS; i++) x[i] = completed("{\"prompt\":\"the\",\"max_tokens\":40}");
    for (int i = 1; i < REQUESTS; i++) {
        assert_true(qkv__json_int(qkv__json_get(x[i], "seed")) != qkv__json_int(qkv__json_get(x[0], "seed")));
        different += strcmp(text_of(x[i], 0), text_of(x[0], 0)) != 0;
    }
    assert_int_equal(different, REQUESTS - 1);
    char body[128];
    snprintf(body, sizeof body, "{\"prompt\":\"the\",\"max_tokens\":40,\"seed\":%lld}",
             (long long)qkv__json_int(qkv__json_get(x[0], "seed")));
    const qkv__json_value *again = completed(body);
    assert_string_equal(text_of(again, 0), text_of(x[0], 0));
    json_free(again);
    for (int i = 0; i < REQUESTS; i++) json_free(x[i]);
}

static void a_model_has_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int status;
    } tries[] = { { "/v1/models/a%20model", 200 },   { "/v1/models/%61%20model?x", 200 }, { "/v1/models/a", 404 },
                  { "/v1/models/a%20modelx", 404 },  { "/v1/models/a+model", 404 },       { "/v1/models/a%20mode%", 404 },
                  { "/v1/models/a%20model%00", 404 } };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        reply r = get(port, tries[i].path);
        assert_int_equal(r.status, tries[i].status);
        if (r.status == 200)
            assert_string_equal(r.body, "{\"id\":\"a model\",\"object\":\"model\",\"created\":0,\"owned_by\":\"qkv\"}\n");
        free_reply(&r);
    }
}

/* A percent sign that no number follows is one. */
static void a_name_may_have_a_percent_sign(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int status;
    } tries[] = {
        { "/v1/models/a%4", 200 }, { "/v1/models/a%254", 200 }, { "/v1/models/a%04", 404 }, { "/v1/models/a%+4", 404 }
    };
    qkv_server *s = qkv_server_new(model, &(qkv_server_opts){ .name = "a%4" });
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        reply r = get(qkv_server_port(s), tries[i].path);
        assert_int_equal(r.status, tries[i].status);
        free_reply(&r);
    }
    qkv_server_free(s);
}

/* ---- pages elsewhere ---- */

static const char *const origins[] = { "http://localhost:3000", "https://example.org" };

static void origins_are_let_in(void **state)
{
    (void)state;
    qkv_server *closed = qkv_server_new(model, NULL);
    qkv_server *some = qkv_server_new(model, &(qkv_server_opts){ .origins = origins, .n_origins = 2, .token = "t" });
    qkv_server *any = qkv_server_new(model, &(qkv_server_opts){ .origins = (const char *[]){ "*" }, .n_origins = 1 });
    const struct {
        qkv_server *server;
        const char *method, *headers;
        int status;
        const char *allowed;
    } tries[] = {
        { closed, "GET", "Origin: http://localhost:3000\r\n", 403, NULL },
        { closed, "OPTIONS", "Origin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\n", 403, NULL },
        { some, "GET", "Origin: http://localhost:3000\r\nAuthorization: Bearer t\r\n", 200, "http://localhost:3000\r\n" },
        { some, "GET", "Origin: https://example.org\r\n", 401, "https://example.org\r\n" },
        { some, "GET", "Origin: https://example.org:1\r\nAuthorization: Bearer t\r\n", 403, NULL },
        { some, "GET", "Origin: null\r\nAuthorization: Bearer t\r\n", 403, NULL },
        { some, "GET", "Authorization: Bearer t\r\n", 200, NULL },
        { some, "OPTIONS",
          "Origin: https://example.org\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: "
          "x-a,authorization\r\n",
          204, "https://example.org\r\n" },
        { some, "OPTIONS", "Origin: https://example.org\r\n", 405, "https://example.org\r\n" },
        { some, "OPTIONS", "Origin: https://example.com\r\nAccess-Control-Request-Method: GET\r\n", 403, NULL },
        { some, "OPTIONS", "Access-Control-Request-Method: GET\r\n", 405, NULL },
        { any, "GET", "Origin: https://example.com\r\n", 200, "https://example.com\r\n" },
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        reply r = ask(qkv_server_port(tries[i].server),
                      &(request){ .method = tries[i].method, .path = "/info", .headers = tries[i].headers });
        const char *allowed = reply_header(&r, "Access-Control-Allow-Origin");
        assert_int_equal(r.status, tries[i].status);
        assert_int_equal(allowed != NULL, tries[i].allowed != NULL);
        if (allowed) assert_int_equal(strncmp(allowed, tries[i].allowed, strlen(tries[i].allowed)), 0);
        if (allowed) assert_int_equal(strncmp(reply_header(&r, "Vary"), "Origin", 6), 0);
        const char *headers = reply_header(&r, "Access-Control-Allow-Headers");
        assert_int_equal(headers != NULL, r.status == 204);
        if (headers) assert_int_equal(strncmp(headers, "x-a,authorization\r\n", 19), 0);
        assert_int_equal(reply_header(&r, "Access-Control-Allow-Methods") != NULL, r.status == 204);
        free_reply(&r);
    }
    qkv_server_free(closed);
    qkv_server_free(some);
    qkv_server_free(any);
}

static void what_is_no_origin_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "", "example.org", "http://", "http://example.org/", "http://a b", "https://*.org" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(qkv_server_new(model, &(qkv_server_opts){ .origins = wrong + i, .n_origins = 1 }));
}

/* ---- what is told of requests ---- */

static struct {
    pthread_mutex_t lock;
    int n;
    char lines[8][128];
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void keep_access(void *data, const qkv_access *a)
{
    pthread_mutex_lock(&told.lock);
    assert_ptr_equal(data, &told);
    if (told.n < 8)
        snprintf(told.lines[told.n], sizeof *told.lines, "%s %s %s %d %llu", a->address, a->method, a->path, a->status,
                 (unsigned long long)a->bytes);
    told.n += a->milliseconds >= 0;
    pthread_mutex_unlock(&told.lock);
}

static void every_request_is_told(void **state)
{
    static const struct {
        const char *method, *path, *body;
    } asked[] = { { "GET", "/health?x=1", NULL },
                  { "HEAD", "/health", NULL },
                  { "GET", "/no\x01such", NULL },
                  { "POST", "/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":3}" },
                  { "POST", "/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":3,\"stream\":true}" } };
    (void)state;
    qkv_server *s = qkv_server_new(model, &(qkv_server_opts){ .each_access = keep_access, .each_access_data = &told });
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char wanted[128];
        const char *rest = strchr(asked[i].path, '?');
        reply r = ask(qkv_server_port(s),
                      &(request){ .method = asked[i].method, .path = asked[i].path, .body = asked[i].body });
        snprintf(wanted, sizeof wanted, "127.0.0.1 %s %.*s %d %zu", asked[i].method,
                 rest ? (int)(rest - asked[i].path) : (int)strlen(asked[i].path), asked[i].path, r.status, r.body_length);
        for (int n = 0, tries = 0; n <= (int)i && tries < 100000; tries++) {
            pthread_mutex_lock(&told.lock);
            n = told.n;
            pthread_mutex_unlock(&told.lock);
            usleep(100);
        }
        assert_string_equal(told.lines[i], wanted);
        free_reply(&r);
    }
    qkv_server_free(s);
    assert_int_equal(told.n, sizeof asked / sizeof *asked);
}

static int start(void **state)
{
    (void)state;
    if (!(model = make_served(MODEL_LANGUAGE))) return -1;
    if (!(server = qkv_server_new(model, &(qkv_server_opts){ .name = "a model" }))) return -1;
    port = qkv_server_port(server);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    qkv_server_free(server);
    qkv_model_free(model);
    qkv_shutdown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_probabilities_are_the_librarys),
        cmocka_unit_test(a_prompt_is_scored_alone),
        cmocka_unit_test(tokens_are_told_as_text),
        cmocka_unit_test(a_stream_tells_the_same),
        cmocka_unit_test(ids_are_prompts_too),
        cmocka_unit_test(tokens_of_many_texts_are_capped),
        cmocka_unit_test(what_was_read_is_told),
        cmocka_unit_test(penalties_are_the_librarys),
        cmocka_unit_test(every_request_is_a_fresh_sample),
        cmocka_unit_test(a_model_has_a_place),
        cmocka_unit_test(a_name_may_have_a_percent_sign),
        cmocka_unit_test(origins_are_let_in),
        cmocka_unit_test(what_is_no_origin_is_refused),
        cmocka_unit_test(every_request_is_told),
    };
    return cmocka_run_group_tests_name("serve_openai", tests, start, stop);
}
