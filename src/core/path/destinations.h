/*
 * destinations.h - how much this node sends to an address that has not answered it.
 *
 * Theory of operation. Where a peer may be reached is what that peer says, so a member can name the
 * address of somebody who has nothing to do with the network. Therefore each address has one
 * budget, whichever peers name it, how often, and with which ports. It is enough for the rounds
 * that find a path, and comes back slowly. A guess at a port costs an eighth, because it takes a
 * thousand of them (path_port_guess.c bounds their number); so does what is sent to an address
 * where a peer has answered. An IPv6 address stands for its network of 64 bits, since one host has
 * all of it.
 *
 * The table is of fixed size: sets of a few places each, and a keyed hash says which set. An
 * address with a whole budget gives its place to another one, and nothing is forgotten by that.
 * Where no place is free, the others of that set share one budget.
 *
 * Pure: addresses and times in, a verdict out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/rate.h"

#define DESTINATIONS_SETS 256 /* a power of two */
#define DESTINATIONS_WAYS 4

/** Frames to an address that has not answered: so many at once, and so many a second. */
#define DESTINATIONS_BURST      512
#define DESTINATIONS_PER_SECOND 4
/** So many guesses, or frames to an address that has answered, cost as much as one frame. */
#define DESTINATIONS_CHEAP 8

/** An answer is remembered for so long. */
#define DESTINATIONS_ANSWERED_FOR (600 * NSEC_PER_SEC)

struct destination {
    struct ip_addr addr; /* as it is counted: of IPv6 the network; none: the place is free */
    nsec_t answered_at;  /* when a peer last answered from there; 0: never */
    struct rate rate;
};

struct destinations {
    uint64_t seed; /* random, unknown to peers */
    struct destination places[DESTINATIONS_SETS][DESTINATIONS_WAYS];
    struct rate others[DESTINATIONS_SETS]; /* of addresses that have no place in a set */
};

/**
 * destinations_take() - may @n_frames be sent to @to? If so they count as sent.
 * @is_guess:	they ask ports that nobody has named
 */
bool destinations_take(
    struct destinations *d, const struct ip_addr *to, unsigned n_frames, bool is_guess, nsec_t now);

/** destinations_on_answer() - a peer has answered from there: its budget is whole again. */
void destinations_on_answer(struct destinations *d, const struct ip_addr *from, nsec_t now);
