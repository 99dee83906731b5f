/* test-hub-choice.c - which hub serves a node, and what happens when one fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/hublink/hub_choice.h"

#define SEC  NSEC_PER_SEC
#define MSEC NSEC_PER_MSEC
#define HUBS 3

static const char *const names[HUBS] = {"hub-a", "hub-b", "hub-c"};

/* A node, its hubs, and which of them are there. */
struct world {
    struct hub_choice hh;
    struct hub_choice_fact facts[HUBS];
    unsigned order[HUBS]; /* indices of the hubs, the preferred one first */
    bool is_dead[HUBS];
    unsigned n_pings;
    unsigned n_changes;
    nsec_t now;
};

static void sort_by_weight(struct world *w)
{
    for (unsigned i = 0; i < HUBS; i++)
        w->order[i] = i;
    for (unsigned i = 0; i < HUBS; i++)
        for (unsigned k = i + 1; k < HUBS; k++)
            if (w->hh.items[w->order[k]].weight > w->hh.items[w->order[i]].weight) {
                unsigned other = w->order[i];

                w->order[i] = w->order[k];
                w->order[k] = other;
            }
}

static struct world make_world(void)
{
    struct world w = {.now = 1000 * SEC};

    hub_choice_set(&w.hh, "gpu-1", names, HUBS);
    for (unsigned i = 0; i < HUBS; i++)
        w.facts[i] = (struct hub_choice_fact){.handshake_at = w.now - SEC, .has_session = true};
    sort_by_weight(&w);
    return w;
}

/* Polls once. A hub that is there sends events at once and answers pings. */
static struct hub_choice_actions poll_once(struct world *w)
{
    struct hub_choice_actions actions = hub_choice_poll(&w->hh, w->facts, w->now);
    unsigned serving = hub_choice_find(&w->hh, w->hh.serving);

    w->n_pings += actions.ping ? 1 : 0;
    w->n_changes += actions.has_changed ? 1 : 0;
    if (serving == w->hh.n || w->is_dead[serving])
        return actions;
    if (actions.has_changed)
        hub_choice_on_heard(&w->hh, w->now);
    if (actions.ping)
        hub_choice_on_answer(&w->hh, w->now);
    return actions;
}

/* Polls whenever it is due, at least each second, for that time. */
static void run_for(struct world *w, nsec_t time)
{
    nsec_t end = w->now + time;
    unsigned n = 0;

    while (w->now < end) {
        struct hub_choice_actions actions = poll_once(w);

        assert_true(++n < 10000);
        w->now = nsec_min(end, nsec_max(nsec_min(actions.due_at, w->now + SEC), w->now + MSEC));
    }
}

static void assert_serving(const struct world *w, unsigned hub)
{
    assert_string_equal(w->hh.serving, names[hub]);
}

static void test_one_hub(void **state)
{
    struct hub_choice hh = {.n = 0};
    struct hub_choice_fact fact = {.handshake_at = 0};
    struct hub_choice_actions actions;

    hub_choice_set(&hh, "gpu-1", names, 1);
    actions = hub_choice_poll(&hh, &fact, SEC);
    assert_true(actions.has_changed);
    assert_string_equal(hh.serving, "hub-a");
    hub_choice_on_heard(&hh, 2 * SEC);
    hub_choice_on_lost(&hh);
    for (nsec_t now = 3 * SEC; now < 100 * SEC; now += SEC) {
        actions = hub_choice_poll(&hh, &fact, now);
        assert_false(actions.has_changed);
        assert_false(actions.ping);
        assert_int_equal(actions.due_at, NSEC_NEVER);
    }
}

static void test_no_hub(void **state)
{
    struct hub_choice hh = {.n = 0};

    assert_false(hub_choice_poll(&hh, NULL, SEC).has_changed);
    assert_string_equal(hh.serving, "");
}

