/*
 * hub_rung.h - over which rung the hub is reached: UDP, or a stream in TLS where UDP is blocked.
 *
 * UDP is left only when it has really failed: the hub is silent, and the STUN
 * requests that are then sent stay unanswered; or they are answered and no
 * session comes about all the same, because something on the way knows
 * WireGuard and refuses it. And it is left only for a stream that is there, after UDP was asked
 * again beside it: a hub that is away or just starts answers neither. On the stream UDP is asked
 * now and then, and taken again once it answers several times in a row. Each return that did not
 * last makes the next one wait longer.
 *
 * Pure: times and facts in, wishes out.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

enum hub_rung_kind {
    HUB_RUNG_UDP,
    HUB_RUNG_STREAM,
};

struct hub_rung {
    enum hub_rung_kind kind;
    nsec_t since;        /* when this rung was taken */
    nsec_t suspected;    /* since when UDP is being asked for want of the hub; 0: it is not */
    nsec_t answered;     /* when UDP last answered; 0: never */
    nsec_t passes_since; /* when it first answered in this silence of the hub; 0: it did not */
    nsec_t asked;        /* when it was last asked; 0: never */
    unsigned n_answered; /* in a row, on the stream */
    unsigned n_asked;    /* since the last answer */
    unsigned n_beside;   /* of them, since there is a stream to go to */
    nsec_t settle;       /* how long the stream is kept at least */
    nsec_t returned;     /* when UDP was last taken again; 0: never */
};

/** What is the case now. */
struct hub_rung_facts {
    nsec_t now;
    nsec_t silent;   /* since when the hub has not been heard by UDP; 0: it is heard */
    bool is_doubt;   /* it does not seem to hear us, and is heard: STUN alone may say it fails */
    unsigned n_ways; /* public endpoints of the hub that are tried in turn, at least 1 */
    bool is_stream_open; /* a stream is there and carries */
};

/** What should be done. */
struct hub_rung_wish {
    bool ask;         /* send STUN requests by UDP */
    bool want_stream; /* have a stream, or open one */
    bool changed;     /* another rung was taken */
};

/** hub_rung_look() - at least each second, and while a stream is wanted each HUB_RUNG_TICK. */
struct hub_rung_wish hub_rung_look(struct hub_rung *hr, const struct hub_rung_facts *f);

/** hub_rung_on_answer() - the hub has answered a STUN request by UDP. */
void hub_rung_on_answer(struct hub_rung *hr, nsec_t now);

/** How often to look while UDP is in doubt. */
#define HUB_RUNG_TICK (250 * NSEC_PER_MSEC)
