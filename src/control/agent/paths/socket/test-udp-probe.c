/*
 * test-udp-probe.c - does UDP get through? Requests to a socket of the test's on this machine,
 * which answers when the test wants it to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "agent/paths/socket/stun_socket.h"
#include "base/err.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "wire/stun.h"

#define SEC NSEC_PER_SEC

struct world {
    uv_loop_t loop;
    uv_timer_t wake;
    struct udp_probe probe;
    int server;
    struct endpoint at; /* of @server */
    struct stun_request asked;
    struct endpoint asker;
    unsigned n_answers;
    struct endpoint answered_by;
    nsec_t rtt;
};

static struct world w;

static void on_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    w.n_answers++;
    w.answered_by = *to;
    w.rtt = rtt;
}

static void on_wake(uv_timer_t *timer)
{
}

static int open_server(const char *address)
{
    union sockaddr_inet sa;
    struct endpoint any = {.port = 0};
    socklen_t len;

    assert_int_equal(ip_addr_parse(&any.addr, address, NULL), 0);
    len = sockaddr_from_endpoint(&sa, &any);
    w.server = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (w.server < 0 || bind(w.server, &sa.any, len) < 0)
        return -1;
    assert_int_equal(getsockname(w.server, &sa.any, &len), 0);
    assert_true(sockaddr_to_endpoint(&sa, &w.at));
    return 0;
}

static int enter_at(const char *address)
{
    w = (struct world){.n_answers = 0};
    assert_int_equal(uv_loop_init(&w.loop), 0);
    (void)uv_timer_init(&w.loop, &w.wake);
    (void)uv_timer_start(&w.wake, on_wake, 2, 2);
    udp_probe_init(&w.probe, &w.loop, on_answer, NULL);
    return open_server(address);
}

static int enter(void **state)
{
    return enter_at("127.0.0.1");
}

static int leave(void **state)
{
    udp_probe_stop(&w.probe);
    udp_probe_stop(&w.probe);
    uv_close((uv_handle_t *)&w.wake, NULL);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    (void)close(w.server);
    return uv_loop_close(&w.loop);
}

/* The next request that the server has. */
static void take_request(void)
{
    struct pollfd p = {.fd = w.server, .events = POLLIN};
    uint8_t request[256];
    union sockaddr_inet from;
    socklen_t len = sizeof(from);
    ssize_t n;

    assert_int_equal(poll(&p, 1, 20000), 1);
    n = recvfrom(w.server, request, sizeof(request), 0, &from.any, &len);
    assert_true(n > 0);
    assert_int_equal(stun_decode_request(&w.asked, request, (size_t)n), 0);
    assert_true(sockaddr_to_endpoint(&from, &w.asker));
}

static void send_answer(void)
{
    uint8_t answer[STUN_ANSWER_MAX];
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &w.asker);
    size_t n = stun_encode_answer(&w.asked, &w.asker, answer);

    assert_int_equal(sendto(w.server, answer, n, 0, &sa.any, len), n);
}

static void run_until(unsigned n_answers)
{
    nsec_t deadline = clock_now() + 20 * SEC;

    while (w.n_answers < n_answers) {
        assert_true(clock_now() < deadline);
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    }
}

static void ask(nsec_t now)
{
    udp_probe_ask(&w.probe, &w.at, now);
}

static const struct udp_probe_request *unanswered(nsec_t age, nsec_t now)
{
    return udp_probe_unanswered(&w.probe, &w.at, age, now);
}

/* ---- the tests --------------------------------------------------------------------------------
 */

static void answer_one(void)
{
    nsec_t now = clock_now();

    ask(now);
    assert_int_equal(unanswered(0, now)->sent_at, now);
    take_request();
    send_answer();
    run_until(1);
    assert_true(endpoint_equal(&w.answered_by, &w.at));
    assert_true(w.rtt > 0 && w.rtt <= clock_now() - now);
    assert_null(unanswered(0, clock_now()));
}

static void test_an_answer(void **state)
{
    answer_one();
}

static void test_an_answer_over_ipv6(void **state)
{
    (void)leave(state);
    if (enter_at("::1") != 0)
        skip();
    answer_one();
}

/* An answer counts once; one to another question, and what is none, does not count. */
static void test_what_is_no_answer(void **state)
{
    ask(clock_now());
    take_request();
    w.asked.id.b[3] ^= 1;
    send_answer();
    w.asked.id.b[3] ^= 1;
    {
        union sockaddr_inet sa;
        socklen_t len = sockaddr_from_endpoint(&sa, &w.asker);

        assert_int_equal(sendto(w.server, "no answer", 9, 0, &sa.any, len), 9);
    }
    send_answer();
    send_answer();
    /* The last one of all is known by its own question. */
    ask(clock_now());
    take_request();
    send_answer();
    run_until(2);
    assert_int_equal(w.n_answers, 2);
}

/* It should have been answered from that age on; the newest counts, of those to that place. */
static void test_what_is_unanswered(void **state)
{
    struct endpoint other = w.at;

    other.port ^= 1;
    assert_null(unanswered(0, 100 * SEC));
    ask(100 * SEC);
    assert_null(unanswered(2 * SEC, 102 * SEC - 1));
    assert_int_equal(unanswered(2 * SEC, 102 * SEC)->sent_at, 100 * SEC);
    assert_null(udp_probe_unanswered(&w.probe, &other, 0, 102 * SEC));
    ask(103 * SEC);
    assert_int_equal(unanswered(2 * SEC, 104 * SEC)->sent_at, 100 * SEC);
    assert_int_equal(unanswered(2 * SEC, 105 * SEC)->sent_at, 103 * SEC);
}

/* The oldest gives way. */
static void test_many(void **state)
{
    for (unsigned i = 0; i <= UDP_PROBE_MAX; i++)
        ask((100 + i) * SEC);
    for (unsigned i = 0; i < UDP_PROBE_MAX; i++)
        assert_int_not_equal(w.probe.requests[i].sent_at, 100 * SEC);
    take_request();
    send_answer();
    /* The second is known still. */
    take_request();
    send_answer();
    run_until(1);
    assert_int_equal(w.n_answers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_answer, enter, leave),
        cmocka_unit_test_setup_teardown(test_an_answer_over_ipv6, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_answer, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_unanswered, enter, leave),
        cmocka_unit_test_setup_teardown(test_many, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
