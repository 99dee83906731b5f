/* test-udp.c - batches of datagrams through the loopback, and the names of offloads. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "net/socket/tcp.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"

/** Two ports of this process. */
struct pair {
    struct udp_sockets a, b;
    struct udp_inbox in;
    struct udp_outbox out;
};

static void open_pair(struct pair *p, bool gso, bool gro)
{
    struct offloads offloads = offloads_all();
    struct err e = ERR_NULL;

    if (!gro)
        offload_off(&offloads, OFFLOAD_UDP_GRO, "for this test");
    if (udp_open(&p->a, 0, 0, UDP_SHARE_NONE, &offloads, &e) < 0 ||
        udp_open(&p->b, 0, 0, UDP_SHARE_NONE, &offloads, &e) < 0)
        fail_msg("%s", err_text(&e));
    assert_int_equal(udp_inbox_init(&p->in), 0);
    assert_int_equal(udp_outbox_init(&p->out, gso, true), 0);
}

static void close_pair(struct pair *p)
{
    udp_close(&p->a);
    udp_close(&p->b);
    udp_close(&p->b);
    udp_inbox_deinit(&p->in);
    udp_outbox_deinit(&p->out);
}

static struct udp_path path_to(const struct udp_sockets *s, const char *address)
{
    struct udp_path path = {.remote.port = s->port};

    assert_int_equal(ip_addr_parse(&path.remote.addr, address, NULL), 0);
    return path;
}

static int fd_for(const struct udp_sockets *s, const struct udp_path *path)
{
    return s->fd[ip_addr_is_v4(&path->remote.addr) ? UDP_FAMILY_V4 : UDP_FAMILY_V6];
}

/* Takes @n_bytes, in order; every run must be of size @seg. Returns how many calls it took. */
static unsigned expect(struct pair *p, const struct udp_path *path, const uint8_t *want,
    size_t n_bytes, uint16_t seg, uint8_t tos)
{
    struct pollfd pfd = {.fd = fd_for(&p->b, path), .events = POLLIN};
    unsigned n_calls = 0;
    size_t off = 0;

    for (; off < n_bytes; n_calls++) {
        unsigned n;

        assert_int_equal(poll(&pfd, 1, 5000), 1);
        n = udp_receive(&p->in, pfd.fd);
        assert_true(n > 0);
        for (unsigned i = 0; i < n; i++) {
            const struct udp_run *run = &p->in.runs[i];

            assert_true(run->len <= n_bytes - off);
            assert_memory_equal(run->buf, want + off, run->len);
            assert_true(run->seg == seg || run->len < seg);
            assert_int_equal(run->tos, tos);
            assert_int_equal(run->path.remote.port, p->a.port);
            assert_true(ip_addr_equal(&run->path.remote.addr, &path->remote.addr));
            assert_true(ip_addr_equal(&run->path.local, &path->remote.addr));
            off += run->len;
        }
    }
    assert_int_equal(udp_receive(&p->in, pfd.fd), 0);
    return n_calls;
}

static uint8_t *some_bytes(size_t n)
{
    uint8_t *p = malloc(n);

    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 13 + (i >> 8));
    return p;
}

/* @n_bytes in datagrams of @seg, sent and received in every way. */
static void send_and_expect(const char *address, uint32_t n_bytes, uint16_t seg, uint8_t tos)
{
    uint8_t *bytes = some_bytes(n_bytes);

    for (int mode = 0; mode < 4; mode++) {
        struct pair p;
        struct udp_path path;
        struct udp_run run = {.buf = bytes, .len = n_bytes, .seg = seg, .tos = tos};

        open_pair(&p, mode & 1, mode & 2);
        path = path_to(&p.b, address);
        run.path = path;
        udp_outbox_add(&p.out, &p.a, &run);
        udp_outbox_flush(&p.out, &p.a);
        assert_int_equal(p.out.n_failed, 0);
        (void)expect(&p, &path, bytes, n_bytes, seg, tos);
        close_pair(&p);
    }
    free(bytes);
}

static void test_runs(void **state)
{
    send_and_expect("127.0.0.1", 100, 100, 0);
    send_and_expect("127.0.0.1", 1, 1, 2);
    send_and_expect("127.0.0.1", 45 * 1452, 1452, 1);
    send_and_expect("127.0.0.1", 3 * 1452 + 17, 1452, 0x88);
    /* More datagrams than one call may carry, and more than the outbox holds. */
    send_and_expect("127.0.0.1", 500 * 60 + 1, 60, 0);
}

