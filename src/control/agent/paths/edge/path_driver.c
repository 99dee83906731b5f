/* path_driver.c - see path_driver.h: the wiring. */
#include "agent/paths/edge/path_driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "agent/paths/edge/edge_mtu.h"
#include "agent/paths/edge/edges.h"
#include "agent/paths/edge/peer_table.h"
#include "agent/paths/edge/relay_select.h"
#include "agent/paths/socket/echo_socket.h"
#include "agent/paths/socket/local_candidates.h"
#include "agent/paths/socket/path_sockets.h"
#include "agent/paths/socket/stun_socket.h"
#include "base/err.h"
#include "base/secret.h"
#include "engine/engine.h"
#include "mesh/object/fields.h"
#include "mesh/snapshot/snapshot.h"
#include "os/clock.h"
#include "os/log.h"
#include "path/paths.h"
#include "wire/path.h"

/* After a change of the machine's network it is looked at this much later, since one change comes
 * as many events. */
#define SETTLE (200 * NSEC_PER_MSEC)

struct path_driver {
    struct uv_loop_s *loop; /* pins */
    struct path_driver_listener listener;
    const char *interface; /* pins */
    struct rng rng;
    struct uv_timer_s *timer; /* owns until it is closed; the earliest of all that is due */

    /* Parts that decide. */
    struct paths *paths; /* owns */
    struct edges edges;
    struct local_candidates local;

    /* Parts that do I/O. */
    struct path_sockets sockets;
    struct address_watch addresses;
    struct port_map *port_map; /* owns */
    struct udp_probe hub_probe;
    struct echo_socket *pings; /* pins; NULL: there is none */

    /* Facts that are carried between them. */
    struct path_side self;
    nsec_t gather_at;       /* time to look at the addresses again; NSEC_NEVER: none is planned */
    struct ip_addr address; /* of this node in the network, IPv4 */
    uint64_t network;       /* digest of the addresses that @local has; 0: none were looked at */
    struct candidate_blocks others; /* blocks of other overlays of this machine */
    uint64_t block_routes; /* digest of the routes to the blocks of the overlay at the last look */
    uint64_t run;          /* of this node as a relay; random */
    bool is_relay;         /* this node is one */
    bool is_hub_heard;
    bool engine_pins;
    bool is_logged;       /* the log says that there are no pings */
    bool knows_hub_clock; /* @ahead is known */
    nsec_t ahead;         /* this machine's clock is so far ahead of the hub's */
};

static void run(struct path_driver *d, nsec_t now);

/* ---- what is reported of this node ---------------------------------------------------------- */

/* Puts together what is known of this node, and tells the listener if that has changed. */
static void update_self(struct path_driver *d, nsec_t now)
{
    struct path_side side = {
        .generation = d->self.generation, .relay_run = d->is_relay ? d->run : 0};

    local_candidates_fill(&d->local, &side);
    edges_tell_relays(&d->edges,
        local_candidates_hub_rtt(&d->local, &d->edges.hub_liveness.hub, now), &side, now);
    if (path_side_equal(&side, &d->self))
        return;
    /* Made of the wall clock, so that it is greater than in any earlier run unless that was set
     * back. */
    side.generation =
        (uint64_t)nsec_max((nsec_t)d->self.generation + 1, clock_wall() / NSEC_PER_MSEC);
    d->self = side;
    paths_set_self(d->paths, &d->self, now);
    d->listener.on_self(d->listener.ctx);
}

void path_driver_set_udp(struct path_driver *d, nsec_t keepalive, bool is_blocked, nsec_t now)
{
    if (d->local.keepalive == keepalive && d->local.is_blocked == is_blocked)
        return;
    d->local.keepalive = keepalive;
    d->local.is_blocked = is_blocked;
    update_self(d, now);
    run(d, now);
}

void path_driver_set_relay(struct path_driver *d, bool relays, bool is_new, nsec_t now)
{
    if (is_new)
        d->run = rng_u64(&d->rng) >> 1 | 1;
    if (relays == d->is_relay && !is_new)
        return;
    if (relays != d->is_relay)
        log_info(relays ? "this node relays for others now" : "this node does not relay any more");
    d->is_relay = relays;
    update_self(d, now);
    run(d, now);
}

/* ---- addresses, servers, the router --------------------------------------------------------- */

