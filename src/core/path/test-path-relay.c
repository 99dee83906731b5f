/*
 * test-path-relay.c - when a pair goes through a relay rather than directly, through which one, and
 * when it changes to another.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/path_couple.h"

#define MSEC NSEC_PER_MSEC
#define SEC  NSEC_PER_SEC

static struct couple couple;

static struct x25519_public relay_key(uint8_t n)
{
    return (struct x25519_public){{n, 1}};
}

/* Node @i reaches relay n+1 in rtt[n] ms; 0: not at all. Both ends hear of it. */
static void tell(struct couple *c, unsigned i, const unsigned rtt_ms[static 2])
{
    struct path_side side = {.generation = 1};

    for (unsigned n = 0; n < 2; n++)
        if (rtt_ms[n] != 0)
            side.relays[side.n_relays++] = (struct path_relay){
                .key = relay_key((uint8_t)(n + 1)), .rtt = (nsec_t)rtt_ms[n] * MSEC};
    paths_set_self(c->nodes[i].paths, &side, c->now);
    paths_set_peer_side(c->nodes[1 - i].paths, &c->nodes[i].key, &side, c->now);
    couple_run(c, 0);
}

static void assert_via(struct couple *c, unsigned i, uint8_t n)
{
    struct x25519_public key = relay_key(n);
    struct path_view view;

    couple_run(c, 1 * MSEC);
    assert_true(paths_view(c->nodes[i].paths, &c->nodes[1 - i].key, &view, c->now));
    assert_true(x25519_public_equal(&view.via, &key));
}

static void test_better_only_after_a_while_and_by_the_first(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    tell(c, 0, (unsigned[]){20, 10});
    tell(c, 1, (unsigned[]){20, 10});
    couple_run(c, 1500 * MSEC);
    assert_via(c, 0, 1);
    couple_run(c, 1000 * MSEC);
    assert_via(c, 0, 2);
    /* The other end waits to be taken along. */
    assert_via(c, 1, 1);
    paths_on_relayed(c->nodes[1].paths, &c->nodes[0].key, &(struct x25519_public){{2, 1}}, c->now);
    assert_via(c, 1, 2);
    couple_stop(c);
}

/* Nothing is sent, so no handshake takes the other end along. */
static void test_better_for_both_without_a_session(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_RELAY);
    tell(c, 0, (unsigned[]){20, 10});
    tell(c, 1, (unsigned[]){20, 10});
    couple_run(c, 10 * SEC);
    for (unsigned i = 0; i < 2; i++)
        assert_via(c, i, 2);
    couple_stop(c);
}

static void test_little_better_is_not_worth_it(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    tell(c, 0, (unsigned[]){20, 18});
    tell(c, 1, (unsigned[]){20, 18});
    couple_run(c, 10 * SEC);
    assert_via(c, 0, 1);
    couple_stop(c);
}

static void test_lost_one_is_left_at_once_by_either(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        struct couple *c = &couple;

        couple_start(c, PATH_POLICY_AUTO);
        tell(c, 0, (unsigned[]){10, 20});
        tell(c, 1, (unsigned[]){10, 20});
        assert_via(c, i, 1);
        tell(c, i, (unsigned[]){0, 20});
        assert_via(c, i, 2);
        couple_stop(c);
    }
}

/* The other end has left the relay of both and led here; once it is there again, both go back. */
static void test_announced_anew_is_gone_back_to(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        struct couple *c = &couple;

        couple_start(c, PATH_POLICY_AUTO);
        tell(c, 0, (unsigned[]){10, 40});
        tell(c, 1, (unsigned[]){10, 40});
        paths_on_relayed(
            c->nodes[0].paths, &c->nodes[1].key, &(struct x25519_public){{2, 1}}, c->now);
        couple_run(c, 10 * SEC);
        /* Whatever the reports say: they may be old. */
        assert_via(c, 0, 2);
        tell(c, i, (unsigned[]){0, 40});
        tell(c, i, (unsigned[]){10, 40});
        couple_run(c, 1500 * MSEC);
        assert_via(c, 0, 2);
        couple_run(c, 1000 * MSEC);
        assert_via(c, 0, 1);
        couple_stop(c);
    }
}

/* A relayed pair has nothing of its own to keep alive: the hub's mapping serves all. */
static void test_relayed_pair_sends_nothing(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_RELAY);
    couple_tell(c);
    couple_run(c, 3600 * SEC);
    assert_int_equal(c->n_sent, 0);
    couple_stop(c);
}

