/*
 * path_internal.h - the parts of one edge's machine, and what they share of the node's.
 *
 * path_pair.c    what was tried, and its measurements
 * path_frame.c   frames out and in
 * path_round.c   pinging all pairs together with the other side
 * path_choice.c  which pair is used: nominate, follow, leave
 * path_relay.c   through which relay, while none is
 * path_beat.c    is the chosen pair alive?
 * path_spray.c   guessing the ports of a symmetric NAT
 * path_why.c     words
 * paths_queue.c  actions and the budget of a node
 * paths.c        the functions of paths.h
 *
 * Every event ends with path__rearm(), which puts the earliest of the edge's
 * deadlines into the node's heap.
 */
#pragma once

#include "base/heap.h"
#include "base/htab.h"
#include "nat/paths.h"
#include "wire/path.h"

/*
 * Mappings that guessing may make in this node's own NAT, and the time in which that is allowed
 * once more. NATs keep an unanswered mapping for two to five minutes (RFC 4787 section 4.3), and
 * have room for some thousands.
 */
#define PATHS_MAPPINGS_MAX  1024
#define PATHS_MAPPINGS_TIME (120 * NSEC_PER_SEC)

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
    unsigned n_samples;       /* pongs since it was last silent */
    unsigned n_round_pongs;   /* in this round */
    unsigned n_better;        /* measurements in a row that beat the chosen one */
    unsigned n_deaths;        /* of late, while chosen */
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

/** Pinging all pairs, or a part of them. */
struct path_round {
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
struct path_beat {
    nsec_t next;             /* ping; NSEC_NEVER: nothing is chosen */
    nsec_t alive_at;         /* last proof of the way there and back */
    nsec_t first_unanswered; /* of the pings since; 0: none */
    unsigned n_unanswered;
    nsec_t agree_by;      /* until then the other end may still be about to switch */
    unsigned n_disagreed; /* answers of an other end that does not use the pair, in a row */
};

struct path_spray;

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

    nsec_t ask_free_at;    /* when another endpoint may be asked back at */
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
    struct path_beat beat;
    struct path_round round;
    nsec_t round_at;          /* when the last one began; 0: never */
    nsec_t slot;              /* of the next one */
    unsigned backoff;         /* slots are skipped, all but each 2^backoff-th */
    unsigned n_failed;        /* rounds that found nothing, in a row */
    bool is_moved;            /* tell the peer that our address has changed */
    uint32_t moved_to;        /* pair on which a peer whose address has changed speaks; 0: none */
    nsec_t died_at;           /* when a direct path died last; 0: never */
    bool is_worse;            /* the direct path that there was is worse than the relay */
    bool is_alarm;            /* it was complained about, and is still so */
    nsec_t alarm_at;          /* when to complain; NSEC_NEVER: done, or nothing to complain about */
    struct path_spray *spray; /* owns; NULL: none */
    nsec_t spray_after;       /* not again before */
    unsigned n_sprays;        /* tried, in vain */

    bool has_counts; /* of traffic, to compare with */
    uint64_t rx;     /* as counted last */
    uint64_t tx;
    nsec_t traffic_at; /* when they moved; 0: never */

    uint64_t n_frames;
    uint64_t n_sprayed;
};

/** Frames a second, as the time at which the next one is free (GCRA). */
struct paths_bucket {
    nsec_t interval; /* of one frame */
    nsec_t burst;    /* how far behind the clock @free_at may be */
    nsec_t free_at;
};

/** Something in the queue. */
struct paths_item {
    struct path_action action;
    struct path *path;       /* NULL: of no edge, or it is gone */
    struct path_frame frame; /* SEND: sealed when it is taken */
    char *text;              /* owns; EVENT */
};

struct paths {
    struct x25519_secret secret;
    struct x25519_public public;
    char name[NAME_MAX_LEN + 1];
    struct rng rng;
    uint64_t session; /* this run */
    nsec_t clock_offset;
    bool relay_is_usable;
    struct path_side self;
    struct htab by_key;
    struct htab by_tag;
    struct heap timers;

