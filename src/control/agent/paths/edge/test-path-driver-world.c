/*
 * test-path-driver-world.c - the driver among neighbours that answer, in a network of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/path_driver.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/driver_world.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

static bool is_direct(void)
{
    return driver_world_view("n3").kind == PATH_KIND_DIRECT;
}

static bool is_relayed(void)
{
    return driver_world_view("n3").kind == PATH_KIND_RELAY;
}

static bool is_relayed_while_data_flows(void)
{
    driver_world_see((uint64_t)clock_now());
    return is_relayed();
}

static void check_pairs(void)
{
    json_t *pairs = path_driver_encode_pairs(driver_world.driver, "n3", clock_now());
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
    json_t *relays = path_driver_encode_relays(driver_world.driver, "n3");
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
    const struct render_path *route = driver_world_route("n3");

    return route && route->mtu == 1420;
}

static void test_a_direct_path_is_used(void **state)
{
    const struct endpoint elsewhere = driver_world_endpoint("198.51.100.3:4000");
    json_t *none;

    driver_world_begin(state);
    assert_true(is_relayed());
    assert_null(driver_world_route("n3"));
    assert_true(driver_world_run_until(is_direct));
    assert_true(driver_world.n_routes > 0);
    assert_non_null(driver_world_route("n3"));
    assert_true(endpoint_equal(&driver_world_route("n3")->endpoint, &driver_world.at));
    assert_true(path_driver_may_be_at(driver_world.driver, "n3", &driver_world.at));
    assert_false(path_driver_may_be_at(driver_world.driver, "n3", &elsewhere));
    assert_false(path_driver_may_be_at(driver_world.driver, "n4", &driver_world.at));
    check_pairs();
    check_relays("works");
    /* Of who is no peer nothing was tried, and no relay is looked for. */
    assert_null(path_driver_encode_pairs(driver_world.driver, "n9", clock_now()));
    none = path_driver_encode_relays(driver_world.driver, "n9");
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
    none = path_driver_encode_pairs(driver_world.driver, "n4", clock_now());
    assert_int_equal(json_array_size(none), 0);
    json_decref(none);
    /* What the path carries is found by what the peer answers, up to what links here carry. */
    driver_world.n_routes = 0;
    assert_true(driver_world_run_until(is_measured));
    assert_true(driver_world.n_routes > 0);
    assert_false(path_driver_awaits_handshake(driver_world.driver));
    driver_world_end();
}

static bool is_lan(void)
{
    return driver_world_view("n3").kind == PATH_KIND_LAN;
}

static void test_a_path_of_the_same_network_is_used(void **state)
{
    driver_world_begin_on(state, "weft0");
    driver_world.at = driver_world_endpoint("192.168.7.3:51820");
    driver_world_put_peer(0);
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    /* Where this node is it knows by itself. */
    assert_non_null(
        candidates_find(&path_driver_self(driver_world.driver)->candidates, &driver_world.own));
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    assert_true(driver_world_run_until(is_lan));
    assert_non_null(driver_world_route("n3"));
    assert_true(endpoint_equal(&driver_world_route("n3")->endpoint, &driver_world.at));
    driver_world_end();
}

static bool has_small_link(void)
{
    const struct render_path *route = driver_world_route("n3");

    return route && route->mtu == 1280;
}

static void test_the_largest_link_limits_a_path(void **state)
{
    driver_world_begin(state);
    assert_true(driver_world_run_until(is_measured));
    path_driver_set_link_mtu(driver_world.driver, 1280);
    assert_true(driver_world_run_until(has_small_link));
    driver_world_end();
}

/* The operator has the edge relayed: the peer shakes hands there. */
static void test_an_edge_that_is_relayed_again(void **state)
{
    struct x25519_public key;
    const char *node;

    driver_world_begin(state);
    assert_true(driver_world_run_until(is_direct));
    path_driver_on_applied(driver_world.driver);
    assert_false(path_driver_next_handshake(driver_world.driver, &key, &node, clock_now()));
    driver_world.n_routes = 0;
    driver_world.snapshot.network.topology = TOPOLOGY_HUB;
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    assert_true(is_relayed());
    assert_true(driver_world.n_routes > 0);
    assert_true(path_driver_awaits_handshake(driver_world.driver));
    /* At the end of this process nothing waits for its turn. */
    assert_true(path_driver_retreat(driver_world.driver, clock_now()));
    path_driver_on_applied(driver_world.driver);
    assert_true(path_driver_next_handshake(driver_world.driver, &key, &node, clock_now()));
    assert_true(x25519_public_equal(&key, &driver_world.peer_key));
    assert_string_equal(node, "n3");
    assert_false(path_driver_next_handshake(driver_world.driver, &key, &node, clock_now()));
    driver_world_end();
}

