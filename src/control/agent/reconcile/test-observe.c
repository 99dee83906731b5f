/* test-observe.c - ages by the monotonic clock, whatever the wall clock does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/reconcile/observe.h"

#define SEC NSEC_PER_SEC
/* A wall clock far from the monotonic one. */
#define WALL (1790000000 * SEC)

static const struct x25519_public key = {.b = {7}};

/* One peer whose last handshake was at @handshake_sec, with @rx_bytes received. */
static void take(
    struct observe *o, int64_t handshake_sec, uint64_t rx_bytes, nsec_t now, nsec_t wall)
{
    struct wg_peer p = {.key = key,
        .facts = {.handshake_sec = handshake_sec, .rx_bytes = rx_bytes},
        .endpoint = {.port = 9}};
    struct wg_config c = {.peers = &p, .n_peers = 1};

    assert_int_equal(observe_take(o, &c, now, wall), 0);
}

static int64_t age(const struct observe *o, nsec_t now)
{
    return observation_age_seconds(observe_find(o, &key), now);
}

static void test_never(void **state)
{
    struct observe o = {0};

    assert_int_equal(age(&o, 5 * SEC), -1);
    take(&o, 0, 0, 100 * SEC, WALL);
    assert_int_equal(age(&o, 100 * SEC), -1);
    assert_false(observation_has_session(observe_find(&o, &key), 100 * SEC));
    observe_deinit(&o);
}

/* An engine that keeps endpoints where they are has to say where packets came from; one of an older
 * version does not, and then it is not known. */
