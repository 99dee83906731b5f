/*
 * test-server.c - the server and both clients against each other, over real sockets.
 *
 * The server runs in a child, as in a daemon: one loop, ended by a signal,
 * which must close everything in order. Deadlines and slow senders, which take
 * their time, are tested on the whole hub (test/hub).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "api/body.h"
#include "api/client.h"
#include "api/identity.h"
#include "api/server.h"
#include "api/stream.h"
#include "base/err.h"
#include "base/list.h"
#include "base/secret.h"
#include "sys/clock.h"

#define BEARER "the-admin-token"

/* ---- the daemon in the child ---------------------------------------------------------------- */

/* A stream of numbered lines, for ever or for so many. */
struct numbers {
    struct stream stream;
    unsigned next;
    unsigned n;
    size_t len; /* of each line */
};

static void numbers_more(struct stream *st)
{
    struct numbers *nr = container_of(st, struct numbers, stream);
    char *text = calloc(1, nr->len + 1);

    while (nr->next < nr->n) {
        struct line *l;
        bool pushed;

        memset(text, 'x', nr->len);
        (void)snprintf(text, nr->len + 1, "%u", nr->next);
        l = line_new(text, nr->len);
        pushed = stream_push(st, l, clock_now());
        line_unref(l);
        if (!pushed)
            break;
        nr->next++;
    }
    free(text);
    if (nr->next == nr->n)
        stream_end(st);
}

static void numbers_free(struct stream *st)
{
    stream_deinit(st);
    free(container_of(st, struct numbers, stream));
}

static void handle_numbers(void *ctx, const struct request *rq, struct response *rs)
{
    struct numbers *nr = calloc(1, sizeof(*nr));

    stream_init(&nr->stream, numbers_more, numbers_free);
    nr->n = (unsigned)strtoul(rq->params[0], NULL, 10);
    nr->len = strtoul(rq->params[1], NULL, 10);
    rs->status = 200;
    rs->stream = &nr->stream;
}

static void never_more(struct stream *st)
{
}

static void handle_silence(void *ctx, const struct request *rq, struct response *rs)
{
    struct numbers *nr = calloc(1, sizeof(*nr));

    stream_init(&nr->stream, never_more, numbers_free);
    rs->status = 200;
    rs->stream = &nr->stream;
}

/* A stream that others write to: POST /v1/say adds a line to the last one that was opened. */
static struct numbers *heard;

static void heard_closed(struct stream *st)
{
    if (heard && st == &heard->stream)
        heard = NULL;
    numbers_free(st);
}

static void handle_hear(void *ctx, const struct request *rq, struct response *rs)
{
    heard = calloc(1, sizeof(*heard));
    stream_init(&heard->stream, never_more, heard_closed);
    rs->status = 200;
    rs->stream = &heard->stream;
}

static void handle_say(void *ctx, const struct request *rq, struct response *rs)
{
    struct line *l = line_new(rq->params[0], strlen(rq->params[0]));

    rs->status = heard && stream_push(&heard->stream, l, rq->now) ? 204 : 409;
    line_unref(l);
}

static void handle_health(void *ctx, const struct request *rq, struct response *rs)
{
    response_json(rs, 200, json_pack("{s:b, s:i}", "ok", 1, "door", (int)rq->door));
}

static void handle_echo(void *ctx, const struct request *rq, struct response *rs)
{
    response_json(rs, 201, json_pack("{s:O?, s:s}", "body", rq->body, "name", rq->params[0]));
}

static void handle_nothing(void *ctx, const struct request *rq, struct response *rs)
{
    response_empty(rs);
}

static const struct route routes[] = {
    {"GET", "/v1/health", DOOR_PUBLIC | DOOR_ADMIN | DOOR_OVERLAY, handle_health, ""},
    {"POST", "/v1/echo/{name}", DOOR_PUBLIC | DOOR_ADMIN, handle_echo, ""},
    {"DELETE", "/v1/echo/{name}", DOOR_ADMIN, handle_nothing, ""},
    {"GET", "/v1/numbers/{n}/{len}", DOOR_PUBLIC | DOOR_ADMIN, handle_numbers, ""},
    {"GET", "/v1/silence", DOOR_ADMIN, handle_silence, ""},
    {"GET", "/v1/hear", DOOR_PUBLIC | DOOR_ADMIN, handle_hear, ""},
    {"POST", "/v1/say/{n}", DOOR_ADMIN, handle_say, ""},
    {"GET", "/v1/member", DOOR_OVERLAY, handle_health, ""},
    ROUTES_END,
};

