/*
 * keepalive.h - how long the NAT towards the hub keeps an idle UDP mapping.
 *
 * A machine without I/O. It measures on a *spare* mapping, so that nothing that
 * is in use is ever at risk:
 *
 *     LEARN   from the spare socket: where do I come from? Twice, some seconds
 *             apart: many NATs keep a flow longer once it goes on in both
 *             directions, as ours does
 *     REST    nothing, for as long as this trial is about
 *     ASK     from a second socket: the same, with the answer to the spare
 *             mapping's port (RESPONSE-PORT, RFC 5780 section 7.5)
 *
 * What arrives at the spare socket has come through a mapping that was still
 * there. When nothing arrives, and the second socket is answered at its own port,
 * it was gone. Trials grow until one fails, and then halve the gap. When not even
 * the second socket is answered nothing was learned: it is tried again later.
 *
 * The whole takes some minutes in the background, and is done again when the
 * network has changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/** Between these the interval lies; the upper one keeps a session from ending unnoticed. */
#define KEEPALIVE_MIN (2 * NSEC_PER_SEC)
#define KEEPALIVE_MAX (60 * NSEC_PER_SEC)

enum keepalive_state {
    KEEPALIVE_STATE_OFF,   /* not begun, or the hub cannot be asked */
    KEEPALIVE_STATE_LEARN, /* where the spare mapping is, the first time */
    KEEPALIVE_STATE_WARM,  /* until it is asked the second time */
    KEEPALIVE_STATE_AGAIN, /* where it is, the second time */
    KEEPALIVE_STATE_REST,  /* idle */
    KEEPALIVE_STATE_ASK,   /* is it still there? */
    KEEPALIVE_STATE_CHECK, /* nothing came: does the hub answer at all? */
    KEEPALIVE_STATE_PAUSE, /* it did not */
    KEEPALIVE_STATE_DONE,
};

enum keepalive_action {
    KEEPALIVE_ACTION_NONE,
    KEEPALIVE_ACTION_OPEN,  /* a fresh spare socket, instead of the one before */
    KEEPALIVE_ACTION_LEARN, /* ask from the spare socket */
    KEEPALIVE_ACTION_ASK,   /* ask from the second one, answer to keepalive.port */
    KEEPALIVE_ACTION_CHECK, /* ask from the second one */
};

struct keepalive {
    enum keepalive_state state;
    nsec_t lives;     /* the longest rest that a mapping has survived; 0: none yet */
    nsec_t dies;      /* the shortest that none has; NSEC_NEVER: none yet */
    nsec_t rest;      /* of the present trial */
    nsec_t due;       /* of what comes next */
    unsigned n_tries; /* of the present question, that went without an answer */
    uint16_t port;    /* of the spare mapping, as the hub saw it */
    bool must_open;
};

/** keepalive_start() - measure, from the beginning. */
void keepalive_start(struct keepalive *k, nsec_t now);

/** keepalive_stop() - ask nothing; what is known stays. */
void keepalive_stop(struct keepalive *k);

/** keepalive_on_learned() - the spare socket was told that it is seen at @port. */
void keepalive_on_learned(struct keepalive *k, uint16_t port, nsec_t now);

/** keepalive_on_arrived() - the answer to an ASK came to the spare socket. */
void keepalive_on_arrived(struct keepalive *k, nsec_t now);

/** keepalive_on_checked() - the second socket was answered. */
void keepalive_on_checked(struct keepalive *k, nsec_t now);

/** keepalive_on_refused() - the hub does not know RESPONSE-PORT: there is no way to measure. */
void keepalive_on_refused(struct keepalive *k);

/** keepalive_next() - what is to be done now; call until NONE. */
enum keepalive_action keepalive_next(struct keepalive *k, nsec_t now);

/** keepalive_due() - when to call it without any event; NSEC_NEVER: not at all. */
nsec_t keepalive_due(const struct keepalive *k);

/**
 * keepalive_interval() - safely under what was measured
 * @until_known:	to be used as long as nothing was
 *
 * Return: from KEEPALIVE_MIN to KEEPALIVE_MAX, or @until_known; whole seconds.
 */
nsec_t keepalive_interval(const struct keepalive *k, nsec_t until_known);
