/* render.c - see render.h. */
#include "render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "mesh/object/subnets.h"
#include "path/path.h"
#include "wire/wg.h"

const char render_why_key[] =
    "the edge pins another public key than the node has, so the two do not talk";

const struct node *render_hub(const struct snapshot *s)
{
    for (size_t i = 0; i < s->nodes.n; i++)
        if (s->nodes.items[i]->node.hub)
            return &s->nodes.items[i]->node;
    return NULL;
}

const struct node *render_relay(const struct render_input *in)
{
    const struct node *named = in->relay ? snapshot_find_node(in->snapshot, in->relay) : NULL;

    return named && named->hub ? named : render_hub(in->snapshot);
}

static struct ip_prefix whole_address(const struct ip_addr *a)
{
    return (struct ip_prefix){.addr = *a, .len = ip_addr_is_v4(a) ? 32 : 128};
}

static int compare_path(const void *name, const void *path)
{
    return strcmp(name, ((const struct render_path *)path)->node);
}

static const struct render_path *find_any(const struct render_input *in, const char *node)
{
    if (in->n_paths == 0)
        return NULL;
    return bsearch(node, in->paths, in->n_paths, sizeof(*in->paths), compare_path);
}

const struct render_path *render_find_path(const struct render_input *in, const char *node)
{
    const struct render_path *found = find_any(in, node);

    return found && !endpoint_is_none(&found->endpoint) ? found : NULL;
}

/* Where somebody has fixed that packets to @peer go; NULL: nowhere. */
static const struct endpoint *pinned_endpoint(const struct snapshot *s, const struct node *peer)
{
    const struct edge_pin *pin =
        mesh_edge_pin(snapshot_find_edge(s, s->self, peer->meta.name), peer->meta.name);

    return pin && !endpoint_is_none(&pin->endpoint) ? &pin->endpoint : NULL;
}

/* Is another key fixed for either end than it has? */
static bool refuses_keys(
    const struct snapshot *s, const struct mesh_edge *edge, const struct node *peer)
{
    unsigned i = strcmp(edge->nodes[0], peer->meta.name) == 0 ? 0 : 1;

    return mesh_edge_refuses_key(edge, i, &peer->key) ||
           mesh_edge_refuses_key(edge, 1 - i, &snapshot_self(s)->key);
}

/* Decides about an edge between two nodes of which none is a hub. */
static struct render_decision decide_edge(
    const struct snapshot *s, const struct node *peer, bool found)
{
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, peer->meta.name);
    enum edge_path path = edge ? edge->path : EDGE_PATH_AUTO;

    if (edge && path != EDGE_PATH_OFF && refuses_keys(s, edge, peer))
        return (struct render_decision){RENDER_ROUTE_NONE, render_why_key};
    if (path != EDGE_PATH_OFF && pinned_endpoint(s, peer))
        return (struct render_decision){RENDER_ROUTE_DIRECT, "its endpoint is pinned"};
    switch (path) {
    case EDGE_PATH_OFF:
        return (struct render_decision){RENDER_ROUTE_NONE, "the edge is switched off"};
    case EDGE_PATH_RELAY:
        return (struct render_decision){RENDER_ROUTE_RELAY, "the edge is set to relay"};
    case EDGE_PATH_DIRECT:
        if (found)
            return (struct render_decision){RENDER_ROUTE_DIRECT, ""};
        return (struct render_decision){RENDER_ROUTE_NONE,
            "the edge is set to direct and no direct path has been found; set it to auto to have "
            "it relayed meanwhile",
            .is_open = true};
    case EDGE_PATH_AUTO:
    case EDGE_PATH_N:
        break;
    }
    if (s->network.topology == TOPOLOGY_HUB && !peer->relay && !snapshot_self(s)->relay)
        return (struct render_decision){RENDER_ROUTE_RELAY,
            "the network's topology is hub, which sends every pair through it; auto would allow "
            "direct paths"};
    if (found)
        return (struct render_decision){RENDER_ROUTE_DIRECT, ""};
    if (peer->stock)
        return (struct render_decision){RENDER_ROUTE_RELAY,
            "this peer is a stock WireGuard, which looks for no paths, so the hub relays: with the "
            "weft agent it would"};
    if (!peer->side)
        return (struct render_decision){RENDER_ROUTE_RELAY,
            "this peer does not say where it may be reached, as a stock WireGuard does not, so the "
            "hub relays: run the weft agent on it"};
    return (struct render_decision){
        RENDER_ROUTE_RELAY, "no direct path has been found yet", .is_open = true};
}

