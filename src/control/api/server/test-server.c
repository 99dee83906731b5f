/*
 * test-server.c - the server and the blocking client against each other, over real sockets.
 *
 * Deadlines and slow senders, which take their time, are tested on the whole
 * hub (test/hub).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/content/body.h"
#include "api/content/route.h"
#include "api/server/server.h"
#include "test/support/sample_daemon.h"

static void test_access(void **state)
{
    struct client_target t = sample_by_https();

    assert_int_equal(sample_call(sample_by_unix(), "GET", "/v1/health", NULL), 0);
    assert_int_equal(
        json_integer_value(json_object_get(sample_answer.body, "access")), API_ACCESS_ADMIN);
    assert_int_equal(sample_call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(
        json_integer_value(json_object_get(sample_answer.body, "access")), API_ACCESS_PUBLIC);
    t.bearer = SAMPLE_BEARER;
    assert_int_equal(sample_call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(
        json_integer_value(json_object_get(sample_answer.body, "access")), API_ACCESS_ADMIN);
    t.bearer = "the-admin-tokem";
    assert_int_equal(sample_call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(
        json_integer_value(json_object_get(sample_answer.body, "access")), API_ACCESS_PUBLIC);
    t.pin.b[31] ^= 1;
    assert_int_equal(sample_call(t, "GET", "/v1/health", NULL), CLIENT_E_UNTRUSTED);
    assert_int_equal(sample_answer.status, 0);
}

/* What a role may not call is refused by the route, before its handler. */
static void test_roles(void **state)
{
    struct client_target t = sample_by_https();

    t.bearer = SAMPLE_VIEWER;
    assert_int_equal(sample_call(t, "GET", "/v1/health", NULL), 0);
    assert_int_equal(
        json_integer_value(json_object_get(sample_answer.body, "access")), API_ACCESS_ADMIN);
    assert_int_equal(sample_call(t, "DELETE", "/v1/echo/x", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 403);
    assert_string_equal(sample_words.text,
        "DELETE /v1/echo/{name} needs an admin token of role \"admin\"; admin:test has role "
        "\"viewer\"");
    /* What strangers may call needs no role. */
    assert_int_equal(sample_call(t, "POST", "/v1/echo/x", json_object()), 0);
    t.bearer = SAMPLE_BEARER;
    assert_int_equal(sample_call(t, "DELETE", "/v1/echo/x", NULL), 0);
    t.bearer = "wrong";
    assert_int_equal(sample_call(t, "DELETE", "/v1/echo/x", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 401);
}

static void nothing(void *ctx, const struct request *rq, struct response *rs)
{
}

/* A table with a row that no role guards is served by nobody. */
static void test_a_row_without_a_role(void **state)
{
    static const struct route table[] = {
        {"GET", "/v1/health", API_ACCESS_PUBLIC | API_ACCESS_ADMIN, nothing, ""},
        {"GET", "/v1/secret", API_ACCESS_ADMIN, nothing, ""},
        ROUTES_END,
    };
    struct server *s = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(server_new(&s, &(struct server_config){.routes = table}, &e), -EINVAL);
    assert_string_equal(e.text, "GET /v1/secret names no role that may call it");
}

static void test_refusals(void **state)
{
    assert_int_equal(sample_call(sample_by_unix(), "GET", "/v1/nothing", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 404);
    assert_string_equal(sample_words.text, "there is no \"/v1/nothing\"");
    assert_int_equal(sample_call(sample_by_unix(), "PUT", "/v1/health", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 405);
    assert_int_equal(
        sample_call(sample_by_https(), "DELETE", "/v1/echo/x", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 401);
    assert_non_null(strstr(sample_words.text, "admin token"));
    assert_int_equal(sample_call(sample_by_https(), "GET", "/v1/member", NULL), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 403);
    assert_int_equal(sample_call(sample_by_unix(), "DELETE", "/v1/echo/x", NULL), 0);
    assert_int_equal(sample_answer.status, 204);
    assert_null(sample_answer.body);
}

/* What a stranger sent may be cut within a character, and the words are said all the same. */
static void test_words_of_a_refusal(void **state)
{
    struct response rs = {0};

    response_refuse(&rs, 400, "\"%.2s\" and \x1b[2J", "a\xc3\xa9");
    assert_int_equal(rs.status, 400);
    assert_string_equal(body_refusal_text(rs.body), "\"a?\" and ?[2J");
    response_deinit(&rs);
}

static void test_unreachable(void **state)
{
    struct client_target t = sample_by_unix();

    t.address = "/nonexistent/socket";
    assert_int_equal(sample_call(t, "GET", "/v1/health", NULL), CLIENT_E_UNREACHABLE);
    assert_non_null(strstr(sample_words.text, "/nonexistent/socket"));
    t = sample_by_https();
    t.address = "no host:1";
    assert_true(sample_call(t, "GET", "/v1/health", NULL) < 0);
    t.address = "x/y@z:1";
    assert_true(sample_call(t, "GET", "/v1/health", NULL) < 0);
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
    assert_int_equal(
        sample_call(sample_by_https(), "POST", "/v1/echo/n-1", json_pack("{s:i}", "a", 7)), 0);
    assert_int_equal(sample_answer.status, 201);
    assert_string_equal(json_string_value(json_object_get(sample_answer.body, "name")), "n-1");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(sample_answer.body, "body"), "a")), 7);
    assert_int_equal(sample_call(sample_by_unix(), "POST", "/v1/echo/x", body_of(BODY_MAX)), 0);
    assert_int_equal(sample_call(sample_by_unix(), "POST", "/v1/echo/x", body_of(BODY_MAX + 1)),
        CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 413);
    assert_string_equal(sample_words.text, "the body is longer than 65536 bytes");
    assert_int_equal(sample_call(sample_by_unix(), "POST", "/v1/echo/x", body_of(10 * BODY_MAX)),
        CLIENT_E_REFUSED);
    assert_int_equal(
        sample_call(sample_by_unix(), "POST", "/v1/echo/x", json_array()), CLIENT_E_REFUSED);
    assert_int_equal(sample_answer.status, 400);
    assert_string_equal(sample_words.text, "the body is JSON, but not an object");
}

static int connect_unix(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", sample_daemon.sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

/* A connection on which these bytes were sent as they are. */
static int send_raw(const char *bytes, size_t len)
{
    int fd = connect_unix();
    ssize_t n;

    while (len > 0 && (n = send(fd, bytes, len, MSG_NOSIGNAL)) > 0) {
        bytes += n;
        len -= (size_t)n;
    }
    return fd;
}

/* Send them and go: half a request may be waited for until its deadline. */
static void throw(const char *bytes, size_t len)
{
    (void)close(send_raw(bytes, len));
}

/* Send them; the status line of what comes back, "" for none. */
static const char *raw(const char *bytes, size_t len)
{
    static char got[65536];
    size_t n_got = 0;
    int fd = send_raw(bytes, len);
    ssize_t n;

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
    throw("\0\1\2\3\r\n\r\n", 8);
    throw("\x16\x03\x01\x02\x00\x01", 6);
    throw("POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 58);
    throw("POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab", 59);
    assert_non_null(strstr(
        raw("POST /v1/echo/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{]}", 60), "400"));
    memset(big, 'h', 200000);
    memcpy(big, "GET /", 5);
    throw(big, 200000);
    memcpy(big, "GET /v1/health HTTP/1.1\r\nA: ", 28);
    throw(big, 200000);
    /* Not announced, a long body is read and thrown away for a while, then cut. */
    for (size_t len = 100000; len <= 2000000; len *= 10) {
        size_t n = (size_t)snprintf(big, 200, chunked, (unsigned)len);

        memset(big + n, ' ', len - n);
        throw(big, len);
    }
    free(big);
    /* All of that is behind it. */
    assert_int_equal(sample_call(sample_by_unix(), "GET", "/v1/health", NULL), 0);
}

static void test_many_from_one_address(void **state)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
        .sin_port = htons(sample_daemon.port),
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
    assert_int_equal(
        sample_call(sample_by_https(), "GET", "/v1/health", NULL), CLIENT_E_UNREACHABLE);
    assert_int_equal(sample_call(sample_by_unix(), "GET", "/v1/health", NULL), 0);
    for (int i = 0; i < 80; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    /* The places are free again once the server has seen it. */
    while (sample_call(sample_by_https(), "GET", "/v1/health", NULL) != 0)
        assert_int_equal(sample_answer.status, 0);
}

/* Many streams are open when the daemon ends: sample_stop() looks at how it takes that. */
static void test_open_at_the_end(void **state)
{
    for (int i = 0; i < 20; i++) {
        int fd = connect_unix();

        assert_true(write(fd, "GET /v1/silence HTTP/1.1\r\nHost: x\r\n\r\n", 38) == 38);
        if (i % 2)
            (void)close(fd);
    }
    assert_int_equal(sample_call(sample_by_unix(), "GET", "/v1/health", NULL), 0);
    client_answer_deinit(&sample_answer);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_a_row_without_a_role),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_words_of_a_refusal),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_many_from_one_address),
        cmocka_unit_test(test_open_at_the_end),
    };

    return cmocka_run_group_tests(tests, sample_start, sample_stop);
}
