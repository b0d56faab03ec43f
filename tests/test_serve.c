/* test_serve.c: every path of the server gives what the library gives; tokens, hosts, time limits, streams; how it ends. The
 * page as a file. */
#include "serve/serve.h"
#include "json_values.h"
#include "http_client.h"
#include "serve_models.h"
#include "task/passages.h"

#include "model/model_info.h"
#include "serve/html.h"
#include "serve/server.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "failing.h"
#include "model/model.h"
#include "as_strings.h"

/* ---- JSON ---- */

static const qkv__json_value *answer_of(reply r, int status)
{
    if (r.status != status) print_error("%s\n", r.text ? r.text : "no answer");
    assert_int_equal(r.status, status);
    const char *type = reply_header(&r, "Content-Type");
    assert_true(type && !strncmp(type, "application/json\r\n", 18));
    assert_true(strstr(r.text, "X-Content-Type-Options: nosniff\r\n") != NULL);
    assert_null(reply_header(&r, "Access-Control-Allow-Origin"));
    const qkv__json_value *x = json_parse(r.body, r.body_length);
    assert_non_null(x);
    free_reply(&r);
    return x;
}

static const qkv__json_value *posted(int kind, const char *path, const char *body)
{
    return answer_of(post(ports[kind], path, body), 200);
}

/* What lies at a path such as "choices/0/text". */
static const qkv__json_value *at(const qkv__json_value *x, const char *path)
{
    char step[64];
    for (int n; *path && sscanf(path, "%63[^/]%n", step, &n) == 1; path += n + (path[n] == '/'))
        x = qkv__json_is_array(x) ? qkv__json_at(x, (size_t)atoi(step)) : qkv__json_get(x, step);
    return x;
}

static const char *text_at(const qkv__json_value *x, const char *path)
{
    const char *text = qkv__json_text(at(x, path));
    assert_non_null(text);
    return text;
}

static size_t decode_base64(const char *text, unsigned char *out, size_t room)
{
    size_t n = 0, bits = 0;
    unsigned long word = 0;
    for (; *text && *text != '='; text++) {
        static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *sign = strchr(signs, *text);
        assert_non_null(sign);
        word = word << 6 | (unsigned long)(sign - signs);
        if ((bits += 6) < 8) continue;
        assert_true(n < room);
        out[n++] = (unsigned char)(word >> (bits -= 8));
    }
    return n;
}

/* ---- what the server is ---- */

static void it_says_what_it_is(void **state)
{
    static const char *const tasks[MODEL_KINDS] = { "translate", "classify", "generate", "encode" };
    (void)state;
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        const qkv_config *o = qkv__model_config(models[kind]);
        const qkv__json_value *x = answer_of(get(ports[kind], "/info"), 200);
        assert_string_equal(text_at(x, "task"), tasks[kind]);
        assert_string_equal(text_at(x, "name"), "tiny");
        assert_string_equal(text_at(x, "version"), qkv_version());
        assert_int_equal(qkv__json_int(at(x, "parameters")), qkv_params_count(qkv_model_params(models[kind])));
        assert_int_equal(qkv__json_int(at(x, "encoder_layers")), o->encoder_layers);
        assert_int_equal(qkv__json_int(at(x, "decoder_layers")), o->decoder_layers);
        assert_int_equal(qkv__json_int(at(x, "heads")), o->heads);
        assert_int_equal(qkv__json_int(at(x, "vocabulary")), o->vocab_size);
        assert_int_equal(qkv__json_size(at(x, "labels")), kind == MODEL_CLASSES ? 3 : 0);
        json_free(x);
        x = answer_of(get(ports[kind], "/v1/models?x=y"), 200);
        assert_string_equal(text_at(x, "data/0/id"), "tiny");
        json_free(x);
        x = answer_of(get(ports[kind], "/health"), 200);
        assert_string_equal(text_at(x, "status"), "ok");
        json_free(x);
    }
    const qkv__json_value *x = answer_of(get(ports[MODEL_PAIR], "/languages"), 200);
    assert_string_equal(text_at(x, "0/code"), "en");
    assert_string_equal(text_at(x, "0/name"), "English");
    assert_string_equal(text_at(x, "0/targets/0"), "zh");
    assert_string_equal(text_at(x, "1/code"), "zh");
    json_free(x);
}

/* What a server says whose model has a tokenizer made of one line, and writes texts or reads them. */
static const qkv__json_value *info_after(qkv_token_kind kind, const char *line, const char *language, bool writes)
{
    qkv_word_counts *w = qkv_word_counts_new(kind);
    assert_int_equal(qkv_word_counts_add(w, qkv_cstr(line)), QKV_OK);
    qkv_tokenizer *t = qkv_tokenizer_train(w, &(qkv_tokenizer_opts){ .vocab_size = 400, .min_count = 1 });
    qkv_config o = { .vocab_size = qkv_tokenizer_vocab_size(t), .dim = 8, .heads = 1, .d_ff = 8 };
    *(writes ? &o.decoder_layers : &o.encoder_layers) = 1;
    qkv_model *m = qkv_model_new(&o, 1);
    assert_int_equal(qkv_model_set_tokenizers(m, t, NULL), QKV_OK);
    qkv_server *s = qkv_server_new(m, &(qkv_server_opts){ .source_language = language });
    assert_non_null(s);
    const qkv__json_value *x = answer_of(get(qkv_server_port(s), "/info"), 200);
    qkv_server_free(s);
    qkv_model_free(m);
    qkv_word_counts_free(w);
    return x;
}

static void its_example_suits_the_tokenizer(void **state)
{
    static const struct {
        qkv_token_kind kind;
        const char *line, *language;
        bool writes;
        const char *wanted;
    } rows[] = { { QKV_TOKEN_BPE, "I love you, the cat sat on the mat", NULL, false, "The cat sat on the mat" },
                 { QKV_TOKEN_BPE, "I love you, the cat sat on the mat", NULL, true, "Once upon a time" },
                 { QKV_TOKEN_BPE, "I love you, the cat sat on the mat", "ru", false, "Я тебя люблю" },
                 { QKV_TOKEN_BPE, "Ich liebe dich, ich liebe dich", NULL, false, "Ich liebe dich" },
                 { QKV_TOKEN_BPE, "我爱你, 你爱我, 我爱猫", NULL, true, "我爱你" },
                 { QKV_TOKEN_WORDS, "so i love you", NULL, true, "I love you" },
                 { QKV_TOKEN_WORDS, "so i love you", "de", true, "I love you" },
                 { QKV_TOKEN_WORDS, "the cat sat on the mat", NULL, false, "The cat sat on the mat" },
                 { QKV_TOKEN_WORDS, "7 3 3 3 9 7 9 9 9 1 2", NULL, false, "9 3 7 1" },
                 { QKV_TOKEN_CHARACTERS, "i am but a cat on a mat, Ordering yellow vases from Italy", NULL, true,
                   "I love you" } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const qkv__json_value *x = info_after(rows[i].kind, rows[i].line, rows[i].language, rows[i].writes);
        assert_string_equal(text_at(x, "example"), rows[i].wanted);
        json_free(x);
    }
}

static void it_gives_the_page(void **state)
{
    (void)state;
    reply r = get(ports[MODEL_PAIR], "/");
    assert_int_equal(r.status, 200);
    assert_true(!strncmp(reply_header(&r, "Content-Type"), "text/html; charset=utf-8\r\n", 26));
    const char *policy = reply_header(&r, "Content-Security-Policy");
    assert_true(policy && !strncmp(policy, "default-src 'none'; script-src 'sha256-", 39));
    assert_non_null(strstr(policy, "connect-src 'self'"));
    assert_non_null(strstr(r.body, "<script type=\"application/json\" id=\"qkv-data\">null</script>"));
    assert_null(strstr(r.body, "<!-- explorer.js -->"));
    assert_null(strstr(r.body, "<!-- explorer.css -->"));
    assert_non_null(strstr(r.body, "</html>"));
    reply head = ask(ports[MODEL_PAIR], &(request){ .method = "HEAD" });
    assert_int_equal(head.status, 200);
    assert_int_equal(head.body_length, 0);
    assert_int_equal(strtoul(reply_header(&head, "Content-Length"), NULL, 10), r.body_length);
    free_reply(&r);
    free_reply(&head);
}

/* ---- each job against the library ---- */

static void translations_are_the_librarys(void **state)
{
    static const char *const texts[] = { "I love you", "the cat \"sat\" <on> the mat", "", "我爱你" };
    qkv_translations *t = NULL;
    (void)state;
    assert_int_equal(qkv_translate(models[MODEL_PAIR], as_strings(texts, NULL, 4), 4, &(qkv_translate_opts){ .n_best = 3 }, &t),
                     QKV_OK);
    const qkv__json_value *x = posted(
        MODEL_PAIR, "/translate",
        "{\"q\":[\"I love you\",\"the cat \\\"sat\\\" \\u003con> the mat\",\"\",\"我爱你\"],"
        "\"source\":\"en\",\"target\":\"zh\",\"format\":\"text\",\"alternatives\":2,\"api_key\":null}");
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "translatedText/%d", i);
        assert_string_equal(text_at(x, path), t->best[i * 3].text.data);
        snprintf(path, sizeof path, "alternatives/%d", i);
        assert_int_equal(qkv__json_size(at(x, path)), i == 2 ? 0 : 2);
        snprintf(path, sizeof path, "alternatives/%d/1", i);
        if (i != 2) assert_string_equal(text_at(x, path), t->best[i * 3 + 2].text.data);
    }
    json_free(x);
    x = posted(MODEL_PAIR, "/translate", "{\"q\":\"I love you\",\"source\":\"auto\",\"target\":\"zh\"}");
    assert_string_equal(text_at(x, "translatedText"), t->best[0].text.data);
    assert_string_equal(text_at(x, "detectedLanguage/language"), "en");
    assert_null(at(x, "alternatives"));
    json_free(x);
    x = answer_of(
        ask(ports[MODEL_PAIR], &(request){ .path = "/translate",
                                           .type = "application/x-www-form-urlencoded; charset=UTF-8",
                                           .body = "q=%E6%88%91%E7%88%b1%E4%BD%A0&&source=en&target=z%68&alternatives=2" }),
        200);
    assert_string_equal(text_at(x, "translatedText"), t->best[9].text.data);
    assert_string_equal(text_at(x, "alternatives/0"), t->best[10].text.data);
    json_free(x);
    qkv_free(t);
}

