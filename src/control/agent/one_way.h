/*
 * one_way.h - which way between this node and the hub lets no UDP through.
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

enum one_way_kind {
    ONE_WAY_UNKNOWN, /* or it is both */
    ONE_WAY_IN,      /* the hub hears this node, but nothing from the hub arrives */
    ONE_WAY_OUT,     /* what the hub sends arrives, but it does not hear this node */
    ONE_WAY_N,
};

struct one_way {
    nsec_t silent;        /* since when the hub answers nothing; 0: it does */
    uint64_t rx_bytes;    /* from the hub, as counted last */
    nsec_t grew;          /* when they last did, by UDP; 0: not seen */
    struct endpoint from; /* where the hub has heard us; none: it has not */
    unsigned n_unheard;   /* requests in a row that it has not */
    nsec_t asked;         /* the hub, last; 0: never */
};

/**
 * one_way_look() - each second
 * @silent:	since when the hub answers nothing that is sent by UDP; 0: it does
 * @rx_bytes:	received from the hub
 * @is_udp:	by UDP, not by the stream
 */
void one_way_look(struct one_way *ow, nsec_t silent, uint64_t rx_bytes, bool is_udp, nsec_t now);

/** one_way_clear() - UDP is answered. */
void one_way_clear(struct one_way *ow);

/** one_way_wants_to_ask() - should the hub be asked now whether it has heard a request? */
bool one_way_wants_to_ask(const struct one_way *ow, nsec_t now);

/** one_way_on_asked() - it was. */
void one_way_on_asked(struct one_way *ow, nsec_t now);

/** one_way_on_heard() - what it says. @from: where the request came from; NULL: it did not come. */
void one_way_on_heard(struct one_way *ow, const struct endpoint *from);

enum one_way_kind one_way_of(const struct one_way *ow);

/** one_way_name() - "", "in", "out". */
const char *one_way_name(enum one_way_kind kind);
