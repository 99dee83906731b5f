/*
 * test-path-driver.c - the driver with an engine that keeps what is sent: who is asked, what is
 * reported, and what becomes of peers. How paths are found is path/'s, and the world's is
 * test/lab/'s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>
#include <poll.h>
#include <uv.h>

#include "agent/paths/edge/path_driver.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/err.h"
#include "os/clock.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/sample_engine.h"
#include "test/support/sample_mesh.h"
#include "wire/path.h"
#include "wire/stun.h"

#define SELF 2
#define PORT 51820

struct world {
    uv_loop_t loop;
    struct sample_engine engine;
    struct snapshot snapshot;
    struct path_driver *paths;
    unsigned n_routes;
    unsigned n_self;
};

static void on_routes(void *ctx)
{
    struct world *w = ctx;

    w->n_routes++;
}

static void on_self(void *ctx)
{
    struct world *w = ctx;

    w->n_self++;
}

static void on_network(void *ctx)
{
}

static void on_look(void *ctx)
{
}

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

/* Node 3 finds paths, too; node 4 is a stock one. */
static void put_side(struct snapshot *s)
{
    struct object o = sample_node(3);
    const struct endpoint at = endpoint("198.51.100.3:51820");

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_REFLEXIVE, &at));
    sample_put(s, o);
}

static int set_up(void **state)
{
    static struct world w;
    const struct x25519_secret secret = {.b = {[0] = 8, [31] = 64}};
    struct path_driver_options opt = {.secret = &secret, .interface = "weft-none"};
    struct path_driver_listener listener = {.on_routes = on_routes,
        .on_self = on_self,
        .on_look = on_look,
        .on_network = on_network,
        .ctx = &w};

    w = (struct world){.snapshot = sample_snapshot(4, SELF)};
    opt.name = w.snapshot.self;
    put_side(&w.snapshot);
    sample_engine_init(&w.engine, ENGINE_KIND_USERSPACE);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(path_driver_new(&w.paths, &w.loop, &opt, &listener, NULL), 0);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->paths = path_driver_free(w->paths, false);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    sample_engine_deinit(&w->engine);
    snapshot_deinit(&w->snapshot);
    return 0;
}

static void begin(struct world *w)
{
    path_driver_set_snapshot(w->paths, &w->snapshot, clock_now());
    path_driver_set_engine(w->paths, &w->engine.engine, PORT, clock_now());
}

/* The last thing that was sent there, of that first byte; NULL: none. */
static const uint8_t *find_sent(const struct world *w, const struct endpoint *to, uint8_t first)
{
    for (unsigned i = w->engine.n_sent; i-- > 0;)
        if (endpoint_equal(&w->engine.sent_to[i], to) && w->engine.sent[i][0] == first)
            return w->engine.sent[i];
    return NULL;
}

static void test_servers_are_asked_and_believed(void **state)
{
    struct world *w = *state;
    const struct endpoint hub = endpoint("203.0.113.10:51820");
    const struct endpoint api = endpoint("203.0.113.10:8443");
    const struct endpoint mapped = endpoint("192.0.2.77:4000");
    uint8_t out[STUN_ANSWER_MAX];
    struct stun_request req;
    const uint8_t *msg;
    uint64_t generation;
    size_t len;

    begin(w);
    msg = find_sent(w, &hub, 0);
    assert_non_null(msg);
    assert_non_null(find_sent(w, &api, 0));
    assert_true(path_driver_self(w->paths)->can_guess);
    generation = path_driver_self(w->paths)->generation;
    assert_int_equal(stun_decode_request(&req, msg, STUN_REQUEST_SIZE), 0);
    len = stun_encode_answer(&req, &mapped, out);
    w->n_self = 0;
    sample_engine_put(&w->engine, &hub, out, len);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->n_self, 1);
    assert_non_null(candidates_find(&path_driver_self(w->paths)->candidates, &mapped));
    assert_true(path_driver_self(w->paths)->generation > generation);
    assert_true(path_driver_self(w->paths)->nat.is_natted);
    /* The same again is no news. */
    sample_engine_put(&w->engine, &hub, out, len);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(w->n_self, 1);
}

