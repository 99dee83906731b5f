/* test-observe.c - ages by the monotonic clock, whatever the wall clock does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/observe.h"
#include "base/metrics.h"
#include "mesh/snapshot/snapshot.h"
#include "test/support/sample_mesh.h"

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

static void test_the_line_of_a_relay(void **state)
{
    struct relay_line_report line = {.rate = 5, .capacity = 10};
    struct wg_config c = {.line = &line};
    struct observe o = {0};

    assert_int_equal(observe_take(&o, &c, 100 * SEC, WALL), 0);
    assert_true(o.has_line && o.has_new_line);
    assert_int_equal(o.line.capacity, 10);
    line.rate = 6;
    assert_int_equal(observe_take(&o, &c, 101 * SEC, WALL), 0);
    assert_true(o.has_line && !o.has_new_line);
    assert_int_equal(o.line.rate, 6);
    line.level = RELAY_LINE_NEAR;
    assert_int_equal(observe_take(&o, &c, 102 * SEC, WALL), 0);
    assert_true(o.has_new_line);
    line.notice.is_closed = true;
    assert_int_equal(observe_take(&o, &c, 103 * SEC, WALL), 0);
    assert_true(o.has_new_line);
    c.line = NULL;
    assert_int_equal(observe_take(&o, &c, 104 * SEC, WALL), 0);
    assert_true(!o.has_line && o.has_new_line);
    assert_int_equal(observe_take(&o, &c, 105 * SEC, WALL), 0);
    assert_false(o.has_new_line);
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

/* A look at a peer that gets a keepalive each @keepalive s and had its handshake at @handshake_sec.
 */
static void take_kept(struct observe *o, uint16_t keepalive, int64_t handshake_sec, uint64_t tx,
    uint64_t rx, nsec_t now)
{
    struct wg_peer p = {.key = key,
        .keepalive = keepalive,
        .facts = {.handshake_sec = handshake_sec, .tx_bytes = tx, .rx_bytes = rx},
        .endpoint = {.port = 9}};
    struct wg_config c = {.peers = &p, .n_peers = 1};

    assert_int_equal(observe_take(o, &c, now, WALL), 0);
}

static nsec_t deaf_since(const struct observe *o, nsec_t now)
{
    return observation_deaf_since(observe_find(o, &key), OBSERVE_DEAF_AFTER, now);
}

/* A keepalive is answered by nobody; data and handshakes are. */
static void test_who_does_not_answer(void **state)
{
    struct observe o = {0};

    assert_int_equal(deaf_since(&o, 100 * SEC), 0);
    take_kept(&o, 25, 0, 1000, 50, 100 * SEC);
    take_kept(&o, 25, 0, 1032, 50, 110 * SEC);
    take_kept(&o, 25, 0, 1064, 50, 135 * SEC);
    take_kept(&o, 25, 0, 1096, 50, 160 * SEC);
    assert_int_equal(deaf_since(&o, 184 * SEC), 0);
    /* An initiation. */
    take_kept(&o, 25, 0, 1244, 50, 184 * SEC);
    assert_true(deaf_since(&o, 184 * SEC) == 110 * SEC);
    /* An answer to it. */
    take_kept(&o, 25, 0, 1244, 142, 185 * SEC);
    assert_int_equal(deaf_since(&o, 300 * SEC), 0);
    assert_true(observe_find(&o, &key)->heard_at == 185 * SEC);
    /* It takes a while until that is said. */
    take_kept(&o, 25, 0, 5244, 142, 200 * SEC);
    assert_int_equal(deaf_since(&o, 225 * SEC - 1), 0);
    assert_true(deaf_since(&o, 225 * SEC) == 200 * SEC);
    observe_deinit(&o);
    /* Without an interval there is the one that follows what was received. */
    take_kept(&o, 0, 0, 1000, 50, 100 * SEC);
    take_kept(&o, 0, 0, 1032, 50, 110 * SEC);
    assert_int_equal(deaf_since(&o, 200 * SEC), 0);
    take_kept(&o, 0, 0, 1033, 50, 120 * SEC);
    assert_true(deaf_since(&o, 200 * SEC) == 110 * SEC);
    observe_deinit(&o);
}

