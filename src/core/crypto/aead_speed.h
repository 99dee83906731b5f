/*
 * aead_speed.h - how fast is a cipher on this machine?
 *
 * Measured, not looked up from the CPU's features: it is the machine, with the
 * libraries that it has, that a choice between ciphers is about. Nodes announce
 * the figures, and the AES profile is taken where both ends gain (mesh/render/render.h).
 */
#pragma once

#include "base/clock.h"
#include "crypto/aead.h"

/** Where the measurement takes the time from, as clock_now(). */
typedef nsec_t (*aead_clock_fn)(void);

/** The inner packet that is measured with: that of an MTU of 1420. */
#define AEAD_SPEED_PACKET 1420

/**
 * aead_speed() - megabytes (10^6) that one core seals and opens in a second
 * @alg:	from aead_best()
 * @budget:	how long to measure; a few milliseconds are enough
 * @clock:	monotonic
 *
 * Of many short runs the fastest counts, so that a busy machine is not taken
 * for a slow one. Packets lie in the cache, as those of a batch do.
 *
 * Return: MB/s, the mean of sealing and opening; 0 when there is no memory or
 * the clock does not move.
 */
uint32_t aead_speed(const struct aead_algorithm *alg, nsec_t budget, aead_clock_fn clock);