static void send_request(struct path_driver *d, uint32_t socket, const struct local_request *rq)
{
    struct path_action send = {
        .socket = socket, .remote = rq->to, .frame = rq->bytes, .len = sizeof(rq->bytes)};

    path_sockets_send(&d->sockets, &send);
}

static void ask_servers(struct path_driver *d, nsec_t now)
{
    struct local_request rq;
    bool asks = false;

    if (!d->sockets.main.frames)
        return;
    while (stun_client_next(&d->local.stun, now, &d->rng, &rq.to, rq.bytes)) {
        send_request(d, PATH_SOCKET_MAIN, &rq);
        asks = true;
    }
    /* One that has not answered for long says nothing of how good it is as a relay. */
    if (asks)
        update_self(d, now);
}

/* No path may be tried that leads through the overlay itself, or through another. */
static void set_blocks(struct path_driver *d, nsec_t now)
{
    struct candidate_blocks all = d->others;

    all.n = 0;
    for (unsigned i = 0; i < d->local.blocks.n; i++)
        (void)candidate_blocks_add(&all, &d->local.blocks.items[i]);
    for (unsigned i = 0; i < d->others.n; i++)
        (void)candidate_blocks_add(&all, &d->others.items[i]);
    paths_set_blocks(d->paths, &all, now);
}

/* Look at the machine's addresses; @force: WireGuard's port is new, too. */
static void gather(struct path_driver *d, bool force, nsec_t now)
{
    uint16_t port = d->sockets.main.port;
    bool first = d->network == 0;
    struct addresses found;

    d->gather_at = NSEC_NEVER;
    if (port == 0)
        return;
    if (address_watch_look(&d->addresses, d->interface, &d->local.blocks, &found) < 0) {
        d->gather_at = now + SETTLE;
        return;
    }
    /* Somebody may have taken a block of the overlay: a pass finds that out, and mends it. */
    if (d->block_routes != found.block_routes && d->network != 0)
        d->listener.on_routes(d->listener.ctx);
    d->block_routes = found.block_routes;
    d->others = found.others;
    set_blocks(d, now);
    if (!force && found.digest == d->network)
        return;
    d->network = found.digest;
    local_candidates_set_addresses(&d->local, found.items, found.n, port, now);
    port_map_ask(d->port_map, port);
    update_self(d, now);
    if (!first) {
        paths_on_network_change(d->paths, now);
        d->listener.on_network(d->listener.ctx);
    }
    ask_servers(d, now);
}

static void on_network(void *ctx)
{
    struct path_driver *d = ctx;
    nsec_t now = clock_now();

    d->gather_at = nsec_min(d->gather_at, now + SETTLE);
    run(d, now);
}

static void on_mapping(void *ctx, const struct port_mapping *pm)
{
    char text[ENDPOINT_TEXT_MAX];
    struct path_driver *d = ctx;
    nsec_t now = clock_now();

    if (pm->kind != PORT_MAPPING_NONE)
        log_info("the router has opened %s for this node (%s)",
            endpoint_format(&pm->external, text), port_mapping_kind_names[pm->kind]);
    d->local.mapping = *pm;
    update_self(d, now);
    run(d, now);
}

void path_driver_set_engine(struct path_driver *d, struct engine *engine, uint16_t port, nsec_t now)
{
    uint16_t before = d->sockets.main.port;
    bool opened = path_sockets_keep(&d->sockets, engine, port, now);

    d->engine_pins = engine && engine->ops->kind == ENGINE_KIND_USERSPACE;
    if (!opened)
        return;
    if (before != port || d->network == 0)
        gather(d, true, now);
    else
        stun_client_restart(&d->local.stun, now);
    ask_servers(d, now);
    run(d, now);
}

bool path_driver_pins(const struct path_driver *d)
{
    return d->engine_pins && d->sockets.main.frames;
}

/* ---- edges ---------------------------------------------------------------------------------- */

void path_driver_set_link_mtu(struct path_driver *d, uint16_t mtu)
{
    struct edges *e = &d->edges;

    if (e->limits.link_mtu == mtu)
        return;
    e->limits.link_mtu = mtu;
    for (size_t i = 0; i < e->peers.n; i++)
        if (e->peers.items[i].pmtu)
            pmtu_driver_set_limits(e->peers.items[i].pmtu, &e->limits, clock_now());
}

void path_driver_set_hub_clock(struct path_driver *d, nsec_t ahead)
{
    d->ahead = ahead;
    d->knows_hub_clock = true;
}