static bool is_hub_way_known(void)
{
    return path_driver_hub_mtu(driver_world.driver, &driver_world.hub_key) == 1420;
}

static bool has_hub_been_told(void)
{
    return driver_world.say.size == 1420;
}

static void test_the_way_to_the_hub(void **state)
{
    const struct x25519_public other = sample_key(4);
    nsec_t said_at;

    driver_world_begin(state);
    assert_int_equal(path_driver_hub_mtu(driver_world.driver, &driver_world.hub_key), 0);
    driver_world_see(1000);
    assert_true(driver_world_run_until(is_hub_way_known));
    assert_int_equal(path_driver_hub_mtu(driver_world.driver, &other), 0);
    assert_true(path_driver_may_be_at(driver_world.driver, "n4", &driver_world.hub));
    /* Peers are told. */
    assert_int_equal(path_driver_self(driver_world.driver)->n_relays, 1);
    assert_int_equal(path_driver_self(driver_world.driver)->relays[0].mtu, 1420);
    assert_true(path_driver_self(driver_world.driver)->relays[0].rtt > 0);
    /* Until the hub's clock is known it is not told what was found. */
    assert_int_equal(driver_world.say.size, 0);
    path_driver_set_hub_clock(driver_world.driver, -1000000 * SEC);
    driver_world_see(2000);
    assert_true(driver_world_run_until(has_hub_been_told));
    said_at = (nsec_t)driver_world.say.sequence;
    assert_true(said_at > clock_wall() + 1000000 * SEC - 60 * SEC);
    assert_true(said_at < clock_wall() + 1000000 * SEC + 60 * SEC);
    driver_world_end();
}

static bool is_stock_way_known(void)
{
    const struct render_path *route = driver_world_route("n4");

    return route && route->mtu == 1420;
}

/* Its kernel answers pings, which here is this machine's. */
static void test_the_way_to_a_stock_peer(void **state)
{
    const struct ip_prefix own = netns_prefix("10.42.0.2/32");
    const struct ip_prefix theirs = netns_prefix("10.42.0.4/32");
    struct object stock = sample_node(4);
    struct rtnl_link lo;

    driver_world_begin_on(state, "lo");
    assert_int_equal(rtnl_find_link(driver_world.nl, "lo", &lo), 0);
    assert_int_equal(rtnl_add_address(driver_world.nl, lo.ifindex, &own, true), 0);
    assert_int_equal(rtnl_add_address(driver_world.nl, lo.ifindex, &theirs, true), 0);
    stock.node.stock = true;
    sample_put(&driver_world.snapshot, stock);
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    assert_null(driver_world_route("n4"));
    driver_world_see(1000);
    driver_world.n_routes = 0;
    assert_true(driver_world_run_until(is_stock_way_known));
    assert_true(driver_world.n_routes > 0);
    driver_world_end();
}

/* The engine is to be looked at before the path is given up, and what it was is said. */
static void test_a_path_that_dies(void **state)
{
    struct captured_log said;

    driver_world_begin(state);
    assert_true(driver_world_run_until(is_direct));
    assert_int_equal(driver_world.n_look, 0);
    driver_world.is_peer_deaf = true;
    driver_world.n_routes = driver_world.n_stun = 0;
    said = captured_log_begin();
    assert_true(driver_world_run_until(is_relayed_while_data_flows));
    captured_log_end(&said, "info: test: n3: no answer any more at 198.51.100.3:51820; through "
                            "the relay again\n");
    assert_true(driver_world.n_look > 0);
    assert_true(driver_world.n_routes > 0);
    /* This node's address may be another one by now. */
    assert_int_equal(driver_world.n_stun, 2);
    driver_world_end();
}

