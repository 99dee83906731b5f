/*
 * test-hub-stream.c - the stream in TLS that carries WireGuard's datagrams while UDP is blocked.
 *
 * The hub's public API is a server in this process; its UDP ports answer nothing. WireGuard is a
 * UDP socket of the test's. The transport's clock is what the test says, the connection's is real.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <uv.h>

#include "agent/hublink/hub_transport_io.h"
#include "agent/state/state.h"
#include "api/server/server.h"
#include "api/server/tls_front.h"
#include "base/err.h"
#include "os/clock.h"
#include "test/support/heard_log.h"
#include "test/support/sample_mesh.h"
#include "wire/stream.h"
#include "wire/stun.h"

#define STREAMS_MAX 4

static struct world {
    uv_loop_t loop;
    uv_timer_t turn;
    char dir[64];

    /* The hub. */
    struct identity identity;
    struct server *server;
    struct upgrade upgrades[STREAMS_MAX];
    int fd[STREAMS_MAX]; /* lent; -1: not open */
    unsigned n_opened;
    bool refuses;
    bool speaks_first; /* it sends a datagram at once, before anything has come */
    char path[128];
    char claim[STREAM_PROOF_TEXT_MAX];

    /* The node. */
    struct state state;
    struct hub_transport_io io;
    struct object hub;
    struct hub_endpoints endpoints;
    struct hub_transport_view view;
    uint16_t listen_port; /* WireGuard's */
    int wireguard;        /* owns */
    nsec_t now;
    bool has_changed;                      /* the engine was to be told of another endpoint */
    struct hub_transport_io_result result; /* of the last step */
} w;

/* ---- the hub --------------------------------------------------------------------------------- */

static void on_open(struct upgrade *u, int fd, const void *early, size_t len)
{
    w.fd[u - w.upgrades] = fd;
    w.n_opened++;
    if (w.speaks_first)
        assert_int_equal(send(fd, "\0\3abc", 5, MSG_NOSIGNAL), 5);
}

static void on_closed(struct upgrade *u)
{
    w.fd[u - w.upgrades] = -1;
}

static void get_stream(void *ctx, const struct request *rq, struct response *rs)
{
    struct upgrade *u = &w.upgrades[w.n_opened];

    (void)snprintf(w.path, sizeof(w.path), "%s", rq->path);
    (void)snprintf(w.claim, sizeof(w.claim), "%s", rq->authorization ? rq->authorization : "");
    if (w.refuses || w.n_opened == STREAMS_MAX) {
        response_refuse(rs, 403, "you are nobody");
        return;
    }
    *u = (struct upgrade){.protocol = "weft-stream", .on_open = on_open, .on_closed = on_closed};
    rs->status = 101;
    rs->upgrade = u;
}

static const struct route routes[] = {
    {"GET", "/v1/stream/{network}", API_ACCESS_PUBLIC, get_stream, ""},
    ROUTES_END,
};

static void start_hub(void)
{
    struct endpoint at = {.addr = ip_addr_v4((const uint8_t[4]){127, 0, 0, 1})};
    const struct server_config config = {
        .loop = &w.loop, .routes = routes, .identity = &w.identity};
    char certificate[96];
    char key[96];
    uint16_t port;

    (void)snprintf(key, sizeof(key), "%s/tls.key", w.dir);
    (void)snprintf(certificate, sizeof(certificate), "%s/tls.crt", w.dir);
    assert_int_equal(identity_open(&w.identity, key, certificate, NULL), 0);
    assert_int_equal(server_new(&w.server, &config, NULL), 0);
    assert_int_equal(server_listen_tls(w.server, &at, &port, NULL), 0);
    w.state.hub_api.n_api = 1;
    w.state.hub_api.pin = w.identity.pin;
    (void)snprintf(w.state.hub_api.api[0], sizeof(w.state.hub_api.api[0]), "127.0.0.1:%u", port);
    (void)unlink(key);
    (void)unlink(certificate);
    (void)rmdir(w.dir);
}

/* ---- the node -------------------------------------------------------------------------------- */

static int open_udp(struct endpoint *ret)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sin);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
    assert_int_equal(endpoint_parse(ret, "127.0.0.1:1", NULL), 0);
    ret->port = ntohs(sin.sin_port);
    return fd;
}

static void on_turn(uv_timer_t *timer)
{
}

