/*
 * addressee.h - which of a port's devices is a handshake message for?
 *
 * Only the message's mac1 says so, and each device that is tried costs a hash, or two while it goes
 * over to another key. A node has one device, and tries that. A hub has one for each network, and
 * anybody may send messages whose mac1 is right for none of them, from any address: so the number
 * of tries is bounded.
 *
 * Theory of operation. A table remembers by source (an IPv4 address, or an IPv6 /64) for which
 * device its last right message was; that one is tried first and costs nothing of what follows. All
 * others are tried at the expense of the source and of the worker's whole: 1,000 tries a second and
 * source, 200,000 in all, which is about a tenth of a core. So a flood from one address ends at
 * the first bound, one from forged addresses at the second, and whoever had a session before is
 * served beside either. A new member's initiation is repeated by WireGuard until it gets through.
 * Who forges a member's own address uses up the tries of that source, but not the device that is
 * remembered for it.
 *
 * Threads: the rx worker that it belongs to, inside the gate.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/containers.h"
#include "base/drop.h"
#include "base/rate.h"
#include "shared/handshake_queue.h"

/** What a try costs: 1,000 a second of one source, 200,000 of all; after a rest so much at once. */
#define ADDRESSEE_SOURCE_COST  (NSEC_PER_SEC / 1000)
#define ADDRESSEE_SOURCE_BURST NSEC_PER_SEC
#define ADDRESSEE_COST         (NSEC_PER_SEC / 200000)
#define ADDRESSEE_BURST        (20 * NSEC_PER_MSEC)

/** What is known of a source: an entry of the table. */
struct addressee_source {
    uint64_t source;             /* its address, hashed under the seed; 0: nobody's */
    const struct device *device; /* of its last right message; only compared, may be gone */
    struct rate tries;           /* at its expense */
};

struct addressee {
    uint64_t seed;                    /* secret, for hash_bytes() */
    struct rate tries;                /* all of them */
    uint64_t n_tries;                 /* ever */
    struct addressee_source *sources; /* owns ADDRESSEE_SOURCES */
};

/** addressee_init() - @seed: random, unknown to strangers. 0 or -ENOMEM. */
int addressee_init(struct addressee *a, uint64_t seed);

/** addressee_deinit() - release. */
void addressee_deinit(struct addressee *a);

/**
 * addressee_find() - the device for whose key @msg is made, or for its next key
 * @devices:	of struct device, by siblings
 * @msg:	@len bytes: an initiation or a response
 * @ret_why:	set when there is none: DROP_MAC1_INVALID, or DROP_SEARCH_LIMITED: it was not sought
 *
 * Return: without a device where there is none.
 */
struct handshake_to addressee_find(struct addressee *a, const struct list *devices,
    const struct ip_addr *from, const uint8_t *msg, size_t len, nsec_t now,
    enum drop_reason *ret_why);
