/*
 * waiting.h - connections that have been accepted and have not begun, served source by source.
 *
 * A listener begins connections at a pace, since each costs a TLS handshake. What is over the pace
 * waits here, and the sources take turns: so who sends thousands of connections waits behind his
 * own, and a stranger who sends one waits for at most one connection of each other source. As
 * in admission.h a source is an IPv4 address or the /64 of an IPv6 one; all of a unix socket are
 * one.
 *
 * There is room for so many. When it is used up, one of the longest queue goes, the newest of it,
 * by lot among queues of one length: so a flood from one address drives out nobody else, and of one
 * from very many addresses a stranger has as good a chance as each of them.
 *
 * Pure: the descriptors are only kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/htab.h"
#include "base/list.h"

struct waiting {
    unsigned max;        /* at once; so many sources at most, too */
    unsigned n;          /* now */
    struct htab sources; /* owns struct waiting_source: those that have at least one here */
    struct list turns;   /* of the same, the next one's first */
};

/** A connection. */
struct waiting_connection {
    int fd;               /* the caller's */
    struct endpoint from; /* the other end */
    nsec_t accepted_at;   /* when it was accepted */
};

/** waiting_init() - @seed: random, unknown to strangers. */
void waiting_init(struct waiting *w, unsigned max, uint64_t seed);

/** waiting_deinit() - of an empty one: take them all before. Idempotent. */
void waiting_deinit(struct waiting *w);

/**
 * waiting_add() - one more
 * @random:	decides among queues of one length
 * @ret:	the one that had to go for it, perhaps itself: the caller closes it
 *
 * Return: true when *@ret was set.
 */
bool waiting_add(struct waiting *w, const struct waiting_connection *c, uint64_t random,
    struct waiting_connection *ret);

/** waiting_take() - the oldest of the source whose turn it is; false when there is none. */
bool waiting_take(struct waiting *w, struct waiting_connection *ret);
