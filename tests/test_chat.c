/* test_chat.c: talks: what a turn reads, what is dropped, stopping, conversations as JSON, templates of folders. */
#include "serve_models.h"

#include <qkv/unstable/util.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "folder.h"

static const char simple[] = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"
                             "{% if add_generation_prompt %}<s>assistant: {% endif %}";

static qkv_model *model;

static int begin(void **state)
{
    model = make_served(MODEL_LANGUAGE);
    return !model || make_folder(state);
}

static int end(void **state)
{
    qkv_model_free(model);
    qkv_shutdown();
    return remove_folder(state);
}

static qkv_chat *open_talk(int64_t context)
{
    qkv_chat *c = qkv_chat_new(model, &(qkv_chat_opts){ .chat_template = simple, .max_context = context });
    if (!c) fail_msg("%s", qkv_error());
    return c;
}

/* A message of the user, and the answer to it. On an error the message is not part of the conversation. */
static qkv_status say(qkv_chat *c, const char *text, const qkv_generate_opts *o, qkv_generated **g, qkv_chat_usage *usage)
{
    qkv_status status = qkv_chat_add(c, "user", qkv_cstr(text));
    if (!status && (status = qkv_chat_reply(c, o, g, usage))) qkv_chat_remove_last(c);
    return status;
}

static qkv_chat_usage said(qkv_chat *c, const char *text, int64_t most, qkv_generated **g)
{
    qkv_chat_usage usage = QKV_OPTS(qkv_chat_usage);
    if (say(c, text, &(qkv_generate_opts){ .max_tokens = most }, g, &usage)) fail_msg("%s", qkv_error());
    return usage;
}

/* One on each line. */
static int64_t messages_of(const qkv_chat *c)
{
    qkv_text *all = NULL;
    int64_t n = 0;
    assert_int_equal(qkv_chat_to_json(c, &all), QKV_OK);
    for (size_t i = 0; i < all->length; i++) n += all->data[i] == '\n';
    if (!strcmp(all->data, "[]\n")) n = 0;
    qkv_free(all);
    return n;
}

/* ---- turns ---- */

static void a_turn_reads_what_is_new(void **state)
{
    (void)state;
    qkv_generated *g = NULL, *alone = NULL;
    qkv_text *prompt = NULL;
    qkv_chat *c = open_talk(0);
    qkv_chat_usage first = said(c, "the cat", 9, &g);
    assert_int_equal(first.evaluated_tokens, first.prompt_tokens);
    assert_int_equal(first.dropped_messages, 0);
    int64_t known = first.prompt_tokens + g->n;
    assert_int_equal(qkv_chat_add(c, "user", qkv_cstr("I love you")), QKV_OK);
    assert_int_equal(qkv_chat_prompt(c, &prompt), QKV_OK);
    qkv_chat_usage second = QKV_OPTS(qkv_chat_usage);
    assert_int_equal(qkv_chat_reply(c, &(qkv_generate_opts){ .max_tokens = 9 }, &g, &second), QKV_OK);
    /* the last token of an answer was not read when it was said */
    assert_int_equal(second.evaluated_tokens, second.prompt_tokens - known + 1);
    assert_true(second.evaluated_tokens < first.prompt_tokens + 9 && second.prompt_tokens > known + 5);
    assert_int_equal(messages_of(c), 4);
    /* and it is what a text that begins so goes on with */
    const qkv_generate_opts o = {
        .size = sizeof o, .max_tokens = 9, .prompt_ids = g->prompt_ids, .n_prompt_ids = g->n_prompt, .no_special = 1
    };
    assert_int_equal(qkv_generate(model, qkv_cstr(""), &o, &alone), QKV_OK);
    assert_int_equal(alone->n_prompt, second.prompt_tokens);
    assert_string_equal(alone->text.data, g->text.data);
    qkv_free(prompt);
    qkv_free(g);
    qkv_free(alone);
    qkv_chat_free(c);
}

