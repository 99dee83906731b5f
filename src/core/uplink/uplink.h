/*
 * uplink.h - what a machine's uplink carries, by trains that it has sent to its peers.
 *
 * Theory of operation. A train (uplink/train.h) shows the slowest part of the way to one peer,
 * which need not be the uplink. It is, if trains to different peers agree: three at least, to two
 * peers at least, within 15 %. While the line is in use a train comes slower, so of several rates
 * on which trains agree the highest one of a day counts.
 *
 * One that carried more than that contradicts it, as that to a neighbour in the same LAN does: all
 * that the machine sends must not be slowed down to what the way to some of its peers carries. But
 * what a peer has got once, and does not get any more, was the credit of a token bucket, or a line
 * that was faster then. So only the last train to each peer contradicts.
 *
 * Pure: trains and times in, a rate out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/parse.h"

/** Trains that are kept, and for how long; then the oldest ones go. */
#define UPLINK_TRAINS_MAX 32
#define UPLINK_KEEP_S     86400

/** Trains that have to agree, to how many peers, and how far they may be apart, in hundredths. */
#define UPLINK_TRAINS_MIN 3
#define UPLINK_PEERS_MIN  2
#define UPLINK_AGREE      115

/** What trains to one peer, one after the other, have come to (struct train_plan). */
struct uplink_train {
    char peer[NAME_MAX_LEN + 1];
    uint64_t bits_per_s; /* with headers */
    bool is_line;        /* the way to it carries that; else it carries that at least */
    int64_t at_s;        /* since 1970 */
};

/** All zero: nothing is known. */
struct uplink {
    struct uplink_train items[UPLINK_TRAINS_MAX]; /* the oldest first */
    unsigned n;
};

enum uplink_state {
    UPLINK_UNKNOWN, /* too few trains, or they do not agree */
    UPLINK_FAST,    /* it is so fast that it is no bottleneck */
    UPLINK_FOUND,
    UPLINK_STATE_N,
};

/** uplink_state_names - "unknown", "fast", "found". */
extern const char *const uplink_state_names[];

struct uplink_estimate {
    enum uplink_state state;
    uint64_t bits_per_s; /* FOUND: what it carries, with headers; FAST: at least; else 0 */
    int64_t at_s;        /* of the last train that agrees; UNKNOWN: of the last one; 0: none */
    unsigned n_trains;   /* that agree; UNKNOWN: that are known */
    unsigned n_peers;    /* of these */
    const char *faster;  /* UNKNOWN: lends the peer that contradicts the others; NULL: none does */
};

/** uplink_round() - three digits of a rate: no train says more, and people read it. */
uint64_t uplink_round(uint64_t bits_per_s);

/** uplink_put() - one more train; of which nothing is told if it is older than the last one. */
void uplink_put(struct uplink *u, const struct uplink_train *train);

/** uplink_forget() - the machine is elsewhere now: nothing is known. */
void uplink_forget(struct uplink *u);

/** uplink_estimate() - what the trains say together at @wall_s, s since 1970. */
struct uplink_estimate uplink_estimate(const struct uplink *u, int64_t wall_s);

/** uplink_trains_to() - how many trains to that peer count at @wall_s. */
unsigned uplink_trains_to(const struct uplink *u, const char *peer, int64_t wall_s);
