/*
 * rx_waiter.h - what one rx worker waits for: its sockets, being woken, and events of others.
 *
 * Below the worker itself (rx.h), so that whoever changes sockets (gates.c), wakes the
 * worker, or lends it queues to wait for (tx.h) need not know what it does with a packet.
 *
 * Theory of operation. A worker sleeps in epoll_wait() outside the port's gate, enters the gate,
 * and looks at what is ready. Sockets and events are changed under the port's lock with the gate
 * closed, and epoll knows them by numbers rather than by pointers: what was removed between the
 * wait and the gate is then not found, instead of being used after it was freed.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/containers.h"
#include "net/socket/udp_batch.h"
#include "os/thread.h"

/** A descriptor that an rx worker waits for beside its sockets, while its owner wants that. */
struct rx_event {
    int fd;                /* borrows */
    void (*fn)(void *ctx); /* runs on the worker's thread, inside the port's gate */
    void *ctx;             /* pins */
    struct list siblings;  /* in the waiter's events */
    uint64_t number;       /* no other event of the waiter has had it, nor will */
};

struct rx_waiter {
    struct gate *gate;               /* pins: the port's */
    const _Atomic bool *is_stopping; /* pins: the worker ends, or has ended */
    int wake_fd;                     /* owns: see os/thread.h */
    int epoll_fd;                    /* owns: of wake_fd, the sockets, and events */
    _Atomic uint32_t turn;           /* of the worker's loop, counted by the worker */

    /* Under the port's lock with the gate closed; the worker reads them inside the gate. */
    struct udp_sockets sockets; /* owns. The kernel spreads senders over the workers' sockets */
    struct list events;         /* of struct rx_event */

    uint64_t next_number; /* of the next event; under the port's lock */
};

/** rx_waiter_init() - without sockets and events; pins @gate and @is_stopping. 0 or negative errno;
 * after a failure, too, it is to be given to rx_waiter_deinit(). */
int rx_waiter_init(struct rx_waiter *w, struct gate *gate, const _Atomic bool *is_stopping);

/** rx_waiter_deinit() - release, when the worker has ended and its sockets are closed. Once. */
void rx_waiter_deinit(struct rx_waiter *w);

/**
 * rx_waiter_watch_sockets() - have the worker wait for @s, which may become its sockets next
 *
 * Closing them ends it. Under the port's lock. 0 or negative errno.
 */
int rx_waiter_watch_sockets(struct rx_waiter *w, const struct udp_sockets *s);

/**
 * rx_waiter_add() - know an event, but do not wait for it yet
 * @ev:		pinned; its fd, fn and ctx are set
 *
 * Threads: under the port's lock, outside the gate.
 *
 * Return: 0 or negative errno.
 */
int rx_waiter_add(struct rx_waiter *w, struct rx_event *ev);

/** rx_waiter_remove() - forget an event, before its descriptor is closed. Under the port's lock,
 * outside the gate. */
void rx_waiter_remove(struct rx_waiter *w, struct rx_event *ev);

/** rx_waiter_set_wanted() - wait for an event from now on, or no more. Any thread. */
void rx_waiter_set_wanted(struct rx_waiter *w, const struct rx_event *ev, bool on);

/** What is ready, as epoll tells it: take it to rx_waiter_on_ready(). */
struct rx_ready {
    uint64_t what[16]; /* socket, waking, or the number of an event */
    int n;
};

/** rx_waiter_wait() - sleep until something is ready. The worker's thread, outside the gate. */
void rx_waiter_wait(struct rx_waiter *w, struct rx_ready *ret);

/**
 * rx_waiter_on_ready() - handle one thing that was ready, unless it is a socket
 *
 * Calls the event's function, if it is one that is still known.
 *
 * Threads: the worker's, inside the gate.
 *
 * Return: the socket that has datagrams; -1: it was none, or it was closed meanwhile.
 */
int rx_waiter_on_ready(struct rx_waiter *w, uint64_t what);
