/* test_serve_clients.c: clients that leave, clients that take more than their share, and files that change while clients ask. */
#include "serve/serve.h"
#include "folder.h"
#include "http_client.h"
#include "serve_models.h"

#include "serve/server.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static qkv_model *model;

static qkv_server *serve(qkv_server_opts o)
{
    qkv_server *s = qkv_server_new(model, &o);
    if (!s) print_error("%s\n", qkv_error());
    assert_non_null(s);
    return s;
}

static int use_model(int kind)
{
    model = make_served(kind);
    return model ? 0 : -1;
}

static int use_language(void **state) { return (void)state, use_model(MODEL_LANGUAGE); }
static int use_pair(void **state) { return (void)state, use_model(MODEL_PAIR); }
static int use_encoder(void **state) { return (void)state, use_model(MODEL_ENCODER); }

static int free_model(void **state)
{
    (void)state;
    qkv_model_free(model);
    qkv_shutdown();
    return 0;
}

/* ---- those who leave ---- */

static unsigned long long steps(qkv_server *s) { return atomic_load(&s->steps); }

/* Requests that have arrived and are not over. */
static int active(qkv_server *s)
{
    pthread_mutex_lock(&s->connections.lock);
    int n = s->connections.active;
    pthread_mutex_unlock(&s->connections.lock);
    return n;
}

/* A request on a connection of its own, whose answer nobody waits for. */
static int send_only(int port, const char *path, const char *body)
{
    char *bytes;
    size_t size = write_request(port, &(request){ .path = path, .body = body }, &bytes);
    int fd = connect_to(port);
    assert_true(fd >= 0 && send_bytes(fd, bytes, size));
    free(bytes);
    return fd;
}

enum { LEAVING = 12 };

/* Some are under way and the others wait when their clients leave. A request after them is answered after no more steps than
 * its own and one for each that was under way. */
static void leave_all(const char *path, const char *large, const char *small)
{
    int fds[LEAVING];
    qkv_server *s = serve((qkv_server_opts){ 0 });
    int port = qkv_server_port(s);
    reply r = post(port, path, small);
    assert_int_equal(r.status, 200);
    free_reply(&r);
    unsigned long long alone = steps(s);
    for (int i = 0; i < LEAVING; i++) fds[i] = send_only(port, path, large);
    while (steps(s) < alone + 4) usleep(100);
    for (int i = 0; i < LEAVING; i++) close(fds[i]);
    unsigned long long left = steps(s);
    r = post(port, path, small);
    assert_int_equal(r.status, 200);
    free_reply(&r);
    unsigned long long more = steps(s) - left, most = alone + 2 * (unsigned long long)s->connections.most[QKV__TURN_BATCH];
    if (more > most) print_error("%s: %llu more steps\n", large, more);
    assert_true(more <= most);
    while (active(s)) usleep(100);
    assert_true(steps(s) - left <= most);
    qkv_server_free(s);
}

static void completions_end_when_their_clients_leave(void **state)
{
    static const char small[] = "{\"prompt\":\"the\",\"max_tokens\":2,\"temperature\":0}";
    (void)state;
    leave_all("/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":4096,\"temperature\":0}", small);
    leave_all("/v1/completions", "{\"prompt\":\"the\",\"max_tokens\":4096,\"temperature\":0,\"stream\":true}", small);
}

static void keep_last(void *data, const qkv_access *a) { *(qkv_access *)data = *a; }

/* What was made of an answer before its client left was not sent, and is not told. */
static void nothing_is_told_of_an_answer_that_was_not_sent(void **state)
{
    (void)state;
    qkv_access last = { .status = -1, .bytes = 1 };
    qkv_server *s = serve((qkv_server_opts){ .each_access = keep_last, .each_access_data = &last });
    int fd = send_only(qkv_server_port(s), "/v1/completions", "{\"prompt\":\"the\",\"n\":16,\"max_tokens\":4096}");
    while (!steps(s)) usleep(100);
    close(fd);
    while (active(s)) usleep(100);
    qkv_server_free(s); /* its threads are over: last is not written any more */
    assert_int_equal(last.status, 0);
    assert_int_equal(last.bytes, 0);
}

