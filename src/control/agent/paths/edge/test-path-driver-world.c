/*
 * test-path-driver-world.c - the driver among neighbours that answer, in a network of its own.
 *
 * The peer n3 is a machine of path/'s like the driver's own, the hub answers STUN and the probes of
 * its way, and the frames between them go through an engine that keeps them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <uv.h>

#include "agent/paths/edge/path_driver.h"
#include "agent/paths/socket/echo_socket.h"
#include "agent/reconcile/observe.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/log.h"
#include "path/paths.h"
#include "test/support/captured_log.h"
#include "test/support/netns.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"
#include "wire/path.h"
#include "wire/stun.h"

#define SEC  NSEC_PER_SEC
#define PORT 51820
#define SELF 2

static struct world {
    struct netlink *nl;
    unsigned ifindex; /* of the interface that has this node's address */
    uv_loop_t loop;
    struct sample_engine engine;
    unsigned n_taken; /* of what the engine was given to send */
    struct snapshot snapshot;
    struct path_driver *driver;
    struct echo_socket *pings;
    unsigned n_routes;
    unsigned n_self;
    unsigned n_look;
    unsigned n_network;

    struct endpoint own;
    struct endpoint at; /* where n3 is */
    struct paths *peer; /* n3's */
    struct x25519_public peer_key;
    bool is_peer_deaf;

    struct endpoint hub;
    int hub_socket; /* at that endpoint; where packets come that do not go through the engine */
    struct path_keys hub_keys;
    struct x25519_public hub_key;
    struct endpoint seen;  /* where the hub sees this node */
    uint16_t seen_step;    /* the NAT's next mapping, towards the API's port, has that port more */
    bool is_hub_deaf;      /* it answers nothing */
    unsigned n_stun;       /* requests that came through the engine */
    unsigned n_probes;     /* of the way to it */
    struct path_frame say; /* the last of them */
} w;

static void on_routes(void *ctx)
{
    assert_ptr_equal(ctx, &w);
    w.n_routes++;
}

static void on_self(void *ctx)
{
    assert_ptr_equal(ctx, &w);
    w.n_self++;
}

static void on_look(void *ctx)
{
    assert_ptr_equal(ctx, &w);
    w.n_look++;
}

static void on_network(void *ctx)
{
    assert_ptr_equal(ctx, &w);
    w.n_network++;
}

static struct endpoint endpoint(const char *text)
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
static void put_peer(uint64_t run)
{
    const struct endpoint inside = endpoint("10.42.9.9:51820"); /* the overlay: never tried */
    struct object o = sample_node(3);

    o.node.key = w.peer_key;
    o.node.relay = run != 0;
    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1 + run;
    o.node.side->relay_run = run;
    o.node.side->relays[0] = (struct path_relay){.key = w.hub_key, .rtt = 20 * NSEC_PER_MSEC};
    o.node.side->n_relays = 1;
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_HOST, &w.at));
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_HOST, &inside));
    sample_put(&w.snapshot, o);
}

/* Node 4 finds paths, too, and cannot be reached. */
static void put_far(void)
{
    struct object o = sample_node(4);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    sample_put(&w.snapshot, o);
}

static void put_hub(void)
{
    struct object o = sample_node(1);

    o.node.key = w.hub_key;
    o.node.hub->n_endpoints = 1;
    sample_put(&w.snapshot, o);
}

static void start_peer(const struct x25519_public *own)
{
    static uint64_t seed;
    struct paths_options opt = {.secret = peer_secret, .name = "n3"};
    struct path_peer self = {.key = *own, .name = "n2"};

    seed = 3;
    opt.rng = rng_seeded(&seed);
    assert_int_equal(paths_new(&w.peer, &opt, clock_now()), 0);
    assert_int_equal(paths_put_peer(w.peer, &self, clock_now()), 0);
}

