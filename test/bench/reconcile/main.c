/*
 * main.c - bench-reconcile IFNAME N NOOPS MTU: what a pass over N peers costs.
 *
 * The interface is run by a process that is there already and has no peers. The first pass gives it
 * a hub and N - 1 nodes with an endpoint each, and with a route each if MTU is not 0. Then come
 * NOOPS passes in which nothing has changed, and as many in which one endpoint has. Prints the
 * times as JSON, in milliseconds, and what was written: requests to the engine that change
 * something, and netlink requests that do.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/reconcile/reconcile.h"
#include "base/err.h"
#include "base/parse.h"
#include "mesh/config/diff.h"
#include "os/clock.h"
#include "test/support/netlink_writes.h"
#include "test/support/sample_mesh.h"

/* The node whose passes are measured, and the one whose endpoint changes. */
#define SELF    2
#define CHANGED 3

static const struct x25519_secret secret = {.b = {5, [31] = 0x40}};

/* ---- what the engine is asked --------------------------------------------------------------- */

static const struct engine_ops *engine_ops; /* of the engine that is measured */
static unsigned n_engine_writes;
static size_t n_peers_written;

static int counted_apply(
    struct engine *engine, const struct diff *d, const struct x25519_secret *key, struct err *e)
{
    n_engine_writes++;
    n_peers_written += d->n_peers;
    return engine_ops->apply(engine, d, key, e);
}

static void count_writes(struct engine *engine)
{
    static struct engine_ops counted;

    engine_ops = engine->ops;
    counted = *engine_ops;
    counted.apply = counted_apply;
    engine->ops = &counted;
}

/* ---- what is wanted ------------------------------------------------------------------------- */

/** The network, and the path that was found for each node. */
struct fleet {
    struct snapshot snapshot;
    struct render_path *paths; /* owns; of all nodes but the hub and SELF */
    size_t n_paths;
    uint16_t mtu;
};

static struct endpoint endpoint_of(unsigned n, uint16_t port)
{
    return (struct endpoint){
        .addr = ip_addr_v4((uint8_t[]){198, 18, (uint8_t)(n >> 8), (uint8_t)n}), .port = port};
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const struct render_path *)a)->node, ((const struct render_path *)b)->node);
}

static void make_fleet(struct fleet *f, unsigned n, uint16_t mtu)
{
    struct object self = sample_node(SELF);

    *f = (struct fleet){.snapshot = sample_snapshot(n + 1, SELF), .mtu = mtu};
    assert_true(x25519_derive_public(&secret, &self.node.key));
    sample_put(&f->snapshot, self);
    f->paths = calloc(n, sizeof(*f->paths));
    assert_non_null(f->paths);
    for (unsigned i = CHANGED; i <= n + 1; i++) {
        struct render_path *path = &f->paths[f->n_paths++];

        path->endpoint = endpoint_of(i, 51820);
        path->mtu = mtu;
        (void)snprintf(path->node, sizeof(path->node), "n%u", i);
    }
    qsort(f->paths, f->n_paths, sizeof(*f->paths), compare_paths);
}

static void move_one(struct fleet *f, uint16_t port)
{
    for (size_t i = 0; i < f->n_paths; i++)
        if (strcmp(f->paths[i].node, "n3") == 0)
            f->paths[i].endpoint.port = port;
}

/* ---- passes --------------------------------------------------------------------------------- */

/** What passes of one kind cost. */
struct cost {
    nsec_t *times; /* owns */
    unsigned n;
    unsigned engine_writes; /* of the pass that had most */
    unsigned netlink_writes;
    size_t peers_written;
};

static void pass(struct reconcile *rc, const struct fleet *f, struct cost *cost)
{
    struct render_input in = {
        .snapshot = &f->snapshot, .paths = f->paths, .n_paths = f->n_paths, .link_mtu = f->mtu};
    struct reconcile_result result;
    struct err e = ERR_NULL;
    unsigned n;
    nsec_t since;

    n_engine_writes = 0;
    n_peers_written = 0;
    (void)netlink_writes_take();
    since = clock_now();
    if (reconcile_run(rc, &in, &secret, &result, &e) != 0)
        fail_msg("%s", err_text(&e));
    cost->times[cost->n++] = clock_now() - since;
    n = netlink_writes_take();
    cost->netlink_writes = n > cost->netlink_writes ? n : cost->netlink_writes;
    if (n_engine_writes > cost->engine_writes)
        cost->engine_writes = n_engine_writes;
    if (n_peers_written > cost->peers_written)
        cost->peers_written = n_peers_written;
}

static struct cost cost_new(unsigned n)
{
    struct cost cost = {.times = calloc(n, sizeof(*cost.times))};

    assert_non_null(cost.times);
    return cost;
}

static int compare_times(const void *a, const void *b)
{
    nsec_t x = *(const nsec_t *)a;
    nsec_t y = *(const nsec_t *)b;

    return (x > y) - (x < y);
}

static void print(const char *name, struct cost *cost, const char *end)
{
    qsort(cost->times, cost->n, sizeof(*cost->times), compare_times);
    (void)printf(
        "\"%sMs\": %.3f, \"%sLeastMs\": %.3f, \"%sEngineWrites\": %u, \"%sPeersWritten\": %zu, "
        "\"%sNetlinkWrites\": %u%s",
        name, (double)cost->times[cost->n / 2] / NSEC_PER_MSEC, name,
        (double)cost->times[0] / NSEC_PER_MSEC, name, cost->engine_writes, name,
        cost->peers_written, name, cost->netlink_writes, end);
    free(cost->times);
}

int main(int argc, char **argv)
{
    uint64_t n, n_noops, mtu;
    struct cost first, noop, change;
    struct reconcile rc;
    struct err e = ERR_NULL;
    struct fleet f;

    if (argc != 5 || parse_u64(&n, argv[2], CHANGED, 10000, "N", &e) < 0 ||
        parse_u64(&n_noops, argv[3], 1, 100000, "NOOPS", &e) < 0 ||
        parse_u64(&mtu, argv[4], 0, UINT16_MAX, "MTU", &e) < 0)
        return (void)fprintf(stderr, "usage: bench-reconcile IFNAME N NOOPS MTU: %s\n", e.text), 2;
    first = cost_new(1);
    noop = cost_new((unsigned)n_noops);
    change = cost_new((unsigned)n_noops);
    make_fleet(&f, (unsigned)n, (uint16_t)mtu);
    if (reconcile_init(&rc, argv[1], ENGINE_KIND_USERSPACE, SUBNETS_ACCEPT_PRIVATE, &e) != 0 ||
        engine_open(&rc.engine, ENGINE_KIND_USERSPACE, argv[1], NULL, rc.why, &e) != 0)
        return (void)fprintf(stderr, "bench-reconcile: %s\n", err_text(&e)), 1;
    count_writes(rc.engine);
    pass(&rc, &f, &first);
    for (unsigned i = 0; i < n_noops; i++)
        pass(&rc, &f, &noop);
    for (unsigned i = 0; i < n_noops; i++) {
        move_one(&f, (uint16_t)(40000 + i));
        pass(&rc, &f, &change);
    }
    (void)printf("{");
    print("first", &first, ", ");
    print("noop", &noop, ", ");
    print("change", &change, "}\n");
    reconcile_deinit(&rc);
    snapshot_deinit(&f.snapshot);
    free(f.paths);
    return 0;
}
