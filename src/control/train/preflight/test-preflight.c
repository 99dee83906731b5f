/* test-preflight.c - each fault is named, with whom it is about, and none where all is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "train/names/members.h"
#include "train/preflight/preflight.h"

#define NODES 6
#define PAIRS (NODES * (NODES - 1) / 2)

/* Six members that are well, a median of 1 Gbit/s, and 10 ms between them. */
struct mesh {
    struct preflight_node nodes[NODES];
    struct preflight_pair pairs[PAIRS];
    struct preflight_input in;
    struct preflight_report report;
};

static struct idle_test good_idle(void)
{
    return (struct idle_test){.path = "direct",
        .sent = 50,
        .heard = 50,
        .back = 50,
        .rtt_min_us = 9800,
        .rtt_median_us = 10000,
        .rtt_p99_us = 12000,
        .clock_us = 40,
        .clock_error_us = 4900,
        .route_mtu = 1420,
        .packet_max = 1420,
        .connected = true,
        .mss = 1380,
        .transferred = true};
}

static struct facts good_facts(unsigned i)
{
    struct facts f = {
        .versions = {"0.1.0", "6.1.0", "3.11", "2.8.0+cu128", "2.28.3"},
        .nofile_soft = 1024,
        .nofile_hard = 1048576,
        .memlock_hard = FACTS_UNLIMITED,
        .tcp_receive_max = 6u << 20,
        .tcp_send_max = 4u << 20,
        .counts_loss = true,
        .interface = "weft0",
        .n_interfaces = 3,
        .interfaces = {{.name = "lo", .running = true}, {.name = "eth0", .running = true},
            {.name = "weft0", .running = true}},
    };
    const uint8_t eth[4] = {10, 0, 0, (uint8_t)(i + 1)};
    const uint8_t weft[4] = {10, 42, 0, (uint8_t)(i + 2)};

    (void)ip_addr_parse(&f.interfaces[0].address, "127.0.0.1", NULL);
    f.interfaces[1].address = ip_addr_v4(eth);
    f.interfaces[2].address = f.address = ip_addr_v4(weft);
    f.host_address = f.interfaces[1].address;
    return f;
}

static int make_mesh(void **state)
{
    struct mesh *m = calloc(1, sizeof(*m));

    assert_non_null(m);
    for (unsigned i = 0; i < NODES; i++) {
        (void)snprintf(m->nodes[i].name, sizeof(m->nodes[i].name), "n%u", i + 1);
        m->nodes[i].present = true;
        m->nodes[i].facts = good_facts(i);
        m->nodes[i].address = m->nodes[i].facts.address;
    }
    for (size_t b = 1; b < NODES; b++)
        for (size_t a = 0; a < b; a++) {
            struct preflight_pair *p = &m->pairs[rounds_index(NODES, a, b)];
            struct flow gbit = {.bytes = 20000000, .bits_per_s = 1000000000};

            *p = (struct preflight_pair){.a = a,
                .b = b,
                .has_idle = {true, true},
                .idle = {good_idle(), good_idle()},
                .heard = {51, 51},
                .has_loss = {true, true},
                .loss = {{.sent = 10000, .heard = 10000}, {.sent = 10000, .heard = 10000}},
                .has_bulk = true,
                .one = {.out = gbit, .in = gbit},
                .many = {.out = gbit, .in = gbit}};
        }
    m->in = (struct preflight_input){
        .nodes = m->nodes, .n_nodes = NODES, .pairs = m->pairs, .n_pairs = PAIRS};
    *state = m;
    return 0;
}

static int free_mesh(void **state)
{
    struct mesh *m = *state;

    preflight_report_deinit(&m->report);
    free(m);
    return 0;
}

static void assess(struct mesh *m)
{
    preflight_report_deinit(&m->report);
    assert_int_equal(preflight_assess(&m->report, &m->in), 0);
    for (size_t i = 0; i < m->report.n; i++)
        print_message("%s: %s: %s / %s\n", preflight_level_names[m->report.items[i].level],
            preflight_fault_names[m->report.items[i].fault], m->report.items[i].text,
            m->report.items[i].fix);
}

