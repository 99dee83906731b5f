/*
 * paths.h - finds paths for all edges of one node, within a budget of frames.
 *
 * Events go in (a frame, candidates, traffic counters, the clock) and actions
 * come out. After every call take the actions with paths_next() until it returns
 * false, and call paths_tick() when paths_due() has come. Nothing here does I/O;
 * the simulation in test/sim/path runs this same code.
 *
 * One heap holds a deadline for each edge, so an edge that has nothing to do costs
 * nothing. One token bucket limits the frames that we send unasked, and another one
 * limits answers, so that neither a thousand peers at once nor a stranger can make
 * this node send without limit.
 *
 * Threads: one at a time, the owner's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/secret.h"
#include "path/path.h"

struct paths;

/** Who a node is, and its limits. Zero in a limit means the default. */
struct paths_options {
    struct x25519_secret secret; /* copied; wiped with the paths */
    char name[NAME_MAX_LEN + 1]; /* this node's, for the text of events */
    struct rng rng;              /* pins its context */
    unsigned frames_per_second;  /* sent unasked: pings, nominations; default 400 */
    unsigned answers_per_second; /* default 1000 */
    unsigned guess_sockets;      /* for guessing ports; default 256 */
};

/** What was sent, done and refused since the start. */
struct paths_counters {
    uint64_t frames_sent;     /* of any kind */
    uint64_t frames_received; /* that were authentic */
    uint64_t guesses;         /* of @frames_sent, those that guess a port */
    uint64_t sockets_opened;
    uint64_t rounds;         /* begun */
    uint64_t switches;       /* USE actions after an edge's first */
    uint64_t over_budget;    /* frames that had to wait or were not sent */
    uint64_t refused_tag;    /* frames whose tag is no peer's */
    uint64_t refused_seal;   /* frames that failed authentication */
    uint64_t refused_replay; /* frames that were old or repeated */
};

/** paths_new() - gives one without peers. 0, -EINVAL for a bad secret, or -ENOMEM. */
int paths_new(struct paths **ret, const struct paths_options *opt, nsec_t now);

/** paths_free() - wipe and release. Open sockets are the caller's. */
struct paths *paths_free(struct paths *p);

/**
 * paths_set_clock() - set the clock that peers roughly share
 * @offset:	what is added to `now` to get the time of that clock
 *
 * A wall clock that is right to a second or two is good enough, and so is the hub's clock.
 * Both ends of a relayed edge compute from it when to try again, so that they do so together.
 */
void paths_set_clock(struct paths *p, nsec_t offset, nsec_t now);

/**
 * paths_set_blocks() - the blocks of addresses of the network itself, and of other overlays
 *
 * A path to an address in them would lead through the overlay that it is to carry, or through
 * another. Whatever a peer reports, and wherever a frame comes from, there is none; and what was
 * one before is tried no more.
 */
void paths_set_blocks(struct paths *p, const struct candidate_blocks *blocks, nsec_t now);

/** paths_set_self() - this node's own candidates and facts, as they are reported to peers now. */
void paths_set_self(struct paths *p, const struct path_side *self, nsec_t now);

/**
 * paths_put_peer() - add an edge, or change its name or policy
 *
 * A new edge is on the relay at once: USE is the first action.
 *
 * Return: 0; -EINVAL when the key is our own or no key at all; -ENOMEM.
 */
int paths_put_peer(struct paths *p, const struct path_peer *peer, nsec_t now);

/**
 * paths_set_own_keys() - this node's own key is @secret now, and @other its second one
 * @other:	NULL: it has one key
 *
 * Frames go under @secret, and are taken under both. Paths stay as they are. It multiplies once for
 * each edge and pair of keys.
 *
 * Return: 0; -EINVAL for a bad secret; or -ENOMEM: then some edges go on with the keys that they
 * had.
 */
int paths_set_own_keys(struct paths *p, const struct x25519_secret *secret,
    const struct x25519_secret *other, nsec_t now);

/**
 * paths_set_peer_keys() - the peer of the edge @was has @key now, and @other as its second one
 * @other:	NULL: it has one key
 *
 * The edge is found by @key from then on, and its path stays as it is. As paths_set_own_keys()
 * otherwise.
 *
 * Return: 0, also for an edge that is not there; -EINVAL when a key is none, or is our own or
 * another edge's; or -ENOMEM: then nothing has changed.
 */
