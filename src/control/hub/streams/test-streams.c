/* test-streams.c - a member's datagrams in a connection, from its beginning to each of its ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "api/server/server.h"
#include "base/err.h"
#include "hub/streams/streams.h"
#include "os/clock.h"
#include "test/support/audience.h"

/* Turns of the loop that are enough for all that is under way. */
#define TURNS 20

static struct {
    uv_loop_t loop;
    struct server *server;
    struct streams streams;
    char path[96];           /* of the server's socket */
    int udp;                 /* the hub's own UDP port */
    struct model_node *node; /* who opens a stream next */
    uint16_t from_port;      /* of the connection that is opened next */
    bool is_removed_at_once; /* its node, before the connection is open */
    unsigned n_opened;       /* calls of on_open() */
    struct endpoint at;      /* its last one's */
} w;

/* The lowest descriptor that was free before the test. */
static int lowest_free;

static int find_lowest_free(void)
{
    int fd = dup(0);

    (void)close(fd);
    return fd;
}

static void on_open(void *ctx, const struct model_node *node, const struct endpoint *ep)
{
    assert_ptr_equal(ctx, &w);
    assert_ptr_equal(node, w.node);
    w.n_opened++;
    w.at = *ep;
}

static struct endpoint connection_of(uint16_t port)
{
    return (struct endpoint){.addr = ip_addr_v4((const uint8_t[4]){192, 0, 2, 1}), .port = port};
}

static void get_stream(void *ctx, const struct request *rq, struct response *rs)
{
    struct request as_if = *rq;

    as_if.from = connection_of(w.from_port);
    streams_open(&w.streams, w.node, &as_if, rs);
    if (w.is_removed_at_once)
        streams_end_node(w.node);
}

static const struct route rows[] = {
    {"GET", "/v1/stream", API_ACCESS_ADMIN, get_stream, "", .role = ROLE_VIEWER},
    ROUTES_END,
};

static int enter(void **state)
{
    const struct server_config config = {.loop = &w.loop, .routes = rows};
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sin);
    int r;

    lowest_free = find_lowest_free();
    r = audience_enter(state);
    memset(&w, 0, sizeof(w));
    assert_int_equal(uv_loop_init(&w.loop), 0);
    (void)snprintf(w.path, sizeof(w.path), "%s/streams.sock", audience_hub.dir);
    assert_int_equal(server_new(&w.server, &config, NULL), 0);
    assert_int_equal(server_listen_unix(w.server, w.path, ROLE_ADMIN, NULL), 0);
    w.udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w.udp, (struct sockaddr *)&sin, len), 0);
    assert_int_equal(getsockname(w.udp, (struct sockaddr *)&sin, &len), 0);
    streams_init(&w.streams, &w.loop, ntohs(sin.sin_port));
    w.streams.on_open = on_open;
    w.streams.ctx = &w;
    w.node = audience_node("a");
    w.from_port = 1;
    return r;
}

static int leave(void **state)
{
    streams_stop(&w.streams);
    streams_stop(&w.streams);
    server_stop(w.server);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(w.streams.n, 0);
    assert_true(list_is_empty(&w.streams.all));
    w.server = server_free(w.server);
    (void)unlink(w.path);
    (void)close(w.udp);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    assert_int_equal(audience_leave(state), 0);
    assert_int_equal(find_lowest_free(), lowest_free);
    return 0;
}

static void turn(void)
{
    for (unsigned i = 0; i < TURNS; i++)
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
}

