/* overlay.c - see overlay.h: life of the overlay, its nodes, and the hooks. */
#include "hub/overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "os/log.h"
#include "base/rng.h"
#include "port/device.h"
#include "port/port.h"
#include "hub/overlay_internal.h"
#include "filter/relay.h"
#include "mesh/diff.h"
#include "relay/router.h"
#include "os/clock.h"
#include "os/rng_kernel.h"

#define WORKERS_DEFAULT_MAX 4
#define TICK_MS             1000

/* How a node is asked to speak after a restart; see greet(). */
#define GREETING_KEEPALIVE_S 5
#define GREETING_TIME        (20 * NSEC_PER_SEC)

/* ---- nodes ---------------------------------------------------------------------------------- */

static uint64_t key_hash(const struct overlay_network *net, const struct x25519_public *key)
{
    return hash_bytes(net->by_key.seed, key->b, sizeof(key->b));
}

struct overlay_node *overlay__find_node(
    const struct overlay_network *net, const struct x25519_public *key)
{
    uint64_t hash = key_hash(net, key);

    for (struct htab_link *l = htab_first(&net->by_key, hash); l; l = htab_next(l, hash)) {
        struct overlay_node *node = container_of(l, struct overlay_node, by_key);

        if (x25519_public_equal(&node->key, key))
            return node;
    }
    return NULL;
}

/* Lets the listeners and the relay know the node by its present key; it is at no address yet. */
static int admit(struct overlay_node *node)
{
    struct overlay_network *net = node->network;
    struct router *router = relay_router(net->overlay->relay);
    struct router_node *at_router;
    int r = router_node_add(&at_router, router, net->router, &node->key);

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&net->overlay->lock);
    r = htab_add(&net->by_key, &node->by_key, key_hash(net, &node->key));
    if (r == 0)
        node->router = at_router;
    (void)pthread_mutex_unlock(&net->overlay->lock);
    if (r < 0)
        router_node_remove(router, at_router);
    return r;
}

/* Nothing is relayed for it or to it from now on. Idempotent. */
static void cut(struct overlay_node *node)
{
    struct overlay *o = node->network->overlay;
    struct router_node *at_router;

    (void)pthread_mutex_lock(&o->lock);
    at_router = node->router;
    node->router = NULL;
    (void)pthread_mutex_unlock(&o->lock);
    if (at_router)
        router_node_remove(relay_router(o->relay), at_router);
}

/* After its peer has gone: no listener will ask for it any more. */
static void forget(struct overlay_node *node)
{
    struct overlay_network *net = node->network;

    cut(node);
    (void)pthread_mutex_lock(&net->overlay->lock);
    htab_remove(&net->by_key, &node->by_key);
    (void)pthread_mutex_unlock(&net->overlay->lock);
}

/* What a change of a peer is about, besides its addresses. */
enum greeting {
    GREETING_NONE,
    GREETING_BEGIN, /* speak to it, where it was before */
    GREETING_END,   /* wait for it */
};

/* Adds, updates or removes the node's peer of the network's device. */
static void change_peer(struct overlay_node *node, enum diff_op op, enum greeting greeting)
{
    struct diff_peer peer = {.op = op, .peer = {.key = node->key}, .set_allowed = true};
    struct ip_prefix allowed[2] = {{.addr = node->hub->spec.address4, .len = 32},
        {.addr = node->hub->spec.address6, .len = 128}};
    struct diff change = {.peers = &peer, .n_peers = 1};
    struct err e = ERR_NULL;

    peer.peer.allowed = allowed;
    peer.peer.n_allowed = 2;
    peer.set_keepalive = greeting != GREETING_NONE;
    if (greeting == GREETING_BEGIN) {
        peer.set_endpoint = true;
        peer.peer.endpoint = node->hint;
        peer.peer.keepalive = GREETING_KEEPALIVE_S;
    }
    if (overlay__configure(node->network, &change, &e) < 0)
        log_error("node %s of network %s: %s", node->hub->spec.meta.name,
            node->network->hub->spec.meta.name, err_text(&e));
}

