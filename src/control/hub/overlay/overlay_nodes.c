/*
 * overlay_nodes.c - the members of the hub's networks: what the devices and the relay know of them.
 *
 * A member is a peer of its network's device, which the engine changes, and a node of the relay's
 * router. What the hub's side of its session is, mesh/render says, as for every other node.
 */
#include "hub/overlay/overlay_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/secret.h"
#include "engine/engine.h"
#include "filter/relay.h"
#include "mesh/config/diff.h"
#include "mesh/keys/key_node.h"
#include "mesh/object/rule.h"
#include "mesh/render/render.h"
#include "net/netlink/rtnl.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/log.h"
#include "path/pmtu.h"
#include "port/device.h"
#include "port/frame_socket.h"
#include "relay/router.h"
#include "wire/ip.h"
#include "wire/path.h"

/* How old the counters of a network's device may be before they are read again, all at once. */
#define FACTS_EACH (2 * NSEC_PER_SEC)

/* Most members at one address that are told apart: one machine in several networks, say. */
#define SHARED_MAX 4

/* ---- the tables ----------------------------------------------------------------------------- */

static uint64_t key_hash(const struct overlay_network *net, const struct x25519_public *key)
{
    return hash_bytes(net->by_key.seed, key->b, sizeof(key->b));
}

/* The node with that key; NULL: there is none. Called under the overlay's lock. */
static struct overlay_node *find(const struct overlay_network *net, const struct x25519_public *key)
{
    uint64_t hash = key_hash(net, key);

    for (struct htab_link *l = htab_first(&net->by_key, hash); l; l = htab_next(l, hash)) {
        struct overlay_key *k = container_of(l, struct overlay_key, link);

        if (x25519_public_equal(&k->key, key))
            return k->node;
    }
    return NULL;
}

static uint64_t place_hash(const struct overlay *o, const struct endpoint *ep)
{
    uint64_t hash = hash_bytes(o->by_remote.seed, ep->addr.b, sizeof(ep->addr.b));

    return hash_u64(hash, (uint64_t)ep->scope << 16 | ep->port);
}

/* The member is at @ep, and nowhere else; none: nowhere. Called under the overlay's lock. */
static void place(struct overlay_node *node, const struct endpoint *ep)
{
    struct overlay *o = node->network->overlay;

    if (node->is_placed)
        htab_remove(&o->by_remote, &node->by_remote);
    /* Without memory its probes are not answered until it moves. */
    node->is_placed =
        !endpoint_is_none(ep) && htab_add(&o->by_remote, &node->by_remote, place_hash(o, ep)) == 0;
}

static struct router *router_of(const struct overlay_network *net)
{
    return relay_router(net->overlay->relay);
}

/* Puts the keys of the node's object into the table, in the place of those that it had there. Under
 * the overlay's lock. Without memory it is found by fewer. */
static int set_keys(struct overlay_node *node)
{
    struct overlay_network *net = node->network;
    struct x25519_public wanted[2] = {node->model->spec.key};
    int r = 0;

    (void)key_node_other(&node->model->spec, &wanted[1]);
    for (unsigned i = 0; i < 2; i++) {
        struct overlay_key *k = &node->keys[i];

        if (!x25519_public_is_none(&k->key))
            htab_remove(&net->by_key, &k->link);
        *k = (struct overlay_key){.node = node};
    }
    for (unsigned i = 0; r == 0 && i < 2; i++) {
        struct overlay_key *k = &node->keys[i];

        if (!x25519_public_is_none(&wanted[i]))
            r = htab_add(&net->by_key, &k->link, key_hash(net, &wanted[i]));
        if (r == 0)
            k->key = wanted[i];
    }
    return r;
}

/* The other key, NULL: it has one. */
static const struct x25519_public *other_key(const struct overlay_node *node)
{
    return x25519_public_is_none(&node->keys[1].key) ? NULL : &node->keys[1].key;
}

