/*
 * device_config.h - how a device is changed: its keys and peers, its rates, and by its interface.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/traffic.h"
#include "noise/profile.h"

struct device;
struct peer;
struct x25519_secret;
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

/** shaping_config_set() - of all that the interface sends; 0: none. Call
 * device_link_on_configured() afterwards. */
void shaping_config_set(struct device *d, uint64_t bits_per_s);

/** shaping_config_set_class() - of what is sent in @class; 0: none. */
void shaping_config_set_class(struct device *d, enum traffic_class class, uint64_t bits_per_s);

/** shaping_config_set_peer() - of what is sent to @peer; 0: none, as before it is removed. */
void shaping_config_set_peer(struct peer *peer, uint64_t bits_per_s);

/** shaping_config_show_dscp() - have datagrams carry the DSCP of the packets in them. */
void shaping_config_show_dscp(struct device *d, bool shows);

/*
 * Changing a device's keys and peers, as the configuration protocol asks for it.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */

/** device_config_set_key() - a new identity; all sessions end, a peer with that very key is
 * removed. */
void device_config_set_key(struct device *d, const struct x25519_secret *secret);

/**
 * device_config_hand_over() - let the interface stay, and have the listener told so
 *
 * Return: 0; -EOPNOTSUPP: the listener does not want to be; or another negative errno.
 */
int device_config_hand_over(struct device *d);

/** device_config_remove_peer() - end its session, and free it. */
void device_config_remove_peer(struct device *d, struct peer *peer);

/** device_config_remove_peers() - the same with all peers of @d, closing the gates once. */
void device_config_remove_peers(struct device *d);

/** device_config_set_keepalive() - persistent keepalives every @seconds; 0 turns them off; turned
 * on, the first is due at once. */
void device_config_set_keepalive(struct peer *peer, uint16_t seconds, nsec_t now);

/**
 * device_config_set_cipher() - which cipher the next session has
 *
 * A session in another cipher than the wanted one goes on until a new one
 * replaces it, which is asked for at once, or until it is too old.
 */
void device_config_set_cipher(struct peer *peer, struct noise_choice choice);

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

/**
 * device_link_set_peer_mtu() - what fits the path to @peer, in bytes; 0: what fits the interface
 *
 * Larger packets are answered with "too big". Call device_link_on_configured() after the last.
 */
void device_link_set_peer_mtu(struct peer *peer, uint16_t mtu);

/** device_link_on_configured() - have the kernel cut its superpackets so that one send carries what
 * the peers' MTUs allow, and takes no longer than the rate allows, where either has changed. */
void device_link_on_configured(struct device *d);
