/* test-choice.c - which pair an edge uses, step by step: chosen, agreed on, doubted and left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/support/path_edge.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
#define T0  EDGE_T0

#define A   "203.0.113.2:1"
#define B   "203.0.113.3:1"
#define LAN "192.168.1.2:1"

static struct path *pp;

static int begin(void **state)
{
    pp = edge_start();
    return 0;
}

static int end(void **state)
{
    edge_stop();
    return 0;
}

static struct path_pair *answered(const char *text, nsec_t rtt, unsigned n_samples)
{
    struct path_pair *pair = edge_add(CANDIDATE_HOST, text, PATH_SOCKET_MAIN);

    edge_answer(pair, rtt, n_samples);
    return pair;
}

/* A pair that is in use, for @time already. */
static struct path_pair *used(const char *text, uint32_t socket, nsec_t time)
{
    struct path_pair *pair = edge_add(CANDIDATE_HOST, text, socket);

    edge_answer(pair, 20 * MS, 4);
    pp->choice.pair = pair->id;
    pp->choice.since = T0 - time;
    pp->liveness = (struct path_liveness){.next_at = T0 + 7 * SEC};
    return pair;
}

/* Our nomination of it waits for its answer. */
static void nominated(const struct path_pair *pair, uint64_t transaction)
{
    pp->choice.sent = (struct path_nomination){
        .pair = pair->id, .transaction = transaction, .n_sent = 1, .next_at = T0};
}

/* ---- taken into use -------------------------------------------------------------------------- */

static void test_what_is_new_of_a_pair_that_is_used(void **state)
{
    struct path_pair *pair = answered(A, 20 * MS + 567 * NSEC_PER_USEC, 4);
    struct ip_addr local;

    assert_int_equal(ip_addr_parse(&local, "198.51.100.9", NULL), 0);
    pair->contact.local = local;
    pair->record.n_better = 3;
    nominated(pair, 5);
    pp->choice.received.pair = 9;
    pp->choice.moved_to = 9;
    pp->choice.mtu = 1400;
    pp->choice.n_returns = 1;
    pp->choice.alarm_at = T0;
    pp->choice.is_moved = pp->choice.has_left = pp->choice.is_worse = pp->choice.is_alarm = true;
    pp->checks.n_failed = 3;
    pp->guess.again_at = T0 + 3600 * SEC;
    pp->guess.n_tried = 2;
    path__on_accept(pp, pair, 5, T0);
    edge_expect("use direct " A " by 0 from 198.51.100.9\n"
                "event b: direct path " A ", 20.5 ms\n"
                "event b: direct, as it should be: the alarm is over\n");
    assert_int_equal(pp->choice.pair, pair->id);
    assert_int_equal(pp->choice.sent.pair, 0);
    assert_int_equal(pp->choice.received.pair, 0);
    assert_int_equal(pp->choice.moved_to, 0);
    assert_int_equal(pp->choice.mtu, 0);
    assert_int_equal(pp->choice.since, T0);
    assert_int_equal(pp->choice.n_returns, 2);
    assert_int_equal(pp->choice.stay_until, T0 + 60 * SEC);
    assert_true(pp->choice.alarm_at == NSEC_NEVER);
    assert_false(pp->choice.is_moved);
    assert_false(pp->choice.has_left);
    assert_false(pp->choice.is_worse);
    assert_false(pp->choice.is_alarm);
    assert_int_equal(pp->checks.n_failed, 0);
    assert_int_equal(pp->guess.again_at, T0 + 40 * SEC);
    assert_int_equal(pair->record.n_better, 0);
    assert_int_equal(pp->owner->counters.switches, 1);
    assert_int_equal(pp->liveness.next_at, T0 + 10 * SEC);
    assert_int_equal(pp->liveness.agree_at, T0 + 1 * SEC);
    /* Once more, nothing is new. */
    nominated(pair, 6);
    pp->choice.is_moved = true;
    pp->choice.moved_to = 9;
    path__on_accept(pp, pair, 6, T0 + SEC);
    edge_expect("");
    assert_int_equal(pp->choice.since, T0);
    assert_int_equal(pp->choice.moved_to, 0);
    assert_false(pp->choice.is_moved);
    assert_int_equal(pp->owner->counters.switches, 1);
}

