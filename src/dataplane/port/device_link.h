/*
 * device_link.h - a device follows its interface: up and down, MTU, moved, deleted.
 *
 * While the interface is down no message is sent or taken, and there are no sessions.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct device;
struct peer;
struct port;

/** device_link_watch() - begin to hear of changes, in the port's loop. 0 or negative errno. */
int device_link_watch(struct device *d);

/** device_link_stop() - act as if the interface went down, and hear of no more changes. */
void device_link_stop(struct device *d);

/** device_link_read() - learn what has changed, and act on it. */
void device_link_read(struct device *d);

/** device_link_bind_again() - open the sockets of a port that was taken, if that is due at @now.
 * Returns when it is due next; NSEC_NEVER: it was had, or nobody wants it. */
nsec_t device_link_bind_again(struct port *p, nsec_t now);

/**
 * device_link_set_peer_mtu() - what fits the path to @peer, in bytes; 0: what fits the interface
 *
 * Larger packets are answered with "too big". Call device_link_on_configured() after the last.
 */
void device_link_set_peer_mtu(struct peer *peer, uint16_t mtu);

/** device_link_on_configured() - have the kernel cut its superpackets so that one send carries what
 * the peers' MTUs allow, and takes no longer than the rate allows, where either has changed. */
void device_link_on_configured(struct device *d);