/* Let the listeners and the relay know the node by its present keys. It has no address yet. */
static int admit(struct overlay_node *node)
{
    struct overlay_network *net = node->network;
    struct router_node *at_router;
    int r = router_node_add(&at_router, router_of(net), net->router, &node->model->spec.key);

    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&net->overlay->lock);
    r = set_keys(node);
    if (r == 0)
        node->router = at_router;
    (void)pthread_mutex_unlock(&net->overlay->lock);
    if (r < 0)
        router_node_remove(router_of(net), at_router);
    else
        router_node_set_keys(router_of(net), at_router, &node->keys[0].key, other_key(node));
    return r;
}

/* From now on nothing is relayed for the node or to it. Idempotent. */
static void cut(struct overlay_node *node)
{
    struct overlay *o = node->network->overlay;
    struct router_node *at_router;

    (void)pthread_mutex_lock(&o->lock);
    at_router = node->router;
    node->router = NULL;
    (void)pthread_mutex_unlock(&o->lock);
    if (at_router)
        router_node_remove(router_of(node->network), at_router);
}

/* Forget a node whose peer was removed: no listener asks for it any more. */
static void forget(struct overlay_node *node)
{
    struct overlay_network *net = node->network;

    cut(node);
    (void)pthread_mutex_lock(&net->overlay->lock);
    place(node, &(struct endpoint){.port = 0});
    for (unsigned i = 0; i < 2; i++) {
        if (!x25519_public_is_none(&node->keys[i].key))
            htab_remove(&net->by_key, &node->keys[i].link);
        node->keys[i].key = (struct x25519_public){{0}};
    }
    (void)pthread_mutex_unlock(&net->overlay->lock);
}

static bool is_heard(struct overlay_node *node)
{
    struct overlay *o = node->network->overlay;
    bool is_heard;

    (void)pthread_mutex_lock(&o->lock);
    is_heard = node->handshake_at != 0;
    (void)pthread_mutex_unlock(&o->lock);
    return is_heard;
}

/* ---- peers ---------------------------------------------------------------------------------- */

/*
 * Render the hub's side of the node's session, from a snapshot that holds these two nodes only. A
 * snapshot of all n nodes would give the same, but a change of one node would render n peers.
 */
static int render_pair(struct wg_config *ret, const struct overlay_node *node, struct err *e)
{
    const struct model_network *net = node->network->model;
    struct node_hub nh = {.n_endpoints = 0};
    struct object self = {.kind = &node_kind,
        .node = {
            .key = net->public, .address4 = net->address4, .address6 = net->address6, .hub = &nh}};
    struct object member = {.kind = &node_kind, .node = node->model->spec};
    struct object *items[] = {&self, &member};
    struct snapshot s = {.network = net->spec, .nodes = {.items = items, .n = 2}};
    struct render_path way = {.mtu = node->probes.mtu};
    const struct x25519_public *other = key_node_next(&node->model->spec);
    struct render_next_key next = {.knows_one = false};
    struct render_input in = {.snapshot = &s, .paths = &way, .n_paths = 1};

    /* A name that sorts before every name that a node can have. */
    (void)snprintf(s.self, sizeof(s.self), "!");
    (void)snprintf(self.node.meta.name, sizeof(self.node.meta.name), "%s", s.self);
    memcpy(way.node, node->model->spec.meta.name, strlen(node->model->spec.meta.name) + 1);
    /* When its next key is its own, it does not call under the one before any more. */
    if (other && !x25519_public_equal(other, &node->model->spec.key)) {
        memcpy(next.node, way.node, sizeof(next.node));
        next.key = *other;
        in.next_keys = &next;
        in.n_next_keys = 1;
    }
    return render_config(ret, &in, e);
}

/* What a change of a peer does about the handshake that the hub begins. */
enum contact {
    CONTACT_AS_IS,
    CONTACT_BEGIN, /* speak to it at the address that the recontact has */
    CONTACT_END,   /* wait for it */
};

/* Give what the hub sends from its own address to @address a route of its own, whose packets have
 * at most @mtu bytes; 0: it has none, and goes by the route to the network's block. */