/* A model with changes answers in a talk, whose caches are kept, as it goes on with the whole text. */
static void changes_stay_from_turn_to_turn(void **state)
{
    (void)state;
    static const qkv_edit list[] = { { .what = QKV_EDIT_ABLATE_HEAD, .kind = QKV_ATTENTION_DECODER, .layer = 1, .head = 1 },
                                     { .what = QKV_EDIT_HIDE_KEY, .kind = QKV_ATTENTION_DECODER, .place = 3 } };
    qkv_model *touched = qkv_model_edit(model, list, 2);
    qkv_generated *g = NULL, *alone = NULL, *plain = NULL;
    qkv_chat *c = qkv_chat_new(touched, &(qkv_chat_opts){ .chat_template = simple });
    assert_non_null(c);
    said(c, "the cat", 9, &g);
    qkv_chat_usage second = said(c, "I love you", 9, &g);
    assert_true(second.evaluated_tokens < second.prompt_tokens);
    const qkv_generate_opts o = {
        .size = sizeof o, .max_tokens = 9, .prompt_ids = g->prompt_ids, .n_prompt_ids = g->n_prompt, .no_special = 1
    };
    assert_int_equal(qkv_generate(touched, qkv_cstr(""), &o, &alone), QKV_OK);
    assert_int_equal(qkv_generate(model, qkv_cstr(""), &o, &plain), QKV_OK);
    assert_int_equal(alone->n, g->n);
    for (int64_t i = 0; i < g->n; i++) assert_true(fabs(alone->log_p[i] - g->log_p[i]) < 1e-5);
    assert_string_equal(alone->text.data, g->text.data);
    assert_true(fabs(plain->log_p[0] - g->log_p[0]) > 1e-4);
    qkv_free(g);
    qkv_free(alone);
    qkv_free(plain);
    qkv_chat_free(c);
    qkv_model_free(touched);
}

static void what_does_not_fit_is_dropped(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    qkv_text *all = NULL;
    qkv_chat *c = open_talk(120);
    int64_t dropped = 0;
    assert_int_equal(qkv_chat_set_system(c, qkv_cstr("be a cat")), QKV_OK);
    for (int i = 0; i < 12; i++) {
        qkv_chat_usage turn = said(c, "you love the cat", 8, &g);
        assert_true(turn.prompt_tokens + g->n <= turn.max_context);
        assert_int_equal(turn.max_context, 120);
        dropped += turn.dropped_messages;
    }
    assert_true(dropped > 6);
    assert_int_equal(messages_of(c), 1 + 24 - dropped);
    assert_int_equal(qkv_chat_to_json(c, &all), QKV_OK);
    assert_memory_equal(all->data, "[{\"role\": \"system\", \"content\": \"be a cat\"},\n {\"role\": \"user\"", 60);
    char longer[400] = "";
    for (int i = 0; i < 40; i++) strcat(longer, "zq xj ");
    int64_t n = messages_of(c);
    assert_int_equal(say(c, longer, NULL, &g, NULL), QKV_LIMIT);
    assert_true(messages_of(c) < n); /* the message is no part of it, and what made room for it is gone */
    assert_int_equal(qkv_chat_to_json(c, &all), QKV_OK);
    assert_null(strstr(all->data, "zq"));
    qkv_free(all);
    qkv_free(g);
    qkv_chat_free(c);
}

static int stops_at(void *left) { return --*(int *)left < 0; }

static void a_stopped_answer_stays(void **state)
{
    (void)state;
    int left = 6;
    qkv_chat_usage turn = QKV_OPTS(qkv_chat_usage);
    qkv_generated *g = NULL;
    qkv_chat *c = open_talk(0);
    const qkv_generate_opts o = { .max_tokens = 50, .hooks = &(qkv_hooks){ .data = &left, .cancel = stops_at } };
    assert_int_equal(say(c, "the cat", &o, &g, &turn), QKV_OK);
    assert_int_equal(g->finish, QKV_FINISH_CANCELLED);
    assert_true(g->text.length > 0);
    assert_int_equal(messages_of(c), 2);
    const int64_t before = turn.prompt_tokens;
    turn = said(c, "I love you", 5, &g);
    assert_true(g->finish != QKV_FINISH_CANCELLED);
    assert_true(turn.prompt_tokens - turn.evaluated_tokens >= before); /* the first prompt at least was kept */
    qkv_free(g);
    qkv_chat_free(c);
}

/* ---- conversations ---- */

