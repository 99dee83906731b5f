/*
 * device_config.h - how a device is changed: its keys and peers, its rates, and by its interface.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

struct device;
struct pace;
struct peer;
struct port;

/*
 * The rates of an interface, of its classes and of its peers: set and ended.
 *
 * With the first rate the interface's queues are sorted by class (net/tun/tun.h), which is
 * undone with the last one that ends. While the interface itself has one, its superpackets are so
 * short that none holds up the others for long. Rates are in bit/s, of IPv4 datagrams with their
 * headers, as traffic_rate_is_allowed() allows.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */

/** shaping_config_set() - @pace, of the interface, of a class of it or of a peer; 0: none, as
 * before a peer is removed. */
void shaping_config_set(struct device *d, struct pace *pace, uint64_t bits_per_s);

/*
 * Removing a device's peers, as the configuration protocol asks for it.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */

/** device_config_remove_peer() - end its session, and free it. */
void device_config_remove_peer(struct device *d, struct peer *peer);

/** device_config_remove_peers() - the same with all peers of @d, closing the gates once. */
void device_config_remove_peers(struct device *d);

/*
 * A device follows its interface: up and down, MTU, moved, deleted.
 *
 * While the interface is down no message is sent or taken, and there are no sessions.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */

/** device_link_watch() - begin to hear of changes, in the port's loop. 0 or negative errno. */
int device_link_watch(struct device *d);

/** device_link_stop() - act as if the interface went down, and hear of no more changes. */
void device_link_stop(struct device *d);

/** device_link_read() - learn what has changed, and act on it. */
void device_link_read(struct device *d);

/** device_link_bind_again() - open the sockets of a port that was taken, if that is due at @now.
 * Returns when it is due next; NSEC_NEVER: it was had, or nobody wants it. */
nsec_t device_link_bind_again(struct port *p, nsec_t now);

/** device_link_on_configured() - have the kernel cut its superpackets so that one send carries what
 * the peers' MTUs allow, and takes no longer than the rate allows, where either has changed. */
void device_link_on_configured(struct device *d);
