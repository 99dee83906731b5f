/*
 * test-uplink-follow.c - the rate of an uplink that changes, played half a second by half a second:
 * a line with a queue, a sender that has as much as is wanted, pings that are smoothed as those of
 * a path are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "uplink/train.h"
#include "uplink/uplink_follow.h"

#define SEC  NSEC_PER_SEC
#define MBIT UINT64_C(1000000)
#define STEP (SEC / 2)

static struct {
    struct uplink_follow follow;
    nsec_t now;
    uint64_t found;
    double line;    /* bit/s that it carries */
    double others;  /* bit/s of it that somebody else takes */
    double demand;  /* bit/s that this node has to send */
    double queue;   /* bits that wait in front of the line */
    double most;    /* bits that may wait there; what is more is lost */
    double extra;   /* s that round trips are longer for other reasons */
    double rtt;     /* as it is known, s */
    double base;    /* s */
    double sent;    /* bytes */
    double lost;    /* share of the last pings */
    double worst_s; /* longest that a packet waited in front of the line */
    bool is_blind;  /* no round trips are known */
    bool is_of_one; /* they are of one peer */
} world;

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.now = 1000 * SEC;
    world.found = 20 * MBIT;
    world.line = 20e6;
    world.demand = 1e9;
    world.most = 8 * 128 * 1024;
    world.base = world.rtt = 0.02;
    return 0;
}

static bool step(void)
{
    double seconds = (double)STEP / (double)SEC;
    double rate = world.follow.rate ? (double)world.follow.rate : 1e9;
    double goes = world.demand < rate ? world.demand : rate;
    double room = world.line - world.others > 1e5 ? world.line - world.others : 1e5;
    double share = 0;
    struct uplink_follow_facts facts;

    world.now += STEP;
    world.sent += goes * seconds / 8;
    world.queue += (goes - room) * seconds;
    if (world.queue < 0)
        world.queue = 0;
    if (world.queue > world.most) {
        share = (world.queue - world.most) / (goes * seconds);
        world.queue = world.most;
    }
    world.lost = (world.lost * 7 + share) / 8;
    world.rtt = (world.rtt * 3 + world.base + world.extra + world.queue / room) / 4;
    if (world.queue / room > world.worst_s)
        world.worst_s = world.queue / room;
    facts = (struct uplink_follow_facts){.now = world.now,
        .found = world.found,
        .sent = (uint64_t)world.sent,
        .has_rtt = !world.is_blind,
        .is_of_one = world.is_of_one,
        .rise = (nsec_t)((world.rtt - world.base) * 1e9),
        .least_rtt = (nsec_t)(world.base * 1e9),
        .lost_permille = (unsigned)(world.lost * 1000)};
    return uplink_follow_look(&world.follow, &facts);
}

/* Returns the rate as it was on average, bit/s. */
static double play(unsigned seconds)
{
    double sum = 0;

    for (unsigned i = 0; i < 2 * seconds; i++) {
        (void)step();
        sum += (double)world.follow.rate;
    }
    return sum / (2 * seconds);
}

static void assert_share(double got, double want, double from, double to)
{
    if (got < want * from || got > want * to)
        fail_msg("%.2f Mbit/s, and not %.2f to %.2f of %.2f", got / 1e6, from, to, want / 1e6);
}

static void test_a_little_below_the_line(void **state)
{
    (void)state;
    assert_true(step());
    assert_int_equal(world.follow.rate, 19 * MBIT);
    world.found = 0;
    assert_true(step());
    assert_int_equal(world.follow.rate, 0);
    assert_false(step());
}

/* Nothing is tried while nobody needs it. */
static void test_nothing_to_send(void **state)
{
    (void)state;
    world.demand = 5e6;
    (void)step();
    for (unsigned i = 0; i < 7200; i++)
        assert_false(step());
    assert_int_equal(world.follow.rate, 19 * MBIT);
}

/* A line that stays the same: attempts become rare, and the rate stays. */
static void test_a_line_that_stays(void **state)
{
    unsigned n = 0;

    (void)state;
    (void)step();
    for (unsigned i = 0; i < 2 * 3600; i++)
        n += step() && world.follow.phase == UPLINK_FOLLOW_RAISED;
    assert_in_range(n, 3, 7);
    assert_share(play(600), 19e6, 0.98, 1.02);
    assert_int_equal(world.follow.rate, 19 * MBIT);
}

static void test_a_line_that_became_faster(void **state)
{
    (void)state;
    (void)play(10);
    world.line = 100e6;
    (void)play(49);
    assert_int_equal(world.follow.rate, 19 * MBIT);
    (void)play(600);
    assert_share(play(600), 100e6, 0.84, 1.02);
}

static void test_a_line_that_became_slower(void **state)
{
    unsigned n = 0;

    (void)state;
    (void)play(10);
    world.line = 12e6;
    (void)play(50);
    world.worst_s = 0;
    assert_share(play(30), 12e6, 0.8, 1);
    assert_true(world.worst_s < 0.01);
    /* It is tried after a minute, then after two, and after four. */
    for (unsigned i = 0; i < 2 * 540; i++)
        n += step() && world.follow.phase == UPLINK_FOLLOW_RAISED;
    assert_int_equal(n, 3);
    /* And back. */
    world.line = 20e6;
    (void)play(1200);
    assert_share(play(600), 20e6, 0.84, 1.01);
}