/* There is this one finding, and beside notes no other. */
static const struct preflight_finding *only(
    struct mesh *m, enum preflight_fault fault, enum preflight_level level)
{
    size_t grave = 0;

    assess(m);
    while (grave < m->report.n && m->report.items[grave].level > PREFLIGHT_NOTE)
        grave++;
    assert_int_equal(grave, level > PREFLIGHT_NOTE ? 1 : 0);
    assert_true(m->report.n > 0);
    assert_int_equal(m->report.items[0].fault, fault);
    assert_int_equal(m->report.items[0].level, level);
    assert_int_equal(m->report.level, level);
    assert_true(m->report.items[0].text[0] != '\0');
    assert_true(level <= PREFLIGHT_NOTE || m->report.items[0].fix[0] != '\0');
    return &m->report.items[0];
}

static void assert_names(const struct preflight_finding *f, size_t a, size_t b)
{
    assert_int_equal(f->a, a);
    assert_int_equal(f->b, b);
}

static struct preflight_pair *pair(struct mesh *m, size_t a, size_t b)
{
    return &m->pairs[rounds_index(NODES, a, b)];
}

/* ---- cases --------------------------------------------------------------------------------- */

static void test_healthy(void **state)
{
    struct mesh *m = *state;

    assess(m);
    assert_int_equal(m->report.n, 0);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
}

static void test_own_interface(void **state)
{
    struct mesh *m = *state;
    const struct preflight_finding *f;

    m->in.own_fault = "UDP port 51820 is in use already";
    f = only(m, PREFLIGHT_INTERFACE, PREFLIGHT_NO);
    assert_names(f, 0, PREFLIGHT_NOBODY);
    assert_non_null(strstr(f->text, "UDP port 51820 is in use already"));
    assert_int_equal(m->report.pair_levels[rounds_index(NODES, 1, 2)], PREFLIGHT_OK);
}

/* Members that reach each other would start, and not meet. */
static void test_hub_away(void **state)
{
    struct mesh *m = *state;
    const struct preflight_finding *f;

    m->in.hub_away = "hub-a";
    f = only(m, PREFLIGHT_HUB, PREFLIGHT_NO);
    assert_names(f, PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
    assert_non_null(strstr(f->text, "the hub hub-a, at which weft run has members meet, does not"));
    assert_int_equal(m->report.pair_levels[rounds_index(NODES, 0, 1)], PREFLIGHT_OK);
    /* A job of another launcher does not need it. */
    m->in.env.plain = true;
    m->in.env.nccl_ifname = m->in.env.gloo_ifname = "weft0";
    assert_names(only(m, PREFLIGHT_HUB, PREFLIGHT_WARN), PREFLIGHT_NOBODY, PREFLIGHT_NOBODY);
}

static void test_absent(void **state)
{
    struct mesh *m = *state;

    m->nodes[4].present = false;
    (void)snprintf(m->nodes[4].why, sizeof(m->nodes[4].why), "it does not answer");
    for (size_t i = 0; i < NODES; i++)
        if (i != 4)
            *pair(m, i < 4 ? i : 4, i < 4 ? 4 : i) =
                (struct preflight_pair){.a = i < 4 ? i : 4, .b = i < 4 ? 4 : i};
    assert_names(only(m, PREFLIGHT_ABSENT, PREFLIGHT_NO), 4, PREFLIGHT_NOBODY);
    assert_int_equal(m->report.pair_levels[rounds_index(NODES, 0, 4)], PREFLIGHT_NO);
    assert_int_equal(m->report.pair_levels[rounds_index(NODES, 0, 1)], PREFLIGHT_OK);
}

/* The hub's silence is not the fault of the members whose packets it carries. */
static void test_absent_behind_the_hub(void **state)
{
    struct mesh *m = *state;
    const struct preflight_finding *f;

    m->nodes[4].present = false;
    (void)snprintf(m->nodes[4].why, sizeof(m->nodes[4].why), "it does not answer");
    (void)snprintf(m->nodes[4].no_path, sizeof(m->nodes[4].no_path), "the hub does not answer");
    m->in.hub_away = "hub-a";
    assert_int_equal(preflight_assess(&m->report, &m->in), 0);
    assert_int_equal(m->report.n, 2);
    assert_int_equal(m->report.items[0].fault, PREFLIGHT_HUB);
    f = &m->report.items[1];
    assert_int_equal(f->fault, PREFLIGHT_ABSENT);
    assert_non_null(strstr(f->text, "no way leads to it: the hub does not answer"));
    assert_string_equal(f->fix, "see to the hub first; or leave it out with --nodes");
    assert_null(strstr(f->fix, "start its agent"));
}

/* Nor is an agent, which nobody could ask, said to be down where there is no way to it. */
static void test_absent_without_a_way(void **state)
{
    struct mesh *m = *state;
    const struct preflight_finding *f;

    m->nodes[4].present = false;
    (void)snprintf(m->nodes[4].no_path, sizeof(m->nodes[4].no_path), "the edge is off");
    f = only(m, PREFLIGHT_ABSENT, PREFLIGHT_NO);
    assert_non_null(strstr(f->text, "no way leads to it: the edge is off"));
    assert_null(strstr(f->fix, "hub"));
}

static struct idle_test silence(void)
{
    return (struct idle_test){.path = "direct", .sent = 4, .why = "nothing is answered"};
}

static void test_unreachable(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 1, 3);

    p->idle[0] = p->idle[1] = silence();
    p->heard[0] = p->heard[1] = 0;
    p->has_bulk = false;
    assert_names(only(m, PREFLIGHT_UNREACHABLE, PREFLIGHT_NO), 1, 3);
}

