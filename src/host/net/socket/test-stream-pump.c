/* test-stream-pump.c - datagrams through two pumps with a socket pair between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "net/address/sockaddr.h"
#include "net/socket/stream_pump.h"

/* An end: somebody who speaks UDP, the pump, and its half of the stream. */
struct end {
    int udp;
    int bytes_fd;
    struct stream_pump pump;
    struct stream_bytes bytes;
};

struct pair {
    struct end a;
    struct end b;
};

static ssize_t read_fd(void *ctx, void *buf, size_t cap)
{
    ssize_t n = read(*(int *)ctx, buf, cap);

    return n < 0 ? -errno : n;
}

static ssize_t write_fd(void *ctx, const void *buf, size_t len)
{
    ssize_t n = send(*(int *)ctx, buf, len, MSG_NOSIGNAL);

    return n < 0 ? -errno : n;
}

static struct endpoint loopback(uint16_t port)
{
    return (struct endpoint){.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = port};
}

static void end_open(struct end *e, int bytes_fd, bool echoes)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct endpoint any = loopback(0);
    struct endpoint remote;
    union sockaddr_inet pump_sa;
    socklen_t len = sizeof(sa);
    struct endpoint local;

    e->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(e->udp, (struct sockaddr *)&sa, len), 0);
    assert_int_equal(getsockname(e->udp, (struct sockaddr *)&sa, &len), 0);
    remote = loopback(ntohs(sa.sin_port));
    e->bytes_fd = bytes_fd;
    e->pump = (struct stream_pump)STREAM_PUMP_NULL;
    assert_int_equal(stream_pump_open(&e->pump, &any, &remote, echoes, NULL), 0);
    e->bytes = (struct stream_bytes){.read = read_fd, .write = write_fd, .ctx = &e->bytes_fd};
    local = stream_pump_local(&e->pump);
    len = sockaddr_from_endpoint(&pump_sa, &local);
    assert_int_equal(connect(e->udp, &pump_sa.any, len), 0);
}

static void end_close(struct end *e)
{
    stream_pump_close(&e->pump);
    (void)close(e->udp);
    if (e->bytes_fd >= 0)
        (void)close(e->bytes_fd);
}

static int setup(void **state)
{
    struct pair *p = calloc(1, sizeof(*p));
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    end_open(&p->a, fds[0], false);
    end_open(&p->b, fds[1], true);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct pair *p = *state;

    end_close(&p->a);
    end_close(&p->b);
    free(p);
    return 0;
}

/* All that there is from one end to the other; the last result. */
static int move(struct end *from, struct end *to)
{
    int r = STREAM_PUMP_E_MORE;

    for (int i = 0; i < 100; i++) {
        assert_true(stream_pump_outward(&from->pump, &from->bytes) >= 0);
        r = stream_pump_inward(&to->pump, &to->bytes);
        if (r == 0 && !stream_pump_is_full(&from->pump))
            break;
        if (r != 0 && r != STREAM_PUMP_E_MORE)
            break;
    }
    return r;
}

static size_t got(struct end *e, uint8_t *buf)
{
    ssize_t n = recv(e->udp, buf, 65536, 0);

    assert_true(n >= 0 || errno == EAGAIN);
    return n < 0 ? 0 : (size_t)n;
}

/* Of all sizes, both ways, in order. */
static void test_datagrams(void **state)
{
    static const size_t sizes[] = {1, 32, 148, 1452, 1452, 1452, 9000, 20000, 64000, 33, 65507};
    struct pair *p = *state;
    uint8_t *buf = malloc(65536);

    for (int way = 0; way < 2; way++) {
        struct end *from = way == 0 ? &p->a : &p->b;
        struct end *to = way == 0 ? &p->b : &p->a;

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            memset(buf, (int)i + 1, sizes[i]);
            assert_int_equal(send(from->udp, buf, sizes[i], 0), sizes[i]);
        }
        assert_int_equal(move(from, to), 0);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            assert_int_equal(got(to, buf), sizes[i]);
            assert_int_equal(buf[0], i + 1);
            assert_int_equal(buf[sizes[i] - 1], i + 1);
        }
        assert_int_equal(got(to, buf), 0);
    }
    free(buf);
}

/* Sent as one run, as the data plane does, and longer than one message may be. */
static void test_runs(void **state)
{
    struct pair *p = *state;
    uint8_t *buf = malloc(65536);
    int seg = 1000;

    assert_int_equal(setsockopt(p->a.udp, IPPROTO_UDP, UDP_SEGMENT, &seg, sizeof(seg)), 0);
    for (int i = 0; i < 40500; i++)
        buf[i] = (uint8_t)(i / 1000);
    assert_int_equal(send(p->a.udp, buf, 40500, 0), 40500);
    assert_int_equal(send(p->a.udp, buf, 40500, 0), 40500);
    assert_int_equal(move(&p->a, &p->b), 0);
    for (int i = 0; i < 82; i++) {
        assert_int_equal(got(&p->b, buf), i % 41 == 40 ? 500 : 1000);
        assert_int_equal(buf[0], i % 41);
    }
    assert_int_equal(got(&p->b, buf), 0);
    assert_int_equal(p->a.pump.tx_bytes, 81000);
    assert_int_equal(p->b.pump.rx_bytes, 81000);
    free(buf);
}

