/* overlay.c - see overlay.h: the port, the relay, and the hooks. */
#include "hub/overlay/overlay.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "filter/relay.h"
#include "hub/overlay/overlay_internal.h"
#include "os/clock.h"
#include "os/log.h"
#include "os/rng_kernel.h"
#include "port/device.h"
#include "port/port.h"
#include "relay/router.h"

#define WORKERS_DEFAULT_MAX 4
#define TICK_MS             1000

/* Of each receiving thread, in shared/handshake_queue.h: a hub takes 0.2 ms for a handshake, and so
 * is under load when members have to wait for about half a second. */
#define HANDSHAKES 16384

/* ---- members -------------------------------------------------------------------------------- */

static void on_node_added(void *ctx, struct hub_node *node)
{
    overlay__add_node(ctx, node, clock_now());
}

static void on_node_changed(void *ctx, struct hub_node *node, const struct node *before)
{
    overlay__change_node(node, before);
}

static void on_node_cut(void *ctx, struct hub_node *node)
{
    overlay__cut_node(node);
}

static void on_node_gone(void *ctx, struct hub_node *node)
{
    overlay__remove_node(node);
}

static void on_edge_changed(void *ctx, struct hub_node *a, struct hub_node *b)
{
    overlay__change_edge(a, b);
}

static void on_node_at(void *ctx, struct hub_node *node, const struct endpoint *ep)
{
    overlay__node_is_at(ctx, node, ep, clock_now());
}

static bool on_facts(void *ctx, const struct hub_node *node, struct hub_facts *ret)
{
    return overlay__read_facts(ctx, node, clock_now(), ret);
}

/* ---- networks ------------------------------------------------------------------------------- */

static int on_check_block(void *ctx, const struct ip_prefix *block, struct err *e)
{
    return overlay__check_block(ctx, NULL, block, e);
}

static int on_network_added(void *ctx, struct hub_network *hub, struct err *e)
{
    struct overlay *o = ctx;
    struct overlay_network *net;
    int r = overlay__network_new(&net, o, hub, e);

    if (r < 0)
        return r;
    hub->plug = net;
    return 0;
}

static void on_network_removed(void *ctx, struct hub_network *hub)
{
    hub->plug = overlay__network_free(hub->plug);
}

/* ---- metrics -------------------------------------------------------------------------------- */

static void add_drops(struct overlay *o, struct metrics *m)
{
    uint64_t sum[DROP_REASON_N] = {0};

    port_drops(o->port, sum);
    for (int i = 0; i < DROP_REASON_N; i++)
        metrics_add_labelled(m, METRIC_DROPS, METRIC_LABELS(drop_reason_name(i)), (double)sum[i]);
}

static void add_offloads(struct overlay *o, struct metrics *m)
{
    const struct overlay_network *net;

    list_foreach(net, &o->networks, siblings)
        for (int i = 0; i < OFFLOAD_N; i++) {
            const char *why = device_offload_why(net->device, (enum offload)i);

            metrics_add_labelled(m, METRIC_OFFLOAD,
                METRIC_LABELS(
                    device_name(net->device), offload_name((enum offload)i), why ? why : ""),
                why ? 0 : 1);
        }
}

static bool on_heard(void *ctx, const struct stun_transaction *id, struct stun_hearing *ret)
{
    struct overlay *o = ctx;

    return relay_find_heard(o->relay, id, ret);
}

static void on_metrics(void *ctx, struct metrics *m)
{
    struct overlay *o = ctx;
    struct relay_counts n;

    relay_read_counts(o->relay, &n);
    metrics_add(m, METRIC_RELAY_PACKETS, (double)n.packets);
    metrics_add(m, METRIC_RELAY_BYTES, (double)n.bytes);
    metrics_add(m, METRIC_RELAY_LEASES, (double)router_n_leases(relay_router(o->relay)));
    metrics_add(m, METRIC_STUN_ANSWERS, (double)n.stun_answers);
    add_drops(o, m);
    add_offloads(o, m);
}

/* ---- life ----------------------------------------------------------------------------------- */

static unsigned default_workers(void)
{
    struct cpulist cpus;

    cpulist_allowed(&cpus);
    if (cpus.n / 2 > WORKERS_DEFAULT_MAX)
        return WORKERS_DEFAULT_MAX;
    return cpus.n > 1 ? cpus.n / 2 : 1;
}

