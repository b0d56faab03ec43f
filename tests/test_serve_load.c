/* test_serve_load.c: 16 clients at once, for QKV_LOAD_SECONDS (20 unless given), get the answers that one client gets, and the
 * server's memory does not grow. */
#include "serve/serve.h"
#include "http_client.h"
#include "serve_models.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

enum { CLIENTS = 16, MOST_ROUNDS = 1000000 };

/* Of more tokens than are read beside others at a time. */
#define TIMES_8(text) text text text text text text text text
#define LONG_TEXT TIMES_8(TIMES_8("the mat and the dog, I love you "))
#define LONG_PROMPT "{\"prompt\":\"" LONG_TEXT "\",\"max_tokens\":8,\"seed\":4}"

static const struct {
    int kind, status;
    const char *path, *body;
} asked[] = {
    { MODEL_PAIR, 200, "/", NULL },
    { MODEL_PAIR, 200, "/info", NULL },
    { MODEL_PAIR, 404, "/nothing", NULL },
    { MODEL_PAIR, 200, "/translate", "{\"q\":\"I love you\",\"source\":\"en\",\"target\":\"zh\",\"alternatives\":3}" },
    { MODEL_PAIR, 200, "/translate",
      "{\"q\":[\"the cat\",\"我爱你\",\"the dog and the cat\"],\"source\":\"en\",\"target\":\"zh\"}" },
    { MODEL_PAIR, 200, "/translate", "{\"q\":\"you love the cat\",\"source\":\"en\",\"target\":\"zh\"}" },
    { MODEL_PAIR, 200, "/translate", "{\"q\":\" \",\"source\":\"en\",\"target\":\"zh\"}" },
    { MODEL_PAIR, 400, "/translate", "{\"q\":[\"I\",\"" TIMES_8(LONG_TEXT) "\"],\"source\":\"en\",\"target\":\"zh\"}" },
    { MODEL_PAIR, 400, "/translate", "{\"q\":" },
    { MODEL_PAIR, 200, "/attention", "{\"text\":\"you love the cat\",\"n_best\":3}" },
    { MODEL_PAIR, 200, "/attention", "{\"text\":\"the mat and the dog\",\"kind\":\"cross\",\"layer\":1,\"head\":1}" },
    { MODEL_PAIR, 200, "/attention", "{\"text\":\"the mat and the dog\",\"kind\":\"encoder\",\"thumbnails\":48}" },
    { MODEL_PAIR, 200, "/v1/embeddings", "{\"input\":[\"the cat\",\"我爱你\"]}" },
    { MODEL_CLASSES, 200, "/classify", "{\"text\":[\"the cat\",\"I love you\",\"猫\"]}" },
    { MODEL_CLASSES, 200, "/classify", "{\"text\":\"the dog\"}" },
    { MODEL_CLASSES, 200, "/classify", "{\"text\":[\"the mat\",\"" LONG_TEXT "\"]}" },
    { MODEL_CLASSES, 200, "/v1/embeddings", "{\"input\":\"the dog\"}" },
    { MODEL_CLASSES, 200, "/attention", "{\"text\":\"the cat sat\",\"kind\":\"encoder\",\"layer\":\"rollout\"}" },
    { MODEL_CLASSES, 200, "/tokenize", "{\"text\":\"the cat sat\"}" },
    { MODEL_LANGUAGE, 200, "/v1/completions", "{\"prompt\":\"the cat\",\"max_tokens\":30,\"seed\":5}" },
    { MODEL_LANGUAGE, 200, "/v1/completions",
      "{\"prompt\":[\"the\",\"我\"],\"n\":2,\"max_tokens\":20,\"temperature\":0.8,\"logprobs\":1,\"seed\":2}" },
    { MODEL_LANGUAGE, 200, "/v1/completions", "{\"prompt\":\"the cat\",\"max_tokens\":30,\"seed\":5,\"stream\":true}" },
    { MODEL_LANGUAGE, 200, "/v1/completions",
      "{\"prompt\":\"the cat\",\"max_tokens\":12,\"temperature\":0.5,\"top_k\":5,\"seed\":1,\"echo\":true,\"logprobs\":2}" },
    { MODEL_LANGUAGE, 200, "/v1/completions",
      "{\"prompt\":\"the dog and the cat sat on the mat and\",\"max_tokens\":60,\"temperature\":0,\"seed\":1,"
      "\"stop\":[\"a\",\"\\u000c\"]}" },
    { MODEL_LANGUAGE, 200, "/v1/completions", LONG_PROMPT },
    { MODEL_LANGUAGE, 400, "/v1/completions", "{\"prompt\":\"the cat\",\"max_tokens\":-1}" },
    { MODEL_LANGUAGE, 200, "/attention", "{\"text\":\"the cat\",\"max_tokens\":20,\"temperature\":1,\"seed\":9}" },
    { MODEL_ENCODER, 200, "/v1/embeddings", "{\"input\":\"the cat\",\"encoding_format\":\"base64\"}" },
    { MODEL_ENCODER, 200, "/attention", "{\"text\":\"the cat\",\"kind\":\"encoder\",\"rank\":true}" },
};
enum { ASKED = sizeof asked / sizeof *asked };
static char *expected[ASKED];

