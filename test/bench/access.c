/*
 * access.c - bench-access NODES RULES CHANGES PACKETS: what a network's rules cost a node.
 *
 * In a network namespace of its own, with lo as the interface. All rules concern the node: each
 * lets one other node reach a port of all members. Prints as JSON, in milliseconds, the median of
 * CHANGES times that one rule changes, of which the formatting, that one is removed and added, of a
 * reading of the counters, and of the whole table;
 * and in nanoseconds what a packet of a flow costs that goes on, there and back over lo, without
 * rules, with one, and with all of them, by turns.
 */
#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "mesh/object/rule.h"
#include "net/netlink/netlink.h"
#include "os/clock.h"
#include "os/process.h"
#include "rules/access_rules.h"
#include "rules/access_table.h"
#include "test/bench/access_sample.h"
#include "test/support/sample_mesh.h"

#define SELF   2
#define ROUNDS 7

static void run(const char *const *argv)
{
    struct err e = ERR_NULL;

    if (process_run(argv, 5000, &e) != 0)
        fail_msg("%s: %s", argv[0], err_text(&e));
}

static int compare(const void *a, const void *b)
{
    nsec_t x = *(const nsec_t *)a;
    nsec_t y = *(const nsec_t *)b;

    return (x > y) - (x < y);
}

static double median(nsec_t *times, size_t n)
{
    qsort(times, n, sizeof(*times), compare);
    return (double)times[n / 2];
}

/* Both ends of a flow on lo, between two ports of the node. */
static int open_end(uint16_t port, uint16_t to)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    assert_int_equal(inet_pton(AF_INET, "10.42.0.2", &at.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    at.sin_port = htons(to);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static nsec_t send_packets(const int fds[2], unsigned n)
{
    nsec_t since = clock_now();
    char byte = 0;

    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(send(fds[i % 2], &byte, 1, 0), 1);
        assert_int_equal(recv(fds[1 - i % 2], &byte, 1, 0), 1);
    }
    return (clock_now() - since) / n;
}

/* How long it takes to have the rules of @s in the table. */
static nsec_t apply(struct access_rules *ar, const struct snapshot *s, nsec_t now)
{
    nsec_t since = clock_now();

    access_rules_apply(ar, "lo", NULL, s, now);
    since = clock_now() - since;
    if (ar->fault.code != 0)
        fail_msg("%s", err_text(&ar->fault));
    return since;
}

int main(int argc, char **argv)
{
    static const char *const up[] = {"/usr/sbin/ip", "link", "set", "lo", "up", NULL};
    static const char *const own[] = {
        "/usr/sbin/ip", "address", "add", "10.42.0.2/32", "dev", "lo", NULL};
    uint64_t n_nodes, n_rules, n_changes, n_packets;
    nsec_t formats[100], changes[100], reads[100], removals[100], additions[100], wholes[100],
        packets[3][ROUNDS];
    struct access_rules ar = {.fault = ERR_NULL};
    struct snapshot sets[3]; /* without rules, with one, with all */
    struct err e = ERR_NULL;
    nsec_t now = NSEC_PER_SEC;
    int fds[2];

    if (argc != 5 || parse_u64(&n_nodes, argv[1], 3, 10000, "NODES", &e) < 0 ||
        parse_u64(&n_rules, argv[2], 1, 10000, "RULES", &e) < 0 ||
        parse_u64(&n_changes, argv[3], 1, 100, "CHANGES", &e) < 0 ||
        parse_u64(&n_packets, argv[4], 2, 100000000, "PACKETS", &e) < 0)
        return (void)fprintf(
                   stderr, "usage: bench-access NODES RULES CHANGES PACKETS: %s\n", e.text),
               2;
    if (unshare(CLONE_NEWNET) < 0)
        return (void)fprintf(stderr, "bench-access: needs root\n"), 1;
    run(up);
    run(own);
    for (unsigned i = 0; i < 3; i++)
        sets[i] = sample_snapshot((unsigned)n_nodes, SELF);
    access_sample_put(&sets[1], 0, (unsigned)n_nodes, 9000);
    for (unsigned i = 0; i < n_rules; i++)
        access_sample_put(&sets[2], i, (unsigned)n_nodes, 9000);
    for (size_t i = 0; i < n_changes; i++) {
        struct str out = STR_NULL;
        nsec_t since = clock_now();

        access_table_format(&out, "lo", &sets[2], &(struct job_ports){.n = 0}, 1);
        formats[i] = clock_now() - since;
        str_deinit(&out);
        access_sample_put(&sets[2], 1, (unsigned)n_nodes, 10000 + (unsigned)i);
        if (i == 0) /* there is no table to change yet */
            (void)apply(&ar, &sets[2], now++);
        access_sample_put(&sets[2], 1, (unsigned)n_nodes, 20000 + (unsigned)i);
        changes[i] = apply(&ar, &sets[2], now++);
        ar.read_at = -ACCESS_READ_EACH;
        since = clock_now();
        access_rules_count(&ar, "lo", NULL, &sets[2], now);
        reads[i] = clock_now() - since;
        assert_int_equal(snapshot_delete(&sets[2], &rule_kind, "r2", NULL), 0);
        removals[i] = apply(&ar, &sets[2], now++);
        access_sample_put(&sets[2], 2, (unsigned)n_nodes, 9000);
        additions[i] = apply(&ar, &sets[2], now++);
        access_rules_forget(&ar);
        wholes[i] = apply(&ar, &sets[2], now++);
    }
    fds[0] = open_end(9000, 9001);
    fds[1] = open_end(9001, 9000);
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < 3; k++) {
            /* The flow begins at the end whose port the rules allow, and is known from then on. */
            access_rules_apply(&ar, "lo", NULL, &sets[k], now++);
            (void)send_packets((const int[]){fds[1], fds[0]}, 2);
            packets[k][i] = send_packets((const int[]){fds[1], fds[0]}, (unsigned)n_packets);
        }
    (void)printf("{\"formatMs\": %.2f, \"changeMs\": %.2f, \"removeMs\": %.2f, \"addMs\": %.2f, "
                 "\"wholeMs\": %.2f, \"readMs\": %.2f, \"packetNs\": %.0f, "
                 "\"oneRuleNs\": %.0f, \"allRulesNs\": %.0f}\n",
        median(formats, n_changes) / NSEC_PER_MSEC, median(changes, n_changes) / NSEC_PER_MSEC,
        median(removals, n_changes) / NSEC_PER_MSEC, median(additions, n_changes) / NSEC_PER_MSEC,
        median(wholes, n_changes) / NSEC_PER_MSEC, median(reads, n_changes) / NSEC_PER_MSEC,
        median(packets[0], ROUNDS), median(packets[1], ROUNDS), median(packets[2], ROUNDS));
    access_rules_deinit(&ar);
    for (unsigned i = 0; i < 3; i++)
        snapshot_deinit(&sets[i]);
    return 0;
}
