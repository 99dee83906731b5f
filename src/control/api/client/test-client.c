/* test-client.c - calls and streams on a loop, against a real server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "test/support/canned_server.h"
#include "test/support/sample_daemon.h"

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
    assert_int_equal(client_loop_new(&l->cl, &l->loop, &sample_words), 0);
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
        client_watch(l->cl, &t, path, 3000, line_max, on_line, on_end, l, &l->rq, &sample_words),
        0);
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
        watch(&l, i % 2 ? sample_by_https() : sample_by_unix(), cases[i / 2].path, 3000000);
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
    watch(&l, sample_by_unix(), "/v1/numbers/10/1000", 999);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_UNREACHABLE);
    assert_non_null(strstr(l.words, "longer than 999"));
    assert_int_equal(l.lines, 0);

    l.ended = 0;
    watch(&l, sample_by_unix(), "/v1/nowhere", 999);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_REFUSED);
    assert_string_equal(l.words, "there is no \"/v1/nowhere\"");
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
        watch(&l, i ? sample_by_https() : sample_by_unix(), "/v1/hear", 999);
        for (unsigned n = 0; n < 5; n++) {
            (void)snprintf(path, sizeof(path), "/v1/say/%u", n);
            while (sample_call(sample_by_unix(), "POST", path, NULL) != 0)
                uv_run(&l.loop, UV_RUN_NOWAIT);
            while (l.lines == n)
                uv_run(&l.loop, UV_RUN_ONCE);
        }
        assert_int_equal(l.lines, 5);
        assert_int_equal(l.ended, 0);
        listen_finish(&l);
        /* Until the server has seen that nobody listens any more, the next line finds it. */
        while (sample_call(sample_by_unix(), "POST", "/v1/say/9", NULL) == 0)
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
    watch(&l, sample_by_unix(), "/v1/numbers/5000/10", 999);
    while (l.lines < 7)
        uv_run(&l.loop, UV_RUN_ONCE);
    for (int i = 0; i < 5; i++)
        uv_run(&l.loop, UV_RUN_NOWAIT);
    assert_int_equal(l.lines, 7);
    assert_int_equal(l.ended, 0);

    /* From outside, and by the end of the client. */
    watch(&l, sample_by_unix(), "/v1/silence", 999);
    uv_run(&l.loop, UV_RUN_NOWAIT);
    l.rq = client_cancel(l.rq);
    watch(&l, sample_by_unix(), "/v1/silence", 999);
    uv_run(&l.loop, UV_RUN_NOWAIT);
    listen_finish(&l);
    assert_int_equal(l.ended, 0);
}

/* One of two streams. */
struct rival {
    struct client_request *rq;
    struct rival *other; /* to be cancelled at the next line; NULL: nobody */
    unsigned lines;
    bool is_cancelled;
};

static void on_rival_line(void *ctx, const char *line, size_t len)
{
    struct rival *rival = ctx;

    assert_false(rival->is_cancelled);
    rival->lines++;
    if (!rival->other)
        return;
    rival->other->rq = client_cancel(rival->other->rq);
    rival->other->is_cancelled = true;
    rival->other = NULL;
}

/* Both have bytes to read and a time of libcurl's that has come, so that it turns to the one after
 * the other in a single call: whoever is first cancels the other, which says no more. */
static void test_cancel_each_other(void **state)
{
    const struct client_target t = sample_by_unix();
    const unsigned connect_ms = 300;
    struct rival rivals[2] = {{.lines = 0}};
    struct listening l;

    listen_begin(&l);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(client_watch(l.cl, &t, "/v1/numbers/50000/1000", connect_ms, 1000,
                             on_rival_line, on_end, &rivals[i], &rivals[i].rq, &sample_words),
            0);
    while (rivals[0].lines == 0 || rivals[1].lines == 0)
        uv_run(&l.loop, UV_RUN_ONCE);
    rivals[0].other = &rivals[1];
    rivals[1].other = &rivals[0];
    (void)poll(NULL, 0, (int)connect_ms + 100);
    while (!rivals[0].is_cancelled && !rivals[1].is_cancelled)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_true(rivals[0].is_cancelled != rivals[1].is_cancelled);
    listen_finish(&l);
}