/* Both are here and neither has the other for a peer: the edge is off, say. */
static void test_not_measured(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 1, 3);
    const struct preflight_finding *f;

    *p = (struct preflight_pair){.a = p->a, .b = p->b};
    f = only(m, PREFLIGHT_UNREACHABLE, PREFLIGHT_NO);
    assert_names(f, 1, 3);
    assert_string_equal(f->text, "n2 and n4 do not reach each other over the overlay (path: none)");
    assert_string_equal(f->fix, "weft status on n2 says why; an edge that is off is set with weft "
                                "edge set n2 n4 --path auto, on the hub");
}

static void test_one_way(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 1, 3);

    p->idle[0] = p->idle[1] = silence();
    p->heard[0] = 0;
    p->heard[1] = 4;
    p->has_bulk = false;
    assert_names(only(m, PREFLIGHT_ONE_WAY, PREFLIGHT_NO), 1, 3);
    assert_non_null(strstr(m->report.items[0].text, "packets from n2 do not reach n4"));
    p->heard[0] = 4;
    p->heard[1] = 0;
    assert_names(only(m, PREFLIGHT_ONE_WAY, PREFLIGHT_NO), 1, 3);
    assert_non_null(strstr(m->report.items[0].text, "packets from n4 do not reach n2"));
}

/* A packet filter lets in what was asked for, and nothing else. */
static void test_answered_one_way(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 1, 3);
    const struct preflight_finding *f;

    p->idle[1] = silence();
    p->has_bulk = false;
    f = only(m, PREFLIGHT_ONE_WAY, PREFLIGHT_NO);
    assert_names(f, 1, 3);
    assert_string_equal(f->text, "n2 does not answer n4, though n4 answers n2");
    assert_non_null(strstr(f->fix, "look for a packet filter on n2 that lets in on "));
}

static void test_mtu(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 0, 5);

    p->idle[1].packet_max = 1340;
    p->idle[1].transferred = false;
    p->has_bulk = false;
    assert_names(only(m, PREFLIGHT_MTU, PREFLIGHT_NO), 0, 5);
    assert_non_null(strstr(m->report.items[0].text,
        "more than 1340 bytes from n6 do not reach n1, and n6 sends up to 1420"));
    assert_non_null(strstr(m->report.items[0].fix, "mtu to 1340"));
}

