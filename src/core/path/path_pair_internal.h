/*
 * path_pair_internal.h - path_pair.c's part of an edge: what was tried, and its measurements.
 */
#pragma once

#include "path/path.h"

struct path;
struct path_frame;

#define PATH_PINGS_MAX    8 /* outstanding ones that a pair remembers */
#define PATH_SAMPLES_SURE 4 /* pongs that a round asks for: with fewer no relay is preferred */

/** A ping that has been sent. */
struct path_ping {
    uint64_t transaction;
    nsec_t sent_at; /* 0: none, or its end is known */
};

/** Frames of the peer that came by a pair. Written by path_frame.c. */
struct path_pair_contact {
    struct ip_addr local;     /* our address that they came to; none: not known */
    struct ip_addr left;      /* the same before the network changed last; none: not known */
    struct endpoint observed; /* our address as the peer sees it; none: not known */
    nsec_t heard_at;          /* last fresh frame; 0: never */
    uint64_t agreed; /* sequence of the peer's last NOMINATE or ACCEPT of it; 0: none in that run */
};

/** How a pair has done as a path. Written by path_nominate.c. */
struct path_pair_record {
    unsigned n_better; /* measurements in a row that beat the chosen one */
    unsigned n_deaths; /* of late, while chosen */
    unsigned n_worse;  /* how often of late the relay was better */
    nsec_t free_at;    /* not to be chosen before */
    bool has_died;     /* while chosen; it may have been valid since */
};

/** One of our sockets and one endpoint of the peer. What has no owner named is path_pair.c's. */
struct path_pair {
    uint32_t id; /* of this edge's; never 0, never again */
    uint32_t socket;
    struct candidate remote;
    struct path_pair_contact contact;
    struct path_pair_record record;
    nsec_t tried_at;        /* last ping; 0: never */
    nsec_t valid_at;        /* last pong; 0: never, or it has died since */
    nsec_t rtt;             /* the least of the first pongs, then smoothed; valid after one */
    nsec_t last_rtt;        /* of the last pong by itself */
    unsigned n_samples;     /* pongs since it was last silent */
    unsigned n_round_pongs; /* in this round */
    bool is_answered;       /* the last ping that was sent got its pong */
    uint64_t lost;          /* bit i: the ping i before the last known one was lost */
    unsigned n_known;       /* of those bits */
    struct path_ping pings[PATH_PINGS_MAX];
    unsigned next_ping; /* place in @pings */
    uint64_t n_pings;
    uint64_t n_pongs;
};

/** path__pair_find() - lends; NULL: there is none. */
struct path_pair *path__pair_find(
    const struct path *pp, uint32_t socket, const struct endpoint *remote);

/** path__pair_of() - that of an id; lends. NULL: there is none any more, or @id is 0. */
struct path_pair *path__pair_of(const struct path *pp, uint32_t id);

/** path__pair_add() - find or make; NULL: no memory, or 48 pairs that all matter more. */
struct path_pair *path__pair_add(
    struct path *pp, enum candidate_kind kind, const struct endpoint *remote, uint32_t socket);

/** path__pairs_take_side() - a pair for each candidate; those of old ones go, unless they work. */
void path__pairs_take_side(struct path *pp);

/** path__pairs_drop_silent() - those where the peer was heard, but never answers. */
void path__pairs_drop_silent(struct path *pp);

/** path__pairs_drop_socket() - all pairs of a socket that was closed. */
void path__pairs_drop_socket(struct path *pp, uint32_t socket);

/** path__pairs_begin_round() - count pongs anew; @anew: measure all round trips anew, too. */
void path__pairs_begin_round(struct path *pp, bool anew);

/** path__pair_on_ping() - a ping was sent; @transaction is its own. */
void path__pair_on_ping(struct path_pair *pair, uint64_t transaction, nsec_t now);

/** path__pair_on_death() - nothing that was measured of it holds any more. */
void path__pair_on_death(struct path_pair *pair);

/**
 * path__pair_on_pong() - it came in at @at; false when it answers no ping that is outstanding
 *
 * A pong whose clock is not that of the ping answers nothing: the round trip is reckoned by our own
 * clock only.
 */
bool path__pair_on_pong(
    struct path_pair *pair, const struct path_frame *pong, nsec_t at, nsec_t now);

/** path__pair_is_valid() - it answered of late. */
bool path__pair_is_valid(const struct path_pair *pair, nsec_t now);

/** path__pair_loss() - share of its last pings that were lost, in thousandths; 0: none is known. */
unsigned path__pair_loss(const struct path_pair *pair);

/** path__pair_kind() - LAN or DIRECT, by the peer's address. */
enum path_kind path__pair_kind(const struct path_pair *pair);

/** path__pair_beats() - @a is better than @b by more than chance. */
bool path__pair_beats(const struct path_pair *a, const struct path_pair *b);

/** path__pair_verdict() - what became of it, for people. */
enum path_verdict path__pair_verdict(const struct path *pp, const struct path_pair *pair);
