/* test-node-uplink.c - to whom trains are sent when, what is found by them, and what is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/node_uplink.h"
#include "agent/paths/edge/reach.h"
#include "agent/reconcile/observe.h"
#include "base/err.h"
#include "mesh/snapshot/snapshot.h"
#include "test/support/sample_mesh.h"

#define SEC  NSEC_PER_SEC
#define HOUR (3600 * SEC)
#define WALL INT64_C(1800000000)
#define MBIT UINT64_C(1000000)

/* n2 of six, the first of which is the hub; all others are reached directly. */
static struct world {
    struct snapshot snapshot;
    struct reach_peer paths[4];
    struct reach reach;
    struct observation sent[4];
    struct observe seen;
    struct node_uplink_facts facts;
    struct node_uplink nu;
    char dir[64];
} w;

static int enter(void **state)
{
    struct ip_addr outside = ip_addr_v4((const uint8_t[4]){203, 0, 113, 2});

    w = (struct world){.snapshot = sample_snapshot(6, 2), .dir = "/tmp/weft-uplink-XXXXXX"};
    if (!mkdtemp(w.dir))
        return -1;
    for (unsigned i = 0; i < 4; i++) {
        w.paths[i].kind = PATH_KIND_DIRECT;
        (void)snprintf(w.paths[i].node, sizeof(w.paths[i].node), "n%u", i + 3);
    }
    w.reach = (struct reach){.items = w.paths, .n = 4};
    w.seen = (struct observe){.items = w.sent, .n = 4};
    w.facts = (struct node_uplink_facts){.snapshot = &w.snapshot,
        .reach = &w.reach,
        .seen = &w.seen,
        .outside = outside,
        .keeps_rates = true,
        .now = 100 * SEC,
        .wall_s = WALL};
    node_uplink_init(&w.nu, w.dir, 0, w.facts.now, WALL);
    w.nu.may_have_rate = true;
    return 0;
}

static int leave(void **state)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/uplink.json", w.dir);
    (void)unlink(path);
    (void)rmdir(w.dir);
    snapshot_deinit(&w.snapshot);
    return 0;
}

static void pass(nsec_t time)
{
    w.facts.now += time;
    w.facts.wall_s += time / SEC;
}

/* To whom trains are sent in the next @time, "n3 n4"; looked at each ten seconds. */
static const char *sent_in(nsec_t time)
{
    static char names[1024];
    size_t len = 0;

    names[0] = '\0';
    for (nsec_t end = w.facts.now + time; w.facts.now < end; pass(10 * SEC)) {
        const char *name = node_uplink_next(&w.nu, &w.facts);

        if (name)
            len += (size_t)snprintf(
                names + len, sizeof(names) - len, "%s%s", len > 0 ? " " : "", name);
    }
    return names;
}

/* To whom the next one is sent, within a minute. */
static const char *sent_next(void)
{
    const char *name = NULL;

    for (unsigned i = 0; !name && i < 7; i++) {
        name = node_uplink_next(&w.nu, &w.facts);
        if (!name)
            pass(10 * SEC);
    }
    return name ? name : "";
}

static void take(const char *name, double mbit, bool is_line)
{
    json_t *body = json_pack("{s:s, s:I, s:b}", "peer", name, "bitsPerSecond",
        (json_int_t)(mbit * 1e6), "isLine", (int)is_line);
    struct err e = ERR_NULL;

    if (node_uplink_take(&w.nu, &w.snapshot, body, w.facts.now, w.facts.wall_s, &e) != 0)
        fail_msg("%s", err_text(&e));
    json_decref(body);
}

/* Trains to three peers that agree. */
static void find(double mbit)
{
    take("n3", mbit, true);
    take("n4", mbit * 0.98, true);
    take("n5", mbit * 0.99, true);
}

/* A look without a command: one runs already, as far as is known. */
static bool look(void)
{
    w.nu.plan.due_at = NSEC_NEVER;
    return node_uplink_poll(&w.nu, &w.facts, "/nonexistent");
}

/* ---- to whom -------------------------------------------------------------------------------- */

