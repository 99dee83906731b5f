/*
 * pmtu.h - the largest packet that one path carries (RFC 8899, DPLPMTUD).
 *
 * A machine without I/O. Its carrier tells it that there is a path, which
 * probes were answered, and that data moves; it says which probes to send and
 * which size to use. A probe is an authenticated path frame, padded so that its
 * IP packet has the wanted size, sent with DF set; the answer to it is small.
 * No ICMP message is believed, so nobody on the way can shrink a path.
 *
 * All sizes are of whole IP packets on the wire, in bytes.
 *
 * Theory of operation. A *sweep* sends one probe of each size that is common in
 * the world, at once, and those above the largest that was answered again until
 * two rounds have brought no larger one. What lies between that one and its
 * neighbour is then *bisected*. *Settled*, a path whose data moves is *confirmed*
 * every few seconds with one probe of the size in use. A probe without an answer
 * leads to a sweep that begins a new epoch: late answers of older ones prove
 * nothing any more. When smaller probes are answered there and the present size
 * is not, the path has become a black hole for it. When nothing is answered the
 * path is dead, which is no matter of size: it is asked again later and later.
 *
 *   state     allowed                               leaves for
 *   NONE      nothing                               SWEEP, by pmtu_on_path()
 *   SWEEP     probes of this round                  SETTLED, BISECT, SILENT
 *   BISECT    one probe at a time                   SETTLED
 *   SETTLED   the size is known                     CONFIRM, SWEEP to raise it
 *   CONFIRM   one probe of the size in use          SETTLED, SWEEP in doubt
 *   SILENT    nothing was answered                  SWEEP, after a while
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** RFC 8899 5.1.2, BASE_PLPMTU: every path is assumed to carry packets of this size. */
#define PMTU_MIN 1200

/** The same of an inner packet: less IPv6, UDP and WireGuard. */
#define PMTU_INNER_MIN 1120

/** A path that no longer carries the size in use is noticed, and a smaller size is used, within
 * this time. */
#define PMTU_HOLE_MAX (10 * NSEC_PER_SEC)

/** What is known before anything is measured; @minimum <= @assumed <= @ceiling. */
struct pmtu_bounds {
    uint16_t minimum; /* never less than this */
    uint16_t assumed; /* used until the first result */
    uint16_t ceiling; /* never more than this: what the machine's own link carries */
};

enum pmtu_state {
    PMTU_STATE_NONE,
    PMTU_STATE_SWEEP,
    PMTU_STATE_BISECT,
    PMTU_STATE_SETTLED,
    PMTU_STATE_CONFIRM,
    PMTU_STATE_SILENT,
};

/** One probe. Its carrier keeps it, and hands it back with the answer. */
struct pmtu_probe {
    uint16_t size;
    uint16_t epoch; /* of the search that sent it */
    nsec_t sent_at;
};

/** What the caller has to do. */
enum pmtu_action {
    PMTU_ACTION_NONE,
    PMTU_ACTION_PROBE, /* send the probe */
    PMTU_ACTION_SET,   /* use its size from now on */
};

struct pmtu {
    struct pmtu_bounds bounds;
    enum pmtu_state state;
    uint16_t size;     /* in use */
    uint16_t reported; /* the last size that was given as an action; 0: none */
    uint16_t epoch;    /* of the present search */
    bool is_measured;

    /* A search. */
    uint16_t low;       /* the largest answered; 0: none yet */
    uint16_t high;      /* sweep: the largest to be tried; bisect: the smallest that failed */
    uint16_t next;      /* to be sent in this round; 0: all are sent */
    uint16_t round_low; /* @low as it was when the round began */
    uint8_t n_sent;     /* of this round */
    uint8_t n_tries;  /* of a sweep: rounds that brought nothing; of a bisection: probes of one size
                         without an answer */
    uint16_t doubted; /* the size in use, while the search is about whether it still passes; 0: it
                         is not about that */
    nsec_t round_ends_at; /* until when the round's answers are waited for; in SILENT, until when
                         nothing is sent */
    nsec_t rtt;           /* the last measured; 0: none yet */
    nsec_t quiet_for;     /* how long the next SILENT lasts */

    /* Data. */
    nsec_t data_sent_at;  /* when data was last sent; negative: never */
    nsec_t unheard_since; /* since when data is sent and nothing comes back; NSEC_NEVER: something
                             does */
    nsec_t confirmed_at;  /* when the size, or a larger one, was last answered */
    nsec_t raise_at;      /* when a larger one is tried again */
};

/** pmtu_init() - there is no path yet; the size in use is the assumed one. */
void pmtu_init(struct pmtu *p, const struct pmtu_bounds *bounds);

/** pmtu_on_path() - there is a path, or another one than before: its MTU is measured from the
 * beginning. */
void pmtu_on_path(struct pmtu *p, const struct pmtu_bounds *bounds, nsec_t now);

/** pmtu_set_ceiling() - the machine's own link carries another size than before: what is larger is
 * given up at once, and what may be larger now is tried. */
void pmtu_set_ceiling(struct pmtu *p, uint16_t ceiling, nsec_t now);

/** pmtu_on_path_lost() - there is no path: no probe is sent until pmtu_on_path(). */
void pmtu_on_path_lost(struct pmtu *p);

/** pmtu_on_answer() - the other end has got @probe. What we did not send is ignored. */
void pmtu_on_answer(struct pmtu *p, const struct pmtu_probe *probe, nsec_t now);

/** pmtu_on_data() - data was @sent on the path, or @heard from it, since the last call. */
void pmtu_on_data(struct pmtu *p, bool sent, bool heard, nsec_t now);

/**
 * pmtu_next() - what is to be done
 * @ret:	set for PROBE and SET
 *
 * Call after every event and when pmtu_due() has come, until there is nothing.
 */
enum pmtu_action pmtu_next(struct pmtu *p, nsec_t now, struct pmtu_probe *ret);

/** pmtu_due() - when pmtu_next() will have something without any event; NSEC_NEVER: never. */
nsec_t pmtu_due(const struct pmtu *p);