static void set_relay_that_carries(struct couple *c, nsec_t rtt, uint16_t mtu)
{
    for (unsigned i = 0; i < 2; i++) {
        struct path_side side = {.generation = 1, .n_relays = 1};

        side.relays[0] = (struct path_relay){.key = {{5}}, .rtt = rtt / 2, .mtu = mtu};
        assert_true(candidates_add(&side.candidates, CANDIDATE_HOST, &c->nodes[i].ep));
        paths_set_self(c->nodes[i].paths, &side, c->now);
        paths_set_peer_side(c->nodes[1 - i].paths, &c->nodes[i].key, &side, c->now);
    }
}

static void set_relay(struct couple *c, nsec_t rtt)
{
    set_relay_that_carries(c, rtt, 0);
}

/* Flows have large packets, and no relay was found to carry such: they stay where they pass. */
static void test_relay_has_to_carry_what_is_sent(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 19 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    for (unsigned i = 0; i < 2; i++)
        paths_set_mtu(c->nodes[i].paths, &c->nodes[1 - i].key, 1408);
    set_relay_that_carries(c, 5 * MSEC, 1392);
    couple_run_with_traffic(c, 30 * SEC);
    couple_assert_direct(c);
    set_relay_that_carries(c, 5 * MSEC, 1408);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_relayed(c);
    assert_int_equal(
        paths_relay_mtu(c->nodes[0].paths, &c->nodes[1].key, &(struct x25519_public){{5}}), 1408);
    couple_stop(c);
}

static void test_relay_that_is_better(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 19 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    set_relay(c, 5 * MSEC);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_relayed(c);
    assert_non_null(strstr(couple_view(c, 0).why, "the relay is faster"));
    assert_true(couple_view(c, 0).rtt == 5 * MSEC);
    set_relay(c, 60 * MSEC);
    couple_run_with_traffic(c, 130 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* Queues come and go with the load of the machines, and some moment of each minute has none. Where
 * none has, the relay's way is just as full. */
static void test_busy_time_is_no_reason(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->slow_by = 50 * MSEC;
    for (unsigned i = 0; i < 10; i++) {
        c->slow_until = c->now + 26 * SEC;
        couple_run_with_traffic(c, 28 * SEC);
    }
    set_relay(c, 115 * MSEC);
    c->slow_until = c->now + 300 * SEC;
    couple_run_with_traffic(c, 310 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2); /* the relay, and then this */
    couple_stop(c);
}

/* A way that has become longer is left within a minute and a half, and taken again soon. */
static void test_path_that_became_slow(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 600 * SEC);
    couple_assert_direct(c);
    c->slow_until = c->now + 400 * SEC;
    c->slow_by = 50 * MSEC;
    couple_run_with_traffic(c, 25 * SEC);
    couple_assert_direct(c);
    couple_run_with_traffic(c, 65 * SEC);
    couple_assert_relayed(c);
    couple_run_with_traffic(c, 300 * SEC);
    couple_assert_relayed(c);
    assert_int_equal(c->nodes[0].n_uses, 3);
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* The edge's own traffic makes the relay slow, on which the slow direct path is better, ... */
static void test_edge_does_not_go_to_and_fro(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    c->slow_until = NSEC_NEVER;
    c->slow_by = 50 * MSEC;
    for (unsigned i = 0; i < 3600; i++) {
        couple_run_with_traffic(c, SEC);
        if (i % 5 == 0)
            set_relay(c, couple_view(c, 0).kind == PATH_KIND_RELAY ? 400 * MSEC : 15 * MSEC);
    }
    /* After half a minute, a minute, two, and so on. */
    assert_in_range(c->nodes[0].n_uses, 4, 18);
    couple_stop(c);
}

/* Much is lost on the direct path. Only a relay of which both ends know that it answers is better:
 * one that is full itself loses just as much. */
static void test_a_relay_that_is_not_known_to_be_better(void **state)
{
    struct couple *c = &couple;

    for (unsigned is_known = 0; is_known < 2; is_known++) {
        couple_start(c, PATH_POLICY_AUTO);
        couple_tell(c);
        set_relay(c, is_known ? 30 * MSEC : 0);
        couple_run_with_traffic(c, 10 * SEC);
        couple_assert_direct(c);
        for (unsigned i = 0; i < 100; i++) {
            c->nodes[0].is_deaf = i % 2 == 0;
            couple_run_with_traffic(c, 500 * MSEC);
        }
        assert_int_equal(c->nodes[0].n_uses > 2, is_known);
        c->nodes[0].is_deaf = false;
        couple_run_with_traffic(c, 20 * SEC);
        couple_assert_direct(c);
        couple_stop(c);
    }
}

/* What was found of a path that answered is not said of one that does not any more. */
static void test_verdict_falls_with_its_evidence(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 19 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    set_relay(c, 5 * MSEC);
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_relayed(c);
    for (unsigned i = 0; i < 2; i++) {
        assert_non_null(strstr(couple_view(c, i).why, "the relay is faster"));
        c->nodes[i].is_deaf = true;
    }
    couple_run_with_traffic(c, 30 * SEC);
    for (unsigned i = 0; i < 2; i++)
        if (strstr(couple_view(c, i).why, "the relay is faster"))
            fail_msg("%u: %s", i, couple_view(c, i).why);
    couple_stop(c);
}

static void test_better_path_is_taken_soon(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 5 * MSEC);
    couple_run_with_traffic(c, 120 * SEC);
    couple_assert_relayed(c);
    set_relay(c, 60 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

/* An answer that was late by itself, as when an uplink changes, is no reason to leave. */
static void test_one_late_answer_is_nothing(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    c->slow_until = c->now + 450 * MSEC;
    c->slow_by = 400 * MSEC;
    couple_run_with_traffic(c, SEC);
    assert_true(couple_view(c, 0).rtt > 60 * MSEC || couple_view(c, 1).rtt > 60 * MSEC);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2); /* the relay, and then this */
    couple_stop(c);
}

/* Answers that come after those of later pings are late, and nothing was lost. */
static void test_late_answers_are_no_loss(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 10 * SEC);
    couple_assert_direct(c);
    for (unsigned n = 0; n < 20; n++) {
        c->slow_until = c->now + (nsec_t)(300 + 20 * n) * MSEC;
        c->slow_by = 400 * MSEC;
        couple_run_with_traffic(c, 2 * SEC);
    }
    couple_assert_direct(c);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(couple_view(c, i).loss_permille, 0);
    couple_stop(c);
}

/* Where many paths begin at once, a first answer tells how busy the nodes were. */
static void test_first_answers_do_not_decide_for_the_relay(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    c->slow_until = c->now + 200 * MSEC;
    c->slow_by = 50 * MSEC;
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 3 * SEC);
    couple_assert_direct(c);
    assert_int_equal(c->nodes[0].n_uses, 2); /* the relay, and then this */
    couple_stop(c);
    /* One that stays slow is left to the relay, and both ends say so. */
    couple_start(c, PATH_POLICY_AUTO);
    c->slow_until = NSEC_NEVER;
    c->slow_by = 50 * MSEC;
    set_relay(c, 15 * MSEC);
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_relayed(c);
    assert_non_null(strstr(couple_view(c, 0).why, "the relay is faster"));
    assert_non_null(strstr(couple_view(c, 1).why, "the relay is faster"));
    couple_stop(c);
}

