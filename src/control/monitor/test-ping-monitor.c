/*
 * test-ping-monitor.c - whose turn it is, which answers count, and what stays when members change.
 *
 * On a clock of the test's, without raw sockets: there is no such interface, so nothing is sent,
 * and answers come from UDP sockets of loopback, which read the same to the monitor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "monitor/ping_monitor.h"
#include "wire/ip.h"

#define SEC NSEC_PER_SEC
#define MS  NSEC_PER_MSEC

#define ID     0x1234
#define COOKIE 0x5566778899aa1234u

/* A round of four seconds, IPv4 only. */
struct world {
    struct ping_monitor monitor;
    struct sockaddr_in at; /* of the monitor's socket */
    unsigned n_changes;
};

static void on_change(
    void *ctx, const struct ping_monitor_member *m, enum ping_monitor_family family, nsec_t now)
{
    struct world *w = ctx;

    w->n_changes++;
}

static struct ip_addr loopback(unsigned n)
{
    return (struct ip_addr){{[10] = 0xff, 0xff, 127, 0, 0, (uint8_t)n}};
}

static int open_socket(unsigned n, struct sockaddr_in *ret)
{
    socklen_t len = sizeof(*ret);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *ret =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + n)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)ret, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)ret, &len), 0);
    return fd;
}

/* Members named in order, the first at 127.0.0.2. */
static void set_members(struct world *w, const char *const *names, size_t n)
{
    struct ping_monitor_member *members = calloc(n + 1, sizeof(*members));

    assert_non_null(members);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(members[i].name, sizeof(members[i].name), "%s", names[i]);
        members[i].address[PING_MONITOR_V4] = loopback((unsigned)(names[i][0] - 'a') + 2);
    }
    ping_monitor_set(&w->monitor, members, n);
}

static int enter(void **state)
{
    static struct world w;
    static const char *const names[] = {"a", "b", "c", "d"};

    w = (struct world){.monitor = PING_MONITOR_NULL};
    (void)snprintf(w.monitor.interface, sizeof(w.monitor.interface), "weft-none");
    w.monitor.fd[PING_MONITOR_V4] = open_socket(0, &w.at);
    w.monitor.id = ID;
    w.monitor.cookie = COOKIE;
    w.monitor.period = 4 * SEC;
    w.monitor.on_change = on_change;
    w.monitor.ctx = &w;
    set_members(&w, names, 4);
    *state = &w;
    return 0;
}

static int leave(void **state)
{
    struct world *w = *state;

    ping_monitor_close(&w->monitor);
    ping_monitor_close(&w->monitor);
    return 0;
}

static const struct reachability *reach(const struct world *w, unsigned i)
{
    return &w->monitor.members[i].reach[PING_MONITOR_V4];
}

/* An answer as a raw socket gives it, from 127.0.0.(1 + @from). */
static void answer(struct world *w, unsigned from, const struct echo *echo)
{
    uint8_t packet[20 + ECHO_LEN] = {0x45};
    uint8_t *icmp = packet + 20;
    struct sockaddr_in source;
    int fd = open_socket(from, &source);
    uint16_t sum;

    echo_encode(echo, true, icmp);
    /* From a request to its answer: the type is 0 and not 8, and the checksum follows. */
    icmp[0] = 0;
    sum = (uint16_t)(icmp[2] << 8 | icmp[3]);
    sum = (uint16_t)(sum + 0x0800 + (sum + 0x0800 > 0xffff));
    icmp[2] = (uint8_t)(sum >> 8);
    icmp[3] = (uint8_t)sum;
    assert_true(
        sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&w->at, sizeof(w->at)) > 0);
    (void)close(fd);
}

static void test_a_round_is_spread_over_its_period(void **state)
{
    struct world *w = *state;
    struct ping_monitor *p = &w->monitor;

    assert_true(ping_monitor_run(p, 100 * SEC));
    assert_int_equal(reach(w, 0)->n_pings, 1);
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(ping_monitor_due(p), (nsec_t)(100 + i) * SEC);
        assert_int_equal(reach(w, i)->n_pings, 0);
        (void)ping_monitor_run(p, (nsec_t)(100 + i) * SEC);
        assert_int_equal(reach(w, i)->n_pings, 1);
    }
    assert_false(ping_monitor_run(p, 104 * SEC - 1));
    assert_true(ping_monitor_run(p, 104 * SEC));
    assert_int_equal(reach(w, 0)->n_pings, 2);
    assert_int_equal(p->round_since, 104 * SEC);
}

/* A late turn moves no later round; a machine that slept for long begins anew, and sends no burst.
 */
