/*
 * stock_mtu.h - how long packets a stock WireGuard takes, by pings through the tunnel.
 *
 * Theory of operation. A stock WireGuard answers no path frames, but its kernel answers pings, with
 * as many bytes as it was asked. So a ping of a size that comes back has passed both ways, from
 * end to end, whoever relays it. It is measured as a direct path is (pmtu_driver.h): as soon as
 * there is a session with it, and confirmed while data moves. Of what answers no ping at all
 * nothing is known, and it is sent what every path carries.
 *
 * A ping is an inner packet, which counts in the engine's counters of the peer; what is counted
 * beyond our own is data.
 *
 * A ping that was too long for the next part of its way may have come in fragments, and so may its
 * answer. So the most is what the way to the hub that relays it is known to carry.
 *
 * No I/O: pings are made here and sent by the owner. Time is an argument.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/paths/edge/pmtu_driver.h"
#include "base/parse.h"
#include "base/rng.h"
#include "crypto/x25519.h"

struct peer_seen;
struct snapshot;

struct stock_mtu {
    char node[NAME_MAX_LEN + 1];
    struct x25519_public key;
    struct ip_addr address;   /* IPv4, inside the tunnel */
    struct pmtu_driver *pmtu; /* owns; NULL: no session was seen yet */
    bool has_session;
    bool is_told;       /* the log says that it answers nothing */
    uint64_t rx_bytes;  /* as of the last look */
    uint64_t tx_bytes;  /* the same without our pings; the most that was seen */
    uint64_t own_bytes; /* of our pings */
};

struct stock_mtus {
    struct rng rng;          /* pins its context */
    struct stock_mtu *items; /* owns; sorted by node */
    size_t n;
};

/** A ping to be sent: an echo request with that cookie (wire/echo.h), DF clear. */
struct stock_ping {
    struct ip_addr to;
    uint16_t len; /* of the inner IPv4 packet, with its header */
    uint64_t cookie;
};

/** stock_mtus_init() - there are no peers yet. */
void stock_mtus_init(struct stock_mtus *w, const struct rng *rng);

/** stock_mtus_deinit() - release all. Idempotent. */
void stock_mtus_deinit(struct stock_mtus *w);

/** stock_mtus_take() - the stock peers of a new snapshot. Return: 0; -ENOMEM: nothing changed. */
int stock_mtus_take(struct stock_mtus *w, const struct snapshot *s);

/** stock_mtus_look() - what the engine shows of one of them; @seen: NULL: it has no such peer. */
void stock_mtus_look(struct stock_mtu *peer, const struct peer_seen *seen,
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
