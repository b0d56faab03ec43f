/* test_serve_chat.c: POST /v1/chat/completions. */
#include "serve/serve.h"

#include <qkv/unstable/util.h>
#include "json_values.h"
#include "http_client.h"
#include "serve_models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "folder.h"

static const char template[] =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<s>{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments.a }}{% endfor %}</s>{% endfor %}<s>";

static qkv_model *model;
static qkv_server *server;
static int port;

static int start(void **state)
{
    qkv_model *made = make_served(MODEL_LANGUAGE);
    if (!made || make_folder(state) || qkv_model_save(made, in_folder("model"), NULL)) return -1;
    qkv_model_free(made);
    if (qkv_file_write(in_folder("model/chat_template.jinja"), template, strlen(template))) return -1;
    model = qkv_model_load(in_folder("model"), NULL);
    server = qkv_server_new(model, &(qkv_server_opts){ .name = "talker" });
    port = qkv_server_port(server);
    return server ? 0 : -1;
}

static int stop(void **state)
{
    qkv_server_free(server);
    qkv_model_free(model);
    qkv_shutdown();
    return remove_folder(state);
}

static const qkv__json_value *answered(const char *body)
{
    reply r = post(port, "/v1/chat/completions", body);
    if (r.status != 200) fail_msg("%s", r.text);
    const qkv__json_value *x = json_parse(r.body, r.body_length);
    assert_non_null(x);
    free_reply(&r);
    return x;
}

static const qkv__json_value *choice_at(const qkv__json_value *x, size_t i)
{
    return qkv__json_at(qkv__json_get(x, "choices"), i);
}
static const qkv__json_value *choice(const qkv__json_value *x) { return choice_at(x, 0); }
static const char *string(const qkv__json_value *x, const char *name) { return qkv__json_text(qkv__json_get(x, name)); }
static int64_t whole(const qkv__json_value *x, const char *name) { return qkv__json_int(qkv__json_get(x, name)); }

/* What the library itself says to this prompt. */
static void generate_text(const char *prompt, qkv_generate_opts o, qkv_generated **g)
{
    o.size = sizeof o;
    o.parse_special = o.no_special = 1;
    if (qkv_generate(model, qkv_cstr(prompt), &o, g)) fail_msg("%s", qkv_error());
}

static void an_answer_is_the_librarys(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    const qkv__json_value *x = answered(
        "{\"model\":\"talker\",\"messages\":[{\"role\":\"user\",\"content\":\"the cat\"}],\"max_tokens\":9,"
        "\"temperature\":0.9,\"seed\":7}");
    generate_text("<s>user: the cat</s><s>", (qkv_generate_opts){ .max_tokens = 9, .temperature = 0.9f, .seed = 7 }, &g);
    assert_string_equal(string(x, "object"), "chat.completion");
    assert_memory_equal(string(x, "id"), "chatcmpl-", 9);
    const qkv__json_value *message = qkv__json_get(choice(x), "message"), *usage = qkv__json_get(x, "usage");
    assert_string_equal(string(message, "role"), "assistant");
    assert_string_equal(string(message, "content"), g->text.data);
    assert_true(qkv__json_is_null(qkv__json_get(choice(x), "logprobs")));
    assert_int_equal(whole(usage, "prompt_tokens"), g->n_prompt);
    assert_int_equal(whole(usage, "completion_tokens"), g->n);
    assert_string_equal(string(choice(x), "finish_reason"), g->finish == QKV_FINISH_LENGTH ? "length" : "stop");
    json_free(x);
    qkv_free(g);
}

static void tools_and_their_calls_reach_the_template(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]},{\"role\":\"assistant\","
        "\"content\":"
        "\"\",\"tool_calls\":[{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": "
        "42}\"}}]}"
        "],\"tools\":[7],\"max_completion_tokens\":5,\"temperature\":0}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"42\"}],\"tools\":[7],"
        "\"tool_choice\":\"none\",\"max_tokens\":5,\"temperature\":0}"
    };
    static const char *const prompts[] = { "[7]<s>user: x</s><s>assistant: 42</s><s>",
                                           "<s>user: x</s><s>assistant: 42</s><s>" };
    for (int i = 0; i < 2; i++) {
        qkv_generated *g = NULL;
        const qkv__json_value *x = answered(bodies[i]);
        generate_text(prompts[i], (qkv_generate_opts){ .max_tokens = 5 }, &g);
        assert_int_equal(whole(qkv__json_get(x, "usage"), "prompt_tokens"), g->n_prompt);
        assert_string_equal(string(qkv__json_get(choice(x), "message"), "content"), g->text.data);
        json_free(x);
        qkv_free(g);
    }
}