static bool is_admin(void *ctx, const char *bearer)
{
    return strlen(bearer) == strlen(BEARER) && secret_equal(bearer, BEARER, strlen(BEARER));
}

static void on_term(uv_signal_t *sig, int signum)
{
    server_stop(sig->data);
    uv_close((uv_handle_t *)sig, NULL);
}

static void run_daemon(const char *dir, int ready)
{
    struct endpoint at = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct identity id = IDENTITY_NULL;
    struct err e = ERR_NULL;
    struct server *s;
    char key[128];
    char cert[128];
    char sock[128];
    uint16_t port;
    uv_loop_t loop;
    uv_signal_t sig;

    (void)snprintf(key, sizeof(key), "%s/tls.key", dir);
    (void)snprintf(cert, sizeof(cert), "%s/tls.crt", dir);
    (void)snprintf(sock, sizeof(sock), "%s/sock", dir);
    uv_loop_init(&loop);
    uv_signal_init(&loop, &sig);
    if (identity_open(&id, key, cert, &e) != 0 ||
        server_new(&s,
            &(struct server_config){
                .loop = &loop, .routes = routes, .identity = &id, .is_admin = is_admin},
            &e) != 0 ||
        server_listen_tls(s, &at, &port, &e) != 0 || server_listen_unix(s, sock, &e) != 0) {
        (void)fprintf(stderr, "%s\n", err_text(&e));
        _exit(1);
    }
    sig.data = s;
    uv_signal_start(&sig, on_term, SIGTERM);
    if (write(ready, &port, sizeof(port)) != sizeof(port) ||
        write(ready, id.pin.b, sizeof(id.pin.b)) != sizeof(id.pin.b))
        _exit(1);
    identity_close(&id);
    uv_run(&loop, UV_RUN_DEFAULT);
    server_free(s);
    _exit(uv_loop_close(&loop) == 0 ? 0 : 2);
}

static struct {
    pid_t pid;
    char dir[64];
    char sock[96];
    char https[64];
    uint16_t port;
    struct client_pin pin;
} daemon_;

static int start_daemon(void **state)
{
    int ready[2];

    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(daemon_.dir, sizeof(daemon_.dir), "/tmp/weft-test-server.XXXXXX");
    if (!mkdtemp(daemon_.dir) || pipe(ready) < 0)
        return -1;
    (void)snprintf(daemon_.sock, sizeof(daemon_.sock), "%s/sock", daemon_.dir);
    daemon_.pid = fork();
    if (daemon_.pid == 0)
        run_daemon(daemon_.dir, ready[1]);
    (void)close(ready[1]);
    if (read(ready[0], &daemon_.port, sizeof(daemon_.port)) != sizeof(daemon_.port) ||
        read(ready[0], daemon_.pin.b, sizeof(daemon_.pin.b)) != sizeof(daemon_.pin.b))
        return -1;
    (void)close(ready[0]);
    (void)snprintf(daemon_.https, sizeof(daemon_.https), "127.0.0.1:%u", daemon_.port);
    return 0;
}

/* Ended in order, with a stream still open, the loop must come out empty. */
static int stop_daemon(void **state)
{
    char command[128];
    int status = 0;

    (void)kill(daemon_.pid, SIGTERM);
    (void)waitpid(daemon_.pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "the daemon ended with status %x\n", (unsigned)status);
        return -1;
    }
    if (access(daemon_.sock, F_OK) == 0) {
        (void)fprintf(stderr, "the socket is still there\n");
        return -1;
    }
    (void)snprintf(command, sizeof(command), "rm -rf %s", daemon_.dir);
    return system(command);
}

/* ---- the tests in the parent ---------------------------------------------------------------- */

static struct client_target by_unix(void)
{
    return (struct client_target){.door = CLIENT_DOOR_UNIX, .address = daemon_.sock};
}

static struct client_target by_https(void)
{
    return (struct client_target){
        .door = CLIENT_DOOR_HTTPS, .address = daemon_.https, .pin = daemon_.pin};
}

static struct client_answer answer_;
static struct err e_;

static int call(struct client_target t, const char *method, const char *path, json_t *body)
{
    int r;

    client_answer_deinit(&answer_);
    e_ = (struct err)ERR_NULL;
    r = client_call(&t, method, path, body, 5000, &answer_, &e_);
    json_decref(body);
    return r;
}

