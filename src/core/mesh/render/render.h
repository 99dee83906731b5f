/*
 * render.h - the one place where a snapshot becomes a WireGuard configuration.
 *
 * Provisioning (`weft render`, which prints it with wg_quick_format()) and the running
 * agent both call it, so the two cannot drift.
 *
 * The peers of a node are
 *
 *   - every hub: its own two addresses as allowed-ips, its public endpoint, and
 *     the keepalive, which holds the NAT mapping that all relayed edges share:
 *     the network's, or as the node has measured it;
 *   - every other node, unless an edge says "off": its two addresses, the
 *     subnets that are reached through it, and as endpoint the path that was
 *     chosen for it. Without one that is the endpoint of the hub that relays, where
 *     packets are passed on unread; so a subnet needs nothing of the hub, either. An
 *     endpoint that the edge pins goes before all of these; a public key that
 *     it pins and the node does not have makes that node no peer at all.
 *
 * The peers of a hub are all nodes, without endpoints: they come to it. It
 * reaches nothing behind them: it forwards nobody's packets in the clear.
 *
 * A path that is not measured is used with RENDER_MTU_SAFE, which every path is taken to carry: the
 * MTU of the routes to the network's blocks. The interface's own is as much as any path of this
 * machine might carry, so that a peer's route can have more. Of a hub, which is told what reaches
 * it, TCP asks no more than it is sent, and of a stock WireGuard, which is not, no more than
 * RENDER_MTU_SAFE. A network's `mtu` is what a stock WireGuard's own file has.
 *
 * Rates are those of the node itself, of its edges, and of jobs that have spent their budget.
 *
 * The cipher of each peer's data follows from the network's, and from what both
 * ends have announced (docs/wire/aes.md); a hub announces nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "mesh/config/wg_config.h"
#include "mesh/snapshot/snapshot.h"
#include "path/pmtu.h"

/** Inner bytes that every path is taken to carry, before it was measured. */
#define RENDER_MTU_SAFE PMTU_INNER_MIN

/** A path that somebody has found, better than what render would choose; or a relay; or, without an
 * endpoint, no more than what the path that render chooses carries. */
struct render_path {
    char node[NAME_MAX_LEN + 1]; /* the other end; a hub too */
    struct endpoint endpoint;    /* where its packets go; none: as render says */
    bool is_standby;             /* to a relay that we use: it is kept alive as a hub is */
    char via[NAME_MAX_LEN + 1];  /* the node that relays them; "": they go to itself */
    uint16_t mtu;                /* inner bytes that it carries; 0: not measured */
    uint16_t keepalive; /* s; what this path needs, 0: nothing. A hub's is render_keepalive(). */
};

/** A peer that changes its key, or knows of ours only the one that was. */
struct render_next_key {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key; /* that it goes on with; none: it stays with the one that it has */
    bool knows_one;           /* it is a stock WireGuard, whose file names our key */
};

struct render_input {
    const struct snapshot *snapshot; /* borrowed; complete */
    const struct render_path *paths; /* borrowed; @n_paths, sorted by node in byte order */
    size_t n_paths;
    const struct render_next_key *next_keys; /* borrowed; @n_next_keys, sorted as @paths */
    size_t n_next_keys;
    struct x25519_public next_public; /* of the key that this node goes on with; none: it has one */
    bool initiate_with_next;          /* and that it uses already */
    const char *relay;    /* borrowed; name of the hub through which this node's packets go to peers
                             without a better path; NULL, or no hub: render_hub() */
    uint16_t listen_port; /* of this node; 0: any */
    uint16_t link_mtu;    /* inner bytes that the machine's largest link carries; 0: not known */
    uint16_t keepalive;   /* s; as this node has measured it; 0: use what it has reported */
    bool pins;   /* paths are found for this node: an endpoint stays until render changes it */
    bool relays; /* this node is to be a relay for the others */
};

