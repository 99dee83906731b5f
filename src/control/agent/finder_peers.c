/* finder_peers.c - see finder.h: the edges, which way each goes, and the handshakes that follow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/finder_internal.h"
#include "agent/observe.h"
#include "agent/reconcile.h"
#include "agent/state.h"
#include "base/err.h"
#include "os/log.h"
#include "mesh/snapshot.h"
#include "os/clock.h"

/* One that did not come about is begun again. */
#define HANDSHAKE_RETRY NSEC_PER_SEC

/* ---- the table ------------------------------------------------------------------------------ */

static int compare_peer(const void *name, const void *peer)
{
    return strcmp(name, ((const struct finder_peer *)peer)->node);
}

struct finder_peer *finder__find_peer(const struct finder *f, const char *node)
{
    return f->n_peers > 0 ? bsearch(node, f->peers, f->n_peers, sizeof(*f->peers), compare_peer)
                          : NULL;
}

struct finder_peer *finder__find_by_key(const struct finder *f, const struct x25519_public *key)
{
    for (size_t i = 0; i < f->n_peers; i++)
        if (x25519_public_equal(&f->peers[i].key, key))
            return &f->peers[i];
    return NULL;
}

static enum path_policy policy_of(const struct snapshot *s, const struct node *node)
{
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, node->meta.name);

    switch (edge ? edge->path : EDGE_PATH_AUTO) {
    case EDGE_PATH_DIRECT:
        return PATH_POLICY_DIRECT;
    case EDGE_PATH_RELAY:
        return PATH_POLICY_RELAY;
    case EDGE_PATH_OFF:
        return PATH_POLICY_OFF;
    case EDGE_PATH_AUTO:
    case EDGE_PATH_N:
        break;
    }
    /* A relay is one of the hubs: it has to be reached itself. */
    if (s->network.topology == TOPOLOGY_HUB && !node->relay && !snapshot_self(s)->relay)
        return PATH_POLICY_RELAY;
    return s->network.topology == TOPOLOGY_MESH ? PATH_POLICY_DIRECT : PATH_POLICY_AUTO;
}

/* ---- routes --------------------------------------------------------------------------------- */

static int compare_route(const void *name, const void *route)
{
    return strcmp(name, ((const struct render_path *)route)->node);
}

struct render_path *finder__find_route(const struct finder *f, const char *node)
{
    return f->n_routes > 0
               ? bsearch(node, f->routes, f->n_routes, sizeof(*f->routes), compare_route)
               : NULL;
}

static void remove_route(struct finder *f, const char *node)
{
    struct render_path *route = finder__find_route(f, node);

    if (!route)
        return;
    f->n_routes--;
    memmove(route, route + 1, (size_t)(f->routes + f->n_routes - route) * sizeof(*route));
}

/* There is room for one of each peer. */
static struct render_path *add_route(struct finder *f, const char *node)
{
    size_t i = f->n_routes;

    while (i > 0 && strcmp(f->routes[i - 1].node, node) > 0) {
        f->routes[i] = f->routes[i - 1];
        i--;
    }
    f->n_routes++;
    f->routes[i] = (struct render_path){.endpoint = {.port = 0}};
    memcpy(f->routes[i].node, node, strlen(node) + 1);
    return &f->routes[i];
}

void finder__want_handshake(struct finder *f, struct finder_peer *peer, nsec_t turn, nsec_t now)
{
    struct x25519_public own = snapshot_self(&f->state->snapshot)->key;
    bool first = x25519_public_compare(&own, &peer->key) < 0;

    peer->wanted_at = now;
    peer->handshake_due = first ? now : now + turn;
}

/*
 * Where WireGuard has to send so that it goes that way. When that cannot be had the socket is
 * closed, and the path is left at both ends because nothing answers on it.
 */
static bool find_endpoint(
    struct finder *f, const struct path_action *action, struct endpoint *ret, nsec_t now)
{
    struct err e = ERR_NULL;