static void conversations_are_json(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        qkv_status status;
        const char *sentence;
    } bad[] = { { "[", QKV_FORMAT, "not JSON" },
                { "[]", QKV_USAGE, "not empty" },
                { "{\"messages\": 3}", QKV_USAGE, "array of messages" },
                { "[{\"content\": \"x\"}]", QKV_USAGE, "message 1 has no \"role\"" },
                { "[{\"role\": \"user\", \"content\": 3}]", QKV_USAGE, "\"content\" must be a string" },
                { "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]", QKV_USAGE, "part 1 of its content" },
                { "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"tools\": 3}", QKV_USAGE, "must be an array" } };
    qkv_text *out = NULL;
    qkv_chat *c = open_talk(0);
    const char *given =
        "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}]";
    assert_int_equal(qkv_chat_from_json(c, qkv_cstr(given)), QKV_OK);
    assert_int_equal(qkv_chat_prompt(c, &out), QKV_OK);
    assert_string_equal(out->data, "<s>user: ab</s><s>assistant: ");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(qkv_chat_from_json(c, qkv_cstr(bad[i].text)), bad[i].status);
        if (!strstr(qkv_error(), bad[i].sentence)) fail_msg("%s: %s", bad[i].text, qkv_error());
    }
    assert_int_equal(messages_of(c), 1);
    assert_int_equal(qkv_chat_from_json(c, qkv_cstr("just text")), QKV_OK);
    assert_int_equal(qkv_chat_set_system(c, qkv_cstr("s")), QKV_OK);
    assert_int_equal(qkv_chat_set_system(c, qkv_cstr("t")), QKV_OK);
    assert_int_equal(qkv_chat_prompt(c, &out), QKV_OK);
    assert_string_equal(out->data, "<s>system: t</s><s>user: just text</s><s>assistant: ");
    assert_int_equal(qkv_chat_add(c, "user", (qkv_str){ "\xff", 1 }), QKV_FORMAT);
    qkv_chat_clear(c);
    assert_int_equal(messages_of(c), 1);
    assert_int_equal(qkv_chat_set_system(c, qkv_cstr("")), QKV_OK);
    assert_int_equal(messages_of(c), 0);
    qkv_free(out);
    qkv_chat_free(c);
}

/* One chat renders the conversations of others as if they were its own, and stays as it is. */
static void others_are_rendered(void **state)
{
    (void)state;
    static const char given[] = "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\\u0000b\"}]}]";
    static const char simple_with_tools[] = "{{ tools[0] }}{{ messages | length }}";
    static const struct {
        const char *messages, *tools;
        qkv_status status;
    } bad[] = { { "[", "", QKV_FORMAT }, { "[]", "", QKV_USAGE }, { "{}", "", QKV_USAGE }, { given, "3", QKV_USAGE } };
    qkv_text *own = NULL, *other = NULL;
    qkv_chat *c = open_talk(0);
    assert_int_equal(qkv_chat_add(c, "user", (qkv_str){ "a\0b", 3 }), QKV_OK);
    assert_int_equal(qkv_chat_prompt(c, &own), QKV_OK);
    qkv_chat_remove_last(c);
    qkv_chat_remove_last(c);
    assert_int_equal(messages_of(c), 0);
    assert_int_equal(qkv_chat_render(c, qkv_cstr(given), qkv_cstr(""), &other), QKV_OK);
    assert_int_equal(own->length, other->length);
    assert_memory_equal(own->data, other->data, own->length);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(qkv_chat_render(c, qkv_cstr(bad[i].messages), qkv_cstr(bad[i].tools), &other), bad[i].status);
        assert_int_equal(other->length, 0);
    }
    assert_int_equal(messages_of(c), 0);
    assert_int_equal(qkv_chat_end(NULL), -1);
    qkv_chat_free(c);
    c = qkv_chat_new(model, &(qkv_chat_opts){ .chat_template = simple_with_tools, .tools = "[7]" });
    assert_int_equal(qkv_chat_render(c, qkv_cstr(given), qkv_cstr(""), &other), QKV_OK);
    assert_string_equal(other->data, "71");
    assert_int_equal(qkv_chat_render(c, qkv_cstr(given), qkv_cstr("[8]"), &other), QKV_OK);
    assert_string_equal(other->data, "81");
    qkv_free(own);
    qkv_free(other);
    qkv_chat_free(c);
}

static void a_template_may_refuse(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    qkv_chat *c = qkv_chat_new(model, &(qkv_chat_opts){ .chat_template = "{{ raise_exception('never') }}" });
    assert_int_equal(say(c, "a", NULL, &g, NULL), QKV_USAGE);
    assert_non_null(strstr(qkv_error(), "refuses the conversation: never"));
    assert_int_equal(messages_of(c), 0);
    qkv_free(g);
    qkv_chat_free(c);
    assert_null(qkv_chat_new(model, &(qkv_chat_opts){ .chat_template = "{% if %}" }));
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    assert_null(qkv_chat_new(model, &(qkv_chat_opts){ .chat_template = simple, .tools = "{}" }));
    assert_int_equal(qkv_error_status(), QKV_USAGE);
    assert_null(qkv_chat_new(model, NULL));
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
}