/** render_find_path() - lends the path that was found for that node, NULL if none was. */
const struct render_path *render_find_path(const struct render_input *in, const char *node);

/**
 * render_config() - what the interface of the snapshot's own node should be
 * @ret:	untouched on failure, else sorted, to be released with wg_config_deinit()
 *
 * Return: 0; -EINVAL with words when two nodes share a key or an address, or
 * there is no hub (the snapshot is between two states: keep what is, and wait
 * for the next event); -ENOMEM.
 */
int render_config(struct wg_config *ret, const struct render_input *in, struct err *e);

/** How the packets of one edge go, for people and for the status. */
enum render_route {
    RENDER_ROUTE_NONE,   /* not at all: see the reason */
    RENDER_ROUTE_DIRECT, /* by a path that was found, or to the hub itself */
    RENDER_ROUTE_RELAY,  /* through the relay that was found, else the hub */
    RENDER_ROUTE_N,
};

/** Why there is no route where a key is pinned that the node does not have. */
extern const char render_why_key[];

/** What was decided for one peer, and why. */
struct render_decision {
    enum render_route route;
    const char *why; /* a clause, never NULL; "" when there is nothing to explain */
    bool is_open; /* a better path would be taken: neither the network nor an edge asks for this */
};

/**
 * render_decide() - the rule for one edge, as render_config() applies it
 * @peer:	another node of the snapshot
 * @found:	the path that was found for it, NULL if none
 */
struct render_decision render_decide(
    const struct snapshot *s, const struct node *peer, const struct render_path *found);

/** render_mtu() - how large an inner packet to @peer, another node, may be: the route's MTU. */
uint16_t render_mtu(const struct render_input *in, const struct node *peer);

/**
 * render_keepalive() - how often this node says hello to its hubs, in s; 0: never
 *
 * The network's own figure, if it has one; else what was measured, or reported
 * to have been; else NETWORK_KEEPALIVE_UNKNOWN.
 */
uint16_t render_keepalive(const struct render_input *in);

/** render_hub() - lends the first hub by name; NULL if there is none. */
const struct node *render_hub(const struct snapshot *s);

/** render_relay() - lends the hub that relays for this node; NULL if there is no hub. */
const struct node *render_relay(const struct render_input *in);

/*
 * A configuration as text: a file of wg-quick(8), or what `wg syncconf` takes.
 *
 * A stock WireGuard becomes a node with the file, and stays one with the text:
 * both have the same peers, so that what a running interface is given is what
 * its file would say today.
 */

/** Where wg-quick finds the private key unless said otherwise; %i is the interface. */
#define WG_QUICK_KEY_FILE "/etc/wireguard/%i.key"

/** How the file is to be. */
struct wg_quick_style {
    const char *key_file;               /* borrowed; the node reads its private key from it when the
                                           interface comes up */
    const struct x25519_secret *secret; /* borrowed; NULL: the private key is not in the text. With
                                           it the file needs nothing of its machine, as a phone's */
    bool is_compact; /* without comments, empty lines and spaces: for a QR code */
};

/**
 * wg_quick_format() - the file's text
 * @c:		as render_config() gave it
 * @s:		the same snapshot; peers come in the order of its names, each below its name
 *
 * Where the hub has a name, that is its endpoint: the file is read again when it is elsewhere.
 *
 * Return: gives it, free() it, and wipe it before that if it has the private
 * key; NULL for no memory.
 */
char *wg_quick_format(const struct wg_config *c, const struct snapshot *s,
    const struct wg_quick_style *style, size_t *ret_len);

/**
 * wg_quick_format_peers() - all peers, as `wg syncconf` takes them beside an [Interface] section
 *
 * The private key and the port are the node's own: `wg syncconf` takes them
 * from the interface when they are not said. Endpoints are addresses: whoever
 * is told this has reached the hub. As wg_quick_format() otherwise.
 */
char *wg_quick_format_peers(const struct wg_config *c, const struct snapshot *s, size_t *ret_len);