/* What the connection has next, @len bytes; or with @len 0, that it has ended. */
static void expect_bytes(int fd, const void *bytes, size_t len)
{
    char got[512];
    size_t n = 0;
    ssize_t r = 1;

    for (unsigned i = 0; i < 2000 && r != 0 && (len == 0 || n < len); i++) {
        r = recv(fd, got + n, len == 0 ? 1 : len - n, MSG_DONTWAIT);
        n += r > 0 ? (size_t)r : 0;
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(n, len);
    assert_memory_equal(got, bytes, len);
    if (len == 0)
        assert_int_equal(r, 0);
}

static void send_bytes(int fd, const void *bytes, size_t len)
{
    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
    turn();
}

/* A connection that has asked for a stream, and has sent more at once. */
static int ask_with(const void *more, size_t len)
{
    static const char request[] = "GET /v1/stream HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\n"
                                  "Upgrade: weft-stream\r\n\r\n";
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    char bytes[sizeof(request) + 16];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(sun.sun_path, w.path, strlen(w.path));
    assert_int_equal(connect(fd, (const struct sockaddr *)&sun, sizeof(sun)), 0);
    memcpy(bytes, request, sizeof(request) - 1);
    memcpy(bytes + sizeof(request) - 1, more, len);
    send_bytes(fd, bytes, sizeof(request) - 1 + len);
    return fd;
}

/* Read the answer up to its empty line. */
static void expect_opened(int fd)
{
    char text[1024] = "";
    size_t n = 0;

    for (unsigned i = 0; i < 5000 && !strstr(text, "\r\n\r\n") && n + 1 < sizeof(text); i++) {
        ssize_t r = recv(fd, text + n, 1, MSG_DONTWAIT);

        if (r > 0)
            n++;
        else
            (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    text[12] = '\0';
    assert_string_equal(text, "HTTP/1.1 101");
    turn();
}

static int open_stream(void)
{
    int fd = ask_with("", 0);

    expect_opened(fd);
    return fd;
}

/* What comes at the hub's port, and from where. */
static struct endpoint expect_datagram(const char *text)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    struct endpoint ep;
    char got[64] = "";

    turn();
    assert_int_equal(
        recvfrom(w.udp, got, sizeof(got), MSG_DONTWAIT, (struct sockaddr *)&from, &len),
        (ssize_t)strlen(text));
    assert_memory_equal(got, text, strlen(text));
    ep = (struct endpoint){.port = ntohs(from.sin_port)};
    ep.addr = ip_addr_v4((const uint8_t *)&from.sin_addr);
    return ep;
}

static void send_datagram(const struct endpoint *to, const void *bytes, size_t len)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(to->port)};

    memcpy(&sin.sin_addr, to->addr.b + 12, 4);
    assert_int_equal(
        sendto(w.udp, bytes, len, 0, (const struct sockaddr *)&sin, sizeof(sin)), (ssize_t)len);
}

static void expect_counts(uint64_t rx, uint64_t tx)
{
    uint64_t is_rx, is_tx;

    streams_count_bytes(&w.streams, &is_rx, &is_tx);
    assert_int_equal(is_rx, rx);
    assert_int_equal(is_tx, tx);
}