static unsigned preferred_of(const char *node, unsigned without)
{
    unsigned best = HUBS;

    for (unsigned i = 0; i < HUBS; i++)
        if (i != without && (best == HUBS || hub_choice_weight(node, names[i]) >
                                                 hub_choice_weight(node, names[best])))
            best = i;
    return best;
}

/* Nodes spread, and when a hub goes away only its own nodes move, to both others. */
static void test_spread(void **state)
{
    unsigned count[HUBS] = {0};
    unsigned moved[HUBS] = {0};
    char node[16];

    for (unsigned i = 0; i < 3000; i++) {
        unsigned before;
        unsigned after;

        (void)snprintf(node, sizeof(node), "gpu-%u", i);
        before = preferred_of(node, HUBS);
        after = preferred_of(node, 1);
        count[before]++;
        assert_true(before == 1 || before == after);
        moved[after] += before == 1 ? 1 : 0;
    }
    for (unsigned i = 0; i < HUBS; i++)
        assert_in_range(count[i], 850, 1150);
    assert_in_range(moved[0], 400, 600);
    assert_in_range(moved[2], 400, 600);
}

static void test_preferred_first(void **state)
{
    struct world w = make_world();

    run_for(&w, 100 * SEC);
    assert_serving(&w, w.order[0]);
    assert_int_equal(w.n_changes, 1);
    assert_in_range(w.n_pings, 90, 110);
}

/* It is known at once that a stream has ended. */
static void test_stream_ends(void **state)
{
    struct world w = make_world();
    struct hub_choice_actions actions;

    run_for(&w, 10 * SEC);
    hub_choice_on_lost(&w.hh);
    actions = poll_once(&w);
    assert_true(actions.has_changed);
    assert_string_equal(actions.why, "it has ended the connection");
    assert_serving(&w, w.order[1]);
}

/* A hub that is killed says nothing; its pings show it within 2.5 s, whenever it dies. */
static void test_silence(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        struct world w = make_world();

        run_for(&w, 10 * SEC + i * 50 * MSEC);
        w.is_dead[w.order[0]] = true;
        run_for(&w, 900 * MSEC);
        assert_serving(&w, w.order[0]);
        run_for(&w, 1600 * MSEC);
        assert_serving(&w, w.order[1]);
    }
}

/* Something drops its pings: that it does not answer them says nothing. */
static void test_no_answers_at_all(void **state)
{
    struct world w = make_world();

    (void)poll_once(&w);
    w.is_dead[w.order[0]] = true;
    w.hh.has_answered = false;
    run_for(&w, 100 * SEC);
    assert_serving(&w, w.order[0]);
}

static void test_two_are_dead(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    w.is_dead[w.order[0]] = w.is_dead[w.order[1]] = true;
    run_for(&w, 4800 * MSEC);
    assert_serving(&w, w.order[2]);
    assert_int_equal(w.n_changes, 3);
}

/* No hub is there: each is tried now and then, less and less often. */
static void test_all_are_dead(void **state)
{
    struct world w = make_world();
    unsigned n_changes;

    run_for(&w, 10 * SEC);
    w.is_dead[0] = w.is_dead[1] = w.is_dead[2] = true;
    run_for(&w, 600 * SEC);
    n_changes = w.n_changes;
    assert_in_range(n_changes, 6, 40);
    w.is_dead[w.order[2]] = false;
    run_for(&w, 320 * SEC);
    assert_serving(&w, w.order[2]);
    n_changes = w.n_changes;
    run_for(&w, 600 * SEC);
    assert_serving(&w, w.order[2]);
    assert_int_equal(w.n_changes, n_changes);
}

/* The preferred hub has to show that it is back, and then it is not taken by all at once. */
static void test_return(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    hub_choice_on_lost(&w.hh);
    run_for(&w, 200 * SEC);
    assert_serving(&w, w.order[1]);
    w.facts[w.order[0]].handshake_at = w.now;
    run_for(&w, 2 * SEC);
    assert_serving(&w, w.order[0]);
    assert_int_equal(w.n_changes, 3);
}