/* The round's first pings went before the engine was there; it has more steps. */
static void wait_for_a_ping(struct world *w)
{
    const struct endpoint peer = endpoint("198.51.100.3:51820");

    for (int i = 0; i < 300 && !find_sent(w, &peer, PATH_FRAME_TYPE); i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 10);
    }
    assert_non_null(find_sent(w, &peer, PATH_FRAME_TYPE));
}

static void test_peers(void **state)
{
    struct world *w = *state;
    struct path_view view;
    size_t n;

    begin(w);
    wait_for_a_ping(w);
    assert_true(path_driver_view(w->paths, "n3", &view, clock_now()));
    assert_int_equal(view.kind, PATH_KIND_RELAY);
    assert_false(path_driver_view(w->paths, "n4", &view, clock_now()));
    assert_false(path_driver_view(w->paths, "hub", &view, clock_now()));
    (void)path_driver_routes(w->paths, &n);
    assert_int_equal(n, 0);
    /* No path goes through this process: nothing to be undone at its end. */
    assert_false(path_driver_retreat(w->paths, clock_now()));
}

/* Such an edge is not relayed meanwhile, and both what is the matter and what could be done is
 * said.
 */
static void check_direct_only(const struct world *w)
{
    const struct render_input in = {.snapshot = &w->snapshot};
    const struct reach_facts facts = {.in = &in, .hub_heard = true, .now = clock_now()};
    const struct reach_peer *peer;
    struct reach reach = {0};

    assert_int_equal(reach_update(&reach, &facts, path_driver_view, w->paths), 0);
    peer = reach_find(&reach, "n3");
    assert_non_null(peer);
    assert_int_equal(peer->kind, PATH_KIND_NONE);
    assert_string_equal(peer->why, "the edge is set to direct, and the ways to n3 are being tried; "
                                   "set to auto it is relayed meanwhile");
    reach_deinit(&reach);
}

/* Opens the engine anew, which asks all servers at once. */
static void ask_anew(struct world *w)
{
    path_driver_set_engine(w->paths, NULL, 0, clock_now());
    path_driver_set_engine(w->paths, &w->engine.engine, PORT, clock_now());
}

/* So long the loop would wait, in ms. */
static int loop_waits(struct world *w)
{
    uv_update_time(&w->loop);
    return uv_backend_timeout(&w->loop);
}

/* What loses requests is not told to be as near as it once was. */
static void test_a_server_that_stops_answering(void **state)
{
    struct world *w = *state;
    const struct endpoint hub = endpoint("203.0.113.10:51820");
    const struct endpoint mapped = endpoint("192.0.2.77:4000");
    uint8_t out[STUN_ANSWER_MAX];
    struct stun_request req;

    begin(w);
    assert_int_equal(path_driver_self(w->paths)->n_relays, 1);
    assert_int_equal(path_driver_self(w->paths)->relays[0].rtt, 0);
    assert_int_equal(stun_decode_request(&req, find_sent(w, &hub, 0), STUN_REQUEST_SIZE), 0);
    sample_engine_put(&w->engine, &hub, out, stun_encode_answer(&req, &mapped, out));
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(path_driver_self(w->paths)->relays[0].rtt > 0);
        ask_anew(w);
    }
    assert_int_equal(path_driver_self(w->paths)->relays[0].rtt, 0);
}

static unsigned count_sent(const struct world *w, const struct endpoint *to, uint8_t first)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->engine.n_sent; i++)
        n += endpoint_equal(&w->engine.sent_to[i], to) && w->engine.sent[i][0] == first;
    return n;
}

