/*
 * edge_mtu.h - how long packets the direct path to a peer carries, the way to each hub and back,
 * and the way to a WireGuard without an agent.
 *
 * Theory of operation. path/pmtu.h works with sizes of whole IP packets and does not know
 * how its probes are sent. struct pmtu_driver turns each size into the size of a path frame,
 * and remembers each probe with the number that paths_probe() gave it, for when the
 * answer comes. It turns the result into the MTU of inner packets, which render uses
 * for routes and the engine.
 *
 * No I/O: frames and pings are made here and sent by the owner. Time is an argument.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/secret.h"
#include "crypto/x25519.h"
#include "path/pmtu.h"
#include "wire/path.h"

struct observation;
struct peer_traffic;
struct snapshot;

/** Number of latest probes that are remembered. It is more than two rounds of a search. */
#define PMTU_DRIVER_PROBES 32

/** A probe that was sent. */
struct pmtu_driver_probe {
    uint64_t id; /* as paths_probe() gave it */
    struct pmtu_probe probe;
};

struct pmtu_driver {
    struct pmtu pmtu;
    struct endpoint remote; /* other end of the direct path; none: there is no direct path */
    uint16_t mtu;           /* of inner packets, bytes; 0: not measured, or there is no path */
    bool is_both;           /* the last answer was as long as its question: the way back, too */
    uint16_t said;          /* what pmtu_driver_settled() returned last, other than 0 */
    unsigned next_probe;    /* index in @probes that is used next; its probe is the oldest */
    struct pmtu_driver_probe probes[PMTU_DRIVER_PROBES];
};

/** What limits the packets of this machine. */
struct pmtu_driver_limits {
    uint16_t network_mtu; /* the most, where @link_mtu is not known */
    uint16_t link_mtu;    /* largest inner packet that a link of this machine carries; 0: unknown */
};

/**
 * pmtu_driver_on_path() - packets go to @remote directly
 *
 * Return: true when this is another path than before.
 */
bool pmtu_driver_on_path(struct pmtu_driver *pd, const struct endpoint *remote,
    const struct pmtu_driver_limits *limits, nsec_t now);

/** pmtu_driver_set_limits() - what limits the packets of this machine is something else now. */
void pmtu_driver_set_limits(
    struct pmtu_driver *pd, const struct pmtu_driver_limits *limits, nsec_t now);

/** pmtu_driver_on_path_lost() - there is no direct path any more. */
void pmtu_driver_on_path_lost(struct pmtu_driver *pd);

/**
 * pmtu_driver_on_fits() - the peer received that probe
 * @is_whole:	its answer was as long
 *
 * Return: false: the probe is not known, or was answered before.
 */
bool pmtu_driver_on_fits(struct pmtu_driver *pd, uint64_t id, bool is_whole, nsec_t now);

/**
 * pmtu_driver_next() - what has to be done next
 * @ret:	set for PROBE: the probe
 * @ret_payload: set for PROBE: bytes of UDP payload that give the probe its size
 *
 * Call it after every event and when pmtu_due() has come, until it returns NONE.
 *
 * Return: PROBE: send a probe, then call pmtu_driver_on_sent(); SET: the driver's @mtu has changed,
 * use it.
 */
enum pmtu_action pmtu_driver_next(
    struct pmtu_driver *pd, struct pmtu_probe *ret, uint16_t *ret_payload, nsec_t now);

/** pmtu_driver_on_sent() - the probe was sent; @id is its number. */
void pmtu_driver_on_sent(struct pmtu_driver *pd, const struct pmtu_probe *probe, uint64_t id);

/** pmtu_driver_settled() - the path's MTU, bytes of IP packet, when newly found; 0: no news. */
uint16_t pmtu_driver_settled(struct pmtu_driver *pd);

/* ---- hubs ------------------------------------------------------------------------------------ */

/*
 * A hub relays, and has an address of its own in the network; both go by one way, between
 * WireGuard's port here and the hub's. It is measured as a direct path is, with one difference: the
 * hub does not measure its own direction, so it answers each probe with as many bytes
 * (docs/wire/path.md, "To a hub"), and what was answered has passed both ways. The result is used
 * for what is sent to the hub, reported to peers, who send no more through the hub than both ends'
 * ways carry, and said to the hub in the probes.
 */

/** Most hubs of a network whose ways are measured. */
#define HUB_MTU_MAX 16

struct hub_mtu {
    struct x25519_public key;
    struct path_keys keys; /* wiped with the way */
    struct pmtu_driver pmtu;
    uint64_t rx_bytes; /* as of the last look */
    uint64_t tx_bytes;
    bool owes; /* the hub has not been told of the present result */
};

struct hub_mtus {
    struct x25519_secret secret; /* of this node; wiped at the end */
    struct x25519_public own;
    struct rng rng;                     /* pins its context */
    uint64_t run;                       /* of this agent; random, never 0 */
    uint64_t sequence;                  /* of the last frame */
    struct hub_mtu *items[HUB_MTU_MAX]; /* owns */
    unsigned n;
};

/** A frame to be sent, from WireGuard's own port and with DF. */
struct hub_mtu_frame {
    struct endpoint to;
    size_t len;
    uint8_t bytes[PATH_FRAME_MAX];
};

/** hub_mtus_init() - nothing is measured yet. @secret: copied. */
void hub_mtus_init(struct hub_mtus *w, const struct x25519_secret *secret,
    const struct x25519_public *own, const struct rng *rng);