    struct paths_item *items; /* owns; a ring of @cap_items */
    size_t first_item;
    size_t n_items;
    size_t cap_items;
    char *text; /* owns; of the EVENT that was taken last */
    uint8_t frame[PATH_FRAME_MAX];

    struct paths_bucket begin;
    struct paths_bucket answer;
    struct paths_bucket mappings; /* that guessing makes in our NAT */
    unsigned spray_sockets;       /* may be open at once */
    unsigned n_sockets;           /* are */
    uint32_t last_socket;
    struct path *sprayer; /* the one edge that sprays; NULL: none */
    nsec_t fresh_at;      /* when FRESH was asked for a guess last; 0: never */
    nsec_t asked_at;      /* the same, because a path had died */
    nsec_t changed_at;    /* when this machine's network changed last; 0: never */
    struct paths_counters counters;
};

/* ---- path_pair.c ---- */

struct path_pair *path__pair_find(
    const struct path *e, uint32_t socket, const struct endpoint *remote);
struct path_pair *path__pair_of(const struct path *e, uint32_t id);

/** path__pair_add() - find or make; NULL: no memory, or 48 pairs that all matter more. */
struct path_pair *path__pair_add(
    struct path *e, enum candidate_kind kind, const struct endpoint *remote, uint32_t socket);

/** path__pairs_take_side() - a pair for each candidate; those of old ones go, unless they work. */
void path__pairs_take_side(struct path *e);

/** path__pairs_drop_silent() - those where the peer was heard, but never answers. */
void path__pairs_drop_silent(struct path *e);

/** path__pairs_drop_socket() - all pairs of a socket that was closed. */
void path__pairs_drop_socket(struct path *e, uint32_t socket);

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

enum path_verdict path__pair_verdict(const struct path *e, const struct path_pair *pair);

/* ---- path_frame.c ---- */

/** path__ping() - on a pair, now; counted against the budget, never refused. */
void path__ping(struct path *e, struct path_pair *pair, nsec_t now);

/** path__ping_loose() - at an endpoint that is a guess. */
void path__ping_loose(struct path *e, uint32_t socket, const struct endpoint *remote, nsec_t now);

/** path__tell() - NOMINATE, ACCEPT, LEAVE. */
void path__tell(struct path *e, const struct path_pair *pair, enum path_frame_kind kind,
    uint8_t flags, uint64_t transaction, nsec_t now);

/** path__probe() - a padded one; false when there is no memory. */
bool path__probe(
    struct path *e, const struct path_pair *pair, uint16_t size, uint64_t *ret_probe, nsec_t now);

/** path__on_frame() - one that carries the edge's tag. */
void path__on_frame(
    struct path *e, const struct path_arrival *in, uint8_t *msg, size_t len, nsec_t now);

/* ---- path_round.c ---- */

/** path__round_start() - now, or as soon as the budget allows; one that runs goes on. */
void path__round_start(struct path *e, bool is_full, nsec_t now);
void path__round_stop(struct path *e);
void path__round_tick(struct path *e, nsec_t now);
void path__slot_tick(struct path *e, nsec_t now);

/** path__ask_address() - a path has died: is our NAT another one since, or has it forgotten us? */
void path__ask_address(const struct path *e, nsec_t now);

/** path__round_plan() - when both ends try again. */
void path__round_plan(struct path *e, nsec_t now);

/** path__slot_after() - the first slot after @now of each 2^@skip-th: the same at both ends. */
nsec_t path__slot_after(const struct path *e, unsigned skip, nsec_t now);

/* ---- path_choice.c ---- */

bool path__wants_direct(const struct path *e);
void path__choose(struct path *e, nsec_t now);
void path__on_measured(struct path *e, struct path_pair *pair, nsec_t now);
/** path__follow_move() - nominate the pair on which a moved peer speaks, once it is valid. */
void path__follow_move(struct path *e, struct path_pair *pair, nsec_t now);
void path__on_nominate(struct path *e, struct path_pair *pair, uint64_t transaction, nsec_t now);
void path__on_accept(struct path *e, struct path_pair *pair, uint64_t transaction, nsec_t now);
void path__on_leave(struct path *e, struct path_pair *pair, uint8_t flags, nsec_t now);
void path__choice_tick(struct path *e, nsec_t now);

