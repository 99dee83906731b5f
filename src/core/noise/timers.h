/*
 * timers.h - when to rekey, keep alive, retry and forget: section 6 as a state machine.
 *
 * Theory of operation. Two kinds of callers share a `struct timers`:
 *
 *   workers         say what the batch did: timers_on_sent() and the other
 *                   timers_on_ functions of the first group. Each is a few
 *                   atomic loads, and a store where something changes. They return
 *                   true when the control thread has to look at this peer:
 *                   then tell it, once (a mailbox, an eventfd).
 *   control thread  everything else. When told, or when timers_due() has come,
 *                   it calls timers_poll(), carries out the actions, and arms
 *                   its heap with timers_due().
 *
 * Worker stamps only remember *since when* something is owed (an answer to us,
 * a keepalive from us); they go back to zero when it is settled. A peer with a
 * stamp is `is_watched`: the control thread has a deadline for it, at most
 * Keepalive-Timeout after its last look, and no stamp that is set meanwhile asks
 * for anything sooner. So the busy path never wakes anybody. When the deadline
 * comes and the stamp has moved, it is armed anew; with no stamp left the watch
 * ends. The pairing that makes this safe: a worker stores the stamp, then reads
 * is_watched; the control thread clears is_watched, then reads the stamps; both
 * sequentially consistent.
 *
 * The order in which an event and its timer are told matters little: all times
 * are `now` of one monotonic clock and may be a batch old.
 *
 * Spec: whitepaper 6.1 to 6.6; where it is silent, the Linux kernel's behaviour.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"

struct rng;

/* What timers_poll() may ask for; a set of bits, to be carried out in this order. */
#define TIMERS_DROP_STAGED     0x01u /* nobody answered for 90 s: drop the packets that wait */
#define TIMERS_ZERO_KEYS       0x02u /* wipe all keypairs and the handshake (6.3) */
#define TIMERS_SEND_INITIATION 0x04u /* create and send one, then timers_on_initiation_sent() */
#define TIMERS_SEND_KEEPALIVE                                                                      \
    0x08u /* send what is staged or an empty data message; with no                                 \
           * keypair to send under: timers_on_rekey_wanted() */

struct timers {
    /* Any thread, atomically; 0 means "nothing owed". */
    _Atomic nsec_t unanswered_since; /* we sent data, and nothing authentic came since */
    _Atomic nsec_t keepalive_since;  /* we received data, and sent nothing since */
    _Atomic nsec_t traversed_at;   /* last authentic packet either way; with persistent keepalive */
    _Atomic nsec_t confirmed_at;   /* the responder's keypair was confirmed; for the next poll */
    _Atomic bool needs_another;    /* data came while a keepalive was owed already */
    _Atomic bool wants_initiation; /* a worker asks for a handshake */
    _Atomic bool is_last_minute;   /* asked for by timers_on_last_minute(), once per session */
    _Atomic bool is_watched;       /* see the theory of operation */

    /* Control thread writes; workers read. */
    _Atomic nsec_t persistent_interval; /* persistent keepalive; 0: off */

    /* Control thread. */
    nsec_t initiation_sent_at; /* last handshake message that we sent, for Rekey-Timeout */
    nsec_t handshake_at;       /* last handshake completed, monotonic */
    nsec_t retransmit_due;     /* the initiation's next try; NSEC_NEVER: none under way */
    nsec_t zero_keys_due;      /* NSEC_NEVER: no keys */
    nsec_t jitter;             /* drawn with each initiation; delays the new-handshake timer too */
    nsec_t polled_at;          /* last timers_poll() */
    unsigned attempts;         /* initiations repeated since somebody last asked for one */
    bool has_sent_handshake;   /* initiation_sent_at is meaningful */
    bool has_handshake;        /* handshake_at is meaningful */
};

/** timers_init() - nothing under way. */
void timers_init(struct timers *t);

/* ---- workers: any thread; all return "tell the control thread" ---- */

/** timers_on_data_sent() - a batch of inner packets was sealed and sent. */
bool timers_on_data_sent(struct timers *t, nsec_t now);

/** timers_on_keepalive_sent() - an empty data message was sent. */
void timers_on_keepalive_sent(struct timers *t, nsec_t now);

/** timers_on_data_received() - a batch with inner packets arrived, authentic and fresh. */
bool timers_on_data_received(struct timers *t, nsec_t now);

/** timers_on_other_received() - only empty data messages arrived, authentic and fresh; or an
 * authentic message of a handshake. */
void timers_on_other_received(struct timers *t, nsec_t now);

/**
 * timers_on_rekey_wanted() - there is something to send, and no keypair or an aging one
 *
 * May be called for every batch: asks once until an initiation was sent.
 */
bool timers_on_rekey_wanted(struct timers *t);

/** timers_on_last_minute() - keypair_wants_rekey_after_receive(). Asks once per session. */
bool timers_on_last_minute(struct timers *t);

/** timers_on_session_confirmed() - keypairs_confirm() said true. Always tell, within a second. */
void timers_on_session_confirmed(struct timers *t, nsec_t now);

/* ---- control thread ---- */

/** timers_on_initiation_sent() - also when it could not be sent; @rng draws the jitter. */
void timers_on_initiation_sent(struct timers *t, nsec_t now, const struct rng *rng);

/** timers_on_response_sent() - as responder. */
void timers_on_response_sent(struct timers *t, nsec_t now);

/** timers_on_session_derived() - handshake_derive() gave a keypair. */
void timers_on_session_derived(struct timers *t, nsec_t now);

/**
 * timers_on_handshake_complete() - as initiator, when the response was consumed
 *
 * Send what is staged, or else a keepalive, so that the responder can use its
 * key (5.4.5). The responder's side of this is timers_on_session_confirmed().
 */
void timers_on_handshake_complete(struct timers *t, nsec_t now);

/** timers_set_persistent_keepalive() - 0 turns it off; turned on, the first is due at once. */
void timers_set_persistent_keepalive(struct timers *t, nsec_t interval, nsec_t now);

/** timers_clear() - the peer goes down or away: nothing is due any more. Keeps the interval. */
void timers_clear(struct timers *t);

/**
 * timers_poll() - what is to be done now
 *
 * Call when timers_due() has come and when a worker told; harmless at any time.
 *
 * Return: a set of TIMERS_ actions.
 */
unsigned timers_poll(struct timers *t, nsec_t now);

/** timers_due() - when to poll next; NSEC_NEVER when only a worker can bring news. */
nsec_t timers_due(struct timers *t);
