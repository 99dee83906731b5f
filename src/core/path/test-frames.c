/* test-frames.c - what a node answers its peer's frames with, and how the two agree on a pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "path/paths.h"
#include "test/support/path_solo.h"

#define MSEC NSEC_PER_MSEC
#define SEC  NSEC_PER_SEC

/* ---- what is answered ------------------------------------------------------------------------ */

static void test_a_ping_is_answered_with_what_it_asked(void **state)
{
    static const struct {
        nsec_t held;
        uint32_t held_us;
    } cases[] = {{0, 0}, {1999, 1}, {7 * MSEC, 7000}, {SEC - 1, 999999}, {SEC, 0}, {-MSEC, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct solo *w = solo_start(true);
        struct path_frame ping = solo_next_frame(w, PATH_FRAME_PING);
        const struct solo_sent *pong;

        ping.transaction = 1234;
        ping.clock = 99;
        solo_deliver_held(w, &ping, &w->host, PATH_SOCKET_MAIN, PATH_FRAME_MIN + 50, cases[i].held);
        pong = solo_last_of(w, PATH_FRAME_PONG);
        assert_int_equal(pong->f.transaction, 1234);
        assert_int_equal(pong->f.clock, 99);
        assert_int_equal(pong->f.echo, w->session);
        assert_int_equal(pong->f.held_us, cases[i].held_us);
        assert_int_equal(pong->f.size, 0);
        assert_int_equal(pong->f.flags, 0);
        assert_true(endpoint_equal(&pong->f.observed, &w->host));
        assert_true(endpoint_equal(&pong->to, &w->host));
        assert_true(ip_addr_equal(&pong->local, &w->local));
        assert_int_equal(pong->len, PATH_FRAME_MIN);
        assert_false(pong->dont_fragment);
        assert_int_equal(paths_counters(w->paths)->frames_received, 1);
        solo_stop(w);
    }
}

/* One that may be an old one is answered and makes the node ask back, and no more. */
static void test_an_unproven_run_is_asked_and_not_believed(void **state)
{
    struct solo *w = solo_start(false);
    struct path_frame f = solo_next_frame(w, PATH_FRAME_PING);
    unsigned n_pings;

    solo_deliver(w, &f);
    assert_int_equal(solo_count_of(w, PATH_FRAME_PONG), 1);
    n_pings = solo_count_of(w, PATH_FRAME_PING);
    assert_int_equal(n_pings, 1);
    assert_true(ip_addr_equal(&solo_last_of(w, PATH_FRAME_PING)->local, &w->local));
    f = solo_next_frame(w, PATH_FRAME_NOMINATE);
    solo_deliver(w, &f);
    f = solo_next_frame(w, PATH_FRAME_PROBE);
    solo_deliver(w, &f);
    assert_int_equal(paths_counters(w->paths)->refused_replay, 2);
    assert_int_equal(solo_count_of(w, PATH_FRAME_ACCEPT), 0);
    assert_int_equal(solo_count_of(w, PATH_FRAME_PROBE_ACK), 0);
    assert_int_equal(w->n_uses, 1);
    solo_stop(w);
}

/* A pong of a ping that was sent by another run of the node proves nothing. */
static void test_a_pong_for_another_run_proves_nothing(void **state)
{
    struct solo *w = solo_start(true);
    struct path_frame f;
    struct solo_sent ping;

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 0);
    ping = *solo_last_of(w, PATH_FRAME_PING);
    w->echo++;
    solo_answer(w, &ping, 0);
    w->echo--;
    f = solo_next_frame(w, PATH_FRAME_PROBE);
    solo_deliver(w, &f);
    assert_int_equal(solo_count_of(w, PATH_FRAME_PROBE_ACK), 0);
    solo_answer(w, &ping, 0);
    f = solo_next_frame(w, PATH_FRAME_PROBE);
    solo_deliver(w, &f);
    assert_int_equal(solo_count_of(w, PATH_FRAME_PROBE_ACK), 1);
    /* Nor does it count as fresh that it names another run of the node. */
    f = solo_next_frame(w, PATH_FRAME_PROBE);
    f.echo++;
    solo_deliver(w, &f);
    assert_int_equal(solo_count_of(w, PATH_FRAME_PROBE_ACK), 1);
    solo_stop(w);
}