static void requests_are_lines_of_a_log(void **state)
{
    (void)state;
    qkv_buffer line = { 0 };
    const qkv_access a = { "127.0.0.1", "GET", "/a b\n\"\\\xe7", 404, 12, 3.25 };
    assert_int_equal(qkv_access_text(&a, 86400 * 365, &line), QKV_OK);
    assert_string_equal(line.data, "1971-01-01T00:00:00Z 127.0.0.1 GET /a\\x20b\\x0a\\x22\\x5c\\xe7 404 12 3.2");
    qkv_buffer_free(&line);
}

static void has_address(qkv_server *s, const char *before, const char *after)
{
    char wanted[96];
    qkv_buffer text = { 0 };
    snprintf(wanted, sizeof wanted, "%s%d%s", before, qkv_server_port(s), after);
    assert_int_equal(qkv_server_address(s, &text), QKV_OK);
    assert_string_equal(text.data, wanted);
    qkv_buffer_free(&text);
    qkv_server_free(s);
}

static void a_server_has_an_address(void **state)
{
    (void)state;
    has_address(serve((qkv_server_opts){ 0 }), "http://127.0.0.1:", "");
    has_address(serve((qkv_server_opts){ .token = "a+b/~" }), "http://127.0.0.1:", "/#token=a%2Bb%2F~");
    qkv_server *six = qkv_server_new(model, &(qkv_server_opts){ .host = "::1" });
    if (six) has_address(six, "http://[::1]:", ""); /* not every machine has such addresses */
}

/* leave_all() with a request of many long texts: `head`, the texts, and the end of the list and the object. */
static void leave_with_texts(const char *path, const char *head, int texts, int letters, const char *small)
{
    char *large = malloc(strlen(head) + (size_t)(texts * (letters + 3)) + 3);
    assert_non_null(large);
    int n = sprintf(large, "%s", head);
    for (int i = 0; i < texts; i++) {
        n += sprintf(large + n, "%s\"", i ? "," : "");
        memset(large + n, 'x', (size_t)letters);
        n += letters;
        n += sprintf(large + n, "\"");
    }
    strcpy(large + n, "]}");
    leave_all(path, large, small);
    free(large);
}

/* Sources of many tokens, whose translations may have twice as many. */
static void translations_end_when_their_clients_leave(void **state)
{
    (void)state;
    leave_with_texts("/translate", "{\"source\":\"source\",\"target\":\"target\",\"q\":[", 32, 200,
                     "{\"source\":\"source\",\"target\":\"target\",\"q\":\"I love you\"}");
}

/* A step is a batch of the encoder: texts of several lengths make several. */
static void embeddings_end_when_their_clients_leave(void **state)
{
    (void)state;
    leave_with_texts("/v1/embeddings", "{\"input\":[", 64, 600, "{\"input\":\"the cat\"}");
}

/* ---- those who take much ---- */

static int health_from(unsigned from, int port)
{
    char *bytes;
    reply r = { 0 };
    size_t size = write_request(port, &(request){ .path = "/health" }, &bytes);
    int fd = connect_from(from, port);
    if (fd >= 0 && send_bytes(fd, bytes, size)) receive_reply(fd, &r, false);
    int status = r.status;
    free_reply(&r);
    free(bytes);
    close(fd);
    return status;
}

static int count_open(const int *fds, int n)
{
    int open = 0;
    for (int i = 0; i < n; i++) {
        struct pollfd p = { .fd = fds[i], .events = POLLIN };
        open += poll(&p, 1, 0) == 0;
    }
    return open;
}

static int connections(qkv_server *s)
{
    pthread_mutex_lock(&s->connections.lock);
    int n = s->connections.n;
    pthread_mutex_unlock(&s->connections.lock);
    return n;
}

/* 256 connections that ask for half a request, which has two minutes to arrive. */
static void nobody_is_shut_out(void **state)
{
    enum { HALF = 256, OTHER = INADDR_LOOPBACK + 1, SHARE = 96 };
    int fds[HALF];
    (void)state;
    qkv_server *s = serve((qkv_server_opts){ .timeout = 120 });
    int port = qkv_server_port(s);
    for (int i = 0; i < HALF; i++) {
        assert_true((fds[i] = connect_to(port)) >= 0);
        send_bytes(fds[i], "GET /health HTTP/1.1\r\nHo", 25);
    }
    assert_int_equal(health_from(OTHER, port), 200);
    assert_int_equal(health_from(INADDR_LOOPBACK, port), 200);
    assert_int_equal(health_from(OTHER + 1, port), 200);
    assert_true(connections(s) <= SHARE + 3); /* of the others, which may not be closed yet */
    assert_true(count_open(fds, HALF) <= SHARE);
    for (int i = 0; i < HALF; i++) close(fds[i]);
    qkv_server_free(s);
}

