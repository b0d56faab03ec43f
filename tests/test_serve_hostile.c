/* test_serve_hostile.c: requests that are wrong in every way we can think of, each with the status it must get; after all of
 * them the server answers as before. */
#include "serve/serve.h"
#include "json_values.h"
#include "http_client.h"
#include "serve_models.h"

#include "serve/server.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LEAST_REQUESTS = 500, MAX_REQUEST = 4096, BIG = 200000 };

static int sent, wrong;

#define TRANSLATE "{\"q\": \"I love you\", \"source\": \"en\", \"target\": \"zh\"}"
#define ATTEND "{\"text\": \"I love you\"}"

/* Where errors are LibreTranslate's, {"error": "the sentence"}. */
static bool is_libre(const char *path)
{
    const size_t length = path ? strcspn(path, "?") : 0;
    return (length == 10 && !strncmp(path, "/translate", 10)) || (length == 10 && !strncmp(path, "/languages", 10));
}

static bool has_error(const qkv__json_value *body, const request *q, int status)
{
    const qkv__json_value *error = qkv__json_get(body, "error");
    if (is_libre(q->path)) return qkv__json_size(body) == 1 && qkv__json_length(error) > 10;
    return qkv__json_int(qkv__json_get(error, "code")) == status && qkv__json_length(qkv__json_get(error, "message")) > 10;
}

static void judge(const char *what, const request *q, const reply *r, int wanted)
{
    bool is_right = r->status == wanted;
    /* Our own refusals say why; those of malformed HTTP come before the server knows what was asked. */
    if (is_right && wanted >= 400 && wanted != 431 && q) {
        const char *type = reply_header(r, "Content-Type");
        bool is_head = q->method && !strcmp(q->method, "HEAD");
        const qkv__json_value *body = is_head ? NULL : json_parse_text(r->body);
        is_right = type && !strncmp(type, "application/json", 16) && (is_head || has_error(body, q, wanted));
        json_free(body);
    }
    sent++;
    wrong += !is_right;
    if (!is_right)
        print_error("%s: %s %s: wanted %d, got %d: %s\n", what, q && q->method ? q->method : "", q && q->path ? q->path : "",
                    wanted, r->status, r->text ? r->text : "");
}

static void try_on(int kind, const char *what, request q, int wanted)
{
    reply r = ask(ports[kind], &q);
    judge(what, &q, &r, wanted);
    if (r.status == 405) {
        const char *allow = reply_header(&r, "Allow");
        if (!allow || (strncmp(allow, "POST", 4) && strncmp(allow, "GET, HEAD", 9))) wrong++, print_error("no Allow\n");
    }
    free_reply(&r);
}

static void try_raw(const char *what, const void *bytes, size_t size, int wanted)
{
    reply r = ask_raw(ports[MODEL_PAIR], bytes, size);
    judge(what, NULL, &r, wanted);
    free_reply(&r);
}

/* ---- paths and methods ---- */

static const struct {
    const char *path;
    bool is_post;
} all_paths[] = { { "/", false },          { "/health", false },        { "/info", false },        { "/languages", false },
                  { "/v1/models", false }, { "/translate", true },      { "/classify", true },     { "/attention", true },
                  { "/tokenize", true },   { "/v1/completions", true }, { "/v1/embeddings", true } };
enum { PATHS = sizeof all_paths / sizeof *all_paths };

static void wrong_paths(void)
{
    static const char *const paths[] = {
        "/x",
        "//",
        "/health/",
        "/Health",
        "/HEALTH",
        "/health%00",
        "/health%20",
        "/%68ealth",
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2fhealth",
        "/v1",
        "/v1/",
        "/v1//models",
        "/v1/models/",
        "/v1/models/qk",
        "/v1/models/qkv/",
        "/v1/models/qkvx",
        "/v1/models/qkv%00",
        "/v1/models/%",
        "/v1/completions/",
        "/translate/",
        "/translate/x",
        "/translate;x",
        "/explorer.js",
        "/favicon.ico",
        "/index.html",
        "/info.json",
        "/info\\",
        "/*",
        "/'\"<script>",
        "/\xE6\x88\x91",
        "/\xFF",
        "http://127.0.0.1/health",
        "health",
        "*",
        "/.",
        "/./health",
        "/health#x",
        "/%",
        "/%zz",
        "/languages/en",
    };
    char deep[4000];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        try_on(MODEL_PAIR, "a path that is none", (request){ .path = paths[i] }, 404);
        try_on(MODEL_PAIR, "a path that is none, with a body", (request){ .path = paths[i], .body = ATTEND }, 404);
    }
    for (size_t i = 0; i < sizeof deep; i++) deep[i] = i % 2 ? 'a' : '/';
    deep[sizeof deep - 1] = '\0';
    try_on(MODEL_PAIR, "a deep path", (request){ .path = deep }, 404);
}

static void wrong_methods(void)
{
    static const char *const methods[] = { "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "Post", "PROPFIND", "X" };
    for (int i = 0; i < PATHS; i++) {
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++)
            try_on(MODEL_PAIR, "a method", (request){ .method = methods[k], .path = all_paths[i].path }, 405);
        try_on(MODEL_PAIR, "the other method",
               (request){ .method = all_paths[i].is_post ? "GET" : "POST", .path = all_paths[i].path, .body = "{}" }, 405);
        if (all_paths[i].is_post) try_on(MODEL_PAIR, "HEAD", (request){ .method = "HEAD", .path = all_paths[i].path }, 405);
    }
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        static const int cannot[MODEL_KINDS][4] = { { 6, 9, -1 }, { 3, 5, 9, -1 }, { 3, 5, 6, 10 }, { 3, 5, 6, 9 } };
        for (int k = 0; k < 4 && cannot[kind][k] > 0; k++)
            try_on(
                kind, "a job of another model",
                (request){ .path = all_paths[cannot[kind][k]].path, .body = all_paths[cannot[kind][k]].is_post ? "{}" : NULL },
                404);
    }
}