static int open_parts(struct overlay *o, const struct port_options *opt, struct err *e)
{
    struct rng rng = rng_kernel();
    int r = netlink_open(&o->nl, NETLINK_ROUTE);

    if (r < 0)
        return err_set(e, r, "cannot speak with the kernel: %s", strerror(-r));
    r = port_new(&o->port, opt, e);
    if (r < 0)
        return r;
    r = relay_new(&o->relay, opt->n_workers, &rng);
    if (r < 0)
        return err_set(e, r, "no memory for the relay");
    port_set_filter(o->port, relay_filter, o->relay);
    return 0;
}

int overlay_new(
    struct overlay **ret, struct uv_loop_s *loop, const struct overlay_options *opt, struct err *e)
{
    struct overlay *o = calloc(1, sizeof(*o));
    struct port_options port = {.listen_port = opt->listen_port,
        .n_workers = opt->n_workers ? opt->n_workers : default_workers(),
        .n_handshakes = HANDSHAKES,
        .offloads = offloads_all()};
    struct rng rng = rng_kernel();
    int r;

    if (!o)
        return err_set(e, -ENOMEM, "no memory for the hub's interfaces");
    o->loop = loop;
    o->state_dir = opt->state_dir;
    o->api_port = opt->api_port;
    o->seed = rng_u64(&rng);
    list_init(&o->networks);
    htab_init(&o->by_remote, rng_u64(&rng));
    recontact_init(&o->recontact);
    (void)pthread_mutex_init(&o->lock, NULL);
    r = open_parts(o, &port, e);
    if (r < 0) {
        (void)overlay_free(o);
        return r;
    }
    *ret = o;
    return 0;
}

struct hub_hooks overlay_hooks(struct overlay *o)
{
    return (struct hub_hooks){
        .ctx = o,
        .check_block = on_check_block,
        .network_added = on_network_added,
        .network_removed = on_network_removed,
        .node_added = on_node_added,
        .node_changed = on_node_changed,
        .node_cut = on_node_cut,
        .node_gone = on_node_gone,
        .edge_changed = on_edge_changed,
        .node_at = on_node_at,
        .facts = on_facts,
        .heard = on_heard,
        .metrics = on_metrics,
    };
}

static void open_timestamps(struct overlay *o)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.*s/timestamp", PATH_MAX - 64, o->state_dir);
    timestamp_file_open(&o->timestamps, path, clock_wall(), clock_now());
    timestamp_file_warn_back(&o->timestamps, clock_wall());
    (void)port_bound_timestamps(o->port, &o->timestamps.bounds);
}

static void keep_timestamps(struct overlay *o, nsec_t now)
{
    nsec_t sent = port_bound_timestamps(o->port, &o->timestamps.bounds);

    if (timestamp_file_keep(&o->timestamps, sent, clock_wall(), now))
        (void)port_bound_timestamps(o->port, &o->timestamps.bounds);
}

static void on_tick(uv_timer_t *timer)
{
    struct overlay *o = timer->data;
    nsec_t now = clock_now();

    keep_timestamps(o, now);
    router_expire(relay_router(o->relay), now);
    overlay__tick_nodes(o, now);
}

int overlay_start(struct overlay *o, struct err *e)
{
    int r = probe_answers_open(&o->probes, o, e);

    if (r == 0) {
        open_timestamps(o);
        r = port_start(o->port, e);
    }
    if (r < 0) {
        probe_answers_close(&o->probes);
        return r;
    }
    addresses_open(&o->addresses, o->state_dir);
    o->is_started = true;
    (void)uv_timer_init(o->loop, &o->tick);
    o->tick.data = o;
    (void)uv_timer_start(&o->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

void overlay_stop(struct overlay *o)
{
    if (!o->is_started)
        return;
    o->is_started = false;
    uv_close((uv_handle_t *)&o->tick, NULL);
    probe_answers_close(&o->probes);
    port_stop(o->port);
    timestamp_file_end(
        &o->timestamps, port_bound_timestamps(o->port, &o->timestamps.bounds), clock_now());
}

struct overlay *overlay_free(struct overlay *o)
{
    if (!o)
        return NULL;
    o->port = port_free(o->port);
    o->relay = relay_free(o->relay);
    htab_deinit(&o->by_remote);
    netlink_close(&o->nl);
    addresses_close(&o->addresses);
    (void)pthread_mutex_destroy(&o->lock);
    free(o);
    return NULL;
}
