/* test-checks.c - when an edge tries again, and what a round asks, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/support/path_edge.h"

#define MS  NSEC_PER_MSEC
#define SEC NSEC_PER_SEC
#define T0  EDGE_T0

#define A "203.0.113.2:1"
#define B "203.0.113.3:1"
#define C "203.0.113.4:1"
#define D "203.0.113.5:1"

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

static void use(const char *text, nsec_t rtt)
{
    struct path_pair *pair = edge_add(CANDIDATE_HOST, text, PATH_SOCKET_MAIN);

    edge_answer(pair, rtt, 4);
    pp->choice.pair = pair->id;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The moments that both ends compute: T0 is 1000 s on the clock that they share. */
static void test_when_the_next_slot_is(void **state)
{
    static const struct {
        nsec_t phase;
        nsec_t offset;
        unsigned backoff;
        bool is_urgent;
        nsec_t next; /* s after T0 */
    } cases[] = {
        {0, 0, 0, false, 20},
        {0, 0, 1, false, 80},
        {0, 0, 3, false, 440},
        {7, 0, 0, false, 27},
        {67, 0, 0, false, 27},
        {40, 0, 0, false, 60},
        {0, 5, 0, false, 15},
        {0, -5, 0, false, 25},
        {0, -1010, 0, false, 10},
        {0, 0, 0, true, 5},
        {0, 0, 1, true, 10},
        {0, 0, 2, true, 20},
        {0, 0, 3, true, 20},
        {6, 0, 0, true, 1},
    };

    pp->has_side = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        pp->slot.phase = cases[i].phase * SEC;
        pp->owner->clock_offset = cases[i].offset * SEC;
        pp->slot.backoff = cases[i].backoff;
        pp->owner->relay_is_usable = !cases[i].is_urgent;
        path__slot_plan(pp, T0);
        assert_int_equal(pp->slot.next_at, T0 + cases[i].next * SEC);
    }
}

/* Without a relay; or where the direct path was worse, for as long as the edge is in use. */
static void test_when_an_edge_is_in_haste(void **state)
{
    pp->has_side = true;
    pp->choice.is_worse = true;
    path__slot_plan(pp, T0);
    assert_int_equal(pp->slot.next_at, T0 + 20 * SEC);
    pp->traffic.moved_at = T0 - 60 * SEC;
    path__slot_plan(pp, T0);
    assert_int_equal(pp->slot.next_at, T0 + 20 * SEC);
    pp->traffic.moved_at++;
    path__slot_plan(pp, T0);
    assert_int_equal(pp->slot.next_at, T0 + 5 * SEC);
    pp->choice.is_worse = false;
    path__slot_plan(pp, T0);
    assert_int_equal(pp->slot.next_at, T0 + 20 * SEC);
    pp->owner->relay_is_usable = false;
    path__slot_plan(pp, T0);
    assert_int_equal(pp->slot.next_at, T0 + 5 * SEC);
    pp->choice.pair = 1;
    path__slot_plan(pp, T0);
    assert_int_equal(pp->slot.next_at, T0 + 20 * SEC);
    pp->has_side = false;
    path__slot_plan(pp, T0);
    assert_true(pp->slot.next_at == NSEC_NEVER);
    pp->has_side = true;
    pp->peer.policy = PATH_POLICY_OFF;
    path__slot_plan(pp, T0);
    assert_true(pp->slot.next_at == NSEC_NEVER);
}