struct render_decision render_decide(
    const struct snapshot *s, const struct node *peer, const struct render_path *found)
{
    const struct node *self = snapshot_self(s);

    if (self->hub || peer->hub)
        return (struct render_decision){RENDER_ROUTE_DIRECT, ""};
    return decide_edge(s, peer, found && found->via[0] == '\0');
}

/* The hub's public endpoint: the one that was found to work, else the first that it names. */
static struct endpoint hub_endpoint(const struct render_input *in, const struct node *hub)
{
    const struct render_path *found = render_find_path(in, hub->meta.name);

    return found ? found->endpoint : hub->hub->endpoints[0];
}

/* WireGuard pads a packet to a multiple of 16 bytes, so the largest one has to be such a multiple.
 */
static uint16_t fit_padding(uint16_t mtu)
{
    return (uint16_t)(mtu & ~(WG_PADDING - 1));
}

static uint16_t interface_mtu(const struct render_input *in)
{
    uint16_t mtu = in->snapshot->network.mtu;

    return in->link_mtu > mtu ? in->link_mtu : mtu;
}

static uint16_t at_most(const struct render_input *in, uint16_t mtu)
{
    uint16_t most = interface_mtu(in);

    return fit_padding(mtu < most ? mtu : most);
}

/* The MTU of the routes to the network's blocks. */
static uint16_t route_mtu(const struct render_input *in)
{
    bool is_less = in->link_mtu != 0 && in->link_mtu < RENDER_MTU_SAFE;

    return fit_padding(is_less ? in->link_mtu : RENDER_MTU_SAFE);
}

/* Is what was @found what packets to @peer go by? */
static bool is_taken(
    const struct render_input *in, const struct node *peer, const struct render_path *found)
{
    bool is_relayed = endpoint_is_none(&found->endpoint) || found->via[0] != '\0';

    if (peer->hub || snapshot_self(in->snapshot)->hub)
        return true;
    if (pinned_endpoint(in->snapshot, peer))
        return false;
    return render_decide(in->snapshot, peer, render_find_path(in, peer->meta.name)).route ==
           (is_relayed ? RENDER_ROUTE_RELAY : RENDER_ROUTE_DIRECT);
}

uint16_t render_mtu(const struct render_input *in, const struct node *peer)
{
    const struct render_path *found = find_any(in, peer->meta.name);

    if (found && found->mtu != 0 && is_taken(in, peer, found))
        return at_most(in, found->mtu);
    return route_mtu(in);
}

/*
 * What a peer that does not measure is asked for. A hub is told what reaches it, so it is asked for
 * as much as it is sent. A stock WireGuard is told nothing: connections that have begun would stand
 * still when its way becomes narrower, so it is asked for what every path carries.
 */
static uint16_t mss_mtu(
    const struct render_input *in, const struct node *self, const struct node *peer)
{
    if (self->hub || (!peer->hub && !peer->stock && peer->side))
        return 0;
    return peer->hub ? render_mtu(in, peer) : route_mtu(in);
}

static void set_mtu(struct wg_peer *p, const struct render_input *in, const struct node *self,
    const struct node *node)
{
    p->mtu = render_mtu(in, node);
    p->mss_mtu = mss_mtu(in, self, node);
}

uint16_t render_keepalive(const struct render_input *in)
{
    const struct path_side *side = snapshot_self(in->snapshot)->side;
    uint16_t fixed = in->snapshot->network.keepalive;

    if (fixed != NETWORK_KEEPALIVE_AUTO)
        return fixed;
    if (in->keepalive != 0)
        return in->keepalive;
    if (side && side->keepalive >= NSEC_PER_SEC)
        return (uint16_t)nsec_min(side->keepalive / NSEC_PER_SEC, NETWORK_KEEPALIVE_MAX);
    return NETWORK_KEEPALIVE_UNKNOWN;
}