static void set_route(
    const struct overlay_network *net, const struct ip_addr *address, uint16_t mtu)
{
    bool v4 = ip_addr_is_v4(address);
    struct ip_prefix to = {.addr = *address, .len = v4 ? 32 : 128};
    /* The member knows itself how long its packets to the hub may be. */
    struct rtnl_route route = {.table = rtnl_table_of(device_name(net->device)),
        .metrics = {.mtu = !v4 && mtu < IP_V6_MTU_MIN ? IP_V6_MTU_MIN : mtu,
            .advmss = net->model->spec.mtu - (v4 ? IP_V4_HEADER_MIN : IP_V6_HEADER) -
                      OVERLAY__TCP_HEADER},
        .protocol = RTNL_PEER_ROUTES};
    struct netlink *nl = &net->overlay->nl;
    char text[IP_ADDR_TEXT_MAX];
    int r = mtu != 0 ? rtnl_set_route(nl, net->ifindex, &to, &route)
                     : rtnl_remove_route(nl, net->ifindex, &to, &route);

    /* As where the machine has no IPv6; the route to the block has the least. */
    if (r < 0)
        log_debug("%s: no route to %s: %s", device_name(net->device), ip_addr_format(address, text),
            strerror(-r));
}

/* The node's own routes: that the kernel's TCP and the others make their packets for its way. */
static void set_routes(struct overlay_node *node, uint16_t mtu)
{
    if (node->probes.routed == mtu)
        return;
    node->probes.routed = mtu;
    set_route(node->network, &node->model->spec.address4, mtu);
    set_route(node->network, &node->model->spec.address6, mtu);
}

/* What was measured of the way is void, because another node is meant. */
static void forget_probe_keys(struct overlay_node *node)
{
    for (unsigned i = 0; i < 2; i++) {
        if (node->probes.keys[i])
            secret_wipe(node->probes.keys[i], sizeof(*node->probes.keys[i]));
        free(node->probes.keys[i]);
        node->probes.keys[i] = NULL;
    }
}

static void forget_probes(struct overlay_node *node)
{
    forget_probe_keys(node);
    node->probes = (struct overlay_probes){.routed = node->probes.routed};
}

/* @replaces: the key that the engine has it under; NULL: its own. */
static int change_rendered(struct overlay_node *node, enum diff_op op, enum contact contact,
    const struct x25519_public *replaces, struct err *e)
{
    _cleanup_(wg_config_deinit) struct wg_config c = WG_CONFIG_NULL;
    struct diff_peer peer = {.op = op, .set_allowed = true, .set_mtu = true};
    struct diff change = {.peers = &peer, .n_peers = 1};
    int r = render_pair(&c, node, e);

    if (r != 0)
        return r;
    /* Borrowed: the rendered configuration owns it. */
    peer.peer = c.peers[0];
    peer.set_next_key = op != DIFF_OP_ADD || !x25519_public_is_none(&peer.peer.next_key);
    peer.is_replaced = replaces != NULL;
    if (replaces)
        peer.replaces = *replaces;
    peer.set_keepalive = contact != CONTACT_AS_IS;
    if (contact == CONTACT_BEGIN) {
        peer.set_endpoint = true;
        peer.peer.endpoint = node->recontact.at;
        peer.peer.keepalive = RECONTACT_KEEPALIVE_S;
    }
    r = engine_apply(node->network->engine, &change, &node->network->model->secret, e);
    if (r == 0)
        set_routes(node, node->probes.mtu != 0 ? c.peers[0].mtu : 0);
    return r;
}

/* Adds or updates the node's peer of the network's device. */
static void change_peer(struct overlay_node *node, enum diff_op op, enum contact contact)
{
    struct err e = ERR_NULL;

    if (change_rendered(node, op, contact, NULL, &e) != 0)
        log_error("node %s of network %s: %s", node->model->spec.meta.name,
            node->network->model->spec.meta.name, err_text(&e));
}

static void remove_peer(struct overlay_node *node)
{
    struct diff_peer peer = {.op = DIFF_OP_REMOVE, .peer = {.key = node->keys[0].key}};
    struct diff change = {.peers = &peer, .n_peers = 1};
    struct err e = ERR_NULL;

    if (engine_apply(node->network->engine, &change, &node->network->model->secret, &e) != 0)
        log_error("node %s of network %s: %s", node->model->spec.meta.name,
            node->network->model->spec.meta.name, err_text(&e));
}

