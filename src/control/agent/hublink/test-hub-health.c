/* test-hub-health.c - is the hub heard, where is it looked for, and who is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/hublink/hub_health.h"
#include "agent/reconcile/observe.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC

/* A hub with two public endpoints, and a node with a clock of its own. */
struct world {
    struct hub_health health;
    struct hub_health_facts facts;
    struct observation seen;
    struct snapshot snapshot;
    struct node hub;
    struct node_hub places;
    bool has_route;
};

static bool has_route(void *ctx, const struct ip_addr *to)
{
    const struct world *w = ctx;

    return w->has_route;
}

static struct endpoint endpoint(const char *text)
{
    struct endpoint ep;

    assert_int_equal(endpoint_parse(&ep, text, NULL), 0);
    return ep;
}

static struct world *make_world(void)
{
    static struct world w;

    w = (struct world){.snapshot = sample_snapshot(3, 2), .has_route = true};
    w.places = (struct node_hub){
        .endpoints = {endpoint("192.0.2.1:51820"), endpoint("192.0.2.2:51820")}, .n_endpoints = 2};
    w.hub = *snapshot_find_node(&w.snapshot, "hub");
    w.hub.hub = &w.places;
    w.facts = (struct hub_health_facts){.now = 1000 * SEC,
        .has_engine = true,
        .hub = &w.hub,
        .network = &w.snapshot.network,
        .seen = &w.seen,
        .has_route = has_route,
        .has_route_ctx = &w};
    return &w;
}

static void end_world(struct world *w)
{
    hub_endpoints_deinit(&w->health.endpoints);
    snapshot_deinit(&w->snapshot);
}

static struct hub_health_actions poll_at(struct world *w, nsec_t now)
{
    w->facts.now = now;
    return hub_health_poll(&w->health, &w->facts);
}

/* A handshake at @at; whatever was sent is answered. */
static void shake_hands(struct world *w, nsec_t at)
{
    w->seen.handshake_at = at;
    w->seen.unanswered_since = 0;
}

static void assert_at(const struct world *w, const char *wanted)
{
    char text[ENDPOINT_TEXT_MAX];

    assert_string_equal(endpoint_format(&w->health.path.path.endpoint, text), wanted);
}

static void test_first_endpoint_is_no_move(void **state)
{
    struct world *w = make_world();
    struct hub_health_actions actions = poll_at(w, 1000 * SEC);

    assert_true(actions.reconcile);
    assert_null(actions.moved_because);
    assert_int_equal(actions.link, HUB_HEALTH_LINK_KEEP);
    assert_false(hub_health_take_handshake(&w->health));
    assert_at(w, "192.0.2.1:51820");
    end_world(w);
}

static void test_handshake_proves_that_the_hub_is_there(void **state)
{
    struct world *w = make_world();

    (void)poll_at(w, 1000 * SEC);
    assert_int_equal(w->health.silent_since, 1000 * SEC);
    shake_hands(w, 1001 * SEC);
    assert_int_equal(poll_at(w, 1001 * SEC).link, HUB_HEALTH_LINK_POKE);
    assert_int_equal(w->health.silent_since, 0);
    assert_int_equal(poll_at(w, 1002 * SEC).link, HUB_HEALTH_LINK_KEEP);
    /* A session is renewed after two minutes; one that is renewed earlier was lost. */
    shake_hands(w, 1121 * SEC);
    assert_int_equal(poll_at(w, 1121 * SEC).link, HUB_HEALTH_LINK_POKE);
    shake_hands(w, 1131 * SEC);
    assert_int_equal(poll_at(w, 1131 * SEC).link, HUB_HEALTH_LINK_RESTART);
    end_world(w);
}

static void test_unanswered_is_silent_after_six_seconds(void **state)
{
    struct world *w = make_world();

    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1000 * SEC);
    w->seen.unanswered_since = 1010 * SEC;
    (void)poll_at(w, 1015 * SEC);
    assert_int_equal(w->health.silent_since, 0);
    (void)poll_at(w, 1016 * SEC);
    assert_int_equal(w->health.silent_since, 1010 * SEC);
    /* Without an engine nothing was sent, so nobody is silent. */
    w->facts.has_engine = false;
    (void)poll_at(w, 1017 * SEC);
    assert_int_equal(w->health.silent_since, 0);
    w->facts.has_engine = true;
    /* A session that has ended does not say since when the hub is silent. */
    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1300 * SEC);
    assert_int_equal(w->health.silent_since, 1300 * SEC);
    (void)poll_at(w, 1301 * SEC);
    assert_int_equal(w->health.silent_since, 1300 * SEC);
    end_world(w);
}

static void test_silent_hub_is_looked_for_elsewhere(void **state)
{
    struct world *w = make_world();
    struct hub_health_actions actions;

    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1000 * SEC);
    w->seen.unanswered_since = 1010 * SEC;
    actions = poll_at(w, 1039 * SEC);
    assert_false(actions.reconcile);
    actions = poll_at(w, 1040 * SEC);
    assert_true(actions.reconcile);
    assert_string_equal(actions.moved_because, "no answer from the hub");
    assert_at(w, "192.0.2.2:51820");
    assert_true(hub_health_take_handshake(&w->health));
    assert_false(hub_health_take_handshake(&w->health));
    /* The stream of events went to the old place: it is opened again, however old the session. */
    shake_hands(w, 1200 * SEC);
    assert_int_equal(poll_at(w, 1200 * SEC).link, HUB_HEALTH_LINK_RESTART);
    end_world(w);
}

