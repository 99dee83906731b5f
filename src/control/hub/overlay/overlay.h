/*
 * overlay.h - the data half of a hub: its interfaces, its WireGuard peers, its relay.
 *
 * One UDP port for everything. Each network has an interface of its own on the
 * hub, with the network's first addresses, and a WireGuard device behind it
 * whose peers are the network's nodes. What those sessions tell about where a
 * node is goes to the relay, which shares the port.
 *
 * Theory of operation. The hub (changes.h) says here what its model has come to: on the loop,
 * which configures devices and router. The devices' listeners run on the port's control thread;
 * they look the node up by its key and tell the router. What both touch is under one lock of the
 * overlay.
 *
 * Two networks may have the same block of addresses. The machine's own programs
 * reach the one that was there first; the other one's interface serves the
 * hub's API and nothing else, so that no answer of the kernel goes to the
 * wrong network (see overlay.c).
 *
 * Lock order: port (dataplane/), overlay, router. The loop holds none of them
 * when it calls into the port.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct err;
struct metrics;
struct model_network;
struct model_node;
struct node;
struct overlay;
struct relay_line;
struct stun_hearing;
struct stun_transaction;
struct uv_loop_s;

/** How an overlay is set up. */
struct overlay_options {
    const char *state_dir; /* pinned: where nodes' addresses are remembered */
    uint16_t listen_port;  /* UDP; 0: the kernel chooses */
    uint16_t api_port;     /* TCP, at which members ask the hub */
    unsigned n_workers;    /* receiving threads; 0: half of the CPUs, at most 4 */
    uint64_t line;         /* what its line can carry in each direction, bit/s; 0: not said */
};

/**
 * overlay_new() - a port without sockets and networks yet
 * @loop:	pinned
 *
 * Return: 0 or negative errno with words.
 */
int overlay_new(
    struct overlay **ret, struct uv_loop_s *loop, const struct overlay_options *opt, struct err *e);

/**
 * overlay_start() - bind the port and start the threads; between hub_new() and hub_start()
 *
 * Return: 0 or negative errno with words (-EADDRINUSE: the port is taken).
 */
int overlay_start(struct overlay *o, struct err *e);

/** overlay_stop() - after hub_stop(); then run the loop until it is empty. Idempotent. */
void overlay_stop(struct overlay *o);

/** overlay_free() - after overlay_stop() and the loop's end. */
struct overlay *overlay_free(struct overlay *o);

/* ---- what it is told, and asked ------------------------------------------------------------- */

/**
 * overlay_check_block() - is that block of addresses free on this machine?
 *
 * Return: 0; -EADDRINUSE with words: it is in use; or negative errno with words.
 */
int overlay_check_block(struct overlay *o, const struct ip_prefix *block, struct err *e);

/**
 * overlay_add_network() - make its device with its secret, both addresses and the MTU
 *
 * From then on the hub can answer members at these addresses, on its interface.
 *
 * Return: 0 or negative errno with words, which name its interface and what is missing: root, or
 * /dev/net/tun.
 */
int overlay_add_network(struct overlay *o, const struct model_network *net, struct err *e);

/* Of what was not added, nothing is changed and nothing is known: what follows is fine for it. */

/** overlay_remove_network() - after its nodes, and when nobody is answered on its interface. */
void overlay_remove_network(const struct model_network *net);

/**
 * overlay_add_node() - make a peer and a node of the relay, and begin a handshake if it is known
 * where the node was
 *
 * Not for hubs. Its edges are on; overlay_change_edge() is called for each that is off already.
 */
void overlay_add_node(struct overlay *o, const struct model_node *node, nsec_t now);

/** overlay_change_node() - follow a change of the node's key or addresses; @before: as it was. */
void overlay_change_node(const struct model_node *node, const struct node *before);

/**
 * overlay_cut_node() - nothing is relayed for it or to it from now on
 *
 * Its peer stays until overlay_remove_node(), so that the node can be told why it is removed.
 */
void overlay_cut_node(const struct model_node *node);

/** overlay_remove_node() - remove the node's peer, and free what hangs on it. */
void overlay_remove_node(const struct model_node *node);

/** overlay_node_is_at() - the node has opened a stream, and is reached at @ep: if it has no
 * session, begin a handshake there. */
void overlay_node_is_at(const struct model_node *node, const struct endpoint *ep, nsec_t now);

/** overlay_change_edge() - tell the relay whether the two may reach each other now. */
void overlay_change_edge(const struct model_node *a, const struct model_node *b);

/** What is known of a node right now. */
struct overlay_facts {
    struct endpoint endpoint; /* last authenticated source; none when never heard */
    nsec_t handshake_at;      /* monotonic time of the last handshake; 0: never */
    uint64_t rx_bytes;        /* received from it, in its session with the hub */
    uint64_t tx_bytes;        /* sent to it */
};

/** overlay_read_facts() - what is known of @node; false: nothing is. */
bool overlay_read_facts(const struct model_node *node, nsec_t now, struct overlay_facts *ret);

/** overlay_read_handshake() - when its last handshake with the hub was, monotonic; 0: never. False:
 * nothing is known. It costs less than all facts. */
bool overlay_read_handshake(const struct model_node *node, nsec_t *ret_at);

/** overlay_set_found_line() - what its line was found to carry, bit/s; 0: it is not known. Where it
 * was said nothing changes. */
void overlay_set_found_line(struct overlay *o, uint64_t rate);

/** overlay_has_said_line() - was it said what its line carries? */
bool overlay_has_said_line(const struct overlay *o);

/** overlay_line() - how the relay's line is (relay/line.h); lent. */
const struct relay_line *overlay_line(const struct overlay *o);

/** overlay_find_heard() - has a STUN request of that id come by UDP of late? From where, and when?
 */
bool overlay_find_heard(
    struct overlay *o, const struct stun_transaction *id, struct stun_hearing *ret);

/** overlay_add_metrics() - what it adds to GET /v1/metrics. */
void overlay_add_metrics(struct overlay *o, struct metrics *m);