/* ---- Host, Origin ---- */

static void wrong_hosts(void)
{
    static const char *const hosts[] = { "evil.example",
                                         "127.0.0.1",
                                         "localhost",
                                         "127.0.0.1:1",
                                         "localhost:80",
                                         "127.0.0.2:%d",
                                         "evil.example:%d",
                                         "127.0.0.1.evil.example:%d",
                                         "localhost.evil.example:%d",
                                         "127.0.0.1:%d0",
                                         "127.0.0.1:0%d",
                                         "[::1]:%d",
                                         "[127.0.0.1]:%d",
                                         "",
                                         ":%d",
                                         "@127.0.0.1:%d",
                                         "127.0.0.1:%d@evil",
                                         "127.0.0.1:%d/",
                                         "http://127.0.0.1:%d",
                                         "localhost:%d evil",
                                         "0.0.0.0:%d",
                                         "2130706433:%d" };
    static const char *const origins[] = { "null",
                                           "http://evil.example",
                                           "https://127.0.0.1:%d",
                                           "http://127.0.0.1",
                                           "http://localhost",
                                           "http://127.0.0.1:%d/",
                                           "127.0.0.1:%d",
                                           "http://",
                                           "",
                                           "file://",
                                           "http://127.0.0.1:%d.evil.example",
                                           "http://evil.example:%d",
                                           "chrome-extension://x",
                                           "http://localhost:%d http://evil.example" };
    char text[256], header[300];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, hosts[i], ports[MODEL_PAIR]);
        try_on(MODEL_PAIR, "a Host", (request){ .host = text }, 403);
        try_on(MODEL_PAIR, "a Host, with a body", (request){ .path = "/attention", .host = text, .body = ATTEND }, 403);
    }
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        snprintf(text, sizeof text, origins[i], ports[MODEL_PAIR]);
#pragma GCC diagnostic pop
        snprintf(header, sizeof header, "Origin: %s\r\n", text);
        try_on(MODEL_PAIR, "an Origin", (request){ .headers = header, .path = "/info" }, 403);
        try_on(MODEL_PAIR, "an Origin, with a body", (request){ .headers = header, .path = "/translate", .body = TRANSLATE },
               403);
    }
    try_on(MODEL_PAIR, "no Host", (request){ .no_host = true }, 400);
    try_on(MODEL_PAIR, "two Hosts", (request){ .headers = "Host: evil.example\r\n" }, 400);
    snprintf(header, sizeof header, "Origin: http://127.0.0.1:%d\r\nOrigin: http://evil.example\r\n", ports[MODEL_PAIR]);
    try_on(MODEL_PAIR, "two Origins", (request){ .headers = header }, 400);
}

/* ---- types and sizes of bodies ---- */

static void wrong_types(void)
{
    static const char *const types[] = { "text/plain",
                                         "text/html",
                                         "application/xml",
                                         "application/jsonx",
                                         "multipart/form-data; boundary=x",
                                         "application/octet-stream",
                                         "json",
                                         "",
                                         ";",
                                         "application/json; charset=latin1",
                                         "application/json; charset=utf-16",
                                         "application/json, text/plain",
                                         "application/json x" };
    static const char *const paths[] = { "/attention", "/tokenize", "/translate", "/v1/embeddings" };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int k = 0; k < 4; k++)
            try_on(MODEL_PAIR, "a type", (request){ .path = paths[k], .type = types[i], .body = ATTEND },
                   k == 2 && !strncmp(types[i], "multipart", 9) ? 400 : 415);
    for (int k = 0; k < 4; k++) {
        try_on(MODEL_PAIR, "JSON without a type", (request){ .path = paths[k], .no_type = true, .body = ATTEND },
               k < 2 ? 200 : 400);
        try_on(MODEL_PAIR, "JSON that curl calls a form",
               (request){ .path = paths[k], .type = "application/x-www-form-urlencoded", .body = " \n" ATTEND },
               k < 2 ? 200 : 400);
        try_on(MODEL_PAIR, "no JSON, without a type", (request){ .path = paths[k], .no_type = true, .body = "text=x" }, 400);
        try_on(MODEL_PAIR, "no body and no length", (request){ .method = "POST", .path = paths[k] }, 411);
        try_on(MODEL_PAIR, "an empty body", (request){ .path = paths[k], .body = "" }, 400);
    }
    try_on(MODEL_PAIR, "a form where JSON is wanted",
           (request){ .path = "/attention", .type = "application/x-www-form-urlencoded", .body = "text=x" }, 415);
}