static bool is_hub_reported(void)
{
    return path_driver_self(driver_world.driver)->n_relays > 0 &&
           x25519_public_equal(
               &path_driver_self(driver_world.driver)->relays[0].key, &driver_world.hub_key);
}

static bool is_hub_not_reported(void)
{
    driver_world_see(1000 + (uint64_t)clock_now());
    return !is_hub_reported();
}

/* While another relay is there the hub is asked, and left when it does not answer. */
static void test_a_hub_that_does_not_answer(void **state)
{
    struct captured_log said;

    driver_world_begin(state);
    driver_world_put_peer(70);
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    assert_true(driver_world_run_until(is_measured));
    assert_true(is_hub_reported());
    /* Now that n3 is a relay whoever has no path of his own may be there. */
    assert_true(path_driver_may_be_at(driver_world.driver, "n4", &driver_world.at));
    driver_world.is_hub_deaf = true;
    driver_world_see(1000);
    said = captured_log_begin();
    assert_true(driver_world_run_until(is_hub_not_reported));
    captured_log_end(&said,
        "info: test: the hub does not answer by UDP: what it relays goes another way\n"
        "info: test: n4: the relay does not answer any more; through another one\n");
    driver_world.is_hub_deaf = false;
    said = captured_log_begin();
    assert_true(driver_world_run_until(is_hub_reported));
    captured_log_end(&said, "info: test: the hub answers by UDP again\n");
    driver_world_end();
}

static bool has_address_6(void)
{
    const struct endpoint six = driver_world_endpoint("192.0.2.6:51820");

    return candidates_find(&path_driver_self(driver_world.driver)->candidates, &six) != NULL;
}

static bool is_stun_asked(void)
{
    return driver_world.n_stun > 0;
}

static bool were_routes_looked_at(void)
{
    return driver_world.n_routes > 0;
}

static void test_this_machines_network_changes(void **state)
{
    const struct ip_prefix six = netns_prefix("192.0.2.6/24");
    const struct ip_prefix part = netns_prefix("10.42.7.0/24");

    driver_world_begin_on(state, "weft0");
    driver_world.is_peer_deaf = true;
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    driver_world.n_routes = 0;
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    assert_non_null(
        candidates_find(&path_driver_self(driver_world.driver)->candidates, &driver_world.own));
    assert_true(driver_world_run_until(is_stun_asked));
    assert_int_equal(driver_world.n_network, 0);
    assert_int_equal(driver_world.n_routes, 0);
    driver_world.n_stun = driver_world.n_self = 0;
    assert_int_equal(rtnl_add_address(driver_world.nl, driver_world.ifindex, &six, false), 0);
    assert_true(driver_world_run_until(has_address_6));
    assert_int_equal(driver_world.n_network, 1);
    assert_int_equal(driver_world.n_routes, 0);
    driver_world.is_peer_deaf = false;
    assert_true(driver_world.n_self > 0);
    assert_true(driver_world_run_until(is_stun_asked));
    /* Somebody takes a part of the overlay's block: addresses are the same, but the routes have to
     * be mended. */
    assert_true(driver_world_run_until(is_direct));
    driver_world.n_routes = 0;
    assert_int_equal(rtnl_add_route(driver_world.nl, driver_world.ifindex, &part, NULL), 0);
    assert_true(driver_world_run_until(were_routes_looked_at));
    assert_int_equal(driver_world.n_network, 1);
    driver_world_end();
}

static void test_an_engine_that_is_started_anew(void **state)
{
    const struct endpoint other = driver_world_endpoint("192.0.2.5:4000");

    driver_world_begin(state);
    assert_true(driver_world_run_until(is_stun_asked));
    driver_world.n_stun = driver_world.n_self = 0;
    /* It is open already. */
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    driver_world_take_sent();
    assert_int_equal(driver_world.n_stun, 0);
    /* On the same port the servers are asked again, and addresses stay. */
    path_driver_set_engine(driver_world.driver, NULL, 0, clock_now());
    assert_false(path_driver_pins(driver_world.driver));
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    assert_true(path_driver_pins(driver_world.driver));
    driver_world_take_sent();
    assert_int_equal(driver_world.n_stun, 2);
    assert_non_null(
        candidates_find(&path_driver_self(driver_world.driver)->candidates, &driver_world.seen));
    /* On another port what they have told is void. */
    driver_world.is_hub_deaf = true;
    path_driver_set_engine(driver_world.driver, &driver_world.engine.engine, 4000, clock_now());
    assert_null(
        candidates_find(&path_driver_self(driver_world.driver)->candidates, &driver_world.seen));
    assert_non_null(candidates_find(&path_driver_self(driver_world.driver)->candidates, &other));
    assert_null(
        candidates_find(&path_driver_self(driver_world.driver)->candidates, &driver_world.own));
    driver_world_take_sent();
    assert_int_equal(driver_world.n_stun, 4);
    driver_world_end();
}

