/*
 * router.h - the blind relay's decisions: for whom is this datagram?
 *
 * Nodes of one network that have no better path send each other WireGuard
 * messages through the hub, which forwards them as they are. It holds no key of
 * theirs; all it knows is each member's public key, and from which address that
 * member's own session with the hub speaks. The rules, with byte diagrams, are
 * in docs/wire/relay.md.
 *
 * Theory of operation.
 *
 *   sender     The source address names it: the node whose last authenticated
 *              packet to the hub came from there. Nobody else's packets count as
 *              its own, and when a NAT moves the node, all that it holds moves
 *              along with router_node_set_address(). Several nodes may speak from
 *              one address (one port shared by two networks; a NAT that gave the
 *              address to another node while the first is silent): each keeps
 *              its own leases, and a new handshake is taken for one of the node
 *              that was heard there last.
 *   initiation goes to the one peer whose public key, or next one, made its mac1. That peer
 *              then holds a pending lease: it may answer to that index.
 *   response   must have such a lease, and a mac1 made with the initiator's key.
 *              The lease is then established, and so is one for the way back.
 *   the rest   goes by lease: (sender, receiver index) says for whom it is.
 *              Cookie replies take pending leases too, data only established ones.
 *
 * An index that a node already uses with somebody else is a clash, and the
 * handshake message that would cause it is dropped: its sender tries again with
 * another index, and whoever held it keeps it. The hub's own sessions
 * count, too.
 *
 * Leases end by time, by the removal of either node, and by the blocking of the
 * edge, at once.
 *
 * Threads. Workers call router_route(); all else is for control threads, any of
 * them. Two kinds of locks, in this order:
 *
 *   changing   one mutex: held over a handshake message and over any change. Its
 *              holder may read everything.
 *   worker i   one mutex for each worker, on a cache line of its own: held by that
 *              worker while it looks up a lease, and by a change, all of them
 *              together, for the moment in which it writes.
 *
 * So the lookups of data, once for a run of datagrams, contend with nothing but a
 * handshake that is just being written down.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/drop.h"
#include "crypto/x25519.h"
#include "relay/line.h"
#include "wire/wg.h"

struct router;
struct router_network;
struct router_node;

/** An answer may pass so long after the initiation; three times what an initiator waits. */
#define ROUTER_PENDING_LIFE (3 * WG_REKEY_TIMEOUT)

/** Data may pass so long after the answer: then the keys are void (whitepaper 6.1). */
#define ROUTER_LEASE_LIFE WG_REJECT_AFTER_TIME

/** Most nodes that can be told apart behind one address and port. */
#define ROUTER_SHARED_MAX 4

/** How a router is made; zeroes are good defaults but for @seed and @n_workers. */
struct router_options {
    unsigned n_workers;       /* threads that will call router_route() */
    uint64_t seed;            /* random, unknown to strangers */
    unsigned leases_max;      /* of all nodes together; 0: 1048576 */
    unsigned leases_per_node; /* that one node's initiations may hold; 0: 16384 */
};

/** router_new() - 0 or -ENOMEM. */
int router_new(struct router **ret, const struct router_options *opt);

/** router_free() - with all networks and nodes. */
struct router *router_free(struct router *r);

/**
 * router_network_add() - a network without nodes
 * @hub:	the hub's own public key in it
 * @ret:	lends, until router_network_remove()
 *
 * Return: 0 or -ENOMEM.
 */
int router_network_add(
    struct router_network **ret, struct router *r, const struct x25519_public *hub);

/** router_network_set_keys() - @hub is the hub's key in it, and @next, too; NULL: that alone. */
void router_network_set_keys(struct router *r, struct router_network *net,
    const struct x25519_public *hub, const struct x25519_public *next);

/** router_network_remove() - with its nodes and their leases; nothing of it passes afterwards. */
void router_network_remove(struct router *r, struct router_network *net);

/**
 * router_node_add() - a member, which may reach all others of its network
 * @ret:	lends, until router_node_remove()
 *
 * Return: 0 or -ENOMEM.
 */
int router_node_add(struct router_node **ret, struct router *r, struct router_network *net,
    const struct x25519_public *key);

/** router_node_set_keys() - handshake messages for @node are made for @key or for @next; NULL: for
 * @key alone. Its leases stay as they are. */
void router_node_set_keys(struct router *r, struct router_node *node,
    const struct x25519_public *key, const struct x25519_public *next);

/** router_node_remove() - with its leases; nothing passes to it or from it afterwards. */
void router_node_remove(struct router *r, struct router_node *node);

/**
 * router_node_set_address() - from where the node's own session speaks
 * @remote:	authenticated by that session; none: not known any more. Telling the same address
 *		again is not idle: it makes the node the one that was heard there last
 * @local:	which of our addresses it speaks to; none: the kernel shall choose
 */
void router_node_set_address(struct router *r, struct router_node *node,
    const struct endpoint *remote, const struct ip_addr *local);

/**
 * router_edge_set_blocked() - may two nodes of one network reach each other?
 *
 * Blocking drops their leases. Return: 0 or -ENOMEM (then nothing has changed).
 */
int router_edge_set_blocked(
    struct router *r, struct router_node *a, struct router_node *b, bool blocked);

/**
 * router_is_leased() - does @node send with this receiver index to some peer?
 *
 * The hub's devices ask before they take an index for a session with @node.
 */
bool router_is_leased(struct router *r, const struct router_node *node, uint32_t index, nsec_t now);

/** router_expire() - give back what has expired; about once a second. Brief, whatever there is. */
void router_expire(struct router *r, nsec_t now);

/** router_n_leases() - how many there are, for metrics. */
unsigned router_n_leases(struct router *r);

/**
 * router_sample_pairs() - which pairs of nodes send each other most; about once a second
 * @ret:	at most RELAY_LINE_PAIRS_MAX, the heaviest first
 *
 * A walk over all pairs, without the workers' locks. Return: how many are in @ret.
 */
unsigned router_sample_pairs(
    struct router *r, nsec_t now, struct relay_pair ret[static RELAY_LINE_PAIRS_MAX]);

/* ---- datagrams ---- */

/** How a datagram arrived. */
struct router_arrival {
    struct endpoint from; /* its source */
    nsec_t now;           /* monotonic */
    uint64_t bytes;       /* of the whole run, with headers: what its pair is counted for */
    unsigned worker;      /* the calling one: below router_options.n_workers */
    /* Does a device of the hub use this receiver index? Called with locks held; may not block. */
    bool (*is_local)(void *ctx, uint32_t index);
    void *ctx; /* borrowed: handed to is_local */
};

enum router_action {
    ROUTER_ACTION_PASS,    /* not for the relay: the hub's own devices may want it */
    ROUTER_ACTION_FORWARD, /* send it on, unchanged */
    ROUTER_ACTION_DROP,    /* for nobody: see the reason */
};

struct router_verdict {
    enum router_action action;
    enum drop_reason reason; /* of a drop */
    struct endpoint to;      /* of a forward: where the addressee is */
    struct ip_addr local;    /* of a forward: our address to send from; none: the kernel chooses */
};

/**
 * router_route() - decide about a datagram, or a run of them
 * @msg:	@len bytes: one datagram; for data (type 4) it may be the first of a run which
 *		agrees in source and receiver index: the verdict is for all of them
 *
 * No allocation but for a handshake message now and then; no system call.
 *
 * Spec: docs/wire/relay.md. Threads: workers; see above.
 */
struct router_verdict router_route(
    struct router *r, const struct router_arrival *in, const uint8_t *msg, size_t len);
