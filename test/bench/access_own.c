/*
 * access_own.c - bench-access-own NODES RULES CHANGES PACKETS: what a network's rules cost a node
 * whose data plane enforces them itself.
 *
 * All rules concern the node, as those of bench-access do. Prints as JSON, in milliseconds, the
 * median of CHANGES times that one rule changes, of which the formatting, and of a reading of what
 * was counted, at a device in a network namespace of its own; and in nanoseconds what the filter
 * does for a packet: of one connection, of one among 1,000 in turn, and of one that begins.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "access/access_filter.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/engine_access.h"
#include "mesh/snapshot/snapshot.h"
#include "net/tun/offload.h"
#include "os/clock.h"
#include "port/device.h"
#include "port/port.h"
#include "rules/access_lines.h"
#include "rules/job_ports.h"
#include "test/bench/access_sample.h"
#include "test/support/inner_packet.h"
#include "test/support/sample_mesh.h"
#include "uapi/uapi.h"

#define SELF  2
#define FLOWS 1000
#define PORT  9000

static const struct job_ports no_jobs = {.n = 0};

static int compare(const void *a, const void *b)
{
    nsec_t x = *(const nsec_t *)a;
    nsec_t y = *(const nsec_t *)b;

    return (x > y) - (x < y);
}

static double median_ms(nsec_t *times, size_t n)
{
    qsort(times, n, sizeof(*times), compare);
    return (double)times[n / 2] / NSEC_PER_MSEC;
}

static int call_device(void *ctx, const char *in, size_t len, struct str *out, struct err *e)
{
    size_t out_len;
    char *text;

    assert_int_equal(uapi_handle(ctx, in, len, &text, &out_len), 0);
    str_add_bytes(out, text, out_len);
    free(text);
    return 0;
}

/* ---- changes -------------------------------------------------------------------------------- */

static void measure_changes(struct engine *engine, struct snapshot *s, unsigned n_nodes, unsigned n)
{
    nsec_t formats[100], changes[100], reads[100];

    for (unsigned i = 0; i < n; i++) {
        struct engine_access a = {.is_on = false};
        struct str lines = STR_NULL;
        struct err e = ERR_NULL;
        nsec_t since;

        access_sample_put(s, 1, n_nodes, 10000 + i);
        since = clock_now();
        access_lines_format(&lines, s, &no_jobs, 1);
        formats[i] = clock_now() - since;
        if (engine_set_access(engine, str_text(&lines), i, &e) != 0)
            fail_msg("%s", err_text(&e));
        changes[i] = clock_now() - since;
        since = clock_now();
        assert_int_equal(engine_get_access(engine, &a, &e), 0);
        reads[i] = clock_now() - since;
        assert_true(a.is_on);
        engine_access_deinit(&a);
        str_deinit(&lines);
    }
    (void)printf("{\"ownFormatMs\": %.2f, \"ownChangeMs\": %.2f, \"ownReadMs\": %.3f, ",
        median_ms(formats, n), median_ms(changes, n), median_ms(reads, n));
}

/* ---- packets -------------------------------------------------------------------------------- */

static struct access_filter *make_filter(const struct snapshot *s)
{
    struct access_builder *b = access_builder_new(1);
    struct access_filter *f = NULL;
    struct access_set *set = NULL;
    struct str lines = STR_NULL;
    char *rest = NULL;
    char *text;

    access_lines_format(&lines, s, &no_jobs, 1);
    text = str_take(&lines, NULL);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        assert_int_equal(access_builder_line(b, line, NULL), 0);
    free(text);
    assert_int_equal(access_builder_finish(b, &set, NULL), 0);
    (void)access_builder_free(b);
    assert_int_equal(access_filter_new(&f, 1, 1, clock_now()), 0);
    access_filter_settle(f, access_filter_use(f, set, 1));
    return f;
}

/* Packets by turns of @n_flows connections, from as many ports of their sender; @begins: each is
 * another one. */
static double measure_packets(struct access_filter *f, unsigned n_flows, unsigned n, bool begins)
{
    static uint8_t packets[FLOWS][INNER_PACKET_MAX];
    struct ip_info ip[FLOWS];
    size_t len = 0;
    nsec_t now = clock_now();
    nsec_t since;

    for (unsigned i = 0; i < n_flows; i++) {
        const struct inner_packet of = {.src = "10.42.0.3",
            .dst = "10.42.0.2",
            .protocol = 17,
            .from_port = (uint16_t)(20000 + i),
            .to_port = PORT};

        len = inner_packet_make(&of, packets[i]);
        assert_int_equal(ip_parse(packets[i], len, &ip[i]), 0);
        assert_true(access_filter_pass(f, 0, ACCESS_IN, packets[i], len, &ip[i], now));
    }
    since = clock_now();
    for (unsigned i = 0; i < n; i++) {
        unsigned k = i % n_flows;

        if (begins)
            memcpy(packets[k] + 20, &i, 2);
        if (!access_filter_pass(f, 0, ACCESS_IN, packets[k], len, &ip[k], now))
            fail_msg("a packet is refused");
    }
    return (double)(clock_now() - since) / n;
}

int main(int argc, char **argv)
{
    const struct port_options port_options = {.offloads = offloads_all()};
    const struct device_options options = {.name = "wft0", .tun_fd = -1};
    uint64_t n_nodes, n_rules, n_changes, n_packets;
    struct device *device = NULL;
    struct engine *engine = NULL;
    struct access_filter *f;
    struct port *port = NULL;
    struct err e = ERR_NULL;
    struct snapshot s;

    if (argc != 5 || parse_u64(&n_nodes, argv[1], 3, 10000, "NODES", &e) < 0 ||
        parse_u64(&n_rules, argv[2], 1, 10000, "RULES", &e) < 0 ||
        parse_u64(&n_changes, argv[3], 1, 100, "CHANGES", &e) < 0 ||
        parse_u64(&n_packets, argv[4], 2, 100000000, "PACKETS", &e) < 0)
        return (void)fprintf(
                   stderr, "usage: bench-access-own NODES RULES CHANGES PACKETS: %s\n", e.text),
               2;
    if (unshare(CLONE_NEWNET) < 0)
        return (void)fprintf(stderr, "bench-access-own: needs root\n"), 1;
    s = sample_snapshot((unsigned)n_nodes, SELF);
    for (unsigned i = 0; i < n_rules; i++)
        access_sample_put(&s, i, (unsigned)n_nodes, PORT);
    if (port_new(&port, &port_options, &e) < 0 || device_new(&device, port, &options, &e) < 0 ||
        port_start(port, &e) < 0)
        return (void)fprintf(stderr, "bench-access-own: %s\n", err_text(&e)), 1;
    assert_int_equal(engine_userspace_new(&engine, call_device, device), 0);
    measure_changes(engine, &s, (unsigned)n_nodes, (unsigned)n_changes);
    access_sample_put(&s, 1, (unsigned)n_nodes, PORT);
    f = make_filter(&s);
    (void)printf("\"filterSameNs\": %.0f, \"filterManyNs\": %.0f, \"filterBeginNs\": %.0f}\n",
        measure_packets(f, 1, (unsigned)n_packets, false),
        measure_packets(f, FLOWS, (unsigned)n_packets, false),
        measure_packets(f, FLOWS, (unsigned)n_packets, true));
    (void)access_filter_free(f);
    (void)engine_close(engine);
    (void)device_free(device);
    port_stop(port);
    (void)port_free(port);
    snapshot_deinit(&s);
    return 0;
}
