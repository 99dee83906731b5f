/* driver_world.c - see driver_world.h. */
#include "test/support/driver_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>

#include "agent/paths/socket/echo_socket.h"
#include "agent/reconcile/observe.h"
#include "net/address/sockaddr.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"
#include "wire/stun.h"

#define SEC NSEC_PER_SEC

struct driver_world driver_world;

static void on_routes(void *ctx)
{
    assert_ptr_equal(ctx, &driver_world);
    driver_world.n_routes++;
}

static void on_self(void *ctx)
{
    assert_ptr_equal(ctx, &driver_world);
    driver_world.n_self++;
}

static void on_look(void *ctx)
{
    assert_ptr_equal(ctx, &driver_world);
    driver_world.n_look++;
}

static void on_network(void *ctx)
{
    assert_ptr_equal(ctx, &driver_world);
    driver_world.n_network++;
}

struct endpoint driver_world_endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

/* ---- the neighbours ------------------------------------------------------------------------- */

static const struct x25519_secret own_secret = {.b = {[0] = 8, [31] = 64}};
static const struct x25519_secret peer_secret = {.b = {[0] = 16, [31] = 64}};
static const struct x25519_secret hub_secret = {.b = {[0] = 24, [31] = 64}};

/* Node 3 finds paths and reports its address; as a relay, unless @run is 0. */
void driver_world_put_peer(uint64_t run)
{
    const struct endpoint inside =
        driver_world_endpoint("10.42.9.9:51820"); /* the overlay: never tried */
    struct object o = sample_node(3);

    o.node.key = driver_world.peer_key;
    o.node.relay = run != 0;
    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1 + run;
    o.node.side->relay_run = run;
    o.node.side->relays[0] =
        (struct path_relay){.key = driver_world.hub_key, .rtt = 20 * NSEC_PER_MSEC};
    o.node.side->n_relays = 1;
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_HOST, &driver_world.at));
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_HOST, &inside));
    sample_put(&driver_world.snapshot, o);
}

/* Node 4 finds paths, too, and cannot be reached. */
static void put_far(void)
{
    struct object o = sample_node(4);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    sample_put(&driver_world.snapshot, o);
}

static void put_hub(void)
{
    struct object o = sample_node(1);

    o.node.key = driver_world.hub_key;
    o.node.hub->n_endpoints = 1;
    sample_put(&driver_world.snapshot, o);
}

static void start_peer(const struct x25519_public *own)
{
    static uint64_t seed;
    struct paths_options opt = {.secret = peer_secret, .name = "n3"};
    struct path_peer self = {.key = *own, .name = "n2"};

    seed = 3;
    opt.rng = rng_seeded(&seed);
    assert_int_equal(paths_new(&driver_world.peer, &opt, clock_now()), 0);
    assert_int_equal(paths_put_peer(driver_world.peer, &self, clock_now()), 0);
}

static int open_socket(const struct endpoint *at)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(at->port)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(&sin.sin_addr, at->addr.b + 12, sizeof(sin.sin_addr));
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

/* Something arrives through WireGuard's port. */
static void arrive(const struct endpoint *from, const uint8_t *data, size_t len)
{
    sample_engine_put(&driver_world.engine, from, data, len);
    for (unsigned i = 0; driver_world.engine.has_in && i < 10; i++)
        (void)uv_run(&driver_world.loop, UV_RUN_NOWAIT);
    assert_false(driver_world.engine.has_in);
}

static size_t answer_stun(const uint8_t *msg, size_t len, const struct endpoint *seen, uint8_t *out)
{
    struct stun_request req;

    assert_int_equal(stun_decode_request(&req, msg, len), 0);
    return stun_encode_answer(&req, seen, out);
}

static void hub_takes(const struct endpoint *at, uint8_t *msg, size_t len, bool is_whole)
{
    struct path_frame ack = {.kind = PATH_FRAME_PROBE_ACK, .session = 5};
    struct xchacha_nonce nonce = {{3}};
    struct endpoint seen = driver_world.seen;
    uint8_t out[SAMPLE_ENGINE_SENT_LEN];

    if (at->port != driver_world.hub.port)
        seen.port = (uint16_t)(seen.port + driver_world.seen_step);
    if (stun_is_request(msg, len)) {
        driver_world.n_stun++;
        if (!driver_world.is_hub_deaf)
            arrive(at, out, answer_stun(msg, len, &seen, out));
        return;
    }
    assert_true(path_frame_open(&driver_world.hub_keys, msg, len, &driver_world.say));
    assert_int_equal(driver_world.say.kind, PATH_FRAME_PROBE);
    assert_true(is_whole);
    driver_world.n_probes++;
    ack.transaction = driver_world.say.transaction;
    ack.echo = driver_world.say.session;
    ack.size = (uint16_t)len;
    assert_true(path_frame_seal(&driver_world.hub_keys, &ack, &nonce, len, out));
    if (!driver_world.is_hub_deaf)
        arrive(at, out, len);
}

