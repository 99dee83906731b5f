/*
 * paths_internal.h - what all edges of one node share: its keys and candidates, the queue of its
 * actions, and the budgets for what it may send and open.
 *
 * paths.c makes and keeps it; paths_queue.c writes its queue and its budgets.
 */
#pragma once

#include "base/containers.h"
#include "base/rate.h"
#include "path/paths.h"
#include "wire/path.h"

/* ---- frames to addresses that have not answered ---------------------------------------------- */

/*
 * How much this node sends to an address that has not answered it.
 *
 * Where a peer may be reached is what that peer says, so a member can name the
 * address of somebody who has nothing to do with the network. Therefore each address has one
 * budget, whichever peers name it, how often, and with which ports. It is enough for the rounds
 * that find a path, and comes back slowly. A guess at a port costs an eighth, because it takes a
 * thousand of them (path_checks.c bounds their number); so does what is sent to an address
 * where a peer has answered. An IPv6 address stands for its network of 64 bits, since one host has
 * all of it.
 *
 * The table is of fixed size: sets of a few places each, and a keyed hash says which set. An
 * address with a whole budget gives its place to another one, and nothing is forgotten by that.
 * Where no place is free, the others of that set share one budget.
 *
 * Pure: addresses and times in, a verdict out.
 */

#define DESTINATIONS_SETS          256 /* a power of two */
#define DESTINATIONS_ASSOCIATIVITY 4

/** An answer is remembered for so long. */
#define DESTINATIONS_ANSWERED_FOR (600 * NSEC_PER_SEC)

struct destination {
    struct ip_addr addr; /* as it is counted: of IPv6 the network; none: the place is free */
    nsec_t answered_at;  /* when a peer last answered from there; 0: never */
    struct rate rate;
};

struct destinations {
    uint64_t seed; /* random, unknown to peers */
    struct destination places[DESTINATIONS_SETS][DESTINATIONS_ASSOCIATIVITY];
    struct rate others[DESTINATIONS_SETS]; /* of addresses that have no place in a set */
};

/**
 * destinations_take() - may @n_frames be sent to @to? If so they count as sent.
 * @is_guess:	they ask ports that nobody has named
 */
bool destinations_take(
    struct destinations *d, const struct ip_addr *to, unsigned n_frames, bool is_guess, nsec_t now);

/** destinations_on_answer() - a peer has answered from there: its budget is whole again. */
void destinations_on_answer(struct destinations *d, const struct ip_addr *from, nsec_t now);

/* ---- what all edges share -------------------------------------------------------------------- */

/** Frames a second, as the time at which the next one is free (GCRA). */
struct paths_bucket {
    nsec_t interval; /* of one frame */
    nsec_t burst;    /* the cost of all that may be taken at once */
    struct rate rate;
};

/** Something in the queue. */
struct paths_item {
    struct path_action action;
    struct path *path;       /* pins; NULL: the action is of no edge, or the edge is gone */
    struct path_frame frame; /* SEND: it is sealed when the action is taken */
    char *text;              /* owns; EVENT: its text */
};

/** How much this node moves with all its peers together. Written by path_liveness.c. */
struct paths_load {
    uint64_t bytes; /* since @since, both ways */
    nsec_t since;   /* when the count was last looked at */
    nsec_t busy_at; /* when it was last found to be much; 0: never */
};

struct path_traffic;

/** paths_load_count() - the engine counts so many bytes of a peer now, and has counted @before. */
void paths_load_count(
    struct paths_load *l, const struct path_traffic *before, uint64_t rx, uint64_t tx, nsec_t now);

/** paths_load_is_calm() - has the node moved little in the last seconds? Then its own load does not
 * make round trips longer. */
bool paths_load_is_calm(const struct paths_load *l, nsec_t now);

/** What the caller is to do. Written by paths_queue.c. */
struct paths_queue {
    struct paths_item *items; /* owns; a ring of @cap */
    size_t first;
    size_t n;
    size_t cap;
    char *text; /* owns; of the EVENT that was taken last */
    uint8_t frame[PATH_FRAME_MAX];
};