static int open_hub_socket(const struct endpoint *at)
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
    sample_engine_put(&w.engine, from, data, len);
    for (unsigned i = 0; w.engine.has_in && i < 10; i++)
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    assert_false(w.engine.has_in);
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
    struct endpoint seen = w.seen;
    uint8_t out[SAMPLE_ENGINE_SENT_LEN];

    if (at->port != w.hub.port)
        seen.port = (uint16_t)(seen.port + w.seen_step);
    if (stun_is_request(msg, len)) {
        w.n_stun++;
        if (!w.is_hub_deaf)
            arrive(at, out, answer_stun(msg, len, &seen, out));
        return;
    }
    assert_true(path_frame_open(&w.hub_keys, msg, len, &w.say));
    assert_int_equal(w.say.kind, PATH_FRAME_PROBE);
    assert_true(is_whole);
    w.n_probes++;
    ack.transaction = w.say.transaction;
    ack.echo = w.say.session;
    ack.size = (uint16_t)len;
    assert_true(path_frame_seal(&w.hub_keys, &ack, &nonce, len, out));
    if (!w.is_hub_deaf)
        arrive(at, out, len);
}

static void peer_takes(uint8_t *frame, size_t len)
{
    struct path_arrival in = {.from = w.own, .at = clock_now()};

    if (!w.is_peer_deaf)
        paths_on_frame(w.peer, &in, frame, len, clock_now());
}

static void take_sent(void)
{
    while (w.n_taken < w.engine.n_sent) {
        unsigned i = w.n_taken++;
        struct endpoint to = w.engine.sent_to[i];
        size_t len = w.engine.sent_len[i];

        assert_true(len <= SAMPLE_ENGINE_SENT_LEN);
        if (endpoint_equal(&to, &w.at))
            peer_takes(w.engine.sent[i], len);
        else if (ip_addr_equal(&to.addr, &w.hub.addr))
            hub_takes(&to, w.engine.sent[i], len, w.engine.sent_whole[i]);
    }
    if (w.n_taken == w.engine.n_sent)
        w.n_taken = w.engine.n_sent = 0;
}

static void take_from_peer(void)
{
    struct path_action action;

    paths_tick(w.peer, clock_now());
    while (paths_next(w.peer, &action))
        if (action.kind == PATH_ACTION_SEND && endpoint_equal(&action.remote, &w.own) &&
            !w.is_peer_deaf)
            arrive(&w.at, action.frame, action.len);
}

/* A request from another socket than WireGuard's. */
static void take_at_hub(void)
{
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    uint8_t msg[SAMPLE_ENGINE_SENT_LEN];
    struct endpoint fresh = {.addr = w.seen.addr, .port = 4900};
    uint8_t out[STUN_ANSWER_MAX];
    ssize_t n = recvfrom(w.hub_socket, msg, sizeof(msg), 0, (struct sockaddr *)&from, &from_len);

    if (n > 0 && !w.is_hub_deaf)
        (void)sendto(w.hub_socket, out, answer_stun(msg, (size_t)n, &fresh, out), 0,
            (struct sockaddr *)&from, from_len);
}

