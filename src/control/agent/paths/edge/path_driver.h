/*
 * path_driver.h - finds and keeps this node's paths: path/paths.h, wired to the machine.
 *
 * Theory of operation. The parts decide, and each knows only its own facts:
 *
 *   path/paths.h         which path each edge takes, and when to ping
 *   peer_table.h         who the peers are, where WireGuard sends to each, and when a handshake
 *                        is due
 *   local_candidates.h   where this node may be reached, from addresses and STUN answers
 *   relay_select.h       which relays are kept ready, and whether the hub still relays
 *   edge_mtu.h           what direct paths, ways to hubs and those to stock peers carry
 *
 * The driver owns them and the I/O (path_sockets.h, stun_socket.h, echo_socket.h), carries facts
 * from one to another, does what they ask for, and is woken for the earliest of their deadlines.
 * None of them knows of the driver.
 *
 * The listener is told when there is something to be put into the engine, or to be
 * reported to the hub.
 *
 * Threads: the loop's.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "mesh/render/render.h"
#include "path/path.h"

struct engine;
struct observe;
struct path_driver;
struct uv_loop_s;

/** What the driver has to know of this node. All of it outlives the driver. */
struct path_driver_options {
    const struct x25519_secret *secret; /* borrowed for path_driver_new() */
    const char *name;                   /* borrowed for path_driver_new() */
    const char *interface;              /* pinned; whose addresses do not count */
    const struct endpoint *given;       /* pinned; @n_given, by the operator; port 0: WireGuard's */
    unsigned n_given;
    struct echo_socket *pings; /* pinned; NULL: there is none, and stock peers are not measured */
};

/** Who is told of changes. All are called from the loop. */
struct path_driver_listener {
    void (*on_routes)(void *ctx);  /* path_driver_routes() has changed: reconcile at once */
    void (*on_self)(void *ctx);    /* path_driver_self() has changed: report it soon */
    void (*on_look)(void *ctx);    /* path_driver_observe() is wanted soon, to see what came in */
    void (*on_network)(void *ctx); /* this machine's addresses or default routes have changed */
    void *ctx;                     /* pinned */
};

/**
 * path_driver_new() - nothing is known yet, and nothing is sent
 *
 * Return: 0 or negative errno with words.
 */
int path_driver_new(struct path_driver **ret, struct uv_loop_s *loop,
    const struct path_driver_options *opt, const struct path_driver_listener *listener,
    struct err *e);

/**
 * path_driver_free() - wipe the keys, close the sockets
 * @leaving:	this node leaves the network, so the router's port mapping is removed
 *
 * Its handles close in the loop's next turns. NULL is fine. Always NULL.
 */
struct path_driver *path_driver_free(struct path_driver *d, bool leaving);

/**
 * path_driver_set_keys() - this node has other keys from now on; before the snapshot that says so
 * @secret:	by which hubs know it, and which nodes may use
 * @next:	that it goes on with; NULL: it does not change its key
 * @calls_next:	frames go under that
 *
 * Paths stay as they are.
 */
void path_driver_set_keys(struct path_driver *d, const struct x25519_secret *secret,
    const struct x25519_secret *next, bool calls_next, nsec_t now);

/** path_driver_set_engine() - which engine runs, on which port; after every poll. NULL: none runs.
 */
void path_driver_set_engine(
    struct path_driver *d, struct engine *engine, uint16_t port, nsec_t now);

/** path_driver_set_link_mtu() - inner bytes that the machine's largest link carries; 0: unknown. */
void path_driver_set_link_mtu(struct path_driver *d, uint16_t mtu);

/** path_driver_set_hub_clock() - this machine's clock is so far ahead of the hubs'. Before the
 * first call no hub is told what its way carries. */
void path_driver_set_hub_clock(struct path_driver *d, nsec_t ahead);

/** path_driver_set_snapshot() - the network has changed: peers, hubs, what peers report. */
void path_driver_set_snapshot(struct path_driver *d, const struct snapshot *s, nsec_t now);