/* Nobody reads the stream: the newest are lost, and what was accepted comes in order. */
static void test_back_pressure(void **state)
{
    enum { SENT = 20000, SIZE = 1200 };
    struct pair *p = *state;
    uint8_t *buf = calloc(1, 65536);
    unsigned n = 0;
    uint32_t last = 0;

    for (uint32_t i = 1; i <= SENT; i++) {
        memcpy(buf, &i, sizeof(i));
        (void)send(p->a.udp, buf, SIZE, 0);
        if (i % 16 == 0)
            assert_true(stream_pump_outward(&p->a.pump, &p->a.bytes) >= 0);
    }
    assert_true(stream_pump_is_full(&p->a.pump));
    for (int round = 0; round < 100; round++) {
        size_t len;

        (void)move(&p->a, &p->b);
        while ((len = got(&p->b, buf)) > 0) {
            uint32_t i;

            assert_int_equal(len, SIZE);
            memcpy(&i, buf, sizeof(i));
            assert_true(i > last);
            last = i;
            n++;
        }
    }
    assert_false(stream_pump_is_full(&p->a.pump));
    /* The oldest were kept, without a gap. */
    assert_true(n > 100 && n < SENT);
    assert_int_equal(last, n);
    free(buf);
}

static void test_beat(void **state)
{
    struct pair *p = *state;
    uint8_t byte[3];

    p->a.pump.owes_heartbeat = true;
    assert_int_equal(move(&p->a, &p->b), 0);
    assert_int_equal(stream_pump_outward(&p->b.pump, &p->b.bytes), 0);
    assert_int_equal(read(p->a.bytes_fd, byte, sizeof(byte)), 2);
    assert_int_equal(byte[0] | byte[1], 0);
    /* The other end does not answer, or the two would go on for ever. */
    assert_int_equal(write(p->b.bytes_fd, "\0\0", 2), 2);
    assert_int_equal(stream_pump_inward(&p->a.pump, &p->a.bytes), 0);
    assert_int_equal(stream_pump_outward(&p->a.pump, &p->a.bytes), 0);
    assert_int_equal(read(p->b.bytes_fd, byte, sizeof(byte)), -1);
}

/* In single bytes, with garbage behind; and the same bytes read by somebody else. */
static void test_garbage(void **state)
{
    static const uint8_t good[] = {0, 3, 'a', 'b', 'c', 0, 0, 0, 1, 'd'};
    struct pair *p = *state;
    uint8_t buf[65536];

    for (size_t i = 0; i < sizeof(good); i++) {
        assert_int_equal(write(p->a.bytes_fd, good + i, 1), 1);
        assert_int_equal(stream_pump_inward(&p->b.pump, &p->b.bytes), 0);
    }
    assert_int_equal(got(&p->b, buf), 3);
    assert_int_equal(got(&p->b, buf), 1);
    assert_int_equal(stream_pump_take(&p->b.pump, good, 4), 0);
    assert_int_equal(stream_pump_take(&p->b.pump, good + 4, sizeof(good) - 4), 0);
    assert_int_equal(got(&p->b, buf), 3);
    assert_int_equal(got(&p->b, buf), 1);
    assert_int_equal(write(p->a.bytes_fd, "GET", 3), 3);
    assert_int_equal(stream_pump_inward(&p->b.pump, &p->b.bytes), 0);
    assert_int_equal(write(p->a.bytes_fd, "\xff\xff\xff", 3), 3);
    stream_pump_restart(&p->b.pump);
    assert_int_equal(stream_pump_inward(&p->b.pump, &p->b.bytes), STREAM_PUMP_E_GARBAGE);
}

static void test_end(void **state)
{
    struct pair *p = *state;

    (void)close(p->a.bytes_fd);
    p->a.bytes_fd = -1;
    assert_int_equal(stream_pump_inward(&p->b.pump, &p->b.bytes), STREAM_PUMP_E_ENDED);
    assert_int_equal(send(p->b.udp, "x", 1, 0), 1);
    assert_int_equal(stream_pump_outward(&p->b.pump, &p->b.bytes), -EPIPE);
}

/* Somebody else on this machine speaks to the UDP end. */
static void test_stranger(void **state)
{
    struct pair *p = *state;
    struct endpoint local = stream_pump_local(&p->a.pump);
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &local);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t buf[65536];

    assert_int_equal(sendto(fd, "stranger", 8, 0, &sa.any, len), 8);
    assert_int_equal(send(p->a.udp, "x", 1, 0), 1);
    assert_int_equal(move(&p->a, &p->b), 0);
    assert_int_equal(got(&p->b, buf), 1);
    assert_int_equal(got(&p->b, buf), 0);
    (void)close(fd);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_datagrams, setup, teardown),
        cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_back_pressure, setup, teardown),
        cmocka_unit_test_setup_teardown(test_beat, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stranger, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