/* One member's line is the cause: one finding, not five. */
static void test_mtu_of_a_member(void **state)
{
    struct mesh *m = *state;

    for (size_t i = 1; i < NODES; i++) {
        pair(m, 0, i)->idle[0].packet_max = 1300;
        pair(m, 0, i)->has_bulk = false;
    }
    assert_names(only(m, PREFLIGHT_MTU, PREFLIGHT_NO), 0, PREFLIGHT_NOBODY);
    assert_non_null(strstr(m->report.items[0].text, "with 5 other members, as with n2"));
    assert_int_equal(m->report.pair_levels[rounds_index(NODES, 0, 3)], PREFLIGHT_NO);
    assert_int_equal(m->report.pair_levels[rounds_index(NODES, 1, 3)], PREFLIGHT_OK);
}

static void test_tcp(void **state)
{
    struct mesh *m = *state;
    struct idle_test *l = &pair(m, 2, 3)->idle[0];

    l->connected = l->transferred = false;
    pair(m, 2, 3)->has_bulk = false;
    assert_names(only(m, PREFLIGHT_TCP, PREFLIGHT_NO), 2, 3);
}

static void test_loss_level(void **state)
{
    static const struct {
        uint32_t ppm;
        uint32_t rtt_us;
        enum preflight_level level;
    } cases[] = {
        {0, 100000, PREFLIGHT_OK},
        {999, 100000, PREFLIGHT_OK},
        {1000, 100000, PREFLIGHT_WARN},
        {1000, 100, PREFLIGHT_WARN},
        {9990, 100000, PREFLIGHT_WARN},
        {10000, 4900, PREFLIGHT_WARN},
        {10000, 5000, PREFLIGHT_WARN},
        {10000, 5100, PREFLIGHT_NO},
        {199999, 4900, PREFLIGHT_WARN},
        {200000, 100, PREFLIGHT_NO},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (preflight_loss_level(cases[i].ppm, cases[i].rtt_us) != cases[i].level)
            fail_msg("%u ppm at %u us", cases[i].ppm, cases[i].rtt_us);
}

/* One segment of 1380 bytes in 20 ms is 552 kbit/s, and at 1.5 % there are ten. */
static void test_tcp_rate(void **state)
{
    assert_true(preflight_tcp_rate(1380, 20000, 15000) > 5519999);
    assert_true(preflight_tcp_rate(1380, 20000, 15000) < 5520001);
    assert_true(preflight_tcp_rate(1380, 0, 0) > 0);
}

static void test_loss(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 2, 3);

    p->loss[0].heard = 9991;
    assess(m);
    assert_int_equal(m->report.n, 0);
    p->loss[0].heard = 9990;
    assert_names(only(m, PREFLIGHT_LOSS, PREFLIGHT_WARN), 2, 3);
    p->loss[0].heard = 9800;
    assert_names(only(m, PREFLIGHT_LOSS, PREFLIGHT_NO), 2, 3);
    assert_string_equal(m->report.items[0].text,
        "2.00 % of 10000 datagrams from n3 to n4 were lost; with an RTT of 10.0 ms one TCP "
        "connection gets about 9.6 Mbit/s");
    assert_non_null(strstr(m->report.items[0].fix, "the line from n3 to n4 (path: direct)"));
    assert_non_null(strstr(m->report.items[0].fix, "on n3 sysctl -w net.core.default_qdisc=fq"));
    /* The worse direction is named, and the other one beside it. */
    p->loss[1].heard = 9500;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NO);
    assert_non_null(strstr(m->report.items[0].text,
        "5.00 % of 10000 datagrams from n4 to n3 were lost, and 2.00 % back; with an RTT"));
    /* Nearby it is not fatal. */
    p->idle[0].rtt_median_us = p->idle[1].rtt_median_us = 4900;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_WARN);
}

/* Over a slow line fewer are sent: two that are lost of a thousand may be chance. */
static void test_loss_of_few(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 2, 3);

    p->loss[0] = (struct loss_test){.sent = 1000, .heard = 998};
    assess(m);
    assert_int_equal(m->report.n, 0);
    p->loss[0].heard = 997;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_WARN);
    assert_non_null(strstr(m->report.items[0].text, "0.30 % of 1000 datagrams"));
}

