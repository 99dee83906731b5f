/* test-transport-choice.c - when UDP is given up for a stream, and when it is taken again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/hublink/hub_transport.h"

/* A node with a clock of its own. Each tick polls; @udp: STUN requests are answered at once. */
struct world {
    struct hub_transport transport;
    struct hub_transport_stream stream;
    nsec_t now;
    unsigned n_asked;
    unsigned n_changes;
    bool wants_stream;
    bool udp;
};

static struct world world_of(bool udp)
{
    struct world w = {.udp = udp, .now = 1000 * NSEC_PER_SEC, .transport = {.n_endpoints = 1}};

    return w;
}

/* The hub answers a STUN request by UDP. */
static void answer(struct world *w)
{
    assert_true(hub_transport_on_answer(&w->transport, &w->transport.endpoints[0], w->now));
}

static void pass(struct world *w, nsec_t time)
{
    nsec_t until = w->now + time;

    while (w->now < until) {
        struct hub_transport_actions actions;

        w->now += TRANSPORT_CHOICE_TICK;
        actions = hub_transport_run(&w->transport, &w->stream, w->now);
        w->n_asked += actions.ask;
        w->n_changes += actions.has_changed;
        w->wants_stream = actions.open_stream;
        if (actions.ask && w->udp)
            answer(w);
    }
}

/* The hub is silent from now on. */
static void silence(struct world *w)
{
    w->transport.silent_since = w->now;
}

static void test_heard_costs_nothing(void **state)
{
    struct world w = world_of(true);

    pass(&w, 3600 * NSEC_PER_SEC);
    assert_int_equal(w.n_asked, 0);
    assert_false(w.wants_stream);
    assert_false(w.transport.choice.by_stream);
}

static void test_blocked(void **state)
{
    struct world w = world_of(false);

    silence(&w);
    pass(&w, NSEC_PER_SEC);
    assert_false(w.wants_stream);
    pass(&w, 2 * NSEC_PER_SEC);
    assert_true(w.wants_stream);
    /* Not before there is one. */
    pass(&w, 10 * NSEC_PER_SEC);
    assert_false(w.transport.choice.by_stream);
    w.stream.status.is_open = true;
    pass(&w, TRANSPORT_CHOICE_TICK);
    assert_false(w.transport.choice.by_stream);
    pass(&w, 2 * NSEC_PER_SEC);
    assert_true(w.transport.choice.by_stream);
    assert_int_equal(w.n_changes, 1);
}

/* A hub that was away: when it is back, TLS is accepted and UDP answered, and UDP stays. */
static void test_away_is_not_blocked(void **state)
{
    struct world w = world_of(false);

    silence(&w);
    pass(&w, 10 * NSEC_PER_SEC);
    assert_true(w.wants_stream);
    w.stream.status.is_open = true;
    w.udp = true;
    pass(&w, 5 * NSEC_PER_SEC);
    assert_false(w.wants_stream);
    assert_int_equal(w.n_changes, 0);
}

static void test_join_is_quick(void **state)
{
    struct world w = world_of(false);

    silence(&w);
    w.stream.status.is_open = true;
    pass(&w, 3 * NSEC_PER_SEC);
    assert_true(w.transport.choice.by_stream);
}

/* STUN is answered: the hub's WireGuard is only slow, and UDP stays. */
static void test_slow_is_not_blocked(void **state)
{
    struct world w = world_of(true);

    silence(&w);
    w.stream.status.is_open = true;
    pass(&w, 8 * NSEC_PER_SEC);
    assert_false(w.transport.choice.by_stream);
    assert_false(w.wants_stream);
    w.transport.silent_since = 0;
    pass(&w, 8 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 0);
}

/* STUN passes and WireGuard does not; with two ways to the hub, each has its time. */
static void test_refused(void **state)
{
    struct world w = world_of(true);

    w.transport.n_endpoints = 2;
    w.stream.status.is_open = true;
    silence(&w);
    pass(&w, 20 * NSEC_PER_SEC);
    assert_false(w.transport.choice.by_stream);
    pass(&w, 5 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 1);
}

/*
 * The hub is replaced twice. The session that it lost first is renewed, and lost before anything
 * has passed in it: the hub is heard then, and seems not to hear us. What was answered in the first
 * silence says nothing about the second one.
 */
static void test_two_restarts_are_no_refusal(void **state)
{
    struct world w = world_of(true);

    w.stream.status.is_open = true;
    silence(&w);
    pass(&w, 4 * NSEC_PER_SEC);
    w.transport.handshake_at = w.now;
    w.transport.is_suspect = true;
    pass(&w, 7 * NSEC_PER_SEC);
    w.transport.is_suspect = false;
    silence(&w);
    pass(&w, 10 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 0);
    assert_false(w.wants_stream);
    /* No session comes about any more. */
    pass(&w, 3 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 1);
    assert_true(w.transport.choice.was_refused);
}

