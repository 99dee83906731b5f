/* test-punch-sockets.c - a punch socket between a peer and WireGuard, both played by the test. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "agent/paths/socket/path_sockets.h"
#include "base/err.h"
#include "engine/frames.h"
#include "net/address/sockaddr.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "wire/path.h"
#include "wire/stun.h"

#define SOCKET 7

struct world {
    uv_loop_t loop;
    uv_timer_t keeper; /* keeps the loop running, which the sockets do not */
    struct punch_sockets *punch;
    struct udp_sockets wireguard;
    struct udp_sockets peer;
    struct endpoint peer_at;
    unsigned n_frames;
    uint32_t socket;           /* of the last frame */
    struct engine_frame frame; /* the last one */
};

static struct endpoint loopback(uint16_t port)
{
    return (struct endpoint){.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1}), .port = port};
}

static void on_frame(void *ctx, uint32_t socket, const struct engine_frame *frame)
{
    struct world *w = ctx;

    w->n_frames++;
    w->socket = socket;
    w->frame = *frame;
}

static void on_keeper(uv_timer_t *timer)
{
}

static int set_up(void **state)
{
    static struct world w;
    struct offloads offloads = offloads_all();
    struct endpoint any = loopback(0);

    w = (struct world){.n_frames = 0};
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.keeper), 0);
    assert_int_equal(uv_timer_start(&w.keeper, on_keeper, 60000, 0), 0);
    assert_int_equal(punch_sockets_new(&w.punch, &w.loop, on_frame, &w, NULL), 0);
    assert_int_equal(udp_open_at(&w.wireguard, &any, &offloads, NULL), 0);
    assert_int_equal(udp_open_at(&w.peer, &any, &offloads, NULL), 0);
    w.peer_at = loopback(w.peer.port);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->punch = punch_sockets_free(w->punch);
    udp_close(&w->wireguard);
    udp_close(&w->peer);
    uv_close((uv_handle_t *)&w->keeper, NULL);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    return 0;
}

static void send_bytes(
    const struct udp_sockets *from, const struct endpoint *to, const uint8_t *bytes, size_t len)
{
    union sockaddr_inet sa;
    socklen_t sa_len = sockaddr_from_endpoint(&sa, to);

    assert_int_equal(sendto(from->fd[UDP_FAMILY_V4], bytes, len, 0, &sa.any, sa_len), (ssize_t)len);
}

static void send_to(
    const struct udp_sockets *from, const struct endpoint *to, uint8_t type, size_t len)
{
    uint8_t buf[2048] = {type};

    buf[len - 1] = (uint8_t)len;
    send_bytes(from, to, buf, len);
}

/* The length of the datagram that comes, and from where; 0: none comes. */
static size_t receive(const struct udp_sockets *at, struct endpoint *ret_from, int patience_ms)
{
    struct pollfd pfd = {.fd = at->fd[UDP_FAMILY_V4], .events = POLLIN};
    union sockaddr_inet sa;
    socklen_t sa_len = sizeof(sa);
    uint8_t buf[2048];
    ssize_t n;

    if (poll(&pfd, 1, patience_ms) != 1)
        return 0;
    n = recvfrom(pfd.fd, buf, sizeof(buf), 0, &sa.any, &sa_len);
    assert_true(n > 0 && sockaddr_to_endpoint(&sa, ret_from));
    assert_int_equal(buf[n - 1], (uint8_t)n);
    return (size_t)n;
}

/* Where the peer sees the punch socket: it is told by a frame. */
static struct endpoint meet(struct world *w)
{
    struct engine_frame frame = {.remote = w->peer_at, .len = 100};
    struct endpoint seen;

    frame.data[0] = PATH_FRAME_TYPE;
    frame.data[99] = 100;
    punch_sockets_send(w->punch, SOCKET, &frame);
    assert_int_equal(receive(&w->peer, &seen, 5000), 100);
    return seen;
}