/* BBR, which is the sender's, bears more than that, and has not to be advised. */
static void test_loss_of_bbr(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 2, 3);

    p->loss[0].heard = 9800;
    (void)snprintf(p->idle[0].congestion, RESULT_TCP_MAX, "bbr");
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NO);
    assert_non_null(
        strstr(m->report.items[0].text, "about 9.6 Mbit/s, and more with the BBR that it has"));
    assert_null(strstr(m->report.items[0].fix, "sysctl"));
    /* That of who receives does not count. */
    p->loss[0].heard = 10000;
    p->loss[1].heard = 9800;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NO);
    assert_null(strstr(m->report.items[0].text, "BBR"));
    assert_non_null(strstr(m->report.items[0].fix, "sysctl"));
}

/* What it leads to is not told beside it. */
static void test_loss_explains(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 2, 3);

    p->loss[0].heard = 7000;
    p->one.out.bits_per_s = p->many.out.bits_per_s = 1000000;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NO);
    p->idle[0].transferred = false;
    p->has_bulk = false;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NO);
}

/* Where no datagrams were counted, and pings show a great loss alone. */
static void test_loss_of_pings(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 2, 3);
    struct idle_test *l = &p->idle[0];

    p->has_loss[0] = false;
    /* Two of fifty are chance. */
    l->heard = l->back = 48;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NOTE);
    assert_non_null(strstr(m->report.items[0].text, "of 1 of 15 pairs loss is known by pings"));
    assert_non_null(strstr(m->report.items[0].text, ": n3 could not count more"));
    l->heard = l->back = 46;
    assert_names(only(m, PREFLIGHT_LOSS, PREFLIGHT_NO), 2, 3);
    assert_non_null(strstr(m->report.items[0].text, "8.00 % of 50 pings from n3 to n4 were lost"));
    l->rtt_median_us = 4000;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_WARN);
    l->heard = l->back = 30;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NO);
    /* Only the pongs were lost: that is the other direction's to tell. */
    l->heard = 50;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NOTE);
}

/* Once for all pairs, and whose fault it is. */
static void test_loss_of_an_earlier_version(void **state)
{
    struct mesh *m = *state;

    m->nodes[4].facts.counts_loss = false;
    for (size_t i = 0; i < NODES; i++)
        if (i != 4)
            pair(m, i < 4 ? i : 4, i < 4 ? 4 : i)->has_loss[i < 4] = false;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NOTE);
    assert_int_equal(m->report.n, 1);
    assert_non_null(strstr(m->report.items[0].text, "of 5 of 15 pairs loss is known by pings"));
    assert_non_null(strstr(m->report.items[0].text, "the agent of n5 is of an earlier version"));
    m->in.is_quick = true;
    (void)only(m, PREFLIGHT_LOSS, PREFLIGHT_NOTE);
    assert_non_null(strstr(m->report.items[0].text, "less than 5 %: --quick"));
}

/* What the connections have said counts before how the machines are set up. */
static void test_restarts(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 1, 2);
    struct preflight_node *a = &m->nodes[1];
    struct preflight_node *b = &m->nodes[2];

    a->facts.tcp_restarts = false;
    b->facts.tcp_restarts = false;
    assert_false(preflight_restarts(p, a, b));
    /* BBR is the machine's, and the route names CUBIC. */
    (void)snprintf(p->idle[1].congestion, RESULT_TCP_MAX, "cubic");
    p->idle[1].restarts = true;
    assert_true(preflight_restarts(p, a, b));
    /* The other way round. */
    b->facts.tcp_restarts = true;
    (void)snprintf(p->idle[1].congestion, RESULT_TCP_MAX, "bbr");
    p->idle[1].restarts = false;
    assert_false(preflight_restarts(p, a, b));
    /* A connection that was not tested says nothing. */
    p->has_idle[1] = false;
    assert_true(preflight_restarts(p, a, b));
}

