/* edges.c - see edges.h. */
#include "agent/paths/edge/edges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reconcile/observe.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"
#include "os/log.h"
#include "path/paths.h"

void edges_init(struct edges *e, struct paths *paths, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct rng *rng)
{
    *e = (struct edges){.paths = paths, .own = *own, .stocks = {.rng = *rng}};
    hub_mtus_init(&e->hubs, secret, own, rng);
}

void edges_set_keys(
    struct edges *e, const struct x25519_secret *secret, const struct x25519_public *calls)
{
    e->own = *calls;
    hub_mtus_set_secret(&e->hubs, secret);
}

void edges_deinit(struct edges *e)
{
    for (size_t i = 0; i < e->peers.n; i++)
        free(e->peers.items[i].pmtu);
    peer_table_deinit(&e->peers);
    hub_mtus_deinit(&e->hubs);
    stock_mtus_deinit(&e->stocks);
    free(e->facts);
    free(e->routes);
}

bool edges_take_changes(struct edges *e)
{
    bool has_changes = e->has_changes;

    e->has_changes = false;
    return has_changes;
}

/* ---- relays --------------------------------------------------------------------------------- */

static bool is_relay_used(const struct edges *e, const struct peer_entry *relay)
{
    for (size_t i = 0; i < e->peers.n; i++)
        if (edge_route_goes_via(&e->peers.items[i].route, &relay->key))
            return true;
    return false;
}

/* Fills in e->facts. Return: how many there are. */
static size_t gather_relays(const struct edges *e, nsec_t now)
{
    size_t n = 0;

    for (size_t i = 0; i < e->peers.n; i++) {
        const struct peer_entry *peer = &e->peers.items[i];
        bool is_direct = peer->route.kind == EDGE_ROUTE_DIRECT;
        struct path_view view;
        bool is_own;

        if (!peer->is_relay)
            continue;
        /* A path through a socket of our own is not WireGuard's: what a relay passes on does not
         * take it. */
        is_own =
            is_direct && peer->pmtu && endpoint_equal(&peer->route.endpoint, &peer->pmtu->remote);
        e->facts[n++] = (struct relay_fact){
            .key = peer->key,
            .peer = i,
            .is_direct = is_direct,
            .is_used = is_relay_used(e, peer),
            .has_session = peer->has_session,
            .rtt = paths_view(e->paths, &peer->key, &view, now) ? nsec_max(view.rtt, 1) : 1,
            .mtu =
                is_own && peer->pmtu->is_both && peer->pmtu->pmtu.is_measured ? peer->pmtu->mtu : 0,
            .is_standby = peer->is_standby,
            .is_closed = peer->is_closed,
        };
    }
    return n;
}

static void set_standby(struct edges *e, struct peer_entry *peer, bool is_standby)
{
    e->has_changes |= peer->route.kind == EDGE_ROUTE_DIRECT && peer->is_standby != is_standby;
    peer->is_standby = is_standby;
}

bool edges_choose_relays(struct edges *e, nsec_t now)
{
    size_t n;

    if (!e->relays_changed)
        return false;
    e->relays_changed = false;
    for (size_t i = 0; i < e->peers.n; i++)
        if (!e->peers.items[i].is_relay)
            set_standby(e, &e->peers.items[i], false);
    n = gather_relays(e, now);
    relay_select_standbys(e->facts, n);
    for (size_t i = 0; i < n; i++) {
        struct peer_entry *peer = &e->peers.items[e->facts[i].peer];

        set_standby(e, peer, e->facts[i].is_standby);
        /* A relay passes on packets only for nodes that it has a session with. */
        if (peer->is_standby && !peer->has_session && peer->handshake.due_at == NSEC_NEVER)
            edge_handshake_want(&peer->handshake, true, 0, now);
    }
    return true;
}

const struct peer_entry *edges_relay_at(const struct edges *e, const struct endpoint *at)
{
    for (size_t i = 0; i < e->peers.n; i++) {
        const struct peer_entry *peer = &e->peers.items[i];

        if (peer->is_relay && peer->route.kind == EDGE_ROUTE_DIRECT &&
            endpoint_equal(&peer->route.endpoint, at))
            return peer;
    }
    return NULL;
}

