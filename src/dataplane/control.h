/*
 * control.h - the port's control thread: an event loop with one lock.
 *
 * It sleeps in epoll without the lock and does everything else with it:
 * handshake messages from the rx workers, peers that a data thread has told
 * about, timers, and whatever else has a descriptor here (configuration
 * sockets, link changes).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct device;
struct keypairs_evicted;
struct peer;
struct port;

/** A descriptor in the loop. */
struct control_event {
    int fd;                                       /* borrows */
    void (*fn)(void *ctx, uint32_t epoll_events); /* runs with the port's lock held */
    void *ctx;                                    /* pins */
};

/** control_init() - epoll and wake-up; control_start() begins, control_stop() ends the thread. */
int control_init(struct port *p);
int control_start(struct port *p);
void control_stop(struct port *p);
void control_deinit(struct port *p);

/** control_add() - call @ev->fn when @ev->fd has @epoll_events. Pins @ev. 0 or negative errno. */
int control_add(struct port *p, struct control_event *ev, uint32_t epoll_events);

/** control_change() - other events of interest. */
void control_change(struct port *p, struct control_event *ev, uint32_t epoll_events);

/** control_remove() - before its descriptor is closed. Under the lock. */
void control_remove(struct port *p, struct control_event *ev);

/** control_device_gone() - a tx worker found its interface deleted. */
void control_device_gone(struct device *d);

/** control_untell() - carry out what peers were told about, so that none is in the list. */
void control_untell(struct port *p);

/** control_poll_peer() - do what its timers ask for, and arm them. Under the lock. */
void control_poll_peer(struct peer *peer, nsec_t now);

/** control_forget_handshakes() - throw away what waits for @d, which is about to go. */
void control_forget_handshakes(struct port *p, const struct device *d);

/** control_forget_session() - wipe a peer's keys and its handshake under way. */
void control_forget_session(struct peer *peer);

/** control_retire() - keypairs that left their slots: out of the index now, freed later. */
void control_retire(struct port *p, const struct keypairs_evicted *evicted);

/** control_reclaim() - after a grace period of the port's gate: free what was retired. */
void control_reclaim(struct port *p);