/* A hub that is only suspected, however long, and is then restarted. */
static void test_suspect_before_a_restart(void **state)
{
    struct world w = world_of(true);

    w.stream.status.is_open = true;
    silence(&w);
    w.transport.is_suspect = true;
    pass(&w, 60 * NSEC_PER_SEC);
    w.transport.is_suspect = false;
    silence(&w);
    pass(&w, 11 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 0);
    assert_false(w.wants_stream);
}

/* Handshakes pass, and what is sent in the sessions does not: UDP is left all the same. */
static void test_only_handshakes_pass(void **state)
{
    struct world w = world_of(true);

    w.stream.status.is_open = true;
    for (unsigned i = 0; i < 4 && w.n_changes == 0; i++) {
        w.transport.is_suspect = false;
        silence(&w);
        pass(&w, NSEC_PER_SEC);
        if (w.n_changes > 0)
            break;
        w.transport.handshake_at = w.now;
        w.transport.is_suspect = true;
        pass(&w, 6 * NSEC_PER_SEC);
    }
    assert_int_equal(w.n_changes, 1);
}

/* A hub that answered, and was away then: it is not refused when it comes back, by TLS first. */
static void test_answers_that_ended(void **state)
{
    struct world w = world_of(true);

    silence(&w);
    pass(&w, NSEC_PER_SEC);
    w.udp = false;
    pass(&w, 20 * NSEC_PER_SEC);
    assert_true(w.wants_stream);
    w.stream.status.is_open = true;
    pass(&w, TRANSPORT_CHOICE_TICK);
    assert_int_equal(w.n_changes, 0);
    w.udp = true;
    pass(&w, 5 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 0);
    /* Where UDP is not answered any more, that is why it is left. */
    w.udp = false;
    pass(&w, 5 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 1);
    assert_false(w.transport.choice.was_refused);
}

static struct world on_stream(void)
{
    struct world w = world_of(false);

    silence(&w);
    w.stream.status.is_open = true;
    pass(&w, 3 * NSEC_PER_SEC);
    assert_true(w.transport.choice.by_stream);
    w.n_asked = 0;
    w.n_changes = 0;
    return w;
}

static void test_return(void **state)
{
    struct world w = on_stream();

    pass(&w, 60 * NSEC_PER_SEC);
    assert_true(w.transport.choice.by_stream);
    /* On a stream that works UDP is asked now and then. */
    assert_in_range(w.n_asked, 11, 13);
    w.udp = true;
    w.transport.silent_since = 0;
    pass(&w, 7 * NSEC_PER_SEC);
    assert_false(w.transport.choice.by_stream);
    assert_int_equal(w.n_changes, 1);
    assert_false(w.wants_stream);
}

/* One answer that slipped through is no return. */
static void test_one_answer(void **state)
{
    struct world w = on_stream();

    answer(&w);
    pass(&w, 20 * NSEC_PER_SEC);
    assert_true(w.transport.choice.by_stream);
    assert_int_equal(w.transport.choice.n_answered, 0);
}

/* UDP that lets STUN through and nothing else: each return is later than the one before. */
static void test_no_flapping(void **state)
{
    struct world w = on_stream();
    unsigned n_hour;

    w.udp = true;
    for (unsigned i = 0; i < 3600; i++) {
        if (w.transport.choice.by_stream)
            w.transport.silent_since = 0;
        else if (w.transport.silent_since == 0)
            silence(&w);
        pass(&w, NSEC_PER_SEC);
    }
    n_hour = w.n_changes;
    assert_in_range(n_hour, 4, 20);
    for (unsigned i = 0; i < 3600; i++) {
        if (w.transport.choice.by_stream)
            w.transport.silent_since = 0;
        else if (w.transport.silent_since == 0)
            silence(&w);
        pass(&w, NSEC_PER_SEC);
    }
    assert_in_range(w.n_changes - n_hour, 1, 8);
}

/* The hub is heard, and seems not to hear us: as long as STUN is answered that is no failure. */
static void test_suspect(void **state)
{
    struct world w = world_of(true);

    silence(&w);
    w.transport.is_suspect = true;
    w.stream.status.is_open = true;
    pass(&w, 600 * NSEC_PER_SEC);
    assert_int_equal(w.n_changes, 0);
    assert_false(w.wants_stream);
    w.udp = false;
    pass(&w, 10 * NSEC_PER_SEC);
    assert_true(w.transport.choice.by_stream);
}

/* ---- to the moment --------------------------------------------------------------------------- */

#define SEC  NSEC_PER_SEC
#define STEP (100 * NSEC_PER_MSEC)

