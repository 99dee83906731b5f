/*
 * hub_choice.h - which of a network's hubs serves this node.
 *
 * Theory of operation. A node has a session with every hub, and one of them is its *serving hub*:
 * that one sends it the network's changes, and relays its edges. The serving hub is chosen by
 * rendezvous hashing: each pair of a node and a hub has a weight, computed from both names, and the
 * hub with the greatest weight is preferred. So nodes spread over the hubs, and when a hub goes
 * away only its nodes have to move, each to the hub that comes next for it.
 *
 * The serving hub has failed when its stream of events ends or does not begin in time, or when it
 * stops answering pings (STUN requests, which its data plane answers). Then the next hub is taken
 * at once, and the one that failed is avoided for a while, longer after each failure. A preferred
 * hub is taken back only when it has completed a handshake since its failure, which proves that it
 * is there, and when the present one has served for a while. That while differs from node to node,
 * so that a hub that comes back does not get all its nodes in the same moment.
 *
 * A network with one hub has no choice: that hub is the serving hub, nothing is asked, and there is
 * no deadline.
 *
 * Pure: facts and times in; a choice, requests and a deadline out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/parse.h"

/** Most hubs of a network that a node uses; those after them in order of names it passes over. */
#define HUB_CHOICE_MAX 16

/** One hub, as it is remembered. */
struct hub_choice_item {
    char name[NAME_MAX_LEN + 1];
    uint64_t weight;    /* for this node; the greatest is preferred */
    nsec_t failed_at;   /* time of its last failure as the serving hub; 0: none */
    nsec_t avoid_until; /* it is not taken before this time; 0: it has been heard since */
    nsec_t avoid_for;   /* how long it was avoided after its last failure; 0: it did not fail */
};

struct hub_choice {
    struct hub_choice_item items[HUB_CHOICE_MAX]; /* in the order of hub_choice_set() */
    unsigned n;
    char serving[NAME_MAX_LEN + 1]; /* the serving hub's name; "": there is none */
    nsec_t taken_at;                /* time when it was taken */
    bool is_heard;                  /* its stream of events is open */
    bool is_lost;                   /* its stream of events has ended */

    bool has_answered;       /* it has answered a ping since it was taken */
    nsec_t next_ping_at;     /* time of the next ping */
    nsec_t unanswered_since; /* time of the first ping since the last answer */
    unsigned n_unanswered;   /* pings since the last answer */
};

/** What is seen of one hub. */
struct hub_choice_fact {
    nsec_t handshake_at; /* time of the last WireGuard handshake with it; 0: never */
    bool has_session;    /* that handshake's session may still carry packets */
    bool is_cut;         /* packets to it go in TLS, and that connection is broken */
};

/** What is to be done. */
struct hub_choice_actions {
    bool has_changed; /* @hc->serving is another hub */
    const char *why;  /* a clause, for the log; "": it is the first choice */
    bool ping;        /* send the serving hub a STUN request */
    nsec_t due_at;    /* time of the next hub_choice_poll(); NSEC_NEVER: after the next event */
};

/**
 * hub_choice_set() - the hubs of the network
 * @node:	this node's name
 * @names:	of the hubs, @n of them, at most HUB_CHOICE_MAX, each once, in byte order
 *
 * What is remembered of hubs that stay is kept. hub_choice_poll() afterwards.
 */
void hub_choice_set(struct hub_choice *hc, const char *node, const char *const names[], unsigned n);

/** hub_choice_on_heard() - the serving hub has sent an event. */
void hub_choice_on_heard(struct hub_choice *hc, nsec_t now);

/** hub_choice_on_lost() - the serving hub's stream of events has ended, or could not be opened. */
void hub_choice_on_lost(struct hub_choice *hc);

/** hub_choice_on_answer() - the serving hub has answered a ping. */
void hub_choice_on_answer(struct hub_choice *hc, nsec_t now);

/**
 * hub_choice_poll() - which hub is it now, and what is to be done?
 * @facts:	of each hub, in the order of hub_choice_set()
 *
 * After each event above, each second, and when it is due.
 */
struct hub_choice_actions hub_choice_poll(
    struct hub_choice *hc, const struct hub_choice_fact *facts, nsec_t now);

/** hub_choice_find() - that hub's index in @hc->items; @hc->n: there is none. */
unsigned hub_choice_find(const struct hub_choice *hc, const char *name);

/** hub_choice_weight() - how much @node prefers @hub: the same for all who compute it. */
uint64_t hub_choice_weight(const char *node, const char *hub);
