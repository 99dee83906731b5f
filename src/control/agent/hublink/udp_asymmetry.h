/*
 * udp_asymmetry.h - which way between this node and the hub lets no UDP through.
 *
 * When requests by UDP stay unanswered, either they are lost on the way there or
 * their answers are lost on the way back. Two things tell which:
 *
 *   - While the hub's session is still in use and our requests are lost, what the
 *     hub sends goes on arriving: it repeats what nobody acknowledges, and begins
 *     handshakes.
 *   - Over the stream in TLS the hub can be asked whether it has heard a request
 *     that was not answered (docs/wire/stream.md).
 *
 * Pure: counts, answers and times in; a verdict out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/clock.h"

enum udp_asymmetry_kind {
    UDP_ASYMMETRY_UNKNOWN, /* not known, or both ways are broken */
    UDP_ASYMMETRY_IN,      /* the hub hears this node, but nothing from the hub arrives */
    UDP_ASYMMETRY_OUT,     /* what the hub sends arrives, but it does not hear this node */
    UDP_ASYMMETRY_N,
};

struct udp_asymmetry {
    nsec_t silent_since;  /* the hub answers nothing by UDP since then; 0: it does answer */
    nsec_t answered_at;   /* time of the last answer to a STUN request; 0: never */
    uint64_t rx_bytes;    /* received from the hub, as counted last */
    nsec_t grew_at;       /* time when @rx_bytes last grew by UDP; 0: not seen */
    struct endpoint from; /* our address where the hub has heard a request; none: it has not */
    unsigned n_unheard;   /* requests in a row that the hub says it has not heard */
    nsec_t asked_at;      /* time when the hub was last asked what it has heard; 0: never */
};

/**
 * udp_asymmetry_look() - what is seen of the hub; to be called each second
 * @silent_since: the hub answers nothing that is sent by UDP since then; 0: it does
 * @rx_bytes:	received from the hub so far
 * @is_udp:	they came by UDP, and not by the stream in TLS
 */
void udp_asymmetry_look(
    struct udp_asymmetry *ua, nsec_t silent_since, uint64_t rx_bytes, bool is_udp, nsec_t now);

/**
 * udp_asymmetry_on_answer() - the hub has answered a STUN request by UDP at @now
 *
 * Nothing from before counts any more, also when the silence that udp_asymmetry_look() is told of
 * began before: WireGuard hears the hub by UDP again only some time after the first answer.
 */
void udp_asymmetry_on_answer(struct udp_asymmetry *ua, nsec_t now);

/** udp_asymmetry_wants_to_ask() - should the hub be asked now whether it has heard a request? */
bool udp_asymmetry_wants_to_ask(const struct udp_asymmetry *ua, nsec_t now);

/** udp_asymmetry_on_asked() - the hub was asked whether it has heard a request. */
void udp_asymmetry_on_asked(struct udp_asymmetry *ua, nsec_t now);

/**
 * udp_asymmetry_on_heard() - what the hub answered to that
 * @from:	the address that the request came from; NULL: the hub has not heard it
 */
void udp_asymmetry_on_heard(struct udp_asymmetry *ua, const struct endpoint *from);

/** udp_asymmetry_of() - the verdict of all that was seen so far. */
enum udp_asymmetry_kind udp_asymmetry_of(const struct udp_asymmetry *ua);

/** udp_asymmetry_name() - "", "in", "out". */
const char *udp_asymmetry_name(enum udp_asymmetry_kind kind);