static void too_large(void)
{
    char *body = malloc(BIG + 1);
    assert_non_null(body);
    memset(body, ' ', BIG);
    memcpy(body, ATTEND, strlen(ATTEND));
    for (size_t n = MAX_REQUEST + 1; n <= BIG; n *= 3)
        for (int k = 0; k < PATHS; k++)
            if (all_paths[k].is_post && k != 6 && k != 9)
                try_on(MODEL_PAIR, "a large body", (request){ .path = all_paths[k].path, .body = body, .length = n },
                       k == 10 && n <= QKV__LARGE * MAX_REQUEST ? 400 : 413); /* that one has no input */
    try_on(MODEL_PAIR, "a large body where none is wanted",
           (request){ .method = "GET", .path = "/health", .body = body, .length = MAX_REQUEST + 1 }, 413);
    try_on(MODEL_PAIR, "as large as it may be", (request){ .path = "/attention", .body = body, .length = MAX_REQUEST }, 200);
    free(body);
    try_on(MODEL_PAIR, "a length that is said to be large",
           (request){ .method = "POST",
                      .path = "/attention",
                      .headers = "Content-Type: application/json\r\nContent-Length: 99999999999\r\n" },
           413);
    try_on(MODEL_PAIR, "and waits to be told",
           (request){ .method = "POST",
                      .path = "/attention",
                      .headers = "Content-Type: application/json\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n" },
           413);
}

/* ---- what is no JSON, or not ours ---- */

static void bad_json(void)
{
    static const char *const bodies[] = {
        "{",
        "}",
        "[",
        "]",
        "[]",
        "[{}]",
        "null",
        "true",
        "1",
        "\"x\"",
        "x",
        "{x}",
        "{\"text\"}",
        "{\"text\":}",
        "{\"text\":\"x\"",
        "{\"text\":\"x}",
        "{'text':'x'}",
        "{\"text\":\"x\",}",
        "{\"text\":\"x\"} x",
        "{\"text\":\"x\"}{}",
        "{\"text\":\"x\"},",
        "{\"text\" \"x\"}",
        "{\"text\":\"x\" \"target\":\"y\"}",
        "{\"text\":\"x\",\"text\":\"y\"}",
        "{\"text\":\"x\",\"a\":1,\"a\":1}",
        "{\"text\":\"\\x\"}",
        "{\"text\":\"\\u12\"}",
        "{\"text\":\"\\ud800\"}",
        "{\"text\":\"\\udc00\\ud800\"}",
        "{\"text\":\"\\ud800x\"}",
        "{\"text\":\"a\nb\"}",
        "{\"text\":\"a\tb\"}",
        "{\"text\":\"a\001b\"}",
        "{\"text\":NaN}",
        "{\"text\":Infinity}",
        "{\"text\":undefined}",
        "{\"text\":\"x\",\"n\":01}",
        "{\"text\":\"x\",\"n\":+1}",
        "{\"text\":\"x\",\"n\":1.}",
        "{\"text\":\"x\",\"n\":.5}",
        "{\"text\":\"x\",\"n\":1e}",
        "{\"text\":\"x\",\"n\":1e999}",
        "{\"text\":\"x\",\"n\":99999999999999999999}",
        "{\"text\":\"x\",\"n\":0x10}",
        "{\"text\":\"x\" /* c */}",
        "// c\n{\"text\":\"x\"}",
        "{text:\"x\"}",
        "\xEF\xBB\xBF{\"text\":\"x\"}",
        "text=x",
        "<text>x</text>",
        "{\"text\":True}",
        "\x1f\x8b\x08",
    };
    static const char *const paths[] = { "/attention", "/tokenize", "/translate" };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (int k = 0; k < 3; k++) try_on(MODEL_PAIR, bodies[i], (request){ .path = paths[k], .body = bodies[i] }, 400);
}

static void deep_json(void)
{
    char body[MAX_REQUEST];
    for (int brackets = 0; brackets < 2; brackets++) {
        int n = snprintf(body, sizeof body, "{\"text\":\"x\",\"a\":");
        while (n < MAX_REQUEST - 1) n += snprintf(body + n, sizeof body - (size_t)n, "%s", brackets ? "[" : "{\"a\":");
        try_on(MODEL_PAIR, "nested without end", (request){ .path = "/attention", .body = body }, 400);
    }
    memset(body, '[', 2040);
    memset(body + 2040, ']', 2040);
    body[4080] = '\0';
    try_on(MODEL_PAIR, "nested deeply", (request){ .path = "/attention", .body = body }, 400);
    memcpy(body, "{\"text\":\"x\0y\"}", 15);
    try_on(MODEL_PAIR, "a NUL", (request){ .path = "/attention", .body = body, .length = 14 }, 400);
    memcpy(body, "{\"text\":\"x\"}\0", 13);
    try_on(MODEL_PAIR, "a NUL behind", (request){ .path = "/attention", .body = body, .length = 13 }, 400);
    static const char key[] = "{\"text\\u0000b\":1,\"text\":\"x\"}"; /* the key of another member, which is ignored */
    try_on(MODEL_PAIR, "a NUL in a key", (request){ .path = "/attention", .body = key }, 200);
}

static void bad_utf8(void)
{
    static const char *const pieces[] = { "\xFF",
                                          "\xFE",
                                          "\x80",
                                          "\xBF",
                                          "\xC0\x80",
                                          "\xC1\xBF",
                                          "\xC3",
                                          "\xC3\x28",
                                          "\xE2\x82",
                                          "\xE2\x28\xA1",
                                          "\xE0\x80\x80",
                                          "\xE0\x9F\xBF",
                                          "\xED\xA0\x80",
                                          "\xED\xBF\xBF",
                                          "\xF0\x80\x80\x80",
                                          "\xF0\x8F\xBF\xBF",
                                          "\xF0\x9F\x98",
                                          "\xF4\x90\x80\x80",
                                          "\xF5\x80\x80\x80",
                                          "\xF8\x88\x80\x80\x80" };
    char body[64];
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        snprintf(body, sizeof body, "{\"text\":\"a%sb\"}", pieces[i]);
        try_on(MODEL_PAIR, "not UTF-8", (request){ .path = "/attention", .body = body }, 400);
        snprintf(body, sizeof body, "{\"text\":\"a\",\"%s\":1}", pieces[i]);
        try_on(MODEL_CLASSES, "a name that is not UTF-8", (request){ .path = "/classify", .body = body }, 400);
        char form[128];
        int n = snprintf(form, sizeof form, "source=en&target=zh&q=a");
        for (const char *c = pieces[i]; *c; c++) n += snprintf(form + n, sizeof form - (size_t)n, "%%%02X", (unsigned char)*c);
        try_on(MODEL_PAIR, "a form that is not UTF-8",
               (request){ .path = "/translate", .type = "application/x-www-form-urlencoded", .body = form }, 400);
    }
}