static void test_v6(void **state)
{
    struct pair p;
    bool has_v6;

    open_pair(&p, true, true);
    has_v6 = p.a.fd[UDP_FAMILY_V6] >= 0;
    close_pair(&p);
    if (!has_v6)
        skip();
    send_and_expect("::1", 45 * 1432, 1432, 3);
}

/* Several destinations in one flush, of both families, keep their order each. */
static void test_many_destinations(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3"};
    uint8_t *bytes = some_bytes(3000);
    struct pair p;

    open_pair(&p, true, true);
    for (int i = 0; i < 3; i++) {
        struct udp_run run = {
            .buf = bytes + i * 1000, .len = 1000, .seg = 300, .path = path_to(&p.b, addresses[i])};

        udp_outbox_add(&p.out, &p.a, &run);
    }
    udp_outbox_flush(&p.out, &p.a);
    assert_int_equal(p.out.n_failed, 0);
    for (unsigned got = 0; got < 3000;) {
        struct pollfd pfd = {.fd = p.b.fd[UDP_FAMILY_V4], .events = POLLIN};
        unsigned n;

        assert_int_equal(poll(&pfd, 1, 5000), 1);
        n = udp_receive(&p.in, pfd.fd);
        for (unsigned i = 0; i < n; i++) {
            const struct udp_run *run = &p.in.runs[i];
            unsigned which = run->path.local.b[15] - 1u;

            assert_in_range(which, 0, 2);
            assert_memory_equal(run->buf, bytes + which * 1000, run->len);
            got += run->len;
        }
    }
    free(bytes);
    close_pair(&p);
}

/* We answer from the address that was spoken to; if it is gone, from any. */
static void test_local_address(void **state)
{
    uint8_t byte = 7;
    struct pair p;
    struct udp_run run = {.buf = &byte, .len = 1, .seg = 1};

    open_pair(&p, true, true);
    run.path = path_to(&p.b, "127.0.0.1");
    assert_int_equal(ip_addr_parse(&run.path.local, "127.0.0.9", NULL), 0);
    udp_outbox_add(&p.out, &p.a, &run);
    udp_outbox_flush(&p.out, &p.a);
    assert_int_equal(udp_receive(&p.in, p.b.fd[UDP_FAMILY_V4]), 1);
    assert_true(ip_addr_equal(&p.in.runs[0].path.remote.addr, &run.path.local));

    assert_int_equal(ip_addr_parse(&run.path.local, "192.0.2.77", NULL), 0);
    udp_outbox_add(&p.out, &p.a, &run);
    udp_outbox_flush(&p.out, &p.a);
    assert_int_equal(p.out.n_failed, 0);
    assert_int_equal(udp_receive(&p.in, p.b.fd[UDP_FAMILY_V4]), 1);
    assert_false(ip_addr_equal(&p.in.runs[0].path.remote.addr, &run.path.local));
    close_pair(&p);
}

/* What cannot be sent is counted, datagram by datagram, and does not stop the rest. */
/* What the next datagram on @fd had as its time to live (hop limit). */
static int receive_hops(int fd)
{
    uint8_t bytes[16];
    _Alignas(struct cmsghdr) uint8_t control[256];
    struct iovec iov = {bytes, sizeof(bytes)};
    struct msghdr mh = {.msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    int hops = 0;

    assert_true(recvmsg(fd, &mh, 0) > 0);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&mh); c; c = CMSG_NXTHDR(&mh, c))
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT))
            memcpy(&hops, CMSG_DATA(c), sizeof(hops));
    return hops;
}

/* One datagram with a time to live of its own; those before and after it have the usual one. */
static void check_hops(const char *address)
{
    uint8_t byte = 7;
    int on = 1;
    struct pair p;
    struct udp_run run = {.buf = &byte, .len = 1, .seg = 1, .tos = 1};
    int fd;

    open_pair(&p, true, true);
    run.path = path_to(&p.b, address);
    fd = fd_for(&p.b, &run.path);
    if (fd >= 0) {
        bool v4 = ip_addr_is_v4(&run.path.remote.addr);
        static const uint8_t hops[] = {0, 3, 0, 255};

        assert_int_equal(setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
                             v4 ? IP_RECVTTL : IPV6_RECVHOPLIMIT, &on, sizeof(on)),
            0);
        for (unsigned i = 0; i < sizeof(hops); i++) {
            run.hops = hops[i];
            udp_outbox_add(&p.out, &p.a, &run);
        }
        udp_outbox_flush(&p.out, &p.a);
        assert_int_equal(p.out.n_failed, 0);
        for (unsigned i = 0; i < sizeof(hops); i++)
            assert_int_equal(receive_hops(fd), hops[i] ? hops[i] : 64);
    }
    close_pair(&p);
}

