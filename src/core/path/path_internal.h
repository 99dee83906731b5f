/*
 * path_internal.h - one edge's machine, and its parts.
 *
 * path_pair.c        what was tried, and its measurements
 * path_send.c        frames out
 * path_slot.c        when both ends try again
 * path_relay.c       through which relay, while no pair is chosen
 * path_explain.c     words
 * path_liveness.c    does the chosen pair still answer?
 * path_port_guess.c  guessing the ports of a symmetric NAT
 * path_checks.c      pinging all pairs, together with the other side
 * path_nominate.c    which pair is used: nominate, follow, leave
 * path_frame.c       frames in
 *
 * None of them calls one of a later line; paths.c is on top, and hands out events and deadlines.
 *
 * The pairs are in path_pair_internal.h, the relays in path_relay_internal.h, and
 * what all edges of a node share is in paths_internal.h.
 *
 * Every event ends with path__rearm(), which puts the earliest of the edge's
 * deadlines into the node's heap.
 */
#pragma once

#include "base/heap.h"
#include "base/htab.h"
#include "base/rate.h"
#include "path/path.h"
#include "wire/path.h"

struct path_pair;
struct path_port_guess;
struct paths;
struct paths_item;

/** Pinging all pairs, or a part of them. */
struct path_checks {
    nsec_t next;      /* of the next step; NSEC_NEVER: no round */
    unsigned step;    /* the next one */
    bool is_reserved; /* the budget for it is paid */
    bool is_full;     /* silent pairs too */
};

/** Telling the peer to use a pair. */
struct path_nomination {
    uint32_t pair; /* 0: none */
    uint64_t transaction;
    unsigned n_sent;
    nsec_t next; /* send again, or give up */
};

/** Is the chosen pair alive? */
struct path_liveness {
    nsec_t next;             /* ping; NSEC_NEVER: nothing is chosen */
    nsec_t alive_at;         /* last proof of the way there and back */
    nsec_t first_unanswered; /* of the pings since; 0: none */
    unsigned n_unanswered;
    nsec_t agree_by;      /* until then the other end may still be about to switch */
    unsigned n_disagreed; /* answers of an other end that does not use the pair, in a row */
};

/** The relay of an edge, while no pair is chosen. */
struct path_relaying {
    struct x25519_public key; /* none: the first that is told of */
    nsec_t move_at;           /* to the better one; NSEC_NEVER: there is none */
    nsec_t held_until;        /* not before, whatever is better: the other end has led here */
};

/** One edge. */
struct path {
    struct paths *owner; /* pins */
    struct htab_link by_key;
    struct htab_link by_tag;
    struct heap_link timer;

    struct path_peer peer;
    struct path_keys keys;
    bool nominates;    /* ours is the smaller key */
    nsec_t slot_phase; /* the same at both ends */
    struct path_side side;
    bool has_side; /* the peer has told something */

    struct rate asked;     /* back at other endpoints */
    uint64_t sequence;     /* of the last frame sent */
    uint64_t transaction;  /* the last one that we began */
    uint64_t peer_session; /* its run, proven fresh; 0: not yet */
    uint64_t replay_top;   /* greatest sequence of that run */
    uint64_t replay_seen;  /* bit i: sequence top - i was seen */

    struct path_pair *pairs; /* owns; in no order */
    unsigned n_pairs;
    unsigned cap_pairs;
    uint32_t last_id;