void edges_tell_relays(struct edges *e, nsec_t hub_rtt, struct path_side *side, nsec_t now)
{
    struct relay_hub hub = {.key = e->hub,
        .rtt = hub_rtt,
        .mtu = hub_mtus_of(&e->hubs, &e->hub),
        .is_dead = e->hub_liveness.is_dead};

    relay_select_tell(&e->relays, &hub, e->facts, gather_relays(e, now), side);
}

/* ---- what a path carries -------------------------------------------------------------------- */

static void run_pmtu(struct edges *e, struct peer_entry *peer, nsec_t now)
{
    enum pmtu_action step;
    struct pmtu_probe probe;
    uint16_t payload, size;
    uint64_t id;

    while ((step = pmtu_driver_next(peer->pmtu, &probe, &payload, now)) != PMTU_ACTION_NONE)
        if (step == PMTU_ACTION_SET) {
            e->has_changes = true;
            e->relays_changed |= peer->is_relay;
            paths_set_mtu(e->paths, &peer->key, peer->pmtu->mtu);
        } else if (paths_probe(e->paths, &peer->key, payload, &id, now)) {
            pmtu_driver_on_sent(peer->pmtu, &probe, id);
        }
    size = pmtu_driver_settled(peer->pmtu);
    if (size != 0)
        log_info("%s: the path carries packets of %u bytes", peer->node, size);
}

/* The peer's packets go to @remote now; none: they are relayed. */
static void use_pmtu(
    struct edges *e, struct peer_entry *peer, const struct endpoint *remote, nsec_t now)
{
    bool is_new = !endpoint_is_none(remote) && !peer->pmtu;

    /* Without memory the network's MTU is used. */
    if (is_new)
        peer->pmtu = calloc(1, sizeof(struct pmtu_driver));
    if (!peer->pmtu)
        return;
    if (endpoint_is_none(remote)) {
        pmtu_driver_on_path_lost(peer->pmtu);
        return;
    }
    if (pmtu_driver_on_path(peer->pmtu, remote, &e->limits, now))
        run_pmtu(e, peer, now);
}

void edges_on_fits(struct edges *e, const struct path_action *action, nsec_t now)
{
    struct peer_entry *peer = peer_table_find_key(&e->peers, &action->peer);

    if (peer && peer->pmtu && pmtu_driver_on_fits(peer->pmtu, action->probe, action->is_whole, now))
        run_pmtu(e, peer, now);
}

bool edges_next_frame(struct edges *e, struct hub_mtu_frame *ret, nsec_t wall, nsec_t now)
{
    bool is_new = false;
    bool is_there = hub_mtus_next(&e->hubs, ret, &is_new, wall, now);

    e->has_changes |= is_new;
    e->relays_changed |= is_new;
    return is_there;
}

/* What the peer's packets may have on the route that they take; 0: not measured. */
static uint16_t route_mtu(const struct edges *e, const struct peer_entry *peer)
{
    switch (peer->route.kind) {
    case EDGE_ROUTE_DIRECT:
        return peer->pmtu ? peer->pmtu->mtu : 0;
    case EDGE_ROUTE_HUB:
        return paths_relay_mtu(e->paths, &peer->key, &e->hub);
    case EDGE_ROUTE_RELAY:
        return paths_relay_mtu(e->paths, &peer->key, &peer->route.via);
    }
    return 0;
}

/* ---- routes and handshakes ------------------------------------------------------------------ */

static void want_handshake(const struct edges *e, struct peer_entry *peer, nsec_t turn, nsec_t now)
{
    bool is_first = x25519_public_compare(&e->own, &peer->key) < 0;

    edge_handshake_want(&peer->handshake, is_first, turn, now);
}

/* The edge has begun to go another way. */
static void on_used(
    struct edges *e, struct peer_entry *peer, const struct endpoint *remote, nsec_t now)
{
    e->relays_changed |= peer->is_relay;
    e->has_changes = true;
    use_pmtu(e, peer, remote, now);
}