static void set_path(struct wg_peer *p, const struct render_input *in, const struct node *self,
    const struct node *relay, const struct node *node, enum render_route route)
{
    const struct render_path *found = render_find_path(in, node->meta.name);
    const struct endpoint *pinned = pinned_endpoint(in->snapshot, node);

    if (self->hub) /* Nodes come to a hub, from wherever their NAT puts them. */
        return;
    if (node->hub) {
        p->endpoint = hub_endpoint(in, node);
        p->keepalive = render_keepalive(in);
    } else if (route == RENDER_ROUTE_DIRECT && pinned) {
        /* Nobody looks after this path: what NATs there are, is not known. */
        p->endpoint = *pinned;
        p->keepalive = render_keepalive(in);
    } else if (route == RENDER_ROUTE_RELAY) {
        p->endpoint = found && found->via[0] != '\0' ? found->endpoint : hub_endpoint(in, relay);
    } else if (route == RENDER_ROUTE_DIRECT) {
        p->endpoint = found->endpoint;
        p->keepalive = found->is_standby ? render_keepalive(in) : found->keepalive;
    }
}

static bool is_aes_faster(const struct node_speeds *s)
{
    return s->mb_per_s[AEAD_CIPHER_AES256GCM] > s->mb_per_s[AEAD_CIPHER_CHACHA20POLY1305];
}

/* The table of docs/wire/aes.md. */
static struct noise_choice choose_cipher(
    enum cipher wanted, const struct node_speeds *self, const struct node_speeds *peer)
{
    static const struct noise_choice wireguard = NOISE_CHOICE_NULL;
    bool both = node_speeds_known(self) && node_speeds_known(peer);
    struct noise_choice choice = {
        .wanted = both ? AEAD_CIPHER_AES256GCM : AEAD_CIPHER_CHACHA20POLY1305};

    switch (wanted) {
    case CIPHER_AUTO:
        if (!node_speeds_known(self))
            return wireguard;
        if (!both || !is_aes_faster(self) || !is_aes_faster(peer))
            choice.wanted = AEAD_CIPHER_CHACHA20POLY1305;
        choice.takes_any = true;
        return choice;
    case CIPHER_AES256GCM:
        return choice;
    case CIPHER_CHACHA20POLY1305:
    case CIPHER_N:
        break;
    }
    return wireguard;
}

/* Does a node that comes before number @index have that very route? */
static bool is_routed_before(const struct snapshot *s, size_t index, const struct ip_prefix *route)
{
    for (size_t i = 0; i < index; i++) {
        const struct node *n = &s->nodes.items[i]->node;

        if (n->routes && subnets_has(n->routes, route))
            return true;
    }
    return false;
}

bool render_has_route(const struct snapshot *s, const struct node *peer, unsigned i)
{
    const struct ip_prefix *route = &peer->routes->items[i];
    size_t index = 0;

    if (peer->hub || snapshot_self(s)->hub)
        return false;
    if (subnets_check_network(route, &s->network, NULL) < 0)
        return false;
    while (index < s->nodes.n && &s->nodes.items[index]->node != peer)
        index++;
    return !is_routed_before(s, index, route);
}

static int allow_routes(struct wg_peer *p, const struct snapshot *s, const struct node *node)
{
    int r = 0;

    for (unsigned i = 0; node->routes && r == 0 && i < node->routes->n; i++)
        if (render_has_route(s, node, i))
            r = wg_peer_allow(p, &node->routes->items[i]);
    return r;
}

/* Of what is sent to @peer, as the edge says; 0: none. */
static uint64_t edge_rate(const struct snapshot *s, const struct node *peer)
{
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, peer->meta.name);

    return edge ? edge->rate : 0;
}