static void test_return_waits(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    hub_choice_on_lost(&w.hh);
    (void)poll_once(&w);
    w.facts[w.order[0]].handshake_at = w.now + MSEC;
    run_for(&w, 29 * SEC);
    assert_serving(&w, w.order[1]);
    run_for(&w, 32 * SEC);
    assert_serving(&w, w.order[0]);
}

static void test_cut_in_tls(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    w.facts[w.order[0]].is_cut = true;
    assert_string_equal(poll_once(&w).why, "its connection in TLS is broken");
    assert_serving(&w, w.order[1]);
}

/* The serving hub is retired, and another one is new. */
static void test_hubs_change(void **state)
{
    struct world w = make_world();
    const char *fewer[HUBS];
    unsigned n = 0;
    struct hub_choice_actions actions;

    run_for(&w, 10 * SEC);
    for (unsigned i = 0; i < HUBS; i++)
        if (i != w.order[0])
            fewer[n++] = names[i];
    hub_choice_set(&w.hh, "gpu-1", fewer, n);
    actions = hub_choice_poll(&w.hh, w.facts, w.now);
    assert_true(actions.has_changed);
    assert_string_equal(actions.why, "it is no hub any more");
    assert_string_equal(w.hh.serving, names[w.order[1]]);
    hub_choice_on_heard(&w.hh, w.now);
    hub_choice_set(&w.hh, "gpu-1", names, HUBS);
    run_for(&w, 29 * SEC);
    assert_serving(&w, w.order[1]);
    run_for(&w, 60 * SEC);
    assert_serving(&w, w.order[0]);
}

/* ---- to the moment --------------------------------------------------------------------------- */

/* Two hubs, of which hub-a is preferred, and takes 100 ns more than others to be taken back. */
struct two {
    struct hub_choice hc;
    struct hub_choice_fact facts[2];
};

static struct two make_two(void)
{
    struct two t = {.hc = {.n = 0}};

    hub_choice_set(&t.hc, "gpu-1", names, 2);
    t.hc.items[0].weight = 100;
    t.hc.items[1].weight = 50;
    for (unsigned i = 0; i < 2; i++)
        t.facts[i] = (struct hub_choice_fact){.handshake_at = 999 * SEC, .has_session = true};
    return t;
}

static struct hub_choice_actions look(struct two *t, nsec_t now)
{
    return hub_choice_poll(&t->hc, t->facts, now);
}

/* All agents have to compute the same. */
static void test_weights(void **state)
{
    assert_true(hub_choice_weight("gpu-1", "hub-a") == 0xefc8369f5a3932f4u);
    assert_true(hub_choice_weight("gpu-1", "hub-b") == 0x2612b4db4d222e4cu);
    assert_true(hub_choice_weight("gpu-1h", "ub-b") != hub_choice_weight("gpu-1", "hub-b"));
}

/* Two seconds with a session, and six without one. */
static void test_how_long_a_stream_may_take_to_begin(void **state)
{
    for (unsigned has_session = 0; has_session < 2; has_session++) {
        nsec_t until = (has_session ? 1002 : 1006) * SEC;
        struct two t = make_two();
        struct hub_choice_actions actions;

        t.facts[0].has_session = t.facts[1].has_session = has_session;
        actions = look(&t, 1000 * SEC);
        assert_true(actions.has_changed);
        assert_string_equal(actions.why, "");
        assert_false(actions.ping);
        assert_int_equal(actions.due_at, until);
        assert_string_equal(t.hc.serving, "hub-a");
        assert_int_equal(t.hc.taken_at, 1000 * SEC);
        actions = look(&t, until - 1);
        assert_false(actions.has_changed);
        assert_int_equal(actions.due_at, until);
        actions = look(&t, until);
        assert_true(actions.has_changed);
        assert_string_equal(actions.why, "it does not answer");
        assert_string_equal(t.hc.serving, "hub-b");
        assert_int_equal(t.hc.items[0].failed_at, until);
        assert_int_equal(t.hc.items[0].avoid_for, 10 * SEC);
        assert_int_equal(t.hc.items[0].avoid_until, until + 10 * SEC);
        assert_int_equal(actions.due_at, until + (has_session ? 2 : 6) * SEC);
        assert_int_equal(t.hc.items[1].failed_at, 0);
    }
}