static void test_each_sequence_counts_once(void **state)
{
    /* What comes in after 100, in this order, and whether it is taken. */
    static const struct {
        uint64_t sequence;
        bool is_taken;
    } cases[] = {{100, false}, {99, true}, {99, false}, {37, true}, {37, false}, {36, false},
        {101, true}, {100, false}, {38, true}, {164, true}, {100, false}, {102, true}, {101, false},
        {228, true}, {164, false}, {165, true}, {229, true}, {228, false}, {1000, true},
        {937, true}, {936, false}, {999, true}, {1000, false}};
    struct solo *w = solo_start(true);

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 0);
    w->sequence = 99;
    solo_answer_after(w, 20 * MSEC);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        unsigned n_acks = solo_count_of(w, PATH_FRAME_PROBE_ACK);
        uint64_t n_refused = paths_counters(w->paths)->refused_replay;
        struct path_frame f = solo_next_frame(w, PATH_FRAME_PROBE);

        f.sequence = cases[i].sequence;
        solo_deliver(w, &f);
        if ((solo_count_of(w, PATH_FRAME_PROBE_ACK) > n_acks) != cases[i].is_taken)
            fail_msg("case %zu, sequence %llu", i, (unsigned long long)cases[i].sequence);
        assert_int_equal(paths_counters(w->paths)->refused_replay, n_refused + !cases[i].is_taken);
    }
    solo_stop(w);
}

static void test_a_probe_is_answered_with_its_size(void **state)
{
    for (unsigned whole = 0; whole < 2; whole++) {
        struct solo *w = solo_start_proven(true);
        struct path_frame probe = solo_next_frame(w, PATH_FRAME_PROBE);
        const struct solo_sent *ack;

        probe.transaction = 55;
        probe.flags = whole ? PATH_FRAME_WHOLE : 0;
        solo_deliver_held(w, &probe, &w->host, PATH_SOCKET_MAIN, 1400, 0);
        ack = solo_last_of(w, PATH_FRAME_PROBE_ACK);
        assert_int_equal(ack->f.transaction, 55);
        assert_int_equal(ack->f.size, 1400);
        assert_int_equal(ack->len, whole ? 1400 : PATH_FRAME_MIN);
        assert_int_equal(ack->dont_fragment, whole);
        solo_stop(w);
    }
}

/* Each frame says who sends it, whom to, and that it is the next. */
static void test_frames_are_numbered(void **state)
{
    struct solo *w = solo_start(true);

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    solo_run(w, 1 * SEC);
    assert_true(w->n_sent > 2);
    for (unsigned i = 0; i < w->n_sent; i++) {
        const struct solo_sent *s = &w->sent[i];

        assert_int_equal(s->f.kind, PATH_FRAME_PING);
        assert_int_equal(s->f.session, w->echo);
        assert_int_equal(s->f.echo, 0);
        assert_int_equal(s->f.sequence, i + 1);
        assert_int_equal(s->f.transaction, i + 1);
        assert_int_equal(s->f.clock, (uint64_t)s->at);
        assert_int_equal(s->f.flags, 0);
    }
    solo_answer(w, solo_last_of(w, PATH_FRAME_PING), 0);
    solo_run(w, 0);
    assert_int_equal(solo_last_of(w, PATH_FRAME_PING)->f.echo, w->session);
    assert_int_equal(solo_last_of(w, PATH_FRAME_PING)->f.flags, PATH_FRAME_ANSWERED);
    assert_true(ip_addr_equal(&solo_last_of(w, PATH_FRAME_PING)->local, &w->local));
    solo_stop(w);
}

/* ---- agreeing -------------------------------------------------------------------------------- */

static void nominate(struct solo *w, uint64_t transaction)
{
    struct path_frame f = solo_next_frame(w, PATH_FRAME_NOMINATE);

    f.transaction = transaction;
    solo_deliver(w, &f);
}

static void assert_used(const struct solo *w)
{
    assert_int_equal(w->use.path, PATH_KIND_DIRECT);
    assert_true(endpoint_equal(&w->use.remote, &w->host));
    assert_int_equal(w->use.socket, PATH_SOCKET_MAIN);
    assert_true(ip_addr_equal(&w->use.local, &w->local));
    assert_int_equal(solo_view(w).kind, PATH_KIND_DIRECT);
}