static void test_an_answer_to_another_nomination(void **state)
{
    struct path_pair *pair = answered(A, 20 * MS, 4);
    struct path_pair *other = answered(B, 20 * MS, 4);

    pair = path__pair_of(pp, 1);
    nominated(pair, 5);
    path__on_accept(pp, pair, 4, T0);
    path__on_accept(pp, other, 5, T0);
    edge_expect("");
    assert_int_equal(pp->choice.sent.pair, pair->id);
    assert_int_equal(pp->choice.pair, 0);
}

static void test_words_for_each_kind_of_path(void **state)
{
    struct path_pair *pair = answered(LAN, 3 * MS + 99 * NSEC_PER_USEC, 1);
    struct endpoint kept = pair->remote.endpoint;
    static const struct endpoint loopback = {.addr = {.b = {[15] = 1}}, .port = 4000};

    nominated(pair, 5);
    path__on_accept(pp, pair, 5, T0);
    edge_expect("use lan " LAN " by 0 from none\nevent b: lan path " LAN ", 3.0 ms\n");
    /* It has not been alone on the relay, so it need not stay. */
    assert_int_equal(pp->choice.stay_until, 0);
    assert_int_equal(pp->choice.n_returns, 0);
    pp->choice.pair = 0;
    pair->n_samples = 0;
    path__keep(pp, &kept, T0);
    edge_expect(
        "use lan " LAN " by 0 from none\nevent b: lan path " LAN ", kept from before this start\n");
    assert_int_equal(pp->liveness.next_at, T0);
    pp->choice.pair = 0;
    path__keep(pp, &loopback, T0);
    edge_expect("");
}

/* A socket that was opened for the former pair alone is closed. */
static void test_the_socket_of_the_former_pair(void **state)
{
    struct path_pair *pair;

    (void)used(A, 9, 0);
    pair = edge_add(CANDIDATE_HEARD, B, 9);
    edge_answer(pair, 20 * MS, 4);
    pp->owner->guessing.n_sockets = 2;
    nominated(pair, 5);
    path__on_accept(pp, pair, 5, T0);
    edge_expect("use direct " B " by 9 from none\nevent b: direct path " B ", 20.0 ms\n");
    assert_int_equal(pp->owner->guessing.n_sockets, 2);
    pair = answered(A, 20 * MS, 4);
    nominated(pair, 6);
    path__on_accept(pp, pair, 6, T0);
    edge_expect("use direct " A " by 0 from none\nevent b: direct path " A ", 20.0 ms\nclose 9\n");
    assert_int_equal(pp->owner->guessing.n_sockets, 1);
    assert_int_equal(pp->pairs.n, 1);
}

/* Who comes back from a relay stays for half a minute, and twice as long each time. */
static void test_stays_get_longer(void **state)
{
    static const int cases[][2] = {{0, 30}, {1, 60}, {4, 480}, {5, 960}, {6, 1200}, {60, 1200}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct path_pair *pair = answered(A, 20 * MS, 4);

        nominated(pair, 5);
        pp->choice.pair = 0;
        pp->choice.has_left = true;
        pp->choice.n_returns = (unsigned)cases[i][0];
        path__on_accept(pp, pair, 5, T0);
        assert_int_equal(pp->choice.stay_until, T0 + cases[i][1] * SEC);
    }
}

/* ---- nominating ------------------------------------------------------------------------------ */

static void assert_nomination(const struct path_pair *pair, uint64_t transaction)
{
    assert_int_equal(pp->choice.sent.pair, pair->id);
    assert_int_equal(pp->choice.sent.transaction, transaction);
    assert_int_equal(pp->choice.sent.n_sent, 1);
    assert_int_equal(pp->choice.sent.next_at, T0 + 150 * MS + pair->rtt);
}