static void test_doors(void **state)
{
    struct client_target t = by_https();

    assert_int_equal(call(by_unix(), "GET", "/v1/health", NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(answer_.body, "door")), DOOR_ADMIN);
    assert_int_equal(call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(answer_.body, "door")), DOOR_PUBLIC);
    t.bearer = BEARER;
    assert_int_equal(call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(answer_.body, "door")), DOOR_ADMIN);
    t.bearer = "the-admin-tokem";
    assert_int_equal(call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(json_integer_value(json_object_get(answer_.body, "door")), DOOR_PUBLIC);
    t.pin.b[31] ^= 1;
    assert_int_equal(call(t, "GET", "/v1/health", NULL), CLIENT_E_UNTRUSTED);
    assert_int_equal(answer_.status, 0);
}

static void test_refusals(void **state)
{
    assert_int_equal(call(by_unix(), "GET", "/v1/nothing", NULL), CLIENT_E_REFUSED);
    assert_int_equal(answer_.status, 404);
    assert_string_equal(e_.text, "there is no \"/v1/nothing\"");
    assert_int_equal(call(by_unix(), "PUT", "/v1/health", NULL), CLIENT_E_REFUSED);
    assert_int_equal(answer_.status, 405);
    assert_int_equal(call(by_https(), "DELETE", "/v1/echo/x", NULL), CLIENT_E_REFUSED);
    assert_int_equal(answer_.status, 401);
    assert_non_null(strstr(e_.text, "admin token"));
    assert_int_equal(call(by_https(), "GET", "/v1/member", NULL), CLIENT_E_REFUSED);
    assert_int_equal(answer_.status, 403);
    assert_int_equal(call(by_unix(), "DELETE", "/v1/echo/x", NULL), 0);
    assert_int_equal(answer_.status, 204);
    assert_null(answer_.body);
}

static void test_unreachable(void **state)
{
    struct client_target t = by_unix();

    t.address = "/nonexistent/socket";
    assert_int_equal(call(t, "GET", "/v1/health", NULL), CLIENT_E_UNREACHABLE);
    assert_non_null(strstr(e_.text, "/nonexistent/socket"));
    t = by_https();
    t.address = "no host:1";
    assert_true(call(t, "GET", "/v1/health", NULL) < 0);
    t.address = "x/y@z:1";
    assert_true(call(t, "GET", "/v1/health", NULL) < 0);
}

/* A body of exactly @len bytes of JSON. */
static json_t *body_of(size_t len)
{
    char *text = malloc(len + 1);
    json_t *json;

    memset(text, 'x', len);
    text[len - strlen("{\"k\":\"\"}")] = '\0';
    json = json_pack("{s:s}", "k", text);
    free(text);
    return json;
}

static void test_bodies(void **state)
{
    assert_int_equal(call(by_https(), "POST", "/v1/echo/n-1", json_pack("{s:i}", "a", 7)), 0);
    assert_int_equal(answer_.status, 201);
    assert_string_equal(json_string_value(json_object_get(answer_.body, "name")), "n-1");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(answer_.body, "body"), "a")), 7);
    assert_int_equal(call(by_unix(), "POST", "/v1/echo/x", body_of(BODY_MAX)), 0);
    assert_int_equal(
        call(by_unix(), "POST", "/v1/echo/x", body_of(BODY_MAX + 1)), CLIENT_E_REFUSED);
    assert_int_equal(answer_.status, 413);
    assert_string_equal(e_.text, "the body is longer than 65536 bytes");
    assert_int_equal(
        call(by_unix(), "POST", "/v1/echo/x", body_of(10 * BODY_MAX)), CLIENT_E_REFUSED);
    assert_int_equal(call(by_unix(), "POST", "/v1/echo/x", json_array()), CLIENT_E_REFUSED);
    assert_int_equal(answer_.status, 400);
    assert_string_equal(e_.text, "the body is JSON, but not an object");
}

