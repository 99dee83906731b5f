/* test-peer-table.c - what a snapshot makes of the table, and what it says is new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/peer_table.h"
#include "test/support/sample_mesh.h"

#define SELF 2

/* Node @n finds paths; @run: as a relay, 0: it is none. */
static void put_peer(struct snapshot *s, unsigned n, uint64_t generation, uint64_t run)
{
    struct object o = sample_node(n);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = generation;
    o.node.side->relay_run = run;
    o.node.relay = run != 0;
    sample_put(s, o);
}

static int set_up(void **state)
{
    static struct snapshot s;

    s = sample_snapshot(5, SELF);
    put_peer(&s, 3, 1, 0);
    put_peer(&s, 4, 1, 0);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    snapshot_deinit(*state);
    return 0;
}

static void test_who_is_in_it(void **state)
{
    struct peer_table t = {0};
    struct snapshot *s = *state;
    struct x25519_public key = sample_key(4);

    /* Neither the hub, nor this node, nor n5, which reports nothing. */
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.n, 2);
    assert_string_equal(t.items[0].node, "n3");
    assert_ptr_equal(peer_table_find(&t, "n4"), &t.items[1]);
    assert_ptr_equal(peer_table_find_key(&t, &key), &t.items[1]);
    assert_null(peer_table_find(&t, "n5"));
    assert_null(peer_table_find(&t, "hub"));
    sample_put(s, sample_edge(SELF, 3, EDGE_PATH_OFF));
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.n_gone, 1);
    assert_string_equal(t.gone[0].node, "n3");
    peer_table_deinit(&t);
    assert_int_equal(t.n + t.n_gone, 0);
    assert_null(peer_table_find(&t, "n4"));
    peer_table_deinit(&t);
}

/* The last of several is found missing, too, whoever has come meanwhile. */
static void test_who_has_gone(void **state)
{
    struct peer_table t = {0};
    struct snapshot *s = *state;

    assert_int_equal(peer_table_take(&t, s), 0);
    put_peer(s, 5, 1, 0);
    sample_put(s, sample_node(3));
    sample_put(s, sample_node(4));
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.n, 1);
    assert_string_equal(t.items[0].node, "n5");
    assert_int_equal(t.n_gone, 2);
    assert_string_equal(t.gone[0].node, "n3");
    assert_string_equal(t.gone[1].node, "n4");
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.n_gone, 0);
    peer_table_deinit(&t);
}

/* With a pinned endpoint there is no path to find, but with a pinned key there is. */
static void test_edges_that_pin(void **state)
{
    struct peer_table t = {0};
    struct snapshot *s = *state;
    struct object edge = sample_edge(SELF, 3, EDGE_PATH_AUTO);

    edge.edge.pins[1].key = sample_key(3);
    assert_int_equal(endpoint_parse(&edge.edge.pins[0].endpoint, "192.0.2.7:4000", NULL), 0);
    sample_put(s, edge);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_non_null(peer_table_find(&t, "n3"));
    edge.edge.pins[1].endpoint = edge.edge.pins[0].endpoint;
    sample_put(s, edge);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_null(peer_table_find(&t, "n3"));
    assert_non_null(peer_table_find(&t, "n4"));
    peer_table_deinit(&t);
}

/* In the hub topology one end that relays is enough for a path. */
static void test_a_relay_in_the_hub_topology(void **state)
{
    struct peer_table t = {0};
    struct snapshot *s = *state;

    s->network.topology = TOPOLOGY_HUB;
    put_peer(s, SELF, 1, 7);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.items[0].policy, PATH_POLICY_AUTO);
    peer_table_deinit(&t);
}

/* Both the hub has to admit it, and it has to run one. */
static void test_who_is_a_relay(void **state)
{
    static const struct {
        bool is_admitted;
        uint64_t run;
        bool is_relay, is_restarted;
    } steps[] = {
        {false, 0, false, false},
        {true, 0, false, false},
        {false, 7, false, false},
        {true, 7, true, false},
        {true, 7, true, false},
        {true, 8, true, true},
        {false, 9, false, false},
        {true, 9, true, false},
        {true, 0, false, false},
        {true, 9, true, false},
    };
    struct peer_table t = {0};
    struct snapshot *s = *state;
    bool was_relay = false;

    assert_int_equal(peer_table_take(&t, s), 0);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct object o = sample_node(3);
        const struct peer_entry *peer;

        o.node.relay = steps[i].is_admitted;
        o.node.side = calloc(1, sizeof(*o.node.side));
        assert_non_null(o.node.side);
        *o.node.side = (struct path_side){.generation = 1, .relay_run = steps[i].run};
        sample_put(s, o);
        assert_int_equal(peer_table_take(&t, s), 0);
        peer = peer_table_find(&t, "n3");
        assert_int_equal(peer->is_relay, steps[i].is_relay);
        assert_int_equal(peer->relay_run, steps[i].run);
        assert_int_equal(peer->changes.is_restarted, steps[i].is_restarted);
        assert_int_equal(peer->changes.is_relaying, steps[i].is_relay != was_relay);
        assert_int_equal(peer->changes.is_put, steps[i].is_relay != was_relay);
        was_relay = steps[i].is_relay;
    }
    peer_table_deinit(&t);
}