void edges_use_direct(
    struct edges *e, const struct path_action *action, const struct endpoint *endpoint, nsec_t now)
{
    struct peer_entry *peer = peer_table_find_key(&e->peers, &action->peer);

    if (!peer)
        return;
    peer->route = (struct edge_route){
        .kind = EDGE_ROUTE_DIRECT, .endpoint = *endpoint, .keepalive = action->keepalive};
    peer->handshake.due_at = NSEC_NEVER;
    if (peer->is_relay) {
        /* Edges that go through it follow it to its new endpoint. */
        for (size_t i = 0; i < e->peers.n; i++)
            if (edge_route_goes_via(&e->peers.items[i].route, &peer->key))
                e->peers.items[i].route.endpoint = *endpoint;
        edge_handshake_want(&peer->handshake, true, 0, now);
    }
    on_used(e, peer, &action->remote, now);
}

void edges_use_relay(struct edges *e, const struct path_action *action, nsec_t now)
{
    struct peer_entry *peer = peer_table_find_key(&e->peers, &action->peer);
    const struct peer_entry *relay = peer_table_find_key(&e->peers, &action->via.key);
    bool was_direct = peer && peer->route.kind == EDGE_ROUTE_DIRECT;
    bool has_changed;

    if (!peer)
        return;
    /* A relay to which there is no direct path any more is left for the hub. */
    if (!relay || relay->route.kind != EDGE_ROUTE_DIRECT)
        has_changed = edge_route_use_hub(&peer->route);
    else
        has_changed =
            edge_route_use_relay(&peer->route, &relay->key, relay->node, &relay->route.endpoint);
    if (!has_changed)
        return;
    /* The edge goes elsewhere: what was seen before says nothing of that. */
    peer->handshake.wanted_at = now;
    /* An edge that never had a session needs no handshake before there is something to send. */
    if (was_direct)
        want_handshake(e, peer, EDGE_HANDSHAKE_TURN, now);
    else if (!action->is_followed && edge_handshake_has_session(&peer->handshake, now))
        want_handshake(e, peer, EDGE_HANDSHAKE_RELAY_TURN, now);
    on_used(e, peer, &action->remote, now);
}

static int compare_routes(const void *a, const void *b)
{
    return strcmp(((const struct render_path *)a)->node, ((const struct render_path *)b)->node);
}

const struct render_path *edges_routes(struct edges *e, size_t *ret_n)
{
    static const struct edge_route relayed = EDGE_ROUTE_NULL;
    size_t n = 0;

    for (size_t i = 0; i < e->peers.n; i++) {
        const struct peer_entry *peer = &e->peers.items[i];

        if (edge_route_render(
                &peer->route, peer->node, route_mtu(e, peer), peer->is_standby, &e->routes[n]))
            n++;
    }
    for (size_t i = 0; i < e->stocks.n; i++)
        if (edge_route_render(&relayed, e->stocks.items[i].node, stock_mtus_of(&e->stocks.items[i]),
                false, &e->routes[n]))
            n++;
    qsort(e->routes, n, sizeof(*e->routes), compare_routes);
    *ret_n = n;
    return e->routes;
}

static nsec_t handshake_due(const struct edges *e)
{
    nsec_t due = NSEC_NEVER;

    for (size_t i = 0; i < e->peers.n; i++)
        due = nsec_min(due, e->peers.items[i].handshake.due_at);
    return due;
}

bool edges_awaits_handshake(const struct edges *e)
{
    return handshake_due(e) != NSEC_NEVER;
}

void edges_on_applied(struct edges *e)
{
    for (size_t i = 0; i < e->peers.n; i++)
        e->peers.items[i].route.is_applied = true;
    e->next_handshake = 0;
}

const struct peer_entry *edges_next_handshake(struct edges *e, nsec_t now)
{
    while (e->next_handshake < e->peers.n) {
        struct peer_entry *peer = &e->peers.items[e->next_handshake++];

        if (edge_handshake_take(&peer->handshake, now))
            return peer;
    }
    return NULL;
}