static enum contact begin_contact(struct overlay_node *node, nsec_t now)
{
    struct list *nodes = &node->network->overlay->recontacts;

    return recontact_begin(nodes, &node->recontact, now) ? CONTACT_BEGIN : CONTACT_AS_IS;
}

/* ---- edges ---------------------------------------------------------------------------------- */

bool overlay_may_relay(const struct model_node *a, const struct model_node *b)
{
    const struct rule_end x = {.node = &a->spec};
    const struct rule_end y = {.node = &b->spec};
    const struct object *o;
    bool has_rules = false;
    size_t i = 0;

    if (!model_may_talk(a, b))
        return false;
    if (!a->spec.stock || !b->spec.stock)
        return true;
    while ((o = model_each_object(a->net, &rule_kind, &i))) {
        const struct rule *r = rule_of(o);

        has_rules |= r->job[0] == '\0';
        if (rule_names(r, &x, &y) || rule_names(r, &y, &x))
            return true;
    }
    return !has_rules && a->net->spec.isolation != ISOLATION_STRICT;
}

/* Tell the relay of an edge. The hub itself has no relayed edges. */
void overlay_change_edge(const struct model_node *left, const struct model_node *right)
{
    struct overlay_node *a = left->served->overlay;
    struct overlay_node *b = right->served->overlay;

    if (!a || !b || !a->router || !b->router)
        return;
    if (router_edge_set_blocked(
            router_of(a->network), a->router, b->router, !overlay_may_relay(left, right)) < 0)
        log_error("no memory to turn off the edge between %s and %s", left->spec.meta.name,
            right->spec.meta.name);
}

/* The way to the node and back carries inner packets of @mtu bytes; 0: that is not known. */
static void set_mtu(struct overlay_node *node, uint16_t mtu)
{
    if (node->probes.mtu == mtu)
        return;
    node->probes.mtu = mtu;
    change_peer(node, DIFF_OP_UPDATE, CONTACT_AS_IS);
}

/* Lends the members that were heard at @ep last. Return: how many. */
static unsigned nodes_at(
    struct overlay *o, const struct endpoint *ep, struct overlay_node *ret[static SHARED_MAX])
{
    uint64_t hash = place_hash(o, ep);
    unsigned n = 0;

    (void)pthread_mutex_lock(&o->lock);
    for (struct htab_link *l = htab_first(&o->by_remote, hash); l && n < SHARED_MAX;
         l = htab_next(l, hash)) {
        struct overlay_node *node = container_of(l, struct overlay_node, by_remote);

        if (endpoint_equal(&node->path.remote, ep))
            ret[n++] = node;
    }
    (void)pthread_mutex_unlock(&o->lock);
    return n;
}

/* ---- nodes come, change and go -------------------------------------------------------------- */

void overlay_add_node(struct overlay *o, const struct model_node *model, nsec_t now)
{
    struct overlay_node *node = calloc(1, sizeof(*node));
    struct endpoint at = {.port = 0};

    if (node) {
        node->network = model->net->served->overlay;
        node->model = model;
        (void)addresses_find(&o->addresses, model->net->spec.meta.name, &model->spec.key, &at);
        node->recontact.at = at;
        list_init(&node->recontact.link);
    }
    if (!node || admit(node) < 0) {
        log_error("no memory for node %s", model->spec.meta.name);
        free(node);
        return;
    }
    model->served->overlay = node;
    change_peer(node, DIFF_OP_ADD, begin_contact(node, now));
}

/* It is the same node under another key, or known by a second one, or no more. Its sessions, and
 * what is relayed for it, stay. */