/* All that are served are taken, by several addresses: the one that has waited longest makes room. */
static void the_longest_wait_makes_room(void **state)
{
    enum { SERVED = 128, EACH = 32 };
    int fds[SERVED];
    (void)state;
    qkv_server *s = serve((qkv_server_opts){ .timeout = 120 });
    int port = qkv_server_port(s);
    for (int i = 0; i < SERVED; i++) assert_true((fds[i] = connect_from(INADDR_LOOPBACK + (unsigned)(i / EACH), port)) >= 0);
    while (connections(s) < SERVED) usleep(100);
    assert_int_equal(count_open(fds, SERVED), SERVED);
    assert_int_equal(health_from(INADDR_LOOPBACK + 9, port), 200);
    struct pollfd first = { .fd = fds[0], .events = POLLIN };
    assert_int_equal(poll(&first, 1, 60000), 1);
    assert_int_equal(count_open(fds, SERVED), SERVED - 1);
    for (int i = 0; i < SERVED; i++) close(fds[i]);
    qkv_server_free(s);
}

/* Where every connection of an address is being answered, one more is told so, and others are served. */
static void too_many_are_told(void **state)
{
    enum { SHARE = 4 };
    int fds[SHARE];
    (void)state;
    qkv_server *s = serve((qkv_server_opts){ .connections_per_address = SHARE });
    int port = qkv_server_port(s);
    for (int i = 0; i < SHARE; i++)
        fds[i] = send_only(port, "/v1/completions", "{\"prompt\":\"the\",\"n\":16,\"max_tokens\":4096,\"temperature\":0}");
    while (active(s) < SHARE) usleep(100);
    assert_int_equal(health_from(INADDR_LOOPBACK, port), 503);
    assert_int_equal(health_from(INADDR_LOOPBACK + 1, port), 200);
    for (int i = 0; i < SHARE; i++) close(fds[i]);
    for (int status = 503; status != 200;) status = health_from(INADDR_LOOPBACK, port);
    qkv_server_free(s);
}

static int send_from(unsigned from, int port, const char *path, const char *body)
{
    char *bytes;
    size_t size = write_request(port, &(request){ .path = path, .body = body }, &bytes);
    int fd = connect_from(from, port);
    assert_true(fd >= 0 && send_bytes(fd, bytes, size));
    free(bytes);
    return fd;
}

/* More long streams of one client than a batch has places: a short text of another client needs few steps. */
static void a_client_with_many_streams_leaves_room(void **state)
{
    enum { STREAMS = 20, OTHER = INADDR_LOOPBACK + 1, MOST_STEPS = 16 * 900 }; /* fewer than one stream has */
    static const char stream[] = "{\"prompt\":\"the\",\"n\":16,\"max_tokens\":1000,\"temperature\":0,\"stream\":true}";
    int fds[STREAMS];
    (void)state;
    qkv_server *s = serve((qkv_server_opts){ 0 });
    int port = qkv_server_port(s);
    for (int i = 0; i < STREAMS; i++) fds[i] = send_only(port, "/v1/completions", stream);
    while (active(s) < STREAMS || steps(s) < 100) usleep(100);
    unsigned long long before = steps(s);
    for (int i = 0; i < 3; i++) {
        reply r = { 0 };
        int fd = send_from(OTHER, port, "/v1/completions", "{\"prompt\":\"you\",\"max_tokens\":2,\"temperature\":0}");
        receive_reply(fd, &r, false);
        assert_int_equal(r.status, 200);
        free_reply(&r);
        close(fd);
    }
    if (steps(s) - before > MOST_STEPS) fail_msg("%llu steps", steps(s) - before);
    for (int i = 0; i < STREAMS; i++) close(fds[i]);
    qkv_server_free(s);
}

/* {"input": [..]} of n texts that are 'length' letters long. */
static char *write_inputs(int n, int length)
{
    const size_t each = (size_t)length + 3;
    char *body = malloc(32 + (size_t)n * each), *at = body + sprintf(body, "{\"input\":[");
    assert_non_null(body);
    for (int i = 0; i < n; i++) {
        at += sprintf(at, "%s\"", i ? "," : "");
        memset(at, 'x', (size_t)length);
        at += length;
        *at++ = '"';
    }
    strcpy(at, "]}");
    return body;
}