/* It was measured too high. */
static void test_a_rate_that_is_too_high(void **state)
{
    (void)state;
    world.found = 25 * MBIT;
    (void)play(30);
    assert_share(play(60), 20e6, 0.85, 1.01);
}

/* A line without a queue loses instead. */
static void test_a_line_that_only_loses(void **state)
{
    (void)state;
    world.most = 8 * 4096;
    world.found = 24 * MBIT;
    (void)play(60);
    assert_share(play(30), 20e6, 0.8, 1.02);
}

/* What somebody else does cannot be helped by sending less, and the rate is what it was. */
static void test_what_does_not_help_is_undone(void **state)
{
    unsigned n = 0;

    (void)state;
    (void)play(10);
    world.extra = 0.2;
    (void)play(60);
    assert_int_equal(world.follow.rate, 19 * MBIT);
    /* For some time it is left alone altogether. */
    world.extra = 0;
    for (unsigned i = 0; i < 2 * 500; i++)
        assert_false(step());
    world.extra = 0.2;
    for (unsigned i = 0; i < 2 * 3600; i++)
        n += step() && world.follow.phase == UPLINK_FOLLOW_LOWERED && world.follow.n_lowered == 1;
    assert_in_range(n, 2, 4);
}

/* Two machines on one line: each learns what the other one leaves. */
static void test_another_machine_on_the_line(void **state)
{
    (void)state;
    (void)play(10);
    world.others = 9e6;
    (void)play(90);
    assert_share(play(60), 11e6, 0.75, 1.01);
}

/* One peer alone, whose own line may be what is full, slows this machine down by little. */
static void test_of_one_peer(void **state)
{
    (void)state;
    world.is_of_one = true;
    (void)play(10);
    world.line = 8e6;
    for (unsigned i = 0; i < 2 * 300; i++) {
        (void)step();
        assert_true(world.follow.rate >= 14 * MBIT);
    }
    world.line = 16e6;
    (void)play(1200);
    assert_share(play(60), 16e6, 0.84, 1.02);
}

/* Where no peer is pinged nothing can be learned. */
static void test_without_round_trips(void **state)
{
    (void)state;
    world.is_blind = true;
    world.line = 100e6;
    (void)play(600);
    assert_int_equal(world.follow.rate, 19 * MBIT);
}

/* The same line measured again changes nothing; another one begins anew. */
static void test_found_again(void **state)
{
    (void)state;
    world.line = 15e6;
    (void)play(60);
    assert_true(world.follow.rate < 16 * MBIT);
    world.found = 21 * MBIT;
    (void)step();
    assert_true(world.follow.rate < 16 * MBIT);
    world.found = 40 * MBIT;
    (void)step();
    assert_int_equal(world.follow.rate, 38 * MBIT);
}

/* Of looks that are far apart, or where the count begins anew, it is not known what was sent. */
static void test_looks_that_say_nothing(void **state)
{
    (void)state;
    world.line = 100e6;
    (void)step();
    for (unsigned i = 0; i < 400; i++) {
        world.now += i % 2 ? 6 * SEC : 0;
        world.sent = i % 2 ? world.sent + 6 * 19e6 / 8 : 0;
        assert_false(step());
    }
    (void)play(3);
    assert_true(world.follow.rate > 19 * MBIT);
}

/* It never becomes a rate that nobody may set, nor one of a line that is no bottleneck. */
static void test_bounds(void **state)
{
    (void)state;
    world.found = 100000;
    world.line = 2e4;
    for (unsigned i = 0; i < 1000; i++) {
        (void)step();
        assert_true(world.follow.rate >= 100000);
    }
    begin(state);
    world.found = 1900 * MBIT;
    world.line = 1e10;
    world.demand = 1e10;
    (void)play(300);
    assert_true(world.follow.rate == TRAIN_FAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_little_below_the_line, begin),
        cmocka_unit_test_setup(test_nothing_to_send, begin),
        cmocka_unit_test_setup(test_a_line_that_stays, begin),
        cmocka_unit_test_setup(test_a_line_that_became_faster, begin),
        cmocka_unit_test_setup(test_a_line_that_became_slower, begin),
        cmocka_unit_test_setup(test_a_rate_that_is_too_high, begin),
        cmocka_unit_test_setup(test_a_line_that_only_loses, begin),
        cmocka_unit_test_setup(test_what_does_not_help_is_undone, begin),
        cmocka_unit_test_setup(test_another_machine_on_the_line, begin),
        cmocka_unit_test_setup(test_of_one_peer, begin),
        cmocka_unit_test_setup(test_without_round_trips, begin),
        cmocka_unit_test_setup(test_found_again, begin),
        cmocka_unit_test_setup(test_looks_that_say_nothing, begin),
        cmocka_unit_test_setup(test_bounds, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
