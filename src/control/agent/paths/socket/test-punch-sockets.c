/* test-punch-sockets.c - a punch socket between a peer and WireGuard, both played by the test. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
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
#include "os/clock.h"
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
    size_t lengths[8];         /* of the frames */
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

    assert_true(w->n_frames < sizeof(w->lengths) / sizeof(w->lengths[0]));
    w->lengths[w->n_frames++] = frame->len;
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

static void run_until_frames(struct world *w, unsigned n)
{
    for (int i = 0; i < 5000 && w->n_frames < n; i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(w->n_frames, n);
}

static void test_frames_go_to_the_loop(void **state)
{
    struct world *w = *state;
    struct endpoint seen;
    nsec_t sent_at;

    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    sent_at = clock_now();
    send_to(&w->peer, &seen, PATH_FRAME_TYPE, 120);
    run_until_frames(w, 1);
    assert_int_equal(w->socket, SOCKET);
    assert_int_equal(w->frame.len, 120);
    assert_int_equal(w->frame.data[0], PATH_FRAME_TYPE);
    assert_int_equal(w->frame.data[119], 120);
    assert_true(endpoint_equal(&w->frame.remote, &w->peer_at));
    assert_true(ip_addr_equal(&w->frame.local, &seen.addr));
    assert_int_equal(w->frame.ifindex, if_nametoindex("lo"));
    assert_true(w->frame.received_at >= sent_at && w->frame.received_at <= clock_now());
}

/* Each comes on its own, in order; one beyond what a frame may have is left out. */
static void test_frames_that_come_together(void **state)
{
    static uint8_t large[ENGINE_FRAME_MAX + 1] = {PATH_FRAME_TYPE};
    struct world *w = *state;
    struct endpoint seen;

    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    for (unsigned i = 0; i < 40; i++) {
        send_bytes(&w->peer, &seen, large, sizeof(large));
        for (unsigned k = 0; k < 5; k++)
            send_to(&w->peer, &seen, PATH_FRAME_TYPE, 101 + k);
        w->n_frames = 0;
        run_until_frames(w, 5);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(w->lengths[k], 101 + k);
    }
    w->n_frames = 0;
    send_bytes(&w->peer, &seen, large, ENGINE_FRAME_MAX);
    run_until_frames(w, 1);
    assert_int_equal(w->frame.len, ENGINE_FRAME_MAX);
}

/* From the address, and with the time to live, that the frame asks for. */
static void test_how_frames_leave(void **state)
{
    const int on = 1;
    struct world *w = *state;
    struct engine_frame frame = {.remote = w->peer_at, .hops = 3};
    union {
        struct cmsghdr header;
        uint8_t bytes[128];
    } control;
    uint8_t buf[64];
    struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
    union sockaddr_inet from;
    struct msghdr msg = {.msg_name = &from,
        .msg_namelen = sizeof(from),
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control)};
    struct endpoint seen;
    int ttl = 0;

    frame.local = ip_addr_v4((const uint8_t[4]){127, 0, 0, 9});
    assert_int_equal(
        setsockopt(w->peer.fd[UDP_FAMILY_V4], IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)), 0);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    /* Nothing at all is not sent, nor is anything by a socket that is not open. */
    punch_sockets_send(w->punch, SOCKET, &frame);
    frame.len = 9;
    punch_sockets_send(w->punch, SOCKET + 1, &frame);
    punch_sockets_send(w->punch, 0, &frame);
    frame.len = 33;
    frame.dont_fragment = true;
    punch_sockets_send(w->punch, SOCKET, &frame);
    assert_int_equal(recvmsg(w->peer.fd[UDP_FAMILY_V4], &msg, 0), 33);
    assert_true(sockaddr_to_endpoint(&from, &seen));
    assert_true(ip_addr_equal(&seen.addr, &frame.local));
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL)
            memcpy(&ttl, CMSG_DATA(c), sizeof(ttl));
    assert_int_equal(ttl, 3);
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
    run_until_frames(w, 1);
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
    run_until_frames(w, 1);
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
    struct offloads offloads = offloads_all();
    struct udp_sockets again;
    struct endpoint seen, inner, from;
    nsec_t closed_at;
    struct err e = ERR_NULL;

    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, &e), -ENOENT);
    assert_string_equal(err_text(&e), "socket 7 is not open");
    assert_int_equal(punch_sockets_use(w->punch, 0, &w->peer_at, &inner, NULL), -ENOENT);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    e = (struct err)ERR_NULL;
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, &e), -ENOTCONN);
    assert_string_equal(err_text(&e), "WireGuard's port is not known");
    punch_sockets_set_port(w->punch, w->wireguard.port);
    seen = meet(w);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), 0);
    closed_at = clock_now();
    punch_sockets_close(w->punch, SOCKET);
    /* What is on its way still arrives. */
    send_to(&w->peer, &seen, 4, 300);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 300);
    punch_sockets_close(w->punch, 99);
    /* And then no more. To close it again changes nothing. */
    punch_sockets_close(w->punch, SOCKET);
    for (int i = 0; i < 2000; i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        if (punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL) == -ENOENT)
            break;
        (void)poll(NULL, 0, 10);
    }
    assert_true(clock_now() - closed_at >= NSEC_PER_SEC);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), -ENOENT);
    send_to(&w->peer, &seen, 4, 300);
    assert_int_equal(receive(&w->wireguard, &from, 100), 0);
    /* Both of its ends are closed, so that their ports are free. */
    seen.addr = inner.addr;
    assert_int_equal(udp_open_at(&again, &inner, &offloads, NULL), 0);
    udp_close(&again);
    assert_int_equal(udp_open_at(&again, &seen, &offloads, NULL), 0);
    udp_close(&again);
}

