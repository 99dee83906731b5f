/*
 * keepalive.h - how long what stands between this node and the hub keeps an idle UDP mapping.
 *
 * A machine without I/O. It measures on a *spare* mapping, so that nothing that
 * is in use is ever at risk. A trial is
 *
 *     LEARN   from the spare socket: where do I come from? Twice (AGAIN), some
 *             seconds apart (WARM): many NATs keep a flow longer once it goes on
 *             in both directions, as ours does
 *     PROVE   from a second socket: the same, with the answer to the spare
 *             mapping's port (RESPONSE-PORT, RFC 5780 section 7.5). It has to
 *             arrive at the spare socket, or this way of measuring is of no use
 *     REST    nothing, for as long as this trial is about
 *     ASK     as PROVE: what arrives has come through a mapping that was still there. The second
 *             socket asks for itself as well, so that a hub that was away just then is told from
 *             a mapping that has gone
 *
 * When nothing but that arrives the mapping is only suspected to have gone: the next trial
 * begins, and if the very same question is answered on its fresh mapping (PROVE),
 * the old one had gone. Otherwise it was the hub, or the way, or the limit of the
 * hub's answers, and nothing was learned: it is tried again later, and each time
 * later than before. Trials grow until one fails, and then halve the gap.
 *
 * A NAT is not needed for it: a firewall that lets answers in forgets them, too.
 *
 * The whole takes some minutes in the background and a few dozen packets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** Least and greatest interval. WireGuard and we cannot send more often than the least. The
 * greatest is for a NAT that was restarted, which no measurement sees: only the next packet
 * opens a new mapping. */
#define KEEPALIVE_MIN (2 * NSEC_PER_SEC)
#define KEEPALIVE_MAX (60 * NSEC_PER_SEC)

/** The longest rest that is tried; three quarters of it are KEEPALIVE_MAX. */
#define KEEPALIVE_LONGEST (80 * NSEC_PER_SEC)

/** Most packets that one measurement sends while the hub answers. */
#define KEEPALIVE_PACKETS_MAX 80

enum keepalive_state {
    KEEPALIVE_STATE_OFF,   /* not begun, or the hub cannot be asked */
    KEEPALIVE_STATE_LEARN, /* where the spare mapping is, the first time */
    KEEPALIVE_STATE_WARM,  /* until it is asked the second time */
    KEEPALIVE_STATE_AGAIN, /* where it is, the second time */
    KEEPALIVE_STATE_PROVE, /* does an answer to it arrive at all? */
    KEEPALIVE_STATE_REST,  /* idle */
    KEEPALIVE_STATE_ASK,   /* is it still there? */
    KEEPALIVE_STATE_PAUSE, /* nothing was learned; later again */
    KEEPALIVE_STATE_DONE,
};

enum keepalive_action {
    KEEPALIVE_ACTION_NONE,
    KEEPALIVE_ACTION_OPEN,  /* a fresh spare socket, instead of the one before */
    KEEPALIVE_ACTION_LEARN, /* ask from the spare socket */
    KEEPALIVE_ACTION_PROVE, /* ask from the second one, answer to keepalive.port */
    KEEPALIVE_ACTION_ASK,   /* as PROVE, and ask from the second one, answer to itself */
};

/** Why a measurement does not get on. */
enum keepalive_obstacle {
    KEEPALIVE_OBSTACLE_NONE,
    KEEPALIVE_OBSTACLE_SILENCE,   /* the hub does not answer by UDP */
    KEEPALIVE_OBSTACLE_ELSEWHERE, /* answers to the spare mapping do not arrive even at once */
    KEEPALIVE_OBSTACLE_REFUSED,   /* the hub does not know RESPONSE-PORT */
};

/** What trials have shown. */
struct keepalive_bounds {
    nsec_t lives; /* the longest rest that a mapping has survived; 0: none yet */
    nsec_t dies;  /* the shortest that one has not; NSEC_NEVER: none yet */
};

#define KEEPALIVE_UNKNOWN ((struct keepalive_bounds){.dies = NSEC_NEVER})

struct keepalive {
    enum keepalive_state state;
    enum keepalive_obstacle obstacle; /* why it last paused, or ended without a result */
    struct keepalive_bounds bounds;
    nsec_t rest_for;    /* of the present trial; once it has ended, in whole milliseconds */
    nsec_t suspect_for; /* the rest of the trial before, if it was not answered; 0: it was */
    nsec_t due_at;      /* when the next action is due; NSEC_NEVER: none */
    nsec_t spread;      /* added to each pause */
    unsigned n_tries;   /* how often the present question was asked without an answer */
    unsigned n_pauses;  /* in a row */
    uint16_t port;      /* of the spare mapping, as the hub saw it */
    bool hub_answers;   /* the second socket, while the present trial ASKs */
    bool must_open;
};

/**
 * keepalive_start() - measure, from the beginning
 * @spread:	begin so much later: random, so that a whole cluster behind one NAT does not
 *		ask at once
 */
void keepalive_start(struct keepalive *k, nsec_t spread, nsec_t now);

/** keepalive_stop() - ask nothing any more; the bounds found so far stay. */
void keepalive_stop(struct keepalive *k);

/** keepalive_on_learned() - the spare socket was told that it is seen at @port. */
void keepalive_on_learned(struct keepalive *k, uint16_t port, nsec_t now);

/** keepalive_on_arrived() - the answer to a PROVE or an ASK came to the spare socket. */
void keepalive_on_arrived(struct keepalive *k, nsec_t now);

/** keepalive_on_answered() - what the second socket asked for itself was answered to it. */
void keepalive_on_answered(struct keepalive *k);

/** keepalive_on_refused() - the hub does not know RESPONSE-PORT: there is no way to measure. */
void keepalive_on_refused(struct keepalive *k);

/** keepalive_next() - what is to be done now; call until NONE. */
enum keepalive_action keepalive_next(struct keepalive *k, nsec_t now);

/** keepalive_due() - when to call it without any event; NSEC_NEVER: not at all. */
nsec_t keepalive_due(const struct keepalive *k);

/** keepalive_is_running() - it asks, or will. */
bool keepalive_is_running(const struct keepalive *k);

/**
 * keepalive_interval() - three quarters of the longest rest that was survived
 *
 * The quarter is for a packet that is late, for a clock that is coarse, and for a
 * mapping that is a little older than the last packet that was seen to pass. When
 * no rest was survived it is a third of the shortest that was not.
 *
 * Return: from KEEPALIVE_MIN to KEEPALIVE_MAX, whole seconds; 0: nothing is known.
 */
nsec_t keepalive_interval(const struct keepalive_bounds *bounds);

/**
 * keepalive_cautious() - the interval while a measurement runs
 * @before:	the one in use
 *
 * Return: @before; less, as soon as a rest shorter than it was not survived.
 */
nsec_t keepalive_cautious(const struct keepalive *k, nsec_t before);
