/*
 * test-survey.c - three measuring services in this process, surveyed and benchmarked for real.
 *
 * They listen on 127.0.0.1 to .3, so packets are the kernel's, and everything but WireGuard is as
 * it is on a node.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "measure/facts.h"
#include "measure/service.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "test/support/emulated.h"
#include "test/support/netns.h"
#include "train/names/members.h"
#include "train/survey/bench.h"
#include "train/survey/survey.h"

/* Outside of the range that connections get theirs from. */
#define PORT 7000

#define NODES 3

struct site {
    struct service *services[NODES];
    struct member members[NODES];
    uint16_t port;
};

/* The key of all orders here. */
static const struct measure_proof_key key = {{7}};

static struct ip_addr loopback(size_t i)
{
    const uint8_t b[4] = {127, 0, 0, (uint8_t)(i + 1)};

    return ip_addr_v4(b);
}

/* Connects from an address that no service has: a socket of the same one may get the very port that
 * nobody listens on yet as its own, and would be connected to itself. */
static bool is_heard(const struct endpoint *ep)
{
    struct endpoint own = {.addr = loopback(NODES)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &own);
    int r;

    assert_int_equal(bind(fd, &sa.any, len), 0);
    len = sockaddr_from_endpoint(&sa, ep);
    r = connect(fd, &sa.any, len);
    (void)close(fd);
    return r == 0;
}

/* The listening thread opens its sockets by itself; a connection that is refused tries again. */
static void wait_until_heard(const struct site *site, size_t i)
{
    struct endpoint ep = {.addr = site->members[i].address, .port = site->port};
    nsec_t until = clock_now() + 60 * NSEC_PER_SEC;

    while (!is_heard(&ep)) {
        assert_true(clock_now() < until);
        (void)poll(NULL, 0, 1);
    }
}

static int open_site(void **state)
{
    static const char *const names[NODES] = {"n1", "n2", "n3"};
    struct site *site = calloc(1, sizeof(*site));
    struct service_member members[NODES] = {{.path = "lan"}, {.path = "lan"}, {.path = "lan"}};

    assert_non_null(site);
    site->port = PORT;
    for (size_t i = 0; i < NODES; i++) {
        (void)snprintf(site->members[i].name, sizeof(site->members[i].name), "%s", names[i]);
        site->members[i].address = members[i].address = loopback(i);
        members[i].key = key;
        members[i].has_key = true;
    }
    for (size_t i = 0; i < NODES; i++) {
        struct err e = ERR_NULL;

        assert_int_equal(service_new(&site->services[i], NULL, NULL, site->port, &e), 0);
        service_set_members(site->services[i], &site->members[i].address, members, NODES);
        wait_until_heard(site, i);
    }
    *state = site;
    return 0;
}

static int close_site(void **state)
{
    struct site *site = *state;

    for (size_t i = 0; i < NODES; i++)
        site->services[i] = service_free(site->services[i]);
    free(site);
    return 0;
}

/* What an agent does for the command, which has no key. */
static int prove(void *ctx, const struct order *session, const struct coordinator_link *links,
    size_t n, struct order_proof *ret, bool *ret_has, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const struct measure_proof p = order_proof_input(session, &links[i].challenge);

        measure_proof_make(ret[i].mac, &key, &p);
        ret_has[i] = links[i].has_challenge;
    }
    return 0;
}

static struct survey_plan plan_for(const struct site *site)
{
    return (struct survey_plan){.purpose = "test",
        .reach = {.own = site->members[0].address, .port = site->port, .prove = prove},
        .pings = 10,
        .ms = 20,
        .streams = 2,
        .bytes = 64u << 20,
        .force = true};
}

/* The congestion control of a new connection of this process. */
static void default_congestion(char ret[static RESULT_TCP_MAX])
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = RESULT_TCP_MAX - 1;

    memset(ret, 0, RESULT_TCP_MAX);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, ret, &len), 0);
    (void)close(fd);
}