/*
 * A node that this hub has heard before it was started again: its sessions are void now, without
 * its knowing. A keepalive that is turned on is sent at once, and without a session that begins a
 * handshake. It is turned off as soon as that has come to an end.
 */
static enum greeting greet(struct overlay_node *node)
{
    if (endpoint_is_none(&node->hint))
        return GREETING_NONE;
    node->greeting_ends = clock_now() + GREETING_TIME;
    list_remove(&node->greeting);
    list_add_tail(&node->network->overlay->greeted, &node->greeting);
    return GREETING_BEGIN;
}

static void end_greetings(struct overlay *o, nsec_t now)
{
    struct overlay_node *node;
    struct overlay_node *tmp;

    list_foreach_safe(node, tmp, &o->greeted, greeting) {
        bool is_heard;

        (void)pthread_mutex_lock(&o->lock);
        is_heard = node->handshake != 0;
        (void)pthread_mutex_unlock(&o->lock);
        if (!is_heard && now < node->greeting_ends)
            continue;
        list_remove(&node->greeting);
        change_peer(node, DIFF_OP_UPDATE, GREETING_END);
    }
}

static void on_node_added(void *ctx, struct hub_node *hub)
{
    struct overlay_node *node = calloc(1, sizeof(*node));

    if (node) {
        node->network = hub->network->plug;
        node->hub = hub;
        node->key = hub->spec.key;
        list_init(&node->greeting);
    }
    if (!node || admit(node) < 0) {
        log_error("no memory for node %s", hub->spec.meta.name);
        free(node);
        return;
    }
    hub->plug = node;
    (void)overlay__memory_find(node, &node->hint);
    change_peer(node, DIFF_OP_ADD, greet(node));
}

/* A stream of it is open: without a session it is spoken to there, for the same reason. */
static void on_node_at(void *ctx, struct hub_node *hub, const struct endpoint *ep)
{
    struct overlay *o = ctx;
    struct overlay_node *node = hub->plug;
    bool is_heard;

    if (!node)
        return;
    (void)pthread_mutex_lock(&o->lock);
    is_heard = node->handshake != 0;
    (void)pthread_mutex_unlock(&o->lock);
    if (is_heard)
        return;
    node->hint = *ep;
    change_peer(node, DIFF_OP_UPDATE, greet(node));
}

/* Tells the relay whether two nodes may reach each other. The hub itself has no relayed edges. */
static void apply_edge(struct overlay_node *a, struct overlay_node *b)
{
    if (!a || !b || !a->router || !b->router)
        return;
    if (router_edge_set_blocked(relay_router(a->network->overlay->relay), a->router, b->router,
            !hub_may_talk(a->hub, b->hub)) < 0)
        log_error("no memory to turn off the edge between %s and %s", a->hub->spec.meta.name,
            b->hub->spec.meta.name);
}

static void on_edge_changed(void *ctx, struct hub_node *a, struct hub_node *b)
{
    apply_edge(a->plug, b->plug);
}

/* The relay takes a node with a new key for a new node, whose edges are all on. */
static void apply_edges(struct overlay_node *node)
{
    struct hub_node *other = NULL;

    while ((other = hub_next_node(node->network->hub, other)))
        if (other != node->hub)
            apply_edge(node, other->plug);
}

static void on_node_changed(void *ctx, struct hub_node *hub, const struct node *before)
{
    struct overlay_node *node = hub->plug;

    if (!node)
        return;
    if (x25519_public_equal(&before->key, &hub->spec.key)) {
        change_peer(node, DIFF_OP_UPDATE, GREETING_NONE);
        return;
    }
    /* Another key is another peer. Its leases end with the old key's sessions. */
    change_peer(node, DIFF_OP_REMOVE, GREETING_NONE);
    forget(node);
    node->key = hub->spec.key;
    node->path = (struct udp_path){.ifindex = 0};
    node->handshake = 0;
    if (admit(node) < 0)
        log_error("no memory for the new key of node %s", hub->spec.meta.name);
    apply_edges(node);
    change_peer(node, DIFF_OP_ADD, GREETING_NONE);
}

static void on_node_cut(void *ctx, struct hub_node *hub)
{
    if (hub->plug)
        cut(hub->plug);
}

