/*
 * hub_mtu.h - how long packets the way to each hub and back carries.
 *
 * Theory of operation. A hub relays, and has an address of its own in the network; both go by one
 * way, between WireGuard's port here and the hub's. It is measured as a direct path is
 * (pmtu_driver.h), with one difference: the hub does not measure its own direction, so it answers
 * each probe with as many bytes (docs/wire/path.md, "To a hub"), and what was answered has passed
 * both ways. The result is used for what is sent to the hub, reported to peers, who send no more
 * through the hub than both ends' ways carry, and said to the hub in the probes.
 *
 * No I/O: frames are made here and sent by the owner. Time is an argument.
 *
 * Threads: the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/paths/edge/pmtu_driver.h"
#include "base/rng.h"
#include "wire/path.h"

/** Most hubs of a network whose ways are measured. */
#define HUB_MTU_MAX 16

/** What the engine shows of a hub. */
struct hub_mtu_facts {
    struct endpoint at; /* where its packets go; none: not known */
    bool has_session;   /* without one a hub answers nobody */
    uint64_t rx_bytes;  /* heard from it, with all that it relays; since any start */
    uint64_t tx_bytes;  /* sent to it, likewise */
};

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

/** hub_mtus_deinit() - wipe and release. Idempotent. */
void hub_mtus_deinit(struct hub_mtus *w);

/** hub_mtus_keep() - forget the ways to all hubs but these. */
void hub_mtus_keep(struct hub_mtus *w, const struct x25519_public *keys, unsigned n);

/**
 * hub_mtus_look() - what the engine shows of that hub; without memory, or where there are too many,
 *		     its way is not measured
 *
 * Return: the way's MTU is another one than before.
 */
bool hub_mtus_look(struct hub_mtus *w, const struct x25519_public *key,
    const struct hub_mtu_facts *facts, const struct pmtu_driver_limits *limits, nsec_t now);

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
