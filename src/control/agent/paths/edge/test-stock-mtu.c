/* test-stock-mtu.c - what a stock WireGuard is reached with, by a line of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/paths/edge/edge_mtu.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/reconcile/observe.h"
#include "os/log.h"
#include "test/support/captured_log.h"
#include "test/support/sample_mesh.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC
#define T0  (1000 * SEC)

/* Around an inner packet: IPv4, UDP, WireGuard. */
#define OVERHEAD 60

/* Of a ping's data message, beyond its inner packet. */
#define MESSAGE 32

struct world {
    struct stock_mtus m;
    struct snapshot snapshot;
    struct observation seen;
    bool has_session;
    struct stock_ping last;
    uint64_t seed;
    nsec_t now;
    uint16_t carries; /* whole packets; longer ones are lost */
    unsigned n_pings;
    bool is_new;
    bool has_data; /* data is sent all the time */
};

static const struct pmtu_driver_limits limits = {.network_mtu = 1420};

/* n2 and n4 are stock peers. */
static int set_up(void **state)
{
    static struct world w;
    struct rng rng;

    w = (struct world){.snapshot = sample_snapshot(4, 1), .seed = 9, .now = T0, .carries = 1500};
    rng = rng_seeded(&w.seed);
    for (unsigned n = 2; n <= 4; n += 2) {
        struct object o = sample_node(n);

        o.node.stock = true;
        sample_put(&w.snapshot, o);
    }
    w.m = (struct stock_mtus){.rng = rng};
    assert_int_equal(stock_mtus_take(&w.m, &w.snapshot), 0);
    assert_int_equal(w.m.n, 2);
    w.seen = (struct observation){.key = w.m.items[1].key};
    w.has_session = true;
    assert_int_equal(endpoint_parse(&w.seen.endpoint, "198.51.100.1:51820", NULL), 0);
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    stock_mtus_deinit(&w->m);
    snapshot_deinit(&w->snapshot);
    return 0;
}

static uint16_t mtu(const struct world *w)
{
    return stock_mtus_of(&w->m.items[1]);
}

/* For that long. The engine counts pings, too. */
static void run(struct world *w, nsec_t time)
{
    nsec_t end = w->now + time;

    for (; w->now < end; w->now += 50 * MS) {
        struct stock_ping ping;

        w->seen.facts.tx_bytes += w->has_data ? 100 : 0;
        w->seen.handshake_at = w->has_session ? w->now : 0;
        stock_mtus_look(&w->m.items[1], &w->seen, &limits, w->now);
        while (stock_mtus_next(&w->m, &ping, &w->is_new, w->now)) {
            w->n_pings++;
            w->last = ping;
            assert_true(ip_addr_equal(&ping.to, &w->m.items[1].address));
            w->seen.facts.tx_bytes += (ping.len + 15u) / 16 * 16 + MESSAGE;
            if (ping.len + OVERHEAD > w->carries)
                continue;
            w->seen.facts.rx_bytes += (ping.len + 15u) / 16 * 16 + MESSAGE;
            stock_mtus_on_answer(&w->m, &ping.to, ping.cookie, w->now);
        }
    }
}

static void test_it_grows_and_shrinks(void **state)
{
    struct world *w = *state;

    struct captured_log said = captured_log_begin();

    w->has_data = true;
    run(w, 3 * SEC);
    captured_log_end(&said, "info: test: n4: the path carries packets of 1480 bytes\n");
    assert_true(w->is_new);
    assert_int_equal(mtu(w), 1420);
    w->carries = 1300;
    run(w, 10 * SEC);
    assert_in_range(mtu(w), 1300 - OVERHEAD - 8, 1300 - OVERHEAD);
    w->carries = 1500;
    run(w, 120 * SEC);
    assert_int_equal(mtu(w), 1420);
}

/* It is known before the first connection begins, and then it is left alone: our own pings are no
 * data. */
static void test_it_is_asked_once_without_data(void **state)
{
    struct world *w = *state;

    run(w, 3 * SEC);
    assert_int_equal(mtu(w), 1420);
    w->n_pings = 0;
    run(w, 600 * SEC);
    assert_int_equal(w->n_pings, 0);
    assert_int_equal(stock_mtus_due(&w->m, w->now), NSEC_NEVER);
    /* A hole comes, and is found with the next data. */
    w->carries = 1400;
    w->has_data = true;
    run(w, 10 * SEC);
    assert_in_range(mtu(w), 1400 - OVERHEAD - 8, 1400 - OVERHEAD);
}

