/*
 * test-remote-http.c - the HTTP client of the back ends, against servers that answer as each test
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/remote/remote_http.h"
#include "base/err.h"
#include "base/secret.h"
#include "os/thread.h"
#include "test/support/canned_server.h"

/* A URL where nobody listens. */
static void make_dead(char *url, size_t size)
{
    struct canned_server s;

    canned_server_start(&s, NULL, 0);
    canned_server_join(&s);
    (void)snprintf(url, size, "%s", s.url);
}

static struct err words;

static struct remote_http *open_client(const char *first, const char *second)
{
    struct remote_http_config config = {
        .servers = {first, second}, .n_servers = second ? 2 : 1, .connect_ms = 2000};
    struct remote_http *h = NULL;

    if (remote_http_new(&h, &config, &words) != 0)
        fail_msg("%s", words.text);
    return h;
}

static const struct remote_http_request post = {.method = "POST",
    .path = "/v3/kv/range",
    .body = "{\"key\":\"YQ==\"}",
    .body_len = 14,
    .timeout_ms = 5000,
    .max = 100};

static void test_call(void **state)
{
    static const char *const answers[] = {
        CANNED_OK "{\"count\":\"1\"}\n", "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy"};
    struct canned_server s;
    struct remote_http *h;
    struct remote_http_answer a;

    canned_server_start(&s, answers, 2);
    h = open_client(s.url, NULL);
    assert_int_equal(remote_http_set_authorization(h, "Bearer sesame"), 0);
    assert_int_equal(remote_http_call(h, &post, &a, &words), 0);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "{\"count\":\"1\"}\n");
    assert_int_equal(a.len, strlen(a.body));
    remote_http_answer_deinit(&a);
    assert_non_null(strstr(s.got, "POST /v3/kv/range HTTP/1.1\r\n"));
    assert_non_null(strstr(s.got, "Authorization: Bearer sesame\r\n"));
    assert_non_null(strstr(s.got, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(s.got, "\r\n\r\n{\"key\":\"YQ==\"}"));
    /* A refusal is an answer too. */
    assert_int_equal(remote_http_set_authorization(h, NULL), 0);
    assert_int_equal(remote_http_call(h, &post, &a, &words), 0);
    assert_int_equal(a.status, 503);
    assert_string_equal(a.body, "busy");
    assert_null(strstr(s.got, "Authorization"));
    remote_http_answer_deinit(&a);
    remote_http_free(h);
    canned_server_join(&s);
}

/* Where nobody is the request is not sent, so the next server gets it, and stays the current one.
 */
static void test_next_server(void **state)
{
    static const char *const answers[] = {CANNED_OK "a", CANNED_OK "b"};
    char dead[64];
    struct canned_server s;
    struct remote_http *h;
    struct remote_http_answer a;

    make_dead(dead, sizeof(dead));
    canned_server_start(&s, answers, 2);
    h = open_client(dead, s.url);
    assert_string_equal(remote_http_server(h), dead);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(remote_http_call(h, &post, &a, &words), 0);
        assert_string_equal(a.body, i == 0 ? "a" : "b");
        remote_http_answer_deinit(&a);
        assert_string_equal(remote_http_server(h), s.url);
    }
    canned_server_join(&s);
    /* Now nobody is left. */
    assert_int_equal(remote_http_call(h, &post, &a, &words), REMOTE_HTTP_E_UNSENT);
    assert_non_null(strstr(words.text, "does not answer"));
    remote_http_free(h);
}