static void set_rate(struct preflight_pair *p, uint64_t bits_per_s)
{
    p->one.out.bits_per_s = p->one.in.bits_per_s = bits_per_s;
    p->many.out.bits_per_s = p->many.in.bits_per_s = bits_per_s;
}

static void test_slow(void **state)
{
    struct mesh *m = *state;

    set_rate(pair(m, 1, 2), 200000000);
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    /* One direction is enough. */
    pair(m, 1, 2)->one.in.bits_per_s = pair(m, 1, 2)->many.in.bits_per_s = 100000000;
    assert_names(only(m, PREFLIGHT_SLOW, PREFLIGHT_WARN), 1, 2);
    m->in.expect_bps = 150000000;
    assert_names(only(m, PREFLIGHT_SLOW, PREFLIGHT_NO), 1, 2);
    m->in.expect_bps = 90000000;
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
}

static void test_buffers(void **state)
{
    struct mesh *m = *state;
    struct preflight_pair *p = pair(m, 1, 2);

    /* 100 ms and 3 MiB in flight: 251 Mbit/s for one stream, and four carry a Gbit/s. */
    p->idle[0].rtt_median_us = p->idle[1].rtt_median_us = 100000;
    p->one.out.bits_per_s = p->one.in.bits_per_s = 240000000;
    assert_names(only(m, PREFLIGHT_BUFFERS, PREFLIGHT_WARN), 1, 2);
    assert_non_null(strstr(m->report.items[0].fix, "tcp_rmem='4096 131072 25000000'"));
    /* Here it is not the window. */
    p->one.out.bits_per_s = p->one.in.bits_per_s = 60000000;
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
}

static void shift_clock(struct mesh *m, size_t node, int64_t us)
{
    for (size_t i = 0; i < NODES; i++) {
        if (i == node)
            continue;
        pair(m, i < node ? i : node, i < node ? node : i)->idle[i < node ? 0 : 1].clock_us += us;
        pair(m, i < node ? i : node, i < node ? node : i)->idle[i < node ? 1 : 0].clock_us -= us;
    }
}

static void test_clock(void **state)
{
    struct mesh *m = *state;

    shift_clock(m, 2, 300000);
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    shift_clock(m, 2, 700000);
    assert_names(only(m, PREFLIGHT_CLOCK, PREFLIGHT_WARN), 2, PREFLIGHT_NOBODY);
    assert_non_null(strstr(m->report.items[0].text, "clock of n3 is 1.0 s ahead"));
    shift_clock(m, 2, -31000000);
    assert_names(only(m, PREFLIGHT_CLOCK, PREFLIGHT_NO), 2, PREFLIGHT_NOBODY);
    assert_non_null(strstr(m->report.items[0].text, "30.0 s behind"));
}

static void test_interfaces(void **state)
{
    struct mesh *m = *state;

    m->in.env.nccl_ifname = "weft";
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    /* One member has another interface whose name begins so. */
    m->nodes[3].facts.interfaces[1] = m->nodes[3].facts.interfaces[2];
    (void)snprintf(m->nodes[3].facts.interfaces[1].name, IFNAMSIZ, "weft9");
    assert_names(only(m, PREFLIGHT_NCCL_INTERFACE, PREFLIGHT_NO), 3, PREFLIGHT_NOBODY);
    m->in.env.nccl_ifname = "=weft0";
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    m->in.env.gloo_ifname = "=weft0";
    assess(m);
    assert_int_equal(m->report.n, NODES);
    assert_int_equal(m->report.items[0].fault, PREFLIGHT_GLOO_INTERFACE);
}

/* Without weft run both take eth0; with it a file of NCCL's on one machine does no harm. */
static void test_interfaces_of_a_plain_job(void **state)
{
    struct mesh *m = *state;

    (void)snprintf(m->nodes[1].facts.nccl_ifname, FACTS_VALUE_MAX, "eth");
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    m->in.env.plain = true;
    m->in.env.gloo_ifname = "weft0";
    m->in.env.nccl_ifname = "=weft0";
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    m->in.env.nccl_ifname = NULL;
    assess(m);
    assert_int_equal(m->report.n, NODES);
    assert_non_null(strstr(m->report.items[0].text, "on n1 NCCL would take eth0, weft0"));
    assert_non_null(strstr(m->report.items[1].text, "nccl.conf says \"eth\""));
}