/* The fields of the query, of both kinds of forms and of JSON are the same; the error of a wrong one is a string. */
static void fields_come_in_many_ways(void **state)
{
    static const char multipart[] =
        "ignored\r\n--bound\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nthe cat\r\nsat\r\n"
        "--bound\r\nX: y\r\ncontent-disposition: form-data; name=\"alternatives\"\r\n\r\n1\r\n--bound--";
    static const struct {
        const char *path, *type, *body;
    } ways[] = {
        { "/translate", NULL, "{\"q\":\"the cat\\r\\nsat\",\"source\":\"en\",\"target\":\"zh\",\"alternatives\":1}" },
        { "/translate?q=the+cat%0d%0Asat&source=en&target=z%68&alternatives=1", NULL, "" },
        { "/translate?source=en&target=zh", NULL, "{\"q\":\"the cat\\r\\nsat\",\"alternatives\":1}" },
        { "/translate?source=en", "application/x-www-form-urlencoded", "q=the%20cat%0D%0Asat&target=zh&alternatives=1" },
        { "/translate?source=en&target=zh", "multipart/form-data; boundary=bound", multipart },
    };
    const qkv__json_value *first = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const request q = { .path = ways[i].path, .type = ways[i].type, .no_type = !ways[i].type, .body = ways[i].body };
        const qkv__json_value *x = answer_of(ask(ports[MODEL_PAIR], &q), 200);
        assert_int_equal(qkv__json_size(at(x, "alternatives")), 1);
        if (first) assert_true(qkv__json_equal(x, first));
        if (first) json_free(x);
        else first = x;
    }
    json_free(first);
    const qkv__json_value *x = answer_of(post(ports[MODEL_PAIR], "/translate", "{\"q\":\"x\",\"source\":\"en\"}"), 400);
    assert_string_equal(text_at(x, "error"), "\"target\" is missing");
    json_free(x);
    x = answer_of(post(ports[MODEL_ENCODER], "/translate", "{}"), 404);
    assert_true(qkv__json_is_string(at(x, "error")));
    json_free(x);
}

/* ---- HTML ---- */

/* The pieces of a document as "markup{text}markup{text}markup". */
static void show_pieces(const char *document, char *to, size_t room)
{
    qkv__html h = { 0 };
    int n = 0;
    assert_int_equal(qkv__html_add(&h, document, strlen(document), 100), QKV_OK);
    for (int64_t i = 0; i < h.n; i++) {
        const qkv__html_piece *p = &h.pieces[i];
        n += snprintf(to + n, room - (size_t)n, "%.*s", (int)p->markup_length, p->markup);
        if (i < h.n - 1) n += snprintf(to + n, room - (size_t)n, "{%.*s}", (int)p->text_length, h.texts.data + p->text);
        else assert_int_equal(p->text_length, 0);
    }
    qkv__html_free(&h);
}

static void html_is_markup_and_texts(void **state)
{
    static const char *const rows[][2] = {
        { "", "" },
        { " \n ", " \n " },
        { "a", "{a}" },
        { " a b ", " {a b} " },
        { "<p>a</p>", "<p>{a}</p>" },
        { "<p>a <b>b</b>\n c</p>", "<p>{a} <b>{b}</b>\n {c}</p>" },
        { "<p>a\n  b\tc\r\nd</p>", "<p>{a b\tc d}</p>" },
        { "<pre>a\n  b</pre>a\nb", "<pre>{a\n  b}</pre>{a b}" },
        { "<a title='x > y' href=\"<b>\">a</a>", "<a title='x > y' href=\"<b>\">{a}</a>" },
        { "<!-- a > b <p> -->c<!DOCTYPE html>d<?x y?>e", "<!-- a > b <p> -->{c}<!DOCTYPE html>{d}<?x y?>{e}" },
        { "<script>if (a<b && c>d) '</p>'</script>a", "<script>if (a<b && c>d) '</p>'</script>{a}" },
        { "<STYLE>a</STYLE>b", "<STYLE>a</STYLE>{b}" },
        { "<code>a<b>c</b></code>d", "<code>a<b>c</b></code>{d}" },
        { "<code>a<code>b</code>c</code>d<time/>e", "<code>a<code>b</code>c</code>{d}<time/>{e}" },
        { "<div translate=no>a<div>b</div>c</div>d", "<div translate=no>a<div>b</div>c</div>{d}" },
        { "<i class=x TRANSLATE = 'no'>a</i>b<i translate=yes>c", "<i class=x TRANSLATE = 'no'>a</i>{b}<i translate=yes>{c}" },
        { "<i translate=none>a<img translate=no>b<br>c", "<i translate=none>{a}<img translate=no>{b}<br>{c}" },
        { "a < b <3 c<1", "{a < b <3 c<1}" },
        { "a &lt; b &amp;&#65;&#x4e00; &nbsp;&hellip;", "{a < b &A一 \xC2\xA0…}" },
        { "&eacute;&yuml;&nope; &; &#; &#x; &#55296;&#0; & &copy", "{éÿ&nope; &; &#; &#x; \xEF\xBF\xBD\xEF\xBF\xBD & &copy}" },
        { "a<b", "{a}<b" },
        { "a<!-- b", "{a}<!-- b" },
        { "a<script>b", "{a}<script>b" },
        { "a<b c=\"d>e", "{a}<b c=\"d>e" },
        { "我<br>爱", "{我}<br>{爱}" },
    };
    static const char *const texts[][2] = { { "a < b > c & d", "a &lt; b &gt; c &amp; d" },
                                            { "&lt; &nope; &1; &", "&amp;lt; &nope; &amp;1; &amp;" },
                                            { "", "" } };
    char shown[512];
    qkv__html h = { 0 };
    qkv_buffer out = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        show_pieces(rows[i][0], shown, sizeof shown);
        assert_string_equal(shown, rows[i][1]);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        qkv__buffer_clear(&out);
        assert_int_equal(qkv__html_put_text(&out, texts[i][0], strlen(texts[i][0])), QKV_OK);
        assert_string_equal(out.length ? out.data : "", texts[i][1]);
    }
    assert_int_equal(qkv__html_add(&h, "a<b>c<b>d", 9, 3), QKV_OK);
    qkv__html_free(&h);
    assert_int_equal(qkv__html_add(&h, "a<b>c<b>d", 9, 2), QKV_LIMIT);
    qkv__html_free(&h);
    qkv_buffer_free(&out);
}

/* Tags stay, the text between them is the library's translation. */
static void html_is_translated_between_its_tags(void **state)
{
    static const char *const texts[] = { "`= the", "the cat sat", "you <love>" }; /* the first one gets a "<" */
    static const char *const markup[] = { "<p>", "</p> <b>", "</b><code>the cat</code>", "" };
    qkv_translations *t = NULL;
    qkv_buffer wanted = { 0 };
    (void)state;
    const qkv_translate_opts o = { .size = sizeof o, .n_best = 2, .split = QKV_SPLIT_AUTO };
    assert_int_equal(qkv_translate(models[MODEL_PAIR], as_strings(texts, NULL, 3), 3, &o, &t), QKV_OK);
    const qkv__json_value *x = posted(
        MODEL_PAIR, "/translate",
        "{\"q\":[\"<p>`= the</p> <b>the cat\\n sat</b><code>the cat</code>you &lt;love&gt;\",\"\"],"
        "\"source\":\"en\",\"target\":\"zh\",\"format\":\"html\",\"alternatives\":1}");
    for (int k = 0; k < 2; k++) {
        qkv__buffer_clear(&wanted);
        for (int i = 0; i < 3; i++) {
            qkv__buffer_put(&wanted, markup[i], strlen(markup[i]));
            qkv__html_put_text(&wanted, t->best[2 * i + k].text.data, t->best[2 * i + k].text.length);
        }
        assert_string_equal(text_at(x, k ? "alternatives/0/0" : "translatedText/0"), wanted.data);
    }
    assert_string_equal(text_at(x, "translatedText/1"), "");
    json_free(x);
    qkv_buffer_free(&wanted);
    qkv_free(t);
}

/* ---- languages without a name ---- */

static const qkv__json_value *translated_by(qkv_server *s, const char *source, const char *target, int status)
{
    char body[128];
    snprintf(body, sizeof body, "{\"q\":\"I love you\",\"source\":\"%s\",\"target\":\"%s\"}", source, target);
    return answer_of(post(qkv_server_port(s), "/translate", body), status);
}

/* Any code will do, until the model or the server has a name for its languages. */
static void any_code_fits_a_language_without_a_name(void **state)
{
    (void)state;
    qkv_model *m = make_served(MODEL_PAIR);
    qkv_server *s = qkv_server_new(m, NULL);
    const qkv__json_value *first = translated_by(s, "en", "zh", 200), *x = translated_by(s, "de", "pt-BR", 200);
    assert_true(qkv__json_equal(first, x));
    json_free(x);
    x = translated_by(s, "auto", "zh", 200);
    assert_string_equal(text_at(x, "translatedText"), text_at(first, "translatedText"));
    assert_string_equal(text_at(x, "detectedLanguage/language"), "source");
    json_free(x), json_free(first);
    json_free(translated_by(s, "", "zh", 400));
    qkv__model_set_languages(m, "de", "en");
    x = answer_of(get(qkv_server_port(s), "/languages"), 200);
    assert_string_equal(text_at(x, "0/code"), "de");
    assert_string_equal(text_at(x, "0/targets/0"), "en");
    assert_string_equal(text_at(x, "1/name"), "English");
    json_free(x);
    json_free(translated_by(s, "de", "en", 200));
    x = translated_by(s, "auto", "en", 200);
    assert_string_equal(text_at(x, "detectedLanguage/language"), "de");
    json_free(x);
    x = translated_by(s, "de", "fr", 400);
    assert_string_equal(text_at(x, "error"), "\"target\" is \"fr\": this server knows \"en\"");
    json_free(x);
    qkv_server_free(s);
    s = qkv_server_new(m, &(qkv_server_opts){ .source_language = "fr", .target_language = "it" }); /* which says more */
    json_free(translated_by(s, "fr", "it", 200));
    json_free(translated_by(s, "de", "en", 400));
    qkv_server_free(s);
    qkv_model_free(m);
}

/* What the server must answer: {0} to {9} stand for the library's translations of these lines, by rank after a colon. */
static const char *const sentences[] = { "I love you.",
                                         "The cat sat.",
                                         "  the dog", /* byte pairs: the space is read too */
                                         "我爱你。",
                                         "猫坐在垫子上！",
                                         "you",
                                         "I love you. The cat sat.",
                                         "I love you.  The cat sat.",
                                         "我爱你。猫坐在垫子上！",
                                         "  the dog " };

static void fill_in(const char *pattern, const qkv_translations *t, char *to, size_t room)
{
    size_t n = 0;
    for (const char *c = pattern; *c && n + 1 < room; c++) {
        if (*c != '{') to[n++] = *c;
        else {
            int rank = c[2] == ':' ? c[3] - '0' : 0;
            n += (size_t)snprintf(to + n, room - n, "%s", t->best[(c[1] - '0') * t->n_best + rank].text.data);
            c = strchr(c, '}');
        }
    }
    to[n] = '\0';
}

