/*
 * device_config.h - changing a device's keys and peers, as the configuration protocol asks for it.
 *
 * Threads: all calls are under the port's lock, outside the gates.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "noise/profile.h"

struct device;
struct peer;
struct x25519_secret;

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