/* ---- folders ---- */

static void write_file(const char *name, const char *text)
{
    assert_int_equal(qkv_file_write(in_folder(name), text, strlen(text)), QKV_OK);
}

/* The prompt of one message by the folder's template is this one; NULL: there is none. */
static void check_prompt(const char *tools, const char *wanted)
{
    qkv_text *out = NULL;
    qkv_model *m = qkv_model_load(in_folder("model"), NULL);
    qkv_chat *c = m ? qkv_chat_new(m, &(qkv_chat_opts){ .tools = tools }) : NULL;
    assert_true(m && !c == !wanted);
    if (c) assert_int_equal(qkv_chat_add(c, "user", qkv_cstr("x")), QKV_OK);
    if (c) assert_int_equal(qkv_chat_prompt(c, &out), QKV_OK);
    if (c) assert_string_equal(out->data, wanted);
    qkv_free(out);
    qkv_chat_free(c);
    qkv_model_free(m);
}

static void folders_have_templates(void **state)
{
    (void)state;
    assert_int_equal(qkv_model_save(model, in_folder("model"), NULL), QKV_OK);
    check_prompt(NULL, NULL);
    assert_int_equal(qkv_error_status(), QKV_UNSUPPORTED);
    assert_non_null(strstr(qkv_error(), "has no chat template"));
    write_file("model/tokenizer_config.json",
               "{\"chat_template\": [{\"name\": \"default\", \"template\": \"{{ bos_token }}one{{ eos_token }}\"},"
               " {\"name\": \"tool_use\", \"template\": \"{{ tools[0] }}\"}, {\"name\": \"rag\", \"template\": \"{%\"}],"
               " \"eos_token\": {\"content\": \"<unk>\"}}");
    check_prompt(NULL, "<s>one<unk>");
    check_prompt("[7]", "7");
    write_file("model/chat_template.jinja", "{{ messages[0].content }}!\n");
    check_prompt(NULL, "x!");
    write_file("model/chat_template.jinja", "{{ messages");
    check_prompt(NULL, NULL);
    assert_int_equal(qkv_error_status(), QKV_FORMAT);
    assert_non_null(strstr(qkv_error(), "chat_template.jinja: chat template: line 1"));
}

/* ---- special tokens ---- */

static void special_tokens_are_tokens_if_asked(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    qkv_generate_opts o = { .size = sizeof o, .max_tokens = 1, .parse_special = 1 };
    assert_int_equal(qkv_generate(model, qkv_cstr("<s>the</s>"), &o, &g), QKV_OK);
    assert_int_equal(g->n_prompt, 3);
    assert_int_equal(g->prompt_ids[0], 1);
    assert_int_equal(g->prompt_ids[2], 2);
    o.parse_special = 0;
    assert_int_equal(qkv_generate(model, qkv_cstr("<s>the</s>"), &o, &g), QKV_OK);
    assert_true(g->n_prompt > 5);
    const int32_t wrong = 99999;
    o.ends = &wrong;
    o.n_ends = 1;
    assert_int_equal(qkv_generate(model, qkv_cstr("a"), &o, &g), QKV_USAGE);
    qkv_free(g);
}

/* Any token may end a text: the one that came is the one that ends the next. */
static void more_tokens_end_a_text(void **state)
{
    (void)state;
    qkv_generated *g = NULL;
    qkv_generate_opts o = { .size = sizeof o, .max_tokens = 6 };
    assert_int_equal(qkv_generate(model, qkv_cstr("the"), &o, &g), QKV_OK);
    const int32_t third = g->ids[2];
    o.ends = &third;
    o.n_ends = 1;
    assert_int_equal(qkv_generate(model, qkv_cstr("the"), &o, &g), QKV_OK);
    assert_true(g->n <= 2 && g->finish == QKV_FINISH_END);
    qkv_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_reads_what_is_new),
        cmocka_unit_test(changes_stay_from_turn_to_turn),
        cmocka_unit_test(what_does_not_fit_is_dropped),
        cmocka_unit_test(a_stopped_answer_stays),
        cmocka_unit_test(conversations_are_json),
        cmocka_unit_test(others_are_rendered),
        cmocka_unit_test(a_template_may_refuse),
        cmocka_unit_test(folders_have_templates),
        cmocka_unit_test(special_tokens_are_tokens_if_asked),
        cmocka_unit_test(more_tokens_end_a_text),
    };
    return cmocka_run_group_tests_name("chat", tests, begin, end);
}
