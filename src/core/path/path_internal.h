/*
 * path_internal.h - one edge's machine, and its parts.
 *
 * path_pair.c        what was tried, and its measurements; frames out
 * path_explain.c     words
 * path_liveness.c    does the chosen pair still answer?
 * path_checks.c      pinging all pairs, together with the other side; when both try again; guessing
 *                    the ports of a symmetric NAT
 * path_nominate.c    which pair is used: nominate, follow, leave; and which relay, while none is
 * path_frame.c       frames in
 *
 * None of them calls one of a later line; paths.c is on top, and hands out events and deadlines.
 *
 * The pairs are in path_pair_internal.h, and what all edges of a node share is in
 * paths_internal.h.
 *
 * Every event ends in paths.c with path_rearm(), which puts the earliest of the edge's deadlines
 * into the node's heap.
 */
#pragma once

#include "base/rate.h"
#include "path/path_known.h"

/* ---- path_liveness.c ---- */

/*
 * Is the chosen pair of an edge alive, and does data flow on the edge?
 *
 * Theory of operation. One side pings, and the other knows from the flag of the
 * next ping that its pong arrived; so an idle path costs one ping and one pong for
 * both. The other side pings when that stays away. While data flows the pings come
 * twice a second, otherwise as often as the NATs need. One that is not answered is
 * repeated quickly, and when all are silent for 1.3 s and three round trips the
 * path is dead: at most 2 s after it broke, if data flows.
 * The time by which a busy machine comes too late to its own ticks is not counted.
 *
 * A peer that is busy may answer late, while its engine goes on. Whatever authentic came by the
 * pair after the first ping without an answer therefore keeps the path for as long as more comes,
 * up to a minute. It shows one direction only; where the other one is broken the peer hears
 * nothing, and says that it leaves. What came by the relay counts for nothing.
 *
 * Pure: facts and times in; what to do, and when, out.
 */

/** Is the chosen pair alive? A machine of its own. */
struct path_liveness {
    nsec_t next_at;          /* ping; NSEC_NEVER: nothing is chosen */
    nsec_t unanswered_since; /* first of the pings that have no answer yet; 0: none */
    unsigned n_unanswered;
    nsec_t received_at;   /* when something was last known to have come by the pair since then; 0:
                             nothing was */
    nsec_t agree_at;      /* from then on the peer has to use the pair too */
    unsigned n_disagreed; /* answers of a peer that does not use the pair, in a row */
};

/** What path_liveness.c has to know of the edge. */
struct path_liveness_facts {
    nsec_t keepalive_here;  /* what holds this node's mapping; 0: not measured */
    nsec_t keepalive_there; /* the peer's */
    nsec_t rtt;             /* of the chosen pair */
    bool is_active;         /* data flows */
    bool is_relay;          /* the peer carries others' data for us */
    bool begins;            /* this side pings; the other only when that stays away */
};

/** What is to be done for the chosen pair. */
enum path_liveness_step {
    PATH_LIVENESS_WAIT, /* nothing before @next_at */
    PATH_LIVENESS_PING, /* ping it */
    PATH_LIVENESS_DEAD, /* nothing answers any more: leave it */
};

/** What the engine counts for the peer. Written by path_liveness.c. */
struct path_traffic {
    bool has_counts; /* @rx and @tx can be compared with */
    uint64_t rx;     /* bytes, as counted last */
    uint64_t tx;
    nsec_t moved_at; /* when they last changed; 0: never */
};

/** path_traffic_count() - bytes received and sent since any start. True: data begins to flow. */
bool path_traffic_count(struct path_traffic *t, uint64_t rx, uint64_t tx, nsec_t now);

/** path_traffic_is_active() - some has flowed in the last seconds. */
bool path_traffic_is_active(const struct path_traffic *t, nsec_t now);

/** path_liveness_start() - a pair was chosen that has just answered. */
void path_liveness_start(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now);

/** path_liveness_on_nominate() - the peer is about to use the chosen pair (again). */
void path_liveness_on_nominate(struct path_liveness *l, nsec_t now);

/** path_liveness_on_alive() - the chosen pair is proven to work both ways. */
void path_liveness_on_alive(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now);

/** path_liveness_on_received() - the engine has received something by the chosen pair, between
 * @since and @now. */
void path_liveness_on_received(struct path_liveness *l, nsec_t since, nsec_t now);

/** path_liveness_wants_look() - would it help to know what the engine has received? */
bool path_liveness_wants_look(
    const struct path_liveness *l, const struct path_liveness_facts *facts);

/** path_liveness_on_data() - data begins to flow: the pair is watched more closely. */
void path_liveness_on_data(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now);