/* What rank 0 of torch 1.x announces; not where weft run gives the job another name. */
static void test_host_name(void **state)
{
    struct mesh *m = *state;

    (void)snprintf(m->nodes[2].host_name_wrong, 64, "leads nowhere on n1");
    (void)snprintf(m->nodes[2].facts.hostname, 64, "a3");
    m->in.env.keeps_host_name = true;
    assess(m);
    assert_int_equal(m->report.n, 0);
    for (unsigned i = 0; i < NODES; i++)
        (void)snprintf(m->nodes[i].facts.versions.torch, 64, "1.13.1");
    assert_names(only(m, PREFLIGHT_HOST_NAME, PREFLIGHT_NO), 2, PREFLIGHT_NOBODY);
    m->in.env.keeps_host_name = false;
    assess(m);
    assert_int_equal(m->report.n, 0);
    /* Without weft run later ones announce it, too. */
    for (unsigned i = 0; i < NODES; i++)
        (void)snprintf(m->nodes[i].facts.versions.torch, 64, "2.8.0");
    m->in.env.keeps_host_name = true;
    assess(m);
    assert_int_equal(m->report.n, 0);
}

static void test_names(void **state)
{
    struct mesh *m = *state;

    m->nodes[2].names_missing = 5;
    assert_names(only(m, PREFLIGHT_NAMES, PREFLIGHT_NOTE), 2, PREFLIGHT_NOBODY);
    (void)snprintf(m->nodes[2].names_wrong, 64, "n1 leads to 192.0.2.1");
    assert_names(only(m, PREFLIGHT_NAMES, PREFLIGHT_WARN), 2, PREFLIGHT_NOBODY);
}

static void test_limits(void **state)
{
    struct mesh *m = *state;

    m->nodes[5].facts.nofile_hard = 1024;
    assert_names(only(m, PREFLIGHT_FILES, PREFLIGHT_NO), 5, PREFLIGHT_NOBODY);
    m->nodes[5].facts.nofile_hard = 4096;
    m->nodes[5].facts.memlock_hard = 8u << 20;
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    m->nodes[5].facts.has_rdma = true;
    assert_names(only(m, PREFLIGHT_MEMLOCK, PREFLIGHT_WARN), 5, PREFLIGHT_NOBODY);
}

static void set_version(char *version, const char *text)
{
    (void)snprintf(version, FACTS_VERSION_MAX, "%s", text);
}

static void test_versions(void **state)
{
    struct mesh *m = *state;
    struct facts_versions *v = &m->nodes[4].facts.versions;

    set_version(v->torch, "2.8.1");
    assess(m);
    assert_int_equal(m->report.level, PREFLIGHT_OK);
    set_version(v->torch, "2.9.0+cu128");
    assert_names(only(m, PREFLIGHT_VERSIONS, PREFLIGHT_WARN), 4, PREFLIGHT_NOBODY);
    set_version(v->torch, "");
    assert_names(only(m, PREFLIGHT_VERSIONS, PREFLIGHT_NOTE), 4, PREFLIGHT_NOBODY);
    set_version(v->torch, "2.8.0");
    set_version(v->kernel, "6.8.0");
    assert_names(only(m, PREFLIGHT_VERSIONS, PREFLIGHT_NOTE), 4, PREFLIGHT_NOBODY);
    set_version(v->nccl, "2.27.3");
    assert_names(only(m, PREFLIGHT_VERSIONS, PREFLIGHT_NO), 4, PREFLIGHT_NOBODY);
}