static void test_a_nomination_of_what_works_is_accepted_at_once(void **state)
{
    struct solo *w = solo_start_proven(false);

    solo_run(w, 3900 * MSEC);
    nominate(w, 5);
    assert_int_equal(solo_last_of(w, PATH_FRAME_ACCEPT)->f.transaction, 5);
    assert_int_equal(w->n_uses, 2);
    assert_used(w);
    /* Its answer may be lost: the repeated one is accepted as well, and changes nothing. */
    nominate(w, 6);
    assert_int_equal(solo_count_of(w, PATH_FRAME_ACCEPT), 2);
    assert_int_equal(w->n_uses, 2);
    solo_stop(w);
}

static void test_a_nomination_waits_for_the_way_to_work(void **state)
{
    /* When the answer comes after the nomination. */
    static const struct {
        nsec_t after;
        bool is_taken;
    } cases[] = {{1 * SEC, true}, {1999 * MSEC, true}, {2000 * MSEC, false}, {3 * SEC, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct solo *w = solo_start_proven(false);
        unsigned n_pings;

        /* The answer was too long ago. */
        solo_run(w, 4001 * MSEC);
        n_pings = solo_count_of(w, PATH_FRAME_PING);
        nominate(w, 5);
        assert_int_equal(solo_count_of(w, PATH_FRAME_ACCEPT), 0);
        assert_int_equal(solo_count_of(w, PATH_FRAME_PING), n_pings + 1);
        solo_run(w, cases[i].after);
        solo_answer(w, solo_last_of(w, PATH_FRAME_PING), 0);
        assert_int_equal(solo_count_of(w, PATH_FRAME_ACCEPT), cases[i].is_taken);
        if (cases[i].is_taken) {
            assert_int_equal(solo_last_of(w, PATH_FRAME_ACCEPT)->f.transaction, 5);
            assert_used(w);
        }
        assert_int_equal(w->n_uses, cases[i].is_taken ? 2 : 1);
        solo_stop(w);
    }
}

static void test_who_nominates_takes_no_nomination(void **state)
{
    struct solo *w = solo_start_proven(true);

    nominate(w, 5);
    assert_int_equal(solo_count_of(w, PATH_FRAME_ACCEPT), 0);
    assert_int_equal(w->n_uses, 1);
    solo_stop(w);
}

/* After two answers, and after the time in which a better pair may follow. */
static struct solo *start_nominated(void)
{
    struct solo *w = solo_start_proven(true);

    assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), 0);
    solo_answer_after(w, 20 * MSEC);
    solo_run(w, SOLO_T0 + 119 * MSEC - w->now);
    assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), 0);
    solo_run(w, 1 * MSEC);
    assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), 1);
    assert_int_equal(w->n_uses, 1);
    return w;
}

static void accept_it(struct solo *w, uint64_t transaction)
{
    struct path_frame f = solo_next_frame(w, PATH_FRAME_ACCEPT);

    f.transaction = transaction;
    solo_deliver(w, &f);
}

static void test_a_pair_is_used_when_its_nomination_is_accepted(void **state)
{
    struct solo *w = start_nominated();
    uint64_t transaction = solo_last_of(w, PATH_FRAME_NOMINATE)->f.transaction;

    accept_it(w, transaction + 1);
    assert_int_equal(w->n_uses, 1);
    accept_it(w, transaction);
    assert_int_equal(w->n_uses, 2);
    assert_used(w);
    assert_int_equal(paths_counters(w->paths)->switches, 1);
    /* Accepted: it is not sent again. */
    solo_run(w, 500 * MSEC);
    assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), 1);
    solo_stop(w);
}

static void test_a_nomination_is_repeated_and_given_up(void **state)
{
    struct solo *w = start_nominated();
    nsec_t first_at = solo_last_of(w, PATH_FRAME_NOMINATE)->at;
    uint64_t transaction = solo_last_of(w, PATH_FRAME_NOMINATE)->f.transaction;
    unsigned n = 0;

    solo_run(w, 1500 * MSEC);
    for (unsigned i = 0; i < w->n_sent; i++)
        if (w->sent[i].f.kind == PATH_FRAME_NOMINATE) {
            assert_int_equal(w->sent[i].at, first_at + n++ * 170 * MSEC);
            assert_int_equal(w->sent[i].f.transaction, transaction);
        }
    assert_int_equal(n, 8);
    /* Too late, and the pair is not tried again at once. */
    accept_it(w, transaction);
    assert_int_equal(w->n_uses, 1);
    solo_stop(w);
}

static struct solo *start_direct(void)
{
    struct solo *w = start_nominated();