static void bad_forms(void)
{
    static const char *const forms[] = {
        "q=x",
        "q=x&source=en",
        "source=en&target=zh",
        "q=x&source=xx&target=zh",
        "q=x&source=en&target=en",
        "q=x&source=en&target=zh&q=y",
        "q=%&source=en&target=zh",
        "q=%4&source=en&target=zh",
        "q=%4g&source=en&target=zh",
        "q=%g4&source=en&target=zh",
        "q=x&source=en&target=zh&%00=1",
        "q=x&source=en&target=zh&%FF=1",
        "q=x&source=en&target=zh&format=HTML",
        "q=x&source=en&target=zh&split=yes",
        "q=x&source=en&target=zh&alternatives=x",
        "q=x&source=en&target=zh&alternatives=16",
        "q=x&source=en&target=zh&alternatives=-1",
        "q=x&source=en&target=zh&alternatives=",
        "q=x&source=en&target=zh&alternatives=1.5",
        "q=x&source=en&target=zh&alternatives=999999999999",
        "&&&",
        "=",
        "=x",
        "{}",
        "q",
        "%",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        try_on(MODEL_PAIR, forms[i],
               (request){ .path = "/translate", .type = "application/x-www-form-urlencoded", .body = forms[i] }, 400);
}

static void bad_multipart(void)
{
    static const char *const types[] = {
        "multipart/form-data;",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"b",
        "multipart/form-data; bound=b",
        "multipart/form-data; boundary=aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabb"
    };
    static const char part[] = "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nx\r\n--b--\r\n";
    static const char *const bodies[] = {
        "x",
        "--",
        "--b",
        "--b--",
        "--b\r\n--b--",
        "--b\r\n\r\n--b--",
        "--b\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nx",
        "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nx\r\n--b",
        "--b\r\nContent-Disposition: form-data; name=\"q\"\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=q\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"q\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"q\"; filename=\"f\"\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"\xFF\"\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n\xFF\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nx\r\n--bContent-Disposition: form-data; "
        "name=\"r\"\r\n\r\nx\r\n--b--",
        "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; "
        "name=\"q\"\r\n\r\nx\r\n--b--",
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        try_on(MODEL_PAIR, types[i], (request){ .path = "/translate?source=en&target=zh", .type = types[i], .body = part },
               400);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        try_on(
            MODEL_PAIR, bodies[i],
            (request){ .path = "/translate?source=en&target=zh", .type = "multipart/form-data; boundary=b", .body = bodies[i] },
            400);
    try_on(MODEL_PAIR, "as it should be",
           (request){ .path = "/translate?source=en&target=zh",
                      .type = "Multipart/form-data; charset=utf-8; boundary=\"b\"",
                      .body = part },
           200);
}

static void bad_queries(void)
{
    static const char *const queries[] = { "?",
                                           "?q",
                                           "?q=x",
                                           "?q=x&source=en",
                                           "?q=x&source=en&target=zh&target=zh",
                                           "?q=%&source=en&target=zh",
                                           "?q=%FF&source=en&target=zh",
                                           "?q=x&source=en&target=zh&alternatives=16",
                                           "?q=x&source=xx&target=zh",
                                           "?q=x&source=en&target=zh&format=pdf" };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char path[128];
        snprintf(path, sizeof path, "/translate%s", queries[i]);
        try_on(MODEL_PAIR, "a query", (request){ .path = path, .body = "", .no_type = true }, 400);
    }
    try_on(MODEL_PAIR, "without a body", (request){ .method = "POST", .path = "/translate?q=x&source=en&target=zh" }, 200);
    try_on(MODEL_PAIR, "a field twice", (request){ .path = "/translate?q=x", .body = TRANSLATE }, 400);
    try_on(MODEL_PAIR, "fields of other paths", (request){ .path = "/attention?text=x", .body = "{}" }, 400);
    try_on(MODEL_PAIR, "a query without a body", (request){ .method = "POST", .path = "/attention?text=x" }, 411);
    try_on(MODEL_PAIR, "a query is none of /languages'", (request){ .path = "/languages?%=1" }, 400);
}

static void bad_html(void)
{
    char body[MAX_REQUEST];
    int n = snprintf(body, sizeof body, "{\"source\":\"en\",\"target\":\"zh\",\"format\":\"html\",\"q\":[\"");
    for (int k = 0; k < 900; k++) n += snprintf(body + n, sizeof body - (size_t)n, "x<b>");
    strcpy(body + n, "\"]}");
    try_on(MODEL_PAIR, "many texts", (request){ .path = "/translate", .body = body }, 200);
    char *much = malloc(BIG);
    assert_non_null(much);
    static const char *const pieces[] = { "<",   "<!--", "<a \\\"", "<script>",      "&",   "&#", "&#x", "</",
                                          "<a/", "<?",   "]]>",     "<b translate=", "&amp" };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        n = snprintf(much, BIG, "{\"source\":\"en\",\"target\":\"zh\",\"format\":\"html\",\"split\":false,\"q\":\"");
        while (n < 600) n += snprintf(much + n, BIG - (size_t)n, "%s", pieces[i]);
        snprintf(much + n, BIG - (size_t)n, "\"}");
        try_on(MODEL_PAIR, pieces[i], (request){ .path = "/translate", .body = much }, 200);
    }
    free(much);
}

