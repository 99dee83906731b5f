/*
 * test-path-sockets.c - which socket a frame goes through: WireGuard's, by the engine, or one
 * beside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <poll.h>
#include <uv.h>

#include "agent/paths/socket/path_sockets.h"
#include "net/address/sockaddr.h"
#include "net/socket/udp_batch.h"
#include "net/tun/offload.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/sample_engine.h"
#include "wire/path.h"

#define SEC NSEC_PER_SEC

static struct world {
    uv_loop_t loop;
    struct sample_engine engine;
    struct path_sockets sockets;
    struct udp_sockets peer;
    struct endpoint at; /* of @peer */
    unsigned n_frames;
    uint32_t socket; /* of the last frame */
    struct engine_frame last;
} w;

static void on_frame(void *ctx, uint32_t socket, const struct engine_frame *frame)
{
    assert_ptr_equal(ctx, &w);
    w.n_frames++;
    w.socket = socket;
    w.last = *frame;
}

static int set_up(void **state)
{
    const struct endpoint any = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    struct offloads offloads = offloads_all();

    memset(&w, 0, sizeof(w));
    sample_engine_init(&w.engine, ENGINE_KIND_USERSPACE);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(path_sockets_init(&w.sockets, &w.loop, on_frame, &w, NULL), 0);
    assert_int_equal(udp_open_at(&w.peer, &any, &offloads, NULL), 0);
    w.at = (struct endpoint){.addr = any.addr, .port = w.peer.port};
    return 0;
}

static int tear_down(void **state)
{
    frame_client_close(&w.sockets.main);
    w.sockets.punch = punch_sockets_free(w.sockets.punch);
    udp_close(&w.peer);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    sample_engine_deinit(&w.engine);
    return 0;
}

/* Bytes that come to the peer; 0: none do. */
static size_t receive(int patience_ms, uint8_t *buf, size_t cap)
{
    struct pollfd pfd = {.fd = w.peer.fd[UDP_FAMILY_V4], .events = POLLIN};

    return poll(&pfd, 1, patience_ms) == 1 ? (size_t)recv(pfd.fd, buf, cap, 0) : 0;
}

static void test_frames_of_wireguards_port(void **state)
{
    uint8_t bytes[] = {PATH_FRAME_TYPE, 1, 2, 3};
    struct path_action action = {.remote = w.at,
        .local = ip_addr_v4((const uint8_t[4]){192, 0, 2, 9}),
        .dont_fragment = true,
        .hops = 5,
        .frame = bytes,
        .len = sizeof(bytes)};

    /* Nowhere, until an engine listens. */
    path_sockets_send(&w.sockets, &action);
    assert_false(path_sockets_keep(&w.sockets, NULL, 0, SEC));
    assert_true(path_sockets_keep(&w.sockets, &w.engine.engine, 51820, SEC));
    assert_false(path_sockets_keep(&w.sockets, &w.engine.engine, 51820, SEC));
    assert_int_equal(w.engine.n_sent, 0);
    path_sockets_send(&w.sockets, &action);
    assert_int_equal(w.engine.n_sent, 1);
    assert_true(endpoint_equal(&w.engine.last.remote, &w.at));
    assert_true(ip_addr_equal(&w.engine.last.local, &action.local));
    assert_true(w.engine.last.dont_fragment);
    assert_int_equal(w.engine.last.hops, 5);
    assert_int_equal(w.engine.last.len, sizeof(bytes));
    assert_memory_equal(w.engine.last.data, bytes, sizeof(bytes));
    sample_engine_put(&w.engine, &w.at, bytes, sizeof(bytes));
    (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_int_equal(w.n_frames, 1);
    assert_int_equal(w.socket, PATH_SOCKET_MAIN);
    assert_int_equal(w.last.len, sizeof(bytes));
}

static void test_the_longest_frame(void **state)
{
    static uint8_t bytes[ENGINE_FRAME_MAX + 1] = {PATH_FRAME_TYPE};
    struct path_action action = {.remote = w.at, .frame = bytes, .len = sizeof(bytes)};

    assert_true(path_sockets_keep(&w.sockets, &w.engine.engine, 51820, SEC));
    path_sockets_send(&w.sockets, &action);
    assert_int_equal(w.engine.n_sent, 0);
    action.len = ENGINE_FRAME_MAX;
    path_sockets_send(&w.sockets, &action);
    assert_int_equal(w.engine.n_sent, 1);
    assert_int_equal(w.engine.last.len, ENGINE_FRAME_MAX);
}

static void test_frames_of_a_socket_beside_it(void **state)
{
    uint8_t bytes[] = {PATH_FRAME_TYPE, 1, 2, 3, 4};
    uint8_t got[16];
    struct path_action action = {
        .socket = 9, .remote = w.at, .frame = bytes, .len = sizeof(bytes), .name = "n3"};
    struct endpoint at;

    assert_true(path_sockets_keep(&w.sockets, &w.engine.engine, w.peer.port, SEC));
    assert_true(path_sockets_open(&w.sockets, 9, SEC));
    path_sockets_send(&w.sockets, &action);
    assert_int_equal(receive(5000, got, sizeof(got)), sizeof(bytes));
    assert_memory_equal(got, bytes, sizeof(bytes));
    assert_int_equal(w.engine.n_sent, 0);
    assert_true(path_sockets_use(&w.sockets, &action, &at, SEC));
    assert_true(ip_addr_equal(&at.addr, &w.at.addr));
    assert_int_not_equal(at.port, w.at.port);
    assert_int_not_equal(at.port, 0);
    /* A path of WireGuard's own port leads where it leads. */
    action.socket = PATH_SOCKET_MAIN;
    assert_true(path_sockets_use(&w.sockets, &action, &at, SEC));
    assert_true(endpoint_equal(&at, &w.at));
}

static void test_a_path_that_cannot_be_used(void **state)
{
    struct path_action action = {.socket = 9, .remote = w.at, .name = "n3"};
    struct captured_log said;
    struct endpoint at;

    /* WireGuard's port is not known. */
    assert_true(path_sockets_open(&w.sockets, 9, SEC));
    said = captured_log_begin();
    assert_false(path_sockets_use(&w.sockets, &action, &at, SEC));
    captured_log_end(
        &said, "warning: test: the path to n3 cannot be used: WireGuard's port is not known\n");
    /* The socket is closed, so that its number is free. */
    assert_true(path_sockets_keep(&w.sockets, &w.engine.engine, 51820, SEC));
    said = captured_log_begin();
    assert_false(path_sockets_use(&w.sockets, &action, &at, 3600 * SEC));
    captured_log_end(&said, "warning: test: the path to n3 cannot be used: socket 9 is not open\n");
}

/* Whether there is one for a NAT's newest port nobody needs to know. */
static void test_there_is_no_socket_more(void **state)
{
    struct captured_log said;

    for (uint32_t n = 1; n <= PUNCH_SOCKETS_MAX; n++)
        assert_true(path_sockets_open(&w.sockets, n, SEC));
    said = captured_log_begin();
    assert_false(path_sockets_open(&w.sockets, PATH_SOCKETS_FRESH, SEC));
    captured_log_end(&said, "");
    said = captured_log_begin();
    assert_false(path_sockets_open(&w.sockets, 1000, SEC));
    captured_log_end(&said, "warning: test: the ports of this node's NAT can be guessed less well: "
                            "there are 512 sockets beside WireGuard's\n");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_frames_of_wireguards_port, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_longest_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_frames_of_a_socket_beside_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_path_that_cannot_be_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_there_is_no_socket_more, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
