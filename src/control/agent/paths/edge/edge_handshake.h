/*
 * edge_handshake.h - when this end begins a handshake with one peer.
 *
 * Theory of operation. A relay passes on only what belongs to a handshake that
 * it has seen. So when the packets of an edge go to a relay, or a relay has
 * forgotten what it saw, a new handshake is begun: by the end with the smaller
 * key at once, by the other only if there was none in the meantime. Both must not
 * begin at the same time: a kernel's WireGuard gives up its own handshake for the
 * other's, so that between two kernels neither is completed.
 *
 * A handshake that is not completed is begun again each second. Any handshake that is
 * seen after edge_handshake_want() counts, whichever end began it.
 *
 * Pure: what is wanted, what was seen, and times in; a deadline out.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

/** How much later the end with the greater key begins, if there was none by then. */
#define EDGE_HANDSHAKE_TURN       NSEC_PER_SEC
#define EDGE_HANDSHAKE_RELAY_TURN (300 * NSEC_PER_MSEC) /* when a relay is left for another */

struct edge_handshake {
    nsec_t due_at;    /* time to begin one; NSEC_NEVER: none is wanted */
    nsec_t wanted_at; /* time when one was last wanted; 0: never; any handshake after it counts */
    nsec_t seen_at;   /* time of the last one, as the engine shows it; 0: never */
};

#define EDGE_HANDSHAKE_NULL                                                                        \
    {                                                                                              \
        .due_at = NSEC_NEVER                                                                       \
    }

/**
 * edge_handshake_want() - a handshake is needed
 * @is_first:	this end has the smaller key, and begins
 * @turn:	how long the other one waits for that: one of the two above
 */
void edge_handshake_want(struct edge_handshake *h, bool is_first, nsec_t turn, nsec_t now);

/** edge_handshake_want_now() - a handshake is needed, and this end begins it at once. */
void edge_handshake_want_now(struct edge_handshake *h, nsec_t now);

/** edge_handshake_on_moved() - the edge goes elsewhere: what was seen before says nothing of that.
 */
void edge_handshake_on_moved(struct edge_handshake *h, nsec_t now);

/** edge_handshake_drop() - no handshake is needed any more. */
void edge_handshake_drop(struct edge_handshake *h);

/** edge_handshake_hasten() - if a handshake is wanted, make it due now. Return: one is wanted. */
bool edge_handshake_hasten(struct edge_handshake *h, nsec_t now);

/** edge_handshake_on_seen() - what the engine tells of the last one; 0: there was none. */
void edge_handshake_on_seen(struct edge_handshake *h, nsec_t seen_at);

/** edge_handshake_is_answer() - does a handshake at @seen_at count for the one that is wanted? */
bool edge_handshake_is_answer(const struct edge_handshake *h, nsec_t seen_at);

/** edge_handshake_is_wanted() - is a handshake wanted, now or later? */
bool edge_handshake_is_wanted(const struct edge_handshake *h);

/** edge_handshake_has_session() - may the session of the last handshake still carry packets? */
bool edge_handshake_has_session(const struct edge_handshake *h, nsec_t now);

/** edge_handshake_take() - is a handshake to be begun now? If so it counts as begun. */
bool edge_handshake_take(struct edge_handshake *h, nsec_t now);