static void on_node_gone(void *ctx, struct hub_node *hub)
{
    struct overlay_node *node = hub->plug;

    if (!node)
        return;
    change_peer(node, DIFF_OP_REMOVE, GREETING_NONE);
    list_remove(&node->greeting);
    forget(node);
    free(node);
    hub->plug = NULL;
}

static bool on_facts(void *ctx, const struct hub_node *hub, struct hub_facts *ret)
{
    struct overlay *o = ctx;
    const struct overlay_node *node = hub->plug;

    if (!node)
        return false;
    overlay__read_facts(node->network, clock_now());
    (void)pthread_mutex_lock(&o->lock);
    *ret = (struct hub_facts){.endpoint = node->path.remote,
        .handshake = node->handshake,
        .rx_bytes = node->rx_bytes,
        .tx_bytes = node->tx_bytes};
    (void)pthread_mutex_unlock(&o->lock);
    return true;
}

/* ---- networks ------------------------------------------------------------------------------- */

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

static void add_drops(struct overlay *o, struct hub_metrics *m)
{
    uint64_t sum[DROP_REASON_N] = {0};
    char labels[64];

    port_drops(o->port, sum);
    for (int i = 0; i < DROP_REASON_N; i++) {
        (void)snprintf(labels, sizeof(labels), "reason=\"%s\"", drop_reason_name(i));
        hub_metric(m, HUB_METRIC_COUNTER, "weft_drops_total", "packets that went no further",
            labels, (double)sum[i]);
    }
}

static void add_offloads(struct overlay *o, struct hub_metrics *m)
{
    const struct overlay_network *net;
    char labels[256];

    list_foreach(net, &o->networks, siblings)
        for (int i = 0; i < OFFLOAD_N; i++) {
            const char *why = device_offload_why(net->device, (enum offload)i);

            (void)snprintf(labels, sizeof(labels), "interface=\"%s\",offload=\"%s\",why=\"%s\"",
                device_name(net->device), offload_name((enum offload)i), why ? why : "");
            hub_metric(m, HUB_METRIC_GAUGE, "weft_offload",
                "whether a segmentation offload of the kernel is in use, and why not", labels,
                why ? 0 : 1);
        }
}

static bool on_heard(void *ctx, const struct stun_transaction *id, struct stun_hearing *ret)
{
    struct overlay *o = ctx;

    return relay_find_heard(o->relay, id, ret);
}

static void on_metrics(void *ctx, struct hub_metrics *m)
{
    struct overlay *o = ctx;
    struct relay_counts n;

    relay_read_counts(o->relay, &n);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_relay_packets_total",
        "datagrams forwarded between nodes, unread", "", (double)n.packets);
    hub_metric(m, HUB_METRIC_COUNTER, "weft_relay_bytes_total",
        "bytes of them, without UDP and IP headers", "", (double)n.bytes);
    hub_metric(m, HUB_METRIC_GAUGE, "weft_relay_leases",
        "receiver indices that are forwarded at the moment", "",
        (double)router_n_leases(relay_router(o->relay)));
    hub_metric(m, HUB_METRIC_COUNTER, "weft_stun_answers_total", "STUN requests answered", "",
        (double)n.stun_answers);
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
    list_init(&o->greeted);
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

static void on_tick(uv_timer_t *timer)
{
    struct overlay *o = timer->data;
    nsec_t now = clock_now();

    router_expire(relay_router(o->relay), now);
    end_greetings(o, now);
    overlay__memory_save(o, now);
}

int overlay_start(struct overlay *o, struct err *e)
{
    int r = port_start(o->port, e);

    if (r < 0)
        return r;
    overlay__memory_open(o, o->state_dir);
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
    port_stop(o->port);
}

struct overlay *overlay_free(struct overlay *o)
{
    if (!o)
        return NULL;
    o->port = port_free(o->port);
    o->relay = relay_free(o->relay);
    netlink_close(&o->nl);
    overlay__memory_close(o);
    (void)pthread_mutex_destroy(&o->lock);
    free(o);
    return NULL;
}

uint16_t overlay_listen_port(struct overlay *o)
{
    return port_listen_port(o->port);
}