static void test_late_turns(void **state)
{
    struct world *w = *state;
    struct ping_monitor *p = &w->monitor;

    (void)ping_monitor_run(p, 100 * SEC);
    (void)ping_monitor_run(p, 103 * SEC);
    assert_true(ping_monitor_run(p, 105 * SEC));
    assert_int_equal(p->round_since, 104 * SEC);
    (void)ping_monitor_run(p, 107 * SEC);
    assert_true(ping_monitor_run(p, 1000 * SEC));
    assert_int_equal(p->round_since, 1000 * SEC);
    assert_int_equal(reach(w, 0)->n_pings, 3);
    assert_int_equal(reach(w, 1)->n_pings, 2);
}

static void test_nobody_to_ping(void **state)
{
    struct world *w = *state;

    set_members(w, NULL, 0);
    assert_true(ping_monitor_due(&w->monitor) == NSEC_NEVER);
    assert_false(ping_monitor_run(&w->monitor, 100 * SEC));
}

/* Only the member itself can answer for it, and only to this run's pings. */
static void test_which_answers_count(void **state)
{
    struct world *w = *state;
    struct ping_monitor *p = &w->monitor;
    const struct echo good = {.id = ID, .seq = 1, .index = 1, .cookie = COOKIE};
    struct echo other = good;

    (void)ping_monitor_run(p, 100 * SEC);
    (void)ping_monitor_run(p, 101 * SEC);
    answer(w, 3, &good); /* from another address than b's */
    other.cookie++;
    answer(w, 2, &other);
    other = good;
    other.id++;
    answer(w, 2, &other);
    other = good;
    other.index = 0xffffff; /* there are members 0 to 3 */
    answer(w, 2, &other);
    ping_monitor_take(p, PING_MONITOR_V4, 101 * SEC + 10 * MS);
    assert_int_equal(w->n_changes, 0);
    assert_int_equal(reach(w, 1)->state, REACHABILITY_UNKNOWN);
    answer(w, 2, &good);
    ping_monitor_take(p, PING_MONITOR_V4, 101 * SEC + 10 * MS);
    assert_int_equal(w->n_changes, 1);
    assert_int_equal(reach(w, 1)->state, REACHABILITY_REACHED);
    assert_int_equal(reach(w, 1)->rtt, 10 * MS);
}

/* Silence is noticed although nothing happens any more. */
static void test_a_member_falls_silent(void **state)
{
    struct world *w = *state;
    struct ping_monitor *p = &w->monitor;

    for (nsec_t now = 100 * SEC; now < 112 * SEC; now += SEC)
        (void)ping_monitor_run(p, now);
    assert_int_equal(w->n_changes, 0);
    (void)ping_monitor_run(p, 112 * SEC);
    assert_int_equal(w->n_changes, 1);
    assert_int_equal(reach(w, 0)->state, REACHABILITY_SILENT);
    assert_int_equal(reach(w, 1)->state, REACHABILITY_UNKNOWN);
}

/* Who comes and goes must not cost the others what is known of them. */
static void test_members_that_change(void **state)
{
    static const char *const names[] = {"b", "bb", "d"};
    struct world *w = *state;
    struct ping_monitor *p = &w->monitor;
    struct ping_monitor_member *moved;

    (void)ping_monitor_run(p, 100 * SEC);
    (void)ping_monitor_run(p, 103 * SEC);
    answer(w, 2, &(struct echo){.id = ID, .seq = 1, .index = 1, .cookie = COOKIE});
    ping_monitor_take(p, PING_MONITOR_V4, 103 * SEC);
    set_members(w, names, 3);
    assert_int_equal(reach(w, 0)->state, REACHABILITY_REACHED);
    assert_int_equal(reach(w, 1)->n_pings, 0);
    assert_int_equal(reach(w, 2)->n_pings, 1);
    /* All had their turn in this round; the next one comes in its time. */
    assert_int_equal(ping_monitor_due(p), 104 * SEC);
    /* The same name at another address is another machine. */
    moved = calloc(1, sizeof(*moved));
    assert_non_null(moved);
    (void)snprintf(moved->name, sizeof(moved->name), "b");
    moved->address[PING_MONITOR_V4] = loopback(9);
    ping_monitor_set(p, moved, 1);
    assert_int_equal(reach(w, 0)->state, REACHABILITY_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_round_is_spread_over_its_period, enter, leave),
        cmocka_unit_test_setup_teardown(test_late_turns, enter, leave),
        cmocka_unit_test_setup_teardown(test_nobody_to_ping, enter, leave),
        cmocka_unit_test_setup_teardown(test_which_answers_count, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_member_falls_silent, enter, leave),
        cmocka_unit_test_setup_teardown(test_members_that_change, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
