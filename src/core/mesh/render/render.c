/* render.c - see render.h. */
#include "mesh/render/render.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/text.h"
#include "mesh/config/wg_config.h"
#include "mesh/object/subnets.h"
#include "mesh/snapshot/snapshot.h"
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

static int compare_next_key(const void *name, const void *next)
{
    return strcmp(name, ((const struct render_next_key *)next)->node);
}

static void set_next_key(struct wg_peer *p, const struct render_input *in, const char *node)
{
    const struct render_next_key *next = in->n_next_keys == 0
                                             ? NULL
                                             : bsearch(node, in->next_keys, in->n_next_keys,
                                                   sizeof(*in->next_keys), compare_next_key);

    if (!next)
        return;
    p->next_key = next->key;
    p->initiate_with_current = next->knows_one;
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
    uint16_t most = interface_mtu(in);

    if (found && found->mtu != 0 && is_taken(in, peer, found))
        return fit_padding(found->mtu < most ? found->mtu : most);
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

/*
 * Does this node send what is for route number @i of @peer there? Not into a block of the network's
 * own, and of two nodes that have the same one only to the first by name: WireGuard would give it
 * to whichever comes last. A hub admits neither.
 */
static bool has_route(const struct snapshot *s, const struct node *peer, unsigned i)
{
    const struct ip_prefix *route = &peer->routes->items[i];

    if (peer->hub || snapshot_self(s)->hub)
        return false;
    if (subnets_check_network(route, &s->network, NULL) < 0)
        return false;
    for (size_t k = 0; k < s->nodes.n && &s->nodes.items[k]->node != peer; k++) {
        const struct node *before = &s->nodes.items[k]->node;

        if (before->routes && subnets_has(before->routes, route))
            return false;
    }
    return true;
}

static int add_peer(struct wg_config *c, const struct render_input *in, const struct node *self,
    const struct node *relay, const struct node *node)
{
    const struct snapshot *s = in->snapshot;
    const struct render_path *found = render_find_path(in, node->meta.name);
    struct render_decision decision = render_decide(s, node, found);
    const struct mesh_edge *edge = snapshot_find_edge(s, s->self, node->meta.name);
    struct wg_peer p = {
        .key = node->key,
        .cipher = choose_cipher(s->network.cipher, &self->speeds, &node->speeds),
        .rate = edge ? edge->rate : 0,
    };
    struct ip_prefix a4 = whole_address(&node->address4);
    struct ip_prefix a6 = whole_address(&node->address6);
    int r;

    if (decision.route == RENDER_ROUTE_NONE)
        return 0;
    if (in->pins && node->side && !node->hub)
        p.pin = decision.route == RENDER_ROUTE_RELAY ? PIN_SESSION : PIN_FIXED;
    p.is_relayed = in->relays && !node->hub;
    set_path(&p, in, self, relay, node, decision.route);
    set_next_key(&p, in, node->meta.name);
    p.mtu = render_mtu(in, node);
    p.mss_mtu = mss_mtu(in, self, node);
    r = wg_peer_allow(&p, &a4);
    if (r == 0)
        r = wg_peer_allow(&p, &a6);
    for (unsigned i = 0; r == 0 && node->routes && i < node->routes->n; i++)
        if (has_route(s, node, i))
            r = wg_peer_allow(&p, &node->routes->items[i]);
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
    c->next_public = in->next_public;
    c->initiate_with_next = in->initiate_with_next;
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

/* ---- as text ---- */

/* A text that is being made. */
struct quick_writer {
    struct str out;
    const struct wg_quick_style *style;
    const char *equals;           /* between a name and its value */
    const char *comma;            /* between two values */
    const struct node_hub *named; /* whose first endpoint is written as its name; NULL: nobody's */
};

static struct quick_writer quick_writer_make(const struct wg_quick_style *style)
{
    return (struct quick_writer){.out = STR_NULL,
        .style = style,
        .equals = style->is_compact ? "=" : " = ",
        .comma = style->is_compact ? "," : ", "};
}

static void write_text(struct quick_writer *w, const char *name, const char *value)
{
    str_addf(&w->out, "%s%s%s\n", name, w->equals, value);
}

static void write_number(struct quick_writer *w, const char *name, unsigned value)
{
    if (value)
        str_addf(&w->out, "%s%s%u\n", name, w->equals, value);
}

static void write_prefixes(
    struct quick_writer *w, const char *name, const struct ip_prefix *prefixes, size_t n)
{
    char text[IP_PREFIX_TEXT_MAX];

    if (n > 0)
        str_addf(&w->out, "%s%s", name, w->equals);
    for (size_t i = 0; i < n; i++)
        str_addf(&w->out, "%s%s", i == 0 ? "" : w->comma, ip_prefix_format(&prefixes[i], text));
    if (n > 0)
        str_add(&w->out, "\n");
}

static void write_interface(
    struct quick_writer *w, const struct wg_config *c, const struct snapshot *s)
{
    char key[X25519_BASE64_MAX];

    if (!w->style->is_compact)
        str_addf(&w->out, "# %s in the network %s\n", s->self, s->network.meta.name);
    str_add(&w->out, "[Interface]\n");
    if (w->style->secret) {
        x25519_secret_write(w->style->secret, key);
        write_text(w, "PrivateKey", key);
        secret_wipe(key, sizeof(key));
    }
    write_prefixes(w, "Address", c->addresses, c->n_addresses);
    write_number(w, "MTU", c->mtu);
    write_number(w, "ListenPort", c->listen_port);
    if (c->fwmark)
        str_addf(&w->out, "FwMark%s0x%x\n", w->equals, c->fwmark);
    if (w->style->secret)
        return;
    /* Keepalives come after the key, not in the peers' sections: WireGuard sends the first one at
     * once, and a handshake that fails because there is no key yet is tried again only after five
     * seconds. */
    str_addf(&w->out, "PostUp = wg set %%i private-key %s\n", w->style->key_file);
    for (size_t i = 0; i < c->n_peers; i++)
        if (c->peers[i].keepalive)
            str_addf(&w->out, "PostUp = wg set %%i peer %s persistent-keepalive %u\n",
                x25519_public_format(&c->peers[i].key, key), c->peers[i].keepalive);
}

static void write_peer(
    struct quick_writer *w, const struct wg_peer *p, const char *name, bool with_keepalive)
{
    char key[X25519_BASE64_MAX];
    char psk[BASE64_SIZE(sizeof(p->psk.b))];
    char endpoint[ENDPOINT_TEXT_MAX];
    bool is_named = w->named && endpoint_equal(&p->endpoint, &w->named->endpoints[0]);

    if (!w->style->is_compact && w->out.len > 0)
        str_add(&w->out, "\n");
    str_add(&w->out, "[Peer]\n");
    if (!w->style->is_compact)
        str_addf(&w->out, "# %s\n", name);
    write_text(w, "PublicKey", x25519_public_format(&p->key, key));
    if (!secret_is_zero(p->psk.b, sizeof(p->psk.b))) {
        base64_encode(p->psk.b, sizeof(p->psk.b), psk);
        write_text(w, "PresharedKey", psk);
        secret_wipe(psk, sizeof(psk));
    }
    write_prefixes(w, "AllowedIPs", p->allowed, p->n_allowed);
    if (!endpoint_is_none(&p->endpoint))
        write_text(
            w, "Endpoint", is_named ? w->named->names[0] : endpoint_format(&p->endpoint, endpoint));
    if (with_keepalive)
        write_number(w, "PersistentKeepalive", p->keepalive);
}

static void write_peers(struct quick_writer *w, const struct wg_config *c, const struct snapshot *s,
    bool with_keepalive)
{
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        const struct wg_peer *p = wg_config_find(c, &node->key);

        if (p)
            write_peer(w, p, node->meta.name, with_keepalive);
    }
}

char *wg_quick_format(const struct wg_config *c, const struct snapshot *s,
    const struct wg_quick_style *style, size_t *ret_len)
{
    struct quick_writer w = quick_writer_make(style);
    const struct node *hub = render_hub(s);

    if (hub && hub->hub->n_names > 0)
        w.named = hub->hub;
    write_interface(&w, c, s);
    write_peers(&w, c, s, style->secret != NULL);
    return str_take(&w.out, ret_len);
}

char *wg_quick_format_peers(const struct wg_config *c, const struct snapshot *s, size_t *ret_len)
{
    static const struct wg_quick_style style = {.is_compact = false};
    struct quick_writer w = quick_writer_make(&style);

    write_peers(&w, c, s, true);
    return str_take(&w.out, ret_len);
}