static void follow(struct overlay_node *node)
{
    struct overlay *o = node->network->overlay;
    struct x25519_public before = node->keys[0].key;
    bool is_replaced = !x25519_public_equal(&before, &node->model->spec.key);
    struct router_node *at_router;
    struct err e = ERR_NULL;
    int r;

    (void)pthread_mutex_lock(&o->lock);
    r = set_keys(node);
    at_router = node->router;
    (void)pthread_mutex_unlock(&o->lock);
    forget_probe_keys(node);
    /* The file of addresses names it by its key. */
    atomic_store(&o->has_updates, true);
    if (at_router)
        router_node_set_keys(
            router_of(node->network), at_router, &node->model->spec.key, other_key(node));
    if (r == 0)
        r = change_rendered(node, DIFF_OP_UPDATE, CONTACT_AS_IS, is_replaced ? &before : NULL, &e);
    if (r != 0)
        log_error("the keys of node %s of network %s: %s", node->model->spec.meta.name,
            node->network->model->spec.meta.name, r == -ENOMEM ? "no memory" : err_text(&e));
}

void overlay_change_node(const struct model_node *model, const struct node *before)
{
    struct overlay_node *node = model->served->overlay;

    if (!node)
        return;
    if (!ip_addr_equal(&before->address4, &model->spec.address4) ||
        !ip_addr_equal(&before->address6, &model->spec.address6)) {
        set_route(node->network, &before->address4, 0);
        set_route(node->network, &before->address6, 0);
        node->probes.routed = 0;
    }
    if (x25519_public_equal(&before->key, &model->spec.key) ||
        key_node_follows(before, &model->spec)) {
        follow(node);
        return;
    }
    /* For WireGuard another key is another peer. The leases end with the old key's sessions. */
    remove_peer(node);
    forget(node);
    forget_probes(node);
    node->path = (struct udp_path){.ifindex = 0};
    node->handshake_at = 0;
    if (admit(node) < 0)
        log_error("no memory for the new key of node %s", model->spec.meta.name);
    /* To the relay a new key is a new node, with no edge off. */
    for (size_t i = 0; i < model->net->nodes.n; i++)
        if (model_node_at(model->net, i) != model)
            overlay_change_edge(model, model_node_at(model->net, i));
    change_peer(node, DIFF_OP_ADD, CONTACT_AS_IS);
}

void overlay_cut_node(const struct model_node *model)
{
    if (model->served->overlay)
        cut(model->served->overlay);
}

void overlay_remove_node(const struct model_node *model)
{
    struct overlay_node *node = model->served->overlay;

    if (!node)
        return;
    remove_peer(node);
    list_remove(&node->recontact.link);
    forget(node);
    forget_probes(node);
    set_routes(node, 0);
    free(node);
    model->served->overlay = NULL;
}

void overlay_node_is_at(const struct model_node *model, const struct endpoint *ep, nsec_t now)
{
    struct overlay_node *node = model->served->overlay;

    if (!node || is_heard(node))
        return;
    node->recontact.at = *ep;
    change_peer(node, DIFF_OP_UPDATE, begin_contact(node, now));
}

/* ---- what is heard of them ------------------------------------------------------------------ */

void overlay__note_path(struct overlay_network *net, const struct x25519_public *key,
    const struct udp_path *path, nsec_t handshake_at)
{
    struct overlay_node *node;

    (void)pthread_mutex_lock(&net->overlay->lock);
    node = find(net, key);
    if (node) {
        if (handshake_at != 0)
            node->handshake_at = handshake_at;
        if (!endpoint_equal(&node->path.remote, &path->remote)) {
            atomic_store(&net->overlay->has_updates, true);
            place(node, &path->remote);
        }
        node->path = *path;
        if (node->router)
            router_node_set_address(router_of(net), node->router, &path->remote, &path->local);
    }
    (void)pthread_mutex_unlock(&net->overlay->lock);
}

bool overlay__is_leased(
    struct overlay_network *net, const struct x25519_public *key, uint32_t index, nsec_t now)
{
    struct overlay_node *node;
    bool is_leased;

    (void)pthread_mutex_lock(&net->overlay->lock);
    node = find(net, key);
    is_leased = node && node->router && router_is_leased(router_of(net), node->router, index, now);
    (void)pthread_mutex_unlock(&net->overlay->lock);
    return is_leased;
}