static void run_until_frame(struct world *w)
{
    for (int i = 0; i < 500 && w->n_frames == 0; i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(w->n_frames, 1);
}

static void test_frames_go_to_the_loop(void **state)
{
    struct world *w = *state;
    struct endpoint seen;

    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    send_to(&w->peer, &seen, PATH_FRAME_TYPE, 120);
    run_until_frame(w);
    assert_int_equal(w->socket, SOCKET);
    assert_int_equal(w->frame.len, 120);
    assert_true(endpoint_equal(&w->frame.remote, &w->peer_at));
    assert_true(w->frame.received_at != 0);
}

/* It begins with the byte of a handshake message. */
static void test_answers_of_stun_go_to_the_loop(void **state)
{
    static const struct stun_request rq = {.id = {{1, 2, 3}}};
    struct world *w = *state;
    struct endpoint seen;
    uint8_t answer[STUN_ANSWER_MAX];
    size_t len;

    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    len = stun_encode_answer(&rq, &seen, answer);
    assert_int_equal(answer[0], 1);
    send_bytes(&w->peer, &seen, answer, len);
    run_until_frame(w);
    assert_int_equal(w->frame.len, len);
    assert_memory_equal(w->frame.data, answer, len);
}

static void test_datagrams_pass_both_ways(void **state)
{
    struct world *w = *state;
    struct endpoint seen, inner, from;

    punch_sockets_set_port(w->punch, w->wireguard.port);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    /* Until it is used nothing of WireGuard's passes. */
    send_to(&w->peer, &seen, 4, 300);
    assert_int_equal(receive(&w->wireguard, &from, 100), 0);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), 0);
    send_to(&w->peer, &seen, 1, 148);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 148);
    assert_true(endpoint_equal(&from, &inner));
    send_to(&w->wireguard, &inner, 2, 92);
    assert_int_equal(receive(&w->peer, &from, 5000), 92);
    assert_true(endpoint_equal(&from, &seen));
    /* A frame between two of WireGuard's is sorted out. */
    send_to(&w->peer, &seen, 4, 200);
    send_to(&w->peer, &seen, PATH_FRAME_TYPE, 200);
    send_to(&w->peer, &seen, 4, 200);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 200);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 200);
    run_until_frame(w);
    assert_int_equal(receive(&w->wireguard, &from, 100), 0);
}

static void test_strangers_do_not_pass(void **state)
{
    struct world *w = *state;
    struct offloads offloads = offloads_all();
    struct endpoint any = loopback(0);
    struct udp_sockets stranger;
    struct endpoint seen, inner, from;

    punch_sockets_set_port(w->punch, w->wireguard.port);
    assert_int_equal(udp_open_at(&stranger, &any, &offloads, NULL), 0);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), 0);
    send_to(&stranger, &seen, 1, 148);
    send_to(&stranger, &inner, 4, 100);
    assert_int_equal(receive(&w->wireguard, &from, 100), 0);
    assert_int_equal(receive(&w->peer, &from, 100), 0);
    udp_close(&stranger);
}

static void test_wireguard_moves_to_another_port(void **state)
{
    struct world *w = *state;
    struct offloads offloads = offloads_all();
    struct endpoint any = loopback(0);
    struct endpoint seen, inner, from;

    punch_sockets_set_port(w->punch, w->wireguard.port);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), 0);
    udp_close(&w->wireguard);
    assert_int_equal(udp_open_at(&w->wireguard, &any, &offloads, NULL), 0);
    punch_sockets_set_port(w->punch, w->wireguard.port);
    send_to(&w->peer, &seen, 4, 150);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 150);
}

static void test_closing(void **state)
{
    struct world *w = *state;
    struct endpoint seen, inner, from;
    struct err e = ERR_NULL;

    /* Neither open nor with WireGuard's port. */
    assert_true(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, &e) < 0);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    assert_true(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, &e) < 0);
    punch_sockets_set_port(w->punch, w->wireguard.port);
    seen = meet(w);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), 0);
    punch_sockets_close(w->punch, SOCKET);
    /* What is on its way still arrives. */
    send_to(&w->peer, &seen, 4, 300);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 300);
    punch_sockets_close(w->punch, 99);
}

static void test_no_more_than_it_may(void **state)
{
    struct world *w = *state;
    struct err e = ERR_NULL;
    unsigned n = 0;

    while (n < 300 && punch_sockets_open(w->punch, n + 1, &e) == 0)
        n++;
    assert_int_equal(n, 300);
    for (; n < PUNCH_SOCKETS_MAX + 1; n++)
        if (punch_sockets_open(w->punch, n + 1, &e) < 0)
            break;
    assert_true(n <= PUNCH_SOCKETS_MAX);
    punch_sockets_close(w->punch, 1);
    assert_int_equal(punch_sockets_open(w->punch, 1000, &e), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_frames_go_to_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_of_stun_go_to_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_datagrams_pass_both_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strangers_do_not_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wireguard_moves_to_another_port, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_more_than_it_may, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
