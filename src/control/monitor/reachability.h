/*
 * reachability.h - decides from pings and answers whether a member is reached at one address.
 *
 * Theory of operation. One answer is proof, so it makes the address reached at once. Silence is
 * proof only when it has lasted: for REACHABILITY_SILENT_PINGS pings and for
 * REACHABILITY_SILENT_FOR, whichever takes longer. So even when pings are far apart, a single
 * lost packet does not make a member silent.
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

/** How many of the last pings are remembered. Answers to older ones are ignored, and the loss is
 * that of the remembered ones. */
#define REACHABILITY_WINDOW 32

/** A ping without an answer counts as lost after this time. */
#define REACHABILITY_LATE_FOR NSEC_PER_SEC

enum reachability_state {
    REACHABILITY_UNKNOWN, /* it has not answered yet, and was not pinged for long enough */
    REACHABILITY_REACHED, /* it answers */
    REACHABILITY_SILENT,  /* it has not answered for long enough */
    REACHABILITY_STATE_N,
};

/** A ping that was sent. */
struct reachability_ping {
    nsec_t sent_at; /* monotonic; 0: this place in the ring has not been used yet */
    bool answered;  /* an answer to it has come */
};

/** What is known of one address. All zero: it was never pinged. */
struct reachability {
    enum reachability_state state;
    nsec_t state_since;  /* monotonic; when the state began; 0: it has always been UNKNOWN */
    nsec_t silent_since; /* monotonic; when the first of @silent_pings was sent; 0: there is none */
    unsigned silent_pings; /* pings sent after the last answer */
    nsec_t rtt;            /* round-trip time of the last answer, ns; 0: there was none */
    uint16_t seq;          /* sequence number of the last ping */
    struct reachability_ping ring[REACHABILITY_WINDOW]; /* by sequence number modulo its size */
    uint64_t n_pings;                                   /* pings sent since the start */
    uint64_t n_answers;                                 /* pings answered since the start */
};

/**
 * reachability_on_ping() - to be called when a ping is sent
 * @now:	monotonic
 *
 * Return: the sequence number to send in it.
 */
uint16_t reachability_on_ping(struct reachability *r, nsec_t now);

/**
 * reachability_on_answer() - to be called when an answer has come
 * @seq:	sequence number of the ping that it answers
 * @now:	monotonic
 *
 * A second answer to a ping changes nothing, nor does an answer to a ping that is no longer
 * remembered.
 *
 * Return: true if the state has changed.
 */
bool reachability_on_answer(struct reachability *r, uint16_t seq, nsec_t now);

/**
 * reachability_judge() - has the silence lasted long enough? To be called before each ping.
 * @now:	monotonic
 *
 * Return: true if the state has changed; it is then SILENT.
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
