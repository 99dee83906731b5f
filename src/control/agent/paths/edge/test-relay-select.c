/* test-relay-select.c - which relays are kept ready and told of, and whether the hub still lives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/paths/edge/relay_select.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  (1000 * SEC)

/* ---- standbys ------------------------------------------------------------------------------- */

static void test_the_two_nearest_are_kept(void **state)
{
    struct relay_fact relays[] = {
        {.is_direct = true, .rtt = 40 * MS},
        {.is_direct = true, .rtt = 10 * MS},
        {.is_direct = false, .rtt = 1 * MS},
        {.is_direct = true, .rtt = 20 * MS, .is_standby = true},
        {.is_direct = true, .rtt = 30 * MS, .is_standby = true},
    };

    relay_select_standbys(relays, 5);
    assert_false(relays[0].is_standby);
    assert_true(relays[1].is_standby);
    assert_false(relays[2].is_standby);
    assert_true(relays[3].is_standby);
    assert_false(relays[4].is_standby);
    /* What an edge goes through stays, and takes the place of a nearer one. */
    relays[0].is_used = relays[4].is_used = true;
    relay_select_standbys(relays, 5);
    assert_true(relays[0].is_standby && relays[4].is_standby);
    assert_false(relays[1].is_standby || relays[3].is_standby);
    /* Unless it is not reached directly any more. */
    relays[0].is_direct = false;
    relay_select_standbys(relays, 5);
    assert_false(relays[0].is_standby);
    assert_true(relays[1].is_standby && relays[4].is_standby);
}

/* Of two that are as near the one that was listed first, so that they do not change places. */
static void test_relays_that_are_as_near(void **state)
{
    struct relay_fact relays[] = {
        {.is_direct = true, .rtt = 10 * MS},
        {.is_direct = true, .rtt = 10 * MS},
        {.is_direct = true, .rtt = 10 * MS},
    };

    relay_select_standbys(relays, 3);
    assert_true(relays[0].is_standby && relays[1].is_standby);
    assert_false(relays[2].is_standby);
    /* Where there is but one it is enough. */
    relay_select_standbys(relays + 2, 1);
    assert_true(relays[2].is_standby);
}

/* One that is full is not kept ready for who does not use it yet. */
static void test_a_full_relay_is_not_kept_ready(void **state)
{
    struct relay_fact relays[] = {
        {.is_direct = true, .rtt = 10 * MS, .is_closed = true},
        {.is_direct = true, .rtt = 20 * MS},
        {.is_direct = true, .rtt = 30 * MS},
    };

    relay_select_standbys(relays, 3);
    assert_false(relays[0].is_standby);
    assert_true(relays[1].is_standby && relays[2].is_standby);
    /* Who uses it needs two others beside it. */
    relays[0].is_used = true;
    relay_select_standbys(relays, 3);
    assert_true(relays[0].is_standby && relays[1].is_standby && relays[2].is_standby);
}

static nsec_t tell_hub(struct relay_select *rs, nsec_t rtt)
{
    const struct relay_hub hub = {.key = {.b = {1}}, .rtt = rtt};
    struct path_side side;

    relay_select_tell(rs, &hub, NULL, 0, &side);
    assert_int_equal(side.n_relays, 1);
    return side.relays[0].rtt;
}