static void step(struct world *w)
{
    struct hub_transport_actions actions;

    w->now += STEP;
    actions = hub_transport_run(&w->transport, &w->stream, w->now);
    w->n_asked += actions.ask;
    w->n_changes += actions.has_changed;
    w->wants_stream = actions.open_stream;
    if (actions.ask && w->udp)
        answer(w);
}

static void step_for(struct world *w, nsec_t time)
{
    for (nsec_t until = w->now + time; w->now < until;)
        step(w);
}

/* How long it takes until a stream is wanted, or until the transport is changed. */
static nsec_t time_to_want(struct world *w)
{
    nsec_t since = w->now;

    do {
        step(w);
        assert_true(w->now < since + 4000 * SEC);
    } while (!w->wants_stream);
    return w->now - since;
}

static nsec_t time_to_change(struct world *w)
{
    unsigned n = w->n_changes;
    nsec_t since = w->now;

    do {
        step(w);
        assert_true(w->now < since + 4000 * SEC);
    } while (w->n_changes == n);
    return w->now - since;
}

/* Two seconds after the first request, which is the same for each silence. */
static void test_when_udp_is_dead(void **state)
{
    struct world w = world_of(false);

    for (unsigned again = 0; again < 2; again++) {
        silence(&w);
        w.n_asked = 0;
        assert_int_equal(time_to_want(&w), 2 * SEC + STEP);
        assert_int_equal(w.n_asked, 6);
        w.transport.silent_since = 0;
        step(&w);
        assert_false(w.wants_stream);
        step_for(&w, 10 * SEC);
    }
}

/* A hub that has been silent for long is asked each 2 s: then it takes five requests. */
static void test_requests_in_a_long_silence(void **state)
{
    struct world w = world_of(true);

    w.transport.n_endpoints = 4;
    w.transport.silent_since = w.now + STEP;
    step_for(&w, 12 * SEC);
    assert_int_equal(w.n_asked, 30);
    /* The last one of these was asked 11.6 s after the hub was heard. */
    step_for(&w, 1600 * NSEC_PER_MSEC);
    assert_int_equal(w.n_asked, 30);
    step(&w);
    assert_int_equal(w.n_asked, 31);
    step_for(&w, 6 * SEC);
    assert_int_equal(w.n_asked, 34);
    w.udp = false;
    (void)time_to_want(&w);
    assert_int_equal(w.n_asked, 39);
}

/* A stream that comes about later is taken after four requests beside it, each 0.3 s. */
static void test_requests_beside_a_stream(void **state)
{
    struct world w = world_of(false);

    silence(&w);
    step_for(&w, 20 * SEC);
    assert_int_equal(w.n_changes, 0);
    w.n_asked = 0;
    w.stream.status.is_open = true;
    (void)time_to_change(&w);
    assert_int_equal(w.n_asked, 4);
    assert_false(w.transport.choice.was_refused);
    assert_int_equal(w.transport.choice.taken_at, w.now);
    /* One that has gone meanwhile begins with none. */
    w = world_of(false);
    silence(&w);
    step_for(&w, 20 * SEC);
    w.stream.status.is_open = true;
    step_for(&w, 900 * NSEC_PER_MSEC);
    w.stream.status.is_open = false;
    step(&w);
    w.stream.status.is_open = true;
    w.n_asked = 0;
    (void)time_to_change(&w);
    assert_int_equal(w.n_asked, 4);
}

/* Twelve seconds after the first answer, or after the first one since a session came about. */
static void test_when_udp_is_refused(void **state)
{
    struct world w = world_of(true);

    w.stream.status.is_open = true;
    silence(&w);
    step(&w);
    assert_int_equal(w.transport.choice.passes_since, w.now);
    /* A session from before that answer does not count. */
    w.transport.handshake_at = w.now;
    assert_int_equal(time_to_change(&w), 12 * SEC);
    assert_true(w.transport.choice.was_refused);

    w = world_of(true);
    silence(&w);
    step(&w);
    w.transport.handshake_at = w.now + 1;
    /* It is asked 0.4 s after the first request. */
    assert_int_equal(time_to_want(&w), 12 * SEC + 4 * STEP);
}

/* Each silence allows for one session; and so does each return to UDP. */
static void test_sessions_of_each_silence(void **state)
{
    struct world w = world_of(true);

    silence(&w);
    step(&w);
    w.transport.handshake_at = w.now + 1;
    step_for(&w, SEC);
    assert_true(w.transport.choice.has_begun_anew);
    w.transport.silent_since = 0;
    step(&w);
    assert_false(w.transport.choice.has_begun_anew);
    assert_int_equal(w.transport.choice.passes_since, 0);
    assert_int_equal(w.transport.choice.suspected_since, 0);
    silence(&w);
    step_for(&w, SEC);
    w.transport.handshake_at = w.now;
    w.stream.status.is_open = true;
    step_for(&w, SEC);
    assert_true(w.transport.choice.has_begun_anew);
    (void)time_to_change(&w);
    assert_true(w.transport.choice.by_stream);
    assert_false(w.transport.choice.has_begun_anew);
    (void)time_to_change(&w);
    assert_false(w.transport.choice.by_stream);
    assert_int_equal(w.transport.choice.passes_since, 0);
    assert_int_equal(w.transport.choice.n_answered, 0);
    assert_int_equal(w.transport.choice.returned_at, w.now);
}