/* Bytes in small and in large blocks. An answer is there before its memory is given back: the look is taken when that is done. */
typedef struct in_use {
    size_t small, large;
} in_use;

static in_use memory_in_use(void)
{
    in_use now = { 0 };
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    in_use last;
    int looks = 0;
    do {
        struct mallinfo2 m = mallinfo2();
        last = now;
        now = (in_use){ m.uordblks, m.hblkhd };
        usleep(200000);
    } while (++looks < 50 && (now.small != last.small || now.large != last.large));
#endif
    return now;
}

/* ---- clients ---- */

/* Completions have a name and a time of their own, and begin with what others have read. */
static void forget_names(reply *r)
{
    char *text = r->text + (r->body - r->text);
    for (char *at = text; (at = strstr(at, "\"id\":\"cmpl-")); at++)
        for (char *c = at + 11; *c != '"'; c++) *c = 'x';
    for (char *at = text; (at = strstr(at, "\"created\":")); at++)
        for (char *c = at + 10; *c >= '0' && *c <= '9'; c++) *c = '0';
    for (char *at = text; (at = strstr(at, "\"cached_tokens\":")); at++)
        for (char *c = at + 16; *c >= '0' && *c <= '9'; c++) *c = 'x';
}

/* The numbers of completions grow, and with them their names: a digit more is none that counts. So it is with cached tokens. */
static bool is_same(const reply *r, int i)
{
    const char *a = r->body, *b = expected[i];
    while (*a && *b) {
        while (*a == 'x' && a[1] == 'x') a++;
        while (*b == 'x' && b[1] == 'x') b++;
        if (*a++ != *b++) return false;
    }
    return !*a && !*b && r->status == asked[i].status;
}

/* On the connection that is open, or a new one. */
static reply ask_on(int *fd, int i)
{
    char *bytes;
    const request q = { .path = asked[i].path, .body = asked[i].body };
    size_t size = write_request(ports[asked[i].kind], &q, &bytes);
    reply r = { 0 };
    if (*fd < 0) *fd = connect_to(ports[asked[i].kind]);
    if (*fd >= 0 && send_bytes(*fd, bytes, size)) receive_reply(*fd, &r, false);
    free(bytes);
    if (r.body) forget_names(&r);
    return r;
}

typedef struct client {
    pthread_t thread;
    int number;
    double end;
    long requests;
    int wrong; /* what was answered otherwise; -1: nothing */
} client;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every client in an order of its own; every third request leaves the connection open for the next one to the same server. */
static void *run_client(void *data)
{
    client *c = data;
    for (long round = 0; round < MOST_ROUNDS && seconds() < c->end && c->wrong < 0; round++) {
        int i = (int)((round * (2 * c->number + 1) + c->number) % ASKED), fd = -1;
        for (int again = 0; again < 1 + (round % 3 == 0) && c->wrong < 0; again++) {
            reply r = ask_on(&fd, i);
            if (!r.text || !is_same(&r, i)) c->wrong = i;
            if (c->wrong >= 0) print_error("%s %s: %s\n", asked[i].path, asked[i].body, r.text ? r.text : "no answer");
            c->requests++;
            free_reply(&r);
        }
        close(fd);
    }
    return NULL;
}

static long run_clients(double for_seconds)
{
    client clients[CLIENTS];
    long requests = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){ .number = i, .end = seconds() + for_seconds, .wrong = -1 };
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        requests += clients[i].requests;
    }
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(clients[i].wrong, -1);
    return requests;
}

static void sixteen_clients_are_answered_as_one(void **state)
{
    const char *given = getenv("QKV_LOAD_SECONDS");
    double duration = given && atof(given) > 0 ? atof(given) : 20; /* each request takes a port for a minute */
    (void)state;
    for (int i = 0; i < ASKED; i++) {
        int fd = -1;
        reply r = ask_on(&fd, i);
        close(fd);
        assert_non_null(r.body);
        expected[i] = strdup(r.body);
        assert_true(is_same(&r, i));
        free_reply(&r);
    }
    long requests = run_clients(duration / 3); /* by then every part has the memory that it keeps */
    in_use before = memory_in_use();
    requests += run_clients(duration * 2 / 3);
    in_use after = memory_in_use();
    print_message("%ld requests in %.0f s; in use %zu and %zu bytes, then %zu and %zu\n", requests, duration, before.small,
                  before.large, after.small, after.large);
    assert_true(requests > CLIENTS * ASKED);
    assert_true(after.small <= before.small + (256 << 10));
    assert_true(after.large <= before.large + (12 << 20)); /* scratch of threads, which grows once to what a product needs */
    for (int i = 0; i < ASKED; i++) free(expected[i]);
}

static int start(void **state)
{
    (void)state;
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1); /* as qkv serve does: see <qkv/serve.h> */
#endif
    return start_servers((qkv_server_opts){ 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sixteen_clients_are_answered_as_one) };
    return cmocka_run_group_tests_name("serve_load", tests, start, stop_servers);
}
