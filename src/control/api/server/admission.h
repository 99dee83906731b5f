/*
 * admission.h - bounds how many connections there are at once, in all and by address.
 *
 * Addresses are counted by ip_addr_block(): an IPv6 site has 2^64 of them.
 * Clients of a unix socket have no address, and only the bound in all is for them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/containers.h"

/** Who is inside. */
struct admission {
    unsigned max;            /* at once */
    unsigned max_by_address; /* at once from one address */
    unsigned n;              /* now */
    struct htab sources;     /* owns struct source: those that hold at least one */
};

/** admission_init() - @seed: random, unknown to strangers. */
void admission_init(struct admission *a, unsigned max, unsigned max_by_address, uint64_t seed);

/** admission_deinit() - forget everybody. */
void admission_deinit(struct admission *a);

/** admission_enter() - one more from @from; false when that would be too many. */
bool admission_enter(struct admission *a, const struct ip_addr *from);

/** admission_leave() - one from @from has ended, for which admission_enter() was true. */
void admission_leave(struct admission *a, const struct ip_addr *from);

/* ---- connections that have been accepted and have not begun, served source by source --------- */

/*
 * A listener begins connections at a pace, since each costs a TLS handshake. Connections above the
 * pace wait here, and their sources take turns. So a source with thousands of connections delays
 * only itself, and one with a single connection waits for at most one of each other source. As
 * above a source is a block of addresses; all clients of a unix socket are one source.
 *
 * Room is bounded. When there is none left, the newest connection of the longest queue is given up;
 * a random number decides among queues of the same length. So a flood from one address displaces
 * nobody else, and in a flood from very many addresses every source has the same chance.
 *
 * Descriptors are only kept here: nothing does I/O.
 */

/** The connections that wait. */
struct waiting {
    unsigned max;        /* most connections that wait at once, and so most sources */
    unsigned n;          /* how many wait now */
    struct htab sources; /* owns struct waiting_source: those with a connection here */
    struct list turns;   /* of the same; the next in turn is first */
};

/** A connection. */
struct waiting_connection {
    int fd;               /* the caller's */
    struct endpoint from; /* the other end */
    nsec_t accepted_at;   /* when it was accepted */
};

/** waiting_init() - @seed: random, unknown to strangers. */
void waiting_init(struct waiting *w, unsigned max, uint64_t seed);

/** waiting_deinit() - take all connections out before. */
void waiting_deinit(struct waiting *w);

/**
 * waiting_add() - one more
 * @random:	decides among queues of one length
 * @ret:	the one that was given up for it, which may be @c itself: the caller closes it
 *
 * Return: true when *@ret was set.
 */
bool waiting_add(struct waiting *w, const struct waiting_connection *c, uint64_t random,
    struct waiting_connection *ret);

/** waiting_take() - the oldest of the source whose turn it is; false when there is none. */
bool waiting_take(struct waiting *w, struct waiting_connection *ret);
