/* test-decide.c - which way an edge goes and why, what is pinned for it, and who may send what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "mesh/render/render.h"
#include "path/path.h"
#include "test/support/sample_mesh.h"

#define HUB_ENDPOINT "203.0.113.10:51820"
#define N3_ENDPOINT  "198.51.100.3:7"

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static struct render_path found_path(const char *node, const char *text)
{
    struct render_path p = {.endpoint = endpoint(text), .keepalive = 25};

    (void)snprintf(p.node, sizeof(p.node), "%s", node);
    return p;
}

static const struct wg_peer *peer(const struct wg_config *c, unsigned n)
{
    struct x25519_public key = sample_key(n);

    return wg_config_find(c, &key);
}

static void check_endpoint(const struct wg_peer *p, const char *text, uint16_t keepalive)
{
    char buf[ENDPOINT_TEXT_MAX];

    assert_non_null(p);
    assert_string_equal(endpoint_format(&p->endpoint, buf), text);
    assert_int_equal(p->keepalive, keepalive);
}

/* Number @n runs an agent, which says where it may be reached. */
static void put_agent(struct snapshot *s, unsigned n)
{
    struct object o = sample_node(n);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    sample_put(s, o);
}

static void check_decision(const struct snapshot *s, const struct render_path *found,
    enum render_route route, const char *why, bool is_open)
{
    struct render_decision d = render_decide(s, snapshot_find_node(s, "n3"), found);

    assert_int_equal(d.route, route);
    assert_string_equal(d.why, why);
    assert_int_equal(d.is_open, is_open);
}

static void test_why_an_edge_is_not_direct(void **state)
{
    struct render_path path = found_path("n3", N3_ENDPOINT);
    struct snapshot s = sample_snapshot(3, 2);
    struct object o;

    check_decision(&s, NULL, RENDER_ROUTE_RELAY,
        "this peer does not say where it may be reached, as a stock WireGuard does not, so the "
        "hub relays: run the weft agent on it",
        false);
    check_decision(&s, &path, RENDER_ROUTE_DIRECT, "", false);
    /* By another node it is relayed as well. */
    (void)snprintf(path.via, sizeof(path.via), "n4");
    put_agent(&s, 3);
    check_decision(&s, &path, RENDER_ROUTE_RELAY, "no direct path has been found yet", true);
    path.via[0] = '\0';
    o = sample_node(3);
    o.node.stock = true;
    sample_put(&s, o);
    check_decision(&s, NULL, RENDER_ROUTE_RELAY,
        "this peer is a stock WireGuard, which looks for no paths, so the hub relays: with the "
        "weft agent it would",
        false);
    s.network.topology = TOPOLOGY_HUB;
    check_decision(&s, &path, RENDER_ROUTE_RELAY,
        "the network's topology is hub, which sends every pair through it; auto would allow "
        "direct paths",
        false);
    /* A node that relays for others is reached directly, and reaches them. */
    for (unsigned n = 2; n <= 3; n++) {
        o = sample_node(n);
        o.node.relay = true;
        sample_put(&s, o);
        check_decision(&s, &path, RENDER_ROUTE_DIRECT, "", false);
        sample_put(&s, sample_node(n));
    }
    sample_put(&s, sample_edge(2, 3, EDGE_PATH_DIRECT));
    check_decision(&s, NULL, RENDER_ROUTE_NONE,
        "the edge is set to direct and no direct path has been found; set it to auto to have "
        "it relayed meanwhile",
        true);
    sample_put(&s, sample_edge(2, 3, EDGE_PATH_RELAY));
    check_decision(&s, &path, RENDER_ROUTE_RELAY, "the edge is set to relay", false);
    sample_put(&s, sample_edge(2, 3, EDGE_PATH_OFF));
    check_decision(&s, &path, RENDER_ROUTE_NONE, "the edge is switched off", false);
    snapshot_deinit(&s);
}

/* Whose key is fixed, and which of the two ends this node is, makes no difference. */
static void test_keys_that_are_fixed(void **state)
{
    for (unsigned self = 2; self <= 3; self++)
        for (unsigned end = 0; end < 2; end++)
            for (unsigned right = 0; right < 2; right++) {
                struct snapshot s = sample_snapshot(3, self);
                const struct node *other = snapshot_find_node(&s, self == 2 ? "n3" : "n2");
                struct object edge = sample_edge(2, 3, EDGE_PATH_RELAY);
                struct render_decision d;

                edge.edge.pins[end].key = right ? sample_key(end + 2) : sample_key(7);
                sample_put(&s, edge);
                d = render_decide(&s, other, NULL);
                assert_string_equal(d.why, right ? "the edge is set to relay" : render_why_key);
                assert_int_equal(d.route, right ? RENDER_ROUTE_RELAY : RENDER_ROUTE_NONE);
                /* An edge that is off is off. */
                edge = sample_edge(2, 3, EDGE_PATH_OFF);
                edge.edge.pins[end].key = sample_key(7);
                sample_put(&s, edge);
                assert_string_equal(render_decide(&s, other, NULL).why, "the edge is switched off");
                snapshot_deinit(&s);
            }
}