/* 2,048 texts of one client, each a step or more: those of another client, more than go in one batch, come between. */
static void many_embeddings_leave_room(void **state)
{
    enum { MOST_STEPS = 300, OTHER = INADDR_LOOPBACK + 1 };
    char *large = write_inputs(2048, 400), *small = write_inputs(65, 1);
    reply r = { 0 };
    (void)state;
    qkv_server *s = serve((qkv_server_opts){ 0 });
    int fd = send_only(qkv_server_port(s), "/v1/embeddings", large);
    while (steps(s) < 70) usleep(100);
    unsigned long long before = steps(s);
    int other = send_from(OTHER, qkv_server_port(s), "/v1/embeddings", small);
    receive_reply(other, &r, false);
    assert_int_equal(r.status, 200);
    if (steps(s) - before > MOST_STEPS) fail_msg("%llu steps", steps(s) - before);
    close(fd), close(other);
    while (active(s)) usleep(100);
    free_reply(&r);
    free(large), free(small);
    qkv_server_free(s);
}

/* Requests that wait for a turn. */
static int waiting(qkv_server *s)
{
    pthread_mutex_lock(&s->connections.lock);
    int n = 0;
    for (const qkv__waiter *w = s->connections.waiting; w; w = w->next) n++;
    pthread_mutex_unlock(&s->connections.lock);
    return n;
}

/* One place, and 64 that wait: the next one is told, others are served. */
static void a_client_whose_queue_is_full_is_told(void **state)
{
    enum { FULL = 65, OTHER = INADDR_LOOPBACK + 1 };
    static const char body[] = "{\"prompt\":\"the\",\"n\":4,\"max_tokens\":4096,\"temperature\":0}";
    int fds[FULL];
    (void)state;
    qkv_server *s = serve((qkv_server_opts){ .size = sizeof(qkv_server_opts), .batch = 1 });
    int port = qkv_server_port(s);
    for (int i = 0; i < FULL; i++) fds[i] = send_only(port, "/v1/completions", body);
    while (waiting(s) < FULL - 1) usleep(100);
    reply r = post(port, "/v1/completions", body);
    assert_int_equal(r.status, 503);
    assert_non_null(strstr(r.text, "Retry-After: 1\r\n"));
    assert_non_null(strstr(r.body, "64 requests of this client wait"));
    free_reply(&r);
    int fd = send_from(OTHER, port, "/v1/completions", "{\"prompt\":\"you\",\"max_tokens\":2}");
    receive_reply(fd, &r, false);
    assert_int_equal(r.status, 200);
    free_reply(&r);
    close(fd);
    for (int i = 0; i < FULL; i++) close(fds[i]);
    qkv_server_free(s);
}

/* ---- files that change ---- */

enum { TOUCHED, OVERWRITTEN, CUT, GONE, REPLACED, ASKED, CHANGES };

static atomic_int errors_told;

static void count_errors(void *data, const char *error)
{
    (void)data;
    atomic_fetch_add(&errors_told, error != NULL);
}

static void save_labels(const char *first)
{
    const char *const labels[] = { first, "b", "c" };
    qkv_model *m = make_served(MODEL_CLASSES);
    assert_int_equal(qkv_model_set_labels(m, labels, 3, QKV_PROBLEM_CLASSIFICATION, NULL), QKV_OK);
    assert_int_equal(qkv_model_save(m, folder, NULL), QKV_OK);
    qkv_model_free(m);
}

/* In place, as cp does. */
static void overwrite(const char *path, const char *from, bool is_cut)
{
    char bytes[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
    assert_true(in && out);
    size_t n = is_cut ? 0 : fread(bytes, 1, sizeof bytes, in);
    assert_true(n < sizeof bytes && fwrite(bytes, 1, n, out) == n);
    fclose(in);
    fclose(out);
}

/* Every request is answered; after one reload more by the model that must be served. */
static void answers_with(qkv_server *s, int loads, const char *label)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"%s\"", label);
    for (bool is_right = false; !is_right;) {
        bool is_loaded = atomic_load(&s->reload.loads) > loads;
        reply r = post(qkv_server_port(s), "/classify", "{\"text\":\"the cat\"}");
        assert_int_equal(r.status, 200);
        is_right = is_loaded && strstr(r.body, wanted);
        free_reply(&r);
    }
}

