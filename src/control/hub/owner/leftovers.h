/*
 * leftovers.h - deletes what a network has left in the store that was removed while its owner was
 * dead.
 *
 * The owner of a network's jobs deletes them when the network is removed. When it has died before,
 * or dies meanwhile, the jobs (rdzv/NET/) and the owner's record (owner/NET) stay. Every hub looks
 * for records of owners whose network is not there any more. The owner, or any other hub if it is
 * not heard, deletes the jobs, a page at a time, and then the record. Each of these commits expects
 * that nobody has taken the record over, and that the network is still absent; so what a new
 * network of the same name writes is safe, and several hubs may do this at once.
 *
 * A network may be made again while the former one's jobs are still there. Its hubs see that the
 * owner's record is of the other one, and take it over only when it is gone; so jobs are not
 * inherited. Then they are deleted at once, since nobody who lives is deleting them.
 *
 * Threads: the hub's loop only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"

struct owners;

/** How long a network must have been absent: its owner may be deleting its jobs itself. */
#define LEFTOVERS_AFTER (10 * NSEC_PER_SEC)

struct leftovers {
    struct owners *owners;          /* pins */
    char network[NAME_MAX_LEN + 1]; /* the one that is looked at; "": none */
    nsec_t since;                   /* when it was seen to be absent */
    uint64_t revision;              /* of its owner's record, while is_busy */
    bool is_last;                   /* it is the one that deletes the owner's record */
    bool is_busy;                   /* a request is on its way to the store */
};

/** leftovers_init() - nothing is looked at yet. */
void leftovers_init(struct leftovers *l, struct owners *owners);

/** leftovers_tick() - each second. */
void leftovers_tick(struct leftovers *l, nsec_t now);
