/*
 * tx_shaped.h - the way out of an interface that has a rate.
 *
 * The rate is below that of the link behind us, so that packets wait here, where there is a choice
 * (class_sched.h), and not in a queue of somebody else's. They wait in the interface's queues in
 * the kernel: nothing is read before it may be sent, but for a frame whose peer turns out to have a
 * rate of its own. That frame is kept until then, and what is behind it in its queue waits with it.
 *
 * While nothing waits for its time the queues may be lent, as without a rate (tx.c): then
 * tx_shaped_serve() sends on the rx worker's thread, and gives up as soon as something has to wait.
 *
 * Threads: the worker's own for tx_shaped_turn(), whoever it belongs to for tx_shaped_serve() and
 * tx_shaped_is_on(); the others under the port's lock.
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

/** What a turn has found. */
enum tx_shaped_result {
    TX_SHAPED_GONE, /* the interface is */
    TX_SHAPED_GO_ON,
    TX_SHAPED_IDLE, /* there is nothing to send, and of late nothing had to wait: lend the queues */
};

/** tx_shaped_turn() - send what may be sent now, or sleep until there is something, or it may be
 * sent, or the worker is woken; it does not sleep when the queues may be lent. */
enum tx_shaped_result tx_shaped_turn(struct tx_worker *w);

/**
 * tx_shaped_serve() - send what waits in queues that were lent
 *
 * Inside the port's gate. It ends after a few sends even if more waits, as the sockets wait
 * meanwhile; for what is left the queues are found to be ready again.
 *
 * Return: false when something has to wait for its time, or there is much, or the interface is
 * gone: the worker's own thread is to go on.
 */
bool tx_shaped_serve(struct tx_worker *w);
