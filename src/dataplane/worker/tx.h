/*
 * tx.h - the tx workers of a device: threads that read its interface, and send.
 *
 * Threads: all calls but tx_drops() are under the port's lock, outside the gates, or before the
 * device is known to anybody.
 */
#pragma once

#include <stdint.h>

#include "base/drop.h"

struct device;

/** tx_init() - the workers of @d, without their threads. 0 or negative errno; after a failure, too,
 * tx_deinit() is to be called. */
int tx_init(struct device *d);

/** tx_deinit() - release, after tx_stop(). */
void tx_deinit(struct device *d);

/** tx_start() - their threads. 0 or negative errno; after a failure some may run: tx_stop(). */
int tx_start(struct device *d);

/** tx_stop() - end those threads that run, and wait for it. Idempotent. */
void tx_stop(struct device *d);

/** tx_wake() - have each look again at what it waits for. */
void tx_wake(struct device *d);

/** tx_drops() - add what they have dropped to @sum. Any thread, while @d is there. */
void tx_drops(const struct device *d, uint64_t sum[static DROP_REASON_N]);
