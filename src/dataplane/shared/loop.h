/*
 * loop.h - descriptors that the port's control thread waits for.
 *
 * What has a descriptor there (configuration sockets, the agent's frame socket, news of links and
 * routes) adds an event and is called when it is ready. The thread itself is control.c's.
 *
 * Who has something for the thread wakes it with loop_wake(). A wake-up is two system calls and two
 * switches of the processor, so it is made once however many ask for it; and what can wait asks by
 * loop_wake_soon(), because a thread with thousands of peers is awake soon without that.
 *
 * Threads: loop_wake() and loop_wake_soon() any; the rest under the port's lock, which loop_wait()
 * gives up while it sleeps.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** How long what is asked for by loop_wake_soon() may wait. */
#define LOOP_SOON NSEC_PER_SEC

/** A descriptor in the loop. */
struct loop_event {
    int fd;                                       /* borrows */
    void (*fn)(void *ctx, uint32_t epoll_events); /* runs with the port's lock held */
    void *ctx;                                    /* pins */
};

struct loop {
    int epoll_fd;        /* owns */
    int wake_fd;         /* owns; see os/thread.h */
    unsigned n_removals; /* of events, ever */
    struct loop_event wake_event;
    bool is_woken; /* since the last wait began */
    /* Any thread. */
    _Atomic bool is_signalled;   /* loop_wake() has written to wake_fd, and nobody has read it */
    _Atomic bool is_wanted;      /* loop_wake_soon() was called since the last wait ended */
    _Atomic nsec_t sleeps_until; /* written by loop_wait(): when it ends if nothing happens */
};

#define LOOP_NULL {.epoll_fd = -1, .wake_fd = -1}

/** loop_init() - 0 or negative errno; after a failure, too, loop_deinit() is to be called. */
int loop_init(struct loop *l);

/** loop_deinit() - release, also what began as LOOP_NULL. */
void loop_deinit(struct loop *l);

/** loop_add() - call @ev->fn when @ev->fd has @epoll_events. Pins @ev. 0 or negative errno. */
int loop_add(struct loop *l, struct loop_event *ev, uint32_t epoll_events);

/** loop_change() - have @ev->fn called for @epoll_events instead, from now on. */
void loop_change(struct loop *l, struct loop_event *ev, uint32_t epoll_events);

/** loop_remove() - forget @ev, before its descriptor is closed. Its function is not called any
 * more. */
void loop_remove(struct loop *l, struct loop_event *ev);

/** loop_wake() - have the wait that goes on, or the next one, end at once. */
void loop_wake(struct loop *l);

/** loop_wake_soon() - have it end no later than LOOP_SOON after @now. */
void loop_wake_soon(struct loop *l, nsec_t now);

/**
 * loop_wait() - sleep until something is ready, and call the functions of what is
 * @lock:	held; given up while the thread sleeps
 * @until:	at most; NSEC_NEVER: no limit
 *
 * Return: true when loop_wake() was called since the last wait began.
 */
bool loop_wait(struct loop *l, pthread_mutex_t *lock, nsec_t until);