    uint32_t chosen; /* pair; 0: the relay */
    nsec_t since;
    nsec_t ticked_at; /* last path__tick() */
    struct path_relaying relay;
    nsec_t choose_at; /* not before; NSEC_NEVER: nothing to choose from yet */
    struct path_nomination nomination;
    struct path_nomination nominated; /* by the peer, for a pair that is not valid here yet */
    struct path_liveness liveness;
    struct path_checks checks;
    nsec_t round_at;   /* when the last one began; 0: never */
    nsec_t slot;       /* of the next one */
    unsigned backoff;  /* slots are skipped, all but each 2^backoff-th */
    unsigned n_failed; /* rounds that found nothing, in a row */
    bool is_moved;     /* tell the peer that our address has changed */
    uint32_t moved_to; /* pair on which a peer whose address has changed speaks; 0: none */
    nsec_t died_at;    /* when a direct path died last; 0: never */
    bool is_worse;     /* the direct path that there was is worse than the relay */
    bool is_alarm;     /* it was complained about, and is still so */
    nsec_t alarm_at;   /* when to complain; NSEC_NEVER: done, or nothing to complain about */
    struct path_port_guess *port_guess; /* owns; NULL: none */
    nsec_t spray_after;                 /* not again before */
    unsigned n_sprays;                  /* tried, in vain */

    bool has_counts; /* of traffic, to compare with */
    uint64_t rx;     /* as counted last */
    uint64_t tx;
    nsec_t traffic_at; /* when they moved; 0: never */

    uint64_t n_frames;
    uint64_t n_sprayed;
};

/** path__wants_direct() - does the administrator let the edge be direct? */
static inline bool path__wants_direct(const struct path *pp)
{
    return pp->peer.policy == PATH_POLICY_AUTO || pp->peer.policy == PATH_POLICY_DIRECT;
}

/* ---- path_send.c ---- */

/** path__ping() - on a pair, now; counted against the budget, never refused. */
void path__ping(struct path *pp, struct path_pair *pair, nsec_t now);

/**
 * path__open() - a ping that opens our own NAT, and ends before it reaches the peer's
 * @hops:	its IP time to live
 *
 * It is not counted as a ping of the pair, because no answer is expected.
 */
void path__open(struct path *pp, const struct path_pair *pair, uint8_t hops, nsec_t now);

/** path__ping_loose() - at an endpoint that is a guess. */
void path__ping_loose(struct path *pp, uint32_t socket, const struct endpoint *remote, nsec_t now);

/** path__tell() - NOMINATE, ACCEPT, LEAVE. */
void path__tell(struct path *pp, const struct path_pair *pair, enum path_frame_kind kind,
    uint8_t flags, uint64_t transaction, nsec_t now);

/** path__probe() - a padded one; false when there is no memory. */
bool path__probe(
    struct path *pp, const struct path_pair *pair, uint16_t size, uint64_t *ret_probe, nsec_t now);

/** path__answer() - to a ping or a probe, where it came from. */
void path__answer(struct path *pp, const struct path_arrival *in, const struct path_frame *f,
    size_t len, nsec_t now);

/* ---- path_frame.c ---- */

/** path__on_frame() - one that carries the edge's tag. */
void path__on_frame(
    struct path *pp, const struct path_arrival *in, uint8_t *msg, size_t len, nsec_t now);

/* ---- path_checks.c ---- */

/** path__checks_start() - now, or as soon as the budget allows; one that runs goes on. */
void path__checks_start(struct path *pp, bool is_full, nsec_t now);

/** path__checks_meet() - an end has told new addresses: a round that needs openers begins again. */
void path__checks_meet(struct path *pp, nsec_t now);

void path__checks_stop(struct path *pp);
void path__checks_tick(struct path *pp, nsec_t now);
void path__slot_tick(struct path *pp, nsec_t now);

/** path__ask_address() - a path has died: is our NAT another one since, or has it forgotten us? */
void path__ask_address(const struct path *pp, nsec_t now);

/* ---- path_slot.c ---- */

/** Between two slots of an edge. */
#define PATH_SLOT_PERIOD (60 * NSEC_PER_SEC)

/** path__slot_plan() - when both ends try again. */
void path__slot_plan(struct path *pp, nsec_t now);

/** path__has_interest() - it had traffic of late. */
bool path__has_interest(const struct path *pp, nsec_t now);

/** path__slot_after() - the first slot after @now of each 2^@skip-th: the same at both ends. */
nsec_t path__slot_after(const struct path *pp, unsigned skip, nsec_t now);

/* ---- path_nominate.c ---- */

