/* test-raw-udp.c - datagrams beside a socket that has the port, through the loopback. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/addr.h"
#include "net/address/sockaddr.h"
#include "net/socket/raw_udp.h"
#include "test/support/emulated.h"

#define PATIENCE_MS 5000

/* A socket of somebody else's, and its port. */
static int open_owner(const char *address, struct endpoint *ret)
{
    union sockaddr_inet sa;
    struct endpoint ep;
    socklen_t len;
    int on = 1;
    int fd;

    assert_int_equal(endpoint_parse(&ep, address, NULL), 0);
    ep.port = 0;
    len = sockaddr_from_endpoint(&sa, &ep);
    fd = socket(sa.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, &sa.any, len) < 0)
        skip();
    if (sa.any.sa_family == AF_INET)
        assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)), 0);
    else
        assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on)), 0);
    len = sizeof(sa);
    assert_int_equal(getsockname(fd, &sa.any, &len), 0);
    assert_true(sockaddr_to_endpoint(&sa, ret));
    return fd;
}

static void send_to(int fd, const struct endpoint *to, const void *data, size_t len)
{
    union sockaddr_inet sa;
    socklen_t sa_len = sockaddr_from_endpoint(&sa, to);

    assert_int_equal(sendto(fd, data, len, 0, &sa.any, sa_len), len);
}

/* The next frame, which must be @data from @from. */
static void expect(struct raw_udp *ru, const struct endpoint *from, const void *data, size_t len)
{
    struct pollfd pfd = {.fd = ru->poll_fd, .events = POLLIN};
    struct raw_udp_packet packet;
    uint8_t got[2048];
    size_t n;

    assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
    assert_int_equal(raw_udp_receive(ru, &packet, got, sizeof(got), &n), 0);
    assert_int_equal(n, len);
    assert_memory_equal(got, data, len);
    assert_true(endpoint_equal(&packet.remote, from));
}

/* Takes a datagram into @got; returns its time to live (hop limit). */
static int receive_with_hops(int fd, uint8_t *got, size_t cap)
{
    _Alignas(struct cmsghdr) uint8_t control[256];
    struct iovec iov = {got, cap};
    struct msghdr mh = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    int hops = 0;

    assert_true(recvmsg(fd, &mh, 0) > 0);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
        if (c->cmsg_type == IP_TTL || c->cmsg_type == IPV6_HOPLIMIT)
            memcpy(&hops, CMSG_DATA(c), sizeof(hops));
    return hops;
}

static void run_pair(const char *address)
{
    static const uint8_t data_message[32] = {4};
    static const uint8_t frame[] = {0x80, 1, 2, 3, 4};
    static const uint8_t stun[20] = {1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42};
    static const uint8_t no_stun[20] = {1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x43};
    struct raw_udp ru = RAW_UDP_NULL;
    struct endpoint ours;
    struct endpoint other;
    struct raw_udp_packet packet = {.dont_fragment = true};
    uint8_t got[2048];
    size_t n;
    int owner = open_owner(address, &ours);
    int peer = open_owner(address, &other);
    int r = raw_udp_open(&ru, ours.port);

    if (r == -EPERM || emulated_lacks("IPV6_HDRINCL")) {
        (void)close(owner);
        (void)close(peer);
        skip();
    }
    assert_int_equal(r, 0);
    /* In: only what is a frame, and the port's owner gets everything all the same. */
    send_to(peer, &ours, data_message, sizeof(data_message));
    send_to(peer, &ours, no_stun, sizeof(no_stun));
    send_to(peer, &ours, frame, sizeof(frame));
    send_to(peer, &ours, stun, sizeof(stun));
    expect(&ru, &other, frame, sizeof(frame));
    expect(&ru, &other, stun, sizeof(stun));
    assert_int_equal(raw_udp_receive(&ru, &packet, got, sizeof(got), &n), RAW_UDP_E_EMPTY);
    assert_int_equal(recv(owner, got, sizeof(got), 0), sizeof(data_message));
    /* Out: the receiver's kernel has checked the sum, and the source is the owner's port. */
    for (uint8_t hops = 0; hops < 4; hops++) {
        packet = (struct raw_udp_packet){.remote = other, .dont_fragment = true, .hops = hops};
        assert_int_equal(raw_udp_send(&ru, &packet, frame, sizeof(frame)), 0);
        assert_int_equal(receive_with_hops(peer, got, sizeof(got)), hops ? hops : 64);
        assert_memory_equal(got, frame, sizeof(frame));
    }
    /* Packets that are passed over take a bounded part of a turn, and others wait behind them. */
    for (unsigned i = 0; i <= RAW_UDP_SKIPPED_MAX; i++)
        send_to(peer, &ours, frame, sizeof(frame));
    assert_int_equal(raw_udp_receive(&ru, &packet, got, sizeof(frame) - 1, &n), RAW_UDP_E_EMPTY);
    expect(&ru, &other, frame, sizeof(frame));
    raw_udp_close(&ru);
    (void)close(owner);
    (void)close(peer);
}

static void test_v4(void **state)
{
    run_pair("127.0.0.1:1");
}

static void test_v6(void **state)
{
    run_pair("[::1]:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v4),
        cmocka_unit_test(test_v6),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