    *ret = action->remote;
    if (action->socket == PATH_SOCKET_MAIN ||
        punch_sockets_use(f->punch, action->socket, &action->remote, ret, &e) == 0)
        return true;
    log_limited(&f->punch_limit, now, LOG_LEVEL_WARNING, "the path to %s cannot be used: %s",
        action->name, err_text(&e));
    punch_sockets_close(f->punch, action->socket);
    return false;
}

static bool use_direct(
    struct finder *f, struct finder_peer *peer, const struct path_action *action, nsec_t now)
{
    struct render_path *route = finder__find_route(f, peer->node);
    struct endpoint endpoint;

    if (!find_endpoint(f, action, &endpoint, now))
        return false;
    if (!route)
        route = add_route(f, peer->node);
    route->via[0] = '\0';
    route->endpoint = endpoint;
    route->keepalive = (uint16_t)(action->keepalive / NSEC_PER_SEC);
    peer->handshake_due = NSEC_NEVER;
    peer->via = (struct x25519_public){{0}};
    if (peer->is_relay)
        finder__relay_moved(f, peer, now);
    return true;
}

/* Where @relay is reached; false for the hub, which render knows. */
static bool find_relay(
    const struct finder *f, const struct finder_peer *relay, struct endpoint *ret)
{
    const struct render_path *route = relay ? finder__find_route(f, relay->node) : NULL;

    if (!route || route->via[0] != '\0')
        return false;
    *ret = route->endpoint;
    return true;
}

static void set_relay_route(struct finder *f, const struct finder_peer *peer,
    const struct finder_peer *relay, const struct endpoint *at)
{
    struct render_path *route = finder__find_route(f, peer->node);

    if (!route)
        route = add_route(f, peer->node);
    memcpy(route->via, relay->node, sizeof(route->via));
    route->endpoint = *at;
    route->mtu = 0;
    route->keepalive = 0;
    route->is_leg = false;
}

/* What never had a session needs none before there is something to send. */
static bool has_lived(const struct finder_peer *peer, nsec_t now)
{
    return peer->handshake != 0 && now - peer->handshake < OBSERVE_SESSION_MAX;
}

static bool use_relay(
    struct finder *f, struct finder_peer *peer, const struct path_action *action, nsec_t now)
{
    const struct finder_peer *relay = finder__find_by_key(f, &action->via.key);
    const struct render_path *route = finder__find_route(f, peer->node);
    struct x25519_public before = peer->via;
    bool was_direct = route && route->via[0] == '\0';
    struct endpoint at;

    if (find_relay(f, relay, &at)) {
        set_relay_route(f, peer, relay, &at);
        peer->via = relay->key;
    } else {
        remove_route(f, peer->node);
        peer->via = (struct x25519_public){{0}};
    }
    if (!was_direct && x25519_public_equal(&before, &peer->via))
        return false;
    peer->wanted_at = now;
    if (was_direct)
        finder__want_handshake(f, peer, FINDER_TURN, now);
    else if (!action->is_followed && has_lived(peer, now))
        finder__want_handshake(f, peer, FINDER_RELAY_TURN, now);
    return true;
}

void finder__use(struct finder *f, const struct path_action *action, nsec_t now)
{
    struct finder_peer *peer = finder__find_by_key(f, &action->peer);
    bool changed;

    if (!peer)
        return;
    changed = action->path == PATH_KIND_LAN || action->path == PATH_KIND_DIRECT
                  ? use_direct(f, peer, action, now)
                  : use_relay(f, peer, action, now);
    if (!changed)
        return;
    peer->is_applied = false;
    f->has_changed |= peer->is_relay;
    finder__mtu_use(f, peer, &action->remote, now);
    f->listener.on_routes(f->listener.ctx);
}

bool finder_retreat(struct finder *f, nsec_t now)
{
    bool some = false;

    paths_leave_sockets(f->paths, now);
    finder__run(f, now);
    for (size_t i = 0; i < f->n_peers; i++) {
        some |= f->peers[i].handshake_due != NSEC_NEVER;
        f->peers[i].handshake_due = nsec_min(f->peers[i].handshake_due, now);
    }
    return some;
}

