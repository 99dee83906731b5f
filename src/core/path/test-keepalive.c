/* test-keepalive.c - the idle time of a NAT is found, on a virtual clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "path/keepalive.h"

#define SPARE_PORT 4000

/** A NAT with one spare mapping, and a hub behind it. */
struct world {
    struct keepalive k;
    nsec_t now;
    nsec_t holds;         /* a mapping lives so long after its last packet; NSEC_NEVER: for ever */
    nsec_t holds_at_once; /* and so long after its first only; 0: the same */
    nsec_t made, used;    /* of the spare mapping: when it began, and was last used */
    bool is_hub_away;
    bool is_elsewhere;    /* answers to the spare mapping never arrive */
    nsec_t late;          /* each wake comes so much after it was due */
    nsec_t limited_until; /* the hub gives no such answers: too many were asked for */
    unsigned lost;        /* every so many-th question; 0: none */
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
        if (!is_lost(w) && is_mapped(w) && !w->is_elsewhere && w->now >= w->limited_until) {
            w->used = w->now;
            keepalive_on_arrived(&w->k, w->now);
        }
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
        w->now = nsec_min(keepalive_due(&w->k) + w->late, until);
    }
}

static struct world start(nsec_t holds)
{
    struct world w = {.holds = holds};

    keepalive_start(&w.k, 0, 0);
    return w;
}

static void test_every_idle_time(void **state)
{
    for (int s = 3; s <= 300; s++) {
        struct world w = start(s * NSEC_PER_SEC);
        nsec_t interval;

        run(&w, 3600 * NSEC_PER_SEC);
        assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
        interval = keepalive_interval(&w.k.bounds);
        /* Safe, but not by more than it takes. */
        if (interval >= s * NSEC_PER_SEC && interval > KEEPALIVE_MIN)
            fail_msg("%lld s are chosen where %d s are too long", (long long)interval, s);
        if (interval < nsec_min(s * NSEC_PER_SEC / 2, KEEPALIVE_MAX) && s > 6)
            fail_msg("%lld ns are chosen where %d s pass", (long long)interval, s);
        assert_true(w.now < 600 * NSEC_PER_SEC);
        assert_in_range(w.n_opened, 2, 12);
        assert_in_range(w.n_questions, 12, KEEPALIVE_PACKETS_MAX);
    }
}

/* What was survived and what was not lie close about the truth. */
static void test_bounds_are_close(void **state)
{
    for (int s = 4; s <= 79; s++) {
        struct world w = start(s * NSEC_PER_SEC);
        nsec_t gap;

        run(&w, 3600 * NSEC_PER_SEC);
        gap = w.k.bounds.dies - w.k.bounds.lives;
        assert_true(w.k.bounds.lives < s * NSEC_PER_SEC);
        assert_true(w.k.bounds.dies >= s * NSEC_PER_SEC);
        assert_true(gap <= nsec_max(2 * NSEC_PER_SEC, w.k.bounds.lives / 8));
    }
}

/* A machine whose processors are busy otherwise asks later than it meant to. */
static void test_late_wakes_are_counted(void **state)
{
    for (int s = 5; s <= 60; s++) {
        struct world w = start(s * NSEC_PER_SEC);

        w.late = 3 * NSEC_PER_SEC / 2;
        run(&w, 3600 * NSEC_PER_SEC);
        assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
        assert_true(w.k.bounds.lives < s * NSEC_PER_SEC);
        assert_true(w.k.bounds.dies >= s * NSEC_PER_SEC);
    }
}

static void test_no_idle_time(void **state)
{
    struct world w = start(NSEC_NEVER);

    assert_int_equal(keepalive_interval(&w.k.bounds), 0);
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(keepalive_interval(&w.k.bounds), KEEPALIVE_MAX);
    assert_true(w.now < 200 * NSEC_PER_SEC);
    assert_int_equal(keepalive_due(&w.k), NSEC_NEVER);
    assert_false(keepalive_is_running(&w.k));
}

/* Linux forgets a flow of one question and answer after 30 s, another after 120 s. */
static void test_flow_is_measured_as_a_flow(void **state)
{
    struct world w = start(120 * NSEC_PER_SEC);

    w.holds_at_once = 30 * NSEC_PER_SEC;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(keepalive_interval(&w.k.bounds), KEEPALIVE_MAX);
}

static void test_loss_is_no_death(void **state)
{
    struct world w = start(40 * NSEC_PER_SEC);

    w.lost = 2;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
    assert_in_range(keepalive_interval(&w.k.bounds), 24 * NSEC_PER_SEC, 39 * NSEC_PER_SEC);
}