static void test_live(void **state)
{
    struct mesh *m = *state;

    m->nodes[1].facts.traffic = 2 * PREFLIGHT_LIVE_RATE;
    m->in.skipped_bulk = true;
    (void)only(m, PREFLIGHT_LIVE, PREFLIGHT_NOTE);
    assert_non_null(strstr(m->report.items[0].text, "n2 has traffic"));
    /* That is also why loss is not known better, and told once. */
    pair(m, 0, 1)->has_loss[0] = false;
    assess(m);
    assert_int_equal(m->report.n, 1);
}

static void assert_loss(const json_t *loss, json_int_t lost, json_int_t ppm)
{
    assert_string_equal(json_string_value(json_object_get(loss, "by")), "datagrams");
    assert_int_equal(json_integer_value(json_object_get(loss, "sent")), 10000);
    assert_int_equal(json_integer_value(json_object_get(loss, "lost")), lost);
    assert_int_equal(json_integer_value(json_object_get(loss, "ppm")), ppm);
}

/* The JSON is a contract; the text tells each finding that matters. */
static void test_texts(void **state)
{
    struct mesh *m = *state;
    struct str out = STR_NULL;
    const json_t *first;
    json_t *json;

    m->nodes[5].facts.nofile_hard = 1024;
    pair(m, 0, 1)->loss[1].heard = 9999;
    assess(m);
    json = preflight_encode(&m->report, &m->in, 1500 * NSEC_PER_MSEC);
    assert_string_equal(json_string_value(json_object_get(json, "verdict")), "no");
    assert_int_equal(json_array_size(json_object_get(json, "pairs")), PAIRS);
    assert_int_equal(json_array_size(json_object_get(json, "nodes")), NODES);
    first = json_array_get(json_object_get(json, "findings"), 0);
    assert_string_equal(json_string_value(json_object_get(first, "fault")), "open-files");
    assert_string_equal(json_string_value(json_object_get(first, "code")), "WEFT-READY-005");
    first = json_array_get(json_object_get(json, "pairs"), rounds_index(NODES, 0, 1));
    assert_loss(json_object_get(first, "lossAToB"), 0, 0);
    assert_loss(json_object_get(first, "lossBToA"), 1, 100);
    json_decref(json);
    preflight_format(&m->report, &m->in, 1500 * NSEC_PER_MSEC, &out);
    assert_non_null(strstr(str_text(&out), "no    open-files: on n6 a program may have 1024"));
    assert_non_null(strstr(str_text(&out), "6 members, 15 pairs, 1.5 s. no: "));
    str_deinit(&out);
}

static void test_words_for_one_pair(void **state)
{
    struct mesh *m = *state;
    struct str out = STR_NULL;

    m->in.n_nodes = 2;
    m->in.n_pairs = 1;
    assess(m);
    preflight_format(&m->report, &m->in, 1500 * NSEC_PER_MSEC, &out);
    assert_non_null(strstr(str_text(&out), "2 members, 1 pair, 1.5 s. "));
    str_deinit(&out);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_mesh, free_mesh)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_healthy),
        CASE(test_own_interface),
        CASE(test_hub_away),
        CASE(test_absent),
        CASE(test_absent_behind_the_hub),
        CASE(test_absent_without_a_way),
        CASE(test_unreachable),
        CASE(test_not_measured),
        CASE(test_one_way),
        CASE(test_answered_one_way),
        CASE(test_mtu),
        CASE(test_mtu_of_a_member),
        CASE(test_tcp),
        cmocka_unit_test(test_loss_level),
        cmocka_unit_test(test_tcp_rate),
        CASE(test_loss),
        CASE(test_loss_of_few),
        CASE(test_loss_of_bbr),
        CASE(test_loss_explains),
        CASE(test_loss_of_pings),
        CASE(test_loss_of_an_earlier_version),
        CASE(test_restarts),
        CASE(test_slow),
        CASE(test_buffers),
        CASE(test_clock),
        CASE(test_interfaces),
        CASE(test_interfaces_of_a_plain_job),
        CASE(test_names),
        CASE(test_host_name),
        CASE(test_limits),
        CASE(test_versions),
        CASE(test_live),
        CASE(test_texts),
        CASE(test_words_for_one_pair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