/* What is fixed for the other end is where packets go, whatever was found and measured. */
static void test_endpoints_that_are_fixed(void **state)
{
    struct render_path path = found_path("n3", N3_ENDPOINT);
    struct snapshot s = sample_snapshot(3, 2);
    struct render_input in = {.snapshot = &s, .paths = &path, .n_paths = 1, .keepalive = 21};
    struct object edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    struct wg_config c = WG_CONFIG_NULL;

    path.mtu = 1400;
    edge.edge.pins[0].endpoint = endpoint("192.0.2.2:1");
    sample_put(&s, edge);
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 3), N3_ENDPOINT, 25);
    assert_int_equal(peer(&c, 3)->mtu, 1392);
    wg_config_deinit(&c);
    edge = sample_edge(2, 3, EDGE_PATH_AUTO);
    edge.edge.pins[1].endpoint = endpoint("192.0.2.3:1");
    sample_put(&s, edge);
    check_decision(&s, NULL, RENDER_ROUTE_DIRECT, "its endpoint is pinned", false);
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 3), "192.0.2.3:1", 21);
    assert_int_equal(peer(&c, 3)->mtu, RENDER_MTU_SAFE);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* By another relay than the hub; and a path that is a relay's own is kept alive as a hub's is. */
static void test_paths_by_other_relays(void **state)
{
    struct render_path path = found_path("n3", N3_ENDPOINT);
    struct snapshot s = sample_snapshot(3, 2);
    struct render_input in = {.snapshot = &s, .paths = &path, .n_paths = 1, .keepalive = 21};
    struct wg_config c = WG_CONFIG_NULL;

    path.mtu = 1400;
    path.is_standby = true;
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 3), N3_ENDPOINT, 21);
    wg_config_deinit(&c);
    (void)snprintf(path.via, sizeof(path.via), "n4");
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 3), N3_ENDPOINT, 0);
    assert_int_equal(peer(&c, 3)->mtu, 1392);
    wg_config_deinit(&c);
    /* What was found of a direct path does not count where the edge is relayed. */
    path.via[0] = '\0';
    sample_put(&s, sample_edge(2, 3, EDGE_PATH_RELAY));
    assert_int_equal(render_config(&c, &in, NULL), 0);
    check_endpoint(peer(&c, 3), HUB_ENDPOINT, 0);
    assert_int_equal(peer(&c, 3)->mtu, RENDER_MTU_SAFE);
    wg_config_deinit(&c);
    snapshot_deinit(&s);
}

/* An engine that can keeps a peer with an agent where it was put; others move as they like. */
static void test_who_may_move(void **state)
{
    for (unsigned pins = 0; pins < 2; pins++) {
        struct render_path path = found_path("n3", N3_ENDPOINT);
        struct snapshot s = sample_snapshot(5, 2);
        struct render_input in = {
            .snapshot = &s, .paths = &path, .n_paths = 1, .pins = pins, .relays = !pins};
        struct object hub = sample_node(1);
        struct wg_config c = WG_CONFIG_NULL;

        hub.node.side = calloc(1, sizeof(*hub.node.side));
        assert_non_null(hub.node.side);
        sample_put(&s, hub);
        put_agent(&s, 3);
        put_agent(&s, 4);
        assert_int_equal(render_config(&c, &in, NULL), 0);
        assert_int_equal(peer(&c, 1)->pin, PIN_NONE);
        assert_int_equal(peer(&c, 3)->pin, pins ? PIN_FIXED : PIN_NONE);
        assert_int_equal(peer(&c, 4)->pin, pins ? PIN_SESSION : PIN_NONE);
        assert_int_equal(peer(&c, 5)->pin, PIN_NONE);
        assert_false(peer(&c, 1)->is_relayed);
        assert_int_equal(peer(&c, 3)->is_relayed, !pins);
        /* Whoever measures is not asked for less. */
        assert_int_equal(peer(&c, 3)->mss_mtu, 0);
        assert_int_equal(peer(&c, 5)->mss_mtu, RENDER_MTU_SAFE);
        assert_int_equal(peer(&c, 1)->mss_mtu, RENDER_MTU_SAFE);
        wg_config_deinit(&c);
        snapshot_deinit(&s);
    }
}

/* The least and the greatest of all addresses, too. */
static void test_addresses_that_two_nodes_have(void **state)
{
    static const char *const words[] = {
        "two nodes have the address 10.42.0.1", "two nodes have the address fd5a:1::3"};

    for (unsigned i = 0; i < 2; i++) {
        struct snapshot s = sample_snapshot(3, 2);
        struct render_input in = {.snapshot = &s};
        struct wg_config c = WG_CONFIG_NULL;
        struct object o = sample_node(4);
        struct err e = ERR_NULL;

        if (i == 0)
            o.node.address4 = snapshot_find_node(&s, "hub")->address4;
        else
            o.node.address6 = snapshot_find_node(&s, "n3")->address6;
        sample_put(&s, o);
        assert_true(render_config(&c, &in, &e) < 0);
        assert_string_equal(e.text, words[i]);
        snapshot_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_why_an_edge_is_not_direct),
        cmocka_unit_test(test_keys_that_are_fixed),
        cmocka_unit_test(test_endpoints_that_are_fixed),
        cmocka_unit_test(test_paths_by_other_relays),
        cmocka_unit_test(test_who_may_move),
        cmocka_unit_test(test_addresses_that_two_nodes_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