static void test_survey(void **state)
{
    struct site *site = *state;
    char congestion[RESULT_TCP_MAX];
    struct survey_plan plan = plan_for(site);
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;

    if (emulated_lacks("TCP_INFO"))
        skip();
    default_congestion(congestion);
    plan.datagrams = 300;
    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    for (size_t i = 0; i < NODES; i++) {
        assert_true(s.nodes[i].present);
        assert_true(s.nodes[i].facts.nofile_hard > 0);
        assert_true(s.nodes[i].facts.n_interfaces > 0);
    }
    assert_int_equal(survey_run(&s, &plan), 0);
    for (size_t i = 0; i < s.n_pairs; i++) {
        const struct preflight_pair *p = &s.pairs[i];

        for (unsigned way = 0; way < 2; way++) {
            assert_string_equal(p->idle[way].why, "");
            assert_int_equal(p->idle[way].sent, 10);
            assert_true(p->idle[way].back > 0 && p->idle[way].rtt_min_us > 0);
            assert_true(p->idle[way].transferred);
            assert_true(p->idle[way].mss > 1000);
            assert_string_equal(p->idle[way].congestion, congestion);
            assert_int_equal(p->idle[way].restarts, facts_tcp_restarts(congestion));
            assert_in_range(llabs(p->idle[way].clock_us), 0, 2000000);
            assert_true(p->has_loss[way]);
            assert_int_equal(p->loss[way].sent, 300);
            assert_int_equal(p->loss[way].heard, 300);
        }
        assert_string_equal(p->idle[0].path, "lan");
        assert_true(p->has_bulk);
        assert_true(p->one.out.bits_per_s > 0 && p->one.in.bits_per_s > 0);
        assert_true(p->many.out.bits_per_s > 0 && p->many.in.bits_per_s > 0);
        assert_true(p->many.out.bytes <= plan.bytes);
    }
    survey_deinit(&s);
}

/* At half of what was measured in that direction, for no longer than the line needs, and in a large
 * network than all rounds have. */
static void test_pace_of_a_loss_test(void **state)
{
    static const struct {
        size_t n_nodes;
        uint64_t bps;
        uint32_t rtt_us;
        uint32_t per_second;
        uint32_t ms;
    } cases[] = {
        {2, 0, 1000, 2500, 4000},
        {2, 11520000, 1000, 5000, 4000},
        {2, 100000, 1000, 500, 4000},
        {2, 10000000000, 1000, 20000, 4000},
        {2, 10000000000, 100000, 20000, 10000},
        {2, 10000000000, 600000000, 20000, 12000},
        {16, 10000000000, 100000, 20000, 10000},
        {101, 10000000000, 1000, 20000, 1485},
    };
    const struct survey_plan plan = {.datagrams = 10000};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct survey s = {.n_nodes = cases[i].n_nodes};
        struct preflight_pair p = {.a = 0, .b = 1, .has_bulk = true};
        struct order o;

        p.one.in.bits_per_s = 1;
        p.many.in.bits_per_s = cases[i].bps;
        p.one.out.bits_per_s = p.many.out.bits_per_s = 50000000;
        p.idle[1].rtt_median_us = cases[i].rtt_us;
        p.has_bulk = cases[i].bps > 0;
        o = survey_loss_order(&s, &plan, &p, true);
        if (o.per_second != cases[i].per_second || o.ms != cases[i].ms)
            fail_msg("case %zu: %u a second, for %u ms", i, o.per_second, o.ms);
        assert_int_equal(o.kind, ORDER_LOSS);
        assert_int_equal(o.datagrams, 10000);
    }
}

/* A service of an earlier version would take the order for the session's end. */
static void test_an_earlier_version_counts_nothing(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;

    plan.datagrams = 300;
    plan.ms = 0;
    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    s.nodes[0].facts.counts_loss = false;
    assert_int_equal(survey_run(&s, &plan), 0);
    assert_false(s.pairs[rounds_index(NODES, 0, 1)].has_loss[0]);
    assert_true(s.pairs[rounds_index(NODES, 0, 1)].has_loss[1]);
    assert_true(s.pairs[rounds_index(NODES, 1, 2)].has_loss[0]);
    survey_deinit(&s);
}

static void test_bench(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct bench_allreduce allreduce[ORDER_ALGORITHM_N] = {{.bytes = 0}};
    struct bench_pair more[NODES] = {{.has_both = false}};
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    assert_int_equal(survey_run(&s, &plan), 0);
    assert_int_equal(bench_run(&s, &plan, false, 1000003, more, allreduce), 0);
    for (size_t i = 0; i < s.n_pairs; i++) {
        assert_true(more[i].has_both);
        assert_true(more[i].both.out.bits_per_s > 0 && more[i].both.in.bits_per_s > 0);
    }
    for (unsigned i = 0; i < ORDER_ALGORITHM_N; i++) {
        assert_string_equal(allreduce[i].why, "");
        assert_true(allreduce[i].is_done);
        assert_true(allreduce[i].repeats >= 1 && allreduce[i].elapsed > 0);
    }
    survey_deinit(&s);
}

/* In the tunnel both ways; beside it nobody knows where the others are. A member of an earlier
 * version is not asked. */