bool edges_hasten_handshakes(struct edges *e, nsec_t now)
{
    bool some = false;

    for (size_t i = 0; i < e->peers.n; i++)
        some |= edge_handshake_hasten(&e->peers.items[i].handshake, now);
    return some;
}

void edges_on_hub_forgot(struct edges *e, nsec_t now)
{
    for (size_t i = 0; i < e->peers.n; i++) {
        struct peer_entry *peer = &e->peers.items[i];

        if (peer->route.kind == EDGE_ROUTE_HUB && peer->handshake.seen_at != 0)
            want_handshake(e, peer, EDGE_HANDSHAKE_TURN, now);
    }
    e->has_changes = true;
}

/* ---- what the engine shows ------------------------------------------------------------------ */

/* The engine has the peer at another endpoint than it was told, because the other end has begun a
 * session there. */
static void follow_peer(
    struct edges *e, const struct peer_entry *peer, const struct observation *seen, nsec_t now)
{
    const struct peer_entry *relay;

    if (!peer->route.is_applied || peer->route.kind == EDGE_ROUTE_DIRECT ||
        !edge_handshake_is_answer(&peer->handshake, seen->handshake_at))
        return;
    relay = edges_relay_at(e, &seen->endpoint);
    if (relay)
        paths_on_relayed(e->paths, &peer->key, &relay->key, now);
    else if (endpoint_equal(&e->hub_liveness.hub, &seen->endpoint))
        paths_on_relayed(e->paths, &peer->key, &e->hub, now);
}

static void observe_peer(
    struct edges *e, struct peer_entry *peer, const struct observation *seen, nsec_t now)
{
    const struct wg_facts *facts = &seen->facts;
    struct peer_traffic before = peer->traffic;

    peer->has_session = observation_has_session(seen, now);
    follow_peer(e, peer, seen, now);
    edge_handshake_on_seen(&peer->handshake, seen->handshake_at);
    peer->traffic = (struct peer_traffic){.rx_bytes = facts->rx_bytes, .tx_bytes = facts->tx_bytes};
    if (before.rx_bytes != 0 && facts->rx_bytes > before.rx_bytes)
        peer->traffic.heard = seen->heard;
    if (peer->pmtu)
        pmtu_on_data(&peer->pmtu->pmtu, facts->tx_bytes != before.tx_bytes,
            facts->rx_bytes != before.rx_bytes, now);
    if (!peer->is_standby)
        paths_on_traffic(e->paths, &peer->key, facts->rx_bytes, facts->tx_bytes, now);
}

/* Has the engine received something by the direct path to that peer since the look before? What
 * came from it through a relay shows that the path to the relay lives. */
static bool is_received(const struct edges *e, const struct peer_entry *peer)
{
    const struct endpoint *at = &peer->route.endpoint;

    if (peer->route.kind != EDGE_ROUTE_DIRECT || !peer->route.is_applied)
        return false;
    if (endpoint_equal(&peer->traffic.heard, at))
        return true;
    for (size_t i = 0; peer->is_relay && i < e->peers.n; i++)
        if (edge_route_goes_via(&e->peers.items[i].route, &peer->key) &&
            endpoint_equal(&e->peers.items[i].traffic.heard, at))
            return true;
    return false;
}

/* Data that goes through a relay counts as data of the path to that relay, which is thus in use. */
static void count_through(struct edges *e, const struct peer_entry *relay, nsec_t now)
{
    uint64_t rx = relay->traffic.rx_bytes;
    uint64_t tx = relay->traffic.tx_bytes;

    for (size_t i = 0; i < e->peers.n; i++)
        if (edge_route_goes_via(&e->peers.items[i].route, &relay->key)) {
            rx += e->peers.items[i].traffic.rx_bytes;
            tx += e->peers.items[i].traffic.tx_bytes;
        }
    paths_on_traffic(e->paths, &relay->key, rx, tx, now);
}