    accept_it(w, solo_last_of(w, PATH_FRAME_NOMINATE)->f.transaction);
    assert_used(w);
    return w;
}

/* A pong says whether the node's packets to the peer go that way. */
static void test_pongs_tell_which_pair_is_used(void **state)
{
    struct solo *w = start_direct();
    struct path_frame ping = solo_next_frame(w, PATH_FRAME_PING);
    struct endpoint other = w->host;

    solo_deliver(w, &ping);
    assert_int_equal(solo_last_of(w, PATH_FRAME_PONG)->f.flags, PATH_FRAME_IN_USE);
    other.port++;
    ping = solo_next_frame(w, PATH_FRAME_PING);
    solo_deliver_held(w, &ping, &other, PATH_SOCKET_MAIN, PATH_FRAME_MIN, 0);
    assert_int_equal(solo_last_of(w, PATH_FRAME_PONG)->f.flags, 0);
    solo_stop(w);
}

static void test_leave_of_the_peer_is_followed(void **state)
{
    for (unsigned worse = 0; worse < 2; worse++) {
        struct solo *w = start_direct();
        struct path_frame f = solo_next_frame(w, PATH_FRAME_LEAVE);
        struct endpoint other = w->host;
        uint64_t agreed = w->sequence - 1;

        /* Of another pair. */
        other.port++;
        f.flags = worse ? PATH_FRAME_WORSE : 0;
        solo_deliver_held(w, &f, &other, PATH_SOCKET_MAIN, PATH_FRAME_MIN, 0);
        assert_used(w);
        /* From before the two had agreed: it came late. */
        f = solo_next_frame(w, PATH_FRAME_LEAVE);
        f.flags = worse ? PATH_FRAME_WORSE : 0;
        f.sequence = agreed - 1;
        solo_deliver(w, &f);
        assert_used(w);
        f.sequence = ++w->sequence;
        solo_deliver(w, &f);
        assert_int_equal(w->use.path, PATH_KIND_RELAY);
        assert_int_equal(w->n_uses, 3);
        /* It died, then its address may be another one now. */
        assert_int_equal(w->n_fresh, worse ? 0 : 1);
        assert_int_equal(
            strstr(solo_view(w).why, "the relay is faster or loses less") != NULL, worse);
        assert_int_equal(strstr(solo_view(w).why, "stopped answering 0 s ago") != NULL, !worse);
        solo_stop(w);
    }
}

static void leave_with(struct solo *w, uint64_t sequence)
{
    struct path_frame f = solo_next_frame(w, PATH_FRAME_LEAVE);

    f.sequence = sequence;
    solo_deliver(w, &f);
}

/* The end that follows takes no word to leave that is older than the nomination. */
static void test_leave_from_before_a_nomination(void **state)
{
    struct solo *w = solo_start_proven(false);
    uint64_t agreed;

    w->sequence += 2;
    nominate(w, 5);
    agreed = w->sequence;
    assert_used(w);
    leave_with(w, agreed - 1);
    assert_used(w);
    leave_with(w, agreed + 1);
    assert_int_equal(w->use.path, PATH_KIND_RELAY);
    solo_stop(w);
}

/* A peer that was started anew counts from the beginning: its word to leave is no old one. */
static void test_leave_of_another_run_of_the_peer(void **state)
{
    struct solo *w = start_direct();
    struct path_frame ping;

    for (unsigned i = 0; i < 50; i++)
        (void)solo_next_frame(w, PATH_FRAME_PING);
    nominate(w, 5);
    solo_run(w, 10 * SEC);
    w->session++;
    w->sequence = 0;
    ping = solo_next_frame(w, PATH_FRAME_PING);
    solo_deliver(w, &ping);
    solo_answer(w, solo_last_of(w, PATH_FRAME_PING), PATH_FRAME_IN_USE);
    assert_used(w);
    leave_with(w, ++w->sequence);
    assert_int_equal(w->use.path, PATH_KIND_RELAY);
    solo_stop(w);
}