/* One that has answered is silent after six pings, each 0.2 s. */
static void test_when_a_hub_is_silent(void **state)
{
    struct two t = make_two();
    struct hub_choice_actions actions;

    (void)look(&t, 1000 * SEC);
    hub_choice_on_heard(&t.hc, 1001 * SEC);
    actions = look(&t, 1002 * SEC - 1);
    assert_false(actions.ping);
    assert_int_equal(actions.due_at, 1002 * SEC);
    actions = look(&t, 1002 * SEC);
    assert_true(actions.ping);
    assert_int_equal(actions.due_at, 1003 * SEC);
    hub_choice_on_answer(&t.hc, 1002 * SEC + 5 * MSEC);
    assert_int_equal(t.hc.n_unanswered, 0);
    for (unsigned i = 0; i < 6; i++) {
        nsec_t now = 1003 * SEC + (5 + 200 * (int)i) * MSEC;

        assert_false(look(&t, now - 1).ping);
        actions = look(&t, now);
        assert_true(actions.ping);
        assert_false(actions.has_changed);
        assert_int_equal(actions.due_at, now + 200 * MSEC);
        assert_int_equal(t.hc.n_unanswered, i + 1);
    }
    assert_false(look(&t, 1004 * SEC + 205 * MSEC - 1).has_changed);
    actions = look(&t, 1004 * SEC + 205 * MSEC);
    assert_true(actions.has_changed);
    assert_string_equal(actions.why, "it does not answer any more");
    assert_false(actions.ping);
    /* The other one has said nothing yet. */
    assert_false(t.hc.is_heard || t.hc.is_lost || t.hc.has_answered);
    assert_int_equal(t.hc.n_unanswered, 0);
    assert_int_equal(t.hc.next_ping_at, 1005 * SEC + 205 * MSEC);
    /* Pings that come late take their time all the same. */
    t = make_two();
    (void)look(&t, 1000 * SEC);
    hub_choice_on_heard(&t.hc, 1001 * SEC);
    hub_choice_on_answer(&t.hc, 1001 * SEC);
    t.hc.n_unanswered = 6;
    t.hc.unanswered_since = 1002 * SEC;
    assert_false(look(&t, 1002 * SEC + 1200 * MSEC - 1).has_changed);
}

/* A stream that is not open is cut nowhere. */
static void test_what_is_cut(void **state)
{
    struct two t = make_two();

    (void)look(&t, 1000 * SEC);
    t.facts[0].is_cut = true;
    assert_false(look(&t, 1001 * SEC).has_changed);
    hub_choice_on_heard(&t.hc, 1001 * SEC);
    assert_true(look(&t, 1001 * SEC).has_changed);
}

/* How long a hub is avoided that was avoided so long before, and has served for that time. */
static nsec_t avoid_after(nsec_t before, nsec_t avoided_until, nsec_t served)
{
    struct two t = make_two();

    (void)look(&t, 1000 * SEC);
    t.hc.items[0].avoid_for = before;
    t.hc.items[0].avoid_until = avoided_until;
    hub_choice_on_lost(&t.hc);
    assert_true(look(&t, 1000 * SEC + served).has_changed);
    assert_int_equal(t.hc.items[0].avoid_until, 1000 * SEC + served + t.hc.items[0].avoid_for);
    return t.hc.items[0].avoid_for;
}