static void read_counters(struct overlay_network *net, nsec_t now)
{
    _cleanup_(wg_config_deinit) struct wg_config config = WG_CONFIG_NULL;

    if (net->facts_at != 0 && now < net->facts_at + FACTS_EACH)
        return;
    net->facts_at = now;
    if (engine_get(net->engine, &config, NULL) != 0)
        return;
    for (size_t i = 0; i < config.n_peers; i++) {
        const struct wg_peer *peer = &config.peers[i];
        struct overlay_node *node;

        (void)pthread_mutex_lock(&net->overlay->lock);
        node = find(net, &peer->key);
        (void)pthread_mutex_unlock(&net->overlay->lock);
        if (!node)
            continue;
        node->rx_bytes = peer->facts.rx_bytes;
        node->tx_bytes = peer->facts.tx_bytes;
    }
}

bool overlay_read_facts(const struct model_node *model, nsec_t now, struct overlay_facts *ret)
{
    const struct overlay_node *node = model->served->overlay;
    struct overlay *o;

    if (!node)
        return false;
    o = node->network->overlay;
    read_counters(node->network, now);
    (void)pthread_mutex_lock(&o->lock);
    *ret = (struct overlay_facts){.endpoint = node->path.remote,
        .handshake_at = node->handshake_at,
        .rx_bytes = node->rx_bytes,
        .tx_bytes = node->tx_bytes};
    (void)pthread_mutex_unlock(&o->lock);
    return true;
}

