/*
 * pmtu_driver.h - what one peer's direct path carries: path/pmtu.h, in inner bytes.
 *
 * Theory of operation. pmtu.h speaks of whole IP packets and knows nothing of how
 * its probes travel. Here they become sizes of path frames, each remembered with
 * the number that paths_probe() gives it until its answer comes, and the result
 * becomes the MTU of inner packets, which render puts into routes and engine.
 *
 * Pure: facts and times in; probes, an MTU and a deadline out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "path/pmtu.h"

/** Probes whose answers may still come: more than two rounds of a search. */
#define PMTU_DRIVER_PROBES 32

/** A probe on its way. */
struct pmtu_driver_probe {
    uint64_t id; /* as paths_probe() gave it */
    struct pmtu_probe probe;
};

struct pmtu_driver {
    struct pmtu pmtu;
    struct endpoint remote; /* whose path it is; none: there is no direct one */
    uint16_t mtu;           /* of inner packets; 0: not measured, or there is no path */
    uint16_t said;          /* the last that pmtu_driver_settled() told */
    unsigned next_probe;    /* place in @probes, whose probe is the oldest */
    struct pmtu_driver_probe probes[PMTU_DRIVER_PROBES];
};

/** What limits the packets of this machine. */
struct pmtu_driver_limits {
    uint16_t network_mtu; /* of inner packets, before anything is measured */
    uint16_t link_mtu;    /* inner bytes that the machine's largest link carries; 0: not known */
};

/** What is to be done. */
enum pmtu_driver_wish {
    PMTU_DRIVER_NONE,
    PMTU_DRIVER_PROBE, /* send one, and call pmtu_driver_sent() */
    PMTU_DRIVER_USE,   /* @mtu has changed */
};

/** pmtu_driver_new() - for a peer that has its first direct path. NULL: no memory. */
struct pmtu_driver *pmtu_driver_new(void);

/** pmtu_driver_free() - NULL is fine. Always NULL. */
struct pmtu_driver *pmtu_driver_free(struct pmtu_driver *pd);

/** pmtu_driver_on_path() - packets go to @remote directly. Return: it is another path than before.
 */
bool pmtu_driver_on_path(struct pmtu_driver *pd, const struct endpoint *remote,
    const struct pmtu_driver_limits *limits, nsec_t now);

/** pmtu_driver_on_path_lost() - there is no direct path any more. */
void pmtu_driver_on_path_lost(struct pmtu_driver *pd);

/** pmtu_driver_on_data() - data was @sent to the peer, or @heard from it, since the last call. */
void pmtu_driver_on_data(struct pmtu_driver *pd, bool sent, bool heard, nsec_t now);

/** pmtu_driver_on_fits() - the peer has got the probe of that number. False: it is forgotten. */
bool pmtu_driver_on_fits(struct pmtu_driver *pd, uint64_t id, nsec_t now);

/**
 * pmtu_driver_next() - what is to be done
 * @ret:	for PROBE: the probe
 * @ret_payload: for PROBE: bytes of UDP payload that make it so large
 *
 * Call after every event and when pmtu_driver_due() has come, until it is NONE.
 */
enum pmtu_driver_wish pmtu_driver_next(
    struct pmtu_driver *pd, struct pmtu_probe *ret, uint16_t *ret_payload, nsec_t now);

/** pmtu_driver_on_sent() - the probe went out, under that number. */
void pmtu_driver_on_sent(struct pmtu_driver *pd, const struct pmtu_probe *probe, uint64_t id);

/** pmtu_driver_settled() - bytes of IP packet that the path was found to carry; 0: no news. */
uint16_t pmtu_driver_settled(struct pmtu_driver *pd);

/** pmtu_driver_due() - when pmtu_driver_next() has something; NSEC_NEVER: not without an event. */
nsec_t pmtu_driver_due(const struct pmtu_driver *pd);
