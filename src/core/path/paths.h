/*
 * paths.h - all edges of one node: who is asked what and when, within a budget.
 *
 * Events go in (a frame, candidates, data that was seen, the clock), actions
 * come out: after every call take them with paths_next() until it is false, and
 * call paths_tick() when paths_due() has come. Nothing here does I/O; the
 * simulation in test/sim/path runs this very code.
 *
 * One heap holds a deadline for each edge; an edge that has nothing to do costs
 * nothing. Frames that we begin are limited by one token bucket and answers by
 * another, so that neither a thousand peers at once nor a stranger makes this node
 * send without limit.
 *
 * Threads: one at a time, the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"
#include "path/path.h"

struct paths;

/** What a node is and may spend. Zero in a limit means the default. */
struct paths_options {
    struct x25519_secret secret; /* copied; wiped with the paths */
    char name[NAME_MAX_LEN + 1]; /* this node's, for the words */
    struct rng rng;              /* pins its context */
    unsigned frames_per_second;  /* that we begin: pings, nominations; 400 */
    unsigned answers_per_second; /* 1000 */
    unsigned guess_sockets;      /* of one guess, 256; PATHS_NO_SOCKETS: none may be opened */
};

#define PATHS_NO_SOCKETS UINT32_MAX

/** What it has cost and what was refused, since the start. */
struct paths_counters {
    uint64_t frames_sent;     /* of any kind */
    uint64_t frames_received; /* that opened */
    uint64_t guesses;         /* of those sent: guesses at ports */
    uint64_t sockets_opened;
    uint64_t rounds;         /* begun */
    uint64_t switches;       /* USE actions after an edge's first */
    uint64_t over_budget;    /* frames that had to wait or were not sent */
    uint64_t refused_tag;    /* frames of nobody we know */
    uint64_t refused_seal;   /* that did not open */
    uint64_t refused_replay; /* that were old */
};

/** paths_new() - without peers; gives it. 0, -EINVAL for a bad secret, or -ENOMEM. */
int paths_new(struct paths **ret, const struct paths_options *opt, nsec_t now);

/** paths_free() - wipe and release; NULL is fine. Returns NULL. Opens sockets are the caller's. */
struct paths *paths_free(struct paths *p);

/**
 * paths_set_clock() - a clock that peers roughly share
 * @offset:	what to add to `now` for it
 *
 * Wall clocks that are right to a second or two will do, and so will the hub's. Both ends
 * of a relayed edge try again at moments which they compute from it.
 */
void paths_set_clock(struct paths *p, nsec_t offset, nsec_t now);

/** paths_set_self() - this node's own candidates and facts, as they are reported to peers now. */
void paths_set_self(struct paths *p, const struct path_side *self, nsec_t now);

/**
 * paths_put_peer() - an edge, or a change of its name or policy
 *
 * A new edge is on the relay at once: USE is the first action.
 *
 * Return: 0; -EINVAL when the key is our own or no key at all; -ENOMEM.
 */
int paths_put_peer(struct paths *p, const struct path_peer *peer, nsec_t now);

/** paths_remove_peer() - forget the edge; one that is not there is fine. */
void paths_remove_peer(struct paths *p, const struct x25519_public *key, nsec_t now);

/** paths_set_peer_side() - what a peer reports of itself; nothing happens for an unknown key. */
void paths_set_peer_side(
    struct paths *p, const struct x25519_public *key, const struct path_side *side, nsec_t now);

/**
 * paths_on_frame() - a datagram that begins with PATH_FRAME_TYPE
 * @frame:	@len bytes, any content; garbage afterwards
 */
void paths_on_frame(
    struct paths *p, const struct path_arrival *in, uint8_t *frame, size_t len, nsec_t now);

/**
 * paths_on_traffic() - what the engine counts for a peer
 * @rx:		bytes received that authenticated, since any start
 * @tx:		bytes sent
 *
 * Call when they are read anyhow, best once a second or more often. A path with traffic is
 * watched closely, and received bytes show that it lives.
 */
void paths_on_traffic(
    struct paths *p, const struct x25519_public *key, uint64_t rx, uint64_t tx, nsec_t now);

/** paths_on_network_change() - links, routes or addresses of this machine have changed. */
void paths_on_network_change(struct paths *p, nsec_t now);

/** paths_on_relay() - the hub can be used as a relay, or not. At first it can. */
void paths_on_relay(struct paths *p, bool usable, nsec_t now);

/** paths_leave_sockets() - the caller ends: paths that go through a socket are left for the relay.
 */
void paths_leave_sockets(struct paths *p, nsec_t now);

/**
 * paths_on_relayed() - a session with a peer has come about through that relay
 *
 * The other end began it there, and so moved the edge; nothing happens when it was there already.
 */
void paths_on_relayed(struct paths *p, const struct x25519_public *key,
    const struct x25519_public *relay, nsec_t now);

/** paths_on_socket() - an OPEN of @socket was done, or could not be done. */
void paths_on_socket(struct paths *p, uint32_t socket, bool opened, nsec_t now);

/**
 * paths_probe() - ask whether a frame of @size bytes of UDP payload gets through
 * @ret_probe:	the FITS action that answers carries it
 *
 * On the chosen direct path. When no answer comes, none is told.
 *
 * Return: false when the edge has no direct path, or @size is out of bounds.
 */
bool paths_probe(struct paths *p, const struct x25519_public *key, uint16_t size,
    uint64_t *ret_probe, nsec_t now);

/** paths_due() - when paths_tick() is to be called at the latest; NSEC_NEVER: not at all. */
nsec_t paths_due(const struct paths *p);

/** paths_tick() - do whatever is due; actions may follow. */
void paths_tick(struct paths *p, nsec_t now);

/** paths_next() - the next thing to do; false when there is none. */
bool paths_next(struct paths *p, struct path_action *ret);

/** paths_view() - how a peer is reached; false when there is no such edge. */
bool paths_view(
    const struct paths *p, const struct x25519_public *key, struct path_view *ret, nsec_t now);

/** paths_pairs() - all that was tried for a peer: at most @cap into @ret; returns how many. */
size_t paths_pairs(
    const struct paths *p, const struct x25519_public *key, struct path_pair_view *ret, size_t cap);

/** paths_relays() - the relays for a peer: at most @cap into @ret; returns how many. */
size_t paths_relays(const struct paths *p, const struct x25519_public *key,
    struct path_relay_view *ret, size_t cap);

/** Most pairs of one edge. */
#define PATHS_PAIRS_MAX 48

/** paths_counters() - borrowed. */
const struct paths_counters *paths_counters(const struct paths *p);