int paths_set_peer_keys(struct paths *p, const struct x25519_public *was,
    const struct x25519_public *key, const struct x25519_public *other, nsec_t now);

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
 * watched closely.
 */
void paths_on_traffic(
    struct paths *p, const struct x25519_public *key, uint64_t rx, uint64_t tx, nsec_t now);

/**
 * paths_keep() - the engine sends to a peer at @at already, and has heard it there
 *
 * As an earlier run of this node has left it. The edge takes that path at once, and a ping asks
 * whether it still works: like any path that does not answer it is left soon. Nothing happens where
 * a direct path is used already, or may not be, or where @at can be no peer's.
 *
 * Return: whether that path is taken.
 */
bool paths_keep(
    struct paths *p, const struct x25519_public *key, const struct endpoint *at, nsec_t now);

/** Most relays, hubs included, whose notices are kept. */
#define PATHS_NOTICES_MAX 16

/** What a relay has told of its line. */
struct paths_notice {
    struct x25519_public relay;
    struct path_relay_notice notice;
};

/**
 * paths_set_notices() - what relays tell of their lines now; of those that are left out: nothing
 * @notices:	@n of them, at most PATHS_NOTICES_MAX
 *
 * An edge that is to go another way tries to be direct again, at both ends at once, and takes the
 * best of the relays that are open to it meanwhile. Where there is none it stays.
 *
 * Return: 0 or -ENOMEM, and nothing has changed.
 */
int paths_set_notices(struct paths *p, const struct paths_notice *notices, size_t n, nsec_t now);

/**
 * paths_on_received() - something authentic of a peer came in by the direct path that is in use
 * @since:	not before this
 *
 * It shows that the peer's machine and the way from it live, though its agent may be too busy to
 * answer pings. Whether the way to it lives the peer finds out, and says so. What came by the relay
 * shows nothing of that kind and is not to be told here.
 */
void paths_on_received(struct paths *p, const struct x25519_public *key, nsec_t since, nsec_t now);

/** paths_on_network_change() - links, routes or addresses of this machine have changed. */
void paths_on_network_change(struct paths *p, nsec_t now);

/** paths_on_relay() - the hub can be used as a relay, or not. At first it can. */
void paths_on_relay(struct paths *p, bool usable, nsec_t now);

/**
 * paths_leave_sockets() - the caller is about to end
 *
 * Edges whose paths go through a socket that was opened for guessing change to the relay.
 */
void paths_leave_sockets(struct paths *p, nsec_t now);

/**
 * paths_on_relayed() - a session with a peer was established through that relay
 *
 * The other end has begun it there and so moved the edge to that relay. Nothing happens when the
 * edge is there already.
 */
void paths_on_relayed(struct paths *p, const struct x25519_public *key,
    const struct x25519_public *relay, nsec_t now);

/** paths_on_socket() - the action OPEN of @socket has succeeded, or failed. */
void paths_on_socket(struct paths *p, uint32_t socket, bool opened);

/**
 * paths_probe() - ask whether a frame of @size bytes of UDP payload gets through
 * @ret_probe:	number of the probe; the action FITS has it when the answer comes
 *
 * The probe takes the chosen direct path. When no answer comes there is no action.
 *
 * Return: false when the edge has no direct path, or @size is out of bounds.
 */
bool paths_probe(struct paths *p, const struct x25519_public *key, uint16_t size,
    uint64_t *ret_probe, nsec_t now);

/**
 * paths_set_mtu() - how large packets on the edge's direct path are at most, in inner bytes
 *
 * While it is that large, no better pair or relay is taken of which it is not known
 * that it carries as much. 0: nothing is known.
 */
void paths_set_mtu(struct paths *p, const struct x25519_public *key, uint16_t mtu);

/** paths_relay_mtu() - inner bytes that @relay carries between this node and the peer, as both have
 * measured it; 0: not known. */
uint16_t paths_relay_mtu(
    const struct paths *p, const struct x25519_public *key, const struct x25519_public *relay);

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