bool overlay_read_handshake(const struct model_node *model, nsec_t *ret_at)
{
    const struct overlay_node *node = model->served->overlay;
    struct overlay *o;

    if (!node)
        return false;
    o = node->network->overlay;
    (void)pthread_mutex_lock(&o->lock);
    *ret_at = node->handshake_at;
    (void)pthread_mutex_unlock(&o->lock);
    return true;
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* Where the network's nodes are; or, while they have not been heard yet, where they were. */
static json_t *encode_network(struct overlay_network *net)
{
    struct overlay *o = net->overlay;
    json_t *all = json_object();

    for (size_t i = 0; i < net->model->nodes.n; i++) {
        struct overlay_node *node = model_node_at(net->model, i)->served->overlay;
        struct endpoint ep;
        bool is_stream;

        if (!node)
            continue;
        (void)pthread_mutex_lock(&o->lock);
        ep = node->path.remote;
        (void)pthread_mutex_unlock(&o->lock);
        if (endpoint_is_none(&ep) &&
            !addresses_find(&o->addresses, net->model->spec.meta.name, &node->keys[0].key, &ep))
            continue;
        /* After the next start of the hub streams have other addresses. */
        is_stream = ip_addr_is_v4(&ep.addr) && ep.addr.b[12] == 127;
        if (!is_stream)
            addresses_add(all, &node->keys[0].key, &ep);
    }
    return all;
}

void overlay__tick_nodes(struct overlay *o, nsec_t now)
{
    struct overlay_network *net;
    struct overlay_node *node;
    struct overlay_node *tmp;
    json_t *all;

    list_foreach_safe(node, tmp, &o->recontacts, recontact.link) {
        if (!recontact_is_over(&node->recontact, is_heard(node), now))
            continue;
        list_remove(&node->recontact.link);
        change_peer(node, DIFF_OP_UPDATE, CONTACT_END);
    }
    if (!addresses_may_write(&o->addresses, now) || !atomic_exchange(&o->has_updates, false))
        return;
    all = json_object();
    list_foreach(net, &o->networks, siblings)
        (void)json_object_set_new(all, net->model->spec.meta.name, encode_network(net));
    /* If that fails, it is tried again when the next node has another address. */
    addresses_write(&o->addresses, all, now);
}

/* ---- which nodes the hub speaks to first ----------------------------------------------------- */

bool recontact_begin(struct list *nodes, struct recontact_node *node, nsec_t now)
{
    if (endpoint_is_none(&node->at))
        return false;
    node->ends_at = now + RECONTACT_FOR;
    list_remove(&node->link);
    list_add_tail(nodes, &node->link);
    return true;
}

bool recontact_is_over(const struct recontact_node *node, bool is_heard, nsec_t now)
{
    return is_heard || now >= node->ends_at;
}

/* ---- answers to what members measure of their way to the hub --------------------------------- */

/* Frames taken in one turn of the loop. */
#define FRAMES_PER_TURN 256

/* Of one member: a search sends up to a dozen at once, and some rounds of it follow each other. */
#define EACH_MEMBER  (NSEC_PER_SEC / 16)
#define BURST_MEMBER 64

/* Of all: each costs the loop some 20 us, and the data threads a moment: DF is set for all. */
#define EACH_OF_ALL  (NSEC_PER_SEC / 2000)
#define BURST_OF_ALL 2000

/* The keys of frames under key number @i of the node; NULL: it has none, or there is no memory. */
static const struct path_keys *keys_of(struct overlay_node *node, unsigned i)
{
    const struct model_network *model = node->network->model;
    const struct x25519_public *public = &node->keys[i].key;
    struct path_keys *keys = node->probes.keys[i];

    if (keys || x25519_public_is_none(public))
        return keys;
    keys = malloc(sizeof(*keys));
    if (!keys || !path_keys_derive(keys, &model->secret, &model->public, public)) {
        free(keys);
        return NULL;
    }
    node->probes.keys[i] = keys;
    return keys;
}

/* As long as the probe, and the same way back. */
static void answer(struct probe_answers *pa, const struct path_keys *keys,
    struct probe_answers_frame *msg, const struct path_frame *probe, size_t len)
{
    struct path_frame ack = {.kind = PATH_FRAME_PROBE_ACK,
        .size = (uint16_t)len,
        .transaction = probe->transaction,
        .session = pa->run,
        .echo = probe->session,
        .sequence = ++pa->sequence,
        .clock = probe->clock};
    struct rng rng = rng_kernel();
    struct xchacha_nonce nonce;

    rng_fill(&rng, nonce.b, sizeof(nonce.b));
    if (!path_frame_seal(keys, &ack, &nonce, len, msg->frame))
        return;
    msg->header.flags = FRAME_SOCKET_DONT_FRAGMENT;
    /* One that finds no room is lost, as it may be on its way. */
    (void)send(pa->fd, msg, sizeof(msg->header) + len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A frame with that member's tag, of these keys. */
static void take_probe(struct probe_answers *pa, struct overlay_node *node,
    const struct path_keys *keys, struct probe_answers_frame *msg, size_t len, nsec_t now)
{
    struct path_frame probe;

    if (!rate_take(&node->probes.rate, now, EACH_MEMBER, BURST_MEMBER) ||
        !rate_take(&pa->rate, now, EACH_OF_ALL, BURST_OF_ALL) ||
        !path_frame_open(keys, msg->frame, len, &probe) || probe.kind != PATH_FRAME_PROBE ||
        (probe.flags & PATH_FRAME_WHOLE) == 0)
        return;
    /* What the member says that it has found; never by an older frame that somebody has kept. */
    if (probe.sequence > node->probes.sequence) {
        node->probes.sequence = probe.sequence;
        if (probe.size == 0 || (probe.size >= PMTU_INNER_MIN && probe.size <= PATH_FRAME_MAX))
            set_mtu(node, probe.size);
    }
    answer(pa, keys, msg, &probe, len);
}

void probe_answers__take(
    struct probe_answers *pa, struct probe_answers_frame *msg, size_t len, nsec_t now)
{
    struct endpoint from = {.port = msg->header.port};
    struct overlay_node *nodes[SHARED_MAX];
    struct path_tag tag;
    unsigned n;

    if (!path_frame_read_tag(msg->frame, len, &tag))
        return;
    memcpy(from.addr.b, msg->header.remote, sizeof(from.addr.b));
    if (ip_addr_is_link_local(&from.addr) && !ip_addr_is_v4(&from.addr))
        from.scope = msg->header.ifindex;
    n = nodes_at(pa->overlay, &from, nodes);
    for (unsigned i = 0; i < 2 * n; i++) {
        const struct path_keys *keys = keys_of(nodes[i / 2], i % 2);

        if (keys && secret_equal(keys->receive_tag.b, tag.b, sizeof(tag.b))) {
            take_probe(pa, nodes[i / 2], keys, msg, len, now);
            return;
        }
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct probe_answers *pa = poll->data;
    struct probe_answers_frame msg;
    nsec_t now = clock_now();

    for (unsigned i = 0; i < FRAMES_PER_TURN; i++) {
        ssize_t n = recv(pa->fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);

        if (n <= 0)
            return;
        if ((size_t)n > sizeof(msg.header) && (size_t)n <= sizeof(msg))
            probe_answers__take(pa, &msg, (size_t)n - sizeof(msg.header), now);
    }
}

int probe_answers_open(struct probe_answers *pa, struct overlay *o, struct err *e)
{
    struct rng rng = rng_kernel();
    int r;

    *pa = (struct probe_answers){.overlay = o, .fd = -1, .run = rng_u64(&rng) | 1};
    r = frame_socket_join(&pa->frames, o->port, &pa->fd, e);
    if (r < 0)
        return r;
    (void)uv_poll_init(o->loop, &pa->poll, pa->fd);
    pa->poll.data = pa;
    (void)uv_poll_start(&pa->poll, UV_READABLE, on_readable);
    return 0;
}

void probe_answers_close(struct probe_answers *pa)
{
    if (!pa->frames)
        return;
    (void)uv_poll_stop(&pa->poll);
    uv_close((uv_handle_t *)&pa->poll, NULL);
    pa->frames = frame_socket_free(pa->frames);
    (void)close(pa->fd);
    pa->fd = -1;
}

/* ---- the file of addresses ------------------------------------------------------------------- */

#define FILE_NAME  "addresses.json"
#define FILE_MAX   (64u << 20)
#define WRITE_EACH (2 * NSEC_PER_SEC)

/* The file is long when thousands of nodes are in it, and while machines join, there is always
 * something new: so many bytes a second are written at most. */
#define WRITE_RATE (50 << 10)

void addresses_open(struct addresses *a, const char *state_dir)
{
    _cleanup_(freep) char *path = NULL;
    _cleanup_(freep) char *text = NULL;
    struct err e = ERR_NULL;
    json_error_t why;
    int r;

    if (asprintf(&path, "%s/" FILE_NAME, state_dir) < 0) {
        path = NULL;
        return;
    }
    r = statefile_read(path, FILE_MAX, &text, NULL, &e);
    if (r < 0) {
        log_warning("%s; nodes come back by themselves, more slowly", err_text(&e));
        return;
    }
    if (r == 0) {
        a->known = json_loads(text, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(a->known)) {
            log_warning("%s, line %d: %s; it is left as it is, and nodes come back by themselves, "
                        "more slowly",
                path, why.line, a->known ? "not an object" : why.text);
            return;
        }
    }
    a->path = TAKE_PTR(path);
}

void addresses_close(struct addresses *a)
{
    json_decref(a->known);
    a->known = NULL;
    free(a->path);
    a->path = NULL;
}

bool addresses_find(const struct addresses *a, const char *network, const struct x25519_public *key,
    struct endpoint *ret)
{
    const json_t *known = json_object_get(a->known, network);
    char name[X25519_BASE64_MAX];
    const char *text = json_string_value(json_object_get(known, x25519_public_format(key, name)));

    return text && endpoint_parse(ret, text, NULL) == 0;
}

bool addresses_may_write(const struct addresses *a, nsec_t now)
{
    return a->path && now >= a->write_at;
}

void addresses_add(json_t *network, const struct x25519_public *key, const struct endpoint *at)
{
    char name[X25519_BASE64_MAX];
    char text[ENDPOINT_TEXT_MAX];

    (void)json_object_set_new(
        network, x25519_public_format(key, name), json_string(endpoint_format(at, text)));
}

void addresses_write(struct addresses *a, json_t *all, nsec_t now)
{
    _cleanup_(freep) char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    struct err e = ERR_NULL;

    json_decref(all);
    a->write_at = now + nsec_max(WRITE_EACH, (text ? strlen(text) : 0) * NSEC_PER_SEC / WRITE_RATE);
    if (!text || statefile_replace(a->path, text, strlen(text), 0600, &e) < 0)
        log_limited(&a->limit, now, LOG_LEVEL_WARNING, "%s",
            text ? err_text(&e) : "no memory to remember addresses");
}