void path_driver_set_snapshot(struct path_driver *d, const struct snapshot *s, nsec_t now)
{
    struct candidate_blocks blocks = {.items = {s->network.cidr4, s->network.cidr6}, .n = 2};

    /* First of all. */
    d->local.blocks = blocks;
    d->address = snapshot_self(s)->address4;
    set_blocks(d, now);
    edges_set_snapshot(&d->edges, s, now);
    if (!d->pings && !d->is_logged && d->edges.stocks.n != 0) {
        d->is_logged = true;
        log_info("stock WireGuards are sent at most %u bytes: this agent cannot ping them, which "
                 "takes CAP_NET_RAW when it starts",
            RENDER_MTU_SAFE);
    }
    local_candidates_set_servers(&d->local, s, now);
    update_self(d, now);
    ask_servers(d, now);
    run(d, now);
}

void path_driver_set_keys(struct path_driver *d, const struct x25519_secret *secret,
    const struct x25519_secret *next, bool calls_next, nsec_t now)
{
    const struct x25519_secret *first = next && calls_next ? next : secret;
    const struct x25519_secret *second = next && calls_next ? secret : next;
    struct x25519_public calls;

    if (!x25519_derive_public(first, &calls) ||
        paths_set_own_keys(d->paths, first, second, now) < 0)
        log_warning("some paths are looked for anew under this node's next key");
    else
        edges_set_keys(&d->edges, secret, &calls);
    run(d, now);
}

void path_driver_observe(struct path_driver *d, const struct observe *seen, nsec_t now)
{
    edges_observe(&d->edges, seen, now);
    run(d, now);
}

void path_driver_on_hub_forgot(struct path_driver *d, nsec_t now)
{
    edges_on_hub_forgot(&d->edges, now);
    run(d, now);
}

void path_driver_use_hub(struct path_driver *d, const struct node *hub, nsec_t now)
{
    edges_set_hub(&d->edges, hub, now);
    update_self(d, now);
    run(d, now);
}

void path_driver_on_applied(struct path_driver *d)
{
    edges_on_applied(&d->edges);
}

bool path_driver_next_handshake(
    struct path_driver *d, struct x25519_public *ret, const char **ret_node, nsec_t now)
{
    const struct peer_entry *peer = edges_next_handshake(&d->edges, now);

    if (!peer)
        return false;
    *ret = peer->key;
    *ret_node = peer->node;
    return true;
}

bool path_driver_retreat(struct path_driver *d, nsec_t now)
{
    paths_leave_sockets(d->paths, now);
    run(d, now);
    return edges_hasten_handshakes(&d->edges, now);
}

bool path_driver_awaits_handshake(const struct path_driver *d)
{
    return edges_awaits_handshake(&d->edges);
}

uint16_t path_driver_hub_mtu(const struct path_driver *d, const struct x25519_public *hub)
{
    return hub_mtus_of(&d->edges.hubs, hub);
}

const struct render_path *path_driver_routes(struct path_driver *d, size_t *ret_n)
{
    return edges_routes(&d->edges, ret_n);
}

bool path_driver_may_be_at(const void *driver, const char *node, const struct endpoint *at)
{
    const struct path_driver *d = driver;
    const struct peer_entry *peer = peer_table_find(&d->edges.peers, node);

    if (peer && peer->route.kind == EDGE_ROUTE_DIRECT)
        return endpoint_equal(&peer->route.endpoint, at);
    return edges_relay_at(&d->edges, at) || edges_is_hub_at(&d->edges, at);
}

void path_driver_set_hub(struct path_driver *d, bool heard, nsec_t now)
{
    if (heard == d->is_hub_heard)
        return;
    d->is_hub_heard = heard;
    paths_on_relay(d->paths, heard, now);
    run(d, now);
}

/* ---- is the hub alive? ---------------------------------------------------------------------- */

static void on_hub_verdict(struct path_driver *d, bool was_dead, nsec_t now)
{
    if (d->edges.hub_liveness.is_dead == was_dead)
        return;
    log_info(was_dead ? "the hub answers by UDP again"
                      : "the hub does not answer by UDP: what it relays goes another way");
    update_self(d, now);
}

static void on_hub_answer(void *ctx, const struct endpoint *to, nsec_t rtt)
{
    struct path_driver *d = ctx;
    bool was_dead = d->edges.hub_liveness.is_dead;
    nsec_t now = clock_now();

    if (!hub_liveness_on_answer(&d->edges.hub_liveness, to, now))
        return;
    on_hub_verdict(d, was_dead, now);
    run(d, now);
}

