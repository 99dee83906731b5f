/*
 * relay_device.h - a device that relays between those of its peers that it is told to.
 *
 * A node may be a relay as a hub is one (relay.h): members that have a session
 * with it, and no better path to each other, send through it. Which they are is
 * said over the configuration protocol (docs/DATAPLANE.md); where each is, the
 * device learns from that peer's own session, and tells the router.
 *
 * One device of a port can relay. A hub, whose relay serves all devices of its
 * port, has its own (hub/overlay/overlay.h).
 *
 * Threads: all calls are under the port's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct device;
struct peer;
struct udp_path;

/**
 * relay_device_set() - begin or end relaying
 *
 * Ending forgets all that was relayed. Begin after the device has its key.
 *
 * Return: 0; -EINVAL without a key; -EBUSY when something else filters the port; -ENOMEM.
 */
int relay_device_set(struct device *d, bool on);

/**
 * relay_device_set_peer() - may this peer be relayed to all others that may be?
 *
 * Kept also while the device does not relay. False ends what is relayed for it at once.
 *
 * Return: 0 or -ENOMEM.
 */
int relay_device_set_peer(struct peer *peer, bool on);

/** relay_device_on_keys() - the keys that @peer speaks under have changed. */
void relay_device_on_keys(struct peer *peer);

/** relay_device_on_our_keys() - those of the device have. */
void relay_device_on_our_keys(struct device *d);

/** relay_device_forget() - end what is relayed for @peer, which goes. */
void relay_device_forget(struct peer *peer);

/** relay_device_on_heard() - an authentic packet of @peer came by @path. */
void relay_device_on_heard(struct peer *peer, const struct udp_path *path);

/** relay_device_has_index() - does @peer send with this receiver index to somebody else? */
bool relay_device_has_index(const struct peer *peer, uint32_t index);

/** relay_device_expire() - give back leases that are over and look at the line, if that is due at
 * @now. Returns when it is due next; NSEC_NEVER: the device does not relay. */
nsec_t relay_device_expire(struct device *d, nsec_t now);