static void test_hops(void **state)
{
    check_hops("127.0.0.1");
    check_hops("::1");
}

static void test_failures(void **state)
{
    uint8_t *bytes = some_bytes(400);
    struct pair p;
    struct udp_path good;
    struct udp_run bad = {.buf = bytes, .len = 400, .seg = 100};

    open_pair(&p, true, true);
    good = path_to(&p.b, "127.0.0.1");
    /* A broadcast is refused to a socket that did not ask for it. */
    bad.path = path_to(&p.b, "255.255.255.255");
    udp_outbox_add(&p.out, &p.a, &bad);
    udp_outbox_add(
        &p.out, &p.a, &(struct udp_run){.buf = bytes, .len = 400, .seg = 100, .path = good});
    udp_outbox_flush(&p.out, &p.a);
    assert_int_equal(p.out.n_failed, 4);
    assert_true(p.out.last_error == EACCES || p.out.last_error == ENETUNREACH);
    (void)expect(&p, &good, bytes, 400, 100, 0);
    /* No socket of that family. */
    udp_close(&p.a);
    udp_outbox_add(&p.out, &p.a, &bad);
    udp_outbox_flush(&p.out, &p.a);
    assert_int_equal(p.out.n_failed, 8);
    free(bytes);
    close_pair(&p);
}

/* More than the system's limit takes CAP_NET_ADMIN. */
static bool may_exceed_limit(int fd)
{
    int size;
    socklen_t len = sizeof(size);

    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len), 0);
    /* The kernel doubles what it is told: this leaves the size as it is. */
    size /= 2;
    return setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) == 0;
}

/* What several streams have under way waits until somebody receives. */
static void test_burst(void **state)
{
    enum { SEG = 1280, RUN_LEN = 50 * SEG, RUNS = 250 };
    uint8_t *bytes = some_bytes(RUN_LEN);
    struct udp_run run = {.buf = bytes, .len = RUN_LEN, .seg = SEG};
    unsigned n_received = 0;
    struct pair p;
    int fd;

    open_pair(&p, true, true);
    run.path = path_to(&p.b, "127.0.0.1");
    fd = fd_for(&p.b, &run.path);
    for (unsigned i = 0; i < RUNS; i++)
        udp_outbox_add(&p.out, &p.a, &run);
    udp_outbox_flush(&p.out, &p.a);
    for (unsigned n; (n = udp_receive(&p.in, fd)) > 0;)
        for (unsigned i = 0; i < n; i++)
            n_received += udp_run_count(&p.in.runs[i]);
    assert_true(n_received > 0);
    if (may_exceed_limit(fd))
        assert_int_equal(n_received, RUNS * RUN_LEN / SEG);
    free(bytes);
    close_pair(&p);
}

static void test_port_taken(void **state)
{
    struct offloads offloads = offloads_all();
    struct udp_sockets other;
    struct err e = ERR_NULL;
    struct pair p;

    open_pair(&p, true, true);
    assert_int_equal(udp_open(&other, p.a.port, 0, UDP_SHARE_NONE, &offloads, &e), -EADDRINUSE);
    assert_non_null(strstr(err_text(&e), "in use"));
    close_pair(&p);
}

/* Who listens there is named, and not the connection that has the same port. */
static void test_tcp_port_taken(void **state)
{
    struct endpoint any = {0};
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    struct err e = ERR_NULL;
    char words[120];
    int fd = -1;
    int other = -1;

    assert_int_equal(tcp_listener_open(&fd, &any, NULL, false, &e), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    any.port = ntohs(at.sin_port);
    assert_int_equal(tcp_listener_open(&other, &any, NULL, false, &e), -EADDRINUSE);
    (void)snprintf(words, sizeof(words),
        "TCP port %u is in use already (EADDRINUSE): test-net-udp "
        "(process %d) has it",
        any.port, (int)getpid());
    assert_string_equal(err_text(&e), words);
    (void)close(fd);
}

/* One datagram each from @n sockets of their own. */
static void send_from_many(const struct udp_path *to, unsigned n)
{
    struct offloads offloads = offloads_all();

    for (unsigned i = 0; i < n; i++) {
        struct udp_sockets from;

        assert_int_equal(udp_open(&from, 0, 0, UDP_SHARE_NONE, &offloads, NULL), 0);
        assert_int_equal(udp_connect(&from, &to->remote), 0);
        assert_int_equal(send(fd_for(&from, to), "x", 1, 0), 1);
        udp_close(&from);
    }
}

static unsigned count_waiting(int fd)
{
    unsigned n = 0;
    uint8_t byte;

    while (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) == 1)
        n++;
    return n;
}