static void lines_and_sentences_stay_apart(void **state)
{
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        { "I love you.\\nThe cat sat.", "{0}\n{1}" },
        { "I love you. The cat sat.", "{6}" },
        { "I love you.  The cat sat.\\r\\n\\r\\n  the dog\\n", "{7}\r\n\r\n  {2}\n" },
        { "  the dog ", "  {9} " },
        { "我爱你。猫坐在垫子上！", "{8}" },
        { "我爱你。\\n\\n猫坐在垫子上！\\nyou", "{3}\n\n{4}\n{5}" },
        { " \\n ", " \n " },
        { "", "" },
    };
    enum { CASES = sizeof cases / sizeof *cases };
    char body[1024] = "{\"source\":\"en\",\"target\":\"zh\",\"alternatives\":1,\"q\":[", wanted[2048], path[64];
    qkv_translations *t = NULL;
    (void)state;
    const qkv_translate_opts as_command = { .size = sizeof as_command, .n_best = 2, .split = QKV_SPLIT_AUTO };
    assert_int_equal(qkv_translate(models[MODEL_PAIR], as_strings(sentences, NULL, 10), 10, &as_command, &t), QKV_OK);
    for (int i = 0; i < CASES; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body), "%s\"%s\"", i ? "," : "", cases[i].text);
    strcat(body, "]}");
    const qkv__json_value *x = posted(MODEL_PAIR, "/translate", body);
    for (int i = 0; i < CASES; i++) {
        fill_in(cases[i].wanted, t, wanted, sizeof wanted);
        snprintf(path, sizeof path, "translatedText/%d", i);
        if (strcmp(text_at(x, path), wanted)) fail_msg("%s: [%s] is not [%s]", cases[i].text, text_at(x, path), wanted);
    }
    const char *const one_by_one[] = { "I love you.", "The cat sat." };
    qkv_translations *each = NULL;
    assert_int_equal(qkv_translate(models[MODEL_PAIR], as_strings(one_by_one, NULL, 2), 2, NULL, &each), QKV_OK);
    assert_memory_equal(t->best[12].text.data, each->best[0].text.data,
                        each->best[0].text.length); /* the model learned one sentence a line */
    assert_string_equal(t->best[12].text.data + t->best[12].text.length - each->best[1].text.length, each->best[1].text.data);
    qkv_free(each);
    fill_in("{0:1}\n{1:1}", t, wanted, sizeof wanted);
    assert_string_equal(text_at(x, "alternatives/0/0"), wanted);
    assert_int_equal(qkv__json_size(at(x, "alternatives/0")), 1);
    assert_int_equal(qkv__json_size(at(x, "alternatives/6")), 0);
    json_free(x);
    qkv_free(t);
}

static void a_text_may_stay_whole(void **state)
{
    static const char *const whole = "I love you. The cat sat.";
    qkv_translations *t = NULL;
    (void)state;
    assert_int_equal(qkv_translate(models[MODEL_PAIR], as_strings(&whole, NULL, 1), 1, NULL, &t), QKV_OK);
    const qkv__json_value *x = posted(
        MODEL_PAIR, "/translate", "{\"source\":\"en\",\"target\":\"zh\",\"split\":false,\"q\":\"I love you. The cat sat.\"}");
    assert_string_equal(text_at(x, "translatedText"), t->best[0].text.data);
    json_free(x);
    qkv_free(t);
}

/* Chinese, Japanese and Thai need no space; other text keeps the space it had, or gets one. */
static void sentences_are_joined_by_their_script(void **state)
{
    static const struct {
        const char *text, *a, *b, *c, *wanted;
    } cases[] = {
        { "One.  Two. Three.", "一。", "二", "3", "一。二3" },
        { "One. Two. Three.", "我爱你", "猫坐在垫子上!", "你呢?", "我爱你猫坐在垫子上!你呢?" },
        { "One. Two. Three.", "ฉันรักคุณ", "แมวนั่ง", "คุณ?", "ฉันรักคุณแมวนั่งคุณ?" },
        { "One. Two. Three.", "ネコです.", "そうです", "か?", "ネコです.そうですか?" },
        { "One.  Two.\tThree.", "Eins.", "Zwei.", "Drei.", "Eins.  Zwei.\tDrei." },
        { "一。二！三？", "One.", "Two!", "Three?", "One. Two! Three?" },
        { "一。　二！　三？", "One.", "Two!", "Three?", "One. Two! Three?" },
        { "One. Two. Three.", "저는 학생입니다.", "네.", "3", "저는 학생입니다. 네. 3" },
        { "One. Two. Three.", "I like 猫.", "It sits.", "", "I like 猫. It sits." },
        { "One. Two. Three.", "", "Zwei.", "Drei.", "Zwei. Drei." },
        { " One.\r\n\n Two. Three.\n", "一。", "Zwei.", "Drei.", "一。\r\n\n Zwei. Drei." },
    };
    qkv_buffer joined = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qkv_str text = qkv_cstr(cases[i].text);
        qkv_translation best[3] = { { .text = qkv_cstr(cases[i].a) },
                                    { .text = qkv_cstr(cases[i].b) },
                                    { .text = qkv_cstr(cases[i].c) } };
        const qkv_translations t = { .n = 3, .n_best = 1, .best = best };
        const qkv_translate_opts o = { .size = sizeof o, .split = i % 2 ? QKV_SPLIT_SENTENCES : QKV_SPLIT_AUTO };
        qkv__passages p = { 0 };
        assert_int_equal(qkv__passages_cut(&p, models[MODEL_PAIR], &text, 1, &o, 2), QKV_USAGE);
        qkv__passages_free(&p);
        assert_int_equal(qkv__passages_cut(&p, models[MODEL_PAIR], &text, 1, &o, 3), QKV_OK);
        assert_int_equal(qkv__passages_join(&p, 0, &t, 0, false, &joined), QKV_OK);
        assert_string_equal(joined.data, cases[i].wanted);
        qkv__passages_free(&p);
    }
    qkv_buffer_free(&joined);
}

static void classes_are_the_librarys(void **state)
{
    static const char *const texts[] = { "the cat", "I love you" };
    qkv_matrix *rows = NULL;
    (void)state;
    assert_int_equal(qkv_classify(models[MODEL_CLASSES], as_strings(texts, NULL, 2), 2, NULL, &rows), QKV_OK);
    const qkv__json_value *x = posted(MODEL_CLASSES, "/classify", "{\"text\":[\"the cat\",\"I love you\"]}");
    for (int i = 0; i < 2; i++) {
        double before = 2;
        for (int k = 0; k < 3; k++) {
            char path[64];
            snprintf(path, sizeof path, "results/%d/classes/%d", i, k);
            const qkv__json_value *found = at(x, path);
            double p = qkv__json_number(at(found, "probability"));
            int id = !strcmp(text_at(found, "label"), "good") ? 0 : !strcmp(text_at(found, "label"), "bad") ? 1 : 2;
            assert_true((float)p == rows->data[3 * i + id]);
            assert_true(p <= before);
            before = p;
        }
    }
    assert_int_equal(qkv__json_int(at(x, "cut")), 0);
    json_free(x);
    x = posted(MODEL_CLASSES, "/classify", "{\"text\":\"the cat\"}");
    assert_int_equal(qkv__json_size(at(x, "classes")), 3);
    json_free(x);
    qkv_free(rows);
}

/* A model with one class: its logit, and the sigmoid of it. */
static void only_class(void **state)
{
    (void)state;
    static const char *const text = "the cat", *const label = "relevance";
    qkv_tokenizer *t = learn_tokens();
    qkv_model *m = qkv_model_new(
        &(qkv_config){
            .vocab_size = qkv_tokenizer_vocab_size(t), .dim = 16, .heads = 2, .d_ff = 32, .encoder_layers = 1, .classes = 1 },
        11);
    assert_int_equal(qkv_model_set_tokenizers(m, t, NULL), QKV_OK);
    assert_int_equal(qkv_model_set_labels(m, &label, 1, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    qkv_matrix *row = NULL;
    assert_int_equal(qkv_classify(m, as_strings(&text, NULL, 1), 1, NULL, &row), QKV_OK);
    qkv_server *server = qkv_server_new(m, &(qkv_server_opts){ 0 });
    assert_non_null(server);
    const qkv__json_value *x = answer_of(post(qkv_server_port(server), "/classify", "{\"text\":\"the cat\"}"), 200);
    double logit = qkv__json_number(at(x, "classes/0/logit")), p = qkv__json_number(at(x, "classes/0/probability"));
    assert_true((float)logit == row->data[0] && fabs(p - 1 / (1 + exp(-logit))) < 1e-6);
    assert_string_equal(text_at(x, "classes/0/label"), label);
    json_free(x);
    qkv_server_free(server);
    qkv_free(row);
    qkv_model_free(m);
}

static void vectors_are_the_librarys(void **state)
{
    static const char *const texts[] = { "the cat", "我爱你" };
    static const int kinds[] = { MODEL_ENCODER, MODEL_PAIR, MODEL_CLASSES };
    qkv_matrix *rows = NULL;
    (void)state;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(qkv_embed(models[kinds[k]], as_strings(texts, NULL, 2), 2, &(qkv_embed_opts){ .normalize = 1 }, &rows),
                         QKV_OK);
        const qkv__json_value *x = posted(kinds[k], "/v1/embeddings", "{\"input\":[\"the cat\",\"我爱你\"],\"model\":\"any\"}");
        const qkv__json_value *y = posted(kinds[k], "/v1/embeddings",
                                          "{\"input\":\"我爱你\",\"encoding_format\":\"base64\",\"dimensions\":16}");
        for (int64_t i = 0; i < 2 * rows->width; i++) {
            char path[64];
            snprintf(path, sizeof path, "data/%d/embedding/%d", (int)(i / rows->width), (int)(i % rows->width));
            assert_true((float)qkv__json_number(at(x, path)) == rows->data[i]);
        }
        float decoded[64];
        assert_int_equal(decode_base64(text_at(y, "data/0/embedding"), (unsigned char *)decoded, sizeof decoded),
                         sizeof(float) * (size_t)rows->width);
        assert_memory_equal(decoded, rows->data + rows->width, sizeof(float) * (size_t)rows->width);
        assert_true(qkv__json_int(at(x, "usage/prompt_tokens")) > 2);
        json_free(x);
        json_free(y);
    }
    qkv_free(rows);
}

/* More than go in one batch, in order; ids of their tokens, with and without special tokens, are the same; so are shorter vectors,
 * made to length 1. */
static void many_texts_and_ids(void **state)
{
    enum { TEXTS = 150 };
    static const char *const kinds[] = { "the cat", "I love you", "我爱你", "" };
    char body[16384] = "{\"input\":[", ids_body[16384] = "{\"dimensions\":5,\"input\":[", path[64];
    const char *texts[TEXTS];
    const qkv_tokenizer *t = qkv_model_tokenizer(models[MODEL_ENCODER], QKV_SIDE_SOURCE);
    qkv_encoding *ids = NULL;
    qkv_matrix *rows = NULL;
    int64_t tokens = 0;
    (void)state;
    for (int i = 0; i < TEXTS; i++) {
        char *end = ids_body + strlen(ids_body);
        texts[i] = i % 7 ? kinds[i % 3] : kinds[3];
        snprintf(body + strlen(body), sizeof body - strlen(body), "%s\"%s\"", i ? "," : "", texts[i]);
        assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(texts[i]), NULL, &ids), QKV_OK);
        tokens += ids->n;
        end += sprintf(end, "%s[", i ? "," : "");
        if (i % 2 || !ids->n) end += sprintf(end, "%d,", qkv_tokenizer_id(t, "<s>"));
        for (int64_t k = 0; k < ids->n; k++) end += sprintf(end, "%d,", ids->ids[k]);
        if (i % 2 || !ids->n) end += sprintf(end, "%d,", qkv_tokenizer_id(t, "</s>"));
        strcpy(end - 1, "]");
    }
    strcat(body, "]}"), strcat(ids_body, "]}");
    assert_int_equal(
        qkv_embed(models[MODEL_ENCODER], as_strings(texts, NULL, TEXTS), TEXTS, &(qkv_embed_opts){ .normalize = 1 }, &rows),
        QKV_OK);
    const qkv__json_value *x = posted(MODEL_ENCODER, "/v1/embeddings", body),
                          *y = posted(MODEL_ENCODER, "/v1/embeddings", ids_body);
    assert_int_equal(qkv__json_size(at(x, "data")), TEXTS);
    assert_int_equal(qkv__json_int(at(x, "usage/prompt_tokens")), tokens + TEXTS); /* each with <s> */
    for (int i = 0; i < TEXTS; i++) {
        const float *row = rows->data + i * rows->width;
        double sum = 0;
        snprintf(path, sizeof path, "data/%d", i);
        const qkv__json_value *vector = qkv__json_get(at(x, path), "embedding"),
                              *shorter = qkv__json_get(at(y, path), "embedding");
        assert_int_equal(qkv__json_int(qkv__json_get(at(x, path), "index")), i);
        assert_int_equal(qkv__json_size(vector), 16);
        assert_int_equal(qkv__json_size(shorter), 5);
        for (size_t k = 0; k < 5; k++) sum += (double)row[k] * (double)row[k];
        for (size_t k = 0; k < 16; k++) assert_true((float)qkv__json_number(qkv__json_at(vector, k)) == row[k]);
        for (size_t k = 0; k < 5; k++)
            assert_true(fabs(qkv__json_number(qkv__json_at(shorter, k)) - (double)row[k] / sqrt(sum)) < 1e-6);
    }
    json_free(x), json_free(y);
    x = posted(MODEL_ENCODER, "/v1/embeddings", "{\"input\":[5,6,7]}");
    y = posted(MODEL_ENCODER, "/v1/embeddings", "{\"input\":[[5,6,7]]}");
    assert_true(qkv__json_equal(x, y));
    assert_int_equal(qkv__json_size(at(x, "data")), 1);
    assert_int_equal(qkv__json_int(at(x, "usage/prompt_tokens")), 4);
    json_free(x), json_free(y);
    x = answer_of(post(ports[MODEL_ENCODER], "/v1/embeddings", "{\"input\":\"x\",\"dimensions\":17}"), 400);
    assert_string_equal(text_at(x, "error/message"), "\"dimensions\" is 17: the vectors of this model have 16");
    json_free(x);
    x = answer_of(post(ports[MODEL_ENCODER], "/v1/embeddings", "{\"input\":[[1],[2,330]]}"), 400);
    assert_string_equal(text_at(x, "error/message"), "\"input\": element 1 is the id 330: the model has the ids 0 to 311");
    json_free(x);
    qkv_free(rows);
    qkv_free(ids);
}

