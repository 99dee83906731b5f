/*
 * udp_asymmetry.h - which way between this node and the hub lets no UDP through.
 *
 * When requests by UDP stay unanswered they may be lost on the way there, or
 * their answers on the way back. Two things tell:
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
    UDP_ASYMMETRY_UNKNOWN, /* or it is both */
    UDP_ASYMMETRY_IN,      /* the hub hears this node, but nothing from the hub arrives */
    UDP_ASYMMETRY_OUT,     /* what the hub sends arrives, but it does not hear this node */
    UDP_ASYMMETRY_N,
};

struct udp_asymmetry {
    nsec_t silent;        /* since when the hub answers nothing; 0: it does */
    uint64_t rx_bytes;    /* from the hub, as counted last */
    nsec_t grew;          /* when they last did, by UDP; 0: not seen */
    struct endpoint from; /* where the hub has heard us; none: it has not */
    unsigned n_unheard;   /* requests in a row that it has not */
    nsec_t asked;         /* the hub, last; 0: never */
};

/**
 * udp_asymmetry_look() - each second
 * @silent:	since when the hub answers nothing that is sent by UDP; 0: it does
 * @rx_bytes:	received from the hub
 * @is_udp:	by UDP, not by the stream
 */
void udp_asymmetry_look(
    struct udp_asymmetry *ow, nsec_t silent, uint64_t rx_bytes, bool is_udp, nsec_t now);

/** udp_asymmetry_clear() - UDP is answered. */
void udp_asymmetry_clear(struct udp_asymmetry *ow);

/** udp_asymmetry_wants_to_ask() - should the hub be asked now whether it has heard a request? */
bool udp_asymmetry_wants_to_ask(const struct udp_asymmetry *ow, nsec_t now);

/** udp_asymmetry_on_asked() - it was. */
void udp_asymmetry_on_asked(struct udp_asymmetry *ow, nsec_t now);

/** udp_asymmetry_on_heard() - what it says. @from: where the request came from; NULL: it did not
 * come. */
void udp_asymmetry_on_heard(struct udp_asymmetry *ow, const struct endpoint *from);

enum udp_asymmetry_kind udp_asymmetry_of(const struct udp_asymmetry *ow);

/** udp_asymmetry_name() - "", "in", "out". */
const char *udp_asymmetry_name(enum udp_asymmetry_kind kind);
