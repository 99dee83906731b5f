/*
 * owner.h - which of several hubs serves the jobs of a network: what one of them decides.
 *
 * Theory of operation. The record owner/NET names the owner and an epoch, which counts the owners.
 * Each hub writes a record of its own every OWNER_BEAT_EACH (its beat). A hub that has heard no
 * beat of the owner for OWNER_TAKE_AFTER of its own clock takes the network over: in one commit it
 * checks that the owner's beat is still the one that it has heard, and writes the owner's record
 * with the next epoch. So of several hubs one succeeds, and none if the owner was only slow. An
 * owner whose own beats have not been stored for OWNER_SERVE_FOR stops serving: that is sooner,
 * since it counts from when it began to write the beat, and the others from when they heard of it.
 * What the owner writes about jobs names the revision of its owner's record, so nothing that it
 * still writes after it was replaced is stored.
 *
 * A network that had no owner yet is taken by the hub that has made it, or by another if that one
 * does not come.
 *
 * Pure: no clock, no store.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** How often a hub writes its beat. */
#define OWNER_BEAT_EACH (2 * NSEC_PER_SEC)

/** For how long after the beginning of a beat that was stored its hub serves jobs. The hub looks
 * each second, so it may be one second more. */
#define OWNER_SERVE_FOR (4 * NSEC_PER_SEC)

/** How long after an owner's last beat another hub takes over. */
#define OWNER_TAKE_AFTER (6 * NSEC_PER_SEC)

/** What a hub knows when it decides. Times are monotonic, of its own clock. */
struct owner_facts {
    bool has_record;  /* there is a record of the owner */
    bool is_nobodys;  /* it names no hub: the last owner has given the jobs up */
    bool is_own;      /* it names this hub */
    bool is_maker;    /* this hub has made the network */
    nsec_t heard_at;  /* when the owner's beat was heard last; without a record, when the network
                         was */
    nsec_t stored_at; /* when this hub began its last beat that was stored; 0: none was */
    nsec_t now;
};

enum owner_wish {
    OWNER_WAIT,  /* it does not serve the jobs */
    OWNER_TAKE,  /* it tries to become the owner */
    OWNER_SERVE, /* it is the owner, and serves them */
};

/** owner_decide() - see the theory above. */
enum owner_wish owner_decide(const struct owner_facts *f);