/* Of a long text, 512 tokens are read and counted. */
static void usage_counts_what_is_read(void **state)
{
    enum { LETTERS = 3000 };
    static const char *const heads[] = { "{\"input\":\"", "{\"input\":[\"the cat\",\"" };
    char *body = malloc(LETTERS + 64);
    qkv_encoding *ids = NULL;
    (void)state;
    assert_non_null(body);
    assert_int_equal(
        qkv_tokenizer_encode(qkv_model_tokenizer(models[MODEL_ENCODER], QKV_SIDE_SOURCE), qkv_cstr("the cat"), NULL, &ids),
        QKV_OK);
    for (int i = 0; i < 2; i++) {
        int n = sprintf(body, "%s", heads[i]);
        memset(body + n, 'x', LETTERS);
        strcpy(body + n + LETTERS, i ? "\"]}" : "\"}");
        const qkv__json_value *x = posted(MODEL_ENCODER, "/v1/embeddings", body);
        assert_int_equal(qkv__json_int(at(x, "usage/prompt_tokens")), 512 + (i ? 1 + (int)ids->n : 0));
        assert_int_equal(qkv__json_int(at(x, "usage/total_tokens")), 512 + (i ? 1 + (int)ids->n : 0));
        json_free(x);
    }
    qkv_free(ids);
    free(body);
}

static void tokens_are_the_librarys(void **state)
{
    static const char text[] = "the \xE7\x8C\xAB\0sat";
    qkv_encoding *ids = NULL;
    (void)state;
    const qkv_tokenizer *t = qkv_model_tokenizer(models[MODEL_PAIR], QKV_SIDE_SOURCE);
    assert_int_equal(qkv_tokenizer_encode(t, (qkv_str){ text, sizeof text - 1 }, NULL, &ids), QKV_OK);
    const qkv__json_value *x = posted(MODEL_PAIR, "/tokenize", "{\"text\":\"the 猫\\u0000sat\",\"side\":\"target\"}");
    assert_int_equal(qkv__json_size(at(x, "ids")), ids->n);
    for (size_t i = 0; i < (size_t)ids->n; i++) {
        assert_int_equal(qkv__json_int(qkv__json_at(at(x, "ids"), i)), ids->ids[i]);
        assert_string_equal(qkv__json_text(qkv__json_at(at(x, "tokens"), i)), qkv_tokenizer_token(t, ids->ids[i]));
        assert_int_equal(qkv__json_int(qkv__json_at(qkv__json_at(at(x, "spans"), i), 1)), ids->spans[i].end);
    }
    json_free(x);
    x = posted(MODEL_PAIR, "/tokenize", "{\"text\":[\"a\",\"\"]}");
    assert_int_equal(qkv__json_size(at(x, "results/0/ids")), 1);
    assert_int_equal(qkv__json_size(at(x, "results/1/ids")), 0);
    json_free(x);
    qkv_free(ids);
}

/* The forms of llama.cpp and vLLM: the ids alone, pieces that make up the text, special tokens around it; and back. */
static void tokens_in_other_forms(void **state)
{
    static const char text[] = "the 猫 sat";
    (void)state;
    const qkv_tokenizer *t = qkv_model_tokenizer(models[MODEL_PAIR], QKV_SIDE_SOURCE);
    qkv_encoding *ids = NULL;
    char joined[64] = "", body[512];
    assert_int_equal(qkv_tokenizer_encode(t, qkv_cstr(text), NULL, &ids), QKV_OK);
    const qkv__json_value *x = posted(MODEL_PAIR, "/tokenize", "{\"content\":\"the 猫 sat\"}");
    const qkv__json_value *y = posted(MODEL_PAIR, "/tokenize", "{\"content\":\"the 猫 sat\",\"with_pieces\":true}");
    const qkv__json_value *z = posted(MODEL_PAIR, "/tokenize",
                                      "{\"prompt\":\"the 猫 sat\",\"return_token_strs\":true,\"model\":\"tiny\"}");
    assert_int_equal(qkv__json_size(x), 1);
    assert_int_equal(qkv__json_size(at(x, "tokens")), ids->n);
    assert_int_equal(qkv__json_size(at(z, "tokens")), ids->n + 1); /* with </s> */
    assert_int_equal(qkv__json_int(at(z, "count")), ids->n + 1);
    assert_int_equal(qkv__json_int(qkv__json_at(at(z, "tokens"), (size_t)ids->n)), qkv_tokenizer_id(t, "</s>"));
    assert_string_equal(qkv__json_text(qkv__json_at(at(z, "token_strs"), (size_t)ids->n)), "</s>");
    assert_true(qkv__json_is_null(at(z, "max_model_len")));
    for (size_t i = 0; i < (size_t)ids->n; i++) {
        const qkv__json_value *piece = qkv__json_get(qkv__json_at(at(y, "tokens"), i), "piece");
        assert_int_equal(qkv__json_int(qkv__json_at(at(x, "tokens"), i)), ids->ids[i]);
        assert_int_equal(qkv__json_int(qkv__json_at(at(z, "tokens"), i)), ids->ids[i]);
        assert_int_equal(qkv__json_int(qkv__json_get(qkv__json_at(at(y, "tokens"), i), "id")), ids->ids[i]);
        if (qkv__json_is_string(piece)) strcat(joined, qkv__json_text(piece));
        else
            for (size_t k = 0; k < qkv__json_size(piece); k++)
                strncat(joined, &(char){ (char)qkv__json_int(qkv__json_at(piece, k)) }, 1);
    }
    assert_string_equal(joined, text);
    char *tokens = json_text(at(x, "tokens"), QKV__JSON_COMPACT);
    snprintf(body, sizeof body, "{\"tokens\":%s}", tokens);
    free(tokens);
    json_free(y);
    y = posted(MODEL_PAIR, "/detokenize", body);
    assert_string_equal(text_at(y, "content"), text);
    assert_string_equal(text_at(y, "prompt"), text);
    json_free(x), json_free(y), json_free(z);
    x = posted(MODEL_PAIR, "/tokenize", "{\"prompt\":\"\",\"add_special_tokens\":false}");
    y = posted(MODEL_PAIR, "/detokenize", "{\"tokens\":[]}");
    z = posted(MODEL_LANGUAGE, "/tokenize", "{\"content\":\"</s>a\",\"add_special\":true}");
    assert_int_equal(qkv__json_size(at(x, "tokens")), 0);
    assert_string_equal(text_at(y, "content"), "");
    assert_int_equal(qkv__json_int(at(z, "tokens/0")), qkv_tokenizer_id(t, "<s>"));
    assert_int_equal(qkv__json_int(at(z, "tokens/1")), qkv_tokenizer_id(t, "</s>"));
    assert_int_equal(qkv__json_size(at(z, "tokens")), 3);
    json_free(x), json_free(y), json_free(z);
    qkv_free(ids);
}

/* ---- completions ---- */

/* The texts of a stream's events, by index, and why each ended. */
typedef struct streamed {
    char text[8][4096];
    char finish[8][16];
    int events;
    bool is_done, has_usage;
} streamed;

static void read_events(const reply *r, streamed *s)
{
    *s = (streamed){ 0 };
    assert_int_equal(r->status, 200);
    assert_true(!strncmp(reply_header(r, "Content-Type"), "text/event-stream\r\n", 19));
    for (const char *line = r->body; (line = strstr(line, "data: ")); line += 6) {
        const char *end = strstr(line, "\n\n");
        assert_non_null(end);
        if (!strncmp(line, "data: [DONE]\n\n", 14)) {
            s->is_done = true;
            assert_string_equal(line, "data: [DONE]\n\n");
            return;
        }
        const qkv__json_value *x = json_parse(line + 6, (size_t)(end - line - 6));
        assert_non_null(x);
        s->has_usage |= at(x, "usage") != NULL;
        if (at(x, "choices/0")) {
            size_t index = (size_t)qkv__json_int(at(x, "choices/0/index"));
            assert_true(index < 8 && !*s->finish[index]);
            strcat(s->text[index], text_at(x, "choices/0/text"));
            if (qkv__json_is_string(at(x, "choices/0/finish_reason")))
                strcpy(s->finish[index], text_at(x, "choices/0/finish_reason"));
        }
        s->events++;
        json_free(x);
    }
}

