/*
 * path_liveness.h - is the chosen pair of an edge alive, and does data flow on the edge?
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
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** Is the chosen pair alive? A machine of its own, in path_liveness.c. */
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