/* ---- members: of every type but their own, out of range, missing ---- */

enum { STRING = 1, WHOLE = 2, REAL = 4, FLAG = 8, ARRAY = 16, OBJECT = 32 };

typedef struct member {
    int kind;
    const char *path, *body, *name;
    int types;          /* it may have */
    const char *beside; /* JSON values of its own types that are wrong too */
} member;

#define HEAD_OF "{\"text\":\"I love you\",\"kind\":\"cross\",\"layer\":0,\"head\":0}"
#define PROMPT "{\"prompt\":\"the\",\"max_tokens\":2}"
#define INPUT "{\"input\":\"the\"}"
static const member members[] = {
    { MODEL_PAIR, "/translate", TRANSLATE, "q", STRING | ARRAY, "[[], [1], [\"x\", null], [[\"x\"]], [\"x\", {}]]" },
    { MODEL_PAIR, "/translate", TRANSLATE, "source", STRING, "[\"\", \"zh\", \"EN\", \"en\\u0000\", \"english\"]" },
    { MODEL_PAIR, "/translate", TRANSLATE, "target", STRING, "[\"\", \"en\", \"auto\", \"zh-CN\"]" },
    { MODEL_PAIR, "/translate", TRANSLATE, "format", STRING, "[\"xml\", \"\", \"TEXT\"]" },
    { MODEL_PAIR, "/translate", TRANSLATE, "alternatives", WHOLE, "[-1, 16, 9223372036854775807]" },
    { MODEL_PAIR, "/attention", ATTEND, "text", STRING, "[\"\", \" \", \"\\n\\t\"]" },
    { MODEL_PAIR, "/attention", ATTEND, "target", STRING, "[]" },
    { MODEL_PAIR, "/attention", ATTEND, "target_ids", ARRAY, "[[\"1\"], [-1], [1.5], [4294967296], [100000], [null], [[1]]]" },
    { MODEL_PAIR, "/attention", ATTEND, "beam", WHOLE, "[0, -1, 17, 1000000]" },
    { MODEL_PAIR, "/attention", ATTEND, "n_best", WHOLE, "[0, -1, 17]" },
    { MODEL_PAIR, "/attention", ATTEND, "max_tokens", WHOLE, "[-1, 4097]" },
    { MODEL_PAIR, "/attention", ATTEND, "temperature", WHOLE | REAL, "[-1, -0.1, 101]" },
    { MODEL_PAIR, "/attention", ATTEND, "seed", WHOLE, "[]" },
    { MODEL_PAIR, "/attention", ATTEND, "special", FLAG, "[]" },
    { MODEL_PAIR, "/attention", ATTEND, "pieces", FLAG, "[]" },
    { MODEL_PAIR, "/attention", HEAD_OF, "kind", STRING, "[\"\", \"Cross\", \"self\"]" },
    { MODEL_PAIR, "/attention", HEAD_OF, "layer", WHOLE | STRING,
      "[-1, 2, 2147483647, 4294967296, \"0\", \"all\", \"Mean\", null]" },
    { MODEL_PAIR, "/attention", HEAD_OF, "head", WHOLE | STRING, "[-1, 2, \"rollout\", \"x\", null]" },
    { MODEL_PAIR, "/attention", HEAD_OF, "thumbnails", WHOLE, "[0, -1, 257]" },
    { MODEL_PAIR, "/attention", HEAD_OF, "rank", FLAG, "[]" },
    { MODEL_PAIR, "/tokenize", ATTEND, "text", STRING | ARRAY, "[[], [1], [null]]" },
    { MODEL_PAIR, "/tokenize", ATTEND, "side", STRING, "[\"\", \"both\"]" },
    { MODEL_CLASSES, "/classify", ATTEND, "text", STRING | ARRAY, "[[], [1], [null]]" },
    { MODEL_CLASSES, "/attention", ATTEND, "target", STRING, "[\"x\", \"\"]" },
    { MODEL_CLASSES, "/attention", ATTEND, "target_ids", ARRAY, "[[5], [0, 0]]" },
    { MODEL_CLASSES, "/attention", "{\"text\":\"x\",\"kind\":\"encoder\",\"rank\":true}", "kind", STRING,
      "[\"cross\", \"decoder\"]" },
    { MODEL_CLASSES, "/attention", "{\"text\":\"x\",\"kind\":\"encoder\",\"thumbnails\":8}", "kind", STRING,
      "[\"cross\", \"decoder\"]" },
    { MODEL_CLASSES, "/attention", "{\"text\":\"x\",\"kind\":\"encoder\",\"layer\":\"rollout\"}", "kind", STRING,
      "[\"cross\", \"decoder\"]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "prompt", STRING | ARRAY,
      "[[], [null], [1, \"x\"], [[]], [[1], 2], [[1], []], [-1], [1.5], [99999], [[1, \"x\"]], [[[1]]]]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "max_tokens", WHOLE, "[-1, -9223372036854775808]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "temperature", WHOLE | REAL, "[-0.5, 2.5, 3]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "top_p", WHOLE | REAL, "[0, -1, 1.5]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "top_k", WHOLE, "[-1, 4294967296]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "min_p", WHOLE | REAL, "[-0.1, 1.1]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "repetition_penalty", WHOLE | REAL, "[0, -1, 1e4]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "n", WHOLE, "[0, -1, 17]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "stop", STRING | ARRAY, "[\"\", \"a\\u0000b\", [\"\"], [1], [[]]]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "seed", WHOLE, "[]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "stream", FLAG, "[]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "echo", FLAG, "[]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "logprobs", WHOLE, "[-1, 6]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "best_of", WHOLE, "[0, 2]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "presence_penalty", WHOLE | REAL, "[2.5]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "frequency_penalty", WHOLE | REAL, "[-2.01]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "logit_bias", OBJECT, "[{\"1\": 5}]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "suffix", WHOLE | REAL | FLAG | ARRAY | OBJECT, "[]" },
    { MODEL_LANGUAGE, "/v1/completions", PROMPT, "stream_options", OBJECT, "[{\"include_usage\": 1}]" },
    { MODEL_ENCODER, "/v1/embeddings", INPUT, "input", STRING | ARRAY,
      "[[], [1, \"x\"], [\"x\", 1], [[]], [[1], 2], [[1], []], [[1], \"x\"], [-1], [1.5], [330], [[1, \"x\"]], [[[1]]], "
      "[9223372036854775807], [null], [{}]]" },
    { MODEL_ENCODER, "/v1/embeddings", INPUT, "encoding_format", STRING, "[\"\", \"hex\"]" },
    { MODEL_ENCODER, "/v1/embeddings", INPUT, "dimensions", WHOLE, "[0, -1, 17, 9223372036854775807]" },
    { MODEL_PAIR, "/tokenize", "{\"content\":\"the\"}", "content", STRING, "[]" },
    { MODEL_PAIR, "/tokenize", "{\"content\":\"the\"}", "with_pieces", FLAG, "[]" },
    { MODEL_PAIR, "/tokenize", "{\"content\":\"the\"}", "add_special", FLAG, "[]" },
    { MODEL_PAIR, "/tokenize", "{\"content\":\"the\"}", "prompt", 0, "[\"x\"]" },
    { MODEL_PAIR, "/tokenize", "{\"content\":\"the\"}", "text", 0, "[\"x\"]" },
    { MODEL_PAIR, "/tokenize", "{\"prompt\":\"the\"}", "prompt", STRING, "[]" },
    { MODEL_PAIR, "/tokenize", "{\"prompt\":\"the\"}", "return_token_strs", FLAG, "[]" },
    { MODEL_PAIR, "/detokenize", "{\"tokens\":[5]}", "tokens", ARRAY,
      "[null, [-1], [1.5], [\"1\"], [null], [[5]], [330], [4294967296], [9223372036854775807]]" },
    { MODEL_PAIR, "/detokenize", "{\"tokens\":[5]}", "side", STRING, "[\"\", \"both\"]" },
};

static int type_of(const qkv__json_value *x)
{
    if (qkv__json_is_string(x)) return STRING;
    if (qkv__json_is_int(x)) return WHOLE;
    if (qkv__json_is_number(x)) return REAL;
    if (qkv__json_is_bool(x)) return FLAG;
    return qkv__json_is_array(x) ? ARRAY : OBJECT;
}

static void try_member(const member *m, const qkv__json_value *value, int wanted)
{
    const qkv__json_value *body = json_parse_text(m->body);
    char *given = value ? json_text(value, QKV__JSON_COMPACT) : NULL;
    assert_non_null(body);
    json_edit(&body, m->name, given);
    free(given);
    char *text = json_text(body, QKV__JSON_COMPACT);
    try_on(m->kind, text, (request){ .path = m->path, .body = text }, wanted);
    free(text);
    json_free(body);
}

static void bad_members(void)
{
    const qkv__json_value *any = json_parse_text("[\"x\", 1, 0.5, true, [\"x\"], {\"x\": 1}]");
    for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
        const member *m = &members[k];
        const qkv__json_value *beside = json_parse_text(m->beside);
        for (size_t i = 0; i < qkv__json_size(any); i++)
            if (!(type_of(qkv__json_at(any, i)) & m->types)) try_member(m, qkv__json_at(any, i), 400);
        for (size_t i = 0; i < qkv__json_size(beside); i++) try_member(m, qkv__json_at(beside, i), 400);
        if (!k || strcmp(m[-1].body, m->body))
            try_on(m->kind, "as it should be", (request){ .path = m->path, .body = m->body }, 200);
        json_free(beside);
    }
    json_free(any);
    static const int needed[][2] = { { 0, 1 },  { 1, 1 },  { 2, 1 },  { 5, 1 }, { 16, 1 },
                                     { 17, 1 }, { 20, 1 }, { 22, 1 }, { 28, 1 } };
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) try_member(&members[needed[k][0]], NULL, 400);
}