static void completions_are_the_librarys(void **state)
{
    static const char *const prompts[] = { "the cat", "我" };
    static const char *const stops[] = { "zz", "猫" };
    qkv_generate_opts o = { .max_tokens = 20, .temperature = 0.9f, .top_p = 0.95f, .seed = 7, .stops = stops, .n_stops = 2 };
    qkv_generated *g = NULL;
    (void)state;
    const char *body =
        "{\"prompt\":[\"the cat\",\"我\"],\"n\":2,\"max_tokens\":20,\"temperature\":0.9,\"top_p\":0.95,\"seed\":7,"
        "\"stop\":[\"zz\",\"猫\"],\"logprobs\":1,\"presence_penalty\":0,\"logit_bias\":{},\"user\":\"me\"}";
    const qkv__json_value *x = posted(MODEL_LANGUAGE, "/v1/completions", body);
    int64_t tokens = 0, prompt_tokens = 0;
    assert_int_equal(qkv__json_size(at(x, "choices")), 4);
    for (int i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof path, "choices/%d", i);
        const qkv__json_value *choice = at(x, path);
        o.sample = i % 2;
        assert_int_equal(qkv_generate(models[MODEL_LANGUAGE], qkv_cstr(prompts[i / 2]), &o, &g), QKV_OK);
        assert_string_equal(text_at(choice, "text"), g->text.data);
        assert_string_equal(text_at(choice, "finish_reason"), g->finish == QKV_FINISH_LENGTH ? "length" : "stop");
        assert_int_equal(qkv__json_int(at(choice, "index")), i);
        assert_int_equal(qkv__json_size(at(choice, "logprobs/token_logprobs")), g->n);
        for (int64_t k = 0; k < g->n; k++)
            assert_true(qkv__json_number(qkv__json_at(at(choice, "logprobs/token_logprobs"), (size_t)k)) == g->log_p[k]);
        tokens += g->n;
        if (!o.sample) prompt_tokens += g->n_prompt;
    }
    assert_int_equal(qkv__json_int(at(x, "usage/completion_tokens")), tokens);
    assert_int_equal(qkv__json_int(at(x, "usage/prompt_tokens")), prompt_tokens);
    json_free(x);
    qkv_free(g);
}

static void a_stream_is_the_same_text(void **state)
{
    static const char *const bodies[] = {
        "{\"prompt\":[\"the cat\",\"我\"],\"n\":2,\"max_tokens\":40,\"temperature\":0.9,\"seed\":3%s}",
        "{\"prompt\":\"the\",\"max_tokens\":60,\"temperature\":0,\"echo\":true%s}",
        "{\"prompt\":\"the\",\"max_tokens\":60,\"temperature\":1,\"seed\":5,\"stop\":[\"a\",\"猫\"]%s}",
        "{\"prompt\":\"\",\"max_tokens\":1,\"seed\":5%s}",
        "{\"prompt\":\"the\",\"max_tokens\":0,\"echo\":true%s}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char whole[512], piece[512];
        streamed s;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(whole, sizeof whole, bodies[i], "");
        snprintf(piece, sizeof piece, bodies[i], ",\"stream\":true,\"stream_options\":{\"include_usage\":true}");
#pragma GCC diagnostic pop
        const qkv__json_value *x = posted(MODEL_LANGUAGE, "/v1/completions", whole);
        reply r = post(ports[MODEL_LANGUAGE], "/v1/completions", piece);
        read_events(&r, &s);
        assert_true(s.is_done && s.has_usage && s.events > (int)qkv__json_size(at(x, "choices")));
        for (size_t k = 0; k < qkv__json_size(at(x, "choices")); k++) {
            char path[64];
            snprintf(path, sizeof path, "choices/%zu", k);
            assert_string_equal(s.text[k], text_at(at(x, path), "text"));
            assert_string_equal(s.finish[k], text_at(at(x, path), "finish_reason"));
        }
        json_free(x);
        free_reply(&r);
    }
}

/* ---- attention ---- */

typedef struct looked {
    qkv_attention_capture *a;
    float weights[4096];
    unsigned char decoded[16384];
} looked;

static const qkv__json_value *look(int kind, const char *rest)
{
    char body[512];
    snprintf(body, sizeof body, "{\"text\":\"the 猫 sat\"%s}", rest);
    return posted(kind, "/attention", body);
}

static void same_weights(looked *l, const qkv__json_value *x, qkv_attention_kind kind)
{
    int64_t rows = qkv_attention_rows(l->a, kind)->n, columns = qkv_attention_columns(l->a, kind)->n;
    assert_int_equal(qkv__json_int(at(x, "rows")), rows);
    assert_int_equal(qkv__json_int(at(x, "columns")), columns);
    size_t bytes = sizeof(float) * (size_t)(rows * columns);
    assert_int_equal(decode_base64(text_at(x, "weights"), l->decoded, sizeof l->decoded), bytes);
    assert_memory_equal(l->decoded, l->weights, bytes);
}

static void same_side(const qkv__json_value *x, const qkv_axis *side)
{
    assert_int_equal(qkv__json_size(at(x, "tokens")), side->n);
    for (int64_t i = 0; i < side->n; i++) {
        assert_string_equal(qkv__json_text(qkv__json_at(at(x, "tokens"), (size_t)i)), side->names[i]);
        assert_int_equal(qkv__json_int(qkv__json_at(at(x, "special"), (size_t)i)), side->is_special[i]);
    }
}

static const char *const kind_names[] = { "encoder", "decoder", "cross" };

static void same_thumbnails(looked *l, int model, qkv_attention_kind kind)
{
    char rest[128], path[64];
    snprintf(rest, sizeof rest, ",\"kind\":\"%s\",\"thumbnails\":3", kind_names[kind]);
    const qkv__json_value *x = look(model, rest);
    int64_t n = qkv_attention_rows(l->a, kind)->n, m = qkv_attention_columns(l->a, kind)->n;
    int64_t rows = n < 3 ? n : 3, columns = m < 3 ? m : 3;
    assert_int_equal(qkv__json_int(at(x, "rows")), rows);
    assert_int_equal(qkv__json_size(at(x, "maps")), l->a->layers[kind]);
    assert_int_equal(qkv__json_size(at(x, "maps/1")), l->a->heads);
    assert_int_equal(qkv_attention_weights(l->a, kind, 1, 1, l->weights), QKV_OK);
    snprintf(path, sizeof path, "maps/1/1");
    assert_int_equal(decode_base64(text_at(x, path), l->decoded, sizeof l->decoded), rows * columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            float largest = 0;
            for (int64_t i = 0; i < n * m; i++)
                if (i / m * rows / n == r && i % m * columns / m == c && l->weights[i] > largest) largest = l->weights[i];
            assert_int_equal(l->decoded[r * columns + c], lroundf(255 * largest));
        }
    json_free(x);
}

static void same_heads(looked *l, int model, qkv_attention_kind kind)
{
    char rest[128];
    for (int layer = -1; layer < l->a->layers[kind]; layer++)
        for (int head = -1; head < l->a->heads; head++) {
            char layer_text[16] = "\"mean\"", head_text[16] = "\"mean\"";
            if (layer >= 0) snprintf(layer_text, sizeof layer_text, "%d", layer);
            if (head >= 0) snprintf(head_text, sizeof head_text, "%d", head);
            snprintf(rest, sizeof rest, ",\"kind\":\"%s\",\"layer\":%s,\"head\":%s", kind_names[kind], layer_text, head_text);
            const qkv__json_value *x = look(model, rest);
            assert_int_equal(qkv_attention_weights(l->a, kind, layer, head, l->weights), QKV_OK);
            same_weights(l, x, kind);
            json_free(x);
        }
    if (kind == QKV_ATTENTION_CROSS) return;
    snprintf(rest, sizeof rest, ",\"kind\":\"%s\",\"layer\":\"rollout\"", kind_names[kind]);
    const qkv__json_value *x = look(model, rest);
    assert_int_equal(qkv_attention_rollout(l->a, kind, l->weights), QKV_OK);
    same_weights(l, x, kind);
    json_free(x);
}

static void same_ranks(looked *l, int model, qkv_attention_kind kind)
{
    char rest[128];
    qkv_head_measures m;
    snprintf(rest, sizeof rest, ",\"kind\":\"%s\",\"rank\":true", kind_names[kind]);
    const qkv__json_value *x = look(model, rest);
    assert_int_equal(qkv__json_size(at(x, "heads")), l->a->layers[kind] * l->a->heads);
    for (int i = 0; i < l->a->layers[kind] * l->a->heads; i++) {
        const qkv__json_value *found = qkv__json_at(at(x, "heads"), (size_t)i);
        assert_int_equal(qkv__json_int(at(found, "layer")), i / l->a->heads);
        assert_int_equal(qkv__json_int(at(found, "head")), i % l->a->heads);
        assert_int_equal(qkv_attention_stats(l->a, kind, i / l->a->heads, i % l->a->heads, &m), QKV_OK);
        assert_true(qkv__json_number(at(found, "entropy")) == m.entropy);
        assert_true(qkv__json_number(at(found, "diagonality")) == m.diagonality);
        assert_true(qkv__json_number(at(found, "first")) == m.first);
        assert_true(qkv__json_number(at(found, "previous")) == m.previous);
        assert_true(qkv__json_number(at(found, "same")) == m.same);
        assert_true(qkv__json_number(at(found, "next")) == m.next);
    }
    json_free(x);
}

/* As the server continues a text when it is not told how. */
static void attend_as_asked(int model, looked *l, qkv_generated **g)
{
    static const char text[] = "the 猫 sat";
    qkv_attend_opts o = { 0 };
    if (model == MODEL_LANGUAGE) {
        assert_int_equal(qkv_generate(models[model], qkv_cstr(text), &(qkv_generate_opts){ .max_tokens = 32 }, g), QKV_OK);
        o.target_ids = (*g)->ids;
        o.n_target_ids = (*g)->n;
    }
    assert_int_equal(qkv_attend(models[model], qkv_cstr(text), &o, &l->a), QKV_OK);
}

