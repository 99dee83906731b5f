/*
 * transport_choice.h - is the hub to be reached by UDP, or by a stream in TLS because UDP is
 * blocked?
 *
 * Theory of operation. UDP is left only when it has really failed: the hub is silent, and the STUN
 * requests that are then sent are not answered; or they are answered and no session comes about all
 * the same, because something on the way knows WireGuard and refuses it. And it is left only for a
 * stream that is open, and after UDP was asked again beside it: a hub that is away, or starts just
 * now, answers by neither. While the stream is used, UDP is asked now and then, and is taken again
 * once it has answered several times in a row. Each return to UDP that did not last makes the next
 * one wait longer.
 *
 * Pure: times and facts in, wishes out.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

enum transport_kind {
    TRANSPORT_UDP,
    TRANSPORT_STREAM,
};

struct transport_choice {
    enum transport_kind kind;
    nsec_t taken_at; /* time when this transport was taken; 0: it is the first one */
    nsec_t
        suspected_since; /* UDP has been asked since then because the hub is silent; 0: it is not */
    nsec_t answered_at;  /* time of the last answer by UDP; 0: never */
    nsec_t passes_since; /* time of the first answer in this silence of the hub; 0: none */
    nsec_t asked_at;     /* time of the last request; 0: never */
    unsigned n_answered; /* answers in a row, while the stream is used */
    unsigned n_asked;    /* requests since the last answer */
    unsigned n_beside;   /* requests of these since a stream has been open */
    nsec_t settle_for;   /* shortest time that the stream is kept */
    nsec_t returned_at;  /* time when UDP was last taken again; 0: never */
};

/** What is the case now. */
struct transport_choice_facts {
    nsec_t now;
    nsec_t silent_since; /* the hub has not been heard by UDP since then; 0: it is heard */
    bool is_doubt;   /* it is heard, but seems not to hear us: then only STUN says that UDP fails */
    unsigned n_ways; /* public endpoints of the hub that are tried in turn, at least 1 */
    bool is_stream_open; /* a stream is connected and could carry packets */
};

/** What should be done. */
struct transport_choice_wish {
    bool ask;         /* send STUN requests by UDP */
    bool want_stream; /* keep a stream, or open one */
    bool has_changed; /* another transport was taken */
};

/** How often to poll while UDP is in doubt or a stream is wanted. */
#define TRANSPORT_CHOICE_TICK (250 * NSEC_PER_MSEC)

/** transport_choice_poll() - at least each second, and each TRANSPORT_CHOICE_TICK as said there. */
struct transport_choice_wish transport_choice_poll(
    struct transport_choice *tc, const struct transport_choice_facts *f);

/** transport_choice_on_answer() - the hub has answered a STUN request by UDP at @now. */
void transport_choice_on_answer(struct transport_choice *tc, nsec_t now);
