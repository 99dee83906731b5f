/*
 * replay.h - the window that refuses repeated data messages.
 *
 * A ring of bit blocks: advancing clears whole blocks and never shifts. One
 * block is always being entered, so of REPLAY_BITS the last REPLAY_WINDOW
 * counters are remembered, as many as the Linux kernel's.
 *
 * Spec: whitepaper 5.4.6; algorithm of RFC 6479.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_BITS   8192               /* 1 KiB */
#define REPLAY_WINDOW (REPLAY_BITS - 64) /* counters that may arrive late */

struct replay {
    uint64_t next;                     /* one more than the greatest counter seen; 0 at first */
    uint64_t blocks[REPLAY_BITS / 64]; /* bit c % 64 of block (c / 64) % n: counter c was seen */
};

/** replay_init() - nothing seen. */
void replay_init(struct replay *w);

/**
 * replay_check() - has this counter been seen, and is it still in the window?
 * @w:		window; borrowed; one per receiving keypair
 * @counter:	from the data header, host order, already authenticated
 *
 * Marks @counter as seen. Call only after the tag verified, or a stranger
 * can move the window. No allocation, no clock.
 *
 * Threads: whoever holds the keypair's replay lock; see keypair_check_counters().
 *
 * Return: true if fresh; false if repeated, too old, or at the message limit
 * WG_REJECT_AFTER_MESSAGES.
 */
bool replay_check(struct replay *w, uint64_t counter);