static void attention_is_the_librarys(void **state)
{
    looked *l = calloc(1, sizeof *l);
    qkv_generated *g = NULL;
    (void)state;
    for (int model = 0; model < MODEL_KINDS; model++) {
        attend_as_asked(model, l, &g);
        const qkv__json_value *x = look(model, "");
        assert_string_equal(text_at(x, "text"), "the 猫 sat");
        if (l->a->layers[0]) same_side(at(x, "sides/source"), &l->a->source);
        if (l->a->layers[1]) same_side(at(x, "sides/read"), &l->a->target);
        if (l->a->layers[2]) same_side(at(x, "sides/chosen"), &l->a->predicted);
        if (model == MODEL_LANGUAGE) assert_string_equal(text_at(x, "output/text"), g->text.data);
        if (model == MODEL_LANGUAGE) assert_int_equal(qkv__json_size(at(x, "target_ids")), g->n);
        if (model == MODEL_CLASSES) assert_int_equal(qkv__json_size(at(x, "output/classes")), 3);
        size_t kinds = 0;
        for (qkv_attention_kind kind = 0; kind < QKV_ATTENTION_KINDS; kind++) {
            if (!l->a->layers[kind]) continue;
            char path[32];
            snprintf(path, sizeof path, "kinds/%zu", kinds++);
            assert_string_equal(text_at(at(x, path), "kind"), kind_names[kind]);
            assert_int_equal(qkv__json_int(at(at(x, path), "layers")), l->a->layers[kind]);
            same_heads(l, model, kind);
            same_ranks(l, model, kind);
            same_thumbnails(l, model, kind);
        }
        assert_int_equal(qkv__json_size(at(x, "kinds")), kinds);
        json_free(x);
    }
    qkv_free(g);
    qkv_free(l->a);
    free(l);
}

static void a_target_is_looked_at_instead_of_a_search(void **state)
{
    static const char text[] = "the 猫 sat";
    qkv_translations *t = NULL;
    const char *texts = text;
    (void)state;
    assert_int_equal(qkv_translate(models[MODEL_PAIR], as_strings(&texts, NULL, 1), 1,
                                   &(qkv_translate_opts){ .beam_size = 5, .n_best = 3 }, &t),
                     QKV_OK);
    const qkv__json_value *x = look(MODEL_PAIR, ",\"beam\":5,\"n_best\":3");
    assert_int_equal(qkv__json_size(at(x, "output/translations")), 3);
    for (int i = 0; i < 3; i++) {
        const qkv__json_value *found = qkv__json_at(at(x, "output/translations"), (size_t)i);
        assert_string_equal(text_at(found, "text"), t->best[i].text.data);
        assert_true(qkv__json_number(at(found, "score")) == t->best[i].score);
        assert_int_equal(qkv__json_size(at(found, "ids")), t->best[i].n_ids);
    }
    const qkv__json_value *same = look(MODEL_PAIR, ",\"beam\":5");
    assert_true(qkv__json_equal(at(x, "sides"), at(same, "sides")));
    assert_true(qkv__json_equal(at(x, "target_ids"), at(same, "target_ids")));
    json_free(same);

    char rest[256];
    char *ids = json_text(at(x, "output/translations/1/ids"), QKV__JSON_COMPACT);
    snprintf(rest, sizeof rest, ",\"target_ids\":%s", ids);
    const qkv__json_value *second = look(MODEL_PAIR, rest);
    assert_string_equal(text_at(second, "output/translations/0/text"), t->best[1].text.data);
    assert_true(qkv__json_is_null(at(second, "output/translations/0/score")));
    json_free(second);
    free(ids);

    const qkv__json_value *chosen = look(MODEL_PAIR, ",\"target\":\"我爱\",\"special\":false");
    assert_string_equal(text_at(chosen, "sides/chosen/tokens/0"), "我爱");
    assert_int_equal(qkv__json_size(at(chosen, "sides/chosen/tokens")), 1);
    json_free(chosen);
    const qkv__json_value *pieces = look(MODEL_PAIR, ",\"target\":\"\",\"pieces\":true"),
                          *joined = look(MODEL_PAIR, ",\"target\":\"\"");
    assert_int_equal(qkv__json_size(at(joined, "target_ids")), 0);
    assert_true(qkv__json_size(at(pieces, "sides/source/tokens")) >= qkv__json_size(at(joined, "sides/source/tokens")));
    json_free(pieces);
    json_free(joined);
    json_free(x);
    x = look(MODEL_LANGUAGE, ",\"max_tokens\":0");
    assert_int_equal(qkv__json_size(at(x, "target_ids")), 0);
    assert_string_equal(text_at(x, "output/text"), "");
    json_free(x);
    qkv_free(t);
}

static void a_long_text_is_refused(void **state)
{
    enum { LETTERS = 5000 };
    char *body = malloc(LETTERS + 100);
    (void)state;
    assert_non_null(body);
    int n = snprintf(body, 32, "{\"text\":\"");
    memset(body + n, 'x', LETTERS);
    strcpy(body + n + LETTERS, "\"}");
    const qkv__json_value *x = answer_of(post(ports[MODEL_CLASSES], "/attention", body), 400);
    assert_non_null(strstr(text_at(x, "error/message"), "5000 tokens"));
    json_free(x);
    memcpy(body, "{\"q\"   :\"", 9);
    strcpy(body + n + LETTERS, "\",\"source\":\"en\",\"target\":\"zh\"}");
    x = answer_of(post(ports[MODEL_PAIR], "/translate", body), 400);
    assert_non_null(strstr(text_at(x, "error"), "5000 tokens, more than 1024: no more are read at once"));
    json_free(x);
    x = answer_of(post(ports[MODEL_PAIR], "/attention", "{\"text\":\"x\",\"kind\":\"cross\",\"layer\":2,\"head\":0}"), 400);
    assert_non_null(strstr(text_at(x, "error/message"), "layers 0 to 1"));
    json_free(x);
    free(body);
}

/* ---- who may ask ---- */

static qkv_server *serve(int kind, qkv_server_opts o)
{
    qkv_server *s = qkv_server_new(models[kind], &o);
    if (!s) print_error("%s\n", qkv_error());
    assert_non_null(s);
    return s;
}

static void a_token_is_asked_for(void **state)
{
    static const struct {
        const char *headers;
        int status;
    } tries[] = { { NULL, 401 },
                  { "Authorization: Bearer secret\r\n", 200 },
                  { "Authorization: bearer secret\r\n", 200 },
                  { "Authorization: Bearer secre\r\n", 401 },
                  { "Authorization: Bearer secrett\r\n", 401 },
                  { "Authorization: Bearer secretsecret\r\n", 401 },
                  { "Authorization: Bearer \r\n", 401 },
                  { "Authorization: Bearer\r\n", 401 },
                  { "Authorization: Basic secret\r\n", 401 },
                  { "Authorization: secret\r\n", 401 },
                  { "Authorization: Bearer SECRET\r\n", 401 } };
    (void)state;
    qkv_server *s = serve(MODEL_PAIR, (qkv_server_opts){ .token = "secret" });
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        reply r = ask(qkv_server_port(s), &(request){ .path = "/info", .headers = tries[i].headers });
        assert_int_equal(r.status, tries[i].status);
        assert_int_equal(r.status == 401, reply_header(&r, "WWW-Authenticate") != NULL);
        free_reply(&r);
        r = ask(qkv_server_port(s),
                &(request){ .path = "/attention", .headers = tries[i].headers, .body = "{\"text\":\"the cat\"}" });
        assert_int_equal(r.status, tries[i].status);
        free_reply(&r);
    }
    static const char *const open[] = { "/", "/health" };
    for (int i = 0; i < 2; i++) {
        reply r = get(qkv_server_port(s), open[i]);
        assert_int_equal(r.status, 200);
        free_reply(&r);
    }
    qkv_server_free(s);
}

/* LibreTranslate's clients have it among their fields. */
static void a_token_may_be_a_key(void **state)
{
    static const struct {
        const char *path, *headers, *type, *body;
        int status;
    } tries[] = {
        { "/translate", NULL, NULL, "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\",\"api_key\":\"secret\"}", 200 },
        { "/translate", NULL, NULL, "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\"}", 401 },
        { "/translate", NULL, NULL, "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\",\"api_key\":\"\"}", 401 },
        { "/translate", NULL, NULL, "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\",\"api_key\":7}", 401 },
        { "/translate", NULL, NULL, "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\",\"api_key\":\"secret\\u0000\"}", 401 },
        { "/translate", "Authorization: Bearer x\r\n", NULL,
          "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\",\"api_key\":\"secret\"}", 401 },
        { "/translate", "Authorization: Bearer secret\r\n", NULL,
          "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\",\"api_key\":\"x\"}", 200 },
        { "/translate?api_key=secret", NULL, NULL, "{\"q\":\"x\",\"source\":\"en\",\"target\":\"zh\"}", 200 },
        { "/translate", NULL, "application/x-www-form-urlencoded", "q=x&source=en&target=zh&api_key=secret", 200 },
        { "/translate", NULL, "application/x-www-form-urlencoded", "q=x&source=en&target=zh&api_key=secre", 401 },
        { "/languages", NULL, NULL, NULL, 401 },
        { "/languages?api_key=secret", NULL, NULL, NULL, 200 },
        { "/info?api_key=secret", NULL, NULL, NULL, 401 },
        { "/attention", NULL, NULL, "{\"text\":\"the cat\",\"api_key\":\"secret\"}", 401 },
    };
    (void)state;
    qkv_server *s = serve(MODEL_PAIR, (qkv_server_opts){ .token = "secret" });
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        reply r = ask(
            qkv_server_port(s),
            &(request){ .path = tries[i].path, .headers = tries[i].headers, .type = tries[i].type, .body = tries[i].body });
        if (r.status != tries[i].status) fail_msg("%zu: %s", i, r.text);
        free_reply(&r);
    }
    qkv_server_free(s);
}

static int status_of(qkv_server *s, const char *host, const char *origin)
{
    char header[256] = "";
    if (origin) snprintf(header, sizeof header, "Origin: %s\r\n", origin);
    reply r = ask(qkv_server_port(s), &(request){ .path = "/health", .host = host, .headers = header });
    int status = r.status;
    free_reply(&r);
    return status;
}

static void its_own_names_are_let_in(void **state)
{
    char local[64], numbers[64], origin[80], other[80];
    (void)state;
    qkv_server *s = servers[MODEL_PAIR];
    snprintf(local, sizeof local, "LocalHost:%d", qkv_server_port(s));
    snprintf(numbers, sizeof numbers, "127.0.0.1:%d", qkv_server_port(s));
    snprintf(origin, sizeof origin, "http://%s", local);
    snprintf(other, sizeof other, "http://%s", numbers);
    assert_int_equal(status_of(s, local, NULL), 200);
    assert_int_equal(status_of(s, local, origin), 200);
    assert_int_equal(status_of(s, numbers, origin), 200);
    assert_int_equal(status_of(s, numbers, other), 200);

    s = serve(MODEL_PAIR, (qkv_server_opts){ .host = "0.0.0.0", .token = "t" });
    snprintf(local, sizeof local, "my.machine:%d", qkv_server_port(s));
    snprintf(origin, sizeof origin, "http://my.machine:%d", qkv_server_port(s));
    snprintf(other, sizeof other, "http://other.machine:%d", qkv_server_port(s));
    assert_int_equal(status_of(s, local, NULL), 200);
    assert_int_equal(status_of(s, local, origin), 200);
    assert_int_equal(status_of(s, local, other), 403);
    assert_int_equal(status_of(s, "my.machine", NULL), 403);
    assert_int_equal(status_of(s, "my.machine:1", NULL), 403);
    qkv_server_free(s);
}

