/*
 * tx_shaped.h - the way out of an interface that has a rate.
 *
 * The rate is below that of the link behind us, so that packets wait here, where there is a choice
 * (class_sched.h), and not in a queue of somebody else's. They wait in the interface's queues in
 * the kernel: nothing is read before it may be sent, but for a frame whose peer turns out to have a
 * rate of its own. That frame is kept until then, and what is behind it in its queue waits with it.
 *
 * Threads: the worker's own for tx_shaped_turn() and tx_shaped_is_on(); the others under the port's
 * lock.
 */
#pragma once

#include <stdbool.h>

struct tx_shaper;
struct tx_worker;

/** tx_shaper_new() - has nothing to send; 0 or -ENOMEM. */
int tx_shaper_new(struct tx_shaper **ret);

/** tx_shaper_free() - release; what it keeps is lost. NULL is fine. Always NULL. */
struct tx_shaper *tx_shaper_free(struct tx_shaper *s);

/** tx_shaped_is_on() - is the interface's rate to be kept, or something left that waited for one?
 */
bool tx_shaped_is_on(const struct tx_worker *w);

/**
 * tx_shaped_turn() - send what may be sent now, or sleep until there is something, or it may be
 * sent, or the worker is woken
 *
 * Return: false when the interface is gone.
 */
bool tx_shaped_turn(struct tx_worker *w);
