/* test-uplink-plan.c - to whom trains are sent, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "uplink/uplink_plan.h"

#define SEC  NSEC_PER_SEC
#define HOUR (3600 * SEC)
#define WALL INT64_C(1800000000)

static struct {
    struct uplink_plan plan;
    struct uplink up;
    nsec_t now;
    const char *peers; /* those that there are, a letter each; those in capitals are near */
    enum uplink_state state;
} world;

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.now = 1000 * SEC;
    world.peers = "abc";
    uplink_plan_init(&world.plan, 0, world.now);
    return 0;
}

static int64_t wall(void)
{
    return WALL + world.now / SEC;
}

static void train(char peer, double mbit)
{
    struct uplink_train t = {
        .peer = {peer}, .bits_per_s = (uint64_t)(mbit * 1e6), .is_line = true, .at_s = wall()};

    uplink_put(&world.up, &t);
    world.state = uplink_estimate(&world.up, wall()).state;
    uplink_plan_on_train(&world.plan, world.state, world.now);
}

/* Whom trains are sent to at this time; 0: to nobody. */
static char ask(void)
{
    const char *name;

    if (!uplink_plan_is_due(&world.plan, world.now))
        return 0;
    for (const char *p = world.peers; *p; p++) {
        const char peer[2] = {*p, 0};

        uplink_plan_offer(&world.plan, &world.up, peer, *p >= 'A' && *p <= 'Z', world.now, wall());
    }
    name = uplink_plan_choose(&world.plan, world.state, world.now);
    return name ? name[0] : 0;
}

/* Who is asked next within @time, and how long that takes; 0: nobody. */
static char wait_for(nsec_t time, nsec_t *ret_took)
{
    nsec_t begun = world.now;

    for (; world.now < begun + time; world.now += SEC) {
        char peer = ask();

        if (peer) {
            *ret_took = world.now - begun;
            world.now += SEC;
            return peer;
        }
    }
    return 0;
}

static void test_it_begins_at_a_random_time(void **state)
{
    static const uint32_t randoms[] = {0, 1, 77777, 299999, UINT32_MAX};
    nsec_t took;

    for (unsigned i = 0; i < sizeof(randoms) / sizeof(*randoms); i++) {
        begin(state);
        uplink_plan_init(&world.plan, randoms[i], world.now);
        assert_int_equal(wait_for(601 * SEC, &took), 'a');
        assert_in_range(took, 300 * SEC, 600 * SEC);
    }
    world.plan.due_at = 0;
    assert_int_equal(wait_for(HOUR, &took), 0);
}

static void test_one_after_the_other(void **state)
{
    nsec_t took;

    (void)wait_for(HOUR, &took);
    train('a', 20);
    assert_int_equal(wait_for(HOUR, &took), 'b');
    assert_in_range(took, 29 * SEC, 51 * SEC);
    /* It has not answered, and is left alone for half an hour. */
    assert_int_equal(wait_for(HOUR, &took), 'c');
    train('c', 20);
    assert_int_equal(wait_for(HOUR, &took), 'a');
    train('a', 20);
    assert_int_equal(world.state, UPLINK_FOUND);
    assert_int_equal(wait_for(10 * HOUR, &took), 'b');
    assert_in_range(took, 3 * HOUR - 2 * SEC, 5 * HOUR);
    train('b', 20);
    /* Once known, one is enough for as long again. */
    assert_int_equal(wait_for(10 * HOUR, &took), 'c');
    assert_in_range(took, 3 * HOUR - 2 * SEC, 5 * HOUR);
}

static void test_who_is_near_comes_first(void **state)
{
    nsec_t took;

    world.peers = "aBcD";
    assert_int_equal(wait_for(HOUR, &took), 'B');
    train('B', 20);
    assert_int_equal(wait_for(HOUR, &took), 'D');
    assert_int_equal(wait_for(HOUR, &took), 'a');
}

static void test_it_is_given_up_for_some_hours(void **state)
{
    nsec_t took;

    world.peers = "abcdefghij";
    for (char want = 'a'; want <= 'h'; want++)
        assert_int_equal(wait_for(HOUR, &took), want);
    assert_int_equal(wait_for(10 * HOUR, &took), 'i');
    assert_in_range(took, 1.5 * HOUR - 2 * SEC, 2.5 * HOUR);
    assert_int_equal(wait_for(HOUR, &took), 'j');
    assert_true(took < 60 * SEC);
}

static void test_a_fast_line(void **state)
{
    nsec_t took;

    (void)wait_for(HOUR, &took);
    train('a', 2400);
    assert_int_equal(wait_for(20 * HOUR, &took), 'b');
    assert_in_range(took, 9 * HOUR - 2 * SEC, 15 * HOUR);
}

static void test_nobody_is_there(void **state)
{
    nsec_t took;

    world.peers = "";
    assert_int_equal(wait_for(HOUR, &took), 0);
    /* Whoever comes is asked soon. */
    world.peers = "z";
    assert_int_equal(wait_for(HOUR, &took), 'z');
    assert_true(took < 80 * SEC);
    /* And nobody else is left from before. */
    world.peers = "";
    assert_int_equal(wait_for(HOUR, &took), 0);
}

static void test_elsewhere(void **state)
{
    nsec_t took;

    (void)wait_for(HOUR, &took);
    uplink_plan_restart(&world.plan, world.now);
    assert_int_equal(wait_for(HOUR, &took), 'a');
    assert_in_range(took, 44 * SEC, 76 * SEC);
}

/* Of more peers than are remembered, who was asked longest ago is forgotten. */
static void test_many_peers(void **state)
{
    double mbit = 1;
    char last = 0;
    nsec_t took;

    world.peers = "abcdefghijklmnopqrstuvwxyz";
    for (unsigned i = 0; i < 26; i++) {
        char peer = wait_for(10 * HOUR, &took);

        assert_true(peer > last || i == 0);
        assert_int_equal(
            world.plan.n_tried, i < UPLINK_PLAN_TRIED_MAX ? i + 1 : UPLINK_PLAN_TRIED_MAX);
        last = peer;
        train(peer, mbit);
        mbit *= 1.3;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_it_begins_at_a_random_time, begin),
        cmocka_unit_test_setup(test_one_after_the_other, begin),
        cmocka_unit_test_setup(test_who_is_near_comes_first, begin),
        cmocka_unit_test_setup(test_it_is_given_up_for_some_hours, begin),
        cmocka_unit_test_setup(test_a_fast_line, begin),
        cmocka_unit_test_setup(test_nobody_is_there, begin),
        cmocka_unit_test_setup(test_elsewhere, begin),
        cmocka_unit_test_setup(test_many_peers, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