/* What comes from many places is spread over both sockets, and no stranger gets any of it. */
static void test_port_shared(void **state)
{
    static const char *const addresses[UDP_FAMILY_N] = {"127.0.0.1", "::1"};
    struct offloads offloads = offloads_all();
    struct udp_sockets first, next, stranger;

    assert_int_equal(udp_open(&first, 0, 0, UDP_SHARE_FIRST, &offloads, NULL), 0);
    assert_int_equal(udp_open(&next, first.port, 0, UDP_SHARE_NEXT, &offloads, NULL), 0);
    assert_int_equal(
        udp_open(&stranger, first.port, 0, UDP_SHARE_FIRST, &offloads, NULL), -EADDRINUSE);
    for (unsigned f = 0; f < UDP_FAMILY_N; f++) {
        struct udp_path to = path_to(&first, addresses[f]);
        unsigned n;

        if (first.fd[f] < 0)
            continue;
        send_from_many(&to, 32);
        n = count_waiting(first.fd[f]);
        /* That all go one way is as likely as one in two thousand million. */
        assert_in_range(n, 1, 31);
        assert_int_equal(count_waiting(next.fd[f]), 32 - n);
    }
    udp_close(&first);
    udp_close(&next);
}

/* What has no room is counted; what comes in order is not. */
static void test_drops(void **state)
{
    enum { N = 400 };
    static uint8_t buf[1000];
    struct udp_sockets none = UDP_SOCKETS_NULL;
    struct pair p;
    struct udp_path path;
    unsigned n = 0;
    unsigned got;
    int fd;

    open_pair(&p, false, false);
    path = path_to(&p.b, "127.0.0.1");
    fd = fd_for(&p.b, &path);
    assert_int_equal(udp_drops(&p.b), 0);
    assert_int_equal(udp_drops(&none), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int)), 0);
    for (unsigned i = 0; i < N; i++) {
        struct udp_run run = {.buf = buf, .len = sizeof(buf), .seg = sizeof(buf), .path = path};

        udp_outbox_add(&p.out, &p.a, &run);
        udp_outbox_flush(&p.out, &p.a);
    }
    while ((got = udp_receive(&p.in, fd)) > 0)
        n += got;
    assert_in_range(n, 1, N - 1);
    assert_int_equal(udp_drops(&p.b), N - n);
    assert_int_equal(udp_drops(&p.a), 0);
    close_pair(&p);
}

static void test_offload_names(void **state)
{
    struct offloads o = offloads_all();
    struct err e = ERR_NULL;

    assert_int_equal(offload_parse(&o, "tso,udp-gro", &e), 0);
    assert_true(o.on[OFFLOAD_UDP_GSO] && o.on[OFFLOAD_USO]);
    assert_false(o.on[OFFLOAD_UDP_GRO] || o.on[OFFLOAD_TSO]);
    /* The first reason stays. */
    offload_off(&o, OFFLOAD_TSO, "another reason");
    assert_null(strstr(o.why[OFFLOAD_TSO], "another"));
    for (size_t i = 0; i < 4; i++) {
        static const char *const bad[] = {"", "tso,", "lro", "all,tso"};
        struct offloads before = o;

        assert_int_equal(offload_parse(&o, bad[i], &e), -EINVAL);
        assert_memory_equal(&o, &before, sizeof(o));
    }
    assert_int_equal(offload_parse(&o, "all", &e), 0);
    for (int i = 0; i < OFFLOAD_N; i++)
        assert_false(o.on[i]);
}

/* On the loopback of any Linux since 5.0 both work. */
static void test_offload_test(void **state)
{
    struct offloads o = offloads_all();

    offload_test_udp(&o);
    if (!o.on[OFFLOAD_UDP_GSO] || !o.on[OFFLOAD_UDP_GRO])
        fail_msg("gso: %s; gro: %s", o.why[OFFLOAD_UDP_GSO], o.why[OFFLOAD_UDP_GRO]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_v6),
        cmocka_unit_test(test_many_destinations),
        cmocka_unit_test(test_local_address),
        cmocka_unit_test(test_hops),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_port_taken),
        cmocka_unit_test(test_tcp_port_taken),
        cmocka_unit_test(test_port_shared),
        cmocka_unit_test(test_drops),
        cmocka_unit_test(test_offload_names),
        cmocka_unit_test(test_offload_test),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