static void test_how_long_a_hub_is_avoided(void **state)
{
    assert_int_equal(avoid_after(0, 0, SEC), 10 * SEC);
    assert_int_equal(avoid_after(10 * SEC, 0, SEC), 20 * SEC);
    assert_int_equal(avoid_after(10 * SEC, 0, 30 * SEC - 1), 20 * SEC);
    assert_int_equal(avoid_after(10 * SEC, 0, 30 * SEC), 10 * SEC);
    /* It was taken because all were avoided, and was never heard. */
    assert_int_equal(avoid_after(10 * SEC, 1030 * SEC, 30 * SEC), 20 * SEC);
    assert_int_equal(avoid_after(150 * SEC, 0, SEC), 300 * SEC);
    assert_int_equal(avoid_after(160 * SEC, 0, SEC), 300 * SEC);
}

/* Where all others are avoided it stays, and is tried again when the first one's time has come. */
static void test_no_refuge(void **state)
{
    struct two t = make_two();
    struct hub_choice_actions actions;

    (void)look(&t, 1000 * SEC);
    t.hc.items[1].avoid_until = 1005 * SEC;
    hub_choice_on_lost(&t.hc);
    actions = look(&t, 1001 * SEC);
    assert_false(actions.has_changed);
    assert_string_equal(t.hc.serving, "hub-a");
    assert_int_equal(t.hc.items[0].avoid_until, 1011 * SEC);
    assert_int_equal(actions.due_at, 1005 * SEC);
    /* One failure counts once. */
    assert_false(look(&t, 1005 * SEC - 1).has_changed);
    assert_int_equal(t.hc.items[0].failed_at, 1001 * SEC);
    assert_true(look(&t, 1005 * SEC).has_changed);
    assert_string_equal(t.hc.serving, "hub-b");
    /* The time of the one that serves comes first. */
    t.hc.items[1].avoid_until = 1009 * SEC;
    hub_choice_on_lost(&t.hc);
    assert_int_equal(look(&t, 1006 * SEC).due_at, 1009 * SEC);
}

/* What the preferred hub was, 40 s after the other one was taken; is it taken back? */
static bool is_taken_back(const struct hub_choice_item *a, nsec_t handshake_at, nsec_t served)
{
    struct two t = make_two();
    struct hub_choice_actions actions;

    (void)snprintf(t.hc.serving, sizeof(t.hc.serving), "hub-b");
    t.hc.taken_at = 1000 * SEC;
    hub_choice_on_heard(&t.hc, 1000 * SEC + served);
    t.hc.items[0].weight = a->weight;
    t.hc.items[0].failed_at = a->failed_at;
    t.hc.items[0].avoid_until = a->avoid_until;
    t.facts[0].handshake_at = handshake_at;
    actions = look(&t, 1000 * SEC + served);
    if (actions.has_changed)
        assert_string_equal(actions.why, "a hub is back that comes before it for this node");
    return actions.has_changed;
}

static void test_when_the_preferred_hub_is_taken_back(void **state)
{
    struct hub_choice_item a = {.weight = 100, .failed_at = 1000 * SEC};

    assert_true(is_taken_back(&a, 1000 * SEC + 1, 40 * SEC));
    assert_true(is_taken_back(&a, 1000 * SEC + 1, 30 * SEC + 100));
    assert_false(is_taken_back(&a, 1000 * SEC + 1, 30 * SEC + 99));
    assert_false(is_taken_back(&a, 1000 * SEC, 40 * SEC));
    a.avoid_until = 1040 * SEC;
    assert_true(is_taken_back(&a, 1001 * SEC, 40 * SEC));
    a.avoid_until++;
    assert_false(is_taken_back(&a, 1001 * SEC, 40 * SEC));
    a.avoid_until = 0;
    a.weight = 51;
    assert_true(is_taken_back(&a, 1001 * SEC, 40 * SEC));
    a.weight = 50;
    assert_false(is_taken_back(&a, 1001 * SEC, 40 * SEC));
    /* Each waits for a time of its own, from 30 s to 60 s. */
    a.weight = 30 * SEC;
    assert_true(is_taken_back(&a, 1001 * SEC, 30 * SEC));
    a.weight = 30 * SEC - 1;
    assert_false(is_taken_back(&a, 1001 * SEC, 60 * SEC - 2));
    assert_true(is_taken_back(&a, 1001 * SEC, 60 * SEC - 1));
}

