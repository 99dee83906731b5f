/*
 * test-path-driver.c - the driver with an engine that keeps what is sent: who is asked, what is
 * reported, and what becomes of peers. How paths are found is path/'s, and the world's is
 * test/lab/'s.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <poll.h>
#include <uv.h>

#include "agent/paths/edge/path_driver.h"
#include "agent/paths/edge/reach.h"
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

static void test_peers(void **state)
{
    struct world *w = *state;
    const struct endpoint peer = endpoint("198.51.100.3:51820");
    struct path_view view;
    size_t n;

    begin(w);
    /* The round's first pings went before the engine was there; it has more steps. */
    for (int i = 0; i < 300 && !find_sent(w, &peer, PATH_FRAME_TYPE); i++) {
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 10);
    }
    assert_non_null(find_sent(w, &peer, PATH_FRAME_TYPE));
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
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