static void test_which_changes_of_a_round_trip_are_told(void **state)
{
    static const struct {
        unsigned before, now, told;
    } cases[] = {
        {100, 125, 100},
        {100, 126, 126},
        {100, 75, 100},
        {100, 74, 74},
        {4, 1, 4},
        {5, 1, 1},
        /* That one was measured is told, however short it is; and that it is not any more. */
        {0, 2, 2},
        {2, 0, 0},
        {0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct relay_select rs = {.n_reported = 0};

        assert_int_equal(tell_hub(&rs, cases[i].before * MS), cases[i].before * MS);
        assert_int_equal(tell_hub(&rs, cases[i].now * MS), cases[i].told * MS);
    }
}

/* Of a relay that was not in the last report, what was said of it before that is forgotten. */
static void test_a_relay_that_comes_back_is_told_anew(void **state)
{
    struct relay_select rs = {.n_reported = 0};
    struct relay_hub hub = {.key = {.b = {1}}, .rtt = 50 * MS, .mtu = 1380};
    struct relay_fact relay = {
        .key = {.b = {2}}, .is_standby = true, .has_session = true, .rtt = 100 * MS, .mtu = 1400};
    struct path_side side;

    relay_select_tell(&rs, &hub, &relay, 1, &side);
    assert_int_equal(side.n_relays, 2);
    assert_int_equal(side.relays[0].mtu, 1380);
    assert_int_equal(side.relays[1].mtu, 1400);
    relay.has_session = false;
    relay_select_tell(&rs, &hub, &relay, 1, &side);
    assert_int_equal(side.n_relays, 1);
    relay.has_session = true;
    relay.rtt = 101 * MS;
    relay_select_tell(&rs, &hub, &relay, 1, &side);
    assert_int_equal(side.relays[1].rtt, 101 * MS);
}

static void test_most_that_are_reported(void **state)
{
    struct relay_select rs = {.n_reported = 0};
    const struct relay_hub none = {.rtt = 8 * MS};
    struct relay_fact relays[PATH_RELAYS_MAX + 2];
    struct path_side side;

    for (unsigned i = 0; i < PATH_RELAYS_MAX + 2; i++)
        relays[i] = (struct relay_fact){.key = {.b = {(uint8_t)(i + 2)}},
            .is_standby = true,
            .has_session = true,
            .rtt = 5 * MS};
    /* A hub whose key is not known is none. */
    relay_select_tell(&rs, &none, relays, PATH_RELAYS_MAX - 1, &side);
    assert_int_equal(side.n_relays, PATH_RELAYS_MAX - 1);
    assert_int_equal(side.relays[0].key.b[0], 2);
    relay_select_tell(&rs, &none, relays, PATH_RELAYS_MAX + 2, &side);
    assert_int_equal(side.n_relays, PATH_RELAYS_MAX);
    assert_int_equal(side.relays[PATH_RELAYS_MAX - 1].key.b[0], PATH_RELAYS_MAX + 1);
}

static void test_what_is_reported(void **state)
{
    struct relay_select rs = {.n_reported = 0};
    struct relay_hub hub = {.key = {.b = {1}}, .rtt = 8 * MS};
    struct relay_fact relays[] = {
        {.key = {.b = {2}}, .is_standby = true, .has_session = true, .rtt = 100 * MS},
        {.key = {.b = {3}}, .is_standby = true, .rtt = 5 * MS},
        {.key = {.b = {4}}, .has_session = true, .rtt = 5 * MS},
    };
    struct path_side side = {.n_relays = 7};

    relay_select_tell(&rs, &hub, relays, 3, &side);
    assert_int_equal(side.n_relays, 2);
    assert_int_equal(side.relays[0].key.b[0], 1);
    assert_int_equal(side.relays[1].key.b[0], 2);
    /* A little up and down is not worth telling everybody: less than 3 ms, or a quarter. */
    hub.rtt = 11 * MS;
    relays[0].rtt = 120 * MS;
    relay_select_tell(&rs, &hub, relays, 3, &side);
    assert_int_equal(side.relays[0].rtt, 8 * MS);
    assert_int_equal(side.relays[1].rtt, 100 * MS);
    hub.rtt = 12 * MS;
    relays[0].rtt = 126 * MS;
    relay_select_tell(&rs, &hub, relays, 3, &side);
    assert_int_equal(side.relays[0].rtt, 12 * MS);
    assert_int_equal(side.relays[1].rtt, 126 * MS);
    hub.is_dead = true;
    relay_select_tell(&rs, &hub, relays, 3, &side);
    assert_int_equal(side.n_relays, 1);
    assert_int_equal(side.relays[0].key.b[0], 2);
}

/* ---- the hub -------------------------------------------------------------------------------- */

static const struct endpoint hub_at = {.addr = {{[10] = 0xff, 0xff, 203, 0, 113, 10}}, .port = 9};
static const struct endpoint stream_at = {.addr = {{[10] = 0xff, 0xff, 127, 0, 0, 1}}, .port = 9};

static const struct endpoint hub6_at = {.addr = {{0x20, 1, 0xd, 0xb8, [12] = 127}}, .port = 9};
static const struct endpoint nowhere = {.port = 0};

/* Data goes through it, and there is another relay. */
static struct hub_liveness in_use(void)
{
    struct hub_liveness h = {.n_bytes = 0};

    hub_liveness_look(&h, &hub_at, 100, true, T0);
    return h;
}

static void test_a_hub_in_use_is_asked(void **state)
{
    struct hub_liveness h = in_use();
    struct hub_liveness alone = in_use();
    struct hub_liveness stream = in_use();

    assert_true(hub_liveness_tick(&h, T0));
    assert_int_equal(hub_liveness_due(&h, T0), T0 + 200 * MS);
    assert_true(hub_liveness_on_answer(&h, &hub_at, T0 + 10 * MS));
    assert_false(hub_liveness_on_answer(&h, &stream_at, T0 + 10 * MS));
    assert_int_equal(hub_liveness_due(&h, T0 + 10 * MS), T0 + 310 * MS);
    /* Without data for five seconds nothing hangs on it. */
    assert_int_equal(hub_liveness_due(&h, T0 + 5 * SEC), NSEC_NEVER);
    assert_false(hub_liveness_tick(&h, T0 + 5 * SEC));
    /* Nor where there is no other way, or it is reached inside TLS. */
    hub_liveness_look(&alone, &hub_at, 200, false, T0);
    assert_false(hub_liveness_tick(&alone, T0));
    hub_liveness_look(&stream, &stream_at, 200, true, T0);
    assert_false(hub_liveness_tick(&stream, T0));
}

/* It is in use for five seconds after its counters have moved. */
static void test_only_a_hub_in_use_is_asked(void **state)
{
    struct hub_liveness h = in_use();
    struct hub_liveness v6 = {.n_bytes = 0};
    struct hub_liveness idle = {.n_bytes = 0};

    hub_liveness_look(&h, &hub_at, 100, true, T0 + 3 * SEC);
    assert_true(hub_liveness_tick(&h, T0 + 5 * SEC - 1));
    assert_false(hub_liveness_tick(&h, T0 + 5 * SEC));
    hub_liveness_look(&h, &hub_at, 101, true, T0 + 6 * SEC);
    assert_true(hub_liveness_tick(&h, T0 + 6 * SEC));
    /* Nobody is asked where the engine has no hub. */
    hub_liveness_look(&h, &nowhere, 102, true, T0 + 7 * SEC);
    assert_int_equal(hub_liveness_due(&h, T0 + 7 * SEC), NSEC_NEVER);
    /* Loopback is a thing of IPv4 here. */
    hub_liveness_look(&v6, &hub6_at, 100, true, T0);
    assert_true(hub_liveness_tick(&v6, T0));
    /* A machine that was just started has not used it yet. */
    hub_liveness_look(&idle, &hub_at, 0, true, SEC);
    assert_false(hub_liveness_tick(&idle, SEC));
}

/* What was not answered before does not count once it was answered, or was out of use. */
static void test_silence_is_counted_anew(void **state)
{
    struct hub_liveness h = in_use();

    for (unsigned i = 0; i < 4; i++)
        assert_true(hub_liveness_tick(&h, T0 + i * 200 * MS));
    assert_true(hub_liveness_on_answer(&h, &hub_at, T0 + 700 * MS));
    for (unsigned i = 5; i < 9; i++)
        assert_true(hub_liveness_tick(&h, T0 + i * 200 * MS));
    assert_false(hub_liveness_tick(&h, T0 + 1700 * MS));
    assert_false(h.is_dead);
    hub_liveness_look(&h, &hub_at, 100, false, T0 + 1700 * MS);
    assert_false(hub_liveness_tick(&h, T0 + 1700 * MS));
    /* It is asked at once when it is in use again. */
    hub_liveness_look(&h, &hub_at, 101, true, T0 + 1700 * MS);
    assert_int_equal(hub_liveness_due(&h, T0 + 1700 * MS), T0 + 1700 * MS);
    for (unsigned i = 0; i < 4; i++)
        assert_true(hub_liveness_tick(&h, T0 + 1700 * MS + i * 200 * MS));
    assert_false(h.is_dead);
    assert_true(hub_liveness_tick(&h, T0 + 2500 * MS));
    assert_true(h.is_dead);
    assert_int_equal(hub_liveness_due(&h, T0 + 2500 * MS), T0 + 3500 * MS);
}

static void test_a_silent_hub_is_dead(void **state)
{
    struct hub_liveness h = in_use();
    nsec_t now = T0;
    unsigned n = 0;

    for (; !h.is_dead && n < 20; now = hub_liveness_due(&h, now))
        n += hub_liveness_tick(&h, now) ? 1 : 0;
    assert_int_equal(n, 5);
    assert_int_equal(now, T0 + 4 * 200 * MS + 1000 * MS);
    /* It is asked on, however long no data goes through it. */
    assert_true(hub_liveness_tick(&h, T0 + 60 * SEC));
    assert_int_equal(hub_liveness_due(&h, T0 + 60 * SEC), T0 + 61 * SEC);
    assert_true(hub_liveness_on_answer(&h, &hub_at, T0 + 60 * SEC));
    assert_false(h.is_dead);
}

static void test_a_dead_hub_that_is_left(void **state)
{
    struct hub_liveness h = in_use();

    h.is_dead = true;
    hub_liveness_look(&h, &stream_at, 100, true, T0);
    assert_false(hub_liveness_tick(&h, T0));
    assert_false(h.is_dead);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_two_nearest_are_kept),
        cmocka_unit_test(test_relays_that_are_as_near),
        cmocka_unit_test(test_a_full_relay_is_not_kept_ready),
        cmocka_unit_test(test_which_changes_of_a_round_trip_are_told),
        cmocka_unit_test(test_a_relay_that_comes_back_is_told_anew),
        cmocka_unit_test(test_most_that_are_reported),
        cmocka_unit_test(test_what_is_reported),
        cmocka_unit_test(test_a_hub_in_use_is_asked),
        cmocka_unit_test(test_only_a_hub_in_use_is_asked),
        cmocka_unit_test(test_silence_is_counted_anew),
        cmocka_unit_test(test_a_silent_hub_is_dead),
        cmocka_unit_test(test_a_dead_hub_that_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