static nsec_t renewal_due(const struct observe *o, nsec_t now)
{
    return observation_renewal_due(observe_find(o, &key), now);
}

/* Data that is sent 120 s after a handshake, or later, has a new one begun. */
static void test_sessions_that_should_be_renewed(void **state)
{
    struct observe o = {0};

    assert_int_equal(renewal_due(&o, 100 * SEC), 0);
    take_kept(&o, 25, 0, 0, 0, 90 * SEC);
    take_kept(&o, 25, 7, 100, 100, 100 * SEC);
    take_kept(&o, 25, 7, 5000, 100, 219 * SEC);
    assert_int_equal(renewal_due(&o, 230 * SEC), 0);
    /* Keepalives alone, of one that did not begin the last handshake. */
    take_kept(&o, 25, 7, 5032, 100, 230 * SEC);
    take_kept(&o, 25, 7, 5064, 100, 255 * SEC);
    assert_int_equal(renewal_due(&o, 255 * SEC), 0);
    take_kept(&o, 25, 7, 9000, 100, 256 * SEC);
    assert_int_equal(renewal_due(&o, 256 * SEC), 0);
    take_kept(&o, 25, 7, 12000, 100, 270 * SEC);
    assert_true(renewal_due(&o, 271 * SEC) == 15 * SEC);
    /* It was renewed. */
    take_kept(&o, 25, 8, 13000, 200, 272 * SEC);
    assert_int_equal(renewal_due(&o, 272 * SEC), 0);
    observe_deinit(&o);
}

/* Two peers that have sent so much since the engine began, and what had no room in its socket. */
static void take_arrivals(
    struct observe *o, const struct arrivals a[static 2], uint64_t drops, nsec_t now)
{
    const struct x25519_public second = {.b = {8}};
    struct wg_peer peers[] = {
        {.key = key, .facts = {.arrivals = a[0]}}, {.key = second, .facts = {.arrivals = a[1]}}};
    struct wg_config c = {.peers = peers, .n_peers = 2, .socket_drops = drops};

    assert_int_equal(observe_take(o, &c, now, WALL), 0);
}

/* By WireGuard's counters: what was lost of what each peer has sent. */
static void test_loss(void **state)
{
    struct arrivals a[2] = {{.received = 500}, {.received = 500}};
    struct observe o = {0};
    struct loss_rate r;
    nsec_t now = 100 * SEC;

    r = observation_loss(NULL, now);
    assert_false(loss_rate_is_known(&r));
    take_arrivals(&o, a, 0, now);
    assert_false(o.has_new_loss);
    assert_null(observe_find(&o, &key)->loss);
    for (unsigned i = 1; i <= 120; i++) {
        a[0].received += 1000;
        a[0].lost += 10;
        a[1].received += i <= 60 ? 1000 : 0;
        take_arrivals(&o, a, 0, now += SEC);
        /* Both are known in the same look; the first is lossy in its third period. */
        assert_int_equal(o.has_new_loss, i == 3 || i == 22);
    }
    r = observation_loss(observe_find(&o, &key), now);
    assert_int_equal(loss_rate_ppm(&r), 9901);
    assert_int_equal(observe_find(&o, &key)->loss->level, LOSS_LEVEL_SOME);
    assert_int_equal(o.items[1].loss->level, LOSS_LEVEL_NONE);
    /* Another engine counts from nothing, and then nothing is known. */
    a[0] = a[1] = (struct arrivals){.received = 10};
    take_arrivals(&o, a, 0, now += SEC);
    assert_true(o.has_new_loss);
    assert_null(observe_find(&o, &key)->loss);
    take_arrivals(&o, a, 0, now += SEC);
    assert_false(o.has_new_loss);
    observe_deinit(&o);
}

