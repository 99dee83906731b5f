/*
 * port_mapping.h - asking the router for a UDP port: NAT-PMP, else UPnP IGD.
 *
 * What a home's or an office's router may grant, so that others can reach this
 * machine without having been spoken to. Calls block, at most about as long as
 * PORT_MAPPING_TIMEOUT says: they belong in a thread of their own. IPv4 only.
 *
 * The router is not authenticated by anything but being the router; what it
 * says is an address to try, and no more.
 *
 * Spec: RFC 6886 (NAT-PMP); UPnP WANIPConnection:1.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

struct err;

enum port_mapping_kind {
    PORT_MAPPING_NONE,
    PORT_MAPPING_NAT_PMP,
    PORT_MAPPING_UPNP,
    PORT_MAPPING_N,
};

/** What a router has granted. */
struct port_mapping {
    enum port_mapping_kind kind;
    uint16_t internal_port;   /* ours, host order */
    struct endpoint external; /* where others reach it */
    nsec_t lifetime;          /* to be renewed before; NSEC_NEVER: until it is removed */
};

/** No router here grants ports, or it does not want to. */
#define PORT_MAPPING_E_REFUSED 1

#define PORT_MAPPING_TIMEOUT (6 * NSEC_PER_SEC)

/** port_mapping_kind_name() - "", "NAT-PMP", "UPnP". */
const char *port_mapping_kind_name(enum port_mapping_kind kind);

/**
 * port_mapping_ask() - for @internal_port, or once more for what was granted before
 * @before:	what there is, to be renewed by the same protocol; NULL: nothing
 *
 * Return: 0; PORT_MAPPING_E_REFUSED with words.
 */
int port_mapping_ask(struct port_mapping *ret, uint16_t internal_port,
    const struct port_mapping *before, struct err *e);

/** port_mapping_remove() - give it back; a router that does not answer forgets it by itself. */
void port_mapping_remove(const struct port_mapping *pm);