static void options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    const struct {
        qkv_server_opts o;
        qkv_status status;
        const char *words;
    } wrong[] = {
        { { .host = "0.0.0.0" }, QKV_USAGE, "a token is needed" },
        { { .host = "::" }, QKV_USAGE, "a token is needed" },
        { { .host = "0.0.0.0", .token = "" }, QKV_USAGE, "token" },
        { { .token = "a b" }, QKV_USAGE, "token" },
        { { .token = "a\n" }, QKV_USAGE, "token" },
        { { .port = -1 }, QKV_USAGE, "port" },
        { { .port = 65536 }, QKV_USAGE, "port" },
        { { .timeout = -1 }, QKV_USAGE, "timeout" },
        { { .connections_per_address = -1 }, QKV_USAGE, "connections" },
        { { .connections_per_address = 129 }, QKV_USAGE, "connections" },
        { { .max_request = (size_t)1 << 40 }, QKV_USAGE, "bytes" },
        { { .name = "" }, QKV_USAGE, "name" },
        { { .name = "\xFF" }, QKV_USAGE, "name" },
        { { .source_language = "" }, QKV_USAGE, "language" },
        { { .host = "no such host!", .token = "t" }, QKV_IO, "no address" },
        { { .host = "203.0.113.7", .token = "t" }, QKV_IO, "cannot listen" },
        { { .port = ports[0] }, QKV_IO, "taken" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_null(qkv_server_new(models[MODEL_PAIR], &wrong[i].o));
        assert_int_equal(qkv_error_status(), wrong[i].status);
        if (!strstr(qkv_error(), wrong[i].words)) print_error("%s\n", qkv_error());
        assert_non_null(strstr(qkv_error(), wrong[i].words));
    }
    assert_null(qkv_server_new(NULL, NULL));
    qkv_model *ids = qkv_model_new(&(qkv_config){ .vocab_size = 9, .encoder_layers = 1, .dim = 8, .heads = 1, .d_ff = 8 }, 1);
    assert_null(qkv_server_new(ids, NULL));
    assert_non_null(strstr(qkv_error(), "tokenizer"));
    qkv_model_free(ids);
    assert_int_equal(qkv_server_port(NULL), 0);
    qkv_server_free(NULL);
}

/* ---- time ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whether the other side ends the connection, however much or little we say: what is sent again and again, NULL: nothing. */
static bool is_ended(int fd, const char *again)
{
    double end = seconds() + 60;
    char byte;
    while (seconds() < end) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, 200) > 0 && recv(fd, &byte, 1, 0) <= 0) return true;
        if (again && !send_bytes(fd, again, strlen(again))) return true;
    }
    return false;
}

static void what_does_not_arrive_in_time_is_ended(void **state)
{
    static const struct {
        const char *first, *again;
    } slow[] = {
        { "", NULL },
        { "GET /health HT", NULL },
        { "GET /health HTTP/1.1\r\nHost: x\r\n", NULL },
        { "GET /health HTTP/1.1\r\nHost: x\r\nX: ", "a" },
        { "GET /health HTTP/1.1\r\nHost: x\r\n", "X: a\r\n" },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", NULL },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{", " " },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\nabcd\r\n" },
    };
    enum { N = sizeof slow / sizeof *slow };
    (void)state;
    qkv_server *s = serve(MODEL_PAIR, (qkv_server_opts){ .timeout = 1 });
    for (int i = 0; i < N; i++) {
        int fd = connect_to(qkv_server_port(s));
        assert_true(fd >= 0);
        send_bytes(fd, slow[i].first, strlen(slow[i].first));
        bool ended = is_ended(fd, slow[i].again);
        if (!ended) print_error("case %d goes on\n", i);
        assert_true(ended);
        close(fd);
    }
    const qkv__json_value *x = answer_of(get(qkv_server_port(s), "/health"), 200);
    json_free(x);
    qkv_server_free(s);
}

static double time_completion(int port, int n, int max_tokens)
{
    char body[128];
    double began = seconds();
    snprintf(body, sizeof body, "{\"prompt\":\"the\",\"n\":%d,\"max_tokens\":%d,\"temperature\":0}", n, max_tokens);
    const qkv__json_value *x = answer_of(post(port, "/v1/completions", body), 200);
    json_free(x);
    return seconds() - began;
}

/* An answer may take longer than a request may: more texts until it does. */
static void an_answer_takes_as_long_as_it_takes(void **state)
{
    (void)state;
    qkv_server *s = serve(MODEL_LANGUAGE, (qkv_server_opts){ .timeout = 1 });
    double took = 0;
    for (int n = 1; n <= 16 && took < 2; n *= 2) took = time_completion(qkv_server_port(s), n, 4096);
    if (took < 2) print_message("this machine is too fast: it took %.1f s\n", took);
    qkv_server_free(s);
}

/* ---- many, and those who leave ---- */

static int working(qkv_server *s)
{
    pthread_mutex_lock(&s->connections.lock);
    int n = s->connections.working[QKV__TURN_MODEL] + s->connections.working[QKV__TURN_BATCH];
    pthread_mutex_unlock(&s->connections.lock);
    return n;
}

/* Sixteen texts were asked for; when the client leaves at the first words, the others are not made. */
static void who_leaves_ends_the_work(void **state)
{
    (void)state;
    qkv_server *s = serve(MODEL_LANGUAGE, (qkv_server_opts){ 0 });
    int port = qkv_server_port(s);
    double one = time_completion(port, 1, 4096);
    char *bytes;
    size_t size = write_request(
        port,
        &(request){ .path = "/v1/completions",
                    .body = "{\"prompt\":\"the\",\"n\":16,\"max_tokens\":4096,\"temperature\":0,\"stream\":true}" },
        &bytes);
    int fd = connect_to(port);
    reply r = { 0 };
    send_bytes(fd, bytes, size);
    while (!r.text || !strstr(r.text, "data: ")) assert_true(receive_some(fd, &r));
    close(fd);
    double began = seconds();
    while (working(s)) usleep(1000);
    assert_true(seconds() - began < 1 + 8 * one);
    free_reply(&r);
    free(bytes);
    qkv_server_free(s);
}

/* ---- the end ---- */

typedef struct asking {
    int port;
    const char *body;
    atomic_int status; /* -1: not answered yet */
} asking;

static void *ask_once(void *data)
{
    asking *a = data;
    reply r = post(a->port, "/v1/completions", a->body);
    atomic_store(&a->status, r.status);
    free_reply(&r);
    return NULL;
}

static void it_ends_with_connections_open(void **state)
{
    (void)state;
    qkv_server *s = serve(MODEL_LANGUAGE, (qkv_server_opts){ .timeout = 60 });
    int port = qkv_server_port(s), idle = connect_to(port), half = connect_to(port), stream = connect_to(port);
    send_bytes(half, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Le", 50);
    char *bytes;
    size_t size = write_request(
        port,
        &(request){ .path = "/v1/completions",
                    .body = "{\"prompt\":\"the\",\"n\":16,\"max_tokens\":4096,\"temperature\":0,\"stream\":true}" },
        &bytes);
    reply r = { 0 };
    send_bytes(stream, bytes, size);
    while (!r.text || !strstr(r.text, "data: ")) assert_true(receive_some(stream, &r));
    asking a = { .port = port, .body = "{\"prompt\":\"the\",\"max_tokens\":4096,\"temperature\":0}", .status = -1 };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_once, &a), 0);
    while (working(s) < 2 && atomic_load(&a.status) < 0) usleep(100); /* until it has arrived */
    qkv_server_free(s);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&a.status), 200);
    while (receive_some(stream, &r)) continue;
    assert_null(strstr(r.text, "[DONE]"));
    assert_true(is_ended(idle, NULL) && is_ended(half, NULL));
    assert_int_equal(connect_to(port), -1);
    close(idle), close(half), close(stream);
    free_reply(&r);
    free(bytes);
}

/* ---- memory that fails ---- */

static qkv_status start_and_end(void)
{
    qkv_server *s = qkv_server_new(models[MODEL_PAIR], &(qkv_server_opts){ .token = "t", .host = "127.0.0.1" });
    if (!s) return qkv_error_status();
    qkv_server_free(s);
    return QKV_OK;
}

/* The table of failing.h, for several threads at once. */
static atomic_long counted, fail_at;
static atomic_llong held;
static atomic_bool has_failed;

static void *shared_alloc(size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (atomic_fetch_add(&counted, 1) == atomic_load(&fail_at)) return atomic_store(&has_failed, true), NULL;
    if (posix_memalign(&memory, alignment, bytes ? bytes : 1)) return NULL;
    atomic_fetch_add(&held, (long long)bytes);
    return memory;
}

static void shared_release(void *memory, size_t bytes)
{
    atomic_fetch_sub(&held, (long long)bytes);
    free(memory);
}

/* Any allocation while a request is answered may fail: the answer is 500 or 503, or none, and the next one is right. */
static void a_failed_allocation_is_an_answer(void **state)
{
    static const struct {
        int kind;
        const char *path, *body;
    } tries[] = {
        { MODEL_PAIR, "/translate", "{\"q\":\"I love you\",\"source\":\"source\",\"target\":\"target\"}" },
        { MODEL_PAIR, "/translate?source=a&target=b", "{\"q\":\"<p>I love<b>you\",\"format\":\"html\"}" },
        { MODEL_PAIR, "/attention", "{\"text\":\"the cat\",\"n_best\":2,\"beam\":2}" },
        { MODEL_PAIR, "/attention", "{\"text\":\"the cat\",\"target\":\"我\",\"kind\":\"cross\",\"thumbnails\":4}" },
        { MODEL_CLASSES, "/classify", "{\"text\":\"the cat\"}" },
        { MODEL_ENCODER, "/v1/embeddings", "{\"input\":\"the cat\"}" },
        { MODEL_ENCODER, "/v1/embeddings", "{\"input\":[[5,6],[7]],\"dimensions\":3}" },
        { MODEL_LANGUAGE, "/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":3}" },
        { MODEL_LANGUAGE, "/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":3,\"stream\":true}" },
        { MODEL_LANGUAGE, "/tokenize", "{\"text\":\"the\"}" },
        { MODEL_LANGUAGE, "/tokenize", "{\"content\":\"the\",\"with_pieces\":true,\"add_special\":true}" },
        { MODEL_LANGUAGE, "/tokenize", "{\"prompt\":\"the\",\"return_token_strs\":true}" },
        { MODEL_LANGUAGE, "/detokenize", "{\"tokens\":[5,6]}" },
    };
    const qkv__memory table = { shared_alloc, shared_release };
    (void)state;
    qkv_shutdown();
    qkv_set_num_threads(1);
    qkv__set_memory(&table);
    atomic_store(&fail_at, -1);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        qkv_model *m = make_served(tries[i].kind);
        qkv_server *s = qkv_server_new(m, NULL);
        assert_non_null(s);
        for (long n = 0;; n++) {
            atomic_store(&has_failed, false);
            atomic_store(&counted, 0);
            atomic_store(&fail_at, n);
            reply r = post(qkv_server_port(s), tries[i].path, tries[i].body);
            atomic_store(&fail_at, -1);
            bool failed = atomic_load(&has_failed);
            bool is_told = r.status == 0 || r.status == 500 || r.status == 503 ||
                           (strstr(tries[i].body, "stream") && !strstr(r.text, "[DONE]"));
            if (failed ? !is_told : r.status != 200) print_error("%s: allocation %ld: %s\n", tries[i].path, n, r.text);
            assert_true(failed ? is_told : r.status == 200);
            free_reply(&r);
            if (!failed) break;
            assert_true(n < 3000);
        }
        qkv_server_free(s);
        qkv_model_free(m);
        qkv_shutdown();
        assert_int_equal(atomic_load(&held), 0);
    }
    qkv__set_memory(NULL);
    qkv_set_num_threads(0);
}