static void test_hub_absence_changes_nothing_direct(void **state)
{
    struct couple *c = &couple;

    couple_start(c, PATH_POLICY_AUTO);
    couple_tell(c);
    couple_run_with_traffic(c, 5 * SEC);
    for (unsigned i = 0; i < 2; i++)
        paths_on_relay(c->nodes[i].paths, false, c->now);
    c->nodes[0].is_deaf = true;
    couple_run_with_traffic(c, 20 * SEC);
    couple_assert_relayed(c);
    /* From the last candidates, at slots that come each ten seconds without a relay. */
    c->nodes[0].is_deaf = false;
    couple_run_with_traffic(c, 12 * SEC);
    couple_assert_direct(c);
    couple_stop(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_better_only_after_a_while_and_by_the_first),
        cmocka_unit_test(test_better_for_both_without_a_session),
        cmocka_unit_test(test_little_better_is_not_worth_it),
        cmocka_unit_test(test_lost_one_is_left_at_once_by_either),
        cmocka_unit_test(test_announced_anew_is_gone_back_to),
        cmocka_unit_test(test_relayed_pair_sends_nothing),
        cmocka_unit_test(test_relay_that_is_better),
        cmocka_unit_test(test_relay_has_to_carry_what_is_sent),
        cmocka_unit_test(test_one_late_answer_is_nothing),
        cmocka_unit_test(test_late_answers_are_no_loss),
        cmocka_unit_test(test_busy_time_is_no_reason),
        cmocka_unit_test(test_path_that_became_slow),
        cmocka_unit_test(test_edge_does_not_go_to_and_fro),
        cmocka_unit_test(test_a_relay_that_is_not_known_to_be_better),
        cmocka_unit_test(test_verdict_falls_with_its_evidence),
        cmocka_unit_test(test_better_path_is_taken_soon),
        cmocka_unit_test(test_first_answers_do_not_decide_for_the_relay),
        cmocka_unit_test(test_hub_absence_changes_nothing_direct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