/* How long a stream is kept that is taken at the same moment each time, if UDP was taken again so
 * long before. */
static nsec_t settle_after(nsec_t returned_before, nsec_t settle_for)
{
    struct world w = world_of(false);
    const nsec_t taken_at = w.now + 2 * SEC + STEP;

    silence(&w);
    w.stream.status.is_open = true;
    w.transport.choice.returned_at = returned_before > 0 ? taken_at - returned_before : 0;
    w.transport.choice.settle_for = settle_for;
    (void)time_to_change(&w);
    assert_int_equal(w.now, taken_at);
    return w.transport.choice.settle_for;
}

/* After a return that was a mistake it is kept for longer. */
static void test_how_long_a_stream_is_kept(void **state)
{
    assert_int_equal(settle_after(0, 0), 0);
    assert_int_equal(settle_after(0, 45 * SEC), 0);
    assert_int_equal(settle_after(60 * SEC, 45 * SEC), 0);
    assert_int_equal(settle_after(60 * SEC - 1, 45 * SEC), 90 * SEC);
    assert_int_equal(settle_after(10 * SEC, 0), 30 * SEC);
    assert_int_equal(settle_after(10 * SEC, 900 * SEC), 1800 * SEC);
    assert_int_equal(settle_after(10 * SEC, 901 * SEC), 1800 * SEC);
}

/* Three answers in a row, each within 2 s; and not before the stream was kept for its time. */
static void test_when_udp_is_taken_again(void **state)
{
    struct world w = on_stream();

    step_for(&w, 20 * SEC);
    assert_int_equal(w.n_asked, 4);
    /* Each 5 s until the first answer, and then each 0.3 s. */
    w.udp = true;
    (void)time_to_change(&w);
    assert_int_equal(w.n_asked, 7);
    assert_false(w.transport.choice.by_stream);

    w = on_stream();
    w.transport.choice.settle_for = w.now + 30 * SEC - w.transport.choice.taken_at;
    w.udp = true;
    assert_int_equal(time_to_change(&w), 30 * SEC);

    /* What was not answered on the stream is no matter of UDP, which has its full time. */
    w = on_stream();
    w.udp = true;
    (void)time_to_change(&w);
    w.udp = false;
    assert_int_equal(time_to_change(&w), 2 * SEC + STEP);
    w.transport.choice.n_answered = 3;
    w.transport.choice.n_asked = 9;
    w.transport.choice.answered_at = w.now;
    w.transport.choice.asked_at = w.now;
    w.transport.choice.settle_for = 0;
    step(&w);
    assert_false(w.transport.choice.by_stream);
    assert_int_equal(w.transport.choice.n_asked, 0);

    /* Without a stream there is nothing to lose. */
    w = on_stream();
    w.stream.status.is_open = false;
    step_for(&w, 3 * SEC);
    assert_int_equal(w.n_asked, 10);
}

static void test_how_old_an_answer_may_be(void **state)
{
    struct world w = on_stream();

    answer(&w);
    answer(&w);
    assert_int_equal(w.transport.choice.n_answered, 2);
    step_for(&w, 2 * SEC);
    assert_int_equal(w.transport.choice.n_answered, 2);
    step(&w);
    assert_int_equal(w.transport.choice.n_answered, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heard_costs_nothing),
        cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_away_is_not_blocked),
        cmocka_unit_test(test_join_is_quick),
        cmocka_unit_test(test_slow_is_not_blocked),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_two_restarts_are_no_refusal),
        cmocka_unit_test(test_suspect_before_a_restart),
        cmocka_unit_test(test_only_handshakes_pass),
        cmocka_unit_test(test_answers_that_ended),
        cmocka_unit_test(test_return),
        cmocka_unit_test(test_one_answer),
        cmocka_unit_test(test_no_flapping),
        cmocka_unit_test(test_suspect),
        cmocka_unit_test(test_when_udp_is_dead),
        cmocka_unit_test(test_requests_in_a_long_silence),
        cmocka_unit_test(test_requests_beside_a_stream),
        cmocka_unit_test(test_when_udp_is_refused),
        cmocka_unit_test(test_sessions_of_each_silence),
        cmocka_unit_test(test_how_long_a_stream_is_kept),
        cmocka_unit_test(test_when_udp_is_taken_again),
        cmocka_unit_test(test_how_old_an_answer_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