static void log_probabilities_come_with_tokens(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    const qkv__json_value *x = answered(
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_tokens\":4,\"temperature\":0,\"logprobs\":true,"
        "\"top_logprobs\":20}");
    generate_text("<s>user: a</s><s>", (qkv_generate_opts){ .max_tokens = 4, .n_top = 20 }, &g);
    const qkv__json_value *content = qkv__json_get(qkv__json_get(choice(x), "logprobs"), "content");
    assert_int_equal(qkv__json_size(content), g->n);
    for (int64_t i = 0; i < g->n; i++) {
        const qkv__json_value *token = qkv__json_at(content, (size_t)i), *top = qkv__json_get(token, "top_logprobs");
        assert_true(qkv__json_number(qkv__json_get(token, "logprob")) == g->log_p[i]);
        assert_int_equal(qkv__json_size(top), 20);
        for (int64_t k = 0; k < 20; k++)
            assert_true(qkv__json_number(qkv__json_get(qkv__json_at(top, (size_t)k), "logprob")) == g->top[20 * i + k].log_p);
        assert_true(qkv__json_size(qkv__json_get(token, "bytes")) > 0);
    }
    json_free(x);
    qkv_free(g);
}

/* The contents of all events, one after the other; the finish reason of the last. */
static void join_events(const char *body, char *text, size_t room, char *finish)
{
    text[0] = finish[0] = '\0';
    for (const char *at = body; (at = strstr(at, "data: {")); at++) {
        const char *end = strstr(at, "\n\n");
        const qkv__json_value *x = json_parse(at + 6, (size_t)(end - at - 6));
        assert_non_null(x);
        assert_string_equal(string(x, "object"), "chat.completion.chunk");
        const qkv__json_value *delta = qkv__json_get(choice(x), "delta");
        const char *piece = string(delta, "content"), *reason = string(choice(x), "finish_reason");
        if (choice(x) && !*text) assert_string_equal(string(delta, "role"), "assistant");
        if (piece && strlen(text) + strlen(piece) < room) strcat(text, piece);
        if (reason) strcpy(finish, reason);
        if (!choice(x)) assert_true(whole(qkv__json_get(x, "usage"), "completion_tokens") > 0);
        json_free(x);
    }
}

static void a_stream_says_the_same(void **state)
{
    (void)state;
    char text[4096], finish[32];
    const qkv__json_value *x = answered(
        "{\"messages\":[{\"role\":\"user\",\"content\":\"the cat\"}],\"max_tokens\":12,\"seed\":3}");
    reply r = post(port, "/v1/chat/completions",
                   "{\"messages\":[{\"role\":\"user\",\"content\":\"the cat\"}],\"max_tokens\":12,\"seed\":3,\"stream\":true,"
                   "\"stream_options\":{\"include_usage\":true}}");
    assert_int_equal(r.status, 200);
    join_events(r.body, text, sizeof text, finish);
    assert_string_equal(text, string(qkv__json_get(choice(x), "message"), "content"));
    assert_string_equal(finish, string(choice(x), "finish_reason"));
    assert_non_null(strstr(r.body, "data: [DONE]"));
    free_reply(&r);
    json_free(x);
}