static int connect_unix(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", daemon_.sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

/* Send bytes as they are; the status line of what comes back, "" for none. */
static const char *raw(const char *bytes, size_t len)
{
    static char got[65536];
    size_t n_got = 0;
    int fd = connect_unix();
    ssize_t n;

    while (len > 0 && (n = send(fd, bytes, len, MSG_NOSIGNAL)) > 0) {
        bytes += n;
        len -= (size_t)n;
    }
    (void)shutdown(fd, SHUT_WR);
    while (n_got < sizeof(got) - 1 && (n = read(fd, got + n_got, sizeof(got) - 1 - n_got)) > 0)
        n_got += (size_t)n;
    got[n_got] = '\0';
    got[strcspn(got, "\r\n")] = '\0';
    (void)close(fd);
    return got;
}

static void test_garbage(void **state)
{
    static const char chunked[] =
        "POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n";
    char *big = malloc(2 << 20);

    assert_non_null(strstr(raw("GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n", 37), "200"));
    (void)raw("\0\1\2\3\r\n\r\n", 8);
    (void)raw("\x16\x03\x01\x02\x00\x01", 6);
    (void)raw("POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 58);
    (void)raw("POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab", 59);
    assert_non_null(strstr(
        raw("POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{]}", 60), "400"));
    memset(big, 'h', 200000);
    memcpy(big, "GET /", 5);
    (void)raw(big, 200000);
    memcpy(big, "GET /v1/health HTTP/1.1\r\nA: ", 28);
    (void)raw(big, 200000);
    /* Not announced, a long body is read and thrown away for a while, then cut. */
    for (size_t len = 100000; len <= 2000000; len *= 10) {
        size_t n = (size_t)snprintf(big, 200, chunked, (unsigned)len);

        memset(big + n, ' ', len - n);
        (void)raw(big, len);
    }
    free(big);
    /* All of that is behind it. */
    assert_int_equal(call(by_unix(), "GET", "/v1/health", NULL), 0);
}

static void test_many_from_one_address(void **state)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
        .sin_port = htons(daemon_.port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fds[80];
    unsigned closed = 0;

    for (int i = 0; i < 80; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&sa, sizeof(sa)), 0);
    }
    /* 64 are kept, so 16 are closed; the pace makes that take a few turns. */
    while (closed < 16) {
        struct pollfd p[80];

        for (int i = 0; i < 80; i++)
            p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
        assert_true(poll(p, 80, 5000) > 0);
        for (int i = 0; i < 80; i++)
            if (fds[i] >= 0 && p[i].revents) {
                (void)close(fds[i]);
                fds[i] = -1;
                closed++;
            }
    }
    assert_int_equal(closed, 16);
    assert_int_equal(call(by_https(), "GET", "/v1/health", NULL), CLIENT_E_UNREACHABLE);
    assert_int_equal(call(by_unix(), "GET", "/v1/health", NULL), 0);
    for (int i = 0; i < 80; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    /* The places are free again once the server has seen it. */
    while (call(by_https(), "GET", "/v1/health", NULL) != 0)
        assert_int_equal(answer_.status, 0);
}

/* ---- calls on a loop ------------------------------------------------------------------------ */

struct listening {
    uv_loop_t loop;
    struct client_loop *cl;
    struct client_request *rq;
    unsigned lines;
    size_t len;            /* that each line must have */
    unsigned cancel_after; /* lines; 0: never */
    int ended;             /* times */
    int result;
    char words[400];
};

static void on_line(void *ctx, const char *line, size_t len)
{
    struct listening *l = ctx;

    assert_int_equal(strtoul(line, NULL, 10), l->lines);
    assert_int_equal(len, l->len);
    l->lines++;
    if (l->lines == l->cancel_after)
        l->rq = client_cancel(l->rq);
}

static void on_end(void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct listening *l = ctx;

    l->ended++;
    l->result = result;
    (void)snprintf(l->words, sizeof(l->words), "%s", e->text);
}

static void listen_begin(struct listening *l)
{
    *l = (struct listening){0};
    assert_int_equal(uv_loop_init(&l->loop), 0);
    assert_int_equal(client_loop_new(&l->cl, &l->loop, &e_), 0);
}

static void listen_finish(struct listening *l)
{
    client_loop_free(l->cl);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&l->loop), 0);
}

static void watch(struct listening *l, struct client_target t, const char *path, size_t line_max)
{
    assert_int_equal(
        client_watch(l->cl, &t, path, 3000, line_max, on_line, on_end, l, &l->rq, &e_), 0);
    assert_int_equal(l->ended, 0);
}

static void test_stream(void **state)
{
    static const struct {
        const char *path;
        unsigned n;
        size_t len;
    } cases[] = {{"/v1/numbers/0/10", 0, 10}, {"/v1/numbers/5000/10", 5000, 10},
        {"/v1/numbers/3/2000000", 3, 2000000}, {"/v1/numbers/300/20000", 300, 20000}};

    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
        struct listening l;

        listen_begin(&l);
        l.len = cases[i / 2].len;
        watch(&l, i % 2 ? by_https() : by_unix(), cases[i / 2].path, 3000000);
        while (!l.ended)
            uv_run(&l.loop, UV_RUN_ONCE);
        assert_int_equal(l.result, 0);
        assert_int_equal(l.lines, cases[i / 2].n);
        listen_finish(&l);
    }
}