/* Until it is so, or for ten seconds. */
static bool run_until(bool (*is_so)(void))
{
    for (nsec_t end = clock_now() + 10 * SEC; clock_now() < end;) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        take_sent();
        take_from_peer();
        take_at_hub();
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
    unsigned lo = netns_raise_loopback(w.nl);
    struct rtnl_link link;

    /* The overlay's own interface, where every other address of it is the kernel's, too. */
    assert_int_equal(rtnl_add_link(w.nl, "weft0", "bridge"), 0);
    assert_int_equal(rtnl_find_link(w.nl, "weft0", &link), 0);
    assert_int_equal(rtnl_set_link(w.nl, link.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(w.nl, link.ifindex, &inner, false), 0);
    assert_int_equal(rtnl_add_link(w.nl, "lan", "bridge"), 0);
    assert_int_equal(rtnl_find_link(w.nl, "lan", &link), 0);
    w.ifindex = link.ifindex;
    assert_int_equal(rtnl_set_link(w.nl, w.ifindex, true, 0), 0);
    assert_int_equal(rtnl_add_address(w.nl, w.ifindex, &own, false), 0);
    assert_int_equal(rtnl_add_address(w.nl, lo, &hub, false), 0);
}

/* Nothing is known yet. Skips the test where there can be no namespace. */
static void begin_world(void **state, const char *interface)
{
    struct path_driver_options opt = {.secret = &own_secret, .name = "n2", .interface = interface};
    struct path_driver_listener listener = {.on_routes = on_routes,
        .on_self = on_self,
        .on_look = on_look,
        .on_network = on_network,
        .ctx = &w};
    struct x25519_public own;

    memset(&w, 0, sizeof(w));
    w.nl = netns_need(state);
    make_network();
    assert_int_equal(echo_socket_new(&w.pings), 0);
    opt.pings = w.pings;
    w.own = endpoint("192.0.2.5:51820");
    w.at = endpoint("198.51.100.3:51820");
    w.hub = endpoint("203.0.113.10:51820");
    w.seen = endpoint("192.0.2.77:4000");
    assert_true(x25519_derive_public(&own_secret, &own));
    assert_true(x25519_derive_public(&peer_secret, &w.peer_key));
    assert_true(x25519_derive_public(&hub_secret, &w.hub_key));
    assert_true(path_keys_derive(&w.hub_keys, &hub_secret, &w.hub_key, &own));
    w.hub_socket = open_hub_socket(&w.hub);
    w.snapshot = sample_snapshot(4, SELF);
    put_hub();
    put_peer(0);
    put_far();
    start_peer(&own);
    sample_engine_init(&w.engine, ENGINE_KIND_USERSPACE);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(path_driver_new(&w.driver, &w.loop, &opt, &listener, NULL), 0);
}

/* The engine runs, and the network is known. */
static void begin(void **state)
{
    begin_world(state, "weft0");
    path_driver_set_engine(w.driver, &w.engine.engine, PORT, clock_now());
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
}

static void end_world(void)
{
    w.driver = path_driver_free(w.driver, false);
    w.pings = echo_socket_free(w.pings);
    (void)uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    w.peer = paths_free(w.peer);
    sample_engine_deinit(&w.engine);
    snapshot_deinit(&w.snapshot);
    (void)close(w.hub_socket);
}

static struct path_view view_of(const char *node)
{
    struct path_view view;

    assert_true(path_driver_view(w.driver, node, &view, clock_now()));
    return view;
}

static bool is_direct(void)
{
    return view_of("n3").kind == PATH_KIND_DIRECT;
}

static bool is_relayed(void)
{
    return view_of("n3").kind == PATH_KIND_RELAY;
}

static const struct render_path *route_of(const char *node)
{
    size_t n;
    const struct render_path *routes = path_driver_routes(w.driver, &n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].node, node) == 0)
            return &routes[i];
    return NULL;
}

