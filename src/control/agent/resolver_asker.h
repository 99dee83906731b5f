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

/**
 * resolver_asker_is_local() - does the answer stay on this machine?
 * @asker:	who asks
 * @asked:	this machine's own address that was asked
 *
 * It does if it leaves by the loopback, or by a link of a kind that containers are reached by (a
 * bridge, one end of a pair) and the default route does not lead out by. Hardware, tunnels and a
 * bridge that this machine itself is connected by lead elsewhere. Asks the kernel, three times at
 * most.
 *
 * Return: false also when the kernel does not say.
 */
bool resolver_asker_is_local(
    struct netlink *nl, const struct endpoint *asker, const struct ip_addr *asked);