static void starting_needs_memory(void **state)
{
    (void)state;
    assert_true(each_allocation_fails(start_and_end) > 4);
}

/* ---- the page as a file ---- */

static const char page_path[] = "test_serve_page.html";

static const qkv__json_value *page_data(void)
{
    FILE *f = fopen(page_path, "rb");
    assert_non_null(f);
    reply r = { .text = calloc(1, 4 << 20) };
    r.length = fread(r.text, 1, (4 << 20) - 1, f);
    fclose(f);
    static const char open[] = "<script type=\"application/json\" id=\"qkv-data\">";
    const char *data = strstr(r.text, open);
    assert_non_null(data);
    data += strlen(open);
    const char *end = strstr(data, "</script>");
    assert_non_null(end);
    assert_true(strchr(data, '<') == end);
    const qkv__json_value *x = json_parse(data, (size_t)(end - data));
    assert_non_null(x);
    assert_non_null(strstr(end, "</html>"));
    free_reply(&r);
    return x;
}

static void a_page_holds_what_was_attended_to(void **state)
{
    static const char text[] = "the 猫 </script> sat";
    looked *l = calloc(1, sizeof *l);
    (void)state;
    for (int model = 0; model < MODEL_KINDS; model++) {
        assert_int_equal(qkv_attend(models[model], qkv_cstr(text), NULL, &l->a), QKV_OK);
        assert_int_equal(qkv_explorer_write(page_path, models[model], l->a, -1, -1, -1), QKV_OK);
        const qkv__json_value *x = page_data();
        assert_string_equal(text_at(x, "overview/text"), text);
        size_t maps = 0;
        for (qkv_attention_kind kind = 0; kind < QKV_ATTENTION_KINDS; kind++) {
            char key[32];
            if (!l->a->layers[kind]) continue;
            maps += (size_t)((l->a->layers[kind] + 1) * (l->a->heads + 1) + (kind != QKV_ATTENTION_CROSS));
            snprintf(key, sizeof key, "%s/1/mean", kind_names[kind]);
            assert_int_equal(qkv_attention_weights(l->a, kind, 1, -1, l->weights), QKV_OK);
            same_weights(l, qkv__json_get(at(x, "heads"), key), kind);
            assert_non_null(qkv__json_get(at(x, "thumbnails"), kind_names[kind]));
            assert_non_null(qkv__json_get(at(x, "ranks"), kind_names[kind]));
        }
        assert_int_equal(qkv__json_size(at(x, "heads")), maps);
        if (model == MODEL_PAIR) {
            assert_string_equal(text_at(x, "overview/output/translations/0/text"), l->a->found->text.data);
            assert_int_equal(qkv__json_size(at(x, "overview/target_ids")), l->a->found->n_ids);
        }
        json_free(x);
    }
    assert_int_equal(qkv_attend(models[MODEL_PAIR], qkv_cstr(text), &(qkv_attend_opts){ .target = qkv_cstr("我爱") }, &l->a),
                     QKV_OK);
    assert_int_equal(qkv_explorer_write(page_path, models[MODEL_PAIR], l->a, QKV_ATTENTION_CROSS, 0, 1), QKV_OK);
    const qkv__json_value *x = page_data();
    assert_string_equal(text_at(x, "overview/output/translations/0/text"), "我爱");
    assert_int_equal(qkv__json_size(at(x, "overview/kinds")), 1);
    assert_int_equal(qkv__json_size(at(x, "heads")), 1);
    assert_int_equal(qkv__json_size(at(x, "thumbnails")), 0);
    assert_int_equal(qkv__json_size(at(x, "ranks/cross/heads")), 1);
    json_free(x);
    qkv_free(l->a);
    free(l);
    unlink(page_path);
}

static qkv_attention_capture *seen;

static qkv_status write_page(void) { return qkv_explorer_write(page_path, models[MODEL_CLASSES], seen, -1, -1, -1); }

static qkv_status attend_and_write(void)
{
    qkv_attention_capture *a = NULL;
    qkv_status status = qkv_attend(models[MODEL_CLASSES], qkv_cstr("the cat"), NULL, &a);
    if (!status) status = qkv_explorer_write(page_path, models[MODEL_CLASSES], a, -1, -1, -1);
    qkv_free(a);
    return status;
}

static void a_page_is_written_whole_or_not_at_all(void **state)
{
    (void)state;
    unlink(page_path);
    assert_int_equal(qkv_attend(models[MODEL_CLASSES], qkv_cstr("the cat"), NULL, &seen), QKV_OK);
    for (long n = 0;; n++) {
        use_failing_files(n);
        qkv_status status = write_page();
        bool failed = failing.failed, is_there = access(page_path, F_OK) == 0;
        assert_int_equal(failing.open, 0);
        qkv__set_files(NULL);
        if (!failed) break;
        assert_true(status == QKV_IO || failing.renamed);
        assert_int_equal(is_there, failing.renamed);
        unlink(page_path);
    }
    const qkv__json_value *x = page_data();
    json_free(x);
    unlink(page_path);
    assert_int_equal(qkv_explorer_write("no/such/folder/x.html", models[MODEL_CLASSES], seen, -1, -1, -1), QKV_IO);
    static const int wrong[][3] = { { 1, -1, -1 }, { 2, -1, -1 }, { 3, -1, -1 }, { -1, 2, -1 },
                                    { -1, -1, 2 }, { 0, 2, 0 },   { 0, 0, 2 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(qkv_explorer_write(page_path, models[MODEL_CLASSES], seen, wrong[i][0], wrong[i][1], wrong[i][2]),
                         QKV_USAGE);
        assert_int_equal(access(page_path, F_OK), -1);
    }
    assert_int_equal(qkv_explorer_write(NULL, models[MODEL_CLASSES], seen, -1, -1, -1), QKV_USAGE);
    assert_int_equal(qkv_explorer_write(page_path, models[MODEL_CLASSES], &(qkv_attention_capture){ 0 }, -1, -1, -1),
                     QKV_USAGE);

    enum { LETTERS = 1500 };
    char long_text[LETTERS];
    memset(long_text, 'x', sizeof long_text);
    assert_int_equal(qkv_attend(models[MODEL_CLASSES], (qkv_str){ long_text, LETTERS }, NULL, &seen), QKV_OK);
    assert_int_equal(write_page(), QKV_LIMIT);
    assert_non_null(strstr(qkv_error(), "choose one kind, layer or head"));
    assert_int_equal(access(page_path, F_OK), -1);
    assert_int_equal(qkv_explorer_write(page_path, models[MODEL_CLASSES], seen, 0, 1, 1), QKV_OK);
    x = page_data();
    assert_non_null(at(qkv__json_get(at(x, "heads"), "encoder/1/1"), "weights/u16")); /* so many are packed */
    json_free(x);
    qkv_free(seen);
    unlink(page_path);
    assert_true(each_allocation_fails(attend_and_write) > 20);
    unlink(page_path);
}

/* ---- all ---- */

static int start(void **state)
{
    (void)state;
    return start_servers((qkv_server_opts){ .name = "tiny" });
}

/* Memory can be made to fail while no server is running only. */
static int models_alone(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_KINDS; kind++)
        if (!(models[kind] = make_served(kind))) return -1;
    return 0;
}

static int no_models(void **state)
{
    (void)state;
    for (int kind = 0; kind < MODEL_KINDS; kind++) qkv_model_free(models[kind]);
    qkv_shutdown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest served[] = {
        cmocka_unit_test(it_says_what_it_is),
        cmocka_unit_test(its_example_suits_the_tokenizer),
        cmocka_unit_test(it_gives_the_page),
        cmocka_unit_test(translations_are_the_librarys),
        cmocka_unit_test(fields_come_in_many_ways),
        cmocka_unit_test(html_is_markup_and_texts),
        cmocka_unit_test(html_is_translated_between_its_tags),
        cmocka_unit_test(any_code_fits_a_language_without_a_name),
        cmocka_unit_test(lines_and_sentences_stay_apart),
        cmocka_unit_test(a_text_may_stay_whole),
        cmocka_unit_test(sentences_are_joined_by_their_script),
        cmocka_unit_test(classes_are_the_librarys),
        cmocka_unit_test(only_class),
        cmocka_unit_test(vectors_are_the_librarys),
        cmocka_unit_test(many_texts_and_ids),
        cmocka_unit_test(usage_counts_what_is_read),
        cmocka_unit_test(tokens_are_the_librarys),
        cmocka_unit_test(tokens_in_other_forms),
        cmocka_unit_test(completions_are_the_librarys),
        cmocka_unit_test(a_stream_is_the_same_text),
        cmocka_unit_test(attention_is_the_librarys),
        cmocka_unit_test(a_target_is_looked_at_instead_of_a_search),
        cmocka_unit_test(a_long_text_is_refused),
        cmocka_unit_test(a_token_is_asked_for),
        cmocka_unit_test(a_token_may_be_a_key),
        cmocka_unit_test(its_own_names_are_let_in),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(what_does_not_arrive_in_time_is_ended),
        cmocka_unit_test(an_answer_takes_as_long_as_it_takes),
        cmocka_unit_test(who_leaves_ends_the_work),
        cmocka_unit_test(it_ends_with_connections_open),
    };
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(a_page_holds_what_was_attended_to),
        cmocka_unit_test(a_page_is_written_whole_or_not_at_all),
        cmocka_unit_test(starting_needs_memory),
    };
    const struct CMUnitTest failing_tests[] = { cmocka_unit_test(a_failed_allocation_is_an_answer) };
    int failed = cmocka_run_group_tests_name("serve", served, start, stop_servers);
    failed += cmocka_run_group_tests_name("explorer", alone, models_alone, no_models);
    return failed + cmocka_run_group_tests_name("serve without memory", failing_tests, NULL, NULL);
}