static void test_one_after_the_other(void **state)
{
    assert_string_equal(sent_in(300 * SEC), "");
    assert_string_equal(sent_next(), "n3");
    take("n3", 20, true);
    assert_string_equal(sent_next(), "n4");
    take("n4", 20, true);
    /* Who has answered nothing is not asked again so soon. */
    assert_string_equal(sent_next(), "n5");
    assert_string_equal(sent_next(), "n6");
    take("n6", 20, true);
    /* It is known now, and looked at again in some hours. */
    assert_int_equal(w.nu.state, UPLINK_FOUND);
    assert_string_equal(sent_in(2 * HOUR), "");
    assert_string_equal(sent_in(3 * HOUR), "n5");
}

/* Where nothing comes of it, it is given up for two hours. */
static void test_given_up(void **state)
{
    static const double rates[] = {3, 9, 27, 81};
    char name[8];

    (void)sent_in(300 * SEC);
    for (unsigned i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof(name), "n%u", 3 + i % 4);
        assert_string_equal(sent_next(), name);
        take(name, rates[i % 4], true);
    }
    assert_int_equal(w.nu.state, UPLINK_UNKNOWN);
    assert_string_equal(sent_in(HOUR), "");
    assert_string_not_equal(sent_in(2 * HOUR), "");
}

static void test_a_fast_line_is_left_alone(void **state)
{
    (void)sent_in(300 * SEC);
    assert_string_equal(sent_next(), "n3");
    take("n3", 2400, false);
    assert_int_equal(w.nu.state, UPLINK_FAST);
    assert_string_equal(sent_in(8 * HOUR), "");
}

/* What a relay passes on, a silent peer and a stock WireGuard say nothing. */
static void test_who_is_not_asked(void **state)
{
    struct object stock = sample_node(6);

    w.facts.is_busy = true;
    assert_string_equal(sent_in(HOUR), "");
    w.facts.is_busy = false;
    w.paths[0].kind = PATH_KIND_RELAY;
    w.paths[1].silent_since = 7;
    stock.node.stock = true;
    sample_put(&w.snapshot, stock);
    assert_string_equal(sent_in(HOUR / 3), "n5");
    /* A neighbour first, who may contradict all others. */
    w.nu.plan.n_tried = 0;
    w.paths[1].silent_since = 0;
    w.paths[2].kind = PATH_KIND_LAN;
    pass(3 * HOUR);
    assert_string_equal(sent_next(), "n5");
}

/* More peers than are remembered. */
static void test_many_peers(void **state)
{
    struct reach_peer many[40] = {{.kind = PATH_KIND_DIRECT}};
    unsigned n = 0;

    for (unsigned i = 0; i < 40; i++) {
        struct object node = sample_node(i + 10);

        many[i].kind = PATH_KIND_DIRECT;
        (void)snprintf(
            many[i].node, sizeof(many[i].node), "%.*s", NAME_MAX_LEN, node.node.meta.name);
        sample_put(&w.snapshot, node);
    }
    w.reach = (struct reach){.items = many, .n = 40};
    for (unsigned i = 0; i < 12 * 360; i++, pass(10 * SEC))
        n += node_uplink_next(&w.nu, &w.facts) != NULL;
    assert_in_range(n, 24, 64);
    assert_int_equal(w.nu.plan.n_tried, UPLINK_PLAN_TRIED_MAX);
}

/* ---- the rate ------------------------------------------------------------------------------- */

static struct node *self(void)
{
    return (struct node *)snapshot_self(&w.snapshot);
}

static void test_a_rate_that_is_found(void **state)
{
    assert_false(look());
    assert_int_equal(node_uplink_rate(&w.nu), 0);
    find(20);
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 19 * MBIT);
    assert_false(look());
    /* A line that is so fast is none that needs one. */
    take("n6", 2500, false);
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 0);
}

