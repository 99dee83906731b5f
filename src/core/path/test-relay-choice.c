/* test-relay-choice.c - through which relay an edge without a direct path goes, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "path/pmtu.h"
#include "test/support/path_edge.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
#define T0  EDGE_T0

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

static void start_again(void)
{
    edge_stop();
    pp = edge_start();
}

static struct x25519_public key(uint8_t n)
{
    return (struct x25519_public){{n}};
}

static void assert_uses(uint8_t n)
{
    assert_int_equal(pp->relay.key.b[0], n);
}

/* Better by 5 ms, or by a fifth where that is more; of both ends' round trips together. */
static void test_how_much_better_a_relay_has_to_be(void **state)
{
    static const struct {
        unsigned first[2]; /* ms, here and there */
        unsigned second[2];
        bool is_better;
    } cases[] = {
        {{10, 10}, {7, 8}, true},
        {{10, 10}, {8, 8}, false},
        {{10, 10}, {14, 1}, true},
        {{40, 60}, {40, 40}, true},
        {{40, 60}, {41, 40}, false},
        {{10, 10}, {1, 0}, false},
        {{10, 10}, {0, 1}, false},
        {{10, 0}, {1, 1}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        start_again();
        edge_relay(1, cases[i].first[0], cases[i].first[1]);
        edge_relay(2, cases[i].second[0], cases[i].second[1]);
        /* That the other end has lost one is another matter. */
        pp->nominates = false;
        path__check_relay(pp, T0);
        assert_uses(1);
        assert_true(pp->relay.move_at == (cases[i].is_better ? T0 + 6 * SEC : NSEC_NEVER));
    }
}

static void test_a_better_relay_is_taken_after_a_while(void **state)
{
    for (unsigned nominates = 0; nominates < 2; nominates++) {
        nsec_t wait = nominates ? 2 * SEC : 6 * SEC;

        start_again();
        pp->nominates = nominates;
        edge_relay(1, 10, 10);
        edge_relay(2, 5, 6);
        pp->relay.free_at = T0 + 1;
        path__check_relay(pp, T0);
        assert_true(pp->relay.move_at == NSEC_NEVER);
        pp->relay.free_at = T0;
        path__check_relay(pp, T0);
        assert_int_equal(pp->relay.move_at, T0 + wait);
        path__check_relay(pp, T0 + wait - 1);
        assert_int_equal(pp->relay.move_at, T0 + wait);
        edge_expect("");
        path__check_relay(pp, T0 + wait);
        edge_expect(
            "use relay 2, 11 ms\nevent b: another relay is quicker for both; through that\n");
        assert_uses(2);
        assert_true(pp->relay.move_at == NSEC_NEVER);
        assert_int_equal(pp->owner->counters.switches, 1);
    }
    /* It has to be better all the time. */
    start_again();
    edge_relay(1, 10, 10);
    edge_relay(2, 5, 6);
    path__check_relay(pp, T0);
    pp->owner->self.relays[1].rtt = 20 * MS;
    path__check_relay(pp, T0 + SEC);
    assert_true(pp->relay.move_at == NSEC_NEVER);
}

/* Both ends come to the same one of two that are as good. */
static void test_equal_relays_go_by_their_keys(void **state)
{
    for (uint8_t i = 0; i < 2; i++) {
        start_again();
        edge_relay(9, 50, 50);
        edge_relay(i == 0 ? 2 : 3, 10, 10);
        edge_relay(i == 0 ? 3 : 2, 10, 10);
        edge_relay(1, 11, 10);
        path__check_relay(pp, T0);
        path__check_relay(pp, T0 + 2 * SEC);
        assert_uses(2);
    }
}

static void test_a_better_relay_has_to_carry_as_much(void **state)
{
    static const struct {
        uint16_t first[2]; /* what is known to pass, here and there; 0: not known */
        uint16_t second[2];
        bool is_better;
    } cases[] = {
        {{1400, 1400}, {1400, 1400}, true},
        {{1400, 1400}, {1399, 1500}, false},
        {{1400, 1400}, {1500, 1399}, false},
        {{1400, 1390}, {1390, 1391}, true},
        {{1390, 1400}, {1390, 1391}, true},
        {{0, 0}, {0, 0}, true},
        {{PMTU_INNER_MIN, PMTU_INNER_MIN}, {0, 0}, true},
        {{PMTU_INNER_MIN + 1, PMTU_INNER_MIN + 1}, {0, 0}, false},
        {{1400, 0}, {0, 0}, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct x25519_public first = key(1);

        start_again();
        edge_relay(1, 10, 10);
        edge_relay(2, 5, 6);
        pp->owner->self.relays[0].mtu = cases[i].first[0];
        pp->side.relays[0].mtu = cases[i].first[1];
        pp->owner->self.relays[1].mtu = cases[i].second[0];
        pp->side.relays[1].mtu = cases[i].second[1];
        assert_int_equal(path__relay_mtu(pp, &first),
            cases[i].first[0] < cases[i].first[1] ? cases[i].first[0] : cases[i].first[1]);
        path__check_relay(pp, T0);
        assert_true(pp->relay.move_at == (cases[i].is_better ? T0 + 2 * SEC : NSEC_NEVER));
    }
    /* Of one that an end does not reach nothing is known. */
    edge_relay(3, 10, 0);
    edge_relay(4, 0, 10);
    for (uint8_t n = 3; n <= 5; n++) {
        struct x25519_public one = key(n);

        assert_int_equal(path__relay_mtu(pp, &one), 0);
    }
}

/* With a direct path, or where the two do not talk, no relay is looked at. */
static void test_when_no_relay_is_looked_at(void **state)
{
    edge_relay(1, 10, 10);
    edge_relay(2, 5, 6);
    pp->choice.pair = 1;
    path__check_relay(pp, T0);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    /* But the first one is known from now on. */
    assert_uses(1);
    pp->choice.pair = 0;
    pp->peer.policy = PATH_POLICY_OFF;
    path__check_relay(pp, T0);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    pp->peer.policy = PATH_POLICY_AUTO;
    path__check_relay(pp, T0);
    assert_int_equal(pp->relay.move_at, T0 + 2 * SEC);
}

#define LOST_HERE  "event b: the relay does not answer any more; through another one\n"
#define LOST_THERE "event b: the other end has lost the relay; through another one\n"

static void test_a_relay_that_is_lost_here(void **state)
{
    /* None is left. */
    pp->relay.key = key(9);
    path__check_relay(pp, T0);
    edge_expect("");
    assert_uses(9);
    /* The best of those that both reach, at once. */
    edge_relay(1, 10, 0);
    edge_relay(2, 10, 10);
    edge_relay(3, 4, 5);
    pp->relay.move_at = T0;
    path__check_relay(pp, T0);
    edge_expect("use relay 3, 9 ms\n" LOST_HERE);
    assert_uses(3);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    assert_int_equal(pp->owner->counters.switches, 1);
    /* Or else the first that we reach. */
    pp->side.n_relays = 0;
    pp->relay.key = key(9);
    path__check_relay(pp, T0);
    edge_expect("use relay 1, 0 ms\n" LOST_HERE);
    assert_uses(1);
}

static void test_a_relay_that_is_lost_there(void **state)
{
    edge_relay(1, 10, 0);
    path__check_relay(pp, T0);
    edge_expect("");
    edge_relay(2, 10, 10);
    /* Who does not choose leaves it to the other end, and so does who has heard nothing of it. */
    pp->nominates = false;
    path__check_relay(pp, T0);
    pp->nominates = true;
    pp->has_side = false;
    path__check_relay(pp, T0);
    edge_expect("");
    assert_uses(1);
    pp->has_side = true;
    path__check_relay(pp, T0);
    edge_expect("use relay 2, 20 ms\n" LOST_THERE);
    assert_uses(2);
    /* Who reports no relay at all says nothing of this one. */
    start_again();
    edge_relay(1, 10, 0);
    edge_relay(2, 10, 0);
    pp->relay.key = key(2);
    path__check_relay(pp, T0);
    edge_expect("");
    assert_uses(2);
    /* There is no better one. */
    start_again();
    edge_relay(1, 10, 0);
    edge_relay(2, 0, 10);
    pp->relay.move_at = T0 + SEC;
    path__check_relay(pp, T0);
    edge_expect("");
    assert_uses(1);
    assert_true(pp->relay.move_at == NSEC_NEVER);
}

static void test_the_other_end_leads(void **state)
{
    struct x25519_public via = key(2);
    struct path_side before = {.n_relays = 1, .relays = {{.key = {{1}}}}};
    struct path_side after = {.n_relays = 2, .relays = {{.key = {{1}}}, {.key = {{2}}}}};

    edge_relay(1, 10, 10);
    edge_relay(2, 20, 30);
    pp->relay.move_at = T0 + SEC;
    pp->choice.pair = 1;
    path__on_relayed(pp, &via, T0);
    edge_expect("");
    pp->choice.pair = 0;
    path__on_relayed(pp, &via, T0);
    edge_expect("use relay 2, 50 ms followed\n"
                "event b: through another relay, as the other end wants it\n");
    assert_uses(2);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    assert_int_equal(pp->relay.free_at, T0 + 60 * SEC);
    path__on_relayed(pp, &via, T0 + SEC);
    edge_expect("");
    assert_int_equal(pp->relay.free_at, T0 + 60 * SEC);
    /* Until one is announced anew. */
    assert_true(path__announces_relay(&before, &after));
    assert_false(path__announces_relay(&after, &before));
    assert_false(path__announces_relay(&after, &after));
    path__release_relay(pp, T0 + 2 * SEC);
    assert_int_equal(pp->relay.free_at, T0 + 2 * SEC);
    path__release_relay(pp, T0 + 3 * SEC);
    assert_int_equal(pp->relay.free_at, T0 + 2 * SEC);
}

/* ---- relays that are full -------------------------------------------------------------------- */

#define TAG 0x1234

static struct paths_notice notices[2];

/* What relays 1 and 2 tell of their lines. */
static void notify(bool closed1, bool away1, bool closed2, bool away2)
{
    notices[0] = (struct paths_notice){.relay = key(1), .notice = {.is_closed = closed1}};
    notices[1] = (struct paths_notice){.relay = key(2), .notice = {.is_closed = closed2}};
    if (away1)
        notices[0].notice.away[notices[0].notice.n_away++] = TAG;
    if (away2)
        notices[1].notice.away[notices[1].notice.n_away++] = TAG;
    pp->tag = TAG;
    pp->owner->notices = notices;
    pp->owner->n_notices = 2;
}

static void test_a_full_relay_is_not_begun_with(void **state)
{
    edge_relay(1, 10, 10);
    edge_relay(2, 5, 6);
    notify(false, false, true, false);
    path__check_relay(pp, T0);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    assert_true(pp->relay.avoids);
    assert_false(pp->relay.is_asked);
    /* Who is there already stays, if it is not asked to go. */
    notify(true, false, false, false);
    pp->relay.key = key(1);
    pp->side.relays[1].rtt = 20 * MS;
    path__check_relay(pp, T0);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    assert_false(pp->relay.avoids);
    edge_expect("");
    /* One that is open again is as good as ever. */
    notify(false, false, false, false);
    pp->side.relays[1].rtt = 6 * MS;
    path__check_relay(pp, T0);
    assert_true(pp->relay.move_at != NSEC_NEVER);
    assert_false(pp->relay.avoids);
}

static void test_who_is_asked_goes_to_another_relay(void **state)
{
    struct path_pair *pair = edge_add(CANDIDATE_HOST, "203.0.113.1:1", 0);

    assert_non_null(pair);
    edge_relay(1, 10, 10);
    edge_relay(2, 20, 30);
    path__check_relay(pp, T0);
    notify(true, true, false, false);
    path__check_relay(pp, T0);
    assert_true(pp->relay.is_asked);
    /* It tries to be direct as well, once. */
    assert_true(pp->checks.round.next_at == T0);
    path__checks_stop(pp);
    assert_int_equal(pp->relay.move_at, T0 + 2 * SEC);
    path__check_relay(pp, T0 + 2 * SEC);
    edge_expect("use relay 2, 50 ms\nevent b: the relay's line is full; through another one\n");
    assert_uses(2);
    assert_false(pp->relay.is_asked);
    assert_true(pp->relay.avoids);
    assert_true(pp->checks.round.next_at == NSEC_NEVER);
    /* It stays there while the nearer one does not want it, full or not. */
    path__check_relay(pp, T0 + 3 * SEC);
    notify(false, true, false, false);
    path__check_relay(pp, T0 + 100 * SEC);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    /* And comes back. */
    notify(false, false, false, false);
    path__check_relay(pp, T0 + 200 * SEC);
    assert_false(pp->relay.avoids);
    path__check_relay(pp, T0 + 202 * SEC);
    edge_expect("use relay 1, 20 ms\nevent b: another relay is quicker for both; through that\n");
}

static void test_who_is_asked_and_cannot_go_stays(void **state)
{
    edge_relay(1, 10, 10);
    edge_relay(2, 20, 30);
    path__check_relay(pp, T0);
    /* The other one is full as well. */
    notify(true, true, true, false);
    path__check_relay(pp, T0);
    assert_true(pp->relay.is_asked);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    assert_uses(1);
    edge_expect("");
    /* Where it has to leave, a full one is better than none. */
    pp->owner->self.relays[0] = pp->owner->self.relays[1];
    pp->owner->self.n_relays = 1;
    path__check_relay(pp, T0);
    edge_expect("use relay 2, 50 ms\n" LOST_HERE);
}

static void test_data_does_not_begin_at_a_full_relay(void **state)
{
    edge_relay(1, 10, 10);
    edge_relay(2, 20, 30);
    path__check_relay(pp, T0);
    path__begin_relay(pp, T0);
    edge_expect("");
    notify(true, false, false, false);
    path__check_relay(pp, T0);
    assert_true(pp->relay.move_at == NSEC_NEVER);
    /* Whoever does not choose is taken along, and who was led here stays for a while. */
    pp->nominates = false;
    path__begin_relay(pp, T0);
    pp->nominates = true;
    pp->relay.free_at = T0 + 1;
    path__begin_relay(pp, T0);
    edge_expect("");
    path__begin_relay(pp, T0 + 1);
    edge_expect("use relay 2, 50 ms\nevent b: the relay's line is full; through another one\n");
    assert_true(pp->relay.avoids);
    /* Where all are full it stays. */
    notify(true, false, true, false);
    path__begin_relay(pp, T0 + 2);
    edge_expect("");
    assert_uses(2);
}

static void test_pairs_have_tags(void **state)
{
    struct x25519_public a = key(1);
    struct x25519_public b = key(2);
    struct x25519_public c = key(3);
    struct path_relay_notice notice = {.away = {5, 6}, .n_away = 2};
    struct path_relay_notice other = notice;

    assert_true(path_pair_tag(&a, &b) == path_pair_tag(&b, &a));
    assert_true(path_pair_tag(&a, &b) != path_pair_tag(&a, &c));
    assert_true(path_relay_notice_is_away(&notice, 6));
    assert_false(path_relay_notice_is_away(&notice, 7));
    other.away[2] = 7;
    assert_true(path_relay_notice_equal(&notice, &other));
    other.n_away = 3;
    assert_false(path_relay_notice_equal(&notice, &other));
    other.n_away = 2;
    other.is_closed = true;
    assert_false(path_relay_notice_equal(&notice, &other));
}

#define EDGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EDGE_TEST(test_how_much_better_a_relay_has_to_be),
        EDGE_TEST(test_a_better_relay_is_taken_after_a_while),
        EDGE_TEST(test_equal_relays_go_by_their_keys),
        EDGE_TEST(test_a_better_relay_has_to_carry_as_much),
        EDGE_TEST(test_when_no_relay_is_looked_at),
        EDGE_TEST(test_a_relay_that_is_lost_here),
        EDGE_TEST(test_a_relay_that_is_lost_there),
        EDGE_TEST(test_the_other_end_leads),
        EDGE_TEST(test_a_full_relay_is_not_begun_with),
        EDGE_TEST(test_who_is_asked_goes_to_another_relay),
        EDGE_TEST(test_who_is_asked_and_cannot_go_stays),
        EDGE_TEST(test_data_does_not_begin_at_a_full_relay),
        EDGE_TEST(test_pairs_have_tags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
