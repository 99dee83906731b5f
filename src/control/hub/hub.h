/*
 * hub.h - the control half of a hub, and where its data half plugs in.
 *
 * Everything here runs on one libuv loop, the process's main loop: the API
 * server, the store, the watches and every hook. Nothing is locked. Whoever
 * has threads of its own (devices, relay) hands over to them inside a hook.
 *
 * Theory of operation. The store is the truth, and nobody waits for it. A
 * handler checks, hands a commit to the store, and returns (later.h). When the
 * commit is on the disk the store tells its watch, which takes the change into
 * the model below; that is the only place where the model changes, so a change
 * made by another hub on the same store takes the same way as our own. Each
 * change then reaches, in the same turn and in this order: the hooks (WireGuard
 * peers, relay tables), the nodes' watches, and the caller's answer. What only
 * reads, reads the model, at once.
 *
 * What plugs in implements `struct hub_hooks`. Its own data about a network or
 * a node hangs on their `plug` field.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "crypto/x25519.h"
#include "hub/publics.h"
#include "mesh/object.h"

struct err;
struct hub;
struct hub_metrics;
struct store;
struct stun_hearing;
struct stun_transaction;
struct uv_loop_s;

/** How a hub is set up; fixed while it runs. Texts are borrowed until hub_free(). */
struct hub_config {
    const char *state_dir;        /* keys, certificate, admin token; made if missing */
    int64_t audit_age_s;          /* entries of the audit log are kept so long; 0: the default */
    const char *store_url;        /* "sqlite:PATH" or "memory:" */
    struct store *store;          /* taken, instead of one at that URL: tests; NULL: none */
    const char *socket_path;      /* of the admin's unix socket */
    const char *interface_prefix; /* of its interfaces: "weft" gives "weft-default" */
    struct endpoint api_listen;   /* TCP; address none: all of them, v4 and v6 */
    uint16_t udp_port;            /* where WireGuard and the relay listen */
    struct hub_places publics;    /* where nodes reach @udp_port, at least one, with endpoints */
};

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
    nsec_t handshake;         /* monotonic time of the last handshake; 0: never */
    uint64_t rx_bytes;        /* received from it, in its session with the hub */
    uint64_t tx_bytes;        /* sent to it */
};

/**
 * What a data half does when the desired state changes. Members may be NULL.
 * All are called on the loop; they may read the state, and change nothing in it.
 */
struct hub_hooks {
    void *ctx; /* pinned: handed to every call */

    /*
     * A network is there: make its device with @net->secret, both addresses and the MTU, then
     * hub_open_door(). Called at start for each known network, and when one is added. A failure
     * at start ends the hub; later it makes `weft network add` fail with the words, and the
     * network is taken back.
     */
    int (*network_added)(void *ctx, struct hub_network *net, struct err *e);

    /* It is going: its nodes have gone before it. The overlay door is closed already. */
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

    /* Add to GET /v1/metrics with hub_metric(). */
    void (*metrics)(void *ctx, struct hub_metrics *m);
};

/**
 * hub_new() - open the state and the store
 * @loop:	pinned
 * @hooks:	copied; NULL: no data half
 *
 * Makes what is missing: directories, TLS key and certificate, admin token.
 *
 * Return: 0 or negative errno with words that name the file or value.
 */
int hub_new(struct hub **ret, struct uv_loop_s *loop, const struct hub_config *config,
    const struct hub_hooks *hooks, struct err *e);

/**
 * hub_start() - bring up every network, then open the public and the admin door
 * @first_network:	made if the hub has no network yet; NULL: "default"
 * @first_cidr4:	its block; len 0: the default
 *
 * What is given and not so, because the hub has other networks already, is warned of.
 *
 * Return: 0 or negative errno with words.
 */
int hub_start(
    struct hub *hub, const char *first_network, const struct ip_prefix *first_cidr4, struct err *e);

/**
 * hub_stop() - close the doors, take the networks down, write what is pending
 *
 * Calls node_cut, node_gone and network_removed for all. Its libuv handles close
 * in the next turns: run the loop until it is empty, then hub_free().
 */
void hub_stop(struct hub *hub);

/** hub_free() - after hub_stop(), or after a hub_start() that failed. NULL is fine. Always NULL. */
struct hub *hub_free(struct hub *hub);

/** hub_config() - how it was set up; borrowed. */
const struct hub_config *hub_config(const struct hub *hub);

/** hub_api_port() - the TCP port of the API; known once hub_start() has returned. */
uint16_t hub_api_port(const struct hub *hub);

/** Room for a pin as text, with the terminating zero. */
#define HUB_PIN_TEXT_MAX 45

/** hub_pin() - base64 of the SHA-256 of the TLS key, as clients pin it; into @buf; returns @buf. */
const char *hub_pin(const struct hub *hub, char buf[static HUB_PIN_TEXT_MAX]);

/** hub_loop() - the one loop that everything runs on; borrowed. */
struct uv_loop_s *hub_loop(struct hub *hub);

/** hub_next_network() - walk the networks by name; NULL: start, and the end. Lends. */
struct hub_network *hub_next_network(struct hub *hub, struct hub_network *after);

/** hub_find_network() - lends; NULL if there is none of that name. */
struct hub_network *hub_find_network(struct hub *hub, const char *name);

/** hub_next_node() - walk a network's nodes by name; NULL: start, and the end. Lends. */
struct hub_node *hub_next_node(struct hub_network *net, struct hub_node *after);

/** hub_find_node() - lends; NULL if there is none of that name. */
struct hub_node *hub_find_node(struct hub_network *net, const char *name);

/** hub_find_node_by_key() - lends; NULL if no node has that key. */
struct hub_node *hub_find_node_by_key(struct hub_network *net, const struct x25519_public *key);

/** hub_find_node_by_address() - lends; by either overlay address; NULL if it is nobody's. */
struct hub_node *hub_find_node_by_address(struct hub_network *net, const struct ip_addr *address);

/** hub_node_is_self() - this hub's own node in its network. */
bool hub_node_is_self(const struct hub_node *node);

/**
 * hub_may_talk() - may these two members exchange packets?
 *
 * Yes, unless the edge between them is off. Both are of the same network, and
 * different. This is the one answer: what a snapshot shows and what the relay
 * moves both come from it.
 */
bool hub_may_talk(const struct hub_node *a, const struct hub_node *b);

/**
 * hub_open_door() - answer members on a network's interface
 * @interface:	its name; the listening sockets are bound to it and to the hub's two addresses,
 *		which it must already have
 *
 * Return: 0 or negative errno with words.
 */
int hub_open_door(struct hub *hub, struct hub_network *net, const char *interface, struct err *e);

/**
 * hub_node_seen() - an authenticated packet of @node was heard
 *
 * Optional: facts() tells the same, a few seconds later. Cheap enough for each handshake.
 */
void hub_node_seen(struct hub_node *node);

/** Types of a metric in Prometheus' text format. */
enum hub_metric_type {
    HUB_METRIC_COUNTER,
    HUB_METRIC_GAUGE,
};

/**
 * hub_metric() - add one sample
 * @name:	"weft_relay_packets_total"
 * @help:	one clause; said once for each run of the same @name
 * @labels:	"network=\"default\"", or "" for none
 */
void hub_metric(struct hub_metrics *m, enum hub_metric_type type, const char *name,
    const char *help, const char *labels, double value);