/* ---- frames --------------------------------------------------------------------------------- */

static void on_frame(void *ctx, uint32_t socket, const struct engine_frame *frame)
{
    struct path_arrival in = {
        .from = frame->remote,
        .local = frame->local,
        .socket = socket,
        .at = frame->received_at,
    };
    uint8_t buf[ENGINE_FRAME_MAX];
    struct path_driver *d = ctx;
    nsec_t now = clock_now();

    if (socket == PATH_SOCKETS_FRESH) {
        if (local_candidates_on_fresh(&d->local, frame->data, frame->len, &frame->remote)) {
            punch_sockets_close(d->sockets.punch, PATH_SOCKETS_FRESH);
            update_self(d, now);
        }
    } else if (frame->len > 0 && frame->data[0] == PATH_FRAME_TYPE) {
        memcpy(buf, frame->data, frame->len);
        if (!hub_mtus_on_frame(&d->edges.hubs, buf, frame->len, now))
            paths_on_frame(d->paths, &in, buf, frame->len, now);
    } else if (local_candidates_on_answer(
                   &d->local, frame->data, frame->len, &frame->remote, frame->received_at)) {
        update_self(d, now);
    }
    run(d, now);
}

/* ---- what paths wants ----------------------------------------------------------------------- */

static void act(struct path_driver *d, const struct path_action *action, nsec_t now)
{
    struct endpoint endpoint;
    struct local_request rq;

    switch (action->kind) {
    case PATH_ACTION_SEND:
        path_sockets_send(&d->sockets, action);
        return;
    case PATH_ACTION_USE:
        if (action->path != PATH_KIND_LAN && action->path != PATH_KIND_DIRECT)
            edges_use_relay(&d->edges, action, now);
        else if (path_sockets_use(&d->sockets, action, &endpoint, now))
            edges_use_direct(&d->edges, action, &endpoint, now);
        return;
    case PATH_ACTION_FRESH:
        /* Asks the STUN servers again: our address may have changed, or a NAT's newest port is
         * wanted. */
        stun_client_restart(&d->local.stun, now);
        ask_servers(d, now);
        punch_sockets_close(d->sockets.punch, PATH_SOCKETS_FRESH);
        if (local_candidates_begin_fresh(&d->local, &d->rng, &rq) &&
            path_sockets_open(&d->sockets, PATH_SOCKETS_FRESH, now))
            send_request(d, PATH_SOCKETS_FRESH, &rq);
        return;
    case PATH_ACTION_EVENT:
        log_at(action->is_warning ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s", action->text);
        return;
    case PATH_ACTION_LOOK:
        d->listener.on_look(d->listener.ctx);
        return;
    case PATH_ACTION_FITS:
        edges_on_fits(&d->edges, action, now);
        return;
    case PATH_ACTION_OPEN:
        paths_on_socket(
            d->paths, action->socket, path_sockets_open(&d->sockets, action->socket, now));
        return;
    case PATH_ACTION_CLOSE:
        punch_sockets_close(d->sockets.punch, action->socket);
        return;
    case PATH_ACTION_NONE:
    case PATH_ACTION_KIND_N:
        return;
    }
}

static void on_timer(uv_timer_t *timer);

static void arm(struct path_driver *d, nsec_t now)
{
    nsec_t due = nsec_min(paths_due(d->paths), d->gather_at);
    nsec_t wait;

    due = nsec_min(due, edges_due(&d->edges, now));
    due = nsec_min(due, hub_liveness_due(&d->edges.hub_liveness, now));
    if (d->sockets.main.frames)
        due = nsec_min(due, stun_client_due(&d->local.stun));
    if (due == NSEC_NEVER) {
        (void)uv_timer_stop(d->timer);
        return;
    }
    wait = nsec_max(due - now, 0);
    uv_update_time(d->loop);
    (void)uv_timer_start(d->timer, on_timer, (uint64_t)(wait / NSEC_PER_MSEC + 1), 0);
}

/* Ask the hubs how long packets the ways to them carry, and the stock peers the same, through the
 * tunnel. */
static void measure_mtus(struct path_driver *d, nsec_t now)
{
    struct hub_mtu_frame frame;
    struct stock_ping ping;

    /* By the hub's clock, since this one may be set back, and the hub remembers what was said. */
    while (edges_next_frame(
        &d->edges, &frame, d->knows_hub_clock ? clock_wall() - d->ahead : 0, now)) {
        struct path_action send = {.socket = PATH_SOCKET_MAIN,
            .remote = frame.to,
            .frame = frame.bytes,
            .len = frame.len,
            .dont_fragment = true};

        path_sockets_send(&d->sockets, &send);
    }
    while (d->pings && stock_mtus_next(&d->edges.stocks, &ping, &d->edges.has_changes, now))
        echo_socket_send(d->pings, &d->address, &ping.to, ping.len, ping.cookie);
}

static void on_ping_answer(void *ctx, const struct ip_addr *from, uint64_t cookie)
{
    struct path_driver *d = ctx;
    nsec_t now = clock_now();

    stock_mtus_on_answer(&d->edges.stocks, from, cookie, now);
    run(d, now);
}

/* Do what paths wants, and be woken for what is due next: the end of every event. */
static void run(struct path_driver *d, nsec_t now)
{
    struct path_action action;

    while (paths_next(d->paths, &action))
        act(d, &action, now);
    measure_mtus(d, now);
    /* Which relays can be used depends on the paths of their own edges, which were changed above.
     */
    while (edges_choose_relays(&d->edges, now)) {
        update_self(d, now);
        while (paths_next(d->paths, &action))
            act(d, &action, now);
    }
    if (edges_take_changes(&d->edges))
        d->listener.on_routes(d->listener.ctx);
    arm(d, now);
}

static void on_timer(uv_timer_t *timer)
{
    struct path_driver *d = timer->data;
    struct hub_liveness *hub = &d->edges.hub_liveness;
    nsec_t now = clock_now();
    bool was_dead, asks;

    if (now >= d->gather_at)
        gather(d, false, now);
    ask_servers(d, now);
    edges_tick(&d->edges, now);
    was_dead = hub->is_dead;
    asks = hub_liveness_tick(hub, now);
    on_hub_verdict(d, was_dead, now);
    if (asks)
        udp_probe_ask(&d->hub_probe, &hub->hub, now);
    paths_tick(d->paths, now);
    run(d, now);
}

/* ---- for people ----------------------------------------------------------------------------- */

const struct path_side *path_driver_self(const struct path_driver *d)
{
    return &d->self;
}

struct ip_addr path_driver_outside(const struct path_driver *d, const struct endpoint *server)
{
    return local_candidates_outside(&d->local, server);
}

bool path_driver_view(const void *driver, const char *node, struct path_view *ret, nsec_t now)
{
    const struct path_driver *d = driver;
    const struct peer_entry *peer = peer_table_find(&d->edges.peers, node);

    return peer && paths_view(d->paths, &peer->key, ret, now);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *encode_milliseconds(nsec_t t)
{
    return t == 0 ? json_null() : json_real((double)(t / NSEC_PER_USEC) / 1000.0);
}

static json_t *encode_pair(const struct path_pair_view *pair, nsec_t now)
{
    char text[ENDPOINT_TEXT_MAX];
    json_t *tried = pair->tried_at == 0
                        ? json_null()
                        : json_integer((json_int_t)((now - pair->tried_at) / NSEC_PER_SEC));

    return json_pack("{s:s, s:s, s:b, s:s, s:o, s:f, s:o, s:I, s:I}", "endpoint",
        endpoint_format(&pair->remote.endpoint, text), "type",
        candidate_kind_names[pair->remote.kind], "ownSocket",
        (int)(pair->socket != PATH_SOCKET_MAIN), "verdict", path_verdict_names[pair->verdict],
        "rttMs", encode_milliseconds(pair->rtt), "loss", pair->loss_permille / 1000.0,
        "triedSecondsAgo", tried, "pings", (json_int_t)pair->n_pings, "pongs",
        (json_int_t)pair->n_pongs);
}

json_t *path_driver_encode_pairs(const struct path_driver *d, const char *node, nsec_t now)
{
    const struct peer_entry *peer = peer_table_find(&d->edges.peers, node);
    struct path_pair_view pairs[PATHS_PAIRS_MAX];
    json_t *items = peer ? json_array() : NULL;
    size_t n = items ? paths_pairs(d->paths, &peer->key, pairs, PATHS_PAIRS_MAX) : 0;

    for (size_t i = 0; i < n; i++)
        fields_append(&items, encode_pair(&pairs[i], now));
    return items;
}

json_t *path_driver_encode_relays(const struct path_driver *d, const char *node)
{
    const struct peer_entry *peer = peer_table_find(&d->edges.peers, node);
    struct path_relay_view relays[PATH_RELAYS_MAX];
    json_t *items = json_array();
    size_t n = peer ? paths_relays(d->paths, &peer->key, relays, PATH_RELAYS_MAX) : 0;

    for (size_t i = 0; items && i < n; i++) {
        const struct peer_entry *relay = peer_table_find_key(&d->edges.peers, &relays[i].key);
        json_t *item = json_pack("{s:s, s:s, s:o, s:o}", "name",
            relay ? relay->node : d->edges.hub_name, "verdict",
            path_verdict_names[relays[i].verdict], "rttMs", encode_milliseconds(relays[i].here),
            "peerRttMs", encode_milliseconds(relays[i].there));

        fields_append(&items, item);
    }
    return items;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int new_paths(struct path_driver *d, const struct path_driver_options *opt, struct err *e)
{
    struct paths_options po = {.secret = *opt->secret, .rng = d->rng};
    struct x25519_public own;
    nsec_t now = clock_now();
    int r;

    (void)snprintf(po.name, sizeof(po.name), "%s", opt->name);
    r = paths_new(&d->paths, &po, now);
    secret_wipe(&po.secret, sizeof(po.secret));
    if (r < 0)
        return err_set(e, r, "paths cannot be looked for: %s", strerror(-r));
    paths_set_clock(d->paths, clock_wall() - now, now);
    /* It cannot fail: paths_new() has derived it from the same secret. */
    (void)x25519_derive_public(opt->secret, &own);
    edges_init(&d->edges, d->paths, opt->secret, &own, &d->rng);
    return 0;
}

/* What cannot fail comes first, so that path_driver_free() can undo whatever was done. */
static struct path_driver *allocate(struct uv_loop_s *loop, const struct path_driver_options *opt,
    const struct path_driver_listener *listener)
{
    struct path_driver *d = calloc(1, sizeof(*d));
    struct uv_timer_s *timer = calloc(1, sizeof(*timer));

    if (!d || !timer) {
        free(d);
        free(timer);
        return NULL;
    }
    *d = (struct path_driver){.loop = loop,
        .listener = *listener,
        .interface = opt->interface,
        .rng = rng_kernel(),
        .timer = timer,
        .addresses = ADDRESS_WATCH_NULL,
        .pings = opt->pings,
        .local = {.given = opt->given, .n_given = opt->n_given},
        .gather_at = NSEC_NEVER};
    d->run = rng_u64(&d->rng) >> 1 | 1;
    udp_probe_init(&d->hub_probe, loop, on_hub_answer, d);
    (void)uv_timer_init(loop, timer);
    timer->data = d;
    return d;
}

int path_driver_new(struct path_driver **ret, struct uv_loop_s *loop,
    const struct path_driver_options *opt, const struct path_driver_listener *listener,
    struct err *e)
{
    struct path_driver *d = allocate(loop, opt, listener);
    int r;

    if (!d)
        return err_set(e, -ENOMEM, "no memory for finding paths");
    r = new_paths(d, opt, e);
    if (r == 0)
        r = path_sockets_init(&d->sockets, loop, on_frame, d, e);
    if (r == 0)
        r = address_watch_start(&d->addresses, loop, on_network, d, e);
    if (r == 0)
        r = port_map_new(&d->port_map, loop, on_mapping, d, e);
    if (r < 0) {
        (void)path_driver_free(d, false);
        return r;
    }
    /* Without pings stock peers are sent what every path carries. */
    if (d->pings && echo_socket_start(d->pings, d->loop, d->interface, on_ping_answer, d) < 0)
        d->pings = NULL;
    if (d->pings)
        d->edges.can_ping = true;
    *ret = d;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

struct path_driver *path_driver_free(struct path_driver *d, bool leaving)
{
    if (!d)
        return NULL;
    d->port_map = port_map_free(d->port_map, leaving);
    address_watch_stop(&d->addresses);
    udp_probe_stop(&d->hub_probe);
    if (d->pings)
        echo_socket_stop(d->pings);
    frame_client_close(&d->sockets.main);
    d->sockets.punch = punch_sockets_free(d->sockets.punch);
    uv_close((uv_handle_t *)d->timer, on_closed);
    edges_deinit(&d->edges);
    d->paths = paths_free(d->paths);
    free(d);
    return NULL;
}
