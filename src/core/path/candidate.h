/*
 * candidate.h - addresses at which a node may be reached.
 *
 * Each node gathers its own, reports them, and gets its peers'. What came from
 * a peer through a hub is a hint, never a fact: only a pong makes a path.
 */
#pragma once

#include <stdbool.h>

#include "base/addr.h"

#define CANDIDATES_MAX 32 /* of one node; also what a Node's status may hold */

/** Where a candidate comes from, in the order in which they are tried. */
enum candidate_kind {
    CANDIDATE_NONE,
    CANDIDATE_HOST,      /* an address of one of its interfaces */
    CANDIDATE_GIVEN,     /* said by the operator: a 1:1 public address, a forwarded port */
    CANDIDATE_MAPPED,    /* a port that the router was asked for (NAT-PMP, UPnP) */
    CANDIDATE_REFLEXIVE, /* as a hub or a STUN server sees it */
    CANDIDATE_PREDICTED, /* a guess at the next port of a symmetric NAT; never reported */
    CANDIDATE_HEARD,     /* where an authentic frame came from; never reported */
    CANDIDATE_KIND_N,
};

struct candidate {
    enum candidate_kind kind;
    struct endpoint endpoint;
};

/** A node's candidates; each endpoint once. */
struct candidates {
    struct candidate items[CANDIDATES_MAX]; /* sorted: see candidates_add() */
    unsigned n;
};

/** Most blocks of other overlays that are known, and most parts of such that are none. */
#define CANDIDATE_BLOCKS_OTHERS  32
#define CANDIDATE_BLOCKS_OUTSIDE 16

/** Blocks of addresses that are reached through an overlay of this machine, so that no path to a
 * node may lead there. */
struct candidate_blocks {
    struct ip_prefix items[2 + CANDIDATE_BLOCKS_OTHERS]; /* the network's IPv4 block and its IPv6
                                                            block, and then those of others */
    unsigned n;
    struct ip_prefix outside[CANDIDATE_BLOCKS_OUTSIDE]; /* parts of others' that lead elsewhere */
    unsigned n_outside;
};

/** candidate_blocks_have() - is an address reached through an overlay? The smallest block counts.
 */
bool candidate_blocks_have(const struct candidate_blocks *blocks, const struct ip_addr *a);

/** candidate_blocks_equal() - the same blocks in the same order. */
bool candidate_blocks_equal(const struct candidate_blocks *a, const struct candidate_blocks *b);

/**
 * candidate_blocks_add() - one more that leads into another overlay
 *
 * One that lies in another of those is none more, and one that has others takes their place.
 *
 * Return: there was room.
 */
bool candidate_blocks_add(struct candidate_blocks *blocks, const struct ip_prefix *block);

/** candidate_blocks_exclude() - @part leads elsewhere. Of no meaning outside of all blocks, or
 * where it is as large as one. */
void candidate_blocks_exclude(struct candidate_blocks *blocks, const struct ip_prefix *part);

/** candidate_kind_names - "host", "given", "mapped", "reflexive", "predicted", "heard". */
extern const char *const candidate_kind_names[];

/** candidate_kind_parse() - a kind that may be reported; CANDIDATE_NONE: no such. */
enum candidate_kind candidate_kind_parse(const char *text);

/**
 * candidate_is_possible() - can an endpoint be a peer's at all?
 *
 * Not: port 0, no address, loopback, multicast, broadcast, 0.0.0.0/8, and a
 * link-local IPv6 address, which means nothing on another machine.
 */
bool candidate_is_possible(const struct endpoint *ep);

/** candidate_is_private() - RFC 1918, RFC 6598, link-local, or a ULA: not reached from afar. */
bool candidate_is_private(const struct ip_addr *a);

/**
 * candidates_add() - put one in, in order of kind, those of one kind as they came
 *
 * An endpoint that is there already keeps the kind that comes first. When the
 * set is full, the last of a later kind makes room.
 *
 * Return: false when it is impossible, there already with no later kind, or there is no room.
 */
bool candidates_add(struct candidates *c, enum candidate_kind kind, const struct endpoint *ep);

/** candidates_equal() - the same endpoints with the same kinds in the same order. */
bool candidates_equal(const struct candidates *a, const struct candidates *b);

/** candidates_find() - lends the one with that endpoint; NULL if there is none. */
const struct candidate *candidates_find(const struct candidates *c, const struct endpoint *ep);