/* What goes through the hub shakes hands there again, and what is reported names the new one. */
static void test_another_hub_relays(void **state)
{
    struct object other = sample_node(1);
    struct path_relay relay;
    struct ip_addr outside;
    unsigned n_self;

    driver_world_begin(state);
    other.node.key = sample_key(9);
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "hub-b");
    other.node.address4.b[15] = 9;
    sample_put(&driver_world.snapshot, other);
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    assert_true(driver_world_run_until(is_hub_reported));
    outside = path_driver_outside(driver_world.driver, &driver_world.hub);
    assert_true(ip_addr_equal(&outside, &driver_world.seen.addr));
    driver_world_see(1000);
    driver_world.n_routes = 0;
    path_driver_on_hub_forgot(driver_world.driver, clock_now());
    assert_int_equal(driver_world.n_routes, 1);
    assert_true(path_driver_awaits_handshake(driver_world.driver));
    n_self = driver_world.n_self;
    path_driver_use_hub(
        driver_world.driver, snapshot_find_node(&driver_world.snapshot, "hub"), clock_now());
    assert_int_equal(driver_world.n_routes, 1);
    assert_int_equal(driver_world.n_self, n_self);
    path_driver_use_hub(
        driver_world.driver, snapshot_find_node(&driver_world.snapshot, "hub-b"), clock_now());
    assert_int_equal(driver_world.n_routes, 2);
    assert_int_equal(driver_world.n_self, n_self + 1);
    assert_int_equal(path_driver_self(driver_world.driver)->n_relays, 1);
    relay = path_driver_self(driver_world.driver)->relays[0];
    assert_true(x25519_public_equal(&relay.key, &(struct x25519_public){{9, 0, 7}}));
    driver_world_end();
}

static void test_this_node_relays(void **state)
{
    struct captured_log said;
    uint64_t run;
    unsigned n_self;

    driver_world_begin(state);
    assert_int_equal(path_driver_self(driver_world.driver)->relay_run, 0);
    said = captured_log_begin();
    n_self = driver_world.n_self;
    path_driver_set_relay(driver_world.driver, true, false, clock_now());
    run = path_driver_self(driver_world.driver)->relay_run;
    assert_int_not_equal(run, 0);
    assert_int_equal(driver_world.n_self, n_self + 1);
    path_driver_set_relay(driver_world.driver, true, false, clock_now());
    assert_int_equal(driver_world.n_self, n_self + 1);
    assert_int_equal(path_driver_self(driver_world.driver)->relay_run, run);
    /* A new engine has forgotten who may be relayed. */
    path_driver_set_relay(driver_world.driver, true, true, clock_now());
    assert_int_not_equal(path_driver_self(driver_world.driver)->relay_run, run);
    assert_int_not_equal(path_driver_self(driver_world.driver)->relay_run, 0);
    assert_int_equal(driver_world.n_self, n_self + 2);
    path_driver_set_relay(driver_world.driver, false, false, clock_now());
    assert_int_equal(path_driver_self(driver_world.driver)->relay_run, 0);
    assert_int_equal(driver_world.n_self, n_self + 3);
    captured_log_end(&said, "info: test: this node relays for others now\n"
                            "info: test: this node does not relay any more\n");
    driver_world_end();
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
        cmocka_unit_test_setup_teardown(test_a_path_that_dies, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_hub_that_does_not_answer, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_this_machines_network_changes, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_an_engine_that_is_started_anew, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_another_hub_relays, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_this_node_relays, netns_enter, netns_leave),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