static void test_when_there_is_something_to_choose(void **state)
{
    struct path_pair *pair = answered(A, 20 * MS, 2);

    pp->choice.choose_at = T0 + 1;
    path__nominate_tick(pp, T0);
    pp->choice.choose_at = T0;
    pp->nominates = false;
    path__nominate_tick(pp, T0);
    pp->nominates = true;
    pp->choice.pair = pair->id;
    path__nominate_tick(pp, T0);
    pp->choice.pair = 0;
    pair->n_samples = 1;
    path__nominate_tick(pp, T0);
    pair->n_samples = 2;
    pair->record.free_at = T0 + 1;
    path__nominate_tick(pp, T0);
    pair->record.free_at = T0;
    pair->valid_at = T0 - 4 * SEC - 1;
    path__nominate_tick(pp, T0);
    edge_expect("");
    pair->valid_at++;
    pp->choice.is_worse = true;
    path__nominate_tick(pp, T0);
    edge_expect("nominate 1 to " A "\n");
    assert_nomination(pair, 1);
    assert_false(pp->choice.is_worse);
    /* It waits for its answer. */
    path__nominate_tick(pp, T0 + 169 * MS);
    edge_expect("");
}

/* The best, and of those that are as good the one with the shorter round trip. */
static void test_which_pair_is_chosen(void **state)
{
    static const struct {
        int rtt_ms[2];
        const char *second;
        const char *words;
    } cases[] = {
        {{30, 20}, B, "nominate 1 to " B "\n"},
        {{20, 30}, B, "nominate 1 to " A "\n"},
        {{21, 20}, B, "nominate 1 to " B "\n"},
        {{20, 21}, B, "nominate 1 to " A "\n"},
        {{20, 20}, B, "nominate 1 to " A "\n"},
        {{20, 21}, LAN, "nominate 1 to " LAN "\n"},
        {{20, 30}, LAN, "nominate 1 to " A "\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        edge_stop();
        pp = edge_start();
        (void)answered(A, cases[i].rtt_ms[0] * MS, 2);
        (void)answered(cases[i].second, cases[i].rtt_ms[1] * MS, 2);
        pp->choice.choose_at = T0;
        path__nominate_tick(pp, T0);
        edge_expect(cases[i].words);
    }
}

/* The relay is better: after four measurements the pair has to wait, and the next slot is soon. */
static void test_a_pair_that_is_worse_than_the_relay(void **state)
{
    struct path_pair *pair = answered(A, 40 * MS, 3);

    edge_relay(5, 10, 10);
    pp->choice.choose_at = T0;
    path__nominate_tick(pp, T0);
    assert_false(pp->choice.is_worse);
    assert_int_equal(pair->record.free_at, 0);
    assert_true(pp->slot.next_at == NSEC_NEVER);
    pair->n_samples = 4;
    path__nominate_tick(pp, T0);
    edge_expect("");
    assert_true(pp->choice.is_worse);
    assert_int_equal(pair->record.free_at, T0 + 4 * SEC);
    assert_in_range(pp->slot.next_at, T0 + 1, T0 + 60 * SEC);
}

/* Eight times, and then the pair is as good as dead, unless it is the one that is in use. */
static void test_a_nomination_without_an_answer(void **state)
{
    struct path_pair *pair = answered(A, 20 * MS, 4);

    nominated(pair, 5);
    pp->choice.sent.n_sent = 7;
    path__nominate_tick(pp, T0 - 1);
    edge_expect("");
    path__nominate_tick(pp, T0);
    edge_expect("nominate 5 to " A "\n");
    assert_int_equal(pp->choice.sent.n_sent, 8);
    assert_int_equal(pp->choice.sent.next_at, T0 + 170 * MS);
    path__nominate_tick(pp, T0 + 170 * MS);
    edge_expect("");
    assert_int_equal(pp->choice.sent.pair, 0);
    assert_int_equal(pair->record.n_deaths, 2);
    assert_int_equal(pair->record.free_at, T0 + 2170 * MS);
    pp->choice.pair = pair->id;
    nominated(pair, 6);
    pp->choice.sent.n_sent = 8;
    path__nominate_tick(pp, T0);
    assert_int_equal(pp->choice.sent.pair, 0);
    assert_int_equal(pair->record.n_deaths, 2);
    /* A pair that is gone. */
    pp->choice.sent.pair = 99;
    pp->choice.sent.n_sent = 1;
    path__nominate_tick(pp, T0);
    edge_expect("");
    assert_int_equal(pp->choice.sent.pair, 0);
}

static void test_the_peers_nomination(void **state)
{
    struct path_pair *pair = answered(A, 20 * MS, 4);

    path__on_nominate(pp, pair, 8, T0);
    edge_expect("");
    assert_int_equal(pp->choice.pair, 0);
    /* Of a pair that does not work here yet: it is asked, and remembered for two seconds. */
    pp->nominates = false;
    pair->valid_at = 0;
    path__on_nominate(pp, pair, 8, T0);
    edge_expect("ping 1 to " A " flags 1\n");
    assert_int_equal(pp->choice.received.pair, pair->id);
    assert_int_equal(pp->choice.received.transaction, 8);
    assert_int_equal(pp->choice.received.next_at, T0 + 2 * SEC);
    /* Unless that address has been asked too much. */
    pair->answered_at = 0;
    assert_true(path__may_ping(pp, pair, 512, T0));
    path__on_nominate(pp, pair, 9, T0 + 1);
    edge_expect("");
    assert_int_equal(pp->choice.received.transaction, 9);
    pair->valid_at = T0;
    pp->liveness.n_disagreed = 1;
    path__on_nominate(pp, pair, 10, T0);
    edge_expect("accept 10 to " A "\nuse direct " A " by 0 from none\nevent b: direct path " A
                ", 20.0 ms\n");
    assert_int_equal(pp->choice.received.pair, 0);
    /* The pair in use need not have answered of late. */
    pair->valid_at = 0;
    pp->liveness.n_disagreed = 1;
    path__on_nominate(pp, pair, 11, T0 + 5 * SEC);
    edge_expect("accept 11 to " A "\n");
    assert_int_equal(pp->liveness.n_disagreed, 0);
    assert_int_equal(pp->liveness.agree_at, T0 + 6 * SEC);
}

/* ---- measured -------------------------------------------------------------------------------- */

static void test_a_measured_pair_that_the_peer_waits_for(void **state)
{
    for (unsigned late = 0; late < 2; late++) {
        struct path_pair *pair = answered(A, 20 * MS, 2);

        pp->nominates = false;
        pp->choice.pair = 0;
        pp->choice.received =
            (struct path_nomination){.pair = pair->id, .transaction = 8, .next_at = T0 + 1 - late};
        path__on_measured(pp, pair, T0);
        edge_expect(late ? ""
                         : "accept 8 to " A "\nuse direct " A
                           " by 0 from none\nevent b: direct path " A ", 20.0 ms\n");
        assert_int_equal(pp->choice.received.pair, 0);
    }
}

/* A first answer is followed by a second ping at once, and the choice waits a little. */
static void test_first_measurements(void **state)
{
    struct path_pair *pair = answered(A, 20 * MS, 1);
    struct path_pair *lan;

    path__on_measured(pp, pair, T0);
    edge_expect("ping 1 to " A " flags 1\n");
    assert_int_equal(pp->choice.choose_at, T0 + 100 * MS);
    pair->n_samples = 2;
    path__on_measured(pp, pair, T0 + 20 * MS);
    edge_expect("");
    assert_int_equal(pp->choice.choose_at, T0 + 100 * MS);
    /* There is none better than one of the private network. */
    lan = answered(LAN, 1 * MS, 2);
    path__on_measured(pp, lan, T0 + 30 * MS);
    edge_expect("nominate 2 to " LAN "\n");
    assert_int_equal(pp->choice.choose_at, T0 + 30 * MS);
    /* The pair that is in use already is not asked for anything more. */
    lan->n_samples = 1;
    pp->choice.pair = lan->id;
    pp->choice.sent.pair = 0;
    path__on_measured(pp, lan, T0 + 40 * MS);
    edge_expect("");
    pp->nominates = false;
    pp->choice.pair = 0;
    lan->n_samples = 2;
    path__on_measured(pp, lan, T0 + 50 * MS);
    edge_expect("");
}

/* A challenger is nominated when it has been better twice in a row. */
static void test_a_better_pair(void **state)
{
    struct path_pair *other;

    (void)used(A, PATH_SOCKET_MAIN, SEC);
    other = answered(B, 10 * MS, 3);
    path__on_measured(pp, other, T0);
    assert_int_equal(other->record.n_better, 1);
    other->rtt = 18 * MS;
    path__on_measured(pp, other, T0);
    assert_int_equal(other->record.n_better, 0);
    other->rtt = 10 * MS;
    path__on_measured(pp, other, T0);
    other->record.free_at = T0 + 1;
    path__on_measured(pp, other, T0);
    assert_int_equal(other->record.n_better, 0);
    other->record.free_at = T0;
    path__on_measured(pp, other, T0);
    edge_expect("");
    /* Of two measurements it is not sure, nor while another nomination is under way. */
    other->n_samples = 2;
    path__on_measured(pp, other, T0);
    other->n_samples = 3;
    pp->choice.sent.pair = 1;
    path__on_measured(pp, other, T0);
    edge_expect("");
    assert_int_equal(other->record.n_better, 3);
    pp->choice.sent.pair = 0;
    path__on_measured(pp, other, T0);
    edge_expect("nominate 1 to " B "\n");
    assert_nomination(other, 1);
}

/* What flows now has to pass there: a probe of that size asks, once a second. */
static void test_a_better_pair_is_asked_whether_packets_pass(void **state)
{
    struct path_pair *other;
    nsec_t spent;

    (void)used(A, PATH_SOCKET_MAIN, SEC);
    other = answered(B, 10 * MS, 3);
    other->record.n_better = 5;
    pp->choice.mtu = 1400;
    spent = pp->owner->budget.begin.rate.full_at;
    path__on_measured(pp, other, T0);
    edge_expect("probe 1 to " B " size 1432\n");
    assert_int_equal(other->record.probe, 1);
    assert_int_equal(other->record.probed_at, T0);
    assert_true(pp->owner->budget.begin.rate.full_at > spent);
    path__on_measured(pp, other, T0 + SEC - 1);
    edge_expect("");
    path__on_measured(pp, other, T0 + SEC);
    edge_expect("probe 2 to " B " size 1432\n");
    /* Known for ten seconds, and for that size. */
    other->record.fits = 1432;
    other->record.fits_at = T0 - 9 * SEC;
    path__on_measured(pp, other, T0 + SEC);
    edge_expect("");
    other->record.fits_at++;
    other->record.fits--;
    path__on_measured(pp, other, T0 + SEC);
    edge_expect("");
    other->record.fits++;
    path__on_measured(pp, other, T0 + SEC);
    edge_expect("nominate 3 to " B "\n");
}

static void test_what_a_probe_of_a_better_pair_brings(void **state)
{
    struct path_pair *pair = used(A, PATH_SOCKET_MAIN, SEC);
    struct path_pair *other = answered(B, 10 * MS, 3);

    pair = path__pair_of(pp, pp->choice.pair);
    pair->record.probe = 6;
    other->record.probe = 7;
    other->record.n_better = 2;
    assert_false(path__on_fits(pp, 8, 1432, T0));
    assert_int_equal(pair->record.fits, 0);
    assert_int_equal(other->record.fits, 0);
    pair->record.n_better = 2;
    assert_true(path__on_fits(pp, 6, 1432, T0));
    assert_int_equal(pair->record.fits, 1432);
    assert_int_equal(pair->record.fits_at, T0);
    pp->nominates = false;
    assert_true(path__on_fits(pp, 7, 1432, T0));
    pp->nominates = true;
    pp->choice.pair = 0;
    assert_true(path__on_fits(pp, 7, 1432, T0));
    pp->choice.pair = pair->id;
    other->record.n_better = 1;
    assert_true(path__on_fits(pp, 7, 1432, T0));
    other->record.n_better = 2;
    pp->choice.sent.pair = pair->id;
    assert_true(path__on_fits(pp, 7, 1432, T0));
    pp->choice.sent.pair = 0;
    edge_expect("");
    assert_true(path__on_fits(pp, 7, 1432, T0));
    edge_expect("nominate 1 to " B "\n");
    assert_nomination(other, 1);
}

/* ---- addresses that change ------------------------------------------------------------------- */

static void test_a_peer_that_has_moved(void **state)
{
    struct path_pair *pair = used(A, PATH_SOCKET_MAIN, SEC);
    struct path_pair *other = answered(B, 30 * MS, 4);

    pair = path__pair_of(pp, pp->choice.pair);
    pp->nominates = false;
    path__on_peer_moved(pp, other, T0);
    pp->nominates = true;
    pp->choice.pair = 0;
    path__on_peer_moved(pp, other, T0);
    pp->choice.pair = pair->id;
    path__on_peer_moved(pp, pair, T0);
    edge_expect("");
    assert_int_equal(pp->choice.moved_to, 0);
    /* Where it does not answer yet, it is followed once it does, whatever the round trip is. */
    other->valid_at = 0;
    path__on_peer_moved(pp, other, T0);
    edge_expect("");
    assert_int_equal(pp->choice.moved_to, other->id);
    other->valid_at = T0;
    pp->choice.sent.pair = pair->id;
    path__on_measured(pp, other, T0);
    edge_expect("");
    assert_int_equal(pp->choice.moved_to, other->id);
    pp->choice.sent.pair = 0;
    path__on_measured(pp, other, T0);
    edge_expect("nominate 1 to " B "\n");
    assert_nomination(other, 1);
    assert_int_equal(pp->choice.moved_to, 0);
    pp->choice.sent.pair = 0;
    path__on_peer_moved(pp, other, T0);
    edge_expect("nominate 2 to " B "\n");
}

static void test_another_address_of_our_own(void **state)
{
    struct path_pair *pair = used(A, PATH_SOCKET_MAIN, SEC);

    path__on_self_moved(pp, pair, T0);
    edge_expect("nominate 1 to " A "\n");
    assert_nomination(pair, 1);
    assert_false(pp->choice.is_moved);
    pp->nominates = false;
    pp->liveness.n_disagreed = 1;
    path__on_self_moved(pp, pair, T0);
    edge_expect("ping 2 to " A " flags 3\n");
    assert_true(pp->choice.is_moved);
    assert_int_equal(pp->liveness.n_disagreed, 0);
    assert_int_equal(pp->liveness.agree_at, T0 + SEC);
}

/* ---- left ------------------------------------------------------------------------------------ */

#define NOT_HEARD_AT "event b: it is not heard any more, as the other end says, at "
#define NOW_RELAYED  "; through the relay again\n"

static void test_a_pair_that_the_peer_has_left(void **state)
{
    struct path_pair *pair = used(A, PATH_SOCKET_MAIN, SEC);
    struct path_pair *other = answered(B, 30 * MS, 4);

    pair = path__pair_of(pp, pp->choice.pair);
    edge_relay(5, 10, 20);
    path__on_leave(pp, other, 0, T0);
    path__on_leave(pp, other, PATH_FRAME_WORSE, T0);
    edge_expect("");
    assert_int_equal(pp->choice.pair, pair->id);
    pp->choice.is_worse = true;
    /* A round that runs says nothing any more: all is tried from the beginning. */
    pp->checks.round = (struct path_round){.next_at = T0 + SEC, .step = 4};
    path__on_leave(pp, pair, 0, T0);
    edge_expect("fresh\nuse relay 5, 30 ms\n" NOT_HEARD_AT A NOW_RELAYED);
    assert_true(pair->record.has_died);
    assert_int_equal(pair->record.n_deaths, 1);
    assert_int_equal(pair->record.free_at, 0);
    assert_int_equal(pair->valid_at, 0);
    assert_int_equal(pair->n_samples, 0);
    assert_false(pair->is_answered);
    assert_int_equal(pp->choice.pair, 0);
    assert_int_equal(pp->choice.died_at, T0);
    assert_false(pp->choice.is_worse);
    assert_int_equal(pp->checks.round.next_at, T0);
    assert_int_equal(pp->checks.round.step, 0);
    assert_true(pp->checks.round.is_full);
    assert_int_equal(pp->checks.begun_at, T0);
    assert_int_equal(pp->owner->counters.rounds, 1);
    /* Because the relay is better: that is no death. */
    pp->choice.pair = other->id;
    path__on_leave(pp, other, PATH_FRAME_WORSE, T0);
    edge_expect("use relay 5, 30 ms\nevent b: the relay is better than the direct path\n");
    assert_true(pp->choice.is_worse);
    assert_false(other->record.has_died);
    assert_int_equal(other->record.n_deaths, 0);
    assert_int_equal(other->valid_at, T0);
}

/* One that dies again and again is not used for longer and longer. */
static void test_deaths_in_a_row(void **state)
{
    static const struct {
        unsigned n_deaths;
        nsec_t used_for;
        unsigned n_after;
        nsec_t held_for; /* s */
    } cases[] = {{0, SEC, 1, 0}, {1, SEC, 2, 2}, {2, SEC, 3, 4}, {5, SEC, 6, 32}, {6, SEC, 7, 60},
        {40, 300 * SEC - 1, 41, 60}, {40, 300 * SEC, 1, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct path_pair *pair = used(A, PATH_SOCKET_MAIN, cases[i].used_for);

        pair->record.n_deaths = cases[i].n_deaths;
        pair->record.free_at = 0;
        path__on_leave(pp, pair, 0, T0);
        assert_int_equal(pair->record.n_deaths, cases[i].n_after);
        assert_int_equal(
            pair->record.free_at, cases[i].held_for ? T0 + cases[i].held_for * SEC : 0);
    }
}

/* When many paths die at once, the servers are asked once a second. */
static void test_the_address_is_asked_for_once_a_second(void **state)
{
    static const nsec_t times[] = {0, SEC - 1, SEC, SEC + 1, 2 * SEC};

    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        struct path_pair *pair = used(A, PATH_SOCKET_MAIN, SEC);

        path__on_leave(pp, pair, 0, T0 + times[i]);
        edge_expect(i == 1 || i == 3 ? "use relay 0, 0 ms\n" NOT_HEARD_AT A NOW_RELAYED
                                     : "fresh\nuse relay 0, 0 ms\n" NOT_HEARD_AT A NOW_RELAYED);
        assert_int_equal(
            pp->owner->asking.death_at, T0 + (i == 3 || i == 1 ? times[i - 1] : times[i]));
    }
}

static void test_the_pair_in_use_is_asked(void **state)
{
    nsec_t spent;

    /* There is none. */
    pp->liveness.next_at = T0;
    path__chosen_tick(pp, T0);
    edge_expect("");
    assert_int_equal(pp->liveness.next_at, T0);
    (void)used(A, PATH_SOCKET_MAIN, SEC);
    path__chosen_tick(pp, T0 + 7 * SEC - 1);
    edge_expect("");
    spent = pp->owner->budget.begin.rate.full_at;
    path__chosen_tick(pp, T0 + 7 * SEC);
    edge_expect("ping 1 to " A " flags 1\n");
    assert_true(pp->owner->budget.begin.rate.full_at > spent);
    /* While data flows, the counters may say that the peer lives: they are read now and then. */
    pp->traffic.moved_at = T0 + 7 * SEC;
    path__chosen_tick(pp, T0 + 7200 * MS);
    edge_expect("ping 2 to " A "\nlook\n");
    assert_int_equal(pp->owner->looked_at, T0 + 7200 * MS);
    path__chosen_tick(pp, T0 + 7400 * MS);
    edge_expect("ping 3 to " A "\n");
    pp->owner->looked_at = T0 + 7300 * MS;
    path__chosen_tick(pp, T0 + 7600 * MS);
    edge_expect("ping 4 to " A "\nlook\n");
    /* Dead: the peer hears of it, twice. */
    pp->liveness.unanswered_since = T0;
    path__chosen_tick(pp, T0 + 7800 * MS);
    edge_expect("leave 5 to " A "\nleave 6 to " A "\nfresh\nuse relay 0, 0 ms\n"
                "event b: no answer any more at " A "; through the relay again\n");
    assert_int_equal(pp->choice.pair, 0);
}

static void test_two_ends_that_use_different_pairs(void **state)
{
    struct path_pair *pair = used(A, PATH_SOCKET_MAIN, SEC);

    path__settle(pp, pair, T0);
    edge_expect("nominate 1 to " A "\n");
    assert_nomination(pair, 1);
    pp->nominates = false;
    path__settle(pp, pair, T0);
    edge_expect("leave 2 to " A "\nuse relay 0, 0 ms\n"
                "event b: the other end has left the direct path; through the relay again\n");
}

static void test_an_agent_that_ends(void **state)
{
    struct path_pair *pair;

    path__leave_socket(pp, T0);
    pair = used(A, PATH_SOCKET_MAIN, SEC);
    path__leave_socket(pp, T0);
    edge_expect("");
    assert_int_equal(pp->choice.pair, pair->id);
    pair->socket = 9;
    pp->owner->guessing.n_sockets = 1;
    path__leave_socket(pp, T0);
    edge_expect("leave 1 to " A " by 9\nleave 2 to " A " by 9\nuse relay 0, 0 ms\n"
                "event b: the agent ends, through which the path went; through the relay again\n"
                "close 9\n");
    assert_int_equal(pp->owner->guessing.n_sockets, 0);
}

/* ---- alarms ---------------------------------------------------------------------------------- */

static void test_when_people_are_warned(void **state)
{
    pp->peer.policy = PATH_POLICY_DIRECT;
    pp->choice.alarm_at = T0;
    path__nominate_tick(pp, T0 - 1);
    edge_expect("");
    assert_false(pp->choice.is_alarm);
    path__nominate_tick(pp, T0);
    edge_expect("warning b: no direct path, though only direct paths are wanted: b has told no "
                "addresses: it runs no weft agent, or has just come\n");
    assert_true(pp->choice.is_alarm);
    assert_true(pp->choice.alarm_at == NSEC_NEVER);
    path__end_alarm(pp, "so it is");
    edge_expect("event b: so it is: the alarm is over\n");
    assert_false(pp->choice.is_alarm);
    path__end_alarm(pp, "so it is");
    edge_expect("");
    /* Not where there is a path, nor where none is wanted. */
    pp->choice.alarm_at = T0;
    pp->peer.policy = PATH_POLICY_AUTO;
    path__nominate_tick(pp, T0);
    assert_true(pp->choice.alarm_at == NSEC_NEVER);
    (void)used(A, PATH_SOCKET_MAIN, SEC);
    pp->peer.policy = PATH_POLICY_DIRECT;
    pp->choice.alarm_at = T0;
    path__nominate_tick(pp, T0);
    edge_expect("");
    assert_false(pp->choice.is_alarm);
}

static void test_what_is_known_for_the_watch(void **state)
{
    struct path_liveness_facts f = path__liveness_facts(pp, T0);

    assert_int_equal(f.keepalive_here, 0);
    assert_int_equal(f.keepalive_there, 0);
    assert_int_equal(f.rtt, 0);
    assert_false(f.is_active);
    assert_false(f.is_relay);
    assert_true(f.begins);
    (void)used(A, PATH_SOCKET_MAIN, SEC);
    pp->owner->self.keepalive = 3 * SEC;
    pp->side.keepalive = 4 * SEC;
    pp->traffic.moved_at = T0;
    pp->peer.is_relay = true;
    pp->nominates = false;
    f = path__liveness_facts(pp, T0);
    assert_int_equal(f.keepalive_here, 3 * SEC);
    assert_int_equal(f.keepalive_there, 4 * SEC);
    assert_int_equal(f.rtt, 20 * MS);
    assert_true(f.is_active);
    assert_true(f.is_relay);
    assert_false(f.begins);
}

#define EDGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EDGE_TEST(test_what_is_new_of_a_pair_that_is_used),
        EDGE_TEST(test_an_answer_to_another_nomination),
        EDGE_TEST(test_words_for_each_kind_of_path),
        EDGE_TEST(test_the_socket_of_the_former_pair),
        EDGE_TEST(test_stays_get_longer),
        EDGE_TEST(test_when_there_is_something_to_choose),
        EDGE_TEST(test_which_pair_is_chosen),
        EDGE_TEST(test_a_pair_that_is_worse_than_the_relay),
        EDGE_TEST(test_a_nomination_without_an_answer),
        EDGE_TEST(test_the_peers_nomination),
        EDGE_TEST(test_a_measured_pair_that_the_peer_waits_for),
        EDGE_TEST(test_first_measurements),
        EDGE_TEST(test_a_better_pair),
        EDGE_TEST(test_a_better_pair_is_asked_whether_packets_pass),
        EDGE_TEST(test_what_a_probe_of_a_better_pair_brings),
        EDGE_TEST(test_a_peer_that_has_moved),
        EDGE_TEST(test_another_address_of_our_own),
        EDGE_TEST(test_a_pair_that_the_peer_has_left),
        EDGE_TEST(test_deaths_in_a_row),
        EDGE_TEST(test_the_address_is_asked_for_once_a_second),
        EDGE_TEST(test_the_pair_in_use_is_asked),
        EDGE_TEST(test_two_ends_that_use_different_pairs),
        EDGE_TEST(test_an_agent_that_ends),
        EDGE_TEST(test_when_people_are_warned),
        EDGE_TEST(test_what_is_known_for_the_watch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
