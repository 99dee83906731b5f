/* test-keepalive.c - the idle time of a NAT is found, on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "nat/keepalive.h"

#define SPARE_PORT 4000

/** A NAT with one spare mapping, and a hub behind it. */
struct world {
    struct keepalive k;
    nsec_t now;
    nsec_t holds;         /* a mapping lives so long after its last packet; NSEC_NEVER: for ever */
    nsec_t holds_at_once; /* and so long after its first only; 0: the same */
    nsec_t made, used;    /* of the spare mapping: when it began, and was last used */
    bool is_hub_away;
    unsigned lost; /* every so many-th question; 0: none */
    unsigned n_questions;
    unsigned n_opened;
};

static bool is_lost(struct world *w)
{
    w->n_questions++;
    return w->is_hub_away || (w->lost != 0 && w->n_questions % w->lost == 0);
}

static bool is_mapped(const struct world *w)
{
    bool is_flow = w->used - w->made >= 2 * NSEC_PER_SEC;
    nsec_t holds = is_flow || w->holds_at_once == 0 ? w->holds : w->holds_at_once;

    return holds == NSEC_NEVER || w->now - w->used < holds;
}

static void act(struct world *w, enum keepalive_action action)
{
    switch (action) {
    case KEEPALIVE_ACTION_OPEN:
        w->n_opened++;
        w->made = w->now;
        break;
    case KEEPALIVE_ACTION_LEARN:
        w->used = w->now;
        if (!is_lost(w))
            keepalive_on_learned(&w->k, SPARE_PORT, w->now);
        break;
    case KEEPALIVE_ACTION_ASK:
        assert_int_equal(w->k.port, SPARE_PORT);
        if (!is_lost(w) && is_mapped(w))
            keepalive_on_arrived(&w->k, w->now);
        break;
    case KEEPALIVE_ACTION_CHECK:
        if (!is_lost(w))
            keepalive_on_checked(&w->k, w->now);
        break;
    case KEEPALIVE_ACTION_NONE:
        break;
    }
}

static void run(struct world *w, nsec_t limit)
{
    nsec_t until = w->now + limit;

    while (w->now < until && w->k.state != KEEPALIVE_STATE_DONE) {
        enum keepalive_action action = keepalive_next(&w->k, w->now);

        if (action != KEEPALIVE_ACTION_NONE) {
            act(w, action);
            continue;
        }
        assert_true(keepalive_due(&w->k) > w->now);
        w->now = nsec_min(keepalive_due(&w->k), until);
    }
}

static struct world start(nsec_t holds)
{
    struct world w = {.holds = holds};

    keepalive_start(&w.k, 0);
    return w;
}

static void test_every_idle_time(void **state)
{
    for (int s = 3; s <= 300; s++) {
        struct world w = start(s * NSEC_PER_SEC);
        nsec_t interval;

        run(&w, 3600 * NSEC_PER_SEC);
        assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
        interval = keepalive_interval(&w.k, 10 * NSEC_PER_SEC);
        /* Safe, but not by more than it takes. */
        if (interval >= s * NSEC_PER_SEC && interval > KEEPALIVE_MIN)
            fail_msg("%lld s are chosen where %d s are too long", (long long)interval, s);
        if (interval < nsec_min(s * NSEC_PER_SEC / 2, KEEPALIVE_MAX) && s > 6)
            fail_msg("%lld ns are chosen where %d s pass", (long long)interval, s);
        assert_true(w.now < 600 * NSEC_PER_SEC);
        assert_in_range(w.n_opened, 2, 10);
    }
}

static void test_no_idle_time(void **state)
{
    struct world w = start(NSEC_NEVER);

    assert_int_equal(keepalive_interval(&w.k, 10 * NSEC_PER_SEC), 10 * NSEC_PER_SEC);
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(keepalive_interval(&w.k, 10 * NSEC_PER_SEC), KEEPALIVE_MAX);
    assert_true(w.now < 200 * NSEC_PER_SEC);
    assert_int_equal(keepalive_due(&w.k), NSEC_NEVER);
}

/* Linux forgets a flow of one question and answer after 30 s, another after 120 s. */
static void test_flow_is_measured_as_a_flow(void **state)
{
    struct world w = start(120 * NSEC_PER_SEC);

    w.holds_at_once = 30 * NSEC_PER_SEC;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(keepalive_interval(&w.k, 0), KEEPALIVE_MAX);
}

static void test_loss_is_no_death(void **state)
{
    struct world w = start(40 * NSEC_PER_SEC);

    w.lost = 2;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
    assert_in_range(keepalive_interval(&w.k, 0), 24 * NSEC_PER_SEC, 39 * NSEC_PER_SEC);
}

/* A hub that is away teaches nothing, and is asked seldom. */
static void test_hub_away(void **state)
{
    struct world w = start(40 * NSEC_PER_SEC);
    unsigned n;

    run(&w, 20 * NSEC_PER_SEC); /* in the middle of the second trial */
    assert_int_equal(w.k.lives, 12 * NSEC_PER_SEC);
    w.is_hub_away = true;
    n = w.n_questions;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_true(w.k.dies == NSEC_NEVER);
    assert_true(w.n_questions - n < 250);
    w.is_hub_away = false;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
    assert_in_range(keepalive_interval(&w.k, 0), 24 * NSEC_PER_SEC, 39 * NSEC_PER_SEC);
}

static void test_short_lives_are_feared_at_once(void **state)
{
    struct world w = start(4 * NSEC_PER_SEC);

    run(&w, 22 * NSEC_PER_SEC);
    assert_int_equal(w.k.dies, 12 * NSEC_PER_SEC);
    assert_int_equal(keepalive_interval(&w.k, 10 * NSEC_PER_SEC), 4 * NSEC_PER_SEC);
    keepalive_on_refused(&w.k);
    assert_int_equal(keepalive_due(&w.k), NSEC_NEVER);
    assert_int_equal(keepalive_next(&w.k, w.now + 3600 * NSEC_PER_SEC), KEEPALIVE_ACTION_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_idle_time),
        cmocka_unit_test(test_no_idle_time),
        cmocka_unit_test(test_flow_is_measured_as_a_flow),
        cmocka_unit_test(test_loss_is_no_death),
        cmocka_unit_test(test_hub_away),
        cmocka_unit_test(test_short_lives_are_feared_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
