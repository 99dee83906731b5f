/*
 * loss.h - which share of what a peer sends does not arrive, over time, and whether it is too much.
 *
 * Theory of operation. An engine counts what has come from a peer and what has not, by the counters
 * in WireGuard's data messages, so on all traffic and without a probe (struct arrivals). Whoever
 * asks it adds to a track what these have grown by. A track keeps ten minutes, in periods of ten
 * seconds, and tells the rate of the last minute, or, where that has lost too few, of all ten. What
 * was lost before a busy minute that was clean is over, and counts no more.
 *
 * What this machine has dropped itself, because its socket was full, is missing by the counters as
 * well. It is no loss of the line. Which peer's datagrams it dropped is not known, so each peer has
 * a part of it in proportion to what it sent, at most; what is left was certainly lost before.
 *
 * How much is believed. Of what is lost at random, ten that were lost tell the rate to a factor of
 * two in 98 cases of 100. So a rate of 0.1 % takes some 10,000 datagrams, and one of 0.01 %
 * 100,000. Loss that belongs to one event, such as a change of paths, is no rate: it has to be in
 * three periods.
 *
 * What is usual is what was lost in the last hour, but for its last minute. Much more is lost where
 * a rate is three times as great, by so many datagrams that chance does not explain it, and most
 * periods are that bad: a burst now and then is how the line is. It lasts until the rate is half as
 * much again as usual. Meanwhile nothing is added to what is usual; after an hour it is the new
 * one.
 *
 * Pure: counts and times in, rates out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** A period of a track. */
#define LOSS_PERIOD (10 * NSEC_PER_SEC)

/** Periods of a track: ten minutes. */
#define LOSS_PERIODS 60

/** With fewer datagrams than these nothing is said of loss; a track begins with twice as many, so
 * that it does not begin and end all the time. */
#define LOSS_PACKETS_MIN 1000

/** What it takes for a rate to be believed. */
#define LOSS_LOST_MIN    10 /* datagrams */
#define LOSS_PERIODS_MIN 3  /* periods in which some of them were lost */

/** How much is lost. Sorted: the worst is the greatest. */
enum loss_level {
    LOSS_LEVEL_NONE,     /* nothing worth a word, or nothing is known */
    LOSS_LEVEL_SOME,     /* 0.1 %: a stream of TCP is slower by it */
    LOSS_LEVEL_CRITICAL, /* 1 %: over more than a few ms hardly anything is left of it */
    LOSS_LEVEL_N,
};

/** loss_limits_ppm - from which share on, by level, in parts of a million. */
extern const uint32_t loss_limits_ppm[LOSS_LEVEL_N];

/** What was lost of what one end sent, in some time. All zero: nothing is known. */
struct loss_rate {
    uint64_t packets;   /* datagrams that it has sent, by its counters */
    uint64_t lost;      /* of them, those that did not arrive; not what this machine dropped */
    uint32_t seconds;   /* in which that was */
    uint32_t periods;   /* of LOSS_PERIOD each: in how many something was lost */
    uint32_t usual_ppm; /* the share in the last hour, before that time; parts of a million */
    bool has_usual;     /* it is known */
    bool is_worse;      /* much more is lost than that */
};

/** loss_rate_is_known() - has it seen LOSS_PACKETS_MIN? */
bool loss_rate_is_known(const struct loss_rate *r);

/** loss_rate_ppm() - the share, in parts of a million, rounded. */
uint32_t loss_rate_ppm(const struct loss_rate *r);

/**
 * loss_level() - how bad is it?
 * @before:	what it was: a level that was reached lasts until the share is half of its limit,
 *		so that one about a limit does not begin and end all the time
 */
enum loss_level loss_level(const struct loss_rate *r, enum loss_level before);

/** Parts of the last hour, each of ten minutes; the present one is not full. */
#define LOSS_USUAL_PARTS 7
#define LOSS_USUAL_PART  (600 * NSEC_PER_SEC)

/** What was lost in one of them. */
struct loss_usual_part {
    nsec_t since; /* monotonic */
    uint64_t packets;
    uint64_t lost; /* not what this machine dropped */
};

/** What is usual. All zero: nothing is known. */
struct loss_usual {
    struct loss_usual_part parts[LOSS_USUAL_PARTS]; /* a ring */
    unsigned at;                                    /* the present one */
    nsec_t until;       /* of what was lost before, all that counts is in it */
    nsec_t worse_since; /* much more is lost; 0: it is not */
};

/** Counts of one period. */
struct loss_period {
    nsec_t since;      /* monotonic */
    uint32_t received; /* as many as there are up to the greatest number */
    uint32_t lost;     /* by the counters */
    uint32_t here;     /* of them, as many as this machine may have dropped itself */
};

struct loss_track {
    struct loss_period periods[LOSS_PERIODS]; /* a ring */
    unsigned at;                              /* the present one */
    unsigned n;                               /* how many there are; 0: nothing was added */
    nsec_t added_at;                          /* time of the last loss_track_add() */
    nsec_t over_at;                           /* what was lost before that is over */
    bool is_known;                            /* it has seen enough to tell a rate */
    enum loss_level level;
    bool is_worse; /* much more is lost than usual */
    struct loss_usual usual;
};

/**
 * loss_track_add() - so much has come, or has not, since the last call
 * @here:	datagrams of this peer that this machine may have dropped itself
 *
 * The first call only begins the time; its counts are left aside. Brings @t->is_known, @t->level
 * and
 * @t->is_worse up to date.
 */
void loss_track_add(
    struct loss_track *t, uint64_t received, uint64_t lost, uint64_t here, nsec_t now);

/**
 * loss_track_rate() - of the last minute, if it is to be believed, else of the last ten
 *
 * Also of the last minute where it was clean, and the ten were not: it is over.
 */
struct loss_rate loss_track_rate(const struct loss_track *t, nsec_t now);
