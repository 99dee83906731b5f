/*
 * path_pair_internal.h - path_pair.c's part of an edge: what was tried, and its measurements.
 */
#pragma once

#include "path/path.h"

struct path;
struct path_frame;

#define PATH_PINGS_MAX    8 /* unanswered pings that a pair remembers */
#define PATH_SAMPLES_SURE 4 /* pongs that a round needs before a relay may be preferred */

/** May the present round ask a pair? Decided when it is about to. */
enum path_admission {
    PATH_ADMISSION_OPEN, /* not decided */
    PATH_ADMISSION_YES,
    PATH_ADMISSION_NO, /* too much was sent to that address lately */
};

/** A ping that has been sent. */
struct path_ping {
    uint64_t transaction;
    nsec_t sent_at;   /* 0: there is none, or it was answered */
    uint64_t lost_as; /* the pair's @n_ends when it was taken to be lost; 0: it is not */
};

/** The least of the measurements of one to two halves of a window of time. Times are given with
 * each. */
struct path_least {
    nsec_t values[2]; /* of the present half, and of the half before; 0: none */
    nsec_t since;     /* when the present half began; 0: none has */
};

/** What is known from the peer's frames that came by a pair. Written by path_frame.c; paths.c moves
 * @local to @left when the network changes. */
struct path_pair_contact {
    struct ip_addr local;     /* our address that they came to; none: not known */
    struct ip_addr left;      /* the same before the network changed last; none: not known */
    struct endpoint observed; /* our address as the peer sees it; none: not known */
    nsec_t heard_at;          /* when the last fresh frame came; 0: never */
    uint64_t
        agreed; /* sequence of the peer's last NOMINATE or ACCEPT of the pair; 0: none in its run */
};

/** One of our sockets and one endpoint of the peer. path_pair.c writes what names no other file;
 * path_checks.c counts anew for a round. */
struct path_pair {
    uint32_t id; /* unique in this edge; never 0, never used again */
    uint32_t socket;
    struct candidate remote;
    struct path_pair_contact contact;
    /* How a pair has done as a path. Written by path_nominate.c. */
    struct {
        unsigned n_better; /* measurements in a row in which it beat the chosen pair */
        unsigned n_deaths; /* how often it has recently failed while it was chosen */
        nsec_t free_at;    /* it is not chosen before this time */
        bool has_died;     /* it has failed while it was chosen; it may be valid again */
        uint64_t probe; /* the last that asked whether packets of the present size pass; 0: none */
        nsec_t probed_at;
        uint16_t fits; /* UDP payload of the largest that was answered */
        nsec_t fits_at;
    } record;
    nsec_t tried_at;    /* when the last ping was sent; 0: never */
    nsec_t valid_at;    /* when the last pong came; 0: never, or the pair has failed since */
    nsec_t answered_at; /* the same, whatever became of it since; 0: never */
    nsec_t rtt;         /* least of the first pongs, then smoothed; set after the first pong */
    nsec_t last_rtt;    /* round trip time of the last pong alone */
    /* Of 10 to 20 minutes, while the pair worked. That is what the network between the two takes:
     * the others have the time for which the machines were busy or a queue was long. */
    struct path_least least;
    /* Of half a minute to a minute. It leaves out what a busy moment adds, and shows a way that has
     * become longer, or a queue that never drains, after a minute. */
    struct path_least recent;
    unsigned n_samples;            /* pongs since it was last silent */
    unsigned n_round_pongs;        /* in this round */
    enum path_admission admission; /* to this round; path_checks.c */
    bool is_answered;              /* the last ping that was sent got its pong */
    uint64_t lost;                 /* bit i: the ping i before the last known one was lost */
    unsigned n_known;              /* of those bits */
    uint64_t n_ends;               /* pings that were answered or taken to be lost */
    struct path_ping pings[PATH_PINGS_MAX];
    unsigned next_ping; /* place in @pings */
    uint64_t n_pings;
    uint64_t n_pongs;
};

/** path__pair_find() - lends the pair of a socket and an endpoint; NULL: there is none. */
struct path_pair *path__pair_find(
    const struct path *pp, uint32_t socket, const struct endpoint *remote);

/** path__pair_of() - lends the pair of an id; NULL: it is gone, or @id is 0. */
struct path_pair *path__pair_of(const struct path *pp, uint32_t id);

/** path__pair_add() - find or make a pair; NULL: no memory, no room besides better pairs, or the
 * endpoint can be no peer's, as one in the overlay itself. */
struct path_pair *path__pair_add(
    struct path *pp, enum candidate_kind kind, const struct endpoint *remote, uint32_t socket);

/** path__pairs_take_side() - a pair for each candidate; those of old ones go, unless they work. */
void path__pairs_take_side(struct path *pp);

/** path__pairs_drop_silent() - drop pairs where frames of the peer came but it never answers. */
void path__pairs_drop_silent(struct path *pp);

/** path__pairs_drop_blocked() - drop all pairs that lead through an overlay. None may be chosen. */
void path__pairs_drop_blocked(struct path *pp);

/** path__pairs_drop_socket() - drop all pairs of a socket that was closed. */
void path__pairs_drop_socket(struct path *pp, uint32_t socket);

/** path__pair_on_ping() - a ping was sent; @transaction is its own. */
void path__pair_on_ping(struct path_pair *pair, uint64_t transaction, nsec_t now);

/** path__pair_on_death() - the path has failed: its measurements are not valid any more. */
void path__pair_on_death(struct path_pair *pair);

/**
 * path__pair_on_pong() - a pong came in at @at; false when it answers no ping that we wait for
 *
 * A pong whose clock is not that of the ping answers nothing: the round trip is reckoned by our own
 * clock only.
 */
bool path__pair_on_pong(
    struct path_pair *pair, const struct path_frame *pong, nsec_t at, nsec_t now);

/** path__least() - the least of both halves; 0: not measured. */
nsec_t path__least(const struct path_least *l);

/** path__pair_is_valid() - has the peer recently answered by this pair? */
bool path__pair_is_valid(const struct path_pair *pair, nsec_t now);

/** path__pair_loss() - share of its last pings that were lost, in thousandths; 0: none is known. */
unsigned path__pair_loss(const struct path_pair *pair);

/** path__pair_lost_lately() - the same of its last 16. */
unsigned path__pair_lost_lately(const struct path_pair *pair);

/** path__pair_kind() - LAN or DIRECT, by the peer's address. */
enum path_kind path__pair_kind(const struct path_pair *pair);

/** path__pair_is_better() - @a is better than @b by more than chance. */
bool path__pair_is_better(const struct path_pair *a, const struct path_pair *b);

/** path__pair_verdict() - the state of the pair, for people to read. */
enum path_verdict path__pair_verdict(const struct path *pp, const struct path_pair *pair);
