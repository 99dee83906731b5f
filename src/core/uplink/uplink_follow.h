/*
 * uplink_follow.h - at which rate a machine sends whose uplink was found, while the line changes.
 *
 * Theory of operation. It begins a little below what was found, so that packets wait in this
 * machine, by class, and not in a router. While it is used up to that rate for some seconds, there
 * are two questions.
 *
 * Is the line slower than that? Then packets wait in front of it, and round trips to all peers take
 * longer, or a part is lost. The rate is lowered, and lowered again, while that helps. If it does
 * not, something else is to blame (what comes in, another machine on the line): it is set back, and
 * not lowered for some time.
 *
 * Is the line faster by now? It is raised by an eighth or so for some seconds. If round trips and
 * loss stay as they are, it is kept, and soon raised again; otherwise it is set back, and the next
 * attempt comes after twice as long, since each one fills a queue for a moment.
 *
 * Pings go beside what waits here (docs/DATAPLANE.md, "Rates and classes"), so what they take
 * longer they have waited elsewhere.
 *
 * Pure: times and figures in, a rate out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** How much below what was found it begins, in thousandths of that. */
#define UPLINK_FOLLOW_SHARE 950

/** What is the case at a look; a look each second or so while something is sent. */
struct uplink_follow_facts {
    nsec_t now;       /* monotonic */
    uint64_t found;   /* what the uplink carries, bit/s; 0: it is not known, and has no rate */
    uint64_t sent;    /* bytes that have left so far, with headers; never less than before */
    bool has_rtt;     /* the next two are known */
    nsec_t rise;      /* by how much the round trip to each peer is longer than its least one;
                         the least of all peers */
    nsec_t least_rtt; /* the least round trip of that peer */
    unsigned lost_permille; /* of the pings of some seconds; the least of all peers */
    bool is_of_one;         /* these are of one peer alone, whose own line may be what is full */
};

enum uplink_follow_phase {
    UPLINK_FOLLOW_STEADY,
    UPLINK_FOLLOW_RAISED,  /* for a moment, to see whether the line carries more */
    UPLINK_FOLLOW_LOWERED, /* to see whether that helps */
    UPLINK_FOLLOW_PHASE_N,
};

/** All zero: there is no rate. */
struct uplink_follow {
    uint64_t found;       /* as of the last look */
    uint64_t rate;        /* at which it is to be sent, bit/s; 0: as fast as it goes */
    uint64_t sent;        /* as of the last look, at @looked_at */
    nsec_t looked_at;     /* 0: there was none */
    nsec_t busy_since;    /* it was used up to its rate since then; 0: it is not */
    nsec_t bad_since;     /* and round trips were longer, or something was lost; 0: they are not */
    nsec_t since;         /* of @phase */
    nsec_t raise_at;      /* not raised before this */
    nsec_t raise_each;    /* time from an attempt that has failed to the next one */
    nsec_t lower_at;      /* not lowered before this */
    nsec_t lower_pause;   /* time from an attempt that did not help to the next one */
    uint64_t before;      /* RAISED, LOWERED: the rate until then */
    nsec_t rise_before;   /* LOWERED: how much longer round trips took until then */
    unsigned lost_before; /* RAISED, LOWERED: of 1000 pings, how many were lost until then */
    unsigned n_lowered;   /* LOWERED: how often by now */
    enum uplink_follow_phase phase;
};

/** uplink_follow_look() - take in what is the case. Return: the rate is another one. */
bool uplink_follow_look(struct uplink_follow *f, const struct uplink_follow_facts *facts);
