/*
 * line.h - the line of a relay: how much it carries against what it can, and which pairs are to go
 * another way because it is full.
 *
 * What a line can carry is said by who runs the relay, or was measured (uplink/uplink.h). Where
 * neither is so, nothing is concluded.
 *
 * Theory of operation. Rates are smoothed over some seconds. A line is near its limit from three
 * quarters on, and full from nine tenths on, where that lasts 30 s; it is not any more where it was
 * below two thirds, or four fifths, for 10 s.
 *
 * A line that is full is closed: no pair begins to use it that has another relay. Its heaviest
 * pairs are asked to go another way, as many as bring it to three quarters, and 30 s after that
 * more, if it is full still. After three minutes below six tenths it is open again, and pairs are
 * let back, one each minute, the lightest first.
 *
 * Whoever was asked to go is let back at once where its rate of then surely fits. Where it may fit,
 * because it may be less by now, it is let back after ten minutes, and after twice as long each
 * time that it had to go again, up to a day. So a load that stays the same moves a pair some times
 * in the first hours, and no more.
 *
 * Pure: counts and times in, decisions out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "crypto/x25519.h"
#include "path/path.h"

/** Bytes of the IPv4 and UDP headers that each datagram has on the line. */
#define RELAY_LINE_HEADERS 28

/** Most pairs that a sample names. */
#define RELAY_LINE_PAIRS_MAX 16

enum relay_line_level {
    RELAY_LINE_OPEN, /* it can carry more, or it is not known what it can carry */
    RELAY_LINE_NEAR, /* it is near its limit */
    RELAY_LINE_FULL,
    RELAY_LINE_LEVEL_N,
};

/** relay_line_level_names - "open", "near", "full". */
extern const char *const relay_line_level_names[];

/** Two nodes that are relayed, and how much both send each other. */
struct relay_pair {
    struct x25519_public keys[2]; /* the smaller one first */
    uint64_t rate;                /* bit/s, with headers */
};

/** What a relay counts. */
struct relay_sample {
    nsec_t now;                                    /* monotonic */
    uint64_t bytes;                                /* forwarded since the start, with headers */
    struct relay_pair pairs[RELAY_LINE_PAIRS_MAX]; /* @n_pairs, the heaviest first */
    unsigned n_pairs;
};

/** A pair that was asked to go another way. */
struct relay_away {
    struct x25519_public keys[2];
    uint64_t rate;    /* when it was asked, bit/s */
    nsec_t asked_at;  /* when that was */
    nsec_t back_at;   /* when it was let back; 0: it was not */
    unsigned n_times; /* that it was asked in a row */
};

/** Most of them that are known, those let back lately included. */
#define RELAY_LINE_AWAY_MAX PATH_AWAY_MAX

/** All zero: nothing is known of it. */
struct relay_line {
    uint64_t capacity; /* bit/s in each direction, the owner's to set; 0: not known */
    bool is_measured;  /* that was measured, and not said; the owner's as well */

    /* The rest is written by relay_line_take(). */
    uint64_t rate;      /* bit/s */
    uint64_t bytes;     /* as of the last sample */
    nsec_t sampled_at;  /* when that was; 0: there was none */
    nsec_t near_since;  /* since when it is as busy as a line near its limit; 0: it is not */
    nsec_t full_since;  /* since when as one that is full */
    nsec_t eased_since; /* since when it is less busy than @level; 0: it is not */
    nsec_t calm_since;  /* since when pairs could be let back; 0: they could not */
    nsec_t ask_at;      /* no more pairs are asked to go before this */
    enum relay_line_level level;
    bool is_closed;
    struct relay_pair pairs[RELAY_LINE_PAIRS_MAX]; /* @n_pairs of the last sample */
    unsigned n_pairs;
    struct relay_away away[RELAY_LINE_AWAY_MAX]; /* @n_away */
    unsigned n_away;
};

/** relay_line_take() - a new sample; each second. */
void relay_line_take(struct relay_line *l, const struct relay_sample *s);

/** relay_line_is_away() - was that pair asked to go another way, and not let back? */
bool relay_line_is_away(const struct relay_line *l, const struct x25519_public keys[static 2]);

/** Of those that use the line most a report names so many, and all that were asked to go. */
#define RELAY_LINE_HEAVIEST     8
#define RELAY_LINE_REPORTED_MAX (RELAY_LINE_HEAVIEST + RELAY_LINE_AWAY_MAX)

struct relay_reported_pair {
    struct relay_pair pair; /* its rate is 0 where it is not one of the heaviest */
    bool is_away;           /* it was asked to go another way, and not let back */
};

/** What a relay reports of its line. */
struct relay_line_report {
    enum relay_line_level level;
    uint64_t rate;                                             /* bit/s, with headers */
    uint64_t capacity;                                         /* bit/s; 0: not known */
    bool is_measured;                                          /* that was measured, and not said */
    struct relay_reported_pair pairs[RELAY_LINE_REPORTED_MAX]; /* @n_pairs, the heaviest first */
    unsigned n_pairs;
    struct path_relay_notice notice;
};

/** relay_line_tell() - the report of it as it is now. */
void relay_line_tell(const struct relay_line *l, struct relay_line_report *ret);
