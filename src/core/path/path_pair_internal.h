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

/** One of our sockets and one endpoint of the peer. */
struct path_pair {
    uint32_t id; /* of this edge's; never 0, never again */
    uint32_t socket;
    struct candidate remote;
    struct ip_addr local;     /* our address on it; none: not known */
    struct ip_addr left;      /* the same before the network changed last; none: not known */
    struct endpoint observed; /* our address as the peer sees it; none: not known */
    nsec_t tried_at;          /* last ping; 0: never */
    nsec_t heard_at;          /* last fresh frame; 0: never */
    nsec_t valid_at;          /* last pong; 0: never */
    nsec_t rtt;               /* the least of the first pongs, then smoothed; valid after one */
    nsec_t last_rtt;          /* of the last pong by itself */
    unsigned n_samples;       /* pongs since it was last silent */
    unsigned n_round_pongs;   /* in this round */
    unsigned n_better;        /* measurements in a row that beat the chosen one */
    unsigned n_deaths;        /* of late, while chosen */
    unsigned n_worse;         /* how often of late the relay was better */
    nsec_t held_until;        /* not to be chosen before */
    bool is_answered;         /* the last ping that was sent got its pong */
    bool has_died;            /* and was not valid since */
    uint64_t lost;            /* bit i: the ping i before the last known one was lost */
    unsigned n_known;         /* of those bits */
    struct path_ping pings[PATH_PINGS_MAX];
    unsigned next_ping; /* place in @pings */
    uint64_t n_pings;
    uint64_t n_pongs;
    uint64_t agreed; /* sequence of the peer's last NOMINATE or ACCEPT of it; 0: none in that run */
};

struct path_pair *path__pair_find(
    const struct path *pp, uint32_t socket, const struct endpoint *remote);
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

void path__pair_on_ping(struct path_pair *pair, uint64_t transaction, nsec_t now);

/**
 * path__pair_on_pong() - it came in at @at; false when it answers no ping that is outstanding
 *
 * Also when its clock is not that ping's: the time is ours, and no other is reckoned with.
 */
bool path__pair_on_pong(
    struct path_pair *pair, const struct path_frame *pong, nsec_t at, nsec_t now);

/** path__pair_is_valid() - it answered of late. */
bool path__pair_is_valid(const struct path_pair *pair, nsec_t now);

unsigned path__pair_loss(const struct path_pair *pair);
enum path_kind path__pair_kind(const struct path_pair *pair);

/** path__pair_beats() - @a is better than @b by more than chance. */
bool path__pair_beats(const struct path_pair *a, const struct path_pair *b);

enum path_verdict path__pair_verdict(const struct path *pp, const struct path_pair *pair);