/** All edges of a node. Fields that name no other writer are written by paths.c. */
struct paths {
    struct x25519_secret secret; /* what is sent goes under it */
    struct x25519_public public;
    struct x25519_secret
        other_secret; /* frames are taken under it as well; zeroes: there is none */
    struct x25519_public other_public; /* none: likewise */
    char name[NAME_MAX_LEN + 1];
    struct rng rng;
    uint64_t session;    /* number of this run */
    nsec_t clock_offset; /* to be added to `now` for the clock that peers share */
    bool relay_is_usable;
    struct paths_notice *notices; /* owns @n_notices: what relays tell of their lines */
    size_t n_notices;
    struct path_side self;
    struct candidate_blocks blocks; /* of the overlay; no path leads there */
    nsec_t changed_at;              /* when this machine's network changed last; 0: never */
    nsec_t self_changed_at;         /* when our candidates changed last; 0: never */
    struct htab by_key;
    struct htab by_tag; /* of struct path_known */
    struct heap timers; /* one deadline for each edge */

    struct paths_load load;
    struct paths_queue queue;
    /* What the node may send, and which mappings it may make. Written by paths_queue.c. */
    struct {
        struct paths_bucket begin;    /* frames that we send unasked */
        struct paths_bucket answer;   /* frames that answer others' frames */
        struct paths_bucket mappings; /* mappings that guessing makes in our NAT */
        struct destinations to;       /* frames to each address that does not answer */
    } budget;
    /* Guessing ports: one edge of a node at a time. Written by path_checks.c. */
    struct {
        struct path *edge;    /* pins; the edge whose turn it is; NULL: no edge's */
        unsigned sockets_max; /* most sockets that may be open at once */
        unsigned n_sockets;   /* sockets that are open */
        uint32_t last_socket; /* number of the newest */
    } guessing;
    /* When the action FRESH was last asked for, for each reason; 0: never. */
    struct {
        nsec_t guess_at; /* because the peer is about to guess our port; path_checks.c */
        nsec_t death_at; /* because a path had died; path_nominate.c */
    } asking;
    nsec_t looked_at; /* when the action LOOK was last asked for; 0: never. path_nominate.c */
    struct paths_counters counters; /* each is written where its event happens */
};

/** paths__notice() - what that relay tells of its line; NULL: nothing. */
static inline const struct path_relay_notice *paths__notice(
    const struct paths *p, const struct x25519_public *relay)
{
    for (size_t i = 0; i < p->n_notices; i++)
        if (x25519_public_equal(&p->notices[i].relay, relay))
            return &p->notices[i].notice;
    return NULL;
}

/** paths__add() - put an action of an edge (@pp NULL: of none) into the queue; the caller fills it
 * in at once. NULL when there is no memory, or a frame and too much in the queue already. */
struct paths_item *paths__add(struct paths *p, struct path *pp, enum path_action_kind kind);

/** paths__forget() - the edge goes: its actions but CLOSE leave the queue. */
void paths__forget(struct paths *p, const struct path *pp);

/** paths__reserve() - take @n unasked frames from the budget; returns when they may be sent. */
nsec_t paths__reserve(struct paths *p, unsigned n, nsec_t now);

/** paths__may_map() - may guessing make @n more mappings in our NAT? If so they count as made. */
bool paths__may_map(struct paths *p, unsigned n, nsec_t now);

/**
 * paths__may_send() - may @n frames be sent to @to, on a pair that has not answered lately?
 * @is_guess:	they ask ports that the peer has not named
 *
 * If so they count as sent.
 */
bool paths__may_send(
    struct paths *p, const struct endpoint *to, unsigned n, bool is_guess, nsec_t now);

/** paths__unmap() - @n mappings that count as made were not made. */
void paths__unmap(struct paths *p, unsigned n);

/** paths__may_answer() - may one more answer be sent? If so it counts as sent. */
bool paths__may_answer(struct paths *p, nsec_t now);

/** paths__queue_deinit() - release the queue; actions that are still in it are lost. Once. */
void paths__queue_deinit(struct paths *p);