static void peer_takes(uint8_t *frame, size_t len)
{
    struct path_arrival in = {.from = driver_world.own, .at = clock_now()};

    if (!driver_world.is_peer_deaf)
        paths_on_frame(driver_world.peer, &in, frame, len, clock_now());
}

void driver_world_take_sent(void)
{
    while (driver_world.n_taken < driver_world.engine.n_sent) {
        unsigned i = driver_world.n_taken++;
        struct endpoint to = driver_world.engine.sent_to[i];
        size_t len = driver_world.engine.sent_len[i];

        assert_true(len <= SAMPLE_ENGINE_SENT_LEN);
        if (endpoint_equal(&to, &driver_world.at))
            peer_takes(driver_world.engine.sent[i], len);
        else if (ip_addr_equal(&to.addr, &driver_world.hub.addr))
            hub_takes(&to, driver_world.engine.sent[i], len, driver_world.engine.sent_whole[i]);
    }
    if (driver_world.n_taken == driver_world.engine.n_sent)
        driver_world.n_taken = driver_world.engine.n_sent = 0;
}

static void send_from_peer(const struct path_action *action)
{
    union sockaddr_inet to;
    socklen_t len = sockaddr_from_endpoint(&to, &action->remote);

    (void)sendto(driver_world.peer_socket, action->frame, action->len, 0, &to.any, len);
}

static void take_from_peer(void)
{
    struct path_action action;

    paths_tick(driver_world.peer, clock_now());
    while (paths_next(driver_world.peer, &action)) {
        bool is_by_engine = endpoint_equal(&action.remote, &driver_world.own);

        if (action.kind == PATH_ACTION_SEND && is_by_engine && !driver_world.is_peer_deaf)
            arrive(&driver_world.at, action.frame, action.len);
        if (action.kind == PATH_ACTION_SEND && !is_by_engine && driver_world.peer_socket >= 0)
            send_from_peer(&action);
    }
}

/* What came from another socket than WireGuard's, and what n3 sends there. */
static void take_at_peer(void)
{
    struct path_arrival in = {.at = clock_now()};
    union sockaddr_inet from;
    socklen_t from_len = sizeof(from);
    uint8_t frame[SAMPLE_ENGINE_SENT_LEN];
    ssize_t n = recvfrom(driver_world.peer_socket, frame, sizeof(frame), 0, &from.any, &from_len);

    if (n > 0 && sockaddr_to_endpoint(&from, &in.from))
        paths_on_frame(driver_world.peer, &in, frame, (size_t)n, clock_now());
}

/* A request from another socket than WireGuard's. */
static void take_at_hub(void)
{
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    uint8_t msg[SAMPLE_ENGINE_SENT_LEN];
    struct endpoint fresh = {.addr = driver_world.seen.addr, .port = 4900};
    uint8_t out[STUN_ANSWER_MAX];
    ssize_t n =
        recvfrom(driver_world.hub_socket, msg, sizeof(msg), 0, (struct sockaddr *)&from, &from_len);

    if (n > 0 && !driver_world.is_hub_deaf)
        (void)sendto(driver_world.hub_socket, out, answer_stun(msg, (size_t)n, &fresh, out), 0,
            (struct sockaddr *)&from, from_len);
}

/* Until it is so, or for ten seconds. */
bool driver_world_run_until(bool (*is_so)(void))
{
    for (nsec_t end = clock_now() + 10 * SEC; clock_now() < end;) {
        (void)uv_run(&driver_world.loop, UV_RUN_NOWAIT);
        driver_world_take_sent();
        take_from_peer();
        take_at_hub();
        if (driver_world.peer_socket >= 0)
            take_at_peer();
        if (is_so())
            return true;
        (void)poll(NULL, 0, 2);
    }
    return false;
}

/* ---- the world ------------------------------------------------------------------------------ */