/* What had no room here is no loss of a line; each merged datagram may have been many. */
static void test_loss_of_this_machine_itself(void **state)
{
    struct arrivals a[2] = {{.received = 2000}, {.received = 2000}};
    struct observe o = {0};
    struct loss_rate r;
    nsec_t now = 100 * SEC;
    uint64_t drops = 0;

    take_arrivals(&o, a, drops, now);
    for (unsigned i = 1; i <= 60; i++) {
        a[0].received += 3000;
        a[0].lost += 48;
        a[1].received += 1000;
        a[1].lost += 48;
        /* Up to 64 datagrams, and three in four of all that come are the first's. */
        drops++;
        take_arrivals(&o, a, drops, now += SEC);
    }
    r = observation_loss(&o.items[0], now);
    assert_int_equal(r.lost, 0);
    assert_int_equal(o.items[0].loss->level, LOSS_LEVEL_NONE);
    r = observation_loss(&o.items[1], now);
    assert_true(r.lost > 1500 && r.lost < 1950);
    assert_int_equal(o.items[1].loss->level, LOSS_LEVEL_CRITICAL);
    observe_deinit(&o);
}

/* Whether datagrams come merged: that it changes is said once. */
static void test_merging(void **state)
{
    static const struct {
        uint32_t ifindex;
        uint32_t percent;
        bool is_apart;
        bool is_new;
    } looks[] = {{0, 0, false, false}, {3, 97, false, false}, {3, 1, true, true},
        {3, 0, true, false}, {4, 0, true, false}, {4, 60, false, true}, {4, 0, true, true},
        {0, 0, false, true}};
    struct observe o = {0};

    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++) {
        struct wg_config c = {
            .merging_ifindex = looks[i].ifindex, .merging_percent = looks[i].percent};

        assert_int_equal(observe_take(&o, &c, (nsec_t)(100 + i) * SEC, WALL), 0);
        assert_int_equal(observe_arrives_apart(&o), looks[i].is_apart);
        assert_int_equal(o.has_new_merging, looks[i].is_new);
    }
    observe_deinit(&o);
}

/* Of nodes of the network from which something has come, by their names. */
static void test_metrics(void **state)
{
    struct observation seen[] = {
        {.key = sample_key(3),
            .facts.arrivals = {.received = 1000, .lost = 20, .reordered = 3, .repeated = 1}},
        {.key = sample_key(4)}, {.key = sample_key(9), .facts.arrivals = {.received = 7}}};
    struct observe o = {.items = seen, .n = 3, .socket_drops = 5};
    struct snapshot s = sample_snapshot(4, 2);
    struct metrics m = METRICS_NULL;
    char *text;

    observe_add_metrics(&o, &s, &m);
    text = metrics_take(&m);
    assert_non_null(strstr(text, "\nweft_peer_received_total{peer=\"n3\"} 1000\n"));
    assert_non_null(strstr(text, "\nweft_peer_lost_total{peer=\"n3\"} 20\n"));
    assert_non_null(strstr(text, "\nweft_peer_reordered_total{peer=\"n3\"} 3\n"));
    assert_non_null(strstr(text, "\nweft_socket_drops_total 5\n"));
    assert_null(strstr(text, "n4"));
    assert_null(strstr(text, " 7\n"));
    free(text);
    /* Beside the kernel's engine nothing is counted, and nothing is said. */
    seen[0].facts.arrivals = seen[2].facts.arrivals = (struct arrivals){.received = 0};
    observe_add_metrics(&o, &s, &m);
    text = metrics_take(&m);
    assert_null(strstr(text, "weft_"));
    free(text);
    snapshot_deinit(&s);
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
        cmocka_unit_test(test_the_line_of_a_relay),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_who_does_not_answer),
        cmocka_unit_test(test_sessions_that_should_be_renewed),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_of_this_machine_itself),
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_gone_peer_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
