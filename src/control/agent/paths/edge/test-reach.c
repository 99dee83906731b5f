/* test-reach.c - what is said of a peer: by the rule, and by what was found for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
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

static const char hub_silent[] = "the hub does not answer, and packets to this peer go through it";
static const char not_found[] = "no direct path has been found yet";

/* Without anybody who looks for paths. */
static void test_what_the_rule_says(void **state)
{
    static const struct {
        enum edge_path edge;
        const char *via; /* of the path that was found; NULL: none was */
        bool is_hub_silent;
        const char *stream_why;
        enum path_kind kind;
        const char *relay;
        const char *why;
    } cases[] = {
        {EDGE_PATH_AUTO, NULL, false, NULL, PATH_KIND_RELAY, "hub", not_found},
        {EDGE_PATH_AUTO, NULL, false, "UDP is blocked", PATH_KIND_STREAM, "hub", "UDP is blocked"},
        {EDGE_PATH_AUTO, NULL, true, NULL, PATH_KIND_NONE, "", hub_silent},
        {EDGE_PATH_AUTO, NULL, true, "UDP is blocked", PATH_KIND_NONE, "", hub_silent},
        {EDGE_PATH_RELAY, NULL, false, NULL, PATH_KIND_RELAY, "hub", "the edge is set to relay"},
        /* What another node relays does not go through the hub, whose stream says nothing of it. */
        {EDGE_PATH_AUTO, "n4", false, NULL, PATH_KIND_RELAY, "n4", not_found},
        {EDGE_PATH_AUTO, "n4", false, "UDP is blocked", PATH_KIND_RELAY, "n4", not_found},
        {EDGE_PATH_AUTO, "n4", true, "UDP is blocked", PATH_KIND_RELAY, "n4", not_found},
        {EDGE_PATH_AUTO, "", true, "UDP is blocked", PATH_KIND_DIRECT, "", ""},
        {EDGE_PATH_OFF, NULL, false, NULL, PATH_KIND_NONE, "", "the edge is switched off"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct render_path path = {.node = "n3"};
        const struct reach_peer *peer;

        sample_put(&w->snapshot, sample_edge(2, 3, cases[i].edge));
        assert_int_equal(endpoint_parse(&path.endpoint, "203.0.113.4:51820", NULL), 0);
        (void)snprintf(path.via, sizeof(path.via), "%s", cases[i].via ? cases[i].via : "");
        w->in.paths = &path;
        w->in.n_paths = cases[i].via ? 1 : 0;
        w->facts.hub_heard = !cases[i].is_hub_silent;
        w->facts.stream_why = cases[i].stream_why;
        peer = evaluate(w, NULL);
        assert_int_equal(peer->kind, cases[i].kind);
        assert_string_equal(peer->relay, cases[i].relay);
        assert_string_equal(peer->why, cases[i].why);
        assert_true(endpoint_is_none(&peer->remote) && ip_addr_is_none(&peer->underlay));
        assert_false(peer->is_alarm || peer->is_measured);
    }
}

/* Through the hub that relays for this node, and not just any. */
static void test_which_hub_relays(void **state)
{
    struct world *w = *state;
    struct object other = sample_node(1);

    other.node.key = sample_key(9);
    (void)snprintf(other.node.meta.name, sizeof(other.node.meta.name), "z");
    other.node.address4.b[15] = other.node.address6.b[15] = 9;
    sample_put(&w->snapshot, other);
    assert_string_equal(evaluate(w, NULL)->relay, "hub");
    w->in.relay = "z";
    assert_string_equal(evaluate(w, NULL)->relay, "z");
    assert_int_equal(snapshot_delete(&w->snapshot, &node_kind, "z", NULL), 0);
    assert_int_equal(snapshot_delete(&w->snapshot, &node_kind, "hub", NULL), 0);
    assert_string_equal(evaluate(w, NULL)->relay, "");
}

/* What is found for n3 beside the rule's word for it. */
static void test_what_was_found_and_the_rule(void **state)
{
    static const struct {
        enum edge_path edge;
        bool is_hub_silent;
        const char *stream_why;
        enum path_kind found;
        const char *found_why;
        enum path_kind kind;
        const char *why;
    } cases[] = {
        {EDGE_PATH_AUTO, false, NULL, PATH_KIND_RELAY, "", PATH_KIND_RELAY, not_found},
        {EDGE_PATH_AUTO, false, NULL, PATH_KIND_RELAY, "all ways are shut", PATH_KIND_RELAY,
            "all ways are shut"},
        {EDGE_PATH_AUTO, false, NULL, PATH_KIND_LAN, "", PATH_KIND_LAN, ""},
        {EDGE_PATH_AUTO, false, NULL, PATH_KIND_DIRECT, "", PATH_KIND_DIRECT, ""},
        {EDGE_PATH_AUTO, false, NULL, PATH_KIND_NONE, "no matter", PATH_KIND_RELAY, not_found},
        /* Without the hub nothing is reached through it, whatever was found. */
        {EDGE_PATH_AUTO, true, NULL, PATH_KIND_RELAY, "all ways are shut", PATH_KIND_NONE,
            hub_silent},
        {EDGE_PATH_AUTO, false, "UDP is blocked", PATH_KIND_RELAY, "all ways are shut",
            PATH_KIND_STREAM, "UDP is blocked"},
        {EDGE_PATH_AUTO, false, "UDP is blocked", PATH_KIND_DIRECT, "", PATH_KIND_DIRECT, ""},
        /* Where somebody wants it so the rule says who. */
        {EDGE_PATH_RELAY, false, NULL, PATH_KIND_RELAY, "all ways are shut", PATH_KIND_RELAY,
            "the edge is set to relay"},
        {EDGE_PATH_DIRECT, false, NULL, PATH_KIND_RELAY, "all ways are shut", PATH_KIND_NONE,
            "the edge is set to direct, and all ways are shut; set to auto it is relayed "
            "meanwhile"},
        {EDGE_PATH_DIRECT, false, NULL, PATH_KIND_RELAY, "", PATH_KIND_NONE,
            "the edge is set to direct and no direct path has been found; set it to auto to have "
            "it relayed meanwhile"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct path_view view = {.kind = cases[i].found, .rtt = 7};
        bool is_direct = cases[i].kind == PATH_KIND_LAN || cases[i].kind == PATH_KIND_DIRECT;
        const struct reach_peer *peer;

        sample_put(&w->snapshot, sample_edge(2, 3, cases[i].edge));
        assert_int_equal(endpoint_parse(&view.remote, "203.0.113.4:51820", NULL), 0);
        (void)snprintf(view.why, sizeof(view.why), "%s", cases[i].found_why);
        w->facts.hub_heard = !cases[i].is_hub_silent;
        w->facts.stream_why = cases[i].stream_why;
        peer = evaluate(w, &view);
        assert_int_equal(peer->kind, cases[i].kind);
        assert_string_equal(peer->why, cases[i].why);
        assert_int_equal(
            peer->is_measured, cases[i].edge != EDGE_PATH_RELAY && cases[i].kind != PATH_KIND_NONE);
        assert_int_equal(peer->has_loss, is_direct && cases[i].edge != EDGE_PATH_RELAY);
        assert_true(endpoint_is_none(&peer->remote));
        assert_int_equal(ip_addr_equal(&peer->underlay, &view.remote.addr), is_direct);
    }
}

static bool find_nothing(const void *ctx, const char *node, struct path_view *ret, nsec_t now)
{
    *ret = (struct path_view){.kind = PATH_KIND_DIRECT, .rtt = 7, .is_alarm = true};
    return false;
}

static void test_a_node_for_which_nothing_is_looked_for(void **state)
{
    struct world *w = *state;
    const struct reach_peer *peer;

    assert_int_equal(reach_update(&w->reach, &w->facts, find_nothing, NULL), 0);
    peer = reach_find(&w->reach, "n3");
    assert_int_equal(peer->kind, PATH_KIND_RELAY);
    assert_false(peer->is_alarm || peer->is_measured);
}

/* A path that render was given is looked after by who has found it. */
static void test_a_direct_path_is_measured(void **state)
{
    struct render_path path = {.node = "n3"};
    struct path_view view = {.kind = PATH_KIND_DIRECT, .rtt = 7};
    struct world *w = *state;

    w->in.paths = &path;
    w->in.n_paths = 1;
    assert_int_equal(endpoint_parse(&path.endpoint, "203.0.113.4:51820", NULL), 0);
    assert_true(evaluate(w, &view)->is_measured);
    view.rtt = 0;
    assert_false(evaluate(w, &view)->is_measured);
}

static void test_several_peers(void **state)
{
    static const char *const names[] = {"n3", "n4", "n5"};
    struct world *w = *state;
    struct path_view view = {.kind = PATH_KIND_LAN, .is_alarm = true};

    assert_null(reach_find(&w->reach, "n3"));
    for (unsigned n = 4; n <= 5; n++)
        sample_put(&w->snapshot, sample_node(n));
    assert_int_equal(reach_update(&w->reach, &w->facts, find_view, &view), 0);
    assert_int_equal(w->reach.n, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_ptr_equal(reach_find(&w->reach, names[i]), &w->reach.items[i]);
        assert_string_equal(w->reach.items[i].node, names[i]);
        assert_int_equal(w->reach.items[i].since, T0);
    }
    /* The two others look for no paths themselves. */
    assert_int_equal(w->reach.n_alarms, 1);
    assert_int_equal(w->reach.items[1].kind, PATH_KIND_RELAY);
    reach_deinit(&w->reach);
    assert_int_equal(w->reach.n, 0);
    assert_null(reach_find(&w->reach, "n3"));
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

static void test_alarms_are_counted(void **state)
{
    struct world *w = *state;
    struct path_view view = {.kind = PATH_KIND_RELAY, .is_alarm = true};
    struct render_path path = {.node = "n3"};
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
    assert_int_equal(w->reach.n_alarms, 1);
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_AUTO));
    assert_true(evaluate(w, NULL)->is_alarm);
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_RELAY));
    assert_false(evaluate(w, NULL)->is_alarm);
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_AUTO));
    w->snapshot.network.topology = TOPOLOGY_AUTO;
    assert_false(evaluate(w, NULL)->is_alarm);
    w->snapshot.network.topology = TOPOLOGY_MESH;
    /* What is reached directly all the same, or says its place, is none. */
    w->in.paths = &path;
    w->in.n_paths = 1;
    assert_int_equal(endpoint_parse(&path.endpoint, "203.0.113.4:51820", NULL), 0);
    assert_false(evaluate(w, NULL)->is_alarm);
    w->in.n_paths = 0;
    find_paths(&w->snapshot);
    assert_false(evaluate(w, NULL)->is_alarm);
    /* One that has no agent never says one, which is no alarm for ever. */
    stock = sample_node(3);
    stock.node.stock = true;
    sample_put(&w->snapshot, stock);
    assert_false(evaluate(w, NULL)->is_alarm);
}