static struct endpoint near_end(uint8_t c, uint8_t d, uint16_t port)
{
    return (struct endpoint){.addr = ip_addr_v4((const uint8_t[4]){127, 87, c, d}), .port = port};
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static void test_datagrams_both_ways(void **state)
{
    struct endpoint from;
    struct endpoint expected;
    int fd = open_stream();

    assert_int_equal(w.streams.n, 1);
    assert_int_equal(w.n_opened, 1);
    send_bytes(fd, "\0\3abc\0\2de", 9);
    from = expect_datagram("abc");
    expected = near_end(0, 0, from.port);
    assert_true(endpoint_equal(&from, &expected));
    assert_true(endpoint_equal(&from, &w.at));
    (void)expect_datagram("de");
    send_datagram(&from, "hello", 5);
    expect_bytes(fd, "\0\5hello", 7);
    expect_counts(5, 5);
    /* A heartbeat is answered with one. */
    send_bytes(fd, "\0\0", 2);
    expect_bytes(fd, "\0\0", 2);
    expect_counts(5, 5);
    (void)close(fd);
    turn();
    assert_int_equal(w.streams.n, 0);
    expect_counts(5, 5);
    /* The next one has its own address, and what it moves is added. */
    w.streams.next_address = 0x0203;
    fd = ask_with("\0\2fg", 4);
    expect_opened(fd);
    from = expect_datagram("fg");
    expected = near_end(2, 3, from.port);
    assert_true(endpoint_equal(&from, &expected));
    assert_int_equal(w.n_opened, 2);
    expect_counts(7, 5);
    (void)close(fd);
}

/* While the connection takes no more, what comes waits, and its order is kept. */
static void test_a_connection_that_is_slow(void **state)
{
    enum { N = 200, LEN = 1400 };
    uint8_t frame[LEN + 2] = {LEN >> 8, LEN & 0xff};
    uint8_t got[LEN + 2];
    int fd = open_stream();

    for (unsigned i = 0; i < N; i++) {
        frame[2] = (uint8_t)i;
        send_datagram(&w.at, frame + 2, LEN);
        if (i % 25 == 24)
            turn();
    }
    /* Other bytes come in meanwhile. */
    send_bytes(fd, "\0\3abc", 5);
    (void)expect_datagram("abc");
    for (unsigned i = 0; i < N; i++) {
        size_t n = 0;

        for (unsigned k = 0; k < 1000 && n < sizeof(got); k++) {
            ssize_t r = recv(fd, got + n, sizeof(got) - n, MSG_DONTWAIT);

            n += r > 0 ? (size_t)r : 0;
            if (r <= 0)
                (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        }
        frame[2] = (uint8_t)i;
        assert_int_equal(n, sizeof(got));
        assert_memory_equal(got, frame, sizeof(got));
    }
    expect_counts(3, N * LEN);
    (void)close(fd);
}

/* What the connection did not take is sent when it does, though nothing comes after it. */
static void test_the_last_datagram_waits(void **state)
{
    enum { N = 1000, LEN = 1400 };
    uint8_t got[LEN + 2] = {0};
    int fd = open_stream();
    size_t n_read = 0;
    int there = 0;
    unsigned n = 0;

    while (n < N && there == (int)(n * sizeof(got))) {
        send_datagram(&w.at, got, LEN);
        n++;
        turn();
        assert_int_equal(ioctl(fd, FIONREAD, &there), 0);
    }
    assert_true(n < N);
    for (unsigned i = 0; i < 100000 && n_read < n * sizeof(got); i++) {
        ssize_t r = recv(fd, got, sizeof(got), MSG_DONTWAIT);

        n_read += r > 0 ? (size_t)r : 0;
        if (r <= 0)
            (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(n_read, n * sizeof(got));
    (void)close(fd);
}

static void test_where_a_member_is(void **state)
{
    struct endpoint other = {.addr = ip_addr_v4((const uint8_t[4]){127, 86, 0, 0}), .port = 1};
    struct endpoint highest = near_end(255, 255, 1);
    struct endpoint from = connection_of(2);
    struct endpoint first;
    struct endpoint far = {.port = 0};
    int a = open_stream();
    int b;

    first = w.at;
    w.from_port = 2;
    b = open_stream();
    assert_true(streams_is_near(&first));
    assert_true(streams_is_near(&highest));
    assert_false(streams_is_near(&other));
    assert_false(streams_is_near(&from));
    assert_true(streams_far_end(w.node, &w.at, &far));
    assert_true(endpoint_equal(&far, &from));
    from = connection_of(1);
    assert_true(streams_far_end(w.node, &first, &far));
    assert_true(endpoint_equal(&far, &from));
    first.port ^= 1;
    assert_false(streams_far_end(w.node, &first, &far));
    assert_false(streams_far_end(audience_node("b"), &w.at, &far));
    assert_true(endpoint_equal(&far, &from));
    (void)close(a);
    (void)close(b);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_what_is_no_frame(void **state)
{
    int fd = open_stream();

    send_bytes(fd, "\xff\xff", 2);
    expect_bytes(fd, "", 0);
    assert_int_equal(w.streams.n, 0);
    (void)close(fd);
    /* Nor may it come with the request. */
    fd = ask_with("\xff\xff", 2);
    expect_opened(fd);
    expect_bytes(fd, "", 0);
    assert_int_equal(w.streams.n, 0);
    assert_int_equal(w.n_opened, 1);
    (void)close(fd);
}

/* A node has two; the next one ends the oldest, and another node's are its own. */
static void test_too_many_of_a_node(void **state)
{
    int fds[3];
    int other;

    w.node = audience_node("b");
    other = open_stream();
    w.node = audience_node("a");
    for (unsigned i = 0; i < 2; i++)
        fds[i] = open_stream();
    assert_int_equal(w.streams.n, 3);
    fds[2] = open_stream();
    assert_int_equal(w.streams.n, 3);
    expect_bytes(fds[0], "", 0);
    send_bytes(fds[1], "\0\1x", 3);
    (void)expect_datagram("x");
    send_bytes(fds[2], "\0\1y", 3);
    (void)expect_datagram("y");
    send_bytes(other, "\0\1z", 3);
    (void)expect_datagram("z");
    streams_end_node(w.node);
    assert_int_equal(w.streams.n, 1);
    expect_bytes(fds[1], "", 0);
    expect_bytes(fds[2], "", 0);
    send_bytes(other, "\0\1z", 3);
    (void)expect_datagram("z");
    streams_stop(&w.streams);
    expect_bytes(other, "", 0);
    assert_int_equal(w.streams.n, 0);
    for (unsigned i = 0; i < 3; i++)
        (void)close(fds[i]);
    (void)close(other);
}

static void test_a_silent_stream(void **state)
{
    nsec_t before = clock_now();
    int fd = open_stream();

    streams_tick(&w.streams, before + STREAMS_IDLE - 1);
    assert_int_equal(w.streams.n, 1);
    before = clock_now();
    send_bytes(fd, "\0\0", 2);
    expect_bytes(fd, "\0\0", 2);
    streams_tick(&w.streams, before + STREAMS_IDLE - 1);
    assert_int_equal(w.streams.n, 1);
    streams_tick(&w.streams, clock_now() + STREAMS_IDLE);
    assert_int_equal(w.streams.n, 0);
    expect_bytes(fd, "", 0);
    (void)close(fd);
}

/* Between the answer and the opened connection the node goes: it opens, and ends. */
static void test_a_node_that_goes_meanwhile(void **state)
{
    int fd;

    w.is_removed_at_once = true;
    fd = open_stream();
    expect_bytes(fd, "", 0);
    assert_int_equal(w.n_opened, 0);
    assert_int_equal(w.streams.n, 0);
    (void)close(fd);
}

/* ---- what does not begin --------------------------------------------------------------------- */

static void expect_refused(int status, const char *text)
{
    struct request rq = {.access = API_ACCESS_PUBLIC, .now = audience_hub.now};
    struct response rs = {0};

    streams_open(&w.streams, w.node, &rq, &rs);
    assert_int_equal(rs.status, status);
    assert_null(rs.upgrade);
    assert_string_equal(json_string_value(json_object_get(rs.body, "error")), text);
    response_deinit(&rs);
}

static void test_too_many_in_all(void **state)
{
    struct request rq = {.access = API_ACCESS_PUBLIC, .now = audience_hub.now};
    struct response rs = {0};
    struct endpoint far;

    w.streams.n = STREAMS_MAX;
    expect_refused(503, "16384 streams are open, and no more are taken");
    w.streams.n = STREAMS_MAX - 1;
    streams_open(&w.streams, w.node, &rq, &rs);
    assert_int_equal(rs.status, 101);
    assert_string_equal(rs.upgrade->protocol, "weft-stream");
    assert_int_equal(w.streams.n, STREAMS_MAX);
    /* Silence counts only once it is open; and without a node it still waits to be. */
    streams_tick(&w.streams, clock_now() + 2 * STREAMS_IDLE);
    streams_end_node(w.node);
    assert_int_equal(w.streams.n, STREAMS_MAX);
    assert_true(list_is_empty(&w.node->served->streams));
    assert_false(streams_far_end(w.node, &w.at, &far));
    rs.upgrade->on_closed(rs.upgrade);
    assert_int_equal(w.streams.n, STREAMS_MAX - 1);
    w.streams.n = 0;
}

static void test_no_descriptor_for_it(void **state)
{
    struct rlimit usual, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_refused(500, "a UDP socket on loopback cannot be made: Too many open files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    assert_int_equal(w.streams.n, 0);
    assert_true(list_is_empty(&w.node->served->streams));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_datagrams_both_ways, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_connection_that_is_slow, enter, leave),
        cmocka_unit_test_setup_teardown(test_the_last_datagram_waits, enter, leave),
        cmocka_unit_test_setup_teardown(test_where_a_member_is, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_frame, enter, leave),
        cmocka_unit_test_setup_teardown(test_too_many_of_a_node, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_silent_stream, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_node_that_goes_meanwhile, enter, leave),
        cmocka_unit_test_setup_teardown(test_too_many_in_all, enter, leave),
        cmocka_unit_test_setup_teardown(test_no_descriptor_for_it, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
