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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