static void too_much(void)
{
    static const struct {
        int kind;
        const char *path, *name;
    } lists[] = { { MODEL_PAIR, "/translate", "q" },
                  { MODEL_PAIR, "/tokenize", "text" },
                  { MODEL_CLASSES, "/classify", "text" },
                  { MODEL_LANGUAGE, "/v1/completions", "prompt" },
                  { MODEL_LANGUAGE, "/v1/completions", "stop" } };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char body[1024];
        int n = snprintf(body, sizeof body, "{\"source\":\"en\",\"target\":\"zh\",%s\"%s\":[\"x\"",
                         !strcmp(lists[i].name, "stop") ? "\"prompt\":\"x\"," : "", lists[i].name);
        for (int k = 1; k < 65; k++) n += snprintf(body + n, sizeof body - (size_t)n, ",\"x\"");
        snprintf(body + n, sizeof body - (size_t)n, "]}");
        try_on(lists[i].kind, "65 texts", (request){ .path = lists[i].path, .body = body }, 400);
    }
    char *inputs = malloc(BIG);
    assert_non_null(inputs);
    for (int n_texts = 2048; n_texts <= 2049; n_texts++) {
        int n = snprintf(inputs, BIG, "{\"encoding_format\":\"base64\",\"input\":[\"x\"");
        for (int k = 1; k < n_texts; k++) n += snprintf(inputs + n, BIG - (size_t)n, ",\"x\"");
        snprintf(inputs + n, BIG - (size_t)n, "]}");
        try_on(MODEL_ENCODER, "many texts", (request){ .path = "/v1/embeddings", .body = inputs }, n_texts == 2048 ? 200 : 400);
    }
    free(inputs);
    static const char *const bodies[] = {
        "{\"prompt\":[\"a\",\"b\",\"c\",\"d\",\"e\"],\"n\":16,\"max_tokens\":1}",
        "{\"prompt\":[\"a\",\"b\"],\"n\":9223372036854775807}",
        "{\"prompt\":\"a\",\"n\":2,\"best_of\":4}",
        "{\"prompt\":\"a\",\"suffix\":\"b\"}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        try_on(MODEL_LANGUAGE, bodies[i], (request){ .path = "/v1/completions", .body = bodies[i] }, 400);
    try_on(MODEL_PAIR, "more results than the beam",
           (request){ .path = "/attention", .body = "{\"text\":\"x\",\"beam\":2,\"n_best\":3}" }, 400);
    try_on(MODEL_PAIR, "two targets",
           (request){ .path = "/attention", .body = "{\"text\":\"x\",\"target\":\"y\",\"target_ids\":[5]}" }, 400);
}