/* What goes through the stream in TLS goes on there: the hub has nothing to learn. */
static void test_by_stream_nobody_is_greeted(void **state)
{
    struct world *w = make_world();

    (void)poll_at(w, 1000 * SEC);
    w->facts.is_by_stream = true;
    assert_true(poll_at(w, 1011 * SEC).reconcile);
    assert_at(w, "192.0.2.2:51820");
    assert_false(hub_health_take_handshake(&w->health));
    /* Nor is the stream of events affected, which goes through that one. */
    shake_hands(w, 1012 * SEC);
    assert_int_equal(poll_at(w, 1012 * SEC).link, HUB_HEALTH_LINK_POKE);
    end_world(w);
}

static void test_another_answer_by_stream(void **state)
{
    struct world *w = make_world();
    struct endpoint other = endpoint("192.0.2.2:51820");

    (void)poll_at(w, 1000 * SEC);
    (void)hub_health_on_answer(&w->health, &other, true, 1001 * SEC);
    assert_true(hub_health_on_answer(&w->health, &other, true, 1002 * SEC).reconcile);
    assert_at(w, "192.0.2.2:51820");
    assert_false(hub_health_take_handshake(&w->health));
    assert_false(w->health.has_moved);
    end_world(w);
}

/* To a hub that does not serve this node little is sent, and what is not answered says nothing. */
static void test_a_standby_hub_is_not_silent(void **state)
{
    struct world *w = make_world();

    w->facts.is_standby = true;
    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1000 * SEC);
    w->seen.unanswered_since = 1001 * SEC;
    (void)poll_at(w, 1060 * SEC);
    assert_int_equal(w->health.silent_since, 0);
    w->facts.is_standby = false;
    (void)poll_at(w, 1061 * SEC);
    assert_int_equal(w->health.silent_since, 1001 * SEC);
    end_world(w);
}

/* Since when there is no session counts anew after each one, and after each engine. */
static void test_since_when_there_is_no_session(void **state)
{
    struct world *w = make_world();

    (void)poll_at(w, 1000 * SEC);
    assert_int_equal(w->health.no_session_since, 1000 * SEC);
    shake_hands(w, 1001 * SEC);
    (void)poll_at(w, 1001 * SEC);
    assert_int_equal(w->health.no_session_since, 0);
    (void)poll_at(w, 1300 * SEC);
    assert_int_equal(w->health.no_session_since, 1300 * SEC);
    w->facts.has_engine = false;
    (void)poll_at(w, 1301 * SEC);
    assert_int_equal(w->health.no_session_since, 0);
    assert_int_equal(w->health.silent_since, 0);
    w->facts.has_engine = true;
    (void)poll_at(w, 1302 * SEC);
    assert_int_equal(w->health.silent_since, 1302 * SEC);
    end_world(w);
}

/* While it is heard its name is not asked for. */
static void test_names_of_a_silent_hub(void **state)
{
    struct world *w = make_world();

    (void)snprintf(w->places.names[0], sizeof(w->places.names[0]), "hub.example.org:51820");
    w->places.n_names = 1;
    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1000 * SEC);
    assert_null(w->health.endpoints.task);
    (void)poll_at(w, 1300 * SEC);
    assert_non_null(w->health.endpoints.task);
    end_world(w);
}

static void test_no_route_no_move(void **state)
{
    struct world *w = make_world();

    (void)poll_at(w, 1000 * SEC);
    w->has_route = false;
    assert_false(poll_at(w, 1020 * SEC).reconcile);
    assert_at(w, "192.0.2.1:51820");
    end_world(w);
}

static void test_answer_from_elsewhere(void **state)
{
    struct world *w = make_world();
    struct endpoint other = endpoint("192.0.2.2:51820");
    struct hub_health_actions actions;

    (void)poll_at(w, 1000 * SEC);
    actions = hub_health_on_answer(&w->health, &other, false, 1001 * SEC);
    assert_false(actions.reconcile);
    actions = hub_health_on_answer(&w->health, &other, false, 1002 * SEC);
    assert_true(actions.reconcile);
    assert_string_equal(actions.moved_because, "the hub answers elsewhere");
    assert_at(w, "192.0.2.2:51820");
    assert_true(hub_health_take_handshake(&w->health));
    end_world(w);
}

/* A hub that was started anew answers STUN, and nothing in the session: it gets a new one at once,
 * and not only when the engine notices. */