static int add_peer(struct wg_config *c, const struct render_input *in, const struct node *self,
    const struct node *relay, const struct node *node)
{
    const struct render_path *found = render_find_path(in, node->meta.name);
    struct render_decision decision = render_decide(in->snapshot, node, found);
    struct wg_peer p = {
        .key = node->key,
        .cipher = choose_cipher(in->snapshot->network.cipher, &self->speeds, &node->speeds),
    };
    struct ip_prefix a4 = whole_address(&node->address4);
    struct ip_prefix a6 = whole_address(&node->address6);
    int r;

    if (decision.route == RENDER_ROUTE_NONE)
        return 0;
    if (in->pins && node->side && !node->hub)
        p.pin = decision.route == RENDER_ROUTE_RELAY ? PIN_SESSION : PIN_FIXED;
    p.is_relayed = in->relays && !node->hub;
    p.rate = edge_rate(in->snapshot, node);
    set_path(&p, in, self, relay, node, decision.route);
    set_mtu(&p, in, self, node);
    r = wg_peer_allow(&p, &a4);
    if (r == 0)
        r = wg_peer_allow(&p, &a6);
    if (r == 0)
        r = allow_routes(&p, in->snapshot, node);
    if (r == 0)
        return wg_config_add(c, &p);
    wg_peer_deinit(&p);
    return r;
}

static int compare_prefixes(const void *a, const void *b)
{
    return ip_prefix_compare(a, b);
}

/* WireGuard gives a shared block to whichever peer comes last: refuse instead. */
static int check_addresses(const struct snapshot *s, struct err *e)
{
    _cleanup_(freep) struct ip_prefix *all = calloc(s->nodes.n * 2, sizeof(*all));
    char text[IP_ADDR_TEXT_MAX];
    size_t n = 0;

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < s->nodes.n; i++) {
        all[n++] = whole_address(&s->nodes.items[i]->node.address4);
        all[n++] = whole_address(&s->nodes.items[i]->node.address6);
    }
    qsort(all, n, sizeof(*all), compare_prefixes);
    for (size_t i = 1; i < n; i++)
        if (ip_prefix_equal(&all[i - 1], &all[i]))
            return err_set(
                e, -EINVAL, "two nodes have the address %s", ip_addr_format(&all[i].addr, text));
    return 0;
}

/* Each address lies in its network's block, which becomes the interface's connected route. */
static void set_interface(
    struct wg_config *c, const struct render_input *in, const struct node *self)
{
    const struct network *n = &in->snapshot->network;

    c->public = self->key;
    c->addresses[0] = (struct ip_prefix){.addr = self->address4, .len = n->cidr4.len};
    c->addresses[1] = (struct ip_prefix){.addr = self->address6, .len = n->cidr6.len};
    c->n_addresses = 2;
    c->routes[0] = n->cidr4;
    c->routes[1] = n->cidr6;
    c->n_routes = 2;
    c->mtu = interface_mtu(in);
    c->link_mtu = fit_padding(in->link_mtu);
    c->route_mtu = route_mtu(in);
    c->listen_port = in->listen_port;
    c->is_relay = in->relays;
    if (self->rates)
        c->rates = *self->rates;
    c->shows_dscp = n->shows_dscp || self->shows_dscp;
}

int render_config(struct wg_config *ret, const struct render_input *in, struct err *e)
{
    _cleanup_(wg_config_deinit) struct wg_config c = WG_CONFIG_NULL;
    const struct snapshot *s = in->snapshot;
    const struct node *self = snapshot_self(s);
    const struct node *relay = render_relay(in);
    int r;

    if (!self || !relay)
        return err_set(
            e, -EINVAL, "the snapshot of \"%s\" has no %s", s->self, self ? "hub" : "such node");
    r = check_addresses(s, e);
    set_interface(&c, in, self);
    for (size_t i = 0; r == 0 && i < s->nodes.n; i++)
        if (&s->nodes.items[i]->node != self)
            r = add_peer(&c, in, self, relay, &s->nodes.items[i]->node);
    if (r == 0)
        r = wg_config_sort(&c, e);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct wg_config)WG_CONFIG_NULL;
    return 0;
}
