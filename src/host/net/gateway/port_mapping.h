/*
 * port_mapping.h - asking the router for a UDP port: NAT-PMP, else UPnP IGD.
 *
 * A router at home or in an office may forward a port, so that others can reach
 * this machine before it has sent them anything. Calls block for at most about
 * six seconds, so they belong in a thread of their own. IPv4 only.
 *
 * The router is not authenticated. So the address that it reports is only used
 * as one more address to try.
 *
 * Spec: RFC 6886 (NAT-PMP); UPnP WANIPConnection:1.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

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
    nsec_t lifetime;          /* time until it ends unless renewed; NSEC_NEVER: it stays */
};

/** There is no router that maps ports, or it has refused. */
#define PORT_MAPPING_E_REFUSED 1

/** port_mapping_kind_names - "", "NAT-PMP", "UPnP". */
extern const char *const port_mapping_kind_names[];

/**
 * port_mapping_ask() - ask for a mapping of @internal_port, or renew one
 * @before:	the mapping to be renewed, by the same protocol; NULL: there is none
 *
 * Return: 0; PORT_MAPPING_E_REFUSED with words.
 */
int port_mapping_ask(struct port_mapping *ret, uint16_t internal_port,
    const struct port_mapping *before, struct err *e);

/** port_mapping_remove() - ask the router to end the mapping; no answer is needed. */
void port_mapping_remove(const struct port_mapping *pm);
