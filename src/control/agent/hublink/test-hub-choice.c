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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