const struct render_path *finder_routes(const struct finder *f, size_t *ret_n)
{
    *ret_n = f->n_routes;
    return f->routes;
}

/* ---- handshakes ----------------------------------------------------------------------------- */

nsec_t finder__handshake_due(const struct finder *f)
{
    nsec_t due = NSEC_NEVER;

    for (size_t i = 0; i < f->n_peers; i++)
        due = nsec_min(due, f->peers[i].handshake_due);
    return due;
}

bool finder_awaits_handshake(const struct finder *f)
{
    return finder__handshake_due(f) != NSEC_NEVER;
}

void finder_on_applied(struct finder *f, struct reconcile *rc, nsec_t now)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        struct finder_peer *peer = &f->peers[i];
        struct err e = ERR_NULL;

        peer->is_applied = true;
        if (now < peer->handshake_due)
            continue;
        peer->handshake_due = now + HANDSHAKE_RETRY;
        if (reconcile_handshake(rc, &peer->key, &e) != 0)
            log_debug("no handshake with %s: %s", peer->node, err_text(&e));
    }
    finder__run(f, now);
}

void finder_on_hub_forgot(struct finder *f, nsec_t now)
{
    for (size_t i = 0; i < f->n_peers; i++)
        if (!finder__find_route(f, f->peers[i].node) && f->peers[i].handshake != 0)
            finder__want_handshake(f, &f->peers[i], FINDER_TURN, now);
    f->listener.on_routes(f->listener.ctx);
}

void finder_take_observation(struct finder *f, const struct observe *seen, nsec_t now)
{
    const struct observation *hub = observe_find(seen, &f->hub);

    for (size_t i = 0; i < f->n_peers; i++) {
        struct finder_peer *peer = &f->peers[i];
        const struct observation *ob = observe_find(seen, &peer->key);

        if (!ob)
            continue;
        peer->handshake = ob->handshake;
        peer->has_session = observation_has_session(ob, now);
        finder__follow(f, peer, ob, now);
        /* An idle edge needs none before there is something to send. */
        if (ob->handshake > peer->wanted_at)
            peer->handshake_due = NSEC_NEVER;
        finder__mtu_data(f, peer, ob->facts.tx_bytes != peer->tx_bytes,
            ob->facts.rx_bytes != peer->rx_bytes, now);
        peer->tx_bytes = ob->facts.tx_bytes;
        peer->rx_bytes = ob->facts.rx_bytes;
        if (!peer->is_leg)
            paths_on_traffic(f->paths, &peer->key, ob->facts.rx_bytes, ob->facts.tx_bytes, now);
    }
    f->hub_at = hub ? hub->endpoint : (struct endpoint){.port = 0};
    finder__count_relayed(f, now);
    f->has_changed = true;
    finder__run(f, now);
}

void finder_set_hub(struct finder *f, bool heard, nsec_t now)
{
    if (heard == f->is_hub_heard)
        return;
    f->is_hub_heard = heard;
    paths_on_relay(f->paths, heard, now);
    finder__run(f, now);
}

/* ---- the snapshot --------------------------------------------------------------------------- */

/* What is known of @node from before, or a fresh place for it. */
static struct finder_peer make_peer(
    struct finder *f, const struct node *node, enum path_policy policy)
{
    struct finder_peer *before = finder__find_peer(f, node->meta.name);
    struct finder_peer peer = {
        .key = node->key, .policy = PATH_POLICY_N, .handshake_due = NSEC_NEVER};

    memcpy(peer.node, node->meta.name, strlen(node->meta.name) + 1);
    /* One of the same name with another key is another node. */
    if (before && x25519_public_equal(&before->key, &node->key)) {
        peer = *before;
        before->is_present = true;
    }
    return peer;
}

static void tell_peer(struct finder *f, struct finder_peer *peer, const struct node *node,
    enum path_policy policy, nsec_t now)
{
    bool is_relay = node->relay && node->side->relay_run != 0;
    struct path_peer told = {.key = node->key, .policy = policy, .is_relay = is_relay};