static void files_that_change_are_loaded_again(void **state)
{
    (void)state;
    const qkv_load_opts load = { .size = sizeof load, .in_memory = 1 }, again = { .size = sizeof again }; /* in memory anyway */
    const char *weights = in_folder("model.safetensors"), *kept = in_folder("kept.old");
    char label[8] = "first";
    qkv__look_every = 2;
    atomic_store(&errors_told, 0);
    save_labels(label);
    qkv_model *m = qkv_model_load(folder, &load);
    assert_non_null(m);
    qkv_server *s = qkv_server_new(
        m,
        &(qkv_server_opts){ .size = sizeof(qkv_server_opts), .folder = folder, .reload = &again, .each_reload = count_errors });
    assert_non_null(s);
    for (int how = 0; how < CHANGES; how++) {
        int loads = atomic_load(&s->reload.loads), errors = atomic_load(&errors_told);
        if (!how) overwrite(kept, weights, false);
        if (how == TOUCHED) assert_int_equal(utimensat(AT_FDCWD, weights, NULL, 0), 0);
        if (how == OVERWRITTEN) overwrite(weights, kept, false);
        if (how == CUT) overwrite(weights, kept, true);
        if (how == GONE) assert_int_equal(remove(weights), 0);
        if (how == ASKED) qkv_server_reload(s);
        if (how == REPLACED) save_labels(strcpy(label, "second"));
        answers_with(s, loads, label);
        if (how != CUT && how != GONE) continue;
        assert_true(atomic_load(&errors_told) > errors);
        loads = atomic_load(&s->reload.loads);
        overwrite(weights, kept, false);
        answers_with(s, loads, label);
    }
    qkv_server_free(s);
    qkv_model_free(m);
    qkv__look_every = 1000;
}

/* A request that has begun is answered by the model that it began with. */
static void requests_keep_their_model(void **state)
{
    static const char body[] = "{\"prompt\":\"the\",\"max_tokens\":3000,\"temperature\":0}";
    (void)state;
    const qkv_load_opts load = { .size = sizeof load };
    assert_int_equal(qkv_model_save(model, folder, NULL), QKV_OK);
    qkv_server *s = qkv_server_new(model,
                                   &(qkv_server_opts){ .size = sizeof(qkv_server_opts), .folder = folder, .reload = &load });
    assert_non_null(s);
    int port = qkv_server_port(s);
    reply before = post(port, "/v1/completions", body), after = { 0 };
    assert_int_equal(before.status, 200);
    unsigned long long alone = steps(s);
    int fd = send_only(port, "/v1/completions", body);
    while (steps(s) < alone + 4) usleep(100);
    save_labels("x");
    qkv_server_reload(s);
    for (int status = 404; status != 200;) {
        reply r = post(port, "/classify", "{\"text\":\"the cat\"}");
        status = r.status;
        free_reply(&r);
    }
    receive_reply(fd, &after, false);
    assert_int_equal(after.status, 200);
    assert_string_equal(strstr(before.body, "\"choices\""), strstr(after.body, "\"choices\""));
    close(fd);
    free_reply(&before);
    free_reply(&after);
    qkv_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(completions_end_when_their_clients_leave, use_language, free_model),
        cmocka_unit_test_setup_teardown(nothing_is_told_of_an_answer_that_was_not_sent, use_language, free_model),
        cmocka_unit_test_setup_teardown(requests_are_lines_of_a_log, use_language, free_model),
        cmocka_unit_test_setup_teardown(a_server_has_an_address, use_language, free_model),
        cmocka_unit_test_setup_teardown(translations_end_when_their_clients_leave, use_pair, free_model),
        cmocka_unit_test_setup_teardown(embeddings_end_when_their_clients_leave, use_encoder, free_model),
        cmocka_unit_test_setup_teardown(nobody_is_shut_out, use_pair, free_model),
        cmocka_unit_test_setup_teardown(the_longest_wait_makes_room, use_pair, free_model),
        cmocka_unit_test_setup_teardown(too_many_are_told, use_language, free_model),
        cmocka_unit_test_setup_teardown(a_client_with_many_streams_leaves_room, use_language, free_model),
        cmocka_unit_test_setup_teardown(many_embeddings_leave_room, use_encoder, free_model),
        cmocka_unit_test_setup_teardown(a_client_whose_queue_is_full_is_told, use_language, free_model),
        cmocka_unit_test(files_that_change_are_loaded_again),
        cmocka_unit_test_setup_teardown(requests_keep_their_model, use_language, free_model),
    };
    return cmocka_run_group_tests_name("serve_clients", tests, make_folder, remove_folder);
}
