/* test-home-hub.c - which hub serves a node, and what happens when one fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "agent/hublink/home_hub.h"

#define SEC  NSEC_PER_SEC
#define MSEC NSEC_PER_MSEC
#define HUBS 3

static const char *const names[HUBS] = {"hub-a", "hub-b", "hub-c"};

/* A node, its hubs, and which of them are there. */
struct world {
    struct home_hub hh;
    struct home_hub_fact facts[HUBS];
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

    home_hub_set(&w.hh, "gpu-1", names, HUBS);
    for (unsigned i = 0; i < HUBS; i++)
        w.facts[i] = (struct home_hub_fact){.handshake_at = w.now - SEC, .has_session = true};
    sort_by_weight(&w);
    return w;
}

/* Polls once. A hub that is there sends events at once and answers pings. */
static struct home_hub_wish poll_once(struct world *w)
{
    struct home_hub_wish wish = home_hub_poll(&w->hh, w->facts, w->now);
    unsigned home = home_hub_find(&w->hh, w->hh.home);

    w->n_pings += wish.ping ? 1 : 0;
    w->n_changes += wish.has_changed ? 1 : 0;
    if (home == w->hh.n || w->is_dead[home])
        return wish;
    if (wish.has_changed)
        home_hub_on_heard(&w->hh, w->now);
    if (wish.ping)
        home_hub_on_answer(&w->hh, w->now);
    return wish;
}

/* Polls whenever it is due, at least each second, for that time. */
static void run_for(struct world *w, nsec_t time)
{
    nsec_t end = w->now + time;
    unsigned n = 0;

    while (w->now < end) {
        struct home_hub_wish wish = poll_once(w);

        assert_true(++n < 10000);
        w->now = nsec_min(end, nsec_max(nsec_min(wish.due_at, w->now + SEC), w->now + MSEC));
    }
}

static void assert_home(const struct world *w, unsigned hub)
{
    assert_string_equal(w->hh.home, names[hub]);
}

static void test_one_hub(void **state)
{
    struct home_hub hh = {.n = 0};
    struct home_hub_fact fact = {.handshake_at = 0};
    struct home_hub_wish wish;

    home_hub_set(&hh, "gpu-1", names, 1);
    wish = home_hub_poll(&hh, &fact, SEC);
    assert_true(wish.has_changed);
    assert_string_equal(hh.home, "hub-a");
    home_hub_on_heard(&hh, 2 * SEC);
    home_hub_on_lost(&hh);
    for (nsec_t now = 3 * SEC; now < 100 * SEC; now += SEC) {
        wish = home_hub_poll(&hh, &fact, now);
        assert_false(wish.has_changed);
        assert_false(wish.ping);
        assert_int_equal(wish.due_at, NSEC_NEVER);
    }
}

static void test_no_hub(void **state)
{
    struct home_hub hh = {.n = 0};

    assert_false(home_hub_poll(&hh, NULL, SEC).has_changed);
    assert_string_equal(hh.home, "");
}

static unsigned preferred_of(const char *node, unsigned without)
{
    unsigned best = HUBS;

    for (unsigned i = 0; i < HUBS; i++)
        if (i != without &&
            (best == HUBS || home_hub_weight(node, names[i]) > home_hub_weight(node, names[best])))
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
    assert_home(&w, w.order[0]);
    assert_int_equal(w.n_changes, 1);
    assert_in_range(w.n_pings, 90, 110);
}

/* It is known at once that a stream has ended. */
static void test_stream_ends(void **state)
{
    struct world w = make_world();
    struct home_hub_wish wish;

    run_for(&w, 10 * SEC);
    home_hub_on_lost(&w.hh);
    wish = poll_once(&w);
    assert_true(wish.has_changed);
    assert_string_equal(wish.why, "it has ended the connection");
    assert_home(&w, w.order[1]);
}

/* A hub that is killed says nothing; its pings show it within 2.5 s, whenever it dies. */
static void test_silence(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        struct world w = make_world();

        run_for(&w, 10 * SEC + i * 50 * MSEC);
        w.is_dead[w.order[0]] = true;
        run_for(&w, 900 * MSEC);
        assert_home(&w, w.order[0]);
        run_for(&w, 1600 * MSEC);
        assert_home(&w, w.order[1]);
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
    assert_home(&w, w.order[0]);
}

static void test_two_are_dead(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    w.is_dead[w.order[0]] = w.is_dead[w.order[1]] = true;
    run_for(&w, 4800 * MSEC);
    assert_home(&w, w.order[2]);
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
    assert_home(&w, w.order[2]);
    n_changes = w.n_changes;
    run_for(&w, 600 * SEC);
    assert_home(&w, w.order[2]);
    assert_int_equal(w.n_changes, n_changes);
}

/* The preferred hub has to show that it is back, and then it is not taken by all at once. */
static void test_return(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    home_hub_on_lost(&w.hh);
    run_for(&w, 200 * SEC);
    assert_home(&w, w.order[1]);
    w.facts[w.order[0]].handshake_at = w.now;
    run_for(&w, 2 * SEC);
    assert_home(&w, w.order[0]);
    assert_int_equal(w.n_changes, 3);
}

static void test_return_waits(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    home_hub_on_lost(&w.hh);
    (void)poll_once(&w);
    w.facts[w.order[0]].handshake_at = w.now + MSEC;
    run_for(&w, 29 * SEC);
    assert_home(&w, w.order[1]);
    run_for(&w, 32 * SEC);
    assert_home(&w, w.order[0]);
}

static void test_cut_in_tls(void **state)
{
    struct world w = make_world();

    run_for(&w, 10 * SEC);
    w.facts[w.order[0]].is_cut = true;
    assert_string_equal(poll_once(&w).why, "its connection in TLS is broken");
    assert_home(&w, w.order[1]);
}

/* The home hub is retired, and another one is new. */
static void test_hubs_change(void **state)
{
    struct world w = make_world();
    const char *fewer[HUBS];
    unsigned n = 0;
    struct home_hub_wish wish;

    run_for(&w, 10 * SEC);
    for (unsigned i = 0; i < HUBS; i++)
        if (i != w.order[0])
            fewer[n++] = names[i];
    home_hub_set(&w.hh, "gpu-1", fewer, n);
    wish = home_hub_poll(&w.hh, w.facts, w.now);
    assert_true(wish.has_changed);
    assert_string_equal(wish.why, "it is no hub any more");
    assert_string_equal(w.hh.home, names[w.order[1]]);
    home_hub_on_heard(&w.hh, w.now);
    home_hub_set(&w.hh, "gpu-1", names, HUBS);
    run_for(&w, 29 * SEC);
    assert_home(&w, w.order[1]);
    run_for(&w, 60 * SEC);
    assert_home(&w, w.order[0]);
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