static int enter(void **state)
{
    static const struct x25519_secret hub_secret = {.b = {6, [31] = 0x40}};
    struct object self = sample_node(2);
    struct endpoint wireguard;
    struct endpoint silent;

    memset(&w, 0, sizeof(w));
    for (unsigned i = 0; i < STREAMS_MAX; i++)
        w.fd[i] = -1;
    w.identity = (struct identity)IDENTITY_NULL;
    (void)snprintf(w.dir, sizeof(w.dir), "/tmp/weft-test-stream.XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_timer_init(&w.loop, &w.turn), 0);
    assert_int_equal(uv_timer_start(&w.turn, on_turn, 2, 2), 0);
    start_hub();
    w.now = clock_now();
    w.state.secret = (struct x25519_secret){.b = {5, [31] = 0x40}};
    w.state.snapshot = sample_snapshot(4, 2);
    assert_true(x25519_derive_public(&w.state.secret, &self.node.key));
    sample_put(&w.state.snapshot, self);
    w.hub = sample_node(1);
    w.hub.node.hub->n_endpoints = 0;
    assert_true(x25519_derive_public(&hub_secret, &w.hub.node.key));
    w.wireguard = open_udp(&wireguard);
    (void)close(open_udp(&silent));
    w.endpoints.all[w.endpoints.n++] = silent;
    w.view = (struct hub_transport_view){.endpoints = &w.endpoints, .silent_since = w.now};
    w.listen_port = wireguard.port;
    hub_transport_io_init(&w.io, &w.loop, &w.state, &w.state.hub_api);
    return 0;
}

static int leave(void **state)
{
    hub_transport_io_stop(&w.io);
    server_stop(w.server);
    uv_close((uv_handle_t *)&w.turn, NULL);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    w.server = server_free(w.server);
    identity_close(&w.identity);
    (void)close(w.wireguard);
    snapshot_deinit(&w.state.snapshot);
    object_deinit(&w.hub);
    return uv_loop_close(&w.loop);
}

/* A tenth of a second of the transport's, and a moment of the connection's. */
static void step(void)
{
    w.now += TRANSPORT_CHOICE_TICK;
    w.result = hub_transport_io_poll(&w.io, &w.view, &w.hub.node, w.listen_port, w.now);
    w.has_changed |= w.result.has_changed;
    for (unsigned i = 0; i < 5; i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
}

static void step_until_used(void)
{
    for (unsigned i = 0; i < 400 && hub_transport_io_endpoint(&w.io).port == 0; i++)
        step();
    assert_int_not_equal(hub_transport_io_endpoint(&w.io).port, 0);
    assert_true(w.has_changed);
}

/* Until the stream does not come about, for that reason. */
static void step_until_failed(const char *why)
{
    const char *is = NULL;

    for (unsigned i = 0; i < 400 && (!is || !strstr(is, why)); i++) {
        step();
        is = hub_transport_io_failure(&w.io);
    }
    if (!is || !strstr(is, why))
        fail_msg("\"%s\", and not \"%s\"", is ? is : "no failure", why);
}

/* What the hub gets next, @len bytes. */
static void expect_at_hub(const void *bytes, size_t len)
{
    uint8_t got[64];
    size_t n = 0;

    for (unsigned i = 0; i < 2000 && n < len; i++) {
        ssize_t r = recv(w.fd[0], got + n, len - n, MSG_DONTWAIT);

        n += r > 0 ? (size_t)r : 0;
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    }
    assert_int_equal(n, len);
    assert_memory_equal(got, bytes, len);
}

/* What WireGuard gets next; where from. */
static uint16_t expect_at_wireguard(const char *text)
{
    struct sockaddr_in from;
    socklen_t len = sizeof(from);
    char got[16];
    ssize_t n = -1;

    for (unsigned i = 0; i < 2000 && n < 0; i++) {
        n = recvfrom(w.wireguard, got, sizeof(got), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    }
    assert_int_equal(n, strlen(text));
    assert_memory_equal(got, text, strlen(text));
    return ntohs(from.sin_port);
}

static void send_as_hub(const void *bytes, size_t len)
{
    assert_int_equal(send(w.fd[w.n_opened - 1], bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_the_stream_is_taken_while_udp_is_blocked(void **state)
{
    struct stream_claim claim;

    assert_int_equal(hub_transport_io_endpoint(&w.io).port, 0);
    step_until_used();
    assert_int_equal(w.n_opened, 1);
    assert_string_equal(w.path, "/v1/stream/default");
    assert_true(stream_claim_parse(&claim, w.claim));
    assert_true(x25519_public_equal(&claim.node, &snapshot_self(&w.state.snapshot)->key));
    assert_false(hub_transport_io_is_settled(&w.io));
    assert_null(hub_transport_io_failure(&w.io));
    assert_true(w.io.now.status.is_open);
    assert_string_equal(w.io.now.status.to, w.state.hub_api.api[0]);
    assert_string_equal(w.io.now.status.through, "");
    assert_string_equal(w.io.now.status.passed_over, "");
}

/* Until it is used nothing passes by it. */
static void test_a_stream_that_is_held_ready(void **state)
{
    char byte;

    for (unsigned i = 0; i < 400 && !w.io.now.status.is_open; i++)
        step();
    assert_true(w.io.now.status.is_open);
    assert_int_equal(hub_transport_io_endpoint(&w.io).port, 0);
    send_as_hub("\0\5early", 7);
    for (unsigned i = 0; i < 50; i++)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    assert_int_equal(recv(w.wireguard, &byte, 1, MSG_DONTWAIT), -1);
}

/* Each datagram goes behind its length, either way. */
static void test_it_carries_datagrams(void **state)
{
    struct endpoint at;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    step_until_used();
    at = hub_transport_io_endpoint(&w.io);
    to.sin_port = htons(at.port);
    assert_int_equal(
        sendto(w.wireguard, "hello", 5, 0, (const struct sockaddr *)&to, sizeof(to)), 5);
    expect_at_hub("\0\5hello", 7);
    send_as_hub("\0\3abc", 5);
    /* From where WireGuard sends to. */
    assert_int_equal(expect_at_wireguard("abc"), at.port);
}

static void test_a_stream_that_the_hub_closes(void **state)
{
    step_until_used();
    /* A half of a frame, of which the rest never comes. */
    send_as_hub("\0\5he", 4);
    w.speaks_first = true;
    upgrade_end(&w.upgrades[0]);
    step_until_failed("the hub has closed it");
    /* It is opened again, soon. */
    for (unsigned i = 0; i < 400 && w.n_opened < 2; i++)
        step();
    assert_int_equal(w.n_opened, 2);
    (void)expect_at_wireguard("abc");
}

static void test_what_is_no_frame(void **state)
{
    step_until_used();
    send_as_hub("\xff\xff", 2);
    step_until_failed("what the hub sent is not a frame");
}

/* It is logged once, and told as long as it is so. */
static void test_a_hub_that_refuses_it(void **state)
{
    const char *log;
    const char *line;

    w.refuses = true;
    heard_log_begin();
    step_until_failed("you are nobody");
    for (unsigned i = 0; i < 20; i++)
        step();
    log = heard_log_end();
    line = strstr(log, "warning: weft: UDP to the hub fails, and so does TLS: ");
    assert_non_null(line);
    assert_non_null(strstr(line, "you are nobody"));
    assert_null(strstr(strchr(line, '\n'), "UDP to the hub fails"));
    assert_non_null(hub_transport_io_failure(&w.io));
    assert_int_equal(hub_transport_io_endpoint(&w.io).port, 0);
    assert_false(w.has_changed);
}

/* With that key nothing can be proven to the hub. */
static void test_a_key_that_nobody_can_have(void **state)
{
    w.hub.node.key = (struct x25519_public){.b = {0}};
    heard_log_begin();
    for (unsigned i = 0; i < 30; i++)
        step();
    assert_memory_equal(
        heard_log_end(), "warning: weft: the hub's key is none that anybody can have\n", 58);
    assert_null(w.io.stream);
    assert_int_equal(w.n_opened, 0);
}

static void test_another_key_than_the_hubs(void **state)
{
    w.state.hub_api.pin.b[0] ^= 1;
    step_until_failed("");
    assert_int_equal(w.n_opened, 0);
}

/* The proxy is away, and there is a way without it. */
static void test_a_proxy_that_is_passed_over(void **state)
{
    (void)snprintf(w.state.hub_api.proxy, sizeof(w.state.hub_api.proxy), "http://127.0.0.1:1");
    step_until_used();
    assert_string_equal(w.io.now.status.through, "");
    assert_memory_equal(w.io.now.status.passed_over, "127.0.0.1:1: ", 13);
}

static void test_of_two_addresses_the_second(void **state)
{
    w.state.hub_api.n_api = 2;
    memcpy(w.state.hub_api.api[1], w.state.hub_api.api[0], sizeof(w.state.hub_api.api[1]));
    (void)snprintf(w.state.hub_api.api[0], sizeof(w.state.hub_api.api[0]), "127.0.0.1:1");
    step_until_used();
    assert_string_equal(w.io.now.status.to, w.state.hub_api.api[1]);
}

/* Neither with the proxy nor without it: the words are about the way that was asked for. */
static void test_a_hub_that_refuses_it_with_and_without_a_proxy(void **state)
{
    const char *log;

    w.refuses = true;
    (void)snprintf(w.state.hub_api.proxy, sizeof(w.state.hub_api.proxy), "http://127.0.0.1:1");
    heard_log_begin();
    for (unsigned i = 0; i < 400 && !hub_transport_io_failure(&w.io); i++)
        step();
    log = heard_log_end();
    assert_non_null(hub_transport_io_failure(&w.io));
    assert_non_null(strstr(log, hub_transport_io_failure(&w.io)));
    assert_non_null(strstr(hub_transport_io_failure(&w.io), "127.0.0.1 port 1 "));
    assert_string_equal(w.io.now.status.passed_over, "");
    assert_int_equal(w.n_opened, 0);
}

/* The address that is found out while it fails is tried next. */
static void test_an_address_that_is_learned_later(void **state)
{
    char right[sizeof(w.state.hub_api.api[0])];

    memcpy(right, w.state.hub_api.api[0], sizeof(right));
    (void)snprintf(w.state.hub_api.api[0], sizeof(w.state.hub_api.api[0]), "127.0.0.1:1");
    step_until_failed("");
    memcpy(w.state.hub_api.api[0], right, sizeof(right));
    step_until_used();
    assert_string_equal(w.io.now.status.to, right);
    assert_string_equal(w.io.now.status.why, "");
}

/* Once UDP is answered again it is taken, and when the hub is heard by it the stream is closed. */
static void test_the_stream_is_left(void **state)
{
    ssize_t n = -1;
    char byte;

    heard_log_begin();
    step_until_used();
    assert_memory_equal(heard_log_end(), "warning: weft: UDP to the hub at ", 33);
    w.has_changed = false;
    heard_log_begin();
    w.io.transport.choice.n_answered = 3;
    w.io.transport.choice.answered_at = w.now;
    step();
    assert_string_equal(
        heard_log_end(), "info: weft: UDP to the hub passes again, the stream is left\n");
    assert_true(w.has_changed);
    assert_int_equal(hub_transport_io_endpoint(&w.io).port, 0);
    w.view.silent_since = 0;
    step();
    assert_null(w.io.stream);
    assert_true(hub_transport_io_is_settled(&w.io));
    for (unsigned i = 0; i < 400 && n < 0; i++) {
        n = recv(w.fd[0], &byte, 1, MSG_DONTWAIT);
        step();
    }
    assert_int_equal(n, 0);
}

/* While it is used, the hub is asked of each request that it did not answer in time. */
static void test_what_the_hub_is_asked_about(void **state)
{
    struct endpoint at;
    int fd = open_udp(&at);
    struct stun_transaction asked[64];
    uint8_t in[STUN_REQUEST_SIZE];
    struct stun_request rq;
    unsigned n = 0;
    bool is_one = false;
    ssize_t size;

    w.endpoints.all[0] = at;
    step_until_used();
    for (unsigned i = 0; i < 100 && !w.result.ask_heard; i++)
        step();
    assert_true(w.result.ask_heard);
    while (n < 64 && (size = recv(fd, in, sizeof(in), MSG_DONTWAIT)) > 0) {
        assert_int_equal(stun_decode_request(&rq, in, (size_t)size), 0);
        asked[n++] = rq.id;
    }
    for (unsigned i = 0; i < n; i++)
        is_one |= memcmp(&asked[i], &w.result.request, sizeof(asked[i])) == 0;
    assert_true(is_one);
    /* What it says turns the words. */
    heard_log_begin();
    hub_transport_io_on_heard(&w.io, &at);
    assert_non_null(
        strstr(heard_log_end(), "warning: weft: the hub hears this node at 127.0.0.1:"));
    heard_log_begin();
    hub_transport_io_on_heard(&w.io, &at);
    assert_string_equal(heard_log_end(), "");
    (void)close(fd);
}

/* Before it is known where WireGuard listens, nothing could be carried. */
static void test_without_wireguards_port(void **state)
{
    w.listen_port = 0;
    for (unsigned i = 0; i < 30; i++)
        step();
    assert_null(w.io.stream);
    assert_int_equal(w.n_opened, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_stream_is_taken_while_udp_is_blocked),
        TEST(test_a_stream_that_is_held_ready),
        TEST(test_it_carries_datagrams),
        TEST(test_a_stream_that_the_hub_closes),
        TEST(test_what_is_no_frame),
        TEST(test_a_hub_that_refuses_it),
        TEST(test_a_key_that_nobody_can_have),
        TEST(test_another_key_than_the_hubs),
        TEST(test_a_proxy_that_is_passed_over),
        TEST(test_of_two_addresses_the_second),
        TEST(test_a_hub_that_refuses_it_with_and_without_a_proxy),
        TEST(test_an_address_that_is_learned_later),
        TEST(test_the_stream_is_left),
        TEST(test_what_the_hub_is_asked_about),
        TEST(test_without_wireguards_port),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
