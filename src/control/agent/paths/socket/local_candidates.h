/*
 * local_candidates.h - where this node may be reached, and what its NAT does.
 *
 * Theory of operation. A candidate (RFC 8445 section 2) is an address of the
 * machine's own, one that the operator has given, one that the router has mapped,
 * or one where a STUN server has seen us. The servers are the hubs, asked from
 * WireGuard's own port (stun_client.h); what several of them see tells how the NAT
 * maps (path/behavior.h). All that an older network told is forgotten when this
 * machine's network changes.
 *
 * A NAT that gives out its ports in sequence keeps the mapping to a server that
 * was asked before, so what that server says of the newest port is old. It is
 * therefore asked once from a *fresh* socket, whose mapping is the newest.
 *
 * Pure: addresses, answers and times in; candidates, requests and a deadline out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/paths/socket/stun_client.h"
#include "base/addr.h"
#include "base/clock.h"
#include "net/gateway/port_mapping.h"
#include "path/behavior.h"
#include "path/path.h"

struct rng;
struct snapshot;

/** The newest port of a NAT that gives out its ports in sequence. */
struct local_fresh {
    struct endpoint server; /* the server that is asked for it; none: no server is asked */
    struct stun_transaction id;
    uint16_t port; /* as last seen by that server; 0: not known */
};

struct local_candidates {
    const struct endpoint *given; /* pins; by the operator, port 0: WireGuard's */
    unsigned n_given;
    struct candidate_blocks blocks;      /* of the network; nothing in them is a candidate */
    uint16_t port;                       /* WireGuard's; 0: not known */
    struct endpoint own[CANDIDATES_MAX]; /* of the interfaces, with WireGuard's port */
    unsigned n_own;
    struct port_mapping mapping; /* what the router has granted */
    struct stun_client stun;
    struct behavior_survey survey;
    struct local_fresh fresh;
    bool is_blocked;  /* no UDP gets out of this machine */
    nsec_t keepalive; /* to be told to peers; 0: not known */
};

/** A STUN request to be sent. */
struct local_request {
    struct endpoint to;
    uint8_t bytes[STUN_REQUEST_SIZE];
};

/** local_candidates_init() - nothing is known yet. @given: @n_given endpoints, pinned. */
void local_candidates_init(
    struct local_candidates *lc, const struct endpoint *given, unsigned n_given);

/** local_candidates_set_servers() - the STUN servers of that snapshot's hubs. */
void local_candidates_set_servers(
    struct local_candidates *lc, const struct snapshot *s, nsec_t now);

/** local_candidates_set_blocks() - those of the network; nothing in them is told to anybody. */
void local_candidates_set_blocks(
    struct local_candidates *lc, const struct candidate_blocks *blocks);

/**
 * local_candidates_set_addresses() - the network has changed, or WireGuard's port
 * @addrs:	@n of the machine's own; those that do not fit are left out
 * @port:	WireGuard's
 *
 * What the servers have told is forgotten, and they are asked again at once.
 */
void local_candidates_set_addresses(struct local_candidates *lc, const struct ip_addr *addrs,
    unsigned n, uint16_t port, nsec_t now);

/** local_candidates_set_mapping() - what the router has granted, or that it grants nothing. */
void local_candidates_set_mapping(struct local_candidates *lc, const struct port_mapping *pm);

/** local_candidates_set_blocked() - does UDP fail to get out? Return: true if that has changed. */
bool local_candidates_set_blocked(struct local_candidates *lc, bool is_blocked);

/** local_candidates_set_keepalive() - what holds this node's mappings, ns. Return: true if that has
 * changed. */
bool local_candidates_set_keepalive(struct local_candidates *lc, nsec_t keepalive);

/** local_candidates_restart() - ask all servers now; what they have told stays. */
void local_candidates_restart(struct local_candidates *lc, nsec_t now);

/** local_candidates_on_answer() - @len bytes that may be a STUN answer. Return: it was one. */
bool local_candidates_on_answer(struct local_candidates *lc, const uint8_t *msg, size_t len,
    const struct endpoint *from, nsec_t at);

/** local_candidates_begin_fresh() - make a request for a fresh socket. False: it would be of no
 * use. */
bool local_candidates_begin_fresh(
    struct local_candidates *lc, const struct rng *rng, struct local_request *ret);

/** local_candidates_on_fresh() - what came to the fresh socket. Return: it was the answer. */
bool local_candidates_on_fresh(
    struct local_candidates *lc, const uint8_t *msg, size_t len, const struct endpoint *from);

/** local_candidates_next() - the next request from WireGuard's port that is due; false: none. */
bool local_candidates_next(
    struct local_candidates *lc, const struct rng *rng, struct local_request *ret, nsec_t now);

/** local_candidates_due() - time of the next request; NSEC_NEVER without servers. */
nsec_t local_candidates_due(const struct local_candidates *lc);

/** local_candidates_fill() - fill in @side with what is known, all but its generation and relays.
 */
void local_candidates_fill(const struct local_candidates *lc, struct path_side *side);

/** local_candidates_outside() - at which address @server sees this node; none: not known. */
struct ip_addr local_candidates_outside(
    const struct local_candidates *lc, const struct endpoint *server);

/**
 * local_candidates_hub_rtt() - round trip to the server at @hub, as measured lately
 *
 * Of the one that answers soonest, if none is at @hub.
 *
 * Return: 0: it is not known, since the last answer is too old, or answers are lost: then nobody is
 * to leave another way for that hub.
 */
nsec_t local_candidates_hub_rtt(
    const struct local_candidates *lc, const struct endpoint *hub, nsec_t now);
