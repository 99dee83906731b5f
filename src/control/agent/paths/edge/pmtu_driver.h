/*
 * pmtu_driver.h - finds the MTU of one peer's direct path, or of the way to a hub, with
 * path/pmtu.h.
 *
 * Theory of operation. pmtu.h works with sizes of whole IP packets and does not know
 * how its probes are sent. This part turns each size into the size of a path frame,
 * and remembers each probe with the number that paths_probe() gave it, for when the
 * answer comes. It turns the result into the MTU of inner packets, which render uses
 * for routes and the engine.
 *
 * Pure: facts and times in; probes, an MTU and a deadline out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "path/pmtu.h"

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

/** What the caller has to do. */
enum pmtu_driver_wish {
    PMTU_DRIVER_NONE,
    PMTU_DRIVER_PROBE, /* send a probe, then call pmtu_driver_on_sent() */
    PMTU_DRIVER_USE,   /* the driver's @mtu has changed: use it */
};

/** pmtu_driver_new() - for a peer that has its first direct path. NULL: no memory. */
struct pmtu_driver *pmtu_driver_new(void);

/** pmtu_driver_free() - NULL is fine. Always NULL. */
struct pmtu_driver *pmtu_driver_free(struct pmtu_driver *pd);

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

/** pmtu_driver_on_data() - data was @sent to the peer, or @heard from it, since the last call. */
void pmtu_driver_on_data(struct pmtu_driver *pd, bool sent, bool heard, nsec_t now);

/**
 * pmtu_driver_on_fits() - the peer received that probe
 * @is_whole:	its answer was as long
 *
 * Return: false: the probe is not known, or was answered before.
 */
bool pmtu_driver_on_fits(struct pmtu_driver *pd, uint64_t id, bool is_whole, nsec_t now);

/** pmtu_driver_both() - the MTU of the way there and back; 0: not known. */
uint16_t pmtu_driver_both(const struct pmtu_driver *pd);

/**
 * pmtu_driver_next() - what has to be done next
 * @ret:	set for PROBE: the probe
 * @ret_payload: set for PROBE: bytes of UDP payload that give the probe its size
 *
 * Call it after every event and when pmtu_driver_due() has come, until it returns NONE.
 */
enum pmtu_driver_wish pmtu_driver_next(
    struct pmtu_driver *pd, struct pmtu_probe *ret, uint16_t *ret_payload, nsec_t now);

/** pmtu_driver_on_sent() - the probe was sent; @id is its number. */
void pmtu_driver_on_sent(struct pmtu_driver *pd, const struct pmtu_probe *probe, uint64_t id);

/** pmtu_driver_settled() - the path's MTU, bytes of IP packet, when newly found; 0: no news. */
uint16_t pmtu_driver_settled(struct pmtu_driver *pd);

/** pmtu_driver_due() - when pmtu_driver_next() has something; NSEC_NEVER: not without an event. */
nsec_t pmtu_driver_due(const struct pmtu_driver *pd);
