/*
 * poll_list.h - which peers of a port the control thread has to poll (peer.h).
 *
 * Those whose timers are due, by a heap of deadlines; and those about which a data thread has told
 * something, by a stack that any thread pushes to. A peer is on the stack once at most, so it has
 * no limit that could be exceeded. Each peer has one struct poll_link for both.
 *
 * Threads: poll_list_tell() any; everything else under the port's lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/containers.h"

/** In every peer. Zeroes to begin with. */
struct poll_link {
    struct heap_link due;     /* its deadline, in the heap while it has one */
    _Atomic bool is_notified; /* on the stack already */
    struct poll_link *next;   /* on the stack; written by whoever set is_notified */
};

struct poll_list {
    struct heap timers;              /* of poll_link, by due */
    size_t n;                        /* peers that may have a deadline */
    _Atomic(struct poll_link *) top; /* of the stack */
};

/** poll_list_add() - room for one more peer, so that setting its deadline in @timers cannot fail. 0
 * or -ENOMEM. */
int poll_list_add(struct poll_list *l);

/** poll_list_remove() - a peer that was added goes: @link has no deadline any more. */
void poll_list_remove(struct poll_list *l, struct poll_link *link);

/** poll_list_pop_due() - one whose deadline has come, disarmed; NULL: none. */
struct poll_link *poll_list_pop_due(struct poll_list *l, nsec_t now);

/**
 * poll_list_tell() - have @link on the stack
 *
 * What was written before is seen by whoever pops it.
 *
 * Return: true when it was not there yet.
 */
bool poll_list_tell(struct poll_list *l, struct poll_link *link);

/** poll_list_take_notified() - empty the stack: its links, the latest first, to be followed by
 * poll_list_next_notified(); NULL: there are none. */
struct poll_link *poll_list_take_notified(struct poll_list *l);

/**
 * poll_list_next_notified() - take @link off what poll_list_take_notified() gave
 *
 * From here on it may be told of again, which is not lost.
 *
 * Return: the one after it; NULL: it was the last.
 */
struct poll_link *poll_list_next_notified(struct poll_link *link);
