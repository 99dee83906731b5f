/* test-stun-port.c - what the second port answers, and to whom how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/err.h"
#include "hub/streams/streams.h"
#include "net/address/sockaddr.h"
#include "wire/stun.h"

static uv_loop_t loop;
static struct stun_port *port;
static uint16_t number;
static int client;

/* A UDP socket on this machine; -1: it has no such addresses. */
static int open_client(const char *text)
{
    struct endpoint at = {.port = 0};
    union sockaddr_inet sa;
    socklen_t len;
    int fd;

    assert_int_equal(ip_addr_parse(&at.addr, text, NULL), 0);
    len = sockaddr_from_endpoint(&sa, &at);
    fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, &sa.any, len) < 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static struct endpoint local_of(int fd)
{
    struct endpoint ep;

    assert_int_equal(sockaddr_local(fd, &ep), 0);
    return ep;
}

static int enter(void **state)
{
    int fd = open_client("127.0.0.1");

    number = local_of(fd).port;
    (void)close(fd);
    client = open_client("127.0.0.1");
    assert_int_equal(uv_loop_init(&loop), 0);
    return stun_port_new(&port, &loop, number, 7, NULL);
}

static int leave(void **state)
{
    port = stun_port_free(port);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)close(client);
    return uv_loop_close(&loop);
}

static void ask(int fd, const char *to, const void *bytes, size_t len)
{
    struct endpoint at = {.port = number};
    union sockaddr_inet sa;
    socklen_t sa_len;

    assert_int_equal(ip_addr_parse(&at.addr, to, NULL), 0);
    sa_len = sockaddr_from_endpoint(&sa, &at);
    assert_int_equal(sendto(fd, bytes, len, 0, &sa.any, sa_len), (ssize_t)len);
}

/* The next answer's length; 0: there is none. */
static size_t next_answer(int fd, uint8_t ret[static STUN_ANSWER_MAX])
{
    ssize_t n = -1;

    for (unsigned i = 0; i < 50 && n < 0; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        n = recv(fd, ret, STUN_ANSWER_MAX, MSG_DONTWAIT);
    }
    return n < 0 ? 0 : (size_t)n;
}

static void test_where_requests_come_from(void **state)
{
    const struct stun_transaction id = {{1, 2, 3}};
    struct endpoint own = local_of(client);
    uint8_t request[STUN_REQUEST_SIZE];
    uint8_t answer[STUN_ANSWER_MAX];
    struct stun_response rp;
    struct stun_refusal refusal;
    size_t len;

    /* What is no request gets no answer. */
    ask(client, "127.0.0.1", "hello", 5);
    stun_encode_request(&id, 0, request);
    ask(client, "127.0.0.1", request, sizeof(request));
    len = next_answer(client, answer);
    assert_int_equal(stun_decode_response(&rp, answer, len), 0);
    assert_memory_equal(&rp.id, &id, sizeof(id));
    assert_true(endpoint_equal(&rp.mapped, &own));
    assert_int_equal(next_answer(client, answer), 0);
    /* No answer goes to another port. */
    stun_encode_request(&id, own.port, request);
    ask(client, "127.0.0.1", request, sizeof(request));
    len = next_answer(client, answer);
    assert_int_equal(stun_decode_refusal(&refusal, answer, len), 0);
    assert_int_equal(refusal.code, STUN_UNKNOWN_ATTRIBUTE);
}

/* Answers that are longer than their requests are limited, and others are not. */
static void test_short_requests_are_limited(void **state)
{
    enum { N = 12 };
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    const struct stun_transaction id = {{1, 2, 3}};
    uint8_t request[STUN_REQUEST_SIZE];
    uint8_t answer[STUN_ANSWER_MAX];

    for (unsigned h = 0; h < 2; h++) {
        int fd = open_client(hosts[h]);
        unsigned n = 0;

        if (fd < 0)
            continue;
        /* Only its header, without what fills it up. */
        stun_encode_request(&id, 0, request);
        request[2] = request[3] = 0;
        for (unsigned i = 0; i < N; i++)
            ask(fd, hosts[h], request, STUN_HEADER_SIZE);
        while (next_answer(fd, answer) > 0)
            n++;
        assert_true(n >= STUN_LIMIT_BURST && n < N);
        /* By IPv6 the answer is just as long as the request. */
        stun_encode_request(&id, 0, request);
        for (unsigned i = 0; i < N; i++)
            ask(fd, hosts[h], request, sizeof(request));
        for (unsigned i = 0; i < N; i++)
            assert_true(next_answer(fd, answer) > 0);
        (void)close(fd);
    }
}

static void test_a_port_that_is_taken(void **state)
{
    struct stun_port *second = NULL;
    struct err e = ERR_NULL;

    assert_int_equal(stun_port_new(&second, &loop, number, 7, &e), -EADDRINUSE);
    assert_true(e.text[0] != '\0');
    assert_null(second);
    assert_null(stun_port_free(NULL));
    /* Once it is closed it is free again. */
    port = stun_port_free(port);
    assert_null(port);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(stun_port_new(&port, &loop, number, 7, &e), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_where_requests_come_from, enter, leave),
        cmocka_unit_test_setup_teardown(test_short_requests_are_limited, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_port_that_is_taken, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
