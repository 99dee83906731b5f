/* test-tcp-flows.c - how connections go, on the loopback of this namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "net/socket/tcp.h"

/* Nobody else on the loopback has this address. */
static const uint8_t address[4] = {127, 42, 0, 1};

struct pair {
    int a;         /* has connected */
    int b;         /* was accepted */
    uint16_t from; /* port of @a */
    uint16_t to;   /* port of @b */
};

static uint16_t port_of(int fd)
{
    struct sockaddr_in got = {0};
    socklen_t len = sizeof(got);

    assert_int_equal(getsockname(fd, (struct sockaddr *)&got, &len), 0);
    return ntohs(got.sin_port);
}

static struct pair connect_pair(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct pair p = {.a = socket(AF_INET, SOCK_STREAM, 0)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(&at.sin_addr, address, sizeof(address));
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(bind(p.a, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 1), 0);
    p.to = port_of(fd);
    at.sin_port = htons(p.to);
    assert_int_equal(connect(p.a, (struct sockaddr *)&at, sizeof(at)), 0);
    p.b = accept(fd, NULL, NULL);
    assert_true(p.b >= 0);
    p.from = port_of(p.a);
    (void)close(fd);
    return p;
}

static void end(struct pair *p)
{
    (void)close(p->a);
    (void)close(p->b);
}

/* The connection of that local port, and how many there are. */
struct wanted {
    uint16_t port;
    struct tcp_flow flow;
    unsigned n;
    unsigned n_all;
};

static int take(void *ctx, const struct tcp_flow *flow)
{
    struct wanted *w = ctx;
    struct ip_addr at = ip_addr_v4(address);

    /* The kernel has passed over all others. */
    assert_true(ip_addr_equal(&flow->local.addr, &at));
    w->n_all++;
    if (flow->local.port != w->port)
        return 0;
    w->flow = *flow;
    w->n++;
    return 0;
}

static struct netlink nl;

static int begin(void **state)
{
    /* As on a kernel without inet_diag. */
    if (netlink_open(&nl, NETLINK_SOCK_DIAG) < 0)
        nl = (struct netlink)NETLINK_NULL;
    return 0;
}

static int finish(void **state)
{
    netlink_close(&nl);
    return 0;
}

static struct tcp_flow find(uint16_t port)
{
    struct wanted w = {.port = port};
    struct ip_addr at = ip_addr_v4(address);
    int r = nl.socket ? tcp_flows_list(&nl, &at, take, &w) : -ENOENT;

    /* A kernel without inet_diag. */
    if (r == -ENOENT)
        skip();
    assert_int_equal(r, 0);
    assert_int_equal(w.n, 1);
    return w.flow;
}

static uint32_t inode_of(int fd)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    return (uint32_t)st.st_ino;
}

static void test_what_was_sent(void **state)
{
    struct pair p = connect_pair();
    struct tcp_flow a;
    struct tcp_flow b;
    char buf[1000] = {0};

    assert_int_equal(send(p.a, buf, sizeof(buf), 0), sizeof(buf));
    assert_int_equal(recv(p.b, buf, sizeof(buf), MSG_WAITALL), sizeof(buf));
    /* It may be acknowledged a moment after it was read. */
    do {
        a = find(p.from);
    } while (a.acked < sizeof(buf));
    b = find(p.to);
    assert_int_equal(a.inode, inode_of(p.a));
    assert_int_equal(b.inode, inode_of(p.b));
    assert_int_equal(a.remote.port, p.to);
    assert_int_not_equal(a.cookie, b.cookie);
    /* Handshakes count for a byte. */
    assert_true(a.acked <= 1002);
    assert_true(b.received >= 1000 && b.received <= 1002);
    assert_true(a.segments >= 1);
    assert_int_equal(a.queued, 0);
    assert_int_equal(b.unread, 0);
    end(&p);
}

/* What is not read is seen on one side, and that it is waited for on the other. */
static void test_who_does_not_read(void **state)
{
    static char buf[65536];
    struct pair p = connect_pair();
    struct tcp_flow before;
    struct tcp_flow now;
    size_t n = 0;
    ssize_t sent;

    assert_int_equal(fcntl(p.a, F_SETFL, O_NONBLOCK), 0);
    before = find(p.from);
    for (unsigned quiet = 0; quiet < 3;) {
        sent = send(p.a, buf, sizeof(buf), 0);
        n += sent > 0 ? (size_t)sent : 0;
        if (sent > 0)
            quiet = 0;
        else if (poll(&(struct pollfd){.fd = p.a, .events = POLLOUT}, 1, 50) == 0)
            quiet++;
    }
    now = find(p.from);
    assert_true(find(p.to).unread > 0);
    assert_true(now.queued > 0);
    assert_true(now.queued < n);
    assert_true(now.busy_us - before.busy_us >= 100000);
    assert_true(now.window_us - before.window_us >= 50000);
    assert_true(now.window_us <= now.busy_us);
    end(&p);
}

static int stop(void *ctx, const struct tcp_flow *flow)
{
    (*(unsigned *)ctx)++;
    return -ECANCELED;
}

static void test_the_taker_may_fail(void **state)
{
    struct pair p = connect_pair();
    struct ip_addr at = ip_addr_v4(address);
    unsigned n = 0;

    (void)find(p.from);
    assert_int_equal(tcp_flows_list(&nl, &at, stop, &n), -ECANCELED);
    assert_true(n > 0);
    end(&p);
}

static void test_no_connection(void **state)
{
    static const uint8_t nobodys[16] = {0xfd, 0x5a, [15] = 9};
    struct ip_addr at = ip_addr_v6(nobodys);
    struct wanted w = {.port = 0};

    if (!nl.socket)
        skip();
    assert_int_equal(tcp_flows_list(&nl, &at, take, &w), 0);
    assert_int_equal(w.n_all, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_sent),
        cmocka_unit_test(test_who_does_not_read),
        cmocka_unit_test(test_the_taker_may_fail),
        cmocka_unit_test(test_no_connection),
    };

    return cmocka_run_group_tests(tests, begin, finish);
}
