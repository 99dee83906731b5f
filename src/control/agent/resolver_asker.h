/*
 * resolver_asker.h - is who asks the node's name server this machine, or a container of it?
 *
 * An overlay address is taken from whatever interface a packet comes in by, so a neighbour of this
 * machine, or a member of another overlay on it, may ask as well. Both are strangers here.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"

struct netlink;

enum resolver_asker {
    RESOLVER_ASKER_STRANGER,
    RESOLVER_ASKER_MACHINE, /* by whichever of its addresses: any of its users has them all */
    RESOLVER_ASKER_CONTAINER,
};

/**
 * resolver_asker_find() - does the answer stay on this machine?
 * @asker:	who asks
 * @asked:	this machine's own address that was asked
 *
 * It does if it leaves by the loopback, or by a link of a kind that containers are reached by (a
 * bridge, one end of a pair) and the default route does not lead out by. Hardware and tunnels lead
 * elsewhere, and so does a bridge that has one of them for a port (hardware, a VLAN, a bond, a
 * VXLAN). Asks the kernel, a few times.
 *
 * Return: a stranger also when the kernel does not say.
 */
enum resolver_asker resolver_asker_find(
    struct netlink *nl, const struct endpoint *asker, const struct ip_addr *asked);

/** resolver_asker_is_port_inside() - does a bridge's port of that kind stay on this machine? */
bool resolver_asker_is_port_inside(const char *kind);
