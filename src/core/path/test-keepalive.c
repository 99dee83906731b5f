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
    unsigned n_answers_asked; /* by the second socket, for itself */
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
    case KEEPALIVE_ACTION_PROVE:
        if (action == KEEPALIVE_ACTION_ASK) {
            w->n_answers_asked++;
            if (!w->is_hub_away)
                keepalive_on_answered(&w->k);
        }
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
        assert_in_range(w.n_questions + w.n_answers_asked, 12, KEEPALIVE_PACKETS_MAX);
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
    /* What is not measured any more is feared no more. */
    assert_int_equal(keepalive_cautious(&w.k, 10 * NSEC_PER_SEC), 10 * NSEC_PER_SEC);
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

/* Three quarters of what was survived, in whole seconds; a third of what was not. */
static void test_the_interval_is_well_below_the_bounds(void **state)
{
    static const struct {
        nsec_t lives, dies; /* ms; 0: not known */
        nsec_t interval;    /* s */
    } cases[] = {{0, 0, 0}, {12000, 0, 9}, {12000, 14000, 9}, {13999, 16000, 10}, {0, 12000, 4},
        {0, 29999, 9}, {0, 3000, KEEPALIVE_MIN / NSEC_PER_SEC},
        {1000, 3000, KEEPALIVE_MIN / NSEC_PER_SEC}, {3600000, 0, KEEPALIVE_MAX / NSEC_PER_SEC}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct keepalive_bounds bounds = {.lives = cases[i].lives * NSEC_PER_MSEC,
            .dies = cases[i].dies ? cases[i].dies * NSEC_PER_MSEC : NSEC_NEVER};

        assert_int_equal(keepalive_interval(&bounds), cases[i].interval * NSEC_PER_SEC);
    }
}

/* ---- step by step --------------------------------------------------------------------------- */

/* Nothing is to be done before @at; then this is. */
static void assert_next(struct keepalive *k, nsec_t at, enum keepalive_action action)
{
    assert_int_equal(keepalive_due(k), at);
    assert_int_equal(keepalive_next(k, at - 1), KEEPALIVE_ACTION_NONE);
    assert_int_equal(keepalive_next(k, at), action);
}

/* A question is asked three times, a second apart. */
static nsec_t assert_asked(struct keepalive *k, nsec_t at, enum keepalive_action action)
{
    for (unsigned i = 0; i < 3; i++, at += NSEC_PER_SEC)
        assert_next(k, at, action);
    return at;
}

/* From the spare socket, twice, so that the mapping is a flow's; then from outside. */
static nsec_t open_mapping(struct keepalive *k, nsec_t at)
{
    assert_next(k, at, KEEPALIVE_ACTION_OPEN);
    assert_int_equal(keepalive_next(k, at), KEEPALIVE_ACTION_LEARN);
    keepalive_on_learned(k, 4000, at);
    assert_int_equal(k->port, 4000);
    at += 2500 * NSEC_PER_MSEC;
    assert_next(k, at, KEEPALIVE_ACTION_LEARN);
    keepalive_on_learned(k, 4001, at);
    assert_int_equal(k->port, 4001);
    assert_next(k, at, KEEPALIVE_ACTION_PROVE);
    /* That the hub answers now says nothing about the time of the ASK. */
    keepalive_on_answered(k);
    keepalive_on_arrived(k, at);
    return at;
}

static void test_a_trial_step_by_step(void **state)
{
    const nsec_t sec = NSEC_PER_SEC;
    struct keepalive k;
    nsec_t at = 100 * sec;

    keepalive_start(&k, 0, at);
    assert_true(keepalive_is_running(&k));
    /* A rest of 12 s is survived, then one of 24 s is not: between the two it goes on. */
    at = open_mapping(&k, at) + 12 * sec;
    assert_next(&k, at, KEEPALIVE_ACTION_ASK);
    keepalive_on_arrived(&k, at);
    assert_int_equal(k.bounds.lives, 12 * sec);
    assert_true(k.bounds.dies == NSEC_NEVER);
    at = open_mapping(&k, at) + 24 * sec;
    assert_next(&k, at, KEEPALIVE_ACTION_ASK);
    keepalive_on_answered(&k);
    assert_next(&k, at + sec, KEEPALIVE_ACTION_ASK);
    assert_next(&k, at + 2 * sec, KEEPALIVE_ACTION_ASK);
    at += 3 * sec;
    /* That counts once it is known that answers arrive at all. */
    assert_true(k.bounds.dies == NSEC_NEVER);
    at = open_mapping(&k, at);
    assert_int_equal(k.bounds.lives, 12 * sec);
    assert_int_equal(k.bounds.dies, 24 * sec);
    /* Woken 2 s late: the rest was so much longer. */
    at += 20 * sec;
    assert_int_equal(keepalive_due(&k), at - 2 * sec);
    assert_int_equal(keepalive_next(&k, at), KEEPALIVE_ACTION_ASK);
    keepalive_on_arrived(&k, at);
    assert_int_equal(k.bounds.lives, 20 * sec);
    /* What comes when nothing was asked changes nothing. */
    keepalive_on_arrived(&k, at);
    assert_int_equal(k.bounds.lives, 20 * sec);
    keepalive_stop(&k);
    assert_int_equal(keepalive_due(&k), NSEC_NEVER);
    assert_int_equal(keepalive_next(&k, NSEC_NEVER - 1), KEEPALIVE_ACTION_NONE);
    assert_false(keepalive_is_running(&k));
    keepalive_on_learned(&k, 9, at);
    assert_int_equal(k.port, 4001);
}

/* A hub that is started anew while it is asked looks like a mapping that has gone; but it does not
 * answer the second socket either. */
static void test_hub_away_for_one_question(void **state)
{
    const nsec_t sec = NSEC_PER_SEC;
    struct keepalive k;
    nsec_t at = 0;

    keepalive_start(&k, 0, at);
    at = open_mapping(&k, at) + 12 * sec;
    at = assert_asked(&k, at, KEEPALIVE_ACTION_ASK);
    assert_int_equal(keepalive_next(&k, at), KEEPALIVE_ACTION_NONE);
    assert_int_equal(k.obstacle, KEEPALIVE_OBSTACLE_SILENCE);
    at = open_mapping(&k, at + 60 * sec);
    assert_true(k.bounds.dies == NSEC_NEVER);
    assert_int_equal(k.obstacle, KEEPALIVE_OBSTACLE_NONE);
    assert_int_equal(keepalive_due(&k), at + 12 * sec);
}

/* After a silence it pauses for a minute and its share of the spread, then twice as long. */
static void test_pauses_get_longer(void **state)
{
    const nsec_t sec = NSEC_PER_SEC;
    nsec_t pause = 60 * sec;
    nsec_t at = 105 * sec;
    struct keepalive k;

    keepalive_start(&k, 5 * sec, 100 * sec);
    for (unsigned i = 0; i < 9; i++) {
        assert_next(&k, at, KEEPALIVE_ACTION_OPEN);
        at = assert_asked(&k, at, KEEPALIVE_ACTION_LEARN);
        assert_int_equal(keepalive_next(&k, at), KEEPALIVE_ACTION_NONE);
        assert_int_equal(k.obstacle, KEEPALIVE_OBSTACLE_SILENCE);
        at += pause + 5 * sec;
        pause = nsec_min(2 * pause, 3840 * sec);
    }
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
        cmocka_unit_test(test_the_interval_is_well_below_the_bounds),
        cmocka_unit_test(test_a_trial_step_by_step),
        cmocka_unit_test(test_hub_away_for_one_question),
        cmocka_unit_test(test_pauses_get_longer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