static void test_a_typed_rate_wins(void **state)
{
    struct traffic_rates typed = {.all = 5 * MBIT};

    find(20);
    self()->rates = &typed;
    assert_false(look());
    assert_int_equal(node_uplink_rate(&w.nu), 0);
    /* One of a class alone leaves the rest to what is found. */
    typed = (struct traffic_rates){.classes = {[TRAFFIC_CLASS_BULK] = MBIT}};
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 19 * MBIT);
    self()->rates = NULL;
    self()->finds_no_rate = true;
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 0);
    self()->finds_no_rate = false;
    w.facts.keeps_rates = false;
    assert_false(look());
    w.facts.keeps_rates = true;
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 19 * MBIT);
}

/* It is followed by the round trips of those peers that have answered lately. */
static void test_it_is_followed(void **state)
{
    find(20);
    (void)look();
    for (unsigned i = 0; i < 4; i++) {
        w.paths[i].is_measured = true;
        w.paths[i].least_rtt = 10 * NSEC_PER_MSEC;
        w.paths[i].rtt = (i == 3 ? 10 : 90) * NSEC_PER_MSEC;
    }
    for (unsigned i = 0; i < 60; i++) {
        pass(SEC);
        w.sent[i % 4].facts.tx_bytes += 19 * MBIT / 8;
        /* That of n6 is old. */
        for (unsigned k = 0; k < 3; k++)
            w.paths[k].answered_at = w.facts.now;
        if (i == 30) {
            assert_true(node_uplink_rate(&w.nu) < 19 * MBIT);
            /* From now on it says that the line is not full. */
            find(40);
        }
        if (i >= 30)
            w.paths[3].answered_at = w.facts.now;
        (void)look();
    }
    assert_int_equal(node_uplink_rate(&w.nu), 38 * MBIT);
}

static void test_elsewhere_it_is_found_anew(void **state)
{
    struct ip_addr home = w.facts.outside;

    find(20);
    (void)look();
    /* Not to be known for a moment is no move. */
    w.facts.outside = (struct ip_addr){0};
    assert_false(look());
    w.facts.outside = home;
    assert_false(look());
    w.facts.outside.b[15] = 99;
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 0);
    assert_int_equal(w.nu.trains.n, 0);
    assert_true(w.nu.plan.due_at <= w.facts.now + 120 * SEC);
}

/* ---- what is kept and told ------------------------------------------------------------------ */

static void test_the_next_agent_goes_on(void **state)
{
    struct node_uplink next;

    find(20);
    node_uplink_init(&next, w.dir, 0, SEC, WALL + 3600);
    assert_int_equal(next.state, UPLINK_FOUND);
    assert_int_equal(next.trains.n, 3);
    w.facts.wall_s += 3600;
    w.nu = next;
    assert_true(look());
    assert_int_equal(node_uplink_rate(&w.nu), 19 * MBIT);
    /* Not two days later. */
    node_uplink_init(&next, w.dir, 0, SEC, WALL + 2 * 86400);
    assert_int_equal(next.state, UPLINK_UNKNOWN);
    node_uplink_init(&next, "/nonexistent", 0, SEC, WALL);
    assert_int_equal(next.trains.n, 0);
    node_uplink_init(&next, NULL, 0, SEC, WALL);
    assert_int_equal(next.trains.n, 0);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *body;
        const char *words;
    } rows[] = {
        {"{}", "\"peer\" is missing"},
        {"{\"peer\": \"n3\", \"isLine\": true}", "\"bitsPerSecond\" is missing"},
        {"{\"peer\": \"n3\", \"bitsPerSecond\": 0, \"isLine\": true}", "\"bitsPerSecond\""},
        {"{\"peer\": \"n3\", \"bitsPerSecond\": 1000000000001, \"isLine\": true}",
            "\"bitsPerSecond\""},
        {"{\"peer\": \"n3\", \"bitsPerSecond\": 5, \"isLine\": 1}", "\"isLine\""},
        {"{\"peer\": \"n2\", \"bitsPerSecond\": 5, \"isLine\": true}", "\"n2\" is no other node"},
        {"{\"peer\": \"n9\", \"bitsPerSecond\": 5, \"isLine\": true}", "\"n9\" is no other node"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_t *body = json_loads(rows[i].body, 0, NULL);
        struct err e = ERR_NULL;

        assert_int_equal(
            node_uplink_take(&w.nu, &w.snapshot, body, w.facts.now, w.facts.wall_s, &e), -EINVAL);
        if (!strstr(err_text(&e), rows[i].words))
            fail_msg("%s: %s", rows[i].body, err_text(&e));
        json_decref(body);
    }
    assert_int_equal(w.nu.trains.n, 0);
}