/** path_liveness_suspect() - the chosen pair may be gone: ping now, unless that is done already. */
void path_liveness_suspect(struct path_liveness *l, nsec_t now);

/** path_liveness_tick() - what is due; a PING that is returned is taken to be sent. */
enum path_liveness_step path_liveness_tick(
    struct path_liveness *l, const struct path_liveness_facts *facts, nsec_t now);

/**
 * path_liveness_on_agreement() - the peer has answered on the chosen pair
 * @agrees:	it uses that pair too
 * @is_nominating: a nomination of ours waits for its answer
 *
 * Return: true when the two have differed for too long: path__settle().
 */
bool path_liveness_on_agreement(
    struct path_liveness *l, bool agrees, bool is_nominating, nsec_t now);

/* ---- the edge ---- */

/** One round: all pairs, or a part of them, are pinged in several steps. */
struct path_round {
    nsec_t next_at;   /* of the next step; NSEC_NEVER: no round */
    unsigned step;    /* the next one */
    bool is_reserved; /* the budget for it is paid */
    bool is_full;     /* silent pairs too */
};

/** Telling the peer to use a pair, or being told. */
struct path_nomination {
    uint32_t pair; /* 0: none */
    uint64_t transaction;
    unsigned n_sent; /* of our own: NOMINATE frames so far */
    nsec_t next_at;  /* our own: send again, or give up; the peer's: void from then on */
};

/** One edge: each part of it is written by the file that its comment names, and read by all. */
struct path {
    struct paths *owner; /* pins */
    struct htab_link by_key;
    struct heap_link timer;

    /* Written by paths.c. */
    struct path_peer peer;
    struct x25519_public other; /* a second key of the peer's; none: it has one */
    struct path_known known;    /* what is sent goes under these keys, too */
    struct path_known *more;    /* owns; PATH_KNOWN_MORE; NULL: none */
    bool nominates;             /* ours is the smaller key */
    uint64_t tag;               /* of the pair, as relays know it: path_pair_tag() */
    struct path_side side;
    bool has_side;    /* the peer has told something */
    nsec_t ticked_at; /* when paths_tick() last took it */

    /* Frames that this end sends. Written by path_pair.c; path_nominate.c takes numbers of
     * @transaction. */
    struct {
        uint64_t sequence;    /* of the last frame */
        uint64_t transaction; /* the last one that we began */
        uint64_t n_frames;    /* sent for this edge */
        uint64_t n_guesses;   /* of them, pings of guessed ports */
    } sending;
    /* Which frames of the peer are new. Written by path_frame.c. */
    struct {
        uint64_t session;            /* the peer's run, proven fresh; 0: not yet */
        struct seq_window sequences; /* of that run */
        struct rate asks_back;       /* pings of endpoints that the peer spoke from */
    } receiving;
    /* The pairs of an edge. Written by path_pair.c. */
    struct {
        struct path_pair *items; /* owns; in no order */
        unsigned n;
        unsigned cap;
        uint32_t last_id; /* given to the newest pair */
    } pairs;
    /* When both ends try again together. Written by path_checks.c; paths.c sets @backoff to 0. */
    struct {
        nsec_t phase;     /* shifts this edge's slots; the same at both ends, of the same keys */
        nsec_t next_at;   /* NSEC_NEVER: none is planned */
        unsigned backoff; /* slots are skipped, all but each 2^backoff-th */
    } slot;
    /* The relay of an edge, while no pair is chosen. Written by path_nominate.c. */
    struct {
        struct x25519_public key; /* none: the first that is told of */
        nsec_t move_at;           /* to the better one; NSEC_NEVER: there is none */
        nsec_t free_at;           /* until then it stays: the other end has moved the edge here */
        bool is_asked, avoids;    /* the relay asks it to go; it leaves out a nearer one, full */
    } relay;
    struct rtt_track *round_trips; /* owns; by path_frame.c, of the pair chosen last; NULL: none */
    struct path_traffic traffic;
    struct path_liveness liveness;
    /* Guessing ports. Written by path_checks.c; path_nominate.c sets @n_tried to 0. */
    struct {
        struct path_port_guess *present; /* owns; NULL: none */
        nsec_t again_at;                 /* not before */
        unsigned n_tried;                /* in vain, in a row */
    } guess;
    /* The rounds of an edge. Written by path_checks.c; path_nominate.c sets @n_failed to 0. */
    struct {
        struct path_round round;
        nsec_t begun_at;   /* when the last round began; 0: never */
        unsigned n_failed; /* rounds that found nothing, in a row */
    } checks;
    /* Which pair is used. Written by path_nominate.c. */
    struct {
        uint32_t pair;                   /* 0: the relay */
        nsec_t since;                    /* when that became so */
        nsec_t choose_at;                /* not before; NSEC_NEVER: nothing to choose from yet */
        struct path_nomination sent;     /* our nomination, until the peer accepts */
        struct path_nomination received; /* the peer's, of a pair that is not valid here yet */
        bool is_moved;                   /* our address has changed: our pings tell the peer */
        uint32_t moved_to; /* pair on which a peer whose address has changed speaks; 0: none */
        uint16_t mtu;      /* inner bytes that packets on the pair have at most now; 0: not known */
        nsec_t died_at;    /* when a direct path died last; 0: never */
        bool is_worse;     /* the direct path that there was is worse than the relay */
        bool has_left;     /* a direct path, for a relay that was better */
        unsigned n_returns; /* from a relay that had been better, and was not for long */
        nsec_t stay_until;  /* a direct path is not left for a better relay before this */
        bool is_alarm;      /* a warning was given that the edge is relayed, and it still is */
        nsec_t alarm_at;    /* when to warn; NSEC_NEVER: done, or no reason to */
    } choice;
};

