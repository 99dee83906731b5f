/*
 * retire.h - keypairs that no slot of a peer has any more: freed when no data thread can see them.
 *
 * They leave the index table at once. A worker that found one before may use it until it leaves
 * the port's gate, so a grace period (os/thread.h) comes before the free; many share one.
 *
 * Threads: under the port's lock.
 */
#pragma once

#include "base/clock.h"

struct htab_link;
struct keypairs_evicted;
struct port;

/** What a port has of them. */
struct retired {
    struct htab_link *first; /* keypairs, by link.next; owns a reference each */
    unsigned n;
    nsec_t due; /* when to free them; NSEC_NEVER: none waits */
};

#define RETIRED_NULL                                                                               \
    {                                                                                              \
        .due = NSEC_NEVER                                                                          \
    }

/** retire_keypairs() - take those of @evicted out of the index now, and free them later; takes
 * their references. */
void retire_keypairs(struct port *p, const struct keypairs_evicted *evicted);

/** retire_reclaim() - wait until nobody is in the port's gate, and free all of them. */
void retire_reclaim(struct port *p);

/** retire_tick() - reclaim, if it is time or if they are many. Returns when it is time next;
 * NSEC_NEVER: none waits. */
nsec_t retire_tick(struct port *p, nsec_t now);