/* ---- HTTP itself ---- */

static void bad_http(void)
{
    const struct {
        const char *text;
        int wanted; /* 0: the connection ends */
    } raw[] = {
        { "GARBAGE\r\n\r\n", 0 },
        { "\r\n\r\n\r\n\r\nGARBAGE\r\n\r\n", 0 },
        { "GET\r\n\r\n", 0 },
        { "GET /health\r\n\r\n", 400 },
        { "GET /health HTTP/1.1\r\nHost\r\n\r\n", 400 },
        { "GET /health HTTP/9.9\r\nHost: x\r\n\r\n", 505 },
        { "GET /health HTTP/x\r\nHost: x\r\n\r\n", 400 },
        { "GET /health FTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "GET /health HTTP/1.1\r\n\r\n", 400 },
        { "GET /health HTTP/1.0\r\n\r\n", 400 },
        { "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400 },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400 },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400 },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\n{}", 400 },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999999\r\n\r\n", 413 },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400 },
        { "POST /attention HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 413 },
        { "\x16\x03\x01\x02\x01\xfc\x03\x03\r\n\r\n", 0 },
        { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505 },
    };
    for (size_t i = 0; i < sizeof raw / sizeof *raw; i++) try_raw(raw[i].text, raw[i].text, strlen(raw[i].text), raw[i].wanted);
}

/* Bytes that are reserved for bodies. */
static size_t reserved_bytes(qkv_server *s)
{
    size_t n = 0;
    pthread_mutex_lock(&s->connections.lock);
    for (const qkv__link *x = s->connections.first; x; x = x->next) n += x->reserved;
    pthread_mutex_unlock(&s->connections.lock);
    return n;
}

/* A client that has as many bytes of large bodies as it may is refused, another one is not. */
static void large_bodies(void)
{
    enum { OWN = QKV__LARGE_BODIES / 2, LARGEST = QKV__LARGE * MAX_REQUEST };
    int fds[OWN];
    char head[256], *body = malloc(LARGEST + 1), *bytes;
    assert_non_null(body);
    for (int i = 0; i < OWN; i++) {
        const int n = snprintf(head, sizeof head,
                               "POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: %d\r\n\r\n{",
                               ports[MODEL_ENCODER], LARGEST);
        fds[i] = connect_to(ports[MODEL_ENCODER]);
        send_bytes(fds[i], head, (size_t)n);
    }
    while (reserved_bytes(servers[MODEL_ENCODER]) < OWN * LARGEST) usleep(1000);
    memset(body, ' ', LARGEST);
    memcpy(body, "{\"input\":\"x\"}", 13);
    body[MAX_REQUEST + 1] = '\0';
    const request large = { .path = "/v1/embeddings", .body = body },
                  small = { .path = "/v1/embeddings", .body = "{\"input\":\"x\"}" };
    try_on(MODEL_ENCODER, "one large body more", large, 503);
    try_on(MODEL_ENCODER, "small ones are let in", small, 200);
    size_t size = write_request(ports[MODEL_ENCODER], &large, &bytes);
    int other = connect_from(INADDR_LOOPBACK + 1, ports[MODEL_ENCODER]);
    reply r = { 0 };
    send_bytes(other, bytes, size);
    receive_reply(other, &r, false);
    judge("a large body of another client", &large, &r, 200);
    free_reply(&r);
    close(other);
    for (int i = 0; i < OWN; i++) close(fds[i]);
    while (reserved_bytes(servers[MODEL_ENCODER])) usleep(1000);
    try_on(MODEL_ENCODER, "large ones again", large, 200);
    free(bytes);
    free(body);
}

/* A body in pieces, without a length. */
static void chunks(void)
{
    enum { ROOM = 4 * MAX_REQUEST };
    static const struct {
        const char *coding;
        int pieces, wanted;
    } tries[] = { { "chunked", 0, 200 }, { "chunked", 3, 200 },
                  { "Chunked", 0, 200 }, { "chunked", MAX_REQUEST / 16 + 1, 413 },
                  { "gzip", 0, 501 },    { "gzip, chunked", 0, 501 },
                  { "identity", 0, 501 } };
    char *text = malloc(ROOM);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        int n = snprintf(text, ROOM,
                         "POST /attention HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                         "Transfer-Encoding: %s\r\n\r\n%zx\r\n%s\r\n",
                         ports[MODEL_PAIR], tries[i].coding, strlen(ATTEND), ATTEND);
        for (int k = 0; k < tries[i].pieces; k++) n += snprintf(text + n, (size_t)(ROOM - n), "10\r\n                \r\n");
        n += snprintf(text + n, (size_t)(ROOM - n), "0\r\n\r\n");
        assert_true(n < ROOM);
        try_raw(tries[i].coding, text, (size_t)n, tries[i].wanted);
    }
    free(text);
}

/* A body whose end can be read in two ways is refused, also where only others would read one of them, and what comes behind it
 * on the connection is no request. */
static void two_ends(void)
{
    static const char *const ends[] = {
        "Content-Length: 22\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 22\r\n",
        "Content-Length: 22\r\nContent-Length: 22\r\n",
        "Content-Length: 22\r\nContent-Length: 4\r\n",
        "content-length: 4\r\nCONTENT-LENGTH: 22\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length:\r\n 22\r\n",
        "Transfer-Encoding:\r\n\tchunked\r\n",
        "Content-Length : 22\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Content-Length : 22\r\nContent-Length: 4\r\n",
        "X: y\r\n Content-Length: 22\r\n",
        "X: y\rContent-Length: 22\r\n",
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (int is_chunked = 0; is_chunked < 2; is_chunked++) {
            char text[1024];
            int port = ports[MODEL_PAIR], fd = connect_to(port);
            int n = snprintf(text, sizeof text,
                             "POST /attention HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n%s\r\n%s"
                             "GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n",
                             port, ends[i], is_chunked ? "16\r\n" ATTEND "\r\n0\r\n\r\n" : ATTEND, port);
            reply r = { 0 };
            send_bytes(fd, text, (size_t)n);
            while (receive_some(fd, &r)) continue;
            if (r.text && r.length > 12) r.status = atoi(r.text + 9);
            judge(ends[i], NULL, &r, r.text && strstr(r.text + 1, "HTTP/1.1 ") ? -1 : 400);
            free_reply(&r);
            close(fd);
        }
}

static void floods(void)
{
    char *headers = malloc(BIG), *path = malloc(BIG);
    assert_true(headers && path);
    for (int n = 0, i = 0; n < BIG - 64; i++) n += snprintf(headers + n, 64, "X-Header-%d: some value of no use\r\n", i);
    try_on(MODEL_PAIR, "many headers", (request){ .headers = headers }, 431);
    memset(headers, 'a', BIG);
    memcpy(headers, "X: ", 3);
    memcpy(headers + BIG - 3, "\r\n", 3);
    try_on(MODEL_PAIR, "a long header", (request){ .headers = headers }, 431);
    memset(headers, 'a', BIG);
    memcpy(headers + BIG - 6, ":b\r\n\0", 5);
    try_on(MODEL_PAIR, "a long name", (request){ .headers = headers }, 431);
    memset(path, 'a', BIG);
    path[0] = '/';
    path[BIG - 1] = '\0';
    reply r = ask(ports[MODEL_PAIR], &(request){ .path = path });
    judge("a long path", NULL, &r, 414);
    free_reply(&r);
    free(headers);
    free(path);
}

/* ---- all of them ---- */

static void same_answers(int round, char *kept[MODEL_KINDS])
{
    static const char *const bodies[MODEL_KINDS] = { "{\"text\":\"I love you\",\"kind\":\"cross\",\"layer\":1,\"head\":0}",
                                                     "{\"text\":\"the cat\"}", "{\"text\":\"the cat\",\"max_tokens\":9}",
                                                     "{\"text\":\"the cat\",\"kind\":\"encoder\",\"layer\":\"rollout\"}" };
    for (int kind = 0; kind < MODEL_KINDS; kind++) {
        reply r = post(ports[kind], "/attention", bodies[kind]);
        assert_int_equal(r.status, 200);
        if (!round) kept[kind] = strdup(r.body);
        assert_string_equal(r.body, kept[kind]);
        free_reply(&r);
    }
}

static void every_wrong_request_gets_its_status(void **state)
{
    char *kept[MODEL_KINDS];
    (void)state;
    same_answers(0, kept);
    static void (*const groups[])(void) = { wrong_paths, wrong_methods, wrong_hosts, wrong_types, too_large,
                                            bad_json,    deep_json,     bad_utf8,    bad_forms,   bad_multipart,
                                            bad_queries, bad_html,      bad_members, too_much,    bad_http,
                                            chunks,      large_bodies,  two_ends,    floods };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) groups[i]();
    print_message("%d requests, %d answered otherwise than they should be\n", sent, wrong);
    assert_int_equal(wrong, 0);
    assert_true(sent >= LEAST_REQUESTS);
    same_answers(1, kept);
    for (int kind = 0; kind < MODEL_KINDS; kind++) free(kept[kind]);
}

static int start(void **state)
{
    (void)state;
    return start_servers((qkv_server_opts){ .max_request = MAX_REQUEST });
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_wrong_request_gets_its_status) };
    return cmocka_run_group_tests_name("serve_hostile", tests, start, stop_servers);
}