/* Those that are not avoided, then those with a session, then by weight, then by name. */
static void test_which_hub_is_better(void **state)
{
    static const char *const turned[] = {"hub-b", "hub-a"};
    struct two t = make_two();

    t.hc.items[0].avoid_until = 1000 * SEC + 1;
    t.facts[1].has_session = false;
    (void)look(&t, 1000 * SEC);
    assert_string_equal(t.hc.serving, "hub-b");
    t = make_two();
    t.hc.items[0].avoid_until = 1000 * SEC;
    (void)look(&t, 1000 * SEC);
    assert_string_equal(t.hc.serving, "hub-a");
    t = make_two();
    t.facts[0].has_session = false;
    (void)look(&t, 1000 * SEC);
    assert_string_equal(t.hc.serving, "hub-b");
    t = make_two();
    hub_choice_set(&t.hc, "gpu-1", turned, 2);
    t.hc.items[0].weight = t.hc.items[1].weight = 7;
    (void)look(&t, 1000 * SEC);
    assert_string_equal(t.hc.serving, "hub-a");
}

static void test_what_is_remembered_of_hubs(void **state)
{
    static const char *const others[] = {"hub-0", "hub-b"};
    struct two t = make_two();

    (void)look(&t, 1000 * SEC);
    t.hc.items[0].avoid_until = t.hc.items[1].avoid_until = 2000 * SEC;
    /* Only of the one that serves is it known that it is there. */
    t.hc.is_lost = true;
    hub_choice_on_heard(&t.hc, 1001 * SEC);
    assert_true(t.hc.is_heard);
    assert_false(t.hc.is_lost);
    assert_int_equal(t.hc.items[0].avoid_until, 0);
    assert_int_equal(t.hc.items[1].avoid_until, 2000 * SEC);
    hub_choice_set(&t.hc, "gpu-1", others, 2);
    assert_int_equal(t.hc.n, 2);
    assert_string_equal(t.hc.items[0].name, "hub-0");
    assert_true(t.hc.items[0].weight == hub_choice_weight("gpu-1", "hub-0"));
    assert_int_equal(t.hc.items[0].avoid_until, 0);
    assert_string_equal(t.hc.items[1].name, "hub-b");
    assert_int_equal(t.hc.items[1].weight, 50);
    assert_int_equal(t.hc.items[1].avoid_until, 2000 * SEC);
    hub_choice_on_lost(&t.hc);
    assert_false(t.hc.is_heard);
    assert_true(t.hc.is_lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_hub),
        cmocka_unit_test(test_no_hub),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_preferred_first),
        cmocka_unit_test(test_stream_ends),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_no_answers_at_all),
        cmocka_unit_test(test_two_are_dead),
        cmocka_unit_test(test_all_are_dead),
        cmocka_unit_test(test_return),
        cmocka_unit_test(test_return_waits),
        cmocka_unit_test(test_cut_in_tls),
        cmocka_unit_test(test_hubs_change),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_how_long_a_stream_may_take_to_begin),
        cmocka_unit_test(test_when_a_hub_is_silent),
        cmocka_unit_test(test_what_is_cut),
        cmocka_unit_test(test_how_long_a_hub_is_avoided),
        cmocka_unit_test(test_no_refuge),
        cmocka_unit_test(test_when_the_preferred_hub_is_taken_back),
        cmocka_unit_test(test_which_hub_is_better),
        cmocka_unit_test(test_what_is_remembered_of_hubs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