static void test_where_packets_came_from(void **state)
{
    static const struct {
        enum pin pin;
        uint16_t heard;
        uint16_t found;
    } cases[] = {{PIN_NONE, 0, 9}, {PIN_FIXED, 0, 0}, {PIN_FIXED, 7, 7}, {PIN_SESSION, 0, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct endpoint at = {.addr = ip_addr_v4((const uint8_t[4]){192, 0, 2, 1}), .port = 9};
        struct wg_peer p = {.key = key, .endpoint = at, .pin = cases[i].pin};
        struct wg_config c = {.peers = &p, .n_peers = 1};
        struct observe o = {0};

        at.port = cases[i].heard;
        p.facts.heard = cases[i].heard != 0 ? at : (struct endpoint){.port = 0};
        assert_int_equal(observe_take(&o, &c, SEC, WALL), 0);
        assert_int_equal(observe_find(&o, &key)->heard.port, cases[i].found);
        observe_deinit(&o);
    }
}

static void test_counts_from_when_it_was_seen(void **state)
{
    struct observe o = {0};

    take(&o, 0, 0, 100 * SEC, WALL);
    take(&o, WALL / SEC, 0, 101 * SEC, WALL);
    assert_int_equal(age(&o, 101 * SEC), 0);
    assert_int_equal(age(&o, 161 * SEC), 60);
    assert_true(observation_has_session(observe_find(&o, &key), 280 * SEC));
    assert_false(observation_has_session(observe_find(&o, &key), 281 * SEC));
    observe_deinit(&o);
}

/* A day forward or back between two looks changes no age. */
static void test_clock_jumps(void **state)
{
    const nsec_t day = 86400 * SEC;
    struct observe o = {0};

    take(&o, 0, 0, 100 * SEC, WALL);
    take(&o, WALL / SEC, 0, 101 * SEC, WALL);
    take(&o, WALL / SEC, 0, 111 * SEC, WALL + day);
    assert_int_equal(age(&o, 111 * SEC), 10);
    take(&o, WALL / SEC, 0, 121 * SEC, WALL - day);
    assert_int_equal(age(&o, 121 * SEC), 20);
    /* The next handshake carries a time before the last one. */
    take(&o, (WALL - day) / SEC, 0, 131 * SEC, WALL - day);
    assert_int_equal(age(&o, 131 * SEC), 0);
    observe_deinit(&o);
}

/* An agent that starts late can only ask the wall clock. */
static void test_handshake_before_the_first_look(void **state)
{
    struct observe o = {0};

    take(&o, WALL / SEC - 30, 0, 1000 * SEC, WALL);
    assert_int_equal(age(&o, 1000 * SEC), 30);
    observe_deinit(&o);
    /* In the future: the clock was set back meanwhile. */
    take(&o, WALL / SEC + 500, 0, 1000 * SEC, WALL);
    assert_int_equal(age(&o, 1000 * SEC), 0);
    observe_deinit(&o);
    /* Longer ago than the machine runs. */
    take(&o, WALL / SEC - 5000, 0, 1000 * SEC, WALL);
    assert_int_equal(observe_find(&o, &key)->handshake_at, 1);
    assert_false(observation_has_session(observe_find(&o, &key), 1000 * SEC));
    observe_deinit(&o);
}

/* One peer with these counts, reached at @port. */
static void take_counts(
    struct observe *o, uint64_t tx_bytes, uint64_t rx_bytes, uint16_t port, nsec_t now)
{
    struct wg_peer p = {.key = key,
        .facts = {.tx_bytes = tx_bytes, .rx_bytes = rx_bytes},
        .endpoint = {.port = port}};
    struct wg_config c = {.peers = &p, .n_peers = 1};

    assert_int_equal(observe_take(o, &c, now, WALL), 0);
}

static bool is_silent(const struct observe *o, nsec_t now)
{
    return observation_is_silent(observe_find(o, &key), now);
}

/* Of two handshakes in a second, and of an engine that has none any more. */
static void test_which_handshakes_are_new(void **state)
{
    struct wg_peer p = {.key = key, .facts = {.handshake_sec = WALL / SEC, .handshake_nsec = 5}};
    struct wg_config c = {.peers = &p, .n_peers = 1};
    struct observe o = {0};

    assert_int_equal(observe_take(&o, &c, 100 * SEC, WALL), 0);
    assert_int_equal(observe_take(&o, &c, 101 * SEC, WALL), 0);
    assert_int_equal(observe_find(&o, &key)->handshake_at, 100 * SEC);
    p.facts.handshake_nsec++;
    assert_int_equal(observe_take(&o, &c, 102 * SEC, WALL), 0);
    assert_int_equal(observe_find(&o, &key)->handshake_at, 102 * SEC);
    p.facts.handshake_sec = 0;
    assert_int_equal(observe_take(&o, &c, 103 * SEC, WALL), 0);
    assert_int_equal(observe_find(&o, &key)->handshake_at, 0);
    assert_int_equal(age(&o, 103 * SEC), -1);
    observe_deinit(&o);
}

static void test_what_the_engine_says(void **state)
{
    const struct x25519_public second = {.b = {8}};
    struct wg_peer peers[] = {{.key = key,
                                  .facts = {.tx_bytes = 3, .rx_bytes = 4},
                                  .endpoint = {.port = 9},
                                  .rate = 1000000},
        {.key = second, .endpoint = {.port = 10}}};
    struct wg_config c = {.peers = peers, .n_peers = 2, .rates = {.all = 5000}, .shows_dscp = true};
    const struct observation *ob;
    struct observe o = {0};

    assert_int_equal(observe_take(&o, &c, 100 * SEC, WALL), 0);
    assert_int_equal(o.n, 2);
    assert_true(o.shows_dscp);
    assert_int_equal(o.rates.all, 5000);
    ob = observe_find(&o, &key);
    assert_int_equal(ob->facts.tx_bytes, 3);
    assert_int_equal(ob->facts.rx_bytes, 4);
    assert_int_equal(ob->endpoint.port, 9);
    assert_int_equal(ob->rate, 1000000);
    assert_int_equal(ob->unanswered_since, 0);
    assert_int_equal(observe_find(&o, &second)->endpoint.port, 10);
    observe_deinit(&o);
}

static void test_silence(void **state)
{
    struct observe o = {0};

    /* Nothing is sent: silence means nothing. */
    take_counts(&o, 100, 50, 9, 100 * SEC);
    take_counts(&o, 100, 50, 9, 200 * SEC);
    assert_false(is_silent(&o, 300 * SEC));
    /* Sent, and not answered. */
    take_counts(&o, 101, 50, 9, 300 * SEC);
    take_counts(&o, 102, 50, 9, 310 * SEC);
    assert_false(is_silent(&o, 319 * SEC));
    assert_true(is_silent(&o, 320 * SEC));
    /* An answer ends it. */
    take_counts(&o, 103, 51, 9, 321 * SEC);
    assert_false(is_silent(&o, 400 * SEC));
    /* A new endpoint gets its own time. */
    take_counts(&o, 104, 51, 9, 400 * SEC);
    take_counts(&o, 105, 51, 10, 419 * SEC);
    assert_false(is_silent(&o, 421 * SEC));
    take_counts(&o, 106, 51, 10, 421 * SEC);
    assert_int_equal(observe_find(&o, &key)->unanswered_since, 421 * SEC);
    assert_true(is_silent(&o, 441 * SEC));
    /* Another engine counts from nothing. */
    take_counts(&o, 1, 0, 10, 450 * SEC);
    assert_false(is_silent(&o, 500 * SEC));
    observe_deinit(&o);
}

static void test_gone_peer_is_forgotten(void **state)
{
    const struct wg_config none = WG_CONFIG_NULL;
    struct observe o = {0};

    take(&o, WALL / SEC, 0, 100 * SEC, WALL);
    assert_int_equal(observe_take(&o, &none, 101 * SEC, WALL), 0);
    assert_null(observe_find(&o, &key));
    observe_deinit(&o);
    observe_deinit(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_where_packets_came_from),
        cmocka_unit_test(test_counts_from_when_it_was_seen),
        cmocka_unit_test(test_clock_jumps),
        cmocka_unit_test(test_handshake_before_the_first_look),
        cmocka_unit_test(test_which_handshakes_are_new),
        cmocka_unit_test(test_what_the_engine_says),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_gone_peer_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