/* One that was never used is closed at once. */
static void test_closing_what_is_not_used(void **state)
{
    struct world *w = *state;
    struct endpoint inner;

    punch_sockets_set_port(w->punch, w->wireguard.port);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET + 1, NULL), 0);
    punch_sockets_close(w->punch, SOCKET);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), -ENOENT);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET + 1, &w->peer_at, &inner, NULL), 0);
}

/* The loopback end stays the same, and only the newer peer passes. */
static void test_another_remote(void **state)
{
    struct world *w = *state;
    struct offloads offloads = offloads_all();
    struct endpoint any = loopback(0);
    struct endpoint seen, inner, again, from, other_at;
    struct udp_sockets other;

    punch_sockets_set_port(w->punch, w->wireguard.port);
    assert_int_equal(udp_open_at(&other, &any, &offloads, NULL), 0);
    other_at = loopback(other.port);
    assert_int_equal(punch_sockets_open(w->punch, SOCKET, NULL), 0);
    seen = meet(w);
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &w->peer_at, &inner, NULL), 0);
    assert_true(ip_addr_equal(&inner.addr, &any.addr));
    assert_int_equal(punch_sockets_use(w->punch, SOCKET, &other_at, &again, NULL), 0);
    assert_true(endpoint_equal(&inner, &again));
    send_to(&w->peer, &seen, 4, 300);
    send_to(&other, &seen, 4, 200);
    assert_int_equal(receive(&w->wireguard, &from, 5000), 200);
    send_to(&w->wireguard, &inner, 4, 100);
    assert_int_equal(receive(&other, &from, 5000), 100);
    assert_int_equal(receive(&w->peer, &from, 0), 0);
    udp_close(&other);
}

static void test_it_does_not_keep_the_loop_running(void **state)
{
    struct punch_sockets *punch;
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(punch_sockets_new(&punch, &loop, on_frame, NULL, NULL), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_null(punch_sockets_free(punch));
    assert_null(punch_sockets_free(NULL));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_no_more_than_it_may(void **state)
{
    struct world *w = *state;
    struct err e = ERR_NULL;

    for (unsigned n = 0; n < PUNCH_SOCKETS_MAX; n++)
        assert_int_equal(punch_sockets_open(w->punch, n + 1, &e), 0);
    assert_int_equal(punch_sockets_open(w->punch, 1000, &e), -EMFILE);
    assert_string_equal(err_text(&e), "there are 512 sockets beside WireGuard's");
    punch_sockets_close(w->punch, PUNCH_SOCKETS_MAX);
    assert_int_equal(punch_sockets_open(w->punch, 1000, NULL), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_frames_go_to_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_frames_that_come_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_how_frames_leave, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closing_what_is_not_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_remote, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_of_stun_go_to_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_datagrams_pass_both_ways, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_strangers_do_not_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wireguard_moves_to_another_port, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closing, set_up, tear_down),
        cmocka_unit_test(test_it_does_not_keep_the_loop_running),
        cmocka_unit_test_setup_teardown(test_no_more_than_it_may, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