static void count_relayed(struct edges *e, const struct observation *hub, nsec_t now)
{
    struct endpoint nowhere = {.port = 0};
    struct peer_traffic sum = {.rx_bytes = 0};
    bool has_other = false;

    for (size_t i = 0; i < e->peers.n; i++) {
        const struct peer_entry *peer = &e->peers.items[i];

        if (peer->is_standby) {
            has_other |= peer->has_session;
            count_through(e, peer, now);
        }
        if (peer->route.kind == EDGE_ROUTE_HUB) {
            sum.rx_bytes += peer->traffic.rx_bytes;
            sum.tx_bytes += peer->traffic.tx_bytes;
        }
    }
    hub_liveness_look(&e->hub_liveness, hub ? &hub->endpoint : &nowhere,
        sum.rx_bytes + sum.tx_bytes, has_other, now);
    e->has_changes |= hub_mtus_look(&e->hubs, &e->hub, hub, &sum, &e->limits, now);
}

/* What is relayed to a stock peer is never longer than the way to the hub carries: that one is
 * measured with DF. */
static struct pmtu_driver_limits limits_of_stock(
    const struct edges *e, const struct observation *seen)
{
    struct pmtu_driver_limits limits = {.network_mtu = e->limits.network_mtu};
    bool is_relayed = seen && endpoint_equal(&seen->endpoint, &e->hub_liveness.hub);
    uint16_t way = is_relayed ? hub_mtus_of(&e->hubs, &e->hub) : 0;

    if (e->limits.link_mtu != 0 && e->limits.link_mtu < limits.network_mtu)
        limits.network_mtu = e->limits.link_mtu;
    if (way != 0 && way < limits.network_mtu)
        limits.network_mtu = way;
    return limits;
}

/* Does the engine send to another peer at that endpoint, too? Then it is a relay's, unless @peer is
 * that relay. */
static bool is_shared(const struct edges *e, const struct peer_entry *peer,
    const struct endpoint *at, const struct observe *seen)
{
    for (size_t i = 0; i < seen->n; i++) {
        const struct observation *ob = &seen->items[i];
        const struct peer_entry *other;

        if (!endpoint_equal(&ob->endpoint, at) || x25519_public_equal(&ob->key, &peer->key))
            continue;
        other = peer_table_find_key(&e->peers, &ob->key);
        if (!peer->is_relay || !other || other->is_relay)
            return true;
    }
    return false;
}

void edges_observe(struct edges *e, const struct observe *seen, nsec_t now)
{
    for (size_t i = 0; i < e->peers.n; i++) {
        struct peer_entry *peer = &e->peers.items[i];
        const struct observation *of_peer = observe_find(seen, &peer->key);

        if (!of_peer)
            continue;
        /* The engine of an earlier agent goes on with its sessions. Where it has heard a peer by
         * the endpoint that it sends to, that path is kept until it is found dead or a better one
         * is found. Else the edge goes through a relay now, which has seen no handshake. */
        if (!peer->was_seen && observation_has_session(of_peer, now) &&
            !endpoint_is_none(&of_peer->endpoint) &&
            !is_shared(e, peer, &of_peer->endpoint, seen)) {
            bool is_kept = endpoint_equal(&of_peer->heard, &of_peer->endpoint) &&
                           paths_keep(e->paths, &peer->key, &of_peer->endpoint, now);

            if (!is_kept && peer->route.kind != EDGE_ROUTE_DIRECT &&
                !edges_is_hub_at(e, &of_peer->endpoint) && !edges_relay_at(e, &of_peer->endpoint))
                want_handshake(e, peer, EDGE_HANDSHAKE_TURN, now);
        }
        peer->was_seen = true;
        observe_peer(e, peer, of_peer, now);
    }
    for (size_t i = 0; i < e->peers.n; i++)
        if (is_received(e, &e->peers.items[i]))
            paths_on_received(e->paths, &e->peers.items[i].key, e->observed_at, now);
    e->observed_at = now;
    for (unsigned i = 0; i < e->n_other_hubs; i++) {
        const struct observation *hub = observe_find(seen, &e->other_hubs[i].key);

        e->other_hubs[i].at = hub ? hub->endpoint : (struct endpoint){.port = 0};
        e->has_changes |= hub_mtus_look(&e->hubs, &e->other_hubs[i].key, hub,
            &(struct peer_traffic){.rx_bytes = 0}, &e->limits, now);
    }
    count_relayed(e, observe_find(seen, &e->hub), now);
    for (size_t i = 0; e->can_ping && i < e->stocks.n; i++) {
        struct stock_mtu *peer = &e->stocks.items[i];
        const struct observation *of_peer = observe_find(seen, &peer->key);
        struct pmtu_driver_limits limits = limits_of_stock(e, of_peer);

        stock_mtus_look(peer, of_peer, &limits, now);
    }
    e->relays_changed = true;
}