/* What the engine shows: sessions with the hub and with n3, and that many bytes of each. */
static void see(uint64_t n_bytes)
{
    struct observation items[] = {{.key = w.hub_key, .endpoint = w.hub},
        {.key = w.peer_key, .endpoint = w.at}, {.key = sample_key(4), .endpoint = w.hub}};
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
    path_driver_observe(w.driver, &seen, clock_now());
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_pairs(void)
{
    json_t *pairs = path_driver_encode_pairs(w.driver, "n3", clock_now());
    const char *endpoint_text, *type, *verdict;
    int is_own, tried, n_pings, n_pongs;
    double rtt, loss;

    assert_int_equal(json_array_size(pairs), 1);
    assert_int_equal(
        json_unpack(json_array_get(pairs, 0), "{s:s, s:s, s:b, s:s, s:F, s:F, s:i, s:i, s:i !}",
            "endpoint", &endpoint_text, "type", &type, "ownSocket", &is_own, "verdict", &verdict,
            "rttMs", &rtt, "loss", &loss, "triedSecondsAgo", &tried, "pings", &n_pings, "pongs",
            &n_pongs),
        0);
    assert_string_equal(endpoint_text, "198.51.100.3:51820");
    assert_string_equal(type, "host");
    assert_false(is_own);
    assert_string_equal(verdict, "chosen");
    assert_true(rtt > 0 && rtt < 1000);
    assert_true(loss >= 0 && loss <= 1);
    assert_true(tried >= 0 && tried < 60);
    assert_true(n_pings > 0 && n_pongs > 0 && n_pongs <= n_pings);
    json_decref(pairs);
}

static void check_relays(const char *verdict)
{
    json_t *relays = path_driver_encode_relays(w.driver, "n3");
    const char *name, *said;
    double here, there;

    assert_int_equal(json_array_size(relays), 1);
    assert_int_equal(json_unpack(json_array_get(relays, 0), "{s:s, s:s, s:F, s:F !}", "name", &name,
                         "verdict", &said, "rttMs", &here, "peerRttMs", &there),
        0);
    assert_string_equal(name, "hub");
    assert_string_equal(said, verdict);
    assert_true(here > 0 && here < 1000);
    assert_true(there == 20.0);
    json_decref(relays);
}

static bool is_measured(void)
{
    const struct render_path *route = route_of("n3");

    return route && route->mtu == 1420;
}

static void test_a_direct_path_is_used(void **state)
{
    const struct endpoint elsewhere = endpoint("198.51.100.3:4000");
    json_t *none;

    begin(state);
    assert_true(is_relayed());
    assert_null(route_of("n3"));
    assert_true(run_until(is_direct));
    assert_true(w.n_routes > 0);
    assert_non_null(route_of("n3"));
    assert_true(endpoint_equal(&route_of("n3")->endpoint, &w.at));
    assert_true(path_driver_may_be_at(w.driver, "n3", &w.at));
    assert_false(path_driver_may_be_at(w.driver, "n3", &elsewhere));
    assert_false(path_driver_may_be_at(w.driver, "n4", &w.at));
    check_pairs();
    check_relays("works");
    /* Of who is no peer nothing was tried, and no relay is looked for. */
    assert_null(path_driver_encode_pairs(w.driver, "n9", clock_now()));
    none = path_driver_encode_relays(w.driver, "n9");
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
    none = path_driver_encode_pairs(w.driver, "n4", clock_now());
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
    /* What the path carries is found by what the peer answers, up to what links here carry. */
    w.n_routes = 0;
    assert_true(run_until(is_measured));
    assert_true(w.n_routes > 0);
    assert_false(path_driver_awaits_handshake(w.driver));
    end_world();
}

static bool is_lan(void)
{
    return view_of("n3").kind == PATH_KIND_LAN;
}

static void test_a_path_of_the_same_network_is_used(void **state)
{
    begin_world(state, "weft0");
    w.at = endpoint("192.168.7.3:51820");
    put_peer(0);
    path_driver_set_engine(w.driver, &w.engine.engine, PORT, clock_now());
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
    assert_true(run_until(is_lan));
    assert_non_null(route_of("n3"));
    assert_true(endpoint_equal(&route_of("n3")->endpoint, &w.at));
    end_world();
}

static bool has_small_link(void)
{
    const struct render_path *route = route_of("n3");

    return route && route->mtu == 1280;
}

static void test_the_largest_link_limits_a_path(void **state)
{
    begin(state);
    assert_true(run_until(is_measured));
    path_driver_set_link_mtu(w.driver, 1280);
    assert_true(run_until(has_small_link));
    end_world();
}

/* The operator has the edge relayed: the peer shakes hands there. */
static void test_an_edge_that_is_relayed_again(void **state)
{
    struct x25519_public key;
    const char *node;

    begin(state);
    assert_true(run_until(is_direct));
    path_driver_on_applied(w.driver);
    assert_false(path_driver_next_handshake(w.driver, &key, &node, clock_now()));
    w.n_routes = 0;
    w.snapshot.network.topology = TOPOLOGY_HUB;
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
    assert_true(is_relayed());
    assert_true(w.n_routes > 0);
    assert_true(path_driver_awaits_handshake(w.driver));
    /* At the end of this process nothing waits for its turn. */
    assert_true(path_driver_retreat(w.driver, clock_now()));
    path_driver_on_applied(w.driver);
    assert_true(path_driver_next_handshake(w.driver, &key, &node, clock_now()));
    assert_true(x25519_public_equal(&key, &w.peer_key));
    assert_string_equal(node, "n3");
    assert_false(path_driver_next_handshake(w.driver, &key, &node, clock_now()));
    end_world();
}

static bool is_hub_way_known(void)
{
    return path_driver_hub_mtu(w.driver, &w.hub_key) == 1420;
}

static bool has_hub_been_told(void)
{
    return w.say.size == 1420;
}

static void test_the_way_to_the_hub(void **state)
{
    const struct x25519_public other = sample_key(4);
    nsec_t said_at;

    begin(state);
    assert_int_equal(path_driver_hub_mtu(w.driver, &w.hub_key), 0);
    see(1000);
    assert_true(run_until(is_hub_way_known));
    assert_int_equal(path_driver_hub_mtu(w.driver, &other), 0);
    assert_true(path_driver_may_be_at(w.driver, "n4", &w.hub));
    /* Peers are told. */
    assert_int_equal(path_driver_self(w.driver)->n_relays, 1);
    assert_int_equal(path_driver_self(w.driver)->relays[0].mtu, 1420);
    assert_true(path_driver_self(w.driver)->relays[0].rtt > 0);
    /* Until the hub's clock is known it is not told what was found. */
    assert_int_equal(w.say.size, 0);
    path_driver_set_hub_clock(w.driver, -1000000 * SEC);
    see(2000);
    assert_true(run_until(has_hub_been_told));
    said_at = (nsec_t)w.say.sequence;
    assert_true(said_at > clock_wall() + 1000000 * SEC - 60 * SEC);
    assert_true(said_at < clock_wall() + 1000000 * SEC + 60 * SEC);
    end_world();
}

static bool is_stock_way_known(void)
{
    const struct render_path *route = route_of("n4");

    return route && route->mtu == 1420;
}

/* Its kernel answers pings, which here is this machine's. */
static void test_the_way_to_a_stock_peer(void **state)
{
    const struct ip_prefix own = netns_prefix("10.42.0.2/32");
    const struct ip_prefix theirs = netns_prefix("10.42.0.4/32");
    struct object stock = sample_node(4);
    struct rtnl_link lo;

    begin_world(state, "lo");
    assert_int_equal(rtnl_find_link(w.nl, "lo", &lo), 0);
    assert_int_equal(rtnl_add_address(w.nl, lo.ifindex, &own, true), 0);
    assert_int_equal(rtnl_add_address(w.nl, lo.ifindex, &theirs, true), 0);
    stock.node.stock = true;
    sample_put(&w.snapshot, stock);
    path_driver_set_engine(w.driver, &w.engine.engine, PORT, clock_now());
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
    assert_null(route_of("n4"));
    see(1000);
    w.n_routes = 0;
    assert_true(run_until(is_stock_way_known));
    assert_true(w.n_routes > 0);
    end_world();
}

static bool is_hub_reported(void)
{
    return path_driver_self(w.driver)->n_relays > 0 &&
           x25519_public_equal(&path_driver_self(w.driver)->relays[0].key, &w.hub_key);
}

static bool is_hub_not_reported(void)
{
    see(1000 + (uint64_t)clock_now());
    return !is_hub_reported();
}

/* While another relay is there the hub is asked, and left when it does not answer. */
static void test_a_hub_that_does_not_answer(void **state)
{
    struct captured_log said;

    begin(state);
    put_peer(70);
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
    assert_true(run_until(is_measured));
    assert_true(is_hub_reported());
    w.is_hub_deaf = true;
    see(1000);
    said = captured_log_begin();
    assert_true(run_until(is_hub_not_reported));
    captured_log_end(&said,
        "info: test: the hub does not answer by UDP: what it relays goes another way\n"
        "info: test: n4: the relay does not answer any more; through another one\n");
    w.is_hub_deaf = false;
    said = captured_log_begin();
    assert_true(run_until(is_hub_reported));
    captured_log_end(&said, "info: test: the hub answers by UDP again\n");
    end_world();
}

static bool has_address_6(void)
{
    const struct endpoint six = endpoint("192.0.2.6:51820");

    return candidates_find(&path_driver_self(w.driver)->candidates, &six) != NULL;
}

static bool is_stun_asked(void)
{
    return w.n_stun > 0;
}

static bool were_routes_looked_at(void)
{
    return w.n_routes > 0;
}

static void test_this_machines_network_changes(void **state)
{
    const struct ip_prefix six = netns_prefix("192.0.2.6/24");
    const struct ip_prefix part = netns_prefix("10.42.7.0/24");

    begin_world(state, "weft0");
    w.is_peer_deaf = true;
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
    w.n_routes = 0;
    path_driver_set_engine(w.driver, &w.engine.engine, PORT, clock_now());
    assert_non_null(candidates_find(&path_driver_self(w.driver)->candidates, &w.own));
    assert_true(run_until(is_stun_asked));
    assert_int_equal(w.n_network, 0);
    assert_int_equal(w.n_routes, 0);
    w.n_stun = w.n_self = 0;
    assert_int_equal(rtnl_add_address(w.nl, w.ifindex, &six, false), 0);
    assert_true(run_until(has_address_6));
    assert_int_equal(w.n_network, 1);
    assert_int_equal(w.n_routes, 0);
    w.is_peer_deaf = false;
    assert_true(w.n_self > 0);
    assert_true(run_until(is_stun_asked));
    /* Somebody takes a part of the overlay's block: addresses are the same, but the routes have to
     * be mended. */
    assert_true(run_until(is_direct));
    w.n_routes = 0;
    assert_int_equal(rtnl_add_route(w.nl, w.ifindex, &part, NULL), 0);
    assert_true(run_until(were_routes_looked_at));
    assert_int_equal(w.n_network, 1);
    end_world();
}

static void test_an_engine_that_is_started_anew(void **state)
{
    const struct endpoint other = endpoint("192.0.2.5:4000");

    begin(state);
    assert_true(run_until(is_stun_asked));
    w.n_stun = w.n_self = 0;
    /* It is open already. */
    path_driver_set_engine(w.driver, &w.engine.engine, PORT, clock_now());
    take_sent();
    assert_int_equal(w.n_stun, 0);
    /* On the same port the servers are asked again, and addresses stay. */
    path_driver_set_engine(w.driver, NULL, 0, clock_now());
    assert_false(path_driver_pins(w.driver));
    path_driver_set_engine(w.driver, &w.engine.engine, PORT, clock_now());
    assert_true(path_driver_pins(w.driver));
    take_sent();
    assert_int_equal(w.n_stun, 2);
    assert_non_null(candidates_find(&path_driver_self(w.driver)->candidates, &w.seen));
    /* On another port what they have told is void. */
    w.is_hub_deaf = true;
    path_driver_set_engine(w.driver, &w.engine.engine, 4000, clock_now());
    assert_null(candidates_find(&path_driver_self(w.driver)->candidates, &w.seen));
    assert_non_null(candidates_find(&path_driver_self(w.driver)->candidates, &other));
    assert_null(candidates_find(&path_driver_self(w.driver)->candidates, &w.own));
    take_sent();
    assert_int_equal(w.n_stun, 4);
    end_world();
}

static bool is_fresh_port_known(void)
{
    return path_driver_self(w.driver)->nat.last_port == 4900;
}

/* A peer is about to guess the NAT's newest port, so a socket of its own asks for that. */
static void test_the_newest_port_of_a_counting_nat(void **state)
{
    begin(state);
    w.is_peer_deaf = true;
    w.seen_step = 3;
    assert_true(run_until(is_fresh_port_known));
    assert_int_equal(path_driver_self(w.driver)->nat.mapping, BEHAVIOR_PORT_DEPENDENT);
    assert_int_equal(path_driver_self(w.driver)->nat.port_step, 3);
    /* The servers were asked again as well, from WireGuard's own port. */
    assert_int_equal(w.n_stun, 4);
    end_world();
}

/* What goes through the hub shakes hands there again, and what is reported names the new one. */
static void test_another_hub_relays(void **state)
{
    struct object other = sample_node(1);
    struct path_relay relay;
    struct ip_addr outside;
    unsigned n_self;

    begin(state);
    other.node.key = sample_key(9);
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "hub-b");
    other.node.address4.b[15] = 9;
    sample_put(&w.snapshot, other);
    path_driver_set_snapshot(w.driver, &w.snapshot, clock_now());
    assert_true(run_until(is_hub_reported));
    outside = path_driver_outside(w.driver, &w.hub);
    assert_true(ip_addr_equal(&outside, &w.seen.addr));
    see(1000);
    w.n_routes = 0;
    path_driver_on_hub_forgot(w.driver, clock_now());
    assert_int_equal(w.n_routes, 1);
    assert_true(path_driver_awaits_handshake(w.driver));
    n_self = w.n_self;
    path_driver_use_hub(w.driver, snapshot_find_node(&w.snapshot, "hub"), clock_now());
    assert_int_equal(w.n_routes, 1);
    assert_int_equal(w.n_self, n_self);
    path_driver_use_hub(w.driver, snapshot_find_node(&w.snapshot, "hub-b"), clock_now());
    assert_int_equal(w.n_routes, 2);
    assert_int_equal(w.n_self, n_self + 1);
    assert_int_equal(path_driver_self(w.driver)->n_relays, 1);
    relay = path_driver_self(w.driver)->relays[0];
    assert_true(x25519_public_equal(&relay.key, &(struct x25519_public){{9, 0, 7}}));
    end_world();
}