/* A request that was sent is not repeated, whoever else there is. */
static void test_lost(void **state)
{
    static const char *const nothing[] = {NULL};
    static const char *const half[] = {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"};
    struct canned_server first;
    struct canned_server second;
    struct remote_http *h;
    struct remote_http_answer a;

    canned_server_start(&first, nothing, 1);
    canned_server_start(&second, half, 1);
    h = open_client(first.url, second.url);
    assert_int_equal(remote_http_call(h, &post, &a, &words), REMOTE_HTTP_E_LOST);
    assert_non_null(strstr(words.text, first.url));
    assert_string_equal(second.got, "");
    /* The next request turns to the other one; an answer that is not whole is none. */
    assert_int_equal(remote_http_call(h, &post, &a, &words), REMOTE_HTTP_E_LOST);
    assert_non_null(strstr(words.text, second.url));
    remote_http_free(h);
    canned_server_join(&first);
    canned_server_join(&second);
}

static void test_too_big(void **state)
{
    char answer[300] = CANNED_OK;
    const char *answers[] = {answer};
    struct canned_server s;
    struct remote_http *h;
    struct remote_http_answer a;

    memset(answer + strlen(CANNED_OK), 'x', 101);
    canned_server_start(&s, answers, 1);
    h = open_client(s.url, NULL);
    assert_int_equal(remote_http_call(h, &post, &a, &words), REMOTE_HTTP_E_TOO_BIG);
    assert_non_null(strstr(words.text, "longer than 100 bytes"));
    remote_http_free(h);
    canned_server_join(&s);
}

/* Nobody answers: neither a connection in the backlog nor a request may wait longer than it says.
 */
static void test_timeout(void **state)
{
    struct remote_http_request rq = post;
    struct canned_server s;
    struct remote_http *h;
    struct remote_http_answer a;

    /* It listens, and its thread takes nobody. */
    canned_server_start(&s, NULL, 0);
    h = open_client(s.url, NULL);
    rq.timeout_ms = 50;
    assert_int_equal(remote_http_call(h, &rq, &a, &words), REMOTE_HTTP_E_LOST);
    remote_http_free(h);
    canned_server_join(&s);
}

/* ---- streams -------------------------------------------------------------------------------- */

struct lines {
    unsigned n;
    char text[256];
};

static void on_line(void *ctx, const char *line, size_t len)
{
    struct lines *l = ctx;
    size_t used;

    assert_int_equal(strlen(line), len);
    l->n++;
    used = strlen(l->text);
    (void)snprintf(l->text + used, sizeof(l->text) - used, "%s|", line);
}

/* Open one, and wait for its end. */
static struct remote_http_end follow(
    struct remote_http *h, struct lines *lines, struct remote_http_stream **s)
{
    struct remote_http_end end = {.r = 99};
    struct remote_http_request rq = post;

    rq.max = 8;
    *lines = (struct lines){0};
    assert_int_equal(remote_http_open(h, &rq, on_line, lines, s, &words), 0);
    while (!remote_http_has_ended(*s, &end, &words))
        remote_http_wait(h, -1, 1000);
    return end;
}

static void test_stream(void **state)
{
    static const char *const answers[] = {CANNED_OK "one\ntwo\n\nhalf",
        CANNED_OK "12345678\n123456789\n",
        "HTTP/1.1 401 No\r\nConnection: close\r\n\r\nwho are you?", NULL};
    struct canned_server s;
    struct remote_http *h;
    struct remote_http_stream *stream;
    struct remote_http_end end;
    struct lines lines;

    canned_server_start(&s, answers, 4);
    h = open_client(s.url, NULL);
    /* What has no end is no line. */
    end = follow(h, &lines, &stream);
    assert_int_equal(end.r, 0);
    assert_int_equal(end.status, 200);
    assert_string_equal(lines.text, "one|two||");
    remote_http_close(stream);
    /* Each line is bounded. */
    end = follow(h, &lines, &stream);
    assert_int_equal(end.r, REMOTE_HTTP_E_TOO_BIG);
    assert_string_equal(lines.text, "12345678|");
    remote_http_close(stream);
    /* A refusal is no stream. */
    end = follow(h, &lines, &stream);
    assert_int_equal(end.r, 0);
    assert_int_equal(end.status, 401);
    assert_string_equal(end.answer, "who are you?");
    assert_int_equal(lines.n, 0);
    remote_http_close(stream);
    end = follow(h, &lines, &stream);
    assert_int_equal(end.r, REMOTE_HTTP_E_LOST);
    assert_int_equal(end.status, 0);
    remote_http_close(stream);
    remote_http_free(h);
    canned_server_join(&s);
}

/* Lines come while a call waits, and a wait ends when its descriptor is readable. */
static void test_stream_beside_calls(void **state)
{
    static const char *const answers[] = {CANNED_OK "a\nb\n", CANNED_OK "{}"};
    struct canned_server s;
    struct remote_http *h;
    struct remote_http_stream *stream;
    struct remote_http_answer a;
    struct lines lines = {0};
    int fd = wakeup_open();

    canned_server_start(&s, answers, 2);
    h = open_client(s.url, NULL);
    assert_int_equal(remote_http_open(h, &post, on_line, &lines, &stream, &words), 0);
    /* The server answers one after the other, so the stream is answered first. */
    while (lines.n < 2)
        remote_http_wait(h, -1, 1000);
    assert_int_equal(remote_http_call(h, &post, &a, &words), 0);
    remote_http_answer_deinit(&a);
    wakeup_signal(fd);
    remote_http_wait(h, fd, 1000000);
    assert_string_equal(lines.text, "a|b|");
    remote_http_close(stream);
    remote_http_free(h);
    canned_server_join(&s);
    close(fd);
}

/* ---- bounds --------------------------------------------------------------------------------- */

static void assert_refused(struct remote_http_config config, const char *what)
{
    struct remote_http *h = NULL;

    assert_int_equal(remote_http_new(&h, &config, &words), -EINVAL);
    if (!strstr(words.text, what))
        fail_msg("\"%s\" does not say \"%s\"", words.text, what);
}

static void test_bad_config(void **state)
{
    static const char *const bad[] = {"", "http://", "ftp://a", "http://a b", "https:///", "a:2379",
        "http://:2379", "http://a/", "http://user@a"};
    char longest[REMOTE_HTTP_SERVER_MAX + 2] = "http://";

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_refused((struct remote_http_config){.servers = {bad[i]}, .n_servers = 1}, bad[i]);
    memset(longest + 7, 'a', sizeof(longest) - 8);
    assert_refused((struct remote_http_config){.servers = {longest}, .n_servers = 1}, "HOST:PORT");
    assert_refused((struct remote_http_config){.n_servers = 0}, "0 servers");
    assert_refused(
        (struct remote_http_config){
            .servers = {"https://a:1"}, .n_servers = 1, .ca_file = "/nowhere/ca.pem"},
        "\"/nowhere/ca.pem\" cannot be read");
}

static void test_backoff(void **state)
{
    uint64_t seed = 7;
    struct rng rng = rng_seeded(&seed);
    struct remote_http_backoff b = {0};
    unsigned most = REMOTE_HTTP_BACKOFF_FIRST_MS;

    for (unsigned i = 0; i < 40; i++) {
        unsigned ms = remote_http_backoff_next(&b, &rng);

        assert_in_range(ms, most / 2, most);
        most = 2 * most < REMOTE_HTTP_BACKOFF_MAX_MS ? 2 * most : REMOTE_HTTP_BACKOFF_MAX_MS;
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_next_server),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_beside_calls),
        cmocka_unit_test(test_bad_config),
        cmocka_unit_test(test_backoff),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
