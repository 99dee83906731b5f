/*
 * test-echo-socket.c - pings, which the kernel answers on "lo" of a network namespace.
 */
#include "agent/paths/socket/echo_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "base/clock.h"
#include "net/netlink/rtnl.h"
#include "test/support/netns.h"
#include "wire/ip.h"

static struct world {
    uv_loop_t loop;
    uv_timer_t turn;
    struct echo_socket *socket;
    struct ip_addr own;
    struct ip_addr other;
    unsigned n_answers;
    uint64_t cookie; /* of the last one */
    struct ip_addr from;
} w;

static void on_answer(void *ctx, const struct ip_addr *from, uint64_t cookie)
{
    assert_ptr_equal(ctx, &w);
    w.n_answers++;
    w.cookie = cookie;
    w.from = *from;
}

static void on_turn(uv_timer_t *timer)
{
}

static void set_lo(struct netlink *nl, unsigned mtu)
{
    struct rtnl_link lo;

    assert_int_equal(rtnl_find_link(nl, "lo", &lo), 0);
    assert_int_equal(rtnl_set_link(nl, lo.ifindex, true, mtu), 0);
}

static int enter(void **state)
{
    memset(&w, 0, sizeof(w));
    if (netns_enter(state) != 0)
        return -1;
    if (!*state)
        return 0;
    set_lo(*state, 0);
    assert_int_equal(ip_addr_parse(&w.own, "127.0.0.1", NULL), 0);
    assert_int_equal(ip_addr_parse(&w.other, "127.0.0.2", NULL), 0);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.turn), 0);
    assert_int_equal(uv_timer_start(&w.turn, on_turn, 2, 2), 0);
    assert_int_equal(echo_socket_new(&w.socket), 0);
    return echo_socket_start(w.socket, &w.loop, "lo", on_answer, &w);
}

static int leave(void **state)
{
    if (!*state)
        return 0;
    echo_socket_stop(w.socket);
    echo_socket_stop(w.socket);
    uv_close((uv_handle_t *)&w.turn, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.socket = echo_socket_free(w.socket);
    assert_null(w.socket);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    return netns_leave(state);
}

static void ping(size_t len, uint64_t cookie)
{
    echo_socket_send(w.socket, &w.own, &w.other, len, cookie);
}

/* Returns how many answers there are by then. */
static unsigned wait_for_answers(unsigned n)
{
    for (unsigned i = 0; i < (n == 0 ? 25 : 2500) && (n == 0 || w.n_answers < n); i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    return w.n_answers;
}

static void test_a_ping_is_answered(void **state)
{
    (void)netns_need(state);
    ping(100, 0x123456789abcdef0);
    assert_int_equal(wait_for_answers(1), 1);
    assert_true(w.cookie == 0x123456789abcdef0);
    assert_true(ip_addr_equal(&w.from, &w.other));
}

/* The shortest one has an IP header and nothing but what makes it a ping. */
static void test_short_and_long_pings(void **state)
{
    (void)netns_need(state);
    ping(IP_V4_HEADER_MIN + ECHO_LEN - 1, 1);
    assert_int_equal(wait_for_answers(0), 0);
    ping(IP_V4_HEADER_MIN + ECHO_LEN, 2);
    assert_int_equal(wait_for_answers(1), 1);
    ping(ECHO_SOCKET_LEN_MAX, 3);
    assert_int_equal(wait_for_answers(2), 2);
    ping(ECHO_SOCKET_LEN_MAX + 1, 4);
    assert_int_equal(wait_for_answers(0), 2);
    assert_true(w.cookie == 3);
}

/* A ping is as long on the wire as it says, whole, and so one that is too long is lost. */
static void test_a_ping_is_not_cut(void **state)
{
    set_lo(netns_need(state), 1400);
    ping(1401, 1);
    assert_int_equal(wait_for_answers(0), 0);
    ping(1400, 2);
    assert_int_equal(wait_for_answers(1), 1);
}

static void test_the_answers_of_others(void **state)
{
    struct echo_socket *other;

    (void)netns_need(state);
    assert_int_equal(echo_socket_new(&other), 0);
    other->interface = "lo";
    if (other->id != w.socket->id)
        echo_socket_send(other, &w.own, &w.other, 100, 7);
    assert_int_equal(wait_for_answers(0), 0);
    (void)echo_socket_free(other);
}

/* Without its interface it would leave by another one, in the clear. */
static void test_an_interface_that_is_gone(void **state)
{
    (void)netns_need(state);
    w.socket->interface = "gone";
    ping(100, 1);
    assert_int_equal(wait_for_answers(0), 0);
}

/* An answer with that number of bytes of its IP packet, to a ping that had @seq. */
static void answer_with(uint16_t seq, size_t len)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct echo echo = {.id = w.socket->id, .seq = seq, .cookie = 9};
    uint8_t p[ECHO_SOCKET_LEN_MAX] = {0};
    int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    unsigned sum;

    echo_encode(&echo, true, p);
    /* From a request to an answer, and the checksum with it (RFC 1624). */
    sum = (unsigned)(p[2] << 8 | p[3]) + 0x0800;
    sum = (sum & 0xffff) + (sum >> 16);
    p[0] = 0;
    p[2] = (uint8_t)(sum >> 8);
    p[3] = (uint8_t)sum;
    len -= IP_V4_HEADER_MIN;
    assert_int_equal(sendto(fd, p, len, 0, (const struct sockaddr *)&to, sizeof(to)), (ssize_t)len);
    (void)close(fd);
}

/* Somebody on the way has cut it: the path does not carry so much. */
static void test_an_answer_that_is_shorter_than_its_ping(void **state)
{
    (void)netns_need(state);
    answer_with(1000, 999);
    assert_int_equal(wait_for_answers(0), 0);
    answer_with(1000, 1000);
    assert_int_equal(wait_for_answers(1), 1);
    assert_true(w.cookie == 9);
}

static void test_nothing_is_heard_after_its_end(void **state)
{
    (void)netns_need(state);
    ping(100, 1);
    assert_int_equal(wait_for_answers(1), 1);
    echo_socket_stop(w.socket);
    ping(100, 2);
    assert_int_equal(wait_for_answers(0), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_a_ping_is_answered),
        TEST(test_short_and_long_pings),
        TEST(test_a_ping_is_not_cut),
        TEST(test_the_answers_of_others),
        TEST(test_an_interface_that_is_gone),
        TEST(test_an_answer_that_is_shorter_than_its_ping),
        TEST(test_nothing_is_heard_after_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
