/*
 * test-path-driver-nat.c - the driver behind a NAT: its newest port, sockets that guess, and a
 * router that maps a port. In a network of its own, with neighbours that answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/path_driver.h"
#include "os/clock.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/driver_world.h"
#include "test/support/nat_pmp.h"
#include "test/support/netns.h"
#include "test/support/sample_mesh.h"

static bool is_fresh_port_known(void)
{
    return path_driver_self(driver_world.driver)->nat.last_port == 4900;
}

/* A peer is about to guess the NAT's newest port, so a socket of its own asks for that. */
static void test_the_newest_port_of_a_counting_nat(void **state)
{
    driver_world_begin(state);
    driver_world.is_peer_deaf = true;
    driver_world.seen_step = 3;
    assert_true(driver_world_run_until(is_fresh_port_known));
    assert_int_equal(path_driver_self(driver_world.driver)->nat.mapping, BEHAVIOR_PORT_DEPENDENT);
    assert_int_equal(path_driver_self(driver_world.driver)->nat.port_step, 3);
    /* The servers were asked again as well, from WireGuard's own port. */
    assert_int_equal(driver_world.n_stun, 4);
    driver_world_end();
}

/* ---- sockets beside WireGuard's -------------------------------------------------------------- */

/* Behind a NAT that gives one port to all, and reached at that from the internet. */
static void put_peer_behind_a_plain_nat(void)
{
    struct object o = sample_node(3);

    o.node.key = driver_world.peer_key;
    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    o.node.side->can_guess = true;
    o.node.side->nat =
        (struct behavior){.mapping = BEHAVIOR_ENDPOINT_INDEPENDENT, .is_natted = true};
    assert_true(candidates_add(&o.node.side->candidates, CANDIDATE_REFLEXIVE, &driver_world.at));
    sample_put(&driver_world.snapshot, o);
}

static bool is_direct(void)
{
    return driver_world_view("n3").kind == PATH_KIND_DIRECT;
}

/* The pair that packets go by; to be released. */
static json_t *find_chosen(void)
{
    json_t *pairs = path_driver_encode_pairs(driver_world.driver, "n3", clock_now());
    json_t *found = NULL, *pair;
    size_t i;

    json_array_foreach(pairs, i, pair)
        if (strcmp(json_string_value(json_object_get(pair, "verdict")), "chosen") == 0)
            found = json_incref(pair);
    json_decref(pairs);
    assert_non_null(found);
    return found;
}

/* WireGuard sends to this machine's own end of it; when this process ends the path ends, too. */
static void test_a_path_through_a_socket_of_its_own(void **state)
{
    struct x25519_public key;
    const char *node;
    json_t *chosen;

    driver_world_begin_on(state, "weft0");
    driver_world_open_peer("203.0.113.30:51820");
    put_peer_behind_a_plain_nat();
    driver_world.is_peer_deaf = true;
    driver_world.seen_step = 3;
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    assert_true(driver_world_run_until(is_direct));
    chosen = find_chosen();
    assert_true(json_is_true(json_object_get(chosen, "ownSocket")));
    json_decref(chosen);
    assert_int_equal(driver_world_route("n3")->endpoint.addr.b[12], 127);
    assert_int_not_equal(driver_world_route("n3")->endpoint.port, driver_world.at.port);
    path_driver_on_applied(driver_world.driver);
    driver_world.n_routes = 0;
    assert_true(path_driver_retreat(driver_world.driver, clock_now()));
    assert_int_equal(driver_world.n_routes, 1);
    assert_false(is_direct());
    path_driver_on_applied(driver_world.driver);
    assert_true(path_driver_next_handshake(driver_world.driver, &key, &node, clock_now()));
    assert_string_equal(node, "n3");
    driver_world_end();
}

/* ---- the router ------------------------------------------------------------------------------ */

static struct nat_pmp router;

static bool is_mapping_told(void)
{
    const struct endpoint external = driver_world_endpoint("203.0.113.60:6000");
    const struct candidate *c =
        candidates_find(&path_driver_self(driver_world.driver)->candidates, &external);

    nat_pmp_answer(&router);
    return c && c->kind == CANDIDATE_MAPPED;
}

/* It is given back when the node leaves the network. */
static void test_a_port_that_the_router_maps(void **state)
{
    struct captured_log said;

    driver_world_begin_on(state, "weft0");
    nat_pmp_start(&router, driver_world.nl, driver_world.lo);
    driver_world.snapshot.network.topology = TOPOLOGY_HUB;
    said = captured_log_begin();
    path_driver_set_engine(
        driver_world.driver, &driver_world.engine.engine, DRIVER_WORLD_PORT, clock_now());
    path_driver_set_snapshot(driver_world.driver, &driver_world.snapshot, clock_now());
    driver_world.n_self = 0;
    assert_true(driver_world_run_until(is_mapping_told));
    captured_log_end(
        &said, "info: test: the router has opened 203.0.113.60:6000 for this node (NAT-PMP)\n");
    assert_true(driver_world.n_self > 0);
    assert_int_equal(router.asked, DRIVER_WORLD_PORT);
    assert_true(router.lifetime > 0);
    driver_world.driver = path_driver_free(driver_world.driver, true);
    nat_pmp_answer(&router);
    assert_int_equal(router.lifetime, 0);
    nat_pmp_stop(&router);
    driver_world_end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_the_newest_port_of_a_counting_nat, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(
            test_a_path_through_a_socket_of_its_own, netns_enter, netns_leave),
        cmocka_unit_test_setup_teardown(test_a_port_that_the_router_maps, netns_enter, netns_leave),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