    if (peer->policy != policy || peer->is_relay != is_relay) {
        memcpy(told.name, node->meta.name, strlen(node->meta.name) + 1);
        if (paths_put_peer(f->paths, &told, now) < 0)
            return;
        f->has_changed |= peer->is_relay != is_relay;
        peer->policy = policy;
        peer->is_relay = is_relay;
    }
    if (is_relay && peer->relay_run != 0 && peer->relay_run != node->side->relay_run)
        finder__relay_forgot(f, peer, now);
    peer->relay_run = node->side->relay_run;
    if (node->side->generation == peer->generation)
        return;
    peer->generation = node->side->generation;
    paths_set_peer_side(f->paths, &node->key, node->side, now);
}

static void forget_absent(struct finder *f, nsec_t now)
{
    for (size_t i = 0; i < f->n_peers; i++) {
        if (f->peers[i].is_present)
            continue;
        paths_remove_peer(f->paths, &f->peers[i].key, now);
        f->peers[i].mtu = finder__mtu_free(f->peers[i].mtu);
        remove_route(f, f->peers[i].node);
        f->has_changed |= f->peers[i].is_relay;
    }
}

/* Room for @n peers and their routes. */
static struct finder_peer *make_room(struct finder *f, size_t n)
{
    struct render_path *routes = realloc(f->routes, (n + f->n_routes + 1) * sizeof(*routes));

    if (!routes)
        return NULL;
    f->routes = routes;
    return calloc(n + 1, sizeof(struct finder_peer));
}

static bool is_edge(const struct snapshot *s, const struct node *node)
{
    return !node->hub && node->side && strcmp(node->meta.name, s->self) != 0;
}

void finder_set_snapshot(struct finder *f, const struct snapshot *s, nsec_t now)
{
    struct finder_peer *peers = make_room(f, s->nodes.n);
    size_t n = 0;

    if (!peers)
        return;
    for (size_t i = 0; i < f->n_peers; i++)
        f->peers[i].is_present = false;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        enum path_policy policy = policy_of(s, node);

        if (is_edge(s, node) && policy != PATH_POLICY_OFF)
            peers[n++] = make_peer(f, node, policy);
    }
    forget_absent(f, now);
    free(f->peers);
    f->peers = peers;
    f->n_peers = n;
    for (size_t i = 0; i < n; i++) {
        const struct node *node = snapshot_find_node(s, peers[i].node);

        tell_peer(f, &peers[i], node, policy_of(s, node), now);
    }
    f->network_mtu = s->network.mtu;
    finder__set_servers(f, s, now);
    finder__run(f, now);
}

/* ---- for people ----------------------------------------------------------------------------- */

bool finder_view(const struct finder *f, const char *node, struct path_view *ret, nsec_t now)
{
    const struct finder_peer *peer = finder__find_peer(f, node);

    return peer && paths_view(f->paths, &peer->key, ret, now);
}

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
        candidate_kind_name(pair->remote.kind), "ownSocket",
        (int)(pair->socket != PATH_SOCKET_MAIN), "verdict", path_verdict_name(pair->verdict),
        "rttMs", encode_milliseconds(pair->rtt), "loss", pair->loss_permille / 1000.0,
        "triedSecondsAgo", tried, "pings", (json_int_t)pair->n_pings, "pongs",
        (json_int_t)pair->n_pongs);
}

json_t *finder_encode_pairs(const struct finder *f, const char *node, nsec_t now)
{
    const struct finder_peer *peer = finder__find_peer(f, node);
    struct path_pair_view pairs[PATHS_PAIRS_MAX];
    json_t *items;
    size_t n;

    if (!peer)
        return NULL;
    n = paths_pairs(f->paths, &peer->key, pairs, PATHS_PAIRS_MAX);
    items = json_array();
    for (size_t i = 0; items && i < n; i++)
        if (json_array_append_new(items, encode_pair(&pairs[i], now)) < 0)
            items = (json_decref(items), NULL);
    return items;
}