/** hub_mtus_set_secret() - the hubs know this node by that key from now on; copied. What is known
 * of the ways stays. */
void hub_mtus_set_secret(struct hub_mtus *w, const struct x25519_secret *secret);

/** hub_mtus_deinit() - wipe and release. */
void hub_mtus_deinit(struct hub_mtus *w);

/** hub_mtus_keep() - forget the ways to all hubs but these. */
void hub_mtus_keep(struct hub_mtus *w, const struct x25519_public *keys, unsigned n);

/**
 * hub_mtus_look() - what the engine shows of that hub; without memory, or where there are too many,
 *		     its way is not measured
 * @seen:	NULL: the engine has no such peer. Without a session a hub answers nobody.
 * @relayed:	what went through it, since any start
 *
 * Return: the way's MTU is another one than before.
 */
bool hub_mtus_look(struct hub_mtus *w, const struct x25519_public *key,
    const struct observation *seen, const struct peer_traffic *relayed,
    const struct pmtu_driver_limits *limits, nsec_t now);

/** hub_mtus_of() - inner bytes that the way to that hub and back carries; 0: not known. */
uint16_t hub_mtus_of(const struct hub_mtus *w, const struct x25519_public *key);

/**
 * hub_mtus_next() - the next frame to be sent
 * @wall:	time since 1970 by the hub's clock, which numbers the frames: a hub takes no older
 *		one. 0: not known yet; the way is measured, and the hub is not told
 * @ret_is_new: set when an MTU is another one than before; else untouched
 *
 * Call after every event and when hub_mtus_due() has come, until it returns false.
 */
bool hub_mtus_next(
    struct hub_mtus *w, struct hub_mtu_frame *ret, bool *ret_is_new, nsec_t wall, nsec_t now);

/**
 * hub_mtus_on_frame() - a datagram that begins with PATH_FRAME_TYPE
 * @frame:	@len bytes, any content; garbage afterwards if it was a hub's
 *
 * Return: false when it is no hub's.
 */
bool hub_mtus_on_frame(struct hub_mtus *w, uint8_t *frame, size_t len, nsec_t now);

/** hub_mtus_due() - when hub_mtus_next() has something; NSEC_NEVER: not without an event. */
nsec_t hub_mtus_due(const struct hub_mtus *w);

/* ---- peers without an agent ------------------------------------------------------------------ */

/*
 * A stock WireGuard answers no path frames, but its kernel answers pings, with as many bytes as it
 * was asked. So a ping of a size that comes back has passed both ways, from end to end, whoever
 * relays it. It is measured as a direct path is: as soon as there is a session with it, and
 * confirmed while data moves. Of what answers no ping at all nothing is known, and it is sent what
 * every path carries.
 *
 * A ping is an inner packet, which counts in the engine's counters of the peer; what is counted
 * beyond our own is data.
 *
 * A ping that was too long for the next part of its way may have come in fragments, and so may its
 * answer. So the most is what the way to the hub that relays it is known to carry.
 */

struct stock_mtu {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key;
    struct ip_addr address;   /* IPv4, inside the tunnel */
    struct pmtu_driver *pmtu; /* owns; NULL: no session was seen yet */
    bool has_session;
    bool is_reported;   /* the log says that it answers nothing */
    uint64_t rx_bytes;  /* as of the last look */
    uint64_t tx_bytes;  /* the same without our pings; the most that was seen */
    uint64_t own_bytes; /* of our pings */
};

struct stock_mtus {
    struct rng rng;          /* pins its context */
    struct stock_mtu *items; /* owns; sorted by node */
    size_t n;
};

/** A ping to be sent: an echo request with that cookie (wire/ip.h), DF clear. */
struct stock_ping {
    struct ip_addr to;
    uint16_t len; /* of the inner IPv4 packet, with its header */
    uint64_t cookie;
};

/** stock_mtus_deinit() - release all. */
void stock_mtus_deinit(struct stock_mtus *w);

/** stock_mtus_take() - the stock peers of a new snapshot. Return: 0; -ENOMEM: nothing changed. */
int stock_mtus_take(struct stock_mtus *w, const struct snapshot *s);

/** stock_mtus_look() - what the engine shows of one of them; @seen: NULL: it has no such peer. */
void stock_mtus_look(struct stock_mtu *peer, const struct observation *seen,
    const struct pmtu_driver_limits *limits, nsec_t now);

/** stock_mtus_of() - inner bytes that the way to that peer and back carries; 0: not known. */
uint16_t stock_mtus_of(const struct stock_mtu *peer);

/**
 * stock_mtus_next() - the next ping to be sent
 * @ret_is_new:	set when an MTU is another one than before; else untouched
 *
 * Call after every event and when stock_mtus_due() has come, until it returns false.
 */
bool stock_mtus_next(struct stock_mtus *w, struct stock_ping *ret, bool *ret_is_new, nsec_t now);

/** stock_mtus_on_answer() - the answer to the ping with that cookie, as long, has come. */
void stock_mtus_on_answer(
    struct stock_mtus *w, const struct ip_addr *from, uint64_t cookie, nsec_t now);

/** stock_mtus_due() - when stock_mtus_next() has something; NSEC_NEVER: not without an event. */
nsec_t stock_mtus_due(const struct stock_mtus *w, nsec_t now);