/* What the engine has of n3: a handshake @age ago, and what was sent for @unanswered has had no
 * answer, of @sent bytes. */
static struct observation seen_n3(nsec_t age, nsec_t unanswered, uint64_t sent)
{
    return (struct observation){.key = sample_key(3),
        .facts = {.tx_bytes = 1000 + sent},
        .handshake_at = T0 - age,
        .unanswered_since = unanswered ? T0 - unanswered : 0,
        .unanswered_from = 1000,
        .keepalive = 25};
}

/* A peer that does not answer has no round trip time and no loss, however it was reached. */
static void test_a_peer_that_is_dead(void **state)
{
    static const struct {
        enum path_kind kind;
        nsec_t age;
        nsec_t unanswered;
        uint64_t sent;
        nsec_t died; /* its direct path, so long ago; 0: it did not */
        bool is_silent;
        bool is_measured;
    } cases[] = {
        {PATH_KIND_RELAY, 60 * SEC, 0, 0, 0, false, true},
        {PATH_KIND_RELAY, 60 * SEC, 24 * SEC, 5000, 0, false, true},
        {PATH_KIND_RELAY, 60 * SEC, 25 * SEC, 5000, 0, true, false},
        {PATH_KIND_DIRECT, 60 * SEC, 25 * SEC, 5000, 0, true, false},
        /* Keepalives are not answered. */
        {PATH_KIND_RELAY, 60 * SEC, 100 * SEC, 5 * 32, 0, false, true},
        {PATH_KIND_RELAY, 60 * SEC, 100 * SEC, 6 * 32 + 1, 0, true, false},
        /* What a dead path has left behind is known sooner. */
        {PATH_KIND_RELAY, 60 * SEC, 10 * SEC, 5000, 11 * SEC, true, false},
        {PATH_KIND_RELAY, 60 * SEC, 10 * SEC, 5000, 9 * SEC, false, true},
        /* One to which nothing was sent for long may well be there. */
        {PATH_KIND_RELAY, 180 * SEC, 0, 0, 0, false, true},
        {PATH_KIND_DIRECT, 180 * SEC, 0, 0, 0, false, true},
    };
    static struct render_path path = {.node = "n3"};
    struct world *w = *state;

    assert_int_equal(endpoint_parse(&path.endpoint, "203.0.113.4:51820", NULL), 0);
    w->in.paths = &path;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct observation ob = seen_n3(cases[i].age, cases[i].unanswered, cases[i].sent);
        struct observe seen = {.items = &ob, .n = 1};
        struct path_view view = {.kind = cases[i].kind, .rtt = 7};
        const struct reach_peer *peer;

        view.died_at = cases[i].died ? T0 - cases[i].died : 0;
        w->in.n_paths = cases[i].kind == PATH_KIND_DIRECT ? 1 : 0;
        w->facts.seen = &seen;
        peer = evaluate(w, &view);
        w->facts.seen = NULL;
        assert_int_equal(peer->kind, cases[i].kind);
        assert_true(peer->silent_since == (cases[i].is_silent ? T0 - cases[i].unanswered : 0));
        assert_int_equal(peer->is_measured, cases[i].is_measured);
        assert_int_equal(peer->has_loss, cases[i].is_measured && cases[i].kind == PATH_KIND_DIRECT);
    }
}