/* A phone that is off, or says nothing: it is not asked for ever, which would keep a session up. */
static void test_one_that_answers_nothing(void **state)
{
    struct world *w = *state;

    struct captured_log said = captured_log_begin();

    w->carries = 0;
    run(w, 5 * SEC);
    assert_int_equal(mtu(w), 0);
    w->n_pings = 0;
    run(w, 600 * SEC);
    assert_int_equal(w->n_pings, 0);
    /* Data for which it is asked again does not say it again. */
    w->has_data = true;
    run(w, 10 * SEC);
    assert_true(w->n_pings > 0);
    captured_log_end(&said, "info: test: n4: this stock WireGuard answers no pings, so it is not "
                            "known how long packets reach it: it is sent at most 1120 bytes\n");
    w->has_data = false;
    run(w, 70 * SEC);
    assert_int_equal(stock_mtus_due(&w->m, w->now), NSEC_NEVER);
    w->carries = 1500;
    w->has_data = true;
    run(w, 20 * SEC);
    assert_int_equal(mtu(w), 1420);
}

static void test_nothing_without_a_session(void **state)
{
    struct world *w = *state;

    w->has_data = true;
    w->has_session = false;
    run(w, 10 * SEC);
    assert_int_equal(w->n_pings, 0);
    w->has_session = true;
    run(w, 3 * SEC);
    assert_int_equal(mtu(w), 1420);
    /* What is known stays, so that the next connection begins with it. */
    w->has_session = false;
    w->n_pings = 0;
    run(w, 300 * SEC);
    assert_int_equal(w->n_pings, 0);
    assert_int_equal(mtu(w), 1420);
    stock_mtus_look(&w->m.items[1], NULL, &limits, w->now);
    assert_int_equal(mtu(w), 1420);
}

static void test_others_answers_change_nothing(void **state)
{
    struct world *w = *state;

    w->has_data = true;
    w->carries = 1300;
    run(w, 10 * SEC);
    assert_in_range(mtu(w), 1300 - OVERHEAD - 8, 1300 - OVERHEAD);
    w->carries = 0;
    run(w, SEC);
    /* Another peer answers what it was not asked, and this one answers something else. */
    stock_mtus_on_answer(&w->m, &w->m.items[0].address, w->last.cookie, w->now);
    stock_mtus_on_answer(&w->m, &w->m.items[1].address, w->last.cookie + 1, w->now);
    assert_in_range(mtu(w), 1300 - OVERHEAD - 8, 1300 - OVERHEAD);
}

/* The counters of an engine that is started anew begin anew, and then data is data again. */
static void test_an_engine_that_is_started_anew(void **state)
{
    struct world *w = *state;

    run(w, 3 * SEC);
    w->seen.facts.tx_bytes = w->seen.facts.rx_bytes = 0;
    run(w, 100 * MS);
    assert_true(w->m.items[1].pmtu->pmtu.data_sent_at < 0);
    w->seen.facts.tx_bytes += 1;
    run(w, 50 * MS);
    assert_int_equal(w->m.items[1].pmtu->pmtu.data_sent_at, w->now - 50 * MS);
}

/* Neither hubs nor this node, whatever they are. */
static void test_who_is_measured(void **state)
{
    struct world *w = *state;
    struct object hub = sample_node(1);

    hub.node.stock = true;
    sample_put(&w->snapshot, hub);
    (void)snprintf(w->snapshot.self, sizeof(w->snapshot.self), "n2");
    assert_int_equal(stock_mtus_take(&w->m, &w->snapshot), 0);
    assert_int_equal(w->m.n, 1);
    assert_string_equal(w->m.items[0].node, "n4");
}

static void test_a_new_snapshot_keeps_what_is_known(void **state)
{
    struct world *w = *state;
    struct object o = sample_node(2);

    run(w, 3 * SEC);
    sample_put(&w->snapshot, o); /* n2 has an agent now. */
    assert_int_equal(stock_mtus_take(&w->m, &w->snapshot), 0);
    assert_int_equal(w->m.n, 1);
    assert_int_equal(stock_mtus_of(&w->m.items[0]), 1420);
    o = sample_node(4);
    o.node.stock = true;
    o.node.key = sample_key(9); /* Another machine by that name. */
    sample_put(&w->snapshot, o);
    assert_int_equal(stock_mtus_take(&w->m, &w->snapshot), 0);
    assert_int_equal(stock_mtus_of(&w->m.items[0]), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_grows_and_shrinks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_it_is_asked_once_without_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_answers_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_without_a_session, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_answers_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_new_snapshot_keeps_what_is_known, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_engine_that_is_started_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_is_measured, set_up, tear_down),
    };

    log_init("test", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
