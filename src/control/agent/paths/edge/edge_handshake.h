/*
 * edge_handshake.h - when this end begins a handshake with one peer.
 *
 * Theory of operation. A relay passes on only what belongs to a handshake that
 * it has seen. So when the packets of an edge go to a relay, or a relay has
 * forgotten what it saw, a new handshake is begun: by the end with the smaller
 * key at once, by the other only if none came about in the meantime. Two at the
 * same time would be one too many: a kernel's WireGuard gives up its own for the
 * other's, so that between two of them neither comes about.
 *
 * One that does not come about is begun again each second. A handshake that is
 * seen after the wish was uttered fulfils it, whoever began it.
 *
 * Pure: wishes, sights and times in; a deadline out.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

/** How much later the end with the greater key begins, if there was none by then. */
#define EDGE_HANDSHAKE_TURN       NSEC_PER_SEC
#define EDGE_HANDSHAKE_RELAY_TURN (300 * NSEC_PER_MSEC) /* when a relay is left for another */

struct edge_handshake {
    nsec_t due_at; /* when to begin one; NSEC_NEVER: none is wanted */
    nsec_t
        wanted_at;  /* when one was last needed; 0: never. A handshake after that is the answer. */
    nsec_t seen_at; /* the last one, as observed; 0: never */
};

#define EDGE_HANDSHAKE_NULL                                                                        \
    {                                                                                              \
        .due_at = NSEC_NEVER                                                                       \
    }

/**
 * edge_handshake_want() - one is needed
 * @is_first:	this end has the smaller key, and begins
 * @turn:	how long the other one waits for that: one of the two above
 */
void edge_handshake_want(struct edge_handshake *h, bool is_first, nsec_t turn, nsec_t now);

/** edge_handshake_want_now() - the same, and this end does not wait for the other. */
void edge_handshake_want_now(struct edge_handshake *h, nsec_t now);

/** edge_handshake_on_moved() - the edge goes elsewhere: what was seen before says nothing of that.
 */
void edge_handshake_on_moved(struct edge_handshake *h, nsec_t now);

/** edge_handshake_drop() - none is needed any more. */
void edge_handshake_drop(struct edge_handshake *h);

/** edge_handshake_hasten() - one that is wanted is due now. Return: one is. */
bool edge_handshake_hasten(struct edge_handshake *h, nsec_t now);

/** edge_handshake_on_seen() - what the engine tells of the last one; 0: there was none. */
void edge_handshake_on_seen(struct edge_handshake *h, nsec_t seen_at);

/** edge_handshake_is_answer() - a handshake at @seen_at is one that came after the wish. */
bool edge_handshake_is_answer(const struct edge_handshake *h, nsec_t seen_at);

/** edge_handshake_is_wanted() - one is, at whatever time. */
bool edge_handshake_is_wanted(const struct edge_handshake *h);

/** edge_handshake_has_session() - the last one that was seen may still carry packets. */
bool edge_handshake_has_session(const struct edge_handshake *h, nsec_t now);

/** edge_handshake_take() - if one is due: begin it, it counts as begun. Return: begin it. */
bool edge_handshake_take(struct edge_handshake *h, nsec_t now);