static void test_policies(void **state)
{
    static const struct {
        enum topology topology;
        enum edge_path edge; /* EDGE_PATH_N: nobody said anything about it */
        bool is_relay;
        enum path_policy policy;
    } cases[] = {
        {TOPOLOGY_AUTO, EDGE_PATH_N, false, PATH_POLICY_AUTO},
        {TOPOLOGY_AUTO, EDGE_PATH_RELAY, false, PATH_POLICY_RELAY},
        {TOPOLOGY_MESH, EDGE_PATH_AUTO, false, PATH_POLICY_DIRECT},
        {TOPOLOGY_MESH, EDGE_PATH_N, false, PATH_POLICY_DIRECT},
        {TOPOLOGY_MESH, EDGE_PATH_RELAY, false, PATH_POLICY_RELAY},
        {TOPOLOGY_HUB, EDGE_PATH_N, false, PATH_POLICY_RELAY},
        {TOPOLOGY_HUB, EDGE_PATH_N, true, PATH_POLICY_AUTO},
        {TOPOLOGY_HUB, EDGE_PATH_DIRECT, false, PATH_POLICY_DIRECT},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct snapshot s = sample_snapshot(3, SELF);
        struct peer_table t = {0};

        s.network.topology = cases[i].topology;
        put_peer(&s, 3, 1, cases[i].is_relay ? 9 : 0);
        if (cases[i].edge != EDGE_PATH_N)
            sample_put(&s, sample_edge(SELF, 3, cases[i].edge));
        assert_int_equal(peer_table_take(&t, &s), 0);
        assert_int_equal(t.items[0].policy, cases[i].policy);
        peer_table_deinit(&t);
        snapshot_deinit(&s);
    }
}

static void assert_changes(const struct peer_table *t, bool put, bool side, bool run, bool relaying)
{
    const struct peer_changes *changes = &peer_table_find(t, "n3")->changes;

    assert_int_equal(changes->is_put, put);
    assert_int_equal(changes->is_side, side);
    assert_int_equal(changes->is_restarted, run);
    assert_int_equal(changes->is_relaying, relaying);
}

static void test_changes(void **state)
{
    struct peer_table t = {0};
    struct snapshot *s = *state;

    assert_int_equal(peer_table_take(&t, s), 0);
    assert_changes(&t, true, true, false, false);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_changes(&t, false, false, false, false);
    put_peer(s, 3, 2, 77);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_changes(&t, true, true, false, true);
    put_peer(s, 3, 2, 78);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_changes(&t, false, false, true, false);
    /* What paths did not take is said once more. */
    peer_table_find(&t, "n3")->policy = PATH_POLICY_N;
    peer_table_find(&t, "n3")->generation = 0;
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_changes(&t, true, true, false, false);
    peer_table_deinit(&t);
}

static void test_what_is_kept_of_a_peer(void **state)
{
    struct peer_table t = {0};
    struct snapshot *s = *state;
    struct object other = sample_node(3);

    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.items[0].handshake.due_at, NSEC_NEVER);
    t.items[0].has_session = true;
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_true(t.items[0].has_session);
    assert_int_equal(t.n_gone, 0);
    /* One of the same name with another key is another node. */
    other.node.key = sample_key(9);
    other.node.side = calloc(1, sizeof(*other.node.side));
    assert_non_null(other.node.side);
    sample_put(s, other);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_false(t.items[0].has_session);
    assert_int_equal(t.n_gone, 1);
    assert_true(t.gone[0].has_session);
    peer_table_deinit(&t);
}

/* n3 has key @key, and @other as well; 0: it has one. */
static void put_keys(struct snapshot *s, unsigned key, unsigned other)
{
    struct object o = sample_node(3);

    o.node.key = sample_key(key);
    o.node.side = calloc(1, sizeof(*o.node.side));
    o.node.keys = calloc(1, sizeof(*o.node.keys));
    assert_true(o.node.side && o.node.keys);
    if (other != 0)
        o.node.keys->other = sample_key(other);
    sample_put(s, o);
}

/* From one key to the next, back, on again, and to the end of it. */
static void test_a_peer_that_changes_its_key(void **state)
{
    static const struct {
        unsigned key, other;
        bool is_rekeyed;
    } steps[] = {{3, 0, false}, {3, 20, true}, {3, 20, false}, {20, 3, true}, {3, 20, true},
        {20, 0, true}, {20, 0, false}, {20, 21, true}, {21, 0, true}};
    struct peer_table t = {0};
    struct snapshot *s = *state;

    assert_int_equal(peer_table_take(&t, s), 0);
    assert_true(t.items[0].changes.is_new);
    t.items[0].has_session = true;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct x25519_public was = t.items[0].key;
        struct x25519_public key = sample_key(steps[i].key);

        put_keys(s, steps[i].key, steps[i].other);
        assert_int_equal(peer_table_take(&t, s), 0);
        assert_int_equal(t.n_gone, 0);
        assert_true(t.items[0].has_session);
        assert_true(x25519_public_equal(&t.items[0].key, &key));
        assert_true(x25519_public_equal(&t.items[0].changes.was, &was));
        assert_int_equal(t.items[0].changes.is_rekeyed, steps[i].is_rekeyed);
        assert_false(t.items[0].changes.is_new);
    }
    put_keys(s, 3, 0);
    assert_int_equal(peer_table_take(&t, s), 0);
    assert_int_equal(t.n_gone, 1);
    assert_false(t.items[0].has_session);
    peer_table_deinit(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_is_in_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_has_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_edges_that_pin, set_up, tear_down),
        cmocka_unit_test(test_policies),
        cmocka_unit_test_setup_teardown(test_a_relay_in_the_hub_topology, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_is_a_relay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_kept_of_a_peer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_peer_that_changes_its_key, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
