/*
 * overlay_internal.h - the overlay's structs, for overlay*.c and their tests.
 *
 *     overlay_nodes.c    the members: peers of a network's device, and nodes of the relay
 *     probe_answers.c    what members measure of the way to the hub
 *     overlay_network.c  a network's interface and device
 *     overlay.c          the port, the relay, and the hooks
 *
 * Each calls only those above it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/htab.h"
#include "base/list.h"
#include "hub/model/hub_hooks.h"
#include "hub/overlay/addresses.h"
#include "hub/overlay/overlay.h"
#include "hub/overlay/probe_answers.h"
#include "hub/overlay/recontact.h"
#include "net/netlink/netlink.h"
#include "net/socket/udp_batch.h"
#include "os/timestamp_file.h"

struct device;
struct engine;
struct path_keys;
struct port;
struct relay;
struct router_network;
struct router_node;
struct uapi_server;

struct overlay {
    struct uv_loop_s *loop; /* pins */
    struct port *port;      /* owns */
    struct relay *relay;    /* owns */
    uint64_t seed;          /* of the tables; random */
    const char *state_dir;  /* pins */
    uint16_t api_port;      /* TCP, at which members ask the hub */

    /* The loop's. */
    struct netlink nl;          /* for interfaces, addresses and routes */
    uv_timer_t tick;            /* each second */
    struct list networks;       /* of struct overlay_network, in the order in which they came */
    uint32_t next_rank;         /* of the next network */
    bool is_started;            /* @tick is there, the port runs */
    struct recontact recontact; /* nodes with which the hub begins a handshake */
    struct addresses addresses; /* where the nodes were */
    struct probe_answers probes;
    struct timestamp_file timestamps; /* of the port's handshakes */

    _Atomic bool has_news; /* some node's address is not in the file yet; any thread */

    pthread_mutex_t lock;  /* guards @by_remote, overlay_network.by_key, and of each node what is
                              said below; after the port's lock, before the router's */
    struct htab by_remote; /* under the lock: overlay_node by where it was heard last */
};

/** A network: hangs on hub_network.plug. The loop's but for @by_key. */
struct overlay_network {
    struct overlay *overlay;       /* pins */
    struct hub_network *hub;       /* pins */
    struct list siblings;          /* in overlay->networks */
    struct device *device;         /* owns */
    struct engine *engine;         /* owns: changes the device's peers and tells of them */
    struct uapi_server *uapi;      /* owns; NULL: wg(8) cannot see the interface */
    struct router_network *router; /* lent by the router */
    unsigned ifindex;              /* of its interface */
    uint32_t rank;                 /* greater came later */
    bool has_rule[2];              /* there may be a routing rule for IPv6, and for IPv4 */
    nsec_t facts_at;               /* when the engine was asked last; 0: never */
    struct htab by_key;            /* under the lock: overlay_node by public key */
};

/** What a member measures of its way to the hub: probe_answers.h. The loop's. */
struct overlay_probes {
    struct path_keys *keys; /* owns; wiped with the key; NULL: it has not asked yet */
    struct rate rate;       /* of its frames */
    uint64_t sequence;      /* of the last that was believed */
    uint16_t mtu;           /* inner bytes that the way carries in both directions; 0: not known */
    uint16_t routed;        /* that its own routes have; 0: it has none */
};

/** A member but the hub itself: hangs on hub_node.plug. */
struct overlay_node {
    struct overlay_network *network; /* pins */
    struct hub_node *hub;            /* pins; the loop's */
    struct x25519_public key;        /* changes under the lock, read on the loop without */
    struct htab_link by_key;         /* under the lock */
    struct router_node *router;      /* under the lock; lent; NULL: nothing is relayed for it */
    struct udp_path path;            /* under the lock; last authenticated; remote none: never */
    struct htab_link by_remote;      /* under the lock; a member while is_placed */
    bool is_placed;                  /* under the lock: @path.remote is in overlay->by_remote */
    nsec_t handshake_at;             /* under the lock; monotonic; 0: never */
    struct recontact_node recontact; /* the loop's */
    struct overlay_probes probes;    /* the loop's */
    uint64_t rx_bytes;               /* the loop's; as of the network's facts_at */
    uint64_t tx_bytes;               /* likewise */
};