static void make_network(void)
{
    const struct ip_prefix own = netns_prefix("192.0.2.5/24");
    const struct ip_prefix hub = netns_prefix("203.0.113.10/32");
    const struct ip_prefix inner = netns_prefix("10.42.0.2/16");
    struct rtnl_link link;

    driver_world.lo = netns_raise_loopback(driver_world.nl);
    /* The overlay's own interface, where every other address of it is the kernel's, too. */
    assert_int_equal(rtnl_add_link(driver_world.nl, "weft0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(driver_world.nl, "weft0", &link), 0);
    assert_int_equal(rtnl_set_link(driver_world.nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(driver_world.nl, link.ifindex, &inner, false), 0);
    assert_int_equal(rtnl_add_link(driver_world.nl, "lan", "bridge"), 0);
    assert_int_equal(rtnl_find_link(driver_world.nl, "lan", &link), 0);
    driver_world.ifindex = link.ifindex;
    assert_int_equal(rtnl_set_link(driver_world.nl, driver_world.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(driver_world.nl, driver_world.ifindex, &own, false), 0);
    assert_int_equal(rtnl_add_address(driver_world.nl, driver_world.lo, &hub, false), 0);
}

void driver_world_open_peer(const char *at)
{
    struct ip_prefix own = {.len = 32};

    driver_world.at = driver_world_endpoint(at);
    own.addr = driver_world.at.addr;
    assert_int_equal(rtnl_add_address(driver_world.nl, driver_world.lo, &own, false), 0);
    driver_world.peer_socket = open_socket(&driver_world.at);
}

/* Nothing is known yet. Skips the test where there can be no namespace. */
void driver_world_begin_on(void **state, const char *interface)
{
    struct path_driver_options opt = {.secret = &own_secret, .name = "n2", .interface = interface};
    struct path_driver_listener listener = {.on_routes = on_routes,
        .on_self = on_self,
        .on_look = on_look,
        .on_network = on_network,
        .ctx = &driver_world};
    struct x25519_public own;

    memset(&driver_world, 0, sizeof(driver_world));
    driver_world.nl = netns_need(state);
    make_network();
    assert_int_equal(echo_socket_new(&driver_world.pings), 0);
    opt.pings = driver_world.pings;
    driver_world.own = driver_world_endpoint("192.0.2.5:51820");
    driver_world.at = driver_world_endpoint("198.51.100.3:51820");
    driver_world.hub = driver_world_endpoint("203.0.113.10:51820");
    driver_world.seen = driver_world_endpoint("192.0.2.77:4000");
    assert_true(x25519_derive_public(&own_secret, &own));
    assert_true(x25519_derive_public(&peer_secret, &driver_world.peer_key));
    assert_true(x25519_derive_public(&hub_secret, &driver_world.hub_key));
    assert_true(path_keys_derive(&driver_world.hub_keys, &hub_secret, &driver_world.hub_key, &own));
    driver_world.hub_socket = open_socket(&driver_world.hub);
    driver_world.peer_socket = -1;
    driver_world.snapshot = sample_snapshot(4, DRIVER_WORLD_SELF);
    put_hub();
    driver_world_put_peer(0);
    put_far();
    start_peer(&own);
    sample_engine_init(&driver_world.engine, ENGINE_KIND_USERSPACE);
    assert_int_equal(uv_loop_init(&driver_world.loop), 0);
    assert_int_equal(
        path_driver_new(&driver_world.driver, &driver_world.loop, &opt, &listener, NULL), 0);
}

/* The engine runs, and the network is known. */
void driver_world_begin(void **state)
{
    driver_world_begin_on(state, "weft0");
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
}

void driver_world_end(void)
{
    driver_world.driver = path_driver_free(driver_world.driver, false);
    driver_world.pings = echo_socket_free(driver_world.pings);
    (void)uv_run(&driver_world.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&driver_world.loop), 0);
    driver_world.peer = paths_free(driver_world.peer);
    sample_engine_deinit(&driver_world.engine);
    snapshot_deinit(&driver_world.snapshot);
    (void)close(driver_world.hub_socket);
    if (driver_world.peer_socket >= 0)
        (void)close(driver_world.peer_socket);
}

struct path_view driver_world_view(const char *node)
{
    struct path_view view;

    assert_true(path_driver_view(driver_world.driver, node, &view, clock_now()));
    return view;
}

const struct render_path *driver_world_route(const char *node)
{
    size_t n;
    const struct render_path *routes = path_driver_routes(driver_world.driver, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].node, node) == 0)
            return &routes[i];
    return NULL;
}

/* What the engine shows: sessions with the hub and with n3, and that many bytes of each. */
void driver_world_see(uint64_t n_bytes)
{
    struct observation items[] = {{.key = driver_world.hub_key, .endpoint = driver_world.hub},
        {.key = driver_world.peer_key, .endpoint = driver_world.at},
        {.key = sample_key(4), .endpoint = driver_world.hub}};
    struct observe seen = {.items = items, .n = 3};

    for (unsigned i = 0; i < 3; i++) {
        items[i].handshake_at = clock_now();
        items[i].facts = (struct wg_facts){.rx_bytes = n_bytes, .tx_bytes = n_bytes};
    }
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = i + 1; k < 3; k++)
            if (x25519_public_compare(&items[k].key, &items[i].key) < 0) {
                struct observation o = items[i];

                items[i] = items[k];
                items[k] = o;
            }
    path_driver_observe(driver_world.driver, &seen, clock_now());
}
