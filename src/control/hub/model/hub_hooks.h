/*
 * hub_hooks.h - what the hub's control half tells its data half, and asks of it.
 *
 * The data half is what moves packets: the WireGuard devices and the relay (overlay.h). It
 * implements `struct hub_hooks`, and its own data about a network or a node hangs on their `plug`
 * field. A hub may have none: then somebody else made the interfaces.
 *
 * Threads: the hub's loop only. Who has threads of its own hands over to them inside a hook.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "crypto/x25519.h"
#include "mesh/object/object.h"

struct err;
struct metrics;
struct stun_hearing;
struct stun_transaction;

/** A network on this hub. Lives from network_added to network_removed. */
struct hub_network {
    struct network spec;         /* as stored */
    struct x25519_secret secret; /* the hub's key in this network; wiped at the end */
    struct x25519_public public; /* of it */
    struct ip_addr address4;     /* the hub's own: the first of the block */
    struct ip_addr address6;     /* likewise */
    char interface[16];          /* what its interface on the hub is called */
    size_t n_nodes;              /* members, the hub included */
    void *plug;                  /* pins: the hooks' own, NULL at first */
};

/** A member of a network, the hub itself included. Lives from node_added to node_gone. */
struct hub_node {
    struct node spec;            /* as stored; its status stays NULL, see reports.h */
    struct hub_network *network; /* pins */
    void *plug;                  /* pins: the hooks' own, NULL at first */
};

/** What the data half knows of a node right now. */
struct hub_facts {
    struct endpoint endpoint; /* last authenticated source; none when never heard */
    nsec_t handshake_at;      /* monotonic time of the last handshake; 0: never */
    uint64_t rx_bytes;        /* received from it, in its session with the hub */
    uint64_t tx_bytes;        /* sent to it */
};

/**
 * What a data half does when the desired state changes. Members may be NULL.
 * All are called on the loop; they may read the state, and change nothing in it.
 */
struct hub_hooks {
    void *ctx; /* pinned: handed to every call */

    /* Is that block of addresses free on this machine? Asked before the first network is made.
     * Return: 0; -EADDRINUSE with words: it is in use; or negative errno with words. */
    int (*check_block)(void *ctx, const struct ip_prefix *block, struct err *e);

    /*
     * A network is there: make its device with @net->secret, both addresses and the MTU. When
     * this returns, the hub answers members at these addresses, on the interface @net->interface.
     * Called at start for each known network, and when one is added. A failure at start ends the
     * hub; later it makes `weft network add` fail with the words, and the network is taken back.
     */
    int (*network_added)(void *ctx, struct hub_network *net, struct err *e);

    /* It is going: its nodes have gone before it, and the hub answers nobody on its interface any
     * more. Also called for a network whose interface was made but cannot be listened on. */
    void (*network_removed)(void *ctx, struct hub_network *net);

    /* A node other than the hub itself: give it a WireGuard peer and let the relay know it. */
    void (*node_added)(void *ctx, struct hub_node *node);

    /* Its key or addresses changed; @before holds the old ones, borrowed. */
    void (*node_changed)(void *ctx, struct hub_node *node, const struct node *before);

    /*
     * It has been removed: relay nothing for it or to it from now on. Its WireGuard peer may stay
     * until node_gone, which follows within a second, so that the node can be told why.
     */
    void (*node_cut)(void *ctx, struct hub_node *node);

    /* Remove its WireGuard peer; @node is freed after the call. Always after a node_cut. */
    void (*node_gone)(void *ctx, struct hub_node *node);

    /*
     * Somebody said something about an edge of @a and @b: ask hub_may_talk() again. Also after
     * node_added, for each edge of that node that is off already; all others are on.
     */
    void (*edge_changed)(void *ctx, struct hub_node *a, struct hub_node *b);

    /*
     * It has opened a stream, and will be heard from @ep. One that was not heard since this hub
     * was started may be spoken to there.
     */
    void (*node_at)(void *ctx, struct hub_node *node, const struct endpoint *ep);

    /* Fill in what is known of @node; false when nothing is. */
    bool (*facts)(void *ctx, const struct hub_node *node, struct hub_facts *ret);

    /* Has a STUN request of that id come by UDP of late? Fills in from where and when. */
    bool (*heard)(void *ctx, const struct stun_transaction *id, struct stun_hearing *ret);

    /* Add to GET /v1/metrics. */
    void (*metrics)(void *ctx, struct metrics *m);
};

/** hub_next_node() - walk a network's nodes by name; NULL: start, and the end. Lends. */
struct hub_node *hub_next_node(struct hub_network *net, struct hub_node *after);

/**
 * hub_may_talk() - may these two members exchange packets?
 *
 * Yes, unless the edge between them is off. Both are of the same network, and
 * different. This is the one answer: what a snapshot shows and what the relay
 * moves both come from it.
 */
bool hub_may_talk(const struct hub_node *a, const struct hub_node *b);