/* A peer whose address has changed says so in its pings: the node that chooses follows it. */
static void test_a_peer_that_moves_is_followed(void **state)
{
    for (unsigned moved = 0; moved < 2; moved++) {
        struct solo *w = start_direct();
        struct path_frame ping = solo_next_frame(w, PATH_FRAME_PING);
        struct endpoint before = w->host;
        unsigned n_nominated = solo_count_of(w, PATH_FRAME_NOMINATE);

        w->host.port++;
        ping.flags = moved ? PATH_FRAME_MOVED : 0;
        solo_deliver(w, &ping);
        /* It is asked back at, and no more: anybody could say so. */
        assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), n_nominated);
        assert_true(endpoint_equal(&solo_last_of(w, PATH_FRAME_PING)->to, &w->host));
        solo_answer_after(w, 20 * MSEC);
        assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), n_nominated + moved);
        if (!moved) {
            assert_true(endpoint_equal(&w->use.remote, &before));
            solo_stop(w);
            continue;
        }
        assert_true(endpoint_equal(&solo_last_of(w, PATH_FRAME_NOMINATE)->to, &w->host));
        accept_it(w, solo_last_of(w, PATH_FRAME_NOMINATE)->f.transaction);
        assert_used(w);
        solo_stop(w);
    }
}

/* While the edge is on the relay there is nothing to follow. */
static void test_a_peer_that_moves_is_no_matter_on_the_relay(void **state)
{
    struct solo *w = solo_start_proven(true);
    struct path_frame ping;

    solo_run(w, 1 * SEC);
    ping = solo_next_frame(w, PATH_FRAME_PING);
    w->host.port++;
    ping.flags = PATH_FRAME_MOVED;
    solo_deliver(w, &ping);
    solo_answer_after(w, 20 * MSEC);
    assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), 0);
    assert_int_equal(w->n_uses, 1);
    solo_stop(w);
}

/* The node's own address has changed, as a pong says: the peer has to follow, by a nomination or,
 * where it is the peer that nominates, by the word in a ping. */
static void test_another_own_address_is_told(void **state)
{
    struct solo *w = start_direct();
    struct path_frame pong;
    unsigned n = solo_count_of(w, PATH_FRAME_NOMINATE);

    for (unsigned i = 0; i < 3; i++) {
        solo_run(w, 10 * SEC);
        pong = solo_next_frame(w, PATH_FRAME_PONG);
        pong.flags = PATH_FRAME_IN_USE;
        pong.transaction = solo_last_of(w, PATH_FRAME_PING)->f.transaction;
        pong.clock = solo_last_of(w, PATH_FRAME_PING)->f.clock;
        pong.observed = solo_endpoint("198.51.100.1:51820");
        pong.observed.port += i / 2;
        solo_deliver(w, &pong);
        assert_int_equal(solo_count_of(w, PATH_FRAME_NOMINATE), n + i / 2);
    }
    assert_used(w);
    solo_stop(w);
}

/* What was about to be sent to a peer that goes is not sent, nor is anything else done for it. */
static void test_a_peer_that_goes_is_sent_nothing_more(void **state)
{
    struct solo *w = solo_start(true);
    struct path_action a;

    solo_tell_side(w, CANDIDATE_HOST, NULL);
    paths_tick(w->paths, w->now);
    paths_remove_peer(w->paths, &w->key, w->now);
    assert_false(paths_next(w->paths, &a));
    solo_stop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ping_is_answered_with_what_it_asked),
        cmocka_unit_test(test_an_unproven_run_is_asked_and_not_believed),
        cmocka_unit_test(test_a_pong_for_another_run_proves_nothing),
        cmocka_unit_test(test_each_sequence_counts_once),
        cmocka_unit_test(test_a_probe_is_answered_with_its_size),
        cmocka_unit_test(test_frames_are_numbered),
        cmocka_unit_test(test_a_nomination_of_what_works_is_accepted_at_once),
        cmocka_unit_test(test_a_nomination_waits_for_the_way_to_work),
        cmocka_unit_test(test_who_nominates_takes_no_nomination),
        cmocka_unit_test(test_a_pair_is_used_when_its_nomination_is_accepted),
        cmocka_unit_test(test_a_nomination_is_repeated_and_given_up),
        cmocka_unit_test(test_pongs_tell_which_pair_is_used),
        cmocka_unit_test(test_leave_of_the_peer_is_followed),
        cmocka_unit_test(test_leave_from_before_a_nomination),
        cmocka_unit_test(test_leave_of_another_run_of_the_peer),
        cmocka_unit_test(test_a_peer_that_moves_is_followed),
        cmocka_unit_test(test_a_peer_that_moves_is_no_matter_on_the_relay),
        cmocka_unit_test(test_another_own_address_is_told),
        cmocka_unit_test(test_a_peer_that_goes_is_sent_nothing_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
