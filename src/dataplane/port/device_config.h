/*
 * device_config.h - how a device is changed: its keys and peers, its rates, and by its interface.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct device;
struct pace;
struct peer;
struct port;
struct x25519_public;
struct x25519_secret;

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
 * The keys of a device and of its peers, as the configuration protocol asks for it.
 *
 * Theory of operation. Either end of a pair may change its key while packets go on. It gets the
 * next one beside its own, and from then on answers under both: what is addressed to which is told
 * by mac1 (worker/addressee.h). The other end is told of it, and takes a handshake under either key
 * for one with the same peer. Then the first end initiates under its next key, and when all have a
 * session that was begun so, each end has the next key as the only one. Session keys are of the
 * handshake, so no change of a key ends a session; handshakes under way between keys that are no
 * more begin again.
 *
 *     set_next_key, set_peer_next   answers under both; initiates as before
 *     initiate_with_next            the device begins a session with each peer under its next key,
 *                                   and with a peer that was heard under its next one, to that
 *     set_key, use_peer_next        the next key is the key; the one before is wiped
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */

/** device_config_set_key() - that of the device: its next one goes on with all sessions; any other
 * is a new identity, so all sessions end. A peer with that very key is removed. */
void device_config_set_key(struct device *d, const struct x25519_secret *secret);

/** device_config_set_next_key() - all zeroes: none, and nothing is answered under the one that
 * was. 0; -EINVAL: the device has no key, or that very one; -ENOMEM. */
int device_config_set_next_key(struct device *d, const struct x25519_secret *secret);

/** device_config_initiate_with_next() - 0; -EINVAL: the device has no next key. */
int device_config_initiate_with_next(struct device *d, bool on);

/** device_config_set_peer_next() - all zeroes: none. 0; -EEXIST: another peer has that key, or the
 * device; -ENOMEM. */
int device_config_set_peer_next(struct peer *peer, const struct x25519_public *public);

/** device_config_use_peer_next() - @peer, which has a next key, goes on with it alone. */
void device_config_use_peer_next(struct peer *peer);

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