void path__choose(struct path *pp, nsec_t now);
void path__on_measured(struct path *pp, struct path_pair *pair, nsec_t now);
/** path__follow_move() - nominate the pair on which a moved peer speaks, once it is valid. */
void path__follow_move(struct path *pp, struct path_pair *pair, nsec_t now);
void path__on_nominate(struct path *pp, struct path_pair *pair, uint64_t transaction, nsec_t now);
void path__on_accept(struct path *pp, struct path_pair *pair, uint64_t transaction, nsec_t now);
void path__on_leave(struct path *pp, struct path_pair *pair, uint8_t flags, nsec_t now);
void path__nominate_tick(struct path *pp, nsec_t now);

/** path__nominate() - begin to tell the peer. */
void path__nominate(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__use_relay() - now; @why is put after the peer's name in the event, NULL: none. */
void path__use_relay(struct path *pp, const char *why, nsec_t now);

/** path__die() - the chosen pair does not answer any more. */
void path__die(struct path *pp, nsec_t now);

/** path__settle() - the other end uses another path: agree again, or leave this one. */
void path__settle(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__leave_socket() - for the relay, if the chosen pair has a socket of its own. */
void path__leave_socket(struct path *pp, nsec_t now);

/** path__end_alarm() - it is direct, or need not be any more; @words say which. */
void path__end_alarm(struct path *pp, const char *words);

/* ---- path_liveness.c ---- */

void path__liveness_start(struct path *pp, nsec_t now);
void path__liveness_stop(struct path *pp);
/** path__liveness_on_nominate() - the peer is about to use the chosen pair (again). */
void path__liveness_on_nominate(struct path *pp, nsec_t now);
void path__liveness_on_alive(struct path *pp, nsec_t now);
/** path__liveness_now() - the chosen pair may be gone: ask, unless that is done already. */
void path__liveness_now(struct path *pp, nsec_t now);

/** path__liveness_tick() - ping when it is time. True: it is dead, nothing answers any more. */
bool path__liveness_tick(struct path *pp, nsec_t now);

/**
 * path__liveness_on_agreement() - the peer has answered on the chosen pair
 * @agrees:	it uses that pair too
 *
 * Return: true when the two have differed for too long: path__settle().
 */
bool path__liveness_on_agreement(struct path *pp, bool agrees, nsec_t now);

/** path__liveness_on_traffic() - what the engine has counted. True: data begins to flow. */
bool path__liveness_on_traffic(struct path *pp, uint64_t rx, uint64_t tx, nsec_t now);

/* ---- path_port_guess.c ---- */

/** path__port_guess_consider() - a round has found nothing: is guessing worth it? */
void path__port_guess_consider(struct path *pp, nsec_t now);
void path__port_guess_tick(struct path *pp, nsec_t now);
nsec_t path__port_guess_due(const struct path *pp);
void path__port_guess_on_socket(struct path *pp, uint32_t socket, bool opened, nsec_t now);

/** path__owns_socket() - the main one is every edge's, another only that of who asked for it. */
bool path__owns_socket(const struct path *pp, uint32_t socket);

/** path__port_guess_on_used() - a path was found: another guess is not held back for long. */
void path__port_guess_on_used(struct path *pp, nsec_t now);

/** path__port_guess_end() - close the sockets that are not in use. */
void path__port_guess_end(struct path *pp);

/** path__guess_ports() - the likeliest few ports of a peer whose NAT counts. */
void path__guess_ports(struct path *pp, nsec_t now);

/** path__close_socket() - one that the chosen pair does not need any more. */
void path__close_socket(struct path *pp, uint32_t socket);

/* ---- path_explain.c ---- */

void path__explain(const struct path *pp, char buf[static PATH_TEXT_MAX], nsec_t now);
void path__event(struct path *pp, bool is_warning, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- paths.c ---- */

/** path__rearm() - after whatever changed one of the edge's deadlines. */
void path__rearm(struct path *pp);
void path__tick(struct path *pp, nsec_t now);