/** path__wants_direct() - does the administrator let the edge be direct? */
static inline bool path__wants_direct(const struct path *pp)
{
    return pp->peer.policy == PATH_POLICY_AUTO || pp->peer.policy == PATH_POLICY_DIRECT;
}

/* ---- path_pair.c ---- */

/** path__ping() - queue a ping on a pair; the caller has reserved it in the budget. */
void path__ping(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__may_ping() - may @n pings be sent on a pair? If so they count as sent to its address. */
bool path__may_ping(struct path *pp, const struct path_pair *pair, unsigned n, nsec_t now);

/**
 * path__open() - a ping that opens our own NAT, and ends before it reaches the peer's
 * @hops:	its IP time to live
 *
 * It is not counted as a ping of the pair, because no answer is expected.
 */
void path__open(struct path *pp, const struct path_pair *pair, uint8_t hops, nsec_t now);

/** path__ping_loose() - queue a ping to an endpoint that is a guess, and so no pair. */
void path__ping_loose(struct path *pp, uint32_t socket, const struct endpoint *remote, nsec_t now);

/** path__tell() - queue a NOMINATE, ACCEPT or LEAVE on a pair. */
void path__tell(struct path *pp, const struct path_pair *pair, enum path_frame_kind kind,
    uint8_t flags, uint64_t transaction, nsec_t now);

/** path__probe() - queue an MTU probe of @size bytes of UDP payload; false: no memory. */
bool path__probe(
    struct path *pp, const struct path_pair *pair, uint16_t size, uint64_t *ret_probe, nsec_t now);

/** path__answer() - queue the answer to the ping or probe @f of @len bytes, to where it came from,
 * unless the budget of answers is spent. */
void path__answer(struct path *pp, const struct path_arrival *in, const struct path_frame *f,
    size_t len, nsec_t now);

/* ---- path_frame.c ---- */

/** path__on_frame() - a datagram with the tag of @keys, of the edge: @len bytes, not authenticated
 * yet. */
void path__on_frame(struct path *pp, const struct path_keys *keys, const struct path_arrival *in,
    uint8_t *msg, size_t len, nsec_t now);

/* ---- path_checks.c ---- */

/** path__checks_start() - begin a round; one that runs goes on. @is_full: silent pairs, too. */
void path__checks_start(struct path *pp, bool is_full, nsec_t now);

/** path__checks_restart() - one end has told new addresses: begin a full round; one that runs
 * begins again if it needs openers. */
void path__checks_restart(struct path *pp, nsec_t now);

/** path__checks_stop() - a round that runs ends here, and counts neither way. */
void path__checks_stop(struct path *pp);

/** path__checks_tick() - the round's next step, if it is due. */
void path__checks_tick(struct path *pp, nsec_t now);

/** path__slot_tick() - begin a round, if a slot has come. */
void path__slot_tick(struct path *pp, nsec_t now);

/** path__slot_plan() - plan the next slot, when both ends try again. */
void path__slot_plan(struct path *pp, nsec_t now);

/** path__port_guess_tick() - the next part of a guess, if it is due. */
void path__port_guess_tick(struct path *pp, nsec_t now);

/** path__port_guess_due() - when it is; NSEC_NEVER: no guess runs. */
nsec_t path__port_guess_due(const struct path *pp);

/** path__port_guess_on_socket() - an OPEN of this guess was done, or could not be. */
void path__port_guess_on_socket(struct path *pp, uint32_t socket, bool opened);

/** path__owns_socket() - is it the main one, or one that this edge has opened? */
bool path__owns_socket(const struct path *pp, uint32_t socket);

/** path__port_guess_on_used() - a path was found: when it dies, ports may be guessed again soon. */
void path__port_guess_on_used(struct path *pp, nsec_t now);

/** path__port_guess_end() - close the sockets that are not in use. */
void path__port_guess_end(struct path *pp);

/** path__close_socket() - close one that the chosen pair does not need, and drop its pairs. */
void path__close_socket(struct path *pp, uint32_t socket);

/* ---- path_nominate.c ---- */

/** path__on_measured() - a pair has answered a ping. */
void path__on_measured(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__on_peer_moved() - its address has changed, and it speaks by @pair now. */
void path__on_peer_moved(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__on_self_moved() - the peer sees us elsewhere than before, on the chosen pair. */
void path__on_self_moved(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__on_nominate() - the peer's way there and back works; ours is used once it does. */
void path__on_nominate(struct path *pp, struct path_pair *pair, uint64_t transaction, nsec_t now);

/** path__on_accept() - the peer uses the pair that we have nominated. */
void path__on_accept(struct path *pp, struct path_pair *pair, uint64_t transaction, nsec_t now);

/** path__on_leave() - the peer has left the pair; @flags are those of the frame. */
void path__on_leave(struct path *pp, struct path_pair *pair, uint8_t flags, nsec_t now);

/** path__nominate_tick() - repeat a nomination, choose, warn: what is due. */
void path__nominate_tick(struct path *pp, nsec_t now);

/** path__on_fits() - the peer has got the probe @id of @size bytes. True if it was one of another
 * pair than the chosen one, to be as large as what is sent now. */
bool path__on_fits(struct path *pp, uint64_t id, uint16_t size, nsec_t now);

/** path__chosen_tick() - ping the chosen pair, or leave it for the relay when it is dead. */
void path__chosen_tick(struct path *pp, nsec_t now);

/** path__liveness_facts() - of the edge as it is now, for path_liveness.c. */
struct path_liveness_facts path__liveness_facts(const struct path *pp, nsec_t now);

/** path__use_relay() - leave the chosen pair, if any. @why: for the log; NULL: none. */
void path__use_relay(struct path *pp, const char *why, nsec_t now);

/** path__keep() - use the pair with @at, which the engine uses, and ask whether it works. */
void path__keep(struct path *pp, const struct endpoint *at, nsec_t now);

/** path__settle() - the peer uses another path: nominate @pair again, or leave it. */
void path__settle(struct path *pp, struct path_pair *pair, nsec_t now);

/** path__leave_socket() - for the relay, if the chosen pair has a socket of its own. */
void path__leave_socket(struct path *pp, nsec_t now);

/** path__end_alarm() - it is direct, or need not be any more; @words say which, in the log. */
void path__end_alarm(struct path *pp, const char *words);

/** path__relay_rtt() - the relay in use, and both ends' round trips to it; 0: not known. */
nsec_t path__relay_rtt(const struct path *pp, struct path_relay *ret_via);

/** path__relay_mtu() - inner bytes that it carries in both directions; 0: not known. */
uint16_t path__relay_mtu(const struct path *pp, const struct x25519_public *key);

/** path__announces_relay() - does @now tell of one that @before does not? */
bool path__announces_relay(const struct path_side *before, const struct path_side *now);

/** path__release_relay() - the edge need not stay with the relay that the other end has led to. */
void path__release_relay(struct path *pp, nsec_t now);

/** path__check_relay() - the relays of one end have changed, their round trips, or how full they
 * are: leave a lost one at once, and plan to move to a better one.
 * path__begin_relay() - data begins to flow: leave one that is full at once. */
void path__check_relay(struct path *pp, nsec_t now);
void path__begin_relay(struct path *pp, nsec_t now);

/** path__on_relayed() - the other end has moved the edge to the relay @via: follow it. */
void path__on_relayed(struct path *pp, const struct x25519_public *via, nsec_t now);

/** path__relays() - those that this node reaches: at most @cap into @ret; returns how many. */
size_t path__relays(const struct path *pp, struct path_relay_view *ret, size_t cap);

/* ---- path_explain.c ---- */

/** path__explain() - why it is not direct, and what would make it so; "" when it is. A clause.
 * path__relay_is_better() - it is relayed, and the direct path works and is worse. */
void path__explain(const struct path *pp, char buf[static PATH_TEXT_MAX], nsec_t now);
bool path__relay_is_better(const struct path *pp, nsec_t now);

/** path__event() - a line for the log; the peer's name and a colon are put before @fmt's words. */
void path__event(struct path *pp, bool is_warning, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