/* A chain of calls, each begun by the end of the one before. */
static void on_chain(void *ctx, int result, const struct client_answer *answer, const struct err *e)
{
    struct listening *l = ctx;
    struct client_target t = sample_by_unix();

    assert_int_equal(result, 0);
    assert_int_equal(answer->status, 200);
    l->ended++;
    if (l->ended < 5)
        assert_int_equal(client_start(l->cl, &t, "GET", "/v1/health", NULL, 5000, on_chain, l, NULL,
                             &sample_words),
            0);
}

static void test_calls_on_a_loop(void **state)
{
    struct client_target t = sample_by_https();
    struct listening l;

    listen_begin(&l);
    assert_int_equal(
        client_start(l.cl, &t, "GET", "/v1/health", NULL, 5000, on_chain, &l, NULL, &sample_words),
        0);
    while (l.ended < 5)
        uv_run(&l.loop, UV_RUN_ONCE);
    t.pin.b[0] ^= 1;
    l.ended = 0;
    assert_int_equal(
        client_start(l.cl, &t, "GET", "/v1/health", NULL, 5000, on_end, &l, NULL, &sample_words),
        0);
    while (!l.ended)
        uv_run(&l.loop, UV_RUN_ONCE);
    assert_int_equal(l.result, CLIENT_E_UNTRUSTED);
    listen_finish(&l);
}

/* What may be over soon is told from what would be the same the next time. */
static void test_what_may_pass(void **state)
{
    static const struct {
        const char *answer; /* NULL: the connection ends */
        int result;
        bool is_lost;
        bool may_pass;
    } cases[] = {{NULL, CLIENT_E_UNREACHABLE, true, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", CLIENT_E_UNREACHABLE, true, true},
        {"SSH-2.0-OpenSSH\r\n", CLIENT_E_UNREACHABLE, true, false},
        {CANNED_OK "no JSON", CLIENT_E_UNREACHABLE, false, false},
        {CANNED_STATUS("404 Not Found"), CLIENT_E_REFUSED, false, false}};
    struct client_target wrong = sample_by_https();

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct canned_server s;

        canned_server_start(&s, &cases[i].answer, 1);
        assert_int_equal(sample_call((struct client_target){.access = CLIENT_ACCESS_OVERLAY,
                                         .address = s.url + strlen("http://")},
                             "GET", "/v1/health", NULL),
            cases[i].result);
        canned_server_join(&s);
        assert_int_equal(sample_answer.is_lost, cases[i].is_lost);
        assert_int_equal(sample_answer.may_pass, cases[i].may_pass);
        /* Nobody listens there any more. */
        assert_int_equal(sample_call((struct client_target){.access = CLIENT_ACCESS_OVERLAY,
                                         .address = s.url + strlen("http://")},
                             "GET", "/v1/health", NULL),
            CLIENT_E_UNREACHABLE);
        assert_true(sample_answer.may_pass && !sample_answer.is_lost);
    }
    wrong.pin.b[0] ^= 1;
    assert_int_equal(sample_call(wrong, "GET", "/v1/health", NULL), CLIENT_E_UNTRUSTED);
    assert_false(sample_answer.may_pass);
}

/* A time that no clock of ours can have is none: it is counted in nanoseconds. */
static void test_dates(void **state)
{
    static const struct {
        const char *answer;
        int64_t date_s;
    } cases[] = {{CANNED_OK "{}", 0},
        {"HTTP/1.1 200 OK\r\nDate: Fri, 27 Nov 2026 05:31:00 GMT\r\nContent-Length: 2\r\n\r\n{}",
            1795757460},
        {"HTTP/1.1 200 OK\r\nDate: yesterday\r\nContent-Length: 2\r\n\r\n{}", 0},
        {"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\n{}",
            0},
        {"HTTP/1.1 200 OK\r\nDate: Fri, 31 Dec 9999 23:59:59 GMT\r\nContent-Length: 2\r\n\r\n{}",
            0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct canned_server s;

        canned_server_start(&s, &cases[i].answer, 1);
        assert_int_equal(sample_call((struct client_target){.access = CLIENT_ACCESS_OVERLAY,
                                         .address = s.url + strlen("http://")},
                             "GET", "/v1/health", NULL),
            0);
        canned_server_join(&s);
        assert_int_equal(sample_answer.date_s, cases[i].date_s);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_ends),
        cmocka_unit_test(test_quiet_stream),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_each_other),
        cmocka_unit_test(test_calls_on_a_loop),
        cmocka_unit_test(test_what_may_pass),
        cmocka_unit_test(test_dates),
    };

    return cmocka_run_group_tests(tests, sample_start, sample_stop);
}