/* Each with its number: sample i is the library's. */
static void several_answers(void **state)
{
    (void)state;
    enum { ANSWERS = 3 };
    static const char prompt[] =
        "\"messages\":[{\"role\":\"user\",\"content\":\"the cat\"}],\"max_tokens\":9,\"seed\":7,\"n\":3";
    char body[256], streamed[ANSWERS][512] = { "" };
    int roles[ANSWERS] = { 0 }, ends[ANSWERS] = { 0 };
    snprintf(body, sizeof body, "{%s}", prompt);
    const qkv__json_value *x = answered(body);
    snprintf(body, sizeof body, "{%s,\"stream\":true}", prompt);
    reply r = post(port, "/v1/chat/completions", body);
    for (const char *at = r.body; (at = strstr(at, "data: {")); at++) {
        const qkv__json_value *event = json_parse(at + 6, (size_t)(strstr(at, "\n\n") - at - 6));
        int64_t i = whole(choice(event), "index");
        const qkv__json_value *delta = qkv__json_get(choice(event), "delta");
        assert_in_range(i, 0, ANSWERS - 1);
        if (string(delta, "content")) strcat(streamed[i], string(delta, "content"));
        roles[i] += string(delta, "role") != NULL;
        ends[i] += string(choice(event), "finish_reason") != NULL;
        json_free(event);
    }
    assert_int_equal(qkv__json_size(qkv__json_get(x, "choices")), ANSWERS);
    int64_t tokens = 0;
    for (int i = 0; i < ANSWERS; i++) {
        qkv_generated *g = NULL;
        const qkv_generate_opts o = { .max_tokens = 9, .temperature = 1, .seed = 7, .sample = i };
        generate_text("<s>user: the cat</s><s>", o, &g);
        assert_int_equal(whole(choice_at(x, (size_t)i), "index"), i);
        assert_string_equal(string(qkv__json_get(choice_at(x, (size_t)i), "message"), "content"), g->text.data);
        assert_string_equal(streamed[i], g->text.data);
        assert_true(roles[i] == 1 && ends[i] == 1);
        tokens += g->n;
        if (!i) assert_int_equal(whole(qkv__json_get(x, "usage"), "prompt_tokens"), g->n_prompt);
        qkv_free(g);
    }
    assert_int_equal(whole(qkv__json_get(x, "usage"), "completion_tokens"), tokens);
    free_reply(&r);
    json_free(x);
}

/* Larger values are capped. */
static void max_tokens_is_capped(void **state)
{
    (void)state;
    static const char *const names[] = { "max_tokens", "max_completion_tokens" };
    for (int i = 0; i < 2; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"%s\":9223372036854775807,\"seed\":1,\"n\":2,"
                 "\"stop\":[\"a\",\"e\",\"i\",\"o\",\"t\",\" \"]}",
                 names[i]);
        const qkv__json_value *x = answered(body);
        assert_in_range(whole(qkv__json_get(x, "usage"), "completion_tokens"), 0, 2 * 4096);
        json_free(x);
    }
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "{}", "array of messages" },
        { "{\"messages\":[]}", "not empty" },
        { "{\"messages\":[{\"content\":\"x\"}]}", "no \\\"role\\\"" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"n\":17}", "\\\"n\\\" is 17: it must be from 1 to 16" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"n\":2,\"best_of\":3}", "does not choose among samples" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"logprobs\":true,\"top_logprobs\":21}", "from 0 to 20" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":-1}", "must be at least 0" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":{}}", "\\\"tools\\\" must be an array" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tool_choice\":\"required\"}", "tool_choice" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_object\"}}",
          "other formats are not supported" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_logprobs\":2}", "needs \\\"logprobs\\\"" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}", "is no text" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reply r = post(port, "/v1/chat/completions", rows[i][0]);
        assert_int_equal(r.status, 400);
        if (!strstr(r.body, rows[i][1]) || !strstr(r.body, "invalid_request_error")) fail_msg("%s: %s", rows[i][0], r.body);
        free_reply(&r);
    }
}

static void without_a_template(void **state)
{
    (void)state;
    qkv_model *m = make_served(MODEL_LANGUAGE);
    qkv_server *s = qkv_server_new(m, NULL);
    assert_non_null(s);
    reply r = post(qkv_server_port(s), "/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "has no chat template"));
    free_reply(&r);
    qkv_server_free(s);
    qkv_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_the_librarys),
        cmocka_unit_test(tools_and_their_calls_reach_the_template),
        cmocka_unit_test(log_probabilities_come_with_tokens),
        cmocka_unit_test(a_stream_says_the_same),
        cmocka_unit_test(several_answers),
        cmocka_unit_test(max_tokens_is_capped),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(without_a_template),
    };
    return cmocka_run_group_tests_name("serve_chat", tests, start, stop);
}
