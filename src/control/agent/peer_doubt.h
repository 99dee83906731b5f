/*
 * peer_doubt.h - peers whose packets the engine sends to a wrong endpoint.
 *
 * WireGuard follows the source of every authentic packet. A peer without path finding that does not
 * answer where the engine has it may have been led astray by a copy of a packet. A peer whose path
 * this node finds goes nowhere by itself: if the engine has it elsewhere, somebody changed the
 * engine by hand, or the engine cannot pin an endpoint and has followed a packet from the old path
 * while both ends change to another. In both cases the next pass has to tell the engine the wanted
 * endpoint again, which the owner has reconcile_doubt() do.
 *
 * Pure but for the log: facts in, one doubtful peer after the other out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/clock.h"
#include "os/log.h"

struct observation;
struct observe;
struct snapshot;

/** What is the case after a poll. Borrowed; the same until peer_doubt_next() has returned false. */
struct peer_doubt_facts {
    const struct snapshot *snapshot;
    const struct observe *seen; /* what the engine has */
    /* May the engine have that node at @at: by its direct path, or at some relay where it is
     * relayed? */
    bool (*may_be_at)(void *ctx, const char *node, const struct endpoint *at);
    void *ctx; /* borrowed; for @may_be_at */
    nsec_t now;
};

/** A peer that may be at a wrong endpoint. Borrowed from the facts. */
struct peer_doubt_wish {
    const struct observation *peer;
    const char *node; /* whose path this node finds; NULL: one that is silent where it is */
};

struct peer_doubt {
    size_t next; /* place of the walk through the facts; 0: none is on */
    struct log_limit limit;
};

/**
 * peer_doubt_next() - the next doubtful peer
 *
 * Call it until it is false; the next call then begins again. Peers whose paths this node finds
 * come first. Whether the wanted endpoint is another than the engine's is for the owner to see.
 */
bool peer_doubt_next(
    struct peer_doubt *pd, const struct peer_doubt_facts *facts, struct peer_doubt_wish *ret);

/** peer_doubt_log() - that peer's endpoint will be told again; the log is limited. */
void peer_doubt_log(struct peer_doubt *pd, const struct peer_doubt_wish *wish, nsec_t now);