/* A hub that is away teaches nothing, and is asked seldom. */
static void test_hub_away(void **state)
{
    struct world w = start(40 * NSEC_PER_SEC);
    unsigned n;

    run(&w, 20 * NSEC_PER_SEC); /* in the middle of the second trial */
    assert_int_equal(w.k.bounds.lives, 12 * NSEC_PER_SEC);
    w.is_hub_away = true;
    n = w.n_questions;
    run(&w, 24 * 3600 * NSEC_PER_SEC);
    assert_true(w.k.bounds.dies == NSEC_NEVER);
    assert_int_equal(w.k.obstacle, KEEPALIVE_OBSTACLE_SILENCE);
    assert_true(w.n_questions - n < 120);
    w.is_hub_away = false;
    run(&w, 2 * 3600 * NSEC_PER_SEC);
    assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
    assert_int_equal(w.k.obstacle, KEEPALIVE_OBSTACLE_NONE);
    assert_in_range(keepalive_interval(&w.k.bounds), 24 * NSEC_PER_SEC, 39 * NSEC_PER_SEC);
}

/*
 * A hub that answers at other ports only so often does not make a mapping that is
 * there look as if it was gone.
 */
static void test_refusal_is_no_death(void **state)
{
    struct world w = start(NSEC_NEVER);

    run(&w, 4 * NSEC_PER_SEC); /* it rests */
    assert_int_equal(w.k.state, KEEPALIVE_STATE_REST);
    w.limited_until = 40 * NSEC_PER_SEC;
    run(&w, 40 * NSEC_PER_SEC);
    assert_int_equal(w.k.state, KEEPALIVE_STATE_PAUSE);
    assert_true(w.k.bounds.dies == NSEC_NEVER);
    run(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(w.k.state, KEEPALIVE_STATE_DONE);
    assert_true(w.k.bounds.dies == NSEC_NEVER);
    assert_int_equal(keepalive_interval(&w.k.bounds), KEEPALIVE_MAX);
}

/* A NAT with several addresses: it is no measurement, and does not become one. */
static void test_answers_go_elsewhere(void **state)
{
    struct world w = start(40 * NSEC_PER_SEC);

    w.is_elsewhere = true;
    run(&w, 3600 * NSEC_PER_SEC);
    assert_true(keepalive_is_running(&w.k));
    assert_int_equal(w.k.obstacle, KEEPALIVE_OBSTACLE_ELSEWHERE);
    assert_int_equal(keepalive_interval(&w.k.bounds), 0);
    assert_int_equal(keepalive_cautious(&w.k, 10 * NSEC_PER_SEC), 10 * NSEC_PER_SEC);
}

static void test_short_lives_are_feared_at_once(void **state)
{
    struct world w = start(4 * NSEC_PER_SEC);

    assert_int_equal(keepalive_cautious(&w.k, 10 * NSEC_PER_SEC), 10 * NSEC_PER_SEC);
    run(&w, 22 * NSEC_PER_SEC);
    assert_int_equal(w.k.bounds.dies, 12 * NSEC_PER_SEC);
    assert_int_equal(keepalive_cautious(&w.k, 10 * NSEC_PER_SEC), 4 * NSEC_PER_SEC);
    assert_int_equal(keepalive_cautious(&w.k, 3 * NSEC_PER_SEC), 3 * NSEC_PER_SEC);
    keepalive_on_refused(&w.k);
    assert_int_equal(w.k.obstacle, KEEPALIVE_OBSTACLE_REFUSED);
    assert_int_equal(keepalive_due(&w.k), NSEC_NEVER);
    assert_int_equal(keepalive_next(&w.k, w.now + 3600 * NSEC_PER_SEC), KEEPALIVE_ACTION_NONE);
}

/* While it is measured again, what was known is in use for as long as nothing speaks against it. */
static void test_caution_does_not_flap(void **state)
{
    for (int s = 10; s <= 79; s++) {
        struct world w = start(s * NSEC_PER_SEC);
        nsec_t before = keepalive_interval(&(struct keepalive_bounds){
            .lives = (s - 1) * NSEC_PER_SEC, .dies = (s + 1) * NSEC_PER_SEC});
        nsec_t used = before;

        while (w.k.state != KEEPALIVE_STATE_DONE) {
            nsec_t next = keepalive_cautious(&w.k, before);

            assert_true(next <= before && next < s * NSEC_PER_SEC);
            /* Down once at most, and then only up. */
            assert_true(next >= used || used == before);
            used = next;
            run(&w, NSEC_PER_SEC);
        }
    }
}

/* Many that are told to begin at once do not. */
static void test_spread(void **state)
{
    struct world w = {.holds = NSEC_NEVER};

    keepalive_start(&w.k, 30 * NSEC_PER_SEC, 0);
    run(&w, 29 * NSEC_PER_SEC);
    assert_int_equal(w.n_questions, 0);
    run(&w, 2 * NSEC_PER_SEC);
    assert_int_equal(w.n_questions, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_idle_time),
        cmocka_unit_test(test_bounds_are_close),
        cmocka_unit_test(test_late_wakes_are_counted),
        cmocka_unit_test(test_no_idle_time),
        cmocka_unit_test(test_flow_is_measured_as_a_flow),
        cmocka_unit_test(test_loss_is_no_death),
        cmocka_unit_test(test_hub_away),
        cmocka_unit_test(test_refusal_is_no_death),
        cmocka_unit_test(test_answers_go_elsewhere),
        cmocka_unit_test(test_caution_does_not_flap),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_short_lives_are_feared_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