/* A pair that is set to relay, or better off there, has not fallen back. */
static void test_who_has_fallen_back(void **state)
{
    struct path_view view = {.kind = PATH_KIND_RELAY, .rtt = 7, .died_at = T0 - SEC};
    static struct render_path path = {.node = "n3"};
    struct world *w = *state;

    assert_true(evaluate(w, &view)->fell_back_at == T0 - SEC);
    view.is_better = true;
    assert_true(evaluate(w, &view)->fell_back_at == 0);
    view.is_better = false;
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_RELAY));
    assert_true(evaluate(w, &view)->fell_back_at == 0);
    sample_put(&w->snapshot, sample_edge(2, 3, EDGE_PATH_AUTO));
    view.kind = PATH_KIND_DIRECT;
    w->in.paths = &path;
    w->in.n_paths = 1;
    assert_int_equal(endpoint_parse(&path.endpoint, "203.0.113.4:51820", NULL), 0);
    assert_true(evaluate(w, &view)->fell_back_at == 0);
}

static void test_who_waits_for_the_hub(void **state)
{
    struct path_view view = {.kind = PATH_KIND_RELAY, .rtt = 7};
    struct world *w = *state;

    assert_false(evaluate(w, &view)->awaits_hub);
    w->facts.hub_heard = false;
    assert_true(evaluate(w, &view)->awaits_hub);
    assert_false(evaluate(w, &view)->is_measured);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_the_rule_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_which_hub_relays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_found_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_found_and_the_rule, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_a_node_for_which_nothing_is_looked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_direct_path_is_measured, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_several_peers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_since, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_alarms_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_peer_that_is_dead, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_has_fallen_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_waits_for_the_hub, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