/* By the loop's clock, while nothing else happens. */
static void test_a_server_is_asked_again(void **state)
{
    struct world *w = *state;
    const struct endpoint hub = endpoint("203.0.113.10:51820");

    w->snapshot.network.topology = TOPOLOGY_HUB;
    begin(w);
    assert_int_equal(count_sent(w, &hub, 0), 1);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_in_range(loop_waits(w), 1, 251);
    for (int i = 0; i < 200 && count_sent(w, &hub, 0) < 2; i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(count_sent(w, &hub, 0), 2);
    /* Where no frame can leave there is nothing to do. */
    path_driver_set_engine(w->paths, NULL, 0, clock_now());
    path_driver_set_udp(w->paths, NSEC_PER_SEC, false, clock_now());
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_int_equal(loop_waits(w), -1);
}

/* While the hub relays nothing a way is looked for more often, here with a peer that has told of no
 * place. */
static void test_a_hub_that_is_not_heard(void **state)
{
    struct world *w = *state;
    struct object o = sample_node(3);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    sample_put(&w->snapshot, o);
    path_driver_set_snapshot(w->paths, &w->snapshot, clock_now());
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_in_range(loop_waits(w), 0, 60001);
    path_driver_set_hub(w->paths, true, clock_now());
    path_driver_set_hub(w->paths, false, clock_now());
    assert_in_range(loop_waits(w), 0, 5001);
}

/* What is said of the pair with n3, so many seconds from now; to be released. */
static json_t *pair_seen_in(struct world *w, nsec_t seconds)
{
    json_t *pairs = path_driver_encode_pairs(w->paths, "n3", clock_now() + seconds * NSEC_PER_SEC);
    json_t *pair = json_incref(json_array_get(pairs, 0));

    assert_int_equal(json_array_size(pairs), 1);
    json_decref(pairs);
    return pair;
}

static json_int_t count_pings(struct world *w)
{
    json_t *pair = pair_seen_in(w, 0);
    json_int_t n = json_integer_value(json_object_get(pair, "pings"));

    json_decref(pair);
    return n;
}

/* One that has not answered yet, and before that was not even asked. */
static void test_what_is_said_of_a_pair_that_is_tried(void **state)
{
    struct world *w = *state;
    json_t *pair, *expected;

    begin(w);
    pair = pair_seen_in(w, 7);
    expected = json_pack("{s:s, s:s, s:b, s:s, s:n, s:f, s:n, s:i, s:i}", "endpoint",
        "198.51.100.3:51820", "type", "reflexive", "ownSocket", 0, "verdict", "untried", "rttMs",
        "loss", 0.0, "triedSecondsAgo", "pings", 0, "pongs", 0);
    assert_true(json_equal(pair, expected));
    json_decref(pair);
    for (int i = 0; i < 300 && count_pings(w) == 0; i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 10);
    }
    pair = pair_seen_in(w, 7);
    (void)json_object_set_new(expected, "verdict", json_string("trying"));
    (void)json_object_set_new(expected, "triedSecondsAgo", json_integer(7));
    (void)json_object_set_new(expected, "pings", json_integer(1));
    assert_true(json_equal(pair, expected));
    json_decref(pair);
    json_decref(expected);
}

/* Whoever has no direct path may be where any hub is, though he is no peer. */
static void test_where_the_engine_may_have_a_node(void **state)
{
    struct world *w = *state;
    const struct endpoint hub = endpoint("203.0.113.10:51820");
    const struct endpoint elsewhere = endpoint("203.0.113.11:51820");
    struct observation ob = {.key = sample_key(1), .endpoint = hub};

    begin(w);
    assert_false(path_driver_may_be_at(w->paths, "n3", &hub));
    path_driver_observe(w->paths, &(struct observe){.items = &ob, .n = 1}, clock_now());
    assert_true(path_driver_may_be_at(w->paths, "n3", &hub));
    assert_true(path_driver_may_be_at(w->paths, "n9", &hub));
    assert_false(path_driver_may_be_at(w->paths, "n3", &elsewhere));
}

/* Nothing of it is left behind. */
static void test_a_machine_without_sockets(void **state)
{
    struct world *w = *state;
    const struct x25519_secret secret = {.b = {[0] = 8, [31] = 64}};
    const struct path_driver_options opt = {
        .secret = &secret, .name = "n2", .interface = "weft-none"};
    const struct path_driver_listener listener = {.ctx = w};
    struct path_driver *d = NULL;
    struct rlimit before, none;
    struct err e = ERR_NULL;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(path_driver_new(&d, &w->loop, &opt, &listener, &e), -EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(
        err_text(&e), "this machine's addresses cannot be watched: Too many open files");
    assert_null(d);
}

static void test_topology_hub_tries_nothing(void **state)
{
    struct world *w = *state;
    const struct endpoint peer = endpoint("198.51.100.3:51820");
    struct path_view view;

    w->snapshot.network.topology = TOPOLOGY_HUB;
    begin(w);
    (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_null(find_sent(w, &peer, PATH_FRAME_TYPE));
    assert_true(path_driver_view(w->paths, "n3", &view, clock_now()));
    assert_int_equal(view.peer.policy, PATH_POLICY_RELAY);
    /* What an edge says of itself comes first. */
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_DIRECT));
    path_driver_set_snapshot(w->paths, &w->snapshot, clock_now());
    assert_true(path_driver_view(w->paths, "n3", &view, clock_now()));
    assert_int_equal(view.peer.policy, PATH_POLICY_DIRECT);
    check_direct_only(w);
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_OFF));
    path_driver_set_snapshot(w->paths, &w->snapshot, clock_now());
    assert_false(path_driver_view(w->paths, "n3", &view, clock_now()));
}