bool edges_is_hub_at(const struct edges *e, const struct endpoint *at)
{
    if (endpoint_equal(&e->hub_liveness.hub, at))
        return true;
    for (unsigned i = 0; i < e->n_other_hubs; i++)
        if (!endpoint_is_none(at) && endpoint_equal(&e->other_hubs[i].at, at))
            return true;
    return false;
}

/* ---- the snapshot --------------------------------------------------------------------------- */

/* The peer goes on under other keys. What goes through it as a relay follows. */
static void rekey(struct edges *e, struct peer_entry *peer, nsec_t now)
{
    const struct x25519_public *other = x25519_public_is_none(&peer->other) ? NULL : &peer->other;

    if (paths_set_peer_keys(e->paths, &peer->changes.was, &peer->key, other, now) < 0) {
        log_info("%s: its path is looked for anew under its next key", peer->node);
        paths_remove_peer(e->paths, &peer->changes.was, now);
        peer->changes.is_put = peer->changes.is_side = true;
    }
    for (size_t i = 0; i < e->peers.n; i++)
        if (edge_route_goes_via(&e->peers.items[i].route, &peer->changes.was))
            e->peers.items[i].route.via = peer->key;
    e->relays_changed |= peer->is_relay;
}

static void apply_changes(
    struct edges *e, struct peer_entry *peer, const struct path_side *side, nsec_t now)
{
    struct path_peer put = {.key = peer->key, .policy = peer->policy, .is_relay = peer->is_relay};

    /* One that is put for the first time has its second key then. */
    if (peer->changes.is_rekeyed && !peer->changes.is_new)
        rekey(e, peer, now);
    if (peer->changes.is_put) {
        memcpy(put.name, peer->node, sizeof(put.name));
        if (paths_put_peer(e->paths, &put, now) < 0) {
            /* It is put again by the next snapshot. */
            peer->policy = PATH_POLICY_N;
            peer->generation = 0;
            return;
        }
        e->relays_changed |= peer->changes.is_relaying;
        if (peer->changes.is_new && !x25519_public_is_none(&peer->other))
            rekey(e, peer, now);
    }
    if (peer->changes.is_restarted) {
        log_info("relay %s was started anew: what goes through it shakes hands again", peer->node);
        edge_handshake_want(&peer->handshake, true, 0, now);
        for (size_t i = 0; i < e->peers.n; i++)
            if (edge_route_goes_via(&e->peers.items[i].route, &peer->key))
                want_handshake(e, &e->peers.items[i], EDGE_HANDSHAKE_RELAY_TURN, now);
    }
    if (peer->changes.is_side)
        paths_set_peer_side(e->paths, &peer->key, side, now);
}

static bool reserve_peers(struct edges *e, size_t n)
{
    struct relay_fact *facts = realloc(e->facts, (n + 1) * sizeof(*facts));
    struct render_path *routes = realloc(e->routes, (n + 1) * sizeof(*routes));

    e->facts = facts ? facts : e->facts;
    e->routes = routes ? routes : e->routes;
    return facts && routes;
}

static void take_hub(struct edges *e, const struct node *hub)
{
    e->hub = hub ? hub->key : (struct x25519_public){{0}};
    (void)snprintf(
        e->hub_name, sizeof(e->hub_name), "%.*s", NAME_MAX_LEN, hub ? hub->meta.name : "");
}