/**
 * path_driver_set_udp() - what is known of this machine's UDP
 * @keepalive:	to be told to peers: what holds our mappings; 0: not known
 * @is_blocked:	does UDP fail to leave this machine, as far as the hub shows?
 */
void path_driver_set_udp(struct path_driver *d, nsec_t keepalive, bool is_blocked, nsec_t now);

/** path_driver_set_hub() - is the hub heard? */
void path_driver_set_hub(struct path_driver *d, bool heard, nsec_t now);

/** path_driver_set_relay() - is this node a relay for others? @is_new: its engine has just begun.
 */
void path_driver_set_relay(struct path_driver *d, bool relays, bool is_new, nsec_t now);

/** path_driver_on_hub_forgot() - the hub was started anew: each edge that it relays needs a
 * handshake.
 */
void path_driver_on_hub_forgot(struct path_driver *d, nsec_t now);

/** path_driver_use_hub() - the hub that relays for this node from now on. */
void path_driver_use_hub(struct path_driver *d, const struct node *hub, nsec_t now);

/** path_driver_observe() - what the engine shows of its peers, hubs too. */
void path_driver_observe(struct path_driver *d, const struct observe *seen, nsec_t now);

/** path_driver_on_applied() - path_driver_routes() are in the engine: handshakes may begin. */
void path_driver_on_applied(struct path_driver *d);

/**
 * path_driver_next_handshake() - with whom to begin a handshake now
 * @ret_node:	the name; borrowed until the next snapshot
 *
 * Call after path_driver_on_applied(), until it is false.
 */
bool path_driver_next_handshake(
    struct path_driver *d, struct x25519_public *ret, const char **ret_node, nsec_t now);

/**
 * path_driver_retreat() - this process ends: paths that go through it are left for the relay
 *
 * Return: there were some, so path_driver_routes() has to be applied and the handshakes begun.
 */
bool path_driver_retreat(struct path_driver *d, nsec_t now);

/** path_driver_awaits_handshake() - is there a handshake that is wanted and was not seen yet? */
bool path_driver_awaits_handshake(const struct path_driver *d);

/** path_driver_routes() - of edges that do not go through the hub, by node; borrowed until the next
 * call. */
const struct render_path *path_driver_routes(struct path_driver *d, size_t *ret_n);

/** path_driver_hub_mtu() - inner bytes that the way to that hub and back carries; 0: not known. */
uint16_t path_driver_hub_mtu(const struct path_driver *d, const struct x25519_public *hub);

/** path_driver_pins() - do frames pass, and can the engine keep endpoints from changing? */
bool path_driver_pins(const struct path_driver *d);

/** path_driver_self() - what to report of this node; borrowed. */
const struct path_side *path_driver_self(const struct path_driver *d);

/** path_driver_outside() - at which address @server, a hub's endpoint, sees us; none: unknown. */
struct ip_addr path_driver_outside(const struct path_driver *d, const struct endpoint *server);

/** path_driver_may_be_at() - may the engine have that node at @at: does its direct path lead there,
 * or, where it has none, is some relay there? For struct peer_suspects_facts; @driver: a struct
 * path_driver. */
bool path_driver_may_be_at(const void *driver, const char *node, const struct endpoint *at);

/** path_driver_view() - a reach_view_fn: how that node is reached; false: it is no peer, or finds
 * no paths. @driver: a struct path_driver. */
bool path_driver_view(const void *driver, const char *node, struct path_view *ret, nsec_t now);

/** path_driver_encode_relays() - the relays through which @node may be reached; NULL: no memory. */
json_t *path_driver_encode_relays(const struct path_driver *d, const char *node);

/** path_driver_encode_pairs() - all pairs that were tried to reach @node; NULL: no such peer, or no
 * memory. */
json_t *path_driver_encode_pairs(const struct path_driver *d, const char *node, nsec_t now);