static void test_what_is_reported(void **state)
{
    struct world *w = *state;
    uint64_t generation;
    unsigned n;

    begin(w);
    generation = path_driver_self(w->paths)->generation;
    n = w->n_self;
    path_driver_set_udp(w->paths, 0, true, clock_now());
    assert_true(path_driver_self(w->paths)->nat.is_blocked);
    assert_true(path_driver_self(w->paths)->generation > generation);
    assert_int_equal(w->n_self, n + 1);
    path_driver_set_udp(w->paths, 0, true, clock_now());
    assert_int_equal(w->n_self, n + 1);
    path_driver_set_udp(w->paths, 0, false, clock_now());
    assert_false(path_driver_self(w->paths)->nat.is_blocked);
    assert_int_equal(path_driver_self(w->paths)->keepalive, 0);
    path_driver_set_udp(w->paths, 25 * NSEC_PER_SEC, false, clock_now());
    assert_int_equal(path_driver_self(w->paths)->keepalive, 25 * NSEC_PER_SEC);
    assert_false(path_driver_self(w->paths)->nat.is_blocked);
    assert_int_equal(w->n_self, n + 3);
    path_driver_set_udp(w->paths, 25 * NSEC_PER_SEC, false, clock_now());
    assert_int_equal(w->n_self, n + 3);
}

/* A generation is the wall clock's milliseconds, unless that was set back. */
static void test_generations_grow(void **state)
{
    struct world *w = *state;
    uint64_t now_ms = (uint64_t)(clock_wall() / NSEC_PER_MSEC);

    begin(w);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t before = path_driver_self(w->paths)->generation;

        path_driver_set_udp(w->paths, 0, i % 2 == 0, clock_now());
        assert_true(path_driver_self(w->paths)->generation > before);
    }
    assert_true(path_driver_self(w->paths)->generation >= now_ms);
    assert_true(path_driver_self(w->paths)->generation < now_ms + 60000);
}

/* Node 4 has no agent, and the driver was given no socket for pings. */
static void test_that_nobody_is_pinged_is_said_once(void **state)
{
    struct world *w = *state;
    struct object stock = sample_node(4);
    struct captured_log said = captured_log_begin();

    stock.node.stock = true;
    sample_put(&w->snapshot, stock);
    begin(w);
    path_driver_set_snapshot(w->paths, &w->snapshot, clock_now());
    captured_log_end(&said, "info: test: stock WireGuards are sent at most 1120 bytes: this agent "
                            "cannot ping them, which takes CAP_NET_RAW when it starts\n");
}

static void test_only_the_userspace_engine_pins(void **state)
{
    struct world *w = *state;
    static struct sample_engine kernel;

    assert_false(path_driver_pins(w->paths));
    begin(w);
    assert_true(path_driver_pins(w->paths));
    sample_engine_init(&kernel, ENGINE_KIND_KERNEL);
    path_driver_set_engine(w->paths, &kernel.engine, PORT, clock_now());
    assert_false(path_driver_pins(w->paths));
    path_driver_set_engine(w->paths, NULL, 0, clock_now());
    assert_int_equal(kernel.n_open, 0);
    sample_engine_deinit(&kernel);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_servers_are_asked_and_believed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_topology_hub_tries_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_reported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generations_grow, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_that_nobody_is_pinged_is_said_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_only_the_userspace_engine_pins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_stops_answering, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_is_asked_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_what_is_said_of_a_pair_that_is_tried, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_where_the_engine_may_have_a_node, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_machine_without_sockets, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hub_that_is_not_heard, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