static void take_other_hubs(struct edges *e, const struct snapshot *s)
{
    struct x25519_public keys[HUB_MTU_MAX] = {e->hub};

    e->n_other_hubs = 0;
    for (size_t i = 0; i < s->nodes.n && e->n_other_hubs < EDGES_OTHER_HUBS_MAX; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (!node->hub || x25519_public_equal(&node->key, &e->hub))
            continue;
        e->other_hubs[e->n_other_hubs++] = (struct edges_hub){.key = node->key};
        keys[e->n_other_hubs] = node->key;
    }
    hub_mtus_keep(&e->hubs, keys, e->n_other_hubs + 1);
}

/* What hubs and relays tell of their lines. */
static void take_notices(struct edges *e, const struct snapshot *s, nsec_t now)
{
    struct paths_notice notices[PATHS_NOTICES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < s->nodes.n && n < PATHS_NOTICES_MAX; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (node->notice && (node->hub || node->relay))
            notices[n++] = (struct paths_notice){.relay = node->key, .notice = *node->notice};
    }
    /* Without memory what they said before holds until the next change. */
    (void)paths_set_notices(e->paths, notices, n, now);
}

void edges_set_hub(struct edges *e, const struct node *hub, nsec_t now)
{
    bool is_other = !x25519_public_equal(&e->hub, &hub->key);
    unsigned i = 0;

    e->is_hub_chosen = true;
    if (!is_other)
        return;
    while (i < e->n_other_hubs && !x25519_public_equal(&e->other_hubs[i].key, &hub->key))
        i++;
    if (i < e->n_other_hubs)
        e->other_hubs[i] = (struct edges_hub){.key = e->hub, .at = e->hub_liveness.hub};
    take_hub(e, hub);
    /* What was seen of the former one says nothing of this one. */
    e->hub_liveness = (struct hub_liveness){.n_bytes = e->hub_liveness.n_bytes};
    edges_on_hub_forgot(e, now);
}

void edges_set_snapshot(struct edges *e, const struct snapshot *s, nsec_t now)
{
    const struct node *chosen; /* the hub that relays, as the snapshot has it now */
    size_t n = s->nodes.n > e->peers.n ? s->nodes.n : e->peers.n;

    if (!reserve_peers(e, n) || stock_mtus_take(&e->stocks, s) < 0 ||
        peer_table_take(&e->peers, s) < 0)
        return;
    for (size_t i = 0; i < e->peers.n_gone; i++) {
        struct peer_entry *peer = &e->peers.gone[i];

        paths_remove_peer(e->paths, &peer->key, now);
        free(peer->pmtu);
        e->relays_changed |= peer->is_relay;
    }
    for (size_t i = 0; i < e->peers.n; i++) {
        struct peer_entry *peer = &e->peers.items[i];

        apply_changes(e, peer, snapshot_find_node(s, peer->node)->side, now);
    }
    take_notices(e, s, now);
    e->limits.network_mtu = s->network.mtu;
    chosen = e->is_hub_chosen ? snapshot_find_node(s, e->hub_name) : NULL;
    take_hub(e, chosen && chosen->hub ? chosen : render_hub(s));
    take_other_hubs(e, s);
}

/* ---- time ----------------------------------------------------------------------------------- */

nsec_t edges_due(const struct edges *e, nsec_t now)
{
    nsec_t due = nsec_min(handshake_due(e), hub_mtus_due(&e->hubs));

    due = nsec_min(due, stock_mtus_due(&e->stocks, now));
    for (size_t i = 0; i < e->peers.n; i++)
        if (e->peers.items[i].pmtu)
            due = nsec_min(due, pmtu_due(&e->peers.items[i].pmtu->pmtu));
    return due;
}

void edges_tick(struct edges *e, nsec_t now)
{
    /* The owner begins them in the pass that it makes because of the changes. */
    e->has_changes |= now >= handshake_due(e);
    for (size_t i = 0; i < e->peers.n; i++)
        if (e->peers.items[i].pmtu && now >= pmtu_due(&e->peers.items[i].pmtu->pmtu))
            run_pmtu(e, &e->peers.items[i], now);
}
