/*
 * device_internal.h - changing a device, for dataplane/ only. All under the port's lock.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "noise/choice.h"

struct device;
struct peer;
struct port;
struct x25519_secret;

/** device__set_key() - a new identity; all sessions end, a peer with that very key is removed. */
void device__set_key(struct device *d, const struct x25519_secret *secret);

/**
 * device__hand_over() - let the interface stay, and have the listener told so
 *
 * Return: 0; -EOPNOTSUPP: the listener does not want to be; or another negative errno.
 */
int device__hand_over(struct device *d);

void device__remove_peer(struct device *d, struct peer *peer);
void device__remove_peers(struct device *d);

/** device__set_keepalive() - 0 turns it off; turned on, the first is due at once. */
void device__set_keepalive(struct peer *peer, uint16_t seconds, nsec_t now);

/**
 * device__set_peer_mtu() - what fits the path to @peer; 0: what fits the interface
 *
 * Larger packets are answered with "too big". Call device__fit_segments() after the last.
 */
void device__set_peer_mtu(struct peer *peer, uint16_t mtu);

/** device__fit_segments() - the kernel's superpackets to one send of what the peers' MTUs allow. */
void device__fit_segments(struct device *d);

/**
 * device__set_cipher() - which cipher the next session has
 *
 * A session in another cipher than the wanted one goes on until a new one
 * replaces it, which is asked for at once, or until it is too old.
 */
void device__set_cipher(struct peer *peer, struct noise_choice choice);

/** device__on_link() - the interface changed: up, down, MTU, moved, deleted. */
void device__on_link(struct device *d);

/** device__bind_again() - have the port that could not be had, when it is time. */
void device__bind_again(struct port *p, nsec_t now);