static void test_bursts(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct bench_pair more[NODES] = {{.has_both = false}};
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    assert_true(s.nodes[1].facts.counts_bursts);
    s.nodes[2].facts.counts_bursts = false;
    assert_int_equal(bench_sample(&s, &plan, more), 0);
    for (size_t i = 0; i < s.n_pairs; i++) {
        bool is_asked = s.pairs[i].a != 2 && s.pairs[i].b != 2;

        for (unsigned way = 0; way < 2; way++) {
            assert_int_equal(more[i].bursts[way].bits_per_s > 0, is_asked);
            assert_int_equal(more[i].raw_bursts[way].bits_per_s, 0);
        }
        assert_string_equal(
            more[i].burst_why, is_asked ? "there is no direct path to it beside the overlay" : "");
    }
    survey_deinit(&s);
}

/* A pair without an order has no result, though a member of it measures in another pair. */
static void test_pairs_that_are_not_measured(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct order orders[NODES] = {ORDER_NULL};
    struct bulk results[NODES] = {{.why = ""}};
    bool measured[NODES] = {false, true, true};
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    assert_int_equal(s.pairs[1].a, s.pairs[0].a);
    orders[0] = survey_bulk_order(&plan, &s.pairs[0], 1, ORDER_OUT);
    survey_ask_bulk(&s, orders, results, measured);
    assert_true(measured[0] && results[0].out.bits_per_s > 0);
    assert_false(measured[1] || measured[2]);
    survey_deinit(&s);
}

/* One coordinator at a time: the second is told by whom its own machine is kept busy. */
static void test_second_coordinator(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct survey first = SURVEY_NULL;
    struct survey second = SURVEY_NULL;
    struct err e = ERR_NULL;

    assert_int_equal(survey_open(&first, &plan, site->members, NODES, &e), 0);
    assert_true(survey_open(&second, &plan, site->members, NODES, &e) < 0);
    assert_non_null(strstr(e.text, "it measures for 127.0.0.1 right now"));
    survey_deinit(&second);
    survey_deinit(&first);
}

static void test_absent_member(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;

    site->services[2] = service_free(site->services[2]);
    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    assert_true(s.nodes[0].present && s.nodes[1].present);
    assert_false(s.nodes[2].present);
    assert_non_null(strstr(s.nodes[2].why, "no measuring service"));
    assert_int_equal(survey_run(&s, &plan), 0);
    assert_true(s.pairs[0].has_idle[0] && s.pairs[0].has_bulk);
    assert_false(s.pairs[1].has_idle[0]);
    survey_deinit(&s);
}

/*
 * Makes a member silent: nobody takes the connections at its address, so the kernel drops those
 * that come once its queue is full.
 */
static void make_silent(struct site *site, size_t i, int ret_fds[static 3])
{
    struct endpoint ep = {.addr = site->members[i].address, .port = site->port};
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, &ep);
    int one = 1;

    site->services[i] = service_free(site->services[i]);
    for (size_t k = 0; k < 3; k++) {
        ret_fds[k] = socket(AF_INET, SOCK_STREAM | (k == 2 ? SOCK_NONBLOCK : 0), 0);
        assert_true(ret_fds[k] >= 0);
    }
    assert_int_equal(setsockopt(ret_fds[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(bind(ret_fds[0], &sa.any, len), 0);
    assert_int_equal(listen(ret_fds[0], 0), 0);
    assert_int_equal(connect(ret_fds[1], &sa.any, len), 0);
    assert_int_equal(connect(ret_fds[2], &sa.any, len), -1);
}

/* A member that does not answer uses up the time of connecting, and those after it are asked. */
static void test_silent_member(void **state)
{
    struct site *site = *state;
    struct survey_plan plan = plan_for(site);
    struct survey s = SURVEY_NULL;
    struct err e = ERR_NULL;
    int fds[3];

    make_silent(site, 1, fds);
    assert_int_equal(survey_open(&s, &plan, site->members, NODES, &e), 0);
    assert_true(s.nodes[0].present);
    assert_false(s.nodes[1].present);
    assert_string_equal(s.nodes[1].why, "it does not answer");
    assert_string_equal(s.nodes[2].why, "");
    assert_true(s.nodes[2].present);
    survey_deinit(&s);
    for (size_t k = 0; k < 3; k++)
        (void)close(fds[k]);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, open_site, close_site)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_survey),
        cmocka_unit_test(test_pace_of_a_loss_test),
        CASE(test_an_earlier_version_counts_nothing),
        CASE(test_bench),
        CASE(test_bursts),
        CASE(test_pairs_that_are_not_measured),
        CASE(test_second_coordinator),
        CASE(test_absent_member),
        CASE(test_silent_member),
    };

    netns_be_alone();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
