/*
 * reachability.h - does a member answer at one of its addresses? From pings and answers to a
 * verdict.
 *
 * Theory of operation. One answer is proof, so it makes the address reached at once. Silence is
 * proof only when it has lasted: for REACHABILITY_SILENT_PINGS pings and for
 * REACHABILITY_SILENT_FOR, whichever takes longer. So a single lost packet does not make a member
 * silent whose pings are far apart.
 *
 *     UNKNOWN ── answer ──► REACHED ◄── answer ── SILENT
 *        └────── silence ──────┴────── silence ─────►
 *
 * Pure: events and the monotonic time in, a state out. ping_monitor.h sends the pings.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** Pings without an answer, and the time since the first of them, that make a member silent. */
#define REACHABILITY_SILENT_PINGS 3
#define REACHABILITY_SILENT_FOR   (3 * NSEC_PER_SEC)

/** The last so many pings are remembered: answers to them are taken, and loss is theirs. */
#define REACHABILITY_WINDOW 32

/** A ping without an answer counts as lost after this time. */
#define REACHABILITY_LATE_FOR NSEC_PER_SEC

enum reachability_state {
    REACHABILITY_UNKNOWN, /* no answer yet, and not pinged for long enough to call it silent */
    REACHABILITY_REACHED,
    REACHABILITY_SILENT,
    REACHABILITY_STATE_N,
};

/** A ping that was sent. */
struct reachability_ping {
    nsec_t sent_at; /* monotonic; 0: this place of the ring was not used yet */
    bool answered;
};

/** What is known of one address. All zero: it was never pinged. */
struct reachability {
    enum reachability_state state;
    nsec_t state_since;    /* monotonic; when the state began; 0: it has been UNKNOWN always */
    nsec_t silent_since;   /* when the oldest ping after the last answer was sent; 0: none was */
    unsigned silent_pings; /* pings sent after the last answer */
    nsec_t rtt;            /* round trip of the last answer; 0: there was none */
    uint16_t seq;          /* sequence number of the last ping */
    struct reachability_ping ring[REACHABILITY_WINDOW]; /* by sequence number modulo its size */
    uint64_t n_pings;                                   /* sent since the start */
    uint64_t n_answers;                                 /* answered since the start */
};

/**
 * reachability_on_ping() - a ping is being sent
 * @now:	monotonic
 *
 * Return: the sequence number to send in it.
 */
uint16_t reachability_on_ping(struct reachability *r, nsec_t now);

/**
 * reachability_on_answer() - an answer has come
 * @seq:	sequence number of the ping that it answers
 * @now:	monotonic
 *
 * A second answer to a ping, and one to a ping that is no longer in the window, changes nothing.
 *
 * Return: true if the state has changed.
 */
bool reachability_on_answer(struct reachability *r, uint16_t seq, nsec_t now);

/**
 * reachability_judge() - has the silence lasted long enough? To be asked before each ping.
 * @now:	monotonic
 *
 * Return: true if the state has changed, which is then SILENT.
 */
bool reachability_judge(struct reachability *r, nsec_t now);

/**
 * reachability_loss_permille() - how many of the remembered pings are lost
 * @now:	monotonic; a ping that may still be answered is not counted
 *
 * Return: lost pings per thousand, 0 to 1000; 0 when no ping counts.
 */
unsigned reachability_loss_permille(const struct reachability *r, nsec_t now);

/** reachability_state_name() - "unknown", "reached" or "silent", as in the JSON of weft probe. */
const char *reachability_state_name(enum reachability_state s);
