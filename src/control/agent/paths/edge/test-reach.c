/* test-reach.c - what is said of a peer: by the rule, and by what was found for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/reach.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define T0  (1000 * SEC)

struct world {
    struct snapshot snapshot;
    struct render_input in;
    struct reach_facts facts;
    struct reach reach;
};

/* Node 3 looks for paths, too. */
static void find_paths(struct snapshot *s)
{
    struct object o = sample_node(3);

    o.node.side = calloc(1, sizeof(*o.node.side));
    assert_non_null(o.node.side);
    o.node.side->generation = 1;
    sample_put(s, o);
}

static int set_up(void **state)
{
    static struct world w;

    w = (struct world){.snapshot = sample_snapshot(3, 2), .reach = {0}};
    find_paths(&w.snapshot);
    w.in = (struct render_input){.snapshot = &w.snapshot};
    w.facts = (struct reach_facts){.in = &w.in, .hub_heard = true, .now = T0};
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    reach_deinit(&w->reach);
    snapshot_deinit(&w->snapshot);
    return 0;
}

static bool find_view(const void *ctx, const char *node, struct path_view *ret, nsec_t now)
{
    const struct path_view *view = ctx;

    *ret = *view;
    return true;
}

/* What is said of n3, when that was found for it. */
static const struct reach_peer *evaluate(struct world *w, const struct path_view *view)
{
    assert_int_equal(reach_update(&w->reach, &w->facts, view ? find_view : NULL, view), 0);
    assert_int_equal(w->reach.n, 1);
    assert_null(reach_find(&w->reach, "hub"));
    return reach_find(&w->reach, "n3");
}

static void test_what_was_found_counts(void **state)
{
    struct world *w = *state;
    struct path_view view = {
        .kind = PATH_KIND_DIRECT, .rtt = 7, .least_rtt = 5, .loss_permille = 3};
    const struct reach_peer *peer = evaluate(w, NULL);

    assert_int_equal(peer->kind, PATH_KIND_RELAY);
    assert_string_equal(peer->relay, "hub");
    assert_false(peer->is_measured);
    peer = evaluate(w, &view);
    assert_int_equal(peer->kind, PATH_KIND_DIRECT);
    assert_string_equal(peer->relay, "");
    assert_true(peer->is_measured);
    assert_int_equal(peer->rtt, 7);
    assert_int_equal(peer->least_rtt, 5);
    assert_int_equal(peer->loss_permille, 3);
    assert_true(endpoint_is_none(&peer->remote));
    /* Through a socket beside WireGuard's the engine does not know where the peer is. */
    view.socket = 9;
    view.remote.port = 4000;
    assert_int_equal(evaluate(w, &view)->remote.port, 4000);
}

static void test_since(void **state)
{
    struct world *w = *state;
    struct path_view view = {.kind = PATH_KIND_DIRECT};

    assert_int_equal(evaluate(w, &view)->since, T0);
    w->facts.now += SEC;
    assert_int_equal(evaluate(w, &view)->since, T0);
    view.kind = PATH_KIND_LAN;
    assert_int_equal(evaluate(w, &view)->since, T0 + SEC);
}

static void test_the_hub_and_its_stream(void **state)
{
    struct world *w = *state;
    struct path_view view = {.kind = PATH_KIND_RELAY, .why = "no way was found"};

    assert_string_equal(evaluate(w, &view)->why, "no way was found");
    w->facts.stream_why = "UDP is blocked";
    assert_int_equal(evaluate(w, &view)->kind, PATH_KIND_STREAM);
    assert_string_equal(evaluate(w, &view)->why, "UDP is blocked");
    w->facts.hub_heard = false;
    assert_int_equal(evaluate(w, NULL)->kind, PATH_KIND_NONE);
}

/* What another node relays does not go through the hub, whose stream says nothing of it. */
static void test_another_relay(void **state)
{
    struct render_path path = {.node = "n3", .via = "n4"};
    struct world *w = *state;
    const struct reach_peer *peer;

    w->in.paths = &path;
    w->in.n_paths = 1;
    assert_int_equal(endpoint_parse(&path.endpoint, "203.0.113.4:51820", NULL), 0);
    peer = evaluate(w, NULL);
    assert_int_equal(peer->kind, PATH_KIND_RELAY);
    assert_string_equal(peer->relay, "n4");
    w->facts.stream_why = "UDP is blocked";
    peer = evaluate(w, NULL);
    assert_int_equal(peer->kind, PATH_KIND_RELAY);
    assert_string_not_equal(peer->why, "UDP is blocked");
    w->facts.hub_heard = false;
    peer = evaluate(w, NULL);
    assert_int_equal(peer->kind, PATH_KIND_RELAY);
    assert_null(strstr(peer->why, "the hub does not answer"));
}

static void test_alarms_are_counted(void **state)
{
    struct world *w = *state;
    struct path_view view = {.kind = PATH_KIND_RELAY, .is_alarm = true};
    struct object stock;

    (void)evaluate(w, &view);
    assert_int_equal(w->reach.n_alarms, 1);
    view.is_alarm = false;
    (void)evaluate(w, &view);
    assert_int_equal(w->reach.n_alarms, 0);
    /* In a mesh a peer that says no place of its own is relayed. */
    sample_put(&w->snapshot, sample_node(3));
    w->snapshot.network.topology = TOPOLOGY_MESH;
    assert_true(evaluate(w, NULL)->is_alarm);
    /* One that has no agent never says one, which is no alarm for ever. */
    stock = sample_node(3);
    stock.node.stock = true;
    sample_put(&w->snapshot, stock);
    assert_false(evaluate(w, NULL)->is_alarm);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_was_found_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_since, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_hub_and_its_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_relay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_alarms_are_counted, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