static void test_this_node_relays(void **state)
{
    struct captured_log said;
    uint64_t run;
    unsigned n_self;

    begin(state);
    assert_int_equal(path_driver_self(w.driver)->relay_run, 0);
    said = captured_log_begin();
    n_self = w.n_self;
    path_driver_set_relay(w.driver, true, false, clock_now());
    run = path_driver_self(w.driver)->relay_run;
    assert_int_not_equal(run, 0);
    assert_int_equal(w.n_self, n_self + 1);
    path_driver_set_relay(w.driver, true, false, clock_now());
    assert_int_equal(w.n_self, n_self + 1);
    assert_int_equal(path_driver_self(w.driver)->relay_run, run);
    /* A new engine has forgotten who may be relayed. */
    path_driver_set_relay(w.driver, true, true, clock_now());
    assert_int_not_equal(path_driver_self(w.driver)->relay_run, run);
    assert_int_not_equal(path_driver_self(w.driver)->relay_run, 0);
    assert_int_equal(w.n_self, n_self + 2);
    path_driver_set_relay(w.driver, false, false, clock_now());
    assert_int_equal(path_driver_self(w.driver)->relay_run, 0);
    assert_int_equal(w.n_self, n_self + 3);
    captured_log_end(&said, "info: test: this node relays for others now\n"
                            "info: test: this node does not relay any more\n");
    end_world();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_direct_path_is_used, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_a_path_of_the_same_network_is_used, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_the_largest_link_limits_a_path, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_edge_that_is_relayed_again, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_the_way_to_the_hub, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_the_way_to_a_stock_peer, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_hub_that_does_not_answer, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_this_machines_network_changes, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_engine_that_is_started_anew, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_the_newest_port_of_a_counting_nat, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_another_hub_relays, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_this_node_relays, netns_enter, netns_leave),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