static void test_lost_session_is_renewed(void **state)
{
    struct world *w = make_world();
    struct endpoint here = endpoint("192.0.2.1:51820");
    struct endpoint elsewhere = endpoint("192.0.2.2:51820");

    /* Without a session the engine begins handshakes anyway. */
    (void)poll_at(w, 1000 * SEC);
    assert_false(hub_health_on_answer(&w->health, &here, false, 1000 * SEC).reconcile);
    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1000 * SEC);
    assert_false(hub_health_on_answer(&w->health, &here, false, 1000 * SEC).reconcile);
    /* What comes from elsewhere does not say that the hub is there. */
    w->seen.unanswered_since = 1001 * SEC;
    (void)poll_at(w, 1008 * SEC);
    assert_false(hub_health_on_answer(&w->health, &elsewhere, false, 1008 * SEC).reconcile);
    assert_false(hub_health_take_handshake(&w->health));
    shake_hands(w, 1000 * SEC);
    (void)poll_at(w, 1009 * SEC);
    for (nsec_t lost = 1010 * SEC; lost <= 1210 * SEC; lost += 120 * SEC) {
        w->seen.unanswered_since = lost;
        (void)poll_at(w, lost + 7 * SEC);
        /* Through the stream it says nothing. */
        assert_false(hub_health_on_answer(&w->health, &here, true, lost + 7 * SEC).reconcile);
        assert_true(hub_health_on_answer(&w->health, &here, false, lost + 7 * SEC).reconcile);
        assert_true(hub_health_take_handshake(&w->health));
        /* Once: the engine repeats it. */
        (void)poll_at(w, lost + 8 * SEC);
        assert_false(hub_health_on_answer(&w->health, &here, false, lost + 8 * SEC).reconcile);
        assert_false(hub_health_take_handshake(&w->health));
        /* The stream of events was that of the hub before, however old the session. */
        shake_hands(w, lost + 9 * SEC);
        assert_int_equal(poll_at(w, lost + 9 * SEC).link, HUB_HEALTH_LINK_RESTART);
    }
    end_world(w);
}

static void test_no_hub(void **state)
{
    struct world *w = make_world();
    struct hub_health_actions actions;

    w->facts.hub = NULL;
    w->facts.seen = NULL;
    actions = poll_at(w, 1000 * SEC);
    assert_false(actions.reconcile);
    assert_int_equal(actions.link, HUB_HEALTH_LINK_KEEP);
    end_world(w);
}

/* A handshake at @at with the hub, and what is to be done with the stream of events. */
static enum hub_health_link link_after(struct world *w, nsec_t at)
{
    shake_hands(w, at);
    return poll_at(w, at).link;
}

/* The session that a handshake renews was lost if it was younger than 100 s. */
static void test_age_of_a_session(void **state)
{
    struct world *w = make_world();

    /* The first one, even if the machine has only just started. */
    assert_int_equal(link_after(w, 50 * SEC), HUB_HEALTH_LINK_POKE);
    assert_int_equal(link_after(w, 150 * SEC), HUB_HEALTH_LINK_POKE);
    assert_int_equal(link_after(w, 250 * SEC - 1), HUB_HEALTH_LINK_RESTART);
    /* What is seen again is no new one. */
    assert_int_equal(poll_at(w, 251 * SEC).link, HUB_HEALTH_LINK_KEEP);
    /* Another engine has none; its first one renews nothing. The hub is nowhere else. */
    w->has_route = false;
    w->seen.handshake_at = 0;
    assert_int_equal(poll_at(w, 252 * SEC).link, HUB_HEALTH_LINK_KEEP);
    assert_int_equal(link_after(w, 253 * SEC), HUB_HEALTH_LINK_POKE);
    end_world(w);
}

/* The first handshake after a move opens the stream again, whatever its age; the next do not. */
static void test_handshakes_after_a_move(void **state)
{
    struct world *w = make_world();

    assert_int_equal(link_after(w, 1000 * SEC), HUB_HEALTH_LINK_POKE);
    w->health.has_moved = true;
    assert_int_equal(poll_at(w, 1001 * SEC).link, HUB_HEALTH_LINK_KEEP);
    assert_true(w->health.has_moved);
    assert_int_equal(link_after(w, 1200 * SEC), HUB_HEALTH_LINK_RESTART);
    assert_false(w->health.has_moved);
    assert_int_equal(link_after(w, 1320 * SEC), HUB_HEALTH_LINK_POKE);
    end_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_endpoint_is_no_move),
        cmocka_unit_test(test_handshake_proves_that_the_hub_is_there),
        cmocka_unit_test(test_unanswered_is_silent_after_six_seconds),
        cmocka_unit_test(test_silent_hub_is_looked_for_elsewhere),
        cmocka_unit_test(test_by_stream_nobody_is_greeted),
        cmocka_unit_test(test_another_answer_by_stream),
        cmocka_unit_test(test_a_standby_hub_is_not_silent),
        cmocka_unit_test(test_since_when_there_is_no_session),
        cmocka_unit_test(test_names_of_a_silent_hub),
        cmocka_unit_test(test_no_route_no_move),
        cmocka_unit_test(test_answer_from_elsewhere),
        cmocka_unit_test(test_lost_session_is_renewed),
        cmocka_unit_test(test_no_hub),
        cmocka_unit_test(test_age_of_a_session),
        cmocka_unit_test(test_handshakes_after_a_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