/** path__nominate() - begin to tell the peer. */
void path__nominate(struct path *e, struct path_pair *pair, nsec_t now);

/** path__use_relay() - now; @why is put after the peer's name in the event, NULL: none. */
void path__use_relay(struct path *e, const char *why, nsec_t now);

/** path__die() - the chosen pair does not answer any more. */
void path__die(struct path *e, nsec_t now);

/** path__tell_use() - the action that says so; NULL @pair: the relay. NULL: no memory. */
struct paths_item *path__tell_use(struct path *e, const struct path_pair *pair);

/** path__end_alarm() - it is direct, or need not be any more; @words say which. */
void path__end_alarm(struct path *e, const char *words);

/* ---- path_beat.c ---- */

void path__beat_start(struct path *e, nsec_t now);
void path__beat_stop(struct path *e);
/** path__beat_on_nominate() - the peer is about to use the chosen pair (again). */
void path__beat_on_nominate(struct path *e, nsec_t now);
void path__beat_on_alive(struct path *e, nsec_t now);
/** path__beat_now() - the chosen pair may be gone: ask, unless that is done already. */
void path__beat_now(struct path *e, nsec_t now);
void path__beat_tick(struct path *e, nsec_t now);
/** path__beat_on_agreement() - does the peer, who has answered on the chosen pair, use it? */
void path__beat_on_agreement(struct path *e, struct path_pair *pair, bool agrees, nsec_t now);
void path__on_traffic(struct path *e, uint64_t rx, uint64_t tx, nsec_t now);

/* ---- path_spray.c ---- */

/** path__spray_consider() - a round has found nothing: is guessing worth it? */
void path__spray_consider(struct path *e, nsec_t now);
void path__spray_tick(struct path *e, nsec_t now);
nsec_t path__spray_due(const struct path *e);
void path__spray_on_socket(struct path *e, uint32_t socket, bool opened, nsec_t now);

/** path__owns_socket() - the main one is every edge's, another only that of who asked for it. */
bool path__owns_socket(const struct path *e, uint32_t socket);

/** path__spray_on_used() - a path was found: another guess is not held back for long. */
void path__spray_on_used(struct path *e, nsec_t now);

/** path__leave_socket() - for the relay, if the chosen pair has a socket of its own. */
void path__leave_socket(struct path *e, nsec_t now);

/** path__spray_end() - close the sockets that are not in use. */
void path__spray_end(struct path *e);

/** path__guess_ports() - the likeliest few ports of a peer whose NAT counts. */
void path__guess_ports(struct path *e, nsec_t now);

/** path__close_socket() - one that the chosen pair does not need any more. */
void path__close_socket(struct path *e, uint32_t socket);

/* ---- path_why.c ---- */

void path__why(const struct path *e, char buf[static PATH_TEXT_MAX], nsec_t now);
void path__event(struct path *e, bool is_warning, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- paths.c ---- */

/** path__rearm() - after whatever changed one of the edge's deadlines. */
void path__rearm(struct path *e);
void path__tick(struct path *e, nsec_t now);

/* ---- paths_queue.c ---- */

/** paths__add() - an action; NULL when there is no memory, or too much in the queue already. */
struct paths_item *paths__add(struct paths *p, struct path *e, enum path_action_kind kind);

/** paths__forget() - the edge goes: nothing in the queue may name it. */
void paths__forget(struct paths *p, const struct path *e);

/** paths__reserve() - @n frames that we begin: the time from which they may be sent. */
nsec_t paths__reserve(struct paths *p, unsigned n, nsec_t now);

/**
 * paths__may_map() - that many mappings more in our NAT, by guessing? Then they are accounted for.
 * paths__unmap() - so many of them were not made.
 */
bool paths__may_map(struct paths *p, unsigned n, nsec_t now);
void paths__unmap(struct paths *p, unsigned n);

/** paths__may_answer() - one more answer? */
bool paths__may_answer(struct paths *p, nsec_t now);

void paths__queue_deinit(struct paths *p);
