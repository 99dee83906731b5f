/*
 * reachability.h - is a member reached, at one of its addresses? From pings and answers to a verdict.
 *
 * Theory of operation. One answer is proof, so it makes the edge reached at
 * once. Silence is proof only when it has lasted: EDGE_SILENT_PINGS pings and
 * EDGE_SILENT_TIME, whichever takes longer, so that one lost packet does not
 * end an edge whose pings are far apart.
 *
 *     UNKNOWN ── answer ──► REACHED ◄── answer ── SILENT
 *        └────── silence ──────┴────── silence ─────►
 *
 * Pure: times and events in, a state out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define EDGE_SILENT_PINGS 3
#define EDGE_SILENT_TIME  (3 * NSEC_PER_SEC)

/** Pings of which answers are still taken, and the loss is told. */
#define EDGE_WINDOW 32

/** A ping without an answer for so long counts as lost. */
#define EDGE_LATE NSEC_PER_SEC

enum edge_state {
    EDGE_UNKNOWN, /* it was not pinged for long enough to tell */
    EDGE_REACHED,
    EDGE_SILENT,
    EDGE_STATE_N,
};

struct edge_ping {
    nsec_t sent; /* 0: there was none */
    bool answered;
};

/** All zero is one that was never pinged. */
struct edge {
    enum edge_state state;
    nsec_t since;          /* when the state began; 0: it never was another */
    nsec_t silent_since;   /* first ping without an answer since the last one; 0: none */
    unsigned silent_pings; /* how many those are */
    nsec_t rtt;            /* of the last answer; 0: there was none */
    uint16_t seq;          /* of the last ping */
    struct edge_ping ring[EDGE_WINDOW]; /* by sequence number */
    uint64_t n_pings;                   /* since the start */
    uint64_t n_answers;                 /* likewise */
};

/** edge_on_ping() - one is sent now. Return: its sequence number. */
uint16_t edge_on_ping(struct edge *e, nsec_t now);

/** edge_on_answer() - to ping @seq; one that is too old, or came before, is none. Return: has the
 * state changed? */
bool edge_on_answer(struct edge *e, uint16_t seq, nsec_t now);

/** edge_judge() - before each ping: has silence lasted? Return: has the state changed? */
bool edge_judge(struct edge *e, nsec_t now);

/** edge_loss_permille() - of the pings in the window that are not on their way; 0 without any. */
unsigned edge_loss_permille(const struct edge *e, nsec_t now);

/** edge_state_name() - "unknown", "reached", "silent". */
const char *edge_state_name(enum edge_state s);