/* With a path only those that have answered are asked, where a better one would be worth it. */
static void test_what_begins_at_a_slot(void **state)
{
    static const struct {
        bool is_direct;
        nsec_t rtt;
        bool is_busy;
        unsigned backoff;
        bool begins;
        unsigned backoff_after;
    } cases[] = {
        {false, 0, false, 0, true, 1},
        {false, 0, false, 3, true, 3},
        {false, 0, true, 3, true, 0},
        {true, 2 * MS, true, 0, false, 0},
        {true, 2 * MS + 1, true, 2, true, 0},
        {true, 20 * MS, false, 1, false, 2},
        {true, 20 * MS, false, 2, true, 3},
        {true, 20 * MS, false, 3, true, 3},
        {true, 2 * MS, false, 3, false, 3},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        edge_stop();
        pp = edge_start();
        pp->has_side = true;
        if (cases[i].is_direct)
            use(A, cases[i].rtt);
        else
            (void)edge_add(CANDIDATE_HOST, A, PATH_SOCKET_MAIN);
        pp->traffic.moved_at = cases[i].is_busy ? T0 : 0;
        pp->slot.backoff = cases[i].backoff;
        pp->slot.next_at = T0;
        path__slot_tick(pp, T0 - 1);
        assert_int_equal(pp->slot.backoff, cases[i].backoff);
        assert_int_equal(pp->slot.next_at, T0);
        path__slot_tick(pp, T0);
        assert_int_equal(pp->slot.backoff, cases[i].backoff_after);
        assert_int_equal(pp->owner->counters.rounds, cases[i].begins);
        assert_int_equal(pp->checks.round.next_at == NSEC_NEVER ? 0 : pp->checks.round.next_at,
            cases[i].begins ? T0 : 0);
        assert_int_equal(pp->checks.round.is_full, cases[i].begins && !cases[i].is_direct);
        assert_true(pp->slot.next_at > T0);
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void test_how_a_round_begins(void **state)
{
    struct path_pair *pair;

    path__checks_start(pp, true, T0);
    assert_true(pp->checks.round.next_at == NSEC_NEVER);
    (void)edge_add(CANDIDATE_HOST, A, PATH_SOCKET_MAIN);
    pair = edge_add(CANDIDATE_HOST, B, PATH_SOCKET_MAIN);
    edge_answer(pair, 20 * MS, 4);
    pair->n_round_pongs = 3;
    pair->admission = PATH_ADMISSION_NO;
    pp->peer.policy = PATH_POLICY_RELAY;
    path__checks_start(pp, true, T0);
    assert_true(pp->checks.round.next_at == NSEC_NEVER);
    pp->peer.policy = PATH_POLICY_AUTO;
    path__checks_start(pp, false, T0);
    assert_int_equal(pp->checks.round.next_at, T0);
    assert_false(pp->checks.round.is_full);
    assert_int_equal(pp->checks.begun_at, T0);
    assert_int_equal(pp->owner->counters.rounds, 1);
    assert_int_equal(pair->n_round_pongs, 0);
    assert_int_equal(pair->admission, PATH_ADMISSION_OPEN);
    assert_int_equal(pair->n_samples, 4);
    /* One that runs already goes on, and asks all from now on. */
    pp->checks.round.step = 3;
    pair->n_round_pongs = 2;
    path__checks_start(pp, true, T0 + SEC);
    path__checks_start(pp, false, T0 + SEC);
    assert_int_equal(pp->checks.round.next_at, T0);
    assert_int_equal(pp->checks.round.step, 3);
    assert_true(pp->checks.round.is_full);
    assert_int_equal(pp->checks.begun_at, T0);
    assert_int_equal(pp->owner->counters.rounds, 1);
    assert_int_equal(pair->n_round_pongs, 2);
    /* A pair that was worse than the relay is measured anew. */
    path__checks_stop(pp);
    assert_true(pp->checks.round.next_at == NSEC_NEVER);
    assert_int_equal(pp->checks.round.step, 0);
    pp->choice.is_worse = true;
    path__checks_start(pp, true, T0);
    assert_int_equal(pair->n_samples, 0);
}

/* The peer is about to guess the next port of a NAT that counts: it is asked for once a minute. */
static void test_when_the_newest_port_is_asked_for(void **state)
{
    (void)edge_add(CANDIDATE_HOST, A, PATH_SOCKET_MAIN);
    pp->owner->self.nat = (struct behavior){
        .mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true, .port_step = 1, .last_port = 7};
    pp->choice.pair = 1;
    path__checks_start(pp, true, T0);
    pp->choice.pair = 0;
    pp->owner->self.nat.port_step = 0;
    path__checks_start(pp, true, T0);
    pp->owner->self.nat.port_step = 1;
    pp->owner->self.nat.mapping = BEHAVIOR_ENDPOINT_INDEPENDENT;
    path__checks_start(pp, true, T0);
    pp->owner->self.nat.mapping = BEHAVIOR_PORT_DEPENDENT;
    edge_expect("");
    path__checks_start(pp, true, T0);
    edge_expect("fresh\n");
    assert_int_equal(pp->owner->asking.guess_at, T0);
    path__checks_start(pp, true, T0 + 60 * SEC - 1);
    edge_expect("");
    path__checks_start(pp, true, T0 + 60 * SEC);
    edge_expect("fresh\n");
    assert_int_equal(pp->owner->asking.guess_at, T0 + 60 * SEC);
}

/* A round that is not full asks those that have answered, the new ones and the one in use. */
static void test_who_is_asked_in_a_round(void **state)
{
    struct path_pair *pair;

    (void)edge_add(CANDIDATE_HOST, A, PATH_SOCKET_MAIN);
    edge_answer(edge_add(CANDIDATE_HOST, B, PATH_SOCKET_MAIN), 20 * MS, 4);
    pair = edge_add(CANDIDATE_HOST, C, PATH_SOCKET_MAIN);
    pair->tried_at = T0 - SEC;
    pair = edge_add(CANDIDATE_HOST, D, PATH_SOCKET_MAIN);
    pair->tried_at = T0 - SEC;
    pp->choice.pair = pair->id;
    path__checks_start(pp, false, T0);
    path__checks_tick(pp, T0 - 1);
    edge_expect("");
    path__checks_tick(pp, T0);
    edge_expect("ping 1 to " A "\nping 2 to " B " flags 1\nping 3 to " D "\n");
    assert_int_equal(pp->checks.round.step, 1);
    assert_int_equal(pp->checks.round.next_at, T0 + 150 * MS);
    assert_false(pp->checks.round.is_reserved);
    /* Four answers in it are enough. */
    path__checks_stop(pp);
    path__checks_start(pp, true, T0);
    path__pair_of(pp, 1)->n_round_pongs = 4;
    path__pair_of(pp, 2)->n_round_pongs = 3;
    path__checks_tick(pp, T0);
    edge_expect("ping 4 to " B "\nping 5 to " C "\nping 6 to " D "\n");
}

/* Behind a NAT the peer's own packets have to go out first, unless it was heard a moment ago. */
static void test_whose_nat_is_opened(void **state)
{
    struct path_pair *pair = edge_add(CANDIDATE_REFLEXIVE, A, PATH_SOCKET_MAIN);

    pp->owner->self_changed_at = 1;
    path__checks_start(pp, true, T0);
    path__checks_tick(pp, T0);
    edge_expect("ping 1 to " A " hops 2\n");
    pair->contact.heard_at = T0 - 10 * SEC;
    path__checks_stop(pp);
    path__checks_start(pp, true, T0);
    path__checks_tick(pp, T0);
    edge_expect("ping 2 to " A "\n");
    /* Without openers what runs goes on; with one it begins again. */
    path__checks_restart(pp, T0);
    assert_int_equal(pp->checks.round.step, 1);
    pair->contact.heard_at--;
    path__checks_restart(pp, T0);
    assert_int_equal(pp->checks.round.step, 0);
    assert_int_equal(pp->checks.round.next_at, T0);
    path__checks_tick(pp, T0);
    edge_expect("ping 3 to " A " hops 2\n");
    path__checks_stop(pp);
    path__checks_restart(pp, T0);
    assert_int_equal(pp->checks.round.next_at, T0);
}

/* All frames of a step are taken from the budget before the first is sent; it waits for them. */
static void test_what_a_step_costs(void **state)
{
    static const unsigned frames[] = {2, 2, 2, 5, 2};
    struct rate *budget = &pp->owner->budget.begin.rate;

    pp->owner->self_changed_at = 1;
    (void)edge_add(CANDIDATE_REFLEXIVE, A, PATH_SOCKET_MAIN);
    (void)edge_add(CANDIDATE_HOST, B, PATH_SOCKET_MAIN);
    path__checks_start(pp, true, T0);
    for (unsigned i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
        nsec_t now = pp->checks.round.next_at;

        assert_int_equal(pp->checks.round.step, i);
        path__checks_tick(pp, now);
        assert_int_equal(budget->full_at, now + frames[i]);
    }
    budget->full_at = pp->checks.round.next_at + 2 * SEC;
    path__checks_tick(pp, pp->checks.round.next_at);
    assert_int_equal(pp->checks.round.step, 5);
    assert_true(pp->checks.round.is_reserved);
    assert_int_equal(pp->checks.round.next_at, budget->full_at - 2 - SEC);
    path__checks_tick(pp, pp->checks.round.next_at);
    assert_int_equal(pp->checks.round.step, 6);
}

/* A round that has found nothing is counted, but for one after which a nomination waits. */
static void test_how_a_round_ends(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        edge_stop();
        pp = edge_start();
        use(A, 20 * MS);
        (void)edge_add(CANDIDATE_HEARD, B, PATH_SOCKET_MAIN);
        pp->choice.pair = i == 1 ? pp->choice.pair : 0;
        pp->choice.sent.pair = i == 2 ? 1 : 0;
        pp->checks.round = (struct path_round){.next_at = T0, .step = 8};
        path__checks_tick(pp, T0);
        assert_true(pp->checks.round.next_at == NSEC_NEVER);
        assert_int_equal(pp->checks.round.step, 0);
        assert_int_equal(pp->checks.n_failed, i == 0);
        /* A pair that was only heard, and does not answer, goes. */
        assert_int_equal(pp->pairs.n, 1);
    }
    /* The pongs of the last step are waited for. */
    pp->checks.round = (struct path_round){.next_at = T0, .step = 7, .is_full = true};
    path__checks_tick(pp, T0);
    assert_int_equal(pp->checks.round.step, 8);
    assert_int_equal(pp->checks.round.next_at, T0 + SEC);
}

/* ---- guessing ports -------------------------------------------------------------------------- */

static const struct behavior easy = {.mapping = BEHAVIOR_ENDPOINT_INDEPENDENT, .is_natted = true};
static const struct behavior hard = {.mapping = BEHAVIOR_PORT_DEPENDENT, .is_natted = true};

/* An edge whose round is over in vain at T0, and where the ports of one end may be guessed. */
static void round_in_vain(bool is_hard)
{
    static uint64_t seed;
    struct endpoint at;

    edge_stop();
    pp = edge_start();
    (void)edge_add(CANDIDATE_HOST, B, PATH_SOCKET_MAIN);
    assert_int_equal(endpoint_parse(&at, A, NULL), 0);
    assert_true(candidates_add(&pp->side.candidates, CANDIDATE_REFLEXIVE, &at));
    pp->has_side = pp->side.can_guess = true;
    pp->side.nat = is_hard ? easy : hard;
    pp->owner->self.nat = is_hard ? hard : easy;
    pp->owner->guessing.sockets_max = 4;
    pp->owner->rng = rng_seeded(&seed);
    pp->checks.round = (struct path_round){.next_at = T0, .step = 8};
}

static void assert_guesses(bool guesses, nsec_t again_at)
{
    nsec_t mapped = pp->owner->budget.mappings.rate.full_at;

    path__checks_tick(pp, T0);
    assert_int_equal(pp->guess.present != NULL, guesses);
    assert_int_equal(pp->guess.n_tried, guesses);
    assert_int_equal(pp->guess.again_at, again_at);
    assert_int_equal(pp->owner->budget.mappings.rate.full_at > mapped, guesses);
    if (guesses) {
        assert_ptr_equal(pp->owner->guessing.edge, pp);
        assert_int_equal(path__port_guess_due(pp), T0);
        path__port_guess_end(pp);
        assert_null(pp->guess.present);
        assert_null(pp->owner->guessing.edge);
    }
    assert_true(path__port_guess_due(pp) == NSEC_NEVER);
}

/* At each eighth slot, two minutes later at the earliest, less a second. */
#define AGAIN_AT (T0 + 439 * SEC)

static void test_when_ports_are_guessed(void **state)
{
    for (unsigned is_hard = 0; is_hard < 2; is_hard++) {
        round_in_vain(is_hard);
        pp->guess.again_at = T0;
        assert_guesses(true, AGAIN_AT);
        round_in_vain(is_hard);
        pp->guess.again_at = T0 + 1;
        assert_guesses(false, T0 + 1);
        round_in_vain(is_hard);
        pp->side.can_guess = false;
        assert_guesses(false, 0);
        round_in_vain(is_hard);
        pp->side.candidates.n = 0;
        assert_guesses(false, 0);
        round_in_vain(is_hard);
        pp->side.nat.is_blocked = true;
        assert_guesses(false, 0);
        round_in_vain(is_hard);
        pp->owner->self.nat.is_blocked = true;
        assert_guesses(false, 0);
        round_in_vain(is_hard);
        pp->side.nat = pp->owner->self.nat;
        assert_guesses(false, 0);
    }
}

/* Whose turn it is not waits for the slot at which the other end tries again, too. */
static void test_whose_turn_it_is_to_guess(void **state)
{
    static struct path other;

    for (unsigned is_hard = 0; is_hard < 2; is_hard++) {
        round_in_vain(is_hard);
        pp->owner->guessing.edge = &other;
        assert_guesses(false, AGAIN_AT);
        /* Sockets are opened by the end behind the harder NAT alone. */
        round_in_vain(is_hard);
        pp->owner->guessing.n_sockets = 4;
        assert_guesses(!is_hard, AGAIN_AT);
        round_in_vain(is_hard);
        pp->owner->guessing.n_sockets = 3;
        assert_guesses(true, AGAIN_AT);
        round_in_vain(is_hard);
        pp->owner->budget.mappings.rate.full_at = T0 + 3600 * SEC;
        assert_guesses(false, AGAIN_AT);
    }
}

/* Of the mappings that were counted as made, those are given back that were not. */
static void test_a_guess_that_ends_early(void **state)
{
    for (unsigned is_hard = 0; is_hard < 2; is_hard++) {
        const struct rate *mapped;

        round_in_vain(is_hard);
        mapped = &pp->owner->budget.mappings.rate;
        path__checks_tick(pp, T0);
        assert_int_equal(mapped->full_at, T0 + (is_hard ? 4 : 1024));
        path__port_guess_tick(pp, T0);
        assert_int_equal(path__port_guess_due(pp), T0 + 60 * MS);
        path__port_guess_end(pp);
        assert_int_equal(mapped->full_at, T0 + (is_hard ? 4 : 8));
    }
}

#define EDGE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EDGE_TEST(test_when_the_next_slot_is),
        EDGE_TEST(test_when_an_edge_is_in_haste),
        EDGE_TEST(test_what_begins_at_a_slot),
        EDGE_TEST(test_how_a_round_begins),
        EDGE_TEST(test_when_the_newest_port_is_asked_for),
        EDGE_TEST(test_who_is_asked_in_a_round),
        EDGE_TEST(test_whose_nat_is_opened),
        EDGE_TEST(test_what_a_step_costs),
        EDGE_TEST(test_how_a_round_ends),
        EDGE_TEST(test_when_ports_are_guessed),
        EDGE_TEST(test_whose_turn_it_is_to_guess),
        EDGE_TEST(test_a_guess_that_ends_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