/* ---- overlay_nodes.c: the loop's, unless said otherwise ---- */

/** overlay__add_node() - make a peer and a node of the relay, and begin a handshake if it is known
 * where the node was. */
void overlay__add_node(struct overlay *o, struct hub_node *hub, nsec_t now);

/** overlay__change_node() - follow a change of the node's key or addresses; @before: as it was. */
void overlay__change_node(struct hub_node *hub, const struct node *before);

/** overlay__cut_node() - nothing is relayed for it or to it from now on. Idempotent. */
void overlay__cut_node(struct hub_node *hub);

/** overlay__remove_node() - remove the node's peer, and free what hangs on @hub. */
void overlay__remove_node(struct hub_node *hub);

/** overlay__node_is_at() - the node has opened a stream, and is reached at @ep: if it has no
 * session, begin a handshake there. */
void overlay__node_is_at(
    struct overlay *o, struct hub_node *hub, const struct endpoint *ep, nsec_t now);

/** overlay__change_edge() - tell the relay whether the two may reach each other now. */
void overlay__change_edge(struct hub_node *a, struct hub_node *b);

/** overlay__read_facts() - what is known of @hub; false: nothing is. */
bool overlay__read_facts(
    struct overlay *o, const struct hub_node *hub, nsec_t now, struct hub_facts *ret);

/** Most members at one address that are told apart: one machine in several networks, say. */
#define OVERLAY_SHARED_MAX 4

/** overlay__nodes_at() - lends the members that were heard at @ep last. Return: how many. */
unsigned overlay__nodes_at(struct overlay *o, const struct endpoint *ep,
    struct overlay_node *ret[static OVERLAY_SHARED_MAX]);

/** overlay__set_mtu() - the way to the node and back carries inner packets of @mtu bytes; 0: that
 * is not known. */
void overlay__set_mtu(struct overlay_node *node, uint16_t mtu);

/** overlay__tick_nodes() - each second: end handshakes that were tried long enough, and write the
 * file of addresses. */
void overlay__tick_nodes(struct overlay *o, nsec_t now);

/**
 * overlay__note_path() - an authenticated packet of the node with @key has come by @path
 * @handshake_at:	when that was the end of a handshake; 0: it was none
 *
 * Threads: any, with the port's lock held.
 */
void overlay__note_path(struct overlay_network *net, const struct x25519_public *key,
    const struct udp_path *path, nsec_t handshake_at);

/**
 * overlay__is_leased() - does the node with @key send with this receiver index to another node?
 *
 * Threads: any, with the port's lock held.
 */
bool overlay__is_leased(
    struct overlay_network *net, const struct x25519_public *key, uint32_t index, nsec_t now);

/* ---- overlay_network.c: the loop's ---- */

/**
 * overlay__check_block() - is the block free on this machine?
 * @net:	whose block it is; NULL: a network's that is not made yet
 *
 * But for the overlay's own interfaces, and that of a member of @net which this machine is as well.
 *
 * Return: 0; -EADDRINUSE with words: it is in use; or negative errno with words.
 */
int overlay__check_block(struct overlay *o, const struct overlay_network *net,
    const struct ip_prefix *block, struct err *e);

/**
 * overlay__network_new() - interface, device, addresses, routes, relay tables
 * @ret:	gives it, in overlay->networks
 *
 * Return: 0 or negative errno with words.
 */
int overlay__network_new(
    struct overlay_network **ret, struct overlay *o, struct hub_network *hub, struct err *e);

/** overlay__network_free() - after all its nodes. NULL is fine. Returns NULL. */
struct overlay_network *overlay__network_free(struct overlay_network *net);

/** overlay__set_route() - of what the hub sends from its own address to @address, whose packets
 * have at most @mtu bytes; 0: they go by the route to the network's block. */
void overlay__set_route(
    const struct overlay_network *net, const struct ip_addr *address, uint16_t mtu);