static void test_stream_ends(void **state)
{
    struct listening l;

    listen_begin(&l);
    l.len = 1000;
    watch(&l, by_unix(), "/v1/numbers/10/1000", 999);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_UNREACHABLE);
    assert_non_null(strstr(l.words, "longer than 999"));
    assert_int_equal(l.lines, 0);

    l.ended = 0;
    watch(&l, by_unix(), "/v1/nowhere", 999);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_REFUSED);
    assert_string_equal(l.words, "there is no \"/v1/nowhere\"");

    l.ended = 0;
    watch(&l, by_unix(), "/v1/silence", 999);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_UNREACHABLE);
    listen_finish(&l);
}

/* Lines that come one at a time, long after the stream has gone quiet. */
static void test_quiet_stream(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct listening l;
        char path[32];

        listen_begin(&l);
        l.len = 1;
        watch(&l, i ? by_https() : by_unix(), "/v1/hear", 999);
        for (unsigned n = 0; n < 5; n++) {
            (void)snprintf(path, sizeof(path), "/v1/say/%u", n);
            while (call(by_unix(), "POST", path, NULL) != 0)
                uv_run(&l.loop, UV_RUN_NOWAIT);
            while (l.lines == n)
                uv_run(&l.loop, UV_RUN_ONCE);
        }
        assert_int_equal(l.lines, 5);
        assert_int_equal(l.ended, 0);
        listen_finish(&l);
        /* Until the server has seen that nobody listens any more, the next line finds it. */
        while (call(by_unix(), "POST", "/v1/say/9", NULL) == 0)
            continue;
    }
}

static void test_cancel(void **state)
{
    struct listening l;

    /* From inside the stream. */
    listen_begin(&l);
    l.len = 10;
    l.cancel_after = 7;
    watch(&l, by_unix(), "/v1/numbers/5000/10", 999);
    while (l.lines < 7)
        uv_run(&l.loop, UV_RUN_ONCE);
    for (int i = 0; i < 5; i++)
        uv_run(&l.loop, UV_RUN_NOWAIT);
    assert_int_equal(l.lines, 7);
    assert_int_equal(l.ended, 0);

    /* From outside, and by the end of the client. */
    watch(&l, by_unix(), "/v1/silence", 999);
    uv_run(&l.loop, UV_RUN_NOWAIT);
    l.rq = client_cancel(l.rq);
    watch(&l, by_unix(), "/v1/silence", 999);
    uv_run(&l.loop, UV_RUN_NOWAIT);
    listen_finish(&l);
    assert_int_equal(l.ended, 0);
}

/* A chain of calls, each begun by the end of the one before. */
static void on_chain(void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct listening *l = ctx;
    struct client_target t = by_unix();

    assert_int_equal(result, 0);
    assert_int_equal(answer->status, 200);
    l->ended++;
    if (l->ended < 5)
        assert_int_equal(
            client_start(l->cl, &t, "GET", "/v1/health", NULL, 5000, on_chain, l, NULL, &e_), 0);
}

static void test_calls_on_a_loop(void **state)
{
    struct client_target t = by_https();
    struct listening l;

    listen_begin(&l);
    assert_int_equal(
        client_start(l.cl, &t, "GET", "/v1/health", NULL, 5000, on_chain, &l, NULL, &e_), 0);
    while (l.ended < 5)
        uv_run(&l.loop, UV_RUN_ONCE);
    t.pin.b[0] ^= 1;
    l.ended = 0;
    assert_int_equal(
        client_start(l.cl, &t, "GET", "/v1/health", NULL, 5000, on_end, &l, NULL, &e_), 0);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_UNTRUSTED);
    listen_finish(&l);
}

/* Many streams are open when the daemon ends: stop_daemon() looks at how it takes that. */
static void test_open_at_the_end(void **state)
{
    for (int i = 0; i < 20; i++) {
        int fd = connect_unix();

        assert_true(write(fd, "GET /v1/silence HTTP/1.1\r\nHost: x\r\n\r\n", 38) == 38);
        if (i % 2)
            (void)close(fd);
    }
    assert_int_equal(call(by_unix(), "GET", "/v1/health", NULL), 0);
    client_answer_deinit(&answer_);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doors),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_many_from_one_address),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_ends),
        cmocka_unit_test(test_quiet_stream),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_calls_on_a_loop),
        cmocka_unit_test(test_open_at_the_end),
    };

    return cmocka_run_group_tests(tests, start_daemon, stop_daemon);
}