static void expect_status(uint64_t rate, const char *want)
{
    json_t *json = node_uplink_encode(&w.nu, self(), rate, w.facts.wall_s);
    json_t *wanted = json_loads(want, 0, NULL);

    if (!json_equal(json, wanted))
        fail_msg("%s, and not %s", json_dumps(json, JSON_SORT_KEYS), want);
    json_decref(json);
    json_decref(wanted);
}

static void test_what_is_told(void **state)
{
    struct traffic_rates typed = {.all = 5 * MBIT};
    struct uplink_report r;

    expect_status(0,
        "{\"state\": \"unknown\", \"from\": \"nobody\", \"trains\": 0, \"peers\": 0, \"why\": "
        "\"too "
        "few peers that are reached directly were measured, or their figures do not agree\"}");
    find(20);
    (void)look();
    expect_status(19 * MBIT,
        "{\"state\": \"found\", \"from\": \"found\", \"bitsPerSecond\": 20000000, \"at\": "
        "1800000000, \"trains\": 3, \"peers\": 3, \"why\": \"\"}");
    r = node_uplink_report(&w.nu, self(), 19 * MBIT, w.facts.wall_s);
    assert_true(r.is_said && r.rate == 19 * MBIT && r.from == UPLINK_FROM_FOUND);
    self()->rates = &typed;
    (void)look();
    expect_status(5 * MBIT,
        "{\"state\": \"found\", \"from\": \"typed\", \"bitsPerSecond\": 20000000, \"at\": "
        "1800000000, \"trains\": 3, \"peers\": 3, \"why\": \"it was told a rate\"}");
    self()->rates = NULL;
    self()->finds_no_rate = true;
    expect_status(0,
        "{\"state\": \"found\", \"from\": \"nobody\", \"bitsPerSecond\": 20000000, \"at\": "
        "1800000000, \"trains\": 3, \"peers\": 3, \"why\": \"it was told to send as fast as it "
        "can\"}");
    self()->finds_no_rate = false;
    take("n6", 100, false);
    (void)look();
    expect_status(0,
        "{\"state\": \"unknown\", \"from\": \"nobody\", \"at\": 1800000000, \"trains\": 4, "
        "\"peers\": 4, \"why\": \"the way to n6 is faster than that to others, and all would be "
        "slowed down\"}");
    take("n6", 2400, false);
    expect_status(0,
        "{\"state\": \"fast\", \"from\": \"nobody\", \"bitsPerSecond\": 2400000000, \"at\": "
        "1800000000, \"trains\": 1, \"peers\": 1, \"why\": \"it is so fast that nothing is gained "
        "by it\"}");
    w.facts.keeps_rates = false;
    (void)look();
    expect_status(0,
        "{\"state\": \"fast\", \"from\": \"nobody\", \"bitsPerSecond\": 2400000000, \"at\": "
        "1800000000, \"trains\": 1, \"peers\": 1, \"why\": \"its engine keeps no rates\"}");
}

/* Without measuring nothing is found, and nothing is told. */
static void test_an_agent_that_measures_nothing(void **state)
{
    struct node_uplink off = {.pid = 0};

    assert_false(node_uplink_poll(&off, &w.facts, "/nonexistent"));
    assert_null(node_uplink_next(&off, &w.facts));
    assert_false(node_uplink_report(&off, self(), 0, WALL).is_said);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_after_the_other),
        TEST(test_given_up),
        TEST(test_a_fast_line_is_left_alone),
        TEST(test_who_is_not_asked),
        TEST(test_many_peers),
        TEST(test_a_rate_that_is_found),
        TEST(test_a_typed_rate_wins),
        TEST(test_it_is_followed),
        TEST(test_elsewhere_it_is_found_anew),
        TEST(test_the_next_agent_goes_on),
        TEST(test_what_is_refused),
        TEST(test_what_is_told),
        TEST(test_an_agent_that_measures_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
